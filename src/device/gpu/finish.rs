//! The end of a submission, as wgpu's callback tells it, and how to wait for it.
//!
//! No thread waits inside of wgpu. If such a wait times out while another thread's submission finishes the same one,
//! wgpu-core 30 panics on an assertion (`Device::maintain`), and the callbacks that were due are lost. A poll that does
//! not wait has no such assertion. So a waiting thread polls, checks a flag, and sleeps in between for a small part of
//! the time that it has waited.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::Thread;
use std::time::Duration;

/// The shortest and the longest sleep between two polls.
const REST: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(1));
/// A sleep lasts one part in this many of the time waited so far, within the limits of [`REST`], which bounds the added
/// delay.
const REST_PART: u32 = 32;

const FLYING: u8 = 0;
const DONE: u8 = 1;
const FORGOTTEN: u8 = 2;

/// The state of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It has not been seen to end.
    Flying,
    /// It has finished.
    Done,
    /// The callback was dropped without a call: a panic inside of wgpu, or a device that went down.
    Forgotten,
}

/// A submission's end.
#[derive(Debug, Default)]
pub(super) struct Finish {
    state: AtomicU8,
    waiter: Mutex<Option<Thread>>,
}

/// The callback's half.
pub(super) struct Signal(Arc<Finish>);

impl Finish {
    /// Signals the end of everything that was submitted to `queue` so far.
    pub(super) fn of(queue: &wgpu::Queue) -> Arc<Finish> {
        let finish = Arc::new(Finish::default());
        let signal = Signal(finish.clone());
        queue.on_submitted_work_done(move || signal.done());
        finish
    }

    /// The state.
    pub(super) fn state(&self) -> State {
        match self.state.load(Ordering::Acquire) {
            FLYING => State::Flying,
            DONE => State::Done,
            _ => State::Forgotten,
        }
    }

    /// Sleeps between two polls, after `waited`. Ends early if the callback comes.
    pub(super) fn rest(&self, waited: Duration) {
        *self.waiter.lock() = Some(std::thread::current());
        // The state is checked again after the waiter is registered, because a callback before that wakes no thread.
        if self.state() == State::Flying {
            std::thread::park_timeout((waited / REST_PART).clamp(REST.0, REST.1));
        }
    }

    fn set(&self, state: u8) {
        // Only the first call has an effect.
        let _ = self.state.compare_exchange(FLYING, state, Ordering::AcqRel, Ordering::Acquire);
        if let Some(waiter) = self.waiter.lock().take() {
            waiter.unpark();
        }
    }
}

impl Signal {
    fn done(self) {
        self.0.set(DONE);
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        self.0.set(FORGOTTEN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callback_that_is_dropped_is_not_taken_for_the_end() {
        let finish = Arc::new(Finish::default());
        assert_eq!(finish.state(), State::Flying);
        drop(Signal(finish.clone()));
        assert_eq!(finish.state(), State::Forgotten);
    }

    #[test]
    fn the_end_wakes_who_rests_and_stays() {
        let finish = Arc::new(Finish::default());
        let signal = Signal(finish.clone());
        let other = std::thread::spawn(move || signal.done());
        while finish.state() == State::Flying {
            finish.rest(Duration::from_secs(3600));
        }
        other.join().unwrap();
        assert_eq!(finish.state(), State::Done);
    }
}
