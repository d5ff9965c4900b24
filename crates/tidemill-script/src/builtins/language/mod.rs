//! The script itself: its variables, errors, assertions, the meaning of names, help, and functions without an effect.

pub mod accepted;
pub mod assertion;
pub mod documentation;
pub mod errors;
pub mod found;
pub mod variables;
