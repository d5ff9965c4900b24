//! Values that scripts keep with handles under names of their own.
//!
//! In: handles and names. Out: what was kept; nothing is known of the handles themselves.

use crate::builtins::{ANY, Builtin, Outcome, nothing, row};
use crate::error::{Flow, fail};
use crate::value::{StructArray, Value};
use crate::vm::Interp;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The functions.
pub static ROWS: &[Builtin] = &[
    row("setappdata", 3, ANY, 0, "setappdata (h, name, value, ...)", "Keeps values with handles.", set),
    row(
        "getappdata",
        1,
        2,
        1,
        "value = getappdata (h, name)",
        "What is kept with a handle; all of it as a struct.",
        get,
    ),
    row("isappdata", 2, 2, 1, "isappdata (h, name)", "Whether something of this name is kept with a handle.", is),
    row("rmappdata", 2, ANY, 0, "rmappdata (h, name, ...)", "Removes what is kept with handles.", remove),
];

/// What is kept, by the bits of handles.
#[derive(Default)]
struct Kept(FxHashMap<u64, StructArray>);

fn handles(interp: &Interp, value: &Value) -> Flow<Vec<u64>> {
    // Zeros of either sign are the same handle.
    Ok(interp.env.host(value)?.data.to_f64().iter().map(|h| (h + 0.0).to_bits()).collect())
}

/// Texts, or those of a cell array.
fn names(who: &str, value: &Value, kinds: &str) -> Flow<Vec<String>> {
    let texts = match value {
        Value::Cell(cell) => cell.items.iter().map(Value::as_text).collect::<Option<Vec<_>>>(),
        value => value.as_text().map(|text| vec![text]),
    };
    texts.map_or_else(|| fail!("{who}: NAME must be a {kinds}"), Ok)
}

fn set(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let handles = handles(interp, &args[0])?;
    let mut pairs = Vec::new();
    for pair in args[1..].chunks(2) {
        let [name, value] = pair else {
            return crate::builtins::counts::invalid_call("setappdata", "setappdata (h, name, value)");
        };
        let names = names("setappdata", name, "string or cellstr")?;
        match (name, value) {
            (Value::Cell(_), Value::Cell(values)) if values.items.len() == names.len() => {
                pairs.extend(names.into_iter().zip(values.items.iter().cloned()));
            }
            (Value::Cell(_), _) => return fail!("setappdata: as many values as names are needed"),
            _ => pairs.extend(names.into_iter().map(|name| (name, value.clone()))),
        }
    }
    let kept = interp.env.keep.of::<Kept>();
    for handle in handles {
        let own = kept.0.entry(handle).or_insert_with(StructArray::scalar);
        pairs.iter().for_each(|(name, value)| own.set(name.as_str(), value.clone()));
    }
    Ok(nothing())
}

fn get(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let handles = handles(interp, &args[0])?;
    let [handle] = handles[..] else { return fail!("getappdata: H must be a single handle") };
    let kept = interp.env.keep.of::<Kept>().0.get(&handle);
    let Some(name) = args.get(1) else {
        return Ok(Value::Struct(Arc::new(kept.cloned().unwrap_or_else(StructArray::scalar))).into());
    };
    let Some(name) = name.as_text() else { return fail!("getappdata: NAME must be a string") };
    Ok(kept.and_then(|own| own.get(&name)).cloned().unwrap_or_else(Value::empty).into())
}

fn is(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let Some(name) = args[1].as_text() else { return fail!("isappdata: NAME must be a string") };
    let handles = handles(interp, &args[0])?;
    let kept = interp.env.keep.of::<Kept>();
    let holds = |handle: &u64| kept.0.get(handle).is_some_and(|own| own.get(&name).is_some());
    Ok(Value::Bool(!handles.is_empty() && handles.iter().all(holds)).into())
}

fn remove(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let handles = handles(interp, &args[0])?;
    let kept = interp.env.keep.of::<Kept>();
    for name in &args[1..] {
        for name in names("rmappdata", name, "string or cellstr")? {
            for handle in &handles {
                if kept.0.get_mut(handle).and_then(|own| own.fields.shift_remove(name.as_str())).is_none() {
                    return fail!("rmappdata: appdata '{name}' is not present");
                }
            }
        }
    }
    Ok(nothing())
}
