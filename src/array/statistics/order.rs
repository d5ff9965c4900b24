//! Statistics of the sorted lines of an array: medians, quantiles, modes, greatest elements.

use crate::array::handle::Array;
use crate::array::record::{At, as_floats, derive};
use crate::array::recorder::Recorder;
use crate::array::watch::noted_as;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{ElementOp, Meta, Nan, Op, ReduceOp, ScanOp};
use std::panic::Location;

impl Array {
    /// The middle of the sorted elements along a dimension; for an even number of elements, the mean of the two in the
    /// middle. That dimension has an extent of 1 in the result. Integers and bools give f64.
    ///
    /// The result is NaN for a line that holds NaN, and for one without elements. A dimension that the array lacks is a
    /// fault (`ErrorKind::Index`).
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("medians").open();
    /// let x = s.from_slice(&[5i32, 1, 2, 9], 4)?;
    /// assert_eq!(x.median(0).gather_blocking::<f64>()?.as_slice(), [3.5]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn median(&self, dim: usize) -> Array {
        quantiles(self, &[0.5], dim, "median", Location::caller())
    }

    /// The element at the place `q (n - 1)` of the n sorted elements along a dimension, interpolated linearly between
    /// the two nearest (NumPy's default): the least for a `q` of 0, the median for 0.5, the greatest for 1. Shapes,
    /// dtypes, NaN and empty lines are as in [`Array::median`].
    ///
    /// Between finite and infinite elements a quantile is infinite; between two different infinities it is NaN. A `q`
    /// that is not from 0 to 1 is a fault (`ErrorKind::Argument`).
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("quantiles").open();
    /// let x = s.from_slice(&[30.0f64, 10.0, 20.0], 3)?;
    /// assert_eq!(x.quantile(0.25, 0).gather_blocking::<f64>()?.as_slice(), [15.0]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn quantile(&self, q: f64, dim: usize) -> Array {
        quantiles(self, &[q], dim, "quantile", Location::caller())
    }

    /// Several quantiles along a dimension, which has the extent of `q` in the result; the elements are sorted once. All
    /// else is as in [`Array::quantile`].
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("quantiles").open();
    /// let x = s.from_slice(&[30.0f64, 10.0, 20.0], 3)?;
    /// assert_eq!(x.quantiles(&[0.0, 0.5, 1.0], 0).gather_blocking::<f64>()?.as_slice(), [10.0, 20.0, 30.0]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn quantiles(&self, q: &[f64], dim: usize) -> Array {
        quantiles(self, q, dim, "quantiles", Location::caller())
    }

    /// The most frequent element along a dimension; if several are equally frequent, the least of them. That dimension
    /// has an extent of 1 in the result, which has this array's dtype.
    ///
    /// NaN counts only if a line holds nothing else; then the result is NaN. Lines without elements are a fault
    /// (`ErrorKind::Argument`), unless the result is empty, too. A dimension that the array lacks is a fault
    /// (`ErrorKind::Index`).
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("modes").open();
    /// let x = s.from_slice(&[7i32, 3, 7, 3, 1], 5)?;
    /// assert_eq!(x.mode(0).gather_blocking::<i32>()?.as_slice(), [3]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn mode(&self, dim: usize) -> Array {
        mode(self, dim, Location::caller())
    }

    /// The `k` greatest elements along a dimension, greatest first, or the `k` least ones, least first (`largest`
    /// false), and their 0-based positions (u32). That dimension has an extent of `k` in both results.
    ///
    /// If several elements are equal, the one at the lower position comes first. NaN is greater than all numbers, as in
    /// [`Array::sort`]. A `k` beyond the extent, and a dimension that the array lacks, are faults (`ErrorKind::Index`).
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("greatest").open();
    /// let x = s.from_slice(&[4.0f64, 9.0, 1.0, 9.0], 4)?;
    /// let (values, places) = x.top_k(3, 0, true);
    /// assert_eq!(values.gather_blocking::<f64>()?.as_slice(), [9.0, 9.0, 4.0]);
    /// assert_eq!(places.gather_blocking::<u32>()?.as_slice(), [1, 3, 0]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn top_k(&self, k: usize, dim: usize, largest: bool) -> (Array, Array) {
        let at = Location::caller();
        let places = derive(&[self], "top_k", at, |home, metas| {
            metas[0].shape.has_axis(dim)?;
            let extent = metas[0].shape.dim(dim);
            if k > extent {
                let message = format!("{k} elements were asked for, and there are {extent} along dimension {dim}");
                return Err(Error::new(ErrorKind::Index, message));
            }
            let r = Recorder { home, at };
            r.part(&r.order(self, dim, largest)?, dim, 0, k)
        });
        let values = derive(&[self, &places], "top_k", at, |home, metas| {
            let meta = Meta { dtype: metas[0].dtype, shape: metas[1].shape.clone() };
            Recorder { home, at }.op(Op::TakeAlong { dim: dim as u8 }, &[self, &places], meta)
        });
        (values, places)
    }
}

/// The sorted elements of each line, NaN last.
pub(super) fn sorted(r: &Recorder<'_>, array: &Array, dim: usize) -> Result<Array> {
    let order = r.order(array, dim, false)?;
    r.op(Op::TakeAlong { dim: dim as u8 }, &[array, &order], array.meta()?.clone())
}

fn quantiles(array: &Array, q: &[f64], dim: usize, name: &'static str, at: At) -> Array {
    derive(&[array], name, at, |home, metas| {
        metas[0].shape.has_axis(dim)?;
        if let Some(q) = q.iter().find(|q| !(0.0..=1.0).contains(*q)) {
            return Err(Error::new(ErrorKind::Argument, format!("a quantile lies from 0 to 1, and this is {q}")));
        }
        let (x, r) = (as_floats(home, array, at)?, Recorder { home, at });
        let meta = Meta { dtype: x.dtype()?, shape: metas[0].shape.with_dim(dim, q.len())? };
        let extent = metas[0].shape.dim(dim);
        if meta.elements() == 0 {
            return r.zeros(meta);
        }
        if extent == 0 {
            let nothing = Op::Reduce { op: ReduceOp::Mean, dims: 1 << dim, nan: Nan::Include };
            return Ok(noted_as(home, nothing, &[&x], r.full(meta, f64::NAN)?, at));
        }
        let sorted = sorted(&r, &x, dim)?;
        let found =
            q.iter().map(|q| at_place(&r, &sorted, dim, q * (extent - 1) as f64)).collect::<Result<Vec<_>>>()?;
        let found = r.join(dim, &found.iter().collect::<Vec<_>>())?;
        // NaN is sorted behind all numbers.
        let has_nan = r.is_nan(&r.part(&sorted, dim, extent - 1, 1)?)?;
        r.select(&has_nan, f64::NAN, &found)
    })
}

/// The value at a place in sorted lines, interpolated linearly between two elements.
fn at_place(r: &Recorder<'_>, sorted: &Array, dim: usize, place: f64) -> Result<Array> {
    let (below, share) = (place.floor(), place.fract());
    let low = r.part(sorted, dim, below as usize, 1)?;
    if share == 0.0 {
        return Ok(low);
    }
    let high = r.part(sorted, dim, below as usize + 1, 1)?;
    let rise = r.sub(&high, &low)?;
    // The value is computed from the nearer element, so that it never lies beyond the other one.
    let between = match share < 0.5 {
        true => r.add(&low, &r.scaled(&rise, share)?)?,
        false => r.sub(&high, &r.scaled(&rise, 1.0 - share)?)?,
    };
    // The rise is infinite between infinities, and between numbers near both ends of the dtype's range.
    let finite = r.apply(ElementOp::IsFinite, &mut [(&rise).into()])?;
    let weighted = r.add(&r.scaled(&low, 1.0 - share)?, &r.scaled(&high, share)?)?;
    r.select(&finite, &between, &weighted)
}

fn mode(array: &Array, dim: usize, at: At) -> Array {
    derive(&[array], "mode", at, |home, metas| {
        let own = &metas[0].shape;
        own.has_axis(dim)?;
        let r = Recorder { home, at };
        let (extent, meta) = (own.dim(dim), Meta { dtype: metas[0].dtype, shape: own.with_dim(dim, 1)? });
        if extent == 0 && meta.elements() > 0 {
            return Err(Error::new(ErrorKind::Argument, "an array without elements has no most frequent element"));
        }
        if meta.elements() == 0 || extent == 1 {
            return r.reshape(array, meta.shape);
        }
        let sorted = sorted(&r, array, dim)?;
        let (earlier, later) = (r.part(&sorted, dim, 0, extent - 1)?, r.part(&sorted, dim, 1, extent - 1)?);
        let differs = r.binary(ElementOp::Ne, &earlier, &later)?;
        let place = r.positions_along(own, 1 << dim)?;
        // For each element, the place where its run of equal elements begins.
        let begins = r.select(&differs, &r.part(&place, dim, 1, extent - 1)?, 0i64)?;
        let begins = r.scan(&r.padded(&begins, dim, 1, 0)?, ScanOp::Max, dim, false)?;
        let length = r.sub(&place, &begins)?;
        // The first of the greatest lengths is at the end of the first of the longest runs. NaN equals nothing, so its
        // runs have one element and lie behind all others.
        let last = r.reduce(&length, ReduceOp::ArgMax, 1 << dim, Nan::Include)?;
        r.op(Op::TakeAlong { dim: dim as u8 }, &[&sorted, &last], meta)
    })
}
