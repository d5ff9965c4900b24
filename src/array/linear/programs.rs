//! Methods of [`Array`] that record several other ops: matrix powers, the exponential, Kronecker and cross products.

use super::solve::{eliminated, inverse};
use super::spectrum::norm_of_lines;
use super::{Matrices, Pages};
use crate::array::handle::Array;
use crate::array::record::derive;
use crate::array::recorder::Recorder;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{DType, ElementOp, Nan, ReduceOp, Shape, View, rules};
use smallvec::SmallVec;
use std::panic::Location;

/// Coefficients of the diagonal Padé approximants of the exponential, and the 1-norm up to which they are exact to
/// rounding (Higham, "The scaling and squaring method for the matrix exponential revisited", 2005): of order 13 for
/// f64, of order 7 for f32.
const PADE_13: ([f64; 14], f64) = (
    [
        64764752532480000.0,
        32382376266240000.0,
        7771770303897600.0,
        1187353796428800.0,
        129060195264000.0,
        10559470521600.0,
        670442572800.0,
        33522128640.0,
        1323241920.0,
        40840800.0,
        960960.0,
        16380.0,
        182.0,
        1.0,
    ],
    5.371920351148152,
);
const PADE_7: ([f64; 8], f64) =
    ([17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0], 3.92572478313866);

impl Array {
    /// Powers of square matrices with a whole exponent, for each page, by repeated squaring. The power 0 is the
    /// identity; negative powers are powers of [`Array::inv`].
    #[track_caller]
    pub fn matrix_power(&self, power: i32) -> Array {
        let at = Location::caller();
        derive(&[self], "matrix_power", at, |home, metas| {
            let matrices = Matrices::square(home, self, at)?;
            if metas[0].elements() == 0 {
                return Ok(matrices.array);
            }
            if power == 0 {
                let n = matrices.pages.extents().0;
                return matrices.pages.identity(n, n);
            }
            let r = matrices.pages.recorder;
            let mut base = if power < 0 { inverse(matrices)? } else { matrices.array };
            let mut rest = power.unsigned_abs();
            while rest & 1 == 0 {
                rest >>= 1;
                base = r.matmul(&base, &base)?;
            }
            let mut product = base.clone();
            while rest > 1 {
                rest >>= 1;
                base = r.matmul(&base, &base)?;
                if rest & 1 == 1 {
                    product = r.matmul(&product, &base)?;
                }
            }
            Ok(product)
        })
    }

    /// The exponential of square matrices, for each page, by scaling, a Padé approximant and squaring. The future
    /// awaits how often the page with the greatest 1-norm has to be squared.
    ///
    /// # Errors
    /// The array's fault, `ErrorKind::Shape` if the matrices are not square, and errors of the computation of the norm.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking().unwrap();
    /// # let s = rt.session("expm").open();
    /// let turn = s.from_row_major(&[0.0, -1.0, 1.0, 0.0], [2, 2]).unwrap();
    /// let e = futures::executor::block_on(async { turn.expm().await?.gather::<f64>().await }).unwrap();
    /// assert!((e.as_slice()[0] - 1f64.cos()).abs() < 1e-15 && (e.as_slice()[1] - 1f64.sin()).abs() < 1e-15);
    /// ```
    #[track_caller]
    pub fn expm(&self) -> impl Future<Output = Result<Array>> + Send + use<> {
        let at = Location::caller();
        let matrices = derive(&[self], "expm", at, |home, _| Ok(Matrices::square(home, self, at)?.array));
        let counts = derive(&[&matrices], "expm", at, |home, _| halvings(&Pages::of(home, &matrices, at)?, &matrices));
        let most = counts.elements().map(|pages| {
            let most = || derive(&[&counts], "expm", at, |home, _| greatest_number(Recorder { home, at }, &counts));
            (pages > 0).then(|| most().item::<f64>())
        });
        async move {
            let Some(most) = most? else { return Ok(matrices) };
            let most = most.await? as u32;
            derive(&[&matrices, &counts], "expm", at, |home, _| {
                exponential(&Pages::of(home, &matrices, at)?, &matrices, &counts, most)
            })
            .checked()
        }
    }

    /// The Kronecker product of matrices, for each page: each element of this array times the other matrix. `[m, n,
    /// ..]` and `[p, q, ..]` give `[m p, n q, ..]`.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking().unwrap();
    /// # let s = rt.session("kron").open();
    /// let a = s.from_slice(&[1.0, 10.0], [1, 2]).unwrap();
    /// let b = s.from_slice(&[1.0, 2.0], [2, 1]).unwrap();
    /// let product = futures::executor::block_on(a.kron(&b).gather::<f64>()).unwrap();
    /// assert_eq!(product.as_slice(), [1.0, 2.0, 10.0, 20.0]);
    /// ```
    #[track_caller]
    pub fn kron(&self, other: &Array) -> Array {
        let at = Location::caller();
        derive(&[self, other], "kron", at, |home, metas| {
            let r = Recorder { home, at };
            let [a, b] = [&metas[0].shape, &metas[1].shape];
            let left = Shape::new(&with_pages(&[1, a.dim(0), 1, a.dim(1)], a))?;
            let right = Shape::new(&with_pages(&[b.dim(0), 1, b.dim(1), 1], b))?;
            let product = r.mul(&r.reshape(self, left)?, &r.reshape(other, right)?)?;
            let pages = product.shape()?.dims().iter().skip(4).copied();
            let dims: SmallVec<[usize; 8]> =
                [a.dim(0) * b.dim(0), a.dim(1) * b.dim(1)].into_iter().chain(pages).collect();
            r.reshape(&product, Shape::new(&dims)?)
        })
    }

    /// The cross product of vectors of three elements along a dimension.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking().unwrap();
    /// # let s = rt.session("cross").open();
    /// let (x, y) = (s.from_slice(&[1.0, 0.0, 0.0], 3).unwrap(), s.from_slice(&[0.0, 1.0, 0.0], 3).unwrap());
    /// let z = futures::executor::block_on(x.cross(&y, 0).gather::<f64>()).unwrap();
    /// assert_eq!(z.as_slice(), [0.0, 0.0, 1.0]);
    /// ```
    #[track_caller]
    pub fn cross(&self, other: &Array, dim: usize) -> Array {
        let at = Location::caller();
        derive(&[self, other], "cross", at, |home, metas| {
            let r = Recorder { home, at };
            for shape in metas.iter().map(|meta| &meta.shape) {
                shape.has_axis(dim)?;
                if shape.dim(dim) != 3 {
                    let message = format!("{shape} has {} elements in dimension {dim}, not 3", shape.dim(dim));
                    return Err(Error::new(ErrorKind::Shape, message));
                }
            }
            let moved = |array: &Array, by: i64| {
                let mut shifts: SmallVec<[i64; 4]> = SmallVec::from_elem(0, dim + 1);
                shifts[dim] = -by;
                let shape = array.shape()?;
                let shifts = rules::shifts(shape, &shifts)?;
                r.view(array, View::CircShift(shifts.as_slice().into()), shape.clone())
            };
            let product = |x: i64, y: i64| r.mul(&moved(self, x)?, &moved(other, y)?);
            r.sub(&product(1, 2)?, &product(2, 1)?)
        })
    }
}

/// The given extents, followed by the extents of the pages of `shape`.
fn with_pages(extents: &[usize], shape: &Shape) -> SmallVec<[usize; 8]> {
    extents.iter().copied().chain((2..shape.axes()).map(|d| shape.dim(d))).collect()
}

/// The coefficients of the approximant for a dtype, and the 1-norm up to which it is exact to rounding.
fn approximant(dtype: DType) -> (&'static [f64], f64) {
    if dtype == DType::F64 { (&PADE_13.0, PADE_13.1) } else { (&PADE_7.0, PADE_7.1) }
}

/// How often each page has to be halved until the approximant is exact to rounding. A page that is not finite is not
/// halved.
fn halvings(pages: &Pages<'_>, matrices: &Array) -> Result<Array> {
    let (r, (_, limit)) = (pages.recorder, approximant(pages.meta.dtype));
    let norms = norm_of_lines(r, matrices, 0)?;
    let ratio = r.div(&norms, r.number(pages.meta.dtype, limit))?;
    let log = r.apply(ElementOp::Log2, &mut [(&ratio).into()])?;
    let whole = r.apply(ElementOp::Ceil, &mut [(&log).into()])?;
    let counts = r.binary(ElementOp::Max, &whole, 0.0)?;
    r.select(&r.apply(ElementOp::IsFinite, &mut [(&norms).into()])?, &counts, 0.0)
}

/// The greatest element of an array, as f64.
fn greatest_number(r: Recorder<'_>, array: &Array) -> Result<Array> {
    let dims = (0..array.shape()?.rank()).fold(0, |dims, d| dims | 1 << d);
    r.cast(&r.reduce(array, ReduceOp::Max, dims, Nan::Include)?, DType::F64)
}

/// The exponential of matrices. Each page is halved as often as `counts` says, which is at most `most`.
fn exponential(pages: &Pages<'_>, matrices: &Array, counts: &Array, most: u32) -> Result<Array> {
    let (r, n) = (pages.recorder, pages.extents().0);
    // Selects the pages that take part in step `k`.
    let chosen = |k: u32, changed: &Array, kept: &Array| {
        r.select(&r.binary(ElementOp::Gt, counts, f64::from(k))?, changed, kept)
    };
    let mut a = matrices.clone();
    for k in 0..most {
        a = chosen(k, &r.scaled(&a, 0.5)?, &a)?;
    }
    let square = r.matmul(&a, &a)?;
    // The even powers, from which both parts are computed.
    let (coefficients, _) = approximant(pages.meta.dtype);
    let mut powers = vec![pages.identity(n, n)?, square.clone()];
    while 2 * powers.len() < coefficients.len() {
        powers.push(r.matmul(&powers[powers.len() - 1], &square)?);
    }
    let sum = |odd: usize| {
        let mut terms =
            powers.iter().zip(coefficients.iter().skip(odd).step_by(2)).map(|(power, &by)| r.scaled(power, by));
        let first = terms.next().expect("an approximant has coefficients")?;
        terms.try_fold(first, |sum, term| r.add(&sum, &term?))
    };
    let (even, odd) = (sum(0)?, r.matmul(&a, &sum(1)?)?);
    let below = r.sub(&even, &odd)?;
    let above = r.add(&even, &odd)?;
    let mut exponential = eliminated(r, &below, &above, pages.meta.shape.clone())?;
    for k in 0..most {
        exponential = chosen(k, &r.matmul(&exponential, &exponential)?, &exponential)?;
    }
    Ok(exponential)
}
