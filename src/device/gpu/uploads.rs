//! Mapped memory that users fill and from which the device copies: buffers that stay mapped for their whole life.
//!
//! In: requests for room, from any thread. Out: leases, which become the host data of arrays. There is no other copy
//! between the user's write and the device's copy.
//!
//! wgpu refuses to submit copies from a buffer that it has mapped, and an array's host data must stay readable (for a
//! gather, or for the host device) while the device copies. So these buffers are created and mapped by way of wgpu-hal,
//! in memory that the CPU caches, and are given to wgpu as buffers to copy from. This is done for Vulkan only. With
//! other APIs, or if the ring is full, there is no lease, and the caller uses host memory.
//!
//! Must hold: UPLOAD-1: a lease is written before it is shared, and never again. UPLOAD-2: the memory of a lease is
//! leased again only after all references to it are dropped; a submission that copies from it holds a reference until
//! it is done. UPLOAD-3: leases and free buffers together take at most the ring's bound.

use super::raw_device::Gpu;
use super::readback::size_class;
use crate::host_buffer::{HostBuffer, MappedBytes};
use crate::shelf::Shelf;
use crate::stats::Counters;
use parking_lot::Mutex;
use std::any::Any;
use std::ptr::NonNull;
use std::sync::{Arc, Weak};

/// The ring.
pub(super) struct Uploads {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    bytes_max: u64,
}

struct State {
    free: Shelf<Memory>,
    /// Bytes of leases and of free buffers.
    bytes: u64,
    /// The device's runtime has ended: free buffers are not kept.
    closed: bool,
}

/// A buffer, and where it is mapped.
struct Memory {
    buffer: wgpu::Buffer,
    at: NonNull<u8>,
}

// SAFETY: the address is that of plain memory, which lives as long as the buffer.
unsafe impl Send for Memory {}
// SAFETY: shared access only reads (UPLOAD-1).
unsafe impl Sync for Memory {}

/// Memory on loan.
struct Lease {
    /// `None` only while it is dropped.
    memory: Option<Memory>,
    bytes: usize,
    home: Weak<Shared>,
}

impl Uploads {
    /// An empty ring of at most `bytes_max` bytes.
    pub(super) fn new(bytes_max: u64, counters: Arc<Counters>) -> Uploads {
        let state = State { free: Shelf::new(counters), bytes: 0, closed: false };
        Uploads { shared: Arc::new(Shared { state: Mutex::new(state), bytes_max }) }
    }

    /// Drops free buffers: in steps, those that were not needed since the last call; or all.
    pub(super) fn trim(&self, all: bool) {
        let mut state = self.shared.state.lock();
        let gone = state.free.trim(all);
        state.bytes -= gone.iter().map(|(size, _)| size).sum::<u64>();
        drop(state);
        drop(gone);
    }

    /// Memory for `bytes`, with arbitrary contents; `None` if the ring is full, or the device does not support this.
    pub(super) fn lease(&self, gpu: &Gpu, bytes: usize) -> Option<Box<dyn MappedBytes>> {
        let size = size_class(bytes as u64);
        if bytes == 0 || size > gpu.buffer_bytes_max || gpu.is_lost() {
            return None;
        }
        let memory = match self.shared.take(size)? {
            Some(memory) => memory,
            None => make(gpu, size).or_else(|| {
                self.shared.state.lock().bytes -= size;
                None
            })?,
        };
        Some(Box::new(Lease { memory: Some(memory), bytes, home: Arc::downgrade(&self.shared) }))
    }

    /// Drops the free buffers, and from now on each lease as soon as it ends.
    pub(super) fn close(&self) {
        self.shared.state.lock().closed = true;
        self.trim(true);
    }

    /// The buffer that contains host data, if it belongs to this ring.
    pub(super) fn buffer_of(&self, data: &HostBuffer) -> Option<wgpu::Buffer> {
        let lease = data.mapped()?.as_any()?.downcast_ref::<Lease>()?;
        let own = std::ptr::eq(lease.home.as_ptr(), Arc::as_ptr(&self.shared));
        lease.memory.as_ref().filter(|_| own).map(|m| m.buffer.clone())
    }
}

impl Shared {
    /// A free buffer of this size; room for a new one (the inner `None`); or nothing.
    fn take(&self, size: u64) -> Option<Option<Memory>> {
        let mut state = self.state.lock();
        if let Some((_, memory)) = state.free.take(size..=size) {
            return Some(Some(memory));
        }
        // Free buffers of other sizes are dropped to make room.
        let mut others = Vec::new();
        while state.bytes + size > self.bytes_max {
            let (other, memory) = state.free.take_largest()?;
            state.bytes -= other;
            others.push(memory);
        }
        state.bytes += size;
        drop(state);
        drop(others);
        Some(None)
    }
}

#[cfg(any(target_os = "linux", target_os = "windows", target_os = "android"))]
fn make(gpu: &Gpu, size: u64) -> Option<Memory> {
    use wgpu::hal::Device as _;
    type Vulkan = wgpu::hal::api::Vulkan;
    // SAFETY: the device is only asked for a buffer, which is handed to it again below.
    let device = unsafe { gpu.device.as_hal::<Vulkan>() }?;
    let descriptor = wgpu::hal::BufferDescriptor {
        label: Some("upload"),
        size,
        // Memory that is mapped for reading is memory that the CPU caches: the host may compute on it, too.
        usage: wgpu::BufferUses::MAP_READ | wgpu::BufferUses::COPY_SRC,
        memory_flags: wgpu::hal::MemoryFlags::empty(),
    };
    // SAFETY: the size is not zero.
    let raw = unsafe { device.create_buffer(&descriptor) }.ok()?;
    // SAFETY: the buffer was made for mapping, the range is all of it, and nobody has mapped it.
    let mapping = unsafe { device.map_buffer(&raw, 0..size) }.ok();
    let usable = mapping.filter(|m| m.is_coherent && m.ptr.as_ptr().addr().is_multiple_of(16));
    let Some(mapping) = usable else {
        // SAFETY: it was made by this device, and nobody uses it.
        unsafe { device.destroy_buffer(raw) };
        return None;
    };
    drop(device);
    let descriptor = wgpu::BufferDescriptor {
        label: Some("upload"),
        size,
        usage: wgpu::BufferUsages::COPY_SRC,
        mapped_at_creation: false,
    };
    let made = gpu.checked(|| {
        // SAFETY: the buffer was made by this device as described, is not empty, and is written before it is read.
        unsafe { gpu.device.create_buffer_from_hal::<Vulkan>(raw, &descriptor) }
    });
    Some(Memory { buffer: made.ok()?, at: mapping.ptr })
}

#[cfg(not(any(target_os = "linux", target_os = "windows", target_os = "android")))]
fn make(_gpu: &Gpu, _size: u64) -> Option<Memory> {
    None
}

impl MappedBytes for Lease {
    fn bytes(&self) -> &[u8] {
        let Some(memory) = &self.memory else { return &[] };
        // SAFETY: the buffer has at least so many bytes, mapped for its life, which this borrow does not outlive, and
        // they are not written any more (UPLOAD-1).
        unsafe { std::slice::from_raw_parts(memory.at.as_ptr(), self.bytes) }
    }

    fn fill(&mut self) -> Option<&mut [u8]> {
        let memory = self.memory.as_ref()?;
        // SAFETY: as above, and the lease is borrowed exclusively: nobody has seen it yet (UPLOAD-1), and no copy from
        // it was submitted since it was leased (UPLOAD-2).
        Some(unsafe { std::slice::from_raw_parts_mut(memory.at.as_ptr(), self.bytes) })
    }

    fn as_any(&self) -> Option<&(dyn Any + Send + Sync)> {
        Some(self)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(memory) = self.memory.take() else { return };
        let Some(home) = self.home.upgrade() else { return };
        let size = memory.buffer.size();
        let mut state = home.state.lock();
        let back = if state.closed { Some(memory) } else { state.free.put(size, memory) };
        if back.is_some() {
            state.bytes -= size;
        }
        drop(state);
        drop(back);
    }
}
