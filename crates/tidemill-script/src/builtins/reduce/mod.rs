//! Functions that reduce or scan along dimensions: sums, extrema, means, running forms, counting in bins; and the walk
//! along lanes of host arrays that they share.

pub mod accumulation;
pub mod extrema;
pub mod field;
pub mod lanes;
pub mod norms;
pub mod reductions;
pub mod scans;
pub mod statistics;
pub mod summing;
