//! Powers, by a logarithm of twice the working precision; and the hypotenuse.

use super::coefficients::POW_LOG;
use super::exponential::{clamped, exp_limits, exp_split, ln2, scaled};
use super::lanes::{Float, horner};
use super::logarithm;

/// `a + b` and its rounding error, where `|a| >= |b|` or `a` is zero.
#[inline(always)]
pub(super) fn sum_of_ordered<F: Float>(a: F, b: F) -> (F, F) {
    let sum = (a + b).pinned(|| (a + a) + (b + b));
    (sum, b - (sum - a))
}

/// The natural logarithm of a positive finite `x` in two parts, to about one and a half times the precision.
#[inline(always)]
pub(super) fn log_pair<F: Float>(x: F) -> (F, F) {
    let (k, f) = logarithm::reduced(x);
    // s = f / (2 + f) in two parts; log(1 + f) = 2 atanh(s).
    let two = F::lit(2.0);
    let (d, d_lost) = sum_of_ordered(two, f);
    let d_high = d.high_half();
    // Each rest has the sign of the number from which it is left.
    let d_low = (d - d_high).pinned(|| d) + d_lost;
    let s_high = (f / d).high_half();
    let s_low = ((f - s_high * d_high).pinned(|| f) - s_high * d_low) / d;
    let s = s_high + s_low;
    // s^2 and s^3 in two parts each.
    let square = s_high * s_high;
    let square_high = square.high_half();
    let square_low = (square - square_high).pinned(|| square) + s_low * (s_high + s);
    let cube = s_high * square_high;
    let cube_low = s_high * square_low + s_low * s * s;
    // 2/3 s^3 in two parts, and the higher terms of the series.
    let (c_high, c_low) =
        (F::lit2(0.66650390625, 0.6666666567325592), F::lit2(0.00016276042151730508, 9.934107462565104e-9));
    let cube_high = cube.high_half();
    let third = cube_high * c_high;
    let z = s * s;
    let third_low = (cube_high * c_low + (cube - cube_high) * (c_high + c_low))
        + cube_low * (c_high + c_low)
        + s * z * z * horner(z, &POW_LOG);
    let (log, log_lost) = sum_of_ordered(two * s_high, third);
    let tail = log_lost + (two * s_low + third_low);
    let (ln2_high, ln2_low) = ln2::<F>();
    let (sum, sum_lost) = sum_of_ordered(k * ln2_high, log);
    sum_of_ordered(sum, sum_lost + (tail + k * ln2_low))
}

/// `y (high + low)` in two parts.
#[inline(always)]
pub(super) fn product_pair<F: Float>(y: F, high: F, low: F) -> (F, F) {
    let y_high = y.high_half();
    let y_low = y - y_high;
    let h_high = high.high_half();
    let h_low = (high - h_high).pinned(|| high) + low;
    let product = y_high * h_high;
    sum_of_ordered(product, (y_high * h_low + y_low * h_high) + y_low * h_low)
}

/// `a^b` for a positive finite `a`. If the logarithm of the result overflows, the result is zero or infinity.
#[inline(always)]
fn magnitude<F: Float>(a: F, b: F) -> F {
    let (high, low) = log_pair(a);
    let (p, p_low) = product_pair(b, high, low);
    let (least, greatest) = exp_limits::<F>();
    let inside = p.more(least) & p.less(greatest);
    // A product that overflowed has no low part. The sign of the result's logarithm is that of the factors.
    let sign = F::select(F::lit(1.0).with_sign_of(b).less(F::lit(0.0)), -high, high);
    let edge = F::select(sign.less(F::lit(0.0)), least, greatest);
    let p = F::select(inside, p, F::select(p.is_nan(), edge, clamped(p, least, greatest)));
    let (y, n) = exp_split(p, F::select(inside, p_low, F::lit(0.0)));
    scaled(y, n)
}

/// `x^y`. It is NaN for a negative number to a fractional power, and 1 for any number to the power 0 and for 1 to any
/// power.
#[inline(always)]
pub fn pow<F: Float>(x: F, y: F) -> F {
    let (zero, one) = (F::lit(0.0), F::lit(1.0));
    let a = x.magnitude();
    let whole = y.truncated().same(y);
    let half = y * F::lit(0.5);
    let odd = whole & !half.truncated().same(half);
    let ordinary = !(a.same(zero) | x.is_infinite() | x.is_nan());
    let result = magnitude(F::select(ordinary, a, one), y);
    // Zero, infinity and infinite exponents give either zero or infinity.
    let grows = a.more(one) ^ y.less(zero);
    let extreme = F::select(grows, F::infinity(), zero);
    let all_or_nothing = a.same(zero) | a.is_infinite() | (y.is_infinite() & !a.same(one));
    let result = F::select(all_or_nothing, extreme, F::select(y.is_infinite(), one, result));
    let behind = one.with_sign_of(x).less(zero);
    let result = F::select(behind & odd, -result, result);
    let undefined = x.less(zero) & !whole & !x.is_infinite();
    let result = F::select(undefined | x.is_nan() | y.is_nan(), F::nan(), result);
    F::select(y.same(zero) | x.same(one), one, result)
}

/// `sqrt(a^2 + b^2)`, whose intermediate results neither overflow nor underflow; infinite if one argument is.
#[inline(always)]
pub fn hypot<F: Float>(a: F, b: F) -> F {
    let (x, y) = (a.magnitude(), b.magnitude());
    let greater = F::select(x.less(y), y, x);
    let one = F::lit(1.0);
    // Powers of two and their inverses: 2^-65 and 2^100, or 2^-600 and 2^700.
    let huge = greater.more(F::lit2(9.223372036854776e18, 1e150));
    let tiny = greater.less(F::lit2(8.881784197001252e-16, 1e-120));
    let down =
        (F::lit2(2.710505431213761e-20, 2.409919865102884e-181), F::lit2(3.6893488147419103e19, 4.149515568880993e180));
    let up =
        (F::lit2(1.2676506002282294e30, 5.260135901548374e210), F::lit2(7.888609052210118e-31, 1.90109156629516e-211));
    let factor = F::select(huge, down.0, F::select(tiny, up.0, one));
    let inverse = F::select(huge, down.1, F::select(tiny, up.1, one));
    let (p, q) = (x * factor, y * factor);
    let result = (p * p + q * q).root() * inverse;
    let result = F::select(a.is_nan() | b.is_nan(), F::nan(), result);
    F::select(a.is_infinite() | b.is_infinite(), F::infinity(), result)
}
