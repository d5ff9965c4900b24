//! Divides a product for a GPU: the shape of a workgroup's tile, and the slices into which the terms are cut.
//!
//! In: dtype and sizes. Out: a [`Tiling`] and a [`Split`]. Must hold: both depend on dtype and sizes alone, and so do
//! the bits of a product.

use crate::graph::DType;

/// Terms that an invocation of a tile adds in registers.
pub(super) const TERMS_MAX: u32 = 512;
/// Sums of `TERMS_MAX` terms that are added to a result in memory, one after the other.
const SUMS_MAX: u32 = 8;
/// The least terms of a slice. With fewer, it does not pay for a workgroup.
const SLICE_TERMS_MIN: u32 = 512;
/// Workgroups of tiles that fill a large GPU.
const GROUPS_WANTED: u64 = 256;
/// A product with at least this many large tiles takes large tiles.
const LARGE_TILES_MIN: u64 = 256;
/// Workgroups that fill a large GPU if they mostly wait for memory.
const READING_GROUPS_WANTED: u64 = 2048;
/// A product mostly waits for memory if its shorter side and its longer side have at most these numbers of lines.
const READING_MAX: (u32, u32) = (32, 64);
/// The terms that an invocation adds one after the other.
#[cfg(feature = "gpu")]
pub(super) const RUN: u32 = 8;
/// The terms of a running sum on the second level of the tree. Slices are multiples of it.
pub(super) const BLOCK: u32 = 64;
/// The most workgroup memory of tiles of other dtypes, in bytes. Every device has it.
#[cfg(feature = "gpu")]
const TILES_BYTES: u32 = 16 << 10;
/// The most workgroup memory of tiles of f64, in bytes. A device with less computes in f32 only.
#[cfg(feature = "gpu")]
pub const WIDE_TILES_BYTES: u32 = 24 << 10;
/// Lines of the shorter side up to which a product is thin.
const THIN_MAX: u32 = 4;
/// If the longer side of a thin product has at most this many lines, a whole workgroup adds the terms of each line.
const FEW_LINES: u32 = 16;

/// The way in which a product is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Way {
    /// By tiles of both factors.
    Tiles(Tiling),
    /// With one factor read once, in its order in memory.
    Thin(Thin),
}

/// The part of a result that a workgroup computes from tiles of the operands. An invocation has `rows` by `columns`
/// blocks of `lanes` by `lanes` elements. A tile of an operand has `depth` terms. Workgroup memory holds two tiles of
/// each operand: at most 16 KiB for f32, and 24 KiB for f64.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(not(feature = "gpu"), allow(dead_code))]
pub(super) struct Tiling {
    /// Invocations side by side along m: a multiple of 8.
    pub across: u32,
    /// Invocations side by side along n: a multiple of 4.
    pub down: u32,
    /// Blocks of an invocation along m.
    pub rows: u32,
    /// Blocks of an invocation along n.
    pub columns: u32,
    /// Lines of a vector: 1, 2 or 4.
    pub lanes: u32,
    /// Terms of a tile: a divisor or a multiple of `RUN`.
    pub depth: u32,
}

impl Tiling {
    /// Tiles of 16 by 16, 32 by 32, 64 by 64 and 128 by 128 elements.
    pub(super) const OF_16: Tiling = Tiling { across: 16, down: 16, rows: 1, columns: 1, lanes: 1, depth: 16 };
    const OF_32: Tiling = Tiling { across: 16, down: 16, rows: 1, columns: 1, lanes: 2, depth: 16 };
    const OF_64: Tiling = Tiling { across: 16, down: 16, rows: 1, columns: 1, lanes: 4, depth: 16 };
    const OF_128: Tiling = Tiling { across: 16, down: 16, rows: 2, columns: 2, lanes: 4, depth: 8 };
    /// Tiles of 64 by 64 elements of f64.
    const WIDE_OF_64: Tiling = Tiling { across: 8, down: 16, rows: 4, columns: 2, lanes: 2, depth: 8 };

    /// Every tiling, with a dtype for which it is used.
    #[cfg(all(test, feature = "gpu"))]
    pub fn all() -> [(DType, Tiling); 6] {
        let [single, wide] = [DType::F32, DType::F64];
        [
            (single, Tiling::OF_16),
            (single, Tiling::OF_32),
            (single, Tiling::OF_64),
            (single, Tiling::OF_128),
            (wide, Tiling::OF_32),
            (wide, Tiling::WIDE_OF_64),
        ]
    }

    /// Invocations of a workgroup.
    #[cfg(feature = "gpu")]
    pub fn invocations(self) -> u32 {
        self.across * self.down
    }

    /// Whether an invocation has several blocks of elements.
    #[cfg(feature = "gpu")]
    pub fn is_large(self) -> bool {
        self.rows * self.columns > 1
    }

    /// Bytes of workgroup memory of two tiles of each operand, with `padding` vectors for each term.
    #[cfg(feature = "gpu")]
    fn bytes(self, dtype: DType, padding: u32) -> u32 {
        let vectors = 2 * self.depth * (self.slots_down() + self.slots_across() + padding);
        vectors * self.lanes * if dtype.is_wide() { 8 } else { 4 }
    }

    /// Whether there is room for a vector of padding for each term of both operands.
    #[cfg(feature = "gpu")]
    pub fn has_padding(self, dtype: DType) -> bool {
        self.bytes(dtype, 2) <= if dtype.is_wide() { WIDE_TILES_BYTES } else { TILES_BYTES }
    }

    /// Vectors of rows of a tile.
    pub fn slots_down(self) -> u32 {
        self.across * self.rows
    }

    /// Vectors of columns of a tile.
    pub fn slots_across(self) -> u32 {
        self.down * self.columns
    }
}

/// A product whose shorter side has at most `count` lines.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(not(feature = "gpu"), allow(dead_code))]
pub(super) struct Thin {
    /// Whether the columns are the longer side.
    pub turned: bool,
    /// Lines of the shorter side, rounded up to a power of two.
    pub count: u32,
    /// Lines of the longer side that a workgroup computes.
    pub lines: u32,
    /// Lanes to which the terms of a sum are distributed.
    pub lanes: u32,
    /// Neighbouring terms that a lane gets at a time: a divisor of `RUN`, or 1.
    pub dealt: u32,
}

impl Thin {
    /// Terms of a slice: 512 for each lane.
    pub fn terms_max(self) -> u32 {
        512 * self.lanes
    }
}

impl Way {
    /// The way to compute `batch` products of `m` by `n` elements. All tilings add in the same order.
    pub fn of(dtype: DType, m: u32, n: u32, batch: u32) -> Way {
        let (short, long) = (m.min(n), m.max(n));
        if short <= THIN_MAX {
            let (turned, count) = (n > m, short.max(1).next_power_of_two());
            if long <= FEW_LINES {
                let lines = long.clamp(1, 4).next_power_of_two();
                return Way::Thin(Thin { turned, count, lines, lanes: 256, dealt: 1 });
            }
            // With four lines on the shorter side, sums of more lines take too many registers.
            let lines = if count > 2 { 32 } else { 64 };
            let dealt = if dtype.is_wide() { 2 } else { 4 };
            return Way::Thin(Thin { turned, count, lines, lanes: 32, dealt });
        }
        let (small, large) = match (dtype.is_wide(), long, short) {
            (_, ..=16, _) => return Way::Tiles(Tiling::OF_16),
            (_, _, ..=32) => return Way::Tiles(Tiling::OF_32),
            (false, ..) => (Tiling::OF_64, Tiling::OF_128),
            (true, ..) => return Way::Tiles(Tiling::WIDE_OF_64),
        };
        let tiles = |tiling| Way::Tiles(tiling).tiles(m, n) * batch as u64;
        // Large tiles read less memory, but there are fewer of them, and larger parts of them may lie beyond the edges.
        let elements = |tiling| tiles(tiling) * Way::Tiles(tiling).height() as u64 * Way::Tiles(tiling).width() as u64;
        let wasteful = elements(large) > elements(small) + elements(small) / 8;
        Way::Tiles(if wasteful || tiles(large) < LARGE_TILES_MIN { small } else { large })
    }

    /// The number of tiles of a product.
    fn tiles(self, m: u32, n: u32) -> u64 {
        m.div_ceil(self.height()) as u64 * n.div_ceil(self.width()) as u64
    }

    /// Rows of a workgroup's part.
    pub fn height(self) -> u32 {
        match self {
            Way::Tiles(tiling) => tiling.slots_down() * tiling.lanes,
            Way::Thin(Thin { turned: true, count, .. }) => count,
            Way::Thin(Thin { turned: false, lines, .. }) => lines,
        }
    }

    /// Columns of a workgroup's part.
    pub fn width(self) -> u32 {
        match self {
            Way::Tiles(tiling) => tiling.slots_across() * tiling.lanes,
            Way::Thin(Thin { turned: true, lines, .. }) => lines,
            Way::Thin(Thin { turned: false, count, .. }) => count,
        }
    }
}

/// How the terms of a product are cut into slices, which are summed separately.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Split {
    /// The number of slices. If there are several, their sums are partial results, which a last pass adds.
    pub slices: u32,
    /// Terms of each slice. The last slice may have fewer.
    pub terms: u32,
}

impl Split {
    /// The slices of a product: as many as fill a GPU, if slices are long enough, and at least so many that the chain
    /// of sums in memory stays short.
    pub fn of(dtype: DType, m: u32, n: u32, k: u32, batch: u32) -> Split {
        let way = Way::of(dtype, m, n, batch);
        let groups = way.tiles(m, n) * batch as u64;
        let reads = m.min(n) <= READING_MAX.0 || m.max(n) <= READING_MAX.1;
        let groups_wanted = if reads { READING_GROUPS_WANTED } else { GROUPS_WANTED };
        let (least, most, multiple) = match way {
            Way::Tiles(_) => (SLICE_TERMS_MIN, TERMS_MAX * SUMS_MAX, BLOCK),
            Way::Thin(thin) => (32 * thin.lanes, thin.terms_max(), 8 * thin.lanes),
        };
        let wanted = (groups_wanted / groups.max(1)).clamp(1, groups_wanted) as u32;
        let slices = wanted.min(k.div_ceil(least)).max(k.div_ceil(most)).max(1);
        let terms = (k.div_ceil(slices).max(1) as u64).next_multiple_of(multiple as u64).min(u32::MAX as u64) as u32;
        Split { slices: k.div_ceil(terms).max(1), terms }
    }
}

/// The 32-bit words of scratch for the partial results of a product on a GPU.
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
                    let most = match Way::of(dtype, m, n, batch) {
                        Way::Tiles(_) => TERMS_MAX * SUMS_MAX,
                        Way::Thin(thin) => thin.terms_max(),
                    };
                    assert!(terms % BLOCK == 0 && terms <= most);
                }
            }
        }
    }

    #[cfg(feature = "gpu")]
    #[test]
    fn tiles_fit_the_workgroup_memory_that_every_device_has() {
        for (dtype, most) in [(DType::F32, TILES_BYTES), (DType::F64, WIDE_TILES_BYTES)] {
            for (m, n) in [(5, 5), (16, 16), (17, 17), (8, 4096), (64, 64), (1000, 1000), (1 << 14, 1 << 14)] {
                let Way::Tiles(tiling) = Way::of(dtype, m, n, 1) else { panic!("{m} x {n} is thin") };
                assert!(tiling.bytes(dtype, 0) <= most, "{dtype} {m} x {n}: {tiling:?}");
            }
        }
    }

    #[cfg(feature = "gpu")]
    #[test]
    fn no_term_is_rounded_more_often_than_the_bound_allows() {
        // Checks MATMUL-1 under the assumption that each rounding error is half an ulp of the whole sum, and that all
        // have the same sign.
        for (m, n) in [(20, 20), (64, 64), (100, 3000), (1000, 1000), (1 << 14, 1 << 14)] {
            for k in (1..3000).chain((3000..40_000).step_by(97)).chain([1 << 20, 20_000_000]) {
                let Split { slices, terms } = Split::of(DType::F32, m, n, k, 1);
                let longest = terms.min(k);
                let pass = longest.min(TERMS_MAX);
                let runs = pass.min(BLOCK).div_ceil(RUN);
                let in_slice = pass.min(RUN) + runs + pass.div_ceil(BLOCK) + longest.div_ceil(TERMS_MAX) - 3;
                let lanes = slices.div_ceil(4).next_power_of_two();
                let all = in_slice + slices.min(4) - 1 + lanes.ilog2();
                let bound = 8.0 + 2.0 * (k as f64).log2();
                assert!(all as f64 <= bound, "{m} x {k} x {n}: {all} roundings, the bound allows {bound}");
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
