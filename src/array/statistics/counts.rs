//! Binary search in sorted arrays, and counts: histograms, frequencies of integers, sums by group.

use super::order::sorted;
use crate::array::ensure::ensure;
use crate::array::handle::Array;
use crate::array::record::{At, derive};
use crate::array::recorder::Recorder;
use crate::array::scatter::{How, scatter};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{DType, ElementOp, Meta, Nan, Op, ReduceOp, Shape, rules};
use std::panic::Location;

impl Array {
    /// For each element of `values`, the position at which inserting it keeps this sorted array sorted: the number of
    /// elements that are less than it, or with `right` the number that are less or equal. The positions (u32) are
    /// linear, in column-major order; the result has the shape of `values`.
    ///
    /// The elements must be in ascending order, NaN last, as [`Array::sort`] yields them; otherwise the result is some
    /// position. A NaN in `values` is placed before (with `right`, behind) the NaN of this array. Dtypes may differ:
    /// numbers are compared as by [`Array::lt`].
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("search").open();
    /// let (sorted, values) = (s.from_slice(&[1.0f64, 2.0, 2.0, 5.0], 4)?, s.from_slice(&[2.0, 0.0, 9.0], 3)?);
    /// assert_eq!(sorted.search_sorted(&values, false).gather_blocking::<u32>()?.as_slice(), [1, 0, 4]);
    /// assert_eq!(sorted.search_sorted(&values, true).gather_blocking::<u32>()?.as_slice(), [3, 0, 4]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn search_sorted(&self, values: &Array, right: bool) -> Array {
        let at = Location::caller();
        derive(&[self, values], "search_sorted", at, |home, metas| {
            let r = Recorder { home, at };
            let column = r.reshape(self, Shape::new(&[metas[0].elements()])?)?;
            search(&r, &column, values, right, None)
        })
    }

    /// As [`Array::search_sorted`], line by line: the values of a line along `dim` are searched in this array's line.
    /// In all other dimensions both must have the same extents (`ErrorKind::Shape` otherwise).
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("search").open();
    /// let sorted = s.from_slice(&[1.0f64, 2.0, 10.0, 20.0], [2, 2])?;
    /// let values = s.from_slice(&[15.0f64, 15.0], [1, 2])?;
    /// assert_eq!(sorted.search_sorted_dim(0, &values, false).gather_blocking::<u32>()?.as_slice(), [2, 1]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn search_sorted_dim(&self, dim: usize, values: &Array, right: bool) -> Array {
        let at = Location::caller();
        derive(&[self, values], "search_sorted_dim", at, |home, metas| {
            metas[0].shape.has_axis(dim)?;
            rules::taken_along(&metas[0].shape, &metas[1].shape, dim)?;
            search(&Recorder { home, at }, self, values, right, Some(dim))
        })
    }

    /// The number of elements of this array between neighbouring `edges`: a column of u32, one element shorter than
    /// `edges`. The edges are at least two, in ascending order. An interval contains its lower edge and not its upper
    /// one; the last contains both (NumPy's rule). Elements outside of all intervals are not counted, nor are NaN.
    ///
    /// Fewer than two edges are a fault (`ErrorKind::Argument`). Edges that descend, or are NaN, are a fault
    /// (`ErrorKind::Domain`) that the gather returns.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("histograms").open();
    /// let x = s.from_slice(&[0.5f64, 1.0, 1.5, 3.0, 7.0], 5)?;
    /// let edges = s.from_slice(&[0.0, 1.0, 2.0, 3.0], 4)?;
    /// assert_eq!(x.histogram(&edges).gather_blocking::<u32>()?.as_slice(), [1, 2, 1]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn histogram(&self, edges: &Array) -> Array {
        histogram(self, edges, Location::caller())
    }

    /// How often each of the numbers from 0 to `bins - 1` is an element of this array of integers: a column of u32. Any
    /// other element is a fault (`ErrorKind::Index`), like an index that is out of range.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("counts").open();
    /// let x = s.from_slice(&[2u32, 0, 2, 2], 4)?;
    /// assert_eq!(x.bincount(4).gather_blocking::<u32>()?.as_slice(), [1, 0, 3, 0]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn bincount(&self, bins: usize) -> Array {
        let at = Location::caller();
        derive(&[self], "bincount", at, |home, _| {
            let zeros = Recorder { home, at }.zeros(Meta { dtype: DType::U32, shape: Shape::new(&[bins])? })?;
            let how = How { op: ElementOp::Add, name: "bincount", dim: None };
            scatter(&zeros, self, &1i64.into(), how, at).checked()
        })
    }

    /// Sums of `values` by group. This array holds the number of each value's group, an integer from 0 to `bins - 1`; the
    /// result is a column of `bins` sums in the values' dtype (f64 if they are bools), and a group without values has the
    /// sum 0. `values` has as many elements as this array, or one element, which serves for all. Errors, order and accuracy
    /// are those of [`Array::scatter_add`].
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("sums").open();
    /// let (groups, values) = (s.from_slice(&[1u32, 0, 1], 3)?, s.from_slice(&[1.0f32, 2.0, 4.0], 3)?);
    /// assert_eq!(groups.accumulate(&values, 3).gather_blocking::<f32>()?.as_slice(), [2.0, 5.0, 0.0]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn accumulate(&self, values: &Array, bins: usize) -> Array {
        let at = Location::caller();
        derive(&[self, values], "accumulate", at, |home, metas| {
            let dtype = if metas[1].dtype == DType::Bool { DType::F64 } else { metas[1].dtype };
            let zeros = Recorder { home, at }.zeros(Meta { dtype, shape: Shape::new(&[bins])? })?;
            let how = How { op: ElementOp::Add, name: "accumulate", dim: None };
            scatter(&zeros, self, &values.into(), how, at).checked()
        })
    }
}

/// For each value how many elements of `sorted` (a column, or the value's line along a dimension) lie before it: those less
/// than it, and with `right` those equal to it, too. The count is built from its highest bit down.
pub(in crate::array) fn search(
    r: &Recorder<'_>,
    sorted: &Array,
    values: &Array,
    right: bool,
    dim: Option<usize>,
) -> Result<Array> {
    let (own, meta) = (sorted.meta()?, Meta { dtype: DType::U32, shape: values.shape()?.clone() });
    let extent = own.shape.dim(dim.unwrap_or(0));
    let take = dim.map_or(Op::Take { dim: None }, |dim| Op::TakeAlong { dim: dim as u8 });
    let taken = Meta { dtype: own.dtype, shape: meta.shape.clone() };
    let mut found = r.zeros(meta)?;
    if extent == 0 || found.elements()? == 0 {
        return Ok(found);
    }
    for bit in (0..=extent.ilog2()).rev() {
        let next = r.add(&found, 1i64 << bit)?;
        let is_inside = r.binary(ElementOp::Le, &next, extent as i64)?;
        let last = r.sub(&r.binary(ElementOp::Min, &next, extent as i64)?, 1i64)?;
        let element = r.op(take.clone(), &[sorted, &last], taken.clone())?;
        let lies_before = match right {
            true => r.apply(ElementOp::Not, &mut [less(r, values, &element)?.into()])?,
            false => less(r, &element, values)?,
        };
        found = r.select(&r.binary(ElementOp::And, &is_inside, &lies_before)?, &next, &found)?;
    }
    Ok(found)
}

/// Whether `a` lies before `b` in sorted order, NaN last.
fn less(r: &Recorder<'_>, a: &Array, b: &Array) -> Result<Array> {
    let less = r.binary(ElementOp::Lt, a, b)?;
    if !b.dtype()?.is_float() {
        return Ok(less);
    }
    let is_number = r.apply(ElementOp::Not, &mut [r.is_nan(a)?.into()])?;
    let beside_nan = r.binary(ElementOp::And, &is_number, &r.is_nan(b)?)?;
    r.binary(ElementOp::Or, &less, &beside_nan)
}

fn histogram(array: &Array, edges: &Array, at: At) -> Array {
    derive(&[array, edges], "histogram", at, |home, metas| {
        let r = Recorder { home, at };
        let count = metas[1].elements();
        if count < 2 {
            return Err(Error::new(
                ErrorKind::Argument,
                format!("a histogram needs at least two edges, and {count} were given"),
            ));
        }
        let x = sorted(&r, &r.reshape(array, Shape::new(&[metas[0].elements()])?)?, 0)?;
        let edges = r.reshape(edges, Shape::new(&[count])?)?;
        let (lower, upper) = (r.part(&edges, 0, 0, count - 1)?, r.part(&edges, 0, 1, count - 1)?);
        let below = search(&r, &x, &lower, false, None)?;
        let last = search(&r, &x, &r.part(&edges, 0, count - 1, 1)?, true, None)?;
        let up_to = match count {
            2 => last,
            _ => r.join(0, &[&r.part(&below, 0, 1, count - 2)?, &last])?,
        };
        let counts = r.sub(&up_to, &below)?;
        let ascends = r.reduce(&r.binary(ElementOp::Le, &lower, &upper)?, ReduceOp::All, 1, Nan::Include)?;
        ensure(&counts, "histogram", &ascends, "the edges do not ascend".into(), at).checked()
    })
}
