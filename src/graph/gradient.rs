//! How derivatives pass an op that isn't elementwise: the column `gradient` of `graph/facts.rs`. The derivatives of
//! elementwise ops are expressions in their own table (`graph/table/gradient.rs`).
//!
//! Nothing differentiates yet. A rule says how the derivative of a result by an op's argument follows from its
//! derivative by the op's value, which is called `above` here. It is linear in `above`.

use super::table::{ElementOp, Gradient};

/// The rule of an op for the derivatives by its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GradientRule {
    /// There are none, for this reason.
    None {
        /// The reason.
        why: &'static str,
    },
    /// The partial derivatives of the op's row in the table of elementwise ops, times `above`. Where an argument was
    /// expanded, the sum along the dimensions in which it was.
    Partials,
    /// `above`, moved back: the inverse reshape, permutation or shift.
    MoveBack,
    /// `above` at the places of the argument that were read, zero at the others.
    PutBack,
    /// The sum of `above` over the places that hold the same element of the argument.
    SumOfCopies,
    /// The part of `above` in which the argument lies.
    OwnPart,
    /// The same op on `above`.
    SameOp,
    /// `above` by the first argument; nothing by the second, which is a condition.
    FirstOnly,
    /// `above`, expanded to the argument.
    Spread,
    /// `above`, expanded to the argument and divided by the number of elements that were reduced.
    SpreadMean,
    /// `above` times the product of the other elements of each product that the element is in.
    OtherFactors,
    /// `above` times the element's distance from the mean and a factor of each variance or deviation.
    Deviation,
    /// `above` at the element whose value was taken, the first of equals; zero at the others.
    AtExtreme,
    /// `above` times the argument over its norm.
    Direction,
    /// `above` times the exponential of the argument less the value.
    Softmax,
    /// The running sum of `above`, from the other end.
    SumsFromEnd,
    /// The adjoint of a linear op, on `above`: of a Fourier transform, the transform of the opposite sign without or with
    /// the division by the length, of what is read and yielded.
    Adjoint,
    /// `above` times the other factor: element by element, or as a product of matrices with the factor transposed.
    Products,
    /// `above`, added at the indices of the first argument; indices that come twice add up. No op does this yet.
    AddAtIndex,
    /// By the base, `above` with zero where it was overwritten; by the value, `above` where the value was kept.
    Overwritten,
    /// The factors' equation, differentiated: products of `above` with the factors, of which one triangle is kept, then
    /// triangular systems on both sides.
    Factors,
    /// By the right sides, the solution of the transposed system for `above`; by the matrix, less the product of that
    /// with the value transposed, of which the triangle is kept that was read.
    Solution,
    /// Products of `above` with the vectors, weighted by the inverse differences of the values.
    Spectrum,
}

impl GradientRule {
    /// The rule of ops that read no array.
    pub const NO_ARRAY: GradientRule = GradientRule::None { why: "it reads no array" };
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
