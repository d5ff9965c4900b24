//! Messages to and from the scheduler.

use crate::contract::device::DeviceInfo;
use crate::contract::records::Records;
use crate::contract::region::{CutReason, Region};
use crate::error::Error;
use crate::host_buffer::HostBuffer;
use crate::ids::{DeviceId, GatherId, RegionId, SessionId, ValueId};
use std::sync::Arc;

/// Facts that reach the scheduler.
#[derive(Debug)]
pub enum SchedulerEvent {
    /// A session begins.
    SessionOpened {
        /// Its id.
        session: SessionId,
        /// Its name, for the timeline.
        name: Arc<str>,
        /// Its share of the devices relative to others.
        weight: u32,
    },
    /// A piece of a session's tape, in program order.
    SegmentCut {
        /// The session.
        session: SessionId,
        /// The records.
        records: Records,
        /// Why it was cut here.
        why: CutReason,
        /// Nanoseconds of the runtime's clock at which it was cut.
        at_ns: u64,
    },
    /// A gather's future was dropped after its tape was cut.
    GatherCancelled(GatherId),
    /// A session ends: its handles are released, and its open gathers fail.
    SessionClosed(SessionId),
    /// A program called `explain()` on a value.
    ExplainAsked {
        /// Resolves with the text.
        gather: GatherId,
        /// The value.
        value: ValueId,
    },
    /// A device ran all of a region.
    RegionFinished {
        /// The region.
        region: RegionId,
        /// Values whose computation set a fault word, with their errors.
        faults: Vec<(ValueId, Error)>,
    },
    /// A region could not be planned, placed or run; its outputs do not exist.
    RegionFailed {
        /// The region.
        region: RegionId,
        /// The error.
        error: Error,
    },
    /// A value arrived in host memory.
    ValueArrived {
        /// The value.
        value: ValueId,
        /// The elements, or why they are lost.
        data: Result<Arc<HostBuffer>, Error>,
    },
    /// A value lived only on a device that is gone.
    ValueLost {
        /// The value.
        value: ValueId,
        /// The device's fault.
        error: Error,
    },
    /// A device reported a loss, and has not said whether it serves again: `DeviceLost` is certain to follow.
    DeviceStalled(DeviceId),
    /// A device is gone; `replaced` says whether it was opened again.
    DeviceLost {
        /// The device.
        device: DeviceId,
        /// The error.
        error: Error,
        /// Whether it serves again.
        replaced: bool,
    },
    /// The result of [`SchedulerInstruction::OpenDevices`]: the device, `None` if there is none, or the error of
    /// opening it.
    OpeningEnded(Result<Option<DeviceInfo>, Error>),
    /// Fusion rendered an explanation.
    Explained {
        /// The gather.
        gather: GatherId,
        /// The text.
        text: String,
    },
    /// Shutdown began: refuse new work, finish what is in flight.
    ShutdownAsked,
    /// The deadline of the shutdown passed: fail the rest.
    DeadlinePassed,
}

/// What a gather resolves to.
#[derive(Clone, Debug)]
pub enum Delivered {
    /// The elements.
    Host(Arc<HostBuffer>),
    /// The value was computed and stored on its device.
    Device,
    /// An explanation.
    Text(String),
}

/// The scheduler's instructions to other actors.
#[derive(Debug)]
pub enum SchedulerInstruction {
    /// To fusion: plan this region (and pass it on).
    PlanRegion(Arc<Region>),
    /// To fusion: plan these regions, render them, run nothing.
    Explain {
        /// Resolves with the text.
        gather: GatherId,
        /// The regions, in order.
        regions: Vec<Region>,
        /// Sentences about the program that follow the plans: why a loop is not one kernel.
        notes: Vec<String>,
    },
    /// To residency: the value is unreachable once the region `after` has been placed.
    Retire {
        /// The value.
        value: ValueId,
        /// The last region that uses it, if any.
        after: Option<RegionId>,
    },
    /// To residency: the region's outputs are not needed any more. It fails as cancelled, unless it is placed already.
    CancelRegion {
        /// The region.
        region: RegionId,
    },
    /// To residency: the region was dropped before it was sent, so no plan with its number will come. Residency stores
    /// the numbers of regions as intervals, in which such a gap would otherwise stay for ever.
    Skip {
        /// The region.
        region: RegionId,
    },
    /// To the user: resolve a future.
    Resolve {
        /// The gather.
        gather: GatherId,
        /// The result.
        result: Result<Delivered, Error>,
    },
    /// To the session's gate: nodes that were left lazy are in the ring again, and keep bytes alive.
    Charge {
        /// The session.
        session: SessionId,
        /// The number of nodes.
        nodes: u32,
        /// Bytes of dropped values that these nodes keep alive.
        bytes: u64,
    },
    /// To the session's gate: recorded nodes have left the ring, since they ran, are dead or failed.
    Credit {
        /// The session.
        session: SessionId,
        /// The number of nodes.
        nodes: u32,
    },
    /// Open the device that was left for later. `OpeningEnded` follows; events from users wait until then.
    OpenDevices,
    /// Everything has drained: stop the ring.
    Stop,
}
