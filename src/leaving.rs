//! What ends by itself behind a runtime, and the end of the process.
//!
//! Nobody waits for a runtime that was dropped. Where the process exits in the next moment, its threads may still be
//! within a GPU's driver, while the exit takes the driver apart under them. So once a driver is loaded, the exit of the
//! process waits for them, for a moment.
//!
//! In: rings that are ending, threads that are left behind, compilations. Out: a pause at the exit.

#![cfg_attr(not(feature = "gpu"), allow(dead_code))]

use parking_lot::Mutex;
use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long the exit of the process waits at most.
const EXIT_WAIT_MAX: Duration = Duration::from_secs(2);
/// How often the wait is registered at most: C promises room for 32 handlers, some of which are the program's.
const REGISTERED_MAX: usize = 24;

static LEAVING: AtomicUsize = AtomicUsize::new(0);
/// How often the wait is registered.
static REGISTERED: AtomicUsize = AtomicUsize::new(0);
static LEFT: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

/// Something that the exit of the process waits for, as long as this lives.
#[derive(Debug)]
pub(crate) struct Leaving(());

impl Leaving {
    /// From now on the exit waits, before all that was registered so far, if a driver is loaded.
    pub(crate) fn begin() -> Leaving {
        LEAVING.fetch_add(1, SeqCst);
        if REGISTERED.load(SeqCst) > 0 {
            wait_at_exit();
        }
        Leaving(())
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        LEAVING.fetch_sub(1, SeqCst);
    }
}

/// A thread that ends by itself.
pub(crate) fn leave(thread: JoinHandle<()>) {
    let mut left = LEFT.lock();
    left.retain(|thread| !thread.is_finished());
    left.push(thread);
}

/// Has the exit of the process wait; to be called once a driver is loaded, and again when it has compiled: handlers run
/// in the reverse order of their registration, and a driver's compiler registers the end of what it uses when it first
/// uses it. What is registered last waits before any of that ends.
pub(crate) fn wait_at_exit() {
    unsafe extern "C" {
        fn atexit(call: extern "C" fn()) -> c_int;
    }
    if REGISTERED.load(SeqCst) >= REGISTERED_MAX || REGISTERED.fetch_add(1, SeqCst) >= REGISTERED_MAX {
        return;
    }
    // SAFETY: the function has this signature in every C library; it is called on the thread that exits, unwinds
    // nothing, and what it reads lives as long as the process. Where it can't be registered, the exit does not wait.
    let _ = unsafe { atexit(wait) };
}

extern "C" fn wait() {
    let begin = Instant::now();
    let is_busy =
        || LEAVING.load(SeqCst) > 0 || LEFT.try_lock().is_none_or(|left| left.iter().any(|t| !t.is_finished()));
    while is_busy() && begin.elapsed() < EXIT_WAIT_MAX {
        std::thread::sleep(Duration::from_micros(500));
    }
}
