//! Removes unreachable values: lazy ones are never computed, and residency is told of the end of the others.
//!
//! In: values that lost a handle, a user, a gather or a region; regions that left downstream. Out: `Retire`, or an end
//! that a region announces when it is sent; values that ended too early are made or sent again. Must hold: SCHED-5;
//! ENDS-2 to ENDS-4; a value's end is told after all regions that read it, and only if these regions run in a known
//! order.

use super::ends::{EndedValue, How};
use super::graph::{Entries, Live, Residence};
use super::state::State;
use super::story::What;
use crate::contract::messages::scheduler::SchedulerInstruction;
use crate::error::{Error, ErrorKind};
use crate::ids::{RegionId, SessionId, ValueId};
use petgraph::stable_graph::NodeIndex;
use smallvec::SmallVec;

impl State {
    /// Removes those of these values that are unreachable, and then their arguments that become unreachable by that.
    pub(super) fn release(&mut self, mut work: Entries, out: &mut Vec<SchedulerInstruction>) {
        while let Some(at) = work.pop() {
            // The entry may have been removed since it was put on the list.
            if self.graph.try_get(at).is_none_or(|live| live.reachable()) {
                continue;
            }
            let live = &self.graph[at];
            let value = live.node.value;
            if live.is_lazy() {
                if live.gathers.is_empty() {
                    let is_dead = !live.passing.has_passed();
                    self.forget_lazy(at, is_dead, &mut work);
                }
                continue;
            }
            let settled = match live.home {
                Residence::Coming(region) => {
                    if live.gathers.is_empty() && live.regions.is_empty() {
                        self.recheck.add(region);
                    }
                    false
                }
                _ => live.regions.is_empty() && live.gathers.is_empty(),
            };
            let exists = !matches!(live.home, Residence::Failed(_));
            let is_to_tell = live.known || !live.regions.is_empty() || !settled;
            if exists && is_to_tell && self.ends.is_undecided(value) && self.read_in_order(&self.graph[at]) {
                self.retire(at, out);
            }
            if settled {
                self.graph.remove(at);
                self.ends.forget(value);
                self.log.note(value, What::Forgotten);
            }
        }
    }

    /// Whether the unfinished regions that read a value run in a known order, so that one of them is the last: they
    /// belong to one session, and none may run late. If not, the value's end is told once the others have ended.
    fn read_in_order(&self, live: &Live) -> bool {
        let first = live.regions.iter().find_map(|id| self.regions.get(id));
        first.is_none_or(|record| self.read_only_by(live, record.region.session))
    }

    /// Whether the unfinished regions that read a value are this session's, and keep the order of cutting.
    pub(super) fn read_only_by(&self, live: &Live, session: SessionId) -> bool {
        let mut readers = live.regions.iter().filter_map(|id| self.regions.get(id));
        readers.all(|record| record.region.session == session && !record.may_be_late())
    }

    /// Removes a region from a value's readers. If the region would have announced the value's end, it no longer does.
    pub(super) fn read_no_more(&mut self, id: RegionId, value: ValueId) -> NodeIndex {
        let at = self.graph.find(value).expect("SCHED-8: a region's input is live");
        self.graph.reader_ended(at, id);
        self.ends.unschedule(value, id);
        at
    }

    /// Removes a lazy value and adds its arguments to `work`.
    fn forget_lazy(&mut self, at: NodeIndex, is_dead: bool, work: &mut Entries) {
        let arguments = self.graph.detach(at);
        if is_dead {
            self.ledger.count_dead();
            self.log.note(self.graph[at].node.value, What::Dead);
        }
        self.graph.remove(at);
        work.extend(arguments);
    }

    /// Tells residency that a value ends, after the last of the unfinished regions that read or make it.
    fn retire(&mut self, at: NodeIndex, out: &mut Vec<SchedulerInstruction>) {
        let live = &self.graph[at];
        let value = live.node.value;
        let maker = match live.home {
            Residence::Coming(region) => Some(region),
            _ => None,
        };
        // Order in which the regions reach residency: the maker; then readers that were sent, by their turn, which
        // differs from the order of cutting if a region was parked or repeated; then readers that still wait.
        let rank = |id: RegionId| {
            let record = self.regions.get(&id)?;
            Some(match record.turn() {
                _ if Some(id) == maker => (0, record.order, id),
                Some(turn) => (1, turn, id),
                None => (2, record.order, id),
            })
        };
        let after = live.regions.iter().copied().chain(maker).filter_map(rank).max().map(|(.., id)| id);
        let known = live.known;
        self.log.note(value, What::Retired);
        match after {
            Some(id) if self.regions[&id].waits() => self.ends.schedule(value, id, How::Behind),
            None if !known => {}
            _ => {
                let with = after.filter(|id| self.regions[id].is_downstream());
                self.ends.announce(value, with);
                out.push(SchedulerInstruction::Retire { value, after });
            }
        }
    }

    /// A region has left downstream, so the values that residency was told to end with it have ended. A value that was
    /// made or sent again meanwhile has lost its new bytes by that: if a waiting region reads it, it is made or sent
    /// once more. `error` is set if the region failed.
    pub(super) fn ends_happen(&mut self, id: RegionId, error: Option<&Error>, out: &mut Vec<SchedulerInstruction>) {
        for EndedValue { value, is_former } in self.ends.leave(id) {
            let Some(at) = self.graph.find(value) else { continue };
            let live = &self.graph[at];
            if matches!(live.home, Residence::Coming(maker) if self.regions[&maker].waits()) {
                // A waiting region will make the value again: its new life has no end yet.
                self.ends.made_again(value);
                continue;
            }
            if !is_former {
                continue;
            }
            let reads_it = |reader: &RegionId| self.regions[reader].waits() || error.is_some() && *reader == id;
            if !live.reachable() && !live.regions.iter().any(reads_it) {
                // Only regions downstream still read the value, and residency keeps its bytes until they end.
                if self.ends.is_undecided(value) {
                    self.ends.announce(value, None);
                }
                continue;
            }
            let error = error.cloned().unwrap_or_else(ended_too_soon);
            if let Some(failed) = self.bring_back(at, &error) {
                self.fail_values(vec![failed], out);
            }
        }
    }

    /// Restores a value that residency has ended though it is still needed: host data is sent again, and a value that
    /// only a device had is computed again. Returns the value with its error if neither is possible.
    fn bring_back(&mut self, at: NodeIndex, error: &Error) -> Option<(NodeIndex, Error)> {
        let live = &self.graph[at];
        let is_elsewhere = live.host.is_some() || !matches!(live.home, Residence::Here);
        let is_made = matches!(live.home, Residence::Coming(maker) if !self.regions[&maker].waits());
        let pending_loss = (live.host.is_none() && is_made).then(|| error.clone());
        self.graph.freed(at, pending_loss);
        if is_elsewhere || self.make_again(at) {
            return None;
        }
        let name = self.device_name(self.graph[at].places.made());
        Some((at, error.clone().with_device(name)))
    }

    /// Restores those inputs of a repeated region whose end residency was told of, with the failed attempt or since.
    /// Returns the inputs that cannot be restored. Ends that other waiting regions would announce are decided anew when
    /// the inputs are released.
    pub(super) fn restore_ended(&mut self, again: RegionId, error: &Error) -> Vec<(NodeIndex, Error)> {
        let inputs: SmallVec<[(ValueId, bool); 4]> =
            self.regions[&again].region.inputs.iter().map(|input| (input.value, input.dies)).collect();
        let mut failed = Vec::new();
        for (value, dies) in inputs {
            if self.ends.is_announced(value) {
                let at = self.graph.find(value).expect("SCHED-8: a region's input is live");
                failed.extend(self.bring_back(at, error));
                self.ends.made_again(value);
            }
            // A part of an earlier region may have become the last reader meanwhile. Now this region is again behind it.
            self.ends.unschedule_any(value);
            // An input that died in the failed attempt dies in this one.
            if dies && self.ends.is_undecided(value) {
                self.ends.schedule(value, again, How::InPlace);
            }
        }
        failed
    }
}

/// The error of a value that was made again and then freed by an end told for its former life, before a repeated region
/// read it.
fn ended_too_soon() -> Error {
    Error::new(
        ErrorKind::DeviceLost,
        "the value was computed again after a loss, and freed before the op that reads it could be repeated",
    )
}
