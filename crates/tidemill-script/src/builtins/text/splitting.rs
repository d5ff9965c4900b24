//! Splits strings at separators.

use super::chars::{self, cell_row, unescaped};
use super::strings::wide;
use crate::builtins::Outcome;
use crate::env::Env;
use crate::error::{Flow, fail, fail_id};
use crate::memory::Growth;
use crate::value::{CellArray, Class, Dims, Value};
use crate::vm::Interp;
use std::sync::Arc;

/// The options of `strsplit` behind the separators.
struct Splitting {
    collapse: bool,
    regular: bool,
}

fn splitting(env: &mut Env, mut rest: &[Value]) -> Flow<Splitting> {
    let mut options = Splitting { collapse: true, regular: false };
    if let [value, more @ ..] = rest
        && !value.is_char()
    {
        options.collapse = crate::ops::truth(env, value)?;
        rest = more;
    }
    while let Some((name, more)) = rest.split_first() {
        let text = name.as_text().unwrap_or_default();
        let value = more.first();
        match (text.to_lowercase().as_str(), value) {
            ("collapsedelimiters", Some(value)) if value.len() != 1 => {
                return fail!("strsplit: COLLAPSEDELIMITERS must be a scalar value");
            }
            ("collapsedelimiters", Some(value)) => options.collapse = crate::ops::truth(env, value)?,
            ("delimitertype", Some(value)) => {
                let kind = value.as_text().unwrap_or_default().to_lowercase();
                let begins = |word: &str| word.starts_with(&kind) && !kind.is_empty();
                options.regular = begins("regularexpression");
                if !options.regular && !begins("simple") && !begins("legacy") {
                    return fail!("strsplit: Invalid DELIMITERTYPE");
                }
            }
            _ => {
                return fail_id!(
                    "Octave:strsplit:invalid_parameter_name",
                    "strsplit: invalid parameter name, '{text}'"
                );
            }
        }
        rest = more.get(1..).unwrap_or_default();
    }
    Ok(options)
}

fn blanks() -> Vec<&'static [u8]> {
    vec![b" ", b"\x0c", b"\n", b"\r", b"\t", b"\x0b"]
}

pub(super) fn strsplit(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let refused = "strsplit: S and DEL must be string values";
    // The separators may be omitted before the options.
    let first = args.get(1).and_then(Value::as_text).map(|t| t.to_lowercase()).unwrap_or_default();
    let no_separator = args.len() % 2 == 1 && matches!(first.as_str(), "collapsedelimiters" | "delimitertype");
    let (separators, rest) = match args.get(1) {
        Some(value) if value.class() == Class::Logical => (blanks(), &args[1..]),
        Some(value) if !no_separator => (chars::list(value, refused)?, &args[2..]),
        _ => (blanks(), &args[1..]),
    };
    let options = splitting(&mut interp.env, rest)?;
    if args[0].is_char() && args[0].dims().rows() > 1 {
        return fail!("strsplit: S must be a char row vector");
    }
    let s = chars::string(&args[0], refused)?;
    let (parts, found) = if options.regular {
        let pattern = separators.iter().map(|p| String::from_utf8_lossy(p)).collect::<Vec<_>>().join("|");
        let pattern = if options.collapse { format!("({pattern})+") } else { pattern };
        super::regexp::split(&mut interp.env, s, pattern.as_bytes())?
    } else {
        let mut separators: Vec<Vec<u8>> = separators.iter().map(|p| unescaped(p)).collect();
        // The longest separator that matches is used.
        separators.sort_by_key(|p| std::cmp::Reverse(p.len()));
        split_at(&interp.env, s, &separators, options.collapse)?
    };
    Ok(vec![cell_row(parts), cell_row(found)].into())
}

/// The approximate number of bytes that a short part takes as one of many in a cell array.
const PART_BYTES: usize = 200;

/// Splits a text at separators: returns the parts, and the separators between them.
fn split_at(env: &Env, s: &[u8], separators: &[Vec<u8>], collapse: bool) -> Flow<(Vec<Vec<u8>>, Vec<Vec<u8>>)> {
    let (mut parts, mut found, mut growth) = (Vec::new(), Vec::new(), Growth::default());
    let (mut from, mut at) = (0, 0);
    let fits = |at: usize| separators.iter().find(|p| !p.is_empty() && s[at..].starts_with(p)).map(Vec::len);
    while at < s.len() {
        let Some(len) = fits(at) else {
            at += 1;
            continue;
        };
        let start = at;
        at += len;
        while collapse && let Some(len) = fits(at) {
            at += len;
        }
        growth.add(env, 2 * PART_BYTES)?;
        parts.push(s[from..start].to_vec());
        found.push(s[start..at].to_vec());
        from = at;
    }
    parts.push(s[from..].to_vec());
    Ok((parts, found))
}

pub(super) fn ostrsplit(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let refused = "ostrsplit: S and SEP must be string values";
    let strip = match args.get(2) {
        Some(value) if value.len() != 1 => return fail!("ostrsplit: STRIP_EMPTY must be a scalar value"),
        Some(value) => crate::ops::truth(&mut interp.env, value)?,
        None => false,
    };
    let separators = chars::string(&args[1], refused)?;
    let (Some(rows), true) = (chars::rows(&args[0]), args[0].is_char()) else { return fail!("{refused}") };
    let (mut parts, mut growth) = (Vec::<Vec<u8>>::new(), Growth::default());
    for row in rows {
        for part in row.split(|b| separators.contains(b)) {
            growth.add(&interp.env, PART_BYTES)?;
            parts.push(part.to_vec());
        }
    }
    parts.retain(|p| !strip || !p.is_empty());
    if args[0].is_empty() {
        return Ok(Value::cell(Dims::zero(), Vec::new()).into());
    }
    let items = parts.into_iter().map(|p| wide(&p)).collect();
    Ok(Value::Cell(Arc::new(CellArray::row(items))).into())
}
