//! Placing a plan: a cursor walks its steps, tile by tile, and fills a batch.
//!
//! In: a plan whose inputs exist. Out: a batch of commands, or several if the cursor has to pause or other sessions
//! take a turn. Must hold: RES-6, a paused cursor waits only for events that are certain to come; a step that is
//! retried after a pause finds what it had placed, or places it again. Pauses do not change which kernels run, nor on
//! which elements.

use super::batch::Open;
use super::pool::padded;
use super::state::State;
use super::tiles::{Need, TileAt, needs_of, segments_used, tile_range, tile_shift, tiles_of};
use super::values::{Key, Value, segments_of};
use crate::contract::batch::{Command, Slot, Transfer};
use crate::contract::messages::residency::ResidencyOutput;
use crate::contract::plan::{Launch, Plan, PlanBuffer, Role, Step};
use crate::error::{Error, ErrorKind};
use crate::graph::DType;
use crate::host_buffer::HostBuffer;
use crate::ids::BatchId;
use std::sync::Arc;

/// What a paused cursor waits for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Block {
    /// A segment that is draining.
    Arrival(Transfer),
    /// The whole of a value, from another device.
    HostCopy(Key),
    /// Until fewer bytes than this are draining.
    Draining(u64),
    /// Memory of other plans in progress. The number is that of plans ended so far: it waits until one more has ended.
    Others(u64),
}

/// Why a step can't be placed now.
#[derive(Debug)]
pub(super) enum Stop {
    Wait(Block),
    /// Its batch holds a slice of work: other sessions may take a turn.
    Yield,
    Fail(Error),
}

/// A plan that is being placed.
#[derive(Debug)]
pub(super) struct Cursor {
    pub(super) plan: Arc<Plan>,
    pub(super) keys: Vec<Key>,
    /// The last step that needs each buffer: its last use, or the first use of the buffer that takes over its memory,
    /// if that is later.
    ends: Vec<u32>,
    /// The next step. Numbers beyond the plan's steps are its outputs, which are completed at the end.
    pub(super) step: usize,
    pub(super) tile: u32,
    pub(super) open: Open,
    pub(super) blocked: Option<Block>,
    /// Whether the plan was checked to fit the device.
    checked: bool,
}

impl Cursor {
    /// A cursor at the beginning of a plan.
    pub(super) fn new(plan: Arc<Plan>, id: BatchId) -> Cursor {
        let key = |(n, b): (usize, &PlanBuffer)| match b.role {
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

    /// Returns `Yield` if the next command would make the batch longer than a slice.
    fn yield_if_full(&self, next_us: f64, slice_us: f64) -> Result<(), Stop> {
        let placed_us = self.open.work_us;
        if placed_us > 0.0 && placed_us + next_us > slice_us { Err(Stop::Yield) } else { Ok(()) }
    }
}

impl State {
    /// Places a plan in progress until it ends, has to wait, or has used its slice.
    pub(super) fn advance(&mut self, d: usize, cursor: usize, out: &mut Vec<ResidencyOutput>) {
        let mut cursor = self.devices[d].cursors.swap_remove(cursor);
        cursor.blocked = None;
        let result = self.run(d, &mut cursor, out);
        // Each batch has a launch overhead, whatever its commands. A session is charged only for batches whose time
        // will be reported: not for empty ones, which are not sent, nor for the rest of a failed plan.
        if !cursor.open.commands.is_empty() && !matches!(result, Err(Stop::Fail(_))) {
            let batch_us = self.devices[d].info.costs.launch_us;
            self.devices[d].turns.lend(cursor.plan.session, cursor.open.work_us + batch_us);
        }
        match result {
            Ok(()) => {
                self.devices[d].plan_ended(cursor.plan.session);
                self.placed(d, cursor, out);
            }
            Err(stop @ (Stop::Wait(_) | Stop::Yield)) => {
                self.close(d, &mut cursor.open, false);
                cursor.blocked = if let Stop::Wait(block) = stop { Some(block) } else { None };
                self.devices[d].cursors.push(cursor);
            }
            Err(Stop::Fail(error)) => {
                // The commands so far moved values and buffers of other plans, so the batch has to run even though the
                // plan failed.
                self.close(d, &mut cursor.open, true);
                self.drop_scratch(&cursor.plan);
                self.devices[d].plan_ended(cursor.plan.session);
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

    fn run(&mut self, d: usize, cursor: &mut Cursor, out: &mut Vec<ResidencyOutput>) -> Result<(), Stop> {
        let plan = cursor.plan.clone();
        if !cursor.checked {
            self.enter_buffers(d, cursor);
            self.check_fits(d, cursor)?;
            cursor.checked = true;
        }
        while let Some(step) = plan.steps.get(cursor.step) {
            match step {
                Step::Launch(launch) => {
                    let tiles = tiles_of(launch, &plan, &self.devices[d])?;
                    let tile_us = launch.estimate_us(&self.devices[d].info.costs) / tiles.unwrap_or(1) as f64;
                    while cursor.tile < tiles.unwrap_or(1) {
                        cursor.yield_if_full(tile_us, self.slice_us)?;
                        let blame = |stop| blamed(stop, launch);
                        self.place_tile(d, cursor, launch, tiles, out).map_err(blame)?;
                        cursor.open.work_us += tile_us;
                        cursor.tile += 1;
                    }
                    self.totals.kernels += 1;
                }
                Step::Copy { from, to } => {
                    let shift = self.copy_shift(d, cursor, *from, *to);
                    while cursor.tile < segments_of(plan.buffers[*to as usize].elements, shift) {
                        cursor.yield_if_full(0.0, self.slice_us)?;
                        self.place_copy(d, cursor, (*from, *to), shift, out)?;
                        cursor.tile += 1;
                    }
                }
                Step::Pack { from, to, first } => self.place_pack(d, cursor, *from, *to, *first, out)?,
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

    /// Adds the plan's buffers to the table of values.
    fn enter_buffers(&mut self, d: usize, cursor: &Cursor) {
        for (buffer, &key) in cursor.plan.buffers.iter().zip(&cursor.keys) {
            let value = self.values.entry(key).or_insert_with(|| Value::new(buffer.dtype, buffer.elements));
            value.joined = buffer.joined;
            if value.elements == 0 && value.whole.is_none() {
                value.whole = Some(HostBuffer::zeroed(value.dtype, 0).shared());
            }
            self.ensure_copy(d, key);
        }
        for (id, _, _) in &cursor.plan.outputs {
            self.ensure_copy(d, Key::Value(*id));
        }
    }

    /// Refuses a plan, before any of it is placed, if the working set of one of its steps exceeds the device's memory.
    fn check_fits(&self, d: usize, cursor: &Cursor) -> Result<(), Stop> {
        let (device, plan) = (&self.devices[d], &cursor.plan);
        for step in &plan.steps {
            let Step::Launch(launch) = step else { continue };
            let tiles = tiles_of(launch, plan, device)?;
            let first = TileAt { number: 0, shift: tile_shift(launch, plan, device) };
            let needs = needs_of(launch, plan, device, tiles.map(|_| first));
            // An output that takes over the memory of an operand of the same step adds nothing.
            let shares = |need: &&Need| {
                let source = plan.buffers[need.buffer as usize].in_place_of;
                let dies =
                    |b: u32| plan.inputs.iter().any(|i| i.dies && Key::Value(i.value) == cursor.keys[b as usize]);
                source.is_some_and(|b| needs.iter().any(|n| n.buffer == b) && dies(b))
            };
            let owns_host_budget = device.info.capabilities.owns_host_budget;
            // Inputs in shared memory are read where they lie.
            let is_shared = device.info.capabilities.shares_host_memory;
            let is_lent = |need: &&Need| is_shared && matches!(plan.buffers[need.buffer as usize].role, Role::Input(_));
            let bytes: u64 = needs
                .iter()
                .filter(|need| !shares(need) && !is_lent(need))
                .map(|need| self.slot_bytes(d, cursor.keys[need.buffer as usize], need.segment))
                .map(|bytes| device.pool.charged(bytes))
                .sum();
            // Under memory pressure, a value's segments are spread over device and host memory: it may not exceed both
            // together.
            let everywhere = device.info.memory_bytes.saturating_add(self.devices[0].info.budget_bytes);
            let whole = |b: &PlanBuffer| b.elements.saturating_mul(b.dtype.bytes() as u64);
            let written = launch.uses.iter().filter(|used| used.writes).map(|used| &plan.buffers[used.buffer as usize]);
            if let Some(bytes) = written.map(whole).find(|bytes| !owns_host_budget && *bytes > everywhere) {
                let text = format!(
                    "its result has {bytes} bytes, more than the {everywhere} bytes that the device and the host hold together"
                );
                return Err(blamed(Stop::Fail(Error::new(ErrorKind::OutOfMemory, text)), launch));
            }
            if bytes > device.info.memory_bytes {
                let what = if owns_host_budget { "budget is" } else { "device has" };
                let text = format!("it needs {bytes} bytes at once, and the {what} {} bytes", device.info.memory_bytes);
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
        out: &mut Vec<ResidencyOutput>,
    ) -> Result<(), Stop> {
        let plan = cursor.plan.clone();
        let shift = tile_shift(launch, &plan, &self.devices[d]);
        let tile = tiles.map(|_| TileAt { number: cursor.tile, shift });
        let needs = needs_of(launch, &plan, &self.devices[d], tile);
        let slots = self.reside(d, cursor, &needs, out)?;
        let slot_of = |buffer: u32, segment: u32| {
            let at = needs.iter().position(|n| n.buffer == buffer && n.segment == segment);
            slots[at.expect("RES-3: every use is among the needs")]
        };
        let bindings = launch
            .uses
            .iter()
            .map(|u| segments_used(u, &plan, &self.devices[d], tile).map(|s| slot_of(u.buffer, s)).collect())
            .collect();
        let joined = launch.uses.iter().any(|u| u.tiled && plan.buffers[u.buffer as usize].joined);
        let bases = [DType::U32, DType::I64].map(|dtype| self.devices[d].shift_of(joined, dtype));
        cursor.open.commands.push(Command::Dispatch {
            launch: launch.clone(),
            tile: tile_range(&launch.geometry, tile, bases, tiles.unwrap_or(1)),
            bindings,
            faults: launch.faults.map(|f| slot_of(f, 0)),
            span_shift: self.devices[d].span_shift.min(31),
        });
        for need in needs.iter().filter(|n| n.writes) {
            self.drop_part(d, cursor.keys[need.buffer as usize], need.segment);
        }
        // Segments that no later tile needs are freed before the step ends.
        if let (Some(tile), Some(count)) = (tile, tiles.filter(|&count| count > 1)) {
            let is_done = |n: &&Need| {
                let shift = self.shift_of(d, cursor.keys[n.buffer as usize]);
                tile.number + 1 == count || tile.ends_segment(shift)
            };
            let is_tiled = |n: &&Need| launch.uses.iter().all(|u| u.buffer != n.buffer || u.tiled);
            let dead = needs.iter().filter(|n| launch.faults != Some(n.buffer)).filter(is_tiled).filter(is_done);
            let dead: Vec<Need> = dead.filter(|n| self.dies_at(cursor, n.buffer, cursor.step)).copied().collect();
            for need in dead {
                self.free_segment(d, cursor, need.buffer, need.segment);
            }
        }
        Ok(())
    }

    /// log2 of the elements that one command of a copy step copies: one segment of the buffer that has the shorter
    /// ones.
    fn copy_shift(&self, d: usize, cursor: &Cursor, from: u32, to: u32) -> u32 {
        let shift = |buffer: u32| self.shift_of(d, cursor.keys[buffer as usize]);
        shift(from).min(shift(to))
    }

    /// Emits one command of a copy step, for `1 << shift` elements: a whole segment of the buffer with the shorter
    /// ones.
    fn place_copy(
        &mut self,
        d: usize,
        cursor: &mut Cursor,
        (from, to): (u32, u32),
        shift: u32,
        out: &mut Vec<ResidencyOutput>,
    ) -> Result<(), Stop> {
        let tile = cursor.tile;
        let takes_over = cursor.plan.buffers[to as usize].in_place_of == Some(from) && self.may_take(cursor, from);
        if takes_over && self.is_fresh(d, cursor, to, tile) {
            // The target takes over the source's slot, so there is nothing to copy.
            let need = Need { buffer: to, segment: tile, reads: true, writes: true };
            return self.reside(d, cursor, &[need], out).map(drop);
        }
        let plan = cursor.plan.clone();
        let source = &plan.buffers[from as usize];
        let width = self.devices[d].info.element_bytes(source.dtype);
        let first = (tile as u64) << shift;
        let place = |buffer: u32| {
            let shift = self.shift_of(d, cursor.keys[buffer as usize]);
            ((first >> shift) as u32, (first & ((1 << shift) - 1)) * width)
        };
        let ((from_segment, from_offset), (to_segment, to_offset)) = (place(from), place(to));
        let needs = [
            Need { buffer: from, segment: from_segment, reads: true, writes: false },
            // Elements that were copied into the segment before are kept.
            Need { buffer: to, segment: to_segment, reads: to_offset > 0, writes: true },
        ];
        let slots = self.reside(d, cursor, &needs, out)?;
        let bytes = padded((source.elements - first).min(1 << shift) * width);
        if source.elements > 0 {
            let part = |slot: Slot, offset: u64| Slot { offset: slot.offset + offset, bytes, ..slot };
            let (from, to) = (part(slots[0], from_offset), part(slots[1], to_offset));
            cursor.open.commands.push(Command::Copy { from, to });
        }
        self.drop_part(d, cursor.keys[to as usize], to_segment);
        // If the source dies in this step, each of its segments is freed as soon as it is copied.
        if plan.buffers[to as usize].joined && self.dies_at(cursor, from, cursor.step) {
            self.free_segment(d, cursor, from, from_segment);
        }
        Ok(())
    }

    /// A copy into a part of a buffer of one segment.
    fn place_pack(
        &mut self,
        d: usize,
        cursor: &mut Cursor,
        from: u32,
        to: u32,
        first: u64,
        out: &mut Vec<ResidencyOutput>,
    ) -> Result<(), Stop> {
        let needs = [
            Need { buffer: from, segment: 0, reads: true, writes: false },
            // Elements that other steps wrote are kept.
            Need { buffer: to, segment: 0, reads: first > 0, writes: true },
        ];
        let slots = self.reside(d, cursor, &needs, out)?;
        let source = &cursor.plan.buffers[from as usize];
        let width = self.devices[d].info.element_bytes(source.dtype);
        let bytes = source.elements * width;
        if bytes > 0 {
            let from = Slot { bytes, ..slots[0] };
            let to = Slot { offset: slots[1].offset + first * width, bytes, ..slots[1] };
            cursor.open.commands.push(Command::Copy { from, to });
        }
        self.drop_part(d, cursor.keys[to as usize], 0);
        Ok(())
    }

    fn dies_at(&self, cursor: &Cursor, buffer: u32, step: usize) -> bool {
        if cursor.ends[buffer as usize] as usize != step || cursor.plan.outputs.iter().any(|(_, _, o)| *o == buffer) {
            return false;
        }
        match cursor.plan.buffers[buffer as usize].role {
            Role::Scratch => true,
            Role::Input(_) => self.is_last_user(cursor, buffer),
            Role::Output(_) | Role::Faults => false,
        }
    }

    /// Frees a segment of a dead buffer. It is read back first if the scheduler waits for the value.
    fn free_segment(&mut self, d: usize, cursor: &mut Cursor, buffer: u32, segment: u32) {
        let key = cursor.keys[buffer as usize];
        if cursor.plan.readbacks.iter().any(|&v| Key::Value(v) == key) {
            self.read_back(d, key, segment, &mut cursor.open);
        }
        self.free(d, key, segment);
    }

    /// Frees the buffers whose last use was the step that was just placed, and returns memory beyond the budget.
    fn free_dead(&mut self, d: usize, cursor: &mut Cursor) {
        let step = cursor.step - 1;
        for n in 0..cursor.plan.buffers.len() as u32 {
            if self.dies_at(cursor, n, step) {
                let shift = self.shift_of(d, cursor.keys[n as usize]);
                for segment in 0..segments_of(cursor.plan.buffers[n as usize].elements, shift) {
                    self.free_segment(d, cursor, n, segment);
                }
            }
        }
        self.settle(d, &mut cursor.open);
    }
}

pub(super) fn blamed(stop: Stop, launch: &Launch) -> Stop {
    match stop {
        Stop::Fail(error) => Stop::Fail(error.with_op(launch.blame.0).with_site(launch.blame.1)),
        wait => wait,
    }
}
