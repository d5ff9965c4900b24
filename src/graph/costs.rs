//! What the column `cost` of the tables of ops means (`graph/table.rs`, `graph/facts.rs`): placement, fusion and the
//! devices' estimates read it.
//!
//! In: a cost, numbers of elements. Out: **simple operations**, of which a device does `Costs::f32_gop_per_s` billion a
//! second where they are on f32: an addition, a product or a comparison of one element is one. Must hold: COSTS-1: a
//! function of the op and of sizes alone, since placement decides bits.
//!
//! Where the numbers come from: from the lines that an op's function takes for an f32, which `kernels::element` records,
//! and which ranges that exclude each other share: most functions have between one and four times as many lines as they
//! cost here. `sign`, `round`, `mod`, `pow` and the gamma functions have up to twelve times as many, most of them for
//! hard cases. A division or a root is one line and counts as five. The test
//! `the_costs_of_functions_are_of_the_order_of_their_lines` holds the table to that.

/// Simple operations that an instruction of a kernel's IR stands for, on average, beside arithmetic on indices: most are
/// loads and simple ops, a few are functions. Chosen, so that estimates of fused kernels are right within a factor of two or
/// so on the machines of docs/benchmarks.md. It decides when work is sent, and no bit.
pub const OPERATIONS_PER_INST: f64 = 2.0;

/// Simple operations that an addition, a comparison or a move takes.
pub const SIMPLE: u32 = 1;
/// The same of a function of the exponential family: a reduction of the range and a polynomial.
pub const EXPONENTIAL: u32 = 20;
/// The same of a function of an angle, of a power, and of inverses: two polynomials, or one and a root.
pub const TRIGONOMETRIC: u32 = 30;
/// The same of a function of several ranges, each with a polynomial of its own.
pub const SPECIAL: u32 = 60;
/// The same of a division or a root.
pub const DIVISION: u32 = 5;
/// The same of a random number: ten rounds of Philox give four words, a quarter of some 80 operations.
pub const RANDOM: u32 = 20;
/// The same of a normal random number: two such words, a logarithm, a root and an angle for two numbers.
pub const RANDOM_NORMAL: u32 = 60;

/// What computing a value costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// So many simple operations for each element of the value, or of the longest argument where that is longer.
    Each(u32),
    /// As `Each`, for numbers that are drawn: fusion draws them as often as they are read, and never writes them out for
    /// what they cost.
    Draw(u32),
    /// A product and an addition for each term of each element's sum.
    Product,
    /// For each element a pass of a merge for each doubling of its line's length, in which the element is compared and
    /// moved with its index: 8 simple operations a pass.
    Sort,
    /// For each element that is assigned, 4 simple operations: it claims its place, and is written if it won.
    Assignment,
}

impl Cost {
    /// Simple operations for so many elements; `length` is the number of terms of a sum, or the length of a line that
    /// is sorted.
    pub fn operations(self, elements: f64, length: u64) -> f64 {
        match self {
            Cost::Each(each) | Cost::Draw(each) => elements * each as f64,
            Cost::Product => elements * (2.0 * length as f64),
            Cost::Sort => elements * (8.0 * (length.max(2) as f64).log2()),
            Cost::Assignment => elements * 4.0,
        }
    }

    /// The weight of an op that is computed again wherever it is read; numbers are drawn again anyway.
    pub fn weight_again(self) -> u32 {
        match self {
            Cost::Draw(_) => 0,
            Cost::Each(_) | Cost::Product | Cost::Sort | Cost::Assignment => self.weight(),
        }
    }

    /// Simple operations for an element, sizes aside: what fusion weighs ops by. Library kernels compute nothing again,
    /// so they count as little as can be.
    pub fn weight(self) -> u32 {
        match self {
            Cost::Each(each) | Cost::Draw(each) => each,
            Cost::Product | Cost::Sort | Cost::Assignment => SIMPLE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{ElementOp, Op};

    #[test]
    fn a_product_of_matrices_costs_as_much_as_its_products_and_sums() {
        assert_eq!(Cost::Product.operations(1.0, 100), 200.0);
        assert_eq!(Cost::Sort.operations(1.0, 1 << 25), 200.0);
        assert_eq!(Op::Apply(ElementOp::Sqrt).facts().cost, Op::Apply(ElementOp::Div).facts().cost);
    }
}
