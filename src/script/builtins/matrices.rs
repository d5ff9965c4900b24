//! Special matrices and their parts.

use super::Builtin;

/// The functions.
pub static ROWS: &[Builtin] = &[];
