//! What ops cost: the one table that placement, fusion and the devices' estimates read.
//!
//! In: an op, numbers of elements. Out: **simple operations**, of which a device does `Costs::f32_gop_per_s` billion a
//! second where they are on f32: an addition, a product or a comparison of one element is one. Must hold: COSTS-1: a
//! function of the op and of sizes alone, since placement decides bits.
//!
//! Where the numbers come from: from the lines that an op's function takes for an f32, which `kernels::element` records,
//! and which ranges that exclude each other share: most functions have between one and four times as many lines as they
//! cost here. `sign`, `round`, `mod`, `pow` and the gamma functions have up to twelve times as many, most of them for
//! hard cases. A division or a root is one line and counts as five. The test
//! `the_costs_of_functions_are_of_the_order_of_their_lines` holds the table to that.

use super::{Dist, ElementOp, Op, ReduceOp};

/// Simple operations that an instruction of a kernel's IR stands for, on average, beside arithmetic on indices: most are
/// loads and simple ops, a few are functions. Chosen, so that estimates of fused kernels are right within a factor of two or
/// so on the machines of docs/benchmarks.md. It decides when work is sent, and no bit.
pub const OPERATIONS_PER_INST: f64 = 2.0;

/// Simple operations that a function of the exponential family takes: a reduction of the range and a polynomial.
const EXPONENTIAL: u32 = 20;
/// The same of a function of an angle, of a power, and of inverses: two polynomials, or one and a root.
const TRIGONOMETRIC: u32 = 30;
/// The same of a function of several ranges, each with a polynomial of its own.
const SPECIAL: u32 = 60;
/// The same of a division or a root.
const DIVISION: u32 = 5;

/// Simple operations for an element: of the value, or of the longest argument where that is longer. Of
/// sorting, products of matrices and assignment by index see [`sort_operations`], [`matmul_operations`] and
/// [`ASSIGN_OPERATIONS`].
pub fn operations(op: &Op) -> u32 {
    match op {
        // A number is a parameter of the kernel that reads it.
        Op::Fill => 0,
        // Ten rounds of Philox give four words: a quarter of some 80 operations.
        Op::Random { dist: Dist::Uniform | Dist::Integer, .. } => 20,
        // Two such words, a logarithm, a root and an angle for two numbers.
        Op::Random { dist: Dist::Normal, .. } => 60,
        Op::Apply(op) => of_element(*op),
        Op::Reduce { op, .. } => of_reduction(*op),
        Op::Source(_) | Op::Iota | Op::Linspace | Op::Eye => 1,
        Op::View(_) | Op::Cat { .. } | Op::Triangle { .. } | Op::MakeDiagonal(_) => 1,
        Op::Scan { .. } | Op::Take { .. } | Op::TakeAlong { .. } | Op::AssignSlice(_) => 1,
        // One; what they do for it depends on sizes.
        Op::AssignIndex { .. } | Op::ArgSort { .. } | Op::MatMul => 1,
        Op::Ensure { .. } | Op::Compact => 1,
    }
}

fn of_element(op: ElementOp) -> u32 {
    use ElementOp::*;
    match op {
        Neg | Abs | Sign | Square | Floor | Ceil | Round | Fix => 1,
        IsNan | IsInf | IsFinite | Not | And | Or | Xor | Eq | Ne | Lt | Le | Gt | Ge => 1,
        Add | Sub | Mul | Min | Max | Select | Clamp | Cast => 1,
        Sqrt | Reciprocal | Div | Mod | Rem | Hypot => DIVISION,
        Exp | Expm1 | Exp2 | Log | Log1p | Log2 | Log10 | Sigmoid | Tanh => EXPONENTIAL,
        Sin | Cos | Cospi | Tan | Asin | Acos | Atan | Atan2 => TRIGONOMETRIC,
        Sinh | Cosh | Asinh | Acosh | Atanh | Pow => TRIGONOMETRIC,
        Erf | Gamma | Lgamma => SPECIAL,
    }
}

fn of_reduction(op: ReduceOp) -> u32 {
    match op {
        // A function of the exponential family for each element.
        ReduceOp::LogSumExp => EXPONENTIAL,
        // Running means and scales divide.
        ReduceOp::Var { .. } | ReduceOp::Std { .. } | ReduceOp::Norm => 2 * DIVISION,
        ReduceOp::Sum | ReduceOp::Prod | ReduceOp::Mean | ReduceOp::Dot => 1,
        ReduceOp::Min | ReduceOp::Max | ReduceOp::ArgMin | ReduceOp::ArgMax => 1,
        ReduceOp::Any | ReduceOp::All | ReduceOp::CountNonzero => 1,
    }
}

/// Simple operations for an element of lines of `len` elements that are sorted: so many passes of a merge, in each of
/// which an element is compared and moved with its index.
pub fn sort_operations(len: u64) -> f64 {
    8.0 * (len.max(2) as f64).log2()
}

/// Simple operations for an element of a product of matrices whose sums have `terms`: a product and an addition each.
pub fn matmul_operations(terms: u64) -> f64 {
    2.0 * terms as f64
}

/// Simple operations for an element that is assigned by index: it claims its place, and is written if it won.
pub const ASSIGN_OPERATIONS: f64 = 4.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_of_matrices_costs_as_much_as_its_products_and_sums() {
        assert_eq!(matmul_operations(100), 200.0);
        assert_eq!(sort_operations(1 << 25), 200.0);
        assert_eq!(operations(&Op::Apply(ElementOp::Sqrt)), operations(&Op::Apply(ElementOp::Div)));
    }
}
