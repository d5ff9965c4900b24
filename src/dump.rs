//! Writes the results of planning passes as text files to the folder that `TIDEMILL_DUMP` names, for developers of
//! passes.
//!
//! In: a name and a function that makes the text. Out: a file. Must hold: without that variable, no text is made; an
//! error of writing is ignored.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The folder; `None` if the variable is not set.
pub fn folder() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOLDER.get_or_init(|| std::env::var_os("TIDEMILL_DUMP").map(PathBuf::from)).as_deref()
}

/// Writes the result of one stage for the structure with this hash.
pub fn write(hash: u64, stage: &str, text: impl FnOnce() -> String) {
    let Some(folder) = folder() else { return };
    let _ = std::fs::create_dir_all(folder);
    let _ = std::fs::write(folder.join(format!("{hash:016x}.{stage}")), text());
}
