//! Finds the loops of a program that can each be one kernel.
//!
//! In: the nodes of one region, in tape order. Out: runs of whole turns of one body (`Region::turns`). Must hold:
//! LOOP-1: each node of such a run equals the node in its place one turn later, except for its numbers and random keys.
//! Both read the same node of their own turn, or of the turn before (a carried value; the first turn reads a value from
//! outside in its place), or the same value from outside. LOOP-2: only carried values are visible outside, and only
//! those of the last turn. LOOP-3: the result depends on the nodes and on the device's numbers alone.
//!
//! A body is found where a statement is recorded again (`Site`): the distance is the length of the body if all
//! following nodes repeat at that distance, too.

mod why;

use super::cut::{Cut, CutNode, Dep};
use super::state::State;
use crate::contract::costs::LOOP_WORK_MAX;
use crate::contract::device::DeviceInfo;
use crate::graph::repeats::{Limits, Repeats, Stretch};
use crate::graph::words::Words;
use crate::graph::{Arg, DType, Meta, Node};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};
use why::Hindrance;

/// Fewest nodes of a loop that becomes a kernel of its own: as many as four ordinary kernels hold. A loop's kernel
/// reads its initial values from memory, and ops on its result are left to another kernel.
const LOOP_NODES_MIN: usize = 256;
/// Fewest nodes of a part of a loop with more nodes, of which a value is visible every few turns: the parts have one
/// kernel, and ordinary kernels would end at other turns each time.
const PART_NODES_MIN: usize = 32;
/// Turns of a loop, at the least.
const TURNS_MIN: usize = 4;
/// Most nodes of a body, limited by a kernel's registers and by the time that a driver takes to compile it.
pub(super) const BODY_NODES_MAX: usize = 256;
/// Most values that go from turn to turn, limited by registers.
const CARRIES_MAX: usize = 8;
/// Most nodes of a loop's region. Each turn has some words of parameters, and a region starts only after all of it is
/// recorded.
const LOOP_NODES_MAX: usize = 16_384;
/// Earlier places of a statement at which a body is looked for.
const PLACES_MAX: usize = 16;

/// Some turns of a loop, by positions among the nodes that are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loop {
    /// Its first node.
    pub first: usize,
    /// Nodes per turn.
    pub period: usize,
    /// Turns.
    pub turns: usize,
}

impl Loop {
    /// One past its last node.
    pub fn end(&self) -> usize {
        self.first + self.period * self.turns
    }
}

/// An argument of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
enum LoopArg {
    /// A node among those that are searched, by position.
    Node(usize),
    /// A value from elsewhere.
    Outside(Dep),
    /// A number, whose dtype, and value where planning looks at it, is in the node's kind.
    Number,
}

/// A node of the region, as the search for loops sees it.
#[derive(Debug)]
struct Candidate<'a> {
    meta: &'a Meta,
    args: SmallVec<[LoopArg; 3]>,
    /// A number for all that must be equal between turns. `None` if the node cannot be in a loop.
    kind: Option<u32>,
    /// A number in some shape.
    is_number: bool,
    /// Where it was recorded: the mark, the line and the column.
    place: (u64, u32, u32),
    /// The last node that reads it, if all its readers are among these nodes and it is not visible outside.
    last_user: Option<usize>,
}

/// Looks for loops among nodes.
struct Finder<'a> {
    nodes: Vec<Candidate<'a>>,
    device: &'a DeviceInfo,
    meta_of: &'a dyn Fn(Dep) -> &'a Meta,
}

impl State {
    /// The loops among `portion` (positions in a cut, in tape order), in order.
    pub(super) fn loops(&self, cut: &Cut, portion: &[u32], device: &DeviceInfo) -> Vec<Loop> {
        if portion.len() < LOOP_NODES_MIN || self.never_rolls {
            return Vec::new();
        }
        let meta_of = |dep: Dep| self.meta_of(cut, dep);
        let finder = Finder { nodes: self.candidates(cut, portion), device, meta_of: &meta_of };
        finder.loops()
    }

    fn candidates<'a>(&'a self, cut: &Cut, portion: &[u32]) -> Vec<Candidate<'a>> {
        // Positions in a portion ascend; what lies before its first one is from outside.
        let begin = portion.first().map_or(0, |&position| position as usize);
        let end = portion.last().map_or(0, |&position| position as usize + 1);
        let mut places = vec![None; end - begin];
        let mut kinds: FxHashMap<Kind, u32> = FxHashMap::default();
        let mut all: Vec<Candidate<'a>> = Vec::with_capacity(portion.len());
        let mut users: Vec<(u32, usize)> = vec![(0, 0); portion.len()];
        for (number, &position) in portion.iter().enumerate() {
            places[position as usize - begin] = Some(number);
            let place_of = |p: u32| places.get((p as usize).checked_sub(begin)?).copied().flatten();
            let from = &cut.nodes[position as usize];
            let node = &self.graph[from.at].node;
            let mut args = SmallVec::new();
            for arg in &node.args {
                args.push(match *arg {
                    Arg::Scalar(_) => LoopArg::Number,
                    Arg::Value(value) => {
                        let is_it = |dep: &&Dep| self.graph[cut.entry(**dep)].node.value == value;
                        match *from.deps.iter().find(is_it).expect("SCHED-1: every argument was visited") {
                            dep @ Dep::Node(p) => place_of(p).map_or(LoopArg::Outside(dep), LoopArg::Node),
                            dep @ Dep::Input(_) => LoopArg::Outside(dep),
                        }
                    }
                });
            }
            for dep in &from.deps {
                if let Dep::Node(p) = *dep
                    && let Some((count, last)) = place_of(p).map(|place| &mut users[place])
                {
                    (*count, *last) = (*count + 1, number);
                }
            }
            let next = kinds.len() as u32;
            let kind = kind(node, |arg| self.dtype_of(cut, from, arg));
            let kind = kind.map(|words| *kinds.entry(words).or_insert(next));
            let place = (node.at.mark, node.at.location.line(), node.at.location.column());
            let is_number = node.op.is_number();
            all.push(Candidate { meta: &node.meta, args, kind, is_number, place, last_user: None });
        }
        for ((candidate, &position), (count, last)) in all.iter_mut().zip(portion).zip(users) {
            let from = &cut.nodes[position as usize];
            let live = &self.graph[from.at];
            let is_seen = from.root || live.held || live.users != count;
            candidate.last_user = (!is_seen).then_some(last);
        }
        all
    }

    fn dtype_of(&self, cut: &Cut, from: &CutNode, arg: &Arg) -> DType {
        match *arg {
            Arg::Scalar(scalar) => scalar.dtype(),
            Arg::Value(value) => {
                let mut entries = from.deps.iter().map(|&dep| &self.graph[cut.entry(dep)].node);
                entries.find(|node| node.value == value).map_or(DType::Bool, |node| node.meta.dtype)
            }
        }
    }
}

/// The words by which nodes are compared.
type Kind = SmallVec<[u64; 16]>;

/// All that must be equal between turns: a node without its arguments, its random key and the numbers that planning
/// does not look at. `None` for ops that read other elements than the one that they compute, that reduce, or that
/// check.
fn kind(node: &Node, dtype_of: impl Fn(&Arg) -> DType) -> Option<Kind> {
    if !node.op.is_elementwise() {
        return None;
    }
    let facts = node.op.facts();
    let mut kind = Kind::new();
    let mut words = Words(&mut kind);
    (node.at.location as *const _ as usize as u64, node.at.mark).hash(&mut words);
    node.op.hash_attributes(&mut words);
    (node.meta.dtype, &node.meta.shape, node.args.len() as u64).hash(&mut words);
    let is_blind = facts.scalars.are_parameters(node.args.iter().map(&dtype_of));
    for arg in &node.args {
        match arg {
            Arg::Value(_) => words.write_u64(0),
            Arg::Scalar(scalar) => {
                let number = (!is_blind).then(|| scalar.bits());
                (1u64, scalar.dtype(), number).hash(&mut words);
            }
        }
    }
    Some(kind)
}

impl Finder<'_> {
    fn loops(&self) -> Vec<Loop> {
        let limits = Limits { period_max: BODY_NODES_MAX, places_max: PLACES_MAX, least: |period| TURNS_MIN * period };
        let mut found = Vec::new();
        for Stretch { first, period, end } in self.repeats().stretches(&limits) {
            self.divide(first, period, end, &mut found);
        }
        found
    }

    /// The nodes, as a sequence in which bodies come again (LOOP-1).
    fn repeats(&self) -> Repeats<impl Fn(usize) -> Option<u32>, impl Fn(usize, usize, usize) -> bool> {
        Repeats {
            count: self.nodes.len(),
            kind: |n: usize| self.nodes[n].kind,
            is_steady: |first: usize, period: usize, at: usize| self.is_steady(first, period, at),
        }
    }

    /// Whether a node reads what the node one turn before reads, in its own turn.
    fn is_steady(&self, first: usize, period: usize, at: usize) -> bool {
        let pairs = self.nodes[at].args.iter().zip(&self.nodes[at - period].args);
        pairs.into_iter().all(|pair| match pair {
            (LoopArg::Node(now), LoopArg::Node(before)) => {
                let moves = *now == before + period && at - now <= period;
                moves || (now == before && *now < first)
            }
            (now, before) => now == before,
        })
    }

    /// Finds the loops in a run of equal bodies. A loop starts where the fewest values are carried, and ends before a
    /// value that is not carried is visible outside.
    fn divide(&self, first: usize, period: usize, end: usize, found: &mut Vec<Loop>) {
        let least = if end - first >= LOOP_NODES_MIN { PART_NODES_MIN } else { LOOP_NODES_MIN };
        let mut first = first + self.phase(first + period, period);
        while first + TURNS_MIN * period <= end {
            match self.longest(first, period, (end - first) / period) {
                Some(turns) => {
                    let part = Loop { first, period, turns };
                    if period * turns >= least {
                        found.push(part);
                    }
                    first = part.end();
                }
                None => first += period,
            }
        }
    }

    /// Where in a body a turn begins, so that it carries least; of several such places, at the first one in the program's
    /// text, wherever the run begins.
    fn phase(&self, start: usize, period: usize) -> usize {
        // A value is carried past each place between itself and its last reader, which is at most a turn behind it.
        let mut carried = vec![0i32; 2 * period + 1];
        for from in start..start + period {
            let reads = |at: &usize| self.nodes[*at].args.contains(&LoopArg::Node(from));
            if let Some(last) = (from + 1..=from + period).rev().find(reads) {
                // The value is live from the place behind its own node up to its last reader.
                carried[from + 1 - start] += 1;
                carried[last + 1 - start] -= 1;
            }
        }
        let mut alive = 0;
        let mut at_place = vec![0i32; period];
        for (place, change) in carried.iter().take(2 * period).enumerate() {
            alive += change;
            at_place[place % period] += alive;
        }
        let cost = |&place: &usize| (at_place[place], self.nodes[start + place].place, place);
        (0..period).min_by_key(cost).unwrap_or(0)
    }

    /// How many turns from `first` on are a loop (LOOP-1, LOOP-2), at most.
    fn longest(&self, first: usize, period: usize, most: usize) -> Option<usize> {
        let carries = self.body(first, period).ok()?;
        let elements = self.nodes[first + carries[0]].meta.shape.elements() as u64;
        let by_work = (LOOP_WORK_MAX / elements.saturating_mul(period as u64)).max(TURNS_MIN as u64) as usize;
        let most = most.min(LOOP_NODES_MAX / period).min(by_work);
        let is_hidden = |turn: &usize| self.seen(first + turn * period, period).is_none();
        // The first turn of which something else is seen is the last one, if all of that is carried.
        let hidden = (0..most - 1).take_while(is_hidden).count();
        let end = first + (hidden + 1) * period;
        let shows_carried = (0..period).all(|q| carries.contains(&q) || self.is_within(end - period + q, end));
        let turns = if shows_carried { hidden + 1 } else { hidden };
        (turns >= TURNS_MIN).then_some(turns)
    }

    /// The places of the carried values in the body that begins at `first`; or the first condition of a loop's kernel
    /// that the body does not meet.
    fn body(&self, first: usize, period: usize) -> Result<Vec<usize>, Hindrance> {
        let carries = self.carries(first, period).ok_or(Hindrance::NotCarried)?;
        let shape = &self.nodes[first + carries[0]].meta.shape;
        let is_in_shape = |n: &usize| self.nodes[*n].meta.shape == *shape || self.nodes[*n].is_number;
        match (first..first + period).find(|n| !is_in_shape(n)) {
            Some(n) => Err(Hindrance::Shape(n)),
            None if shape.elements() < 2 => Err(Hindrance::Single),
            None if !self.binds(first, period, &carries) => Err(Hindrance::Bindings),
            None => Ok(carries),
        }
    }

    /// A value of the turn that begins at `begin` that others than this turn and the next one read.
    fn seen(&self, begin: usize, period: usize) -> Option<usize> {
        (begin..begin + period).find(|&n| !self.is_within(n, begin + 2 * period))
    }

    /// Whether all that read the value of node `n` lie before node `end`.
    fn is_within(&self, n: usize, end: usize) -> bool {
        self.nodes[n].last_user.is_some_and(|last| last < end)
    }

    /// The nodes of a body whose values the next turn reads, by their places in it; `None` where the first turn is not made
    /// as the others are, or there are none or too many.
    fn carries(&self, first: usize, period: usize) -> Option<Vec<usize>> {
        let second = first + period;
        // Each carried value, with what the first turn has in its place.
        let mut starts: Vec<(usize, LoopArg)> = Vec::new();
        let mut others: Vec<LoopArg> = Vec::new();
        for at in second..second + period {
            let pairs = self.nodes[at].args.iter().zip(&self.nodes[at - period].args);
            for (slot, (now, before)) in pairs.enumerate() {
                let later = self.nodes.get(at + period).map(|node| node.args[slot]);
                match *now {
                    LoopArg::Node(from) if from >= second => {
                        (*before == LoopArg::Node(from - period)).then_some(())?;
                    }
                    LoopArg::Node(from) if from >= first => {
                        let moves = later == Some(LoopArg::Node(from + period));
                        let is_outside = match *before {
                            LoopArg::Node(init) => init < first,
                            LoopArg::Outside(_) => true,
                            LoopArg::Number => false,
                        };
                        let fits = is_outside && self.meta(*before) == Some(self.nodes[from].meta);
                        let known = starts.iter().find(|(q, _)| *q == from - first);
                        let agrees = known.is_none_or(|(_, init)| init == before);
                        (moves && fits && agrees).then_some(())?;
                        if known.is_none() {
                            starts.push((from - first, *before));
                        }
                    }
                    LoopArg::Number => {}
                    other => {
                        (other == *before && later == Some(other)).then_some(())?;
                        others.push(other);
                    }
                }
            }
        }
        let inits: Vec<LoopArg> = starts.iter().map(|(_, init)| *init).collect();
        // A kernel binds a buffer once, so the initial value of a carried value may have no second role in the loop.
        let are_apart = (0..inits.len()).all(|n| !inits[..n].contains(&inits[n]) && !others.contains(&inits[n]));
        let mut carries: Vec<usize> = starts.iter().map(|(q, _)| *q).collect();
        carries.sort_unstable();
        let shape = |q: &usize| &self.nodes[first + q].meta.shape;
        let is_one_shape = carries.iter().all(|q| shape(q) == shape(&carries[0]));
        (are_apart && is_one_shape && (1..=CARRIES_MAX).contains(&carries.len())).then_some(carries)
    }

    /// Whether a kernel of the device has enough bindings for the inputs and outputs of a turn, if no output reuses an
    /// input's memory.
    fn binds(&self, first: usize, period: usize, carries: &[usize]) -> bool {
        let pieces = |meta: &Meta| self.device.pieces(meta.dtype, meta.elements() as u64);
        let mut read: Vec<LoopArg> = Vec::new();
        for arg in (first + period..first + 2 * period).flat_map(|at| &self.nodes[at].args) {
            let is_from_outside = match *arg {
                LoopArg::Node(from) => from < first,
                LoopArg::Outside(_) => true,
                LoopArg::Number => false,
            };
            if is_from_outside && !read.contains(arg) {
                read.push(*arg);
            }
        }
        let others: u64 = read.iter().filter_map(|arg| self.meta(*arg)).map(pieces).sum();
        1 + 2 * carries.len() as u64 + others <= self.device.bindings_max as u64
    }

    fn meta(&self, arg: LoopArg) -> Option<&Meta> {
        match arg {
            LoopArg::Node(n) => Some(self.nodes[n].meta),
            LoopArg::Outside(dep) => Some((self.meta_of)(dep)),
            LoopArg::Number => None,
        }
    }
}

/// Divides a region's nodes into loops and the ranges between them, in order, each with its turns: 1 for what is not a
/// loop.
pub(super) fn around(loops: &[Loop], count: usize) -> Vec<(std::ops::Range<usize>, usize)> {
    let mut parts = Vec::with_capacity(2 * loops.len() + 1);
    let mut free = 0;
    for part in loops {
        parts.extend((free < part.first).then_some((free..part.first, 1)));
        parts.push((part.first..part.end(), part.turns));
        free = part.end();
    }
    parts.extend((free < count).then_some((free..count, 1)));
    parts
}
