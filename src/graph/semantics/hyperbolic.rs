//! Hyperbolic functions, their inverses and the sigmoid: small arguments by polynomials or `log1p`, others by
//! exponentials.

use super::coefficients::SINH;
use super::exponential::{clamped, exp, exp_split, expm1_of_twice, scaled};
use super::lanes::{Bits, Float, horner};
use super::logarithm::log1p;

/// `exp(a) / 2`, which overflows later than `exp`.
#[inline(always)]
fn half_exp<F: Float>(a: F) -> F {
    let (y, n) = exp_split(clamped(a, F::lit(0.0), F::lit2(91.0, 712.0)), F::lit(0.0));
    scaled(y, n.minus(F::Bits::word(1)))
}

/// The hyperbolic sine.
#[inline(always)]
pub fn sinh<F: Float>(x: F) -> F {
    let a = x.magnitude();
    let z = a * a;
    let near = a + a * z * horner(z, &SINH);
    let half = half_exp(a);
    let far = half - F::lit(0.25) / half;
    let result = F::select(a.less(F::lit(1.0)), near, far).with_sign_of(x);
    F::select(x.is_nan(), x, result)
}

/// The hyperbolic cosine.
#[inline(always)]
pub fn cosh<F: Float>(x: F) -> F {
    let half = half_exp(x.magnitude());
    F::select(x.is_nan(), x, half + F::lit(0.25) / half)
}

/// The hyperbolic tangent: `e / (e + 1)` of half of `exp(2 |x|) - 1`.
#[inline(always)]
pub fn tanh<F: Float>(x: F) -> F {
    let one = F::lit(1.0);
    // Beyond the limit the result is 1.
    let (power, y) = expm1_of_twice(x.magnitude().lesser(F::lit2(10.0, 22.0)));
    let half = F::lit(0.5);
    let e = power * y + (power * half - half);
    // A loose division could yield more than 1. The code clamps both signs rather than the magnitude with the sign put
    // on, because Mesa 22 compiles the latter wrongly if x is the same in all invocations.
    let quotient = (e / (e + one)).with_sign_of(x).lesser(one);
    let result = -(-quotient).lesser(one);
    F::select(x.is_nan(), x, result)
}

/// `log1p(v)`, or `log(2 a)` where `v` would have overflowed.
#[inline(always)]
fn log1p_or_twice<F: Float>(a: F, v: F) -> F {
    let huge = a.more(F::lit2(1e18, 1e150));
    let result = log1p(F::select(huge, a, v));
    F::select(huge, result + F::lit(std::f64::consts::LN_2), result)
}

/// The inverse hyperbolic sine.
#[inline(always)]
pub fn asinh<F: Float>(x: F) -> F {
    let a = x.magnitude();
    let one = F::lit(1.0);
    let z = a * a;
    let v = a + z / (one + (one + z).root());
    F::select(x.is_nan(), x, log1p_or_twice(a, v).with_sign_of(x))
}

/// The inverse hyperbolic cosine.
#[inline(always)]
pub fn acosh<F: Float>(x: F) -> F {
    let one = F::lit(1.0);
    let t = x - one;
    let v = t + (t * (t + F::lit(2.0))).root();
    F::select(x.less(one) | x.is_nan(), F::nan(), log1p_or_twice(x, v))
}

/// The inverse hyperbolic tangent.
#[inline(always)]
pub fn atanh<F: Float>(x: F) -> F {
    let a = x.magnitude();
    let one = F::lit(1.0);
    let result = (F::lit(0.5) * log1p((a + a) / (one - a))).with_sign_of(x);
    // A tiny number is its own result, also where the driver would flush `a + a` to zero.
    let result = F::select(a.less(F::lit2(0.000244140625, 7.450580596923828e-9)), x, result);
    F::select(a.more(one) | x.is_nan(), F::nan(), result)
}

/// `1 / (1 + exp(-x))`.
#[inline(always)]
pub fn sigmoid<F: Float>(x: F) -> F {
    let one = F::lit(1.0);
    let t = exp(-x.magnitude());
    F::select(x.less(F::lit(0.0)), t, one) / (one + t)
}
