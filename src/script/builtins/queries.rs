//! Questions about values: classes, shapes, equality.

use super::Builtin;

/// The functions.
pub static ROWS: &[Builtin] = &[];
