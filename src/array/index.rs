//! Index arrays: taking and assigning elements, masks, and sorting.
//!
//! Must hold: indices are integers, 0-based. Indices that are known when the op is recorded are checked then. Others
//! are checked when they are used, and the gather returns the fault.

use super::dims::{Slices, resolve};
use super::gather::{Eval, Item};
use super::handle::Array;
use super::operand::{Kind, Operand};
use super::record::{At, Input, apply, cast_in, common_home, derive, node};
use super::strict;
use super::structure::zeros;
use super::tape::Home;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::rules;
use crate::graph::{DType, ElementOp, Meta, Nan, Op, Scalar, ScanOp, Shape, View};
use crate::host_buffer::HostBuffer;
use std::panic::Location;
use std::sync::Arc;

impl Array {
    /// The elements at linear, 0-based indices in column-major order; the result has the index's shape.
    #[track_caller]
    pub fn take(&self, index: &Array) -> Array {
        let at = Location::caller();
        derive(&[self, index], "take", at, |home, metas| {
            check_index(index, metas[1], metas[0].elements())?;
            let meta = Meta { dtype: metas[0].dtype, shape: metas[1].shape.clone() };
            Ok(node(home, Op::Take { dim: None }, &[Input::Array(self), Input::Array(index)], meta, at))
        })
    }

    /// Whole slices at 0-based indices along a dimension: rows of a matrix for `dim` 0.
    #[track_caller]
    pub fn take_dim(&self, dim: usize, index: &Array) -> Array {
        let at = Location::caller();
        derive(&[self, index], "take", at, |home, metas| {
            let shape = rules::with_extent(&metas[0].shape, dim, metas[1].elements())?;
            check_index(index, metas[1], metas[0].shape.dim(dim))?;
            let meta = Meta { dtype: metas[0].dtype, shape };
            let index = index.view(home, View::Reshape, Shape::new(&[metas[1].elements()])?, at);
            Ok(node(home, Op::Take { dim: Some(dim as u8) }, &[Input::Array(self), Input::Array(&index)], meta, at))
        })
    }

    /// Each element at its own index along a dimension: `result[.., i, ..] = self[.., index[.., i, ..], ..]`. The index
    /// may have more dimensions than the array. The array has an extent of 1 in these, where 0 is the only valid index.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("indices").open();
    /// let x = s.from_slice(&[1.0f64, 2.0, 3.0, 4.0], [2, 2])?;
    /// let index = s.from_slice(&[1u32, 0], [1, 2])?;
    /// assert_eq!(x.take_along(0, &index).gather_blocking::<f64>()?.as_slice(), [2.0, 3.0]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn take_along(&self, dim: usize, index: &Array) -> Array {
        let at = Location::caller();
        derive(&[self, index], "take_along", at, |home, metas| {
            rules::taken_along(&metas[0].shape, &metas[1].shape, dim)?;
            check_index(index, metas[1], metas[0].shape.dim(dim))?;
            let meta = Meta { dtype: metas[0].dtype, shape: metas[1].shape.clone() };
            Ok(node(home, Op::TakeAlong { dim: dim as u8 }, &[Input::Array(self), Input::Array(index)], meta, at))
        })
    }

    /// A copy in which a slice is overwritten by `value`, which expands to the slice and is converted to this array's
    /// dtype. If this is the last use of the array, it is overwritten in place.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("assignments").open();
    /// let x = s.zeros::<f64>([2, 2]).assign((.., 1), 5.0);
    /// assert_eq!(x.gather_blocking::<f64>()?.as_slice(), [0.0, 0.0, 5.0, 5.0]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn assign<'a>(&'a self, slices: impl Slices, value: impl Into<Operand<'a>>) -> Array {
        let at = Location::caller();
        let value = value.into();
        with_value(self, &value, None, "assign_slice", at, |home, value| {
            let own = self.meta()?;
            if slices.is_linear() {
                let message = "an assignment names its dimensions: x.assign((0..10, ..), value)";
                return Err(Error::new(ErrorKind::Argument, message));
            }
            let dims = resolve(&own.shape, slices)?;
            let part = rules::sliced(&own.shape, &dims)?;
            rules::expands(&value.meta()?.shape, &part)?;
            if part.elements() == 0 {
                return Ok(self.clone());
            }
            let inputs = [Input::Array(self), Input::Array(value)];
            Ok(node(home, Op::AssignSlice(dims.as_slice().into()), &inputs, own.clone(), at))
        })
    }

    /// A copy with `result[index] = value` at linear, 0-based indices; the last of duplicates wins. The value has one
    /// element or as many as the index.
    #[track_caller]
    pub fn assign_at<'a>(&'a self, index: &'a Array, value: impl Into<Operand<'a>>) -> Array {
        let at = Location::caller();
        let value = value.into();
        with_value(self, &value, Some(index), "assign_index", at, |home, value| {
            let (own, count) = (self.meta()?, index.elements()?);
            check_index(index, index.meta()?, own.elements())?;
            let given = value.elements()?;
            if given != 1 && given != count {
                let message = format!("{given} values do not fit {count} indices");
                return Err(Error::new(ErrorKind::Shape, message));
            }
            if count == 0 || own.elements() == 0 {
                return Ok(self.clone());
            }
            let column = Shape::new(&[count])?;
            let index = index.view(home, View::Reshape, column.clone(), at);
            let value = if given == 1 { value.clone() } else { value.view(home, View::Reshape, column, at) };
            let inputs = [Input::Array(self), Input::Array(&index), Input::Array(&value)];
            Ok(node(home, Op::AssignIndex { dim: None }, &inputs, own.clone(), at))
        })
    }

    /// A copy with `result[.., index[i], ..] = value[.., i, ..]` along a dimension; the last of duplicates wins.
    /// The value has one element, or this array's extents with the index's length in `dim`.
    #[track_caller]
    pub fn assign_dim<'a>(&'a self, dim: usize, index: &'a Array, value: impl Into<Operand<'a>>) -> Array {
        let at = Location::caller();
        let value = value.into();
        with_value(self, &value, Some(index), "assign_index", at, |home, value| {
            let (own, count) = (self.meta()?, index.elements()?);
            own.shape.has_axis(dim)?;
            check_index(index, index.meta()?, own.shape.dim(dim))?;
            let part = rules::with_extent(&own.shape, dim, count)?;
            let given = value.meta()?;
            if !given.shape.is_scalar() {
                rules::expands(&given.shape, &part)?;
            }
            if part.elements() == 0 {
                return Ok(self.clone());
            }
            let value = match given.shape.is_scalar() {
                true => value.clone(),
                false => value.view(home, View::Broadcast, part, at),
            };
            let index = index.view(home, View::Reshape, Shape::new(&[count])?, at);
            let inputs = [Input::Array(self), Input::Array(&index), Input::Array(&value)];
            Ok(node(home, Op::AssignIndex { dim: Some(dim as u8) }, &inputs, own.clone(), at))
        })
    }

    /// The linear, 0-based indices (u32, a column) of the elements that are not zero. The future awaits their number.
    ///
    /// # Errors
    /// The array's fault, and errors of the computation of the number.
    #[track_caller]
    pub fn nonzero(&self) -> impl Future<Output = Result<Array>> + Send + use<> {
        nonzero(self, "nonzero", Location::caller())
    }

    /// The elements at which `mask`, of the same shape, is not zero, as a column. The future awaits their number.
    ///
    /// # Errors
    /// The first operand's fault, `ErrorKind::Shape` if the shapes differ, and errors of the computation of the number.
    ///
    /// ```
    /// # futures::executor::block_on(async {
    /// # let rt = tidemill::Runtime::builder().device("host").start().await?;
    /// # let s = rt.session("masks").open();
    /// let x = s.from_slice(&[1.0f64, -2.0, 3.0], 3)?;
    /// let positive = x.compress(&x.gt(0.0)).await?;
    /// assert_eq!(positive.gather::<f64>().await?.as_slice(), [1.0, 3.0]);
    /// # rt.shutdown().await
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn compress(&self, mask: &Array) -> impl Future<Output = Result<Array>> + Send + use<> {
        let at = Location::caller();
        let array = self.clone();
        let checked = derive(&[self, mask], "compress", at, |_, metas| {
            if metas[0].shape != metas[1].shape {
                let message = format!("a mask of {} does not fit an array of {}", metas[1].shape, metas[0].shape);
                return Err(Error::new(ErrorKind::Shape, message));
            }
            Ok(mask.clone())
        });
        let indices = checked.nonzero();
        async move { array.take(&indices.await?).checked() }
    }

    /// The elements sorted along a dimension, least first, NaN last, and the 0-based positions (u32) that they had
    /// before.
    #[track_caller]
    pub fn sort(&self, dim: usize) -> (Array, Array) {
        sort(self, dim, false, Location::caller())
    }

    /// As [`Array::sort`], greatest first and NaN first; equal elements keep their order.
    #[track_caller]
    pub fn sort_descending(&self, dim: usize) -> (Array, Array) {
        sort(self, dim, true, Location::caller())
    }

    /// The positions (u32) that [`Array::sort`] yields.
    #[track_caller]
    pub fn argsort(&self, dim: usize) -> Array {
        sort(self, dim, false, Location::caller()).1
    }
}

/// Checks that indices are integers, and that they lie within the extent if they are known.
pub(super) fn check_index(index: &Array, meta: &Meta, extent: usize) -> Result<()> {
    if !meta.dtype.is_integer() {
        let message = format!("indices must be integers, and these are {}", meta.dtype);
        return Err(Error::new(ErrorKind::DType, message));
    }
    let known = index.0.host.as_deref();
    let outside = |data: &HostBuffer| {
        (0..data.len()).map(|i| data.scalar(i)).find(|s| s.as_f64() < 0.0 || s.as_f64() >= extent as f64)
    };
    let outside = known.and_then(outside);
    // No index is valid if there are no elements.
    let outside = outside.map(|s| s.to_string()).or((extent == 0 && meta.elements() > 0).then(|| "any index".into()));
    match outside {
        None => Ok(()),
        Some(which) => {
            let message = format!("{which} is outside of the {extent} places that can be indexed");
            Err(Error::new(ErrorKind::Index, message))
        }
    }
}

/// Records an assignment, whose value takes the base's dtype.
pub(super) fn with_value(
    base: &Array,
    value: &Operand<'_>,
    index: Option<&Array>,
    name: &'static str,
    at: At,
    build: impl FnOnce(&Arc<Home>, &Array) -> Result<Array>,
) -> Array {
    let arrays = [Some(base), index, value.array()];
    let result = common_home(arrays.iter().flatten().copied()).and_then(|home| {
        let dtype = base.dtype()?;
        strict::written(home, value, dtype)?;
        let value = match &value.0 {
            Kind::Number(number) => scalar_array(home, number.cast(dtype), at),
            Kind::Beyond(number) if !dtype.is_integer() => {
                scalar_array(home, Scalar::F64(*number as f64).cast(dtype), at)
            }
            Kind::Beyond(number) => return Err(strict::beyond(*number, dtype)),
            _ => cast_in(home, value.array().expect("RECORD-5: an operand is a number or an array"), dtype, at),
        };
        build(home, &value)
    });
    result.unwrap_or_else(|error| Array::faulty(&base.0.home, error, name, at))
}

fn scalar_array(home: &Arc<Home>, number: Scalar, at: At) -> Array {
    let meta = Meta { dtype: number.dtype(), shape: Shape::scalar() };
    node(home, Op::Fill, &[Input::Number(number)], meta, at)
}

/// The linear indices of the elements that are not zero, for the method `name`.
pub(super) fn nonzero(array: &Array, name: &'static str, at: At) -> impl Future<Output = Result<Array>> + Send + use<> {
    let array = array.clone();
    // The count is in progress from now on.
    let counted = count(&array, name, at);
    async move {
        let Counted { mask, running, kept, total } = counted?;
        let total = total.await? as usize;
        let meta = Meta { dtype: DType::U32, shape: Shape::new(&[total])? };
        let inputs = [Input::Array(&mask), Input::Array(&running)];
        let found = node(&array.0.home, Op::Compact, &inputs, meta, at).checked();
        // From here on, the recorded op keeps the running count.
        drop(kept);
        found
    }
}

/// The number of elements that are not zero, while it is computed.
struct Counted {
    /// Whether each element is not zero; a column.
    mask: Array,
    /// For each element, how many up to it are not zero; a column.
    running: Array,
    /// Keeps the value of `running`, because the op that finds the indices reads it next.
    kept: Eval,
    /// The last element of `running`.
    total: Item<u32>,
}

fn count(array: &Array, name: &'static str, at: At) -> Result<Counted> {
    let named = |error: Error| error.with_op(name).with_location(at);
    let meta = array.meta()?;
    let home = &array.0.home;
    home.is_open().map_err(named)?;
    let n = meta.elements();
    let mask = match meta.dtype {
        DType::Bool => array.clone(),
        _ => apply(ElementOp::Ne, &mut [array.into(), 0i64.into()], at),
    };
    let mask = mask.view(home, View::Reshape, Shape::new(&[n])?, at);
    let ones = cast_in(home, &mask, DType::U32, at);
    let meta = Meta { dtype: DType::U32, shape: Shape::new(&[n])? };
    let scan = Op::Scan { op: ScanOp::Sum, dim: 0, nan: Nan::Include, reverse: false };
    let running = match n {
        0 | 1 => ones,
        _ => node(home, scan, &[Input::Array(&ones)], meta, at),
    };
    let total = match n {
        0 => zeros(home, Meta { dtype: DType::U32, shape: Shape::scalar() }, at),
        _ => running.slice_dim(home, 0, n - 1, 1, at)?,
    };
    let (kept, total) = (running.eval(), total.item::<u32>());
    Ok(Counted { mask, running, kept, total })
}

fn sort(array: &Array, dim: usize, descending: bool, at: At) -> (Array, Array) {
    let index = derive(&[array], "sort", at, |home, metas| {
        metas[0].shape.has_axis(dim)?;
        let meta = Meta { dtype: DType::U32, shape: metas[0].shape.clone() };
        if metas[0].shape.dim(dim) < 2 {
            return Ok(zeros(home, meta, at));
        }
        Ok(node(home, Op::ArgSort { dim: dim as u8, descending }, &[Input::Array(array)], meta, at))
    });
    let values = derive(&[array, &index], "sort", at, |home, metas| {
        if metas[0].shape.dim(dim) < 2 {
            return Ok(array.clone());
        }
        let inputs = [Input::Array(array), Input::Array(&index)];
        Ok(node(home, Op::TakeAlong { dim: dim as u8 }, &inputs, metas[0].clone(), at))
    });
    (values, index)
}
