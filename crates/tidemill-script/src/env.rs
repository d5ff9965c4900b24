//! The surroundings of a running script: its session, output, number format, clocks and files.
//!
//! Must hold:
//! - Nothing here waits; a value that must be awaited is returned as a [`Need`].
//! - KEEP-1: state that builtins keep between calls lies in [`Keep`], one slot for each type, which holds only that
//!   type.

use super::display::Format;
use super::error::{Flow, Need, ScriptError, Stop};
use super::interrupt::{Halt, Interrupt};
use super::memory;
use super::output::Output;
use super::syntax::ast::Name;
use super::trace::Traces;
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

/// The greatest product of the extents of an array without elements, not counting extents that are 0.
const EMPTY_EXTENTS_MAX: usize = 1 << 26;

/// How a script is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The arguments that `argv()` returns.
    pub arguments: Vec<String>,
    /// Arrays of at most this many elements are computed at once in the script's own memory. Larger arrays are recorded
    /// on the runtime, if the runtime has their class.
    pub host_elements_max: usize,
    /// The limit that replaces `host_elements_max` once a script has waited for small arrays again and again
    /// ([`Env::waited_for`]). Without effect if `host_elements_max` is 0, which records all arrays.
    pub near_elements_max: usize,
    /// Folders in which function files are looked for, the script's own first.
    pub path: Vec<PathBuf>,
    /// The function files found in `path` by the first script that looked; clones of the options share them.
    pub found: FoundFiles,
    /// How deep functions may call each other.
    pub recursion_max: usize,
    /// The most elements that an array in host memory may have.
    pub elements_max: usize,
    /// Whether the plan of what is awaited is printed on the standard error before it runs.
    pub explain: bool,
    /// The interrupt that ends the script, if there is one. Copies of a script can share one. An interrupt that was
    /// raised ends every script that has it, including scripts that begin later, so use a new one for each run.
    pub interrupt: Option<Arc<Interrupt>>,
    /// The instant at which the script ends, wherever it is: it unwinds as if interrupted, and its run fails with an
    /// error that names the line. Its cleanup may take a tenth of a second longer.
    pub deadline: Option<Instant>,
    /// Whether the script may not touch files, folders, the environment, processes and standard input. It cannot read
    /// function files either. It can read its own text and arguments, write to its output, and use the runtime.
    pub sandbox: bool,
    /// The most bytes that the script's large host arrays may take together. `None`: the part of the runtime's budget
    /// for host memory that the runtime does not use.
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

/// A path that no system can open.
const NO_PATH: &str = "\0";

/// Function files and script files, by the names that call them.
pub type FunctionFiles = FxHashMap<Name, PathBuf>;

/// The function files of some folders, read once for all copies of a script.
#[derive(Clone, Debug, Default)]
pub struct FoundFiles(Arc<OnceLock<(Vec<PathBuf>, Arc<FunctionFiles>)>>);

impl FoundFiles {
    /// Returns the function files of these folders. If several files have the same name, the first one counts.
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

/// Adds the function files of a folder to `files`, except those whose names it has already.
pub fn add_files(files: &mut FunctionFiles, folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|e| e == "m")
            && let Some(stem) = path.file_stem().and_then(|s| s.to_str())
            // The folder's entry tells whether it is a folder, except for links.
            && !entry.file_type().is_ok_and(|t| t.is_dir() || t.is_symlink() && path.is_dir())
        {
            files.entry(stem.into()).or_insert(path);
        }
    }
}

/// The surroundings of a running script.
pub struct Env {
    /// The session that records arrays.
    pub session: Session,
    /// Whether `gpuArray` has put something on the device, or there is a `dlarray`. Only then are results checked for
    /// operands that are pinned.
    pub has_pinned: std::sync::atomic::AtomicBool,
    /// The calls of `dlfeval` that have not returned.
    pub traces: Traces,
    /// The script's output.
    pub output: Box<dyn Output>,
    /// The options of this run.
    pub options: Options,
    /// Ends an instruction that takes long.
    pub halt: Halt,
    /// Counts the bytes of the script's large host arrays.
    pub account: Arc<Account>,
    /// The folder that `cd` has chosen. File names are relative to it; `None`: to the process's folder.
    pub folder: Option<PathBuf>,
    /// Folders in which function files are looked for after the script's own folder, in order.
    pub added: Vec<PathBuf>,
    /// How numbers are shown.
    pub format: Format,
    /// When the script started.
    pub started: Instant,
    /// When `tic` was last called without an output.
    pub tic: Option<Instant>,
    /// The error that `lasterr` returns.
    pub last_error: Option<ScriptError>,
    /// The message and identifier that `lastwarn` returns.
    pub last_warning: (String, String),
    /// Identifiers of warnings that were switched off; `all` stands for all warnings.
    pub warnings_off: Vec<String>,
    /// Identifiers of warnings that count as errors; `all` stands for all warnings.
    pub warnings_as_errors: Vec<String>,
    /// The error of a warning that counts as one. It ends the instruction that gave the warning.
    pub raised: Option<Box<ScriptError>>,
    /// State that builtins keep between calls, by its type.
    pub keep: Keep,
    /// The results of this instruction's [`Need::Future`]s, in order, for its next run.
    pub awaited: VecDeque<Value>,
    /// Functions of `onCleanup` objects that have ended; `None` until one is made.
    pub due: Option<Arc<Due>>,
    /// The function that faults of arrays recorded from now on name; `None`: they name the op.
    pub fault_label: Option<FaultLabel>,
    /// How often the script has waited for small arrays of the runtime with only small arrays behind them
    /// ([`Env::waited_for`]).
    waits: u32,
    /// See [`Env::keeps_small_on_host`].
    small_on_host: bool,
    /// See [`Env::part_elements_max`]; set once small arrays are kept on the host.
    part_elements_max: Option<usize>,
}

/// A function that is computed by other functions, and the words of its faults for numbers outside of its real domain.
#[derive(Clone, Copy)]
pub struct FaultLabel {
    /// Its name.
    pub name: &'static str,
    /// The numbers outside of the domain, in words; `None`: those of the inner function.
    pub beyond: Option<&'static str>,
    /// Whether a complex result is an error for all numbers.
    pub is_real: bool,
}

impl FaultLabel {
    /// Returns the name and the reason that a fault tells. `name` and `beyond` are those of the inner function.
    pub fn describe(label: Option<FaultLabel>, name: &'static str, beyond: &str) -> (&'static str, String) {
        let beyond = label.and_then(|s| s.beyond).unwrap_or(beyond);
        let words = match label {
            Some(label) if label.is_real => "produced complex result".into(),
            _ => format!("{beyond} is complex, which the device does not have: use complex (x) instead"),
        };
        (label.map_or(name, |s| s.name), words)
    }
}

/// How often a script waits for small arrays before it keeps them on the host.
const WAITS_MAX: u32 = 8;

/// Holds one value for each type: state that a family of builtins keeps between calls (open files, the random
/// generator's position), without the environment knowing the type.
#[derive(Default)]
pub struct Keep(rustc_hash::FxHashMap<std::any::TypeId, Box<dyn std::any::Any + Send>>);

impl Keep {
    /// Returns the value of this type, which is made when it is first asked for.
    pub fn of<T: Default + Send + 'static>(&mut self) -> &mut T {
        let entry = self.0.entry(std::any::TypeId::of::<T>()).or_insert_with(|| Box::new(T::default()));
        entry.downcast_mut().expect("KEEP-1: a drawer holds its own type")
    }
}

impl Env {
    /// An environment on a session.
    pub fn new(session: Session, output: Box<dyn Output>, options: Options) -> Env {
        let account = Arc::new(Account::new(options.memory_max, frontend::host_claims(&session)));
        // The dtypes of a script mix as MATLAB's do, whatever the runtime is set to for Rust programs.
        session.set_promotion(tidemill::Promotion::Matlab);
        Env {
            account,
            halt: Halt::new(options.interrupt.clone().unwrap_or_default(), options.deadline),
            has_pinned: Default::default(),
            traces: Default::default(),
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
            fault_label: None,
            waits: 0,
            small_on_host: false,
            part_elements_max: None,
        }
    }

    /// Resolves a file name against the script's folder. Scripts that run at the same time share a process, so the
    /// process's folder is never changed.
    ///
    /// In a sandbox the result is a path that cannot be opened (REACH-2 in `builtins/reach.rs`).
    pub fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        if self.options.sandbox {
            return PathBuf::from(NO_PATH);
        }
        match &self.folder {
            Some(folder) => folder.join(name),
            None => name.as_ref().to_path_buf(),
        }
    }

    /// Returns the folders in which function files are looked for, in order of precedence.
    pub fn function_folders(&self) -> impl Iterator<Item = &PathBuf> {
        let is_own = |path: &&PathBuf| self.folder.is_none() || path.as_path() != Path::new(".");
        let all = self.folder.iter().chain(self.options.path.iter().filter(is_own)).chain(&self.added);
        // REACH-2: a sandbox does not read function files.
        all.take(if self.options.sandbox { 0 } else { usize::MAX })
    }

    /// Resolves the name of a file that is to be read: in the script's folder, or in one of the added folders.
    pub fn found(&self, name: impl AsRef<Path>) -> PathBuf {
        let (name, here) = (name.as_ref(), self.at(&name));
        let may_lie_elsewhere = name.is_relative() && !name.starts_with(".") && !name.starts_with("..");
        if !may_lie_elsewhere || here.exists() {
            return here;
        }
        let mut elsewhere = self.added.iter().map(|folder| self.at(folder).join(name));
        elsewhere.find(|path| path.is_file()).unwrap_or(here)
    }

    /// Notes that the script waits for arrays of the runtime. A script that waits again and again while only small
    /// arrays are involved spends its time on the way to the runtime and back. Such a script computes arrays of this
    /// size on the host from then on, and gathers those on the runtime when it uses them. This depends only on what was
    /// awaited, never on a clock.
    pub fn waited_for(&mut self, arrays: &[Arc<super::value::Lazy>]) {
        let near = self.options.near_elements_max;
        if self.options.host_elements_max > 0 && arrays.iter().all(|l| l.is_near(near)) {
            self.waits = self.waits.saturating_add(1);
        }
    }

    /// Does the same as [`Env::waited_for`], when the script is about to wait for something made of these values, or
    /// has put off such a wait.
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

    /// Whether the script has waited so often that its small arrays should be kept on the host, and they are not kept
    /// there yet.
    pub fn should_keep_small_on_host(&self) -> bool {
        self.waits >= WAITS_MAX && !self.small_on_host
    }

    /// Keeps small arrays on the host from now on. It is called between two instructions only, since an instruction
    /// that runs again must find everything as it was (MADE-1).
    pub fn keep_small_on_host(&mut self) {
        self.small_on_host = true;
        self.part_elements_max = Some(self.options.host_elements_max);
        self.options.host_elements_max = self.options.host_elements_max.max(self.options.near_elements_max);
    }

    /// The most elements of a part of an array of the runtime that is read or written on the host. Keeping larger
    /// arrays on the host does not change this limit, since reading a part gathers the whole array.
    pub fn part_elements_max(&self) -> usize {
        self.part_elements_max.unwrap_or(self.options.host_elements_max)
    }

    /// Whether small arrays of the runtime are gathered to the host when they are used.
    pub fn keeps_small_on_host(&self) -> bool {
        self.small_on_host
    }

    /// Takes the next awaited result of this instruction, if the instruction runs again.
    pub fn take_awaited(&mut self) -> Option<Value> {
        self.awaited.pop_front()
    }

    /// Returns the host array of a numeric, char or logical value.
    ///
    /// # Errors
    /// [`Need::Host`] for an array of the runtime that has not been awaited; an error for cells, structs and handles.
    pub fn host(&self, value: &Value) -> Flow<Arc<Tensor>> {
        match value {
            Value::Tensor(t) => Ok(t.clone()),
            Value::Num(x) => Ok(Arc::new(Tensor::scalar(Data::F64(vec![*x])))),
            Value::Bool(x) => Ok(Arc::new(Tensor::scalar(Data::Bool(vec![*x])))),
            Value::Lazy(l) => {
                self.traces.check_read(l)?;
                match l.known(self)? {
                    Some(host) => Ok(host.clone()),
                    None => Err(Stop::Need(Need::Host(vec![l.clone()]))),
                }
            }
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

    /// Asks for the host values of all arrays that lie on the runtime, including those in containers, at once, so that
    /// the runtime computes them together. After this, [`Env::host`] answers for each of them.
    ///
    /// # Errors
    /// [`Need::Host`] for the arrays that have not been awaited; an error for containers that are nested so deep that
    /// the caller, which is about to visit them, would run out of stack.
    pub fn host_all<'v>(&self, values: impl IntoIterator<Item = &'v Value>) -> Flow<()> {
        self.host_within(values, false)
    }

    /// Does the same as [`Env::host_all`], including the variables that anonymous functions have captured.
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
                Value::Lazy(l) => {
                    self.traces.check_read(l)?;
                    if l.known(self)?.is_none() {
                        missing.push(l.clone());
                    }
                }
                Value::Cell(_) | Value::Struct(_) => inside(self, value, captured, &mut missing)?,
                Value::Function(_) if captured => inside(self, value, captured, &mut missing)?,
                _ => {}
            }
        }
        if missing.is_empty() { Ok(()) } else { Err(Stop::Need(Need::Host(missing))) }
    }

    /// Writes to the script's standard output.
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

    /// Returns an error if this machine cannot provide memory now for a host array of these dimensions with `width`
    /// bytes an element.
    ///
    /// # Errors
    /// As [`Env::check_elements`].
    pub fn check_host(&self, dims: &[usize], width: usize) -> Flow<()> {
        self.check_elements(dims)?;
        let bytes = dims.iter().fold(width, |bytes, &d| bytes.saturating_mul(d));
        let has_room = bytes < COUNTED_BYTES_MIN || self.account.holds(bytes);
        if has_room && memory::holds(bytes) { Ok(()) } else { Err(out_of_memory().into()) }
    }

    /// Returns an error if the last step took the script's memory beyond its limit.
    ///
    /// # Errors
    /// The language's out-of-memory error.
    #[inline]
    pub fn check_account(&self) -> Flow<()> {
        if self.account.was_exceeded() { Err(out_of_memory().into()) } else { Ok(()) }
    }

    /// Ends a builtin that takes long if its machine is to be interrupted. The builtin calls this between two pieces of
    /// its work.
    ///
    /// # Errors
    /// [`Stop::Interrupted`].
    #[inline]
    pub fn check_halt(&self) -> Flow<()> {
        let is_due = self.halt.is_due() || !self.halt.is_stopping && self.session.is_closed();
        if is_due { Err(Stop::Interrupted) } else { Ok(()) }
    }

    /// Returns an error if an array of these dimensions cannot fit into any memory.
    ///
    /// # Errors
    /// The language's out-of-memory error.
    pub fn check_elements(&self, dims: &[usize]) -> Flow<()> {
        // Arrays without elements are checked, too, since functions make arrays with elements of their extents, or loop
        // over rows.
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

/// Returns the language's out-of-memory error.
#[cold]
pub(super) fn out_of_memory() -> ScriptError {
    ScriptError::with_id("Octave:bad-alloc", "out of memory or dimension too large for Octave's index type")
}

/// Collects the arrays of the runtime that lie in a container, or are captured by a function, and have no host values
/// yet.
fn inside(env: &Env, container: &Value, captured: bool, missing: &mut Vec<Arc<super::value::Lazy>>) -> Flow<()> {
    let mut open = vec![(container, 0)];
    // Containers that occur in several places, with the depth at which each was found: `c = {c, c}` in a loop makes
    // many places of few containers.
    let mut shared = FxHashMap::<*const (), usize>::default();
    let mut seen_before = |place: *const (), holders: usize, depth: usize| {
        let deepest = (holders > 1 && depth > 0).then(|| shared.entry(place).or_insert(0));
        deepest.is_some_and(|deepest| *deepest >= depth || std::mem::replace(deepest, depth) > depth)
    };
    while let Some((value, depth)) = open.pop() {
        match value {
            Value::Lazy(l) => {
                env.traces.check_read(l)?;
                if l.known(env)?.is_none() {
                    missing.push(l.clone());
                }
            }
            Value::Function(_) if !captured => {}
            Value::Cell(_) | Value::Struct(_) | Value::Function(_) if depth > DEPTH_MAX => {
                return Err(ScriptError::new(format!("containers are nested deeper than {DEPTH_MAX} levels")).into());
            }
            Value::Cell(c) if seen_before(Arc::as_ptr(c).cast(), Arc::strong_count(c), depth) => {}
            Value::Struct(s) if seen_before(Arc::as_ptr(s).cast(), Arc::strong_count(s), depth) => {}
            // Items are pushed from the last to the first, so that the arrays are asked for in order.
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
