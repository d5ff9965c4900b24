//! Tables of numbers as text: `dlmread`, `csvread`, `readmatrix`, and the functions that write tables.
//!
//! In: files of separated numbers. Out: matrices, with another value for fields without a number. If a single character
//! separates the fields, the `csv` library splits them.

use super::streams::{path, system};
use crate::builtins::text::convert_text::spelled;
use crate::builtins::text::{chars, output};
use crate::builtins::{ANY, Builtin, Outcome, args, nothing, row};
use crate::display::number::{self, MISSING, Notation};
use crate::env::Env;
use crate::error::{Flow, fail};
use crate::memory;
use crate::value::{Data, Dims, Tensor, Value};
use crate::vm::Interp;
use num_complex::Complex64;

/// The functions.
pub static ROWS: &[Builtin] = &[
    row("dlmwrite", 2, ANY, 0, "dlmwrite (file, m, sep, ...)", "Writes a matrix as separated numbers.", |i, a, _| {
        write(i, "dlmwrite", a)
    })
    .outside(),
    row("csvwrite", 2, ANY, 0, "csvwrite (file, m)", "Writes a matrix separated by commas.", |i, a, _| {
        write(i, "csvwrite", a)
    })
    .outside(),
    row("writematrix", 2, ANY, 0, "writematrix (m, file)", "Writes a matrix separated by commas.", |i, a, _| {
        let mut a = a.to_vec();
        a.swap(0, 1);
        write(i, "writematrix", &a)
    })
    .outside(),
    row(
        "dlmread",
        1,
        ANY,
        1,
        "dlmread (file, sep, r0, c0)",
        "Reads separated numbers; 0 where there is none.",
        |i, a, _| read(i, "dlmread", a, 0.0),
    )
    .outside(),
    row("csvread", 1, ANY, 1, "csvread (file, r0, c0)", "Reads numbers separated by commas.", |i, a, _| {
        let mut a = a.to_vec();
        a.insert(1, Value::string(","));
        read(i, "csvread", &a, 0.0)
    })
    .outside(),
    row("readmatrix", 1, ANY, 1, "readmatrix (file)", "Reads separated numbers below their headings.", readmatrix)
        .outside(),
];

/// The flags and the least width of a number.
struct Shape {
    flags: String,
    width: usize,
}

impl Shape {
    fn of(text: &str) -> Option<Shape> {
        let at = text.find(|c| !"-+ 0#".contains(c)).unwrap_or(text.len());
        let (flags, width) = text.split_at(at);
        let width = if width.is_empty() { 0 } else { width.parse().ok().filter(|w| *w <= 1000)? };
        Some(Shape { flags: flags.into(), width })
    }

    fn filled(&self, number: String) -> String {
        let width = self.width;
        let positive = !number.starts_with('-');
        let sign = ['+', ' '].into_iter().find(|s| positive && self.flags.contains(*s));
        let number = sign.map_or(number.clone(), |sign| format!("{sign}{number}"));
        if self.flags.contains('-') {
            format!("{number:<width$}")
        } else if self.flags.contains('0') && number.ends_with(|c: char| c.is_ascii_digit()) {
            let digits = number.trim_start_matches(['-', '+', ' ']);
            let sign = &number[..number.len() - digits.len()];
            format!("{sign}{digits:0>0$}", width.saturating_sub(sign.len()))
        } else {
            format!("{number:>width$}")
        }
    }
}

/// The precision with which numbers are written.
enum Precision {
    Digits(usize),
    /// A template for one number: the text around it, its digits and its letter.
    Template {
        before: String,
        /// The flags and the width between `%` and the digits.
        shape: Shape,
        digits: usize,
        letter: u8,
        after: String,
    },
}

fn precision(env: &Env, value: &Value) -> Flow<Precision> {
    let Some(text) = value.as_text() else {
        return Ok(Precision::Digits(args::extent(args::number(env, "dlmwrite", value)?)?.clamp(1, 40)));
    };
    let refused = "dlmwrite: PRECISION must be a number of digits or a template of one number";
    let Some((before, rest)) = text.split_once('%') else { return fail!("{refused}") };
    let Some(at) = rest.find(|c: char| c.is_ascii_alphabetic()) else { return fail!("{refused}") };
    let letter = rest.as_bytes()[at];
    if !b"fFeEgGdiu".contains(&letter) {
        return fail!("{refused}");
    }
    let (shape, digits) = match rest[..at].split_once('.') {
        Some((shape, digits)) => (shape, digits.parse().ok()),
        None => (&rest[..at], Some(6)),
    };
    match (digits, Shape::of(shape)) {
        (Some(digits), Some(shape)) if digits <= 300 => Ok(Precision::Template {
            before: before.into(),
            shape,
            digits,
            letter: letter.to_ascii_lowercase(),
            after: rest[at + 1..].into(),
        }),
        _ => fail!("{refused}"),
    }
}

fn formatted(x: f64, precision: &Precision) -> String {
    match precision {
        Precision::Digits(digits) => number::text(x, Notation::General(*digits)),
        Precision::Template { before, shape, digits, letter, after } => {
            let number = match letter {
                _ if !x.is_finite() => number::non_finite(x).to_string(),
                b'e' => number::text(x, Notation::Exponent(*digits)),
                b'g' => number::text(x, Notation::General(*digits)),
                b'f' => format!("{x:.digits$}"),
                _ => number::text(x, Notation::General(17)),
            };
            format!("{before}{}{after}", shape.filled(number))
        }
    }
}

/// Returns the shortest text that reads back as the same number.
fn shortest(x: f64) -> String {
    let of = |digits| number::text(x, Notation::General(digits));
    (15..17).map(of).find(|t| t.parse() == Ok(x)).unwrap_or_else(|| of(17))
}

/// The format in which a table is written.
struct Written {
    separator: String,
    end: String,
    append: bool,
    /// The format of numbers; `None` for the shortest text.
    numbers: Option<Precision>,
    /// The number of empty rows above, and of empty columns on the left.
    rows: usize,
    columns: usize,
}

fn write(interp: &mut Interp, who: &str, args: &[Value]) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let written = written(&interp.env, who, &args[2..])?;
    let host = match &args[1] {
        Value::Cell(_) | Value::Struct(_) | Value::Function(_) => {
            return fail!("{who}: wrong type argument '{}'", args[1].class_name());
        }
        value => interp.env.host(value)?,
    };
    let text = table_text(&interp.env, &host, &written)?;
    if let Value::Num(stream) = args[0] {
        output::write(interp, who, stream as i64, text.as_bytes())?;
        return Ok(nothing());
    }
    let file = path(who, &args[0])?;
    let mut options = std::fs::File::options();
    options.create(true).write(true).append(written.append).truncate(!written.append);
    match options.open(interp.env.at(&file)).and_then(|mut f| std::io::Write::write_all(&mut f, text.as_bytes())) {
        Ok(()) => Ok(nothing()),
        Err(error) => fail!("{who}: {file}: {}", system(&error)),
    }
}

fn written(env: &Env, who: &str, options: &[Value]) -> Flow<Written> {
    let mut written =
        Written { separator: ",".into(), end: "\n".into(), append: false, numbers: None, rows: 0, columns: 0 };
    let mut rest = options;
    let mut place = 0;
    while let Some((first, more)) = rest.split_first() {
        let word = first.as_text().map(|w| w.to_lowercase());
        let value = more.first();
        let count = |v: &Value| args::extent(args::number(env, who, v)?);
        let mut used = 2;
        match (word.as_deref(), value) {
            (Some("-append"), _) => {
                written.append = true;
                used = 1;
            }
            (Some("append" | "writemode"), Some(v)) => {
                written.append = v.as_text().is_some_and(|t| matches!(t.to_lowercase().as_str(), "on" | "append"));
            }
            (Some("delimiter"), Some(v)) => written.separator = delimiter(&path(who, v)?),
            (Some("newline"), Some(v)) => {
                written.end = match path(who, v)?.to_lowercase().as_str() {
                    "unix" => "\n".into(),
                    "pc" => "\r\n".into(),
                    "mac" => "\r".into(),
                    other => String::from_utf8_lossy(&chars::unescaped(other.as_bytes())).into_owned(),
                };
            }
            (Some("roffset"), Some(v)) => written.rows = count(v)?,
            (Some("coffset"), Some(v)) => written.columns = count(v)?,
            (Some("precision"), Some(v)) => written.numbers = Some(precision(env, v)?),
            (Some(word), _) if place == 0 => {
                written.separator = delimiter(word);
                (place, used) = (1, 1);
            }
            (None, _) if place <= 2 => {
                if place <= 1 {
                    written.rows = count(first)?
                } else {
                    written.columns = count(first)?
                }
                (place, used) = (place.max(1) + 1, 1);
            }
            _ => return fail!("{who}: invalid argument"),
        }
        rest = rest.get(used..).unwrap_or_default();
    }
    Ok(written)
}

/// Returns a table's rows as text. A char array gives its characters.
fn table_text(env: &Env, host: &Tensor, written: &Written) -> Flow<String> {
    let Written { separator, end, numbers, rows, columns, .. } = written;
    let write = |x: f64| match numbers {
        Some(precision) => formatted(x, precision),
        None => shortest(x),
    };
    let height = host.dims.rows();
    let width = host.len().checked_div(height).unwrap_or(0);
    env.check_elements(&[rows.saturating_add(height), columns.saturating_add(width)])?;
    let mut out = String::new();
    for _ in 0..*rows {
        out.push_str(&separator.repeat((columns + width).saturating_sub(1)));
        out.push_str(end);
    }
    for r in 0..height {
        out.push_str(&separator.repeat(*columns));
        for c in 0..width {
            if c > 0 {
                out.push_str(separator);
            }
            if let (Data::Char(letters), None) = (&*host.data, numbers) {
                out.push(letters[c * height + r].into());
                continue;
            }
            let z = host.data.c64_at(c * height + r);
            out.push_str(&write(z.re));
            if host.data.is_complex() {
                let sign = if z.im.is_sign_negative() { "" } else { "+" };
                out.push_str(&format!("{sign}{}i", write(z.im)));
            }
        }
        out.push_str(end);
    }
    Ok(out)
}

fn delimiter(word: &str) -> String {
    match word {
        "comma" => ",".into(),
        "space" => " ".into(),
        "tab" => "\t".into(),
        "semi" => ";".into(),
        other => String::from_utf8_lossy(&chars::unescaped(other.as_bytes())).into_owned(),
    }
}

/// Splits each line into fields. Without a separator, the first line determines it: a comma, a tab, a semicolon, a
/// colon, or blanks.
fn fields(bytes: &[u8], separator: &str) -> Vec<Vec<String>> {
    if separator == " " || separator == "\t" {
        // Every blank separates, and a line without numbers counts as a row.
        let lines = String::from_utf8_lossy(bytes);
        return lines.lines().map(|l| l.split(separator).map(str::to_string).collect()).collect();
    }
    let first = bytes.split(|&b| b == b'\n').find(|l| !l.is_empty()).unwrap_or_default();
    let one = match separator.as_bytes() {
        [] => [b',', b'\t', b';', b':'].into_iter().find(|s| first.contains(s)),
        [one] => Some(*one),
        _ => {
            return String::from_utf8_lossy(bytes)
                .lines()
                .filter(|l| !l.is_empty())
                .map(|l| l.split(separator).map(|f| f.trim().to_string()).collect())
                .collect();
        }
    };
    let Some(one) = one else {
        return String::from_utf8_lossy(bytes)
            .lines()
            .filter(|l| !l.trim().is_empty())
            .map(|l| l.split_whitespace().map(str::to_string).collect())
            .collect();
    };
    let mut reader = csv::ReaderBuilder::new().delimiter(one).has_headers(false).flexible(true).from_reader(bytes);
    reader
        .byte_records()
        .map_while(Result::ok)
        .map(|record| record.iter().map(|f| String::from_utf8_lossy(f).trim().to_string()).collect())
        .filter(|line: &Vec<String>| line.len() > 1 || !line[0].is_empty())
        .collect()
}

/// Returns the length of the decimal number at the beginning of a field, in bytes.
fn decimal_prefix(field: &[u8]) -> usize {
    let digits = |at: usize| field[at..].iter().take_while(|b| b.is_ascii_digit()).count();
    let signed = |at: usize| at + usize::from(matches!(field.get(at), Some(b'+' | b'-')));
    let whole = signed(0);
    let mut end = whole + digits(whole);
    if field.get(end) == Some(&b'.') && (end > whole || digits(end + 1) > 0) {
        end += 1 + digits(end + 1);
    }
    let exponent = signed(end + 1);
    if end > whole && matches!(field.get(end), Some(b'e' | b'E')) && exponent < field.len() && digits(exponent) > 0 {
        end = exponent + digits(exponent);
    }
    end
}

/// Returns the number in a field. If the field continues behind the number, it counts only if `begins`.
fn number_of(field: &str, begins: bool) -> Option<Complex64> {
    // Commas do not group digits here.
    let z = if field.contains(',') { Complex64::from(f64::NAN) } else { spelled(field.as_bytes()) };
    let unsigned = field.trim_start_matches(['+', '-']);
    if !z.re.is_nan() || unsigned.eq_ignore_ascii_case("nan") {
        return Some(z);
    }
    if unsigned == "NA" {
        return Some(Complex64::from(MISSING));
    }
    let (prefix, rest) = field.as_bytes().split_at(decimal_prefix(field.as_bytes()));
    // If an incomplete exponent, or an imaginary unit, follows the number, the field has no number.
    if matches!(rest.first(), Some(b'e' | b'E' | b'i' | b'j')) {
        return None;
    }
    Some(spelled(prefix)).filter(|z| begins && !z.re.is_nan())
}

/// Turns fields into a matrix, with `missing` for fields without a number.
fn matrix(lines: &[Vec<String>], missing: f64, begins: bool) -> Value {
    let (rows, columns) = (lines.len(), lines.iter().map(Vec::len).max().unwrap_or(0));
    if columns == 0 {
        return Value::empty();
    }
    let mut data = vec![Complex64::new(missing, 0.0); rows * columns];
    for (r, line) in lines.iter().enumerate() {
        for (c, field) in line.iter().enumerate() {
            if let Some(z) = number_of(field, begins) {
                data[c * rows + r] = z;
            }
        }
    }
    Value::tensor(Tensor::new(Dims::new(&[rows, columns]), Data::C64(data)))
}

/// Reads a file that contains only numbers, for `load`; `%` and `#` begin comments.
pub fn numbers(bytes: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut lines: Vec<Vec<f64>> = Vec::new();
    for line in text.lines() {
        let line = line.split(['%', '#']).next().unwrap_or_default();
        let mut row = Vec::new();
        for field in line.split([' ', '\t', ',', ';']).filter(|f| !f.is_empty()) {
            let z = spelled(field.as_bytes());
            if z.re.is_nan() && !field.eq_ignore_ascii_case("nan") && field != "NA" {
                return None;
            }
            row.push(z.re);
        }
        if !row.is_empty() {
            lines.push(row);
        }
    }
    let columns = lines.first()?.len();
    if lines.iter().any(|l| l.len() != columns) {
        return None;
    }
    let data = (0..columns).flat_map(|c| lines.iter().map(move |l| l[c])).collect();
    Some(Value::tensor(Tensor::new(Dims::new(&[lines.len(), columns]), Data::F64(data))))
}

/// A part of a table: first row and column, last row and column, from 0.
type Window = (usize, usize, usize, usize);

/// Parses `A2:B3` as a window. A missing part is not bounded.
fn cells(range: &str) -> Option<Window> {
    let place = |s: &str| {
        let letters = s.chars().take_while(char::is_ascii_alphabetic).count();
        let column = s[..letters]
            .bytes()
            .try_fold(0usize, |n, b| n.checked_mul(26)?.checked_add((b.to_ascii_uppercase() - b'A') as usize + 1))?;
        let row: usize = s[letters..].parse().ok()?;
        Some((row.checked_sub(1)?, column.checked_sub(1)?))
    };
    let (from, to) = range.split_once("..").or_else(|| range.split_once(':'))?;
    let bound = |side: &str, open: (usize, usize)| if side.is_empty() { Some(open) } else { place(side) };
    let (from, to) = (bound(from, (0, 0))?, bound(to, (usize::MAX, usize::MAX))?);
    Some((from.0, from.1, to.0, to.1))
}

fn read(interp: &mut Interp, who: &str, args: &[Value], missing: f64) -> Flow<Outcome> {
    let env = &interp.env;
    env.host_all(args)?;
    let file = path(who, &args[0])?;
    let mut missing = missing;
    let mut rest = args[1..].to_vec();
    if let Some(at) = rest.iter().position(|v| args::is_word(v, "emptyvalue")) {
        missing = match rest.get(at + 1) {
            Some(value) => args::number(env, who, value)?,
            None => return fail!("{who}: EMPTYVAL is missing"),
        };
        rest.drain(at..at + 2);
    }
    let mut separator = String::new();
    if let Some(first) = rest.first().and_then(Value::as_text) {
        separator = delimiter(&first);
        rest.remove(0);
    }
    let mut window: Window = (0, 0, usize::MAX, usize::MAX);
    match &rest[..] {
        [] => {}
        [range] => match range.as_text() {
            Some(text) => match cells(&text) {
                Some(found) => window = found,
                None => return fail!("{who}: error parsing RANGE"),
            },
            None => {
                let list = env.host(range)?;
                if list.len() != 4 {
                    return fail!("{who}: error parsing RANGE");
                }
                let at = |i: usize| args::extent(list.data.f64_at(i));
                window = (at(0)?, at(1)?, at(2)?, at(3)?);
            }
        },
        [r, c, ..] => {
            window.0 = args::extent(args::number(env, who, r)?)?;
            window.1 = args::extent(args::number(env, who, c)?)?;
        }
    }
    let Ok(bytes) = memory::read(interp.env.found(&file)) else { return fail!("{who}: unable to open file '{file}'") };
    let mut lines = fields(&bytes, &separator);
    for line in lines.iter_mut().filter(|line| line.len() > 1) {
        // A separator at the end of a line ends the last field.
        line.pop_if(|last| last.is_empty());
    }
    let lines: Vec<Vec<String>> = lines
        .into_iter()
        .enumerate()
        .filter(|(r, _)| (window.0..=window.2).contains(r))
        .map(|(_, line)| {
            line.into_iter().enumerate().filter(|(c, _)| (window.1..=window.3).contains(c)).map(|f| f.1).collect()
        })
        .collect();
    Ok(matrix(&lines, missing, true).into())
}

fn readmatrix(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let file = path("readmatrix", &args[0])?;
    let mut separator = String::new();
    for pair in args[1..].chunks(2) {
        if let [name, value] = pair
            && args::is_word(name, "delimiter")
        {
            separator = delimiter(&path("readmatrix", value)?);
        }
    }
    let Ok(bytes) = memory::read(interp.env.found(&file)) else {
        return fail!("readmatrix: unable to open file '{file}'");
    };
    let mut lines = fields(&bytes, &separator);
    // Headings are lines without a number, before the first line with numbers.
    let headings = lines.iter().take_while(|l| l.iter().all(|f| spelled(f.as_bytes()).re.is_nan())).count();
    if headings < lines.len() {
        lines.drain(..headings);
    }
    Ok(matrix(&lines, f64::NAN, false).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_short_as_they_read_back() {
        assert_eq!(shortest(std::f64::consts::PI), "3.141592653589793");
    }

    #[test]
    fn ranges_name_cells() {
        assert_eq!(cells("A2:B3"), Some((1, 0, 2, 1)));
        assert_eq!(cells("..B3"), Some((0, 0, 2, 1)));
        assert_eq!(cells("x"), None);
    }
}
