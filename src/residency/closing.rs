//! Ends a plan: completes its outputs, reads back fault words and results, and releases its inputs.
//!
//! In: a cursor past its steps. Out: the last commands of its batch; plans that its outputs make ready.
//! Must hold: RES-5, an output that others may use from now on is complete.

use super::cursor::{Cursor, Stop};
use super::state::{Phase, State};
use super::tiles::Need;
use super::values::{DeviceCopy, Key, Status, segments_of};
use crate::contract::batch::Command;
use crate::contract::messages::residency::ResidencyOutput;
use crate::contract::plan::{Plan, PlanBuffer, Role};
use crate::error::{Error, ErrorKind};
use crate::host_buffer::HostBuffer;

impl State {
    /// Copies outputs that share a buffer with another value, and checks that all outputs exist.
    pub(super) fn finish_outputs(
        &mut self,
        d: usize,
        cursor: &mut Cursor,
        out: &mut Vec<ResidencyOutput>,
    ) -> Result<(), Stop> {
        let plan = cursor.plan.clone();
        while let Some((id, meta, buffer)) = plan.outputs.get(cursor.step - plan.steps.len()) {
            let key = Key::Value(*id);
            let count = segments_of(meta.elements() as u64, self.devices[d].shift_of(false, meta.dtype));
            if key != cursor.keys[*buffer as usize] && meta.elements() > 0 {
                while cursor.tile < count {
                    self.copy_alias(d, cursor, key, *buffer, out)?;
                    cursor.tile += 1;
                }
            }
            let value = self.values.get_mut(&key).expect("RES-8: outputs are known");
            if meta.elements() == 0 {
                value.whole = Some(HostBuffer::zeroed(meta.dtype, 0).shared());
            } else if !value.copy(d).is_some_and(DeviceCopy::is_complete) {
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
        out: &mut Vec<ResidencyOutput>,
    ) -> Result<(), Stop> {
        let segment = cursor.tile;
        let from = self.reside(d, cursor, &[Need { buffer, segment, reads: true, writes: false }], out)?[0];
        let slot = self.allocate(d, from.bytes, &mut cursor.open)?;
        self.assign(d, key, segment, slot, &mut cursor.open);
        cursor.open.commands.push(Command::Copy { from, to: slot });
        Ok(())
    }

    pub(super) fn read_faults(
        &mut self,
        d: usize,
        cursor: &mut Cursor,
        out: &mut Vec<ResidencyOutput>,
    ) -> Result<(), Stop> {
        let plan = cursor.plan.clone();
        let is_faults = |b: &PlanBuffer| matches!(b.role, Role::Faults);
        let Some(buffer) = plan.buffers.iter().position(is_faults) else { return Ok(()) };
        let need = Need { buffer: buffer as u32, segment: 0, reads: true, writes: false };
        let slot = self.reside(d, cursor, &[need], out)?[0];
        cursor.open.commands.push(Command::ReadFaults { slot, words: plan.buffers[buffer].elements as u32 });
        Ok(())
    }

    pub(super) fn read_results(&mut self, d: usize, cursor: &mut Cursor, out: &mut Vec<ResidencyOutput>) {
        let plan = cursor.plan.clone();
        for &id in &plan.readbacks {
            let key = Key::Value(id);
            let Some(value) = self.values.get_mut(&key) else { continue };
            value.awaited = true;
            self.collect(key, d, &mut cursor.open, out);
        }
    }

    /// All commands of a plan have been emitted.
    pub(super) fn placed(&mut self, d: usize, mut cursor: Cursor, out: &mut Vec<ResidencyOutput>) {
        let plan = cursor.plan.clone();
        self.close(d, &mut cursor.open, false);
        self.drop_scratch(&plan);
        self.regions.get_mut(&plan.region).expect("RES-8: a region that is placed is open").phase = Phase::Placed;
        for (id, _, _) in &plan.outputs {
            self.value_made(Key::Value(*id));
        }
        self.release_inputs(&plan);
        self.end_region(plan.region);
        self.finish_if_done(plan.region, out);
    }

    /// Marks a value as placed. Plans that waited for it may become ready.
    pub(super) fn value_made(&mut self, key: Key) {
        let Some(value) = self.values.get_mut(&key) else { return };
        value.status = Status::Placed;
        for region in value.users.clone() {
            let work = self.regions.get_mut(&region).expect("RES-8: users are open regions");
            work.missing -= 1;
            if work.missing == 0 && work.phase == Phase::Waiting {
                let (arrival, plan, work_us) = (work.arrival, work.plan.clone(), work.work_us);
                if let Some(d) = self.index_of(plan.device) {
                    let piece_us = self.piece_us(d, work_us);
                    self.devices[d].turns.add(plan.session, plan.weight, arrival, region, piece_us);
                }
            }
        }
        self.forget_if_dead(key);
    }

    /// Removes a plan from the users of its inputs.
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
