//! Messages to and from fusion.

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
        /// The gather that resolves with the text.
        gather: GatherId,
        /// The regions.
        regions: Vec<Region>,
        /// Sentences that follow the plans.
        notes: Vec<String>,
    },
    /// A device was opened while the runtime was running already; it has the next number.
    DeviceOpened(DeviceInfo),
    /// A worker compiled the pipelines of a plan that missed the cache.
    PipelinesReady {
        /// The region.
        region: RegionId,
        /// Whether they compiled.
        result: Result<(), Error>,
    },
    /// A plan with a key ([`Plan::explained`]) has run.
    PlanRan {
        /// The key.
        key: u64,
        /// The device.
        device: DeviceId,
        /// Microseconds of the device's time.
        us: f64,
    },
}

/// What fusion says to other actors: instructions, and `Explained`, a fact.
#[derive(Debug)]
pub enum FusionOutput {
    /// To a worker: compile the kernels of this plan that the device has not seen, then report `PipelinesReady`.
    Compile(Arc<Plan>),
    /// To residency: place this plan.
    Place(Arc<Plan>),
    /// To the scheduler: the region cannot be planned.
    Fail {
        /// The region.
        region: RegionId,
        /// The error.
        error: Error,
    },
    /// To the scheduler: an explanation is ready.
    Explained {
        /// The gather.
        gather: GatherId,
        /// The text.
        text: String,
    },
}
