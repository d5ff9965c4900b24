//! [`Source`]: an array in a file, known by its header.

use crate::AnyArray;
#[cfg(feature = "csv")]
use crate::csv;
use crate::element::by_dtype;
use crate::fill;
use crate::layout::Layout;
use crate::pieces::Pieces;
use crate::threads::off_thread;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidemill::{DType, Result, Session};

/// An array in a file. Of the file, only its header was read, and nothing is held open: it must not change until it has
/// been read.
#[derive(Clone, Debug)]
pub struct Source(pub(crate) Arc<Facts>);

#[derive(Debug)]
pub(crate) struct Facts {
    pub path: PathBuf,
    pub layout: Layout,
    pub place: Place,
    pub columns: Vec<String>,
}

/// Where the elements are.
#[derive(Debug)]
pub(crate) enum Place {
    /// From this byte of the file on.
    At(u64),
    /// In a member of an archive, behind so many bytes.
    #[cfg(feature = "npz")]
    Member { index: usize, behind: u64 },
    /// In the cells of a table.
    #[cfg(feature = "csv")]
    Table(csv::Options),
}

impl Source {
    pub(crate) fn new(path: &Path, layout: Layout, place: Place) -> Source {
        Source(Arc::new(Facts { path: path.to_owned(), layout, place, columns: Vec::new() }))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The extents in the file. An array has at least two: `[n]` becomes `[n, 1]`.
    pub fn dims(&self) -> &[usize] {
        &self.0.layout.dims
    }

    /// The type of the array's elements; of a complex array, of their parts.
    pub fn dtype(&self) -> DType {
        self.0.layout.kind.dtype()
    }

    /// Whether the numbers are complex.
    pub fn is_complex(&self) -> bool {
        self.0.layout.kind.is_complex()
    }

    /// The type in the file: `f16`, `c128`, …
    pub fn stored_as(&self) -> &'static str {
        self.0.layout.kind.name()
    }

    /// Whether the file holds the elements in row-major order.
    pub fn is_row_major(&self) -> bool {
        self.0.layout.row_major
    }

    /// The names of a table's columns, if it has a header.
    pub fn columns(&self) -> &[String] {
        &self.0.columns
    }

    /// Reads the array. Its elements are read straight into memory that the device reads, or that the host device
    /// keeps; where the host's budget is too small for that, they go through it in pieces of at most 64 MiB, and the
    /// array is put together on its device.
    ///
    /// # Errors
    /// `ErrorKind::Format` where the file ends too early, `ErrorKind::TooLarge` and `ErrorKind::Rank` where no array is
    /// like that (read it with [`Source::pieces`]), `ErrorKind::OutOfMemory` where the runtime has no memory for it;
    /// `ErrorKind::Io`; those of [`Session::upload_async`].
    pub async fn read(&self, s: &Session) -> Result<AnyArray> {
        let (source, s) = (self.clone(), s.clone());
        off_thread(move |stop| by_dtype!(source.dtype(), T => fill::read::<T>(&source, &s, stop))).await
    }

    /// Reads the array in pieces of about so many bytes of the file, along the dimension in which they follow each
    /// other there: rows of a row-major file, columns of a column-major one. The file may be of any size. The next
    /// piece is read while the program computes with the one before it.
    pub fn pieces(&self, s: &Session, bytes: usize) -> Pieces {
        Pieces::start(self.clone(), s.clone(), bytes)
    }
}
