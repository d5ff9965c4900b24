//! Which step is the value of an array: [`Index`].
//!
//! Must hold: INDEX-1: a value that the session recorded takes six bytes, and little more, as long as values are
//! noted nearly in the order in which they were recorded; one that is known on the host, eight, or twice as many.

use super::growing::Growing;
use crate::array::handle::Array;
use crate::ids::{SessionId, ValueId};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Identifies a value: by its number if it is on a tape, by the address of its `Value` if it is known on the host. The
/// log keeps a handle of the latter, so that the address is not used again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Recorded(ValueId),
    Known(u64),
}

/// The key of an array's value; `None` if it was not recorded.
pub(super) fn key(array: &Array) -> Option<Key> {
    match &array.0.host {
        Some(_) => Some(Key::Known(Arc::as_ptr(&array.0) as usize as u64)),
        None => array.id().map(Key::Recorded),
    }
}

/// Whether two arrays are one value.
pub(super) fn is_same(a: &Array, b: &Array) -> bool {
    key(a) == key(b)
}

/// The steps of values.
pub(super) struct Index {
    /// The session whose ops are noted: nearly all values are its own.
    session: SessionId,
    /// By their numbers in that session.
    own: Growing<u32, u16>,
    /// By their addresses.
    known: Growing<u32, u16>,
    /// Values of other sessions that the program watches, or that a function with a rule of its own returned.
    others: FxHashMap<ValueId, u32>,
}

impl Index {
    /// No steps yet, of values of a session.
    pub fn new(session: SessionId) -> Index {
        Index { session, own: Growing::default(), known: Growing::default(), others: FxHashMap::default() }
    }

    /// The step of a value.
    pub fn get(&self, key: Key) -> Option<u32> {
        match key {
            Key::Recorded(value) if value.session == self.session => self.own.get(value.index).copied(),
            Key::Recorded(value) => self.others.get(&value).copied(),
            Key::Known(address) => self.known.get(address).copied(),
        }
    }

    /// Says which step a value is.
    pub fn insert(&mut self, key: Key, step: u32) {
        match key {
            Key::Recorded(value) if value.session == self.session => self.own.insert(value.index, step),
            Key::Recorded(value) => _ = self.others.insert(value, step),
            Key::Known(address) => self.known.insert(address, step),
        }
    }
}

#[cfg(test)]
impl Index {
    /// The bytes that it takes.
    pub fn bytes(&self) -> usize {
        let buckets = (self.others.capacity() * 8 / 7).next_power_of_two();
        self.own.bytes() + self.known.bytes() + buckets * (size_of::<(ValueId, u32)>() + 1)
    }
}
