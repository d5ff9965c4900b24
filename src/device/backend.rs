//! The one trait for backends: the methods that a device has to offer so that the runtime can use it.
//!
//! In: batches over named buffers, in order. Out: the end of each batch, and its readbacks, through [`Reports`]. A
//! backend describes its capabilities, its limits and its measured constants ([`DeviceInfo`]), and carries batches out.
//! It knows neither the ring nor residency nor a mailbox: the driver (`drive.rs`) stands between them and the backend.
//! wgpu (`gpu/`), the host (`host/`) and the fake device of tests (`fake.rs`) implement the trait, and `conformance/`
//! runs one list of cases on all of them.
//!
//! Must hold:
//! - BACKEND-1: the backend reports each batch once, as finished or as failed, after the batch's readbacks.
//! - BACKEND-2: the effects are the same as if each batch and each release had ended before the next one began.
//! - BACKEND-3: a batch that fails does no harm to other batches. All allocations that its commands name are made and
//!   freed as if it had run, whichever command failed. Its error names the device, and the op if one is to blame.
//! - BACKEND-4: a kernel that fails or panics fails its batch and nothing else.
//! - BACKEND-5: before the backend returns a loss, it has reported every batch that was submitted. A device that was
//!   replaced is empty: a batch that names an allocation from before the loss fails.

use crate::config::Config;
use crate::contract::batch::{Batch, Command, Transfer};
use crate::contract::device::DeviceInfo;
use crate::contract::plan::Plan;
use crate::error::{Error, Result, Site};
use crate::host_buffer::{HostBuffer, MappedBytes};
use crate::ids::{BatchId, BufferId};
use crate::injection::Wrong;
use crate::stats::Counters;
use crate::timeline::Timeline;
use crossbeam_channel::Receiver;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// A device that carries out batches over named buffers. Only one thread at a time calls its methods. A method may run
/// the work that it is given before it returns, but must not block for anything else.
pub trait Backend: Send + 'static {
    /// The message that the backend's own threads send to it, by way of the driver. [`std::convert::Infallible`] for a
    /// backend without threads.
    type Signal: Send + 'static;

    /// Capabilities, limits and measured constants.
    fn info(&self) -> &DeviceInfo;

    /// The names of the driver's thread and of its timeline lane, and how long the thread polls before it sleeps.
    fn driving(&self) -> Driving;

    /// The compiler that makes pipelines ahead of their first use. The ring does not use the compiler of a backend that
    /// lacks the capability `compiles`.
    fn compiler(&self) -> Arc<dyn Compiler> {
        Arc::new(NothingToCompile)
    }

    /// Memory that users may fill for this device in place of host memory; `None` if the device has no such memory.
    fn upload_memory(&self) -> Option<Arc<dyn UploadMemory>> {
        None
    }

    /// The channel on which the backend's own threads send signals. The driver receives each signal and passes it to
    /// [`Backend::signalled`]. If all senders of the channel are dropped, the driver reports the device as lost. A
    /// backend without threads returns a channel that never closes (`crossbeam_channel::never`).
    fn signals(&self) -> Receiver<Self::Signal>;

    /// The backend's own threads, which have to end by themselves once the backend is dropped. The shutdown of the
    /// device joins them. The driver calls this once, at the start.
    fn take_threads(&mut self) -> Vec<JoinHandle<()>> {
        Vec::new()
    }

    /// Takes a batch. The backend reports the batch when it is done, which may be before this method returns. `wrong`
    /// holds the faults that a test injects into this batch. `more_waits` is true if more instructions are already
    /// queued behind it.
    ///
    /// # Errors
    /// The loss of the device, if it was found now or since the last call. The backend has then reported all batches,
    /// including this one (BACKEND-5).
    fn submit(&mut self, batch: Batch, wrong: Wrong, more_waits: bool) -> Result<(), DeviceLoss>;

    /// Frees these allocations once all earlier batches are done. Names that do not exist are ignored.
    fn release(&mut self, buffers: Vec<BufferId>);

    /// Returns free memory to the system: the part that was not needed since the last call or, if `all` is true, all of
    /// it. Allocations are never touched.
    fn trim(&mut self, all: bool);

    /// Handles a signal that one of the backend's own threads has sent.
    ///
    /// # Errors
    /// The loss of the device (BACKEND-5).
    fn signalled(&mut self, signal: Self::Signal) -> Result<(), DeviceLoss>;

    /// Whether [`Backend::is_brief`] or [`Backend::frees_briefly`] can ever return true. If not, the ring sends all
    /// instructions to the driver's thread and never runs one itself.
    fn has_brief_work(&self) -> bool {
        false
    }

    /// Whether the calling thread may run this batch itself: no earlier work is unfinished, and the batch is estimated
    /// to take at most `within_us` microseconds.
    fn is_brief(&self, _batch: &Batch, _within_us: f64) -> bool {
        false
    }

    /// Whether the calling thread may free these allocations itself: no earlier work is unfinished, and freeing them is
    /// estimated to take at most `within_us` microseconds.
    fn frees_briefly(&self, _buffers: &[BufferId], _within_us: f64) -> bool {
        false
    }

    /// Ends the device. Batches that were submitted are still finished and reported, by this method or by the threads
    /// of [`Backend::take_threads`]. The driver calls no other method afterwards, and drops the backend.
    fn finish(&mut self);
}

/// How the driver's thread of a backend is named, and how it waits.
pub struct Driving {
    /// The name of the driver's thread.
    pub thread: String,
    /// The name of its lane on the timeline.
    pub lane: &'static str,
    /// How long the thread polls for the next instruction before it sleeps. `None`: it sleeps at once.
    pub look: Option<Duration>,
}

/// The loss of a device, with all memory that it held.
#[derive(Debug)]
pub struct DeviceLoss {
    /// The reason, as reported to the ring and by the batches that fail with the device.
    pub error: Error,
    /// Whether the backend has opened a new, empty device in its place and goes on.
    pub replaced: bool,
}

/// Receives a backend's reports about its batches. Any thread may call it.
pub trait Reports: Send + Sync {
    /// A readback arrived. The report that its batch has ended follows soon.
    fn readback(&self, transfer: Transfer, data: Result<Arc<HostBuffer>>);

    /// A batch is done. `faults` holds the indices of its fault words that are set, and `device_ns` the nanoseconds
    /// that the device spent on it.
    fn finished(&self, batch: BatchId, faults: Vec<u32>, device_ns: u64);

    /// A batch failed (BACKEND-3).
    fn failed(&self, batch: BatchId, error: Error);
}

/// Makes pipelines ahead of their first dispatch, from any thread.
pub trait Compiler: Send + Sync {
    /// Compiles the pipelines of this plan that the device has not compiled yet.
    ///
    /// # Errors
    /// `ErrorKind::Internal` with the shader compiler's message. The region of the plan then fails with this error.
    fn prepare(&self, plan: &Plan) -> Result<()>;
}

/// The compiler of a backend that interprets kernels: it does nothing.
pub struct NothingToCompile;

impl Compiler for NothingToCompile {
    fn prepare(&self, _plan: &Plan) -> Result<()> {
        Ok(())
    }
}

/// Memory that the host writes and the device reads directly, so that an upload needs no copy on the host.
pub trait UploadMemory: Send + Sync {
    /// Memory of this size, with arbitrary contents; `None` if no more is available. The caller then uses host memory.
    fn lease(&self, bytes: usize) -> Option<Box<dyn MappedBytes>>;
}

/// The settings and channels that every backend gets when it is opened.
#[derive(Clone)]
pub struct Context {
    /// The runtime's settings.
    pub config: Arc<Config>,
    /// Counters.
    pub counters: Arc<Counters>,
    /// The timeline.
    pub timeline: Timeline,
    /// The receiver of the backend's reports.
    pub reports: Arc<dyn Reports>,
}

/// The op and the place in the program that an error names.
pub type Blame = (&'static str, Site);

/// The op to blame for a failure at the command of index `at`: that of the first launch from there on or, if there is
/// none, that of the last launch before it. `None` if the batch has no launch.
pub fn blame_from(commands: &[Command], at: usize) -> Option<Blame> {
    let launch = |command: &Command| match command {
        Command::Dispatch { launch, .. } => Some(launch.blame),
        _ => None,
    };
    let (before, after) = commands.split_at(at.min(commands.len()));
    after.iter().find_map(launch).or_else(|| before.iter().rev().find_map(launch))
}

/// The error, with the op and the place to blame added to it.
pub fn blamed(error: Error, blame: Option<Blame>) -> Error {
    match blame {
        Some((op, site)) => error.with_op(op).with_site(site),
        None => error,
    }
}
