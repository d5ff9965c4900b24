//! Bytes of host memory that front ends of a runtime hold beside what its devices hold: large arrays of scripts.
//!
//! In: claims and their ends. Out: whether more fits the host's budget. Must hold: a claim and its end are counted once
//! each, so that nothing of a script that has ended is left.

// Scripts are the front ends that claim; without them nobody does.
#![cfg_attr(not(feature = "script"), allow(dead_code))]

use std::sync::atomic::{AtomicU64, Ordering};

/// What front ends of one runtime hold together.
#[derive(Debug)]
pub(crate) struct HostClaims {
    bytes: AtomicU64,
    most: u64,
}

impl HostClaims {
    /// None yet, of at most so many bytes.
    pub(crate) fn new(most: u64) -> HostClaims {
        HostClaims { bytes: AtomicU64::new(0), most }
    }

    /// Bytes that are held now.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Bytes that may be held.
    pub(crate) fn most(&self) -> u64 {
        self.most
    }

    /// So many more are held.
    pub(crate) fn claim(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// So many are held no longer.
    pub(crate) fn release(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}
