//! Parts of numbers: signs, angles, imaginary parts, rounding to digits, and exponents.
//!
//! In: numeric arrays. Out: arrays of the same size. Arrays on the runtime are computed there.

use super::elementwise::{Complex, Integers, Map, NEGATIVE_LOG2, apply, check, each};
use crate::builtins::Outcome;
use crate::env::Env;
use crate::error::{Flow, fail};
use crate::ops::{self, Elements, Host, complex::c, in_class, lazy, type_name};
use crate::syntax::ast::BinaryOp;
use crate::value::{Class, Data, Dims, Tensor, Value};
use crate::vm::Interp;
use num_complex::Complex64;
use tidemill::Array;

/// Tests each element. A complex number passes if one of its parts does (or, for finiteness, both parts).
pub(super) fn tested(
    env: &mut Env,
    name: &str,
    x: &Value,
    test: fn(f64) -> bool,
    method: fn(&Array) -> Array,
) -> Flow<Value> {
    if let Value::Num(x) = x {
        return Ok(Value::Bool(test(*x)));
    }
    if let Value::Cell(_) | Value::Struct(_) | Value::Function(_) = x {
        return fail!("{name}: not defined for {}", type_name(x, false));
    }
    let whole = test(1.0);
    if let Value::Lazy(l) = x {
        return lazy::record_from(env, method(&l.array), Class::Logical, &[x]);
    }
    if x.len() > env.options.host_elements_max && x.class().is_float() && !x.is_complex() {
        return lazy::record_from(env, method(&lazy::lift(env, x, x.class())?), Class::Logical, &[x]);
    }
    let host = Host::of(env, x)?;
    let answers = match host.elements() {
        Elements::Data(Data::C64(_) | Data::C32(_)) => {
            let z = host.elements().complexes_in(Class::Double);
            z.iter().map(|z| if whole { test(z.re) && test(z.im) } else { test(z.re) || test(z.im) }).collect()
        }
        Elements::Data(data) if !data.class().is_float() => vec![whole; data.len()],
        elements => elements.reals().iter().map(|&x| test(x)).collect(),
    };
    Ok(Value::tensor(Tensor::new(Dims::new(host.dims()), Data::Bool(answers))))
}

pub(super) fn sign(x: f64) -> f64 {
    if x > 0.0 {
        1.0
    } else if x < 0.0 {
        -1.0
    } else {
        x + 0.0
    }
}

pub(super) fn complex_sign(z: Complex64) -> Complex64 {
    let r = ops::complex::abs(z);
    if r == 0.0 { c(0.0, 0.0) } else { c(z.re / r, z.im / r) }
}

pub(super) fn angle(x: f64) -> f64 {
    if x.is_nan() { x } else { 0.0f64.atan2(x) }
}

/// The sign of -0 is 0, without a sign.
pub(super) fn signs(x: &Array) -> Array {
    let sign = x.sign();
    if x.dtype().is_ok_and(|d| d.is_float()) { sign + 0.0 } else { sign }
}

pub(super) fn angles(x: &Array) -> Array {
    // NaN has no angle. That of -0 is π, as of any negative number.
    x.isnan().select(x, 0.0).atan2(x)
}

pub(super) fn imag(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    static MAP: Map = Map {
        name: "imag",
        real: |_| 0.0,
        reals: each!(|_| 0.0),
        complex: Complex::ToReal(|z| z.im),
        beyond: None,
        runtime: None,
        integers: Integers::Keep(|_| 0),
        chars: true,
    };
    let (env, x) = (&mut interp.env, &args[0]);
    let Value::Lazy(l) = x else { return Ok(apply(env, &MAP, x)?.into()) };
    let class = if l.class == Class::Logical { Class::Double } else { l.class };
    let zeros = crate::builtins::record::filled(env, class, &l.dims, 0.0)?;
    Ok(lazy::record_from(env, zeros, class, &[x])?.into())
}

/// The gamma function on the runtime; it is infinite at negative integers.
pub(super) fn gammas(x: &Array) -> Array {
    (x.lt(0.0) & x.fix().eq_to(x)).select(f64::INFINITY, x.gamma())
}

pub(super) fn round(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    static MAP: Map = Map {
        name: "round",
        real: f64::round,
        reals: each!(f64::round),
        complex: Complex::To(|z| c(z.re.round(), z.im.round())),
        beyond: None,
        runtime: Some(Array::round),
        integers: Integers::Keep(|x| x),
        chars: true,
    };
    let env = &mut interp.env;
    let [x, digits, kind @ ..] = args else { return Ok(apply(env, &MAP, &args[0])?.into()) };
    let digits = crate::builtins::args::number(env, "round", digits)?;
    if digits.trunc() != digits || digits.is_infinite() {
        return fail!("round: the number of digits must be an integer");
    }
    match kind {
        [] => {}
        [kind] if crate::builtins::args::is_word(kind, "decimals") => {}
        [kind] if crate::builtins::args::is_word(kind, "significant") => return significant(env, x, digits),
        _ => return fail!("round: the kind of digits must be \"decimals\" or \"significant\""),
    }
    let scale = Value::Num(10f64.powi(digits.clamp(-400.0, 400.0).abs() as i32));
    let (up, down) = if digits >= 0.0 { (BinaryOp::Mul, BinaryOp::Div) } else { (BinaryOp::Div, BinaryOp::Mul) };
    let scaled = ops::binary(env, up, x, &scale)?;
    let whole = apply(env, &MAP, &scaled)?;
    Ok(ops::binary(env, down, &whole, &scale)?.into())
}

/// Rounds each element to this many significant digits.
fn significant(env: &mut Env, x: &Value, digits: f64) -> Flow<Outcome> {
    if digits < 1.0 {
        return fail!("round: the number of significant digits must be positive");
    }
    if !x.is_numeric() || x.is_complex() {
        return fail!("round: significant digits are those of real numbers");
    }
    let one = |x: f64| {
        let decimals = digits - 1.0 - x.abs().log10().floor();
        if x == 0.0 || !x.is_finite() || decimals > 300.0 {
            return x;
        }
        let scale = 10f64.powi(decimals.abs() as i32);
        if decimals >= 0.0 { (x * scale).round() / scale } else { (x / scale).round() * scale }
    };
    let host = Host::of(env, x)?;
    let data = in_class(x.class(), host.elements().reals().iter().map(|&x| one(x)).collect());
    Ok(Value::tensor(Tensor::new(Dims::new(host.dims()), data)).into())
}

pub(super) fn log2(interp: &mut Interp, args: &[Value], outputs: usize) -> Flow<Outcome> {
    static MAP: Map = Map {
        name: "log2",
        real: f64::log2,
        reals: each!(f64::log2),
        complex: Complex::To(ops::complex::log2),
        beyond: Some(&NEGATIVE_LOG2),
        runtime: Some(Array::log2),
        integers: Integers::Double,
        chars: false,
    };
    let env = &mut interp.env;
    if outputs < 2 {
        return Ok(apply(env, &MAP, &args[0])?.into());
    }
    let class = check(&MAP, &args[0])?;
    let host = Host::of(env, &args[0])?;
    let class = if class == Class::Single { class } else { Class::Double };
    let dims = Dims::new(host.dims());
    if args[0].is_complex() {
        // The exponent is that of the magnitude.
        let split = |z: &Complex64| {
            let exponent =
                Some(libm::frexp(ops::complex::abs(*z))).filter(|(f, _)| f.is_finite()).map_or(0, |(_, e)| e);
            (Complex64::new(libm::ldexp(z.re, -exponent), libm::ldexp(z.im, -exponent)), exponent as f64)
        };
        let (fractions, exponents) = host.elements().complexes_in(class).iter().map(split).unzip();
        let fractions = Tensor::new(dims.clone(), ops::complex_in_class(class, fractions));
        let exponents = Tensor::new(dims, in_class(class, exponents));
        return Ok(vec![Value::tensor(fractions), Value::tensor(exponents)].into());
    }
    let parts: Vec<(f64, i32)> = host.elements().reals().iter().map(|&x| libm::frexp(x)).collect();
    let exponent = |&(f, e): &(f64, i32)| if f.is_finite() { e as f64 } else { 0.0 };
    let fractions = in_class(class, parts.iter().map(|p| p.0).collect());
    let exponents = in_class(class, parts.iter().map(exponent).collect());
    let values = vec![Value::tensor(Tensor::new(dims.clone(), fractions)), Value::tensor(Tensor::new(dims, exponents))];
    Ok(values.into())
}

/// Returns the exponent of the least power of two that is not below a magnitude.
fn exponent_above(x: f64) -> f64 {
    let (fraction, exponent) = libm::frexp(x.abs());
    match exponent {
        _ if x == 0.0 || !x.is_finite() => x.abs(),
        // Here a logarithm between -1 and 0 was rounded up.
        0 if fraction != 0.5 => -0.0,
        _ => exponent as f64 - (fraction == 0.5) as u8 as f64,
    }
}

pub(super) fn nextpow2(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    static MAP: Map = Map {
        name: "nextpow2",
        real: exponent_above,
        reals: each!(exponent_above),
        complex: Complex::ToReal(|z| exponent_above(ops::complex::abs(z))),
        beyond: None,
        runtime: None,
        integers: Integers::Double,
        chars: false,
    };
    if !args[0].is_numeric() {
        return fail!("nextpow2: X must be numeric");
    }
    Ok(apply(&mut interp.env, &MAP, &args[0])?.into())
}
