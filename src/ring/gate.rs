//! Backpressure. Gates count the recorded ops that were sent and have not run yet, and the bytes that only these keep
//! alive: for each session, and in total. They wake the futures that await room for more.
//!
//! In: segments that are sent, nodes that have left the ring. Out: how much room is left, and wake-ups of waiting
//! futures. Must hold: GATE-1: all that a session adds to the total is subtracted again, at the latest when its gate is
//! closed. GATE-2: a future that awaits room is woken when there is some, and when the session or the ring ends.
//! GATE-3: near the limit, sessions without ops in the ring are refused before those that have some: a request that was
//! recorded only in part would be computed, or thrown away, for nothing. Nothing here blocks a thread.

use crate::config::Room;
use crate::threads::contain;
use futures::channel::oneshot;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

/// Approximate bytes of an op's record on a tape.
pub const RECORD_BYTES: u64 = 96;

/// A future that resolves when there may be room.
pub type Woken = oneshot::Receiver<()>;

/// Futures that await room.
#[derive(Debug, Default)]
struct Waiters(Mutex<List>);

#[derive(Debug, Default)]
struct List {
    first_come: VecDeque<oneshot::Sender<()>>,
    /// When the list is longer than this, futures that were dropped are removed from it.
    prune_above: usize,
}

impl Waiters {
    fn wait(&self) -> Woken {
        let (sender, receiver) = oneshot::channel();
        let mut list = self.0.lock();
        if list.first_come.len() >= list.prune_above.max(64) {
            list.first_come.retain(|waiter| !waiter.is_canceled());
            list.prune_above = 2 * list.first_come.len();
        }
        list.first_come.push_back(sender);
        receiver
    }

    /// Wakes up to `most` of them, in the order in which they came.
    fn wake(&self, most: usize) {
        let mut woken = Vec::new();
        {
            let mut list = self.0.lock();
            // Waiters that were dropped are skipped, so that they use up no wake-up.
            while woken.len() < most
                && let Some(waiter) = list.first_come.pop_front()
            {
                if !waiter.is_canceled() {
                    woken.push(waiter);
                }
            }
        }
        // The lock is released first, because a task that is woken may wait again at once.
        for waiter in woken {
            contain("a waker of a future that awaits room", || {
                let _ = waiter.send(());
            });
        }
    }
}

/// Counts the waiting work of all sessions of a runtime.
#[derive(Debug)]
pub struct Total {
    nodes: AtomicU64,
    bytes: AtomicU64,
    limit: Room,
    /// The ring has ended: there is always room.
    closed: AtomicBool,
    /// Futures of sessions that have begun, and of sessions without ops in the ring (GATE-3).
    begun: Waiters,
    newcomers: Waiters,
}

/// One part in this many of the limit is reserved for sessions that have ops in the ring.
const RESERVED_SHARE: u64 = 8;

/// The number of futures that are woken at a time while less than half of the limit is free.
const WOKEN_AT_ONCE: usize = 4;

impl Total {
    /// A count of zero.
    pub fn new(limit: Room) -> Total {
        Total {
            nodes: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            limit,
            closed: AtomicBool::new(false),
            begun: Waiters::default(),
            newcomers: Waiters::default(),
        }
    }

    /// The number of further nodes for which there is room.
    pub fn room_left(&self) -> u64 {
        self.room_within(self.limit)
    }

    /// The same for a session without ops in the ring. An eighth of the limit is reserved for the other sessions, so
    /// that a program that has begun to record a request can finish it (GATE-3).
    pub fn room_for_newcomers(&self) -> u64 {
        let Room { nodes, bytes } = self.limit;
        self.room_within(Room { nodes: nodes - nodes / RESERVED_SHARE, bytes: bytes - bytes / RESERVED_SHARE })
    }

    fn room_within(&self, limit: Room) -> u64 {
        match self.closed.load(SeqCst) {
            true => u64::MAX,
            false => limit.room_left(self.nodes.load(SeqCst), self.bytes.load(SeqCst)),
        }
    }

    /// A future that awaits room for more nodes than this, half of the limit, is ready when there is room for this
    /// many.
    pub fn enough(&self) -> u64 {
        (self.limit.nodes / 2).max(1)
    }

    /// The nodes and bytes that wait.
    #[cfg(test)]
    pub fn waiting(&self) -> (u64, u64) {
        (self.nodes.load(SeqCst), self.bytes.load(SeqCst))
    }

    /// A future that resolves when there may be room: for a session that has begun, or for one without ops in the ring.
    pub fn wait(&self, has_begun: bool) -> Woken {
        if has_begun { self.begun.wait() } else { self.newcomers.wait() }
    }

    fn enter(&self, nodes: u64, bytes: u64) {
        self.nodes.fetch_add(nodes, SeqCst);
        self.bytes.fetch_add(bytes, SeqCst);
    }

    fn leave(&self, nodes: u64, bytes: u64) {
        let nodes = self.nodes.fetch_sub(nodes, SeqCst) - nodes;
        let bytes = self.bytes.fetch_sub(bytes, SeqCst) - bytes;
        if nodes <= self.limit.nodes / 2 && bytes <= self.limit.bytes / 2 {
            self.wake_all();
        } else if self.limit.room_left(nodes, bytes) > 0 {
            self.begun.wake(WOKEN_AT_ONCE);
            if self.room_for_newcomers() > 0 {
                self.newcomers.wake(WOKEN_AT_ONCE);
            }
        }
    }

    fn wake_all(&self) {
        self.begun.wake(usize::MAX);
        self.newcomers.wake(usize::MAX);
    }

    /// Called when the ring has ended: from now on there is always room.
    pub fn close(&self) {
        self.closed.store(true, SeqCst);
        self.wake_all();
    }
}

/// Counts the waiting work of one session.
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

/// Counts nodes and bytes by segment, in the order in which the segments entered.
#[derive(Debug, Default)]
pub(super) struct Inside {
    nodes: u64,
    bytes: u64,
    /// Nodes and bytes of each segment that has nodes left, in order. Nodes that leave are subtracted from the oldest.
    kept: VecDeque<(u64, u64)>,
}

impl Inside {
    /// Adds a segment: its nodes, and the bytes that only it keeps alive. Returns the bytes that were added.
    pub(super) fn enter(&mut self, nodes: u64, bytes: u64) -> u64 {
        self.nodes += nodes;
        if nodes > 0 {
            self.kept.push_back((nodes, bytes));
        } else if let Some((_, of_segment)) = self.kept.back_mut() {
            // A segment that only drops values: earlier segments may still read them, so their bytes count with the
            // last of these. If there is none, the bytes are freed as soon as the ring takes in the drops.
            *of_segment += bytes;
        } else {
            return 0;
        }
        self.bytes += bytes;
        bytes
    }

    /// Subtracts nodes that leave. Returns the nodes and bytes that were subtracted.
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

    /// The current nodes and bytes.
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
    /// A gate of a session without waiting work.
    pub fn new(total: Arc<Total>) -> Gate {
        Gate { inner: Mutex::default(), total, waiters: Waiters::default() }
    }

    /// A segment was sent: adds its nodes, and the bytes that only it keeps alive.
    pub fn enter(&self, nodes: u64, bytes: u64) {
        let mut inner = self.inner.lock();
        if inner.closed {
            return;
        }
        let bytes = inner.inside.enter(nodes, bytes + nodes * RECORD_BYTES);
        // Still under the lock, so that `close` subtracts only what has been added.
        self.total.enter(nodes, bytes);
    }

    /// Nodes have left the ring.
    pub fn leave(&self, nodes: u64) {
        let (nodes, bytes) = self.inner.lock().inside.leave(nodes);
        self.total.leave(nodes, bytes);
        self.waiters.wake(usize::MAX);
    }

    /// Called when the session or the ring has ended: from now on there is always room.
    pub fn close(&self) {
        let (nodes, bytes) = {
            let mut inner = self.inner.lock();
            inner.closed = true;
            std::mem::take(&mut inner.inside).held()
        };
        self.total.leave(nodes, bytes);
        self.waiters.wake(usize::MAX);
    }

    /// Whether the session has no waiting work.
    pub fn is_empty(&self) -> bool {
        self.inner.lock().inside.nodes == 0
    }

    /// The number of further nodes for which there is room within the session's limit.
    pub fn room_left(&self, limit: Room) -> u64 {
        let inner = self.inner.lock();
        if inner.closed { u64::MAX } else { limit.room_left(inner.inside.nodes, inner.inside.bytes) }
    }

    /// A future that resolves when some of the session's nodes have left.
    pub fn wait(&self) -> Woken {
        self.waiters.wait()
    }

    /// Blocks the calling thread until the session's waiting work is within `room`.
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

    /// How many of these futures are ready.
    fn woken(waiting: &mut [Woken]) -> usize {
        waiting.iter_mut().filter_map(|waits| waits.now_or_never()).count()
    }

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
        assert_eq!((a.room_left(limit), b.room_left(limit), total.room_left()), (2, 7, 5));
        b.enter(1, 4_950);
        assert_eq!((b.room_left(limit), total.room_left()), (0, 4), "its bytes fill its room");
        b.leave(1);
        assert_eq!((b.room_left(limit), total.waiting()), (7, (5, 5 * RECORD_BYTES)));
        a.close();
        a.enter(3, 3);
        assert_eq!((a.room_left(limit), total.waiting()), (u64::MAX, (0, 0)));
        b.enter(10, 0);
        assert_eq!(total.room_left(), 0);
        drop(b);
        assert_eq!(total.waiting(), (0, 0));
    }

    #[test]
    fn who_awaits_room_is_woken_in_order_and_all_are_once_half_is_free() {
        let total = Arc::new(Total::new(Room { nodes: 100, bytes: u64::MAX }));
        let gate = Gate::new(total.clone());
        gate.enter(100, 0);
        let mut waiting: Vec<Woken> = (0..10).map(|_| total.wait(true)).collect();
        gate.leave(1);
        assert_eq!(woken(&mut waiting), WOKEN_AT_ONCE);
        waiting.drain(..WOKEN_AT_ONCE);
        assert_eq!(woken(&mut waiting), 0);
        gate.leave(60);
        assert_eq!(woken(&mut waiting), 6);
    }

    #[test]
    fn newcomers_and_those_who_gave_up_take_nobodys_wake() {
        let total = Arc::new(Total::new(Room { nodes: 80, bytes: u64::MAX }));
        let gate = Gate::new(total.clone());
        gate.enter(80, 0);
        let mut newcomers: Vec<Woken> = (0..5).map(|_| total.wait(false)).collect();
        let given_up: Vec<Woken> = (0..5).map(|_| total.wait(true)).collect();
        let begun = total.wait(true);
        drop(given_up);
        gate.leave(5);
        assert!(begun.now_or_never().is_some(), "there is room for it");
        assert_eq!(woken(&mut newcomers), 0, "what is left is not for them");
        gate.leave(6);
        assert_eq!(woken(&mut newcomers), WOKEN_AT_ONCE);
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
