//! Source texts, and places in them: files, byte ranges, lines and columns.
//!
//! Must hold: a [`Span`] is a byte range of one source's text; positions are computed only when they are shown.

use rustc_hash::FxHashMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The name of a text that `eval` runs.
pub const EVALUATED: &str = "eval";
/// The name of a text that was typed at a prompt.
pub const TYPED: &str = "repl";
/// The name of a text that runs at a session's end.
pub const SESSION: &str = "session";

/// The origin of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A file; the source's name is its path.
    File,
    /// Standard input, or a text that a program holds: a script without a file.
    Text,
    /// A text that was given to a running machine: evaluated, typed, or run at a session's end.
    Given,
    /// The library of functions that are written in the language.
    Library,
}

/// A text and its name.
#[derive(Debug)]
pub struct Source {
    /// How messages name it: a path as it was given, `-` for standard input, [`EVALUATED`], [`TYPED`] or [`SESSION`].
    pub name: String,
    /// The origin. It is not told by the name, as a file may have any name.
    pub origin: Origin,
    /// The text, as UTF-8; bytes that were not are replaced.
    pub text: String,
    /// For a text that was evaluated in a file: that file, whose functions the text can call.
    within: Option<Arc<Source>>,
    /// The files of the folder `private` beside this file, by the names of their functions; read once.
    private: OnceLock<FxHashMap<String, PathBuf>>,
}

impl Source {
    /// Makes a script without a file, under this name.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Arc<Source> {
        Source::of(Origin::Text, name, text)
    }

    /// Makes the source of a file. A byte order mark at its beginning is removed.
    pub fn file(path: &Path, text: impl Into<String>) -> Arc<Source> {
        let mut text = text.into();
        if text.starts_with('\u{feff}') {
            text.remove(0);
        }
        Source::of(Origin::File, path.display().to_string(), text)
    }

    /// Makes a text that was given to a running machine: [`EVALUATED`], [`TYPED`] or [`SESSION`].
    pub fn given(name: &str, text: impl Into<String>) -> Arc<Source> {
        Source::of(Origin::Given, name, text)
    }

    /// Makes a text that is evaluated in a file.
    pub fn evaluated(text: impl Into<String>, within: Option<Arc<Source>>) -> Arc<Source> {
        let (name, origin, text, private) = (EVALUATED.into(), Origin::Given, text.into(), OnceLock::new());
        Arc::new(Source { name, origin, text, within, private })
    }

    /// Makes a text of this origin and name.
    pub fn of(origin: Origin, name: impl Into<String>, text: impl Into<String>) -> Arc<Source> {
        Arc::new(Source { name: name.into(), origin, text: text.into(), within: None, private: OnceLock::new() })
    }

    /// Returns the source whose functions this text can call: itself, or the file in which it was evaluated.
    pub fn home(self: &Arc<Source>) -> &Arc<Source> {
        self.within.as_ref().unwrap_or(self)
    }

    /// Whether the text was given to a running machine. The calls that an error lists leave such texts out.
    pub fn is_given(&self) -> bool {
        self.origin == Origin::Given
    }

    /// Whether this is the file at this path.
    pub fn is_file(&self, path: &Path) -> bool {
        self.origin == Origin::File && self.name == path.display().to_string()
    }

    /// Returns the absolute path of a file, and the name of any other source.
    pub fn full_path(&self) -> String {
        match std::path::absolute(&self.name) {
            Ok(path) if self.origin == Origin::File => path.display().to_string(),
            _ => self.name.clone(),
        }
    }

    /// Returns the file of a function in the folder `private` beside this file.
    pub fn private(&self, function: &str) -> Option<&Path> {
        self.private.get_or_init(|| self.private_files()).get(function).map(PathBuf::as_path)
    }

    fn private_files(&self) -> FxHashMap<String, PathBuf> {
        // The folder is read before the first function is called, since only a called function can change the folder.
        let Ok(path) = std::path::absolute(&self.name) else { return FxHashMap::default() };
        let is_file = self.origin == Origin::File;
        let Some(folder) = path.parent().filter(|_| is_file) else { return FxHashMap::default() };
        let is_private = folder.file_name().is_some_and(|name| name == "private");
        let folder = if is_private { folder.to_path_buf() } else { folder.join("private") };
        let Ok(entries) = std::fs::read_dir(folder) else { return FxHashMap::default() };
        let files = entries.flatten().map(|entry| entry.path());
        let functions = files.filter(|path| path.extension().is_some_and(|e| e == "m") && path.is_file());
        functions.filter_map(|path| Some((path.file_stem()?.to_str()?.to_owned(), path))).collect()
    }

    /// Returns the last character boundary of the text at or before `at`.
    pub fn floor_char_boundary(&self, at: usize) -> usize {
        (0..=at.min(self.text.len())).rev().find(|&at| self.text.is_char_boundary(at)).unwrap_or(0)
    }

    /// Returns the line and column of a byte offset, both counted from 1; columns count characters.
    pub fn position(&self, offset: u32) -> Position {
        let before = &self.text[..self.floor_char_boundary(offset as usize)];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.bytes().filter(|&b| b == b'\n').count() as u32 + 1;
        Position { line, column: before[line_start..].chars().count() as u32 + 1 }
    }
}

/// A byte range of a source.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The range `start..end`.
    pub fn new(start: usize, end: usize) -> Span {
        Span { start: start as u32, end: end as u32 }
    }

    /// The smallest span that holds both.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Returns the span as a range of bytes.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

/// A line and a column, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

/// A place in a source.
#[derive(Clone, Debug)]
pub struct Place {
    /// The source.
    pub source: Arc<Source>,
    /// The range.
    pub span: Span,
}
