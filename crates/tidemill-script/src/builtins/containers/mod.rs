//! Cells, structs and maps: making them, taking them apart, and asking for their names.

pub mod cells;
pub mod maps;
pub mod structs;
