//! The variables that a function shares with the functions nested in it.
//!
//! In: a call of a function that holds nested functions. Out: a [`Nest`], which the call, the calls of its nested
//! functions and their handles hold. Must hold: NEST-1: every call of such a function has a nest of its own, and a
//! nested function sees the nest of the call that it was reached from. NEST-2: a nest ends with its last holder; nests
//! that are held only by handles in their own variables are found by [`Nests`], at the latest when the machine ends.

use super::{Function, Value};
use crate::compile::Code;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::fmt;
use std::sync::{Arc, Weak};

/// What a shared variable holds.
#[derive(Clone, Debug, Default)]
pub enum Content {
    /// No value.
    #[default]
    Nothing,
    /// A value.
    Value(Value),
    /// The variable is a global or persistent of this number.
    Static(u32),
}

/// A variable that several functions see.
pub type Shared = Arc<Mutex<Content>>;

/// The shared variables of one call.
pub struct Nest {
    /// The function that was called.
    pub code: Arc<Code>,
    /// Its shared variables, in the order of [`Sharing::owned`](crate::compile::code::Sharing::owned).
    pub variables: Vec<Shared>,
    /// The nest of the function around it.
    pub parent: Option<Arc<Nest>>,
}

/// The function's name alone: a nest may hold itself.
impl fmt::Debug for Nest {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Nest").field("of", &self.code.name).finish_non_exhaustive()
    }
}

impl Nest {
    /// This nest and those around it.
    pub fn chain(self: &Arc<Nest>) -> impl Iterator<Item = &Arc<Nest>> {
        std::iter::successors(Some(self), |nest| nest.parent.as_ref())
    }

    /// The values of its variables.
    pub fn values(&self) -> Vec<Value> {
        let value = |shared: &Shared| match &*shared.lock() {
            Content::Value(value) => Some(value.clone()),
            _ => None,
        };
        self.variables.iter().filter_map(value).collect()
    }
}

/// So many nests are made before the first look for those that hold themselves.
const LOOK_AT_MIN: usize = 256;

/// The nests that a machine has made, by which it finds those that only their own variables hold.
#[derive(Debug, Default)]
pub struct Nests {
    made: Vec<Weak<Nest>>,
    /// The number of nests at which to look again.
    look_at: usize,
}

impl Nests {
    /// Adds a nest, and looks for those that hold themselves where there are twice as many as were left last time.
    pub fn add(&mut self, nest: &Arc<Nest>) {
        if self.made.len() >= self.look_at.max(LOOK_AT_MIN) {
            self.look();
            self.look_at = 2 * self.made.len();
        }
        self.made.push(Arc::downgrade(nest));
    }

    /// How many of them something holds.
    #[cfg(test)]
    pub fn living(&self) -> usize {
        self.made.iter().filter(|nest| nest.strong_count() > 0).count()
    }

    /// The last that something holds.
    #[cfg(test)]
    pub fn any(&self) -> Arc<Nest> {
        self.made.iter().rev().find_map(Weak::upgrade).expect("a nest that something holds")
    }

    /// Empties the nests that nothing holds but handles in their own variables.
    fn look(&mut self) {
        self.made.retain(|nest| nest.strong_count() > 0);
        let nests: Vec<Arc<Nest>> = self.made.iter().filter_map(Weak::upgrade).collect();
        let numbers: FxHashMap<*const Nest, usize> =
            nests.iter().enumerate().map(|(i, nest)| (Arc::as_ptr(nest), i)).collect();
        let held: Vec<Vec<usize>> = nests.iter().map(|nest| held_by(nest, &numbers)).collect();
        // How many holders of each nest are not variables of nests; one is the list above.
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
        // The value ends after the lock.
        let content = std::mem::take(&mut *variable.lock());
        drop(content);
    }
}

/// The nests, by number, that a nest holds: the one around it, and those of handles that nothing else holds. A nest
/// appears as often as it is held.
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

/// Calls `each` with the nests of the handles in a value. What others hold, too, is left out: its handles are not the
/// value's alone.
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
