//! The trace file: a JSON array that is complete after every write.
//!
//! In: runs of whole events. Out: one file, or several numbered ones when it grows beyond the limit. Must hold
//! (TIME-2): the file ends with `]` after each write. A write overwrites that tail with new events and a new tail in
//! one system call. If it fails, the file is truncated to its former state.

use crate::error::{Error, ErrorKind, Result};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Separates two events.
pub(super) const SEPARATOR: &[u8] = b",\n";
const HEAD: &[u8] = b"[";
const TAIL: &[u8] = b"\n]";

/// Limits on the size and number of files.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Bytes in a file beyond which the next one is begun.
    pub(super) file_bytes_max: u64,
    /// Files beyond which the recording stops.
    pub(super) files_max: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { file_bytes_max: 256 << 20, files_max: 8 }
    }
}

/// An open trace file. Closed when it is dropped.
#[derive(Debug)]
pub(super) struct TraceFile {
    path: PathBuf,
    limits: Limits,
    file: File,
    /// Where the next write begins: at the tail.
    tail_at: u64,
    /// Nothing was written yet. An older file of that name is unchanged.
    untouched: bool,
    /// The file did not exist before.
    created: bool,
    files: u32,
}

impl TraceFile {
    /// Opens a file for writing; one that exists is kept until the first event.
    pub(super) fn create(path: &Path, limits: Limits) -> Result<TraceFile> {
        let (file, created) = open(path)?;
        let mut this =
            TraceFile { path: path.to_owned(), limits, file, tail_at: 0, untouched: true, created, files: 1 };
        if created {
            // Even a run that is killed before its first event leaves a valid file.
            this.begin().map_err(|error| unwritable(path, &error))?;
        }
        Ok(this)
    }

    /// Appends events (whole ones, with separators between them but not around). One system call where the operating
    /// system takes it as a whole.
    pub(super) fn append(&mut self, events: &[u8]) -> Result<()> {
        if events.is_empty() {
            return Ok(());
        }
        self.try_append(events).map_err(|error| unwritable(&self.path, &error))
    }

    /// Whether the limit of this file is reached.
    pub(super) fn is_full(&self) -> bool {
        self.tail_at >= self.limits.file_bytes_max
    }

    /// Continues in the next file. Returns false if the limit on files is reached.
    pub(super) fn rotate(&mut self) -> Result<bool> {
        if self.files >= self.limits.files_max {
            return Ok(false);
        }
        let next = numbered(&self.path, self.files);
        let (file, _) = open(&next)?;
        self.file = file;
        self.files += 1;
        self.begin().map_err(|error| unwritable(&next, &error))?;
        Ok(true)
    }

    /// Makes the file an empty array.
    fn begin(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&[HEAD, TAIL].concat())?;
        self.tail_at = HEAD.len() as u64;
        Ok(())
    }

    fn try_append(&mut self, events: &[u8]) -> io::Result<()> {
        if self.untouched && !self.created {
            self.begin()?;
        }
        self.untouched = false;
        let before: &[u8] = if self.tail_at == HEAD.len() as u64 { b"\n" } else { SEPARATOR };
        let text = [before, events, TAIL].concat();
        self.file.seek(SeekFrom::Start(self.tail_at))?;
        if let Err(error) = self.file.write_all(&text) {
            self.restore_tail();
            return Err(error);
        }
        self.tail_at += (text.len() - TAIL.len()) as u64;
        Ok(())
    }

    /// Restores the last complete array after a failed write. The write's own part is truncated first, so there is
    /// space for the tail.
    fn restore_tail(&mut self) {
        let restored = self
            .file
            .set_len(self.tail_at)
            .and_then(|()| self.file.seek(SeekFrom::Start(self.tail_at)))
            .and_then(|_| self.file.write_all(TAIL));
        // Only the first error is reported.
        drop(restored);
    }
}

/// If nothing was recorded and the file is new, it is removed.
impl Drop for TraceFile {
    fn drop(&mut self) {
        if self.untouched && self.created {
            drop(std::fs::remove_file(&self.path));
        }
    }
}

/// Opens and locks a regular file; says whether it is new.
fn open(path: &Path) -> Result<(File, bool)> {
    let existing = OpenOptions::new().write(true).open(path);
    let (file, created) = match existing {
        Ok(file) => (file, false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let file = OpenOptions::new().write(true).create_new(true).open(path);
            (file.map_err(|error| unwritable(path, &error))?, true)
        }
        Err(error) => return Err(unwritable(path, &error)),
    };
    let metadata = file.metadata().map_err(|error| unwritable(path, &error))?;
    if !metadata.is_file() {
        return Err(unwritable(path, &io::Error::other("it is not a regular file")));
    }
    match file.try_lock() {
        Ok(()) => Ok((file, created)),
        Err(TryLockError::WouldBlock) => Err(unwritable(path, &io::Error::other("another runtime is writing to it"))),
        // A file system without locks.
        Err(TryLockError::Error(_)) => Ok((file, created)),
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot write the timeline to {}: {error}", path.display()))
}

/// `dir/name.json` becomes `dir/name.1.json`.
fn numbered(path: &Path, number: u32) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = match path.extension() {
        Some(extension) => format!("{stem}.{number}.{}", extension.to_string_lossy()),
        None => format!("{stem}.{number}"),
    };
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_a_json_array_after_every_write() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.json");
        let mut file = TraceFile::create(&path, Limits::default()).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "[\n]");
        file.append(br#"{"a":1}"#).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "[\n{\"a\":1}\n]");
        file.append(b"{\"b\":2},\n{\"c\":3}").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "[\n{\"a\":1},\n{\"b\":2},\n{\"c\":3}\n]");
    }

    #[test]
    fn an_older_file_survives_a_run_that_records_nothing_and_is_replaced_as_a_whole_otherwise() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.json");
        std::fs::write(&path, "a longer text than what will be written").unwrap();
        drop(TraceFile::create(&path, Limits::default()).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a longer text than what will be written");
        let mut file = TraceFile::create(&path, Limits::default()).unwrap();
        file.append(b"{}").unwrap();
        drop(file);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "[\n{}\n]");
    }

    #[test]
    fn a_new_file_into_which_nothing_was_recorded_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.json");
        drop(TraceFile::create(&path, Limits::default()).unwrap());
        assert!(!path.exists());
    }

    #[test]
    fn what_cannot_be_written_is_an_io_error_that_names_the_path() {
        let dir = tempfile::tempdir().unwrap();
        for path in [dir.path().join("missing/t.json"), dir.path().to_owned(), PathBuf::from("/dev/null")] {
            let error = TraceFile::create(&path, Limits::default()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io);
            assert!(error.message().contains(&path.display().to_string()), "{error}");
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn two_runtimes_cannot_write_one_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.json");
        let _first = TraceFile::create(&path, Limits::default()).unwrap();
        let error = TraceFile::create(&path, Limits::default()).unwrap_err();
        assert!(error.message().ends_with("another runtime is writing to it"), "{error}");
    }

    #[test]
    fn numbers_go_before_the_extension() {
        assert_eq!(numbered(Path::new("a/b.json"), 2), Path::new("a/b.2.json"));
        assert_eq!(numbered(Path::new("b"), 1), Path::new("b.1"));
    }
}
