//! Matrix product.

pub mod gpu;
