//! Frames: entering them with arguments, leaving them, and delivering their outputs.

use super::Interp;
use super::call::Args;
use super::frame::{Activation, Frame, Return, Variable};
use crate::builtins::{self, Scope};
use crate::compile::code::{Kind, Slot, Want};
use crate::compile::{self, Code};
use crate::error::{Flow, ScriptError, fail, fail_id};
use crate::index::Values;
use crate::library;
use crate::value::nest::Nest;
use crate::value::{CellArray, Value};
use std::sync::Arc;

impl Interp {
    pub(super) fn check_depth(&self) -> Flow<()> {
        if self.frames.len() > self.env.options.recursion_max {
            return fail!("max_recursion_depth exceeded");
        }
        Ok(())
    }

    /// Pushes a script's statements as the outermost frame.
    pub(super) fn push_script(&mut self, code: Arc<Code>) {
        let variables = self.variables.len();
        self.variables.resize(variables + code.names.len(), Variable::Undefined);
        let frame = self.new_frame(code, variables, 0, 0, Return::Discard);
        self.frames.push(Activation::Code(frame));
    }

    fn new_frame(&self, code: Arc<Code>, variables: usize, nargin: usize, nargout: usize, returns: Return) -> Frame {
        Frame {
            code,
            pc: 0,
            variables,
            heights: self.heights(),
            nargin,
            nargout,
            returns,
            extra: Vec::new(),
            caught: None,
            held: Vec::new(),
            closure: None,
            nest: None,
            shares: false,
            is_session: false,
        }
    }

    /// Enters a function. `nest` holds the shared variables around a nested function, or around an anonymous function
    /// that calls nested ones.
    pub(super) fn enter(
        &mut self,
        code: Arc<Code>,
        nest: Option<Arc<Nest>>,
        args: Args,
        returns: Return,
        nargout: usize,
    ) -> Flow<()> {
        self.check_depth()?;
        let nargin = args.len();
        let name = if code.text.is_empty() { &*code.name } else { "@<anonymous>" };
        if nargin > code.params.len() && code.varargin.is_none() {
            if let Some(written) = library::find(name).filter(|_| library::holds(&code))
                && builtins::counts::is_built_in_there(name)
            {
                return builtins::invalid_call(name, written.usage);
            }
            return fail_id!("Octave:invalid-fun-call", "{name}: function called with too many inputs");
        }
        if nargout > code.outputs.len() && code.varargout.is_none() && code.kind == Kind::Function {
            return fail_id!("Octave:invalid-fun-call", "{name}: function called with too many outputs");
        }
        let variables = self.variables.len();
        self.variables.resize(variables + code.names.len(), Variable::Undefined);
        let mut args = args.into_iter();
        for (param, arg) in code.params.iter().zip(args.by_ref()) {
            if let Some(slot) = param
                && !matches!(arg, Value::Colon)
            {
                self.variables[variables + *slot as usize] = Variable::Value(arg);
            } else if let Some(slot) = param {
                self.variables[variables + *slot as usize] = Variable::Value(Value::string(":"));
            }
        }
        if let Some(slot) = code.varargin {
            let rest: Vec<Value> = args.collect();
            let cell =
                if rest.is_empty() { CellArray::new(crate::value::Dims::zero(), rest) } else { CellArray::row(rest) };
            self.variables[variables + slot as usize] = Variable::Value(Value::Cell(Arc::new(cell)));
        }
        let nest = if code.sharing.is_some() { self.share(&code, variables, nest) } else { nest };
        let frame = Frame { nest, ..self.new_frame(code, variables, nargin, nargout, returns) };
        self.frames.push(Activation::Code(frame));
        Ok(())
    }

    /// Enters evaluated text, in the variables of a frame.
    pub(super) fn enter_eval(
        &mut self,
        unit: compile::Unit,
        scope: Scope,
        returns: Return,
        nargout: usize,
    ) -> Flow<()> {
        self.check_depth()?;
        let target = self.frame_in(scope);
        let known = self.count_names_in(target);
        for (slot, name) in unit.main.names.iter().enumerate().skip(known) {
            if unit.main.assigned.contains(&(slot as Slot)) {
                self.check_may_add(target, name)?;
            }
        }
        for name in &unit.main.names[known.min(unit.main.names.len())..] {
            self.add_variable(target, name.clone());
        }
        self.remember_text(unit.main.clone());
        let variables = self.variables_of(target);
        let mut frame = self.new_frame(unit.main, variables, 0, nargout, returns);
        frame.shares = true;
        frame.nest = self.nest_in(target);
        self.frames.push(Activation::Code(frame));
        Ok(())
    }

    /// Enters a text of a session.
    pub(super) fn enter_text(&mut self, unit: compile::Unit) {
        // The depth cannot be exceeded, since the session's frame is the only one.
        let _ = self.enter_eval(unit, Scope::Here, Return::Session, 0);
    }

    /// Ends the innermost frame, and delivers its outputs to its caller.
    pub(super) fn return_from_frame(&mut self) -> Flow<()> {
        let Some(Activation::Code(frame)) = self.frames.last() else { return Ok(()) };
        let (code, returns, nargout) = (frame.code.clone(), frame.returns, frame.nargout);
        let (variables, heights) = (frame.variables, frame.heights);
        let captured = self.captures.last().is_some_and(|c| c.0 == self.frames.len());
        let values: Values = match code.kind {
            Kind::Function => self.outputs(&code, variables, nargout, returns)?,
            Kind::Anonymous => self.above_mark(heights.marks),
            Kind::Eval if self.marks.len() > heights.marks => self.above_mark(heights.marks),
            Kind::Eval | Kind::Script => Values::new(),
        };
        if returns == Return::Discard {
            self.workspace = self.variables();
        }
        let text = captured.then(|| self.end_capture());
        self.drop_frame();
        match text {
            Some(text) => {
                let values = std::iter::once(Value::string(text)).chain(values).collect();
                self.deliver(values, returns, nargout)
            }
            None => self.deliver(values, returns, nargout),
        }
    }

    fn above_mark(&mut self, mark: usize) -> Values {
        let at = self.marks.get(mark).copied().unwrap_or(0).min(self.stack.len());
        self.stack.drain(at..).collect()
    }

    fn end_capture(&mut self) -> Vec<u8> {
        let Some((_, captured, output)) = self.captures.pop() else { return Vec::new() };
        self.env.output = output;

        std::mem::take(&mut captured.lock().out)
    }

    /// Returns the values of a function's outputs: `nargout` of them, and one more than none if the first is set. If
    /// the outputs are assigned to a list, an output that is not set becomes a colon, since its target may be `~`.
    fn outputs(&mut self, code: &Arc<Code>, variables: usize, nargout: usize, returns: Return) -> Flow<Values> {
        let mut values = Values::new();
        self.unset.clear();
        let are_assigned = nargout > 1 && matches!(returns, Return::Push(Want::Many(_) | Want::Targets));
        for (i, &slot) in code.outputs.iter().enumerate().take(nargout.max(1)) {
            match self.slot_value(slot) {
                Some(value) => {
                    if let Variable::Value(_) = self.variables[variables + slot as usize] {
                        self.variables[variables + slot as usize] = Variable::Undefined;
                    }
                    values.push(value);
                }
                None if are_assigned => {
                    self.unset.push((i, unset_output(code, i, slot)));
                    values.push(Value::Colon);
                }
                None if i < nargout => return Err(unset_output(code, i, slot).into()),
                None => break,
            }
        }
        if let Some(slot) = code.varargout
            && values.len() == code.outputs.len()
            && let Some(Value::Cell(cell)) = self.slot_value(slot)
        {
            let more = nargout.max(1).saturating_sub(values.len());
            values.extend(cell.items.iter().take(more).cloned());
        }
        Ok(values)
    }

    /// Fails if the last call left an output unset that is assigned, before any of them is assigned. `ignored` tells
    /// which outputs, from 0 on, go to a `~`.
    pub(super) fn all_set(&mut self, ignored: impl Fn(usize) -> bool) -> Flow<()> {
        match std::mem::take(&mut self.unset).into_iter().find(|(i, _)| !ignored(*i)) {
            Some((_, error)) => Err(error.into()),
            None => Ok(()),
        }
    }

    /// Drops the innermost frame, and all that belongs to it.
    pub(super) fn drop_frame(&mut self) {
        while self.captures.last().is_some_and(|c| c.0 >= self.frames.len()) {
            self.end_capture();
        }
        match self.frames.pop() {
            Some(Activation::Code(frame)) => {
                self.cut(frame.heights);
                if !frame.shares {
                    self.variables.truncate(frame.variables);
                }
            }
            Some(Activation::Task(task)) => self.cut(task.heights),
            None => {}
        }
    }

    /// Passes the outputs of a call to the frame that is now innermost.
    pub(super) fn deliver(&mut self, mut values: Values, returns: Return, nargout: usize) -> Flow<()> {
        values.truncate(nargout.max(1));
        match returns {
            Return::Push(want) => {
                self.push_wanted(values, want)?;
                if let Some(Activation::Code(frame)) = self.frames.last_mut() {
                    frame.pc += 1;
                }
            }
            Return::Task if values.iter().any(|v| matches!(v, Value::Colon)) => {
                return fail!("some elements undefined in return list");
            }
            Return::Task => self.give_task(values),
            Return::Discard | Return::Session => {}
        }
        Ok(())
    }
}

/// Returns the error for an output that its function did not set, with the place that declares it.
fn unset_output(code: &Code, i: usize, slot: Slot) -> ScriptError {
    let near = code.output_spans.get(i).map_or_else(String::new, |span| {
        let at = code.source.position(span.start);
        format!(" near line {}, column {}", at.line, at.column)
    });
    ScriptError::with_id("Octave:undefined-function", format!("'{}' undefined{near}", code.names[slot as usize]))
}
