//! Exponentials over their sum.

use crate::array::handle::Array;
use crate::array::record::{At, as_floats, derive};
use crate::array::recorder::Recorder;
use crate::error::Result;
use crate::graph::{DimSet, ElementOp, Nan, ReduceOp};
use std::panic::Location;

impl Array {
    /// `exp(x) / sum(exp(x))` along a dimension, without overflow; the result has this array's shape. Integers and bools
    /// give f64.
    ///
    /// The result is NaN for a line that holds NaN or infinity, or minus infinity only. Beside finite elements, minus
    /// infinity gives 0. The error is at most (12 + 2 log2 n) eps, for n elements along the dimension. A dimension that
    /// the array lacks is a fault (`ErrorKind::Index`).
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("softmax").open();
    /// let x = s.from_slice(&[1000.0f64, 1000.0, f64::NEG_INFINITY], 3)?;
    /// assert_eq!(x.softmax(0).gather_blocking::<f64>()?.as_slice(), [0.5, 0.5, 0.0]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn softmax(&self, dim: usize) -> Array {
        of_lines(self, dim, "softmax", Location::caller(), |r, shifted, dims| {
            let powers = r.apply(ElementOp::Exp, &mut [shifted.into()])?;
            let sum = r.reduce(&powers, ReduceOp::Sum, dims, Nan::Include)?;
            r.div(&powers, &sum)
        })
    }

    /// The logarithm of [`Array::softmax`], finite even if the softmax underflows to 0; minus infinity beside finite
    /// elements stays minus infinity. The error of an element y is at most (12 + 3 log2 n + |y|) eps. All else is as in
    /// [`Array::softmax`].
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("softmax").open();
    /// let x = s.from_slice(&[0.0f64, -2000.0], 2)?;
    /// assert_eq!(x.log_softmax(0).gather_blocking::<f64>()?.as_slice(), [0.0, -2000.0]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn log_softmax(&self, dim: usize) -> Array {
        of_lines(self, dim, "log_softmax", Location::caller(), |r, shifted, dims| {
            let powers = r.apply(ElementOp::Exp, &mut [shifted.into()])?;
            let sum = r.reduce(&powers, ReduceOp::Sum, dims, Nan::Include)?;
            r.sub(shifted, &r.apply(ElementOp::Log, &mut [(&sum).into()])?)
        })
    }
}

/// Applies `record` to the array minus the greatest element of each line. Watches treat that element as a constant,
/// because the result does not depend on it.
fn of_lines(
    array: &Array,
    dim: usize,
    name: &'static str,
    at: At,
    record: impl FnOnce(&Recorder<'_>, &Array, DimSet) -> Result<Array>,
) -> Array {
    derive(&[array], name, at, |home, metas| {
        metas[0].shape.has_axis(dim)?;
        let (x, r) = (as_floats(home, array, at)?, Recorder { home, at });
        if metas[0].elements() == 0 {
            return Ok(x);
        }
        let dims: DimSet = 1 << dim;
        let greatest = r.constant(|| r.reduce(&x, ReduceOp::Max, dims, Nan::Omit))?;
        record(&r, &r.sub(&x, &greatest)?, dims)
    })
}
