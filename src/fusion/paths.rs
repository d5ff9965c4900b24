//! The order between clusters, kept up to date while they merge.
//!
//! In: clusters, and which two were merged. Out: whether two may be merged without closing a cycle. Must hold: a query
//! takes time linear in the neighbours of the two clusters, a merge linear in the number of clusters.

use super::bits::Bits;
use super::form::RegionGraph;
use super::grouping::Cluster;
use smallvec::SmallVec;

/// The order between clusters. A cluster is named by its first position in the list, even if it has moved since.
pub(super) struct Paths {
    /// The names of the clusters, by their current positions.
    names: Vec<u32>,
    /// For every cluster, those that read its roots or overwrite its reads.
    next: Vec<SmallVec<[u32; 4]>>,
    /// For every cluster, all that a path leads to.
    later: Vec<Bits>,
}

impl Paths {
    /// The order between these clusters.
    pub(super) fn of(work: &RegionGraph<'_>, clusters: &[Cluster]) -> Paths {
        let mut maker: Vec<Option<u32>> = vec![None; work.nodes.len()];
        for (c, cluster) in clusters.iter().enumerate() {
            cluster.roots.iter().for_each(|&(root, _)| maker[root as usize] = Some(c as u32));
        }
        let mut next: Vec<SmallVec<[u32; 4]>> = vec![SmallVec::new(); clusters.len()];
        let mut waits_for = vec![0u32; clusters.len()];
        let mut edge = |from: u32, to: u32| {
            if from != to {
                next[from as usize].push(to);
                waits_for[to as usize] += 1;
            }
        };
        for (c, cluster) in (0..).zip(clusters) {
            // Reads are numbered nodes first, then inputs, which no cluster makes.
            let read = cluster.reads.iter().take_while(|&read| (read as usize) < maker.len());
            read.filter_map(|n| maker[n as usize]).for_each(|producer| edge(producer, c));
            cluster.before.iter().filter_map(|&by| maker[by as usize]).for_each(|overwriter| edge(c, overwriter));
        }
        let mut order: Vec<u32> = (0..clusters.len() as u32).filter(|&c| waits_for[c as usize] == 0).collect();
        let mut done = 0;
        while let Some(&c) = order.get(done) {
            done += 1;
            for &to in &next[c as usize] {
                waits_for[to as usize] -= 1;
                if waits_for[to as usize] == 0 {
                    order.push(to);
                }
            }
        }
        let mut later = vec![Bits::new(0); clusters.len()];
        for &c in order.iter().rev() {
            let mut all = Bits::new(clusters.len());
            for &to in &next[c as usize] {
                all.insert(to);
                all.union(&later[to as usize]);
            }
            later[c as usize] = all;
        }
        Paths { names: (0..clusters.len() as u32).collect(), next, later }
    }

    /// Whether a path leads from one cluster to the other through a third.
    pub(super) fn lead_around(&self, a: usize, b: usize) -> bool {
        let (a, b) = (self.names[a], self.names[b]);
        let leads = |c: u32, to: u32| c != to && self.later[c as usize].contains(to);
        let around = |from: u32, to: u32| self.next[from as usize].iter().any(|&c| leads(c, to));
        around(a, b) || around(b, a)
    }

    /// The cluster at one place has become a part of that at another.
    pub(super) fn join(&mut self, keep: usize, drop: usize) {
        let (keep, drop) = (self.names[keep], self.names.remove(drop));
        let dropped = std::mem::take(&mut self.next[drop as usize]);
        self.next[keep as usize].extend(dropped);
        self.next[keep as usize].retain(|c| *c != keep && *c != drop);
        let mut all = self.later[drop as usize].clone();
        all.union(&self.later[keep as usize]);
        all.remove(keep);
        all.remove(drop);
        self.later[keep as usize] = all.clone();
        all.insert(keep);
        for &name in &self.names {
            let later = &mut self.later[name as usize];
            if name != keep && (later.contains(keep) || later.contains(drop)) {
                later.union(&all);
                later.remove(drop);
                self.next[name as usize].iter_mut().filter(|c| **c == drop).for_each(|c| *c = keep);
            }
        }
    }
}
