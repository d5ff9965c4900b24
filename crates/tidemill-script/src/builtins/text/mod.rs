//! Text: char matrices and cells of strings, regular expressions, numbers as text and back, printing, JSON.

pub mod chars;
pub mod comparisons;
pub mod convert_text;
pub mod json;
mod json_text;
pub mod number_text;
pub mod output;
pub mod pattern;
pub mod regexp;
pub mod scan;
mod splitting;
pub mod strings;
#[cfg(test)]
mod text_tests;
