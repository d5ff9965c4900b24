//! A session's tape: ops, demands and handle drops in program order, until a cut sends them to the scheduler.
//!
//! In: records, under the session's lock. Out: `SegmentCut` events.
//! Invariants:
//! - TAPE-1: records leave in the order in which the program made them, and segments in the order of their cuts
//!   (the event is sent under the lock).
//! - TAPE-2: only this session's program order decides where a tape is cut for a demand or a limit: counts of nodes and
//!   bytes of this tape, polls and evals, never time or the ring. An op for which there is no room (`room.rs`) is
//!   refused, and changes nothing. There is one exception: while a writer waits for memory that others hold, the tape
//!   is cut at once, so that this memory becomes free, even if less is fused.
//! - TAPE-3: an array of another session that a record uses is kept until that record's segment has been sent, so that
//!   its own session's `Dropped` record reaches the scheduler later.
//! - TAPE-4: no object of the user (arrays of other sessions, futures, spans) is dropped under the lock.
//! - TAPE-5: the ring is told of a session before its first segment, and of its end only if there was a segment. A
//!   thousand programs that compute everything in host memory cost the ring nothing.
//! - TAPE-6: recording never waits, except on a thread of the program's own, if its settings ask for that.

use super::handle::Array;
use super::link::Link;
use super::random_key::{RandomState, default_seed};
use super::watch::Watches;
use crate::config::Promotion;
use crate::contract::brief::Brief;
use crate::contract::messages::scheduler::SchedulerEvent;
use crate::contract::records::{Records, Summary};
use crate::contract::region::CutReason;
use crate::contract::tape::{Drops, Record, Want};
use crate::error::{Error, ErrorKind, Result, Site};
use crate::graph::{Arg, Meta, Node, Op};
use crate::ids::{DeviceId, GatherId, SessionId, ValueId};
use crate::ring::{Gate, Promise};
use crate::stats::Counters;
use crate::timeline::{Caller, Lane};
use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;
use std::ops::Deref;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, OnceLock};

/// The most bytes that drops alone hold back while no op is on the tape. Sending them then costs no fusion.
const IDLE_DROP_BYTES_MAX: u64 = 256 << 10;
/// The most records of drops while no op is on the tape.
const IDLE_RECORDS_MAX: usize = 256;

/// The state of a session that its arrays share. It lives as long as the session's handle, or one of its arrays or
/// gathers.
///
/// It begins on cache lines of its own (two, which processors fetch together), because sessions that were opened one
/// after the other run on different cores, and a script marks its session at every statement.
#[repr(align(128))]
pub(crate) struct Home {
    /// Its id.
    pub id: SessionId,
    /// Its name.
    pub name: Name,
    /// The user's handles of the session. Arrays also keep the state alive, but do not count.
    pub users: AtomicUsize,
    /// Its share of the devices.
    pub weight: u32,
    /// The runtime.
    pub link: Arc<Link>,
    /// Counts the work that waits; made when the ring is told of the session.
    pub(super) gate: OnceLock<Arc<Gate>>,
    /// The tape.
    pub tape: Mutex<Tape>,
    /// The setting of the runtime, copied here because every op reads it.
    pub fold_elements_max: usize,
    /// Whether promotion is `Promotion::Strict`.
    pub is_strict: AtomicBool,
    /// The ops that the tape holds before it is cut.
    pub(super) nodes_max: usize,
    /// The watches of this session (`Session::watch`), which note recorded ops so that gradients can be computed.
    pub watches: Watches,
    /// `Session::mark`.
    pub mark: AtomicU64,
    /// The block of the ops that are recorded now (`Node::block`), and the number of blocks so far.
    block: AtomicU32,
    blocks: AtomicU32,
    /// The number of futures of upload writers that wait for memory to become free.
    pub uploads_awaited: AtomicU32,
    /// The bytes that the tape keeps alive before it is cut.
    bytes_max: u64,
}

/// Ends a block when it is dropped.
pub(crate) struct Block<'a>(&'a Home);

impl Drop for Block<'_> {
    fn drop(&mut self) {
        self.0.block.store(0, Ordering::Relaxed);
    }
}

/// A session's name; a short one is stored inside of the session.
pub(crate) struct Name(SmallVec<[u8; 24]>);

impl From<&str> for Name {
    fn from(name: &str) -> Name {
        Name(SmallVec::from_slice(name.as_bytes()))
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        // The bytes were made from a `str`.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// The records since the last cut, and their counts.
pub(crate) struct Tape {
    records: Records,
    /// The number of ops among the records.
    pub(super) nodes: usize,
    /// The number of ops that the tape may hold before room is computed again, or the tape is cut.
    pub(super) nodes_allowed: usize,
    /// Bytes of values that are kept only because the tape still holds their `Dropped` record.
    pinned_bytes: u64,
    /// The part of `pinned_bytes` that is data of the program.
    source_bytes: u64,
    /// Gathers whose demands are on the tape.
    demands: SmallVec<[GatherId; 2]>,
    /// The next value's number.
    next_index: u64,
    /// The number of cuts so far.
    pub segment: u64,
    /// Where the random numbers stand.
    pub random: RandomState,
    /// TAPE-3.
    foreign: Vec<Array>,
    pub(super) closed: bool,
    /// Whether the link lists this session as one that demands values.
    demanding: bool,
    /// TAPE-5: whether the ring knows the session.
    announced: bool,
    /// When the first record of this segment was made.
    started_ns: u64,
    /// The program's span in which a value of this segment was last demanded.
    caller: Caller,
}

/// Objects of the program that a cut took out of the tape. They are dropped after the lock is released (TAPE-4).
#[derive(Default)]
#[must_use]
pub(crate) struct TakenOut {
    foreign: Vec<Array>,
    /// The span in which a value of the segment was demanded, if the cut happened in another one.
    caller: Caller,
}

/// A demand whose gather is open.
pub(crate) struct Demand {
    /// The gather.
    pub gather: GatherId,
    /// Its future's end of the channel.
    pub promise: Promise,
    /// The segment in which it was recorded.
    pub segment: u64,
}

impl Home {
    /// Opens a session on a runtime. The ring is told of it with its first segment (TAPE-5).
    pub fn open(link: Arc<Link>, name: Name, weight: u32, seed: Option<u64>, stream: u64) -> Arc<Home> {
        let id = link.next_session();
        link.timeline.name_session(id, &name);
        let bytes_max = link.tape_bytes_max();
        let tape = Tape {
            records: Records::default(),
            nodes: 0,
            nodes_allowed: 0,
            pinned_bytes: 0,
            source_bytes: 0,
            demands: SmallVec::new(),
            next_index: 0,
            segment: 0,
            random: RandomState { seed: seed.unwrap_or_else(|| default_seed(id)), stream, ops: 0 },
            foreign: Vec::new(),
            closed: false,
            demanding: false,
            announced: false,
            started_ns: 0,
            caller: Caller::default(),
        };
        let fold_elements_max = link.config.fold_elements_max;
        // Ops on a tape count for their session. So a tape is cut before it takes more than half of the room, so that
        // there is room for as much again once everything that was sent has run.
        let most = usize::try_from((link.session_room.nodes / 2).max(1)).unwrap_or(usize::MAX);
        let nodes_max = link.config.tape_nodes_max.max(1).min(most);
        let tape = Mutex::new(tape);
        let is_strict = AtomicBool::new(link.config.promotion == Promotion::Strict);
        Arc::new(Home {
            id,
            name,
            users: AtomicUsize::new(1),
            weight,
            link,
            gate: OnceLock::new(),
            tape,
            watches: Watches::default(),
            mark: AtomicU64::new(0),
            block: AtomicU32::new(0),
            blocks: AtomicU32::new(0),
            uploads_awaited: AtomicU32::new(0),
            fold_elements_max,
            is_strict,
            nodes_max,
            bytes_max,
        })
    }

    /// The session's gate.
    pub fn gate(&self) -> &Arc<Gate> {
        self.gate.get_or_init(|| Arc::new(Gate::new(self.link.total.clone())))
    }

    /// A source line of the program, with the session's current mark.
    pub fn site(&self, location: &'static Location<'static>) -> Site {
        Site { location, mark: self.mark.load(Ordering::Relaxed) }
    }

    /// What is recorded until the guard is dropped is one block (`Node::block`). A hint for the cutting of regions: ops that
    /// another thread records meanwhile are in it, too.
    pub fn block(&self) -> Block<'_> {
        let number = self.blocks.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1);
        self.block.store(number, Ordering::Relaxed);
        Block(self)
    }

    /// Puts an op on the tape; returns the value's number.
    #[inline]
    pub fn push_op(
        &self,
        tape: &mut Tape,
        op: Op,
        args: &[Arg],
        meta: &Meta,
        pin: Option<DeviceId>,
        at: &'static Location<'static>,
    ) -> Result<u64> {
        if tape.closed {
            return Err(closed());
        }
        let index = tape.next_index;
        tape.next_index += 1;
        tape.begin(&self.link);
        let value = ValueId { session: self.id, index };
        let at = self.site(at);
        let block = self.block.load(Ordering::Relaxed);
        let brief = if let Op::Apply(op) = op
            && block == 0
        {
            Brief::of(value, op, args, meta, pin, at)
        } else {
            None
        };
        tape.records.push(match brief {
            Some(brief) => Record::Brief(brief, Drops::NONE),
            None => {
                let args = SmallVec::from_slice(args);
                Record::Op(Box::new(Node { value, op, args, meta: meta.clone(), pin, at, block }), Drops::NONE)
            }
        });
        tape.nodes += 1;
        Ok(index)
    }

    /// Checks that ops can be recorded at all.
    ///
    /// # Errors
    /// `ErrorKind::Cancelled` if the session was closed; `ErrorKind::Shutdown` if the runtime was shut down.
    pub fn is_open(&self) -> Result<()> {
        self.link.is_open()?;
        let tape = self.tape.lock();
        if tape.closed { Err(closed()) } else { Ok(()) }
    }

    /// Records that a lazy value is pinned to a device. The work that computes it runs there, unless that is cut
    /// already.
    pub fn pin(&self, value: ValueId, device: DeviceId) {
        let mut tape = self.tape.lock();
        if !tape.closed {
            tape.begin(&self.link);
            tape.records.push(Record::Pinned(value, device));
        }
    }

    /// Locks the tape for an op, and cuts it first if it is full. A full tape is cut only before the next op, so that
    /// the segment also holds the drops that follow its last op, as when a variable is assigned again.
    ///
    /// # Errors
    /// `ErrorKind::Overloaded` if too much work waits: the op must not be recorded.
    #[inline]
    pub fn begin_op(&self) -> Result<(MutexGuard<'_, Tape>, TakenOut)> {
        let tape = self.tape.lock();
        if tape.nodes < tape.nodes_allowed { Ok((tape, TakenOut::default())) } else { self.find_room(tape) }
    }

    /// Ends the push of an op: cuts the tape if it keeps too many bytes alive, releases the lock, and drops the objects
    /// of this cut and of the one before (TAPE-4).
    #[inline]
    pub fn end_push(&self, mut tape: MutexGuard<'_, Tape>, before: TakenOut) {
        let after = match tape.pinned_bytes > self.bytes_max {
            true => self.cut(&mut tape, CutReason::ByteLimit),
            false => TakenOut::default(),
        };
        drop(tape);
        drop((before, after));
    }

    /// Called when the last handle of a recorded value is dropped. `bytes`: the bytes of the value, apart from the
    /// tape.
    pub fn dropped(&self, index: u64, recorded_in: u64, bytes: u64, source: bool) {
        let mut tape = self.tape.lock();
        if tape.closed {
            return;
        }
        tape.begin(&self.link);
        tape.end_value(self.id, index, recorded_in, bytes, source);
        let idle =
            tape.nodes == 0 && (tape.pinned_bytes >= IDLE_DROP_BYTES_MAX || tape.records.len() >= IDLE_RECORDS_MAX);
        let awaited = tape.pinned_bytes > 0 && self.uploads_awaited.load(Ordering::SeqCst) > 0;
        let many_bytes = tape.pinned_bytes > self.bytes_max;
        if many_bytes || idle || awaited {
            let why = match (many_bytes, awaited) {
                (true, _) => CutReason::ByteLimit,
                (false, true) => CutReason::Room,
                (false, false) => CutReason::Drops,
            };
            self.cut_and_release(tape, why);
        }
    }

    /// Called for a handle that the caller drops in a moment. If it is the last handle of a value of this session, the
    /// value's end is recorded now. So the temporaries of an expression take no lock of their own beside that of the
    /// op.
    #[inline]
    pub fn let_go(&self, tape: &mut Tape, array: &Array) {
        let value = &array.0;
        if !std::ptr::eq(&*value.home, self) || Arc::strong_count(value) != 1 || Arc::weak_count(value) != 0 {
            return;
        }
        // The threads that held the other handles have finished with the value.
        fence(Ordering::Acquire);
        if let Some(index) = value.index.get(Ordering::Relaxed) {
            value.index.set(None, Ordering::Relaxed);
            let (bytes, source) = value.keeps();
            tape.end_value(self.id, index, value.segment.load(Ordering::Relaxed), bytes, source);
        }
    }

    /// Records a demand and opens its gather.
    pub fn demand(self: &Arc<Home>, value: ValueId, want: Want) -> Result<Demand> {
        let mut tape = self.tape.lock();
        if tape.closed {
            return Err(closed());
        }
        if !std::mem::replace(&mut tape.demanding, true) {
            self.link.demanding.lock().insert(self.id, Arc::downgrade(self));
        }
        let (gather, promise) = self.link.gathers.open();
        tape.begin(&self.link);
        tape.records.push(Record::Demanded { gather, value, want });
        tape.demands.push(gather);
        let before = tape.caller.replace(Caller::current());
        let segment = tape.segment;
        drop(tape);
        drop(before);
        Ok(Demand { gather, promise, segment })
    }

    /// Cuts the tape if it still holds the records of `segment`.
    pub fn cut_segment(&self, segment: u64, why: CutReason) {
        let tape = self.tape.lock();
        if tape.segment == segment {
            self.cut_and_release(tape, why);
        }
    }

    /// Cuts the tape if it holds anything.
    pub fn flush(&self) {
        self.cut_and_release(self.tape.lock(), CutReason::Flush);
    }

    /// Has the session's lazy values and dropped values free the memory that a writer waits for.
    pub fn make_room(&self) {
        self.cut_and_release(self.tape.lock(), CutReason::Room);
    }

    /// Cuts the tape if it holds arrays of other sessions, so that two sessions cannot keep each other alive.
    pub fn flush_foreign(&self) {
        let tape = self.tape.lock();
        if !tape.foreign.is_empty() {
            self.cut_and_release(tape, CutReason::Flush);
        }
    }

    /// Called when a gather's future was dropped unresolved. `uncut`: the segment that holds its demand, unless that is
    /// known to be cut.
    pub fn cancel(&self, gather: GatherId, uncut: Option<u64>) {
        // This comes before the event, because the ring forgets the cancel of a gather that it has not seen yet, and
        // asks the table when it sees the gather.
        self.link.gathers.forget(gather);
        let mut tape = self.tape.lock();
        if uncut == Some(tape.segment) && !tape.closed {
            tape.records.push(Record::Cancelled(gather));
        } else {
            self.link.send(SchedulerEvent::GatherCancelled(gather));
        }
    }

    /// Whether the session was closed.
    pub fn is_closed(&self) -> bool {
        self.tape.lock().closed
    }

    /// Ends the session: recorded ops are sent, later ones are refused.
    pub fn close(&self) {
        let mut tape = self.tape.lock();
        if tape.closed {
            return;
        }
        let after = self.cut(&mut tape, CutReason::Flush);
        tape.closed = true;
        if tape.announced {
            self.link.send(SchedulerEvent::SessionClosed(self.id));
        }
        drop(tape);
        drop(after);
        if self.uploads_awaited.load(Ordering::SeqCst) > 0 {
            self.link.devices.grants().refuse(self.id.0, &closed());
        }
    }

    /// Drops the records if the ring was never told of the session, because no other thread can ask for them any more.
    /// So a request that is refused for lack of room costs the ring nothing.
    fn drop_unsent(&mut self) {
        let tape = self.tape.get_mut();
        if tape.announced {
            return;
        }
        let nodes = std::mem::take(&mut tape.nodes) as u64;
        Counters::add(&self.link.counters.ops_recorded, nodes);
        Counters::add(&self.link.counters.ops_dead, nodes);
        drop(tape.records.take());
        tape.demands.clear();
        tape.foreign.clear();
    }

    /// Cuts the tape, releases the lock, and drops the objects of the cut (TAPE-4).
    fn cut_and_release(&self, mut tape: MutexGuard<'_, Tape>, why: CutReason) {
        let TakenOut { foreign, caller } = self.cut(&mut tape, why);
        drop(tape);
        drop((foreign, caller));
    }

    #[cold]
    pub(super) fn cut(&self, tape: &mut Tape, why: CutReason) -> TakenOut {
        // If a writer waits for memory, the cut also concerns segments that were sent before.
        let concerns_earlier = why == CutReason::Room && tape.announced;
        if tape.closed || (tape.records.is_empty() && !concerns_earlier) {
            return TakenOut::default();
        }
        let mut records = tape.records.take();
        let nodes = std::mem::take(&mut tape.nodes) as u64;
        let pinned_bytes = std::mem::take(&mut tape.pinned_bytes);
        let source_bytes = std::mem::take(&mut tape.source_bytes);
        let mut homes: SmallVec<[SessionId; 1]> = tape.foreign.iter().map(|array| array.0.home.id).collect();
        homes.sort_unstable();
        homes.dedup();
        records.summary = Summary { nodes, pinned_bytes, demands: std::mem::take(&mut tape.demands), homes };
        // The next op computes the room again.
        tape.nodes_allowed = 0;
        tape.segment += 1;
        if !std::mem::replace(&mut tape.announced, true) {
            (self.link.register_gate)(self.id, self.gate().clone());
            let (session, name, weight) = (self.id, Arc::from(&*self.name), self.weight);
            // No wake-up is needed for this event: the segment that follows wakes the ring.
            let _ = self.link.events.put(SchedulerEvent::SessionOpened { session, name, weight });
        }
        self.gate().enter(nodes, source_bytes);
        Counters::add(&self.link.counters.ops_recorded, nodes);
        let at_ns = self.link.timeline.now_ns();
        let mut caller = std::mem::take(&mut tape.caller);
        let before = caller.replace(Caller::current());
        self.link.timeline.callers().cut(self.id, at_ns, caller);
        // TAPE-1: the event is sent under the lock.
        self.link.send(SchedulerEvent::SegmentCut { session: self.id, records, why, at_ns });
        if self.link.timeline.is_on() && nodes > 0 {
            // The span ends after `at_ns`, where the scheduler's arrow to the region begins.
            let end_ns = self.link.timeline.now_ns().max(at_ns + 1);
            self.link.timeline.span(Lane::Session(self.id), "record", tape.started_ns, end_ns, &[]);
        }
        TakenOut { foreign: std::mem::take(&mut tape.foreign), caller: before }
    }
}

impl Tape {
    /// Appends the drop of a value of this session; to the op before it if that is the latest record.
    #[inline]
    pub fn push_drop(&mut self, session: SessionId, index: u64) {
        let added = match self.records.last_mut() {
            Some(Record::Brief(brief, drops)) => drops.add(brief.index(), index),
            Some(Record::Op(node, drops)) => drops.add(node.value.index, index),
            _ => false,
        };
        if added {
            return;
        }
        self.records.push(Record::Dropped(ValueId { session, index }));
    }

    /// Appends the end of a value, and counts its bytes.
    fn end_value(&mut self, session: SessionId, index: u64, recorded_in: u64, bytes: u64, source: bool) {
        self.push_drop(session, index);
        if source || recorded_in != self.segment {
            self.pinned_bytes += bytes;
        }
        if source {
            self.source_bytes += bytes;
        }
    }

    /// Keeps an array of another session until the tape is cut (TAPE-3).
    pub fn hold_foreign(&mut self, array: Array) {
        self.foreign.push(array);
    }

    #[inline]
    fn begin(&mut self, link: &Link) {
        if self.records.is_empty() {
            self.records.take_from(&link.spares);
            if link.timeline.is_on() {
                self.started_ns = link.timeline.now_ns();
            }
        }
    }
}

/// The error of an op or demand after the session was closed.
#[cold]
fn closed() -> Error {
    Error::new(ErrorKind::Cancelled, "the session was closed")
}

impl Drop for Home {
    fn drop(&mut self) {
        self.drop_unsent();
        self.close();
        if self.tape.get_mut().demanding {
            self.link.demanding.lock().remove(&self.id);
        }
        self.link.timeline.end_session(self.id);
    }
}
