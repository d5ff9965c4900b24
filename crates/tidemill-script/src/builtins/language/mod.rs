//! The script itself: its variables, errors, assertions, what its names stand for, help; and what is accepted only.

pub mod accepted;
pub mod assertion;
pub mod documentation;
pub mod errors;
pub mod found;
pub mod variables;
