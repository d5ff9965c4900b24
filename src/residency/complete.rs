//! Handles reports of devices: batches done or failed, readbacks, losses. Spreads failures.
//!
//! In: reports of devices. Out: regions finished or failed, values arrived or lost. Must hold: a region ends exactly
//! once; a failure reaches only what was computed from what failed.

use super::device::Flight;
use super::pool::Pool;
use super::state::{Phase, State};
use super::values::{Change, Key, Place, Status};
use crate::contract::batch::Transfer;
use crate::contract::messages::residency::ResidencyOutput;
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
        out: &mut Vec<ResidencyOutput>,
    ) {
        let Some((d, flight)) = self.take_flight(device, batch) else { return };
        self.totals.device_ns += device_ns;
        self.totals.estimated_ns += (flight.work_us * 1e3) as u64;
        self.devices[d].unconfirmed.retain(|(buffer, _)| !flight.touched.contains(buffer));
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

    /// The region that ends as soon as this batch does: the batch is its last one, the region reads nothing unfinished,
    /// and it cannot fault. Also returns the value that the batch reads back as a whole, with its readback, if there is
    /// one. `None` if the batch reads back more than that.
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

    /// Charges a batch's session the time that the batch took, plus the launch overhead that was charged in advance,
    /// too.
    fn settle_turn(&mut self, d: usize, flight: &Flight, took_us: f64) {
        let device = &mut self.devices[d];
        let batch_us = device.info.costs.launch_us;
        device.turns.settle(flight.session, flight.weight, flight.work_us + batch_us, took_us + batch_us);
    }

    /// Removes a batch from its device's records.
    fn take_flight(&mut self, device: DeviceId, batch: BatchId) -> Option<(usize, Flight)> {
        let d = self.index_of(device)?;
        let flight = self.devices[d].flights.remove(&batch)?;
        self.devices[d].in_flight -= 1;
        self.devices[d].link_bytes -= flight.link_bytes;
        Some((d, flight))
    }

    /// Reports a region that is placed and whose batches are all done.
    pub(super) fn finish_if_done(&mut self, region: RegionId, out: &mut Vec<ResidencyOutput>) {
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
            out.push(ResidencyOutput::PlanRan { key, device: work.plan.device, us: work.took_us });
        }
        out.push(ResidencyOutput::RegionFinished { region, faults });
    }

    pub(super) fn batch_failed(
        &mut self,
        device: DeviceId,
        batch: BatchId,
        error: Error,
        out: &mut Vec<ResidencyOutput>,
    ) {
        let Some((d, flight)) = self.take_flight(device, batch) else { return };
        let error = error.with_device(self.devices[d].info.name.clone());
        self.undo(d, batch, &flight, &error, out);
        if !flight.service {
            self.settle_turn(d, &flight, flight.work_us);
        }
        // Its allocations exist, unless one of them was what failed. Batches in flight that use them will show it;
        // otherwise the allocations are repeated. The buffers that it should have freed are dropped once more.
        self.devices[d].unconfirmed.extend(flight.allocated);
        if error.kind() == ErrorKind::DeviceLost {
            self.stall(d, out);
        }
        self.devices[d].drop_now(flight.freed, out);
        if !flight.service {
            self.failing.push_back((flight.region, error));
        }
    }

    /// Frees the segments that a failed batch should have filled, and fails its readbacks and the regions that depend
    /// on it.
    fn undo(&mut self, d: usize, batch: BatchId, flight: &Flight, error: &Error, out: &mut Vec<ResidencyOutput>) {
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
        out: &mut Vec<ResidencyOutput>,
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

    /// A readback failed: the regions and gathers that wait for it fail. If it was the only copy, the value is lost.
    fn arrival_failed(&mut self, key: Key, error: Error, out: &mut Vec<ResidencyOutput>) {
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
                    out.push(ResidencyOutput::ValueLost { value: id, error: error.clone() });
                    self.fail_value(key, &error, out);
                } else if waiting {
                    if std::mem::take(&mut value.awaited) {
                        out.push(ResidencyOutput::ValueArrived { value: id, data: Err(error.clone()) });
                    }
                    let users = value.users.clone();
                    self.failing.extend(users.into_iter().map(|region| (region, error.clone())));
                    self.forget_if_dead(key);
                }
            }
        }
    }

    /// Fails a region and everything that was computed from it. Does nothing if the region has ended.
    pub(super) fn fail_region(&mut self, region: RegionId, error: Error, out: &mut Vec<ResidencyOutput>) {
        let Some(work) = self.regions.remove(&region) else { return };
        // Told before the region's own end, because the scheduler may send it again after that.
        if work.phase != Phase::Placed {
            for &value in &work.plan.readbacks {
                out.push(ResidencyOutput::ValueArrived { value, data: Err(error.clone()) });
            }
        }
        out.push(ResidencyOutput::RegionFailed { region, error: error.clone() });
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

    /// Stops placing on a device that reported a loss, until it reports whether it serves again.
    fn stall(&mut self, d: usize, out: &mut Vec<ResidencyOutput>) {
        if !std::mem::replace(&mut self.devices[d].stalled, true) {
            out.push(ResidencyOutput::DeviceStalled(self.devices[d].info.id));
        }
    }

    pub(super) fn device_lost(
        &mut self,
        device: DeviceId,
        error: Error,
        replaced: bool,
        out: &mut Vec<ResidencyOutput>,
    ) {
        let Some(d) = self.index_of(device) else { return };
        let error = error.with_device(self.devices[d].info.name.clone());
        // The scheduler is told that the device stalled now, and of the loss after everything that was lost with it.
        self.stall(d, out);
        let state = &mut self.devices[d];
        state.pool = Pool::new(&state.info);
        state.overdrawn = false;
        state.lru.iter_mut().for_each(|lru| lru.clear());
        state.prepared.clear();
        state.in_flight = 0;
        state.link_bytes = 0;
        state.unconfirmed.clear();
        state.lent_to_drop.clear();
        state.stalled = false;
        let flights = std::mem::take(&mut state.flights);
        let cursors = std::mem::take(&mut state.cursors);
        cursors.iter().for_each(|cursor| state.plan_ended(cursor.plan.session));
        if !replaced {
            state.lost = Some(error.clone());
            let share_bytes = std::mem::take(&mut state.info.host_share_bytes);
            self.devices[0].info.take_back(share_bytes);
        }
        // Slots are taken away first: none of them may be put into the new pool below.
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

    /// Reports values as lost that no other device and no host copy has.
    fn lose_values(&mut self, error: &Error, out: &mut Vec<ResidencyOutput>) {
        let mut lost: Vec<Key> = Vec::new();
        for (&key, value) in &self.values {
            let made = matches!(value.status, Status::Placed);
            let spent = value.retired && value.users.is_empty() && !value.awaited;
            // A plan in progress that is the value's last user may have freed segments of it already.
            if made && !spent && !value.is_recoverable() && !self.is_being_used_up(key) {
                lost.push(key);
            }
        }
        lost.sort_unstable();
        for key in lost {
            if let Key::Value(value) = key {
                out.push(ResidencyOutput::ValueLost { value, error: error.clone() });
            }
            self.fail_value(key, error, out);
        }
    }

    /// Whether the value's only user is a plan that is being placed and in which it dies.
    pub(super) fn is_being_used_up(&self, key: Key) -> bool {
        let Some(value) = self.values.get(&key) else { return false };
        let [region] = value.users[..] else { return false };
        let placing = |w: &super::state::PlannedRegion| {
            w.phase == Phase::Placing && w.plan.inputs.iter().any(|i| Key::Value(i.value) == key && i.dies)
        };
        self.regions.get(&region).is_some_and(placing)
    }
}
