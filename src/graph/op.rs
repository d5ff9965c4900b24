//! The ops of the graph's nodes. Elementwise ops are rows of [`ElementOp`]'s table; every op that moves, reduces or
//! sorts elements is a variant here, with the attributes that its shape rule needs.
//!
//! Must hold: a variant carries no device, kernel or device memory; attributes are plain numbers, so that a region's
//! structure can be hashed without them. `Op::Source` alone holds elements: those that the program passed.

use super::linear::LinearOp;
use super::shape::Shape;
use super::table::ElementOp;
use crate::dtype::{DType, Scalar};
use crate::error::{Result, Site};
use crate::host_buffer::HostBuffer;
use crate::ids::{DeviceId, ValueId};
use smallvec::SmallVec;
use std::sync::Arc;

/// A set of dimensions, bit `d` for dimension `d`.
pub type DimSet = u16;

/// One dimension of a slice: `len` elements from `start`, `step` apart (negative steps run backwards).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SliceDim {
    /// The index of the first element.
    pub start: usize,
    /// The distance from an element to the next.
    pub step: isize,
    /// The number of elements.
    pub len: usize,
}

/// An op that changes which element stands at which index, and computes nothing. It is fused into its consumer's loads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum View {
    /// The same elements in memory order under another shape.
    Reshape,
    /// Dimension `d` of the result is dimension `perm[d]` of the operand.
    Permute(Arc<[u8]>),
    /// A start, a step and a length for each dimension of the result.
    Slice(Arc<[SliceDim]>),
    /// Extents of 1 grow to the node's shape.
    Broadcast,
    /// The operand tiled: coordinates modulo its extents.
    Repmat,
    /// `result[c] = operand[(c - shift) mod n]` per dimension; shifts are in `0..n`.
    CircShift(Arc<[usize]>),
    /// The `k`-th diagonal of a matrix as a column.
    Diagonal(i64),
}

/// The source of random numbers: Philox-4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11).
/// The counter is `[element / 4, op, stream_low, stream_high]` for 32-bit dtypes and `element / 2` for `f64`; the key
/// is the seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomKey {
    /// The session's seed: Philox's key.
    pub seed: u64,
    /// The session's stream.
    pub stream: u64,
    /// The number of the random op in its session.
    pub op: u32,
}

impl RandomKey {
    /// The words in which kernels read the key.
    pub fn words(&self) -> [u32; 5] {
        [self.seed as u32, (self.seed >> 32) as u32, self.stream as u32, (self.stream >> 32) as u32, self.op]
    }
}

/// The distribution of a random node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dist {
    /// Uniform in [0, 1): 24 random bits for f32, 53 for f64, times 2^-24 or 2^-53.
    Uniform,
    /// Standard normal, by Box–Muller on pairs of Philox outputs.
    Normal,
    /// Integers in `[low, low + span)`, without bias: `low + mulhi(bits, span)`, drawn again where the low half of the
    /// product is below `2^32 mod span` (Lemire, "Fast random integer generation in an interval", 2019). `args` are low
    /// (i32/u32) and span (u32), whose 0 stands for 2^32.
    Integer,
    /// Integers (i64) in `[low, low + last]`: draws 64 bits, masks them to the bit width of `last`, and draws again if the
    /// result is above `last`. `args` are low and last, whose bits are a u64.
    Wide,
    /// Exponential with mean 1.
    Exponential,
    /// Whether 64 random bits, as a fraction, lie below the probability, which is an array.
    Bernoulli,
    /// Gamma with scale 1. The argument is an array of shape parameters.
    Gamma,
    /// The logarithm of a Gamma draw. Beta draws are computed from two of these.
    LogGamma,
    /// Poisson: counts, as floats. The argument is an array of means.
    Poisson,
    /// Binomial: counts, as floats. The arguments are arrays of the number of trials and of the probability of success.
    Binomial,
}

impl Dist {
    /// The name by which users know arrays of this distribution.
    pub fn name(self) -> &'static str {
        match self {
            Dist::Uniform => "rand",
            Dist::Normal => "randn",
            Dist::Integer | Dist::Wide => "randi",
            Dist::Exponential => "exponential",
            Dist::Bernoulli => "bernoulli",
            Dist::Gamma => "gamma",
            Dist::LogGamma => "beta",
            Dist::Poisson => "poisson",
            Dist::Binomial => "binomial",
        }
    }

    /// Whether its arguments are the ends of a range: two numbers, the same for all elements.
    pub fn has_range(self) -> bool {
        match self {
            Dist::Integer | Dist::Wide => true,
            Dist::Uniform | Dist::Normal | Dist::Exponential | Dist::Bernoulli => false,
            Dist::Gamma | Dist::LogGamma | Dist::Poisson | Dist::Binomial => false,
        }
    }

    /// How many parameters it takes that may be another number for each element: floats of one dtype.
    pub fn parameters(self) -> usize {
        match self {
            Dist::Uniform | Dist::Normal | Dist::Exponential | Dist::Integer | Dist::Wide => 0,
            Dist::Bernoulli | Dist::Gamma | Dist::LogGamma | Dist::Poisson => 1,
            Dist::Binomial => 2,
        }
    }

    /// Whether its numbers are candidates that may be refused, by comparing floats: each element draws as many as it
    /// takes.
    pub fn is_rejected(self) -> bool {
        match self {
            Dist::Gamma | Dist::LogGamma | Dist::Poisson | Dist::Binomial => true,
            Dist::Uniform | Dist::Normal | Dist::Exponential => false,
            Dist::Integer | Dist::Wide | Dist::Bernoulli => false,
        }
    }
}

/// Reductions over a set of dimensions, which are kept with extent 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReduceOp {
    /// The sum; 0 if no element is summed.
    Sum,
    /// The product; 1 if no element is multiplied.
    Prod,
    /// The mean; NaN if there is no element.
    Mean,
    /// Variance about the mean, divided by `n - ddof` (at least 1).
    Var {
        /// 1 for the sample variance, 0 for the variance of a population.
        ddof: u8,
    },
    /// The square root of the variance.
    Std {
        /// As in `Var`.
        ddof: u8,
    },
    /// The least element.
    Min,
    /// The greatest element.
    Max,
    /// The 0-based index of the least, in column-major order over the reduced dimensions.
    ArgMin,
    /// The 0-based index of the greatest, as in `ArgMin`.
    ArgMax,
    /// Whether any element is not zero (NaN counts as not zero; MATLAB's `any` ignores it).
    Any,
    /// Whether all elements are not zero.
    All,
    /// The number of elements that are not zero.
    CountNonzero,
    /// The Euclidean norm, scaled against overflow.
    Norm,
    /// `log(sum(exp(x)))`, without overflow; -inf if there is no element.
    LogSumExp,
    /// The sum of the products of two operands.
    Dot,
}

/// How a reduction or scan treats NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Nan {
    /// NaN takes part: any NaN makes the result NaN.
    Include,
    /// NaN is skipped.
    Omit,
}

/// Running reductions along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScanOp {
    /// Running sum.
    Sum,
    /// Running product.
    Prod,
    /// Running minimum.
    Min,
    /// Running maximum.
    Max,
}

/// How the parts of complex numbers are passed to a transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Parts {
    /// One argument: the numbers are real.
    Real,
    /// Two arguments of one shape: the real parts and the imaginary parts.
    Apart,
    /// One argument, whose last dimension holds the two parts, as in the value of a transform.
    Together,
}

impl Parts {
    /// The shape of the complex or real numbers that an argument of this shape holds.
    ///
    /// # Errors
    /// Those of [`Shape::new`].
    pub fn numbers(self, argument: &Shape) -> Result<Shape> {
        let axes = argument.axes() - usize::from(self == Parts::Together);
        Shape::new(&(0..axes).map(|d| argument.dim(d)).collect::<SmallVec<[usize; 4]>>())
    }
}

/// Which elements of a line and of its spectrum a transform reads and yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spectrum {
    /// All elements of both.
    Full,
    /// The first half of the spectrum, `len / 2 + 1` elements: the other half follows by symmetry. The line is real.
    Half,
}

/// A discrete Fourier transform of lines: `y[k] = sum_i x[i] exp(-2 pi i k / len)`. The inverse has the opposite sign in
/// the exponent, and divides by `len`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fourier {
    /// The dimension along which the lines run.
    pub dim: u8,
    /// The length of a line. A shorter argument is continued by zeros; of a longer one, only the first elements are
    /// read.
    pub len: u32,
    /// Whether it is the inverse transform, from a spectrum to a line.
    pub inverse: bool,
    /// How the argument is stored. A half spectrum that is read always has both parts.
    pub parts: Parts,
    /// How much of the spectrum is read or yielded.
    pub spectrum: Spectrum,
}

impl Fourier {
    /// The number of elements in the half spectrum of a line.
    pub fn half(len: u32) -> u32 {
        len / 2 + 1
    }

    /// The number of elements in a line of the result.
    pub fn yields(&self) -> u32 {
        match self.spectrum {
            Spectrum::Half if !self.inverse => Fourier::half(self.len),
            Spectrum::Half | Spectrum::Full => self.len,
        }
    }

    /// The number of elements that the transform reads of each line; a shorter line is continued by zeros.
    pub fn takes(&self) -> u32 {
        match self.spectrum {
            Spectrum::Half if self.inverse => Fourier::half(self.len),
            Spectrum::Half | Spectrum::Full => self.len,
        }
    }

    /// The number of parts of the result: 2, or 1 if it is real.
    pub fn parts_yielded(&self) -> usize {
        if self.inverse && self.spectrum == Spectrum::Half { 1 } else { 2 }
    }

    /// The shape of the result, whose last dimension is the parts unless it is real, for numbers of shape `numbers`.
    ///
    /// # Errors
    /// Those of [`Shape::new`].
    pub fn shape_yielded(&self, numbers: &Shape) -> Result<Shape> {
        let lines = numbers.with_dim(usize::from(self.dim), self.yields() as usize)?;
        match self.parts_yielded() {
            1 => Ok(lines),
            parts => lines.with_dim(numbers.axes(), parts),
        }
    }

    /// The number of parts that the transposed transform yields.
    pub fn parts_back(&self) -> usize {
        if !self.inverse && self.spectrum == Spectrum::Half { 1 } else { 2 }
    }

    /// The number of lines whose transforms have `elements` elements together.
    pub fn lines(&self, elements: usize) -> usize {
        elements / self.parts_yielded() / self.yields() as usize
    }
}

/// The op by which a node computes its value from its arguments.
#[derive(Clone, Debug)]
pub enum Op {
    /// Host data; no arguments. The data may be staged memory of a device.
    Source(Arc<HostBuffer>),
    /// The same number everywhere; the argument is a scalar.
    Fill,
    /// `first + step * i` for linear index `i`; the arguments `first` and `step` have the node's dtype.
    Iota,
    /// `n` points from `first` to `last`, both of them exact. The arguments are `first` and `last`; `n` is the node's
    /// length.
    Linspace,
    /// The identity matrix of the node's shape, per page.
    Eye,
    /// Random numbers.
    Random {
        /// The distribution.
        dist: Dist,
        /// The key and counter base.
        key: RandomKey,
    },
    /// A row of the op table, with implicit expansion. `ElementOp::Cast` casts to the node's dtype.
    Apply(ElementOp),
    /// An op that changes which element stands at which index, and computes nothing.
    View(View),
    /// Arguments joined along a dimension.
    Cat {
        /// The dimension.
        dim: u8,
    },
    /// The lower or upper triangle of each page; the rest is zero.
    Triangle {
        /// Upper (`triu`) or lower (`tril`).
        upper: bool,
        /// The diagonal at which the triangle ends.
        diagonal: i64,
    },
    /// A square matrix with the argument on its `k`-th diagonal.
    MakeDiagonal(i64),
    /// A reduction of one argument, or of two for `Dot`.
    Reduce {
        /// The kind of reduction.
        op: ReduceOp,
        /// The dimensions of the operand that are reduced.
        dims: DimSet,
        /// How it treats NaN.
        nan: Nan,
    },
    /// A running reduction along a dimension.
    Scan {
        /// The kind of scan.
        op: ScanOp,
        /// The dimension.
        dim: u8,
        /// How it treats NaN.
        nan: Nan,
        /// Whether it runs from the end.
        reverse: bool,
    },
    /// `operand[index]`: linear (0-based, the result takes the index's shape), or along a dimension
    /// (the result has the index's length there). Arguments: operand, integer index array.
    Take {
        /// The dimension, or linear.
        dim: Option<u8>,
    },
    /// `result[.., i, ..] = operand[.., index[.., i, ..], ..]`: index has the result's shape.
    TakeAlong {
        /// The dimension.
        dim: u8,
    },
    /// The base with a slice overwritten. Arguments: base, value (which expands to the slice).
    AssignSlice(Arc<[SliceDim]>),
    /// The base with `base[index] = value`; the last of duplicates wins. Arguments: base, index, value.
    AssignIndex {
        /// The dimension, or linear.
        dim: Option<u8>,
    },
    /// The permutation (u32) that sorts along a dimension. The sort is stable; NaN is last in ascending order, first in
    /// descending order.
    ArgSort {
        /// The dimension.
        dim: u8,
        /// Whether the greatest element is first.
        descending: bool,
    },
    /// Matrix product of each page: `[m, k, ..] x [k, n, ..]`.
    MatMul,
    /// A factorisation of each page, or a step that uses one. Arguments: the matrix and, if the step has them, the
    /// right sides.
    Linear(LinearOp),
    /// A Fourier transform along a dimension. The last dimension of a complex result holds its two parts; a real result has
    /// no such dimension.
    Fourier(Fourier),
    /// The first argument, unchanged. If any element of the second (bool, which expands to the first) is false, the
    /// node has a fault, and every value that depends on the node carries it.
    Ensure {
        /// The op that the fault names.
        op: &'static str,
        /// The message of the fault. It is no part of a region's structure.
        message: Arc<str>,
    },
    /// The linear indices (u32) at which a mask is true: arguments mask (bool) and its inclusive running
    /// count (u32, same shape); the node's length is the count.
    Compact,
}

/// The facts of a value that are known without computing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: Shape,
}

impl Meta {
    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.shape.elements()
    }

    /// Bytes in host memory.
    pub fn bytes(&self) -> usize {
        self.elements() * self.dtype.bytes()
    }
}

/// An argument of a node.
#[derive(Clone, Copy, Debug)]
pub enum Arg {
    /// The value of another node.
    Value(ValueId),
    /// A number, already of the dtype in which the op computes: it becomes a kernel parameter, so that a
    /// different number needs no new compilation.
    Scalar(Scalar),
}

/// A recorded op.
#[derive(Clone, Debug)]
pub struct Node {
    /// The value that it makes.
    pub value: ValueId,
    /// The op that computes the value.
    pub op: Op,
    /// The arguments of the op.
    pub args: SmallVec<[Arg; 2]>,
    /// The dtype and shape of the value.
    pub meta: Meta,
    /// The device that the program asked for, if it asked for one.
    pub pin: Option<DeviceId>,
    /// The place where the program recorded the node.
    pub at: Site,
    /// The number of the block to which the node belongs, 0 for none. Consecutive nodes of one block should be one kernel:
    /// few of their values, if any but the last ones, are read outside of it.
    pub block: u32,
}
