//! Interrupts running scripts from outside: by Ctrl-C, or by a program that embeds them.
//!
//! In: [`Interrupt::raise`]. Out: machines that stop waiting, run the cleanup of `unwind_protect_cleanup`, and end.
//! Must hold: every machine reacts to each raise once; a raise during cleanup ends that cleanup, too.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tokio::sync::Notify;

/// Interrupts the machines that share it ([`Options::interrupt`](super::env::Options::interrupt)).
#[derive(Debug, Default)]
pub struct Interrupt {
    /// How often it has been raised.
    raised: AtomicUsize,
    /// How many cleanups are running, or will run after the code that they guard.
    guards: AtomicUsize,
    notify: Notify,
}

impl Interrupt {
    /// Interrupts the running machines.
    pub fn raise(&self) {
        self.raised.fetch_add(1, Ordering::Relaxed);
        self.notify.notify_waiters();
    }

    /// Returns how often it has been raised.
    pub fn raised(&self) -> usize {
        self.raised.load(Ordering::Relaxed)
    }

    /// Whether a cleanup is running or will run, so that it is worth waiting for the script's end.
    pub fn is_guarded(&self) -> bool {
        self.guards.load(Ordering::Relaxed) > 0
    }

    /// Waits until it has been raised more than `heeded` times.
    pub(super) async fn beyond(&self, heeded: usize) {
        loop {
            let notified = self.notify.notified();
            futures::pin_mut!(notified);
            // The wait is enabled before the count is read, so that a raise in between is not missed.
            notified.as_mut().enable();
            if self.raised() != heeded {
                return;
            }
            notified.await;
        }
    }
}

/// Ends an instruction that takes long: at an interrupt that its machine has not reacted to, or at an instant.
#[derive(Debug)]
pub struct Halt {
    interrupt: Arc<Interrupt>,
    /// How many raises the machine has reacted to.
    pub(super) heeded: usize,
    /// The instant at which the machine is interrupted next: its deadline, then the end of its cleanup's time.
    pub(super) at: Option<Instant>,
    /// Whether the machine is ending for good, so that closing its session does not interrupt it again.
    pub(super) is_stopping: bool,
}

impl Halt {
    pub(super) fn new(interrupt: Arc<Interrupt>, at: Option<Instant>) -> Halt {
        Halt { interrupt, heeded: 0, at, is_stopping: false }
    }

    /// Returns the interrupt that the machine reacts to.
    pub(super) fn interrupt(&self) -> &Arc<Interrupt> {
        &self.interrupt
    }

    /// Marks all raises so far as handled.
    pub(super) fn heed(&mut self) {
        self.heeded = self.interrupt.raised();
    }

    /// Whether the instant has passed.
    pub fn is_late(&self) -> bool {
        self.at.is_some_and(|at| Instant::now() >= at)
    }

    /// Whether the machine is to be interrupted now.
    pub fn is_due(&self) -> bool {
        self.interrupt.raised() != self.heeded || self.is_late()
    }
}

/// Counts a cleanup as running or pending, until it is dropped.
#[derive(Debug)]
pub(super) struct Guard {
    interrupt: Arc<Interrupt>,
    /// The count of the machine that runs this cleanup, if no other machine can run it.
    own: Option<Arc<AtomicUsize>>,
}

impl Guard {
    pub(super) fn of(interrupt: &Arc<Interrupt>, own: Option<&Arc<AtomicUsize>>) -> Guard {
        let guard = Guard { interrupt: interrupt.clone(), own: own.cloned() };
        guard.counts().for_each(|count| _ = count.fetch_add(1, Ordering::Relaxed));
        guard
    }

    fn counts(&self) -> impl Iterator<Item = &AtomicUsize> {
        std::iter::once(&self.interrupt.guards).chain(self.own.as_deref())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.counts().for_each(|count| _ = count.fetch_sub(1, Ordering::Relaxed));
    }
}
