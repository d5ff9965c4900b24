//! Elementwise ops made runnable: the op table's semantic functions as host loops and as WGSL.
//!
//! In: an op, dtypes and arguments. Out: computed blocks ([`host`]) or shader text ([`wgsl`]). What an op means
//! stands in `graph::semantics`, and beside numbers of another class in [`mixed`] and [`wide`]; here is how it is run.

pub mod host;
mod host_cast;
mod loops;
pub mod mixed;
#[cfg(feature = "gpu")]
pub(crate) mod trace;
#[cfg(feature = "gpu")]
mod trace_number;
#[cfg(feature = "gpu")]
pub mod wgsl;
#[cfg(feature = "gpu")]
mod wgsl_cast;
pub mod wide;

#[cfg(all(test, feature = "gpu"))]
pub(crate) mod gpu_harness;
#[cfg(test)]
mod tests;
#[cfg(all(test, feature = "gpu"))]
mod tests_gpu;

use crate::graph::{DType, ElementOp};

/// Whether an op is written as WGSL at all. The device must have the dtypes besides.
pub fn runs_on_gpus(op: ElementOp, input: DType) -> bool {
    refusal(op, input).is_none()
}

/// Why an op is not written as WGSL: an H200's compiler rearranges the sums of f64's gamma function until hundreds of
/// ulp are lost, and does not end, or fails, over powers of `i64` and of f64 in one kernel.
pub fn refusal(op: ElementOp, input: DType) -> Option<&'static str> {
    match (op, input) {
        (ElementOp::Gamma, DType::F64) => Some("the gamma function of f64 is not precise enough on GPUs"),
        (ElementOp::Pow, DType::I64) => Some("compilers of GPUs fail over powers of i64 beside f64"),
        _ => None,
    }
}
