//! Writing: `a(i, j) = v` into host arrays, cells and structs, with growth and the left side's class.
//!
//! Must hold:
//! - INDEX-3: everything that can fail is checked before the target changes; an error leaves the target unchanged.
//! - INDEX-4: a value is converted to the class of its target before it is written.

use super::grid::{Writing, resize, writing};
use super::lazy_write::{self, Write};
use super::read::on_host;
use super::structs;
use super::subscript::{Subscripts, place};
use crate::env::Env;
use crate::error::{Flow, fail};
use crate::value::{CellArray, Class, Data, Dims, Form, Lazy, Pinned, StructArray, Tensor, Value};
use std::borrow::Cow;
use std::sync::Arc;

/// Matches two vectors of the same variant.
macro_rules! each_pair {
    ($a:expr, $b:expr, $x:ident, $y:ident => $body:expr) => {
        match ($a, $b) {
            (Data::F64($x), Data::F64($y)) => $body,
            (Data::F32($x), Data::F32($y)) => $body,
            (Data::I8($x), Data::I8($y)) => $body,
            (Data::I16($x), Data::I16($y)) => $body,
            (Data::I32($x), Data::I32($y)) => $body,
            (Data::I64($x), Data::I64($y)) => $body,
            (Data::U8($x), Data::U8($y)) => $body,
            (Data::U16($x), Data::U16($y)) => $body,
            (Data::U32($x), Data::U32($y)) => $body,
            (Data::U64($x), Data::U64($y)) => $body,
            (Data::Char($x), Data::Char($y)) => $body,
            (Data::Bool($x), Data::Bool($y)) => $body,
            (Data::C64($x), Data::C64($y)) => $body,
            (Data::C32($x), Data::C32($y)) => $body,
            _ => unreachable!("INDEX-4: a value is converted to the class of its target before it is written"),
        }
    };
}

/// Writes one element by plain numbers in place, as the bodies of most loops do. It also writes the element behind the
/// end of a vector, and then makes room for several. Returns `false` for anything else.
#[inline]
pub fn scalar(target: &mut Option<Value>, subscripts: &[Value], value: &Value) -> bool {
    let Some(Value::Tensor(shared)) = target else { return false };
    let Some(tensor) = Arc::get_mut(shared) else { return false };
    let n = tensor.data.len();
    let at = match subscripts {
        [Value::Num(k)] => place(*k),
        [Value::Num(i), Value::Num(j)] if tensor.dims.len() == 2 => match (place(*i), place(*j)) {
            (Some(i), Some(j)) if i < tensor.dims.rows() && j < tensor.dims.columns() => {
                Some(i + j * tensor.dims.rows())
            }
            _ => None,
        },
        _ => None,
    };
    let Some(at) = at else { return false };
    if at > n {
        return false;
    }
    if at == n {
        // The element behind the end of a row or a column.
        let longer = match tensor.dims[..] {
            [0 | 1, _] => Dims::new(&[1, n + 1]),
            [_, 1] => Dims::new(&[n + 1, 1]),
            _ => return false,
        };
        match (&mut *tensor.data, value) {
            (Data::F64(v), Value::Num(x)) if subscripts.len() == 1 => v.push(*x),
            (Data::Bool(v), Value::Bool(x)) if subscripts.len() == 1 => v.push(*x),
            _ => return false,
        }
        tensor.data.recount();
        tensor.dims = longer;
    } else {
        match (&mut *tensor.data, value) {
            (Data::F64(v), Value::Num(x)) => v[at] = *x,
            (Data::F64(v), Value::Bool(x)) => v[at] = *x as u8 as f64,
            (Data::Bool(v), Value::Bool(x)) => v[at] = *x,
            (Data::F32(v), Value::Num(x)) => v[at] = *x as f32,
            _ => return false,
        }
    }
    // Writing on the diagonal of a diagonal matrix keeps its form.
    if tensor.form != Form::Diagonal || subscripts.len() != 2 || at % tensor.dims.rows() != at / tensor.dims.rows() {
        tensor.form = Form::Full;
    }
    true
}

/// `target(subscripts) = value`.
pub fn paren(env: &mut Env, target: &mut Option<Value>, subscripts: &[Value], value: Value) -> Flow<()> {
    if scalar(target, subscripts, &value) {
        return Ok(());
    }
    let unknown = |v: &Value| matches!(v, Value::Lazy(l) if l.steps.is_none());
    let is_lazy = |v: &Value| matches!(v, Value::Lazy(_));
    let pinned = target.as_ref().filter(|v| is_lazy(v)).map(Value::pinned).unwrap_or_default();
    let away = target.as_ref().is_some_and(is_lazy) || is_lazy(&value) || subscripts.iter().any(unknown);
    let (value, subscripts) = match away {
        false => (value, on_host(env, subscripts)?),
        true => match lazy_write::write(env, target, subscripts, &value)? {
            Write::Done => return Ok(()),
            Write::Host(value, subscripts) => (value, subscripts),
        },
    };
    let result = host(env, target, subscripts, value);
    if pinned.any() {
        pin(env, target, pinned)?;
    }
    result
}

/// Puts a host array that came from the runtime, where it was pinned, back there.
pub fn pin(env: &Env, target: &mut Option<Value>, pinned: Pinned) -> Flow<()> {
    if let Some(value) = target
        && value.class().dtype().is_some()
        && !value.is_complex()
        && !matches!(value, Value::Lazy(_))
    {
        let class = value.class();
        let array = crate::value::lazy::lift(env, value, class)?;
        *value = Lazy::new(array, class, pinned, false)?.value();
    }
    Ok(())
}

/// Does the same for values that are all in host memory.
///
/// # Errors
/// Shapes and classes that do not fit.
pub fn host(env: &Env, target: &mut Option<Value>, subscripts: Subscripts, value: Value) -> Flow<()> {
    let fresh = match target {
        None => true,
        // `[]` takes on the class of the value that is put into it.
        Some(Value::Tensor(t)) => t.dims == Dims::zero() && matches!(*t.data, Data::F64(_)),
        _ => false,
    };
    match (&*target, &value) {
        (Some(Value::Function(_)), _) => fail!("can't perform indexed assignment for function handle type"),
        (None, Value::Function(_)) => fail!("can't perform indexed assignment for function handle type"),
        (Some(Value::Cell(_)), _) => into_cell(env, target, subscripts, value),
        (_, Value::Cell(_)) if fresh => into_cell(env, target, subscripts, value),
        (Some(Value::Struct(_)), Value::Struct(given)) => into_struct(env, target, subscripts, given),
        (_, Value::Struct(given)) if fresh => into_struct(env, target, subscripts, given),
        (Some(Value::Struct(_)), _) => fail!("invalid structure assignment"),
        (Some(left), Value::Cell(_) | Value::Struct(_) | Value::Function(_)) => {
            let right = value.type_name();
            let left = match (left.class(), left.dims().is_scalar()) {
                // Octave has turned such values into numbers before it fails, so its message calls them so.
                (Class::Char | Class::Logical, false) => "matrix",
                _ if matches!(left, Value::Tensor(t) if t.is_range()) => "matrix",
                _ => left.type_name(),
            };
            fail!("operator =: no conversion for assignment of '{right}' to indexed '{left}'")
        }
        _ => {
            let given = env.host(&value)?;
            into_array(env, target, subscripts, &given)
        }
    }
}

fn plan(env: &Env, old: &Dims, subscripts: Subscripts, given: &Dims) -> Flow<Writing> {
    let writing = writing(old, subscripts, given)?;
    // A growing array is allocated anew.
    let grows = writing.dims.elements() > old.elements();
    env.check_host(&writing.dims, if grows { size_of::<f64>() } else { 1 })?;
    Ok(writing)
}

fn into_array(env: &Env, target: &mut Option<Value>, subscripts: Subscripts, given: &Tensor) -> Flow<()> {
    let old = target.as_ref().map_or_else(Dims::zero, Value::dims);
    let writing = plan(env, &old, subscripts, &given.dims)?;
    let class = target.as_ref().map_or(given.data.class(), Value::class);
    let complex = target.as_ref().is_some_and(Value::is_complex);
    let (data, left) = fitted(class, complex, given)?;
    let tensor = owned(target, class);
    if writing.nothing {
        return Ok(());
    }
    match left {
        Left::Same => {}
        Left::Complex => tensor.data = tensor.data.complexified().into(),
        Left::ComplexDouble => tensor.data = tensor.data.converted(Class::Double).complexified().into(),
    }
    let new = writing.dims.clone();
    let grid = writing.grid();
    each_pair!(&mut *tensor.data, &*data, l, r => {
        resize(l, &old, &new, Default::default());
        grid.scatter(l, r);
    });
    tensor.data.recount();
    tensor.dims = new;
    tensor.form = Form::Full;
    settle(target, &data, grid.len() == 0);
    Ok(())
}

/// Returns the target's array, which is made if there is none.
fn owned(target: &mut Option<Value>, class: Class) -> &mut Tensor {
    let tensor = match target.take() {
        Some(Value::Tensor(shared)) => shared,
        Some(Value::Num(x)) => Arc::new(Tensor::scalar(Data::F64(vec![x]))),
        Some(Value::Bool(x)) => Arc::new(Tensor::scalar(Data::Bool(vec![x]))),
        _ => Arc::new(Tensor::zeros(class, Dims::zero())),
    };
    let Value::Tensor(shared) = target.insert(Value::Tensor(tensor)) else { unreachable!("it was just put there") };
    Arc::make_mut(shared)
}

/// Turns arrays of one element into scalars, and complex arrays without imaginary parts into real ones (VALUE-1,
/// VALUE-3).
fn settle(target: &mut Option<Value>, written: &Data, nowhere: bool) {
    let Some(Value::Tensor(shared)) = target else { return };
    // If an imaginary part was just written, the array is complex.
    let may_be_real = match written {
        Data::C64(_) | Data::C32(_) if nowhere => true,
        Data::C64(v) => v.iter().all(|z| z.im == 0.0),
        Data::C32(v) => v.iter().all(|z| z.im == 0.0),
        _ => false,
    };
    if may_be_real {
        let tensor = Arc::make_mut(shared);
        let data = std::mem::replace(&mut *tensor.data, Data::F64(Vec::new()));
        let dims = tensor.dims.clone();
        tensor.data = Tensor::new(dims, data).narrowed().data;
    }
    let boxed = match &*shared.data {
        Data::F64(v) => shared.dims.is_scalar().then(|| Value::Num(v[0])),
        Data::Bool(v) => shared.dims.is_scalar().then(|| Value::Bool(v[0])),
        _ => None,
    };
    if boxed.is_some() {
        *target = boxed;
    }
}

/// The class that the left side must change to before a value is written into it.
#[derive(Clone, Copy, PartialEq)]
enum Left {
    Same,
    /// Complex, of its own class.
    Complex,
    /// Complex double.
    ComplexDouble,
}

/// Returns the value's elements in the form that the left side needs.
fn fitted(class: Class, complex: bool, given: &Tensor) -> Flow<(Cow<'_, Data>, Left)> {
    let data = &*given.data;
    if data.is_complex() {
        let left = if complex { Left::Same } else { Left::Complex };
        return Ok(match class {
            Class::Double | Class::Single if data.class() == class => (Cow::Borrowed(data), left),
            Class::Double | Class::Single => (Cow::Owned(data.converted(class)), left),
            // Other classes have no imaginary parts, so a complex value widens them.
            _ => (Cow::Owned(data.converted(Class::Double)), Left::ComplexDouble),
        });
    }
    if complex {
        return Ok((Cow::Owned(data.converted(class).complexified()), Left::Same));
    }
    if data.class() == class {
        return Ok((Cow::Borrowed(data), Left::Same));
    }
    let converted = match class {
        Class::Logical if matches!(data, Data::Char(_)) => {
            let name = if given.double_quoted { "string" } else { "sq_string" };
            return fail!("octave_base_value::bool_array_value(): wrong type argument '{name}'");
        }
        Class::Logical if data.has_nan() => return fail!("invalid conversion from NaN to logical"),
        Class::Char if data.has_nan() => return fail!("invalid conversion from NaN to character"),
        Class::Char => Data::Char(chars(data)),
        _ => data.converted(class),
    };
    Ok((Cow::Owned(converted), Left::Same))
}

/// Turns numbers into the bytes of text; a number that is no byte becomes NUL.
fn chars(data: &Data) -> Vec<u8> {
    let byte = |x: f64| {
        let x = x.round();
        if (0.0..=255.0).contains(&x) { x as u8 } else { 0 }
    };
    (0..data.len()).map(|i| byte(data.f64_at(i))).collect()
}

fn into_cell(env: &Env, target: &mut Option<Value>, subscripts: Subscripts, value: Value) -> Flow<()> {
    let old = target.as_ref().map_or_else(Dims::zero, Value::dims);
    let given = match value {
        Value::Cell(cell) => cell,
        // Octave puts any other value into each of the cells.
        other => Arc::new(CellArray::new(Dims::scalar(), vec![other])),
    };
    let writing = plan(env, &old, subscripts, &given.dims)?;
    let cell = owned_cell(target);
    if !writing.nothing {
        let new = writing.dims.clone();
        resize(&mut cell.items, &old, &new, Value::empty());
        writing.grid().scatter(&mut cell.items, &given.items);
        cell.dims = new;
    }
    Ok(())
}

/// Returns the target as a cell array; a value that is no cell is replaced by an empty one.
pub fn owned_cell(target: &mut Option<Value>) -> &mut CellArray {
    if !matches!(target, Some(Value::Cell(_))) {
        *target = Some(Value::cell(Dims::zero(), Vec::new()));
    }
    let Some(Value::Cell(shared)) = target else { unreachable!("it was just put there") };
    Arc::make_mut(shared)
}

/// Returns the target as a struct array; a value that is no struct is replaced by one of these dimensions without
/// fields.
pub fn owned_struct(target: &mut Option<Value>, dims: Dims) -> &mut StructArray {
    if !matches!(target, Some(Value::Struct(_))) {
        *target = Some(Value::Struct(Arc::new(StructArray::empty(dims))));
    }
    let Some(Value::Struct(shared)) = target else { unreachable!("it was just put there") };
    Arc::make_mut(shared)
}

fn into_struct(env: &Env, target: &mut Option<Value>, subscripts: Subscripts, given: &Arc<StructArray>) -> Flow<()> {
    let old = target.as_ref().map_or_else(Dims::zero, Value::dims);
    let writing = plan(env, &old, subscripts, &given.dims)?;
    if let Some(Value::Struct(array)) = target
        && !array.fields.is_empty()
        && structs::in_order(given, array).is_none()
    {
        return fail!("incompatible fields in struct assignment");
    }
    let given = given.clone();
    let array = owned_struct(target, Dims::zero());
    if writing.nothing {
        return Ok(());
    }
    structs::grow(array, &writing.dims);
    structs::scatter(array, &writing.grid(), &given)
}
