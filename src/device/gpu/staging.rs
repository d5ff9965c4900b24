//! The upload ring: chunks of mapped memory that copies to the device read from.
//!
//! In: requests for room. Out: chunks, filled by the caller, closed (unmapped) before the submission that reads
//! them, and reopened (mapped again) by the completion thread after it. Must hold: GPU-4, GPU-5; all chunks
//! together stay below a bound, unless a single chunk exceeds it.

use super::raw_device::Gpu;
use crate::error::{Error, ErrorKind, Result};
use crate::shelf::Shelf;
use crate::stats::Counters;
use parking_lot::{Condvar, Mutex};
use std::ptr::NonNull;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Chunk sizes: for parameters and small values, for medium ones, for bulk data.
const CLASS_BYTES: [u64; 3] = [64 << 10, 1 << 20, 8 << 20];
/// Bytes that pieces in a shared chunk are aligned to.
const PIECE_ALIGN: u64 = 16;

/// The ring.
pub(super) struct Staging {
    shared: Arc<Shared>,
    bytes_max: u64,
}

struct Shared {
    state: Mutex<State>,
    returned: Condvar,
}

struct State {
    free: Shelf<Memory>,
    bytes: u64,
}

/// A ring buffer and its share of the bound.
struct Memory {
    buffer: wgpu::Buffer,
    class: usize,
    home: Weak<Shared>,
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(home) = self.home.upgrade() {
            home.state.lock().bytes -= CLASS_BYTES[self.class];
            home.returned.notify_all();
        }
    }
}

/// A chunk that is mapped and being filled.
pub(super) struct Chunk {
    // Dropped before the memory: a buffer with live views can't be unmapped.
    view: wgpu::BufferViewMut,
    memory: Memory,
    used: u64,
}

/// A chunk that submissions read.
pub(super) struct ClosedChunk {
    memory: Memory,
}

impl Staging {
    /// An empty ring of at most `bytes_max` bytes.
    pub(super) fn new(bytes_max: u64, counters: Arc<Counters>) -> Staging {
        let state = Mutex::new(State { free: Shelf::new(counters), bytes: 0 });
        Staging { shared: Arc::new(Shared { state, returned: Condvar::new() }), bytes_max }
    }

    /// Drops free chunks: in steps, those that were not needed since the last call; or all.
    pub(super) fn trim(&self, all: bool) {
        let gone = self.shared.state.lock().free.trim(all);
        // Dropped outside of the lock, since their drop takes it.
        drop(gone);
    }

    /// A mapped chunk for `bytes`, or a smaller one of the largest class; `None` if all are in flight.
    pub(super) fn acquire(&self, gpu: &Gpu, bytes: u64) -> Result<Option<Chunk>> {
        let class = CLASS_BYTES.iter().position(|c| bytes <= *c).unwrap_or(CLASS_BYTES.len() - 1);
        let size = CLASS_BYTES[class];
        let dropped;
        {
            let mut state = self.shared.state.lock();
            if let Some((_, memory)) = state.free.take(size..=size) {
                drop(state);
                return Chunk::open(memory).map(Some);
            }
            // Free chunks of other sizes are dropped to make room, after the lock is released, since their drop takes
            // it.
            let mut others: Vec<Memory> = Vec::new();
            let mut freed = 0;
            while state.bytes - freed + size > self.bytes_max {
                let Some((bytes, other)) = state.free.take(..) else { break };
                freed += bytes;
                others.push(other);
            }
            dropped = others;
            let left = state.bytes - freed;
            if left > 0 && left + size > self.bytes_max {
                drop(state);
                return Ok(None);
            }
            state.bytes += size;
        }
        drop(dropped);
        // From here on, `Memory`'s drop gives the share back; if there is no memory, the code below does.
        let made = gpu.checked(|| {
            gpu.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("staging"),
                size,
                usage: wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC,
                mapped_at_creation: true,
            })
        });
        match made {
            Ok(buffer) => Chunk::open(Memory { buffer, class, home: Arc::downgrade(&self.shared) }).map(Some),
            Err(error) => {
                self.shared.state.lock().bytes -= size;
                Err(error)
            }
        }
    }

    /// Waits until a chunk may have come back, at most `timeout`.
    pub(super) fn wait(&self, timeout: Duration) {
        let mut state = self.shared.state.lock();
        if state.free.is_empty() {
            self.shared.returned.wait_for(&mut state, timeout);
        }
    }
}

impl Chunk {
    fn open(memory: Memory) -> Result<Chunk> {
        match memory.buffer.get_mapped_range_mut(..) {
            Ok(view) => Ok(Chunk { view, memory, used: 0 }),
            Err(error) => Err(Error::new(ErrorKind::Internal, format!("a staging chunk is not mapped: {error}"))),
        }
    }

    /// Bytes that still fit.
    pub(super) fn room(&self) -> u64 {
        CLASS_BYTES[self.memory.class] - self.used
    }

    /// Reserves `bytes`, and returns their offset and where to write them. `None` if they do not fit.
    ///
    /// The pointer is valid until the chunk is closed or dropped.
    pub(super) fn take(&mut self, bytes: u64) -> Option<(u64, NonNull<u8>)> {
        if bytes > self.room() {
            return None;
        }
        let offset = self.used;
        self.used = (offset + bytes).next_multiple_of(PIECE_ALIGN).min(CLASS_BYTES[self.memory.class]);
        let pointer = self.view.slice(offset as usize..).as_raw_element_ptr();
        Some((offset, pointer))
    }

    /// The buffer that copies read.
    pub(super) fn buffer(&self) -> &wgpu::Buffer {
        &self.memory.buffer
    }

    /// Unmaps it, so that a submission may read it.
    pub(super) fn close(self) -> ClosedChunk {
        let Chunk { view, memory, .. } = self;
        drop(view);
        memory.buffer.unmap();
        ClosedChunk { memory }
    }
}

impl ClosedChunk {
    /// Requests that the chunk is mapped again. It returns to the ring at the first poll of the device after its
    /// submission has finished.
    pub(super) fn reopen(self) {
        let memory = self.memory;
        let buffer = memory.buffer.clone();
        buffer.map_async(wgpu::MapMode::Write, .., move |mapped| {
            // A chunk that cannot be mapped is dropped, which gives its share back.
            if let (Ok(()), Some(home)) = (mapped, memory.home.upgrade()) {
                let size = CLASS_BYTES[memory.class];
                let back = home.state.lock().free.put(size, memory);
                home.returned.notify_all();
                drop(back);
            }
        });
    }
}
