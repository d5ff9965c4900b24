//! Decides which session sends its next region, by the work that was sent for each session.
//!
//! In: queues. Out: regions, in program order within a session. Must hold: SCHED-4, SCHED-6, SCHED-14, and that long
//! regions don't keep short ones of other sessions from being sent. A region waits until the regions that make its
//! inputs have been sent; those were cut before it, so the earliest waiting region can always go.

use super::graph::Residence;
use super::portions::elements_max;
use super::regions::{Attempt, Change};
use super::state::State;
use crate::contract::costs::{LONG_PORTIONS, SLICE_US, ring_ns};
use crate::contract::messages::scheduler::SchedulerInstruction;
use crate::contract::region::{Region, RegionArg};
use crate::fair::Fair;
use crate::graph::Reads;
use crate::graph::costs::{Operations, operations};
use crate::ids::{RegionId, SessionId};
use smallvec::SmallVec;

/// Long regions of a session that may be downstream: one that runs, and what is planned meanwhile.
const LONG_OF_SESSION_MAX: usize = 3;
/// Extra credits while long regions are downstream. They are for short regions whose inputs all exist, of sessions
/// without a long region downstream.
pub(super) const RESERVE: usize = 2;
/// The number of sessions searched for one that may use the reserve.
const LOOK_MAX: usize = 64;

/// The sessions' turns to send a region.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Regions that may be downstream at a time.
    credits: usize,
    /// The sessions that have regions waiting.
    fair: Fair,
    /// Sessions whose queues may have become empty: they are checked before anything is sent.
    emptied: Vec<SessionId>,
    /// The long regions downstream, and whose they are.
    long: Vec<(RegionId, SessionId)>,
}

impl Turns {
    /// The turns of a scheduler that may have so many regions downstream at a time.
    pub(super) fn new(credits: usize) -> Turns {
        Turns { credits, ..Turns::default() }
    }

    /// Regions that may be downstream at a time, but for [`RESERVE`].
    #[cfg(test)]
    pub(super) fn credits(&self) -> usize {
        self.credits
    }

    /// The runtime stops: no session has a region that waits.
    pub(super) fn forget_all(&mut self) {
        *self = Turns::new(self.credits);
    }

    /// Entries of its tables.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.fair.known() + self.emptied.len() + self.long.len()
    }
}

impl State {
    /// Sessions of which regions wait for their turn.
    pub fn sessions_waiting(&self) -> usize {
        self.turns.fair.with_work()
    }

    /// Puts a region in its session's queue, at its place in the order of cutting.
    pub(super) fn enqueue(&mut self, id: RegionId) {
        let owner = self.regions[&id].region.session;
        self.sessions.enqueue(owner, id, |other| self.regions[&other].order);
        self.queue_changed(owner);
    }

    /// Takes a region that waits out of its queue.
    pub(super) fn dequeue(&mut self, id: RegionId) {
        let owner = self.regions[&id].region.session;
        self.sessions.dequeue(owner, id, |other| self.regions[&other].order);
        self.queue_changed(owner);
    }

    /// A session's queue begins with another region, or is empty.
    fn queue_changed(&mut self, owner: SessionId) {
        let session = &self.sessions[owner];
        match session.queue.front() {
            Some(head) => {
                let (piece_ns, order) = (self.work_of(*head), self.regions[head].order);
                self.turns.fair.enter(owner, session.weight, session.queue.len(), piece_ns, order);
            }
            None => {
                self.turns.fair.leave(owner);
                self.turns.emptied.push(owner);
            }
        }
    }

    /// Nanoseconds that a region takes the ring and its device together, estimated from its structure.
    fn work_of(&self, id: RegionId) -> u64 {
        let record = &self.regions[&id];
        let device = self.fleet.get(record.region.device);
        let device_us = device.map_or(0.0, |device| device.costs.arithmetic_us(record.work));
        ring_ns(record.region.nodes.len() as u64) + (device_us * 1e3) as u64
    }

    /// Forgets sessions that have ended and have nothing left to send.
    fn forget_emptied(&mut self) {
        while let Some(owner) = self.turns.emptied.pop() {
            self.sessions.forget_if_done(owner);
        }
        if self.regions.downstream() == 0 && self.turns.fair.is_empty() {
            self.turns.fair.forget_debts();
        }
    }

    /// Sends regions while credits last.
    pub(super) fn pump(&mut self, out: &mut Vec<SchedulerInstruction>) {
        self.forget_emptied();
        loop {
            let most = match self.regions.downstream() {
                n if n < self.turns.credits => usize::MAX,
                n if n < self.turns.credits + RESERVE && !self.turns.long.is_empty() => LOOK_MAX,
                _ => return,
            };
            let mut passed = SmallVec::<[SessionId; 8]>::new();
            let (mut next, mut makers_of) = (None, None);
            for owner in self.turns.fair.in_order().take(most) {
                let head = self.sessions[owner].queue[0];
                if !self.is_ready(head) {
                    if self.regions.parked() > 0 && self.has_parked_makers(head) {
                        makers_of = Some(head);
                        break;
                    }
                    passed.push(owner);
                } else if self.has_credit(head) {
                    next = Some((owner, head));
                    break;
                }
            }
            if let Some(head) = makers_of {
                self.unpark_makers(head);
                continue;
            }
            let Some((owner, head)) = next else { return };
            // A session whose next region has to wait for others, or for its device, does not save up its turns.
            passed.into_iter().for_each(|owner| self.turns.fair.pass_over(owner));
            self.turns.fair.charge(owner, self.work_of(head));
            self.sessions.head_sent(owner);
            self.queue_changed(owner);
            self.send(head, out);
            self.forget_emptied();
        }
    }

    /// Whether all regions that make its inputs have been sent and are not called back, and its device is not stalled.
    fn is_ready(&self, id: RegionId) -> bool {
        let region = &self.regions[&id].region;
        !self.fleet.is_stalled(region.device)
            && region.inputs.iter().all(|input| match self.graph.get(input.value).map(|l| &l.home) {
                Some(Residence::Coming(maker)) => !self.regions[maker].waits() && !self.regions[maker].is_called_back(),
                _ => true,
            })
    }

    /// Whether a credit is left for a region of its kind.
    fn has_credit(&self, id: RegionId) -> bool {
        let (record, long) = (&self.regions[&id], &self.turns.long);
        let mine = long.iter().filter(|(_, session)| *session == record.region.session).count();
        if self.is_long(id) {
            let most = self.turns.credits.saturating_sub(RESERVE).max(1);
            return self.regions.downstream() < self.turns.credits && mine < LONG_OF_SESSION_MAX && long.len() < most;
        }
        let waits = |value| matches!(self.graph.get(value).map(|l| &l.home), Some(Residence::Coming(_)));
        self.regions.downstream() < self.turns.credits
            || (mine == 0 && !record.region.inputs.iter().any(|i| waits(i.value)))
    }

    fn is_long(&self, id: RegionId) -> bool {
        let record = &self.regions[&id];
        let device = self.fleet.get(record.region.device);
        device.is_some_and(|device| {
            record.elements > LONG_PORTIONS * elements_max(device) || device.costs.arithmetic_us(record.work) > SLICE_US
        })
    }

    /// A region leaves downstream: it ran, or it returned.
    pub(super) fn leave_downstream(&mut self, id: RegionId, change: Change) {
        self.regions.change(id, change);
        self.turns.long.retain(|(long, _)| *long != id);
    }

    /// Passes a region downstream, with the host data that residency does not have yet, and what ends with it.
    fn send(&mut self, id: RegionId, out: &mut Vec<SchedulerInstruction>) {
        if self.is_long(id) {
            self.turns.long.push((id, self.regions[&id].region.session));
        }
        let is_first = self.regions[&id].attempt == Attempt::First;
        let region = self.regions.send(id, |region| {
            if let Some(session) = self.sessions.get(region.session) {
                region.weight = session.weight;
            }
            for input in &mut region.inputs {
                // For a repeated region, residency may have freed an input that it once knew: host data is sent again.
                input.source = self.graph.sent_as_input(input.value, !is_first);
                input.dies = self.ends.dies_in(input.value, id);
            }
            let outputs = region.nodes.iter().filter(|node| node.output);
            outputs.for_each(|node| self.graph.sent_as_output(node.value));
        });
        out.push(SchedulerInstruction::PlanRegion(region));
        for value in self.ends.send(id) {
            out.push(SchedulerInstruction::Retire { value, after: Some(id) });
        }
    }
}

/// Simple operations that a region's nodes take, each once.
pub(super) fn work_of(region: &Region) -> Operations {
    let meta_of = |arg: &RegionArg| match *arg {
        RegionArg::Node(n) => Some(&region.nodes[n as usize].meta),
        RegionArg::Input(i) => Some(&region.inputs[i as usize].meta),
        RegionArg::Scalar(_) => None,
    };
    let mut work = Operations::default();
    for node in &region.nodes {
        let facts = node.op.facts();
        let is_whole = |slot: usize| matches!(facts.reads(slot), Reads::Folded | Reads::All);
        let whole = node.args.iter().enumerate().filter(|(slot, _)| is_whole(*slot));
        let read = whole.filter_map(|(_, arg)| Some(meta_of(arg)?.elements())).max().unwrap_or(0);
        let elements = node.meta.elements().max(read);
        let arg = |slot: usize| node.args.get(slot).and_then(meta_of);
        work.add(node.meta.dtype, operations(&node.op, &node.meta, elements, arg));
    }
    work
}

/// Elements that a region's nodes compute.
pub(super) fn elements_of(region: &Region) -> u64 {
    region.nodes.iter().map(|n| n.meta.elements() as u64).sum()
}
