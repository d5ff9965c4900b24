//! The gates of all sessions, by session: the ring gives credits back through it.

use super::Gate;
use crate::ids::SessionId;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Weak};

/// Gates by session. A gate belongs to its session; this only knows where to find it.
#[derive(Default)]
pub struct Gates {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    closed: bool,
    gates: FxHashMap<SessionId, Weak<Gate>>,
}

impl Gates {
    /// Tells the ring which gate gets a session's credits. After the ring has ended the gate is opened at once.
    pub fn register(&self, session: SessionId, gate: Arc<Gate>) {
        let mut inner = self.inner.lock();
        if inner.closed {
            drop(inner);
            gate.close();
            return;
        }
        inner.gates.insert(session, Arc::downgrade(&gate));
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
        let mut inner = self.inner.lock();
        let gate = inner.gates.get(&session).and_then(Weak::upgrade);
        if gate.is_none() {
            inner.gates.remove(&session);
        }
        gate
    }

    /// Forgets a session that has ended, and lets pass whoever still waits at its gate.
    pub fn forget(&self, session: SessionId) {
        let gate = self.inner.lock().gates.remove(&session).and_then(|g| g.upgrade());
        if let Some(gate) = gate {
            gate.close();
        }
    }

    /// Lets everybody pass from now on: the ring has ended.
    pub fn close(&self) {
        let gates = {
            let mut inner = self.inner.lock();
            inner.closed = true;
            std::mem::take(&mut inner.gates)
        };
        for gate in gates.into_values().filter_map(|g| g.upgrade()) {
            gate.close();
        }
    }
}
