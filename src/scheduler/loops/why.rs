//! Says why a loop of a program is not one kernel, as `Array::explain` shows it.
//!
//! In: the nodes of a region that is no loop. Out: a sentence for a statement that is recorded again and again there, with
//! the first condition of a loop's kernel that its turns do not meet. Must hold: LOOP-3; nothing is decided here.

use super::{BODY_NODES_MAX, CARRIES_MAX, Finder, LOOP_NODES_MIN, PLACES_MAX, TURNS_MIN};
use crate::graph::{Check, Node, OpClass};
use crate::scheduler::cut::Cut;
use crate::scheduler::state::State;
use rustc_hash::FxHashMap;

/// A condition that turns do not meet. Conditions are checked in this order. Nodes are given by their positions among
/// those that are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Hindrance {
    /// The statement is not recorded at equal distances.
    Irregular,
    /// A turn has too many ops.
    LongBody,
    /// This op reads other elements than the one that it computes, folds elements, or checks them.
    NotElementwise(usize),
    /// This op is not the one of the turn before, or plans with another number or shape.
    Differs(usize),
    /// This op reads another array in each turn, or a value that was computed more than a turn of ops before.
    ReadsAnother(usize),
    /// No value goes from turn to turn, too many do, or they have several shapes; or the first turn does not begin with
    /// an array of its own, of the same dtype and shape, for each of them.
    NotCarried,
    /// This op's value has another shape than what goes from turn to turn.
    Shape(usize),
    /// The values that go from turn to turn are single numbers.
    Single,
    /// A turn reads and writes more arrays than the device binds.
    Bindings,
    /// The program holds or demands this op's value in a turn before the last.
    Seen(usize),
}

/// A loop that is not one kernel: the position of the first node of a statement that repeats, the distance to its next
/// node, the number of turns, and the first condition that they do not meet.
#[derive(Debug)]
struct Unrolled {
    first: usize,
    period: usize,
    turns: usize,
    hindrance: Hindrance,
}

impl State {
    /// A sentence for each loop among the regions of a cut that is not one kernel, whose turns may be in several regions.
    pub(in crate::scheduler) fn why_unrolled(&self, cut: &Cut) -> Vec<String> {
        // The loop's statement and the reason, and its turns in all regions.
        let mut found: Vec<((String, String), usize)> = Vec::new();
        for group in cut.groups.iter().filter(|group| group.turns == 1 && group.nodes.len() >= LOOP_NODES_MIN) {
            let node = |n: usize| &self.graph[cut.nodes[group.nodes[n] as usize].at].node;
            let meta_of = |dep| self.meta_of(cut, dep);
            let nodes = self.candidates(cut, &group.nodes);
            let finder = Finder { nodes, device: &self.fleet[group.device], meta_of: &meta_of };
            let Some(unrolled) = finder.unrolled(|n| (node(n).op.name(), place(node(n)))) else { continue };
            let words = (named(node(unrolled.first)), reason(&unrolled, node));
            match found.iter_mut().find(|(known, _)| *known == words) {
                Some((_, turns)) => *turns += unrolled.turns,
                None => found.push((words, unrolled.turns)),
            }
        }
        let sentence = |((statement, reason), turns): ((String, String), usize)| {
            format!("not one kernel: a loop of {turns} turns with {statement}: {reason}")
        };
        found.into_iter().map(sentence).collect()
    }
}

/// An op with its place in the program.
fn named(node: &Node) -> String {
    format!("{} ({})", node.op.name(), place(node))
}

fn place(node: &Node) -> String {
    match node.at.mark {
        0 => format!("{}:{}", node.at.location.file(), node.at.location.line()),
        mark => format!("mark {mark}"),
    }
}

fn reason<'a>(unrolled: &Unrolled, node: impl Fn(usize) -> &'a Node) -> String {
    match unrolled.hindrance {
        Hindrance::Irregular => "its turns do not record the same ops".to_owned(),
        Hindrance::LongBody => format!("a turn has {} ops, and a kernel at most {BODY_NODES_MAX}", unrolled.period),
        Hindrance::NotElementwise(n) => {
            let facts = node(n).op.facts();
            let does = match (facts.class, facts.check) {
                (OpClass::Element, Check::Nothing) => "reads other elements than the one that it computes",
                (OpClass::Element, _) => "checks its values",
                _ => "is not elementwise",
            };
            format!("{} {does}", named(node(n)))
        }
        Hindrance::Differs(n) => {
            let op = named(node(n));
            format!("{op} is not the op that the turn before records there, or has another type, shape or fixed number")
        }
        Hindrance::ReadsAnother(n) => {
            format!("{} reads another array in each turn, or a value that is more than a turn old", named(node(n)))
        }
        Hindrance::NotCarried => {
            format!(
                "a turn passes on no value, more than {CARRIES_MAX}, or values of several shapes; or the first turn does \
                 not begin with an array of its own, of the same type and shape, for each of them"
            )
        }
        Hindrance::Shape(n) => format!("{} has another shape than what goes from turn to turn", named(node(n))),
        Hindrance::Bindings => "a turn reads and writes more arrays than a kernel of the device binds".to_owned(),
        Hindrance::Single => "the arrays that go from turn to turn have one element".to_owned(),
        Hindrance::Seen(n) => format!("the program holds or demands {} in some turn before the last", named(node(n))),
    }
}

/// How many times a turn may record a statement that is recorded at these positions: the numbers `n` for which each
/// position is at the same distance from the one `n` places later.
fn strides(at: &[usize]) -> impl Iterator<Item = usize> + '_ {
    let most = PLACES_MAX.min(at.len() / TURNS_MIN);
    let distance = |from: usize, stride: usize| at[from + stride] - at[from];
    (1..=most).filter(move |&stride| (0..at.len() - stride).all(|n| distance(n, stride) == distance(0, stride)))
}

impl Finder<'_> {
    /// The loop of the statement that is recorded most often. `None` if no statement repeats often enough, if the turns
    /// have too few ops for a kernel of their own, or if they meet all conditions.
    fn unrolled(&self, statement: impl Fn(usize) -> (&'static str, String)) -> Option<Unrolled> {
        let mut places: FxHashMap<(&'static str, String), Vec<usize>> = FxHashMap::default();
        for n in 0..self.nodes.len() {
            places.entry(statement(n)).or_default().push(n);
        }
        let often = places.into_values().filter(|at| at.len() >= TURNS_MIN);
        let at = often.max_by_key(|at| (strides(at).next().is_some(), at.len(), std::cmp::Reverse(at[0])))?;
        let first = at[0];
        let mut found = Unrolled { first, period: 1, turns: at.len(), hindrance: Hindrance::Irregular };
        for stride in strides(&at) {
            let (period, turns) = (at[stride] - first, at.len() / stride);
            if period * turns < LOOP_NODES_MIN {
                continue;
            }
            // Of several possible lengths of a turn, the one that meets the most conditions is reported.
            let Some(hindrance) = self.hindrance(first, period, turns) else { continue };
            if hindrance > found.hindrance {
                found = Unrolled { first, period, turns, hindrance };
            }
        }
        let is_small = found.hindrance == Hindrance::Irregular && strides(&at).next().is_some();
        (!is_small).then_some(found)
    }

    /// The first condition that the turns of `period` nodes from `first` on do not meet.
    fn hindrance(&self, first: usize, period: usize, turns: usize) -> Option<Hindrance> {
        if period > BODY_NODES_MAX {
            return Some(Hindrance::LongBody);
        }
        let last = (first + turns * period).min(self.nodes.len());
        if let Some(n) = (first..last).find(|&n| self.nodes[n].kind.is_none()) {
            return Some(Hindrance::NotElementwise(n));
        }
        let end = self.repeats().end(first, period);
        if end < first + TURNS_MIN * period {
            let is_same = self.nodes.get(end)?.kind == self.nodes[end - period].kind;
            return Some(if is_same { Hindrance::ReadsAnother(end) } else { Hindrance::Differs(end) });
        }
        let start = first + self.phase(first + period, period);
        if start + TURNS_MIN * period > end {
            return None;
        }
        match self.body(start, period) {
            Err(hindrance) => Some(hindrance),
            // Any turn but the last.
            Ok(_) => {
                let mut turns = (start..end - period).step_by(period);
                turns.find_map(|begin| self.seen(begin, period)).map(Hindrance::Seen)
            }
        }
    }
}
