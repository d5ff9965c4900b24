//! Which threads are the runtime's own: those of the ring, of its workers and of its devices; and what of the program's
//! code runs on them.
//!
//! In: each of them marks itself when it begins. Out: whether the current thread is one. Must hold: a name proves
//! nothing, since a program may name its threads as it likes; a panic of the program's code ends none of them.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static OWN: Cell<bool> = const { Cell::new(false) };
}

/// Marks the current thread as the runtime's own.
pub fn mark_own() {
    OWN.set(true);
}

/// Whether the current thread is the runtime's own: it must not wait for the ring, which may wait for it.
pub fn is_own() -> bool {
    OWN.get()
}

/// Runs what may be the program's own code on a thread of the runtime: a waker of its executor, the end of memory that it
/// lent. A panic in it is told to `tracing` and goes no further.
pub fn contain(what: &str, work: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
        let words = crate::error::panic_words(&*panic);
        tracing::error!(target: "tidemill", "{what} panicked: {words}");
    }
}
