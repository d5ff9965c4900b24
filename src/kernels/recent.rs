//! A cache of the most recently used values, for few values that take long to make.
//!
//! In: keys. Out: values, made if the cache does not hold them. Must hold: a value is made while the cache is not
//! locked, so that no thread waits for a value that another thread makes.

use parking_lot::Mutex;
use std::fmt;

/// A cache of at most `MAX` values, from which the least recently used one is dropped.
pub(crate) struct Recent<K, V, const MAX: usize> {
    /// The most recently used entry comes first.
    entries: Mutex<Vec<(K, V)>>,
}

impl<K, V: Clone, const MAX: usize> Recent<K, V, MAX> {
    /// Returns the value whose key `is_meant` accepts. If there is none, adds the entry that `make` returns.
    pub fn get_or_make(&self, is_meant: impl Fn(&K) -> bool, make: impl FnOnce() -> (K, V)) -> V {
        if let Some(known) = first(&mut self.entries.lock(), &is_meant) {
            return known;
        }
        let (key, value) = make();
        let mut entries = self.entries.lock();
        // Another thread may have added the value meanwhile.
        if let Some(known) = first(&mut entries, &is_meant) {
            return known;
        }
        entries.truncate(MAX - 1);
        entries.insert(0, (key, value.clone()));
        value
    }
}

/// Finds the value whose key `is_meant` accepts, and moves its entry to the front.
fn first<K, V: Clone>(entries: &mut [(K, V)], is_meant: impl Fn(&K) -> bool) -> Option<V> {
    let at = entries.iter().position(|(key, _)| is_meant(key))?;
    entries[..=at].rotate_right(1);
    Some(entries[0].1.clone())
}

impl<K, V, const MAX: usize> Default for Recent<K, V, MAX> {
    fn default() -> Self {
        Recent { entries: Mutex::new(Vec::new()) }
    }
}

impl<K, V, const MAX: usize> fmt::Debug for Recent<K, V, MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recent").field("entries", &self.entries.lock().len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_that_were_used_last_stay() {
        let recent = Recent::<u32, u32, 2>::default();
        let mut made = Vec::new();
        let mut get = |key: u32| {
            let value = recent.get_or_make(
                |known| *known == key,
                || {
                    made.push(key);
                    (key, 10 * key)
                },
            );
            assert_eq!(value, 10 * key);
        };
        [1, 2, 1, 3, 1, 2].into_iter().for_each(&mut get);
        assert_eq!(made, [1, 2, 3, 2]);
    }

    #[test]
    fn a_value_is_made_outside_of_the_lock() {
        let recent = Recent::<u32, u32, 2>::default();
        let value = recent.get_or_make(
            |&known| known == 1,
            || {
                assert_eq!(recent.get_or_make(|&known| known == 1, || (1, 5)), 5);
                (1, 6)
            },
        );
        assert_eq!(value, 5);
    }
}
