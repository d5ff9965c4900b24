//! Finds the loops among the steps of a watch.
//!
//! In: all steps, in the order in which they were recorded. Out: runs of whole turns of elementwise ops. Must hold: TURNS-1:
//! a step of a turn equals the step in its place one turn later, except for numbers and random keys. Both read the same
//! place of their own turn, or of the turn before (a carried value), or the same step before the loop. TURNS-2: each
//! argument of a step can be named again: it is a number, a step, or an array of which the watch keeps the handle.

use super::log::{Made, Source, Step};
use crate::graph::repeats::{Limits, Repeats};
use crate::graph::words::Words;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};
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

/// All that must be equal between turns; `None` for what is no elementwise op, or has an argument without a handle.
fn kind(step: &Step) -> Option<SmallVec<[u64; 16]>> {
    let Made::Op(op) = &step.made else { return None };
    if !op.is_elementwise() || step.is_pinned {
        return None;
    }
    let mut kind = SmallVec::new();
    let mut words = Words(&mut kind);
    (step.at.location as *const _ as usize as u64, step.at.mark, step.is_aside).hash(&mut words);
    op.hash_attributes(&mut words);
    (step.meta.dtype, &step.meta.shape).hash(&mut words);
    for source in &step.args {
        match source {
            Source::Step(_) => words.write_u64(0),
            Source::Aside(_) => words.write_u64(1),
            Source::Read(_) => words.write_u64(2),
            Source::Number(number) => (3u64, number.dtype()).hash(&mut words),
            Source::Unread(_) => return None,
        }
    }
    Some(kind)
}

/// The loops, in order.
pub(super) fn find(steps: &[Step]) -> Vec<Turns> {
    let mut numbers: FxHashMap<SmallVec<[u64; 16]>, u32> = FxHashMap::default();
    let mut number_of = |step| {
        let next = numbers.len() as u32;
        kind(step).map(|kind| *numbers.entry(kind).or_insert(next))
    };
    let kinds: Vec<Option<u32>> = steps.iter().map(&mut number_of).collect();
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
    steps: &'a [Step],
}

impl Finder<'_> {
    /// Whether a step reads what the step one turn before reads, in its own turn.
    fn is_steady(&self, first: usize, period: usize, at: usize) -> bool {
        let pairs = self.steps[at].args.iter().zip(&self.steps[at - period].args);
        pairs.into_iter().all(|pair| match pair {
            (Source::Step(now), Source::Step(before)) | (Source::Aside(now), Source::Aside(before)) => {
                let (now, before) = (*now as usize, *before as usize);
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
        let mut arrays = self.steps[first..first + period].iter().filter(|step| !step.is_number());
        let shape = &arrays.next()?.meta.shape;
        let is_one_shape = arrays.all(|step| step.meta.shape == *shape) && shape.elements() > 1;
        (is_one_shape && turns.turns >= TURNS_MIN && !turns.carried.is_empty()).then_some(turns)
    }

    /// The places of the values that a turn which begins at `begin` reads of the turn before, in a loop that begins at
    /// `first`; `None` if an aside is among them, or the turn reads values of an earlier turn.
    fn carried(&self, first: usize, begin: usize, period: usize) -> Option<Vec<usize>> {
        let mut carried = Vec::new();
        for source in self.steps.get(begin..begin + period)?.iter().flat_map(|step| &step.args) {
            let (Source::Step(from) | Source::Aside(from)) = *source else { continue };
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
}

impl Step {
    /// Whether it is a number in some shape.
    fn is_number(&self) -> bool {
        matches!(&self.made, Made::Op(op) if op.is_number())
    }
}
