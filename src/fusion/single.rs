//! One kernel for all nodes of a region: what plans of loops (`roll`) and of blocks (`block`) share.
//!
//! In: a region's working nodes, and those that are written. Out: a grouping with one cluster. Must hold: FUSE-1.

use super::bits::Bits;
use super::form::{Class, RegionGraph};
use super::grouping::{Cluster, Fold, Grouping, Phase};
use crate::contract::region::RegionArg;
use smallvec::smallvec;

/// Whether each node of the region is one working node, and any kernel can compute it.
fn is_inline(work: &RegionGraph<'_>) -> bool {
    work.nodes.len() == work.region.nodes.len() && work.nodes.iter().all(|node| node.class == Class::Inline)
}

/// The grouping with one kernel, which computes every node and writes `roots`, ascending. `None` if a node cannot be
/// computed in such a kernel, there is no root, or roots have several shapes.
pub fn single(work: &RegionGraph<'_>, roots: &[u32]) -> Option<Grouping> {
    if !is_inline(work) {
        return None;
    }
    let (nodes, inputs) = (work.nodes.len(), work.region.inputs.len());
    let shape_of = |&n: &u32| &work.nodes[n as usize].meta.shape;
    let shape = shape_of(roots.first()?);
    if roots.iter().any(|n| shape_of(n) != shape) {
        return None;
    }
    let mut written = vec![false; nodes];
    roots.iter().for_each(|&n| written[n as usize] = true);
    let mut members = Bits::new(nodes);
    let mut reads = Bits::new(nodes + inputs);
    for (n, node) in work.nodes.iter().enumerate() {
        members.insert(n as u32);
        for &arg in &node.args {
            if let RegionArg::Input(i) = arg {
                reads.insert(nodes as u32 + i);
            }
        }
    }
    let cluster = Cluster {
        shape: shape.clone(),
        fold: Fold::None,
        roots: roots.iter().map(|&n| (n, Phase::Element)).collect(),
        members,
        reads,
        packed: Bits::new(nodes + inputs),
        before: smallvec![],
        split: None,
    };
    Some(Grouping { written, clusters: vec![cluster] })
}
