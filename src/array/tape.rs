//! A session's tape: ops, demands and handle drops in program order, until a cut sends them to the scheduler.
//!
//! In: records, under the session's lock. Out: `SegmentCut` events.
//! Invariants:
//! - TAPE-1: records leave in the order in which the program made them, and segments in the order of their cuts
//!   (the event is sent under the lock).
//! - TAPE-2: where a tape is cut for a demand or a limit depends on this session's program order alone: on counts of
//!   nodes and bytes of this tape, on polls and evals, never on time or on the ring. Where a writer waits for
//!   memory that others hold, it is cut then, and what is held is computed: going on comes before fusing.
//! - TAPE-3: a foreign array used by a record is held until that record's segment has been sent, so that its own
//!   session's `Dropped` record reaches the scheduler later.
//! - TAPE-4: nothing of the user's (arrays of other sessions, futures) is dropped under the lock.
//! - TAPE-5: a session is made known to the ring before its first segment, and its end only if there was one: a
//!   thousand programs that compute all they want in host memory cost the ring nothing.

use super::handle::{Array, UNRECORDED};
use super::link::Link;
use crate::error::{Error, ErrorKind, Result, Site};
use crate::graph::{Arg, Meta, Node, Op, RandomKey};
use crate::ids::{DeviceId, GatherId, SessionId, ValueId};
use crate::ring::{Gate, Promise};
use crate::scheduler::brief::Brief;
use crate::scheduler::message::{Drops, Record, SchedulerEvent, Want};
use crate::scheduler::records::Records;
use crate::scheduler::region::CutReason;
use crate::stats::Counters;
use crate::timeline::{Caller, Lane};
use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;
use std::ops::Deref;
use std::panic::Location;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
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
    /// Holds the recording thread while too much is in the ring; made when the ring is to hear of the session.
    gate: OnceLock<Arc<Gate>>,
    /// The tape.
    pub tape: Mutex<Tape>,
    /// Settings, where every op reads them.
    pub fold_elements_max: usize,
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
    /// Bytes of values that are kept only because their `Dropped` record is still here.
    pinned_bytes: u64,
    /// More is in the ring than there is room for, and what said so does not wait, as a drop or a poll: the next op is
    /// held in its place.
    holds_next: bool,
    /// The next value's number.
    next_index: u32,
    /// How many cuts were made.
    pub segment: u32,
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
    hold: bool,
}

/// A demand whose gather is open.
pub(crate) struct Demand {
    /// The gather.
    pub gather: GatherId,
    /// Its future side.
    pub promise: Promise,
    /// The segment in which it was recorded.
    pub segment: u32,
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
            pinned_bytes: 0,
            holds_next: false,
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
        let (fold_elements_max, nodes_max) = (link.config.fold_elements_max, link.config.tape_nodes_max.max(1));
        let tape = Mutex::new(tape);
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
            nodes_max,
            bytes_max,
        })
    }

    /// Its gate.
    pub fn gate(&self) -> &Arc<Gate> {
        self.gate.get_or_init(Arc::default)
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
    ) -> Result<u32> {
        // u32::MAX stands for "not recorded" in array handles.
        if tape.closed || tape.next_index == u32::MAX {
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

    /// Cuts a tape that is full; before every push, so that what the program lets go of behind the last op is known
    /// with it, as that a variable has another value by then.
    #[inline]
    pub fn cut_full(&self, tape: &mut Tape) -> Option<After> {
        (tape.nodes >= self.nodes_max).then(|| After { hold: true, ..self.cut(tape, CutReason::NodeLimit) })
    }

    /// Ends a push, with what the cut before it left to do: cuts where too many bytes are pinned, gives the tape back,
    /// and does what must not be done under its lock. Holds the caller after a limit's cut, and after one that found
    /// no room in the ring.
    #[inline]
    pub fn end_push(&self, mut tape: MutexGuard<'_, Tape>, before: Option<After>) {
        let after = if tape.pinned_bytes > self.bytes_max {
            Some(After { hold: true, ..self.cut(&mut tape, CutReason::ByteLimit) })
        } else {
            std::mem::take(&mut tape.holds_next).then(|| After { foreign: Vec::new(), hold: true })
        };
        drop(tape);
        for After { foreign, hold } in before.into_iter().chain(after) {
            drop(foreign);
            // The ring needs its own threads to make room: a waker that records is let through.
            if hold && crate::threads::may_be_held() {
                self.gate().wait_below(self.link.ring_room());
            }
        }
    }

    /// The last handle of a recorded value is gone. `bytes`: what it holds apart from the tape.
    pub fn dropped(&self, index: u32, recorded_in: u32, bytes: u64, source: bool) {
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
            tape.holds_next |= many_bytes;
            let after = self.cut(&mut tape, why);
            drop(tape);
            // A drop never waits: it may run anywhere, also while unwinding. The next op does.
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
        tape.caller = Caller::current().or(std::mem::take(&mut tape.caller));
        Ok(Demand { gather, promise, segment: tape.segment })
    }

    /// Cuts the tape if it still holds the records of `segment`.
    pub fn cut_segment(&self, segment: u32, why: CutReason) {
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
    pub fn cancel(&self, gather: GatherId, uncut: Option<u32>) {
        let mut tape = self.tape.lock();
        if uncut == Some(tape.segment) && !tape.closed {
            tape.records.push(Record::Cancelled(gather));
        } else {
            self.link.send(SchedulerEvent::GatherCancelled(gather));
        }
        drop(tape);
        self.link.gathers.forget(gather);
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
        let records = tape.records.take();
        let nodes = std::mem::take(&mut tape.nodes) as u64;
        let pinned_bytes = std::mem::take(&mut tape.pinned_bytes);
        tape.segment = tape.segment.wrapping_add(1);
        if !std::mem::replace(&mut tape.announced, true) {
            (self.link.register_gate)(self.id, self.gate().clone());
            let (session, name, weight) = (self.id, Arc::from(&*self.name), self.weight);
            // The segment wakes the ring.
            let _ = self.link.events.put(SchedulerEvent::SessionOpened { session, name, weight });
        }
        let (nodes_inside, bytes_inside) = self.gate().enter(nodes, pinned_bytes);
        tape.holds_next |= !self.link.ring_room().holds(nodes_inside, bytes_inside);
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
        After { foreign: std::mem::take(&mut tape.foreign), hold: false }
    }
}

impl Home {
    /// The key of the next random op. After 2^32 of them the numbers begin anew, in another stream.
    pub fn next_random_key(&self) -> RandomKey {
        let mut tape = self.tape.lock();
        let count = tape.random_ops;
        tape.random_ops = count.wrapping_add(1);
        RandomKey { seed: tape.seed, stream: self.stream ^ (count >> 32 << 32), op: count as u32 }
    }
}

impl Tape {
    /// Appends the drop of a value of this session's, to the op before it where that is the latest record.
    #[inline]
    pub fn push_drop(&mut self, session: SessionId, index: u32) {
        if let Some(Record::Brief(_, drops) | Record::Op(_, drops)) = self.records.last_mut()
            && drops.add(index)
        {
            return;
        }
        self.records.push(Record::Dropped(ValueId { session, index }));
    }

    /// Appends the end of a value, and counts what it holds apart from the tape.
    fn end_value(&mut self, session: SessionId, index: u32, recorded_in: u32, bytes: u64, source: bool) {
        self.push_drop(session, index);
        if source || recorded_in != self.segment {
            self.pinned_bytes += bytes;
        }
    }

    /// TAPE-3.
    pub fn hold_foreign(&mut self, array: Array) {
        self.foreign.push(array);
    }

    #[cold]
    fn refusal(&self) -> Error {
        match self.closed {
            true => Error::new(ErrorKind::Cancelled, "the session was closed"),
            false => Error::new(ErrorKind::Unsupported, "a session records at most 4294967295 ops"),
        }
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
    }
}

/// SplitMix64's finaliser (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014) of the
/// session's number: neighbours get unrelated seeds.
fn default_seed(session: SessionId) -> u64 {
    let mut z = (session.0 as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
