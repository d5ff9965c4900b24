//! The records of a segment, in memory that is used again: a tape that grows anew from nothing at every cut spends a
//! sixth of its time on fresh pages.
//!
//! In: records of a tape. Out: the same, in order; the emptied list goes back to the runtime's spare ones when whoever
//! took the segment in drops it. Must hold: spare lists are few and of bounded size; a tape of a few records takes none.

use super::message::Record;
use parking_lot::Mutex;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A tape with this many records is a busy one, and worth a list that is large already.
const BUSY_RECORDS: usize = 64;
/// Lists with room for fewer records are not kept.
const KEPT_RECORDS_MIN: usize = 256;
/// Lists with room for more records are not kept.
const KEPT_RECORDS_MAX: usize = 16 << 10;
/// Lists that are kept.
const LISTS_MAX: usize = 8;

/// Lists that wait for their next use; one a runtime.
#[derive(Debug, Default)]
pub struct Spare(Mutex<Vec<Vec<Record>>>);

/// The records of a segment.
#[derive(Debug, Default)]
pub struct Records {
    list: Vec<Record>,
    spare: Option<Arc<Spare>>,
}

impl Spare {
    fn take(&self) -> Option<Vec<Record>> {
        self.0.lock().pop()
    }

    fn keep(&self, mut list: Vec<Record>) {
        if !(KEPT_RECORDS_MIN..=KEPT_RECORDS_MAX).contains(&list.capacity()) {
            return;
        }
        // What is left in it is dropped without the lock.
        list.clear();
        let mut lists = self.0.lock();
        if lists.len() < LISTS_MAX {
            lists.push(list);
        }
    }
}

impl Records {
    /// None yet, with room for about as many as the segment before had.
    pub fn with_room(spare: &Arc<Spare>, room: usize) -> Records {
        let ready = if room >= KEPT_RECORDS_MIN { spare.take() } else { None };
        Records { list: ready.unwrap_or_else(|| Vec::with_capacity(room)), spare: Some(spare.clone()) }
    }

    /// Appends a record.
    #[inline]
    pub fn add(&mut self, record: Record) {
        if self.list.len() == self.list.capacity() {
            self.grow();
        }
        self.list.push(record);
    }

    #[cold]
    fn grow(&mut self) {
        let busy = self.list.len() >= BUSY_RECORDS;
        let Some(mut larger) = self.spare.as_ref().filter(|_| busy).and_then(|spare| spare.take()) else { return };
        if larger.capacity() > self.list.len() {
            larger.append(&mut self.list);
            self.list = larger;
        }
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        if let Some(spare) = &self.spare {
            spare.keep(std::mem::take(&mut self.list));
        }
    }
}

impl From<Vec<Record>> for Records {
    fn from(list: Vec<Record>) -> Records {
        Records { list, spare: None }
    }
}

impl Deref for Records {
    type Target = Vec<Record>;
    fn deref(&self) -> &Vec<Record> {
        &self.list
    }
}

impl DerefMut for Records {
    fn deref_mut(&mut self) -> &mut Vec<Record> {
        &mut self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::GatherId;

    fn filled(spare: &Arc<Spare>, count: u64) -> Records {
        let mut records = Records::with_room(spare, 0);
        (0..count).for_each(|i| records.add(Record::Cancelled(GatherId(i))));
        records
    }

    #[test]
    fn a_busy_tape_takes_the_list_of_an_earlier_one_and_a_small_one_does_not() {
        let spare = Arc::new(Spare::default());
        drop(filled(&spare, 1000));
        assert_eq!(spare.0.lock().len(), 1);
        let small = filled(&spare, 10);
        assert_eq!((small.len(), spare.0.lock().len()), (10, 1));
        drop(small);
        let busy = filled(&spare, 200);
        assert!(busy.capacity() >= 1000 && spare.0.lock().is_empty());
        let numbers = busy.iter().map(|r| if let Record::Cancelled(id) = r { id.0 } else { u64::MAX });
        assert!(numbers.eq(0..200));
        // Small lists are not worth keeping.
        drop(busy);
        assert_eq!(spare.0.lock().len(), 1);
    }

    #[test]
    fn few_lists_are_kept() {
        let spare = Arc::new(Spare::default());
        let many: Vec<Records> = (0..20).map(|_| filled(&spare, 300)).collect();
        drop(many);
        assert_eq!(spare.0.lock().len(), LISTS_MAX);
    }
}
