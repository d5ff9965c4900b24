//! Spans, GPU lanes, flows, counters and *why* records, to one Chrome-trace file a runtime.
//!
//! In: calls from every actor and every session, on any thread, and the `tracing` spans of the runtime's own
//! threads. Out: a JSON file that opens in Perfetto and in `chrome://tracing`.
//!
//! Must hold:
//! - TIME-1: nothing here changes what is executed; an error of the file ends the recording, never the run.
//! - TIME-2: after every write the file is one strict JSON array, so that an interrupted run leaves a file that opens.
//! - TIME-3: all times are nanoseconds since [`Timeline::off`] or [`Timeline::to_file`] was called: one clock.
//! - TIME-4: two spans on one row of the file never cross; lanes whose spans overlap are split into more rows.
//! - TIME-5: one recorder a runtime and no global state: two runtimes in a process never mix.
//!
//! The caller's thread only moves data into a sharded queue; a thread of the recorder places, pairs and writes it.

mod both;
mod caller;
mod chrome;
mod file;
mod flows;
mod json;
mod lanes;
mod layer;
mod queue;
pub mod summary;
mod writer;

pub use caller::{Caller, Callers};
pub use layer::TimelineLayer;

use crate::error::{Error, ErrorKind, Result};
use crate::ids::{DeviceId, SessionId};
use chrome::HostDispatch;
use lanes::Row;
use parking_lot::Mutex;
use queue::{CallerRecord, Queue};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;
use tracing::Dispatch;

/// A row of the timeline.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lane {
    /// A session's recordings and gathers.
    Session(SessionId),
    /// The scheduler actor.
    Scheduler,
    /// The fusion actor.
    Fusion,
    /// The residency actor.
    Residency,
    /// Planning and compiling workers.
    Worker(u32),
    /// Encoding and submitting on a device's thread.
    DeviceQueue(DeviceId),
    /// Bytes moving to a device.
    DeviceUpload(DeviceId),
    /// Kernels running.
    DeviceCompute(DeviceId),
    /// Bytes moving to the host.
    DeviceReadback(DeviceId),
}

/// Numbers of the arrows that cross folders. A region's own number is the arrow from its segment to the scheduler;
/// devices number the arrows between their own lanes with the two highest bits set.
pub mod flow {
    use crate::ids::{GatherId, RegionId};

    /// From the scheduler to the first batch of a region.
    pub fn to_device(region: RegionId) -> u64 {
        region.0 | 1 << 60
    }

    /// From the scheduler to the gather that it resolved.
    pub fn to_gather(gather: GatherId) -> u64 {
        gather.0 | 1 << 61
    }
}

/// An argument of an event.
#[derive(Clone, Debug)]
pub enum Detail {
    /// A number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A text.
    Text(String),
}

/// The recorder of one runtime. It is cheap to clone; when it is off, a call costs one branch.
#[derive(Clone)]
pub struct Timeline {
    epoch: Instant,
    recorder: Option<Arc<Recorder>>,
    /// The subscriber that was current where the timeline was created, if there was one.
    program: Option<Dispatch>,
    callers: Arc<Callers>,
}

/// Records the `tracing` spans of the current thread until it is dropped; see [`Timeline::enter_thread`].
#[must_use = "the thread's spans are recorded until this is dropped"]
pub struct ThreadGuard {
    _scope: Option<tracing::dispatcher::DefaultGuard>,
}

/// The state that all clones of a timeline share. Dropping the last clone finishes the file.
struct Recorder {
    queue: Arc<Queue>,
    host: Option<HostDispatch>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Timeline {
    /// A timeline that records nothing. Its clock still runs.
    pub fn off() -> Timeline {
        Timeline { epoch: Instant::now(), recorder: None, program: current_subscriber(), callers: Arc::default() }
    }

    /// A timeline that is written to `path`, which is replaced if it exists.
    ///
    /// Beyond 256 MB the recording goes on in `name.1.json`, `name.2.json` and so on, each of which opens by
    /// itself; after eight files it stops, with a note in the last one. A run that records nothing leaves no new
    /// file behind, and an old one as it was.
    ///
    /// # Errors
    /// `ErrorKind::Io` if the file cannot be created or written, or if another runtime is writing it.
    pub fn to_file(path: impl AsRef<Path>) -> Result<Timeline> {
        Timeline::with_limits(path.as_ref(), file::Limits::default())
    }

    fn with_limits(path: &Path, limits: file::Limits) -> Result<Timeline> {
        let epoch = Instant::now();
        let file = file::TraceFile::create(path, limits)?;
        let queue = Arc::new(Queue::default());
        let program = current_subscriber();
        let (thread, host) = writer::spawn(file, queue.clone(), epoch, program.clone()).map_err(|error| {
            Error::new(ErrorKind::Io, format!("the timeline's thread could not be started: {error}"))
        })?;
        let recorder = Recorder { queue, host, thread: Mutex::new(Some(thread)) };
        Ok(Timeline { epoch, recorder: Some(Arc::new(recorder)), program, callers: Arc::default() })
    }

    /// Whether anything is recorded; check it before building details.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.recorder.is_some()
    }

    /// Nanoseconds since the timeline's creation, on the clock of every event, also when it is off.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    /// Names a session's lane.
    pub fn name_session(&self, session: SessionId, name: &str) {
        self.record(|| CallerRecord::SessionName(session, name.to_owned()));
    }

    /// A session has ended, and records nothing more: its name and rows are forgotten once they are written.
    pub fn end_session(&self, session: SessionId) {
        self.record(|| CallerRecord::SessionEnd(session));
    }

    /// Names a device's group of lanes.
    pub fn name_device(&self, device: DeviceId, name: &str) {
        self.record(|| CallerRecord::DeviceName(device, name.to_owned()));
    }

    /// A span on a lane, in nanoseconds of [`Timeline::now_ns`].
    pub fn span(&self, lane: Lane, name: &str, start_ns: u64, end_ns: u64, details: &[(&'static str, Detail)]) {
        self.record(|| CallerRecord::Span {
            row: Row::Lane(lane),
            name: name.into(),
            start_ns,
            end_ns: end_ns.max(start_ns),
            details: details.to_vec(),
        });
    }

    /// The start of an arrow (inside of a span on that lane at that time, which may be recorded before or after).
    pub fn flow_start(&self, lane: Lane, flow: u64, at_ns: u64) {
        self.record(|| CallerRecord::Flow { row: Row::Lane(lane), flow, at_ns, is_end: false });
    }

    /// The end of an arrow. An arrow is written once both of its ends are known.
    pub fn flow_end(&self, lane: Lane, flow: u64, at_ns: u64) {
        self.record(|| CallerRecord::Flow { row: Row::Lane(lane), flow, at_ns, is_end: true });
    }

    /// A counter's value, now.
    pub fn counter(&self, name: &'static str, value: u64) {
        self.record(|| CallerRecord::Counter { name, at_ns: self.now_ns(), value });
    }

    /// A *why* record: an instant, now, with its reason.
    pub fn why(&self, lane: Lane, name: &str, details: &[(&'static str, Detail)]) {
        self.record(|| CallerRecord::Instant {
            row: Row::Lane(lane),
            name: name.into(),
            at_ns: self.now_ns(),
            details: details.to_vec(),
        });
    }

    /// Until the guard is dropped, sends the current thread's `tracing` spans and events to the subscriber that was
    /// current where the timeline was created. Those of this crate are also recorded, through `tracing-chrome`, on the
    /// lane `tracing: name`. To be called once by each thread that the runtime owns, and by no other: the subscriber is
    /// scoped to the thread, never global.
    pub fn enter_thread(&self, name: &str) -> ThreadGuard {
        let host = self.host().map(|host| host.enter(name, self));
        ThreadGuard { _scope: host.or_else(|| self.program.as_ref().map(tracing::dispatcher::set_default)) }
    }

    fn host(&self) -> Option<&HostDispatch> {
        self.recorder.as_ref().and_then(|recorder| recorder.host.as_ref())
    }

    /// The callers of work in progress.
    pub fn callers(&self) -> &Callers {
        &self.callers
    }

    /// Runs work for a caller in a span that `make` creates from its parent's id.
    pub fn in_span<R>(
        &self,
        caller: &Caller,
        make: impl Fn(Option<tracing::span::Id>) -> tracing::Span,
        work: impl FnOnce() -> R,
    ) -> R {
        caller.enter(self.host().map(HostDispatch::recorder), make, work)
    }

    /// The recorder as a `tracing` layer, for embedders that want their program's own spans and events beside the
    /// runtime's: `tracing_subscriber::registry().with(timeline.layer())`. The layer keeps the recorder alive.
    pub fn layer(&self) -> TimelineLayer {
        TimelineLayer::new(self.clone())
    }

    /// Waits until everything recorded before this call is in the file.
    pub fn flush(&self) {
        if let Some(recorder) = &self.recorder {
            recorder.queue.flush();
        }
    }

    /// Writes the remaining records and closes the file; later records are ignored. This is also done when the last
    /// clone is dropped. Blocks until the file is complete.
    ///
    /// # Errors
    /// `ErrorKind::Io` with the first error of writing the file, at which the recording ended.
    pub fn finish(&self) -> Result<()> {
        self.recorder.as_ref().map_or(Ok(()), |recorder| recorder.finish())
    }

    /// Moves a record into the queue. `build` runs only when the timeline is on.
    #[inline]
    fn record(&self, build: impl FnOnce() -> CallerRecord) {
        if let Some(recorder) = &self.recorder {
            recorder.queue.push(build());
        }
    }
}

/// The current thread's subscriber, if there is one.
fn current_subscriber() -> Option<Dispatch> {
    let current = tracing::dispatcher::get_default(Dispatch::clone);
    (!current.is::<tracing::subscriber::NoSubscriber>()).then_some(current)
}

impl Default for Timeline {
    fn default() -> Timeline {
        Timeline::off()
    }
}

impl fmt::Debug for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_on() { "Timeline(on)" } else { "Timeline(off)" })
    }
}

impl Recorder {
    fn finish(&self) -> Result<()> {
        let mut thread = self.thread.lock();
        if let Some(thread) = thread.take() {
            self.queue.close();
            if thread.join().is_err() {
                self.queue.fail(Error::new(ErrorKind::Internal, "the timeline's thread panicked"));
            }
        }
        self.queue.failure().map_or(Ok(()), Err)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // TIME-1: there is no caller left to whom an error of the file could be returned.
        let _ = self.finish();
    }
}

#[cfg(test)]
mod tests;
