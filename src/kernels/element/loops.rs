//! The loops over host blocks. They are compiled once for each instruction set, and chosen when they are called.
//!
//! Must hold: ELEM-2: the functions that they call are `#[inline(always)]`, so that they are compiled for the loop's
//! instruction set and vectorised.

use multiversion::multiversion;

/// A function of one element.
pub(crate) trait Unary<A, R> {
    /// The result for one element.
    fn eval(a: A) -> R;
}

/// A function of two elements.
pub(crate) trait Binary<A, R> {
    /// The result for a pair.
    fn eval(a: A, b: A) -> R;
}

/// A function of three elements, the first of which may have another type.
pub(crate) trait Ternary<M, A, R> {
    /// The result for a triple.
    fn eval(m: M, a: A, b: A) -> R;
}

/// `out[i] = f(a[i])`.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
pub(crate) fn unary<A: Copy, R, O: Unary<A, R>>(a: &[A], out: &mut [R]) {
    for (result, &x) in out.iter_mut().zip(a) {
        *result = O::eval(x);
    }
}

/// Whether `f(a[i])` is true for any element.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
pub(crate) fn any<A: Copy, O: Unary<A, bool>>(a: &[A]) -> bool {
    let mut found = false;
    for &x in a {
        found |= O::eval(x);
    }
    found
}

/// `out[i] = f(a[i], b[i])`. An argument of one element is used for all results.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
pub(crate) fn binary<A: Copy, R, O: Binary<A, R>>(a: &[A], b: &[A], out: &mut [R]) {
    match (a, b) {
        ([x], [y]) => out.iter_mut().for_each(|result| *result = O::eval(*x, *y)),
        ([x], _) => {
            for (result, &y) in out.iter_mut().zip(b) {
                *result = O::eval(*x, y);
            }
        }
        (_, [y]) => {
            for (result, &x) in out.iter_mut().zip(a) {
                *result = O::eval(x, *y);
            }
        }
        _ => {
            for ((result, &x), &y) in out.iter_mut().zip(a).zip(b) {
                *result = O::eval(x, y);
            }
        }
    }
}

/// Whether `f(a[i], b[i])` is true for any pair.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
pub(crate) fn any_pair<A: Copy, O: Binary<A, bool>>(a: &[A], b: &[A]) -> bool {
    let mut found = false;
    for (&x, &y) in a.iter().zip(b) {
        found |= O::eval(x, y);
    }
    found
}

/// `out[i] = f(m[i], a[i], b[i])`.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
pub(crate) fn ternary<M: Copy, A: Copy, R, O: Ternary<M, A, R>>(m: &[M], a: &[A], b: &[A], out: &mut [R]) {
    for (((result, &z), &x), &y) in out.iter_mut().zip(m).zip(a).zip(b) {
        *result = O::eval(z, x, y);
    }
}
