//! The scheduler's run loop: one event at a time, with its span on the timeline and its counters.
//!
//! In: events. Out: instructions, which the ring routes. Must hold: nothing here decides anything.

use super::ledger::Totals;
use super::state::State;
use crate::contract::messages::scheduler::{SchedulerEvent, SchedulerInstruction};
use crate::ids::SessionId;
use crate::stats::Counters;
use crate::timeline::{Detail, Lane, Timeline, flow};
use std::sync::Arc;

/// A scheduler with what it reports to.
pub struct Runner {
    state: State,
    counters: Arc<Counters>,
    timeline: Timeline,
    published: Totals,
    depth: (usize, usize),
}

impl Runner {
    /// Wires a state machine to its counters and its lane.
    pub fn new(state: State, counters: Arc<Counters>, timeline: Timeline) -> Runner {
        Runner { state, counters, timeline, published: Totals::default(), depth: (0, 0) }
    }

    /// The state machine.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Handles one event.
    pub fn step(&mut self, event: SchedulerEvent, out: &mut Vec<SchedulerInstruction>) {
        if !self.timeline.is_on() {
            self.state.handle(event, out);
            self.publish();
            return;
        }
        let name = name_of(&event);
        let start_ns = self.timeline.now_ns();
        let first = out.len();
        tracing::debug_span!("scheduler", event = name).in_scope(|| self.state.handle(event, out));
        let end_ns = self.timeline.now_ns().max(start_ns + 1);
        self.timeline.span(Lane::Scheduler, name, start_ns, end_ns, &[]);
        for instruction in &out[first..] {
            self.record(instruction, start_ns);
        }
        let depth = self.state.depth();
        if depth != self.depth {
            self.depth = depth;
            self.timeline.counter("regions downstream", depth.0 as u64);
            self.timeline.counter("regions waiting", depth.1 as u64);
        }
        self.publish();
    }

    /// Writes why a region was cut and placed, and the timeline's arrows: from its segment, to its device, and to
    /// gathers.
    fn record(&self, instruction: &SchedulerInstruction, at_ns: u64) {
        if let SchedulerInstruction::Resolve { gather, .. } = instruction {
            self.timeline.flow_start(Lane::Scheduler, flow::to_gather(*gather), at_ns);
        }
        let SchedulerInstruction::PlanRegion(region) = instruction else { return };
        self.timeline.flow_start(Lane::Scheduler, flow::to_device(region.id), at_ns);
        if let Some(cut_at_ns) = self.state.cut_at_ns(region.id) {
            self.timeline.flow_start(Lane::Session(region.session), region.id.0, cut_at_ns);
            self.timeline.flow_end(Lane::Scheduler, region.id.0, at_ns);
        }
        let mut details = vec![
            ("region", Detail::Int(region.id.0 as i64)),
            ("session", Detail::Int(region.session.0 as i64)),
            ("nodes", Detail::Int(region.nodes.len() as i64)),
            ("cut", Detail::Text(format!("{:?}", region.why))),
            ("device", Detail::Int(region.device.0 as i64)),
            ("because", Detail::Text(region.placement.reason.to_owned())),
        ];
        if !region.placement.estimates_us.is_empty() {
            let estimates: Vec<String> =
                region.placement.estimates_us.iter().map(|(d, us)| format!("device {d}: {us:.1} us")).collect();
            details.push(("estimates", Detail::Text(estimates.join(", "))));
        }
        self.timeline.why(Lane::Scheduler, "region", &details);
    }

    /// Adds what was counted since the last time.
    fn publish(&mut self) {
        let totals = self.state.totals();
        if *totals == self.published {
            return;
        }
        Counters::add(&self.counters.regions, totals.regions - self.published.regions);
        let again = totals.values_made_again - self.published.values_made_again;
        Counters::add(&self.counters.values_made_again, again);
        Counters::add(&self.counters.ops_dead, totals.ops_dead - self.published.ops_dead);
        for (reason, count) in &totals.elsewhere {
            let before = self.published.elsewhere.get(reason).copied().unwrap_or(0);
            if *count > before {
                self.counters.ran_elsewhere(reason, count - before);
            }
        }
        self.published = totals.clone();
    }
}

/// A lane's spans are named by their events.
fn name_of(event: &SchedulerEvent) -> &'static str {
    match event {
        SchedulerEvent::SessionOpened { .. } => "session opened",
        SchedulerEvent::SegmentCut { .. } => "segment cut",
        SchedulerEvent::GatherCancelled(_) => "gather cancelled",
        SchedulerEvent::SessionClosed(SessionId(_)) => "session closed",
        SchedulerEvent::ExplainAsked { .. } => "explain asked",
        SchedulerEvent::RegionFinished { .. } => "region finished",
        SchedulerEvent::RegionFailed { .. } => "region failed",
        SchedulerEvent::DeviceStalled(_) => "device stalled",
        SchedulerEvent::ValueArrived { .. } => "value arrived",
        SchedulerEvent::ValueLost { .. } => "value lost",
        SchedulerEvent::DeviceLost { .. } => "device lost",
        SchedulerEvent::OpeningEnded(_) => "opening ended",
        SchedulerEvent::Explained { .. } => "explained",
        SchedulerEvent::ShutdownAsked => "shutdown asked",
        SchedulerEvent::DeadlinePassed => "deadline passed",
    }
}
