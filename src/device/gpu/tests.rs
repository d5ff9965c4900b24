//! The device against Mesa's software Vulkan (or whatever adapter is best), with hand-written kernels.

mod batches;
mod faults;
mod kernels;
pub(super) mod rig;
mod spans;
