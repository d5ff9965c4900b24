//! The backlog holds events that sessions have sent and the scheduler has not taken in yet. They are cheap to keep and
//! to throw away.
//!
//! In: events from users, in the order in which they were sent; credits; which gathers are still awaited. Out: the same
//! events, in order within each session, when the scheduler has room for them. Plain state: no channel, clock or
//! thread.
//!
//! In its turn, a session passes one segment that makes work, and is charged the time that this takes the ring's
//! thread. A [`Fair`] chooses the next session by the sessions' weights, unless programs give up requests before their
//! turn.
//!
//! A segment here is only a list of records. Taking it in costs graph work for every record, and the regions that are
//! cut from it have to be planned, placed and run. So only as much is taken in as keeps the devices busy, and a request
//! that is given up while it waits here costs nothing more.
//!
//! Must hold:
//! - BACKLOG-1: a session's events leave in the order in which they were sent.
//! - BACKLOG-2: a segment that reads values of another session leaves after all that this session sent before it, and
//!   before all that it sends later: the drops of that session must not overtake a reader.
//! - BACKLOG-3: every demand that leaves is still awaited. When a session is closed, its waiting events are thrown
//!   away, and the gathers among them that are still awaited fail. But if a waiting segment of another session reads
//!   values of the session, its events leave in their turn, and its end after them.
//! - BACKLOG-4: no entry is kept for a session that has ended and has no work inside the scheduler.
//! - BACKLOG-5: while requests are given up before their turn, at least every sixteenth turn goes to the session that
//!   has waited longest.
//! - BACKLOG-6: otherwise the sessions that wait for a turn share the turns by their weights, as [`Fair`] says (FAIR-2
//!   to FAIR-4), where a piece of work is the next segment of a session. Work that leaves in a session's turn on behalf
//!   of others (BACKLOG-2) is charged to that session. A session that waits alone is charged nothing.

use super::gate::Inside;
use crate::config::Room;
use crate::contract::costs::ring_ns;
use crate::contract::messages::scheduler::SchedulerEvent;
use crate::contract::tape::Record;
use crate::fair::Fair;
use crate::ids::{GatherId, SessionId};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};
use std::collections::{BTreeMap, VecDeque};

/// Segments stay here while this many sessions have regions waiting in the scheduler. Regions there cannot be thrown
/// away unread and get their turn even if they are given up before, so there should be no more of them than keep the
/// devices busy.
const SESSIONS_INSIDE_MAX: usize = 32;
/// The same limit while requests are given up before their turn: a segment that is taken in should run at once.
const SESSIONS_INSIDE_FEW: usize = 8;
/// Requests count as given up only if at least this many sessions wait for a turn. With fewer, each is served soon.
const SESSIONS_WAITING_MANY: usize = 16;
/// While requests are given up, one turn in this many goes to the session that has waited longest.
const OLDEST_EVERY: u32 = 16;
/// A segment that was given up counts until this many segments were taken in that are still awaited.
const GIVEN_UP_WEIGHT: u32 = 8;
/// Upper limit of `Backlog::given_up`.
const GIVEN_UP_MAX: u32 = 1024;

/// Events that wait.
pub(super) struct Backlog {
    sessions: FxHashMap<SessionId, Queue>,
    /// Sessions whose next event makes work, each under its `Queue::listed`, in the order in which they began to wait.
    /// Some entries are out of date.
    order: VecDeque<(u64, SessionId)>,
    /// The number of entries of `order` that are not out of date.
    ordered: usize,
    /// Decides which of these sessions has the next turn.
    fair: Fair,
    /// Entries of `order` from this number on have not entered `fair` yet. They do when the next turn is given, so that
    /// a session that was just opened enters with its first segment.
    entered: u64,
    next_listed: u64,
    /// Sessions whose next event makes no work and frees memory: a drop, or the session's end.
    urgent: VecDeque<SessionId>,
    /// Events that leave next.
    due: VecDeque<SchedulerEvent>,
    /// Most nodes and bytes of a session inside the scheduler; beyond that, its segments stay here.
    room: Room,
    next_number: u64,
    /// A counter that grows with each segment that is given up, and falls with each that is taken in and awaited.
    given_up: u32,
    turn: u32,
    waiting: usize,
}

/// One session's events.
#[derive(Default)]
struct Queue {
    /// The events, each numbered in the order in which all sessions sent theirs.
    events: VecDeque<(u64, SchedulerEvent)>,
    /// Nodes and bytes that the scheduler has taken in and has not given credit for.
    inside: Inside,
    place: Place,
    /// The scheduler was told of the session's opening, and not of its end.
    known: bool,
    /// The session's weight; 0 until it is opened.
    weight: u32,
    /// The number of its latest entry in `Backlog::order`.
    listed: u64,
    /// Segments that wait here and read values of this session: their numbers and sessions.
    readers: BTreeMap<u64, SessionId>,
}

/// The list in which a session waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// In no list: it has no events here, or too much work inside the scheduler.
    #[default]
    Nowhere,
    Order,
    Urgent,
}

/// What was thrown away with a session's events.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Discarded {
    /// The session that ended.
    pub session: Option<SessionId>,
    /// Ops of its segments.
    pub nodes: u64,
    /// The times in nanoseconds at which its segments were cut. They identify the callers' spans, which have to be
    /// ended.
    pub cuts: Vec<u64>,
    /// Gathers that are still awaited, and now fail.
    pub gathers: Vec<GatherId>,
    /// The scheduler was never told of the session, and never will be.
    pub unheard: bool,
}

impl Backlog {
    /// An empty backlog. `room` is the most of a session that may be inside the scheduler at a time.
    pub(super) fn new(room: Room) -> Backlog {
        Backlog {
            sessions: FxHashMap::default(),
            order: VecDeque::new(),
            ordered: 0,
            fair: Fair::default(),
            entered: 0,
            next_listed: 0,
            urgent: VecDeque::new(),
            due: VecDeque::new(),
            room,
            next_number: 0,
            given_up: 0,
            turn: 0,
            waiting: 0,
        }
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting == 0 && self.due.is_empty()
    }

    /// Sessions with entries, and entries of the lists.
    #[cfg(test)]
    pub(super) fn tables(&self) -> [(&'static str, usize); 4] {
        [
            ("backlog sessions", self.sessions.len()),
            ("backlog order", self.order.len() + self.urgent.len()),
            ("backlog shares", self.fair.known()),
            ("backlog room for sessions", self.sessions.capacity()),
        ]
    }

    /// The next segment is taken in only while fewer sessions than this have regions waiting in the scheduler.
    pub(super) fn sessions_inside_max(&self) -> usize {
        if self.is_given_up() { SESSIONS_INSIDE_FEW } else { SESSIONS_INSIDE_MAX }
    }

    /// Whether programs give up requests before their turn comes.
    fn is_given_up(&self) -> bool {
        self.given_up > 0 && self.ordered >= SESSIONS_WAITING_MANY
    }

    /// Takes in an event of a session. `is_awaited` says whether the future of a gather still exists.
    pub(super) fn put(&mut self, event: SchedulerEvent, is_awaited: impl Fn(GatherId) -> bool) -> Discarded {
        let Some(session) = session_of(&event) else {
            self.due.push_back(event);
            return Discarded::default();
        };
        let number = self.next_number;
        self.next_number += 1;
        if let SchedulerEvent::SegmentCut { records, .. } = &event {
            for home in &records.summary.homes {
                self.sessions.entry(*home).or_default().readers.insert(number, session);
            }
        }
        let queue = self.sessions.entry(session).or_default();
        if let SchedulerEvent::SessionOpened { weight, .. } = &event {
            queue.weight = *weight;
        }
        let ends = matches!(event, SchedulerEvent::SessionClosed(_));
        let discarded = match ends && queue.readers.is_empty() && !queue.events.is_empty() {
            true => self.discard(session, is_awaited),
            false => Discarded::default(),
        };
        if !discarded.unheard {
            let queue = self.sessions.entry(session).or_default();
            queue.events.push_back((number, event));
            self.waiting += 1;
            self.list(session);
        }
        discarded
    }

    /// The next event for the scheduler. With `has_room`, it may be one that makes work.
    pub(super) fn next(&mut self, has_room: bool, is_awaited: impl Fn(GatherId) -> bool) -> Option<SchedulerEvent> {
        while self.due.is_empty() {
            match self.urgent.pop_front() {
                Some(session) => self.pass_drops(session),
                None if has_room => {
                    let session = self.pick()?;
                    self.take_turn(session);
                }
                None => return None,
            }
        }
        let mut event = self.due.pop_front()?;
        self.withdraw_demands(&mut event, is_awaited);
        Some(event)
    }

    /// Nodes of a session that were left lazy are inside the scheduler again.
    pub(super) fn charge(&mut self, session: SessionId, nodes: u64, bytes: u64) {
        self.sessions.entry(session).or_default().inside.enter(nodes, bytes);
    }

    /// Nodes of a session have left the scheduler.
    pub(super) fn credit(&mut self, session: SessionId, nodes: u64) {
        if let Some(queue) = self.sessions.get_mut(&session) {
            queue.inside.leave(nodes);
            self.list(session);
        }
    }

    /// The session whose turn it is. Normally, [`Fair`] names it. While requests are given up, it is the session that
    /// came last: the one that has waited longest would probably give up before its answer comes, and the time spent on
    /// it would be lost for the others, too. A session that waits alone needs no [`Fair`].
    fn pick(&mut self) -> Option<SessionId> {
        self.turn = self.turn.wrapping_add(1);
        let alone = self.ordered == 1 && self.fair.is_empty();
        let oldest = alone || self.turn.is_multiple_of(OLDEST_EVERY);
        if !alone {
            self.enter_listed();
            if !self.is_given_up() {
                return self.fair.in_order().next();
            }
        }
        loop {
            let (listed, session) = if oldest { self.order.pop_front() } else { self.order.pop_back() }?;
            if is_current(&self.sessions, listed, session) {
                return Some(session);
            }
        }
    }

    /// Tells `fair` of the sessions that began to wait since it was told last.
    fn enter_listed(&mut self) {
        for &(listed, session) in self.order.iter().rev().take_while(|(listed, _)| *listed >= self.entered) {
            if is_current(&self.sessions, listed, session) {
                let queue = &self.sessions[&session];
                self.fair.enter(session, queue.weight, queue.requests(), queue.piece_ns(), listed);
            }
        }
        self.entered = self.next_listed;
    }

    /// Passes a session's next segment, charges it, and lists the session again if it has more.
    fn take_turn(&mut self, session: SessionId) {
        self.unlist(session);
        let nodes = self.pass_some(session, true);
        self.fair.charge(session, ring_ns(nodes));
        self.list(session);
        if self.sessions.get(&session).is_none_or(|queue| queue.place != Place::Order) {
            self.fair.leave(session);
        }
        if self.waiting == 0 && self.fair.is_empty() {
            self.fair.forget_debts();
        }
    }

    /// Passes a session's next events that make no work.
    fn pass_drops(&mut self, session: SessionId) {
        match self.sessions.get_mut(&session) {
            Some(queue) if queue.place == Place::Urgent => queue.place = Place::Nowhere,
            _ => return,
        }
        self.pass_some(session, false);
        self.list(session);
    }

    /// Takes a session out of the list in which it waits.
    fn unlist(&mut self, session: SessionId) {
        let Some(queue) = self.sessions.get_mut(&session) else { return };
        if std::mem::take(&mut queue.place) == Place::Order {
            self.ordered -= 1;
            if self.ordered == 0 {
                self.order.clear();
            }
        }
    }

    /// Passes a session's events up to the first that makes work, and those after it that make none. Without
    /// `with_work`, stops before the first that makes work. Returns the nodes that left.
    fn pass_some(&mut self, session: SessionId, with_work: bool) -> u64 {
        let (mut has_work, mut nodes) = (!with_work, 0);
        while let Some((number, event)) = self.sessions.get(&session).and_then(|queue| queue.events.front()) {
            if makes_work(event) && std::mem::replace(&mut has_work, true) {
                break;
            }
            let number = *number;
            nodes += self.pass(session, number);
        }
        nodes
    }

    /// Passes a session's events up to this number, and before each of them those of other sessions that have to leave
    /// first (BACKLOG-2). Returns the nodes that left.
    fn pass(&mut self, session: SessionId, up_to: u64) -> u64 {
        let mut stack: SmallVec<[(SessionId, u64); 4]> = smallvec![(session, up_to)];
        let mut nodes = 0;
        while let Some(&(session, up_to)) = stack.last() {
            match self.before_next(session, up_to) {
                None => drop(stack.pop()),
                Some(Some(first)) => stack.push(first),
                Some(None) => nodes += self.pass_one(session),
            }
        }
        nodes
    }

    /// `None` if a session has no event up to this number. Otherwise, what has to leave before its next event, if
    /// anything: a session, and the number of the last of its events. That number is smaller, so the recursion ends.
    fn before_next(&self, session: SessionId, up_to: u64) -> Option<Option<(SessionId, u64)>> {
        let queue = self.sessions.get(&session)?;
        let (number, event) = queue.events.front().filter(|(number, _)| *number <= up_to)?;
        if let Some((reader, of)) = queue.readers.first_key_value().filter(|(reader, _)| *reader < number) {
            return Some(Some((*of, *reader)));
        }
        let SchedulerEvent::SegmentCut { records, .. } = event else { return Some(None) };
        let waits_before = |home: &&SessionId| {
            let front = self.sessions.get(home).and_then(|queue| queue.events.front());
            front.is_some_and(|(other, _)| other < number)
        };
        Some(records.summary.homes.iter().find(waits_before).map(|home| (*home, number - 1)))
    }

    fn pass_one(&mut self, session: SessionId) -> u64 {
        let Some(queue) = self.sessions.get_mut(&session) else { return 0 };
        let Some((number, event)) = queue.events.pop_front() else { return 0 };
        self.waiting -= 1;
        queue.known = !matches!(event, SchedulerEvent::SessionClosed(_));
        let nodes = nodes_of(&event);
        if let SchedulerEvent::SegmentCut { records, .. } = &event {
            queue.inside.enter(records.summary.nodes, records.summary.pinned_bytes);
            if !records.summary.demands.is_empty() {
                self.given_up = self.given_up.saturating_sub(1);
            }
            self.read_no_more(number, &event);
        }
        self.due.push_back(event);
        nodes
    }

    /// A segment has left: removes it from the readers of the sessions whose values it reads.
    fn read_no_more(&mut self, number: u64, event: &SchedulerEvent) {
        let SchedulerEvent::SegmentCut { records, .. } = event else { return };
        for home in &records.summary.homes {
            if let Some(queue) = self.sessions.get_mut(home) {
                queue.readers.remove(&number);
                self.forget(*home);
            }
        }
    }

    /// Throws away a session's waiting events (BACKLOG-3).
    fn discard(&mut self, session: SessionId, is_awaited: impl Fn(GatherId) -> bool) -> Discarded {
        let Some(queue) = self.sessions.get_mut(&session) else { return Discarded::default() };
        let events = std::mem::take(&mut queue.events);
        let unheard = !queue.known;
        self.waiting -= events.len();
        self.unlist(session);
        self.fair.leave(session);
        let mut discarded = Discarded { session: Some(session), unheard, ..Discarded::default() };
        for (number, event) in events {
            match &event {
                SchedulerEvent::SegmentCut { records, at_ns, .. } => {
                    discarded.nodes += records.summary.nodes;
                    discarded.cuts.push(*at_ns);
                    let demands = records.summary.demands.iter().copied();
                    discarded.gathers.extend(demands.filter(|gather| is_awaited(*gather)));
                    if !records.summary.demands.is_empty() {
                        self.note_given_up();
                    }
                }
                SchedulerEvent::ExplainAsked { gather, .. } if is_awaited(*gather) => discarded.gathers.push(*gather),
                _ => {}
            }
            self.read_no_more(number, &event);
        }
        if unheard {
            self.forget(session);
        }
        discarded
    }

    /// Replaces demands that are not awaited any more by cancels.
    fn withdraw_demands(&mut self, event: &mut SchedulerEvent, is_awaited: impl Fn(GatherId) -> bool) {
        let SchedulerEvent::SegmentCut { records, .. } = event else { return };
        if records.summary.demands.iter().all(|gather| is_awaited(*gather)) {
            return;
        }
        self.note_given_up();
        for record in records.iter_mut() {
            if let Record::Demanded { gather, .. } = record
                && !is_awaited(*gather)
            {
                *record = Record::Cancelled(*gather);
            }
        }
    }

    fn note_given_up(&mut self) {
        if self.ordered >= SESSIONS_WAITING_MANY {
            self.given_up = (self.given_up + GIVEN_UP_WEIGHT).min(GIVEN_UP_MAX);
        }
    }

    /// Puts a session into a list, if it has events and is in none.
    fn list(&mut self, session: SessionId) {
        let Some(queue) = self.sessions.get_mut(&session) else { return };
        let Some((_, event)) = queue.events.front() else { return self.forget(session) };
        if queue.place != Place::Nowhere {
            return;
        }
        let (nodes, bytes) = queue.inside.held();
        if queue.known && !makes_work(event) {
            queue.place = Place::Urgent;
            self.urgent.push_back(session);
        } else if self.room.holds(nodes, bytes) {
            queue.place = Place::Order;
            queue.listed = self.next_listed;
            self.order.push_back((queue.listed, session));
            self.next_listed += 1;
            self.ordered += 1;
            if self.order.len() > 2 * self.ordered + 64 {
                let sessions = &self.sessions;
                self.order.retain(|&(listed, session)| is_current(sessions, listed, session));
            }
        }
    }

    /// BACKLOG-4.
    fn forget(&mut self, session: SessionId) {
        let ended = |queue: &Queue| {
            !queue.known && queue.events.is_empty() && queue.readers.is_empty() && queue.inside.held().0 == 0
        };
        if self.sessions.get(&session).is_some_and(|queue| queue.place != Place::Order && ended(queue)) {
            self.sessions.remove(&session);
        }
    }
}

impl Queue {
    /// Its waiting events without its opening: about the number of its requests, since most events make work.
    fn requests(&self) -> usize {
        self.events.len().saturating_sub(usize::from(!self.known))
    }

    /// Estimated nanoseconds of the ring's thread for its next segment, which is its next event or the one after its
    /// opening.
    fn piece_ns(&self) -> u64 {
        ring_ns(self.events.iter().take(2).map(|(_, event)| nodes_of(event)).find(|nodes| *nodes > 0).unwrap_or(0))
    }
}

/// Whether an entry of `Backlog::order` is not out of date.
fn is_current(sessions: &FxHashMap<SessionId, Queue>, listed: u64, session: SessionId) -> bool {
    sessions.get(&session).is_some_and(|queue| queue.place == Place::Order && queue.listed == listed)
}

/// The nodes of a segment.
fn nodes_of(event: &SchedulerEvent) -> u64 {
    match event {
        SchedulerEvent::SegmentCut { records, .. } => records.summary.nodes,
        _ => 0,
    }
}

/// The session that an event belongs to, if it belongs to one.
fn session_of(event: &SchedulerEvent) -> Option<SessionId> {
    match event {
        SchedulerEvent::SessionOpened { session, .. }
        | SchedulerEvent::SegmentCut { session, .. }
        | SchedulerEvent::SessionClosed(session) => Some(*session),
        SchedulerEvent::ExplainAsked { value, .. } => Some(value.session),
        _ => None,
    }
}

/// Whether an event makes work for the scheduler. The others only drop values or cancel.
fn makes_work(event: &SchedulerEvent) -> bool {
    match event {
        SchedulerEvent::SegmentCut { records, .. } => records.summary.nodes > 0 || !records.summary.demands.is_empty(),
        // An explanation runs nothing.
        _ => false,
    }
}
