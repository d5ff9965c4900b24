//! `regexp`, `regexpi`, `regexprep`: regular expressions, their options and their outputs.
//!
//! In: texts and patterns, or cells of them. Out: positions, matches, tokens, names, pieces.

use super::chars::{self, unescaped};
use super::comparisons::is_double_quoted;
use super::pattern::{self, Compiled, DEFAULT, Flags, Found};
use crate::builtins::{ANY, Builtin, Outcome, row};
use crate::env::Env;
use crate::error::{Flow, fail};
use crate::memory::Growth;
use crate::value::{CellArray, Class, Data, Dims, StructArray, Tensor, Value};
use crate::vm::Interp;
use indexmap::IndexMap;
use std::sync::Arc;

/// The functions.
pub static ROWS: &[Builtin] = &[
    row(
        "regexp",
        2,
        ANY,
        7,
        "[start, end, extents, match, tokens, names, split] = regexp (s, pattern, options...)",
        "Searches texts by a regular expression.",
        |i, a, n| search(i, "regexp", a, n),
    ),
    row("regexpi", 2, ANY, 7, "regexpi (s, pattern, ...)", "As regexp, but case does not count.", |i, a, n| {
        search(i, "regexpi", a, n)
    }),
    row("regexprep", 3, ANY, 1, "regexprep (s, pattern, new, ...)", "Replaces what a pattern matches.", regexprep),
    row("regexptranslate", 2, 2, 1, "regexptranslate (op, s)", "A text as a pattern for itself.", regexptranslate),
];

/// The outputs of `regexp`, in its own order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Start,
    End,
    Extents,
    Match,
    Tokens,
    Names,
    Split,
}

const PARTS: [Part; 7] = [Part::Start, Part::End, Part::Extents, Part::Match, Part::Tokens, Part::Names, Part::Split];

/// The names of options. A word that begins with one of them means that option (`"matches"`).
const OPTIONS: [&str; 20] = [
    "once",
    "matchcase",
    "ignorecase",
    "stringanchors",
    "lineanchors",
    "literalspacing",
    "freespacing",
    "dotall",
    "dotexceptnewline",
    "noemptymatch",
    "emptymatch",
    "start",
    "end",
    "tokenextents",
    "match",
    "tokens",
    "names",
    "split",
    "warnings",
    "preservecase",
];

fn option(word: &str) -> &str {
    OPTIONS.into_iter().find(|name| word.starts_with(name)).unwrap_or(word)
}

/// Reads the options, and the names of outputs among them in their order.
fn options(who: &str, args: &[Value]) -> Flow<(Flags, Vec<Part>)> {
    let mut flags = Flags { ignore_case: who == "regexpi", ..DEFAULT };
    let mut parts = Vec::new();
    for arg in args {
        let Some(word) = arg.as_text() else { return fail!("{who}: optional arguments must be strings") };
        match option(&word.to_lowercase()) {
            "once" => flags.once = true,
            "matchcase" => flags.ignore_case = false,
            "ignorecase" => flags.ignore_case = true,
            "stringanchors" => flags.lines = false,
            "lineanchors" => flags.lines = true,
            "literalspacing" => flags.free_spacing = false,
            "freespacing" => flags.free_spacing = true,
            "dotall" => flags.dot_excludes_newline = false,
            "dotexceptnewline" => flags.dot_excludes_newline = true,
            "noemptymatch" => flags.empty_matches = false,
            "emptymatch" => flags.empty_matches = true,
            "start" => parts.push(Part::Start),
            "end" => parts.push(Part::End),
            "tokenextents" => parts.push(Part::Extents),
            "match" => parts.push(Part::Match),
            "tokens" => parts.push(Part::Tokens),
            "names" => parts.push(Part::Names),
            "split" => parts.push(Part::Split),
            "warnings" | "preservecase" => {}
            "tokenize" if who == "regexprep" => {}
            _ => return fail!("{who}: unrecognized option"),
        }
    }
    Ok((flags, parts))
}

/// Returns the characters of an argument that is a text, or counts as one.
fn characters(env: &Env, value: &Value) -> Flow<Vec<u8>> {
    match env.host(value)?.data.converted(Class::Char) {
        Data::Char(bytes) => Ok(bytes),
        _ => Ok(Vec::new()),
    }
}

fn search(interp: &mut Interp, who: &str, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let env = &mut interp.env;
    env.host_all(args)?;
    let (flags, mut order) = options(who, &args[2..])?;
    // Outputs that were not named follow in the usual order.
    order.extend(PARTS.iter().filter(|p| !order.contains(p)).copied().collect::<Vec<_>>());
    order.truncate(nargout.max(1));
    let (texts, patterns) = (&args[0], &args[1]);
    if !matches!(texts, Value::Cell(_)) && !matches!(patterns, Value::Cell(_)) {
        let outputs = search_one(env, who, texts, patterns, flags, &order)?;
        return Ok(outputs.into());
    }
    let (a, b) = (as_cell(texts), as_cell(patterns));
    let dims = match (a.items.len(), b.items.len()) {
        (_, 1) => a.dims.clone(),
        (1, _) => b.dims.clone(),
        _ if a.dims == b.dims => a.dims.clone(),
        _ => return fail!("{who}: cell array arguments must be scalar or equal size"),
    };
    let mut columns = vec![Vec::with_capacity(dims.elements()); order.len()];
    for i in 0..dims.elements() {
        let item = |c: &CellArray| c.items[if c.items.len() == 1 { 0 } else { i }].clone();
        let outputs = search_one(env, who, &item(&a), &item(&b), flags, &order)?;
        columns.iter_mut().zip(outputs).for_each(|(column, output)| column.push(output));
    }
    Ok(columns.into_iter().map(|items| Value::cell(dims.clone(), items)).collect::<Vec<_>>().into())
}

fn as_cell(value: &Value) -> Arc<CellArray> {
    match value {
        Value::Cell(cell) => cell.clone(),
        other => Arc::new(CellArray::row(vec![other.clone()])),
    }
}

fn search_one(
    env: &mut Env,
    who: &str,
    text: &Value,
    pattern: &Value,
    flags: Flags,
    order: &[Part],
) -> Flow<Vec<Value>> {
    let flags = Flags { word_bounds: is_double_quoted(pattern), ..flags };
    let (text, pattern) = (characters(env, text)?, characters(env, pattern)?);
    let (compiled, found) = pattern::matches(env, who, &pattern, &text, flags)?;
    let part = |p: &Part| match flags.once {
        true => once(&text, &compiled, &found, *p),
        false => all(&text, &compiled, &found, *p),
    };
    Ok(order.iter().map(part).collect())
}

/// Returns the groups that took part in a match, as Octave counts tokens: without those that end at the text's
/// beginning, and without those that repeat the group before. For a pattern without groups, the whole match is the
/// token, as in MATLAB.
fn tokens(found: &Found) -> Vec<std::ops::Range<usize>> {
    if found.groups.is_empty() {
        return vec![found.at.clone()];
    }
    let mut out = Vec::new();
    for (i, group) in found.groups.iter().enumerate() {
        let before = i.checked_sub(1).and_then(|b| found.groups[b].clone());
        if let Some(group) = group
            && group.end > 0
            && (i == 0 || before.as_ref() != Some(group))
        {
            out.push(group.clone());
        }
    }
    out
}

/// Returns the extents of tokens, a row for each.
fn extents(found: &Found) -> Value {
    let tokens = tokens(found);
    let mut data: Vec<f64> = tokens.iter().map(|t| t.start as f64 + 1.0).collect();
    data.extend(tokens.iter().map(|t| t.end as f64));
    Value::tensor(Tensor::new(Dims::new(&[tokens.len(), 2]), Data::F64(data)))
}

/// Returns the text between matches.
fn pieces(text: &[u8], found: &[Found]) -> Vec<Vec<u8>> {
    let mut out = Vec::with_capacity(found.len() + 1);
    let mut from = 0;
    for f in found {
        out.push(text.get(from..f.at.start).unwrap_or_default().to_vec());
        from = f.at.end;
    }
    out.push(text[from..].to_vec());
    out
}

/// Returns the text of each named group in each match, as a struct array with an element for each match.
fn names(text: &[u8], compiled: &Compiled, found: &[Found]) -> Value {
    let n = found.len();
    let dims = if n == 0 { Dims::zero() } else { Dims::new(&[1, n]) };
    let mut fields: IndexMap<Arc<str>, Vec<Value>> = IndexMap::new();
    for (name, groups) in &compiled.names {
        let named = |f: &Found| groups.iter().rev().find_map(|&group| f.groups.get(group).cloned().flatten());
        let values = found.iter().map(|f| Value::string(named(f).map_or(&b""[..], |g| &text[g]))).collect();
        fields.insert(name.clone(), values);
    }
    Value::Struct(Arc::new(StructArray { dims, fields, class: None, cleanup: None }))
}

fn cell(items: Vec<Value>) -> Value {
    Value::Cell(Arc::new(CellArray::row(items)))
}

/// Returns an output for all matches.
fn all(text: &[u8], compiled: &Compiled, found: &[Found], part: Part) -> Value {
    match part {
        Part::Start => Value::row(found.iter().map(|f| f.at.start as f64 + 1.0).collect()),
        Part::End => Value::row(found.iter().map(|f| f.at.end as f64).collect()),
        Part::Extents => cell(found.iter().map(extents).collect()),
        Part::Match => cell(found.iter().map(|f| Value::string(&text[f.at.clone()])).collect()),
        Part::Tokens => {
            cell(found.iter().map(|f| cell(tokens(f).into_iter().map(|t| Value::string(&text[t])).collect())).collect())
        }
        Part::Names => names(text, compiled, found),
        Part::Split => chars::cell_row(pieces(text, found)),
    }
}

/// Returns an output for the first match, without a cell around it.
fn once(text: &[u8], compiled: &Compiled, found: &[Found], part: Part) -> Value {
    let Some(first) = found.first() else {
        return match part {
            Part::Start | Part::End | Part::Extents => Value::empty(),
            Part::Match => Value::string(""),
            Part::Tokens => Value::cell(Dims::zero(), Vec::new()),
            Part::Names => names(text, compiled, found),
            Part::Split => Value::string(text),
        };
    };
    match part {
        Part::Start => Value::Num(first.at.start as f64 + 1.0),
        Part::End => Value::Num(first.at.end as f64),
        Part::Extents => extents(first),
        Part::Match => Value::string(&text[first.at.clone()]),
        Part::Tokens => {
            let items: Vec<Value> = tokens(first).into_iter().map(|t| Value::string(&text[t])).collect();
            let dims = if items.is_empty() { Dims::zero() } else { Dims::new(&[items.len(), 1]) };
            Value::cell(dims, items)
        }
        Part::Names | Part::Split => all(text, compiled, found, part),
    }
}

/// Returns the parts of a text between matches of a pattern, and the matches, for `strsplit`.
///
/// # Errors
/// A pattern that is no regular expression.
pub fn split(env: &mut Env, text: &[u8], pattern: &[u8]) -> Flow<(Vec<Vec<u8>>, Vec<Vec<u8>>)> {
    let (_, found) = pattern::matches(env, "strsplit", pattern, text, DEFAULT)?;
    Ok((pieces(text, &found), found.into_iter().map(|f| text[f.at].to_vec()).collect()))
}

fn regexprep(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &mut interp.env;
    env.host_all(args)?;
    let (flags, _) = options("regexprep", &args[3..])?;
    let (patterns, news) = (as_cell(&args[1]), as_cell(&args[2]));
    if news.items.len() != 1 && news.items.len() != patterns.items.len() {
        match &args[1] {
            // One pattern uses the first replacement.
            Value::Cell(_) => return fail!("regexprep: number of pattern and replace arguments must match"),
            _ if news.items.is_empty() => return fail!("regexprep: inconsistent cell array dimensions"),
            _ => {}
        }
    }
    let mut steps = Vec::with_capacity(patterns.items.len());
    for (i, pattern) in patterns.items.iter().enumerate() {
        let new = &news.items[if news.items.len() == 1 { 0 } else { i }];
        let bytes = characters(env, new)?;
        let flags = Flags { word_bounds: is_double_quoted(pattern), ..flags };
        steps.push((characters(env, pattern)?, flags, replacement(&bytes, !is_double_quoted(new))));
    }
    let mut replace = |value: &Value| -> Flow<Value> {
        let mut text = characters(env, value)?;
        let mut changed = false;
        for (pattern, flags, new) in &steps {
            let (_, found) = pattern::matches(env, "regexprep", pattern, &text, *flags)?;
            if !found.is_empty() {
                changed = true;
                text = replaced(env, &text, &found, new)?;
            }
        }
        Ok(if changed || !value.is_char() { Value::string(text) } else { value.clone() })
    };
    match &args[0] {
        Value::Cell(cell) => Ok(chars::each(cell, replace)?.into()),
        value => Ok(replace(value)?.into()),
    }
}

/// A part of a replacement.
enum New {
    Text(Vec<u8>),
    /// `$1` is 1; `$0` is the whole match.
    Group(usize),
}

/// Parses a replacement: `$n` is a group, and a backslash makes the character behind it literal. With `escapes`,
/// escapes of strings are replaced as well.
fn replacement(bytes: &[u8], escapes: bool) -> Vec<New> {
    let mut out = Vec::new();
    let mut text = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b'$', Some(d)) if d.is_ascii_digit() => {
                out.push(New::Text(std::mem::take(&mut text)));
                out.push(New::Group((d - b'0') as usize));
                at += 2;
            }
            (b'\\', Some(b'$' | b'\\')) => {
                text.push(bytes[at + 1]);
                at += 2;
            }
            (b'\\', Some(_)) if escapes => {
                // An escape is at most four bytes long: `\x41`, `\101`.
                let longest = (at + 4).min(bytes.len());
                let end = (at + 2..=longest).rev().find(|&end| unescaped(&bytes[at..end]).len() == 1);
                let end = end.unwrap_or(at + 2);
                text.extend(unescaped(&bytes[at..end]));
                at = end;
            }
            (b, _) => {
                text.push(b);
                at += 1;
            }
        }
    }
    out.push(New::Text(text));
    out
}

fn replaced(env: &Env, text: &[u8], found: &[Found], new: &[New]) -> Flow<Vec<u8>> {
    let (mut out, mut growth) = (Vec::with_capacity(text.len()), Growth::default());
    let mut from = 0;
    for f in found {
        out.extend(text.get(from..f.at.start).unwrap_or_default());
        for piece in new {
            let piece = match piece {
                New::Text(bytes) => bytes,
                New::Group(0) => &text[f.at.clone()],
                New::Group(n) => match f.groups.get(n - 1) {
                    Some(Some(group)) => &text[group.clone()],
                    _ => continue,
                },
            };
            growth.add(env, piece.len())?;
            out.extend_from_slice(piece);
        }
        from = f.at.end;
    }
    out.extend(&text[from..]);
    Ok(out)
}

fn regexptranslate(_: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let op = chars::string(&args[0], "regexptranslate: operation OP must be a string")?.to_ascii_lowercase();
    let translated = |value: &Value| translated(&op, chars::string(value, "regexptranslate: S must be a string")?);
    match &args[1] {
        Value::Cell(c) => {
            let items = c.items.iter().map(translated).collect::<Flow<Vec<_>>>()?;
            Ok(Value::cell(c.dims.clone(), items).into())
        }
        one => Ok(translated(one)?.into()),
    }
}

fn translated(op: &[u8], s: &[u8]) -> Flow<Value> {
    let mut out = Vec::with_capacity(s.len() * 2);
    match op {
        b"wildcard" => {
            for &b in s {
                match b {
                    b'.' => out.extend(b"\\."),
                    b'*' => out.extend(b".*"),
                    b'?' => out.push(b'.'),
                    b => out.push(b),
                }
            }
        }
        b"escape" => {
            for &b in s {
                if b"$.?[]^*+(){}|\\".contains(&b) {
                    out.push(b'\\');
                }
                out.push(b);
            }
        }
        _ => return fail!("regexptranslate: invalid operation OP"),
    }
    Ok(Value::string(out))
}
