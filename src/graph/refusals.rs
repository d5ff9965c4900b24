//! Which ops of which dtypes no compiler gets right.
//!
//! In: an op and a dtype. Out: whether devices that compile run it. Must hold: a function of these alone: which dtypes a
//! device has is another question (`DeviceInfo::has`), and devices that run everything are not asked.

use super::{DType, ElementOp};

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
