//! Defines how derivatives pass through an op that isn't elementwise: the column `gradient` of `graph/facts.rs`. The
//! derivatives of elementwise ops are expressions in their own table (`graph/table/gradient.rs`).
//!
//! `above` stands for the derivative of a result by the op's value. A rule says how the derivative of the result by an
//! argument of the op follows from `above`; it is linear in `above`. `array/watch` records the rules as ops. The
//! methods of [`Op`] here tell it the attributes that a rule needs, and which values the rule reads
//! ([`Op::derivative_reads`]).
//! Must hold: GRAD-1: [`Op::derivative_reads`] names every value that a rule reads, and a watch keeps no other value
//! for the rule.

use super::linear::LinearOp;
use super::op::{DimSet, Fourier, Nan, Op, ReduceOp, ScanOp, SliceDim, View};
use super::table::{ElementOp, Expr, Factor, Gradient};

/// The rule for the derivatives by an op's arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GradientRule {
    /// There are no derivatives, for this reason.
    None {
        /// The reason.
        why: &'static str,
    },
    /// `above` times the partial derivatives of the op's row in the table of elementwise ops. If an argument was
    /// expanded, the product is summed along the dimensions in which it was.
    Partials,
    /// `above`, moved back by the inverse reshape, permutation or shift.
    MoveBack,
    /// `above` at those places of the argument that were read, zero at the others.
    PutBack,
    /// The sum of `above` over the places that hold the same element of the argument.
    SumOfCopies,
    /// The part of `above` in which the argument lies.
    OwnPart,
    /// The same op on `above`.
    SameOp,
    /// `above` for the first argument; nothing for the second, which is a condition.
    FirstOnly,
    /// The rule of a reduction or scan of one argument.
    Fold(FoldRule),
    /// The adjoint of a linear op, applied to `above`. The adjoint of a Fourier transform has the opposite sign in its
    /// exponent. It divides by the length where the transform does not, and exchanges what is read and what is yielded.
    Adjoint,
    /// `above` times the other factor, element by element, or as a product of matrices with the factor transposed.
    Products,
    /// `above`, added at the indices into the first argument; where an index comes twice, both are added.
    AddAtIndex,
    /// For the base, `above` with zeros where it was overwritten; for the value, `above` at the places where the value
    /// was kept.
    Overwritten,
    /// The derivative of the equation of the factors: products of `above` with the factors, of which one triangle is
    /// kept, and then solutions of triangular systems on both sides.
    Factors,
    /// For the right sides, the solution of the transposed system for `above`. For the matrix, the negative product of
    /// that solution with the transposed value, of which only the triangle that was read is kept.
    Solution,
    /// For the right sides, the recurrence on `above`, from the end of each line to its begin. For the coefficients,
    /// the negative dot products of that with the earlier elements of the value.
    Recurrence,
    /// Products of `above` with the vectors, weighted by the inverse differences of the values.
    Spectrum,
}

/// The rule of a reduction or scan of one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldRule {
    /// `above`, expanded to the argument.
    Spread,
    /// `above`, expanded to the argument and divided by the number of elements that were reduced.
    SpreadMean,
    /// `above` times the product of the other elements, for each product that contains the element.
    OtherFactors,
    /// `above` times the element's distance from the mean, times a factor that depends on the variance or deviation.
    Deviation,
    /// `above` at the element whose value was taken, which is the first of equal ones; zero at the others.
    AtExtreme,
    /// `above` times the argument over its norm.
    Direction,
    /// `above` times the exponential of the argument minus the value.
    Softmax,
    /// The running sum of `above` from the other end.
    SumsFromEnd,
}

impl GradientRule {
    /// The rule of ops that read no array.
    pub const NO_ARRAY: GradientRule = GradientRule::None { why: "it reads no array" };
    /// The rule of draws from distributions of given parameters.
    pub const DRAWS: GradientRule =
        GradientRule::None { why: "its numbers are drawn, not computed, from its parameters" };
    /// The rule of ops that yield positions.
    pub const POSITIONS: GradientRule = GradientRule::None { why: "its result is positions" };
    /// The rule of ops that yield counts.
    pub const COUNTS: GradientRule = GradientRule::None { why: "its result is a count" };
    /// The rule of ops that yield truth values.
    pub const TRUTH: GradientRule = GradientRule::None { why: "its result is a truth value" };

    /// The rule of an elementwise op.
    pub fn of_element(op: ElementOp) -> GradientRule {
        match op.info().gradient {
            Gradient::None(why) => GradientRule::None { why },
            Gradient::Rule(_) => GradientRule::Partials,
        }
    }
}

/// The values that a watch must keep because a rule reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleReads {
    /// Bit `i`: argument `i`.
    pub args: u8,
    /// The op's own value.
    pub value: bool,
}

impl RuleReads {
    const NOTHING: RuleReads = RuleReads { args: 0, value: false };
    const ARGS: RuleReads = RuleReads { args: u8::MAX, value: false };
    const ALL: RuleReads = RuleReads { args: u8::MAX, value: true };
    const SECOND: RuleReads = RuleReads { args: 0b10, value: false };
    const VALUE: RuleReads = RuleReads { args: 0, value: true };

    /// The number of arguments that the bits of `args` can name.
    pub const ARGS_MAX: usize = u8::BITS as usize;

    /// Whether the rule reads the argument `slot`.
    pub fn arg(self, slot: usize) -> bool {
        slot < RuleReads::ARGS_MAX && self.args >> slot & 1 == 1
    }
}

impl Op {
    /// The values that the op's rule reads to pass derivatives to the arguments in the set `to` (bit `i` is argument
    /// `i`).
    pub fn derivative_reads(&self, to: u8) -> RuleReads {
        use FoldRule as F;
        use GradientRule as G;
        // The rule reads the arguments to find the NaN that the op left out.
        let of_nan = |rest: RuleReads| match self.omits_nan() {
            true => RuleReads::ARGS,
            false => rest,
        };
        match self.facts().gradient {
            G::None { .. } | G::MoveBack | G::PutBack | G::SumOfCopies | G::OwnPart | G::SameOp => RuleReads::NOTHING,
            G::Partials => {
                let parts = self.partials().iter().enumerate().filter(|(n, _)| to >> n & 1 == 1);
                let reads = parts.map(|(_, part)| part.reads());
                let (args, value) = reads.fold((0, false), |a, b| (a.0 | b.0, a.1 || b.1));
                RuleReads { args, value }
            }
            // The second argument is the value that overwrites a slice; the rule needs only the slice.
            G::Overwritten if self.overwrites_slice().is_some() => RuleReads::NOTHING,
            G::FirstOnly | G::AddAtIndex | G::Overwritten => RuleReads::SECOND,
            G::Fold(F::Spread | F::SpreadMean | F::SumsFromEnd) => of_nan(RuleReads::NOTHING),
            G::Products => {
                let others = if to & 0b01 != 0 { 0b10 } else { 0 } | if to & 0b10 != 0 { 0b01 } else { 0 };
                of_nan(RuleReads { args: others, value: false })
            }
            // The rules of scans read the running products and extremes.
            G::Fold(F::OtherFactors | F::AtExtreme) => RuleReads { value: self.as_scan().is_some(), ..RuleReads::ARGS },
            G::Fold(F::Deviation) => {
                let is_std = self.as_reduction().is_some_and(|(op, ..)| matches!(op, ReduceOp::Std { .. }));
                RuleReads { value: is_std, ..RuleReads::ARGS }
            }
            G::Fold(F::Direction | F::Softmax) => RuleReads::ALL,
            G::Adjoint => RuleReads::NOTHING,
            G::Factors => RuleReads::VALUE,
            // For the right sides, the rule reads the matrix alone.
            G::Solution => RuleReads { args: 0b01, value: to & 0b01 != 0 },
            // For the right sides, the rule reads the coefficients alone.
            G::Recurrence => RuleReads { args: 0b10, value: to & 0b10 != 0 },
            // If the op did not compute the vectors, the rule computes them from the matrix.
            G::Spectrum if self.as_linear().is_some_and(LinearOp::has_vectors) => RuleReads::VALUE,
            G::Spectrum => RuleReads { args: 0b01, value: false },
        }
    }

    /// Whether derivatives pass to an argument. They do not pass to conditions, to indices, or to an argument in which the
    /// value is piecewise constant.
    pub fn passes_to(&self, slot: usize) -> bool {
        use GradientRule as G;
        match self.facts().gradient {
            // If such a derivative is asked for, the watch reports an error.
            G::None { .. } => true,
            G::Partials => self.partials().get(slot).is_none_or(|part| !matches!(part.factor(), Factor::Zero)),
            G::FirstOnly | G::AddAtIndex => slot == 0,
            G::Overwritten => slot != 1 || self.overwrites_slice().is_some(),
            G::MoveBack | G::PutBack | G::SumOfCopies | G::OwnPart | G::SameOp | G::Fold(_) => true,
            G::Products | G::Adjoint | G::Factors | G::Solution | G::Recurrence | G::Spectrum => true,
        }
    }

    /// The partial derivatives of an elementwise op; empty for other ops and for elementwise ops without derivatives.
    pub fn partials(&self) -> &'static [Expr] {
        let Op::Apply(op) = self else { return &[] };
        match &op.info().gradient {
            Gradient::Rule(parts) => parts,
            Gradient::None(_) => &[],
        }
    }

    /// Whether the op leaves NaN out of its reduction or scan.
    pub fn omits_nan(&self) -> bool {
        matches!(self, Op::Reduce { nan: Nan::Omit, .. } | Op::Scan { nan: Nan::Omit, .. })
    }

    /// The view, if the op is one.
    pub fn as_view(&self) -> Option<&View> {
        if let Op::View(view) = self { Some(view) } else { None }
    }

    /// The reduction, if the op is one.
    pub fn as_reduction(&self) -> Option<(ReduceOp, DimSet, Nan)> {
        if let Op::Reduce { op, dims, nan } = self { Some((*op, *dims, *nan)) } else { None }
    }

    /// The scan, if the op is one: its kind, its dimension, how it treats NaN, and whether it runs from the end.
    pub fn as_scan(&self) -> Option<(ScanOp, usize, Nan, bool)> {
        let Op::Scan { op, dim, nan, reverse } = self else { return None };
        Some((*op, usize::from(*dim), *nan, *reverse))
    }

    /// The Fourier transform, if the op is one.
    pub fn as_fourier(&self) -> Option<Fourier> {
        if let Op::Fourier(fourier) = self { Some(*fourier) } else { None }
    }

    /// The op of linear algebra, if the op is one.
    pub fn as_linear(&self) -> Option<LinearOp> {
        if let Op::Linear(linear) = self { Some(*linear) } else { None }
    }

    /// The dimension along which `Cat` joins its arguments.
    pub fn joins_along(&self) -> Option<usize> {
        if let Op::Cat { dim } = self { Some(usize::from(*dim)) } else { None }
    }

    /// The diagonal on which `MakeDiagonal` puts its argument.
    pub fn makes_diagonal(&self) -> Option<i64> {
        if let Op::MakeDiagonal(k) = self { Some(*k) } else { None }
    }

    /// The slice that `AssignSlice` overwrites.
    pub fn overwrites_slice(&self) -> Option<&[SliceDim]> {
        if let Op::AssignSlice(dims) = self { Some(dims) } else { None }
    }

    /// How the op uses its index argument, if it has one.
    pub fn indexes(&self) -> Option<Indexing> {
        if let Op::TakeAlong { dim } = self {
            return Some(Indexing::Along(*dim));
        }
        let (Op::Take { dim } | Op::AssignIndex { dim }) = self else { return None };
        Some(dim.map_or(Indexing::Linear, Indexing::Slices))
    }

    /// Whether the value holds each position along a dimension once.
    pub fn is_order(&self) -> bool {
        matches!(self, Op::ArgSort { .. })
    }
}

/// The elements that an index selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexing {
    /// An element of the array, in memory order.
    Linear,
    /// A slice of the array along a dimension.
    Slices(u8),
    /// An element of the line along a dimension in which the index lies.
    Along(u8),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Op, ReduceOp, ScanOp, Yields};

    #[test]
    fn an_op_has_a_rule_where_its_result_is_no_position_count_or_truth_value() {
        let reductions = [
            ReduceOp::Sum,
            ReduceOp::Prod,
            ReduceOp::Mean,
            ReduceOp::Var { ddof: 1 },
            ReduceOp::Std { ddof: 0 },
            ReduceOp::Min,
            ReduceOp::Max,
            ReduceOp::ArgMin,
            ReduceOp::ArgMax,
            ReduceOp::Any,
            ReduceOp::All,
            ReduceOp::CountNonzero,
            ReduceOp::Norm,
            ReduceOp::LogSumExp,
            ReduceOp::Dot,
        ];
        for op in reductions {
            let facts = op.facts();
            let has_rule = !matches!(facts.gradient, GradientRule::None { .. });
            assert_eq!(has_rule, matches!(facts.yields, Yields::Float | Yields::Same), "{}", facts.name);
        }
        for op in [ScanOp::Sum, ScanOp::Prod, ScanOp::Min, ScanOp::Max] {
            assert!(!matches!(op.facts().gradient, GradientRule::None { .. }), "{}", op.facts().name);
        }
        assert_eq!(Op::ArgSort { dim: 0, descending: false }.facts().gradient, GradientRule::POSITIONS);
    }

    #[test]
    fn a_rule_reads_no_value_that_it_can_do_without() {
        let reads = |op: Op| {
            let RuleReads { args, value } = op.derivative_reads(u8::MAX);
            (args, value)
        };
        let reduced = |op: ReduceOp| reads(Op::Reduce { op, dims: 1, nan: Nan::Include });
        let scanned = |op: ScanOp| reads(Op::Scan { op, dim: 0, nan: Nan::Include, reverse: false });
        let (nothing, second, args, all) = ((0, false), (0b10, false), (u8::MAX, false), (u8::MAX, true));
        assert_eq!(reads(Op::AssignSlice([].as_slice().into())), nothing);
        assert_eq!(reads(Op::AssignIndex { dim: None }), second);
        for op in [ReduceOp::Sum, ReduceOp::Mean] {
            assert_eq!(reduced(op), nothing, "{}", op.facts().name);
        }
        for op in [ReduceOp::Prod, ReduceOp::Min, ReduceOp::Max, ReduceOp::Var { ddof: 1 }] {
            assert_eq!(reduced(op), args, "{}", op.facts().name);
        }
        for op in [ReduceOp::Std { ddof: 1 }, ReduceOp::Norm, ReduceOp::LogSumExp] {
            assert_eq!(reduced(op), all, "{}", op.facts().name);
        }
        assert_eq!(scanned(ScanOp::Sum), nothing);
        for op in [ScanOp::Prod, ScanOp::Min, ScanOp::Max] {
            assert_eq!(scanned(op), all, "{}", op.facts().name);
        }
    }

    #[test]
    fn an_elementwise_op_has_the_gradient_of_its_own_table() {
        for &op in ElementOp::ALL {
            let expected = match op.info().gradient {
                Gradient::None(why) => GradientRule::None { why },
                Gradient::Rule(_) => GradientRule::Partials,
            };
            assert_eq!(Op::Apply(op).facts().gradient, expected, "{}", op.name());
        }
    }
}
