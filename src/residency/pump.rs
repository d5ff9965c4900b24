//! After every event: does all that can be done now, until nothing more can.
//!
//! In: the state. Out: plans started and resumed, batches submitted within credit, idle memory released.
//! Must hold: RES-4; RES-11; a failure takes effect before anything that could build on the failed value is placed.

use super::cursor::{Block, Cursor};
use super::message::ResidencyInstruction;
use super::state::{Device, Phase, State};
use crate::device::message::Command;
use crate::ids::{BatchId, BufferId};

/// A device with this many batches waiting for credit starts no further plan.
const PREPARED_MAX: usize = 2;
/// Free buffers beyond this share of the budget go back to the device.
const IDLE_SHARE: u64 = 2;

impl State {
    /// Does all that can be done now.
    pub(super) fn pump(&mut self, out: &mut Vec<ResidencyInstruction>) {
        loop {
            let mut moved = false;
            while let Some((region, error)) = self.failing.pop_front() {
                self.fail_region(region, error, out);
                moved = true;
            }
            for d in 0..self.devices.len() {
                moved |= self.pump_device(d, out);
                self.submit(d, out);
            }
            if !moved {
                break;
            }
        }
        for d in 0..self.devices.len() {
            self.release_idle(d, out);
        }
    }

    fn pump_device(&mut self, d: usize, out: &mut Vec<ResidencyInstruction>) -> bool {
        if self.devices[d].stalled {
            return false;
        }
        let mut moved = false;
        // A failure must take effect before anything that could build on the failed value is placed.
        while self.failing.is_empty() {
            self.submit(d, out);
            if let Some(cursor) = &self.devices[d].cursor {
                if cursor.blocked.is_some_and(|block| self.is_blocked(d, block)) {
                    break;
                }
            } else if self.devices[d].prepared.len() >= PREPARED_MAX || !self.start_next(d) {
                break;
            }
            self.advance(d, out);
            moved = true;
        }
        moved
    }

    fn start_next(&mut self, d: usize) -> bool {
        let Some((_, region)) = self.devices[d].ready.pop_first() else { return false };
        let id = BatchId(self.new_number());
        let work = self.regions.get_mut(&region).expect("RES-8: a ready region is open");
        work.phase = Phase::Placing;
        let cursor = Cursor::new(work.plan.clone(), id);
        self.devices[d].cursor = Some(cursor);
        true
    }

    /// Whether what a paused cursor waits for is still to come (RES-6).
    pub(super) fn is_blocked(&self, d: usize, block: Block) -> bool {
        match block {
            Block::Arrival(transfer) => self.transfers.contains_key(&transfer),
            Block::HostCopy(key) => self.values.get(&key).is_some_and(|v| v.whole.is_none() && v.collect),
            Block::Draining(bytes) => self.devices[d].draining_bytes >= bytes,
        }
    }

    fn submit(&mut self, d: usize, out: &mut Vec<ResidencyInstruction>) {
        let device = &mut self.devices[d];
        if device.stalled {
            return;
        }
        device.drop_doubtful(out);
        while device.in_flight < device.credit && !device.prepared.is_empty() {
            if !device.doubtful.is_empty() {
                // Batches in flight will tell whether the buffers of a failed batch exist.
                if device.in_flight > 0 {
                    return;
                }
                device.allocate_again();
            }
            let Some(next) = device.prepared.front() else { return };
            let bytes = device.flights.get(&next.id).map_or(0, |flight| flight.link_bytes);
            if device.in_flight > 0 && device.link_bytes + bytes > device.link_bytes_max() {
                break;
            }
            let Some(batch) = device.prepared.pop_front() else { return };
            device.in_flight += 1;
            device.link_bytes += bytes;
            out.push(ResidencyInstruction::Submit { device: device.info.id, batch });
        }
        let bytes = self.bytes_in_flight();
        self.totals.bytes_in_flight_peak = self.totals.bytes_in_flight_peak.max(bytes);
    }

    fn release_idle(&mut self, d: usize, out: &mut Vec<ResidencyInstruction>) {
        let device = &mut self.devices[d];
        let most = device.info.budget_bytes / IDLE_SHARE;
        let much = device.pool.total_bytes() - device.pool.live_bytes() > most;
        // Prepared batches may name the buffers; `Release` follows only what was submitted.
        let nothing = !much && device.spent.is_empty();
        if nothing || !device.prepared.is_empty() || device.stalled {
            return;
        }
        let mut idle = if much { device.pool.idle_bytes() } else { 0 };
        let mut buffers = std::mem::take(&mut device.spent);
        while idle > most {
            let Some(buffer) = device.pool.trim() else { break };
            buffers.push(buffer);
            idle = device.pool.idle_bytes();
        }
        if !buffers.is_empty() {
            out.push(ResidencyInstruction::Release { device: device.info.id, buffers });
        }
    }
}

impl Device {
    /// Lets go of buffers of a failed batch that nobody uses: whether they exist need not be found out.
    fn drop_doubtful(&mut self, out: &mut Vec<ResidencyInstruction>) {
        if self.doubtful.is_empty() {
            return;
        }
        let prepared = self.prepared.iter().filter_map(|batch| self.flights.get(&batch.id));
        let named: Vec<BufferId> = prepared.flat_map(|flight| flight.touched.iter().copied()).collect();
        let mut buffers = Vec::new();
        self.doubtful.retain(|&(buffer, _)| {
            let dropped = !named.contains(&buffer) && self.pool.discard(buffer);
            if dropped {
                buffers.push(buffer);
            }
            !dropped
        });
        if !buffers.is_empty() {
            out.push(ResidencyInstruction::Release { device: self.info.id, buffers });
        }
    }

    /// Repeats, at the head of the next batch, allocations of a failed batch that no later batch has confirmed.
    fn allocate_again(&mut self) {
        let doubtful = std::mem::take(&mut self.doubtful);
        let Some(next) = self.prepared.front_mut() else { return };
        let flight = self.flights.get_mut(&next.id).expect("RES-4: a prepared batch has a record");
        flight.allocated.extend(doubtful.iter().copied());
        let later: Vec<BufferId> = self.flights.range(next.id..).flat_map(|(_, f)| f.touched.iter().copied()).collect();
        let mut at = 0;
        for (buffer, bytes) in doubtful {
            if later.contains(&buffer) || self.pool.has(buffer) {
                next.commands.insert(at, Command::Allocate { buffer, bytes });
                at += 1;
            }
        }
    }
}
