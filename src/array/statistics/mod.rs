//! Statistics of [`Array`]: methods that record several ops along a dimension.
//!
//! In: arrays. Out: arrays, of ops that exist, so that fusion, placement, budgets and gradients know nothing of these
//! methods. Must hold: every op is recorded at the line that called the method.

mod counts;
mod curves;
mod moments;
mod order;
mod sets;
mod softmax;

pub use curves::meshgrid;
pub use sets::Unique;

use super::handle::Array;
use super::record::{At, cast_in};
use super::strict;
use super::tape::Home;
use crate::error::Result;
use crate::graph::DType;
use std::sync::Arc;

/// The array in the float dtype in which its statistics are computed: its own, or f64 for integers and bools.
///
/// # Errors
/// `ErrorKind::DType` where strict promotion refuses the conversion; the fault of recording it.
fn floats(home: &Arc<Home>, array: &Array, at: At) -> Result<Array> {
    let dtype = array.dtype()?;
    let float = if dtype.is_float() { dtype } else { DType::F64 };
    strict::converted(home, dtype, float)?;
    cast_in(home, array, float, at).checked()
}
