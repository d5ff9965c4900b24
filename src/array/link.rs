//! What every session of a runtime shares: the way into the ring, the table of gathers, the counters.
//!
//! In: settings and an open ring. Out: events to the scheduler, in each session's order.
//! Must hold: a link outlives its ring without harm: events into an ended ring are dropped, and gathers opened
//! after it are already resolved to the closing error.

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

/// Tells the ring which gate gets a session's credits.
pub(crate) type RegisterGate = Box<dyn Fn(SessionId, Arc<Gate>) + Send + Sync>;

/// A runtime, as its sessions see it.
pub(crate) struct Link {
    /// Into the scheduler.
    pub events: Post<SchedulerEvent>,
    /// Open gathers.
    pub gathers: Arc<GatherTable>,
    /// Counters.
    pub counters: Arc<Counters>,
    /// The timeline.
    pub timeline: Timeline,
    /// Settings.
    pub config: Arc<Config>,
    /// The devices that are open, and the one that may yet be opened.
    pub devices: Arc<Devices>,
    /// What waits of all sessions.
    pub total: Arc<Total>,
    /// What may wait of one session.
    pub session_room: Room,
    /// Tells the ring a session's gate.
    pub register_gate: RegisterGate,
    /// Sessions opened so far.
    pub sessions: AtomicU64,
    /// Host memory that front ends hold.
    pub claims: Arc<HostClaims>,
    /// Memory of tapes that were sent.
    pub spares: Arc<Spares>,
    /// Sessions that are open and ever asked for a value: their tapes may hold a demand that nobody polled yet. It is
    /// locked while a tape is; whoever holds it locks no tape.
    pub demanding: Mutex<FxHashMap<SessionId, Weak<Home>>>,
    /// A shutdown has begun, or the runtime was dropped.
    pub ended: AtomicBool,
}

impl Link {
    /// Sends to the scheduler; after the ring has ended there is nobody to tell.
    pub fn send(&self, event: SchedulerEvent) {
        let _ = self.events.send(event);
    }

    /// Cuts all tapes that may hold demands: what was asked for is in the scheduler's mailbox then. What is not cut by
    /// the deadline would not be computed.
    pub fn flush_demanding(&self, deadline: Instant) {
        let homes: Vec<Arc<Home>> = self.demanding.lock().values().filter_map(Weak::upgrade).collect();
        homes.iter().take_while(|_| Instant::now() < deadline).for_each(|home| home.flush());
    }

    /// Says that the runtime ends: it takes no data of the program from now on.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    /// Whether the runtime takes data of the program.
    ///
    /// # Errors
    /// `ErrorKind::Shutdown` where a shutdown has begun, or the runtime was dropped.
    pub fn is_open(&self) -> Result<()> {
        match self.ended.load(Ordering::Acquire) {
            true => Err(Error::new(ErrorKind::Shutdown, "the runtime was shut down and takes nothing new")),
            false => Ok(()),
        }
    }

    /// The next session's id.
    pub fn next_session(&self) -> SessionId {
        SessionId(self.sessions.fetch_add(1, Ordering::Relaxed))
    }

    /// Bytes a tape may pin, whatever the device's budget is: where a tape is cut decides which kernels run.
    pub fn tape_bytes_max(&self) -> u64 {
        self.config.tape_bytes_max.max(1)
    }

    /// What of a session may wait before a script lets the ring catch up: more would only take memory.
    pub fn script_room(&self) -> Room {
        let Room { nodes, bytes } = self.config.ring_room();
        Room { nodes: nodes.min(self.session_room.nodes), bytes: bytes.min(self.session_room.bytes) }
    }
}
