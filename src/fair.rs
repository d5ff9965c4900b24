//! Decides which session is served next: each that has work gets a weighted share, whoever comes and goes.
//!
//! In: sessions that have work, with their weights; the work that each of them was given. Out: the order in which
//! they are served. The ring's backlog (turns at the scheduler), the scheduler (places downstream) and residency (a
//! device's time) each keep one [`Fair`].
//!
//! Virtual time, `now`, advances with the work that is given to anybody, divided by the weights of the sessions that
//! have work: it says how much each of them should have had, for a weight of 1. A session's own `time` says how much it
//! has had. A session that comes begins at `now`, or later, where it owes something from before. Of the sessions whose
//! time has come (`time <= now`), the one is served first whose next piece of work should end first: at `time` plus the
//! piece over the weight. These are the rules of EEVDF (Stoica, Abdel-Wahab 1995), with a virtual time that does not
//! wait for sessions that have left.
//!
//! A session that keeps several requests waiting beside many that have one would wait for each as many times longer
//! than they do, by its weight alone. So its requests raise its effective weight, the one that counts: where it has
//! more than one and a quarter times the average number of requests of a session, its weight (but no more than the
//! average one) counts that many times. It counts three times at the most, and [`REQUESTS_MAX`] of its requests do at
//! the most. With four requests beside many sessions of one, each of its requests waits about one and a half times as
//! long as theirs. Others lose a sixth of their share by that at the most, and sessions of equally many requests share
//! by their weights alone.
//!
//! The bounds of FAIR-2 and FAIR-3 are not proved. They were fitted to a simulation of sessions that come and go, which
//! checks them after every piece of work (`tests.rs`): with up to 3 pieces under way beside the one that is given,
//! estimates between half and four times what the work takes, and one request a session, so that none has an effective
//! weight above its own.
//!
//! Must hold (`c` is the largest piece of work, estimated or taken, `q` the largest over its session's weight, `F` the
//! number of pieces that are under way while another is given, `W` the sum of the weights of the sessions with work,
//! `N` their number, each at its largest since the session came; who has left while a piece of its work is under way
//! counts in `W`; a weight is an effective one):
//! - FAIR-1: `now` never goes back, and every piece of work moves it forward, also while sessions come all the time.
//! - FAIR-2: a session with work is at most `LAG * q` behind `now`, where `LAG` is `3 + 2F + ln(W / its weight)`, and a
//!   nanosecond or two that are lost in rounding. So of all work since it came it has had its weight's share, less
//!   `its weight * (LAG + 2) * q + (1 + F) * c` at the most.
//! - FAIR-3: so nobody with work waits longer for the next piece than others take for `W * (LAG + 1) * q + N * c`.
//! - FAIR-4: who leaves and comes back has neither saved time up nor escaped what it owes; what nobody owes any more
//!   is forgotten, and so is all of it once nothing is left to do ([`Fair::forget_debts`]).

use crate::ids::SessionId;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// Requests of a session that may raise its effective weight.
const REQUESTS_MAX: u32 = 4;
/// Weights are kept in so many parts of a weight of 1.
const PARTS: u64 = 16;

/// The sessions that have work.
#[derive(Debug, Default)]
pub struct Fair {
    sessions: FxHashMap<SessionId, Share>,
    /// Sessions whose time has come, by when their next piece of work should end.
    due: BTreeSet<Key>,
    /// The others, by their time.
    early: BTreeSet<Key>,
    /// Virtual time: nanoseconds for a weight of 1.
    now: u64,
    /// The sums over `sessions`: of their effective weights and of their weights, both in parts, and of their requests
    /// that count.
    effective_weights: u64,
    weights: u64,
    requests: u64,
    /// Work that has not moved `now` yet: less than `effective_weights` of the nanoseconds' parts.
    remainder: u64,
    /// The times of sessions without work that are ahead of `now`.
    owing: FxHashMap<SessionId, u64>,
    /// The same by time.
    owing_order: BTreeSet<(u64, SessionId)>,
}

/// A session's place in the order: the fields are compared from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// In `due`, when its next piece of work should end; in `early`, its own time.
    time: u64,
    /// Sessions that were never served go before those that were.
    served: bool,
    /// When its next piece of work came.
    came: u64,
    session: SessionId,
}

/// A session with work.
#[derive(Debug)]
struct Share {
    /// The work that it was given: nanoseconds over its effective weight.
    time: u64,
    /// Parts of nanoseconds that it has had, and that are not in `time` yet: less than its effective weight.
    remainder: u64,
    /// `now` when it came: what is given back to it does not bring it behind that.
    since: u64,
    /// Its effective weight, and its weight, in parts.
    effective_weight: u64,
    weight: u64,
    /// Its requests that count.
    requests: u64,
    /// Nanoseconds of its next piece of work.
    piece: u64,
    /// It was given something since it came.
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

    /// Corrects the estimate of work that it was given by what that work took.
    fn correct(&mut self, lent_ns: u64, took_ns: u64) {
        if took_ns >= lent_ns {
            return self.add(took_ns - lent_ns);
        }
        let back = (lent_ns - took_ns) * PARTS;
        // Rounded up, and what that is too much is added again.
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
    /// A session has work: its next piece is estimated to take so many nanoseconds, and came as number `came`. Also
    /// where that changes. `requests`: how many of its pieces wait.
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

    /// A session has no work any more.
    pub fn leave(&mut self, session: SessionId) {
        self.remove_key(session);
        let Some(share) = self.sessions.remove(&session) else { return };
        self.effective_weights -= share.effective_weight;
        self.weights -= share.weight;
        self.requests -= share.requests;
        self.owe(session, share.time);
    }

    /// A session, whose turn it was, was given so many nanoseconds of work.
    pub fn charge(&mut self, session: SessionId, ns: u64) {
        if let Some(share) = self.sessions.get(&session) {
            // Who is served has its time come.
            self.now = self.now.max(share.time);
            self.catch_up();
        }
        self.lend(session, ns);
        self.advance(ns, 0);
    }

    /// A session could not go on when its turn came, and others go before it: it saves nothing up by that.
    pub fn pass_over(&mut self, session: SessionId) {
        self.remove_key(session);
        if let Some(share) = self.sessions.get_mut(&session) {
            share.time = share.time.max(self.now);
            share.since = self.now;
        }
        self.insert_key(session);
    }

    /// A session, whose turn it was, was given work that is estimated to take so many nanoseconds. It counts for the
    /// others when [`Fair::settle`] says what it took.
    pub fn lend(&mut self, session: SessionId, ns: u64) {
        self.remove_key(session);
        if let Some(share) = self.sessions.get_mut(&session) {
            share.add(ns);
            share.served = true;
        }
        self.insert_key(session);
    }

    /// Work that was lent to a session of this weight has ended, and took so long.
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

    /// The sessions with work, who is served first.
    pub fn in_order(&self) -> impl Iterator<Item = SessionId> + '_ {
        self.due.iter().chain(&self.early).map(|key| key.session)
    }

    /// How many sessions have work.
    pub fn with_work(&self) -> usize {
        self.sessions.len()
    }

    /// Whether nobody has work.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Nothing is left to do for any session: no session owes anything.
    pub fn forget_debts(&mut self) {
        debug_assert!(self.is_empty(), "FAIR-4: somebody has work");
        self.owing.clear();
        self.owing_order.clear();
        self.remainder = 0;
    }

    /// Moves virtual time by work that was given to a session, whose weight is `beside` parts if it has no work left.
    fn advance(&mut self, ns: u64, beside: u64) {
        let weights = (self.effective_weights + beside).max(PARTS);
        self.remainder += ns * PARTS;
        self.now += self.remainder / weights;
        self.remainder %= weights;
        self.catch_up();
    }

    /// `now` may have moved: sessions' times have come, and debts are paid.
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
            // Where `now` has moved since, it may stand in either.
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
    /// Sessions that it remembers.
    pub fn known(&self) -> usize {
        self.sessions.len() + self.owing.len()
    }

    /// Virtual time.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// How far a session with work is behind it.
    pub fn lag(&self, session: SessionId) -> u64 {
        self.sessions.get(&session).map_or(0, |share| self.now.saturating_sub(share.time))
    }
}

#[cfg(test)]
mod tests;
