//! Arrays as sets of their elements.

use super::counts::search;
use super::order::sorted;
use crate::array::handle::Array;
use crate::array::index::nonzero;
use crate::array::record::{At, derive};
use crate::array::recorder::Recorder;
use crate::error::{Error, Result};
use crate::graph::{DType, ElementOp, Meta, Op, ScanOp, Shape};
use std::panic::Location;

/// The result of [`Array::unique`]: the m distinct elements of an array of n elements.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Unique {
    /// The distinct elements in ascending order, a column of m elements of the array's dtype.
    pub values: Array,
    /// The number of occurrences of each of them, a column of m u32.
    pub counts: Array,
    /// The position where each of them occurs first (u32, linear, 0-based, in column-major order), a column of m.
    pub first: Array,
    /// For each element of the array, the position of its value in `values` (u32), in the array's shape:
    /// `values.take(&inverse)` is the array.
    pub inverse: Array,
}

impl Array {
    /// The distinct elements in ascending order, how often each occurs, and where. The future awaits their number.
    ///
    /// NaN equals nothing, as in MATLAB: each NaN is an element of its own, behind all numbers. Zeros of both signs are
    /// one element, which has the sign of the first one.
    ///
    /// # Errors
    /// The array's fault, and errors of the computation of the number.
    ///
    /// ```
    /// # futures::executor::block_on(async {
    /// # let rt = tidemill::Runtime::builder().device("host").start().await?;
    /// # let s = rt.session("sets").open();
    /// let x = s.from_slice(&[3i32, 1, 3, 3], 4)?;
    /// let distinct = x.unique().await?;
    /// assert_eq!(distinct.values.gather::<i32>().await?.as_slice(), [1, 3]);
    /// assert_eq!(distinct.counts.gather::<u32>().await?.as_slice(), [1, 3]);
    /// assert_eq!(distinct.first.gather::<u32>().await?.as_slice(), [1, 0]);
    /// assert_eq!(distinct.inverse.gather::<u32>().await?.as_slice(), [1, 0, 1, 1]);
    /// # rt.shutdown().await
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn unique(&self) -> impl Future<Output = Result<Unique>> + Send + use<> {
        let at = Location::caller();
        let array = self.clone();
        let sorted = runs(&array, at);
        // The count is in progress from now on.
        let starts = sorted.as_ref().map(|sorted| nonzero(&sorted.begins, "unique", at)).map_err(Clone::clone);
        async move {
            let starts = starts?.await?;
            let named = |error: Error| error.with_op("unique").with_location(at);
            sorted?.distinct(&array, &starts, at).map_err(named)
        }
    }

    /// Whether each element is one of `set` (bool, of this array's shape): NaN is in no set. Dtypes may differ: numbers are
    /// compared as by [`Array::eq_to`].
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("sets").open();
    /// let (x, set) = (s.from_slice(&[1i32, 5, 7], 3)?, s.from_slice(&[7.0f64, 1.0], 2)?);
    /// assert_eq!(x.is_member(&set).gather_blocking::<bool>()?.as_slice(), [true, false, true]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn is_member(&self, set: &Array) -> Array {
        let at = Location::caller();
        derive(&[self, set], "is_member", at, |home, metas| {
            let r = Recorder { home, at };
            let (shape, count) = (metas[0].shape.clone(), metas[1].elements());
            if count == 0 || shape.elements() == 0 {
                return r.zeros(Meta { dtype: DType::Bool, shape });
            }
            let set = sorted(&r, &r.reshape(set, Shape::new(&[count])?)?, 0)?;
            let before = search(&r, &set, self, false, None)?;
            // If all elements lie before it, it is compared with the last one, which differs.
            let place = r.binary(ElementOp::Min, &before, count as i64 - 1)?;
            let nearest = Meta { dtype: metas[1].dtype, shape };
            let nearest = r.op(Op::Take { dim: None }, &[&set, &place], nearest)?;
            r.binary(ElementOp::Eq, self, &nearest)
        })
    }
}

/// The sorted elements of an array.
struct Runs {
    /// Their places in the array (u32), a column.
    order: Array,
    /// The elements, a column.
    sorted: Array,
    /// Whether each element differs from the one before it (bool), a column.
    begins: Array,
}

/// Sorts an array and finds where runs of equal elements begin.
fn runs(array: &Array, at: At) -> Result<Runs> {
    let named = |error: Error| error.with_op("unique").with_location(at);
    let record = || {
        let (r, own) = (Recorder { home: &array.0.home, at }, array.meta()?);
        let count = own.elements();
        let column = r.reshape(array, Shape::new(&[count])?)?;
        let order = r.order(&column, 0, false)?;
        let sorted = r.taken(&column, 0, &order)?;
        let one = Meta { dtype: DType::Bool, shape: Shape::new(&[count.min(1)])? };
        let begins = match count {
            0 | 1 => r.full(one, 1.0)?,
            _ => {
                let (earlier, later) = (r.part(&sorted, 0, 0, count - 1)?, r.part(&sorted, 0, 1, count - 1)?);
                r.join(0, &[&r.full(one, 1.0)?, &r.binary(ElementOp::Ne, &earlier, &later)?])?
            }
        };
        Ok(Runs { order, sorted, begins })
    };
    record().map_err(named)
}

impl Runs {
    /// The distinct elements, from the places (u32, a column) where their runs begin.
    fn distinct(&self, array: &Array, starts: &Array, at: At) -> Result<Unique> {
        let (r, own) = (Recorder { home: &array.0.home, at }, array.meta()?);
        let (count, found) = (own.elements(), starts.elements()?);
        let inverse = Meta { dtype: DType::U32, shape: own.shape.clone() };
        if count < 2 {
            let ones = r.full(Meta { dtype: DType::U32, shape: starts.shape()?.clone() }, 1.0)?;
            let values = self.sorted.clone();
            return Ok(Unique { values, counts: ones, first: starts.clone(), inverse: r.zeros(inverse)? });
        }
        let end = r.full(Meta { dtype: DType::U32, shape: Shape::scalar() }, count as f64)?;
        let ends = match found {
            1 => end,
            _ => r.join(0, &[&r.part(starts, 0, 1, found - 1)?, &end])?,
        };
        let counts = r.sub(&ends, starts)?;
        let numbers = r.scan(&r.cast(&self.begins, DType::U32)?, ScanOp::Sum, 0, false)?;
        let numbers = r.sub(&numbers, 1i64)?;
        let column = numbers.meta()?.clone();
        let placed =
            r.op(Op::AssignIndex { dim: None }, &[&r.zeros(column.clone())?, &self.order, &numbers], column)?;
        Ok(Unique {
            values: r.taken(&self.sorted, 0, starts)?,
            counts,
            first: r.taken(&self.order, 0, starts)?,
            inverse: r.reshape(&placed, inverse.shape)?,
        })
    }
}
