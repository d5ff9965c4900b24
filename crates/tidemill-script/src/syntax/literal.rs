//! Turns the text of numbers and strings into values.
//!
//! In: a text and the offset of a literal's first byte. Out: its token and the offset after it.

use super::token::{Parse, SyntaxError, TokenKind};
use crate::source::Span;
use crate::value::Class;

/// Returns the byte at an offset, or 0 past the end.
pub(super) fn byte(text: &str, at: usize) -> u8 {
    text.as_bytes().get(at).copied().unwrap_or(0)
}

/// Whether a byte can be part of a name.
pub(super) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Reads the number that begins at `at` with a digit, or with a dot and a digit.
pub(super) fn number(text: &str, at: usize) -> Parse<(TokenKind, usize)> {
    if byte(text, at) == b'0' {
        match byte(text, at + 1) {
            b'x' | b'X' if byte(text, at + 2).is_ascii_hexdigit() => return integer(text, at, 4),
            b'b' | b'B' if matches!(byte(text, at + 2), b'0' | b'1') => return integer(text, at, 1),
            _ => {}
        }
    }
    let mut end = skip_while(text, at, is_digit);
    if byte(text, end) == b'.' && !dot_belongs_to_operator(text, end) {
        end = skip_while(text, end + 1, is_digit);
    }
    if matches!(byte(text, end), b'e' | b'E' | b'd' | b'D') {
        let digits = end + 1 + usize::from(matches!(byte(text, end + 1), b'+' | b'-'));
        if byte(text, digits).is_ascii_digit() {
            end = skip_while(text, digits, is_digit);
        }
    }
    let value = decimal(&text[at..end]);
    if matches!(byte(text, end), b'i' | b'I' | b'j' | b'J') {
        return Ok((TokenKind::Imaginary(value), end + 1));
    }
    Ok((TokenKind::Number(value), end))
}

/// Whether the byte is a digit, or an underscore, which Octave allows between digits.
fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit() || byte == b'_'
}

fn skip_while(text: &str, at: usize, accept: fn(u8) -> bool) -> usize {
    at + text.as_bytes()[at..].iter().take_while(|&&b| accept(b)).count()
}

/// Whether the dot after digits begins an operator (`1./x`, `1.'`) or a continuation (`1...`).
fn dot_belongs_to_operator(text: &str, dot: usize) -> bool {
    matches!(byte(text, dot + 1), b'*' | b'/' | b'\\' | b'^' | b'\'') || text[dot..].starts_with("...")
}

/// Returns the value of a decimal number; `d` and `D` mean `e`.
fn decimal(text: &str) -> f64 {
    let plain: String =
        text.chars().filter(|&c| c != '_').map(|c| if matches!(c, 'd' | 'D') { 'e' } else { c }).collect();
    plain.parse().unwrap_or(f64::NAN)
}

/// Reads a hexadecimal (4 bits a digit) or binary (1 bit a digit) number. It is an unsigned integer as wide as its
/// digits, or of the class that its suffix names (`0xFFs16`).
fn integer(text: &str, at: usize, bits_per_digit: usize) -> Parse<(TokenKind, usize)> {
    let accept: fn(u8) -> bool =
        if bits_per_digit == 4 { |b| b.is_ascii_hexdigit() || b == b'_' } else { |b| matches!(b, b'0' | b'1' | b'_') };
    let digits_end = skip_while(text, at + 2, accept);
    let digits = text[at + 2..digits_end].bytes().filter(|&b| b != b'_');
    let bits_written = digits.clone().count() * bits_per_digit;
    let (suffix, end) = integer_suffix(text, digits_end);
    let (signed, width) = suffix.unwrap_or_else(|| (false, bits_written.next_power_of_two().max(8)));
    if bits_written > width || width > 64 {
        let kind = if bits_per_digit == 4 { "hexadecimal" } else { "binary" };
        return Err(SyntaxError::new(format!("too many digits for {kind} constant"), Span::new(at, end)));
    }
    let bits = digits.fold(0u64, |sum, b| sum << bits_per_digit | u64::from((b as char).to_digit(16).unwrap_or(0)));
    let class = match (signed, width) {
        (false, 8) => Class::Uint8,
        (false, 16) => Class::Uint16,
        (false, 32) => Class::Uint32,
        (false, _) => Class::Uint64,
        (true, 8) => Class::Int8,
        (true, 16) => Class::Int16,
        (true, 32) => Class::Int32,
        (true, _) => Class::Int64,
    };
    Ok((TokenKind::Integer { class, bits }, end))
}

/// Reads the suffix `u8` … `s64`: returns whether it is signed and its number of bits, and where it ends.
fn integer_suffix(text: &str, at: usize) -> (Option<(bool, usize)>, usize) {
    let signed = match byte(text, at) {
        b's' => true,
        b'u' => false,
        _ => return (None, at),
    };
    let end = skip_while(text, at + 1, |b| b.is_ascii_digit());
    match &text[at + 1..end] {
        "8" => (Some((signed, 8)), end),
        "16" => (Some((signed, 16)), end),
        "32" => (Some((signed, 32)), end),
        "64" => (Some((signed, 64)), end),
        _ => (None, at),
    }
}

/// Reads the string that begins with the quote at `at`: returns its bytes, and the offset after its closing quote.
pub(super) fn string(text: &str, at: usize) -> Parse<(Vec<u8>, usize)> {
    let quote = byte(text, at);
    let mut bytes = Vec::new();
    let mut next = at + 1;
    loop {
        match byte(text, next) {
            b if b == quote => {
                if byte(text, next + 1) != quote {
                    return Ok((bytes, next + 1));
                }
                bytes.push(quote);
                next += 2;
            }
            b'\n' | b'\r' => return Err(unterminated(at, next)),
            0 if next >= text.len() => return Err(unterminated(at, next)),
            b'\\' if quote == b'"' => next = escape(text, next, &mut bytes)?,
            other => {
                bytes.push(other);
                next += 1;
            }
        }
    }
}

fn unterminated(start: usize, end: usize) -> Box<SyntaxError> {
    SyntaxError::new("unterminated character string constant", Span::new(start, end))
}

/// Reads the escape whose backslash is at `at`: pushes its bytes, and returns the offset after it. An unknown escape
/// gives the character after the backslash.
fn escape(text: &str, at: usize, bytes: &mut Vec<u8>) -> Parse<usize> {
    let plain = match byte(text, at + 1) {
        b'a' => 7,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 11,
        b'x' if byte(text, at + 2).is_ascii_hexdigit() => {
            let end = skip_while(text, at + 2, |b| b.is_ascii_hexdigit());
            let digits = text[at + 2..end].chars().filter_map(|c| c.to_digit(16));
            bytes.push(digits.fold(0u32, |sum, digit| (sum << 4 | digit) & 0xFF) as u8);
            return Ok(end);
        }
        b'0'..=b'7' => {
            let digits = text.as_bytes()[at + 1..].iter().take(3).take_while(|b| matches!(b, b'0'..=b'7'));
            let (count, value) = digits.fold((0, 0u32), |(n, sum), b| (n + 1, sum << 3 | u32::from(b - b'0')));
            let end = at + 1 + count;
            let Ok(value) = u8::try_from(value) else {
                return Err(SyntaxError::new("invalid octal escape sequence in character string", Span::new(at, end)));
            };
            bytes.push(value);
            return Ok(end);
        }
        // A backslash at the end of a line joins the lines.
        b'\n' => return Ok(at + 2),
        b'\r' => return Ok(at + 2 + usize::from(byte(text, at + 2) == b'\n')),
        0 if at + 1 >= text.len() => return Ok(at + 1),
        other => other,
    };
    bytes.push(plain);
    Ok(at + 2)
}
