//! What a running script has around it: its session, its output, its formats, clocks and files.
//!
//! Must hold:
//! - Nothing here waits; what must be awaited is a [`Need`].
//! - KEEP-1: what builtins keep between calls lies in a drawer per type, which holds that type alone.

use super::display::Format;
use super::error::{Flow, Need, ScriptError, Stop};
use super::interrupt::{Halt, Interrupt};
use super::memory;
use super::output::Output;
use super::syntax::ast::Name;
use super::value::account::{Account, COUNTED_BYTES_MIN};
use super::value::cleanup::Due;
use super::value::{Data, Function, Tensor, Value};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use tidemill::{Session, frontend};

/// How deep containers may be nested where they are shown, compared or written.
pub(super) const DEPTH_MAX: usize = 256;

/// The most that the extents of an array without elements may be together, those that are 0 apart.
const EMPTY_EXTENTS_MAX: usize = 1 << 26;

/// How a script is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// What `argv()` gives.
    pub arguments: Vec<String>,
    /// Arrays of at most this many elements are computed in the script's own memory, at once; larger ones, of classes
    /// that the runtime has, are recorded on the runtime.
    pub host_elements_max: usize,
    /// A script that has waited for small arrays again and again gets those of at most this many elements to the host
    /// from then on ([`Env::waited_for`]); unless all are recorded (`host_elements_max` 0).
    pub near_elements_max: usize,
    /// Folders in which function files are looked for, the script's own first.
    pub path: Vec<PathBuf>,
    /// What was found there, once a script that has these options has looked; clones share it.
    pub found: FoundFiles,
    /// How deep functions may call each other.
    pub recursion_max: usize,
    /// The most elements that an array in host memory may have.
    pub elements_max: usize,
    /// Whether the plan of what is awaited is printed on the standard error before it runs.
    pub explain: bool,
    /// What interrupts it, where somebody may; copies of a script can share one. What was raised once ends every script
    /// that it is given to, also later: one for each run.
    pub interrupt: Option<Arc<Interrupt>>,
    /// When it ends, wherever it stands: it unwinds as by an interrupt, and its run fails with an error that names the
    /// line. What cleans up has a tenth of a second more.
    pub deadline: Option<Instant>,
    /// Whether it may touch neither files nor folders, the environment, processes and standard input. Function files
    /// are not read either. It reads its own text and arguments, writes to its output, and uses the runtime.
    pub sandbox: bool,
    /// The most bytes that its large arrays in host memory may take together; where nobody says it, what the runtime's
    /// budget of host memory leaves beside what the runtime holds there.
    pub memory_max: Option<u64>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            arguments: Vec::new(),
            host_elements_max: 4096,
            near_elements_max: 1 << 15,
            path: Vec::new(),
            found: FoundFiles::default(),
            recursion_max: 256,
            elements_max: 1 << 32,
            explain: false,
            interrupt: None,
            deadline: None,
            sandbox: false,
            memory_max: None,
        }
    }
}

/// A path that no system opens.
const NO_PATH: &str = "\0";

/// Files of functions, and of scripts, by the name that calls them.
pub type FunctionFiles = FxHashMap<Name, PathBuf>;

/// The function files of folders, which are read once for all copies of a script.
#[derive(Clone, Debug, Default)]
pub struct FoundFiles(Arc<OnceLock<(Vec<PathBuf>, Arc<FunctionFiles>)>>);

impl FoundFiles {
    /// The files of these folders; the first that has a name wins.
    pub fn of(&self, folders: &[PathBuf]) -> Arc<FunctionFiles> {
        let read = || {
            let mut files = FunctionFiles::default();
            folders.iter().for_each(|folder| add_files(&mut files, folder));
            Arc::new(files)
        };
        let (known, files) = self.0.get_or_init(|| (folders.to_vec(), read()));
        if known == folders { files.clone() } else { read() }
    }
}

/// Adds the function files of a folder whose names are not there yet.
pub fn add_files(files: &mut FunctionFiles, folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|e| e == "m")
            && let Some(stem) = path.file_stem().and_then(|s| s.to_str())
            // The folder's entry says it, but for links.
            && !entry.file_type().is_ok_and(|t| t.is_dir() || t.is_symlink() && path.is_dir())
        {
            files.entry(stem.into()).or_insert(path);
        }
    }
}

/// What a running script has around it.
pub struct Env {
    /// Where arrays are recorded.
    pub session: Session,
    /// Whether something has been put on the device by `gpuArray`: what is made of such arrays is looked at then.
    pub has_pinned: std::sync::atomic::AtomicBool,
    /// Where it prints.
    pub output: Box<dyn Output>,
    /// How it is run.
    pub options: Options,
    /// What ends an instruction that takes long.
    pub halt: Halt,
    /// What its large arrays in host memory take.
    pub account: Arc<Account>,
    /// The folder that names of files are relative to, once `cd` has chosen one; the process's until then.
    pub folder: Option<PathBuf>,
    /// Folders that function files are looked for in besides the script's own, in order.
    pub added: Vec<PathBuf>,
    /// How numbers are shown.
    pub format: Format,
    /// When the script started.
    pub started: Instant,
    /// When `tic` was last called without an output.
    pub tic: Option<Instant>,
    /// What `lasterr` gives.
    pub last_error: Option<ScriptError>,
    /// What `lastwarn` gives: message and identifier.
    pub last_warning: (String, String),
    /// Warnings that were switched off, by identifier; `all` for all.
    pub warnings_off: Vec<String>,
    /// Identifiers of those that are errors; `all` for all.
    pub warnings_as_errors: Vec<String>,
    /// A warning that was an error: it ends the instruction that gave it.
    pub raised: Option<Box<ScriptError>>,
    /// State of builtins that keep some, by the builtin's own type.
    pub keep: Keep,
    /// What every [`Need::Future`] of this instruction gave, in order, for the instruction's next run.
    pub awaited: VecDeque<Value>,
    /// Functions of `onCleanup` objects that have ended; `None` until one is made.
    pub due: Option<Arc<Due>>,
    /// In whose name the faults of what is recorded now speak, where it is not the op's.
    pub speaker: Option<Speaker>,
    /// How often the script has waited for arrays of the runtime, small ones behind them ([`Env::waited_for`]).
    waits: u32,
    /// [`Env::stays_home`].
    at_home: bool,
    /// [`Env::part_elements_max`], once small arrays stay at home.
    part_elements_max: Option<usize>,
}

/// A function that others make up, and what the faults of its arrays say of numbers outside of its real domain.
#[derive(Clone, Copy)]
pub struct Speaker {
    /// Its name.
    pub name: &'static str,
    /// Which numbers those are, where they are not those of the function within.
    pub beyond: Option<&'static str>,
    /// Whether complex results are an error whatever the numbers are.
    pub is_real: bool,
}

impl Speaker {
    /// What a fault says: its op, and why. `name` and `beyond` are those of the function within.
    pub fn words(speaker: Option<Speaker>, name: &'static str, beyond: &str) -> (&'static str, String) {
        let beyond = speaker.and_then(|s| s.beyond).unwrap_or(beyond);
        let words = match speaker {
            Some(speaker) if speaker.is_real => "produced complex result".into(),
            _ => format!("{beyond} is complex, which the device does not have: use complex (x) instead"),
        };
        (speaker.map_or(name, |s| s.name), words)
    }
}

/// How often a script waits for small arrays before they stay on the host.
const WAITS_MAX: u32 = 8;

/// A drawer for a type's one value: state that a family of builtins keeps between calls (open files, the generator's
/// position) without the environment knowing it.
#[derive(Default)]
pub struct Keep(rustc_hash::FxHashMap<std::any::TypeId, Box<dyn std::any::Any + Send>>);

impl Keep {
    /// The one value of this type, made when it is first asked for.
    pub fn of<T: Default + Send + 'static>(&mut self) -> &mut T {
        let entry = self.0.entry(std::any::TypeId::of::<T>()).or_insert_with(|| Box::new(T::default()));
        entry.downcast_mut().expect("KEEP-1: a drawer holds its own type")
    }
}

impl Env {
    /// An environment on a session.
    pub fn new(session: Session, output: Box<dyn Output>, options: Options) -> Env {
        let account = Arc::new(Account::new(options.memory_max, frontend::host_claims(&session)));
        // Whatever the runtime says for Rust: a script's dtypes mix as MATLAB's.
        session.set_promotion(tidemill::Promotion::Matlab);
        Env {
            account,
            halt: Halt::new(options.interrupt.clone().unwrap_or_default(), options.deadline),
            has_pinned: Default::default(),
            session,
            output,
            options,
            folder: None,
            added: Vec::new(),
            format: Format::default(),
            started: Instant::now(),
            tic: None,
            last_error: None,
            last_warning: Default::default(),
            warnings_off: Vec::new(),
            warnings_as_errors: Vec::new(),
            raised: None,
            keep: Keep::default(),
            awaited: VecDeque::new(),
            due: None,
            speaker: None,
            waits: 0,
            at_home: false,
            part_elements_max: None,
        }
    }

    /// Where a file of this name is. Scripts that run at the same time share a process, so that its folder is left
    /// alone.
    ///
    /// In a sandbox it leads nowhere (REACH-2 in `builtins/reach.rs`).
    pub fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        if self.options.sandbox {
            return PathBuf::from(NO_PATH);
        }
        match &self.folder {
            Some(folder) => folder.join(name),
            None => name.as_ref().to_path_buf(),
        }
    }

    /// The folders in which function files are looked for, the first first.
    pub fn function_folders(&self) -> impl Iterator<Item = &PathBuf> {
        let is_own = |path: &&PathBuf| self.folder.is_none() || path.as_path() != Path::new(".");
        let all = self.folder.iter().chain(self.options.path.iter().filter(is_own)).chain(&self.added);
        // REACH-2: files of functions are files.
        all.take(if self.options.sandbox { 0 } else { usize::MAX })
    }

    /// Where a file of this name is that is read: in the script's folder, or in those that it has added.
    pub fn found(&self, name: impl AsRef<Path>) -> PathBuf {
        let (name, here) = (name.as_ref(), self.at(&name));
        let may_lie_elsewhere = name.is_relative() && !name.starts_with(".") && !name.starts_with("..");
        if !may_lie_elsewhere || here.exists() {
            return here;
        }
        let mut elsewhere = self.added.iter().map(|folder| self.at(folder).join(name));
        elsewhere.find(|path| path.is_file()).unwrap_or(here)
    }

    /// The script waits for arrays of the runtime, or for what is made of them. One that does so again and again, with
    /// nothing large behind what it waits for, spends its time on the way there and back: from then on, arrays of its
    /// size are computed on the host, and those that are on the runtime come home when they are used. What was awaited
    /// decides, never a clock.
    pub fn waited_for(&mut self, arrays: &[Arc<super::value::Lazy>]) {
        let near = self.options.near_elements_max;
        if self.options.host_elements_max > 0 && arrays.iter().all(|l| l.is_near(near)) {
            self.waits = self.waits.saturating_add(1);
        }
    }

    /// The same of what is about to wait for something that is made of these, or was put off waiting for them.
    pub fn waits_for<'v>(&mut self, values: impl IntoIterator<Item = &'v Value>) {
        let near = self.options.near_elements_max;
        let is_small = |value: &Value| match value {
            Value::Lazy(l) => l.is_near(near),
            other => other.len() <= near,
        };
        if self.options.host_elements_max > 0 && values.into_iter().all(is_small) {
            self.waits = self.waits.saturating_add(1);
        }
    }

    /// Whether the script has waited so often that its small arrays are to stay at home, and do not yet.
    pub fn is_to_stay(&self) -> bool {
        self.waits >= WAITS_MAX && !self.at_home
    }

    /// From now on its small arrays stay at home. Between two instructions: one that runs again must find all as it was
    /// (MADE-1).
    pub fn stay(&mut self) {
        self.at_home = true;
        self.part_elements_max = Some(self.options.host_elements_max);
        self.options.host_elements_max = self.options.host_elements_max.max(self.options.near_elements_max);
    }

    /// The most elements of a part that is read or written on the host, of an array that lies on the runtime: what a
    /// script was told at its beginning, also when larger arrays stay at home, since all of the array comes with it.
    pub fn part_elements_max(&self) -> usize {
        self.part_elements_max.unwrap_or(self.options.host_elements_max)
    }

    /// Whether small arrays of the runtime come to the host where they are used.
    pub fn stays_home(&self) -> bool {
        self.at_home
    }

    /// What was awaited for this instruction at this place, if it runs again.
    pub fn take_awaited(&mut self) -> Option<Value> {
        self.awaited.pop_front()
    }

    /// The host array behind a numeric, char or logical value.
    ///
    /// # Errors
    /// [`Need::Host`] for an array of the runtime that has not been awaited; an error for cells, structs and handles.
    pub fn host(&self, value: &Value) -> Flow<Arc<Tensor>> {
        match value {
            Value::Tensor(t) => Ok(t.clone()),
            Value::Num(x) => Ok(Arc::new(Tensor::scalar(Data::F64(vec![*x])))),
            Value::Bool(x) => Ok(Arc::new(Tensor::scalar(Data::Bool(vec![*x])))),
            Value::Lazy(l) => match l.known(self)? {
                Some(host) => Ok(host.clone()),
                None => Err(Stop::Need(Need::Host(vec![l.clone()]))),
            },
            Value::Colon => Ok(Arc::new(Tensor::string(b":"))),
            Value::Cell(_) | Value::Struct(_) | Value::Function(_) | Value::Map(_) | Value::Parser(_) => {
                Err(ScriptError::new(format!(
                    "wrong type argument '{}'",
                    match value {
                        Value::Cell(_) => "cell array",
                        Value::Struct(_) => "struct",
                        Value::Map(_) | Value::Parser(_) => "object",
                        _ => "function handle",
                    }
                ))
                .into())
            }
        }
    }

    /// Asks for the host values of all that lie on the runtime, containers included, in one go: what is asked for
    /// together is computed together. After this, [`Env::host`] answers for each of them.
    ///
    /// # Errors
    /// [`Need::Host`] for those that have not been awaited; an error for containers that are nested so deep that what
    /// is about to visit them would run out of stack.
    pub fn host_all<'v>(&self, values: impl IntoIterator<Item = &'v Value>) -> Flow<()> {
        self.host_within(values, false)
    }

    /// The same, of what anonymous functions have captured, too.
    ///
    /// # Errors
    /// As [`Env::host_all`].
    pub fn host_all_captured<'v>(&self, values: impl IntoIterator<Item = &'v Value>) -> Flow<()> {
        self.host_within(values, true)
    }

    fn host_within<'v>(&self, values: impl IntoIterator<Item = &'v Value>, captured: bool) -> Flow<()> {
        let mut missing = Vec::new();
        for value in values {
            match value {
                Value::Lazy(l) if l.known(self)?.is_none() => missing.push(l.clone()),
                Value::Cell(_) | Value::Struct(_) => inside(self, value, captured, &mut missing)?,
                Value::Function(_) if captured => inside(self, value, captured, &mut missing)?,
                _ => {}
            }
        }
        if missing.is_empty() { Ok(()) } else { Err(Stop::Need(Need::Host(missing))) }
    }

    /// Prints.
    pub fn print(&mut self, bytes: impl AsRef<[u8]>) {
        self.output.out(bytes.as_ref());
    }

    /// Prints a warning, unless it is switched off: `warning: …` on standard error.
    pub fn warn(&mut self, identifier: &str, message: &str) {
        let names = |list: &[String]| list.iter().any(|w| w == "all" || w == identifier && !identifier.is_empty());
        if names(&self.warnings_off) {
            return;
        }
        if names(&self.warnings_as_errors) {
            self.raised.get_or_insert_with(|| Box::new(ScriptError::with_id(identifier, message)));
            return;
        }
        self.last_warning = (message.to_string(), identifier.to_string());
        self.output.err(format!("warning: {message}\n").as_bytes());
    }

    /// Refuses dimensions of an array in host memory, of so many bytes an element, that this machine cannot give now.
    ///
    /// # Errors
    /// As [`Env::check_elements`].
    pub fn check_host(&self, dims: &[usize], width: usize) -> Flow<()> {
        self.check_elements(dims)?;
        let bytes = dims.iter().fold(width, |bytes, &d| bytes.saturating_mul(d));
        let has_room = bytes < COUNTED_BYTES_MIN || self.account.holds(bytes);
        if has_room && memory::holds(bytes) { Ok(()) } else { Err(out_of_memory().into()) }
    }

    /// Refuses what the last step made where it went beyond the script's memory.
    ///
    /// # Errors
    /// The language's out-of-memory error.
    #[inline]
    pub fn check_account(&self) -> Flow<()> {
        if self.account.was_exceeded() { Err(out_of_memory().into()) } else { Ok(()) }
    }

    /// Ends a builtin that takes long where its machine is to be interrupted: asked between two pieces of its work.
    ///
    /// # Errors
    /// [`Stop::Interrupted`].
    #[inline]
    pub fn check_halt(&self) -> Flow<()> {
        let is_due = self.halt.is_due() || !self.halt.is_stopping && self.session.is_closed();
        if is_due { Err(Stop::Interrupted) } else { Ok(()) }
    }

    /// Refuses dimensions whose elements no memory holds.
    ///
    /// # Errors
    /// The language's out-of-memory error.
    pub fn check_elements(&self, dims: &[usize]) -> Flow<()> {
        // Without elements, too, since much that is made of such an array has some, or is made a row at a time.
        let is_empty = dims.contains(&0);
        let most = self.options.elements_max.min(if is_empty { EMPTY_EXTENTS_MAX } else { usize::MAX });
        let n = dims.iter().filter(|&&d| d != 0).fold(1usize, |n, &d| n.saturating_mul(d));
        if n > most {
            return super::error::fail_id!(
                "Octave:bad-alloc",
                "out of memory or dimension too large for Octave's index type"
            );
        }
        Ok(())
    }
}

/// The language's out-of-memory error.
#[cold]
pub(super) fn out_of_memory() -> ScriptError {
    ScriptError::with_id("Octave:bad-alloc", "out of memory or dimension too large for Octave's index type")
}

/// The arrays of the runtime in a container, or captured by a function, whose host values are not there.
fn inside(env: &Env, container: &Value, captured: bool, missing: &mut Vec<Arc<super::value::Lazy>>) -> Flow<()> {
    let mut open = vec![(container, 0)];
    // Containers that stand in several places, with how deep they were found: `c = {c, c}` in a loop makes many places
    // of few containers.
    let mut shared = FxHashMap::<*const (), usize>::default();
    let mut seen_before = |place: *const (), holders: usize, depth: usize| {
        let deepest = (holders > 1 && depth > 0).then(|| shared.entry(place).or_insert(0));
        deepest.is_some_and(|deepest| *deepest >= depth || std::mem::replace(deepest, depth) > depth)
    };
    while let Some((value, depth)) = open.pop() {
        match value {
            Value::Lazy(l) if l.known(env)?.is_none() => missing.push(l.clone()),
            Value::Function(_) if !captured => {}
            Value::Cell(_) | Value::Struct(_) | Value::Function(_) if depth > DEPTH_MAX => {
                return Err(ScriptError::new(format!("containers are nested deeper than {DEPTH_MAX} levels")).into());
            }
            Value::Cell(c) if seen_before(Arc::as_ptr(c).cast(), Arc::strong_count(c), depth) => {}
            Value::Struct(s) if seen_before(Arc::as_ptr(s).cast(), Arc::strong_count(s), depth) => {}
            // From the last to the first: what is asked for comes in order.
            Value::Cell(c) => open.extend(c.items.iter().rev().map(|v| (v, depth + 1))),
            Value::Struct(s) => {
                open.extend(s.fields.values().rev().flat_map(|f| f.iter().rev()).map(|v| (v, depth + 1)));
            }
            Value::Function(f) if !seen_before(Arc::as_ptr(f).cast(), Arc::strong_count(f), depth) => {
                if let Function::Anonymous(closure) = &**f {
                    open.extend(closure.captured.iter().rev().map(|(_, v)| (v, depth + 1)));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rig;

    #[test]
    fn extents_without_elements_are_bounded_too() {
        let (env, _) = rig::env_with(Options::default());
        assert!(env.check_elements(&[0, EMPTY_EXTENTS_MAX]).is_ok());
        assert!(env.check_elements(&[EMPTY_EXTENTS_MAX + 1]).is_ok());
        assert!(env.check_elements(&[0, EMPTY_EXTENTS_MAX + 1]).is_err());
        assert!(env.check_elements(&[EMPTY_EXTENTS_MAX, 0, 2]).is_err());
    }

    #[test]
    fn folders_are_read_once_for_all_clones_of_the_same_path() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("twice.m"), "function y = twice (x), y = 2*x; end").unwrap();
        let options = Options { path: vec![folder.path().into()], ..Options::default() };
        std::fs::create_dir(folder.path().join("dir.m")).unwrap();
        let first = options.found.of(&options.path);
        assert_eq!(first.get("dir"), None);
        assert_eq!(first.get("twice"), Some(&folder.path().join("twice.m")));
        std::fs::write(folder.path().join("later.m"), "").unwrap();
        let copy = options.clone();
        assert!(Arc::ptr_eq(&first, &copy.found.of(&copy.path)));
        let elsewhere = tempfile::tempdir().unwrap();
        assert!(copy.found.of(&[elsewhere.path().into()]).is_empty());
    }
}
