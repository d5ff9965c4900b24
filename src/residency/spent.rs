//! Lent memory that no segment uses any more, by the names of its buffers, on its way to the device, which lets go of it.
//! Buffers of the pool go by other ways (`evict`, `pump`, `idle`).
//!
//! In: buffers, and how many batches were prepared and submitted. Out: buffers that the device may be told of. Must
//! hold: RES-15: a buffer goes when all batches are submitted that were prepared up to the first [`Spent::take`] after it
//! was given up, however many come behind them: a device that is never without a prepared batch keeps nothing.

use crate::ids::BufferId;
use std::collections::VecDeque;

/// Spent buffers of one device.
#[derive(Debug, Default)]
pub(super) struct Spent {
    /// Given up since [`Spent::take`] was last called.
    fresh: Vec<BufferId>,
    /// In the order in which they were given up: the number of batches that were prepared until then.
    behind: VecDeque<(u64, BufferId)>,
}

impl Spent {
    /// Takes in a buffer. Batches that are prepared before the next [`Spent::take`] may still name it.
    pub(super) fn push(&mut self, buffer: BufferId) {
        self.fresh.push(buffer);
    }

    /// Whether none is here.
    pub(super) fn is_empty(&self) -> bool {
        self.fresh.is_empty() && self.behind.is_empty()
    }

    /// How many are here.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.fresh.len() + self.behind.len()
    }

    /// Takes out the buffers that no unsubmitted batch names. `prepared` and `submitted` are
    /// counts of batches since the start.
    pub(super) fn take(&mut self, prepared: u64, submitted: u64) -> Vec<BufferId> {
        if prepared == submitted && self.behind.is_empty() {
            return std::mem::take(&mut self.fresh);
        }
        self.behind.extend(self.fresh.drain(..).map(|buffer| (prepared, buffer)));
        let free = self.behind.iter().take_while(|&&(until, _)| until <= submitted).count();
        self.behind.drain(..free).map(|(_, buffer)| buffer).collect()
    }

    /// Forgets all: the device's buffers are gone.
    pub(super) fn clear(&mut self) {
        self.fresh.clear();
        self.behind.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_goes_when_the_batches_that_may_name_it_are_submitted_though_others_are_prepared() {
        let mut spent = Spent::default();
        spent.push(BufferId(1));
        assert_eq!(spent.take(3, 1), []);
        spent.push(BufferId(2));
        assert_eq!(spent.take(4, 2), []);
        assert_eq!(spent.len(), 2);
        assert_eq!(spent.take(5, 3), [BufferId(1)]);
        assert_eq!(spent.take(9, 8), [BufferId(2)]);
        assert!(spent.is_empty());
        spent.push(BufferId(3));
        assert_eq!(spent.take(9, 9), [BufferId(3)]);
    }
}
