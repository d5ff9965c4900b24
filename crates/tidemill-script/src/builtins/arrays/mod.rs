//! Functions that make, shape, sort and query arrays: sizes, special matrices, order, sets, and the kinds of values.

pub mod creation;
mod finding;
pub mod matrices;
mod order;
mod padding;
pub mod queries;
pub mod rearrange;
pub mod repeats;
mod set_keys;
pub mod sets;
pub mod shape;
pub mod sorting;
mod unique;
