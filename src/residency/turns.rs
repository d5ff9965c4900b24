//! Whose turn it is on a device: sessions with a plan that can go on, by the time they have had there.
//!
//! In: plans whose inputs are made, what placed work takes. Out: sessions, who is due first. Must hold: RES-13, a
//! session's plans go in the order of their arrival, and it has one in progress at the most; who had nothing to do
//! saves no time up, and owes what it had. This is start-time fair queueing (Goyal, Vin, Cheng 1996).

use crate::ids::{RegionId, SessionId};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Work that a batch holds at the most before others have their turn, in estimated microseconds. A longer step is one
/// batch all the same.
pub(super) const SLICE_US: f64 = 2000.0;

/// The sessions that have something to place on a device.
#[derive(Debug, Default)]
pub(super) struct Turns {
    sessions: FxHashMap<SessionId, Share>,
    /// The same by time, then by the arrival of what is next.
    order: BTreeSet<(u64, u64, SessionId)>,
    /// The time of who was last in turn: newcomers begin there.
    now: u64,
    /// The times of sessions with nothing to place that are ahead of it.
    ahead: FxHashMap<SessionId, u64>,
    /// How many of them there may be before those that are ahead no longer are forgotten.
    ahead_max: usize,
}

/// Fewer sessions that are ahead are not looked through.
const AHEAD_MIN: usize = 256;

/// A session's part of a device.
#[derive(Debug)]
struct Share {
    /// What it has had: nanoseconds over its weight.
    time: u64,
    weight: u32,
    /// Plans whose inputs are all made, by arrival.
    plans: BTreeMap<u64, RegionId>,
    /// The arrival of the plan in progress.
    open: Option<u64>,
}

impl Share {
    /// The arrival of what goes on next.
    fn next(&self) -> Option<u64> {
        self.open.or_else(|| self.plans.keys().next().copied())
    }
}

/// Microseconds of a device as time of a session of this weight: nanoseconds over it.
fn time_of(us: f64, weight: u32) -> u64 {
    (us * 1e3) as u64 / u64::from(weight.max(1))
}

impl Turns {
    /// A plan can be placed.
    pub(super) fn add(&mut self, session: SessionId, weight: u32, arrival: u64, region: RegionId) {
        let now = self.now;
        self.change(session, |share| {
            share.weight = weight.max(1);
            share.plans.insert(arrival, region);
            share.time = share.time.max(now);
        });
    }

    /// A plan that waits is not to be placed.
    pub(super) fn remove(&mut self, session: SessionId, arrival: u64) {
        if self.sessions.contains_key(&session) {
            self.change(session, |share| {
                share.plans.remove(&arrival);
            });
        }
    }

    /// The session's next plan is in progress from now on.
    pub(super) fn begin(&mut self, session: SessionId) -> RegionId {
        let mut begun = None;
        self.change(session, |share| {
            begun = share.plans.pop_first();
            share.open = begun.map(|(arrival, _)| arrival);
        });
        begun.expect("RES-13: who begins has a plan that waits").1
    }

    /// The session's plan in progress has ended.
    pub(super) fn end(&mut self, session: SessionId) {
        self.change(session, |share| share.open = None);
    }

    /// The session, whose turn it was, has had so many microseconds.
    pub(super) fn charge(&mut self, session: SessionId, us: f64) {
        let mut before = self.now;
        self.change(session, |share| {
            before = before.max(share.time);
            share.time += time_of(us, share.weight).max(1);
        });
        self.now = before;
    }

    /// Corrects a charge of a session of this weight, once the time that the work took is known.
    pub(super) fn settle(&mut self, session: SessionId, weight: u32, charged_us: f64, took_us: f64) {
        let (now, took, charged) = (self.now, time_of(took_us, weight), time_of(charged_us, weight));
        // Time that is given back is not saved up.
        let settled = |time: u64| time.saturating_add(took).saturating_sub(charged).max(time.min(now));
        if self.sessions.contains_key(&session) {
            self.change(session, |share| share.time = settled(share.time));
            return;
        }
        let time = settled(self.ahead.remove(&session).unwrap_or(now));
        if time > now {
            self.owe(session, time);
        }
    }

    /// The sessions, who is due first; with the plan that would begin, unless one is in progress.
    pub(super) fn in_order(&self) -> impl Iterator<Item = (SessionId, Option<RegionId>)> + '_ {
        self.order.iter().map(|&(_, _, session)| {
            let share = &self.sessions[&session];
            let next = share.plans.values().next().copied();
            (session, next.filter(|_| share.open.is_none()))
        })
    }

    /// Whether nobody has anything to place.
    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Whether the session has a plan in progress.
    pub(super) fn is_open(&self, session: SessionId) -> bool {
        self.sessions.get(&session).is_some_and(|share| share.open.is_some())
    }

    /// Entries of each table, by its name.
    #[cfg(test)]
    pub(super) fn tables(&self) -> [(&'static str, usize); 3] {
        [("turns sessions", self.sessions.len()), ("turns order", self.order.len()), ("turns ahead", self.ahead.len())]
    }

    /// Plans that wait.
    pub(super) fn waiting(&self) -> impl Iterator<Item = RegionId> + '_ {
        self.sessions.values().flat_map(|share| share.plans.values().copied())
    }

    fn change(&mut self, session: SessionId, change: impl FnOnce(&mut Share)) {
        let (now, ahead) = (self.now, &mut self.ahead);
        let share = self.sessions.entry(session).or_insert_with(|| {
            let time = ahead.remove(&session).unwrap_or(0).max(now);
            Share { time, weight: 1, plans: BTreeMap::new(), open: None }
        });
        if let Some(next) = share.next() {
            self.order.remove(&(share.time, next, session));
        }
        change(share);
        match share.next() {
            Some(next) => drop(self.order.insert((share.time, next, session))),
            None => {
                let time = share.time;
                self.sessions.remove(&session);
                if time > now {
                    self.owe(session, time);
                }
            }
        }
    }

    fn owe(&mut self, session: SessionId, time: u64) {
        self.ahead.insert(session, time);
        if self.ahead.len() > self.ahead_max.max(AHEAD_MIN) {
            let now = self.now;
            self.ahead.retain(|_, time| *time > now);
            self.ahead_max = 2 * self.ahead.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who is due, `count` times, each turn taking so many microseconds of the session.
    fn turns(turns: &mut Turns, count: usize, us: impl Fn(SessionId) -> f64) -> Vec<u32> {
        let next = |turns: &mut Turns| {
            let (session, _) = turns.in_order().next().unwrap();
            turns.charge(session, us(session));
            session.0 as u32
        };
        (0..count).map(|_| next(turns)).collect()
    }

    #[test]
    fn sessions_have_time_by_their_weight() {
        let mut all = Turns::default();
        for (session, weight) in [(1, 1), (2, 3)] {
            all.add(SessionId(session), weight, session, RegionId(session));
            all.begin(SessionId(session));
        }
        let had = turns(&mut all, 400, |session| if session.0 == 1 { 20.0 } else { 10.0 });
        // Session 2 has three times as much time, in turns of half the length.
        let second = had.iter().filter(|&&s| s == 2).count();
        assert!((340..=346).contains(&second), "{second}");
        assert_eq!(had[..4], [1, 2, 2, 2]);
    }

    #[test]
    fn a_newcomer_is_due_at_once_and_idle_sessions_save_nothing_up() {
        let mut all = Turns::default();
        all.add(SessionId(1), 1, 1, RegionId(1));
        all.begin(SessionId(1));
        assert_eq!(turns(&mut all, 5, |_| 10.0), [1; 5]);
        all.add(SessionId(2), 1, 2, RegionId(2));
        assert_eq!(all.in_order().next(), Some((SessionId(2), Some(RegionId(2)))));
        assert_eq!(all.begin(SessionId(2)), RegionId(2));
        assert_eq!(turns(&mut all, 6, |_| 10.0), [2, 1, 2, 1, 2, 1]);
        all.end(SessionId(2));
        assert_eq!(turns(&mut all, 3, |_| 10.0), [1; 3]);
        all.add(SessionId(2), 1, 3, RegionId(3));
        all.begin(SessionId(2));
        assert_eq!(turns(&mut all, 4, |_| 10.0), [2, 1, 2, 1]);
    }

    #[test]
    fn who_comes_and_goes_does_not_keep_a_long_plan_from_its_turn() {
        let mut all = Turns::default();
        all.add(SessionId(0), 1, 0, RegionId(0));
        all.begin(SessionId(0));
        all.charge(SessionId(0), 1000.0);
        let mut came = 0;
        loop {
            came += 1;
            let session = SessionId(1 + came % 3);
            all.add(session, 1, came, RegionId(came));
            if all.in_order().next().is_some_and(|(due, _)| due == SessionId(0)) {
                break;
            }
            all.begin(session);
            all.charge(session, 10.0);
            all.end(session);
            assert!(came < 400, "it never has its turn");
        }
        // Each of the three others had a thousand microseconds, too.
        assert!((290..=310).contains(&came), "{came}");
    }

    #[test]
    fn in_the_end_sessions_are_charged_what_their_work_took() {
        let mut all = Turns::default();
        for session in 1..=2 {
            all.add(SessionId(session), 1, session, RegionId(session));
            all.begin(SessionId(session));
        }
        let mut had = [0; 2];
        for _ in 0..400 {
            let (session, _) = all.in_order().next().unwrap();
            all.charge(session, 10.0);
            // The second's work takes four times what was thought, the first's half.
            all.settle(session, 1, 10.0, if session.0 == 1 { 5.0 } else { 40.0 });
            had[session.0 as usize - 1] += 1;
        }
        assert!((350..=358).contains(&had[0]), "{had:?}");
    }

    #[test]
    fn who_has_nothing_to_place_when_its_work_ends_owes_what_it_took() {
        let mut all = Turns::default();
        for n in 0..2 {
            all.add(SessionId(1), 3, n, RegionId(n));
            all.begin(SessionId(1));
            all.charge(SessionId(1), 3.0);
            all.end(SessionId(1));
            all.settle(SessionId(1), 3, 3.0, 300.0);
        }
        assert_eq!(all.ahead[&SessionId(1)], 200_000);
        all.settle(SessionId(1), 3, 150.0, 0.0);
        assert_eq!(all.ahead[&SessionId(1)], 150_000);
        all.settle(SessionId(1), 3, 900.0, 0.0);
        assert!(all.ahead.is_empty(), "nothing is saved up");
    }

    #[test]
    fn who_owes_nothing_any_more_is_forgotten() {
        let mut all = Turns::default();
        for n in 0..10_000u64 {
            let session = SessionId(n);
            all.add(session, 1, n, RegionId(n));
            all.begin(session);
            all.charge(session, 1.0);
            all.end(session);
            // Somebody who stays, and is served as well.
            all.add(SessionId(u64::MAX), 1, u64::MAX, RegionId(u64::MAX));
            all.charge(SessionId(u64::MAX), 1.0);
        }
        assert!(all.ahead.len() <= AHEAD_MIN + 1, "{}", all.ahead.len());
    }

    #[test]
    fn a_sessions_plans_go_in_order_and_one_at_a_time() {
        let mut all = Turns::default();
        let session = SessionId(7);
        all.add(session, 1, 5, RegionId(50));
        all.add(session, 1, 4, RegionId(40));
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
