//! Linear algebra of [`Array`]: methods that record factorisations (`Op::Linear`) and read their parts by views, and
//! methods that record several other ops.
//!
//! In: arrays whose first two dimensions are matrices; further dimensions count pages. Out: arrays. Must hold: integers
//! and bools are converted to f64; an empty matrix reaches no tape, and its results are written out here; every op is
//! recorded at the source line that called the method.

mod einsum;
mod factors;
mod programs;
mod solve;
mod spaces;
mod spectrum;

pub use einsum::einsum;
pub use spectrum::MatrixNorm;

use super::handle::Array;
use super::record::{At, cast_in, derive, float_dtype};
use super::structure::whole;
use super::tape::Home;
use crate::array::recorder::Recorder;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{LinearOp, Meta, Op, Shape};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;

/// The float dtype and the shape of pages of matrices, and a recorder for ops on them.
struct Pages<'h> {
    recorder: Recorder<'h>,
    meta: Meta,
}

impl<'h> Pages<'h> {
    fn of(home: &'h Arc<Home>, array: &Array, at: At) -> Result<Pages<'h>> {
        let meta = array.meta()?;
        let dtype = float_dtype(home, meta.dtype)?;
        Ok(Pages { recorder: Recorder { home, at }, meta: Meta { dtype, shape: meta.shape.clone() } })
    }

    /// Rows and columns.
    fn extents(&self) -> (usize, usize) {
        (self.meta.shape.dim(0), self.meta.shape.dim(1))
    }

    /// The shape of the same number of pages with other extents.
    fn pages_of(&self, rows: usize, columns: usize) -> Result<Shape> {
        pages_of(&self.meta.shape, rows, columns)
    }

    /// The same number of pages with other extents, with ones on the diagonal and zeros elsewhere.
    fn identity(&self, rows: usize, columns: usize) -> Result<Array> {
        let meta = Meta { dtype: self.meta.dtype, shape: self.pages_of(rows, columns)? };
        self.recorder.op(Op::Eye, &[], meta)
    }

    /// A range of rows and columns of each page of an array.
    fn part(&self, array: &Array, rows: Range<usize>, columns: Range<usize>) -> Result<Array> {
        part(&self.recorder, array, rows, columns)
    }

    /// Reads `rows` of the first column of each page as a matrix of `m` by `n`.
    fn unpacked(&self, array: &Array, rows: Range<usize>, m: usize, n: usize) -> Result<Array> {
        self.recorder.reshape(&self.part(array, rows, 0..1)?, self.pages_of(m, n)?)
    }

    /// The diagonal of the first columns of each page, as a column.
    fn diagonal(&self, array: &Array) -> Result<Array> {
        let shape = array.shape()?;
        let (m, columns) = (shape.dim(0), shape.dim(1));
        let k = self.meta.shape.dim(0).min(self.meta.shape.dim(1));
        let column = self.recorder.reshape(array, self.pages_of(m * columns, 1)?)?;
        let mut dims = whole(column.shape()?);
        dims[0].step = m as isize + 1;
        dims[0].len = k;
        self.recorder.slice(&column, &dims)
    }
}

/// Matrices of floats, one for each page.
struct Matrices<'h> {
    pages: Pages<'h>,
    array: Array,
}

impl<'h> Matrices<'h> {
    /// Converts an array to matrices of floats.
    fn of(home: &'h Arc<Home>, array: &Array, at: At) -> Result<Matrices<'h>> {
        let pages = Pages::of(home, array, at)?;
        Ok(Matrices { array: cast_in(home, array, pages.meta.dtype, at), pages })
    }

    /// The same, for square matrices.
    ///
    /// # Errors
    /// `ErrorKind::Shape` if they are not square.
    fn square(home: &'h Arc<Home>, array: &Array, at: At) -> Result<Matrices<'h>> {
        let matrices = Matrices::of(home, array, at)?;
        must_be_square(&matrices.pages.meta.shape)?;
        Ok(matrices)
    }

    /// Records an op of linear algebra on these matrices.
    fn op(&self, op: LinearOp) -> Result<Array> {
        let (m, n) = self.pages.extents();
        let (rows, columns) = op.extents(m, n, 0);
        let meta = Meta { dtype: self.pages.meta.dtype, shape: self.pages.pages_of(rows, columns)? };
        self.pages.recorder.op(Op::Linear(op), &[&self.array], meta)
    }
}

/// Reads a part of `all`, the value of an op on the matrices of an array.
fn read(
    array: &Array,
    all: &Array,
    name: &'static str,
    at: At,
    part: impl FnOnce(&Pages<'_>) -> Result<Array>,
) -> Array {
    derive(&[array, all], name, at, |home, _| part(&Pages::of(home, array, at)?))
}

/// Checks that matrices have as many rows as columns.
///
/// # Errors
/// `ErrorKind::Shape` if they do not.
fn must_be_square(shape: &Shape) -> Result<()> {
    let (m, n) = (shape.dim(0), shape.dim(1));
    if m == n {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Shape, format!("{shape} is not square: {m} rows, {n} columns")))
}

/// The shape of as many pages as `shape` has, with other extents.
pub(in crate::array) fn pages_of(shape: &Shape, rows: usize, columns: usize) -> Result<Shape> {
    let mut dims: SmallVec<[usize; 4]> = SmallVec::from_slice(&[rows, columns]);
    dims.extend((2..shape.axes()).map(|d| shape.dim(d)));
    Shape::new(&dims)
}

/// A range of rows and columns of each page of an array.
pub(in crate::array) fn part(
    recorder: &Recorder<'_>,
    array: &Array,
    rows: Range<usize>,
    columns: Range<usize>,
) -> Result<Array> {
    let Recorder { home, at } = *recorder;
    array.slice_dim(home, 0, rows.start, rows.len(), at)?.slice_dim(home, 1, columns.start, columns.len(), at)
}
