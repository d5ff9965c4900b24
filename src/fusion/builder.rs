//! The kernel builder: shares equal instructions, and collects parameters by their origin.
//!
//! In: calls of the lowering. Out: a [`Kernel`](crate::kernels::ir::Kernel) and its parameter words.
//! Must hold: parameters are shared by origin, never by value, so that the kernel of other sizes and numbers
//! is the same kernel; levels are computed here and nowhere else (IR-2).

use crate::contract::plan::NumberOf;
use crate::graph::{DType, ElementOp, RandomKey, Scalar};
use crate::kernels::ir::{HEADER_WORDS, IndexCompare, IndexOp, Inst, InstOp, Level, Val};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Where a parameter comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A scalar argument of a working node.
    Scalar(u32, u8),
    /// A number of a working node that is not an argument (a start, a shift), by its slot in the node.
    Attribute(u32, u8),
    /// The product of the space's extents over the dimensions of a mask.
    Extents(u16),
    /// The extent or product of extents of an operand, or of the space: (operand's buffer, or `None` for the space;
    /// first dimension; one past the last).
    Stride(Option<u32>, u8, u8),
    /// A constant: its bits and dtype.
    Constant(u64, DType),
    /// The place in a pack at which an operand, by its buffer's number, begins.
    Packed(u32),
}

/// The slot of a node's random key.
const KEY: u8 = u8::MAX;

/// Up to this many entries are searched one by one. Most kernels are small, and a hash table would cost more than it
/// saves.
const SEARCHED_MAX: usize = 32;

/// Collects a kernel.
#[derive(Debug, Default)]
pub struct Builder {
    /// Instructions so far.
    pub insts: Vec<Inst>,
    /// Parameter words so far, the header included (zero).
    pub params: Vec<u32>,
    /// Instructions by what they compute, once there are more than `SEARCHED_MAX`.
    shared: FxHashMap<(InstOp, DType), Val>,
    origins: Vec<(Origin, Val)>,
    /// Parameters by origin, once there are more than `SEARCHED_MAX`.
    origin_of: FxHashMap<(Origin, DType), Val>,
    sites: Vec<(u32, u32)>,
    /// Linear indices of loads that may need a transpose ("run across"): elements that are neighbours in memory lie
    /// along a run of the space's dimensions that does not begin with the first dimension. Each entry has the index,
    /// the run's first dimension, and one past its last.
    pub across: SmallVec<[(Val, usize, usize); 2]>,
    /// Whether the kernel holds lines, so that reduced values may be combined with elements again (IR-2).
    holds_lines: bool,
}

impl Builder {
    /// An empty kernel, which holds lines or not.
    pub fn new(holds_lines: bool) -> Builder {
        Builder { params: vec![0; HEADER_WORDS as usize], holds_lines, ..Builder::default() }
    }

    /// An instruction, shared with an equal one.
    pub fn inst(&mut self, op: InstOp, dtype: DType) -> Val {
        let count = self.insts.len();
        if count <= SEARCHED_MAX {
            if let Some(known) = self.insts.iter().rposition(|inst| inst.dtype == dtype && inst.op == op) {
                return Val(known as u32);
            }
        } else {
            if self.shared.is_empty() {
                let known = self.insts.iter().enumerate();
                self.shared = known.map(|(i, inst)| ((inst.op.clone(), inst.dtype), Val(i as u32))).collect();
            }
            if let Some(&val) = self.shared.get(&(op.clone(), dtype)) {
                return val;
            }
            self.shared.insert((op.clone(), dtype), Val(count as u32));
        }
        let level = self.level(&op);
        self.insts.push(Inst { op, dtype, level });
        Val(count as u32)
    }

    /// The level of a value.
    pub fn level_of(&self, val: Val) -> Level {
        self.insts[val.0 as usize].level
    }

    /// The dtype of a value.
    pub fn dtype_of(&self, val: Val) -> DType {
        self.insts[val.0 as usize].dtype
    }

    fn level(&self, op: &InstOp) -> Level {
        let join_levels = |a, b| join_levels(self.holds_lines, a, b);
        let join = |vals: &[Val]| vals.iter().map(|&v| self.level_of(v)).fold(Level::Uniform, join_levels);
        match op {
            InstOp::Param(_) => Level::Uniform,
            InstOp::Flat | InstOp::Inner => Level::Element,
            InstOp::Outer => Level::Outer,
            InstOp::Index(_, a, b) | InstOp::Compare(_, a, b) => join(&[*a, *b]),
            InstOp::Load { index, guard, .. } => {
                join_levels(join(&[*index]), guard.map_or(Level::Uniform, |g| join(&[g])))
            }
            InstOp::Apply(_, args) => join(args),
            InstOp::Check { index, extent, guard, .. } => {
                join_levels(join(&[*index, *extent]), guard.map_or(Level::Uniform, |g| join(&[g])))
            }
            InstOp::Require { condition, guard, .. } => {
                join_levels(join(&[*condition]), guard.map_or(Level::Uniform, |g| join(&[g])))
            }
            InstOp::Random { element, params, .. } => join_levels(join(&[*element]), join(params)),
            InstOp::Reduce { .. } | InstOp::Project(..) => Level::Reduced,
            InstOp::Scan { .. } => Level::Element,
        }
    }

    /// A 32-bit parameter for index arithmetic.
    pub fn number(&mut self, origin: Origin, value: u32) -> Val {
        self.scalar(origin, Scalar::U32(value))
    }

    /// A number of a dtype.
    pub fn scalar(&mut self, origin: Origin, scalar: Scalar) -> Val {
        let dtype = scalar.dtype();
        if let Some(val) = self.known(origin, dtype) {
            return val;
        }
        let slot = self.params.len() as u32;
        self.params.extend(scalar.words());
        let val = self.inst(InstOp::Param(slot), dtype);
        self.origins.push((origin, val));
        if !self.origin_of.is_empty() {
            self.origin_of.insert((origin, dtype), val);
        }
        val
    }

    /// The parameters that are scalar arguments or random keys: first word, working node, and which number of the node.
    pub fn numbers(&self) -> impl Iterator<Item = (u32, u32, NumberOf)> + '_ {
        self.origins.iter().filter_map(|(origin, val)| {
            let (node, of) = match *origin {
                Origin::Scalar(node, slot) => (node, NumberOf::Arg(slot)),
                Origin::Attribute(node, KEY) => (node, NumberOf::Key),
                _ => return None,
            };
            let InstOp::Param(word) = self.insts[val.0 as usize].op else { unreachable!("IR-3") };
            Some((word, node, of))
        })
    }

    /// The parameter of an origin, if there is one.
    fn known(&mut self, origin: Origin, dtype: DType) -> Option<Val> {
        if self.origins.len() <= SEARCHED_MAX {
            let mut known = self.origins.iter();
            return known.find(|(o, val)| *o == origin && self.dtype_of(*val) == dtype).map(|(_, val)| *val);
        }
        if self.origin_of.is_empty() {
            self.origin_of = self.origins.iter().map(|&(o, val)| ((o, self.dtype_of(val)), val)).collect();
        }
        self.origin_of.get(&(origin, dtype)).copied()
    }

    /// A constant of a dtype.
    pub fn constant(&mut self, scalar: Scalar) -> Val {
        self.scalar(Origin::Constant(scalar.bits(), scalar.dtype()), scalar)
    }

    /// The index 0.
    pub fn zero(&mut self) -> Val {
        self.constant(Scalar::U32(0))
    }

    /// Index arithmetic. Operations that change nothing, such as adding 0, are not emitted.
    pub fn index(&mut self, op: IndexOp, a: Val, b: Val) -> Val {
        self.inst(InstOp::Index(op, a, b), DType::U32)
    }

    /// Comparison of indices.
    pub fn compare(&mut self, op: IndexCompare, a: Val, b: Val) -> Val {
        self.inst(InstOp::Compare(op, a, b), DType::Bool)
    }

    /// An elementwise op.
    pub fn apply(&mut self, op: ElementOp, args: &[Val], dtype: DType) -> Val {
        self.inst(InstOp::Apply(op, SmallVec::from_slice(args)), dtype)
    }

    /// Converts a value to another dtype.
    pub fn cast(&mut self, val: Val, dtype: DType) -> Val {
        if self.dtype_of(val) == dtype { val } else { self.apply(ElementOp::Cast, &[val], dtype) }
    }

    /// The conjunction of two conditions.
    pub fn both(&mut self, a: Option<Val>, b: Option<Val>) -> Option<Val> {
        match (a, b) {
            (Some(a), Some(b)) if a == b => Some(a),
            (Some(a), Some(b)) => Some(self.apply(ElementOp::And, &[a, b], DType::Bool)),
            (a, b) => a.or(b),
        }
    }

    /// The five parameter words of a random stream; the first one's slot.
    pub fn random_key(&mut self, node: u32, key: RandomKey) -> u32 {
        // The words must be neighbours, so they are found again by the first alone.
        let origin = Origin::Attribute(node, KEY);
        if let Some(val) = self.known(origin, DType::U32) {
            let InstOp::Param(slot) = self.insts[val.0 as usize].op else { unreachable!("IR-3") };
            return slot;
        }
        let words = key.words();
        let slot = self.params.len() as u32;
        let val = self.number(origin, words[0]);
        debug_assert_eq!(self.inst(InstOp::Param(slot), DType::U32), val);
        self.params.extend_from_slice(&words[1..]);
        slot
    }

    /// The parameter slot that holds the number of a node's fault word; `word` gives it the first time.
    pub fn fault_slot(&mut self, node: u32, word: impl FnOnce() -> u32) -> u32 {
        if let Some(&(_, slot)) = self.sites.iter().find(|(n, _)| *n == node) {
            return slot;
        }
        let slot = self.params.len() as u32;
        self.params.push(word());
        self.sites.push((node, slot));
        slot
    }
}

/// The level of a value made of two others.
fn join_levels(holds_lines: bool, a: Level, b: Level) -> Level {
    match (a, b) {
        (Level::Element, Level::Reduced) | (Level::Reduced, Level::Element) if holds_lines => Level::Element,
        (Level::Uniform, other) | (other, Level::Uniform) => other,
        (Level::Element, Level::Reduced) | (Level::Reduced, Level::Element) => {
            panic!("IR-2: an element value and a reduced value do not join")
        }
        (Level::Element, _) | (_, Level::Element) => Level::Element,
        (Level::Reduced, _) | (_, Level::Reduced) => Level::Reduced,
        (Level::Outer, Level::Outer) => Level::Outer,
    }
}
