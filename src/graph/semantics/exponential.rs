//! Exponentials: the argument is cut into a multiple of ln(2) and a rest, whose exponential is a polynomial.

use super::arithmetic::power_of_two;
use super::coefficients::{EXP, EXP_OF_TWICE, EXP2};
use super::lanes::{Bits, Float, horner};

/// ln(2) in two parts: the product of the first with an exponent is exact.
#[inline(always)]
pub(super) fn ln2<F: Float>() -> (F, F) {
    (F::lit2(0.693145751953125, 0.6931471805592082), F::lit2(1.428606765330187e-6, 7.371002565167799e-13))
}

/// Clamps `x` to bounds beyond which `exp` is zero or infinity.
#[inline(always)]
pub(super) fn clamped<F: Float>(x: F, low: F, high: F) -> F {
    F::select(x.less(low), low, F::select(x.more(high), high, x))
}

/// `y * 2^n`, rounded once; n may reach about twice the type's range of exponents.
#[inline(always)]
pub(super) fn scaled<F: Float>(y: F, n: F::Bits) -> F {
    let half = n.shift_right_signed(1);
    y * power_of_two(half) * power_of_two(n.minus(half))
}

/// `x = n ln(2) + r` with `|r|` at most `ln(2) / 2`: n as a float and r, to which `low` is added.
#[inline(always)]
fn reduced<F: Float>(x: F, low: F) -> (F, F) {
    let (n, r) = split(x);
    (n, r + low)
}

/// `x = n ln(2) + r` with `|r|` at most `ln(2) / 2`.
#[inline(always)]
fn split<F: Float>(x: F) -> (F, F) {
    let (ln2_high, ln2_low) = ln2::<F>();
    let n = (x * F::lit(std::f64::consts::LOG2_E)).nearest_small();
    (n, x.less_part(n, ln2_high).less_part(n, ln2_low))
}

/// `x = n ln(2) / 2 + r` with `|r|` at most `ln(2) / 4`: 2^n, and half of `exp(2 r) - 1`.
#[inline(always)]
pub(super) fn expm1_of_twice<F: Float>(x: F) -> (F, F) {
    let n = (x * F::lit(2.0 * std::f64::consts::LOG2_E)).nearest_small();
    let r = x.less_part(n, F::lit2(0.3465728759765625, 0.3465735902796041));
    let r = r.less_part(n, F::lit2(7.143033826650935e-7, 3.6855012835838995e-13));
    let power = F::from_bits(n.low_bits_plus(F::BIAS as f64).shift_left(F::MANTISSA));
    (power, r + r * r * horner(r, &EXP_OF_TWICE))
}

/// `exp(high + low)` as `(y, n)`, which is `y * 2^n`; `low` is small beside 1, `high` within clamps.
#[inline(always)]
pub(super) fn exp_split<F: Float>(high: F, low: F) -> (F, F::Bits) {
    let (n, r) = reduced(high, low);
    let y = F::lit(1.0) + (r + r * r * horner(r, &EXP));
    (y, n.small_to_bits())
}

/// The clamps of `exp`: beyond them it is zero or infinity.
#[inline(always)]
pub(super) fn exp_limits<F: Float>() -> (F, F) {
    (F::lit2(-104.0, -746.0), F::lit2(89.0, 710.0))
}

/// Whether `exp(x)` may leave the range of normal numbers, or x is NaN.
#[inline(always)]
pub fn exp_is_far<F: Float>(x: F) -> F::Mask {
    x.is_beyond(if F::WIDE { 708.0 } else { 87.0 })
}

/// `e^x` where [`exp_is_far`] does not hold.
#[inline(always)]
pub fn exp_near<F: Float>(x: F) -> F {
    let (n, r) = split(x);
    let one = F::lit(1.0);
    let y = one + r * (one + r * horner(r, &EXP));
    // The exponent is added to the bits in place: y is about 1, and the result is a normal number.
    F::from_bits(y.to_bits().plus(n.low_bits_plus(0.0).shift_left(F::MANTISSA)))
}

/// `e^x`.
#[inline(always)]
pub fn exp<F: Float>(x: F) -> F {
    let (low, high) = exp_limits::<F>();
    let (y, n) = exp_split(clamped(x, low, high), F::lit(0.0));
    F::select(x.is_nan(), x, scaled(y, n))
}

/// `e^x - 1`.
#[inline(always)]
pub fn expm1<F: Float>(x: F) -> F {
    let (low, high) = (F::lit2(-18.0, -40.0), F::lit2(89.0, 710.0));
    let (n, r) = reduced(clamped(x, low, high), F::lit(0.0));
    let y = r + r * r * horner(r, &EXP);
    // The code computes half of the result, because 2^n itself may overflow: 2^(n-1) y + (2^(n-1) - 1/2).
    let power = power_of_two::<F>(n.small_to_bits().minus(F::Bits::word(1)));
    let result = F::lit(2.0) * (power * y + (power - F::lit(0.5)));
    let tiny = x.magnitude().less(F::lit2(2.9802322387695312e-8, 5.551115123125783e-17));
    F::select(tiny | x.is_nan(), x, result)
}

/// `2^x`.
#[inline(always)]
pub fn exp2<F: Float>(x: F) -> F {
    let x_in = clamped(x, F::lit2(-151.0, -1077.0), F::lit2(129.0, 1025.0));
    let n = x_in.nearest_small();
    let r = x_in - n;
    let y = F::lit(1.0) + r * horner(r, &EXP2);
    F::select(x.is_nan(), x, scaled(y, n.small_to_bits()))
}
