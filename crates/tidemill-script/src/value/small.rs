//! Measures the memory that a script holds in many small pieces: arrays that are too small to be counted one by one,
//! cells and structs.
//!
//! In: a machine's values. Out: bytes. Must hold: SMALL-1: the time grows with the number of containers and arrays, and
//! not with the number of places where they occur. No call is made for each level.

use super::account::COUNTED_BYTES_MIN;
use super::nest::Nest;
use super::{Function, Map, Value};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// The bytes that an array or a container takes beside its elements: counts, dimensions, and the allocator's overhead.
const BESIDE_BYTES: usize = 96;

/// The result so far, and the containers that are still to be visited.
#[derive(Debug, Default)]
pub struct Small {
    /// The bytes of pieces that are not counted one by one.
    pub bytes: u64,
    /// The number of values that were visited.
    pub values: u64,
    /// Containers with several holders that were visited.
    seen: FxHashSet<*const ()>,
    /// Maps that are still to be visited.
    maps: Vec<Arc<Map>>,
    /// Shared variables of nested functions that are still to be visited.
    nests: Vec<Arc<Nest>>,
}

impl Small {
    /// Measures what these values hold, and the variables of these nests and of those around them.
    pub fn of<'v>(roots: impl IntoIterator<Item = &'v Value>, nests: impl IntoIterator<Item = &'v Arc<Nest>>) -> Small {
        let mut found = Small::default();
        nests.into_iter().for_each(|nest| found.enter(nest));
        found.visit(roots.into_iter().collect());
        loop {
            if let Some(map) = found.maps.pop() {
                let entries = map.entries();
                found.visit(entries.iter().map(|(_, value)| value).collect());
            } else if let Some(nest) = found.nests.pop() {
                let values = nest.values();
                found.visit(values.iter().collect());
            } else {
                return found;
            }
        }
    }

    /// Queues a nest and those around it, if they are found for the first time.
    fn enter(&mut self, nest: &Arc<Nest>) {
        let seen = &mut self.seen;
        self.nests.extend(nest.chain().take_while(|nest| seen.insert(Arc::as_ptr(nest).cast())).cloned());
    }

    /// Whether a container is found for the first time.
    fn is_new<T>(&mut self, container: &Arc<T>) -> bool {
        Arc::strong_count(container) == 1 || self.seen.insert(Arc::as_ptr(container).cast())
    }

    fn add(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    fn visit(&mut self, mut open: Vec<&Value>) {
        let is_open = |value: &&Value| !matches!(value, Value::Num(_) | Value::Bool(_) | Value::Colon);
        while let Some(value) = open.pop() {
            self.values += 1;
            match value {
                Value::Tensor(t) => {
                    let bytes = t.data.bytes();
                    let own = BESIDE_BYTES + if bytes < COUNTED_BYTES_MIN { bytes } else { 0 };
                    // Each holder of the array counts a part of it.
                    self.add(own / Arc::strong_count(t));
                }
                Value::Lazy(_) => self.add(2 * BESIDE_BYTES),
                Value::Cell(c) if self.is_new(c) => {
                    self.add(BESIDE_BYTES + size_of_val(&c.items[..]));
                    self.values += c.items.len() as u64;
                    open.extend(c.items.iter().filter(is_open));
                }
                Value::Struct(s) if self.is_new(s) => {
                    self.add(BESIDE_BYTES * (1 + s.fields.len()));
                    for field in s.fields.values() {
                        self.add(size_of_val(&field[..]));
                        self.values += field.len() as u64;
                        open.extend(field.iter().filter(is_open));
                    }
                }
                Value::Function(f) if self.is_new(f) => {
                    self.add(BESIDE_BYTES);
                    if let Function::Anonymous(closure) = &**f {
                        open.extend(closure.captured.iter().map(|(_, value)| value));
                        closure.nest.iter().for_each(|nest| self.enter(nest));
                    }
                }
                Value::Map(m) if self.is_new(m) => {
                    self.add(BESIDE_BYTES * (1 + m.len()));
                    self.values += m.len() as u64;
                    self.maps.push(m.clone());
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Dims;

    fn cell(items: Vec<Value>) -> Value {
        Value::cell(Dims::new(&[items.len(), 1]), items)
    }

    #[test]
    fn small_arrays_count_once_wherever_they_stand() {
        let row = || Value::row(vec![0.0; 100]);
        let many = cell((0..10).map(|_| row()).collect());
        let found = Small::of([&many], []);
        assert!(found.bytes >= 8000 && found.bytes < 12_000, "{found:?}");
        let mut doubled = many;
        for _ in 0..40 {
            doubled = cell(vec![doubled.clone(), doubled]);
        }
        let found = Small::of([&doubled], []);
        assert!(found.bytes < 20_000 && found.values < 1000, "{found:?}");
        let one = row();
        let same = cell(vec![one.clone(), one.clone(), one]);
        assert!(Small::of([&same], []).bytes < 1500);
    }

    #[test]
    fn depth_takes_no_stack_and_large_arrays_are_counted_elsewhere() {
        let mut value = Value::Num(1.0);
        for _ in 0..200_000 {
            value = cell(vec![value, Value::Num(1.0)]);
        }
        assert_eq!(Small::of([&value], []).values, 600_000);
        assert!(Small::of([&Value::row(vec![0.0; COUNTED_BYTES_MIN])], []).bytes < 1000);
    }
}
