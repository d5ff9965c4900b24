//! Factorisations by elimination and by reflections.

use super::{Matrices, Pages, read};
use crate::array::handle::Array;
use crate::array::record::{At, derive};
use crate::error::Result;
use crate::graph::{DType, LinearOp, Meta, Shape};
use std::panic::Location;

impl Array {
    /// The lower factor `l` of symmetric, positive definite matrices, for each page: `l.matmul(&l.t())` is the matrix.
    /// Only the lower triangle is read, and the upper one is taken to be its mirror image. Above the diagonal, `l` is
    /// zero.
    ///
    /// If a pivot is zero, negative, infinite or NaN, the result carries a fault (`ErrorKind::Domain`), which the
    /// gather returns. If one page has no factor, the whole result carries the fault.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking().unwrap();
    /// # let s = rt.session("cholesky").open();
    /// let a = s.from_row_major(&[4.0, 2.0, 2.0, 5.0], [2, 2]).unwrap();
    /// let l = futures::executor::block_on(a.cholesky().gather::<f64>()).unwrap();
    /// assert_eq!(l.as_slice(), [2.0, 1.0, 0.0, 2.0]);
    /// ```
    #[track_caller]
    pub fn cholesky(&self) -> Array {
        let at = Location::caller();
        derive(&[self], "cholesky", at, |home, _| Matrices::square(home, self, at)?.op(LinearOp::Cholesky))
    }

    /// The factors of `m` by `n` matrices by elimination with exchanged rows, for each page: `(l, u, rows)`, where `l`
    /// is `m` by `k` with a unit diagonal, `u` is `k` by `n`, and `k` is the smaller of `m` and `n`. Row `i` of
    /// `l.matmul(&u)` is row `rows[i]` (u32, a column) of the matrix. A singular matrix has such factors, too; then `u`
    /// has a zero on its diagonal.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking().unwrap();
    /// # let s = rt.session("lu").open();
    /// let a = s.from_row_major(&[1.0, 2.0, 4.0, 4.0], [2, 2]).unwrap();
    /// let (l, u, rows) = a.lu();
    /// let back = l.matmul(&u) - a.take_dim(0, &rows);
    /// assert_eq!(futures::executor::block_on(back.abs().sum(..).item::<f64>()).unwrap(), 0.0);
    /// ```
    #[track_caller]
    pub fn lu(&self) -> (Array, Array, Array) {
        let at = Location::caller();
        let all = packed(self, LinearOp::Lu, "lu", at);
        let lower = read(self, &all, "lu", at, |pages| {
            let (m, n) = pages.extents();
            let k = m.min(n);
            let below = pages.part(&all, 0..m, 0..k)?.triangle(false, -1, at);
            if k == 0 { Ok(below) } else { pages.recorder.add(&below, &pages.identity(m, k)?) }
        });
        let upper = read(self, &all, "lu", at, |pages| {
            let (m, n) = pages.extents();
            Ok(pages.part(&all, 0..m.min(n), 0..n)?.triangle(true, 0, at))
        });
        let rows = read(self, &all, "lu", at, |pages| {
            let (m, n) = pages.extents();
            pages.recorder.cast(&pages.part(&all, 0..m, n..n + 1)?, DType::U32)
        });
        (lower, upper, rows)
    }

    /// An orthogonal and an upper triangular factor of `m` by `n` matrices, for each page: `(q, r)`, where
    /// `q.matmul(&r)` is the matrix. With `k` the smaller of `m` and `n`, `q` is `m` by `k` with orthonormal columns,
    /// and `r` is `k` by `n`. They are computed by reflections, so the columns of the matrix may be linearly dependent.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking().unwrap();
    /// # let s = rt.session("qr").open();
    /// let a = s.randn::<f64>([5, 3]);
    /// let (q, r) = a.qr();
    /// let error = (q.matmul(&r) - &a).norm(..);
    /// assert!(futures::executor::block_on(error.item::<f64>()).unwrap() < 1e-14);
    /// ```
    #[track_caller]
    pub fn qr(&self) -> (Array, Array) {
        qr(self, false, Location::caller())
    }

    /// As [`Array::qr`], with columns in an order that makes the diagonal of `r` descend in magnitude: `(q, r,
    /// columns)`, where column `j` of `q.matmul(&r)` is column `columns[j]` (u32, a row for each page, `[1, n, ..]`) of
    /// the matrix. Each step takes the column that is farthest from the span of those before it, so that a matrix of
    /// rank `p` has elements about as small as rounding errors behind row `p` of `r`. For a matrix that is not finite,
    /// both factors are NaN and the columns are in order. It is computed on the host.
    ///
    /// Derivatives are those of [`Array::qr`] of the matrix with its columns in this order, which is taken as constant.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking().unwrap();
    /// # let s = rt.session("qr").open();
    /// let a = s.from_row_major(&[1.0, 4.0, 0.0, 0.0, 3.0, 2.0], [2, 3]).unwrap();
    /// let (q, r, columns) = a.qr_pivoted();
    /// assert_eq!(futures::executor::block_on(columns.gather::<u32>()).unwrap().as_slice(), [1, 2, 0]);
    /// let error = (q.matmul(&r) - a.take_dim(1, &columns)).norm(..);
    /// assert!(futures::executor::block_on(error.item::<f64>()).unwrap() < 1e-14);
    /// ```
    #[track_caller]
    pub fn qr_pivoted(&self) -> (Array, Array, Array) {
        let at = Location::caller();
        let all = packed(self, LinearOp::QrPivoted, "qr_pivoted", at);
        let sizes = |pages: &Pages<'_>| {
            let (m, n) = pages.extents();
            (m, n, m.min(n))
        };
        let orthogonal = read(self, &all, "qr_pivoted", at, |pages| {
            let (m, _, k) = sizes(pages);
            pages.unpacked(&all, 0..m * k, m, k)
        });
        let upper = read(self, &all, "qr_pivoted", at, |pages| {
            let (m, n, k) = sizes(pages);
            pages.unpacked(&all, m * k..m * k + k * n, k, n)
        });
        let columns = read(self, &all, "qr_pivoted", at, |pages| {
            let (m, n, k) = sizes(pages);
            let first = m * k + k * n;
            pages.recorder.cast(&pages.unpacked(&all, first..first + n, 1, n)?, DType::U32)
        });
        (orthogonal, upper, columns)
    }

    /// As [`Array::qr`], but `q` is square, and `r` has the extents of the matrix.
    #[track_caller]
    pub fn qr_full(&self) -> (Array, Array) {
        qr(self, true, Location::caller())
    }
}

/// Records `op` on an array of matrices. An empty matrix gets the result of an elimination without steps.
pub(super) fn packed(array: &Array, op: LinearOp, name: &'static str, at: At) -> Array {
    derive(&[array], name, at, |home, metas| {
        let matrices = Matrices::of(home, array, at)?;
        if metas[0].elements() > 0 {
            return matrices.op(op);
        }
        let pages = &matrices.pages;
        let (m, n) = pages.extents();
        let (rows, columns) = op.extents(m, n, 0);
        let meta = Meta { dtype: pages.meta.dtype, shape: pages.pages_of(rows, columns)? };
        // The orthogonal factor is an identity, followed by no column; the rows or columns are in order, with no sign.
        match op {
            LinearOp::Qr { full: true } if rows > 0 => pages.identity(rows, columns),
            LinearOp::Lu if meta.elements() > 0 => in_order(pages, rows),
            LinearOp::Cholesky | LinearOp::Lu | LinearOp::SolveTriangular(_) | LinearOp::Qr { .. } => {
                pages.recorder.zeros(meta)
            }
            LinearOp::QrPivoted if meta.elements() > 0 => in_order_of_columns(pages, n),
            LinearOp::QrPivoted | LinearOp::Recurrence { .. } => pages.recorder.zeros(meta),
            LinearOp::Eigh { .. } | LinearOp::Eig | LinearOp::Svd { .. } => pages.recorder.zeros(meta),
        }
    })
}

/// The numbers of `n` columns, as a column for each page.
fn in_order_of_columns(pages: &Pages<'_>, n: usize) -> Result<Array> {
    let r = pages.recorder;
    let columns = r.cast(&r.positions(Shape::new(&[n])?)?, pages.meta.dtype)?;
    r.expand(&columns, &pages.pages_of(n, 1)?)
}

/// As [`packed`], for square matrices.
pub(super) fn square_packed(array: &Array, op: LinearOp, name: &'static str, at: At) -> Array {
    derive(&[array], name, at, |home, _| packed(&Matrices::square(home, array, at)?.array, op, name, at).checked())
}

/// The numbers of `m` rows, and a column of ones, for each page.
fn in_order(pages: &Pages<'_>, m: usize) -> Result<Array> {
    let r = pages.recorder;
    let meta = Meta { dtype: pages.meta.dtype, shape: pages.pages_of(m, 1)? };
    let rows = r.cast(&r.positions(Shape::new(&[m])?)?, meta.dtype)?;
    r.join(1, &[&r.expand(&rows, &meta.shape)?, &r.full(meta, 1.0)?])
}

/// Both factors, by reflections.
pub(super) fn qr(array: &Array, full: bool, at: At) -> (Array, Array) {
    let all = packed(array, LinearOp::Qr { full }, "qr", at);
    let sizes = |pages: &Pages<'_>| {
        let (m, n) = pages.extents();
        (m, n, if full { m } else { m.min(n) })
    };
    let orthogonal = read(array, &all, "qr", at, |pages| {
        let (m, _, q) = sizes(pages);
        pages.part(&all, 0..m, 0..q)
    });
    let upper = read(array, &all, "qr", at, |pages| {
        let (_, n, q) = sizes(pages);
        pages.part(&all, 0..q, q..q + n)
    });
    (orthogonal, upper)
}
