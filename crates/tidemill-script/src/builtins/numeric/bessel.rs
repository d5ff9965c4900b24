//! Bessel and Airy functions of real arguments: their table, and their signs and scalings.
//!
//! In: orders and numbers, real, of any sign. Out: values, complex where the function is complex (mostly for negative
//! numbers). They are computed in host memory.

use super::bessel_values::{first_and_second, modified, turn};
use crate::builtins::{Builtin, Outcome, args, row};
use crate::error::{Flow, fail};
use crate::ops::complex_in_class;
use crate::value::{Class, Dims, Tensor, Value};
use crate::vm::Interp;
use num_complex::Complex64;

/// The functions.
pub static ROWS: &[Builtin] = &[
    row(
        "besselj",
        2,
        3,
        2,
        "[j, err] = besselj (alpha, x, opt)",
        "The Bessel function of the first kind.",
        |i, a, _| bessel(i, "besselj", Kind::First, a),
    ),
    row("bessely", 2, 3, 2, "[y, err] = bessely (alpha, x, opt)", "That of the second kind.", |i, a, _| {
        bessel(i, "bessely", Kind::Second, a)
    }),
    row(
        "besseli",
        2,
        3,
        2,
        "[i, err] = besseli (alpha, x, opt)",
        "The modified one of the first kind; with OPT times exp (-abs (x)).",
        |i, a, _| bessel(i, "besseli", Kind::ModifiedFirst, a),
    ),
    row(
        "besselk",
        2,
        3,
        2,
        "[k, err] = besselk (alpha, x, opt)",
        "That of the second kind; with OPT times exp (x).",
        |i, a, _| bessel(i, "besselk", Kind::ModifiedSecond, a),
    ),
    row(
        "besselh",
        2,
        4,
        2,
        "[h, err] = besselh (alpha, k, x, opt)",
        "The Hankel functions j + i y (K is 1) and j - i y (2); with OPT times exp (-i x) or exp (i x).",
        hankel,
    ),
    row(
        "airy",
        1,
        3,
        2,
        "[a, err] = airy (k, x, opt)",
        "The Airy functions Ai, Ai', Bi and Bi' (K is 0 to 3) of real numbers.",
        airy,
    ),
];

/// The Bessel functions.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    First,
    Second,
    ModifiedFirst,
    ModifiedSecond,
    HankelFirst,
    HankelSecond,
}

fn c(re: f64, im: f64) -> Complex64 {
    Complex64::new(re, im)
}

/// Returns J and Y for any real order and a number that is not negative.
fn both(nu: f64, x: f64) -> (f64, f64) {
    let order = nu.abs();
    let (cos, sin) = turn(order);
    if x == 0.0 {
        let first = match () {
            () if nu == 0.0 => 1.0,
            () if nu > 0.0 || sin == 0.0 => 0.0,
            () => f64::INFINITY,
        };
        let second = if nu < 0.0 && cos == 0.0 { 0.0 } else { f64::NEG_INFINITY };
        return (first, second);
    }
    let (j, y) = first_and_second(order, x);
    if nu >= 0.0 {
        return (j, y);
    }
    // A factor of 0 gives 0, even times an infinite value.
    let times = |factor: f64, v: f64| if factor == 0.0 { 0.0 } else { factor * v };
    (times(cos, j) - times(sin, y), times(sin, j) + times(cos, y))
}

/// Returns I and K, scaled, for any real order and a number that is not negative.
fn both_modified(nu: f64, x: f64) -> (f64, f64) {
    let order = nu.abs();
    let sin = turn(order).1;
    if x == 0.0 {
        let first = match () {
            () if nu == 0.0 => 1.0,
            () if nu > 0.0 || sin == 0.0 => 0.0,
            () => f64::INFINITY,
        };
        return (first, f64::INFINITY);
    }
    let (i, k) = modified(order, x);
    if nu >= 0.0 || sin == 0.0 {
        return (i, k);
    }
    (i + 2.0 / std::f64::consts::PI * sin * k * (-2.0 * x).exp(), k)
}

/// Returns a factor times `exp (x)`. One of them may be 0 and the other infinite.
fn grown(value: f64, x: f64) -> f64 {
    if value == 0.0 && x.is_infinite() && x > 0.0 { f64::INFINITY } else { value * x.exp() }
}

/// Returns a value; NaN if an argument is NaN.
fn value(kind: Kind, nu: f64, x: f64, scaled: bool) -> Complex64 {
    if nu.is_nan() || x.is_nan() {
        return c(f64::NAN, 0.0);
    }
    let size = x.abs();
    // For a negative number, the value is multiplied by this half turn.
    let (cos, sin) = if x < 0.0 { turn(nu) } else { (1.0, 0.0) };
    let there = c(cos, sin);
    let back = c(cos, -sin);
    match kind {
        Kind::First => by(there, both(nu, size).0),
        Kind::Second => {
            let (j, y) = both(nu, size);
            let second = by(back, y);
            if x < 0.0 { second + c(0.0, 2.0 * cos * j) } else { second }
        }
        Kind::ModifiedFirst => {
            let i = both_modified(nu, size).0;
            by(there, if scaled { i } else { grown(i, size) })
        }
        Kind::ModifiedSecond => {
            let (i, k) = both_modified(nu, size);
            match (x < 0.0, scaled) {
                (false, true) => c(k, 0.0),
                (false, false) => c(k * (-size).exp(), 0.0),
                (true, scaled) => {
                    let (shrink, grow) = if scaled { (-2.0 * size, 0.0) } else { (-size, size) };
                    by(back, k * shrink.exp()) - c(0.0, std::f64::consts::PI * grown(i, grow))
                }
            }
        }
        Kind::HankelFirst | Kind::HankelSecond => {
            let sign = if kind == Kind::HankelFirst { 1.0 } else { -1.0 };
            let (j, y) = (value(Kind::First, nu, x, false), value(Kind::Second, nu, x, false));
            let h = j + c(0.0, sign) * y;
            if scaled { h * c(x.cos(), -sign * x.sin()) } else { h }
        }
    }
}

/// Multiplies a real number by a turn. A turn's part of 0 gives 0, even times infinity.
fn by(turn: Complex64, x: f64) -> Complex64 {
    let part = |t: f64| if t == 0.0 { 0.0 } else { t * x };
    c(part(turn.re), part(turn.im))
}

/// Returns the real numbers of an argument.
fn reals(interp: &Interp, who: &str, name: &str, value: &Value) -> Flow<(Dims, Vec<f64>, bool)> {
    if !(value.class().is_float() || value.class() == Class::Logical) {
        return fail!("{who}: {name} must be a scalar or matrix");
    }
    let host = interp.env.host(value)?;
    if host.data.is_complex() {
        return fail!("{who}: complex arguments are not supported");
    }
    Ok((host.dims.clone(), host.data.to_f64(), value.class() == Class::Single))
}

fn is_scaled(who: &str, value: Option<&Value>, interp: &Interp) -> Flow<bool> {
    match value {
        None => Ok(false),
        Some(value) if value.len() == 1 && (value.is_numeric() || matches!(value, Value::Bool(_))) => {
            Ok(args::number(&interp.env, who, value)? != 0.0)
        }
        Some(_) => fail!("{who}: OPT must be 0 (or false) or 1 (or true)"),
    }
}

fn bessel(interp: &mut Interp, who: &str, kind: Kind, args: &[Value]) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let scaled = is_scaled(who, args.get(2), interp)?;
    of_orders(interp, who, kind, &args[0], &args[1], scaled)
}

fn of_orders(interp: &mut Interp, who: &str, kind: Kind, alpha: &Value, x: &Value, scaled: bool) -> Flow<Outcome> {
    let (orders_dims, orders, first) = reals(interp, who, "ALPHA", alpha)?;
    let (dims, x, second) = reals(interp, who, "X", x)?;
    let class = if first || second { Class::Single } else { Class::Double };
    let at = |nu: f64, x: f64| value(kind, nu, x, scaled);
    let (dims, values): (Dims, Vec<Complex64>) = if orders.len() == 1 {
        (dims, x.iter().map(|&x| at(orders[0], x)).collect())
    } else if x.len() == 1 {
        (orders_dims, orders.iter().map(|&nu| at(nu, x[0])).collect())
    } else if orders_dims.len() == 2 && orders_dims.rows() == 1 && dims.len() == 2 && dims.columns() == 1 {
        let table = Dims::new(&[x.len(), orders.len()]);
        interp.env.check_elements(&table)?;
        (table, orders.iter().flat_map(|&nu| x.iter().map(move |&x| at(nu, x))).collect())
    } else if orders_dims == dims {
        (dims, orders.iter().zip(&x).map(|(&nu, &x)| at(nu, x)).collect())
    } else {
        return fail!("{who}: the sizes of alpha and x must conform");
    };
    Ok(with_errors(class, dims, values))
}

/// The error code for a value with no correct digits (Amos, TOMS 644).
const NOTHING_KNOWN: f64 = 4.0;

/// Returns the values and their error codes.
fn with_errors(class: Class, dims: Dims, values: Vec<Complex64>) -> Outcome {
    let error = |v: &Complex64| if v.is_nan() { NOTHING_KNOWN } else { 0.0 };
    let errors: Vec<f64> = values.iter().map(error).collect();
    let errors = Value::tensor(Tensor::new(dims.clone(), crate::value::Data::F64(errors)));
    vec![Value::tensor(Tensor::new(dims, complex_in_class(class, values))), errors].into()
}

fn hankel(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let scaled = is_scaled("besselh", args.get(3), interp)?;
    let (k, x) = match args {
        [_, x] => (1.0, x),
        [_, k, x, ..] => (args::number(&interp.env, "besselh", k)?, x),
        _ => return fail!("Invalid call to besselh"),
    };
    let kind = match k {
        1.0 => Kind::HankelFirst,
        2.0 => Kind::HankelSecond,
        _ => return fail!("besselh: K must be 1 or 2"),
    };
    of_orders(interp, "besselh", kind, &args[0], x, scaled)
}

fn airy(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let scaled = is_scaled("airy", args.get(2), interp)?;
    let (k, x) = match args {
        [x] => (0.0, x),
        [k, x, ..] => (args::number(&interp.env, "airy", k)?, x),
        _ => return fail!("Invalid call to airy"),
    };
    if ![0.0, 1.0, 2.0, 3.0].contains(&k) {
        return fail!("airy: K must be 0, 1, 2, or 3");
    }
    let (dims, x, single) = reals(interp, "airy", "Z", x)?;
    let values = x.iter().map(|&x| airy_value(k as usize, x, scaled)).collect();
    Ok(with_errors(if single { Class::Single } else { Class::Double }, dims, values))
}

/// Computes Ai, Ai', Bi or Bi' by Bessel functions of order 1/3 and 2/3.
fn airy_value(k: usize, x: f64, scaled: bool) -> Complex64 {
    if x.is_nan() {
        return c(f64::NAN, 0.0);
    }
    if x == 0.0 {
        // These are 3^(-2/3) / gamma (2/3) and the other values at 0.
        let at_0 = [0.355_028_053_887_817_2, -0.258_819_403_792_806_8, 0.614_926_627_446_001, 0.448_288_357_353_826_4];
        return c(at_0[k], 0.0);
    }
    let third = 1.0 / 3.0;
    let size = x.abs();
    let zeta = 2.0 / 3.0 * size * size.sqrt();
    let root = (size / 3.0).sqrt();
    let order = if k.is_multiple_of(2) { third } else { 2.0 * third };
    if x > 0.0 {
        let (i, k_value) = both_modified(order, zeta);
        let (i_less, _) = both_modified(-order, zeta);
        let pi = std::f64::consts::PI;
        let (value, shrinks) = match k {
            0 => (root * k_value / pi, true),
            1 => (-size / (pi * 3f64.sqrt()) * k_value, true),
            2 => (root * (i + i_less), false),
            _ => (size / 3f64.sqrt() * (i + i_less), false),
        };
        let unscaled = if shrinks { value * (-zeta).exp() } else { grown(value, zeta) };
        return c(if scaled { value } else { unscaled }, 0.0);
    }
    let (j, y) = both(order, zeta);
    let over = 3f64.sqrt();
    let value = match k {
        0 => size.sqrt() / 2.0 * (j - y / over),
        1 => size / 2.0 * (j + y / over),
        2 => -size.sqrt() / 2.0 * (j / over + y),
        _ => size / 2.0 * (j / over - y),
    };
    // For negative numbers zeta lies on the imaginary axis.
    if scaled && k < 2 { c(value, 0.0) * c(zeta.cos(), -zeta.sin()) } else { c(value, 0.0) }
}
