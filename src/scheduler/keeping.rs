//! What lazy values and parked regions alone keep in memory: values that their program has let go of.
//!
//! In: drops, parked regions, values that are written out though only lazy values read them. Out: where that is too
//! much, of a session or of all, regions that compute what takes less than it keeps. Must hold: what is kept is found
//! out at most once for each limit's worth of bytes that came to it.
//!
//! What comes to it is added up; what goes again is not taken off, but counted anew when the sum has reached the limit.

use super::graph::{Entries, Home, Live};
use super::message::SchedulerInstruction;
use super::region::CutReason;
use super::state::{Phase, Session, State};
use crate::ids::{RegionId, SessionId, ValueId};
use petgraph::stable_graph::NodeIndex;
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};
use std::collections::hash_map::Entry;

/// Of the host's budget, into which devices evict: one session may keep this share, and all together twice that.
const SHARE: u64 = 4;

/// What lets go of something once it is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// A lazy value that the program holds.
    Lazy(NodeIndex),
    /// A parked region.
    Parked(RegionId),
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
    /// Bytes that a session's lazy values and parked regions may keep.
    fn kept_max(&self) -> u64 {
        self.bytes_max.min(self.devices[0].budget_bytes / SHARE).max(1)
    }

    /// A value that its program has let go of is kept for lazy values or parked regions of a session.
    pub(super) fn note_kept(&mut self, keeper: SessionId, bytes: u64) {
        let most = self.kept_max();
        let Some(session) = self.sessions.get_mut(&keeper) else { return };
        session.kept_bytes += bytes;
        self.kept_bytes += bytes;
        if session.kept_bytes > most {
            self.keepers.push(keeper);
        }
    }

    /// A value has lost its last handle, or is there after it had: who keeps it, if somebody does that waits.
    pub(super) fn note_let_go(&mut self, at: NodeIndex) {
        let Some(live) = self.graph.try_get(at) else { return };
        if !is_kept(live) {
            return;
        }
        let bytes = live.node.meta.bytes() as u64;
        let parked = live.regions.iter().filter_map(|id| self.regions.get(id)).filter(|record| record.parked);
        let users = self.graph.users(at).map(|user| self.graph[user].node.value.session);
        let mut keepers: SmallVec<[SessionId; 4]> = users.chain(parked.map(|record| record.region.session)).collect();
        keepers.sort_unstable();
        keepers.dedup();
        keepers.into_iter().for_each(|keeper| self.note_kept(keeper, bytes));
    }

    /// Computes what keeps too much.
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
            self.thin_out(session, most / 2, out);
        }
        if self.kept_bytes <= most_of_all {
            return;
        }
        // What one has lazy may lie between another's and what that keeps.
        let may_keep = |s: &Session| !s.lazy.is_empty() || !s.parked.is_empty();
        let mut all: Vec<SessionId> = self.sessions.iter().filter(|(_, s)| may_keep(s)).map(|(id, _)| *id).collect();
        all.sort_unstable();
        let bytes: u64 = all.iter().map(|session| self.kept_by(*session).0).sum();
        let most = if bytes > most_of_all / 2 { 0 } else { u64::MAX };
        all.iter().for_each(|session| self.thin_out(*session, most, out));
        // Of sessions that have ended since, too, nothing is kept any more.
        self.kept_bytes = all.iter().filter_map(|session| self.sessions.get(session)).map(|s| s.kept_bytes).sum();
    }

    /// If a session keeps more than `most` bytes, computes what takes less than it keeps.
    fn thin_out(&mut self, session: SessionId, most: u64, out: &mut Vec<SchedulerInstruction>) {
        if self.opening.is_waiting() {
            self.keepers.push(session);
            return;
        }
        let (bytes, keepers) = self.kept_by(session);
        let Some(entry) = self.sessions.get_mut(&session) else { return };
        self.kept_bytes = self.kept_bytes.saturating_sub(entry.kept_bytes) + bytes;
        entry.kept_bytes = if bytes <= most { bytes } else { 0 };
        if bytes <= most {
            return;
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
                What::Lazy(at) => roots.push(at),
                What::Parked(id) => self.unpark_by_limit(id),
            }
        }
        self.cut_lazy(session, roots, CutReason::ByteLimit, out);
    }

    /// Bytes that a session's lazy values and parked regions keep, and who keeps how many. Of several that keep the same,
    /// the one that takes the least itself is said to.
    fn kept_by(&mut self, session: SessionId) -> (u64, Vec<Keeper>) {
        self.forget_unparked(session);
        let Some(entry) = self.sessions.get_mut(&session) else { return (0, Vec::new()) };
        entry.lazy.retain(|value| self.graph.get(*value).is_some_and(Live::is_lazy));
        let lazy: Vec<NodeIndex> = entry.lazy.iter().filter_map(|value| self.graph.find(*value)).collect();
        let held = lazy.iter().copied().filter(|at| self.graph[*at].held);
        let held = held.map(|at| (self.graph[at].node.meta.bytes() as u64, What::Lazy(at)));
        let parked = entry.parked.iter().map(|id| {
            let outputs = self.regions[id].region.nodes.iter().filter(|node| node.output);
            (outputs.map(|node| node.meta.bytes() as u64).sum(), What::Parked(*id))
        });
        let mut all: Vec<(u64, What)> = held.chain(parked).collect();
        all.sort_unstable();
        let mut largest = FxHashMap::default();
        let mut keeper = |(own_bytes, what)| {
            let (kept_bytes, largest_bytes) = self.kept_for(what, &mut largest);
            Keeper { what, own_bytes, kept_bytes, largest_bytes }
        };
        let keepers: Vec<Keeper> = all.into_iter().map(&mut keeper).collect();
        // What nobody holds here is read by what another session holds.
        let of_others: u64 = lazy.into_iter().map(|at| self.kept_for(What::Lazy(at), &mut largest).0).sum();
        (keepers.iter().map(|keeper| keeper.kept_bytes).sum::<u64>() + of_others, keepers)
    }

    /// Bytes that somebody keeps, and that nobody keeps of whom that was asked before; and those of the largest value
    /// that it keeps, alone or not. `largest` has the latter of all that was looked at.
    fn kept_for(&self, what: What, largest: &mut FxHashMap<NodeIndex, u64>) -> (u64, u64) {
        let roots: Entries = match what {
            What::Lazy(at) => smallvec![at],
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
            let own = if is_kept(live) { live.node.meta.bytes() as u64 } else { 0 };
            entry.insert(own);
            bytes += own;
            if live.is_lazy() {
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

/// Whether a value is there that its program has let go of.
fn is_kept(live: &Live) -> bool {
    !live.held && matches!(live.home, Home::Here)
}
