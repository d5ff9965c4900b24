//! How errors name files.

use std::path::Path;
use tidemill::{Error, ErrorKind};

/// An error about a file.
pub(crate) fn error(kind: ErrorKind, path: &Path, what: impl std::fmt::Display) -> Error {
    Error::new(kind, format!("{}: {what}", path.display()))
}

/// The file's contents break the rules of its format.
pub(crate) fn damaged(path: &Path, what: impl std::fmt::Display) -> Error {
    error(ErrorKind::Format, path, what)
}

/// An error of the system, or of unpacking: an end that comes too early, and what can't be unpacked, is the file's fault.
pub(crate) fn io(path: &Path, what: &str, cause: &std::io::Error) -> Error {
    let kind = match cause.kind() {
        std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::InvalidData => ErrorKind::Format,
        // The crate `flate2` says so of damaged data.
        std::io::ErrorKind::InvalidInput if cause.raw_os_error().is_none() => ErrorKind::Format,
        std::io::ErrorKind::OutOfMemory => ErrorKind::OutOfMemory,
        _ => ErrorKind::Io,
    };
    error(kind, path, format!("{what}: {cause}"))
}

/// An error of the runtime, while it had to do with this file.
pub(crate) fn named(path: &Path, cause: &Error) -> Error {
    error(cause.kind(), path, cause.message())
}
