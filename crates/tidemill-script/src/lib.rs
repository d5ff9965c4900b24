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
//! A text becomes a tree (`syntax`), the tree code (`compile`), and the machine (`vm`) runs it on values ([`value`]):
//! scalars and small arrays in the script's own memory, at once; big arrays recorded on the runtime, so that a loop of
//! array statements becomes a few kernels. The crate uses the public API of `tidemill` alone, of which
//! [`tidemill::frontend`] is meant for it.
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
//! - SCRIPT-1: the machine blocks no thread, but for files, standard input, and the first look at the GPUs. What it must
//!   wait for leaves the instruction as a [`Need`](error::Need); the future of the run awaits it, and the instruction
//!   runs again. Recording is not held: the run awaits room in the ring between instructions.
//! - SCRIPT-2: an instruction or builtin changes and prints nothing before its last possible `Need`.
//! - SCRIPT-3: one script's fault is its own [`ScriptError`]; nothing here panics on any text.

// The modules' headings lead contributors through private rooms, too.
#![allow(rustdoc::private_intra_doc_links)]
// Loops over several arrays at once by one index read better than zips of four, comparisons are written so that NaN
// takes the wanted branch, and a read of an array is larger than a request to wait.
#![allow(
    clippy::large_enum_variant,
    clippy::needless_range_loop,
    clippy::neg_cmp_op_on_partial_ord,
    clippy::nonminimal_bool,
    clippy::type_complexity
)]
// Tests write recorded values down as they were recorded.
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
    /// How [`Script::run`] runs it, where that is not as ever.
    options: Option<Arc<Options>>,
}

/// What the copies of a script share.
#[derive(Debug)]
struct Parsed {
    source: Arc<Source>,
    code: [Compiled; CODE_PLACES],
}

/// Threads that have code of their own; further ones share theirs.
const CODE_PLACES: usize = 16;
/// The stack of a thread that runs scripts.
const STACK_BYTES: usize = 8 << 20;

/// A thread's code of a script: copies that run at the same time would otherwise pass the reference counts of
/// its names and constants to and fro between the cores.
#[derive(Debug, Default)]
struct Compiled {
    /// With variables that end at their last use.
    released: OnceLock<Arc<Unit>>,
    /// With all variables kept to the end.
    kept: OnceLock<Arc<Unit>>,
}

/// The number of the calling thread among those that have code of their own: one that few living threads have.
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
    // A thread that is ending shares.
    PLACE.try_with(|place| place.0).unwrap_or(0)
}

/// What a script left behind.
#[derive(Debug, Default)]
pub struct Workspace {
    /// Its variables, in the order in which the text mentions them.
    pub variables: Vec<(Arc<str>, Value)>,
    /// The status of its `exit`, if it ended by one.
    pub exit: Option<i32>,
    /// The error that had ended it before what cleans up after it called `exit`.
    pub error: Option<ScriptError>,
    /// Whether an interrupt ended it.
    pub is_interrupted: bool,
    /// What it wrote, where nobody else took it.
    written: Captured,
    /// Its code, which knows where an array was recorded.
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

    /// The same script, which [`Script::run`] and [`Script::run_copies`] run with these options.
    #[must_use]
    pub fn with_options(self, options: Options) -> Script {
        Script { options: Some(Arc::new(options)), ..self }
    }

    fn with_option(self, set: impl FnOnce(&mut Options)) -> Script {
        let mut options = self.options.as_deref().cloned().unwrap_or_default();
        set(&mut options);
        self.with_options(options)
    }

    /// The same script, for strangers' texts: a run of it may touch neither files nor folders, the environment,
    /// processes and standard input ([`Options::sandbox`](env::Options::sandbox)).
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

    /// The same script, whose runs end at this instant ([`Options::deadline`](env::Options::deadline)): a loop that
    /// never ends fails with an error then, which names its line.
    #[must_use]
    pub fn deadline(self, at: std::time::Instant) -> Script {
        self.with_option(|options| options.deadline = Some(at))
    }

    /// The same script, whose large arrays in host memory may take so many bytes together in each run
    /// ([`Options::memory_max`](env::Options::memory_max)).
    #[must_use]
    pub fn memory_max(self, bytes: u64) -> Script {
        self.with_option(|options| options.memory_max = Some(bytes))
    }

    /// The calling thread's code.
    fn unit(&self, keep: bool) -> Result<Arc<Unit>, ScriptError> {
        let own = &self.parsed.code[own_place()];
        let place = if keep { &own.kept } else { &own.released };
        if let Some(unit) = place.get() {
            return Ok(unit.clone());
        }
        // From a tree of its own, whose names nobody shares.
        let unit = Arc::new(compile::compile(&syntax::parse(&self.parsed.source)?, !keep)?);
        Ok(place.get_or_init(|| unit).clone())
    }

    /// Runs it on a session, keeping its output, to its end. Dropping the future cancels it, and so does closing its
    /// session. It lets other tasks of its thread run at bounded intervals, also from a loop that never waits; a single
    /// function of the language that computes for long on the host is not left before it ends.
    ///
    /// A session draws the random numbers and knows the place of what is recorded: runs at the same time have a session
    /// each.
    ///
    /// Runs in tasks of their own share the executor's threads. Of many that one task awaits at once (`join_all`),
    /// other cores take some over.
    ///
    /// # Errors
    /// The error that the script did not catch, with what it had written until then.
    pub fn run<'a>(
        &'a self,
        session: &'a tidemill::Session,
    ) -> impl Future<Output = Result<Workspace, ScriptError>> + Send + 'a {
        let made = crowd::made(self, session);
        async move {
            match made {
                Made::Alone(mut place) => {
                    place.begin();
                    // Futures that wait for their turn are small, since an executor moves and keeps them; the thread
                    // that begins one takes the memory for it.
                    Box::pin(self.run_captured(session)).await
                }
                Made::Shared(run) => run.await,
            }
        }
    }

    /// Runs a copy of it on each of the sessions at the same time, over the machine's cores, and gives what they leave
    /// behind, in order. Dropping the future cancels them.
    ///
    /// This is the fastest way to run many that are short: a task of an executor costs about as much as fifty
    /// statements on numbers.
    ///
    /// # Panics
    /// With what a run panics with, which is a bug; the outcomes of the others are lost.
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

    /// [`Script::run`] on the thread that polls it.
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

    /// Runs it with an output and options of the caller's, on the caller's thread. Its variables end at their last use;
    /// none are returned.
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

    /// Runs it on a machine. `keep`: its variables are returned.
    ///
    /// # Errors
    /// The error that the script did not catch.
    pub async fn run_on(&self, interp: &mut Interp, keep: bool) -> Result<Workspace, ScriptError> {
        let unit = self.unit(keep)?;
        interp.begin(&unit);
        let mut end = vm::drive(interp).await;
        if !keep && interp.env.due.is_some() {
            // What the end of its variables runs, also of those that are global or persistent.
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

    /// A variable that is an array of the runtime: small ones lie in the script's own memory.
    pub fn array(&self, name: &str) -> Option<&tidemill::Array> {
        match self.get(name)? {
            Value::Lazy(lazy) => Some(&lazy.array),
            _ => None,
        }
    }

    /// Awaits the variables that are arrays of the runtime; their values are in host memory afterwards.
    ///
    /// # Errors
    /// The fault of one that carries one.
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

    /// A variable that is a real scalar; of the runtime, once it has been awaited ([`Workspace::gather`]).
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.get(name)? {
            Value::Num(x) => Some(*x),
            Value::Bool(b) => Some(*b as u8 as f64),
            Value::Tensor(t) if t.len() == 1 && !t.data.is_complex() => Some(t.data.f64_at(0)),
            Value::Lazy(l) if l.dims.is_scalar() => l.host.get().map(|t| t.data.f64_at(0)),
            _ => None,
        }
    }

    /// What the script printed, as text.
    pub fn printed(&self) -> String {
        String::from_utf8_lossy(&self.written.out).into_owned()
    }

    /// What the script wrote to its standard error, as text: warnings, `fprintf (2, …)`.
    pub fn warned(&self) -> String {
        String::from_utf8_lossy(&self.written.err).into_owned()
    }
}

// The page on services embeds the runtime and runs scripts: its examples are compiled with this crate's.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/service.md")]
struct ServiceGuide;
