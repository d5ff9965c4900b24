//! Assignment by index arrays.
//!
//! In: a base, indices and values. Out: the base with `base[index] = value`; the last of equal indices wins, and
//! indices outside are skipped and set a fault word.

#[cfg(feature = "gpu")]
pub mod gpu;
pub mod host;
