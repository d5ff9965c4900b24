//! Decides when a machine counts the memory that it holds in small pieces ([`Small`]).
//!
//! Must hold: SMALL-2: counting takes a small part of the time of the statements in between. The memory that goes
//! unseen in between is bounded: by a part of the last count, by some megabytes, or by what so many steps can make.

use super::{Interp, Variable};
use crate::env::out_of_memory;
use crate::error::Flow;
use crate::value::account::made_small;
use crate::value::small::Small;

/// At least this many bytes of small arrays are made before the next count.
const MADE_BYTES_MIN: u64 = 16 << 20;
/// After this many steps the machine counts anyway, since cells of numbers grow without arrays.
const STEPS_MAX: u64 = 4 << 20;

/// The last count.
#[derive(Debug, Default)]
pub(super) struct LastCount {
    /// The number of steps at the last count.
    steps: u64,
    /// The bytes of small arrays that the thread had made at the last count.
    made: u64,
    /// The bytes and values that it found.
    bytes: u64,
    values: u64,
}

impl Interp {
    /// Counts the memory that the machine holds in small pieces, if enough has happened since the last count.
    ///
    /// # Errors
    /// Out of memory, if there is too much.
    pub(super) fn count_small(&mut self) -> Flow<()> {
        let (steps, last) = (self.steps - self.small.steps, &self.small);
        // Another thread may have run the machine in between. Then the difference can be any number, and one count is
        // made too many.
        let made = made_small().wrapping_sub(last.made);
        let is_due = made >= MADE_BYTES_MIN.max(last.bytes / 4) && steps >= last.values;
        if !is_due && steps < STEPS_MAX.max(2 * last.values) {
            return Ok(());
        }
        let variables = self.variables.iter().filter_map(|variable| match variable {
            Variable::Value(value) => Some(value),
            _ => None,
        });
        let statics = self.statics.iter().flatten();
        let found = Small::of(variables.chain(statics).chain(&self.stack), self.nests_of_frames());
        self.small = LastCount { steps: self.steps, made: made_small(), bytes: found.bytes, values: found.values };
        if self.env.account.found_small(found.bytes) { Ok(()) } else { Err(out_of_memory().into()) }
    }
}
