//! What the machine holds: its arrays on the runtime, and the cleanups that wait for the end of a variable.

use super::Interp;
use super::frame::Variable;
use crate::value::cleanup::Duty;
use crate::value::nest::Nest;
use crate::value::{Function, Lazy, Map, Value};
use std::sync::Arc;

impl Interp {
    /// Returns every array of the runtime that a variable or operand of any frame holds, once each.
    pub fn live_values(&self) -> Vec<Arc<Lazy>> {
        let mut out: Vec<Arc<Lazy>> = Vec::new();
        self.for_each_held(|value| match value {
            Value::Lazy(lazy) if !out.iter().any(|l| Arc::ptr_eq(l, lazy)) => out.push(lazy.clone()),
            _ => {}
        });
        out
    }

    /// Returns the functions of all `onCleanup` objects that a variable or operand holds.
    pub(super) fn held_duties(&self) -> Vec<Arc<Duty>> {
        let mut out = Vec::new();
        self.for_each_held(|value| {
            if let Value::Struct(s) = value {
                out.extend(s.cleanup.as_ref().map(|cleanup| cleanup.duty.clone()));
            }
        });
        out
    }

    /// Visits all values that variables and operands of all frames hold, including those in maps and closures. A map
    /// that contains itself is visited once.
    fn for_each_held(&self, mut each: impl FnMut(&Value)) {
        let variables = self.variables.iter().filter_map(|variable| match variable {
            Variable::Value(value) => Some(value),
            _ => None,
        });
        let mut open: Vec<Value> = variables.chain(self.statics.iter().flatten()).chain(&self.stack).cloned().collect();
        let mut maps: Vec<Arc<Map>> = Vec::new();
        let mut nests: Vec<Arc<Nest>> = Vec::new();
        let mut enter = |nest: &Arc<Nest>, open: &mut Vec<Value>| {
            for nest in nest.chain() {
                if nests.iter().any(|known| Arc::ptr_eq(known, nest)) {
                    break;
                }
                nests.push(nest.clone());
                open.extend(nest.values());
            }
        };
        self.nests_of_frames().for_each(|nest| enter(nest, &mut open));
        while let Some(value) = open.pop() {
            each(&value);
            match value {
                Value::Cell(cell) => open.extend(cell.items.iter().cloned()),
                Value::Struct(s) => {
                    open.extend(s.fields.values().flatten().cloned());
                    open.extend(s.cleanup.iter().map(|cleanup| Value::Function(cleanup.duty.function.clone())));
                }
                Value::Map(map) if !maps.iter().any(|m| Arc::ptr_eq(m, &map)) => {
                    open.extend(map.entries().into_iter().map(|(_, value)| value));
                    maps.push(map);
                }
                Value::Parser(parser) => open.extend(parser.values()),
                Value::Function(function) => match &*function {
                    Function::Anonymous(closure) => {
                        open.extend(closure.captured.iter().map(|(_, v)| v.clone()));
                        closure.nest.iter().for_each(|nest| enter(nest, &mut open));
                    }
                    Function::Method(_, value) => open.push(value.clone()),
                    Function::Named(..) => {}
                },
                _ => {}
            }
        }
    }
}
