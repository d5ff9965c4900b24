//! Tests operators against results of Octave (`recorded/binary.txt`), in host memory and on the runtime.

use super::*;
use crate::rig;
use num_complex::{Complex32, Complex64};

/// Parses a value of the recordings: class, dimensions, elements.
pub(crate) fn parsed(text: &str) -> Tensor {
    let mut parts = text.splitn(3, ' ');
    let (class, dims, elements) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap_or(""));
    let dims: Vec<usize> = dims.split('x').map(|d| d.parse().unwrap()).collect();
    let items: Vec<&str> = elements.split(',').filter(|e| !e.is_empty()).collect();
    let complex = || -> Vec<Complex64> {
        let parts = items.iter().map(|e| e.split_once(':').unwrap());
        parts.map(|(re, im)| Complex64::new(re.parse().unwrap(), im.parse().unwrap())).collect()
    };
    let data = match class {
        "cdouble" => Data::C64(complex()),
        "csingle" => Data::C32(complex().iter().map(|z| Complex32::new(z.re as f32, z.im as f32)).collect()),
        "int64" => Data::I64(items.iter().map(|e| e.parse().unwrap()).collect()),
        "uint64" => Data::U64(items.iter().map(|e| e.parse().unwrap()).collect()),
        name => in_class(Class::from_name(name).unwrap(), items.iter().map(|e| e.parse().unwrap()).collect()),
    };
    Tensor::new(Dims::new(&dims), data)
}

fn operator(symbol: &str) -> BinaryOp {
    use BinaryOp::*;
    [Add, Sub, Mul, Div, LeftDiv, Pow, MatMul, MatDiv, MatLeftDiv, MatPow, Eq, Ne, Lt, Le, Gt, Ge, And, Or]
        .into_iter()
        .find(|op| op.symbol() == symbol)
        .unwrap()
}

/// Whether two numbers are equal up to rounding. With `strict`, signs of zeros count.
fn close(x: f64, y: f64, tolerance: f64, strict: bool) -> bool {
    x == y && (!strict || x.is_sign_negative() == y.is_sign_negative())
        || x.is_nan() && y.is_nan()
        || (x - y).abs() <= tolerance * x.abs().max(y.abs())
}

/// Whether two arrays have the same class, size and, up to rounding, elements.
pub(crate) fn same(a: &Tensor, b: &Tensor, tolerance: f64, strict: bool) -> bool {
    let tolerance = if a.data.class() == Class::Single { tolerance.max(2e-7) } else { tolerance };
    a.dims == b.dims
        && std::mem::discriminant(&*a.data) == std::mem::discriminant(&*b.data)
        && match (&*a.data, &*b.data) {
            (Data::I64(x), Data::I64(y)) => x == y,
            (Data::U64(x), Data::U64(y)) => x == y,
            (Data::C64(_) | Data::C32(_), _) => (0..a.len()).all(|i| {
                let (x, y) = (a.data.c64_at(i), b.data.c64_at(i));
                // Rounding of a power also changes its angle, so each part is as accurate as the magnitude.
                let scale = x.norm().max(y.norm()).max(f64::MIN_POSITIVE);
                let part = |p: f64, q: f64| close(p, q, tolerance, false) || (p - q).abs() <= 4.0 * tolerance * scale;
                part(x.re, y.re) && part(x.im, y.im)
            }),
            _ => (0..a.len()).all(|i| close(a.data.f64_at(i), b.data.f64_at(i), tolerance, strict)),
        }
}

/// Whether MATLAB differs from the recorded result of Octave.
fn deviates(op: BinaryOp, a: &Tensor, b: &Tensor) -> bool {
    let complex = a.data.is_complex() || b.data.is_complex();
    let doubles = |t: &Tensor| t.data.class() == Class::Double && t.len() == 1;
    match op {
        // This concerns a zero to a complex power, or beside negative bases with fractional exponents: here 0^0 is 1
        // and 0^y is 0.
        BinaryOp::Pow => complex || (0..a.len()).any(|i| a.data.f64_at(i) < 0.0) && !a.data.class().is_integer(),
        // Octave compares a single array with a double scalar in double, and two arrays in single.
        // Octave computes these in double, MATLAB in extended precision.
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div => {
            (is_wide(a.data.class()) || is_wide(b.data.class())) && a.data.class() != b.data.class()
        }
        BinaryOp::Eq | BinaryOp::Lt => {
            a.data.class() == Class::Single && doubles(b) || doubles(a) && b.data.class() == Class::Single
        }
        _ => false,
    }
}

/// A line of the recordings: operands, operator and result.
struct Case {
    line: &'static str,
    op: BinaryOp,
    left: Tensor,
    right: Tensor,
    expected: &'static str,
}

fn cases() -> Vec<Case> {
    let mut values: Vec<Tensor> = Vec::new();
    let mut cases = Vec::new();
    for line in include_str!("recorded/binary.txt").lines() {
        if let Some(text) = line.strip_prefix("value ") {
            values.push(parsed(text));
            continue;
        }
        let mut parts = line.splitn(4, ' ');
        let mut next = || parts.next().unwrap();
        let (i, op, j, expected) = (next(), operator(next()), next(), next());
        let value = |k: &str| values[k.parse::<usize>().unwrap()].clone();
        cases.push(Case { line, op, left: value(i), right: value(j), expected });
    }
    cases
}

impl Case {
    /// Whether a result equals the recorded one.
    fn is_right(&self, result: &Result<Arc<Tensor>, crate::error::ScriptError>, lazy: bool) -> bool {
        match (result, self.expected) {
            (Err(error), "undefined") => error.message.contains("not implemented for"),
            (Err(error), text) if text.starts_with("error") => error.message.ends_with(&text[6..]),
            // On the runtime, NaN is only an error if it is there: an empty array has none.
            (Ok(t), text) if text.contains("NaN to logical") => lazy && t.is_empty(),
            (Ok(_), text) if text.starts_with("error") || text == "undefined" => false,
            (Ok(t), text) => {
                let tolerance = if self.op == BinaryOp::Pow { 1e-13 } else { 0.0 };
                same(t, &parsed(text), tolerance, !lazy) || deviates(self.op, &self.left, &self.right)
            }
            // On the runtime, a result that would be complex is a fault.
            (Err(_), _) => {
                lazy && self.op == BinaryOp::Pow
                    || self.op == BinaryOp::And && (self.left.data.has_nan() || self.right.data.has_nan())
            }
        }
    }
}

/// Fails if there are wrong results, and prints some of them in full.
pub(crate) fn report(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong[..wrong.len().min(60)].join("\n"));
}

#[test]
fn every_pair_of_classes_gives_what_octave_gives() {
    let mut env = rig::env();
    let mut wrong = Vec::new();
    for case in cases() {
        let (a, b) = (Value::tensor(case.left.clone()), Value::tensor(case.right.clone()));
        let result = rig::settle(&mut env, |env| {
            let value = binary(env, case.op, &a, &b)?;
            env.host(&value)
        });
        if !case.is_right(&result, false) {
            let got = result.map(|t| format!("{} {:?}", t.dims, t.data)).map_err(|e| e.message);
            wrong.push(format!("{}: {got:?}", case.line));
        }
    }
    report(&wrong);
}

#[test]
fn the_runtime_gives_what_the_host_gives() {
    let mut env = rig::env_lazy();
    let mut wrong = Vec::new();
    let mut recorded = Vec::new();
    for case in cases() {
        let (a, b) = (Value::tensor(case.left.clone()), Value::tensor(case.right.clone()));
        let (a, b) = (rig::to_runtime(&env, &a), rig::to_runtime(&env, &b));
        let result = rig::settle(&mut env, |env| binary(env, case.op, &a, &b));
        match result {
            Ok(value) => recorded.push((case, value)),
            Err(error) if !case.is_right(&Err(error.clone()), true) => wrong.push(format!("{}: {error}", case.line)),
            Err(_) => {}
        }
    }
    // Arrays that were recorded together are gathered together.
    for part in recorded.chunks(500) {
        let _ = rig::settle(&mut env, |env| env.host_all(part.iter().map(|(_, v)| v)));
        for (case, value) in part {
            let result = rig::to_host(&mut env, value);
            if !case.is_right(&result, true) {
                let got = result.map(|t| format!("{} {:?}", t.dims, t.data)).map_err(|e| e.message);
                wrong.push(format!("{}: {got:?}", case.line));
            }
        }
    }
    report(&wrong);
}
