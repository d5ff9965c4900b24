//! Which thread waits for a disk: never the caller's, in async code.

use crate::error::error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tidemill::{ErrorKind, Result, frontend};

/// Waits for a future of this crate on this thread, in a program without an executor.
///
/// ```no_run
/// # fn main() -> tidemill::Result<()> {
/// # let rt = tidemill::Runtime::builder().start_blocking()?;
/// # let s = rt.session("files").open();
/// let x = tidemill_files::wait(tidemill_files::npy::read(&s, "x.npy"))?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// `ErrorKind::WouldBlock` inside of an async context; else those of the future.
pub fn wait<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    frontend::may_block("waiting for a file")?;
    futures::executor::block_on(future)
}

/// Whether somebody still waits for the work of a thread.
#[derive(Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// # Errors
    /// `ErrorKind::Cancelled` where the future was dropped.
    pub fn check(&self, path: &Path) -> Result<()> {
        match self.0.load(Relaxed) {
            true => Err(error(ErrorKind::Cancelled, path, "nobody waits for it any more")),
            false => Ok(()),
        }
    }
}

/// Says stop when the future that holds it is dropped.
struct Guard(Stop);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.0.store(true, Relaxed);
    }
}

/// Runs work that waits for files, and for the runtime, on a thread that is made for that.
pub(crate) async fn off_thread<T: Send + 'static>(work: impl FnOnce(&Stop) -> Result<T> + Send + 'static) -> Result<T> {
    let stop = Stop::default();
    let _guard = Guard(stop.clone());
    blocking::unblock(move || work(&stop)).await
}
