//! The machine that runs scripts: for programs that people type statements to, such as `tidemill repl`, and for programs
//! that spread runs over the cores with outputs of their own.
//!
//! [`Interp::new`] makes a machine, [`Interp::begin_session`] begins a session on it, [`Interp::begin_text`] each text,
//! and [`drive`] runs what has begun.

pub use crate::copies::parallel_map;
pub use crate::syntax::is_incomplete;
pub use crate::vm::{End, Interp, Kept, drive};

use crate::builtins::language::documentation;
use crate::error::ScriptError;
use crate::source::Source;
use crate::syntax;
use std::sync::Arc;

/// Parses a text, and throws the tree away.
///
/// # Errors
/// The first syntax error, with its place.
pub fn check_syntax(source: &Arc<Source>) -> Result<(), ScriptError> {
    syntax::parse(source).map(drop)
}

/// The words of `help` on a function, or on all of them where `topic` is empty; `None` for a name that nothing has.
pub fn help(interp: &mut Interp, topic: &str) -> Option<String> {
    documentation::help(interp, topic)
}
