//! The open gathers: which value each waits for, and when it resolves.
//!
//! In: demands, closed sessions. Out: `Resolve`, once for each gather. Must hold: SCHED-3.

use super::fates::Fate;
use super::graph::{Entries, Residence};
use super::ingest::session_closed;
use super::opening::Waiting;
use super::state::{Phase, State, shutting_down};
use crate::contract::messages::scheduler::{Delivered, SchedulerInstruction};
use crate::contract::region::CutReason;
use crate::contract::tape::Want;
use crate::error::Error;
use crate::ids::{GatherId, RegionId, SessionId, ValueId};
use petgraph::stable_graph::NodeIndex;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// An open gather.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gather {
    pub session: SessionId,
    /// The value; none for an explanation, which fusion renders.
    pub value: Option<ValueId>,
    pub want: Want,
}

/// The open gathers.
#[derive(Debug, Default)]
pub(super) struct Demands(FxHashMap<GatherId, Gather>);

impl Demands {
    /// A gather is open from now on.
    pub fn open(&mut self, id: GatherId, gather: Gather) {
        self.0.insert(id, gather);
    }

    /// A gather is answered, or was withdrawn.
    pub fn close(&mut self, id: GatherId) -> Option<Gather> {
        self.0.remove(&id)
    }

    /// Closes all gathers, and returns them in order.
    pub fn close_all(&mut self) -> Vec<(GatherId, Gather)> {
        let mut all: Vec<(GatherId, Gather)> = self.0.drain().collect();
        all.sort_unstable_by_key(|(id, _)| *id);
        all
    }

    /// A gather, if it is open.
    pub fn get(&self, id: GatherId) -> Option<Gather> {
        self.0.get(&id).copied()
    }

    /// Whether a gather is open.
    pub fn contains(&self, id: GatherId) -> bool {
        self.0.contains_key(&id)
    }

    /// Whether a gather is open and waits for the value's elements.
    pub fn wants_host(&self, id: GatherId) -> bool {
        self.get(id).is_some_and(|gather| gather.want == Want::Host)
    }

    /// Whether no gather is open.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The open gathers, in no particular order.
    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = (GatherId, Gather)> + '_ {
        self.0.iter().map(|(id, gather)| (*id, *gather))
    }

    /// Open gathers, and how many the table has room for.
    #[cfg(test)]
    pub fn room(&self) -> (usize, usize) {
        (self.0.len(), self.0.capacity())
    }
}

impl State {
    /// Resolves those gathers of a value whose answer is known.
    pub(super) fn answer(&mut self, at: NodeIndex, out: &mut Vec<SchedulerInstruction>) {
        let live = &self.graph[at];
        if live.gathers.is_empty() {
            return;
        }
        let error = live.error().cloned();
        let is_here = matches!(live.home, Residence::Here);
        let host = live.host.clone().filter(|_| is_here);
        // While its region is unfinished, a lost readback may yet be repeated.
        let lost_on_the_way = live.readback.lost_on_the_way().cloned();
        for gather in live.gathers.clone() {
            let want = self.demands.get(gather).map(|gather| gather.want);
            let result = match (&error, want.expect("SCHED-3: a value's gather is open"), &host, &lost_on_the_way) {
                (Some(error), ..) => Err(error.clone()),
                (None, Want::Device, ..) if is_here => Ok(Delivered::Device),
                (None, Want::Host, Some(host), _) => Ok(Delivered::Host(host.clone())),
                (None, Want::Host, None, Some(error)) if is_here => Err(error.clone()),
                _ => continue,
            };
            self.resolve(gather, result, out);
        }
        if lost_on_the_way.is_some() {
            self.graph.readback_failure_told(at);
        }
    }

    /// Whether a region succeeds if its device carries it out, whatever happens to other regions: it is the first
    /// attempt, and all its inputs exist without faults.
    pub fn depends_on_no_other(&self, region: RegionId) -> bool {
        let sound = |value: ValueId| {
            let live = self.graph.get(value);
            live.is_some_and(|live| matches!(live.home, Residence::Here) && live.error().is_none())
        };
        self.regions.get(&region).is_some_and(|record| {
            let is_first = !record.waits() && record.attempt.number() == 0;
            is_first && record.region.inputs.iter().all(|input| sound(input.value))
        })
    }

    /// The gathers that wait for a value in host memory.
    pub fn waiting_for_host(&self, value: ValueId) -> SmallVec<[GatherId; 1]> {
        let gathers = self.graph.get(value).into_iter().flat_map(|live| &live.gathers);
        gathers.filter(|gather| self.demands.wants_host(**gather)).copied().collect()
    }

    /// The gathers that wait until the values that a region makes exist.
    pub fn waiting_for_device(&self, region: RegionId) -> SmallVec<[GatherId; 1]> {
        let nodes = self.regions.get(&region).into_iter().flat_map(|record| &record.region.nodes);
        let made = nodes.filter_map(|node| self.graph.get(node.value));
        let made = made.filter(|live| matches!(live.home, Residence::Coming(from) if from == region));
        let gathers = made.flat_map(|live| &live.gathers);
        gathers.filter(|gather| !self.demands.wants_host(**gather)).copied().collect()
    }

    /// Resolves a gather, if it is open.
    pub(super) fn resolve(
        &mut self,
        gather: GatherId,
        result: Result<Delivered, Error>,
        out: &mut Vec<SchedulerInstruction>,
    ) {
        if self.demands.contains(gather) {
            self.withdraw(gather);
            out.push(SchedulerInstruction::Resolve { gather, result });
        }
    }

    /// Forgets a gather. Returns its value, which it no longer keeps.
    pub(super) fn withdraw(&mut self, gather: GatherId) -> Option<ValueId> {
        let Gather { session, value, .. } = self.demands.close(gather)?;
        self.sessions.gather_closed(session, gather);
        let value = value?;
        self.graph.gather_closed(value, gather);
        Some(value)
    }

    /// Removes a region that waits or has ended from the tables. Its inputs lose a reader.
    pub(super) fn close_region(
        &mut self,
        id: RegionId,
        out: &mut Vec<SchedulerInstruction>,
    ) -> super::regions::UnfinishedRegion {
        let is_sent = !self.regions[&id].waits();
        if self.regions[&id].is_queued() {
            self.dequeue(id);
        }
        let record = self.regions.remove(id);
        if !is_sent {
            out.push(SchedulerInstruction::Skip { region: id });
        }
        let scheduled = self.ends.unschedule_all(id);
        let mut touched: Entries = record.region.inputs.iter().map(|i| self.read_no_more(id, i.value)).collect();
        touched.extend(scheduled.into_iter().filter_map(|value| self.graph.find(value)));
        // The caller decides what becomes of the outputs, and releases them.
        touched.retain(|at| !matches!(self.graph[*at].home, Residence::Coming(maker) if maker == id));
        self.release(touched, out);
        record
    }

    /// Ends a session: releases its handles. Gathers whose region is downstream already are still answered.
    pub(super) fn close_session(&mut self, session: SessionId, out: &mut Vec<SchedulerInstruction>) {
        let Some((values, gathers)) = self.sessions.close(session) else { return };
        let dropped = values.filter_map(|index| self.graph.handle_dropped(ValueId { session, index }));
        let touched: Entries = dropped.collect();
        self.release(touched, out);
        for gather in gathers {
            if !self.is_delivering(gather) {
                let value = self.demands.get(gather).and_then(|g| g.value);
                self.resolve(gather, Err(session_closed()), out);
                if let Some(value) = value {
                    self.drop_unneeded(value, out);
                }
            }
        }
        self.sessions.forget_if_done(session);
    }

    /// Whether the region that makes or reads back a gather's value has been sent already.
    fn is_delivering(&self, gather: GatherId) -> bool {
        let Some(Gather { value: Some(value), want, .. }) = self.demands.get(gather) else { return true };
        let Some(live) = self.graph.get(value) else { return false };
        let region = match (want, &live.home) {
            (Want::Device, Residence::Coming(region)) => Some(*region),
            (Want::Host, _) => live.readback.region(),
            _ => None,
        };
        // A readback whose region is finished is on its way.
        region.is_some_and(|id| self.regions.get(&id).is_none_or(|r| !r.waits()))
    }

    /// Renders what a gather of the value would run now, and changes nothing.
    pub(super) fn explain(&mut self, gather: GatherId, value: ValueId, out: &mut Vec<SchedulerInstruction>) {
        let refused = match self.graph.get(value) {
            _ if self.phase != Phase::Running => Some(shutting_down()),
            None => Some(super::ingest::released()),
            Some(live) => live.error().cloned(),
        };
        if let Some(error) = refused {
            out.push(SchedulerInstruction::Resolve { gather, result: Err(error) });
            return;
        }
        let at = self.graph.find(value).expect("SCHED-1: it was found above");
        let mut regions = self.preview_parked([value].into_iter(), value);
        let mut notes = Vec::new();
        if self.graph[at].is_lazy() {
            let mut scratch = std::mem::take(&mut self.scratch);
            let cut = self.plan_cut(&mut scratch, value.session, &[at], CutReason::Demand);
            self.scratch = scratch;
            if cut.needs_device {
                self.opening.wait_for_device(Waiting::Explanation(gather, value), out);
                return;
            }
            if let Some(Fate::Failed(error)) = cut.nodes.iter().find(|n| n.at == at).map(|n| &n.fate) {
                out.push(SchedulerInstruction::Resolve { gather, result: Err(error.clone()) });
                return;
            }
            let inputs = cut.inputs.iter().map(|input| self.graph[input.at].node.value);
            regions = self.preview_parked(inputs, value);
            notes = self.why_unrolled(&cut);
            regions.extend(self.build_regions(&cut, self.regions.next(), true, |v, _| v == value));
        }
        self.demands.open(gather, Gather { session: value.session, value: None, want: Want::Host });
        self.sessions.gather_opened(value.session, gather);
        out.push(SchedulerInstruction::Explain { gather, regions, notes });
    }
}
