//! Slopes and second derivatives of curves at their points, along a dimension.
//!
//! In: values, and the points along the dimension. Out: an array of the values' shape. Must hold: no branch that a
//! `select` leaves out divides by zero, so that derivatives stay finite.

use crate::array::handle::Array;
use crate::array::recorder::Recorder;
use crate::error::Result;
use crate::graph::{ElementOp, Meta};

/// Lengths of the intervals between points, and slopes of the lines between values.
struct Secants<'r, 'h> {
    r: &'r Recorder<'h>,
    dim: usize,
    /// The number of points.
    count: usize,
    length: Array,
    slope: Array,
}

impl<'r, 'h> Secants<'r, 'h> {
    fn of(r: &'r Recorder<'h>, v: &Array, x: &Array, dim: usize) -> Result<Secants<'r, 'h>> {
        let count = v.shape()?.dim(dim);
        let rises = |of: &Array| r.sub(&r.part(of, dim, 1, count - 1)?, &r.part(of, dim, 0, count - 1)?);
        let length = rises(x)?;
        Ok(Secants { r, dim, count, slope: r.div(&rises(v)?, &length)?, length })
    }

    /// `count` elements of an array along the dimension.
    fn part(&self, of: &Array, first: usize, count: usize) -> Result<Array> {
        self.r.part(of, self.dim, first, count)
    }

    /// The length and the slope of an interval.
    fn interval(&self, number: usize) -> Result<[Array; 2]> {
        Ok([self.part(&self.length, number, 1)?, self.part(&self.slope, number, 1)?])
    }
}

/// Slopes that make a cubic curve stay between the values at the ends of each interval.
pub(super) fn monotone(r: &Recorder<'_>, v: &Array, x: &Array, dim: usize) -> Result<Array> {
    let s = Secants::of(r, v, x, dim)?;
    if s.count == 2 {
        return r.join(dim, &[&s.slope, &s.slope]);
    }
    let inner = s.count - 2;
    let [h0, h1] = [s.part(&s.length, 0, inner)?, s.part(&s.length, 1, inner)?];
    let [d0, d1] = [s.part(&s.slope, 0, inner)?, s.part(&s.slope, 1, inner)?];
    let goes_on = r.binary(ElementOp::Gt, &r.mul(&sign(r, &d0)?, &sign(r, &d1)?)?, 0.0)?;
    let safe = |slope: &Array| r.select(&goes_on, slope, 1.0);
    let (w0, w1) = (r.add(&r.scaled(&h1, 2.0)?, &h0)?, r.add(&r.scaled(&h0, 2.0)?, &h1)?);
    let weighted = r.add(&r.div(&w0, &safe(&d0)?)?, &r.div(&w1, &safe(&d1)?)?)?;
    let mean = r.div(&r.add(&w0, &w1)?, &weighted)?;
    let between = r.select(&goes_on, &mean, 0.0)?;
    let first = at_end(r, s.interval(0)?, s.interval(1)?)?;
    let last = at_end(r, s.interval(inner)?, s.interval(inner - 1)?)?;
    r.join(dim, &[&first, &between, &last])
}

/// The slope at the end of a curve, from the intervals there and beside it.
fn at_end(r: &Recorder<'_>, [h0, d0]: [Array; 2], [h1, d1]: [Array; 2]) -> Result<Array> {
    let own = r.mul(&r.add(&r.scaled(&h0, 2.0)?, &h1)?, &d0)?;
    let slope = r.div(&r.sub(&own, &r.mul(&h0, &d1)?)?, &r.add(&h0, &h1)?)?;
    let turns = r.binary(ElementOp::Ne, &sign(r, &d0)?, &sign(r, &d1)?)?;
    let size = |of: &Array| r.apply(ElementOp::Abs, &mut [of.into()]);
    let is_steep = r.binary(ElementOp::Gt, &size(&slope)?, &r.scaled(&size(&d0)?, 3.0)?)?;
    let limited = r.select(&r.binary(ElementOp::And, &turns, &is_steep)?, &r.scaled(&d0, 3.0)?, &slope)?;
    r.select(&r.binary(ElementOp::Eq, &sign(r, &slope)?, &sign(r, &d0)?)?, &limited, 0.0)
}

fn sign(r: &Recorder<'_>, of: &Array) -> Result<Array> {
    r.apply(ElementOp::Sign, &mut [of.into()])
}

/// Second derivatives of the cubic curve whose second derivative is continuous, and whose third one is, too, at the
/// second and the last but one point.
pub(super) fn curvatures(r: &Recorder<'_>, v: &Array, x: &Array, dim: usize) -> Result<Array> {
    let s = Secants::of(r, v, x, dim)?;
    if s.count == 2 {
        return r.zeros(v.meta()?.clone());
    }
    let inner = s.count - 2;
    let [h0, h1] = [s.part(&s.length, 0, inner)?, s.part(&s.length, 1, inner)?];
    let turn = r.sub(&s.part(&s.slope, 1, inner)?, &s.part(&s.slope, 0, inner)?)?;
    let span = r.add(&h0, &h1)?;
    if inner == 1 {
        // A parabola.
        let curvature = r.scaled(&r.div(&turn, &span)?, 2.0)?;
        return r.expand(&curvature, v.shape()?);
    }
    // The equations of the inner points: h0 m[i - 1] + 2 (h0 + h1) m[i] + h1 m[i + 1] = 6 turn. The first and the last
    // one contain the derivative at the end as what follows from its neighbours.
    let (one, inside) = (|of: &Array, at: usize| s.part(of, at, 1), inner - 2);
    let [a, b] = [one(&s.length, 0)?, one(&s.length, 1)?];
    let [p, q] = [one(&s.length, inner - 1)?, one(&s.length, inner)?];
    let less_square = |of: &Array, square: &Array| r.sub(of, &r.div(&r.mul(square, square)?, of)?);
    let more = |near: &Array, beside: &Array| r.div(&r.mul(near, &r.add(near, beside)?)?, beside);
    let zeros = |count: usize| {
        let shape = a.shape()?.with_dim(dim, count)?;
        r.zeros(Meta { dtype: v.dtype()?, shape })
    };
    let lower = r.join(dim, &[&zeros(1)?, &s.part(&h0, 1, inside)?, &less_square(&p, &q)?])?;
    let upper = r.join(dim, &[&less_square(&b, &a)?, &s.part(&h1, 1, inside)?, &zeros(1)?])?;
    let added = r.join(dim, &[&more(&a, &b)?, &zeros(inside)?, &more(&q, &p)?])?;
    let system = System { lower, middle: r.add(&r.scaled(&span, 2.0)?, &added)?, upper, right: r.scaled(&turn, 6.0)? };
    let m = system.solved(r, dim, inner)?;
    // The third derivative is the same on both sides of the points beside the ends.
    let end = |near: &Array, beside: &Array, next: &Array, further: &Array| {
        let own = r.mul(&r.add(near, beside)?, next)?;
        r.div(&r.sub(&own, &r.mul(near, further)?)?, beside)
    };
    let first = end(&a, &b, &one(&m, 0)?, &one(&m, 1)?)?;
    let last = end(&q, &p, &one(&m, inner - 1)?, &one(&m, inner - 2)?)?;
    r.join(dim, &[&first, &m, &last])
}

/// Equations `lower[i] m[i - 1] + middle[i] m[i] + upper[i] m[i + 1] = right[i]` along a dimension, whose middle
/// factors are the greatest.
struct System {
    lower: Array,
    middle: Array,
    upper: Array,
    right: Array,
}

impl System {
    /// The solution, by cyclic reduction of all equations at a time: each step doubles the distance of the unknowns
    /// that an equation joins.
    fn solved(self, r: &Recorder<'_>, dim: usize, count: usize) -> Result<Array> {
        let System { mut lower, mut middle, mut upper, mut right } = self;
        let mut apart = 1;
        while apart < count {
            let before = |of: &Array, fill: f64| moved(r, of, dim, [apart, 0], fill);
            let behind = |of: &Array, fill: f64| moved(r, of, dim, [0, apart], fill);
            let by_lower = r.div(&lower, &before(&middle, 1.0)?)?;
            let by_upper = r.div(&upper, &behind(&middle, 1.0)?)?;
            let reduced = |own: &Array, left: &Array, right: &Array| {
                let taken = r.add(&r.mul(&by_lower, &before(left, 0.0)?)?, &r.mul(&by_upper, &behind(right, 0.0)?)?)?;
                r.sub(own, &taken)
            };
            let next = reduced(&middle, &upper, &lower)?;
            right = reduced(&right, &right, &right)?;
            let negative = |by: &Array, of: Array| r.mul(&r.scaled(by, -1.0)?, &of);
            let next_lower = negative(&by_lower, before(&lower, 0.0)?)?;
            upper = negative(&by_upper, behind(&upper, 0.0)?)?;
            (lower, middle) = (next_lower, next);
            apart *= 2;
        }
        r.div(&right, &middle)
    }
}

/// The array moved along a dimension, away from the end where `by` counts elements of `fill`, which come in.
fn moved(r: &Recorder<'_>, array: &Array, dim: usize, [before, behind]: [usize; 2], fill: f64) -> Result<Array> {
    let own = array.meta()?;
    let count = own.shape.dim(dim);
    let kept = r.part(array, dim, behind, count - before - behind)?;
    let filled = r.full(Meta { dtype: own.dtype, shape: own.shape.with_dim(dim, before + behind)? }, fill)?;
    if before > 0 { r.join(dim, &[&filled, &kept]) } else { r.join(dim, &[&kept, &filled]) }
}
