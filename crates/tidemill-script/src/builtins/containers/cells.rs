//! Cell arrays from arrays and back: `num2cell`, `cell2mat`, `mat2cell`, structs as cells.
//!
//! In: arrays, cells, structs. Out: the same elements in another container. If whole parts of arrays on the runtime are
//! taken, they stay there.

use crate::builtins::reduce::lanes::{pick, strided};
use crate::builtins::text::chars;
use crate::builtins::{ANY, Builtin, Outcome, args, row};
use crate::env::Env;
use crate::error::{Flow, fail};
use crate::index;
use crate::value::{CellArray, Class, Dims, StructArray, Tensor, Value};
use crate::vm::Interp;
use indexmap::IndexMap;
use std::sync::Arc;

/// The functions.
pub static ROWS: &[Builtin] = &[
    row(
        "num2cell",
        1,
        2,
        1,
        "num2cell (x, dims)",
        "The elements of an array, or its parts, as a cell array.",
        num2cell,
    ),
    row("cell2mat", 1, 1, 1, "cell2mat (c)", "The items of a cell array joined as one array.", cell2mat),
    row(
        "mat2cell",
        2,
        ANY,
        1,
        "mat2cell (x, rows, columns, ...)",
        "An array cut into parts of these extents.",
        mat2cell,
    ),
    row("cellslices", 3, 4, 1, "cellslices (x, from, to, dim)", "Parts of an array along a dimension.", cellslices),
    row("struct2cell", 1, 1, 1, "struct2cell (s)", "The values of the fields of a struct.", struct2cell),
    row("cell2struct", 2, 3, 1, "cell2struct (c, fields, dim)", "A struct of the items of a cell array.", cell2struct),
];

/// Returns the part of an array within these ranges of indices, from 0.
fn part(env: &mut Env, value: &Value, ranges: &[std::ops::Range<usize>]) -> Flow<Value> {
    let subscripts: Vec<Value> =
        ranges.iter().map(|r| Value::row(r.clone().map(|i| i as f64 + 1.0).collect())).collect();
    index::paren(env, value, &subscripts)
}

fn num2cell(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &mut interp.env;
    env.host_all(args)?;
    let value = match &args[0] {
        Value::Lazy(_) => Value::Tensor(env.host(&args[0])?),
        other => other.clone(),
    };
    let dims = value.dims();
    // Numbers and truth values are stored in the value itself, and other elements in arrays of their own.
    let apart = if matches!(value.class(), Class::Double | Class::Logical) { 0 } else { 128 };
    env.check_host(&dims, size_of::<Value>() + apart)?;
    let Some(over) = args.get(1) else {
        // The exact capacity is reserved, since a growing vector takes twice as much.
        let mut items = Vec::with_capacity(value.len());
        for i in 0..value.len() {
            let item = match &value {
                Value::Cell(c) => Some(Value::Cell(Arc::new(CellArray::row(vec![c.items[i].clone()])))),
                Value::Function(_) => Some(value.clone()),
                Value::Tensor(t) => Some(Value::tensor(Tensor::scalar(t.data.pick(std::iter::once(i))))),
                other => pick(other, Dims::scalar(), &[i]),
            };
            let Some(item) = item else { return fail!("num2cell: invalid argument of class {}", value.class_name()) };
            items.push(item);
        }
        return Ok(Value::cell(dims, items).into());
    };
    let list = env.host(over)?;
    let mut whole = Vec::with_capacity(list.len().min(args::RANK_MAX));
    for i in 0..list.len() {
        whole.push(args::dim(env, &Value::Num(list.data.f64_at(i)), |_| {
            "num2cell: dimension vectors for DIM must be positive integers".to_string()
        })?);
    }
    let extents: Vec<usize> = dims.iter().enumerate().map(|(d, &n)| if whole.contains(&d) { 1 } else { n }).collect();
    let inner: Vec<usize> = dims.iter().enumerate().map(|(d, &n)| if whole.contains(&d) { n } else { 1 }).collect();
    let mut strides = vec![1; dims.len()];
    for d in 1..dims.len() {
        strides[d] = strides[d - 1] * dims[d - 1];
    }
    let offsets = strided(&inner, &strides, 0);
    let items = strided(&extents, &strides, 0)
        .into_iter()
        .map(|first| pick(&value, Dims::new(&inner), &offsets.iter().map(|o| first + o).collect::<Vec<_>>()))
        .map(|part| part.map(crate::builtins::arrays::shape::narrowed))
        .collect::<Option<Vec<_>>>();
    match items {
        Some(items) => Ok(Value::cell(Dims::new(&extents), items).into()),
        None => fail!("num2cell: invalid argument of class {}", value.class_name()),
    }
}

fn cell2mat(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let Value::Cell(cell) = &args[0] else {
        return if args[0].is_empty() {
            Ok(Value::tensor(Tensor::zeros(Class::Double, args[0].dims())).into())
        } else {
            fail!("cell2mat: C must be a cell array")
        };
    };
    let Some(first) = cell.items.first() else {
        return Ok(Value::tensor(Tensor::zeros(Class::Double, cell.dims.clone())).into());
    };
    // All items must be of one kind: numbers, texts, truth values, cells or structs.
    let kind = |v: &Value| match v.class() {
        class if class.is_numeric() => Class::Double,
        class => class,
    };
    if kind(first) == Class::Function || cell.items.iter().any(|v| kind(v) != kind(first)) {
        return fail!("cell2mat: wrong type elements or mixed cells, structs, and matrices");
    }
    // The dimensions are joined one after the other. After joining along a dimension there is one item along it.
    let mut items = cell.items.clone();
    let mut extents = cell.dims.to_vec();
    // Rows of parts are joined first, as in a matrix literal, so that blocks of different widths fit.
    let order: Vec<usize> = std::iter::once(1).chain(std::iter::once(0)).chain(2..extents.len()).collect();
    for d in order {
        let mut strides = vec![1; extents.len()];
        for k in 1..extents.len() {
            strides[k] = strides[k - 1] * extents[k - 1];
        }
        let (len, stride) = (extents[d], strides[d]);
        extents[d] = 1;
        let firsts = strided(&extents, &strides, 0);
        let mut joined = Vec::with_capacity(firsts.len());
        for first in firsts {
            let parts: Vec<Value> = (0..len).map(|k| items[first + k * stride].clone()).collect();
            joined.push(match &parts[..] {
                [one] => one.clone(),
                many => index::concatenate(&mut interp.env, d, many)?,
            });
        }
        items = joined;
    }
    Ok(items.swap_remove(0).into())
}

fn mat2cell(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &mut interp.env;
    env.host_all(&args[1..])?;
    let dims = args[0].dims();
    let rank = dims.len().max(args.len() - 1);
    let mut cuts: Vec<Vec<std::ops::Range<usize>>> = Vec::with_capacity(rank);
    for d in 0..rank {
        let Some(list) = args.get(d + 1) else {
            cuts.push(std::iter::once(0..dims.extent(d)).collect());
            continue;
        };
        let list = env.host(list)?;
        let mut at = 0usize;
        let mut ranges = Vec::with_capacity(list.len());
        for i in 0..list.len() {
            let n = args::extent(list.data.f64_at(i))?;
            ranges.push(at..at.saturating_add(n));
            at = at.saturating_add(n);
        }
        if at != dims.extent(d) {
            return fail!("mat2cell: mismatch on dimension {} ({} != {at})", d + 1, dims.extent(d));
        }
        cuts.push(ranges);
    }
    let extents: Vec<usize> = cuts.iter().map(Vec::len).collect();
    env.check_elements(&extents)?;
    let n: usize = extents.iter().product();
    let mut items = Vec::with_capacity(n);
    for k in 0..n {
        let mut rest = k;
        let ranges: Vec<_> = cuts
            .iter()
            .map(|c| {
                let range = c[rest % c.len()].clone();
                rest /= c.len();
                range
            })
            .collect();
        items.push(part(env, &args[0], &ranges)?);
    }
    Ok(Value::cell(Dims::new(&extents), items).into())
}

fn cellslices(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &mut interp.env;
    env.host_all(&args[1..])?;
    let (from, to) = (env.host(&args[1])?, env.host(&args[2])?);
    if from.len() != to.len() {
        return fail!("cellslices: the lengths of LB and UB must match");
    }
    let dims = args[0].dims();
    let d = match args.get(3) {
        Some(value) => args::dim(env, value, |_| "cellslices: DIM must be a valid dimension".to_string())?,
        None => dims.first_non_singleton(),
    };
    let mut items = Vec::with_capacity(from.len());
    for i in 0..from.len() {
        let (a, b) = (args::integer(from.data.f64_at(i))?, args::integer(to.data.f64_at(i))?);
        if a <= b && (a < 1 || b as u64 > dims.extent(d) as u64) {
            return fail!("index ({b}): out of bound {}", dims.extent(d));
        }
        let range = if a <= b { a as usize - 1..b as usize } else { 0..0 };
        let ranges: Vec<_> =
            (0..dims.len().max(d + 1)).map(|k| if k == d { range.clone() } else { 0..dims.extent(k) }).collect();
        items.push(part(env, &args[0], &ranges)?);
    }
    Ok(Value::Cell(Arc::new(CellArray::row(items))).into())
}

fn struct2cell(_: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let Value::Struct(s) = &args[0] else { return fail!("struct2cell: argument S must be a structure") };
    let mut items = Vec::with_capacity(s.fields.len() * s.len());
    for i in 0..s.len() {
        items.extend(s.fields.values().map(|values| values[i].clone()));
    }
    // The fields are the first dimension. For a column, the extent of 1 behind it is dropped.
    let mut extents = vec![s.fields.len()];
    extents.extend(s.dims.iter());
    if s.dims.len() == 2 && s.dims.columns() == 1 {
        extents.truncate(2);
    }
    Ok(Value::cell(Dims::new(&extents), items).into())
}

fn cell2struct(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let Value::Cell(cell) = &args[0] else { return fail!("cell2struct: argument CELL must be of type cell") };
    let refused = "cell2struct: FIELDS must be a cell array of strings or a character matrix";
    let names: Vec<Vec<u8>> = match &args[1] {
        Value::Cell(c) => match chars::strings(c) {
            Some(list) => list.into_iter().map(<[u8]>::to_vec).collect(),
            None => return fail!("{refused}"),
        },
        value if value.is_char() => chars::rows(value)
            .unwrap_or_default()
            .into_iter()
            .map(|r| r[..r.iter().rposition(|&b| b != b' ').map_or(0, |at| at + 1)].to_vec())
            .collect(),
        _ => return fail!("{refused}"),
    };
    let d = match args.get(2) {
        Some(value) => args::dim(&interp.env, value, |_| "cell2struct: DIM must be a valid dimension".to_string())?,
        None => 0,
    };
    if d >= cell.dims.len() && !cell.items.is_empty() {
        return fail!("cell2struct: DIM must be a valid dimension");
    }
    if names.len() != cell.dims.extent(d) {
        return fail!("cell2struct: number of FIELDS does not match dimension");
    }
    let mut rest: Vec<usize> = cell.dims.to_vec();
    let lanes = crate::builtins::reduce::lanes::Lanes::new(&cell.dims, d);
    if d < rest.len() {
        rest.remove(d);
    }
    let mut fields: IndexMap<Arc<str>, Vec<Value>> = IndexMap::new();
    for (k, name) in names.iter().enumerate() {
        let values = (0..lanes.count).map(|lane| cell.items[lanes.start(lane) + k * lanes.stride].clone()).collect();
        fields.insert(String::from_utf8_lossy(name).as_ref().into(), values);
    }
    Ok(Value::Struct(Arc::new(StructArray { dims: Dims::new(&rest), fields, class: None, cleanup: None })).into())
}
