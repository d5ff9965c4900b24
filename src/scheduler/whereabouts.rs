//! Parts of a live value's entry: its readback, the devices that have had it, and the cost of its recomputations.
//!
//! In: what happens to the value. Out: answers. Must hold: only the methods here change these.

use crate::error::Error;
use crate::ids::{DeviceId, RegionId};

/// How a value is brought to host memory.
#[derive(Debug, Default)]
pub(super) struct Readback {
    /// The region that reads it back, until the data has arrived.
    region: Option<RegionId>,
    /// The readback failed: while the region is unfinished, it may be repeated.
    error: Option<Error>,
}

impl Readback {
    /// The region that reads the value back, until the data has arrived.
    pub fn region(&self) -> Option<RegionId> {
        self.region
    }

    /// Whether this region reads the value back.
    pub fn is_by(&self, region: RegionId) -> bool {
        self.region == Some(region)
    }

    /// The error of the readback, once no region may repeat it.
    pub fn lost_on_the_way(&self) -> Option<&Error> {
        self.error.as_ref().filter(|_| self.region.is_none())
    }

    /// A region will read the value back. An earlier failure is forgotten.
    pub fn ask(&mut self, region: RegionId) {
        *self = Readback { region: Some(region), error: None };
    }

    /// The value has arrived, or will never exist.
    pub fn end(&mut self) {
        *self = Readback::default();
    }

    /// The region no longer reads the value back.
    pub fn withdraw(&mut self) {
        self.region = None;
    }

    /// The readback failed; the region may be repeated.
    pub fn fail(&mut self, error: Error) {
        self.error = Some(error);
    }

    /// The region has ended: a readback that failed is not repeated.
    pub fn region_ended(&mut self, region: RegionId) {
        if self.error.is_some() && self.is_by(region) {
            self.region = None;
        }
    }

    /// All gathers were told of the failure.
    pub fn forget_error(&mut self) {
        self.error = None;
    }
}

/// Which devices have a value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    /// The device that made it.
    made: DeviceId,
    /// Devices that have had it, by its own session's program order (bit `d` for device `d`).
    homes: u32,
}

impl Places {
    /// A device made it, and no other has it.
    pub fn made_on(device: DeviceId) -> Places {
        Places { made: device, homes: 1 << device.0 }
    }

    /// The device that made it.
    pub fn made(self) -> DeviceId {
        self.made
    }

    /// A region of its own session reads it on a device.
    pub fn read_on(&mut self, device: DeviceId) {
        self.homes |= 1 << device.0;
    }

    /// Whether a device has had it.
    pub fn include(self, device: DeviceId) -> bool {
        self.homes & (1 << device.0) != 0
    }
}

/// The cost of computing a lazy value inside kernels without storing it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Passing {
    passed: bool,
    /// The elements that were computed for it so far (`passing.rs`).
    cost: u64,
}

impl Passing {
    /// Notes that it was computed in passing, at this cost in elements.
    pub fn note(&mut self, cost: u64) {
        *self = Passing { passed: true, cost: self.cost.saturating_add(cost) };
    }

    /// Whether it was ever computed in passing.
    pub fn has_passed(self) -> bool {
        self.passed
    }

    /// Whether computing it in passing has cost at least this many elements.
    pub fn has_cost(self, elements: u64) -> bool {
        self.passed && self.cost >= elements
    }
}
