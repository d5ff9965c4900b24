//! Who holds which bytes where: pools, slots, segments, budgets, eviction.
//!
//! In: plans, completions. Out: batches. Must never import `wgpu` or know what an op means.
//!
//! A plan that has arrived waits until its inputs are made; then a cursor walks its steps and fills a
//! batch, as if every command ran at once: a device works as if strictly in order, so a slot freed by one command
//! serves the next. A long plan is placed slice by slice, and the sessions that have something to place take turns.
//! Under pressure the least recently used segments leave for host memory, and come back when used.
//!
//! Reading order: `values` (what is known of a value), `state` (events), `device` (what waits
//! for a device, and is out there), `pump` (what follows from them),
//! `turns` (whose turn it is), `beside` (who may begin while others are in progress), `cursor` (walks a plan; `tiles`
//! cuts its launches, `reside` finds their slots, `closing` ends it), `evict` and `pool` (where slots come from),
//! `batch`, `complete` (reports and failures), `holding` (segments and host copies), `idle` (free memory goes back).
//!
//! Assumed: plans of one session arrive in region order (a value dies in the last of them); events of one device
//! come in the order in which it worked, and a batch that failed with
//! `ErrorKind::DeviceLost` is followed by `DeviceLost`; a `RegionAbandoned` is accompanied by `ValuesFailed` for its
//! outputs.
//!
//! Invariants ([`state::State::validate`] checks them; tests call it after every event):
//! - RES-1: a segment changes as the table in `values.rs` says.
//! - RES-2: buffers of a device's pool, live and free, take at most its budget; more, up to its memory, while a step
//!   needs more by itself, and until what it left has been evicted. Where a device is opened that takes a part of the
//!   host's memory, the host's budget becomes smaller, but never less than what it holds.
//!   What front ends claim of the host's budget is taken off what is allocated from then on (CLAIMS-1).
//! - RES-3: live slots don't overlap, and each belongs to one segment.
//! - RES-4: a device never has more batches in flight than its credit; every batch that is out has a record.
//! - RES-5: a value that was made and can still be reached is in host memory, or all of its segments are on one
//!   device or on their way from it.
//! - RES-6: a paused cursor waits for a readback whose batch is out.
//! - RES-7: a device's LRU index holds exactly the segments that have slots there.
//! - RES-8: a waiting plan knows how many of its inputs are not made, and each input knows the plan.
//! - RES-9: bytes counted against the host budget are those of readbacks kept or on their way. What the host device
//!   reads where it lies (what the program brought, what upload writers filled) is lent, and counts nowhere.
//! - RES-10: within one step, what was found is there until the step removes it.
//! - RES-11: batches in flight move at most a quarter of the device's budget over its link, or there is one only.
//! - RES-12: while plans wait for a device, or are in progress there and not blocked, a batch of that device is out.
//! - RES-13: a session's plans go in the order of their arrival on each device, one at a time.
//! - RES-14: sessions with something to place share a device's time by their weights, as `crate::fair` says (FAIR-1 to
//!   FAIR-4): nobody waits for longer than a stated number of others' batches, whoever comes and goes.
//! - RES-15: the device is told to drop a buffer that no pool holds any more behind the last batch that may name it, and
//!   before any batch that is prepared later, however many these are.

pub mod state;

mod batch;
mod beside;
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
