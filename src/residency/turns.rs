//! Decides which session places its work next on a device, by the device time that each has had.
//!
//! In: plans whose inputs are placed; the time of placed work. Out: the sessions, in the order in which they are due.
//! Must hold: RES-13, a session's plans go in the order of their arrival, at most one in progress at a time; RES-14,
//! sessions with plans to place share the device's time by their weights, as [`Fair`] says (FAIR-1 to FAIR-4).

use crate::fair::Fair;
use crate::ids::{RegionId, SessionId};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The sessions that have something to place on a device.
#[derive(Debug, Default)]
pub(super) struct Turns {
    fair: Fair,
    sessions: FxHashMap<SessionId, Queue>,
}

/// The plans that a session has to place.
#[derive(Debug)]
struct Queue {
    weight: u32,
    /// Plans whose inputs are all made, by arrival.
    plans: BTreeMap<u64, Waiting>,
    /// The plan in progress.
    open: Option<(u64, Waiting)>,
}

/// A plan that waits for a turn: its first, or the next one.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    region: RegionId,
    /// Estimated nanoseconds of its next batch.
    piece_ns: u64,
}

impl Queue {
    /// The plan in progress, or else the first that waits: its arrival, and the estimated nanoseconds of its next
    /// batch.
    fn next(&self) -> Option<(u64, u64)> {
        let first = || self.plans.first_key_value().map(|(arrival, plan)| (*arrival, plan.piece_ns));
        self.open.map(|(arrival, plan)| (arrival, plan.piece_ns)).or_else(first)
    }
}

/// Microseconds in nanoseconds, at least 1.
fn ns(us: f64) -> u64 {
    (us * 1e3).max(1.0) as u64
}

impl Turns {
    /// Adds a plan that can be placed, and whose first batch is estimated to take `piece_us` microseconds.
    pub(super) fn add(&mut self, session: SessionId, weight: u32, arrival: u64, region: RegionId, piece_us: f64) {
        self.change(session, |queue| {
            queue.weight = weight;
            queue.plans.insert(arrival, Waiting { region, piece_ns: ns(piece_us) });
        });
    }

    /// Removes a plan that waits.
    pub(super) fn remove(&mut self, session: SessionId, arrival: u64) {
        if self.sessions.contains_key(&session) {
            self.change(session, |queue| {
                queue.plans.remove(&arrival);
            });
        }
    }

    /// The session's next plan is in progress from now on.
    pub(super) fn begin(&mut self, session: SessionId) -> RegionId {
        let mut begun = None;
        self.change(session, |queue| {
            begun = queue.plans.pop_first();
            queue.open = begun;
        });
        begun.expect("RES-13: who begins has a plan that waits").1.region
    }

    /// The session's plan in progress has ended.
    pub(super) fn end(&mut self, session: SessionId) {
        self.change(session, |queue| queue.open = None);
    }

    /// Charges a session for work that is estimated to take this many microseconds. Virtual time, by which the other
    /// sessions become due, advances only when [`Turns::settle`] reports the measured time.
    pub(super) fn lend(&mut self, session: SessionId, us: f64) {
        self.fair.lend(session, ns(us));
    }

    /// Replaces the estimate of a session's work, now ended, by the time that it took.
    pub(super) fn settle(&mut self, session: SessionId, weight: u32, lent_us: f64, took_us: f64) {
        self.fair.settle(session, weight, ns(lent_us), ns(took_us));
    }

    /// The session's turn came while its plan in progress was blocked. It does not save up the turn.
    pub(super) fn pass_over(&mut self, session: SessionId) {
        self.fair.pass_over(session);
    }

    /// The sessions in the order in which they are due, each with the plan that would begin, unless one is in progress.
    pub(super) fn in_order(&self) -> impl Iterator<Item = (SessionId, Option<RegionId>)> + '_ {
        self.fair.in_order().map(|session| {
            let queue = &self.sessions[&session];
            let next = queue.plans.values().next().map(|plan| plan.region);
            (session, next.filter(|_| queue.open.is_none()))
        })
    }

    /// Whether no session has anything to place.
    pub(super) fn is_empty(&self) -> bool {
        self.fair.is_empty()
    }

    /// Forgets all debts, because the device has nothing to do.
    pub(super) fn forget_debts(&mut self) {
        self.fair.forget_debts();
    }

    /// Whether the session has a plan in progress.
    #[cfg(test)]
    pub(super) fn is_open(&self, session: SessionId) -> bool {
        self.sessions.get(&session).is_some_and(|queue| queue.open.is_some())
    }

    /// Entries of each table, by its name.
    #[cfg(test)]
    pub(super) fn tables(&self) -> [(&'static str, usize); 2] {
        [("turns sessions", self.sessions.len()), ("turns shares", self.fair.known())]
    }

    /// Plans that wait.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> impl Iterator<Item = RegionId> + '_ {
        self.sessions.values().flat_map(|queue| queue.plans.values().map(|plan| plan.region))
    }

    fn change(&mut self, session: SessionId, change: impl FnOnce(&mut Queue)) {
        let queue = self.sessions.entry(session);
        let queue = queue.or_insert_with(|| Queue { weight: 1, plans: BTreeMap::new(), open: None });
        change(queue);
        match queue.next() {
            Some((arrival, piece_ns)) => {
                let waiting = queue.plans.len() + usize::from(queue.open.is_some());
                self.fair.enter(session, queue.weight, waiting, piece_ns, arrival);
            }
            None => {
                self.sessions.remove(&session);
                self.fair.leave(session);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sessions that are due in `count` turns, each of which takes `us` microseconds.
    fn turns(turns: &mut Turns, count: usize, us: impl Fn(SessionId) -> f64) -> Vec<SessionId> {
        let next = |turns: &mut Turns| {
            let (session, _) = turns.in_order().next().unwrap();
            turns.lend(session, us(session));
            turns.settle(session, turns.sessions[&session].weight, us(session), us(session));
            session
        };
        (0..count).map(|_| next(turns)).collect()
    }

    #[test]
    fn sessions_have_time_by_their_weight() {
        let mut all = Turns::default();
        for (session, weight) in [(1, 1), (2, 3)] {
            all.add(SessionId(session), weight, session, RegionId(session), 10.0);
            all.begin(SessionId(session));
        }
        let had = turns(&mut all, 400, |session| if session.0 == 1 { 20.0 } else { 10.0 });
        // Session 2 has three times as much time, in turns of half the length.
        let second = had.iter().filter(|s| s.0 == 2).count();
        assert!((340..=346).contains(&second), "{second}");
    }

    #[test]
    fn a_newcomer_is_due_at_once_and_idle_sessions_save_nothing_up() {
        let (one, two) = (SessionId(1), SessionId(2));
        let mut all = Turns::default();
        all.add(one, 1, 1, RegionId(1), 10.0);
        all.begin(one);
        assert_eq!(turns(&mut all, 5, |_| 10.0), [one; 5]);
        all.add(two, 1, 2, RegionId(2), 10.0);
        assert_eq!(all.in_order().next(), Some((two, Some(RegionId(2)))));
        assert_eq!(all.begin(two), RegionId(2));
        let had = turns(&mut all, 6, |_| 10.0);
        assert_eq!(had.iter().filter(|s| **s == two).count(), 3, "{had:?}");
        all.end(two);
        assert_eq!(turns(&mut all, 30, |_| 10.0), [one; 30]);
        all.add(two, 1, 3, RegionId(3), 10.0);
        all.begin(two);
        let had = turns(&mut all, 6, |_| 10.0);
        assert_eq!(had.iter().filter(|s| **s == two).count(), 3, "{had:?}");
    }

    #[test]
    fn newcomers_that_never_cease_do_not_keep_a_session_that_stays_from_its_turn() {
        let (stays, mut all) = (SessionId(0), Turns::default());
        all.add(stays, 8, 0, RegionId(0), 100.0);
        let (mut its, mut others) = (0, 0);
        for came in 1..4000 {
            all.add(SessionId(came), 1, came, RegionId(came), 100.0);
            if came <= 16 {
                continue;
            }
            // One comes for each that is served, so that sixteen wait at any time.
            loop {
                let (session, _) = all.in_order().next().unwrap();
                all.begin(session);
                all.lend(session, 100.0);
                all.settle(session, if session == stays { 8 } else { 1 }, 100.0, 150.0);
                if session == stays {
                    its += 1;
                    all.add(stays, 8, came << 32, RegionId(0), 100.0);
                }
                all.end(session);
                if session != stays {
                    break;
                }
            }
            others += 1;
        }
        // A third of all, less a little.
        assert!(its * 2 > others - others / 10, "{its} beside {others}");
    }

    #[test]
    fn a_sessions_plans_go_in_order_and_one_at_a_time() {
        let mut all = Turns::default();
        let session = SessionId(7);
        all.add(session, 1, 5, RegionId(50), 10.0);
        all.add(session, 1, 4, RegionId(40), 10.0);
        assert_eq!(all.begin(session), RegionId(40));
        assert!(all.is_open(session));
        assert_eq!(all.in_order().collect::<Vec<_>>(), [(session, None)]);
        all.end(session);
        assert_eq!(all.in_order().collect::<Vec<_>>(), [(session, Some(RegionId(50)))]);
        all.remove(session, 5);
        all.remove(session, 5);
        assert!(all.is_empty() && all.sessions.is_empty());
    }
}
