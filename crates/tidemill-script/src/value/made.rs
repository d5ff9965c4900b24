//! The order in which arrays of the runtime are made, so that an instruction that runs again finds what it made before.
//!
//! An instruction that records an array and then needs its values would record another when it runs again, need that
//! one's values, and so on for ever. Therefore the machine's driver keeps what such an array turned out to be, by its
//! place in the order of what the instruction makes: nothing that the instruction can see has changed between the two
//! runs, so what it makes at that place is the same array again.
//!
//! In: [`next`] for every array that is made; from the driver, what is known. Out: numbers, and what is known of an
//! array that is just being made. Must hold: MADE-1: what is known is forgotten before anything else runs on the
//! thread.

use super::Tensor;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is known of an array that was made at some place in the order.
#[derive(Clone, Debug)]
pub enum Known {
    /// Its values.
    Host(Arc<Tensor>),
    /// That it carries no fault.
    Checked,
}

/// Threads have so many numbers of their own.
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

/// The number that the next array will have that is made on this thread. Of a thread they rise one by one, and those of
/// other threads lie elsewhere.
pub fn upcoming() -> u64 {
    NEXT.get()
}

/// Numbers an array, and tells what is known of it.
pub fn next() -> (u64, Option<Known>) {
    let number = NEXT.get();
    NEXT.set(number + 1);
    if !ANY_KNOWN.get() {
        return (number, None);
    }
    (number, KNOWN.with_borrow(|known| known.iter().find(|k| k.0 == number).map(|k| k.1.clone())))
}

/// Runs `work` with what is known of the arrays that it will make: their places, counted from its beginning.
pub fn with_known<T>(known: &[(u64, Known)], work: impl FnOnce() -> T) -> T {
    /// Forgets, also where `work` panics (MADE-1).
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
