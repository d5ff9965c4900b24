//! What the scheduler hears and says.

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
        /// Whose.
        session: SessionId,
        /// What was recorded.
        records: Records,
        /// Why it was cut here.
        why: CutReason,
        /// Nanoseconds of the runtime's clock at which it was cut.
        at_ns: u64,
    },
    /// A gather's future was dropped after its tape was cut.
    GatherCancelled(GatherId),
    /// A session ends; what it still holds is released, what it awaits fails.
    SessionClosed(SessionId),
    /// `explain()` was called on a value.
    ExplainAsked {
        /// Resolves with the text.
        gather: GatherId,
        /// The value.
        value: ValueId,
    },
    /// A device ran all of a region.
    RegionFinished {
        /// Which.
        region: RegionId,
        /// Values whose computation set a fault word, with their errors.
        faults: Vec<(ValueId, Error)>,
    },
    /// A region could not be planned, placed or run; its outputs do not exist.
    RegionFailed {
        /// Which.
        region: RegionId,
        /// Why.
        error: Error,
    },
    /// A value arrived in host memory.
    ValueArrived {
        /// Which.
        value: ValueId,
        /// The elements, or why they are lost.
        data: Result<Arc<HostBuffer>, Error>,
    },
    /// A value lived only on a device that is gone.
    ValueLost {
        /// Which.
        value: ValueId,
        /// The device's fault.
        error: Error,
    },
    /// A device reported a loss, and has not said whether it serves again: `DeviceLost` is certain to follow.
    DeviceStalled(DeviceId),
    /// A device is gone; `replaced` says whether it was opened again.
    DeviceLost {
        /// Which.
        device: DeviceId,
        /// Why.
        error: Error,
        /// Whether it serves again.
        replaced: bool,
    },
    /// What came of [`SchedulerInstruction::OpenDevices`]: a device, none that is there, or why it cannot be opened.
    OpeningEnded(Result<Option<DeviceInfo>, Error>),
    /// Fusion rendered an explanation.
    Explained {
        /// Which.
        gather: GatherId,
        /// The text.
        text: String,
    },
    /// No new work; drain what is in flight.
    ShutdownAsked,
    /// The drain's deadline passed: fail what is left.
    DeadlinePassed,
}

/// What a gather resolves to.
#[derive(Clone, Debug)]
pub enum Delivered {
    /// The elements.
    Host(Arc<HostBuffer>),
    /// The value is materialised.
    Device,
    /// An explanation.
    Text(String),
}

/// What the scheduler tells others to do.
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
    },
    /// To residency: nobody can reach the value any more, once `after` has been placed.
    Retire {
        /// Which value.
        value: ValueId,
        /// The last region that uses it, if any.
        after: Option<RegionId>,
    },
    /// To residency: nobody needs what the region makes any more; unless it is placed already, it fails as cancelled.
    Abandon {
        /// Which.
        region: RegionId,
    },
    /// To residency: the region was dropped before it was sent, and its number never comes. Residency keeps the numbers
    /// of regions as intervals, in which each gap would stay for ever.
    Skip {
        /// Which.
        region: RegionId,
    },
    /// To the user: resolve a future.
    Resolve {
        /// Which.
        gather: GatherId,
        /// With what.
        result: Result<Delivered, Error>,
    },
    /// To the session's gate: so many nodes that were left lazy are in the ring again, and keep so many bytes.
    Charge {
        /// Whose.
        session: SessionId,
        /// How many.
        nodes: u32,
        /// Of values that the program has let go of.
        bytes: u64,
    },
    /// To the session's gate: so many recorded nodes have left the ring (run, dead or failed).
    Credit {
        /// Whose.
        session: SessionId,
        /// How many.
        nodes: u32,
    },
    /// Open the device that was promised; `OpeningEnded` follows, and what users say waits until then.
    OpenDevices,
    /// Everything has drained: stop the ring.
    Stop,
}
