//! Function handles.

use super::Value;
use super::nest::Nest;
use crate::compile::Code;
use crate::compile::code::Kind;
use crate::source::Source;
use std::sync::Arc;

/// The function that a handle calls.
#[derive(Clone, Debug)]
pub enum Function {
    /// `@name`: looked up at the call, from the file in which the handle was made.
    Named(Arc<str>, Option<Arc<Source>>),
    /// `@(x) …`, with the values that it captured.
    Anonymous(Arc<Closure>),
    /// A function with its first argument: `m.isKey` in `m.isKey (k)`. It exists during the call only.
    Method(&'static str, Value),
}

/// An anonymous function, and the variables that it captured.
#[derive(Clone, Debug)]
pub struct Closure {
    /// The body.
    pub code: Arc<Code>,
    /// The values of the captured variables, with their slots in the code.
    pub captured: Vec<(u32, Value)>,
    /// The shared variables of the call that made the handle. They are set for a handle of a nested function, and for
    /// an anonymous function that calls nested functions.
    pub nest: Option<Arc<Nest>>,
}

impl Function {
    /// Returns its text, as `func2str` returns it and as it prints.
    pub fn text(&self) -> String {
        match self {
            Function::Named(name, _) => name.to_string(),
            Function::Anonymous(closure) => closure.name().unwrap_or(&closure.code.text).to_string(),
            Function::Method(name, _) => (*name).to_string(),
        }
    }

    /// Returns its name; `None` for an anonymous function.
    pub fn name(&self) -> Option<&str> {
        match self {
            Function::Named(name, _) => Some(name),
            Function::Anonymous(closure) => closure.name().map(|name| &**name),
            Function::Method(..) => None,
        }
    }
}

impl Closure {
    /// Returns the name of the nested function of which it is a handle; `None` for an anonymous function.
    pub fn name(&self) -> Option<&Arc<str>> {
        (self.code.kind == Kind::Function).then_some(&self.code.name)
    }
}
