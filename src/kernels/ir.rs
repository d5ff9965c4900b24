//! The kernel IR: what fusion lowers a group of nodes to, what the WGSL writer prints and what the host
//! evaluator runs. One form of it holds elementwise DAGs, views, random numbers, reductions with
//! producers, siblings and tails, scans, indexed loads and guarded stores.
//!
//! A kernel holds no size and no number: extents, strides, scalars, seeds and fault words are parameters
//! (32-bit words, wide ones take two, low first), so its hash is the key of the pipeline cache.
//!
//! Invariants (checked by `verify`):
//! - IR-1: instructions are in SSA order; an operand of an instruction stands before it. No instruction and no store
//!   names a `Require`, because that has no value.
//! - IR-2: an instruction's level is what its arguments imply (`verify::join`); only `Reduce` lowers Element to
//!   Reduced; a store's values and indices have a level that its form can write.
//! - IR-3: `Param` slots lie in `HEADER_WORDS..params`, wide ones with their second word.
//! - IR-4: a `Load` names a readable operand of its dtype, a `Store` a writable one.
//! - IR-5: `Outer`, `Inner`, `Reduce`, `Scan` occur only in the forms that have them.
//! - IR-6: an operand is `tiled` only if every access to it is at the flat index.
//! - IR-7: every instruction's dtype follows from its op and arguments (`ElementOp`'s rule).
//! - IR-8: a kernel that is a loop keeps the rules in the header of `rolled.rs`.

pub use super::launch::*;
pub use super::rolled::{Carry, Rolled};
use super::verify::arguments;
use crate::graph::{DType, Dist, ElementOp};
use smallvec::SmallVec;

/// A value of the kernel: the index of its instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Val(pub u32);

/// The indices on which a value depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// The same for the whole launch.
    Uniform,
    /// Varies with the outer (kept) index only. Not in form `Map`.
    Outer,
    /// Varies with every element of the iteration space.
    Element,
    /// Known after the reduction; varies with the outer index. Together with Uniform and Outer it gives Reduced.
    /// Together with Element it gives Element in form `Line`, and is an error in the other forms.
    Reduced,
}

/// How the iteration space is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// `Flat` runs over `begin..end`; nothing is folded.
    Map,
    /// `Outer` runs over the kept elements, `Inner` over the reduced ones.
    Reduce {
        /// Whether consecutive `Inner` indices are neighbours in memory (dimension 0 is reduced); otherwise
        /// consecutive `Outer` indices are.
        inner_fast: bool,
    },
    /// As `Reduce`, but each `Inner` position yields a value: the running fold.
    Scan {
        /// As in `Reduce`.
        inner_fast: bool,
    },
    /// As `Reduce` along neighbours in memory, but the results of folds may be combined with the elements of their line
    /// again. A workgroup holds whole lines in registers, so that a line is read once, however many folds follow each
    /// other.
    Line(Lines),
}

/// How a kernel of form `Line` holds lines (`line_plan`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lines {
    /// Invocations of a workgroup, a power of two from [`WORKGROUP`] on.
    pub workgroup: u32,
    /// Groups of `width` elements of a line that each invocation holds.
    pub rounds: u32,
    /// Whether lines consist of whole groups of four, and begin at multiples of four.
    pub in_fours: bool,
}

/// Parameter words with a fixed meaning; body parameters follow from `HEADER_WORDS` on.
#[cfg(feature = "gpu")]
pub mod header {
    /// First flat (Map) or outer (Reduce, Scan) index of this dispatch.
    pub const BEGIN: usize = 0;
    /// One past the last index of this dispatch.
    pub const END: usize = 1;
    /// Flat index of the first element of the bound segment of tiled operands of 32 bits an element: they are accessed
    /// at `flat - BASE`.
    pub const BASE: usize = 2;
    /// log2 of the 32-bit elements in a segment, for operands with several segments; 64-bit ones are half as many.
    pub const SEGMENT_SHIFT: usize = 3;
    /// The inner extent.
    pub const INNER: usize = 4;
    /// Inner elements that a chunk folds (a multiple of 4).
    pub const CHUNK: usize = 5;
    /// Chunks of each output. If there are several, partial results go through scratch.
    pub const CHUNKS: usize = 6;
    /// 0: fold and finish in one dispatch. 1: fold chunks into scratch. 2: fold scratch and finish.
    pub const PHASE: usize = 7;
    /// log2 of the invocations that share one output (or one chunk of it), at most 8.
    pub const LANES_LOG2: usize = 8;
    /// First chunk of this dispatch (phase 1, tiled).
    pub const CHUNK_BEGIN: usize = 9;
    /// One past the last chunk of this dispatch (phase 1).
    pub const CHUNK_END: usize = 10;
    /// Scans: 1 to run from the end.
    pub const REVERSE: usize = 11;
    /// The number of outputs (outer extent) of the whole launch: the stride of scratch.
    pub const OUTER: usize = 12;
    /// Flat index of the first element of the bound segment of tiled operands of 64 bits an element.
    pub const BASE_WIDE: usize = 13;
}

/// Words before the body's parameters.
pub const HEADER_WORDS: u32 = 16;

/// Wrapping arithmetic on 32-bit indices (negative steps are two's complement).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexOp {
    /// Wrapping sum.
    Add,
    /// Wrapping difference.
    Sub,
    /// Wrapping product.
    Mul,
    /// Quotient; the divisor is never zero.
    Div,
    /// Remainder; the divisor is never zero.
    Rem,
    /// `a` if it is less than `b`, else `a - b`. This is the remainder if `a` is less than `2 * b`.
    Wrap,
}

/// Comparison of 32-bit indices, which are unsigned unless a variant says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexCompare {
    /// `a < b`
    Less,
    /// `a == b`
    Equal,
    /// `a <= b` as signed 32-bit numbers.
    SignedLessEqual,
}

/// How consecutive lanes (neighbouring `Flat`, or neighbouring `Inner` of an inner-fast form) move through an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Run {
    /// All lanes have the same index.
    Same,
    /// Exactly the flat index of the iteration space.
    Flat,
    /// A transpose, in a `Map`: lanes that are `stride` apart in the flat index read neighbours in memory, for `extent`
    /// lanes in a row. Both fields are parameter slots. All such loads of a kernel have the same two.
    Across {
        /// The distance in the flat index between two neighbours in memory.
        stride: u32,
        /// How many lanes in a row read neighbours in memory.
        extent: u32,
    },
    /// Any other pattern.
    Any,
}

/// An associative fold. `Project` reads the components of its value. Variants are documented by their neutral element,
/// their operation and their components.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Monoid {
    /// 0, +. One component of the argument's dtype.
    Sum,
    /// 1, *.
    Prod,
    /// +inf or the type's greatest, minimum. The result is NaN if any value is (`Nan::Include`).
    MinInclude,
    /// NaN or, for integers, the type's greatest; minimum. NaN is skipped, so that floats give NaN only if there is no
    /// other value.
    MinOmit,
    /// As `MinInclude`, but the maximum.
    MaxInclude,
    /// As `MinOmit`, but the maximum.
    MaxOmit,
    /// Arguments (value, u32 position): components (least value, its position). The first position wins ties. NaN is
    /// skipped; if all values are NaN, the first position wins.
    ArgMinOmit,
    /// As `ArgMinOmit`, but the greatest value.
    ArgMaxOmit,
    /// As `ArgMinOmit`, but the first NaN wins.
    ArgMinInclude,
    /// As `ArgMinInclude`, but the greatest value.
    ArgMaxInclude,
    /// false, or. One component, a bool.
    Any,
    /// true, and. One component, a bool.
    All,
    /// Argument value (float): components (count as the float type, a base among the values, mean minus base, sum of
    /// squared deviations from the mean). The mean is never rounded to the dtype: the base keeps its large part.
    Moments,
    /// As `Moments` with a second argument, a bool: elements where it is false are skipped.
    MomentsWhere,
    /// Argument value (float): components (sum of the squares of small values, of middling ones, of big ones), scaled
    /// as [`SquareLimits`] says so that none overflows or vanishes. NaN is a middling value, infinity a big one.
    Squares,
    /// Argument value (float): components (the greatest value, sum of `exp(value - greatest)`). Without values, the
    /// greatest is -inf and the sum 0. NaN is never the greatest, and makes the sum NaN.
    ExpSum,
}

impl Monoid {
    /// The dtypes of the components, given the first argument's.
    pub fn components(self, argument: DType) -> SmallVec<[DType; 4]> {
        match self {
            Monoid::Sum
            | Monoid::Prod
            | Monoid::MinInclude
            | Monoid::MinOmit
            | Monoid::MaxInclude
            | Monoid::MaxOmit => SmallVec::from_slice(&[argument]),
            Monoid::ArgMinOmit | Monoid::ArgMaxOmit | Monoid::ArgMinInclude | Monoid::ArgMaxInclude => {
                SmallVec::from_slice(&[argument, DType::U32])
            }
            Monoid::Any | Monoid::All => SmallVec::from_slice(&[DType::Bool]),
            Monoid::Moments | Monoid::MomentsWhere => SmallVec::from_slice(&[argument; 4]),
            Monoid::Squares => SmallVec::from_slice(&[argument; 3]),
            Monoid::ExpSum => SmallVec::from_slice(&[argument; 2]),
        }
    }

    /// Whether it is `Moments` or `MomentsWhere`. On the host, their accumulators are closed before they are merged
    /// (EVAL-5).
    pub fn is_moments(self) -> bool {
        matches!(self, Monoid::Moments | Monoid::MomentsWhere)
    }

    /// The dtypes of the components that describe how a part of a line changes a running value (`wgsl/running.rs`).
    pub fn running_components(self, dtype: DType) -> SmallVec<[DType; 3]> {
        let signed = matches!(dtype, DType::I32 | DType::I64);
        match self {
            Monoid::Sum if signed => SmallVec::from_slice(&[dtype; 3]),
            Monoid::Prod if signed || dtype.is_float() => SmallVec::from_slice(&[dtype, DType::U32]),
            _ => SmallVec::from_slice(&[dtype]),
        }
    }
}

/// The powers of two by which [`Monoid::Squares`] scales values before it squares them (Blue: "A portable Fortran
/// program to find the Euclidean norm of a vector", 1978). With up to 2^32 values no sum overflows, and no square of a
/// value vanishes that counts beside the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SquareLimits {
    /// log2 of the magnitude below which a value is small.
    pub small_below: i32,
    /// log2 of the magnitude from which a value is big.
    pub big_from: i32,
    /// Small values are multiplied by 2 to this power, big ones divided by it.
    pub scale: i32,
    /// log2 of the sum of middling squares below which small squares count.
    pub small_counts_below: i32,
}

impl SquareLimits {
    /// The limits for a float dtype.
    pub const fn of(dtype: DType) -> SquareLimits {
        match dtype {
            DType::F64 => SquareLimits { small_below: -500, big_from: 490, scale: 600, small_counts_below: -400 },
            _ => SquareLimits { small_below: -56, big_from: 47, scale: 90, small_counts_below: -60 },
        }
    }
}

/// The operation of an instruction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum InstOp {
    /// The parameter of the instruction's dtype that begins at this word.
    Param(u32),
    /// The flat, column-major index over the whole iteration space (u32). In `Reduce` and `Scan` forms it is not
    /// available as an instruction; lowering builds it from `Outer` and `Inner`. In form `Line`, `Flat`, `Outer` and
    /// `Inner` are all available.
    Flat,
    /// The outer index (u32).
    Outer,
    /// The inner index (u32).
    Inner,
    /// Index arithmetic (u32).
    Index(IndexOp, Val, Val),
    /// Index comparison (bool).
    Compare(IndexCompare, Val, Val),
    /// An element of an operand. Where the guard is false the index may lie outside, and the value has no meaning:
    /// zero, or any element of the operand. The instructions that use it select another value there.
    Load {
        /// The operand's number.
        operand: u16,
        /// Element index (u32).
        index: Val,
        /// How lanes move through it.
        run: Run,
        /// If given, the element is read only where this is true.
        guard: Option<Val>,
    },
    /// A row of the op table; casts take the instruction's dtype as their target.
    Apply(ElementOp, SmallVec<[Val; 3]>),
    /// `index` (any integer dtype) as u32, clamped into `0..extent`; where it lay outside (and the guard, if
    /// any, holds), the fault word whose number is in parameter word `site` is set to 1.
    Check {
        /// The index.
        index: Val,
        /// The extent (u32, at least 1) of the indexed dimension.
        extent: Val,
        /// Parameter slot that holds the fault word's number.
        site: u32,
        /// If given, the check counts only where this is true.
        guard: Option<Val>,
    },
    /// Where the condition is false (and the guard, if any, holds), sets the fault word whose number is in parameter
    /// word `site` to 1. It has no value of its own (its dtype is bool), and changes no other value.
    Require {
        /// The condition that must hold (bool).
        condition: Val,
        /// Parameter slot that holds the fault word's number.
        site: u32,
        /// If given, the check counts only where this is true.
        guard: Option<Val>,
    },
    /// A random number for `element`: Philox words are at parameter slots `key..key + 5` (seed low, seed high,
    /// stream low, stream high, op). `Integer` also takes `low` (of the instruction's dtype) and `span` (u32), `Wide`
    /// `low` and `last` (i64), the same for all elements; others take the parameters of `Dist::parameters`, floats of one
    /// dtype: the instruction's own, but for `Bernoulli`, which yields bool.
    Random {
        /// The distribution.
        dist: Dist,
        /// First of five parameter slots.
        key: u32,
        /// Element number (u32).
        element: Val,
        /// How lanes move through `element`: with `Flat`, four lanes share one Philox call.
        run: Run,
        /// The ends of a range, or the parameters of the distribution.
        params: SmallVec<[Val; 2]>,
    },
    /// Folds its arguments over `Inner`. Its own value is component 0.
    Reduce {
        /// The fold.
        monoid: Monoid,
        /// The folded values.
        args: SmallVec<[Val; 2]>,
    },
    /// Component `n` of a `Reduce`.
    Project(Val, u8),
    /// The inclusive running fold over `Inner` (`Sum Prod MinInclude MinOmit MaxInclude MaxOmit`).
    Scan {
        /// The fold.
        monoid: Monoid,
        /// The folded values.
        arg: Val,
    },
}

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Inst {
    /// The operation.
    pub op: InstOp,
    /// The dtype of the value.
    pub dtype: DType,
    /// Over what its value varies.
    pub level: Level,
}

/// How a kernel accesses an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Loads only.
    Read,
    /// Stores only.
    Write,
    /// Loads and stores of one buffer, in place, through one binding.
    ReadWrite,
}

/// A buffer that the kernel reads or writes: dense, column-major, of one dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operand {
    /// Element type.
    pub dtype: DType,
    /// How the kernel accesses it.
    pub access: Access,
    /// Whether only the segment of the current tile is bound, because every access is at the flat index.
    pub tiled: bool,
    /// The number of its bindings: one for each segment, or 1 if it is tiled.
    pub segments: u8,
}

/// A store: writes one value to an operand.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Store {
    /// The number of the operand that is written.
    pub operand: u16,
    /// The index of the written element (u32). `None` is the natural index: flat for Element values of `Map` and
    /// `Line`, `Outer` for Reduced ones.
    pub index: Option<Val>,
    /// The value to write.
    pub value: Val,
    /// If given, the value is written only where this is true.
    pub guard: Option<Val>,
}

/// A kernel without sizes and numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kernel {
    /// How the iteration space is walked.
    pub form: Form,
    /// The operands, in the order of their bindings. An operand with segments takes several bindings.
    pub operands: Vec<Operand>,
    /// The operand (u32, `Write`) that holds partial results of a chunked reduction, if the form is `Reduce`.
    /// Words per partial: the components' GPU words in order of `Reduce` instructions; word `w` of chunk `c` of
    /// output `o` lies at `(w * chunks + c) * outer + o`.
    pub scratch: Option<u16>,
    /// Whether fault words are bound (after all operands), as `array<atomic<u32>>`.
    pub faults: bool,
    /// Parameter words, the header included.
    pub params: u32,
    /// The body.
    pub insts: Vec<Inst>,
    /// The stores.
    pub stores: Vec<Store>,
    /// The loop whose turns its body computes, if it is one.
    pub rolled: Option<Rolled>,
}

impl Kernel {
    /// The instruction that makes a value.
    pub fn inst(&self, val: Val) -> &Inst {
        &self.insts[val.0 as usize]
    }

    /// 32-bit words that one partial result takes.
    pub fn partial_words(&self) -> u32 {
        let words = |components: &[DType]| components.iter().map(|d| d.gpu_bytes() as u32 / 4).sum::<u32>();
        self.insts
            .iter()
            .filter_map(|inst| match &inst.op {
                InstOp::Reduce { monoid, args } => Some(words(&monoid.components(self.inst(args[0]).dtype))),
                InstOp::Scan { monoid, .. } => Some(words(&monoid.running_components(inst.dtype))),
                _ => None,
            })
            .sum()
    }

    /// Whether a kernel of form `Scan` may walk chunks of a line in parallel: no scan reads the result of another scan,
    /// and the kernel has no fault words.
    pub fn scans_in_phases(&self) -> bool {
        let mut is_behind = vec![false; self.insts.len()];
        for (number, inst) in self.insts.iter().enumerate() {
            let behind = arguments(&inst.op).iter().any(|arg| is_behind[arg.0 as usize]);
            let is_scan = matches!(inst.op, InstOp::Scan { .. });
            if is_scan && behind {
                return false;
            }
            is_behind[number] = is_scan || behind;
        }
        matches!(self.form, Form::Scan { .. }) && !self.faults
    }

    /// Whether any instruction or operand is 64 bits wide: the invocations of such kernels work on one element at a
    /// time, those of most others on four.
    pub fn is_wide(&self) -> bool {
        self.insts.iter().any(|i| i.dtype.is_wide()) || self.operands.iter().any(|o| o.dtype.is_wide())
    }

    /// Elements that an invocation works on at a time: 4, or 1 for wide kernels, scans, kernels with loads across, and
    /// maps with many loads through views.
    pub fn width(&self) -> u32 {
        match self.form {
            Form::Scan { .. } => 1,
            _ if self.is_wide() || self.across().is_some() || self.rejects() => 1,
            Form::Map if self.views() >= MANY_VIEWS => 1,
            Form::Reduce { .. } | Form::Map | Form::Line(_) => 4,
        }
    }

    /// Whether it draws by rejection: loops of four elements side by side would all run as often as the longest.
    fn rejects(&self) -> bool {
        self.insts.iter().any(|inst| matches!(inst.op, InstOp::Random { dist, .. } if dist.is_rejected()))
    }

    /// The number of loads through views, whose indices are computed from the position but are not the position itself.
    /// 0 for kernels with random numbers.
    fn views(&self) -> usize {
        let mut is_positional: Vec<bool> = Vec::with_capacity(self.insts.len());
        let mut views = 0;
        for inst in &self.insts {
            // The verifier prints broken kernels, which asks for their width: an argument may not exist.
            let known = |val: Val| is_positional.get(val.0 as usize).copied().unwrap_or(false);
            is_positional.push(match inst.op {
                InstOp::Flat => true,
                InstOp::Index(_, a, b) => known(a) || known(b),
                InstOp::Random { .. } => return 0,
                _ => false,
            });
            if let InstOp::Load { index, run: Run::Any, .. } = inst.op {
                views += usize::from(is_positional.get(index.0 as usize).copied().unwrap_or(false));
            }
        }
        views
    }

    /// Invocations of a workgroup.
    #[cfg(feature = "gpu")]
    pub fn workgroup(&self) -> u32 {
        match self.form {
            Form::Line(lines) => lines.workgroup,
            Form::Map | Form::Reduce { .. } | Form::Scan { .. } => WORKGROUP,
        }
    }

    /// For every instruction of a `Line` kernel, the number of folds, each after the other, that its arguments wait
    /// for. A fold's own value is available after one more.
    #[cfg(feature = "gpu")]
    pub fn folds_before(&self) -> Vec<u32> {
        let mut before: Vec<u32> = Vec::with_capacity(self.insts.len());
        for inst in &self.insts {
            let known = |val: &Val| {
                let is_fold = matches!(self.inst(*val).op, InstOp::Reduce { .. });
                before[val.0 as usize] + u32::from(is_fold)
            };
            let last = arguments(&inst.op).iter().map(known).max();
            before.push(last.unwrap_or(0));
        }
        before
    }

    /// The parameter slots of stride and extent of the loads that run across the flat index, if there are any.
    pub fn across(&self) -> Option<(u32, u32)> {
        self.insts.iter().find_map(|inst| match inst.op {
            InstOp::Load { run: Run::Across { stride, extent }, .. } => Some((stride, extent)),
            _ => None,
        })
    }

    /// Outputs that an invocation of a `Reduce` works on. If the form is not inner-fast, its `width` elements belong to
    /// neighbouring outputs.
    #[cfg(feature = "gpu")]
    pub fn outer_width(&self) -> u32 {
        if self.form == (Form::Reduce { inner_fast: false }) { self.width() } else { 1 }
    }

    /// How many groups of `width` elements an invocation takes: in a `Map` or `Scan` side by side, in a `Reduce` in
    /// each step of its loop. The loads of these groups are in flight together, and uniform work is done once for all.
    /// Long bodies and random numbers get one group: several would take more registers and a multiple of the time to
    /// compile, and gain nothing. The groups of a scan share workgroup memory, so kernels with many or wide scans get
    /// fewer groups.
    #[cfg(feature = "gpu")]
    pub fn rounds(&self) -> u32 {
        let elements = self.insts.iter().filter(|inst| inst.level == Level::Element).count();
        let random = |inst: &Inst| matches!(inst.op, InstOp::Random { .. });
        if self.across().is_some() {
            return ACROSS_TILE * ACROSS_TILE / WORKGROUP;
        }
        if let Form::Line(lines) = self.form {
            return lines.rounds;
        }
        if elements > TWO_ROUNDS_INSTS_MAX || self.rolled.is_some() || self.insts.iter().any(random) {
            return 1;
        }
        // Accumulators of several components, for each level, take the registers that loads in flight would need.
        let heavy = |inst: &Inst| match &inst.op {
            InstOp::Reduce { monoid, .. } => monoid.is_moments() || *monoid == Monoid::ExpSum,
            _ => false,
        };
        match self.form {
            Form::Map => 1 + (self.width() > 1) as u32,
            Form::Reduce { inner_fast: true } if self.insts.iter().any(heavy) => 1,
            Form::Reduce { .. } if elements <= FOUR_ROUNDS_INSTS_MAX => 4,
            Form::Reduce { .. } => 2,
            Form::Scan { .. } => (4 / self.partial_words().max(1)).max(1),
            Form::Line(Lines { rounds, .. }) => rounds,
        }
    }
}

/// Elements along each side of a tile of a kernel with loads across.
#[cfg(feature = "gpu")]
pub const ACROSS_TILE: u32 = 32;

/// A map with at least this many loads through views takes one element an invocation. Four neighbours that begin
/// anywhere lie in two groups of 16 bytes, so that a load of four reads twice as much from the cache as four loads of
/// one.
const MANY_VIEWS: usize = 4;

/// A kernel with more instructions for each element than this takes one group of elements at a time.
#[cfg(feature = "gpu")]
const TWO_ROUNDS_INSTS_MAX: usize = 32;

/// A reduction with more instructions for each element than this takes fewer than four groups in a step.
#[cfg(feature = "gpu")]
const FOUR_ROUNDS_INSTS_MAX: usize = 12;
