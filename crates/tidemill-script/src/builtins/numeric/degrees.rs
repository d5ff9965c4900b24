//! Trigonometric functions of angles in degrees, which are exact where the value is 0, 1/2 or 1; and conversions.
//!
//! In: numeric arrays. Out: arrays of the same size. Arrays on the runtime are computed there.

use super::elementwise::{call, with_fault_label};
use crate::builtins::Outcome;
use crate::env::FaultLabel;
use crate::error::{Flow, fail};
use crate::ops::{self, Host, in_class, lazy};
use crate::syntax::ast::BinaryOp;
use crate::value::{Class, Dims, Tensor, Value};
use crate::vm::Interp;
use num_complex::Complex64;
use std::f64::consts::PI;
use tidemill::Array;

/// The functions of an angle in degrees.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Turn {
    Sine,
    Cosine,
    Tangent,
}

impl Turn {
    fn of(self, x: f64) -> f64 {
        let around = x % 360.0;
        if !around.is_finite() {
            return f64::NAN;
        }
        let quarter = (around / 90.0).round();
        let rest = around - quarter * 90.0;
        let (s, k) = (rest.to_radians().sin(), rest.to_radians().cos());
        let s = if rest.abs() == 30.0 { 0.5f64.copysign(rest) } else { s };
        let (s, k) = match quarter.rem_euclid(4.0) as u8 {
            0 => (s, k),
            1 => (k, -s),
            2 => (-s, -k),
            _ => (-k, s),
        };
        match self {
            Turn::Sine => s + 0.0,
            Turn::Cosine => k + 0.0,
            Turn::Tangent if k == 0.0 => f64::INFINITY.copysign(s),
            Turn::Tangent if rest.abs() == 45.0 => (s / k).signum(),
            Turn::Tangent => s / k + 0.0,
        }
    }

    /// Does the same for a complex angle, whose real part is reduced exactly.
    fn of_complex(self, z: Complex64) -> Complex64 {
        let (s, k) = (Turn::Sine.of(z.re), Turn::Cosine.of(z.re));
        let (sh, ch) = (z.im.to_radians().sinh(), z.im.to_radians().cosh());
        let part = |x: f64, y: f64| if y == 0.0 { 0.0 } else { x * y };
        let sine = Complex64::new(s * ch, part(k, sh));
        let cosine = Complex64::new(k * ch, part(-s, sh));
        match self {
            Turn::Sine => sine,
            Turn::Cosine => cosine,
            Turn::Tangent if z.im == 0.0 => Complex64::new(self.of(z.re), 0.0),
            Turn::Tangent => sine / cosine,
        }
    }

    /// Does the same on the runtime.
    fn of_array(self, x: &Array) -> Array {
        let around = x.remainder(360.0);
        let quarter = (&around / 90.0).round();
        let rest = &around - &quarter * 90.0;
        let radians = &rest * (PI / 180.0);
        let (s, k) = (radians.sin(), radians.cos());
        let s = rest.abs().eq_to(30.0).select(rest.sign() * 0.5, s);
        let turn = quarter.modulo(4.0);
        let pick = |a: &Array, b: &Array, c: Array, d: Array| {
            turn.eq_to(0.0).select(a, turn.eq_to(1.0).select(b, turn.eq_to(2.0).select(c, d)))
        };
        let sine = || pick(&s, &k, -&s, -&k);
        let cosine = || pick(&k, &-&s, -&k, s.clone());
        match self {
            // A zero has no sign here.
            Turn::Sine => sine() + 0.0,
            Turn::Cosine => cosine() + 0.0,
            Turn::Tangent => {
                let (s, k) = (sine(), cosine());
                let quotient = &s / &k;
                let quotient = rest.abs().eq_to(45.0).select(quotient.sign(), quotient);
                k.eq_to(0.0).select(s.sign() * f64::INFINITY, quotient + 0.0)
            }
        }
    }
}

pub(super) fn degrees(interp: &mut Interp, name: &'static str, x: &Value, turn: Turn) -> Flow<Outcome> {
    let env = &mut interp.env;
    if !x.is_numeric() && x.class() != Class::Logical {
        return fail!("{name}: X must be numeric");
    }
    if x.is_complex() {
        let host = env.host(x)?;
        let data = (0..host.len()).map(|i| turn.of_complex(host.data.c64_at(i))).collect();
        let class = if x.class() == Class::Single { Class::Single } else { Class::Double };
        return Ok(Value::tensor(Tensor::new(host.dims.clone(), ops::complex_in_class(class, data))).into());
    }
    if let Value::Num(x) = x {
        return Ok(Value::Num(turn.of(*x)).into());
    }
    let class = if x.class() == Class::Single { Class::Single } else { Class::Double };
    if matches!(x, Value::Lazy(_)) || x.len() > env.options.host_elements_max {
        let array = turn.of_array(&lazy::lift(env, x, class)?);
        return Ok(lazy::record_from(env, array, class, &[x])?.into());
    }
    let host = Host::of(env, x)?;
    let data = in_class(class, host.elements().reals().iter().map(|&x| turn.of(x)).collect());
    Ok(Value::tensor(Tensor::new(Dims::new(host.dims()), data)).into())
}

/// Returns the angle that another function gives, in degrees.
pub(super) fn in_degrees(
    interp: &mut Interp,
    (name, radians): (&'static str, &str),
    x: &Value,
    outputs: usize,
) -> Flow<Outcome> {
    let label = FaultLabel { name, beyond: None, is_real: false };
    let radians = with_fault_label(interp, label, |i| call(i, radians, x, outputs))?;
    let env = &mut interp.env;
    let scaled = ops::binary(env, BinaryOp::Mul, &radians, &Value::Num(180.0))?;
    Ok(ops::binary(env, BinaryOp::Div, &scaled, &Value::Num(PI))?.into())
}

pub(super) fn turned(interp: &mut Interp, what: &str, x: &Value, factor: f64) -> Flow<Outcome> {
    if !x.class().is_float() {
        return fail!("{what} must be a floating point class (double or single)");
    }
    Ok(ops::binary(&mut interp.env, BinaryOp::Mul, x, &Value::Num(factor))?.into())
}
