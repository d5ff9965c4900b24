//! Logarithms: the argument is `2^k (1 + f)` with `1 + f` between sqrt(1/2) and sqrt(2).

use super::coefficients::{LOG, LOG_S};
use super::exponential::ln2;
use super::lanes::{Bits, Float, horner};

/// `(k, f)` of a positive, normal `x`.
#[inline(always)]
fn reduced_normal<F: Float>(x: F) -> (F, F) {
    let bits = x.to_bits();
    let sqrt_half = F::Bits::word(if F::WIDE { 0x3fe6_a09e_667f_3bcd } else { 0x3f35_04f3 });
    let k = bits.minus(sqrt_half).shift_right_signed(F::MANTISSA);
    let m = F::from_bits(bits.minus(k.shift_left(F::MANTISSA)));
    (F::small_from_bits(k), m - F::lit(1.0))
}

/// `(k, f)` of a positive `x`, which may be subnormal.
#[inline(always)]
pub(super) fn reduced<F: Float>(x: F) -> (F, F) {
    let tiny = x.less(F::lit2(1.1754943508222875e-38, 2.2250738585072014e-308));
    let (k, f) = reduced_normal(F::select(tiny, x * F::lit2(33554432.0, 18014398509481984.0), x));
    (F::select(tiny, k - F::lit2(25.0, 54.0), k), f)
}

/// `(f^2 / 2, t)` with `log(1 + f) = f - f^2 / 2 + t`.
#[inline(always)]
fn tail<F: Float>(f: F) -> (F, F) {
    let half_square = F::lit(0.5) * f * f;
    let rest = if F::WIDE {
        let s = f / (F::lit(2.0) + f);
        let z = s * s;
        s * (half_square + z * horner(z, &LOG_S))
    } else {
        f * (f * f) * horner(f, &LOG)
    };
    (half_square, rest)
}

/// Completes `result`, which holds for positive finite numbers: -inf for 0, NaN below 0; infinity and NaN stay as they
/// are.
#[inline(always)]
fn completed<F: Float>(x: F, result: F) -> F {
    let zero = F::lit(0.0);
    let result = F::select(x.same(zero), -F::infinity(), result);
    let result = F::select(x.less(zero), F::nan(), result);
    F::select(x.is_nan() | (x.is_infinite() & x.more(zero)), x, result)
}

/// `log(2^k (1 + f)) + c`, for a small `c`.
#[inline(always)]
fn joined<F: Float>(k: F, f: F, c: F) -> F {
    let (ln2_high, ln2_low) = ln2::<F>();
    let (half_square, rest) = tail(f);
    k * ln2_high - ((half_square - (rest + (k * ln2_low + c))) - f)
}

/// The natural logarithm of a positive, normal number.
#[inline(always)]
pub(super) fn log_of_normal<F: Float>(x: F) -> F {
    let (k, f) = reduced_normal(x);
    joined(k, f, F::lit(0.0))
}

/// The natural logarithm.
#[inline(always)]
pub fn log<F: Float>(x: F) -> F {
    let (k, f) = reduced(x);
    completed(x, joined(k, f, F::lit(0.0)))
}

/// `log(1 + x)`.
#[inline(always)]
pub fn log1p<F: Float>(x: F) -> F {
    let one = F::lit(1.0);
    let sum = one + x;
    // The magnitude is the sum itself for `x` from -1 on. It keeps compilers from replacing `(1 + x) - 1` by x (SEM-2).
    let u = sum.magnitude();
    let (k, f) = reduced_normal(u);
    // The part of the sum that rounding lost.
    let lost = F::select(x.more(one), one - (u - x), x - (u - one));
    let result = joined(k, f, lost / u);
    let tiny = x.magnitude().less(F::lit2(2.9802322387695312e-8, 5.551115123125783e-17));
    F::select(tiny, x, completed(sum, result))
}

/// `log_b(x)`. `scale` is `1 / ln(b)` and `unit` is `log_b(2)`, each in two parts, of which the first multiplies
/// exactly.
#[inline(always)]
fn to_base<F: Float>(x: F, scale: (F, F), unit: (F, F)) -> F {
    let (k, f) = reduced(x);
    let (half_square, rest) = tail(f);
    let high = (f - half_square).high_half();
    let low = ((f - high) - half_square) + rest;
    let whole = k * unit.0;
    let part = high * scale.0;
    let sum = (whole + part).pinned(|| (whole + whole) + (part + part));
    let lost = (whole - sum) + part;
    let small = ((low + high) * scale.1 + low * scale.0) + k * unit.1;
    completed(x, sum + (small + lost))
}

/// The logarithm to base 2.
#[inline(always)]
pub fn log2<F: Float>(x: F) -> F {
    let scale = (F::lit2(1.4423828125, 1.4426950216293335), F::lit2(0.00031222839606925845, 1.9259629911266175e-8));
    to_base(x, scale, (F::lit(1.0), F::lit(0.0)))
}

/// The logarithm to base 10.
#[inline(always)]
pub fn log10<F: Float>(x: F) -> F {
    let scale = (F::lit2(0.4342041015625, 0.4342944771051407), F::lit2(9.038033749675378e-5, 4.798111141615973e-9));
    let unit = (F::lit2(0.301025390625, 0.30102999566361177), F::lit2(4.605039066518657e-6, 3.694239077158931e-13));
    to_base(x, scale, unit)
}
