//! The errors of a script, and the other reasons for which an instruction stops early.
//!
//! In: messages of the parser, of builtins and of the runtime. Out: a [`ScriptError`] that `try` can catch, and that
//! the command line shows with its place and its call stack.

use super::index::{BEYOND, SUBSCRIPTS};
use super::ops::TRUTH;
use super::output::Captured;
use super::source::Place;
use super::value::{Lazy, Value};
use futures::future::BoxFuture;
use std::fmt;
use std::sync::Arc;

/// An error as a script sees it: `err.identifier`, `err.message`, `err.stack`.
#[derive(Clone, Debug)]
pub struct ScriptError {
    /// `Octave:undefined-function`, `MATLAB:…`, or an identifier of the script's own; may be empty.
    pub identifier: String,
    /// In words, in the manner of the language (`operator +: nonconformant arguments (op1 is 1x2, op2 is 1x3)`).
    pub message: String,
    /// Advice for the user beyond the message, if there is any.
    pub help: Option<Box<str>>,
    /// Where it happened; filled in by the machine when the error leaves an instruction.
    pub place: Option<Place>,
    /// The calls that were open, innermost first; filled in by the machine when the error leaves an instruction.
    pub stack: Vec<Call>,
    /// For a fault of an array: where it was recorded or read, if that is not the error's place.
    pub origin: Option<Box<Origin>>,
    /// The script's output until the error, if [`Script::run`](super::Script::run) or
    /// [`Script::run_copies`](super::Script::run_copies) kept it.
    pub written: Option<Box<Captured>>,
}

/// The second place of a fault: an array can be recorded in one place and read in another.
#[derive(Clone, Debug)]
pub enum Origin {
    /// The session's mark when the array was recorded. The machine turns it into a place.
    Recorded(u64),
    /// The place where the array was read; the error's own place is then where it was recorded.
    Read(Place),
}

/// An open call, in an error's stack.
#[derive(Clone, Debug)]
pub struct Call {
    /// The function's name; empty at the script's top level.
    pub function: String,
    /// Where the function was when the error happened.
    pub place: Place,
}

impl ScriptError {
    /// An error without an identifier.
    pub fn new(message: impl Into<String>) -> ScriptError {
        ScriptError {
            identifier: String::new(),
            message: message.into(),
            help: None,
            place: None,
            stack: Vec::new(),
            origin: None,
            written: None,
        }
    }

    /// An error with an identifier.
    pub fn with_id(identifier: &str, message: impl Into<String>) -> ScriptError {
        ScriptError { identifier: identifier.into(), ..ScriptError::new(message) }
    }

    /// Returns the place where a faulty array was read, if it was recorded elsewhere (at the error's place).
    pub fn read(&self) -> Option<&Place> {
        match self.origin.as_deref() {
            Some(Origin::Read(place)) => Some(place),
            _ => None,
        }
    }

    /// Returns the same error with advice.
    pub fn helped(mut self, help: impl Into<Box<str>>) -> ScriptError {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            let at = place.source.position(place.span.start);
            write!(f, "{}:{}:{}: ", place.source.name, at.line, at.column)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for ScriptError {}

/// Why an instruction or a builtin did not finish.
pub enum Stop {
    /// An error; `try` may catch it.
    Error(Box<ScriptError>),
    /// Something must be awaited. The machine awaits it and runs the same instruction again. SCRIPT-2: nothing may have
    /// been changed or printed before a `Need` is returned.
    Need(Need),
    /// `exit(status)`: the script ends.
    Exit(i32),
    /// An interrupt from outside: guarded cleanup runs, then the script ends.
    Interrupted,
}

/// Something that an instruction waits for.
pub enum Need {
    /// The host values of these arrays. They are stored in the arrays ([`Lazy::host`]), where the second run finds
    /// them.
    Host(Vec<Arc<Lazy>>),
    /// These arrays, computed on their device, so that their faults are known. The second run gets `true` from
    /// `Env::take_awaited`.
    Materialised(Vec<Arc<Lazy>>),
    /// A value; the second run gets it from `Env::take_awaited`.
    Future(BoxFuture<'static, Result<Value, ScriptError>>),
    /// Other tasks run, then the script goes on.
    Yield,
}

/// The result of a step of a script.
pub type Flow<T> = Result<T, Stop>;

impl From<ScriptError> for Stop {
    fn from(error: ScriptError) -> Stop {
        Stop::Error(Box::new(error))
    }
}

/// Octave's message for arrays that no memory holds.
const OUT_OF_MEMORY: &str = "out of memory or dimension too large for Octave's index type";
/// Advice for arrays with more dimensions than the runtime's arrays can have.
const FEW_ELEMENTS: &str = "an array of few elements, which stays in the script's own memory, may have more";

/// Advice for functions that have no derivative.
const CONSTANT: &str = "extractdata (x) gives the values of a dlarray as constants";

impl From<tidemill::Error> for ScriptError {
    fn from(error: tidemill::Error) -> ScriptError {
        let words = match error.op() {
            Some(BEYOND) => format!("{SUBSCRIPTS}: {}", error.message()),
            Some(TRUTH) | None => error.message().to_string(),
            Some(op) => format!("{op}: {}", error.message()),
        };
        let identifier = match error.kind() {
            tidemill::ErrorKind::Index => "Octave:index-out-of-bounds",
            tidemill::ErrorKind::Domain => match error.op() {
                Some(BEYOND) => "Octave:index-out-of-bounds",
                Some(SUBSCRIPTS) => "Octave:invalid-index",
                Some(TRUTH) => "",
                _ => "Tidemill:runtime",
            },
            tidemill::ErrorKind::Shape => "Octave:nonconformant-args",
            tidemill::ErrorKind::NoDerivative => "Tidemill:no-derivative",
            tidemill::ErrorKind::OutOfMemory | tidemill::ErrorKind::TooLarge => "Octave:bad-alloc",
            _ => "Tidemill:runtime",
        };
        let (message, help) = match error.kind() {
            tidemill::ErrorKind::TooLarge => (OUT_OF_MEMORY.into(), Some(words)),
            tidemill::ErrorKind::Rank => (words, Some(FEW_ELEMENTS.into())),
            tidemill::ErrorKind::NoDerivative => {
                let words = words.split(". Call stop_gradient()").next().unwrap_or_default();
                (words.into(), Some(CONSTANT.into()))
            }
            _ => (words, None),
        };
        ScriptError {
            help: help.map(Into::into),
            origin: error.mark().map(|mark| Box::new(Origin::Recorded(mark))),
            ..ScriptError::with_id(identifier, message)
        }
    }
}

impl From<tidemill::Error> for Stop {
    fn from(error: tidemill::Error) -> Stop {
        ScriptError::from(error).into()
    }
}

/// A failed step: `fail!("message {}", x)` is `Err(Stop)`, for use with `return`.
macro_rules! fail {
    ($($message:tt)*) => { Err($crate::error::Stop::from($crate::error::ScriptError::new(format!($($message)*)))) };
}
/// A failed step with an identifier: `fail_id!("Octave:index-out-of-bounds", "message {}", x)`.
macro_rules! fail_id {
    ($id:expr, $($message:tt)*) => { Err($crate::error::Stop::from($crate::error::ScriptError::with_id($id, format!($($message)*)))) };
}
pub(crate) use fail;
pub(crate) use fail_id;
