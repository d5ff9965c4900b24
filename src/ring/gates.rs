//! The table of all sessions' gates, through which the ring gives credits back.

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
    /// An empty table. `limit` is the limit on the waiting work of all sessions together.
    pub fn new(limit: Room) -> Gates {
        Gates { inner: Mutex::default(), total: Arc::new(Total::new(limit)) }
    }

    /// The count of the waiting work of all sessions.
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

    /// Nodes of a session that were left lazy are in the ring again, and keep `bytes` alive.
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

    /// Removes a session that has ended, and wakes the futures that still wait at its gate.
    pub fn forget(&self, session: SessionId) {
        let gate = self.inner.lock().gates.remove(&session);
        if let Some(gate) = gate {
            gate.close();
        }
    }

    /// The number of gates.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.inner.lock().gates.len()
    }

    /// Called when the ring has ended: closes all gates, so that there is always room.
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
