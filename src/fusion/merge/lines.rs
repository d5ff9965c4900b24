//! Merges reductions of the same lines, and elementwise ops that use their results with the elements of the lines, into
//! a kernel that holds lines in registers: softmax, standardising, `x / norm(x)`.
//!
//! In: two clusters whose reductions have to run one after the other. Out: their union with [`Fold::Line`], if a
//! workgroup holds its lines. Must hold: FUSE-2; a value inside of the union is read at the element that is being
//! computed, or, where it belongs to a line, for elements of that line.

use super::{Union, is_bindable, reads_of_union, shares_large_read};
use crate::contract::region::RegionArg;
use crate::fusion::budget::Budget;
use crate::fusion::cut::Cuts;
use crate::fusion::form::{Class, RegionGraph};
use crate::fusion::grouping::{Cluster, Fold, Phase, reduced_shape};
use crate::fusion::in_step::in_step;
use crate::fusion::lines::folds_moments;
use crate::graph::{DType, DimSet, Reads, Shape};
use rustc_hash::FxHashSet;

/// The union, if `b` may join `a` in a kernel that holds lines.
pub(super) fn fit(work: &RegionGraph<'_>, cuts: &Cuts, budget: Budget, a: &Cluster, b: &Cluster) -> Option<Union> {
    let (shape, dims) = [a, b].into_iter().find_map(|cluster| match cluster.fold {
        Fold::Reduce(dims) | Fold::Line(dims) => Some((cluster.shape.clone(), dims)),
        Fold::None | Fold::Scan { .. } | Fold::Alone => None,
    })?;
    let lines = Lines { work, cuts, outer: reduced_shape(&shape, dims), shape, dims };
    let reads = |by: &Cluster, of: &Cluster| of.roots.iter().any(|&(n, _)| by.reads.contains(n));
    if reads(a, b) {
        return None;
    }
    let (first, second) = (lines.phase(a)?, lines.phase(b)?);
    // A cluster that computes one value a line joins only if it reads what the other cluster folds.
    if first == Of::Lines || (second == Of::Lines && !reads(b, a)) {
        return None;
    }
    let held = [a, b].into_iter().any(|cluster| matches!(cluster.fold, Fold::Line(_)));
    let links = lines.links(a, b)?;
    let shares = reads(b, a) || a.members.meets(&b.members) || shares_large_read(work, a, b);
    if !(links == Links::AcrossFold || (held && shares)) {
        return None;
    }
    let mut roots = a.roots.clone();
    let phase = |phase: Phase| if second == Of::Lines { Phase::Reduced } else { phase };
    roots.extend(b.roots.iter().map(|&(n, own)| (n, phase(own))));
    roots.sort_unstable_by_key(|root| root.0);
    let fits = lines.are_held(a, b, &roots) && is_bindable(work, budget, (a, b), &roots, &lines.shape);
    fits.then(|| (lines.shape.clone(), Fold::Line(dims), roots))
}

/// Lets a kernel that computes moments hold its lines: then they take two short passes over registers. In one pass over
/// memory, each element takes several operations more.
pub(super) fn hold_moments(work: &RegionGraph<'_>, cuts: &Cuts, cluster: &mut Cluster) {
    let Fold::Reduce(dims) = cluster.fold else { return };
    let of_moments = |&(n, _): &(u32, Phase)| folds_moments(&work.nodes[n as usize].op);
    let shape = cluster.shape.clone();
    let lines = Lines { work, cuts, outer: reduced_shape(&shape, dims), shape, dims };
    if cluster.roots.iter().any(of_moments) && lines.are_held(cluster, cluster, &cluster.roots) {
        cluster.fold = Fold::Line(dims);
    }
}

/// What a cluster of the union computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// A value for each element; it may fold them.
    Elements,
    /// One value for each line.
    Lines,
}

/// How one cluster reads what another one makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Links {
    /// At the element that it computes, or not at all.
    InStep,
    /// It reads the results of a reduction, and elements of the lines.
    AcrossFold,
}

/// Which of its elements a node is read at, while the kernel computes one element, or one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    /// At the element.
    Element,
    /// At the line.
    Line,
    /// Anywhere else.
    Elsewhere,
}

/// The space of a union.
struct Lines<'w, 'r> {
    work: &'w RegionGraph<'r>,
    cuts: &'w Cuts,
    /// The shape of its elements.
    shape: Shape,
    /// The shape of the reduced values, one for each line.
    outer: Shape,
    /// What is folded.
    dims: DimSet,
}

impl Lines<'_, '_> {
    /// Whether a cluster computes elements or lines; `None` if it cannot be a part of the union.
    fn phase(&self, cluster: &Cluster) -> Option<Of> {
        match cluster.fold {
            Fold::Reduce(dims) | Fold::Line(dims) if dims == self.dims && cluster.shape == self.shape => {
                Some(Of::Elements)
            }
            Fold::None if cluster.shape == self.shape => Some(Of::Elements),
            Fold::None if cluster.shape == self.outer => Some(Of::Lines),
            Fold::None | Fold::Reduce(_) | Fold::Line(_) | Fold::Scan { .. } | Fold::Alone => None,
        }
    }

    /// How `b` reads the results of `a`; `None` if it reads any of them at other positions.
    fn links(&self, a: &Cluster, b: &Cluster) -> Option<Links> {
        let mut links = Links::InStep;
        let mut seen: FxHashSet<(u32, Place)> = FxHashSet::default();
        let is_of_lines = self.phase(b) == Some(Of::Lines);
        let start = |&(n, phase): &(u32, Phase)| {
            (n, if is_of_lines || phase == Phase::Reduced { Place::Line } else { Place::Element })
        };
        let mut stack: Vec<(u32, Place)> = b.roots.iter().map(start).collect();
        while let Some((n, place)) = stack.pop() {
            if !seen.insert((n, place)) {
                continue;
            }
            let node = &self.work.nodes[n as usize];
            for (slot, &arg) in node.args.iter().enumerate() {
                let RegionArg::Node(m) = arg else { continue };
                let there = self.place(n, slot, m, place);
                if let Some(&(_, phase)) = a.roots.iter().find(|root| root.0 == m) {
                    match (phase, there) {
                        (Phase::Element, Place::Element) => {}
                        (Phase::Reduced, Place::Line) if is_of_lines => {}
                        (Phase::Reduced, Place::Line) => links = Links::AcrossFold,
                        (Phase::Element | Phase::Reduced, _) => return None,
                    }
                } else if !self.cuts.written[m as usize] || b.roots.iter().any(|root| root.0 == m) {
                    stack.push((m, there));
                }
            }
        }
        Some(links)
    }

    /// Where argument `slot` (node `m`) of node `n` is read.
    fn place(&self, n: u32, slot: usize, m: u32, place: Place) -> Place {
        let (node, theirs) = (&self.work.nodes[n as usize], &self.work.nodes[m as usize].meta.shape);
        match (place, node.class) {
            (Place::Elsewhere, _) => Place::Elsewhere,
            (Place::Line, Class::Reduce) if in_step(self.work, n, slot, m) && *theirs == self.shape => Place::Element,
            (_, Class::Reduce) => Place::Elsewhere,
            _ if in_step(self.work, n, slot, m) => place,
            // A value of the line, read for each of its elements.
            (Place::Element, _) if node.op.facts().reads(slot) == Reads::Expanded && *theirs == self.outer => {
                Place::Line
            }
            _ => Place::Elsewhere,
        }
    }

    /// Whether a workgroup can hold the lines of all arrays that the union reads, and all reductions have one type.
    fn are_held(&self, a: &Cluster, b: &Cluster, roots: &[(u32, Phase)]) -> bool {
        let count = self.work.nodes.len() as u32;
        let read = reads_of_union(a, b, roots);
        let is_long = |&read: &u32| match read < count {
            true => self.work.nodes[read as usize].meta.shape == self.shape,
            false => self.work.region.inputs[(read - count) as usize].meta.shape == self.shape,
        };
        let arrays = read.iter().filter(is_long).count() as u32;
        let mut dtypes: FxHashSet<DType> = FxHashSet::default();
        let folds = roots.iter().map(|&(n, _)| &self.work.nodes[n as usize]).filter(|node| node.class == Class::Reduce);
        let all_fit = folds.fold(true, |all, node| {
            dtypes.insert(node.meta.dtype);
            all && node.lines_held > 0 && arrays <= node.lines_held
        });
        all_fit && dtypes.len() == 1
    }
}
