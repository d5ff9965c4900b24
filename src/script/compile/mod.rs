//! From the tree to code: slots for names, instructions for statements, and the last use of every variable.

pub mod code;

pub use code::Code;
