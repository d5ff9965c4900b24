//! The table of allocations: which wgpu buffer stands for which id.
//!
//! Must hold: an allocation is made before anything that uses it is encoded, and is dropped, never destroyed, so that
//! wgpu keeps the memory until the last submission that reads it is done; a batch that names an allocation that could
//! not be made gets the error of that allocation.

use super::raw_device::Gpu;
use crate::contract::batch::Slot;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::BufferId;
use rustc_hash::FxHashMap;
use std::time::Duration;

/// How long a failed allocation waits for submissions that still hold freed memory.
const RETRY_WAIT: Duration = Duration::from_secs(10);

/// Allocations by id.
#[derive(Default)]
pub(super) struct Buffers {
    table: FxHashMap<BufferId, wgpu::Buffer>,
    /// The allocations that could not be made, with their errors.
    refused: FxHashMap<BufferId, Error>,
}

impl Buffers {
    /// Makes an allocation. If it exists already with the same size, it is left as it is: its batch failed after making
    /// it, and is repeated. Returns true if bind groups may name an older allocation of this id.
    ///
    /// # Errors
    /// `ErrorKind::OutOfMemory` if there is no room for it, even after all submissions are done.
    pub(super) fn allocate(&mut self, gpu: &Gpu, id: BufferId, bytes: u64) -> Result<bool> {
        let size = bytes.next_multiple_of(16).max(16);
        if self.table.get(&id).is_some_and(|buffer| buffer.size() == size) {
            return Ok(false);
        }
        match Buffers::make(gpu, size) {
            Ok(buffer) => {
                self.refused.remove(&id);
                Ok(self.table.insert(id, buffer).is_some())
            }
            Err(error) => {
                self.refused.insert(id, error.clone());
                Err(error)
            }
        }
    }

    fn make(gpu: &Gpu, size: u64) -> Result<wgpu::Buffer> {
        if size > gpu.buffer_bytes_max {
            let most = gpu.buffer_bytes_max;
            let message = format!("an allocation of {size} bytes exceeds the {most} bytes that one buffer may have");
            return Err(Error::new(ErrorKind::OutOfMemory, message));
        }
        let make = || {
            gpu.checked(|| {
                gpu.device.create_buffer(&wgpu::BufferDescriptor {
                    label: None,
                    size,
                    usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
                    mapped_at_creation: false,
                })
            })
        };
        let made = make().or_else(|error| {
            // Memory that was freed is available once the submissions that read it are done.
            let retry = error.kind() == ErrorKind::OutOfMemory && gpu.wait_idle(RETRY_WAIT);
            if retry { make() } else { Err(error) }
        });
        made.map_err(|error| match error.kind() {
            ErrorKind::OutOfMemory => {
                let message = format!("the device's memory is exhausted: an allocation of {size} bytes failed");
                Error::new(ErrorKind::OutOfMemory, message)
            }
            _ => error,
        })
    }

    /// Drops an allocation. Does nothing if it was never made, because its batch failed before.
    pub(super) fn free(&mut self, id: BufferId) {
        self.table.remove(&id);
        self.refused.remove(&id);
    }

    /// Forgets all allocations, because their device is gone.
    pub(super) fn clear(&mut self) {
        self.table.clear();
        self.refused.clear();
    }

    /// The buffer of a slot.
    ///
    /// # Errors
    /// The error with which its allocation failed; `ErrorKind::Internal` if there is no such allocation, or the slot is
    /// out of its range.
    pub(super) fn get(&self, slot: &Slot) -> Result<&wgpu::Buffer> {
        let Some(buffer) = self.table.get(&slot.buffer) else {
            let unknown = || {
                let message = format!("allocation {} is not on this device", slot.buffer);
                Error::new(ErrorKind::Internal, message)
            };
            return Err(self.refused.get(&slot.buffer).cloned().unwrap_or_else(unknown));
        };
        if slot.offset.checked_add(slot.bytes).is_none_or(|end| end > buffer.size()) {
            let (at, len, all) = (slot.offset, slot.bytes, buffer.size());
            let message = format!("slot {at}+{len} lies outside of allocation {} of {all} bytes", slot.buffer);
            return Err(Error::new(ErrorKind::Internal, message));
        }
        Ok(buffer)
    }
}
