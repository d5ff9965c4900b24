//! The table of the unfinished regions, and what happens to them there.
//!
//! In: regions that were cut; events, each a method that changes all fields which the event concerns. Out: records, to
//! read. Must hold: LIFE-1 and LIFE-3; only these methods change a region, since the table hands out no record to be
//! changed; a region that was sent keeps its nodes, inputs and readbacks.

use super::{Attempt, Cause, Change, Life, UnfinishedRegion};
use crate::contract::region::Region;
use crate::error::Error;
use crate::ids::{DeviceId, RegionId, ValueId};
use crate::scheduler::taint;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The unfinished regions, sorted by number, so that iteration has the same order in every run.
#[derive(Debug, Default)]
pub(in crate::scheduler) struct Regions {
    records: BTreeMap<RegionId, UnfinishedRegion>,
    /// The number of the region that is cut next.
    next: u64,
    /// Regions that are downstream.
    downstream: usize,
    /// Regions that are parked.
    parked: usize,
    /// Regions that were sent so far.
    sends: u64,
}

impl Regions {
    /// The number that the next region gets.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Reserves numbers for `count` regions. Returns the first one.
    pub fn take_numbers(&mut self, count: u64) -> RegionId {
        self.next += count;
        RegionId(self.next - count)
    }

    /// Adds a region that waits for its turn.
    pub fn insert(&mut self, id: RegionId, record: UnfinishedRegion) {
        assert!(record.is_queued(), "LIFE-1: a region begins in its session's queue");
        self.records.insert(id, record);
    }

    /// Removes a region from the table.
    pub fn remove(&mut self, id: RegionId) -> UnfinishedRegion {
        let record = self.records.remove(&id).expect("SCHED-8: an unfinished region has a record");
        assert!(!record.is_downstream(), "LIFE-1: {id} ends downstream, and nobody said so");
        self.parked -= usize::from(record.is_parked());
        record
    }

    /// Gives a region that returned a new number, and lets it wait for its turn again.
    pub fn requeue(&mut self, id: RegionId) -> RegionId {
        let mut record = self.remove(id);
        let again = self.take_numbers(1);
        record.life = record.life.change(Change::Requeue);
        record.attempt = record.attempt.next();
        Arc::make_mut(&mut record.region).id = again;
        self.insert(again, record);
        again
    }

    /// Applies a change to a region's life (LIFE-1).
    pub fn change(&mut self, id: RegionId, change: Change) {
        let record = self.at(id);
        let before = (record.is_downstream(), record.is_parked());
        record.life = std::mem::replace(&mut record.life, Life::Parked).change(change);
        let after = (record.is_downstream(), record.is_parked());
        self.downstream = self.downstream + usize::from(after.0) - usize::from(before.0);
        self.parked = self.parked + usize::from(after.1) - usize::from(before.1);
    }

    /// A region goes downstream, after `prepare` has written into it what is known only now. Returns it.
    pub fn send(&mut self, id: RegionId, prepare: impl FnOnce(&mut Region)) -> Arc<Region> {
        self.change(id, Change::Send { turn: self.sends });
        self.sends += 1;
        // No other actor holds the region at this point, so this does not copy it.
        let region = &mut self.at(id).region;
        prepare(Arc::make_mut(region));
        region.clone()
    }

    /// A region is parked. It holds no credits any more and reads nothing back (SCHED-12). Returns the credits that it
    /// held and the values that it was to read back.
    pub fn park(&mut self, id: RegionId) -> (u32, Vec<ValueId>) {
        self.change(id, Change::Park);
        let record = self.at(id);
        record.parkings += 1;
        let readbacks = std::mem::take(&mut Arc::make_mut(&mut record.region).readbacks);
        (std::mem::take(&mut record.credits), readbacks)
    }

    /// A parked region waits for its turn again, and holds a credit for each of its nodes. Returns it.
    pub fn unpark(&mut self, id: RegionId, cause: Cause) -> Arc<Region> {
        self.change(id, Change::Unpark(cause));
        let record = self.at(id);
        record.credits = record.region.nodes.len() as u32;
        record.region.clone()
    }

    /// A region that waits will read a value back to host memory.
    pub fn add_readback(&mut self, id: RegionId, value: ValueId) {
        self.waiting(id).readbacks.push(value);
    }

    /// A region that waits runs on this device, since its own is gone.
    pub fn move_to(&mut self, id: RegionId, device: DeviceId) {
        move_to(device, self.waiting(id));
    }

    /// All regions that wait for a device run on another one, since theirs is gone.
    pub fn move_all(&mut self, gone: DeviceId, to: DeviceId) {
        let waiting = self.records.values_mut().filter(|record| record.waits() && record.region.device == gone);
        waiting.for_each(|record| move_to(to, Arc::make_mut(&mut record.region)));
    }

    /// A region that waits loses the nodes and readbacks that have an error, and the inputs that only those need.
    /// Returns these inputs.
    pub fn lose_failed(&mut self, id: RegionId, inputs: &[Option<Error>], nodes: &[Option<Error>]) -> Vec<ValueId> {
        taint::prune(self.waiting(id), inputs, nodes)
    }

    /// A region that waits loses outputs that are not needed, and all that only these need. Returns the inputs that it
    /// loses.
    pub fn lose_outputs(&mut self, id: RegionId, unneeded: &FxHashSet<ValueId>) -> Vec<ValueId> {
        let region = self.waiting(id);
        for node in &mut region.nodes {
            node.output &= !unneeded.contains(&node.value);
        }
        region.readbacks.retain(|value| !unneeded.contains(value));
        let (inputs, errors) = (vec![None; region.inputs.len()], vec![None; region.nodes.len()]);
        taint::prune(region, &inputs, &errors)
    }

    /// A region that computes lost values again, and waits, computes more of them: it becomes this larger part of the
    /// region that made them first. Its number, its placement and its readbacks stay.
    pub fn widen(&mut self, id: RegionId, part: Region) {
        let region = self.waiting(id);
        let (placement, readbacks) = (std::mem::take(&mut region.placement), std::mem::take(&mut region.readbacks));
        *region = Region { id, placement, readbacks, ..part };
    }

    /// A region came back because it had been called back: it did not fail, so this does not count as an attempt.
    pub fn uncount_attempt(&mut self, id: RegionId, attempt: Attempt) {
        self.at(id).attempt = attempt;
    }

    /// Regions that make inputs of these are queued again.
    pub fn go_stale(&mut self, readers: impl IntoIterator<Item = RegionId>) {
        readers.into_iter().for_each(|reader| self.change(reader, Change::GoStale));
    }

    /// Removes all regions from the table, whatever their state.
    pub fn take_all(&mut self) -> impl Iterator<Item = UnfinishedRegion> + use<> {
        (self.downstream, self.parked) = (0, 0);
        std::mem::take(&mut self.records).into_values()
    }

    /// The record of a region.
    pub fn get(&self, id: &RegionId) -> Option<&UnfinishedRegion> {
        self.records.get(id)
    }

    /// The record of an unfinished region, to be changed.
    fn at(&mut self, id: RegionId) -> &mut UnfinishedRegion {
        self.records.get_mut(&id).expect("SCHED-8: it is unfinished")
    }

    /// A region that waits to be sent, to be changed: no other actor has it.
    fn waiting(&mut self, id: RegionId) -> &mut Region {
        let record = self.at(id);
        assert!(record.waits(), "LIFE-1: {id} changes after it was sent");
        Arc::make_mut(&mut record.region)
    }

    /// Whether a region is unfinished.
    pub fn contains(&self, id: &RegionId) -> bool {
        self.records.contains_key(id)
    }

    /// The unfinished regions.
    pub fn ids(&self) -> impl Iterator<Item = RegionId> + '_ {
        self.records.keys().copied()
    }

    /// All records.
    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = (&RegionId, &UnfinishedRegion)> + '_ {
        self.records.iter()
    }

    /// Unfinished regions.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether no region is unfinished.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Regions that are downstream.
    pub fn downstream(&self) -> usize {
        self.downstream
    }

    /// Regions that are parked.
    pub fn parked(&self) -> usize {
        self.parked
    }
}

/// Places a region on another device, since its own is gone.
pub(in crate::scheduler) fn move_to(device: DeviceId, region: &mut Region) {
    region.device = device;
    region.placement.reason = "the device that it was placed on is gone";
}

impl std::ops::Index<&RegionId> for Regions {
    type Output = UnfinishedRegion;
    fn index(&self, id: &RegionId) -> &UnfinishedRegion {
        &self.records[id]
    }
}
