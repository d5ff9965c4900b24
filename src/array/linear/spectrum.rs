//! Eigenvalues and singular values, and methods that are computed from them.

use super::factors::{packed, square_packed};
use super::{Matrices, Pages, read};
use crate::array::handle::Array;
use crate::array::record::{At, derive};
use crate::array::recorder::Recorder;
use crate::error::Result;
use crate::graph::{ElementOp, LinearOp, Meta, Nan, ReduceOp};
use std::panic::Location;

/// A norm of matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatrixNorm {
    /// The greatest sum of the magnitudes in a column.
    One,
    /// The greatest sum of the magnitudes in a row.
    Infinity,
    /// The Euclidean norm of all elements.
    Frobenius,
    /// The greatest singular value.
    Two,
    /// The sum of the singular values.
    Nuclear,
}

impl Array {
    /// The eigenvalues (ascending, a column) and the eigenvectors (orthonormal columns) of symmetric matrices, for each
    /// page: `(values, vectors)`. Only the lower triangle is read. For a matrix that is not finite, all are NaN. They
    /// are computed on the host.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking().unwrap();
    /// # let s = rt.session("eigh").open();
    /// let a = s.from_row_major(&[2.0, 1.0, 1.0, 2.0], [2, 2]).unwrap();
    /// let (values, vectors) = a.eigh();
    /// let error = (a.matmul(&vectors) - &vectors * &values.t()).norm(..);
    /// assert!(futures::executor::block_on(error.item::<f64>()).unwrap() < 1e-14);
    /// ```
    #[track_caller]
    pub fn eigh(&self) -> (Array, Array) {
        let at = Location::caller();
        let all = square_packed(self, LinearOp::Eigh { vectors: true }, "eigh", at);
        let n = |pages: &Pages<'_>| pages.extents().0;
        let values = read(self, &all, "eigh", at, |pages| pages.part(&all, 0..n(pages), 0..1));
        let vectors = read(self, &all, "eigh", at, |pages| pages.part(&all, 0..n(pages), 1..n(pages) + 1));
        (values, vectors)
    }

    /// The eigenvalues of symmetric matrices alone, as by [`Array::eigh`].
    #[track_caller]
    pub fn eigvalsh(&self) -> Array {
        square_packed(self, LinearOp::Eigh { vectors: false }, "eigvalsh", Location::caller())
    }

    /// The eigenvalues (a column) and the eigenvectors (columns of norm 1) of square matrices, for each page, each as
    /// its real and its imaginary part: `((re, im), (re, im))`. Conjugate pairs are neighbours. For a matrix that is
    /// not finite, all are NaN. They are computed on the host.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking().unwrap();
    /// # let s = rt.session("eig").open();
    /// let turn = s.from_row_major(&[0.0, -1.0, 1.0, 0.0], [2, 2]).unwrap();
    /// let ((re, im), _) = turn.eig();
    /// let error = (re.abs() + (im.abs() - 1.0).abs()).max_over(..);
    /// assert!(futures::executor::block_on(error.item::<f64>()).unwrap() < 1e-14);
    /// ```
    #[track_caller]
    pub fn eig(&self) -> ((Array, Array), (Array, Array)) {
        let at = Location::caller();
        let all = square_packed(self, LinearOp::Eig, "eig", at);
        let part = |first: fn(usize) -> usize, last: fn(usize) -> usize| {
            read(self, &all, "eig", at, |pages| {
                let n = pages.extents().0;
                pages.part(&all, 0..n, first(n)..last(n))
            })
        };
        let values = (part(|_| 0, |_| 1), part(|_| 1, |_| 2));
        (values, (part(|_| 2, |n| n + 2), part(|n| n + 2, |n| 2 * n + 2)))
    }

    /// The singular value decomposition of `m` by `n` matrices, for each page: `(u, values, v)`, where `(&u *
    /// &values.t()).matmul(&v.t())` is the matrix. With `k` the smaller of `m` and `n`, `u` is `m` by `k` and `v` is
    /// `n` by `k`, both with orthonormal columns; the values are a column, descending. For a matrix that is not finite,
    /// all are NaN. They are computed on the host.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking().unwrap();
    /// # let s = rt.session("svd").open();
    /// let a = s.randn::<f64>([4, 6]);
    /// let (u, values, v) = a.svd();
    /// let error = ((&u * &values.t()).matmul(&v.t()) - &a).norm(..);
    /// assert!(futures::executor::block_on(error.item::<f64>()).unwrap() < 1e-13);
    /// ```
    #[track_caller]
    pub fn svd(&self) -> (Array, Array, Array) {
        svd(self, Location::caller())
    }

    /// The singular values of matrices alone, as by [`Array::svd`].
    #[track_caller]
    pub fn singular_values(&self) -> Array {
        singular_values(self, "singular_values", Location::caller())
    }

    /// The pseudoinverse of `m` by `n` matrices, `[n, m, ..]`, by [`Array::svd`]. Singular values up to the greatest one
    /// times `max(m, n)` times the dtype's epsilon count as zero.
    #[track_caller]
    pub fn pinv(&self) -> Array {
        let at = Location::caller();
        derive(&[self], "pinv", at, |home, metas| {
            let Matrices { pages, array } = Matrices::of(home, self, at)?;
            let r = pages.recorder;
            if metas[0].elements() == 0 {
                let (m, n) = pages.extents();
                return r.reshape(&array, pages.pages_of(n, m)?);
            }
            let (u, values, v) = svd(&array, at);
            let inverse = r.div(1.0, &values)?;
            let inverse = r.select(&counted(r, &values, &pages.meta)?, &inverse, 0.0)?;
            let scaled = r.mul(&v, &r.transpose(&inverse)?)?;
            r.matmul(&scaled, &r.transpose(&u)?)
        })
    }

    /// The rank of matrices, `[1, 1, ..]` (u32): the number of singular values that exceed the greatest one times
    /// `max(m, n)` times the dtype's epsilon.
    #[track_caller]
    pub fn rank(&self) -> Array {
        let at = Location::caller();
        derive(&[self], "rank", at, |home, metas| {
            let Matrices { pages, array } = Matrices::of(home, self, at)?;
            let r = pages.recorder;
            let counted = match metas[0].elements() {
                0 => r.reshape(self, pages.pages_of(0, 1)?)?,
                _ => counted(r, &singular_values(&array, "rank", at).checked()?, &pages.meta)?,
            };
            r.reduce(&counted, ReduceOp::CountNonzero, 1, Nan::Include)
        })
    }

    /// The condition number of matrices for the 2-norm, `[1, 1, ..]`: the greatest singular value over the least;
    /// infinite for a singular matrix, NaN for zeros. For a matrix without elements the result is a fault.
    #[track_caller]
    pub fn cond(&self) -> Array {
        let at = Location::caller();
        derive(&[self], "cond", at, |home, _| {
            let Matrices { pages, array } = Matrices::of(home, self, at)?;
            let (r, values) = (pages.recorder, singular_values(&array, "cond", at).checked()?);
            let extreme = |op| r.reduce(&values, op, 1, Nan::Omit);
            r.div(&extreme(ReduceOp::Max)?, &extreme(ReduceOp::Min)?)
        })
    }

    /// A norm of matrices, for each page: `[1, 1, ..]`; 0 for a matrix without elements. `Two` and `Nuclear` are
    /// computed from singular values, on the host.
    #[track_caller]
    pub fn matrix_norm(&self, norm: MatrixNorm) -> Array {
        let at = Location::caller();
        derive(&[self], "matrix_norm", at, |home, _| {
            let Matrices { pages, array } = Matrices::of(home, self, at)?;
            let (r, (m, n)) = (pages.recorder, pages.extents());
            if m * n == 0 {
                return r.reduce(&array, ReduceOp::Sum, 0b11, Nan::Include);
            }
            match norm {
                MatrixNorm::One => norm_of_lines(r, &array, 0),
                MatrixNorm::Infinity => norm_of_lines(r, &array, 1),
                MatrixNorm::Frobenius => r.reduce(&array, ReduceOp::Norm, 0b11, Nan::Include),
                MatrixNorm::Two => greatest(r, &singular_values(&array, "matrix_norm", at).checked()?, 0),
                MatrixNorm::Nuclear => {
                    let values = singular_values(&array, "matrix_norm", at).checked()?;
                    r.reduce(&values, ReduceOp::Sum, 1, Nan::Include)
                }
            }
        })
    }
}

/// The singular value decomposition.
pub(super) fn svd(array: &Array, at: At) -> (Array, Array, Array) {
    let all = packed(array, LinearOp::Svd { vectors: true }, "svd", at);
    let sizes = |pages: &Pages<'_>| {
        let (m, n) = pages.extents();
        (m, n, m.min(n))
    };
    let left = read(array, &all, "svd", at, |pages| {
        let (m, _, k) = sizes(pages);
        pages.unpacked(&all, k..k + m * k, m, k)
    });
    let values = read(array, &all, "svd", at, |pages| pages.part(&all, 0..sizes(pages).2, 0..1));
    let right = read(array, &all, "svd", at, |pages| {
        let (m, n, k) = sizes(pages);
        pages.unpacked(&all, k + m * k..k + m * k + n * k, n, k)
    });
    (left, values, right)
}

fn singular_values(array: &Array, name: &'static str, at: At) -> Array {
    packed(array, LinearOp::Svd { vectors: false }, name, at)
}

/// The greatest sum of magnitudes along a dimension (0 or 1) of each page.
pub(super) fn norm_of_lines(r: Recorder<'_>, array: &Array, dim: usize) -> Result<Array> {
    let magnitudes = r.apply(ElementOp::Abs, &mut [array.into()])?;
    greatest(r, &r.reduce(&magnitudes, ReduceOp::Sum, 1 << dim, Nan::Include)?, 1 - dim)
}

/// The greatest element along a dimension, NaN before all others.
fn greatest(r: Recorder<'_>, array: &Array, dim: usize) -> Result<Array> {
    r.reduce(array, ReduceOp::Max, 1 << dim, Nan::Include)
}

/// Whether each singular value is greater than rounding errors alone could make it.
pub(super) fn counted(r: Recorder<'_>, values: &Array, meta: &Meta) -> Result<Array> {
    let epsilon = if meta.dtype.is_wide() { f64::EPSILON } else { f32::EPSILON as f64 };
    let extent = meta.shape.dim(0).max(meta.shape.dim(1));
    let bound = r.mul(&greatest(r, values, 0)?, epsilon * extent as f64)?;
    r.binary(ElementOp::Gt, values, &bound)
}
