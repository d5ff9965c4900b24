//! Discrete Fourier transforms of lines.
//!
//! In: real or complex lines along a dimension, their parts apart or together. Out: for each line its spectrum, or the
//! line of a spectrum, parts together. On the host by `rustfft` and `realfft`; on a GPU in passes ([`Plan`]).
//!
//! Must hold: FFT-1: a NaN in one line reaches no other line. FFT-2: the relative
//! error of a line in the Euclidean norm is at most `eps log2(len)`, where `len` has no prime factor above 13, else
//! three times that, of the padded length; eps is the distance from 1 to the next number.

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
