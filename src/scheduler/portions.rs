//! Divides independent parts of a cut into regions of a bounded size.
//!
//! In: the nodes of one stage on one device. Out: the same nodes in portions. Must hold: nodes that are connected, or
//! that read a common input, stay together, so that portions do not change what fuses; the result is a function of the
//! cut alone.
//!
//! A region is sent to its device as a whole. If many unrelated values are demanded at once, portions let other
//! sessions take turns in between, and those that are cancelled before their turn never run.

use super::cut::{Cut, Dep};
use crate::contract::device::DeviceInfo;
use petgraph::unionfind::UnionFind;
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

/// Most elements computed by a region that has more than one independent part: about a millisecond on a slow device,
/// long enough to hide the overhead of a region. The figure was chosen, not measured. It counts elements, not
/// operations, since memory traffic dominates in such a region.
pub(super) fn elements_max(device: &DeviceInfo) -> u64 {
    if device.capabilities.is_throughput { 1 << 22 } else { 1 << 20 }
}

/// Divides `nodes`, positions in tape order, into portions of at most `most` elements, each in tape order. `elements`
/// gives the work of a node. A connected part with more elements is a portion of its own.
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
