//! Forward mode: computes the tangent of a value from tangents of the watched arrays, from the earliest step to the
//! latest.
//!
//! In: the steps of a watch, and tangents of its watched arrays. Out: the tangent of a value, as an ordinary array.
//! Must hold: PUSH-1: a tangent has the dtype and the shape of its value; a missing tangent means zero. PULL-3 holds
//! here, too.

use super::log::Log;
use super::pause::Pause;
use super::pull::Steps;
use super::reductions::{Folding, not_written};
use super::step::{Argument, Made, Source, Step};
use crate::array::handle::Array;
use crate::array::tape::Home;
use crate::error::Result;
use crate::graph::gradient::GradientRule;
use crate::graph::{Meta, Nan, Op, ReduceOp};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// Tangents of values, by their steps; tangents that are zero are missing.
pub(super) type Tangents = FxHashMap<u32, Array>;

/// The tangent of the value of step `end`, given those of watched arrays by their steps.
pub(super) fn push(home: &Arc<Home>, log: &Arc<Log>, end: u32, mut tangents: Tangents) -> Result<Option<Array>> {
    let _pause = Pause::only(log);
    let steps = Steps { home: home.clone(), log: log.clone(), values: None, sums_later_below: 0 };
    let leading = log.leading_to(end);
    for number in (0..=end).filter(|&number| leading[number as usize]) {
        let step = &steps.get(number);
        if step.meta.elements() == 0 || steps.follows_only_empty_arguments(step) {
            continue;
        }
        if !step.meta.dtype.is_float() {
            return Err(step.undefined());
        }
        let tangent = match &step.made {
            Made::Watched => continue,
            Made::Op(op) => steps.tangent(step, op, &tangents),
            Made::Custom(custom) => {
                let args = steps.values(step);
                let of_args =
                    step.args.iter().zip(&args).map(|(argument, array)| match tangent_of(argument, &tangents) {
                        Some(tangent) => Ok(tangent.clone()),
                        None => steps.recorder(step).zeros(array.meta()?.clone()),
                    });
                of_args.collect::<Result<Vec<Array>>>().and_then(|of_args| custom.push(&args, &of_args)).map(Some)
            }
        };
        if let Some(tangent) = tangent.map_err(|error| step.named(error))? {
            tangents.insert(number, tangent);
        }
    }
    Ok(tangents.remove(&end))
}

pub(super) fn tangent_of<'a>(argument: &Argument, tangents: &'a Tangents) -> Option<&'a Array> {
    match argument.source {
        Source::Step(step) => tangents.get(&step),
        Source::Aside(_) | Source::Read(_) | Source::Unread | Source::Number(_) => None,
    }
}

impl Steps {
    /// The tangent of an op's value; `None` if it is zero.
    fn tangent(&self, step: &Step, op: &Op, tangents: &Tangents) -> Result<Option<Array>> {
        // RECORD-3: only elementwise ops take numbers as arguments.
        let Some(operand) = step.args.first().and_then(|argument| argument.meta.as_ref()) else {
            return self.sum_of_partials(step, op, tangents);
        };
        match op.facts().gradient {
            GradientRule::None { .. } => Err(step.undefined()),
            GradientRule::MoveBack
            | GradientRule::PutBack
            | GradientRule::SumOfCopies
            | GradientRule::SameOp
            | GradientRule::OwnPart
            | GradientRule::Adjoint
            | GradientRule::FirstOnly
            | GradientRule::AddAtIndex
            | GradientRule::Overwritten => self.same_op(step, op, tangents),
            GradientRule::Factors | GradientRule::Solution | GradientRule::Recurrence | GradientRule::Spectrum => {
                self.linear_tangent(step, op, tangents)
            }
            GradientRule::Partials => self.sum_of_partials(step, op, tangents),
            GradientRule::Products => self.sum_of_products(step, op, tangents),
            GradientRule::Fold(rule) => {
                let Some(tangent) = tangent_of(&step.args[0], tangents) else { return Ok(None) };
                Ok(Some(match self.folding(step, op, operand)? {
                    Folding::Reduction(reduction) => reduction.push(tangent, &reduction.weight(rule)?)?,
                    Folding::Scan(scan) => scan.push(tangent)?,
                }))
            }
        }
    }

    /// The same op on the tangents of the arguments that have any, with zeros for the others, and the same index or
    /// condition.
    fn same_op(&self, step: &Step, op: &Op, tangents: &Tangents) -> Result<Option<Array>> {
        let r = self.recorder(step);
        let has_tangent = |(slot, argument)| op.passes_to(slot) && tangent_of(argument, tangents).is_some();
        if !step.args.iter().enumerate().any(has_tangent) {
            return Ok(None);
        }
        let args = step.args.iter().enumerate().map(|(slot, argument)| match tangent_of(argument, tangents) {
            _ if !op.passes_to(slot) => self.read(step, slot).cloned(),
            Some(tangent) => Ok(tangent.clone()),
            None => {
                let meta = argument.meta.as_ref().ok_or_else(|| not_written(op.name()))?;
                r.zeros(Meta { dtype: step.meta.dtype, shape: meta.shape.clone() })
            }
        });
        let args = args.collect::<Result<SmallVec<[Array; 4]>>>()?;
        let args: SmallVec<[&Array; 4]> = args.iter().collect();
        r.op(op.clone(), &args, step.meta.clone()).map(Some)
    }

    fn sum_of_partials(&self, step: &Step, op: &Op, tangents: &Tangents) -> Result<Option<Array>> {
        let parts = op.partials();
        if parts.is_empty() {
            return Err(step.undefined());
        }
        let (r, partial) = (self.recorder(step), self.partial(step));
        let mut sum: Option<Array> = None;
        for (argument, part) in step.args.iter().zip(parts) {
            let Some(tangent) = tangent_of(argument, tangents) else { continue };
            let tangent = r.alike(tangent, &step.meta)?;
            let Some(share) = partial.times(&tangent, part)? else { continue };
            sum = Some(r.added(sum, share)?);
        }
        Ok(sum)
    }

    /// The tangents of both factors, each times the other factor.
    fn sum_of_products(&self, step: &Step, op: &Op, tangents: &Tangents) -> Result<Option<Array>> {
        let r = self.recorder(step);
        let mut sum: Option<Array> = None;
        for slot in 0..2 {
            let Some(tangent) = tangent_of(&step.args[slot], tangents) else { continue };
            let share = match op.as_reduction() {
                Some((_, dims, _)) => {
                    let products = r.mul(tangent, &self.other_factor(step, op, slot)?)?;
                    r.reduce(&products, ReduceOp::Sum, dims, Nan::Include)?
                }
                None if slot == 0 => r.matmul(tangent, self.read(step, 1)?)?,
                None => r.matmul(self.read(step, 0)?, tangent)?,
            };
            sum = Some(r.added(sum, share)?);
        }
        Ok(sum)
    }
}
