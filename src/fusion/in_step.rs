//! Tells whether an argument is read at the same element that is being computed ("in step").
//!
//! In: a working node and one of its arguments. Out: yes, or no where it is read through an index map, or all of it is.

use super::form::RegionGraph;
use crate::graph::Reads;

/// Whether argument `slot` (node `m`) of node `n` is read at `n`'s own element.
pub fn in_step(work: &RegionGraph<'_>, n: u32, slot: usize, m: u32) -> bool {
    let (node, arg) = (&work.nodes[n as usize], &work.nodes[m as usize]);
    match node.op.facts().reads(slot) {
        Reads::Expanded => arg.meta.shape == node.meta.shape,
        Reads::Folded => arg.meta.shape == work.arg_shape(node.args[0]),
        Reads::Same | Reads::Base => true,
        // Other entries of an index array than the element's own may be read, too.
        Reads::Index
        | Reads::AtIndex
        | Reads::Number
        | Reads::Moved
        | Reads::Part
        | Reads::Repeated
        | Reads::Joined
        | Reads::Spread
        | Reads::All => false,
    }
}
