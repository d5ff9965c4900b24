//! The order in which arrays of the runtime are made. With it, an instruction that runs again finds the arrays that it
//! made before.
//!
//! An instruction that records an array and then needs its values would record another array when it runs again, need
//! that one's values, and so on for ever. Therefore the machine's driver keeps the values of such an array by its
//! number in the order of the arrays that the instruction makes. Nothing that the instruction can see has changed
//! between the two runs, so the array with this number is the same one again.
//!
//! In: a call of [`next`] for every array that is made, and known values from the driver. Out: numbers, and the known
//! values of the array that is just being made. Must hold: MADE-1: known values are forgotten before anything else runs
//! on the thread.

use super::Tensor;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The knowledge about an array that was made before.
#[derive(Clone, Debug)]
pub enum Known {
    /// Its values.
    Host(Arc<Tensor>),
    /// It carries no fault.
    Checked,
}

/// Each thread has a range of 2^`NUMBERS_BITS` numbers of its own.
const NUMBERS_BITS: u32 = 40;

fn first_number() -> u64 {
    static THREADS: AtomicU64 = AtomicU64::new(0);
    THREADS.fetch_add(1, Ordering::Relaxed) << NUMBERS_BITS
}

thread_local! {
    static NEXT: Cell<u64> = Cell::new(first_number());
    static ANY_KNOWN: Cell<bool> = const { Cell::new(false) };
    static KNOWN: RefCell<Vec<(u64, Known)>> = const { RefCell::new(Vec::new()) };
}

/// Returns the number of the next array that is made on this thread. The numbers of one thread rise one by one, and
/// those of other threads lie in other ranges.
pub fn upcoming() -> u64 {
    NEXT.get()
}

/// Gives an array its number, and returns the knowledge about it.
pub fn next() -> (u64, Option<Known>) {
    let number = NEXT.get();
    NEXT.set(number + 1);
    if !ANY_KNOWN.get() {
        return (number, None);
    }
    (number, KNOWN.with_borrow(|known| known.iter().find(|k| k.0 == number).map(|k| k.1.clone())))
}

/// Runs `work` with knowledge about the arrays that it will make, by their numbers counted from its beginning.
pub fn with_known<T>(known: &[(u64, Known)], work: impl FnOnce() -> T) -> T {
    /// Forgets the knowledge, even if `work` panics (MADE-1).
    struct Forget;
    impl Drop for Forget {
        fn drop(&mut self) {
            ANY_KNOWN.set(false);
            KNOWN.with_borrow_mut(Vec::clear);
        }
    }
    if known.is_empty() {
        return work();
    }
    let begin = upcoming();
    KNOWN.with_borrow_mut(|all| all.extend(known.iter().map(|(place, what)| (begin + place, what.clone()))));
    ANY_KNOWN.set(true);
    let _forget = Forget;
    work()
}
