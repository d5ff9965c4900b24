//! Systems of linear equations, determinants and inverses.

use super::factors::{packed, qr, square_packed};
use super::{Matrices, Pages, must_be_square, pages_of, part, read};
use crate::array::handle::Array;
use crate::array::record::derive;
use crate::array::recorder::Recorder;
use crate::error::Result;
use crate::graph::{DType, ElementOp, LinearOp, Meta, Nan, Op, ReduceOp, Shape, Triangle, View, rules};
use std::panic::Location;

impl Array {
    /// The solution `x` of `a.matmul(&x) == b` for triangular `a`, `[n, n, ..]`, and `b`, `[n, p, ..]`, for each page,
    /// by substitution. `triangle` says which triangle of `a` is read, and how; the other one may have any contents.
    ///
    /// A zero on the diagonal is a fault (`ErrorKind::Domain`), which the gather returns; a tiny number is not.
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
            let r = Recorder { home, at };
            let (a, b, shape) = system(r, "solve_triangular", [self, b], metas)?;
            substituted(r, &a, &b, triangle, shape)
        })
    }

    /// The solution `x` of `a.matmul(&x) == b` for `a`, `[n, n, ..]`, and `b`, `[n, p, ..]`, for each page, by
    /// elimination with exchanged rows.
    ///
    /// A pivot that is exactly zero is a fault (`ErrorKind::Domain`), which the gather returns. A matrix that is
    /// singular up to rounding gives the large numbers that elimination finds; [`Array::cond`] tells whether this is
    /// so.
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
            let r = Recorder { home, at };
            let (a, b, shape) = system(r, "solve", [self, b], metas)?;
            eliminated(r, &a, &b, shape)
        })
    }

    /// The inverse of square matrices, for each page; it carries a fault as [`Array::solve`] does if there is none. To
    /// solve a system, call [`Array::solve`], which is faster and more accurate.
    #[track_caller]
    pub fn inv(&self) -> Array {
        let at = Location::caller();
        derive(&[self], "inv", at, |home, _| inverse(Matrices::square(home, self, at)?))
    }

    /// The determinant of square matrices, `[1, 1, ..]`: the product of the pivots, which overflows sooner than
    /// [`Array::slogdet`]; 1 for a matrix without elements.
    #[track_caller]
    pub fn det(&self) -> Array {
        let at = Location::caller();
        let factors = square_packed(self, LinearOp::Lu, "det", at);
        read(self, &factors, "det", at, |pages| {
            let Pivots { pivots, signs } = Pivots::of(pages, &factors)?;
            pages.recorder.mul(&product(pages, &pivots)?, &product(pages, &signs)?)
        })
    }

    /// The sign of the determinant of square matrices (-1, 0 or 1) and the logarithm of its magnitude, both `[1, 1,
    /// ..]`. For a singular matrix these are 0 and -inf.
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
        let factors = square_packed(self, LinearOp::Lu, "slogdet", at);
        let sign = read(self, &factors, "slogdet", at, |pages| {
            let (r, Pivots { pivots, signs }) = (pages.recorder, Pivots::of(pages, &factors)?);
            let own = r.apply(ElementOp::Sign, &mut [(&pivots).into()])?;
            r.mul(&product(pages, &own)?, &product(pages, &signs)?)
        });
        let log = read(self, &factors, "slogdet", at, |pages| {
            let (r, Pivots { pivots, .. }) = (pages.recorder, Pivots::of(pages, &factors)?);
            let magnitudes = r.apply(ElementOp::Abs, &mut [(&pivots).into()])?;
            r.reduce(&r.apply(ElementOp::Log, &mut [(&magnitudes).into()])?, ReduceOp::Sum, 1, Nan::Include)
        });
        (sign, log)
    }

    /// The `x` that minimises `a.matmul(&x) - b` in the Euclidean norm, for `a`, `[m, n, ..]`, and `b`, `[m, p, ..]`,
    /// for each page: `[n, p, ..]`. If `a` has more columns than rows, it is the shortest of the `x` that solve the
    /// system.
    ///
    /// It is computed by [`Array::qr`], which requires `a` to have full rank: if a diagonal element of the upper factor
    /// is exactly zero, the result carries a fault (`ErrorKind::Domain`). Use [`Array::pinv`] for a matrix of lower
    /// rank.
    #[track_caller]
    pub fn lstsq(&self, b: &Array) -> Array {
        let at = Location::caller();
        derive(&[self, b], "lstsq", at, |home, metas| {
            let r = Recorder { home, at };
            let [a, b] = r.factors("lstsq", [self, b], metas)?;
            let (m, n) = (metas[0].shape.dim(0), metas[0].shape.dim(1));
            let rows_left = pages_of(&metas[0].shape, n, m)?;
            let shape = rules::multiplied(&rows_left, &metas[1].shape)?;
            if metas[0].elements() == 0 || metas[1].elements() == 0 {
                return r.zeros(Meta { dtype: a.dtype()?, shape });
            }
            if m >= n {
                let (q, upper) = qr(&a, false, at);
                return substituted(r, &upper, &r.matmul(&r.transpose(&q)?, &b)?, Triangle::UPPER, shape);
            }
            let (q, upper) = qr(&r.transpose(&a)?, false, at);
            let short = rules::multiplied(&pages_of(&metas[0].shape, m, m)?, &metas[1].shape)?;
            r.matmul(&q, &substituted(r, &upper, &b, Triangle::UPPER.transposed(), short)?)
        })
    }
}

/// The inverse of square matrices.
pub(super) fn inverse(matrices: Matrices<'_>) -> Result<Array> {
    let Matrices { pages, array } = matrices;
    if pages.meta.elements() == 0 {
        return Ok(array);
    }
    let n = pages.extents().0;
    let identity = pages.identity(n, n)?;
    eliminated(pages.recorder, &array, &identity, pages.meta.shape)
}

/// The pivots of square matrices and the signs of the exchanges, as columns.
struct Pivots {
    pivots: Array,
    signs: Array,
}

impl Pivots {
    /// Reads them from the factors of an elimination.
    fn of(pages: &Pages<'_>, factors: &Array) -> Result<Pivots> {
        let n = pages.extents().0;
        Ok(Pivots { pivots: pages.diagonal(factors)?, signs: pages.part(factors, 0..n, n + 1..n + 2)? })
    }
}

/// The product of each page of a column.
fn product(pages: &Pages<'_>, column: &Array) -> Result<Array> {
    pages.recorder.reduce(column, ReduceOp::Prod, 1, Nan::Include)
}

/// A square matrix and right sides in one float dtype, and the shape of the solution.
fn system(r: Recorder<'_>, name: &'static str, sides: [&Array; 2], metas: &[&Meta]) -> Result<(Array, Array, Shape)> {
    must_be_square(&metas[0].shape)?;
    let result = rules::multiplied(&metas[0].shape, &metas[1].shape)?;
    let [a, b] = r.factors(name, sides, metas)?;
    Ok((a, b, result))
}

/// The solution of a triangular system; `shape` is its shape. The matrix may have further columns.
fn substituted(r: Recorder<'_>, a: &Array, b: &Array, triangle: Triangle, shape: Shape) -> Result<Array> {
    let meta = Meta { dtype: a.dtype()?, shape };
    if meta.elements() == 0 {
        return r.zeros(meta);
    }
    let b = r.view(b, View::Broadcast, meta.shape.clone())?;
    let own = a.shape()?;
    let pages: usize = own.dims().iter().skip(2).product();
    // A single page serves all pages of the right sides. Several pages that expand are written out.
    let a = if pages == 1 {
        a.clone()
    } else {
        r.view(a, View::Broadcast, pages_of(&meta.shape, own.dim(0), own.dim(1))?)?
    };
    r.op(Op::Linear(LinearOp::SolveTriangular(triangle)), &[&a, &b], meta)
}

/// The solution of a system; `shape` is its shape.
pub(super) fn eliminated(r: Recorder<'_>, a: &Array, b: &Array, shape: Shape) -> Result<Array> {
    let meta = Meta { dtype: a.dtype()?, shape };
    if meta.elements() == 0 {
        return r.zeros(meta);
    }
    let n = meta.shape.dim(0);
    let factors = packed(a, LinearOp::Lu, "lu", r.at).checked()?;
    let rows = r.cast(&part(&r, &factors, 0..n, n..n + 1)?, DType::U32)?;
    let rows = r.view(&rows, View::Broadcast, meta.shape.clone())?;
    let b = r.view(b, View::Broadcast, meta.shape.clone())?;
    let b = r.op(Op::TakeAlong { dim: 0 }, &[&b, &rows], meta.clone())?;
    let half = substituted(r, &factors, &b, Triangle::LOWER.with_unit_diagonal(), meta.shape.clone())?;
    substituted(r, &factors, &half, Triangle::UPPER, meta.shape)
}
