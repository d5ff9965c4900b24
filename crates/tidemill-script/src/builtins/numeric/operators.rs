//! The operators as functions: `plus (a, b, ...)`, `not (x)`, `transpose (x)`.

use crate::builtins::{ANY, Builtin, Outcome, Reach, row};
use crate::env::Env;
use crate::error::{Flow, Stop, fail};
use crate::index;
use crate::ops;
use crate::syntax::ast::{BinaryOp, UnaryOp};
use crate::value::{Class, Value};
use crate::vm::Interp;

/// Makes a row of an operator with two operands.
macro_rules! two {
    ($name:literal, $op:ident, $summary:literal) => {
        Builtin {
            name: $name,
            args_min: 2,
            args_max: 2,
            outputs_max: 1,
            reach: Reach::Script,
            usage: concat!($name, " (x, y)"),
            summary: $summary,
            run: |i, a, _| Ok(ops::binary(&mut i.env, BinaryOp::$op, &a[0], &a[1])?.into()),
        }
    };
}

/// Makes a row of an operator with two or more operands, which is applied from the left.
macro_rules! many {
    ($name:literal, $op:ident, $summary:literal) => {
        Builtin {
            name: $name,
            args_min: 2,
            args_max: ANY,
            outputs_max: 1,
            reach: Reach::Script,
            usage: concat!($name, " (x, y, ...)"),
            summary: $summary,
            run: |i, a, _| from_the_left(i, a, BinaryOp::$op),
        }
    };
}

/// The functions.
pub static ROWS: &[Builtin] = &[
    many!("plus", Add, "x + y."),
    two!("minus", Sub, "x - y."),
    many!("times", Mul, "x .* y."),
    two!("rdivide", Div, "x ./ y."),
    two!("ldivide", LeftDiv, "x .\\ y."),
    two!("power", Pow, "x .^ y."),
    many!("mtimes", MatMul, "x * y."),
    two!("mrdivide", MatDiv, "x / y."),
    two!("mldivide", MatLeftDiv, "x \\ y."),
    two!("mpower", MatPow, "x ^ y."),
    two!("eq", Eq, "x == y."),
    two!("ne", Ne, "x ~= y."),
    two!("lt", Lt, "x < y."),
    two!("le", Le, "x <= y."),
    two!("gt", Gt, "x > y."),
    two!("ge", Ge, "x >= y."),
    many!("and", And, "x & y."),
    many!("or", Or, "x | y."),
    row("xor", 2, ANY, 1, "xor (x, y, ...)", "Whether exactly one is true.", xor),
    row("not", 1, 1, 1, "not (x)", "~x.", |i, a, _| Ok(ops::unary(&mut i.env, UnaryOp::Not, &a[0])?.into())),
    row("uminus", 1, 1, 1, "uminus (x)", "-x.", |i, a, _| Ok(ops::unary(&mut i.env, UnaryOp::Minus, &a[0])?.into())),
    row("uplus", 1, 1, 1, "uplus (x)", "+x.", |i, a, _| Ok(ops::unary(&mut i.env, UnaryOp::Plus, &a[0])?.into())),
    row("transpose", 1, 1, 1, "transpose (x)", "x.'.", |i, a, _| Ok(ops::transpose(&mut i.env, &a[0], false)?.into())),
    row("ctranspose", 1, 1, 1, "ctranspose (x)", "x'.", |i, a, _| Ok(ops::transpose(&mut i.env, &a[0], true)?.into())),
    row("realpow", 2, 2, 1, "realpow (x, y)", "x .^ y; an error where it is complex.", |i, a, _| {
        super::elementwise::must_be_real(i, "realpow", |i| ops::binary(&mut i.env, BinaryOp::Pow, &a[0], &a[1]))
    }),
    row("pow2", 1, 2, 1, "pow2 (f, e)", "2 .^ e, or f .* 2 .^ e.", pow2),
];

fn from_the_left(interp: &mut Interp, args: &[Value], op: BinaryOp) -> Flow<Outcome> {
    // One step may need the host values of all of them, so they are asked for together.
    let mut result = args[0].clone();
    for other in &args[1..] {
        result = ops::binary(&mut interp.env, op, &result, other)?;
    }
    Ok(result.into())
}

fn xor(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &mut interp.env;
    let mut result = ops::cast(env, &args[0], Class::Logical)?;
    for other in &args[1..] {
        let other = ops::cast(env, other, Class::Logical)?;
        if result.dims().broadcast(&other.dims()).is_none() {
            return fail!("xor: X and Y must be of compatible size or scalars");
        }
        result = ops::binary(env, BinaryOp::Ne, &result, &other)?;
    }
    Ok(result.into())
}

fn pow2(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &mut interp.env;
    match args {
        [e] => Ok(ops::binary(env, BinaryOp::Pow, &Value::Num(2.0), e)?.into()),
        _ => {
            let power = ops::binary(env, BinaryOp::Pow, &Value::Num(2.0), &args[1])?;
            Ok(ops::binary(env, BinaryOp::Mul, &args[0], &power)?.into())
        }
    }
}

pub fn cat(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let d = crate::builtins::args::dim(&interp.env, &args[0], |_| "cat: DIM must be a valid dimension".to_string())?;
    if d > 1 << 10 {
        return fail!("cat: DIM must be a valid dimension");
    }
    joined(&mut interp.env, d, &args[1..])
}

/// Joins parts for a function. Errors of unfit parts have other words than those of brackets.
pub fn joined(env: &mut Env, d: usize, parts: &[Value]) -> Flow<Outcome> {
    // A single part is unchanged, even if it is a range.
    if let [one] = parts {
        return Ok(one.clone().into());
    }
    match index::concatenate(env, d, parts) {
        Err(Stop::Error(error)) if error.message.contains(" dimensions mismatch (") => {
            fail!("cat: dimension mismatch")
        }
        other => Ok(other?.into()),
    }
}
