//! The invariants, checked in full: for tests, after every event.

use super::cursor::Block;
use super::device::Device;
use super::state::{Phase, State};
use super::values::{Key, Place, Status};
use crate::contract::batch::Slot;

impl State {
    /// Checks every invariant.
    ///
    /// # Panics
    /// With the ID of a broken one.
    pub fn validate(&self) {
        for (d, device) in self.devices.iter().enumerate() {
            self.validate_memory(d, device);
            self.validate_batches(d, device);
        }
        for key in self.values.keys() {
            self.validate_value(*key);
        }
        for (region, work) in &self.regions {
            let pending = |value| {
                let value = self.values.get(&Key::Value(value));
                let value = value.unwrap_or_else(|| panic!("RES-8: an input of region {region} is unknown"));
                matches!(value.status, Status::Pending)
            };
            if work.phase == Phase::Waiting {
                let missing = work.plan.inputs.iter().filter(|i| pending(i.value)).count();
                assert_eq!(missing, work.missing as usize, "RES-8: inputs that region {region} misses");
            }
        }
        let kept: u64 = self.values.values().map(|v| v.whole_counted).sum();
        let parts: u64 = self
            .values
            .values()
            .flat_map(|v| &v.copies)
            .flat_map(|c| c.segments.iter().filter_map(|s| s.part.as_ref()).map(|p| self.counted(c.device, p)))
            .sum();
        let coming: u64 = self.transfers.values().map(|t| t.host_bytes).sum();
        assert_eq!(kept + parts + coming, self.host_copy_bytes, "RES-9: host copies");
    }

    fn validate_memory(&self, d: usize, device: &Device) {
        let mut slots: Vec<Slot> = Vec::new();
        for (key, value) in &self.values {
            for (n, segment) in value.copy(d).iter().flat_map(|c| c.segments.iter().enumerate()) {
                if let Some(slot) = segment.slot() {
                    slots.push(slot);
                    let listed = device.lru[device.pool.in_slab(slot) as usize].get(&segment.stamp);
                    assert_eq!(listed, Some(&(*key, n as u32)), "RES-7: a segment with a slot is listed");
                }
            }
        }
        assert_eq!(
            slots.len(),
            device.lru[0].len() + device.lru[1].len(),
            "RES-7: only segments with slots are listed"
        );
        device.pool.validate(&slots);
        let most = if device.overdrawn { device.info.memory_bytes } else { device.info.budget_bytes };
        assert!(device.pool.total_bytes() <= most, "RES-2: device {d} is over its budget");
        let draining: u64 = self.transfers.values().filter(|t| t.device == d).map(|t| t.draining_bytes).sum();
        assert_eq!(draining, device.draining_bytes, "RES-6: draining bytes of device {d}");
    }

    fn validate_batches(&self, d: usize, device: &Device) {
        assert!(device.in_flight <= device.credit, "RES-4: device {d} has too many batches");
        assert_eq!(device.flights.len(), device.in_flight + device.prepared.len(), "RES-4: batches that are out");
        let prepared: Vec<_> = device.prepared.iter().map(|next| next.batch.id).collect();
        let flying =
            device.flights.iter().filter(|(id, _)| !prepared.contains(id)).map(|(_, flight)| flight.link_bytes);
        assert_eq!(flying.sum::<u64>(), device.link_bytes, "RES-11: bytes in flight of device {d}");
        let bounded = device.in_flight <= 1 || device.link_bytes <= device.link_bytes_max();
        assert!(bounded, "RES-11: device {d} moves too many bytes at a time");
        for next in &device.prepared {
            assert!(device.flights.contains_key(&next.batch.id), "RES-4: a prepared batch has a record");
        }
        if device.stalled {
            return;
        }
        let is_out = device.in_flight > 0 || !device.prepared.is_empty();
        for cursor in &device.cursors {
            assert!(cursor.open.commands.is_empty(), "RES-6: a paused cursor has closed its batch");
            let coming = match cursor.blocked {
                None => is_out,
                Some(Block::Arrival(transfer)) => self.is_out(transfer),
                Some(Block::HostCopy(key)) => self.values.get(&key).is_none_or(|v| {
                    !v.collect
                        || v.copies.iter().flat_map(|c| &c.segments).filter_map(|s| s.coming).any(|t| self.is_out(t))
                }),
                Some(Block::Draining(_)) => device.draining_bytes > 0 || is_out,
                Some(Block::Others(_)) => {
                    is_out || device.cursors.iter().any(|c| !matches!(c.blocked, Some(Block::Others(_))))
                }
            };
            assert!(coming, "RES-6, RES-12: what {:?} waits for will not come", cursor.blocked);
            assert!(device.turns.is_open(cursor.plan.session), "RES-13: a plan in progress is in its turn");
            let same = device.cursors.iter().filter(|c| c.plan.session == cursor.plan.session);
            assert_eq!(same.count(), 1, "RES-13: one plan of a session is in progress");
        }
        if device.cursors.is_empty() && self.failing.is_empty() {
            assert!(device.turns.is_empty() || is_out, "RES-12: plans wait for device {d}, which has nothing to do");
        }
        for region in device.turns.waiting() {
            let work = &self.regions[&region];
            assert_eq!((work.phase, work.missing), (Phase::Waiting, 0), "RES-13: region {region} waits for its turn");
        }
    }

    /// Whether a readback is on its way: its batch is prepared or in flight, or is done and the readback has not
    /// arrived.
    fn is_out(&self, transfer: crate::contract::batch::Transfer) -> bool {
        self.transfers.contains_key(&transfer)
    }

    fn validate_value(&self, key: Key) {
        let value = &self.values[&key];
        for copy in &value.copies {
            for segment in &copy.segments {
                let draining = segment.place == Place::Draining;
                assert!(!draining || segment.coming.is_some_and(|t| self.is_out(t)), "RES-6: {key:?} drains for ever");
            }
        }
        match value.status {
            Status::Failed(_) => {
                assert!(value.whole.is_none() && value.copies.is_empty(), "RES-5: failed {key:?} holds memory");
            }
            Status::Placed if !self.is_being_used_up(key) => {
                let in_use = !value.retired || !value.users.is_empty() || value.awaited;
                assert!(in_use, "RES-5: {key:?} is kept for nobody");
                assert!(value.is_recoverable(), "RES-5: {key:?} is nowhere");
            }
            Status::Placed | Status::Pending => {}
        }
        for region in &value.users {
            assert!(self.regions.contains_key(region), "RES-8: a user of {key:?} has ended");
        }
        let host = |d: usize| self.devices[d].info.capabilities.owns_host_budget;
        assert!(value.copies.iter().all(|c| !host(c.device) || c.segments.len() == 1), "the host cuts nothing");
    }
}
