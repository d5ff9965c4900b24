//! Curves and grids: running integrals, polynomials, coordinates of the points of a grid.

use crate::array::handle::Array;
use crate::array::record::{At, as_floats, common_home, derive};
use crate::array::recorder::Recorder;
use crate::array::watch::noted_as;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Nan, Op, ReduceOp, ScanOp, Shape, View};
use smallvec::SmallVec;
use std::panic::Location;

impl Array {
    /// The running integral along a dimension by the trapezoid rule, at points a distance of 1 apart; it begins with 0.
    /// The result has this array's shape; integers and bools give f64. A NaN in a line makes all elements from its
    /// place on NaN, except the first element of the line. A dimension that the array lacks is a fault
    /// (`ErrorKind::Index`).
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("integrals").open();
    /// let y = s.from_slice(&[1.0f64, 3.0, 5.0], 3)?;
    /// assert_eq!(y.cumtrapz(0).gather_blocking::<f64>()?.as_slice(), [0.0, 2.0, 6.0]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn cumtrapz(&self, dim: usize) -> Array {
        let at = Location::caller();
        derive(&[self], "cumtrapz", at, |home, _| {
            let r = Recorder { home, at };
            trapezoids(&r, &as_floats(home, self, at)?, None, dim)
        })
    }

    /// As [`Array::cumtrapz`], at the points `x`: an array of any shape with as many elements as this array has along
    /// `dim`, or an array of this one's shape (`ErrorKind::Shape` otherwise).
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("integrals").open();
    /// let (x, y) = (s.from_slice(&[0.0f64, 0.5, 2.5], 3)?, s.from_slice(&[1.0, 3.0, 5.0], 3)?);
    /// assert_eq!(y.cumtrapz_at(&x, 0).gather_blocking::<f64>()?.as_slice(), [0.0, 1.0, 9.0]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn cumtrapz_at(&self, x: &Array, dim: usize) -> Array {
        let at = Location::caller();
        derive(&[self, x], "cumtrapz_at", at, |home, metas| {
            let r = Recorder { home, at };
            let [y, x] = r.factors("cumtrapz_at", [self, x], metas)?;
            let (own, points) = (&metas[0].shape, &metas[1].shape);
            own.has_axis(dim)?;
            if points == own {
                return trapezoids(&r, &y, Some(&x), dim);
            }
            if points.elements() != own.dim(dim) {
                let message = format!("points of {points} do not fit an array of {own} along dimension {dim}");
                return Err(Error::new(ErrorKind::Shape, message));
            }
            let mut extents: SmallVec<[usize; 4]> = SmallVec::from_elem(1, dim + 1);
            extents[dim] = points.elements();
            trapezoids(&r, &y, Some(&r.reshape(&x, Shape::new(&extents)?)?), dim)
        })
    }

    /// The values of a polynomial at the elements of this array; the result has this array's shape. `coefficients`
    /// begins with the coefficient of the highest power; without coefficients the polynomial is 0. The result has the
    /// dtype of a product of both arrays, or f64 if that is no float.
    ///
    /// Horner's rule computes the values: for n coefficients the error is at most 2 n eps times the sum of the magnitudes
    /// of the terms.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("polynomials").open();
    /// let (x, p) = (s.from_slice(&[0.0f64, 1.0, 2.0], 3)?, s.from_slice(&[1.0, 0.0, -3.0], 3)?);
    /// assert_eq!(x.polyval(&p).gather_blocking::<f64>()?.as_slice(), [-3.0, -2.0, 1.0]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn polyval(&self, coefficients: &Array) -> Array {
        let at = Location::caller();
        derive(&[self, coefficients], "polyval", at, |home, metas| {
            let r = Recorder { home, at };
            let [x, p] = r.factors("polyval", [self, coefficients], metas)?;
            let (count, meta) = (metas[1].elements(), x.meta()?.clone());
            if count == 0 || meta.elements() == 0 {
                return r.zeros(meta);
            }
            let p = r.reshape(&p, Shape::new(&[count])?)?;
            let mut value = r.view(&r.part(&p, 0, 0, 1)?, View::Broadcast, meta.shape)?;
            for power in 1..count {
                let product = r.mul(&value, &x)?;
                value = r.add(&product, &r.part(&p, 0, power, 1)?)?;
            }
            Ok(value)
        })
    }
}

/// The running sums of the trapezoids of a line, from 0.
fn trapezoids(r: &Recorder<'_>, y: &Array, x: Option<&Array>, dim: usize) -> Result<Array> {
    let meta = y.meta()?.clone();
    meta.shape.has_axis(dim)?;
    let extent = meta.shape.dim(dim);
    if meta.elements() == 0 {
        return Ok(y.clone());
    }
    if extent == 1 {
        let nothing = Op::Reduce { op: ReduceOp::Sum, dims: 1 << dim, nan: Nan::Include };
        return Ok(noted_as(r.home, nothing, &[&r.part(y, dim, 0, 0)?], r.zeros(meta)?, r.at));
    }
    let sides = |array: &Array| -> Result<(Array, Array)> {
        Ok((r.part(array, dim, 0, extent - 1)?, r.part(array, dim, 1, extent - 1)?))
    };
    let (left, right) = sides(y)?;
    let mut areas = r.scaled(&r.add(&left, &right)?, 0.5)?;
    if let Some(x) = x {
        let (from, to) = sides(x)?;
        areas = r.mul(&areas, &r.sub(&to, &from)?)?;
    }
    r.padded(&r.scan(&areas, ScanOp::Sum, dim, false)?, dim, 1, 0)
}

/// The coordinates of the points of a grid, as an array for each axis. The elements of the first axis vary along
/// dimension 1, those of the second along dimension 0, those of each further axis along the dimension of its number, as
/// in MATLAB and NumPy. Axes of m, n and k elements, in any shape, give arrays of `[n, m, k]`, each of its axis's
/// dtype. They are views, which take no memory. If an axis carries a fault, all results carry it.
///
/// ```
/// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
/// # let s = rt.session("grids").open();
/// let (x, y) = (s.arange(0.0f64, 3.0, 1.0), s.arange(5.0f64, 7.0, 1.0));
/// let [x, y] = tidemill::meshgrid([&x, &y]);
/// assert_eq!(x.gather_blocking::<f64>()?.as_slice(), [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]);
/// assert_eq!(y.gather_blocking::<f64>()?.as_slice(), [5.0, 6.0, 5.0, 6.0, 5.0, 6.0]);
/// # rt.shutdown_blocking()?;
/// # Ok::<(), tidemill::Error>(())
/// ```
#[track_caller]
pub fn meshgrid<const N: usize>(axes: [&Array; N]) -> [Array; N] {
    let at = Location::caller();
    std::array::from_fn(|axis| coordinates(&axes, axis, at))
}

/// The coordinate of one axis at each point of a grid.
fn coordinates(axes: &[&Array], axis: usize, at: At) -> Array {
    let place = |axis: usize| if axis < 2 && axes.len() > 1 { 1 - axis } else { axis };
    // If several axes carry a fault, the first one is carried on.
    let made = common_home(axes.iter().copied()).and_then(|home| {
        let mut extents: SmallVec<[usize; 4]> = SmallVec::from_elem(1, axes.len().max(2));
        for (axis, array) in axes.iter().enumerate() {
            extents[place(axis)] = array.elements()?;
        }
        let (whole, own) = (Shape::new(&extents)?, place(axis));
        let line = Shape::scalar().with_dim(own, axes[axis].elements()?)?;
        let r = Recorder { home, at };
        r.view(&r.reshape(axes[axis], line)?, View::Broadcast, whole)
    });
    made.unwrap_or_else(|error| Array::faulty(&axes[axis].0.home, error, "meshgrid", at))
}
