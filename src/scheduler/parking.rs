//! Parks regions that no gather waits for, while a program may still ask for their outputs.
//!
//! In: regions whose values lost their last demand. Out: they leave the queue, and return to it unchanged when one of
//! their values is asked for; `CancelRegion` for regions that are downstream already. Must hold: SCHED-12.
//!
//! A parked region keeps its inputs alive, as lazy values do, and has given its credits back, as they have. It is
//! computed after all if its session has parked more nodes than it may leave lazy, if parked regions keep too much
//! memory (`keeping.rs`), or if the program waits for memory. No region can announce the end of its inputs, since its
//! own turn is not known: residency is told once all readers have ended.

use super::graph::{Live, Residence};
use super::ledger::Charge;
use super::regions::{Attempt, Cause, Change, UnfinishedRegion};
use super::state::State;
use crate::contract::messages::scheduler::SchedulerInstruction;
use crate::contract::region::Region;
use crate::contract::tape::Want;
use crate::error::Error;
use crate::ids::{RegionId, SessionId, ValueId};
use petgraph::stable_graph::NodeIndex;
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// How often one region may be parked. A program that demands and cancels the same value again and again gets it
/// computed after that many times, before parking has cost more than computing it.
const PARKINGS_MAX: u8 = 64;

impl State {
    /// Whether a region has to run: a limit asked for it, or a gather or a region that is not parked waits for one of
    /// its outputs or readbacks.
    pub(super) fn is_awaited(&self, id: RegionId) -> bool {
        let record = &self.regions[&id];
        let runs = |reader: &RegionId| *reader != id && self.regions.get(reader).is_some_and(|r| !r.is_parked());
        let awaits = |live: &Live| !live.gathers.is_empty() || live.regions.iter().any(runs);
        let mut outputs = record.region.nodes.iter().filter(|n| n.output);
        record.is_for_limit()
            || outputs.any(|node| self.graph.get(node.value).is_some_and(awaits))
            || record.region.readbacks.iter().any(|value| self.wants_readback(*value))
    }

    /// Takes a region out of the queue until one of its outputs is asked for. Adds its inputs to `work`: the regions
    /// that make them may not be needed now either.
    pub(super) fn park(&mut self, id: RegionId, work: &mut Vec<ValueId>, out: &mut Vec<SchedulerInstruction>) {
        let record = &self.regions[&id];
        let is_first = record.attempt == Attempt::First && record.parkings < PARKINGS_MAX;
        if !record.is_queued() || !is_first || !self.keeps_inputs(id) {
            return;
        }
        self.dequeue(id);
        let (credits, readbacks) = self.regions.park(id);
        for value in readbacks {
            let at = self.graph.find(value).expect("SCHED-8: a readback's value is live");
            if self.graph[at].readback.is_by(id) {
                self.graph.readback_withdrawn(at);
            }
        }
        let region = &self.regions[&id].region;
        let (owner, nodes) = (region.session, region.nodes.len());
        let inputs: Vec<ValueId> = region.inputs.iter().map(|input| input.value).collect();
        for value in &inputs {
            // A waiting region may now run before this one, so it must not end the input.
            self.ends.unschedule_any(*value);
        }
        self.ledger.credit(owner, credits, out);
        if self.sessions.parked(owner, id, nodes) > self.kept.lazy_max() {
            self.limit_parked(owner);
        }
        if self.regions[&id].is_parked() {
            self.add_kept_by_parked(owner, self.bytes_kept_of(inputs.iter().copied()));
            work.extend(inputs);
        }
    }

    /// Whether a waiting region's inputs stay alive however long it waits: residency was told of no input's end.
    fn keeps_inputs(&self, id: RegionId) -> bool {
        self.regions[&id].region.inputs.iter().all(|input| !self.ends.is_announced(input.value))
    }

    /// Removes from a session's list of parked regions duplicates and regions that are not parked any more.
    pub(super) fn forget_unparked(&mut self, owner: SessionId) {
        self.sessions.prune_parked(owner, |id| self.regions.get(&id).is_some_and(UnfinishedRegion::is_parked));
    }

    /// Called when a session has parked many nodes. Counts them again, and queues all its parked regions if they are
    /// still too many.
    fn limit_parked(&mut self, owner: SessionId) {
        self.forget_unparked(owner);
        let nodes = self.sessions.count_parked(owner, |id| self.regions[&id].region.nodes.len());
        if nodes > self.kept.lazy_max() / 2 {
            self.unpark_all(owner);
        }
    }

    /// Queues all parked regions of a session, since a limit asks for it.
    pub(super) fn unpark_all(&mut self, owner: SessionId) {
        for id in self.sessions.take_parked(owner) {
            self.unpark_by_limit(id);
        }
    }

    /// Queues a region, if it is parked, since a limit asks for it.
    pub(super) fn unpark_by_limit(&mut self, id: RegionId) {
        self.unpark(id, Cause::Limit);
    }

    /// Queues the parked regions that make a region's inputs. Returns false if there are none.
    ///
    /// This is done only when the region itself could be sent. A program that demands and cancels a value repeatedly
    /// would otherwise move all regions that the value depends on in and out of the queue each time.
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

    /// Whether a parked region makes one of a region's inputs.
    pub(super) fn has_parked_makers(&self, id: RegionId) -> bool {
        let mut inputs = self.regions[&id].region.inputs.iter();
        inputs.any(|input| self.graph.get(input.value).is_some_and(|live| self.parked_maker(live).is_some()))
    }

    /// Puts a parked region back into the queue, where it holds credits again.
    pub(super) fn unpark(&mut self, id: RegionId, cause: Cause) {
        if !self.regions.get(&id).is_some_and(UnfinishedRegion::is_parked) {
            return;
        }
        let region = self.regions.unpark(id, cause);
        let nodes = region.nodes.len() as u32;
        if nodes > 0 {
            let bytes = self.bytes_kept_of(region.inputs.iter().map(|input| input.value));
            self.ledger.charge(Charge { session: region.session, nodes, bytes });
        }
        self.enqueue(id);
    }

    /// The parked region that would make a value.
    pub(super) fn parked_maker(&self, live: &Live) -> Option<RegionId> {
        let Residence::Coming(id) = live.home else { return None };
        self.regions.get(&id).is_some_and(UnfinishedRegion::is_parked).then_some(id)
    }

    /// A value of a parked region is asked for.
    pub(super) fn ask_again(&mut self, at: NodeIndex, id: RegionId, want: Want) {
        let live = &self.graph[at];
        if want == Want::Host && live.host.is_none() {
            self.regions.add_readback(id, live.node.value);
            self.graph.readback_asked(at, id);
        }
        self.unpark(id, Cause::Demand);
    }

    /// Copies, for `explain()`, of the parked regions that would run if these values were asked for, in the order of
    /// cutting. `asked` is the value that is explained.
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

    /// Tells residency that nothing waits for the outputs of a region downstream. If the region is not placed yet,
    /// residency returns it as cancelled, and it is parked (`take_back`).
    pub(super) fn call_back(&mut self, id: RegionId, out: &mut Vec<SchedulerInstruction>) {
        let record = &self.regions[&id];
        let mut inputs = record.region.inputs.iter();
        let is_first = record.attempt == Attempt::First && !record.is_stale();
        if !is_first
            || record.region.nodes.is_empty()
            || inputs.any(|input| input.dies || !self.ends.is_undecided(input.value))
        {
            return;
        }
        self.regions.change(id, Change::CallBack);
        out.push(SchedulerInstruction::CancelRegion { region: id });
    }

    /// Queues a region that was called back and returned, whose outputs may still be asked for. It is parked at the end
    /// of the event if nothing waits for them.
    pub(super) fn take_back(&mut self, id: RegionId, error: &Error, out: &mut Vec<SchedulerInstruction>) {
        let attempt = self.regions[&id].attempt;
        let again = self.repeat(id, error, out);
        if self.regions.contains(&again) {
            self.regions.uncount_attempt(again, attempt);
            self.recheck.add(again);
        }
    }
}
