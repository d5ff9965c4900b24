//! `m(key)`, `m(key) = value`, `m.Count`: reading and writing of a `containers.Map`, and joining maps.
//!
//! Must hold: an unfit key or value is refused before anything is written.

use super::{Access, Values};
use crate::env::Env;
use crate::error::{Flow, fail};
use crate::value::map::{Key, Map, Values as Kind};
use crate::value::{Class, Data, Tensor, Value};
use std::sync::Arc;

/// Turns a value into a key of this map; `None` if the map has no such keys.
///
/// # Errors
/// A need.
pub fn key(env: &Env, map: &Map, value: &Value) -> Flow<Option<Key>> {
    if map.has_texts() {
        return Ok(value.as_bytes().map(|text| Key::Text(text.to_vec())));
    }
    let number = matches!(value, Value::Num(_) | Value::Bool(_) | Value::Tensor(_) | Value::Lazy(_));
    if !number || value.is_char() || value.is_complex() || value.len() != 1 {
        return Ok(None);
    }
    let data = &env.host(value)?.data;
    Ok(Some(Key::Number(data.converted(map.key_class).f64_at(0))))
}

fn fitting_key(env: &Env, map: &Map, value: &Value) -> Flow<Key> {
    match key(env, map, value)? {
        Some(key) => Ok(key),
        None => {
            fail!("containers.Map: specified key type does not match the type of this container")
        }
    }
}

/// Formats a key for a message: a text unchanged, a number as `disp` shows it.
pub fn shown(env: &mut Env, value: &Value) -> Flow<String> {
    let text = crate::display::disp(env, value)?;
    Ok(String::from_utf8_lossy(&text).trim().to_string())
}

/// `map(key)`.
pub fn read(env: &mut Env, map: &Arc<Map>, subscripts: &[Value]) -> Flow<Value> {
    let Some(given) = subscripts.first() else { return Ok(Value::Map(map.clone())) };
    let key = fitting_key(env, map, given)?;
    match map.get(&key) {
        Some(value) => Ok(value),
        None => {
            let key = shown(env, given)?;
            fail!("containers.Map: specified key <{key}> does not exist")
        }
    }
}

/// `map.name`.
pub fn field(map: &Map, name: &str) -> Flow<Values> {
    Ok(smallvec::smallvec![match name {
        "Count" => Value::tensor_as_is(Tensor::scalar(Data::U64(vec![map.len() as u64]))),
        "length" => Value::from(map.len()),
        "KeyType" => Value::string(map.key_class.name()),
        "ValueType" => Value::string(map.values.name()),
        "keys" => map.keys(),
        "values" => map.values(),
        _ => return fail!("containers.Map: unknown property '{name}'"),
    }])
}

/// Turns a value into the form in which a map of this kind keeps it; `None` if the map does not take it.
///
/// # Errors
/// A need.
pub fn fitting_value(env: &Env, kind: Kind, value: Value) -> Flow<Option<Value>> {
    let Kind::Of(class) = kind else { return Ok(Some(value)) };
    if class == Class::Char {
        return Ok(value.is_string().then_some(value));
    }
    let number = matches!(value, Value::Num(_) | Value::Bool(_) | Value::Tensor(_) | Value::Lazy(_));
    if !number || value.is_char() || value.len() != 1 {
        return Ok(None);
    }
    let host = env.host(&value)?;
    if class == Class::Logical {
        return Ok(Some(Value::Bool(host.data.c64_at(0) != num_complex::Complex64::ZERO)));
    }
    Ok(Some(Value::tensor(Tensor::scalar(host.data.converted(class)))))
}

/// `map(key) = value`.
pub fn write(env: &mut Env, map: &Map, steps: &[Access], value: Value) -> Flow<()> {
    let subscripts = match steps {
        [Access::Paren(subscripts)] => subscripts,
        [Access::Paren(subscripts), rest @ ..] => return deeper(env, map, subscripts, rest, value),
        [Access::Field(_), ..] => return fail!("containers.Map: properties are read-only"),
        _ => return fail!("containers.Map: only '()' indexing is supported for assigning values"),
    };
    let [given] = &subscripts[..] else {
        return fail!("containers.Map: only one key is supported for assigning values");
    };
    let key = fitting_key(env, map, given)?;
    match fitting_value(env, map.values, value)? {
        Some(value) => map.set(key, value),
        None => return fail!("containers.Map: specified value type does not match the type of this container"),
    }
    Ok(())
}

/// Does `map(key)(…) = value`. This is possible only if the inner value is a map itself, since other values are copies.
fn deeper(env: &mut Env, map: &Map, subscripts: &[Value], rest: &[Access], value: Value) -> Flow<()> {
    let [given] = subscripts else { return fail!("containers.Map: only one level of indexing is supported") };
    let key = fitting_key(env, map, given)?;
    match map.get(&key) {
        Some(Value::Map(inner)) => write(env, &inner, rest, value),
        _ => fail!("containers.Map: only one level of indexing is supported"),
    }
}

/// Does `[m1; m2]` and `[m1, m2]`: makes a map with the entries of all. Later entries replace earlier ones.
pub fn join(env: &Env, dim: usize, parts: &[Value]) -> Flow<Value> {
    let name = if dim == 0 { "vertcat" } else { "horzcat" };
    let maps: Vec<&Arc<Map>> =
        parts.iter().filter_map(|p| if let Value::Map(m) = p { Some(m) } else { None }).collect();
    let one_kind = maps.windows(2).all(|m| m[0].has_texts() == m[1].has_texts());
    let (Some(first), true) = (maps.first(), one_kind && maps.len() == parts.len()) else {
        return fail!("containers.Map/{name} method failed");
    };
    let values = if maps.iter().all(|m| m.values == first.values) { first.values } else { Kind::Any };
    let joined = Map::new(first.key_class, values);
    for map in &maps {
        for (key, value) in map.entries() {
            if let Some(value) = fitting_value(env, values, value)? {
                joined.set(key, value);
            }
        }
    }
    Ok(Value::Map(Arc::new(joined)))
}
