//! Calls: finds the function that a name stands for, enters and leaves functions, and runs evaluated text.

use super::Interp;
use super::exception::quoted;
use super::frame::{Activation, Frame, Return, TaskFrame, Variable};
use super::gathered_call::GatheredCall;
use crate::builtins::system::device;
use crate::builtins::{self, Builtin, Outcome, Scope, Task, TaskStep};
use crate::compile::code::{Count, Kind, Slot, Want};
use crate::compile::{self, Code};
use crate::env::{FunctionFiles, add_files};
use crate::error::{Flow, ScriptError, Stop, fail, fail_id};
use crate::index::Values;
use crate::library::{self, Written};
use crate::memory;
use crate::output::{Captured, Together};
use crate::source::{Origin, Source};
use crate::syntax::{self, ast::Name};
use crate::value::function::Closure;
use crate::value::nest::Nest;
use crate::value::{CellArray, Function, Value};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::path::{Path, PathBuf};
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
    /// Finds the function that a name stands for: first among the file's own functions, then in the folder `private`
    /// beside the file, then in files on the path, then among the builtins, then in the library.
    ///
    /// # Errors
    /// A function file that cannot be read or parsed.
    pub fn lookup(&mut self, name: &str) -> Flow<Option<Callee>> {
        if let Some(nested) = self.nested_function(name) {
            return Ok(Some(nested));
        }
        let home = self.frame().map(|f| f.code.source.home().clone());
        let in_library = self.in_library();
        self.lookup_from(name, home.as_ref(), in_library, false)
    }

    /// Finds the function of a handle: as [`Interp::lookup`] does in the text that made the handle.
    pub fn lookup_named(&mut self, name: &str, source: Option<&Arc<Source>>) -> Flow<Option<Callee>> {
        let Some(home) = source.map(Source::home) else { return self.lookup(name) };
        let in_library = home.origin == Origin::Library;
        self.lookup_from(name, Some(home), in_library, in_library)
    }

    /// Finds the function that a name stands for in the file `home`. With `in_library`, it also finds functions that
    /// only the library may call. With `language_first`, builtins and the library take precedence over the script's
    /// functions.
    fn lookup_from(
        &mut self,
        name: &str,
        home: Option<&Arc<Source>>,
        in_library: bool,
        language_first: bool,
    ) -> Flow<Option<Callee>> {
        if let Some(home) = home {
            let of_file = self.locals.get(&(Arc::as_ptr(home) as usize)).and_then(|file| file.get(name));
            let of_session = self.functions.get(name).filter(|code| Arc::ptr_eq(&code.source, home));
            if let Some(code) = of_file.or(of_session) {
                return Ok(Some(Callee::User(code.clone())));
            }
            if !self.env.options.sandbox
                && let Some(path) = home.private(name)
            {
                return self.load_private(path).map(Some);
            }
        }
        if language_first && let Some(callee) = self.lookup_language(name, in_library)? {
            return Ok(Some(callee));
        }
        if let Some(code) = self.functions.get(name) {
            return Ok(Some(Callee::User(code.clone())));
        }
        if let Some(path) = self.files.get(name).cloned() {
            return self.load_file(name, &path).map(Some);
        }
        if !language_first && let Some(callee) = self.lookup_language(name, in_library)? {
            return Ok(Some(callee));
        }
        self.lookup_new(name)
    }

    /// Finds a function file that was written after the folders were read.
    fn lookup_new(&mut self, name: &str) -> Flow<Option<Callee>> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if !name.chars().all(is_name) {
            return Ok(None);
        }
        let file = |folder: &PathBuf| Some(folder.join(format!("{name}.m"))).filter(|path| path.is_file());
        let Some(path) = self.env.function_folders().find_map(file) else { return Ok(None) };
        Arc::make_mut(&mut self.files).insert(name.into(), path.clone());
        self.load_file(name, &path).map(Some)
    }

    /// Finds a builtin or a function of the library.
    fn lookup_language(&mut self, name: &str, in_library: bool) -> Flow<Option<Callee>> {
        if let Some(builtin) = builtins::find(name) {
            return Ok(Some(Callee::Builtin(builtin)));
        }
        let shared = || library::find_shared(name).filter(|_| in_library);
        match library::find(name).or_else(shared) {
            Some(written) => self.load_written(written).map(Some),
            None => Ok(None),
        }
    }

    /// Whether the innermost frame is of a function that a function file defines.
    pub fn is_in_function_file(&self) -> bool {
        self.frame().is_some_and(|f| self.locals.contains_key(&(Arc::as_ptr(&f.code.source) as usize)))
    }

    /// Whether the innermost frame is of a function of the library.
    pub fn in_library(&self) -> bool {
        self.frame().is_some_and(|f| library::holds(&f.code))
    }

    /// Loads a function of the library, and the other functions of its text.
    fn load_written(&mut self, written: &'static Written) -> Flow<Callee> {
        let loaded = written.load()?;
        let address = Arc::as_ptr(&loaded.code.source) as usize;
        self.locals.entry(address).or_insert_with(|| (*loaded.functions).clone());
        Ok(Callee::User(loaded.code))
    }

    /// Reads a file of a folder `private`, once. Only the files beside that folder see it.
    fn load_private(&mut self, path: &Path) -> Flow<Callee> {
        if let Some(callee) = self.privates.get(path) {
            return Ok(callee.clone());
        }
        let callee = self.read_file(path)?;
        self.privates.insert(path.into(), callee.clone());
        Ok(callee)
    }

    /// Reads a function file, or a script file.
    fn load_file(&mut self, name: &str, path: &Path) -> Flow<Callee> {
        let callee = self.read_file(path)?;
        if let Callee::User(code) = &callee {
            self.functions.insert(name.into(), code.clone());
        }
        Ok(callee)
    }

    fn read_file(&mut self, path: &Path) -> Flow<Callee> {
        let stamp = std::fs::metadata(path).ok().and_then(|found| Some((found.modified().ok()?, found.len())));
        if let Some((of, code)) = self.read.get(path)
            && stamp == Some(*of)
            && self.locals.contains_key(&(Arc::as_ptr(&code.source) as usize))
        {
            return Ok(Callee::User(code.clone()));
        }
        let text = match std::fs::read(path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) => return fail!("could not read {}: {error}", path.display()),
        };
        let source = Source::file(path, text);
        let mut file = syntax::parse(&source).map_err(quoted)?;
        if !file.begins_with_function {
            return Ok(Callee::Script(Arc::new(file)));
        }
        // A call by the file's name means its first function, so statements behind the functions are dropped.
        file.body.clear();
        file.is_function_file = true;
        let mut unit = compile::compile(&file, true)?;
        let first = unit.first_function.as_ref().and_then(|f| unit.functions.get(f)).cloned();
        // The first function is called by the file's name, whatever name it is declared with.
        let declared = unit.first_function.filter(|name| path.file_stem().is_some_and(|stem| stem != &**name));
        declared.map(|name| unit.functions.remove(&name));
        self.locals.insert(Arc::as_ptr(&source) as usize, unit.functions);
        match first {
            Some(code) => {
                if let Some(stamp) = stamp {
                    self.read.insert(path.into(), (stamp, code.clone()));
                }
                Ok(Callee::User(code))
            }
            None => fail!("{} defines no function", path.display()),
        }
    }

    /// Adds a folder in which function files are looked for: before the other added folders, or after them.
    pub fn add_folder(&mut self, folder: PathBuf, first: bool) {
        let added = &mut self.env.added;
        added.retain(|other| *other != folder);
        added.insert(if first { 0 } else { added.len() }, folder);
        self.find_files_again();
    }

    /// Sets the folders in which function files are looked for, instead of those that were added before.
    pub fn set_folders(&mut self, folders: Vec<PathBuf>) {
        self.env.added = folders;
        self.find_files_again();
    }

    /// Removes a folder from those in which function files are looked for.
    pub fn remove_folder(&mut self, folder: &Path) {
        self.env.added.retain(|other| other != folder);
        self.find_files_again();
    }

    /// Makes this the folder to which file names are relative. Functions in it take precedence, and those of the
    /// previous folder are no longer found.
    pub fn go_to(&mut self, folder: PathBuf) {
        self.env.folder = Some(folder);
        self.find_files_again();
    }

    /// Reads the names of the function files again: in the folder of `cd`, the script's own, and the added ones.
    /// Functions whose names now stand for another file, or none, are forgotten.
    fn find_files_again(&mut self) {
        let mut files = FunctionFiles::default();
        self.env.function_folders().for_each(|folder| add_files(&mut files, folder));
        let before = std::mem::replace(&mut self.files, Arc::new(files));
        let files = &self.files;
        self.functions.retain(|name, code| match before.get(name) {
            Some(file) if code.source.is_file(file) => files.get(name) == Some(file),
            _ => true,
        });
    }

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
        let mut outcome = self.with_snapshot(|interp| builtin.call(interp, args, nargout))?;
        if self.env.has_pinned.load(Ordering::Relaxed)
            && let Outcome::Values(values) = &mut outcome
            && device::stays_on_device(builtin)
        {
            for value in values {
                *value = device::beside(&self.env, args, std::mem::replace(value, Value::Colon))?;
            }
        }
        if let Outcome::Values(values) = &outcome {
            values.iter().for_each(|value| self.note_result(args, value));
        }
        self.take_outcome(outcome, returns, nargout)
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

    fn give_task(&mut self, values: Values) {
        if let Some(Activation::Task(task)) = self.frames.last_mut() {
            task.last = Some(Ok(values));
        }
    }

    fn check_depth(&self) -> Flow<()> {
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
    fn enter(
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
    fn enter_eval(&mut self, unit: compile::Unit, scope: Scope, returns: Return, nargout: usize) -> Flow<()> {
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

    /// The name of the innermost function.
    pub fn function_name(&self) -> Name {
        self.frame().map_or_else(|| "".into(), |f| f.code.name.clone())
    }
}

/// Returns the error for value `n` (from 1) of a list that is assigned but lacks this value.
pub(super) fn missing(n: usize) -> ScriptError {
    ScriptError::new(format!("element number {n} undefined in return list"))
}

/// Returns the error for an output that its function did not set, with the place that declares it.
fn unset_output(code: &Code, i: usize, slot: Slot) -> ScriptError {
    let near = code.output_spans.get(i).map_or_else(String::new, |span| {
        let at = code.source.position(span.start);
        format!(" near line {}, column {}", at.line, at.column)
    });
    ScriptError::with_id("Octave:undefined-function", format!("'{}' undefined{near}", code.names[slot as usize]))
}

/// A task that does nothing.
struct Nothing;

impl Task for Nothing {
    fn step(&mut self, _: &mut Interp, _: Option<Result<Values, ScriptError>>) -> Flow<TaskStep> {
        Ok(TaskStep::Done(Values::new()))
    }
}
