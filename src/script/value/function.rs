//! Function handles.

use super::Value;
use crate::script::compile::Code;
use crate::script::source::Source;
use std::sync::Arc;

/// What a handle calls.
#[derive(Clone, Debug)]
pub enum Function {
    /// `@name`: looked up when it is called, from where the file that it was made in would find it.
    Named(Arc<str>, Option<Arc<Source>>),
    /// `@(x) …`, with the values that it captured when it was made.
    Anonymous(Arc<Closure>),
    /// A function with its first argument: `m.isKey` of `m.isKey (k)`. Lives for the time of the call.
    Method(&'static str, Value),
}

/// An anonymous function and what it captured.
#[derive(Clone, Debug)]
pub struct Closure {
    /// The body.
    pub code: Arc<Code>,
    /// Values of the captured variables, beside their slots in the code.
    pub captured: Vec<(u32, Value)>,
}

impl Function {
    /// As `func2str` gives it, and as it prints.
    pub fn text(&self) -> String {
        match self {
            Function::Named(name, _) => name.to_string(),
            Function::Anonymous(closure) => closure.code.text.to_string(),
            Function::Method(name, _) => (*name).to_string(),
        }
    }
}
