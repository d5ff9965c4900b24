//! Rational filters along a dimension: a convolution, followed by a recurrence.
//!
//! In: an array, the coefficients of a filter, the state with which it begins. Out: recorded ops. The convolution is a
//! sum of shifted products, which fuses (`convolve`). The recurrence is an op (`LinearOp::Recurrence`), which computes
//! element after element of a line. Methods that divide a line into blocks multiply rounding errors by powers of the
//! recurrence's matrix, and lose all digits of filters whose poles lie close together.
//! Must hold: FILTER-1: the arrays of coefficients are columns, and those that would meet no element of a line are left
//! out.

use super::convolve::causal;
use super::ensure::ensure;
use super::handle::Array;
use super::record::{derive, floats_dtype};
use super::recorder::Recorder;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{ElementOp, LinearOp, Meta, Op, Shape};
use smallvec::SmallVec;
use std::panic::Location;

impl Array {
    /// The array filtered along a dimension by the rational filter with numerator `b` and denominator `a`, as by
    /// MATLAB's `filter`: `a[0] y[i] = sum_k b[k] x[i - k] - sum_{k > 0} a[k] y[i - k]`, where `x` and `y` are zero
    /// before the first element. The result has this array's shape. Coefficients are arrays of any shape with at least
    /// one element, for example `[1, n]`, in the order of their delay. The result is f32 if one of the
    /// arrays is, else f64.
    ///
    /// The error is that of the recurrence above in the dtype of the result. A numerator of more than 64 coefficients
    /// is convolved by Fourier transforms ([`Array::convolve`]); then the error is small beside the norms of the line
    /// and of the numerator. A NaN or an infinite element makes all later elements of its line NaN or infinite if there
    /// is a denominator.
    ///
    /// A line takes some 2 n (p + q) operations for p and q coefficients and n elements; memory holds the array, the
    /// result and up to three arrays of the same size in between. One thread computes the recurrence of a line, so that
    /// lines, not parts of them, are computed at the same time; on a GPU it is one invocation. If the array has more
    /// than 4,096 elements a line for each of its lines, or more than 16 coefficients follow `a[0]`, the host computes
    /// the recurrence.
    ///
    /// If `a[0]` is zero, the result carries a fault (`ErrorKind::Domain`), which the gather returns. Coefficients
    /// without elements are a fault (`ErrorKind::Argument`), and so is a dimension that the array lacks
    /// (`ErrorKind::Index`). Derivatives pass to the array and to both arrays of coefficients.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("filters").open();
    /// let x = s.from_slice(&[1.0, 0.0, 0.0, 4.0], 4)?;
    /// let (b, a) = (s.from_slice(&[1.0], 1)?, s.from_slice(&[1.0, -0.5], 2)?);
    /// assert_eq!(x.filter(&b, &a, 0).gather_blocking::<f64>()?.as_slice(), [1.0, 0.5, 0.25, 4.125]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn filter(&self, b: &Array, a: &Array, dim: usize) -> Array {
        let at = Location::caller();
        derive(&[self, b, a], "filter", at, |home, metas| {
            let filter = Filter::of(Recorder { home, at }, [self, b, a], metas, None, dim)?;
            filter.filtered()?.result(&filter)
        })
    }

    /// As [`Array::filter`], beginning with a state, and the state at the end: `(y, state)`. Filtering the next part of
    /// a signal with this state continues the first one, as if both were filtered together.
    ///
    /// With p and q coefficients, the state has r = max(p, q) - 1 elements a line: those of the transposed direct form
    /// II, as MATLAB's `zi` and `zf`. The state is an array of this one's shape but with r elements along `dim`, or an
    /// array of r elements of any shape, with which all lines begin (`ErrorKind::Shape` otherwise). The state at the
    /// end has this array's shape but r elements along `dim`; it is a product of two r by r matrices with the last r
    /// elements of `x` and `y`.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("filters").open();
    /// let (b, a) = (s.from_slice(&[1.0], 1)?, s.from_slice(&[1.0, -0.5], 2)?);
    /// let (first, second) = (s.from_slice(&[1.0, 0.0], 2)?, s.from_slice(&[0.0, 4.0], 2)?);
    /// let (_, state) = first.filter_from(&b, &a, &s.zeros::<f64>(1), 0);
    /// let (y, state) = second.filter_from(&b, &a, &state, 0);
    /// assert_eq!(y.gather_blocking::<f64>()?.as_slice(), [0.25, 4.125]);
    /// assert_eq!(state.gather_blocking::<f64>()?.as_slice(), [2.0625]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn filter_from(&self, b: &Array, a: &Array, state: &Array, dim: usize) -> (Array, Array) {
        let at = Location::caller();
        let mut end = None;
        let y = derive(&[self, b, a, state], "filter_from", at, |home, metas| {
            let filter = Filter::of(Recorder { home, at }, [self, b, a], metas, Some(state), dim)?;
            let filtered = filter.filtered()?;
            end = Some(filtered.state(&filter)?);
            filtered.result(&filter)
        });
        match end {
            Some(end) => (y, derive(&[self, b, a, state], "filter_from", at, |_, _| Ok(end))),
            None => (y.clone(), y),
        }
    }
}

/// A filter of the lines of an array.
struct Filter<'h> {
    r: Recorder<'h>,
    /// The dtype in which it computes, and the array's shape.
    meta: Meta,
    dim: usize,
    /// The array's lines, `[n, 1, lines]`.
    x: Array,
    /// The coefficients, divided by the first one of the denominator: those of the numerator, and those of the
    /// denominator behind the first one, which may be none.
    b: Array,
    a: Array,
    /// The state at the begin, `[order, 1, lines]` or `[order, 1]`.
    state: Option<Array>,
}

impl<'h> Filter<'h> {
    /// Prepares a filter; `metas` are those of the array, of the numerator, of the denominator, and of the state.
    fn of(
        r: Recorder<'h>,
        [x, b, a]: [&Array; 3],
        metas: &[&Meta],
        state: Option<&Array>,
        dim: usize,
    ) -> Result<Filter<'h>> {
        metas[0].shape.has_axis(dim)?;
        if metas[1].elements() == 0 || metas[2].elements() == 0 {
            return Err(Error::new(
                ErrorKind::Argument,
                "a filter's numerator and denominator need a coefficient each",
            ));
        }
        let dtype = floats_dtype(r.home, metas)?;
        let meta = Meta { dtype, shape: metas[0].shape.clone() };
        let column = |array: &Array| r.reshape(&r.cast(array, dtype)?, Shape::new(&[array.elements()?])?);
        let (b, a) = (column(b)?, column(a)?);
        let first = r.part(&a, 0, 0, 1)?;
        let is_valid = r.binary(ElementOp::Ne, &first, 0.0)?;
        let message = "the first coefficient of a filter's denominator is zero";
        let first = ensure(&first, "filter", &is_valid, message.into(), r.at).checked()?;
        let order = metas[1].elements().max(metas[2].elements()) - 1;
        let state = state.map(|state| r.cast(state, dtype)).transpose()?;
        let state = state.map(|state| begin_state(&r, &state, order, &meta.shape, dim)).transpose()?;
        let x = lines(&r, &r.cast(x, dtype)?, dim)?;
        let behind = r.part(&a, 0, 1, metas[2].elements() - 1)?;
        Ok(Filter { r, meta, dim, x, b: r.div(&b, &first)?, a: r.div(&behind, &first)?, state })
    }

    /// The number of elements of the state.
    fn order(&self) -> Result<usize> {
        Ok((self.b.elements()? - 1).max(self.a.elements()?))
    }

    fn filtered(&self) -> Result<Filtered> {
        let Filter { r, x, .. } = self;
        let rows = x.shape()?.dim(0);
        if x.elements()? == 0 {
            return Ok(Filtered { y: x.clone() });
        }
        let b = r.part(&self.b, 0, 0, self.b.elements()?.min(rows))?;
        let mut sides = causal(r.home, x, &b, r.at)?;
        if let Some(state) = self.state.as_ref().filter(|state| state.elements().is_ok_and(|count| count > 0)) {
            sides = r.add(&sides, &r.resized(state, 0, rows)?)?;
        }
        let order = self.a.elements()?.min(rows - 1);
        if order == 0 {
            return Ok(Filtered { y: sides });
        }
        let order = u16::try_from(order).map_err(|_| {
            Error::new(ErrorKind::Unsupported, format!("a filter's denominator has at most {} coefficients", u16::MAX))
        })?;
        let a = r.part(&self.a, 0, 0, usize::from(order))?;
        let meta = sides.meta()?.clone();
        Ok(Filtered { y: r.op(Op::Linear(LinearOp::Recurrence { order }), &[&sides, &a], meta)? })
    }
}

/// The lines of a filter's result, `[n, 1, lines]`.
struct Filtered {
    y: Array,
}

impl Filtered {
    /// The result in the array's shape.
    fn result(&self, filter: &Filter<'_>) -> Result<Array> {
        along(&filter.r, &self.y, &filter.meta.shape, filter.dim)
    }

    /// The state at the end: `state[i] = sum_j b[i + 1 + j] x[n - 1 - j] - a[i + 1 + j] y[n - 1 - j]`, with the
    /// elements of the state at the begin that lie behind the end of a short line.
    fn state(&self, filter: &Filter<'_>) -> Result<Array> {
        let (r, order, rows) = (filter.r, filter.order()?, filter.x.shape()?.dim(0));
        let shape = filter.meta.shape.with_dim(filter.dim, order)?;
        if shape.elements() == 0 {
            return r.zeros(Meta { dtype: filter.meta.dtype, shape });
        }
        let held = Shape::new(&[order, 1, shape.elements() / order])?;
        let mut end = match &filter.state {
            Some(state) if rows < order => {
                let rest = r.padded(&r.part(state, 0, rows, order - rows)?, 0, 0, rows)?;
                Some(r.expand(&rest, &held)?)
            }
            _ => None,
        };
        let met = rows.min(order);
        let behind = r.part(&filter.b, 0, 1, filter.b.elements()? - 1)?;
        for (factors, values, sign) in [(&behind, &filter.x, 1.0), (&filter.a, &self.y, -1.0)] {
            if factors.elements()? > 0 && met > 0 {
                let last = r.part(values, 0, rows - met, met)?;
                let last = r.reshape(&last, Shape::new(&[met, held.dim(2)])?)?;
                let product = r.matmul(&r.scaled(&shifted(&r, factors, order, met)?, sign)?, &last)?;
                end = Some(r.added(end, r.reshape(&product, held.clone())?)?);
            }
        }
        match end {
            Some(end) => along(&r, &end, &shape, filter.dim),
            None => r.zeros(Meta { dtype: filter.meta.dtype, shape }),
        }
    }
}

/// The matrix, `order` by `met`, whose element `(i, j)` is factor `i + met - 1 - j`, or zero where there is none.
fn shifted(r: &Recorder<'_>, factors: &Array, order: usize, met: usize) -> Result<Array> {
    let meta = Meta { dtype: factors.dtype()?, shape: Shape::new(&[order, met])? };
    let count = factors.elements()?;
    let column = r.positions(Shape::new(&[order])?)?;
    let row = r.positions(Shape::new(&[1, met])?)?;
    // The sum of the places is taken first, because u32 has no negative numbers.
    let place = r.binary(ElementOp::Min, &r.sub(&r.add(&column, met as i64 - 1)?, &row)?, count as i64)?;
    r.op(Op::Take { dim: None }, &[&r.padded(factors, 0, 0, 1)?, &place], meta)
}

/// The state with which a filter of `order` begins, as lines.
fn begin_state(r: &Recorder<'_>, state: &Array, order: usize, shape: &Shape, dim: usize) -> Result<Array> {
    let own = state.shape()?;
    let expected = shape.with_dim(dim, order)?;
    if *own == expected {
        return lines(r, state, dim);
    }
    if own.elements() != order {
        let message = format!(
            "a filter of {shape} along dimension {dim} begins with a state of {expected}, or of {order} elements, not with \
             one of {own}"
        );
        return Err(Error::new(ErrorKind::Shape, message));
    }
    r.reshape(state, Shape::new(&[order])?)
}

/// The order of dimensions that puts `dim` first.
fn dim_first(shape: &Shape, dim: usize) -> SmallVec<[usize; 4]> {
    std::iter::once(dim).chain((0..shape.axes()).filter(|&d| d != dim)).collect()
}

/// The lines of an array along a dimension, `[n, 1, lines]`.
fn lines(r: &Recorder<'_>, array: &Array, dim: usize) -> Result<Array> {
    let shape = array.shape()?;
    let rows = shape.dim(dim);
    let others = (0..shape.axes()).filter(|&d| d != dim).map(|d| shape.dim(d)).product();
    let lines = Shape::new(&[rows, 1, others])?;
    let first = if dim == 0 { array.clone() } else { r.permute(array, &dim_first(shape, dim))? };
    r.reshape(&first, lines)
}

/// The array of a shape that has these lines along a dimension.
fn along(r: &Recorder<'_>, lines: &Array, shape: &Shape, dim: usize) -> Result<Array> {
    if dim == 0 {
        return r.reshape(lines, shape.clone());
    }
    let order = dim_first(shape, dim);
    let moved: SmallVec<[usize; 4]> = order.iter().map(|&d| shape.dim(d)).collect();
    r.permute_back(&r.reshape(lines, Shape::new(&moved)?)?, &order)
}
