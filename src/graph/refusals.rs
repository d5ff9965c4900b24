//! Ops on dtypes for which the compilers of GPUs produce wrong or imprecise code.
//!
//! In: an op and a dtype. Out: whether devices that compile shaders may run it. Must hold: the answer depends on these
//! two alone. Whether a device has the dtype is another question (`DeviceInfo::has`). Devices that compile no shaders
//! run every op, and do not ask.

use super::{DType, ElementOp};

/// Whether an op is written as WGSL at all. The device must also have the op's dtypes.
pub fn runs_on_gpus(op: ElementOp, input: DType) -> bool {
    refusal(op, input).is_none()
}

/// The ops that are not written as WGSL for arguments of a dtype, and why. An H200's compiler rearranges the sums of
/// f64's gamma function until hundreds of ulp are lost. It hangs or fails if powers of `i64` and of f64 are in one
/// kernel.
const REFUSALS: [(ElementOp, DType, &str); 2] = [
    (ElementOp::Gamma, DType::F64, "the gamma function of f64 is not precise enough on GPUs"),
    (ElementOp::Pow, DType::I64, "compilers of GPUs fail over powers of i64 beside f64"),
];

/// The reason why an op is not written as WGSL; `None` if it is.
pub fn refusal(op: ElementOp, input: DType) -> Option<&'static str> {
    REFUSALS.iter().find(|(refused, dtype, _)| (*refused, *dtype) == (op, input)).map(|(.., why)| *why)
}
