//! Segments: a piece of a session's tape becomes nodes, handle drops and demands, and is cut.
//!
//! In: records in program order. Out: regions in the session's queue, credits. Must hold: SCHED-7; the time is linear
//! in the records; a value that is unreachable at the end of the segment is never computed.

use super::cut::Cut;
use super::demand::Gather;
use super::ends::How;
use super::fates::Fate;
use super::graph::{Entries, Live, Residence};
use super::ledger::Charge;
use super::opening::Waiting;
use super::regions::{Cause, UnfinishedRegion};
use super::sessions::Session;
use super::state::{PARTS_MAX, Phase, State, shutting_down};
use super::story::What;
use crate::contract::messages::scheduler::SchedulerInstruction;
use crate::contract::records::Records;
use crate::contract::region::{CutReason, Placement, Region, RegionInput};
use crate::contract::tape::{Record as TapeRecord, Want};
use crate::error::{Error, ErrorKind};
use crate::graph::Node;
use crate::ids::{GatherId, RegionId, SessionId, ValueId};
use petgraph::stable_graph::NodeIndex;
use smallvec::{SmallVec, smallvec};

/// What the records of a segment named: values by what happened to them, and gathers.
#[derive(Debug, Default)]
pub(super) struct Noted {
    recorded: SmallVec<[ValueId; 8]>,
    /// Values that lost a handle or were demanded. They may be released once the segment is cut.
    dropped: SmallVec<[ValueId; 8]>,
    demanded: SmallVec<[GatherId; 2]>,
    cancelled: Vec<ValueId>,
}

/// The numbers of segments, by which a cut recognises the nodes whose recording credit is still open.
#[derive(Debug, Default)]
pub(super) struct Segments {
    /// The number of the segment that is taken in next.
    next: u64,
    /// When the latest segment was cut.
    latest_ns: u64,
}

impl Segments {
    /// A segment that was cut at this time arrived. Returns its number.
    fn arrived(&mut self, at_ns: u64) -> u64 {
        self.latest_ns = at_ns;
        self.next += 1;
        self.next - 1
    }

    /// A limit makes a segment without records. Returns its number, and the time of the latest segment that arrived.
    fn made_by_limit(&mut self) -> (u64, u64) {
        self.next += 1;
        (self.next - 1, self.latest_ns)
    }
}

/// The segment that a cut belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Occasion {
    /// Its number. A node that still has this number holds its recording credit.
    pub segment: u64,
    /// Why the segment was cut.
    pub why: CutReason,
    /// When.
    pub at_ns: u64,
    /// Whether a demand or a limit asked for the roots.
    pub cause: Cause,
}

/// A segment that is being cut.
#[derive(Debug)]
pub(super) struct Unfinished {
    /// The session that recorded it.
    pub session: SessionId,
    noted: Noted,
    occasion: Occasion,
    /// Roots that are still to be cut, by their session. A stack: the last entry is next.
    work: SmallVec<[(SessionId, Entries); 1]>,
    /// Nodes of the segment that went into regions; the regions hold their credits now.
    assigned: u32,
}

impl Unfinished {
    /// Nodes whose credit is not given back yet.
    pub(super) fn credits(&self) -> u32 {
        self.noted.recorded.len() as u32 - self.assigned
    }
}

impl State {
    /// Takes in a segment.
    pub(super) fn ingest(
        &mut self,
        session: SessionId,
        records: Records,
        why: CutReason,
        at_ns: u64,
        out: &mut Vec<SchedulerInstruction>,
    ) {
        let has_ended = self.sessions.segment_arrived(session);
        if self.phase != Phase::Running || has_ended {
            self.refuse(session, records, out);
            return;
        }
        let mut occasion = Occasion { segment: self.segments.arrived(at_ns), why, at_ns, cause: Cause::Demand };
        let noted = self.note_records(session, records, occasion.segment, out);
        // Demands come before releases, so that a value without a handle is read back before it ends.
        let mut roots = self.sort_demands(session, &noted.demanded, occasion, out);
        // `release` pops from the end. A chain's last value is dropped last, so its edges, the newest, go first.
        let mut dead: Entries = noted.dropped.iter().filter_map(|v| self.graph.find(*v)).collect();
        dead.retain(|at| self.graph[*at].is_lazy());
        self.release(dead, out);
        let asked_for = roots.len();
        self.add_limit_roots(session, why, &noted.recorded, &mut roots);
        if roots.len() > asked_for {
            occasion.cause = Cause::Limit;
        }
        let work = smallvec![(session, roots)];
        self.cut(Unfinished { session, noted, occasion, work, assigned: 0 }, out);
    }

    /// Finishes a segment whose roots are all cut: cancels, drops, credits, limits.
    fn end_segment(&mut self, segment: Unfinished, out: &mut Vec<SchedulerInstruction>) {
        let Unfinished { session, noted, assigned, .. } = segment;
        let lazy = noted.recorded.iter().copied().filter(|value| self.graph.get(*value).is_some_and(Live::is_lazy));
        self.sessions.left_lazy(session, lazy);
        for value in noted.cancelled {
            self.drop_unneeded(value, out);
        }
        let touched: Entries = noted.dropped.iter().filter_map(|v| self.graph.find(*v)).collect();
        self.release(touched.clone(), out);
        self.add_kept_by_lazy(session, touched.iter().copied());
        touched.into_iter().for_each(|at| self.add_kept(at));
        self.ledger.credit(session, noted.recorded.len() as u32 - assigned, out);
        // A segment that a limit made (`cut_lazy`) has no records. It ends here too, and must not apply the limits
        // again.
        if !noted.recorded.is_empty() || !noted.demanded.is_empty() || !noted.dropped.is_empty() {
            // At most one limit cuts: its cut may have to wait for a device, and no other cut may start then.
            if !self.limit_lazy(session, out) {
                self.limit_kept_by_lazy(session, out);
            }
        }
    }

    fn note_records(
        &mut self,
        session: SessionId,
        records: Records,
        segment: u64,
        out: &mut Vec<SchedulerInstruction>,
    ) -> Noted {
        let mut noted = Noted::default();
        records.for_each(|record| match record {
            TapeRecord::Brief(brief, drops) => {
                let value = brief.value(session);
                noted.recorded.push(value);
                self.record(brief.node(session), segment);
                drops.values(value).for_each(|value| self.note_drop(value, &mut noted));
            }
            TapeRecord::Op(node, drops) => {
                let value = node.value;
                noted.recorded.push(value);
                self.record(*node, segment);
                drops.values(value).for_each(|value| self.note_drop(value, &mut noted));
            }
            TapeRecord::Dropped(value) => self.note_drop(value, &mut noted),
            TapeRecord::Pinned(value, device) => {
                self.graph.pinned(value, device);
            }
            TapeRecord::Demanded { gather, value, want } => {
                if !self.graph.gather_opened(value, gather) {
                    let error = released();
                    out.push(SchedulerInstruction::Resolve { gather, result: Err(error) });
                    return;
                }
                self.demands.open(gather, Gather { session, value: Some(value), want });
                self.log.note(value, What::Demanded(gather));
                noted.demanded.push(gather);
                noted.dropped.push(value);
                let is_known = self.sessions.gather_opened(session, gather);
                assert!(is_known, "SCHED-9: the segment's session is known");
            }
            TapeRecord::Cancelled(gather) => {
                if let Some(value) = self.withdraw(gather) {
                    noted.cancelled.push(value);
                }
            }
        });
        noted
    }

    fn note_drop(&mut self, value: ValueId, noted: &mut Noted) {
        if self.graph.handle_dropped(value).is_some() {
            noted.dropped.push(value);
            self.log.note(value, What::Released);
        }
    }

    fn record(&mut self, node: Node, segment: u64) {
        let value = node.value;
        self.sessions.value_recorded(value);
        self.ledger.count_recorded(1);
        self.log.note(value, What::Recorded);
        if let Err((at, _)) = self.graph.add(node, segment) {
            let error = self.graph[at].blame(released());
            self.graph.failed(at, error);
        }
    }

    /// Answers demands that can be answered, and queues readbacks of values that exist. Returns the lazy values that
    /// the other demands compute.
    fn sort_demands(
        &mut self,
        session: SessionId,
        demanded: &[GatherId],
        occasion: Occasion,
        out: &mut Vec<SchedulerInstruction>,
    ) -> Entries {
        let mut roots = Entries::new();
        for &gather in demanded {
            let Some(Gather { value: Some(value), want, .. }) = self.demands.get(gather) else { continue };
            let at = self.graph.find(value).expect("SCHED-3: a gather's value is live");
            let live = &self.graph[at];
            if let Some(maker) = self.parked_maker(live) {
                self.ask_again(at, maker, want);
                continue;
            }
            let is_idle = live.readback.region().is_none() && live.host.is_none();
            match (&live.home, want) {
                (Residence::Lazy, _) => roots.push(at),
                (Residence::Here | Residence::Coming(_), Want::Host) if is_idle && live.error().is_none() => {
                    self.queue_readback(session, at, occasion);
                }
                _ => self.answer(at, out),
            }
        }
        roots
    }

    /// Adds the roots that a limit asks for: the segment's values that the program holds, so that their arguments can
    /// be freed. At the limit on nodes, the last, incomplete turn of a loop is left out (`tail`). If the program waits
    /// for memory (`CutReason::Room`), held lazy values of earlier segments are added.
    fn add_limit_roots(&mut self, session: SessionId, why: CutReason, recorded: &[ValueId], roots: &mut Entries) {
        match why {
            CutReason::NodeLimit => {
                self.unpark_all(session);
                roots.extend(self.limit_roots(recorded));
            }
            CutReason::ByteLimit | CutReason::Room => {
                self.unpark_all(session);
                roots.extend(self.held_lazy(recorded));
            }
            CutReason::Demand
            | CutReason::Flush
            | CutReason::Drops
            | CutReason::DeviceChange
            | CutReason::RegionLimit => {}
        }
        if why == CutReason::Room {
            let entry = &self.sessions[session];
            roots.extend(self.held_lazy(&entry.lazy));
        }
    }

    /// Those of `values` that are lazy and held by the program.
    fn held_lazy(&self, values: &[ValueId]) -> Entries {
        let live = values.iter().filter_map(|value| self.graph.find(*value));
        live.filter(|at| self.graph[*at].is_held_lazy()).collect()
    }

    /// Removes from a session's list of lazy values those that are not lazy any more.
    pub(super) fn forget_computed(&mut self, session: SessionId) {
        self.sessions.prune_lazy(session, |value| self.graph.get(value).is_some_and(Live::is_lazy));
    }

    /// Called at the end of a session's segment. If the session has left too many values lazy, computes those that its
    /// program holds, and returns true.
    fn limit_lazy(&mut self, session: SessionId, out: &mut Vec<SchedulerInstruction>) -> bool {
        let most = self.kept.lazy_max();
        // If only other sessions keep these values, the list is searched again after it has doubled.
        let is_much = |entry: &&Session| entry.lazy.len() > most.max(2 * entry.lazy_of_others);
        if self.sessions.get(session).filter(is_much).is_none() {
            return false;
        }
        self.forget_computed(session);
        let left = &self.sessions[session].lazy;
        let (count, roots) = (left.len(), if left.len() > most / 2 { self.held_lazy(left) } else { Entries::new() });
        let of_others = if count > most / 2 && roots.is_empty() { count } else { 0 };
        self.sessions.lazy_searched(session, of_others);
        if roots.is_empty() {
            return false;
        }
        self.cut_lazy(session, roots, CutReason::NodeLimit, out);
        true
    }

    /// Cuts a segment's roots into regions, queues them and ends the segment. If a cut needs a device that is not open
    /// yet, the segment waits for it with the remaining roots.
    pub(super) fn cut(&mut self, mut segment: Unfinished, out: &mut Vec<SchedulerInstruction>) {
        let occasion = segment.occasion;
        // Lazy values of other sessions are cut first, each under its own session, so that fusion does not depend on
        // which session asks. Values depend on earlier values only, so the loop ends.
        while let Some((owner, roots)) = segment.work.pop() {
            let lazy = roots.into_iter().filter(|at| self.graph.try_get(*at).is_some_and(|l| l.is_lazy()));
            let (own, foreign): (Entries, Entries) = lazy.partition(|at| self.graph[*at].node.value.session == owner);
            let mut scratch = std::mem::take(&mut self.scratch);
            let mut cut = self.plan_cut(&mut scratch, owner, &own, occasion.why);
            self.scratch = scratch;
            cut.foreign.extend(foreign);
            if !cut.foreign.is_empty() {
                segment.work.push((owner, own));
                cut.foreign.sort_unstable_by_key(|at| self.graph[*at].node.value);
                cut.foreign.dedup();
                while let Some(&first) = cut.foreign.first() {
                    let home = self.graph[first].node.value.session;
                    let theirs: Entries =
                        cut.foreign.extract_if(.., |at| self.graph[*at].node.value.session == home).collect();
                    segment.work.push((home, theirs));
                }
                continue;
            }
            if cut.needs_device {
                segment.work.push((owner, own));
                self.opening.wait_for_device(Waiting::Segment(Box::new(segment)), out);
                return;
            }
            segment.assigned += self.commit(cut, occasion, out);
        }
        self.end_segment(segment, out);
    }

    /// Cuts lazy values outside of any segment, since a limit asks for them.
    pub(super) fn cut_lazy(
        &mut self,
        session: SessionId,
        roots: Entries,
        why: CutReason,
        out: &mut Vec<SchedulerInstruction>,
    ) {
        let (segment, at_ns) = self.segments.made_by_limit();
        let occasion = Occasion { segment, why, at_ns, cause: Cause::Limit };
        let work = smallvec![(session, roots)];
        self.cut(Unfinished { session, noted: Noted::default(), occasion, work, assigned: 0 }, out);
    }

    /// Commits a cut: queues its regions, marks their outputs as coming, and releases the values that the cut read
    /// last. Returns the number of nodes whose recording credit moved to the regions.
    fn commit(&mut self, cut: Cut, occasion: Occasion, out: &mut Vec<SchedulerInstruction>) -> u32 {
        let regions = self.build_regions(&cut, self.regions.next(), false, |_, live| self.wants_host(live));
        self.regions.take_numbers(regions.len() as u64);
        self.ledger.count_regions(regions.len());
        let ids: SmallVec<[RegionId; 4]> = regions.iter().map(|r| r.id).collect();
        let mut credits: SmallVec<[u32; 4]> = smallvec![0u32; regions.len()];
        let (mut assigned, mut charged) = (0, 0);
        let (mut touched, mut failed, mut made) = (Entries::new(), Entries::new(), Entries::new());
        for node in cut.nodes.iter().rev() {
            let value = self.graph[node.at].node.value;
            if node.runs() {
                credits[node.region()] += 1;
                // A node of an earlier segment, or one that a cut has computed before, has no recording credit left:
                // its session is charged once more.
                match self.graph.credit_taken(node.at, occasion.segment) {
                    true => assigned += 1,
                    false => charged += 1,
                }
                if let Some(reason) = node.place.elsewhere {
                    self.ledger.count_elsewhere(reason);
                }
            }
            match &node.fate {
                Fate::Output => {
                    let id = ids[node.region()];
                    self.graph.cut_into(node.at, id, node.place.device);
                    touched.push(node.at);
                    made.push(node.at);
                    self.log.note(value, What::Cut(id));
                }
                Fate::Recomputable => {
                    self.graph.passed(node.at, node.passing_cost);
                    self.log.note(value, What::Passed(ids[node.region()]));
                }
                Fate::FusedAway => {
                    self.graph.detach(node.at);
                    self.graph.remove(node.at);
                }
                Fate::Failed(error) => {
                    touched.extend(self.graph.failed(node.at, error.clone()));
                    self.log.note(value, What::Failed);
                    failed.push(node.at);
                    touched.push(node.at);
                }
                Fate::NotNeeded => {}
            }
        }
        for input in &cut.inputs {
            self.graph.missed(input.at, input.missed_us);
        }
        touched.extend(cut.inputs.iter().map(|i| i.at));
        if charged > 0 {
            let bytes = self.bytes_kept_of(cut.inputs.iter().map(|input| self.graph[input.at].node.value));
            self.ledger.charge(Charge { session: cut.session, nodes: charged, bytes });
        }
        for (region, credits) in regions.into_iter().zip(credits) {
            self.open_region(region, credits, occasion);
        }
        for at in failed {
            self.answer(at, out);
        }
        self.release(touched, out);
        self.add_kept_by_lazy(cut.session, made.into_iter());
        assigned
    }

    pub(super) fn wants_host(&self, live: &super::graph::Live) -> bool {
        live.gathers.iter().any(|gather| self.demands.wants_host(*gather))
    }

    /// Records a region as unfinished and puts it in its session's queue.
    fn open_region(&mut self, region: Region, credits: u32, occasion: Occasion) {
        let id = region.id;
        let owner = region.session;
        for input in &region.inputs {
            self.graph.reader_queued(input.value, id);
            if input.dies {
                self.ends.schedule(input.value, id, How::InPlace);
            }
            if input.value.session == owner {
                self.graph.read_on(input.value, region.device);
            }
        }
        for value in &region.readbacks {
            let at = self.graph.find(*value).expect("SCHED-8: a readback's value is live");
            self.graph.readback_asked(at, id);
        }
        let record = UnfinishedRegion::cut(region, id.0 * PARTS_MAX as u64, occasion.cause, credits, occasion.at_ns);
        self.regions.insert(id, record);
        self.enqueue(id);
    }

    /// Queues a region without nodes that only reads a value back to the host.
    fn queue_readback(&mut self, session: SessionId, at: NodeIndex, occasion: Occasion) {
        let live = &self.graph[at];
        let region = Region {
            id: self.regions.take_numbers(1),
            session,
            weight: 1,
            device: if self.fleet.is_open(live.places.made()) { live.places.made() } else { self.fleet.fallback() },
            nodes: Vec::new(),
            inputs: vec![RegionInput {
                value: live.node.value,
                meta: live.node.meta.clone(),
                source: None,
                dies: false,
                is_source: false,
            }],
            readbacks: vec![live.node.value],
            why: occasion.why,
            placement: Placement { reason: "where the value is", ..Placement::default() },
            turns: 1,
            is_block: false,
            preview: false,
        };
        self.ledger.count_regions(1);
        self.open_region(region, 0, occasion);
    }

    /// Refuses a segment, since the runtime shuts down or the session has ended. Gives its credits back.
    pub(super) fn refuse(&mut self, session: SessionId, records: Records, out: &mut Vec<SchedulerInstruction>) {
        let mut nodes = 0;
        let closed = self.sessions.has_ended(session);
        let mut released_values = Entries::new();
        records.for_each(|record| match record {
            TapeRecord::Brief(brief, drops) => {
                nodes += 1;
                released_values.extend(drops.values(brief.value(session)).filter_map(|v| self.graph.handle_dropped(v)));
            }
            TapeRecord::Op(node, drops) => {
                nodes += 1;
                released_values.extend(drops.values(node.value).filter_map(|v| self.graph.handle_dropped(v)));
            }
            TapeRecord::Demanded { gather, .. } => {
                let error = if closed && self.phase == Phase::Running { session_closed() } else { shutting_down() };
                out.push(SchedulerInstruction::Resolve { gather, result: Err(error) });
            }
            TapeRecord::Cancelled(gather) => self.cancel(gather, out),
            TapeRecord::Dropped(value) => released_values.extend(self.graph.handle_dropped(value)),
            TapeRecord::Pinned(..) => {}
        });
        self.release(released_values, out);
        self.ledger.count_recorded(nodes);
        self.ledger.credit(session, nodes, out);
    }
}

/// The error of an op that reads a value that was released, or that another session did not share.
pub(super) fn released() -> Error {
    let words = "the array is gone: its session has ended or was closed, which ends shared arrays too, or it was used \
                 in another session before share() was called";
    Error::new(ErrorKind::Ownership, words)
}

/// The error of gathers whose session has ended.
pub fn session_closed() -> Error {
    Error::new(ErrorKind::Cancelled, "the session was dropped before the value was computed")
}
