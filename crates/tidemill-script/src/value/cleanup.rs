//! What runs when nothing holds it any more: the function of an `onCleanup` object.
//!
//! In: the end of the last value that holds the object. Out: the function, in the machine's list of those that are due.
//! Must hold: a function is called once, also where two machines hold its object: one that was left behind in a step
//! that does not end, and the one in its place ([`Due::take_over`]).

use super::Function;
use crate::interrupt::{Guard, Interrupt};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// Functions whose objects have ended, for the machine to call.
#[derive(Debug, Default)]
pub struct Due {
    functions: Mutex<VecDeque<Ended>>,
    any: AtomicBool,
    /// All that are still to be called, those of objects that have not ended among them, the oldest first.
    waiting: Mutex<Vec<Weak<Duty>>>,
    /// What values hold that another machine holds, too: nobody hears of their ends, they have to be looked for.
    shared: Mutex<Vec<Arc<Duty>>>,
}

/// A function that is to be called once.
#[derive(Debug)]
pub struct Duty {
    /// What to call.
    pub function: Arc<Function>,
    /// It is called, or another machine sees to it.
    is_taken: AtomicBool,
}

impl Duty {
    /// Whether it is the caller who has to call it: only the first who asks.
    pub(crate) fn take(&self) -> bool {
        !self.is_taken.swap(true, Ordering::Relaxed)
    }
}

/// A function that is due. An interrupt waits for its end.
#[derive(Debug)]
pub(crate) struct Ended {
    /// What to call.
    pub duty: Arc<Duty>,
    /// Kept until it has returned.
    pub guard: Guard,
}

impl Due {
    /// Whether there are some.
    pub fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// All of them, in the order in which their objects ended.
    pub(crate) fn take(&self) -> VecDeque<Ended> {
        let mut functions = self.functions.lock();
        self.any.store(false, Ordering::Relaxed);
        std::mem::take(&mut functions)
    }

    /// Functions that were taken and not called, before any that have become due since.
    pub(crate) fn give_back(&self, functions: VecDeque<Ended>) {
        if functions.is_empty() {
            return;
        }
        let mut all = self.functions.lock();
        for function in functions.into_iter().rev() {
            all.push_front(function);
        }
        self.any.store(true, Ordering::Relaxed);
    }

    /// A function that is now to be called some time.
    fn duty(&self, function: Arc<Function>) -> Arc<Duty> {
        let duty = Arc::new(Duty { function, is_taken: AtomicBool::new(false) });
        let mut waiting = self.waiting.lock();
        // Those that have been called go when the list would grow.
        if waiting.len() == waiting.capacity() {
            waiting.retain(|duty| duty.strong_count() > 0);
        }
        waiting.push(Arc::downgrade(&duty));
        duty
    }

    fn push(&self, ended: Ended) {
        self.functions.lock().push_back(ended);
        self.any.store(true, Ordering::Relaxed);
    }

    /// Takes over what a machine that was left behind has not called: those of objects that are `held` here wait on,
    /// the others are due, the newest object's first.
    pub(crate) fn take_over(&self, left: &Due, held: &[Arc<Duty>], interrupt: &Arc<Interrupt>) {
        let waiting = std::mem::take(&mut *left.waiting.lock());
        let own = waiting.iter().filter_map(Weak::upgrade).filter(|duty| duty.take());
        let mut all = std::mem::take(&mut *left.shared.lock());
        all.extend(own);
        *self.shared.lock() = all;
        self.end_shared(held, interrupt);
    }

    /// Whether there are objects whose ends have to be looked for.
    pub(crate) fn shares(&self) -> bool {
        !self.shared.lock().is_empty()
    }

    /// Those of them that are not `held` any more have ended.
    pub(crate) fn end_shared(&self, held: &[Arc<Duty>], interrupt: &Arc<Interrupt>) {
        let is_held = |duty: &Arc<Duty>| held.iter().any(|h| Arc::ptr_eq(h, duty));
        let (held, ended) = std::mem::take(&mut *self.shared.lock()).into_iter().partition(is_held);
        *self.shared.lock() = held;
        for duty in ended.into_iter().rev() {
            // The old one was taken from the machine that was left behind.
            let duty = self.duty(duty.function.clone());
            self.push(Ended { duty, guard: Guard::of(interrupt, None) });
        }
    }
}

/// An object of `onCleanup`, whose values share it.
#[derive(Debug)]
pub struct Cleanup {
    /// What it calls at its end.
    pub duty: Arc<Duty>,
    due: Arc<Due>,
    /// An interrupt waits for it; there until its end.
    guard: Option<Guard>,
}

impl Cleanup {
    /// An object of a machine.
    pub fn new(function: Arc<Function>, due: Arc<Due>, interrupt: &Arc<Interrupt>) -> Cleanup {
        Cleanup { duty: due.duty(function), due, guard: Some(Guard::of(interrupt, None)) }
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        let Some(guard) = self.guard.take() else { return };
        if !self.duty.is_taken.load(Ordering::Relaxed) {
            self.due.push(Ended { duty: self.duty.clone(), guard });
        }
    }
}
