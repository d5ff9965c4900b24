//! Evaluates the instructions of the IR over one block, and does its stores.
//!
//! In: values of earlier instructions. Out: the value of the next instruction, or elements in an operand.

use super::frame::{FoldMode, Frame, Place, Value};
use super::index::{self, Piece};
use super::operand::{self, Stored};
use super::{HostArg, element, random};
use super::{moments, monoid, running};
use crate::graph::{DType, Dist, ElementOp, Scalar};
use crate::kernels::ir::{IndexCompare, IndexOp, InstOp, Monoid, Val};
use smallvec::SmallVec;

/// An index stays in runs only if they have at least this many lanes on average; otherwise it is written out as a
/// block.
const LANES_PER_RUN: usize = 16;

/// The most runs that a value over this many lanes may have.
fn runs_max(lanes: usize) -> usize {
    (lanes / LANES_PER_RUN).max(1)
}

impl Frame<'_> {
    /// Evaluates one instruction. It is inlined into the loop over instructions, so that its value is stored directly
    /// beside the others. If it were returned in two registers and then copied as a whole, the copy would stall for as
    /// long as a short instruction takes.
    #[inline(always)]
    pub(super) fn instruction(&mut self, at: usize, place: &Place) -> Value {
        let inst = &self.kernel.insts[at];
        match &inst.op {
            InstOp::Param(slot) => Value::Scalar(self.parameter(*slot, inst.dtype)),
            InstOp::Flat => place.flat,
            InstOp::Outer => place.outer,
            InstOp::Inner => place.inner,
            InstOp::Index(op, a, b) => self.index(at, *op, *a, *b, place.lanes),
            InstOp::Compare(op, a, b) => self.compare(at, *op, *a, *b, place.lanes),
            InstOp::Load { operand, index, guard, .. } => self.load(at, *operand, *index, *guard, place),
            InstOp::Apply(op, args) => self.apply(at, *op, args, place),
            InstOp::Check { index, extent, site, guard } => self.check(at, *index, *extent, *site, *guard, place.lanes),
            InstOp::Require { condition, site, guard } => self.require(*condition, *site, *guard, place.lanes),
            InstOp::Random { dist, key, element, params, .. } if dist.parameters() > 0 => {
                self.draw(at, *dist, *key, *element, params, place)
            }
            InstOp::Random { dist, key, element, params, .. } => self.random(at, *dist, *key, *element, params, place),
            InstOp::Reduce { monoid, args } => self.reduce(at, *monoid, args, place.lanes),
            InstOp::Project(of, component) => self.project(*of, *component),
            InstOp::Scan { monoid, arg } => self.scan(at, *monoid, *arg, place),
        }
    }

    fn parameter(&self, slot: u32, dtype: DType) -> Scalar {
        let slot = slot as usize;
        let low = self.word(slot) as u64;
        let high = if dtype.is_wide() { self.word(slot + 1) as u64 } else { 0 };
        Scalar::from_bits(dtype, low | high << 32)
    }

    fn index(&mut self, at: usize, op: IndexOp, a: Val, b: Val, lanes: usize) -> Value {
        if let (Some(x), Some(y)) = (self.value(a).as_line(), self.value(b).as_line())
            && let Some((start, step)) = index::combine_lines(op, x, y, lanes)
        {
            return Value::line(start, step);
        }
        let limit = runs_max(lanes);
        let runs = self.make_runs(at, |frame, out| {
            let (mut one, mut other) =
                ([Piece { lanes: 0, start: 0, step: 0 }; 1], [Piece { lanes: 0, start: 0, step: 0 }; 1]);
            match (frame.runs(a, lanes, &mut one), frame.runs(b, lanes, &mut other)) {
                (Some(a), Some(b)) => index::combine(op, a, b, limit, out),
                _ => false,
            }
        });
        if let Some(value) = runs {
            return value;
        }
        let register = self.register(at);
        // SAFETY: a register holds BLOCK elements, apart from its arguments' (EVAL-2).
        let out = unsafe { std::slice::from_raw_parts_mut(register.cast::<u32>(), lanes) };
        if let (Value::Line { start, step: 1 }, Value::Scalar(Scalar::U32(divisor)), IndexOp::Div | IndexOp::Rem) =
            (self.value(a), self.value(b), op)
            && divisor > 0
            && start.checked_add(lanes as u32 - 1).is_some()
        {
            index::divide_consecutive(op == IndexOp::Rem, start, divisor, out);
            return Value::Block(register);
        }
        // The first argument is written out as a block. The second may stay one number.
        let (first, second) = match (self.value(a), op) {
            (Value::Scalar(_), IndexOp::Add | IndexOp::Mul) => (b, a),
            _ => (a, b),
        };
        let first = self.block(first, lanes, 0);
        let second = self.indices(second, lanes, 1);
        // SAFETY: a block of `lanes` indices.
        let first = unsafe { std::slice::from_raw_parts(first.cast::<u32>(), lanes) };
        index::combine_blocks(op, first, second, out);
        Value::Block(register)
    }

    fn compare(&mut self, at: usize, op: IndexCompare, a: Val, b: Val, lanes: usize) -> Value {
        if let (Some((a, 0)), Some((b, 0))) = (self.value(a).as_line(), self.value(b).as_line()) {
            return Value::Scalar(Scalar::Bool(index::compare_one(op, a, b)));
        }
        if let Some(answer) = self.compare_runs(at, op, a, b, lanes, runs_max(lanes)) {
            return answer;
        }
        let register = self.register(at);
        let first = self.indices(a, lanes, 0);
        let second = self.indices(b, lanes, 1);
        // SAFETY: a register holds BLOCK elements, apart from its arguments' (EVAL-2).
        let out = unsafe { std::slice::from_raw_parts_mut(register, lanes) };
        let pick = |slice: &[u32], lane: usize| if slice.len() == 1 { slice[0] } else { slice[lane] };
        for (lane, slot) in out.iter_mut().enumerate() {
            *slot = index::compare_one(op, pick(first, lane), pick(second, lane)) as u8;
        }
        Value::Block(register)
    }

    fn load(&mut self, at: usize, from: u16, index: Val, guard: Option<Val>, place: &Place) -> Value {
        if let Some(&(_, ready)) = self.staged.iter().find(|staged| staged.0 == at as u32) {
            return Value::Block(ready);
        }
        let lanes = place.lanes;
        let dtype = self.kernel.insts[at].dtype;
        let width = dtype.bytes();
        let source = self.scene.operands[from as usize];
        if let Some(on) = guard
            && matches!(self.value(on), Value::Pieces)
            && let Some(loaded) = self.load_where(at, &source, from, index, on, place)
        {
            return loaded;
        }
        let guard = match self.guard(guard, lanes) {
            Ok(false) => return Value::Scalar(Scalar::from_bits(dtype, 0)),
            Ok(true) => None,
            Err(lanes) => Some(lanes),
        };
        if guard.is_none() {
            match self.value(index) {
                Value::Scalar(scalar) => return Value::Scalar(source.scalar(dtype, scalar.bits() as u32)),
                Value::Line { start, step: 1 } if !self.stage.copied[at] && source.elements(width) > 0 => {
                    return Value::Block(source.span(width, start, lanes));
                }
                _ => {}
            }
        }
        let out = self.output(at, place);
        // SAFETY: `out` holds `lanes` elements of the dtype, and is no argument's memory (EVAL-2).
        unsafe {
            if guard.is_none() {
                let mut one = [Piece { lanes: 0, start: 0, step: 0 }; 1];
                if let Some(runs) = self.runs(index, lanes, &mut one) {
                    let mut done = 0;
                    for run in runs {
                        let to = out.add(done * width);
                        operand::gather_line(&source, width, run.start, run.step, to, run.lanes as usize);
                        done += run.lanes as usize;
                    }
                    return Value::Block(out);
                }
            }
            let index = self.block(index, lanes, 0);
            operand::gather(&source, width, std::slice::from_raw_parts(index.cast(), lanes), guard, out);
        }
        Value::Block(out)
    }

    fn apply(&mut self, at: usize, op: ElementOp, args: &[Val], place: &Place) -> Value {
        let stage = self.stage;
        if let Some(chain) = &stage.chains[at] {
            return self.chain(at, chain, place);
        }
        let mut in_runs = None;
        if op == ElementOp::Select {
            in_runs = self.select_runs(at, args, place);
        } else if op == ElementOp::And {
            in_runs = self.both_runs(at, args[0], args[1], place.lanes, runs_max(place.lanes));
        }
        if let Some(value) = in_runs {
            return value;
        }
        let output = self.kernel.insts[at].dtype;
        let input = self.dtype(args[if op == ElementOp::Select { 1 } else { 0 }]);
        let mut list: SmallVec<[HostArg<'_>; 3]> = SmallVec::new();
        let mut uniform = true;
        for &arg in args {
            self.materialise(arg, place.lanes);
            list.push(match self.value(arg) {
                Value::Block(block) => {
                    uniform = false;
                    let bytes = place.lanes * self.dtype(arg).bytes();
                    // SAFETY: a block of `lanes` elements that is not written while this op runs.
                    HostArg::Block(unsafe { std::slice::from_raw_parts(block, bytes) })
                }
                Value::Scalar(scalar) => HostArg::Scalar(scalar),
                other => panic!("IR-1: {arg:?} is {other:?}"),
            });
        }
        let width = output.bytes();
        if uniform {
            let mut word = [0u64; 1];
            element::apply(op, input, output, &list, &mut bytemuck::cast_slice_mut(&mut word)[..width], 1);
            // SAFETY: the word was just written as one element of the dtype.
            return Value::Scalar(unsafe { operand::read_scalar(word.as_ptr().cast(), output) });
        }
        let out = self.output(at, place);
        // SAFETY: `out` holds `lanes` elements and is no argument's memory (EVAL-2; a directly written operand
        // is never read).
        let bytes = unsafe { std::slice::from_raw_parts_mut(out, place.lanes * width) };
        element::apply(op, input, output, &list, bytes, place.lanes);
        Value::Block(out)
    }

    fn random(&mut self, at: usize, dist: Dist, key: u32, element: Val, range: &[Val], place: &Place) -> Value {
        let dtype = self.kernel.insts[at].dtype;
        let width = dtype.bytes();
        let key: [u32; 5] = std::array::from_fn(|n| self.word(key as usize + n));
        let end = |val: Val| match self.value(val) {
            Value::Scalar(end) => end,
            other => panic!("IR-7: the range of random integers is one for all: {other:?}"),
        };
        let range = if let &[low, end_of] = range { Some((end(low), end(end_of))) } else { None };
        if let Value::Scalar(number) = self.value(element) {
            let mut word = [0u64; 1];
            let out = &mut bytemuck::cast_slice_mut(&mut word)[..width];
            random::at(dist, dtype, key, &[number.bits() as u32], range, out);
            // SAFETY: the word was just written as one element of the dtype.
            return Value::Scalar(unsafe { operand::read_scalar(word.as_ptr().cast(), dtype) });
        }
        let lanes = place.lanes;
        let out = self.output(at, place);
        // SAFETY: `out` holds `lanes` elements, apart from the arguments' memory (EVAL-2).
        let bytes = unsafe { std::slice::from_raw_parts_mut(out, lanes * width) };
        match self.value(element) {
            Value::Line { start, step: 1 } if start.checked_add(lanes as u32 - 1).is_some() => {
                random::fill(dist, dtype, key, start, range, bytes, lanes);
            }
            _ => random::at(dist, dtype, key, self.indices(element, lanes, 0), range, bytes),
        }
        Value::Block(out)
    }

    /// Numbers of a distribution whose parameters may differ between elements.
    fn draw(&mut self, at: usize, dist: Dist, key: u32, element: Val, params: &[Val], place: &Place) -> Value {
        let key: [u32; 5] = std::array::from_fn(|n| self.word(key as usize + n));
        let of = self.dtype(params[0]);
        let mut list: SmallVec<[HostArg<'_>; 2]> = SmallVec::new();
        for &param in params {
            self.materialise(param, place.lanes);
            list.push(match self.value(param) {
                // SAFETY: a block of `lanes` elements that is not written while this op runs.
                Value::Block(block) => {
                    HostArg::Block(unsafe { std::slice::from_raw_parts(block, place.lanes * of.bytes()) })
                }
                Value::Scalar(scalar) => HostArg::Scalar(scalar),
                other => panic!("IR-1: {param:?} is {other:?}"),
            });
        }
        let dtype = self.kernel.insts[at].dtype;
        let number = self.value(element);
        if let Value::Scalar(number) = number
            && list.iter().all(|param| matches!(param, HostArg::Scalar(_)))
        {
            let mut word = [0u64; 1];
            let out = &mut bytemuck::cast_slice_mut(&mut word)[..dtype.bytes()];
            random::draw(dist, of, key, random::Numbers::From(number.bits() as u32), &list, out);
            // SAFETY: the word was just written as one element of the dtype.
            return Value::Scalar(unsafe { operand::read_scalar(word.as_ptr().cast(), dtype) });
        }
        let numbers = match number {
            Value::Line { start, step: 1 } => random::Numbers::From(start),
            _ => random::Numbers::List(self.indices(element, place.lanes, 0)),
        };
        let out = self.output(at, place);
        // SAFETY: `out` holds `lanes` elements, apart from the arguments' memory (EVAL-2).
        let out_bytes = unsafe { std::slice::from_raw_parts_mut(out, place.lanes * dtype.bytes()) };
        random::draw(dist, of, key, numbers, &list, out_bytes);
        Value::Block(out)
    }

    fn reduce(&mut self, at: usize, monoid: Monoid, args: &[Val], lanes: usize) -> Value {
        let number = self.folds.iter().position(|f| f.inst == at as u32).expect("IR-5: a fold without accumulators");
        let parts = self.folds[number].parts;
        if self.mode == FoldMode::Present {
            return Value::Block(parts.0[0]);
        }
        let dtype = self.dtype(args[0]);
        let first = self.block(args[0], lanes, 0);
        let second = args.get(1).map_or(first, |&arg| self.block(arg, lanes, 1));
        // SAFETY: accumulators and blocks hold BLOCK lanes of the argument's dtype (IR-7).
        unsafe {
            match self.mode {
                FoldMode::Along if monoid.is_moments() => {
                    moments::accumulate_along(monoid, dtype, parts, [first, second], lanes)
                }
                // The stage has no stores, so the row stays unchanged in its operand until it is folded with others.
                FoldMode::Accumulate
                    if monoid::takes_rows(monoid, dtype) && self.stage.stores.is_empty() && self.is_borrowed(first) =>
                {
                    let rows = &mut self.folds[number].rows;
                    rows.push(first);
                    if rows.len() == moments::ROWS {
                        self.fold_rows(number, lanes);
                    }
                }
                _ => {
                    self.fold_rows(number, lanes);
                    monoid::accumulate(monoid, dtype, parts, [first, second], lanes);
                }
            }
        }
        Value::Absent
    }

    /// Folds the rows that are waiting in `Fold::rows`, for every fold.
    pub(super) fn fold_waiting(&mut self, lanes: usize) {
        (0..self.folds.len()).for_each(|number| self.fold_rows(number, lanes));
    }

    fn fold_rows(&mut self, number: usize, lanes: usize) {
        let fold = &mut self.folds[number];
        if fold.rows.is_empty() {
            return;
        }
        let InstOp::Reduce { monoid, args } = &self.kernel.insts[fold.inst as usize].op else {
            panic!("IR-5: instruction {} is no fold", fold.inst);
        };
        let dtype = self.kernel.inst(args[0]).dtype;
        let rows = std::mem::take(&mut fold.rows);
        // SAFETY: accumulators hold the lanes, and so does each row, which `reduce` found in an operand.
        unsafe { monoid::accumulate_rows(*monoid, dtype, fold.parts, &rows, lanes) };
    }

    fn project(&self, of: Val, component: u8) -> Value {
        match self.folds.iter().find(|f| f.inst == of.0) {
            Some(fold) => Value::Block(fold.parts.0[component as usize]),
            None => panic!("IR-7: component {component} of {of:?}, which is no fold"),
        }
    }

    fn scan(&mut self, at: usize, monoid: Monoid, arg: Val, place: &Place) -> Value {
        let fold = self.folds.iter().find(|f| f.inst == at as u32).expect("IR-5: a scan without a carry");
        let parts = fold.parts;
        let (dtype, lanes) = (self.dtype(arg), place.lanes);
        let block = self.block(arg, lanes, 0);
        if running::is_float_sum(monoid, dtype) {
            let out = self.output(at, place);
            // SAFETY: `out` holds `lanes` elements, apart from the argument's memory (EVAL-2).
            match self.mode {
                FoldMode::Running { reverse } => unsafe {
                    running::sum(dtype, block, out, parts, lanes, reverse);
                },
                _ => unsafe { running::sums(dtype, block, out, parts, lanes) },
            }
            return Value::Block(out);
        }
        let FoldMode::Running { reverse } = self.mode else {
            // Each lane is a line of its own: the value is the accumulator itself, until the next step.
            // SAFETY: accumulators and blocks hold BLOCK lanes.
            unsafe { monoid::accumulate(monoid, dtype, parts, [block, block], lanes) };
            return Value::Block(parts.0[0]);
        };
        let out = self.output(at, place);
        // SAFETY: `out` holds `lanes` elements, apart from the argument's memory (EVAL-2).
        unsafe {
            std::ptr::copy_nonoverlapping(block, out, lanes * dtype.bytes());
            running::fold(monoid, dtype, out, parts.0[0], lanes, reverse);
        }
        Value::Block(out)
    }

    /// Does one store of the stage.
    pub(super) fn store(&mut self, number: usize, place: &Place) {
        let store = &self.kernel.stores[number];
        let lanes = place.lanes;
        let target = self.scene.operands[store.operand as usize];
        let width = self.kernel.operands[store.operand as usize].dtype.bytes();
        let guard = match self.guard(store.guard, lanes) {
            Ok(false) => return,
            Ok(true) => None,
            Err(lanes) => Some(lanes),
        };
        self.materialise(store.value, lanes);
        let value = match self.value(store.value) {
            Value::Scalar(scalar) => Stored::Scalar(scalar),
            Value::Block(block) => Stored::Block(block),
            other => panic!("IR-1: {:?} is {other:?}", store.value),
        };
        // SAFETY: the value holds `lanes` elements of the operand's dtype (IR-4), and the kernel writes each
        // element from one lane.
        unsafe {
            let Some(index) = store.index else {
                if let Stored::Block(block) = value
                    && guard.is_none()
                    && std::ptr::eq(block, target.span(width, place.natural, lanes))
                {
                    // The instruction has written its value to the operand directly.
                    return;
                }
                operand::store_line(&target, width, place.natural, value, guard, lanes);
                return;
            };
            match self.value(index) {
                Value::Line { start, step: 1 } => operand::store_line(&target, width, start, value, guard, lanes),
                Value::Pieces if guard.is_none() => self.store_runs(&target, width, index, value, lanes),
                _ => {
                    let index = self.block(index, lanes, 0);
                    operand::scatter(&target, width, std::slice::from_raw_parts(index.cast(), lanes), value, guard);
                }
            }
        }
    }
}
