//! Philox-4x32-10 and the distributions, on the host and as WGSL.
#![allow(missing_docs)]
use crate::graph::{DType, Dist};
use crate::kernels::element::wgsl::Functions;
#[allow(clippy::too_many_arguments)]
pub fn wgsl(
    _: &mut Functions,
    _: Dist,
    dtype: DType,
    width: u32,
    _: [String; 5],
    element: String,
    _: bool,
    _: Option<(String, String)>,
) -> String {
    format!("{}({element})", crate::kernels::wgsl::types::typed(dtype, width))
}
