//! Numbers as texts: `num2str`, `mat2str`, `int2str`.
//!
//! The rules of `num2str` are those of Octave 7.3. A matrix of integers is written in `%g` columns, which are two wider
//! than its largest number of digits. Other numbers are written in `%W.Pg` columns, where P is the number of digits
//! before the point of the largest number plus 5 (at least 5, at most 16), and W = P + 7. A precision that is given
//! replaces P. Blank columns at both ends are removed.

use super::chars;
use super::output::{RATIONAL_PLACES, text_row};
use crate::builtins::{Builtin, Outcome, args, row};
use crate::display::number::{self, Notation};
use crate::display::{rational, rational_lines, template};
use crate::env::Env;
use crate::error::{Flow, fail};
use crate::value::{Class, Data, Dims, Tensor, Value};
use crate::vm::Interp;
use std::sync::Arc;

/// The functions.
pub static ROWS: &[Builtin] = &[
    row("num2str", 1, 2, 1, "num2str (x, precision); num2str (x, template)", "Numbers as text.", num2str),
    row("int2str", 1, 1, 1, "int2str (x)", "Numbers as text, rounded to integers.", int2str),
    row("rats", 1, 2, 1, "rats (x, places)", "Numbers as texts of quotients.", rats),
    row("mat2str", 1, 3, 1, "mat2str (x, n, \"class\")", "A matrix as text that makes it.", mat2str),
];

/// The most significant digits that are chosen by default.
const DIGITS_MAX: i32 = 16;
/// The highest precision that is accepted; a double has no more digits.
const PRECISION_MAX: f64 = 1100.0;

/// The format of an array's elements.
#[derive(Clone, Copy)]
struct Columns {
    width: usize,
    digits: usize,
    /// Whether 64-bit integers are written with all of their digits.
    exact: bool,
}

fn array(env: &Env, name: &str, value: &Value) -> Flow<Arc<Tensor>> {
    match value {
        Value::Cell(_) | Value::Struct(_) | Value::Function(_) | Value::Colon => {
            fail!("{name}: X must be a numeric, logical, or character array")
        }
        value => env.host(value),
    }
}

fn num2str(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let x = array(&interp.env, "num2str", &args[0])?;
    if x.data.class() == Class::Char {
        return Ok(args[0].clone().into());
    }
    let Some(how) = args.get(1) else { return Ok(text_of(&x, columns_of(&x)).into()) };
    if x.is_empty() {
        return Ok(Value::string(b"").into());
    }
    if how.is_char() {
        return by_template(&mut interp.env, how, &x);
    }
    let digits = match how {
        Value::Num(digits) => *digits,
        other if other.len() == 1 => array(&interp.env, "num2str", other)?.data.f64_at(0),
        _ => f64::NAN,
    };
    if !(digits >= 0.0 && digits == digits.trunc()) {
        return fail!("num2str: PRECISION must be a scalar integer >= 0");
    }
    let digits = digits.min(PRECISION_MAX) as usize;
    // For integers and logicals, a precision is the columns' width.
    if !matches!(x.data.class(), Class::Double | Class::Single) {
        let columns =
            Columns { width: if x.len() == 1 { 0 } else { digits }, digits: DIGITS_MAX as usize, exact: true };
        return Ok(text_of(&x, columns).into());
    }
    Ok(text_of(&x, Columns { width: if x.len() == 1 { 0 } else { digits + 7 }, digits, exact: false }).into())
}

/// Returns a number's text as `num2str` writes it.
pub fn plain(x: &Tensor) -> String {
    text_of(x, columns_of(x)).as_text().unwrap_or_default()
}

/// Returns ⌊log₁₀ of the largest magnitude⌋ of the finite numbers, 0 if there are none, and whether a number is not
/// finite.
fn largest_power(parts: impl Iterator<Item = f64>) -> (i32, bool) {
    let (mut largest, mut non_finite) = (0f64, false);
    for x in parts {
        if x.is_finite() {
            largest = largest.max(x.abs());
        } else {
            non_finite = true;
        }
    }
    (if largest == 0.0 { 0 } else { largest.log10().floor() as i32 }, non_finite)
}

fn parts(x: &Tensor) -> impl Iterator<Item = f64> + Clone + '_ {
    (0..x.len())
        .map(|i| x.data.c64_at(i))
        .flat_map(move |z| [z.re, z.im].into_iter().take(1 + x.data.is_complex() as usize))
}

fn columns_of(x: &Tensor) -> Columns {
    let (power, non_finite) = largest_power(parts(x));
    let integers = parts(x).all(|v| !v.is_finite() || v == v.trunc());
    let (scalar, complex) = (x.len() == 1, x.data.is_complex());
    // Complex integers are written with all of their digits.
    if integers && (power < DIGITS_MAX || scalar || complex) {
        let digits = (power + 1).max(1);
        let width = if non_finite && !complex { (digits + 2).max(5) } else { digits + 2 };
        return Columns {
            width: if scalar { 0 } else { width as usize },
            digits: if complex { digits } else { digits.min(DIGITS_MAX) } as usize,
            exact: power < DIGITS_MAX,
        };
    }
    let digits = (power + 5).clamp(5, DIGITS_MAX) as usize;
    Columns { width: if scalar { 0 } else { digits + 7 }, digits, exact: false }
}

/// Returns the number of elements on a line: a row's. For an array of more dimensions, as in Octave, it is the number
/// of columns for each dimension beyond the first.
fn line_length(dims: &Dims) -> usize {
    (dims.columns() * (dims.len() - 1)).max(1)
}

/// Returns the elements as lines, row by row (further dimensions beside the second), without blank columns at both
/// ends.
fn text_of(x: &Tensor, columns: Columns) -> Value {
    if x.is_empty() {
        return Value::string("");
    }
    let rows = x.dims.rows();
    let order: Vec<usize> = (0..rows).flat_map(|r| (r..x.len()).step_by(rows)).collect();
    let lines = order.chunks(line_length(&x.dims)).map(|elements| {
        let mut line = Vec::new();
        for &i in elements {
            push_element(&mut line, x, i, columns);
        }
        line
    });
    trimmed(lines.collect())
}

fn push_element(line: &mut Vec<u8>, x: &Tensor, i: usize, columns: Columns) {
    let notation = Notation::General(columns.digits);
    let z = x.data.c64_at(i);
    let real = match &*x.data {
        Data::I64(v) if columns.exact => v[i].to_string(),
        Data::U64(v) if columns.exact => v[i].to_string(),
        _ => number::text(z.re, notation),
    };
    line.extend(std::iter::repeat_n(b' ', columns.width.saturating_sub(real.len())));
    line.extend_from_slice(real.as_bytes());
    if x.data.is_complex() {
        let sign = if z.im.is_sign_negative() && !z.im.is_nan() { "-" } else { "+" };
        let imaginary = format!("{sign}{}i", number::text(z.im.abs(), notation));
        line.extend_from_slice(imaginary.as_bytes());
        line.extend(std::iter::repeat_n(b' ', (columns.width + 1).saturating_sub(imaginary.len())));
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 11 | 12 | b'\r' | 0)
}

/// Returns lines as a char matrix, without the columns at both ends that are blank in all lines.
fn trimmed(mut lines: Vec<Vec<u8>>) -> Value {
    let width = lines.iter().map(Vec::len).max().unwrap_or(0);
    lines.iter_mut().for_each(|l| l.resize(width, b' '));
    let inked = |c: &usize| lines.iter().any(|l| !is_blank(l[*c]));
    let first = (0..width).find(inked).unwrap_or(width);
    let last = (first..width).rev().find(inked).map_or(first, |c| c + 1);
    let rows = lines.len();
    if rows == 1 {
        return text_row(lines[0][first..last].to_vec());
    }
    let chars = (first..last).flat_map(|c| lines.iter().map(move |l| l[c])).collect();
    Value::tensor(Tensor::new(Dims::new(&[rows, last - first]), Data::Char(chars)))
}

/// Repeats the template for every column, and writes a line for every row.
fn by_template(env: &mut Env, how: &Value, x: &Tensor) -> Flow<Outcome> {
    let (rows, count) = (x.dims.rows(), x.len() / x.dims.rows().max(1));
    let Value::Tensor(pattern) = how else { return fail!("num2str: PRECISION must be a scalar integer >= 0") };
    let once = pattern.data.chars().unwrap_or_default();
    let is_complex = x.data.is_complex();
    let (once, x) = match is_complex {
        true => (&with_imaginary(once)[..], &beside_imaginary(x)),
        false => (once, x),
    };
    let count = if is_complex { 2 * count } else { count };
    let repeats = line_length(&x.dims) / if is_complex { 2 } else { 1 };
    env.check_host(&[once.len(), repeats], 1)?;
    let line = match template::conversions(once) > 1 && !is_complex {
        // A template for several numbers contains its own line ends.
        true => once.to_vec(),
        false => [&once.repeat(repeats)[..], if pattern.double_quoted { b"\n" } else { b"\\n" }].concat(),
    };
    let mut template = Tensor::string(&line);
    template.double_quoted = pattern.double_quoted;
    let transposed = x.data.pick((0..rows).flat_map(|r| (0..count).map(move |c| c * rows + r)));
    let values = Value::tensor(Tensor::new(Dims::new(&[1, x.len()]), transposed));
    let mut text = template::format(env, "num2str", &Value::tensor(template), &[values])?;
    if text.last() == Some(&b'\n') {
        text.pop();
    }
    if is_complex {
        text = with_units_moved(&text);
    }
    // For real numbers, empty lines are removed.
    let lines = text.split(|&b| b == b'\n').filter(|line| is_complex || !line.is_empty());
    Ok(trimmed(lines.map(<[u8]>::to_vec).collect()).into())
}

/// Returns a template for a real part, followed by one for an imaginary part with its sign and unit.
fn with_imaginary(template: &[u8]) -> Vec<u8> {
    let end = template.iter().rposition(|&b| !is_blank(b)).map_or(0, |at| at + 1);
    [&template[..end], b"%-+", template.get(1..).unwrap_or_default(), b"i"].concat()
}

/// Arranges each column's real parts, followed by its imaginary parts, as columns.
fn beside_imaginary(x: &Tensor) -> Tensor {
    let rows = x.dims.rows().max(1);
    let part = |i: usize| {
        let (row, column) = (i % rows, i / rows);
        let z = x.data.c64_at(column / 2 * rows + row);
        if column % 2 == 0 { z.re } else { z.im }
    };
    let mut dims = x.dims.to_vec();
    dims[1] *= 2;
    Tensor::new(Dims::new(&dims), Data::F64((0..2 * x.len()).map(part).collect()))
}

/// Moves imaginary units before the blanks that fill their field; at the end of a line these blanks are dropped.
fn with_units_moved(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for (i, &byte) in text.iter().enumerate() {
        let blanks = if byte == b'i' { out.iter().rev().take_while(|&&b| b == b' ').count() } else { 0 };
        out.truncate(out.len() - blanks);
        out.push(byte);
        if text.get(i + 1).is_some_and(|&next| next != b'\n') {
            out.extend(std::iter::repeat_n(b' ', blanks));
        }
    }
    out
}

fn int2str(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let x = match &args[0] {
        Value::Cell(_) | Value::Struct(_) | Value::Function(_) | Value::Colon => {
            return fail!("int2str: N must be a numeric, logical, or character array");
        }
        value => interp.env.host(value)?,
    };
    if x.data.class() == Class::Char {
        return Ok(args[0].clone().into());
    }
    let rounded = match &*x.data {
        Data::C64(_) | Data::C32(_) | Data::F64(_) | Data::F32(_) => {
            let real = x.data.to_f64().into_iter().map(f64::round).collect();
            Tensor::new(x.dims.clone(), Data::F64(real))
        }
        _ => (*x).clone(),
    };
    let (power, non_finite) = largest_power(parts(&rounded));
    let digits = power.max(0) as usize + 1;
    let width = if non_finite { (digits + 2).max(5) } else { digits + 2 };
    Ok(text_of(&rounded, Columns { width: if x.len() == 1 { 0 } else { width }, digits, exact: false }).into())
}

fn mat2str(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    if let Value::Cell(_) | Value::Struct(_) | Value::Function(_) | Value::Map(_) | Value::Colon = args[0] {
        return crate::builtins::invalid_call("mat2str", "mat2str (x, n, \"class\")");
    }
    let x = interp.env.host(&args[0])?;
    if x.dims.len() > 2 {
        return fail!("mat2str: X must be two dimensional");
    }
    let named = args[1..].iter().any(Value::is_char) && x.data.class() != Class::Char;
    let mut digits = (15, 15);
    if let Some(given) = args[1..].iter().find(|a| !a.is_char() && !a.is_empty()) {
        let given = array(&interp.env, "mat2str", given)?;
        if given.len() > 2 {
            return fail!("mat2str: N must have only 1 or 2 elements");
        }
        let at = |i: usize| given.data.f64_at(i).clamp(0.0, PRECISION_MAX) as usize;
        digits = (at(0), at(given.len().min(2) - 1));
    }
    let body = if x.data.class() == Class::Char { quoted(&x) } else { bracketed(&x, digits) };
    Ok(Value::string(if named { format!("{}({body})", x.data.class().name()) } else { body }).into())
}

fn bracketed(x: &Tensor, digits: (usize, usize)) -> String {
    if x.is_empty() {
        return "[]".into();
    }
    let rows: Vec<String> = (0..x.dims.rows())
        .map(|r| {
            let row: Vec<String> = (r..x.len()).step_by(x.dims.rows()).map(|i| element(x, i, digits)).collect();
            row.join(" ")
        })
        .collect();
    if x.len() == 1 { rows.concat() } else { format!("[{}]", rows.join(";")) }
}

fn element(x: &Tensor, i: usize, digits: (usize, usize)) -> String {
    if let Data::Bool(v) = &*x.data {
        return if v[i] { "true" } else { "false" }.into();
    }
    let z = x.data.c64_at(i);
    let real = number::text(z.re, Notation::General(digits.0));
    if !x.data.is_complex() {
        return real;
    }
    let sign = if z.im.is_sign_negative() && !z.im.is_nan() { "-" } else { "+" };
    format!("{real}{sign}{}i", number::text(z.im.abs(), Notation::General(digits.1)))
}

/// Returns rows of text as literals in single quotes, as MATLAB writes them.
fn quoted(x: &Tensor) -> String {
    let rows: Vec<String> = x
        .row_strings()
        .unwrap_or_default()
        .iter()
        .map(|r| format!("'{}'", String::from_utf8_lossy(r).replace('\'', "''")))
        .collect();
    match rows.len() {
        0 => "''".into(),
        1 => rows.concat(),
        _ => format!("[{}]", rows.join(";")),
    }
}

/// Writes quotients: a scalar right-aligned in its places, a matrix as `format rat` lays it out, in rows of one length.
fn rats(interp: &mut Interp, all: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    env.host_all(all)?;
    let is_number = all[0].is_numeric();
    if !is_number || all[0].dims().len() > 2 {
        return fail!("rats: X must be {}", if is_number { "two dimensional" } else { "numeric" });
    }
    let places = match all.get(1) {
        Some(places) => args::number(env, "rats", places)?.clamp(1.0, u8::MAX as f64) as u8,
        None => RATIONAL_PLACES,
    };
    let host = env.host(&all[0])?;
    let width = places as usize;
    let one = |x: f64| format!("{:>width$}", rational::text(x, width));
    if host.is_empty() {
        return Ok(Value::string("").into());
    }
    if host.len() == 1 {
        let z = host.data.c64_at(0);
        return Ok(Value::string(match host.data.is_complex() {
            true => format!("{} {} {}i", one(z.re), if z.im < 0.0 { '-' } else { '+' }, one(z.im.abs())),
            false if z.re == 0.0 => "0".into(),
            false => one(z.re),
        })
        .into());
    }
    let doubles = match host.data.is_complex() {
        true => (*host).clone(),
        false => Tensor::new(host.dims.clone(), Data::F64(host.data.to_f64())),
    };
    Ok(Value::tensor(chars::filled_up(&rational_lines(&doubles, places), 0)).into())
}
