//! What lazy values and parked regions alone keep in memory: values that their program has let go of.
//!
//! In: drops, parked regions, values that are written out though only lazy values read them. Out: where that is too
//! much, of a session or of all, regions that compute what takes less than it keeps. Must hold: what is kept is found
//! out at most once for each limit's worth of bytes that came to it; SCHED-13.
//!
//! What comes to it is added up; what goes again is not taken off, but counted anew when the sum has reached the limit.
//!
//! A value that a limit had computed is an input of later cuts, which are other kernels then. So what a session may
//! leave lazy is limited at its own segments, by what its own program let go of, wherever that is by now. A parked
//! region is cut already: it may run at any time, and is limited by what is in memory. All that is kept in memory, by
//! lazy values of all sessions as well, is limited by a share of the host's budget: that is the one limit by which one
//! session's kernels may depend on others, where memory would run out.

use super::graph::{Entries, Home, Live};
use super::message::SchedulerInstruction;
use super::region::CutReason;
use super::state::{Phase, Session, State};
use crate::ids::{RegionId, SessionId, ValueId};
use petgraph::stable_graph::NodeIndex;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::hash_map::Entry;

/// Of the host's budget, into which devices evict: the parked regions of one session may keep this share, and all
/// regions and lazy values together twice that.
const SHARE: u64 = 4;

/// What lets go of something once it is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// A lazy value that the program holds.
    Lazy(ValueId),
    /// A parked region.
    Parked(RegionId),
}

/// Whose keeping is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// A session's lazy values, by its own program alone: of its own values, also those that are still coming.
    Program,
    /// A session's parked regions, of what is in memory.
    Parked,
    /// Both, and whatever its lazy values keep for other sessions, of what is in memory.
    All,
}

/// Who keeps something.
#[derive(Clone, Copy, Debug)]
struct Keeper {
    what: What,
    /// What it takes, once it is computed.
    own_bytes: u64,
    /// What it keeps until then, and nobody that takes less.
    kept_bytes: u64,
    /// The largest value that it keeps, whoever does, too.
    largest_bytes: u64,
}

impl State {
    /// Bytes that a session's parked regions may keep.
    fn kept_max(&self) -> u64 {
        self.bytes_max.min(self.devices[0].budget_bytes / SHARE).max(1)
    }

    /// Values that a session's program has let go of, or that are written out after it had: what its own lazy values
    /// keep of them counts.
    pub(super) fn note_left(&mut self, session: SessionId, values: impl Iterator<Item = NodeIndex>) {
        let is_left = |at: &NodeIndex| {
            let live = self.graph.try_get(*at).filter(|live| is_let_go_of(live, session));
            live.is_some() && self.graph.users(*at).any(|user| self.graph[user].node.value.session == session)
        };
        let bytes: u64 = values.filter(is_left).map(|at| self.graph[at].node.meta.bytes() as u64).sum();
        if let Some(entry) = self.sessions.get_mut(&session) {
            entry.left_bytes += bytes;
        }
    }

    /// At the end of a session's segment: if its lazy values keep too much, computes what takes less than it keeps.
    pub(super) fn limit_left(&mut self, session: SessionId, out: &mut Vec<SchedulerInstruction>) {
        let most = self.bytes_max;
        if self.sessions.get(&session).is_some_and(|entry| entry.left_bytes > most) {
            let bytes = self.thin_out(session, Of::Program, most / 2, out);
            if let Some(entry) = self.sessions.get_mut(&session) {
                entry.left_bytes = bytes;
            }
        }
    }

    /// A value that its program has let go of is kept in memory for parked regions of a session.
    pub(super) fn note_kept(&mut self, keeper: SessionId, bytes: u64) {
        let most = self.kept_max();
        self.kept_bytes += bytes;
        let Some(session) = self.sessions.get_mut(&keeper) else { return };
        session.kept_bytes += bytes;
        if session.kept_bytes > most {
            self.keepers.push(keeper);
        }
    }

    /// A value has lost its last handle, or is there after it had: it may be that somebody keeps it who waits.
    pub(super) fn note_let_go(&mut self, at: NodeIndex) {
        let Some(live) = self.graph.try_get(at) else { return };
        if !is_kept(live) {
            return;
        }
        let bytes = live.node.meta.bytes() as u64;
        let parked = live.regions.iter().filter_map(|id| self.regions.get(id)).filter(|record| record.parked);
        let mut keepers: SmallVec<[SessionId; 4]> = parked.map(|record| record.region.session).collect();
        keepers.sort_unstable();
        keepers.dedup();
        if live.users > 0 && keepers.is_empty() {
            self.kept_bytes += bytes;
        }
        keepers.into_iter().for_each(|keeper| self.note_kept(keeper, bytes));
    }

    /// Computes what keeps too much of the memory.
    pub(super) fn limit_kept(&mut self, out: &mut Vec<SchedulerInstruction>) {
        let most = self.kept_max();
        let most_of_all = most.max(self.devices[0].budget_bytes / SHARE * 2);
        let is_little = self.keepers.is_empty() && self.kept_bytes <= most_of_all;
        // Users' events wait for a device, and this is no more urgent than they are.
        if is_little || self.phase != Phase::Running || self.opening.is_waiting() {
            return;
        }
        let mut full = std::mem::take(&mut self.keepers);
        full.sort_unstable();
        full.dedup();
        for session in full {
            let bytes = self.thin_out(session, Of::Parked, most / 2, out);
            if let Some(entry) = self.sessions.get_mut(&session) {
                entry.kept_bytes = bytes;
            }
        }
        if self.kept_bytes <= most_of_all {
            return;
        }
        // What one has lazy may lie between another's and what that keeps.
        let may_keep = |s: &Session| !s.lazy.is_empty() || !s.parked.is_empty();
        let mut all: Vec<SessionId> = self.sessions.iter().filter(|(_, s)| may_keep(s)).map(|(id, _)| *id).collect();
        all.sort_unstable();
        self.kept_bytes = all.iter().map(|session| self.kept_by(*session, Of::All).0).sum();
        if self.kept_bytes > most_of_all / 2 {
            self.kept_bytes = all.iter().map(|session| self.thin_out(*session, Of::All, 0, out)).sum();
        }
    }

    /// If a session keeps more than `most` bytes, computes what takes less than it keeps. Bytes to go on counting from.
    fn thin_out(&mut self, session: SessionId, of: Of, most: u64, out: &mut Vec<SchedulerInstruction>) -> u64 {
        let (bytes, keepers) = self.kept_by(session, of);
        if bytes <= most {
            return bytes;
        }
        // The first that needs a device has the others wait for it.
        if self.opening.is_waiting() {
            return bytes;
        }
        let mut roots = Entries::new();
        let mut taken_bytes = 0;
        for Keeper { what, own_bytes, kept_bytes, largest_bytes } in keepers {
            // What several keep goes when all of them are computed: those that take little are, together.
            let takes_little = own_bytes <= largest_bytes / 2 && taken_bytes + own_bytes <= bytes / 2;
            if own_bytes > kept_bytes / 2 && !takes_little {
                continue;
            }
            taken_bytes += own_bytes;
            match what {
                What::Lazy(value) => roots.extend(self.graph.find(value)),
                What::Parked(id) => self.unpark_by_limit(id),
            }
        }
        if !roots.is_empty() {
            self.cut_lazy(session, roots, CutReason::ByteLimit, out);
        }
        0
    }

    /// Bytes that a session's lazy values or parked regions keep, and who keeps how many. Of several that keep the same,
    /// the one that takes the least itself is said to.
    fn kept_by(&mut self, session: SessionId, of: Of) -> (u64, Vec<Keeper>) {
        self.forget_unparked(session);
        let Some(entry) = self.sessions.get_mut(&session) else { return (0, Vec::new()) };
        entry.lazy.retain(|value| self.graph.get(*value).is_some_and(Live::is_lazy));
        let is_held = |value: &ValueId| self.graph.get(*value).is_some_and(|live| live.held);
        let bytes = |value: ValueId| self.graph.get(value).map_or(0, |live| live.node.meta.bytes() as u64);
        let mut all: Vec<(u64, What)> = Vec::new();
        if of != Of::Parked {
            let held = entry.lazy.iter().copied().filter(is_held);
            all.extend(held.map(|value| (bytes(value), What::Lazy(value))));
        }
        if of != Of::Program {
            all.extend(entry.parked.iter().map(|id| {
                let outputs = self.regions[id].region.nodes.iter().filter(|node| node.output);
                (outputs.map(|node| node.meta.bytes() as u64).sum(), What::Parked(*id))
            }));
        }
        all.sort_unstable();
        all.dedup();
        let mut largest = FxHashMap::default();
        let keeper = |(own_bytes, what)| {
            let (kept_bytes, largest_bytes) = self.kept_for(session, what, of, &mut largest);
            Keeper { what, own_bytes, kept_bytes, largest_bytes }
        };
        let keepers: Vec<Keeper> = all.into_iter().map(keeper).collect();
        let mut kept_bytes = keepers.iter().map(|keeper| keeper.kept_bytes).sum::<u64>();
        if of == Of::All {
            // What nobody holds here is read by what another session holds.
            let lazy = self.sessions[&session].lazy.iter();
            kept_bytes += lazy.map(|v| self.kept_for(session, What::Lazy(*v), of, &mut largest).0).sum::<u64>();
        }
        (kept_bytes, keepers)
    }

    /// Bytes that somebody keeps, and that nobody keeps of whom that was asked before; and those of the largest value
    /// that it keeps, alone or not. `largest` has the latter of all that was looked at.
    fn kept_for(&self, session: SessionId, what: What, of: Of, largest: &mut FxHashMap<NodeIndex, u64>) -> (u64, u64) {
        let roots: Entries = match what {
            What::Lazy(value) => self.graph.find(value).into_iter().collect(),
            What::Parked(id) => {
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
            let (counts, is_passable) = match of {
                Of::Program => (is_let_go_of(live, session), live.node.value.session == session),
                Of::Parked | Of::All => (is_kept(live), true),
            };
            let own = if counts { live.node.meta.bytes() as u64 } else { 0 };
            entry.insert(own);
            bytes += own;
            if live.is_lazy() && is_passable {
                work.push((at, true));
                work.extend(self.graph.arguments(at).map(|argument| (argument, false)));
            }
        }
        (bytes, roots.iter().map(|at| largest[at]).max().unwrap_or(0))
    }

    /// Bytes of those of a region's inputs that their programs have let go of, and that are there.
    pub(super) fn let_go_of(&self, inputs: impl Iterator<Item = ValueId>) -> u64 {
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
