//! Limits the memory of values that their program has dropped, and that only lazy values or parked regions still keep.
//!
//! In: drops, parked regions, values that are written out though only lazy values read them. Out: if a session, or all
//! sessions together, keep too much, regions that compute those lazy values and parked regions that take fewer bytes
//! than they keep. Must hold: SCHED-13; the kept bytes are counted at most once each time that a quarter of the limit
//! has been added. (A region that is parked again is added again.)
//!
//! A lazy value that is computed because of a limit becomes an input of later cuts and thereby changes their kernels.
//! So the limit on a session's lazy values is checked at its own segments only. It counts the session's own dropped
//! values, whether they are in memory or not, and so depends on its program alone. A parked region is cut already and
//! may run at any time: its limit counts the bytes in memory. A third limit, a share of the host's budget, applies to
//! lazy values and parked regions of all sessions together. By this limit alone, one session's kernels may depend on
//! another session, if memory would run out otherwise.

use super::graph::{Entries, Live, Residence};
use super::state::{Phase, State};
use crate::config::Config;
use crate::contract::messages::scheduler::SchedulerInstruction;
use crate::contract::region::CutReason;
use crate::ids::{RegionId, SessionId, ValueId};
use petgraph::stable_graph::NodeIndex;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;

/// The parked regions of one session may keep one part in this many of the host's budget, into which devices evict. All
/// parked regions and lazy values together may keep twice that.
const SHARE: u64 = 4;
/// The kept bytes are counted when one part in this many of the limit has been added to them.
const COUNTED: u64 = 4;

/// An object that keeps values in memory until it is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Holder {
    /// A lazy value that the program holds.
    Lazy(ValueId),
    /// A parked region.
    Parked(RegionId),
}

/// Which values a memory limit applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// Counts what a session's lazy values keep of the session's own values, also those that are still to be made.
    Program(SessionId),
    /// Counts what a session's parked regions keep in memory.
    Parked(SessionId),
    /// Counts what all lazy values and parked regions keep in memory.
    All,
}

/// A holder, and the bytes that it keeps.
#[derive(Clone, Copy, Debug)]
struct Keeper {
    holder: Holder,
    /// Bytes that its outputs take once it is computed.
    own_bytes: u64,
    /// Bytes that stay in memory because of this holder and would be freed without it.
    kept_bytes: u64,
    /// Bytes of the largest value that it keeps, whether or not other holders keep that, too.
    largest_bytes: u64,
}

/// The limits on what lazy values and parked regions keep, and the bytes added since that was last counted.
#[derive(Debug)]
pub(super) struct Kept {
    /// Lazy values a session may leave behind before those that are held are computed.
    lazy_max: usize,
    /// Bytes that a session's lazy values may keep before they are computed.
    bytes_max: u64,
    /// The host's budget, less the share of a device that was opened and uses the same memory.
    host_budget_bytes: u64,
    /// Bytes added to what lazy values and parked regions keep, since that was last counted.
    bytes: u64,
    /// Sessions whose parked regions may keep too much.
    keepers: Vec<SessionId>,
}

impl Kept {
    /// The limits of a scheduler, whose host has this budget.
    pub fn new(config: &Config, host_budget_bytes: u64) -> Kept {
        let (lazy_max, bytes_max) = (config.tape_nodes_max.max(1), config.tape_bytes_max.max(1));
        Kept { lazy_max, bytes_max, host_budget_bytes, bytes: 0, keepers: Vec::new() }
    }

    /// Lazy values, or nodes of parked regions, that a session may leave behind.
    pub fn lazy_max(&self) -> usize {
        self.lazy_max
    }

    /// A device that was opened takes so much of the host's memory.
    pub fn take_from_budget(&mut self, bytes: u64) {
        self.host_budget_bytes = self.host_budget_bytes.saturating_sub(bytes);
    }

    /// Sessions whose parked regions are to be counted.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.keepers.len()
    }

    /// Lazy values may keep any number of bytes.
    #[cfg(test)]
    pub fn lift_bytes_max(&mut self) {
        self.bytes_max = u64::MAX;
    }

    /// Bytes that a session's parked regions may keep.
    fn parked_max(&self) -> u64 {
        self.bytes_max.min(self.host_budget_bytes / SHARE).max(1)
    }

    /// Bytes that all lazy values and parked regions may keep.
    fn all_max(&self) -> u64 {
        (self.host_budget_bytes / SHARE * 2).max(1)
    }

    /// Whether enough bytes were added that the total has to be counted.
    fn is_much(&self) -> bool {
        self.bytes > self.all_max() / COUNTED
    }
}

impl State {
    /// Adds up dropped values of a session that its own lazy values keep, each value once. `values` are those that were
    /// dropped, or that were written out after the drop.
    pub(super) fn add_kept_by_lazy(&mut self, session: SessionId, values: impl Iterator<Item = NodeIndex>) {
        let mut bytes = 0;
        for at in values {
            let is_left = |live: &&Live| is_dropped_value(live, session) && !live.counted_as_kept;
            let Some(live) = self.graph.try_get(at).filter(is_left) else { continue };
            if self.graph.users(at).any(|user| self.graph[user].node.value.session == session) {
                bytes += live.node.meta.bytes() as u64;
                self.graph.counted_as_kept(at);
            }
        }
        self.sessions.add_kept_by_lazy(session, bytes);
    }

    /// Called at the end of a session's segment. If its lazy values keep too much, computes those that take less than
    /// they keep.
    pub(super) fn limit_kept_by_lazy(&mut self, session: SessionId, out: &mut Vec<SchedulerInstruction>) {
        let most = self.kept.bytes_max;
        if !self.sessions.take_kept_by_lazy(session, most / COUNTED) {
            return;
        }
        // This point follows from the session's own program alone. Pruning the list at another time would make
        // `limit_lazy`, which reads the list's length, depend on other sessions and on completions.
        self.forget_computed(session);
        self.compute_holders(Scope::Program(session), most, out);
    }

    /// Adds bytes of dropped values that the parked regions of a session keep in memory.
    pub(super) fn add_kept_by_parked(&mut self, keeper: SessionId, bytes: u64) {
        let most = self.kept.parked_max();
        self.kept.bytes += bytes;
        if self.sessions.add_kept_by_parked(keeper, bytes).is_some_and(|added| added > most / COUNTED) {
            self.kept.keepers.push(keeper);
        }
    }

    /// A value lost its last handle, or was made after that. If lazy values or parked regions keep it, adds its bytes.
    pub(super) fn add_kept(&mut self, at: NodeIndex) {
        let Some(live) = self.graph.try_get(at).filter(|live| is_kept(live)) else { return };
        let bytes = live.node.meta.bytes() as u64;
        let parked = live.regions.iter().filter_map(|id| self.regions.get(id)).filter(|record| record.is_parked());
        let mut keepers: SmallVec<[SessionId; 4]> = parked.map(|record| record.region.session).collect();
        keepers.sort_unstable();
        keepers.dedup();
        if live.users > 0 && keepers.is_empty() {
            self.kept.bytes += bytes;
        }
        keepers.into_iter().for_each(|keeper| self.add_kept_by_parked(keeper, bytes));
    }

    /// Applies the limits on memory: of each session's parked regions, and of all lazy values and parked regions.
    pub(super) fn limit_kept(&mut self, out: &mut Vec<SchedulerInstruction>) {
        let (most, most_of_all) = (self.kept.parked_max(), self.kept.all_max());
        let is_little = self.kept.keepers.is_empty() && !self.kept.is_much();
        // While events from users are held back for a device, no new cut may start.
        if is_little || self.phase != Phase::Running || self.opening.is_waiting() {
            return;
        }
        let mut full = std::mem::take(&mut self.kept.keepers);
        full.sort_unstable();
        full.dedup();
        for session in full {
            if self.sessions.kept_by_parked_counted(session) {
                self.compute_holders(Scope::Parked(session), most, out);
            }
        }
        if self.kept.is_much() {
            let counted = std::mem::take(&mut self.kept.bytes);
            if !self.compute_holders(Scope::All, most_of_all, out) {
                self.kept.bytes = counted;
            }
        }
    }

    /// If more than `most` bytes are kept, computes the holders that take less than they keep. Returns false if some of
    /// them could not be cut because a device has to be opened first.
    fn compute_holders(&mut self, scope: Scope, most: u64, out: &mut Vec<SchedulerInstruction>) -> bool {
        let (bytes, keepers) = self.keepers_in(scope);
        if bytes <= most {
            return true;
        }
        let mut roots: BTreeMap<SessionId, Entries> = BTreeMap::new();
        let mut taken_bytes = 0;
        for Keeper { holder, own_bytes, kept_bytes, largest_bytes } in keepers {
            // A value that several holders keep is freed once all of them are computed. So holders that are small
            // beside the largest value they keep are computed, too, up to half of the kept bytes in total.
            let takes_little = own_bytes <= largest_bytes / 2 && taken_bytes + own_bytes <= bytes / 2;
            if own_bytes > kept_bytes / 2 && !takes_little {
                continue;
            }
            taken_bytes += own_bytes;
            match holder {
                Holder::Lazy(value) => roots.entry(value.session).or_default().extend(self.graph.find(value)),
                Holder::Parked(id) => self.unpark_by_limit(id),
            }
        }
        for (session, roots) in roots {
            if self.opening.is_waiting() {
                return false;
            }
            self.cut_lazy(session, roots, CutReason::ByteLimit, out);
        }
        true
    }

    /// The bytes that lazy values or parked regions keep, in total and by holder. Bytes that several keep count for the
    /// holder that takes the fewest bytes itself.
    fn keepers_in(&mut self, scope: Scope) -> (u64, Vec<Keeper>) {
        let sessions: Vec<SessionId> = match scope {
            Scope::Program(session) | Scope::Parked(session) => vec![session],
            Scope::All => self.sessions.ids().collect(),
        };
        let mut all: Vec<(u64, Holder)> = Vec::new();
        for session in sessions {
            self.forget_unparked(session);
            let Some(entry) = self.sessions.get(session) else { continue };
            if !matches!(scope, Scope::Parked(_)) {
                let held = entry.lazy.iter().filter_map(|value| self.graph.get(*value));
                let held = held.filter(|live| live.is_held_lazy());
                all.extend(held.map(|live| (live.node.meta.bytes() as u64, Holder::Lazy(live.node.value))));
            }
            if !matches!(scope, Scope::Program(_)) {
                all.extend(entry.parked.iter().map(|id| {
                    let outputs = self.regions[id].region.nodes.iter().filter(|node| node.output);
                    (outputs.map(|node| node.meta.bytes() as u64).sum(), Holder::Parked(*id))
                }));
            }
        }
        all.sort_unstable();
        let mut largest = FxHashMap::default();
        let keeper = |(own_bytes, holder)| {
            let (kept_bytes, largest_bytes) = self.kept_for(holder, scope, &mut largest);
            Keeper { holder, own_bytes, kept_bytes, largest_bytes }
        };
        let keepers: Vec<Keeper> = all.into_iter().map(keeper).collect();
        (keepers.iter().map(|keeper| keeper.kept_bytes).sum(), keepers)
    }

    /// The bytes that a holder keeps and that no holder visited before it keeps, and the bytes of the largest value
    /// that it keeps. `largest` has the second number for each value that was visited.
    fn kept_for(&self, holder: Holder, scope: Scope, largest: &mut FxHashMap<NodeIndex, u64>) -> (u64, u64) {
        let roots: Entries = match holder {
            Holder::Lazy(value) => self.graph.find(value).into_iter().collect(),
            Holder::Parked(id) => {
                let inputs = self.regions[&id].region.inputs.iter();
                inputs.filter_map(|input| self.graph.find(input.value)).collect()
            }
        };
        let mut bytes = 0;
        // An entry is visited a second time, marked `true`, after all of its arguments.
        let mut work: Vec<(NodeIndex, bool)> = roots.iter().map(|at| (*at, false)).collect();
        while let Some((at, again)) = work.pop() {
            let live = &self.graph[at];
            if again {
                let most = self.graph.arguments(at).map(|argument| largest[&argument]).max().unwrap_or(0);
                largest.insert(at, most);
                continue;
            }
            let Entry::Vacant(entry) = largest.entry(at) else { continue };
            let (counts, is_passed) = match scope {
                Scope::Program(session) => (is_dropped_value(live, session), live.node.value.session == session),
                Scope::Parked(_) | Scope::All => (is_kept(live), true),
            };
            let own = if counts { live.node.meta.bytes() as u64 } else { 0 };
            entry.insert(own);
            bytes += own;
            if live.is_lazy() && is_passed {
                work.push((at, true));
                work.extend(self.graph.arguments(at).map(|argument| (argument, false)));
            }
        }
        (bytes, roots.iter().map(|at| largest[at]).max().unwrap_or(0))
    }

    /// Total bytes of those inputs that are in memory though their program has dropped them.
    pub(super) fn bytes_kept_of(&self, inputs: impl Iterator<Item = ValueId>) -> u64 {
        let kept = inputs.filter_map(|value| self.graph.get(value)).filter(|live| is_kept(live));
        kept.map(|live| live.node.meta.bytes() as u64).sum()
    }
}

/// Whether a value of this session exists or is being made, and its program has dropped it.
fn is_dropped_value(live: &Live, session: SessionId) -> bool {
    !live.held && live.node.value.session == session && matches!(live.home, Residence::Here | Residence::Coming(_))
}

/// Whether a value exists though its program has dropped it.
fn is_kept(live: &Live) -> bool {
    !live.held && matches!(live.home, Residence::Here)
}
