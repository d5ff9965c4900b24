//! The wiring: threads, channels and run loops of the actors, and the table of open gathers.
//!
//! Scheduler, fusion and residency are state machines on one thread, `tidemill-ring`. One loop moves messages
//! between them in order until they are quiet: a hop is a push on a queue, and there is no channel between them
//! that could fill up. Mailboxes stand only at the edges (`crate::mail`): the loop polls them, parks, and is unparked.
//!
//! | mailbox | from | bound |
//! |---|---|---|
//! | users' events | sessions | their gates: a recording thread is held while too many of its nodes, or of the bytes they keep, are in the ring |
//! | device events | device threads | batches in flight |
//! | compiled plans | compile workers | regions downstream (the scheduler's credits) |
//! | an opened device | the thread that opens it | one |
//! | control | the runtime | a handful |
//!
//! The end of a batch on which an open gather alone depends resolves it on the device's thread (`answers`); everything
//! else is resolved by the loop.
//!
//! Must hold:
//! - RING-1: every gather in the table resolves, at the latest when the ring ends.
//! - RING-2: the ring never waits for a user, and a device never waits for the ring.
//! - RING-3: whichever way the ring ends, also by a panic, the table of gathers and the gates are closed, and the
//!   devices are stopped.

mod answers;
mod devices;
mod gate;
mod gates;
mod gathers;
mod machines;
mod open;
mod run;
mod start;
mod workers;

#[cfg(test)]
mod simulator;
#[cfg(test)]
mod tests;

pub use devices::Devices;
pub use gate::{Gate, Room};
pub use gates::Gates;
pub use gathers::{GatherTable, Promise};
pub use open::start;
pub use start::{Closer, Ended, Ring, start_with};
