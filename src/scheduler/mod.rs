//! The live task graph: demand, region cutting, placement, fairness, completion.
//!
//! In: segments of tapes, completions. Out: regions, retirements, resolved gathers. Must never write WGSL
//! or own memory.

pub mod message;
pub mod region;
