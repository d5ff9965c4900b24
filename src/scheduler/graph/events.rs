//! What happens to live values. Each method is one event in a value's life and changes all fields that the event
//! concerns.
//!
//! In: an event, and the value that it happens to. Out: what the caller needs of the value's former state. Must hold:
//! only these methods change a [`Live`] value, since the graph hands out no value to be changed.

use super::{Lineage, Live, LiveGraph, Residence};
use crate::error::Error;
use crate::host_buffer::HostBuffer;
use crate::ids::{DeviceId, GatherId, RegionId, ValueId};
use crate::scheduler::whereabouts::Places;
use petgraph::stable_graph::NodeIndex;
use smallvec::SmallVec;
use std::sync::Arc;

/// The program, and the cuts of its tapes.
impl LiveGraph {
    /// The program pins a value to a device. A value that was cut already stays where it is.
    pub fn pinned(&mut self, value: ValueId, device: DeviceId) {
        if let Some(at) = self.find(value).filter(|at| self[*at].is_lazy()) {
            self.live(at).node.pin = Some(device);
        }
    }

    /// The program dropped its handle of a value. Returns the entry, if the value is live.
    pub fn handle_dropped(&mut self, value: ValueId) -> Option<NodeIndex> {
        let at = self.find(value)?;
        self.live(at).held = false;
        Some(at)
    }

    /// A gather waits for a value from now on. Returns whether the value is live.
    pub fn gather_opened(&mut self, value: ValueId, gather: GatherId) -> bool {
        self.find(value).map(|at| self.live(at).gathers.push(gather)).is_some()
    }

    /// A gather was answered or withdrawn: it keeps the value no longer.
    pub fn gather_closed(&mut self, value: ValueId, gather: GatherId) {
        if let Some(at) = self.find(value) {
            self.live(at).gathers.retain(|open| *open != gather);
        }
    }

    /// A cut computes a node, so the node's recording credit, if it still has one, moves to the cut's region. Returns
    /// whether `segment` recorded the node: only then it has a credit.
    pub fn credit_taken(&mut self, at: NodeIndex, segment: u64) -> bool {
        self.live(at).segment.take() == Some(segment)
    }

    /// A cut writes a lazy value out: this region makes it, on this device. It reads its arguments no longer (SCHED-2).
    pub fn cut_into(&mut self, at: NodeIndex, region: RegionId, device: DeviceId) {
        self.detach(at);
        let live = self.live(at);
        live.home = Residence::Coming(region);
        live.places = Places::made_on(device);
    }

    /// A cut computes a lazy value inside a kernel, at this cost in elements, and does not store it.
    pub fn passed(&mut self, at: NodeIndex, cost_elements: u64) {
        self.live(at).passing.note(cost_elements);
    }

    /// A component of a cut ran on the host and would have saved this time if the value had been on a GPU (PLACE-1).
    pub fn missed(&mut self, at: NodeIndex, us: f64) {
        self.live(at).missed_us += us;
    }

    /// The bytes of a dropped value are counted among those that its session's lazy values keep: once for each value.
    pub fn counted_as_kept(&mut self, at: NodeIndex) {
        self.live(at).counted_as_kept = true;
    }

    /// The value will never exist, for this reason. It has no readback from now on, and reads nothing (SCHED-2).
    /// Returns the arguments that it read.
    pub fn failed(&mut self, at: NodeIndex, error: Error) -> SmallVec<[NodeIndex; 4]> {
        let arguments = self.detach(at);
        let live = self.live(at);
        live.home = Residence::Failed(error);
        live.readback.end();
        arguments
    }
}

/// Regions that read and make values.
impl LiveGraph {
    /// A region that reads a value was queued (SCHED-8).
    pub fn reader_queued(&mut self, value: ValueId, region: RegionId) {
        self.known(value).regions.push(region);
    }

    /// A region that reads a value got a new number.
    pub fn reader_renumbered(&mut self, value: ValueId, old: RegionId, new: RegionId) {
        self.known(value).regions.iter_mut().filter(|reader| **reader == old).for_each(|reader| *reader = new);
    }

    /// A region does not read a value any more: it ended, or it lost the nodes that did.
    pub fn reader_ended(&mut self, at: NodeIndex, region: RegionId) {
        self.live(at).regions.retain(|reader| *reader != region);
    }

    /// A region of the value's own session reads it on a device, which has it from then on.
    pub fn read_on(&mut self, value: ValueId, device: DeviceId) {
        self.known(value).places.read_on(device);
    }

    /// A region that reads a value is sent, so residency knows the value from now on. Returns its host data if
    /// residency does not have that: the value is new to it, or may have been freed since (`may_be_freed`).
    pub fn sent_as_input(&mut self, value: ValueId, may_be_freed: bool) -> Option<Arc<HostBuffer>> {
        let live = self.known(value);
        let is_new = !std::mem::replace(&mut live.known, true) || may_be_freed;
        if is_new { live.host.clone() } else { None }
    }

    /// A region that makes a value is sent, so residency knows the value from now on.
    pub fn sent_as_output(&mut self, value: ValueId) {
        self.known(value).known = true;
    }

    /// The region that makes a value ran, with the fault that it found. Returns the reason if the value's bytes were
    /// lost before this event and no copy is in host memory.
    pub fn made(&mut self, at: NodeIndex, fault: Option<Error>, lineage: Option<Arc<Lineage>>) -> Option<Error> {
        let live = self.live(at);
        live.home = Residence::Here;
        live.fault = fault;
        live.lineage = lineage;
        live.pending_loss.take().filter(|_| live.host.is_none())
    }

    /// A region will make a value once more: its former attempt failed, or the value was lost. Residency does not know
    /// the new value.
    pub fn made_again_by(&mut self, at: NodeIndex, region: RegionId) {
        let live = self.live(at);
        live.home = Residence::Coming(region);
        live.known = false;
        live.pending_loss = None;
        live.lineage = None;
    }
}

/// Losses and readbacks.
impl LiveGraph {
    /// Residency has freed a value that is still needed. `pending_loss` is the reason if a region that was sent makes
    /// the value and no copy is in host memory: the value counts as lost when that region ends.
    pub fn freed(&mut self, at: NodeIndex, pending_loss: Option<Error>) {
        let live = self.live(at);
        live.known = false;
        live.pending_loss = pending_loss;
    }

    /// The bytes of a value were lost before the end of the region that makes it was handled.
    pub fn lost_before_its_end(&mut self, at: NodeIndex, error: Error) {
        self.live(at).pending_loss = Some(error);
    }

    /// A value's bytes were lost with their device. Returns whether its elements are in host memory: then the host is
    /// the only place that has it.
    pub fn lost(&mut self, at: NodeIndex, host: DeviceId) -> bool {
        let live = self.live(at);
        live.known = false;
        if live.host.is_some() {
            live.places = Places::made_on(host);
        }
        live.host.is_some()
    }

    /// A region will read a value back to host memory.
    pub fn readback_asked(&mut self, at: NodeIndex, region: RegionId) {
        self.live(at).readback.ask(region);
    }

    /// No region reads the value back any more.
    pub fn readback_withdrawn(&mut self, at: NodeIndex) {
        self.live(at).readback.withdraw();
    }

    /// A readback failed. While its region is unfinished, it may be repeated.
    pub fn readback_failed(&mut self, at: NodeIndex, error: Error) {
        let live = self.live(at);
        let error = live.blame(error);
        live.readback.fail(error);
    }

    /// The region that reads a value back has ended: a readback that failed is not repeated.
    pub fn readback_region_ended(&mut self, at: NodeIndex, region: RegionId) {
        self.live(at).readback.region_ended(region);
    }

    /// All gathers of a value were told that its readback failed.
    pub fn readback_failure_told(&mut self, at: NodeIndex) {
        self.live(at).readback.forget_error();
    }

    /// A value's elements are in host memory.
    pub fn arrived(&mut self, at: NodeIndex, data: Arc<HostBuffer>) {
        let live = self.live(at);
        live.host = Some(data);
        live.readback.end();
    }
}

impl LiveGraph {
    /// A value that a region reads or makes.
    fn known(&mut self, value: ValueId) -> &mut Live {
        let at = self.find(value).expect("SCHED-8: what a region reads or makes is live");
        self.live(at)
    }
}
