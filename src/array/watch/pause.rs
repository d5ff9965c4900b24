//! Which watches note nothing of what a thread records, for a while.

use super::log::Log;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

thread_local! {
    /// The watches that note nothing of what this thread records.
    static PAUSED: RefCell<Vec<Paused>> = const { RefCell::new(Vec::new()) };
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Paused {
    /// The watch with this number.
    Only(u64),
    /// All watches with numbers below this one.
    Below(u64),
}

/// While it lives, some watches note nothing of what this thread records.
pub(in crate::array) struct Pause(());

/// The number of the next watch of the process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The number of a watch that begins now.
pub(super) fn next_number() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Pause {
    /// Pauses one watch on this thread.
    pub(super) fn only(log: &Log) -> Pause {
        Pause::begin(Paused::Only(log.id))
    }

    /// Pauses all watches that exist now on this thread.
    pub fn all() -> Pause {
        Pause::begin(Paused::Below(NEXT.load(Ordering::Relaxed)))
    }

    fn begin(paused: Paused) -> Pause {
        PAUSED.with_borrow_mut(|all| all.push(paused));
        Pause(())
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        // The guards of a thread end in the reverse order of their beginnings.
        PAUSED.with_borrow_mut(|all| _ = all.pop());
    }
}

/// Whether this thread records nothing that the watch with this number notes.
pub(super) fn is_paused(id: u64) -> bool {
    PAUSED.with_borrow(|all| {
        all.iter().any(|paused| match *paused {
            Paused::Only(only) => only == id,
            Paused::Below(next) => id < next,
        })
    })
}
