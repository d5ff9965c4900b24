//! Arrays made, shaped, sorted and asked: sizes, special matrices, order, sets, and what kind a value is.

pub mod creation;
pub mod matrices;
mod order;
pub mod queries;
pub mod repeats;
mod set_keys;
pub mod sets;
pub mod shape;
pub mod sorting;
