//! A ring that computes nothing: it records the messages that sessions send, and resolves gathers as tests direct.

use super::link::Link;
use super::session::{Session, SessionBuilder};
use crate::config::Config;
use crate::contract::device::DeviceKind;
use crate::contract::fixtures::device;
use crate::contract::messages::scheduler::{Delivered, SchedulerEvent};
use crate::contract::region::CutReason;
use crate::contract::tape::{Record, Want};
use crate::error::Error;
use crate::graph::Node;
use crate::host_buffer::HostBuffer;
use crate::ids::{GatherId, SessionId};
use crate::ring::{Devices, Gate, GatherTable, Total};
use crate::stats::Counters;
use crate::timeline::Timeline;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The users' side of a runtime. The test holds the scheduler's mailbox.
pub(crate) struct FakeRing {
    pub link: Arc<Link>,
    pub events: flume::Receiver<SchedulerEvent>,
    pub gates: Arc<Mutex<Vec<Arc<Gate>>>>,
}

impl FakeRing {
    pub fn new(config: Config) -> FakeRing {
        let (sender, events) = flume::unbounded();
        let gates: Arc<Mutex<Vec<Arc<Gate>>>> = Arc::default();
        let registered = gates.clone();
        let link = Link {
            events: sender.into(),
            gathers: Arc::new(GatherTable::default()),
            counters: Arc::new(Counters::default()),
            timeline: Timeline::off(),
            total: Arc::new(Total::new(config.pending_max(u64::MAX))),
            session_room: config.session_pending_max(u64::MAX),
            config: Arc::new(config),
            devices: Arc::new(Devices::fixed(vec![device(0, DeviceKind::Host), device(1, DeviceKind::Gpu)])),
            register_gate: Box::new(move |_, gate| registered.lock().push(gate)),
            sessions: AtomicU64::new(0),
            ended: Default::default(),
            claims: Arc::new(crate::claims::HostClaims::new(u64::MAX)),
            spares: Arc::default(),
            demanding: Default::default(),
        };
        FakeRing { link: Arc::new(link), events, gates }
    }

    /// A ring without folding, so that ops on small arrays are sent, too.
    pub fn unfolded() -> FakeRing {
        FakeRing::new(Config { fold_elements_max: 0, ..Config::default() })
    }

    pub fn session(&self, name: &str) -> Session {
        SessionBuilder::new(self.link.clone(), name).open()
    }

    /// All segments that were sent, with their reasons.
    pub fn segments(&self) -> Vec<(CutReason, Vec<Record>)> {
        self.events
            .try_iter()
            .filter_map(|event| match event {
                SchedulerEvent::SegmentCut { records, why, session, .. } => {
                    let mut all = Vec::new();
                    records.for_each(|record| all.push(in_full(record, session)));
                    Some((why, all))
                }
                _ => None,
            })
            .collect()
    }

    /// The nodes of all segments that were sent.
    pub fn nodes(&self) -> Vec<Node> {
        let records = self.segments().into_iter().flat_map(|(_, records)| records);
        records
            .filter_map(|record| match record {
                Record::Op(node, _) => Some(*node),
                _ => None,
            })
            .collect()
    }

    /// The messages that were sent, one line for each record: `op`, `drop`, `demand`, `cancel`, and events by their
    /// names.
    pub fn story(&self) -> Vec<String> {
        let mut story = Vec::new();
        for event in self.events.try_iter() {
            match event {
                SchedulerEvent::SegmentCut { records, why, session, .. } => {
                    story.push(format!("cut {session} {why:?}"));
                    records.for_each(|record| story.extend(lines(&in_full(record, session))));
                }
                SchedulerEvent::SessionOpened { session, .. } => story.push(format!("open {session}")),
                SchedulerEvent::SessionClosed(session) => story.push(format!("close {session}")),
                SchedulerEvent::GatherCancelled(gather) => story.push(format!("cancelled {gather}")),
                SchedulerEvent::ExplainAsked { gather, value } => story.push(format!("explain {gather} {value}")),
                other => story.push(format!("{other:?}")),
            }
        }
        story
    }

    pub fn deliver(&self, gather: u64, data: HostBuffer) {
        self.link.gathers.resolve(GatherId(gather), Ok(Delivered::Host(data.shared())));
    }

    pub fn fail(&self, gather: u64, error: Error) {
        self.link.gathers.resolve(GatherId(gather), Err(error));
    }

    /// A thread that resolves every demand with zeros, or as computed, until the link is gone.
    pub fn answer_with_zeros(&self) -> std::thread::JoinHandle<()> {
        let (events, gathers) = (self.events.clone(), self.link.gathers.clone());
        let gates = self.gates.clone();
        std::thread::spawn(move || {
            let mut metas = std::collections::HashMap::new();
            while let Ok(event) = events.recv() {
                let SchedulerEvent::SegmentCut { records, session, .. } = event else { continue };
                let mut nodes = 0;
                records.for_each(|record| match in_full(record, session) {
                    Record::Op(node, drops) => {
                        nodes += 1;
                        let node_value = node.value;
                        metas.insert(node_value, node.meta);
                        for value in drops.values(node_value) {
                            metas.remove(&value);
                        }
                    }
                    Record::Demanded { gather, want: Want::Device, .. } => {
                        gathers.resolve(gather, Ok(Delivered::Device));
                    }
                    Record::Demanded { gather, value, want: Want::Host } => {
                        let meta = &metas[&value];
                        let data = HostBuffer::zeroed(meta.dtype, meta.elements());
                        gathers.resolve(gather, Ok(Delivered::Host(data.shared())));
                    }
                    Record::Dropped(value) => drop(metas.remove(&value)),
                    Record::Cancelled(_) | Record::Pinned(..) | Record::Brief(..) => {}
                });
                let gate = gates.lock()[session.0 as usize].clone();
                gate.leave(nodes);
            }
        })
    }
}

/// The record, with ops in their long form.
fn in_full(record: Record, session: SessionId) -> Record {
    match record {
        Record::Brief(brief, drops) => Record::Op(Box::new(brief.node(session)), drops),
        other => other,
    }
}

fn lines(record: &Record) -> Vec<String> {
    match record {
        Record::Op(node, drops) => {
            let args: Vec<String> = node
                .args
                .iter()
                .map(|a| match a {
                    crate::graph::Arg::Value(v) => v.to_string(),
                    crate::graph::Arg::Scalar(s) => format!("{s}:{}", s.dtype()),
                })
                .collect();
            let meta = &node.meta;
            let op = format!("{} = {}({}) {} {}", node.value, node.op.name(), args.join(", "), meta.shape, meta.dtype);
            let drops = drops.values(node.value).map(|value| format!("drop {value}"));
            std::iter::once(op).chain(drops).collect()
        }
        Record::Brief(..) => unreachable!("it was written in full"),
        Record::Dropped(value) => vec![format!("drop {value}")],
        Record::Pinned(value, device) => vec![format!("pin {value} {device}")],
        Record::Demanded { gather, value, want } => vec![format!("demand {gather} {value} {want:?}")],
        Record::Cancelled(gather) => vec![format!("cancel {gather}")],
    }
}
