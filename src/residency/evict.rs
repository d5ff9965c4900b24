//! Allocation under memory pressure: where a slot comes from, and what is evicted for it.
//!
//! In: bytes wanted by the step that is being placed. Out: a slot, a reason to wait, or an error. Must hold: RES-2. An
//! allocation tries, in this order: free memory of the pool (while a long batch runs on the host, only memory that no
//! long batch uses, `take_beside`); a new buffer within the budget; free memory that long batches use; returning free
//! buffers to the device, to make room for a new one; on the host, dropping host copies of values that a device holds,
//! too; evicting values, least recently used first, down to a low mark; and, if all that is left belongs to the step
//! itself, a new buffer beyond the budget, on a GPU only.

use super::batch::Open;
use super::cursor::{Block, Stop};
use super::state::State;
use super::values::{Change, DeviceCopy, Key, Place};
use crate::contract::batch::{Command, Slot};
use crate::contract::messages::residency::Eviction;
use crate::error::{Error, ErrorKind};
use crate::host_buffer::HostBuffer;
use crate::ids::{BufferId, DeviceId};

/// Eviction goes on until live slots take at most this many hundredths of the budget.
const LOW_MARK_PERCENT: u64 = 85;

/// How an attempt to evict one segment ended.
enum Attempt {
    Evicted,
    /// Too many bytes are draining.
    Draining,
    /// Nothing can be evicted; true if the reason is that host memory is full.
    Nothing(bool),
}

impl State {
    /// A slot for a segment of the step that is being placed.
    pub(super) fn allocate(&mut self, d: usize, bytes: u64, open: &mut Open) -> Result<Slot, Stop> {
        let mut grown = false;
        let mut beside = self.goes_beside_long(d, open);
        loop {
            let slot = if beside { self.take_beside(d, bytes) } else { self.devices[d].pool.take(bytes) };
            if let Some(slot) = slot {
                if !grown {
                    self.totals.pool_hits += 1;
                }
                return Ok(slot);
            }
            let limit = self.limit(d);
            if self.devices[d].pool.room_for(bytes, limit) {
                self.grow(d, bytes, open);
                grown = true;
            } else if std::mem::take(&mut beside) {
                // Now memory that long batches use is taken, too: the command then waits for them.
            } else if let Some(buffer) = self.devices[d].pool.trim() {
                open.commands.push(Command::Free { buffer });
            } else if self.devices[d].info.capabilities.owns_host_budget && self.drop_spare_host_copies() {
                // Host copies count against the budget, so the limit is higher now.
            } else if !self.evict(d, bytes, open)? {
                // All that is left belongs to the step itself.
                if !self.devices[d].may_overdraw(bytes) {
                    let owns_host_budget = self.devices[d].info.capabilities.owns_host_budget;
                    let claimed = if owns_host_budget { self.claimed_bytes } else { 0 };
                    let most = self.devices[d].info.memory_bytes.saturating_sub(claimed);
                    return Err(self.refusal(d, bytes, most, "its other operands"));
                }
                self.grow(d, bytes, open);
                grown = true;
                self.devices[d].overdrawn = true;
                self.totals.beyond_budget += 1;
            }
        }
    }

    /// Whether the batch may run beside long ones, if it does not use the memory of these.
    fn goes_beside_long(&self, d: usize, open: &Open) -> bool {
        let device = &self.devices[d];
        device.info.capabilities.overlaps_long
            && device.flights.values().any(|flight| flight.long)
            && self.regions.get(&open.region).is_some_and(|work| !work.long)
    }

    /// A free slot in a buffer that no long batch in flight or prepared uses.
    fn take_beside(&mut self, d: usize, bytes: u64) -> Option<Slot> {
        let device = &mut self.devices[d];
        let long = device.flights.values().filter(|flight| flight.long);
        let busy: Vec<BufferId> = long.flat_map(|flight| flight.touched.iter().copied()).collect();
        device.pool.take_unless(bytes, |buffer| busy.contains(&buffer))
    }

    /// Adds a buffer to a device's pool.
    fn grow(&mut self, d: usize, bytes: u64, open: &mut Open) {
        let buffer = BufferId(self.new_number());
        let bytes = self.devices[d].pool.grow(buffer, bytes);
        open.commands.push(Command::Allocate { buffer, bytes });
        self.totals.pool_misses += 1;
        let resident = self.devices.iter().map(|d| d.pool.total_bytes()).sum();
        self.totals.bytes_resident_peak = self.totals.bytes_resident_peak.max(resident);
    }

    fn refusal(&self, d: usize, bytes: u64, most: u64, beside: &str) -> Stop {
        if self.may_wait_for_others(d) {
            // Other plans in progress will free memory.
            return Stop::Wait(Block::Others(self.devices[d].cursors_ended));
        }
        let text = format!("it needs {bytes} more bytes, which do not fit into {most} bytes beside {beside}");
        Stop::Fail(Error::new(ErrorKind::OutOfMemory, text))
    }

    /// If a step made the device exceed its budget, frees unused buffers until the pool is within the budget again.
    pub(super) fn settle(&mut self, d: usize, open: &mut Open) {
        if !self.devices[d].overdrawn {
            return;
        }
        let budget = self.devices[d].info.budget_bytes;
        let pool = &mut self.devices[d].pool;
        while pool.total_bytes() > budget
            && let Some(buffer) = pool.trim()
        {
            open.commands.push(Command::Free { buffer });
        }
        self.devices[d].overdrawn = self.devices[d].pool.total_bytes() > budget;
    }

    /// Bytes that a device's pool may take: on the host device, host copies of others' values and what
    /// front ends hold share the budget.
    pub(super) fn limit(&self, d: usize) -> u64 {
        let budget = self.devices[d].info.budget_bytes;
        match self.devices[d].info.capabilities.owns_host_budget {
            true => budget.saturating_sub(self.host_copy_bytes + self.claimed_bytes),
            false => budget,
        }
    }

    /// A slot for the contents of a host buffer. A device that can read the buffer in place gets its memory lent, which
    /// takes nothing of the budget.
    pub(super) fn allocate_for(
        &mut self,
        d: usize,
        from: &HostBuffer,
        bytes: u64,
        open: &mut Open,
    ) -> Result<Slot, Stop> {
        if self.devices[d].info.reads_in_place((from.len() * from.dtype().bytes()) as u64) {
            let buffer = BufferId(self.new_number());
            let slot = self.devices[d].pool.lend(buffer, bytes);
            open.commands.push(Command::Allocate { buffer, bytes: slot.bytes });
            return Ok(slot);
        }
        self.allocate(d, bytes, open)
    }

    /// Evicts at least one segment, and then more down to the low mark. Returns false if everything that is left
    /// belongs to the step itself.
    fn evict(&mut self, d: usize, bytes: u64, open: &mut Open) -> Result<bool, Stop> {
        let budget = self.devices[d].info.budget_bytes;
        let wanted = self.devices[d].pool.charged(bytes);
        let low = (budget / 100 * LOW_MARK_PERCENT).saturating_sub(wanted);
        let mut any = false;
        loop {
            match self.evict_one(d, wanted, open) {
                Attempt::Evicted => any = true,
                Attempt::Draining | Attempt::Nothing(_) if any => return Ok(true),
                Attempt::Draining => return Err(Stop::Wait(Block::Draining(self.devices[d].draining_bytes))),
                Attempt::Nothing(true) => {
                    let beside = "other values, and the host memory for evicted values is full";
                    return Err(self.refusal(d, bytes, budget, beside));
                }
                Attempt::Nothing(false) => return Ok(false),
            }
            if self.devices[d].pool.live_bytes() <= low {
                return Ok(true);
            }
        }
    }

    fn evict_one(&mut self, d: usize, wanted: u64, open: &mut Open) -> Attempt {
        // What such a device drops goes to host memory, which its own budget does not count.
        let copies_to_host = !self.devices[d].info.capabilities.owns_host_budget;
        let mut host_room = self.host_room();
        if host_room < self.devices[d].info.budget_bytes / 8 && copies_to_host && self.drop_spare_host_copies() {
            host_room = self.host_room();
        }
        let device = &self.devices[d];
        let mut host_full = false;
        // Whole buffers are evicted before blocks of slabs, which would not make room for a large request.
        let candidates = device.lru.iter().flat_map(|lru| lru.range(..device.pin_floor).map(|(_, &at)| at));
        let mut victim = None;
        for (key, segment) in candidates {
            let value = &self.values[&key];
            let at = value.segment(d, segment).expect("RES-7: the index holds segments with slots");
            if at.slot().is_some_and(|slot| device.pool.is_lent(slot)) {
                continue;
            }
            let known = value.whole.is_some() || at.part.is_some();
            let host_bytes = value.segment_elements(segment, device.shift_of(value.joined, value.dtype))
                * value.dtype.bytes() as u64;
            if known || (copies_to_host && (at.coming.is_some() || host_bytes <= host_room)) {
                victim = Some((key, segment, known));
                break;
            }
            host_full |= copies_to_host;
        }
        let Some((key, segment, known)) = victim else { return Attempt::Nothing(host_full) };
        let bytes = self.slot_bytes(d, key, segment);
        let device = &self.devices[d];
        if !known && device.draining_bytes > 0 && device.draining_bytes + bytes > device.draining_bytes_max() {
            return Attempt::Draining;
        }
        self.evictions.push(Eviction {
            device: DeviceId(d as u8),
            region: open.region,
            value: match key {
                Key::Value(value) => Some(value),
                Key::Scratch(..) => None,
            },
            segment,
            bytes: device.pool.charged(bytes),
            wanted,
            live: device.pool.live_bytes() + if copies_to_host { 0 } else { self.host_copy_bytes },
            budget: device.info.budget_bytes,
            known,
        });
        self.evict_segment(d, key, segment, known, open);
        Attempt::Evicted
    }

    /// Frees a segment's slot. `known`: its bytes are in host memory already; else they are read back first, unless a
    /// readback is on its way.
    fn evict_segment(&mut self, d: usize, key: Key, segment: u32, known: bool, open: &mut Open) {
        let change = if known { Change::Give } else { Change::Drain };
        if !known {
            self.read_back(d, key, segment, open);
        }
        let slot = self.give(d, key, segment, change);
        if !known {
            let transfer = self.segment_mut(d, key, segment).coming.expect("RES-6: a draining segment is on its way");
            let arrival = self.transfers.get_mut(&transfer).expect("RES-6: a readback on its way is recorded");
            arrival.draining_bytes = slot.bytes;
            self.devices[d].draining_bytes += slot.bytes;
        }
        self.put_back(d, slot);
        self.totals.evictions += 1;
        self.totals.bytes_evicted += slot.bytes;
        self.story.note(key, d, segment, if known { "dropped, bytes" } else { "evicted, bytes" }, slot.bytes);
    }

    /// Bytes of host memory that evicted values may still take.
    pub(super) fn host_room(&self) -> u64 {
        let Some(host) = self.devices.iter().find(|d| d.info.capabilities.owns_host_budget) else { return u64::MAX };
        host.info.budget_bytes.saturating_sub(self.host_copy_bytes + self.claimed_bytes + host.pool.total_bytes())
    }

    /// Drops host copies whose bytes are also valid on a device. Whether any were dropped.
    fn drop_spare_host_copies(&mut self) -> bool {
        let before = self.host_copy_bytes;
        if before == 0 {
            return false;
        }
        let valid = |c: &DeviceCopy| c.segments.iter().all(|s| matches!(s.place, Place::Valid { .. }));
        let mut wholes = Vec::new();
        let mut parts = Vec::new();
        for (&key, value) in &self.values {
            let wanted = value.awaited || !value.users.is_empty();
            if value.whole_counted > 0 && !wanted && value.copies.iter().any(valid) {
                wholes.push(key);
            }
            for copy in &value.copies {
                for (n, segment) in copy.segments.iter().enumerate() {
                    if !value.collect && segment.part.is_some() && matches!(segment.place, Place::Valid { .. }) {
                        parts.push((copy.device, key, n as u32));
                    }
                }
            }
        }
        wholes.into_iter().for_each(|key| self.drop_whole(key));
        parts.into_iter().for_each(|(d, key, segment)| self.drop_part(d, key, segment));
        self.host_copy_bytes < before
    }
}
