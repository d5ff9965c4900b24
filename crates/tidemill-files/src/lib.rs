//! Arrays of [`tidemill`] in files: `.npy` and `.npz` of NumPy, `safetensors`, CSV; and as Arrow arrays.
//!
//! A file is opened as a [`Source`], or as an [`Archive`] of several: that reads the header only. [`Source::read`]
//! makes an array of it, [`Source::pieces`] makes one array after another of a file that is larger than memory. The
//! elements go from the file into the memory of an upload writer, a mebibyte at a time; to write, an array is gathered
//! in blocks.
//!
//! ```
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("x.npy");
//! # futures::executor::block_on(async {
//! use tidemill_files::npy;
//! let rt = tidemill::Runtime::builder().device("host").start().await?;
//! let s = rt.session("files").open();
//! let x = s.from_row_major(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])?;
//! npy::write(&path, &x).await?;
//! let y = npy::read(&s, &path).await?.real()?;
//! assert_eq!((x - y).abs().sum(..).item::<f32>().await?, 0.0);
//! rt.shutdown().await
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Layouts and types
//!
//! Tidemill's arrays are column-major. What a file holds in row-major order keeps its indices: `x[i, j]` of NumPy is
//! `x[[i, j]]` here. Such a file is read as it lies, and the array is a transposed view of that on the device.
//!
//! | in a file | becomes |
//! |---|---|
//! | f32, f64, bool, u8, i32, u32, i64, c64, c128 | the same |
//! | f16, bf16 | f32 |
//! | i8, i16 | i32 |
//! | u16 | u32 |
//! | u64 | i64; a number above 2^63 - 1 is an error |
//!
//! All these are exact; numbers of either byte order are read. Other types (f8, text, objects, dates) are refused by
//! name.
//!
//! # Threads
//!
//! The functions are `async`, work under any executor, and never hold its thread: files are read and written on threads
//! of the crate `blocking`. [`wait`] waits for any of them in a program without an executor. A future that is dropped
//! stops its thread at the next block. A file that is written gets its name when it is whole.
//!
//! # Errors
//!
//! All are [`tidemill::Error`]s that begin with the file's name: `ErrorKind::Io` where the system refuses to read or
//! write, `ErrorKind::Format` where a file is damaged, cut short, or of another format, `ErrorKind::DType` for a type
//! that has no equal, `ErrorKind::Argument` for a name that is not there, `ErrorKind::TooLarge` and `ErrorKind::Rank`
//! for what no array may be, `ErrorKind::OutOfMemory` for what the runtime has no memory for. A header is believed only
//! as far as the file's length bears it out.
//!
//! # Cargo features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `npz` | yes | [`npz`] |
//! | `safetensors` | yes | [`safetensors`](mod@safetensors) |
//! | `csv` | yes | [`csv`](mod@csv) |
//! | `arrow` | no | `arrow`: arrays from and to Arrow's, without a copy where Arrow's layout allows |
//!
//! Arrays from and to `ndarray` are a feature of `tidemill` itself.

mod any;
#[cfg(any(feature = "npz", feature = "safetensors"))]
mod archive;
#[cfg(feature = "arrow")]
pub mod arrow;
#[cfg(feature = "csv")]
pub mod csv;
mod element;
mod error;
mod fill;
mod layout;
pub mod npy;
#[cfg(feature = "npz")]
pub mod npz;
mod pieces;
mod put;
#[cfg(feature = "safetensors")]
pub mod safetensors;
mod source;
mod target;
mod threads;

pub use any::{AnyArray, Tensor};
#[cfg(any(feature = "npz", feature = "safetensors"))]
pub use archive::Archive;
pub use pieces::{Piece, Pieces};
pub use source::Source;
pub use threads::wait;

// The examples of the page on files are compiled and run with the documentation's.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/files.md")]
struct Files;
