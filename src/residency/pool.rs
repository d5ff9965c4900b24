//! A device's memory as slots: size classes, slabs and free lists.
//!
//! In: sizes wanted, slots given back. Out: slots; the buffers that the device must allocate or free; names for lent
//! memory, which counts against no budget. Must hold: RES-2 (bytes in use and bytes pooled together stay within the
//! budget: the caller asks [`Pool::room_for`] before it calls [`Pool::grow`]), RES-3 (no two live slots overlap).
//!
//! A slot of up to `slab_slot_bytes_max` is a block of a slab: a power of two of at least 256 bytes, split and
//! merged in pairs. A larger one is a whole buffer whose size is rounded up by at most an eighth, so that
//! a buffer given back fits the next request of about that size.

use crate::contract::batch::Slot;
use crate::contract::device::{DeviceInfo, Slabs, size_class};
use crate::ids::BufferId;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// The least block of a slab, and the alignment of offsets.
const BLOCK_BYTES: u64 = 256;

/// Bytes padded to what a device binds.
pub(super) fn padded(bytes: u64) -> u64 {
    bytes.max(1).next_multiple_of(16)
}

/// A buffer that the pool holds.
#[derive(Debug)]
struct Held {
    bytes: u64,
    slab: bool,
    /// Its memory is lent by its owner, and counts against no budget.
    lent: bool,
    /// The pool's clock when a whole buffer became free, or when the last slot of a slab did.
    freed_at: Option<u64>,
}

/// The memory of one device.
#[derive(Debug)]
pub(super) struct Pool {
    slab_bytes: u64,
    slab_slot_bytes_max: u64,
    buffer_bytes_max: u64,
    buffers: FxHashMap<BufferId, Held>,
    /// Free whole buffers by size, the last given back last.
    whole: BTreeMap<u64, Vec<BufferId>>,
    /// Free whole buffers, the first given back first.
    ages: BTreeMap<u64, BufferId>,
    /// Free blocks of slabs by log2 of their size in `BLOCK_BYTES`.
    blocks: Vec<BTreeSet<(BufferId, u64)>>,
    clock: u64,
    total_bytes: u64,
    live_bytes: u64,
}

impl Pool {
    /// An empty pool for a device.
    pub(super) fn new(info: &DeviceInfo) -> Pool {
        let Slabs { bytes: slab_bytes, slot_bytes_max } = info.slabs();
        let orders = if slab_bytes > 0 { (slab_bytes / BLOCK_BYTES).ilog2() as usize + 1 } else { 0 };
        Pool {
            slab_bytes,
            slab_slot_bytes_max: slot_bytes_max,
            buffer_bytes_max: info.buffer_bytes_max,
            buffers: FxHashMap::default(),
            whole: BTreeMap::new(),
            ages: BTreeMap::new(),
            blocks: vec![BTreeSet::new(); orders],
            clock: 0,
            total_bytes: 0,
            live_bytes: 0,
        }
    }

    /// Bytes of all its buffers, in use and free.
    pub(super) fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Bytes of live slots, rounded up to their blocks or buffers.
    pub(super) fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// Bytes of whole buffers and slabs that hold no live slot.
    pub(super) fn idle_bytes(&self) -> u64 {
        let whole: u64 = self.whole.iter().map(|(bytes, list)| bytes * list.len() as u64).sum();
        whole + self.blocks.last().map_or(0, |top| top.len() as u64 * self.slab_bytes)
    }

    /// Whether the buffer exists.
    pub(super) fn has(&self, buffer: BufferId) -> bool {
        self.buffers.contains_key(&buffer)
    }

    /// Whether a slot lies in a slab.
    pub(super) fn in_slab(&self, slot: Slot) -> bool {
        self.held(slot.buffer).slab
    }

    /// Bytes that a slot for `bytes` takes out of the budget.
    pub(super) fn charged(&self, bytes: u64) -> u64 {
        let bytes = padded(bytes);
        if bytes <= self.slab_slot_bytes_max { block_bytes(bytes) } else { self.whole_bytes(bytes) }
    }

    /// The size of the buffer that a request would add to the pool.
    pub(super) fn growth(&self, bytes: u64) -> u64 {
        let bytes = padded(bytes);
        if bytes <= self.slab_slot_bytes_max { self.slab_bytes } else { self.whole_bytes(bytes) }
    }

    /// Whether a buffer for this request may be added within `limit` bytes.
    pub(super) fn room_for(&self, bytes: u64, limit: u64) -> bool {
        self.total_bytes + self.growth(bytes) <= limit
    }

    /// A slot of free memory, if some fits.
    pub(super) fn take(&mut self, bytes: u64) -> Option<Slot> {
        let bytes = padded(bytes);
        if bytes <= self.slab_slot_bytes_max {
            return self.take_block(bytes);
        }
        let size = self.whole_bytes(bytes);
        let buffer = self.whole.get_mut(&size)?.pop()?;
        if self.whole[&size].is_empty() {
            self.whole.remove(&size);
        }
        let held = self.buffers.get_mut(&buffer).expect("RES-3: a free buffer is held");
        let age = held.freed_at.take().expect("RES-3: a free buffer has an age");
        self.ages.remove(&age);
        self.live_bytes += size;
        Some(Slot { buffer, offset: 0, bytes })
    }

    /// A free whole buffer for this request, other than those that `is_one` names.
    pub(super) fn take_unless(&mut self, bytes: u64, is_one: impl Fn(BufferId) -> bool) -> Option<Slot> {
        let free = self.whole.get_mut(&self.whole_bytes(padded(bytes)))?;
        let at = free.iter().rposition(|&buffer| !is_one(buffer))?;
        // The buffer given back last is the first choice.
        let last = free.len() - 1;
        free.swap(at, last);
        self.take(bytes)
    }

    /// Adds a buffer for this request under a new name; returns its size. [`Pool::take`] then succeeds.
    pub(super) fn grow(&mut self, buffer: BufferId, bytes: u64) -> u64 {
        let size = self.growth(bytes);
        let slab = padded(bytes) <= self.slab_slot_bytes_max;
        self.buffers.insert(buffer, Held { bytes: size, slab, lent: false, freed_at: None });
        self.total_bytes += size;
        if slab {
            self.blocks.last_mut().expect("RES-3: slabs have orders").insert((buffer, 0));
        } else {
            self.shelve(buffer, size);
        }
        size
    }

    /// A slot in lent memory, under a new name.
    pub(super) fn lend(&mut self, buffer: BufferId, bytes: u64) -> Slot {
        let bytes = padded(bytes);
        self.buffers.insert(buffer, Held { bytes, slab: false, lent: true, freed_at: None });
        Slot { buffer, offset: 0, bytes }
    }

    /// Whether a slot is lent.
    pub(super) fn is_lent(&self, slot: Slot) -> bool {
        self.held(slot.buffer).lent
    }

    /// Takes back a slot. Returns whether it was lent: the device must then drop its buffer.
    pub(super) fn put(&mut self, slot: Slot) -> bool {
        let held = self.held(slot.buffer);
        let (size, slab) = (held.bytes, held.slab);
        if held.lent {
            self.buffers.remove(&slot.buffer);
            return true;
        }
        if slab {
            self.put_block(slot);
        } else {
            self.live_bytes -= size;
            self.shelve(slot.buffer, size);
        }
        false
    }

    /// Removes a buffer that holds no live slot, the longest unused first; the device must free it.
    pub(super) fn trim(&mut self) -> Option<BufferId> {
        if let Some((_, buffer)) = self.ages.pop_first() {
            let size = self.held(buffer).bytes;
            self.unlist(buffer, size);
            return Some(self.forget(buffer));
        }
        let (buffer, _) = self.blocks.last_mut()?.pop_first()?;
        Some(self.forget(buffer))
    }

    /// The pool's clock: the number of times that a buffer or slab became free.
    pub(super) fn clock(&self) -> u64 {
        self.clock
    }

    /// Bytes of whole buffers and slabs that have held no live slot since the clock stood at `since`.
    pub(super) fn unused_bytes(&self, since: u64) -> u64 {
        let whole: u64 = self.ages.range(..=since).map(|(_, &buffer)| self.held(buffer).bytes).sum();
        whole + self.unused_slabs(since).count() as u64 * self.slab_bytes
    }

    /// Removes one of the buffers that `unused_bytes` counts, the longest unused first, and returns it with its bytes.
    /// The device must free it.
    pub(super) fn trim_unused(&mut self, since: u64) -> Option<(BufferId, u64)> {
        let whole = self.ages.first_key_value().filter(|(age, _)| **age <= since).map(|(_, &buffer)| buffer);
        let buffer = whole.or_else(|| self.unused_slabs(since).next())?;
        let bytes = self.held(buffer).bytes;
        self.discard(buffer).then_some((buffer, bytes))
    }

    fn unused_slabs(&self, since: u64) -> impl Iterator<Item = BufferId> {
        let idle = self.blocks.last().into_iter().flatten().map(|&(buffer, _)| buffer);
        idle.filter(move |&buffer| self.held(buffer).freed_at.is_none_or(|at| at <= since))
    }

    /// Removes a buffer if it holds no live slot; whether it did.
    pub(super) fn discard(&mut self, buffer: BufferId) -> bool {
        let Some(held) = self.buffers.get(&buffer) else { return false };
        if held.slab {
            let idle = self.blocks.last_mut().is_some_and(|top| top.remove(&(buffer, 0)));
            return idle && self.forget(buffer) == buffer;
        }
        let Some(age) = held.freed_at else { return false };
        let size = held.bytes;
        self.ages.remove(&age);
        self.unlist(buffer, size);
        self.forget(buffer);
        true
    }

    /// Panics unless `slots` are exactly the live slots (RES-3).
    #[cfg(test)]
    pub(super) fn validate(&self, slots: &[Slot]) {
        let mut ranges: Vec<(BufferId, u64, u64)> = Vec::new();
        for slot in slots {
            let held = self.held(slot.buffer);
            let bytes = if held.slab { block_bytes(slot.bytes) } else { held.bytes };
            assert!(slot.offset.is_multiple_of(BLOCK_BYTES) && slot.bytes.is_multiple_of(16), "RES-3: {slot:?}");
            assert!(slot.offset + bytes <= held.bytes, "RES-3: a slot ends in its buffer");
            if !held.lent {
                ranges.push((slot.buffer, slot.offset, slot.offset + bytes));
            }
        }
        let live: u64 = ranges.iter().map(|r| r.2 - r.1).sum();
        assert_eq!(live, self.live_bytes, "RES-3: live bytes");
        for (order, blocks) in self.blocks.iter().enumerate() {
            ranges.extend(blocks.iter().map(|&(b, at)| (b, at, at + (BLOCK_BYTES << order))));
        }
        ranges.extend(self.ages.values().map(|&b| (b, 0, self.held(b).bytes)));
        ranges.sort_unstable();
        for pair in ranges.windows(2) {
            assert!(pair[0].0 != pair[1].0 || pair[0].2 <= pair[1].1, "RES-3: {pair:?} overlap");
        }
        let covered: u64 = ranges.iter().map(|r| r.2 - r.1).sum();
        assert_eq!(covered, self.total_bytes, "RES-3: every byte is live or free");
    }

    fn held(&self, buffer: BufferId) -> &Held {
        self.buffers.get(&buffer).unwrap_or_else(|| panic!("RES-3: {buffer:?} is not in the pool"))
    }

    fn whole_bytes(&self, bytes: u64) -> u64 {
        size_class(bytes).min(self.buffer_bytes_max).max(bytes)
    }

    fn shelve(&mut self, buffer: BufferId, size: u64) {
        self.clock += 1;
        self.whole.entry(size).or_default().push(buffer);
        self.ages.insert(self.clock, buffer);
        self.buffers.get_mut(&buffer).expect("RES-3: a free buffer is held").freed_at = Some(self.clock);
    }

    fn unlist(&mut self, buffer: BufferId, size: u64) {
        let list = self.whole.get_mut(&size).expect("RES-3: a free buffer is on its list");
        list.retain(|&b| b != buffer);
        if list.is_empty() {
            self.whole.remove(&size);
        }
    }

    fn forget(&mut self, buffer: BufferId) -> BufferId {
        let held = self.buffers.remove(&buffer).expect("RES-3: a free buffer is held");
        self.total_bytes -= held.bytes;
        buffer
    }

    fn take_block(&mut self, bytes: u64) -> Option<Slot> {
        let wanted = order_of(bytes);
        let found = (wanted..self.blocks.len()).find(|&order| !self.blocks[order].is_empty())?;
        let (buffer, offset) = self.blocks[found].pop_first()?;
        if let Some(held) = self.buffers.get_mut(&buffer) {
            held.freed_at = None;
        }
        for order in (wanted..found).rev() {
            self.blocks[order].insert((buffer, offset + (BLOCK_BYTES << order)));
        }
        self.live_bytes += BLOCK_BYTES << wanted;
        Some(Slot { buffer, offset, bytes })
    }

    fn put_block(&mut self, slot: Slot) {
        let mut order = order_of(slot.bytes);
        let mut offset = slot.offset;
        self.live_bytes -= BLOCK_BYTES << order;
        while order + 1 < self.blocks.len()
            && self.blocks[order].remove(&(slot.buffer, offset ^ (BLOCK_BYTES << order)))
        {
            offset &= !(BLOCK_BYTES << order);
            order += 1;
        }
        self.blocks[order].insert((slot.buffer, offset));
        if order + 1 == self.blocks.len() {
            self.clock += 1;
            self.buffers.get_mut(&slot.buffer).expect("RES-3: a slot's slab is held").freed_at = Some(self.clock);
        }
    }
}

fn block_bytes(bytes: u64) -> u64 {
    bytes.max(BLOCK_BYTES).next_power_of_two()
}

fn order_of(bytes: u64) -> usize {
    (block_bytes(bytes) / BLOCK_BYTES).ilog2() as usize
}
