//! Products of a factor whose rows are neighbours in memory with a thin factor of few columns. The first is read once,
//! in its order in memory.
//!
//! In: a part of a product. Out: its sums. A pass over the part's rows takes a few columns of the factor, so that
//! memory is read in a few long streams. Must hold: MATMUL-1: `RUN` columns of the factor are added one after the
//! other, and these sums as a tree.

use super::lanes::{Lanes, Real};
use super::{Part, Product, RUN, THIN};

/// Bytes of the sums of a part. They stay in the first-level cache beside the elements that are read.
const SUMS_BYTES: usize = 8 << 10;
/// Columns of the factor that a pass reads, which is the number of streams that a core prefetches. On an EPYC, half as
/// many take 1.1 times as long, and so do twice as many.
const STREAMS: usize = 8;

/// The least elements of the factor that a part reads, if terms are cut to have parts for all threads.
pub(super) const ELEMENTS_MIN: usize = 1 << 18;

/// Rows of a part that has `columns` columns.
pub(super) fn rows<T>(columns: usize) -> usize {
    SUMS_BYTES / size_of::<T>() / columns.next_power_of_two().clamp(1, THIN)
}

/// Writes the sums of a part to `out`, which is its first element.
///
/// # Safety
/// The part exists, with rows that are neighbours and at most `THIN` columns; no other thread writes its elements.
#[inline(always)]
pub(super) unsafe fn run<L: Lanes>(product: &Product<L::Real>, part: Part, out: *mut L::Real) {
    const { assert!(THIN == 4) };
    let rows = part.rows.next_multiple_of(2 * L::COUNT);
    // The sums of 1, 2, 4 … runs, for each column and row.
    let mut levels: Vec<Vec<L::Real>> = Vec::new();
    let mut count = 0usize;
    for start in (0..part.terms).step_by(RUN) {
        let end = part.terms.min(start + RUN);
        let level = count.trailing_ones() as usize;
        if levels.len() <= level {
            levels.push(vec![L::Real::ZERO; rows * part.columns]);
        }
        let (below, at) = levels.split_at_mut(level);
        for first in (start..end).step_by(STREAMS) {
            let terms = (first, end.min(first + STREAMS));
            let (is_first, below) = (first == start, if terms.1 == end { &*below } else { &[] });
            // SAFETY: the caller's promise; levels hold whole vectors.
            unsafe {
                match part.columns {
                    1 => pass::<L, 1>(product, part, terms, is_first, below, &mut at[0]),
                    2 => pass::<L, 2>(product, part, terms, is_first, below, &mut at[0]),
                    3 => pass::<L, 3>(product, part, terms, is_first, below, &mut at[0]),
                    _ => pass::<L, THIN>(product, part, terms, is_first, below, &mut at[0]),
                }
            }
        }
        count += 1;
    }
    let mut kept = levels.into_iter().enumerate().filter(|(level, _)| count >> level & 1 == 1).map(|(_, sums)| sums);
    let mut total = kept.next().unwrap_or_default();
    for sums in kept {
        total.iter_mut().zip(&sums).for_each(|(sum, &x)| *sum = x.plus(*sum));
    }
    for (column, from) in total.chunks_exact(rows).enumerate() {
        for (row, &x) in from.iter().enumerate().take(part.rows) {
            // SAFETY: the caller's promise.
            unsafe { *out.add(row * product.c.down + column * product.c.right) = x };
        }
    }
}

/// Adds a few terms of every row to the sums `at`; if `is_first`, these begin with the terms. Then adds the sums
/// `below`.
///
/// # Safety
/// As [`run`], with `COLUMNS` columns; all sums hold whole vectors for the part's rows, column after column.
#[inline(always)]
unsafe fn pass<L: Lanes, const COLUMNS: usize>(
    product: &Product<L::Real>,
    part: Part,
    terms: (usize, usize),
    is_first: bool,
    below: &[Vec<L::Real>],
    at: &mut [L::Real],
) {
    let rows = part.rows.next_multiple_of(2 * L::COUNT);
    for row in (0..part.rows).step_by(2 * L::COUNT) {
        // SAFETY: the caller's promise.
        unsafe {
            let place = |column: usize| column * rows + row;
            let before: [[L::Vector; 2]; COLUMNS] = if is_first {
                [[L::splat(L::Real::ZERO); 2]; COLUMNS]
            } else {
                std::array::from_fn(|column| two::<L>(at.as_ptr().add(place(column))))
            };
            let sums = add_terms::<L, COLUMNS>(product, part, row, terms, before);
            for (column, mut sums) in sums.into_iter().enumerate() {
                for earlier in below {
                    let earlier = two::<L>(earlier.as_ptr().add(place(column)));
                    sums = [L::add(earlier[0], sums[0]), L::add(earlier[1], sums[1])];
                }
                L::store(at.as_mut_ptr().add(place(column)), sums[0]);
                L::store(at.as_mut_ptr().add(place(column) + L::COUNT), sums[1]);
            }
        }
    }
}

/// Loads two neighbouring vectors.
///
/// # Safety
/// They exist.
#[inline(always)]
unsafe fn two<L: Lanes>(from: *const L::Real) -> [L::Vector; 2] {
    // SAFETY: the caller's promise.
    unsafe { [L::load(from), L::load(from.add(L::COUNT))] }
}

/// Adds a few terms to the sums of two vectors of rows, for each column.
///
/// # Safety
/// As [`pass`].
#[inline(always)]
unsafe fn add_terms<L: Lanes, const COLUMNS: usize>(
    product: &Product<L::Real>,
    part: Part,
    row: usize,
    (start, end): (usize, usize),
    mut sums: [[L::Vector; 2]; COLUMNS],
) -> [[L::Vector; 2]; COLUMNS] {
    let rows = part.rows - row;
    for p in start..end {
        // SAFETY: the caller's promise.
        unsafe {
            let from = product.a.element(part.page, part.row + row, part.term + p);
            let a = if rows >= 2 * L::COUNT {
                two::<L>(from)
            } else {
                let mut whole = [L::Real::ZERO; 32];
                std::ptr::copy_nonoverlapping(from, whole.as_mut_ptr(), rows);
                two::<L>(whole.as_ptr())
            };
            for (column, sums) in sums.iter_mut().enumerate() {
                let x = L::splat(*product.b.element(part.page, part.term + p, part.column + column));
                *sums = [L::mul_add(a[0], x, sums[0]), L::mul_add(a[1], x, sums[1])];
            }
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::super::lanes::{WIDEST, Width};
    use super::super::{Tree, product};
    use super::RUN;

    /// An element of a product as it must be computed: terms are added one after the other in runs, and runs as a tree.
    fn element(terms: impl Iterator<Item = (f64, f64)>, contracts: bool) -> f64 {
        let mut tree = Tree::<f64, 32>::new(0.0);
        let terms: Vec<_> = terms.collect();
        for run in terms.chunks(RUN) {
            let add = |sum: f64, &(x, y): &(f64, f64)| if contracts { x.mul_add(y, sum) } else { sum + x * y };
            tree.add(run.iter().fold(0.0, add), |x, y| x + y);
        }
        tree.sum(|x, y| x + y)
    }

    #[test]
    fn the_bits_do_not_depend_on_how_rows_and_terms_are_cut() {
        let value = |i: usize| ((i * 7919) % 1009) as f64 / 1009.0 - 0.3;
        let fused = cfg!(target_arch = "aarch64");
        let mut widths = vec![(None, fused)];
        #[cfg(target_arch = "x86_64")]
        {
            widths.extend(is_x86_feature_detected!("fma").then_some((Some(Width::Avx2), true)));
            widths.extend(is_x86_feature_detected!("avx512f").then_some((Some(Width::Avx512), true)));
        }
        // Sizes with several parts of rows and chunks of terms, with one part, and with rows and terms that fill no
        // vector and no run.
        for (m, n, k) in [(1100, 1, 700), (300, 3, 900), (70, 4, 35)] {
            let (a, b): (Vec<f64>, Vec<f64>) = ((0..m * k).map(value).collect(), (0..k * n).map(value).collect());
            for &(widest, contracts) in &widths {
                WIDEST.set(widest);
                for (at, got) in product(&a, &b, (m, k, n)).into_iter().enumerate() {
                    let (row, column) = (at % m, at / m);
                    let expected = element((0..k).map(|p| (a[p * m + row], b[column * k + p])), contracts);
                    assert_eq!(got, expected, "{widest:?}: row {row}, column {column} of {m} x {n} x {k}");
                }
            }
        }
    }
}
