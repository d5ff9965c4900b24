//! [`Session`]: one program on a runtime, with a tape, random numbers, and a share of the devices of its own.
//!
//! Must hold: a session lives as long as a handle of it, or one of its arrays or gathers. Then it closes, after all
//! that was recorded.

use super::link::Link;
use super::random_key::RandomState;
use super::tape::{Home, Name};
use crate::claims::HostClaims;
use crate::config::Promotion;
use crate::contract::device::DeviceInfo;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// One program on a runtime. It is `Send + Sync`, and cheap to clone and to open (ten thousand at once are no problem).
///
/// Arrays belong to the session that makes them; [`Array::share`](super::Array::share) lets another session use them.
/// Ops of one session run in an order that respects its program. The same program gives the same bits, whatever other
/// sessions do.
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

    /// The seed of its random numbers: the same seed and program give the same numbers, in any session. The default
    /// seed follows from the session's number in its runtime.
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
    /// The claims of front ends on host memory.
    pub(crate) fn claims(&self) -> &Arc<HostClaims> {
        &self.home().link.claims
    }

    /// Counts ops that ran, or arrays that stayed, on another device than the program asked for.
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

    /// Sets the mark that every op carries that this session records from now on. The error of an op that fails carries
    /// it, too ([`Error::mark`](crate::Error::mark)). Front ends use it, because their users' lines are not lines of
    /// Rust; 0 means no mark.
    pub fn mark(&self, mark: u64) {
        self.home().mark.store(mark, Ordering::Relaxed);
    }

    /// Sets how the dtypes of operands mix in ops that this session records from now on. At first the setting of the
    /// runtime's builder holds ([`RuntimeBuilder::promotion`](super::RuntimeBuilder::promotion)). A script sets its
    /// session to MATLAB's rules.
    pub fn set_promotion(&self, promotion: Promotion) {
        self.home().is_strict.store(promotion == Promotion::Strict, Ordering::Relaxed);
    }

    /// The session's name, which the timeline shows.
    pub fn name(&self) -> &str {
        &self.home().name
    }

    /// The seed of its random numbers.
    pub fn seed(&self) -> u64 {
        self.home().tape.lock().random.seed
    }

    /// The state of its random numbers: the seed, the stream, and the number of random ops that were recorded under them.
    pub fn random_state(&self) -> RandomState {
        self.home().tape.lock().random
    }

    /// Sets the state of its random numbers to one that [`Session::random_state`] returned, of this or another session, or
    /// to the beginning of a seed, with `ops: 0`. Ops that were recorded before keep their numbers.
    pub fn set_random_state(&self, state: RandomState) {
        self.home().tape.lock().random = state;
    }

    /// The devices of its runtime, as [`Runtime::devices`](super::Runtime::devices). A GPU that is opened on demand is
    /// opened now.
    pub fn devices(&self) -> &[DeviceInfo] {
        self.home().link.devices.all()
    }

    /// Its share of the devices relative to other sessions.
    pub fn weight(&self) -> u32 {
        self.home().weight
    }

    /// Sends the recorded ops to the scheduler now, without waiting for it. Values that are not demanded are still not
    /// computed, unless a limit on the session's lazy values has been reached.
    pub fn flush(&self) {
        self.home().flush();
    }

    /// Waits until there is room to record another full tape (4,096 ops by default, or half of the ops that may wait if
    /// that is less), within the limits of this session and of all sessions
    /// ([`RuntimeBuilder::ops_pending_max`](super::RuntimeBuilder::ops_pending_max)). This many ops are then not
    /// refused as overloaded, unless other sessions use the room first.
    pub async fn ready(&self) {
        let home = self.home().clone();
        home.ready(home.link.session_room).await;
    }

    /// Waits until the ring has nearly caught up with this session. Scripts call it, because they gain nothing by being
    /// far ahead.
    pub(crate) async fn caught_up(&self) {
        let home = self.home().clone();
        home.ready(home.link.script_room()).await;
    }

    /// Whether [`Session::close`] has been called.
    pub fn is_closed(&self) -> bool {
        self.home().is_closed()
    }

    /// Ends the session now. Pending gathers fail with `ErrorKind::Cancelled`, except those whose work a device has
    /// already, which are delivered. Ops that are recorded later fail with the same error. The session's arrays end
    /// with it, also those that it shared: other sessions that use one later get `ErrorKind::Ownership`. Without this
    /// call a session ends with its last handle, array and gather.
    pub fn close(&self) {
        self.home().close();
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session({} '{}', seed {}, weight {})", self.home().id, self.name(), self.seed(), self.weight())
    }
}
