//! Limits the memory that upload writers hold. It counts against a budget until the last reference to it is dropped.
//!
//! In: requests for bytes. Out: grants, at once or when others are dropped. Must hold: GRANT-1: the bytes of all grants
//! are within the budget of each request when it is granted. GRANT-2: waiting requests are served in order, before all
//! later ones, and get an error if they can never be served. GRANT-3: a request that is dropped neither blocks others
//! nor keeps bytes.

use crate::error::{Error, ErrorKind, Result};
use crate::threads::contain;
use futures::channel::oneshot;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, ready};

/// The bytes of all grants that are alive, and the requests that wait.
#[derive(Debug, Default)]
pub struct Grants {
    bytes: AtomicU64,
    /// The number of waiting requests; changed with `queue` locked.
    waiting: AtomicUsize,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    next: u64,
    first_come: VecDeque<Waiter>,
    /// The error of all requests once no more grants are given.
    closed: Option<Error>,
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    /// The number of the session that asked.
    owner: u64,
    bytes: u64,
    budget: u64,
    answer: oneshot::Sender<Result<Grant>>,
}

impl Waiter {
    fn tell(self, answer: Result<Grant>) {
        contain("a waker of a future that awaits memory for an upload", || drop(self.answer.send(answer)));
    }
}

/// The right to use some bytes, given back when it is dropped.
#[derive(Debug)]
pub struct Grant {
    bytes: u64,
    of: Arc<Grants>,
}

/// The future of a grant.
#[derive(Debug)]
pub struct Granted {
    number: u64,
    of: Arc<Grants>,
    answer: oneshot::Receiver<Result<Grant>>,
}

impl Grants {
    /// Grants more bytes at once, if all grants together stay within `budget` and no other request waits.
    ///
    /// # Errors
    /// `ErrorKind::OutOfMemory` otherwise.
    pub fn grant(self: &Arc<Grants>, bytes: u64, budget: u64) -> Result<Grant> {
        if bytes <= budget && self.waiting.load(SeqCst) > 0 {
            let text = format!("{bytes} bytes for an upload have to wait, because earlier requests are served first");
            return Err(Error::new(ErrorKind::OutOfMemory, text));
        }
        self.take(bytes, budget)
    }

    fn take(self: &Arc<Grants>, bytes: u64, budget: u64) -> Result<Grant> {
        let add = |now: u64| now.checked_add(bytes).filter(|sum| *sum <= budget);
        match self.bytes.fetch_update(SeqCst, SeqCst, add) {
            Ok(_) => Ok(Grant { bytes, of: self.clone() }),
            Err(now) => {
                let text = format!(
                    "{bytes} bytes for an upload do not fit into the host's budget of {budget} bytes: upload writers, and \
                     arrays made by them, still hold {now} bytes"
                );
                Err(Error::new(ErrorKind::OutOfMemory, text))
            }
        }
    }

    /// Grants the bytes as soon as they are free, after earlier requests.
    pub fn when_free(self: &Arc<Grants>, owner: u64, bytes: u64, budget: u64) -> Granted {
        let (sender, answer) = oneshot::channel();
        let mut queue = self.queue.lock();
        let number = queue.next;
        queue.next += 1;
        match &queue.closed {
            Some(error) => drop(sender.send(Err(error.clone()))),
            None if bytes > budget => drop(sender.send(self.take(bytes, budget))),
            None => {
                queue.first_come.push_back(Waiter { number, owner, bytes, budget, answer: sender });
                // From here on, a grant that is dropped serves this request. Bytes that were given back before are seen
                // by `serve` below.
                self.waiting.fetch_add(1, SeqCst);
            }
        }
        drop(queue);
        self.serve();
        Granted { number, of: self.clone(), answer }
    }

    /// Ends the waiting requests of an owner with an error.
    pub fn refuse(&self, owner: u64, error: &Error) {
        self.end(|waiter| waiter.owner == owner, error);
    }

    /// Ends all waiting requests, and all later ones, with an error.
    pub fn close(&self, error: &Error) {
        self.queue.lock().closed.get_or_insert_with(|| error.clone());
        self.end(|_| true, error);
    }

    fn end(&self, which: impl Fn(&Waiter) -> bool, error: &Error) {
        let mut queue = self.queue.lock();
        let (ended, left): (VecDeque<Waiter>, _) = std::mem::take(&mut queue.first_come).into_iter().partition(which);
        queue.first_come = left;
        self.waiting.fetch_sub(ended.len(), SeqCst);
        drop(queue);
        ended.into_iter().for_each(|waiter| waiter.tell(Err(error.clone())));
    }

    /// Serves waiting requests from the free bytes.
    fn serve(self: &Arc<Grants>) {
        while self.waiting.load(SeqCst) > 0 {
            let mut queue = self.queue.lock();
            let Some(first) = queue.first_come.front() else { return };
            let Ok(grant) = self.take(first.bytes, first.budget) else { return };
            let first = queue.first_come.pop_front();
            self.waiting.fetch_sub(1, SeqCst);
            drop(queue);
            // The lock is released first: if the request was dropped, its grant is dropped here, which calls `serve`
            // again.
            if let Some(first) = first {
                first.tell(Ok(grant));
            }
        }
    }

    /// Removes the request with this number.
    fn leave(self: &Arc<Grants>, number: u64) {
        let mut queue = self.queue.lock();
        let at = queue.first_come.iter().position(|waiter| waiter.number == number);
        let gone = at.and_then(|at| queue.first_come.remove(at));
        self.waiting.fetch_sub(gone.iter().len(), SeqCst);
        drop(queue);
        if gone.is_some() {
            self.serve();
        }
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.of.bytes.fetch_sub(self.bytes, SeqCst);
        self.of.serve();
    }
}

impl Granted {
    /// Whether it still waits for bytes.
    pub fn must_wait(&self) -> bool {
        self.of.queue.lock().first_come.iter().any(|waiter| waiter.number == self.number)
    }
}

impl Future for Granted {
    type Output = Result<Grant>;

    fn poll(mut self: Pin<&mut Granted>, context: &mut Context<'_>) -> Poll<Result<Grant>> {
        let answer = ready!(Pin::new(&mut self.answer).poll(context));
        Poll::Ready(answer.unwrap_or_else(|_| Err(Error::new(ErrorKind::Shutdown, "the runtime is gone"))))
    }
}

impl Drop for Granted {
    fn drop(&mut self) {
        self.of.leave(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    const BUDGET: u64 = 100;

    #[test]
    fn waiting_requests_are_served_in_order_as_memory_comes_back() {
        let grants = Arc::new(Grants::default());
        let (a, b) = (grants.grant(60, BUDGET).unwrap(), grants.grant(40, BUDGET).unwrap());
        let mut large = grants.when_free(1, 80, BUDGET);
        let mut small = grants.when_free(1, 10, BUDGET);
        assert!((&mut large).now_or_never().is_none());
        drop(b);
        assert!((&mut small).now_or_never().is_none(), "what came later does not overtake");
        drop(a);
        let large = large.now_or_never().unwrap().unwrap();
        let small = small.now_or_never().unwrap().unwrap();
        assert!(grants.grant(11, BUDGET).is_err());
        drop((large, small));
        assert!(grants.grant(BUDGET, BUDGET).is_ok());
    }

    #[test]
    fn a_request_at_once_does_not_overtake_a_waiting_one() {
        let grants = Arc::new(Grants::default());
        let held = grants.grant(60, BUDGET).unwrap();
        let mut large = grants.when_free(1, 80, BUDGET);
        assert!(grants.grant(10, BUDGET).is_err(), "there is room, but not before the one that waits");
        drop(held);
        assert!((&mut large).now_or_never().unwrap().is_ok());
        assert!(grants.grant(10, BUDGET).is_ok());
    }

    #[test]
    fn a_dropped_request_keeps_no_bytes_and_blocks_no_other_request() {
        let grants = Arc::new(Grants::default());
        let all = grants.grant(BUDGET, BUDGET).unwrap();
        let first = grants.when_free(1, BUDGET, BUDGET);
        let mut second = grants.when_free(1, 50, BUDGET);
        drop(first);
        assert!((&mut second).now_or_never().is_none());
        let third = grants.when_free(1, 50, BUDGET);
        drop(all);
        // Served, but not polled.
        drop(third);
        let second = second.now_or_never().unwrap().unwrap();
        let half = grants.grant(50, BUDGET).unwrap();
        let front = grants.when_free(1, 51, BUDGET);
        let mut behind = grants.when_free(1, 50, BUDGET);
        drop(half);
        assert!((&mut behind).now_or_never().is_none());
        drop(front);
        assert!(behind.now_or_never().unwrap().is_ok());
        drop(second);
        assert!(grants.grant(BUDGET, BUDGET).is_ok());
        assert_eq!(grants.waiting.load(SeqCst), 0);
    }

    #[test]
    fn a_request_that_can_never_be_served_is_an_error() {
        let grants = Arc::new(Grants::default());
        let kind = |granted: Granted| granted.now_or_never().map(|result| result.unwrap_err().kind());
        assert_eq!(kind(grants.when_free(1, BUDGET + 1, BUDGET)), Some(ErrorKind::OutOfMemory));
        let held = grants.grant(BUDGET, BUDGET).unwrap();
        let (mut one, two) = (grants.when_free(1, 1, BUDGET), grants.when_free(2, 1, BUDGET));
        grants.refuse(2, &Error::new(ErrorKind::Cancelled, "a test"));
        assert_eq!(kind(two), Some(ErrorKind::Cancelled));
        assert!((&mut one).now_or_never().is_none());
        grants.close(&Error::new(ErrorKind::Shutdown, "a test"));
        assert_eq!(kind(one), Some(ErrorKind::Shutdown));
        drop(held);
        assert_eq!(kind(grants.when_free(1, 1, BUDGET)), Some(ErrorKind::Shutdown));
    }

    #[test]
    fn every_request_is_served_while_threads_take_and_give_back() {
        let grants = Arc::new(Grants::default());
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let grants = &grants;
                scope.spawn(move || {
                    for n in 0..500 {
                        let bytes = 1 + (thread * 31 + n * 17) % BUDGET;
                        let granted = grants.when_free(thread, bytes, BUDGET);
                        if n % 5 == 0 {
                            drop(granted);
                            continue;
                        }
                        drop(futures::executor::block_on(granted).unwrap());
                    }
                });
            }
        });
        assert!(grants.grant(BUDGET, BUDGET).is_ok());
    }
}
