//! What a device is told, and what it says.

use crate::contract::batch::{Batch, Transfer};
use crate::error::Error;
use crate::host_buffer::HostBuffer;
use crate::ids::{BatchId, BufferId, DeviceId};
use std::sync::Arc;

/// What a device is told.
#[derive(Debug)]
pub enum DeviceInstruction {
    /// Run this batch after all earlier ones.
    Submit(Batch),
    /// Drop these allocations once all earlier batches are done.
    Release(Vec<BufferId>),
    /// Give back to the system what lies free and was not needed since the last time, in steps; or all of it, since
    /// nothing has happened for a while.
    Trim {
        /// All of it.
        all: bool,
    },
    /// Finish what is in flight, then end the actor.
    Stop,
}

/// Facts from a device.
#[derive(Debug)]
pub enum DeviceEvent {
    /// A batch is done.
    BatchFinished {
        /// Where.
        device: DeviceId,
        /// Which.
        batch: BatchId,
        /// Indices of fault words that are set.
        faults: Vec<u32>,
        /// Nanoseconds the device spent on it.
        device_ns: u64,
    },
    /// A batch failed; what it wrote is undefined, other batches are not touched: the allocations that it should have
    /// made are made, and those that it should have dropped are dropped, so that batches behind it find what they name.
    /// Where it is an allocation that can't be made, those that name it fail for the same reason.
    BatchFailed {
        /// Where.
        device: DeviceId,
        /// Which.
        batch: BatchId,
        /// Why.
        error: Error,
    },
    /// A readback arrived.
    ReadbackDone {
        /// From where.
        device: DeviceId,
        /// Which.
        transfer: Transfer,
        /// The elements.
        data: Result<Arc<HostBuffer>, Error>,
    },
    /// The device is gone with all it held. Batches in flight were reported as failed before.
    Lost {
        /// Which.
        device: DeviceId,
        /// Why.
        error: Error,
        /// Whether a new one took its place, empty.
        replaced: bool,
    },
}
