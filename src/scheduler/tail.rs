//! Leaves an incomplete turn of a loop to the next segment, if a tape's limit cut the loop within it.
//!
//! In: the values that a segment recorded. Out: how many of them belong to whole turns. Must hold: a function of the
//! session's own program (TAPE-2). The rest of the turn stays lazy and is computed with the next segment, so that each
//! segment of a loop begins with a turn, and has the regions and kernels of the segment before.

use super::bodies::are_alike;
use super::graph::Entries;
use super::loops::BODY_NODES_MAX;
use super::state::State;
use crate::graph::Node;
use crate::ids::ValueId;
use petgraph::stable_graph::NodeIndex;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// Turns that are compared.
const TURNS: usize = 3;

impl State {
    /// The roots of a segment that ends at its limit on nodes: its lazy values that the program holds. If the segment
    /// ends within a turn of a loop, the values of that incomplete turn are left out, and the values that it reads of
    /// the turn before are added.
    pub(super) fn limit_roots(&self, recorded: &[ValueId]) -> Entries {
        let entries: Vec<Option<NodeIndex>> = recorded.iter().map(|value| self.graph.find(*value)).collect();
        let place_of: FxHashMap<NodeIndex, usize> =
            entries.iter().enumerate().filter_map(|(place, at)| at.map(|at| (at, place))).collect();
        let mut last_user = vec![0; entries.len()];
        for (place, at) in entries.iter().enumerate() {
            for argument in at.iter().flat_map(|at| self.graph.arguments(*at)) {
                if let Some(&from) = place_of.get(&argument) {
                    last_user[from] = place;
                }
            }
        }
        let end = self.whole_turns(&entries, &last_user);
        let is_root = |(place, at): (usize, &Option<NodeIndex>)| {
            let live = &self.graph[(*at)?];
            (live.is_held_lazy() || live.is_lazy() && last_user[place] >= end).then_some((*at)?)
        };
        entries[..end].iter().enumerate().filter_map(is_root).collect()
    }

    /// The number of nodes up to the end of the last whole turn; all of them, if they are not a loop. A turn begins
    /// where the fewest values go from one turn to the next.
    fn whole_turns(&self, entries: &[Option<NodeIndex>], last_user: &[usize]) -> usize {
        let count = entries.len();
        let node = |place: usize| entries[place].map(|at| &self.graph[at].node);
        let is_alike = |a: Option<&Node>, b: Option<&Node>| match (a, b) {
            (Some(a), Some(b)) => are_alike(a, b),
            (a, b) => a.is_none() && b.is_none(),
        };
        let repeats = |&period: &usize| {
            (count - (TURNS - 1) * period..count).rev().all(|place| is_alike(node(place), node(place - period)))
        };
        let Some(period) = (1..=BODY_NODES_MAX.min(count / TURNS)).find(repeats) else { return count };
        // The values that go past each place of the turn before the last one; those of the last one have no readers yet.
        let first = count - 2 * period + 1;
        let goes_past = |place: usize| {
            let before = place.saturating_sub(period)..place;
            before.into_iter().filter(|&from| last_user[from] >= place).count()
        };
        let text = |place: usize| node(place).map(|n| (n.at.mark, n.at.location.line(), n.at.location.column()));
        let begin = (first..first + period).min_by_key(|&place| (goes_past(place), text(place), Reverse(place)));
        begin.map_or(count, |begin| begin + period)
    }
}
