//! Runs the function of an `onCleanup` object when nothing holds the object any more.
//!
//! In: the end of the last value that holds the object. Out: the function, in the machine's list of functions that are
//! due. Must hold: a function is called once, even if two machines hold its object: one that was left behind in a step
//! that does not end, and its replacement ([`Due::take_over`]).

use super::Function;
use crate::interrupt::{Guard, Interrupt};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// The functions whose objects have ended. The machine calls them.
#[derive(Debug, Default)]
pub struct Due {
    functions: Mutex<VecDeque<Ended>>,
    any: AtomicBool,
    /// All functions that are still to be called, including those whose objects have not ended, oldest first.
    waiting: Mutex<Vec<Weak<Duty>>>,
    /// Functions of objects that values of another machine hold, too. Their ends are not reported and have to be found.
    shared: Mutex<Vec<Arc<Duty>>>,
}

/// The function of one object, which is to be called once.
#[derive(Debug)]
pub struct Duty {
    /// The function.
    pub function: Arc<Function>,
    /// Whether it was called, or another machine takes care of it.
    is_taken: AtomicBool,
}

impl Duty {
    /// Claims the call. Returns `true` for the first caller only, who must call the function.
    pub(crate) fn take(&self) -> bool {
        !self.is_taken.swap(true, Ordering::Relaxed)
    }
}

/// A function that is due. An interrupt waits until it has returned.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The function.
    pub duty: Arc<Duty>,
    /// The guard that an interrupt waits for; kept until the function has returned.
    pub guard: Guard,
}

impl Due {
    /// Whether there are functions to call.
    pub fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Takes all functions to call, in the order in which their objects ended.
    pub(crate) fn take(&self) -> VecDeque<Ended> {
        let mut functions = self.functions.lock();
        self.any.store(false, Ordering::Relaxed);
        std::mem::take(&mut functions)
    }

    /// Returns functions that were taken and not called, in front of those that have become due since.
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

    /// Registers a function that will have to be called.
    fn duty(&self, function: Arc<Function>) -> Arc<Duty> {
        let duty = Arc::new(Duty { function, is_taken: AtomicBool::new(false) });
        let mut waiting = self.waiting.lock();
        // Before the list grows, functions that were called are removed.
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

    /// Takes over the functions that a machine which was left behind has not called. Those of objects that are `held`
    /// here wait on. The others are due, the newest object's first.
    pub(crate) fn take_over(&self, left: &Due, held: &[Arc<Duty>], interrupt: &Arc<Interrupt>) {
        let waiting = std::mem::take(&mut *left.waiting.lock());
        let own = waiting.iter().filter_map(Weak::upgrade).filter(|duty| duty.take());
        let mut all = std::mem::take(&mut *left.shared.lock());
        all.extend(own);
        *self.shared.lock() = all;
        self.end_shared(held, interrupt);
    }

    /// Whether there are objects whose ends have to be found.
    pub(crate) fn shares(&self) -> bool {
        !self.shared.lock().is_empty()
    }

    /// Marks the objects as ended that are not `held` any more.
    pub(crate) fn end_shared(&self, held: &[Arc<Duty>], interrupt: &Arc<Interrupt>) {
        let is_held = |duty: &Arc<Duty>| held.iter().any(|h| Arc::ptr_eq(h, duty));
        let (held, ended) = std::mem::take(&mut *self.shared.lock()).into_iter().partition(is_held);
        *self.shared.lock() = held;
        for duty in ended.into_iter().rev() {
            // The old duty was claimed from the machine that was left behind, so it gets a new one.
            let duty = self.duty(duty.function.clone());
            self.push(Ended { duty, guard: Guard::of(interrupt, None) });
        }
    }
}

/// An `onCleanup` object, which its copies share.
#[derive(Debug)]
pub struct Cleanup {
    /// The function that it calls at its end.
    pub duty: Arc<Duty>,
    due: Arc<Due>,
    /// The guard that an interrupt waits for, until the object's end.
    guard: Option<Guard>,
}

impl Cleanup {
    /// Makes an object of a machine.
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
