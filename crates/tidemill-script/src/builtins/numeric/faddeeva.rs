//! The error functions of complex numbers, and the imaginary ones of real numbers, computed by Faddeeva's function `w
//! (z) = exp (-z^2) erfc (-iz)`.
//!
//! `w` is computed by a modified trapezoidal or midpoint rule (Al Azah and Chandler-Wilde, "Computation of the complex
//! error function using modified trapezoidal rules", 2021). Near 0, where differences would lose digits, series are
//! used.

use num_complex::Complex64;
use std::f64::consts::{FRAC_2_SQRT_PI, PI};

/// The points of the rule on one side of 0; they suffice for an error of 2e-15.
const POINTS: usize = 12;

const I: Complex64 = Complex64 { re: 0.0, im: 1.0 };

fn times_i(z: Complex64) -> Complex64 {
    Complex64::new(-z.im, z.re)
}

/// Returns `exp (-z^2)`. The real part of its exponent keeps its digits if both parts of `z` are large.
fn bell(z: Complex64) -> Complex64 {
    Complex64::from_polar(((z.im - z.re) * (z.im + z.re)).exp(), -2.0 * z.re * z.im)
}

/// Faddeeva's function.
fn w(z: Complex64) -> Complex64 {
    if z.re.is_nan() || z.im.is_nan() {
        return Complex64::new(f64::NAN, f64::NAN);
    }
    if z.re.is_infinite() || z.im == f64::INFINITY {
        return Complex64::default();
    }
    if z.im < 0.0 {
        return 2.0 * bell(z) - w(-z);
    }
    if z.re < 0.0 {
        return w(Complex64::new(-z.re, z.im)).conj();
    }
    // This is the first term of its series at infinity, since a square would overflow.
    if z.re.max(z.im) > 1e8 {
        return times_i((PI.sqrt() * z).inv());
    }
    let h = (PI / POINTS as f64).sqrt();
    let (square, scaled) = (z * z, z / h);
    let sum = |from: f64, shift: f64| {
        let term = |k: usize| {
            let t = (k as f64 + shift) * h;
            (-t * t).exp() / (square - t * t)
        };
        (from as usize..POINTS).rev().map(term).sum::<Complex64>()
    };
    let weight = times_i(z) * (2.0 * h / PI);
    let midpoint = || weight * sum(0.0, 0.5);
    if z.im >= z.re.max(PI / h) {
        return midpoint();
    }
    // For the points of the circle, the power of exp (-2i pi z / h) is large, so its reciprocal is used.
    let inverse = (times_i(scaled) * (2.0 * PI)).exp();
    let place = scaled.re - scaled.re.floor();
    if z.im < z.re && (0.25..=0.75).contains(&place) {
        let trapezoid = times_i((z * PI).inv()) * h + weight * sum(1.0, 0.0);
        return trapezoid - 2.0 * bell(z) * inverse / (1.0 - inverse);
    }
    midpoint() + 2.0 * bell(z) * inverse / (1.0 + inverse)
}

/// Returns the series of erf (`sign` -1) and erfi (1) at 0: `2/sqrt (pi) * sum (sign^n z^(2n+1) / (n! (2n+1)))`.
fn series(z: Complex64, sign: f64) -> Complex64 {
    let step = z * z * sign;
    let (mut power, mut sum) = (z, z);
    for n in 1..60 {
        power = power * step / n as f64;
        let term = power / (2 * n + 1) as f64;
        sum += term;
        if term.norm() < 1e-18 * sum.norm() {
            break;
        }
    }
    sum * FRAC_2_SQRT_PI
}

/// `erf (z)`.
pub(super) fn erf(z: Complex64) -> Complex64 {
    if z.im == 0.0 {
        return Complex64::new(libm::erf(z.re), z.im);
    }
    if z.re == 0.0 {
        return Complex64::new(z.re, erfi_real(z.im));
    }
    if z.re < 0.0 {
        return -erf(-z);
    }
    if z.norm_sqr() < 2.0 {
        return series(z, -1.0);
    }
    if z.re < 1e-2 && (z.re * z.im).abs() < 5e-3 {
        // Near the imaginary axis this uses the first derivatives of erf on it.
        let (x, y) = (z.re, z.im);
        let height = (y * y).exp();
        let (xx, yy) = (x * x, y * y);
        let fourth = 0.1 + yy * (0.4 + yy * 0.4 / 3.0);
        let re = height * FRAC_2_SQRT_PI * x * (1.0 - xx * (1.0 + 2.0 * yy) / 3.0 + xx * xx * fourth);
        let im = erfi_real(y) - height * FRAC_2_SQRT_PI * xx * y * (1.0 - xx * (0.5 + yy / 3.0));
        return Complex64::new(re, im);
    }
    1.0 - bell(z) * w(times_i(z))
}

/// `1 - erf (z)`.
pub(super) fn erfc(z: Complex64) -> Complex64 {
    if z.im == 0.0 {
        return Complex64::new(libm::erfc(z.re), -z.im);
    }
    if z.re < 0.0 {
        return 2.0 - erfc(-z);
    }
    if z.norm_sqr() < 0.25 || z.re < 1e-2 {
        return 1.0 - erf(z);
    }
    bell(z) * w(times_i(z))
}

/// `exp (z^2) * erfc (z)`.
pub(super) fn erfcx(z: Complex64) -> Complex64 {
    w(times_i(z))
}

/// `-i erf (iz)`.
pub(super) fn erfi(z: Complex64) -> Complex64 {
    -times_i(erf(times_i(z)))
}

/// `sqrt (pi) / 2 * exp (-z^2) * erfi (z)`.
pub(super) fn dawson(z: Complex64) -> Complex64 {
    if z.im == 0.0 {
        return Complex64::new(dawson_real(z.re), z.im);
    }
    if z.norm_sqr() < 2.0 {
        return bell(z) * series(z, 1.0) / FRAC_2_SQRT_PI;
    }
    I / FRAC_2_SQRT_PI * if z.im < 0.0 { w(-z) - bell(z) } else { bell(z) - w(z) }
}

/// `erfi` of a real number.
pub(super) fn erfi_real(x: f64) -> f64 {
    match x * x {
        // This keeps the sign of zero.
        0.0 => x * FRAC_2_SQRT_PI,
        square if square < 2.0 => series(Complex64::new(x, 0.0), 1.0).re,
        square if square > 720.0 => x.signum() * f64::INFINITY,
        square => square.exp() * w(Complex64::new(x, 0.0)).im,
    }
}

/// Dawson's function of a real number.
pub(super) fn dawson_real(x: f64) -> f64 {
    match x * x {
        0.0 => x,
        square if square < 2.0 => (-square).exp() * series(Complex64::new(x, 0.0), 1.0).re / FRAC_2_SQRT_PI,
        _ => w(Complex64::new(x, 0.0)).im / FRAC_2_SQRT_PI,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function, its argument, and the result of GNU Octave 7.3.
    type Case = (fn(Complex64) -> Complex64, [f64; 2], [f64; 2]);

    #[rustfmt::skip]
    const CASES: &[Case] = &[
        (erf, [1.0, 2.0], [-5.36643565778566423e-01, -5.04914370344703745e+00]),
        (erf, [0.1, -0.2], [1.17021486303904187e-01, -2.26384457181450893e-01]),
        (erf, [3.0, 0.001], [9.99977909920759522e-01, 1.39252262847136874e-07]),
        (erf, [-2.0, 5.0], [-9.61035478255172670e+07, 1.01670558358252525e+08]),
        (erf, [0.005, 3.0], [4.57095173935257648e+01, 1.62930893127035415e+03]),
        (erf, [6.0, -4.0], [1.00000000001849565e+00, 1.59574512103966927e-10]),
        (erf, [1e-05, 4.0], [1.00269019768197523e+02, 1.29695972670687805e+06]),
        (erf, [2.3, 0.4], [1.00054033410242860e+00, 1.21324383764956768e-03]),
        (erf, [12.0, 0.5], [1.00000000000000000e+00, -8.72125270837433540e-65]),
        (erf, [1e10, 3.0], [1.00000000000000000e+00, 0.00000000000000000e+00]),
        (erf, [-1.5, -1.4], [-9.73081273218046383e-01, 1.97364986258926012e-01]),
        (erf, [4.4, 1e-09], [9.99999999510828963e-01, 4.41076469468341041e-18]),
        (erfc, [1.0, 2.0], [1.53664356577856664e+00, 5.04914370344703745e+00]),
        (erfc, [0.1, -0.2], [8.82978513696095924e-01, 2.26384457181450893e-01]),
        (erfc, [3.0, 0.001], [2.20900792404739883e-05, -1.39252262847136874e-07]),
        (erfc, [-2.0, 5.0], [9.61035488255172670e+07, -1.01670558358252525e+08]),
        (erfc, [0.005, 3.0], [-4.47095173935257648e+01, -1.62930893127035415e+03]),
        (erfc, [6.0, -4.0], [-1.84957447636465883e-11, -1.59574512103966927e-10]),
        (erfc, [1e-05, 4.0], [-9.92690197681975519e+01, -1.29695972670687851e+06]),
        (erfc, [2.3, 0.4], [-5.40334102428629442e-04, -1.21324383764956768e-03]),
        (erfc, [12.0, 0.5], [1.50564891842016575e-64, 8.72125270837433540e-65]),
        (erfc, [1e10, 3.0], [0.00000000000000000e+00, 0.00000000000000000e+00]),
        (erfc, [-1.5, -1.4], [1.97308127321804627e+00, -1.97364986258926012e-01]),
        (erfc, [4.4, 1e-09], [4.89171027060587446e-10, -4.41076469468341041e-18]),
        (erfcx, [1.0, 2.0], [1.40239581366277982e-01, -2.22213440179899246e-01]),
        (erfcx, [0.1, -0.2], [8.64982548388288808e-01, 1.85251890897006499e-01]),
        (erfcx, [3.0, 0.001], [1.79001135297020081e-01, -5.43722555277440655e-05]),
        (erfcx, [-2.0, 5.0], [-4.06436757146332872e-02, -9.79873125410651580e-02]),
        (erfcx, [0.005, 3.0], [5.16178946233106901e-04, -2.01152751788904710e-01]),
        (erfcx, [6.0, -4.0], [6.52226052456919003e-02, 4.26660475765730587e-02]),
        (erfcx, [1e-05, 4.0], [5.05030695424211884e-07, -1.45953589890045810e-01]),
        (erfcx, [2.3, 0.4], [2.21962707476444754e-01, -3.34981539940497064e-02]),
        (erfcx, [12.0, 0.5], [4.67743884217491149e-02, -1.93564978926277971e-03]),
        (erfcx, [1e10, 3.0], [5.64189583547756291e-11, -1.69256875064326878e-20]),
        (erfcx, [-1.5, -1.4], [-1.52264928468033078e+00, -2.16892761426902547e+00]),
        (erfcx, [4.4, 1e-09], [1.25141655538144936e-01, -2.71325983598374651e-11]),
        (erfi, [1.0, 2.0], [-1.12590060288150252e-02, 1.00360634272565186e+00]),
        (erfi, [0.1, -0.2], [1.08746861679588663e-01, -2.24881445339237818e-01]),
        (erfi, [3.0, 0.001], [1.62996719264429498e+03, 9.14329318534488777e+00]),
        (erfi, [-2.0, 5.0], [-7.83582046669295410e-11, 9.99999999995997091e-01]),
        (erfi, [0.005, 3.0], [6.96166625331957988e-07, 9.99977919946327565e-01]),
        (erfi, [6.0, -4.0], [-3.66191391878014132e+07, 1.04932334506213311e+07]),
        (erfi, [1e-05, 4.0], [1.26982346587450725e-12, 9.99999984582742196e-01]),
        (erfi, [2.3, 0.4], [-1.66181569484101188e+00, 4.60883816393640871e+01]),
        (erfi, [12.0, 0.5], [1.04076482727378057e+61, -7.24789995239041407e+60]),
        (erfi, [-1.5, -1.4], [3.53049099430848556e-01, -9.28932601953927017e-01]),
        (erfi, [4.4, 1e-09], [3.37263498228685856e+07, 2.88666395255653518e-01]),
        (dawson, [1.0, 2.0], [-1.33889273164829206e+01, -1.18287151038895928e+01]),
        (dawson, [0.1, -0.2], [1.07442425214203080e-01, -2.01229869831089037e-01]),
        (dawson, [3.0, 0.001], [1.78271000003045049e-01, -6.96261688657672358e-05]),
        (dawson, [-2.0, 5.0], [-1.06702303315101564e+09, 4.76954076854026020e+08]),
        (dawson, [0.005, 3.0], [2.15397676785677589e+02, 7.17760178961629481e+03]),
        (dawson, [6.0, -4.0], [5.75449684288788857e-02, 3.91188760216999512e-02]),
        (dawson, [1e-05, 4.0], [6.30008832017827785e+02, 7.87511025842261128e+06]),
        (dawson, [2.3, 0.4], [2.35274132906173217e-01, -5.58732163978972601e-02]),
        (dawson, [12.0, 0.5], [4.17391231030067381e-02, -1.75140035736544557e-03]),
        (dawson, [1e10, 3.0], [5.00000000000000018e-11, -1.50000000000000014e-20]),
        (dawson, [-1.5, -1.4], [4.22115584910476072e-01, 5.06054278899849996e-01]),
        (dawson, [4.4, 1e-09], [1.16835039953297290e-01, -2.81483515890161880e-11]),
    ];

    #[test]
    fn error_functions_of_complex_numbers_are_octaves() {
        for &(function, [x, y], [re, im]) in CASES {
            let (actual, expected) = (function(Complex64::new(x, y)), Complex64::new(re, im));
            let is_near = (actual - expected).norm() <= 1e-13 * expected.norm();
            assert!(is_near, "{actual} is not {expected}, at {x} + {y}i");
        }
    }
}
