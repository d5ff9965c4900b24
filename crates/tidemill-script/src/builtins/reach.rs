//! Whether functions touch the world around a script, and which calls a sandbox refuses.
//!
//! In: a mark in each row of the tables. Out: an error that names the function, if the script runs in a sandbox.
//! Must hold:
//! - REACH-1: a function that touches files, folders, the environment, the process or standard input is marked in its
//!   row. The tests below read the sources and demand the mark.
//! - REACH-2: in a sandbox, no path can be opened ([`Env::at`](crate::env::Env::at)), even if a mark was forgotten, and
//!   no function file is read.

use crate::env::Env;
use crate::error::{Flow, Stop, fail_id};
use crate::vm::Interp;

/// The part of the world that a function touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Only its arguments, the script and the runtime.
    Script,
    /// Files, folders, the environment, the process, or standard input: a sandbox refuses every call.
    Outside,
    /// Files and the like by some of its calls, which ask [`Env::check_outside`].
    Partly,
}

impl Env {
    /// Returns an error, if the script runs in a sandbox, for a call of this function that touches files and the like.
    ///
    /// # Errors
    /// The refusal, which names the function.
    pub fn check_outside(&self, name: &str) -> Flow<()> {
        if !self.options.sandbox {
            return Ok(());
        }
        fail_id!(
            "Tidemill:sandbox",
            "{name}: refused in a sandbox: the script may not touch files, the environment, processes or standard input"
        )
    }
}

impl Interp {
    /// Does the same as [`Env::check_outside`]. If the script called a library function, the error names that function.
    ///
    /// # Errors
    /// Those of [`Env::check_outside`].
    pub fn check_outside(&self, name: &str) -> Flow<()> {
        if !self.env.options.sandbox {
            return Ok(());
        }
        let (called, place) = self.called_of_library();
        self.env.check_outside(called.as_deref().unwrap_or(name)).map_err(|stop| match stop {
            Stop::Error(mut error) => {
                error.place = place;
                Stop::Error(error)
            }
            stop => stop,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtins::{Builtin, families};
    use std::path::{Path, PathBuf};

    /// Words in Rust code that reach the world around a script.
    const WORDS: &[&str] = &[
        "std::fs",
        "fs::",
        "File::",
        "std::process",
        "std::env::",
        "env::var",
        "std::net",
        "stdin()",
        "memory::read",
        "env.at(",
        "env.found(",
        "Command::",
        "OpenOptions",
        "is_file()",
        "is_dir()",
        "canonicalize(",
        "read_dir",
    ];

    /// Functions in files with such words that touch nothing themselves: functions on the text of paths, on streams
    /// that only `fopen` can open, on the program's own properties, and clocks.
    #[rustfmt::skip]
    const INSIDE: &[&str] = &[
        "fclose", "SEEK_SET", "SEEK_CUR", "SEEK_END", "stdin", "fullfile", "fileparts", "filesep", "pathsep",
        // Texts, numbers and pictures in memory.
        "rgb2gray", "im2double", "im2uint8",
        // These concern the script, its arguments, its own standard output, and the kind of machine.
        "exit", "quit", "argv", "program_name", "ispc", "isunix", "ismac", "isdeployed", "usejava", "OCTAVE_VERSION",
        "version", "nproc", "maxNumCompThreads", "fflush", "stdout", "stderr",
        "eval", "evalc", "evalin", "nargin", "nargout", "isargout", "inputname",
        // These read the time, including that of the process.
        "tic", "toc", "clock", "time", "now", "cputime", "pause",
    ];

    /// Returns the builtins that a file defines. A file defines a family if its text contains every name of the family.
    fn rows_of(file: &Path) -> Vec<&'static Builtin> {
        let text = std::fs::read_to_string(file).unwrap();
        let named = |b: &&Builtin| text.contains(&format!("\"{}\"", b.name));
        let own = families().iter().filter(|(_, rows)| !rows.is_empty() && rows.iter().all(|b| named(&b)));
        own.flat_map(|(_, rows)| rows.iter()).collect()
    }

    /// Returns the Rust files in a folder and in the folders below it.
    fn sources(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
        let own = files.into_iter().filter(|file| file.extension().is_some_and(|kind| kind == "rs"));
        own.chain(folders.iter().flat_map(|folder| sources(folder))).collect()
    }

    #[test]
    fn whatever_stands_where_the_world_is_reached_is_marked_in_its_row() {
        let mut reaching = Vec::new();
        for file in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/builtins")) {
            if file.ends_with("reach.rs") {
                continue;
            }
            let text = std::fs::read_to_string(&file).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            if WORDS.iter().any(|word| code.contains(word)) {
                reaching.push(file);
            }
        }
        assert!(reaching.iter().any(|file| file.ends_with("files/streams.rs")) && reaching.len() > 5, "{reaching:?}");
        for file in &reaching {
            // Pictures are a cargo feature; `random.rs` only reads the clock.
            let rows = rows_of(file);
            for row in rows.iter().filter(|row| row.reach == Reach::Script) {
                assert!(
                    INSIDE.contains(&row.name),
                    "'{}' stands in {}, which reaches the world around the script: mark its row",
                    row.name,
                    file.display()
                );
            }
        }
    }

    #[test]
    fn what_reads_streams_and_files_is_marked() {
        for name in ["fopen", "fgetl", "fread", "fscanf", "load", "save", "imread", "getenv", "cd", "source", "exist"] {
            if let Some(row) = crate::builtins::find(name) {
                assert_ne!(row.reach, Reach::Script, "{name}");
            }
        }
    }
}
