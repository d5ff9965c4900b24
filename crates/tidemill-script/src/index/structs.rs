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

/// Returns a field's value. An empty literal is marked as such only in the field for which it was written.
fn read(value: &Value) -> Value {
    match value {
        Value::Tensor(t) if t.form == Form::Null => Value::tensor_as_is(t.seen_as(t.dims.clone())),
        other => other.clone(),
    }
}

/// Returns a value's type, as messages about a wrong kind of index name it.
pub fn indexed_name(value: &Value) -> &'static str {
    match value {
        Value::Struct(_) => "struct",
        other => other.type_name(),
    }
}

/// Returns the elements at these places.
pub fn gather(array: &StructArray, grid: &Grid, dims: Dims) -> StructArray {
    let fields = array.fields.iter().map(|(name, values)| (name.clone(), grid.gather(values))).collect();
    StructArray { dims, fields, class: array.class, cleanup: array.cleanup.clone() }
}

/// Adds elements, whose fields are empty.
pub fn grow(array: &mut StructArray, dims: &Dims) {
    for values in array.fields.values_mut() {
        resize(values, &array.dims, dims, Value::empty());
    }
    array.dims = dims.clone();
}

/// Adds a field with empty values, if it is missing.
pub fn add_field(array: &mut StructArray, name: &Arc<str>) {
    let n = array.len();
    array.fields.entry(name.clone()).or_insert_with(|| vec![Value::empty(); n]);
}

/// Returns the fields of `other` in the order of `like`; `None` if they have different fields.
pub fn in_order<'a>(other: &'a StructArray, like: &StructArray) -> Option<Vec<(Arc<str>, &'a Vec<Value>)>> {
    if other.fields.len() != like.fields.len() {
        return None;
    }
    like.fields.keys().map(|name| Some((name.clone(), other.fields.get(name)?))).collect()
}

/// Writes the elements of `value` at the places of `grid`; the array has its final shape already. An array without
/// fields gets those of the value.
///
/// # Errors
/// Different fields; the array is unchanged then.
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
