//! The machine that runs compiled code: frames, an operand stack, calls, and what it waits for.

use super::env::Env;

/// A running script.
pub struct Interp {
    /// What it has around it.
    pub env: Env,
}
