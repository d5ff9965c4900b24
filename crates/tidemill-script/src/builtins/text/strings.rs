//! Makes and changes strings: char matrices, joining, splitting, trimming, replacing.
//!
//! In: char arrays and cell arrays of strings. Out: the same. Empty results are 0×0, as in Octave.

use super::chars::{self, cell_column, char_matrix, each, is_blank, is_space, unescaped};
use super::splitting::{ostrsplit, strsplit};
use crate::builtins::{ANY, Builtin, Outcome, row};
use crate::env::Env;
use crate::error::{Flow, fail, fail_id};
use crate::memory::Growth;
use crate::value::{CellArray, Class, Data, Dims, Tensor, Value};
use crate::vm::Interp;
use std::sync::Arc;

/// The functions.
pub static ROWS: &[Builtin] = &[
    row("char", 0, ANY, 1, "char (x, ...)", "A char matrix of texts, or the characters of these codes.", char_),
    row("cellstr", 0, 1, 1, "cellstr (s)", "The rows of a char matrix as a cell array.", cellstr),
    row("strvcat", 0, ANY, 1, "strvcat (x, ...)", "A char matrix of texts, without the empty ones.", strvcat),
    row("strcat", 0, ANY, 1, "strcat (s, ...)", "Joins strings, element by element of cells.", strcat),
    row("cstrcat", 0, ANY, 1, "cstrcat (s, ...)", "Joins char arrays as they are.", cstrcat),
    row("strsplit", 1, ANY, 2, "[parts, found] = strsplit (s, sep, ...)", "Splits a string at separators.", strsplit),
    row("ostrsplit", 2, 3, 1, "ostrsplit (s, seps, strip)", "Splits a string at any of some characters.", ostrsplit),
    row("strjoin", 1, 2, 1, "strjoin (parts, sep)", "Joins the strings of a cell array.", strjoin),
    row("strtok", 1, 2, 2, "[token, rest] = strtok (s, seps)", "The text before the first separator.", strtok),
    row("strrep", 3, 5, 1, "strrep (s, old, new)", "Replaces a text within strings.", strrep),
    row("strtrim", 1, 1, 1, "strtrim (s)", "Strings without white space at both ends.", strtrim),
    row("deblank", 1, 1, 1, "deblank (s)", "Strings without white space at their ends.", deblank),
    row("blanks", 1, 1, 1, "blanks (n)", "A string of blanks.", blanks),
    row("upper", 1, 1, 1, "upper (s)", "Strings in upper case.", |i, a, _| cased(i, "toupper", a, true)),
    row("toupper", 1, 1, 1, "toupper (s)", "Strings in upper case.", |i, a, _| cased(i, "toupper", a, true)),
    row("lower", 1, 1, 1, "lower (s)", "Strings in lower case.", |i, a, _| cased(i, "tolower", a, false)),
    row("tolower", 1, 1, 1, "tolower (s)", "Strings in lower case.", |i, a, _| cased(i, "tolower", a, false)),
    row("strjust", 1, 2, 1, "strjust (s, side)", "Moves the texts of a char matrix to a side.", strjust),
    row("substr", 2, 3, 1, "substr (s, offset, len)", "A part of a string.", substr),
    row("untabify", 1, 3, 1, "untabify (s, width, deblank)", "Strings with blanks in the place of tabs.", untabify),
    row("do_string_escapes", 1, 1, 1, "do_string_escapes (s)", "Reads the escapes of a string.", |_, a, _| {
        let s = chars::string(&a[0], "do_string_escapes: STRING argument must be of type string")?;
        Ok(Value::string(unescaped(s)).into())
    }),
    row(
        "undo_string_escapes",
        1,
        1,
        1,
        "undo_string_escapes (s)",
        "Writes special characters as escapes.",
        |_, a, _| {
            let s = chars::string(&a[0], "undo_string_escapes: S argument must be a string")?;
            Ok(Value::string(escaped(s)).into())
        },
    ),
];

/// Adds the rows that an argument of `char` or `strvcat` gives.
fn rows_of(env: &Env, value: &Value, growth: &mut Growth, out: &mut Vec<Vec<u8>>) -> Flow<()> {
    match value {
        Value::Cell(c) => c.items.iter().try_for_each(|v| rows_of(env, v, growth, out))?,
        Value::Struct(_) | Value::Function(_) => {
            return fail!("octave_base_value::convert_to_str_internal (): wrong type argument '{}'", value.type_name());
        }
        value => {
            let host = env.host(value)?;
            growth.add(env, host.len() + size_of::<Vec<u8>>() * host.dims.rows().max(1))?;
            let chars = Tensor::new(host.dims.clone(), characters(&host.data));
            match chars.is_empty() && chars.dims.rows() == 0 {
                true => out.push(Vec::new()),
                false => out.extend(chars.row_strings().unwrap_or_default()),
            }
        }
    }
    Ok(())
}

/// Turns codes into characters: they are rounded, and a code that is no byte becomes NUL.
fn characters(data: &Data) -> Data {
    let code = |x: f64| if (0.0..255.5).contains(&x) { x.round() as u8 } else { 0 };
    match data {
        Data::Char(_) => data.clone(),
        other => Data::Char((0..other.len()).map(|i| code(other.f64_at(i))).collect()),
    }
}

fn char_(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    env.host_all(args)?;
    if args.is_empty() {
        return Ok(Value::string("").into());
    }
    if let [one @ (Value::Num(_) | Value::Bool(_) | Value::Tensor(_) | Value::Lazy(_))] = args {
        let host = env.host(one)?;
        if host.data.class() == Class::Char {
            return Ok(one.clone().into());
        }
        if matches!(*host.data, Data::F64(_) | Data::F32(_)) && (0..host.len()).any(|i| host.data.f64_at(i).is_nan()) {
            return fail!("invalid conversion from NaN to character");
        }
        return Ok(Value::tensor(Tensor::new(host.dims.clone(), characters(&host.data))).into());
    }
    let (mut rows, mut growth) = (Vec::new(), Growth::default());
    for arg in args {
        rows_of(env, arg, &mut growth, &mut rows)?;
    }
    env.check_host(&[rows.len(), rows.iter().map(Vec::len).max().unwrap_or(0)], 1)?;
    Ok(char_matrix(&rows).into())
}

fn strvcat(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    env.host_all(args)?;
    let (mut rows, mut growth) = (Vec::new(), Growth::default());
    for arg in args {
        rows_of(env, arg, &mut growth, &mut rows)?;
    }
    rows.retain(|r| !r.is_empty());
    env.check_host(&[rows.len(), rows.iter().map(Vec::len).max().unwrap_or(0)], 1)?;
    Ok(char_matrix(&rows).into())
}

/// Returns the rows of a char matrix as strings, without padding blanks.
fn trimmed_rows(value: &Value) -> Option<Vec<Vec<u8>>> {
    let mut rows = chars::rows(value)?;
    for row in &mut rows {
        let len = row.iter().rposition(|&b| b != b' ' && b != 0).map_or(0, |at| at + 1);
        row.truncate(len);
    }
    if rows.is_empty() {
        rows.push(Vec::new());
    }
    Some(rows)
}

fn cellstr(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let refused = "cellstr: argument STRING must be a 2-D character array";
    let Some(value) = args.first() else { return fail_id!("Octave:invalid-fun-call", "Invalid call to cellstr") };
    match value {
        value if chars::is_cellstr(value) => Ok(value.clone().into()),
        value if value.is_char() => match trimmed_rows(value) {
            Some(rows) => Ok(cell_column(rows).into()),
            None => fail!("{refused}"),
        },
        value @ (Value::Tensor(_) | Value::Lazy(_)) if value.is_empty() => {
            let _ = &interp.env;
            Ok(cell_column(vec![Vec::new(); value.dims().rows().max(1)]).into())
        }
        Value::Num(_) | Value::Bool(_) | Value::Tensor(_) | Value::Lazy(_) if !value.is_complex() => {
            let host = interp.env.host(value)?;
            let codes = host.data.to_f64().into_iter().map(f64::round).collect();
            let letters = Value::tensor(Tensor::new(host.dims.clone(), Data::F64(codes).converted(Class::Char)));
            match trimmed_rows(&letters) {
                Some(rows) => Ok(cell_column(rows).into()),
                None => fail!("{refused}"),
            }
        }
        _ => fail!("{refused}"),
    }
}

fn strcat(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    env.host_all(args)?;
    match args {
        [] => return Ok(Value::string("").into()),
        [one @ Value::Cell(_)] => return Ok(one.clone().into()),
        _ => {}
    }
    let mut all_char = true;
    let mut parts: Vec<Arc<CellArray>> = Vec::with_capacity(args.len());
    for arg in args {
        parts.push(match arg {
            Value::Cell(c) => {
                all_char = false;
                c.clone()
            }
            Value::Num(_) | Value::Bool(_) | Value::Tensor(_) | Value::Lazy(_) => {
                let host = env.host(arg)?;
                let chars = Value::tensor(Tensor::new(host.dims.clone(), host.data.converted(Class::Char)));
                let rows = trimmed_rows(&chars).unwrap_or_default();
                let dims = Dims::new(&[rows.len(), 1]);
                Arc::new(CellArray::new(dims, rows.into_iter().map(Value::string).collect()))
            }
            _ => return fail!("strcat: inputs must be strings or cells of strings"),
        });
    }
    let dims = match parts.iter().find(|c| c.items.len() != 1) {
        Some(c) => c.dims.clone(),
        None => parts[0].dims.clone(),
    };
    if parts.iter().any(|c| c.items.len() != 1 && c.dims != dims) {
        return fail!("strcat: arguments must be the same size, or be scalars");
    }
    let mut out = Vec::with_capacity(dims.elements());
    for i in 0..dims.elements() {
        let mut joined = Vec::new();
        for part in &parts {
            let item = &part.items[if part.items.len() == 1 { 0 } else { i }];
            match item {
                Value::Cell(_) | Value::Struct(_) | Value::Function(_) => {
                    return fail!("strcat: inputs must be strings or cells of strings");
                }
                item => {
                    let host = env.host(item)?;
                    match host.data.converted(Class::Char) {
                        Data::Char(bytes) => joined.extend(bytes),
                        _ => return fail!("strcat: inputs must be strings or cells of strings"),
                    }
                }
            }
        }
        out.push(joined);
    }
    if all_char {
        return Ok(char_matrix(&out).into());
    }
    Ok(Value::cell(dims, out.into_iter().map(Value::string).collect()).into())
}

fn cstrcat(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    if !args.iter().all(Value::is_char) {
        return fail!("cstrcat: arguments must be character strings");
    }
    match args {
        [] => Ok(Value::string("").into()),
        many => Ok(crate::index::concatenate(&mut interp.env, 1, many)?.into()),
    }
}

/// Returns a char row that is 1×0 if it is empty.
pub(super) fn wide(bytes: &[u8]) -> Value {
    Value::tensor(Tensor::new(Dims::new(&[1, bytes.len()]), Data::Char(bytes.to_vec())))
}

fn strjoin(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let Value::Cell(cell) = &args[0] else { return fail_id!("Octave:invalid-fun-call", "Invalid call to strjoin") };
    let Some(parts) = chars::strings(cell) else {
        return fail_id!("Octave:invalid-fun-call", "Invalid call to strjoin");
    };
    let separators: Vec<Vec<u8>> = match args.get(1) {
        None => vec![b" ".to_vec()],
        Some(Value::Cell(c)) => match chars::strings(c) {
            Some(list) if list.len() + 1 == parts.len() => list.into_iter().map(<[u8]>::to_vec).collect(),
            _ => return fail!("strjoin: the number of delimiters does not match the number of strings"),
        },
        Some(value) => match value.as_bytes() {
            Some(bytes) => vec![unescaped(bytes)],
            None => return fail_id!("Octave:invalid-fun-call", "Invalid call to strjoin"),
        },
    };
    let separator = |i: usize| &separators[if separators.len() == 1 { 0 } else { i - 1 }];
    let between = (1..parts.len()).fold(0usize, |n, i| n.saturating_add(separator(i).len()));
    interp.env.check_host(&[parts.iter().fold(between, |n, part| n.saturating_add(part.len()))], 1)?;
    let mut out = Vec::new();
    for (i, part) in parts.iter().enumerate() {
        if i > 0 {
            out.extend(separator(i));
        }
        out.extend(*part);
    }
    Ok(Value::string(out).into())
}

fn chars(text: &Value) -> Data {
    Data::Char(text.as_bytes().unwrap_or_default().to_vec())
}

fn strtok(_: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let refused = "strtok: STR must be a string or cell array of strings";
    let separators: Vec<u8> = match args.get(1) {
        Some(value) if !value.is_empty() => match value.as_bytes() {
            Some(bytes) => bytes.to_vec(),
            None => return fail!("strtok: DELIM must be a string"),
        },
        _ => vec![b'\t', b'\n', 0x0b, 0x0c, b'\r', b' ', 0],
    };
    let split = |s: &[u8]| {
        let start = s.iter().position(|b| !separators.contains(b)).unwrap_or(s.len());
        let len = s[start..].iter().position(|b| separators.contains(b)).unwrap_or(s.len() - start);
        let token = if len == 0 && !s.is_empty() { wide(b"") } else { Value::string(&s[start..start + len]) };
        (token, Value::string(&s[start + len..]))
    };
    let standing = |part: Value| Value::tensor(Tensor::new(Dims::new(&[part.len(), 1]), chars(&part)));
    match &args[0] {
        matrix if matrix.is_char() && matrix.dims().rows() > 1 && matrix.dims().columns() > 1 => {
            fail!("strtok: STR cannot be a 2-D character array")
        }
        Value::Cell(cell) => {
            let Some(list) = chars::strings(cell) else { return fail!("{refused}") };
            let (tokens, rests) = list.into_iter().map(split).unzip();
            Ok(vec![Value::cell(cell.dims.clone(), tokens), Value::cell(cell.dims.clone(), rests)].into())
        }
        value => match value.as_bytes() {
            Some(bytes) => {
                let (token, rest) = split(bytes);
                Ok(vec![token, rest].into())
            }
            None => match value {
                Value::Tensor(t) if value.is_char() && t.dims.len() == 2 && t.dims.columns() == 1 => {
                    let (token, rest) = split(t.data.chars().unwrap_or_default());
                    Ok(vec![standing(token), standing(rest)].into())
                }
                _ => fail!("{refused}"),
            },
        },
    }
}

fn strrep(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let overlaps = match args.get(3..).unwrap_or_default() {
        [] => true,
        [name, value] if crate::builtins::args::is_word(name, "overlaps") => crate::ops::truth(&mut interp.env, value)?,
        [name, _] if name.is_string() => {
            return fail!("strrep: unknown option: {}", name.as_text().unwrap_or_default());
        }
        _ => return crate::builtins::invalid_call("strrep", "strrep (s, old, new)"),
    };
    let refused = "strrep: PTN and REP arguments must be strings or cell arrays of strings";
    if !args[1].is_char() || !args[2].is_char() {
        return fail!("{refused}");
    }
    let (Value::Tensor(pattern), Value::Tensor(new)) = (&args[1], &args[2]) else { return fail!("{refused}") };
    let (pattern, new) = (pattern.data.chars().unwrap_or_default(), new.data.chars().unwrap_or_default());
    let env = &interp.env;
    let replace = |value: &Value| -> Flow<Value> {
        let bytes = value.as_bytes().unwrap_or_default();
        let places = chars::find_all(bytes, pattern, overlaps);
        if places.is_empty() {
            return Ok(value.clone());
        }
        env.check_host(&[places.len().saturating_mul(new.len()).saturating_add(bytes.len())], 1)?;
        Ok(Value::string(replaced(bytes, pattern.len(), new, &places)))
    };
    match &args[0] {
        Value::Cell(cell) => {
            if chars::strings(cell).is_none() {
                return fail!("strrep: each element of S must be a string");
            }
            Ok(each(cell, replace)?.into())
        }
        value if value.is_string() => Ok(replace(value)?.into()),
        value if value.is_char() => {
            let rows = chars::rows(value).unwrap_or_default();
            let rows =
                rows.into_iter().map(|row| Ok(replace(&Value::string(row))?.as_bytes().unwrap_or_default().to_vec()));
            Ok(char_matrix(&rows.collect::<Flow<Vec<_>>>()?).into())
        }
        _ => fail!("strrep: S must be a string or cell array of strings"),
    }
}

/// Replaces a pattern at all places, including overlapping ones, as Octave does.
fn replaced(text: &[u8], len: usize, new: &[u8], places: &[usize]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut from = 0;
    for &place in places {
        if place > from {
            out.extend(&text[from..place]);
        }
        out.extend(new);
        from = from.max(place + len);
    }
    out.extend(&text[from..]);
    out
}

/// Returns the text without white space at both ends, or without white space and NUL at its end.
fn trimmed(s: &[u8], both: bool) -> &[u8] {
    let goes = |b: u8| is_space(b) || !both && b == 0;
    let end = s.iter().rposition(|&b| !goes(b)).map_or(0, |at| at + 1);
    let start = if both { s[..end].iter().position(|&b| !goes(b)).unwrap_or(end) } else { 0 };
    &s[start..end]
}

fn trim_value(value: &Value, both: bool, refused: &str) -> Flow<Value> {
    match value {
        Value::Cell(cell) => each(cell, |v| match v {
            Value::Cell(_) => trim_value(v, both, refused),
            v if v.is_char() || !both && v.is_empty() => trim_value(v, both, refused),
            _ => fail!("{refused}"),
        }),
        value if value.is_string() => Ok(Value::string(trimmed(value.as_bytes().unwrap_or_default(), both))),
        value if value.is_char() => {
            let rows = chars::rows(value).unwrap_or_default();
            let end = rows.iter().map(|r| trimmed(r, false).len()).max().unwrap_or(0);
            let lead = |r: &Vec<u8>| r.iter().position(|&b| !is_blank(b)).unwrap_or(end);
            let start = if both { rows.iter().map(lead).min().unwrap_or(0).min(end) } else { 0 };
            if start == end {
                return Ok(Value::string(""));
            }
            Ok(char_matrix(&rows.iter().map(|r| r[start..end].to_vec()).collect::<Vec<_>>()))
        }
        value if !both && value.is_empty() => Ok(value.clone()),
        _ => fail!("{refused}"),
    }
}

fn strtrim(_: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    Ok(trim_value(&args[0], true, "strtrim: S argument must be a string or cellstring")?.into())
}

fn deblank(_: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    Ok(trim_value(&args[0], false, "deblank: S argument must be a string or cellstring")?.into())
}

fn blanks(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let refused = "blanks: N must be a non-negative integer";
    if args[0].len() != 1 || matches!(args[0], Value::Cell(_) | Value::Struct(_) | Value::Function(_)) {
        return fail!("{refused}");
    }
    let n = crate::builtins::args::number(&interp.env, "blanks", &args[0])?;
    if !(n >= 0.0 && n == n.trunc()) {
        return fail!("{refused}");
    }
    interp.env.check_host(&[n as usize], 2)?;
    Ok(Value::string(vec![b' '; n as usize]).into())
}

/// Returns a text in upper or lower case. If it is not UTF-8, only ASCII letters change.
fn cased_text(bytes: &[u8], up: bool) -> Vec<u8> {
    match (std::str::from_utf8(bytes), up) {
        (Ok(text), true) if !text.is_ascii() => text.to_uppercase().into_bytes(),
        (Ok(text), false) if !text.is_ascii() => text.to_lowercase().into_bytes(),
        (_, true) => bytes.to_ascii_uppercase(),
        (_, false) => bytes.to_ascii_lowercase(),
    }
}

fn cased(interp: &mut Interp, name: &str, args: &[Value], up: bool) -> Flow<Outcome> {
    fn change(value: &Value, name: &str, up: bool) -> Flow<Value> {
        Ok(match value {
            Value::Cell(cell) => each(cell, |v| change(v, name, up))?,
            Value::Tensor(t) => match &*t.data {
                // In the other case, letters may have another number of bytes, and so of elements.
                Data::Char(bytes) if !bytes.is_ascii() && t.dims.len() == 2 => {
                    let rows = t.row_strings().unwrap_or_default();
                    char_matrix(&rows.iter().map(|row| cased_text(row, up)).collect::<Vec<_>>())
                }
                Data::Char(bytes) => {
                    let mut out = Tensor::new(t.dims.clone(), Data::Char(cased_text(bytes, up)));
                    out.double_quoted = t.double_quoted;
                    Value::tensor(out)
                }
                _ => crate::builtins::arrays::shape::without_range(value.clone()),
            },
            Value::Struct(_) | Value::Function(_) => {
                return fail!("{name}: not defined for {}", value.type_name());
            }
            Value::Bool(b) => Value::Num(*b as u8 as f64),
            other => other.clone(),
        })
    }
    let _ = interp;
    Ok(change(&args[0], name, up)?.into())
}

fn strjust(_: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let refused = "strjust: S must be a string or 2-D character matrix";
    let (Some(mut rows), true) = (chars::rows(&args[0]), args[0].is_char() && args[0].dims().len() == 2) else {
        return fail!("{refused}");
    };
    let side = args.get(1).and_then(Value::as_text).map_or_else(|| "right".to_string(), |s| s.to_lowercase());
    for row in &mut rows {
        let lead = row.iter().position(|&b| b != b' ' && b != 0).unwrap_or(0);
        let trail = row.iter().rev().position(|&b| b != b' ' && b != 0).unwrap_or(0);
        match side.as_bytes().first() {
            Some(b'l') => row.rotate_left(lead),
            Some(b'c') => {
                // The text is centred, and rounded down to the left.
                let shift = (trail as i64 - lead as i64).div_euclid(2);
                if shift >= 0 { row.rotate_right(shift as usize) } else { row.rotate_left(-shift as usize) }
            }
            _ => row.rotate_right(trail),
        }
    }
    Ok(char_matrix(&rows).into())
}

fn substr(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let s = chars::string(&args[0], "substr: S must be a string")?;
    if args[1..].iter().any(|value| value.len() != 1) {
        return fail!("substr: OFFSET and LEN must be scalar integers");
    }
    let offset = crate::builtins::args::number(&interp.env, "substr", &args[1])?;
    let n = s.len() as f64;
    if offset == 0.0 || offset.abs() > n || offset != offset.trunc() {
        return fail!("substr: OFFSET = {offset} out of range");
    }
    // Both count from the end if they are negative.
    let offset = if offset < 0.0 { n + offset + 1.0 } else { offset };
    let rest = n - offset + 1.0;
    let given = match args.get(2) {
        Some(value) => crate::builtins::args::number(&interp.env, "substr", value)?,
        None => rest,
    };
    let len = if given < 0.0 { rest + given } else { given };
    if !(len >= 0.0 && len <= rest) {
        return fail!("substr: length LEN = {given} out of range");
    }
    let start = offset as usize - 1;
    Ok(Value::string(&s[start..start + len as usize]).into())
}

fn untabify(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let width = match args.get(1) {
        Some(value) => {
            crate::builtins::args::extent(crate::builtins::args::number(&interp.env, "untabify", value)?)?.max(1)
        }
        None => 8,
    };
    interp.env.check_elements(&[width])?;
    let trimmed = match args.get(2) {
        Some(value) => crate::ops::truth(&mut interp.env, value)?,
        None => false,
    };
    let refused = "untabify: TXT must be a string or cellstring";
    let change = |value: &Value| -> Flow<Value> {
        let Some(rows) = chars::rows(value).filter(|_| value.is_char()) else { return fail!("{refused}") };
        let rows: Vec<Vec<u8>> = rows.iter().map(|row| without_tabs(row, width)).collect();
        match &rows[..] {
            [one] => Ok(Value::string(one)),
            rows => Ok(char_matrix(rows)),
        }
    };
    let changed = match &args[0] {
        Value::Cell(cell) => each(cell, change)?,
        value => change(value)?,
    };
    Ok(if trimmed { trim_value(&changed, false, refused)? } else { changed }.into())
}

fn without_tabs(row: &[u8], width: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(row.len());
    for &b in row {
        match b {
            b'\t' => out.resize((out.len() / width + 1) * width, b' '),
            b => out.push(b),
        }
    }
    out
}

/// Returns a text with special characters written as escapes.
fn escaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for &b in text {
        match b {
            0 => out.extend(b"\\0"),
            7 => out.extend(b"\\a"),
            8 => out.extend(b"\\b"),
            12 => out.extend(b"\\f"),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            b'\t' => out.extend(b"\\t"),
            11 => out.extend(b"\\v"),
            b'\\' => out.extend(b"\\\\"),
            b'"' => out.extend(b"\\\""),
            b => out.push(b),
        }
    }
    out
}
