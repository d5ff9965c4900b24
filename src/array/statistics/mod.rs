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
