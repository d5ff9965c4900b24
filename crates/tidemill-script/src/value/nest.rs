//! The variables that a function shares with the functions nested in it.
//!
//! In: a call of a function that contains nested functions. Out: a [`Nest`], which the call, the calls of its nested
//! functions and their handles hold. Must hold: NEST-1: every call of such a function has a nest of its own, and a
//! nested function sees the nest of the call from which it was reached. NEST-2: a nest ends with its last holder. Nests
//! that are held only by handles in their own variables are found by [`Nests`], at the latest when the machine ends.

use super::{Function, Value};
use crate::compile::Code;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::fmt;
use std::sync::{Arc, Weak};

/// The content of a shared variable.
#[derive(Clone, Debug, Default)]
pub enum Content {
    /// No value.
    #[default]
    Nothing,
    /// A value.
    Value(Value),
    /// The number of a global or persistent variable.
    Static(u32),
}

/// A variable that several functions share.
pub type Shared = Arc<Mutex<Content>>;

/// The shared variables of one call.
pub struct Nest {
    /// The function that was called.
    pub code: Arc<Code>,
    /// Its shared variables, in the order of [`Sharing::owned`](crate::compile::code::Sharing::owned).
    pub variables: Vec<Shared>,
    /// The nest of the function around this one.
    pub parent: Option<Arc<Nest>>,
}

/// Prints the function's name only, since a nest may hold itself.
impl fmt::Debug for Nest {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Nest").field("of", &self.code.name).finish_non_exhaustive()
    }
}

impl Nest {
    /// Returns this nest and those around it.
    pub fn chain(self: &Arc<Nest>) -> impl Iterator<Item = &Arc<Nest>> {
        std::iter::successors(Some(self), |nest| nest.parent.as_ref())
    }

    /// Returns the values of its variables.
    pub fn values(&self) -> Vec<Value> {
        let value = |shared: &Shared| match &*shared.lock() {
            Content::Value(value) => Some(value.clone()),
            _ => None,
        };
        self.variables.iter().filter_map(value).collect()
    }
}

/// The number of nests that are made before the first sweep for nests that hold themselves.
const SWEEP_AT_MIN: usize = 256;

/// The nests that a machine has made, in which those are found that only their own variables hold.
#[derive(Debug, Default)]
pub struct Nests {
    made: Vec<Weak<Nest>>,
    /// The number of nests at which the next sweep begins.
    sweep_at: usize,
}

impl Nests {
    /// Adds a nest. Sweeps if there are twice as many as were left after the last sweep.
    pub fn add(&mut self, nest: &Arc<Nest>) {
        if self.made.len() >= self.sweep_at.max(SWEEP_AT_MIN) {
            self.sweep();
            self.sweep_at = 2 * self.made.len();
        }
        self.made.push(Arc::downgrade(nest));
    }

    /// Returns how many nests are held by something.
    #[cfg(test)]
    pub fn living(&self) -> usize {
        self.made.iter().filter(|nest| nest.strong_count() > 0).count()
    }

    /// Returns the last nest that is held by something.
    #[cfg(test)]
    pub fn any(&self) -> Arc<Nest> {
        self.made.iter().rev().find_map(Weak::upgrade).expect("a nest that something holds")
    }

    /// Empties the nests that are held only by handles in their own variables.
    fn sweep(&mut self) {
        self.made.retain(|nest| nest.strong_count() > 0);
        let nests: Vec<Arc<Nest>> = self.made.iter().filter_map(Weak::upgrade).collect();
        let numbers: FxHashMap<*const Nest, usize> =
            nests.iter().enumerate().map(|(i, nest)| (Arc::as_ptr(nest), i)).collect();
        let held: Vec<Vec<usize>> = nests.iter().map(|nest| held_by(nest, &numbers)).collect();
        // The number of each nest's holders that are not variables of nests. The list above is one holder.
        let mut others: Vec<usize> = nests.iter().map(|nest| Arc::strong_count(nest) - 1).collect();
        held.iter().flatten().for_each(|&i| others[i] -= 1);
        let mut lives = vec![false; nests.len()];
        let mut open: Vec<usize> = (0..nests.len()).filter(|&i| others[i] > 0).collect();
        while let Some(i) = open.pop() {
            if !std::mem::replace(&mut lives[i], true) {
                open.extend(&held[i]);
            }
        }
        nests.iter().zip(lives).filter(|(_, lives)| !lives).for_each(|(nest, _)| empty(nest));
    }
}

impl Drop for Nests {
    fn drop(&mut self) {
        self.made.iter().filter_map(Weak::upgrade).for_each(|nest| empty(&nest));
    }
}

/// Takes the values out of a nest's variables.
fn empty(nest: &Arc<Nest>) {
    for variable in &nest.variables {
        // The value is dropped after the lock is released.
        let content = std::mem::take(&mut *variable.lock());
        drop(content);
    }
}

/// Returns the indices of the nests that a nest holds: the one around it, and those of handles that nothing else holds.
/// A nest appears as often as it is held.
fn held_by(nest: &Nest, numbers: &FxHashMap<*const Nest, usize>) -> Vec<usize> {
    let number = |nest: &Arc<Nest>| numbers.get(&Arc::as_ptr(nest)).copied();
    let mut held: Vec<usize> = nest.parent.iter().filter_map(number).collect();
    for variable in &nest.variables {
        if let Content::Value(value) = &*variable.lock() {
            each_handle(value, &mut |nest| held.extend(number(nest)));
        }
    }
    held
}

/// Calls `each` with the nests of the handles in a value. Containers that others hold, too, are left out, since their
/// handles do not belong to the value alone.
fn each_handle(value: &Value, each: &mut dyn FnMut(&Arc<Nest>)) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Cell(cell) if Arc::strong_count(cell) == 1 => open.extend(&cell.items),
            Value::Struct(s) if Arc::strong_count(s) == 1 => open.extend(s.fields.values().flatten()),
            Value::Function(function) if Arc::strong_count(function) == 1 => {
                if let Function::Anonymous(closure) = &**function
                    && Arc::strong_count(closure) == 1
                {
                    closure.nest.iter().for_each(&mut *each);
                    open.extend(closure.captured.iter().map(|(_, value)| value));
                }
            }
            _ => {}
        }
    }
}
