//! Linear algebra of [`Array`]: methods that record factorisations (`Op::Linear`) and read their parts by views, and
//! methods that are programs of other ops.
//!
//! In: arrays whose first two dimensions are matrices; further ones count pages. Out: arrays. Must hold: integers and
//! bools are converted to f64; an empty matrix reaches no tape: its results are written out here.

mod einsum;
mod factors;
mod programs;
mod solve;
mod spectrum;

pub use einsum::einsum;
pub use spectrum::MatrixNorm;

use super::handle::Array;
use super::record::{At, Input, as_floats, node};
use super::structure::whole;
use super::tape::Home;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{LinearOp, Meta, Op, Shape, View};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;

/// A matrix of floats per page, and where what is made of it is recorded.
struct Matrices<'h> {
    home: &'h Arc<Home>,
    array: Array,
    meta: Meta,
    at: At,
}

impl<'h> Matrices<'h> {
    /// An array as matrices of floats.
    fn of(home: &'h Arc<Home>, array: &Array, at: At) -> Result<Matrices<'h>> {
        let array = as_floats(home, array, at)?;
        let meta = array.meta()?.clone();
        Ok(Matrices { home, array, meta, at })
    }

    /// The same, of square matrices.
    ///
    /// # Errors
    /// `ErrorKind::Shape` for others.
    fn square(home: &'h Arc<Home>, array: &Array, at: At) -> Result<Matrices<'h>> {
        let matrices = Matrices::of(home, array, at)?;
        let (m, n) = matrices.extents();
        if m != n {
            return Err(Error::new(
                ErrorKind::Shape,
                format!("{} is not square: {m} rows, {n} columns", matrices.meta.shape),
            ));
        }
        Ok(matrices)
    }

    /// Rows and columns.
    fn extents(&self) -> (usize, usize) {
        (self.meta.shape.dim(0), self.meta.shape.dim(1))
    }

    /// The shape of as many pages of other extents.
    fn pages_of(&self, rows: usize, columns: usize) -> Result<Shape> {
        pages_of(&self.meta.shape, rows, columns)
    }

    /// What an op makes of the matrices.
    fn op(&self, op: LinearOp) -> Result<Array> {
        let (m, n) = self.extents();
        let (rows, columns) = op.extents(m, n, 0);
        let meta = Meta { dtype: self.meta.dtype, shape: self.pages_of(rows, columns)? };
        Ok(node(self.home, Op::Linear(op), &[Input::Array(&self.array)], meta, self.at))
    }

    /// Zeros of as many pages of other extents, or, where `one` is, ones on the diagonal.
    fn written(&self, rows: usize, columns: usize, op: Op) -> Result<Array> {
        let meta = Meta { dtype: self.meta.dtype, shape: self.pages_of(rows, columns)? };
        Ok(node(self.home, op, &[], meta, self.at))
    }

    /// Rows and columns of an array of pages.
    fn part(&self, array: &Array, rows: Range<usize>, columns: Range<usize>) -> Result<Array> {
        part(array, rows, columns, self.at)
    }

    /// A part of each page as a matrix of other extents: `rows` of an array of columns.
    fn unpacked(&self, array: &Array, rows: Range<usize>, m: usize, n: usize) -> Result<Array> {
        let column = self.part(array, rows, 0..1)?;
        Ok(column.view(self.home, View::Reshape, self.pages_of(m, n)?, self.at))
    }

    /// The diagonal of the first columns of each page, as a column.
    fn diagonal(&self, array: &Array) -> Result<Array> {
        let shape = &array.meta()?.shape;
        let (m, columns) = (shape.dim(0), shape.dim(1));
        let k = self.meta.shape.dim(0).min(self.meta.shape.dim(1));
        let column = array.view(self.home, View::Reshape, self.pages_of(m * columns, 1)?, self.at);
        let mut dims = whole(&column.meta()?.shape);
        dims[0].step = m as isize + 1;
        dims[0].len = k;
        column.sliced(self.home, dims, self.at)
    }
}

/// The shape of pages of other extents, as many as `shape` has.
fn pages_of(shape: &Shape, rows: usize, columns: usize) -> Result<Shape> {
    let mut dims: SmallVec<[usize; 4]> = SmallVec::from_slice(&[rows, columns]);
    dims.extend((2..shape.axes()).map(|d| shape.dim(d)));
    Shape::new(&dims)
}

/// Rows and columns of an array of pages.
fn part(array: &Array, rows: Range<usize>, columns: Range<usize>, at: At) -> Result<Array> {
    array.slice_dim(0, rows.start, rows.len(), at)?.slice_dim(1, columns.start, columns.len(), at)
}
