//! Sorting, finding, and distinct elements.
//!
//! In: arrays of any class, cell arrays of strings. Out: elements in order, and their former positions.
//! Must hold: sorting is stable in both directions; NaN comes last in ascending and first in descending order.

use super::order::{self, Distinct, distinct, ranked};
use crate::builtins::args::{self, is_word};
use crate::builtins::record::{awaited, is_big, lift, record};
use crate::builtins::reduce::field::Ordered;
use crate::builtins::reduce::lanes::{Lanes, pick};
use crate::builtins::reduce::reductions::{check_array, hosted, on_runtime, type_name};
use crate::builtins::{Builtin, Outcome, row};
use crate::env::Env;
use crate::error::{Flow, ScriptError, fail};
use crate::value::blocks::BLOCK;
use crate::value::lazy::with_axes;
use crate::value::tensor::{each_data, map_data};
use crate::value::{Class, Data, Dims, Lazy, Tensor, Value};
use crate::vm::Interp;
use futures::FutureExt;
use std::cmp::Ordering;
use std::sync::Arc;
use tidemill::Array;

/// The functions.
pub static ROWS: &[Builtin] = &[
    row("sort", 1, 7, 2, "[s, i] = sort (x, dim, mode, option, value)", "Sorts along a dimension.", sort),
    row("sortrows", 1, 2, 2, "[s, i] = sortrows (a, c)", "Sorts rows by columns.", sortrows),
    row("issorted", 1, 5, 1, "issorted (a, mode)", "Whether elements are sorted.", issorted),
    row("find", 1, 3, 3, "[r, c, v] = find (x, n, direction)", "Where elements are not zero.", find),
    row("nonzeros", 1, 1, 1, "nonzeros (x)", "The elements that are not zero, as a column.", nonzeros),
    row("unique", 1, 5, 3, "[u, i, j] = unique (x, \"rows\", \"stable\")", "The distinct elements.", unique),
    row("lookup", 2, 3, 1, "lookup (table, y, options)", "Where in a sorted table values belong.", lookup),
];

fn sort_mode(name: &str, value: &Value) -> Flow<bool> {
    if is_word(value, "ascend") {
        Ok(false)
    } else if is_word(value, "descend") {
        Ok(true)
    } else {
        fail!("{name}: MODE must be either \"ascend\" or \"descend\"")
    }
}

fn sort(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let env = &interp.env;
    let x = &args[0];
    let (mut dim, mut descending) = (None, false);
    let options = args[1..].iter().position(|a| is_word(a, "MissingPlacement") || is_word(a, "ComparisonMethod"));
    let (plain, options) = args[1..].split_at(options.unwrap_or(args.len() - 1));
    let special = Special::of(options)?;
    match plain {
        [] => {}
        [mode] if mode.is_char() => descending = sort_mode("sort", mode)?,
        [d, rest @ ..] => {
            if d.is_char() {
                return fail!("sort: DIM must be a valid dimension");
            }
            if !d.is_empty() {
                dim = Some(args::dim(env, d, |_| "sort: DIM must be a valid dimension".to_string())?);
            }
            match rest {
                [] => {}
                [mode] => descending = sort_mode("sort", mode)?,
                _ => return crate::builtins::counts::invalid_call("sort", "[s, i] = sort (x, dim, mode)"),
            }
        }
    }
    let d = dim.unwrap_or_else(|| x.dims().first_non_singleton());
    if let Value::Struct(_) | Value::Function(_) = x {
        return fail!("octave_base_value::sort (): wrong type argument '{}'", type_name(x));
    }
    let big = on_runtime(x).is_some() || is_big(env, x.class(), x.len()) && !x.is_complex();
    if big
        && special == Special::default()
        && d < 16
        && x.class() != Class::Logical
        && let Some(array) = lift(env, x)?
    {
        let array = with_axes(&array, d + 1);
        let (sorted, places) = if descending { array.sort_descending(d) } else { array.sort(d) };
        let sorted = record(sorted, x.class(), &[x])?;
        if nargout < 2 {
            return Ok(sorted.into());
        }
        return Ok(vec![sorted, record(places.cast::<f64>() + 1.0, Class::Double, &[x])?].into());
    }
    let host;
    let x = match x {
        Value::Lazy(_) => {
            host = Value::tensor((*hosted(env, x)?).clone());
            &host
        }
        other => other,
    };
    let dims = x.dims();
    let lanes = Lanes::new(&dims, d);
    if let Value::Cell(_) = x {
        let strings = cell_strings("sort: only cell arrays of character strings may be sorted", x)?;
        let compare = |a: usize, b: usize| match descending {
            true => strings[b].cmp(&strings[a]),
            false => strings[a].cmp(&strings[b]),
        };
        return sorted_by(env, x, lanes, nargout, |order| order.sort_by(|&a, &b| compare(a, b)));
    }
    let t = env.host(x)?;
    if special != Special::default() {
        let keys = special.keys(&t.data);
        return sorted_by(env, x, lanes, nargout, |order| {
            match &keys {
                Some(keys) => sort_by_keys(keys, order, descending),
                None => each_data!(&*t.data, v => order.sort_by(|&a, &b| ranked(v[a], v[b], descending))),
            }
            if let Some(first) = special.missing_first {
                order.sort_by_key(|&k| t.data.c64_at(k).is_nan() != first);
            }
        });
    }
    env.check_host(
        &dims,
        t.data.class().bytes() * (1 + usize::from(t.data.is_complex())) + 12 * usize::from(nargout > 1),
    )?;
    let (data, places) = match nargout > 1 {
        true => order::sorted_with_places(env, &t.data, lanes, descending)?,
        false => (order::sorted(env, &t.data, lanes, descending)?, Vec::new()),
    };
    let mut sorted = Tensor::new(dims.clone(), data);
    sorted.double_quoted = t.double_quoted;
    let sorted = if sorted.is_empty() { Value::tensor(sorted) } else { Value::tensor_as_is(sorted) };
    if nargout < 2 {
        return Ok(sorted.into());
    }
    Ok(vec![sorted, Value::tensor(Tensor::new(dims, Data::F64(places)))].into())
}

/// Returns the outputs of `sort`, where `by` sorts the positions of each lane.
fn sorted_by(env: &Env, x: &Value, lanes: Lanes, nargout: usize, by: impl Fn(&mut [usize])) -> Flow<Outcome> {
    let (mut places, mut index) = (vec![0; x.len()], vec![0.0; x.len()]);
    for lane in 0..lanes.count {
        env.check_halt()?;
        let mut order: Vec<usize> = lanes.positions(lane).collect();
        by(&mut order);
        for (to, from) in lanes.positions(lane).zip(order) {
            places[to] = from;
            index[to] = ((from - lanes.start(lane)) / lanes.stride) as f64 + 1.0;
        }
    }
    let Some(sorted) = pick(x, x.dims(), &places) else {
        return fail!("octave_base_value::sort (): wrong type argument '{}'", type_name(x));
    };
    if nargout < 2 {
        return Ok(sorted.into());
    }
    Ok(vec![sorted, Value::tensor(Tensor::new(x.dims(), Data::F64(index)))].into())
}

/// Options of `sort`: the place of NaN, and the numbers by which elements are compared.
#[derive(Clone, Copy, Default, PartialEq)]
struct Special {
    missing_first: Option<bool>,
    by: Comparison,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Comparison {
    #[default]
    Auto,
    Real,
    Magnitude,
}

impl Special {
    fn of(options: &[Value]) -> Flow<Special> {
        let mut special = Special::default();
        for pair in options.chunks(2) {
            let word = pair.get(1).and_then(Value::as_text).unwrap_or_default().to_ascii_lowercase();
            match (is_word(&pair[0], "MissingPlacement"), word.as_str()) {
                (true, "auto") => special.missing_first = None,
                (true, "first") => special.missing_first = Some(true),
                (true, "last") => special.missing_first = Some(false),
                (true, _) => return fail!("sort: MissingPlacement must be \"auto\", \"first\" or \"last\""),
                (false, _) if !is_word(&pair[0], "ComparisonMethod") => {
                    return fail!("sort: unknown option '{}'", pair[0].as_text().unwrap_or_default());
                }
                (false, "auto") => special.by = Comparison::Auto,
                (false, "real") => special.by = Comparison::Real,
                (false, "abs") => special.by = Comparison::Magnitude,
                (false, _) => return fail!("sort: ComparisonMethod must be \"auto\", \"real\" or \"abs\""),
            }
        }
        Ok(special)
    }

    /// Returns the numbers by which elements are compared; the second ones count if the first are equal.
    fn keys(self, data: &Data) -> Option<Vec<(f64, f64)>> {
        let keys: fn(num_complex::Complex64) -> (f64, f64) = match self.by {
            Comparison::Auto => return None,
            Comparison::Real => |z| (z.re, z.im),
            Comparison::Magnitude => |z| (z.norm(), z.arg()),
        };
        Some((0..data.len()).map(|k| keys(data.c64_at(k))).collect())
    }
}

fn sort_by_keys(keys: &[(f64, f64)], order: &mut [usize], descending: bool) {
    order.sort_by(|&a, &b| {
        let second = || ranked(keys[a].1, keys[b].1, descending);
        ranked(keys[a].0, keys[b].0, descending).then_with(second)
    });
}

/// Returns the char rows of a cell array.
fn cell_strings(message: &str, value: &Value) -> Flow<Vec<Vec<u8>>> {
    let Value::Cell(c) = value else { return fail!("{message}") };
    match c.items.iter().map(|v| v.as_bytes().map(<[u8]>::to_vec)).collect::<Option<Vec<_>>>() {
        Some(strings) => Ok(strings),
        None => fail!("{message}"),
    }
}

/// Compares two rows by these columns (from 0), each in ascending or descending order.
fn compare_rows<T: Ordered>(v: &[T], rows: usize, columns: &[(usize, bool)], a: usize, b: usize) -> Ordering {
    let by = |&(column, descending): &(usize, bool)| ranked(v[a + column * rows], v[b + column * rows], descending);
    columns.iter().map(by).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
}

/// A column of a cell array by which rows are sorted.
enum CellColumn {
    Texts(Vec<Vec<u8>>),
    Numbers(Vec<f64>),
}

impl CellColumn {
    fn compare(&self, a: usize, b: usize) -> Ordering {
        match self {
            CellColumn::Texts(texts) => texts[a].cmp(&texts[b]),
            CellColumn::Numbers(numbers) => ranked(numbers[a], numbers[b], false),
        }
    }
}

/// Returns the keys of a column of cells, which must be all texts or all numbers.
fn cell_column(items: &[Value]) -> Flow<CellColumn> {
    let number = |v: &Value| match v {
        Value::Num(x) => Some(*x),
        Value::Bool(x) => Some(f64::from(*x)),
        Value::Tensor(t) if t.len() == 1 && !v.is_char() && !v.is_complex() => Some(t.data.f64_at(0)),
        _ => None,
    };
    if let Some(texts) = items.iter().map(|v| v.as_bytes().map(<[u8]>::to_vec)).collect() {
        return Ok(CellColumn::Texts(texts));
    }
    match items.iter().map(number).collect() {
        Some(numbers) => Ok(CellColumn::Numbers(numbers)),
        None => fail!("sortrows: only cell arrays of character strings may be sorted"),
    }
}

fn sortrows(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let env = &interp.env;
    env.host_all(args)?;
    let a = super::shape::host_value(env, &args[0])?;
    let (rows, columns) = (a.dims().rows(), a.dims().columns());
    if a.dims().len() > 2 {
        return fail!("sortrows: A must be a 2-D matrix");
    }
    let mut by: Vec<(usize, bool)> = (0..columns).map(|c| (c, false)).collect();
    if let Some(c) = args.get(1) {
        if is_word(c, "descend") || is_word(c, "ascend") {
            by.iter_mut().for_each(|b| b.1 = is_word(c, "descend"));
        } else {
            if !c.is_numeric() || !c.dims().is_vector() && !c.is_empty() {
                return fail!("sortrows: C must be a numeric vector");
            }
            by.clear();
            for c in env.host(c)?.data.to_f64() {
                if c != c.trunc() || c == 0.0 || c.abs() > columns as f64 {
                    return fail!("sortrows: all elements of C must be in the range [1, columns (A)]");
                }
                by.push((c.abs() as usize - 1, c < 0.0));
            }
        }
    }
    let mut order: Vec<usize> = (0..rows).collect();
    if let Value::Cell(cell) = &a {
        let keys = by.iter().map(|&(c, down)| Ok((cell_column(&cell.items[c * rows..(c + 1) * rows])?, down)));
        let keys = keys.collect::<Flow<Vec<_>>>()?;
        let compare = |x: usize, y: usize| {
            let by = |(key, down): &(CellColumn, bool)| if *down { key.compare(y, x) } else { key.compare(x, y) };
            keys.iter().map(by).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
        };
        order.sort_by(|&x, &y| compare(x, y));
    } else {
        check_array("sortrows", &a)?;
        let t = env.host(&a)?;
        each_data!(&*t.data, v => order.sort_by(|&x, &y| compare_rows(v, rows, &by, x, y)));
    }
    let places: Vec<usize> = (0..columns).flat_map(|c| order.iter().map(move |&r| r + c * rows)).collect();
    let Some(sorted) = pick(&a, a.dims(), &places) else { return fail!("sortrows: wrong type argument") };
    if nargout < 2 {
        return Ok(sorted.into());
    }
    Ok(vec![sorted, Value::column(order.iter().map(|&r| r as f64 + 1.0).collect())].into())
}

fn issorted(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    env.host_all(args)?;
    let a = super::shape::host_value(env, &args[0])?;
    let (mut rows, mut modes, mut strict) = (false, vec![false], false);
    for word in &args[1..] {
        match word.as_text().unwrap_or_default().to_ascii_lowercase().as_str() {
            "rows" => rows = true,
            "ascend" | "ascending" => modes = vec![false],
            "descend" | "descending" => modes = vec![true],
            "either" | "monotonic" => modes = vec![false, true],
            "strictascend" => (modes, strict) = (vec![false], true),
            "strictdescend" => (modes, strict) = (vec![true], true),
            "strictmonotonic" => (modes, strict) = (vec![false, true], true),
            _ => return fail!("issorted: MODE must be \"ascend\", \"descend\", or \"either\""),
        }
    }
    if let Value::Cell(cell) = &a {
        if !rows && !cell.items.is_empty() && !cell.dims.is_vector() {
            return fail!("issorted: needs a vector");
        }
        let height = if rows { cell.dims.rows() } else { cell.items.len() };
        let strings = cell_strings("issorted: A is not a cell array of strings", &a)?;
        let row = |r: usize| strings.iter().skip(r).step_by(height.max(1));
        let fits = |order: Ordering| order == Ordering::Less || order == Ordering::Equal && !strict;
        let in_order = |r: usize, down: bool| fits(if down { row(r).cmp(row(r - 1)) } else { row(r - 1).cmp(row(r)) });
        let sorted = modes.iter().any(|&down| (1..height).all(|r| in_order(r, down)));
        return Ok(Value::Bool(sorted).into());
    }
    check_array("issorted", &a)?;
    let t = env.host(&a)?;
    if rows && t.dims.len() > 2 {
        return fail!("issorted: A must be a 2-D object");
    }
    if !rows && !t.is_empty() && !t.dims.is_vector() {
        return fail!("issorted: needs a vector");
    }
    let n = if rows { t.dims.rows() } else { t.len() };
    let columns = if rows { t.dims.columns() } else { 1 };
    let sorted = modes.iter().any(|&down| {
        if rows && modes.len() > 1 {
            // In each direction, all columns are compared in the same order.
            let in_order = |column: &[(usize, bool)]| {
                each_data!(&*t.data, v => (1..n).all(|r| compare_rows(v, n, column, r - 1, r) != Ordering::Greater))
            };
            return (0..columns).all(|c| in_order(&[(c, down)]));
        }
        let by: Vec<(usize, bool)> = (0..columns).map(|c| (c, down)).collect();
        let fits = |order: Ordering| order == Ordering::Less || order == Ordering::Equal && !strict;
        each_data!(&*t.data, v => (1..n).all(|r| fits(compare_rows(v, n, &by, r - 1, r))))
    });
    Ok(Value::Bool(sorted).into())
}

/// Returns the dimensions of `n` found elements of an array: a row gives a row, and any other array a column.
fn found_dims(x: &Dims, n: usize) -> Dims {
    if n == 0 && (x.is_scalar() || x[..2] == [0, 0]) {
        Dims::zero()
    } else if x.len() == 2 && x.rows() == 1 && x.columns() != 1 {
        Dims::new(&[1, n])
    } else {
        Dims::new(&[n, 1])
    }
}

/// The number of elements that are searched first if few are wanted: as many as are computed during one round trip.
const FIRST_SEARCH: usize = 1 << 14;
/// The number of elements that are searched for each wanted one.
const SEARCH_FOR_EACH: usize = 64;
/// The factor by which each further search is larger.
const SEARCH_GROWTH: usize = 16;

/// Finds the first or last nonzero elements: at least `limit` of them, or all that there are.
async fn some_nonzero(array: Array, limit: usize, from_end: bool) -> tidemill::Result<Array> {
    let n = array.shape()?.elements();
    let mut len = limit.saturating_mul(SEARCH_FOR_EACH).max(FIRST_SEARCH);
    while len < n / 2 {
        let skipped = if from_end { n - len } else { 0 };
        let found = array.reshape([n]).slice(skipped..skipped + len).nonzero().await?;
        if found.shape()?.elements() >= limit {
            return if skipped == 0 { Ok(found) } else { (found + skipped as i64).checked() };
        }
        len = len.saturating_mul(SEARCH_GROWTH);
    }
    array.nonzero().await
}

/// Awaits the positions (from 0, a column) of the nonzero elements of a runtime array: at least the first, or last,
/// `limit`.
fn nonzero_of(env: &mut Env, l: &Lazy, limit: usize, from_end: bool) -> Flow<Arc<Lazy>> {
    let array = l.array.clone();
    let (pinned, may_fault) = (l.pinned, l.may_fault);
    let found = awaited(env, || {
        Ok(async move {
            let found = some_nonzero(array, limit, from_end).await?;
            Ok(Value::Lazy(Arc::new(Lazy::new(found, Class::Uint32, pinned, may_fault).map_err(ScriptError::from)?)))
        }
        .boxed())
    })?;
    match found {
        Value::Lazy(found) => Ok(found),
        _ => fail!("find: the positions did not arrive"),
    }
}

fn find(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let env = &mut interp.env;
    let x = &args[0];
    check_array("find", x)?;
    let mut limit = usize::MAX;
    if let Some(n) = args.get(1) {
        let n = if n.len() == 1 && !n.is_char() { args::number(env, "find", n)? } else { f64::NAN };
        if !(n >= 0.0 && n == n.trunc()) {
            return fail!("find: N must be a non-negative integer");
        }
        limit = n as usize;
    }
    let from_end = match args.get(2) {
        None => false,
        Some(word) if is_word(word, "first") => false,
        Some(word) if is_word(word, "last") => true,
        Some(_) => return fail!("find: DIRECTION must be \"first\" or \"last\""),
    };
    if let Some(l) = on_runtime(x) {
        let found = nonzero_of(env, l, limit, from_end)?;
        return found_on_runtime(x, l, &found, limit, from_end, nargout);
    }
    let host = hosted(env, x)?;
    let places = places_of_nonzeros(env, &host.data, limit, from_end)?;
    let dims = found_dims(&host.dims, places.len());
    let values = |numbers: Vec<f64>| Value::tensor(Tensor::new(dims.clone(), Data::F64(numbers)));
    if nargout < 2 {
        return Ok(values(places).into());
    }
    let rows = host.dims.rows().max(1) as f64;
    let found = Value::tensor(Tensor::new(dims.clone(), host.data.pick(places.iter().map(|&p| p as usize - 1))));
    let row = values(places.iter().map(|p| (p - 1.0) % rows + 1.0).collect());
    let mut columns = places;
    columns.iter_mut().for_each(|p| *p = ((*p - 1.0) / rows).floor() + 1.0);
    Ok(vec![row, values(columns), found].into())
}

/// Returns the positions (from 1) of the first or last nonzero elements: `limit` of them, or all that there are.
fn places_of_nonzeros(env: &Env, data: &Data, limit: usize, from_end: bool) -> Flow<Vec<f64>> {
    each_data!(data, v => {
        let mut there = 0;
        for block in v.chunks(BLOCK) {
            env.check_halt()?;
            there += block.iter().filter(|x| x.is_true() || x.no_number()).count();
        }
        let mut skipped = if from_end { there.saturating_sub(limit) } else { 0 };
        let count = there.min(limit);
        env.check_host(&[count], size_of::<f64>())?;
        let mut places = Vec::with_capacity(count);
        for (block, elements) in v.chunks(BLOCK).enumerate() {
            env.check_halt()?;
            if places.len() == count {
                break;
            }
            for (k, x) in elements.iter().enumerate() {
                if !(x.is_true() || x.no_number()) {
                    continue;
                }
                if skipped > 0 {
                    skipped -= 1;
                } else if places.len() < count {
                    places.push((block * BLOCK + k) as f64 + 1.0);
                }
            }
        }
        Ok(places)
    })
}

fn found_on_runtime(x: &Value, l: &Lazy, found: &Lazy, limit: usize, from_end: bool, nargout: usize) -> Flow<Outcome> {
    let total = found.dims.elements();
    let kept = total.min(limit);
    let places = match (kept < total, from_end) {
        (false, _) => found.array.clone(),
        (_, false) => found.array.slice((0..kept, ..)),
        (_, true) => found.array.slice((total - kept..total, ..)),
    };
    let dims = found_dims(&l.dims, kept);
    if kept == 0 {
        let none = |class: Class| Value::tensor(Tensor::zeros(class, dims.clone()));
        return Ok(vec![none(Class::Double), none(Class::Double), none(l.class)].into());
    }
    let shaped = |a: Array, class: Class| record(a.reshape(&dims[..]), class, &[x]);
    let numbers = places.cast::<f64>();
    if nargout < 2 {
        return Ok(shaped(numbers + 1.0, Class::Double)?.into());
    }
    let rows = l.dims.rows() as f64;
    let outs = vec![
        shaped(numbers.modulo(rows) + 1.0, Class::Double)?,
        shaped((&numbers / rows).floor() + 1.0, Class::Double)?,
        shaped(l.array.take(&places), l.class)?,
    ];
    Ok(outs.into())
}

fn nonzeros(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &mut interp.env;
    let x = &args[0];
    check_array("find", x)?;
    if let Some(l) = on_runtime(x) {
        let found = nonzero_of(env, l, usize::MAX, false)?;
        return Ok(record(l.array.take(&found.array), l.class, &[x])?.into());
    }
    let host = hosted(env, x)?;
    let data = map_data!(&*host.data, v => v.iter().copied().filter(|x| x.is_true() || x.no_number()).collect());
    Ok(Value::tensor(Tensor::new(Dims::new(&[data.len(), 1]), data)).into())
}

/// The options of `unique`.
struct Asked {
    rows: bool,
    stable: bool,
    last: bool,
    legacy: bool,
}

impl Asked {
    /// Returns the options for finding distinct elements, for this many outputs.
    fn distinct(&self, nargout: usize) -> Distinct {
        Distinct { stable: self.stable, last: self.last || self.legacy, which: nargout > 2 }
    }
}

/// Returns an error for options of `unique` that contradict each other.
fn fits_together(words: &[Value]) -> Flow<()> {
    let given = |name: &str| words.iter().any(|word| is_word(word, name));
    let (ends, orders) = (given("first") || given("last"), given("sorted") || given("stable"));
    if given("first") && given("last") {
        return fail!("unique: cannot specify both \"first\" and \"last\"");
    }
    if given("sorted") && given("stable") {
        return fail!("unique: cannot specify both \"sorted\" and \"stable\"");
    }
    if ends && orders {
        return fail!("unique: cannot specify \"first\"/\"last\" with \"sorted\"/\"stable\"");
    }
    if orders && given("legacy") {
        return fail!("unique: cannot specify \"sorted\" or \"stable\" with \"legacy\"");
    }
    Ok(())
}

fn unique(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let env = &interp.env;
    env.host_all(args)?;
    let mut asked = Asked { rows: false, stable: false, last: false, legacy: false };
    for word in &args[1..] {
        match word.as_text().unwrap_or_default().as_str() {
            "rows" => asked.rows = true,
            "stable" => asked.stable = true,
            "last" => asked.last = true,
            "legacy" => asked.legacy = true,
            "first" | "sorted" => {}
            _ => return fail!("unique: invalid option"),
        }
    }
    fits_together(&args[1..])?;
    let x = super::shape::host_value(env, &args[0])?;
    let dims = x.dims();
    let (found, picked) = match &x {
        Value::Cell(_) => {
            let strings = cell_strings("unique: X must be an array or cell array of strings", &x)?;
            let of = |a: usize, b: usize| strings[a].cmp(&strings[b]);
            let found = distinct(strings.len(), asked.distinct(nargout), of, |a, b| strings[a] == strings[b]);
            let n = found.places.len();
            // A cell row gives a row, and all other values give a column.
            let shape = if dims.rows() == 1 && dims.columns() > 1 { Dims::new(&[1, n]) } else { Dims::new(&[n, 1]) };
            let shape = if n == 0 && dims == Dims::zero() { dims.clone() } else { shape };
            let picked = pick(&x, shape, &found.places);
            (found, picked)
        }
        Value::Struct(_) | Value::Function(_) => {
            return fail!("unique: X must be an array or cell array of strings");
        }
        _ if asked.rows => {
            let t = env.host(&x)?;
            if dims.len() > 2 {
                return fail!("unique: X must be a 2-D matrix with \"rows\"");
            }
            let (rows, columns) = (dims.rows(), dims.columns());
            let by: Vec<(usize, bool)> = (0..columns).map(|c| (c, false)).collect();
            let found = each_data!(&*t.data, v => distinct(
                rows,
                asked.distinct(nargout),
                |a, b| compare_rows(v, rows, &by, a, b),
                |a, b| (0..columns).all(|c| v[a + c * rows] == v[b + c * rows]),
            ));
            let places: Vec<usize> =
                (0..columns).flat_map(|c| found.places.iter().map(move |&r| r + c * rows)).collect();
            let picked = pick(&x, Dims::new(&[found.places.len(), columns]), &places);
            (found, picked)
        }
        _ => {
            let t = env.host(&x)?;
            let found = order::distinct_elements(env, &t.data, asked.distinct(nargout))?;
            let n = found.places.len();
            let shape = if dims.rows() == 1 && dims.len() == 2 && dims.columns() > 0 {
                Dims::new(&[1, n])
            } else if dims[..] == [0, 0] {
                dims.clone()
            } else {
                Dims::new(&[n, 1])
            };
            let picked = pick(&x, shape, &found.places);
            (found, picked)
        }
    };
    let Some(picked) = picked else { return fail!("unique: X must be an array or cell array of strings") };
    if nargout < 2 {
        return Ok(picked.into());
    }
    let nothing = found.places.is_empty();
    let places = |v: Vec<f64>| match () {
        _ if nothing => Value::empty(),
        _ if asked.legacy && dims.rows() == 1 => Value::row(v),
        _ => Value::column(v),
    };
    let first = found.places.iter().map(|&at| at as f64 + 1.0).collect();
    if nargout < 3 {
        return Ok(vec![picked, places(first)].into());
    }
    Ok(vec![picked, places(first), places(found.which)].into())
}

/// The options of `lookup`.
#[derive(Clone, Copy, Default)]
struct LookupOptions {
    /// Values before the table belong to its first interval.
    left: bool,
    /// Values behind the table belong to its last interval.
    right: bool,
    /// The result is 0 if the table does not contain the value.
    exact: bool,
    /// The result only tells whether the table contains the value.
    is_there: bool,
}

impl LookupOptions {
    fn of(value: Option<&Value>) -> Flow<LookupOptions> {
        let mut options = LookupOptions::default();
        let Some(value) = value else { return Ok(options) };
        let Some(word) = value.as_text() else { return fail!("lookup: OPT must be a string") };
        for letter in word.chars() {
            match letter {
                'l' => options.left = true,
                'r' => options.right = true,
                'm' => options.exact = true,
                'b' => options.is_there = true,
                other => return fail!("lookup: unrecognized option: {other}"),
            }
        }
        if options.exact && options.is_there {
            return fail!("lookup: only one of m or b can be specified");
        }
        Ok(options)
    }

    /// Turns positions into the result for a table of `n` values. `same` tells whether the i-th value equals the
    /// table's value at a position.
    fn answer(self, dims: Dims, places: &[usize], n: usize, same: impl Fn(usize, usize) -> bool) -> Value {
        let found = |(i, place): (usize, &usize)| *place > 0 && same(i, place - 1);
        let numbered = places.iter().enumerate();
        let data = if self.is_there {
            Data::Bool(numbered.map(found).collect())
        } else if self.exact {
            Data::F64(numbered.map(|each| if found(each) { *each.1 as f64 } else { 0.0 }).collect())
        } else {
            let last = if self.right { n as f64 - 1.0 } else { n as f64 };
            let first = if self.left { 1.0 } else { f64::NEG_INFINITY };
            Data::F64(places.iter().map(|&place| (place as f64).min(last).max(first)).collect())
        };
        Value::tensor(Tensor::new(dims, data))
    }
}

fn lookup(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    env.host_all(args)?;
    let options = LookupOptions::of(args.get(2))?;
    if let Value::Cell(_) = &args[0] {
        return lookup_text(&args[0], &args[1], options);
    }
    let (table, y) = (env.host(&args[0])?, env.host(&args[1])?);
    let (table, wanted) = (table.data.to_f64(), y.data.to_f64());
    let down = table.len() > 1 && table[0] > table[table.len() - 1];
    let place = |y: f64| match down {
        _ if y.is_nan() => table.len(),
        true => table.partition_point(|t| *t >= y),
        false => table.partition_point(|t| *t <= y),
    };
    let places: Vec<usize> = wanted.iter().map(|y| place(*y)).collect();
    let same = |i: usize, at: usize| wanted[i] == table[at] || wanted[i].is_nan() && table[at].is_nan();
    Ok(options.answer(y.dims.clone(), &places, table.len(), same).into())
}

fn lookup_text(table: &Value, y: &Value, options: LookupOptions) -> Flow<Outcome> {
    let table = cell_strings("lookup: TABLE must be a cell array of strings", table)?;
    if options.left || options.right {
        return fail!("lookup: l, r are not recognized for string lookups");
    }
    let (dims, wanted) = match (y, y.as_bytes()) {
        (Value::Cell(c), _) => (c.dims.clone(), cell_strings("lookup: Y must be a cell array of strings", y)?),
        (_, Some(s)) => (Dims::scalar(), vec![s.to_vec()]),
        _ => return fail!("lookup: Y must be a string"),
    };
    let down = table.len() > 1 && table[0] > table[table.len() - 1];
    let place = |s: &Vec<u8>| table.partition_point(|t| if down { t >= s } else { t <= s });
    let places: Vec<usize> = wanted.iter().map(place).collect();
    Ok(options.answer(dims, &places, table.len(), |i, at| wanted[i] == table[at]).into())
}
