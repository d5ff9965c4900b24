//! Running folds, for scans: the values of a block of a line, and the carry to the next block.
//!
//! In: a carry for each line, and blocks of arguments. Out: the fold up to each element; the carry to the next block.
//! Must hold: an element of a running sum of floats loses no more than `docs/accuracy.md` says, however long the line
//! is: the carry of a sum of f32 is an f64, and that of a sum of f64 includes the sum of its rounding errors.

use super::monoid::{self, Parts, by_number, lanes_mut, lanes_of};
use super::number::Number;
use crate::graph::DType;
use crate::kernels::ir::Monoid;
use smallvec::SmallVec;

/// The dtypes of a scan's carry.
pub(super) fn components(monoid: Monoid, dtype: DType) -> SmallVec<[DType; 4]> {
    match (monoid, dtype) {
        (Monoid::Sum, DType::F32) => SmallVec::from_slice(&[DType::F64]),
        // The sum, and the sum of the rounding errors of its additions.
        (Monoid::Sum, DType::F64) => SmallVec::from_slice(&[DType::F64; 2]),
        _ => SmallVec::from_slice(&[dtype]),
    }
}

/// Sets carries to their values at the beginning of a line. A sum of floats begins with -0, so that the sum of one
/// element is that element, also if it is -0.
///
/// # Safety
/// `parts` has arrays of `lanes` components ([`components`]), for writing.
pub(super) unsafe fn init(monoid: Monoid, dtype: DType, parts: Parts, lanes: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if is_float_sum(monoid, dtype) {
            for (at, _) in parts.0.iter().zip(components(monoid, dtype)) {
                lanes_mut::<f64>(*at, lanes).fill(-0.0);
            }
        } else {
            monoid::init(monoid, dtype, parts, lanes);
        }
    }
}

/// Whether a scan is a sum of floats, whose carries are wider than its values ([`sum`] and [`sums`]).
pub(super) fn is_float_sum(monoid: Monoid, dtype: DType) -> bool {
    monoid == Monoid::Sum && dtype.is_float()
}

/// A running sum of floats: `out[i]` becomes the sum of the carry in `parts` and everything up to `i` (from `i` on, if
/// `reverse`) of a line's block `from`; the carry becomes that of the next block.
///
/// # Safety
/// `from` and `out` point to `lanes` numbers of `dtype` (a float), apart from each other; `parts` is one carry.
pub(super) unsafe fn sum(dtype: DType, from: *const u8, out: *mut u8, parts: Parts, lanes: usize, reverse: bool) {
    // SAFETY: the caller's promise.
    unsafe {
        let sum = &mut *parts.0[0].cast::<f64>();
        if dtype == DType::F32 {
            let (from, out) = (lanes_of::<f32>(from, lanes), lanes_mut::<f32>(out, lanes));
            walk(out.iter_mut().zip(from), reverse, |(out, &x)| {
                *sum += x as f64;
                *out = *sum as f32;
            });
        } else {
            let (from, out) = (lanes_of::<f64>(from, lanes), lanes_mut::<f64>(out, lanes));
            let lost = &mut *parts.0[1].cast::<f64>();
            walk(out.iter_mut().zip(from), reverse, |(out, &x)| *out = add_exactly(sum, lost, x));
        }
    }
}

/// As [`sum`], for one element of each of `lanes` lines, whose carries are in `parts`.
///
/// # Safety
/// `from` and `out` point to `lanes` numbers of `dtype` (a float), apart from each other; `parts` has as many carries.
#[multiversion::multiversion(targets("x86_64+avx2+bmi2"))]
pub(super) unsafe fn sums(dtype: DType, from: *const u8, out: *mut u8, parts: Parts, lanes: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        let sums = lanes_mut::<f64>(parts.0[0], lanes);
        if dtype == DType::F32 {
            let (from, out) = (lanes_of::<f32>(from, lanes), lanes_mut::<f32>(out, lanes));
            for ((out, &x), sum) in out.iter_mut().zip(from).zip(sums) {
                *sum += x as f64;
                *out = *sum as f32;
            }
        } else {
            let (from, out) = (lanes_of::<f64>(from, lanes), lanes_mut::<f64>(out, lanes));
            let lost = lanes_mut::<f64>(parts.0[1], lanes);
            for (((out, &x), sum), lost) in out.iter_mut().zip(from).zip(sums).zip(lost) {
                *out = add_exactly(sum, lost, x);
            }
        }
    }
}

/// Adds `x` to `sum`, and the rounding error of this addition (by Knuth's exact formula) to `lost`. Returns the sum of
/// both.
#[inline(always)]
fn add_exactly(sum: &mut f64, lost: &mut f64, x: f64) -> f64 {
    let before = *sum;
    let next = before + x;
    let added = next - before;
    *lost += (before - (next - added)) + (x - added);
    *sum = next;
    let both = next + *lost;
    // If the sum is infinite, the error is NaN and is not used. If there is no error, adding it could change the sign
    // of a zero.
    if both.is_nan() || *lost == 0.0 { next } else { both }
}

/// A running fold of a line's block, in place of a copy of it: `values[i]` becomes the fold of `carry` and everything
/// up to `i` (from `i` on, if `reverse`); `carry` becomes that of the next block. Not for sums of floats, which [`sum`]
/// computes.
///
/// # Safety
/// `values` and `carry` point to `lanes` and one number of `dtype`.
pub(super) unsafe fn fold(monoid: Monoid, dtype: DType, values: *mut u8, carry: *mut u8, lanes: usize, reverse: bool) {
    // SAFETY: the caller's promise.
    unsafe {
        by_number!(dtype, T => {
            let values = lanes_mut::<T>(values, lanes).iter_mut();
            let carry = &mut *carry.cast::<T>();
            match monoid {
                Monoid::Sum => walk(values, reverse, |x| { *carry = carry.plus(*x); *x = *carry; }),
                Monoid::Prod => walk(values, reverse, |x| { *carry = carry.times(*x); *x = *carry; }),
                Monoid::MinInclude => walk(values, reverse, |x| { *carry = carry.min_include(*x); *x = *carry; }),
                Monoid::MinOmit => walk(values, reverse, |x| { *carry = carry.min_omit(*x); *x = *carry; }),
                Monoid::MaxInclude => walk(values, reverse, |x| { *carry = carry.max_include(*x); *x = *carry; }),
                Monoid::MaxOmit => walk(values, reverse, |x| { *carry = carry.max_omit(*x); *x = *carry; }),
                other => panic!("IR-5: there is no running {other:?}"),
            }
        })
    }
}

fn walk<I: DoubleEndedIterator>(items: I, reverse: bool, f: impl FnMut(I::Item)) {
    if reverse { items.rev().for_each(f) } else { items.for_each(f) }
}
