//! The gates of all sessions, by session: the ring gives credits back through it.

use super::{Gate, Total};
use crate::config::Room;
use crate::ids::SessionId;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Gates by session, until the ring has heard of the session's end, and their total.
pub struct Gates {
    inner: Mutex<Inner>,
    total: Arc<Total>,
}

#[derive(Default)]
struct Inner {
    closed: bool,
    gates: FxHashMap<SessionId, Arc<Gate>>,
}

impl Gates {
    /// None yet; `limit` is for what waits of all sessions.
    pub fn new(limit: Room) -> Gates {
        Gates { inner: Mutex::default(), total: Arc::new(Total::new(limit)) }
    }

    /// The count of the work that waits, of all sessions.
    pub fn total(&self) -> &Arc<Total> {
        &self.total
    }

    /// Tells the ring which gate gets a session's credits. After the ring has ended the gate is opened at once.
    pub fn register(&self, session: SessionId, gate: Arc<Gate>) {
        let mut inner = self.inner.lock();
        if inner.closed {
            drop(inner);
            gate.close();
            return;
        }
        inner.gates.insert(session, gate);
    }

    /// Nodes of a session that were left lazy are in the ring again, and keep so many bytes.
    pub fn enter(&self, session: SessionId, nodes: u64, bytes: u64) {
        if let Some(gate) = self.find(session) {
            gate.enter(nodes, bytes);
        }
    }

    /// Nodes of a session have left the ring.
    pub fn leave(&self, session: SessionId, nodes: u64) {
        if let Some(gate) = self.find(session) {
            gate.leave(nodes);
        }
    }

    fn find(&self, session: SessionId) -> Option<Arc<Gate>> {
        self.inner.lock().gates.get(&session).cloned()
    }

    /// Forgets a session that has ended, and lets pass whoever still waits at its gate.
    pub fn forget(&self, session: SessionId) {
        let gate = self.inner.lock().gates.remove(&session);
        if let Some(gate) = gate {
            gate.close();
        }
    }

    /// How many there are.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.inner.lock().gates.len()
    }

    /// Lets everybody pass from now on: the ring has ended.
    pub fn close(&self) {
        let gates = {
            let mut inner = self.inner.lock();
            inner.closed = true;
            std::mem::take(&mut inner.gates)
        };
        for gate in gates.into_values() {
            gate.close();
        }
        self.total.close();
    }
}
