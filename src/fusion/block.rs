//! Plans a block as one kernel, however many ops it has.
//!
//! In: a region that is a block (REGION-5). Out: its plan: one kernel that computes every node and writes the outputs. Must
//! hold: FUSE-1; the plan depends on the region's structure and on the device's limits alone.

use super::assemble::assemble;
use super::bits::Bits;
use super::caches::KernelCache;
use super::form::{Class, Work, form};
use super::grouping::{Cluster, Fold, Grouping, Phase};
use super::join::join;
use super::verify;
use crate::contract::device::DeviceInfo;
use crate::contract::plan::Plan;
use crate::contract::region::{Region, RegionArg};
use smallvec::smallvec;

/// The plan of a region that is a block; `None` if its nodes cannot be one kernel.
pub fn plan(region: &Region, device: &DeviceInfo, kernels: &mut KernelCache) -> Option<Plan> {
    let work = form(region);
    if work.nodes.len() != region.nodes.len() || work.nodes.iter().any(|node| node.class != Class::Inline) {
        return None;
    }
    verify::work(&work);
    let grouping = grouping(&work)?;
    verify::clusters(&work, &grouping.written, &grouping.clusters);
    let mut plan = assemble(&work, &grouping, device, kernels, false);
    verify::kernels(&plan);
    verify::steps(&plan);
    join(&mut plan, device);
    verify::steps(&plan);
    plan.note_lives();
    Some(plan)
}

/// A grouping with one kernel, whose roots are the outputs. `None` if there is no output, or outputs have several shapes.
fn grouping(work: &Work<'_>) -> Option<Grouping> {
    let (nodes, inputs) = (work.nodes.len(), work.region.inputs.len());
    let written: Vec<bool> = work.nodes.iter().map(|node| node.output.is_some()).collect();
    let roots: Vec<(u32, Phase)> =
        (0..nodes as u32).filter(|&n| written[n as usize]).map(|n| (n, Phase::Element)).collect();
    let shape = work.nodes[roots.first()?.0 as usize].meta.shape.clone();
    if roots.iter().any(|&(n, _)| work.nodes[n as usize].meta.shape != shape) {
        return None;
    }
    let mut members = Bits::new(nodes);
    let mut reads = Bits::new(nodes + inputs);
    for (n, node) in work.nodes.iter().enumerate() {
        members.insert(n as u32);
        for &arg in &node.args {
            if let RegionArg::Input(i) = arg {
                reads.insert(nodes as u32 + i);
            }
        }
    }
    let cluster = Cluster {
        shape,
        fold: Fold::None,
        roots,
        members,
        reads,
        packed: Bits::new(nodes + inputs),
        before: smallvec![],
        split: None,
    };
    Some(Grouping { written, clusters: vec![cluster] })
}
