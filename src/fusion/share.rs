//! Finds nodes that several kernels would compute, at a higher cost than one write and read through memory.
//!
//! In: merged clusters. Out: nodes that `cut` writes to memory in another round. Must hold: FUSE-3.

use super::bits::Bits;
use super::budget::Budget;
use super::form::{Class, RegionGraph};
use super::grouping::Cluster;
use crate::contract::region::RegionArg;

/// Inline nodes that several large clusters compute and that cost more than a round trip through memory.
pub fn share(work: &RegionGraph<'_>, clusters: &[Cluster], budget: Budget) -> Vec<u32> {
    let users = |n: u32| -> Vec<usize> {
        // A cluster over another shape reads a slice or an expansion of the node. It is not counted, because which of
        // the two it is depends on sizes, not on structure (FUSE-3).
        let shape = &work.nodes[n as usize].meta.shape;
        clusters
            .iter()
            .enumerate()
            .filter(|(_, c)| c.members.contains(n) && !c.roots.iter().any(|r| r.0 == n) && c.shape == *shape)
            .map(|(i, _)| i)
            .collect()
    };
    let mut costs = vec![0u32; work.nodes.len()];
    let mut found = Vec::new();
    let mut cones: Vec<Bits> = Vec::with_capacity(work.nodes.len());
    for (index, node) in work.nodes.iter().enumerate() {
        let mut cone = Bits::new(work.nodes.len());
        cone.insert(index as u32);
        for &arg in &node.args {
            if let RegionArg::Node(n) = arg
                && work.nodes[n as usize].class == Class::Inline
                && !clusters.iter().any(|c| c.roots.iter().any(|r| r.0 == n))
            {
                cone.union(&cones[n as usize]);
            }
        }
        costs[index] = cone.iter().map(|n| work.nodes[n as usize].op.facts().cost.weight()).sum();
        cones.push(cone);
        if node.class != Class::Inline || costs[index] <= budget.recompute_max || node.meta.elements() <= 1 {
            continue;
        }
        let here = users(index as u32);
        if here.len() < 2 {
            continue;
        }
        let topmost = node.consumers.iter().all(|&c| {
            work.nodes[c as usize].class != Class::Inline || {
                let there = users(c);
                !here.iter().all(|u| there.contains(u))
            }
        });
        if topmost {
            found.push(index as u32);
        }
    }
    found
}
