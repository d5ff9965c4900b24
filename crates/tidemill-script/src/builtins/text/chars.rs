//! Shared functions on text: char matrices, blanks, and walks over cells of strings.
//!
//! Must hold: text is bytes, as in Octave; an empty result is 0×0, like `''`.

use crate::error::{Flow, fail};
use crate::value::{CellArray, Data, Dims, Tensor, Value};
use std::sync::Arc;

/// Whether a byte is white space, as in C.
pub fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// Whether the trimming functions remove a byte: white space and NUL.
pub fn is_blank(b: u8) -> bool {
    is_space(b) || b == 0
}

/// Returns rows as a char matrix, padded with blanks on the right.
pub fn char_matrix(rows: &[Vec<u8>]) -> Value {
    Value::tensor(filled_up(rows, b' '))
}

/// Returns rows as a char matrix; shorter ones are padded on the right with `fill`.
pub fn filled_up(rows: &[impl AsRef<[u8]>], fill: u8) -> Tensor {
    let (n, columns) = (rows.len(), rows.iter().map(|row| row.as_ref().len()).max().unwrap_or(0));
    let mut data = vec![fill; n * columns];
    for (r, row) in rows.iter().enumerate() {
        for (c, &b) in row.as_ref().iter().enumerate() {
            data[c * n + r] = b;
        }
    }
    Tensor::new(Dims::new(&[n, columns]), Data::Char(data))
}

/// Returns the rows of a char array. A string is one row, and the 0×0 array has none.
pub fn rows(value: &Value) -> Option<Vec<Vec<u8>>> {
    match value {
        Value::Tensor(t) => t.row_strings(),
        _ => None,
    }
}

/// Returns strings as a cell row.
pub fn cell_row(items: Vec<Vec<u8>>) -> Value {
    Value::Cell(Arc::new(CellArray::row(items.into_iter().map(Value::string).collect())))
}

/// Returns strings as a cell column.
pub fn cell_column(items: Vec<Vec<u8>>) -> Value {
    let dims = Dims::new(&[items.len(), 1]);
    Value::cell(dims, items.into_iter().map(Value::string).collect())
}

/// Whether a value is a cell array of char rows.
pub fn is_cellstr(value: &Value) -> bool {
    matches!(value, Value::Cell(c) if c.items.iter().all(Value::is_char))
}

/// Returns the strings of a cell array of strings; `None` if an item is no string.
pub fn strings(cell: &CellArray) -> Option<Vec<&[u8]>> {
    cell.items.iter().map(Value::as_bytes).collect()
}

/// Returns a string, or a cell array of strings, as a list. `message` is the error for other values.
///
/// # Errors
/// The message.
pub fn list<'v>(value: &'v Value, message: &str) -> Flow<Vec<&'v [u8]>> {
    let found = match value {
        Value::Cell(c) => strings(c),
        value => value.as_bytes().map(|b| vec![b]),
    };
    match found {
        Some(list) => Ok(list),
        None => fail!("{message}"),
    }
}

/// Returns a string. `message` is the error for other values.
///
/// # Errors
/// The message.
pub fn string<'v>(value: &'v Value, message: &str) -> Flow<&'v [u8]> {
    match value.as_bytes() {
        Some(bytes) => Ok(bytes),
        None => fail!("{message}"),
    }
}

/// Applies a function to every item of a cell array.
///
/// # Errors
/// Those of the function.
pub fn each(cell: &CellArray, mut f: impl FnMut(&Value) -> Flow<Value>) -> Flow<Value> {
    let items = cell.items.iter().map(&mut f).collect::<Flow<Vec<Value>>>()?;
    Ok(Value::cell(cell.dims.clone(), items))
}

/// Returns the positions of a pattern in a text, from 0; with `overlaps`, also those within an earlier match.
pub fn find_all(text: &[u8], pattern: &[u8], overlaps: bool) -> Vec<usize> {
    let mut found = Vec::new();
    if pattern.is_empty() || pattern.len() > text.len() {
        return found;
    }
    let mut at = 0;
    while at + pattern.len() <= text.len() {
        if text[at..].starts_with(pattern) {
            found.push(at);
            at += if overlaps { 1 } else { pattern.len() };
        } else {
            at += 1;
        }
    }
    found
}

/// Replaces backslash escapes in a text: `
/// `, `\t`, `\x41`, `\101`, …; a backslash before another character is dropped.
pub fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let b = text[at];
        at += 1;
        if b != b'\\' || at == text.len() {
            out.push(b);
            continue;
        }
        let escape = text[at];
        at += 1;
        match escape {
            b'a' => out.push(7),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'v' => out.push(11),
            b'x' => {
                let digits = text[at..].iter().take(2).take_while(|d| d.is_ascii_hexdigit()).count();
                let code = text[at..at + digits].iter().fold(0u32, |n, &d| n * 16 + hex(d));
                at += digits;
                out.push(code as u8);
            }
            b'0'..=b'7' => {
                let digits = text[at - 1..].iter().take(3).take_while(|d| (b'0'..=b'7').contains(d)).count();
                let code = text[at - 1..at - 1 + digits].iter().fold(0u32, |n, &d| n * 8 + u32::from(d - b'0'));
                at += digits - 1;
                out.push(code as u8);
            }
            other => out.push(other),
        }
    }
    out
}

fn hex(digit: u8) -> u32 {
    (digit as char).to_digit(16).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_read() {
        assert_eq!(unescaped(br"a\nb\t\x41\101\\\q"), b"a\nb\tAA\\q");
        assert_eq!(unescaped(b"end\\"), b"end\\");
    }

    #[test]
    fn places_may_overlap() {
        assert_eq!(find_all(b"aaa", b"aa", true), [0, 1]);
        assert_eq!(find_all(b"aaa", b"aa", false), [0]);
    }
}
