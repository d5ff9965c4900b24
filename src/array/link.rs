//! The state that all sessions of a runtime share: the ring's mailbox, the table of gathers, the counters.
//!
//! In: settings and an open ring. Out: events to the scheduler, in each session's order. Must hold: a link may outlive
//! its ring: events to a ring that has ended are dropped, and gathers opened afterwards resolve to the closing error at
//! once.

use super::tape::Home;
use crate::claims::HostClaims;
use crate::config::Config;
use crate::config::Room;
use crate::contract::messages::scheduler::SchedulerEvent;
use crate::contract::records::Spares;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::SessionId;
use crate::mail::Post;
use crate::ring::{Devices, Gate, GatherTable, Total};
use crate::stats::Counters;
use crate::timeline::Timeline;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

/// Tells the ring a session's gate, to which it returns credits.
pub(crate) type RegisterGate = Box<dyn Fn(SessionId, Arc<Gate>) + Send + Sync>;

/// A runtime, as its sessions see it.
pub(crate) struct Link {
    /// The scheduler's mailbox.
    pub events: Post<SchedulerEvent>,
    /// Open gathers.
    pub gathers: Arc<GatherTable>,
    /// Counters.
    pub counters: Arc<Counters>,
    /// The timeline.
    pub timeline: Timeline,
    /// Settings.
    pub config: Arc<Config>,
    /// The devices that are open, and the one that may be opened on demand.
    pub devices: Arc<Devices>,
    /// The work of all sessions that waits.
    pub total: Arc<Total>,
    /// How much work of one session may wait.
    pub session_room: Room,
    /// Tells the ring a session's gate.
    pub register_gate: RegisterGate,
    /// Sessions opened so far.
    pub sessions: AtomicU64,
    /// Host memory that front ends hold.
    pub claims: Arc<HostClaims>,
    /// Memory of tapes that were sent, for reuse.
    pub spares: Arc<Spares>,
    /// Open sessions that have asked for a value: their tapes may hold a demand whose future was not polled yet. A
    /// thread may lock this while it holds a tape's lock; a thread that has locked this locks no tape.
    pub demanding: Mutex<FxHashMap<SessionId, Weak<Home>>>,
    /// A shutdown has begun, or the runtime was dropped.
    pub ended: AtomicBool,
}

impl Link {
    /// Sends an event to the scheduler. After the ring has ended, the event is dropped.
    pub fn send(&self, event: SchedulerEvent) {
        let _ = self.events.send(event);
    }

    /// Cuts all tapes that may hold demands, so that the demands are in the scheduler's mailbox. Tapes that are not cut
    /// by the deadline are not computed.
    pub fn flush_demanding(&self, deadline: Instant) {
        let homes: Vec<Arc<Home>> = self.demanding.lock().values().filter_map(Weak::upgrade).collect();
        homes.iter().take_while(|_| Instant::now() < deadline).for_each(|home| home.flush());
    }

    /// Marks the runtime as ended: it takes no data of the program from now on.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    /// Checks that the runtime still takes data of the program.
    ///
    /// # Errors
    /// `ErrorKind::Shutdown` if a shutdown has begun, or the runtime was dropped.
    pub fn is_open(&self) -> Result<()> {
        match self.ended.load(Ordering::Acquire) {
            true => Err(Error::new(ErrorKind::Shutdown, "the runtime was shut down and accepts no new data")),
            false => Ok(()),
        }
    }

    /// The next session's id.
    pub fn next_session(&self) -> SessionId {
        SessionId(self.sessions.fetch_add(1, Ordering::Relaxed))
    }

    /// The bytes that a tape may keep alive. They do not depend on the device's budget, because the place where a tape
    /// is cut decides which kernels run.
    pub fn tape_bytes_max(&self) -> u64 {
        self.config.tape_bytes_max.max(1)
    }

    /// How much work of a session may wait before a script lets the ring catch up. More would only take memory.
    pub fn script_room(&self) -> Room {
        let Room { nodes, bytes } = self.config.ring_room();
        Room { nodes: nodes.min(self.session_room.nodes), bytes: bytes.min(self.session_room.bytes) }
    }
}
