//! Weighted fair queueing: decides which session is served next, so that each session with work gets its weighted
//! share, whichever sessions come and go.
//!
//! In: sessions that have work, with their weights; the work that each of them was given. Out: the order in which
//! they are served. The ring's backlog (turns at the scheduler), the scheduler (places downstream) and residency (a
//! device's time) each keep one [`Fair`].
//!
//! Virtual time, `now`, advances with all work that sessions are given, divided by the sum of the weights of the
//! sessions with work; with work of which the time is only estimated ([`Fair::lend`]), once it has ended. It is the
//! work that each session should have had so far, for a weight of 1. A session's own `time` is the work that it has
//! had, divided by its weight. A session that comes begins at `now`, or later if it has a debt from before. A session
//! is eligible if `time <= now`. Among the eligible ones, the session with the earliest virtual deadline is served
//! first: `time` plus its next piece of work over its weight. These are the rules of EEVDF (Stoica, Abdel-Wahab 1995),
//! with a virtual time that does not wait for sessions that have left.
//!
//! By weight alone, a request of a session that keeps several requests waiting would wait several times longer than
//! those of sessions with one request each. So requests raise a session's effective weight, which is used in place of
//! its weight. If a session has more than one and a quarter times the average number of requests, its weight (but at
//! most the average weight) is multiplied by its number of requests over one and a quarter times the average number.
//! The effective weight is at least the weight and at most three times the weight, and at most [`REQUESTS_MAX`]
//! requests of a session count. With four requests beside many sessions of one, each of its requests waits about one
//! and a half times as long as theirs. The others lose at most a sixth of their share, and sessions with equally many
//! requests share by their weights alone.
//!
//! The bounds of FAIR-2 and FAIR-3 are not proved. They were fitted to a simulation of sessions that come and go, which
//! checks them after every piece of work (`tests.rs`): with up to 3 pieces under way beside the one that is given,
//! estimates between half and four times what the work takes, and one request a session, so that none has an effective
//! weight above its own.
//!
//! Must hold (`c` is the largest piece of work, estimated or taken, `q` the largest over its session's weight, `F` the
//! number of pieces that are in progress while another is given, `W` the sum of the weights of the sessions with work,
//! `N` their number, each at its largest since the session came; a session that has left while a piece of its work is
//! in progress counts in `W`; all weights are effective weights):
//! - FAIR-1: `now` never goes back, and every piece of work moves it forward, also while sessions come all the time.
//! - FAIR-2: a session with work is at most `LAG * q` behind `now`, where `LAG` is `3 + 2F + ln(W / its weight)`, and a
//!   nanosecond or two that are lost in rounding. So it has had its weight's share of all work since it came, less at
//!   most `its weight * (LAG + 2) * q + (1 + F) * c`.
//! - FAIR-3: so a session with work waits for its next piece at most while the others do work of
//!   `W * (LAG + 1) * q + N * c`.
//! - FAIR-4: a session that leaves and comes back has neither saved up time nor lost its debt. A debt that is paid is
//!   forgotten, and so are all debts once there is no work left ([`Fair::forget_debts`]).

use crate::ids::SessionId;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// Most requests of a session that count for its effective weight.
const REQUESTS_MAX: u32 = 4;
/// Weights are stored as multiples of one part in this many.
const PARTS: u64 = 16;

/// The sessions that have work.
#[derive(Debug, Default)]
pub struct Fair {
    sessions: FxHashMap<SessionId, Share>,
    /// Eligible sessions, by the virtual deadline of their next piece of work.
    due: BTreeSet<Key>,
    /// The other sessions, by their time.
    early: BTreeSet<Key>,
    /// Virtual time: nanoseconds for a weight of 1.
    now: u64,
    /// The sums over `sessions`: of their effective weights and of their weights, both in parts, and of their requests
    /// that count.
    effective_weights: u64,
    weights: u64,
    requests: u64,
    /// The remainder of the division that moves `now`, less than `effective_weights`.
    remainder: u64,
    /// Debts: the times of sessions without work that are ahead of `now`.
    owing: FxHashMap<SessionId, u64>,
    /// The same, sorted by time.
    owing_order: BTreeSet<(u64, SessionId)>,
}

/// A session's place in the order: the fields are compared from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// In `due`, its virtual deadline; in `early`, its own time.
    time: u64,
    /// Sessions that were never served come before those that were.
    served: bool,
    /// When its next piece of work came.
    came: u64,
    session: SessionId,
}

/// A session with work.
#[derive(Debug)]
struct Share {
    /// Its own virtual time: `now` when it came, or later by its debt, plus the nanoseconds of work that it was given,
    /// divided by its effective weight.
    time: u64,
    /// The remainder of the division that moves `time`, less than its effective weight.
    remainder: u64,
    /// `now` when it came. A correction of an estimate does not move `time` before that.
    since: u64,
    /// Its effective weight, and its weight, in parts.
    effective_weight: u64,
    weight: u64,
    /// Its requests that count.
    requests: u64,
    /// Nanoseconds of its next piece of work.
    piece: u64,
    /// It was given work since it came.
    served: bool,
    /// When its next piece of work came.
    came: u64,
}

impl Share {
    /// Adds work that it is given.
    fn add(&mut self, ns: u64) {
        self.add_parts(ns * PARTS);
    }

    fn add_parts(&mut self, parts: u64) {
        self.remainder += parts;
        self.time += self.remainder / self.effective_weight;
        self.remainder %= self.effective_weight;
    }

    /// Replaces the estimate of work that it was given by the time that the work took.
    fn correct(&mut self, lent_ns: u64, took_ns: u64) {
        if took_ns >= lent_ns {
            return self.add(took_ns - lent_ns);
        }
        let back = (lent_ns - took_ns) * PARTS;
        // Rounded up; the excess is added again below.
        let time = back.div_ceil(self.effective_weight);
        let floor = self.since.min(self.time);
        if self.time - floor < time {
            (self.time, self.remainder) = (floor, 0);
        } else {
            self.time -= time;
            self.add_parts(time * self.effective_weight - back);
        }
    }

    fn is_due(&self, now: u64) -> bool {
        self.time <= now
    }

    fn key(&self, session: SessionId, due: bool) -> Key {
        let takes = self.piece * PARTS / self.effective_weight;
        let time = if due { self.time.saturating_add(takes) } else { self.time };
        Key { time, served: self.served, came: self.came, session }
    }
}

impl Fair {
    /// A session has work, or its next piece has changed: that is estimated to take `piece_ns` nanoseconds, and came as
    /// number `came`. `requests` is the number of its pieces that wait.
    pub fn enter(&mut self, session: SessionId, weight: u32, requests: usize, piece_ns: u64, came: u64) {
        let weight = u64::from(weight.max(1)) * PARTS;
        let requests = requests.clamp(1, REQUESTS_MAX as usize) as u64;
        self.remove_key(session);
        let now = self.now;
        let Fair { sessions, owing, owing_order, effective_weights, weights, requests: all, .. } = self;
        let before = sessions.len() as u64;
        let share = sessions.entry(session).or_insert_with(|| {
            let owed = owing.remove(&session).unwrap_or(now);
            owing_order.remove(&(owed, session));
            let time = owed.max(now);
            Share {
                time,
                remainder: 0,
                since: now,
                effective_weight: 0,
                weight: 0,
                requests: 0,
                piece: 0,
                served: false,
                came,
            }
        });
        let count = before + u64::from(share.requests == 0);
        *all = *all + requests - share.requests;
        *weights = *weights + weight - share.weight;
        // Its weight, or the average one if that is less, times the number of sessions.
        let usual = weight.saturating_mul(count).min(*weights);
        let effective_weight = (requests * usual * 4 / (5 * *all)).clamp(weight, 3 * weight);
        *effective_weights = *effective_weights + effective_weight - share.effective_weight;
        (share.effective_weight, share.weight, share.requests) = (effective_weight, weight, requests);
        (share.piece, share.came) = (piece_ns, came);
        self.insert_key(session);
    }

    /// A session has no more work.
    pub fn leave(&mut self, session: SessionId) {
        self.remove_key(session);
        let Some(share) = self.sessions.remove(&session) else { return };
        self.effective_weights -= share.effective_weight;
        self.weights -= share.weight;
        self.requests -= share.requests;
        self.owe(session, share.time);
    }

    /// Charges a session for work that it was given in its turn.
    pub fn charge(&mut self, session: SessionId, ns: u64) {
        if let Some(share) = self.sessions.get(&session) {
            // A session that is served counts as eligible: virtual time is moved to its own time if that is later.
            self.now = self.now.max(share.time);
            self.catch_up();
        }
        self.lend(session, ns);
        self.advance(ns, 0);
    }

    /// A session could not go on in its turn, so that others overtake it. It does not save up the turn.
    pub fn pass_over(&mut self, session: SessionId) {
        self.remove_key(session);
        if let Some(share) = self.sessions.get_mut(&session) {
            share.time = share.time.max(self.now);
            share.since = self.now;
        }
        self.insert_key(session);
    }

    /// Charges a session for work that is estimated to take this many nanoseconds, without moving virtual time.
    /// [`Fair::settle`] does that when the work has ended.
    pub fn lend(&mut self, session: SessionId, ns: u64) {
        self.remove_key(session);
        if let Some(share) = self.sessions.get_mut(&session) {
            share.add(ns);
            share.served = true;
        }
        self.insert_key(session);
    }

    /// Work that was charged by [`Fair::lend`] has ended: replaces the estimate by the time that it took, and moves
    /// virtual time.
    pub fn settle(&mut self, session: SessionId, weight: u32, lent_ns: u64, took_ns: u64) {
        let weight = u64::from(weight.max(1));
        if self.sessions.contains_key(&session) {
            self.remove_key(session);
            if let Some(share) = self.sessions.get_mut(&session) {
                share.correct(lent_ns, took_ns);
            }
            self.insert_key(session);
            self.advance(took_ns, 0);
        } else {
            let owed = self.owing.remove(&session).unwrap_or(self.now);
            self.owing_order.remove(&(owed, session));
            let more = owed + took_ns.saturating_sub(lent_ns) / weight;
            self.advance(took_ns, weight * PARTS);
            self.owe(session, more.saturating_sub(lent_ns.saturating_sub(took_ns) / weight));
        }
    }

    /// The sessions with work, in the order in which they are to be served.
    pub fn in_order(&self) -> impl Iterator<Item = SessionId> + '_ {
        self.due.iter().chain(&self.early).map(|key| key.session)
    }

    /// How many sessions have work.
    pub fn with_work(&self) -> usize {
        self.sessions.len()
    }

    /// Whether no session has work.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Forgets all debts, because there is no work left.
    pub fn forget_debts(&mut self) {
        debug_assert!(self.is_empty(), "FAIR-4: a session has work");
        self.owing.clear();
        self.owing_order.clear();
        self.remainder = 0;
    }

    /// Moves virtual time by work that was given, or by lent work that has ended. `beside` is the weight, in parts, of
    /// a session that was served and has no work left; else 0.
    fn advance(&mut self, ns: u64, beside: u64) {
        let weights = (self.effective_weights + beside).max(PARTS);
        self.remainder += ns * PARTS;
        self.now += self.remainder / weights;
        self.remainder %= weights;
        self.catch_up();
    }

    /// Called when `now` may have moved: makes sessions eligible, and forgets debts that are paid.
    fn catch_up(&mut self) {
        while let Some(&key) = self.early.first().filter(|key| key.time <= self.now) {
            self.early.remove(&key);
            self.due.insert(self.sessions[&key.session].key(key.session, true));
        }
        while let Some(&(time, session)) = self.owing_order.first().filter(|(time, _)| *time <= self.now) {
            self.owing_order.remove(&(time, session));
            self.owing.remove(&session);
        }
    }

    fn owe(&mut self, session: SessionId, time: u64) {
        if time > self.now {
            self.owing.insert(session, time);
            self.owing_order.insert((time, session));
        }
    }

    fn remove_key(&mut self, session: SessionId) {
        if let Some(share) = self.sessions.get(&session) {
            // If `now` has moved since the key was inserted, the key may be in either set.
            if !self.due.remove(&share.key(session, true)) {
                self.early.remove(&share.key(session, false));
            }
        }
    }

    fn insert_key(&mut self, session: SessionId) {
        if let Some(share) = self.sessions.get(&session) {
            let due = share.is_due(self.now);
            let set = if due { &mut self.due } else { &mut self.early };
            set.insert(share.key(session, due));
        }
        self.catch_up();
    }
}

#[cfg(test)]
impl Fair {
    /// Sessions with work or debts.
    pub fn known(&self) -> usize {
        self.sessions.len() + self.owing.len()
    }

    /// Virtual time.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// How far a session with work is behind virtual time.
    pub fn lag(&self, session: SessionId) -> u64 {
        self.sessions.get(&session).map_or(0, |share| self.now.saturating_sub(share.time))
    }
}

#[cfg(test)]
mod tests;
