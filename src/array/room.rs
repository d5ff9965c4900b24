//! Whether a session may record more: that depends on what waits in the ring and on its tape, of itself and of all
//! sessions.
//!
//! In: the session's gate, the total of all gates, the runtime's settings. Out: a tape that has room for another op,
//! the error of an op for which there is none, futures that are ready when there is. Must hold: TAPE-4; TAPE-6: a
//! thread is held in `find_room` only, where `hold_recording` asks for that, and never in async code; GATE-3.

use super::pending::may_block;
use super::tape::{After, Home, Tape};
use crate::config::Room;
use crate::contract::region::CutReason;
use crate::error::{Error, ErrorKind, Result};
use crate::threads;
use futures::FutureExt;
use parking_lot::MutexGuard;

impl Home {
    /// Locks the tape for an op as [`Home::begin_op`] does, where the tape has to be cut first, or room looked for.
    #[cold]
    pub(super) fn find_room<'a>(&'a self, mut tape: MutexGuard<'a, Tape>) -> Result<(MutexGuard<'a, Tape>, After)> {
        loop {
            let after = self.cut_full(&mut tape);
            let link = &self.link;
            let mut left = self.left(&tape, link.session_room);
            if threads::is_unheld() {
                // A script lets the ring catch up before it goes on, and is not refused meanwhile.
                if self.left(&tape, link.script_room()) == 0 {
                    threads::ask_to_wait();
                }
                left = u64::MAX;
            }
            let holds = link.config.hold_recording;
            if left == 0 && holds && threads::is_own() {
                // The ring needs its own threads to make room: a waker that records is let through.
                left = u64::MAX;
            }
            if left > 0 {
                let left = usize::try_from(left).unwrap_or(usize::MAX);
                tape.nodes_allowed = self.nodes_max.min(tape.nodes.saturating_add(left));
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

    /// Cuts a tape that holds as many ops as it may.
    fn cut_full(&self, tape: &mut Tape) -> After {
        if tape.nodes >= self.nodes_max { self.cut(tape, CutReason::NodeLimit) } else { After::default() }
    }

    /// How many ops more there is room for, of this session within `limit` and over all sessions.
    fn left(&self, tape: &Tape, limit: Room) -> u64 {
        if tape.closed {
            return u64::MAX;
        }
        let gate = self.gate.get();
        let own = gate.map_or(limit.nodes, |gate| gate.left(limit));
        if !self.has_begun(tape) && self.link.total.left_for_newcomers() == 0 {
            return 0;
        }
        own.min(self.link.total.left()).saturating_sub(tape.nodes as u64)
    }

    /// Whether ops of the session wait, on its tape or in the ring.
    fn has_begun(&self, tape: &Tape) -> bool {
        tape.nodes > 0 || self.gate.get().is_some_and(|gate| !gate.is_empty())
    }

    /// Waits until there is room for so many ops.
    async fn room_for(&self, ops: u64, limit: Room) {
        while let Some(waits) = self.wait_for_room(ops, limit) {
            waits.await;
        }
    }

    /// Waits until there is room for a tape, or for half of all that may wait: a program that records several ops at a
    /// time need not wait for each.
    pub async fn ready(&self, limit: Room) {
        self.room_for((self.nodes_max as u64).min(limit.nodes / 2).max(1), limit).await;
    }

    /// A future that is ready when there may be room for so many ops; `None` if there is.
    fn wait_for_room(&self, ops: u64, limit: Room) -> Option<impl Future<Output = ()> + Send + use<>> {
        let look = || {
            let mut tape = self.tape.lock();
            // As the next op would: its room is that of an empty tape.
            let after = self.cut_full(&mut tape);
            let (left, has_begun) = (self.left(&tape, limit), self.has_begun(&tape));
            drop(tape);
            drop(after);
            (left >= ops.min(self.link.total.enough()), has_begun)
        };
        let (has_room, has_begun) = look();
        if has_room {
            return None;
        }
        let (own, all) = (self.gate().wait(), self.link.total.wait(has_begun));
        // Nodes may have left before the two were registered, and woken nobody.
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
