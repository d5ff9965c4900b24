//! Packs operands of a kernel into one buffer, so that they share a binding.
//!
//! In: a cluster that reads more buffers than the device binds. Out: which of them are copied together before it runs,
//! a copy for each dtype. Only what expands in the kernel's space is packed: copying it costs a fraction of what
//! writing and reading the chain's intermediate value would.
//! Must hold: FUSE-3: what is packed is a function of structure alone; no more is packed than has to be.

use super::bits::Bits;
use super::budget::Budget;
use super::form::RegionGraph;
use super::grouping::{Cluster, Fold};
use crate::contract::region::RegionArg;
use crate::graph::{DType, Reads, Shape};

/// The least number of bindings that a kernel of these nodes needs for its reads.
pub fn bound(work: &RegionGraph<'_>, members: &Bits, reads: &Bits, space: &Shape, budget: Budget) -> u32 {
    let count = reads.count();
    if count <= budget.reads_max || !budget.packs {
        return count;
    }
    let expanding = expanding(work, members, reads, space);
    let mut dtypes: Vec<DType> = expanding.iter().map(|&read| meta(work, read).1).collect();
    dtypes.sort_unstable_by_key(|dtype| *dtype as u8);
    dtypes.dedup();
    count - expanding.len() as u32 + dtypes.len() as u32
}

/// Chooses, for each cluster, the reads that are packed.
pub fn pack(work: &RegionGraph<'_>, clusters: &mut [Cluster], budget: Budget) {
    for cluster in clusters {
        cluster.packed = chosen(work, cluster, budget);
    }
}

/// The reads of a cluster that are packed: none if they fit the budget.
fn chosen(work: &RegionGraph<'_>, cluster: &Cluster, budget: Budget) -> Bits {
    let outputs = cluster.roots.len() as u32;
    let mut left = cluster.reads.count();
    let fits = |left: u32, packs: usize| left + packs as u32 + outputs <= budget.reads_max + 1;
    if !budget.packs || fits(left, 0) || cluster.fold == Fold::Alone {
        return Bits::new(0);
    }
    let mut list = expanding(work, &cluster.members, &cluster.reads, &cluster.shape);
    // The operands with fewer dimensions come first; sizes are not known here.
    let extents = |read: u32| meta(work, read).0.dims().iter().filter(|&&n| n != 1).count();
    list.sort_by_key(|&read| extents(read));
    let mut packed = Bits::new(work.nodes.len() + work.region.inputs.len());
    let mut dtypes: Vec<DType> = Vec::new();
    for read in list {
        if fits(left, dtypes.len()) {
            break;
        }
        packed.insert(read);
        left -= 1;
        let dtype = meta(work, read).1;
        if !dtypes.contains(&dtype) {
            dtypes.push(dtype);
        }
    }
    packed
}

/// The reads that are smaller than the space and that only elementwise ops use.
fn expanding(work: &RegionGraph<'_>, members: &Bits, reads: &Bits, space: &Shape) -> Vec<u32> {
    let count = work.nodes.len() as u32;
    let is_smaller = |shape: &Shape| (0..space.rank()).any(|d| shape.dim(d) == 1 && space.dim(d) != 1);
    let mut list: Vec<u32> = reads.iter().filter(|&read| is_smaller(&meta(work, read).0)).collect();
    for n in members.iter() {
        let node = &work.nodes[n as usize];
        let facts = node.op.facts();
        for (slot, &arg) in node.args.iter().enumerate() {
            if facts.reads(slot) == Reads::Expanded {
                continue;
            }
            let read = match arg {
                RegionArg::Node(n) => n,
                RegionArg::Input(i) => count + i,
                RegionArg::Scalar(_) => continue,
            };
            list.retain(|&r| r != read);
        }
    }
    list
}

fn meta(work: &RegionGraph<'_>, read: u32) -> (Shape, DType) {
    let count = work.nodes.len() as u32;
    let meta = match read {
        n if n < count => &work.nodes[n as usize].meta,
        i => &work.region.inputs[(i - count) as usize].meta,
    };
    (meta.shape.clone(), meta.dtype)
}
