//! An interrupt of running scripts, from outside of them: Ctrl-C, or whoever embeds them.
//!
//! In: [`Interrupt::raise`]. Out: machines that give up what they wait for, run what `unwind_protect_cleanup` guards,
//! and end. Must hold: every machine heeds each raise once; one that comes while cleanup runs ends that cleanup, too.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tokio::sync::Notify;

/// What interrupts the machines that share it ([`Options::interrupt`](super::env::Options::interrupt)).
#[derive(Debug, Default)]
pub struct Interrupt {
    /// How often it has been raised.
    raised: AtomicUsize,
    /// How many cleanups run, or follow what runs.
    guards: AtomicUsize,
    notify: Notify,
}

impl Interrupt {
    /// Interrupts what runs.
    pub fn raise(&self) {
        self.raised.fetch_add(1, Ordering::Relaxed);
        self.notify.notify_waiters();
    }

    /// How often it has been raised.
    pub fn raised(&self) -> usize {
        self.raised.load(Ordering::Relaxed)
    }

    /// Whether cleanup runs, or follows what runs: it is worth waiting for.
    pub fn is_guarded(&self) -> bool {
        self.guards.load(Ordering::Relaxed) > 0
    }

    /// Waits until it has been raised more often than that.
    pub(super) async fn beyond(&self, heeded: usize) {
        loop {
            let notified = self.notify.notified();
            futures::pin_mut!(notified);
            // Before the count is read: a raise in between is not missed.
            notified.as_mut().enable();
            if self.raised() != heeded {
                return;
            }
            notified.await;
        }
    }
}

/// What ends an instruction that takes long: an interrupt that its machine has not heeded, or an instant.
#[derive(Debug)]
pub struct Halt {
    interrupt: Arc<Interrupt>,
    /// How many raises the machine has heeded.
    pub(super) heeded: usize,
    /// When the machine is interrupted next: its deadline, then the end of what cleans up after it.
    pub(super) at: Option<Instant>,
    /// Whether the machine is ending for good: the end of its session does not interrupt it again.
    pub(super) is_stopping: bool,
}

impl Halt {
    pub(super) fn new(interrupt: Arc<Interrupt>, at: Option<Instant>) -> Halt {
        Halt { interrupt, heeded: 0, at, is_stopping: false }
    }

    /// The interrupt that it heeds.
    pub(super) fn interrupt(&self) -> &Arc<Interrupt> {
        &self.interrupt
    }

    /// Forgets the interrupts that came.
    pub(super) fn heed(&mut self) {
        self.heeded = self.interrupt.raised();
    }

    /// Whether its instant has come.
    pub fn is_late(&self) -> bool {
        self.at.is_some_and(|at| Instant::now() >= at)
    }

    /// Whether the machine is to be interrupted now.
    pub fn is_due(&self) -> bool {
        self.interrupt.raised() != self.heeded || self.is_late()
    }
}

/// Says that there is cleanup, while it lives.
#[derive(Debug)]
pub(super) struct Guard {
    interrupt: Arc<Interrupt>,
    /// Of cleanup that only its own machine can run: that machine's count, too.
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
