//! Matrix products.
//!
//! In: two dense operands per page, either stored transposed. Out: `out[m, n, p] = sum_k a[m, k, p] * b[k, n, p]`.

#[cfg(feature = "gpu")]
pub mod gpu;
pub mod host;
