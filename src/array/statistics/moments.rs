//! Covariances and correlations of the columns of matrices.

use crate::array::handle::Array;
use crate::array::record::{At, as_floats, derive};
use crate::array::recorder::Recorder;
use crate::array::watch::noted_as;
use crate::error::Result;
use crate::graph::{ElementOp, Meta, Nan, Op, ReduceOp};
use std::panic::Location;

impl Array {
    /// The covariances of the columns of a matrix whose n rows are observations: `[n, p, ..]` gives `[p, p, ..]`, page
    /// by page. They are divided by n - 1 (by 1 for a single observation, which gives zeros, as [`Array::var`] does);
    /// integers and bools give f64.
    ///
    /// A column that holds NaN or infinity makes its row and its column of the result NaN. Without observations all
    /// elements are NaN. The error of an element is at most 8 (4 + log2 n) eps times the product of both standard
    /// deviations.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("covariances").open();
    /// let x = s.from_slice(&[1.0f64, 2.0, 3.0, 6.0, 4.0, 2.0], [3, 2])?;
    /// assert_eq!(x.cov().gather_blocking::<f64>()?.as_slice(), [1.0, -2.0, -2.0, 4.0]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn cov(&self) -> Array {
        products_of_columns(self, "cov", Location::caller(), |r, _, centred| {
            let product = r.matmul(&r.transpose(centred)?, centred)?;
            let n = centred.shape()?.dim(0);
            r.div(&product, (n.max(2) - 1) as f64)
        })
    }

    /// The correlation coefficients of the columns of a matrix whose rows are observations, from -1 to 1, page by page.
    /// A column of equal elements has no correlation: its row and its column are NaN, also its own coefficient. The
    /// error is at most 8 (4 + log2 n) eps. All else is as in [`Array::cov`].
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("correlations").open();
    /// let x = s.from_slice(&[1.0f64, 2.0, 3.0, 6.0, 4.0, 2.0], [3, 2])?;
    /// let r = x.corr().gather_blocking::<f64>()?;
    /// assert!((r[0] - 1.0).abs() < 1e-14 && (r[1] + 1.0).abs() < 1e-14);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn corr(&self) -> Array {
        products_of_columns(self, "corr", Location::caller(), |r, x, centred| {
            let equals = r.binary(ElementOp::Eq, x, &r.part(x, 0, 0, 1)?)?;
            let is_constant = r.reduce(&equals, ReduceOp::All, 1, Nan::Include)?;
            let norm = r.reduce(centred, ReduceOp::Norm, 1, Nan::Include)?;
            let norm = r.select(&is_constant, f64::NAN, &norm)?;
            let unit = r.div(centred, &norm)?;
            let product = r.matmul(&r.transpose(&unit)?, &unit)?;
            r.apply(ElementOp::Clamp, &mut [(&product).into(), (-1.0).into(), 1.0.into()])
        })
    }
}

/// Applies `record` to the columns, and to the columns minus their means.
fn products_of_columns(
    array: &Array,
    name: &'static str,
    at: At,
    record: impl FnOnce(&Recorder<'_>, &Array, &Array) -> Result<Array>,
) -> Array {
    derive(&[array], name, at, |home, metas| {
        let (x, r) = (as_floats(home, array, at)?, Recorder { home, at });
        let (n, p) = (metas[0].shape.dim(0), metas[0].shape.dim(1));
        let meta = Meta { dtype: x.dtype()?, shape: metas[0].shape.with_dim(0, p)? };
        if meta.elements() == 0 {
            return r.zeros(meta);
        }
        if n == 0 {
            let nothing = Op::Reduce { op: ReduceOp::Mean, dims: 1, nan: Nan::Include };
            return Ok(noted_as(home, nothing, &[&x], r.full(meta, f64::NAN)?, at));
        }
        let mean = |x: &Array| r.reduce(x, ReduceOp::Mean, 1, Nan::Include);
        let near = r.sub(&x, &mean(&x)?)?;
        // `rest` is the rounding error of a large mean. Without rounding it is zero, so watches treat it as a constant.
        let rest = r.constant(|| mean(&near))?;
        let centred = r.sub(&near, &rest)?;
        record(&r, &x, &centred)
    })
}
