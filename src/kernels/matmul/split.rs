//! How a GPU divides a product: the shape of a workgroup's tile, and into how many slices the terms are cut.
//!
//! In: dtype and sizes. Out: a [`Tiling`] and a [`Split`]. Must hold: both depend on dtype and sizes alone, so that the
//! bits of a product do, too.

use crate::graph::DType;

/// Terms that one pass adds to a result. A pass makes at most 1.2 times as many loop steps, fewer than the 65,535 at
/// which Mesa's software device stops.
pub(super) const TERMS_MAX: u32 = 1 << 15;
/// Passes that add to one result, one after the other.
const PASSES_MAX: u32 = 8;
/// Terms below which a slice is not worth a workgroup.
const SLICE_TERMS_MIN: u32 = 512;
/// Workgroups that fill a large GPU.
const GROUPS_WANTED: u64 = 512;
/// The terms that a running sum on the second level of the tree takes: slices are multiples of it.
pub(super) const BLOCK: u32 = 64;

/// The part of a result that a workgroup of 256 invocations computes: `across * rows` by `256 / across * columns`
/// elements, an invocation `rows` by `columns` of them, from tiles of the operands of `depth` terms.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(not(feature = "gpu"), allow(dead_code))]
pub(super) struct Tiling {
    /// Invocations side by side along m.
    pub across: u32,
    /// Rows of an invocation.
    pub rows: u32,
    /// Columns of an invocation.
    pub columns: u32,
    /// Terms of a tile: a multiple of 8 that divides [`BLOCK`].
    pub depth: u32,
}

impl Tiling {
    /// The tiling of an `m` by `n` product. Tiles take at most 16 KiB of workgroup memory.
    pub fn of(dtype: DType, m: u32, n: u32) -> Tiling {
        let wide = dtype.is_wide();
        let thin = if wide { 1 } else { 2 };
        let block = if wide { 2 } else { 4 };
        match (m, n) {
            (..=16, ..=16) => Tiling { across: 16, rows: 1, columns: 1, depth: if wide { 32 } else { 64 } },
            (_, ..=4) => Tiling { across: 64, rows: thin, columns: 1, depth: 16 },
            (..=4, _) => Tiling { across: 4, rows: 1, columns: thin, depth: 16 },
            _ => Tiling { across: 16, rows: block, columns: block, depth: 16 },
        }
    }

    /// Rows of the workgroup's part.
    pub fn height(self) -> u32 {
        self.across * self.rows
    }

    /// Columns of the workgroup's part.
    pub fn width(self) -> u32 {
        256 / self.across * self.columns
    }
}

/// The terms of a product, cut into slices that are summed apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Split {
    /// How many there are. Where there are several, their sums are partial results, which a last pass adds.
    pub slices: u32,
    /// Terms of each but the last, which may have fewer.
    pub terms: u32,
}

impl Split {
    /// The slices of a product: as many as fill a GPU, if they are long enough, and at least as many as keep the chain
    /// of passes over a slice short.
    pub fn of(dtype: DType, m: u32, n: u32, k: u32, batch: u32) -> Split {
        let tiling = Tiling::of(dtype, m, n);
        let groups = m.div_ceil(tiling.height()) as u64 * n.div_ceil(tiling.width()) as u64 * batch as u64;
        let wanted = (GROUPS_WANTED / groups.max(1)).clamp(1, GROUPS_WANTED) as u32;
        let slices = wanted.min(k.div_ceil(SLICE_TERMS_MIN)).max(k.div_ceil(TERMS_MAX * PASSES_MAX)).max(1);
        let terms = (k.div_ceil(slices).max(1) as u64).next_multiple_of(BLOCK as u64).min(u32::MAX as u64) as u32;
        Split { slices: k.div_ceil(terms).max(1), terms }
    }
}

/// 32-bit words in which a GPU keeps the partial results of a product.
pub fn scratch_words(dtype: DType, m: u32, n: u32, k: u32, batch: u32) -> u64 {
    let split = Split::of(dtype, m, n, k, batch);
    let words = if dtype.is_wide() { 2 } else { 1 };
    if split.slices == 1 { 0 } else { split.slices as u64 * m as u64 * n as u64 * batch as u64 * words }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_cover_all_terms_and_no_slice_is_empty() {
        for (m, n, batch) in [(1, 1, 1), (2, 2, 1), (256, 1, 1), (64, 64, 3), (1000, 1000, 1), (1 << 15, 1 << 15, 1)] {
            for k in [0, 1, 63, 64, 511, 512, 513, 4097, 1_000_000, 20_000_000, 1 << 30] {
                for dtype in [DType::F32, DType::F64] {
                    let Split { slices, terms } = Split::of(dtype, m, n, k, batch);
                    assert!(slices as u64 * terms as u64 >= k as u64, "{m} x {k} x {n}: {slices} of {terms}");
                    assert!(slices == 1 || (slices - 1) as u64 * (terms as u64) < k as u64);
                    assert!(terms % BLOCK == 0 && terms <= TERMS_MAX * PASSES_MAX);
                }
            }
        }
    }

    #[test]
    fn long_thin_products_have_many_slices_and_square_ones_have_one() {
        assert!(Split::of(DType::F32, 256, 1, 1_000_000, 1).slices >= 128);
        assert!(Split::of(DType::F32, 2, 2, 20_000_000, 1).slices >= 256);
        assert_eq!(Split::of(DType::F32, 4096, 4096, 4096, 1).slices, 1);
        assert_eq!(scratch_words(DType::F32, 4096, 4096, 4096, 1), 0);
    }
}
