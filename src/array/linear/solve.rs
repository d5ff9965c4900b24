//! Systems of linear equations, determinants and inverses.

use super::factors::packed;
use super::{Matrices, pages_of, part};
use crate::array::handle::Array;
use crate::array::record::{At, Input, cast_in, derive, node};
use crate::array::reduce::products_dtype;
use crate::array::strict;
use crate::array::structure::zeros;
use crate::array::tape::Home;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{DType, LinearOp, Meta, Op, Shape, Triangle, View, rules};
use std::panic::Location;
use std::sync::Arc;

impl Array {
    /// The solution `x` of `a.matmul(&x) == b` for triangular `a`, `[n, n, ..]`, and `b`, `[n, p, ..]`, per page, by
    /// substitution. `triangle` says which triangle of `a` is read, and how; the other one may hold anything.
    ///
    /// A zero on the diagonal is a fault (`ErrorKind::Domain`), which is read with the gather; a tiny number is not.
    ///
    /// ```
    /// # use tidemill::Triangle;
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking().unwrap();
    /// # let s = rt.session("triangular").open();
    /// let a = s.from_row_major(&[2.0, 0.0, 1.0, 4.0], [2, 2]).unwrap();
    /// let b = s.from_slice(&[2.0, 9.0], 2).unwrap();
    /// let x = a.solve_triangular(&b, Triangle::LOWER);
    /// assert_eq!(futures::executor::block_on(x.gather::<f64>()).unwrap().as_slice(), [1.0, 2.0]);
    /// ```
    #[track_caller]
    pub fn solve_triangular(&self, b: &Array, triangle: Triangle) -> Array {
        let at = Location::caller();
        derive(&[self, b], "solve_triangular", at, |home, metas| {
            let (a, b, shape) = system(home, "solve_triangular", [self, b], metas, at)?;
            substituted(home, &a, &b, triangle, shape, at)
        })
    }

    /// The solution `x` of `a.matmul(&x) == b` for `a`, `[n, n, ..]`, and `b`, `[n, p, ..]`, per page, by elimination
    /// with rows exchanged.
    ///
    /// A pivot that is exactly zero is a fault (`ErrorKind::Domain`), which is read with the gather. A matrix that is
    /// singular up to rounding gives the large numbers that elimination finds: ask [`Array::cond`] where that matters.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking().unwrap();
    /// # let s = rt.session("solve").open();
    /// let a = s.from_row_major(&[0.0, 2.0, 4.0, 4.0], [2, 2]).unwrap();
    /// let b = s.from_slice(&[2.0, 8.0], 2).unwrap();
    /// assert_eq!(futures::executor::block_on(a.solve(&b).gather::<f64>()).unwrap().as_slice(), [1.0, 1.0]);
    /// ```
    #[track_caller]
    pub fn solve(&self, b: &Array) -> Array {
        let at = Location::caller();
        derive(&[self, b], "solve", at, |home, metas| {
            let (a, b, shape) = system(home, "solve", [self, b], metas, at)?;
            eliminated(home, &a, &b, shape, at)
        })
    }

    /// The inverse of square matrices, per page; a fault as of [`Array::solve`] where there is none. To solve a system,
    /// call that: it takes less, and loses less.
    #[track_caller]
    pub fn inv(&self) -> Array {
        let at = Location::caller();
        derive(&[self], "inv", at, |home, metas| {
            let matrices = Matrices::square(home, self, at)?;
            if metas[0].elements() == 0 {
                return Ok(matrices.array);
            }
            let n = matrices.extents().0;
            let eye = matrices.written(n, n, Op::Eye)?;
            eliminated(home, &matrices.array, &eye, matrices.meta.shape.clone(), at)
        })
    }

    /// The determinant of square matrices, `[1, 1, ..]`: the product of the pivots, which overflows sooner than
    /// [`Array::slogdet`]; 1 of a matrix without elements.
    #[track_caller]
    pub fn det(&self) -> Array {
        let at = Location::caller();
        derive(&[self], "det", at, |home, _| {
            let Pivots { pivots, signs } = Pivots::of(home, self, at)?;
            Ok(pivots.prod(0) * signs.prod(0))
        })
    }

    /// The sign of the determinant of square matrices (-1, 0 or 1) and the logarithm of its magnitude, both
    /// `[1, 1, ..]`. Of a singular matrix these are 0 and -inf.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking().unwrap();
    /// # let s = rt.session("slogdet").open();
    /// let (sign, log) = (s.eye::<f64>(400) * -1e-3).slogdet();
    /// assert_eq!(futures::executor::block_on(sign.item::<f64>()).unwrap(), 1.0);
    /// let log = futures::executor::block_on(log.item::<f64>()).unwrap();
    /// assert!((log - 400.0 * 1e-3f64.ln()).abs() < 1e-9);
    /// ```
    #[track_caller]
    pub fn slogdet(&self) -> (Array, Array) {
        let at = Location::caller();
        let sign = derive(&[self], "slogdet", at, |home, _| {
            let Pivots { pivots, signs } = Pivots::of(home, self, at)?;
            Ok(pivots.sign().prod(0) * signs.prod(0))
        });
        let log = derive(&[self], "slogdet", at, |home, _| Ok(Pivots::of(home, self, at)?.pivots.abs().log().sum(0)));
        (sign, log)
    }

    /// The `x` that makes `a.matmul(&x) - b` least in the Euclidean norm, for `a`, `[m, n, ..]`, and `b`, `[m, p, ..]`,
    /// per page: `[n, p, ..]`. Where `a` has more columns than rows, the shortest of those that solve the system.
    ///
    /// It goes by [`Array::qr`], and takes `a` to have full rank: where a diagonal element of the upper factor is exactly
    /// zero, the result carries a fault (`ErrorKind::Domain`); [`Array::pinv`] serves a matrix of less rank.
    #[track_caller]
    pub fn lstsq(&self, b: &Array) -> Array {
        let at = Location::caller();
        derive(&[self, b], "lstsq", at, |home, metas| {
            let (a, b) = same_floats(home, "lstsq", [self, b], metas, at)?;
            let (m, n) = (metas[0].shape.dim(0), metas[0].shape.dim(1));
            let rows_left = pages_of(&metas[0].shape, n, m)?;
            let shape = rules::multiplied(&rows_left, &metas[1].shape)?;
            if metas[0].elements() == 0 || metas[1].elements() == 0 {
                return Ok(zeros(home, Meta { dtype: a.meta()?.dtype, shape }, at));
            }
            if m >= n {
                let (q, r) = a.qr();
                return substituted(home, &r, &q.t().matmul(&b), Triangle::UPPER, shape, at);
            }
            let (q, r) = a.t().qr();
            let short = rules::multiplied(&pages_of(&metas[0].shape, m, m)?, &metas[1].shape)?;
            Ok(q.matmul(&substituted(home, &r, &b, Triangle::UPPER.transposed(), short, at)?))
        })
    }
}

/// The pivots of square matrices and the signs of the exchanges, columns.
struct Pivots {
    pivots: Array,
    signs: Array,
}

impl Pivots {
    fn of(home: &Arc<Home>, array: &Array, at: At) -> Result<Pivots> {
        let matrices = Matrices::square(home, array, at)?;
        let n = matrices.extents().0;
        let factors = packed(&matrices.array, LinearOp::Lu, "lu", at).checked()?;
        Ok(Pivots { pivots: matrices.diagonal(&factors)?, signs: matrices.part(&factors, 0..n, n + 1..n + 2)? })
    }
}

/// Two arrays in the float dtype of their product.
fn same_floats(
    home: &Arc<Home>,
    name: &'static str,
    [a, b]: [&Array; 2],
    metas: &[&Meta],
    at: At,
) -> Result<(Array, Array)> {
    let dtype = products_dtype(name, metas)?;
    metas.iter().try_for_each(|own| strict::converted(home, own.dtype, dtype))?;
    Ok((cast_in(home, a, dtype, at), cast_in(home, b, dtype, at)))
}

/// A square matrix and right sides in one float dtype, and the shape of the solution.
fn system(
    home: &Arc<Home>,
    name: &'static str,
    [a, b]: [&Array; 2],
    metas: &[&Meta],
    at: At,
) -> Result<(Array, Array, Shape)> {
    let shape = &metas[0].shape;
    if shape.dim(0) != shape.dim(1) {
        let message = format!("{shape} is not square: {} rows, {} columns", shape.dim(0), shape.dim(1));
        return Err(Error::new(ErrorKind::Shape, message));
    }
    let result = rules::multiplied(shape, &metas[1].shape)?;
    let (a, b) = same_floats(home, name, [a, b], metas, at)?;
    Ok((a, b, result))
}

/// The solution of a triangular system, of a shape. The matrix may have further columns.
fn substituted(home: &Arc<Home>, a: &Array, b: &Array, triangle: Triangle, shape: Shape, at: At) -> Result<Array> {
    let meta = Meta { dtype: a.meta()?.dtype, shape };
    if meta.elements() == 0 {
        return Ok(zeros(home, meta, at));
    }
    let b = b.view(home, View::Broadcast, meta.shape.clone(), at);
    let own = &a.meta()?.shape;
    let pages: usize = own.dims().iter().skip(2).product();
    // One page serves all; several that expand are written out.
    let a = if pages == 1 {
        a.clone()
    } else {
        let expanded = pages_of(&meta.shape, own.dim(0), own.dim(1))?;
        a.view(home, View::Broadcast, expanded, at)
    };
    let op = Op::Linear(LinearOp::SolveTriangular(triangle));
    Ok(node(home, op, &[Input::Array(&a), Input::Array(&b)], meta, at))
}

/// The solution of a system, of a shape.
fn eliminated(home: &Arc<Home>, a: &Array, b: &Array, shape: Shape, at: At) -> Result<Array> {
    if shape.elements() == 0 {
        return Ok(zeros(home, Meta { dtype: a.meta()?.dtype, shape }, at));
    }
    let n = shape.dim(0);
    let factors = packed(a, LinearOp::Lu, "lu", at).checked()?;
    let rows = cast_in(home, &part(&factors, 0..n, n..n + 1, at)?, DType::U32, at);
    let rows = rows.view(home, View::Broadcast, shape.clone(), at);
    let b = b.view(home, View::Broadcast, shape.clone(), at);
    let meta = Meta { dtype: a.meta()?.dtype, shape: shape.clone() };
    let b = node(home, Op::TakeAlong { dim: 0 }, &[Input::Array(&b), Input::Array(&rows)], meta, at);
    let half = substituted(home, &factors, &b, Triangle::LOWER.with_unit_diagonal(), shape.clone(), at)?;
    substituted(home, &factors, &half, Triangle::UPPER, shape, at)
}
