//! Recomputation: lazy values that a cut computes inside a kernel without writing them to memory ("in passing"). Counts
//! what computing them again has cost, and decides when to store them instead.
//!
//! In: a cut whose regions are known. Out: the elements that it computes of each node; which nodes are worth their
//! memory. Must hold: a function of the session's own program and of the devices' memory alone; linear in the cut.
//!
//! A value that is computed as a whole is stored the second time. If only parts of it are read, a cut computes only
//! these parts; it is stored once these have cost as much as the whole value. The result of a library kernel (a product,
//! a sort, a factorisation, a transform) is stored the first time: it takes memory anyway while it is computed, costs far
//! more than that memory, and programs often demand several values made of it one after the other, as the gradients by a
//! network's parameters. A value that takes more than half of its device's memory is never stored for that.

use super::cut::{Cut, Dep};
use super::fates::Fate;
use super::state::State;
use crate::contract::costs::RING_NODE_ELEMENTS;
use smallvec::{SmallVec, smallvec};

impl State {
    /// The cost of computing each node of a cut, in elements: those that the cut computes of it, but at least the
    /// ring's cost for all nodes of the cut.
    pub(super) fn passing_costs(&self, cut: &Cut) -> SmallVec<[u64; 64]> {
        let elements = |position: usize| self.graph[cut.nodes[position].at].node.meta.elements() as u64;
        let mut costs: SmallVec<[u64; 64]> = smallvec![0; cut.nodes.len()];
        for position in (0..cut.nodes.len()).rev() {
            let node = &cut.nodes[position];
            let whole = self.graph[node.at].node.op.facts().computes_all();
            if matches!(node.fate, Fate::Output) || whole && costs[position] > 0 {
                costs[position] = elements(position);
            }
            let computed = if whole { u64::MAX } else { costs[position] };
            for dep in &node.deps {
                if let Dep::Node(p) = *dep {
                    let p = p as usize;
                    costs[p] = costs[p].max(computed.min(elements(p)));
                }
            }
        }
        let overhead = cut.nodes.len() as u64 * RING_NODE_ELEMENTS;
        costs.iter_mut().for_each(|cost| *cost = (*cost).max(overhead));
        costs
    }

    /// Whether to store a lazy value: it is the result of a library kernel, or computing it in passing has cost as much
    /// as computing all of it once; and it fits half of the device's memory.
    pub(super) fn is_worth_keeping(&self, cut: &Cut, position: usize) -> bool {
        let node = &cut.nodes[position];
        let live = &self.graph[node.at];
        let meta = &live.node.meta;
        let device = &self.fleet[node.place.device];
        let bytes = (meta.elements() as u64).saturating_mul(device.element_bytes(meta.dtype));
        let is_due = live.passing.has_cost(meta.elements() as u64);
        (is_due || live.node.op.is_kept_at_once()) && bytes <= device.memory_bytes / 2
    }
}
