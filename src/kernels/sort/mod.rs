//! Stable argsort.

pub mod gpu;
