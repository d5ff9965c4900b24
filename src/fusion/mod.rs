//! Region → Plan: few kernels over virtual buffers, and the plan cache.
//!
//! In: regions from the scheduler. Out: plans to residency. Must never import `wgpu`.

pub mod message;
pub mod plan;
