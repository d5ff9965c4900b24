//! Cells, structs and maps: functions that make them, take them apart, and list their names.

pub mod cells;
pub mod maps;
pub mod structs;
