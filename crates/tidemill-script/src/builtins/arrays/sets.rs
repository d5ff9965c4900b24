//! Sets: members, unions, intersections and differences of numbers, rows, and cells of texts.

use super::set_keys::{Keys, Style};
use crate::builtins::args::{has_word, texts};
use crate::builtins::text::chars;
use crate::builtins::{Builtin, Outcome, row};
use crate::env::Env;
use crate::error::{Flow, fail};
use crate::ops::in_class;
use crate::value::{Class, Data, Dims, Tensor, Value};
use crate::vm::Interp;

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

/// A set as an argument gave it.
struct Given {
    keys: Keys,
    dims: Dims,
    class: Class,
    is_cell: bool,
    columns: usize,
}

fn given(env: &Env, who: &str, value: &Value, rows: bool) -> Flow<Given> {
    if let Value::Cell(_) = value {
        let Some(keys) = texts(value) else { return fail!("{who}: A and B must be arrays or cell arrays of strings") };
        let keys = Keys::Texts(keys.into_iter().collect());
        return Ok(Given { keys, dims: value.dims(), class: Class::Cell, is_cell: true, columns: 1 });
    }
    let host = env.host(value)?;
    let (m, n) = (host.dims.rows(), host.dims.elements().checked_div(host.dims.rows()).unwrap_or(0));
    let keys = match (host.data.is_complex(), rows) {
        (true, true) => {
            Keys::ComplexRows((0..m).map(|i| (0..n).map(|j| host.data.c64_at(j * m + i)).collect()).collect())
        }
        (true, false) => Keys::Complex((0..host.len()).map(|i| host.data.c64_at(i)).collect()),
        (false, true) if is_wide(&host.data) => Keys::WideRows(rows_of(&wide(&host.data), m, n)),
        (false, false) if is_wide(&host.data) => Keys::Wide(wide(&host.data)),
        (false, true) => Keys::Rows(rows_of(&host.data.to_f64(), m, n)),
        (false, false) => Keys::Numbers(host.data.to_f64()),
    };
    Ok(Given {
        keys,
        dims: host.dims.clone(),
        class: host.data.class(),
        is_cell: false,
        columns: if rows { n } else { 1 },
    })
}

/// Returns the rows of a matrix of `m` rows and `n` columns.
fn rows_of<T: Copy>(x: &[T], m: usize, n: usize) -> Vec<Vec<T>> {
    (0..m).map(|i| (0..n).map(|j| x[j * m + i]).collect()).collect()
}

/// Whether the data holds integers that doubles cannot tell apart.
fn is_wide(data: &Data) -> bool {
    const EXACT: u64 = 1 << f64::MANTISSA_DIGITS;
    match data {
        Data::I64(v) => v.iter().any(|x| x.unsigned_abs() > EXACT),
        Data::U64(v) => v.iter().any(|&x| x > EXACT),
        _ => false,
    }
}

/// Returns the elements as 64-bit integers.
fn wide(data: &Data) -> Vec<i128> {
    match data {
        Data::I64(v) => v.iter().map(|&x| x.into()).collect(),
        Data::U64(v) => v.iter().map(|&x| x.into()).collect(),
        _ => Vec::new(),
    }
}

/// If one set has complex numbers, or integers beyond the exact doubles, converts the other set to the same kind.
fn alike(a: &mut Given, b: &mut Given) {
    let is_wide = |g: &Given| matches!(g.keys, Keys::Wide(_) | Keys::WideRows(_));
    if is_wide(a) || is_wide(b) {
        // A number that is no integer becomes one that the other set does not contain.
        for (set, stranger) in [(&mut *a, i128::MAX), (&mut *b, i128::MIN)] {
            set.keys = std::mem::replace(&mut set.keys, Keys::Numbers(Vec::new())).whole(stranger);
        }
    }
    let complex = |g: &Given| matches!(g.keys, Keys::Complex(_) | Keys::ComplexRows(_));
    if complex(a) || complex(b) {
        for set in [a, b] {
            set.keys = std::mem::replace(&mut set.keys, Keys::Numbers(Vec::new())).widened();
        }
    }
}

/// If one set has integers or singles, converts the numbers of the other to that class before they are compared.
fn saturated(a: &mut Given, b: &mut Given) {
    let class = joined_class(a, b);
    for set in [a, b] {
        if !class.is_integer() && class != Class::Single || set.class == class {
            continue;
        }
        let fit = |v: &mut Vec<f64>| *v = Data::F64(std::mem::take(v)).converted(class).to_f64();
        let (least, most) = class.integer_range().unwrap_or((i128::MIN, i128::MAX));
        let clamp = |v: &mut Vec<i128>| v.iter_mut().for_each(|x| *x = (*x).clamp(least, most));
        match &mut set.keys {
            Keys::Numbers(v) => fit(v),
            Keys::Wide(v) => clamp(v),
            Keys::Rows(rows) => rows.iter_mut().for_each(fit),
            Keys::WideRows(rows) => rows.iter_mut().for_each(clamp),
            Keys::Complex(_) | Keys::ComplexRows(_) | Keys::Texts(_) => {}
        }
    }
}

/// Returns an error for unknown or contradictory options, and for sets whose rows have different lengths.
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

/// Turns a text into a cell, and a char matrix into a cell of its rows.
fn rows_in_cell(value: &Value) -> Value {
    match chars::rows(value) {
        Some(rows) if rows.len() > 1 => chars::cell_column(rows),
        _ => Value::cell(Dims::scalar(), vec![value.clone()]),
    }
}

/// Returns an error if both sets are cells, but only one of them is a cell of texts.
fn combine(who: &str, a: &Value, b: &Value) -> Flow<()> {
    let is_cell = |v: &Value| matches!(v, Value::Cell(_));
    if is_cell(a) && is_cell(b) && texts(a).is_some() != texts(b).is_some() {
        return fail!("{who}: cell array of strings cannot be combined with a nonstring value");
    }
    Ok(())
}

/// Reads both sets. A text beside a cell of texts becomes an element.
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
    // Numbers are converted to integers before they are compared with integers.
    saturated(&mut a, &mut b);
    alike(&mut a, &mut b);
    Ok((a, b, rows))
}

fn style(args: &[Value]) -> Style {
    match &args[2..] {
        words if has_word(words, "stable") => Style::Stable,
        words if has_word(words, "legacy") => Style::Legacy,
        _ => Style::Sorted,
    }
}

/// Returns the class of both sets' elements together; a set without elements does not count.
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

/// Turns keys into a value of the kind that the sets had.
fn value_of(keys: Keys, a: &Given, b: &Given, style: Style) -> Value {
    let n = keys.len();
    let is_row = |g: &Given| g.dims.rows() == 1 && g.dims.len() == 2;
    let is_column = |g: &Given| g.dims.columns() == 1 && g.dims.rows() != 1;
    // The result is a row if both sets are rows (scalars and empty sets count as rows), and otherwise a column.
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
    let class = joined_class(a, b);
    // Returns the elements of a matrix with these rows.
    fn elements<T: Copy + Default>(rows: &[Vec<T>], columns: usize) -> Vec<T> {
        let n = rows.len();
        (0..n * columns).map(|k| rows[k % n].get(k / n).copied().unwrap_or_default()).collect()
    }
    let (dims, data) = match keys {
        Keys::Texts(texts) => return Value::cell(dims, texts.iter().map(Value::string).collect()),
        _ if a.is_cell || b.is_cell => return Value::cell(dims, Vec::new()),
        Keys::Complex(numbers) if n > 0 => (dims, crate::ops::complex_in_class(class, numbers)),
        Keys::ComplexRows(rows) if n > 0 => {
            let columns = rows[0].len();
            (Dims::new(&[n, columns]), crate::ops::complex_in_class(class, elements(&rows, columns)))
        }
        Keys::Numbers(numbers) => (dims, in_class(class, numbers)),
        Keys::Wide(numbers) => (dims, whole_in_class(class, &numbers)),
        Keys::WideRows(rows) => {
            let columns = a.columns.max(b.columns);
            (Dims::new(&[n, columns]), whole_in_class(class, &elements(&rows, columns)))
        }
        Keys::Rows(of_rows) => {
            let columns = a.columns.max(b.columns);
            (Dims::new(&[n, columns]), Data::F64(elements(&of_rows, columns)).converted(class))
        }
        Keys::Complex(_) => (dims, Data::F64(Vec::new()).converted(class)),
        Keys::ComplexRows(_) => (Dims::new(&[0, a.columns.max(b.columns)]), Data::F64(Vec::new()).converted(class)),
    };
    Value::tensor(Tensor::new(dims, data))
}

/// Converts integers to a class, saturated.
fn whole_in_class(class: Class, x: &[i128]) -> Data {
    match class {
        Class::Int64 => Data::I64(x.iter().map(|&x| x as i64).collect()),
        Class::Uint64 => Data::U64(x.iter().map(|&x| x as u64).collect()),
        _ => in_class(class, x.iter().map(|&x| x as f64).collect()),
    }
}

fn places(items: impl Iterator<Item = usize>, lying: bool) -> Value {
    let numbers = items.map(|i| i as f64 + 1.0).collect();
    if lying { Value::row(numbers) } else { Value::column(numbers) }
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
    // One text is searched among texts, but a text's letters are searched among letters.
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
    let found = a.keys.found_in(&s.keys);
    let dims = if rows { Dims::new(&[found.len(), 1]) } else { a.dims.clone() };
    let tf = Data::Bool(found.iter().map(|&at| at > 0.0).collect());
    let tf = Value::tensor(Tensor::new(dims.clone(), tf));
    Ok(vec![tf, Value::tensor(Tensor::new(dims, Data::F64(found)))].into())
}

fn union(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let (a, b, rows) = both(&interp.env, "union", args)?;
    let style = style(args);
    let split = a.keys.len();
    let found = a.keys.united(&b.keys, style);
    let value = match value_of(a.keys.pick_of_both(&b.keys, &found), &a, &b, style) {
        // Beside an empty set, texts are stacked in a column.
        Value::Cell(cell) if style != Style::Legacy && (a.keys.is_empty() || b.keys.is_empty()) => {
            Value::cell(Dims::new(&[cell.items.len(), 1]), cell.items.clone())
        }
        value => value,
    };
    if nargout < 2 {
        return Ok(value.into());
    }
    let lying = style == Style::Legacy && !rows;
    let from_a = places(found.iter().copied().filter(|&at| at < split), lying);
    let from_b = places(found.iter().filter(|&&at| at >= split).map(|at| at - split), lying);
    Ok(vec![value, from_a, from_b].into())
}

fn intersect(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let (a, b, rows) = both(&interp.env, "intersect", args)?;
    let style = style(args);
    let matched = a.keys.matched(&b.keys, style);
    let found: Vec<(usize, usize)> = matched.iter().filter_map(|&(i, j)| Some((i, j?))).collect();
    let keys = a.keys.pick(&found.iter().map(|f| f.0).collect::<Vec<_>>());
    // If the sets have one element each and nothing in common, the result is 0×0.
    let alone = || matched.len() == 1 && b.keys.distinct(style).len() == 1;
    let value = match keys.is_empty() && (a.keys.is_empty() || b.keys.is_empty() || alone()) {
        true if a.is_cell => Value::cell(Dims::zero(), Vec::new()),
        true => Value::tensor(Tensor::zeros(joined_class(&a, &b), Dims::zero())),
        false => value_of(keys, &a, &b, style),
    };
    if nargout < 2 {
        return Ok(value.into());
    }
    let lying = style == Style::Legacy && !rows;
    Ok(vec![value, places(found.iter().map(|f| f.0), lying), places(found.iter().map(|f| f.1), lying)].into())
}

/// Returns the positions of the elements in `keys` that are not in the other set.
fn without(keys: &Keys, other: &Keys, style: Style) -> Vec<usize> {
    keys.matched(other, style).into_iter().filter(|found| found.1.is_none()).map(|found| found.0).collect()
}

fn setdiff(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let (a, b, rows) = both(&interp.env, "setdiff", args)?;
    let style = style(args);
    let found = without(&a.keys, &b.keys, style);
    // The elements were compared in a common kind, and are returned in their own.
    let is_alike = args[0].class() == args[1].class() && args[0].is_complex() == args[1].is_complex();
    let keys = match a.is_cell || is_alike {
        true => a.keys.pick(&found),
        false => given(&interp.env, "setdiff", &args[0], rows)?.keys.pick(&found),
    };
    let like_a = Given {
        keys: Keys::Numbers(Vec::new()),
        dims: Dims::zero(),
        class: a.class,
        is_cell: a.is_cell,
        columns: a.columns,
    };
    let other = if style == Style::Legacy { &b } else { &like_a };
    let value = value_of(keys, &a, other, style);
    if nargout < 2 {
        return Ok(value.into());
    }
    Ok(vec![value, places(found.into_iter(), style == Style::Legacy && !rows)].into())
}

fn setxor(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let (a, b, rows) = both(&interp.env, "setxor", args)?;
    let style = style(args);
    let (only_a, only_b) = (without(&a.keys, &b.keys, style), without(&b.keys, &a.keys, style));
    let mut keys = a.keys.pick(&only_a).joined(b.keys.pick(&only_b));
    if style != Style::Stable {
        keys.sort();
    }
    let lying = style == Style::Legacy && !rows;
    let of = |given: &Given, found: &[usize]| match given.keys.is_empty() {
        true => Value::empty(),
        false => places(found.iter().copied(), lying),
    };
    let out = vec![value_of(keys, &a, &b, style), of(&a, &only_a), of(&b, &only_b)];
    Ok(out.into())
}
