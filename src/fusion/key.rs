//! The relative form of a region, hashed: the key of the plan cache.
//!
//! In: working nodes. Out: a hash of structure alone: no ids, sizes, scalars, seeds or slice bounds, except for the
//! decisions that `patches` and `lines` made from them. Shapes are numbered in order of appearance, with a note of
//! which extents are 1 or 0. So regions of one program with other sizes share a key, and the passes from `cut` to
//! `pack` decide the same for them.

use super::form::RegionGraph;
use crate::contract::region::RegionArg;
use crate::graph::Shape;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};

/// The key of a region's grouping on a device, for a limit on the buffers that a kernel reads, packed or not.
pub fn key(work: &RegionGraph<'_>, device: u8, reads_max: u32, packs: bool) -> u64 {
    let mut hasher = FxHasher::default();
    (device, reads_max, packs).hash(&mut hasher);
    let shape_key = |shape: &'_ Shape, hasher: &mut FxHasher, shapes: &mut FxHashMap<Shape, u32>| {
        let next = shapes.len() as u32;
        let number = match shapes.get(shape) {
            Some(&number) => number,
            None => *shapes.entry(shape.clone()).or_insert(next),
        };
        number.hash(hasher);
        shape.rank().hash(hasher);
        for &n in shape.dims() {
            n.min(2).hash(hasher);
        }
    };
    let mut numbered: FxHashMap<Shape, u32> = FxHashMap::default();
    for input in &work.region.inputs {
        input.meta.dtype.hash(&mut hasher);
        shape_key(&input.meta.shape, &mut hasher, &mut numbered);
    }
    for node in &work.nodes {
        node.op.hash_structure(&mut hasher);
        (node.class, node.takes_over, node.apart, node.lines_held).hash(&mut hasher);
        node.output.is_some().hash(&mut hasher);
        node.meta.dtype.hash(&mut hasher);
        shape_key(&node.meta.shape, &mut hasher, &mut numbered);
        node.args.len().hash(&mut hasher);
        for arg in &node.args {
            match arg {
                RegionArg::Node(n) => (0u8, *n).hash(&mut hasher),
                RegionArg::Input(i) => (1u8, *i).hash(&mut hasher),
                RegionArg::Scalar(s) => (2u8, s.dtype()).hash(&mut hasher),
            }
        }
    }
    hasher.finish()
}
