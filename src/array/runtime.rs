//! [`Runtime`]: devices, the ring, and the sessions on it.
//!
//! In: settings. Out: sessions; statistics; at the end, errors for all work that is still pending.
//! Must hold: two runtimes of one process share nothing; nothing here depends on the executor.

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

/// The environment variable that chooses the device if the builder does not.
pub const DEVICE_VARIABLE: &str = "TIDEMILL_DEVICE";
/// The environment variable that says how many shaders a GPU compiles when it is opened.
const WARM_UP_VARIABLE: &str = "TIDEMILL_WARMUP";

/// Durations from here on count as unlimited. A year is far below the limit of what clocks can add.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// A running Tidemill: its devices and the actors between them. A runtime may end and another one start in one process:
/// a GPU stays open for the next runtime, and the buffers of the last one are freed.
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

/// A value that specifies a device: a [`DeviceChoice`], or `"auto"`, `"host"`, `"gpu"`, `"gpu:N"`.
pub trait IntoDevice {
    /// The device that the value specifies.
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
    /// The device: a [`DeviceChoice`] or `"auto"`, `"host"`, `"gpu"`, `"gpu:1"`. Without this call, the environment
    /// variable `TIDEMILL_DEVICE` names it; else it is `auto`. If the name is unknown, the start fails.
    pub fn device(mut self, device: impl IntoDevice) -> RuntimeBuilder {
        self.device = Some(device.into_device());
        self
    }

    /// Whether the GPU is opened when it is first needed rather than at the start. Opening takes long. A GPU is needed
    /// when work is to be placed for which a GPU could be worth it, when a program pins an array to it, or when a
    /// program asks for the devices. The default is to open on demand with `auto`, since a program may never need a
    /// GPU, but to open at the start if a GPU is named, so that the start reports whether it can be opened. Neither the
    /// placement of work nor the bits of results depend on this setting.
    ///
    /// If a GPU is named that does not exist, the start fails in any case. If it exists but turns out not to open, work
    /// that was to run on it fails with `ErrorKind::Device`; with `auto` the host runs it.
    pub fn open_on_demand(mut self, on_demand: bool) -> RuntimeBuilder {
        self.config.open_on_demand = Some(on_demand);
        self
    }

    /// Bytes that values may take on the GPU; by default most of its memory. Values that do not fit are evicted to host
    /// memory. A single op that needs more by itself takes more while it runs. The bits of a program do not depend on
    /// it.
    pub fn device_budget(mut self, bytes: u64) -> RuntimeBuilder {
        self.config.device_budget = Some(bytes);
        self
    }

    /// Bytes that values may take in host memory; by default most of the machine's memory, less the share of a GPU that
    /// uses the same memory. The budget is strict: a step that needs more fails its gathers with
    /// `ErrorKind::OutOfMemory`. Large arrays in the memory of scripts count. Lazy values
    /// may keep at most half of the budget in arrays that the program has dropped. Upload writers may hold as much again in addition.
    /// Data of the program that the host device reads in place does not count.
    pub fn host_budget(mut self, bytes: u64) -> RuntimeBuilder {
        self.config.host_budget = Some(bytes);
        self
    }

    /// Writes a timeline (a Chrome trace) to this file.
    pub fn timeline(mut self, path: impl Into<PathBuf>) -> RuntimeBuilder {
        self.config.timeline = Some(path.into());
        self
    }

    /// Threads of the host device and of planning. The default is one for each core; the most are four for each core
    /// (or 16), since more would only wait for each other.
    pub fn worker_threads(mut self, threads: usize) -> RuntimeBuilder {
        self.config.worker_threads = Some(threads.clamp(1, (4 * crate::threads::cores()).max(16)));
        self
    }

    /// The most batches that a device holds at a time; 3 by default, at least 1.
    pub fn batches_in_flight(mut self, batches: u32) -> RuntimeBuilder {
        self.config.batches_in_flight = batches.max(1);
        self
    }

    /// The accuracy of generated arithmetic; accurate by default.
    pub fn precision(mut self, precision: Precision) -> RuntimeBuilder {
        self.config.precision = precision;
        self
    }

    /// Compiles shaders on a GPU as soon as it is opened, in parallel to the program: at most this many of those that most
    /// earlier runs on this machine needed. Without it, a shader is compiled when a region first needs it. The
    /// environment variable `TIDEMILL_WARMUP` sets the number if the program does not; 0 turns it off. Shaders are
    /// recorded in the cache's folder for each adapter and driver, also by runs that don't warm up.
    pub fn warm_up(mut self, shaders: usize) -> RuntimeBuilder {
        self.config.warm_up = Some(shaders);
        self
    }

    /// How the dtypes of an op's operands mix. By default they mix as in MATLAB: f32 beside f64 is f32, and an `i32` 3
    /// times 0.5 is 2. [`Promotion::Strict`] refuses mixes that would lose digits or range;
    /// [`Session::set_promotion`](super::Session::set_promotion) sets it for one session. Scripts keep MATLAB's rules.
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

    /// Values of at most this many elements are computed when they are recorded, if all operands are known on the host;
    /// 64 by default, 0 turns it off. The bits of a program depend on this setting and on the two below, because they
    /// decide which ops are computed together and how results are rounded.
    pub fn fold_elements_max(mut self, elements: usize) -> RuntimeBuilder {
        self.config.fold_elements_max = elements;
        self
    }

    /// The most undemanded ops that a session's tape holds before it is cut, and the most lazy values and ops of
    /// cancelled gathers that the session keeps before they are computed; 4096 by default, at least 1. While a [`Watch`](crate::Watch) follows
    /// the session, its tape holds eight times as many.
    pub fn tape_nodes_max(mut self, nodes: usize) -> RuntimeBuilder {
        self.config.tape_nodes_max = nodes.max(1);
        self
    }

    /// The most bytes that a session's tape may keep alive before it is cut, and the most bytes of dropped values that
    /// its lazy values may keep; 1 GiB by default.
    pub fn tape_bytes_max(mut self, bytes: u64) -> RuntimeBuilder {
        self.config.tape_bytes_max = bytes.max(1);
        self
    }

    /// The most recorded ops of all sessions that may wait. These are ops that were sent and have not run, whether they
    /// are demanded or not. 16 Mi by default (their records take about 1.5 GB), at least 1.
    ///
    /// Recording never waits in async code. If there is no room, an op's array carries
    /// [`ErrorKind::Overloaded`](crate::ErrorKind::Overloaded), and so do all arrays that are computed from it; nothing
    /// is recorded for them. [`Session::ready`](crate::Session::ready) waits for room; then the op can be recorded
    /// again. Programs on threads of their own may be blocked instead: [`RuntimeBuilder::hold_recording`].
    ///
    /// The default lets a program record a loop of millions of ops far ahead of the devices. A service that has to
    /// refuse work early sets it to the number of ops that its devices compute while a caller waits. Work that is
    /// cancelled (its gathers and its session are dropped) leaves at once and makes room. Ops on a tape that was not
    /// sent yet count for their own session alone, so all tapes together may hold more.
    pub fn ops_pending_max(mut self, ops: u64) -> RuntimeBuilder {
        self.config.ops_pending_max = Some(ops.max(1));
        self
    }

    /// As [`RuntimeBuilder::ops_pending_max`], for each session; by default half of it, so that a session that runs
    /// ahead leaves room for others.
    pub fn session_ops_pending_max(mut self, ops: u64) -> RuntimeBuilder {
        self.config.session_ops_pending_max = Some(ops.max(1));
        self
    }

    /// The most bytes of host memory that the waiting work of all sessions may keep: its records, and data of the
    /// program that the program has dropped and that waiting ops still read. By default the host's budget, but at least
    /// 1 GiB. It is checked before an op is recorded, so one op may take more than is left. Beyond the limit, ops are
    /// refused as [`RuntimeBuilder::ops_pending_max`] says. Data that the program itself still holds does not count. If
    /// this is set, [`RuntimeBuilder::tape_bytes_max`] is at most as large: lazy values that keep more than this are
    /// computed.
    pub fn bytes_pending_max(mut self, bytes: u64) -> RuntimeBuilder {
        self.config.bytes_pending_max = Some(bytes.max(1));
        self
    }

    /// As [`RuntimeBuilder::bytes_pending_max`], for each session; by default the same.
    pub fn session_bytes_pending_max(mut self, bytes: u64) -> RuntimeBuilder {
        self.config.session_bytes_pending_max = Some(bytes.max(1));
        self
    }

    /// Makes recording block the calling thread while there is no room, instead of returning `ErrorKind::Overloaded`.
    /// This is for programs on threads of their own. A session's room is then eight full tapes by default, since running further
    /// ahead has no use. In async code, and on the runtime's own threads, recording is never blocked.
    pub fn hold_recording(mut self) -> RuntimeBuilder {
        self.config.hold_recording = true;
        self
    }

    /// The longest time that `shutdown` waits for work in flight; 30 s by default.
    pub fn drain(mut self, deadline: Duration) -> RuntimeBuilder {
        self.config.drain_ms = deadline.as_millis().min(u64::MAX as u128) as u64;
        self
    }

    /// How long free memory is kept before it is returned to the system: 4 s by default; `Duration::MAX` keeps it as
    /// long as the runtime lives. Twice in that time, half of the memory that was unused since the last time is
    /// returned. If nothing happens at all, all of it is returned after three times as long, on the host and on a GPU,
    /// and the runtime sleeps. Memory that current work uses is kept. [`Stats::bytes_pooled_now`](crate::Stats) and
    /// `bytes_returned` count it.
    pub fn idle_release(mut self, after: Duration) -> RuntimeBuilder {
        self.config.idle_release = (after < FOREVER).then_some(after);
        self
    }

    /// Faults, limits and holds that a test injects; none by default. It exists with the feature `testing` only.
    #[cfg(any(test, feature = "testing"))]
    pub fn injection(mut self, injection: crate::injection::Injection) -> RuntimeBuilder {
        self.config.injection = injection;
        self
    }

    /// Opens the devices, except for a GPU that is opened on demand, and starts the runtime. It works under any
    /// executor, because a separate thread opens the devices.
    ///
    /// # Errors
    /// `ErrorKind::Device` for an unknown or missing device, `ErrorKind::Io` for a timeline that cannot be written.
    pub async fn start(self) -> Result<Runtime> {
        let config = self.resolve()?;
        let (sender, receiver) = oneshot::channel();
        let thread = std::thread::Builder::new().name("tidemill-open".into());
        // The runtime's threads send their events to the `tracing` subscriber that is current here.
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

    /// The settings, with the device of the environment if none was chosen.
    fn resolve(mut self) -> Result<Config> {
        // A session's lazy values may keep no more bytes than may wait.
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
    /// The settings with which a runtime is started.
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
            // A start that fails leaves no timeline file behind, unless the file existed before.
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

    /// Counters of all work so far.
    pub fn stats(&self) -> Stats {
        self.link.counters.read()
    }

    /// The number of entries of each table that names sessions, gathers, values or regions, by the table's name.
    #[cfg(test)]
    pub(crate) fn tables(&self) -> Vec<(&'static str, usize)> {
        let mut tables = self.ring.tables();
        tables.push(("sessions that demand values", self.link.demanding.lock().len()));
        tables
    }

    /// The devices; the host is always the first. A GPU that is opened on demand is opened now: the first call blocks
    /// for as long as the driver takes.
    pub fn devices(&self) -> &[DeviceInfo] {
        self.link.devices.all()
    }

    /// The timeline's recorder, for spans of the program. It records nothing unless a path was set.
    pub fn timeline(&self) -> &Timeline {
        &self.link.timeline
    }

    /// Lets the work in flight end (everything that was demanded before, polled or not), up to the deadline
    /// ([`RuntimeBuilder::drain`]); then fails the rest with `ErrorKind::Shutdown`, and closes the timeline. The future
    /// is ready when that is done and the devices' threads have ended, at the latest at the deadline. A kernel or a
    /// compilation that takes longer is left running and its result is dropped; its thread, its memory and the device
    /// are released when it ends. A new runtime may start at once.
    ///
    /// From its first poll on, the shutdown goes on even if the future is dropped. Any number of callers may ask for
    /// it, and all get the same result. Ops that are recorded afterwards fail with `ErrorKind::Shutdown`. Values that
    /// are known on the host, and tiny values that are computed from them at once, remain usable.
    ///
    /// # Errors
    /// `ErrorKind::Io` if the timeline could not be written.
    pub fn shutdown(&self) -> impl Future<Output = Result<()>> + Send + use<> {
        let (link, (closer, ended)) = (self.link.clone(), self.ring.closer());
        async move {
            let deadline = Instant::now() + Duration::from_millis(link.config.drain_ms).min(FOREVER);
            link.end();
            let close = move || {
                // Values that were demanded and never polled are in flight, too.
                link.flush_demanding(deadline);
                closer.shutdown(deadline);
            };
            // Cutting thousands of tapes takes longer than a task may block its executor's thread.
            let thread = std::thread::Builder::new().name("tidemill-close".into());
            if let Err(error) = thread.spawn(close.clone()) {
                tracing::warn!(target: "tidemill", "a shutdown blocks its caller, because no thread could be started: {error}");
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
    /// Asks the runtime to end, and waits for nothing. Pending gathers resolve to `ErrorKind::Shutdown` soon. Threads,
    /// memory and devices are released after the batches that have begun. A timeline may be incomplete if the process
    /// ends before its file is closed; await [`Runtime::shutdown`] to be sure.
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
