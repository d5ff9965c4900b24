//! Computes values again that were lost with their device, if their inputs still exist.
//!
//! In: a value that lived only on a lost device, and how it was made. Out: a region that makes it again, in its place
//! in the order of cutting. Must hold: once a loss was handled, the value is either coming again or failed; several
//! lost values of one region are computed by one region again.
//!
//! If an input is lost, too, its own report of the loss follows. It is then made again, before its readers, since its
//! region comes earlier in the order of cutting; or it fails, and its readers are pruned. No such region is sent before
//! the device has reported whether it serves again.

use super::graph::{Lineage, Live, Residence};
use super::regions::UnfinishedRegion;
use super::state::State;
use super::story::What;
use super::taint;
use crate::contract::region::{Region, RegionInput};
use crate::ids::{RegionId, ValueId};
use petgraph::stable_graph::NodeIndex;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Regions that compute lost values again, by their place in the order of cutting: a second value that was lost with
/// the first is computed by the same region.
#[derive(Debug, Default)]
pub(super) struct Again(FxHashMap<u64, RegionId>);

impl Again {
    /// The region that was last queued to compute lost values of this place again.
    fn find(&self, order: u64) -> Option<RegionId> {
        self.0.get(&order).copied()
    }

    /// A region was queued that computes lost values of this place again.
    fn note(&mut self, order: u64, id: RegionId) {
        self.0.insert(order, id);
    }

    /// The device has reported whether it serves again: values that are lost from now on belong to another loss.
    pub fn loss_ended(&mut self) {
        self.0.clear();
    }

    /// Places of which a region is known.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl State {
    /// Queues a region that computes a lost value again. Returns false if an input no longer exists.
    pub(super) fn make_again(&mut self, at: NodeIndex) -> bool {
        let live = &self.graph[at];
        let value = live.node.value;
        let Some(lineage) = live.lineage.clone().filter(|l| self.has_inputs(&l.region, value)) else { return false };
        let waits = |id: &RegionId| self.regions.get(id).is_some_and(UnfinishedRegion::waits);
        let id = match self.again.find(lineage.order).filter(waits) {
            Some(id) => {
                self.widen(id, &lineage, value);
                id
            }
            None => self.restore(&lineage, value),
        };
        let wants = self.wants_host(&self.graph[at]);
        // The end that residency was told of was that of the lost value: this value has a new end.
        self.ends.made_again(value);
        self.graph.made_again_by(at, id);
        let live = &self.graph[at];
        // A gather waits for its elements, and the region that was to read them back is finished: this region does it.
        if wants && live.readback.region().is_none_or(|r| !self.regions.contains(&r)) {
            self.graph.readback_asked(at, id);
            self.regions.add_readback(id, value);
        }
        let live = &self.graph[at];
        self.regions.go_stale(live.regions.iter().copied());
        self.log.note(value, What::Cut(id));
        true
    }

    /// Whether the inputs from which the region computes a value exist, as far as losses have been reported.
    fn has_inputs(&self, region: &Region, value: ValueId) -> bool {
        let part = part_of(region, &FxHashSet::from_iter([value]));
        part.inputs.iter().all(|input| {
            let exists = |live: &Live| !matches!(live.home, Residence::Failed(_) | Residence::Lazy);
            self.ends.is_undecided(input.value) && self.graph.get(input.value).is_some_and(exists)
        })
    }

    /// Queues a new region that computes one value of a finished region.
    fn restore(&mut self, lineage: &Lineage, value: ValueId) -> RegionId {
        let id = self.regions.take_numbers(1);
        let mut region = part_of(&lineage.region, &FxHashSet::from_iter([value]));
        region.id = id;
        region.placement.reason = "lost with its device, and made again";
        self.read_by(id, &region.inputs);
        self.regions.insert(id, UnfinishedRegion::again(region, lineage.order));
        self.enqueue(id);
        self.again.note(lineage.order, id);
        self.ledger.count_made_again();
        id
    }

    /// Adds another lost value to a region that computes lost values again.
    fn widen(&mut self, id: RegionId, lineage: &Arc<Lineage>, value: ValueId) {
        let old = &self.regions[&id].region;
        let wanted = old.nodes.iter().filter(|n| n.output).map(|n| n.value).chain([value]).collect();
        let part = part_of(&lineage.region, &wanted);
        let fresh: Vec<RegionInput> =
            part.inputs.iter().filter(|i| old.inputs.iter().all(|o| o.value != i.value)).cloned().collect();
        self.read_by(id, &fresh);
        self.regions.widen(id, part);
        self.ledger.count_made_again();
    }

    pub(super) fn read_by(&mut self, id: RegionId, inputs: &[RegionInput]) {
        for input in inputs {
            self.graph.reader_queued(input.value, id);
        }
    }
}

/// The part of a region that makes these values, with nothing to read back and nothing that ends with it.
pub(super) fn part_of(region: &Region, wanted: &FxHashSet<ValueId>) -> Region {
    let mut part = region.clone();
    part.readbacks.clear();
    part.inputs.iter_mut().for_each(|input| input.dies = false);
    for node in &mut part.nodes {
        node.output = wanted.contains(&node.value);
    }
    let (inputs, errors) = (vec![None; part.inputs.len()], vec![None; part.nodes.len()]);
    taint::prune(&mut part, &inputs, &errors);
    part
}
