//! [`Runtime`]: devices, the ring, and the sessions on it.
//!
//! In: settings. Out: sessions; statistics; at the end, errors for whatever is still pending.
//! Must hold: two runtimes of one process share nothing; nothing here depends on which executor runs.

use super::link::Link;
use super::session::SessionBuilder;
use crate::config::{Config, DeviceChoice, Promotion};
use crate::contract::device::DeviceInfo;
use crate::error::{Error, ErrorKind, Result};
use crate::kernels::target::Precision;
use crate::ring::{self, Ring};
use crate::stats::{Counters, Stats};
use crate::timeline::Timeline;
use futures::channel::oneshot;
use parking_lot::Mutex;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

/// Names the environment variable that chooses the device where the builder does not.
pub const DEVICE_VARIABLE: &str = "TIDEMILL_DEVICE";
/// Names the environment variable with how many shaders a GPU compiles when it is opened.
const WARM_UP_VARIABLE: &str = "TIDEMILL_WARMUP";

/// Durations from here on mean "for ever": a year is far within what clocks can add.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// A running Tidemill: its devices and the actors between them. It may end and start again in one process: a GPU's
/// device stays open for the next runtime, with the buffers of the last one freed.
///
/// ```
/// use tidemill::Runtime;
/// let rt = Runtime::builder().device("host").start_blocking()?;
/// let s = rt.session("sums").open();
/// let x = s.arange(0.0f64, 1000.0, 1.0);
/// assert_eq!((&x * 2.0).sum(..).gather_blocking::<f64>()?[0], 999_000.0);
/// rt.shutdown_blocking()?;
/// # Ok::<(), tidemill::Error>(())
/// ```
pub struct Runtime {
    pub(super) link: Arc<Link>,
    ring: Ring,
}

/// What names a device: a [`DeviceChoice`], or `"auto"`, `"host"`, `"gpu"`, `"gpu:N"`.
pub trait IntoDevice {
    /// The choice.
    ///
    /// # Errors
    /// `ErrorKind::Device` for an unknown name.
    fn into_device(self) -> Result<DeviceChoice>;
}

impl IntoDevice for DeviceChoice {
    fn into_device(self) -> Result<DeviceChoice> {
        Ok(self)
    }
}

impl IntoDevice for &str {
    fn into_device(self) -> Result<DeviceChoice> {
        let unknown = || {
            let message = format!("there is no device '{self}': choose auto, host, gpu or gpu:N");
            Error::new(ErrorKind::Device, message)
        };
        match self.trim().to_ascii_lowercase().as_str() {
            "auto" => Ok(DeviceChoice::Auto),
            "host" => Ok(DeviceChoice::Host),
            "gpu" => Ok(DeviceChoice::Gpu(None)),
            other => {
                let number = other.strip_prefix("gpu:").and_then(|n| n.parse().ok()).ok_or_else(unknown)?;
                Ok(DeviceChoice::Gpu(Some(number)))
            }
        }
    }
}

impl IntoDevice for &String {
    fn into_device(self) -> Result<DeviceChoice> {
        self.as_str().into_device()
    }
}

impl IntoDevice for String {
    fn into_device(self) -> Result<DeviceChoice> {
        self.as_str().into_device()
    }
}

/// Settings of a runtime that is about to start.
#[derive(Clone, Debug, Default)]
#[must_use = "a runtime starts with start() or start_blocking()"]
pub struct RuntimeBuilder {
    config: Config,
    device: Option<Result<DeviceChoice>>,
}

impl RuntimeBuilder {
    /// Which device: a [`DeviceChoice`] or `"auto"`, `"host"`, `"gpu"`, `"gpu:1"`. Without this call, what the
    /// environment variable `TIDEMILL_DEVICE` says, or `auto`. An unknown name is an error when it starts.
    pub fn device(mut self, device: impl IntoDevice) -> RuntimeBuilder {
        self.device = Some(device.into_device());
        self
    }

    /// Whether the GPU is opened when it is first needed rather than at the start, which takes long: when something is
    /// to be placed that could be worth a GPU, when a program pins an array to it, or asks for the devices. By default
    /// with `auto`, where a program may never need one, and not where a GPU is named: then the start says whether it
    /// can be opened. What runs where does not depend on it, and neither do the bits.
    ///
    /// A GPU that is named and is not there fails the start all the same. One that is there and turns out not to open
    /// fails what was to run on it with `ErrorKind::Device`; with `auto` the host serves.
    pub fn open_on_demand(mut self, on_demand: bool) -> RuntimeBuilder {
        self.config.open_on_demand = Some(on_demand);
        self
    }

    /// Bytes that values may take on the GPU; most of what it has by default. What does not fit is evicted to host
    /// memory; a single op that needs more by itself takes more while it runs. The bits of a program do not depend on
    /// it.
    pub fn device_budget(mut self, bytes: u64) -> RuntimeBuilder {
        self.config.device_budget = Some(bytes);
        self
    }

    /// Bytes that values may take in host memory; most of what the machine has by default, less what a GPU that is in
    /// the same memory may take. It is strict: a step that needs more fails its gathers with `ErrorKind::OutOfMemory`.
    /// What scripts make big counts with it. Half of it bounds what all sessions' lazy values keep of what was let go
    /// of. Upload writers may give out as much besides. Data that the program brought and the host device reads where it
    /// lies does not count.
    pub fn host_budget(mut self, bytes: u64) -> RuntimeBuilder {
        self.config.host_budget = Some(bytes);
        self
    }

    /// Writes a timeline (a Chrome trace) to this file.
    pub fn timeline(mut self, path: impl Into<PathBuf>) -> RuntimeBuilder {
        self.config.timeline = Some(path.into());
        self
    }

    /// Threads of the host device and of planning; one a core by default, four a core (or 16) at most, since more would
    /// only wait for each other.
    pub fn worker_threads(mut self, threads: usize) -> RuntimeBuilder {
        self.config.worker_threads = Some(threads.clamp(1, (4 * crate::threads::cores()).max(16)));
        self
    }

    /// Batches that a device may hold at a time; 3 by default, at least 1.
    pub fn batches_in_flight(mut self, batches: u32) -> RuntimeBuilder {
        self.config.batches_in_flight = batches.max(1);
        self
    }

    /// The accuracy of generated arithmetic; accurate by default.
    pub fn precision(mut self, precision: Precision) -> RuntimeBuilder {
        self.config.precision = precision;
        self
    }

    /// Has a GPU compile, as soon as it is opened and beside the program, the shaders that most earlier runs on this
    /// machine needed, at most so many. Without it, a shader is compiled when a region first needs it. The environment
    /// variable `TIDEMILL_WARMUP` says the same where the program does not; 0 turns it off. Shaders are
    /// remembered in the cache's folder for each adapter and driver, also by runs that don't warm up.
    pub fn warm_up(mut self, shaders: usize) -> RuntimeBuilder {
        self.config.warm_up = Some(shaders);
        self
    }

    /// How the dtypes of an op's operands mix; as MATLAB mixes them by default, where f32 beside f64 is f32 and an
    /// `i32` 3 times 0.5 is 2. [`Promotion::Strict`] refuses what would lose digits or range;
    /// [`Session::set_promotion`](super::Session::set_promotion) says it for one session. Scripts keep MATLAB's rules.
    ///
    /// ```
    /// use tidemill::{Promotion, Runtime};
    /// let rt = Runtime::builder().device("host").promotion(Promotion::Strict).start_blocking()?;
    /// let s = rt.session("prices").open();
    /// let (price, rate) = (s.ones::<f32>([1000, 1]), s.ones::<f64>([1000, 1]));
    /// let mixed = &price * &rate;
    /// assert!(mixed.error().unwrap().message().contains("f64"));
    /// let said = price.cast::<f64>() * rate;
    /// assert!(said.error().is_none());
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    pub fn promotion(mut self, promotion: Promotion) -> RuntimeBuilder {
        self.config.promotion = promotion;
        self
    }

    /// Values of at most this many elements are computed when they are recorded, where all operands are known on
    /// the host; 64 by default, 0 turns it off. A program's bits depend on it, as on the two below: what is computed
    /// together decides how it is rounded.
    pub fn fold_elements_max(mut self, elements: usize) -> RuntimeBuilder {
        self.config.fold_elements_max = elements;
        self
    }

    /// Undemanded ops that a session's tape holds before it is cut, and lazy values and ops of given-up gathers that it
    /// leaves before they are computed; 4096 by default, at least 1.
    pub fn tape_nodes_max(mut self, nodes: usize) -> RuntimeBuilder {
        self.config.tape_nodes_max = nodes.max(1);
        self
    }

    /// Bytes that a session's tape may pin before it is cut, and that what it leaves lazy may keep of what it let go
    /// of; 1 GiB by default.
    pub fn tape_bytes_max(mut self, bytes: u64) -> RuntimeBuilder {
        self.config.tape_bytes_max = bytes.max(1);
        self
    }

    /// Recorded ops that may wait, of all sessions together: ops that were sent and have not run, whether or not
    /// somebody demands them. 16 Mi by default (their records take about 1.5 GB), at least 1.
    ///
    /// Recording never waits in async code. Where there is no room, an op's array carries
    /// [`ErrorKind::Overloaded`](crate::ErrorKind::Overloaded), as does all that is computed from it; nothing is
    /// recorded for it. [`Session::ready`](crate::Session::ready) waits for room, and the op can be recorded again.
    /// Programs on threads of their own may be held instead: [`RuntimeBuilder::hold_recording`].
    ///
    /// The default lets a program record a loop of millions of ops far ahead of the devices. A service that wants to
    /// refuse early sets it to what its devices do in the time that its callers wait. Work that is given up (its
    /// gathers and its session dropped) leaves at once and makes room. Ops on a tape that was not sent yet count for
    /// their own session alone: all tapes together may hold more.
    pub fn ops_pending_max(mut self, ops: u64) -> RuntimeBuilder {
        self.config.ops_pending_max = Some(ops.max(1));
        self
    }

    /// As [`RuntimeBuilder::ops_pending_max`], for each session: half of it by default, so that one session that runs
    /// ahead leaves room for others.
    pub fn session_ops_pending_max(mut self, ops: u64) -> RuntimeBuilder {
        self.config.session_ops_pending_max = Some(ops.max(1));
        self
    }

    /// Bytes of host memory that waiting work may keep, of all sessions together: its records, and data that the
    /// program brought and has let go of, which waiting ops still read. The host's budget by default, or 1 GiB where
    /// that is less. It is looked at before an op is recorded: one op may bring more than is left. Beyond it, as
    /// [`RuntimeBuilder::ops_pending_max`] says. What the program itself still holds does not count. Where it is set,
    /// [`RuntimeBuilder::tape_bytes_max`] is no more: what a session leaves lazy that keeps as much is computed.
    pub fn bytes_pending_max(mut self, bytes: u64) -> RuntimeBuilder {
        self.config.bytes_pending_max = Some(bytes.max(1));
        self
    }

    /// As [`RuntimeBuilder::bytes_pending_max`], for each session: all of it by default.
    pub fn session_bytes_pending_max(mut self, bytes: u64) -> RuntimeBuilder {
        self.config.session_bytes_pending_max = Some(bytes.max(1));
        self
    }

    /// A thread that records more than there is room for is held until there is some, in place of the error: for
    /// programs on threads of their own. A session's room is then eight full tapes by default, since running ahead by
    /// more is of no use. In async code, and on the runtime's own threads, nothing is held all the same.
    pub fn hold_recording(mut self) -> RuntimeBuilder {
        self.config.hold_recording = true;
        self
    }

    /// How long `shutdown` waits for work in flight; 30 s by default.
    pub fn drain(mut self, deadline: Duration) -> RuntimeBuilder {
        self.config.drain_ms = deadline.as_millis().min(u64::MAX as u128) as u64;
        self
    }

    /// How long memory that values have left may lie free before it goes back to the system: 4 s by default,
    /// `Duration::MAX` keeps it as long as the runtime lives. Of what lay free for half of that time, half goes, again
    /// and again; where nothing happens at all, all of it has gone after three times as long, on the host and on a GPU,
    /// and the runtime sleeps. Work that goes on keeps what it uses. [`Stats::bytes_pooled_now`](crate::Stats) and
    /// `bytes_returned` count it.
    pub fn idle_release(mut self, after: Duration) -> RuntimeBuilder {
        self.config.idle_release = (after < FOREVER).then_some(after);
        self
    }

    /// Faults, limits and holds that a test injects; none by default. With the feature `testing` only.
    #[cfg(any(test, feature = "testing"))]
    pub fn injection(mut self, injection: crate::injection::Injection) -> RuntimeBuilder {
        self.config.injection = injection;
        self
    }

    /// Opens the devices, but for a GPU that is opened on demand, and starts the runtime, under any executor: the
    /// opening runs on a thread of its own.
    ///
    /// # Errors
    /// `ErrorKind::Device` for an unknown or missing device, `ErrorKind::Io` for a timeline that cannot be written.
    pub async fn start(self) -> Result<Runtime> {
        let config = self.resolve()?;
        let (sender, receiver) = oneshot::channel();
        let thread = std::thread::Builder::new().name("tidemill-open".into());
        // The runtime's threads speak to the subscriber that is current here.
        let subscriber = tracing::dispatcher::get_default(tracing::Dispatch::clone);
        let open = move || tracing::dispatcher::with_default(&subscriber, || Runtime::open(config));
        thread.spawn(move || drop(sender.send(open())))?;
        receiver.await.unwrap_or_else(|_| Err(Error::new(ErrorKind::Internal, "opening the devices panicked")))
    }

    /// As [`RuntimeBuilder::start`], on this thread.
    ///
    /// # Errors
    /// As `start`, and `ErrorKind::WouldBlock` inside of an async context.
    pub fn start_blocking(self) -> Result<Runtime> {
        super::pending::may_block("starting a runtime")?;
        Runtime::open(self.resolve()?)
    }

    /// The settings, with the environment's device where none was chosen.
    fn resolve(mut self) -> Result<Config> {
        // What a session leaves lazy keeps no more than what may wait of it.
        let Config { bytes_pending_max, session_bytes_pending_max, tape_bytes_max, .. } = &mut self.config;
        let asked = [*bytes_pending_max, *session_bytes_pending_max].into_iter().flatten().min();
        *tape_bytes_max = asked.map_or(*tape_bytes_max, |bytes| bytes.min(*tape_bytes_max));
        self.config.device = match self.device {
            Some(device) => device?,
            None => match std::env::var(DEVICE_VARIABLE) {
                Ok(name) if !name.trim().is_empty() => name
                    .into_device()
                    .map_err(|e| Error::new(e.kind(), format!("{DEVICE_VARIABLE}: {}", e.message())))?,
                _ => DeviceChoice::Auto,
            },
        };
        if self.config.warm_up.is_none()
            && let Ok(shaders) = std::env::var(WARM_UP_VARIABLE)
            && !shaders.trim().is_empty()
        {
            let wrong =
                || Error::new(ErrorKind::Argument, format!("{WARM_UP_VARIABLE}: '{shaders}' is no number of shaders"));
            self.config.warm_up = Some(shaders.trim().parse().map_err(|_| wrong())?);
        }
        self.config.warm_up = self.config.warm_up.filter(|shaders| *shaders > 0);
        Ok(self.config)
    }
}

impl Runtime {
    /// Settings, to start a runtime with.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder::default()
    }

    fn open(config: Config) -> Result<Runtime> {
        let existed = config.timeline.as_ref().is_some_and(|path| path.exists());
        let timeline = match &config.timeline {
            Some(path) => Timeline::to_file(path)?,
            None => Timeline::off(),
        };
        let (config, counters) = (Arc::new(config), Arc::new(Counters::default()));
        let ring = ring::start(config.clone(), timeline.clone(), counters.clone()).inspect_err(|_| {
            // A run that never began leaves no file behind, unless there was one.
            let _ = timeline.finish();
            if let Some(path) = config.timeline.as_ref().filter(|_| !existed) {
                let _ = std::fs::remove_file(path);
            }
        })?;
        let gates = ring.gates.clone();
        let host_budget = ring.devices.host().map_or(u64::MAX, |host| host.budget_bytes);
        let link = Link {
            events: ring.events.clone(),
            gathers: ring.gathers.clone(),
            counters,
            timeline,
            total: ring.gates.total().clone(),
            session_room: config.session_pending_max(host_budget),
            config,
            devices: ring.devices.clone(),
            register_gate: Box::new(move |session, gate| gates.register(session, gate)),
            sessions: AtomicU64::new(0),
            claims: ring.claims.clone(),
            spares: Arc::default(),
            demanding: Mutex::default(),
            ended: AtomicBool::new(false),
        };
        Ok(Runtime { link: Arc::new(link), ring })
    }

    /// A new session, to be opened.
    pub fn session(&self, name: &str) -> SessionBuilder {
        SessionBuilder::new(self.link.clone(), name)
    }

    /// What was done so far.
    pub fn stats(&self) -> Stats {
        self.link.counters.read()
    }

    /// Entries of each table that names sessions, gathers, values or regions, by the table's name.
    #[cfg(test)]
    pub(crate) fn tables(&self) -> Vec<(&'static str, usize)> {
        let mut tables = self.ring.tables();
        tables.push(("sessions that ask", self.link.demanding.lock().len()));
        tables
    }

    /// The devices; the host is always the first. A GPU that was left for later is opened now: the first call may take
    /// as long as a driver does, and blocks.
    pub fn devices(&self) -> &[DeviceInfo] {
        self.link.devices.all()
    }

    /// The timeline's recorder, for a program's own spans; it records nothing unless a path was set.
    pub fn timeline(&self) -> &Timeline {
        &self.link.timeline
    }

    /// Lets the work in flight end (all that was asked for before, polled or not), up to the deadline
    /// ([`RuntimeBuilder::drain`]), fails what is left with `ErrorKind::Shutdown`, and closes the timeline. The future
    /// is ready when that is done and the devices' threads have ended, at the latest when the deadline has passed: a
    /// kernel or a compilation that takes longer is left behind, its result is thrown away, and its thread, its memory
    /// and the device go when it ends. A new runtime may start at once.
    ///
    /// From its first poll on the shutdown goes on whether or not the future lives; any number of callers may ask for
    /// it, at once or one after the other, and each is told the same end. What is recorded afterwards fails with
    /// `ErrorKind::Shutdown`; what is known on the host already, tiny values and what is computed of them at once,
    /// stays with the program.
    ///
    /// # Errors
    /// `ErrorKind::Io` where the timeline could not be written.
    pub fn shutdown(&self) -> impl Future<Output = Result<()>> + Send + use<> {
        let (link, (closer, ended)) = (self.link.clone(), self.ring.closer());
        async move {
            let deadline = Instant::now() + Duration::from_millis(link.config.drain_ms).min(FOREVER);
            link.end();
            let close = move || {
                // What was asked for and never polled is in flight, too.
                link.flush_demanding(deadline);
                closer.shutdown(deadline);
            };
            // Thousands of tapes take longer than a task may hold its executor's thread.
            let thread = std::thread::Builder::new().name("tidemill-close".into());
            if let Err(error) = thread.spawn(close.clone()) {
                tracing::warn!(target: "tidemill", "a shutdown holds its caller, since there is no thread for it: {error}");
                close();
            }
            ended.wait().await
        }
    }

    /// As [`Runtime::shutdown`], on this thread.
    ///
    /// # Errors
    /// As `shutdown`, and `ErrorKind::WouldBlock` inside of an async context.
    pub fn shutdown_blocking(&self) -> Result<()> {
        super::pending::may_block("shutting down")?;
        futures::executor::block_on(self.shutdown())
    }
}

impl Drop for Runtime {
    /// Asks the runtime to end, and waits for nothing: whatever is under way, gathers that are pending resolve to
    /// `ErrorKind::Shutdown` in a moment, and threads, memory and devices go behind the batches that have begun. A
    /// timeline is complete when its file has been closed by then; await [`Runtime::shutdown`] to know.
    ///
    /// The ring is told by its own `drop`.
    fn drop(&mut self) {
        self.link.end();
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.link.devices.open().iter().map(|d| d.name.as_str()).collect();
        write!(f, "Runtime({})", names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_names_are_read_and_unknown_ones_are_typed_errors() {
        assert_eq!("auto".into_device().unwrap(), DeviceChoice::Auto);
        assert_eq!("HOST".into_device().unwrap(), DeviceChoice::Host);
        assert_eq!("gpu".into_device().unwrap(), DeviceChoice::Gpu(None));
        assert_eq!("gpu:1".into_device().unwrap(), DeviceChoice::Gpu(Some(1)));
        for bad in ["tpu", "gpu:", "gpu:-1", "gpu:x", ""] {
            let error = bad.into_device().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Device);
            assert!(error.message().contains("choose auto, host, gpu or gpu:N"), "{error}");
        }
    }

    #[test]
    fn an_unknown_device_fails_the_start_before_anything_is_opened() {
        let error = Runtime::builder().device("tpu").start_blocking().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Device);
    }
}
