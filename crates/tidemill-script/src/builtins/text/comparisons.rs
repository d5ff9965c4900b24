//! Comparisons and searches in text: equality, positions of a text in another, kinds of characters.
//!
//! In: strings and cell arrays of strings; other values are unequal to everything. Out: logicals, positions.

use super::chars::{self, each, find_all, is_space};
use crate::builtins::{Builtin, Outcome, args, row};
use crate::error::{Flow, fail, fail_id};
use crate::value::{CellArray, Data, Dims, Tensor, Value};
use crate::vm::Interp;

/// The functions.
pub static ROWS: &[Builtin] = &[
    row("strcmp", 2, 2, 1, "strcmp (a, b)", "Whether texts are equal.", |_, a, _| compare("strcmp", a, |x, y| x == y)),
    row("strcmpi", 2, 2, 1, "strcmpi (a, b)", "Whether texts are equal but for case.", |_, a, _| {
        compare("strcmpi", a, |x, y| x.eq_ignore_ascii_case(y))
    }),
    row("strncmp", 3, 3, 1, "strncmp (a, b, n)", "Whether texts begin with the same n characters.", |i, a, _| {
        compare_first(i, "strncmp", a, |x, y| x == y)
    }),
    row("strncmpi", 3, 3, 1, "strncmpi (a, b, n)", "As strncmp, but for case.", |i, a, _| {
        compare_first(i, "strncmpi", a, |x, y| x.eq_ignore_ascii_case(y))
    }),
    row("strfind", 2, 4, 1, "strfind (s, pattern)", "Where a text stands in strings.", strfind),
    row("index", 2, 3, 1, "index (s, t, direction)", "The first place of a text in strings, or 0.", |i, a, _| {
        let last = a.get(2).is_some_and(|v| args::is_word(v, "last"));
        if !last && a.get(2).is_some_and(|v| !args::is_word(v, "first")) {
            return fail!("index: DIRECTION must be either \"first\" or \"last\"");
        }
        index_of(i, "index", a, last)
    }),
    row("rindex", 2, 2, 1, "rindex (s, t)", "The last place of a text in strings, or 0.", |i, a, _| {
        index_of(i, "rindex", a, true)
    }),
    row("is_sq_string", 1, 1, 1, "is_sq_string (x)", "Whether a value is text in single quotes.", |_, a, _| {
        Ok(Value::Bool(a[0].is_char() && !is_double_quoted(&a[0])).into())
    }),
    row("is_dq_string", 1, 1, 1, "is_dq_string (x)", "Whether a value is text in double quotes.", |_, a, _| {
        Ok(Value::Bool(is_double_quoted(&a[0])).into())
    }),
    row(
        "strchr",
        2,
        4,
        2,
        "[i, j] = strchr (s, chars, n, \"first\" or \"last\")",
        "Where any of some characters stands in a string.",
        strchr,
    ),
    row("startsWith", 2, 4, 1, "startsWith (s, pattern)", "Whether strings begin with a text.", |i, a, _| {
        begins(i, "startsWith", a, |s, p| s.starts_with(p))
    }),
    row("endsWith", 2, 4, 1, "endsWith (s, pattern)", "Whether strings end with a text.", |i, a, _| {
        begins(i, "endsWith", a, |s, p| s.ends_with(p))
    }),
    row(
        "validatestring",
        2,
        5,
        1,
        "validatestring (s, options, ...)",
        "The option that a text begins.",
        validatestring,
    ),
    row("isspace", 1, 1, 1, "isspace (s)", "Which characters are white space.", |i, a, _| kind(i, a, is_space)),
    row("isalpha", 1, 1, 1, "isalpha (s)", "Which characters are letters.", |i, a, _| kind(i, a, is_alpha)),
    row("isletter", 1, 1, 1, "isletter (s)", "Which characters are letters.", |i, a, _| kind(i, a, is_alpha)),
    row("isdigit", 1, 1, 1, "isdigit (s)", "Which characters are digits.", |i, a, _| kind(i, a, is_digit)),
    row("isxdigit", 1, 1, 1, "isxdigit (s)", "Which characters are hexadecimal digits.", |i, a, _| {
        kind(i, a, |b| b.is_ascii_hexdigit())
    }),
    row("isupper", 1, 1, 1, "isupper (s)", "Which characters are upper case.", |i, a, _| kind(i, a, is_upper)),
    row("islower", 1, 1, 1, "islower (s)", "Which characters are lower case.", |i, a, _| kind(i, a, is_lower)),
    row("isalnum", 1, 1, 1, "isalnum (s)", "Which characters are letters or digits.", |i, a, _| kind(i, a, is_alnum)),
    row("ispunct", 1, 1, 1, "ispunct (s)", "Which characters are punctuation.", |i, a, _| kind(i, a, is_punct)),
    row("iscntrl", 1, 1, 1, "iscntrl (s)", "Which characters are control characters.", |i, a, _| kind(i, a, is_cntrl)),
    row("isgraph", 1, 1, 1, "isgraph (s)", "Which characters are printed, but for blanks.", |i, a, _| {
        kind(i, a, |b| b.is_ascii_graphic())
    }),
    row("isprint", 1, 1, 1, "isprint (s)", "Which characters are printed.", |i, a, _| kind(i, a, is_print)),
    row("isascii", 1, 1, 1, "isascii (s)", "Which characters are ASCII.", |i, a, _| kind(i, a, |b| b.is_ascii())),
    row("isstrprop", 2, 2, 1, "isstrprop (s, type)", "Which characters are of a kind.", isstrprop),
];

fn is_alpha(b: u8) -> bool {
    b.is_ascii_alphabetic()
}
fn is_digit(b: u8) -> bool {
    b.is_ascii_digit()
}
fn is_upper(b: u8) -> bool {
    b.is_ascii_uppercase()
}
fn is_lower(b: u8) -> bool {
    b.is_ascii_lowercase()
}
fn is_alnum(b: u8) -> bool {
    b.is_ascii_alphanumeric()
}
fn is_punct(b: u8) -> bool {
    b.is_ascii_punctuation()
}
fn is_cntrl(b: u8) -> bool {
    b.is_ascii_control()
}
fn is_print(b: u8) -> bool {
    b == b' ' || b.is_ascii_graphic()
}

/// Whether a value is a text that was written in double quotes.
pub fn is_double_quoted(value: &Value) -> bool {
    matches!(value, Value::Tensor(text) if text.double_quoted && value.is_char())
}

/// Compares two values that may be char arrays, cells, or anything else.
fn compare(name: &str, args: &[Value], same: impl Fn(&[u8], &[u8]) -> bool) -> Flow<Outcome> {
    let equal = |a: &Value, b: &Value| match (a, b) {
        (Value::Tensor(a), Value::Tensor(b)) => match (a.data.chars(), b.data.chars()) {
            (Some(x), Some(y)) => a.dims == b.dims && same(x, y),
            _ => false,
        },
        _ => false,
    };
    over_cells(name, args, &equal, &|rows, items| {
        rows.iter().zip(items).map(|(row, item)| item.as_bytes().is_some_and(|b| same(row, b))).collect()
    })
}

/// Compares the beginnings of two values.
fn compare_first(
    interp: &mut Interp,
    name: &str,
    args: &[Value],
    same: impl Fn(&[u8], &[u8]) -> bool,
) -> Flow<Outcome> {
    let n = args::number(&interp.env, name, &args[2])?;
    if n.is_nan() || n < 1.0 {
        return fail!("{name}: N must be greater than 0");
    }
    let n = n as usize;
    // Texts that are shorter than `n` must be equal as a whole.
    let begins = |x: &[u8], y: &[u8]| match (x.get(..n), y.get(..n)) {
        (Some(x), Some(y)) => same(x, y),
        _ => x.len() == y.len() && same(x, y),
    };
    let equal = |a: &Value, b: &Value| match (a, b) {
        (Value::Tensor(a), Value::Tensor(b)) => match (a.data.chars(), b.data.chars()) {
            (Some(x), Some(y)) => begins(x, y),
            _ => false,
        },
        _ => false,
    };
    over_cells(name, &args[..2], &equal, &|rows, items| {
        rows.iter().zip(items).map(|(row, item)| item.as_bytes().is_some_and(|b| begins(row, b))).collect()
    })
}

/// Compares two values, either of which may be a cell array. A char matrix beside a cell with as many items as it has
/// rows is compared row by row.
fn over_cells(
    name: &str,
    args: &[Value],
    equal: &dyn Fn(&Value, &Value) -> bool,
    by_row: &dyn Fn(&[Vec<u8>], &[Value]) -> Vec<bool>,
) -> Flow<Outcome> {
    let logical = |dims: &Dims, data: Vec<bool>| Value::tensor(Tensor::new(dims.clone(), Data::Bool(data))).into();
    let one_cell = |cell: &CellArray, other: &Value| {
        if other.is_char() && !other.is_string() && other.dims().rows() == cell.items.len() {
            return by_row(&chars::rows(other).unwrap_or_default(), &cell.items);
        }
        if other.is_char() && !other.is_string() {
            return vec![false; cell.items.len()];
        }
        cell.items.iter().map(|v| equal(v, other)).collect()
    };
    let shape = |cell: &CellArray, other: &Value| match other.is_char() && !other.is_string() {
        true if cell.items.len() != other.dims().rows() => Dims::scalar(),
        _ => cell.dims.clone(),
    };
    Ok(match (&args[0], &args[1]) {
        (Value::Cell(a), Value::Cell(b)) => match (a.items.len(), b.items.len()) {
            (1, _) => logical(&b.dims, b.items.iter().map(|v| equal(&a.items[0], v)).collect()),
            (_, 1) => logical(&a.dims, a.items.iter().map(|v| equal(v, &b.items[0])).collect()),
            _ if a.dims != b.dims => return fail!("{name}: nonconformant cell arrays"),
            _ => logical(&a.dims, a.items.iter().zip(&b.items).map(|(x, y)| equal(x, y)).collect()),
        },
        (Value::Cell(_), other) | (other, Value::Cell(_)) if !other.is_char() => Value::Bool(false).into(),
        (Value::Cell(cell), other) | (other, Value::Cell(cell)) => {
            let (dims, data) = (shape(cell, other), one_cell(cell, other));
            match dims.elements() == data.len() {
                true => logical(&dims, data),
                false => Value::Bool(false).into(),
            }
        }
        (a, b) => Value::Bool(equal(a, b)).into(),
    })
}

/// Returns positions as a row, from 1; 0×0 if there are none.
fn positions(places: Vec<usize>) -> Value {
    match places.is_empty() {
        true => Value::empty(),
        false => Value::row(places.into_iter().map(|p| p as f64 + 1.0).collect()),
    }
}

fn strfind(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let (mut overlaps, mut in_cell) = (true, false);
    let options = args.get(2..).unwrap_or_default();
    if options.len() % 2 == 1 {
        return fail_id!("Octave:invalid-fun-call", "Invalid call to strfind");
    }
    for option in options.chunks(2) {
        let truth = crate::ops::truth(&mut interp.env, &option[1])?;
        match option[0].as_text().unwrap_or_default().to_lowercase().as_str() {
            "overlaps" => overlaps = truth,
            "forcecelloutput" => in_cell = truth,
            _ => return fail!("strfind: unknown option: {}", option[0].as_text().unwrap_or_default()),
        }
    }
    let refused = "strfind: PATTERN must be a string or cell array of strings";
    let patterns = chars::list(&args[1], refused)?;
    let one = |s: &[u8], pattern: &[u8]| positions(find_all(s, pattern, overlaps));
    match (&args[0], &args[1]) {
        (Value::Cell(cell), _) => {
            let Some(list) = chars::strings(cell) else {
                return fail!("strfind: each element of CELLSTR must be a string");
            };
            let Some(pattern) = patterns.first() else { return fail!("{refused}") };
            Ok(Value::cell(cell.dims.clone(), list.into_iter().map(|s| one(s, pattern)).collect()).into())
        }
        (value, Value::Cell(cell)) if value.is_string() => {
            let s = value.as_bytes().unwrap_or_default();
            Ok(Value::cell(cell.dims.clone(), patterns.into_iter().map(|p| one(s, p)).collect()).into())
        }
        (value, _) if value.is_string() => {
            let found = one(value.as_bytes().unwrap_or_default(), patterns.first().copied().unwrap_or_default());
            Ok(if in_cell { Value::cell(Dims::scalar(), vec![found]) } else { found }.into())
        }
        _ => fail!("strfind: first argument must be a string or cell array of strings"),
    }
}

fn index_of(_: &mut Interp, name: &str, args: &[Value], last: bool) -> Flow<Outcome> {
    let pattern = chars::string(&args[1], &format!("{name}: T must be a string"))?;
    let place = |s: &[u8]| {
        let places = find_all(s, pattern, true);
        let place = if last { places.last() } else { places.first() };
        place.map_or(0.0, |p| *p as f64 + 1.0)
    };
    match &args[0] {
        Value::Cell(cell) => match chars::strings(cell) {
            Some(list) => {
                let places = list.into_iter().map(place).collect();
                Ok(Value::tensor(Tensor::new(cell.dims.clone(), Data::F64(places))).into())
            }
            None => fail!("{name}: S must be a string or cell array of strings"),
        },
        value => match chars::rows(value) {
            Some(_) if value.is_string() => Ok(Value::Num(place(value.as_bytes().unwrap_or_default())).into()),
            Some(rows) => Ok(Value::column(rows.iter().map(|row| place(row)).collect()).into()),
            None => fail!("{name}: S must be a string or cell array of strings"),
        },
    }
}

fn strchr(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let s = chars::string(&args[0], "strchr: STR argument must be a string or string array")?;
    let chars = chars::string(&args[1], "strchr: CHARS argument must be a string")?;
    let mut places: Vec<f64> = (1..=s.len()).filter(|i| chars.contains(&s[i - 1])).map(|i| i as f64).collect();
    if let Some(n) = args.get(2) {
        let n =
            crate::builtins::args::extent(crate::builtins::args::number(&interp.env, "strchr", n)?)?.min(places.len());
        match args.get(3) {
            Some(end) if crate::builtins::args::is_word(end, "last") => drop(places.drain(..places.len() - n)),
            _ => places.truncate(n),
        }
    }
    if nargout < 2 {
        return Ok(Value::row(places).into());
    }
    // A string is a single row.
    Ok(vec![Value::row(vec![1.0; places.len()]), Value::row(places)].into())
}

/// Whether a word is `IgnoreCase`, or an abbreviation of it.
fn begins_option(word: &Value) -> bool {
    word.as_text().is_some_and(|w| !w.is_empty() && "ignorecase".starts_with(&w.to_ascii_lowercase()))
}

fn begins(interp: &mut Interp, name: &str, args: &[Value], fits: fn(&[u8], &[u8]) -> bool) -> Flow<Outcome> {
    let list = chars::list(&args[0], &format!("{name}: STR must be a string or cell array of strings"))?;
    let patterns = chars::list(&args[1], &format!("{name}: PATTERN must be a string or cell array of strings"))?;
    let mut ignore_case = false;
    match args.get(2..).unwrap_or_default() {
        [] => {}
        [option, value] if begins_option(option) => {
            if value.len() != 1 || value.is_char() {
                return fail!("{name}: \"IgnoreCase\" value must be a logical scalar");
            }
            ignore_case = crate::ops::truth(&mut interp.env, value)?;
        }
        [_, _] => return fail!("{name}: third input must be \"IgnoreCase\""),
        _ => return fail_id!("Octave:invalid-fun-call", "Invalid call to {name}"),
    }
    let folded = |s: &[u8]| if ignore_case { s.to_ascii_lowercase() } else { s.to_vec() };
    let patterns: Vec<Vec<u8>> = patterns.into_iter().map(folded).collect();
    let answers = list.into_iter().map(|s| patterns.iter().any(|p| fits(&folded(s), p))).collect();
    let dims = match &args[0] {
        Value::Cell(cell) => cell.dims.clone(),
        _ => Dims::scalar(),
    };
    Ok(Value::tensor(Tensor::new(dims, Data::Bool(answers))).into())
}

fn validatestring(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let s = chars::string(&args[0], "validatestring: STR must be a single character string")?;
    let refused = "validatestring: STRARRAY must be a cellstr";
    if args[1].is_char() {
        return fail!("{refused}");
    }
    let options = chars::list(&args[1], refused)?;
    let mut names = Vec::new();
    let mut position = None;
    for arg in &args[2..] {
        match arg.as_text() {
            Some(name) => names.push(name),
            None => position = Some(args::number(&interp.env, "validatestring", arg)?),
        }
    }
    if names.len() > 2 {
        return fail!("validatestring: invalid number of character inputs (> 3)");
    }
    if position.is_some_and(|position| position < 1.0) {
        return fail!("validatestring: POSITION must be >= 1");
    }
    let who = names.first().map_or("validatestring", String::as_str);
    let mut about = names.get(1).map_or(String::new(), |n| format!(" (variable {n})"));
    if let Some(position) = position {
        about = match names.get(1) {
            Some(n) => format!(" (variable {n}, argument #{position})"),
            None => format!(" (argument #{position})"),
        };
    }
    let quoted = |list: &[&[u8]]| {
        list.iter().map(|o| format!("'{}'", String::from_utf8_lossy(o))).collect::<Vec<_>>().join(", ")
    };
    let begun = |o: &&[u8]| {
        o.get(..s.len()).is_some_and(|start| start.eq_ignore_ascii_case(s)) && !(s.is_empty() && !o.is_empty())
    };
    let fitting: Vec<&[u8]> = options.iter().copied().filter(begun).collect();
    let text = String::from_utf8_lossy(s);
    if let Some(exact) = fitting.iter().find(|o| o.eq_ignore_ascii_case(s)) {
        return Ok(Value::string(exact).into());
    }
    // If several options match, the shortest is meant, provided that all others begin with it.
    match fitting.iter().min_by_key(|o| o.len()) {
        None if options.is_empty() => fail!("{who}: '{text}'{about} does not match any of"),
        None => fail!("{who}: '{text}'{about} does not match any of\n{}", quoted(&options)),
        Some(short) if fitting.iter().all(|o| o[..short.len()].eq_ignore_ascii_case(short)) => {
            Ok(Value::string(short).into())
        }
        Some(_) => fail!("{who}: '{text}'{about} matches multiple possible values:\n{}", quoted(&fitting)),
    }
}

/// Tells for each character whether it is of a kind. Items of a cell are tested one by one.
fn kind(interp: &mut Interp, args: &[Value], is: fn(u8) -> bool) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    Ok(kind_of(interp, &args[0], is)?.into())
}

fn kind_of(interp: &mut Interp, value: &Value, is: fn(u8) -> bool) -> Flow<Value> {
    if let Value::Cell(cell) = value {
        return each(cell, |v| kind_of(interp, v, is));
    }
    let host = interp.env.host(value)?;
    let answers = match &*host.data {
        Data::Char(bytes) => bytes.iter().map(|&b| is(b)).collect(),
        other => (0..other.len())
            .map(|i| other.f64_at(i))
            .map(|x| (0.0..256.0).contains(&x) && x == x.trunc() && is(x as u8))
            .collect(),
    };
    Ok(Value::tensor(Tensor::new(host.dims.clone(), Data::Bool(answers))))
}

fn isstrprop(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let name = args[1].as_text().unwrap_or_default();
    let is: fn(u8) -> bool = match name.as_str() {
        "alpha" => is_alpha,
        "alnum" | "alphanum" => is_alnum,
        "ascii" => |b| b.is_ascii(),
        "cntrl" => is_cntrl,
        "digit" => is_digit,
        "graph" | "graphic" => |b| b.is_ascii_graphic(),
        "lower" => is_lower,
        "print" => is_print,
        "punct" => is_punct,
        "space" | "wspace" => is_space,
        "upper" => is_upper,
        "xdigit" => |b| b.is_ascii_hexdigit(),
        _ => return fail!("isstrprop: invalid string property"),
    };
    kind(interp, &args[..1], is)
}
