//! The scheduler by events and instructions: a bench that records a tape, cuts it, and reads what follows.
//! Every event is followed by `validate()`.

mod completion;
mod demand;
mod fairness;
mod keeping;
mod laziness;
mod opening;
mod parking;
mod placement;
mod scale;

use super::state::State;
use crate::config::{Config, DeviceChoice};
use crate::contract::device::{DeviceInfo, DeviceKind};
use crate::contract::fixtures::device;
use crate::contract::messages::scheduler::{Delivered, SchedulerEvent, SchedulerInstruction};
use crate::contract::region::{CutReason, Region};
use crate::contract::tape::{Drops, Record, Want};
use crate::error::{Error, ErrorKind};
use crate::graph::{Arg, DType, Dist, ElementOp, Meta, Nan, Node, Op, RandomKey, ReduceOp, Scalar, Shape};
use crate::host_buffer::HostBuffer;
use crate::ids::{DeviceId, GatherId, RegionId, SessionId, ValueId};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::panic::Location;
use std::sync::Arc;

pub(crate) struct Bench {
    pub state: State,
    pub out: Vec<SchedulerInstruction>,
    tape: Vec<Record>,
    session: SessionId,
    next_index: u64,
    next_gather: u64,
    pub validates: bool,
}

impl Bench {
    pub fn new(choice: DeviceChoice) -> Bench {
        Bench::with(Config { device: choice, batches_in_flight: 2, ..Config::default() })
    }

    pub fn with(config: Config) -> Bench {
        Bench::on(vec![device(0, DeviceKind::Host), device(1, DeviceKind::Gpu)], config)
    }

    pub fn on(devices: Vec<DeviceInfo>, config: Config) -> Bench {
        let mut bench = Bench {
            state: State::new(devices, &config),
            out: vec![],
            tape: vec![],
            session: SessionId(0),
            next_index: 0,
            next_gather: 0,
            validates: true,
        };
        bench.open(0, 1);
        bench
    }

    /// Opens a session and goes on as it.
    pub fn open(&mut self, session: u64, weight: u32) {
        self.session = SessionId(session);
        let name = Arc::from(format!("s{session}"));
        self.event(SchedulerEvent::SessionOpened { session: self.session, name, weight });
    }

    /// Fills the credits with regions of session 9, so that what follows stays in its queue.
    pub fn fill(&mut self) -> Vec<Region> {
        self.open(9, 1);
        let mut regions = vec![];
        for _ in 0..6 {
            let x = self.rand(8);
            self.demand(x, Want::Device);
            regions.extend(self.cut());
        }
        assert!(regions.len() >= 5);
        self.credits();
        regions
    }

    pub fn event(&mut self, event: SchedulerEvent) {
        self.state.handle(event, &mut self.out);
        if self.validates {
            self.state.validate();
        }
    }

    #[track_caller]
    pub fn node(&mut self, op: Op, args: &[Arg], dtype: DType, dims: &[usize]) -> ValueId {
        let value = ValueId { session: self.session, index: self.next_index };
        self.next_index += 1;
        let meta = Meta { dtype, shape: Shape::new(dims).unwrap() };
        let args = SmallVec::from_slice(args);
        let node = Node { value, op, args, meta, pin: None, at: Location::caller().into(), block: 0 };
        self.tape.push(Record::Op(Box::new(node), Drops::NONE));
        value
    }

    /// Host data of `n` f32.
    pub fn source(&mut self, n: usize) -> ValueId {
        self.node(Op::Source(HostBuffer::from_vec(vec![1.0f32; n]).shared()), &[], DType::F32, &[n])
    }

    pub fn rand(&mut self, n: usize) -> ValueId {
        let key = RandomKey { seed: 0, stream: 0, op: self.next_index as u32 };
        self.node(Op::Random { dist: Dist::Uniform, key }, &[], DType::F32, &[n])
    }

    pub fn add(&mut self, a: ValueId, b: ValueId, n: usize) -> ValueId {
        self.node(Op::Apply(ElementOp::Add), &[Arg::Value(a), Arg::Value(b)], DType::F32, &[n])
    }

    pub fn scale(&mut self, a: ValueId, n: usize) -> ValueId {
        self.node(Op::Apply(ElementOp::Mul), &[Arg::Value(a), Arg::Scalar(Scalar::F32(0.5))], DType::F32, &[n])
    }

    pub fn sum(&mut self, a: ValueId) -> ValueId {
        let op = Op::Reduce { op: ReduceOp::Sum, dims: 1, nan: Nan::Include };
        self.node(op, &[Arg::Value(a)], DType::F32, &[1])
    }

    pub fn pin(&mut self, value: ValueId, device: DeviceId) {
        self.tape.push(Record::Pinned(value, device));
    }

    pub fn release(&mut self, value: ValueId) {
        self.tape.push(Record::Dropped(value));
    }

    pub fn demand(&mut self, value: ValueId, want: Want) -> GatherId {
        let gather = GatherId(self.next_gather);
        self.next_gather += 1;
        self.tape.push(Record::Demanded { gather, value, want });
        gather
    }

    pub fn gather(&mut self, value: ValueId) -> GatherId {
        self.demand(value, Want::Host)
    }

    pub fn withdraw(&mut self, gather: GatherId) {
        self.tape.push(Record::Cancelled(gather));
    }

    pub fn cut(&mut self) -> Vec<Region> {
        self.cut_for(CutReason::Demand)
    }

    /// Cuts the tape and returns the regions that were sent.
    pub fn cut_for(&mut self, why: CutReason) -> Vec<Region> {
        let records = std::mem::take(&mut self.tape).into();
        self.event(SchedulerEvent::SegmentCut { session: self.session, records, why, at_ns: 0 });
        self.sent()
    }

    /// Regions sent since the last call; other instructions stay.
    pub fn sent(&mut self) -> Vec<Region> {
        let (regions, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.out).into_iter().partition(|i| matches!(i, SchedulerInstruction::PlanRegion(_)));
        self.out = rest;
        regions
            .into_iter()
            .map(|i| match i {
                SchedulerInstruction::PlanRegion(region) => Arc::unwrap_or_clone(region),
                other => unreachable!("{other:?}"),
            })
            .collect()
    }

    pub fn finish(&mut self, region: &Region) {
        self.finish_with(region, vec![]);
    }

    /// The region ran, with these fault words set; what it brings to the host arrives.
    pub fn finish_with(&mut self, region: &Region, faults: Vec<(ValueId, Error)>) {
        self.event(SchedulerEvent::RegionFinished { region: region.id, faults });
        for value in &region.readbacks {
            let data = Ok(HostBuffer::from_vec(vec![value.index as f32]).shared());
            self.event(SchedulerEvent::ValueArrived { value: *value, data });
        }
    }

    /// Runs all that was sent, and what follows from it; the values that were made.
    pub fn run(&mut self, mut sent: Vec<Region>) -> FxHashSet<ValueId> {
        let mut made = FxHashSet::default();
        while let Some(region) = sent.pop() {
            made.extend(outputs(&region));
            self.finish(&region);
            sent.extend(self.sent());
        }
        made
    }

    pub fn fail(&mut self, region: RegionId, kind: ErrorKind) {
        self.event(SchedulerEvent::RegionFailed { region, error: Error::new(kind, "injected") });
    }

    /// Takes the result of a gather out of the instructions; `None` if it was not resolved.
    pub fn result(&mut self, gather: GatherId) -> Option<Result<Delivered, Error>> {
        let is_it =
            |i: &SchedulerInstruction| matches!(i, SchedulerInstruction::Resolve { gather: g, .. } if *g == gather);
        let position = self.out.iter().position(is_it)?;
        match self.out.remove(position) {
            SchedulerInstruction::Resolve { result, .. } => Some(result),
            other => unreachable!("{other:?}"),
        }
    }

    pub fn error(&mut self, gather: GatherId) -> Error {
        self.result(gather).expect("it resolved").expect_err("it failed")
    }

    pub fn delivered(&mut self, gather: GatherId) -> bool {
        self.result(gather).is_some_and(|r| r.is_ok())
    }

    /// Takes the `Retire` instructions since the last call.
    pub fn retired(&mut self) -> Vec<(ValueId, Option<RegionId>)> {
        let mut values = vec![];
        self.out.retain(|i| match i {
            SchedulerInstruction::Retire { value, after } => {
                values.push((*value, *after));
                false
            }
            _ => true,
        });
        values
    }

    /// Credits since the last call.
    pub fn credits(&mut self) -> u32 {
        let mut nodes_total = 0;
        self.out.retain(|i| match i {
            SchedulerInstruction::Credit { nodes, .. } => {
                nodes_total += nodes;
                false
            }
            _ => true,
        });
        nodes_total
    }

    /// Nodes that were charged again since the last call.
    pub fn charges(&mut self) -> u32 {
        let all = self.out.extract_if(.., |i| matches!(i, SchedulerInstruction::Charge { .. }));
        all.map(|i| if let SchedulerInstruction::Charge { nodes, .. } = i { nodes } else { unreachable!() }).sum()
    }

    pub fn has_stopped(&self) -> bool {
        self.out.iter().any(|i| matches!(i, SchedulerInstruction::Stop))
    }
}

/// The values that a region writes out.
pub(crate) fn outputs(region: &Region) -> Vec<ValueId> {
    region.nodes.iter().filter(|n| n.output).map(|n| n.value).collect()
}

/// The values that a region computes.
pub(crate) fn values(region: &Region) -> Vec<ValueId> {
    region.nodes.iter().map(|n| n.value).collect()
}
