//! Makes one cluster, which will become one kernel, for each node that is written to memory.
//!
//! In: working nodes and what is written out. Out: clusters. A cluster has one iteration space. Its roots are the
//! written nodes that it computes: one here, several after `merge`. Must hold: FUSE-1.

use super::bits::Bits;
use super::cones::Cones;
use super::cut::Cuts;
use super::form::{Class, RegionGraph};
use super::grouping::{Cluster, Fold, Phase};
use super::patches::base_of;
use super::source::Source;
use crate::graph::Op;
use rustc_hash::FxHashMap;

/// Makes a cluster of every written node.
pub fn cluster(work: &RegionGraph<'_>, cuts: &Cuts) -> Vec<Cluster> {
    let mut cones = Cones::new(work);
    let mut clusters = Vec::new();
    let overwritten = overwritten(work);
    for (index, node) in work.nodes.iter().enumerate() {
        cones.compute(work, &cuts.written, index);
        if !cuts.written[index] || node.class == Class::Empty {
            continue;
        }
        let (shape, fold, phase) = match node.class {
            Class::Reduce => {
                let Op::Reduce { dims, .. } = node.op else {
                    unreachable!("FUSE-1: only reductions are of this class")
                };
                (work.arg_shape(node.args[0]), Fold::Reduce(dims), Phase::Reduced)
            }
            Class::Scan => {
                let Op::Scan { dim, reverse, .. } = node.op else {
                    unreachable!("FUSE-1: only scans are of this class")
                };
                (node.meta.shape.clone(), Fold::Scan { dim, reverse }, Phase::Element)
            }
            Class::Inline => (node.meta.shape.clone(), Fold::None, Phase::Element),
            Class::Patch | Class::Compact | Class::Library | Class::Empty => {
                (node.meta.shape.clone(), Fold::Alone, Phase::Element)
            }
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

/// The buffers that are partly overwritten in place, and by which node.
fn overwritten(work: &RegionGraph<'_>) -> FxHashMap<u32, u32> {
    let count = work.nodes.len() as u32;
    let patches = (0..count).filter(|&n| work.nodes[n as usize].takes_over);
    let of = |n: u32| match base_of(work, n)? {
        Source::Node(base) => Some((base, n)),
        Source::Input(i) => Some((count + i, n)),
        Source::Scratch(_) | Source::Pack(_) => None,
    };
    patches.filter_map(of).collect()
}
