//! Handles events from downstream: regions that finished or failed, values that arrived or were lost, devices that were
//! lost.
//!
//! In: completions. Out: resolved gathers, credits, regions sent again. Must hold: a region ends once; a fault or
//! failure reaches exactly the values that depend on it, and all others are still computed.

use super::demand::Gather;
use super::graph::{Entries, Lineage, Live, Residence};
use super::regions::{Change, UnfinishedRegion};
use super::state::{Phase, State, shutting_down};
use super::story::What;
use super::taint;
use crate::contract::messages::scheduler::SchedulerInstruction;
use crate::contract::region::RegionNode;
use crate::error::{Error, ErrorKind};
use crate::host_buffer::HostBuffer;
use crate::ids::{DeviceId, RegionId, ValueId};
use petgraph::stable_graph::NodeIndex;
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// How often a region is sent again before its failure counts.
const ATTEMPTS_MAX: u8 = 3;

impl State {
    /// A region ran.
    pub(super) fn region_finished(
        &mut self,
        id: RegionId,
        faults: Vec<(ValueId, Error)>,
        out: &mut Vec<SchedulerInstruction>,
    ) {
        let Some(record) = self.regions.get(&id).filter(|r| r.is_downstream()) else { return };
        let device = self.fleet.get(record.region.device);
        let named = |error: Error| match device {
            Some(device) => error.with_device(device.name.clone()),
            None => error,
        };
        let faults = faults.into_iter().map(|(value, error)| (value, named(error))).collect();
        self.leave_downstream(id, Change::Finish(faults));
        self.ends_happen(id, None, out);
        self.settle(smallvec![id], out);
    }

    /// Ends the finished regions whose inputs are all made or failed. This may allow regions that read their outputs to
    /// end, too.
    fn settle(&mut self, mut work: SmallVec<[RegionId; 4]>, out: &mut Vec<SchedulerInstruction>) {
        while let Some(id) = work.pop() {
            let Some(record) = self.regions.get(&id) else { continue };
            let Some(faults) = record.faults() else { continue };
            let homes = || {
                record.region.inputs.iter().map(|i| &self.graph.get(i.value).expect("SCHED-8: inputs are live").home)
            };
            if homes().any(|home| matches!(home, Residence::Coming(_))) {
                continue;
            }
            let inputs = self.input_errors(id, false);
            let errors = taint::spread(&record.region, &inputs, faults);
            let outputs: SmallVec<[(ValueId, Option<Error>); 4]> = (record.region.nodes.iter().zip(errors))
                .filter(|(node, _)| node.output)
                .map(|(node, error)| (node.value, error))
                .collect();
            let record = self.close_region(id, out);
            let readbacks: SmallVec<[ValueId; 4]> = record.region.readbacks.iter().copied().collect();
            let (session, credits) = (record.region.session, record.credits);
            let lineage = Lineage::of(record, self.fleet.fallback()).filter(|_| !outputs.is_empty());
            let (mut touched, mut lost) = (Entries::new(), SmallVec::<[(ValueId, Error); 1]>::new());
            for (value, error) in outputs {
                let at = self.graph.find(value).expect("SCHED-8: an output is live");
                self.log.note(value, What::Finished(id));
                if error.is_some() {
                    self.log.note(value, What::Poisoned);
                }
                let loss = self.graph.made(at, error, lineage.clone());
                lost.extend(loss.map(|why| (value, why)));
                work.extend(self.graph[at].regions.iter().copied());
                touched.push(at);
            }
            let made = touched.clone();
            for value in &readbacks {
                let Some(at) = self.graph.find(*value) else { continue };
                self.graph.readback_region_ended(at, id);
                touched.push(at);
            }
            for &at in &touched {
                if self.graph.try_get(at).is_some() {
                    self.answer(at, out);
                }
            }
            self.ledger.credit(session, credits, out);
            self.release(touched, out);
            made.into_iter().for_each(|at| self.add_kept(at));
            lost.into_iter().for_each(|(value, why)| self.value_lost(value, why, out));
        }
    }

    /// The error of each of a region's inputs. With `missing_only`, only inputs that will never exist have one; else
    /// faults count, too.
    fn input_errors(&self, id: RegionId, missing_only: bool) -> SmallVec<[Option<Error>; 4]> {
        let error = |value: ValueId| {
            let live = self.graph.get(value).expect("SCHED-8: a region's input is live");
            match &live.home {
                Residence::Failed(error) => Some(error.clone()),
                _ if missing_only => None,
                _ => live.fault.clone(),
            }
        };
        self.regions[&id].region.inputs.iter().map(|input| error(input.value)).collect()
    }

    /// A region could not be planned, placed or run.
    pub(super) fn region_failed(&mut self, id: RegionId, error: Error, out: &mut Vec<SchedulerInstruction>) {
        if !self.regions.get(&id).is_some_and(UnfinishedRegion::is_downstream) {
            return;
        }
        let was_called_back = self.regions[&id].is_called_back();
        self.leave_downstream(id, Change::Return);
        self.ends_happen(id, Some(&error), out);
        let record = &self.regions[&id];
        let lost = error.kind() == ErrorKind::DeviceLost;
        let inputs = self.input_errors(id, true);
        let is_consequence = inputs.iter().any(|e| e.is_some());
        let attempts = record.attempt.number();
        let may_repeat = (lost && attempts == 0) || record.is_stale() || is_consequence;
        let is_needed = |n: &RegionNode| n.output && self.needs_output(id, n.value);
        let unwanted = was_called_back && !record.region.nodes.iter().any(is_needed);
        if was_called_back && !unwanted && error.kind() == ErrorKind::Cancelled {
            return self.take_back(id, &error, out);
        }
        if may_repeat && !unwanted && attempts < ATTEMPTS_MAX {
            self.repeat(id, &error, out);
            return;
        }
        // One part of the region could not be planned or found no memory. The independent parts are sent again.
        let may_part = matches!(error.kind(), ErrorKind::OutOfMemory | ErrorKind::Internal) && !unwanted;
        if may_part && self.take_apart(id, out) {
            return;
        }
        let record = &self.regions[&id];
        let error = error.with_device(self.device_name(record.region.device));
        let outputs: Vec<ValueId> = record.region.nodes.iter().filter(|n| n.output).map(|n| n.value).collect();
        let readbacks = record.region.readbacks.clone();
        let record = self.close_region(id, out);
        self.ledger.credit(record.region.session, record.credits, out);
        let failed = outputs.iter().filter_map(|v| self.graph.find(*v)).map(|at| (at, error.clone())).collect();
        self.fail_values(failed, out);
        // The values that the region was to read back still exist; only the open gathers of them fail.
        for value in readbacks {
            let Some(at) = self.graph.find(value) else { continue };
            if self.graph[at].readback.is_by(id) {
                self.graph.readback_withdrawn(at);
                self.graph.readback_failed(at, error.clone());
                self.answer(at, out);
                // Where the value was lost meanwhile and is computed again, no other region reads it back.
                let blamed = self.graph[at].blame(error.clone());
                for gather in self.waiting_for_host(value) {
                    self.resolve(gather, Err(blamed.clone()), out);
                }
                self.graph.readback_failure_told(at);
                self.release(smallvec![at], out);
            }
        }
        if unwanted {
            // Its inputs may have been needed by this region only.
            record.region.inputs.iter().for_each(|input| self.drop_unneeded(input.value, out));
        }
    }

    /// Queues a failed region again, without the nodes that depend on missing values. Returns its new number.
    pub(super) fn repeat(&mut self, id: RegionId, error: &Error, out: &mut Vec<SchedulerInstruction>) -> RegionId {
        let again = self.restart(id);
        let inputs = self.regions[&again].region.inputs.iter().map(|input| input.value);
        let scheduled: Vec<ValueId> = inputs.filter(|value| self.ends.is_scheduled(*value)).collect();
        let mut failed = self.restore_ended(again, error);
        failed.extend(self.prune_region(again, out));
        self.fail_values(failed, out);
        self.release(scheduled.into_iter().filter_map(|value| self.graph.find(value)).collect(), out);
        again
    }

    /// Puts a failed region back into its session's queue, under a new number.
    fn restart(&mut self, id: RegionId) -> RegionId {
        let again = self.regions.requeue(id);
        if !self.fleet.is_open(self.regions[&again].region.device) {
            self.regions.move_to(again, self.fleet.fallback());
        }
        let region = self.regions[&again].region.clone();
        for input in &region.inputs {
            self.graph.reader_renumbered(input.value, id, again);
        }
        self.comes_again(&region);
        self.enqueue(again);
        again
    }

    /// Marks a region's outputs and readbacks as coming from it again, after a failed attempt.
    pub(super) fn comes_again(&mut self, region: &crate::contract::region::Region) {
        let mut readers: Vec<RegionId> = Vec::new();
        for node in region.nodes.iter().filter(|n| n.output) {
            let at = self.graph.find(node.value).expect("SCHED-8: an output is live");
            self.graph.made_again_by(at, region.id);
            readers.extend(self.graph[at].regions.iter().copied());
            // The end that residency was told of was that of the previous attempt's value: this value has a new end.
            self.ends.made_again(node.value);
        }
        for value in &region.readbacks {
            let at = self.graph.find(*value).expect("SCHED-8: a readback's value is live");
            self.graph.readback_asked(at, region.id);
        }
        self.regions.go_stale(readers);
    }

    /// Removes the nodes of a waiting region that depend on missing inputs. Returns the outputs that fail.
    fn prune_region(&mut self, id: RegionId, out: &mut Vec<SchedulerInstruction>) -> Vec<(NodeIndex, Error)> {
        let inputs = self.input_errors(id, true);
        if inputs.iter().all(|e| e.is_none()) {
            return Vec::new();
        }
        let record = &self.regions[&id];
        let errors = taint::spread(&record.region, &inputs, &[]);
        let outputs: Vec<(ValueId, Error)> = (record.region.nodes.iter().zip(&errors))
            .filter_map(|(node, error)| error.clone().filter(|_| node.output).map(|e| (node.value, e)))
            .collect();
        let dropped = self.regions.lose_failed(id, &inputs, &errors);
        let record = &self.regions[&id];
        let is_empty = record.region.readbacks.is_empty() && !record.region.nodes.iter().any(|n| n.output);
        let touched: Entries = dropped.into_iter().map(|value| self.read_no_more(id, value)).collect();
        let failed = outputs.into_iter().filter_map(|(v, e)| self.graph.find(v).map(|at| (at, e))).collect();
        // No region makes these outputs now, though their home still names this one. The caller passes them to
        // `fail_values` before anything reads the home.
        if is_empty {
            let record = self.close_region(id, out);
            self.ledger.credit(record.region.session, record.credits, out);
        }
        self.release(touched, out);
        failed
    }

    /// Marks values as failed, and everything that waits for them.
    pub(super) fn fail_values(&mut self, mut work: Vec<(NodeIndex, Error)>, out: &mut Vec<SchedulerInstruction>) {
        let mut finished = SmallVec::new();
        while let Some((at, error)) = work.pop() {
            let Some(live) = self.graph.try_get(at) else { continue };
            let (value, error) = (live.node.value, live.blame(error));
            let readers = live.regions.clone();
            self.graph.failed(at, error);
            self.log.note(value, What::Failed);
            self.answer(at, out);
            for reader in readers {
                match self.regions.get(&reader) {
                    Some(record) if record.waits() => work.extend(self.prune_region(reader, out)),
                    Some(record) if record.faults().is_some() => finished.push(reader),
                    _ => {}
                }
            }
            self.release(smallvec![at], out);
        }
        self.settle(finished, out);
    }

    /// A value is in host memory, or its readback failed.
    pub(super) fn value_arrived(
        &mut self,
        value: ValueId,
        data: Result<Arc<HostBuffer>, Error>,
        out: &mut Vec<SchedulerInstruction>,
    ) {
        let Some(at) = self.graph.find(value) else { return };
        match data {
            Ok(data) => {
                self.graph.arrived(at, data);
                self.log.note(value, What::Arrived);
            }
            Err(error) => {
                let Some(region) = self.graph[at].readback.region() else { return };
                // The report belongs to an earlier attempt: the current one has not been sent.
                if self.regions.get(&region).is_some_and(UnfinishedRegion::waits) {
                    return;
                }
                self.graph.readback_failed(at, error);
                // The unfinished region may be repeated. The gathers are answered when it ends.
                if self.regions.contains(&region) {
                    return;
                }
                self.graph.readback_withdrawn(at);
            }
        }
        self.answer(at, out);
        self.release(smallvec![at], out);
    }

    /// A value lived only on a device that is gone.
    pub(super) fn value_lost(&mut self, value: ValueId, error: Error, out: &mut Vec<SchedulerInstruction>) {
        let Some(at) = self.graph.find(value) else { return };
        match self.graph[at].home {
            Residence::Here => {}
            // The region has run and waits for the end of an earlier one. The loss is handled when the region ends.
            Residence::Coming(maker) if self.regions[&maker].faults().is_some() => {
                self.graph.lost_before_its_end(at, error);
                return;
            }
            Residence::Coming(_) | Residence::Lazy | Residence::Failed(_) => return,
        }
        self.log.note(value, What::Lost);
        if self.graph.lost(at, self.fleet.fallback()) {
            self.regions.go_stale(self.graph[at].regions.iter().copied());
            return;
        }
        if self.make_again(at) {
            return;
        }
        let name = self.device_name(self.graph[at].places.made());
        self.fail_values(vec![(at, error.with_device(name))], out);
    }

    /// A device reported a loss.
    pub(super) fn device_stalled(&mut self, device: DeviceId) {
        self.fleet.stall(device);
    }

    /// A device is gone for good, or was replaced and serves again with empty memory.
    pub(super) fn device_lost(&mut self, device: DeviceId, _error: Error, replaced: bool) {
        let Some(is_gone) = self.fleet.settle(device, replaced) else { return };
        self.again.loss_ended();
        if is_gone {
            self.regions.move_all(device, self.fleet.fallback());
        }
    }

    /// The drain's deadline passed: everything that is open fails, and the ring ends.
    pub(super) fn fail_everything(&mut self, out: &mut Vec<SchedulerInstruction>) {
        for (gather, Gather { value, .. }) in self.demands.close_all() {
            let place = value.and_then(|v| self.graph.get(v));
            let error = place.map_or_else(shutting_down, |live| {
                let error = live.blame(deadline());
                match self.working_on(live) {
                    Some(device) => error.with_device(self.device_name(device)),
                    None => error,
                }
            });
            out.push(SchedulerInstruction::Resolve { gather, result: Err(error) });
        }
        for record in self.regions.take_all() {
            self.ledger.credit(record.region.session, record.credits, out);
        }
        self.abandon_opening(out);
        self.graph = Default::default();
        self.ends = Default::default();
        self.sessions.forget_all();
        self.turns.forget_all();
        self.phase = Phase::Stopped;
        // Events from users that were held back while a device was being opened.
        for event in self.opening.take_held() {
            self.handle(event, out);
        }
        out.push(SchedulerInstruction::Stop);
    }

    /// The device of the region that makes or reads back a value, if there is one downstream.
    fn working_on(&self, live: &Live) -> Option<DeviceId> {
        let made_by = match live.home {
            Residence::Coming(region) => Some(region),
            _ => None,
        };
        let record = self.regions.get(&live.readback.region().or(made_by)?)?;
        (!record.waits()).then_some(record.region.device)
    }

    pub(super) fn device_name(&self, device: DeviceId) -> String {
        self.fleet.get(device).map(|d| d.name.clone()).unwrap_or_default()
    }
}

fn deadline() -> Error {
    Error::new(ErrorKind::Shutdown, "the runtime was shut down before the value was computed")
}
