//! Command syntax: `hold on`, `format long`, `clear x y`.
//!
//! A command begins a statement with a name that is no variable, white space, and a word. The word is anything but `=`,
//! an opening parenthesis, or an operator followed by white space. The words are taken literally, up to a comma, a
//! semicolon, a comment or the line's end; quotes and brackets hold words together.

use super::lexer::find_line_end;
use super::literal::{self, byte, is_name_byte};
use super::token::Parse;

/// Operators, longest first.
const OPERATORS: &[&str] = &[
    ".**", ".*=", "./=", ".\\=", ".^=", "**", ".*", "./", ".\\", ".^", "==", "~=", "!=", "<=", ">=", "&&", "||", "+=",
    "-=", "*=", "/=", "\\=", "^=", "|=", "&=", "++", "--", "+", "-", "*", "/", "\\", "^", "<", ">", "&", "|", ":", "!",
    "~", "@", ".",
];

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Goes over white space and continued lines.
fn skip_blanks(text: &str, at: usize) -> usize {
    let mut at = at;
    loop {
        if is_blank(byte(text, at)) {
            at += 1;
        } else if text[at..].starts_with("...") {
            at = find_line_end(text, at);
            at += if text[at..].starts_with("\r\n") { 2 } else { usize::from(at < text.len()) };
        } else {
            return at;
        }
    }
}

/// Whether only white space and comments follow this offset in the statement.
pub(super) fn ends_statement(text: &str, at: usize) -> bool {
    let at = skip_blanks(text, at);
    let rest = &text[at..];
    let is_end_keyword =
        ["end_try_catch", "end"].iter().any(|word| rest.starts_with(word) && !is_name_byte(byte(rest, word.len())));
    rest.is_empty() || rest.starts_with(['\n', '\r', ';', ',', '%', '#']) || is_end_keyword
}

/// Whether words follow the name that ends at this offset.
pub(super) fn words_follow(text: &str, name_end: usize) -> bool {
    let at = skip_blanks(text, name_end);
    let rest = &text[at..];
    let is_apart = at > name_end || rest.starts_with('"');
    if !is_apart || rest.is_empty() || rest.starts_with(['\n', '\r', ';', ',', '%', '#', '(', '{', ')', ']', '}']) {
        return false;
    }
    if rest.starts_with('=') && !rest.starts_with("==") {
        return false;
    }
    match OPERATORS.iter().find(|operator| rest.starts_with(**operator)) {
        Some(operator) => !is_blank(byte(rest, operator.len())),
        None => true,
    }
}

/// Returns the words after the name that ends at this offset, and where they end.
pub(super) fn words(text: &str, name_end: usize) -> Parse<(Vec<String>, usize)> {
    let mut words = Vec::new();
    let mut at = name_end;
    loop {
        at = skip_blanks(text, at);
        if at >= text.len() || matches!(byte(text, at), b'\n' | b'\r' | b';' | b',' | b'%' | b'#') {
            return Ok((words, at));
        }
        let (word, end) = word(text, at)?;
        words.push(String::from_utf8_lossy(&word).into_owned());
        at = end;
    }
}

/// Reads the word at this offset. Inside brackets, white space, commas, semicolons and quotes belong to the word.
fn word(text: &str, start: usize) -> Parse<(Vec<u8>, usize)> {
    let mut word = Vec::new();
    let mut at = start;
    let mut depth = 0;
    while at < text.len() {
        match byte(text, at) {
            b'\n' | b'\r' | b'%' | b'#' => break,
            b' ' | b'\t' | b';' | b',' if depth == 0 => break,
            b'.' if text[at..].starts_with("...") => break,
            b'\'' | b'"' if depth == 0 => {
                let (bytes, end) = literal::string(text, at)?;
                word.extend(bytes);
                at = end;
                continue;
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            _ => {}
        }
        word.push(byte(text, at));
        at += 1;
    }
    Ok((word, at))
}
