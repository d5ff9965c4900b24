//! Decides whether a session may record another op. This depends on the work that waits in the ring and on its tape,
//! both its own and that of all sessions.
//!
//! In: the session's gate, the total of all gates, the runtime's settings. Out: a tape that has room for another op;
//! the error of an op for which there is no room; futures that are ready when there is room. Must hold: TAPE-4; TAPE-6:
//! a thread is blocked only in `find_room`, if `hold_recording` asks for that, and never in async code; GATE-3.

use super::pending::may_block;
use super::tape::{Home, TakenOut, Tape};
use crate::config::Room;
use crate::contract::region::CutReason;
use crate::error::{Error, ErrorKind, Result};
use crate::threads;
use futures::FutureExt;
use parking_lot::MutexGuard;

/// How many times as many ops a tape takes while a watch follows what is recorded.
const WATCHED_TAPES: usize = 8;

impl Home {
    /// Locks the tape for an op as [`Home::begin_op`] does, if the tape may have to be cut first or the room has to be
    /// computed.
    #[cold]
    pub(super) fn find_room<'a>(&'a self, mut tape: MutexGuard<'a, Tape>) -> Result<(MutexGuard<'a, Tape>, TakenOut)> {
        loop {
            let after = self.cut_full(&mut tape);
            let link = &self.link;
            let mut left = self.ops_left(&tape, link.session_room);
            if threads::is_unheld() {
                // A script is not refused; it lets the ring catch up before it goes on.
                if self.ops_left(&tape, link.script_room()) == 0 {
                    threads::ask_to_wait();
                }
                left = u64::MAX;
            }
            let holds = link.config.hold_recording;
            if left == 0 && holds && threads::is_own() {
                // The ring needs its own threads to make room. So a waker that records on one of them is not blocked.
                left = u64::MAX;
            }
            if left > 0 {
                let left = usize::try_from(left).unwrap_or(usize::MAX);
                tape.nodes_allowed = self.nodes_max_now().min(tape.nodes.saturating_add(left));
                return Ok((tape, after));
            }
            drop(tape);
            // TAPE-4.
            drop(after);
            if !holds || may_block("recording").is_err() {
                return Err(overloaded());
            }
            futures::executor::block_on(self.room_for(1, link.session_room));
            tape = self.tape.lock();
        }
    }

    /// Cuts a tape that holds as many ops as it may hold.
    fn cut_full(&self, tape: &mut Tape) -> TakenOut {
        if tape.nodes >= self.nodes_max_now() { self.cut(tape, CutReason::NodeLimit) } else { TakenOut::default() }
    }

    /// Called when a watch begins or ends, which changes how many ops the tape holds: the next op finds out.
    pub(super) fn count_room_again(&self) {
        self.tape.lock().nodes_allowed = 0;
    }

    /// Ops that the tape holds now before it is cut. A watch holds handles of the values that its gradients may read: a cut
    /// would compute and store all of them, and once the watch is dropped most are needed no more. So a tape takes more
    /// while there is a watch.
    fn nodes_max_now(&self) -> usize {
        let most = (self.link.session_room.nodes / 2).max(1) as usize;
        if self.watches.are_any() { (self.nodes_max * WATCHED_TAPES).min(most) } else { self.nodes_max }
    }

    /// The number of ops for which there is still room, within the session's `limit` and that of all sessions.
    fn ops_left(&self, tape: &Tape, limit: Room) -> u64 {
        if tape.closed {
            return u64::MAX;
        }
        let gate = self.gate.get();
        let own = gate.map_or(limit.nodes, |gate| gate.room_left(limit));
        if !self.has_begun(tape) && self.link.total.room_for_newcomers() == 0 {
            return 0;
        }
        own.min(self.link.total.room_left()).saturating_sub(tape.nodes as u64)
    }

    /// Whether ops of the session wait, on its tape or in the ring.
    fn has_begun(&self, tape: &Tape) -> bool {
        tape.nodes > 0 || self.gate.get().is_some_and(|gate| !gate.is_empty())
    }

    /// Waits until there is room for `ops` more ops.
    async fn room_for(&self, ops: u64, limit: Room) {
        while let Some(waits) = self.wait_for_room(ops, limit) {
            waits.await;
        }
    }

    /// Waits until there is room for a full tape, or for half of the ops that may wait, so that a program that records
    /// several ops at a time need not wait before each.
    pub async fn ready(&self, limit: Room) {
        self.room_for((self.nodes_max as u64).min(limit.nodes / 2).max(1), limit).await;
    }

    /// A future that is ready when there may be room for `ops` more ops; `None` if there is room now.
    fn wait_for_room(&self, ops: u64, limit: Room) -> Option<impl Future<Output = ()> + Send + use<>> {
        let look = || {
            let mut tape = self.tape.lock();
            // A full tape is cut, as the next op would do, so that the room is that of an empty tape.
            let after = self.cut_full(&mut tape);
            let (left, has_begun) = (self.ops_left(&tape, limit), self.has_begun(&tape));
            drop(tape);
            drop(after);
            (left >= ops.min(self.link.total.enough()), has_begun)
        };
        let (has_room, has_begun) = look();
        if has_room {
            return None;
        }
        let (own, all) = (self.gate().wait(), self.link.total.wait(has_begun));
        // Ops may have finished before the two futures were registered, so that they were not woken.
        if look().0 {
            return None;
        }
        Some(futures::future::select(own, all).map(|_| ()))
    }
}

/// The error of an op for which there is no room.
fn overloaded() -> Error {
    let words = "more recorded work waits than the runtime keeps (RuntimeBuilder::ops_pending_max and \
                 bytes_pending_max, of a session or of all): await Session::ready and record it again, or demand less \
                 at a time";
    Error::new(ErrorKind::Overloaded, words)
}
