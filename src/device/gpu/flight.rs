//! Records of submitted work, which are the completion thread's input.

use super::finish::Finish;
use super::pipelines::Station;
use super::prepare::Arrival;
use super::readback::Landing;
use super::staging::ClosedChunk;
use crate::device::backend::Blame;
use crate::error::Error;
use crate::host_buffer::HostBuffer;
use crate::ids::{BatchId, DeviceId, RegionId, SessionId};
use std::sync::Arc;

/// A submission, or a batch that needed none.
pub(super) struct Flight {
    /// The device on which it runs.
    pub(super) station: Arc<Station>,
    /// Signals the end of the submission; `None` if there was none.
    pub(super) finish: Option<Arc<Finish>>,
    /// Staging chunks that it reads.
    pub(super) chunks: Vec<ClosedChunk>,
    /// Host data that it reads in place (UPLOAD-2).
    pub(super) held: Vec<Arc<HostBuffer>>,
    /// The batch that ends with it; `None` for a submission that only makes room for more uploads.
    pub(super) end: Option<BatchEnd>,
}

/// What to deliver and report when a batch is done.
pub(super) struct BatchEnd {
    /// The batch.
    pub(super) batch: BatchId,
    /// Its region.
    pub(super) region: RegionId,
    /// Its session.
    pub(super) session: SessionId,
    /// The shared readback buffer, and how many of its bytes.
    pub(super) shared: Option<(Landing, u64)>,
    /// Whether there is (or was, before it was mapped) a shared readback buffer.
    pub(super) shared_used: bool,
    /// Readback buffers that hold one value each, with their bytes.
    pub(super) alone: Vec<(Landing, u64)>,
    /// Readbacks.
    pub(super) arrivals: Vec<Arrival>,
    /// Offsets and numbers of fault words in the shared buffer.
    pub(super) faults: Vec<(u64, u32)>,
    /// Time-stamps, if any were taken.
    pub(super) stamps: Option<Stamps>,
    /// When it was submitted.
    pub(super) submitted_ns: u64,
    /// The ops in it, for the timeline; empty if nothing was submitted.
    pub(super) label: String,
    /// The op to blame if it fails.
    pub(super) blame: Option<Blame>,
    /// It only delivers readbacks of a batch that is reported as failed next.
    pub(super) rescue: bool,
}

/// Time-stamps of a batch in its shared buffer: the begin, the end, then one after each labelled dispatch.
pub(super) struct Stamps {
    /// Offset of the first.
    pub(super) at: u64,
    /// Labels of dispatches that were stamped.
    pub(super) labels: Vec<Arc<str>>,
    /// Nanoseconds a tick.
    pub(super) period_ns: f64,
}

/// Work of the completion thread, in order.
pub(super) enum CompletionTask {
    /// Wait for this and report it.
    Flight(Box<Flight>),
    /// Report that a batch failed before it was submitted.
    Failed(BatchId, Error),
    /// Answer once everything before was reported.
    Barrier(crossbeam_channel::Sender<()>),
}

/// Arrows on the timeline within a device.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arrow {
    /// From a batch's encoding to its kernels.
    ToCompute,
    /// From its kernels to its readback.
    ToReadback,
}

/// An arrow's number: the top bits keep it apart from regions, whose numbers other actors use.
pub(super) fn arrow(kind: Arrow, device: DeviceId, batch: BatchId) -> u64 {
    let kind = match kind {
        Arrow::ToCompute => 1,
        Arrow::ToReadback => 2,
    };
    kind << 62 | u64::from(device.0) << 54 | (batch.0 & ((1 << 54) - 1))
}
