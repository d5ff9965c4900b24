//! Scatters: values are combined into an array at indices, as sums, products or extremes.
//!
//! In: a base array, indices as for `take` and `take_dim`, values. Out: recorded ops. Must hold: RUNS-1: values of
//! equal indices are combined in an order that depends on the indices alone.

use super::handle::Array;
use super::index::{check_index, with_value};
use super::operand::Operand;
use super::record::At;
use super::recorder::Recorder;
use super::runs::sorted;
use crate::error::{Error, ErrorKind};
use crate::graph::rules;
use crate::graph::{DType, ElementOp, Meta, Op, Shape, View};
use std::panic::Location;

macro_rules! scatters {
    ($($(#[$doc:meta])* $name:ident, $(#[$dim_doc:meta])* $dim_name:ident => $op:ident;)*) => {
        impl Array {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $name<'a>(&'a self, index: &'a Array, values: impl Into<Operand<'a>>) -> Array {
                let how = How { op: ElementOp::$op, name: stringify!($name), dim: None };
                scatter(self, index, &values.into(), how, Location::caller())
            }

            $(#[$dim_doc])*
            #[doc = ""]
            #[doc = concat!("All else is as in [`Array::", stringify!($name), "`].")]
            #[track_caller]
            pub fn $dim_name<'a>(&'a self, dim: usize, index: &'a Array, values: impl Into<Operand<'a>>) -> Array {
                let how = How { op: ElementOp::$op, name: stringify!($dim_name), dim: Some(dim) };
                scatter(self, index, &values.into(), how, Location::caller())
            }
        )*}
    };
}

scatters! {
    /// A copy in which `values[i]` is added to the element at `index[i]`: linear, 0-based indices (integers) in
    /// column-major order. There are as many values as indices, or one for all of them; the result has this array's shape
    /// and dtype, to which values are converted.
    ///
    /// If several values have the same index, all of them are added, in an order that depends on the indices alone: the
    /// same program gives the same bits each time. The error is that of [`Array::sum`] of the element and its values.
    /// Integers saturate at each step; bools are combined by "or". NaN is not skipped. An index outside of this array
    /// is a fault (`ErrorKind::Index`), which the gather returns if the indices are not known earlier; a wrong number
    /// of values is a fault of `ErrorKind::Shape`.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("scatter").open();
    /// let totals = s.zeros::<f64>([3, 1]);
    /// let (index, values) = (s.from_slice(&[2u32, 0, 2], 3)?, s.from_slice(&[1.0, 2.0, 4.0], 3)?);
    /// assert_eq!(totals.scatter_add(&index, &values).gather_blocking::<f64>()?.as_slice(), [2.0, 0.0, 5.0]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    scatter_add,
    /// A copy in which `values[.., i, ..]` is added to the slice at `index[i]` along a dimension. The values expand to this
    /// array's extents with the index's length in `dim`.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("scatter").open();
    /// let totals = s.zeros::<f64>([2, 2]);
    /// let (index, columns) = (s.from_slice(&[1u32, 1], 2)?, s.from_slice(&[1.0, 2.0, 3.0, 4.0], [2, 2])?);
    /// let totals = totals.scatter_add_dim(1, &index, &columns);
    /// assert_eq!(totals.gather_blocking::<f64>()?.as_slice(), [0.0, 0.0, 4.0, 6.0]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    scatter_add_dim => Add;
    /// As [`Array::scatter_add`], with products; bools are combined by "and". A product is computed as products of
    /// parts, so it is NaN if one of them underflows to zero and another overflows.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("scatter").open();
    /// let x = s.from_slice(&[1.0f32, 10.0], 2)?;
    /// let (index, values) = (s.from_slice(&[1u32, 1], 2)?, s.from_slice(&[2.0f32, 3.0], 2)?);
    /// assert_eq!(x.scatter_mul(&index, &values).gather_blocking::<f32>()?.as_slice(), [1.0, 60.0]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    scatter_mul,
    /// As [`Array::scatter_add_dim`], with products.
    scatter_mul_dim => Mul;
    /// As [`Array::scatter_add`], with the least of an element and its values. A number wins over NaN; bools are
    /// combined by "and".
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("scatter").open();
    /// let x = s.from_slice(&[5i32, 5], 2)?;
    /// let (index, values) = (s.from_slice(&[0u32, 0, 1], 3)?, s.from_slice(&[3, 4, 9], 3)?);
    /// assert_eq!(x.scatter_min(&index, &values).gather_blocking::<i32>()?.as_slice(), [3, 5]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    scatter_min,
    /// As [`Array::scatter_add_dim`], with the least element.
    scatter_min_dim => Min;
    /// As [`Array::scatter_add`], with the greatest of an element and its values. A number wins over NaN; bools are
    /// combined by "or".
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("scatter").open();
    /// let x = s.from_slice(&[5i32, 5], 2)?;
    /// let (index, values) = (s.from_slice(&[0u32, 0, 1], 3)?, s.from_slice(&[3, 4, 9], 3)?);
    /// assert_eq!(x.scatter_max(&index, &values).gather_blocking::<i32>()?.as_slice(), [5, 9]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    scatter_max,
    /// As [`Array::scatter_add_dim`], with the greatest element.
    scatter_max_dim => Max;
}

/// The parameters of a scatter.
#[derive(Clone, Copy)]
pub(super) struct How {
    /// How an element and a value are combined: `Add`, `Mul`, `Min` or `Max`.
    pub op: ElementOp,
    /// The method, for faults.
    pub name: &'static str,
    /// The dimension along which indices count; `None` for linear indices.
    pub dim: Option<usize>,
}

pub(super) fn scatter(base: &Array, index: &Array, values: &Operand<'_>, how: How, at: At) -> Array {
    with_value(base, values, Some(index), how.name, at, |home, values| {
        let r = Recorder { home, at };
        let (own, count) = (base.meta()?, index.elements()?);
        let part = match how.dim {
            Some(dim) => rules::with_extent(&own.shape, dim, count)?,
            None => Shape::new(&[count])?,
        };
        check_index(index, index.meta()?, how.dim.map_or(own.elements(), |dim| own.shape.dim(dim)))?;
        let given = values.meta()?;
        let is_one = given.shape.is_scalar();
        match how.dim {
            Some(_) if !is_one => rules::expands(&given.shape, &part)?,
            None if !is_one && given.elements() != count => {
                let message = format!("{} values do not fit {count} indices", given.elements());
                return Err(Error::new(ErrorKind::Shape, message));
            }
            _ => {}
        }
        if part.elements() == 0 {
            return Ok(base.clone());
        }
        let values = match how.dim {
            None if !is_one => r.reshape(values, part.clone())?,
            _ => r.view(values, View::Broadcast, part.clone())?,
        };
        let index = r.reshape(index, Shape::new(&[count])?)?;
        let adds = matches!(how.op, ElementOp::Add | ElementOp::Max);
        let op = match own.dtype {
            DType::Bool if adds => ElementOp::Or,
            DType::Bool => ElementOp::And,
            _ => how.op,
        };
        let (places, values) = match count {
            1 => (index, values),
            _ => sorted(&r, op, &index, &values, how.dim.unwrap_or(0), is_one)?,
        };
        let elements = match how.dim {
            Some(dim) => r.taken(base, dim, &places)?,
            None => r.op(Op::Take { dim: None }, &[base, &places], Meta { dtype: own.dtype, shape: part })?,
        };
        let values = r.binary(op, &elements, &values)?;
        // The last of equal indices has the combination of all values, and wins the assignment.
        let by = how.dim.map(|dim| dim as u8);
        r.op(Op::AssignIndex { dim: by }, &[base, &places, &values], own.clone())
    })
}
