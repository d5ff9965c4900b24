//! Finds the blocks of a tape, each of which is planned as one kernel.
//!
//! In: nodes in tape order, each with the block in which it was recorded (`Node::block`): a derivative records some turns of
//! a loop and their backward pass as a block, so that what both compute stays in registers. Out: the same nodes in parts.
//! Must hold: REGION-5; the parts depend on the nodes and on the device's numbers alone.

use super::cut::{Cut, Dep};
use super::state::State;
use crate::contract::device::DeviceInfo;
use crate::graph::{Meta, Node};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

/// Most nodes of a block. It is twice the most of a loop's body (`loops`): a driver may unroll a loop, but not a block.
const BLOCK_NODES_MAX: usize = 512;
/// The most values of a block that are visible outside: a kernel holds each of them in a register until its end.
const OUTPUTS_MAX: usize = 16;

impl State {
    /// Divides `portion` (positions in a cut, in tape order) into blocks and the nodes between them, in order. The flag says
    /// which parts are blocks.
    pub(super) fn blocks<'a>(
        &self,
        cut: &Cut,
        portion: &'a [u32],
        device: &DeviceInfo,
    ) -> SmallVec<[(&'a [u32], bool); 1]> {
        let block_of = |position: &u32| self.graph[cut.nodes[*position as usize].at].node.block;
        if self.never_rolls || portion.iter().all(|position| block_of(position) == 0) {
            return smallvec![(portion, false)];
        }
        let mut parts: SmallVec<[(&[u32], bool); 1]> = SmallVec::new();
        let mut first = 0;
        for run in portion.chunk_by(|a, b| block_of(a) == block_of(b)) {
            let is_block = block_of(&run[0]) != 0 && self.fits_a_kernel(cut, run, device);
            match parts.last_mut() {
                // Runs that are no blocks are one part.
                Some((last, false)) if !is_block => {
                    let begin = first - last.len();
                    *last = &portion[begin..first + run.len()];
                }
                _ => parts.push((run, is_block)),
            }
            first += run.len();
        }
        parts
    }

    /// Whether the nodes of a block are a kernel that the device can bind.
    fn fits_a_kernel(&self, cut: &Cut, block: &[u32], device: &DeviceInfo) -> bool {
        let node_of = |position: u32| -> &Node { &self.graph[cut.nodes[position as usize].at].node };
        let arrays = || block.iter().map(|&position| node_of(position)).filter(|node| !node.op.is_number());
        let Some(shape) = arrays().next().map(|node| &node.meta.shape) else { return false };
        let is_one_shape = shape.elements() > 1 && arrays().all(|node| node.meta.shape == *shape);
        if block.len() > BLOCK_NODES_MAX || !is_one_shape || !block.iter().all(|&p| node_of(p).op.is_elementwise()) {
            return false;
        }
        // How often nodes of the block are read in it, and what it reads from outside.
        let mut users: FxHashMap<u32, u32> = FxHashMap::default();
        let mut read: Vec<Dep> = Vec::new();
        for &position in block {
            for dep in &cut.nodes[position as usize].deps {
                match *dep {
                    Dep::Node(p) if block.binary_search(&p).is_ok() => *users.entry(p).or_default() += 1,
                    outside if !read.contains(&outside) => read.push(outside),
                    _ => {}
                }
            }
        }
        let is_seen = |position: &&u32| {
            let node = &cut.nodes[**position as usize];
            let live = &self.graph[node.at];
            node.root || live.held || live.users != users.get(*position).copied().unwrap_or(0)
        };
        let seen: Vec<u32> = block.iter().filter(is_seen).copied().collect();
        let pieces = |meta: &Meta| device.pieces(meta.dtype, meta.elements() as u64);
        let inputs: u64 = read.iter().map(|&dep| pieces(self.meta_of(cut, dep))).sum();
        let outputs: u64 = seen.iter().map(|&position| pieces(&node_of(position).meta)).sum();
        let are_arrays = seen.iter().all(|&position| !node_of(position).op.is_number());
        are_arrays && seen.len() <= OUTPUTS_MAX && 1 + inputs + outputs <= device.bindings_max as u64
    }
}
