//! The memory behind each of residency's allocations.
//!
//! In: allocations by id, host buffers that enter, reads and writes. Out: addresses, and shared views.
//!
//! Must hold:
//! - HOST-2: memory that is referred to from outside (a user's data, a gathered array) is never written: a write first
//!   moves the allocation to memory of its own.
//! - HOST-3: an allocation has memory only from its first write on.

use super::blocks::{Block, Blocks, SharedBlock};
use crate::contract::batch::Command;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::DType;
use crate::host_buffer::{HostBuffer, MappedBytes};
use crate::ids::BufferId;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The memory of an allocation.
#[derive(Debug)]
enum Storage {
    /// It has no memory yet (HOST-3).
    Unwritten,
    /// A block of this device, shared if a gathered array refers to it.
    Block(Arc<Block>),
    /// A host buffer from outside, from byte `skip` on.
    Adopted { from: Arc<HostBuffer>, skip: usize },
}

#[derive(Debug)]
struct Allocation {
    bytes: usize,
    storage: Storage,
}

/// All allocations of the host device.
#[derive(Debug)]
pub(super) struct Table {
    allocations: FxHashMap<BufferId, Allocation>,
    blocks: Arc<Blocks>,
    /// All allocations were dropped by a loss, so a batch may name one that is gone.
    lost: bool,
}

/// A view of an adopted buffer's part.
struct AdoptedPart {
    from: Arc<HostBuffer>,
    skip: usize,
    bytes: usize,
}

impl MappedBytes for AdoptedPart {
    fn bytes(&self) -> &[u8] {
        &self.from.bytes()[self.skip..self.skip + self.bytes]
    }
}

impl Table {
    /// An empty table.
    pub fn new(blocks: Arc<Blocks>) -> Table {
        Table { allocations: FxHashMap::default(), blocks, lost: false }
    }

    /// Makes an allocation. If it exists with the same size, it stays as it is.
    pub fn allocate(&mut self, buffer: BufferId, bytes: usize) {
        if self.allocations.get(&buffer).is_some_and(|there| there.bytes == bytes) {
            return;
        }
        self.allocations.insert(buffer, Allocation { bytes, storage: Storage::Unwritten });
    }

    /// Bytes of an allocation.
    pub fn bytes_of(&self, buffer: BufferId) -> usize {
        self.allocations.get(&buffer).map_or(0, |allocation| allocation.bytes)
    }

    /// Drops an allocation.
    pub fn free(&mut self, buffer: BufferId) {
        self.allocations.remove(&buffer);
    }

    /// Makes and drops the allocations that a failed batch did not get to, since later batches name them.
    pub fn allocations_of(&mut self, rest: impl Iterator<Item = Command>) {
        for command in rest {
            match command {
                Command::Allocate { buffer, bytes } => self.allocate(buffer, bytes as usize),
                Command::Free { buffer } => self.free(buffer),
                _ => {}
            }
        }
    }

    /// Drops all allocations, because the device was lost.
    pub fn lose_all(&mut self) {
        self.allocations.clear();
        self.lost = true;
    }

    fn get(&mut self, buffer: BufferId) -> Result<&mut Allocation> {
        match self.allocations.get_mut(&buffer) {
            Some(allocation) => Ok(allocation),
            None if self.lost => {
                Err(Error::new(ErrorKind::DeviceLost, "the device was lost with the memory of this work"))
            }
            None => panic!("RES-3: the host device has no allocation {buffer}"),
        }
    }

    /// Makes an allocation refer to a host buffer, or a part of it, without a copy.
    pub fn adopt(&mut self, buffer: BufferId, from: Arc<HostBuffer>, skip: usize) -> Result<()> {
        self.get(buffer)?.storage = Storage::Adopted { from, skip };
        Ok(())
    }

    /// Address and length of the memory from `offset` on, for reading. Memory that was never written reads as zeros.
    pub fn read(&mut self, buffer: BufferId, offset: usize) -> Result<(*const u8, usize)> {
        if matches!(self.get(buffer)?.storage, Storage::Unwritten) {
            let (at, bytes) = self.write(buffer, 0, false)?;
            // SAFETY: a fresh block of our own.
            unsafe { std::ptr::write_bytes(at, 0, bytes) };
        }
        let allocation = self.get(buffer)?;
        let (at, bytes) = match &allocation.storage {
            Storage::Block(block) => (block.at().cast_const(), allocation.bytes),
            Storage::Adopted { from, skip } => (from.bytes()[*skip..].as_ptr(), from.bytes().len() - skip),
            Storage::Unwritten => unreachable!("HOST-3: it was written above"),
        };
        let offset = offset.min(bytes);
        // SAFETY: at most at the end.
        Ok((unsafe { at.add(offset) }, bytes - offset))
    }

    /// Address and length of the memory from `offset` on, for writing. With `keep`, the earlier contents are preserved.
    pub fn write(&mut self, buffer: BufferId, offset: usize, keep: bool) -> Result<(*mut u8, usize)> {
        let blocks = self.blocks.clone();
        let allocation = self.get(buffer)?;
        let bytes = allocation.bytes;
        let ours = match &mut allocation.storage {
            // HOST-2: there is no other reference, and only the table creates references.
            Storage::Block(block) => Arc::get_mut(block).is_some(),
            _ => false,
        };
        if !ours {
            let fresh = blocks.take(bytes)?;
            if keep {
                let (from, length) = match &allocation.storage {
                    Storage::Unwritten => (std::ptr::null(), 0),
                    Storage::Block(block) => (block.at().cast_const(), bytes),
                    Storage::Adopted { from, skip } => {
                        (from.bytes()[*skip..].as_ptr(), (from.bytes().len() - skip).min(bytes))
                    }
                };
                if length > 0 {
                    // SAFETY: both hold that many bytes; the fresh one is nobody else's.
                    unsafe { std::ptr::copy_nonoverlapping(from, fresh.at(), length) };
                }
            }
            allocation.storage = Storage::Block(Arc::new(fresh));
        }
        let Storage::Block(block) = &allocation.storage else { unreachable!("HOST-3: it is a block of ours now") };
        let offset = offset.min(bytes);
        // SAFETY: at most at the end of the block.
        Ok((unsafe { block.at().add(offset) }, bytes - offset))
    }

    /// Elements of an allocation as a host buffer that shares its memory.
    pub fn share(&mut self, buffer: BufferId, offset: usize, dtype: DType, elements: usize) -> Result<Arc<HostBuffer>> {
        let wanted = elements * dtype.bytes();
        let (_, there) = self.read(buffer, offset)?;
        assert!(there >= wanted, "EVAL-1: {wanted} bytes of an allocation that has {there}");
        Ok(match &self.get(buffer)?.storage {
            Storage::Adopted { from, skip }
                if from.dtype() == dtype && from.len() == elements && skip + offset == 0 =>
            {
                from.clone()
            }
            Storage::Adopted { from, skip } => {
                let part = AdoptedPart { from: from.clone(), skip: skip + offset, bytes: wanted };
                HostBuffer::from_mapped(dtype, elements, Box::new(part)).shared()
            }
            Storage::Block(block) => {
                let part = SharedBlock { block: block.clone(), offset, bytes: wanted };
                HostBuffer::from_mapped(dtype, elements, Box::new(part)).shared()
            }
            Storage::Unwritten => unreachable!("HOST-3: reading it gave it memory"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: BufferId = BufferId(1);

    fn table() -> Table {
        Table::new(Blocks::new(1 << 20, Arc::default()))
    }

    fn set(table: &mut Table, keep: bool, at: usize, value: f32) {
        let (to, _) = table.write(A, at * 4, keep).unwrap();
        unsafe { to.cast::<f32>().write(value) };
    }

    #[test]
    fn an_adopted_buffer_is_shared_back_and_copied_before_it_is_written() {
        let mut table = table();
        table.allocate(A, 16);
        let user = HostBuffer::from_slice(&[1.0f32, 2.0, 3.0]).shared();
        table.adopt(A, user.clone(), 0).unwrap();
        let back = table.share(A, 0, DType::F32, 3).unwrap();
        assert!(Arc::ptr_eq(&user, &back), "no copy");
        set(&mut table, true, 1, 20.0);
        let changed = table.share(A, 0, DType::F32, 3).unwrap();
        assert_eq!(changed.as_slice::<f32>().unwrap(), [1.0, 20.0, 3.0]);
        assert_eq!(user.as_slice::<f32>().unwrap(), [1.0, 2.0, 3.0]);
    }

    #[test]
    fn a_gathered_array_keeps_its_elements_while_its_allocation_is_written_on() {
        let mut table = table();
        table.allocate(A, 16);
        set(&mut table, false, 0, 5.0);
        let first = table.read(A, 0).unwrap().0;
        let gathered = table.share(A, 0, DType::F32, 1).unwrap();
        assert_eq!(gathered.bytes().as_ptr(), first, "no copy");
        set(&mut table, true, 0, 6.0);
        assert_eq!(gathered.as_slice::<f32>().unwrap(), [5.0]);
        let second = table.read(A, 0).unwrap().0;
        assert_ne!(first, second);
        set(&mut table, true, 0, 7.0);
        assert_eq!(table.read(A, 0).unwrap().0, second, "its own again: in place");
    }

    #[test]
    fn an_allocation_that_is_repeated_keeps_its_elements() {
        let mut table = table();
        table.allocate(A, 16);
        set(&mut table, false, 0, 5.0);
        table.allocations_of([Command::Allocate { buffer: A, bytes: 16 }].into_iter());
        assert_eq!(table.share(A, 0, DType::F32, 1).unwrap().as_slice::<f32>().unwrap(), [5.0]);
    }

    #[test]
    fn a_part_of_a_source_is_adopted_and_shared_as_a_part() {
        let mut table = table();
        table.allocate(A, 16);
        table.adopt(A, HostBuffer::from_vec(vec![1.0f32, 2.0, 3.0, 4.0]).shared(), 8).unwrap();
        let part = table.share(A, 4, DType::F32, 1).unwrap();
        assert_eq!(part.as_slice::<f32>().unwrap(), [4.0]);
    }

    #[test]
    fn what_was_never_written_reads_as_zeros_and_what_was_lost_is_an_error() {
        let mut table = table();
        table.allocate(A, 64);
        assert_eq!(table.share(A, 0, DType::I64, 8).unwrap().as_slice::<i64>().unwrap(), [0; 8]);
        table.lose_all();
        assert_eq!(table.read(A, 0).unwrap_err().kind(), ErrorKind::DeviceLost);
    }
}
