//! Interpolation between the points of a curve and of a grid.
//!
//! In: values at ascending points, and the places where values are asked for. Out: recorded ops: a search for the
//! interval of each place (`statistics::search`), elements taken at its ends, and arithmetic, so that derivatives pass
//! to the values and, where a method has a slope, to places and points. Must hold: INTERPOLATE-1: no element outside of
//! the points is taken, whatever the places are.

mod slopes;

use super::ensure::ensure;
use super::handle::Array;
use super::record::{derive, floats_dtype};
use super::recorder::Recorder;
use super::statistics::search;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{DType, ElementOp, Meta, Nan, Op, ReduceOp, Shape};
use std::panic::Location;

/// How a value between two points is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Interpolation {
    /// The straight line through the values at both.
    Linear,
    /// The value at the nearer point; in the middle, the one at the greater point.
    Nearest,
    /// The value at the last point that is not greater.
    Previous,
    /// The value at the first point that is not less.
    Next,
    /// The cubic polynomial with a slope at each point that makes no value exceed those at both ends (Fritsch and
    /// Butland, "A method for constructing local monotone piecewise cubic interpolants", 1984), as MATLAB's `pchip`.
    Pchip,
    /// The cubic polynomial of the curve with a continuous second derivative, whose third derivative is continuous at
    /// the second and the last but one point, too, as MATLAB's `spline`.
    Spline,
}

/// Values at places before the first and behind the last point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Extrapolation {
    /// NaN.
    Nan,
    /// This number.
    Value(f64),
    /// The polynomial of the interval at that end. For `Nearest`, `Previous` and `Next`, the value at that end.
    Continue,
}

impl Interpolation {
    /// The fewest points that a curve has.
    fn points_min(self) -> usize {
        match self {
            Interpolation::Nearest | Interpolation::Previous | Interpolation::Next => 1,
            Interpolation::Linear | Interpolation::Pchip | Interpolation::Spline => 2,
        }
    }
}

impl Array {
    /// The values of curves at other places: along `dim`, this array holds the values at the points `x`, of which there
    /// are as many as it has elements there, in any shape. The result has this array's shape with an element along
    /// `dim` for each of `places`, in their order. It is f32 if one of the arrays is, else f64. A place that is NaN has
    /// a value that is NaN.
    ///
    /// An interval is found in log2 n steps, and a value takes a few operations; a `Spline` solves a system by log2 n
    /// passes over the array. Beside an infinite value, linear interpolation gives NaN. The error is a few eps of the
    /// greatest value at the ends of the interval; that of a `Spline` is relative to the greatest value of the curve.
    ///
    /// If points are NaN, or not greater than the one before, the result carries a fault (`ErrorKind::Domain`), which
    /// the gather returns. Another number of points than of values is a fault (`ErrorKind::Shape`), and so are no
    /// points or, for polynomials, a single one (`ErrorKind::Argument`), and a dimension that the array lacks
    /// (`ErrorKind::Index`). Derivatives pass to the values; to places and points they pass through polynomials, and
    /// are zero for `Nearest`, `Previous` and `Next`. At a point, they are those of the interval that begins there.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("curves").open();
    /// use tidemill::{Extrapolation, Interpolation};
    /// let (x, v) = (s.from_slice(&[0.0, 1.0, 3.0], 3)?, s.from_slice(&[5.0, 7.0, 3.0], 3)?);
    /// let places = s.from_slice(&[0.5, 2.0, 4.0], 3)?;
    /// let y = v.interp1(&x, &places, 0, Interpolation::Linear, Extrapolation::Value(0.0));
    /// assert_eq!(y.gather_blocking::<f64>()?.as_slice(), [6.0, 5.0, 0.0]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn interp1(&self, x: &Array, places: &Array, dim: usize, how: Interpolation, beyond: Extrapolation) -> Array {
        let at = Location::caller();
        derive(&[self, x, places], "interp1", at, |home, metas| {
            let r = Recorder { home, at };
            let shape = &metas[0].shape;
            shape.has_axis(dim)?;
            fits("interp1", metas[1].elements(), shape, dim, how)?;
            let dtype = floats_dtype(home, metas)?;
            let meta = Meta { dtype, shape: shape.with_dim(dim, metas[2].elements())? };
            if meta.elements() == 0 {
                return r.zeros(meta);
            }
            let places = r.reshape(&r.cast(places, dtype)?, Shape::new(&[metas[2].elements()])?)?;
            let axis = Axis::of(r, "interp1", &r.cast(x, dtype)?, places)?;
            let curve = Curve { axis, v: r.cast(self, dtype)?, dim };
            curve.bounded(&curve.values(how)?, beyond)
        })
    }

    /// The values of a surface at other places: this matrix holds the values at the grid of the points `x[0]`, one for
    /// each row, and `x[1]`, one for each column, in any shape. `places` are the coordinates along both, arrays of one
    /// shape or of shapes that expand to one, such as `[m, 1]` and `[1, n]` for a grid; that is the shape of the
    /// result.
    ///
    /// All else is as for [`Array::interp1`]. A place outside of one of the axes is outside. `Pchip` and `Spline` are
    /// faults (`ErrorKind::Unsupported`), and so is an array that is no matrix (`ErrorKind::Shape`).
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("surfaces").open();
    /// use tidemill::{Extrapolation, Interpolation};
    /// let v = s.from_row_major(&[0.0, 1.0, 2.0, 3.0], [2, 2])?;
    /// let (rows, columns) = (s.from_slice(&[0.0, 1.0], 2)?, s.from_slice(&[0.0, 10.0], 2)?);
    /// let (i, j) = (s.from_slice(&[0.5, 1.0], 2)?, s.from_slice(&[5.0, 2.5], 2)?);
    /// let y = v.interp2([&rows, &columns], [&i, &j], Interpolation::Linear, Extrapolation::Nan);
    /// assert_eq!(y.gather_blocking::<f64>()?.as_slice(), [1.5, 2.25]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn interp2(&self, x: [&Array; 2], places: [&Array; 2], how: Interpolation, beyond: Extrapolation) -> Array {
        let at = Location::caller();
        derive(&[self, x[0], x[1], places[0], places[1]], "interp2", at, |home, metas| {
            let r = Recorder { home, at };
            let shape = &metas[0].shape;
            if shape.rank() > 2 {
                return Err(Error::new(ErrorKind::Shape, format!("the values of a surface are a matrix, not {shape}")));
            }
            (0..2).try_for_each(|dim| fits("interp2", metas[1 + dim].elements(), shape, dim, how))?;
            let dtype = floats_dtype(home, metas)?;
            let meta = Meta { dtype, shape: Shape::broadcast(&metas[3].shape, &metas[4].shape)? };
            if meta.elements() == 0 {
                return r.zeros(meta);
            }
            let axis = |dim: usize| Axis::of(r, "interp2", &r.cast(x[dim], dtype)?, r.cast(places[dim], dtype)?);
            let surface = Surface { axes: [axis(0)?, axis(1)?], v: r.cast(self, dtype)?, meta };
            surface.values(how, beyond)
        })
    }
}

/// Checks that an array has a value for each of some points, and enough of them.
fn fits(name: &str, points: usize, shape: &Shape, dim: usize, how: Interpolation) -> Result<()> {
    if points != shape.dim(dim) {
        let message =
            format!("{name} got {points} points for the {} values along dimension {dim} of {shape}", shape.dim(dim));
        return Err(Error::new(ErrorKind::Shape, message));
    }
    if points < how.points_min() {
        let message = format!("{how:?} interpolation needs {} points or more, not {points}", how.points_min());
        return Err(Error::new(ErrorKind::Argument, message));
    }
    Ok(())
}

/// The points of an axis, and places on it.
struct Axis<'h> {
    r: Recorder<'h>,
    /// A column of ascending points.
    x: Array,
    places: Array,
}

/// The intervals in which places lie.
struct Interval {
    /// The number of the point where it begins (u32).
    index: Array,
    /// Its length.
    length: Array,
    /// How much of it lies before the place: 0 at its begin, 1 at its end.
    share: Array,
}

impl<'h> Axis<'h> {
    fn of(r: Recorder<'h>, name: &'static str, x: &Array, places: Array) -> Result<Axis<'h>> {
        let count = x.elements()?;
        let x = r.reshape(x, Shape::new(&[count])?)?;
        let ascends = match count {
            1 => r.apply(ElementOp::Not, &mut [r.is_nan(&x)?.into()])?,
            _ => r.binary(ElementOp::Lt, &r.part(&x, 0, 0, count - 1)?, &r.part(&x, 0, 1, count - 1)?)?,
        };
        let all = r.reduce(&ascends, ReduceOp::All, 1, Nan::Include)?;
        let x = ensure(&x, name, &all, "the points of an interpolation do not ascend".into(), r.at).checked()?;
        Ok(Axis { r, x, places })
    }

    fn count(&self) -> Result<usize> {
        self.x.elements()
    }

    /// The points with these numbers.
    fn points(&self, index: &Array) -> Result<Array> {
        let meta = Meta { dtype: self.x.dtype()?, shape: index.shape()?.clone() };
        self.r.op(Op::Take { dim: None }, &[&self.x, index], meta)
    }

    /// The number of the last point that is not greater than each place, or else the first; at most `last`.
    fn before(&self, last: usize) -> Result<Array> {
        let found = search(&self.r, &self.x, &self.places, true, None)?;
        // The subtraction saturates at 0.
        self.r.binary(ElementOp::Min, &self.r.sub(&found, 1i64)?, last as i64)
    }

    fn interval(&self) -> Result<Interval> {
        let r = &self.r;
        let index = self.before(self.count()? - 2)?;
        let (from, to) = (self.points(&index)?, self.points(&r.add(&index, 1i64)?)?);
        let length = r.sub(&to, &from)?;
        let share = r.div(&r.sub(&self.places, &from)?, &length)?;
        Ok(Interval { index, length, share })
    }

    /// The number of the point whose value a place has (u32).
    fn step(&self, how: Interpolation) -> Result<Array> {
        let (r, last) = (&self.r, self.count()? - 1);
        match how {
            Interpolation::Next => {
                r.binary(ElementOp::Min, &search(r, &self.x, &self.places, false, None)?, last as i64)
            }
            Interpolation::Nearest if last > 0 => {
                let Interval { index, .. } = self.interval()?;
                let (from, to) = (self.points(&index)?, self.points(&r.add(&index, 1i64)?)?);
                let is_later = r.binary(ElementOp::Ge, &r.sub(&self.places, &from)?, &r.sub(&to, &self.places)?)?;
                r.add(&index, &r.cast(&is_later, DType::U32)?)
            }
            _ => self.before(last),
        }
    }

    /// Whether places lie before the first or behind the last point.
    fn outside(&self) -> Result<Array> {
        let (r, last) = (&self.r, self.count()? - 1);
        let before = r.binary(ElementOp::Lt, &self.places, &r.part(&self.x, 0, 0, 1)?)?;
        let behind = r.binary(ElementOp::Gt, &self.places, &r.part(&self.x, 0, last, 1)?)?;
        r.binary(ElementOp::Or, &before, &behind)
    }
}

/// Values along a dimension, and places on its axis, a column.
struct Curve<'h> {
    axis: Axis<'h>,
    v: Array,
    dim: usize,
}

impl Curve<'_> {
    /// A column, laid along the dimension.
    fn along(&self, column: &Array) -> Result<Array> {
        self.axis.r.reshape(column, Shape::scalar().with_dim(self.dim, column.elements()?)?)
    }

    /// Elements of an array at both ends of intervals.
    fn ends(&self, of: &Array, index: &Array) -> Result<[Array; 2]> {
        let r = &self.axis.r;
        Ok([r.taken(of, self.dim, index)?, r.taken(of, self.dim, &r.add(index, 1i64)?)?])
    }

    /// The values at all places; polynomials are continued outside of the points.
    fn values(&self, how: Interpolation) -> Result<Array> {
        let (r, points) = (&self.axis.r, self.along(&self.axis.x)?);
        if how.points_min() == 1 {
            return self.marked(&r.taken(&self.v, self.dim, &self.axis.step(how)?)?);
        }
        let Interval { index, length, share } = self.axis.interval()?;
        let (length, share) = (self.along(&length)?, self.along(&share)?);
        let [from, to] = self.ends(&self.v, &index)?;
        let line = mixed(r, &from, &to, &share)?;
        match how {
            Interpolation::Pchip => {
                let [rise, fall] = self.ends(&slopes::monotone(r, &self.v, &points, self.dim)?, &index)?;
                // The deviation from the line: share (1 - share) times a line.
                let secant = r.div(&r.sub(&to, &from)?, &length)?;
                let left = r.sub(&rise, &secant)?;
                let right = r.sub(&secant, &fall)?;
                let bend = r.mul(&mixed(r, &left, &right, &share)?, &length)?;
                r.add(&line, &r.mul(&bend, &r.mul(&share, &rest(r, &share)?)?)?)
            }
            Interpolation::Spline => {
                let [left, right] = self.ends(&slopes::curvatures(r, &self.v, &points, self.dim)?, &index)?;
                let other = rest(r, &share)?;
                // (a^3 - a) = -a (1 - a) (1 + a), for both shares.
                let left = r.mul(&left, &r.add(&other, 1.0)?)?;
                let right = r.mul(&right, &r.add(&share, 1.0)?)?;
                let bend = r.mul(&r.add(&left, &right)?, &r.mul(&length, &length)?)?;
                let bend = r.mul(&bend, &r.scaled(&r.mul(&share, &other)?, 1.0 / 6.0)?)?;
                r.sub(&line, &bend)
            }
            _ => Ok(line),
        }
    }

    /// NaN at places that are NaN.
    fn marked(&self, values: &Array) -> Result<Array> {
        let (r, is_nan) = (&self.axis.r, self.axis.r.is_nan(&self.axis.places)?);
        r.select(&self.along(&is_nan)?, r.number(values.dtype()?, f64::NAN), values)
    }

    /// The values, with others outside of the points.
    fn bounded(&self, values: &Array, beyond: Extrapolation) -> Result<Array> {
        let Some(number) = beyond.number() else { return Ok(values.clone()) };
        let r = &self.axis.r;
        r.select(&self.along(&self.axis.outside()?)?, r.number(values.dtype()?, number), values)
    }
}

impl Extrapolation {
    /// The value outside of the points; `None` if the curve is continued.
    fn number(self) -> Option<f64> {
        match self {
            Extrapolation::Nan => Some(f64::NAN),
            Extrapolation::Value(number) => Some(number),
            Extrapolation::Continue => None,
        }
    }
}

/// Values at a grid, and places on both of its axes.
struct Surface<'h> {
    axes: [Axis<'h>; 2],
    v: Array,
    /// The result's.
    meta: Meta,
}

impl Surface<'_> {
    fn values(&self, how: Interpolation, beyond: Extrapolation) -> Result<Array> {
        let (r, [first, second]) = (&self.axes[0].r, &self.axes);
        let mut values = match how {
            Interpolation::Nearest | Interpolation::Previous | Interpolation::Next => {
                self.at(&first.step(how)?, &second.step(how)?)?
            }
            Interpolation::Linear => {
                let (i, j) = (first.interval()?, second.interval()?);
                let row = |j: &Array| {
                    let (from, to) = (self.at(&i.index, j)?, self.at(&r.add(&i.index, 1i64)?, j)?);
                    mixed(r, &from, &to, &i.share)
                };
                mixed(r, &row(&j.index)?, &row(&r.add(&j.index, 1i64)?)?, &j.share)?
            }
            Interpolation::Pchip | Interpolation::Spline => {
                let message = format!("{how:?} interpolation is of curves, not of surfaces");
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
        };
        if let Some(number) = beyond.number() {
            let outside = r.binary(ElementOp::Or, &first.outside()?, &second.outside()?)?;
            values = r.select(&outside, r.number(self.meta.dtype, number), &values)?;
        }
        let is_nan = r.binary(ElementOp::Or, &r.is_nan(&first.places)?, &r.is_nan(&second.places)?)?;
        r.select(&is_nan, r.number(self.meta.dtype, f64::NAN), &values)
    }

    /// The values at rows and columns with these numbers.
    fn at(&self, i: &Array, j: &Array) -> Result<Array> {
        let (r, rows) = (&self.axes[0].r, self.v.shape()?.dim(0));
        let place = r.add(i, &r.mul(j, rows as i64)?)?;
        r.op(Op::Take { dim: None }, &[&self.v, &place], self.meta.clone())
    }
}

/// 1 less a share.
fn rest(r: &Recorder<'_>, share: &Array) -> Result<Array> {
    r.sub(1.0, share)
}

/// A share of `to`, and the rest of `from`: exact at both ends.
fn mixed(r: &Recorder<'_>, from: &Array, to: &Array, share: &Array) -> Result<Array> {
    r.add(&r.mul(from, &rest(r, share)?)?, &r.mul(to, share)?)
}
