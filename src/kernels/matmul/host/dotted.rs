//! Products whose terms are neighbours in memory: every lane of a vector adds terms of its own.
//!
//! In: a part of a product. Out: its sums. Must hold: MATMUL-1: a lane adds `RUN` terms one after the other. These
//! sums, and then the lanes, are added as a tree.

use super::lanes::{Lanes, Real};
use super::{Factor, Matrix, Part, Product, RUN, Tree};

/// Rows and columns of a part.
pub(super) const LINES: usize = 16;
/// Terms of a part.
pub(super) const TERMS: usize = 2048;
/// Lines of the left factor that are multiplied with one of the right at a time.
const SIDE: usize = 4;
/// Levels of the tree of a part's runs: a run takes at least 32 terms.
const LEVELS: usize = 8;

/// Writes the sums of a part to `out`, which is its first element.
///
/// # Safety
/// The part exists, with at most `LINES` rows and columns and `TERMS` terms, and no other thread writes its elements.
#[inline(always)]
pub(super) unsafe fn run<L: Lanes>(product: &Product<L::Real>, part: Part, out: *mut L::Real) {
    // SAFETY: the caller's promise, here and below.
    unsafe {
        let left = Factor { at: product.a.element(part.page, part.row, part.term), ..product.a };
        let right = Factor { at: product.b.element(part.page, part.term, part.column), ..product.b };
        let write = |row: usize, column: usize, sum: L::Real| {
            *out.add(row * product.c.down + column * product.c.right) = sum;
        };
        if part.terms <= RUN {
            return few::<L::Real>(&left, &right, part, write);
        }
        let (mut copy_left, mut copy_right) = (Vec::new(), Vec::new());
        let left = lines(&left, part.rows, part.terms, &mut copy_left);
        let right = lines(&right.turned(), part.columns, part.terms, &mut copy_right);
        for column in 0..part.columns {
            let b = right.element(0, column, 0);
            let mut row = 0;
            while row + SIDE <= part.rows {
                let a = std::array::from_fn(|side| left.element(0, row + side, 0));
                for (side, sum) in dot::<L, SIDE>(a, b, part.terms).into_iter().enumerate() {
                    write(row + side, column, sum);
                }
                row += SIDE;
            }
            for row in row..part.rows {
                let [sum] = dot::<L, 1>([left.element(0, row, 0)], b, part.terms);
                write(row, column, sum);
            }
        }
    }
}

/// Computes sums of few terms, one after the other.
///
/// # Safety
/// The part exists.
#[inline(always)]
unsafe fn few<T: Real>(left: &Factor<T>, right: &Factor<T>, part: Part, write: impl Fn(usize, usize, T)) {
    for column in 0..part.columns {
        for row in 0..part.rows {
            let mut sum = T::ZERO;
            for p in 0..part.terms {
                // SAFETY: the caller's promise.
                unsafe { sum = sum.plus((*left.element(0, row, p)).times(*right.element(0, p, column))) };
            }
            write(row, column, sum);
        }
    }
}

/// The rows of a factor with their terms side by side: the factor itself, or a copy.
///
/// # Safety
/// The rows and terms exist.
#[inline(always)]
unsafe fn lines<T: Real>(factor: &Factor<T>, rows: usize, terms: usize, copy: &mut Vec<T>) -> Factor<T> {
    if factor.of.right == 1 {
        return Factor { page: 0, ..*factor };
    }
    copy.resize(rows * terms, T::ZERO);
    for p in 0..terms {
        for row in 0..rows {
            // SAFETY: the caller's promise.
            copy[row * terms + p] = unsafe { *factor.element(0, row, p) };
        }
    }
    Factor { at: copy.as_ptr(), of: Matrix { down: terms, right: 1 }, page: 0 }
}

/// The dot products of some lines with one line.
///
/// # Safety
/// The lines have `terms` terms, side by side.
#[inline(always)]
unsafe fn dot<L: Lanes, const LINES: usize>(
    a: [*const L::Real; LINES],
    b: *const L::Real,
    terms: usize,
) -> [L::Real; LINES] {
    // SAFETY: the caller's promise.
    unsafe {
        let zero = [L::splat(L::Real::ZERO); LINES];
        let plus = |x: [L::Vector; LINES], y: [L::Vector; LINES]| std::array::from_fn(|line| L::add(x[line], y[line]));
        let mut tree = Tree::<[L::Vector; LINES], LEVELS>::new(zero);
        for start in (0..terms).step_by(RUN * L::COUNT) {
            let end = terms.min(start + RUN * L::COUNT);
            let mut sums = zero;
            let mut p = start;
            while p + L::COUNT <= end {
                let x = L::load(b.add(p));
                for (sum, line) in sums.iter_mut().zip(a) {
                    *sum = L::mul_add(L::load(line.add(p)), x, *sum);
                }
                p += L::COUNT;
            }
            if p < end {
                let x = rest::<L>(b.add(p), end - p);
                for (sum, line) in sums.iter_mut().zip(a) {
                    *sum = L::mul_add(rest::<L>(line.add(p), end - p), x, *sum);
                }
            }
            tree.add(sums, plus);
        }
        tree.sum(plus).map(|sums| {
            let mut lanes = [L::Real::ZERO; 16];
            L::store(lanes.as_mut_ptr(), sums);
            let mut half = L::COUNT / 2;
            while half > 0 {
                for lane in 0..half {
                    lanes[lane] = lanes[lane].plus(lanes[lane + half]);
                }
                half /= 2;
            }
            lanes[0]
        })
    }
}

/// The last terms of a line, followed by zeros.
///
/// # Safety
/// There are `terms` terms, fewer than a vector has.
#[inline(always)]
unsafe fn rest<L: Lanes>(from: *const L::Real, terms: usize) -> L::Vector {
    let mut whole = [L::Real::ZERO; 16];
    // SAFETY: the caller's promise; a vector has at most 16 numbers.
    unsafe {
        std::ptr::copy_nonoverlapping(from, whole.as_mut_ptr(), terms);
        L::load(whole.as_ptr())
    }
}
