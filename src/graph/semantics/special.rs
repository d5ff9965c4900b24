//! The error function and the gamma functions.

use super::coefficients::{ERF, ERFC_LOG, LGAMMA, STIRLING};
use super::exponential::{clamped, exp_split, scaled};
use super::lanes::{Bits, Float, horner};
use super::logarithm::log;
use super::power::{log_pair, product_pair, sum_of_ordered};
use super::trigonometric::{cosine, sine};

const PI: f64 = std::f64::consts::PI;

/// The error function.
#[inline(always)]
pub fn erf<F: Float>(x: F) -> F {
    let a = x.magnitude();
    let near = a * horner(a * a, &ERF);
    let (y, n) = exp_split(-horner(clamped(a, F::lit(1.0), F::lit2(4.0, 6.0)), &ERFC_LOG), F::lit(0.0));
    let far = F::lit(1.0) - scaled(y, n);
    let result = F::select(a.less(F::lit(1.0)), near, far).with_sign_of(x);
    F::select(x.is_nan(), x, result)
}

/// `sin(pi x)` for `|x|` below 2^21. A zero may have either sign.
#[inline(always)]
fn sin_pi<F: Float>(x: F) -> F {
    let n = x.nearest_small();
    let r = x - n;
    let a = r.magnitude();
    let pi = F::lit(PI);
    let value = F::select(a.more(F::lit(0.25)), cosine(pi * (F::lit(0.5) - a)), sine(pi * a));
    let odd = (n.small_to_bits() & F::Bits::word(1)).shift_left(F::MANTISSA + if F::WIDE { 11 } else { 8 });
    F::from_bits(value.with_sign_of(r).to_bits() ^ odd)
}

/// `log(gamma(z + delta))` in two parts for `z` from 2.5 and a tiny `delta`: `z (log(z) - 1) - log(z) / 2 +
/// log(2 pi) / 2`, Stirling's series, and the derivative times `delta`.
#[inline(always)]
fn log_gamma_pair<F: Float>(z: F, delta: F) -> (F, F) {
    let (high, low) = log_pair(z);
    // The greater part comes first in all of these sums, except below z = 6, where the loss is small enough.
    let (less_one, lost) = sum_of_ordered(high, F::lit(-1.0));
    let (p, p_low) = product_pair(z, less_one, low + lost);
    let half = F::lit(0.5);
    let (sum, lost) = sum_of_ordered(p, -half * high);
    let constant = F::lit2(0.9189385175704956, 0.9189385332046728);
    let constant_low = F::lit2(1.563417661998301e-8, -3.8782941580672414e-17);
    let (total, total_lost) = sum_of_ordered(sum, constant);
    let u = F::lit(1.0) / z;
    let series = u * horner(u * u, &STIRLING) + delta * (high - half * u);
    sum_of_ordered(total, ((total_lost + lost) + ((p_low - half * low) + constant_low)) + series)
}

/// The gamma function.
#[inline(always)]
pub fn gamma<F: Float>(x: F) -> F {
    let (zero, one, two, three) = (F::lit(0.0), F::lit(1.0), F::lit(2.0), F::lit(3.0));
    let negative = x.less(zero);
    // This computes gamma(|x|); the reflection derives negative arguments from it. Beyond the limits it over- and
    // underflows.
    let a = clamped(x.magnitude(), zero, F::lit2(47.5, 189.5));
    let small = a.less(three);
    // The sum is a magnitude, so that no compiler replaces `(a + 3) - 3` by a (SEM-2).
    let shifted = (a + three).magnitude();
    let delta = F::select(small, a - (shifted - three), zero);
    let (high, low) = log_gamma_pair(F::select(small, shifted, a), delta);
    let (y, n) = exp_split(high, low);
    let falling = F::select(small, a * (a + one) * (a + two), one);
    let positive = scaled(y / falling, n);
    // gamma(-a) = -pi / (a sin(pi a) gamma(a)), scaled last, since gamma(a) may overflow.
    let over = F::select(small, (a + one) * (a + two), one / a);
    let reflected = scaled(F::lit(-PI) / sin_pi(a) * (over / y), F::Bits::word(0).minus(n));
    // All numbers below the least one with a fraction are poles.
    let pole = negative & (x.round_down().same(x) | x.is_infinite());
    let result = F::select(negative, reflected, positive);
    let result = F::select(x.magnitude().less(F::lit2(1e-30, 1e-290)), one / x, result);
    let result = F::select(x.is_infinite(), F::infinity(), result);
    F::select(pole | x.is_nan(), F::nan(), result)
}

/// `log(|gamma(x)|)`.
#[inline(always)]
pub fn lgamma<F: Float>(x: F) -> F {
    let (zero, one) = (F::lit(0.0), F::lit(1.0));
    let negative = x.less(zero);
    let a = x.magnitude();
    // Near 1 and 2, a polynomial about 2 and the recurrence are used; the arguments of the polynomial's logarithm are
    // exact there.
    let (half, middle) = (F::lit(0.5), F::lit(1.5));
    let lowest = a.less(half);
    let lower = a.less(middle);
    let t = F::select(lowest, a, a - F::select(lower, one, F::lit(2.0)));
    let factor = F::select(lowest, a * (a + one), F::select(lower, a, one));
    let near = t * horner(clamped(t, -half, half), &LGAMMA) - log(factor);
    // For the next f32, the result rounds to infinity.
    let greatest = F::lit2(4.0850032e36, 2.556348163871691e305);
    let (high, low) = log_gamma_pair(clamped(a, F::lit(2.5), greatest), zero);
    let close = a.less(F::lit(2.5));
    let far = F::select(a.more(greatest), F::infinity(), high + low);
    let positive = F::select(close, near, far);
    // |gamma(-a) gamma(a)| = pi / (a |sin(pi a)|). The logarithms may nearly cancel, so they are subtracted in two
    // parts.
    let whole = a.round_down();
    let wave = sin_pi(clamped(a - whole, zero, one)).magnitude();
    let tiny = a.less(F::lit2(1e-9, 1e-18));
    let product = F::select(tiny | wave.same(zero) | a.more(greatest), one, a * wave);
    let (log_high, log_low) = log_pair(F::lit(PI) / product);
    let (high, low) = (F::select(close, near, high), F::select(close, zero, low));
    let reflected = (log_high - high) + (log_low - low);
    let result = F::select(negative & !tiny, reflected, positive);
    let pole = (negative & whole.same(a)) | x.same(zero) | x.is_infinite();
    F::select(x.is_nan(), x, F::select(pole, F::infinity(), result))
}
