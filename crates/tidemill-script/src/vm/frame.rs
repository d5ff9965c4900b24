//! What the machine keeps for a call, a loop and a try.

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
    /// Without a value.
    #[default]
    Undefined,
    /// With its value.
    Value(Value),
    /// A global or persistent, by its number.
    Static(u32),
    /// One that other functions of its file see, too: nested ones, and those around them.
    Shared(Shared),
}

/// A call in progress.
pub(super) enum Activation {
    /// Of compiled code.
    Code(Frame),
    /// Of a builtin that calls functions.
    Task(TaskFrame),
}

impl Activation {
    /// Where it begins.
    pub fn heights(&self) -> Heights {
        match self {
            Activation::Code(frame) => frame.heights,
            Activation::Task(task) => task.heights,
        }
    }
}

/// What becomes of a call's outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Return {
    /// They are pushed for the caller's instruction.
    Push(Want),
    /// They go to the task below.
    Task,
    /// Nobody takes them: the outermost frame.
    Nobody,
    /// Nobody takes them, and the machine stops: a text of a session.
    Session,
}

/// Heights of the machine's stacks where a frame begins.
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
    /// The next instruction.
    pub pc: usize,
    /// Where its variables begin.
    pub variables: usize,
    pub heights: Heights,
    pub nargin: usize,
    pub nargout: usize,
    pub returns: Return,
    /// Names of variables that evaluated text added, after the code's own.
    pub extra: Vec<Name>,
    /// What a handler is about to take.
    pub caught: Option<Caught>,
    /// What waits for its cleanup to end.
    pub held: Vec<Caught>,
    /// Of an anonymous function, what it captured.
    pub closure: Option<Arc<Closure>>,
    /// The shared variables, and by them the nested functions, that the code sees.
    pub nest: Option<Arc<Nest>>,
    /// Whether it runs in the variables of the frame below (`eval`).
    pub shares: bool,
    /// Whether it only holds the variables of a session's texts.
    pub is_session: bool,
}

/// A call of a task.
pub(super) struct TaskFrame {
    pub task: Box<dyn Task>,
    /// What its last call gave; `None` at the first step, or while a call runs.
    pub last: Option<Result<crate::index::Values, ScriptError>>,
    pub heights: Heights,
    pub returns: Return,
    pub nargout: usize,
}

/// What a handler takes.
pub(super) enum Caught {
    Error(ScriptError),
    /// Only where what follows is cleanup.
    Interrupt,
}

/// An open try.
pub(super) struct Handler {
    /// Its frame's number.
    pub frame: usize,
    /// Where it goes on.
    pub pc: usize,
    pub heights: Heights,
    /// The number of the first suspect that is its own.
    pub since: u64,
    /// Cleanups of its frame that hold an error and began before it.
    pub held: usize,
    /// Where it is cleanup, which an interrupt waits for.
    pub guard: Option<Guard>,
}

/// A loop in progress.
pub(super) enum Iteration {
    /// Over a row of doubles that was never made; nothing where it is empty.
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
