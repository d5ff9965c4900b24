//! One actor a device: a wgpu queue, or the host's worker threads.
//!
//! In: batches from residency, as `DeviceInstruction`s. Out: completions, readbacks and faults, as `DeviceEvent`s. Must
//! never decide what to compute or where.

mod costs;
#[cfg(feature = "gpu")]
pub mod gpu;
pub mod handle;
pub mod host;

pub use costs::CACHE_VARIABLE;
