//! Faults, limits and holds that tests inject into a runtime.
//!
//! In the unit tests and with the feature `testing`, [`Injection`] says what a test asked for (`asked.rs`). In any other
//! library empty types with the same methods stand in its place (`none.rs`): nothing is stored, each question has one
//! answer that the compiler knows, and none of the faults is compiled.

#[cfg(any(test, feature = "testing"))]
mod asked;
#[cfg(not(any(test, feature = "testing")))]
mod none;

#[cfg(any(test, feature = "testing"))]
pub use asked::{Hold, Injection, Latch, Wrong};
#[cfg(not(any(test, feature = "testing")))]
pub use none::{Injection, Latch, Wrong};
