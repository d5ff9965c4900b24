//! Reverse mode: computes cotangents of the watched arrays from cotangents of values, from the latest step to the
//! earliest.
//!
//! In: the steps of a watch, and cotangents of some of its values. Out: cotangents of the watched arrays, as ordinary
//! arrays of the session.
//! Must hold: PULL-1: a cotangent has the dtype and the shape of its value. PULL-2: the cotangents that several ops
//! pass to one value are added in the reverse order in which these ops were recorded. PULL-3: if a cotangent reaches an
//! op without a derivative, that op's error is returned, never zeros.

use super::chunks;
use super::indices;
use super::log::Log;
use super::partials::{Partial, Term};
use super::pause::Pause;
use super::reductions::{Folding, not_written};
use super::step::{Argument, Made, Source, Step};
use super::turns::Turns;
use crate::array::handle::Array;
use crate::array::recorder::Recorder;
use crate::array::tape::Home;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::gradient::GradientRule;
use crate::graph::rules;
use crate::graph::table::Factor;
use crate::graph::{ElementOp, Meta, Nan, Op, ReduceOp, Shape, View};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The steps of a watch.
pub(super) struct Steps {
    pub home: Arc<Home>,
    pub log: Arc<Log>,
    /// Values of steps in place of those that the watch keeps.
    pub values: Option<Values>,
    /// The cotangent of a step with a smaller number is left in the shape of the op that reads the step's value: it is summed
    /// later, with what arrives from other ops (`chunks`).
    pub sums_later_below: u32,
}

/// Arrays by the steps that they are values of.
pub(super) type Values = FxHashMap<usize, Array>;

/// The cotangents that have reached values and were not passed on yet, by the steps of these values.
pub(super) type Arrived = BTreeMap<u32, Array>;

/// Cotangents of a step's arguments, each with the argument's slot.
pub(super) type Shares = SmallVec<[(usize, Array); 2]>;

/// The steps whose cotangents are asked for, besides those of the watched arrays.
#[derive(Clone, Copy, Default)]
pub(super) struct Wanted<'a> {
    /// Steps of values that the watch follows.
    pub by: &'a [u32],
    /// Whether the watch follows the ops that are recorded for the cotangents, too.
    pub follows: bool,
}

/// The cotangents of the watched arrays, and of the wanted values, that a cotangent reaches, by their steps.
///
/// Beside what it records, this takes memory for the cotangents that have arrived, and while it looks for loops,
/// sixteen bytes for each step of the log, if there may be any.
pub(super) fn pull(
    home: &Arc<Home>,
    log: &Arc<Log>,
    seeds: Vec<(u32, Array)>,
    wanted: Wanted<'_>,
) -> Result<FxHashMap<u32, Array>> {
    let _pause = (!wanted.follows).then(|| Pause::only(log));
    let steps = Steps { home: home.clone(), log: log.clone(), values: None, sums_later_below: 0 };
    let mut arrived = Arrived::new();
    for (step, cotangent) in seeds {
        steps.add(&mut arrived, step, cotangent)?;
    }
    let mut watched = FxHashMap::default();
    let mut loops = log.loops();
    // Cotangents pass to earlier steps only, so the latest step at which any has arrived is complete.
    while let Some((&number, _)) = arrived.last_key_value() {
        if let Some(turns) = loops.pop_if(|turns| turns.range().start > number as usize || is_in(turns, number)) {
            // A chunk does not leave the cotangents of its values.
            let is_wanted = wanted.by.iter().any(|step| is_in(&turns, *step));
            if is_in(&turns, number) && !is_wanted {
                chunks::pull(&steps, &turns, &mut arrived)?;
            }
            continue;
        }
        let Some(above) = arrived.remove(&number) else { continue };
        if wanted.by.contains(&number) {
            watched.insert(number, above.clone());
        }
        let step = &steps.get(number);
        if steps.follows_only_empty_arguments(step) {
            continue;
        }
        let shares = match &step.made {
            Made::Watched => {
                watched.insert(number, above);
                continue;
            }
            Made::Op(op) => steps.shares(step, op, &above).map_err(|error| step.named(error))?,
            Made::Custom(custom) => {
                let shares = step.value().and_then(|value| custom.pull(&steps.values(step), value, &above));
                let shares =
                    shares.and_then(|shares| steps.checked(step, shares)).map_err(|error| step.named(error))?;
                shares.into_iter().enumerate().collect()
            }
        };
        for (slot, share) in shares {
            if let Source::Step(argument) = step.args[slot].source {
                steps.add(&mut arrived, argument, share)?;
            }
        }
    }
    Ok(watched)
}

fn is_in(turns: &Turns, step: u32) -> bool {
    turns.range().contains(&(step as usize))
}

impl Step {
    /// The name of the op or function that computed the value.
    pub fn name(&self) -> &'static str {
        match &self.made {
            Made::Watched => "watch",
            Made::Op(op) => op.name(),
            Made::Custom(custom) => custom.name(),
        }
    }

    /// The step's value, which its rule reads. `ErrorKind::Internal` if the watch did not keep it.
    pub fn value(&self) -> Result<&Array> {
        let value = self.value.as_ref();
        value.ok_or_else(|| Error::new(ErrorKind::Internal, "GRAD-1: a value that a rule reads was not kept"))
    }

    /// The error, with the op that is differentiated and its line.
    pub fn named(&self, error: Error) -> Error {
        error.with_op(self.name()).with_site(self.at)
    }

    /// The error of a derivative that the op does not have.
    pub fn undefined(&self) -> Error {
        let why = match &self.made {
            Made::Op(op) => match op.facts().gradient {
                GradientRule::None { why } => why.to_owned(),
                _ => format!("its result is {}", self.meta.dtype),
            },
            Made::Watched | Made::Custom(_) => format!("its result is {}", self.meta.dtype),
        };
        let message =
            format!("the op has no derivative: {why}. Call stop_gradient() on its result to treat that as a constant");
        self.named(Error::new(ErrorKind::NoDerivative, message))
    }
}

impl Steps {
    /// The step with this number.
    pub fn get(&self, number: u32) -> Step {
        let mut step = self.log.step(number);
        if let Some(values) = &self.values {
            step.value = values.get(&(number as usize)).cloned();
            for argument in &mut step.args {
                if let Some(number) = argument.source.step() {
                    argument.array = values.get(&(number as usize)).cloned();
                }
            }
        }
        step
    }

    /// The followed arguments: the slot, the dtype and the shape of each.
    pub fn followed<'a>(&self, step: &'a Step) -> impl Iterator<Item = (usize, &'a Meta)> + use<'a> {
        step.args.iter().enumerate().filter_map(|(slot, argument)| match argument.source {
            Source::Step(_) => argument.meta.as_ref().map(|meta| (slot, meta)),
            Source::Aside(_) | Source::Read(_) | Source::Unread | Source::Number(_) => None,
        })
    }

    /// Whether all followed arguments, of which there is at least one, are without elements, so that no cotangent has
    /// any.
    pub fn follows_only_empty_arguments(&self, step: &Step) -> bool {
        let mut elements = self.followed(step).map(|(_, meta)| meta.elements());
        elements.next() == Some(0) && elements.all(|elements| elements == 0)
    }

    /// The array of an argument that the step's rule reads. `ErrorKind::Internal` if the watch did not keep it.
    pub fn read<'a>(&self, step: &'a Step, slot: usize) -> Result<&'a Array> {
        let array = step.args.get(slot).and_then(|argument| argument.array.as_ref());
        array.ok_or_else(|| Error::new(ErrorKind::Internal, "GRAD-1: an argument that a rule reads was not kept"))
    }

    /// The arguments of a function with a rule of its own, all of which are kept.
    pub fn values(&self, step: &Step) -> Vec<Array> {
        step.args.iter().filter_map(|argument| argument.array.clone()).collect()
    }

    pub fn recorder(&self, step: &Step) -> Recorder<'_> {
        Recorder { home: &self.home, at: step.at.location }
    }

    /// Adds a cotangent to those that have reached a value.
    pub fn add(&self, arrived: &mut Arrived, number: u32, share: Array) -> Result<()> {
        let step = self.get(number);
        if step.meta.elements() == 0 {
            return Ok(());
        }
        if !step.meta.dtype.is_float() {
            return Err(step.undefined());
        }
        let sum = self.recorder(&step).added(arrived.remove(&number), share)?;
        arrived.insert(number, sum);
        Ok(())
    }

    /// Checks that a program's rule returned one array for each argument, and gives those of followed arguments the
    /// argument's dtype and shape.
    fn checked(&self, step: &Step, shares: Vec<Array>) -> Result<Vec<Array>> {
        let wrong = |message: String| Error::new(ErrorKind::Argument, message);
        if shares.len() != step.args.len() {
            let message = format!("the rule returned {} gradients for {} arguments", shares.len(), step.args.len());
            return Err(wrong(message));
        }
        let r = self.recorder(step);
        let fit = shares.into_iter().zip(&step.args).enumerate().map(|(slot, (share, argument))| {
            let (Source::Step(_), Some(meta)) = (argument.source, &argument.meta) else { return Ok(share) };
            let own = share.meta()?;
            if rules::expands(&own.shape, &meta.shape).is_err() {
                let (own, meta) = (&own.shape, &meta.shape);
                let message =
                    format!("the rule returned a gradient of shape {own} for argument {slot}, whose shape is {meta}");
                return Err(wrong(message));
            }
            r.alike(&share, meta)
        });
        fit.collect()
    }

    /// The cotangents of the followed arguments of an op, from `above`, the cotangent of its value.
    pub fn shares(&self, step: &Step, op: &Op, above: &Array) -> Result<Shares> {
        let r = self.recorder(step);
        let one = |share: Array| -> Shares { SmallVec::from_iter([(0, share)]) };
        let Some(first) = step.args.first().and_then(|argument| argument.meta.as_ref()) else {
            return self.partials(step, op, above);
        };
        match op.facts().gradient {
            GradientRule::None { .. } => Err(step.undefined()),
            GradientRule::Partials => self.partials(step, op, above),
            GradientRule::Adjoint => self.adjoint(step, op, above),
            GradientRule::Factors | GradientRule::Solution | GradientRule::Recurrence | GradientRule::Spectrum => {
                self.linear_shares(step, op, above)
            }
            GradientRule::MoveBack | GradientRule::PutBack | GradientRule::SumOfCopies => {
                let view = op.as_view().ok_or_else(|| not_written(op.name()))?;
                Ok(one(pull_view(&r, view, above, &first.shape)?))
            }
            GradientRule::OwnPart => self.own_parts(step, op, above),
            GradientRule::SameOp => Ok(one(r.op(op.clone(), &[above], first.clone())?)),
            // The condition is also checked for the gradient.
            GradientRule::FirstOnly => Ok(one(r.op(op.clone(), &[above, self.read(step, 1)?], first.clone())?)),
            GradientRule::Products if op.as_reduction().is_none() => self.products(step, above),
            GradientRule::Products => self.dots(step, op, above),
            GradientRule::Fold(rule) => Ok(one(match self.folding(step, op, first)? {
                Folding::Reduction(reduction) => reduction.pull(above, &reduction.weight(rule)?)?,
                Folding::Scan(scan) => scan.pull(above)?,
            })),
            GradientRule::AddAtIndex => {
                let indexing = op.indexes().ok_or_else(|| not_written(op.name()))?;
                let index = self.read(step, 1)?;
                Ok(one(indices::added(&r, first, above, index, indexing, self.is_order(&step.args[1]))?))
            }
            GradientRule::Overwritten => self.overwritten(step, op, above, first),
        }
    }

    /// Whether an index is the result of a sort.
    fn is_order(&self, index: &Argument) -> bool {
        match index.source {
            Source::Step(step) => matches!(self.get(step).made, Made::Op(op) if op.is_order()),
            Source::Aside(_) | Source::Read(_) | Source::Unread | Source::Number(_) => false,
        }
    }

    /// The arguments of an elementwise op and its value, for the expressions of its partial derivatives.
    pub fn partial<'a>(&'a self, step: &Step) -> Partial<'a> {
        let args = step.args.iter().map(|argument| match argument.source {
            Source::Number(number) => Some(Term::Number(number.as_f64())),
            Source::Step(_) | Source::Aside(_) | Source::Read(_) | Source::Unread => {
                argument.array.clone().map(Term::Array)
            }
        });
        let (args, value) = (args.collect(), step.value.clone());
        Partial { recorder: self.recorder(step), dtype: step.meta.dtype, args, value }
    }

    fn partials(&self, step: &Step, op: &Op, above: &Array) -> Result<Shares> {
        let parts = op.partials();
        if parts.is_empty() {
            return Err(step.undefined());
        }
        let (r, partial) = (self.recorder(step), self.partial(step));
        let mut shares = Shares::new();
        for (slot, meta) in self.followed(step).filter(|(_, meta)| meta.elements() > 0) {
            let part = &parts[slot];
            if !meta.dtype.is_float() && !matches!(part.factor(), Factor::Zero) {
                // PULL-1: `add` returns the error of the op that computed the argument.
                shares.push((slot, above.clone()));
                continue;
            }
            if let Some(share) = partial.times(above, part)? {
                let sums_later = matches!(step.args[slot].source, Source::Step(of) if of < self.sums_later_below);
                shares.push((
                    slot,
                    match sums_later {
                        true => share,
                        false => r.cast(&r.sum_to(&share, &meta.shape)?, meta.dtype)?,
                    },
                ));
            }
        }
        Ok(shares)
    }

    /// The cotangents of the parts of a joined array, and that of the diagonal from which a matrix was made.
    fn own_parts(&self, step: &Step, op: &Op, above: &Array) -> Result<Shares> {
        let r = self.recorder(step);
        let mut shares = Shares::new();
        if let Some(k) = op.makes_diagonal() {
            let shape = rules::diagonal(above.shape()?, k)?;
            shares.push((0, r.view(above, View::Diagonal(k), shape)?));
            return Ok(shares);
        }
        let dim = op.joins_along().ok_or_else(|| not_written(op.name()))?;
        let mut start = 0;
        for (slot, argument) in step.args.iter().enumerate() {
            let Some(meta) = &argument.meta else { continue };
            let len = meta.shape.dim(dim);
            if let Source::Step(_) = argument.source {
                // Along a new dimension, the part has one axis more than the argument.
                let part = r.part(above, dim, start, len)?;
                shares.push((slot, r.reshape(&part, meta.shape.clone())?));
            }
            start += len;
        }
        Ok(shares)
    }

    /// For each factor of a matrix product, the product of `above` with the other factor, transposed.
    fn products(&self, step: &Step, above: &Array) -> Result<Shares> {
        let r = self.recorder(step);
        let mut shares = Shares::new();
        for (slot, meta) in self.followed(step) {
            let other = r.transpose(self.read(step, 1 - slot)?)?;
            let share = if slot == 0 { r.matmul(above, &other)? } else { r.matmul(&other, above)? };
            shares.push((slot, r.sum_to(&share, &meta.shape)?));
        }
        Ok(shares)
    }

    /// The other factor of a dot product, as its rule uses it: 0 where a pair is left out.
    pub fn other_factor(&self, step: &Step, op: &Op, slot: usize) -> Result<Array> {
        let r = self.recorder(step);
        let other = self.read(step, 1 - slot)?;
        let Some((_, _, Nan::Omit)) = op.as_reduction() else { return Ok(other.clone()) };
        let missing = r.binary(ElementOp::Or, &r.is_nan(other)?, &r.is_nan(self.read(step, slot)?)?)?;
        r.select(&missing, 0.0, other)
    }

    fn dots(&self, step: &Step, op: &Op, above: &Array) -> Result<Shares> {
        let r = self.recorder(step);
        let share = |slot| Ok((slot, r.mul(&self.other_factor(step, op, slot)?, above)?));
        self.followed(step).map(|(slot, _)| share(slot)).collect()
    }

    /// The cotangent of the base is `above` with zeros where it was overwritten; that of the value is `above` at those
    /// places.
    fn overwritten(&self, step: &Step, op: &Op, above: &Array, base: &Meta) -> Result<Shares> {
        let r = self.recorder(step);
        let zero = r.zeros(Meta { dtype: base.dtype, shape: Shape::scalar() })?;
        let mut shares = Shares::new();
        for (slot, meta) in self.followed(step) {
            let share = match (op.overwrites_slice(), slot) {
                (Some(_), 0) => r.op(op.clone(), &[above, &zero], base.clone())?,
                (Some(slice), _) => r.slice(above, slice)?,
                (None, 0) => r.op(op.clone(), &[above, self.read(step, 1)?, &zero], base.clone())?,
                // No cotangent passes to an index.
                (None, 1) => continue,
                (None, _) => {
                    let indexing = op.indexes().ok_or_else(|| not_written(op.name()))?;
                    indices::written(&r, above, self.read(step, 1)?, indexing)?
                }
            };
            shares.push((slot, r.sum_to(&share, &meta.shape)?));
        }
        Ok(shares)
    }
}

/// The cotangent of an array of `shape`, from `above`, the cotangent of its view.
fn pull_view(r: &Recorder<'_>, view: &View, above: &Array, shape: &Shape) -> Result<Array> {
    match view {
        View::Reshape => r.reshape(above, shape.clone()),
        View::Permute(order) => {
            let order: SmallVec<[usize; 4]> = order.iter().map(|&from| usize::from(from)).collect();
            r.reshape(&r.permute_back(above, &order)?, shape.clone())
        }
        View::Slice(slice) => r.placed(above, shape, slice),
        View::Broadcast => r.sum_to(above, shape),
        View::Repmat => untiled(r, above, shape),
        View::CircShift(shifts) => {
            let back = shifts.iter().enumerate().map(|(d, &by)| (shape.dim(d) - by) % shape.dim(d).max(1));
            let back: Vec<usize> = back.collect();
            r.view(above, View::CircShift(back.as_slice().into()), shape.clone())
        }
        View::Diagonal(k) => on_diagonal(r, above, shape, *k),
    }
}

/// The sum of the tiles of an array; `shape` is that of a tile.
fn untiled(r: &Recorder<'_>, above: &Array, shape: &Shape) -> Result<Array> {
    let tiled = above.shape()?.clone();
    let is_tiled = |d: &usize| tiled.dim(*d) != shape.dim(*d);
    let tiles_of = |d: usize| tiled.dim(d) / shape.dim(d).max(1);
    if let Some(first) = (0..tiled.rank()).find(is_tiled)
        && tiled.rank() + (0..tiled.rank()).filter(is_tiled).count() > Shape::RANK_MAX
    {
        // These would be more dimensions than an array may have, so the tiles along one of them are summed first.
        let extents = tiled.dims();
        let (before, behind) = (extents[..first].iter().product(), extents[first + 1..].iter().product());
        let apart = Shape::new(&[before, shape.dim(first), tiles_of(first), behind])?;
        let sums = r.reduce(&r.reshape(above, apart)?, ReduceOp::Sum, 0b100, Nan::Include)?;
        let sums = r.reshape(&sums, tiled.with_dim(first, shape.dim(first))?)?;
        return untiled(r, &sums, shape);
    }
    let mut extents: SmallVec<[usize; 8]> = SmallVec::new();
    let mut tiles = 0;
    for d in 0..tiled.rank() {
        extents.push(shape.dim(d));
        if is_tiled(&d) {
            tiles |= 1 << extents.len();
            extents.push(tiles_of(d));
        }
    }
    let apart = r.reshape(above, Shape::new(&extents)?)?;
    r.reshape(&r.reduce(&apart, ReduceOp::Sum, tiles, Nan::Include)?, shape.clone())
}

/// A matrix of zeros of a shape, with a column on its `k`-th diagonal.
fn on_diagonal(r: &Recorder<'_>, column: &Array, shape: &Shape, k: i64) -> Result<Array> {
    let own = column.meta()?;
    let square = rules::with_diagonal(own.elements(), k)?;
    let mut matrix = r.op(Op::MakeDiagonal(k), &[column], Meta { dtype: own.dtype, shape: square.clone() })?;
    for d in 0..2 {
        matrix = r.resized(&matrix, d, shape.dim(d))?;
    }
    Ok(matrix)
}
