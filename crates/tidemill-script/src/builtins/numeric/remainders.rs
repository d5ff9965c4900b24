//! Functions of two arrays, element by element, that are no operators: remainders, angles, integer division, roots, the
//! beta function, bits.

use super::special;
use crate::builtins::{ANY, Builtin, Outcome, row};
use crate::env::Env;
use crate::error::{Flow, fail};
use crate::ops::lazy::{self, Pair};
use crate::ops::{self, Host, Side, expanded, in_class, in_wide_class, type_name, zip};
use crate::value::{Class, Data, Dims, Tensor, Value};
use crate::vm::Interp;
use tidemill::Array;

/// The functions.
pub static ROWS: &[Builtin] = &[
    row("mod", 2, 2, 1, "mod (x, y)", "The remainder with the sign of y; x where y is 0.", |i, a, _| {
        Ok(remainder(&mut i.env, Kind::Mod, &a[0], &a[1])?.into())
    }),
    row("rem", 2, 2, 1, "rem (x, y)", "The remainder with the sign of x; NaN where y is 0.", |i, a, _| {
        Ok(remainder(&mut i.env, Kind::Rem, &a[0], &a[1])?.into())
    }),
    row("atan2", 2, 2, 1, "atan2 (y, x)", "The angle of the point (x, y).", |i, a, _| {
        Ok(floats(&mut i.env, "atan2", &a[0], &a[1], f64::atan2, |y, x| y.atan2(x))?.into())
    }),
    row("hypot", 2, ANY, 1, "hypot (x, y, ...)", "The length of the vector (x, y).", hypot),
    row("idivide", 2, 3, 1, "idivide (x, y, op)", "An integer quotient, by fix, floor, ceil or round.", idivide),
    row("nthroot", 2, 2, 1, "nthroot (x, n)", "The real nth root.", nthroot),
    row("beta", 2, 2, 1, "beta (a, b)", "The beta function.", |i, a, _| {
        beta(&mut i.env, "beta", &a[0], &a[1], special::beta)
    }),
    row("betaln", 2, 2, 1, "betaln (a, b)", "The logarithm of the beta function.", |i, a, _| {
        beta(&mut i.env, "betaln", &a[0], &a[1], special::ln_beta)
    }),
];

/// Returns an error for arguments that a function of two real numbers does not take.
fn check(name: &str, a: &Value, b: &Value, logical: bool) -> Flow<()> {
    for value in [a, b] {
        let right = match value.class() {
            Class::Logical | Class::Char => logical,
            class => class.is_numeric(),
        };
        if !right {
            return fail!("{name}: wrong type argument '{}'", type_name(value, false));
        }
    }
    for value in [a, b] {
        if value.is_complex() {
            return fail!("{name}: not defined for complex numbers");
        }
    }
    Ok(())
}

/// Does the same as [`check`], and returns the result's class.
fn checked(name: &str, a: &Value, b: &Value) -> Flow<Class> {
    check(name, a, b, true)?;
    match ops::arithmetic_class(a.class(), b.class()) {
        Some(class) => Ok(class),
        None => fail!("{name}: cannot combine {} and {}", a.class().name(), b.class().name()),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Mod,
    Rem,
}

/// `mod` and `rem`.
fn remainder(env: &mut Env, kind: Kind, a: &Value, b: &Value) -> Flow<Value> {
    let name = if kind == Kind::Mod { "mod" } else { "rem" };
    if let (Value::Num(x), Value::Num(y)) = (a, b) {
        return Ok(Value::Num(of_floats(kind, *x, *y, f64::EPSILON)));
    }
    let class = checked(name, a, b)?;
    let dims = expanded(name, &a.dims(), &b.dims())?;
    if lazy::is_recorded(env, a, b, class, dims.elements()) {
        return recorded(env, kind, a, b, class);
    }
    let (x, y) = Host::pair(env, a, b)?;
    Ok(Value::tensor(Tensor::new(dims.clone(), on_host(kind, &x, &y, class, &dims))))
}

fn on_host(kind: Kind, x: &Host<'_>, y: &Host<'_>, class: Class, dims: &Dims) -> Data {
    if class.is_integer() {
        // Both operands are first converted to the integer class.
        let whole = |h: &Host<'_>| {
            let (least, greatest) = class.integer_range().unwrap_or((0, 0));
            let integers = h.elements().integers();
            integers.into_iter().map(|x| x.clamp(least, greatest)).collect::<Vec<i128>>()
        };
        let (a, b) = (whole(x), whole(y));
        let (a, b) = (Side { data: &a[..], dims: x.dims() }, Side { data: &b[..], dims: y.dims() });
        let out = zip(a, b, dims, |a, b| of_integers(kind, a, b));
        return match ops::is_wide(class) {
            true => in_wide_class(class, out.into_iter()),
            false => in_class(class, out.into_iter().map(|x| x as f64).collect()),
        };
    }
    let epsilon = if class == Class::Single { f32::EPSILON as f64 } else { f64::EPSILON };
    let (a, b) = (x.elements().reals_in(class), y.elements().reals_in(class));
    let (a, b) = (Side { data: &a[..], dims: x.dims() }, Side { data: &b[..], dims: y.dims() });
    in_class(class, zip(a, b, dims, |a, b| of_floats(kind, a, b, epsilon)))
}

fn of_integers(kind: Kind, x: i128, y: i128) -> i128 {
    match (kind, y) {
        (Kind::Mod, 0) => x,
        (Kind::Rem, 0) => 0,
        (Kind::Rem, _) => x % y,
        (Kind::Mod, _) => ((x % y) + y) % y,
    }
}

/// Returns a remainder of floats. If the divisor is no integer, a quotient that is an integer up to rounding counts as
/// one.
fn of_floats(kind: Kind, x: f64, y: f64, epsilon: f64) -> f64 {
    if y == 0.0 {
        return if kind == Kind::Mod { x } else { f64::NAN };
    }
    let sign = if kind == Kind::Mod { y } else { x };
    if y.is_infinite() && x.is_finite() {
        let same = kind == Kind::Rem || x == 0.0 || (x < 0.0) == (y < 0.0);
        return if same { x.abs().copysign(sign) } else { y };
    }
    let quotient = x / y;
    let nearest = quotient.round();
    if y.trunc() != y && (quotient - nearest).abs() <= epsilon * nearest.abs() {
        return 0.0f64.copysign(sign);
    }
    if quotient.abs() >= 9007199254740992.0 {
        let rest = x % y;
        let moved = kind == Kind::Mod && rest != 0.0 && (rest < 0.0) != (y < 0.0);
        return if moved { rest + y } else { rest.abs().copysign(sign) };
    }
    let whole = if kind == Kind::Mod { quotient.floor() } else { quotient.trunc() };
    let rest = x - y * whole;
    if x == y { rest } else { rest.abs().copysign(sign) }
}

fn recorded(env: &mut Env, kind: Kind, a: &Value, b: &Value, class: Class) -> Flow<Value> {
    let as_class = |env: &mut Env, v: &Value| match v {
        Value::Lazy(_) => Ok(v.clone()),
        _ => ops::cast(env, v, class),
    };
    let (a, b) = (as_class(env, a)?, as_class(env, b)?);
    let pair = Pair::of(env, &a, &b, (class, class))?;
    let op = |x: &Array, y: &Array| if kind == Kind::Mod { x.modulo(y) } else { x.remainder(y) };
    let op_number = |x: &Array, y: f64| if kind == Kind::Mod { x.modulo(y) } else { x.remainder(y) };
    let of_number = |x: f64, y: &Array| op(&env.session.scalar(x), y);
    let exact = pair.apply(op, op_number, of_number);
    let whole = matches!(&pair, Pair::Left(_, y) if y.trunc() == *y);
    if class.is_integer() || whole {
        return lazy::record_from(env, exact, class, &[&a, &b]);
    }
    let epsilon = if class == Class::Single { f32::EPSILON as f64 } else { f64::EPSILON };
    let quotient = pair.apply(|x, y| x / y, |x, y| x / y, |x, y| x / y);
    let nearest = quotient.round();
    let near = (&quotient - &nearest).abs().le(nearest.abs() * epsilon) & nearest.ne_to(0.0);
    let near = match &pair {
        Pair::Left(..) => near,
        Pair::Arrays(_, y) | Pair::Right(_, y) => near & y.ne_to(y.fix()),
    };
    lazy::record_from(env, near.select(0.0, &exact), class, &[&a, &b])
}

/// Computes a function of two real numbers that gives floats.
fn floats(
    env: &mut Env,
    name: &str,
    a: &Value,
    b: &Value,
    f: fn(f64, f64) -> f64,
    method: fn(&Array, &Array) -> Array,
) -> Flow<Value> {
    if let (Value::Num(x), Value::Num(y)) = (a, b) {
        return Ok(Value::Num(f(*x, *y)));
    }
    check(name, a, b, false)?;
    let class = if [a, b].iter().any(|v| v.class() == Class::Single) { Class::Single } else { Class::Double };
    let dims = expanded(name, &a.dims(), &b.dims())?;
    if lazy::is_recorded(env, a, b, class, dims.elements()) {
        let array = match Pair::of(env, a, b, (class, class))? {
            Pair::Arrays(x, y) => method(&x, &y),
            Pair::Left(x, y) => method(&x, &scalar(env, y, class)),
            Pair::Right(x, y) => method(&scalar(env, x, class), &y),
        };
        return lazy::record_from(env, array, class, &[a, b]);
    }
    let (x, y) = Host::pair(env, a, b)?;
    let (p, q) = (x.elements().reals_in(class), y.elements().reals_in(class));
    let (p, q) = (Side { data: &p[..], dims: x.dims() }, Side { data: &q[..], dims: y.dims() });
    Ok(Value::tensor(Tensor::new(dims.clone(), in_class(class, zip(p, q, &dims, f)))))
}

fn scalar(env: &Env, x: f64, class: Class) -> Array {
    if class == Class::Single { env.session.scalar(x as f32) } else { env.session.scalar(x) }
}

fn hypot(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &mut interp.env;
    let magnitude = |env: &mut Env, x: &Value| match x {
        Value::Tensor(t) if t.data.is_complex() => {
            let z = Data::clone(&t.data);
            let lengths = (0..t.len()).map(|i| ops::complex::abs(z.c64_at(i))).collect();
            let _ = env;
            Value::tensor(Tensor::new(t.dims.clone(), in_class(t.data.class(), lengths)))
        }
        other => other.clone(),
    };
    let mut result = magnitude(env, &args[0]);
    for other in &args[1..] {
        let other = magnitude(env, other);
        result = floats(env, "hypot", &result, &other, f64::hypot, |x, y| x.hypot(y))?;
    }
    Ok(result.into())
}

fn idivide(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &mut interp.env;
    let (a, b) = (&args[0], &args[1]);
    let by = match args.get(2) {
        None => "fix".to_string(),
        Some(word) => word.as_text().unwrap_or_default(),
    };
    if !["fix", "floor", "ceil", "round"].contains(&by.as_str()) {
        return fail!("idivide: unrecognized rounding type \"{by}\"");
    }
    let (p, q) = (a.class(), b.class());
    if !p.is_integer() && !q.is_integer() {
        return fail!("idivide: at least one input (X or Y) must be an integer type");
    }
    if p.is_integer() && q.is_integer() && p != q {
        return fail!("idivide: integer type of X ({}) must match integer type of Y ({})", p.name(), q.name());
    }
    let class = checked("idivide", a, b)?;
    let dims = expanded("quotient", &a.dims(), &b.dims())?;
    let (x, y) = Host::pair(env, a, b)?;
    let whole = |x: &f64| x.trunc() == *x && x.abs() < 1e30;
    let is_whole = |h: &Host<'_>| !h.class().is_float() || h.elements().reals().iter().all(whole);
    let data = if is_whole(&x) && is_whole(&y) {
        let (p, q) = (x.elements().integers(), y.elements().integers());
        let (p, q) = (Side { data: &p[..], dims: x.dims() }, Side { data: &q[..], dims: y.dims() });
        let out = zip(p, q, &dims, |x, y| whole_quotient(&by, x, y));
        match ops::is_wide(class) {
            true => in_wide_class(class, out.into_iter()),
            false => in_class(class, out.into_iter().map(|x| x as f64).collect()),
        }
    } else {
        let (p, q) = (x.elements().reals(), y.elements().reals());
        let (p, q) = (Side { data: &p[..], dims: x.dims() }, Side { data: &q[..], dims: y.dims() });
        let out = zip(p, q, &dims, |x, y| match by.as_str() {
            "floor" => (x / y).floor(),
            "ceil" => (x / y).ceil(),
            "round" => (x / y).round(),
            _ => (x / y).trunc(),
        });
        in_class(class, out)
    };
    Ok(Value::tensor(Tensor::new(dims, data)).into())
}

fn whole_quotient(by: &str, x: i128, y: i128) -> i128 {
    if y == 0 {
        return x.signum() * (1 << 100);
    }
    let (quotient, rest) = (x / y, x % y);
    let away = x.signum() * y.signum();
    match by {
        "floor" if rest != 0 && away < 0 => quotient - 1,
        "ceil" if rest != 0 && away > 0 => quotient + 1,
        "round" if 2 * rest.abs() >= y.abs() => quotient + away,
        _ => quotient,
    }
}

fn nthroot(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &mut interp.env;
    let (x, n) = (&args[0], &args[1]);
    if x.is_complex() || n.is_complex() {
        return fail!("nthroot: X must not contain complex values");
    }
    if n.len() != 1 || !n.is_numeric() {
        return fail!("nthroot: N must be a real nonzero scalar");
    }
    env.host_all([x, n])?;
    let n = crate::builtins::args::number(env, "nthroot", n)?;
    if n == 0.0 || n.is_nan() {
        return fail!("nthroot: N must be a real nonzero scalar");
    }
    let odd = n.trunc() == n && (n / 2.0).trunc() != n / 2.0;
    let host = Host::of(env, x)?;
    let class = if host.class() == Class::Single { Class::Single } else { Class::Double };
    let values = host.elements().reals();
    if !odd && values.iter().any(|&x| x < 0.0) {
        return fail!("nthroot: N must be an odd integer if X contains negative values");
    }
    let roots = values.iter().map(|&x| root(x, n)).collect();
    Ok(Value::tensor(Tensor::new(Dims::new(host.dims()), in_class(class, roots))).into())
}

/// Returns the nth root of a number, by a power and a step of Newton's method.
fn root(x: f64, n: f64) -> f64 {
    if n == 3.0 {
        return libm::cbrt(x);
    }
    let y = x.abs().powf(1.0 / n);
    let better = if n.trunc() == n && n > 0.0 && y.is_finite() && y != 0.0 {
        ((x.abs() / y.powf(n - 1.0)) + y * (n - 1.0)) / n
    } else {
        y
    };
    if better.is_finite() { better.copysign(x) } else { y.copysign(x) }
}

fn beta(env: &mut Env, name: &str, a: &Value, b: &Value, f: fn(f64, f64) -> f64) -> Flow<Outcome> {
    for value in [a, b] {
        if value.is_complex() || !value.is_numeric() && value.class() != Class::Logical {
            return fail!("{name}: A and B must be real");
        }
    }
    let class = if [a, b].iter().any(|v| v.class() == Class::Single) { Class::Single } else { Class::Double };
    if a.dims() != b.dims() && !a.is_scalar() && !b.is_scalar() {
        return fail!("{name}: A and B must have consistent sizes");
    }
    let dims = if a.is_scalar() { b.dims() } else { a.dims() };
    let (x, y) = Host::pair(env, a, b)?;
    let (p, q) = (x.elements().reals_in(class), y.elements().reals_in(class));
    let (p, q) = (Side { data: &p[..], dims: x.dims() }, Side { data: &q[..], dims: y.dims() });
    Ok(Value::tensor(Tensor::new(dims.clone(), in_class(class, zip(p, q, &dims, f)))).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(x: f64, y: f64) -> (f64, f64) {
        (of_floats(Kind::Mod, x, y, f64::EPSILON), of_floats(Kind::Rem, x, y, f64::EPSILON))
    }

    #[test]
    fn remainders_take_their_signs_and_snap() {
        assert_eq!(both(-5.0, 3.0), (1.0, -2.0));
        assert_eq!(both(5.0, -3.0), (-1.0, 2.0));
        assert_eq!(both(5.5, -2.0), (-0.5, 1.5));
        assert_eq!(both(2.0, 0.1), (0.0, 0.0));
        assert_eq!(both(2.0, 2.0 - 2.0 * f64::EPSILON), (0.0, 0.0));
        assert_eq!(both(-0.1, 1.0), (0.9, -0.1));
        assert_eq!(both(-1e-20, 1.0), (1.0, -1e-20));
        assert_eq!(both(9.007199254740992e15, 3.0).0, 2.0);
        assert_eq!(both(5.0, f64::INFINITY), (5.0, 5.0));
        assert!(both(5.0, 0.0).1.is_nan());
        assert_eq!(both(5.0, 0.0).0, 5.0);
        assert!(both(6.0, -3.0).0.is_sign_negative());
        assert!(both(-6.0, 3.0).1.is_sign_negative());
    }
}
