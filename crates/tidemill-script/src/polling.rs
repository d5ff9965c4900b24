//! Polling runs by hand, on threads that are no executor's: what [`copies`](super::copies) and [`crowd`](super::crowd)
//! share. Wakers of `futures` either do nothing or wake a task; [`Flag`] tells a run that let others run from one that
//! waits, without a task.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;

/// Whether a run has asked to be polled again: where it did so while it was polled, it only let others run.
#[derive(Default)]
pub struct Flag(AtomicBool);

impl Flag {
    /// Nobody has asked yet.
    pub fn lower(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether somebody has.
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A future, in memory that another has left or in its own.
pub fn placed<F: Future>(room: &mut Option<Pin<Box<F>>>, future: F) -> Pin<Box<F>> {
    match room.take() {
        Some(mut room) => {
            room.as_mut().set(future);
            room
        }
        None => Box::pin(future),
    }
}
