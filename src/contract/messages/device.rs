//! Messages to and from a device.

use crate::contract::batch::{Batch, Transfer};
use crate::error::Error;
use crate::host_buffer::HostBuffer;
use crate::ids::{BatchId, BufferId, DeviceId};
use std::sync::Arc;

/// Instructions to a device.
#[derive(Debug)]
pub enum DeviceInstruction {
    /// Run this batch after all earlier ones.
    Submit(Batch),
    /// Drop these allocations once all earlier batches are done.
    Release(Vec<BufferId>),
    /// Return free memory to the system: in steps, what was not needed since the last `Trim`; or all of it, after a
    /// while without events.
    Trim {
        /// Return all free memory.
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
        /// The device.
        device: DeviceId,
        /// The batch.
        batch: BatchId,
        /// Indices of fault words that are set.
        faults: Vec<u32>,
        /// Nanoseconds the device spent on it.
        device_ns: u64,
    },
    /// A batch failed. The contents of what it wrote are undefined. Other batches are not affected: the batch's
    /// allocations are made and its drops are done all the same, so that later batches find the buffers that they name.
    /// If an allocation itself failed, the batches that name it fail for the same reason.
    BatchFailed {
        /// The device.
        device: DeviceId,
        /// The batch.
        batch: BatchId,
        /// The error.
        error: Error,
    },
    /// A readback arrived.
    ReadbackDone {
        /// The device that it comes from.
        device: DeviceId,
        /// The readback.
        transfer: Transfer,
        /// The elements.
        data: Result<Arc<HostBuffer>, Error>,
    },
    /// The device is lost with all its contents. Its batches in flight were reported as failed before.
    Lost {
        /// The device.
        device: DeviceId,
        /// The error.
        error: Error,
        /// Whether a new, empty device replaces it.
        replaced: bool,
    },
}
