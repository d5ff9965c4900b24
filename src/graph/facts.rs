//! Facts about ops. Each op has one row, which every stage reads that decides by the kind of an op.
//!
//! In: an op. Out: its [`Facts`] (a row of [`Op::facts`]), its part of the keys of the plan caches
//! ([`Op::hash_structure`], [`Op::hash_attributes`]) and the error of its checks ([`Op::fault`]). Reductions, scans and
//! library kernels have rows of their own: `ReduceFacts`, `ScanFacts` and `LibraryFacts` (`graph/facts/parts.rs`). The
//! rows of elementwise ops (`graph/table.rs`) also hold their functions, dtypes and derivatives; the row of
//! [`Op::Apply`] takes its name, cost and gradient from there.
//! Must hold: a fact stands here and nowhere else. A stage that needs another fact adds a column, or a method if the
//! answer is the same for almost all ops ([`Op::binds_all_pieces`], [`Op::is_kept_at_once`]). The matches of this file
//! name every op, so that the compiler asks for the facts of a new one. `graph/costs.rs` defines costs,
//! `graph/gradient.rs` defines rules of gradients.

mod parts;

pub use parts::{LibraryFacts, LibraryOp, Yields};

use super::costs::{Cost, SIMPLE};
use super::gradient::GradientRule as G;
use super::op::{Op, View};
use super::shape::Shape;
use super::table::ElementOp;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind};
use std::hash::{Hash, Hasher};

/// The facts about an op that do not depend on sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The name by which users know the op.
    pub name: &'static str,
    /// How the op's value is computed. Read by `fusion/form` for a node's class, and by the scheduler: how much an op
    /// reads and writes at a time (`room`), whether it is computed as a whole (`passing`) or in a kernel of its own
    /// (`placement`).
    pub class: OpClass,
    /// How the op reads each argument; the last entry stands for all further arguments. Read by
    /// `fusion/{in_step,cut,pack,patches}` and `scheduler/{room,cut}`.
    pub reads: &'static [Reads],
    /// Whether the op's arguments may be scalars, and whether passes look at their values. Read by `array/record` and
    /// `fusion/repeat`.
    pub scalars: Scalars,
    /// The check that the op makes while it is computed. Read by `fusion/{cut,assemble}` and `scheduler/passing`.
    pub check: Check,
    /// The cost of the op. Read by `scheduler/placement` and `fusion/{cut,share}`.
    pub cost: Cost,
    /// How derivatives pass through the op. Read by `array/watch`.
    pub gradient: G,
}

impl Facts {
    /// How the op reads the argument `slot`.
    pub fn reads(&self, slot: usize) -> Reads {
        let last = self.reads.len().saturating_sub(1);
        self.reads.get(slot.min(last)).copied().unwrap_or(Reads::Number)
    }

    /// Whether the op's value is its first argument with a part overwritten, in the same memory if possible.
    pub fn overwrites(&self) -> bool {
        self.reads(0) == Reads::Base
    }

    /// Whether the op has to be computed as a whole even if only some of its elements are read. This is true of ops
    /// that have a kernel of their own, and of checks, which concern their whole array.
    pub fn computes_all(&self) -> bool {
        self.class != OpClass::Element || self.check != Check::Nothing
    }

    /// Whether the op is computed inside of other kernels and checks what it reads.
    pub fn checks_inline(&self) -> bool {
        self.class == OpClass::Element && self.check != Check::Nothing
    }
}

/// How an op's value is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpClass {
    /// Each element by itself, inside of any kernel.
    Element,
    /// By a reduction of its operand.
    Reduce,
    /// By a running reduction along a dimension.
    Scan,
    /// By overwriting a slice of its first argument.
    Patch,
    /// By writing the positions of some elements of its operand's shape one after the other.
    Compact,
    /// By a library kernel over buffers.
    Library,
}

/// Which elements of an argument an op reads to compute one element of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// The argument is a number.
    Number,
    /// The element at the same place in memory order.
    Same,
    /// The element at the same coordinates; extents of 1 expand.
    Expanded,
    /// An element at another place; each element is read once.
    Moved,
    /// An element at another place; only some elements are read, each once.
    Part,
    /// An element at another place; elements are read several times.
    Repeated,
    /// An element at another place, or none where the element comes from another argument; each element is read once.
    Joined,
    /// An element at another place, or none; elements may be read several times.
    Spread,
    /// The element at an index that another argument holds.
    AtIndex,
    /// The argument holds such indices: one for each place along a dimension, or one for each element.
    Index,
    /// The argument is the value before a part of it was overwritten; the element at the same place in memory order is
    /// read.
    Base,
    /// The elements of the first argument's shape, which are more than the value's or in another order.
    Folded,
    /// Any elements, by a library kernel.
    All,
}

impl Reads {
    /// The most elements of an argument of `argument` elements that are read to compute a value of `value` elements.
    pub fn elements(self, argument: usize, value: usize) -> usize {
        match self {
            Reads::Number => 0,
            Reads::Part | Reads::Repeated | Reads::Spread | Reads::AtIndex => argument.min(value),
            Reads::Same | Reads::Expanded | Reads::Moved | Reads::Joined => argument,
            Reads::Index | Reads::Base | Reads::Folded | Reads::All => argument,
        }
    }
}

/// How recording and planning treat an op's scalar arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalars {
    /// The op takes arrays: recording turns a known number into data, and planning looks at the value of a scalar.
    Arrays,
    /// As `Arrays`, but a scalar that the program gives is a parameter whose value no pass reads.
    OrParameters,
    /// The op takes numbers whose values planning reads.
    Inspected,
    /// The op takes numbers that are parameters, whose values no pass reads.
    Parameters,
    /// The op takes numbers beside arrays. If all arguments are floats or bools, the numbers are parameters whose
    /// values no pass reads. Beside integers, their values decide in which dtype the op computes.
    Operands,
}

impl Scalars {
    /// Whether a known array of one element is recorded as a number.
    pub fn keeps_numbers(self) -> bool {
        match self {
            Scalars::Inspected | Scalars::Parameters | Scalars::Operands => true,
            Scalars::Arrays | Scalars::OrParameters => false,
        }
    }

    /// Whether no pass reads the values of scalars among arguments of these dtypes.
    pub fn are_parameters(self, mut args: impl Iterator<Item = DType>) -> bool {
        match self {
            Scalars::Parameters | Scalars::OrParameters => true,
            Scalars::Operands => args.all(|dtype| dtype.is_float() || dtype == DType::Bool),
            Scalars::Arrays | Scalars::Inspected => false,
        }
    }
}

/// The check that an op makes while it is computed. If the check fails, the node has a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Nothing.
    Nothing,
    /// A condition that the program gives; its message says what failed.
    Condition,
    /// Whether indices lie within the first argument, in a dimension or in memory order.
    Indices(Option<u8>),
    /// Whether a matrix has the factor or the inverse that was asked for; the message says what failed.
    Matrix(&'static str),
}

impl Op {
    /// The row of an op.
    #[inline]
    pub fn facts(&self) -> Facts {
        use Check::{Condition, Indices, Nothing};
        use Cost::Each;
        use OpClass::{Compact, Element, Library, Patch, Reduce, Scan};
        use Reads as R;
        use Scalars::{Arrays, Inspected, Operands, OrParameters, Parameters};
        macro_rules! op {
            ($name:expr, $class:expr, $reads:expr, $scalars:expr, $check:expr, $cost:expr, $gradient:expr) => {
                Facts {
                    name: $name,
                    class: $class,
                    reads: &$reads,
                    scalars: $scalars,
                    check: $check,
                    cost: $cost,
                    gradient: $gradient,
                }
            };
        }
        match self {
            Op::Source(_) => op!("from", Element, [], Arrays, Nothing, Each(SIMPLE), G::NO_ARRAY),
            // The number is a parameter of the kernel that reads it.
            Op::Fill => op!("full", Element, [R::Number], Parameters, Nothing, Each(0), G::NO_ARRAY),
            Op::Iota => op!("arange", Element, [R::Number], Inspected, Nothing, Each(SIMPLE), G::NO_ARRAY),
            Op::Linspace => op!("linspace", Element, [R::Number], Inspected, Nothing, Each(SIMPLE), G::NO_ARRAY),
            Op::Eye => op!("eye", Element, [], Arrays, Nothing, Each(SIMPLE), G::NO_ARRAY),
            Op::Random { dist, .. } if dist.parameters() > 0 => {
                op!(dist.name(), Element, [R::Expanded], Operands, Nothing, dist.cost(), G::DRAWS)
            }
            Op::Random { dist, .. } => {
                op!(dist.name(), Element, [R::Number], Parameters, Nothing, dist.cost(), G::NO_ARRAY)
            }
            Op::Apply(op) => op!(op.name(), Element, [R::Expanded], Operands, Nothing, op.cost(), G::of_element(*op)),
            Op::View(view) => match view {
                View::Reshape => op!("reshape", Element, [R::Same], Arrays, Nothing, Each(SIMPLE), G::MoveBack),
                View::Permute(_) => op!("permute", Element, [R::Moved], Arrays, Nothing, Each(SIMPLE), G::MoveBack),
                View::Slice(_) => op!("slice", Element, [R::Part], Arrays, Nothing, Each(SIMPLE), G::PutBack),
                View::Broadcast => {
                    op!("broadcast_to", Element, [R::Expanded], Arrays, Nothing, Each(SIMPLE), G::SumOfCopies)
                }
                View::Repmat => op!("repmat", Element, [R::Repeated], Arrays, Nothing, Each(SIMPLE), G::SumOfCopies),
                View::CircShift(_) => op!("circshift", Element, [R::Moved], Arrays, Nothing, Each(SIMPLE), G::MoveBack),
                View::Diagonal(_) => op!("diag", Element, [R::Part], Arrays, Nothing, Each(SIMPLE), G::PutBack),
            },
            Op::Cat { .. } => op!("cat", Element, [R::Joined], Arrays, Nothing, Each(SIMPLE), G::OwnPart),
            Op::Triangle { upper, .. } => {
                let name = if *upper { "triu" } else { "tril" };
                op!(name, Element, [R::Same], Arrays, Nothing, Each(SIMPLE), G::SameOp)
            }
            Op::MakeDiagonal(_) => op!("diag", Element, [R::Spread], Arrays, Nothing, Each(SIMPLE), G::OwnPart),
            Op::Reduce { op, .. } => {
                let facts = op.facts();
                op!(facts.name, Reduce, [R::Folded], Arrays, Nothing, facts.cost, facts.gradient)
            }
            Op::Scan { op, .. } => {
                let facts = op.facts();
                op!(facts.name, Scan, [R::Folded], Arrays, Nothing, Each(SIMPLE), facts.gradient)
            }
            Op::Take { dim } => {
                op!("take", Element, [R::AtIndex, R::Index], Arrays, Indices(*dim), Each(SIMPLE), G::AddAtIndex)
            }
            Op::TakeAlong { dim } => {
                let check = Indices(Some(*dim));
                op!("take_along", Element, [R::AtIndex, R::Index], Arrays, check, Each(SIMPLE), G::AddAtIndex)
            }
            Op::AssignSlice(_) => {
                op!("assign_slice", Patch, [R::Base, R::Spread], OrParameters, Nothing, Each(SIMPLE), G::Overwritten)
            }
            Op::AssignIndex { dim } => {
                let LibraryFacts { name, cost } = LibraryOp::AssignIndex.facts();
                op!(name, Library, [R::Base, R::All], Arrays, Indices(*dim), cost, G::Overwritten)
            }
            Op::ArgSort { .. } => {
                let cost = LibraryOp::ArgSort.facts().cost;
                op!("sort", Library, [R::All], Arrays, Nothing, cost, G::POSITIONS)
            }
            Op::MatMul => {
                let LibraryFacts { name, cost } = LibraryOp::MatMul.facts();
                op!(name, Library, [R::All], Arrays, Nothing, cost, G::Products)
            }
            Op::Linear(linear) => {
                let facts = linear.facts();
                op!(facts.name, Library, [R::All], Arrays, facts.check, facts.cost, facts.gradient)
            }
            Op::Fourier(_) => {
                let LibraryFacts { name, cost } = LibraryOp::Fourier.facts();
                op!(name, Library, [R::All], Arrays, Nothing, cost, G::Adjoint)
            }
            Op::Ensure { op, .. } => {
                op!(op, Element, [R::Same, R::Expanded], Arrays, Condition, Each(SIMPLE), G::FirstOnly)
            }
            Op::Compact => op!("nonzero", Compact, [R::Folded], Arrays, Nothing, Each(SIMPLE), G::POSITIONS),
        }
    }

    /// The name by which users know the op.
    pub fn name(&self) -> &'static str {
        self.facts().name
    }

    /// Whether the op's kernel on a GPU binds every piece of all its arrays at once. If these are more pieces than the
    /// device binds, the op cannot run there in parts. Read by `scheduler/placement`.
    pub fn binds_all_pieces(&self) -> bool {
        match self {
            Op::Scan { .. } | Op::AssignIndex { .. } | Op::ArgSort { .. } | Op::Linear(_) | Op::Fourier(_) => true,
            Op::Source(_) | Op::Fill | Op::Iota | Op::Linspace | Op::Eye | Op::Random { .. } => false,
            Op::Apply(_) | Op::View(_) | Op::Cat { .. } | Op::Triangle { .. } | Op::MakeDiagonal(_) => false,
            Op::Reduce { .. } | Op::Take { .. } | Op::TakeAlong { .. } | Op::AssignSlice(_) => false,
            Op::MatMul | Op::Ensure { .. } | Op::Compact => false,
        }
    }

    /// Whether the scheduler keeps the op's value from the first time that it is computed for other values: computing it
    /// again would cost far more than its memory, or could give other numbers. Read by `scheduler/passing`.
    pub fn is_kept_at_once(&self) -> bool {
        match self {
            Op::ArgSort { .. } | Op::MatMul | Op::Linear(_) | Op::Fourier(_) => true,
            // Another kernel may refuse another candidate, where the sides of a comparison are equal but for rounding.
            Op::Random { dist, .. } => dist.is_rejected(),
            Op::Source(_) | Op::Fill | Op::Iota | Op::Linspace | Op::Eye => false,
            Op::Apply(_) | Op::View(_) | Op::Cat { .. } | Op::Triangle { .. } | Op::MakeDiagonal(_) => false,
            Op::Reduce { .. } | Op::Scan { .. } | Op::Take { .. } | Op::TakeAlong { .. } => false,
            Op::AssignSlice(_) | Op::AssignIndex { .. } | Op::Ensure { .. } | Op::Compact => false,
        }
    }

    /// The reason why no GPU runs the op, whatever its dtypes and sizes are; `None` if GPUs run it. Read by
    /// `scheduler/placement`.
    pub fn host_only_reason(&self) -> Option<&'static str> {
        match self {
            Op::Linear(linear) => linear.refusal(),
            Op::Source(_) | Op::Fill | Op::Iota | Op::Linspace | Op::Eye | Op::Random { .. } => None,
            Op::Apply(_) | Op::View(_) | Op::Cat { .. } | Op::Triangle { .. } | Op::MakeDiagonal(_) => None,
            Op::Reduce { .. } | Op::Scan { .. } | Op::Take { .. } | Op::TakeAlong { .. } => None,
            Op::AssignSlice(_) | Op::AssignIndex { .. } | Op::ArgSort { .. } | Op::MatMul | Op::Fourier(_) => None,
            Op::Ensure { .. } | Op::Compact => None,
        }
    }

    /// Hashes the attributes of an op that are structure rather than numbers: ops of one structure are grouped into the
    /// same kernels.
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
            Op::Linear(linear) => linear.hash(to),
            Op::Fourier(fourier) => fourier.hash(to),
            Op::Source(_) | Op::Fill | Op::Iota | Op::Linspace | Op::Eye => {}
            Op::MatMul | Op::Ensure { .. } | Op::Compact => {}
        }
    }

    /// Hashes all attributes of an op except its random key, the message of a check and the data of a source.
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
            Op::Linear(linear) => linear.hash(to),
            Op::Fourier(fourier) => fourier.hash(to),
            Op::Source(_) | Op::Fill | Op::Iota | Op::Linspace | Op::Eye | Op::MatMul | Op::Compact => {}
            Op::Ensure { op, .. } => op.hash(to),
            Op::Take { dim } | Op::AssignIndex { dim } => dim.hash(to),
            Op::TakeAlong { dim } => dim.hash(to),
        }
    }

    /// The error of an op whose check failed; `shape` is that of its first argument.
    pub fn fault(&self, shape: &Shape) -> Error {
        let outside = |message| Error::new(ErrorKind::Index, message);
        let error = match (self, self.facts().check) {
            (Op::Ensure { message, .. }, Check::Condition) => Error::new(ErrorKind::Domain, &**message),
            (_, Check::Indices(Some(dim))) => {
                let within = shape.dim(dim as usize);
                outside(format!("an index is outside of 0..{within} in dimension {dim} of {shape}"))
            }
            (_, Check::Indices(None)) => outside(format!("an index is outside of 0..{} of {shape}", shape.elements())),
            (_, Check::Matrix(message)) => Error::new(ErrorKind::Domain, message),
            (op, Check::Condition | Check::Nothing) => unreachable!("FUSE-5: {} checks nothing", op.name()),
        };
        error.with_op(self.name())
    }

    /// Whether all elements of the value are one number, which kernels take as a parameter instead of a buffer.
    pub fn is_number(&self) -> bool {
        matches!(self, Op::Fill)
    }

    /// Whether it computes each element from the same element of its arguments, and checks nothing.
    pub fn is_elementwise(&self) -> bool {
        let facts = self.facts();
        let is_here = |slot: usize| matches!(facts.reads(slot), Reads::Number | Reads::Expanded);
        // No elementwise op has more arguments.
        facts.class == OpClass::Element && facts.check == Check::Nothing && (0..3).all(is_here)
    }

    /// Whether the op only gives other dimensions to the same elements in the same order.
    pub fn is_reshape(&self) -> bool {
        matches!(self, Op::View(View::Reshape))
    }

    /// Whether the op only converts elements to another dtype.
    pub fn is_cast(&self) -> bool {
        matches!(self, Op::Apply(ElementOp::Cast))
    }
}
