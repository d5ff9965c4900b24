//! Structs: functions that make them, change their fields, and access fields by computed names.
//!
//! In: names and values. Out: structs, struct arrays, names. Must hold: every field has a value for each element.

use crate::builtins::text::chars;
use crate::builtins::{ANY, Builtin, Outcome, row};
use crate::env::Env;
use crate::error::{Flow, fail, fail_id};
use crate::index::{self, Access};
use crate::value::{CellArray, Data, Dims, StructArray, Tensor, Value};
use crate::vm::Interp;
use indexmap::IndexMap;
use std::sync::Arc;

/// The functions.
pub static ROWS: &[Builtin] = &[
    row("struct", 0, ANY, 1, "struct (name, value, ...)", "A struct; values in cells make an array.", struct_),
    row("fieldnames", 1, 1, 1, "fieldnames (s)", "The names of the fields, as a column of cells.", fieldnames),
    row("isfield", 2, 2, 1, "isfield (s, names)", "Whether a struct has fields.", isfield),
    row("rmfield", 2, 2, 1, "rmfield (s, names)", "A struct without some fields.", rmfield),
    row("setfield", 3, ANY, 1, "setfield (s, path..., value)", "A struct with another value in a field.", setfield),
    row("getfield", 2, ANY, 1, "getfield (s, path...)", "The value of a field.", getfield),
    row(
        "orderfields",
        1,
        2,
        2,
        "[s, order] = orderfields (s, like)",
        "A struct with its fields in order.",
        orderfields,
    ),
    row("numfields", 1, 1, 1, "numfields (s)", "The number of fields.", |_, a, _| match &a[0] {
        Value::Struct(s) => Ok(Value::from(s.fields.len()).into()),
        _ => fail!("numfields: argument must be a struct"),
    }),
    row("substruct", 2, ANY, 1, "substruct (type, subs, ...)", "An access as a value, for subsref.", substruct),
    row("subsref", 2, 2, ANY, "subsref (x, access)", "What an access reads.", subsref),
    row("subsasgn", 3, 3, 1, "subsasgn (x, access, value)", "The value after an assignment.", subsasgn),
];

fn name_of(value: &Value) -> Option<Arc<str>> {
    value.as_text().map(|t| t.as_str().into())
}

fn struct_(_: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let refused = "struct: additional arguments must occur as \"field\", VALUE pairs";
    match args {
        [] => return Ok(Value::Struct(Arc::new(StructArray::scalar())).into()),
        [Value::Struct(s)] => {
            return Ok(Value::Struct(Arc::new(StructArray::clone(s).with_class(None))).into());
        }
        [one @ (Value::Tensor(_) | Value::Num(_))] if one.is_empty() => {
            return Ok(Value::Struct(Arc::new(StructArray::empty(one.dims()))).into());
        }
        _ => {}
    }
    if args.len() % 2 == 1 {
        return fail!("{refused}");
    }
    // A cell of one item is used for all elements. Any other cell determines the array's dimensions.
    let mut dims: Option<(Dims, usize)> = None;
    for (k, pair) in args.chunks_exact(2).enumerate() {
        if !pair[0].is_string() {
            return fail!("{refused}");
        }
        if let Value::Cell(c) = &pair[1]
            && c.items.len() != 1
        {
            match &dims {
                Some((known, first)) if *known != c.dims => {
                    return fail!(
                        "struct: dimensions of parameter {first} do not match those of parameter {}",
                        2 * k + 2
                    );
                }
                Some(_) => {}
                None => dims = Some((c.dims.clone(), 2 * k + 2)),
            }
        }
    }
    let dims = dims.map_or_else(Dims::scalar, |d| d.0);
    let n = dims.elements();
    let mut fields: IndexMap<Arc<str>, Vec<Value>> = IndexMap::new();
    for pair in args.chunks_exact(2) {
        let values = match &pair[1] {
            Value::Cell(c) if c.items.len() == 1 => vec![c.items[0].clone(); n],
            Value::Cell(c) => c.items.clone(),
            other => vec![other.clone(); n],
        };
        fields.insert(name_of(&pair[0]).unwrap_or_else(|| "".into()), values);
    }
    Ok(Value::Struct(Arc::new(StructArray { dims, fields, class: None, cleanup: None })).into())
}

fn fieldnames(_: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    match &args[0] {
        Value::Struct(s) => {
            let names: Vec<Value> = s.fields.keys().map(|k| Value::string(&**k)).collect();
            Ok(Value::cell(Dims::new(&[names.len(), 1]), names).into())
        }
        Value::Map(_) => {
            let names = ["Count", "KeyType", "ValueType", "map", "numeric_keys"].map(Value::string);
            Ok(Value::cell(Dims::new(&[names.len(), 1]), names.to_vec()).into())
        }
        _ => fail!("fieldnames: Invalid input argument"),
    }
}

fn isfield(_: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let Value::Struct(s) = &args[0] else { return Ok(Value::Bool(false).into()) };
    let has = |v: &Value| v.as_text().is_some_and(|name| s.fields.contains_key(name.as_str()));
    match &args[1] {
        Value::Cell(c) => {
            let answers = Data::Bool(c.items.iter().map(has).collect());
            Ok(Value::tensor(Tensor::new(c.dims.clone(), answers)).into())
        }
        value => Ok(Value::Bool(has(value)).into()),
    }
}

fn rmfield(_: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let Value::Struct(s) = &args[0] else { return fail!("rmfield: first argument must be a struct") };
    let names = chars::list(&args[1], "rmfield: second argument must be a cellstr or character string")?;
    let mut s = StructArray::clone(s);
    for name in names {
        let name = String::from_utf8_lossy(name);
        if s.fields.shift_remove(&*name).is_none() {
            return fail!("rmfield: structure does not contain field {name}");
        }
    }
    Ok(Value::Struct(Arc::new(s)).into())
}

/// Returns the steps that names and cells of indices describe: `"a", {2}, "b"` is `.a(2).b`.
fn path(who: &str, args: &[Value]) -> Flow<Vec<Access>> {
    args.iter()
        .map(|arg| match arg {
            Value::Cell(c) => Ok(Access::Paren(c.items.iter().map(subscript).collect())),
            arg => match name_of(arg) {
                Some(name) => Ok(Access::Field(name)),
                None => fail_id!("Octave:index-out-of-bounds", "{who}: invalid index"),
            },
        })
        .collect()
}

/// Returns an index; the text `:` stands for all.
fn subscript(value: &Value) -> Value {
    if value.as_bytes() == Some(b":") { Value::Colon } else { value.clone() }
}

fn setfield(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let [s, steps @ .., value] = args else {
        return fail_id!("Octave:invalid-fun-call", "Invalid call to setfield");
    };
    let mut target = Some(s.clone());
    index::assign(&mut interp.env, &mut target, &path("setfield", steps)?, value.clone())?;
    Ok(target.unwrap_or_else(Value::empty).into())
}

/// Reads a value by a chain of accesses.
fn read(env: &mut Env, base: &Value, steps: &[Access], who: &str) -> Flow<index::Values> {
    let mut values: index::Values = smallvec::smallvec![base.clone()];
    for step in steps {
        let [base] = &values[..] else {
            return fail!("some elements undefined in argument list");
        };
        let base = base.clone();
        values = match step {
            Access::Paren(subscripts) => smallvec::smallvec![index::paren(env, &base, subscripts)?],
            Access::Brace(subscripts) => index::brace(env, &base, subscripts)?,
            Access::Field(name) => {
                if let Value::Struct(s) = &base
                    && !s.fields.contains_key(name)
                    && who == "getfield"
                {
                    return fail_id!("Octave:invalid-indexing", "structure has no member '{name}'");
                }
                index::field(&base, name)?
            }
        };
    }
    Ok(values)
}

fn getfield(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let values = read(&mut interp.env, &args[0], &path("getfield", &args[1..])?, "getfield")?;
    match values.into_iter().next() {
        Some(value) => Ok(value.into()),
        None => fail!("getfield: the field has no value"),
    }
}

fn orderfields(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let Value::Struct(s) = &args[0] else { return fail!("orderfields: S1 must be a struct") };
    let n = s.fields.len();
    let by_name = |names: Vec<String>| -> Flow<Vec<usize>> {
        let order: Option<Vec<usize>> = names.iter().map(|name| s.fields.get_index_of(name.as_str())).collect();
        match order {
            Some(order) if order.len() == n => Ok(order),
            _ => fail!("orderfields: FIELDS of S1 and S2 must match"),
        }
    };
    let order: Vec<usize> = match args.get(1) {
        None => {
            let mut order: Vec<usize> = (0..n).collect();
            order.sort_by_key(|&i| s.fields.get_index(i).map(|f| f.0.clone()));
            order
        }
        Some(Value::Struct(like)) => by_name(like.fields.keys().map(|k| k.to_string()).collect())?,
        Some(Value::Cell(c)) => {
            let names = c.items.iter().map(Value::as_text).collect::<Option<Vec<_>>>();
            match names {
                Some(names) => by_name(names)?,
                None => return fail!("orderfields: second argument must be a struct, cellstr, or permutation vector"),
            }
        }
        Some(list) => {
            let list = interp.env.host(list)?;
            let order: Vec<usize> = list.data.to_f64().into_iter().map(|x| x as usize).collect();
            let mut sorted = order.clone();
            sorted.sort_unstable();
            if sorted != (1..=n).collect::<Vec<_>>() {
                return fail!("orderfields: invalid permutation vector P");
            }
            order.into_iter().map(|i| i - 1).collect()
        }
    };
    let fields = order
        .iter()
        .filter_map(|&i| s.fields.get_index(i).map(|(name, values)| (name.clone(), values.clone())))
        .collect();
    let sorted = StructArray { dims: s.dims.clone(), fields, class: s.class, cleanup: None };
    let order = Value::column(order.into_iter().map(|i| i as f64 + 1.0).collect());
    Ok(vec![Value::Struct(Arc::new(sorted)), order].into())
}

fn substruct(_: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    if args.len() % 2 == 1 {
        return fail_id!("Octave:invalid-fun-call", "Invalid call to substruct");
    }
    let (mut types, mut subs) = (Vec::new(), Vec::new());
    for pair in args.chunks_exact(2) {
        match pair[0].as_bytes() {
            Some(b"()" | b"{}" | b".") => {}
            _ => return fail!("substruct: TYPE must be one of \"()\", \"{{}}\", or \".\""),
        }
        match pair[0].as_bytes() {
            Some(b".") if !pair[1].is_char() => {
                return fail!("substruct: for TYPE == ., SUBS must be a character string");
            }
            Some(b"()" | b"{}") if !matches!(pair[1], Value::Cell(_)) && pair[1].as_bytes() != Some(b":") => {
                return fail!("substruct: for TYPE == () or {{}}, SUBS must be a cell array");
            }
            _ => {}
        }
        types.push(pair[0].clone());
        subs.push(pair[1].clone());
    }
    let dims = Dims::new(&[1, types.len()]);
    let fields = IndexMap::from([("type".into(), types), ("subs".into(), subs)]);
    Ok(Value::Struct(Arc::new(StructArray { dims, fields, class: None, cleanup: None })).into())
}

/// Returns the accesses that a struct array with `type` and `subs` describes.
fn accesses(who: &str, value: &Value) -> Flow<Vec<Access>> {
    let Value::Struct(s) = value else { return fail!("{who}: IDX must be a struct array") };
    let (Some(types), Some(subs)) = (s.fields.get("type"), s.fields.get("subs")) else {
        return fail!("{who}: IDX must be a struct array with fields \"type\" and \"subs\"");
    };
    let list = |v: &Value| match v {
        Value::Cell(c) => CellArray::clone(c).items.iter().map(subscript).collect(),
        other => smallvec::smallvec![subscript(other)],
    };
    types
        .iter()
        .zip(subs)
        .map(|(kind, subs)| match (kind.as_bytes(), subs) {
            (Some(b"()"), subs) => Ok(Access::Paren(list(subs))),
            (Some(b"{}"), subs) => Ok(Access::Brace(list(subs))),
            (Some(b"."), subs) => match name_of(subs) {
                Some(name) => Ok(Access::Field(name)),
                None => fail!("{who}: subs(1) must be a string for \".\" index"),
            },
            _ => fail!("{who}: type string must be \"()\", \"{{}}\", or \".\""),
        })
        .collect()
}

fn subsref(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    Ok(read(&mut interp.env, &args[0], &accesses("subsref", &args[1])?, "subsref")?.into())
}

fn subsasgn(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let mut target = Some(args[0].clone());
    let steps = accesses("subsasgn", &args[1])?;
    let nothing = matches!(args[2], Value::Num(_) | Value::Tensor(_)) && args[2].dims() == Dims::zero();
    if let (true, Some(Access::Paren(_)), Some(target)) = (nothing, steps.last(), &mut target) {
        index::delete(&mut interp.env, target, &steps)?;
        return Ok(target.clone().into());
    }
    index::assign(&mut interp.env, &mut target, &steps, args[2].clone())?;
    Ok(target.unwrap_or_else(Value::empty).into())
}
