//! The one trait for backends: what a device has to offer so that the runtime can use it.
//!
//! In: batches over named buffers, in order. Out: what became of them, through [`Reports`]. A backend says what it can
//! do, its limits and its measured constants ([`DeviceInfo`]), and carries batches out. It knows neither the ring nor a
//! mailbox, nor who wrote the batches: `drive.rs` stands between both. wgpu (`gpu/`), the host (`host/`) and the fake
//! device of tests (`fake.rs`) implement it, and `conformance/` checks all of them by one list of cases.
//!
//! Must hold:
//! - BACKEND-1: each batch is reported once, as finished or as failed, after its readbacks.
//! - BACKEND-2: effects are as if each batch and each release ended before the next one began.
//! - BACKEND-3: a batch that fails touches no other batch: the allocations that it makes are made, and those that it
//!   frees are freed, whatever it failed of. Its error names the device, and the op where there is one.
//! - BACKEND-4: whatever a kernel does, a panic included, fails its batch and nothing else.
//! - BACKEND-5: before a loss is returned, every batch that was submitted before has been reported. A device that was
//!   replaced is empty, and a batch that names memory of before fails.

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

/// A device that carries out batches over named buffers. One thread at a time calls it; its methods do not block for
/// longer than the work that they are given takes.
pub trait Backend: Send + 'static {
    /// What the backend's own threads tell it.
    type Signal: Send + 'static;

    /// Capabilities, limits and measured constants.
    fn info(&self) -> &DeviceInfo;

    /// How the driver's thread is called, and how long it looks for work before it sleeps.
    fn driving(&self) -> Driving;

    /// Makes pipelines ahead of their first use. A backend without the capability `compiles` is never asked.
    fn compiler(&self) -> Arc<dyn Compiler> {
        Arc::new(NothingToCompile)
    }

    /// Memory that users may fill for this device, where that is not host memory.
    fn upload_memory(&self) -> Option<Arc<dyn UploadMemory>> {
        None
    }

    /// Where the backend's own threads say that something has happened. The driver gives each signal to
    /// [`Backend::signalled`]; the end of all senders is a loss. A backend without threads returns a channel that
    /// never closes (`crossbeam_channel::never`).
    fn signals(&self) -> Receiver<Self::Signal>;

    /// The backend's own threads that end by themselves after the backend was dropped. Whoever ends the device waits
    /// for them. Asked once.
    fn take_threads(&mut self) -> Vec<JoinHandle<()>> {
        Vec::new()
    }

    /// Takes a batch. It is reported when it is done, maybe before this returns. `wrong` is what a test makes go wrong in
    /// it, and `more_waits` says whether other work waits behind it.
    ///
    /// # Errors
    /// The loss of the device, found here or before (BACKEND-5). The batch has been reported by then, too.
    fn submit(&mut self, batch: Batch, wrong: Wrong, more_waits: bool) -> Result<(), DeviceLoss>;

    /// Frees these allocations once all earlier batches are done.
    fn release(&mut self, buffers: Vec<BufferId>);

    /// Gives back to the system what lies free and was not needed since the last call; or all that lies free.
    fn trim(&mut self, all: bool);

    /// Takes a signal of the backend's own threads.
    ///
    /// # Errors
    /// The loss of the device (BACKEND-5).
    fn signalled(&mut self, signal: Self::Signal) -> Result<(), DeviceLoss>;

    /// Whether [`Backend::is_brief`] and [`Backend::frees_briefly`] are worth asking.
    fn has_brief_work(&self) -> bool {
        false
    }

    /// Whether a batch is estimated to take at most `within_us` microseconds on the thread that gives it, with nothing
    /// before it unfinished.
    fn is_brief(&self, _batch: &Batch, _within_us: f64) -> bool {
        false
    }

    /// The same of freeing these allocations.
    fn frees_briefly(&self, _buffers: &[BufferId], _within_us: f64) -> bool {
        false
    }

    /// The device ends: what was submitted is finished, here or by the threads of [`Backend::take_threads`]. Nothing is
    /// asked of it afterwards.
    fn finish(&mut self);
}

/// How a backend is driven.
pub struct Driving {
    /// The name of the driver's thread.
    pub thread: String,
    /// The name of its lane on the timeline.
    pub lane: &'static str,
    /// How long the thread looks for the next instruction before it sleeps, if at all.
    pub look: Option<Duration>,
}

/// A device is gone with all that it held.
#[derive(Debug)]
pub struct DeviceLoss {
    /// Why.
    pub error: Error,
    /// Whether a new one took its place, empty.
    pub replaced: bool,
}

/// What a backend says of its batches, from any of its threads.
pub trait Reports: Send + Sync {
    /// A readback arrived. The report of its batch's end follows soon.
    fn readback(&self, transfer: Transfer, data: Result<Arc<HostBuffer>>);

    /// A batch is done; `faults` are the indices of its fault words that are set.
    fn finished(&self, batch: BatchId, faults: Vec<u32>, device_ns: u64);

    /// A batch failed (BACKEND-3).
    fn failed(&self, batch: BatchId, error: Error);
}

/// Makes pipelines ahead of their first dispatch, from any thread.
pub trait Compiler: Send + Sync {
    /// Compiles what this plan needs and the device has not compiled yet.
    ///
    /// # Errors
    /// `ErrorKind::Internal` with the shader compiler's words: the region fails, never silently.
    fn prepare(&self, plan: &Plan) -> Result<()>;
}

/// The compiler of a backend that interprets kernels.
pub struct NothingToCompile;

impl Compiler for NothingToCompile {
    fn prepare(&self, _plan: &Plan) -> Result<()> {
        Ok(())
    }
}

/// Memory that a device reads where it was written.
pub trait UploadMemory: Send + Sync {
    /// Memory for so many bytes, with anything in it; `None` where there is no more, and host memory has to do.
    fn lease(&self, bytes: usize) -> Option<Box<dyn MappedBytes>>;
}

/// What every backend is given.
#[derive(Clone)]
pub struct Context {
    /// The runtime's settings.
    pub config: Arc<Config>,
    /// Counters.
    pub counters: Arc<Counters>,
    /// The timeline.
    pub timeline: Timeline,
    /// Where reports go.
    pub reports: Arc<dyn Reports>,
}

/// The op and the place in the program that an error names.
pub type Blame = (&'static str, Site);

/// What to blame for a failure at a command: the first launch from there on, or the last before it.
pub fn blame_from(commands: &[Command], at: usize) -> Option<Blame> {
    let launch = |command: &Command| match command {
        Command::Dispatch { launch, .. } => Some(launch.blame),
        _ => None,
    };
    let (before, after) = commands.split_at(at.min(commands.len()));
    after.iter().find_map(launch).or_else(|| before.iter().rev().find_map(launch))
}

/// The error with what to blame for it.
pub fn blamed(error: Error, blame: Option<Blame>) -> Error {
    match blame {
        Some((op, site)) => error.with_op(op).with_site(site),
        None => error,
    }
}
