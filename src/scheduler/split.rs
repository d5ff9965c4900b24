//! Splits a failed region into independent parts, so that only the part at fault fails.
//!
//! In: a region that could not be planned, or that found no memory. Out: regions of its parts that share no node, each
//! sent again. Must hold: a region is taken apart once; its parts read the same inputs, have its place in the order of
//! cutting, and end no value.

use super::cancel::joined;
use super::graph::Residence;
use super::lineage::part_of;
use super::regions::{Attempt, UnfinishedRegion, move_to};
use super::state::{PARTS_MAX, State};
use crate::contract::messages::scheduler::SchedulerInstruction;
use crate::contract::region::Region;
use crate::ids::{RegionId, ValueId};
use rustc_hash::{FxHashMap, FxHashSet};

impl State {
    /// Queues the parts of a failed region that are still needed. Returns false if the region has only one part, was
    /// repeated or split before, or has an input that ended and cannot be sent again.
    pub(super) fn take_apart(&mut self, id: RegionId, out: &mut Vec<SchedulerInstruction>) -> bool {
        let record = &self.regions[&id];
        if record.attempt != Attempt::First {
            return false;
        }
        let is_needed = |value: &ValueId| self.needs_output(id, *value) || self.wants_readback(*value);
        let all = parts(&record.region);
        let count = all.len();
        let (parts, unneeded): (Vec<_>, Vec<_>) = all.into_iter().partition(|part| part.iter().any(is_needed));
        // Whether residency was told, or will be told, of an input's end, and it cannot be sent again from host memory.
        let is_spent = |value: ValueId| {
            let live = self.graph.get(value).expect("SCHED-8: a region's input is live");
            !self.ends.is_undecided(value) && (live.host.is_none() || !matches!(live.home, Residence::Here))
        };
        if count < 2 || parts.is_empty() || record.region.inputs.iter().any(|input| is_spent(input.value)) {
            return false;
        }
        let whole = self.regions.remove(id);
        for input in &whole.region.inputs {
            let at = self.graph.find(input.value).expect("SCHED-8: a region's input is live");
            self.graph.reader_ended(at, id);
            if self.ends.is_announced(input.value) {
                // Its host data is sent again. It ends when no region reads it any more.
                self.graph.freed(at, None);
                self.ends.made_again(input.value);
            }
        }
        for (number, wanted) in parts.iter().enumerate() {
            self.send_part(&whole, number, wanted);
        }
        self.fail_unneeded(unneeded.into_iter().flatten().collect(), out);
        let inputs = whole.region.inputs.iter().filter_map(|input| self.graph.find(input.value)).collect();
        self.release(inputs, out);
        true
    }

    /// Queues the part of a region that makes these values. A region with outputs reads back only some of its outputs.
    fn send_part(&mut self, whole: &UnfinishedRegion, number: usize, wanted: &FxHashSet<ValueId>) {
        let again = self.regions.take_numbers(1);
        let mut region = part_of(&whole.region, wanted);
        region.id = again;
        region.readbacks.extend(whole.region.readbacks.iter().filter(|value| wanted.contains(value)));
        self.read_by(again, &region.inputs);
        self.comes_again(&region);
        let (order, credits) = (whole.order + number as u64, if number == 0 { whole.credits } else { 0 });
        if !self.fleet.is_open(region.device) {
            move_to(self.fleet.fallback(), &mut region);
        }
        let record = UnfinishedRegion::part(region, whole, order, credits);
        self.regions.insert(again, record);
        self.enqueue(again);
    }
}

/// The outputs of a region, grouped so that groups share no node.
fn parts(region: &Region) -> Vec<FxHashSet<ValueId>> {
    let joined = joined(region, false);
    let mut numbers: FxHashMap<usize, usize> = FxHashMap::default();
    let mut parts: Vec<FxHashSet<ValueId>> = Vec::new();
    for (position, node) in region.nodes.iter().enumerate().filter(|(_, node)| node.output) {
        let next = parts.len().min(PARTS_MAX - 1);
        let number = *numbers.entry(joined.find(position)).or_insert(next);
        if number == parts.len() {
            parts.push(FxHashSet::default());
        }
        parts[number].insert(node.value);
    }
    parts
}
