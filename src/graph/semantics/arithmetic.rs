//! Exact and correctly rounded float ops: signs, rounding, comparisons, choices, remainders.

use super::lanes::{Bits, Float, Lane, Mask};

/// `-x`.
#[inline(always)]
pub fn neg<F: Float>(x: F) -> F {
    -x
}

/// `|x|`.
#[inline(always)]
pub fn abs<F: Float>(x: F) -> F {
    x.magnitude()
}

/// -1, 0 or 1; zeros and NaN stay as they are.
#[inline(always)]
pub fn sign<F: Float>(x: F) -> F {
    F::select(x.is_nan() | x.same(F::lit(0.0)), x, F::lit(1.0).with_sign_of(x))
}

/// The square root; NaN of negative numbers.
#[inline(always)]
pub fn sqrt<F: Float>(x: F) -> F {
    F::select(x.less(F::lit(0.0)), F::nan(), x.root())
}

/// `x * x`.
#[inline(always)]
pub fn square<F: Float>(x: F) -> F {
    x * x
}

/// `1 / x`.
#[inline(always)]
pub fn reciprocal<F: Float>(x: F) -> F {
    F::lit(1.0) / x
}

/// The greatest integer not above `x`.
#[inline(always)]
pub fn floor<F: Float>(x: F) -> F {
    x.round_down()
}

/// The least integer not below `x`.
#[inline(always)]
pub fn ceil<F: Float>(x: F) -> F {
    x.round_up()
}

/// The nearest integer, half away from zero.
#[inline(always)]
pub fn round<F: Float>(x: F) -> F {
    let whole = x.truncated();
    let away = (x - whole).magnitude().at_least(F::lit(0.5));
    F::select(away, whole + F::lit(1.0).with_sign_of(x), whole)
}

/// The integer next to zero.
#[inline(always)]
pub fn fix<F: Float>(x: F) -> F {
    x.truncated()
}

/// Whether `x` is NaN.
#[inline(always)]
pub fn isnan<F: Float>(x: F) -> F::Mask {
    x.is_nan()
}

/// Whether `x` is an infinity.
#[inline(always)]
pub fn isinf<F: Float>(x: F) -> F::Mask {
    x.is_infinite()
}

/// Whether `x` is neither.
#[inline(always)]
pub fn isfinite<F: Float>(x: F) -> F::Mask {
    !(x.is_nan() | x.is_infinite())
}

/// `a + b`.
#[inline(always)]
pub fn add<F: Float>(a: F, b: F) -> F {
    a + b
}

/// `a - b`.
#[inline(always)]
pub fn sub<F: Float>(a: F, b: F) -> F {
    a - b
}

/// `a * b`.
#[inline(always)]
pub fn mul<F: Float>(a: F, b: F) -> F {
    a * b
}

/// `a / b`.
#[inline(always)]
pub fn div<F: Float>(a: F, b: F) -> F {
    a / b
}

/// The lesser of two; a number wins over NaN.
#[inline(always)]
pub fn min<F: Float>(a: F, b: F) -> F {
    F::select(b.less(a) | a.is_nan(), b, a)
}

/// The greater of two; a number wins over NaN.
#[inline(always)]
pub fn max<F: Float>(a: F, b: F) -> F {
    F::select(a.less(b) | a.is_nan(), b, a)
}

/// `x` no less than `low` and no greater than `high`; NaN stays NaN, and a bound that is NaN is ignored.
#[inline(always)]
pub fn clamp<F: Float>(x: F, low: F, high: F) -> F {
    let raised = F::select(x.less(low), low, x);
    F::select(x.is_nan(), x, F::select(raised.more(high), high, raised))
}

/// `a == b`.
#[inline(always)]
pub fn eq<L: Lane>(a: L, b: L) -> L::Mask {
    a.same(b)
}

/// The negation of `a == b`: true where one is NaN.
#[inline(always)]
pub fn ne<L: Lane>(a: L, b: L) -> L::Mask {
    !a.same(b)
}

/// `a < b`.
#[inline(always)]
pub fn lt<L: Lane>(a: L, b: L) -> L::Mask {
    a.less(b)
}

/// `a <= b`.
#[inline(always)]
pub fn le<L: Lane>(a: L, b: L) -> L::Mask {
    a.at_most(b)
}

/// `a > b`.
#[inline(always)]
pub fn gt<L: Lane>(a: L, b: L) -> L::Mask {
    a.more(b)
}

/// `a >= b`.
#[inline(always)]
pub fn ge<L: Lane>(a: L, b: L) -> L::Mask {
    a.at_least(b)
}

/// Logical not.
#[inline(always)]
pub fn not<M: Mask>(a: M) -> M {
    !a
}

/// Logical and.
#[inline(always)]
pub fn and<M: Mask>(a: M, b: M) -> M {
    a & b
}

/// Logical or.
#[inline(always)]
pub fn or<M: Mask>(a: M, b: M) -> M {
    a | b
}

/// Exclusive or.
#[inline(always)]
pub fn xor<M: Mask>(a: M, b: M) -> M {
    a ^ b
}

/// Whether the quotient is too great for [`rem`] and [`modulo`], or the divisor is zero.
#[inline(always)]
pub fn remainder_is_long<F: Float>(a: F, b: F) -> F::Mask {
    a.magnitude().at_least(b.magnitude() * F::lit2(1024.0, 16777216.0))
}

/// `|a| - trunc(|a| / |b|) |b|` and `|b|`, both times a power of two, and the inverse of this power. The remainder is
/// exact where the quotient is below 2^10 (f32) or 2^24 (f64).
#[inline(always)]
fn short_remainder<F: Float>(a: F, b: F) -> (F, F, F) {
    let (one, a, b) = (F::lit(1.0), a.magnitude(), b.magnitude());
    // Divisors beyond 2^126 (f32) have no inverse on a GPU, because Vulkan then bounds no error. The halves of tiny
    // divisors, and their remainders, are subnormal, so that a GPU may take them for zero. Powers of two scale both to
    // a range where neither happens.
    let huge = b.more(F::lit2(4.2535296e37, 1e300));
    let tiny = b.less(F::lit2(7.888609052210118e-31, 1e-270));
    let up = F::lit2(16777216.0, 1.2676506002282294e30);
    let down = F::lit2(5.960464477539063e-8, 7.888609052210118e-31);
    let scale = F::select(huge, F::lit(0.25), F::select(tiny, up, one));
    let back = F::select(huge, F::lit(4.0), F::select(tiny, down, one));
    let (a, b) = (a * scale, b * scale);
    // The quotient is raised a little, so that an inexact division never yields too small a quotient. With a quotient
    // that is too great by one, the remainder is negative but exact; with one that is too small, it might need a bit
    // too many.
    let quotient = (a / b * F::lit2(1.0 + 1.0 / 1048576.0, 1.0 + 1.0 / 562949953421312.0)).truncated();
    // If the quotient is 1, the first difference is exact only with the whole divisor.
    let high = F::select(quotient.less(F::lit(2.0)), b, b.high_half());
    let rest = (a - quotient * high) - quotient * (b - high);
    (F::select(rest.less(F::lit(0.0)), rest + b, rest), b, back)
}

/// The remainder with the dividend's sign.
#[inline(always)]
pub fn rem<F: Float>(a: F, b: F) -> F {
    let (rest, _, back) = short_remainder(a, b);
    // If `|a|` is less than `|b|`, the remainder is `a`, also for an infinite divisor (0 times infinity would be NaN).
    F::select(a.magnitude().less(b.magnitude()), a, (rest * back).with_sign_of(a))
}

/// [`rem`] for any quotient; NaN where `b` is zero.
#[inline(always)]
pub fn rem_long<F: Float>(a: F, b: F) -> F {
    let bad = a.is_nan() | b.is_nan() | a.is_infinite() | b.same(F::lit(0.0));
    let one = F::lit(1.0);
    let exact = F::select(bad, one, a).exact_remainder(F::select(bad, one, b));
    F::select(bad, F::nan(), exact.with_sign_of(a))
}

/// The remainder with the divisor's sign.
#[inline(always)]
pub fn modulo<F: Float>(a: F, b: F) -> F {
    let zero = F::lit(0.0);
    let (rest, divisor, back) = short_remainder(a, b);
    let whole = a.magnitude().less(b.magnitude());
    let plain = F::select(whole, a, (rest * back).with_sign_of(a));
    // The remainder is moved by the divisor before it is scaled back, because the remainder itself may be subnormal.
    let moved = F::select(whole, a + b, (divisor - rest) * back).with_sign_of(b);
    let moved = F::select(a.less(zero) ^ b.less(zero), moved, plain);
    F::select(F::select(whole, a, rest).same(zero), zero.with_sign_of(b), moved)
}

/// [`modulo`] for any quotient; `a` where `b` is zero.
#[inline(always)]
pub fn modulo_long<F: Float>(a: F, b: F) -> F {
    F::select(b.same(F::lit(0.0)), a, signed_like_divisor(rem_long(a, b), b))
}

/// The remainder `rest`, moved by the divisor `b` if their signs differ. The signs are compared by bits, because a GPU
/// that flushes subnormals would compare such a remainder as zero.
#[inline(always)]
fn signed_like_divisor<F: Float>(rest: F, b: F) -> F {
    let zero = F::lit(0.0);
    let negative = F::lit(1.0).with_sign_of(rest).less(zero);
    let moved = F::select(negative ^ b.less(zero), rest + b, rest);
    F::select(rest.to_bits().shift_left(1).same(F::Bits::word(0)), rest.with_sign_of(b), moved)
}

/// `2^n` for an integer `n` in two's complement whose power is a normal number.
#[inline(always)]
pub fn power_of_two<F: Float>(n: F::Bits) -> F {
    F::from_bits(n.plus(F::Bits::word(F::BIAS)).shift_left(F::MANTISSA))
}
