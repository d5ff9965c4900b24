//! Function handles.

use super::Value;
use super::nest::Nest;
use crate::compile::Code;
use crate::compile::code::Kind;
use crate::source::Source;
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
    /// The shared variables of the call that it was made in: of a nested function, whose handle this is then, and of
    /// an anonymous one that calls nested functions.
    pub nest: Option<Arc<Nest>>,
}

impl Function {
    /// As `func2str` gives it, and as it prints.
    pub fn text(&self) -> String {
        match self {
            Function::Named(name, _) => name.to_string(),
            Function::Anonymous(closure) => closure.name().unwrap_or(&closure.code.text).to_string(),
            Function::Method(name, _) => (*name).to_string(),
        }
    }

    /// Its name, where it has one: not of an anonymous function.
    pub fn name(&self) -> Option<&str> {
        match self {
            Function::Named(name, _) => Some(name),
            Function::Anonymous(closure) => closure.name().map(|name| &**name),
            Function::Method(..) => None,
        }
    }
}

impl Closure {
    /// The name of the nested function that it is a handle of; `None` of an anonymous function.
    pub fn name(&self) -> Option<&Arc<str>> {
        (self.code.kind == Kind::Function).then_some(&self.code.name)
    }
}
