//! Conversions between numbers and text without a format: bases, `str2double`, `str2num`.

use super::chars::{self, char_matrix, is_space};
use crate::builtins::{Builtin, Outcome, Task, TaskStep, args, row};
use crate::display::number::MISSING;
use crate::env::Env;
use crate::error::{Flow, ScriptError, fail};
use crate::index::Values;
use crate::value::{Class, Data, Dims, Function, Tensor, Value};
use crate::vm::Interp;
use num_complex::Complex64;
use std::sync::Arc;

/// The functions.
pub static ROWS: &[Builtin] = &[
    row(
        "str2double",
        1,
        1,
        1,
        "str2double (s)",
        "The numbers that texts spell; NaN where they spell none.",
        str2double,
    ),
    row("str2num", 1, 1, 2, "[x, ok] = str2num (s)", "The value of a text as an expression.", str2num),
    row("dec2bin", 1, 2, 1, "dec2bin (d, len)", "Integers as binary digits.", |i, a, _| dec2(i, "dec2bin", a, 2)),
    row("dec2hex", 1, 2, 1, "dec2hex (d, len)", "Integers as hexadecimal digits.", |i, a, _| dec2(i, "dec2hex", a, 16)),
    row("dec2base", 2, 3, 1, "dec2base (d, base, len)", "Integers as digits of a base.", dec2base),
    row("bin2dec", 1, 1, 1, "bin2dec (s)", "Integers from binary digits.", |_, a, _| {
        from_base(&a[0], &digits(2), true)
    }),
    row("hex2dec", 1, 1, 1, "hex2dec (s)", "Integers from hexadecimal digits.", |_, a, _| {
        from_base(&a[0], &digits(16), true)
    }),
    row("base2dec", 2, 2, 1, "base2dec (s, base)", "Integers from digits of a base.", base2dec),
];

/// Returns the digits of a base.
fn digits(base: usize) -> Vec<u8> {
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[..base].to_vec()
}

/// Returns the numbers of an argument, which may be a cell of numbers, in column-major order.
fn numbers(env: &Env, value: &Value) -> Flow<Vec<f64>> {
    env.host_all([value])?;
    match value {
        Value::Cell(cell) => {
            let mut out = Vec::with_capacity(cell.items.len());
            for item in &cell.items {
                out.extend(env.host(item)?.data.to_f64());
            }
            Ok(out)
        }
        value => Ok(env.host(value)?.data.to_f64()),
    }
}

/// Writes numbers in the digits of a base, one in each row, with as many digits as the longest needs, and at least
/// `len`.
fn in_base(values: &[u128], symbols: &[u8], len: usize) -> Value {
    let base = symbols.len() as u128;
    let mut rows: Vec<Vec<u8>> = values
        .iter()
        .map(|&value| {
            let mut digits = Vec::new();
            let mut rest = value;
            while rest > 0 || digits.is_empty() {
                digits.push(symbols[(rest % base) as usize]);
                rest /= base;
            }
            digits
        })
        .collect();
    let width = rows.iter().map(Vec::len).max().unwrap_or(0).max(len);
    for row in &mut rows {
        row.resize(width, symbols[0]);
        row.reverse();
    }
    char_matrix(&rows)
}

fn width(interp: &Interp, name: &str, value: Option<&Value>) -> Flow<usize> {
    let Some(value) = value else { return Ok(0) };
    let x = args::number(&interp.env, name, value)?;
    if value.len() != 1 || value.is_complex() || !(x >= 0.0 && x == x.trunc() && x < 1e6) {
        return fail!("{name}: LEN must be a non-negative integer");
    }
    Ok(x as usize)
}

fn dec2(interp: &mut Interp, name: &str, args: &[Value], base: usize) -> Flow<Outcome> {
    let values = numbers(&interp.env, &args[0])?;
    let len = width(interp, name, args.get(1))?;
    let mut out = Vec::with_capacity(values.len());
    // Negative numbers are written in two's complement, in the least of 8, 16, 32 and 64 bits that holds them all.
    let least = values.iter().copied().fold(0.0, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    let holds = |bits: &i32| least >= -(2f64.powi(bits - 1)) && most < 2f64.powi(bits - 1);
    let bits = [8, 16, 32, 64].into_iter().find(holds).unwrap_or(64);
    let per_digit = if base == 16 { 4 } else { 1 };
    let len = if least < 0.0 { len.max((bits / per_digit) as usize) } else { len };
    if matches!(args[0], Value::Bool(_))
        || args[0].is_complex()
        || values.iter().any(|x| !x.is_finite() || *x != x.trunc())
    {
        return fail!("{name}: input must be integers");
    }
    if let Some(exact) = widest(interp, &args[0])? {
        let wrap = |x: i128| if x < 0 { ((1i128 << bits) + x) as u128 } else { x as u128 };
        return Ok(in_base(&exact.into_iter().map(wrap).collect::<Vec<_>>(), &digits(base), len).into());
    }
    for x in values {
        out.push(match x < 0.0 {
            true => ((1i128 << bits) + x.max(-9.3e18) as i128).max(0) as u128,
            false => x as u128,
        });
    }
    Ok(in_base(&out, &digits(base), len).into())
}

/// Returns integers that doubles cannot hold; `None` for other values.
fn widest(interp: &Interp, value: &Value) -> Flow<Option<Vec<i128>>> {
    if !matches!(value.class(), Class::Int64 | Class::Uint64) {
        return Ok(None);
    }
    Ok(match &*interp.env.host(value)?.data {
        Data::I64(v) => Some(v.iter().map(|&x| x.into()).collect()),
        Data::U64(v) => Some(v.iter().map(|&x| x.into()).collect()),
        _ => None,
    })
}

fn dec2base(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let values = numbers(&interp.env, &args[0])?;
    if args[0].is_char() || args[0].is_complex() {
        return fail!("dec2base: input must be real non-negative integers");
    }
    let len = width(interp, "dec2base", args.get(2))?;
    if values.iter().any(|x| !(*x >= 0.0 && x.is_finite() && *x == x.trunc())) {
        return fail!("dec2base: input must be real non-negative integers");
    }
    let symbols = symbols(interp, "dec2base", &args[1])?;
    let exact: Vec<u128> = match widest(interp, &args[0])? {
        Some(exact) => exact.into_iter().map(|x| x as u128).collect(),
        None => values.iter().map(|&x| x as u128).collect(),
    };
    Ok(in_base(&exact, &symbols, len).into())
}

/// Returns the digits that a base argument means: those of a number, or the characters of a string.
fn symbols(interp: &mut Interp, name: &str, value: &Value) -> Flow<Vec<u8>> {
    if let Some(bytes) = value.as_bytes() {
        let distinct = (1..bytes.len()).all(|i| !bytes[..i].contains(&bytes[i]));
        return match (bytes.len() > 1, distinct && !bytes.iter().any(|&b| is_space(b))) {
            (false, _) => fail!("{name}: symbols representing digits must be unique"),
            (_, false) => fail!("{name}: symbols representing digits must be unique and not whitespace"),
            _ => Ok(bytes.to_vec()),
        };
    }
    let base = args::number(&interp.env, name, value)?;
    if !((2.0..=36.0).contains(&base) && base == base.trunc()) {
        let an = if name == "dec2base" { "an integer between" } else { "between" };
        return fail!("{name}: BASE must be {an} 2 and 36, or a string of symbols");
    }
    Ok(digits(base as usize))
}

fn base2dec(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let symbols = symbols(interp, "base2dec", &args[1])?;
    let folds = !args[1].is_char();
    from_base(&args[0], &symbols, folds)
}

/// Reads numbers from digits, and ignores blanks; NaN if a character is no digit.
fn from_base(value: &Value, symbols: &[u8], folds: bool) -> Flow<Outcome> {
    let refused = "base2dec: S must be a string or cellstring";
    let rows: Vec<Vec<u8>> = match value {
        Value::Cell(cell) => match chars::strings(cell) {
            Some(list) => list.into_iter().map(<[u8]>::to_vec).collect(),
            None => return fail!("{refused}"),
        },
        value if value.is_char() => chars::rows(value).unwrap_or_default(),
        _ => return fail!("{refused}"),
    };
    let base = symbols.len() as f64;
    let number = |row: Vec<u8>| {
        let mut total = 0.0;
        let mut any = false;
        for b in row.into_iter().filter(|&b| b != b' ' && b != 0) {
            let b = if folds { b.to_ascii_uppercase() } else { b };
            match symbols.iter().position(|&s| s == b) {
                Some(digit) => total = total * base + digit as f64,
                None => return f64::NAN,
            }
            any = true;
        }
        if any { total } else { f64::NAN }
    };
    Ok(Value::column(rows.into_iter().map(number).collect()).into())
}

fn str2double(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let _ = interp;
    let one = |v: &Value| v.as_bytes().map_or(Complex64::new(f64::NAN, 0.0), spelled);
    let (dims, numbers): (Dims, Vec<Complex64>) = match &args[0] {
        Value::Cell(cell) => (cell.dims.clone(), cell.items.iter().map(one).collect()),
        value if value.is_char() && !value.is_string() => {
            let rows = chars::rows(value).unwrap_or_default();
            (Dims::new(&[rows.len(), 1]), rows.iter().map(|r| spelled(r)).collect())
        }
        value => (Dims::scalar(), vec![one(value)]),
    };
    Ok(Value::tensor(Tensor::new(dims, Data::C64(numbers))).into())
}

/// Returns the number that a text contains: `1,234.5`, `-Inf`, `1e3`, `2 + 3i`, `i * 4`; NaN if it is no number.
pub fn spelled(text: &[u8]) -> Complex64 {
    let nan = Complex64::new(f64::NAN, 0.0);
    let mut cursor = Cursor { text: text.iter().copied().filter(|&b| b != b',').collect(), at: 0 };
    let Some((first, first_imaginary)) = cursor.part(false) else { return nan };
    cursor.blanks();
    let mut z = Complex64::new(0.0, 0.0);
    let set = |z: &mut Complex64, x: f64, imaginary: bool| if imaginary { z.im = x } else { z.re = x };
    set(&mut z, first, first_imaginary);
    if cursor.at < cursor.text.len() {
        match cursor.part(true) {
            Some((second, imaginary)) if imaginary != first_imaginary => set(&mut z, second, imaginary),
            _ => return nan,
        }
        cursor.blanks();
    }
    if cursor.at < cursor.text.len() { nan } else { z }
}

/// A position in the text of a number.
struct Cursor {
    text: Vec<u8>,
    at: usize,
}

impl Cursor {
    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    fn blanks(&mut self) {
        while is_space(self.peek()) {
            self.at += 1;
        }
    }

    fn takes(&mut self, word: &[u8]) -> bool {
        let fits = self.text[self.at..].get(..word.len()).is_some_and(|t| t.eq_ignore_ascii_case(word));
        if fits {
            self.at += word.len();
        }
        fits
    }

    /// Reads a real or imaginary part with its sign, which it must have if `signed`.
    fn part(&mut self, signed: bool) -> Option<(f64, bool)> {
        self.blanks();
        let sign = match self.peek() {
            b'+' => 1.0,
            b'-' => -1.0,
            _ if signed => return None,
            _ => 0.0,
        };
        if sign != 0.0 {
            self.at += 1;
            self.blanks();
        }
        let mut sign = if sign < 0.0 { -1.0 } else { 1.0 };
        // Digits may have a sign of their own behind the part's sign.
        if let [own @ (b'+' | b'-'), b'0'..=b'9' | b'.', ..] = self.text[self.at..]
            && self.at > 0
        {
            self.at += 1;
            sign = if own == b'-' { -sign } else { sign };
        }
        let unit = |c: u8| c == b'i' || c == b'j';
        // `Inf` begins like the imaginary unit.
        let starts_inf = self.text[self.at..].get(..3).is_some_and(|t| t.eq_ignore_ascii_case(b"inf"));
        if unit(self.peek()) && !starts_inf {
            self.at += 1;
            self.blanks();
            if self.peek() != b'*' {
                return Some((sign, true));
            }
            self.at += 1;
            self.blanks();
            return Some((sign * self.magnitude()?, true));
        }
        let x = sign * self.magnitude()?;
        let back = self.at;
        self.blanks();
        if unit(self.peek()) {
            self.at += 1;
            return Some((x, true));
        }
        if self.peek() == b'*' {
            self.at += 1;
            self.blanks();
            return match unit(self.peek()) {
                true => {
                    self.at += 1;
                    Some((x, true))
                }
                false => None,
            };
        }
        self.at = back;
        Some((x, false))
    }

    /// Reads digits with a point and an exponent, or `Inf`, `NaN`, `NA`.
    fn magnitude(&mut self) -> Option<f64> {
        if self.takes(b"Inf") {
            return Some(f64::INFINITY);
        }
        if self.text[self.at..].starts_with(b"NaN") {
            self.at += 3;
            return Some(f64::NAN);
        }
        if self.text[self.at..].starts_with(b"NA") {
            self.at += 2;
            return Some(MISSING);
        }
        let start = self.at;
        let mut count = self.digits();
        if self.peek() == b'.' {
            self.at += 1;
            count += self.digits();
        }
        if count == 0 {
            return None;
        }
        if matches!(self.peek(), b'e' | b'E') {
            self.at += 1;
            if matches!(self.peek(), b'+' | b'-') {
                self.at += 1;
            }
            if self.digits() == 0 {
                return None;
            }
        }
        std::str::from_utf8(&self.text[start..self.at]).ok()?.parse().ok()
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        self.at - start
    }
}

/// A task for `str2num`: it evaluates the text, and returns `[]` and false if that fails.
struct Evaluated {
    text: String,
}

fn str2num(_: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let (Some(rows), true) = (chars::rows(&args[0]), args[0].is_char()) else {
        return fail!("str2num: S must be a string or string array");
    };
    let lines: Vec<String> = rows.iter().map(|r| String::from_utf8_lossy(r).into_owned()).collect();
    Ok(Outcome::Task(Box::new(Evaluated { text: format!("[{}]", lines.join(";\n")) })))
}

impl Task for Evaluated {
    fn step(&mut self, _: &mut Interp, last: Option<Result<Values, ScriptError>>) -> Flow<TaskStep> {
        Ok(match last {
            None => TaskStep::Call {
                function: Arc::new(Function::Named("eval".into(), None)),
                args: vec![Value::string(&self.text)],
                nargout: 1,
            },
            Some(Ok(values)) if !values.is_empty() => {
                TaskStep::Done(smallvec::smallvec![values[0].clone(), Value::Bool(true)])
            }
            Some(_) => TaskStep::Done(smallvec::smallvec![Value::empty(), Value::Bool(false)]),
        })
    }

    fn catches(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_spell_numbers() {
        let c = Complex64::new;
        let cases: &[(&str, Complex64)] = &[
            ("1,222.5", c(1222.5, 0.0)),
            (" -2 ", c(-2.0, 0.0)),
            ("1e-3 - i*Inf", c(1e-3, f64::NEG_INFINITY)),
            ("Infi", c(0.0, f64::INFINITY)),
            ("-i", c(0.0, -1.0)),
            ("2i+1", c(1.0, 2.0)),
            ("i*2", c(0.0, 2.0)),
            ("5.", c(5.0, 0.0)),
        ];
        for (text, number) in cases {
            assert_eq!(spelled(text.as_bytes()), *number, "{text}");
        }
        for text in ["", ".", "1e", "1 2", "1+2", "1i+2i", "0x10", "1+", "infinity", "1_0", "abc"] {
            assert!(spelled(text.as_bytes()).re.is_nan(), "{text}");
        }
    }
}
