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
    functions: Mutex<VecDeque<Arc<Function>>>,
    any: AtomicBool,
}

impl Due {
    /// Whether there are some.
    pub fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// All of them, in the order in which their objects ended.
    pub fn take(&self) -> VecDeque<Arc<Function>> {
        let mut functions = self.functions.lock();
        self.any.store(false, Ordering::Relaxed);
        std::mem::take(&mut functions)
    }
}

/// An object of `onCleanup`, whose values share it.
#[derive(Debug)]
pub struct Cleanup {
    /// What it calls at its end.
    pub function: Arc<Function>,
    due: Arc<Due>,
    /// An interrupt waits for it.
    _guard: Guard,
}

impl Cleanup {
    /// An object of a machine.
    pub fn new(function: Arc<Function>, due: Arc<Due>, interrupt: &Arc<Interrupt>) -> Cleanup {
        Cleanup { function, due, _guard: Guard::of(interrupt) }
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        self.due.functions.lock().push_back(self.function.clone());
        self.due.any.store(true, Ordering::Relaxed);
    }
}
