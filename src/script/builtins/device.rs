//! The device: `gpuArray`, `gather`, `wait`.

use super::Builtin;

/// The functions.
pub static ROWS: &[Builtin] = &[];
