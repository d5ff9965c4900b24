//! Parses text into a tree, and prints trees as text (`func2str`).
//!
//! In: a source. Out: an [`ast::File`], or the first syntax error with its place. Must hold: any bytes give a tree or
//! an error, in time and stack bounded by the text's length; nesting has stated limits
//! ([`NESTING_MAX`](parser::NESTING_MAX), [`HEIGHT_MAX`](parser::HEIGHT_MAX)).

pub mod ast;
mod command;
#[cfg(any(test, feature = "testing"))]
pub mod dump;
mod expressions;
mod functions;
mod lexer;
mod literal;
mod parser;
mod statements;
#[cfg(test)]
mod tests;
mod token;
mod unparse;

use super::error::ScriptError;
use super::source::{Source, Span};
use super::stack::with_room_for_a_tree;
use parser::Parser;
use std::sync::Arc;
use token::{Parse, SyntaxError};

/// Parses a file.
///
/// # Errors
/// The first syntax error, with its place.
pub fn parse(source: &Arc<Source>) -> Result<ast::File, ScriptError> {
    parse_with(source, &|_| false)
}

/// Parses a text that runs where variables already exist (`eval`, the REPL). If `x` is one of them, `x -1` subtracts
/// and is no command.
///
/// # Errors
/// The first syntax error, with its place.
pub fn parse_with(source: &Arc<Source>, is_variable: &dyn Fn(&str) -> bool) -> Result<ast::File, ScriptError> {
    run(source, is_variable).0.map_err(|error| error.into_script_error(source))
}

/// Whether a text needs more lines: it has an open block, bracket, continuation or block comment, or a function without
/// its `end`. Ask this before parsing the text, since such a function parses.
pub fn is_incomplete(text: &str) -> bool {
    // A text is entered line by line, so its last line has ended. A further empty line would end a continuation.
    let source = Source::new("", format!("{}\n", text.strip_suffix('\n').unwrap_or(text)));
    match run(&source, &|_| false) {
        (Ok(_), is_open) => is_open,
        (Err(error), _) => error.at_end,
    }
}

/// Parses a text. Also returns whether the text leaves something open at its end that is no error.
fn run(source: &Arc<Source>, is_variable: &dyn Fn(&str) -> bool) -> (Parse<ast::File>, bool) {
    if u32::try_from(source.text.len()).is_err() {
        return (Err(SyntaxError::new("the text is longer than 4 GiB", Span::default())), false);
    }
    // A faulty text's partial tree is dropped here, too.
    with_room_for_a_tree(|| {
        let mut parser = Parser::new(source, is_variable, false);
        let file = parser.file();
        let is_open = parser.open_function.is_some() || parser.lexer.open_at_end;
        match file {
            Err(error) if parser.next_function.is_some() => with_nested_functions(source, is_variable, error),
            file => (file, is_open),
        }
    })
}

/// Parses a text again in which a function begins before the `end` of another. Now every function must have an `end`,
/// so that such functions are nested. `error` is the error of the first reading, in which functions reach to the next
/// one.
fn with_nested_functions(
    source: &Arc<Source>,
    is_variable: &dyn Fn(&str) -> bool,
    error: Box<SyntaxError>,
) -> (Parse<ast::File>, bool) {
    let mut parser = Parser::new(source, is_variable, true);
    let file = match parser.file() {
        // The error that lies further behind belongs to the better reading.
        Err(other) if error.message != parser::NESTS && other.span.start < error.span.start => Err(error),
        file => file,
    };
    (file, parser.lexer.open_at_end)
}
