//! Drops containers that are nested thousands deep, without a call for each level.
//!
//! In: the values of a container that ends. Out: nothing. Must hold: VALUE-5: however deep values are nested, their end
//! takes a bounded stack.

use super::function::Closure;
use super::nest::{Content, Nest};
use super::{CellArray, Function, Map, Parser, StructArray, Value};
use std::sync::Arc;

impl Drop for CellArray {
    fn drop(&mut self) {
        release(std::mem::take(&mut self.items));
    }
}

impl Drop for StructArray {
    fn drop(&mut self) {
        for values in self.fields.values_mut() {
            release(std::mem::take(values));
        }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        release(self.take_values());
    }
}

impl Drop for Parser {
    fn drop(&mut self) {
        release(self.take_values());
    }
}

impl Drop for Closure {
    fn drop(&mut self) {
        let mut values: Vec<Value> = std::mem::take(&mut self.captured).into_iter().map(|(_, value)| value).collect();
        values.extend(self.nest.take().into_iter().flat_map(values_of));
        release(values);
    }
}

impl Drop for Nest {
    fn drop(&mut self) {
        let mut values = take_values(self);
        values.extend(self.parent.take().into_iter().flat_map(values_of));
        release(values);
    }
}

/// Returns the values that end with the last holder of a nest: those of its variables, and of the nests around it that
/// have no other holder.
fn values_of(nest: Arc<Nest>) -> Vec<Value> {
    let mut values = Vec::new();
    let mut next = Some(nest);
    while let Some(mut nest) = next.and_then(Arc::into_inner) {
        values.extend(take_values(&mut nest));
        next = nest.parent.take();
    }
    values
}

fn take_values(nest: &mut Nest) -> Vec<Value> {
    let contents = std::mem::take(&mut nest.variables).into_iter().filter_map(Arc::into_inner);
    let value = |content: Content| if let Content::Value(value) = content { Some(value) } else { None };
    contents.filter_map(|content| value(content.into_inner())).collect()
}

/// Drops values. Values that only they hold are dropped in turn, in this loop (VALUE-5).
fn release(values: Vec<Value>) {
    if !values.iter().any(is_container) {
        return;
    }
    let mut open: Vec<Value> = values.into_iter().filter(is_container).collect();
    while let Some(value) = open.pop() {
        match value {
            Value::Cell(cell) => {
                if let Some(mut cell) = Arc::into_inner(cell) {
                    open.extend(std::mem::take(&mut cell.items).into_iter().filter(is_container));
                }
            }
            Value::Struct(array) => {
                if let Some(mut array) = Arc::into_inner(array) {
                    for values in array.fields.values_mut() {
                        open.extend(std::mem::take(values).into_iter().filter(is_container));
                    }
                }
            }
            Value::Map(map) => {
                if let Some(mut map) = Arc::into_inner(map) {
                    open.extend(map.take_values().into_iter().filter(is_container));
                }
            }
            Value::Parser(parser) => {
                if let Some(mut parser) = Arc::into_inner(parser) {
                    open.extend(parser.take_values().into_iter().filter(is_container));
                }
            }
            Value::Function(function) => {
                if let Some(Function::Anonymous(closure)) = Arc::into_inner(function)
                    && let Some(mut closure) = Arc::into_inner(closure)
                {
                    let captured = std::mem::take(&mut closure.captured).into_iter();
                    open.extend(captured.map(|(_, value)| value).filter(is_container));
                    let shared = closure.nest.take().into_iter().flat_map(values_of);
                    open.extend(shared.filter(is_container));
                }
            }
            _ => {}
        }
    }
}

fn is_container(value: &Value) -> bool {
    match value {
        Value::Cell(_) | Value::Struct(_) | Value::Map(_) | Value::Parser(_) => true,
        Value::Function(function) => matches!(**function, Function::Anonymous(_)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Dims;

    #[test]
    fn a_hundred_thousand_levels_end_on_a_small_stack() {
        let end = || {
            let mut cell = Value::Num(1.0);
            let mut structure = Value::Num(1.0);
            for _ in 0..100_000 {
                cell = Value::cell(Dims::scalar(), vec![cell]);
                let mut level = StructArray::scalar();
                level.set("a", structure);
                structure = Value::Struct(Arc::new(level));
            }
            drop((cell, structure));
        };
        std::thread::Builder::new().stack_size(256 << 10).spawn(end).unwrap().join().unwrap();
    }
}
