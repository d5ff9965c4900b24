//! A session's tape: ops, demands and handle drops in program order, until a cut sends them to the scheduler.
//!
//! In: records, under the session's lock. Out: `SegmentCut` events.
//! Invariants:
//! - TAPE-1: records leave in the order in which the program made them, and segments in the order of their cuts
//!   (the event is sent under the lock).
//! - TAPE-2: where a tape is cut for a demand or a limit depends on this session's program order alone: on counts of
//!   nodes and bytes of this tape, on polls and evals, never on time or on the ring; an op for which there is no room is
//!   refused, and changes nothing. Where a writer waits for
//!   memory that others hold, it is cut then, and what is held is computed: going on comes before fusing.
//! - TAPE-3: a foreign array used by a record is held until that record's segment has been sent, so that its own
//!   session's `Dropped` record reaches the scheduler later.
//! - TAPE-4: nothing of the user's (arrays of other sessions, futures) is dropped under the lock.
//! - TAPE-5: a session is made known to the ring before its first segment, and its end only if there was one: a
//!   thousand programs that compute all they want in host memory cost the ring nothing.
//! - TAPE-6: recording waits for nobody, but on a thread of the program's own, where its settings ask for that.

use super::handle::{Array, UNRECORDED};
use super::link::Link;
use crate::config::Promotion;
use crate::error::{Error, ErrorKind, Result, Site};
use crate::graph::{Arg, Meta, Node, Op, RandomKey};
use crate::ids::{DeviceId, GatherId, SessionId, ValueId};
use crate::ring::{Gate, Promise, Room};
use crate::scheduler::brief::Brief;
use crate::scheduler::message::{Drops, Record, SchedulerEvent, Want};
use crate::scheduler::records::{Records, Summary};
use crate::scheduler::region::CutReason;
use crate::stats::Counters;
use crate::timeline::{Caller, Lane};
use futures::FutureExt;
use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;
use std::ops::Deref;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, OnceLock};

/// Bytes that drops alone may hold back when no op is on the tape: sending them costs no fusion.
const IDLE_DROP_BYTES_MAX: u64 = 256 << 10;
/// Records that drops alone may pile up when no op is on the tape.
const IDLE_RECORDS_MAX: usize = 256;

/// A session, as its arrays see it. Lives as long as the session's handle, an array or a gather of it does.
///
/// It begins cache lines of its own (two, which processors fetch together): sessions that were opened one after the
/// other run on different cores, and a script marks its session with every statement.
#[repr(align(128))]
pub(crate) struct Home {
    /// Its id.
    pub id: SessionId,
    /// Its name.
    pub name: Name,
    /// Handles of the user's, apart from the arrays' hold on the session.
    pub users: AtomicUsize,
    /// Its share of the devices.
    pub weight: u32,
    /// Philox's stream.
    pub stream: u64,
    /// The runtime.
    pub link: Arc<Link>,
    /// Counts what waits; made when the ring is to hear of the session.
    gate: OnceLock<Arc<Gate>>,
    /// The tape.
    pub tape: Mutex<Tape>,
    /// Settings, where every op reads them.
    pub fold_elements_max: usize,
    /// `Promotion::Strict`.
    pub is_strict: AtomicBool,
    nodes_max: usize,
    /// `Session::mark`.
    pub mark: AtomicU64,
    /// Its futures of upload writers, which wait for what is let go of.
    pub uploads_awaited: AtomicU32,
    bytes_max: u64,
}

/// A session's name; a short one lies beside the session's other fields.
pub(crate) struct Name(SmallVec<[u8; 24]>);

impl From<&str> for Name {
    fn from(name: &str) -> Name {
        Name(SmallVec::from_slice(name.as_bytes()))
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        // It was a text.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// What was recorded since the last cut.
pub(crate) struct Tape {
    records: Records,
    /// Ops among them.
    nodes: usize,
    /// Ops that it may hold before room is looked for, or the tape is cut.
    nodes_allowed: usize,
    /// Bytes of values that are kept only because their `Dropped` record is still here.
    pinned_bytes: u64,
    /// Those among them that the program brought.
    brought_bytes: u64,
    /// Gathers that are demanded in it.
    demands: SmallVec<[GatherId; 2]>,
    /// The next value's number.
    next_index: u64,
    /// How many cuts were made.
    pub segment: u64,
    /// Philox's key.
    pub seed: u64,
    /// How many random ops were recorded under this seed: the next one's number.
    pub random_ops: u64,
    /// TAPE-3.
    foreign: Vec<Array>,
    closed: bool,
    /// Whether the link knows that it asks for values.
    demanding: bool,
    /// TAPE-5: whether the ring knows the session.
    announced: bool,
    /// When the first record of this segment was made.
    started_ns: u64,
    /// The program's span in which something of this segment was last asked for.
    caller: Caller,
}

/// What is left to do once the lock is released (TAPE-4).
#[derive(Default)]
#[must_use]
pub(crate) struct After {
    foreign: Vec<Array>,
}

/// A demand whose gather is open.
pub(crate) struct Demand {
    /// The gather.
    pub gather: GatherId,
    /// Its future side.
    pub promise: Promise,
    /// The segment in which it was recorded.
    pub segment: u64,
}

impl Home {
    /// Opens a session on a runtime. The ring hears of it with its first segment (TAPE-5).
    pub fn open(link: Arc<Link>, name: Name, weight: u32, seed: Option<u64>, stream: u64) -> Arc<Home> {
        let id = link.next_session();
        link.timeline.name_session(id, &name);
        let bytes_max = link.tape_bytes_max();
        let tape = Tape {
            records: Records::default(),
            nodes: 0,
            nodes_allowed: 0,
            pinned_bytes: 0,
            brought_bytes: 0,
            demands: SmallVec::new(),
            next_index: 0,
            segment: 0,
            seed: seed.unwrap_or_else(|| default_seed(id)),
            random_ops: 0,
            foreign: Vec::new(),
            closed: false,
            demanding: false,
            announced: false,
            started_ns: 0,
            caller: Caller::default(),
        };
        let fold_elements_max = link.config.fold_elements_max;
        // What waits on a tape counts for its session: a tape is cut before it takes more than half of the room by itself, so
        // that there is room for as much again once all that was sent has run.
        let most = usize::try_from((link.session_room.nodes / 2).max(1)).unwrap_or(usize::MAX);
        let nodes_max = link.config.tape_nodes_max.max(1).min(most);
        let tape = Mutex::new(tape);
        let is_strict = AtomicBool::new(link.config.promotion == Promotion::Strict);
        Arc::new(Home {
            id,
            name,
            users: AtomicUsize::new(1),
            weight,
            stream,
            link,
            gate: OnceLock::new(),
            tape,
            mark: AtomicU64::new(0),
            uploads_awaited: AtomicU32::new(0),
            fold_elements_max,
            is_strict,
            nodes_max,
            bytes_max,
        })
    }

    /// Its gate.
    pub fn gate(&self) -> &Arc<Gate> {
        self.gate.get_or_init(|| Arc::new(Gate::new(self.link.total.clone())))
    }

    /// A line of the program, with the mark that the session has now.
    pub fn site(&self, location: &'static Location<'static>) -> Site {
        Site { location, mark: self.mark.load(Ordering::Relaxed) }
    }

    /// Puts an op on the tape; the value's number.
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
            return Err(tape.refusal());
        }
        let index = tape.next_index;
        tape.next_index += 1;
        tape.begin(&self.link);
        let value = ValueId { session: self.id, index };
        let at = self.site(at);
        let brief = match op {
            Op::Apply(op) => Brief::of(value, op, args, meta, pin, at),
            _ => None,
        };
        tape.records.push(match brief {
            Some(brief) => Record::Brief(brief, Drops::NONE),
            None => {
                let args = SmallVec::from_slice(args);
                Record::Op(Box::new(Node { value, op, args, meta: meta.clone(), pin, at }), Drops::NONE)
            }
        });
        tape.nodes += 1;
        Ok(index)
    }

    /// Whether ops can be recorded at all.
    ///
    /// # Errors
    /// `ErrorKind::Cancelled` where the session was closed; `ErrorKind::Shutdown` where the runtime was.
    pub fn is_open(&self) -> Result<()> {
        self.link.is_open()?;
        let tape = self.tape.lock();
        if tape.closed { Err(tape.refusal()) } else { Ok(()) }
    }

    /// A lazy value is pinned to a device: the work that makes it, unless that is cut already.
    pub fn pin(&self, value: ValueId, device: DeviceId) {
        let mut tape = self.tape.lock();
        if !tape.closed {
            tape.begin(&self.link);
            tape.records.push(Record::Pinned(value, device));
        }
    }

    /// Locks the tape for an op, and cuts it before if it is full: before every push, so that what the program lets go
    /// of behind the last op is known with it, as that a variable has another value by then.
    ///
    /// # Errors
    /// `ErrorKind::Overloaded` where too much waits: nothing is to be recorded.
    #[inline]
    pub fn begin_op(&self) -> Result<(MutexGuard<'_, Tape>, After)> {
        let tape = self.tape.lock();
        if tape.nodes < tape.nodes_allowed { Ok((tape, After::default())) } else { self.find_room(tape) }
    }

    #[cold]
    fn find_room<'a>(&'a self, mut tape: MutexGuard<'a, Tape>) -> Result<(MutexGuard<'a, Tape>, After)> {
        let mut after = After::default();
        loop {
            if tape.nodes >= self.nodes_max {
                after.foreign.append(&mut self.cut(&mut tape, CutReason::NodeLimit).foreign);
            }
            let link = &self.link;
            let mut left = self.left(&tape, link.session_room);
            if crate::threads::is_unheld() {
                // A script lets the ring catch up before it goes on, and is not refused meanwhile.
                if self.left(&tape, link.script_room()) == 0 {
                    crate::threads::ask_to_wait();
                }
                left = u64::MAX;
            }
            let holds = link.config.hold_recording;
            if left == 0 && holds && crate::threads::is_own() {
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
            after.foreign.clear();
            if !holds || super::pending::may_block("recording").is_err() {
                return Err(overloaded());
            }
            futures::executor::block_on(self.room_for(1, link.session_room));
            tape = self.tape.lock();
        }
    }

    /// How many ops more there is room for, of this session within `limit` and over all sessions.
    fn left(&self, tape: &Tape, limit: Room) -> u64 {
        if tape.closed {
            return u64::MAX;
        }
        let own = self.gate.get().map_or(limit.nodes, |gate| gate.left(limit));
        own.min(self.link.total.left()).saturating_sub(tape.nodes as u64)
    }

    /// Waits until there is room for so many ops.
    async fn room_for(&self, ops: u64, limit: Room) {
        while let Some(waits) = self.wait_for_room(ops, limit) {
            waits.await;
        }
    }

    /// Waits until there is room for a tape, or for half of all that may wait: who records in between several ops at a time
    /// need not wait for each.
    pub async fn ready(&self, limit: Room) {
        self.room_for((self.nodes_max as u64).min(limit.nodes / 2).max(1), limit).await;
    }

    /// What to wait for until there may be room for so many ops; none if there is.
    fn wait_for_room(&self, ops: u64, limit: Room) -> Option<impl Future<Output = ()> + Send + use<>> {
        let has_room = || {
            let mut tape = self.tape.lock();
            // As the next op would: its room is that of an empty tape.
            let after =
                if tape.nodes >= self.nodes_max { self.cut(&mut tape, CutReason::NodeLimit) } else { After::default() };
            let left = self.left(&tape, limit);
            drop(tape);
            drop(after);
            left >= ops.min(self.link.total.most())
        };
        if has_room() {
            return None;
        }
        let (own, all) = (self.gate().wait(), self.link.total.wait());
        // What left before we could be woken.
        if has_room() {
            return None;
        }
        Some(futures::future::select(own, all).map(|_| ()))
    }

    /// Ends a push, with what the cut before it left to do: cuts where too many bytes are pinned, gives the tape back,
    /// and does what must not be done under its lock.
    #[inline]
    pub fn end_push(&self, mut tape: MutexGuard<'_, Tape>, before: After) {
        let after = match tape.pinned_bytes > self.bytes_max {
            true => self.cut(&mut tape, CutReason::ByteLimit),
            false => After::default(),
        };
        drop(tape);
        drop((before, after));
    }

    /// The last handle of a recorded value is gone. `bytes`: what it holds apart from the tape.
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
            let after = self.cut(&mut tape, why);
            drop(tape);
            drop(after.foreign);
        }
    }

    /// The handle `array`, which the caller lets go of in a moment, is let go of now, if it is the last of a value of
    /// this session: what a program writes in one expression takes the lock once an op, not again for each temporary.
    #[inline]
    pub fn let_go(&self, tape: &mut Tape, array: &Array) {
        let value = &array.0;
        if !std::ptr::eq(&*value.home, self) || Arc::strong_count(value) != 1 || Arc::weak_count(value) != 0 {
            return;
        }
        // Whoever held the others has done with them.
        fence(Ordering::Acquire);
        let index = value.index.load(Ordering::Relaxed);
        if index != UNRECORDED {
            value.index.store(UNRECORDED, Ordering::Relaxed);
            let (bytes, source) = value.keeps();
            tape.end_value(self.id, index, value.segment.load(Ordering::Relaxed), bytes, source);
        }
    }

    /// Records a demand and opens its gather.
    pub fn demand(self: &Arc<Home>, value: ValueId, want: Want) -> Result<Demand> {
        let mut tape = self.tape.lock();
        if tape.closed {
            return Err(Error::new(ErrorKind::Cancelled, "the session was closed"));
        }
        if !std::mem::replace(&mut tape.demanding, true) {
            self.link.demanding.lock().insert(self.id, Arc::downgrade(self));
        }
        let (gather, promise) = self.link.gathers.open();
        tape.begin(&self.link);
        tape.records.push(Record::Demanded { gather, value, want });
        tape.demands.push(gather);
        tape.caller = Caller::current().or(std::mem::take(&mut tape.caller));
        Ok(Demand { gather, promise, segment: tape.segment })
    }

    /// Cuts the tape if it still holds the records of `segment`.
    pub fn cut_segment(&self, segment: u64, why: CutReason) {
        let mut tape = self.tape.lock();
        if tape.segment == segment {
            let after = self.cut(&mut tape, why);
            drop(tape);
            drop(after.foreign);
        }
    }

    /// Cuts the tape if it holds anything.
    pub fn flush(&self) {
        let mut tape = self.tape.lock();
        let after = self.cut(&mut tape, CutReason::Flush);
        drop(tape);
        drop(after.foreign);
    }

    /// Sees to it that what the session has not computed, and what it let go of, holds no memory that a writer waits
    /// for.
    pub fn make_room(&self) {
        let mut tape = self.tape.lock();
        let after = self.cut(&mut tape, CutReason::Room);
        drop(tape);
        drop(after.foreign);
    }

    /// Cuts the tape if it holds arrays of other sessions, so that two sessions cannot keep each other alive.
    pub fn flush_foreign(&self) {
        let mut tape = self.tape.lock();
        if !tape.foreign.is_empty() {
            let after = self.cut(&mut tape, CutReason::Flush);
            drop(tape);
            drop(after.foreign);
        }
    }

    /// A gather's future was dropped unresolved.
    /// `uncut`: the segment that holds its demand, unless that is known to be cut.
    pub fn cancel(&self, gather: GatherId, uncut: Option<u64>) {
        // Before the event: the ring forgets the cancel of a gather that it has not met, and asks the table when it does.
        self.link.gathers.forget(gather);
        let mut tape = self.tape.lock();
        if uncut == Some(tape.segment) && !tape.closed {
            tape.records.push(Record::Cancelled(gather));
        } else {
            self.link.send(SchedulerEvent::GatherCancelled(gather));
        }
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.tape.lock().closed
    }

    /// Ends the session: what is recorded is sent, what comes later is refused.
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
        let refusal = tape.refusal();
        drop(tape);
        drop(after.foreign);
        if self.uploads_awaited.load(Ordering::SeqCst) > 0 {
            self.link.devices.grants().refuse(self.id.0, &refusal);
        }
    }

    #[cold]
    fn cut(&self, tape: &mut Tape, why: CutReason) -> After {
        // Where memory is waited for, what was sent before is meant as well.
        let means_more = why == CutReason::Room && tape.announced;
        if tape.closed || (tape.records.is_empty() && !means_more) {
            return After::default();
        }
        let mut records = tape.records.take();
        let nodes = std::mem::take(&mut tape.nodes) as u64;
        let pinned_bytes = std::mem::take(&mut tape.pinned_bytes);
        let brought_bytes = std::mem::take(&mut tape.brought_bytes);
        let mut homes: SmallVec<[SessionId; 1]> = tape.foreign.iter().map(|array| array.0.home.id).collect();
        homes.sort_unstable();
        homes.dedup();
        records.summary = Summary { nodes, pinned_bytes, demands: std::mem::take(&mut tape.demands), homes };
        // Room is looked for by the next op.
        tape.nodes_allowed = 0;
        tape.segment += 1;
        if !std::mem::replace(&mut tape.announced, true) {
            (self.link.register_gate)(self.id, self.gate().clone());
            let (session, name, weight) = (self.id, Arc::from(&*self.name), self.weight);
            // The segment wakes the ring.
            let _ = self.link.events.put(SchedulerEvent::SessionOpened { session, name, weight });
        }
        self.gate().enter(nodes, brought_bytes);
        Counters::add(&self.link.counters.ops_recorded, nodes);
        let at_ns = self.link.timeline.now_ns();
        let caller = Caller::current().or(std::mem::take(&mut tape.caller));
        self.link.timeline.callers().cut(self.id, at_ns, caller);
        // TAPE-1: under the lock.
        self.link.send(SchedulerEvent::SegmentCut { session: self.id, records, why, at_ns });
        if self.link.timeline.is_on() && nodes > 0 {
            // Ends after `at_ns`, at which the scheduler's arrow to the region begins.
            let end_ns = self.link.timeline.now_ns().max(at_ns + 1);
            self.link.timeline.span(Lane::Session(self.id), "record", tape.started_ns, end_ns, &[]);
        }
        After { foreign: std::mem::take(&mut tape.foreign) }
    }
}

impl Home {
    /// The key of the next random op.
    pub fn next_random_key(&self) -> RandomKey {
        let mut tape = self.tape.lock();
        let count = tape.random_ops;
        tape.random_ops = count.wrapping_add(1);
        random_key(tape.seed, self.stream, count)
    }
}

impl Tape {
    /// Appends the drop of a value of this session's, to the op before it where that is the latest record.
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

    /// Appends the end of a value, and counts what it holds apart from the tape.
    fn end_value(&mut self, session: SessionId, index: u64, recorded_in: u64, bytes: u64, source: bool) {
        self.push_drop(session, index);
        if source || recorded_in != self.segment {
            self.pinned_bytes += bytes;
        }
        if source {
            self.brought_bytes += bytes;
        }
    }

    /// TAPE-3.
    pub fn hold_foreign(&mut self, array: Array) {
        self.foreign.push(array);
    }

    #[cold]
    fn refusal(&self) -> Error {
        Error::new(ErrorKind::Cancelled, "the session was closed")
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

impl Drop for Home {
    fn drop(&mut self) {
        self.close();
        if self.tape.get_mut().demanding {
            self.link.demanding.lock().remove(&self.id);
        }
        self.link.timeline.end_session(self.id);
    }
}

/// The error of an op for which there is no room.
fn overloaded() -> Error {
    let words = "more recorded work waits than the runtime keeps (RuntimeBuilder::ops_pending_max and bytes_pending_max, of \
                 a session or of all): await Session::ready and record it again, or demand less at a time";
    Error::new(ErrorKind::Overloaded, words)
}

/// The key of the random op number `count` of a session with this seed and stream.
///
/// Philox's counter holds the stream (64 bits), the low 32 bits of the op's number and 32 bits of the element's. The
/// high bits of the op's number change the seed, which is Philox's key: within one seed, streams stay distinct, and a
/// session beyond 2^32 random ops meets another one's numbers only where two 64-bit seeds are equal by chance. They
/// don't change the stream: other sessions of the same seed use streams next to it.
fn random_key(seed: u64, stream: u64, count: u64) -> RandomKey {
    // Another multiplier than that of default seeds. With the same one, the sum of two seeds would come up twice.
    let change = mixed((count >> 32).wrapping_mul(0xd134_2543_de82_ef95));
    RandomKey { seed: seed ^ change, stream, op: count as u32 }
}

/// A seed that follows from the session's number: neighbours get unrelated seeds.
fn default_seed(session: SessionId) -> u64 {
    mixed(session.0.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// SplitMix64's finaliser (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014). It maps 0
/// to 0.
fn mixed(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_ops_below_two_to_the_32_have_the_seeds_own_key_and_later_ones_share_none() {
        let last = random_key(7, 9, u64::from(u32::MAX));
        assert_eq!((last.seed, last.stream, last.op), (7, 9, u32::MAX));
        let next = random_key(7, 9, 1 << 32);
        assert_eq!((next.stream, next.op), (9, 0));
        // No session of the same seed has these numbers, whatever its stream is, and no stretch of its own ops.
        let mut seeds: Vec<u64> = (0..1000u64).map(|high| random_key(7, 9, high << 32).seed).collect();
        // Sessions with default seeds, each far into its ops.
        for session in 0..100 {
            let seed = default_seed(SessionId(session));
            seeds.extend((0..100u64).map(|high| random_key(seed, 9, high << 32).seed));
        }
        let count = seeds.len();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), count);
    }
}
