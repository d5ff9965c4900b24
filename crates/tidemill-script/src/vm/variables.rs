//! Access to variables: by slot for instructions, and by name for functions that ask.

use super::Interp;
use super::frame::{Activation, Frame, Variable};
use crate::builtins::Scope;
use crate::compile::code::{Kind, Slot};
use crate::compile::{Code, Known};
use crate::error::{Flow, fail, fail_id};
use crate::library;
use crate::source::{Place, Source};
use crate::syntax::ast::Name;
use crate::value::Value;
use crate::value::nest::{Content, Shared};
use smallvec::SmallVec;
use std::sync::Arc;

/// A variable as `whos` lists it.
pub struct Described {
    /// Its name.
    pub name: Name,
    /// Its value.
    pub value: Value,
    /// Whether it is a parameter of the function.
    pub formal: bool,
    /// Whether it is global.
    pub global: bool,
    /// Whether it is persistent.
    pub persistent: bool,
}

impl Interp {
    /// Returns the innermost frame's variables that have values, with their properties.
    pub fn described_variables(&self) -> Vec<Described> {
        let Some(frame) = self.frame() else { return Vec::new() };
        let frames = self.frames.iter().rev().filter_map(|a| match a {
            Activation::Code(frame) => Some(frame),
            Activation::Task(_) => None,
        });
        // Evaluated text runs in the variables of the function below it, so that function's parameters count.
        let params = frames.into_iter().find(|f| !f.shares).map_or(&[][..], |f| &f.code.params[..]);
        let is_static = |at: usize| self.static_at(at).is_some();
        self.named_slots()
            .filter_map(|(i, name)| {
                let at = frame.variables + i;
                let global = self.is_global(&name);
                Some(Described {
                    value: self.value_at(at)?,
                    formal: params.contains(&Some(i as Slot)),
                    persistent: is_static(at) && !global,
                    global,
                    name,
                })
            })
            .collect()
    }

    /// Returns the innermost scope's name for `whos`: `top scope`, or the function and its file.
    pub fn scope_name(&self) -> String {
        let frames = self.frames.iter().rev().filter_map(|a| match a {
            Activation::Code(frame) => Some(frame),
            Activation::Task(_) => None,
        });
        match frames.into_iter().find(|f| !f.shares) {
            Some(frame) if frame.code.kind == Kind::Function => {
                let path = std::path::Path::new(&*frame.code.source.name);
                let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
                format!("{}: {}", frame.code.name, path.display())
            }
            _ => "top scope".into(),
        }
    }

    /// If the innermost code is the library's: returns the library function that the script's own code called, and the
    /// place of that call.
    pub fn called_of_library(&self) -> (Option<Name>, Option<Place>) {
        let mut called = None;
        for activation in self.frames.iter().rev() {
            let Activation::Code(frame) = activation else { continue };
            if !library::holds(&frame.code) {
                return (called, Some(self.place_of(frame)));
            }
            called = Some(frame.code.name.clone());
        }
        (called, None)
    }

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

    pub(super) fn position(&self, slot: Slot) -> usize {
        self.frame().map_or(0, |f| f.variables) + slot as usize
    }

    /// A variable's value.
    pub(super) fn slot_value(&self, slot: Slot) -> Option<Value> {
        self.value_at(self.position(slot))
    }

    pub(super) fn value_at(&self, at: usize) -> Option<Value> {
        match self.variables.get(at)? {
            Variable::Undefined => None,
            Variable::Value(value) => Some(value.clone()),
            Variable::Static(n) => self.statics[*n as usize].clone(),
            Variable::Shared(shared) => match &*shared.lock() {
                Content::Nothing => None,
                Content::Value(value) => Some(value.clone()),
                Content::Static(n) => self.statics[*n as usize].clone(),
            },
        }
    }

    pub(super) fn is_defined(&self, slot: Slot) -> bool {
        match self.variables.get(self.position(slot)) {
            Some(Variable::Value(_)) => true,
            Some(Variable::Static(n)) => self.statics[*n as usize].is_some(),
            Some(Variable::Shared(shared)) => match &*shared.lock() {
                Content::Nothing => false,
                Content::Value(_) => true,
                Content::Static(n) => self.statics[*n as usize].is_some(),
            },
            _ => false,
        }
    }

    /// Moves a variable's value out; the caller puts it back changed.
    pub(super) fn take_slot(&mut self, slot: Slot) -> Option<Value> {
        let at = self.position(slot);
        match &mut self.variables[at] {
            Variable::Undefined => None,
            Variable::Static(n) => self.statics[*n as usize].take(),
            Variable::Shared(shared) => {
                let mut content = shared.lock();
                match &mut *content {
                    Content::Static(n) => self.statics[*n as usize].take(),
                    content => match std::mem::take(content) {
                        Content::Value(value) => Some(value),
                        _ => None,
                    },
                }
            }
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

    pub(super) fn put_at(&mut self, at: usize, value: Option<Value>) {
        match &mut self.variables[at] {
            Variable::Static(n) => self.statics[*n as usize] = value,
            Variable::Shared(shared) => put_shared(shared, &mut self.statics, value),
            variable => *variable = value.map_or(Variable::Undefined, Variable::Value),
        }
    }

    /// Sets a variable by its index among all variables.
    pub(super) fn set_slot(&mut self, at: usize, value: Value) {
        self.put_at(at, Some(value));
    }

    pub(super) fn clear_slot(&mut self, slot: Slot) {
        let at = self.position(slot);
        if let Variable::Value(_) = self.variables[at] {
            self.variables[at] = Variable::Undefined;
        }
    }

    /// Stores into a variable that the fast loop cannot set: a global, an undefined value, or within a `try`.
    pub(super) fn store_slow(&mut self, slot: Slot) -> Flow<()> {
        match self.stack.pop() {
            Some(Value::Colon) | None => {
                fail!("value on right hand side of assignment is undefined")
            }
            Some(value) => {
                self.overwrites(slot, &value);
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

    pub(super) fn slot_of(frame: &Frame, name: &str) -> Option<usize> {
        let names = frame.code.names.iter().chain(&frame.extra);
        names.into_iter().position(|n| &**n == name)
    }

    /// Returns the names of the innermost frame's slots, including those that evaluated text added.
    pub(super) fn slot_names(&self) -> Vec<Name> {
        self.frame().map_or(Vec::new(), |f| f.code.names.iter().chain(&f.extra).cloned().collect())
    }

    /// The value of the innermost frame's variable of this name.
    pub fn variable(&self, name: &str) -> Option<Value> {
        let frame = self.frame()?;
        self.value_at(frame.variables + Self::slot_of(frame, name)?)
    }

    /// Whether the innermost frame's code assigns this name anywhere. Then it is a variable, even if its last use has
    /// moved the value out.
    pub fn is_assigned(&self, name: &str) -> bool {
        let Some(frame) = self.frame() else { return false };
        let Some(slot) = Self::slot_of(frame, name) else { return false };
        self.is_slot_assigned(frame, slot as Slot)
    }

    /// Asks the same for a slot of this frame, which is the innermost one.
    pub(super) fn is_slot_assigned(&self, frame: &Frame, slot: Slot) -> bool {
        self.is_defined(slot)
            || frame.closure.as_ref().is_some_and(|closure| closure.captured.iter().any(|(s, _)| *s == slot))
            || frame.code.assigned.contains(&slot)
    }

    /// Sets the innermost frame's variable of this name.
    ///
    /// # Errors
    /// The function's workspace is static, and has no such variable.
    pub fn set_variable(&mut self, name: &str, value: Value) -> Flow<()> {
        self.assign_in(Scope::Here, name, value)
    }

    /// Returns the index of the frame whose variables a text sees.
    pub(super) fn frame_in(&self, scope: Scope) -> usize {
        let is_code = |i: &usize| matches!(self.frames[*i], Activation::Code(_));
        let shares = |i: usize| matches!(&self.frames[i], Activation::Code(frame) if frame.shares);
        let here = (0..self.frames.len()).rev().find(is_code).unwrap_or(0);
        match scope {
            Scope::Here => here,
            Scope::Base => (0..self.frames.len()).find(is_code).unwrap_or(0),
            Scope::Caller => {
                // The function that asks may do so in a text of `eval`, which shares its variables.
                let own = (0..=here).rev().filter(is_code).find(|&i| !shares(i)).unwrap_or(here);
                (0..own).rev().find(is_code).unwrap_or(own)
            }
        }
    }

    /// Returns the file whose functions a text can call that is evaluated in this scope.
    pub(super) fn source_in(&self, scope: Scope) -> Option<Arc<Source>> {
        self.frame_at(self.frame_in(scope)).map(|frame| frame.code.source.home().clone())
    }

    fn frame_at(&self, number: usize) -> Option<&Frame> {
        match self.frames.get(number) {
            Some(Activation::Code(frame)) => Some(frame),
            _ => None,
        }
    }

    /// Returns the index of a frame's first variable.
    pub(super) fn variables_of(&self, number: usize) -> usize {
        self.frame_at(number).map_or(0, |f| f.variables)
    }

    /// Returns the names of a frame's slots, including those that evaluated text added.
    pub(super) fn names_in(&self, number: usize) -> Vec<Name> {
        self.frame_at(number).map_or(Vec::new(), |f| f.code.names.iter().chain(&f.extra).cloned().collect())
    }

    /// Returns the number of a frame's slots.
    pub(super) fn count_names_in(&self, number: usize) -> usize {
        self.frame_at(number).map_or(0, |f| f.code.names.len() + f.extra.len())
    }

    /// Describes a frame's variables to the compiler, for a text that runs in them.
    pub(super) fn known_in(&self, number: usize) -> Known {
        let names = self.names_in(number);
        // Texts that run in the frame share its variables.
        let base = self.variables_of(number);
        let sharing = self.frames.iter().filter_map(|activation| match activation {
            Activation::Code(frame) if frame.variables == base => Some(&frame.code.hidden),
            _ => None,
        });
        let used: SmallVec<[Slot; 4]> = sharing.flatten().copied().collect();
        let is_spare = |&(slot, name): &(usize, &Name)| is_hidden(name) && !used.contains(&(slot as Slot));
        let spare = names.iter().enumerate().filter(is_spare).map(|(_, name)| name.clone()).collect();
        Known { names, spare, nested_functions: self.nested_names(number) }
    }

    /// Whether a frame's variable has a value.
    pub(super) fn has_value(&self, number: usize, slot: usize) -> bool {
        self.value_at(self.variables_of(number) + slot).is_some()
    }

    /// Adds a variable to a frame, behind its others. Variables of the frames above it move.
    pub(super) fn add_variable(&mut self, number: usize, name: Name) -> usize {
        let Some(frame) = self.frame_at(number) else { return 0 };
        let (base, count) = (frame.variables, frame.code.names.len() + frame.extra.len());
        let at = base + count;
        self.variables.insert(at, Variable::Undefined);
        for (i, activation) in self.frames.iter_mut().enumerate() {
            if let Activation::Code(frame) = activation {
                // Evaluated text shares its caller's variables, so all frames over the same variables learn the name.
                let same = frame.variables == base && frame.code.names.len() + frame.extra.len() == count;
                if same && (i <= number || frame.shares) {
                    frame.extra.push(name.clone());
                } else if frame.variables >= at {
                    frame.variables += 1;
                }
            }
        }
        at
    }

    /// Returns the place at which the running function was called.
    pub fn calling_place(&self) -> Option<crate::source::Place> {
        let caller = self.frame_in(Scope::Caller);
        (caller < self.frame_in(Scope::Here)).then(|| self.frame_at(caller).map(|f| self.place_of(f)))?
    }

    /// Whether the variable has a value in the caller of the innermost function.
    pub fn caller_has(&self, name: &str) -> bool {
        let caller = self.frame_in(Scope::Caller);
        let at = self.frame_at(caller).and_then(|frame| Self::slot_of(frame, name));
        at.is_some_and(|at| self.has_value(caller, at))
    }

    /// Returns the innermost frame's slots, except those of hidden variables.
    fn named_slots(&self) -> impl Iterator<Item = (usize, Name)> {
        self.slot_names().into_iter().enumerate().filter(|(_, name)| !is_hidden(name))
    }

    /// The innermost frame's variables that have values, in order of their slots.
    pub fn variables(&self) -> Vec<(Name, Value)> {
        let Some(frame) = self.frame() else { return Vec::new() };
        self.named_slots().filter_map(|(i, name)| Some((name, self.value_at(frame.variables + i)?))).collect()
    }

    /// Removes the innermost frame's variables whose names match.
    pub fn clear_variables(&mut self, fits: impl Fn(&str) -> bool) {
        let Some(base) = self.frame().map(|f| f.variables) else { return };
        for (i, name) in self.slot_names().iter().enumerate() {
            if fits(name) {
                match &mut self.variables[base + i] {
                    Variable::Shared(shared) => drop(std::mem::take(&mut *shared.lock())),
                    variable => *variable = Variable::Undefined,
                }
            }
        }
    }

    /// Makes functions whose names match forget their persistent variables. Functions of files are read again at their
    /// next call.
    pub fn clear_functions(&mut self, fits: impl Fn(&str) -> bool) {
        self.clear_persistents(&fits);
        let files = &self.files;
        let is_of_file = |name: &Name, code: &Code| files.get(name).is_some_and(|path| code.source.is_file(path));
        self.functions.retain(|name, code| !(fits(name) && is_of_file(name, code)));
        self.read.retain(|_, (_, code)| !fits(&code.name));
        self.privates.retain(|path, _| !path.file_stem().and_then(|stem| stem.to_str()).is_some_and(&fits));
    }

    /// Returns the number of arguments of the innermost function's call; `None` at a script's top level.
    pub fn nargin(&self) -> Option<usize> {
        self.called_frame().map(|f| f.nargin)
    }

    /// Returns the number of outputs that the innermost function's caller asked for.
    pub fn nargout(&self) -> Option<usize> {
        self.function_frame().map(|f| f.nargout)
    }

    /// Returns the frame of the innermost function, named or anonymous; `None` at a script's top level.
    fn called_frame(&self) -> Option<&Frame> {
        let mut frames = self.frames.iter().rev().filter_map(|a| match a {
            Activation::Code(frame) => Some(frame),
            Activation::Task(_) => None,
        });
        let frame = frames.find(|f| f.code.kind != Kind::Eval)?;
        (frame.code.kind != Kind::Script).then_some(frame)
    }

    fn function_frame(&self) -> Option<&Frame> {
        self.called_frame().filter(|f| f.code.kind == Kind::Function)
    }

    /// Sets a variable of the calling function, or of the script.
    pub(super) fn assign_in(&mut self, scope: Scope, name: &str, value: Value) -> Flow<()> {
        let number = self.frame_in(scope);
        let Some(frame) = self.frame_at(number) else { return Ok(()) };
        let at = match Self::slot_of(frame, name) {
            Some(slot) => frame.variables + slot,
            None => {
                self.check_may_add(number, name)?;
                self.add_variable(number, name.into())
            }
        };
        self.put_at(at, Some(value));
        Ok(())
    }

    /// Fails if a text may not add this variable to a frame: functions that are nested, or contain nested ones, have
    /// only the variables that their text names. `ans` is always there.
    pub(super) fn check_may_add(&self, number: usize, name: &str) -> Flow<()> {
        let frames = self.frames[..=number.min(self.frames.len().saturating_sub(1))].iter().rev();
        let own = frames.into_iter().find_map(|activation| match activation {
            Activation::Code(frame) if !frame.shares => Some(frame),
            _ => None,
        });
        if own.is_some_and(|frame| frame.code.sharing.is_some()) && name != "ans" && !name.starts_with('(') {
            return fail_id!("Octave:static-workspace", "can not add variable \"{name}\" to a static workspace");
        }
        Ok(())
    }
}

/// Gives a shared variable a value. The old value is dropped after the lock is released, since the end of a handle may
/// reach this variable.
fn put_shared(shared: &Shared, statics: &mut [Option<Value>], value: Option<Value>) {
    let mut content = shared.lock();
    let before = match &mut *content {
        Content::Static(n) => std::mem::replace(&mut statics[*n as usize], value).map(Content::Value),
        content => Some(std::mem::replace(content, value.map_or(Content::Nothing, Content::Value))),
    };
    drop(content);
    drop(before);
}

/// Whether an assignment made the variable for its own use. A script cannot write such a name.
fn is_hidden(name: &Name) -> bool {
    name.starts_with('(')
}

#[cfg(test)]
mod tests {
    use crate::rig;
    use crate::source::{SESSION, Source};
    use crate::vm::{Interp, drive};
    use futures::executor::block_on;

    #[test]
    fn texts_of_a_session_keep_subscripts_in_the_same_hidden_variable() {
        let (env, printed) = rig::env_with(Default::default());
        let mut interp = Interp::new(env);
        interp.begin_session();
        let texts = [
            "h = [0 0 0];",
            "h(randi (3)) += 1;",
            "eval ('h(randi (3)) += 2;')",
            "h(randi (3)) += [1 2; 3 4] * [1 2 3];",
            "h(randi (3)) += 3; printf ('%d', sum (h))",
        ];
        for text in texts {
            interp.begin_text(&Source::given(SESSION, text)).unwrap();
            block_on(drive(&mut interp));
            interp.abandon();
        }
        assert_eq!(String::from_utf8_lossy(&printed.lock().out), "6");
        let names = interp.names_in(0);
        assert_eq!(names.iter().filter(|name| super::is_hidden(name)).count(), 1, "{names:?}");
    }
}
