//! Which threads are the runtime's own: those of the ring, of its workers and of its devices.
//!
//! In: each of them marks itself when it begins. Out: whether the current thread is one. Must hold: a name proves
//! nothing, since a program may name its threads as it likes.

use std::cell::Cell;

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
