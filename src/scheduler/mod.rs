//! The live task graph: demand, region cutting, placement, fairness, completion.
//!
//! In: segments of tapes, completions. Out: regions, retirements, resolved gathers. Must never write WGSL
//! or own memory.
//!
//! A value is in one of four homes (`graph::Home`): `Lazy` (recorded, not computed), `Coming` (an output of
//! a region that is cut), `Here` (some device or the host has it), `Failed` (it will never exist).
//!
//! | from | to | when |
//! |---|---|---|
//! | (recorded) | `Lazy`, `Here` for sources | its segment is ingested |
//! | `Lazy` | `Coming` | a cut writes it out |
//! | `Lazy` | (gone) | nobody can reach it: dead, or computed only in passing |
//! | `Coming` | `Here` | its region finished |
//! | `Coming` | `Coming` | its region goes again, whole or in parts (`split.rs`) |
//! | `Here` | `Coming` | it was lost with its device, and what it was made from exists |
//! | `Lazy`, `Coming`, `Here` | `Failed` | an operand failed at the cut; its region failed; its device was lost; nobody needs it any more |
//!
//! A region's life, from its cut to its end, is the table in `regions.rs`; when a value's bytes may go is the one in
//! `ends.rs`.
//!
//! Invariants (`State::validate` checks SCHED-1 to 8 and 12, LIFE-2, LIFE-3 and ENDS-2 to 4; assertions in place SCHED-9
//! to 11, LIFE-1 and ENDS-1; `tests/keeping.rs` SCHED-13; `crate::ring`'s simulator of requests SCHED-14):
//! - SCHED-1: the index names every live value once, and each entry names its own value.
//! - SCHED-2: only lazy values have edges from their arguments, and `users` is the number of edges to users.
//! - SCHED-3: every open gather waits for something that is under way: a region that makes its value, a
//!   readback, or an explanation.
//! - SCHED-4: at most `credits` regions are downstream, and two short ones beside long ones; exactly those are
//!   `Downstream` or `CalledBack` (`regions.rs`).
//! - SCHED-5: every live value is kept by somebody: a handle, a user, a gather, or an unfinished region.
//! - SCHED-6: a session's regions wait in the order in which they were cut.
//! - SCHED-7: every recorded node's credit is given back exactly once, and once more each time that it was left lazy
//!   and is computed later: credits out and credits held by unfinished regions add up to the nodes recorded and those
//!   computed later.
//! - SCHED-8: a value's list of regions is exactly the unfinished regions that read it; a `Coming` value's
//!   region is unfinished and has it as an output.
//! - SCHED-9: a session is known while a segment of it is taken in.
//! - SCHED-10: a cut's groups are not empty, and each node that runs is in one.
//! - SCHED-11: while a cut waits for a device to be opened, what users say waits behind it, in order; what comes
//!   from downstream is taken in.
//! - SCHED-12: a parked region is not downstream, holds no credit, and no gather and no region whose turn it is waits
//!   for what it makes; what it reads does not end before it is put back into the queue.
//! - SCHED-13: what the limits on a session's lazy values have computed depends on that session's own program, and on
//!   who demands or keeps what it shares, unless all that is kept for lazy values and parked regions is more than half
//!   of the host's budget.
//! - SCHED-14: sessions with regions waiting share the places downstream by their weights, as `crate::fair` says
//!   (FAIR-1 to FAIR-4): the ring's time and the device's, both estimated from the structure of what is sent.

pub mod run;
pub mod state;

mod bodies;
mod build;
mod cancel;
mod completion;
mod cut;
mod demand;
mod ends;
mod fairness;
mod fleet;
mod graph;
mod ingest;
mod keeping;
mod ledger;
mod lineage;
mod loops;
mod opening;
mod parking;
mod passing;
mod placement;
mod portions;
mod regions;
mod release;
mod room;
mod split;
mod story;
mod tail;
mod taint;
#[cfg(test)]
mod validate;
mod whereabouts;

pub use fairness::ring_ns;
pub use ingest::session_closed;

#[cfg(test)]
pub(crate) mod tests;
