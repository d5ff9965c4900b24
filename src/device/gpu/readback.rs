//! The readback ring: buffers to which results are copied; they are mapped after the submission, and given to users as
//! views.
//!
//! Must hold: GPU-4; a view that a user holds keeps only its own buffer, and the ring grows meanwhile. Free buffers are
//! kept up to a bound, and dropped if they are not used for a while.

use super::raw_device::Gpu;
use crate::error::{Error, ErrorKind, Result};
use crate::host_buffer::MappedBytes;
use crate::shelf::Shelf;
use crate::stats::Counters;
use parking_lot::Mutex;
use std::sync::{Arc, Weak};

/// The least size of a buffer.
const BYTES_MIN: u64 = 16 << 10;
/// Sizes above this are multiples of it; smaller ones are powers of two.
const ROUND_BYTES: u64 = 8 << 20;

/// The ring.
pub(super) struct Readbacks {
    shared: Arc<Shared>,
}

struct Shared {
    free: Mutex<Shelf<wgpu::Buffer>>,
    bytes_max: u64,
}

/// A buffer that a submission copies to.
pub(super) struct Landing {
    buffer: wgpu::Buffer,
    home: Weak<Shared>,
}

/// A mapped readback buffer with the data that arrived.
pub(super) struct MappedView {
    // Dropped, and the buffer unmapped, before the buffer returns to the ring.
    view: Option<wgpu::BufferView>,
    landing: Option<Landing>,
}

impl Readbacks {
    /// An empty ring that keeps at most `bytes_max` bytes of free buffers.
    pub(super) fn new(bytes_max: u64, counters: Arc<Counters>) -> Readbacks {
        Readbacks { shared: Arc::new(Shared { free: Mutex::new(Shelf::new(counters)), bytes_max }) }
    }

    /// Drops free buffers: in steps, those that were not needed since the last call; or all.
    pub(super) fn trim(&self, all: bool) {
        let gone = self.shared.free.lock().trim(all);
        drop(gone);
    }

    /// A buffer of at least `bytes`.
    pub(super) fn acquire(&self, gpu: &Gpu, bytes: u64) -> Result<Landing> {
        let size = size_class(bytes).min(gpu.buffer_bytes_max.max(bytes));
        let home = Arc::downgrade(&self.shared);
        let free = self.shared.free.lock().take(size..=size);
        if let Some((_, buffer)) = free {
            return Ok(Landing { buffer, home });
        }
        let buffer = gpu.checked(|| {
            gpu.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("readback"),
                size,
                usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            })
        })?;
        Ok(Landing { buffer, home })
    }
}

/// The size of a ring buffer for `bytes` bytes.
pub(super) fn size_class(bytes: u64) -> u64 {
    let bytes = bytes.max(BYTES_MIN);
    if bytes >= ROUND_BYTES { bytes.next_multiple_of(ROUND_BYTES) } else { bytes.next_power_of_two() }
}

impl Landing {
    /// The buffer that copies write.
    pub(super) fn buffer(&self) -> &wgpu::Buffer {
        &self.buffer
    }

    /// Asks for its first `bytes` to be mapped; `done` is called when the device is next polled.
    pub(super) fn map(&self, bytes: u64, done: impl FnOnce(bool) + Send + 'static) {
        self.buffer.map_async(wgpu::MapMode::Read, ..bytes, move |mapped| done(mapped.is_ok()));
    }

    /// Its first `bytes`, which must have been mapped.
    pub(super) fn view(self, bytes: u64) -> Result<MappedView> {
        match self.buffer.get_mapped_range(..bytes) {
            Ok(view) => Ok(MappedView { view: Some(view), landing: Some(self) }),
            Err(error) => Err(Error::new(ErrorKind::Internal, format!("a readback is not mapped: {error}"))),
        }
    }

    /// Returns the buffer to the ring. It must not be mapped.
    pub(super) fn keep(self) {
        let Some(home) = self.home.upgrade() else { return };
        let size = self.buffer.size();
        let mut free = home.free.lock();
        if free.bytes() + size <= home.bytes_max {
            let back = free.put(size, self.buffer);
            drop(free);
            drop(back);
        }
    }
}

impl MappedBytes for MappedView {
    fn bytes(&self) -> &[u8] {
        self.view.as_deref().unwrap_or(&[])
    }
}

impl Drop for MappedView {
    fn drop(&mut self) {
        drop(self.view.take());
        if let Some(landing) = self.landing.take() {
            landing.buffer.unmap();
            landing.keep();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_two_below_eight_mebibytes_and_multiples_of_it_above() {
        assert_eq!(size_class(0), 16 << 10);
        assert_eq!(size_class((16 << 10) + 1), 32 << 10);
        assert_eq!(size_class(8 << 20), 8 << 20);
        assert_eq!(size_class((8 << 20) + 4), 16 << 20);
        assert_eq!(size_class(17 << 20), 24 << 20);
    }
}
