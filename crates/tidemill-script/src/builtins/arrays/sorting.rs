//! Sorting, and the table of the functions that sort, find (`finding.rs`) or give distinct elements (`unique.rs`).
//!
//! In: arrays of any class, cell arrays of strings. Out: elements in order, and their former positions.
//! Must hold: sorting is stable in both directions; NaN comes last in ascending and first in descending order.

use super::finding::{find, lookup, nonzeros};
use super::order::{self, ranked};
use super::unique::unique;
use crate::builtins::args::{self, is_word};
use crate::builtins::record::{is_big, lift, record};
use crate::builtins::reduce::field::Ordered;
use crate::builtins::reduce::lanes::{Lanes, pick};
use crate::builtins::reduce::reductions::{check_array, hosted, on_runtime, type_name};
use crate::builtins::{Builtin, Outcome, row};
use crate::env::Env;
use crate::error::{Flow, fail};
use crate::value::lazy::with_axes;
use crate::value::tensor::each_data;
use crate::value::{Class, Data, Tensor, Value};
use crate::vm::Interp;
use std::cmp::Ordering;

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
pub(super) fn cell_strings(message: &str, value: &Value) -> Flow<Vec<Vec<u8>>> {
    let Value::Cell(c) = value else { return fail!("{message}") };
    match c.items.iter().map(|v| v.as_bytes().map(<[u8]>::to_vec)).collect::<Option<Vec<_>>>() {
        Some(strings) => Ok(strings),
        None => fail!("{message}"),
    }
}

/// Compares two rows by these columns (from 0), each in ascending or descending order.
pub(super) fn compare_rows<T: Ordered>(
    v: &[T],
    rows: usize,
    columns: &[(usize, bool)],
    a: usize,
    b: usize,
) -> Ordering {
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
