//! Defines what the column `cost` of the op tables means (`graph/table.rs`, `graph/facts.rs`). Placement, fusion and
//! the devices' estimates read that column.
//!
//! In: a cost, numbers of elements. Out: **simple operations**. An addition, a product or a comparison of one element
//! is one simple operation. A device does `Costs::f32_gop_per_s` billion of them a second on f32. Must hold: COSTS-1: a
//! cost depends on the op and on sizes alone, since placement by costs decides bits.
//!
//! The costs are fitted to the number of lines that `kernels::element` records for an op's function on an f32. Most
//! functions have between one and four times as many lines as they cost here, because some lines serve only one range
//! of arguments. `sign`, `round`, `mod`, `pow` and the gamma functions have up to twelve times as many lines, most of
//! them for rare, hard arguments. A division or a root is one line and costs five. The test
//! `the_costs_of_functions_are_of_the_order_of_their_lines` compares the table with the lines.

use super::{DType, Meta, Op};

/// Simple operations that each instruction of a kernel's IR takes beside the cost of its op, except for arithmetic on
/// indices: the host reads and writes a block in cache for it; a GPU issues it and runs its loop. The number is chosen
/// so that estimates of kernels of simple ops are right within a factor of about two on the machines of
/// docs/benchmarks.md. It decides when work is sent, and no bit.
pub const INSTRUCTION: u32 = 1;

/// Simple operations that an addition, a comparison or a move takes.
pub const SIMPLE: u32 = 1;
/// Simple operations of a function of the exponential family: a reduction of the range and a polynomial.
pub const EXPONENTIAL: u32 = 20;
/// Simple operations of a function of an angle, of a power, or of an inverse function: two polynomials, or one and a
/// root.
pub const TRIGONOMETRIC: u32 = 30;
/// Simple operations of a function with several ranges, each of which has its own polynomial.
pub const SPECIAL: u32 = 60;
/// Simple operations of a division or a root.
pub const DIVISION: u32 = 5;
/// Simple operations of a random number: ten rounds of Philox give four words, a quarter of some 80 operations.
pub const RANDOM: u32 = 20;
/// Simple operations of a normal random number: two such words, a logarithm, a root and an angle give two numbers.
pub const RANDOM_NORMAL: u32 = 60;
/// The same of a number that is drawn by rejection: four words, a few logarithms and divisions, and sometimes all of it
/// again.
pub const RANDOM_REJECTED: u32 = 400;

/// The cost of computing a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// This many simple operations for each element of the value, or of the longest argument if that is longer.
    Each(u32),
    /// As `Each`, for random numbers. Fusion draws them again at each read, and never writes them to memory to save
    /// this cost.
    Draw(u32),
    /// A product and an addition for each term of each element's sum.
    Product,
    /// Each element takes one pass of a merge for each doubling of its line's length. In a pass the element is
    /// compared, and moved with its index: 8 simple operations.
    Sort,
    /// Each element of the matrix, or of a system's right sides, takes this many thirds of an operation for each row
    /// that is eliminated.
    Elimination {
        /// Thirds of an operation.
        thirds: u32,
    },
    /// Each element of a transform's lines takes a product and two sums of complex numbers for each doubling of the
    /// line's length, shared by two elements: 5 simple operations.
    Transform,
    /// Each element that is assigned takes 4 simple operations: it claims its place, and is written if its claim wins.
    Assignment,
}

impl Cost {
    /// Simple operations for this many elements; `length` is the number of terms of a sum, or the length of a line that
    /// is sorted or transformed.
    pub fn operations(self, elements: f64, length: u64) -> f64 {
        match self {
            Cost::Each(each) | Cost::Draw(each) => elements * each as f64,
            Cost::Product => elements * (2.0 * length as f64),
            Cost::Sort => elements * (8.0 * (length.max(2) as f64).log2()),
            Cost::Elimination { thirds } => elements * (thirds as f64 / 3.0 * length as f64),
            Cost::Transform => elements * (5.0 * (length.max(2) as f64).log2()),
            Cost::Assignment => elements * 4.0,
        }
    }

    /// The weight of an op whose value is computed again at each read. Random numbers weigh nothing, because fusion
    /// draws them again in any case.
    pub fn weight_again(self) -> u32 {
        match self {
            Cost::Draw(_) => 0,
            Cost::Each(_)
            | Cost::Product
            | Cost::Sort
            | Cost::Elimination { .. }
            | Cost::Transform
            | Cost::Assignment => self.weight(),
        }
    }

    /// The weight of an op in fusion: simple operations for an element, whatever the sizes are. Library kernels weigh
    /// the least possible, because they never compute a value again.
    pub fn weight(self) -> u32 {
        match self {
            Cost::Each(each) | Cost::Draw(each) => each,
            Cost::Product | Cost::Sort | Cost::Elimination { .. } | Cost::Transform | Cost::Assignment => SIMPLE,
        }
    }
}

/// Simple operations, separated by the rates at which devices do them: `f64_gop_per_s` and `f32_gop_per_s` of
/// `contract::device::Costs`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Operations {
    /// Operations whose result is f64.
    pub double: f64,
    /// All other operations.
    pub other: f64,
}

impl Operations {
    /// Simple operations whose results are of a dtype.
    pub fn of(dtype: DType, operations: f64) -> Operations {
        let mut work = Operations::default();
        work.add(dtype, operations);
        work
    }

    /// Adds simple operations whose results are of a dtype.
    pub fn add(&mut self, dtype: DType, operations: f64) {
        match dtype {
            DType::F64 => self.double += operations,
            DType::F32 | DType::Bool | DType::U8 | DType::I32 | DType::U32 | DType::I64 => self.other += operations,
        }
    }
}

/// Simple operations of an op whose value is `meta`. `elements` is the number of elements of the value, or of the
/// longest argument if that is longer. `arg` returns the dtype and shape of an argument that is an array.
pub fn operations<'m>(op: &Op, meta: &Meta, elements: usize, arg: impl Fn(usize) -> Option<&'m Meta>) -> f64 {
    let (elements, length) = match op {
        Op::MatMul => (elements, arg(0).map_or(1, |a| a.shape.dim(1).max(1))),
        Op::ArgSort { dim, .. } => (elements, meta.shape.dim(*dim as usize)),
        Op::Linear(linear) => {
            let (m, n) = arg(0).map_or((1, 1), |a| (a.shape.dim(0), a.shape.dim(1)));
            let pages: usize = meta.shape.dims().iter().skip(2).product();
            (pages * linear.cost_elements(m, n, meta.shape.dim(1)), m.min(n))
        }
        Op::AssignIndex { dim } => {
            let count = arg(1).map_or(1, Meta::elements);
            let lines = dim.map_or(1, |dim| meta.shape.elements() / meta.shape.dim(dim as usize).max(1));
            (lines * count, 1)
        }
        Op::Fourier(fourier) => (fourier.lines(meta.shape.elements()) * fourier.len as usize, fourier.len as usize),
        Op::Source(_) | Op::Fill | Op::Iota | Op::Linspace | Op::Eye | Op::Random { .. } => (elements, 1),
        Op::Apply(_) | Op::View(_) | Op::Cat { .. } | Op::Triangle { .. } | Op::MakeDiagonal(_) => (elements, 1),
        Op::Reduce { .. } | Op::Scan { .. } | Op::Take { .. } | Op::TakeAlong { .. } => (elements, 1),
        Op::AssignSlice(_) | Op::Ensure { .. } | Op::Compact => (elements, 1),
    };
    op.facts().cost.operations(elements as f64, length as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{ElementOp, LinearOp, Shape, Triangle};

    #[test]
    fn the_cost_of_a_factorisation_depends_on_its_matrix_not_on_the_size_of_its_value() {
        let meta = |dims: &[usize]| Meta { dtype: DType::F64, shape: Shape::new(dims).unwrap() };
        let cost = |op, value: &[usize], matrix: &[usize]| {
            let matrix = meta(matrix);
            operations(&Op::Linear(op), &meta(value), matrix.elements(), |_| Some(&matrix))
        };
        let cube = |n: f64| n * n * n;
        assert_eq!(cost(LinearOp::Eigh { vectors: false }, &[90, 1, 2], &[90, 90, 2]), 2.0 * 9.0 * cube(90.0));
        assert_eq!(cost(LinearOp::Eigh { vectors: true }, &[90, 91, 2], &[90, 90, 2]), 2.0 * 9.0 * cube(90.0));
        assert_eq!(cost(LinearOp::Svd { vectors: false }, &[30, 1], &[90, 30]), 21.0 * 90.0 * 30.0 * 30.0);
        // A page of the matrix serves all right sides.
        let solve = LinearOp::SolveTriangular(Triangle::LOWER);
        assert_eq!(cost(solve, &[60, 7, 5], &[60, 60]), 5.0 * 7.0 * 60.0 * 60.0);
    }

    #[test]
    fn products_sorts_and_transforms_cost_as_much_as_their_steps() {
        assert_eq!(Cost::Product.operations(1.0, 100), 200.0);
        assert_eq!(Cost::Sort.operations(1.0, 1 << 25), 200.0);
        // The usual count for a complex transform: 5 n log2(n).
        assert_eq!(Cost::Transform.operations(1024.0, 1024), 51_200.0);
        assert_eq!(Op::Apply(ElementOp::Sqrt).facts().cost, Op::Apply(ElementOp::Div).facts().cost);
    }
}
