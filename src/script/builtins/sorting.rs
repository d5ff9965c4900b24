//! Sorting, finding, and sets of elements.

use super::Builtin;

/// The functions.
pub static ROWS: &[Builtin] = &[];
