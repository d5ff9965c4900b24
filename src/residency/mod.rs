//! Who holds which bytes where: pools, slots, segments, budgets, eviction.
//!
//! In: plans, completions. Out: batches. Must never import `wgpu` or know what an op means.

pub mod message;
