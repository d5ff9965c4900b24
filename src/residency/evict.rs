//! Memory under pressure: where a slot comes from, and what leaves for it.
//!
//! In: bytes wanted by the step that is being placed. Out: a slot, or the reason to wait, or the refusal. Must hold:
//! RES-2. Order of what is tried: free memory of the pool, on the host beside a long batch only what no long batch
//! touches (`take_beside`); a new buffer within the budget; what long batches touch after all; free buffers handed back
//! to the device; on the host, host copies dropped that a device holds too; values evicted, the longest unused first,
//! and once that begins, down to a low mark; and where all that is left belongs to the step itself, on a GPU, a new
//! buffer beyond the budget.

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
    /// Nothing can leave; true if only because host memory is full.
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
                // Better later than never.
            } else if let Some(buffer) = self.devices[d].pool.trim() {
                open.commands.push(Command::Free { buffer });
            } else if self.devices[d].info.capabilities.owns_host_budget && self.drop_spare_host_copies() {
                // The limit has risen.
            } else if !self.evict(d, bytes, open)? {
                // All that is left belongs to the step itself.
                if !self.devices[d].may_overdraw(bytes) {
                    let owns_host_budget = self.devices[d].info.capabilities.owns_host_budget;
                    let claimed = if owns_host_budget { self.claimed_bytes } else { 0 };
                    let most = self.devices[d].info.memory_bytes.saturating_sub(claimed);
                    return Err(self.refusal(d, bytes, most, "what the same step needs"));
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

    /// A free slot of which no long batch knows that is out.
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
            // What others have in progress will give memory back.
            return Stop::Wait(Block::Others(self.devices[d].cursors_ended));
        }
        let text = format!("{bytes} more bytes do not fit into {most} bytes beside {beside}");
        Stop::Fail(Error::new(ErrorKind::OutOfMemory, text))
    }

    /// Hands free buffers back until a device that took more than its budget for a step is within it again.
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

    /// A slot for the contents of host memory: on the host it lies where they are, which takes nothing of the budget.
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

    /// Evicts at least one segment, then on to the low mark. False where nothing can leave but what the step needs.
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
                    let beside = "what others keep, and host memory for evicted values is full";
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
        let is_host = self.devices[d].info.capabilities.owns_host_budget;
        let mut host_room = self.host_room();
        if host_room < self.devices[d].info.budget_bytes / 8 && !is_host && self.drop_spare_host_copies() {
            host_room = self.host_room();
        }
        let device = &self.devices[d];
        let mut host_full = false;
        // Whole buffers first: a block of a slab frees nothing that a large request could use.
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
            if known || (!is_host && (at.coming.is_some() || host_bytes <= host_room)) {
                victim = Some((key, segment, known));
                break;
            }
            host_full |= !is_host;
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
            live: device.pool.live_bytes() + if is_host { self.host_copy_bytes } else { 0 },
            budget: device.info.budget_bytes,
            known,
        });
        self.evict_segment(d, key, segment, known, open);
        Attempt::Evicted
    }

    /// Takes a segment's slot for others; its bytes are known in host memory or on their way there.
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
