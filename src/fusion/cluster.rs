//! Clusters, one kernel each.
//!
//! In: working nodes and what is written out. Out: clusters in an order in which they can run. A cluster has
//! one iteration space; its roots are the written nodes that it computes. Clusters of one space that share
//! data merge: siblings, a chain that is written and folded at once, a fold and its tail.
//! Must hold: FUSE-1 and FUSE-2; merging never closes a cycle; a value read inside of its own cluster is
//! read at the element that is being computed.

use super::cut::{Bits, Budget, Cones, Cuts, OPS_MERGED_MAX, cut, weight};
use super::form::{Class, Work};
use super::lower::Source;
use super::pack;
use super::patches::base_of;
use super::paths::Paths;
use crate::contract::region::RegionArg;
use crate::graph::{DimSet, Op, Shape, View};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What is folded in a space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fold {
    /// Nothing.
    None,
    /// These dimensions.
    Reduce(DimSet),
    /// A running fold along a dimension.
    Scan {
        /// The dimension.
        dim: u8,
        /// From the end.
        reverse: bool,
    },
    /// Not a generated kernel, or one that merges with nothing.
    Alone,
}

/// Where in its cluster a root becomes known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// For every element of the space.
    Element,
    /// After the fold.
    Reduced,
}

/// One kernel to be.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The iteration space's shape in the region that was grouped first; lowering asks its own region.
    pub shape: Shape,
    /// What is folded.
    pub fold: Fold,
    /// Written nodes that it computes, ascending.
    pub roots: Vec<(u32, Phase)>,
    /// All nodes that it computes.
    pub members: Bits,
    /// Buffers that it reads: nodes, then inputs.
    pub reads: Bits,
    /// Those of them that are copied together before it runs, so that one binding serves them (`pack`).
    pub packed: Bits,
    /// Nodes that overwrite what it reads: it runs before them (FUSE-7).
    pub before: SmallVec<[u32; 1]>,
    /// Why a budget ended it, if one did.
    pub split: Option<&'static str>,
}

/// What the first three passes decide: a function of the region's structure and of what its device binds.
#[derive(Clone, Debug)]
pub struct Grouping {
    /// Whether a node's value gets a buffer.
    pub written: Vec<bool>,
    /// The kernels, in order.
    pub clusters: Vec<Cluster>,
}

/// The shape that a reduction leaves.
pub fn reduced_shape(shape: &Shape, dims: DimSet) -> Shape {
    let kept: Vec<usize> =
        shape.dims().iter().enumerate().map(|(d, &n)| if dims >> d & 1 == 1 { 1 } else { n }).collect();
    Shape::new(&kept).expect("SHAPE-2: a reduced shape is no larger")
}

/// Cuts, clusters and merges.
pub fn group(work: &Work<'_>, budget: Budget) -> Grouping {
    let mut extra = Vec::new();
    // Each round writes out at least one more node; three rounds settle what is worth it.
    for round in 0..3 {
        let cuts = cut(work, budget, &extra);
        let mut clusters = initial(work, &cuts);
        merge(work, &cuts, budget, &mut clusters);
        let more = if round < 2 { shared(work, &clusters, budget) } else { Vec::new() };
        if more.is_empty() {
            let mut clusters = order(clusters, work.nodes.len());
            for cluster in &mut clusters {
                cluster.packed = pack::chosen(work, cluster, budget);
            }
            return Grouping { written: cuts.written, clusters };
        }
        extra.extend(more);
    }
    unreachable!("FUSE-2: the last round returns")
}

fn initial(work: &Work<'_>, cuts: &Cuts) -> Vec<Cluster> {
    let mut cones = Cones::new(work);
    let mut clusters = Vec::new();
    let overwritten = overwritten(work);
    for (index, node) in work.nodes.iter().enumerate() {
        cones.compute(work, cuts, index);
        if !cuts.written[index] || node.class == Class::Empty {
            continue;
        }
        let (shape, fold, phase) = match (&node.op, node.class) {
            (Op::Reduce { dims, .. }, Class::Reduce) => {
                (work.arg_shape(node.args[0]), Fold::Reduce(*dims), Phase::Reduced)
            }
            (Op::Scan { dim, reverse, .. }, Class::Scan) => {
                (node.meta.shape.clone(), Fold::Scan { dim: *dim, reverse: *reverse }, Phase::Element)
            }
            (_, Class::Inline) => (node.meta.shape.clone(), Fold::None, Phase::Element),
            _ => (node.meta.shape.clone(), Fold::Alone, Phase::Element),
        };
        let overwriters = cones.reads[index].iter().filter_map(|buffer| overwritten.get(&buffer).copied());
        clusters.push(Cluster {
            shape,
            fold,
            roots: vec![(index as u32, phase)],
            members: cones.nodes[index].clone(),
            reads: cones.reads[index].clone(),
            packed: Bits::new(0),
            before: overwriters.filter(|&by| by > index as u32).collect(),
            split: cuts.reason[index],
        });
    }
    clusters
}

/// Buffers of which a part is overwritten where they lie, and by which node.
fn overwritten(work: &Work<'_>) -> FxHashMap<u32, u32> {
    let count = work.nodes.len() as u32;
    let patches = (0..count).filter(|&n| work.nodes[n as usize].takes_over);
    let of = |n: u32| match base_of(work, n)? {
        Source::Node(base) => Some((base, n)),
        Source::Input(i) => Some((count + i, n)),
        Source::Scratch(_) | Source::Pack(_) => None,
    };
    patches.filter_map(of).collect()
}

fn merge(work: &Work<'_>, cuts: &Cuts, budget: Budget, clusters: &mut Vec<Cluster>) {
    let mut paths = Paths::of(work, clusters);
    let mut current = 0;
    while current < clusters.len() {
        let mut other = 0;
        while other < clusters.len() {
            let is_free = current != other && !paths.lead_around(current, other);
            // Either may be the one that the other joins.
            let pair = [(current, other), (other, current)].into_iter().find_map(|(a, b)| {
                let union = is_free.then(|| fit(work, cuts, budget, &clusters[a], &clusters[b])).flatten()?;
                Some((a, b, union))
            });
            match pair {
                Some((a, b, (shape, fold, roots))) => {
                    join(clusters, a, b, shape, fold, roots);
                    paths.join(a.min(b), a.max(b));
                    current = current.min(other);
                    // What was enlarged may now meet what it did not meet before.
                    other = 0;
                }
                None => other += 1,
            }
        }
        current += 1;
    }
}

fn join(clusters: &mut Vec<Cluster>, a: usize, b: usize, shape: Shape, fold: Fold, roots: Vec<(u32, Phase)>) {
    let (keep, drop) = (a.min(b), a.max(b));
    // What ended `a` ends nothing any more where `b`, which goes on from it, is in the same kernel.
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

/// Whether `b` may join `a`: what the union would be.
fn fit(work: &Work<'_>, cuts: &Cuts, budget: Budget, a: &Cluster, b: &Cluster) -> Option<Union> {
    if a.fold == Fold::Alone || b.fold == Fold::Alone {
        return None;
    }
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
    let mut reads = a.reads.clone();
    reads.union(&b.reads);
    let mut members = a.members.clone();
    members.union(&b.members);
    if members.count() > OPS_MERGED_MAX {
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
    let distinct = pack::bound(work, &members, &without(&reads, &roots), &a.shape, budget) + roots.len() as u32;
    (distinct <= budget.reads_max + 1).then(|| (a.shape.clone(), fold, roots))
}

fn shares_large_read(work: &Work<'_>, a: &Cluster, b: &Cluster) -> bool {
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
fn reads_in_step(work: &Work<'_>, cuts: &Cuts, cluster: &Cluster, target: u32) -> bool {
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

/// Whether argument `slot` (node `m`) of node `n` is read at `n`'s own element.
pub(super) fn in_step(work: &Work<'_>, n: u32, slot: usize, m: u32) -> bool {
    let (node, arg) = (&work.nodes[n as usize], &work.nodes[m as usize]);
    match &node.op {
        Op::Apply(_) | Op::Ensure { .. } => arg.meta.shape == node.meta.shape,
        Op::Reduce { .. } | Op::Scan { .. } => arg.meta.shape == work.arg_shape(node.args[0]),
        Op::View(View::Reshape) | Op::Triangle { .. } => true,
        Op::AssignSlice(_) => slot == 0,
        _ => false,
    }
}

/// Inline nodes that several large clusters compute and that cost more than a round trip through memory.
fn shared(work: &Work<'_>, clusters: &[Cluster], budget: Budget) -> Vec<u32> {
    let users = |n: u32| -> Vec<usize> {
        // A cluster over another shape sees a slice or an expansion of it, and is not counted: which it is must
        // follow from structure, not from sizes (FUSE-3).
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
        costs[index] = cone.iter().map(|n| weight(&work.nodes[n as usize].op)).sum();
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

/// Clusters in an order of their dependencies; ties by their first root.
fn order(mut clusters: Vec<Cluster>, nodes: usize) -> Vec<Cluster> {
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
