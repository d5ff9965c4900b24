//! Random numbers: Philox-4x32-10 and the distributions, on the host and as WGSL.
//!
//! In: a stream's key and element numbers. Out: random elements. `graph::RandomKey` defines which word belongs to which
//! element: the counter is `[element / 4, op, stream low, stream high]` and the word `element % 4`; an f64 takes two
//! words, so the counter has `element / 2`, and the words are `2 (element % 2)` (the high one) and the next one. Normal
//! numbers come in pairs, from words (0, 1) and (2, 3) of a counter, or from its two 64-bit words.
//!
//! An element whose candidate is refused has more words: try `n` (from 1 on) is the counter `[element, op, stream low,
//! stream high]` under the key with `n` times a constant mixed in ([`words_of_try`]). Distributions of parameters
//! (`rejected.rs`) take all their words from there: four of 32 bits a try, or, in f64, four of 64 bits from tries
//! `2n - 1` and `2n`.
//!
//! Must hold: RNG-1: an element depends on the key and its number alone, not on where a block begins. RNG-2: integers
//! and uniforms have the same bits on every device.

mod host;
mod philox;
mod rejected;
#[cfg(feature = "gpu")]
mod shader;
#[cfg(feature = "gpu")]
mod shader_rejected;

#[cfg(all(test, feature = "gpu"))]
mod tests_gpu;

pub use host::{at, fill};
pub use philox::philox4x32_10;
pub use rejected::{Numbers, draw};
#[cfg(feature = "gpu")]
pub use shader::wgsl;

use crate::graph::{DType, Dist};

/// How often an integer is drawn again at most. Each time it is refused with a probability below one half.
const INTEGER_TRIES: u32 = 128;
/// How many candidates a distribution of parameters has at most, of which each is refused with a probability below 0.35;
/// or how many groups of four waiting times, of some 20 in the mean at most.
const TRIES: u32 = 64;

/// By how much a try's number changes the two words of the key. No two of the numbers in use give the same second word,
/// so that seeds below 2^32, which programs choose, share no words with the tries of others.
const KEY_STEPS: [u32; 2] = [0x85eb_ca6b, 0xc2b2_ae35];

/// The words of an element's try `number`, from 1 on.
#[inline(always)]
fn words_of_try(key: [u32; 5], element: u32, number: u32) -> [u32; 4] {
    let seed = [key[0] ^ number.wrapping_mul(KEY_STEPS[0]), key[1] ^ number.wrapping_mul(KEY_STEPS[1])];
    philox4x32_10([element, key[4], key[2], key[3]], seed)
}

/// Elements that one call of the generator gives. Integers of any dtype take one word each, but for those of 64 bits.
fn elements_per_call(dist: Dist, dtype: DType) -> u32 {
    if dist == Dist::Wide || (dtype == DType::F64 && dist != Dist::Integer) { 2 } else { 4 }
}
