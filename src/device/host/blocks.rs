//! Blocks of host memory that are recycled. A new block costs a page fault for every 4 KiB, which takes longer than
//! most kernels spend on the data.
//!
//! In: sizes. Out: aligned blocks, which return when their last reference is dropped (also that of a gathered array).
//!
//! Must hold:
//! - HOST-1: free blocks take at most `kept_bytes_max`, and are returned to the system if they are not used for a
//!   while.

use crate::bulk;
use crate::error::{Error, ErrorKind, Result};
use crate::host_buffer::MappedBytes;
use crate::shelf::Shelf;
use crate::stats::Counters;
use parking_lot::Mutex;
use std::alloc::{Layout, alloc, dealloc};
use std::ptr::NonNull;
use std::sync::Arc;

/// Smaller blocks are not kept: the allocator recycles them itself.
const KEPT_BYTES_MIN: usize = 64 << 10;
/// Blocks from this size on lie on huge pages where the system has them.
const HUGE_BYTES: usize = 2 << 20;

/// The address of a free allocation.
#[derive(Debug)]
struct Address(NonNull<u8>);

// SAFETY: it is memory that nobody else refers to.
unsafe impl Send for Address {}

/// The blocks of one host device.
#[derive(Debug)]
pub(super) struct Blocks {
    free: Mutex<Shelf<Address>>,
    kept_bytes_max: usize,
    counters: Arc<Counters>,
}

/// A block in use, with arbitrary initial contents.
#[derive(Debug)]
pub(super) struct Block {
    at: NonNull<u8>,
    bytes: usize,
    home: Arc<Blocks>,
}

// SAFETY: plain bytes; the table hands out writable pointers only to who holds the one reference.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

fn layout(bytes: usize) -> Result<Layout> {
    let alignment = if bytes >= HUGE_BYTES { HUGE_BYTES } else { 64 };
    Layout::from_size_align(bytes.max(64), alignment).map_err(|_| out_of_memory(bytes))
}

fn out_of_memory(bytes: usize) -> Error {
    Error::new(ErrorKind::OutOfMemory, format!("the system has no {bytes} bytes of memory left"))
}

impl Blocks {
    /// An empty set.
    pub fn new(kept_bytes_max: usize, counters: Arc<Counters>) -> Arc<Blocks> {
        Arc::new(Blocks { free: Mutex::new(Shelf::new(counters.clone())), kept_bytes_max, counters })
    }

    /// A block of at least `bytes` bytes.
    ///
    /// # Errors
    /// `ErrorKind::OutOfMemory`.
    pub fn take(self: &Arc<Blocks>, bytes: usize) -> Result<Block> {
        if bytes >= KEPT_BYTES_MIN {
            if let Some((bytes, at)) = self.find(bytes) {
                Counters::add(&self.counters.pool_hits, 1);
                return Ok(Block { at: at.0, bytes, home: self.clone() });
            }
            Counters::add(&self.counters.pool_misses, 1);
        }
        let layout = layout(bytes)?;
        // SAFETY: the layout has a size of at least 64.
        let fresh = || NonNull::new(unsafe { alloc(layout) });
        let at = fresh().or_else(|| {
            self.drop_free();
            fresh()
        });
        let at = at.ok_or_else(|| out_of_memory(bytes))?;
        bulk::on_huge_pages(at, bytes);
        Ok(Block { at, bytes, home: self.clone() })
    }

    /// The smallest free block that is large enough and at most a quarter larger.
    fn find(&self, bytes: usize) -> Option<(usize, Address)> {
        let sizes = bytes as u64..=bytes.saturating_add(bytes / 4) as u64;
        self.free.lock().take(sizes).map(|(size, at)| (size as usize, at))
    }

    fn put(&self, at: NonNull<u8>, bytes: usize) {
        if bytes >= KEPT_BYTES_MIN {
            let mut free = self.free.lock();
            // HOST-1.
            if free.bytes() + bytes as u64 <= self.kept_bytes_max as u64
                && free.put(bytes as u64, Address(at)).is_none()
            {
                return;
            }
        }
        release(at, bytes);
    }

    /// Returns free blocks to the system: in steps, those that were not needed since the last call; or all, and then
    /// also blocks that are dropped before the next `take`.
    pub fn trim(&self, all: bool) {
        let gone = self.free.lock().trim(all);
        gone.into_iter().for_each(|(bytes, at)| release(at.0, bytes as usize));
    }

    /// Returns all free blocks to the system.
    pub fn drop_free(&self) {
        self.trim(true);
    }
}

fn release(at: NonNull<u8>, bytes: usize) {
    let layout = layout(bytes).expect("HOST-1: a block had this layout when it was made");
    // SAFETY: allocated with the same layout, and nobody refers to it.
    unsafe { dealloc(at.as_ptr(), layout) }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        self.drop_free();
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.home.put(self.at, self.bytes);
    }
}

impl Block {
    /// Its bytes.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Its address.
    pub fn at(&self) -> *mut u8 {
        self.at.as_ptr()
    }
}

/// A part of a block that a gathered array holds.
pub(super) struct SharedBlock {
    /// The block.
    pub block: Arc<Block>,
    /// Where it begins.
    pub offset: usize,
    /// Its length.
    pub bytes: usize,
}

impl MappedBytes for SharedBlock {
    fn bytes(&self) -> &[u8] {
        debug_assert!(self.offset + self.bytes <= self.block.bytes);
        // SAFETY: inside of the block, which nobody writes while it is shared (HOST-2).
        unsafe { std::slice::from_raw_parts(self.block.at().add(self.offset), self.bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_block_serves_the_next_of_about_its_size() {
        let counters = Arc::new(Counters::default());
        let blocks = Blocks::new(1 << 20, counters.clone());
        let first = blocks.take(100_000).unwrap();
        let at = first.at();
        drop(first);
        let again = blocks.take(90_000).unwrap();
        assert_eq!(again.at(), at);
        assert_eq!(again.bytes(), 100_000);
        drop(again);
        assert_ne!(blocks.take(70_000).unwrap().bytes(), 100_000, "more than a quarter too large");
        let read = counters.read();
        assert_eq!((read.pool_hits, read.pool_misses), (1, 2));
    }

    #[test]
    fn no_more_is_kept_than_the_limit() {
        let blocks = Blocks::new(250_000, Arc::default());
        let all: Vec<Block> = (0..4).map(|_| blocks.take(100_000).unwrap()).collect();
        drop(all);
        assert_eq!(blocks.free.lock().bytes(), 200_000);
        blocks.drop_free();
        assert_eq!(blocks.free.lock().bytes(), 0);
    }

    #[test]
    fn memory_that_does_not_exist_is_an_error_and_no_abort() {
        let blocks = Blocks::new(0, Arc::default());
        assert_eq!(blocks.take(1 << 62).unwrap_err().kind(), ErrorKind::OutOfMemory);
        assert_eq!(blocks.take(usize::MAX - 5).unwrap_err().kind(), ErrorKind::OutOfMemory);
    }
}
