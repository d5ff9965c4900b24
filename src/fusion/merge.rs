//! Merges clusters that share a space and data: siblings, a chain whose result is both written and reduced, a reduction
//! and its elementwise tail.
//!
//! In: clusters. Out: fewer of them. Must hold: FUSE-2: merging never closes a cycle; a value read inside of its own
//! cluster is read at the element that is being computed.

use super::bits::Bits;
use super::budget::{Budget, OPS_MERGED_MAX};
use super::cut::Cuts;
use super::form::RegionGraph;
use super::grouping::{Cluster, Fold, Phase, reduced_shape};
use super::in_step::in_step;
use super::pack;
use super::paths::Paths;
use crate::contract::region::RegionArg;
use crate::graph::Shape;

mod lines;

/// Merges clusters while any two fit.
pub fn merge(work: &RegionGraph<'_>, cuts: &Cuts, budget: Budget, clusters: &mut Vec<Cluster>) {
    let mut paths = Paths::of(work, clusters);
    let mut current = 0;
    while current < clusters.len() {
        let mut other = 0;
        while other < clusters.len() {
            let is_free = current != other && !paths.lead_around(current, other);
            // Either of the two may be the one that the other joins.
            let pair = [(current, other), (other, current)].into_iter().find_map(|(a, b)| {
                let union = is_free.then(|| fit(work, cuts, budget, &clusters[a], &clusters[b])).flatten()?;
                Some((a, b, union))
            });
            match pair {
                Some((a, b, (shape, fold, roots))) => {
                    join(clusters, a, b, shape, fold, roots);
                    paths.join(a.min(b), a.max(b));
                    current = current.min(other);
                    // The merged cluster may fit clusters that its parts did not fit: start again.
                    other = 0;
                }
                None => other += 1,
            }
        }
        current += 1;
    }
    clusters.iter_mut().for_each(|cluster| lines::hold_moments(work, cuts, cluster));
}

fn join(clusters: &mut Vec<Cluster>, a: usize, b: usize, shape: Shape, fold: Fold, roots: Vec<(u32, Phase)>) {
    let (keep, drop) = (a.min(b), a.max(b));
    // If `b` reads a root of `a`, the budget that ended `a` no longer splits anything.
    let goes_on = clusters[a].roots.iter().any(|&(n, _)| clusters[b].reads.contains(n));
    let split = if goes_on { clusters[b].split } else { clusters[keep].split.or(clusters[drop].split) };
    let other = clusters.remove(drop);
    let cluster = &mut clusters[keep];
    cluster.shape = shape;
    cluster.fold = fold;
    cluster.members.union(&other.members);
    cluster.reads.union(&other.reads);
    cluster.roots = roots;
    cluster.before.extend(other.before);
    cluster.split = split;
    let mut reads = Bits::new(0);
    std::mem::swap(&mut reads, &mut cluster.reads);
    cluster.reads = without(&reads, &cluster.roots);
}

fn without(reads: &Bits, roots: &[(u32, Phase)]) -> Bits {
    let mut kept = reads.clone();
    for &(root, _) in roots {
        kept.remove(root);
    }
    kept
}

/// The space, the fold and the roots of two clusters' union.
type Union = (Shape, Fold, Vec<(u32, Phase)>);

/// The union, if `b` may join `a`.
fn fit(work: &RegionGraph<'_>, cuts: &Cuts, budget: Budget, a: &Cluster, b: &Cluster) -> Option<Union> {
    if a.fold == Fold::Alone || b.fold == Fold::Alone {
        return None;
    }
    fit_once(work, cuts, budget, a, b).or_else(|| lines::fit(work, cuts, budget, a, b))
}

/// The same for a union in which all reductions run at the same time.
fn fit_once(work: &RegionGraph<'_>, cuts: &Cuts, budget: Budget, a: &Cluster, b: &Cluster) -> Option<Union> {
    let b_reads_a = a.roots.iter().any(|&(n, _)| b.reads.contains(n));
    let a_reads_b = b.roots.iter().any(|&(n, _)| a.reads.contains(n));
    let (fold, b_phase) = match (a.fold, b.fold) {
        _ if a_reads_b => return None,
        (Fold::None, Fold::None) if a.shape == b.shape => (Fold::None, Phase::Element),
        (Fold::None, Fold::Reduce(dims)) if a.shape == b.shape => (Fold::Reduce(dims), Phase::Reduced),
        (Fold::Reduce(dims), Fold::Reduce(other)) if dims == other && a.shape == b.shape => {
            (Fold::Reduce(dims), Phase::Reduced)
        }
        // The tail of a fold.
        (Fold::Reduce(dims), Fold::None) if b_reads_a && b.shape == reduced_shape(&a.shape, dims) => {
            (Fold::Reduce(dims), Phase::Reduced)
        }
        _ => return None,
    };
    let shares = b_reads_a || a.members.meets(&b.members) || shares_large_read(work, a, b);
    if !shares {
        return None;
    }
    let tail = matches!((a.fold, b.fold), (Fold::Reduce(_), Fold::None));
    for &(root, phase) in &a.roots {
        if b.reads.contains(root) {
            let reachable = if tail { phase == Phase::Reduced } else { phase == Phase::Element };
            if !reachable || !reads_in_step(work, cuts, b, root) {
                return None;
            }
        }
    }
    let mut roots: Vec<(u32, Phase)> = a.roots.clone();
    roots.extend(b.roots.iter().map(|&(n, phase)| {
        let phase = if phase == Phase::Reduced || tail { Phase::Reduced } else { Phase::Element };
        debug_assert!(b_phase == Phase::Reduced || phase == Phase::Element);
        (n, phase)
    }));
    roots.sort_unstable_by_key(|root| root.0);
    is_bindable(work, budget, (a, b), &roots, &a.shape).then(|| (a.shape.clone(), fold, roots))
}

/// Whether the union of two clusters holds few enough ops, and binds few enough buffers.
fn is_bindable(
    work: &RegionGraph<'_>,
    budget: Budget,
    (a, b): (&Cluster, &Cluster),
    roots: &[(u32, Phase)],
    shape: &Shape,
) -> bool {
    let mut members = a.members.clone();
    members.union(&b.members);
    let reads = reads_of_union(a, b, roots);
    members.count() <= OPS_MERGED_MAX
        && pack::bound(work, &members, &reads, shape, budget) + roots.len() as u32 <= budget.reads_max + 1
}

/// The nodes and inputs that a kernel of both clusters reads from memory: the reads of both, without the union's own
/// roots.
fn reads_of_union(a: &Cluster, b: &Cluster, roots: &[(u32, Phase)]) -> Bits {
    let mut reads = a.reads.clone();
    reads.union(&b.reads);
    without(&reads, roots)
}

fn shares_large_read(work: &RegionGraph<'_>, a: &Cluster, b: &Cluster) -> bool {
    let count = work.nodes.len() as u32;
    a.reads.meets(&b.reads)
        && a.reads.iter().filter(|&r| b.reads.contains(r)).any(|r| {
            let elements = if r < count {
                work.nodes[r as usize].meta.elements()
            } else {
                work.region.inputs[(r - count) as usize].meta.elements()
            };
            elements > 1
        })
}

/// Whether every read of `target` in a cluster is at the element that is being computed.
fn reads_in_step(work: &RegionGraph<'_>, cuts: &Cuts, cluster: &Cluster, target: u32) -> bool {
    let mut seen_flat = Bits::new(work.nodes.len());
    let mut seen_bent = Bits::new(work.nodes.len());
    let mut stack: Vec<(u32, bool)> = cluster.roots.iter().map(|&(n, _)| (n, true)).collect();
    while let Some((n, flat)) = stack.pop() {
        let seen = if flat { &mut seen_flat } else { &mut seen_bent };
        if seen.contains(n) {
            continue;
        }
        seen.insert(n);
        let node = &work.nodes[n as usize];
        for (slot, &arg) in node.args.iter().enumerate() {
            let RegionArg::Node(m) = arg else { continue };
            let straight = flat && in_step(work, n, slot, m);
            if m == target && !straight {
                return false;
            }
            let inside = !cuts.written[m as usize] || cluster.roots.iter().any(|&(r, _)| r == m);
            if inside && m != target {
                stack.push((m, straight));
            }
        }
    }
    true
}
