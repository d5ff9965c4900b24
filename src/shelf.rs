//! Keeps free pieces of memory by size for reuse, and returns unused ones to the system in steps.
//!
//! In: free pieces of memory, requests, and calls of [`Shelf::trim`] at regular times. Out: pieces for use, and pieces
//! to give back. Must hold: SHELF-1: a trim keeps the pieces that were needed since the previous trim, and takes out
//! half of the others. A trim of all takes out all pieces; after it, no piece is kept until the next request. SHELF-2:
//! `bytes_pooled_now` counts the bytes on all shelves.

use crate::stats::Counters;
use std::collections::BTreeMap;
use std::ops::RangeBounds;
use std::sync::Arc;

/// Free pieces by size.
#[derive(Debug)]
pub(crate) struct Shelf<T> {
    lists: BTreeMap<u64, List<T>>,
    bytes: u64,
    /// The last trim was one of all, and there was no request since: pieces that are put back are not kept.
    asleep: bool,
    counters: Arc<Counters>,
}

/// Free pieces of one size, the latest last.
#[derive(Debug)]
struct List<T> {
    pieces: Vec<T>,
    /// The least number of pieces in the list since the last trim: this many were not needed.
    unused: usize,
}

impl<T> Shelf<T> {
    /// An empty shelf.
    pub(crate) fn new(counters: Arc<Counters>) -> Shelf<T> {
        Shelf { lists: BTreeMap::new(), bytes: 0, asleep: false, counters }
    }

    /// Bytes on the shelf.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the shelf is empty.
    #[cfg(any(test, feature = "gpu"))]
    pub(crate) fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// Puts a free piece on the shelf. Returns it, to be dropped, if no piece is kept at present.
    pub(crate) fn put(&mut self, size: u64, piece: T) -> Option<T> {
        if self.asleep {
            Counters::add(&self.counters.bytes_returned, size);
            return Some(piece);
        }
        self.lists.entry(size).or_insert_with(|| List { pieces: Vec::new(), unused: 0 }).pieces.push(piece);
        self.bytes += size;
        Counters::add(&self.counters.bytes_pooled_now, size);
        None
    }

    /// A piece of the smallest size on the shelf that is in the range: the one put back last.
    pub(crate) fn take(&mut self, sizes: impl RangeBounds<u64>) -> Option<(u64, T)> {
        self.asleep = false;
        let (&size, _) = self.lists.range(sizes).next()?;
        self.pop(size)
    }

    /// A piece of the largest size, to be dropped to make room.
    #[cfg(any(test, feature = "gpu"))]
    pub(crate) fn take_largest(&mut self) -> Option<(u64, T)> {
        let (&size, _) = self.lists.last_key_value()?;
        self.pop(size)
    }

    fn pop(&mut self, size: u64) -> Option<(u64, T)> {
        let list = self.lists.get_mut(&size)?;
        let piece = list.pieces.pop()?;
        list.unused = list.unused.min(list.pieces.len());
        if list.pieces.is_empty() {
            self.lists.remove(&size);
        }
        self.leaves(size);
        Some((size, piece))
    }

    /// Takes out the pieces that are returned to the system: half of those that were not needed since the last call, or
    /// all. The caller drops them after its locks are released.
    #[must_use = "the pieces are to be dropped without a lock"]
    pub(crate) fn trim(&mut self, all: bool) -> Vec<(u64, T)> {
        self.asleep = all;
        let mut gone = Vec::new();
        for (&size, list) in &mut self.lists {
            let count = if all { list.pieces.len() } else { list.unused.div_ceil(2) };
            // The first pieces have been unused the longest.
            gone.extend(list.pieces.drain(..count).map(|piece| (size, piece)));
            list.unused = list.pieces.len();
        }
        self.lists.retain(|_, list| !list.pieces.is_empty());
        for (size, _) in &gone {
            self.leaves(*size);
            Counters::add(&self.counters.bytes_returned, *size);
        }
        gone
    }

    fn leaves(&mut self, size: u64) {
        self.bytes -= size;
        Counters::take(&self.counters.bytes_pooled_now, size);
    }
}

impl<T> Drop for Shelf<T> {
    fn drop(&mut self) {
        Counters::take(&self.counters.bytes_pooled_now, self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_needed_between_two_trims_stay_and_half_of_the_others_go_with_each() {
        let counters = Arc::new(Counters::default());
        let mut shelf = Shelf::new(counters.clone());
        (0..9).for_each(|piece| assert_eq!(shelf.put(100, piece), None));
        assert!(shelf.trim(false).is_empty(), "all of it was put here since the start");
        let mut left = Vec::new();
        for _ in 0..4 {
            // One is needed all the time.
            let (size, piece) = shelf.take(100..=100).unwrap();
            assert_eq!((size, piece), (100, 8), "the last one given back");
            shelf.put(size, piece);
            drop(shelf.trim(false));
            left.push(shelf.bytes());
        }
        assert_eq!(left, [500, 300, 200, 100]);
        assert_eq!(shelf.trim(false), [(100, 8)], "it is not needed any more");
        let read = counters.read();
        assert_eq!((read.bytes_pooled_now, read.bytes_returned), (0, 900));
    }

    #[test]
    fn behind_a_trim_of_all_nothing_is_kept_until_something_is_asked_for() {
        let counters = Arc::new(Counters::default());
        let mut shelf = Shelf::new(counters.clone());
        shelf.put(10, 'a');
        shelf.put(20, 'b');
        assert_eq!(shelf.trim(true), [(10, 'a'), (20, 'b')]);
        assert_eq!(shelf.put(10, 'c'), Some('c'));
        assert!(shelf.take(10..).is_none());
        assert_eq!(shelf.put(10, 'd'), None);
        assert_eq!((shelf.bytes(), counters.read().bytes_pooled_now, counters.read().bytes_returned), (10, 10, 40));
        drop(shelf);
        assert_eq!(counters.read().bytes_pooled_now, 0);
    }

    #[test]
    fn the_smallest_that_fits_is_taken_and_the_largest_makes_way() {
        let mut shelf = Shelf::new(Arc::default());
        for size in [30, 10, 20] {
            shelf.put(size, size);
        }
        assert_eq!(shelf.take(15..=25), Some((20, 20)));
        assert_eq!(shelf.take(15..=25), None);
        assert_eq!(shelf.take_largest(), Some((30, 30)));
    }
}
