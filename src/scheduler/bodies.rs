//! Long regions, cut where the body of a loop ends.
//!
//! In: nodes in tape order, which of them are alike, the most that a region holds. Out: parts. Must hold: a function of
//! the nodes alone. So the same loop body gives regions of the same structure, for which kernels and plans are found
//! again; cut at a fixed number of nodes, each would begin at another statement.

/// The longest body that is looked for, as a part of what a region holds: shorter regions would gain nothing.
const BODIES_MIN: usize = 4;

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

/// Where the first part ends: after as many whole bodies as fit, or after `most` nodes where none repeat.
fn end<T>(nodes: &[T], most: usize, alike: &impl Fn(&T, &T) -> bool) -> usize {
    // Two bodies in a row before the limit, each node like the one of the body before.
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
