//! Functions of complex numbers, with C's branch cuts and C's treatment of infinities and signed zeros.
//!
//! `num-complex` has most of them, but uses the polar form even where that costs digits (`sqrt(3+4i)` must be 2+1i).

use num_complex::Complex64;
use std::f64::consts::{FRAC_PI_2, LN_2, LN_10, PI};

/// Makes a complex number.
pub(crate) fn c(re: f64, im: f64) -> Complex64 {
    Complex64::new(re, im)
}

/// Returns a product. Infinite factors give an infinite product, as in C.
pub(crate) fn mul(a: Complex64, b: Complex64) -> Complex64 {
    let z = c(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
    if !z.re.is_nan() || !z.im.is_nan() {
        return z;
    }
    let infinite = |z: Complex64| z.re.is_infinite() || z.im.is_infinite();
    if !infinite(a) && !infinite(b) {
        return z;
    }
    let boxed = |z: Complex64| {
        let unit = |x: f64| (if x.is_infinite() { 1.0f64 } else { 0.0 }).copysign(x);
        if infinite(z) { c(unit(z.re), unit(z.im)) } else { z }
    };
    let clean = |z: Complex64| {
        let part = |x: f64| if x.is_nan() { 0.0f64.copysign(x) } else { x };
        c(part(z.re), part(z.im))
    };
    let (a, b) = (clean(boxed(a)), clean(boxed(b)));
    c(f64::INFINITY * (a.re * b.re - a.im * b.im), f64::INFINITY * (a.re * b.im + a.im * b.re))
}

/// Returns a quotient, scaled by the greater part of the divisor so that no intermediate result overflows.
pub(crate) fn div(a: Complex64, b: Complex64) -> Complex64 {
    let z = if b.re.abs() < b.im.abs() {
        let ratio = b.re / b.im;
        let d = b.re * ratio + b.im;
        c((a.re * ratio + a.im) / d, (a.im * ratio - a.re) / d)
    } else {
        let ratio = b.im / b.re;
        let d = b.im * ratio + b.re;
        c((a.im * ratio + a.re) / d, (a.im - a.re * ratio) / d)
    };
    if !z.re.is_nan() || !z.im.is_nan() {
        return z;
    }
    let finite = |z: Complex64| z.re.is_finite() && z.im.is_finite();
    if b.re == 0.0 && b.im == 0.0 && (!a.re.is_nan() || !a.im.is_nan()) {
        let infinity = f64::INFINITY.copysign(b.re);
        return c(infinity * a.re, infinity * a.im);
    }
    if (a.re.is_infinite() || a.im.is_infinite()) && finite(b) {
        let unit = |x: f64| (if x.is_infinite() { 1.0f64 } else { 0.0 }).copysign(x);
        let (x, y) = (unit(a.re), unit(a.im));
        return c(f64::INFINITY * (x * b.re + y * b.im), f64::INFINITY * (y * b.re - x * b.im));
    }
    if (b.re.is_infinite() || b.im.is_infinite()) && finite(a) {
        let unit = |x: f64| (if x.is_infinite() { 1.0f64 } else { 0.0 }).copysign(x);
        let (x, y) = (unit(b.re), unit(b.im));
        return c(0.0 * (a.re * x + a.im * y), 0.0 * (a.im * x - a.re * y));
    }
    z
}

/// The magnitude, without overflow.
pub(crate) fn abs(z: Complex64) -> f64 {
    z.re.hypot(z.im)
}

/// The angle.
pub(crate) fn arg(z: Complex64) -> f64 {
    z.im.atan2(z.re)
}

/// `r (cos a + i sin a)`.
pub(crate) fn polar(r: f64, angle: f64) -> Complex64 {
    let (s, k) = angle.sin_cos();
    c(r * k, r * s)
}

/// The root in the right half plane.
pub(crate) fn sqrt(z: Complex64) -> Complex64 {
    let (x, y) = (z.re, z.im);
    if y.is_infinite() {
        return c(f64::INFINITY, y);
    }
    if x.is_infinite() {
        let nan = if y.is_nan() { y } else { 0.0 };
        return if x < 0.0 { c(nan.abs(), f64::INFINITY.copysign(y)) } else { c(x, nan.copysign(y)) };
    }
    if x.is_nan() || y.is_nan() {
        return c(f64::NAN, f64::NAN);
    }
    if y == 0.0 {
        return if x < 0.0 { c(0.0, (-x).sqrt().copysign(y)) } else { c(x.sqrt().abs(), 0.0f64.copysign(y)) };
    }
    if x == 0.0 {
        let r = (0.5 * y.abs()).sqrt();
        return c(r, r.copysign(y));
    }
    // The number is scaled if its magnitude would overflow or lose bits.
    let scale: i32 = if x.abs().max(y.abs()) > f64::MAX / 4.0 {
        2
    } else if x.abs().max(y.abs()) < f64::MIN_POSITIVE * 4.0 {
        -54
    } else {
        0
    };
    let (x, y) = (libm::scalbn(x, -scale), libm::scalbn(y, -scale));
    let d = x.hypot(y);
    let (r, s) = if x > 0.0 {
        let r = (0.5 * (d + x)).sqrt();
        (r, 0.5 * (y / r))
    } else {
        let s = (0.5 * (d - x)).sqrt();
        ((0.5 * (y / s)).abs(), s)
    };
    let back = scale / 2;
    c(libm::scalbn(r, back), libm::scalbn(s.abs(), back).copysign(y))
}

/// e to the power z.
pub(crate) fn exp(z: Complex64) -> Complex64 {
    if z.im == 0.0 {
        return c(z.re.exp(), z.im);
    }
    if z.re == f64::NEG_INFINITY && !z.im.is_finite() {
        return c(0.0, 0.0);
    }
    let r = z.re.exp();
    let (s, k) = z.im.sin_cos();
    if r.is_infinite() && z.re.is_finite() {
        // The product with a small sine may be finite.
        let r = (z.re / 2.0).exp();
        return c(r * k * r, r * s * r);
    }
    c(r * k, r * s)
}

/// The natural logarithm, with the angle in (-pi, pi].
pub(crate) fn ln(z: Complex64) -> Complex64 {
    c(ln_abs(z), arg(z))
}

/// The logarithm of the magnitude, exact near 1.
fn ln_abs(z: Complex64) -> f64 {
    let (x, y) = (z.re.abs().max(z.im.abs()), z.re.abs().min(z.im.abs()));
    if x > 0.5 && x < 2.0 {
        // This is |z|^2 - 1 without cancellation.
        return 0.5 * ((x - 1.0) * (x + 1.0) + y * y).ln_1p();
    }
    abs(z).ln()
}

/// The logarithm to base 2.
pub(crate) fn log2(z: Complex64) -> Complex64 {
    let w = ln(z);
    c(abs(z).log2(), w.im / LN_2)
}

/// The logarithm to base 10.
pub(crate) fn log10(z: Complex64) -> Complex64 {
    c(abs(z).log10(), arg(z) / LN_10)
}

/// `ln(1 + z)`, exact near 0.
pub(crate) fn ln_1p(z: Complex64) -> Complex64 {
    let (r, i) = (z.re, z.im);
    let u = 2.0 * r + r * r + i * i;
    if (u / (1.0 + (u + 1.0).sqrt())).abs() < 0.5 {
        return c(0.5 * u.ln_1p(), i.atan2(1.0 + r));
    }
    ln(c(1.0 + r, i))
}

/// `exp(z) - 1`, exact near 0.
pub(crate) fn exp_m1(z: Complex64) -> Complex64 {
    let (s, k) = z.im.sin_cos();
    let half = (z.im / 2.0).sin();
    let e = z.re.exp_m1();
    c(e * k - 2.0 * half * half, (e + 1.0) * s)
}

/// The sine.
pub(crate) fn sin(z: Complex64) -> Complex64 {
    let w = sinh(c(-z.im, z.re));
    c(w.im, -w.re)
}

/// The cosine.
pub(crate) fn cos(z: Complex64) -> Complex64 {
    cosh(c(-z.im, z.re))
}

/// The tangent.
pub(crate) fn tan(z: Complex64) -> Complex64 {
    let w = tanh(c(-z.im, z.re));
    c(w.im, -w.re)
}

/// The hyperbolic sine.
pub(crate) fn sinh(z: Complex64) -> Complex64 {
    let (s, k) = z.im.sin_cos();
    if z.im == 0.0 {
        return c(z.re.sinh(), z.im);
    }
    c(part(z.re.sinh(), k), part(z.re.cosh(), s))
}

/// The hyperbolic cosine.
pub(crate) fn cosh(z: Complex64) -> Complex64 {
    let (s, k) = z.im.sin_cos();
    if z.im == 0.0 {
        return c(z.re.cosh(), 0.0f64.copysign(z.re) * z.im);
    }
    c(part(z.re.cosh(), k), part(z.re.sinh(), s))
}

/// Returns a product in which zero times infinity is zero.
fn part(x: f64, y: f64) -> f64 {
    if x == 0.0 && !y.is_finite() { x } else { x * y }
}

/// The hyperbolic tangent.
pub(crate) fn tanh(z: Complex64) -> Complex64 {
    if z.re.abs() > 22.0 {
        let (s, k) = z.im.sin_cos();
        let small = if z.im.is_finite() { 4.0 * s * k * (-2.0 * z.re.abs()).exp() } else { 0.0 };
        return c(1.0f64.copysign(z.re), small);
    }
    if z.im == 0.0 {
        return c(z.re.tanh(), z.im);
    }
    // By the tangent t of the imaginary part: (sinh x cosh x (1 + t^2) + i t) / (1 + sinh^2 x (1 + t^2)).
    let t = z.im.tan();
    let beta = 1.0 + t * t;
    let s = z.re.sinh();
    let rho = (1.0 + s * s).sqrt();
    if t.is_infinite() {
        return c(rho / s, 1.0 / t);
    }
    let d = 1.0 + beta * s * s;
    c(beta * rho * s / d, t / d)
}

/// The inverse hyperbolic sine.
pub(crate) fn asinh(z: Complex64) -> Complex64 {
    let w = asin_continued(c(-z.im, z.re));
    c(w.im, -w.re)
}

/// Returns the inverse sine. On the real axis beyond 1 it takes its value from the other side of the cut, as Octave
/// does.
pub(crate) fn asin(z: Complex64) -> Complex64 {
    let w = asin_continued(z);
    if z.im == 0.0 && z.re > 1.0 { w.conj() } else { w }
}

/// Returns the inverse sine by roots of 1 - z and 1 + z, which keeps the digits near the branch points.
fn asin_continued(z: Complex64) -> Complex64 {
    if z.re == 0.0 && z.im.is_finite() {
        return c(z.re, z.im.asinh());
    }
    if is_large(z) {
        let w = ln_double(z);
        let re = z.re.abs().atan2(z.im.abs());
        return c(re.copysign(z.re), w.copysign(z.im));
    }
    let (minus, plus) = (sqrt(c(1.0 - z.re, -z.im)), sqrt(c(1.0 + z.re, z.im)));
    let re = z.re.atan2((minus * plus).re);
    let im = (minus.conj() * plus).im.asinh();
    c(re, im)
}

/// Returns the inverse cosine. On the real axis beyond 1 it takes its value from the other side of the cut, as Octave
/// does.
pub(crate) fn acos(z: Complex64) -> Complex64 {
    let w = acos_continued(z);
    if z.im == 0.0 && z.re > 1.0 { w.conj() } else { w }
}

fn acos_continued(z: Complex64) -> Complex64 {
    if is_large(z) {
        let re = z.im.abs().atan2(z.re);
        return c(re, (-ln_double(z)).copysign(-z.im));
    }
    let (minus, plus) = (sqrt(c(1.0 - z.re, -z.im)), sqrt(c(1.0 + z.re, z.im)));
    let re = 2.0 * minus.re.atan2(plus.re);
    let im = (plus.conj() * minus).im.asinh();
    c(re, im)
}

/// The inverse hyperbolic cosine, in the right half plane.
pub(crate) fn acosh(z: Complex64) -> Complex64 {
    let w = acos_continued(z);
    // Either i acos(z) or -i acos(z): the one whose real part is not negative.
    if w.im <= 0.0 && !(w.im == 0.0 && z.im.is_sign_negative()) { c(-w.im, w.re) } else { c(w.im, -w.re) }
}

/// The inverse tangent.
pub(crate) fn atan(z: Complex64) -> Complex64 {
    let w = atanh(c(-z.im, z.re));
    c(w.im, -w.re)
}

/// The inverse hyperbolic tangent.
pub(crate) fn atanh(z: Complex64) -> Complex64 {
    let (x, y) = (z.re, z.im);
    if x.is_infinite() || y.is_infinite() || is_large(z) {
        let re = if x.is_infinite() || y.is_infinite() { 0.0f64.copysign(x) } else { div(c(1.0, 0.0), z).re };
        return c(re, FRAC_PI_2.copysign(y));
    }
    let re = 0.25 * (4.0 * x / ((1.0 - x) * (1.0 - x) + y * y)).ln_1p();
    let im = 0.5 * (2.0 * y).atan2((1.0 - x) * (1.0 + x) - y * y);
    c(if x == 0.0 { x } else { re }, im)
}

fn is_large(z: Complex64) -> bool {
    z.re.abs().max(z.im.abs()) > 1e8
}

/// `ln |2 z|`.
fn ln_double(z: Complex64) -> f64 {
    abs(c(z.re / 2.0, z.im / 2.0)).ln() + 2.0 * LN_2
}

/// Returns the inverse sine of a real number outside of -1..1.
pub(crate) fn asin_beyond(x: f64) -> Complex64 {
    asin(c(x, 0.0))
}

/// Returns the inverse cosine of a real number outside of -1..1.
pub(crate) fn acos_beyond(x: f64) -> Complex64 {
    acos(c(x, 0.0))
}

/// A power with a whole exponent, by repeated squaring.
pub(crate) fn powi(z: Complex64, n: i32) -> Complex64 {
    let mut left = n.unsigned_abs();
    let mut factor = z;
    let mut product = if left % 2 == 1 { z } else { c(1.0, 0.0) };
    loop {
        left /= 2;
        if left == 0 {
            break;
        }
        factor = mul(factor, factor);
        if left % 2 == 1 {
            product = mul(product, factor);
        }
    }
    if n < 0 { div(c(1.0, 0.0), product) } else { product }
}

/// A power with a real exponent.
pub(crate) fn powf(z: Complex64, y: f64) -> Complex64 {
    if z.im == 0.0 && z.re >= 0.0 {
        return c(z.re.powf(y), 0.0);
    }
    let w = ln(z);
    polar((y * w.re).exp(), y * w.im)
}

/// Does the same as [`powf`], but rounds to single at every step, as C does in single precision.
pub(crate) fn powf_single(z: Complex64, y: f64) -> Complex64 {
    let single = |x: f64| x as f32 as f64;
    if z.im == 0.0 && z.re >= 0.0 {
        return c(single(z.re.powf(y)), 0.0);
    }
    let w = ln(z);
    let r = single(single(y * single(w.re)).exp());
    let angle = single(y * single(w.im));
    c(single(r * single(angle.cos())), single(r * single(angle.sin())))
}

/// A power with a complex exponent.
pub(crate) fn pow(z: Complex64, w: Complex64) -> Complex64 {
    if z.re == 0.0 && z.im == 0.0 && w.im == 0.0 {
        return c(0.0f64.powf(w.re), 0.0);
    }
    let power = exp(mul(w, ln(z)));
    // The sign of a NaN would depend on the machine.
    let plain = |x: f64| if x.is_nan() { f64::NAN } else { x };
    c(plain(power.re), plain(power.im))
}

/// A real number to a complex power.
pub(crate) fn real_pow(x: f64, w: Complex64) -> Complex64 {
    if x > 0.0 { polar(x.powf(w.re), w.im * x.ln()) } else { pow(c(x, 0.0), w) }
}

/// Returns the logarithm of a negative number: the logarithm of its magnitude, and the angle pi.
pub(crate) fn ln_beyond(x: f64) -> Complex64 {
    c((-x).ln(), PI)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(z: Complex64, re: f64, im: f64) {
        assert!((z.re - re).abs() <= 1e-15 * re.abs().max(1.0), "{z} is not {re} {im}");
        assert!((z.im - im).abs() <= 1e-15 * im.abs().max(1.0), "{z} is not {re} {im}");
    }

    #[test]
    fn values_are_those_that_octave_gives() {
        assert_eq!(sqrt(c(3.0, 4.0)), c(2.0, 1.0));
        assert_eq!(sqrt(c(-4.0, -0.0)), c(0.0, -2.0));
        near(asin(c(2.0, 1.0)), 1.0634400235777521, 1.4693517443681852);
        near(acos(c(2.0, 1.0)), 0.50735630321714453, -1.4693517443681852);
        near(atan(c(2.0, 1.0)), 1.1780972450961724, 0.17328679513998632);
        near(asinh(c(2.0, 1.0)), 1.528570919480998, 0.42707858639247614);
        near(acosh(c(2.0, 1.0)), 1.4693517443681852, 0.50735630321714453);
        near(atanh(c(2.0, 1.0)), 0.40235947810852507, 1.3389725222944935);
        near(tan(c(2.0, 1.0)), -0.24345820118572531, 1.1667362572409199);
        near(tanh(c(2.0, 1.0)), 1.0147936161466335, 0.033812826079896691);
        near(asin_beyond(2.0), 1.5707963267948966, -1.3169578969248166);
        near(asin_beyond(-2.0), -1.5707963267948966, 1.3169578969248166);
        near(acos_beyond(2.0), 0.0, 1.3169578969248166);
        near(acos_beyond(-2.0), 3.1415926535897931, -1.3169578969248166);
        near(acosh(c(0.5, 0.0)), 0.0, 1.0471975511965976);
        near(acosh(c(-2.0, 0.0)), 1.3169578969248166, 3.1415926535897931);
        near(acosh(c(0.0, 1.0)), 0.88137358701954294, 1.5707963267948966);
        near(atanh(c(2.0, 0.0)), 0.54930614433405489, 1.5707963267948966);
        near(asinh(c(0.0, 2.0)), 1.3169578969248166, 1.5707963267948966);
        near(ln_1p(c(0.0, 1.0)), 0.34657359027997264, 0.78539816339744828);
        near(exp_m1(c(0.0, 1.0)), -0.45969769413186023, 0.8414709848078965);
        assert_eq!(powi(c(1.0, 2.0), 3), c(-11.0, -2.0));
        assert_eq!(powi(c(1.0, 2.0), -2), c(-0.12, -0.16));
        assert_eq!(div(c(1.0, 2.0), c(3.0, -1.0)), c(0.1, 0.70000000000000007));
        assert_eq!(powf(c(-8.0, 0.0), 1.0 / 3.0).re, 1.0);
        near(real_pow(2.0, c(1.0, 2.0)), 0.36691394948660344, 1.9660554808224875);
    }
}
