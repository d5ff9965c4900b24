//! Reverse mode through a loop of elementwise ops: the loop is taken in chunks of some turns, the last chunk first.
//!
//! A chunk records its turns again, from the values that they carry at its beginning, and right behind them their backward
//! pass. Both are one block of the tape (`Node::block`), so that one kernel computes them, and memory holds the carried
//! values at the beginnings of chunks, not those of every turn. Random numbers are drawn again. Chunks of one size give
//! kernels of one structure.
//!
//! In: the steps of a watch, one of its loops, what arrived at values of the loop. Out: what arrives at the values that the
//! loop reads. Must hold: CHUNK-1: a turn that is recorded again has the bits of the first time. CHUNK-2: of the first pass,
//! only values that are carried into a chunk, or into the first one of a group of chunks, are read: O(sqrt(turns)) of them.
//! CHUNK-3: what arrives at a value from before the loop is added over the turns in the loop's shape, from the last turn to
//! the first, and summed once.

use super::log::{Leading, Made, Source, Step};
use super::pull::Steps;
use super::turns::Turns;
use crate::array::handle::Array;
use crate::array::record::{Input, node};
use crate::array::recorder::Recorder;
use crate::error::Result;
use crate::graph::Meta;
use crate::graph::table::Expr;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Most ops of a chunk, less than the most nodes of a block (`scheduler/blocks.rs`): the estimate may be short by some.
const CHUNK_OPS_MAX: usize = 448;
/// Fewest turns of a chunk. With fewer, chunks read and write as much as a backward pass without chunks does.
const CHUNK_TURNS_MIN: usize = 3;
/// Chunks from which on they are grouped: of a group, only the values at its beginning are kept of the first pass.
const CHUNKS_APART_MAX: usize = 40;
/// Longest chain of ops before the loop that is recorded again where no handle of its value is kept.
const CHAIN_MAX: usize = 32;

/// Arrays by the steps that they are values of.
type Values = FxHashMap<usize, Array>;

/// A loop that is pulled.
struct Walk<'a> {
    steps: &'a Steps,
    /// All steps of the watch, by number.
    all: &'a [Step],
    turns: &'a Turns,
    /// The values from before the loop that turns read.
    outside: Values,
    /// The carried values to which cotangents pass, by their places.
    passing: Vec<bool>,
}

/// Pulls the cotangents that arrived at values of a loop to what the loop reads. Returns false, having recorded nothing of
/// the backward pass, where the loop cannot be pulled in chunks.
pub(super) fn pull(steps: &Steps, all: &[Step], turns: &Turns, arrived: &mut FxHashMap<u32, Array>) -> Result<bool> {
    let Some(per_turn) = ops_of_a_turn(all, turns).filter(|ops| CHUNK_TURNS_MIN * ops <= CHUNK_OPS_MAX) else {
        return Ok(false);
    };
    let (passing, sums) = reached(all, turns, arrived);
    let Some(sums) = sums else { return Ok(false) };
    let chunks = Chunks::of(turns.turns, CHUNK_OPS_MAX / per_turn);
    let starts = chunks.groups().map(|group| chunks.begin(*group.last().unwrap_or(&0)));
    let has_state = |turn: usize| turns.carried_into(turn).all(|step| all[step].value.is_some());
    if !starts.clone().all(has_state) {
        return Ok(false);
    }
    let mut walk = Walk { steps, all, turns, outside: Values::default(), passing };
    if !walk.find_outside()? {
        return Ok(false);
    }
    walk.pull(&chunks, sums, arrived)?;
    Ok(true)
}

/// Chunks of turns, the last one first. All but the earliest have the same number of turns.
struct Chunks {
    turns: usize,
    length: usize,
    /// Chunks of a group.
    grouped: usize,
}

impl Chunks {
    /// Chunks of at most `most` turns: of as many that the earliest chunk is short.
    fn of(turns: usize, most: usize) -> Chunks {
        let most = most.clamp(1, turns);
        let least = (most - most / 4).max(1);
        let length = (least..=most).rev().min_by_key(|length| turns % length).unwrap_or(most);
        let count = turns.div_ceil(length);
        let grouped = if count <= CHUNKS_APART_MAX { 1 } else { count.isqrt() };
        Chunks { turns, length, grouped }
    }

    fn count(&self) -> usize {
        self.turns.div_ceil(self.length)
    }

    /// The first turn of a chunk.
    fn begin(&self, chunk: usize) -> usize {
        self.turns.saturating_sub((chunk + 1) * self.length)
    }

    /// One past the last turn of a chunk.
    fn end(&self, chunk: usize) -> usize {
        self.turns - chunk * self.length
    }

    /// Groups of chunks, the last ones first.
    fn groups(&self) -> impl Iterator<Item = Vec<usize>> + Clone + '_ {
        let firsts = (0..self.count()).step_by(self.grouped);
        firsts.map(|first| (first..(first + self.grouped).min(self.count())).collect())
    }
}

/// About how many ops a turn and its backward pass take; `None` where a derivative passes through an op that has none.
fn ops_of_a_turn(all: &[Step], turns: &Turns) -> Option<usize> {
    let mut ops = turns.period;
    for step in all[turns.first..turns.begin(1)].iter().filter(|step| !step.is_aside) {
        let Made::Op(op) = &step.made else { return None };
        for (slot, part) in op.partials().iter().enumerate() {
            let is_followed = matches!(step.args.get(slot), Some(Source::Step(_)));
            if is_followed && op.passes_to(slot) {
                ops += 2 + ops_in(part);
            }
        }
    }
    Some(ops)
}

fn ops_in(part: &Expr) -> usize {
    match part {
        Expr::Arg(_) | Expr::Out | Expr::Constant(_) => 0,
        Expr::Apply(_, parts) => 1 + parts.iter().map(ops_in).sum::<usize>(),
    }
}

/// The carried values that cotangents reach, and for each value from before the loop that they reach the dtype and shape in
/// which they are added; `None` for the latter where these differ.
fn reached(all: &[Step], turns: &Turns, arrived: &FxHashMap<u32, Array>) -> (Vec<bool>, Option<BTreeMap<usize, Meta>>) {
    let period = turns.period;
    let place_of = |step: usize| (step - turns.first) % period;
    // Places of a turn that are reached, by readers in the same turn, in the next one or behind the loop.
    let mut places = vec![false; period];
    for &step in arrived.keys().filter(|step| turns.range().contains(&(**step as usize))) {
        places[place_of(step as usize)] = true;
    }
    let mut sums: BTreeMap<usize, Meta> = BTreeMap::new();
    let mut agree = true;
    loop {
        let before = places.clone();
        for place in (0..period).rev().filter(|place| before[*place]) {
            // The second turn, whose arguments lie in the loop or before it.
            let at = turns.begin(1) + place;
            let Made::Op(op) = &all[at].made else { continue };
            for (_, source) in all[at].args.iter().enumerate().filter(|(slot, _)| op.passes_to(*slot)) {
                let Source::Step(from) = *source else { continue };
                match turns.is_outside(from as usize) {
                    true => {
                        let meta = sums.entry(from as usize).or_insert_with(|| all[at].meta.clone());
                        agree &= *meta == all[at].meta;
                    }
                    false => places[place_of(from as usize)] = true,
                }
            }
        }
        if places == before {
            break;
        }
    }
    let passing = turns.carried.iter().map(|&place| places[place] && all[turns.first + place].meta.dtype.is_float());
    (passing.collect(), agree.then_some(sums))
}

impl Walk<'_> {
    fn recorder(&self, step: &Step) -> Recorder<'_> {
        Recorder { home: &self.steps.home, at: step.at.location }
    }

    /// Names the values from before the loop; false where one can be neither named nor recorded again.
    fn find_outside(&mut self) -> Result<bool> {
        let turn = &self.all[self.turns.begin(1)..self.turns.begin(2)];
        let sources = turn.iter().flat_map(|step| &step.args).filter_map(|source| match source {
            Source::Step(from) | Source::Aside(from) => Some(*from as usize),
            Source::Read(_) | Source::Unread(_) | Source::Number(_) => None,
        });
        let outside: FxHashSet<usize> = sources.filter(|from| self.turns.is_outside(*from)).collect();
        let mut outside: Vec<usize> = outside.into_iter().collect();
        outside.sort_unstable();
        if !outside.iter().all(|&step| self.can_be_named(step, CHAIN_MAX)) {
            return Ok(false);
        }
        for step in outside {
            let array = self.named(step)?;
            self.outside.insert(step, array);
        }
        Ok(true)
    }

    /// Whether a value from before the loop has a handle, or can be recorded again.
    fn can_be_named(&self, number: usize, chain: usize) -> bool {
        let step = &self.all[number];
        step.value.is_some()
            || chain > 0
                && step.is_elementwise()
                && step.args.iter().all(|source| match source {
                    Source::Step(from) | Source::Aside(from) => self.can_be_named(*from as usize, chain - 1),
                    Source::Read(_) | Source::Number(_) => true,
                    Source::Unread(_) => false,
                })
    }

    fn named(&self, number: usize) -> Result<Array> {
        let step = &self.all[number];
        if let Some(value) = &step.value {
            return Ok(value.clone());
        }
        let mut values = Values::default();
        for source in &step.args {
            if let Source::Step(from) | Source::Aside(from) = *source {
                values.insert(from as usize, self.named(from as usize)?);
            }
        }
        self.again(step, &values)
    }

    /// Records the op of a step again, on these values.
    fn again(&self, step: &Step, values: &Values) -> Result<Array> {
        let Made::Op(op) = &step.made else { return Err(step.undefined()) };
        let inputs: SmallVec<[Input<'_>; 3]> = step
            .args
            .iter()
            .filter_map(|source| match source {
                Source::Step(from) | Source::Aside(from) => {
                    let from = *from as usize;
                    values.get(&from).or_else(|| self.outside.get(&from)).map(Input::Array)
                }
                Source::Read(array) => Some(Input::Array(array)),
                Source::Number(number) => Some(Input::Number(*number)),
                Source::Unread(_) => None,
            })
            .collect();
        assert_eq!(inputs.len(), step.args.len(), "TURNS-2: each argument of a turn can be named");
        node(&self.steps.home, op.clone(), &inputs, step.meta.clone(), step.at.location).checked()
    }

    /// The carried values with which a turn begins, as the first pass computed them.
    fn state(&self, turn: usize) -> Values {
        let value = |step: usize| self.all[step].value.clone().map(|value| (step, value));
        self.turns.carried_into(turn).filter_map(value).collect()
    }

    /// Records turns again, from the carried values with which they begin. Returns all values of these turns.
    fn forward(&self, chunk: (usize, usize), state: &Values) -> Result<Values> {
        let mut values = state.clone();
        for number in self.turns.begin(chunk.0)..self.turns.begin(chunk.1) {
            let array = self.again(&self.all[number], &values)?;
            values.insert(number, array);
        }
        Ok(values)
    }

    fn pull(&self, chunks: &Chunks, sums: BTreeMap<usize, Meta>, arrived: &mut FxHashMap<u32, Array>) -> Result<()> {
        let last = &self.all[self.turns.begin(self.turns.turns) - 1];
        let r = self.recorder(last);
        let mut totals: BTreeMap<usize, Array> = BTreeMap::new();
        for (step, meta) in sums {
            totals.insert(step, r.zeros(meta)?);
        }
        // What arrived at the values that leave the last turn. Each chunk begins with one cotangent for each carried value
        // that any reaches, so that chunks have one structure.
        let mut above = Values::default();
        for (step, passes) in self.turns.carried_into(self.turns.turns).zip(&self.passing) {
            let cotangent = arrived.remove(&(step as u32));
            if *passes {
                let cotangent = cotangent.map_or_else(|| r.zeros(self.all[step].meta.clone()), Ok)?;
                above.insert(step, cotangent);
            }
        }
        let home = self.steps.home.clone();
        for group in chunks.groups() {
            // The carried values at the beginnings of the group's chunks, the earliest chunk first.
            let first = group.last().map_or(0, |&chunk| chunks.begin(chunk));
            let mut states = vec![self.state(first)];
            for &chunk in group.iter().skip(1).rev() {
                let _block = home.block();
                let turns = (chunks.begin(chunk), chunks.end(chunk));
                let values = self.forward(turns, &states[states.len() - 1])?;
                let is_carried = |step: usize| values.get(&step).map(|value| (step, value.clone()));
                states.push(self.turns.carried_into(turns.1).filter_map(is_carried).collect());
            }
            for &chunk in &group {
                let _block = home.block();
                let turns = (chunks.begin(chunk), chunks.end(chunk));
                let Some(state) = states.pop() else { break };
                let values = self.forward(turns, &state)?;
                above = self.backward(turns, values, above, &mut totals, arrived)?;
            }
        }
        let is_known = |step: usize| self.steps.find(step as u32).is_some();
        for (step, cotangent) in above.into_iter().filter(|(step, _)| is_known(*step)) {
            self.steps.add(arrived, step as u32, cotangent)?;
        }
        for (step, total) in totals.into_iter().rev().filter(|(step, _)| is_known(*step)) {
            let meta = &self.all[step].meta;
            let share = r.cast(&r.sum_to(&total, &meta.shape)?, meta.dtype)?;
            self.steps.add(arrived, step as u32, share)?;
        }
        Ok(())
    }

    /// The backward pass of turns: from the cotangents of what they leave to those of what they begin with. Adds what arrives
    /// at values from before the loop to `totals`.
    fn backward(
        &self,
        (begin, end): (usize, usize),
        values: Values,
        above: Values,
        totals: &mut BTreeMap<usize, Array>,
        arrived: &mut FxHashMap<u32, Array>,
    ) -> Result<Values> {
        let steps = self.steps_of((begin, end), &values);
        let mut local: FxHashMap<u32, Array> = above.into_iter().map(|(step, array)| (step as u32, array)).collect();
        for number in (self.turns.begin(begin)..self.turns.begin(end)).rev() {
            let step = steps.get(number as u32);
            let Made::Op(op) = &step.made else { continue };
            let (outer, inner) = (arrived.remove(&(number as u32)), local.remove(&(number as u32)));
            let r = self.recorder(step);
            let cotangent = match (outer, inner) {
                (Some(outer), Some(inner)) => r.add(&outer, &inner)?,
                (Some(one), None) | (None, Some(one)) => one,
                (None, None) => continue,
            };
            let shares = steps.shares(step, op, &cotangent).map_err(|error| step.named(error))?;
            for (slot, share) in shares {
                let Source::Step(from) = step.args[slot] else { continue };
                if self.turns.is_outside(from as usize) {
                    let total = r.added(totals.remove(&(from as usize)), share)?;
                    totals.insert(from as usize, total);
                } else {
                    steps.add(&mut local, from, share)?;
                }
            }
        }
        let mut next = Values::default();
        for (step, passes) in self.turns.carried_into(begin).zip(&self.passing) {
            if *passes {
                let r = self.recorder(&self.all[step]);
                let cotangent = local.remove(&(step as u32));
                next.insert(step, cotangent.map_or_else(|| r.zeros(self.all[step].meta.clone()), Ok)?);
            }
        }
        Ok(next)
    }

    /// The steps of some turns and of what they read, with the values that were recorded again.
    fn steps_of(&self, (begin, end): (usize, usize), values: &Values) -> Steps {
        let leading = |number: usize, value: Option<Array>| {
            let step = Step { value, ..self.all[number].clone() };
            Leading { number: number as u32, step, passes: true }
        };
        let mut outside: Vec<usize> = self.outside.keys().copied().collect();
        outside.sort_unstable();
        let outside = outside.into_iter().map(|number| leading(number, self.outside.get(&number).cloned()));
        let mut before: Vec<usize> = self.turns.carried_into(begin).collect();
        before.sort_unstable();
        let inside = before.into_iter().chain(self.turns.begin(begin)..self.turns.begin(end));
        let inside = inside.map(|number| leading(number, values.get(&number).cloned()));
        Steps {
            home: self.steps.home.clone(),
            steps: outside.chain(inside).collect(),
            sums_later_below: (self.turns.first - self.turns.period) as u32,
        }
    }
}
