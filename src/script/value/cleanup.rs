//! What runs when nothing holds it any more: the function of an `onCleanup` object.
//!
//! In: the end of the last value that holds the object. Out: the function, in the machine's list of those that are due.

use super::Function;
use crate::script::interrupt::{Guard, Interrupt};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Functions whose objects have ended, for the machine to call.
#[derive(Debug, Default)]
pub struct Due {
    functions: Mutex<VecDeque<Ended>>,
    any: AtomicBool,
}

/// A function that is due. An interrupt waits for its end.
#[derive(Debug)]
pub(in crate::script) struct Ended {
    /// What to call.
    pub function: Arc<Function>,
    /// Kept until it has returned.
    pub guard: Guard,
}

impl Due {
    /// Whether there are some.
    pub fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// All of them, in the order in which their objects ended.
    pub(in crate::script) fn take(&self) -> VecDeque<Ended> {
        let mut functions = self.functions.lock();
        self.any.store(false, Ordering::Relaxed);
        std::mem::take(&mut functions)
    }

    /// Functions that were taken and not called, before any that have become due since.
    pub(in crate::script) fn give_back(&self, functions: VecDeque<Ended>) {
        if functions.is_empty() {
            return;
        }
        let mut all = self.functions.lock();
        for function in functions.into_iter().rev() {
            all.push_front(function);
        }
        self.any.store(true, Ordering::Relaxed);
    }
}

/// An object of `onCleanup`, whose values share it.
#[derive(Debug)]
pub struct Cleanup {
    /// What it calls at its end.
    pub function: Arc<Function>,
    due: Arc<Due>,
    /// An interrupt waits for it; there until its end.
    guard: Option<Guard>,
}

impl Cleanup {
    /// An object of a machine.
    pub fn new(function: Arc<Function>, due: Arc<Due>, interrupt: &Arc<Interrupt>) -> Cleanup {
        Cleanup { function, due, guard: Some(Guard::of(interrupt)) }
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        let Some(guard) = self.guard.take() else { return };
        self.due.functions.lock().push_back(Ended { function: self.function.clone(), guard });
        self.due.any.store(true, Ordering::Relaxed);
    }
}
