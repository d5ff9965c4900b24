//! Statistics of [`Array`]: methods that record several ops along a dimension.
//!
//! In: arrays. Out: arrays, recorded by existing ops, so that fusion, placement, budgets and gradients need not know
//! these methods. Must hold: every op is recorded at the source line that called the method.

mod counts;
mod curves;
mod moments;
mod order;
mod sets;
mod softmax;

pub(in crate::array) use counts::search;
pub use curves::meshgrid;
pub use sets::Unique;
