//! How much one kernel may hold, and what is written out rather than computed again: numbers that `cut`, `merge`,
//! `share` and `pack` decide by.
//!
//! In: a device's numbers. Out: budgets. What an op weighs stands in `graph::costs`. Must hold: FUSE-3.

use crate::contract::device::DeviceInfo;
use crate::contract::plan::{Plan, Step};

/// Graph ops one kernel may hold.
pub const OPS_MAX: u32 = 64;
/// Ops several merged roots may hold together.
pub const OPS_MERGED_MAX: u32 = 128;

/// Numbers that bound a kernel on a device.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Distinct buffers one kernel may read.
    pub reads_max: u32,
    /// Whether operands that expand may be packed into one buffer where there are more (`pack`).
    pub packs: bool,
    /// Simple operations (`graph::costs`) of computing again above which a chain that several kernels need, or several
    /// views of one, is written out.
    pub recompute_max: u32,
    /// Simple operations above which a chain that is read by something larger than itself is written out rather than
    /// computed for every element there. Random numbers don't count: inside of a kernel they are never stored.
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
            // Arithmetic is idle while memory is read: GPUs do about ten simple operations while they move a byte, and
            // a value that is written out and read again moves eight bytes at the least. So any chain that fits a
            // kernel may be computed in place.
            true => (72, u32::MAX),
            // A core does about one simple operation while it moves a byte to or from its cache. But 40 ops are one
            // kernel, whatever functions they are (of an angle: 30).
            false => (5, 40 * 30),
        };
        Budget { reads_max, packs: !can.runs_all, recompute_max, expand_max }
    }

    /// A smaller budget, where a plan made with this one does not fit its device; none where there is no smaller one.
    pub fn tightened(self, plan: &Plan) -> Option<Budget> {
        // What is packed may not fit one piece of memory, or not beside what it is copied from.
        if self.packs && plan.steps.iter().any(|step| matches!(step, Step::Pack { .. })) {
            return Some(Budget { packs: false, ..self });
        }
        (self.reads_max > 1).then(|| Budget { reads_max: (self.reads_max / 4).max(1), ..self })
    }
}
