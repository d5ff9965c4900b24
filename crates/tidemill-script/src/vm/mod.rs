//! The machine that runs compiled code: its frames, operand stack and calls, and its requests to wait.
//!
//! In: a [`Unit`]. Out: output, an end, and the variables of the script. Invariants:
//! - VM-1: the machine's own stack is flat: calls of functions, handles and callbacks are frames in a vector.
//! - VM-2: an instruction that ends in a [`Need`](super::error::Need) leaves frames and operands unchanged.
//! - VM-3: when a frame ends, by return or by error, operands, loops, marks and handlers above its base are gone.
//! - VM-4: if an instruction recorded arrays and then needed them, their values are known when it runs again
//!   (`drive.rs`), so that it makes progress.

mod access;
mod call;
mod control;
mod drive;
mod end;
mod entry;
mod exception;
mod frame;
mod gathered_call;
mod held;
mod kept;
mod lookup;
mod nested;
mod operands;
mod overwritten;
mod results;
mod run;
mod small;
mod statics;
mod stop;
mod suggest;
mod suspects;
mod targets;
mod turns;
mod variables;

pub use call::Callee;
pub use drive::drive;
pub use end::End;
pub use exception::error_value;
pub use frame::Variable;
pub use kept::Kept;
pub use suspects::place_among;
pub use variables::Described;

use super::compile::{Code, Unit};
use super::env::{Env, FunctionFiles};
use super::error::ScriptError;
use super::interrupt::{Guard, Interrupt};
use super::syntax::ast::Name;
use super::value::Value;
use super::value::nest::Nests;
use frame::{Activation, Handler, Iteration};
use rustc_hash::FxHashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::SystemTime;

/// A running script.
pub struct Interp {
    /// The surroundings of the script.
    pub env: Env,
    /// Ends the running code from outside.
    pub interrupt: Arc<Interrupt>,
    /// Ends the machine for good: at its deadline, or at the end of its session.
    stop: stop::Stop,
    /// How many cleanups of this machine's frames are running or pending.
    guards: Arc<AtomicUsize>,
    /// The end of the script, until its cleanup has run.
    ended: End,
    /// Set while the cleanup runs that an interrupt has left to do.
    cleaning: Option<Guard>,
    /// Functions that the script's files and evaluated texts have defined.
    pub(crate) functions: FxHashMap<Name, Arc<Code>>,
    /// Function files found beside the script and in added folders. If several have the same name, the first one
    /// counts.
    pub(crate) files: Arc<FunctionFiles>,
    /// Functions that belong to one function file, by the address of its source.
    pub(crate) locals: FxHashMap<usize, FxHashMap<Name, Arc<Code>>>,
    /// Function files that were read, with their modification times and sizes. Scripts that change folders again and
    /// again find them here.
    read: FxHashMap<PathBuf, ((SystemTime, u64), Arc<Code>)>,
    /// Functions read from folders `private`, by their paths.
    privates: FxHashMap<PathBuf, Callee>,
    /// The frames, innermost last.
    frames: Vec<Activation>,
    /// Operands.
    stack: Vec<Value>,
    /// Variables of all frames.
    variables: Vec<Variable>,
    /// Loops.
    iterations: Vec<Iteration>,
    /// Heights of the stack where lists began.
    marks: Vec<usize>,
    /// The values that `end` refers to, innermost last; `None` inside a function's arguments.
    bases: Vec<Option<Value>>,
    /// Assignment targets that wait for their values; those of the innermost assignment are last.
    targets: Vec<targets::Targets>,
    /// The assigned outputs that the last function to return did not set: their numbers and errors.
    unset: Vec<(usize, ScriptError)>,
    /// Open tries, innermost last.
    handlers: Vec<Handler>,
    /// Arrays that were made inside of an open try and may carry a fault, including those that no variable holds any
    /// more.
    suspects: suspects::Suspects,
    /// Variables that the bodies of open tries overwrote with such arrays.
    overwritten: Vec<overwritten::Overwritten>,
    /// Variables that were overwritten in tries that caught an error. They are checked before the next instruction.
    doubtful: Vec<overwritten::Overwritten>,
    /// Recently evaluated texts.
    texts: suspects::Texts,
    /// Values of globals and persistents.
    statics: Vec<Option<Value>>,
    /// The shared variables of calls of functions that have nested functions.
    nests: Nests,
    /// Globals by name.
    globals: FxHashMap<Name, u32>,
    /// Persistents by their code's number and slot.
    persistents: FxHashMap<(u32, u32), u32>,
    /// Outputs of evaluated text that is captured (`evalc`), outermost first.
    captures: Vec<(usize, Arc<parking_lot::Mutex<super::output::Captured>>, Box<dyn super::output::Output>)>,
    /// How often a number on the runtime met one on the host since such numbers were last awaited.
    numbers_met: u32,
    /// The number of steps taken: instructions outside of the fast loop, and jumps back.
    steps: u64,
    /// The number of steps when the machine last resumed after a wait.
    steps_at_resume: u64,
    /// The last count of the memory that the machine holds in small pieces.
    small: small::LastCount,
    /// Where a snapshot of the session is stored before a step that may take long.
    snapshot: Option<Arc<parking_lot::Mutex<Option<kept::Snapshot>>>>,
    /// The variables of the outermost frame after it ended.
    workspace: Vec<(Name, Value)>,
}

impl Interp {
    /// Makes a machine without a script.
    pub fn new(env: Env) -> Interp {
        // The runtime uses `faer` with threads, which makes threads its default. A script's factorisations pass their
        // own setting.
        static SEQUENTIAL: std::sync::Once = std::sync::Once::new();
        SEQUENTIAL.call_once(|| faer::set_global_parallelism(faer::Par::Seq));
        let files = match env.options.sandbox {
            true => Arc::default(),
            false => env.options.found.of(&env.options.path),
        };
        Interp {
            interrupt: env.halt.interrupt().clone(),
            stop: stop::Stop::default(),
            guards: Arc::default(),
            ended: End::Done,
            cleaning: None,
            env,
            functions: FxHashMap::default(),
            files,
            locals: FxHashMap::default(),
            read: FxHashMap::default(),
            frames: Vec::new(),
            stack: Vec::new(),
            variables: Vec::new(),
            iterations: Vec::new(),
            marks: Vec::new(),
            bases: Vec::new(),
            targets: Vec::new(),
            unset: Vec::new(),
            privates: Default::default(),
            handlers: Vec::new(),
            suspects: Default::default(),
            overwritten: Vec::new(),
            doubtful: Vec::new(),
            texts: Default::default(),
            statics: Vec::new(),
            nests: Nests::default(),
            globals: FxHashMap::default(),
            persistents: FxHashMap::default(),
            captures: Vec::new(),
            numbers_met: 0,
            steps: 0,
            steps_at_resume: 0,
            small: Default::default(),
            snapshot: None,
            workspace: Vec::new(),
        }
    }

    /// Makes a unit's functions known and its statements the next to run.
    pub fn begin(&mut self, unit: &Unit) {
        self.define(unit);
        self.workspace.clear();
        self.push_script(unit.main.clone());
    }

    /// Makes a unit's functions known.
    pub fn define(&mut self, unit: &Unit) {
        for (name, code) in &unit.functions {
            self.functions.insert(name.clone(), code.clone());
        }
    }

    /// Takes the variables that the script left, in the order in which the text first mentions them.
    pub fn take_workspace(&mut self) -> Vec<(Name, Value)> {
        std::mem::take(&mut self.workspace)
    }

    /// Ends the variables that the script left, those of a session whose last text has ended, and all globals and
    /// persistents.
    pub fn drop_variables(&mut self) {
        self.workspace.clear();
        self.variables.iter_mut().for_each(|variable| *variable = Variable::Undefined);
        self.statics.iter_mut().for_each(|value| *value = None);
        self.nests = Nests::default();
    }
}

impl Interp {
    /// Begins a session, whose texts share their variables: pushes an outermost frame without statements.
    pub fn begin_session(&mut self) {
        if let Ok(file) = super::syntax::parse(&super::source::Source::given(super::source::SESSION, ""))
            && let Ok(unit) = super::compile::compile(&file, false)
        {
            self.push_script(unit.main);
            if let Some(Activation::Code(frame)) = self.frames.last_mut() {
                frame.is_session = true;
            }
        }
    }

    /// Makes a text the next to run, in the session's variables.
    ///
    /// # Errors
    /// The first syntax error, with its place.
    pub fn begin_text(&mut self, source: &Arc<super::source::Source>) -> Result<(), super::error::ScriptError> {
        let file = super::syntax::parse_with(source, &|name| self.variable(name).is_some())?;
        let known = self.known_in(self.frame_in(super::builtins::Scope::Here));
        let unit = super::compile::compile_eval(&file, None, known, 0)?;
        self.define(&unit);
        self.enter_text(unit);
        Ok(())
    }

    /// Drops the rest of a text that failed or was interrupted. The session's variables stay.
    pub fn abandon(&mut self) {
        while self.frames.len() > 1 {
            self.drop_frame();
        }
        self.env.awaited.clear();
        self.heed_interrupts();
        (self.ended, self.cleaning) = (End::Done, None);
    }

    /// Returns the comment at the head of a function of the script.
    pub fn documentation(&mut self, name: &str) -> Option<String> {
        match self.lookup(name).ok()?? {
            Callee::User(code) => code.doc.clone(),
            _ => None,
        }
    }
}
