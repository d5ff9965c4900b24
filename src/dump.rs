//! What each stage of planning makes, as text in the folder that `TIDEMILL_DUMP` names: for those who write passes.
//!
//! In: a name and a way to make a text. Out: a file. Must hold: nothing is made where nobody asked; a failure to write
//! is nobody's concern.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The folder, where there is one.
pub fn folder() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOLDER.get_or_init(|| std::env::var_os("TIDEMILL_DUMP").map(PathBuf::from)).as_deref()
}

/// Writes a stage of something whose structure has this hash.
pub fn write(hash: u64, stage: &str, text: impl FnOnce() -> String) {
    let Some(folder) = folder() else { return };
    let _ = std::fs::create_dir_all(folder);
    let _ = std::fs::write(folder.join(format!("{hash:016x}.{stage}")), text());
}
