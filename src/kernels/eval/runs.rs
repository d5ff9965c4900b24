//! Comparisons, guarded loads, selects and stores that go through the lanes of a block run by run.
//!
//! In: conditions and indices as runs. Out: the instruction's value, made without writing out an index or a condition
//! for each lane. Each edge of an array costs a run; its interior is copied, or read in place. The result is `None` if
//! the arguments are not in runs: `block` then goes lane by lane.

use super::frame::{Frame, Place, Value};
use super::index::{self, Piece};
use super::operand::{self, HostOperand, Stored};
use crate::graph::{DType, Scalar};
use crate::kernels::ir::{Access, IndexCompare, Val};

const NO_PIECE: Piece = Piece { lanes: 0, start: 0, step: 0 };

impl Frame<'_> {
    /// A comparison of indices.
    pub(super) fn compare_runs(
        &mut self,
        at: usize,
        op: IndexCompare,
        a: Val,
        b: Val,
        lanes: usize,
        limit: usize,
    ) -> Option<Value> {
        self.make_answers(at, |frame, out| {
            let (mut one, mut other) = ([NO_PIECE; 1], [NO_PIECE; 1]);
            match (frame.runs(a, lanes, &mut one), frame.runs(b, lanes, &mut other)) {
                (Some(a), Some(b)) => index::compare(op, a, b, limit, out),
                _ => false,
            }
        })
    }

    /// The conjunction of two conditions in runs.
    pub(super) fn both_runs(&mut self, at: usize, a: Val, b: Val, lanes: usize, limit: usize) -> Option<Value> {
        let known = |value| match value {
            Value::Scalar(Scalar::Bool(known)) => Some(known),
            _ => None,
        };
        match (known(self.value(a)), known(self.value(b))) {
            (Some(false), _) | (_, Some(false)) => return Some(Value::Scalar(Scalar::Bool(false))),
            (Some(true), Some(true)) => return Some(Value::Scalar(Scalar::Bool(true))),
            _ => {}
        }
        self.make_answers(at, |frame, out| {
            let (mut one, mut other) = ([NO_PIECE; 1], [NO_PIECE; 1]);
            match (frame.runs(a, lanes, &mut one), frame.runs(b, lanes, &mut other)) {
                (Some(a), Some(b)) => index::both(a, b, limit, out),
                _ => false,
            }
        })
    }

    /// Makes a condition, in runs of 1 and 0, the value of an instruction.
    fn make_answers(&mut self, at: usize, make: impl FnOnce(&Self, &mut Vec<Piece>) -> bool) -> Option<Value> {
        match self.make_runs(at, make)? {
            Value::Scalar(answer) => Some(Value::Scalar(Scalar::Bool(answer.bits() != 0))),
            runs => Some(runs),
        }
    }

    /// A load whose guard is in runs.
    pub(super) fn load_where(
        &mut self,
        at: usize,
        source: &HostOperand<'_>,
        operand: u16,
        index: Val,
        guard: Val,
        place: &Place,
    ) -> Option<Value> {
        let lanes = place.lanes;
        let width = self.kernel.insts[at].dtype.bytes();
        let is_read_only = self.kernel.operands[operand as usize].access == Access::Read;
        let (mut one, mut other) = ([NO_PIECE; 1], [NO_PIECE; 1]);
        let (runs, on) = (self.runs(index, lanes, &mut one)?, self.runs(guard, lanes, &mut other)?);
        if is_read_only && let Some(first) = read_in_place(on, runs, lanes, source.elements(width)) {
            return Some(Value::Block(source.span(width, first, lanes)));
        }
        let out = self.output(at, place);
        let (runs, on) = (self.runs(index, lanes, &mut one)?, self.runs(guard, lanes, &mut other)?);
        index::where_it_holds(on, runs, |done, holds, run| {
            // SAFETY: `out` holds the block's lanes of the dtype, and is no argument's memory (EVAL-2).
            unsafe {
                let to = out.add(done as usize * width);
                match holds {
                    true => operand::gather_line(source, width, run.start, run.step, to, run.lanes as usize),
                    false => std::ptr::write_bytes(to, 0, run.lanes as usize * width),
                }
            }
        });
        Some(Value::Block(out))
    }

    /// A select whose condition is in runs, or the same for all lanes.
    pub(super) fn select_runs(&mut self, at: usize, args: &[Val], place: &Place) -> Option<Value> {
        let dtype = self.kernel.insts[at].dtype;
        let mut one = [NO_PIECE; 1];
        match self.value(args[0]) {
            Value::Scalar(answer) => {
                let chosen = args[if answer.bits() != 0 { 1 } else { 2 }];
                self.materialise(chosen, place.lanes);
                return Some(self.value(chosen));
            }
            Value::Pieces => {}
            _ => return None,
        }
        for &arg in &args[1..] {
            self.materialise(arg, place.lanes);
        }
        let out = self.output(at, place);
        let [yes, no] = [self.value(args[1]), self.value(args[2])];
        let mut done = 0;
        for run in self.runs(args[0], place.lanes, &mut one)? {
            let chosen = if run.start != 0 { yes } else { no };
            // SAFETY: `out` and the blocks hold the block's lanes of the dtype; `out` is no argument's memory (EVAL-2).
            unsafe { copy_part(chosen, dtype, done, run.lanes as usize, out) };
            done += run.lanes as usize;
        }
        Some(Value::Block(out))
    }

    /// A store at an index that is in runs.
    ///
    /// # Safety
    /// As [`operand::store_line`]'s, for each run.
    pub(super) unsafe fn store_runs(
        &mut self,
        target: &HostOperand<'_>,
        width: usize,
        index: Val,
        value: Stored,
        lanes: usize,
    ) {
        let mut one = [NO_PIECE; 1];
        let mut done = 0;
        for run in self.runs(index, lanes, &mut one).expect("the caller looked") {
            // SAFETY: the caller's promise.
            unsafe {
                operand::store_step(target, width, run.start, run.step, value.skip(done * width), run.lanes as usize)
            };
            done += run.lanes as usize;
        }
    }
}

/// If a guarded load may be read in place, the index of its first lane's element. The guard must hold for one run of
/// neighbours. The values of the other lanes are not used, but their places must lie in the operand, too.
fn read_in_place(on: &[Piece], index: &[Piece], lanes: usize, elements: usize) -> Option<u32> {
    let mut found = None;
    let mut several = false;
    index::where_it_holds(on, index, |done, holds, run| {
        if holds {
            several |= found.is_some() || (run.lanes > 1 && run.step != 1);
            found = Some((done, run.start));
        }
    });
    let (done, start) = found.filter(|_| !several)?;
    let first = start.checked_sub(done)?;
    (first as usize + lanes <= elements).then_some(first)
}

/// Copies some lanes of a block, or a number, to the same lanes of another block.
///
/// # Safety
/// Both have `first + lanes` elements of the dtype, and do not overlap.
unsafe fn copy_part(from: Value, dtype: DType, first: usize, lanes: usize, to: *mut u8) {
    let width = dtype.bytes();
    // SAFETY: the caller's promise.
    unsafe {
        let to = to.add(first * width);
        match from {
            Value::Block(block) => std::ptr::copy_nonoverlapping(block.add(first * width), to, lanes * width),
            Value::Scalar(scalar) => operand::fill(to, scalar, lanes),
            other => panic!("IR-1: a choice is {other:?}"),
        }
    }
}
