//! The machine's state for calls, loops and tries.

use crate::builtins::Task;
use crate::compile::Code;
use crate::compile::code::Want;
use crate::error::ScriptError;
use crate::interrupt::Guard;
use crate::ops::Span;
use crate::syntax::ast::Name;
use crate::value::function::Closure;
use crate::value::nest::{Nest, Shared};
use crate::value::{CellArray, StructArray, Value};
use std::sync::Arc;

/// A variable of a frame.
#[derive(Clone, Debug, Default)]
pub enum Variable {
    /// It has no value.
    #[default]
    Undefined,
    /// It has this value.
    Value(Value),
    /// A global or persistent variable, by its number.
    Static(u32),
    /// A variable that other functions of its file share: nested functions, and those around them.
    Shared(Shared),
}

/// A call in progress.
pub(super) enum Activation {
    /// A call of compiled code.
    Code(Frame),
    /// A call of a builtin that calls functions.
    Task(TaskFrame),
}

impl Activation {
    /// The heights of the machine's stacks where this call begins.
    pub fn heights(&self) -> Heights {
        match self {
            Activation::Code(frame) => frame.heights,
            Activation::Task(task) => task.heights,
        }
    }
}

/// Where a call's outputs go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Return {
    /// They are pushed for the caller's instruction.
    Push(Want),
    /// They go to the task below.
    Task,
    /// Nowhere: this is the outermost frame.
    Discard,
    /// Nowhere, and the machine stops: this is a text of a session.
    Session,
}

/// The heights of the machine's stacks at one point.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Heights {
    pub stack: usize,
    pub iterations: usize,
    pub marks: usize,
    pub bases: usize,
    pub targets: usize,
    pub handlers: usize,
    pub overwritten: usize,
}

/// A call of compiled code.
pub(super) struct Frame {
    pub code: Arc<Code>,
    /// The index of the current instruction.
    pub pc: usize,
    /// The index of its first variable.
    pub variables: usize,
    pub heights: Heights,
    pub nargin: usize,
    pub nargout: usize,
    pub returns: Return,
    /// Names of variables that evaluated text added behind the code's own.
    pub extra: Vec<Name>,
    /// The error or interrupt that a handler is about to take.
    pub caught: Option<Caught>,
    /// Errors and interrupts that continue once their cleanups have ended.
    pub held: Vec<Caught>,
    /// For an anonymous function: its captured variables.
    pub closure: Option<Arc<Closure>>,
    /// The shared variables that the code sees, and with them its nested functions.
    pub nest: Option<Arc<Nest>>,
    /// Whether the code runs in the variables of the frame below (`eval`).
    pub shares: bool,
    /// Whether the frame only holds the variables of a session's texts.
    pub is_session: bool,
}

/// A call of a task.
pub(super) struct TaskFrame {
    pub task: Box<dyn Task>,
    /// The result of its last call; `None` at the first step, or while a call runs.
    pub last: Option<Result<crate::index::Values, ScriptError>>,
    pub heights: Heights,
    pub returns: Return,
    pub nargout: usize,
}

/// The error or interrupt that a handler takes.
pub(super) enum Caught {
    Error(ScriptError),
    /// Taken only by a handler that is a cleanup.
    Interrupt,
}

/// An open try.
pub(super) struct Handler {
    /// The index of its frame.
    pub frame: usize,
    /// The instruction at which the frame goes on.
    pub pc: usize,
    pub heights: Heights,
    /// The number of the first suspect that was made within this try.
    pub since: u64,
    /// The number of entries in the frame's `held` when this try began.
    pub held: usize,
    /// Set if this is a cleanup, for which an interrupt waits.
    pub guard: Option<Guard>,
}

/// A loop in progress.
pub(super) enum Iteration {
    /// Over a range of doubles that is not made into an array; `None` if the range is empty.
    Range { span: Option<Span>, next: usize },
    /// Over the elements of a row of doubles.
    Row { data: Value, next: usize, count: usize },
    /// Over the columns of any array.
    Columns { data: Value, next: usize, count: usize },
    /// Over the columns of a cell array.
    Cells { data: Arc<CellArray>, next: usize, count: usize },
    /// Over the fields of a struct.
    Fields { data: Arc<StructArray>, next: usize },
    /// Over one value.
    Once(Option<Value>),
}
