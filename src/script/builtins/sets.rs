//! Sets: members, unions, intersections, differences; of numbers, of rows, of cells of texts.

use super::args::{has_word, texts};
use super::{Builtin, Outcome, row, text};
use crate::script::env::Env;
use crate::script::error::{Flow, fail};
use crate::script::value::{Class, Data, Dims, Tensor, Value};
use crate::script::vm::Interp;
use num_complex::Complex64;
use std::cmp::Ordering;

/// The family.
pub static ROWS: &[Builtin] = &[
    row(
        "ismember",
        2,
        3,
        2,
        "[tf, at] = ismember (a, s, \"rows\")",
        "Which elements of a are in s, and where.",
        ismember,
    ),
    row("union", 2, 4, 3, "[c, ia, ib] = union (a, b, \"rows\", \"stable\")", "What is in a or in b, sorted.", union),
    row(
        "intersect",
        2,
        4,
        3,
        "[c, ia, ib] = intersect (a, b, \"rows\", \"stable\")",
        "What is in a and in b, sorted.",
        intersect,
    ),
    row(
        "setdiff",
        2,
        4,
        2,
        "[c, ia] = setdiff (a, b, \"rows\", \"stable\")",
        "What is in a and not in b, sorted.",
        setdiff,
    ),
    row(
        "setxor",
        2,
        4,
        3,
        "[c, ia, ib] = setxor (a, b, \"rows\", \"stable\")",
        "What is in one of a and b alone, sorted.",
        setxor,
    ),
];

/// An element of a set.
#[derive(Clone, Debug)]
enum Key {
    Number(f64),
    /// Ordered by its absolute value, then by its angle.
    Complex(Complex64),
    Text(Vec<u8>),
    Row(Vec<f64>),
    ComplexRow(Vec<Complex64>),
}

/// NaN stands behind all numbers.
fn order_numbers(a: &f64, b: &f64) -> Ordering {
    a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

fn order_complex(a: &Complex64, b: &Complex64) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (false, false) => order_numbers(&a.norm(), &b.norm()).then(order_numbers(&a.arg(), &b.arg())),
        (a, b) => a.cmp(&b),
    }
}

/// Rows by their first elements that differ.
fn order_rows<T>(a: &[T], b: &[T], order: fn(&T, &T) -> Ordering) -> Ordering {
    a.iter().zip(b).map(|(x, y)| order(x, y)).find(|o| o.is_ne()).unwrap_or(a.len().cmp(&b.len()))
}

impl Key {
    fn order(&self, other: &Key) -> Ordering {
        match (self, other) {
            (Key::Number(a), Key::Number(b)) => order_numbers(a, b),
            (Key::Complex(a), Key::Complex(b)) => order_complex(a, b),
            (Key::Text(a), Key::Text(b)) => a.cmp(b),
            (Key::Row(a), Key::Row(b)) => order_rows(a, b, order_numbers),
            (Key::ComplexRow(a), Key::ComplexRow(b)) => order_rows(a, b, order_complex),
            _ => Ordering::Equal,
        }
    }

    /// NaN is no member of anything.
    fn same(&self, other: &Key) -> bool {
        let nan = match self {
            Key::Number(x) => x.is_nan(),
            Key::Complex(z) => z.is_nan(),
            Key::Text(_) => false,
            Key::Row(x) => x.iter().any(|v| v.is_nan()),
            Key::ComplexRow(x) => x.iter().any(|z| z.is_nan()),
        };
        !nan && self.order(other).is_eq()
    }
}

/// A set as it was given.
struct Given {
    keys: Vec<Key>,
    dims: Dims,
    class: Class,
    is_cell: bool,
    columns: usize,
}

fn given(env: &Env, who: &str, value: &Value, rows: bool) -> Flow<Given> {
    if let Value::Cell(_) = value {
        let Some(keys) = texts(value) else { return fail!("{who}: A and B must be arrays or cell arrays of strings") };
        let keys = keys.into_iter().map(Key::Text).collect();
        return Ok(Given { keys, dims: value.dims(), class: Class::Cell, is_cell: true, columns: 1 });
    }
    let host = env.host(value)?;
    let (m, n) = (host.dims.rows(), host.dims.elements().checked_div(host.dims.rows()).unwrap_or(0));
    if host.data.is_complex() {
        let at = |i: usize| host.data.c64_at(i);
        let keys = match rows {
            true => (0..m).map(|i| Key::ComplexRow((0..n).map(|j| at(j * m + i)).collect())).collect(),
            false => (0..host.len()).map(|i| Key::Complex(at(i))).collect(),
        };
        let (dims, class) = (host.dims.clone(), host.data.class());
        return Ok(Given { keys, dims, class, is_cell: false, columns: if rows { n } else { 1 } });
    }
    let x = host.data.to_f64();
    let keys = if rows {
        (0..m).map(|i| Key::Row((0..n).map(|j| x[j * m + i]).collect())).collect()
    } else {
        x.into_iter().map(Key::Number).collect()
    };
    Ok(Given {
        keys,
        dims: host.dims.clone(),
        class: host.data.class(),
        is_cell: false,
        columns: if rows { n } else { 1 },
    })
}

/// Where one set has complex numbers, those of the other are some, too.
fn alike(a: &mut Given, b: &mut Given) {
    let complex = |g: &Given| g.keys.iter().any(|k| matches!(k, Key::Complex(_) | Key::ComplexRow(_)));
    if complex(a) || complex(b) {
        let widened = |x: &f64| Complex64::new(*x, 0.0);
        for key in a.keys.iter_mut().chain(&mut b.keys) {
            match key {
                Key::Number(x) => *key = Key::Complex(widened(x)),
                Key::Row(row) => *key = Key::ComplexRow(row.iter().map(widened).collect()),
                Key::Complex(_) | Key::ComplexRow(_) | Key::Text(_) => {}
            }
        }
    }
}

/// Where one set has integers or singles, the numbers of the other are such, too, before they are compared.
fn saturated(a: &mut Given, b: &mut Given) {
    let class = joined_class(a, b);
    for set in [a, b] {
        if !class.is_integer() && class != Class::Single || set.class == class {
            continue;
        }
        let fit = |x: f64| Data::F64(vec![x]).converted(class).f64_at(0);
        for key in &mut set.keys {
            match key {
                Key::Number(x) => *x = fit(*x),
                Key::Row(row) => row.iter_mut().for_each(|x| *x = fit(*x)),
                Key::Complex(_) | Key::ComplexRow(_) | Key::Text(_) => {}
            }
        }
    }
}

/// Refuses options that are none, or contradict each other, and sets that have no rows alike.
fn check(who: &str, args: &[Value]) -> Flow<()> {
    let words: Vec<String> = args[2..].iter().map(|word| word.as_text().unwrap_or_default().to_lowercase()).collect();
    let known = ["rows", "sorted", "stable", "legacy"];
    if let Some(word) = words.iter().find(|word| !known.contains(&word.as_str())) {
        return fail!("{who}: invalid option: {word}");
    }
    if words.iter().filter(|word| *word != "rows").count() > 1 {
        return fail!("{who}: only one of \"sorted\", \"stable\", or \"legacy\" may be specified");
    }
    if !words.iter().any(|word| word == "rows") {
        return Ok(());
    }
    if args[..2].iter().any(|set| matches!(set, Value::Cell(_))) {
        return fail!("{who}: cells not supported with \"rows\" flag");
    }
    let (a, b) = (args[0].dims(), args[1].dims());
    if a.len() > 2 || b.len() > 2 {
        return fail!("{who}: A and B must be 2-dimensional matrices with \"rows\" flag");
    }
    if a.columns() != b.columns() && !args[..2].iter().any(Value::is_empty) {
        return fail!("{who}: number of columns in A and B must match");
    }
    Ok(())
}

/// A text as a cell; a char matrix as its rows.
fn rows_in_cell(value: &Value) -> Value {
    match text::rows(value) {
        Some(rows) if rows.len() > 1 => text::cell_column(rows),
        _ => Value::cell(Dims::scalar(), vec![value.clone()]),
    }
}

/// Cells of texts go with cells of texts alone.
fn combine(who: &str, a: &Value, b: &Value) -> Flow<()> {
    let is_cell = |v: &Value| matches!(v, Value::Cell(_));
    if is_cell(a) && is_cell(b) && texts(a).is_some() != texts(b).is_some() {
        return fail!("{who}: cell array of strings cannot be combined with a nonstring value");
    }
    Ok(())
}

/// Both sets; a text beside a cell of texts is one of them.
fn both(env: &Env, who: &str, args: &[Value]) -> Flow<(Given, Given, bool)> {
    env.host_all(args)?;
    check(who, args)?;
    let rows = has_word(&args[2..], "rows");
    let wrap = |value: &Value, other: &Value| match (value, other) {
        (v, Value::Cell(_)) if v.is_char() => rows_in_cell(v),
        (v, Value::Cell(_)) if v.is_empty() && !matches!(v, Value::Cell(_)) => Value::cell(Dims::zero(), Vec::new()),
        (v, _) => v.clone(),
    };
    let (a, b) = (wrap(&args[0], &args[1]), wrap(&args[1], &args[0]));
    combine(who, &a, &b)?;
    let (mut a, mut b) = (given(env, who, &a, rows)?, given(env, who, &b, rows)?);
    if a.is_cell != b.is_cell {
        return fail!("{who}: cell array of strings cannot be combined with a nonstring value");
    }
    alike(&mut a, &mut b);
    saturated(&mut a, &mut b);
    Ok((a, b, rows))
}

/// In which order distinct elements stand, and which of equal ones counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Sorted,
    /// As they come.
    Stable,
    /// Sorted, and the last of equal ones; indices and results are rows, but for columns alone.
    Legacy,
}

fn style(args: &[Value]) -> Style {
    match &args[2..] {
        words if has_word(words, "stable") => Style::Stable,
        words if has_word(words, "legacy") => Style::Legacy,
        _ => Style::Sorted,
    }
}

/// Distinct keys, each with the place of its first occurrence (the last, in the old style).
fn distinct(keys: &[Key], style: Style) -> Vec<(Key, usize)> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    let tied = |i: usize, j: usize| if style == Style::Legacy { j.cmp(&i) } else { i.cmp(&j) };
    order.sort_by(|&i, &j| keys[i].order(&keys[j]).then(tied(i, j)));
    let mut out: Vec<(Key, usize)> = Vec::new();
    for i in order {
        if out.last().is_none_or(|(key, _)| !key.same(&keys[i])) {
            out.push((keys[i].clone(), i));
        }
    }
    if style == Style::Stable {
        out.sort_by_key(|f| f.1);
    }
    out
}

/// The class of both sets' elements side by side; what has no elements has no say.
fn joined_class(a: &Given, b: &Given) -> Class {
    if a.class == b.class || b.keys.is_empty() {
        return a.class;
    }
    if a.keys.is_empty() && a.class == Class::Double {
        return b.class;
    }
    let either = |class: Class| a.class == class || b.class == class;
    match (a.class, b.class) {
        _ if either(Class::Char) => Class::Char,
        (class, _) | (_, class) if class.is_integer() => class,
        _ if either(Class::Single) => Class::Single,
        _ => Class::Double,
    }
}

/// Keys as a value of the kind that the sets had.
fn value_of(keys: &[Key], a: &Given, b: &Given, rows: bool, style: Style) -> Value {
    let n = keys.len();
    let is_row = |g: &Given| g.dims.rows() == 1 && g.dims.len() == 2;
    let is_column = |g: &Given| g.dims.columns() == 1 && g.dims.rows() != 1;
    // A row where both are rows (a scalar or an empty set is either); else a column.
    let neutral = |g: &Given| g.dims.is_scalar() || g.keys.is_empty();
    let flat = (is_row(a) || neutral(a))
        && (is_row(b) || neutral(b))
        && !(is_column(a) && !neutral(a) || is_column(b) && !neutral(b));
    let flat = flat || style == Style::Legacy && ![a, b].into_iter().all(|g| is_column(g) || neutral(g));
    let dims = match n {
        0 if a.keys.is_empty() && b.keys.is_empty() => Dims::zero(),
        _ if flat => Dims::new(&[1, n]),
        _ => Dims::new(&[n, 1]),
    };
    if a.is_cell || b.is_cell {
        let items = keys.iter().map(|k| if let Key::Text(t) = k { Value::string(t) } else { Value::empty() }).collect();
        return Value::cell(dims, items);
    }
    let class = joined_class(a, b);
    if let Some(Key::Complex(_)) = keys.first() {
        let numbers = keys.iter().map(|k| if let Key::Complex(z) = k { *z } else { Complex64::default() }).collect();
        return Value::tensor(Tensor::new(dims, crate::script::ops::complex_in_class(class, numbers)));
    }
    if let Some(Key::ComplexRow(first)) = keys.first() {
        let at = |k: usize| if let Key::ComplexRow(row) = &keys[k % n] { row[k / n] } else { Complex64::default() };
        let numbers = (0..n * first.len()).map(at).collect();
        let dims = Dims::new(&[n, first.len()]);
        return Value::tensor(Tensor::new(dims, crate::script::ops::complex_in_class(class, numbers)));
    }
    let (dims, numbers): (Dims, Vec<f64>) = if rows {
        let columns = a.columns.max(b.columns);
        let at = |k: usize| if let Key::Row(r) = &keys[k % n] { r.get(k / n).copied().unwrap_or(0.0) } else { 0.0 };
        (Dims::new(&[n, columns]), (0..n * columns).map(at).collect())
    } else {
        (dims, keys.iter().map(|k| if let Key::Number(x) = k { *x } else { 0.0 }).collect())
    };
    Value::tensor(Tensor::new(dims, Data::F64(numbers).converted(class)))
}

fn places(items: impl Iterator<Item = usize>, lying: bool) -> Value {
    let numbers = items.map(|i| i as f64 + 1.0).collect();
    if lying { Value::row(numbers) } else { Value::column(numbers) }
}

fn find(sorted: &[(Key, usize)], key: &Key) -> Option<usize> {
    let at = sorted.partition_point(|(k, _)| k.order(key).is_lt());
    sorted.get(at).filter(|(k, _)| k.same(key)).map(|(_, i)| *i)
}

fn ismember(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    env.host_all(args)?;
    if has_word(&args[2..], "stable") || has_word(&args[2..], "sorted") {
        return fail!("ismember: \"stable\" or \"sorted\" are not valid options");
    }
    let rows = has_word(&args[2..], "rows");
    let is_cell = |v: &Value| matches!(v, Value::Cell(_));
    let is_odd = |v: &Value| !is_cell(v) && !v.is_char() && !v.is_empty();
    if is_cell(&args[0]) && is_odd(&args[1]) || is_cell(&args[1]) && is_odd(&args[0]) {
        return fail!("ismember: cell array of strings cannot be combined with a nonstring value");
    }
    // One text is looked for among texts; a text's letters are looked for among letters.
    let one_text = args[0].is_char() && matches!(args[1], Value::Cell(_));
    combine("ismember", &args[0], &args[1])?;
    let mut a = match one_text {
        true => given(env, "ismember", &rows_in_cell(&args[0]), rows)?,
        false => given(env, "ismember", &args[0], rows)?,
    };
    let mut s = match &args[1] {
        v if a.is_cell && v.is_char() => given(env, "ismember", &rows_in_cell(v), rows)?,
        v => given(env, "ismember", v, rows)?,
    };
    if rows && !a.is_cell && a.columns != s.columns && !a.keys.is_empty() && !s.keys.is_empty() {
        return fail!("ismember: number of columns in A and B must match");
    }
    alike(&mut a, &mut s);
    if a.class.is_float() && s.class.is_float() {
        saturated(&mut a, &mut s);
    }
    let first = distinct(&s.keys, Style::Sorted);
    let kind = |k: &Key| std::mem::discriminant(k);
    let found: Vec<Option<usize>> = (a.keys.iter())
        .map(|k| if first.first().is_some_and(|(f, _)| kind(f) == kind(k)) { find(&first, k) } else { None })
        .collect();
    let dims = if rows { Dims::new(&[found.len(), 1]) } else { a.dims.clone() };
    let tf = Data::Bool(found.iter().map(Option::is_some).collect());
    let at = Data::F64(found.iter().map(|f| f.map_or(0.0, |i| i as f64 + 1.0)).collect());
    Ok(vec![Value::tensor(Tensor::new(dims.clone(), tf)), Value::tensor(Tensor::new(dims, at))].into())
}

fn union(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let (a, b, rows) = both(&interp.env, "union", args)?;
    let style = style(args);
    let split = a.keys.len();
    let all: Vec<Key> = a.keys.iter().chain(&b.keys).cloned().collect();
    let found = distinct(&all, style);
    let keys: Vec<Key> = found.iter().map(|f| f.0.clone()).collect();
    let lying = style == Style::Legacy && !rows;
    let from_a = places(found.iter().filter(|f| f.1 < split).map(|f| f.1), lying);
    let from_b = places(found.iter().filter(|f| f.1 >= split).map(|f| f.1 - split), lying);
    Ok(vec![value_of(&keys, &a, &b, rows, style), from_a, from_b].into())
}

fn intersect(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let (a, b, rows) = both(&interp.env, "intersect", args)?;
    let style = style(args);
    let second = if style == Style::Legacy { style } else { Style::Sorted };
    let (x, y) = (distinct(&a.keys, style), distinct(&b.keys, second));
    let found: Vec<(&Key, usize, usize)> = x.iter().filter_map(|(k, i)| Some((k, *i, find(&y, k)?))).collect();
    let keys: Vec<Key> = found.iter().map(|f| f.0.clone()).collect();
    // Two single elements have nothing, of no shape, in common.
    let alone = x.len() == 1 && y.len() == 1;
    let value = match keys.is_empty() && (a.keys.is_empty() || b.keys.is_empty() || alone) {
        true if a.is_cell => Value::cell(Dims::zero(), Vec::new()),
        true => Value::tensor(Tensor::zeros(joined_class(&a, &b), Dims::zero())),
        false => value_of(&keys, &a, &b, rows, style),
    };
    let lying = style == Style::Legacy && !rows;
    Ok(vec![value, places(found.iter().map(|f| f.1), lying), places(found.iter().map(|f| f.2), lying)].into())
}

/// What is in `keys` and not in the other set.
fn without(keys: &[Key], other: &[Key], style: Style) -> Vec<(Key, usize)> {
    let other = distinct(other, Style::Sorted);
    distinct(keys, style).into_iter().filter(|(key, _)| find(&other, key).is_none()).collect()
}

fn setdiff(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let (a, b, rows) = both(&interp.env, "setdiff", args)?;
    let style = style(args);
    let found = without(&a.keys, &b.keys, style);
    // They were compared in the kind of both, and are given as they were.
    let is_alike = args[0].class() == args[1].class() && args[0].is_complex() == args[1].is_complex();
    let keys: Vec<Key> = if a.is_cell || is_alike {
        found.iter().map(|(key, _)| key.clone()).collect()
    } else {
        let own = given(&interp.env, "setdiff", &args[0], rows)?;
        found.iter().map(|(_, at)| own.keys[*at].clone()).collect()
    };
    let like_a = Given { keys: Vec::new(), dims: Dims::zero(), class: a.class, is_cell: a.is_cell, columns: a.columns };
    let other = if style == Style::Legacy { &b } else { &like_a };
    let lying = style == Style::Legacy && !rows;
    Ok(vec![value_of(&keys, &a, other, rows, style), places(found.iter().map(|f| f.1), lying)].into())
}

fn setxor(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let (a, b, rows) = both(&interp.env, "setxor", args)?;
    let style = style(args);
    let (only_a, only_b) = (without(&a.keys, &b.keys, style), without(&b.keys, &a.keys, style));
    let mut keys: Vec<Key> = only_a.iter().chain(&only_b).map(|f| f.0.clone()).collect();
    if style != Style::Stable {
        keys.sort_by(Key::order);
    }
    let lying = style == Style::Legacy && !rows;
    let of = |given: &Given, found: &[(Key, usize)]| match given.keys.is_empty() {
        true => Value::empty(),
        false => places(found.iter().map(|f| f.1), lying),
    };
    let out = vec![value_of(&keys, &a, &b, rows, style), of(&a, &only_a), of(&b, &only_b)];
    Ok(out.into())
}
