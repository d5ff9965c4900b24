//! Variables, by slot for instructions and by name for functions that ask.

use super::Interp;
use super::frame::{Activation, Frame, Variable};
use crate::script::compile::code::{Kind, Slot};
use crate::script::error::{Flow, fail_id};
use crate::script::syntax::ast::Name;
use crate::script::value::{Lazy, Value};
use std::sync::Arc;

impl Interp {
    /// The innermost frame of code.
    pub(super) fn frame(&self) -> Option<&Frame> {
        self.frames.iter().rev().find_map(|a| match a {
            Activation::Code(frame) => Some(frame),
            Activation::Task(_) => None,
        })
    }

    pub(super) fn frame_mut(&mut self) -> Option<&mut Frame> {
        self.frames.iter_mut().rev().find_map(|a| match a {
            Activation::Code(frame) => Some(frame),
            Activation::Task(_) => None,
        })
    }

    fn position(&self, slot: Slot) -> usize {
        self.frame().map_or(0, |f| f.variables) + slot as usize
    }

    /// A variable's value.
    pub(super) fn slot_value(&self, slot: Slot) -> Option<Value> {
        self.value_at(self.position(slot))
    }

    fn value_at(&self, at: usize) -> Option<Value> {
        match self.variables.get(at)? {
            Variable::Undefined => None,
            Variable::Value(value) => Some(value.clone()),
            Variable::Static(n) => self.statics[*n as usize].clone(),
        }
    }

    pub(super) fn is_defined(&self, slot: Slot) -> bool {
        match self.variables.get(self.position(slot)) {
            Some(Variable::Value(_)) => true,
            Some(Variable::Static(n)) => self.statics[*n as usize].is_some(),
            _ => false,
        }
    }

    /// Moves a variable's value out, to be put back changed.
    pub(super) fn take_slot(&mut self, slot: Slot) -> Option<Value> {
        let at = self.position(slot);
        match &mut self.variables[at] {
            Variable::Undefined => None,
            Variable::Static(n) => self.statics[*n as usize].take(),
            variable => match std::mem::take(variable) {
                Variable::Value(value) => Some(value),
                _ => None,
            },
        }
    }

    pub(super) fn put_slot(&mut self, slot: Slot, value: Option<Value>) {
        let at = self.position(slot);
        self.put_at(at, value);
    }

    fn put_at(&mut self, at: usize, value: Option<Value>) {
        match &mut self.variables[at] {
            Variable::Static(n) => self.statics[*n as usize] = value,
            variable => *variable = value.map_or(Variable::Undefined, Variable::Value),
        }
    }

    /// Sets a variable by its place among all.
    pub(super) fn set_slot(&mut self, at: usize, value: Value) {
        self.put_at(at, Some(value));
    }

    pub(super) fn clear_slot(&mut self, slot: Slot) {
        let at = self.position(slot);
        if let Variable::Value(_) = self.variables[at] {
            self.variables[at] = Variable::Undefined;
        }
    }

    /// A store into a global, or of nothing.
    pub(super) fn store_slow(&mut self, slot: Slot) -> Flow<()> {
        match self.stack.pop() {
            Some(Value::Colon) | None => {
                fail_id!("Octave:undefined-function", "value on the right hand side of the assignment not defined")
            }
            Some(value) => {
                self.put_slot(slot, Some(value));
                Ok(())
            }
        }
    }

    /// The name of a slot of the innermost frame.
    pub(super) fn name_of(&self, slot: Slot) -> Name {
        let name = self.frame().and_then(|f| {
            f.code.names.get(slot as usize).or_else(|| f.extra.get((slot as usize).checked_sub(f.code.names.len())?))
        });
        name.cloned().unwrap_or_else(|| "".into())
    }

    fn slot_of(frame: &Frame, name: &str) -> Option<usize> {
        let names = frame.code.names.iter().chain(&frame.extra);
        names.into_iter().position(|n| &**n == name)
    }

    /// The names of the innermost frame's slots, evaluated text's included.
    pub(super) fn slot_names(&self) -> Vec<Name> {
        self.frame().map_or(Vec::new(), |f| f.code.names.iter().chain(&f.extra).cloned().collect())
    }

    /// The value of the innermost frame's variable of this name.
    pub fn variable(&self, name: &str) -> Option<Value> {
        let frame = self.frame()?;
        self.value_at(frame.variables + Self::slot_of(frame, name)?)
    }

    /// Sets the innermost frame's variable of this name.
    pub fn set_variable(&mut self, name: &str, value: Value) {
        let Some(frame) = self.frame() else { return };
        let at = match Self::slot_of(frame, name) {
            Some(slot) => frame.variables + slot,
            None => self.add_variable(name.into()),
        };
        self.put_at(at, Some(value));
    }

    /// A new variable of the innermost frame, whose variables are the last.
    pub(super) fn add_variable(&mut self, name: Name) -> usize {
        let top = self.variables.len();
        self.variables.push(Variable::Undefined);
        // Evaluated text shares its caller's variables: all frames over the same ones learn the name.
        let mut shared = true;
        for activation in self.frames.iter_mut().rev() {
            if let Activation::Code(frame) = activation {
                if !shared {
                    break;
                }
                frame.extra.push(name.clone());
                shared = frame.shares;
            }
        }
        top
    }

    /// The innermost frame's variables that have values, in order of their slots.
    pub fn variables(&self) -> Vec<(Name, Value)> {
        let Some(frame) = self.frame() else { return Vec::new() };
        (self.slot_names().into_iter().enumerate())
            .filter_map(|(i, name)| Some((name, self.value_at(frame.variables + i)?)))
            .collect()
    }

    /// Removes the innermost frame's variables whose names fit.
    pub fn clear_variables(&mut self, fits: impl Fn(&str) -> bool) {
        let Some(base) = self.frame().map(|f| f.variables) else { return };
        for (i, name) in self.slot_names().iter().enumerate() {
            if fits(name) {
                self.variables[base + i] = Variable::Undefined;
            }
        }
    }

    /// Removes globals whose names fit.
    pub fn clear_globals(&mut self, fits: impl Fn(&str) -> bool) {
        for (name, &n) in &self.globals {
            if fits(name) {
                self.statics[n as usize] = None;
            }
        }
        self.globals.retain(|name, _| !fits(name));
    }

    /// Whether the innermost frame's variable of this name is a global.
    pub fn is_global(&self, name: &str) -> bool {
        let Some(frame) = self.frame() else { return false };
        let Some(slot) = Self::slot_of(frame, name) else { return false };
        match (&self.variables[frame.variables + slot], self.globals.get(name)) {
            (Variable::Static(n), Some(global)) => n == global,
            _ => false,
        }
    }

    /// The number of arguments that the innermost function was called with; `None` at a script's top level.
    pub fn nargin(&self) -> Option<usize> {
        self.function_frame().map(|f| f.nargin)
    }

    /// The number of outputs that the innermost function was asked for.
    pub fn nargout(&self) -> Option<usize> {
        self.function_frame().map(|f| f.nargout)
    }

    fn function_frame(&self) -> Option<&Frame> {
        let mut frames = self.frames.iter().rev().filter_map(|a| match a {
            Activation::Code(frame) => Some(frame),
            Activation::Task(_) => None,
        });
        let frame = frames.find(|f| f.code.kind != Kind::Eval)?;
        (frame.code.kind == Kind::Function).then_some(frame)
    }

    /// Every array of the runtime that a variable or operand of any frame holds, once.
    pub fn live_values(&self) -> Vec<Arc<Lazy>> {
        fn visit(value: &Value, out: &mut Vec<Arc<Lazy>>) {
            match value {
                Value::Lazy(lazy) if !out.iter().any(|l| Arc::ptr_eq(l, lazy)) => out.push(lazy.clone()),
                Value::Cell(cell) => cell.items.iter().for_each(|v| visit(v, out)),
                Value::Struct(s) => s.fields.values().flatten().for_each(|v| visit(v, out)),
                _ => {}
            }
        }
        let mut out = Vec::new();
        for variable in &self.variables {
            if let Variable::Value(value) = variable {
                visit(value, &mut out);
            }
        }
        self.statics.iter().flatten().chain(&self.stack).for_each(|v| visit(v, &mut out));
        out
    }

    /// A variable becomes the global of its name.
    pub(super) fn make_global(&mut self, slot: Slot) {
        let name = self.name_of(slot);
        let n = match self.globals.get(&name) {
            Some(&n) => n,
            None => {
                let n = self.new_static();
                self.globals.insert(name, n);
                n
            }
        };
        self.bind_static(slot, n);
    }

    /// A variable becomes the function's own that lasts between calls.
    pub(super) fn make_persistent(&mut self, slot: Slot) {
        let key = (Arc::as_ptr(self.code()) as usize, slot);
        let n = match self.persistents.get(&key) {
            Some(&n) => n,
            None => {
                let n = self.new_static();
                self.persistents.insert(key, n);
                n
            }
        };
        self.bind_static(slot, n);
    }

    fn new_static(&mut self) -> u32 {
        self.statics.push(None);
        self.statics.len() as u32 - 1
    }

    fn bind_static(&mut self, slot: Slot, n: u32) {
        let at = self.position(slot);
        self.variables[at] = Variable::Static(n);
    }

    /// Sets a variable of the calling function, or of the script.
    ///
    /// # Errors
    /// A name that the code there never mentions: it has no place for it.
    pub fn assign_outside(&mut self, name: &str, value: Value, base: bool) -> Flow<()> {
        let frames: Vec<&Frame> = (self.frames.iter())
            .filter_map(|a| match a {
                Activation::Code(frame) if frame.code.kind != Kind::Eval => Some(frame),
                _ => None,
            })
            .collect();
        let frame = if base { frames.first() } else { frames.iter().rev().nth(1).or(frames.first()) };
        let Some(frame) = frame else { return Ok(()) };
        if frames.len() == 1 {
            self.set_variable(name, value);
            return Ok(());
        }
        match Self::slot_of(frame, name) {
            Some(slot) => {
                let at = frame.variables + slot;
                self.put_at(at, Some(value));
                Ok(())
            }
            None => fail_id!("Tidemill:not-yet", "assignin: the code there does not mention '{name}'"),
        }
    }
}
