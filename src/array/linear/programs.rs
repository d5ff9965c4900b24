//! What is a program of products, systems and elementwise ops.

use super::Matrices;
use crate::array::handle::Array;
use crate::array::record::derive;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{DType, Op};
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
    /// Square matrices to a whole power, per page, by repeated squaring: the identity for 0, powers of [`Array::inv`]
    /// for negative ones.
    #[track_caller]
    pub fn matrix_power(&self, power: i32) -> Array {
        let at = Location::caller();
        derive(&[self], "matrix_power", at, |home, metas| {
            let matrices = Matrices::square(home, self, at)?;
            if metas[0].elements() == 0 {
                return Ok(matrices.array);
            }
            let n = matrices.extents().0;
            let mut base = if power < 0 { matrices.array.inv() } else { matrices.array.clone() };
            let (mut rest, mut product) = (power.unsigned_abs(), None::<Array>);
            while rest > 0 {
                if rest & 1 == 1 {
                    product = Some(product.map_or_else(|| base.clone(), |product| product.matmul(&base)));
                }
                rest >>= 1;
                if rest > 0 {
                    base = base.matmul(&base);
                }
            }
            product.map_or_else(|| matrices.written(n, n, Op::Eye), Ok)
        })
    }

    /// The exponential of square matrices, per page, by scaling, a Padé approximant and squaring. Awaits the greatest
    /// 1-norm of a page, which says how often to square.
    ///
    /// # Errors
    /// The array's fault, `ErrorKind::Shape` where the matrices are not square, and what happened to the norm's
    /// computation.
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
        let norm = matrices
            .elements()
            .map(|elements| (elements > 0).then(|| matrices.abs().sum(0).max_over(..).cast::<f64>().item::<f64>()));
        async move {
            let Some(norm) = norm? else { return Ok(matrices) };
            exponential(&matrices, norm.await?).checked()
        }
    }

    /// The Kronecker product of matrices, per page: each element of this one times the other one, `[m p, n q, ..]` of
    /// `[m, n, ..]` and `[p, q, ..]`.
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
        derive(&[self, other], "kron", at, |_, metas| {
            let [a, b] = [&metas[0].shape, &metas[1].shape];
            let pages = |of: &crate::graph::Shape| (2..of.axes()).map(|d| of.dim(d)).collect::<SmallVec<[usize; 4]>>();
            let mut left: SmallVec<[usize; 8]> = SmallVec::from_slice(&[1, a.dim(0), 1, a.dim(1)]);
            left.extend(pages(a));
            let mut right: SmallVec<[usize; 8]> = SmallVec::from_slice(&[b.dim(0), 1, b.dim(1), 1]);
            right.extend(pages(b));
            let product = (self.reshape(&left[..]) * other.reshape(&right[..])).checked()?;
            let shape = product.shape()?;
            let mut dims: SmallVec<[usize; 8]> = SmallVec::from_slice(&[a.dim(0) * b.dim(0), a.dim(1) * b.dim(1)]);
            dims.extend((4..shape.axes()).map(|d| shape.dim(d)));
            product.reshape(&dims[..]).checked()
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
        derive(&[self, other], "cross", at, |_, metas| {
            for shape in metas.iter().map(|meta| &meta.shape) {
                shape.has_axis(dim)?;
                if shape.dim(dim) != 3 {
                    let message = format!("{shape} has {} elements in dimension {dim}, not 3", shape.dim(dim));
                    return Err(Error::new(ErrorKind::Shape, message));
                }
            }
            let next = |array: &Array, by: i64| {
                let mut shifts: SmallVec<[i64; 4]> = SmallVec::from_elem(0, dim + 1);
                shifts[dim] = -by;
                array.circshift(&shifts)
            };
            (next(self, 1) * next(other, 2) - next(self, 2) * next(other, 1)).checked()
        })
    }
}

/// The exponential of matrices whose 1-norm is at most `norm`.
fn exponential(matrices: &Array, norm: f64) -> Array {
    let at = Location::caller();
    derive(&[matrices], "expm", at, |home, metas| {
        let wide = metas[0].dtype == DType::F64;
        let (coefficients, limit): (&[f64], f64) = if wide { (&PADE_13.0, PADE_13.1) } else { (&PADE_7.0, PADE_7.1) };
        // What is not finite stays so without being scaled.
        let squarings = if norm.is_finite() { (norm / limit).log2().ceil().max(0.0) as i32 } else { 0 };
        let all = Matrices::square(home, matrices, at)?;
        let n = all.extents().0;
        // In two steps, since the power of two may be smaller than any number.
        let half = squarings / 2;
        let a = matrices * 2f64.powi(-half) * 2f64.powi(half - squarings);
        let square = a.matmul(&a);
        // Even powers, from which both parts are made.
        let mut powers = vec![all.written(n, n, Op::Eye)?, square.clone()];
        while 2 * powers.len() < coefficients.len() {
            powers.push(powers[powers.len() - 1].matmul(&square));
        }
        let sum = |odd: usize| {
            let terms = powers.iter().zip(coefficients.iter().skip(odd).step_by(2)).map(|(power, &by)| power * by);
            terms.reduce(|sum, term| sum + term)
        };
        let (Some(even), Some(odd)) = (sum(0), sum(1)) else {
            return Err(Error::new(ErrorKind::Internal, "an approximant has coefficients"));
        };
        let odd = a.matmul(&odd);
        let mut exponential = (&even - &odd).solve(&(&even + &odd));
        for _ in 0..squarings {
            exponential = exponential.matmul(&exponential);
        }
        Ok(exponential)
    })
}
