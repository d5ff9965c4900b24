//! Derivatives of reductions. The derivative of a reduction by an element of its operand is the weight of that element.
//! In reverse mode the cotangent of the value is multiplied by the weights; in forward mode the tangents are multiplied
//! by them and summed.

use super::pull::Steps;
use super::scans::Scan;
use super::step::Step;
use crate::array::handle::Array;
use crate::array::recorder::Recorder;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::gradient::FoldRule;
use crate::graph::rules::has_dim;
use crate::graph::{DType, DimSet, ElementOp, Meta, Nan, Op, ReduceOp, ScanOp, Shape};
use smallvec::SmallVec;

/// The derivative of a reduction's value by each element of its operand.
pub(super) enum Weight {
    /// The same number for all.
    Number(f64),
    /// 1 where a mask is true, 0 elsewhere.
    Where(Array),
    /// The elements of an array, which expands to the operand.
    Array(Array),
}

/// A step that is a reduction or a scan.
pub(super) enum Folding<'a> {
    Reduction(Reduction<'a>),
    Scan(Scan<'a>),
}

/// The operand and the value of a reduction or scan.
pub(super) struct Folded<'a> {
    pub recorder: Recorder<'a>,
    pub nan: Nan,
    /// The dtype and shape of the operand.
    pub meta: &'a Meta,
    steps: &'a Steps,
    step: &'a Step,
}

/// A reduction of one array.
pub(super) struct Reduction<'a> {
    fold: Folded<'a>,
    op: ReduceOp,
    dims: DimSet,
}

impl Steps {
    /// The reduction or scan of a step.
    pub fn folding<'a>(&'a self, step: &'a Step, op: &Op, meta: &'a Meta) -> Result<Folding<'a>> {
        let folded = |nan| Folded { recorder: self.recorder(step), nan, meta, steps: self, step };
        if let Some((op, dims, nan)) = op.as_reduction() {
            return Ok(Folding::Reduction(Reduction { fold: folded(nan), op, dims }));
        }
        let (op, dim, nan, reverse) = op.as_scan().ok_or_else(|| not_written(op.name()))?;
        Ok(Folding::Scan(Scan { fold: folded(nan), op, dim, reverse }))
    }
}

impl<'a> Folded<'a> {
    pub fn operand(&self) -> Result<&'a Array> {
        self.steps.read(self.step, 0)
    }

    pub fn value(&self) -> Result<&'a Array> {
        self.step.value()
    }

    /// Whether elements of the operand are NaN.
    pub fn is_nan(&self) -> Result<Array> {
        self.recorder.is_nan(self.operand()?)
    }

    /// The operand, with `number` in place of NaN that is left out.
    pub fn without_nan(&self, number: f64) -> Result<Array> {
        match self.nan {
            Nan::Include => self.operand().cloned(),
            Nan::Omit => self.recorder.select(&self.is_nan()?, number, self.operand()?),
        }
    }

    /// An array like the operand, with zeros at the elements that are left out.
    pub fn where_counted(&self, array: &Array) -> Result<Array> {
        match self.nan {
            Nan::Include => Ok(array.clone()),
            Nan::Omit => self.recorder.select(&self.is_nan()?, 0.0, array),
        }
    }
}

impl Reduction<'_> {
    /// The cotangent of the operand.
    pub fn pull(&self, above: &Array, weight: &Weight) -> Result<Array> {
        let r = &self.fold.recorder;
        match weight {
            Weight::Number(factor) => {
                let scaled = if *factor == 1.0 { above.clone() } else { r.scaled(above, *factor)? };
                r.expand(&scaled, &self.fold.meta.shape)
            }
            Weight::Where(mask) => r.select(mask, above, 0.0),
            Weight::Array(weights) => r.mul(weights, above),
        }
    }

    /// The tangent of the value.
    pub fn push(&self, tangent: &Array, weight: &Weight) -> Result<Array> {
        let r = &self.fold.recorder;
        let sum = |array: &Array| r.reduce(array, ReduceOp::Sum, self.dims, Nan::Include);
        match weight {
            Weight::Number(factor) => {
                let sum = sum(tangent)?;
                if *factor == 1.0 { Ok(sum) } else { r.scaled(&sum, *factor) }
            }
            Weight::Where(mask) => sum(&r.select(mask, tangent, 0.0)?),
            Weight::Array(weights) => sum(&r.mul(weights, tangent)?),
        }
    }

    /// The weights of the elements, by the op's rule.
    pub fn weight(&self, rule: FoldRule) -> Result<Weight> {
        let r = &self.fold.recorder;
        match rule {
            FoldRule::Spread => match self.fold.nan {
                Nan::Include => Ok(Weight::Number(1.0)),
                Nan::Omit => self.counts().map(Weight::Where),
            },
            FoldRule::SpreadMean => match self.fold.nan {
                Nan::Include => Ok(Weight::Number(1.0 / self.reduced() as f64)),
                Nan::Omit => {
                    let share = r.div(r.number(self.fold.meta.dtype, 1.0), &self.count()?)?;
                    r.select(&self.counts()?, &share, 0.0).map(Weight::Array)
                }
            },
            FoldRule::OtherFactors => self.other_factors().map(Weight::Array),
            FoldRule::Deviation => self.deviation().map(Weight::Array),
            FoldRule::AtExtreme => self.at_extreme().map(Weight::Where),
            FoldRule::Direction => {
                let value = self.fold.value()?;
                let direction = r.div(&self.fold.without_nan(0.0)?, value)?;
                // The norm of zeros has no direction.
                let is_zero = r.binary(ElementOp::Eq, value, 0.0)?;
                r.select(&is_zero, 0.0, &direction).map(Weight::Array)
            }
            FoldRule::Softmax => {
                let value = self.fold.value()?;
                // If all elements are -inf, none has a share.
                let nothing = r.binary(ElementOp::Eq, value, f64::NEG_INFINITY)?;
                let value = r.select(&nothing, 0.0, value)?;
                let below = r.sub(&self.fold.without_nan(f64::NEG_INFINITY)?, &value)?;
                r.apply(ElementOp::Exp, &mut [below.into()]).map(Weight::Array)
            }
            FoldRule::SumsFromEnd => Err(not_written(self.op.facts().name)),
        }
    }

    /// The number of elements from which each value is computed.
    fn reduced(&self) -> usize {
        let shape = &self.fold.meta.shape;
        (0..shape.rank()).filter(|&d| has_dim(self.dims, d)).map(|d| shape.dim(d)).product()
    }

    /// Whether each element is not NaN.
    fn counts(&self) -> Result<Array> {
        let is_nan = self.fold.is_nan()?;
        self.fold.recorder.apply(ElementOp::Not, &mut [is_nan.into()])
    }

    /// The number of elements that are not NaN, in the operand's dtype.
    fn count(&self) -> Result<Array> {
        let r = &self.fold.recorder;
        let counts = r.cast(&self.counts()?, self.fold.meta.dtype)?;
        r.reduce(&counts, ReduceOp::Sum, self.dims, Nan::Include)
    }

    /// For each element, the product of the other elements: of those before it and those behind it, so that zeros need
    /// no special treatment.
    fn other_factors(&self) -> Result<Array> {
        let r = &self.fold.recorder;
        let shape = &self.fold.meta.shape;
        let (inside, outside): (Vec<usize>, Vec<usize>) = (0..shape.rank()).partition(|&d| has_dim(self.dims, d));
        let order: SmallVec<[usize; 4]> = inside.iter().chain(&outside).copied().collect();
        let lines = r.permute(&self.fold.without_nan(1.0)?, &order)?;
        let moved = lines.shape()?.clone();
        let count = self.reduced();
        let lines = r.reshape(&lines, Shape::new(&[count, shape.elements() / count])?)?;
        let one = Meta { dtype: self.fold.meta.dtype, shape: lines.shape()?.with_dim(0, 1)? };
        let one = r.full(one, 1.0)?;
        let before = r.part(&r.scan(&lines, ScanOp::Prod, 0, false)?, 0, 0, count - 1)?;
        let behind = r.part(&r.scan(&lines, ScanOp::Prod, 0, true)?, 0, 1, count - 1)?;
        let others = r.mul(&r.join(0, &[&one, &before])?, &r.join(0, &[&behind, &one])?)?;
        let others = r.permute_back(&r.reshape(&others, moved)?, &order)?;
        self.fold.where_counted(&others)
    }

    /// The distances from the mean, times the factor of a variance or a deviation.
    fn deviation(&self) -> Result<Array> {
        let r = &self.fold.recorder;
        let dtype = self.fold.meta.dtype;
        let mean = r.reduce(self.fold.operand()?, ReduceOp::Mean, self.dims, self.fold.nan)?;
        let mut distance = r.sub(self.fold.operand()?, &mean)?;
        if self.fold.nan == Nan::Omit {
            distance = r.select(&r.is_nan(&distance)?, 0.0, &distance)?;
        }
        let (ddof, is_variance) = match self.op {
            ReduceOp::Var { ddof } => (ddof, true),
            ReduceOp::Std { ddof } => (ddof, false),
            other => return Err(not_written(other.facts().name)),
        };
        // Each is divided by the degrees of freedom, which are at least 1.
        let free = match self.fold.nan {
            Nan::Include => {
                let free = self.reduced().saturating_sub(usize::from(ddof)).max(1);
                r.full(Meta { dtype, shape: Shape::scalar() }, free as f64)?
            }
            Nan::Omit => {
                let free = r.sub(&self.count()?, r.number(dtype, f64::from(ddof)))?;
                r.binary(ElementOp::Max, &free, 1.0)?
            }
        };
        if is_variance {
            return r.scaled(&r.div(&distance, &free)?, 2.0);
        }
        let value = self.fold.value()?;
        let weights = r.div(&distance, &r.mul(value, &free)?)?;
        // If all elements are equal, the deviation is 0, and has no direction.
        let is_zero = r.binary(ElementOp::Eq, value, 0.0)?;
        r.select(&is_zero, 0.0, &weights)
    }

    /// A mask of the first of the least or greatest elements.
    fn at_extreme(&self) -> Result<Array> {
        let r = &self.fold.recorder;
        let position = match self.op {
            ReduceOp::Min => ReduceOp::ArgMin,
            ReduceOp::Max => ReduceOp::ArgMax,
            other => return Err(not_written(other.facts().name)),
        };
        let taken = r.reduce(self.fold.operand()?, position, self.dims, self.fold.nan)?;
        debug_assert_eq!(taken.dtype()?, DType::U32);
        r.binary(ElementOp::Eq, &r.positions_along(&self.fold.meta.shape, self.dims)?, &taken)
    }
}

/// The error of an op whose rule this module does not record.
pub(super) fn not_written(op: &'static str) -> Error {
    Error::new(ErrorKind::Unsupported, "its derivative is not recorded by this version").with_op(op)
}
