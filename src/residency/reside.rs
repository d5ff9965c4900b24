//! Makes the segments that one tile of a step needs resident: fetched, newly allocated, or taken over from an input
//! that dies.
//!
//! In: segments of a plan's buffers. Out: their slots, with the right contents, by commands in the cursor's batch. Must
//! hold: RES-3; a segment that a step needs is not evicted for the same step; an input's memory is overwritten only if
//! nothing else needs its contents, and after its readback, if the scheduler waits for one.

use super::cursor::{Block, Cursor, Stop};
use super::state::State;
use super::tiles::Need;
use super::values::{Change, Key, Place, Segment};
use crate::contract::batch::{Command, Slot};
use crate::contract::messages::residency::ResidencyOutput;
use crate::contract::plan::Role;
use crate::error::{Error, ErrorKind};

impl State {
    /// Gives every need a slot with the right contents. The order is: segments that exist, new segments, segments that
    /// take over an input's memory. The last step cannot be undone, so it must not come before a need that has to wait.
    pub(super) fn reside(
        &mut self,
        d: usize,
        cursor: &mut Cursor,
        needs: &[Need],
        out: &mut Vec<ResidencyOutput>,
    ) -> Result<Vec<Slot>, Stop> {
        self.devices[d].pin_floor = self.clock + 1;
        for need in needs {
            self.touch(d, cursor.keys[need.buffer as usize], need.segment);
            if let Some(source) = cursor.plan.buffers[need.buffer as usize].in_place_of {
                self.touch(d, cursor.keys[source as usize], need.segment);
            }
        }
        let mut slots = vec![None; needs.len()];
        for (need, slot) in needs.iter().zip(&mut slots) {
            if !self.is_fresh(d, cursor, need.buffer, need.segment) {
                *slot = Some(self.fetch(d, cursor, need.buffer, need.segment, out)?);
            }
        }
        let mut takers = Vec::new();
        for (n, need) in needs.iter().enumerate() {
            let key = cursor.keys[need.buffer as usize];
            if slots[n].is_none() {
                slots[n] = self.slot_of(d, key, need.segment);
            }
            if slots[n].is_none() && !self.make(d, cursor, *need, out)? {
                takers.push(n);
            }
            slots[n] = self.slot_of(d, key, need.segment).or(slots[n]);
        }
        for n in takers {
            slots[n] = Some(self.take_over(d, cursor, needs[n]));
        }
        Ok(slots.into_iter().map(|slot| slot.expect("RES-3: every need has a slot")).collect())
    }

    /// Whether a segment of the plan's own buffers has never had contents.
    pub(super) fn is_fresh(&self, d: usize, cursor: &Cursor, buffer: u32, segment: u32) -> bool {
        if matches!(cursor.plan.buffers[buffer as usize].role, Role::Input(_)) {
            return false;
        }
        let value = &self.values[&cursor.keys[buffer as usize]];
        value.elements > 0 && !value.segment(d, segment).is_some_and(Segment::is_kept)
    }

    /// A slot with the contents of a segment that exists somewhere.
    fn fetch(
        &mut self,
        d: usize,
        cursor: &mut Cursor,
        buffer: u32,
        segment: u32,
        out: &mut Vec<ResidencyOutput>,
    ) -> Result<Slot, Stop> {
        let key = cursor.keys[buffer as usize];
        self.note_dependence(d, cursor, key, segment);
        let value = &self.values[&key];
        let at = value.segment(d, segment).expect("RES-8: the books were opened with the plan");
        if let Some(slot) = at.slot() {
            return Ok(slot);
        }
        if let (Place::Draining, Some(transfer)) = (at.place, at.coming) {
            return Err(Stop::Wait(Block::Arrival(transfer)));
        }
        let (from, first) = match (&at.part, &value.whole, at.coming) {
            (Some(part), _, _) => (part.clone(), 0),
            (None, Some(whole), _) => (whole.clone(), (segment as u64) << self.shift_of(d, key)),
            (None, None, Some(transfer)) => return Err(Stop::Wait(Block::Arrival(transfer))),
            (None, None, None) => {
                if !value.is_recoverable() {
                    return Err(Stop::Fail(Error::new(ErrorKind::Internal, format!("RES-5: {key:?} is nowhere"))));
                }
                self.collect(key, d, &mut cursor.open, out);
                match &self.values[&key].whole {
                    Some(whole) => (whole.clone(), (segment as u64) << self.shift_of(d, key)),
                    None => return Err(Stop::Wait(Block::HostCopy(key))),
                }
            }
        };
        let elements = self.values[&key].segment_elements(segment, self.shift_of(d, key));
        let bytes = self.slot_bytes(d, key, segment);
        let to = self.allocate_for(d, &from, bytes, &mut cursor.open)?;
        self.assign(d, key, segment, to, &mut cursor.open);
        if elements > 0 {
            cursor.open.work_us += self.devices[d].upload_us(bytes);
            cursor.open.commands.push(Command::Upload { from, first, elements, to });
        }
        Ok(to)
    }

    /// Allocates a slot for a segment that has no contents yet. Returns false if the segment should take over its
    /// input's slot instead.
    fn make(
        &mut self,
        d: usize,
        cursor: &mut Cursor,
        need: Need,
        out: &mut Vec<ResidencyOutput>,
    ) -> Result<bool, Stop> {
        let key = cursor.keys[need.buffer as usize];
        let plan = cursor.plan.clone();
        let buffer = &plan.buffers[need.buffer as usize];
        let bytes = self.slot_bytes(d, key, need.segment);
        let mut source = None;
        if let Some(from) = buffer.in_place_of {
            let from_key = cursor.keys[from as usize];
            let same_size = self.slot_bytes(d, from_key, need.segment) == bytes;
            if need.reads {
                source = Some(self.fetch(d, cursor, from, need.segment, out)?);
            }
            // Lent memory belongs to its owner and is never written.
            let own = self.slot_of(d, from_key, need.segment).is_some_and(|slot| !self.devices[d].pool.is_lent(slot));
            if same_size && own && self.may_take(cursor, from) {
                return Ok(false);
            }
        }
        let slot = self.allocate(d, bytes, &mut cursor.open)?;
        self.assign(d, key, need.segment, slot, &mut cursor.open);
        match source {
            Some(from) => cursor.open.commands.push(Command::Copy { from, to: slot }),
            None if buffer.zeroed || matches!(buffer.role, Role::Faults) => {
                cursor.open.commands.push(Command::Zero { slot });
            }
            None => {}
        }
        Ok(true)
    }

    /// Whether no one else needs a buffer's contents after this step, so that its memory may be overwritten.
    pub(super) fn may_take(&self, cursor: &Cursor, buffer: u32) -> bool {
        match cursor.plan.buffers[buffer as usize].role {
            Role::Input(_) => self.is_last_user(cursor, buffer),
            Role::Scratch => cursor.plan.buffers[buffer as usize].live.1 as usize <= cursor.step,
            Role::Output(_) | Role::Faults => false,
        }
    }

    pub(super) fn is_last_user(&self, cursor: &Cursor, buffer: u32) -> bool {
        let key = cursor.keys[buffer as usize];
        let dies = cursor.plan.inputs.iter().any(|i| Key::Value(i.value) == key && i.dies);
        dies && self.values[&key].users.len() == 1 && !cursor.plan.outputs.iter().any(|(_, _, b)| *b == buffer)
    }

    fn take_over(&mut self, d: usize, cursor: &mut Cursor, need: Need) -> Slot {
        let plan = cursor.plan.clone();
        let buffer = &plan.buffers[need.buffer as usize];
        let key = cursor.keys[need.buffer as usize];
        if let Some(slot) = self.slot_of(d, key, need.segment) {
            return slot;
        }
        let from = buffer.in_place_of.expect("RES-3: who takes over has a source");
        let from_key = cursor.keys[from as usize];
        if plan.readbacks.iter().any(|&v| Key::Value(v) == from_key) {
            self.read_back(d, from_key, need.segment, &mut cursor.open);
        }
        let slot = self.give(d, from_key, need.segment, Change::Give);
        self.assign(d, key, need.segment, slot, &mut cursor.open);
        if buffer.zeroed && !need.reads {
            cursor.open.commands.push(Command::Zero { slot });
        }
        if need.segment == 0 {
            self.totals.reused_in_place += 1;
        }
        slot
    }

    /// Records what must succeed for the input to be valid: its maker, and the batch that fills the segment. If either
    /// fails, so does this region.
    fn note_dependence(&mut self, d: usize, cursor: &Cursor, key: Key, segment: u32) {
        let region = cursor.plan.region;
        let value = &self.values[&key];
        let maker = value.maker.filter(|&m| m != region && self.regions.contains_key(&m));
        let batch = match value.segment(d, segment).map(|s| s.place) {
            Some(Place::Filling { batch, .. }) => {
                let flight = self.devices[d].flights.get(&batch);
                flight.filter(|f| f.region != region || f.service).map(|_| batch)
            }
            _ => None,
        };
        let work = self.regions.get_mut(&region).expect("RES-8: a region that is placed is open");
        if let Some(maker) = maker
            && !work.depends.contains(&maker)
        {
            work.depends.push(maker);
        }
        if let Some(batch) = batch
            && !work.depends_batches.contains(&batch)
        {
            work.depends_batches.push(batch);
        }
    }
}
