//! From text to a tree: lexer, parser, and back to text (`func2str`).
//!
//! In: a source. Out: an [`ast::File`], or the first syntax error with its place. Must hold: any bytes give a tree or
//! an error, in time and stack bounded by the text's length (nesting has a stated limit).

pub mod ast;

use super::error::ScriptError;
use super::source::Source;
use std::sync::Arc;

/// Parses a file, or a text for `eval`.
///
/// # Errors
/// The first syntax error, with its place.
pub fn parse(source: &Arc<Source>) -> Result<ast::File, ScriptError> {
    let _ = source;
    Err(ScriptError::new("parse: not built yet"))
}

/// Whether a text that does not parse might, with more lines after it: an open block, bracket or continuation.
pub fn is_incomplete(text: &str) -> bool {
    let _ = text;
    false
}
