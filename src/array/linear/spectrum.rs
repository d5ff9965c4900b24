//! Eigenvalues and singular values, and what follows from them.

use super::Matrices;
use super::factors::packed;
use crate::array::handle::Array;
use crate::array::record::{At, derive};
use crate::error::Result;
use crate::graph::{LinearOp, Meta};
use std::panic::Location;

/// A norm of matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatrixNorm {
    /// The greatest sum of a column's magnitudes.
    One,
    /// The greatest sum of a row's magnitudes.
    Infinity,
    /// The Euclidean norm of all elements.
    Frobenius,
    /// The greatest singular value.
    Two,
    /// The sum of the singular values.
    Nuclear,
}

impl Array {
    /// The eigenvalues (ascending, a column) and the eigenvectors (orthonormal columns) of symmetric matrices, per page:
    /// `(values, vectors)`. The lower triangle is read. Of a matrix that is not finite, all are NaN. They are computed on
    /// the host.
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
        let n = |matrices: &Matrices<'_>| matrices.extents().0;
        let values = read(self, &all, "eigh", at, |m| m.part(&all, 0..n(m), 0..1));
        let vectors = read(self, &all, "eigh", at, |m| m.part(&all, 0..n(m), 1..n(m) + 1));
        (values, vectors)
    }

    /// The eigenvalues of symmetric matrices alone, as of [`Array::eigh`].
    #[track_caller]
    pub fn eigvalsh(&self) -> Array {
        square_packed(self, LinearOp::Eigh { vectors: false }, "eigvalsh", Location::caller())
    }

    /// The eigenvalues (a column) and the eigenvectors (columns of norm 1) of square matrices, per page, each as its real
    /// and its imaginary part: `((re, im), (re, im))`. Conjugate pairs are neighbours. Of a matrix that is not finite, all
    /// are NaN. They are computed on the host.
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
            read(self, &all, "eig", at, |m| {
                let n = m.extents().0;
                m.part(&all, 0..n, first(n)..last(n))
            })
        };
        let values = (part(|_| 0, |_| 1), part(|_| 1, |_| 2));
        (values, (part(|_| 2, |n| n + 2), part(|n| n + 2, |n| 2 * n + 2)))
    }

    /// The singular value decomposition of `m` by `n` matrices, per page: `(u, values, v)`, with
    /// `(&u * &values.t()).matmul(&v.t())` the matrix. With `k` the smaller of `m` and `n`, `u` is `m` by `k` and `v` is
    /// `n` by `k`, both with orthonormal columns; the values are a column, descending. Of a matrix that is not finite, all
    /// are NaN. They are computed on the host.
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
        let at = Location::caller();
        let all = packed(self, LinearOp::Svd { vectors: true }, "svd", at);
        let sizes = |matrices: &Matrices<'_>| {
            let (m, n) = matrices.extents();
            (m, n, m.min(n))
        };
        let left = read(self, &all, "svd", at, |matrices| {
            let (m, _, k) = sizes(matrices);
            matrices.unpacked(&all, k..k + m * k, m, k)
        });
        let values = read(self, &all, "svd", at, |matrices| matrices.part(&all, 0..sizes(matrices).2, 0..1));
        let right = read(self, &all, "svd", at, |matrices| {
            let (m, n, k) = sizes(matrices);
            matrices.unpacked(&all, k + m * k..k + m * k + n * k, n, k)
        });
        (left, values, right)
    }

    /// The singular values of matrices alone, as of [`Array::svd`].
    #[track_caller]
    pub fn singular_values(&self) -> Array {
        packed(self, LinearOp::Svd { vectors: false }, "singular_values", Location::caller())
    }

    /// The pseudoinverse of `m` by `n` matrices, `[n, m, ..]`, by [`Array::svd`]. Singular values up to the greatest one
    /// times `max(m, n)` times the dtype's epsilon count as zero.
    #[track_caller]
    pub fn pinv(&self) -> Array {
        let at = Location::caller();
        derive(&[self], "pinv", at, |home, metas| {
            let matrices = Matrices::of(home, self, at)?;
            if metas[0].elements() == 0 {
                let (m, n) = matrices.extents();
                return Ok(matrices.array.reshape(matrices.pages_of(n, m)));
            }
            let (u, values, v) = matrices.array.svd();
            let inverse = counted(&values, &matrices.meta).select(1.0 / &values, 0.0);
            Ok((&v * &inverse.t()).matmul(&u.t()))
        })
    }

    /// The rank of matrices, `[1, 1, ..]` (u32): how many singular values exceed the greatest one times `max(m, n)` times
    /// the dtype's epsilon.
    #[track_caller]
    pub fn rank(&self) -> Array {
        let at = Location::caller();
        derive(&[self], "rank", at, |home, metas| {
            let matrices = Matrices::of(home, self, at)?;
            if metas[0].elements() == 0 {
                return Ok(self.reshape(matrices.pages_of(0, 1)).count_nonzero(0));
            }
            Ok(counted(&matrices.array.singular_values(), &matrices.meta).count_nonzero(0))
        })
    }

    /// The condition of matrices for the 2-norm, `[1, 1, ..]`: the greatest singular value over the least; infinite for a
    /// singular matrix. A matrix without elements has none, which is a fault.
    #[track_caller]
    pub fn cond(&self) -> Array {
        let at = Location::caller();
        derive(&[self], "cond", at, |home, _| {
            let values = Matrices::of(home, self, at)?.array.singular_values();
            Ok(values.max_over(0) / values.min_over(0))
        })
    }

    /// A norm of matrices, per page: `[1, 1, ..]`. 0 of a matrix without elements. The last two are computed by singular
    /// values, on the host.
    #[track_caller]
    pub fn matrix_norm(&self, norm: MatrixNorm) -> Array {
        let at = Location::caller();
        derive(&[self], "matrix_norm", at, |home, _| {
            let matrices = Matrices::of(home, self, at)?;
            let a = &matrices.array;
            let (m, n) = matrices.extents();
            if m * n == 0 {
                return Ok(a.sum([0, 1]));
            }
            Ok(match norm {
                MatrixNorm::One => greatest(&a.abs().sum(0), 1),
                MatrixNorm::Infinity => greatest(&a.abs().sum(1), 0),
                MatrixNorm::Frobenius => a.norm([0, 1]),
                MatrixNorm::Two => greatest(&a.singular_values(), 0),
                MatrixNorm::Nuclear => a.singular_values().sum(0),
            })
        })
    }
}

/// The greatest element along a dimension, NaN before all others.
fn greatest(array: &Array, dim: usize) -> Array {
    use crate::graph::{Nan, ReduceOp};
    array.reduce(ReduceOp::Max, dim, Nan::Include)
}

/// Which singular values of a matrix are not zero but for rounding.
fn counted(values: &Array, meta: &Meta) -> Array {
    let epsilon = if meta.dtype.is_wide() { f64::EPSILON } else { f32::EPSILON as f64 };
    let extent = meta.shape.dim(0).max(meta.shape.dim(1));
    values.gt(&(greatest(values, 0) * (epsilon * extent as f64)))
}

fn square_packed(array: &Array, op: LinearOp, name: &'static str, at: At) -> Array {
    derive(&[array], name, at, |home, _| packed(&Matrices::square(home, array, at)?.array, op, name, at).checked())
}

/// A part of what an op made of matrices.
fn read(
    array: &Array,
    all: &Array,
    name: &'static str,
    at: At,
    of: impl FnOnce(&Matrices<'_>) -> Result<Array>,
) -> Array {
    derive(&[array, all], name, at, |home, _| of(&Matrices::of(home, array, at)?))
}
