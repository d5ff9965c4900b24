//! Nested functions: which of them a frame may call, and the variables that they share with the functions around them.
//!
//! In: calls and handles of functions that hold nested functions, or are nested. Out: a [`Nest`] for a frame, whose
//! shared variables are bound to its slots. Must hold: NEST-1 of `value/nest.rs`; frames of other functions have none.

use super::Interp;
use super::call::Callee;
use super::frame::{Activation, Variable};
use crate::script::compile::Code;
use crate::script::error::Flow;
use crate::script::syntax::ast::Name;
use crate::script::value::function::Closure;
use crate::script::value::nest::{Content, Nest};
use crate::script::value::{Function, Value};
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use std::sync::Arc;

impl Interp {
    /// The nested function of this name that the innermost frame may call: one inside of its function, or inside of a
    /// function around that.
    pub(super) fn nested_function(&self, name: &str) -> Option<Callee> {
        let nest = self.frame()?.nest.as_ref()?;
        let found = nest.chain().find_map(|nest| {
            let code = nest.code.sharing.as_ref()?.functions.get(name)?;
            Some((code, nest))
        });
        found.map(|(code, nest)| Callee::Nested(code.clone(), nest.clone()))
    }

    /// The names of all nested functions that a frame may call.
    pub(super) fn nested_names(&self, number: usize) -> Arc<FxHashSet<Name>> {
        let Some(nest) = self.nest_in(number) else { return Arc::default() };
        let functions = nest.chain().filter_map(|nest| nest.code.sharing.as_ref()).map(|sharing| &sharing.functions);
        Arc::new(functions.flat_map(|functions| functions.keys().cloned()).collect())
    }

    /// The shared variables that a frame sees.
    pub(super) fn nest_in(&self, number: usize) -> Option<Arc<Nest>> {
        match self.frames.get(number)? {
            Activation::Code(frame) => frame.nest.clone(),
            Activation::Task(_) => None,
        }
    }

    /// Binds the shared variables of a function that is entered to its slots, which begin at `base` and hold its
    /// arguments. Gives the nest that its frame sees: its own where it holds nested functions, otherwise the outer one.
    pub(super) fn share(&mut self, code: &Arc<Code>, base: usize, outer: Option<Arc<Nest>>) -> Option<Arc<Nest>> {
        let sharing = code.sharing.as_ref()?;
        for name in &sharing.outer {
            let nest = outer.as_ref().and_then(|nest| nest.chain().nth(name.between));
            if let Some(shared) = nest.and_then(|nest| nest.variables.get(name.place)) {
                self.variables[base + name.slot as usize] = Variable::Shared(shared.clone());
            }
        }
        if sharing.functions.is_empty() {
            return outer;
        }
        let mut variables = Vec::with_capacity(sharing.owned.len());
        for &slot in &sharing.owned {
            let variable = &mut self.variables[base + slot as usize];
            let content = match std::mem::take(variable) {
                Variable::Value(value) => Content::Value(value),
                _ => Content::Nothing,
            };
            let shared = Arc::new(Mutex::new(content));
            *variable = Variable::Shared(shared.clone());
            variables.push(shared);
        }
        let nest = Arc::new(Nest { code: code.clone(), variables, parent: outer });
        self.nests.add(&nest);
        Some(nest)
    }

    /// Pushes a handle of a nested function, which holds the variables that the function shares.
    pub(super) fn nested_handle(&mut self, name: u32) -> Flow<()> {
        let name = self.code().consts[name as usize].as_text().unwrap_or_default();
        let Some(Callee::Nested(code, nest)) = self.nested_function(&name) else {
            return Err(self.undefined(&name).into());
        };
        let closure = Closure { code, captured: Vec::new(), nest: Some(nest) };
        self.stack.push(Value::Function(Arc::new(Function::Anonymous(Arc::new(closure)))));
        Ok(())
    }
}
