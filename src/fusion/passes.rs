//! The three lists of passes (of a loop, of a block, and of every other region), with the verifier, the cache, and the
//! retry with a smaller budget.
//!
//! In: a region and its device. Out: a plan. Debug builds verify the result of each pass. With `TIDEMILL_DUMP=DIR` in
//! the environment, the results of all passes are written to files when a structure is planned for the first time
//! (`dump`).

use super::assemble::{assemble, assemble_loop};
use super::block;
use super::budget::Budget;
use super::caches::{Caches, KernelCache};
use super::cluster::cluster;
use super::cut::cut;
use super::dump;
use super::fits::misfit;
use super::form::{RegionGraph, form};
use super::grouping::Grouping;
use super::join::join;
use super::key::key;
use super::lines::lines;
use super::merge::merge;
use super::order::order;
use super::pack::pack;
use super::patches::patches;
use super::roll::Body;
use super::share::share;
use super::single::single;
use super::verify;
use crate::contract::device::DeviceInfo;
use crate::contract::plan::Plan;
use crate::contract::region::Region;
use crate::error::Result;
use std::sync::Arc;

/// Most rounds of `cut` to `share`. Each round writes at least one node more to memory; this many are enough in
/// practice.
const ROUNDS: u32 = 3;

/// Plans a region, by one of three lists of passes: [`loop_passes`] makes one kernel of a loop, [`block_passes`] one of
/// a block, and [`passes`] as many as are needed of every other region, and of loops and blocks that cannot be one
/// kernel.
///
/// The grouping is made from structure alone, so it does not know how many pieces, bindings and bytes a buffer takes.
/// If a kernel turns out to need too many, the region is grouped again into kernels that read less.
///
/// # Errors
/// `ErrorKind::Unsupported` where a single op binds more than the device can, `ErrorKind::OutOfMemory` where it uses
/// more than the device's memory at a time.
pub fn plan(region: &Region, device: &DeviceInfo, caches: &mut Caches) -> Result<Plan> {
    let in_one_kernel = match (region.turns, region.is_block) {
        (1, false) => None,
        (1, true) => block_passes(region, device, &mut caches.kernels),
        _ => loop_passes(region, device, &mut caches.kernels),
    };
    if let Some(plan) = in_one_kernel.filter(|plan| misfit(plan, device).is_none()) {
        return Ok(plan);
    }
    let mut budget = Budget::of(device);
    loop {
        let Passed { key, work, grouping, plan } = passes(region, device, budget, caches);
        match misfit(&plan, device) {
            None => {
                if !plan.cached {
                    dump::first_planned(key, &work, &grouping, &plan, device);
                }
                return Ok(plan);
            }
            Some(error) => budget = budget.tightened(&plan).ok_or(error)?,
        }
    }
}

/// The results of the passes for a region.
struct Passed<'r> {
    key: u64,
    work: RegionGraph<'r>,
    grouping: Arc<Grouping>,
    plan: Plan,
}

/// The passes, in order. Those between `key` and `assemble` depend on structure alone, and are skipped if the cache has
/// their result.
fn passes<'r>(region: &'r Region, device: &DeviceInfo, budget: Budget, caches: &mut Caches) -> Passed<'r> {
    let mut work = form(region);
    verify::work(&work);
    patches(&mut work);
    verify::work(&work);
    lines(&mut work, device);
    verify::lines(&work);
    let key = key(&work, device.id.0, budget.reads_max, budget.packs);
    let (grouping, cached) = caches.grouping(key, || group(&work, budget));
    let plan = assemble(&work, &grouping, device, &mut caches.kernels, cached);
    Passed { key, work, grouping, plan: finished(plan, device) }
}

/// The passes that group nodes into kernels, in order: `cut` to `share` in rounds, then `order` and `pack`.
fn group(work: &RegionGraph<'_>, budget: Budget) -> Grouping {
    let mut extra = Vec::new();
    for round in 1.. {
        let cuts = cut(work, budget, &extra);
        verify::cuts(work, &cuts);
        let mut clusters = cluster(work, &cuts);
        verify::clusters(work, &cuts.written, &clusters);
        merge(work, &cuts, budget, &mut clusters);
        verify::clusters(work, &cuts.written, &clusters);
        let more = if round < ROUNDS { share(work, &clusters, budget) } else { Vec::new() };
        verify::shared(&cuts.written, &more);
        if more.is_empty() {
            clusters = order(clusters, work.nodes.len());
            verify::ordered(work, &cuts.written, &clusters);
            pack(work, &mut clusters, budget);
            verify::ordered(work, &cuts.written, &clusters);
            return Grouping { written: cuts.written, clusters };
        }
        extra.extend(more);
    }
    unreachable!("FUSE-2: the last round returns")
}

/// The passes of a region that is a block (REGION-5), in order; `None` if its nodes cannot be one kernel.
fn block_passes(region: &Region, device: &DeviceInfo, kernels: &mut KernelCache) -> Option<Plan> {
    let work = form(region);
    verify::work(&work);
    let grouping = single(&work, &block::roots(&work))?;
    verify::ordered(&work, &grouping.written, &grouping.clusters);
    let plan = assemble(&work, &grouping, device, kernels, false);
    Some(finished(plan, device))
}

/// The passes of a region of several turns (REGION-4), in order; `None` if its turns cannot be one kernel with a loop.
fn loop_passes(region: &Region, device: &DeviceInfo, kernels: &mut KernelCache) -> Option<Plan> {
    let body = Body::of(region)?;
    let work = form(&body.turn);
    verify::work(&work);
    let grouping = single(&work, &body.carries)?;
    verify::ordered(&work, &grouping.written, &grouping.clusters);
    let plan = assemble_loop(&work, &grouping, device, kernels, region)?;
    Some(finished(plan, device))
}

/// The passes behind `assemble`, in order: those of every plan.
fn finished(mut plan: Plan, device: &DeviceInfo) -> Plan {
    verify::kernels(&plan);
    verify::steps(&plan);
    join(&mut plan, device);
    verify::steps(&plan);
    plan.note_lives();
    verify::lives(&plan);
    plan
}
