//! Joining: `[a, b; c]` and `cat (dim, …)`.
//!
//! In: parts of any classes. Out: one value. If a part is a cell, the result is a cell that contains the others;
//! otherwise its class is the first of these that occurs: char, the leftmost integer class, single, double. Only
//! logicals give a logical.
//! Must hold: parts without elements count for the class, and for the shape if they fit.

use super::structs;
use crate::env::Env;
use crate::error::{Flow, fail};
use crate::value::lazy::{lift, with_axes};
use crate::value::tensor::map_data;
use crate::value::{CellArray, Class, Data, Dims, Form, Lazy, Pinned, StructArray, Tensor, Value};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tidemill::{Array, Shape};

/// Joins parts in place behind the first one, if nothing else holds that. The result has room to spare, so a loop that
/// adds a little to a vector, a text or a list of cells each time seldom copies it. Returns `false` if the parts cannot
/// be joined so.
pub fn append(env: &Env, dim: usize, parts: &mut [Value]) -> bool {
    let Some((first, rest)) = parts.split_first_mut() else { return false };
    let lies_along =
        |dims: &Dims, n: usize| dim < 2 && dims.len() == 2 && dims[1 - dim] == 1 && dims[dim] == n && n > 1;
    let more: usize = rest.iter().map(Value::len).sum();
    if more == 0 || more > env.part_elements_max() {
        return false;
    }
    let fits = |v: &Value| match v {
        Value::Num(_) => true,
        Value::Tensor(t) => t.dims.len() == 2 && t.dims[1 - dim] == 1 && !t.is_empty(),
        _ => false,
    };
    match first {
        Value::Tensor(shared) => {
            let Some(tensor) = Arc::get_mut(shared) else { return false };
            if !lies_along(&tensor.dims, tensor.data.len()) || !rest.iter().all(fits) {
                return false;
            }
            match &mut *tensor.data {
                Data::F64(v) => {
                    let doubles = |p: &Value| match p {
                        Value::Tensor(t) => matches!(*t.data, Data::F64(_)),
                        _ => true,
                    };
                    if !rest.iter().all(doubles) {
                        return false;
                    }
                    for part in rest {
                        match part {
                            Value::Num(x) => v.push(*x),
                            Value::Tensor(t) => v.extend_from_slice(f64::slice(&t.data)),
                            _ => {}
                        }
                    }
                }
                Data::Char(v) => {
                    let alike = |p: &Value| match p {
                        Value::Tensor(t) => matches!(*t.data, Data::Char(_)) && t.double_quoted == tensor.double_quoted,
                        _ => false,
                    };
                    if !rest.iter().all(alike) {
                        return false;
                    }
                    for part in rest {
                        v.extend_from_slice(part.as_bytes().unwrap_or_default());
                    }
                }
                _ => return false,
            }
            tensor.data.recount();
            tensor.form = Form::Full;
            tensor.dims = tensor.dims.with(dim, tensor.data.len());
            true
        }
        Value::Cell(shared) => {
            let Some(cell) = Arc::get_mut(shared) else { return false };
            let row = |p: &Value| matches!(p, Value::Cell(c) if c.dims.len() == 2 && c.dims[1 - dim] == 1 && !c.items.is_empty());
            if !lies_along(&cell.dims, cell.items.len()) || !rest.iter().all(row) {
                return false;
            }
            for part in rest {
                if let Value::Cell(more) = part {
                    cell.items.extend_from_slice(&more.items);
                }
            }
            cell.dims = cell.dims.with(dim, cell.items.len());
            true
        }
        _ => false,
    }
}

/// Joins parts along dimension `dim` (from 0).
pub fn join(env: &mut Env, dim: usize, parts: &[Value]) -> Flow<Value> {
    Ok(match join_as_is(env, dim, parts)? {
        // Complex numbers without an imaginary part become real.
        Value::Tensor(t) if t.data.is_complex() => Value::tensor(Arc::unwrap_or_clone(t)),
        value => value,
    })
}

/// Does the same as [`join`], but complex stays complex.
pub fn join_as_is(env: &mut Env, dim: usize, parts: &[Value]) -> Flow<Value> {
    match parts {
        [] => return Ok(Value::empty()),
        [one] => return Ok(alone(one)),
        _ => {}
    }
    if let Some(value) = scalars(dim, parts) {
        return Ok(value);
    }
    if parts.iter().any(|p| matches!(p, Value::Map(_))) && !parts.iter().any(|p| matches!(p, Value::Cell(_))) {
        return super::map::join(env, dim, parts);
    }
    if parts.iter().any(|p| matches!(p, Value::Cell(_))) {
        return join_cells(env, dim, parts);
    }
    if let Some(at) = parts.iter().position(|p| matches!(p, Value::Struct(_) | Value::Function(_))) {
        return join_structs(dim, parts, at);
    }
    join_arrays(env, dim, parts)
}

/// Returns a single part between brackets, which is a range no more.
fn alone(value: &Value) -> Value {
    match value {
        Value::Tensor(t) if t.form != Form::Full => Value::tensor_as_is(t.seen_as(t.dims.clone())),
        other => other.clone(),
    }
}

/// Joins parts that are all doubles, or all truth values; `None` for others.
fn scalars(dim: usize, parts: &[Value]) -> Option<Value> {
    let mut extents = [1, 1, 1];
    *extents.get_mut(dim)? = parts.len();
    let data = match parts[0] {
        Value::Num(_) => {
            Data::F64(parts.iter().map(|p| if let Value::Num(x) = p { Some(*x) } else { None }).collect::<Option<_>>()?)
        }
        Value::Bool(_) => Data::Bool(
            parts.iter().map(|p| if let Value::Bool(x) = p { Some(*x) } else { None }).collect::<Option<_>>()?,
        ),
        _ => return None,
    };
    Some(Value::tensor_as_is(Tensor::new(Dims::new(&extents), data)))
}

/// The shape of the joined parts, and for each part whether it contributes elements.
struct Joined {
    dims: Dims,
    taken: SmallVec<[bool; 8]>,
}

/// Returns the joined shape. Extents must agree, except along `dim`. Parts without elements (0×0), and empty vectors,
/// may be left out.
fn shapes(dim: usize, parts: &[Dims]) -> Flow<Joined> {
    let mut dims = parts[0].clone();
    // Several `[]` behind each other still give an empty value.
    let mut nothing = dim > 1 && dims == Dims::zero();
    for next in &parts[1..] {
        dims = match nothing && next[..2] != [0, 0] {
            true => next.clone(),
            false => added(dim, &dims, next)?,
        };
        nothing &= *next == Dims::zero();
    }
    let rank = dims.len().max(dim + 1);
    let fits = |p: &Dims| (0..rank.max(p.len())).all(|d| d == dim || p.extent(d) == dims.extent(d));
    Ok(Joined { taken: parts.iter().map(|p| p.elements() > 0 && fits(p)).collect(), dims })
}

fn added(dim: usize, so_far: &Dims, next: &Dims) -> Flow<Dims> {
    let rank = so_far.len().max(next.len());
    if (0..rank).all(|d| d == dim || so_far.extent(d) == next.extent(d)) {
        let Some(extent) = so_far.extent(dim).checked_add(next.extent(dim)) else {
            return fail!("out of memory or dimension too large for Octave's index type");
        };
        return Ok(so_far.with(dim, extent));
    }
    let none = |d: &Dims| *d == Dims::zero();
    let vector = |d: &Dims| dim < 2 && matches!(d[..], [0, 1] | [1, 0]);
    match () {
        () if none(next) => Ok(so_far.clone()),
        () if none(so_far) => Ok(next.clone()),
        () if vector(next) && vector(so_far) => Ok(Dims::zero()),
        () if vector(next) => Ok(so_far.clone()),
        () if vector(so_far) => Ok(next.clone()),
        () => match dim {
            0 => fail!("vertical dimensions mismatch ({so_far} vs {next})"),
            1 => fail!("horizontal dimensions mismatch ({so_far} vs {next})"),
            _ => fail!("cat: dimension mismatch"),
        },
    }
}

/// Joins the parts' elements, taking a chunk of each part in turn.
fn interleave<T: Clone>(dim: usize, dims: &Dims, parts: &[(&[T], usize)]) -> Vec<T> {
    let inner: usize = (0..dim).map(|d| dims.extent(d)).product();
    let outer: usize = (dim + 1..dims.len()).map(|d| dims.extent(d)).product();
    let mut out = Vec::with_capacity(dims.elements());
    for turn in 0..outer {
        for (data, extent) in parts {
            let chunk = inner * extent;
            out.extend_from_slice(&data[turn * chunk..(turn + 1) * chunk]);
        }
    }
    out
}

/// Returns the class of the joined arrays, and whether they are complex.
fn class_of(parts: &[Value]) -> Flow<(Class, bool)> {
    let has = |class: Class| parts.iter().any(|p| p.class() == class);
    let integer = parts.iter().map(Value::class).find(|c| c.is_integer());
    let class = match integer {
        _ if has(Class::Char) => Class::Char,
        Some(integer) => integer,
        None if has(Class::Single) => Class::Single,
        None if parts.iter().all(|p| p.class() == Class::Logical) => Class::Logical,
        None => Class::Double,
    };
    let complex = parts.iter().find(|p| p.is_complex());
    match complex {
        Some(part) if !class.is_float() => {
            let what = if class == Class::Char { "char_array" } else { &format!("{}_array", class.name()) };
            fail!("octave_base_value::{what}_value(): wrong type argument '{}'", part.type_name())
        }
        other => Ok((class, other.is_some())),
    }
}

fn join_arrays(env: &mut Env, dim: usize, parts: &[Value]) -> Flow<Value> {
    let (class, complex) = class_of(parts)?;
    let all: Vec<Dims> = parts.iter().map(Value::dims).collect();
    let joined = shapes(dim, &all)?;
    env.check_elements(&joined.dims)?;
    let on_runtime = class.dtype().is_some() && !complex && joined.dims.len() <= Shape::RANK_MAX;
    let lazy = parts.iter().any(|p| matches!(p, Value::Lazy(_)));
    let grown = grown(env, parts);
    if on_runtime && lazy && joined.dims.elements() > 0 && grown != Some(true) {
        let touches = parts.iter().map(|p| if let Value::Lazy(l) = p { l.touches.load(Ordering::Relaxed) } else { 0 });
        let touches = touches.max().unwrap_or(0);
        let value = record(env, dim, parts, &joined, class)?;
        if let (Some(false), Value::Lazy(lazy)) = (grown, &value) {
            lazy.touches.store(touches, Ordering::Relaxed);
        }
        return Ok(value);
    }
    env.host_all(parts)?;
    env.check_host(&joined.dims, class.bytes())?;
    let tensor = on_host(env, dim, parts, &joined, class, complex)?;
    if grown.is_none() && on_runtime && tensor.len() > env.options.host_elements_max {
        let value = Value::tensor(tensor);
        return Ok(Lazy::new(lift(env, &value, class)?, class, Pinned::default(), false)?.value());
    }
    Ok(Value::tensor_as_is(tensor))
}

/// Returns `Some` if host values of few elements are joined to one array of the runtime: whether this has happened so
/// often that the array should be gathered to the host. Returns `None` for other parts.
fn grown(env: &Env, parts: &[Value]) -> Option<bool> {
    let mut away = parts.iter().filter_map(|p| if let Value::Lazy(l) = p { Some(l) } else { None });
    let lazy = away.next().filter(|l| !l.pinned.any())?;
    let more: usize = parts.iter().filter(|p| !matches!(p, Value::Lazy(_))).map(Value::len).sum();
    if away.next().is_some() || more > env.part_elements_max() {
        return None;
    }
    Some(lazy.touch(more))
}

fn on_host(env: &Env, dim: usize, parts: &[Value], joined: &Joined, class: Class, complex: bool) -> Flow<Tensor> {
    let mut taken: Vec<Arc<Tensor>> = Vec::with_capacity(parts.len());
    // The joined text is double-quoted if all of its parts are.
    let mut double_quoted = class == Class::Char;
    for (part, &takes) in parts.iter().zip(&joined.taken) {
        let tensor = env.host(part)?;
        double_quoted &= tensor.double_quoted;
        if takes {
            taken.push(tensor);
        }
    }
    let converted: Vec<Cow<'_, Data>> = taken
        .iter()
        .map(|t| match (t.data.class() == class, complex) {
            (true, false) => Cow::Borrowed(&*t.data),
            (_, true) => Cow::Owned(t.data.converted(class).complexified()),
            (false, false) => Cow::Owned(t.data.converted(class)),
        })
        .collect();
    let data = match converted.first() {
        None if complex => Data::zeros(class, joined.dims.elements()).complexified(),
        None => Data::zeros(class, joined.dims.elements()),
        Some(first) => map_data!(&**first, v => {
            let chunks: Vec<_> =
                converted.iter().zip(&taken).map(|(d, t)| (same_variant(v, d), t.dims.extent(dim))).collect();
            interleave(dim, &joined.dims, &chunks)
        }),
    };
    Ok(Tensor { double_quoted, ..Tensor::new(joined.dims.clone(), data) })
}

/// Returns the vector in `data`, which has the same type as `like`.
fn same_variant<'a, T: Variant>(_like: &[T], data: &'a Data) -> &'a [T] {
    T::slice(data)
}

/// An element type of [`Data`].
trait Variant: Sized {
    /// Returns the elements; none if they have another type.
    fn slice(data: &Data) -> &[Self];
}

macro_rules! variants {
    ($($ty:ty => $variant:ident),*;) => {$(
        impl Variant for $ty {
            fn slice(data: &Data) -> &[$ty] {
                match data {
                    Data::$variant(v) => v,
                    _ => &[],
                }
            }
        }
    )*};
}
variants! {
    f64 => F64, f32 => F32, i8 => I8, i16 => I16, i32 => I32, i64 => I64, u16 => U16, u32 => U32, u64 => U64,
    bool => Bool, num_complex::Complex64 => C64, num_complex::Complex32 => C32;
}

impl Variant for u8 {
    fn slice(data: &Data) -> &[u8] {
        match data {
            // Text and uint8 are both bytes. All parts have the same class, so they are not mixed up.
            Data::U8(v) | Data::Char(v) => v,
            _ => &[],
        }
    }
}

/// Joins on the runtime. Neighbouring parts in host memory are uploaded as one array.
fn record(env: &mut Env, dim: usize, parts: &[Value], joined: &Joined, class: Class) -> Flow<Value> {
    let mut arrays: Vec<Array> = Vec::new();
    let mut neighbours: Vec<Value> = Vec::new();
    let mut pinned = Pinned::default();
    let mut may_fault = false;
    for (part, _) in parts.iter().zip(&joined.taken).filter(|(_, takes)| **takes) {
        let Value::Lazy(lazy) = part else {
            neighbours.push(part.clone());
            continue;
        };
        flush(env, dim, class, &mut neighbours, &mut arrays)?;
        pinned = pinned | lazy.pinned;
        may_fault |= lazy.may_fault;
        arrays.push(lift(env, part, class)?);
    }
    flush(env, dim, class, &mut neighbours, &mut arrays)?;
    if let Some(first) = arrays.first_mut() {
        *first = with_axes(first, dim);
    }
    let refs: Vec<&Array> = arrays.iter().collect();
    let array = tidemill::cat(dim, &refs)?;
    Ok(Lazy::new(array, class, pinned, may_fault)?.value())
}

/// Turns neighbouring host parts into one array of the runtime.
fn flush(env: &Env, dim: usize, class: Class, parts: &mut Vec<Value>, arrays: &mut Vec<Array>) -> Flow<()> {
    if !parts.is_empty() {
        let all: Vec<Dims> = parts.iter().map(Value::dims).collect();
        let tensor = on_host(env, dim, parts, &shapes(dim, &all)?, class, false)?;
        arrays.push(lift(env, &Value::tensor(tensor), class)?);
        parts.clear();
    }
    Ok(())
}

/// Joins cells. A part that is no cell becomes a cell with that content, and an empty one is left out.
fn join_cells(env: &Env, dim: usize, parts: &[Value]) -> Flow<Value> {
    let cells: Vec<Arc<CellArray>> = parts
        .iter()
        .map(|part| match part {
            Value::Cell(cell) => cell.clone(),
            other if other.is_empty() => Arc::new(CellArray::new(Dims::zero(), Vec::new())),
            other => Arc::new(CellArray::new(Dims::scalar(), vec![other.clone()])),
        })
        .collect();
    let all: Vec<Dims> = cells.iter().map(|c| c.dims.clone()).collect();
    let joined = shapes(dim, &all)?;
    env.check_host(&joined.dims, size_of::<Value>())?;
    let taken = cells.iter().zip(&joined.taken).filter(|(_, takes)| **takes).map(|(c, _)| c);
    let chunks: Vec<_> = taken.map(|c| (&c.items[..], c.dims.extent(dim))).collect();
    Ok(Value::cell(joined.dims.clone(), interleave(dim, &joined.dims, &chunks)))
}

/// Whether an array among structs is left out: any `[]`, and an empty vector `behind` the first struct.
fn is_left_out(value: &Value, behind: bool) -> bool {
    let array = matches!(value, Value::Tensor(_) | Value::Lazy(_));
    array && matches!((&value.dims()[..], behind), ([0, 0], _) | ([0, 1] | [1, 0], true))
}

/// Joins structs with the same fields, and leaves `[]` out. `at` is the position of the first struct or function
/// handle.
fn join_structs(dim: usize, parts: &[Value], at: usize) -> Flow<Value> {
    let mut arrays: Vec<Arc<StructArray>> = Vec::new();
    for (i, part) in parts.iter().enumerate() {
        match part {
            Value::Struct(array) => arrays.push(array.clone()),
            other if other.is_char() && other.is_empty() => {
                let kind = parts[at].type_name();
                return fail!("octave_base_value::convert_to_str_internal (): wrong type argument '{kind}'");
            }
            other if is_left_out(other, i > at) => {}
            other => {
                let (left, right) = match i.cmp(&at) {
                    std::cmp::Ordering::Less => ("matrix", parts[at].type_name()),
                    _ if i == 0 => ("function handle", parts[1].type_name()),
                    _ if matches!(parts[at], Value::Struct(_)) => ("struct", other.type_name()),
                    _ => ("matrix", other.type_name()),
                };
                return fail!("concatenation operator not implemented for '{left}' by '{right}' operations");
            }
        }
    }
    let Some(first) = arrays.first().cloned() else { return Ok(Value::empty()) };
    let all: Vec<Dims> = arrays.iter().map(|a| a.dims.clone()).collect();
    let joined = shapes(dim, &all)?;
    let Some(like) = arrays.iter().find(|a| !a.fields.is_empty()) else {
        return Ok(Value::Struct(Arc::new(StructArray::empty(joined.dims).with_class(first.class))));
    };
    let taken: Vec<&Arc<StructArray>> =
        arrays.iter().zip(&joined.taken).filter(|(_, takes)| **takes).map(|(a, _)| a).collect();
    if taken.iter().any(|a| structs::in_order(a, like).is_none()) {
        return fail!("cat: field names mismatch in concatenating structs");
    }
    let fields = like.fields.keys().map(|name| {
        let chunks: Vec<_> =
            taken.iter().filter_map(|a| Some((&a.fields.get(name)?[..], a.dims.extent(dim)))).collect();
        (name.clone(), interleave(dim, &joined.dims, &chunks))
    });
    let fields = fields.collect();
    Ok(Value::Struct(Arc::new(StructArray { dims: joined.dims, fields, class: first.class, cleanup: None })))
}
