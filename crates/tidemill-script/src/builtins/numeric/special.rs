//! Special functions of doubles that the libraries in use lack: the inverse and scaled error functions, and the gamma
//! function with the language's values at its poles.

use std::f64::consts::PI;

/// Returns the gamma function, which is infinite at 0 (with its sign) and at negative integers.
pub(crate) fn gamma(x: f64) -> f64 {
    if x == 0.0 {
        f64::INFINITY.copysign(x)
    } else if x < 0.0 && x == x.round() || x.is_infinite() {
        f64::INFINITY
    } else {
        libm::tgamma(x)
    }
}

/// The logarithm of the gamma function's magnitude.
pub(crate) fn ln_gamma(x: f64) -> f64 {
    if x.is_infinite() { f64::INFINITY } else { libm::lgamma(x) }
}

/// `exp (x^2) erfc (x)`.
pub(crate) fn erfc_scaled(x: f64) -> f64 {
    if x == f64::NEG_INFINITY {
        return f64::INFINITY;
    }
    if x < 8.0 {
        // The square is computed in two parts, so that its rounding error is not multiplied.
        let high = f64::from_bits(x.to_bits() & !0x7ff_ffff);
        let low = (x - high) * (x + high);
        return (high * high).exp() * low.exp() * libm::erfc(x);
    }
    // This is a continued fraction, from its far end.
    let mut tail = x;
    for k in (1..=60).rev() {
        tail = x + k as f64 / 2.0 / tail;
    }
    1.0 / (tail * PI.sqrt())
}

/// Returns the number whose error function is `y`.
pub(crate) fn erf_inverse(y: f64) -> f64 {
    if y.abs() >= 1.0 || y.is_nan() {
        return if y.abs() == 1.0 { f64::INFINITY.copysign(y) } else { f64::NAN };
    }
    if y.abs() > 0.5 {
        return erfc_inverse(1.0 - y.abs()).copysign(y);
    }
    // The first terms of its series are improved by Halley's method.
    let z = PI / 4.0 * y * y;
    let series = [34807.0 / 178_200.0, 4369.0 / 22680.0, 127.0 / 630.0, 7.0 / 30.0, 1.0 / 3.0, 1.0];
    let mut x = y * PI.sqrt() / 2.0 * series.iter().fold(0.0, |sum, c| sum * z + c);
    for _ in 0..4 {
        let error = (libm::erf(x) - y) * (x * x).exp() * PI.sqrt() / 2.0;
        let step = error / (1.0 + x * error);
        x -= step;
        if is_last(step, x) {
            break;
        }
    }
    x
}

/// Whether this was the last step of a method that triples the number of correct digits.
fn is_last(step: f64, x: f64) -> bool {
    !(step.abs() > 1e-6 * x.abs())
}

/// Returns the inverse of the complementary error function to about seven digits, for 1e-7 to 0.5 (M. Giles,
/// "Approximating the erfinv function", 2010).
fn near_erfc_inverse(y: f64) -> f64 {
    let w = -(y * (2.0 - y)).ln();
    let (w, series) = match w < 5.0 {
        true => (
            w - 2.5,
            [
                2.81022636e-08,
                3.43273939e-07,
                -3.5233877e-06,
                -4.39150654e-06,
                0.00021858087,
                -0.00125372503,
                -0.00417768164,
                0.246640727,
                1.50140941,
            ],
        ),
        false => (
            w.sqrt() - 3.0,
            [
                -0.000200214257,
                0.000100950558,
                0.00134934322,
                -0.00367342844,
                0.00573950773,
                -0.0076224613,
                0.00943887047,
                1.00167406,
                2.83297682,
            ],
        ),
    };
    (1.0 - y) * series.iter().fold(0.0, |sum, c| sum * w + c)
}

/// Returns the number whose complementary error function is `y`.
pub(crate) fn erfc_inverse(y: f64) -> f64 {
    if !(0.0..=2.0).contains(&y) {
        return f64::NAN;
    }
    if y == 0.0 || y == 2.0 {
        return if y == 0.0 { f64::INFINITY } else { f64::NEG_INFINITY };
    }
    if y > 1.0 {
        return -erfc_inverse(2.0 - y);
    }
    if y > 0.5 {
        return erf_inverse(1.0 - y);
    }
    if y > 1e-7 {
        let mut x = near_erfc_inverse(y);
        for _ in 0..4 {
            let error = (libm::erfc(x) - y) * (x * x).exp() * PI.sqrt() / 2.0;
            let step = error / (1.0 - x * error);
            x += step;
            if is_last(step, x) {
                break;
            }
        }
        return x;
    }
    // This starts from the leading term of the expansion at infinity.
    let l = -(y * PI.sqrt()).ln();
    let mut x = (l - 0.5 * l.max(1e-3).ln()).max(0.1).sqrt();
    for _ in 0..8 {
        // Ratios are used, since the function itself may be subnormal.
        let error = (1.0 - y / libm::erfc(x)) * erfc_scaled(x) * PI.sqrt() / 2.0;
        let next = x + error / (1.0 - x * error);
        if !next.is_finite() || next == x {
            break;
        }
        x = next;
    }
    x
}

/// Returns the beta function. If an argument is negative, its sign is that of the gamma functions in it.
pub(crate) fn beta(a: f64, b: f64) -> f64 {
    let sign = |x: f64| if x < 0.0 && x.floor().rem_euclid(2.0) == 1.0 { -1.0 } else { 1.0 };
    sign(a) * sign(b) * sign(a + b) * ln_beta(a, b).exp()
}

pub(crate) fn ln_beta(a: f64, b: f64) -> f64 {
    ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(x: f64, y: f64) {
        assert!(x == y || (x - y).abs() <= 4e-15 * y.abs(), "{x} is not {y}");
    }

    #[test]
    fn values_are_those_that_octave_gives() {
        near(erf_inverse(0.5), 0.47693627620446988);
        near(erf_inverse(0.9), 1.163087153676674);
        near(erf_inverse(0.999), 2.3267537655135246);
        near(erf_inverse(1e-10), 8.8622692545275808e-11);
        near(erf_inverse(-1.0), f64::NEG_INFINITY);
        near(erfc_inverse(0.1), 1.163087153676674);
        near(erfc_inverse(1.9), -1.1630871536766738);
        // This tests both methods, and the point at which they meet.
        for y in [1e-12, 0.99e-7, 1.01e-7, 1e-4, 0.2, 0.499, 0.501, 0.9, 0.999999] {
            assert!((libm::erfc(erfc_inverse(y)) / y - 1.0).abs() < 3e-14, "{y}");
        }
        near(erfc_inverse(1e-300), 26.209469960516124);
        near(erfc_scaled(1.0), 0.427583576155807);
        near(erfc_scaled(5.0), 0.11070463773306861);
        near(erfc_scaled(30.0), 0.018795888861416754);
        near(erfc_scaled(-5.0), 144009798674.66104);
        assert_eq!((gamma(-0.0), gamma(-1.0), gamma(5.0)), (f64::NEG_INFINITY, f64::INFINITY, 24.0));
    }
}
