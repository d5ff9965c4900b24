//! Sums over a value and everything inside of it.
//!
//! In: a value, and a function that gives the count of each value by itself. Out: the sum over all places; a container
//! that occurs in several places counts in each. Must hold: the time grows with the number of containers, and not with
//! the number of places (`c = {c, c}` in a loop makes exponentially many). No call is made for each level.

use super::Value;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A container whose parts are being counted.
struct Open<'a> {
    place: *const (),
    parts: Box<dyn Iterator<Item = &'a Value> + 'a>,
    sum: usize,
}

/// Returns a container's address and its parts; `None` for other values.
fn opened<'a>(value: &'a Value, own: usize) -> Option<Open<'a>> {
    Some(match value {
        Value::Cell(c) => Open { place: Arc::as_ptr(c).cast(), parts: Box::new(c.items.iter()), sum: own },
        Value::Struct(s) => {
            Open { place: Arc::as_ptr(s).cast(), parts: Box::new(s.fields.values().flatten()), sum: own }
        }
        _ => return None,
    })
}

/// Returns the sum of the counts of the value and all values inside of it, or `usize::MAX` if it is greater.
pub fn total(value: &Value, own: &dyn Fn(&Value) -> usize) -> usize {
    let Some(outermost) = opened(value, own(value)) else { return own(value) };
    let mut known = FxHashMap::<*const (), usize>::default();
    let mut open = vec![outermost];
    while let Some(top) = open.last_mut() {
        let Some(part) = top.parts.next() else {
            let Some(done) = open.pop() else { break };
            known.insert(done.place, done.sum);
            match open.last_mut() {
                Some(around) => around.sum = around.sum.saturating_add(done.sum),
                None => return done.sum,
            }
            continue;
        };
        match opened(part, own(part)) {
            None => top.sum = top.sum.saturating_add(own(part)),
            Some(inner) => match known.get(&inner.place) {
                Some(sum) => top.sum = top.sum.saturating_add(*sum),
                None => open.push(inner),
            },
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Dims;

    fn cell(items: Vec<Value>) -> Value {
        Value::cell(Dims::new(&[items.len(), 1]), items)
    }

    #[test]
    fn what_stands_in_many_places_is_counted_in_each_and_visited_once() {
        let mut value = Value::Num(1.0);
        for _ in 0..40 {
            value = cell(vec![value.clone(), value]);
        }
        assert_eq!(total(&value, &|v| usize::from(matches!(v, Value::Num(_)))), 1 << 40);
        for _ in 0..40 {
            value = cell(vec![value.clone(), value]);
        }
        assert_eq!(total(&value, &|_| 1), usize::MAX);
    }

    #[test]
    fn depth_takes_no_stack() {
        let mut value = Value::Num(1.0);
        for _ in 0..200_000 {
            value = cell(vec![value, Value::Num(1.0)]);
        }
        assert_eq!(total(&value, &|v| usize::from(matches!(v, Value::Num(_)))), 200_001);
    }
}
