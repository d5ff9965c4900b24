//! Reverse mode through a loop of elementwise ops: the loop is taken in chunks of some turns, the last chunk first.
//!
//! A chunk records its turns again, from the values that they carry at its beginning, and right behind them their backward
//! pass. Both are one block of the tape (`Node::block`), so that one kernel computes them, and memory holds the carried
//! values at the beginnings of chunks, not those of every turn. Random numbers are drawn again. Chunks of one size give
//! kernels of one structure.
//!
//! In: the steps of a watch, one of its loops, what arrived at values of the loop. Out: what arrives at the values that the
//! loop reads. Must hold: CHUNK-1: a turn that is recorded again has the bits of the first time. CHUNK-2: of the first pass,
//! only values that are carried into a chunk, or into the first one of a group of chunks, are read, O(sqrt(turns)) of them, and
//! arrays that the turns read and that do not depend on what is watched.
//! CHUNK-3: what arrives at a value from before the loop is added over the turns in the loop's shape, from the last turn to
//! the first, and summed once.

use super::pull::{Arrived, Steps, Values};
use super::step::{Made, Source, Step};
use super::turns::Turns;
use crate::array::handle::Array;
use crate::array::record::{Input, node};
use crate::array::recorder::Recorder;
use crate::error::Result;
use crate::graph::table::Expr;
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Most ops of a chunk, less than the most nodes of a block (`scheduler/blocks.rs`): the estimate may be short by some.
const CHUNK_OPS_MAX: usize = 448;
/// Fewest turns of a chunk. With fewer, chunks read and write as much as a backward pass without chunks does.
const CHUNK_TURNS_MIN: usize = 3;
/// Chunks from which on they are grouped: of a group, only the values at its beginning are kept of the first pass.
const CHUNKS_APART_MAX: usize = 40;
/// Most turns at the beginning of a loop that are left out.
const SKIPPED_MAX: usize = 8;
/// Longest chain of ops before the loop that is recorded again where no handle of its value is kept.
const CHAIN_MAX: usize = 32;

/// A loop that is pulled.
struct Walk<'a> {
    steps: &'a Steps,
    turns: &'a Turns,
    /// The values from before the loop that turns read, and those of which these were recorded again.
    outside: Values,
}

/// Pulls the cotangents that arrived at values of a loop to what the loop reads, from the last turn at which one arrived.
/// Returns false, having pulled nothing, where the loop cannot be pulled in chunks.
pub(super) fn pull(steps: &Steps, turns: &Turns, arrived: &mut Arrived) -> Result<bool> {
    let per_turn = ops_of_a_turn(steps, turns);
    let Some(last) = arrived.keys().filter_map(|step| turns.turn_of(*step as usize)).max() else { return Ok(false) };
    if CHUNK_TURNS_MIN * per_turn > CHUNK_OPS_MAX {
        return Ok(false);
    }
    // The first turns of a loop, whose values a watch does not keep yet, are left to the ordinary way.
    let has_state = |turn: usize| turns.carried_into(turn).all(|step| steps.log.keeps(step as u32));
    let Some(skipped) = (0..=last).take(SKIPPED_MAX).find(|&turn| has_state(turn)) else { return Ok(false) };
    let chunks = Chunks::of(last + 1 - skipped, CHUNK_OPS_MAX / per_turn);
    if !chunks.groups().all(|group| has_state(skipped + chunks.begin_of(&group))) {
        return Ok(false);
    }
    let turns = &Turns { first: turns.begin(skipped), turns: last + 1 - skipped, ..turns.clone() };
    let mut walk = Walk { steps, turns, outside: Values::default() };
    if !walk.find_outside()? {
        return Ok(false);
    }
    walk.pull(&chunks, arrived)?;
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
    /// Chunks of at most `most` turns, and of at least three quarters of that: the length of which the turns are nearly a
    /// multiple, so that the earliest chunk is short.
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

    /// The first turn of a group of chunks.
    fn begin_of(&self, group: &[usize]) -> usize {
        group.last().map_or(0, |&chunk| self.begin(chunk))
    }

    /// One past the last turn of a chunk.
    fn end(&self, chunk: usize) -> usize {
        self.turns - chunk * self.length
    }

    /// Groups of chunks, the last ones first.
    fn groups(&self) -> impl Iterator<Item = Vec<usize>> + '_ {
        let firsts = (0..self.count()).step_by(self.grouped);
        firsts.map(|first| (first..(first + self.grouped).min(self.count())).collect())
    }
}

/// About how many ops a turn and its backward pass take.
fn ops_of_a_turn(steps: &Steps, turns: &Turns) -> usize {
    let mut ops = turns.period;
    for step in (turns.first..turns.begin(1)).map(|step| steps.get(step as u32)).filter(|step| !step.is_aside) {
        let Made::Op(op) = &step.made else { continue };
        for (slot, part) in op.partials().iter().enumerate() {
            let is_followed = matches!(step.args.get(slot).map(|argument| argument.source), Some(Source::Step(_)));
            if is_followed && op.passes_to(slot) {
                ops += 2 + ops_in(part);
            }
        }
    }
    ops
}

fn ops_in(part: &Expr) -> usize {
    match part {
        Expr::Arg(_) | Expr::Out | Expr::Constant(_) => 0,
        Expr::Apply(_, parts) => 1 + parts.iter().map(ops_in).sum::<usize>(),
    }
}

impl Walk<'_> {
    fn recorder(&self, step: &Step) -> Recorder<'_> {
        Recorder { home: &self.steps.home, at: step.at.location }
    }

    /// Names the values from before the loop; false where one can be neither named nor recorded again.
    fn find_outside(&mut self) -> Result<bool> {
        let turn = (self.turns.first..self.turns.begin(1)).map(|step| self.steps.get(step as u32));
        let sources = turn.flat_map(|step| step.args).filter_map(|argument| argument.source.step());
        let sources = sources.map(|step| step as usize);
        let outside: FxHashSet<usize> = sources.filter(|from| self.turns.is_outside(*from)).collect();
        let mut outside: Vec<usize> = outside.into_iter().collect();
        outside.sort_unstable();
        for step in outside {
            if !self.name(step, CHAIN_MAX)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Puts a value from before the loop into `outside`: its handle, or what it is recorded again as, by a chain of at most
    /// `chain` ops. Returns false where neither can be had.
    fn name(&mut self, number: usize, chain: usize) -> Result<bool> {
        if self.outside.contains_key(&number) {
            return Ok(true);
        }
        let step = &self.steps.get(number as u32);
        if let Some(value) = &step.value {
            self.outside.insert(number, value.clone());
            return Ok(true);
        }
        if chain == 0 || step.is_pinned || !step.is_elementwise() {
            return Ok(false);
        }
        for argument in &step.args {
            let is_named = match argument.source {
                Source::Step(from) | Source::Aside(from) => self.name(from as usize, chain - 1)?,
                Source::Read(_) | Source::Number(_) => true,
                Source::Unread => false,
            };
            if !is_named {
                return Ok(false);
            }
        }
        let array = self.again(step, &Values::default())?;
        self.outside.insert(number, array);
        Ok(true)
    }

    /// Records the op of a step again, on these values.
    fn again(&self, step: &Step, values: &Values) -> Result<Array> {
        let Made::Op(op) = &step.made else { return Err(step.undefined()) };
        let inputs: SmallVec<[Input<'_>; 3]> = step
            .args
            .iter()
            .filter_map(|argument| match argument.source {
                Source::Step(from) | Source::Aside(from) => {
                    let from = from as usize;
                    values.get(&from).or_else(|| self.outside.get(&from)).map(Input::Array)
                }
                Source::Read(_) => argument.array.as_ref().map(Input::Array),
                Source::Number(number) => Some(Input::Number(number)),
                Source::Unread => None,
            })
            .collect();
        assert_eq!(inputs.len(), step.args.len(), "TURNS-2: each argument of a turn can be named");
        node(&self.steps.home, op.clone(), &inputs, step.meta.clone(), step.at.location).checked()
    }

    /// The carried values with which a turn begins, as the first pass computed them.
    fn state(&self, turn: usize) -> Values {
        let value = |step: usize| self.steps.log.value(step as u32).map(|value| (step, value));
        self.turns.carried_into(turn).filter_map(value).collect()
    }

    /// Records turns again, from the carried values with which they begin. Returns all values of these turns.
    fn forward(&self, chunk: (usize, usize), state: &Values) -> Result<Values> {
        let mut values = state.clone();
        for number in self.turns.begin(chunk.0)..self.turns.begin(chunk.1) {
            let array = self.again(&self.steps.get(number as u32), &values)?;
            values.insert(number, array);
        }
        Ok(values)
    }

    fn pull(&self, chunks: &Chunks, arrived: &mut Arrived) -> Result<()> {
        let mut totals: BTreeMap<usize, Array> = BTreeMap::new();
        // What arrived at the values that leave the last turn. A carried value at which nothing arrived has no cotangent,
        // rather than zeros: a zero times an infinite derivative would be NaN.
        let leaving = self.turns.carried_into(self.turns.turns);
        let mut above: Values =
            leaving.filter_map(|step| arrived.remove(&(step as u32)).map(|cotangent| (step, cotangent))).collect();
        let home = self.steps.home.clone();
        for group in chunks.groups() {
            // The carried values at the beginnings of the group's chunks, the earliest chunk first.
            let mut states = vec![self.state(chunks.begin_of(&group))];
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
        let mut above: Vec<(usize, Array)> = above.into_iter().collect();
        above.sort_unstable_by_key(|(step, _)| std::cmp::Reverse(*step));
        for (step, cotangent) in above {
            self.steps.add(arrived, step as u32, cotangent)?;
        }
        for (step, total) in totals.into_iter().rev() {
            let of = self.steps.get(step as u32);
            let sum = self.recorder(&of).sum_to(&total, &of.meta.shape)?;
            self.steps.add(arrived, step as u32, sum)?;
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
        arrived: &mut Arrived,
    ) -> Result<Values> {
        let steps = self.steps_of(values);
        let mut local: Arrived = above.into_iter().map(|(step, array)| (step as u32, array)).collect();
        for number in (self.turns.begin(begin)..self.turns.begin(end)).rev() {
            let step = &steps.get(number as u32);
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
                let Source::Step(from) = step.args[slot].source else { continue };
                if self.turns.is_outside(from as usize) {
                    let of = self.steps.get(from);
                    if !of.meta.dtype.is_float() {
                        return Err(of.undefined());
                    }
                    let share = r.cast(&share, of.meta.dtype)?;
                    let total = r.added(totals.remove(&(from as usize)), share)?;
                    totals.insert(from as usize, total);
                } else {
                    steps.add(&mut local, from, share)?;
                }
            }
        }
        let entering = self.turns.carried_into(begin);
        Ok(entering.filter_map(|step| local.remove(&(step as u32)).map(|cotangent| (step, cotangent))).collect())
    }

    /// The steps with the values that were recorded again, and no others.
    fn steps_of(&self, mut values: Values) -> Steps {
        values.extend(self.outside.iter().map(|(step, array)| (*step, array.clone())));
        Steps {
            home: self.steps.home.clone(),
            log: self.steps.log.clone(),
            values: Some(values),
            sums_later_below: (self.turns.first - self.turns.period) as u32,
        }
    }
}
