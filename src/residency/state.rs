//! The residency actor's state and its event loop: which plans wait, which ones each device is placing, which batches
//! are in flight.
//!
//! In: [`ResidencyEvent`]s. Out: [`ResidencyOutput`]s. No channel, clock, thread or device handle.
//! Must hold: the invariants listed in the folder's `mod.rs`; [`State::validate`] checks them.

use super::device::Device;
use super::intervals::Intervals;
use super::story::Story;
use super::values::{Key, Status, Value};
use crate::config::Config;
use crate::contract::batch::Transfer;
use crate::contract::costs::SLICE_US;
use crate::contract::device::DeviceInfo;
use crate::contract::messages::residency::{Eviction, ResidencyEvent, ResidencyOutput};
use crate::contract::plan::{Plan, PlanInput};
use crate::contract::region::{RegionInput, cancelled_error};
use crate::error::{Error, ErrorKind};
use crate::ids::{BatchId, DeviceId, RegionId, ValueId};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::cell::OnceCell;
use std::collections::VecDeque;
use std::sync::Arc;

/// Running totals, for the counters that users see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Kernels whose launches were placed, each counted once however many tiles it runs in.
    pub kernels: u64,
    /// Nanoseconds that devices spent on batches.
    pub device_ns: u64,
    /// Nanoseconds that these batches were estimated to take.
    pub estimated_ns: u64,
    /// Slots served from free memory.
    pub pool_hits: u64,
    /// Slots for which a buffer was allocated.
    pub pool_misses: u64,
    /// Segments evicted.
    pub evictions: u64,
    /// Bytes evicted.
    pub bytes_evicted: u64,
    /// Buffers that a step needed beyond the budget.
    pub beyond_budget: u64,
    /// Outputs that took over an input's memory.
    pub reused_in_place: u64,
    /// Bytes that values and pools take on all devices now.
    pub bytes_resident: u64,
    /// Bytes of host memory that values take, and copies of those on other devices.
    pub bytes_host: u64,
    /// Bytes of free buffers in the host's pool.
    pub bytes_host_idle: u64,
    /// The most that they took.
    pub bytes_resident_peak: u64,
    /// Bytes in pools that no value takes.
    pub bytes_pooled: u64,
    /// Bytes of pools that were returned to the system after they had been unused for a while.
    pub bytes_returned: u64,
    /// Batches that devices were sent and have not reported back.
    pub batches_in_flight: u64,
    /// Bytes that these batches upload or read back.
    pub bytes_in_flight: u64,
    /// The most of them.
    pub bytes_in_flight_peak: u64,
}

/// The phase of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Waiting,
    Placing,
    Placed,
}

/// A region between the arrival of its plan and its end.
#[derive(Debug)]
pub(super) struct PlannedRegion {
    pub(super) plan: Arc<Plan>,
    /// Estimated microseconds of its launches.
    pub(super) work_us: f64,
    /// Measured microseconds of device time that its batches took.
    pub(super) took_us: f64,
    /// Set when it begins: it takes its device longer than a slice, or reads an output of a region that does.
    pub(super) long: bool,
    pub(super) arrival: u64,
    /// Inputs that are not placed yet.
    pub(super) missing: u32,
    /// Bytes of its own buffers that are in use at each step. Computed at the first use.
    pub(super) profile: OnceCell<Box<[u64]>>,
    pub(super) phase: Phase,
    /// Its batches that have not been reported back.
    pub(super) batches: u32,
    /// Unfinished regions whose outputs it reads.
    pub(super) depends: SmallVec<[RegionId; 2]>,
    /// Unfinished batches of others whose uploads it reads.
    pub(super) depends_batches: SmallVec<[BatchId; 2]>,
    pub(super) faults: Vec<u32>,
}

/// A readback on its way: the segment that it brings to host memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) key: Key,
    pub(super) device: usize,
    pub(super) segment: u32,
    /// Bytes reserved of the host budget.
    pub(super) host_bytes: u64,
    /// Bytes that count as draining until it arrives.
    pub(super) draining_bytes: u64,
}

/// The residency actor.
#[derive(Debug)]
pub struct State {
    pub(super) devices: Vec<Device>,
    /// Most work in a batch before other sessions take a turn, in estimated microseconds.
    pub(super) slice_us: f64,
    /// Most batches that a device may be sent at a time, whatever it could hold.
    pub(super) batches_in_flight: u32,
    pub(super) values: FxHashMap<Key, Value>,
    pub(super) regions: FxHashMap<RegionId, PlannedRegion>,
    pub(super) transfers: FxHashMap<Transfer, Arrival>,
    pub(super) retire_after: FxHashMap<RegionId, Vec<ValueId>>,
    /// Regions that were placed or failed.
    pub(super) ended: Intervals,
    /// Regions whose plan arrived or that could not be planned.
    pub(super) seen: Intervals,
    /// The last error of a region that could not be planned.
    pub(super) plan_error: Option<Error>,
    /// Regions that were cancelled before their plans arrived. This is no phase of `regions`, whose entries begin with
    /// the plan.
    pub(super) cancelled_early: FxHashSet<RegionId>,
    /// Regions to fail, before anything else is done.
    pub(super) failing: VecDeque<(RegionId, Error)>,
    /// Bytes of evicted and read-back values in host memory (and on their way), which count against the
    /// host device's budget.
    pub(super) host_copy_bytes: u64,
    /// Bytes of the host device's budget that front ends hold (CLAIMS-1).
    pub(super) claimed_bytes: u64,
    pub(super) next: u64,
    pub(super) clock: u64,
    pub(super) totals: Totals,
    pub(super) story: Story,
    /// Evictions during the current event, reported at its end.
    pub(super) evictions: Vec<Eviction>,
}

impl State {
    /// A state over these devices; each one's `id` is its position, and device 0 is the host.
    pub fn new(devices: Vec<DeviceInfo>, config: &Config) -> State {
        let batches_in_flight = config.batches_in_flight;
        State {
            devices: devices.into_iter().map(|info| Device::new(info, batches_in_flight)).collect(),
            slice_us: config.injection().slice_us().unwrap_or(SLICE_US),
            batches_in_flight,
            values: FxHashMap::default(),
            regions: FxHashMap::default(),
            transfers: FxHashMap::default(),
            retire_after: FxHashMap::default(),
            ended: Intervals::default(),
            seen: Intervals::default(),
            plan_error: None,
            cancelled_early: FxHashSet::default(),
            failing: VecDeque::new(),
            host_copy_bytes: 0,
            claimed_bytes: 0,
            next: 0,
            clock: 0,
            totals: Totals::default(),
            story: Story::default(),
            evictions: Vec::new(),
        }
    }

    /// Handles one event.
    pub fn handle(&mut self, event: ResidencyEvent, out: &mut Vec<ResidencyOutput>) {
        match event {
            ResidencyEvent::PlanReady(plan) => self.plan_ready(plan),
            ResidencyEvent::ValueRetired { value, after } => self.value_retired(value, after),
            ResidencyEvent::RegionPlanFailed { region, inputs, error } => {
                self.region_plan_failed(region, inputs, error)
            }
            ResidencyEvent::RegionCancelled(region) => self.region_cancelled(region),
            ResidencyEvent::RegionSkipped(region) => {
                self.seen.insert(region);
                self.end_region(region);
                self.fail_orphans();
            }
            ResidencyEvent::ValuesFailed { values, error } => {
                for value in values {
                    self.fail_value(Key::Value(value), &error, out);
                }
            }
            ResidencyEvent::DeviceOpened(info) => {
                self.devices[0].info.give_up(info.host_share_bytes);
                self.devices.push(Device::new(info, self.batches_in_flight));
            }
            ResidencyEvent::IdlePassed { all } => self.idle_passed(all, out),
            ResidencyEvent::BatchFinished { device, batch, faults, device_ns } => {
                self.batch_finished(device, batch, faults, device_ns, out);
            }
            ResidencyEvent::BatchFailed { device, batch, error } => self.batch_failed(device, batch, error, out),
            ResidencyEvent::ReadbackDone { transfer, data } => self.readback_done(transfer, data, out),
            ResidencyEvent::DeviceLost { device, error, replaced } => self.device_lost(device, error, replaced, out),
        }
        self.pump(out);
        out.extend(self.evictions.drain(..).map(ResidencyOutput::Evicted));
    }

    /// Sets the bytes of the host's budget that front ends hold (CLAIMS-1).
    pub fn claimed_beside(&mut self, bytes: u64) {
        self.claimed_bytes = bytes;
    }

    /// Counters since the start.
    pub fn totals(&self) -> Totals {
        let bytes_resident = self.devices.iter().map(|d| d.pool.total_bytes()).sum();
        let bytes_pooled = self.devices.iter().map(|d| d.pool.total_bytes() - d.pool.live_bytes()).sum();
        let batches_in_flight = self.devices.iter().map(|d| d.in_flight as u64).sum();
        let bytes_in_flight = self.bytes_in_flight();
        let host = &self.devices[0].pool;
        let bytes_host = self.host_copy_bytes + host.live_bytes();
        let bytes_host_idle = host.total_bytes() - host.live_bytes();
        Totals {
            bytes_resident,
            bytes_host,
            bytes_host_idle,
            bytes_pooled,
            batches_in_flight,
            bytes_in_flight,
            ..self.totals
        }
    }

    /// Bytes on their way between the host and all devices.
    pub(super) fn bytes_in_flight(&self) -> u64 {
        self.devices.iter().map(|d| d.link_bytes).sum()
    }

    /// The latest transitions of a value, oldest first, and where it is now.
    #[cfg(test)]
    pub fn story(&self, value: ValueId) -> Vec<String> {
        let key = Key::Value(value);
        let mut lines = self.story.of(key);
        lines.push(match self.values.get(&key) {
            None => "unknown".to_owned(),
            Some(v) => {
                let places: Vec<String> = v
                    .copies
                    .iter()
                    .map(|c| {
                        let filled = c.segments.iter().filter(|s| s.slot().is_some()).count();
                        format!(", {filled} of {} segments on device {}", c.segments.len(), c.device)
                    })
                    .collect();
                let host = if v.whole.is_some() { ", in host memory" } else { "" };
                let status = match &v.status {
                    Status::Pending => "not made yet",
                    Status::Placed => "made",
                    Status::Failed(_) => "failed",
                };
                format!("{status}{host}{}", places.concat())
            }
        });
        lines
    }

    /// Regions that arrived and have neither finished nor failed.
    #[cfg(test)]
    pub fn regions_open(&self) -> usize {
        self.regions.len()
    }

    /// Entries of each table by name. A number that grows with all sessions or regions that ever existed is a leak.
    #[cfg(test)]
    pub(crate) fn tables(&self) -> Vec<(&'static str, usize)> {
        let mut tables = vec![
            ("residency values", self.values.len()),
            ("residency regions", self.regions.len()),
            ("residency transfers", self.transfers.len()),
            ("residency retire_after", self.retire_after.len()),
            ("residency ended", self.ended.intervals()),
            ("residency seen", self.seen.intervals()),
            ("residency cancelled early", self.cancelled_early.len()),
            ("residency failing", self.failing.len()),
        ];
        for device in &self.devices {
            tables.extend(device.turns.tables());
            tables.extend([
                ("residency lru", device.lru.iter().map(|lru| lru.len()).sum()),
                ("residency cursors", device.cursors.len()),
                ("residency prepared", device.prepared.len()),
                ("residency flights", device.flights.len()),
                ("residency lent_to_drop", device.lent_to_drop.len()),
                ("residency unconfirmed", device.unconfirmed.len()),
            ]);
        }
        tables
    }

    /// Values that it keeps track of.
    #[cfg(test)]
    pub fn values_held(&self) -> usize {
        self.values.len()
    }

    pub(super) fn new_number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn plan_ready(&mut self, plan: Arc<Plan>) {
        let region = plan.region;
        if self.regions.contains_key(&region) || self.ended.contains(region) {
            return;
        }
        self.seen.insert(region);
        let arrival = self.new_number();
        let mut missing = 0;
        let mut failed = None;
        for input in &plan.inputs {
            let elements = input.meta.elements() as u64;
            let entry = self.values.entry(Key::Value(input.value));
            let value = entry.or_insert_with(|| Value::new(input.meta.dtype, elements));
            value.users.push(region);
            if let (Status::Pending, Some(source)) = (&value.status, &input.source) {
                value.whole = Some(source.clone());
                value.status = Status::Placed;
            }
            match &value.status {
                Status::Pending => missing += 1,
                Status::Placed => {}
                Status::Failed(error) => failed = Some(error.clone()),
            }
        }
        for (output, meta, _) in &plan.outputs {
            let entry = self.values.entry(Key::Value(*output));
            let value = entry.or_insert_with(|| Value::new(meta.dtype, meta.elements() as u64));
            value.maker = Some(region);
            // An output that was lost, or failed with an earlier attempt, is made again: its readers wait for it.
            if let Status::Failed(_) = value.status {
                value.status = Status::Pending;
            }
        }
        if self.cancelled_early.remove(&region) {
            failed = Some(cancelled_error());
        }
        let device = self.index_of(plan.device);
        if failed.is_none() {
            failed = match device {
                Some(d) => self.devices[d].lost.clone(),
                None => Some(Error::new(ErrorKind::Internal, format!("there is no device {}", plan.device))),
            };
        }
        let (session, weight) = (plan.session, plan.weight);
        let work_us = plan.estimate_us(device.map_or(&self.devices[0].info.costs, |d| &self.devices[d].info.costs));
        let work = PlannedRegion {
            plan,
            work_us,
            took_us: 0.0,
            long: false,
            arrival,
            missing,
            profile: OnceCell::new(),
            phase: Phase::Waiting,
            batches: 0,
            depends: SmallVec::new(),
            depends_batches: SmallVec::new(),
            faults: Vec::new(),
        };
        self.regions.insert(region, work);
        match (failed, device) {
            (Some(error), _) => self.failing.push_back((region, error)),
            (None, Some(d)) if missing == 0 => {
                let piece_us = self.piece_us(d, work_us);
                self.devices[d].turns.add(session, weight, arrival, region, piece_us);
            }
            _ => self.fail_orphans(),
        }
    }

    fn value_retired(&mut self, value: ValueId, after: Option<RegionId>) {
        match after {
            Some(region) if !self.ended.contains(region) => {
                self.retire_after.entry(region).or_default().push(value);
            }
            _ => self.retire(Key::Value(value)),
        }
    }

    /// Marks a value as retired: only the plans in `users` can still reach it.
    fn retire(&mut self, key: Key) {
        if let Some(value) = self.values.get_mut(&key) {
            value.retired = true;
            self.forget_if_dead(key);
        }
    }

    /// A region is placed or failed: retires the values whose end was told to come after it.
    pub(super) fn end_region(&mut self, region: RegionId) {
        self.ended.insert(region);
        for value in self.retire_after.remove(&region).unwrap_or_default() {
            self.retire(Key::Value(value));
        }
    }

    /// A region is not needed any more. If its plan waits or is being placed, it is cancelled. If the plan has not
    /// arrived, it is cancelled when it has come and was taken in, since other plans may read host data that it brings.
    fn region_cancelled(&mut self, region: RegionId) {
        match self.regions.get(&region).map(|work| work.phase) {
            Some(Phase::Waiting | Phase::Placing) => self.failing.push_back((region, cancelled_error())),
            Some(Phase::Placed) => {}
            None if !self.ended.contains(region) => drop(self.cancelled_early.insert(region)),
            None => {}
        }
    }

    fn region_plan_failed(&mut self, region: RegionId, inputs: Vec<RegionInput>, error: Error) {
        if self.regions.contains_key(&region) {
            self.failing.push_back((region, error));
            return;
        }
        for input in inputs {
            self.keep_input(input);
        }
        self.seen.insert(region);
        self.cancelled_early.remove(&region);
        self.plan_error = Some(error);
        self.end_region(region);
        self.fail_orphans();
    }

    /// Takes in an input of a plan that will never come: the input may end with that plan, or its host data be sent
    /// with it.
    fn keep_input(&mut self, input: RegionInput) {
        let key = Key::Value(input.value);
        if input.dies {
            self.retire(key);
        } else if let Some(source) = input.source {
            let elements = input.meta.elements() as u64;
            let value = self.values.entry(key).or_insert_with(|| Value::new(input.meta.dtype, elements));
            if matches!(value.status, Status::Pending) && value.maker.is_none() {
                value.whole = Some(source);
                self.value_made(key);
            }
        }
    }

    /// Fails waiting plans with an input that no region can make any more: every region before the plan's has
    /// been seen, and none of them makes it (RES-8).
    fn fail_orphans(&mut self) {
        let Some(error) = self.plan_error.clone() else { return };
        for (&region, work) in &self.regions {
            if work.missing == 0 || !self.seen.has_all_up_to(region) {
                continue;
            }
            let orphan = |input: &PlanInput| {
                let value = self.values.get(&Key::Value(input.value));
                value.is_some_and(|v| matches!(v.status, Status::Pending) && v.maker.is_none())
            };
            if work.plan.inputs.iter().any(orphan) {
                self.failing.push_back((region, error.clone()));
            }
        }
    }

    /// Estimated microseconds of a plan's next batch: up to a slice of work, and the launch overhead.
    pub(super) fn piece_us(&self, d: usize, work_us: f64) -> f64 {
        work_us.min(self.slice_us) + self.devices[d].info.costs.launch_us
    }

    pub(super) fn index_of(&self, device: DeviceId) -> Option<usize> {
        self.devices.iter().position(|d| d.info.id == device)
    }
}
