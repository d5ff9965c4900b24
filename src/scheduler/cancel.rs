//! Cancels work that is no longer needed. A queued region is dropped, or reduced to the parts whose outputs may still
//! be asked for, and parked until then. For a region downstream, residency is told to drop it if it is not placed yet.
//!
//! In: values that lost a demand, or their last handle before they were made. Out: dropped regions, `CancelRegion`.
//! Must hold: SCHED-3, SCHED-8; a region loses only whole parts that share neither nodes nor inputs with the rest, so
//! the kernels of the rest do not change.

use super::graph::{Entries, Residence};
use super::regions::Change;
use super::state::{Phase, State};
use crate::contract::messages::scheduler::SchedulerInstruction;
use crate::contract::region::{Region, RegionArg, cancelled_error};
use crate::error::{Error, ErrorKind};
use crate::ids::{GatherId, RegionId, ValueId};
use petgraph::unionfind::UnionFind;
use rustc_hash::FxHashSet;
use smallvec::smallvec;

/// Regions that may not be needed any more, such as those that lost a reader or a handle of an output before they ran.
/// At the end of the event, they are dropped, reduced, parked or called back.
#[derive(Debug, Default)]
pub(super) struct Recheck(Vec<RegionId>);

impl Recheck {
    /// A region may not be needed any more.
    pub fn add(&mut self, id: RegionId) {
        self.0.push(id);
    }

    /// All of these regions may not be needed any more.
    pub fn add_all(&mut self, ids: impl IntoIterator<Item = RegionId>) {
        self.0.extend(ids);
    }

    /// The regions that are checked now, in order, each once. None is left.
    fn take(&mut self) -> Vec<RegionId> {
        let mut ids = std::mem::take(&mut self.0);
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Regions that are still to be checked.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl State {
    /// A gather's future was dropped.
    pub(super) fn cancel(&mut self, gather: GatherId, out: &mut Vec<SchedulerInstruction>) {
        if let Some(value) = self.withdraw(gather) {
            self.drop_unneeded(value, out);
        }
    }

    /// Checks the regions that make or read back `value`, which lost a demand, and then those that make their inputs.
    /// Regions, or parts of them, that are not needed are dropped; those that nothing waits for are parked or called
    /// back.
    pub(super) fn drop_unneeded(&mut self, value: ValueId, out: &mut Vec<SchedulerInstruction>) {
        let mut work = vec![value];
        while let Some(value) = work.pop() {
            let Some(at) = self.graph.find(value) else { continue };
            let live = &self.graph[at];
            let maker = match live.home {
                Residence::Coming(region) => Some(region),
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

    /// Checks the regions in `recheck` in the same way.
    pub(super) fn drop_unneeded_regions(&mut self, out: &mut Vec<SchedulerInstruction>) {
        while !self.recheck.is_empty() {
            let mut work = Vec::new();
            self.recheck.take().into_iter().for_each(|id| self.drop_if_unneeded(id, &mut work, out));
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
            // Downstream and unneeded. A region that reads back a value of another region is not called back: a new
            // gather of that value would wait for this readback.
            (false, true) if region.readbacks.iter().all(made) => {
                self.regions.change(id, Change::CallBack);
                out.push(SchedulerInstruction::CancelRegion { region: id });
            }
            (false, true) => {}
        }
    }

    /// Whether a program, a gather or another region may still need this output of a region.
    pub(super) fn needs_output(&self, id: RegionId, value: ValueId) -> bool {
        let Some(live) = self.graph.get(value) else { return false };
        let may_be_asked_for = live.reachable() && self.phase == Phase::Running;
        may_be_asked_for || !live.gathers.is_empty() || live.regions.iter().any(|r| *r != id)
    }

    pub(super) fn wants_readback(&self, value: ValueId) -> bool {
        self.graph.get(value).is_some_and(|live| self.wants_host(live))
    }

    /// Removes a region that has not been sent, gives its credits back, and cancels its outputs.
    fn drop_region(&mut self, id: RegionId, work: &mut Vec<ValueId>, out: &mut Vec<SchedulerInstruction>) {
        let record = self.close_region(id, out);
        self.ledger.credit(record.region.session, record.credits, out);
        for value in &record.region.readbacks {
            if let Some(at) = self.graph.find(*value) {
                self.graph.readback_withdrawn(at);
            }
        }
        let outputs = record.region.nodes.iter().filter(|n| n.output).map(|n| n.value).collect();
        self.fail_unneeded(outputs, out);
        work.extend(record.region.inputs.iter().map(|i| i.value));
    }

    /// Marks unneeded outputs as failed, since no region will make them.
    pub(super) fn fail_unneeded(&mut self, outputs: Vec<ValueId>, out: &mut Vec<SchedulerInstruction>) {
        let mut ended = Entries::new();
        for at in outputs.into_iter().filter_map(|v| self.graph.find(v)).collect::<Vec<_>>() {
            let error = match self.phase {
                Phase::Running => cancelled_error(),
                Phase::Draining | Phase::Stopped => Error::new(ErrorKind::Shutdown, "the runtime has shut down"),
            };
            self.graph.failed(at, error);
            ended.push(at);
        }
        self.release(ended, out);
    }

    /// Removes the unneeded parts of a region that has not been sent.
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
        let dropped = self.regions.lose_outputs(id, &unneeded);
        let mut touched: Entries = dropped.iter().map(|value| self.read_no_more(id, *value)).collect();
        unneeded.iter().for_each(|value| self.ends.unschedule(*value, id));
        touched.retain(|at| !unneeded.contains(&self.graph[*at].node.value));
        self.release(touched, out);
        self.fail_unneeded(unneeded.into_iter().collect(), out);
        work.extend(dropped);
    }
}

/// The outputs of a region's unneeded parts. A part shares neither nodes nor inputs with the other parts; it is
/// unneeded if none of its outputs is needed.
fn unneeded_parts(region: &Region, needed: impl Fn(ValueId) -> bool) -> FxHashSet<ValueId> {
    let parts = joined(region, true);
    let outputs = || region.nodes.iter().enumerate().filter(|(_, n)| n.output);
    let wanted: FxHashSet<usize> =
        outputs().filter(|(_, n)| needed(n.value)).map(|(position, _)| parts.find(position)).collect();
    outputs().filter(|(position, _)| !wanted.contains(&parts.find(*position))).map(|(_, n)| n.value).collect()
}

/// The connected components of a region. An element below the number of nodes is a node; the inputs follow. With
/// `by_inputs`, nodes that read the same input are connected, too.
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
