//! Random numbers: Philox-4x32-10 and the distributions, on the host and as WGSL.
//!
//! In: a stream's key and element numbers. Out: random elements. `graph::RandomKey` defines which word belongs to which
//! element: the counter is `[element / 4, op, stream low, stream high]` and the word `element % 4`; an f64 takes two
//! words, so the counter has `element / 2`, and the words are `2 (element % 2)` (the high one) and the next one. Normal
//! numbers come in pairs, from words (0, 1) and (2, 3) of a counter, or from its two 64-bit words.
//!
//! Must hold: RNG-1: an element depends on the key and its number alone, not on where a block begins. RNG-2: integers
//! and uniforms have the same bits on every device.

mod host;
mod philox;
#[cfg(feature = "gpu")]
mod shader;

#[cfg(all(test, feature = "gpu"))]
mod tests_gpu;

pub use host::{at, fill};
pub use philox::philox4x32_10;
#[cfg(feature = "gpu")]
pub use shader::wgsl;

use crate::graph::{DType, Dist};

/// Elements that one call of the generator gives. Integers of any dtype take one word each.
fn elements_per_call(dist: Dist, dtype: DType) -> u32 {
    if dtype == DType::F64 && dist != Dist::Integer { 2 } else { 4 }
}
