//! Matrix products.
//!
//! In: two dense operands per page, either stored transposed. Out: `out[m, n, p] = sum_k a[m, k, p] * b[k, n, p]`.
//!
//! Must hold:
//! - MATMUL-1: the error of every element is at most `(4 + log2 k) eps` times the sum of the magnitudes of its terms,
//!   for every shape and on every device. So no running sum has more than sixteen terms: longer sums are added in
//!   levels, whose form depends on the sizes alone.

#[cfg(test)]
pub(crate) mod cases;
#[cfg(feature = "gpu")]
pub mod gpu;
pub mod host;
mod split;

#[cfg(feature = "gpu")]
pub use split::WIDE_TILES_BYTES;
pub use split::scratch_words;
