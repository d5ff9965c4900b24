//! A session's gate: holds the recording thread while too many of its nodes are in the ring.

use parking_lot::{Condvar, Mutex};

/// Counts a session's nodes in the ring.
#[derive(Debug, Default)]
pub struct Gate {
    inner: Mutex<Inner>,
    changed: Condvar,
    wakers: Mutex<Vec<futures::channel::oneshot::Sender<()>>>,
}

#[derive(Debug, Default)]
struct Inner {
    nodes: u64,
    closed: bool,
}

impl Gate {
    /// Nodes enter the ring.
    pub fn enter(&self, nodes: u64) {
        self.inner.lock().nodes += nodes;
    }

    /// Nodes have left the ring.
    pub fn leave(&self, nodes: u64) {
        let mut inner = self.inner.lock();
        inner.nodes = inner.nodes.saturating_sub(nodes);
        drop(inner);
        self.wake();
    }

    /// Lets everybody pass from now on: the ring has ended.
    pub fn close(&self) {
        self.inner.lock().closed = true;
        self.wake();
    }

    /// Holds the calling thread while more than `limit` nodes are in the ring. The ring needs nothing from
    /// this thread, so it always ends.
    pub fn wait_below(&self, limit: u64) {
        let mut inner = self.inner.lock();
        while inner.nodes > limit && !inner.closed {
            self.changed.wait(&mut inner);
        }
    }

    /// The asynchronous form of [`Gate::wait_below`].
    pub async fn below(&self, limit: u64) {
        loop {
            let wait = {
                let mut wakers = self.wakers.lock();
                let inner = self.inner.lock();
                if inner.nodes <= limit || inner.closed {
                    return;
                }
                let (sender, receiver) = futures::channel::oneshot::channel();
                wakers.push(sender);
                receiver
            };
            let _ = wait.await;
        }
    }

    fn wake(&self) {
        self.changed.notify_all();
        for waker in self.wakers.lock().drain(..) {
            let _ = waker.send(());
        }
    }
}
