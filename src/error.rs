//! The one error type that users see.
//!
//! In: a kind, a message and, if known, the op, its source line and its device. Out: a cheap `Clone + Send + Sync`
//! value that a gather, a constructor or the binary returns. Must hold: what a user or a machine can cause is an
//! [`Error`]; a broken invariant is a panic that the runtime turns into `ErrorKind::Internal` of every gather it
//! touches.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The message of a caught panic.
pub(crate) fn panic_words(panic: &(dyn std::any::Any + Send)) -> String {
    let words = panic.downcast_ref::<&str>().map(|words| (*words).to_owned());
    words.or_else(|| panic.downcast_ref().cloned()).unwrap_or_else(|| "a panic without words".to_owned())
}

/// The kind of an error, on which a program can match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Shapes that do not fit each other, a length that does not fit a shape.
    Shape,
    /// More elements than an array may have.
    TooLarge,
    /// More dimensions than an array may have.
    Rank,
    /// A dtype that the op or the gather does not accept.
    DType,
    /// An index, slice or dimension outside of its array.
    Index,
    /// An argument that has no meaning for the op (a step of zero, a negative size).
    Argument,
    /// Data outside of the domain of an op, such as a matrix that cannot be factorised, or a check of the program that
    /// failed (`Array::ensure`).
    Domain,
    /// A derivative was asked for through an op that has none: its result is a truth value, a position, an integer.
    NoDerivative,
    /// Arrays of different runtimes, or of a session that has not shared them.
    Ownership,
    /// A device that does not exist or cannot be opened.
    Device,
    /// The device was lost while work was in flight.
    DeviceLost,
    /// A memory budget or the machine's memory is exhausted.
    OutOfMemory,
    /// More recorded work waits than the runtime was told to keep: await `Session::ready`, and record it again.
    Overloaded,
    /// The gather was cancelled, or its session was dropped.
    Cancelled,
    /// The runtime is shutting down or gone.
    Shutdown,
    /// A blocking call inside of an async context.
    WouldBlock,
    /// Reading or writing a file failed.
    Io,
    /// A file that was read, but whose contents break the rules of its format: it is damaged, cut short, or of another
    /// format.
    Format,
    /// The work needs something that this build or device lacks.
    Unsupported,
    /// A worker panicked or an invariant broke: a bug in Tidemill.
    Internal,
}

/// Where a program recorded an op: its source line, and the mark that its session had there (0 for none).
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// The line of Rust.
    pub location: &'static Location<'static>,
    /// `Session::mark`.
    pub mark: u64,
}

impl From<&'static Location<'static>> for Site {
    fn from(location: &'static Location<'static>) -> Site {
        Site { location, mark: 0 }
    }
}

/// An error that says what failed, where it was recorded and on which device.
#[derive(Clone)]
pub struct Error(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    op: Option<&'static str>,
    site: Option<Site>,
    device: Option<String>,
}

impl Error {
    /// An error of `kind` that says `message` in plain words.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error(Arc::new(Inner { kind, message: message.into(), op: None, site: None, device: None }))
    }

    /// The same error with the op's name, unless it has one.
    pub fn with_op(mut self, op: &'static str) -> Error {
        if self.0.op.is_none() {
            Arc::make_mut(&mut self.0).op = Some(op);
        }
        self
    }

    /// The same error with the source line that recorded the op, unless it has one.
    pub fn with_location(self, location: &'static Location<'static>) -> Error {
        self.with_site(location.into())
    }

    /// The same error with the place that recorded the op, unless it has one.
    pub(crate) fn with_site(mut self, site: Site) -> Error {
        if self.0.site.is_none() {
            Arc::make_mut(&mut self.0).site = Some(site);
        }
        self
    }

    /// The same error with the device's name, unless it has one.
    pub fn with_device(mut self, device: impl Into<String>) -> Error {
        if self.0.device.is_none() {
            Arc::make_mut(&mut self.0).device = Some(device.into());
        }
        self
    }

    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message, without op, place or device.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The op that failed, if the error belongs to one.
    pub fn op(&self) -> Option<&'static str> {
        self.0.op
    }

    /// The source line at which the op was recorded.
    pub fn location(&self) -> Option<&'static Location<'static>> {
        self.0.site.map(|site| site.location)
    }

    /// The mark that a front end set by `Session::mark` before it recorded the op: a place in its own program.
    pub fn mark(&self) -> Option<u64> {
        self.0.site.map(|site| site.mark).filter(|&mark| mark != 0)
    }

    /// The device on which it failed, if it had reached one.
    pub fn device(&self) -> Option<&str> {
        self.0.device.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(op) = self.0.op {
            write!(f, "{op}: ")?;
        }
        f.write_str(&self.0.message)?;
        if let Some(device) = &self.0.device {
            write!(f, " (on {device})")?;
        }
        // If the op has a mark, the front end names the place in its own program instead.
        if let Some(at) = self.location().filter(|_| self.mark().is_none()) {
            write!(f, " (recorded at {}:{}:{})", at.file(), at.line(), at.column())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({self})", self.0.kind)
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        Error::new(ErrorKind::Io, error.to_string())
    }
}
