//! Struct arrays: fields, elements, and struct arrays as wholes.

use super::Values;
use super::grid::{Grid, resize};
use crate::error::{Flow, fail, fail_id};
use crate::value::{Dims, Form, StructArray, Value};
use std::sync::Arc;

/// `base.name`.
pub fn field(base: &Value, name: &str) -> Flow<Values> {
    let Value::Struct(array) = base else {
        return fail!("{} cannot be indexed with .", indexed_name(base));
    };
    match array.fields.get(name) {
        Some(values) => Ok(values.iter().map(read).collect()),
        None => fail_id!("Octave:invalid-indexing", "structure has no member '{name}'"),
    }
}

/// A field's value; an empty literal is one only in the field that it was written for.
fn read(value: &Value) -> Value {
    match value {
        Value::Tensor(t) if t.form == Form::Null => Value::tensor_as_is(t.seen_as(t.dims.clone())),
        other => other.clone(),
    }
}

/// A value's type, as messages about a wrong kind of index say it.
pub fn indexed_name(value: &Value) -> &'static str {
    match value {
        Value::Struct(_) => "struct",
        other => other.type_name(),
    }
}

/// The elements at these places.
pub fn gather(array: &StructArray, grid: &Grid, dims: Dims) -> StructArray {
    let fields = array.fields.iter().map(|(name, values)| (name.clone(), grid.gather(values))).collect();
    StructArray { dims, fields, class: array.class, cleanup: array.cleanup.clone() }
}

/// More elements, whose fields are empty.
pub fn grow(array: &mut StructArray, dims: &Dims) {
    for values in array.fields.values_mut() {
        resize(values, &array.dims, dims, Value::empty());
    }
    array.dims = dims.clone();
}

/// A field with empty values, unless it is there.
pub fn add_field(array: &mut StructArray, name: &Arc<str>) {
    let n = array.len();
    array.fields.entry(name.clone()).or_insert_with(|| vec![Value::empty(); n]);
}

/// The other's fields, in the order in which `like` has them; `None` where they are not the same.
pub fn in_order<'a>(other: &'a StructArray, like: &StructArray) -> Option<Vec<(Arc<str>, &'a Vec<Value>)>> {
    if other.fields.len() != like.fields.len() {
        return None;
    }
    like.fields.keys().map(|name| Some((name.clone(), other.fields.get(name)?))).collect()
}

/// Writes the elements of `value` at the places of `grid`; the array has its shape already. An array without fields
/// takes the value's.
///
/// # Errors
/// Fields that are not the same; the array is then as it was.
pub fn scatter(array: &mut StructArray, grid: &Grid, value: &StructArray) -> Flow<()> {
    if array.fields.is_empty() {
        value.fields.keys().for_each(|name| add_field(array, name));
    }
    let Some(fields) = in_order(value, array).map(|f| f.into_iter().map(|(_, v)| v).collect::<Vec<_>>()) else {
        return fail!("incompatible fields in struct assignment");
    };
    for (values, given) in array.fields.values_mut().zip(fields) {
        grid.scatter(values, given);
    }
    Ok(())
}
