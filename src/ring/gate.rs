//! A session's gate: holds the recording thread while too many of its nodes, or of the bytes that only they keep, are
//! in the ring.

use crate::threads::contain;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;

/// How much of a session may be in the ring before its recording thread is held.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Nodes.
    pub nodes: u64,
    /// Bytes of values that the program has let go of.
    pub bytes: u64,
}

impl Room {
    /// Whether there is room for so much.
    pub fn holds(self, nodes: u64, bytes: u64) -> bool {
        nodes <= self.nodes && bytes <= self.bytes
    }
}

/// Counts a session's nodes in the ring, and what they keep.
#[derive(Debug, Default)]
pub struct Gate {
    inner: Mutex<Inner>,
    changed: Condvar,
    wakers: Mutex<Vec<futures::channel::oneshot::Sender<()>>>,
}

#[derive(Debug, Default)]
struct Inner {
    nodes: u64,
    bytes: u64,
    /// Nodes and bytes of the segments that keep any, in order: nodes that leave count as the oldest.
    kept: VecDeque<(u64, u64)>,
    closed: bool,
}

impl Inner {
    fn is_below(&self, room: Room) -> bool {
        self.closed || room.holds(self.nodes, self.bytes)
    }

    fn leave(&mut self, nodes: u64) {
        self.nodes = self.nodes.saturating_sub(nodes);
        let mut left = nodes;
        while let Some((of_segment, bytes)) = self.kept.front_mut() {
            let these = left.min(*of_segment);
            *of_segment -= these;
            left -= these;
            if *of_segment > 0 {
                break;
            }
            self.bytes -= *bytes;
            self.kept.pop_front();
        }
    }
}

impl Gate {
    /// A segment of nodes enters the ring, with bytes of values that are kept for it alone. Nodes and bytes that are in
    /// the ring now.
    pub fn enter(&self, nodes: u64, bytes: u64) -> (u64, u64) {
        let mut inner = self.inner.lock();
        inner.nodes += nodes;
        if nodes > 0 {
            inner.bytes += bytes;
            inner.kept.push_back((nodes, bytes));
        } else if let Some((_, of_segment)) = inner.kept.back_mut() {
            // Segments before may still read what is only let go of; without one it is gone when the ring hears of it.
            *of_segment += bytes;
            inner.bytes += bytes;
        }
        (inner.nodes, inner.bytes)
    }

    /// Whether nothing of the session is in the ring.
    pub fn is_empty(&self) -> bool {
        let inner = self.inner.lock();
        inner.nodes == 0 || inner.closed
    }

    /// Nodes have left the ring.
    pub fn leave(&self, nodes: u64) {
        self.inner.lock().leave(nodes);
        self.wake();
    }

    /// Lets everybody pass from now on: the ring has ended.
    pub fn close(&self) {
        self.inner.lock().closed = true;
        self.wake();
    }

    /// Holds the calling thread while more is in the ring than there is room for. The ring needs nothing from
    /// this thread, so it always ends.
    pub fn wait_below(&self, room: Room) {
        let mut inner = self.inner.lock();
        while !inner.is_below(room) {
            self.changed.wait(&mut inner);
        }
    }

    /// The asynchronous form of [`Gate::wait_below`].
    pub async fn below(&self, room: Room) {
        loop {
            let wait = {
                let mut wakers = self.wakers.lock();
                let inner = self.inner.lock();
                if inner.is_below(room) {
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
        // Not under the lock: who is woken may wait again at once.
        let wakers = std::mem::take(&mut *self.wakers.lock());
        for waker in wakers {
            contain("what room in the ring woke", || {
                let _ = waker.send(());
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_leave_with_the_nodes_of_their_segment() {
        let gate = Gate::default();
        let room = |nodes, bytes| gate.inner.lock().is_below(Room { nodes, bytes });
        gate.enter(3, 100);
        gate.enter(2, 50);
        assert!(room(5, 150) && !room(4, 150) && !room(5, 149));
        gate.enter(0, 5);
        assert!(!room(5, 154) && room(5, 155));
        gate.leave(2);
        assert!(room(3, 155) && !room(3, 154));
        gate.leave(2);
        assert!(room(1, 55) && !room(1, 54));
        assert!(!gate.is_empty());
        gate.leave(1);
        assert!(room(0, 0) && gate.is_empty());
        gate.enter(0, 1000);
        assert!(room(0, 0), "nothing is there that could read it");
        gate.enter(1, 7);
        assert!(!room(9, 6));
        gate.close();
        assert!(room(0, 0));
    }
}
