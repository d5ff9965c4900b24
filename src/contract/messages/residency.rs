//! Messages to and from residency.

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
    /// The value is unreachable once the region `after`, if there is one, has been placed.
    ValueRetired {
        /// The value.
        value: ValueId,
        /// The last region that uses it.
        after: Option<RegionId>,
    },
    /// A region could not be planned, so it never reaches residency: its outputs will never exist.
    RegionPlanFailed {
        /// The region.
        region: RegionId,
        /// Its inputs, with host data. Other regions may read them, too, and the host data is sent only once.
        inputs: Vec<RegionInput>,
        /// The error.
        error: Error,
    },
    /// The outputs of a region are not needed any more. It fails as cancelled, unless all of it is placed already.
    RegionCancelled(RegionId),
    /// No plan with this number ever comes: its region was dropped before it was sent.
    RegionSkipped(RegionId),
    /// Values that will never be made: the outputs of a region that could not be planned.
    ValuesFailed {
        /// The values.
        values: Vec<ValueId>,
        /// The error.
        error: Error,
    },
    /// A device was opened while the runtime was running already; it has the next number.
    DeviceOpened(DeviceInfo),
    /// The idle period has passed: return free memory to the system. In steps, what was not used since the last such
    /// event; or all of it, after several periods without any event.
    IdlePassed {
        /// Return all free memory.
        all: bool,
    },
    /// A device finished a batch.
    BatchFinished {
        /// The device.
        device: DeviceId,
        /// The batch.
        batch: BatchId,
        /// Fault words that are set, by index (batches that carry `ReadFaults`).
        faults: Vec<u32>,
        /// Measured nanoseconds.
        device_ns: u64,
    },
    /// A device could not run a batch.
    BatchFailed {
        /// The device.
        device: DeviceId,
        /// The batch.
        batch: BatchId,
        /// The error.
        error: Error,
    },
    /// A segment of a value (or evicted segment) is in host memory.
    ReadbackDone {
        /// Which transfer, as residency numbered it.
        transfer: Transfer,
        /// The elements.
        data: Result<Arc<HostBuffer>, Error>,
    },
    /// A device is lost with all its contents.
    DeviceLost {
        /// The device.
        device: DeviceId,
        /// The error.
        error: Error,
        /// Whether it serves again, empty.
        replaced: bool,
    },
}

/// The eviction of a segment, with the numbers that explain it, for the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Eviction {
    /// The device that it comes from.
    pub device: DeviceId,
    /// The region whose step needed memory.
    pub region: RegionId,
    /// The value; `None` for a buffer that lives within one plan.
    pub value: Option<ValueId>,
    /// The number of the segment.
    pub segment: u32,
    /// Bytes that the eviction freed.
    pub bytes: u64,
    /// Bytes that the step needed.
    pub wanted: u64,
    /// Bytes of the device's budget in use before the eviction; on the host, host copies of other devices' values
    /// included.
    pub live: u64,
    /// The device's budget.
    pub budget: u64,
    /// Its bytes were in host memory already, so nothing had to be read back.
    pub known: bool,
}

/// What residency says to other actors: the instructions `Submit` and `Release`, and facts.
#[derive(Debug)]
pub enum ResidencyOutput {
    /// To a device: run this batch.
    Submit {
        /// The device.
        device: DeviceId,
        /// The batch.
        batch: Batch,
    },
    /// To a device: allocations to drop once everything submitted so far is done.
    Release {
        /// The device.
        device: DeviceId,
        /// The names of the allocations.
        buffers: Vec<BufferId>,
    },
    /// To the scheduler: all of a region has run.
    RegionFinished {
        /// The region.
        region: RegionId,
        /// Values whose computation set a fault word.
        faults: Vec<(ValueId, Error)>,
    },
    /// To fusion: a plan with a key has run.
    PlanRan {
        /// The key.
        key: u64,
        /// The device.
        device: DeviceId,
        /// Microseconds of the device's time.
        us: f64,
    },
    /// To the scheduler: a region failed.
    RegionFailed {
        /// The region.
        region: RegionId,
        /// The error.
        error: Error,
    },
    /// To the scheduler: a value is in host memory, or never will be.
    ValueArrived {
        /// The value.
        value: ValueId,
        /// The elements.
        data: Result<Arc<HostBuffer>, Error>,
    },
    /// To the timeline: a segment was evicted.
    Evicted(Eviction),
    /// To the scheduler: a device reported a loss. Work that is sent to it before `DeviceLost`, which is certain to
    /// follow, can only fail.
    DeviceStalled(DeviceId),
    /// To the scheduler: a value lived only on a lost device.
    ValueLost {
        /// The value.
        value: ValueId,
        /// The error.
        error: Error,
    },
}
