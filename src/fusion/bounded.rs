//! A map by hash with a bounded number of entries.

use rustc_hash::FxHashMap;

/// A bounded map by structural hash. When it is full, the entries that were not used since the last trim are dropped;
/// if all were used, all are dropped.
#[derive(Debug)]
pub struct Bounded<V> {
    entries: FxHashMap<u64, (V, bool)>,
    limit: usize,
}

impl<V: Clone> Bounded<V> {
    /// An empty map of at most `limit` entries.
    pub fn new(limit: usize) -> Bounded<V> {
        Bounded { entries: FxHashMap::default(), limit }
    }

    /// Whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entry, if it is there; it counts as used.
    pub fn get(&mut self, key: u64) -> Option<V> {
        self.get_mut(key).cloned()
    }

    /// As [`Bounded::get`], but mutable.
    pub fn get_mut(&mut self, key: u64) -> Option<&mut V> {
        let entry = self.entries.get_mut(&key)?;
        entry.1 = true;
        Some(&mut entry.0)
    }

    /// Adds an entry.
    pub fn insert(&mut self, key: u64, value: V) {
        if self.entries.len() >= self.limit {
            self.entries.retain(|_, entry| std::mem::replace(&mut entry.1, false));
            if self.entries.len() >= self.limit {
                self.entries.clear();
            }
        }
        self.entries.insert(key, (value, true));
    }
}
