//! The two ends of a gather: a [`Promise`] that its future polls, and a [`Resolver`] that the table keeps.
//!
//! In: a result, once. Out: the same, to the task that polls the promise. A usual one-shot channel wakes at once; here
//! the result is put in place first, and the wakers are called later, each once ([`Wakes`]). So a task that awaits four
//! gathers of one region is woken once, when all four results are there. A channel would wake it for the first result,
//! while three are still missing.
//!
//! Must hold: PROMISE-1: a promise is resolved at the latest when its resolver is dropped, unless `forget` was called,
//! which requires that the promise is never polled again; PROMISE-2: the task that polled a promise last is woken after
//! it was resolved, at the latest when the [`Wakes`] that hold its waker are dropped.

use crate::contract::messages::scheduler::Delivered;
use crate::error::{Error, ErrorKind, Result};
use crate::threads::contain;
use futures::task::AtomicWaker;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// The future side of a gather. It yields its result once; polled again after that, it stays pending.
#[derive(Debug)]
pub struct Promise(Arc<Shared>);

/// The side that resolves.
#[derive(Debug)]
pub(super) struct Resolver(Option<Arc<Shared>>);

#[derive(Debug, Default)]
struct Shared {
    result: Mutex<Option<Result<Delivered>>>,
    waker: AtomicWaker,
}

/// How many of the latest wakers are compared with a new one.
const LOOK_BACK: usize = 8;

/// Wakers of resolved promises that are not called yet, usually one for each task.
#[derive(Default)]
pub(super) struct Wakes(SmallVec<[Waker; 4]>);

/// Both ends of a gather.
pub(super) fn promise() -> (Resolver, Promise) {
    let shared = Arc::new(Shared::default());
    (Resolver(Some(shared.clone())), Promise(shared))
}

impl Promise {
    /// Whether the result is there and was not taken yet.
    pub fn is_resolved(&self) -> bool {
        self.0.result.lock().is_some()
    }
}

impl Future for Promise {
    type Output = Result<Delivered>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Delivered>> {
        if let Some(result) = self.0.result.lock().take() {
            return Poll::Ready(result);
        }
        self.0.waker.register(cx.waker());
        // It may have been resolved before the waker was there.
        self.0.result.lock().take().map_or(Poll::Pending, Poll::Ready)
    }
}

impl Resolver {
    /// Stores the result. Adds the waker of the task that awaits it to `wakes`.
    pub fn resolve(mut self, result: Result<Delivered>, wakes: &mut Wakes) {
        if let Some(shared) = self.0.take() {
            shared.resolve(result, wakes);
        }
    }

    /// Drops the resolver without a result. The promise must not be polled again.
    pub fn forget(mut self) {
        self.0 = None;
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        if let Some(shared) = self.0.take() {
            shared.resolve(Err(Error::new(ErrorKind::Shutdown, "the runtime is gone")), &mut Wakes::default());
        }
    }
}

impl Shared {
    fn resolve(&self, result: Result<Delivered>, wakes: &mut Wakes) {
        *self.result.lock() = Some(result);
        if let Some(waker) = self.waker.take() {
            wakes.add(waker);
        }
    }
}

impl Wakes {
    /// Adds a waker, unless one of the last few wakes the same task. Results for one task usually come one after the
    /// other.
    fn add(&mut self, waker: Waker) {
        match self.0.iter().rev().take(LOOK_BACK).any(|other| other.will_wake(&waker)) {
            true => contain("the drop of a waker", || drop(waker)),
            false => self.0.push(waker),
        }
    }

    /// Calls all wakers. They are the program's code, so a panic in one is caught.
    pub fn call(&mut self) {
        for waker in self.0.drain(..) {
            contain("a waker of a gather's future", || waker.wake());
        }
    }
}

impl Drop for Wakes {
    fn drop(&mut self) {
        self.call();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use futures::task::{ArcWake, waker};
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl ArcWake for Counted {
        fn wake_by_ref(this: &Arc<Counted>) {
            this.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_task_that_awaits_several_promises_is_woken_once_and_finds_all_results() {
        let woken = Arc::new(Counted::default());
        let waker = waker(woken.clone());
        let mut cx = Context::from_waker(&waker);
        let (resolvers, mut promises): (Vec<_>, Vec<_>) = (0..4).map(|_| promise()).unzip();
        assert!(promises.iter_mut().all(|promise| promise.poll_unpin(&mut cx).is_pending()));
        let mut wakes = Wakes::default();
        resolvers.into_iter().for_each(|resolver| resolver.resolve(Ok(Delivered::Device), &mut wakes));
        assert_eq!(woken.0.load(Ordering::Relaxed), 0);
        drop(wakes);
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
        assert!(promises.iter().all(Promise::is_resolved));
        assert!(promises.iter_mut().all(|promise| promise.poll_unpin(&mut cx).is_ready()));
        assert!(!promises.iter().any(Promise::is_resolved));
    }

    #[test]
    fn a_promise_whose_resolver_is_dropped_fails_and_wakes() {
        let woken = Arc::new(Counted::default());
        let waker = waker(woken.clone());
        let (resolver, mut promise) = promise();
        assert!(promise.poll_unpin(&mut Context::from_waker(&waker)).is_pending());
        drop(resolver);
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
        assert_eq!(promise.now_or_never().unwrap().unwrap_err().kind(), ErrorKind::Shutdown);
    }
}
