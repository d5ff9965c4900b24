//! Knows which threads belong to the runtime (those of the ring, its workers and its devices), runs the program's code
//! on them safely, marks threads of the program that record without being held, and counts the cores.
//!
//! In: each thread of the runtime marks itself when it begins. Out: whether the current thread is one. Must hold: a
//! thread's name is not used for this, since a program may name its threads as it likes; a panic of the program's code
//! does not end a thread of the runtime.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

thread_local! {
    static OWN: Cell<bool> = const { Cell::new(false) };
    static HELD: Cell<Held> = const { Cell::new(Held::Here) };
}

/// How a thread goes on that records more than there is room for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    /// As the runtime's settings say: an error, or the thread is blocked.
    Here,
    /// Within [`unheld`]: where there is no room, recording goes on, and a wait becomes due.
    Later,
    /// Within [`unheld`]: more was recorded than there is room for, and a wait is due.
    Due,
}

/// Marks the current thread as the runtime's own.
pub fn mark_own() {
    OWN.set(true);
}

/// Whether the current thread is the runtime's own: it must not wait for the ring, which may wait for it.
pub fn is_own() -> bool {
    OWN.get()
}

/// Whether the current thread runs within [`unheld`].
pub fn is_unheld() -> bool {
    HELD.get() != Held::Here
}

/// Called within [`unheld`] when more was recorded than there is room for: a wait is due.
pub fn ask_to_wait() {
    HELD.set(Held::Due);
}

/// Runs a part of a program that records step by step. The runtime refuses nothing that it records, and does not hold
/// its thread. Where it records more than there is room for, a wait is due instead ([`is_wait_due`]): the front end ends
/// the part soon, calls [`take_wait`], and awaits [`caught_up`](crate::frontend::caught_up) before the next one.
///
/// It concerns the current thread, until `work` returns or panics. Calls may be nested.
#[inline]
pub fn unheld<R>(work: impl FnOnce() -> R) -> R {
    struct Back(Held);
    impl Drop for Back {
        fn drop(&mut self) {
            HELD.set(self.0);
        }
    }
    let _back = Back(HELD.replace(Held::Later));
    work()
}

/// Whether the part that runs within [`unheld`] has recorded more than there was room for. It costs one read of a
/// variable of the thread, so that an interpreter may ask after every jump backwards.
#[inline]
pub fn is_wait_due() -> bool {
    HELD.get() == Held::Due
}

/// As [`is_wait_due`]; the caller waits, so that no wait is due afterwards.
#[inline]
pub fn take_wait() -> bool {
    let is_due = is_wait_due();
    if is_due {
        HELD.set(Held::Later);
    }
    is_due
}

/// Runs code that may belong to the program on a thread of the runtime: a waker of its executor, or the drop of memory
/// that it lent. A panic is caught and reported to `tracing` as the program's.
pub fn contain(what: &str, work: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
        let words = crate::error::panic_words(&*panic);
        tracing::error!(target: "tidemill", "the program's own code panicked, in {what}: {words}");
    }
}

/// The number of threads that the machine runs at the same time. The first call asks the system, which reads files;
/// later calls return the same number.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}
