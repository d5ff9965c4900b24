//! Follows steps into a nested value: `a.b(3).c{2} = v`. Missing containers are made.
//!
//! Must hold: a container on the path is taken out while its content changes, so that nothing else holds it and it
//! changes in place. If the change fails, it is put back (INDEX-3).

use super::grid::writing;
use super::read::{host as read_host, on_host};
use super::structs::{add_field, grow, indexed_name};
use super::subscript::place;
use super::write::{owned_cell, owned_struct};
use super::{Access, delete, grid, write};
use crate::env::Env;
use crate::error::{Flow, fail};
use crate::value::{Dims, Tensor, Value};
use std::sync::Arc;

/// The change at the end of the path.
pub enum Leaf {
    /// A value is written.
    Assign(Value),
    /// Elements are deleted.
    Delete,
}

/// Follows `steps` into the target, and makes the change `leaf` there.
///
/// # Errors
/// Steps that do not fit the values on the path; the target is unchanged then.
pub fn walk(env: &mut Env, target: &mut Option<Value>, steps: &[Access], leaf: Leaf) -> Flow<()> {
    if let Some(Value::Lazy(lazy)) = target
        && lazy.dims.elements() == 0
        && !steps.is_empty()
    {
        // An empty array needs no values from the runtime, and containers may be made of it.
        *target = Some(Value::tensor(Tensor::zeros(lazy.class, lazy.dims.clone())));
    }
    if let Some(Value::Map(map)) = target
        && !steps.is_empty()
    {
        let map = map.clone();
        return super::map::write(
            env,
            &map,
            steps,
            match leaf {
                Leaf::Assign(value) => value,
                Leaf::Delete => Value::empty(),
            },
        );
    }
    if let Some(Value::Parser(parser)) = target
        && !steps.is_empty()
    {
        let value = match leaf {
            Leaf::Assign(value) => value,
            Leaf::Delete => Value::empty(),
        };
        return super::parser::write(env, parser, steps, &value);
    }
    match (steps, leaf) {
        ([], Leaf::Assign(value)) => *target = Some(value),
        ([], Leaf::Delete) => *target = Some(Value::empty()),
        ([Access::Paren(subscripts)], Leaf::Assign(value)) => return write::paren(env, target, subscripts, value),
        ([Access::Paren(subscripts)], Leaf::Delete) => return delete::paren(env, target, subscripts),
        ([Access::Field(name), rest @ ..], leaf) => return through_field(env, target, None, name, rest, leaf),
        ([Access::Brace(subscripts), rest @ ..], leaf) => return through_brace(env, target, subscripts, rest, leaf),
        ([Access::Paren(subscripts), rest @ ..], leaf) => return through_paren(env, target, subscripts, rest, leaf),
    }
    Ok(())
}

const MANY: &str = "invalid dot name structure assignment because the structure array is empty.  \
                    Specify a subscript on the structure array to resolve.";

/// A place inside a container.
struct Spot {
    /// The container's dimensions, once the place exists.
    dims: Dims,
    /// The position of the place.
    at: usize,
    /// Whether the place exists already.
    exists: bool,
}

/// Returns the one place that subscripts name in a container of these dimensions.
fn spot(env: &mut Env, dims: &Dims, subscripts: &[Value]) -> Flow<Spot> {
    if let [Value::Num(k)] = subscripts
        && let Some(at) = place(*k)
        && at < dims.elements()
    {
        return Ok(Spot { dims: dims.clone(), at, exists: true });
    }
    let known = on_host(env, subscripts)?;
    let writing = writing(dims, known, &Dims::scalar())?;
    env.check_host(&writing.dims, size_of::<Value>())?;
    let new = writing.dims.clone();
    let grid = writing.grid();
    if grid.len() != 1 {
        return fail!("{MANY}");
    }
    Ok(Spot { exists: new == *dims, at: grid.first(), dims: new })
}

fn through_brace(
    env: &mut Env,
    target: &mut Option<Value>,
    subscripts: &[Value],
    rest: &[Access],
    leaf: Leaf,
) -> Flow<()> {
    let dims = match target {
        None => Dims::zero(),
        Some(Value::Cell(cell)) => cell.dims.clone(),
        Some(Value::Tensor(t)) if t.is_empty() => Dims::zero(),
        Some(Value::Function(_)) => return fail!("can't perform indexed assignment for function handle type"),
        Some(other) => return fail!("{} cannot be indexed with {{", indexed_name(other)),
    };
    let spot = spot(env, &dims, subscripts)?;
    let mut inner = None;
    if spot.exists
        && !rest.is_empty()
        && let Some(Value::Cell(cell)) = target
    {
        inner = Some(std::mem::replace(&mut Arc::make_mut(cell).items[spot.at], Value::Num(0.0)));
    }
    let taken = inner.is_some();
    if let Err(stop) = walk(env, &mut inner, rest, leaf) {
        if taken && let (Some(Value::Cell(cell)), Some(item)) = (target, inner) {
            Arc::make_mut(cell).items[spot.at] = item;
        }
        return Err(stop);
    }
    let cell = owned_cell(target);
    if cell.dims != spot.dims {
        grid::resize(&mut cell.items, &dims, &spot.dims, Value::empty());
        cell.dims = spot.dims;
    }
    cell.items[spot.at] = inner.unwrap_or_else(Value::empty);
    Ok(())
}

/// Follows `target.name…` and `target(subscripts).name…`.
fn through_field(
    env: &mut Env,
    target: &mut Option<Value>,
    subscripts: Option<&[Value]>,
    name: &Arc<str>,
    rest: &[Access],
    leaf: Leaf,
) -> Flow<()> {
    let dims = struct_dims(target, subscripts.is_some(), !rest.is_empty())?;
    let spot = match subscripts {
        Some(subscripts) => spot(env, &dims, subscripts)?,
        None => Spot { exists: matches!(target, Some(Value::Struct(_))), at: 0, dims: Dims::scalar() },
    };
    let mut inner = None;
    if spot.exists
        && !rest.is_empty()
        && let Some(Value::Struct(array)) = target
        && array.fields.contains_key(name)
    {
        let value = Arc::make_mut(array).fields.get_mut(name).and_then(|values| values.get_mut(spot.at));
        inner = value.map(|value| std::mem::replace(value, Value::Num(0.0)));
    }
    let taken = inner.is_some();
    if let Err(stop) = walk(env, &mut inner, rest, leaf) {
        if taken
            && let (Some(Value::Struct(array)), Some(value)) = (target, inner)
            && let Some(place) = Arc::make_mut(array).fields.get_mut(name).and_then(|values| values.get_mut(spot.at))
        {
            *place = value;
        }
        return Err(stop);
    }
    let array = owned_struct(target, dims);
    if array.dims != spot.dims {
        grow(array, &spot.dims);
    }
    add_field(array, name);
    if let Some(place) = array.fields.get_mut(name).and_then(|values| values.get_mut(spot.at)) {
        *place = inner.unwrap_or_else(Value::empty);
    }
    Ok(())
}

/// Returns the dimensions of a target that is a struct array, or becomes one. `nested`: another field follows.
fn struct_dims(target: &Option<Value>, subscripted: bool, nested: bool) -> Flow<Dims> {
    match target {
        None => Ok(Dims::zero()),
        Some(Value::Struct(array)) if subscripted || array.len() == 1 => Ok(array.dims.clone()),
        Some(Value::Function(_)) => fail!("can't perform indexed assignment for function handle type"),
        Some(value @ (Value::Tensor(_) | Value::Cell(_))) if value.is_empty() => {
            // Octave counts the places of `x.a`, of which a 0x3 array has none, but does not count them if another
            // field follows.
            let way = nested && matches!(value, Value::Tensor(_));
            if subscripted || way || value.dims() == Dims::zero() { Ok(Dims::zero()) } else { fail!("{MANY}") }
        }
        Some(Value::Cell(_)) if subscripted => fail!("cell cannot be indexed with ."),
        Some(Value::Struct(_)) => fail!("{MANY}"),
        Some(value) if subscripted => not_last(value),
        Some(value) if nested || value.dims().is_scalar() => fail!("{} cannot be indexed with .", value.type_name()),
        Some(_) => fail!("{MANY}"),
    }
}

fn not_last<T>(value: &Value) -> Flow<T> {
    let side = if value.dims().is_scalar() { "rhs" } else { "lhs" };
    fail!("in indexed assignment of {}, last {side} index must be ()", value.type_name())
}

/// Follows `target(subscripts)`, with more steps behind it.
fn through_paren(
    env: &mut Env,
    target: &mut Option<Value>,
    subscripts: &[Value],
    rest: &[Access],
    leaf: Leaf,
) -> Flow<()> {
    if let [Access::Field(name), rest @ ..] = rest {
        return through_field(env, target, Some(subscripts), name, rest, leaf);
    }
    match target {
        Some(base @ (Value::Cell(_) | Value::Struct(_))) => {
            let known = on_host(env, subscripts)?;
            let mut part = Some(read_host(env, base, known)?);
            walk(env, &mut part, rest, leaf)?;
            write::paren(env, target, subscripts, part.unwrap_or_else(Value::empty))
        }
        Some(Value::Function(_)) => fail!("can't perform indexed assignment for function handle type"),
        Some(value) => not_last(value),
        None => fail!("invalid assignment expression"),
    }
}
