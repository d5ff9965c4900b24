//! Finds the loops among the steps of a watch.
//!
//! In: all steps of a log, in the order in which they were recorded. Out: runs of whole turns of elementwise ops. Must
//! hold: TURNS-1: a step of a turn equals the step in its place one turn later, except for numbers and random keys.
//! Both read the same place of their own turn, or of the turn before (a carried value), or the same step before the
//! loop. TURNS-2: each argument of a step can be named again: it is a number, a step, or an array of which the watch
//! keeps the handle.

use super::packed::Packed;
use super::statements::{Kind, Template};
use super::step::Source;
use crate::graph::repeats::{Limits, Repeats};
use crate::graph::{DType, Shape};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Fewest steps of a loop that is pulled in chunks. Below, keeping what a backward pass reads costs less.
pub(super) const STEPS_MIN: usize = 192;
/// Fewest turns.
const TURNS_MIN: usize = 4;
/// Most steps of a turn.
const PERIOD_MAX: usize = 128;
/// Earlier places of a statement at which a turn is looked for.
const PLACES_MAX: usize = 8;

/// A loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Turns {
    /// The first step of its first turn.
    pub first: usize,
    /// Steps of a turn.
    pub period: usize,
    /// Turns.
    pub turns: usize,
    /// The places in a turn of the values that the next turn reads.
    pub carried: Vec<usize>,
}

impl Turns {
    /// The first step of a turn; of the turn behind the last one, the end of the loop.
    pub fn begin(&self, turn: usize) -> usize {
        self.first + turn * self.period
    }

    /// The steps of all turns.
    pub fn range(&self) -> Range<usize> {
        self.first..self.begin(self.turns)
    }

    /// The steps whose values a turn reads of the turn before, in the order of `carried`.
    pub fn carried_into(&self, turn: usize) -> impl Iterator<Item = usize> + '_ {
        let before = self.begin(turn) - self.period;
        self.carried.iter().map(move |place| before + place)
    }

    /// The turn of a step, if it is one of the loop's.
    pub fn turn_of(&self, step: usize) -> Option<usize> {
        self.range().contains(&step).then(|| (step - self.first) / self.period)
    }

    /// Whether a step lies before the loop and the turn that precedes it.
    pub fn is_outside(&self, step: usize) -> bool {
        step < self.first - self.period
    }
}

/// All that must be equal between turns: the statement, and the dtype and shape where the statement has none.
type Form = (u32, Option<(DType, Shape)>);

/// The form of a step; `None` for what is no elementwise op, or has an argument without a handle.
fn form(steps: &Packed, number: usize) -> Option<Form> {
    let statement = steps.statement(number as u32);
    if !statement.is_elementwise || statement.is_pinned || statement.kinds.iter().any(|kind| kind == Kind::Unread) {
        return None;
    }
    let (statement, meta) = steps.form(number as u32);
    Some((statement, meta.map(|meta| (meta.dtype, meta.shape))))
}

/// The loops, in order. While it looks, it takes sixteen bytes a step.
pub(super) fn find(steps: &Packed) -> Vec<Turns> {
    let mut numbers: FxHashMap<Form, u32> = FxHashMap::default();
    let mut number_of = |step| {
        let next = numbers.len() as u32;
        form(steps, step).map(|form| *numbers.entry(form).or_insert(next))
    };
    let kinds: Vec<Option<u32>> = (0..steps.len()).map(&mut number_of).collect();
    let finder = Finder { steps };
    let repeats = Repeats {
        count: steps.len(),
        kind: |step: usize| kinds[step],
        is_steady: |first: usize, period: usize, at: usize| finder.is_steady(first, period, at),
    };
    let least = |period: usize| STEPS_MIN.max((TURNS_MIN + 2) * period);
    let stretches = repeats.stretches(&Limits { period_max: PERIOD_MAX, places_max: PLACES_MAX, least });
    stretches.iter().filter_map(|stretch| finder.turns(stretch.first, stretch.period, stretch.end)).collect()
}

struct Finder<'a> {
    steps: &'a Packed,
}

impl Finder<'_> {
    /// Whether a step reads what the step one turn before reads, in its own turn.
    fn is_steady(&self, first: usize, period: usize, at: usize) -> bool {
        let ((_, now), (_, before)) = (self.steps.parts(at as u32), self.steps.parts((at - period) as u32));
        now.args.into_iter().zip(before.args).all(|pair| match pair {
            (Source::Step(now), Source::Step(before)) | (Source::Aside(now), Source::Aside(before)) => {
                let (now, before) = (now as usize, before as usize);
                // A value may be read in the next turn, wherever in a turn these begin; `carried` looks at that.
                let moves = now == before + period && at - now < 2 * period;
                moves || (now == before && now < first)
            }
            _ => true,
        })
    }

    /// The whole turns in a run. A turn begins where the fewest values are carried, and the first turn of the run is left
    /// out: its carried values come from before the loop.
    fn turns(&self, first: usize, period: usize, end: usize) -> Option<Turns> {
        let phases = (0..period).filter_map(|phase| {
            let carried = self.carried(first, first + 2 * period + phase, period)?;
            Some((carried, phase))
        });
        let (carried, phase) = phases.min_by_key(|(carried, phase)| (carried.len(), *phase))?;
        let first = first + period + phase;
        let turns = Turns { first, period, turns: (end - first) / period, carried };
        let arrays = (first..first + period).map(|step| step as u32).filter(|step| !self.is_number(*step));
        let mut shapes = arrays.map(|step| self.steps.meta(step).shape);
        let shape = shapes.next()?;
        let is_one_shape = shapes.all(|other| other == shape) && shape.elements() > 1;
        (is_one_shape && turns.turns >= TURNS_MIN && !turns.carried.is_empty()).then_some(turns)
    }

    /// The places of the values that a turn which begins at `begin` reads of the turn before, in a loop that begins at
    /// `first`; `None` if an aside is among them, or the turn reads values of an earlier turn.
    fn carried(&self, first: usize, begin: usize, period: usize) -> Option<Vec<usize>> {
        if begin + period > self.steps.len() {
            return None;
        }
        let mut carried = Vec::new();
        for source in (begin..begin + period).flat_map(|step| self.steps.parts(step as u32).1.args) {
            let Some(from) = source.step() else { continue };
            let from = from as usize;
            if (first..begin).contains(&from) {
                let is_kept = from + period >= begin && matches!(source, Source::Step(_));
                carried.push(is_kept.then(|| from + period - begin)?);
            }
        }
        carried.sort_unstable();
        carried.dedup();
        Some(carried)
    }

    /// Whether a step is a number in some shape.
    fn is_number(&self, step: u32) -> bool {
        matches!(&self.steps.statement(step).template, Template::Op(op) if op.is_number())
    }
}
