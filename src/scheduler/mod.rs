//! The live task graph: demand, region cutting, placement, fairness, completion.
//!
//! In: segments of tapes, completions. Out: regions, retirements, resolved gathers. Must never write WGSL
//! or own memory.
//!
//! A value is in one of four homes (`graph::Residence`): `Lazy` (recorded, not computed), `Coming` (an output of
//! a region that is cut), `Here` (some device or the host has it), `Failed` (it will never exist).
//!
//! | from | to | when |
//! |---|---|---|
//! | (recorded) | `Lazy`, `Here` for sources | its segment is ingested |
//! | `Lazy` | `Coming` | a cut writes it out |
//! | `Lazy` | (removed) | no handle, lazy value or gather can reach it; it was never computed, or only as an intermediate result inside a kernel |
//! | `Coming` | `Here` | its region finished |
//! | `Coming` | `Coming` | its region is sent again, whole or split into parts (`split.rs`) |
//! | `Here` | `Coming` | it was lost with its device, and its inputs still exist |
//! | `Lazy`, `Coming`, `Here` | `Failed` | an operand failed at the cut; its region failed; its device was lost; its region was dropped as unneeded |
//!
//! The table in `regions.rs` is a region's life from its cut to its end. The table in `ends.rs` says when a value's
//! bytes may be freed.
//!
//! Invariants (`State::validate` checks SCHED-1 to 8 and 12, LIFE-2, LIFE-3 and ENDS-2 to 4; assertions in place SCHED-9
//! to 11, LIFE-1 and ENDS-1; this folder's `tests/keeping.rs` SCHED-13; `crate::ring`'s simulator of requests SCHED-14):
//! - SCHED-1: the index names every live value once, and each entry names its own value.
//! - SCHED-2: only lazy values have edges from their arguments, and `users` is the number of edges to users.
//! - SCHED-3: every open gather has a pending source: an unfinished region that makes its value, a readback, or an
//!   explanation.
//! - SCHED-4: at most `credits` regions are downstream, plus two short ones while long ones are downstream. The regions
//!   downstream are exactly those in the states `Downstream` and `CalledBack` (`regions.rs`).
//! - SCHED-5: every live value is kept alive by a handle, a lazy user, a gather, or an unfinished region.
//! - SCHED-6: a session's regions wait in the order in which they were cut.
//! - SCHED-7: every recorded node's credit is given back exactly once, and once more each time that it was left lazy
//!   and is computed later: credits out and credits held by unfinished regions add up to the nodes recorded and those
//!   computed later.
//! - SCHED-8: a value's list of regions is exactly the unfinished regions that read it; a `Coming` value's
//!   region is unfinished and has it as an output.
//! - SCHED-9: a session is in the table while one of its segments is ingested.
//! - SCHED-10: no group of a cut is empty, and each node that runs is in exactly one group.
//! - SCHED-11: while a cut waits for a device to be opened, events from users queue up behind it, in order. Events from
//!   downstream are handled.
//! - SCHED-12: a parked region is not downstream and holds no credit. No gather waits for its outputs; nor does, while
//!   a credit is free, the first region of a session's queue. Its inputs do not end before it is back in the queue.
//! - SCHED-13: which lazy values of a session are computed because of a limit depends only on that session's own
//!   program, and on the sessions that demand or keep its shared values. The exception: lazy values and parked regions
//!   together keep more than half of the host's budget.
//! - SCHED-14: sessions with regions waiting share the places downstream by their weights, as `crate::fair` says
//!   (FAIR-1 to FAIR-4): the ring's time and the device's, both estimated from the structure of what is sent.

pub mod run;
pub mod state;

mod blocks;
mod bodies;
mod build;
mod cancel;
mod completion;
mod cut;
mod demand;
mod ends;
mod fairness;
mod fates;
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
mod sessions;
mod split;
mod story;
mod tail;
mod taint;
#[cfg(test)]
mod validate;
mod whereabouts;

pub use ingest::session_closed;

#[cfg(test)]
pub(crate) mod tests;
