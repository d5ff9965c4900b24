//! Products from packed copies of the factors. A part of the result is computed panel by panel of terms, and tile by
//! tile in registers.
//!
//! In: a part of a product. Out: its sums. Must hold: MATMUL-1: a tile adds `RUN` terms one after the other, and these
//! sums as a tree. A part adds the sums of its panels as a tree.

use super::lanes::{COLUMNS_MAX, Lanes, Real};
use super::{Part, Product, RUN};
use std::mem::MaybeUninit;

/// Rows of a part, so few that its packed rows fit a core's second-level cache.
pub(super) const ROWS: usize = 256;
/// Columns of a part.
pub(super) const COLUMNS: usize = 512;
/// Terms of a panel.
const PANEL: usize = 512;
/// Levels of the tree that adds a panel's runs. A panel has 32 runs.
const LEVELS: usize = 6;

/// A tile of the result in registers: two vectors for each column.
type Tile<L> = [[<L as Lanes>::Vector; 2]; COLUMNS_MAX];

/// Writes the sums of a part to `out`, which is its first element.
///
/// # Safety
/// The part exists, and no other thread writes its elements.
#[inline(always)]
pub(super) unsafe fn run<L: Lanes>(product: &Product<L::Real>, part: Part, out: *mut L::Real) {
    let (height, width) = (2 * L::COUNT, L::COLUMNS);
    let (tiles_down, tiles_across) = (part.rows.div_ceil(height), part.columns.div_ceil(width));
    let terms_most = PANEL.min(part.terms);
    let mut left = vec![L::Real::ZERO; tiles_down * height * terms_most];
    let mut right = vec![L::Real::ZERO; tiles_across * width * terms_most];
    let elements = part.rows * part.columns;
    let mut sums = Sums::<L::Real> { tree: Vec::new(), count: 0 };
    for panel in (0..part.terms).step_by(PANEL) {
        let terms = PANEL.min(part.terms - panel);
        let mut panel_sums = vec![L::Real::ZERO; elements];
        // SAFETY: the caller's promise; the copies hold whole tiles of `terms_most` terms.
        unsafe {
            let a = product.a.element(part.page, part.row, part.term + panel);
            pack(&mut left, height, (a, product.a.of.down, product.a.of.right), part.rows, terms);
            let b = product.b.element(part.page, part.term + panel, part.column);
            pack(&mut right, width, (b, product.b.of.right, product.b.of.down), part.columns, terms);
            for across in 0..tiles_across {
                for down in 0..tiles_down {
                    let (a, b) = (&left[down * height * terms..], &right[across * width * terms..]);
                    let tile = multiply::<L>(a.as_ptr(), b.as_ptr(), terms);
                    let (row, column) = (down * height, across * width);
                    let rows = height.min(part.rows - row);
                    let columns = width.min(part.columns - column);
                    let to = panel_sums.as_mut_ptr().add(column * part.rows + row);
                    store::<L>(&tile, to, part.rows, rows, columns);
                }
            }
        }
        sums.add(panel_sums);
    }
    let total = sums.sum();
    for (column, from) in total.chunks_exact(part.rows).enumerate() {
        for (row, &x) in from.iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { *out.add(row * product.c.down + column * product.c.right) = x };
        }
    }
}

/// Copies `lines` lines of `terms` terms, `edge` lines side by side for each term; lines beyond the last are filled
/// with zeros. `from` is the first line's first term, with the distances between lines and between terms.
///
/// # Safety
/// The lines exist.
#[inline(always)]
unsafe fn pack<T: Real>(
    to: &mut [T],
    edge: usize,
    (from, line, term): (*const T, usize, usize),
    lines: usize,
    terms: usize,
) {
    for (number, tile) in to.chunks_exact_mut(edge * terms).take(lines.div_ceil(edge)).enumerate() {
        let first = number * edge;
        let here = edge.min(lines - first);
        if here < edge {
            tile.fill(T::ZERO);
        }
        // SAFETY: the caller's promise.
        unsafe {
            if line == 1 {
                for (p, row) in tile.chunks_exact_mut(edge).enumerate() {
                    std::ptr::copy_nonoverlapping(from.add(first + p * term), row.as_mut_ptr(), here);
                }
            } else {
                // Copies eight terms of every line at a time, so that neighbouring terms are read while their cache
                // line is in the cache.
                for start in (0..terms).step_by(8) {
                    let end = terms.min(start + 8);
                    for i in 0..here {
                        let line = from.add((first + i) * line);
                        for p in start..end {
                            *tile.get_unchecked_mut(p * edge + i) = *line.add(p * term);
                        }
                    }
                }
            }
        }
    }
}

/// The sums of a tile over the terms of a panel.
///
/// # Safety
/// `a` and `b` hold `terms` packed terms.
#[inline(always)]
unsafe fn multiply<L: Lanes>(a: *const L::Real, b: *const L::Real, terms: usize) -> Tile<L> {
    // SAFETY: the caller's promise; levels are read only after they were written.
    unsafe {
        let mut levels: [MaybeUninit<Tile<L>>; LEVELS] = [const { MaybeUninit::uninit() }; LEVELS];
        let mut count = 0usize;
        for start in (0..terms).step_by(RUN) {
            let mut sums = run_of_terms::<L>(a, b, start, terms.min(start + RUN));
            let mut level = 0;
            while count >> level & 1 == 1 {
                sums = plus::<L>(levels[level].assume_init_ref(), &sums);
                level += 1;
            }
            levels[level].write(sums);
            count += 1;
        }
        let mut level = count.trailing_zeros() as usize;
        let mut sums = levels[level].assume_init_read();
        level += 1;
        while count >> level > 0 {
            if count >> level & 1 == 1 {
                sums = plus::<L>(levels[level].assume_init_ref(), &sums);
            }
            level += 1;
        }
        sums
    }
}

/// The sums of a tile over a few terms, one after the other.
///
/// # Safety
/// As [`multiply`].
#[inline(always)]
unsafe fn run_of_terms<L: Lanes>(a: *const L::Real, b: *const L::Real, start: usize, end: usize) -> Tile<L> {
    // SAFETY: the caller's promise.
    unsafe {
        let mut sums: Tile<L> = [[L::splat(L::Real::ZERO); 2]; COLUMNS_MAX];
        for p in start..end {
            let a0 = L::load(a.add(p * 2 * L::COUNT));
            let a1 = L::load(a.add(p * 2 * L::COUNT + L::COUNT));
            for (column, sums) in sums.iter_mut().enumerate().take(L::COLUMNS) {
                let x = L::splat(*b.add(p * L::COLUMNS + column));
                sums[0] = L::mul_add(a0, x, sums[0]);
                sums[1] = L::mul_add(a1, x, sums[1]);
            }
        }
        sums
    }
}

#[inline(always)]
unsafe fn plus<L: Lanes>(a: &Tile<L>, b: &Tile<L>) -> Tile<L> {
    let mut sums = *b;
    for (sums, a) in sums.iter_mut().zip(a).take(L::COLUMNS) {
        for (sum, &x) in sums.iter_mut().zip(a) {
            // SAFETY: the CPU has the instruction set.
            *sum = unsafe { L::add(x, *sum) };
        }
    }
    sums
}

/// Writes those rows and columns of a tile that lie in the part.
///
/// # Safety
/// `to` has room for them, with `stride` elements between columns.
#[inline(always)]
unsafe fn store<L: Lanes>(tile: &Tile<L>, to: *mut L::Real, stride: usize, rows: usize, columns: usize) {
    for (column, halves) in tile.iter().enumerate().take(columns) {
        // SAFETY: the caller's promise.
        unsafe {
            let to = to.add(column * stride);
            if rows == 2 * L::COUNT {
                L::store(to, halves[0]);
                L::store(to.add(L::COUNT), halves[1]);
            } else {
                let mut whole = [L::Real::ZERO; 32];
                L::store(whole.as_mut_ptr(), halves[0]);
                L::store(whole.as_mut_ptr().add(L::COUNT), halves[1]);
                std::ptr::copy_nonoverlapping(whole.as_ptr(), to, rows);
            }
        }
    }
}

/// Adds the sums of panels as a tree. `tree` holds sums of 1, 2, 4 and so on panels that were not added to others yet,
/// the sum of most panels first.
struct Sums<T> {
    tree: Vec<Vec<T>>,
    count: usize,
}

impl<T: Real> Sums<T> {
    #[inline(always)]
    fn add(&mut self, mut sums: Vec<T>) {
        let mut bits = self.count;
        while bits & 1 == 1 {
            if let Some(earlier) = self.tree.pop() {
                sums.iter_mut().zip(&earlier).for_each(|(sum, &x)| *sum = x.plus(*sum));
            }
            bits >>= 1;
        }
        self.tree.push(sums);
        self.count += 1;
    }

    #[inline(always)]
    fn sum(mut self) -> Vec<T> {
        let mut total = self.tree.pop().unwrap_or_default();
        while let Some(earlier) = self.tree.pop() {
            total.iter_mut().zip(&earlier).for_each(|(sum, &x)| *sum = x.plus(*sum));
        }
        total
    }
}
