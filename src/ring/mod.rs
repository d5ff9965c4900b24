//! The wiring: threads, channels and run loops of the actors, and the table of open gathers.
//!
//! Scheduler, fusion and residency are state machines on one thread, `tidemill-ring`. One loop moves messages between
//! them, in order, until none is left: passing a message is a push on a queue, and there is no channel between them
//! that could fill up. Mailboxes stand only at the edges (`crate::mail`): the loop polls them, parks, and is unparked.
//!
//! | mailbox | from | bound |
//! |---|---|---|
//! | users' events | sessions | what may wait of a session, and of all (`gate`): beyond it, recording is refused, or held where that was asked for |
//! | device events | device threads | batches in flight |
//! | compiled plans | compile workers | regions downstream (the scheduler's credits) |
//! | an opened device | the thread that opens it | one |
//! | control | the runtime, claims of front ends | a handful, and one claim a turn |
//!
//! Events from sessions are taken out of their mailbox at once and kept in the `backlog` until the scheduler has room
//! for them. So a cancel, and the end of a session, take effect before segments that were sent earlier.
//!
//! A gather that depends on the end of one batch alone is resolved on the device's thread (`answers`); all others are
//! resolved by the loop.
//!
//! Must hold:
//! - RING-1: every gather in the table resolves, at the latest when the ring ends.
//! - RING-2: the ring never waits for a user, and a device never waits for the ring.
//! - RING-3: whichever way the ring ends, also by a panic, the table of gathers and the gates are closed, and the
//!   devices are stopped.

mod answers;
mod backlog;
mod devices;
mod gate;
mod gates;
mod gathers;
mod idle;
mod machines;
mod open;
mod promise;
mod run;
mod start;
mod workers;

#[cfg(test)]
mod backlog_tests;
#[cfg(test)]
mod simulator;
#[cfg(test)]
mod tests;

pub use devices::Devices;
pub use gate::{Gate, Total};
pub use gates::Gates;
pub use gathers::GatherTable;
pub use open::start;
pub use promise::Promise;
pub use start::{Ring, start_with};
