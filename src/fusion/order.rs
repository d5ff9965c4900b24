//! Sorts clusters into an order in which they can run.
//!
//! In: merged clusters. Out: the same, each after the clusters that make its reads, and before those that overwrite
//! them. Must hold: FUSE-2.

use super::grouping::Cluster;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Clusters in an order of their dependencies; ties by their first root.
pub fn order(mut clusters: Vec<Cluster>, nodes: usize) -> Vec<Cluster> {
    clusters.sort_by_key(|c| c.roots[0].0);
    let mut maker: Vec<Option<u32>> = vec![None; nodes];
    for (c, cluster) in clusters.iter().enumerate() {
        for &(root, _) in &cluster.roots {
            maker[root as usize] = Some(c as u32);
        }
    }
    let mut waits_for: Vec<u32> = vec![0; clusters.len()];
    let mut feeds: Vec<Vec<u32>> = vec![Vec::new(); clusters.len()];
    for (c, cluster) in clusters.iter().enumerate() {
        let mut producers: Vec<u32> =
            cluster.reads.iter().filter_map(|read| maker.get(read as usize).copied().flatten()).collect();
        producers.sort_unstable();
        producers.dedup();
        for producer in producers {
            feeds[producer as usize].push(c as u32);
            waits_for[c] += 1;
        }
        for overwriter in cluster.before.iter().filter_map(|&by| maker[by as usize]) {
            feeds[c].push(overwriter);
            waits_for[overwriter as usize] += 1;
        }
    }
    let mut ready: BinaryHeap<Reverse<u32>> =
        (0..clusters.len() as u32).filter(|&c| waits_for[c as usize] == 0).map(Reverse).collect();
    let mut left: Vec<Option<Cluster>> = clusters.into_iter().map(Some).collect();
    let mut done = Vec::with_capacity(left.len());
    while let Some(Reverse(c)) = ready.pop() {
        done.extend(left[c as usize].take());
        for &next in &feeds[c as usize] {
            waits_for[next as usize] -= 1;
            if waits_for[next as usize] == 0 {
                ready.push(Reverse(next));
            }
        }
    }
    assert_eq!(done.len(), left.len(), "FUSE-2: clusters form a DAG");
    done
}
