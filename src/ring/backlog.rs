//! The backlog holds what sessions have sent and the scheduler has not taken in yet. It is cheap to keep, and to throw
//! away.
//!
//! In: users' events, in the order in which they were sent; credits; which gathers are still awaited. Out: the same
//! events, a session's in their order, as far as the scheduler has room for more. Plain state: no channel, clock or
//! thread.
//!
//! A session in turn passes one segment that makes work, and is charged what that takes the ring's thread. Whose turn
//! it is, a [`Fair`] says, by the sessions' weights, as long as no work is given up.
//!
//! A segment here is a list of records. To take it in costs graph work for every record, and what is cut from it has to
//! be planned, placed and run. So no more is taken in than the devices will soon ask for, and work that is given up
//! while it waits here costs nothing more.
//!
//! Must hold:
//! - BACKLOG-1: a session's events leave in the order in which they were sent.
//! - BACKLOG-2: a segment that reads values of another session leaves after all that this session sent before it, and
//!   before all that it sends later: its drops must not overtake who reads.
//! - BACKLOG-3: demands that leave are awaited. Where a session is closed, what it sent and nobody else reads is thrown
//!   away with all that it holds, and gathers of it that are still awaited fail.
//! - BACKLOG-4: nothing is kept of a session that has ended and has nothing inside.
//! - BACKLOG-5: while work is given up, the session that has waited longest has at least every sixteenth turn.
//! - BACKLOG-6: otherwise the sessions that wait for a turn share the turns by their weights, as [`Fair`] says (FAIR-2
//!   to FAIR-4), where a piece of work is the next segment of a session. Work that leaves in a session's turn on behalf
//!   of others (BACKLOG-2) is charged to that session. A session that waits alone is charged nothing.

use super::gate::Inside;
use crate::config::Room;
use crate::contract::messages::scheduler::SchedulerEvent;
use crate::contract::tape::Record;
use crate::fair::Fair;
use crate::ids::{GatherId, SessionId};
use crate::scheduler::ring_ns;
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};
use std::collections::{BTreeMap, VecDeque};

/// Sessions that may have regions waiting in the scheduler before segments stay here. What waits there can't be thrown
/// away unread, and is served in turn, also where it will be given up before: so it is no more than keeps devices busy.
const SESSIONS_INSIDE_MAX: usize = 32;
/// The same while work is given up before its turn comes: what is taken in should be on a device at once.
const SESSIONS_INSIDE_FEW: usize = 8;
/// Sessions that wait for a turn before any of that matters: with fewer, each is served soon enough.
const SESSIONS_WAITING_MANY: usize = 16;
/// While work is given up, one turn of so many is for the session that has waited longest.
const OLDEST_EVERY: u32 = 16;
/// Segments that are taken in, each still awaited, before one that was given up is forgotten.
const GIVEN_UP_WEIGHT: u32 = 8;
/// The most that are remembered of those that were given up, times their weight.
const GIVEN_UP_MAX: u32 = 1024;

/// Events that wait.
pub(super) struct Backlog {
    sessions: FxHashMap<SessionId, Queue>,
    /// Sessions whose next event costs something, each under its `Queue::listed`, in the order in which they began to
    /// wait. Some entries are out of date.
    order: VecDeque<(u64, SessionId)>,
    /// How many of them are not.
    ordered: usize,
    /// Decides which of them has the next turn.
    fair: Fair,
    /// Entries of `order` from this number on have not entered `fair` yet. They do when the next turn is given, so that
    /// a session that was just opened enters with its first segment.
    entered: u64,
    next_listed: u64,
    /// Sessions whose next events cost nothing and free memory: drops, and the session's end.
    urgent: VecDeque<SessionId>,
    /// Events that leave next.
    due: VecDeque<SchedulerEvent>,
    /// How much of a session may be inside before its segments stay here.
    room: Room,
    next_number: u64,
    /// Grows with segments that are given up, falls with those that are taken in and awaited.
    given_up: u32,
    turn: u32,
    waiting: usize,
}

/// One session's events.
#[derive(Default)]
struct Queue {
    /// Each with its number in the order in which all events were sent.
    events: VecDeque<(u64, SchedulerEvent)>,
    /// Nodes and bytes that the scheduler has taken in and has not given credit for.
    inside: Inside,
    place: Place,
    /// The scheduler has heard of the session, and not of its end.
    known: bool,
    /// The session's weight; 0 until it is opened.
    weight: u32,
    /// The number of its latest entry in `Backlog::order`.
    listed: u64,
    /// Segments that wait here and read values of this session: their numbers and sessions.
    readers: BTreeMap<u64, SessionId>,
}

/// Where a session stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Nowhere: nothing of it waits, or too much of it is inside.
    #[default]
    Nowhere,
    Order,
    Urgent,
}

/// A session's events that were thrown away.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Discarded {
    /// The session that ended.
    pub session: Option<SessionId>,
    /// Ops.
    pub nodes: u64,
    /// When its segments were cut, in nanoseconds: their callers are forgotten.
    pub cuts: Vec<u64>,
    /// Gathers that are still awaited, and now fail.
    pub gathers: Vec<GatherId>,
    /// The scheduler will never hear of the session.
    pub unheard: bool,
}

impl Backlog {
    /// Nothing waits. `room`: how much of a session may be inside at a time.
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

    /// Sessions that it keeps something of, and entries of its lists.
    #[cfg(test)]
    pub(super) fn tables(&self) -> [(&'static str, usize); 4] {
        [
            ("backlog sessions", self.sessions.len()),
            ("backlog order", self.order.len() + self.urgent.len()),
            ("backlog shares", self.fair.known()),
            ("backlog room for sessions", self.sessions.capacity()),
        ]
    }

    /// Sessions that may have regions waiting in the scheduler for the next segment to be taken in.
    pub(super) fn sessions_inside_max(&self) -> usize {
        if self.is_given_up() { SESSIONS_INSIDE_FEW } else { SESSIONS_INSIDE_MAX }
    }

    /// Whether work is given up before its turn comes.
    fn is_given_up(&self) -> bool {
        self.given_up > 0 && self.ordered >= SESSIONS_WAITING_MANY
    }

    /// Takes in an event of a session; `is_awaited` says whether somebody still waits for a gather.
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

    /// The next event for the scheduler. `has_room`: it may be one that makes work.
    pub(super) fn next(&mut self, has_room: bool, is_awaited: impl Fn(GatherId) -> bool) -> Option<SchedulerEvent> {
        while self.due.is_empty() {
            match self.urgent.pop_front() {
                Some(session) => self.let_go(session),
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

    /// Nodes of a session that were left lazy are inside again.
    pub(super) fn charge(&mut self, session: SessionId, nodes: u64, bytes: u64) {
        self.sessions.entry(session).or_default().inside.enter(nodes, bytes);
    }

    /// Nodes of a session have left.
    pub(super) fn credit(&mut self, session: SessionId, nodes: u64) {
        if let Some(queue) = self.sessions.get_mut(&session) {
            queue.inside.leave(nodes);
            self.list(session);
        }
    }

    /// The session whose turn it is: the one that [`Fair`] names. While work is given up it is the one that came last:
    /// the one that has waited longest would give up before its answer comes, and the time that it takes would be lost
    /// for the others, too. A session that waits alone needs no [`Fair`].
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

    /// A session has its turn.
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

    /// A session's events that cost nothing leave.
    fn let_go(&mut self, session: SessionId) {
        match self.sessions.get_mut(&session) {
            Some(queue) if queue.place == Place::Urgent => queue.place = Place::Nowhere,
            _ => return,
        }
        self.pass_some(session, false);
        self.list(session);
    }

    /// A session waits for no turn any more.
    fn unlist(&mut self, session: SessionId) {
        let Some(queue) = self.sessions.get_mut(&session) else { return };
        if std::mem::take(&mut queue.place) == Place::Order {
            self.ordered -= 1;
            if self.ordered == 0 {
                self.order.clear();
            }
        }
    }

    /// A session's events up to one that makes work, if any of these may leave, and those behind it that cost nothing.
    /// Returns the nodes that left.
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

    /// A session's events up to this number leave, and before each of them whatever has to (BACKLOG-2). Returns the
    /// nodes that left.
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

    /// Whether a session's next event is one up to this number; and what has to leave before it, if anything: a session
    /// and the last of its events. Those have smaller numbers, so that this ends.
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

    /// A segment that read values of other sessions waits no more.
    fn read_no_more(&mut self, number: u64, event: &SchedulerEvent) {
        let SchedulerEvent::SegmentCut { records, .. } = event else { return };
        for home in &records.summary.homes {
            if let Some(queue) = self.sessions.get_mut(home) {
                queue.readers.remove(&number);
                self.forget(*home);
            }
        }
    }

    /// Throws away what a session has sent (BACKLOG-3).
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

    /// Demands that nobody awaits any more are none.
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

    /// Gives a session its place, if something of it waits and it has none.
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
    /// Its events that wait, but for its opening: about as many as its requests, since few of them cost nothing.
    fn requests(&self) -> usize {
        self.events.len().saturating_sub(usize::from(!self.known))
    }

    /// Nanoseconds that the ring's thread will spend on its next segment. This is its next event, or the one behind its
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

/// Whether an event makes work for the scheduler, or asks for some; others let go of values.
fn makes_work(event: &SchedulerEvent) -> bool {
    match event {
        SchedulerEvent::SegmentCut { records, .. } => records.summary.nodes > 0 || !records.summary.demands.is_empty(),
        // An explanation runs nothing.
        _ => false,
    }
}
