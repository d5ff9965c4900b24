//! [`Session`]: one program on a runtime. It owns a tape, its random numbers, its share of the devices.
//!
//! Must hold: a session lives as long as a handle of it, an array or a gather of it does; then it closes, after
//! all that was recorded.

use super::link::Link;
use super::tape::{Home, Name};
use crate::claims::HostClaims;
use crate::config::Promotion;
use crate::contract::device::DeviceInfo;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// One program on a runtime: `Send + Sync`, cheap to clone and to open (ten thousand at once are fine).
///
/// Arrays are made by a session and stay in it; see [`Array::share`](super::Array::share) for use by another.
/// Ops of one session run in an order that respects its program, and the same program gives the same bits,
/// whatever other sessions do.
pub struct Session {
    home: Arc<Home>,
}

impl Clone for Session {
    fn clone(&self) -> Session {
        Session::of(&self.home)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.home.users.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.home.flush_foreign();
        }
    }
}

/// Settings of a session that is about to open.
#[must_use = "a session opens with open()"]
pub struct SessionBuilder {
    link: Arc<Link>,
    name: Name,
    weight: u32,
    seed: Option<u64>,
    stream: u64,
}

impl SessionBuilder {
    pub(crate) fn new(link: Arc<Link>, name: &str) -> SessionBuilder {
        SessionBuilder { link, name: name.into(), weight: 1, seed: None, stream: 0 }
    }

    /// The seed of its random numbers: the same seed and program give the same numbers, in any session. By
    /// default, one that follows from the session's number in its runtime.
    pub fn seed(mut self, seed: u64) -> SessionBuilder {
        self.seed = Some(seed);
        self
    }

    /// The stream of its random numbers: sessions of one seed and different streams draw unrelated numbers.
    pub fn stream(mut self, stream: u64) -> SessionBuilder {
        self.stream = stream;
        self
    }

    /// Its share of the devices relative to other sessions; 1 by default, at least 1.
    pub fn weight(mut self, weight: u32) -> SessionBuilder {
        self.weight = weight.max(1);
        self
    }

    /// Opens the session.
    pub fn open(self) -> Session {
        let home = Home::open(self.link, self.name, self.weight, self.seed, self.stream);
        Session { home }
    }
}

impl Session {
    /// What front ends hold in host memory.
    pub(crate) fn claims(&self) -> &Arc<HostClaims> {
        &self.home().link.claims
    }

    /// Counts ops that ran, or arrays that stayed, elsewhere than asked for.
    pub(crate) fn ran_elsewhere(&self, reason: &str, ops: u64) {
        self.home().link.counters.ran_elsewhere(reason, ops);
    }

    /// Makes a handle of an open session from the session's state, and counts the handle among its users.
    pub(super) fn of(home: &Arc<Home>) -> Session {
        home.users.fetch_add(1, Ordering::Relaxed);
        Session { home: home.clone() }
    }

    pub(crate) fn home(&self) -> &Arc<Home> {
        &self.home
    }

    /// From now on, every op that this session records carries this mark, and so does the error of one that fails
    /// ([`Error::mark`](crate::Error::mark)). For front ends, whose users' lines are not lines of Rust; 0 is none.
    pub fn mark(&self, mark: u64) {
        self.home().mark.store(mark, Ordering::Relaxed);
    }

    /// How the dtypes of an op's operands mix in what this session records from now on; at first, as its runtime's
    /// builder says ([`RuntimeBuilder::promotion`](super::RuntimeBuilder::promotion)). A script sets its session to
    /// MATLAB's rules.
    pub fn set_promotion(&self, promotion: Promotion) {
        self.home().is_strict.store(promotion == Promotion::Strict, Ordering::Relaxed);
    }

    /// Its name, as the timeline shows it.
    pub fn name(&self) -> &str {
        &self.home().name
    }

    /// The seed of its random numbers.
    pub fn seed(&self) -> u64 {
        self.home().tape.lock().seed
    }

    /// Where its random numbers stand: the seed, and how many random ops were recorded under it.
    pub fn random_state(&self) -> (u64, u64) {
        let tape = self.home().tape.lock();
        (tape.seed, tape.random_ops)
    }

    /// Puts its random numbers where [`Session::random_state`] said they stood, or to a new seed: `(seed, 0)`. What
    /// was recorded before keeps its numbers.
    pub fn set_random_state(&self, (seed, ops): (u64, u64)) {
        let mut tape = self.home().tape.lock();
        (tape.seed, tape.random_ops) = (seed, ops);
    }

    /// The devices of its runtime, as [`Runtime::devices`](super::Runtime::devices): a GPU that was left for later is
    /// opened now.
    pub fn devices(&self) -> &[DeviceInfo] {
        self.home().link.devices.all()
    }

    /// Its share of the devices relative to other sessions.
    pub fn weight(&self) -> u32 {
        self.home().weight
    }

    /// Sends what was recorded to the scheduler now, without waiting for it. Values that nobody demands are
    /// still not computed, unless a limit on what a session leaves lazy has been reached.
    pub fn flush(&self) {
        self.home().flush();
    }

    /// Waits until there is room to record a full tape more (4,096 ops by default, or half of what may wait where that
    /// is less), of this session and over all sessions
    /// ([`RuntimeBuilder::ops_pending_max`](super::RuntimeBuilder::ops_pending_max)): so many ops are not refused as
    /// overloaded, unless others take the room first.
    pub async fn ready(&self) {
        let home = self.home().clone();
        home.ready(home.link.session_room).await;
    }

    /// Waits until the ring has nearly caught up with this session: for scripts, which gain nothing by being far ahead.
    pub(crate) async fn caught_up(&self) {
        let home = self.home().clone();
        home.ready(home.link.script_room()).await;
    }

    /// Whether [`Session::close`] has been called.
    pub fn is_closed(&self) -> bool {
        self.home().is_closed()
    }

    /// Ends the session now: gathers that are pending fail with `ErrorKind::Cancelled` (but for those whose work is
    /// with a device already: they are delivered), and so does what is recorded later. Its arrays end with it, also
    /// those that it shared: other sessions that use one later get `ErrorKind::Ownership`. Without this call a session
    /// ends by itself with its last handle, array and gather.
    pub fn close(&self) {
        self.home().close();
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session({} '{}', seed {}, weight {})", self.home().id, self.name(), self.seed(), self.weight())
    }
}
