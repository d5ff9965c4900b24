//! Cuts long regions where the body of a loop ends.
//!
//! In: nodes in tape order, a test whether two nodes are alike, the most nodes that a region holds. Out: parts. Must
//! hold: the cut depends on the nodes alone. The same loop body then gives regions of the same structure, for which the
//! caches have kernels and plans. A cut at a fixed number of nodes would let each region begin at another statement.

use crate::graph::Node;

/// Regions are cut at the end of a loop's body only if at least this many bodies fit in one. With longer bodies, the
/// regions would be too short.
const BODIES_MIN: usize = 4;

/// Whether one statement recorded both nodes: they have the same op, source location, dtype and shape.
pub(super) fn are_alike(a: &Node, b: &Node) -> bool {
    let is_one_place = std::ptr::eq(a.at.location, b.at.location) && a.at.mark == b.at.mark;
    is_one_place && a.op.name() == b.op.name() && a.meta == b.meta
}

/// Cuts `nodes` into parts of at most `most`.
pub(super) fn parts<T>(nodes: &[T], most: usize, alike: impl Fn(&T, &T) -> bool) -> Vec<&[T]> {
    let mut rest = nodes;
    let mut parts = Vec::with_capacity(nodes.len() / most + 1);
    while rest.len() > most {
        let (part, after) = rest.split_at(end(rest, most, &alike));
        parts.push(part);
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(rest);
    }
    parts
}

/// The end of the first part: after as many whole bodies as fit, or after `most` nodes where no body repeats.
fn end<T>(nodes: &[T], most: usize, alike: &impl Fn(&T, &T) -> bool) -> usize {
    // A period repeats if each node of the last two bodies before the limit is like the node one period earlier.
    let repeats = |&period: &usize| (most - 2 * period..most).all(|n| alike(&nodes[n], &nodes[n - period]));
    let Some(period) = (1..=most / BODIES_MIN).find(repeats) else { return most };
    let first = (period..most).rev().find(|&n| !alike(&nodes[n], &nodes[n - period])).map_or(0, |n| n + 1 - period);
    most - (most - first) % period
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(nodes: &[u32], most: usize) -> Vec<usize> {
        parts(nodes, most, |a, b| a == b).iter().map(|part| part.len()).collect()
    }

    #[test]
    fn a_loop_is_cut_after_whole_bodies_wherever_it_begins() {
        let body = |before: u32| (100..100 + before).chain((0..60).flat_map(|_| 0..7)).collect::<Vec<u32>>();
        // 5 nodes and 13 bodies of 7, then 14 of 7.
        assert_eq!(lengths(&body(5), 100), [96, 98, 98, 98, 35]);
        assert_eq!(lengths(&body(0), 100), [98, 98, 98, 98, 28]);
    }

    #[test]
    fn what_does_not_repeat_is_cut_at_the_limit_and_nothing_is_lost() {
        let nodes: Vec<u32> = (0..250).collect();
        assert_eq!(lengths(&nodes, 100), [100, 100, 50]);
        assert_eq!(parts(&nodes, 100, |a, b| a == b).concat(), nodes);
        assert_eq!(lengths(&[7; 250], 100), [100, 100, 50]);
        assert!(lengths(&[], 100).is_empty());
    }
}
