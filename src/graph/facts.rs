//! Facts about ops: one row an op, for every stage that decides by what an op is.
//!
//! In: an op. Out: its [`Facts`] (a row of [`Op::facts`]), what of it goes into keys of the plan caches ([`Op::hash_structure`],
//! [`Op::hash_attributes`]) and the error of its checks ([`Op::fault`]); of reductions, [`ReduceFacts`]. Elementwise ops
//! have a table of their own beside it (`graph/table.rs`), which also says what they compute, their dtypes and their
//! gradients.
//! Must hold: a fact is said here and nowhere else; a stage that needs another fact adds a column, or, where the answer
//! is the same for almost all ops, a method ([`Op::binds_all_pieces`], [`Op::is_kept_at_once`]). The matches of this
//! file name every op, so that the compiler asks for the facts of a new one. What ops cost is a table of its own
//! (`graph/costs.rs`); gradients of ops other than elementwise ones do not exist yet.

use super::op::{Op, ReduceOp, ScanOp, View};
use super::shape::Shape;
use super::table::ElementOp;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind};
use std::hash::{Hash, Hasher};

/// What is known of an op, whatever its sizes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The name that users know it by.
    pub name: &'static str,
    /// How its value is computed. Read by `fusion/form` for a node's class, by the scheduler for what an op reads and
    /// writes at a time (`room`), computes as a whole (`passing`) or in a kernel of its own (`placement`).
    pub class: OpClass,
    /// How each argument is read; the last entry stands for all further ones. Read by `fusion/{in_step,cut,pack,patches}`
    /// and `scheduler/{room,cut}`.
    pub reads: &'static [Reads],
    /// What its scalar arguments are. Read by `array/record` and `fusion/repeat`.
    pub scalars: Scalars,
    /// What it checks while it is computed. Read by `fusion/{cut,assemble}` and `scheduler/passing`.
    pub check: Check,
}

impl Facts {
    /// How an argument is read.
    pub fn reads(&self, slot: usize) -> Reads {
        let last = self.reads.len().saturating_sub(1);
        self.reads.get(slot.min(last)).copied().unwrap_or(Reads::Number)
    }

    /// Whether its value is its first argument with a part overwritten, in the same memory where that may be.
    pub fn overwrites(&self) -> bool {
        self.reads(0) == Reads::Base
    }

    /// Whether computing some of its elements takes all of its arguments, or computes all of it: what anchors a kernel,
    /// and checks, which are about their whole array.
    pub fn computes_all(&self) -> bool {
        self.class != OpClass::Element || self.check != Check::Nothing
    }

    /// Whether it is computed inside of other kernels, and checks what it reads.
    pub fn checks_inline(&self) -> bool {
        self.class == OpClass::Element && self.check != Check::Nothing
    }
}

/// How an op's value is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpClass {
    /// Each element by itself, inside of any kernel.
    Element,
    /// By folding its operand.
    Reduce,
    /// By a running fold.
    Scan,
    /// By overwriting a slice of its first argument.
    Patch,
    /// By writing some elements of its operand's shape one after the other.
    Compact,
    /// By a library kernel over buffers.
    Library,
}

/// At which of an argument's elements an op reads it, to compute one element of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// The argument is a number.
    Number,
    /// At the same place in memory order.
    Same,
    /// At the same coordinates; extents of 1 expand.
    Expanded,
    /// At another place; every element is read once.
    Moved,
    /// At another place; some elements are read, each once.
    Part,
    /// At another place; elements are read several times.
    Repeated,
    /// At another place, or not at all, where another argument is; every element is read once.
    Joined,
    /// At another place, or not at all; elements may be read several times.
    Spread,
    /// At an index that another argument holds.
    AtIndex,
    /// It holds such indices, one for each place along a dimension, or one for each element.
    Index,
    /// It is what the value was before a part was overwritten: at the same element, by memory order.
    Base,
    /// At the elements of the first argument's shape, which are more than the value's or in another order.
    Folded,
    /// By a library kernel, anywhere.
    All,
}

/// What an op's scalar arguments are to those who plan it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalars {
    /// It takes arrays: recording makes data of a known number, and planning looks at a scalar.
    Arrays,
    /// As `Arrays`, but a scalar that the program gives is a parameter at which no pass looks.
    OrParameters,
    /// Numbers, at which planning looks.
    Looked,
    /// Numbers that are parameters, at which no pass looks.
    Parameters,
    /// Numbers among arrays: parameters at which no pass looks, if all arguments are floats or bools. Beside integers,
    /// their values decide in which dtype the op computes.
    Operands,
}

impl Scalars {
    /// Whether a known array of one element is recorded as a number.
    pub fn keeps_numbers(self) -> bool {
        match self {
            Scalars::Looked | Scalars::Parameters | Scalars::Operands => true,
            Scalars::Arrays | Scalars::OrParameters => false,
        }
    }

    /// Whether no pass looks at the scalars among arguments of these dtypes.
    pub fn are_parameters(self, mut args: impl Iterator<Item = DType>) -> bool {
        match self {
            Scalars::Parameters | Scalars::OrParameters => true,
            Scalars::Operands => args.all(|dtype| dtype.is_float() || dtype == DType::Bool),
            Scalars::Arrays | Scalars::Looked => false,
        }
    }
}

/// What an op checks while it is computed; where that fails, the node has a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Nothing.
    Nothing,
    /// A condition that the program gives, with the message.
    Condition,
    /// That indices lie within the first argument, in a dimension or by memory order.
    Indices(Option<u8>),
}

impl Op {
    /// The row of an op.
    #[inline]
    pub fn facts(&self) -> Facts {
        use Check::{Condition, Indices, Nothing};
        use OpClass::{Compact, Element, Library, Patch, Reduce, Scan};
        use Reads as R;
        use Scalars::{Arrays, Looked, Operands, OrParameters, Parameters};
        let (name, class, reads, scalars, check): (_, _, &'static [Reads], _, _) = match self {
            Op::Source(_) => ("from", Element, &[], Arrays, Nothing),
            Op::Fill => ("full", Element, &[R::Number], Parameters, Nothing),
            Op::Iota => ("arange", Element, &[R::Number], Looked, Nothing),
            Op::Linspace => ("linspace", Element, &[R::Number], Looked, Nothing),
            Op::Eye => ("eye", Element, &[], Arrays, Nothing),
            Op::Random { dist, .. } => (dist.name(), Element, &[R::Number], Parameters, Nothing),
            Op::Apply(op) => (op.name(), Element, &[R::Expanded], Operands, Nothing),
            Op::View(View::Reshape) => ("reshape", Element, &[R::Same], Arrays, Nothing),
            Op::View(View::Permute(_)) => ("permute", Element, &[R::Moved], Arrays, Nothing),
            Op::View(View::Slice(_)) => ("slice", Element, &[R::Part], Arrays, Nothing),
            Op::View(View::Broadcast) => ("broadcast_to", Element, &[R::Expanded], Arrays, Nothing),
            Op::View(View::Repmat) => ("repmat", Element, &[R::Repeated], Arrays, Nothing),
            Op::View(View::CircShift(_)) => ("circshift", Element, &[R::Moved], Arrays, Nothing),
            Op::View(View::Diagonal(_)) => ("diag", Element, &[R::Part], Arrays, Nothing),
            Op::Cat { .. } => ("cat", Element, &[R::Joined], Arrays, Nothing),
            Op::Triangle { upper: true, .. } => ("triu", Element, &[R::Same], Arrays, Nothing),
            Op::Triangle { upper: false, .. } => ("tril", Element, &[R::Same], Arrays, Nothing),
            Op::MakeDiagonal(_) => ("diag", Element, &[R::Spread], Arrays, Nothing),
            Op::Reduce { op, .. } => (op.facts().name, Reduce, &[R::Folded], Arrays, Nothing),
            Op::Scan { op, .. } => (op.name(), Scan, &[R::Folded], Arrays, Nothing),
            Op::Take { dim } => ("take", Element, &[R::AtIndex, R::Index], Arrays, Indices(*dim)),
            Op::TakeAlong { dim } => ("take_along", Element, &[R::AtIndex, R::Index], Arrays, Indices(Some(*dim))),
            Op::AssignSlice(_) => ("assign_slice", Patch, &[R::Base, R::Spread], OrParameters, Nothing),
            Op::AssignIndex { dim } => ("assign_index", Library, &[R::Base, R::All], Arrays, Indices(*dim)),
            Op::ArgSort { .. } => ("sort", Library, &[R::All], Arrays, Nothing),
            Op::MatMul => ("matmul", Library, &[R::All], Arrays, Nothing),
            Op::Ensure { op, .. } => (op, Element, &[R::Same, R::Expanded], Arrays, Condition),
            Op::Compact => ("nonzero", Compact, &[R::Folded], Arrays, Nothing),
        };
        Facts { name, class, reads, scalars, check }
    }

    /// The name that users know it by.
    pub fn name(&self) -> &'static str {
        self.facts().name
    }

    /// Whether its kernel on a GPU binds every piece of all its arrays at once, so that it cannot read less where they
    /// are too many. Read by `scheduler/placement`.
    pub fn binds_all_pieces(&self) -> bool {
        match self {
            Op::Scan { .. } | Op::AssignIndex { .. } | Op::ArgSort { .. } => true,
            Op::Source(_) | Op::Fill | Op::Iota | Op::Linspace | Op::Eye | Op::Random { .. } => false,
            Op::Apply(_) | Op::View(_) | Op::Cat { .. } | Op::Triangle { .. } | Op::MakeDiagonal(_) => false,
            Op::Reduce { .. } | Op::Take { .. } | Op::TakeAlong { .. } | Op::AssignSlice(_) => false,
            Op::MatMul | Op::Ensure { .. } | Op::Compact => false,
        }
    }

    /// Whether its value is kept the first time that it is computed for others: it lies in memory of its own then, and
    /// costs far more than that memory. Read by `scheduler/passing`.
    pub fn is_kept_at_once(&self) -> bool {
        match self {
            Op::ArgSort { .. } => true,
            Op::Source(_) | Op::Fill | Op::Iota | Op::Linspace | Op::Eye | Op::Random { .. } => false,
            Op::Apply(_) | Op::View(_) | Op::Cat { .. } | Op::Triangle { .. } | Op::MakeDiagonal(_) => false,
            Op::Reduce { .. } | Op::Scan { .. } | Op::Take { .. } | Op::TakeAlong { .. } => false,
            Op::AssignSlice(_) | Op::AssignIndex { .. } | Op::MatMul | Op::Ensure { .. } | Op::Compact => false,
        }
    }

    /// Hashes what of an op is structure rather than numbers: ops of one structure are grouped into the same kernels.
    pub fn hash_structure(&self, to: &mut impl Hasher) {
        std::mem::discriminant(self).hash(to);
        match self {
            Op::Apply(op) => op.hash(to),
            Op::Random { dist, .. } => dist.hash(to),
            Op::View(view) => {
                std::mem::discriminant(view).hash(to);
                match view {
                    View::Permute(perm) => perm.hash(to),
                    View::Reshape
                    | View::Slice(_)
                    | View::Broadcast
                    | View::Repmat
                    | View::CircShift(_)
                    | View::Diagonal(_) => {}
                }
            }
            Op::Cat { dim } => dim.hash(to),
            Op::Triangle { upper, .. } => upper.hash(to),
            Op::MakeDiagonal(k) => (*k >= 0).hash(to),
            Op::Reduce { op, dims, nan } => (op, dims, nan).hash(to),
            Op::Scan { op, dim, nan, reverse } => (op, dim, nan, reverse).hash(to),
            Op::Take { dim } | Op::AssignIndex { dim } => dim.hash(to),
            Op::TakeAlong { dim } => dim.hash(to),
            Op::AssignSlice(dims) => dims.iter().any(|d| d.len == 0).hash(to),
            Op::ArgSort { dim, descending } => (dim, descending).hash(to),
            Op::Source(_) | Op::Fill | Op::Iota | Op::Linspace | Op::Eye => {}
            Op::MatMul | Op::Ensure { .. } | Op::Compact => {}
        }
    }

    /// Hashes all attributes of an op, but for its random key, the message of a check and the data of a source.
    pub fn hash_attributes(&self, to: &mut impl Hasher) {
        std::mem::discriminant(self).hash(to);
        match self {
            Op::Apply(op) => op.hash(to),
            Op::Random { dist, .. } => dist.hash(to),
            Op::View(view) => view.hash(to),
            Op::Cat { dim } => dim.hash(to),
            Op::Triangle { upper, diagonal } => (upper, diagonal).hash(to),
            Op::MakeDiagonal(k) => k.hash(to),
            Op::Reduce { op, dims, nan } => (op, dims, nan).hash(to),
            Op::Scan { op, dim, nan, reverse } => (op, dim, nan, reverse).hash(to),
            Op::AssignSlice(dims) => dims.hash(to),
            Op::ArgSort { dim, descending } => (dim, descending).hash(to),
            Op::Source(_) | Op::Fill | Op::Iota | Op::Linspace | Op::Eye | Op::MatMul | Op::Compact => {}
            Op::Ensure { op, .. } => op.hash(to),
            Op::Take { dim } | Op::AssignIndex { dim } => dim.hash(to),
            Op::TakeAlong { dim } => dim.hash(to),
        }
    }

    /// The error of an op whose check failed, on a first argument of a shape.
    pub fn fault(&self, shape: &Shape) -> Error {
        let outside = |message| Error::new(ErrorKind::Index, message);
        let error = match (self, self.facts().check) {
            (Op::Ensure { message, .. }, Check::Condition) => Error::new(ErrorKind::Domain, &**message),
            (_, Check::Indices(Some(dim))) => {
                let within = shape.dim(dim as usize);
                outside(format!("an index is outside of 0..{within} in dimension {dim} of {shape}"))
            }
            (_, Check::Indices(None)) => outside(format!("an index is outside of 0..{} of {shape}", shape.elements())),
            (op, Check::Condition | Check::Nothing) => unreachable!("FUSE-5: {} checks nothing", op.name()),
        };
        error.with_op(self.name())
    }

    /// Whether it is one number everywhere: kernels take it as a parameter, and no buffer is worth it.
    pub fn is_number(&self) -> bool {
        matches!(self, Op::Fill)
    }

    /// Whether it only gives other dimensions to the same elements in the same order.
    pub fn is_reshape(&self) -> bool {
        matches!(self, Op::View(View::Reshape))
    }

    /// Whether it only converts elements to another dtype.
    pub fn is_cast(&self) -> bool {
        matches!(self, Op::Apply(ElementOp::Cast))
    }
}

/// In which dtype a reduction computes, and what it yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yields {
    /// Floats in their own dtype, all else in f64.
    Float,
    /// The operand's dtype.
    Same,
    /// Positions and counts, u32.
    Count,
    /// Truth values.
    Truth,
}

/// What is known of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReduceFacts {
    /// The name that users know it by.
    pub name: &'static str,
    /// In which dtype it computes, and what it yields. Read by `array/reduce`.
    pub yields: Yields,
    /// Whether it has a value where nothing is reduced. Read by `array/fold_reduce`.
    pub is_defined_of_nothing: bool,
    /// How many arrays it reduces. Read by `array/reduce`.
    pub operands: usize,
}

impl ReduceOp {
    /// The row of a reduction.
    pub fn facts(self) -> ReduceFacts {
        use Yields::{Count, Float, Same, Truth};
        let (name, yields, is_defined_of_nothing, operands) = match self {
            ReduceOp::Sum => ("sum", Float, true, 1),
            ReduceOp::Prod => ("prod", Float, true, 1),
            ReduceOp::Mean => ("mean", Float, true, 1),
            ReduceOp::Var { .. } => ("var", Float, true, 1),
            ReduceOp::Std { .. } => ("std", Float, true, 1),
            ReduceOp::Min => ("min", Same, false, 1),
            ReduceOp::Max => ("max", Same, false, 1),
            ReduceOp::ArgMin => ("argmin", Count, false, 1),
            ReduceOp::ArgMax => ("argmax", Count, false, 1),
            ReduceOp::Any => ("any", Truth, true, 1),
            ReduceOp::All => ("all", Truth, true, 1),
            ReduceOp::CountNonzero => ("count_nonzero", Count, true, 1),
            ReduceOp::Norm => ("norm", Float, true, 1),
            ReduceOp::LogSumExp => ("logsumexp", Float, true, 1),
            ReduceOp::Dot => ("dot", Float, true, 2),
        };
        ReduceFacts { name, yields, is_defined_of_nothing, operands }
    }
}

impl ScanOp {
    /// The name that users know it by.
    pub fn name(self) -> &'static str {
        match self {
            ScanOp::Sum => "cumsum",
            ScanOp::Prod => "cumprod",
            ScanOp::Min => "cummin",
            ScanOp::Max => "cummax",
        }
    }

    /// The reduction of which a scan holds the values of all beginnings.
    pub fn whole(self) -> ReduceOp {
        match self {
            ScanOp::Sum => ReduceOp::Sum,
            ScanOp::Prod => ReduceOp::Prod,
            ScanOp::Min => ReduceOp::Min,
            ScanOp::Max => ReduceOp::Max,
        }
    }

    /// Whether it computes bools as numbers.
    pub fn counts_bools(self) -> bool {
        match self {
            ScanOp::Sum | ScanOp::Prod => true,
            ScanOp::Min | ScanOp::Max => false,
        }
    }
}
