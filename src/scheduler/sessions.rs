//! The sessions: what each has waiting, what it asked for, and what it left behind.
//!
//! In: what happens to sessions, their segments, gathers and regions. Out: each session's tables, to read. Must hold:
//! only the methods of [`Sessions`] change a session, since nothing else hands one out to be changed; a session that
//! has ended is in the table while a gather of it is open or a region of it is queued, and no longer.

use crate::ids::{GatherId, RegionId, SessionId, ValueId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// One session. Its fields can be read everywhere in the scheduler; [`Sessions`] changes them.
#[derive(Debug)]
pub(super) struct Session {
    pub name: Arc<str>,
    pub weight: u32,
    /// Regions that wait for their turn, in the order of cutting (SCHED-6).
    pub queue: VecDeque<RegionId>,
    /// Open gathers that it made.
    gathers: FxHashSet<GatherId>,
    /// Values that it recorded: first and one past the last number.
    values: Range<u64>,
    /// Values that its segments left lazy. The list may name values that were computed or removed since.
    pub lazy: Vec<ValueId>,
    /// The number of lazy values at the last search that found none held by this session's program: lazy values of
    /// other sessions keep them alive. The next search waits until the list has doubled.
    pub lazy_of_others: usize,
    /// Regions of this session that were parked. The list may name regions that are not parked any more: a region's
    /// `Life` says whether it is. The list is an index of these lives. A limit looks at the parked regions of one
    /// session, often, and would otherwise have to visit the unfinished regions of all sessions.
    pub parked: Vec<RegionId>,
    /// Nodes in the regions of `parked`, including those that are not parked any more: an upper bound, so that the
    /// list is visited only when the bound has reached the limit.
    parked_nodes: usize,
    /// Bytes added to what its parked regions keep in memory, since that was last counted.
    kept_by_parked_bytes: u64,
    /// Bytes of dropped values that its lazy values keep, added since that was last counted.
    kept_by_lazy_bytes: u64,
    /// It has ended. It stays in the table until its last gather is answered and its last queued region is sent.
    pub closed: bool,
}

impl Session {
    fn new(name: Arc<str>, weight: u32) -> Session {
        Session {
            name,
            weight,
            queue: VecDeque::new(),
            gathers: FxHashSet::default(),
            values: 0..0,
            lazy: Vec::new(),
            lazy_of_others: 0,
            parked: Vec::new(),
            parked_nodes: 0,
            kept_by_parked_bytes: 0,
            kept_by_lazy_bytes: 0,
            closed: false,
        }
    }

    /// A session that has ended while regions of it are still unfinished.
    fn ended() -> Session {
        Session { closed: true, ..Session::new(Arc::from("ended"), 1) }
    }

    /// Whether no gather of it is open and no region of it waits for its turn.
    fn has_nothing_open(&self) -> bool {
        self.gathers.is_empty() && self.queue.is_empty()
    }
}

/// The sessions by number.
#[derive(Debug, Default)]
pub(super) struct Sessions(FxHashMap<SessionId, Session>);

impl Sessions {
    /// A session, if it is known.
    pub fn get(&self, session: SessionId) -> Option<&Session> {
        self.0.get(&session)
    }

    /// The numbers of all sessions, in no particular order.
    pub fn ids(&self) -> impl Iterator<Item = SessionId> + '_ {
        self.0.keys().copied()
    }

    /// A session was opened, under this name and with this weight.
    pub fn open(&mut self, session: SessionId, name: Arc<str>, weight: u32) {
        let entry = self.0.entry(session).or_insert_with(|| Session::new(name.clone(), weight));
        entry.name = name;
        entry.weight = weight;
    }

    /// A segment of a session arrived, so the session is known from now on (SCHED-9). Returns whether it has ended:
    /// then the segment is refused.
    pub fn segment_arrived(&mut self, session: SessionId) -> bool {
        self.0.entry(session).or_insert_with(|| Session::new(Arc::from("unnamed"), 1)).closed
    }

    /// Whether a session is known and has ended.
    pub fn has_ended(&self, session: SessionId) -> bool {
        self.get(session).is_some_and(|entry| entry.closed)
    }

    /// A session's program recorded a value. All values from its first to its last number are released when it ends.
    pub fn value_recorded(&mut self, value: ValueId) {
        let entry = self.0.get_mut(&value.session).expect("SCHED-9: the segment's session is known");
        let start = if entry.values.is_empty() { value.index } else { entry.values.start.min(value.index) };
        entry.values = start..entry.values.end.max(value.index + 1);
    }

    /// A session's program asked for a gather. Returns whether the session is known.
    pub fn gather_opened(&mut self, session: SessionId, gather: GatherId) -> bool {
        let entry = self.0.get_mut(&session);
        entry.map(|entry| entry.gathers.insert(gather)).is_some()
    }

    /// A gather was answered or withdrawn. A session that waited for that alone to end leaves the table.
    pub fn gather_closed(&mut self, session: SessionId, gather: GatherId) {
        if let Some(entry) = self.0.get_mut(&session) {
            entry.gathers.remove(&gather);
            self.forget_if_done(session);
        }
    }

    /// A session ends: it takes no more segments. Returns the numbers of its values, which are released, and its open
    /// gathers in order; `None` for a session that is not known. [`Self::forget_if_done`] follows.
    pub fn close(&mut self, session: SessionId) -> Option<(Range<u64>, Vec<GatherId>)> {
        let entry = self.0.get_mut(&session)?;
        entry.closed = true;
        let values = std::mem::replace(&mut entry.values, 0..0);
        let mut gathers: Vec<GatherId> = entry.gathers.iter().copied().collect();
        gathers.sort_unstable();
        Some((values, gathers))
    }

    /// Removes a session from the table if it has ended and nothing of it is open.
    pub fn forget_if_done(&mut self, session: SessionId) {
        if self.get(session).is_some_and(|entry| entry.closed && entry.has_nothing_open()) {
            self.0.remove(&session);
        }
    }

    /// The runtime stops: no session is known any more.
    pub fn forget_all(&mut self) {
        self.0.clear();
    }

    /// A region waits for its turn, at its place in the order of cutting (SCHED-6). It may be repeated after its
    /// session has ended, which is then in the table again until the region is sent.
    pub fn enqueue(&mut self, owner: SessionId, id: RegionId, order_of: impl Fn(RegionId) -> u64) {
        let queue = &mut self.0.entry(owner).or_insert_with(Session::ended).queue;
        let order = order_of(id);
        queue.insert(queue.partition_point(|other| order_of(*other) < order), id);
    }

    /// A region that waits is dropped or parked: it leaves its queue.
    pub fn dequeue(&mut self, owner: SessionId, id: RegionId, order_of: impl Fn(RegionId) -> u64) {
        let queue = &mut self.0.get_mut(&owner).expect("SCHED-6: a region's session is known").queue;
        let order = order_of(id);
        let removed = queue.remove(queue.partition_point(|other| order_of(*other) < order));
        assert_eq!(removed, Some(id), "SCHED-6: a region that is not sent stands in its queue");
    }

    /// The first region of a session's queue is sent.
    pub fn head_sent(&mut self, owner: SessionId) {
        self.0.get_mut(&owner).expect("SCHED-6: an active session is known").queue.pop_front();
    }

    /// A segment of a session was cut, and left these values lazy.
    pub fn left_lazy(&mut self, session: SessionId, values: impl Iterator<Item = ValueId>) {
        if let Some(entry) = self.0.get_mut(&session) {
            entry.lazy.extend(values);
        }
    }

    /// Keeps only those of a session's lazy values that still are.
    pub fn prune_lazy(&mut self, session: SessionId, is_lazy: impl Fn(ValueId) -> bool) {
        if let Some(entry) = self.0.get_mut(&session) {
            entry.lazy.retain(|value| is_lazy(*value));
        }
    }

    /// A search of a session's lazy values has ended. `of_others` is their number if only other sessions keep them, and
    /// 0 otherwise.
    pub fn lazy_searched(&mut self, session: SessionId, of_others: usize) {
        if let Some(entry) = self.0.get_mut(&session) {
            entry.lazy_of_others = of_others;
        }
    }

    /// Adds bytes to what a session's lazy values keep.
    pub fn add_kept_by_lazy(&mut self, session: SessionId, bytes: u64) {
        if let Some(entry) = self.0.get_mut(&session) {
            entry.kept_by_lazy_bytes += bytes;
        }
    }

    /// Whether more than `most` bytes were added to what a session's lazy values keep. If so, they are counted now, and
    /// adding begins again at none.
    pub fn take_kept_by_lazy(&mut self, session: SessionId, most: u64) -> bool {
        let entry = self.0.get_mut(&session).filter(|entry| entry.kept_by_lazy_bytes > most);
        entry.map(|entry| entry.kept_by_lazy_bytes = 0).is_some()
    }

    /// Adds bytes to what a session's parked regions keep. Returns all bytes added since they were last counted; `None`
    /// for a session that is not known.
    pub fn add_kept_by_parked(&mut self, session: SessionId, bytes: u64) -> Option<u64> {
        let entry = self.0.get_mut(&session)?;
        entry.kept_by_parked_bytes += bytes;
        Some(entry.kept_by_parked_bytes)
    }

    /// What a session's parked regions keep is counted now: adding begins again at none. Returns whether the session is
    /// known.
    pub fn kept_by_parked_counted(&mut self, session: SessionId) -> bool {
        self.0.get_mut(&session).map(|entry| entry.kept_by_parked_bytes = 0).is_some()
    }

    /// A region of this many nodes was parked. Returns an upper bound of the nodes that the session has parked.
    pub fn parked(&mut self, owner: SessionId, id: RegionId, nodes: usize) -> usize {
        let entry = self.0.get_mut(&owner).expect("SCHED-6: a queued region's session is known");
        entry.parked.push(id);
        entry.parked_nodes += nodes;
        entry.parked_nodes
    }

    /// Keeps only those of a session's parked regions that still are, each once.
    pub fn prune_parked(&mut self, owner: SessionId, is_parked: impl Fn(RegionId) -> bool) {
        if let Some(entry) = self.0.get_mut(&owner) {
            entry.parked.retain(|id| is_parked(*id));
            entry.parked.sort_unstable();
            entry.parked.dedup();
        }
    }

    /// Counts the nodes of a session's parked regions, after [`Self::prune_parked`].
    pub fn count_parked(&mut self, owner: SessionId, nodes_of: impl Fn(RegionId) -> usize) -> usize {
        let Some(entry) = self.0.get_mut(&owner) else { return 0 };
        entry.parked_nodes = entry.parked.iter().map(|id| nodes_of(*id)).sum();
        entry.parked_nodes
    }

    /// All parked regions of a session are queued again: its list is empty now. Returns the list.
    pub fn take_parked(&mut self, owner: SessionId) -> Vec<RegionId> {
        let Some(entry) = self.0.get_mut(&owner) else { return Vec::new() };
        entry.parked_nodes = 0;
        std::mem::take(&mut entry.parked)
    }

    /// All sessions, in no particular order.
    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = &Session> + '_ {
        self.0.values()
    }

    /// Sessions, and how many the table has room for.
    #[cfg(test)]
    pub fn room(&self) -> (usize, usize) {
        (self.0.len(), self.0.capacity())
    }
}

impl std::ops::Index<SessionId> for Sessions {
    type Output = Session;
    fn index(&self, session: SessionId) -> &Session {
        &self.0[&session]
    }
}
