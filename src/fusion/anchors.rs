//! Finds the nodes that are always written to a buffer, whatever the budgets are.
//!
//! In: working nodes with their classes. Out: for every node, whether it always gets a buffer.

use super::form::{Class, RegionGraph, matmul_operand};
use crate::contract::region::RegionArg;
use crate::graph::Op;

/// The nodes that always get a buffer: outputs; nodes that are not inline (reductions, scans, patches, compactions,
/// results of library kernels); operands of library kernels; arrays that are patched; and nodes that have to be computed
/// before a patch (`WorkNode::apart`).
pub fn anchored(work: &RegionGraph<'_>) -> Vec<bool> {
    let mut written = vec![false; work.nodes.len()];
    for (index, node) in work.nodes.iter().enumerate() {
        if node.output.is_some() || node.apart || node.class != Class::Inline {
            written[index] = true;
        }
        let operands: &[RegionArg] = match node.class {
            Class::Library => &node.args,
            // The base of a patch is a buffer by classification; its value is computed in the patch.
            Class::Patch => &node.args[..1],
            Class::Inline | Class::Reduce | Class::Scan | Class::Compact | Class::Empty => &[],
        };
        for &arg in operands {
            let arg = if matches!(node.op, Op::MatMul) { matmul_operand(work, arg).0 } else { arg };
            if let RegionArg::Node(n) = arg {
                written[n as usize] = true;
            }
        }
    }
    written
}
