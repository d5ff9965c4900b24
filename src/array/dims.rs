//! How callers specify shapes, dimensions and slices.
//!
//! In: Rust values that read well in a call. Out: normalised extents, sets of dimensions, bounds of slices.

use crate::error::{Error, ErrorKind, Result};
use crate::graph::rules::{all_dims, dim_set};
use crate::graph::{DimSet, Shape, SliceDim};
use smallvec::SmallVec;
use std::ops::{Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// A value that specifies a shape: `[2, 3]`, `n` (a column), a slice, a `Vec`, a [`Shape`], or the result of
/// [`Array::shape`](super::Array::shape) of another array, whose fault is then passed on.
pub trait IntoShape {
    /// The shape.
    ///
    /// # Errors
    /// `ErrorKind::TooLarge` for too many elements, `ErrorKind::Rank` for too many dimensions; the fault of the array
    /// that the shape comes from.
    fn into_shape(self) -> Result<Shape>;
}

impl IntoShape for usize {
    fn into_shape(self) -> Result<Shape> {
        Shape::new(&[self])
    }
}
impl IntoShape for &[usize] {
    fn into_shape(self) -> Result<Shape> {
        Shape::new(self)
    }
}
impl IntoShape for Vec<usize> {
    fn into_shape(self) -> Result<Shape> {
        Shape::new(&self)
    }
}
impl<const N: usize> IntoShape for [usize; N] {
    fn into_shape(self) -> Result<Shape> {
        Shape::new(&self)
    }
}
impl<const N: usize> IntoShape for &[usize; N] {
    fn into_shape(self) -> Result<Shape> {
        Shape::new(self)
    }
}
impl IntoShape for Shape {
    fn into_shape(self) -> Result<Shape> {
        Ok(self)
    }
}
impl IntoShape for &Shape {
    fn into_shape(self) -> Result<Shape> {
        Ok(self.clone())
    }
}
impl IntoShape for Result<&Shape> {
    fn into_shape(self) -> Result<Shape> {
        self.cloned()
    }
}
impl IntoShape for Result<Shape> {
    fn into_shape(self) -> Result<Shape> {
        self
    }
}

/// A value that specifies the dimensions of a reduction: one (`1`), several (`[0, 2]`), all (`..`), or MATLAB's
/// default, the first whose extent is not 1 (`()`). It is an error to name a dimension that the array lacks;
/// [`Shape::axes`] says which ones it has.
pub trait Dims {
    /// The set of dimensions, for an array of this shape.
    ///
    /// # Errors
    /// `ErrorKind::Index` where the array lacks one of them.
    fn set(&self, shape: &Shape) -> Result<DimSet>;
}

impl Dims for usize {
    fn set(&self, shape: &Shape) -> Result<DimSet> {
        dim_set(shape, &[*self])
    }
}
impl<const N: usize> Dims for [usize; N] {
    fn set(&self, shape: &Shape) -> Result<DimSet> {
        dim_set(shape, self)
    }
}
impl Dims for &[usize] {
    fn set(&self, shape: &Shape) -> Result<DimSet> {
        dim_set(shape, self)
    }
}
impl Dims for RangeFull {
    fn set(&self, shape: &Shape) -> Result<DimSet> {
        Ok(all_dims(shape))
    }
}
impl Dims for () {
    fn set(&self, shape: &Shape) -> Result<DimSet> {
        dim_set(shape, &[shape.first_non_singleton()])
    }
}

/// One dimension of a slice, before it is applied to an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceArg {
    start: Bound<i64>,
    end: Bound<i64>,
    step: i64,
    single: bool,
}

/// Every `step`-th element of a range. A negative step goes through the range from its last element down, as
/// `(2..8).rev().step_by(2)` does: `step(.., -1)` is all elements backwards, `step(2..8, -2)` is 7, 5, 3.
pub fn step(range: impl Into<SliceArg>, step: i64) -> SliceArg {
    SliceArg { step, single: false, ..range.into() }
}

fn ranged<I: Copy + TryInto<i64>>(range: impl RangeBounds<I>) -> SliceArg {
    SliceArg { start: bound(range.start_bound()), end: bound(range.end_bound()), step: 1, single: false }
}

/// A number beyond i64 is outside of every array, and so is i64::MAX, which stands for it.
fn number<I: TryInto<i64>>(n: I) -> i64 {
    n.try_into().unwrap_or(i64::MAX)
}

fn bound<I: Copy + TryInto<i64>>(b: Bound<&I>) -> Bound<i64> {
    match b {
        Bound::Included(&n) => Bound::Included(number(n)),
        Bound::Excluded(&n) => Bound::Excluded(number(n)),
        Bound::Unbounded => Bound::Unbounded,
    }
}

impl SliceArg {
    /// All elements of the dimension.
    pub const ALL: SliceArg = SliceArg { start: Bound::Unbounded, end: Bound::Unbounded, step: 1, single: false };

    /// The elements that it selects of a dimension with this extent.
    ///
    /// # Errors
    /// `ErrorKind::Index` where a bound lies outside, `ErrorKind::Argument` for a step of 0.
    pub fn resolve(self, dim: usize, extent: usize) -> Result<SliceDim> {
        let outside = |at: i64| {
            Error::new(ErrorKind::Index, format!("{at} is outside of dimension {dim}, which has {extent} elements"))
        };
        let n = extent as i64;
        if self.single {
            let Bound::Included(at) = self.start else { return Err(outside(0)) };
            return match at >= 0 && at < n {
                true => Ok(SliceDim { start: at as usize, step: 1, len: 1 }),
                false => Err(outside(at)),
            };
        }
        if self.step == 0 {
            return Err(Error::new(ErrorKind::Argument, "the step of a slice must not be 0"));
        }
        let low = match self.start {
            Bound::Included(at) => at,
            Bound::Excluded(at) => at.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let high = match self.end {
            Bound::Included(at) => at.saturating_add(1),
            Bound::Excluded(at) => at,
            Bound::Unbounded => n,
        };
        // An empty range must also lie within the dimension: `4..4` of 4 elements is valid, `9..9` is an error.
        if low < 0 || low > n {
            return Err(outside(low));
        }
        if high < 0 || high > n {
            return Err(outside(if high > n { high - 1 } else { high }));
        }
        let stride = self.step.unsigned_abs();
        let len = high.saturating_sub(low).max(0) as u64;
        let len = len.div_ceil(stride) as usize;
        let start = match (len, self.step > 0) {
            (0, _) => return Ok(SliceDim { start: 0, step: 1, len: 0 }),
            (_, true) => low,
            (_, false) => high - 1,
        };
        // A single element has no next one. A step of 1 makes equal slices compare equal.
        Ok(SliceDim { start: start as usize, step: if len == 1 { 1 } else { self.step as isize }, len })
    }
}

impl From<RangeFull> for SliceArg {
    fn from(_: RangeFull) -> SliceArg {
        SliceArg::ALL
    }
}

macro_rules! slice_args {
    ($($int:ty),*) => {$(
        impl From<$int> for SliceArg {
            fn from(at: $int) -> SliceArg {
                SliceArg { start: Bound::Included(number(at)), end: Bound::Unbounded, step: 1, single: true }
            }
        }
        slice_args!(@ranges Range<$int>, RangeFrom<$int>, RangeTo<$int>, RangeInclusive<$int>, RangeToInclusive<$int>);
    )*};
    (@ranges $($range:ty),*) => {$(
        impl From<$range> for SliceArg {
            fn from(range: $range) -> SliceArg {
                ranged(range)
            }
        }
    )*};
}
slice_args!(usize, i64, i32);

/// A value that specifies a slice: a tuple of up to four integers (each keeps its dimension, with one element), ranges,
/// `..` and [`step`]s; or a Rust slice of [`SliceArg`]s. Dimensions that are not named are taken whole. A single range
/// or step outside of a tuple selects elements in column-major order, and the result is a column.
pub trait Slices {
    /// One argument for each dimension.
    fn args(self) -> SmallVec<[SliceArg; 4]>;

    /// Whether the only argument selects elements rather than rows.
    fn is_linear(&self) -> bool {
        false
    }
}

impl Slices for &[SliceArg] {
    fn args(self) -> SmallVec<[SliceArg; 4]> {
        SmallVec::from_slice(self)
    }
}

macro_rules! linear {
    ($($ty:ty),*) => {$(
        impl Slices for $ty {
            fn args(self) -> SmallVec<[SliceArg; 4]> {
                SmallVec::from_slice(&[self.into()])
            }
            fn is_linear(&self) -> bool {
                true
            }
        }
    )*};
}
linear!(SliceArg, Range<usize>, RangeFrom<usize>, RangeTo<usize>, RangeInclusive<usize>, RangeToInclusive<usize>);

macro_rules! tuples {
    ($(($($name:ident),*))*) => {$(
        impl<$($name: Into<SliceArg>),*> Slices for ($($name,)*) {
            #[allow(non_snake_case)]
            fn args(self) -> SmallVec<[SliceArg; 4]> {
                let ($($name,)*) = self;
                let mut out = SmallVec::new();
                $(out.push($name.into());)*
                out
            }
        }
    )*};
}
tuples! { (A) (A, B) (A, B, C) (A, B, C, D) }

/// The slice of an array of this shape.
pub(crate) fn resolve(shape: &Shape, slices: impl Slices) -> Result<SmallVec<[SliceDim; 4]>> {
    let args = slices.args();
    if args.len() > shape.axes() {
        let message =
            format!("a slice names {} dimensions of an array of {shape}, which has {}", args.len(), shape.axes());
        return Err(Error::new(ErrorKind::Index, message));
    }
    (0..args.len().max(shape.rank()))
        .map(|d| args.get(d).copied().unwrap_or(SliceArg::ALL).resolve(d, shape.dim(d)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(arg: impl Into<SliceArg>, extent: usize) -> (usize, isize, usize) {
        let s = arg.into().resolve(0, extent).unwrap();
        (s.start, s.step, s.len)
    }

    #[test]
    fn slices_read_as_rust_ranges_do() {
        assert_eq!(at(2, 5), (2, 1, 1));
        assert_eq!(at(1..4, 5), (1, 1, 3));
        assert_eq!(at(1.., 5), (1, 1, 4));
        assert_eq!(at(..=2, 5), (0, 1, 3));
        assert_eq!(at(.., 5), (0, 1, 5));
        assert_eq!(at(5..5usize, 5), (0, 1, 0));
        assert_eq!(at(step(0..5, 2), 5), (0, 2, 3));
    }

    #[test]
    fn negative_steps_walk_the_range_from_its_end() {
        assert_eq!(at(step(.., -1), 5), (4, -1, 5));
        assert_eq!(at(step(0..5, -2), 5), (4, -2, 3));
        assert_eq!(at(step(2..8, -2), 9), (7, -2, 3));
        assert_eq!(at(step(2.., -1), 5), (4, -1, 3));
        assert_eq!(at(step(..=1, -1), 5), (1, -1, 2));
        assert_eq!(at(step(.., i64::MIN), 5), (4, 1, 1));
    }

    #[test]
    fn places_outside_are_index_errors() {
        for arg in [
            SliceArg::from(5),
            (-1).into(),
            (0..6).into(),
            (7..9).into(),
            (9..9).into(),
            step(0..6, -1),
            step(-1.., -1),
        ] {
            assert_eq!(arg.resolve(0, 5).unwrap_err().kind(), ErrorKind::Index, "{arg:?}");
        }
        assert_eq!(step(0..3, 0).resolve(0, 5).unwrap_err().kind(), ErrorKind::Argument);
    }
}
