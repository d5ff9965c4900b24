//! Gates count, for each session and over all, the recorded ops that were sent and have not run yet, and the bytes that
//! only these keep; and they wake the futures that await room for more.
//!
//! In: segments that are sent, nodes that have left the ring. Out: how much room is left, and waiting futures that are
//! woken. Must hold: GATE-1: what a session adds to the total is taken off again, at the latest when its gate is
//! closed. GATE-2: whoever awaits room is woken when there is some, and when nothing waits any more. GATE-3: a session of
//! which nothing waits is refused before one that has begun is: half a request that was recorded would be computed, or
//! thrown away, for nobody. Nothing here blocks a thread.

use crate::config::Room;
use crate::threads::contain;
use futures::channel::oneshot;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

/// Bytes that an op on a tape takes by itself, about.
pub const RECORD_BYTES: u64 = 96;

/// Woken when there is room.
pub type Woken = oneshot::Receiver<()>;

/// Futures that await room.
#[derive(Debug, Default)]
struct Waiters(Mutex<List>);

#[derive(Debug, Default)]
struct List {
    first_come: VecDeque<oneshot::Sender<()>>,
    /// Those who gave up are looked for when there are more than this.
    look_at: usize,
}

impl Waiters {
    fn wait(&self) -> Woken {
        let (sender, receiver) = oneshot::channel();
        let mut list = self.0.lock();
        if list.first_come.len() >= list.look_at.max(64) {
            list.first_come.retain(|waiter| !waiter.is_canceled());
            list.look_at = 2 * list.first_come.len();
        }
        list.first_come.push_back(sender);
        receiver
    }

    /// Wakes up to `most` of them, those first who came first.
    fn wake(&self, most: usize) {
        let woken: Vec<_> = {
            let mut list = self.0.lock();
            let most = list.first_come.len().min(most);
            list.first_come.drain(..most).collect()
        };
        // Not under the lock: who is woken may wait again at once.
        for waiter in woken {
            contain("what room in the ring woke", || {
                let _ = waiter.send(());
            });
        }
    }
}

/// Counts the work that waits, of all sessions of a runtime.
#[derive(Debug)]
pub struct Total {
    nodes: AtomicU64,
    bytes: AtomicU64,
    limit: Room,
    /// The ring has ended: nothing waits any more.
    closed: AtomicBool,
    waiters: Waiters,
}

/// The share of the limit that is kept for sessions that have begun: one in so many.
const NEWCOMERS_LEAVE: u64 = 8;

/// How many of those who await room are woken at a time while less than half of it is free.
const WOKEN_AT_ONCE: usize = 4;

impl Total {
    /// Nothing waits yet.
    pub fn new(limit: Room) -> Total {
        Total {
            nodes: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            limit,
            closed: AtomicBool::new(false),
            waiters: Waiters::default(),
        }
    }

    /// How many nodes more there is room for.
    pub fn left(&self) -> u64 {
        match self.closed.load(SeqCst) {
            true => u64::MAX,
            false => self.limit.left(self.nodes.load(SeqCst), self.bytes.load(SeqCst)),
        }
    }

    /// The same for a session of which nothing waits yet: an eighth of the limit is kept for those that have begun, so
    /// that a program which was let in can record all of a request (GATE-3).
    pub fn left_for_newcomers(&self) -> u64 {
        let Room { nodes, bytes } = self.limit;
        let most = Room { nodes: nodes - nodes / NEWCOMERS_LEAVE, bytes: bytes - bytes / NEWCOMERS_LEAVE };
        match self.closed.load(SeqCst) {
            true => u64::MAX,
            false => most.left(self.nodes.load(SeqCst), self.bytes.load(SeqCst)),
        }
    }

    /// How many nodes more there must be room for, at the most, before a future that awaits room is ready: half of the
    /// limit.
    pub fn enough(&self) -> u64 {
        (self.limit.nodes / 2).max(1)
    }

    /// The nodes and bytes that wait.
    #[cfg(test)]
    pub fn waiting(&self) -> (u64, u64) {
        (self.nodes.load(SeqCst), self.bytes.load(SeqCst))
    }

    /// Woken when there may be room.
    pub fn wait(&self) -> Woken {
        self.waiters.wait()
    }

    fn enter(&self, nodes: u64, bytes: u64) {
        self.nodes.fetch_add(nodes, SeqCst);
        self.bytes.fetch_add(bytes, SeqCst);
    }

    fn leave(&self, nodes: u64, bytes: u64) {
        let nodes = self.nodes.fetch_sub(nodes, SeqCst) - nodes;
        let bytes = self.bytes.fetch_sub(bytes, SeqCst) - bytes;
        if nodes <= self.limit.nodes / 2 && bytes <= self.limit.bytes / 2 {
            self.waiters.wake(usize::MAX);
        } else if self.limit.left(nodes, bytes) > 0 {
            self.waiters.wake(WOKEN_AT_ONCE);
        }
    }

    /// Lets everybody pass from now on: the ring has ended.
    pub fn close(&self) {
        self.closed.store(true, SeqCst);
        self.waiters.wake(usize::MAX);
    }
}

/// Counts the work that waits, of one session.
#[derive(Debug)]
pub struct Gate {
    inner: Mutex<Inner>,
    total: Arc<Total>,
    waiters: Waiters,
}

#[derive(Debug, Default)]
struct Inner {
    inside: Inside,
    closed: bool,
}

/// Nodes and bytes that are inside of something, in the order of their segments.
#[derive(Debug, Default)]
pub(super) struct Inside {
    nodes: u64,
    bytes: u64,
    /// Nodes and bytes of the segments that keep any, in order: nodes that leave count as the oldest.
    kept: VecDeque<(u64, u64)>,
}

impl Inside {
    /// A segment of nodes, with bytes that are kept for it alone; bytes that were added.
    pub(super) fn enter(&mut self, nodes: u64, bytes: u64) -> u64 {
        self.nodes += nodes;
        if nodes > 0 {
            self.kept.push_back((nodes, bytes));
        } else if let Some((_, of_segment)) = self.kept.back_mut() {
            // Segments before may still read what is only let go of; without one it is gone when the ring hears of it.
            *of_segment += bytes;
        } else {
            return 0;
        }
        self.bytes += bytes;
        bytes
    }

    /// Nodes leave; what left, nodes and bytes.
    pub(super) fn leave(&mut self, nodes: u64) -> (u64, u64) {
        let before = (self.nodes, self.bytes);
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
        (before.0 - self.nodes, before.1 - self.bytes)
    }

    /// Nodes and bytes.
    pub(super) fn held(&self) -> (u64, u64) {
        (self.nodes, self.bytes)
    }
}

impl Default for Gate {
    fn default() -> Gate {
        Gate::new(Arc::new(Total::new(Room::UNLIMITED)))
    }
}

impl Gate {
    /// Nothing of the session waits yet.
    pub fn new(total: Arc<Total>) -> Gate {
        Gate { inner: Mutex::default(), total, waiters: Waiters::default() }
    }

    /// A segment of nodes was sent, with bytes that are kept for it alone.
    pub fn enter(&self, nodes: u64, bytes: u64) {
        let mut inner = self.inner.lock();
        if inner.closed {
            return;
        }
        let bytes = inner.inside.enter(nodes, bytes + nodes * RECORD_BYTES);
        // Under the lock: what a close takes off has been added.
        self.total.enter(nodes, bytes);
    }

    /// Nodes have left the ring.
    pub fn leave(&self, nodes: u64) {
        let (nodes, bytes) = self.inner.lock().inside.leave(nodes);
        self.total.leave(nodes, bytes);
        self.waiters.wake(usize::MAX);
    }

    /// Lets everybody pass from now on: the session has ended, or the ring.
    pub fn close(&self) {
        let (nodes, bytes) = {
            let mut inner = self.inner.lock();
            inner.closed = true;
            std::mem::take(&mut inner.inside).held()
        };
        self.total.leave(nodes, bytes);
        self.waiters.wake(usize::MAX);
    }

    /// Whether nothing of the session waits.
    pub fn is_empty(&self) -> bool {
        self.inner.lock().inside.nodes == 0
    }

    /// How many nodes more there is room for within a session's limit.
    pub fn left(&self, limit: Room) -> u64 {
        let inner = self.inner.lock();
        if inner.closed { u64::MAX } else { limit.left(inner.inside.nodes, inner.inside.bytes) }
    }

    /// Woken when some of the session's nodes have left.
    pub fn wait(&self) -> Woken {
        self.waiters.wait()
    }

    /// Holds the calling thread until so little of the session is left.
    #[cfg(test)]
    pub fn wait_below(&self, room: Room) {
        loop {
            let woken = self.wait();
            let (nodes, bytes) = self.inner.lock().inside.held();
            if room.holds(nodes, bytes) {
                return;
            }
            let _ = futures::executor::block_on(woken);
        }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        // GATE-1.
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn bytes_leave_with_the_nodes_of_their_segment() {
        let mut inside = Inside::default();
        assert_eq!(inside.enter(3, 100), 100);
        assert_eq!(inside.enter(2, 50), 50);
        assert_eq!(inside.enter(0, 5), 5);
        assert_eq!(inside.held(), (5, 155));
        assert_eq!(inside.leave(2), (2, 0));
        assert_eq!(inside.leave(2), (2, 100));
        assert_eq!(inside.leave(1), (1, 55));
        assert_eq!(inside.enter(0, 1000), 0, "nothing is there that could read it");
        assert_eq!(inside.leave(7), (0, 0));
    }

    #[test]
    fn a_session_and_all_sessions_have_their_room_and_closing_gives_back_what_waits() {
        let total = Arc::new(Total::new(Room { nodes: 10, bytes: 10_000 }));
        let (a, b) = (Gate::new(total.clone()), Gate::new(total.clone()));
        let limit = Room { nodes: 7, bytes: 5_000 };
        a.enter(5, 0);
        assert_eq!((a.left(limit), b.left(limit), total.left()), (2, 7, 5));
        b.enter(1, 4_950);
        assert_eq!((b.left(limit), total.left()), (0, 4), "its bytes fill its room");
        b.leave(1);
        assert_eq!((b.left(limit), total.waiting()), (7, (5, 5 * RECORD_BYTES)));
        a.close();
        a.enter(3, 3);
        assert_eq!((a.left(limit), total.waiting()), (u64::MAX, (0, 0)));
        b.enter(10, 0);
        assert_eq!(total.left(), 0);
        drop(b);
        assert_eq!(total.waiting(), (0, 0));
    }

    #[test]
    fn who_awaits_room_is_woken_in_order_and_all_are_once_half_is_free() {
        let total = Arc::new(Total::new(Room { nodes: 100, bytes: u64::MAX }));
        let gate = Gate::new(total.clone());
        gate.enter(100, 0);
        let mut waiting: Vec<Woken> = (0..10).map(|_| total.wait()).collect();
        let woken = |waiting: &mut Vec<Woken>| waiting.iter_mut().filter_map(|w| w.now_or_never()).count();
        gate.leave(1);
        assert_eq!(woken(&mut waiting), WOKEN_AT_ONCE);
        waiting.drain(..WOKEN_AT_ONCE);
        assert_eq!(woken(&mut waiting), 0);
        gate.leave(60);
        assert_eq!(woken(&mut waiting), 6);
    }

    #[test]
    fn who_gave_up_waiting_is_not_kept() {
        let gate = Gate::default();
        for _ in 0..10_000 {
            drop(gate.wait());
        }
        assert!(gate.waiters.0.lock().first_come.len() <= 128);
    }
}
