//! Calls: of names, handles and methods with their operands, and the outcomes of builtins.

use super::Interp;
use super::exception::quoted;
use super::frame::{Activation, Return, TaskFrame, Variable};
use super::gathered_call::GatheredCall;
use crate::builtins::args::is_word;
use crate::builtins::system::device;
use crate::builtins::{self, Builtin, Outcome, Scope, Task, TaskStep};
use crate::compile::code::{Count, Slot, Want};
use crate::compile::{self, Code};
use crate::error::{Flow, ScriptError, Stop};
use crate::index::Values;
use crate::library;
use crate::memory;
use crate::output::{Captured, Together};
use crate::source::Source;
use crate::syntax::{self, ast::Name};
use crate::value::function::Closure;
use crate::value::nest::Nest;
use crate::value::{Function, Value};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Arguments of a call.
pub(super) type Args = SmallVec<[Value; 4]>;

/// The function or script that a name stands for.
#[derive(Clone)]
pub enum Callee {
    /// A function of the script or of a function file.
    User(Arc<Code>),
    /// A nested function, with the shared variables of the function around it.
    Nested(Arc<Code>, Arc<Nest>),
    /// A script file, which runs in its caller's variables.
    Script(Arc<syntax::ast::File>),
    /// A function of the language.
    Builtin(&'static Builtin),
}

impl Interp {
    /// How many outputs an instruction asks a function for.
    pub(super) fn outputs_wanted(&self, want: Want) -> usize {
        match want {
            Want::One | Want::First | Want::Further => 1,
            // The body of an anonymous function gives as many outputs as its caller asks for.
            Want::Many(u16::MAX) => self.frame().map_or(1, |f| f.nargout),
            Want::Many(n) => n as usize,
            Want::Targets => self.targets_places(),
        }
    }

    /// Pops arguments and calls the function whose name is this constant.
    pub(super) fn call_named(&mut self, name: u32, count: Count, want: Want) -> Flow<()> {
        let name = self.code().consts[name as usize].clone();
        match name.as_bytes().map(std::str::from_utf8) {
            Some(Ok(name)) => self.call_by_name(name, count, want),
            _ => Ok(()),
        }
    }

    /// Pops arguments and calls the function that a name in code stands for. In code of the library, functions of the
    /// language take precedence over those of the script.
    pub(super) fn call_by_name(&mut self, name: &str, count: Count, want: Want) -> Flow<()> {
        let nargout = self.outputs_wanted(want);
        if let Some(nested) = self.nested_function(name) {
            return self.call_operands(nested, 0, count, want, nargout);
        }
        let home = self.frame().map(|f| f.code.source.home().clone());
        let in_library = self.in_library();
        match self.lookup_from(name, home.as_ref(), in_library, in_library)? {
            Some(callee) => self.call_operands(callee, 0, count, want, nargout),
            None => Err(self.undefined(name).into()),
        }
    }

    /// Pops arguments and the handle that lies `below` them, and calls the handle.
    pub(super) fn call_handle(&mut self, function: &Arc<Function>, below: usize, count: Count, want: Want) -> Flow<()> {
        let nargout = self.outputs_wanted(want);
        match &**function {
            Function::Named(name, source) => match self.lookup_named(name, source.as_ref())? {
                Some(callee) => self.call_operands(callee, below, count, want, nargout),
                None => Err(self.undefined(name).into()),
            },
            Function::Anonymous(closure) => {
                let args = self.take_operands(below, count);
                self.enter_closure(closure, args, Return::Push(want), nargout)
            }
            Function::Method(name, object) => self.call_method(name, object, below, count, want, nargout),
        }
    }

    /// Does `object.name (args)`: on the stack, the object replaces its method below the arguments.
    fn call_method(
        &mut self,
        name: &'static str,
        object: &Value,
        below: usize,
        count: Count,
        want: Want,
        nargout: usize,
    ) -> Flow<()> {
        // A function of the script with this name is no method of the object.
        let (Some(builtin), 1) = (builtins::find(name), below) else { return Err(self.undefined(name).into()) };
        let callee = Callee::Builtin(builtin);
        let at = self.stack.len() - self.count(count) - 1;
        let method = std::mem::replace(&mut self.stack[at], object.clone());
        let counted = match count {
            Count::Fixed(n) => Count::Fixed(n + 1),
            Count::Marked => {
                self.marks.last_mut().into_iter().for_each(|mark| *mark -= 1);
                Count::Marked
            }
        };
        let result = self.call_operands(callee, 0, counted, want, nargout);
        if let Err(Stop::Need(_)) = &result {
            // The instruction will run again, so the stack must be as it was.
            self.stack[at] = method;
            if count == Count::Marked {
                self.marks.last_mut().into_iter().for_each(|mark| *mark += 1);
            }
        }
        result
    }

    /// Takes the arguments, their mark and the `below` operands under them off the stack.
    fn take_operands(&mut self, below: usize, count: Count) -> Args {
        let at = self.stack.len() - self.count(count);
        self.drop_mark(count);
        let args = self.stack.drain(at..).collect();
        self.stack.truncate(at - below);
        args
    }

    fn call_operands(&mut self, callee: Callee, below: usize, count: Count, want: Want, nargout: usize) -> Flow<()> {
        let returns = Return::Push(want);
        let Callee::Builtin(builtin) = callee else {
            let args = self.take_operands(below, count);
            return self.invoke(callee, args, returns, nargout);
        };
        self.bring_to_host(self.count(count))?;
        self.scalars_to_host(self.count(count), false)?;
        let at = self.stack.len() - self.count(count) - below;
        let mark = if count == Count::Marked { self.marks.pop() } else { None };
        let all: Args = self.stack.drain(at..).collect();
        let result = self.run_builtin(builtin, &all[below..], returns, nargout);
        if let Err(Stop::Need(_)) = &result {
            self.stack.truncate(at);
            self.stack.extend(all);
            self.marks.extend(mark);
        }
        result
    }

    /// Returns the error for a name that stands for nothing, with advice on similar names.
    pub fn undefined(&self, name: &str) -> ScriptError {
        let near = self.here().map_or_else(String::new, |place| {
            let at = place.source.position(place.span.start);
            format!(" near line {}, column {}", at.line, at.column)
        });
        let error = ScriptError::with_id("Octave:undefined-function", format!("'{name}' undefined{near}"));
        if let Some(why) = super::suggest::missing(name) {
            return error.helped(why);
        }
        // Variables that have ended at their last use are listed, too.
        let variables = self.slot_names();
        let is_assigned = |slot: usize| self.frame().is_some_and(|frame| self.is_slot_assigned(frame, slot as Slot));
        let known = (variables.iter().enumerate().filter(|(slot, _)| is_assigned(*slot)).map(|(_, name)| &**name))
            .chain(self.functions.keys().chain(self.files.keys()).map(|n| &**n))
            .chain(builtins::families().iter().flat_map(|(_, rows)| rows.iter().map(|b| b.name)))
            .chain(library::families().iter().flat_map(|(_, rows)| rows.iter().map(|w| w.name)));
        let close = super::suggest::closest(name, known);
        match close.as_slice() {
            [] => error,
            names => error.helped(format!("names that are close: {}", names.join(", "))),
        }
    }

    /// Calls a handle.
    pub(super) fn call_function(
        &mut self,
        function: &Arc<Function>,
        args: Args,
        returns: Return,
        nargout: usize,
    ) -> Flow<()> {
        match &**function {
            Function::Named(name, source) => match self.lookup_named(name, source.as_ref())? {
                Some(callee) => self.invoke(callee, args, returns, nargout),
                None => Err(self.undefined(name).into()),
            },
            Function::Anonymous(closure) => self.enter_closure(closure, args, returns, nargout),
            Function::Method(name, object) => match builtins::find(name) {
                Some(builtin) => {
                    let mut all: Args = smallvec::smallvec![object.clone()];
                    all.extend(args);
                    self.invoke(Callee::Builtin(builtin), all, returns, nargout)
                }
                None => Err(self.undefined(name).into()),
            },
        }
    }

    fn enter_closure(&mut self, closure: &Arc<Closure>, args: Args, returns: Return, nargout: usize) -> Flow<()> {
        self.enter(closure.code.clone(), closure.nest.clone(), args, returns, nargout)?;
        let Some(Activation::Code(frame)) = self.frames.last_mut() else { return Ok(()) };
        frame.closure = Some(closure.clone());
        let base = frame.variables;
        for (slot, value) in &closure.captured {
            self.variables[base + *slot as usize] = Variable::Value(value.clone());
        }
        Ok(())
    }

    fn invoke(&mut self, callee: Callee, args: Args, returns: Return, nargout: usize) -> Flow<()> {
        match callee {
            Callee::User(code) => match GatheredCall::of(&code, &args, nargout) {
                Some(task) => self.take_outcome(Outcome::Task(Box::new(task)), returns, nargout),
                None => self.enter(code, None, args, returns, nargout),
            },
            Callee::Nested(code, nest) => self.enter(code, Some(nest), args, returns, nargout),
            Callee::Script(file) => {
                let unit = compile::compile_eval(&file, None, self.known_in(self.frame_in(Scope::Here)), 0)?;
                self.define(&unit);
                self.enter_eval(unit, Scope::Here, returns, 0)
            }
            Callee::Builtin(builtin) => self.run_builtin(builtin, &args, returns, nargout),
        }
    }

    fn run_builtin(&mut self, builtin: &'static Builtin, args: &[Value], returns: Return, nargout: usize) -> Flow<()> {
        let listed = matches!(returns, Return::Push(Want::Many(_) | Want::Targets));
        let nargout = builtins::check_call(builtin, args.len(), nargout, listed)?;
        // Calls with few elements skip the look at the tables of function names.
        if memory::are_many(args) && !memory::makes_nothing(builtin.name) {
            let each = memory::bytes_made_of_each(builtin.name);
            memory::check_operands(&self.env, args, each, memory::stays_small(builtin.name))?;
        }
        if self.env.traces.are_any() {
            self.env.traces.runs(builtin.name);
        }
        let mut outcome = self.with_snapshot(|interp| builtin.call(interp, args, nargout))?;
        if self.env.has_pinned.load(Ordering::Relaxed)
            && let Outcome::Values(values) = &mut outcome
        {
            self.pin_beside(builtin, args, values)?;
        }
        if let Outcome::Values(values) = &outcome {
            values.iter().for_each(|value| self.note_result(args, value));
        }
        self.take_outcome(outcome, returns, nargout)
    }

    /// Pins the results of a builtin as its arguments are.
    fn pin_beside(&self, builtin: &Builtin, args: &[Value], values: &mut Values) -> Flow<()> {
        let stays = device::stays_on_device(builtin);
        // A prototype decides alone.
        let like = args.windows(2).find(|pair| !stays && pair[1].is_dlarray() && is_word(&pair[0], "like"));
        let sources = if stays { args } else { like.map_or(&[][..], |pair| &pair[1..]) };
        let traces = &self.env.traces;
        let is_traced = |value: &Value| matches!(value, Value::Lazy(l) if l.dims.elements() > 0 && traces.follow(l));
        let has_derivatives = stays && !traces.may_read() && traces.are_any() && args.iter().any(is_traced);
        for value in values {
            *value = device::beside(&self.env, sources, std::mem::replace(value, Value::Colon))?;
            // A result without derivatives would pass for a constant.
            if has_derivatives
                && value.is_dlarray()
                && value.class().is_float()
                && !value.is_empty()
                && !is_traced(value)
            {
                return traces.refuse();
            }
        }
        Ok(())
    }

    fn take_outcome(&mut self, outcome: Outcome, returns: Return, nargout: usize) -> Flow<()> {
        match outcome {
            Outcome::Values(mut values) => {
                values.truncate(nargout.max(1));
                match returns {
                    Return::Push(want) => self.push_wanted(values, want),
                    Return::Task => {
                        self.give_task(values);
                        Ok(())
                    }
                    Return::Discard | Return::Session => Ok(()),
                }
            }
            Outcome::Task(task) => {
                let heights = self.heights();
                self.check_depth()?;
                self.frames.push(Activation::Task(TaskFrame { task, last: None, heights, returns, nargout }));
                Ok(())
            }
            Outcome::Call { function, args } => self.call_function(&function, args.into(), returns, nargout),
            Outcome::File { name, text } => {
                let file = syntax::parse(&Source::file(Path::new(&name), text)).map_err(quoted)?;
                self.invoke(Callee::Script(Arc::new(file)), Args::new(), returns, 0)
            }
            Outcome::Eval { text, handler, capture, scope } => {
                let unit =
                    self.evaluated(text, handler, scope, if capture { nargout.saturating_sub(1) } else { nargout })?;
                self.define(&unit);
                self.enter_eval(unit, scope, returns, nargout)?;
                if capture {
                    let captured = Arc::new(Mutex::new(Captured::default()));
                    let output = std::mem::replace(&mut self.env.output, Box::new(Together(captured.clone())));
                    self.captures.push((self.frames.len(), captured, output));
                }
                Ok(())
            }
            Outcome::Assign { name, value, scope } => {
                self.assign_in(scope, &name, value)?;
                // The frames' variables may have moved. Pushing a frame makes the instruction loop read their places
                // again.
                let heights = self.heights();
                let task: Box<dyn Task> = Box::new(Nothing);
                self.frames.push(Activation::Task(TaskFrame { task, last: None, heights, returns, nargout }));
                Ok(())
            }
        }
    }

    /// Compiles an evaluated text, and the text of its error handler, for the variables that they see. If the text
    /// cannot be parsed, only the handler is compiled.
    fn evaluated(
        &mut self,
        text: String,
        handler: Option<String>,
        scope: Scope,
        nargout: usize,
    ) -> Flow<compile::Unit> {
        let frame = self.frame_in(scope);
        let known = self.known_in(frame);
        let is_known = |name: &str| {
            let slot = known.names.iter().position(|n| &**n == name);
            slot.is_some_and(|slot| self.has_value(frame, slot))
        };
        let within = self.source_in(scope);
        let parse =
            |text: String| syntax::parse_with(&Source::evaluated(text, within.clone()), &is_known).map_err(quoted);
        let (file, handler, failed) = match (parse(text), handler) {
            (Ok(file), handler) => (file, handler.map(parse).transpose()?, None),
            (Err(error), Some(handler)) => (parse(handler)?, None, Some(error)),
            (Err(error), None) => return Err(error.into()),
        };
        let unit = compile::compile_eval(&file, handler.as_ref(), known, nargout)?;
        if failed.is_some() {
            self.env.last_error = failed;
        }
        Ok(unit)
    }

    pub(super) fn give_task(&mut self, values: Values) {
        if let Some(Activation::Task(task)) = self.frames.last_mut() {
            task.last = Some(Ok(values));
        }
    }

    /// The name of the innermost function.
    pub fn function_name(&self) -> Name {
        self.frame().map_or_else(|| "".into(), |f| f.code.name.clone())
    }
}

/// Returns the error for value `n` (from 1) of a list that is assigned but lacks this value.
pub(super) fn missing(n: usize) -> ScriptError {
    ScriptError::new(format!("element number {n} undefined in return list"))
}

/// A task that does nothing.
struct Nothing;

impl Task for Nothing {
    fn step(&mut self, _: &mut Interp, _: Option<Result<Values, ScriptError>>) -> Flow<TaskStep> {
        Ok(TaskStep::Done(Values::new()))
    }
}
