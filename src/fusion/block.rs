//! Plans a block as one kernel, however many ops it has.
//!
//! In: a region that is a block (REGION-5). Out: its plan, assembled: one kernel that computes every node and writes the outputs. Must
//! hold: FUSE-1; the plan depends on the region's structure and on the device's limits alone.

use super::assemble::assemble;
use super::caches::KernelCache;
use super::form::form;
use super::single::{grouping, is_inline};
use super::verify;
use crate::contract::device::DeviceInfo;
use crate::contract::plan::Plan;
use crate::contract::region::Region;

/// The assembled plan of a region that is a block; `None` if its nodes cannot be one kernel.
pub fn plan(region: &Region, device: &DeviceInfo, kernels: &mut KernelCache) -> Option<Plan> {
    let work = form(region);
    if !is_inline(&work) {
        return None;
    }
    verify::work(&work);
    let outputs: Vec<u32> = (0..).zip(&work.nodes).filter(|(_, node)| node.output.is_some()).map(|(n, _)| n).collect();
    let grouping = grouping(&work, &outputs)?;
    verify::clusters(&work, &grouping.written, &grouping.clusters);
    Some(assemble(&work, &grouping, device, kernels, false))
}
