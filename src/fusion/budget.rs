//! Limits on the size of a kernel, and thresholds above which a value is written to memory rather than recomputed.
//! `cut`, `merge`, `share` and `pack` decide by them.
//!
//! In: a device's numbers. Out: budgets. The cost of an op is in `graph::costs`. Must hold: FUSE-3.

use crate::contract::costs::{EXPANDED_ON_CORES, RECOMPUTED_ON_CORES, RECOMPUTED_ON_THROUGHPUT};
use crate::contract::device::DeviceInfo;
use crate::contract::plan::{Plan, Step};

macro_rules! ops_max {
    () => {
        64
    };
}

/// Graph ops one kernel may hold.
pub const OPS_MAX: u32 = ops_max!();
/// The words in which a plan says that [`OPS_MAX`] cut a kernel.
pub const OPS_MAX_WORDS: &str = concat!("a kernel holds at most ", ops_max!(), " ops");
/// Ops several merged roots may hold together.
pub const OPS_MERGED_MAX: u32 = 128;

/// Numbers that bound a kernel on a device.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Distinct buffers one kernel may read.
    pub reads_max: u32,
    /// Whether operands that expand may be packed into one buffer if a kernel reads more than `reads_max` (`pack`).
    pub packs: bool,
    /// A chain that several kernels need, or one kernel through several views, is written to memory if recomputing it
    /// takes more simple operations (`graph::costs`) than this.
    pub recompute_max: u32,
    /// A chain whose reader is larger than itself (broadcasting) is written to memory, rather than computed for every
    /// element of the reader, if it takes more simple operations than this. Random numbers do not count: a kernel never
    /// stores them.
    pub expand_max: u32,
}

impl Budget {
    /// The budget of a device.
    pub fn of(device: &DeviceInfo) -> Budget {
        let can = device.capabilities;
        let reads_max = match can.runs_all {
            true => device.bindings_max,
            // Parameters, fault words, scratch and at least one output are bound beside the reads.
            false => device.bindings_max.saturating_sub(4).max(2),
        };
        let (recompute_max, expand_max) = match can.is_throughput {
            // Any chain that fits a kernel may be computed for every element of a larger reader.
            true => (RECOMPUTED_ON_THROUGHPUT, u32::MAX),
            false => (RECOMPUTED_ON_CORES, EXPANDED_ON_CORES),
        };
        Budget { reads_max, packs: !can.runs_all, recompute_max, expand_max }
    }

    /// The next smaller budget, for a region whose plan does not fit its device; `None` if there is none.
    pub fn tightened(self, plan: &Plan) -> Option<Budget> {
        // The pack may not fit one piece of memory, or not together with the buffers from which it is copied.
        if self.packs && plan.steps.iter().any(|step| matches!(step, Step::Pack { .. })) {
            return Some(Budget { packs: false, ..self });
        }
        (self.reads_max > 1).then(|| Budget { reads_max: (self.reads_max / 4).max(1), ..self })
    }
}
