//! The machine that runs scripts: for programs to which people type statements, such as `tidemill repl`, and for
//! programs that spread runs over the cores and give each its own output.
//!
//! [`Interp::new`] makes a machine, [`Interp::begin_session`] begins a session on it, [`Interp::begin_text`] begins
//! each text, and [`drive`] runs it.

pub use crate::copies::parallel_map;
pub use crate::syntax::is_incomplete;
pub use crate::vm::{End, Interp, Kept, drive};

use crate::builtins::language::documentation;
use crate::error::ScriptError;
use crate::source::Source;
use crate::syntax;
use std::sync::Arc;

/// Checks that a text has no syntax error.
///
/// # Errors
/// The first syntax error, with its place.
pub fn check_syntax(source: &Arc<Source>) -> Result<(), ScriptError> {
    syntax::parse(source).map(drop)
}

/// Returns the help text of a function, or of all functions if `topic` is empty. `None`: there is no such name.
pub fn help(interp: &mut Interp, topic: &str) -> Option<String> {
    documentation::help(interp, topic)
}
