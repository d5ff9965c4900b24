//! Elementwise ops on host blocks and as WGSL.
pub mod wgsl;
