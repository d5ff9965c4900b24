//! The three state machines of the ring thread, and the queues of messages between them: a message is a push on a queue
//! of this struct, never a wake-up.
//!
//! In: events from the edges (users, devices, workers). Out: effects for the edges. Must hold: messages between two
//! machines keep their order; completions are taken in before new work is passed on; a machine handles all messages in
//! its queue before the next machine runs: of several regions that come at once, all are cut, then all planned, then
//! all placed.

use super::answers::Answer;
use crate::claims::HostClaims;
use crate::contract::batch::Batch;
use crate::contract::device::DeviceInfo;
use crate::contract::messages::device::DeviceEvent;
use crate::contract::messages::fusion::{FusionEvent, FusionOutput};
use crate::contract::messages::residency::{Eviction, ResidencyEvent, ResidencyOutput};
use crate::contract::messages::scheduler::{Delivered, SchedulerEvent, SchedulerInstruction};
use crate::contract::plan::Plan;
use crate::error::Error;
use crate::ids::{BatchId, BufferId, DeviceId, GatherId, RegionId, SessionId};
use crate::scheduler::run::Runner;
use crate::stats::Counters;
use crate::timeline::{Caller, Detail, Lane, Timeline};
use crate::{fusion, residency};
use std::collections::VecDeque;
use std::sync::Arc;

/// An action of the ring outside of its three machines.
#[derive(Debug)]
pub(super) enum Effect {
    /// Resolve a future.
    Resolve { gather: GatherId, result: Result<Delivered, Error> },
    /// Add nodes and bytes to the count of a session's gate.
    Charge { session: SessionId, nodes: u32, bytes: u64 },
    /// Subtract nodes from the count of a session's gate.
    Credit { session: SessionId, nodes: u32 },
    /// Run a batch.
    Submit { device: DeviceId, batch: Batch },
    /// Drop allocations.
    Release { device: DeviceId, buffers: Vec<BufferId> },
    /// Compile a plan's kernels on a worker.
    Compile(Arc<Plan>),
    /// Open the device that was left for later.
    OpenDevices,
    /// End the ring.
    Stop,
}

/// Scheduler, fusion and residency.
pub(super) struct Machines {
    scheduler: Runner,
    fusion: fusion::state::State,
    residency: residency::state::State,
    to_scheduler: VecDeque<SchedulerEvent>,
    to_fusion: VecDeque<FusionEvent>,
    to_residency: VecDeque<ResidencyEvent>,
    from_scheduler: Vec<SchedulerInstruction>,
    from_fusion: Vec<FusionOutput>,
    from_residency: Vec<ResidencyOutput>,
    /// Bytes of the host's budget that front ends hold.
    claims: Arc<HostClaims>,
    counters: Arc<Counters>,
    timeline: Timeline,
    planned: fusion::state::Totals,
    placed: residency::state::Totals,
}

impl Machines {
    pub(super) fn new(
        scheduler: Runner,
        fusion: fusion::state::State,
        residency: residency::state::State,
        claims: Arc<HostClaims>,
        counters: Arc<Counters>,
        timeline: Timeline,
    ) -> Machines {
        Machines {
            scheduler,
            fusion,
            residency,
            to_scheduler: VecDeque::new(),
            to_fusion: VecDeque::new(),
            to_residency: VecDeque::new(),
            from_scheduler: Vec::new(),
            from_fusion: Vec::new(),
            from_residency: Vec::new(),
            claims,
            counters,
            timeline,
            planned: Default::default(),
            placed: Default::default(),
        }
    }

    /// Whether the scheduler knows the gather, so that its cancel may overtake segments.
    pub(super) fn has_gather(&self, gather: GatherId) -> bool {
        self.scheduler.state().has_gather(gather)
    }

    /// Whether the scheduler holds back events from users until a device is open.
    pub(super) fn is_opening(&self) -> bool {
        self.scheduler.state().is_opening()
    }

    /// Sessions of which regions wait for their turn.
    pub(super) fn sessions_waiting(&self) -> usize {
        self.scheduler.state().sessions_waiting()
    }

    /// Entries of each table of the three machines, by its name.
    #[cfg(test)]
    pub(super) fn tables(&self) -> Vec<(&'static str, usize)> {
        let mut tables = self.scheduler.state().tables();
        tables.extend(self.residency.tables());
        tables
    }

    /// The gathers that the success of a batch resolves, if that depends on nothing else (ANSWER-1): the batch is the
    /// last one of its region, the region's inputs are made by finished regions, and nothing in it can fault.
    pub(super) fn answer_of(&self, device: DeviceId, batch: BatchId) -> Option<Answer> {
        let (region, brought) = self.residency.ends_alone(device, batch)?;
        let scheduler = self.scheduler.state();
        if !scheduler.depends_on_no_other(region) {
            return None;
        }
        let brought = brought.map(|(value, transfer)| (transfer, scheduler.waiting_for_host(value)));
        let made = scheduler.waiting_for_device(region);
        let answers = !made.is_empty() || brought.as_ref().is_some_and(|(_, gathers)| !gathers.is_empty());
        answers.then_some(Answer { device, batch, brought, made })
    }

    /// Takes in an event from a user.
    pub(super) fn tell(&mut self, event: SchedulerEvent) {
        self.to_scheduler.push_back(event);
    }

    /// Tells residency that the idle period has passed.
    pub(super) fn idle_passed(&mut self, all: bool) {
        self.to_residency.push_back(ResidencyEvent::IdlePassed { all });
    }

    /// Takes in a worker's result.
    pub(super) fn compiled(&mut self, region: RegionId, result: Result<(), Error>) {
        self.to_fusion.push_back(FusionEvent::PipelinesReady { region, result });
    }

    /// Takes in the result of opening a device. Fusion and residency are told first, so that they know the device
    /// before work is placed on it.
    pub(super) fn opening_ended(&mut self, result: Result<Option<DeviceInfo>, Error>) {
        if let Ok(Some(device)) = &result {
            self.to_fusion.push_back(FusionEvent::DeviceOpened(device.clone()));
            self.to_residency.push_back(ResidencyEvent::DeviceOpened(device.clone()));
        }
        self.to_scheduler.push_back(SchedulerEvent::OpeningEnded(result));
    }

    /// Takes in an event from a device.
    pub(super) fn device(&mut self, event: DeviceEvent) {
        let event = match event {
            DeviceEvent::BatchFinished { device, batch, faults, device_ns } => {
                ResidencyEvent::BatchFinished { device, batch, faults, device_ns }
            }
            DeviceEvent::BatchFailed { device, batch, error } => ResidencyEvent::BatchFailed { device, batch, error },
            DeviceEvent::ReadbackDone { device: _, transfer, data } => ResidencyEvent::ReadbackDone { transfer, data },
            DeviceEvent::Lost { device, error, replaced } => ResidencyEvent::DeviceLost { device, error, replaced },
        };
        self.to_residency.push_back(event);
    }

    /// Moves messages until all queues are empty.
    pub(super) fn settle(&mut self, effects: &mut Vec<Effect>) {
        loop {
            if let Some(event) = self.to_scheduler.pop_front() {
                self.step_scheduler(event, effects);
            } else if let Some(event) = self.to_fusion.pop_front() {
                self.step_fusion(event, effects);
            } else if let Some(event) = self.to_residency.pop_front() {
                self.step_residency(event, effects);
            } else {
                break;
            }
        }
        self.publish();
    }

    fn step_scheduler(&mut self, event: SchedulerEvent, effects: &mut Vec<Effect>) {
        let mut said = std::mem::take(&mut self.from_scheduler);
        self.tell_scheduler(event, &mut said);
        for instruction in said.drain(..) {
            match instruction {
                SchedulerInstruction::PlanRegion(region) => self.to_fusion.push_back(FusionEvent::RegionCut(region)),
                SchedulerInstruction::Explain { gather, regions, notes } => {
                    self.to_fusion.push_back(FusionEvent::ExplainAsked { gather, regions, notes });
                }
                SchedulerInstruction::Retire { value, after } => {
                    self.to_residency.push_back(ResidencyEvent::ValueRetired { value, after });
                }
                SchedulerInstruction::CancelRegion { region } => {
                    self.to_residency.push_back(ResidencyEvent::RegionCancelled(region));
                }
                SchedulerInstruction::Skip { region } => {
                    self.to_residency.push_back(ResidencyEvent::RegionSkipped(region));
                }
                SchedulerInstruction::Resolve { gather, result } => effects.push(Effect::Resolve { gather, result }),
                SchedulerInstruction::Charge { session, nodes, bytes } => {
                    effects.push(Effect::Charge { session, nodes, bytes });
                }
                SchedulerInstruction::Credit { session, nodes } => effects.push(Effect::Credit { session, nodes }),
                SchedulerInstruction::OpenDevices => effects.push(Effect::OpenDevices),
                SchedulerInstruction::Stop => effects.push(Effect::Stop),
            }
        }
        self.from_scheduler = said;
    }

    /// Hands an event to the scheduler, within the `tracing` span of the program that caused it.
    fn tell_scheduler(&mut self, event: SchedulerEvent, said: &mut Vec<SchedulerInstruction>) {
        let timeline = &self.timeline;
        let (caller, ended) = match &event {
            SchedulerEvent::SegmentCut { session, at_ns, .. } => {
                (timeline.callers().take_segment(*session, *at_ns), None)
            }
            SchedulerEvent::RegionFailed { region, .. } | SchedulerEvent::RegionFinished { region, .. } => {
                (timeline.callers().of(*region), Some(*region))
            }
            _ => (Caller::default(), None),
        };
        let first = self.scheduler.state().next_region();
        match &event {
            SchedulerEvent::SegmentCut { session, .. } => {
                let session = session.0;
                let make = |parent| tracing::debug_span!(parent: parent, "segment", session);
                timeline.in_span(&caller, make, || self.scheduler.step(event, said));
            }
            _ => self.scheduler.step(event, said),
        }
        // The parts of a failed region belong to the same caller.
        let state = self.scheduler.state();
        timeline.callers().regions((first..state.next_region()).map(RegionId), &caller);
        ended.into_iter().for_each(|region| timeline.callers().ended(region));
        timeline.callers().limit(state.region_count(), |region| state.has_region(region));
    }

    fn step_fusion(&mut self, event: FusionEvent, effects: &mut Vec<Effect>) {
        let name = match &event {
            FusionEvent::RegionCut(_) => "region cut",
            FusionEvent::ExplainAsked { .. } => "explain asked",
            FusionEvent::DeviceOpened(_) => "device opened",
            FusionEvent::PipelinesReady { .. } => "pipelines ready",
            FusionEvent::PlanRan { .. } => "plan ran",
        };
        let start_ns = self.start_ns();
        let mut said = std::mem::take(&mut self.from_fusion);
        match &event {
            FusionEvent::RegionCut(region) => {
                let (id, session) = (region.id, region.session.0);
                let make = |parent| tracing::debug_span!(parent: parent, "region", region = id.0, session);
                let caller = self.timeline.callers().of(id);
                self.timeline.in_span(&caller, make, || {
                    tracing::debug_span!("fusion").in_scope(|| self.fusion.handle(event, &mut said));
                });
            }
            _ => tracing::debug_span!("fusion").in_scope(|| self.fusion.handle(event, &mut said)),
        }
        self.span(Lane::Fusion, name, start_ns);
        for instruction in said.drain(..) {
            match instruction {
                FusionOutput::Compile(plan) => effects.push(Effect::Compile(plan)),
                FusionOutput::Place(plan) => {
                    if self.timeline.is_on() {
                        self.tell_splits(&plan);
                    }
                    self.to_residency.push_back(ResidencyEvent::PlanReady(plan));
                }
                FusionOutput::Fail { region, error } => self.plan_failed(region, error),
                FusionOutput::Explained { gather, text } => {
                    self.to_scheduler.push_back(SchedulerEvent::Explained { gather, text });
                }
            }
        }
        self.from_fusion = said;
    }

    /// Tells residency that a region could not be planned, so that no plan waits for its outputs.
    fn plan_failed(&mut self, region: RegionId, error: Error) {
        let state = self.scheduler.state();
        let (values, inputs) = (state.outputs_of(region), state.inputs_of(region));
        self.to_residency.push_back(ResidencyEvent::RegionPlanFailed { region, inputs, error: error.clone() });
        self.to_residency.push_back(ResidencyEvent::ValuesFailed { values, error: error.clone() });
        self.to_scheduler.push_back(SchedulerEvent::RegionFailed { region, error });
    }

    fn step_residency(&mut self, event: ResidencyEvent, effects: &mut Vec<Effect>) {
        let name = match &event {
            ResidencyEvent::PlanReady(_) => "plan ready",
            ResidencyEvent::ValueRetired { .. } => "value retired",
            ResidencyEvent::RegionPlanFailed { .. } => "region plan failed",
            ResidencyEvent::RegionCancelled(_) => "region cancelled",
            ResidencyEvent::RegionSkipped(_) => "region skipped",
            ResidencyEvent::ValuesFailed { .. } => "values failed",
            ResidencyEvent::DeviceOpened(_) => "device opened",
            ResidencyEvent::IdlePassed { .. } => "idle passed",
            ResidencyEvent::BatchFinished { .. } => "batch finished",
            ResidencyEvent::BatchFailed { .. } => "batch failed",
            ResidencyEvent::ReadbackDone { .. } => "readback done",
            ResidencyEvent::DeviceLost { .. } => "device lost",
        };
        let lost = match &event {
            ResidencyEvent::DeviceLost { device, error, replaced } => Some((*device, error.clone(), *replaced)),
            _ => None,
        };
        let start_ns = self.start_ns();
        let mut said = std::mem::take(&mut self.from_residency);
        // CLAIMS-1
        self.residency.claimed_beside(self.claims.bytes());
        tracing::debug_span!("residency").in_scope(|| self.residency.handle(event, &mut said));
        self.span(Lane::Residency, name, start_ns);
        for instruction in said.drain(..) {
            let event = match instruction {
                ResidencyOutput::Submit { device, batch } => {
                    effects.push(Effect::Submit { device, batch });
                    continue;
                }
                ResidencyOutput::Release { device, buffers } => {
                    effects.push(Effect::Release { device, buffers });
                    continue;
                }
                ResidencyOutput::Evicted(eviction) => {
                    if self.timeline.is_on() {
                        self.tell_eviction(&eviction);
                    }
                    continue;
                }
                ResidencyOutput::PlanRan { key, device, us } => {
                    self.to_fusion.push_back(FusionEvent::PlanRan { key, device, us });
                    continue;
                }
                ResidencyOutput::RegionFinished { region, faults } => SchedulerEvent::RegionFinished { region, faults },
                ResidencyOutput::RegionFailed { region, error } => SchedulerEvent::RegionFailed { region, error },
                ResidencyOutput::ValueArrived { value, data } => SchedulerEvent::ValueArrived { value, data },
                ResidencyOutput::DeviceStalled(device) => SchedulerEvent::DeviceStalled(device),
                ResidencyOutput::ValueLost { value, error } => SchedulerEvent::ValueLost { value, error },
            };
            self.to_scheduler.push_back(event);
        }
        self.from_residency = said;
        if let Some((device, error, replaced)) = lost {
            // Told after the values that were lost with it: by then, the scheduler knows which inputs are left for
            // regions that it sends again.
            self.to_scheduler.push_back(SchedulerEvent::DeviceLost { device, error, replaced });
        }
    }

    /// Writes to the timeline why kernels of a plan were split.
    fn tell_splits(&self, plan: &Plan) {
        for (number, launch) in plan.launches().enumerate() {
            let Some(reason) = launch.split else { continue };
            let details = [
                ("region", Detail::Int(plan.region.0 as i64)),
                ("kernel", Detail::Int(number as i64)),
                ("ops", Detail::Text(launch.label.to_string())),
                ("buffers", Detail::Int(launch.uses.len() as i64)),
                ("device", Detail::Int(plan.device.0 as i64)),
                ("because", Detail::Text(reason.to_owned())),
            ];
            self.timeline.why(Lane::Fusion, "kernel split", &details);
        }
    }

    /// Writes to the timeline why a segment was evicted.
    fn tell_eviction(&self, eviction: &Eviction) {
        let because = if eviction.known {
            "memory is short, it was unused the longest, and host memory has it"
        } else {
            "memory is short, and it was unused the longest: it is read back"
        };
        let details = [
            ("region", Detail::Int(eviction.region.0 as i64)),
            ("value", Detail::Text(eviction.value.map_or("scratch".to_owned(), |value| value.to_string()))),
            ("segment", Detail::Int(i64::from(eviction.segment))),
            ("bytes", Detail::Int(eviction.bytes as i64)),
            ("bytes wanted", Detail::Int(eviction.wanted as i64)),
            ("bytes in use", Detail::Int(eviction.live as i64)),
            ("budget", Detail::Int(eviction.budget as i64)),
            ("device", Detail::Int(eviction.device.0 as i64)),
            ("because", Detail::Text(because.to_owned())),
        ];
        self.timeline.why(Lane::Residency, "eviction", &details);
    }

    fn start_ns(&self) -> u64 {
        if self.timeline.is_on() { self.timeline.now_ns() } else { 0 }
    }

    fn span(&self, lane: Lane, name: &str, start_ns: u64) {
        if self.timeline.is_on() {
            let end_ns = self.timeline.now_ns().max(start_ns + 1);
            self.timeline.span(lane, name, start_ns, end_ns, &[]);
        }
    }

    /// Adds what fusion and residency counted since the last time.
    fn publish(&mut self) {
        let now = self.fusion.totals();
        if now != self.planned {
            Counters::add(&self.counters.plan_cache_hits, now.plan_cache_hits - self.planned.plan_cache_hits);
            Counters::add(&self.counters.plan_cache_misses, now.plan_cache_misses - self.planned.plan_cache_misses);
            let planned = &self.planned;
            for (reason, before, after) in [
                (fusion::state::NO_PLAN, planned.ops_moved, now.ops_moved),
                (fusion::state::NO_ROOM, planned.ops_too_large, now.ops_too_large),
            ] {
                if after > before {
                    self.counters.ran_elsewhere(reason, after - before);
                }
            }
            self.planned = now;
        }
        let now = self.residency.totals();
        if now != self.placed {
            Counters::add(&self.counters.kernels, now.kernels - self.placed.kernels);
            Counters::add(&self.counters.device_ns, now.device_ns - self.placed.device_ns);
            Counters::add(&self.counters.estimated_ns, now.estimated_ns - self.placed.estimated_ns);
            Counters::add(&self.counters.pool_hits, now.pool_hits - self.placed.pool_hits);
            Counters::add(&self.counters.pool_misses, now.pool_misses - self.placed.pool_misses);
            Counters::add(&self.counters.evictions, now.evictions - self.placed.evictions);
            Counters::add(&self.counters.bytes_evicted, now.bytes_evicted - self.placed.bytes_evicted);
            Counters::add(&self.counters.beyond_budget, now.beyond_budget - self.placed.beyond_budget);
            Counters::add(&self.counters.reused_in_place, now.reused_in_place - self.placed.reused_in_place);
            Counters::add(&self.counters.bytes_returned, now.bytes_returned - self.placed.bytes_returned);
            Counters::add(&self.counters.bytes_pooled_now, now.bytes_pooled);
            Counters::take(&self.counters.bytes_pooled_now, self.placed.bytes_pooled);
            self.counters.resident(now.bytes_resident, now.bytes_resident_peak);
            self.claims.set_runtime(now.bytes_host, now.bytes_host_idle);
            if self.timeline.is_on() && now.bytes_resident != self.placed.bytes_resident {
                self.timeline.counter("bytes resident", now.bytes_resident);
            }
            self.counters.in_flight(now.bytes_in_flight, now.bytes_in_flight_peak);
            if self.timeline.is_on() && now.bytes_in_flight != self.placed.bytes_in_flight {
                self.timeline.counter("bytes in flight", now.bytes_in_flight);
            }
            if self.timeline.is_on() && now.batches_in_flight != self.placed.batches_in_flight {
                self.timeline.counter("batches in flight", now.batches_in_flight);
            }
            self.placed = now;
        }
    }
}
