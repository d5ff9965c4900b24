//! When a machine looks for what it holds in small pieces ([`Small`]).
//!
//! Must hold: SMALL-2: the time that it takes is a small part of that of the statements in between, and what is not
//! seen in between is bounded: a part of what was found last, or some megabytes, or what so many steps make.

use super::{Interp, Variable};
use crate::env::out_of_memory;
use crate::error::Flow;
use crate::value::account::made_small;
use crate::value::small::Small;

/// So many bytes of small arrays are made before the next look, at least.
const MADE_BYTES_MIN: u64 = 16 << 20;
/// After so many steps it looks anyway: cells of numbers grow without arrays.
const STEPS_MAX: u64 = 4 << 20;

/// The last look.
#[derive(Debug, Default)]
pub(super) struct Looks {
    /// The steps that had been taken.
    steps: u64,
    /// The bytes of small arrays that its thread had made.
    made: u64,
    /// What it found.
    bytes: u64,
    values: u64,
}

impl Interp {
    /// Looks for what the machine holds in small pieces, where enough has happened since it last did.
    ///
    /// # Errors
    /// Out of memory, where that is too much.
    pub(super) fn look_for_small(&mut self) -> Flow<()> {
        let (steps, last) = (self.steps - self.small.steps, &self.small);
        // Another thread may have gone on with it: then the difference is any number, and it looks once too often.
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
        self.small = Looks { steps: self.steps, made: made_small(), bytes: found.bytes, values: found.values };
        if self.env.account.found_small(found.bytes) { Ok(()) } else { Err(out_of_memory().into()) }
    }
}
