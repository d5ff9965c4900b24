//! The queue from the callers' threads to the writer: records in sharded buffers.
//!
//! In: records, pushed by any thread; a push takes a lock that is usually free. Out: batches, taken by the writer. A
//! push wakes the writer only when a shard is long, so that recording usually makes no system call. Must hold: a shard
//! holds at most `SHARD_RECORDS_MAX` records; further records are counted and dropped.

use super::Detail;
use super::lanes::Row;
use crate::error::Error;
use crate::ids::{DeviceId, SessionId};
use parking_lot::{Condvar, Mutex};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// Buffers; threads are spread over them in the order in which they record first.
const SHARDS: usize = 16;
/// Records in a shard at which the writer is woken.
const SHARD_RECORDS_WAKE: usize = 4096;
/// Records in a shard beyond which new ones are dropped and counted.
const SHARD_RECORDS_MAX: usize = 1 << 20;

/// A record of a caller, not yet formatted.
#[derive(Debug)]
pub(super) enum CallerRecord {
    /// A span on a row.
    Span { row: Row, name: Box<str>, start_ns: u64, end_ns: u64, details: Vec<(&'static str, Detail)> },
    /// One end of an arrow.
    Flow { row: Row, flow: u64, at_ns: u64, is_end: bool },
    /// A counter's value.
    Counter { name: &'static str, at_ns: u64, value: u64 },
    /// A point in time, with its reason.
    Instant { row: Row, name: Box<str>, at_ns: u64, details: Vec<(&'static str, Detail)> },
    /// A session's name.
    SessionName(SessionId, String),
    /// A session has ended.
    SessionEnd(SessionId),
    /// A device's name.
    DeviceName(DeviceId, String),
}

impl CallerRecord {
    /// When it began, in nanoseconds; names come first.
    pub(super) fn begin_ns(&self) -> u64 {
        match self {
            CallerRecord::Span { start_ns, .. } => *start_ns,
            CallerRecord::Flow { at_ns, .. }
            | CallerRecord::Counter { at_ns, .. }
            | CallerRecord::Instant { at_ns, .. } => *at_ns,
            CallerRecord::SessionName(..) | CallerRecord::DeviceName(..) => 0,
            CallerRecord::SessionEnd(_) => u64::MAX,
        }
    }
}

/// The buffers, and the signal that wakes the writer.
#[derive(Default)]
pub(super) struct Queue {
    shards: [Shard; SHARDS],
    closed: AtomicBool,
    dropped: AtomicU64,
    /// The bytes that `tracing-chrome` has written and the writer has not taken yet.
    chrome: Mutex<Vec<u8>>,
    control: Mutex<Control>,
    bell: Condvar,
    flushed: Condvar,
}

/// A shard on its own cache line, to avoid false sharing between threads.
#[derive(Default)]
#[repr(align(128))]
struct Shard(Mutex<Vec<CallerRecord>>);

#[derive(Default)]
struct Control {
    closing: bool,
    rung: bool,
    gone: bool,
    flushes_wanted: u64,
    flushes_done: u64,
    failure: Option<Error>,
}

/// The writer's task in this turn.
pub(super) struct Turn {
    /// No more records will come.
    pub(super) closing: bool,
    /// Set if a thread waits for the file: the number for [`Queue::flushed`] after writing.
    pub(super) flush: Option<u64>,
}

thread_local! {
    static SHARD: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Which shard the current thread uses: the same one for its life, in every queue.
fn shard_of_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    SHARD
        .try_with(|shard| {
            if shard.get() == usize::MAX {
                shard.set(NEXT.fetch_add(1, Relaxed) % SHARDS);
            }
            shard.get()
        })
        // A thread that is ending has no thread-locals any more.
        .unwrap_or(0)
}

impl Queue {
    /// Takes a record; ignored once the queue is closed.
    pub(super) fn push(&self, record: CallerRecord) {
        if self.closed.load(Relaxed) {
            return;
        }
        let mut shard = self.shards[shard_of_thread()].0.lock();
        if shard.len() >= SHARD_RECORDS_MAX {
            drop(shard);
            self.dropped.fetch_add(1, Relaxed);
            return;
        }
        shard.push(record);
        let wake = shard.len() == SHARD_RECORDS_WAKE;
        drop(shard);
        if wake {
            self.control.lock().rung = true;
            self.bell.notify_one();
        }
    }

    /// Takes bytes of `tracing-chrome`'s stream.
    pub(super) fn push_chrome(&self, bytes: &[u8]) {
        self.chrome.lock().extend_from_slice(bytes);
    }

    /// All records so far, in order of their begin.
    pub(super) fn take(&self) -> Vec<CallerRecord> {
        let mut taken = Vec::new();
        for shard in &self.shards {
            taken.append(&mut std::mem::take(&mut *shard.0.lock()));
        }
        taken.sort_by_key(CallerRecord::begin_ns);
        taken
    }

    /// `tracing-chrome`'s bytes so far.
    pub(super) fn take_chrome(&self) -> Vec<u8> {
        std::mem::take(&mut self.chrome.lock())
    }

    /// The number of records that did not fit.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    /// Waits until the writer is woken, at most for `patience`.
    pub(super) fn wait(&self, patience: Duration) -> Turn {
        let mut control = self.control.lock();
        if !control.closing && !control.rung && control.flushes_wanted == control.flushes_done {
            self.bell.wait_for(&mut control, patience);
        }
        control.rung = false;
        let wanted = control.flushes_wanted;
        Turn { closing: control.closing, flush: (wanted > control.flushes_done).then_some(wanted) }
    }

    /// Wakes the threads that wait for a flush up to this number.
    pub(super) fn flushed(&self, flush: u64) {
        self.control.lock().flushes_done = flush;
        self.flushed.notify_all();
    }

    /// Asks for the file to be written, and waits for it.
    pub(super) fn flush(&self) {
        let mut control = self.control.lock();
        if control.gone {
            return;
        }
        control.flushes_wanted += 1;
        let mine = control.flushes_wanted;
        self.bell.notify_one();
        while control.flushes_done < mine && !control.gone {
            self.flushed.wait(&mut control);
        }
    }

    /// Ends the recording. The writer writes the remaining records.
    pub(super) fn close(&self) {
        self.closed.store(true, Relaxed);
        self.control.lock().closing = true;
        self.bell.notify_one();
    }

    /// Ends the recording, and drops the remaining records.
    pub(super) fn stop(&self) {
        self.closed.store(true, Relaxed);
    }

    /// Ends the recording because of an error; the first one is kept.
    pub(super) fn fail(&self, error: Error) {
        self.closed.store(true, Relaxed);
        self.control.lock().failure.get_or_insert(error);
    }

    /// The error at which the recording ended early, if it did.
    pub(super) fn failure(&self) -> Option<Error> {
        self.control.lock().failure.clone()
    }

    /// The writer has ended, for whatever reason: wakes all threads that wait for it.
    pub(super) fn writer_gone(&self) {
        self.closed.store(true, Relaxed);
        self.control.lock().gone = true;
        self.flushed.notify_all();
    }
}
