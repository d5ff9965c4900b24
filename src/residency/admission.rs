//! Admission control: decides whether a plan may begin while others are in progress on its device.
//!
//! In: plans, and how far they have come. Out: whether there is memory for one more. Must hold: a plan that is alone on
//! its device may always begin; the estimate is never below what the plan's own buffers take. A plan that fits alone
//! completes: it is not admitted if it could take memory that plans in progress still need.

use super::cursor::Cursor;
use super::state::State;
use super::values::segments_of;
use crate::contract::plan::{Plan, Role};
use crate::graph::DType;
use crate::ids::RegionId;

/// Most plans in progress on a device.
const CURSORS_MAX: usize = 16;

impl State {
    /// Whether a plan may begin beside those in progress: the memory that all of them will still take is free, or taken
    /// by values that can be evicted to host memory.
    pub(super) fn may_begin(&self, d: usize, region: RegionId) -> bool {
        let device = &self.devices[d];
        if device.cursors.is_empty() {
            return true;
        }
        if device.cursors.len() >= CURSORS_MAX {
            return false;
        }
        let in_progress: u64 = device.cursors.iter().map(|cursor| self.growth(d, cursor)).sum();
        let wanted = self.profile(d, region).iter().max().map_or(0, |&most| in_progress + most);
        let room = if device.info.capabilities.owns_host_budget { 0 } else { self.host_room() };
        wanted <= self.limit(d).saturating_sub(device.pool.live_bytes()).saturating_add(room)
    }

    /// Whether the plan that is being placed may wait until other plans free memory.
    pub(super) fn may_wait_for_others(&self, d: usize) -> bool {
        !self.devices[d].cursors.is_empty() && !self.devices[d].last_chance
    }

    /// Bytes that the buffers of a plan in progress will take beyond what they take now.
    fn growth(&self, d: usize, cursor: &Cursor) -> u64 {
        let profile = self.profile(d, cursor.plan.region);
        let has = cursor.step.checked_sub(1).and_then(|last| profile.get(last)).copied().unwrap_or(0);
        let most = profile.get(cursor.step..).and_then(|rest| rest.iter().max()).copied().unwrap_or(0);
        most.saturating_sub(has)
    }

    fn profile(&self, d: usize, region: RegionId) -> &[u64] {
        let work = &self.regions[&region];
        work.profile.get_or_init(|| self.profile_of(d, &work.plan))
    }

    /// Bytes of a plan's own buffers that are in use at each step and at its end.
    fn profile_of(&self, d: usize, plan: &Plan) -> Box<[u64]> {
        let end = plan.steps.len();
        let mut profile = vec![0; end + 1];
        let mut add = |first: usize, last: usize, bytes: u64| {
            profile[first.min(end)..=last.min(end)].iter_mut().for_each(|sum| *sum += bytes);
        };
        for buffer in &plan.buffers {
            let bytes = self.charged_for(d, buffer.dtype, buffer.elements, buffer.joined);
            match buffer.role {
                Role::Input(_) => {}
                Role::Scratch => add(buffer.live.0 as usize, buffer.live.1 as usize, bytes),
                Role::Output(_) | Role::Faults => add(buffer.live.0 as usize, end, bytes),
            }
        }
        for (id, meta, buffer) in &plan.outputs {
            // An output that shares a buffer with another value gets its own copy at the end.
            if !matches!(plan.buffers[*buffer as usize].role, Role::Output(own) if own == *id) {
                add(end, end, self.charged_for(d, meta.dtype, meta.elements() as u64, false));
            }
        }
        profile.into_boxed_slice()
    }

    fn charged_for(&self, d: usize, dtype: DType, elements: u64, joined: bool) -> u64 {
        let device = &self.devices[d];
        let shift = device.shift_of(joined, dtype);
        let last = segments_of(elements, shift) as u64 - 1;
        let bytes = |elements: u64| device.pool.charged(elements * device.info.element_bytes(dtype));
        let rest = elements - (last << shift);
        if last > 0 { last * bytes(1 << shift) + bytes(rest) } else { bytes(rest) }
    }
}
