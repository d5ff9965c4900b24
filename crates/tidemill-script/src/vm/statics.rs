//! Global and persistent variables: values that outlive the frame that names them.

use super::Interp;
use super::frame::Variable;
use crate::compile::Code;
use crate::compile::code::Slot;
use crate::syntax::ast::Name;
use crate::value::nest::Content;
use std::sync::Arc;

impl Interp {
    /// Removes globals whose names match.
    pub fn clear_globals(&mut self, fits: impl Fn(&str) -> bool) {
        for (name, &n) in &self.globals {
            if fits(name) {
                self.statics[n as usize] = None;
            }
        }
        self.globals.retain(|name, _| !fits(name));
    }

    /// The names of all globals, in no order.
    pub fn global_names(&self) -> Vec<Name> {
        self.globals.keys().cloned().collect()
    }

    pub(super) fn clear_persistents(&mut self, fits: impl Fn(&str) -> bool) {
        let locals = self.locals.values().flatten();
        let mut open: Vec<&Arc<Code>> =
            self.functions.iter().chain(locals).filter(|(name, _)| fits(name)).map(|(_, code)| code).collect();
        let mut codes: Vec<u32> = Vec::new();
        while let Some(code) = open.pop() {
            codes.push(code.id);
            open.extend(code.nested());
        }
        for ((code, _), &n) in &self.persistents {
            if codes.contains(code) {
                self.statics[n as usize] = None;
            }
        }
    }

    /// Whether the innermost frame's variable of this name is a global.
    pub fn is_global(&self, name: &str) -> bool {
        let Some(frame) = self.frame() else { return false };
        let Some(slot) = Self::slot_of(frame, name) else { return false };
        self.static_at(frame.variables + slot).is_some_and(|n| self.globals.get(name) == Some(&n))
    }

    /// Returns the number of the global or persistent variable in this place.
    pub(super) fn static_at(&self, at: usize) -> Option<u32> {
        match self.variables.get(at)? {
            Variable::Static(n) => Some(*n),
            Variable::Shared(shared) => match &*shared.lock() {
                Content::Static(n) => Some(*n),
                _ => None,
            },
            _ => None,
        }
    }

    /// Turns a variable into the global of its name.
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

    /// Turns a variable into a persistent one of its function.
    pub(super) fn make_persistent(&mut self, slot: Slot) {
        let key = (self.code().id, slot);
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
        match &mut self.variables[at] {
            Variable::Shared(shared) => *shared.lock() = Content::Static(n),
            variable => *variable = Variable::Static(n),
        }
    }
}
