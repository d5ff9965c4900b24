//! The records of a tape, in chunks of memory that are recycled.
//!
//! In: records, one by one. Out: the same, in order. A tape is mostly written and read once, on two threads: memory
//! that is fresh for every segment would be mapped, zeroed and faulted in by the system, which costs more than
//! recording does. Must hold: RECORDS-1: nothing is moved when a tape grows, and an emptied chunk goes back to where
//! its tape took it from.

use super::tape::Record;
use crate::graph::Arg;
use crate::ids::{GatherId, SessionId};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::Arc;

/// Records in a chunk.
const CHUNK: usize = 256;
/// Records in the first chunk of a tape, unless its previous segment was long: most sessions are short.
const FIRST_CHUNK: usize = 64;
/// Most free chunks of each size that are kept: enough for a few full tapes and many short sessions.
const SPARES_MAX: usize = 64;
const FIRST_SPARES_MAX: usize = 512;

/// Emptied chunks of one runtime.
#[derive(Debug, Default)]
pub struct Spares {
    first: Mutex<Vec<Vec<Record>>>,
    others: Mutex<Vec<Vec<Record>>>,
}

impl Spares {
    fn take(&self, records: usize) -> Vec<Record> {
        let of_size = if records == FIRST_CHUNK { &self.first } else { &self.others };
        let spare = of_size.lock().pop();
        spare.unwrap_or_else(|| Vec::with_capacity(records))
    }

    fn put(&self, chunk: Vec<Record>) {
        debug_assert!(chunk.is_empty(), "RECORDS-1: a spare chunk holds nothing");
        let (of_size, most) = match chunk.capacity() {
            FIRST_CHUNK => (&self.first, FIRST_SPARES_MAX),
            CHUNK => (&self.others, SPARES_MAX),
            _ => return,
        };
        let mut spares = of_size.lock();
        if spares.len() < most {
            spares.push(chunk);
        }
    }
}

/// Totals of a segment, for the ring, which does not look at its records.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Ops among the records.
    pub nodes: u64,
    /// Bytes of dropped values that stay in memory until the ring has taken in these records.
    pub pinned_bytes: u64,
    /// Gathers that are demanded in it.
    pub demands: SmallVec<[GatherId; 2]>,
    /// Other sessions whose values its ops read.
    pub homes: SmallVec<[SessionId; 1]>,
}

/// Records in the order in which they were pushed.
#[derive(Debug, Default)]
pub struct Records {
    /// Totals of the records. Whoever cuts the tape fills them in.
    pub summary: Summary,
    full: Vec<Vec<Record>>,
    /// Holds the latest record, if there is any.
    open: Vec<Record>,
    /// The tape's segment before this one was long: this one is taken to be long, too.
    is_long: bool,
    /// The free chunks of the runtime; `None` until the first record.
    spares: Option<Arc<Spares>>,
}

impl Records {
    /// Sets where chunks come from, unless that is set already. Called with the first record, so that a tape without
    /// records does not touch the reference count, which all sessions of the runtime share.
    #[inline]
    pub fn take_from(&mut self, spares: &Arc<Spares>) {
        if self.spares.is_none() {
            self.spares = Some(spares.clone());
        }
    }

    /// Appends a record.
    #[inline]
    pub fn push(&mut self, record: Record) {
        if self.open.len() == self.open.capacity() {
            self.grow();
        }
        self.open.push(record);
    }

    #[cold]
    fn grow(&mut self) {
        let records = if self.open.capacity() == 0 && !self.is_long { FIRST_CHUNK } else { CHUNK };
        let chunk = self.spares.as_ref().map_or_else(|| Vec::with_capacity(records), |spares| spares.take(records));
        let full = std::mem::replace(&mut self.open, chunk);
        if !full.is_empty() {
            self.full.push(full);
        }
    }

    /// The latest record.
    #[inline]
    pub fn last_mut(&mut self) -> Option<&mut Record> {
        self.open.last_mut()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.full.iter().map(Vec::len).sum::<usize>() + self.open.len()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Takes all records out, and leaves none.
    pub fn take(&mut self) -> Records {
        let mut next = Records::default();
        (next.is_long, next.spares) = (self.open.capacity() >= CHUNK, self.spares.clone());
        std::mem::replace(self, next)
    }

    /// The records, in order.
    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = &Record> {
        self.full.iter().chain(std::iter::once(&self.open)).flatten()
    }

    /// The records, in order, to change.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Record> {
        self.full.iter_mut().chain(std::iter::once(&mut self.open)).flatten()
    }

    /// Hands out the records, in order, and gives their memory back.
    pub fn for_each(mut self, each: impl FnMut(Record)) {
        self.empty(each);
    }

    fn empty(&mut self, mut each: impl FnMut(Record)) {
        for mut chunk in self.full.drain(..).chain(std::iter::once(std::mem::take(&mut self.open))) {
            chunk.drain(..).for_each(&mut each);
            if let Some(spares) = &self.spares {
                spares.put(chunk);
            }
        }
    }
}

/// Records that were never read give their memory back, too.
impl Drop for Records {
    fn drop(&mut self) {
        self.empty(drop);
    }
}

impl From<Vec<Record>> for Records {
    fn from(records: Vec<Record>) -> Records {
        let mut all = Records::default();
        let summary = &mut all.summary;
        for record in &records {
            match record {
                Record::Brief(..) => summary.nodes += 1,
                Record::Op(node, _) => {
                    summary.nodes += 1;
                    for arg in &node.args {
                        if let Arg::Value(value) = arg
                            && value.session != node.value.session
                            && !summary.homes.contains(&value.session)
                        {
                            summary.homes.push(value.session);
                        }
                    }
                }
                Record::Demanded { gather, .. } => summary.demands.push(*gather),
                Record::Dropped(_) | Record::Pinned(..) | Record::Cancelled(_) => {}
            }
        }
        all.open = records;
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{SessionId, ValueId};

    fn record(index: u64) -> Record {
        Record::Dropped(ValueId { session: SessionId(0), index })
    }

    fn index_of(record: &Record) -> u64 {
        match record {
            Record::Dropped(value) => value.index,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn records_keep_their_order_over_chunks_and_their_memory_is_used_again() {
        let spares = Arc::new(Spares::default());
        let mut records = Records::default();
        records.take_from(&spares);
        for round in 0..3 {
            assert!(records.is_empty() && records.last_mut().is_none());
            for index in 0..2000 {
                records.push(record(index));
                assert_eq!(records.last_mut().map(|r| index_of(r)), Some(index));
            }
            assert_eq!(records.len(), 2000);
            let taken = records.take();
            assert!(taken.iter().map(index_of).eq(0..2000));
            let mut seen = Vec::new();
            taken.for_each(|record| seen.push(index_of(&record)));
            assert!(seen.into_iter().eq(0..2000));
            // The first time, the first chunk is a small one. It stays among the spares.
            let others = if round == 0 { (2000 - FIRST_CHUNK).div_ceil(CHUNK) } else { 2000usize.div_ceil(CHUNK) };
            assert_eq!((spares.first.lock().len(), spares.others.lock().len()), (1, others), "round {round}");
        }
    }

    #[test]
    fn short_tapes_take_little_and_long_ones_leave_no_more_than_a_few() {
        let spares = Arc::new(Spares::default());
        let mut records = Records::default();
        records.take_from(&spares);
        records.push(record(1));
        assert_eq!(records.open.capacity(), FIRST_CHUNK);
        for index in 0..(SPARES_MAX as u64 + 10) * CHUNK as u64 {
            records.push(record(index));
        }
        records.for_each(drop);
        assert_eq!((spares.first.lock().len(), spares.others.lock().len()), (1, SPARES_MAX));
    }
}
