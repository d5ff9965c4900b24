//! Accounts for host memory that front ends hold, such as large arrays of scripts. It shares the host's budget with the
//! memory of the runtime's devices.
//!
//! In: claims and their ends; the bytes that the runtime itself holds on the host, which the ring reports when they
//! change. Out: whether more fits the budget. Must hold: a claim and its end are counted once each, so that a script
//! that has ended leaves no claim. CLAIMS-1: the ring tells residency of the claims before each event, so that the
//! runtime takes no memory that front ends hold; free memory of the runtime's pools does not count, and is returned to
//! the system when a claim needs it.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The bytes of host memory that the front ends of one runtime hold, beside those that the runtime holds itself. Both
/// share the host's budget ([`RuntimeBuilder::host_budget`](crate::RuntimeBuilder::host_budget)): the runtime takes no
/// memory that a front end has claimed, and returns free memory to the system when a claim needs it.
///
/// It only counts, and never refuses a claim: a front end compares [`HostClaims::bytes_held`] with
/// [`HostClaims::bytes_max`] before it takes more, and ends each claim that it made, once.
#[derive(Default)]
pub struct HostClaims {
    bytes: AtomicU64,
    /// Bytes that the runtime holds on the host: values, and copies of those on other devices.
    runtime: AtomicU64,
    /// Free bytes in its pools on the host.
    idle: AtomicU64,
    /// The ring was asked to return free memory, and has not reported since.
    is_asked: AtomicBool,
    most: u64,
    /// Asks the ring to return free memory.
    ask: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl HostClaims {
    /// No claims yet, with a budget of `most` bytes.
    pub(crate) fn new(most: u64) -> HostClaims {
        HostClaims { most, ..HostClaims::default() }
    }

    /// Sets the function that asks the ring to return free memory.
    pub(crate) fn asks(&self, ask: impl Fn() + Send + Sync + 'static) {
        let _ = self.ask.set(Box::new(ask));
    }

    /// Bytes that front ends hold now.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Bytes that front ends and the runtime hold now. The runtime's part is as of its last batch or plan.
    pub fn bytes_held(&self) -> u64 {
        self.bytes().saturating_add(self.runtime.load(Ordering::Relaxed))
    }

    /// The host's budget: bytes that front ends and the runtime may hold together.
    pub fn bytes_max(&self) -> u64 {
        self.most
    }

    /// Counts bytes that a front end holds from now on. It never blocks.
    pub fn claim(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let idle = self.idle.load(Ordering::Relaxed);
        if idle > 0
            && self.bytes_held().saturating_add(idle) > self.most
            && !self.is_asked.swap(true, Ordering::Relaxed)
            && let Some(ask) = self.ask.get()
        {
            ask();
        }
    }

    /// Ends a claim of this many bytes.
    pub fn release(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Sets the bytes that the runtime holds on the host now, and the free bytes in its pools there.
    pub(crate) fn set_runtime(&self, bytes: u64, idle: u64) {
        self.runtime.store(bytes, Ordering::Relaxed);
        self.idle.store(idle, Ordering::Relaxed);
        self.is_asked.store(false, Ordering::Relaxed);
    }
}

impl fmt::Debug for HostClaims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HostClaims { bytes, runtime, idle, most, .. } = self;
        let mut shown = f.debug_struct("HostClaims");
        shown.field("bytes", bytes).field("runtime", runtime).field("idle", idle).field("most", most);
        shown.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn the_ring_is_asked_once_for_free_memory_that_a_claim_needs() {
        let asked = Arc::new(AtomicU64::new(0));
        let (claims, count) = (HostClaims::new(100), asked.clone());
        claims.asks(move || _ = count.fetch_add(1, Ordering::Relaxed));
        claims.set_runtime(30, 40);
        claims.claim(30);
        assert_eq!((claims.bytes(), claims.bytes_held(), asked.load(Ordering::Relaxed)), (30, 60, 0));
        claims.claim(10);
        claims.claim(5);
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        claims.set_runtime(30, 0);
        claims.claim(10);
        claims.release(55);
        assert_eq!((claims.bytes(), claims.bytes_held(), asked.load(Ordering::Relaxed)), (0, 30, 1));
    }
}
