//! Calls: functions that call functions, evaluated text, numbers of arguments, and parsers of arguments.

mod each;
pub mod environment;
pub mod functions;
pub mod parsers;
