//! `containers.Map`: values under keys that are texts or numbers.
//!
//! Must hold: a map is a handle: its copies share its entries. Keys are kept in the order in which `keys` returns them:
//! texts by their bytes, numbers by size, NaN last. The lock is held during one access only.

use super::{CellArray, Class, Data, Tensor, Value};
use parking_lot::Mutex;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A key.
#[derive(Clone, Debug)]
pub enum Key {
    /// The bytes of a char row.
    Text(Vec<u8>),
    /// A number.
    Number(f64),
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Key {}
impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Key {
    fn cmp(&self, other: &Key) -> Ordering {
        match (self, other) {
            (Key::Text(a), Key::Text(b)) => a.cmp(b),
            // -0 equals 0, and NaN comes after all numbers.
            (Key::Number(a), Key::Number(b)) => a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan())),
            (Key::Text(_), Key::Number(_)) => Ordering::Greater,
            (Key::Number(_), Key::Text(_)) => Ordering::Less,
        }
    }
}

/// A `containers.Map`.
#[derive(Debug)]
pub struct Map {
    /// `char`, or the class of numbers that the keys are given in.
    pub key_class: Class,
    /// The kind of its values.
    pub values: Values,
    entries: Mutex<BTreeMap<Key, Value>>,
}

/// The kinds of values of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// Anything.
    Any,
    /// Char rows, or scalars of this class.
    Of(Class),
}

impl Values {
    /// Returns the name for `ValueType`.
    pub fn name(self) -> &'static str {
        match self {
            Values::Any => "any",
            Values::Of(class) => class.name(),
        }
    }
}

impl Map {
    /// A map without entries.
    pub fn new(key_class: Class, values: Values) -> Map {
        Map { key_class, values, entries: Mutex::default() }
    }

    /// How many entries it has.
    pub fn len(&self) -> usize {
        self.entries.lock().len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether its keys are texts.
    pub fn has_texts(&self) -> bool {
        self.key_class == Class::Char
    }

    /// The value under a key.
    pub fn get(&self, key: &Key) -> Option<Value> {
        self.entries.lock().get(key).cloned()
    }

    /// Puts a value under a key.
    pub fn set(&self, key: Key, value: Value) {
        self.entries.lock().insert(key, value);
    }

    /// Removes an entry. Returns whether it existed.
    pub fn remove(&self, key: &Key) -> bool {
        self.entries.lock().remove(key).is_some()
    }

    /// All entries, in order.
    pub fn entries(&self) -> Vec<(Key, Value)> {
        self.entries.lock().iter().map(|(k, v)| (k.clone(), v.clone())).collect()
    }

    /// Takes all values out, and removes their keys.
    pub fn take_values(&mut self) -> Vec<Value> {
        std::mem::take(self.entries.get_mut()).into_values().collect()
    }

    /// The keys as a cell row, in order.
    pub fn keys(&self) -> Value {
        let keys = self.entries.lock().keys().map(|k| self.key_value(k)).collect();
        Value::Cell(Arc::new(CellArray::row(keys)))
    }

    /// The values as a cell row, in the order of the keys.
    pub fn values(&self) -> Value {
        Value::Cell(Arc::new(CellArray::row(self.entries.lock().values().cloned().collect())))
    }

    /// Returns a key as a script's value.
    pub fn key_value(&self, key: &Key) -> Value {
        match key {
            Key::Text(text) => Value::string(text),
            Key::Number(x) => Value::tensor(Tensor::scalar(Data::F64(vec![*x]).converted(self.key_class))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_order_and_one_each() {
        let map = Map::new(Class::Double, Values::Any);
        for x in [3.0, f64::NAN, -1.0, 0.0, -0.0, f64::NAN, f64::INFINITY] {
            map.set(Key::Number(x), Value::Num(x));
        }
        let keys: Vec<String> = map.entries().iter().map(|(k, _)| format!("{k:?}")).collect();
        assert_eq!(keys, ["Number(-1.0)", "Number(0.0)", "Number(3.0)", "Number(inf)", "Number(NaN)"]);
    }

    #[test]
    fn copies_name_the_same_entries() {
        let map = Arc::new(Map::new(Class::Char, Values::Any));
        let other = Value::Map(map.clone());
        map.set(Key::Text(b"a".to_vec()), Value::Num(1.0));
        assert_eq!(other.len(), 1);
        assert!(map.remove(&Key::Text(b"a".to_vec())) && !map.remove(&Key::Text(b"a".to_vec())));
    }
}
