//! Facts about the parts of ops: reductions, scans, distributions and library kernels, one row each.
//!
//! In: one of these. Out: its row, from which the row of its op is made (`graph/facts.rs`). Must hold: as in
//! `graph/facts.rs`.

use super::Check;
use crate::graph::costs::{Cost, DIVISION, EXPONENTIAL, RANDOM, RANDOM_NORMAL, RANDOM_REJECTED, SIMPLE};
use crate::graph::gradient::{FoldRule as F, GradientRule as G};
use crate::graph::linear::LinearOp;
use crate::graph::op::{Dist, ReduceOp, ScanOp};

/// The dtype in which a reduction computes, and the dtype of its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yields {
    /// Floats in their own dtype, all other dtypes in f64.
    Float,
    /// The operand's dtype.
    Same,
    /// Positions and counts, u32.
    Count,
    /// Truth values.
    Truth,
}

/// The facts about a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReduceFacts {
    /// The name by which users know the reduction.
    pub name: &'static str,
    /// The dtype in which it computes, and that of its result. Read by `array/reduce`.
    pub yields: Yields,
    /// Whether the reduction of no elements has a value. Read by `array/fold_reduce`.
    pub is_defined_when_empty: bool,
    /// The number of arrays that it reduces. Read by `array/reduce`.
    pub operands: usize,
    /// The cost of the reduction.
    pub cost: Cost,
    /// How derivatives pass through the reduction.
    pub gradient: G,
}

impl ReduceOp {
    /// The row of a reduction.
    pub fn facts(self) -> ReduceFacts {
        use Yields::{Count, Float, Same, Truth};
        macro_rules! reduction {
            ($name:expr, $yields:expr, $is_defined_when_empty:expr, $operands:expr, $each:expr, $gradient:expr) => {
                ReduceFacts {
                    name: $name,
                    yields: $yields,
                    is_defined_when_empty: $is_defined_when_empty,
                    operands: $operands,
                    cost: Cost::Each($each),
                    gradient: $gradient,
                }
            };
        }
        match self {
            ReduceOp::Sum => reduction!("sum", Float, true, 1, SIMPLE, G::Fold(F::Spread)),
            ReduceOp::Prod => reduction!("prod", Float, true, 1, SIMPLE, G::Fold(F::OtherFactors)),
            ReduceOp::Mean => reduction!("mean", Float, true, 1, SIMPLE, G::Fold(F::SpreadMean)),
            // The running means and scales take divisions.
            ReduceOp::Var { .. } => reduction!("var", Float, true, 1, 2 * DIVISION, G::Fold(F::Deviation)),
            ReduceOp::Std { .. } => reduction!("std", Float, true, 1, 2 * DIVISION, G::Fold(F::Deviation)),
            ReduceOp::Min => reduction!("min", Same, false, 1, SIMPLE, G::Fold(F::AtExtreme)),
            ReduceOp::Max => reduction!("max", Same, false, 1, SIMPLE, G::Fold(F::AtExtreme)),
            ReduceOp::ArgMin => reduction!("argmin", Count, false, 1, SIMPLE, G::POSITIONS),
            ReduceOp::ArgMax => reduction!("argmax", Count, false, 1, SIMPLE, G::POSITIONS),
            ReduceOp::Any => reduction!("any", Truth, true, 1, SIMPLE, G::TRUTH),
            ReduceOp::All => reduction!("all", Truth, true, 1, SIMPLE, G::TRUTH),
            ReduceOp::CountNonzero => reduction!("count_nonzero", Count, true, 1, SIMPLE, G::COUNTS),
            ReduceOp::Norm => reduction!("norm", Float, true, 1, 2 * DIVISION, G::Fold(F::Direction)),
            // A function of the exponential family for each element.
            ReduceOp::LogSumExp => reduction!("logsumexp", Float, true, 1, EXPONENTIAL, G::Fold(F::Softmax)),
            ReduceOp::Dot => reduction!("dot", Float, true, 2, SIMPLE, G::Products),
        }
    }
}

/// The facts about a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanFacts {
    /// The name by which users know the scan.
    pub name: &'static str,
    /// The reduction whose value the scan yields for each beginning of a line. Read by `array/{reduce,fold_reduce}`.
    pub whole: ReduceOp,
    /// Whether the scan computes bools as numbers. Read by `array/reduce`.
    pub counts_bools: bool,
    /// How derivatives pass through the scan.
    pub gradient: G,
}

impl ScanOp {
    /// The row of a scan.
    pub fn facts(self) -> ScanFacts {
        macro_rules! scan {
            ($name:expr, $whole:expr, $counts_bools:expr, $gradient:expr) => {
                ScanFacts { name: $name, whole: $whole, counts_bools: $counts_bools, gradient: $gradient }
            };
        }
        match self {
            ScanOp::Sum => scan!("cumsum", ReduceOp::Sum, true, G::Fold(F::SumsFromEnd)),
            ScanOp::Prod => scan!("cumprod", ReduceOp::Prod, true, G::Fold(F::OtherFactors)),
            ScanOp::Min => scan!("cummin", ReduceOp::Min, false, G::Fold(F::AtExtreme)),
            ScanOp::Max => scan!("cummax", ReduceOp::Max, false, G::Fold(F::AtExtreme)),
        }
    }
}

impl Dist {
    /// The cost of drawing a number.
    pub fn cost(self) -> Cost {
        match self {
            Dist::Uniform | Dist::Integer | Dist::Wide | Dist::Bernoulli => Cost::Draw(RANDOM),
            Dist::Normal | Dist::Exponential => Cost::Draw(RANDOM_NORMAL),
            Dist::Gamma | Dist::LogGamma | Dist::Poisson | Dist::Binomial => Cost::Each(RANDOM_REJECTED),
        }
    }
}

/// A kind of library kernel, without sizes (`kernels::Library` adds them).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LibraryOp {
    /// Products of matrices.
    MatMul,
    /// The permutations that sort lines.
    ArgSort,
    /// Assignment by index.
    AssignIndex,
    /// Factorisations and triangular systems.
    Linear(LinearOp),
    /// Fourier transforms of lines.
    Fourier,
}

/// The facts about a library kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LibraryFacts {
    /// The kernel's name in labels and in `explain()`.
    pub name: &'static str,
    /// The cost of the kernel. Read by `kernels/library`, and by the row of its op.
    pub cost: Cost,
}

impl LibraryOp {
    /// The row of a library kernel.
    pub fn facts(self) -> LibraryFacts {
        let (name, cost) = match self {
            LibraryOp::MatMul => ("matmul", Cost::Product),
            LibraryOp::ArgSort => ("argsort", Cost::Sort),
            LibraryOp::AssignIndex => ("assign_index", Cost::Assignment),
            LibraryOp::Linear(linear) => {
                let facts = linear.facts();
                (facts.name, facts.cost)
            }
            LibraryOp::Fourier => ("fft", Cost::Transform),
        };
        LibraryFacts { name, cost }
    }
}

/// The facts about an op of linear algebra.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinearFacts {
    /// The name by which users know the op.
    pub name: &'static str,
    /// The check that the op makes while it is computed.
    pub check: Check,
    /// The cost of the op.
    pub cost: Cost,
    /// How derivatives pass through the op.
    pub gradient: G,
}

impl LinearOp {
    /// The row of an op of linear algebra.
    pub fn facts(self) -> LinearFacts {
        use Check::{Matrix, Nothing};
        macro_rules! linear {
            ($name:expr, $check:expr, $thirds:expr, $gradient:expr) => {
                LinearFacts {
                    name: $name,
                    check: $check,
                    cost: Cost::Elimination { thirds: $thirds },
                    gradient: $gradient,
                }
            };
        }
        match self {
            LinearOp::Cholesky => linear!("cholesky", Matrix(NOT_DEFINITE), 1, G::Factors),
            LinearOp::Lu => linear!("lu", Nothing, 2, G::Factors),
            LinearOp::SolveTriangular(_) => linear!("solve_triangular", Matrix(SINGULAR), 3, G::Solution),
            // Its elements count once for each coefficient: a product and a difference.
            LinearOp::Recurrence { .. } => linear!("filter", Nothing, 6, G::Recurrence),
            // It computes the factors, and multiplies the orthogonal one out.
            LinearOp::Qr { .. } => linear!("qr", Nothing, 8, G::Factors),
            LinearOp::QrPivoted => linear!("qr_pivoted", Nothing, 8, G::Factors),
            // It reduces the matrix to a band, iterates, and carries the vectors along.
            LinearOp::Eigh { .. } => linear!("eigh", Nothing, 27, G::Spectrum),
            LinearOp::Eig => linear!("eig", Nothing, 75, NO_SYMMETRY),
            LinearOp::Svd { .. } => linear!("svd", Nothing, 63, G::Spectrum),
        }
    }
}

const NO_SYMMETRY: G = G::None { why: "eigenvectors of matrices that are not symmetric are not differentiated" };
const NOT_DEFINITE: &str = "the matrix is not positive definite: a pivot is not a positive, finite number";
const SINGULAR: &str = "the matrix is singular: an element of its triangular factor's diagonal is zero";
