//! Simulates users: they record, drop, demand, cancel, cut and close.

use super::{Simulator, Truth, combine, leaf};
use crate::contract::messages::scheduler::SchedulerEvent;
use crate::contract::region::CutReason;
use crate::contract::tape::{Drops, Record, Want};
use crate::graph::{Arg, DType, Dist, ElementOp, Meta, Node, Op, RandomKey, Shape};
use crate::host_buffer::HostBuffer;
use crate::ids::{GatherId, SessionId, ValueId};
use std::panic::Location;

impl Simulator {
    /// A random step of a random program.
    pub(super) fn record(&mut self) {
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
        let node = Node {
            value,
            op,
            args: args.iter().copied().collect(),
            meta,
            pin: None,
            at: Location::caller().into(),
            block: 0,
        };
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
        } else if self.state.has_gather(gather) || self.state.is_opening() {
            self.event(SchedulerEvent::GatherCancelled(gather));
        } else {
            self.seen.overtook += 1;
        }
    }

    pub(super) fn cut(&mut self) {
        let number = self.dice.below(self.programs.len());
        let why = [CutReason::Flush, CutReason::NodeLimit, CutReason::ByteLimit, CutReason::Demand][self.dice.below(4)];
        self.cut_program(number, why);
    }

    pub(super) fn cut_program(&mut self, number: usize, why: CutReason) {
        if self.programs[number].closed {
            return;
        }
        let records = std::mem::take(&mut self.programs[number].tape).into();
        let session = SessionId(self.programs[number].id);
        self.send(SchedulerEvent::SegmentCut { session, records, why, at_ns: 0 });
    }

    pub(super) fn close(&mut self, number: usize) {
        if !self.programs[number].closed {
            self.cut_program(number, CutReason::Flush);
            self.programs[number].closed = true;
            self.programs[number].held.clear();
            self.send(SchedulerEvent::SessionClosed(SessionId(self.programs[number].id)));
        }
    }
}
