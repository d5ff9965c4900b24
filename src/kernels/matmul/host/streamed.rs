//! Products with few columns of a factor whose rows are neighbours in memory: it is read once, as it lies.
//!
//! In: a part of a product. Out: its sums. Must hold: MATMUL-1: `RUN` columns of the factor are added one after the
//! other, and such sums as a tree.

use super::lanes::{Lanes, Real};
use super::{Part, Product, RUN, THIN};

/// Rows of a part: their sums stay in the first cache.
pub(super) const ROWS: usize = 512;

/// Writes the sums of a part to `out`, which is its first element.
///
/// # Safety
/// The part exists, with rows that are neighbours and at most `THIN` columns; nobody else writes its elements.
#[inline(always)]
pub(super) unsafe fn run<L: Lanes>(product: &Product<L::Real>, part: Part, out: *mut L::Real) {
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
        for row in (0..part.rows).step_by(2 * L::COUNT) {
            // SAFETY: the caller's; levels hold whole vectors.
            unsafe {
                let sums = run_of_terms::<L>(product, part, row, start, end);
                for (column, sums) in sums.iter().enumerate().take(part.columns) {
                    for (half, &sum) in sums.iter().enumerate() {
                        let place = column * rows + row + half * L::COUNT;
                        let mut sum = sum;
                        for earlier in below.iter() {
                            sum = L::add(L::load(earlier.as_ptr().add(place)), sum);
                        }
                        L::store(at[0].as_mut_ptr().add(place), sum);
                    }
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
            // SAFETY: the caller's.
            unsafe { *out.add(row * product.c.down + column * product.c.right) = x };
        }
    }
}

/// The sums over a few terms of two vectors of rows, for each column.
///
/// # Safety
/// As [`run`].
#[inline(always)]
unsafe fn run_of_terms<L: Lanes>(
    product: &Product<L::Real>,
    part: Part,
    row: usize,
    start: usize,
    end: usize,
) -> [[L::Vector; 2]; THIN] {
    // SAFETY: the caller's.
    unsafe {
        let mut sums = [[L::splat(L::Real::ZERO); 2]; THIN];
        let rows = part.rows - row;
        for p in start..end {
            let from = product.a.element(part.page, part.row + row, part.term + p);
            let (a0, a1) = if rows >= 2 * L::COUNT {
                (L::load(from), L::load(from.add(L::COUNT)))
            } else {
                let mut whole = [L::Real::ZERO; 32];
                std::ptr::copy_nonoverlapping(from, whole.as_mut_ptr(), rows);
                (L::load(whole.as_ptr()), L::load(whole.as_ptr().add(L::COUNT)))
            };
            for (column, sums) in sums.iter_mut().enumerate() {
                if column < part.columns {
                    let x = L::splat(*product.b.element(part.page, part.term + p, part.column + column));
                    sums[0] = L::mul_add(a0, x, sums[0]);
                    sums[1] = L::mul_add(a1, x, sums[1]);
                }
            }
        }
        sums
    }
}
