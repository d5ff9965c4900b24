//! Counts the host memory of the large arrays of a script's run, and compares it with the run's limit.
//!
//! In: arrays that are made, grown and dropped. Out: an out-of-memory error at the statement that exceeds the limit.
//! Must hold:
//! - ACCOUNT-1: an array of [`COUNTED_BYTES_MIN`] bytes or more is counted from when a thread that runs a script makes
//!   it until it is dropped, on any thread. It is counted once, however many values share its elements.
//! - ACCOUNT-2: smaller arrays, and threads that run no script, cost one comparison and one addition. Their total is
//!   measured from time to time ([`Small`](super::small::Small)), less often the more of them there are.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tidemill::frontend::HostClaims;

/// Smaller arrays are not counted one by one: that would cost more than a small statement.
pub const COUNTED_BYTES_MIN: usize = 64 << 10;

/// The bytes that the arrays of one run take.
#[derive(Debug)]
pub struct Account {
    bytes: AtomicU64,
    most: u64,
    /// The bytes in small pieces, which are not counted one by one, at the last measurement.
    small: AtomicU64,
    /// Set when an array exceeded the limit, until a statement has failed for it.
    is_beyond: AtomicBool,
    /// The bytes that all scripts of the runtime take together, and those of the runtime itself.
    all: Arc<HostClaims>,
}

impl Account {
    /// Makes an account that counts nothing yet. `most` is the run's limit; the limit of all scripts together applies,
    /// too.
    pub(crate) fn new(most: Option<u64>, all: Arc<HostClaims>) -> Account {
        let most = most.unwrap_or(u64::MAX).min(all.bytes_max());
        Account { bytes: AtomicU64::new(0), most, small: AtomicU64::new(0), is_beyond: AtomicBool::new(false), all }
    }

    /// Whether this many bytes more would stay within the limits.
    pub fn holds(&self, more: usize) -> bool {
        let within = |bytes: u64, most: u64| bytes.saturating_add(more as u64) <= most;
        within(self.bytes().saturating_add(self.small.load(Ordering::Relaxed)), self.most)
            && within(self.all.bytes_held(), self.all.bytes_max())
    }

    /// Returns the bytes of the arrays that are counted now.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether an array exceeded a limit since the last call.
    #[inline]
    pub fn was_exceeded(&self) -> bool {
        self.is_beyond.load(Ordering::Relaxed) && self.is_beyond.swap(false, Ordering::Relaxed)
    }

    /// Sets the bytes that were found in small pieces. Returns whether that stays within the limits.
    pub fn found_small(&self, bytes: u64) -> bool {
        let before = self.small.swap(bytes, Ordering::Relaxed);
        self.all.claim(bytes);
        self.all.release(before);
        self.holds(0)
    }

    fn claim(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.all.claim(bytes as u64);
        if !self.holds(0) {
            self.is_beyond.store(true, Ordering::Relaxed);
        }
    }

    fn release(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
        self.all.release(bytes as u64);
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.all.release(*self.small.get_mut());
    }
}

thread_local! {
    /// The bytes of arrays that were made on this thread and not counted one by one.
    static MADE: Cell<u64> = const { Cell::new(0) };
    /// The account of the script that this thread is running.
    static CURRENT: RefCell<Option<Arc<Account>>> = const { RefCell::new(None) };
}

/// Runs a part of a script, whose arrays are counted on this account.
pub fn counted_on<T>(account: &Arc<Account>, run: impl FnOnce() -> T) -> T {
    struct Outer(Option<Arc<Account>>);
    impl Drop for Outer {
        fn drop(&mut self) {
            let outer = self.0.take();
            let _ = CURRENT.try_with(|current| current.replace(outer));
        }
    }
    let _outer = Outer(CURRENT.with(|current| current.replace(Some(account.clone()))));
    run()
}

/// Returns the bytes of small arrays that this thread has made so far.
pub fn made_small() -> u64 {
    MADE.with(Cell::get)
}

/// The bytes that one array counts on an account. Dropping it subtracts them.
#[derive(Debug, Default)]
pub struct Charge(Option<Box<Charged>>);

#[derive(Debug)]
struct Charged {
    account: Arc<Account>,
    bytes: usize,
}

impl Charge {
    /// Makes the charge of an array of this many bytes, on the account of the script that this thread runs.
    #[inline]
    pub fn of(bytes: usize) -> Charge {
        if bytes < COUNTED_BYTES_MIN {
            MADE.with(|made| made.set(made.get().wrapping_add(bytes as u64 + 64)));
            return Charge(None);
        }
        Charge::of_many(bytes)
    }

    #[cold]
    fn of_many(bytes: usize) -> Charge {
        let account = CURRENT.try_with(|current| current.borrow().clone()).ok().flatten();
        Charge(account.map(|account| {
            account.claim(bytes);
            Box::new(Charged { account, bytes })
        }))
    }

    /// Changes the array's bytes.
    #[inline]
    pub fn update(&mut self, bytes: usize) {
        if bytes >= COUNTED_BYTES_MIN {
            self.update_many(bytes);
        }
    }

    #[cold]
    fn update_many(&mut self, bytes: usize) {
        match &mut self.0 {
            Some(charged) if bytes > charged.bytes => {
                charged.account.claim(bytes - charged.bytes);
                charged.bytes = bytes;
            }
            Some(_) => {}
            None => *self = Charge::of_many(bytes),
        }
    }
}

impl Clone for Charge {
    fn clone(&self) -> Charge {
        let again = |charged: &Charged| {
            charged.account.claim(charged.bytes);
            Box::new(Charged { account: charged.account.clone(), bytes: charged.bytes })
        };
        Charge(self.0.as_deref().map(again))
    }
}

impl Drop for Charged {
    fn drop(&mut self) {
        self.account.release(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Data, Dims, Tensor};
    use tidemill::testing;

    fn bytes(n: usize) -> Arc<Tensor> {
        Arc::new(Tensor::new(Dims::new(&[n, 1]), Data::U8(vec![0; n])))
    }

    #[test]
    fn arrays_count_from_when_they_are_made_until_nobody_holds_them() {
        let all = testing::host_claims(1 << 20);
        let account = Arc::new(Account::new(None, all.clone()));
        let n = COUNTED_BYTES_MIN;
        let held = counted_on(&account, || {
            let small = bytes(n - 1);
            assert_eq!(account.bytes(), 0);
            let mut first = bytes(n);
            assert_eq!((account.bytes(), all.bytes_held()), (n as u64, n as u64));
            let shared = Arc::new(first.seen_as(Dims::new(&[1, n])));
            assert_eq!(account.bytes(), n as u64, "it reads the same elements");
            Arc::make_mut(&mut first).data.recount();
            assert_eq!(account.bytes(), 2 * n as u64, "it was copied");
            drop((small, first));
            shared
        });
        assert_eq!(account.bytes(), n as u64);
        let elsewhere = std::thread::spawn(move || drop(held));
        elsewhere.join().unwrap();
        assert_eq!((account.bytes(), all.bytes_held()), (0, 0));
        drop(bytes(n));
        assert!(!account.was_exceeded() && account.bytes() == 0, "this thread runs no script any more");
    }

    #[test]
    fn what_goes_beyond_a_limit_is_told_once() {
        let all = testing::host_claims(1 << 20);
        let account = Arc::new(Account::new(Some(200_000), all.clone()));
        counted_on(&account, || {
            let first = bytes(150_000);
            assert!(account.holds(50_000) && !account.holds(50_001));
            let second = bytes(100_000);
            assert!(account.was_exceeded() && !account.was_exceeded());
            drop((first, second));
            assert!(account.holds(200_000));
        });
        let other = Arc::new(Account::new(None, all));
        let _most = counted_on(&other, || bytes(1_000_000));
        assert!(!account.holds(100_000), "all scripts together have a limit, too");
    }

    #[test]
    fn what_grows_in_place_counts_what_it_takes() {
        let account = Arc::new(Account::new(None, testing::host_claims(1 << 20)));
        counted_on(&account, || {
            let mut tensor = Tensor::new(Dims::new(&[1, 10]), Data::U8(vec![0; 10]));
            if let Data::U8(v) = &mut *tensor.data {
                v.resize(100_000, 0);
            }
            tensor.data.recount();
            assert_eq!(account.bytes(), 100_000);
        });
        assert_eq!(account.bytes(), 0);
    }
}
