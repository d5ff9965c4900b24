//! The wiring: threads, channels and run loops of the actors, and the table of open gathers.
//!
//! Must hold: RING-1: every gather in the table resolves, at the latest when the ring ends.

mod gate;
mod gathers;

pub use gate::Gate;
pub use gathers::{GatherTable, Promise};
