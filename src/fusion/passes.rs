//! The list of passes.
//!
//! In: a region and its device. Out: a plan. Every stage's result can be printed (`dump`): with `TIDEMILL_DUMP=DIR` in
//! the environment, a structure that is planned for the first time is written down after each pass.

use super::assemble::assemble;
use super::cluster::{Grouping, group};
use super::cut::Budget;
use super::dump;
use super::fits::misfit;
use super::form::form;
use super::join::join;
use super::key::key;
use super::state::Caches;
use crate::contract::device::DeviceInfo;
use crate::contract::plan::{Plan, Program, Step};
use crate::contract::region::Region;
use crate::error::Result;
use std::sync::Arc;

/// Plans a region.
///
/// A buffer in several pieces takes several bindings, and memory, which the grouping (made from structure alone) does
/// not see: where a kernel turns out to take too much, the region is grouped again into kernels that read less.
///
/// # Errors
/// `ErrorKind::Unsupported` where a single op binds more than the device can, `ErrorKind::OutOfMemory` where it uses
/// more than the device's memory at a time.
pub fn plan(region: &Region, device: &DeviceInfo, caches: &mut Caches) -> Result<Plan> {
    let work = form(region);
    let mut budget = Budget::of(device);
    loop {
        let key = key(&work, device.id.0, budget.reads_max, budget.packs);
        let known: Option<Arc<Grouping>> = caches.groupings.get(key);
        let cached = known.is_some();
        let grouping = known.unwrap_or_else(|| {
            let grouping = Arc::new(group(&work, budget));
            caches.groupings.insert(key, grouping.clone());
            grouping
        });
        let mut plan = assemble(&work, &grouping, device, &mut caches.kernels, cached);
        join(&mut plan, device);
        plan.note_lives();
        match misfit(&plan, device) {
            // What is packed may not fit one piece of memory, or not beside what it is copied from.
            Some(_) if budget.packs && plan.steps.iter().any(|step| matches!(step, Step::Pack { .. })) => {
                budget.packs = false;
            }
            Some(_) if budget.reads_max > 1 => budget.reads_max = (budget.reads_max / 4).max(1),
            Some(error) => return Err(error),
            None => {
                if cfg!(debug_assertions) {
                    verify(&plan);
                }
                if !cached {
                    dump::first_planned(key, &work, &grouping, &plan, device);
                }
                return Ok(plan);
            }
        }
    }
}

/// Checks PLAN-1, PLAN-3 and every kernel.
pub fn verify(plan: &Plan) {
    use crate::contract::plan::Role;
    let mut written = vec![false; plan.buffers.len()];
    for (b, buffer) in plan.buffers.iter().enumerate() {
        written[b] = matches!(buffer.role, Role::Input(_))
            || buffer.zeroed
            || buffer.in_place_of.is_some()
            || buffer.elements == 0;
    }
    for step in &plan.steps {
        match step {
            Step::Copy { from, to } | Step::Pack { from, to, .. } => {
                assert!(written[*from as usize], "PLAN-1: a copy reads a buffer that nothing wrote");
                written[*to as usize] = true;
            }
            Step::Launch(launch) => {
                for used in &launch.uses {
                    let read_only = used.reads && !used.writes;
                    assert!(
                        !read_only || written[used.buffer as usize],
                        "PLAN-1: {} reads a buffer that nothing wrote",
                        launch.label
                    );
                }
                for used in launch.uses.iter().filter(|u| u.writes) {
                    written[used.buffer as usize] = true;
                }
                if let Program::Kernel(kernel, _) = &launch.program {
                    assert_eq!(kernel.operands.len(), launch.uses.len(), "PLAN-3");
                    if let Err(broken) = crate::kernels::verify::verify(kernel) {
                        panic!("{broken}, in {}", launch.label);
                    }
                }
            }
        }
    }
}
