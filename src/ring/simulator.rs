//! A seeded simulator: random programs of several sessions, the real scheduler, and a downstream that reorders,
//! faults, fails, loses and drops completions, and that opens the GPU late where it was left for later.
//!
//! Values are numbers that the fake devices really compute, so that a region which misses a node or reads the
//! wrong input shows. Must hold for every seed: each gather resolves exactly once, and not after it was
//! cancelled; without failures its result is right and exactly the dependents of faults are poisoned; nothing is
//! read after it ended, and nothing is kept that nobody can reach; `validate()` after every event. A failure
//! prints its seed: `SEED=n cargo test simulator` runs that one alone.

use crate::config::{Config, DeviceChoice};
use crate::device::info::DeviceKind;
use crate::error::{Error, ErrorKind};
use crate::graph::{Arg, DType, Dist, ElementOp, Meta, Node, Op, RandomKey, Shape};
use crate::host_buffer::HostBuffer;
use crate::ids::{DeviceId, GatherId, RegionId, SessionId, ValueId};
use crate::scheduler::message::{Delivered, Drops, Record, SchedulerEvent, SchedulerInstruction, Want};
use crate::scheduler::region::{CutReason, Region, RegionArg};
use crate::scheduler::state::State;
use crate::scheduler::tests::device;
use rustc_hash::{FxHashMap, FxHashSet};
use std::panic::Location;
use std::sync::Arc;

/// SplitMix64 (Steele, Lea & Flood, OOPSLA 2014): small, and good enough to choose.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// What goes wrong downstream.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    /// Completions are reordered; some nodes fault.
    Healthy,
    /// Regions fail as well.
    Failing,
    /// The GPU is lost now and then, and may come back.
    Losing,
    /// Completions are dropped; the deadline ends the run.
    Dropping,
}

/// What a node computes, and whether it faults, by the program alone.
#[derive(Clone, Copy)]
struct Truth {
    number: i64,
    poisoned: bool,
}

#[derive(Default)]
struct Program {
    id: u32,
    next: u32,
    held: Vec<ValueId>,
    tape: Vec<Record>,
    closed: bool,
}

struct Simulator {
    dice: Dice,
    mode: Mode,
    state: State,
    programs: Vec<Program>,
    truth: FxHashMap<ValueId, Truth>,
    faulty: FxHashSet<ValueId>,
    /// Gathers that must resolve, with what they want.
    open: FxHashMap<GatherId, ValueId>,
    cancelled: FxHashSet<GatherId>,
    next_gather: u64,
    /// Values that exist downstream: their number, and the device that alone has them, if it is not the host.
    exists: FxHashMap<ValueId, (i64, DeviceId)>,
    /// Values that ended, and will end after a region.
    ended: FxHashSet<ValueId>,
    ends_after: FxHashMap<RegionId, Vec<ValueId>>,
    failed: FxHashSet<ValueId>,
    /// Regions downstream, in the order in which they were sent.
    flight: Vec<Region>,
    credited: u64,
    recorded: u64,
    stopped: bool,
    /// There is no GPU: not yet, or no longer.
    gpu_gone: bool,
    /// The scheduler asked for the GPU and waits for it.
    opening: bool,
    /// Gathers that were cancelled meanwhile: they may still resolve.
    cancelled_late: FxHashSet<GatherId>,
    choice: DeviceChoice,
    seen: Seen,
}

/// How often something happened, so that a simulator that does nothing fails.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    delivered: usize,
    materialised: usize,
    poisoned: usize,
    failed: usize,
    cancelled: usize,
    repeated: usize,
    retired: usize,
    died: usize,
    foreign: usize,
    opened: usize,
    refused: usize,
    again: usize,
}

impl Simulator {
    fn new(seed: u64) -> Simulator {
        let mut dice = Dice(seed);
        let mode = [Mode::Healthy, Mode::Failing, Mode::Losing, Mode::Dropping][dice.below(4)];
        let choice = [DeviceChoice::Host, DeviceChoice::Gpu(None), DeviceChoice::Auto][dice.below(3)];
        let config = Config {
            device: choice,
            batches_in_flight: 1 + dice.below(3) as u32,
            tape_nodes_max: 8 + dice.below(40),
            ..Config::default()
        };
        let later = choice != DeviceChoice::Host && dice.one_in(2);
        let state = if later {
            State::new(vec![device(0, DeviceKind::Host)], &config).with_promised_gpu()
        } else {
            State::new(vec![device(0, DeviceKind::Host), device(1, DeviceKind::Gpu)], &config)
        };
        let mut simulator = Simulator {
            mode,
            state,
            programs: vec![],
            truth: FxHashMap::default(),
            faulty: FxHashSet::default(),
            open: FxHashMap::default(),
            cancelled: FxHashSet::default(),
            next_gather: 0,
            exists: FxHashMap::default(),
            ended: FxHashSet::default(),
            ends_after: FxHashMap::default(),
            failed: FxHashSet::default(),
            flight: vec![],
            credited: 0,
            recorded: 0,
            stopped: false,
            gpu_gone: later,
            opening: false,
            cancelled_late: FxHashSet::default(),
            choice,
            seen: Seen::default(),
            dice,
        };
        for id in 0..1 + simulator.dice.below(3) as u32 {
            simulator.programs.push(Program { id, ..Program::default() });
            let weight = 1 + simulator.dice.below(4) as u32;
            simulator.event(SchedulerEvent::SessionOpened {
                session: SessionId(id),
                name: Arc::from(format!("s{id}")),
                weight,
            });
        }
        simulator
    }

    fn run(&mut self) {
        for _ in 0..40 + self.dice.below(160) {
            match self.dice.below(10) {
                0..6 => self.record(),
                6 => self.cut(),
                _ => self.complete(),
            }
        }
        for program in 0..self.programs.len() {
            self.cut_program(program, CutReason::Flush);
            if self.dice.one_in(3) {
                self.close(program);
            }
        }
        if self.mode == Mode::Dropping {
            self.event(SchedulerEvent::ShutdownAsked);
            self.event(SchedulerEvent::DeadlinePassed);
            assert!(self.stopped, "the deadline stops the ring");
        } else {
            self.drain();
            for program in 0..self.programs.len() {
                self.close(program);
            }
            self.drain();
            self.event(SchedulerEvent::ShutdownAsked);
            assert!(self.stopped, "a drained ring stops");
            if self.mode == Mode::Healthy {
                let kept: Vec<_> = self.exists.keys().filter(|v| !self.ended.contains(v)).collect();
                assert!(kept.is_empty(), "nobody can reach {kept:?}, and they were never retired");
            }
        }
        self.seen.again = self.state.totals().values_made_again as usize;
        assert!(self.open.is_empty(), "unresolved: {:?}", self.open);
        assert_eq!(self.credited, self.recorded, "credits");
    }

    /// A random step of a random program.
    fn record(&mut self) {
        let number = self.dice.below(self.programs.len());
        if self.programs[number].closed {
            return;
        }
        match self.dice.below(12) {
            0..2 => self.record_leaf(number),
            2..6 => self.record_op(number),
            6 => self.record_foreign(number),
            7..9 => self.drop_one(number),
            9 => self.demand(number),
            10 => self.cancel(),
            _ => self.demand(number),
        }
    }

    fn push_node(&mut self, number: usize, op: Op, args: &[Arg], truth: i64) -> ValueId {
        let program = &mut self.programs[number];
        let value = ValueId { session: SessionId(program.id), index: program.next };
        program.next += 1;
        let elements = [1, 10, 1 << 12, 1 << 22][self.dice.below(4)];
        let meta = Meta { dtype: DType::F32, shape: Shape::new(&[elements]).unwrap() };
        let is_source = matches!(op, Op::Source(_));
        let faults = !is_source && self.dice.one_in(25);
        if faults {
            self.faulty.insert(value);
        }
        let inherited = args.iter().any(|a| matches!(a, Arg::Value(v) if self.truth[v].poisoned));
        self.truth.insert(value, Truth { number: truth, poisoned: faults || inherited });
        let node =
            Node { value, op, args: args.iter().copied().collect(), meta, pin: None, at: Location::caller().into() };
        self.programs[number].tape.push(Record::Op(Box::new(node), Drops::NONE));
        self.programs[number].held.push(value);
        self.recorded += 1;
        value
    }

    fn record_leaf(&mut self, number: usize) {
        if self.dice.one_in(2) {
            let data = self.dice.next() as i64;
            let buffer = HostBuffer::from_vec(vec![data]).shared();
            self.push_node(number, Op::Source(buffer), &[], data);
        } else {
            let op = self.dice.next() as u32;
            let key = RandomKey { seed: 0, stream: 0, op };
            self.push_node(number, Op::Random { dist: Dist::Uniform, key }, &[], leaf(op));
        }
    }

    fn record_op(&mut self, number: usize) {
        let held = self.programs[number].held.clone();
        if held.is_empty() {
            return self.record_leaf(number);
        }
        let args: Vec<Arg> =
            (0..1 + self.dice.below(3)).map(|_| Arg::Value(held[self.dice.below(held.len())])).collect();
        let numbers = args.iter().map(|a| match a {
            Arg::Value(v) => self.truth[v].number,
            Arg::Scalar(_) => 0,
        });
        let truth = combine(numbers);
        // f64 sines run on the host even where the GPU was asked for.
        let op =
            if self.dice.one_in(6) { Op::ArgSort { dim: 0, descending: false } } else { Op::Apply(ElementOp::Clamp) };
        self.push_node(number, op, &args, truth);
        if self.dice.one_in(2) {
            self.drop_one(number);
        }
    }

    /// Uses a value of another session: its home's tape is cut first, and the user's at once, as long as the
    /// handle is held.
    fn record_foreign(&mut self, number: usize) {
        let home = self.dice.below(self.programs.len());
        let held = self.programs[home].held.clone();
        if home == number || self.programs[home].closed || held.is_empty() {
            return;
        }
        self.seen.foreign += 1;
        self.cut_program(home, CutReason::Flush);
        let value = held[self.dice.below(held.len())];
        let truth = combine([self.truth[&value].number].into_iter());
        self.push_node(number, Op::Apply(ElementOp::Clamp), &[Arg::Value(value)], truth);
        self.cut_program(number, CutReason::Flush);
    }

    fn drop_one(&mut self, number: usize) {
        let count = self.programs[number].held.len();
        if count > 0 {
            let place = self.dice.below(count);
            let value = self.programs[number].held.remove(place);
            self.programs[number].tape.push(Record::Dropped(value));
        }
    }

    fn demand(&mut self, number: usize) {
        let count = self.programs[number].held.len();
        if count == 0 {
            return;
        }
        let place = self.dice.below(count);
        let value = self.programs[number].held[place];
        let gather = GatherId(self.next_gather);
        self.next_gather += 1;
        let want = if self.dice.one_in(3) { Want::Device } else { Want::Host };
        self.open.insert(gather, value);
        self.programs[number].tape.push(Record::Demanded { gather, value, want });
        if self.dice.one_in(2) {
            self.cut_program(number, CutReason::Demand);
        }
    }

    /// Drops a future: on the tape where its demand is uncut, as an event otherwise.
    fn cancel(&mut self) {
        let mut gathers: Vec<GatherId> = self.open.keys().copied().collect();
        if gathers.is_empty() {
            return;
        }
        gathers.sort_unstable();
        let gather = gathers[self.dice.below(gathers.len())];
        let demanded = |r: &Record| matches!(r, Record::Demanded { gather: g, .. } if *g == gather);
        self.seen.cancelled += 1;
        self.open.remove(&gather);
        self.cancelled.insert(gather);
        if self.opening {
            self.cancelled_late.insert(gather);
        }
        if let Some(program) = self.programs.iter_mut().find(|p| p.tape.iter().any(demanded)) {
            program.tape.push(Record::Cancelled(gather));
        } else {
            self.event(SchedulerEvent::GatherCancelled(gather));
        }
    }

    fn cut(&mut self) {
        let number = self.dice.below(self.programs.len());
        let why = [CutReason::Flush, CutReason::NodeLimit, CutReason::ByteLimit, CutReason::Demand][self.dice.below(4)];
        self.cut_program(number, why);
    }

    fn cut_program(&mut self, number: usize, why: CutReason) {
        if self.programs[number].closed {
            return;
        }
        let records = std::mem::take(&mut self.programs[number].tape).into();
        let session = SessionId(self.programs[number].id);
        self.event(SchedulerEvent::SegmentCut { session, records, why, at_ns: 0 });
    }

    fn close(&mut self, number: usize) {
        if !self.programs[number].closed {
            self.cut_program(number, CutReason::Flush);
            self.programs[number].closed = true;
            self.programs[number].held.clear();
            self.event(SchedulerEvent::SessionClosed(SessionId(self.programs[number].id)));
        }
    }

    /// Lets everything that is downstream come to its end.
    fn drain(&mut self) {
        let mut idle = 0;
        while !self.flight.is_empty() || self.opening {
            let before = (self.flight.len(), self.opening);
            self.complete();
            idle = if (self.flight.len(), self.opening) == before { idle + 1 } else { 0 };
            assert!(idle < 10_000, "nothing can finish: {:?}", self.flight.iter().map(|r| r.id).collect::<Vec<_>>());
        }
    }

    /// Something happens downstream.
    fn complete(&mut self) {
        if self.mode == Mode::Losing && self.dice.one_in(20) && !self.gpu_gone {
            return self.lose_gpu();
        }
        if self.opening && self.dice.one_in(4) {
            return self.end_opening();
        }
        if self.flight.is_empty() {
            return;
        }
        let place = self.dice.below(self.flight.len());
        let is_missing = |v: &ValueId| self.failed.contains(v) && !self.exists.contains_key(v);
        if self.flight[place].inputs.iter().any(|i| is_missing(&i.value)) {
            let region = self.flight.remove(place);
            return self.fail(region, ErrorKind::Internal);
        }
        // It waits for what an earlier region downstream makes.
        if !self.flight[place].inputs.iter().all(|i| self.exists.contains_key(&i.value)) {
            return;
        }
        let region = self.flight.remove(place);
        match self.mode {
            Mode::Failing if self.dice.one_in(8) => self.fail(region, ErrorKind::OutOfMemory),
            Mode::Dropping if self.dice.one_in(8) => {}
            _ => self.finish(region),
        }
    }

    fn fail(&mut self, region: Region, kind: ErrorKind) {
        for node in region.nodes.iter().filter(|n| n.output) {
            self.exists.remove(&node.value);
            self.failed.insert(node.value);
        }
        let error = Error::new(kind, "injected");
        self.event(SchedulerEvent::RegionFailed { region: region.id, error });
    }

    /// Computes a region, and reports in any order.
    fn finish(&mut self, region: Region) {
        let mut numbers: Vec<i64> = vec![];
        let mut faults = vec![];
        for node in &region.nodes {
            let args = node.args.iter().map(|arg| match *arg {
                RegionArg::Node(p) => numbers[p as usize],
                RegionArg::Input(i) => self.exists[&region.inputs[i as usize].value].0,
                RegionArg::Scalar(_) => 0,
            });
            let number = match &node.op {
                Op::Random { key, .. } => leaf(key.op),
                _ => combine(args),
            };
            numbers.push(number);
            if self.faulty.contains(&node.value) {
                faults.push((node.value, Error::new(ErrorKind::Index, "out of range")));
            }
            if node.output {
                self.exists.insert(node.value, (number, region.device));
            }
        }
        for input in region.inputs.iter().filter(|i| i.dies) {
            self.seen.died += 1;
            self.ended.insert(input.value);
        }
        for value in self.ends_after.remove(&region.id).unwrap_or_default() {
            self.ended.insert(value);
        }
        let mut events = vec![SchedulerEvent::RegionFinished { region: region.id, faults, device_ns: 1 }];
        for value in &region.readbacks {
            let data = HostBuffer::from_vec(vec![self.exists[value].0]).shared();
            let place = self.dice.below(events.len() + 1);
            events.insert(place, SchedulerEvent::ValueArrived { value: *value, data: Ok(data) });
        }
        for event in events {
            self.event(event);
        }
    }

    /// What the scheduler waits for is there, or will never be.
    fn end_opening(&mut self) {
        self.opening = false;
        let fails = self.mode != Mode::Healthy && self.dice.one_in(3);
        let result = match self.choice {
            _ if fails => Err(Error::new(ErrorKind::Device, "injected")),
            DeviceChoice::Auto if self.dice.one_in(4) => Ok(None),
            _ => Ok(Some(device(1, DeviceKind::Gpu))),
        };
        self.gpu_gone = !matches!(result, Ok(Some(_)));
        self.seen.opened += !self.gpu_gone as usize;
        self.seen.refused += self.gpu_gone as usize;
        self.event(SchedulerEvent::OpeningEnded(result));
    }

    fn lose_gpu(&mut self) {
        let gpu = DeviceId(1);
        let error = Error::new(ErrorKind::DeviceLost, "gone");
        let (lost, kept) = std::mem::take(&mut self.flight).into_iter().partition(|r| r.device == gpu);
        self.flight = kept;
        let mut values: Vec<ValueId> = self.exists.iter().filter(|(_, e)| e.1 == gpu).map(|(v, _)| *v).collect();
        values.sort_unstable();
        for value in &values {
            self.exists.remove(value);
            self.failed.insert(*value);
        }
        let lost: Vec<Region> = lost;
        for region in lost {
            self.fail(region, ErrorKind::DeviceLost);
        }
        for value in values {
            self.event(SchedulerEvent::ValueLost { value, error: error.clone() });
        }
        let replaced = self.dice.one_in(2);
        self.gpu_gone = !replaced;
        self.event(SchedulerEvent::DeviceLost { device: gpu, error, replaced });
    }

    fn event(&mut self, event: SchedulerEvent) {
        let mut out = vec![];
        self.state.handle(event, &mut out);
        self.state.validate();
        for instruction in out {
            match instruction {
                SchedulerInstruction::PlanRegion(region) => self.accept(region),
                SchedulerInstruction::Retire { value, after } => self.retire(value, after),
                SchedulerInstruction::Resolve { gather, result } => self.resolve(gather, result),
                SchedulerInstruction::Credit { nodes, .. } => self.credited += nodes as u64,
                SchedulerInstruction::OpenDevices => {
                    assert!(self.gpu_gone && !self.opening, "SCHED-11: it is asked for once");
                    self.opening = true;
                }
                SchedulerInstruction::Stop => self.stopped = true,
                SchedulerInstruction::Explain { .. } => {}
            }
        }
    }

    /// Checks a region as residency would.
    fn accept(&mut self, region: Region) {
        for input in &region.inputs {
            let value = input.value;
            if self.mode == Mode::Healthy {
                assert!(!self.ended.contains(&value), "{} reads {value}, which has ended", region.id);
            }
            if let Some(data) = &input.source {
                let number = data.as_slice::<i64>().unwrap()[0];
                self.exists.entry(value).or_insert((number, DeviceId::HOST));
            }
            let is_made = |r: &Region| r.nodes.iter().any(|n| n.output && n.value == value);
            let is_coming = self.flight.iter().any(is_made);
            let is_there = self.exists.contains_key(&value) || self.failed.contains(&value);
            assert!(is_there || is_coming || self.mode == Mode::Dropping, "REGION-3: {} reads {value}", region.id);
        }
        for (position, node) in region.nodes.iter().enumerate() {
            for arg in &node.args {
                assert!(!matches!(arg, RegionArg::Node(p) if *p as usize >= position), "REGION-1");
            }
            self.seen.repeated += self.failed.remove(&node.value) as usize;
        }
        assert!(!self.gpu_gone || region.device == DeviceId::HOST, "{} goes to a device that is gone", region.id);
        self.flight.push(region);
    }

    fn retire(&mut self, value: ValueId, after: Option<RegionId>) {
        self.seen.retired += 1;
        match after {
            Some(region) if self.flight.iter().any(|r| r.id == region) => {
                self.ends_after.entry(region).or_default().push(value);
            }
            _ => {
                let fresh = self.ended.insert(value);
                assert!(fresh || self.mode != Mode::Healthy, "{value} ends twice");
            }
        }
    }

    fn resolve(&mut self, gather: GatherId, result: Result<Delivered, Error>) {
        if self.cancelled_late.contains(&gather) {
            return;
        }
        let value = self
            .open
            .remove(&gather)
            .unwrap_or_else(|| panic!("{gather} resolves again (cancelled: {})", self.cancelled.contains(&gather)));
        let truth = self.truth[&value];
        match &result {
            Ok(Delivered::Host(_)) => self.seen.delivered += 1,
            Ok(_) => self.seen.materialised += 1,
            Err(error) if error.kind() == ErrorKind::Index => self.seen.poisoned += 1,
            Err(_) => self.seen.failed += 1,
        }
        match result {
            Ok(Delivered::Host(data)) => {
                assert_eq!(data.as_slice::<i64>().unwrap()[0], truth.number, "{value}");
                assert!(!truth.poisoned, "{value} is poisoned");
            }
            Ok(_) => assert!(!truth.poisoned, "{value} is poisoned"),
            Err(error) if self.mode == Mode::Healthy => {
                let expected = truth.poisoned && error.kind() == ErrorKind::Index;
                assert!(expected || error.kind() == ErrorKind::Cancelled, "{value}: {error}");
            }
            Err(_) => {}
        }
    }
}

fn leaf(op: u32) -> i64 {
    mix(op as u64) as i64
}

fn combine(args: impl Iterator<Item = i64>) -> i64 {
    args.fold(7, |all, arg| mix((all as u64).rotate_left(9) ^ arg as u64) as i64)
}

#[test]
fn every_gather_resolves_exactly_once_whatever_happens_downstream() {
    let seeds = match std::env::var("SEED").ok().and_then(|s| s.parse().ok()) {
        Some(seed) => seed..seed + 1,
        None => 0..4000u64,
    };
    let count = seeds.end - seeds.start;
    let mut all = Seen::default();
    for seed in seeds {
        let outcome = std::panic::catch_unwind(|| {
            let mut simulator = Simulator::new(seed);
            simulator.run();
            simulator.seen
        });
        let seen = outcome.unwrap_or_else(|panic| {
            eprintln!("the simulator failed with SEED={seed}");
            std::panic::resume_unwind(panic)
        });
        all.delivered += seen.delivered;
        all.materialised += seen.materialised;
        all.poisoned += seen.poisoned;
        all.failed += seen.failed;
        all.cancelled += seen.cancelled;
        all.repeated += seen.repeated;
        all.retired += seen.retired;
        all.died += seen.died;
        all.foreign += seen.foreign;
        all.opened += seen.opened;
        all.refused += seen.refused;
        all.again += seen.again;
    }
    eprintln!("{count} seeds: {all:?}");
    if count > 1000 {
        let rarest = [all.delivered, all.materialised, all.poisoned, all.failed, all.cancelled, all.repeated];
        assert!(
            rarest
                .iter()
                .chain([&all.retired, &all.died, &all.foreign, &all.opened, &all.refused, &all.again])
                .all(|n| *n > 200),
            "{all:?}"
        );
    }
}
