//! Factorisations by elimination and by reflections.

use super::Matrices;
use crate::array::handle::Array;
use crate::array::record::{At, cast_in, derive};
use crate::array::structure::zeros;
use crate::error::Result;
use crate::graph::{DType, LinearOp, Meta, Op};
use std::panic::Location;

impl Array {
    /// The lower factor `l` of symmetric, positive definite matrices, per page: `l.matmul(&l.t())` is the matrix. The
    /// lower triangle is read, the upper one taken to be its mirror image; above the diagonal, `l` is zero.
    ///
    /// Where a pivot is zero, negative, infinite or NaN, the result carries a fault (`ErrorKind::Domain`), which is
    /// read with the gather. One page that has no factor is a fault of all of them.
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

    /// The factors of `m` by `n` matrices by elimination with rows exchanged, per page: `(l, u, rows)`, where `l` is
    /// `m` by `k` with a unit diagonal, `u` is `k` by `n`, and `k` is the smaller of `m` and `n`. Row `i` of `l.matmul(&u)`
    /// is row `rows[i]` (u32, a column) of the matrix. A singular matrix has such factors, too: `u` has a zero on its
    /// diagonal then.
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
        let packed = packed(self, LinearOp::Lu, "lu", at);
        let lower = derive(&[self, &packed], "lu", at, |home, _| {
            let matrices = Matrices::of(home, self, at)?;
            let (m, n) = matrices.extents();
            let k = m.min(n);
            let below = matrices.part(&packed, 0..m, 0..k)?.tril(-1);
            Ok(if k == 0 { below } else { below + matrices.written(m, k, Op::Eye)? })
        });
        let upper = derive(&[self, &packed], "lu", at, |home, _| {
            let matrices = Matrices::of(home, self, at)?;
            let (m, n) = matrices.extents();
            Ok(matrices.part(&packed, 0..m.min(n), 0..n)?.triu(0))
        });
        let rows = derive(&[self, &packed], "lu", at, |home, _| {
            let matrices = Matrices::of(home, self, at)?;
            let (m, n) = matrices.extents();
            Ok(cast_in(home, &matrices.part(&packed, 0..m, n..n + 1)?, DType::U32, at))
        });
        (lower, upper, rows)
    }

    /// An orthogonal and an upper triangular factor of `m` by `n` matrices, per page: `(q, r)` with `q.matmul(&r)` the
    /// matrix. With `k` the smaller of `m` and `n`, `q` is `m` by `k` with orthonormal columns, and `r` is `k` by `n`.
    /// They are made by reflections, so that columns may depend on each other.
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

    /// As [`Array::qr`], with a square `q`, and `r` of the matrix's extents.
    #[track_caller]
    pub fn qr_full(&self) -> (Array, Array) {
        qr(self, true, Location::caller())
    }
}

/// What an op makes of matrices. Of empty ones it is what stands for an elimination in no steps.
pub(super) fn packed(array: &Array, op: LinearOp, name: &'static str, at: At) -> Array {
    derive(&[array], name, at, |home, metas| {
        let matrices = Matrices::of(home, array, at)?;
        if metas[0].elements() > 0 {
            return matrices.op(op);
        }
        let (m, n) = matrices.extents();
        let (rows, columns) = op.extents(m, n, 0);
        let meta = Meta { dtype: matrices.meta.dtype, shape: matrices.pages_of(rows, columns)? };
        let empty = zeros(home, meta, at);
        // An identity in front of no column; rows in order, no sign.
        match op {
            LinearOp::Qr { full: true } if rows > 0 => matrices.written(rows, columns, Op::Eye),
            LinearOp::Lu if rows > 0 => in_order(&matrices, &empty),
            LinearOp::Cholesky | LinearOp::Lu | LinearOp::SolveTriangular(_) | LinearOp::Qr { .. } => Ok(empty),
            LinearOp::Eigh { .. } | LinearOp::Eig | LinearOp::Svd { .. } => Ok(empty),
        }
    })
}

/// The numbers of rows, and a column of ones, per page.
fn in_order(matrices: &Matrices<'_>, empty: &Array) -> Result<Array> {
    let ones = empty + 1.0;
    let rows = ones.cumsum(0) - 1.0;
    let m = matrices.extents().0;
    Ok(ones.assign((0..m, 0), &matrices.part(&rows, 0..m, 0..1)?))
}

fn qr(array: &Array, full: bool, at: At) -> (Array, Array) {
    let packed = packed(array, LinearOp::Qr { full }, "qr", at);
    let sizes = |matrices: &Matrices<'_>| {
        let (m, n) = matrices.extents();
        (m, n, if full { m } else { m.min(n) })
    };
    let orthogonal = derive(&[array, &packed], "qr", at, |home, _| {
        let matrices = Matrices::of(home, array, at)?;
        let (m, _, q) = sizes(&matrices);
        matrices.part(&packed, 0..m, 0..q)
    });
    let upper = derive(&[array, &packed], "qr", at, |home, _| {
        let matrices = Matrices::of(home, array, at)?;
        let (_, n, q) = sizes(&matrices);
        matrices.part(&packed, 0..q, q..q + n)
    });
    (orthogonal, upper)
}
