//! One actor a device: a wgpu queue, or the host's worker threads.
//!
//! In: batches from residency, as [`message::DeviceInstruction`]s. Out: completions, readbacks and faults, as
//! [`message::DeviceEvent`]s. Must never decide what to compute or where.

mod costs;
#[cfg(feature = "gpu")]
pub mod gpu;
pub mod handle;
pub mod host;
pub mod info;
pub mod message;

pub use costs::CACHE_VARIABLE;
