//! Runs after every event, and repeats until there is nothing more to do.
//!
//! In: the state. Out: plans started and resumed, batches submitted within credit, idle memory released.
//! Must hold: RES-4; RES-11; RES-12; a failure takes effect before anything that could build on the failed value is
//! placed.

use super::cursor::{Block, Cursor};
use super::device::Prepared;
use super::state::{Phase, State};
use super::values::Key;
use crate::contract::messages::residency::ResidencyOutput;
use crate::ids::{BatchId, RegionId, SessionId};
use smallvec::SmallVec;

/// A device with this many batches waiting for credit starts no further plan.
const PREPARED_MAX: usize = 2;
/// The number of sessions searched for one that can go on.
const LOOK_MAX: usize = 64;
/// Free buffers beyond this share of the budget go back to the device.
const IDLE_SHARE: u64 = 2;

/// The plan that is placed next.
enum Next {
    /// The plan in progress with this cursor.
    GoesOn(usize),
    /// The next plan of this session.
    Begins(SessionId),
}

impl State {
    /// Fails regions, places plans and submits batches until nothing more can be done.
    pub(super) fn pump(&mut self, out: &mut Vec<ResidencyOutput>) {
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
            let device = &mut self.devices[d];
            if device.turns.is_empty() && device.flights.is_empty() {
                device.turns.forget_debts();
            }
            self.release_idle(d, out);
        }
    }

    fn pump_device(&mut self, d: usize, out: &mut Vec<ResidencyOutput>) -> bool {
        if self.devices[d].stalled {
            return false;
        }
        let mut moved = false;
        // A failure must take effect before anything that could build on the failed value is placed.
        while self.failing.is_empty() {
            self.submit(d, out);
            let Some(cursor) = self.take_turn(d) else { break };
            self.advance(d, cursor, out);
            self.devices[d].last_chance = false;
            moved = true;
        }
        moved
    }

    /// Chooses the plan that is placed next, and begins it if it is a new one. Returns its cursor.
    fn take_turn(&mut self, d: usize) -> Option<usize> {
        let device = &self.devices[d];
        // A plan that paused within a step for a readback of this device goes on first, since it holds memory
        // meanwhile.
        let in_step = |c: &Cursor| matches!(c.blocked, Some(Block::Arrival(_) | Block::Draining(_)));
        if let Some(at) = device.cursors.iter().position(in_step) {
            let is_blocked = device.cursors[at].blocked.is_some_and(|block| self.is_blocked(d, block));
            return (!is_blocked).then_some(at);
        }
        if device.prepared.len() >= PREPARED_MAX {
            return None;
        }
        let takes_long = device.prepared.is_empty() && device.in_flight < device.long_in_flight_max();
        // A long plan that is due gets the next place in flight: no other plan may overtake it. But if the places are
        // taken by long batches, short plans may: the remaining place is reserved for them.
        let keeps_place = device.flights.values().filter(|flight| flight.long).count() < device.long_in_flight_max();
        let mut next = None;
        // Set if a plan that is due waits for memory of plans in progress. No other plan begins then, or the plan could
        // wait for ever.
        let mut waits_for_room = false;
        // Sessions whose turn came, but whose plan in progress is blocked.
        let mut blocked = SmallVec::<[SessionId; 4]>::new();
        for (session, begin) in device.turns.in_order().take(LOOK_MAX) {
            if let Some(region) = begin {
                if !takes_long && self.is_long(region) {
                    if keeps_place {
                        break;
                    }
                    continue;
                }
                if !waits_for_room && self.may_begin(d, region) {
                    next = Some(Next::Begins(session));
                    break;
                }
                waits_for_room = true;
            } else {
                let at = device.cursors.iter().position(|c| c.plan.session == session);
                let at = at.expect("RES-13: a session with a plan in progress has a cursor");
                let cursor = &device.cursors[at];
                let is_blocked = cursor.blocked.is_some_and(|block| self.is_blocked(d, block));
                let waits = !takes_long && self.is_long(cursor.plan.region);
                match (is_blocked, waits) {
                    (true, _) => blocked.push(session),
                    (false, false) => {
                        next = Some(Next::GoesOn(at));
                        break;
                    }
                    (false, true) if keeps_place => break,
                    _ => {}
                }
            }
        }
        if let Some(next) = next {
            blocked.into_iter().for_each(|session| self.devices[d].turns.pass_over(session));
            return Some(match next {
                Next::GoesOn(at) => at,
                Next::Begins(session) => self.begin(d, session),
            });
        }
        let is_free = |c: &Cursor| !c.blocked.is_some_and(|block| self.is_blocked(d, block));
        let idle = takes_long.then(|| device.cursors.iter().position(is_free)).flatten();
        idle.or_else(|| self.give_last_chance(d))
    }

    fn begin(&mut self, d: usize, session: SessionId) -> usize {
        let id = BatchId(self.new_number());
        let region = self.devices[d].turns.begin(session);
        let long = self.is_long(region);
        let work = self.regions.get_mut(&region).expect("RES-8: a ready region is open");
        work.long = long;
        work.phase = Phase::Placing;
        let cursor = Cursor::new(work.plan.clone(), id);
        let device = &mut self.devices[d];
        device.cursors.push(cursor);
        device.cursors.len() - 1
    }

    /// Whether a plan takes its device longer than a slice, or reads an output of a plan that does.
    fn is_long(&self, region: RegionId) -> bool {
        let work = &self.regions[&region];
        let waits = |value| {
            let maker = self.values.get(&Key::Value(value)).and_then(|v| v.maker);
            maker.and_then(|maker| self.regions.get(&maker)).is_some_and(|maker| maker.long)
        };
        work.long || work.work_us > self.slice_us || work.plan.inputs.iter().any(|input| waits(input.value))
    }

    /// If all plans in progress wait for each other's memory, the youngest gets a last chance: it fails if it finds
    /// none.
    fn give_last_chance(&mut self, d: usize) -> Option<usize> {
        let device = &mut self.devices[d];
        let ended = device.cursors_ended;
        let waits = |c: &Cursor| matches!(c.blocked, Some(Block::Others(since)) if since == ended);
        if !device.cursors.iter().all(waits) {
            return None;
        }
        let (youngest, _) = device.cursors.iter().enumerate().max_by_key(|(_, c)| c.plan.region)?;
        device.last_chance = true;
        Some(youngest)
    }

    /// Whether the event that a paused cursor waits for has not come yet (RES-6).
    pub(super) fn is_blocked(&self, d: usize, block: Block) -> bool {
        match block {
            Block::Arrival(transfer) => self.transfers.contains_key(&transfer),
            Block::HostCopy(key) => self.values.get(&key).is_some_and(|v| v.whole.is_none() && v.collect),
            Block::Draining(bytes) => self.devices[d].draining_bytes >= bytes,
            Block::Others(ended) => self.devices[d].cursors_ended == ended,
        }
    }

    fn submit(&mut self, d: usize, out: &mut Vec<ResidencyOutput>) {
        let device = &mut self.devices[d];
        if device.stalled {
            return;
        }
        device.drop_unconfirmed(out);
        while device.in_flight < device.credit && !device.prepared.is_empty() {
            if !device.unconfirmed.is_empty() {
                // A batch in flight may show that the buffers of the failed batch exist.
                if device.in_flight > 0 {
                    return;
                }
                device.allocate_again();
            }
            let Some(next) = device.prepared.front() else { return };
            let bytes = device.flights.get(&next.batch.id).map_or(0, |flight| flight.link_bytes);
            if device.in_flight > 0 && device.link_bytes + bytes > device.link_bytes_max() {
                break;
            }
            let Some(Prepared { batch, then_drop }) = device.prepared.pop_front() else { return };
            device.in_flight += 1;
            device.link_bytes += bytes;
            out.push(ResidencyOutput::Submit { device: device.info.id, batch });
            device.drop_now(then_drop, out);
        }
        let bytes = self.bytes_in_flight();
        self.totals.bytes_in_flight_peak = self.totals.bytes_in_flight_peak.max(bytes);
    }

    fn release_idle(&mut self, d: usize, out: &mut Vec<ResidencyOutput>) {
        let device = &mut self.devices[d];
        let most = device.info.budget_bytes / IDLE_SHARE;
        let much = device.pool.total_bytes() - device.pool.live_bytes() > most;
        let nothing = !much && device.lent_to_drop.is_empty();
        if nothing || device.stalled {
            return;
        }
        let mut idle = if much { device.pool.idle_bytes() } else { 0 };
        let mut buffers = std::mem::take(&mut device.lent_to_drop);
        while idle > most {
            let Some(buffer) = device.pool.trim() else { break };
            buffers.push(buffer);
            idle = device.pool.idle_bytes();
        }
        device.drop_behind(buffers, out);
    }
}
