//! Indexed assignment.

pub mod gpu;
