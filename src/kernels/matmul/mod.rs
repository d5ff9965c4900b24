//! Matrix products.
//!
//! In: two dense operands per page, either stored transposed. Out: `out[m, n, p] = sum_k a[m, k, p] * b[k, n, p]`.

pub mod host;
