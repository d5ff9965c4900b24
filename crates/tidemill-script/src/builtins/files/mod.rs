//! Files: streams, bytes, folders, variables in MAT files and text files, tables, pictures.

pub mod binary;
pub mod folders;
pub mod matfile;
mod matformat;
mod matformat4;
#[cfg(feature = "image")]
pub mod pictures;
pub mod streams;
pub mod tables;
mod textformat;
