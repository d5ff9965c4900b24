//! Operators and elementwise work on values: class rules, expansion, host loops, and recording on the runtime.
//!
//! Which side computes: if an operand is an array of the runtime, or the result has more elements than
//! `Options::host_elements_max` and its class is one of the runtime's, the op is recorded there; else it is computed
//! here at once.

use super::env::Env;
use super::error::{Flow, fail};
use super::syntax::ast::{BinaryOp, UnaryOp};
use super::value::{Class, Value};

/// An operator on two values.
///
/// # Errors
/// Classes that do not combine, shapes that do not fit, `NaN` as a truth value.
pub fn binary(env: &mut Env, op: BinaryOp, a: &Value, b: &Value) -> Flow<Value> {
    let _ = (env, a, b);
    fail!("binary operator '{}' is not built yet", op.symbol())
}

/// A prefix operator.
///
/// # Errors
/// Classes that it does not take.
pub fn unary(env: &mut Env, op: UnaryOp, a: &Value) -> Flow<Value> {
    let _ = (env, op, a);
    fail!("unary operators are not built yet")
}

/// A matrix's transpose, of any class.
///
/// # Errors
/// More than two dimensions.
pub fn transpose(env: &mut Env, a: &Value, conjugate: bool) -> Flow<Value> {
    let _ = (env, a, conjugate);
    fail!("transpose is not built yet")
}

/// `start:step:stop`, a row; long ones are recorded on the runtime.
///
/// # Errors
/// Operands that are not real numbers.
pub fn range(env: &mut Env, start: &Value, step: Option<&Value>, stop: &Value) -> Flow<Value> {
    let _ = (env, start, step, stop);
    fail!("ranges are not built yet")
}

/// Whether a value counts as true in a condition: not empty, and no element zero.
///
/// # Errors
/// `NaN`, and classes that have no truth.
pub fn truth(env: &mut Env, value: &Value) -> Flow<bool> {
    match value {
        Value::Bool(b) => Ok(*b),
        Value::Num(x) if !x.is_nan() => Ok(*x != 0.0),
        _ => {
            let _ = env;
            fail!("truth is not built yet")
        }
    }
}

/// A numeric, char or logical value in another class: saturating, rounding half away from zero.
///
/// # Errors
/// Classes that do not convert; `logical(NaN)`; complex to integer.
pub fn cast(env: &mut Env, value: &Value, class: Class) -> Flow<Value> {
    let _ = (env, value, class);
    fail!("conversions are not built yet")
}
