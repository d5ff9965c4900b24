//! Permutations, and choices from `0..n`, with and without weights.

use crate::array::dims::IntoShape;
use crate::array::ensure::ensure;
use crate::array::handle::Array;
use crate::array::record::At;
use crate::array::recorder::Recorder;
use crate::array::session::Session;
use crate::array::statistics::search;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{DType, DimSet, Dist, ElementOp, Meta, Nan, Op, ReduceOp, Scalar, ScanOp, Shape};
use std::panic::Location;
use std::sync::Arc;

impl Session {
    /// The numbers from 0 to `n - 1` in random order, a row of u32, as an index takes them:
    /// `x.take_dim(0, &s.permutation(rows))` shuffles rows. The same on every device.
    ///
    /// They are sorted by random keys of 64 bits, so each order is as likely as any other, but for equal keys, which keep
    /// their order: the chance that there are any is below `n^2 / 2^65`.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("orders").seed(1).open();
    /// let order = s.permutation(1000);
    /// let sorted = order.sort(1).0.gather_blocking::<u32>()?;
    /// assert!(sorted.as_slice().iter().copied().eq(0..1000));
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn permutation(&self, n: usize) -> Array {
        self.recorded("permutation", Location::caller(), |r| self.shuffled(r, n))
    }

    /// Numbers from 0 to `n - 1` (u32), each with the same probability, and as often as it comes: with replacement. The
    /// same on every device. `x.take(&s.choice(x_len, 10))` draws elements.
    ///
    /// To choose from nothing is a fault (`ErrorKind::Argument`), unless nothing is chosen.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("choices").seed(1).open();
    /// let throws = s.choice(6, [1000, 2]) + 1u32;
    /// assert_eq!(throws.max_over(..).gather_blocking::<u32>()?[0], 6);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn choice(&self, n: usize, shape: impl IntoShape) -> Array {
        let at = Location::caller();
        self.recorded("choice", at, |r| {
            let shape = shape.into_shape()?;
            if shape.elements() == 0 {
                return r.zeros(Meta { dtype: DType::U32, shape });
            }
            let Some(span) = u32::try_from(n).ok().filter(|&span| span > 0) else { return Err(no_choice(n)) };
            let args = [Scalar::U32(0), Scalar::U32(span)];
            self.random(Dist::Integer, DType::U32, shape, &args, at).checked()
        })
    }

    /// `count` different numbers from 0 to `n - 1`, a row of u32 in random order: without replacement. The same on every
    /// device. It takes the time of a permutation of `n`.
    ///
    /// More than `n` are a fault (`ErrorKind::Argument`).
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("choices").seed(1).open();
    /// let drawn = s.choice_distinct(49, 6).gather_blocking::<u32>()?;
    /// let mut different = drawn.as_slice().to_vec();
    /// different.sort();
    /// different.dedup();
    /// assert_eq!(different.len(), 6);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn choice_distinct(&self, n: usize, count: usize) -> Array {
        self.recorded("choice_distinct", Location::caller(), |r| {
            if count > n {
                return Err(too_many(count, n));
            }
            r.part(&self.shuffled(r, n)?, 1, 0, count)
        })
    }

    /// Linear, 0-based positions in `weights` (u32), each with a probability in proportion to its weight, and as often as
    /// it comes: with replacement. Weights are computed with in their own float type, those of integers in f64; the
    /// probabilities are right to the rounding of the weights' running sum, and to 2^-24 (f32) or 2^-53 (f64) of it. A
    /// weight of 0 is never chosen.
    ///
    /// A weight that is below 0, infinite or NaN, weights whose sum is 0 or infinite, and none at all, are faults
    /// (`ErrorKind::Domain`), read with the gather.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("choices").seed(1).open();
    /// let weights = s.from_slice(&[1.0f64, 0.0, 3.0], 3)?;
    /// let drawn = s.choice_weighted(&weights, 40_000);
    /// let counts = drawn.bincount(3).gather_blocking::<u32>()?;
    /// assert!((9_600..10_400).contains(&counts.as_slice()[0]) && counts.as_slice()[1] == 0);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn choice_weighted(&self, weights: &Array, shape: impl IntoShape) -> Array {
        let at = Location::caller();
        self.recorded("choice_weighted", at, |r| {
            let shape = shape.into_shape()?;
            if shape.elements() == 0 {
                return r.zeros(Meta { dtype: DType::U32, shape });
            }
            let weights = self.weights(r, weights, "choice_weighted", at)?;
            let (count, dtype) = (weights.elements()?, weights.dtype()?);
            if count == 0 {
                return Err(no_choice(0));
            }
            let sums = running_sums(r, &weights)?;
            let total = r.part(&sums, 0, count - 1, 1)?;
            let least = r.number(dtype, 0.0);
            let holds = r.binary(ElementOp::Gt, &total, least)?;
            let finite = r.apply(ElementOp::IsFinite, &mut [(&total).into()])?;
            let holds = r.binary(ElementOp::And, &holds, &finite)?;
            let message = Arc::from("the sum of the weights is finite and above 0");
            let total = ensure(&total, "choice_weighted", &holds, message, at).checked()?;
            let u = self.random(Dist::Uniform, dtype, shape, &[], at).checked()?;
            // Below the total, since u is below 1 by more than a rounding.
            let place = r.mul(&u, &r.reshape(&total, Shape::scalar())?)?;
            search(r, &sums, &place, true, None)
        })
    }

    /// `count` different positions in `weights`, a row of u32, drawn one after the other with probabilities in proportion to
    /// the weights of those that are left: without replacement (the order in which they are drawn is that of exponential
    /// numbers over the weights; Efraimidis and Spirakis, "Weighted random sampling with a reservoir", 2006). A weight of 0
    /// is never chosen.
    ///
    /// More than there are weights are a fault (`ErrorKind::Argument`), more than there are weights above 0 one that is read
    /// with the gather (`ErrorKind::Domain`), as is a weight that is below 0, infinite or NaN.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("choices").seed(1).open();
    /// let weights = s.from_slice(&[1.0f32, 0.0, 3.0], 3)?;
    /// let mut drawn = s.choice_weighted_distinct(&weights, 2).gather_blocking::<u32>()?.as_slice().to_vec();
    /// drawn.sort();
    /// assert_eq!(drawn, [0, 2]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn choice_weighted_distinct(&self, weights: &Array, count: usize) -> Array {
        let at = Location::caller();
        self.recorded("choice_weighted_distinct", at, |r| {
            let weights = self.weights(r, weights, "choice_weighted_distinct", at)?;
            let (n, dtype) = (weights.elements()?, weights.dtype()?);
            if count > n {
                return Err(too_many(count, n));
            }
            let row = Shape::new(&[1, count])?;
            if count == 0 {
                return r.zeros(Meta { dtype: DType::U32, shape: row });
            }
            let positive = r.reduce(&weights, ReduceOp::CountNonzero, 1 as DimSet, Nan::Include)?;
            let holds = r.binary(ElementOp::Ge, &positive, count as i64)?;
            let message = Arc::from(format!("{count} different ones are to be chosen, of fewer weights above 0"));
            let weights = ensure(&weights, "choice_weighted_distinct", &holds, message, at).checked()?;
            // Logarithms: the quotient itself may be beyond the floats. Of a weight of 0, it is infinite.
            let shape = Shape::new(&[n])?;
            let times = self.random(Dist::Exponential, dtype, shape, &[], at).checked()?;
            let log = |x: &Array| r.apply(ElementOp::Log, &mut [x.into()]);
            let order = r.order(&r.sub(&log(&times)?, &log(&weights)?)?, 0, false)?;
            r.reshape(&r.part(&order, 0, 0, count)?, row)
        })
    }

    fn recorded(&self, name: &'static str, at: At, record: impl FnOnce(&Recorder<'_>) -> Result<Array>) -> Array {
        let r = Recorder { home: self.home(), at };
        record(&r).unwrap_or_else(|error| Array::faulty(self.home(), error, name, at))
    }

    /// A random order of `0..n`, a row.
    fn shuffled(&self, r: &Recorder<'_>, n: usize) -> Result<Array> {
        let shape = Shape::new(&[1, n])?;
        let keys = || {
            let args = [Scalar::U32(0), Scalar::U32(0)];
            self.random(Dist::Integer, DType::U32, shape.clone(), &args, r.at).checked()
        };
        // Two stable sorts, by the low half of the keys and by the high one: any GPU sorts 32 bits.
        let (low, high) = (keys()?, keys()?);
        let first = r.order(&low, 1, false)?;
        let second = r.order(&r.op(Op::TakeAlong { dim: 1 }, &[&high, &first], high.meta()?.clone())?, 1, false)?;
        r.op(Op::TakeAlong { dim: 1 }, &[&first, &second], first.meta()?.clone())
    }

    /// Weights as a column of floats, checked.
    fn weights(&self, r: &Recorder<'_>, weights: &Array, name: &'static str, at: At) -> Result<Array> {
        let meta = weights.meta()?;
        self.may_read(weights)?;
        let dtype = if meta.dtype == DType::F32 { DType::F32 } else { DType::F64 };
        let column = r.reshape(&r.cast(weights, dtype)?, Shape::new(&[meta.elements()])?)?;
        let at_least = r.binary(ElementOp::Ge, &column, r.number(dtype, 0.0))?;
        let finite = r.apply(ElementOp::IsFinite, &mut [(&column).into()])?;
        let holds = r.binary(ElementOp::And, &at_least, &finite)?;
        ensure(&column, name, &holds, Arc::from("a weight is finite and at least 0"), at).checked()
    }
}

/// Sums that never descend, and are that of the element before where a weight is 0, however the scan rounds: so that a
/// search finds no such weight.
fn running_sums(r: &Recorder<'_>, weights: &Array) -> Result<Array> {
    let sums = r.scan(weights, ScanOp::Sum, 0, false)?;
    let dtype = weights.dtype()?;
    let counts = r.binary(ElementOp::Gt, weights, r.number(dtype, 0.0))?;
    r.scan(&r.select(&counts, &sums, r.number(dtype, -1.0))?, ScanOp::Max, 0, false)
}

fn no_choice(n: usize) -> Error {
    Error::new(
        ErrorKind::Argument,
        format!("there is nothing to choose from {n} numbers, or they are more than u32 counts"),
    )
}

fn too_many(count: usize, n: usize) -> Error {
    Error::new(ErrorKind::Argument, format!("{count} different ones are to be chosen of {n}"))
}
