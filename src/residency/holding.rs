//! Gives slots to segments and takes them away; joins and drops host copies.
//!
//! In: calls from the cursor, eviction and completions. Out: changed values, readback commands. Must hold: RES-1
//! (through `Segment::change`), RES-7 (a segment is in the LRU index exactly while it has a slot), RES-9 (which host
//! copies count against the host budget, see `mod.rs`).

use super::batch::Open;
use super::pool::padded;
use super::state::{Arrival, State};
use super::values::{Change, DeviceCopy, Key, Place, Segment, Status, segments_of};
use crate::contract::batch::{Command, Slot, Transfer};
use crate::contract::messages::residency::ResidencyOutput;
use crate::error::Error;
use crate::host_buffer::HostBuffer;
use std::sync::Arc;

impl State {
    /// Adds a record of a value's segments on a device, all without slots, unless there is one.
    pub(super) fn ensure_copy(&mut self, d: usize, key: Key) {
        let value = self.values.get_mut(&key).expect("RES-8: a value in use is known");
        if value.copy(d).is_none() {
            let shift = self.devices[d].shift_of(value.joined, value.dtype);
            let segment = Segment { place: Place::Absent, part: None, coming: None, stamp: 0 };
            let segments = smallvec::smallvec![segment; segments_of(value.elements, shift) as usize];
            value.copies.push(DeviceCopy { device: d, segments });
        }
    }

    /// Bytes of a segment's slot.
    pub(super) fn slot_bytes(&self, d: usize, key: Key, segment: u32) -> u64 {
        let value = &self.values[&key];
        let device = &self.devices[d];
        let elements = value.segment_elements(segment, device.shift_of(value.joined, value.dtype));
        padded(elements * device.info.element_bytes(value.dtype))
    }

    /// log2 of elements in a segment of a value or buffer on a device.
    pub(super) fn shift_of(&self, d: usize, key: Key) -> u32 {
        let value = &self.values[&key];
        self.devices[d].shift_of(value.joined, value.dtype)
    }

    pub(super) fn slot_of(&self, d: usize, key: Key, segment: u32) -> Option<Slot> {
        self.values.get(&key).and_then(|v| v.segment(d, segment)).and_then(Segment::slot)
    }

    pub(super) fn segment_mut(&mut self, d: usize, key: Key, segment: u32) -> &mut Segment {
        let value = self.values.get_mut(&key).expect("RES-8: a value in use is known");
        value.segment_mut(d, segment).expect("RES-8: a segment in use is in the books")
    }

    /// Gives a segment a slot, to be filled by the open batch.
    pub(super) fn assign(&mut self, d: usize, key: Key, segment: u32, slot: Slot, open: &mut Open) {
        self.clock += 1;
        let (stamp, batch) = (self.clock, open.id);
        let at = self.segment_mut(d, key, segment);
        at.change(Change::Assign { slot, batch });
        at.stamp = stamp;
        let device = &mut self.devices[d];
        let kind = device.pool.in_slab(slot) as usize;
        device.lru[kind].insert(stamp, (key, segment));
        open.fills.push((key, segment));
        self.story.note(key, d, segment, "filled by batch", batch.0);
    }

    /// Marks a use of a segment that has a slot.
    pub(super) fn touch(&mut self, d: usize, key: Key, segment: u32) {
        self.clock += 1;
        let stamp = self.clock;
        let at = self.segment_mut(d, key, segment);
        let Some(slot) = at.slot() else { return };
        let old = std::mem::replace(&mut at.stamp, stamp);
        let device = &mut self.devices[d];
        let lru = &mut device.lru[device.pool.in_slab(slot) as usize];
        lru.remove(&old);
        lru.insert(stamp, (key, segment));
    }

    /// Takes a segment's slot away from it; the caller hands the slot on.
    pub(super) fn give(&mut self, d: usize, key: Key, segment: u32, change: Change) -> Slot {
        let at = self.segment_mut(d, key, segment);
        let slot = at.slot().expect("RES-1: only a segment with a slot gives it away");
        at.change(change);
        let stamp = at.stamp;
        let device = &mut self.devices[d];
        device.lru[device.pool.in_slab(slot) as usize].remove(&stamp);
        slot
    }

    /// Returns a slot to its pool; a lent one is dropped, so that its owner's memory can be freed.
    pub(super) fn put_back(&mut self, d: usize, slot: Slot) {
        let device = &mut self.devices[d];
        if device.pool.put(slot) {
            device.lent_to_drop.push(slot.buffer);
        }
    }

    /// Frees a segment's slot, if it has one. Later commands may use the slot at once, because a device works in order.
    pub(super) fn free(&mut self, d: usize, key: Key, segment: u32) {
        if self.slot_of(d, key, segment).is_some() {
            let slot = self.give(d, key, segment, Change::Give);
            self.put_back(d, slot);
            self.story.note(key, d, segment, "freed, bytes", slot.bytes);
        }
    }

    /// Frees all slots of a value, on all devices.
    pub(super) fn free_slots(&mut self, key: Key) {
        let Some(value) = self.values.get(&key) else { return };
        let held: Vec<(usize, u32)> =
            value.copies.iter().flat_map(|c| (0..c.segments.len() as u32).map(move |s| (c.device, s))).collect();
        for (d, segment) in held {
            self.free(d, key, segment);
        }
    }

    /// Drops the host copy of one segment, because the segment's bytes change or another copy exists.
    pub(super) fn drop_part(&mut self, d: usize, key: Key, segment: u32) {
        if let Some(part) = self.segment_mut(d, key, segment).part.take() {
            self.host_copy_bytes -= self.counted(d, &part);
        }
    }

    /// Drops the whole host copy.
    pub(super) fn drop_whole(&mut self, key: Key) {
        if let Some(value) = self.values.get_mut(&key) {
            value.whole = None;
            self.host_copy_bytes -= std::mem::take(&mut value.whole_counted);
        }
    }

    /// Bytes that the host copy of a segment counts against the host budget: none on the host device, where the copy is
    /// the segment's own memory.
    pub(super) fn counted(&self, d: usize, part: &HostBuffer) -> u64 {
        if self.devices[d].info.capabilities.owns_host_budget { 0 } else { part.bytes().len() as u64 }
    }

    /// Frees everything that a value holds, and forgets it.
    pub(super) fn forget(&mut self, key: Key) {
        self.drop_holdings(key);
        self.values.remove(&key);
    }

    /// Frees everything that a value holds.
    pub(super) fn drop_holdings(&mut self, key: Key) {
        self.free_slots(key);
        self.drop_whole(key);
        let Some(value) = self.values.get_mut(&key) else { return };
        let copies = std::mem::take(&mut value.copies);
        value.collect = false;
        for copy in &copies {
            for part in copy.segments.iter().filter_map(|s| s.part.as_ref()) {
                self.host_copy_bytes -= self.counted(copy.device, part);
            }
        }
    }

    /// Frees a value that nothing can reach any more. If the scheduler still waits for its host copy, the readbacks on
    /// their way are kept.
    pub(super) fn forget_if_dead(&mut self, key: Key) {
        let Some(value) = self.values.get(&key) else { return };
        if !value.retired || !value.users.is_empty() {
            return;
        }
        match &value.status {
            Status::Pending => {}
            Status::Placed if value.awaited => self.free_slots(key),
            Status::Placed | Status::Failed(_) => self.forget(key),
        }
    }

    /// Emits a readback of a segment that has a slot, unless its bytes are in host memory or on their way there.
    pub(super) fn read_back(&mut self, d: usize, key: Key, segment: u32, open: &mut Open) {
        let value = &self.values[&key];
        let (dtype, elements) =
            (value.dtype, value.segment_elements(segment, self.devices[d].shift_of(value.joined, value.dtype)));
        let at = value.segment(d, segment).expect("RES-8: a segment in use is in the books");
        let Some(from) = at.slot() else { return };
        if at.part.is_some() || at.coming.is_some() || value.whole.is_some() {
            return;
        }
        let transfer = Transfer(self.new_number());
        let counted_already = self.devices[d].info.capabilities.owns_host_budget;
        let host_bytes = if counted_already { 0 } else { elements * dtype.bytes() as u64 };
        self.host_copy_bytes += host_bytes;
        self.transfers.insert(transfer, Arrival { key, device: d, segment, host_bytes, draining_bytes: 0 });
        self.segment_mut(d, key, segment).coming = Some(transfer);
        open.transfers.push(transfer);
        open.commands.push(Command::Readback { transfer, from, dtype, elements });
        self.story.note(key, d, segment, "readback, transfer", transfer.0);
    }

    /// Starts to bring the whole value to host memory. `open` is the batch that device `d` is filling. Readbacks on
    /// other devices go in batches of their own.
    pub(super) fn collect(&mut self, key: Key, d: usize, open: &mut Open, out: &mut Vec<ResidencyOutput>) {
        let value = self.values.get_mut(&key).expect("RES-8: a value in use is known");
        if value.whole.is_some() || value.collect {
            self.deliver(key, out);
            return;
        }
        value.collect = true;
        let complete = |c: &&DeviceCopy| c.is_complete();
        let here = value.copies.iter().filter(complete).find(|c| c.device == d);
        let Some(copy) = here.or_else(|| value.copies.iter().find(complete)) else {
            panic!("RES-5: {key:?} is nowhere");
        };
        let (holder, count) = (copy.device, copy.segments.len() as u32);
        if holder == d {
            (0..count).for_each(|segment| self.read_back(d, key, segment, open));
        } else {
            let mut service = self.open(open.region, open.session);
            (0..count).for_each(|segment| self.read_back(holder, key, segment, &mut service));
            self.close(holder, &mut service, true);
        }
        self.assemble(key, out);
    }

    /// Joins the parts into the whole host copy once all of them are in host memory.
    pub(super) fn assemble(&mut self, key: Key, out: &mut Vec<ResidencyOutput>) {
        let Some(value) = self.values.get_mut(&key) else { return };
        if !value.collect || value.whole.is_some() {
            return;
        }
        let has_all = |c: &&DeviceCopy| c.segments.iter().all(|s| s.part.is_some());
        let Some(copy) = value.copies.iter().find(has_all) else { return };
        let from = copy.device;
        let whole = match &copy.segments[..] {
            [Segment { part: Some(only), .. }] => only.clone(),
            _ => self.join_parts(from, key),
        };
        let value = self.values.get_mut(&key).expect("RES-10: looked up above");
        let pieces: Vec<(usize, u32)> =
            value.copies.iter().flat_map(|c| (0..c.segments.len() as u32).map(move |s| (c.device, s))).collect();
        for (d, segment) in pieces {
            self.drop_part(d, key, segment);
        }
        let counted = self.counted(from, &whole);
        self.host_copy_bytes += counted;
        let value = self.values.get_mut(&key).expect("RES-10: looked up above");
        value.whole = Some(whole);
        value.whole_counted = counted;
        value.collect = false;
        self.story.note(key, from, 0, "whole in host memory, bytes", counted);
        self.deliver(key, out);
    }

    /// Joins all parts of a device's copy into one host copy. Each part is dropped as soon as it is copied, so the
    /// parts and the copy together take little more than the value.
    fn join_parts(&mut self, d: usize, key: Key) -> Arc<HostBuffer> {
        let value = &self.values[&key];
        let mut whole = HostBuffer::zeroed(value.dtype, value.elements as usize);
        let bytes = whole.bytes_mut().expect("BUF-2: a fresh buffer is owned");
        let mut at = 0;
        let count = value.copies.iter().find(|c| c.device == d).map_or(0, |copy| copy.segments.len() as u32);
        for segment in 0..count {
            let copy = self.values[&key].copies.iter().find(|c| c.device == d);
            let part = copy.and_then(|copy| copy.segments[segment as usize].part.clone());
            let part = part.expect("RES-10: every part is there");
            bytes[at..at + part.bytes().len()].copy_from_slice(part.bytes());
            at += part.bytes().len();
            drop(part);
            self.drop_part(d, key, segment);
        }
        whole.shared()
    }

    /// Tells the scheduler of a value that it awaits, if it is in host memory.
    pub(super) fn deliver(&mut self, key: Key, out: &mut Vec<ResidencyOutput>) {
        let (Some(value), Key::Value(id)) = (self.values.get_mut(&key), key) else { return };
        if let (true, Some(whole)) = (value.awaited, &value.whole) {
            out.push(ResidencyOutput::ValueArrived { value: id, data: Ok(whole.clone()) });
            value.awaited = false;
            self.forget_if_dead(key);
        }
    }

    /// Marks a value as failed: the plans that use it fail, and the scheduler is told if it waits for the value.
    pub(super) fn fail_value(&mut self, key: Key, error: &Error, out: &mut Vec<ResidencyOutput>) {
        self.drop_holdings(key);
        let Some(value) = self.values.get_mut(&key) else { return };
        value.status = Status::Failed(error.clone());
        value.maker = None;
        if let (true, Key::Value(id)) = (std::mem::take(&mut value.awaited), key) {
            out.push(ResidencyOutput::ValueArrived { value: id, data: Err(error.clone()) });
        }
        let users = value.users.clone();
        self.failing.extend(users.into_iter().map(|region| (region, error.clone())));
        self.story.note(key, 0, 0, "failed", 0);
        self.forget_if_dead(key);
    }
}
