//! What comes back: batches done or failed, readbacks, lost devices; and how failure spreads.
//!
//! In: reports of devices. Out: regions finished or failed, values arrived or lost.
//! Must hold: a region ends exactly once; what fails takes with it only what was computed from it.

use super::device::Flight;
use super::pool::Pool;
use super::state::{Phase, State};
use super::values::{Change, Key, Place, Status};
use crate::contract::batch::Transfer;
use crate::contract::messages::residency::ResidencyInstruction;
use crate::error::{Error, ErrorKind};
use crate::host_buffer::HostBuffer;
use crate::ids::{BatchId, DeviceId, RegionId, ValueId};
use std::sync::Arc;

impl State {
    pub(super) fn batch_finished(
        &mut self,
        device: DeviceId,
        batch: BatchId,
        faults: Vec<u32>,
        device_ns: u64,
        out: &mut Vec<ResidencyInstruction>,
    ) {
        let Some((d, flight)) = self.land(device, batch) else { return };
        self.totals.device_ns += device_ns;
        self.totals.estimated_ns += (flight.work_us * 1e3) as u64;
        self.devices[d].doubtful.retain(|(buffer, _)| !flight.touched.contains(buffer));
        for &(key, segment) in &flight.fills {
            self.finish_fill(d, key, segment, batch);
        }
        if flight.service {
            return;
        }
        self.settle_turn(d, &flight, device_ns as f64 / 1e3);
        if let Some(work) = self.regions.get_mut(&flight.region) {
            work.batches -= 1;
            work.took_us += device_ns as f64 / 1e3;
            work.faults.extend(faults);
            self.finish_if_done(flight.region, out);
        }
    }

    /// The region that a batch alone ends, if it is the last of that region, which reads nothing that is unfinished and
    /// cannot fault; and the value that it brings to host memory, whole, with its readback. None if it brings more.
    pub fn ends_alone(&self, device: DeviceId, batch: BatchId) -> Option<(RegionId, Option<(ValueId, Transfer)>)> {
        let d = self.index_of(device)?;
        let flight = self.devices[d].flights.get(&batch).filter(|flight| !flight.service)?;
        let work = self.regions.get(&flight.region)?;
        let last = work.phase == Phase::Placed && work.batches == 1 && work.faults.is_empty();
        let alone = work.depends.is_empty() && work.depends_batches.is_empty() && work.plan.fault_sites.is_empty();
        if !last || !alone {
            return None;
        }
        match (&flight.transfers[..], &work.plan.readbacks[..]) {
            ([], []) => Some((flight.region, None)),
            (&[transfer], &[id]) => {
                let arrival = self.transfers.get(&transfer).filter(|arrival| arrival.key == Key::Value(id))?;
                let value = self.values.get(&arrival.key).filter(|value| value.awaited && value.collect)?;
                let whole = arrival.device == d && value.copy(d).is_some_and(|copy| copy.segments.len() == 1);
                whole.then_some((flight.region, Some((id, transfer))))
            }
            _ => None,
        }
    }

    /// A batch's session is charged what the batch took; as before, it takes its device for a moment besides.
    fn settle_turn(&mut self, d: usize, flight: &Flight, took_us: f64) {
        let device = &mut self.devices[d];
        let batch_us = device.info.costs.launch_us;
        device.turns.settle(flight.session, flight.weight, flight.work_us + batch_us, took_us + batch_us);
    }

    /// Takes a batch off the books of its device.
    fn land(&mut self, device: DeviceId, batch: BatchId) -> Option<(usize, Flight)> {
        let d = self.index_of(device)?;
        let flight = self.devices[d].flights.remove(&batch)?;
        self.devices[d].in_flight -= 1;
        self.devices[d].link_bytes -= flight.link_bytes;
        Some((d, flight))
    }

    /// Reports a region that is placed and whose batches are all done.
    pub(super) fn finish_if_done(&mut self, region: RegionId, out: &mut Vec<ResidencyInstruction>) {
        let Some(work) = self.regions.get(&region) else { return };
        if work.phase != Phase::Placed || work.batches > 0 {
            return;
        }
        let work = self.regions.remove(&region).expect("RES-10: looked up above");
        let sites = &work.plan.fault_sites;
        let mut faults = Vec::new();
        for site in work.faults.iter().filter_map(|&n| sites.get(n as usize)) {
            if !faults.iter().any(|(value, _)| *value == site.value) {
                faults.push((site.value, site.error.clone()));
            }
        }
        for (output, _, _) in &work.plan.outputs {
            if let Some(value) = self.values.get_mut(&Key::Value(*output)) {
                value.maker = None;
            }
        }
        if let Some(key) = work.plan.explained {
            out.push(ResidencyInstruction::PlanRan { key, device: work.plan.device, us: work.took_us });
        }
        out.push(ResidencyInstruction::RegionFinished { region, faults });
    }

    pub(super) fn batch_failed(
        &mut self,
        device: DeviceId,
        batch: BatchId,
        error: Error,
        out: &mut Vec<ResidencyInstruction>,
    ) {
        let Some((d, flight)) = self.land(device, batch) else { return };
        let error = error.with_device(self.devices[d].info.name.clone());
        self.undo(d, batch, &flight, &error, out);
        if !flight.service {
            self.settle_turn(d, &flight, flight.work_us);
        }
        // Its allocations exist, unless it is one of them that failed: batches in flight will tell, else they are
        // repeated. What it should have freed is dropped again.
        self.devices[d].doubtful.extend(flight.allocated);
        if error.kind() == ErrorKind::DeviceLost {
            self.stall(d, out);
        }
        self.devices[d].drop_now(flight.freed, out);
        if !flight.service {
            self.failing.push_back((flight.region, error));
        }
    }

    /// Contents that a failed batch should have made are not there; what it should have read back won't come.
    fn undo(&mut self, d: usize, batch: BatchId, flight: &Flight, error: &Error, out: &mut Vec<ResidencyInstruction>) {
        for &(key, segment) in &flight.fills {
            let at = self.values.get(&key).and_then(|v| v.segment(d, segment));
            if at.is_some_and(|s| matches!(s.place, Place::Filling { batch: b, .. } if b == batch)) {
                self.free(d, key, segment);
            }
        }
        for &transfer in &flight.transfers {
            self.readback_done(transfer, Err(error.clone()), out);
        }
        for (&region, work) in &self.regions {
            if work.depends_batches.contains(&batch) {
                self.failing.push_back((region, error.clone()));
            }
        }
    }

    pub(super) fn readback_done(
        &mut self,
        transfer: Transfer,
        data: Result<Arc<HostBuffer>, Error>,
        out: &mut Vec<ResidencyInstruction>,
    ) {
        let Some(arrival) = self.transfers.remove(&transfer) else { return };
        let (key, d, segment) = (arrival.key, arrival.device, arrival.segment);
        self.devices[d].draining_bytes -= arrival.draining_bytes;
        let value = self.values.get_mut(&key);
        let unwanted = value.as_ref().is_none_or(|v| v.whole.is_some());
        let at = value.and_then(|v| v.segment_mut(d, segment)).filter(|s| s.coming == Some(transfer));
        let Some(at) = at else {
            self.host_copy_bytes -= arrival.host_bytes;
            return;
        };
        at.coming = None;
        if at.place == Place::Draining {
            at.change(Change::Arrive);
        }
        match data {
            Ok(_) if unwanted => self.host_copy_bytes -= arrival.host_bytes,
            Ok(data) => {
                debug_assert!(arrival.host_bytes == 0 || arrival.host_bytes == data.bytes().len() as u64, "RES-9");
                at.part = Some(data);
                self.story.note(key, d, segment, "arrived, transfer", transfer.0);
                self.assemble(key, out);
            }
            Err(error) => {
                self.host_copy_bytes -= arrival.host_bytes;
                self.arrival_failed(key, error, out);
            }
        }
    }

    /// A readback failed: who waits for it fails; if it was the only copy, the value is lost.
    fn arrival_failed(&mut self, key: Key, error: Error, out: &mut Vec<ResidencyInstruction>) {
        let Some(value) = self.values.get_mut(&key) else { return };
        let waiting = std::mem::take(&mut value.collect);
        match key {
            Key::Scratch(region, _) => self.failing.push_back((region, error)),
            Key::Value(id) => {
                let being_made = matches!(value.status, Status::Pending);
                if being_made {
                    let maker = value.maker;
                    self.failing.extend(maker.map(|region| (region, error)));
                } else if !value.is_recoverable() {
                    out.push(ResidencyInstruction::ValueLost { value: id, error: error.clone() });
                    self.fail_value(key, &error, out);
                } else if waiting {
                    if std::mem::take(&mut value.awaited) {
                        out.push(ResidencyInstruction::ValueArrived { value: id, data: Err(error.clone()) });
                    }
                    let users = value.users.clone();
                    self.failing.extend(users.into_iter().map(|region| (region, error.clone())));
                    self.forget_if_dead(key);
                }
            }
        }
    }

    /// A region fails, with all that was computed from it; nothing happens if it has ended.
    pub(super) fn fail_region(&mut self, region: RegionId, error: Error, out: &mut Vec<ResidencyInstruction>) {
        let Some(work) = self.regions.remove(&region) else { return };
        // Before the region's own end, after which it may be sent again.
        if work.phase != Phase::Placed {
            for &value in &work.plan.readbacks {
                out.push(ResidencyInstruction::ValueArrived { value, data: Err(error.clone()) });
            }
        }
        out.push(ResidencyInstruction::RegionFailed { region, error: error.clone() });
        if let Some(d) = self.index_of(work.plan.device) {
            self.devices[d].turns.remove(work.plan.session, work.arrival);
            if let Some(at) = self.devices[d].cursors.iter().position(|c| c.plan.region == region) {
                self.devices[d].cursors.swap_remove(at);
                self.devices[d].plan_ended(work.plan.session);
            }
        }
        for (output, _, _) in &work.plan.outputs {
            self.fail_value(Key::Value(*output), &error, out);
        }
        if work.phase != Phase::Placed {
            self.drop_scratch(&work.plan);
            self.release_inputs(&work.plan);
            self.end_region(region);
        }
        for (&other, work) in &self.regions {
            if work.depends.contains(&region) {
                self.failing.push_back((other, error.clone()));
            }
        }
    }

    /// Nothing is placed on a device that is lost before it has said whether it serves again.
    fn stall(&mut self, d: usize, out: &mut Vec<ResidencyInstruction>) {
        if !std::mem::replace(&mut self.devices[d].stalled, true) {
            out.push(ResidencyInstruction::DeviceStalled(self.devices[d].info.id));
        }
    }

    pub(super) fn device_lost(
        &mut self,
        device: DeviceId,
        error: Error,
        replaced: bool,
        out: &mut Vec<ResidencyInstruction>,
    ) {
        let Some(d) = self.index_of(device) else { return };
        let error = error.with_device(self.devices[d].info.name.clone());
        // The scheduler hears of the loss itself after all that was lost with it.
        self.stall(d, out);
        let state = &mut self.devices[d];
        state.pool = Pool::new(&state.info);
        state.overdrawn = false;
        state.lru.iter_mut().for_each(|lru| lru.clear());
        state.prepared.clear();
        state.in_flight = 0;
        state.link_bytes = 0;
        state.doubtful.clear();
        state.spent.clear();
        state.stalled = false;
        let flights = std::mem::take(&mut state.flights);
        let cursors = std::mem::take(&mut state.cursors);
        cursors.iter().for_each(|cursor| state.plan_ended(cursor.plan.session));
        if !replaced {
            state.lost = Some(error.clone());
            let share_bytes = std::mem::take(&mut state.info.host_share_bytes);
            self.devices[0].info.take_back(share_bytes);
        }
        // Slots first: nothing below may give one back to the new pool.
        for value in self.values.values_mut() {
            for copy in value.copies.iter_mut().filter(|c| c.device == d) {
                for segment in &mut copy.segments {
                    if segment.slot().is_some() {
                        segment.change(Change::Give);
                    }
                }
            }
        }
        for cursor in cursors {
            self.drop_scratch(&cursor.plan);
            self.failing.push_back((cursor.plan.region, error.clone()));
        }
        for flight in flights.values() {
            if !flight.service {
                self.settle_turn(d, flight, flight.work_us);
                self.failing.push_back((flight.region, error.clone()));
            }
        }
        let mut coming: Vec<Transfer> = self.transfers.iter().filter(|(_, t)| t.device == d).map(|(&t, _)| t).collect();
        coming.sort_unstable();
        for transfer in coming {
            self.readback_done(transfer, Err(error.clone()), out);
        }
        while let Some((region, error)) = self.failing.pop_front() {
            self.fail_region(region, error, out);
        }
        self.lose_values(&error, out);
        if !replaced {
            let waiting = self.regions.iter().filter(|(_, w)| w.plan.device == device && w.phase == Phase::Waiting);
            self.failing.extend(waiting.map(|(&region, _)| (region, error.clone())));
        }
    }

    /// Values that were nowhere else are gone.
    fn lose_values(&mut self, error: &Error, out: &mut Vec<ResidencyInstruction>) {
        let mut lost: Vec<Key> = Vec::new();
        for (&key, value) in &self.values {
            let made = matches!(value.status, Status::Placed);
            let spent = value.retired && value.users.is_empty() && !value.awaited;
            // What a cursor elsewhere is about to use up need not be recoverable any more.
            if made && !spent && !value.is_recoverable() && !self.is_being_used_up(key) {
                lost.push(key);
            }
        }
        lost.sort_unstable();
        for key in lost {
            if let Key::Value(value) = key {
                out.push(ResidencyInstruction::ValueLost { value, error: error.clone() });
            }
            self.fail_value(key, error, out);
        }
    }

    /// Whether a plan that is being placed is the value's last user.
    pub(super) fn is_being_used_up(&self, key: Key) -> bool {
        let Some(value) = self.values.get(&key) else { return false };
        let [region] = value.users[..] else { return false };
        let placing = |w: &super::state::Work| {
            w.phase == Phase::Placing && w.plan.inputs.iter().any(|i| Key::Value(i.value) == key && i.dies)
        };
        self.regions.get(&region).is_some_and(placing)
    }
}
