//! Operators and elementwise work on values: class rules, expansion, host loops, and recording on the runtime.
//!
//! Where an op is computed: if an operand is an array of the runtime, or if the result has more elements than
//! `Options::host_elements_max` and the runtime has its class, the op is recorded there. Otherwise it is computed here
//! at once. Operators on two numbers are done at the top of [`binary`].
//!
//! The files: `operand` has the operands, and `expand` combines two of them. `host` has the operators in host memory
//! (with `wide` for 64-bit integers, `complex` and `power`), and `lazy` records them on the runtime. `linear` has
//! matrices (with `gauss` for small real ones, `schur` for eigenvalues, `svd` for singular values, both by
//! `reflections`), `recorded` those of dlarrays, and `range` has the colon.

pub mod complex;
mod expand;
pub(crate) mod gauss;
mod host;
pub mod lazy;
pub mod linear;
mod operand;
mod power;
mod range;
pub(crate) mod recorded;
mod reflections;
pub(crate) use range::Span;
pub(crate) mod rotations;
pub(crate) mod schur;
pub(crate) mod svd;
pub(crate) mod symmetric;
pub(crate) mod systems;
mod wide;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use expand::{Side, expanded, zip};
pub use lazy::TRUTH;
pub(crate) use operand::{
    Elements, Host, arithmetic_class, complex_in_class, in_class, in_wide_class, is_wide, reals, type_name,
};

use super::env::Env;
use super::error::{Flow, fail};
use super::syntax::ast::{BinaryOp, UnaryOp};
use super::value::tensor::map_data;
use super::value::{CellArray, Class, Data, Dims, Form, Function, StructArray, Tensor, Value};
use std::sync::Arc;

/// Applies an operator to two values.
///
/// # Errors
/// Classes that do not combine, shapes that do not fit, `NaN` as a truth value.
#[inline]
pub fn binary(env: &mut Env, op: BinaryOp, a: &Value, b: &Value) -> Flow<Value> {
    if let (Value::Num(x), Value::Num(y)) = (a, b)
        && let Some(value) = numbers(op, *x, *y)
    {
        return Ok(value);
    }
    let value = general(env, op, a, b)?;
    let value = if keeps_permutation(op, a, b) { value.permutation() } else { value };
    Ok(if keeps_diagonal(op, a, b) { value.diagonal() } else { value })
}

/// Whether the result is known to be a permutation matrix because the operands are.
fn keeps_permutation(op: BinaryOp, a: &Value, b: &Value) -> bool {
    a.is_permutation()
        && match op {
            BinaryOp::MatMul => b.is_permutation(),
            BinaryOp::MatPow => matches!(b, Value::Num(x) if x.fract() == 0.0),
            _ => false,
        }
}

/// Whether the result is known to be a diagonal matrix because the operands are.
fn keeps_diagonal(op: BinaryOp, a: &Value, b: &Value) -> bool {
    if !a.is_diagonal() && !b.is_diagonal() {
        return false;
    }
    // A single matrix stays diagonal beside singles, and a double one beside all other classes.
    let single = |v: &Value| v.class() == Class::Single;
    let number = |v: &Value| v.is_scalar() && !v.class().is_integer();
    match (a.is_diagonal(), b.is_diagonal()) {
        _ if single(a) != single(b) => false,
        (true, true) => {
            matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::MatMul | BinaryOp::MatDiv | BinaryOp::MatLeftDiv)
        }
        (true, false) => matches!(op, BinaryOp::MatMul | BinaryOp::MatDiv | BinaryOp::MatPow) && number(b),
        (_, _) => matches!(op, BinaryOp::MatMul | BinaryOp::MatLeftDiv) && number(a),
    }
}

/// Applies an operator to two numbers; `None` if the result is complex or an error.
#[inline(always)]
fn numbers(op: BinaryOp, x: f64, y: f64) -> Option<Value> {
    Some(match op {
        BinaryOp::Add => Value::Num(x + y),
        BinaryOp::Sub => Value::Num(x - y),
        BinaryOp::Mul | BinaryOp::MatMul => Value::Num(x * y),
        BinaryOp::Div | BinaryOp::MatDiv => Value::Num(x / y),
        BinaryOp::LeftDiv | BinaryOp::MatLeftDiv => Value::Num(y / x),
        BinaryOp::Eq => Value::Bool(x == y),
        BinaryOp::Ne => Value::Bool(x != y),
        BinaryOp::Lt => Value::Bool(x < y),
        BinaryOp::Le => Value::Bool(x <= y),
        BinaryOp::Gt => Value::Bool(x > y),
        BinaryOp::Ge => Value::Bool(x >= y),
        BinaryOp::Pow | BinaryOp::MatPow => return power::scalars(x, y).map(Value::Num),
        BinaryOp::And | BinaryOp::Or if x.is_nan() || y.is_nan() => return None,
        BinaryOp::And => Value::Bool(x != 0.0 && y != 0.0),
        BinaryOp::Or => Value::Bool(x != 0.0 || y != 0.0),
    })
}

fn general(env: &mut Env, op: BinaryOp, a: &Value, b: &Value) -> Flow<Value> {
    let scalar = |v: &Value| match v {
        Value::Num(x) => Some(*x),
        Value::Bool(x) => Some(*x as u8 as f64),
        _ => None,
    };
    if let (Some(x), Some(y)) = (scalar(a), scalar(b))
        && let Some(value) = numbers(op, x, y)
    {
        return Ok(value);
    }
    match op {
        BinaryOp::MatMul if !a.is_scalar() && !b.is_scalar() => return product(env, a, b),
        BinaryOp::MatDiv | BinaryOp::MatLeftDiv | BinaryOp::MatPow
            if (a.is_dlarray() || b.is_dlarray())
                && let Some(value) = recorded::operator(env, op, a, b)? =>
        {
            return Ok(value);
        }
        BinaryOp::MatDiv if !b.is_scalar() => {
            let class = linear::matrix_class(op, a, b)?;
            env.host_all([a, b])?;
            return linear::right_divide(env, a, b, class);
        }
        BinaryOp::MatLeftDiv if !a.is_scalar() => {
            let class = linear::matrix_class(op, a, b)?;
            let (x, y) = Host::pair(env, a, b)?;
            return linear::left_divide(env, &x, &y, class);
        }
        BinaryOp::MatPow if !a.is_scalar() || !b.is_scalar() => {
            if let (Value::Cell(_) | Value::Struct(_) | Value::Function(_) | Value::Map(_) | Value::Parser(_), _)
            | (_, Value::Cell(_) | Value::Struct(_) | Value::Function(_) | Value::Map(_) | Value::Parser(_)) = (a, b)
            {
                return host::undefined(op, a, b);
            }
            return linear::power(env, a, b);
        }
        BinaryOp::Eq | BinaryOp::Ne => {
            if let (Value::Function(f), Value::Function(g)) = (a, b) {
                return Ok(Value::Bool(same_function(f, g) == (op == BinaryOp::Eq)));
            }
        }
        _ => {}
    }
    elementwise(env, op, a, b)
}

/// Whether two handles call the same function.
pub(crate) fn same_function(f: &Arc<Function>, g: &Arc<Function>) -> bool {
    match (&**f, &**g) {
        (Function::Named(f, _), Function::Named(g, _)) => f == g,
        (Function::Anonymous(f), Function::Anonymous(g)) => {
            let same_nest = || f.nest.as_ref().zip(g.nest.as_ref()).is_some_and(|(f, g)| Arc::ptr_eq(f, g));
            Arc::ptr_eq(f, g) || f.name().is_some() && Arc::ptr_eq(&f.code, &g.code) && same_nest()
        }
        _ => false,
    }
}

/// Applies an operator element by element. A matrix operator with a scalar operand is such an operator.
fn elementwise(env: &mut Env, op: BinaryOp, a: &Value, b: &Value) -> Flow<Value> {
    let class = host::result_class(op, a, b)?;
    let op = match op {
        BinaryOp::MatMul => BinaryOp::Mul,
        BinaryOp::MatDiv => BinaryOp::Div,
        BinaryOp::MatLeftDiv => BinaryOp::LeftDiv,
        BinaryOp::MatPow => BinaryOp::Pow,
        other => other,
    };
    // This is the short way for small arrays of one size, or beside a number.
    let small = |t: &Tensor| t.len() <= env.options.host_elements_max;
    match (a, b) {
        (Value::Tensor(x), Value::Tensor(y)) if x.dims == y.dims && small(x) => {
            return host::elementwise(op, &Host::Tensor(x), &Host::Tensor(y), class, x.dims.clone());
        }
        (Value::Tensor(x), Value::Num(y)) if small(x) => {
            return host::elementwise(op, &Host::Tensor(x), &Host::Number(*y), class, x.dims.clone());
        }
        (Value::Num(x), Value::Tensor(y)) if small(y) => {
            return host::elementwise(op, &Host::Number(*x), &Host::Tensor(y), class, y.dims.clone());
        }
        _ => {}
    }
    let dims = host::result_dims(op, &a.dims(), &b.dims())?;
    if lazy::is_recorded(env, a, b, class, dims.elements())
        && let Some(value) = lazy::elementwise(env, op, a, b, class)?
    {
        return Ok(value);
    }
    // Large results that need wider numbers are computed in blocks, so only the result's memory is checked.
    env.check_host(&dims, class.bytes() * (1 + usize::from(a.is_complex() || b.is_complex())))?;
    let (x, y) = Host::pair(env, a, b)?;
    host::elementwise(op, &x, &y, class, dims)
}

/// Multiplies two matrices.
fn product(env: &mut Env, a: &Value, b: &Value) -> Flow<Value> {
    let class = linear::matrix_class(BinaryOp::MatMul, a, b)?;
    let (left, right) = (a.dims(), b.dims());
    let fits = left.len() == 2 && right.len() == 2 && left.columns() == right.rows();
    let there = matches!(a, Value::Lazy(_)) || matches!(b, Value::Lazy(_));
    let elements = left.rows().saturating_mul(right.columns());
    let big = elements > env.options.host_elements_max;
    if fits && (there || big) && elements > 0 && !a.is_complex() && !b.is_complex() {
        env.check_elements(&[left.rows(), right.columns()])?;
        return lazy::multiply(env, a, b, class);
    }
    let (x, y) = Host::pair(env, a, b)?;
    linear::multiply(env, &x, &y, class)
}

/// Applies a prefix operator.
///
/// # Errors
/// Classes that it does not take.
#[inline]
pub fn unary(env: &mut Env, op: UnaryOp, a: &Value) -> Flow<Value> {
    match (op, a) {
        (UnaryOp::Minus, Value::Num(x)) => Ok(Value::Num(-x)),
        (UnaryOp::Not, Value::Bool(x)) => Ok(Value::Bool(!x)),
        (UnaryOp::Not, Value::Num(x)) if !x.is_nan() => Ok(Value::Bool(*x == 0.0)),
        (UnaryOp::Plus, Value::Num(_)) => Ok(a.clone()),
        _ => prefix(env, op, a),
    }
}

/// Returns an error if the host has no memory for this many elements of a class.
fn room(env: &Env, elements: usize, class: Class, is_complex: bool) -> Flow<()> {
    env.check_host(&[elements], class.bytes() * (1 + usize::from(is_complex)))
}

fn prefix(env: &mut Env, op: UnaryOp, a: &Value) -> Flow<Value> {
    if let Value::Cell(_) | Value::Struct(_) | Value::Function(_) | Value::Map(_) | Value::Parser(_) = a {
        return fail!(
            "unary operator '{}' not implemented for '{}' operands",
            match op {
                UnaryOp::Minus => '-',
                UnaryOp::Plus => '+',
                UnaryOp::Not => '!',
            },
            type_name(a, false)
        );
    }
    if let Value::Lazy(l) = a {
        return lazy::unary(env, op, l);
    }
    let host = Host::of(env, a)?;
    let dims = Dims::new(host.dims());
    let made = match (op, host.class()) {
        (UnaryOp::Not, _) => Class::Logical,
        (_, Class::Logical | Class::Char) => Class::Double,
        (UnaryOp::Plus, _) => return Ok(a.clone()),
        (_, class) => class,
    };
    room(env, dims.elements(), made, a.is_complex())?;
    let data = match host.elements() {
        Elements::Data(data) => data.in_blocks(|block| negated(op, Elements::Data(block), made))?,
        one => negated(op, one, made)?,
    };
    let value = Value::tensor(Tensor::new(dims, data));
    Ok(if op == UnaryOp::Minus && a.is_diagonal() { value.diagonal() } else { value })
}

/// Applies a prefix operator to elements of a class.
fn negated(op: UnaryOp, elements: Elements<'_>, class: Class) -> Flow<Data> {
    Ok(match (op, elements) {
        (UnaryOp::Not, elements) => match elements.truths() {
            Some(truths) => Data::Bool(truths.iter().map(|x| !x).collect()),
            None => return Err(operand::nan_is_no_truth()),
        },
        (UnaryOp::Plus, elements) => in_class(class, elements.reals().into_owned()),
        (UnaryOp::Minus, Elements::Data(Data::C64(v))) => Data::C64(v.iter().map(|z| -z).collect()),
        (UnaryOp::Minus, Elements::Data(Data::C32(v))) => Data::C32(v.iter().map(|z| -z).collect()),
        (UnaryOp::Minus, Elements::Data(Data::I64(v))) => {
            Data::I64(v.iter().map(|x| 0i64.saturating_sub(*x)).collect())
        }
        (UnaryOp::Minus, Elements::Data(Data::U64(v))) => Data::U64(vec![0; v.len()]),
        (UnaryOp::Minus, elements) => in_class(class, elements.reals().iter().map(|x| -x).collect()),
    })
}

/// Transposes a matrix of any class.
///
/// # Errors
/// More than two dimensions.
pub fn transpose(env: &mut Env, a: &Value, conjugate: bool) -> Flow<Value> {
    let dims = a.dims();
    if dims.len() > 2 {
        return fail!("transpose not defined for N-D objects");
    }
    let (rows, columns) = (dims.rows(), dims.columns());
    let flipped = Dims::new(&[columns, rows]);
    Ok(match a {
        Value::Num(_) | Value::Bool(_) => a.clone(),
        Value::Function(_) | Value::Map(_) | Value::Parser(_) | Value::Colon => {
            let symbol = if conjugate { "'" } else { ".'" };
            return fail!("unary operator '{symbol}' not implemented for '{}' operands", type_name(a, false));
        }
        Value::Tensor(t) => {
            let data = map_data!(&*t.data, v => transposed(v, rows, columns));
            let data = match data {
                Data::C64(v) if conjugate => Data::C64(v.into_iter().map(|z| z.conj()).collect()),
                Data::C32(v) if conjugate => Data::C32(v.into_iter().map(|z| z.conj()).collect()),
                data => data,
            };
            let mut out = Tensor::new(flipped, data);
            out.double_quoted = t.double_quoted;
            Value::tensor(match t.form {
                Form::Diagonal => out.diagonal(),
                Form::Permutation => out.permutation(),
                _ => out,
            })
        }
        Value::Lazy(l) => lazy::record_from(env, l.array.t(), l.class, &[a])?,
        Value::Cell(c) => Value::Cell(Arc::new(CellArray::new(flipped, transposed(&c.items, rows, columns)))),
        Value::Struct(s) => Value::Struct(Arc::new(StructArray {
            dims: flipped,
            fields: s.fields.iter().map(|(k, v)| (k.clone(), transposed(v, rows, columns))).collect(),
            class: s.class,
            cleanup: s.cleanup.clone(),
        })),
    })
}

fn transposed<T: Clone>(v: &[T], rows: usize, columns: usize) -> Vec<T> {
    if rows == 1 || columns == 1 {
        return v.to_vec();
    }
    let mut out = Vec::with_capacity(v.len());
    for r in 0..rows {
        out.extend(v.iter().skip(r).step_by(rows).cloned());
    }
    out
}

/// Makes the row `start:step:stop`. A long one is recorded on the runtime.
///
/// # Errors
/// Operands that are not real numbers.
pub fn range(env: &mut Env, start: &Value, step: Option<&Value>, stop: &Value) -> Flow<Value> {
    range::range(env, start, step, stop)
}

/// Whether a value counts as true in a condition: not empty, and no element zero.
///
/// # Errors
/// `NaN`, and classes that have no truth.
#[inline]
pub fn truth(env: &mut Env, value: &Value) -> Flow<bool> {
    match value {
        Value::Bool(b) => Ok(*b),
        Value::Num(x) if !x.is_nan() => Ok(*x != 0.0),
        Value::Cell(_) => fail!("invalid conversion from cell array to logical value"),
        Value::Struct(_) | Value::Function(_) | Value::Map(_) | Value::Parser(_) => Ok(false),
        _ => {
            let host = Host::of(env, value)?;
            match host.elements().truths() {
                Some(truths) => Ok(!truths.is_empty() && truths.iter().all(|&x| x)),
                None => Err(operand::nan_is_no_truth()),
            }
        }
    }
}

/// Converts a numeric, char or logical value to another class: saturating, rounding half away from zero.
///
/// # Errors
/// Classes that do not convert; `logical(NaN)`; complex to integer.
pub fn cast(env: &mut Env, value: &Value, class: Class) -> Flow<Value> {
    if value.class() == class && !(class == Class::Double && value.is_char()) {
        return Ok(value.clone());
    }
    match value {
        Value::Cell(_) | Value::Struct(_) | Value::Function(_) | Value::Map(_) | Value::Parser(_)
            if class == Class::Logical =>
        {
            return fail!("logical: wrong type argument '{}'", type_name(value, false));
        }
        Value::Cell(_) | Value::Struct(_) | Value::Function(_) | Value::Map(_) | Value::Parser(_) => {
            return fail!("invalid conversion from {} to {}", type_name(value, false), class.name());
        }
        Value::Tensor(t) if t.data.is_complex() && class.is_integer() => {
            return fail!("invalid conversion from {} to {}", type_name(value, false), class.name());
        }
        Value::Tensor(t) if matches!(*t.data, Data::Char(_)) && class == Class::Logical => {
            return fail!("logical: wrong type argument '{}'", type_name(value, false));
        }
        Value::Lazy(l) if class.dtype().is_some() => return lazy::cast(env, l, class),
        Value::Num(x) if class == Class::Logical && !x.is_nan() => return Ok(Value::Bool(*x != 0.0)),
        Value::Bool(x) if class == Class::Double => return Ok(Value::Num(*x as u8 as f64)),
        _ => {}
    }
    let host = env.host(value)?;
    room(env, host.len(), class, host.data.is_complex() && class.is_float())?;
    if class == Class::Logical {
        let Some(truths) = Elements::Data(&host.data).truths() else {
            return Err(operand::nan_is_no_truth());
        };
        return Ok(Value::tensor(Tensor::new(host.dims.clone(), Data::Bool(truths.into_owned()))));
    }
    let tensor = Tensor::new(host.dims.clone(), host.data.converted(class));
    Ok(Value::tensor_as_is(if value.is_diagonal() { tensor.diagonal() } else { tensor }))
}
