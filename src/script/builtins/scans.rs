//! Running sums, products and extrema; differences.

use super::Builtin;

/// The functions.
pub static ROWS: &[Builtin] = &[];
