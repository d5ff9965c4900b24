//! Cones: the nodes that a kernel ending at a node would compute, and the buffers that it would read.
//!
//! In: working nodes, and which of them are written out. Out: for every node, the inline nodes below it down to buffers,
//! and these buffers. Must hold: FUSE-1.

use super::bits::Bits;
use super::form::RegionGraph;
use crate::contract::region::RegionArg;

/// For every node, the inline nodes and the buffers below it.
pub struct Cones {
    /// Inline nodes that computing this node computes, itself included.
    pub nodes: Vec<Bits>,
    /// Buffers that it reads: written nodes, then inputs (offset by the number of nodes).
    pub reads: Vec<Bits>,
}

impl Cones {
    /// Empty cones.
    pub fn new(work: &RegionGraph<'_>) -> Cones {
        let (nodes, inputs) = (work.nodes.len(), work.region.inputs.len());
        Cones { nodes: vec![Bits::new(nodes); nodes], reads: vec![Bits::new(nodes + inputs); nodes] }
    }

    /// Computes the cone of one node from those of its arguments; `written` tells which nodes have buffers.
    pub fn compute(&mut self, work: &RegionGraph<'_>, written: &[bool], index: usize) {
        let count = work.nodes.len();
        let mut nodes = Bits::new(count);
        let mut reads = Bits::new(count + work.region.inputs.len());
        nodes.insert(index as u32);
        for &arg in &work.nodes[index].args {
            match arg {
                RegionArg::Node(n) if written[n as usize] => reads.insert(n),
                RegionArg::Node(n) => {
                    nodes.union(&self.nodes[n as usize]);
                    reads.union(&self.reads[n as usize]);
                }
                RegionArg::Input(i) => reads.insert(count as u32 + i),
                RegionArg::Scalar(_) => {}
            }
        }
        self.nodes[index] = nodes;
        self.reads[index] = reads;
    }
}
