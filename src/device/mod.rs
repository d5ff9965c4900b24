//! One actor a device: a wgpu queue, or the host's worker threads. Decides nothing about what or where.

#[cfg(feature = "gpu")]
pub mod gpu;
pub mod handle;
pub mod host;
pub mod info;
pub mod message;
