//! Makes the exit of the process wait for threads that end after their runtime was dropped.
//!
//! Dropping a runtime does not wait for its threads. If the process exits right after that, these threads may still be
//! inside of a GPU's driver while the exit unloads it. So once a driver is loaded, the exit of the process waits for
//! them, for a bounded time.
//!
//! In: rings that are ending, threads that are left behind, compilations. Out: a pause at the exit.

#![cfg_attr(not(feature = "gpu"), allow(dead_code))]

use parking_lot::Mutex;
use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The longest time that the exit of the process waits.
const EXIT_WAIT_MAX: Duration = Duration::from_secs(2);
/// Most registrations of the exit handler: C guarantees room for 32 handlers, some of which belong to the program.
const REGISTERED_MAX: usize = 24;

static LEAVING: AtomicUsize = AtomicUsize::new(0);
/// The number of registrations.
static REGISTERED: AtomicUsize = AtomicUsize::new(0);
static LEFT: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

/// While a value of this type lives, the exit of the process waits.
#[derive(Debug)]
pub(crate) struct Leaving(());

impl Leaving {
    /// Makes the exit wait for this value. If a driver is loaded, registers the exit handler again, so that it runs
    /// before handlers that were registered so far.
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

/// Makes the exit wait for a thread that ends by itself.
pub(crate) fn leave(thread: JoinHandle<()>) {
    let mut left = LEFT.lock();
    left.retain(|thread| !thread.is_finished());
    left.push(thread);
}

/// Registers the exit handler. It has to be called once a driver is loaded, and again after the driver has compiled.
/// Handlers run in the reverse order of registration, and a driver's compiler registers its own cleanup at its first
/// use; ours has to run before that.
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
