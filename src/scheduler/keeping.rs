//! What lazy values and parked regions alone keep in memory: values that their program has let go of.
//!
//! In: drops, parked regions, values that are written out though only lazy values read them. Out: where that is too
//! much, of a session or of all, regions that compute what takes less than it keeps. Must hold: SCHED-13; what is kept
//! is found out at most once for each quarter of the limit that came to it. (What is parked again comes again.)
//!
//! A value that a limit had computed is an input of later cuts, which are other kernels then. So what a session may
//! leave lazy is limited at its own segments, by what its own program let go of of its own values, wherever these are
//! by now. A parked region is cut already: it may run at any time, and is limited by what is in memory. All that is kept
//! in memory, by lazy values of all sessions as well, is limited by a share of the host's budget: that is the one limit
//! by which one session's kernels may depend on others, where memory would run out.

use super::graph::{Entries, Home, Live};
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

/// Of the host's budget, into which devices evict: the parked regions of one session may keep this share, and all
/// regions and lazy values together twice that.
const SHARE: u64 = 4;
/// What is kept is counted when this share of the limit has come to it.
const COUNTED: u64 = 4;

/// What lets go of something once it is computed.
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
    /// A session's lazy values, by its own program alone: of its own values, also those that are still coming.
    Program(SessionId),
    /// A session's parked regions, of what is in memory.
    Parked(SessionId),
    /// All lazy values and parked regions, of what is in memory.
    All,
}

/// Who keeps something.
#[derive(Clone, Copy, Debug)]
struct Keeper {
    holder: Holder,
    /// What it takes, once it is computed.
    own_bytes: u64,
    /// Bytes that stay in memory because of this holder and would be freed without it.
    kept_bytes: u64,
    /// The largest value that it keeps, whoever does, too.
    largest_bytes: u64,
}

/// The limits on what is left waiting, and what came to it since it was counted.
#[derive(Debug)]
pub(super) struct Kept {
    /// Lazy values a session may leave behind before those that are held are computed.
    lazy_max: usize,
    /// Bytes that a session's lazy values may keep before they are computed.
    bytes_max: u64,
    /// The host's budget, without what a device that was opened takes of the same memory.
    host_budget_bytes: u64,
    /// Bytes that came to what lazy values and parked regions keep, since that was counted.
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

    /// Sessions that are to be looked at.
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

    /// Whether so much came to what all keep that it is to be counted.
    fn is_much(&self) -> bool {
        self.bytes > self.all_max() / COUNTED
    }
}

impl State {
    /// Of values that a session's program has let go of, or that are written out after it had: what its own lazy values
    /// keep comes to what it leaves, once each.
    pub(super) fn count_left(&mut self, session: SessionId, values: impl Iterator<Item = NodeIndex>) {
        let mut bytes = 0;
        for at in values {
            let is_left = |live: &&Live| is_let_go_of(live, session) && !live.left;
            let Some(live) = self.graph.try_get(at).filter(is_left) else { continue };
            if self.graph.users(at).any(|user| self.graph[user].node.value.session == session) {
                bytes += live.node.meta.bytes() as u64;
                self.graph[at].left = true;
            }
        }
        if let Some(entry) = self.sessions.get_mut(&session) {
            entry.left_bytes += bytes;
        }
    }

    /// At the end of a session's segment: if its lazy values keep too much, computes what takes less than it keeps.
    pub(super) fn limit_left(&mut self, session: SessionId, out: &mut Vec<SchedulerInstruction>) {
        let most = self.kept.bytes_max;
        let Some(entry) = self.sessions.get_mut(&session).filter(|entry| entry.left_bytes > most / COUNTED) else {
            return;
        };
        entry.left_bytes = 0;
        // Nowhere by what others do or by what has ended: the list's length is a limit of its own (`limit_lazy`).
        self.forget_computed(session);
        self.thin_out(Scope::Program(session), most, out);
    }

    /// A value that its program has let go of is kept in memory for parked regions of a session.
    pub(super) fn count_kept(&mut self, keeper: SessionId, bytes: u64) {
        let most = self.kept.parked_max();
        self.kept.bytes += bytes;
        let Some(session) = self.sessions.get_mut(&keeper) else { return };
        session.kept_bytes += bytes;
        if session.kept_bytes > most / COUNTED {
            self.kept.keepers.push(keeper);
        }
    }

    /// A value has lost its last handle, or is there after it had: it may be that somebody keeps it who waits.
    pub(super) fn note_let_go(&mut self, at: NodeIndex) {
        let Some(live) = self.graph.try_get(at).filter(|live| is_kept(live)) else { return };
        let bytes = live.node.meta.bytes() as u64;
        let parked = live.regions.iter().filter_map(|id| self.regions.get(id)).filter(|record| record.is_parked());
        let mut keepers: SmallVec<[SessionId; 4]> = parked.map(|record| record.region.session).collect();
        keepers.sort_unstable();
        keepers.dedup();
        if live.users > 0 && keepers.is_empty() {
            self.kept.bytes += bytes;
        }
        keepers.into_iter().for_each(|keeper| self.count_kept(keeper, bytes));
    }

    /// Computes what keeps too much of the memory.
    pub(super) fn limit_kept(&mut self, out: &mut Vec<SchedulerInstruction>) {
        let (most, most_of_all) = (self.kept.parked_max(), self.kept.all_max());
        let is_little = self.kept.keepers.is_empty() && !self.kept.is_much();
        // Users' events wait for a device, and this is no more urgent than they are.
        if is_little || self.phase != Phase::Running || self.opening.is_waiting() {
            return;
        }
        let mut full = std::mem::take(&mut self.kept.keepers);
        full.sort_unstable();
        full.dedup();
        for session in full {
            if let Some(entry) = self.sessions.get_mut(&session) {
                entry.kept_bytes = 0;
                self.thin_out(Scope::Parked(session), most, out);
            }
        }
        if self.kept.is_much() {
            let counted = std::mem::take(&mut self.kept.bytes);
            if !self.thin_out(Scope::All, most_of_all, out) {
                self.kept.bytes = counted;
            }
        }
    }

    /// If more than `most` bytes are kept, computes what takes less than it keeps. False if some of that has to wait
    /// for a device to be opened.
    fn thin_out(&mut self, scope: Scope, most: u64, out: &mut Vec<SchedulerInstruction>) -> bool {
        let (bytes, keepers) = self.keepers_in(scope);
        if bytes <= most {
            return true;
        }
        let mut roots: BTreeMap<SessionId, Entries> = BTreeMap::new();
        let mut taken_bytes = 0;
        for Keeper { holder, own_bytes, kept_bytes, largest_bytes } in keepers {
            // What several keep goes when all of them are computed: those that take little are, together.
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

    /// Bytes that lazy values or parked regions keep, and who keeps how many. Of several that keep the same, the one that
    /// takes the least itself is said to.
    fn keepers_in(&mut self, scope: Scope) -> (u64, Vec<Keeper>) {
        let sessions: Vec<SessionId> = match scope {
            Scope::Program(session) | Scope::Parked(session) => vec![session],
            Scope::All => self.sessions.keys().copied().collect(),
        };
        let mut all: Vec<(u64, Holder)> = Vec::new();
        for session in sessions {
            self.forget_unparked(session);
            let Some(entry) = self.sessions.get(&session) else { continue };
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

    /// Bytes that somebody keeps, and that nobody keeps of whom that was asked before; and those of the largest value
    /// that it keeps, alone or not. `largest` has the latter of all that was looked at.
    fn kept_for(&self, holder: Holder, scope: Scope, largest: &mut FxHashMap<NodeIndex, u64>) -> (u64, u64) {
        let roots: Entries = match holder {
            Holder::Lazy(value) => self.graph.find(value).into_iter().collect(),
            Holder::Parked(id) => {
                let inputs = self.regions[&id].region.inputs.iter();
                inputs.filter_map(|input| self.graph.find(input.value)).collect()
            }
        };
        let mut bytes = 0;
        // What is looked at a second time stands behind all that it reads.
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
                Scope::Program(session) => (is_let_go_of(live, session), live.node.value.session == session),
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

    /// Bytes of those of a region's inputs that are kept.
    pub(super) fn bytes_kept_of(&self, inputs: impl Iterator<Item = ValueId>) -> u64 {
        let kept = inputs.filter_map(|value| self.graph.get(value)).filter(|live| is_kept(live));
        kept.map(|live| live.node.meta.bytes() as u64).sum()
    }
}

/// Whether a value of this session is or will be there, and its program has let go of it.
fn is_let_go_of(live: &Live, session: SessionId) -> bool {
    !live.held && live.node.value.session == session && matches!(live.home, Home::Here | Home::Coming(_))
}

/// Whether a value is there that its program has let go of.
fn is_kept(live: &Live) -> bool {
    !live.held && matches!(live.home, Home::Here)
}
