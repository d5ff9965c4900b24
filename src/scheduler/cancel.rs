//! What nobody waits for any more is not run: regions that wait for their turn are dropped, or cut down to what may
//! still be wanted, and parked while nobody asks for that; of those downstream, residency drops what it has not placed.
//!
//! In: values that lost a demand, or their last handle before they were made. Out: dropped regions, `Abandon`. Must
//! hold: SCHED-3, SCHED-8; a region is cut down by whole parts that share nothing, so that the kernels of what is left
//! are those that they would have been.

use super::graph::{Entries, Home};
use super::regions::Change;
use super::state::{Phase, State};
use super::taint;
use crate::contract::messages::scheduler::SchedulerInstruction;
use crate::contract::region::{Region, RegionArg, cancelled_error};
use crate::error::{Error, ErrorKind};
use crate::ids::{GatherId, RegionId, ValueId};
use petgraph::unionfind::UnionFind;
use rustc_hash::FxHashSet;
use smallvec::smallvec;
use std::sync::Arc;

impl State {
    /// A gather's future was dropped.
    pub(super) fn cancel(&mut self, gather: GatherId, out: &mut Vec<SchedulerInstruction>) {
        if let Some(value) = self.withdraw(gather) {
            self.drop_unneeded(value, out);
        }
    }

    /// Drops what only made or brought `value`, which lost a demand.
    pub(super) fn drop_unneeded(&mut self, value: ValueId, out: &mut Vec<SchedulerInstruction>) {
        let mut work = vec![value];
        while let Some(value) = work.pop() {
            let Some(at) = self.graph.find(value) else { continue };
            let live = &self.graph[at];
            let maker = match live.home {
                Home::Coming(region) => Some(region),
                _ => None,
            };
            for id in maker.into_iter().chain(live.readback.region()) {
                self.drop_if_unneeded(id, &mut work, out);
            }
            if let Some(at) = self.graph.find(value) {
                self.release(smallvec![at], out);
            }
        }
    }

    /// Drops what nobody needs of regions of which an output was let go of.
    pub(super) fn drop_idle(&mut self, out: &mut Vec<SchedulerInstruction>) {
        while !self.idle.is_empty() {
            let mut idle = std::mem::take(&mut self.idle);
            idle.sort_unstable();
            idle.dedup();
            let mut work = Vec::new();
            idle.into_iter().for_each(|id| self.drop_if_unneeded(id, &mut work, out));
            work.into_iter().for_each(|value| self.drop_unneeded(value, out));
        }
    }

    fn drop_if_unneeded(&mut self, id: RegionId, work: &mut Vec<ValueId>, out: &mut Vec<SchedulerInstruction>) {
        let Some(record) = self.regions.get(&id).filter(|r| r.waits() || r.is_downstream() && !r.is_called_back())
        else {
            return;
        };
        let region = &record.region;
        let made = |value: &ValueId| region.nodes.iter().any(|n| n.output && n.value == *value);
        let is_needed = region.nodes.iter().any(|n| n.output && self.needs_output(id, n.value))
            || region.readbacks.iter().any(|v| self.wants_readback(*v));
        match (is_needed, record.is_downstream()) {
            (true, true) if self.is_awaited(id) => {}
            (true, true) => self.call_back(id, out),
            (true, false) => {
                self.cut_down(id, work, out);
                if !self.is_awaited(id) {
                    self.park(id, work, out);
                }
            }
            (false, false) => self.drop_region(id, work, out),
            // What exists beyond the region may be asked for again, and would then wait for this readback of it.
            (false, true) if region.readbacks.iter().all(made) => {
                self.regions.change(id, Change::CallBack);
                out.push(SchedulerInstruction::Abandon { region: id });
            }
            (false, true) => {}
        }
    }

    /// Whether anybody but the region itself may still ask for one of its outputs.
    pub(super) fn needs_output(&self, id: RegionId, value: ValueId) -> bool {
        let Some(live) = self.graph.get(value) else { return false };
        let may_be_asked_for = live.reachable() && self.phase == Phase::Running;
        may_be_asked_for || !live.gathers.is_empty() || live.regions.iter().any(|r| *r != id)
    }

    pub(super) fn wants_readback(&self, value: ValueId) -> bool {
        self.graph.get(value).is_some_and(|live| self.wants_host(live))
    }

    /// Takes a region that has not been sent off the books.
    fn drop_region(&mut self, id: RegionId, work: &mut Vec<ValueId>, out: &mut Vec<SchedulerInstruction>) {
        let record = self.close_region(id, out);
        self.ledger.credit(record.region.session, record.credits, out);
        for value in &record.region.readbacks {
            if let Some(at) = self.graph.find(*value) {
                self.graph[at].readback.withdraw();
            }
        }
        let outputs = record.region.nodes.iter().filter(|n| n.output).map(|n| n.value).collect();
        self.never_made(outputs, out);
        work.extend(record.region.inputs.iter().map(|i| i.value));
    }

    /// Outputs that nobody misses will never exist.
    pub(super) fn never_made(&mut self, outputs: Vec<ValueId>, out: &mut Vec<SchedulerInstruction>) {
        let mut ended = Entries::new();
        for at in outputs.into_iter().filter_map(|v| self.graph.find(v)).collect::<Vec<_>>() {
            self.graph[at].home = Home::Failed(match self.phase {
                Phase::Running => cancelled_error(),
                Phase::Draining | Phase::Stopped => Error::new(ErrorKind::Shutdown, "the runtime has shut down"),
            });
            self.graph[at].readback.withdraw();
            ended.push(at);
        }
        self.release(ended, out);
    }

    /// Takes out of a region that has not been sent the parts that nobody needs.
    fn cut_down(&mut self, id: RegionId, work: &mut Vec<ValueId>, out: &mut Vec<SchedulerInstruction>) {
        let record = &self.regions[&id];
        if record.attempt.number() > 0 {
            return;
        }
        let needed = |value| self.needs_output(id, value) || self.wants_readback(value);
        let unneeded = unneeded_parts(&record.region, needed);
        if unneeded.is_empty() {
            return;
        }
        let record = self.regions.at(id);
        let region = Arc::make_mut(&mut record.region);
        for node in &mut region.nodes {
            node.output &= !unneeded.contains(&node.value);
        }
        region.readbacks.retain(|v| !unneeded.contains(v));
        let (inputs, errors) = (vec![None; region.inputs.len()], vec![None; region.nodes.len()]);
        let dropped = taint::prune(region, &inputs, &errors);
        let mut touched: Entries = dropped.iter().map(|value| self.read_no_more(id, *value)).collect();
        unneeded.iter().for_each(|value| self.ends.unsay(*value, id));
        touched.retain(|at| !unneeded.contains(&self.graph[*at].node.value));
        self.release(touched, out);
        self.never_made(unneeded.into_iter().collect(), out);
        work.extend(dropped);
    }
}

/// The outputs of those parts of a region, sharing neither nodes nor inputs with others, of which nobody needs
/// anything.
fn unneeded_parts(region: &Region, needed: impl Fn(ValueId) -> bool) -> FxHashSet<ValueId> {
    let parts = joined(region, true);
    let outputs = || region.nodes.iter().enumerate().filter(|(_, n)| n.output);
    let wanted: FxHashSet<usize> =
        outputs().filter(|(_, n)| needed(n.value)).map(|(position, _)| parts.find(position)).collect();
    outputs().filter(|(position, _)| !wanted.contains(&parts.find(*position))).map(|(_, n)| n.value).collect()
}

/// The nodes of a region, by position, joined with what they are made of; behind them its inputs, alike if asked for.
pub(super) fn joined(region: &Region, by_inputs: bool) -> UnionFind<usize> {
    let count = region.nodes.len();
    let mut parts = UnionFind::<usize>::new(count + region.inputs.len());
    for (position, node) in region.nodes.iter().enumerate() {
        for arg in &node.args {
            match *arg {
                RegionArg::Node(p) => drop(parts.union(position, p as usize)),
                RegionArg::Input(i) if by_inputs => drop(parts.union(position, count + i as usize)),
                RegionArg::Input(_) | RegionArg::Scalar(_) => {}
            }
        }
    }
    parts
}
