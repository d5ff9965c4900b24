//! What of the world around a script its functions touch, and what a sandbox refuses.
//!
//! In: a mark in each row of the tables. Out: an error that names the function, where the script runs in a sandbox.
//! Must hold:
//! - REACH-1: a function that touches files, folders, the environment, the process or standard input is marked in its
//!   row. The tests below read the sources and ask for the mark.
//! - REACH-2: in a sandbox, no path leads anywhere ([`Env::at`](crate::env::Env::at)), whoever forgot a mark,
//!   and no function file is read.

use crate::env::Env;
use crate::error::{Flow, Stop, fail_id};
use crate::vm::Interp;

/// What of the world around the script a function touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Its arguments, the script and the runtime alone.
    Script,
    /// Files, folders, the environment, the process, or standard input: a sandbox refuses every call.
    Outside,
    /// The same by some of its calls, which ask [`Env::check_outside`].
    Partly,
}

impl Env {
    /// Refuses a call of this function that touches the world around the script, where it runs in a sandbox.
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
    /// As [`Env::check_outside`], in the name of the library's function that the script has called, if it is one.
    ///
    /// # Errors
    /// As [`Env::check_outside`].
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

    /// Words of Rust by which code reaches the world around a script.
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

    /// Functions in files that hold such words that touch nothing by themselves: text of paths, streams that `fopen`
    /// would have had to open, what the program tells of itself, clocks.
    #[rustfmt::skip]
    const INSIDE: &[&str] = &[
        "fclose", "SEEK_SET", "SEEK_CUR", "SEEK_END", "stdin", "fullfile", "fileparts", "filesep", "pathsep",
        // Texts, numbers and pictures in memory.
        "rgb2gray", "im2double", "im2uint8",
        // The script, its arguments, its own standard output, and what machine it runs on.
        "exit", "quit", "argv", "program_name", "ispc", "isunix", "ismac", "isdeployed", "usejava", "OCTAVE_VERSION",
        "version", "nproc", "maxNumCompThreads", "fflush", "stdout", "stderr",
        "eval", "evalc", "evalin", "nargin", "nargout", "isargout", "inputname",
        // The time, also that of the process.
        "tic", "toc", "clock", "time", "now", "cputime", "pause",
    ];

    /// The builtins that a file defines. A file defines a family if its text holds every name of the family.
    fn rows_of(file: &Path) -> Vec<&'static Builtin> {
        let text = std::fs::read_to_string(file).unwrap();
        let named = |b: &&Builtin| text.contains(&format!("\"{}\"", b.name));
        let own = families().iter().filter(|(_, rows)| !rows.is_empty() && rows.iter().all(|b| named(&b)));
        own.flat_map(|(_, rows)| rows.iter()).collect()
    }

    /// The files of Rust in a folder and in the folders below it.
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
            // Pictures are a feature; `random.rs` reads the clock alone.
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
