//! Discrete Fourier transforms of lines.
//!
//! In: real or complex lines along a dimension, with their parts in one array or in two. Out: the spectrum of each
//! line, or the line of each spectrum, with all parts in one array. The host uses `rustfft` and `realfft`; a GPU
//! transforms in passes (`plan`).
//!
//! Must hold: FFT-1: a NaN in one line reaches no other line. FFT-2: the relative error of a line in the Euclidean norm
//! is at most `eps log2(len)` if `len` has no prime factor above 13, otherwise three times that for the padded length.
//! `eps` is the distance from 1 to the next number.

#[cfg(feature = "gpu")]
mod butterfly;
#[cfg(test)]
mod cases;
#[cfg(feature = "gpu")]
pub mod gpu;
pub mod host;
mod plan;
#[cfg(feature = "gpu")]
mod text;
#[cfg(feature = "gpu")]
mod writer;

pub use plan::{is_smooth, scratch_words};
