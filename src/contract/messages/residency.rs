//! What residency hears and says.

use crate::contract::batch::{Batch, Transfer};
use crate::contract::device::DeviceInfo;
use crate::contract::plan::Plan;
use crate::contract::region::RegionInput;
use crate::error::Error;
use crate::host_buffer::HostBuffer;
use crate::ids::{BatchId, BufferId, DeviceId, RegionId, ValueId};
use std::sync::Arc;

/// Facts that reach residency.
#[derive(Debug)]
pub enum ResidencyEvent {
    /// Fusion has a plan to place.
    PlanReady(Arc<Plan>),
    /// Nobody can reach the value once `after` (if any) has been placed.
    ValueRetired {
        /// Which.
        value: ValueId,
        /// The last region that uses it.
        after: Option<RegionId>,
    },
    /// A region failed before it reached residency: its outputs will never exist.
    RegionAbandoned {
        /// Which.
        region: RegionId,
        /// What it read, with host data: others may read it, too, and count on this region to have brought it.
        inputs: Vec<RegionInput>,
        /// Why.
        error: Error,
    },
    /// Nobody needs what a region makes any more. It fails as cancelled, unless all of it is placed already.
    RegionUnwanted(RegionId),
    /// No plan with this number ever comes: its region was dropped before it was sent.
    RegionSkipped(RegionId),
    /// Values that will never be made: the outputs of a region that was abandoned.
    ValuesFailed {
        /// Which.
        values: Vec<ValueId>,
        /// Why.
        error: Error,
    },
    /// A device was opened while the runtime was running already; it has the next number.
    DeviceOpened(DeviceInfo),
    /// A while has passed: free memory that was not used since the last time goes back to the system, in steps; or all
    /// of it, since nothing has happened for several times that long.
    IdlePassed {
        /// All of it.
        all: bool,
    },
    /// A device finished a batch.
    BatchFinished {
        /// Where.
        device: DeviceId,
        /// Which.
        batch: BatchId,
        /// Fault words that are set, by index (batches that carry `ReadFaults`).
        faults: Vec<u32>,
        /// Measured nanoseconds.
        device_ns: u64,
    },
    /// A device could not run a batch.
    BatchFailed {
        /// Where.
        device: DeviceId,
        /// Which.
        batch: BatchId,
        /// Why.
        error: Error,
    },
    /// A segment of a value (or evicted segment) is in host memory.
    ReadbackDone {
        /// Which transfer, as residency numbered it.
        transfer: Transfer,
        /// The elements.
        data: Result<Arc<HostBuffer>, Error>,
    },
    /// A device is gone with all it held.
    DeviceLost {
        /// Which.
        device: DeviceId,
        /// Why.
        error: Error,
        /// Whether it serves again, empty.
        replaced: bool,
    },
}

/// A segment that left a device for want of memory, and why: for the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Eviction {
    /// From where.
    pub device: DeviceId,
    /// The region whose step wanted memory.
    pub region: RegionId,
    /// What left; none for what lives within one plan.
    pub value: Option<ValueId>,
    /// Which segment of it.
    pub segment: u32,
    /// Bytes that this gave back.
    pub bytes: u64,
    /// Bytes that the step wanted.
    pub wanted: u64,
    /// Bytes in use on the device before, of its budget; on the host with those that host copies take of it.
    pub live: u64,
    /// The device's budget.
    pub budget: u64,
    /// Host memory had its bytes already: nothing had to be read back.
    pub known: bool,
}

/// What residency tells others to do.
#[derive(Debug)]
pub enum ResidencyInstruction {
    /// To a device: run this batch.
    Submit {
        /// Where.
        device: DeviceId,
        /// What.
        batch: Batch,
    },
    /// To a device: allocations to drop once everything submitted so far is done.
    Release {
        /// Where.
        device: DeviceId,
        /// Which.
        buffers: Vec<BufferId>,
    },
    /// To the scheduler: all of a region has run.
    RegionFinished {
        /// Which.
        region: RegionId,
        /// Values whose computation set a fault word.
        faults: Vec<(ValueId, Error)>,
    },
    /// To fusion: a plan ran that has a key.
    PlanRan {
        /// The key.
        key: u64,
        /// Where.
        device: DeviceId,
        /// Microseconds of the device's time.
        us: f64,
    },
    /// To the scheduler: a region failed.
    RegionFailed {
        /// Which.
        region: RegionId,
        /// Why.
        error: Error,
    },
    /// To the scheduler: a value is in host memory, or never will be.
    ValueArrived {
        /// Which.
        value: ValueId,
        /// The elements.
        data: Result<Arc<HostBuffer>, Error>,
    },
    /// To the timeline: a segment had to leave.
    Evicted(Eviction),
    /// To the scheduler: a device reported a loss; what is sent to it before `DeviceLost` comes, which is certain to
    /// follow, can only fail.
    DeviceStalled(DeviceId),
    /// To the scheduler: a value lived only on a lost device.
    ValueLost {
        /// Which.
        value: ValueId,
        /// Why.
        error: Error,
    },
}
