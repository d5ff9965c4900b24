//! Memory management: decides which bytes of which value are where, with pools, slots, segments, budgets and eviction.
//!
//! In: plans, completions. Out: batches. Must never import `wgpu` or know what an op means.
//!
//! A plan that has arrived waits until its inputs are placed. Then a cursor walks its steps and fills a batch with
//! commands. A device behaves as if it ran commands strictly in order, so a slot that is free after one command can be
//! given to the next. A long plan is placed slice by slice, and sessions with plans to place take turns. Under memory
//! pressure, the least recently used segments are evicted to host memory; they are uploaded again when they are used.
//!
//! Reading order: `values` (where a value's bytes are), `state` (events), `device` (one device: memory, plans,
//! batches), `pump` (what is done after each event), `turns` (whose turn it is), `admission` (whether a plan may begin
//! while others are in progress), `cursor` (walks a plan; `tiles` cuts its launches, `reside` finds their slots,
//! `closing` ends it), `evict` and `pool` (where slots come from), `batch`, `complete` (reports and failures),
//! `holding` (segments and host copies), `idle` (returns unused memory to the system).
//!
//! Assumed: plans of one session arrive in region order (a value dies in the last of them); events of one device
//! come in the order in which it worked, and a batch that failed with
//! `ErrorKind::DeviceLost` is followed by `DeviceLost`; a `RegionPlanFailed` is accompanied by `ValuesFailed` for its
//! outputs.
//!
//! Invariants ([`state::State::validate`] checks them; tests call it after every event):
//! - RES-1: a segment changes as the table in `values.rs` says.
//! - RES-2: buffers of a device's pool, live and free, take at most its budget. A single step that needs more may use
//!   up to the device's memory; eviction then brings the pool back within the budget. When a device is opened that uses
//!   a part of the host's memory, the host's budget shrinks, but never below what is in use. The part of the host's
//!   budget that front ends claim is not available to later allocations (CLAIMS-1).
//! - RES-3: live slots don't overlap, and each belongs to one segment.
//! - RES-4: a device never has more batches in flight than its credit; every batch that is out has a record.
//! - RES-5: a value that was made and can still be reached is in host memory, or all of its segments are on one
//!   device or on their way from it.
//! - RES-6: a paused cursor waits for a readback whose batch is out.
//! - RES-7: a device's LRU index holds exactly the segments that have slots there.
//! - RES-8: a waiting plan knows how many of its inputs are not made, and each input knows the plan.
//! - RES-9: the host copies that count against the host budget are readbacks, kept or on their way. Memory that the
//!   host device reads in place (the program's own arrays, buffers that upload writers filled) is lent, and counts
//!   against no budget.
//! - RES-10: within one step, an entry that was looked up stays until the step removes it.
//! - RES-11: batches in flight move at most a quarter of the device's budget over its link, unless only one is in
//!   flight.
//! - RES-12: while plans wait for a device, or are in progress there and not blocked, at least one batch of that device
//!   is submitted or prepared.
//! - RES-13: a session's plans go in the order of their arrival on each device, one at a time.
//! - RES-14: sessions with plans to place share a device's time by their weights, as `crate::fair` says (FAIR-1 to
//!   FAIR-4): the number of other sessions' batches that one session waits for is bounded, whichever sessions come and
//!   go.
//! - RES-15: when no pool holds a buffer any more, the device is told to drop it: after the last batch that may name
//!   it, and before any batch that is prepared later.

pub mod state;

mod admission;
mod batch;
mod closing;
mod complete;
mod cursor;
mod device;
mod evict;
mod holding;
mod idle;
mod intervals;
mod pool;
mod pump;
mod reside;
mod story;
mod tiles;
mod turns;
#[cfg(test)]
mod validate;
mod values;

#[cfg(test)]
mod simulate;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_random;
