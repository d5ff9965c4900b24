//! The scheduler as a state machine: events in, instructions out. No channel, clock, thread or device.
//!
//! The handling of each kind of event is in a file of its own: `ingest` (segments, into the `graph`), `cut` (what
//! runs), `fates` (what of it is stored), `placement` (where) and `room` (whether it fits there), `build` (regions, in
//! `portions` of a bounded size), `passing` (what is computed and not kept), `demand` (gathers), `fairness` (whose
//! turn), `completion` and `taint` (what happened to it), `release` (unreachable values), `cancel` (regions whose
//! outputs are no longer needed), `parking` (regions that no gather waits for at present), `keeping` (memory that
//! parked regions and lazy values hold), `lineage` (lost values are computed again), `opening` (a GPU on demand) and
//! `story` (a log of each value's transitions, for tests).
//!
//! `State` is made of parts, and only a part's own methods change its tables: the devices (`fleet`), the live values
//! (`graph`, by the events in `graph/events`), when they end (`ends`), the sessions (`sessions`), the open gathers
//! (`demand`), the unfinished regions (`regions`) and those of them that may not be needed (`cancel`) or make lost
//! values again (`lineage`), the turns (`fairness`), the limits on lazy values and parked regions (`keeping`), the
//! device that is not open yet (`opening`), the numbers of segments (`ingest`), credits and counts (`ledger`).

use super::cancel::Recheck;
use super::cut::Scratch;
use super::demand::Demands;
use super::ends::Ends;
use super::fairness::Turns;
use super::fleet::Fleet;
use super::graph::LiveGraph;
use super::ingest::Segments;
use super::keeping::Kept;
use super::ledger::{Ledger, Totals};
use super::lineage::Again;
use super::opening::Opening;
use super::regions::Regions;
use super::sessions::Sessions;
use super::story::Log;
use crate::config::{Config, DeviceChoice};
use crate::contract::device::DeviceInfo;
use crate::contract::messages::scheduler::{Delivered, SchedulerEvent, SchedulerInstruction};
use crate::contract::region::RegionInput;
use crate::error::{Error, ErrorKind};
use crate::ids::{GatherId, RegionId, ValueId};

/// The scheduler's logic and all that it owns.
pub struct State {
    pub(super) choice: DeviceChoice,
    /// The devices, and whether each serves.
    pub(super) fleet: Fleet,
    /// An idealised GPU, which decides whether opening a real one could pay off.
    pub(super) ideal_gpu: DeviceInfo,
    /// The device that is not open yet.
    pub(super) opening: Opening,
    /// Limits on lazy values and parked regions, and the bytes added to what they keep in memory since it was last
    /// counted.
    pub(super) kept: Kept,
    /// The live values.
    pub(super) graph: LiveGraph,
    pub(super) sessions: Sessions,
    /// The open gathers.
    pub(super) demands: Demands,
    /// The values that end, and which region tells residency of each end.
    pub(super) ends: Ends,
    /// The unfinished regions.
    pub(super) regions: Regions,
    /// Regions that compute lost values again.
    pub(super) again: Again,
    /// Which session sends its next region.
    pub(super) turns: Turns,
    /// The numbers of segments.
    pub(super) segments: Segments,
    pub(super) phase: Phase,
    /// Regions that may not be needed any more.
    pub(super) recheck: Recheck,
    /// Memory for marks, used again by each cut.
    pub(super) scratch: Scratch,
    pub(super) log: Log,
    /// Credits and counters.
    pub(super) ledger: Ledger,
    /// Set by tests: loops are not turned into kernels that loop, but computed as they were recorded.
    pub(super) never_rolls: bool,
}

/// Whether the runtime runs, drains or has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Running,
    Draining,
    Stopped,
}

/// Most parts into which one failed region is split.
pub(super) const PARTS_MAX: usize = 64;

impl State {
    /// A scheduler for these devices; the first is the host.
    pub fn new(devices: Vec<DeviceInfo>, config: &Config) -> State {
        let fleet = Fleet::new(devices);
        State {
            choice: config.device,
            ideal_gpu: super::placement::ideal_gpu(fleet.host()),
            opening: Opening::default(),
            kept: Kept::new(config, fleet.host().budget_bytes),
            fleet,
            graph: LiveGraph::default(),
            sessions: Sessions::default(),
            demands: Demands::default(),
            ends: Ends::default(),
            regions: Regions::default(),
            again: Again::default(),
            turns: Turns::new(config.batches_in_flight.max(1) as usize + 4),
            segments: Segments::default(),
            phase: Phase::Running,
            recheck: Recheck::default(),
            scratch: Scratch::default(),
            log: Log::default(),
            ledger: Ledger::default(),
            never_rolls: config.injection().never_rolls(),
        }
    }

    /// Handles one event, and adds the instructions that follow from it to `out`.
    pub fn handle(&mut self, event: SchedulerEvent, out: &mut Vec<SchedulerInstruction>) {
        if self.phase == Phase::Stopped {
            self.handle_stopped(event, out);
            return;
        }
        // SCHED-11
        let Some(event) = self.opening.hold_back(event) else { return };
        match event {
            SchedulerEvent::SessionOpened { session, name, weight } => {
                self.sessions.open(session, name, weight);
            }
            SchedulerEvent::SegmentCut { session, records, why, at_ns } => {
                self.ingest(session, records, why, at_ns, out)
            }
            SchedulerEvent::GatherCancelled(gather) => self.cancel(gather, out),
            SchedulerEvent::SessionClosed(session) => self.close_session(session, out),
            SchedulerEvent::ExplainAsked { gather, value } => self.explain(gather, value, out),
            SchedulerEvent::RegionFinished { region, faults } => self.region_finished(region, faults, out),
            SchedulerEvent::RegionFailed { region, error } => self.region_failed(region, error, out),
            SchedulerEvent::ValueArrived { value, data } => self.value_arrived(value, data, out),
            SchedulerEvent::ValueLost { value, error } => self.value_lost(value, error, out),
            SchedulerEvent::DeviceStalled(device) => self.device_stalled(device),
            SchedulerEvent::DeviceLost { device, error, replaced } => self.device_lost(device, error, replaced),
            SchedulerEvent::OpeningEnded(result) => self.opening_ended(result, out),
            SchedulerEvent::Explained { gather, text } => self.resolve(gather, Ok(Delivered::Text(text)), out),
            SchedulerEvent::ShutdownAsked => {
                self.phase = Phase::Draining;
                // While the runtime drains, handles no longer keep a value needed: each region is checked again.
                self.recheck.add_all(self.regions.ids());
            }
            SchedulerEvent::DeadlinePassed => self.fail_everything(out),
        }
        self.drop_unneeded_regions(out);
        self.limit_kept(out);
        self.drop_unneeded_regions(out);
        self.ledger.tell_charges(out);
        self.pump(out);
        if self.phase == Phase::Draining && self.regions.is_empty() && self.demands.is_empty() {
            self.phase = Phase::Stopped;
            out.push(SchedulerInstruction::Stop);
        }
    }

    /// The number of the region that is cut next.
    pub fn next_region(&self) -> u64 {
        self.regions.next()
    }

    /// Regions that were cut and have not ended.
    pub fn region_count(&self) -> usize {
        self.regions.len()
    }

    /// Whether a region was cut and has not ended.
    pub fn has_region(&self, region: RegionId) -> bool {
        self.regions.contains(&region)
    }

    /// The counters.
    pub fn totals(&self) -> &Totals {
        self.ledger.totals()
    }

    /// Entries of each table by name, and the capacity of tables that never shrink. A number that grows with all
    /// sessions or regions that ever existed is a leak.
    #[cfg(test)]
    pub(crate) fn tables(&self) -> Vec<(&'static str, usize)> {
        vec![
            ("scheduler sessions", self.sessions.room().0),
            ("scheduler room for sessions", self.sessions.room().1),
            ("scheduler gathers", self.demands.room().0),
            ("scheduler room for gathers", self.demands.room().1),
            ("scheduler regions", self.regions.len()),
            ("scheduler values", self.graph.len()),
            ("scheduler room for values", self.graph.bound()),
            ("scheduler again", self.again.len()),
            ("scheduler keepers", self.kept.len()),
            ("scheduler charges", self.ledger.len()),
            ("scheduler ends", self.ends.len()),
            ("scheduler recheck", self.recheck.len()),
            ("scheduler turns", self.turns.len()),
        ]
    }

    /// Whether events from users are held back until a device is open (SCHED-11).
    pub fn is_opening(&self) -> bool {
        self.opening.is_waiting()
    }

    /// Whether a gather is known and open: its cancel may overtake segments.
    pub fn has_gather(&self, gather: GatherId) -> bool {
        self.demands.contains(gather)
    }

    /// When the segment of an unfinished region was cut, in nanoseconds of the runtime's clock.
    pub fn cut_at_ns(&self, region: RegionId) -> Option<u64> {
        self.regions.get(&region).map(|record| record.cut_at_ns)
    }

    /// The inputs of an unfinished region, with the data of those that are in host memory.
    pub fn inputs_of(&self, region: RegionId) -> Vec<RegionInput> {
        let inputs = self.regions.get(&region).map(|record| &record.region.inputs);
        let host = |value| self.graph.get(value).and_then(|live| live.host.clone());
        inputs.into_iter().flatten().map(|i| RegionInput { source: host(i.value), ..i.clone() }).collect()
    }

    /// The values that an unfinished region makes for others.
    pub fn outputs_of(&self, region: RegionId) -> Vec<ValueId> {
        let nodes = self.regions.get(&region).map(|record| &record.region.nodes);
        nodes.into_iter().flatten().filter(|n| n.output).map(|n| n.value).collect()
    }

    /// Regions downstream, and regions that wait for their turn.
    pub fn depth(&self) -> (usize, usize) {
        let downstream = self.regions.downstream();
        (downstream, self.regions.len() - downstream - self.regions.parked())
    }

    /// Parked regions.
    #[cfg(test)]
    pub fn parked(&self) -> usize {
        self.regions.parked()
    }

    /// After the stop, every event is refused and its credits are given back.
    fn handle_stopped(&mut self, event: SchedulerEvent, out: &mut Vec<SchedulerInstruction>) {
        match event {
            SchedulerEvent::SegmentCut { session, records, .. } => self.refuse(session, records, out),
            SchedulerEvent::ExplainAsked { gather, .. } => {
                out.push(SchedulerInstruction::Resolve { gather, result: Err(shutting_down()) });
            }
            _ => {}
        }
    }
}

/// The error of a request that arrives after shutdown began.
pub(super) fn shutting_down() -> Error {
    Error::new(ErrorKind::Shutdown, "the runtime is shutting down and takes no new work")
}
