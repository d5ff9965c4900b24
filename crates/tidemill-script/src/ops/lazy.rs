//! Records operators on arrays of the runtime, with the language's rules for classes.
//!
//! Must hold: nothing here waits. Numbers are recorded as numbers, so that another number uses the same kernel.
//! Operations that the runtime cannot do as the language does (64-bit integers beside fractions) are left to the host.

use super::operand::nan_is_no_truth;
use crate::env::{Env, FaultLabel};
use crate::error::{Flow, fail};
use crate::syntax::ast::{BinaryOp, UnaryOp};
use crate::value::{Class, Data, Lazy, Pinned, Value};
use std::sync::Arc;
use tidemill::Array;

pub use crate::value::lazy::lift;

/// The op name in a fault of NaN as a truth value.
pub const TRUTH: &str = "logical";

/// Makes a value of this class from a recorded array, and converts it if the runtime computed in another class.
///
/// # Errors
/// The fault that the array carries; classes that the runtime lacks.
pub fn record(env: &Env, array: Array, class: Class, pinned: Pinned, may_fault: bool) -> Flow<Value> {
    let _ = env;
    let Some(dtype) = class.dtype() else {
        return fail!("arrays of class {} are kept in host memory", class.name());
    };
    let array = if array.dtype()? == dtype { array } else { array.cast_to(dtype) };
    Ok(Value::Lazy(Arc::new(Lazy::new(array, class, pinned, may_fault)?)))
}

/// Does the same as [`record`]. The value is pinned if one of its sources is, and may fault if one of them may.
///
/// # Errors
/// Those of [`record`].
pub fn record_from(env: &Env, array: Array, class: Class, sources: &[&Value]) -> Flow<Value> {
    let (pinned, may_fault) = marks(sources);
    record(env, array, class, pinned, may_fault)
}

/// Returns why sources stay on the runtime, and whether reading one may fail.
pub fn marks(sources: &[&Value]) -> (Pinned, bool) {
    let lazy = sources.iter().filter_map(|v| if let Value::Lazy(l) = v { Some(l) } else { None });
    lazy.fold(Default::default(), |(pinned, may_fault), l| (pinned | l.pinned, may_fault | l.may_fault))
}

/// An operand of a recorded op: a number, whose class adapts to the other operand, or an array.
pub(crate) enum Operand {
    /// One element in host memory.
    Number(f64),
    /// An array.
    Array(Array),
}

impl Operand {
    /// Makes an operand of a value; an array is lifted in `class`.
    ///
    /// # Errors
    /// As [`lift`].
    pub fn of(env: &Env, value: &Value, class: Class) -> Flow<Operand> {
        match number(value) {
            Some(x) if class == Class::Single => Ok(Operand::Number(x as f32 as f64)),
            Some(x) => Ok(Operand::Number(x)),
            None => Ok(Operand::Array(lift(env, value, class)?)),
        }
    }
}

/// Returns the number of a value that has one element in host memory; `None` for an integer that no double equals.
pub(crate) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Num(x) => Some(*x),
        Value::Bool(x) => Some(*x as u8 as f64),
        Value::Tensor(t) if matches!(&*t.data, Data::I64(v) if v.len() == 1 && v[0].unsigned_abs() > 1 << 53) => None,
        Value::Tensor(t) if t.len() == 1 && !t.data.is_complex() => Some(t.data.f64_at(0)),
        _ => None,
    }
}

/// Two operands, at least one of which is an array.
pub(crate) enum Pair {
    Arrays(Array, Array),
    Left(Array, f64),
    Right(f64, Array),
}

impl Pair {
    /// Lifts both operands.
    ///
    /// # Errors
    /// As [`lift`].
    pub fn of(env: &Env, a: &Value, b: &Value, classes: (Class, Class)) -> Flow<Pair> {
        Ok(match (Operand::of(env, a, classes.0)?, Operand::of(env, b, classes.1)?) {
            (Operand::Array(x), Operand::Array(y)) => Pair::Arrays(x, y),
            (Operand::Array(x), Operand::Number(y)) => Pair::Left(x, y),
            (Operand::Number(x), Operand::Array(y)) => Pair::Right(x, y),
            (Operand::Number(x), Operand::Number(_)) => {
                Pair::Left(lift(env, &Value::Num(x), Class::Double)?, number(b).unwrap_or_default())
            }
        })
    }

    /// Applies an op of the runtime to the pair.
    pub fn apply(
        &self,
        arrays: impl Fn(&Array, &Array) -> Array,
        left: impl Fn(&Array, f64) -> Array,
        right: impl Fn(f64, &Array) -> Array,
    ) -> Array {
        match self {
            Pair::Arrays(x, y) => arrays(x, y),
            Pair::Left(x, y) => left(x, *y),
            Pair::Right(x, y) => right(*x, y),
        }
    }
}

/// Applies a method to both arrangements of the pair.
macro_rules! method {
    ($pair:expr, $method:ident, $swapped:ident) => {
        $pair.apply(|x, y| x.$method(y), |x, y| x.$method(y), |x, y| y.$swapped(x))
    };
}

/// Applies an operator to the pair.
macro_rules! operator {
    ($pair:expr, $operator:tt) => {
        $pair.apply(|x, y| x $operator y, |x, y| x $operator y, |x, y| x $operator y)
    };
}

/// Whether an operand can take part in a recorded op.
fn is_recordable(value: &Value) -> bool {
    match value {
        Value::Lazy(_) => true,
        Value::Tensor(t) if t.data.is_complex() => false,
        other => other.class() != Class::Uint64,
    }
}

/// Whether an elementwise operator is recorded: an operand is on the runtime or the result is big, and the runtime has
/// all the classes.
pub(crate) fn is_recorded(env: &Env, a: &Value, b: &Value, class: Class, elements: usize) -> bool {
    let there = matches!(a, Value::Lazy(_)) || matches!(b, Value::Lazy(_));
    // Arrays of classes that the runtime lacks would be sent there as doubles, which take several times their memory.
    let lacks_dtype = |v: &Value| matches!(v, Value::Tensor(t) if t.len() > 1 && t.data.class().dtype().is_none());
    if !there && (lacks_dtype(a) || lacks_dtype(b)) {
        return false;
    }
    (there || elements > env.options.host_elements_max)
        && class.dtype().is_some()
        && is_recordable(a)
        && is_recordable(b)
}

/// Whether the runtime computes with 64-bit integers as the language does: it does beside integers and whole numbers.
fn is_exact(op: BinaryOp, a: &Value, b: &Value) -> bool {
    let wide = |v: &Value| v.class() == Class::Int64;
    let near = |v: &Value| {
        !v.class().is_float()
            || number(v).is_some_and(|x| x.trunc() == x && x.abs() < 9.0e15 && (x != 0.0 || x.is_sign_positive()))
    };
    let powers = op == BinaryOp::Pow && !b.class().is_integer() && number(b).is_none_or(|x| x < 0.0);
    !(wide(a) || wide(b)) || near(a) && near(b) && !powers
}

/// Records an elementwise operator; `None` if the host has to compute it.
///
/// # Errors
/// Faults of the operands; NaN as a truth value.
pub(crate) fn elementwise(env: &Env, op: BinaryOp, a: &Value, b: &Value, class: Class) -> Flow<Option<Value>> {
    if !is_exact(op, a, b) {
        return Ok(None);
    }
    match op {
        BinaryOp::And | BinaryOp::Or => logical(env, op, a, b).map(Some),
        BinaryOp::Pow if power_leaves(a, b) => Ok(None),
        BinaryOp::Pow => power(env, a, b, class).map(Some),
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div | BinaryOp::LeftDiv => {
            let pair = Pair::of(env, a, b, arithmetic_classes(a, b, class))?;
            let array = match op {
                BinaryOp::Sub => operator!(pair, -),
                BinaryOp::Mul => operator!(pair, *),
                BinaryOp::Div => operator!(pair, /),
                BinaryOp::LeftDiv => pair.apply(|x, y| y / x, |x, y| y / x, |x, y| y / x),
                _ => operator!(pair, +),
            };
            record_from(env, array, class, &[a, b]).map(Some)
        }
        _ => {
            let pair = Pair::of(env, a, b, compared_classes(a, b))?;
            let array = match op {
                BinaryOp::Eq => method!(pair, eq_to, eq_to),
                BinaryOp::Ne => method!(pair, ne_to, ne_to),
                BinaryOp::Lt => method!(pair, lt, gt),
                BinaryOp::Le => method!(pair, le, ge),
                BinaryOp::Gt => method!(pair, gt, lt),
                _ => method!(pair, ge, le),
            };
            record_from(env, array, Class::Logical, &[a, b]).map(Some)
        }
    }
}

/// Returns the classes in which the operands of an arithmetic op are lifted.
pub(crate) fn arithmetic_classes(a: &Value, b: &Value, class: Class) -> (Class, Class) {
    if !class.is_integer() {
        return (class, class);
    }
    // An integer array beside a float array is computed in double.
    let floats = |v: &Value| v.class().is_float() && number(v).is_none();
    if floats(a) || floats(b) {
        return (Class::Double, Class::Double);
    }
    // Chars are whole numbers that fit into every integer class except int8.
    let own = |v: &Value| if v.class().dtype().is_some() { v.class() } else { class };
    (own(a), own(b))
}

/// Returns the classes in which operands are compared.
fn compared_classes(a: &Value, b: &Value) -> (Class, Class) {
    let (p, q) = (a.class(), b.class());
    let single = (p == Class::Single || q == Class::Single) && !p.is_integer() && !q.is_integer();
    let own = |class: Class| match class.dtype() {
        _ if single => Class::Single,
        Some(_) => class,
        None => Class::Double,
    };
    (own(p), own(q))
}

fn logical(env: &Env, op: BinaryOp, a: &Value, b: &Value) -> Flow<Value> {
    let ((x, x_faults), (y, y_faults)) = (truths(env, a)?, truths(env, b)?);
    let array = match (x, y) {
        (Truth::Array(x), Truth::Array(y)) => {
            if op == BinaryOp::And {
                x & y
            } else {
                x | y
            }
        }
        (Truth::Array(x), Truth::Known(y)) | (Truth::Known(y), Truth::Array(x)) => {
            if op == BinaryOp::And {
                x & y
            } else {
                x | y
            }
        }
        (Truth::Known(x), Truth::Known(y)) => env.session.scalar(if op == BinaryOp::And { x & y } else { x | y }),
    };
    let (pinned, may_fault) = marks(&[a, b]);
    record(env, array, Class::Logical, pinned, may_fault || x_faults || y_faults)
}

enum Truth {
    Known(bool),
    Array(Array),
}

/// Returns a value as truth values, and whether reading them may fail because one is NaN.
fn truths(env: &Env, value: &Value) -> Flow<(Truth, bool)> {
    if let Some(x) = number(value) {
        return if x.is_nan() { Err(nan_is_no_truth()) } else { Ok((Truth::Known(x != 0.0), false)) };
    }
    let class = if value.class().dtype().is_some() { value.class() } else { Class::Double };
    let array = lift(env, value, class)?;
    if !class.is_float() {
        return Ok((Truth::Array(array), false));
    }
    if let Value::Tensor(t) = value {
        // Host values are checked at once.
        return if t.data.has_nan() { Err(nan_is_no_truth()) } else { Ok((Truth::Array(array), false)) };
    }
    let truth = array.cast_to(tidemill::DType::Bool);
    let sound = !array.isnan();
    Ok((Truth::Array(guarded(&truth, TRUTH, &sound, "invalid conversion from NaN to logical")), true))
}

/// Returns the array with a check: where `condition` is false, reading it fails with an error of `op` and `message`.
/// Nothing waits for the condition.
pub fn guarded(array: &Array, op: &'static str, condition: &Array, message: &str) -> Array {
    array.ensure_for(op, condition, message)
}

/// Records `a .^ b`. A negative base with a fractional exponent makes the array faulty.
fn power(env: &Env, a: &Value, b: &Value, class: Class) -> Flow<Value> {
    let pair = Pair::of(env, a, b, arithmetic_classes(a, b, class))?;
    let whole = |y: f64| y.trunc() == y;
    if class.is_integer() {
        let array = pair.apply(|x, y| x.pow(y), |x, y| x.pow(y), |x, y| lift_number(env, x).pow(y));
        return record_from(env, array, class, &[a, b]);
    }
    let (op, words) = FaultLabel::describe(env.fault_label, "power", "a negative number to a fractional power");
    let guard = |array: Array, sound: &Array| guarded(&array, op, sound, &words);
    let (array, may_fault) = match &pair {
        Pair::Left(x, 2.0) => (x.square(), false),
        Pair::Left(x, 3.0) => (x * x * x, false),
        Pair::Left(x, -1.0) => (1.0 / x, false),
        // A sum would lose the sign of -0.
        Pair::Left(x, 1.0) => (x * 1.0, false),
        // The magnitude makes the root of -0 a positive zero, as a power gives.
        Pair::Left(x, 0.5) => (guard(x.abs().sqrt(), &!x.lt(0.0)), true),
        Pair::Left(x, y) if whole(*y) => (x.pow(*y), false),
        Pair::Left(x, y) => (guard(x.pow(*y), &!x.lt(0.0)), true),
        Pair::Right(x, y) if *x >= 0.0 || x.is_nan() => (lift_number(env, *x).pow(y), false),
        Pair::Right(x, y) => (guard(lift_number(env, *x).pow(y), &(y.eq_to(y.fix()) | y.isnan())), true),
        Pair::Arrays(x, y) => (guard(x.pow(y), &(!x.lt(0.0) | y.eq_to(y.fix()) | y.isnan())), true),
    };
    let (pinned, inherited) = marks(&[a, b]);
    record(env, array, class, pinned, may_fault || inherited)
}

/// Whether a power of values in host memory may be complex. Then the host computes it.
fn power_leaves(a: &Value, b: &Value) -> bool {
    let any = |v: &Value, test: fn(f64) -> bool| match v {
        Value::Lazy(_) => None,
        Value::Tensor(t) => Some((0..t.len()).any(|i| test(t.data.f64_at(i)))),
        other => number(other).map(test),
    };
    let float = !a.class().is_integer() && !b.class().is_integer();
    float && any(a, |x| x < 0.0) == Some(true) && any(b, |y| y.trunc() != y) == Some(true)
}

fn lift_number(env: &Env, x: f64) -> Array {
    env.session.scalar(x)
}

/// Records a prefix operator.
///
/// # Errors
/// Faults of the operand.
pub(crate) fn unary(env: &Env, op: UnaryOp, a: &Arc<Lazy>) -> Flow<Value> {
    let value = Value::Lazy(a.clone());
    match op {
        UnaryOp::Plus if a.class != Class::Logical => Ok(value),
        UnaryOp::Plus => record_from(env, a.array.cast_to(tidemill::DType::F64), Class::Double, &[&value]),
        UnaryOp::Minus if a.class == Class::Logical => record_from(env, -&a.array, Class::Double, &[&value]),
        UnaryOp::Minus => record_from(env, -&a.array, a.class, &[&value]),
        UnaryOp::Not => {
            let (Truth::Array(x), faults) = truths(env, &value)? else {
                return fail!("an array of the runtime has no known truth");
            };
            record(env, !x, Class::Logical, a.pinned, a.may_fault || faults)
        }
    }
}

/// Records a matrix product.
pub(crate) fn multiply(env: &Env, a: &Value, b: &Value, class: Class) -> Flow<Value> {
    let array = lift(env, a, class)?.matmul(&lift(env, b, class)?);
    record_from(env, array, class, &[a, b])
}

/// Converts an array to another class.
///
/// # Errors
/// Faults of the array.
pub(crate) fn cast(env: &Env, a: &Arc<Lazy>, class: Class) -> Flow<Value> {
    let value = Value::Lazy(a.clone());
    if class != Class::Logical {
        return record_from(env, a.array.clone(), class, &[&value]);
    }
    let (Truth::Array(x), faults) = truths(env, &value)? else {
        return fail!("an array of the runtime has no known truth");
    };
    record(env, x.cast_to(tidemill::DType::Bool), class, a.pinned, a.may_fault || faults)
}
