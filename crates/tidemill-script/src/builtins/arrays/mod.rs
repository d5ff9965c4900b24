//! Functions that make, shape, sort and query arrays: sizes, special matrices, order, sets, and the kinds of values.

pub mod creation;
pub mod matrices;
mod order;
pub mod queries;
pub mod repeats;
mod set_keys;
pub mod sets;
pub mod shape;
pub mod sorting;
