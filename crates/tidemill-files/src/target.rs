//! A file that is being written: it has no name until it is whole.

use crate::error::io;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use tidemill::Result;

/// Bytes that are written at a time.
const BUFFER_BYTES: usize = 1 << 20;

/// A file beside the one that is to be, which it replaces in the end. It is removed if that does not happen.
pub(crate) struct Target {
    file: BufWriter<NamedTempFile>,
    path: PathBuf,
}

impl Target {
    pub fn create(path: &Path) -> Result<Target> {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix(".tidemill-");
        // What the program's mask leaves of it, as for any other new file.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let file = builder.tempfile_in(folder).map_err(|cause| io(path, "a file can't be made there", &cause))?;
        Ok(Target { file: BufWriter::with_capacity(BUFFER_BYTES, file), path: path.to_owned() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file its name.
    pub fn finish(mut self) -> Result<()> {
        let fail = |cause: &std::io::Error| io(&self.path, "it can't be written", cause);
        self.file.flush().map_err(|cause| fail(&cause))?;
        let file = self.file.into_inner().map_err(|error| fail(error.error()))?;
        file.persist(&self.path).map_err(|error| fail(&error.error))?;
        Ok(())
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Target {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.file.seek(to)
    }
}
