//! Independent parts of a cut as regions of a bounded size.
//!
//! In: the nodes of one stage on one device. Out: the same nodes in portions. Must hold: what shares a node or an input
//! stays together, so that what fuses does not depend on portions; a function of the cut alone.
//!
//! A region goes to its device as a whole: what is demanded together and has nothing in common is sent bit by bit, so
//! that others have their turn in between, and what is not wanted any more is not run.

use super::cut::{Cut, Dep};
use crate::contract::device::DeviceInfo;
use petgraph::unionfind::UnionFind;
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

/// Elements that the nodes of a region of independent parts compute, at most, where it has more than one part: a
/// millisecond or so of a slow device's time, which hides what a region costs. Chosen; elements and not operations, since
/// such a region is mostly memory that is moved.
pub(super) fn elements_max(device: &DeviceInfo) -> u64 {
    if device.capabilities.is_throughput { 1 << 22 } else { 1 << 20 }
}

/// The portions of `nodes` (positions in tape order), whose work is `elements` each; each in tape order.
pub(super) fn portions(
    cut: &Cut,
    nodes: Vec<u32>,
    elements: impl Fn(u32) -> u64,
    most: u64,
) -> SmallVec<[Vec<u32>; 1]> {
    if nodes.iter().map(|&n| elements(n)).sum::<u64>() <= most {
        return smallvec![nodes];
    }
    let count = cut.nodes.len();
    let mut sets = UnionFind::<u32>::new(count + cut.inputs.len());
    for &n in &nodes {
        for dep in &cut.nodes[n as usize].deps {
            match *dep {
                Dep::Node(p) => drop(sets.union(n, p)),
                Dep::Input(i) => drop(sets.union(n, count as u32 + i)),
            }
        }
    }
    let mut parts: Vec<Vec<u32>> = Vec::new();
    let mut part_of: FxHashMap<u32, usize> = FxHashMap::default();
    for &n in &nodes {
        let part = *part_of.entry(sets.find_mut(n)).or_insert(parts.len());
        if part == parts.len() {
            parts.push(Vec::new());
        }
        parts[part].push(n);
    }
    let mut portions: SmallVec<[Vec<u32>; 1]> = SmallVec::new();
    let mut filled = 0;
    for part in parts {
        let work: u64 = part.iter().map(|&n| elements(n)).sum();
        match portions.last_mut() {
            Some(last) if filled + work <= most => {
                filled += work;
                last.extend(part);
            }
            _ => {
                filled = work;
                portions.push(part);
            }
        }
    }
    portions.iter_mut().for_each(|portion| portion.sort_unstable());
    portions
}
