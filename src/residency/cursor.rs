//! Placing a plan: a cursor walks its steps, tile by tile, and fills a batch.
//!
//! In: a plan whose inputs exist. Out: a batch of commands, several where the cursor must pause.
//! Must hold: RES-6, a paused cursor waits only for what is certain to come; a step that is tried again after a
//! pause finds what it had placed, since nothing else is placed on the device in between.

use super::batch::Open;
use super::message::ResidencyInstruction;
use super::state::{Phase, State};
use super::values::{Key, Place, Status, Value, segments_of};
use crate::device::message::{Command, Slot, Tile, Transfer};
use crate::error::{Error, ErrorKind};
use crate::fusion::plan::{Launch, Plan, Role, Step, Use};
use crate::host_buffer::HostBuffer;
use crate::ids::BatchId;
use crate::kernels::ir::Geometry;
use smallvec::SmallVec;
use std::sync::Arc;

/// What a paused cursor waits for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Block {
    /// A segment that is draining.
    Arrival(Transfer),
    /// The whole of a value, from another device.
    HostCopy(Key),
    /// Fewer bytes draining than this.
    Draining(u64),
}

/// Why a step can't be placed now.
#[derive(Debug)]
pub(super) enum Stop {
    Wait(Block),
    Fail(Error),
}

/// A plan that is being placed.
#[derive(Debug)]
pub(super) struct Cursor {
    pub(super) plan: Arc<Plan>,
    pub(super) keys: Vec<Key>,
    /// The last step that needs each buffer: its last use, or the first one of who takes over its memory.
    ends: Vec<u32>,
    /// The next step; beyond the steps stand the closing ones.
    step: usize,
    tile: u32,
    pub(super) open: Open,
    pub(super) blocked: Option<Block>,
    /// Whether it was found to fit.
    checked: bool,
}

impl Cursor {
    /// At the beginning of a plan.
    pub(super) fn new(plan: Arc<Plan>, id: BatchId) -> Cursor {
        let key = |(n, b): (usize, &crate::fusion::plan::PlanBuffer)| match b.role {
            Role::Input(value) | Role::Output(value) => Key::Value(value),
            Role::Scratch | Role::Faults => Key::Scratch(plan.region, n as u32),
        };
        let keys = plan.buffers.iter().enumerate().map(key).collect();
        let mut ends: Vec<u32> = plan.buffers.iter().map(|b| b.live.1).collect();
        for taker in &plan.buffers {
            if let Some(source) = taker.in_place_of {
                let end = &mut ends[source as usize];
                *end = (*end).max(taker.live.0);
            }
        }
        let open = Open::new(id, plan.region, plan.session);
        Cursor { plan, keys, ends, step: 0, tile: 0, open, blocked: None, checked: false }
    }
}

/// A segment of a plan's buffer that a tile uses.
#[derive(Clone, Copy, Debug)]
struct Need {
    buffer: u32,
    segment: u32,
    reads: bool,
    writes: bool,
}

impl State {
    /// Places as much of the device's current plan as can be placed now.
    pub(super) fn advance(&mut self, d: usize, out: &mut Vec<ResidencyInstruction>) {
        let mut cursor = self.devices[d].cursor.take().expect("RES-6: only a device with a cursor advances");
        cursor.blocked = None;
        match self.run(d, &mut cursor, out) {
            Ok(()) => self.placed(d, cursor, out),
            Err(Stop::Wait(block)) => {
                self.close(d, &mut cursor.open, false);
                cursor.blocked = Some(block);
                self.devices[d].cursor = Some(cursor);
            }
            Err(Stop::Fail(error)) => {
                // What is in the batch moved others' values and buffers: it must run all the same.
                self.close(d, &mut cursor.open, true);
                self.drop_scratch(&cursor.plan);
                let error = error.with_device(self.devices[d].info.name.clone());
                self.failing.push_back((cursor.plan.region, error));
            }
        }
    }

    /// Forgets the buffers that live within a plan.
    pub(super) fn drop_scratch(&mut self, plan: &Plan) {
        for n in 0..plan.buffers.len() {
            self.forget(Key::Scratch(plan.region, n as u32));
        }
    }

    fn run(&mut self, d: usize, cursor: &mut Cursor, out: &mut Vec<ResidencyInstruction>) -> Result<(), Stop> {
        let plan = cursor.plan.clone();
        if !cursor.checked {
            self.enter_buffers(d, cursor);
            self.check_fits(d, cursor)?;
            cursor.checked = true;
        }
        while let Some(step) = plan.steps.get(cursor.step) {
            match step {
                Step::Launch(launch) => {
                    let tiles = tiles_of(launch, &plan, self.devices[d].shift)?;
                    while cursor.tile < tiles.unwrap_or(1) {
                        let blame = |stop| blamed(stop, launch);
                        self.place_tile(d, cursor, launch, tiles, out).map_err(blame)?;
                        cursor.tile += 1;
                    }
                }
                Step::Copy { from, to } => {
                    let count = segments_of(plan.buffers[*to as usize].elements, self.devices[d].shift);
                    while cursor.tile < count {
                        self.place_copy(d, cursor, *from, *to, out)?;
                        cursor.tile += 1;
                    }
                }
            }
            cursor.tile = 0;
            cursor.step += 1;
            self.free_dead(d, cursor);
        }
        self.finish_outputs(d, cursor, out)?;
        self.read_faults(d, cursor, out)?;
        self.read_results(d, cursor, out);
        Ok(())
    }

    /// Makes the plan's own buffers known.
    fn enter_buffers(&mut self, d: usize, cursor: &Cursor) {
        for (buffer, &key) in cursor.plan.buffers.iter().zip(&cursor.keys) {
            let value = self.values.entry(key).or_insert_with(|| Value::new(buffer.dtype, buffer.elements));
            if value.elements == 0 && value.whole.is_none() {
                value.whole = Some(HostBuffer::zeroed(value.dtype, 0).shared());
            }
            self.ensure_copy(d, key);
        }
        for (id, _, _) in &cursor.plan.outputs {
            self.ensure_copy(d, Key::Value(*id));
        }
    }

    /// Refuses a plan with a step whose own working set is beyond the budget, before anything of it is placed.
    fn check_fits(&self, d: usize, cursor: &Cursor) -> Result<(), Stop> {
        let (device, plan) = (&self.devices[d], &cursor.plan);
        for step in &plan.steps {
            let Step::Launch(launch) = step else { continue };
            let tiles = tiles_of(launch, plan, device.shift)?;
            let needs = needs_of(launch, plan, device.shift, tiles.map(|_| 0));
            // An output that takes over the memory of an operand of the same step adds nothing.
            let shares = |need: &&Need| {
                let source = plan.buffers[need.buffer as usize].in_place_of;
                let dies =
                    |b: u32| plan.inputs.iter().any(|i| i.dies && Key::Value(i.value) == cursor.keys[b as usize]);
                source.is_some_and(|b| needs.iter().any(|n| n.buffer == b) && dies(b))
            };
            let bytes: u64 = needs
                .iter()
                .filter(|need| !shares(need))
                .map(|need| self.slot_bytes(d, cursor.keys[need.buffer as usize], need.segment))
                .map(|bytes| device.pool.charged(bytes))
                .sum();
            if bytes > device.info.budget_bytes {
                let text =
                    format!("it needs {bytes} bytes at once, and the budget is {} bytes", device.info.budget_bytes);
                return Err(blamed(Stop::Fail(Error::new(ErrorKind::OutOfMemory, text)), launch));
            }
        }
        Ok(())
    }

    /// Emits one dispatch of a launch.
    fn place_tile(
        &mut self,
        d: usize,
        cursor: &mut Cursor,
        launch: &Arc<Launch>,
        tiles: Option<u32>,
        out: &mut Vec<ResidencyInstruction>,
    ) -> Result<(), Stop> {
        let plan = cursor.plan.clone();
        let shift = self.devices[d].shift;
        let tile = tiles.map(|_| cursor.tile);
        let needs = needs_of(launch, &plan, shift, tile);
        let slots = self.reside(d, cursor, &needs, out)?;
        let slot_of = |buffer: u32, segment: u32| {
            let at = needs.iter().position(|n| n.buffer == buffer && n.segment == segment);
            slots[at.expect("RES-3: every use is among the needs")]
        };
        let bindings = launch
            .uses
            .iter()
            .map(|u| segments_used(u, &plan, shift, tile).map(|s| slot_of(u.buffer, s)).collect())
            .collect();
        cursor.open.commands.push(Command::Dispatch {
            launch: launch.clone(),
            tile: tile_range(&launch.geometry, shift, tile, tiles.unwrap_or(1)),
            bindings,
            faults: launch.faults.map(|f| slot_of(f, 0)),
            segment_shift: shift.min(31),
        });
        for need in needs.iter().filter(|n| n.writes) {
            self.drop_part(d, cursor.keys[need.buffer as usize], need.segment);
        }
        // Segments that only this tile needs are dead before the step is.
        if tiles.is_some_and(|count| count > 1) {
            let is_tiled = |n: &&Need| launch.uses.iter().all(|u| u.buffer != n.buffer || u.tiled);
            let dead = needs.iter().filter(|n| launch.faults != Some(n.buffer)).filter(is_tiled);
            let dead: Vec<Need> = dead.filter(|n| self.dies_at(cursor, n.buffer, cursor.step)).copied().collect();
            for need in dead {
                self.let_go(d, cursor, need.buffer, need.segment);
            }
        }
        Ok(())
    }

    fn place_copy(
        &mut self,
        d: usize,
        cursor: &mut Cursor,
        from: u32,
        to: u32,
        out: &mut Vec<ResidencyInstruction>,
    ) -> Result<(), Stop> {
        let segment = cursor.tile;
        let takes_over = cursor.plan.buffers[to as usize].in_place_of == Some(from) && self.may_take(cursor, from);
        if takes_over && self.is_fresh(d, cursor, to, segment) {
            // The copy is a renaming.
            let need = Need { buffer: to, segment, reads: true, writes: true };
            return self.reside(d, cursor, &[need], out).map(drop);
        }
        let needs = [
            Need { buffer: from, segment, reads: true, writes: false },
            Need { buffer: to, segment, reads: false, writes: true },
        ];
        let slots = self.reside(d, cursor, &needs, out)?;
        if cursor.plan.buffers[to as usize].elements > 0 {
            cursor.open.commands.push(Command::Copy { from: slots[0], to: slots[1] });
        }
        self.drop_part(d, cursor.keys[to as usize], segment);
        Ok(())
    }

    /// Gives every need a slot with the right contents; in order: what exists, what is new, what takes over an
    /// input's memory (last, since that can't be undone if another need must wait).
    fn reside(
        &mut self,
        d: usize,
        cursor: &mut Cursor,
        needs: &[Need],
        out: &mut Vec<ResidencyInstruction>,
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
    fn is_fresh(&self, d: usize, cursor: &Cursor, buffer: u32, segment: u32) -> bool {
        if matches!(cursor.plan.buffers[buffer as usize].role, Role::Input(_)) {
            return false;
        }
        let value = &self.values[&cursor.keys[buffer as usize]];
        value.elements > 0 && !value.segment(d, segment).is_some_and(|s| s.is_kept())
    }

    /// A slot with the contents of a segment that exists somewhere.
    fn fetch(
        &mut self,
        d: usize,
        cursor: &mut Cursor,
        buffer: u32,
        segment: u32,
        out: &mut Vec<ResidencyInstruction>,
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
            (None, Some(whole), _) => (whole.clone(), (segment as u64) << self.devices[d].shift),
            (None, None, Some(transfer)) => return Err(Stop::Wait(Block::Arrival(transfer))),
            (None, None, None) => {
                if !value.is_recoverable() {
                    return Err(Stop::Fail(Error::new(ErrorKind::Internal, format!("RES-5: {key:?} is nowhere"))));
                }
                self.collect(key, d, &mut cursor.open, out);
                match &self.values[&key].whole {
                    Some(whole) => (whole.clone(), (segment as u64) << self.devices[d].shift),
                    None => return Err(Stop::Wait(Block::HostCopy(key))),
                }
            }
        };
        let elements = self.values[&key].segment_elements(segment, self.devices[d].shift);
        let bytes = self.slot_bytes(d, key, segment);
        let to = self.allocate(d, bytes, &mut cursor.open)?;
        self.assign(d, key, segment, to, &mut cursor.open);
        if elements > 0 {
            cursor.open.commands.push(Command::Upload { from, first, elements, to });
        }
        Ok(to)
    }

    /// A slot for a segment that has no contents yet. False: it is to take over its input's slot, which is there.
    fn make(
        &mut self,
        d: usize,
        cursor: &mut Cursor,
        need: Need,
        out: &mut Vec<ResidencyInstruction>,
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
            if same_size && self.may_take(cursor, from) && self.slot_of(d, from_key, need.segment).is_some() {
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

    /// Whether this plan is the last to need a buffer's contents, and may write over them.
    fn may_take(&self, cursor: &Cursor, buffer: u32) -> bool {
        match cursor.plan.buffers[buffer as usize].role {
            Role::Input(_) => self.is_last_user(cursor, buffer),
            Role::Scratch => cursor.plan.buffers[buffer as usize].live.1 as usize <= cursor.step,
            Role::Output(_) | Role::Faults => false,
        }
    }

    fn is_last_user(&self, cursor: &Cursor, buffer: u32) -> bool {
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
        let slot = self.give(d, from_key, need.segment, super::values::Change::Give);
        self.assign(d, key, need.segment, slot, &mut cursor.open);
        if buffer.zeroed && !need.reads {
            cursor.open.commands.push(Command::Zero { slot });
        }
        if need.segment == 0 {
            self.totals.reused_in_place += 1;
        }
        slot
    }

    /// The region fails with whatever its input still depends on.
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

    fn dies_at(&self, cursor: &Cursor, buffer: u32, step: usize) -> bool {
        let b = &cursor.plan.buffers[buffer as usize];
        let kept = cursor.plan.outputs.iter().any(|(_, _, o)| *o == buffer);
        cursor.ends[buffer as usize] as usize == step
            && !kept
            && match b.role {
                Role::Scratch => true,
                Role::Input(_) => self.is_last_user(cursor, buffer),
                Role::Output(_) | Role::Faults => false,
            }
    }

    /// Frees a dead buffer's segment; what the scheduler awaits of it is read back first.
    fn let_go(&mut self, d: usize, cursor: &mut Cursor, buffer: u32, segment: u32) {
        let key = cursor.keys[buffer as usize];
        if cursor.plan.readbacks.iter().any(|&v| Key::Value(v) == key) {
            self.read_back(d, key, segment, &mut cursor.open);
        }
        self.free(d, key, segment);
    }

    /// Frees what the step that was just placed used last.
    fn free_dead(&mut self, d: usize, cursor: &mut Cursor) {
        let step = cursor.step - 1;
        for n in 0..cursor.plan.buffers.len() as u32 {
            if self.dies_at(cursor, n, step) {
                let count = segments_of(cursor.plan.buffers[n as usize].elements, self.devices[d].shift);
                for segment in 0..count {
                    self.let_go(d, cursor, n, segment);
                }
            }
        }
    }

    /// Outputs that share a buffer with another value get their own copy; all must then exist.
    fn finish_outputs(
        &mut self,
        d: usize,
        cursor: &mut Cursor,
        out: &mut Vec<ResidencyInstruction>,
    ) -> Result<(), Stop> {
        let plan = cursor.plan.clone();
        while let Some((id, meta, buffer)) = plan.outputs.get(cursor.step - plan.steps.len()) {
            let key = Key::Value(*id);
            let count = segments_of(meta.elements() as u64, self.devices[d].shift);
            if key != cursor.keys[*buffer as usize] && meta.elements() > 0 {
                while cursor.tile < count {
                    self.copy_alias(d, cursor, key, *buffer, out)?;
                    cursor.tile += 1;
                }
            }
            let value = self.values.get_mut(&key).expect("RES-8: outputs are known");
            if meta.elements() == 0 {
                value.whole = Some(HostBuffer::zeroed(meta.dtype, 0).shared());
            } else if !value.copy(d).is_some_and(|c| c.is_complete()) {
                return Err(Stop::Fail(Error::new(ErrorKind::Internal, format!("RES-5: no step makes {id}"))));
            }
            cursor.tile = 0;
            cursor.step += 1;
        }
        Ok(())
    }

    fn copy_alias(
        &mut self,
        d: usize,
        cursor: &mut Cursor,
        key: Key,
        buffer: u32,
        out: &mut Vec<ResidencyInstruction>,
    ) -> Result<(), Stop> {
        let segment = cursor.tile;
        let from = self.reside(d, cursor, &[Need { buffer, segment, reads: true, writes: false }], out)?[0];
        let slot = self.allocate(d, from.bytes, &mut cursor.open)?;
        self.assign(d, key, segment, slot, &mut cursor.open);
        cursor.open.commands.push(Command::Copy { from, to: slot });
        Ok(())
    }

    fn read_faults(&mut self, d: usize, cursor: &mut Cursor, out: &mut Vec<ResidencyInstruction>) -> Result<(), Stop> {
        let plan = cursor.plan.clone();
        let is_faults = |b: &crate::fusion::plan::PlanBuffer| matches!(b.role, Role::Faults);
        let Some(buffer) = plan.buffers.iter().position(is_faults) else { return Ok(()) };
        let need = Need { buffer: buffer as u32, segment: 0, reads: true, writes: false };
        let slot = self.reside(d, cursor, &[need], out)?[0];
        cursor.open.commands.push(Command::ReadFaults { slot, words: plan.buffers[buffer].elements as u32 });
        Ok(())
    }

    fn read_results(&mut self, d: usize, cursor: &mut Cursor, out: &mut Vec<ResidencyInstruction>) {
        let plan = cursor.plan.clone();
        for &id in &plan.readbacks {
            let key = Key::Value(id);
            let Some(value) = self.values.get_mut(&key) else { continue };
            value.awaited = true;
            self.collect(key, d, &mut cursor.open, out);
        }
    }

    /// All of a plan has been emitted.
    fn placed(&mut self, d: usize, mut cursor: Cursor, out: &mut Vec<ResidencyInstruction>) {
        let plan = cursor.plan.clone();
        self.close(d, &mut cursor.open, false);
        self.drop_scratch(&plan);
        self.regions.get_mut(&plan.region).expect("RES-8: a region that is placed is open").phase = Phase::Placed;
        for (id, _, _) in &plan.outputs {
            self.value_made(Key::Value(*id));
        }
        self.release_inputs(&plan);
        self.end_region(plan.region, out);
        self.finish_if_done(plan.region, out);
    }

    /// A value can be used from now on.
    fn value_made(&mut self, key: Key) {
        let Some(value) = self.values.get_mut(&key) else { return };
        value.status = Status::Placed;
        for region in value.users.clone() {
            let work = self.regions.get_mut(&region).expect("RES-8: users are open regions");
            work.missing -= 1;
            if work.missing == 0 && work.phase == Phase::Waiting {
                let (arrival, device) = (work.arrival, work.plan.device);
                if let Some(d) = self.index_of(device) {
                    self.devices[d].ready.insert(arrival, region);
                }
            }
        }
        self.forget_if_dead(key);
    }

    /// A plan needs its inputs no more.
    pub(super) fn release_inputs(&mut self, plan: &Plan) {
        for input in &plan.inputs {
            let key = Key::Value(input.value);
            let Some(value) = self.values.get_mut(&key) else { continue };
            if let Some(at) = value.users.iter().position(|&r| r == plan.region) {
                value.users.swap_remove(at);
            }
            value.retired |= input.dies;
            self.forget_if_dead(key);
        }
    }
}

fn blamed(stop: Stop, launch: &Launch) -> Stop {
    match stop {
        Stop::Fail(error) => Stop::Fail(error.with_op(launch.blame.0).with_location(launch.blame.1)),
        wait => wait,
    }
}

/// Segments of a use that a tile binds.
fn segments_used(u: &Use, plan: &Plan, shift: u32, tile: Option<u32>) -> std::ops::Range<u32> {
    let count = segments_of(plan.buffers[u.buffer as usize].elements, shift);
    match tile {
        Some(n) if u.tiled && count > 1 => n..n + 1,
        _ => 0..count,
    }
}

/// What a tile of a launch uses, each segment once.
fn needs_of(launch: &Launch, plan: &Plan, shift: u32, tile: Option<u32>) -> SmallVec<[Need; 8]> {
    let mut needs: SmallVec<[Need; 8]> = SmallVec::new();
    let mut add = |need: Need| match needs.iter_mut().find(|n| n.buffer == need.buffer && n.segment == need.segment) {
        Some(n) => {
            n.reads |= need.reads;
            n.writes |= need.writes;
        }
        None => needs.push(need),
    };
    for u in &launch.uses {
        for segment in segments_used(u, plan, shift, tile) {
            add(Need { buffer: u.buffer, segment, reads: u.reads, writes: u.writes });
        }
    }
    if let Some(buffer) = launch.faults {
        add(Need { buffer, segment: 0, reads: true, writes: true });
    }
    needs
}

/// The number of tiles, if a tiled use has several segments.
fn tiles_of(launch: &Launch, plan: &Plan, shift: u32) -> Result<Option<u32>, Stop> {
    let tiled = |u: &&Use| u.tiled && segments_of(plan.buffers[u.buffer as usize].elements, shift) > 1;
    if launch.uses.iter().find(tiled).is_none() {
        return Ok(None);
    }
    match launch.geometry {
        Geometry::Map { elements: n } | Geometry::Reduce { outer: 1, inner: n } => {
            Ok(Some(segments_of(n as u64, shift)))
        }
        Geometry::Reduce { .. } | Geometry::Scan { .. } => {
            let text = "PLAN: only maps and full reductions can be cut into tiles";
            Err(blamed(Stop::Fail(Error::new(ErrorKind::Internal, text)), launch))
        }
    }
}

fn tile_range(geometry: &Geometry, shift: u32, tile: Option<u32>, count: u32) -> Tile {
    let elements = match *geometry {
        Geometry::Map { elements } => elements,
        Geometry::Reduce { outer: 1, inner } => inner,
        Geometry::Reduce { outer, .. } | Geometry::Scan { outer, .. } => outer,
    };
    match tile {
        None => Tile { begin: 0, end: elements, base: 0, last: true },
        Some(n) => {
            let begin = (n as u64) << shift;
            let end = (begin + (1u64 << shift)).min(elements as u64) as u32;
            Tile { begin: begin as u32, end, base: begin as u32, last: n + 1 == count }
        }
    }
}
