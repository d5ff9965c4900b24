//! Sorting permutations.
//!
//! In: keys along the lines of an array. Out: for each line the stable permutation (u32, 0-based) that sorts
//! it; NaN is greatest, -0 equals 0.

#[cfg(feature = "gpu")]
pub mod gpu;
pub mod host;
#[cfg(feature = "gpu")]
mod radix;
#[cfg(feature = "gpu")]
mod tile;
