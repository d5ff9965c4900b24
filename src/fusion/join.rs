//! Joins segments: if a kernel uses all of an array that is kept in segments, the array is copied to a joined buffer
//! for it.
//!
//! In: a plan whose kernels were made for pieces as long as a binding can span. Out: the same kernels, with copies
//! around them for arrays that a tight budget keeps in shorter segments. Must hold: PLAN-4; the kernels do not change,
//! so their results do not depend on the budget.

use crate::contract::device::DeviceInfo;
use crate::contract::plan::{Launch, Plan, PlanBuffer, Program, Role, Step, Use};
use crate::kernels::ir::{Form, Geometry, reduce_plan};
use std::sync::Arc;

/// Adds the copies and the joined buffers to a plan.
pub fn join(plan: &mut Plan, device: &DeviceInfo) {
    if device.segment_shift >= device.span_shift {
        return;
    }
    let is_long = |buffer: &PlanBuffer| buffer.elements > 1 << device.segment_shift_of(buffer.dtype);
    if !plan.buffers.iter().any(is_long) {
        return;
    }
    let mut apart: Vec<bool> = plan.buffers.iter().map(is_long).collect();
    for buffer in used_at_once_only(plan) {
        plan.buffers[buffer].joined |= std::mem::take(&mut apart[buffer]);
    }
    let steps = std::mem::take(&mut plan.steps);
    let mut joining = Joining { plan, apart, device, newest: Vec::new() };
    for step in steps {
        joining.step(step);
    }
    joining.put_back(|_| true);
}

/// Scratch buffers that launches use untiled only, and no other steps than packing: they can be joined from the start,
/// without copies.
fn used_at_once_only(plan: &Plan) -> Vec<usize> {
    let mut only: Vec<bool> =
        plan.buffers.iter().map(|b| matches!(b.role, Role::Scratch) && b.in_place_of.is_none()).collect();
    for step in &plan.steps {
        match step {
            Step::Launch(launch) => {
                launch.uses.iter().filter(|used| used.tiled).for_each(|used| only[used.buffer as usize] = false);
            }
            Step::Copy { from, to } => {
                only[*from as usize] = false;
                only[*to as usize] = false;
            }
            Step::Pack { .. } => {}
        }
    }
    (0..only.len()).filter(|&b| only[b]).collect()
}

struct Joining<'p> {
    /// The plan, with the steps that were processed so far.
    plan: &'p mut Plan,
    /// For each buffer, whether it has several segments.
    apart: Vec<bool>,
    device: &'p DeviceInfo,
    /// Buffers whose newest contents are in a joined buffer, with that buffer. They stay there while launches in a row
    /// use the array as a whole.
    newest: Vec<(u32, u32)>,
}

impl Joining<'_> {
    fn step(&mut self, step: Step) {
        match step {
            Step::Launch(launch) => self.launch(launch),
            Step::Pack { from, to, first } if self.apart[from as usize] => {
                let (joined, _) = self.joined(from, true);
                self.plan.steps.push(Step::Pack { from: joined, to, first });
            }
            Step::Copy { from, to } | Step::Pack { from, to, .. } => {
                self.put_back(|buffer| buffer == from || buffer == to);
                self.plan.steps.push(step);
            }
        }
    }

    fn launch(&mut self, mut launch: Arc<Launch>) {
        let chunk = chunk(&launch);
        let holds_chunk =
            |used: &Use| chunk <= 1 << self.device.segment_shift_of(self.plan.buffers[used.buffer as usize].dtype);
        let tiled = launch.uses.iter().filter(|used| used.tiled).all(holds_chunk);
        let at_once = |used: &Use| !(used.tiled && tiled);
        self.put_back(|buffer| launch.uses.iter().any(|used| !at_once(used) && used.buffer == buffer));
        let at_once = |used: &&Use| at_once(used) && self.apart[used.buffer as usize];
        let mut buffers: Vec<u32> = launch.uses.iter().filter(at_once).map(|used| used.buffer).collect();
        buffers.sort_unstable();
        buffers.dedup();
        for buffer in buffers {
            let uses = || launch.uses.iter().filter(|used| used.buffer == buffer);
            let (reads, writes) = (uses().any(|used| used.reads), uses().any(|used| used.writes));
            let (joined, is_newest) = self.joined(buffer, reads);
            if writes && !is_newest {
                self.newest.push((buffer, joined));
            }
            for used in Arc::make_mut(&mut launch).uses.iter_mut().filter(|used| used.buffer == buffer) {
                used.buffer = joined;
            }
        }
        self.plan.steps.push(Step::Launch(launch));
    }

    /// The joined buffer that stands for a buffer from here on, and whether the newest contents were in it already.
    fn joined(&mut self, buffer: u32, reads: bool) -> (u32, bool) {
        if let Some(&(_, joined)) = self.newest.iter().find(|(of, _)| *of == buffer) {
            return (joined, true);
        }
        let PlanBuffer { dtype, elements, .. } = self.plan.buffers[buffer as usize];
        let joined = self.plan.buffers.len() as u32;
        self.plan.buffers.push(PlanBuffer { joined: true, ..PlanBuffer::new(Role::Scratch, dtype, elements) });
        if reads {
            self.plan.steps.push(Step::Copy { from: buffer, to: joined });
        }
        (joined, false)
    }

    /// Copies the newest contents of these buffers back to their segments.
    fn put_back(&mut self, of: impl Fn(u32) -> bool) {
        let steps = &mut self.plan.steps;
        self.newest.retain(|&(buffer, joined)| {
            let now = of(buffer);
            if now {
                steps.push(Step::Copy { from: joined, to: buffer });
            }
            !now
        });
    }
}

/// The number of elements that a launch's tiles must not split.
fn chunk(launch: &Launch) -> u64 {
    match (&launch.program, launch.geometry) {
        (Program::Kernel(kernel, _), Geometry::Reduce { outer, inner }) => {
            reduce_plan(outer, inner, matches!(kernel.form, Form::Reduce { inner_fast: true })).chunk as u64
        }
        _ => 1,
    }
}
