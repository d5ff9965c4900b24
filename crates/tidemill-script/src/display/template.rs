//! `printf`: a template, and arguments whose elements it takes one after another.
//!
//! The rules are those of Octave 7.3:
//! - Numeric arguments are taken element by element, and so are texts. But `%s` takes the rest of a text, or as many
//!   numbers as are byte codes. An empty argument counts as one that prints nothing.
//! - The template starts again while there are elements left. The output ends before the first conversion that finds
//!   none left. A template without arguments ends there, too.
//! - `%d`, `%i`, `%u`, `%o`, `%x` become `%g` with the same flags, width and precision for a number that is no integer,
//!   is too large, or is negative where there is no sign. Every conversion of Inf, NaN and NA writes the word.
//! - `%s` of a number writes the byte with this code, and nothing for other numbers. `%c` of a fraction is `%g`, and a
//!   code above 255 is written in UTF-8.
//! - `*` takes a width or a precision from the arguments. For complex numbers the real part counts.

use super::nested::kind;
use super::number::{self, Flags, Notation};
use crate::env::Env;
use crate::error::{Flow, fail};
use crate::memory::Growth;
use crate::value::{Data, Tensor, Value};
use std::sync::Arc;

/// The widest field and the highest precision that are accepted. C accepts more, but memory does not suffice.
const FIELD_MAX: usize = 1_000_000;

/// A part of a template.
#[derive(Clone, Debug, PartialEq)]
enum Piece {
    /// Text that is written unchanged.
    Text(Vec<u8>),
    /// `%…`.
    Conversion(Conversion),
}

/// A width or a precision.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Size {
    Unset,
    Given(usize),
    Star,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Conversion {
    flags: Flags,
    width: Size,
    precision: Size,
    letter: u8,
}

/// A conversion whose sizes are known.
#[derive(Clone, Copy)]
struct Field {
    flags: Flags,
    width: usize,
    precision: Option<usize>,
    letter: u8,
}

/// Parses a template; `None` if a `%` begins no conversion.
fn parse(template: &[u8]) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut text = Vec::new();
    let mut at = 0;
    while at < template.len() {
        if template[at] != b'%' {
            text.push(template[at]);
            at += 1;
            continue;
        }
        let (conversion, next) = parse_conversion(template, at + 1)?;
        at = next;
        if conversion.letter == b'%' {
            text.push(b'%');
            continue;
        }
        if !text.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut text)));
        }
        pieces.push(Piece::Conversion(conversion));
    }
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Some(pieces)
}

fn parse_conversion(template: &[u8], mut at: usize) -> Option<(Conversion, usize)> {
    let mut flags = Flags::default();
    loop {
        match template.get(at)? {
            b'-' => flags.left = true,
            b'+' => flags.plus = true,
            b' ' => flags.blank = true,
            b'0' => flags.zero = true,
            b'#' => flags.alternate = true,
            _ => break,
        }
        at += 1;
    }
    let width = parse_size(template, &mut at);
    let mut precision = Size::Unset;
    if template.get(at) == Some(&b'.') {
        at += 1;
        precision = match parse_size(template, &mut at) {
            Size::Unset => Size::Given(0),
            size => size,
        };
    }
    let modifier = match template.get(at)? {
        m @ (b'l' | b'h' | b'L') => {
            at += 1;
            Some(*m)
        }
        _ => None,
    };
    let letter = *template.get(at)?;
    let known = match letter {
        b'd' | b'i' | b'o' | b'x' | b'X' | b'u' => modifier != Some(b'L'),
        b'f' | b'e' | b'E' | b'g' | b'G' => matches!(modifier, None | Some(b'L')),
        b'c' => modifier != Some(b'L'),
        b's' | b'%' => modifier.is_none(),
        _ => false,
    };
    known.then_some((Conversion { flags, width, precision, letter }, at + 1))
}

fn parse_size(template: &[u8], at: &mut usize) -> Size {
    if template.get(*at) == Some(&b'*') {
        *at += 1;
        return Size::Star;
    }
    let mut size = None;
    while let Some(digit @ b'0'..=b'9') = template.get(*at) {
        let value = size.unwrap_or(0usize).saturating_mul(10).saturating_add((digit - b'0') as usize);
        size = Some(value);
        *at += 1;
    }
    size.map_or(Size::Unset, Size::Given)
}

/// An argument's element that a conversion takes.
enum Element {
    /// A number.
    Number(f64),
    /// An element of an integer class, with its exact value.
    Integer(i128),
    /// A byte of a text.
    Char(u8),
    /// An empty argument.
    Empty,
}

/// The arguments, and the position of the next element.
struct Arguments {
    list: Vec<Arc<Tensor>>,
    argument: usize,
    element: usize,
}

impl Arguments {
    fn is_empty(&self) -> bool {
        self.argument >= self.list.len()
    }

    /// Takes the next element. For `%s`, also returns the text from there on, if there is one.
    fn next(&mut self, as_text: bool) -> Option<(Element, Option<Vec<u8>>)> {
        let tensor = self.list.get(self.argument)?.clone();
        let at = self.element;
        let text = as_text.then(|| codes(&tensor.data, at)).filter(|text| !text.is_empty());
        self.element += text.as_ref().map_or(1, Vec::len);
        if self.element >= tensor.len() {
            self.argument += 1;
            self.element = 0;
        }
        if tensor.is_empty() {
            return Some((Element::Empty, None));
        }
        let element = match &*tensor.data {
            Data::Char(v) => Element::Char(v[at]),
            Data::I64(v) => Element::Integer(v[at] as i128),
            Data::U64(v) => Element::Integer(v[at] as i128),
            data if data.class().is_integer() => Element::Integer(data.f64_at(at) as i128),
            data => Element::Number(data.f64_at(at)),
        };
        Some((element, text))
    }
}

/// Returns the elements from a position on as bytes, up to the first that is no byte code.
fn codes(data: &Data, at: usize) -> Vec<u8> {
    match data {
        Data::Char(chars) => chars[at.min(chars.len())..].to_vec(),
        data => (at..data.len())
            .map(|i| data.f64_at(i))
            .take_while(|x| x.trunc() == *x && (0.0..256.0).contains(x))
            .map(|x| x as u8)
            .collect(),
    }
}

/// Returns the result of `sprintf (template, args…)`. `name` is the function's name in messages. Escapes in the
/// template are replaced if it was written in single quotes.
///
/// # Errors
/// A template that is no text, or has a `%` that begins no conversion; arguments that are neither numbers nor texts.
pub fn format(env: &mut Env, name: &str, template: &Value, args: &[Value]) -> Flow<Vec<u8>> {
    let (text, end) = format_until(env, name, template, args)?;
    end.map(|()| text)
}

/// Returns how many numbers or texts a template takes in one pass.
pub fn conversions(template: &[u8]) -> usize {
    parse(template).unwrap_or_default().iter().filter(|piece| matches!(piece, Piece::Conversion(_))).count()
}

/// Does the same as [`format`]. If an argument for a width is no number, it returns the output so far, and the error
/// beside it.
///
/// # Errors
/// Those of [`format`], except for widths.
pub fn format_until(env: &mut Env, name: &str, template: &Value, args: &[Value]) -> Flow<(Vec<u8>, Flow<()>)> {
    env.host_all(std::iter::once(template).chain(args))?;
    let Value::Tensor(template) = template else {
        return fail!("{name}: format TEMPLATE must be a string");
    };
    let Some(text) = template.data.chars() else {
        return fail!("{name}: format TEMPLATE must be a string");
    };
    let text = if template.double_quoted { text.to_vec() } else { crate::builtins::text::chars::unescaped(text) };
    let Some(pieces) = parse(&text) else {
        return fail!("{name}: invalid format specified");
    };
    let converts_text = pieces.iter().any(|p| matches!(p, Piece::Conversion(c) if c.letter == b's'));
    let mut list = Vec::with_capacity(args.len());
    for arg in args {
        match arg {
            Value::Cell(_) | Value::Struct(_) | Value::Map(_) | Value::Parser(_) => {
                return fail!("{name}: wrong type argument '{}'", kind(arg));
            }
            Value::Function(_) if converts_text => {
                return fail!("octave_base_value::array_value(): wrong type argument 'function handle'");
            }
            Value::Function(_) => list.push(Arc::new(Tensor::string(b""))),
            other => list.push(env.host(other)?),
        }
    }
    let mut out = Vec::new();
    let end = run(env, name, &pieces, Arguments { list, argument: 0, element: 0 }, &mut out);
    Ok((out, end))
}

fn run(env: &Env, name: &str, pieces: &[Piece], mut args: Arguments, out: &mut Vec<u8>) -> Flow<()> {
    let mut growth = Growth::default();
    let converts = pieces.iter().any(|p| matches!(p, Piece::Conversion(_)));
    loop {
        for piece in pieces {
            match piece {
                Piece::Text(text) => {
                    growth.add(env, text.len())?;
                    out.extend_from_slice(text);
                }
                Piece::Conversion(conversion) => {
                    let Some(field) = sizes(name, conversion, &mut args)? else { return Ok(()) };
                    let Some((element, text)) = args.next(field.letter == b's') else { return Ok(()) };
                    let text_bytes = text.as_ref().map_or(0, Vec::len);
                    growth.add(env, text_bytes + field.width + field.precision.unwrap_or(0))?;
                    convert(out, &field, element, text);
                }
            }
        }
        if !converts || args.is_empty() {
            return Ok(());
        }
    }
}

/// Replaces the stars of a conversion by arguments; `None` if there are no arguments left.
fn sizes(name: &str, conversion: &Conversion, args: &mut Arguments) -> Flow<Option<Field>> {
    let Conversion { flags, width, precision, letter } = *conversion;
    let mut take = |size: Size| -> Flow<Option<Option<usize>>> {
        Ok(match size {
            Size::Unset => Some(None),
            Size::Given(n) => Some(Some(n)),
            Size::Star => match args.next(false) {
                None => None,
                Some((element, _)) => Some(Some(star(name, element)?)),
            },
        })
    };
    let Some(width) = take(width)? else { return Ok(None) };
    let Some(precision) = take(precision)? else { return Ok(None) };
    for size in [width, precision].into_iter().flatten() {
        if size > FIELD_MAX {
            return fail!("{name}: field widths and precisions beyond {FIELD_MAX} are not supported");
        }
    }
    Ok(Some(Field { flags, width: width.unwrap_or(0), precision, letter }))
}

fn star(name: &str, element: Element) -> Flow<usize> {
    let x = match element {
        Element::Number(x) => x,
        Element::Integer(i) => i as f64,
        Element::Char(c) => c as f64,
        Element::Empty => -1.0,
    };
    if x >= 0.0 && x <= i32::MAX as f64 && x == x.trunc() {
        return Ok(x as usize);
    }
    fail!("{name}: invalid field width, must be integer >= 0 and <= INT_MAX")
}

fn convert(out: &mut Vec<u8>, field: &Field, element: Element, text: Option<Vec<u8>>) {
    if let Some(text) = text {
        return push_text(out, field, &text);
    }
    match (field.letter, element) {
        (b's' | b'c', Element::Empty) => push_text(out, field, b""),
        (_, Element::Empty) => {}
        (b's' | b'c', Element::Char(c)) => push_text(out, field, &[c]),
        (b's' | b'c', Element::Number(x)) if !x.is_finite() => push_non_finite(out, field, x),
        (b's' | b'c', Element::Number(x)) => push_code(out, field, x),
        (b's' | b'c', Element::Integer(i)) => push_code(out, field, i as f64),
        (b'f' | b'e' | b'E' | b'g' | b'G', element) => match element {
            Element::Number(x) => push_float(out, field, x, field.letter),
            Element::Integer(i) => push_float(out, field, i as f64, field.letter),
            Element::Char(c) => push_float(out, field, c as f64, field.letter),
            Element::Empty => {}
        },
        (_, Element::Char(c)) => push_integer(out, field, c as i128),
        (_, Element::Integer(i)) => push_integer(out, field, i),
        (_, Element::Number(x)) => push_whole(out, field, x),
    }
}

fn push_text(out: &mut Vec<u8>, field: &Field, text: &[u8]) {
    let text = &text[..text.len().min(field.precision.unwrap_or(usize::MAX))];
    out.extend(number::pad("", text, Flags { zero: false, ..field.flags }, field.width));
}

/// Writes a number for a conversion of text.
fn push_code(out: &mut Vec<u8>, field: &Field, x: f64) {
    if x != x.trunc() {
        if field.letter == b'c' {
            push_float(out, field, x, b'g');
        }
    } else if (0.0..256.0).contains(&x) {
        push_text(out, field, &[x as u8]);
    } else if field.letter == b'c' && x >= 0.0 {
        push_text(out, field, &encoded(x as u64 as u32));
    }
}

/// Encodes a code in UTF-8 as it was first defined, with up to six bytes; returns nothing for greater codes.
fn encoded(code: u32) -> Vec<u8> {
    let bytes = match code {
        0..0x800 => 2,
        0x800..0x1_0000 => 3,
        0x1_0000..0x20_0000 => 4,
        0x20_0000..0x400_0000 => 5,
        0x400_0000..0x8000_0000 => 6,
        _ => return Vec::new(),
    };
    let lead = (0xFFu32 << (8 - bytes)) as u8;
    let first = lead | (code >> (6 * (bytes - 1))) as u8;
    let rest = (0..bytes - 1).rev().map(|i| 0x80 | (code >> (6 * i) & 0x3F) as u8);
    std::iter::once(first).chain(rest).collect()
}

fn push_non_finite(out: &mut Vec<u8>, field: &Field, x: f64) {
    let word = number::non_finite(x);
    let (sign, word) = match word.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => (if field.flags.plus { "+" } else { "" }, word),
    };
    out.extend(number::pad(sign, word.as_bytes(), Flags { zero: false, ..field.flags }, field.width));
}

fn push_float(out: &mut Vec<u8>, field: &Field, x: f64, letter: u8) {
    if !x.is_finite() {
        return push_non_finite(out, field, x);
    }
    let digits = field.precision.unwrap_or(6);
    let notation = match letter.to_ascii_lowercase() {
        b'f' => Notation::Fixed(digits),
        b'e' => Notation::Exponent(digits),
        _ => Notation::General(digits),
    };
    out.extend(number::padded(x, notation, field.flags, field.width, letter.is_ascii_uppercase()));
}

/// Writes a double for a conversion of integers.
fn push_whole(out: &mut Vec<u8>, field: &Field, x: f64) {
    if x.is_finite() && x == x.trunc() {
        // A double beyond all integers counts as the largest integer of the conversion.
        let most = if is_signed(field) { i64::MAX as f64 } else { u64::MAX as f64 };
        if x <= most && (is_signed(field) || x >= 0.0) {
            let most = if is_signed(field) { i64::MAX as i128 } else { u64::MAX as i128 };
            return push_integer(out, field, (x as i128).clamp(i64::MIN as i128, most));
        }
    }
    push_float(out, field, x, b'g');
}

fn is_signed(field: &Field) -> bool {
    matches!(field.letter, b'd' | b'i')
}

fn push_integer(out: &mut Vec<u8>, field: &Field, value: i128) {
    let most = if is_signed(field) { i64::MAX as i128 } else { u64::MAX as i128 };
    if value > most || !is_signed(field) && value < 0 {
        return push_float(out, field, value as f64, b'g');
    }
    let mut digits = match field.letter {
        b'o' => format!("{value:o}"),
        b'x' => format!("{value:x}"),
        b'X' => format!("{value:X}"),
        _ => value.unsigned_abs().to_string(),
    };
    let flags = Flags { zero: field.flags.zero && field.precision.is_none(), ..field.flags };
    if let Some(precision) = field.precision {
        if precision == 0 && value == 0 {
            digits.clear();
        }
        digits.insert_str(0, &"0".repeat(precision.saturating_sub(digits.len())));
    }
    let prefix = match field.letter {
        b'd' | b'i' => number::sign(value < 0, flags),
        b'x' if flags.alternate && value != 0 => "0x",
        b'X' if flags.alternate && value != 0 => "0X",
        b'o' if flags.alternate && !digits.starts_with('0') => "0",
        _ => "",
    };
    out.extend(number::pad(prefix, digits.as_bytes(), flags, field.width));
}
