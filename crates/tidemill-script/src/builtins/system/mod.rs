//! What a script sees of the world around it: its process, clocks, and the device.

pub mod clocks;
pub mod device;
pub mod process;
