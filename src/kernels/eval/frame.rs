//! The frame of a worker: the values of the current block.
//!
//! In: a stage, operands, a place in the iteration space. Out: every instruction's value over the lanes of a
//! block, in registers that stay in the first-level cache, and the stores.
//!
//! Must hold: EVAL-1 and EVAL-2; a `Value::Block` points to at least the block's lanes, aligned to its dtype,
//! in a register, a fold's accumulators or an operand that is not written before the value is used up.

use super::index::{self, Piece};
use super::moments::ROWS;
use super::monoid::Parts;
use super::operand::HostOperand;
use super::stage::{NONE, Stage};
pub(super) use super::value::Value;
use super::value::Words;
use crate::graph::{DType, Scalar};
use crate::kernels::ir::{Kernel, Val};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::sync::atomic::AtomicU32;

/// Lanes of a block. Four registers of 1024 f64 each fill a first-level cache.
pub(super) const BLOCK: usize = 1024;

/// Registers beside those of instructions, for numbers that are written out as blocks.
const SPARE: usize = 2;

/// A launch of a kernel, as all its workers see it.
pub(super) struct Scene<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// Its parameter words.
    pub params: &'a [u32],
    /// Its operands.
    pub operands: &'a [HostOperand<'a>],
    /// Its fault words.
    pub faults: Option<&'a [AtomicU32]>,
    /// Values of uniform instructions.
    pub uniform: Vec<Value>,
}

// SAFETY: uniform values are numbers, never blocks.
unsafe impl Sync for Scene<'_> {}

/// Where a block lies in the iteration space.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Lanes, at most `BLOCK`.
    pub lanes: usize,
    /// The natural index of lane 0.
    pub natural: u32,
    /// The value of `InstOp::Flat`.
    pub flat: Value,
    /// The value of `InstOp::Outer`.
    pub outer: Value,
    /// The value of `InstOp::Inner`.
    pub inner: Value,
}

/// The accumulators of one `Reduce` or `Scan` in this pass.
pub(super) struct Fold {
    /// The instruction.
    pub inst: u32,
    /// Its accumulators. If each lane is an output, those of the block's lane 0.
    pub parts: Parts,
    /// Rows of an operand that wait to be folded, in order. Several are folded at a time, in registers.
    pub rows: SmallVec<[*const u8; ROWS]>,
}

/// How folds are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FoldMode {
    /// Arguments go into accumulators, lane by lane.
    Accumulate,
    /// As `Accumulate`, but all lanes belong to one output.
    Along,
    /// Folds are done: their values are the contents of the accumulators.
    Present,
    /// A scan along the lanes, whose accumulators are one carry.
    Running {
        /// Whether the scan begins at the last lane.
        reverse: bool,
    },
}

/// 64-byte aligned memory of a worker.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct CacheLine([u8; 64]);

/// Aligned memory of at least `bytes`.
pub(super) fn lines(bytes: usize) -> Vec<CacheLine> {
    vec![CacheLine([0; 64]); bytes.div_ceil(64)]
}

#[derive(Default)]
struct Arena {
    memory: Vec<CacheLine>,
    values: Vec<Words>,
    pieces: Vec<Vec<Piece>>,
}

thread_local! {
    /// A worker's arenas. They are kept between launches, so that their pages stay mapped and in cache.
    static ARENAS: RefCell<Vec<Arena>> = const { RefCell::new(Vec::new()) };
}

/// A worker's state in a pass.
pub(super) struct Frame<'a> {
    /// The launch.
    pub scene: &'a Scene<'a>,
    /// The kernel of the pass: the scene's kernel, or its variant for known answers to conditions (`peel`).
    pub kernel: &'a Kernel,
    /// The pass.
    pub stage: &'a Stage,
    /// The folds' accumulators.
    pub folds: SmallVec<[Fold; 2]>,
    /// How folds are evaluated.
    pub mode: FoldMode,
    /// Loads that are already done for the current block: the instruction's number, and the address of its elements.
    pub staged: SmallVec<[(u32, *const u8); 2]>,
    /// The number of blocks that were evaluated.
    pub blocks: u64,
    /// In a rolled kernel, the offset of the current turn's row of parameters from the first turn's, in words.
    pub row: usize,
    register_bytes: usize,
    arena: Arena,
}

impl Drop for Frame<'_> {
    fn drop(&mut self) {
        let arena = std::mem::take(&mut self.arena);
        ARENAS.with(|arenas| arenas.borrow_mut().push(arena));
    }
}

impl<'a> Frame<'a> {
    /// A frame in this worker's arena.
    pub fn new(scene: &'a Scene<'a>, stage: &'a Stage) -> Frame<'a> {
        let mut arena = ARENAS.with(|arenas| arenas.borrow_mut().pop()).unwrap_or_default();
        let wide = stage.order.iter().map(|&at| scene.kernel.insts[at as usize].dtype.bytes()).max().unwrap_or(4);
        // If registers were a whole number of pages apart, they would share cache sets, and loads would stall behind
        // stores.
        let register_bytes = BLOCK * wide.max(4) + 192;
        let lines_needed = ((stage.registers + SPARE) * register_bytes).div_ceil(64);
        if arena.memory.len() < lines_needed {
            arena.memory = lines(lines_needed * 64);
        }
        arena.values.clear();
        arena.values.extend(scene.uniform.iter().map(|&value| Words::of(value)));
        arena.values.resize(scene.kernel.insts.len(), Words::of(Value::Absent));
        if arena.pieces.len() < scene.kernel.insts.len() {
            arena.pieces.resize_with(scene.kernel.insts.len(), Vec::new);
        }
        Frame {
            scene,
            kernel: scene.kernel,
            stage,
            folds: SmallVec::new(),
            mode: FoldMode::Accumulate,
            staged: SmallVec::new(),
            blocks: 0,
            row: 0,
            register_bytes,
            arena,
        }
    }

    /// Switches to another pass over the same instructions, between blocks.
    pub fn enter(&mut self, kernel: &'a Kernel, stage: &'a Stage) {
        let lines_needed = ((stage.registers + SPARE) * self.register_bytes).div_ceil(64);
        if self.arena.memory.len() < lines_needed {
            self.arena.memory = lines(lines_needed * 64);
        }
        (self.kernel, self.stage) = (kernel, stage);
    }

    /// A value of the current block.
    pub fn value(&self, val: Val) -> Value {
        self.arena.values[val.0 as usize].value()
    }

    /// Sets a value of the current block.
    pub fn set(&mut self, at: usize, value: Value) {
        self.arena.values[at] = Words::of(value);
    }

    /// The values of all instructions, after a pass of `Part::Uniform`.
    pub fn values(&self) -> Vec<Value> {
        self.arena.values.iter().map(|words| words.value()).collect()
    }

    /// The dtype of a value.
    pub fn dtype(&self, val: Val) -> DType {
        self.kernel.inst(val).dtype
    }

    /// Whether an address lies in an operand, and not in a register.
    pub fn is_borrowed(&self, block: *const u8) -> bool {
        !self.arena.memory.as_ptr_range().contains(&block.cast())
    }

    fn register_at(&mut self, number: usize) -> *mut u8 {
        debug_assert!(number < self.stage.registers + SPARE);
        // SAFETY: the arena holds all registers and spares.
        unsafe { self.arena.memory.as_mut_ptr().cast::<u8>().add(number * self.register_bytes) }
    }

    /// The register of an instruction.
    pub fn register(&mut self, at: usize) -> *mut u8 {
        let number = self.stage.register[at];
        assert_ne!(number, NONE, "EVAL-2: instruction {at} has no register in this pass");
        self.register_at(number as usize)
    }

    /// The register of a loop's carried value `number` in set 0 or 1.
    pub fn carried(&mut self, set: usize, number: usize) -> *mut u8 {
        let count = self.kernel.rolled.as_ref().map_or(0, |rolled| rolled.carries.len());
        self.register_at(self.stage.registers - 2 * count + set * count + number)
    }

    /// A parameter word. If the word belongs to a row, this is the word of the current turn.
    pub fn word(&self, slot: usize) -> u32 {
        let is_of_turn = self.kernel.rolled.as_ref().is_some_and(|rolled| slot >= rolled.rows as usize);
        self.scene.params[if is_of_turn { slot + self.row } else { slot }]
    }

    /// The address at which an instruction writes its block: the memory of the operand to which it is stored, if it is
    /// written directly (`Stage::direct`), or its register.
    pub fn output(&mut self, at: usize, place: &Place) -> *mut u8 {
        match self.stage.direct[at] {
            NONE => self.register(at),
            operand => {
                let width = self.kernel.insts[at].dtype.bytes();
                self.scene.operands[operand as usize].span(width, place.natural, place.lanes)
            }
        }
    }

    /// The runs of an index or a condition; `None` if it is a block.
    pub fn runs<'b>(&'b self, val: Val, lanes: usize, one: &'b mut [Piece; 1]) -> Option<&'b [Piece]> {
        let lanes = lanes as u32;
        match self.value(val) {
            Value::Scalar(Scalar::U32(start)) => {
                one[0] = Piece { lanes, start, step: 0 };
                Some(one)
            }
            Value::Scalar(Scalar::Bool(holds)) => {
                one[0] = Piece { lanes, start: holds as u32, step: 0 };
                Some(one)
            }
            Value::Line { start, step } => {
                one[0] = Piece { lanes, start, step };
                Some(one)
            }
            Value::Pieces => Some(&self.arena.pieces[val.0 as usize]),
            _ => None,
        }
    }

    /// Computes the runs of an instruction's index by `make`. `None` if `make` returns false, because the index needs
    /// too many runs.
    pub fn make_runs(&mut self, at: usize, make: impl FnOnce(&Self, &mut Vec<Piece>) -> bool) -> Option<Value> {
        let mut out = std::mem::take(&mut self.arena.pieces[at]);
        let made = make(self, &mut out);
        let value = match (made, &out[..]) {
            (false, _) => None,
            (true, [one]) => {
                Some(if one.lanes == 1 { Value::line(one.start, 0) } else { Value::line(one.start, one.step) })
            }
            (true, _) => Some(Value::Pieces),
        };
        self.arena.pieces[at] = out;
        value
    }

    /// If a value is in runs, writes it out as a block.
    pub fn materialise(&mut self, val: Val, lanes: usize) {
        let at = val.0 as usize;
        let value = self.value(val);
        if !matches!(value, Value::Line { .. } | Value::Pieces) {
            return;
        }
        let register = self.register(at);
        if self.dtype(val) == DType::Bool {
            // SAFETY: a register holds BLOCK elements, and this one holds no other value (EVAL-2).
            let mut rest = unsafe { std::slice::from_raw_parts_mut(register, lanes) };
            for run in &self.arena.pieces[at] {
                let (head, tail) = rest.split_at_mut(run.lanes as usize);
                head.fill(run.start as u8);
                rest = tail;
            }
            self.set(at, Value::Block(register));
            return;
        }
        // SAFETY: a register holds BLOCK elements, and this one holds no other value (EVAL-2).
        let out = unsafe { std::slice::from_raw_parts_mut(register.cast::<u32>(), lanes) };
        match value {
            Value::Line { start, step } => {
                index::write_pieces(&[Piece { lanes: lanes as u32, start, step }], out);
            }
            _ => index::write_pieces(&self.arena.pieces[at], out),
        }
        self.set(at, Value::Block(register));
    }

    /// A value as a block. A number is written out into spare register `spare`.
    pub fn block(&mut self, val: Val, lanes: usize, spare: usize) -> *const u8 {
        self.materialise(val, lanes);
        match self.value(val) {
            Value::Block(at) => at,
            Value::Scalar(scalar) => {
                let register = self.register_at(self.stage.registers + spare);
                // SAFETY: a register holds BLOCK elements.
                unsafe { super::operand::fill(register, scalar, lanes) };
                register
            }
            other => panic!("IR-1: {val:?} is {other:?}"),
        }
    }

    /// An index as a slice of indices, of one element if all lanes have the same index.
    pub fn indices(&mut self, val: Val, lanes: usize, spare: usize) -> &'a [u32] {
        let one = matches!(self.value(val), Value::Scalar(_));
        let at = self.block(val, if one { 1 } else { lanes }, spare);
        // SAFETY: the block has that many u32; it lives in the frame or an operand, unchanged until the next
        // instruction is evaluated, and callers hold it no longer.
        unsafe { std::slice::from_raw_parts(at.cast(), if one { 1 } else { lanes }) }
    }

    /// A guard: `Ok` if the answer is the same for all lanes, otherwise `Err` with a byte for each lane.
    pub fn guard(&mut self, guard: Option<Val>, lanes: usize) -> std::result::Result<bool, &'a [u8]> {
        if let Some(guard) = guard {
            self.materialise(guard, lanes);
        }
        match guard.map(|v| self.value(v)) {
            None => Ok(true),
            Some(Value::Scalar(scalar)) => Ok(scalar.bits() != 0),
            // SAFETY: a block of bools; as in `indices`.
            Some(Value::Block(at)) => Err(unsafe { std::slice::from_raw_parts(at, lanes) }),
            Some(other) => panic!("IR-7: a guard is {other:?}"),
        }
    }

    /// Evaluates the stage at a place, stores included.
    pub fn evaluate(&mut self, place: &Place) {
        self.blocks += 1;
        self.evaluate_part(place);
    }

    /// Evaluates the stage at a place that is part of a block.
    pub fn evaluate_part(&mut self, place: &Place) {
        debug_assert!(place.lanes <= BLOCK && place.lanes > 0);
        if let Some(rolled) = &self.kernel.rolled {
            return self.evaluate_turns(rolled, place);
        }
        let stage = self.stage;
        for &at in &stage.order {
            let value = self.instruction(at as usize, place);
            self.set(at as usize, value);
        }
        for &store in &stage.stores {
            self.store(store as usize, place);
        }
    }
}
