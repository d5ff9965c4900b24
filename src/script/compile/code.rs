//! Compiled code: one [`Code`] a function, script or anonymous function.

use crate::script::source::Source;
use std::sync::Arc;

/// A compiled function, script or anonymous function.
#[derive(Debug)]
pub struct Code {
    /// Its name; empty for a script and for an anonymous function.
    pub name: Arc<str>,
    /// Where it came from.
    pub source: Arc<Source>,
    /// Of an anonymous function, its text as it is printed.
    pub text: Arc<str>,
}
