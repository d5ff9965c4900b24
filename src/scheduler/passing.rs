//! Lazy values that a cut computes and does not keep: what computing them again has cost, and when they are kept
//! instead.
//!
//! In: a cut whose regions are known. Out: elements that it computes of each node; which nodes are worth their memory.
//! Must hold: a function of the session's own program and of the devices' memory alone; linear in the cut.
//!
//! Computed as a whole, a value is kept the second time. Of one that is read in parts alone, a cut computes these
//! parts, and that may happen often before it has cost as much as the whole. The result of a library kernel (a product, a
//! sorting permutation, a factorisation, a transform) is kept at once: it has memory of its own while it is computed,
//! costs far more than that memory, and is often demanded for several values, one after the other, as the gradients by
//! the parameters of a network are. What no memory holds is never kept.

use super::cut::{Cut, Dep, Fate};
use super::state::State;
use smallvec::{SmallVec, smallvec};

/// What taking one node of a region through the ring costs, in elements that could be computed meanwhile.
const NODE_ELEMENTS: u64 = 2048;

impl State {
    /// What computing each node of a cut costs, in elements: those that the cut computes of it, and at least what
    /// the cut's nodes cost however little they compute, since it was taken along with all of them.
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
        let overhead = cut.nodes.len() as u64 * NODE_ELEMENTS;
        costs.iter_mut().for_each(|cost| *cost = (*cost).max(overhead));
        costs
    }

    /// Whether a lazy value is the result of a library kernel, or has been computed so often in passing that it had better be
    /// kept, and could be.
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
