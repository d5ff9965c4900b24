//! What fusion hears and says.

use crate::contract::device::DeviceInfo;
use crate::contract::plan::Plan;
use crate::contract::region::Region;
use crate::error::Error;
use crate::ids::{DeviceId, GatherId, RegionId};
use std::sync::Arc;

/// Facts that reach fusion.
#[derive(Debug)]
pub enum FusionEvent {
    /// The scheduler cut a region.
    RegionCut(Arc<Region>),
    /// The scheduler wants regions explained, not run.
    ExplainAsked {
        /// Resolves with the text.
        gather: GatherId,
        /// The regions.
        regions: Vec<Region>,
    },
    /// A device was opened while the runtime was running already; it has the next number.
    DeviceOpened(DeviceInfo),
    /// A worker compiled the pipelines of a plan that missed the cache.
    PipelinesReady {
        /// Whose.
        region: RegionId,
        /// Whether they compiled.
        result: Result<(), Error>,
    },
    /// A plan ran that has a key ([`Plan::explained`]).
    PlanRan {
        /// The key.
        key: u64,
        /// Where.
        device: DeviceId,
        /// Microseconds of the device's time.
        us: f64,
    },
}

/// What fusion tells others to do.
#[derive(Debug)]
pub enum FusionInstruction {
    /// To a worker: compile the kernels of this plan that the device has not seen, then report `PipelinesReady`.
    Compile(Arc<Plan>),
    /// To residency: place this plan.
    Place(Arc<Plan>),
    /// To the scheduler: the region cannot be planned.
    Fail {
        /// Which.
        region: RegionId,
        /// Why.
        error: Error,
    },
    /// To the scheduler: an explanation is ready.
    Explained {
        /// Which.
        gather: GatherId,
        /// The text.
        text: String,
    },
}
