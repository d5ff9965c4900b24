//! A session's tape: ops, demands and handle drops in program order, until a cut sends them to the scheduler.
//!
//! In: records, under the session's lock. Out: `SegmentCut` events.
//! Invariants:
//! - TAPE-1: records leave in the order in which the program made them, and segments in the order of their cuts
//!   (the event is sent under the lock).
//! - TAPE-2: where a tape is cut depends on this session's program order alone: on counts of nodes and bytes of
//!   this tape, on polls, flushes and evals, never on time or on the ring.
//! - TAPE-3: a foreign array used by a record is held until that record's segment has been sent, so that its own
//!   session's `Dropped` record reaches the scheduler later.
//! - TAPE-4: nothing of the user's (arrays of other sessions, futures) is dropped under the lock.

use super::handle::Array;
use super::link::Link;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Arg, Meta, Node, Op, RandomKey};
use crate::ids::{GatherId, SessionId, ValueId};
use crate::ring::{Gate, Promise};
use crate::scheduler::message::{Drops, Record, SchedulerEvent, Want};
use crate::scheduler::region::CutReason;
use crate::stats::Counters;
use crate::timeline::Lane;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::panic::Location;
use std::sync::Arc;

/// Bytes that drops alone may hold back when no op is on the tape: sending them costs no fusion.
const IDLE_DROP_BYTES_MAX: u64 = 256 << 10;
/// Records that drops alone may pile up when no op is on the tape.
const IDLE_RECORDS_MAX: usize = 256;

/// A session, as its arrays see it. Lives as long as the session's handle, an array or a gather of it does.
pub(crate) struct Home {
    /// Its id.
    pub id: SessionId,
    /// Its name.
    pub name: Arc<str>,
    /// Its share of the devices.
    pub weight: u32,
    /// Philox's stream.
    pub stream: u64,
    /// The runtime.
    pub link: Arc<Link>,
    /// Holds the recording thread while too much is in the ring.
    pub gate: Arc<Gate>,
    /// The tape.
    pub tape: Mutex<Tape>,
    bytes_max: u64,
}

/// What was recorded since the last cut.
pub(crate) struct Tape {
    records: Vec<Record>,
    /// `Op` records among them.
    nodes: usize,
    /// Bytes of values that are kept only because their `Dropped` record is still here.
    pinned_bytes: u64,
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
    /// When the first record of this segment was made.
    started_ns: u64,
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
    /// Opens a session on a runtime and tells the scheduler.
    pub fn open(link: Arc<Link>, name: Arc<str>, weight: u32, seed: Option<u64>, stream: u64) -> Arc<Home> {
        let id = link.next_session();
        let gate = Arc::new(Gate::default());
        (link.register_gate)(id, gate.clone());
        link.timeline.name_session(id, &name);
        link.send(SchedulerEvent::SessionOpened { session: id, name: name.clone(), weight });
        let bytes_max = link.tape_bytes_max();
        let tape = Tape {
            records: Vec::new(),
            nodes: 0,
            pinned_bytes: 0,
            next_index: 0,
            segment: 0,
            seed: seed.unwrap_or_else(|| default_seed(id)),
            random_ops: 0,
            foreign: Vec::new(),
            closed: false,
            started_ns: 0,
        };
        Arc::new(Home { id, name, weight, stream, link, gate, tape: Mutex::new(tape), bytes_max })
    }

    /// Puts an op on the tape; the value's number. The caller runs the returned [`After`] without the lock.
    pub fn push_op(
        &self,
        tape: &mut Tape,
        op: Op,
        args: SmallVec<[Arg; 2]>,
        meta: Meta,
        at: &'static Location<'static>,
    ) -> Result<u32> {
        if tape.closed {
            return Err(Error::new(ErrorKind::Cancelled, "the session was closed"));
        }
        // u32::MAX stands for "not recorded" in array handles.
        if tape.next_index == u32::MAX {
            return Err(Error::new(ErrorKind::Unsupported, "a session records at most 4294967295 ops"));
        }
        let index = tape.next_index;
        tape.next_index += 1;
        tape.begin(&self.link);
        let value = ValueId { session: self.id, index };
        tape.records.push(Record::Op(Node { value, op, args, meta, at }, Drops::NONE));
        tape.nodes += 1;
        Ok(index)
    }

    /// Cuts where a limit is reached; after every push.
    pub fn check_limits(&self, tape: &mut Tape) -> Option<After> {
        let why = if tape.nodes >= self.link.config.tape_nodes_max.max(1) {
            CutReason::NodeLimit
        } else if tape.pinned_bytes > self.bytes_max {
            CutReason::ByteLimit
        } else {
            return None;
        };
        Some(After { hold: true, ..self.cut(tape, why) })
    }

    /// Does what must not be done under the lock. Holds the caller only after a limit's cut.
    pub fn run_after(&self, after: After) {
        drop(after.foreign);
        if after.hold {
            self.gate.wait_below(self.link.ring_nodes_max());
        }
    }

    /// The last handle of a recorded value is gone. `bytes`: what it holds apart from the tape.
    pub fn dropped(&self, index: u32, recorded_in: u32, bytes: u64, source: bool) {
        let mut tape = self.tape.lock();
        if tape.closed {
            return;
        }
        tape.begin(&self.link);
        tape.push_drop(self.id, index);
        if source || recorded_in != tape.segment {
            tape.pinned_bytes += bytes;
        }
        let idle =
            tape.nodes == 0 && (tape.pinned_bytes >= IDLE_DROP_BYTES_MAX || tape.records.len() >= IDLE_RECORDS_MAX);
        if idle || tape.pinned_bytes > self.bytes_max {
            let after = self.cut(&mut tape, CutReason::ByteLimit);
            drop(tape);
            // A drop never waits: it may run anywhere, also while unwinding.
            drop(after.foreign);
        }
    }

    /// Records a demand and opens its gather.
    pub fn demand(&self, value: ValueId, want: Want) -> Result<Demand> {
        let mut tape = self.tape.lock();
        if tape.closed {
            return Err(Error::new(ErrorKind::Cancelled, "the session was closed"));
        }
        let (gather, promise) = self.link.gathers.open();
        tape.begin(&self.link);
        tape.records.push(Record::Demanded { gather, value, want });
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
        self.link.send(SchedulerEvent::SessionClosed(self.id));
        drop(tape);
        drop(after.foreign);
    }

    fn cut(&self, tape: &mut Tape, why: CutReason) -> After {
        if tape.records.is_empty() || tape.closed {
            return After::default();
        }
        let room = tape.records.len().min(self.link.config.tape_nodes_max.saturating_mul(2));
        let records = std::mem::replace(&mut tape.records, Vec::with_capacity(room));
        let nodes = std::mem::take(&mut tape.nodes) as u64;
        tape.pinned_bytes = 0;
        tape.segment = tape.segment.wrapping_add(1);
        self.gate.enter(nodes);
        Counters::add(&self.link.counters.ops_recorded, nodes);
        let at_ns = self.link.timeline.now_ns();
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
    pub fn push_drop(&mut self, session: SessionId, index: u32) {
        if let Some(Record::Op(_, drops)) = self.records.last_mut()
            && drops.add(index)
        {
            return;
        }
        self.records.push(Record::Dropped(ValueId { session, index }));
    }

    /// TAPE-3.
    pub fn hold_foreign(&mut self, array: Array) {
        self.foreign.push(array);
    }

    fn begin(&mut self, link: &Link) {
        if self.records.is_empty() && link.timeline.is_on() {
            self.started_ns = link.timeline.now_ns();
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.close();
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
