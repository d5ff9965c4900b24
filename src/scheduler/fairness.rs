//! Whose turn it is: weighted deficit round robin over the sessions that have regions waiting.
//!
//! In: queues. Out: regions, in program order within a session. Must hold: SCHED-4, SCHED-6, and that long regions
//! don't keep short ones of other sessions from being sent. A region waits
//! until the regions that make its inputs have been sent; those were cut before it, so the earliest waiting
//! region can always go.

use super::graph::Home;
use super::message::SchedulerInstruction;
use super::portions::elements_max;
use super::region::Region;
use super::state::{Session, State};
use crate::ids::{RegionId, SessionId};
use std::collections::VecDeque;
use std::sync::Arc;

/// Elements times nodes that cost one unit of a session's turn.
const UNIT_ELEMENTS: u64 = 1 << 20;
/// The most units a region costs: a long one does not stop its session for ever.
const UNITS_MAX: u64 = 8;
/// A region that computes this many times what a portion does is long: its device is busy with it for a while.
const LONG: u64 = 4;
/// Long regions of a session that may be downstream: one that runs, and what is planned meanwhile.
const LONG_OF_SESSION_MAX: usize = 3;
/// Credits beside the others while long regions are downstream: for short regions that wait for nothing.
pub(super) const RESERVE: usize = 2;
/// So many sessions are looked at for one that may use the reserve.
const LOOK_MAX: usize = 64;

/// The round.
#[derive(Debug, Default)]
pub(super) struct Turns {
    active: VecDeque<SessionId>,
    /// The session at the front has had its share for this visit.
    topped: bool,
    /// The long regions downstream, and whose they are.
    long: Vec<(RegionId, SessionId)>,
}

#[cfg(test)]
impl Turns {
    /// Entries of its tables.
    pub(super) fn len(&self) -> usize {
        self.active.len() + self.long.len()
    }
}

impl State {
    /// Puts a region in its session's queue, at its place in the order of cutting.
    pub(super) fn enqueue(&mut self, id: RegionId) {
        let record = &self.regions[&id];
        let (order, owner) = (record.order, record.region.session);
        // A region may be repeated after its session has ended.
        let session = self.sessions.entry(owner).or_insert_with(Session::ended);
        let place = session.queue.partition_point(|other| self.regions[other].order < order);
        session.queue.insert(place, id);
        if !session.active {
            session.active = true;
            self.turns.active.push_back(owner);
        }
    }

    /// Takes a region that waits out of its queue.
    pub(super) fn dequeue(&mut self, id: RegionId) {
        let record = &self.regions[&id];
        let (order, owner) = (record.order, record.region.session);
        let session = self.sessions.get_mut(&owner).expect("SCHED-6: a region's session is known");
        let place = session.queue.partition_point(|other| self.regions[other].order < order);
        let removed = session.queue.remove(place);
        assert_eq!(removed, Some(id), "SCHED-6: a region that is not sent stands in its queue");
    }

    /// Sends regions while credits last.
    pub(super) fn pump(&mut self, out: &mut Vec<SchedulerInstruction>) {
        let mut blocked = 0;
        loop {
            let most = match self.in_flight {
                n if n < self.credits => usize::MAX,
                n if n < self.credits + RESERVE && !self.turns.long.is_empty() => LOOK_MAX,
                _ => return,
            };
            if blocked >= self.turns.active.len().min(most) {
                return;
            }
            let owner = self.turns.active[0];
            let session = self.sessions.get_mut(&owner).expect("SCHED-6: an active session is known");
            let Some(&head) = session.queue.front() else {
                session.active = false;
                session.deficit = 0;
                let ended = session.closed && session.gathers.is_empty();
                self.turns.active.pop_front();
                self.turns.topped = false;
                if ended {
                    self.sessions.remove(&owner);
                }
                continue;
            };
            let is_ready = self.is_ready(head);
            if !is_ready && self.unpark_makers(head) {
                blocked = 0;
                continue;
            }
            if !is_ready || !self.has_credit(head) {
                self.pass_turn();
                blocked += 1;
                continue;
            }
            blocked = 0;
            let cost = (self.regions[&head].elements / UNIT_ELEMENTS).clamp(1, UNITS_MAX);
            let session = self.sessions.get_mut(&owner).expect("SCHED-6: an active session is known");
            if !self.turns.topped {
                session.deficit += session.weight;
                self.turns.topped = true;
            }
            if session.deficit < cost {
                self.pass_turn();
                continue;
            }
            session.deficit -= cost;
            session.queue.pop_front();
            self.send(head, out);
        }
    }

    fn pass_turn(&mut self) {
        self.turns.active.rotate_left(1);
        self.turns.topped = false;
    }

    /// Whether every region that makes one of its inputs has been sent for good, and its device is known to be there.
    fn is_ready(&self, id: RegionId) -> bool {
        let region = &self.regions[&id].region;
        !self.stalled[region.device.0 as usize]
            && region.inputs.iter().all(|input| match self.graph.get(input.value).map(|l| &l.home) {
                Some(Home::Coming(maker)) => self.regions[maker].sent && !self.regions[maker].unwanted,
                _ => true,
            })
    }

    /// Whether a credit is left for a region of its kind.
    fn has_credit(&self, id: RegionId) -> bool {
        let (record, long) = (&self.regions[&id], &self.turns.long);
        let mine = long.iter().filter(|(_, session)| *session == record.region.session).count();
        if self.is_long(id) {
            let most = self.credits.saturating_sub(RESERVE).max(1);
            return self.in_flight < self.credits && mine < LONG_OF_SESSION_MAX && long.len() < most;
        }
        let waits = |value| matches!(self.graph.get(value).map(|l| &l.home), Some(Home::Coming(_)));
        self.in_flight < self.credits || (mine == 0 && !record.region.inputs.iter().any(|i| waits(i.value)))
    }

    fn is_long(&self, id: RegionId) -> bool {
        let record = &self.regions[&id];
        let device = self.devices.get(record.region.device.0 as usize);
        device.is_some_and(|device| record.elements > LONG * elements_max(device.kind))
    }

    /// A region is downstream no more.
    pub(super) fn left(&mut self, id: RegionId) {
        self.in_flight -= 1;
        self.turns.long.retain(|(long, _)| *long != id);
    }

    /// Passes a region downstream, with the host data that residency does not have yet, and what ends with it.
    fn send(&mut self, id: RegionId, out: &mut Vec<SchedulerInstruction>) {
        let is_long = self.is_long(id);
        let record = self.regions.get_mut(&id).expect("SCHED-6: a queued region is unfinished");
        record.sent = true;
        record.sent_as = self.sends;
        self.sends += 1;
        self.in_flight += 1;
        let (attempts, is_part) = (record.attempts, record.is_part);
        // Nobody else has it yet, or not any more.
        let region = Arc::make_mut(&mut record.region);
        if let Some(session) = self.sessions.get(&region.session) {
            region.weight = session.weight.min(u32::MAX as u64) as u32;
        }
        if is_long {
            self.turns.long.push((id, region.session));
        }
        let retires = std::mem::take(&mut record.retires);
        for input in &mut region.inputs {
            let live = self.graph.get_mut(input.value).expect("SCHED-8: a region's input is live");
            // What a repeated region read may have ended since residency was told of it.
            let is_new = !live.known || attempts > 0 || is_part;
            input.source = if is_new { live.host.clone() } else { None };
            live.known |= is_new;
        }
        for node in region.nodes.iter().filter(|n| n.output) {
            self.graph.get_mut(node.value).expect("SCHED-8: a region's output is live").known = true;
        }
        out.push(SchedulerInstruction::PlanRegion(record.region.clone()));
        for value in retires {
            out.push(SchedulerInstruction::Retire { value, after: Some(id) });
        }
    }
}

/// Elements that a region's nodes compute.
pub(super) fn elements_of(region: &Region) -> u64 {
    region.nodes.iter().map(|n| n.meta.elements() as u64).sum()
}
