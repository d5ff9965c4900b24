//! Whether an argument is read at the element that is being computed.
//!
//! In: a working node and one of its arguments. Out: yes, or no where it is read through an index map, or all of it is.

use super::form::Work;
use crate::graph::{Op, View};

/// Whether argument `slot` (node `m`) of node `n` is read at `n`'s own element.
pub fn in_step(work: &Work<'_>, n: u32, slot: usize, m: u32) -> bool {
    let (node, arg) = (&work.nodes[n as usize], &work.nodes[m as usize]);
    match &node.op {
        Op::Apply(_) | Op::Ensure { .. } => arg.meta.shape == node.meta.shape,
        Op::Reduce { .. } | Op::Scan { .. } => arg.meta.shape == work.arg_shape(node.args[0]),
        Op::View(View::Reshape) | Op::Triangle { .. } => true,
        Op::AssignSlice(_) => slot == 0,
        _ => false,
    }
}
