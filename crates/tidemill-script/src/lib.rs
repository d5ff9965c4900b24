//! MATLAB-syntax scripts on [Tidemill](tidemill), the asynchronous GPU array runtime.
//!
//! ```
//! # futures::executor::block_on(async {
//! let rt = tidemill::Runtime::builder().device("host").start().await?;
//! let script = tidemill_script::Script::parse("total = sum ((1:10) .^ 2)").unwrap();
//! let workspace = script.run(&rt.session("squares").open()).await.unwrap();
//! assert_eq!(workspace.number("total"), Some(385.0));
//! rt.shutdown().await?;
//! # Ok::<(), tidemill::Error>(())
//! # }).unwrap();
//! ```
//!
//! `syntax` parses a text into a tree, `compile` compiles the tree to code, and the machine (`vm`) runs the code on
//! values ([`value`]). Scalars and small arrays lie in the script's own memory and are computed at once. Big arrays are
//! recorded on the runtime, so that a loop of array statements becomes a few kernels. The crate uses only the public
//! API of `tidemill`, whose module [`tidemill::frontend`] is meant for it.
//!
//! For users: [`Script`], [`Workspace`] and its [`value`]s, [`env::Options`], [`output`], [`error`], [`source`] and
//! [`interrupt`]; for programs that people type statements to, [`machine`]. `docs/matlab.md` lists the functions.
//!
//! # Cargo features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `gpu` | yes | a wgpu device beside the host device |
//! | `image` | yes | pictures in files: `imread`, `imwrite`, `imfinfo`, and the module `picture` |
//! | `testing` | no | for this project's own tests; no part of the stable API |
//!
//! Invariants:
//! - SCRIPT-1: the machine blocks no thread, except for files, standard input, and the first look at the GPUs. When an
//!   instruction must wait for something else, it returns a [`Need`](error::Need); the future of the run awaits that,
//!   and the instruction runs again. Recording does not block either: the run awaits room in the ring between
//!   instructions.
//! - SCRIPT-2: an instruction or builtin changes and prints nothing before its last possible `Need`.
//! - SCRIPT-3: an error in a script is returned as that script's [`ScriptError`]; no text makes this crate panic.

// The headings of modules link to private items, since contributors read them.
#![allow(rustdoc::private_intra_doc_links)]
// Loops over several arrays by one index read better than zips of four. Comparisons are written so that NaN takes the
// wanted branch. A read of an array is larger than a request to wait.
#![allow(
    clippy::large_enum_variant,
    clippy::needless_range_loop,
    clippy::neg_cmp_op_on_partial_ord,
    clippy::nonminimal_bool,
    clippy::type_complexity
)]
// Tests hold recorded values as they were recorded.
#![cfg_attr(test, allow(clippy::approx_constant, clippy::excessive_precision, clippy::let_and_return))]

mod builtins;
mod compile;
mod copies;
mod crowd;
mod display;
pub mod env;
pub mod error;
mod helpers;
mod index;
pub mod interrupt;
mod library;
pub mod machine;
mod memory;
mod ops;
pub mod output;
#[cfg(feature = "image")]
pub mod picture;
mod polling;
#[cfg(test)]
mod rig;
pub mod source;
mod stack;
mod syntax;
#[cfg(feature = "testing")]
pub mod testing;
mod threads;
mod trace;
pub mod value;
mod vm;

use compile::Unit;
use crowd::Made;
use env::{Env, Options};
use error::ScriptError;
use output::{Captured, Output};
use parking_lot::Mutex;
use source::Source;
use std::sync::{Arc, OnceLock};
use value::Value;
use vm::{End, Interp};

/// A script, parsed and compiled: run it as often as you like, also at the same time.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use tidemill_script::Script;
/// let rt = tidemill::Runtime::builder().device("host").start().await?;
/// let session = rt.session("squares").open();
/// let script = Script::parse("x = (1:10) .^ 2; total = sum (x)").unwrap();
/// let workspace = script.run(&session).await.unwrap();
/// assert_eq!(workspace.number("total"), Some(385.0));
/// assert_eq!(workspace.printed(), "total = 385\n");
/// rt.shutdown().await?;
/// # Ok::<(), tidemill::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Script {
    parsed: Arc<Parsed>,
    /// The options of [`Script::run`], if they are not the default ones.
    options: Option<Arc<Options>>,
}

/// The parts of a script that its copies share.
#[derive(Debug)]
struct Parsed {
    source: Arc<Source>,
    code: [Compiled; CODE_PLACES],
}

/// The number of threads that have code of their own; further threads share it with one of these.
const CODE_PLACES: usize = 16;
/// The stack size of a thread that runs scripts.
const STACK_BYTES: usize = 8 << 20;

/// The code of a script for one thread. If threads that run copies of the script at the same time shared it, the
/// reference counts of its names and constants would move between the cores all the time.
#[derive(Debug, Default)]
struct Compiled {
    /// The code in which variables end at their last use.
    released: OnceLock<Arc<Unit>>,
    /// The code in which all variables live until the script ends.
    kept: OnceLock<Arc<Unit>>,
}

/// The calling thread's index into [`Parsed::code`]: a place that as few living threads as possible use.
fn own_place() -> usize {
    static LIVING: Mutex<[usize; CODE_PLACES]> = Mutex::new([0; CODE_PLACES]);
    struct Place(usize);
    impl Place {
        fn take() -> Place {
            let mut living = LIVING.lock();
            let place = (0..CODE_PLACES).min_by_key(|&place| living[place]).unwrap_or(0);
            living[place] += 1;
            Place(place)
        }
    }
    impl Drop for Place {
        fn drop(&mut self) {
            LIVING.lock()[self.0] -= 1;
        }
    }
    thread_local!(static PLACE: Place = Place::take());
    // A thread that is ending uses the first place.
    PLACE.try_with(|place| place.0).unwrap_or(0)
}

/// What a script left behind: its variables, its output, and how it ended.
#[derive(Debug, Default)]
pub struct Workspace {
    /// Its variables, in the order in which the text mentions them.
    pub variables: Vec<(Arc<str>, Value)>,
    /// The status of its `exit`, if it ended by one.
    pub exit: Option<i32>,
    /// The error that was ending the script when its cleanup called `exit`.
    pub error: Option<ScriptError>,
    /// Whether an interrupt ended it.
    pub is_interrupted: bool,
    /// The script's output, if the run kept it ([`Script::run`] and [`Script::run_copies`] do).
    written: Captured,
    /// The script's code, which knows where in the text an array was recorded.
    unit: Option<Arc<Unit>>,
}

impl Script {
    /// Parses and compiles a text.
    ///
    /// # Errors
    /// The first syntax error, with its place.
    pub fn parse(text: &str) -> Result<Script, ScriptError> {
        Script::from_source(&Source::new("script", text))
    }

    /// Parses and compiles a named text.
    ///
    /// # Errors
    /// The first syntax error, with its place.
    pub fn from_source(source: &Arc<Source>) -> Result<Script, ScriptError> {
        let file = syntax::parse(source)?;
        let released = Arc::new(compile::compile(&file, true)?);
        let code: [Compiled; CODE_PLACES] = Default::default();
        let _ = code[own_place()].released.set(released);
        let parsed = Arc::new(Parsed { source: source.clone(), code });
        Ok(Script { parsed, options: None })
    }

    /// Returns the same script, with these options for [`Script::run`] and [`Script::run_copies`].
    #[must_use]
    pub fn with_options(self, options: Options) -> Script {
        Script { options: Some(Arc::new(options)), ..self }
    }

    fn with_option(self, set: impl FnOnce(&mut Options)) -> Script {
        let mut options = self.options.as_deref().cloned().unwrap_or_default();
        set(&mut options);
        self.with_options(options)
    }

    /// Returns the same script, for texts that are not trusted: its runs may not touch files, folders, the environment,
    /// processes or standard input ([`Options::sandbox`](env::Options::sandbox)).
    ///
    /// ```
    /// # futures::executor::block_on(async {
    /// use tidemill_script::Script;
    /// let rt = tidemill::Runtime::builder().device("host").start().await?;
    /// let script = Script::parse("text = fileread ('/etc/passwd');").unwrap().sandboxed();
    /// let refused = script.run(&rt.session("stranger").open()).await.unwrap_err();
    /// assert!(refused.message.starts_with("fileread: refused in a sandbox"));
    /// rt.shutdown().await?;
    /// # Ok::<(), tidemill::Error>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn sandboxed(self) -> Script {
        self.with_option(|options| options.sandbox = true)
    }

    /// Returns the same script, whose runs end at this instant ([`Options::deadline`](env::Options::deadline)): then
    /// even an endless loop fails with an error that names its line.
    #[must_use]
    pub fn deadline(self, at: std::time::Instant) -> Script {
        self.with_option(|options| options.deadline = Some(at))
    }

    /// Returns the same script, with a limit for the bytes that the large host arrays of one run take together
    /// ([`Options::memory_max`](env::Options::memory_max)).
    #[must_use]
    pub fn memory_max(self, bytes: u64) -> Script {
        self.with_option(|options| options.memory_max = Some(bytes))
    }

    /// Returns the calling thread's code, and compiles it if it is missing.
    fn unit(&self, keep: bool) -> Result<Arc<Unit>, ScriptError> {
        let own = &self.parsed.code[own_place()];
        let place = if keep { &own.kept } else { &own.released };
        if let Some(unit) = place.get() {
            return Ok(unit.clone());
        }
        // The text is parsed again, so that no other thread shares the names in this code.
        let unit = Arc::new(compile::compile(&syntax::parse(&self.parsed.source)?, !keep)?);
        Ok(place.get_or_init(|| unit).clone())
    }

    /// Runs the script on a session to its end, and keeps its output. Dropping the future cancels the run, and so does
    /// closing the session. The run lets other tasks of its thread run at bounded intervals, even if it loops without
    /// waiting; only a single function of the language that computes for long on the host is not interrupted.
    ///
    /// A session draws the random numbers and remembers where each array was recorded, so runs at the same time need a
    /// session each.
    ///
    /// Runs in tasks of their own share the executor's threads. If one task awaits many runs at once (`join_all`),
    /// other cores take over some of them.
    ///
    /// # Errors
    /// The error that the script did not catch, with the output that the script had written until then.
    pub fn run<'a>(
        &'a self,
        session: &'a tidemill::Session,
    ) -> impl Future<Output = Result<Workspace, ScriptError>> + Send + 'a {
        let made = crowd::made(self, session);
        async move {
            match made {
                Made::Alone(mut place) => {
                    place.begin();
                    // A future that has not begun stays small, since an executor moves and stores it. The thread that
                    // begins it allocates the memory for the run.
                    Box::pin(self.run_captured(session)).await
                }
                Made::Shared(run) => run.await,
            }
        }
    }

    /// Runs a copy of the script on each of the sessions at the same time, over the machine's cores, and returns what
    /// the copies leave behind, in the order of the sessions. Dropping the future cancels them.
    ///
    /// This is the fastest way to run many short scripts: a task of an executor costs about as much as fifty statements
    /// on numbers.
    ///
    /// # Panics
    /// If a run panics, which is a bug, with that run's panic; the outcomes of the other runs are lost.
    ///
    /// ```
    /// # futures::executor::block_on(async {
    /// use tidemill_script::Script;
    /// let rt = tidemill::Runtime::builder().device("host").start().await?;
    /// let script = Script::parse("x = rand (1, 3); printf ('%d\\n', numel (x));").unwrap();
    /// let sessions = (0..1000).map(|copy| rt.session("copy").stream(copy).open());
    /// for copy in script.run_copies(sessions).await {
    ///     assert_eq!(copy.unwrap().printed(), "3\n");
    /// }
    /// rt.shutdown().await?;
    /// # Ok::<(), tidemill::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn run_copies(
        &self,
        sessions: impl IntoIterator<Item = tidemill::Session>,
    ) -> Vec<Result<Workspace, ScriptError>> {
        let (script, sessions) = (self.clone(), Vec::from_iter(sessions));
        let count = sessions.len();
        copies::parallel_map(count, async move |copy: usize| script.run_captured(&sessions[copy]).await).await
    }

    /// Does the work of [`Script::run`] on the thread that polls it.
    async fn run_captured(&self, session: &tidemill::Session) -> Result<Workspace, ScriptError> {
        let captured = Arc::new(Mutex::new(Captured::default()));
        let options = self.options.as_deref().cloned().unwrap_or_default();
        let env = Env::new(session.clone(), Box::new(captured.clone()), options);
        let mut interp = Box::new(Interp::new(env));
        let ended = self.run_on(&mut interp, true).await;
        let written = std::mem::take(&mut *captured.lock());
        match ended {
            Ok(workspace) => Ok(Workspace { written, ..workspace }),
            Err(error) => Err(ScriptError { written: Some(Box::new(written)), ..error }),
        }
    }

    /// Runs the script on the caller's thread, with the caller's output and options. Its variables end at their last
    /// use, and none are returned.
    ///
    /// # Errors
    /// The error that the script did not catch.
    pub async fn run_with(
        &self,
        session: &tidemill::Session,
        output: Box<dyn Output>,
        options: Options,
    ) -> Result<Workspace, ScriptError> {
        let mut interp = Box::new(Interp::new(Env::new(session.clone(), output, options)));
        self.run_on(&mut interp, false).await
    }

    /// Runs the script on a machine, and returns its variables if `keep` is set.
    ///
    /// # Errors
    /// The error that the script did not catch.
    pub async fn run_on(&self, interp: &mut Interp, keep: bool) -> Result<Workspace, ScriptError> {
        let unit = self.unit(keep)?;
        interp.begin(&unit);
        let mut end = vm::drive(interp).await;
        if !keep && interp.env.due.is_some() {
            // The end of a variable may run cleanup functions; this ends global and persistent variables, too.
            interp.drop_variables();
            end = end.then(vm::drive(interp).await);
        }
        interp.env.output.flush();
        let is_interrupted = matches!(end, End::Interrupted);
        let stopped = is_interrupted.then(|| interp.stopped_by()).flatten();
        if let Some(error) = stopped {
            return Err(error);
        }
        let (exit, error) = match end {
            End::Done | End::Interrupted => (None, None),
            End::Exit { status, after } => (Some(status), after.map(|error| *error)),
            End::Failed(error) => return Err(*error),
        };
        let variables = if keep { interp.take_workspace() } else { Vec::new() };
        let unit = keep.then_some(unit);
        Ok(Workspace { variables, exit, error, is_interrupted, written: Captured::default(), unit })
    }
}

impl Workspace {
    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.variables.iter().find(|(n, _)| **n == *name).map(|(_, v)| v)
    }

    /// Returns a variable that is an array of the runtime; small arrays lie in the script's own memory and give `None`.
    pub fn array(&self, name: &str) -> Option<&tidemill::Array> {
        match self.get(name)? {
            Value::Lazy(lazy) => Some(&lazy.array),
            _ => None,
        }
    }

    /// Awaits the variables that are arrays of the runtime; their values are in host memory afterwards.
    ///
    /// # Errors
    /// The fault of a variable's array, if it has one.
    pub async fn gather(&self) -> Result<(), ScriptError> {
        let lazy = |(_, value): &(Arc<str>, Value)| match value {
            Value::Lazy(lazy) => Some(lazy.clone()),
            _ => None,
        };
        let arrays: Vec<_> = self.variables.iter().filter_map(lazy).collect();
        value::lazy::fetch(&arrays).await.map_err(|mut error| {
            if let (Some(error::Origin::Recorded(mark)), Some(unit)) = (error.origin.as_deref(), &self.unit) {
                error.place = vm::place_among(std::iter::once(&unit.main).chain(unit.functions.values()), *mark);
                error.origin = None;
            }
            error
        })
    }

    /// Returns a variable that is a real scalar. A scalar of the runtime must have been awaited before
    /// ([`Workspace::gather`]).
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.get(name)? {
            Value::Num(x) => Some(*x),
            Value::Bool(b) => Some(*b as u8 as f64),
            Value::Tensor(t) if t.len() == 1 && !t.data.is_complex() => Some(t.data.f64_at(0)),
            Value::Lazy(l) if l.dims.is_scalar() => l.host.get().map(|t| t.data.f64_at(0)),
            _ => None,
        }
    }

    /// Returns the script's standard output as text.
    pub fn printed(&self) -> String {
        String::from_utf8_lossy(&self.written.out).into_owned()
    }

    /// Returns the script's standard error as text: warnings, `fprintf (2, …)`.
    pub fn warned(&self) -> String {
        String::from_utf8_lossy(&self.written.err).into_owned()
    }
}

// The page on services embeds the runtime and runs scripts, so its examples are compiled with this crate's.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/service.md")]
struct ServiceGuide;
