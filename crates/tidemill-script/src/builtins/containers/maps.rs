//! `containers.Map` and its functions.
//!
//! In: keys and values as cells, arrays or single ones. Out: a map, or its contents. Must hold: all arguments are read
//! and checked before a map changes (SCRIPT-2).

use crate::builtins::{ANY, Builtin, Outcome, args, row};
use crate::env::Env;
use crate::error::{Flow, fail, fail_id};
use crate::index::map as entries;
use crate::value::map::{Key, Map, Values as Kind};
use crate::value::{CellArray, Class, Data, Tensor, Value};
use crate::vm::Interp;
use std::sync::Arc;

/// The functions.
pub static ROWS: &[Builtin] = &[
    row(
        "containers.Map",
        0,
        ANY,
        1,
        "m = containers.Map (keys, values)",
        "Values under keys, which are texts or numbers; also with \"KeyType\", \"ValueType\", \"UniformValues\".",
        construct,
    ),
    row("keys", 1, 1, 1, "keys (m)", "The keys of a containers.Map, in order.", |_, a, _| {
        Ok(map_of(&a[0], "keys")?.keys().into())
    }),
    row("values", 1, 2, 1, "values (m, keys)", "The values of a containers.Map, or those under some keys.", values),
    row("isKey", 2, 2, 1, "isKey (m, keys)", "Whether keys are in a containers.Map.", is_key),
    row("remove", 2, 2, 1, "remove (m, keys)", "Removes entries from a containers.Map.", remove),
];

fn map_of<'v>(value: &'v Value, name: &str) -> Flow<&'v Arc<Map>> {
    match value {
        Value::Map(map) => Ok(map),
        other => fail!("{name}: M must be a containers.Map object, not a {}", other.class_name()),
    }
}

fn construct(interp: &mut Interp, all: &[Value], _: usize) -> Flow<Outcome> {
    let env = &mut interp.env;
    env.host_all(all)?;
    let is = |i: usize, word: &str| all.get(i).is_some_and(|v| args::is_word(v, word));
    let typed = (is(0, "KeyType") && is(2, "ValueType"), is(0, "ValueType") && is(2, "KeyType"));
    let map = match all {
        [] => Map::new(Class::Char, Kind::Any),
        [_, keys, _, values] if typed.0 => Map::new(key_class(keys)?, value_kind(values)?),
        [_, values, _, keys] if typed.1 => Map::new(key_class(keys)?, value_kind(values)?),
        [_, _] if is(0, "UniformValues") => Map::new(Class::Char, Kind::Any),
        [keys, values] => filled(env, keys, values, true)?,
        [keys, values, _, uniform] if is(2, "UniformValues") => {
            if uniform.len() != 1 || !(uniform.is_numeric() || uniform.class() == Class::Logical) {
                return fail!("containers.Map: 'UniformValues' must be a logical scalar");
            }
            let uniform = args::number(env, "containers.Map", uniform)? != 0.0;
            filled(env, keys, values, uniform)?
        }
        _ => return fail!("containers.Map: incorrect number of inputs specified"),
    };
    Ok(Value::Map(Arc::new(map)).into())
}

/// Returns the class of keys that a word names.
fn key_class(word: &Value) -> Flow<Class> {
    match word.as_bytes() {
        Some(b"char") => Ok(Class::Char),
        Some(b"double") => Ok(Class::Double),
        Some(b"single") => Ok(Class::Single),
        Some(b"int32") => Ok(Class::Int32),
        Some(b"uint32") => Ok(Class::Uint32),
        Some(b"int64") => Ok(Class::Int64),
        Some(b"uint64") => Ok(Class::Uint64),
        _ => fail!("containers.Map: unsupported KeyType"),
    }
}

fn value_kind(word: &Value) -> Flow<Kind> {
    if args::is_word(word, "any") {
        return Ok(Kind::Any);
    }
    match args::class_word(word) {
        Some(class) => Ok(Kind::Of(class)),
        None => fail!("containers.Map: unsupported ValueType"),
    }
}

/// Makes a map of these keys and values. Without `uniform`, later values may be of any kind, too.
fn filled(env: &Env, keys: &Value, values: &Value, uniform: bool) -> Flow<Map> {
    let keys: Vec<Value> = match keys {
        Value::Cell(cell) => cell.items.clone(),
        text if text.is_char() => vec![text.clone()],
        array => elements(env, array)?,
    };
    let values: Vec<Value> = match values {
        Value::Cell(cell) if cell.items.len() == keys.len() || keys.len() != 1 => cell.items.clone(),
        values if keys.len() == 1 && !matches!(values, Value::Cell(_)) => vec![values.clone()],
        Value::Tensor(_) | Value::Lazy(_) if !values.is_char() => elements(env, values)?,
        other => vec![other.clone()],
    };
    if keys.is_empty() {
        return fail!("containers.Map: empty keys are not allowed");
    }
    if keys.len() != values.len() {
        return fail!("containers.Map: the number of keys and values must match");
    }
    let class = common_key_class(&keys)?;
    let kind = if uniform { common_kind(&values) } else { Kind::Any };
    let map = Map::new(class, kind);
    for (key, value) in keys.iter().zip(values) {
        let (Some(key), Some(value)) = (entries::key(env, &map, key)?, entries::fitting_value(env, kind, value)?)
        else {
            return fail!("containers.Map: keys must be real scalars or strings");
        };
        map.set(key, value);
    }
    Ok(map)
}

/// Returns the elements of a numeric or logical array.
fn elements(env: &Env, array: &Value) -> Flow<Vec<Value>> {
    let host = env.host(array)?;
    Ok((0..host.len()).map(|i| Value::tensor(Tensor::scalar(host.data.pick(std::iter::once(i))))).collect())
}

fn common_key_class(keys: &[Value]) -> Flow<Class> {
    if keys.iter().all(Value::is_string) {
        return Ok(Class::Char);
    }
    let is_number = |v: &Value| matches!(v, Value::Num(_) | Value::Bool(_) | Value::Tensor(_)) && !v.is_char();
    if !keys.iter().all(is_number) {
        return fail!("containers.Map: when using multiple key types, all types must be numeric");
    }
    if !keys.iter().all(|v| v.len() == 1 && !v.is_complex()) {
        return fail!("containers.Map: keys must be real scalars or strings");
    }
    let first = keys[0].class();
    let kept = matches!(first, Class::Single | Class::Int32 | Class::Uint32 | Class::Int64 | Class::Uint64);
    Ok(if kept && keys.iter().all(|v| v.class() == first) { first } else { Class::Double })
}

/// Returns the common kind of all values: texts, numbers of one class, or anything.
fn common_kind(values: &[Value]) -> Kind {
    if values.iter().all(|v| v.is_char() && v.dims().rows() == 1 && v.is_string()) {
        return Kind::Of(Class::Char);
    }
    let is_scalar = |v: &Value| (v.is_numeric() || v.class() == Class::Logical) && v.len() == 1;
    let first = values[0].class();
    match values.iter().all(|v| is_scalar(v) && v.class() == first) {
        true => Kind::Of(first),
        false => Kind::Any,
    }
}

/// Returns the keys that an argument gives: those of a cell, of a numeric array, or one key.
fn keys_of(env: &Env, value: &Value) -> Flow<Vec<Value>> {
    match value {
        Value::Cell(cell) => Ok(cell.items.clone()),
        Value::Tensor(_) | Value::Lazy(_) if !value.is_char() => elements(env, value),
        other => Ok(vec![other.clone()]),
    }
}

fn values(interp: &mut Interp, all: &[Value], _: usize) -> Flow<Outcome> {
    let env = &mut interp.env;
    let map = map_of(&all[0], "values")?;
    let Some(keys) = all.get(1) else { return Ok(map.values().into()) };
    let Value::Cell(keys) = keys else { return fail!("containers.Map: input argument 'keySet' must be a cell") };
    env.host_all(&keys.items)?;
    let mut found = Vec::with_capacity(keys.items.len());
    for given in &keys.items {
        match entries::key(env, map, given)?.and_then(|key| map.get(&key)) {
            Some(value) => found.push(value),
            None => {
                let key = entries::shown(env, given)?;
                return fail!("containers.Map: key <{key}> does not exist");
            }
        }
    }
    Ok(Value::Cell(Arc::new(CellArray::new(keys.dims.clone(), found))).into())
}

fn is_key(interp: &mut Interp, all: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    env.host_all(all)?;
    let map = map_of(&all[0], "isKey")?;
    let there = |key: &Value| -> Flow<bool> { Ok(entries::key(env, map, key)?.is_some_and(|k| map.get(&k).is_some())) };
    let is_list = matches!(&all[1], Value::Cell(_)) || !all[1].is_char() && all[1].len() != 1;
    if !is_list || matches!(all[1], Value::Struct(_) | Value::Function(_) | Value::Map(_)) {
        return Ok(Value::Bool(there(&all[1])?).into());
    }
    let found = keys_of(env, &all[1])?.iter().map(there).collect::<Flow<Vec<bool>>>()?;
    Ok(Value::tensor(Tensor::new(all[1].dims(), Data::Bool(found))).into())
}

fn remove(interp: &mut Interp, all: &[Value], _: usize) -> Flow<Outcome> {
    let env = &mut interp.env;
    env.host_all(all)?;
    let map = map_of(&all[0], "remove")?;
    let mut keys: Vec<Key> = Vec::new();
    for given in keys_of(env, &all[1])? {
        match entries::key(env, map, &given)? {
            Some(key) if map.get(&key).is_some() => keys.push(key),
            Some(_) => {
                let key = entries::shown(env, &given)?;
                return fail_id!("Octave:index-out-of-bounds", "containers.Map: the key <{key}> does not exist");
            }
            None => {
                return fail!("containers.Map: specified key type does not match the type of this container");
            }
        }
    }
    keys.iter().for_each(|key| {
        map.remove(key);
    });
    Ok(all[0].clone().into())
}
