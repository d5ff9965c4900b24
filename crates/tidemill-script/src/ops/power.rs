//! Elementwise powers in host memory. Whole exponents are exact if the class allows it, a negative base with a
//! fractional exponent makes the result complex, and integers saturate.

use super::complex::{self, c};
use super::expand::{Side, zip};
use super::operand::{Elements, Host, complex_in_class, in_class, in_wide_class, is_wide};
use super::wide;
use crate::value::{Class, Data, Dims};
use num_complex::Complex64;

/// Returns the power of two doubles, if the result is real.
#[inline]
pub(crate) fn scalars(x: f64, y: f64) -> Option<f64> {
    if y == 2.0 {
        return Some(x * x);
    }
    (x >= 0.0 || x.is_nan() || y.trunc() == y && y.is_finite()).then(|| x.powf(y))
}

/// Does `a .^ b` for operands whose class and dimensions were checked.
pub(crate) fn elementwise(a: &Host<'_>, b: &Host<'_>, class: Class, dims: &Dims) -> Data {
    if class.is_integer() {
        return of_integers(a, b, class, dims);
    }
    if a.is_complex() || b.is_complex() {
        return of_complex(a, b, class, dims);
    }
    let (x, y) = (a.elements().reals_in(class), b.elements().reals_in(class));
    let (x, y) = (Side { data: &x[..], dims: a.dims() }, Side { data: &y[..], dims: b.dims() });
    if let [n] = *y.data {
        // These whole powers are defined as products.
        if n == 2.0 {
            return in_class(class, x.data.iter().map(|&x| x * x).collect());
        }
        if n == 3.0 {
            return in_class(class, x.data.iter().map(|&x| x * x * x).collect());
        }
        if n == -1.0 {
            return in_class(class, x.data.iter().map(|&x| 1.0 / x).collect());
        }
    }
    let leaves = x.data.iter().any(|&x| x < 0.0) && y.data.iter().any(|&y| y.trunc() != y || y.is_infinite());
    if leaves && zip(x, y, dims, |x, y| x < 0.0 && !is_whole(y)).contains(&true) {
        let power = if class == Class::Single { complex::powf_single } else { complex::powf };
        return complex_in_class(class, zip(x, y, dims, |x, y| power(c(x, 0.0), y)));
    }
    in_class(class, zip(x, y, dims, f64::powf))
}

fn is_whole(y: f64) -> bool {
    y.trunc() == y && y.is_finite()
}

fn of_complex(a: &Host<'_>, b: &Host<'_>, class: Class, dims: &Dims) -> Data {
    let (real_base, real_exponent) = (!a.is_complex(), !b.is_complex());
    // Beside a scalar, whole exponents are computed as products.
    let products = a.len() == 1 || b.len() == 1;
    let (x, y) = (a.elements().complexes_in(class), b.elements().complexes_in(class));
    let (x, y) = (Side { data: &x[..], dims: a.dims() }, Side { data: &y[..], dims: b.dims() });
    let power = |x: Complex64, y: Complex64| {
        if real_exponent {
            let whole = products && y.re.trunc() == y.re && y.re.abs() <= i32::MAX as f64;
            match class {
                _ if whole => complex::powi(x, y.re as i32),
                Class::Single => complex::powf_single(x, y.re),
                _ => complex::powf(x, y.re),
            }
        } else if real_base {
            complex::real_pow(x.re, y)
        } else {
            complex::pow(x, y)
        }
    };
    complex_in_class(class, zip(x, y, dims, power))
}

fn of_integers(a: &Host<'_>, b: &Host<'_>, class: Class, dims: &Dims) -> Data {
    if !is_wide(class) {
        let both = a.class() == b.class();
        let (x, y) = (a.elements().reals(), b.elements().reals());
        let (x, y) = (Side { data: &x[..], dims: a.dims() }, Side { data: &y[..], dims: b.dims() });
        let power = |x: f64, y: f64| {
            // Between integers, a negative power is a whole number (1 or -1), or zero.
            if both && y < 0.0 { wide::power(x as i128, y as i128) as f64 } else { x.powf(y) }
        };
        return in_class(class, zip(x, y, dims, power));
    }
    let float = |elements: Elements<'_>| elements.class().is_float();
    if float(a.elements()) {
        let (x, y) = (a.elements().reals(), b.elements().reals());
        let (x, y) = (Side { data: &x[..], dims: a.dims() }, Side { data: &y[..], dims: b.dims() });
        return in_class(class, zip(x, y, dims, f64::powf));
    }
    let x = a.elements().integers();
    let x = Side { data: &x[..], dims: a.dims() };
    if float(b.elements()) {
        let y = b.elements().reals();
        let y = Side { data: &y[..], dims: b.dims() };
        let power = |x: i128, y: f64| {
            let whole = (0.0..64.0).contains(&y) && y.trunc() == y;
            if whole { wide::power(x, y as i128) } else { (x as f64).powf(y).round() as i128 }
        };
        return in_wide_class(class, zip(x, y, dims, power).into_iter());
    }
    let y = b.elements().integers();
    let y = Side { data: &y[..], dims: b.dims() };
    in_wide_class(class, zip(x, y, dims, wide::power).into_iter())
}
