//! Regions that nobody waits for while somebody may still ask for what they make: they are parked until then.
//!
//! In: regions whose values lost their last demand. Out: regions out of the queue and, when one of their values is
//! asked for, back in it, as they were cut; `Abandon` for those that are downstream already. Must hold: SCHED-12.
//!
//! A parked region keeps what it reads, as lazy values do, and like these it has given its credits back: a program
//! that parks more than it may leave lazy has it computed after all, and so has one that keeps too much memory by it
//! (`keeping.rs`), or waits for some. Its turn is not known, so what it reads ends with no region: the end is told when
//! all readers are through.

use super::graph::{Home, Live};
use super::ledger::Charge;
use super::regions::{Attempt, Cause, Change, Record};
use super::state::State;
use crate::contract::messages::scheduler::SchedulerInstruction;
use crate::contract::region::Region;
use crate::contract::tape::Want;
use crate::error::Error;
use crate::ids::{RegionId, SessionId, ValueId};
use petgraph::stable_graph::NodeIndex;
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::sync::Arc;

/// So often a region is parked at most: a program that asks again and again for what it gives up, and for what is made
/// from it, has it computed, before it has cost more to put it aside than to compute it.
const PARKINGS_MAX: u8 = 64;

impl State {
    /// Whether a region is to run: a limit asked for it, or a gather or another region that is to run awaits what it
    /// makes or brings.
    pub(super) fn is_awaited(&self, id: RegionId) -> bool {
        let record = &self.regions[&id];
        let runs = |reader: &RegionId| *reader != id && self.regions.get(reader).is_some_and(|r| !r.is_parked());
        let awaits = |live: &Live| !live.gathers.is_empty() || live.regions.iter().any(runs);
        let mut outputs = record.region.nodes.iter().filter(|n| n.output);
        record.is_for_limit()
            || outputs.any(|node| self.graph.get(node.value).is_some_and(awaits))
            || record.region.readbacks.iter().any(|value| self.wants_readback(*value))
    }

    /// Takes a region that waits for its turn out of the queue until somebody asks for what it makes. What it reads
    /// may not be awaited either: it goes to `work`.
    pub(super) fn park(&mut self, id: RegionId, work: &mut Vec<ValueId>, out: &mut Vec<SchedulerInstruction>) {
        let record = &self.regions[&id];
        let is_first = record.attempt == Attempt::First && record.parkings < PARKINGS_MAX;
        if !record.is_queued() || !is_first || !self.keeps_inputs(id) {
            return;
        }
        self.dequeue(id);
        self.regions.change(id, Change::Park);
        let record = self.regions.at(id);
        record.parkings += 1;
        let credits = std::mem::take(&mut record.credits);
        let region = Arc::make_mut(&mut record.region);
        let (owner, nodes) = (region.session, region.nodes.len());
        let inputs: Vec<ValueId> = region.inputs.iter().map(|input| input.value).collect();
        for value in std::mem::take(&mut region.readbacks) {
            let live = self.graph.get_mut(value).expect("SCHED-8: a readback's value is live");
            if live.readback.is_by(id) {
                live.readback.withdraw();
            }
        }
        for value in &inputs {
            // No region that waits ends it any more.
            self.ends.unsay_by_any(*value);
        }
        self.ledger.credit(owner, credits, out);
        let session = self.sessions.get_mut(&owner).expect("SCHED-6: a queued region's session is known");
        session.parked.push(id);
        session.parked_nodes += nodes;
        if session.parked_nodes > self.kept.lazy_max() {
            self.limit_parked(owner);
        }
        if self.regions[&id].is_parked() {
            self.count_kept(owner, self.bytes_kept_of(inputs.iter().copied()));
            work.extend(inputs);
        }
    }

    /// Whether whatever a waiting region reads will be there however long it waits: nobody downstream was told of an
    /// end, or will be but by regions that wait, too.
    fn keeps_inputs(&self, id: RegionId) -> bool {
        self.regions[&id].region.inputs.iter().all(|input| !self.ends.is_told(input.value))
    }

    /// A session's list of parked regions holds those that are, once each.
    pub(super) fn forget_unparked(&mut self, owner: SessionId) {
        let Some(session) = self.sessions.get_mut(&owner) else { return };
        let is_parked = |id: &RegionId| self.regions.get(id).is_some_and(Record::is_parked);
        session.parked.retain(is_parked);
        session.parked.sort_unstable();
        session.parked.dedup();
    }

    /// A session has parked many nodes: if they are still many, they run.
    fn limit_parked(&mut self, owner: SessionId) {
        self.forget_unparked(owner);
        let Some(session) = self.sessions.get_mut(&owner) else { return };
        session.parked_nodes = session.parked.iter().map(|id| self.regions[id].region.nodes.len()).sum();
        if session.parked_nodes > self.kept.lazy_max() / 2 {
            self.unpark_all(owner);
        }
    }

    /// All that a session has parked runs, since a limit asks for it.
    pub(super) fn unpark_all(&mut self, owner: SessionId) {
        let Some(session) = self.sessions.get_mut(&owner) else { return };
        session.parked_nodes = 0;
        for id in std::mem::take(&mut session.parked) {
            self.unpark_by_limit(id);
        }
    }

    /// A region runs, if it is parked, since a limit asks for it.
    pub(super) fn unpark_by_limit(&mut self, id: RegionId) {
        self.unpark(id, Cause::Limit);
    }

    /// Puts the parked regions back into the queue that make what a region reads. False if there is none.
    ///
    /// Who asks for something and gives it up again, step by step, would put all that it is made from into the queue and
    /// out of it each time: that waits until it could be sent.
    pub(super) fn unpark_makers(&mut self, id: RegionId) -> bool {
        if self.regions.parked() == 0 {
            return false;
        }
        let inputs = &self.regions[&id].region.inputs;
        let makers = inputs.iter().filter_map(|input| self.parked_maker(self.graph.get(input.value)?));
        let makers: SmallVec<[RegionId; 4]> = makers.collect();
        makers.iter().for_each(|maker| self.unpark(*maker, Cause::Demand));
        !makers.is_empty()
    }

    /// Whether a parked region makes something that a region reads.
    pub(super) fn has_parked_makers(&self, id: RegionId) -> bool {
        let mut inputs = self.regions[&id].region.inputs.iter();
        inputs.any(|input| self.graph.get(input.value).is_some_and(|live| self.parked_maker(live).is_some()))
    }

    /// Puts a parked region back into the queue, where it holds credits again.
    pub(super) fn unpark(&mut self, id: RegionId, cause: Cause) {
        if !self.regions.get(&id).is_some_and(Record::is_parked) {
            return;
        }
        self.regions.change(id, Change::Unpark(cause));
        let record = self.regions.at(id);
        let region = record.region.clone();
        let nodes = region.nodes.len() as u32;
        record.credits = nodes;
        if nodes > 0 {
            let bytes = self.bytes_kept_of(region.inputs.iter().map(|input| input.value));
            self.ledger.charge(Charge { session: region.session, nodes, bytes });
        }
        self.enqueue(id);
    }

    /// The parked region that would make a value.
    pub(super) fn parked_maker(&self, live: &Live) -> Option<RegionId> {
        let Home::Coming(id) = live.home else { return None };
        self.regions.get(&id).is_some_and(Record::is_parked).then_some(id)
    }

    /// A value of a parked region is asked for.
    pub(super) fn ask_again(&mut self, at: NodeIndex, id: RegionId, want: Want) {
        let live = &mut self.graph[at];
        if want == Want::Host && live.host.is_none() {
            live.readback.ask(id);
            Arc::make_mut(&mut self.regions.at(id).region).readbacks.push(live.node.value);
        }
        self.unpark(id, Cause::Demand);
    }

    /// The parked regions that would run if these values were asked for, in the order of cutting, to be rendered;
    /// `asked` is what is asked for.
    pub(super) fn preview_parked(&self, values: impl Iterator<Item = ValueId>, asked: ValueId) -> Vec<Region> {
        let mut found = BTreeSet::new();
        let mut work: Vec<ValueId> = values.collect();
        while let Some(value) = work.pop() {
            let Some(id) = self.graph.get(value).and_then(|live| self.parked_maker(live)) else { continue };
            let record = &self.regions[&id];
            if found.insert((record.order, id)) {
                work.extend(record.region.inputs.iter().map(|input| input.value));
            }
        }
        let preview = |id: RegionId| {
            let mut region = (*self.regions[&id].region).clone();
            region.preview = true;
            for input in &mut region.inputs {
                let live = self.graph.get(input.value).expect("SCHED-8: a region's input is live");
                input.source = live.host.clone().filter(|_| !live.known);
                input.dies = false;
            }
            region.readbacks.extend(region.nodes.iter().filter(|n| n.output && n.value == asked).map(|n| n.value));
            region
        };
        found.into_iter().map(|(_, id)| preview(id)).collect()
    }

    /// Tells residency that nobody waits for what a region downstream makes. If it is not placed yet, it comes back
    /// and is parked (`take_back`).
    pub(super) fn call_back(&mut self, id: RegionId, out: &mut Vec<SchedulerInstruction>) {
        let record = &self.regions[&id];
        let mut inputs = record.region.inputs.iter();
        let is_first = record.attempt == Attempt::First && !record.is_stale();
        if !is_first
            || record.region.nodes.is_empty()
            || inputs.any(|input| input.dies || !self.ends.is_untold(input.value))
        {
            return;
        }
        self.regions.change(id, Change::CallBack);
        out.push(SchedulerInstruction::Abandon { region: id });
    }

    /// A region that was called back has come, and somebody may ask for what it makes: it waits for its turn again, or
    /// is parked.
    pub(super) fn take_back(&mut self, id: RegionId, error: &Error, out: &mut Vec<SchedulerInstruction>) {
        // It did not fail: this was no attempt.
        let attempt = self.regions[&id].attempt;
        let again = self.repeat(id, error, out);
        if self.regions.contains(&again) {
            self.regions.at(again).attempt = attempt;
            self.idle.push(again);
        }
    }
}
