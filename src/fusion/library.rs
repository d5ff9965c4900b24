//! Library kernels: makes the call of a library kernel for a node of class `Library`.
//!
//! In: the node. Out: the library kernel with its sizes, and which buffer each operand is.
//! Must hold: operands are buffers (`cut` wrote them out); the last operand is scratch, if there is any.

use super::form::{RegionGraph, matmul_operand};
use super::source::{Source, source_of};
use crate::contract::region::RegionArg;
use crate::graph::{LinearOp, Op, Parts};
use crate::kernels::library::Library;
use smallvec::{SmallVec, smallvec};

/// A library node's kernel and operands.
#[derive(Debug)]
pub struct LibraryCall {
    /// The kernel, with its sizes.
    pub library: Library,
    /// The buffers of the kernel's operands, without the output, whose position is `output`.
    pub operands: SmallVec<[Source; 4]>,
    /// Which operand is the output.
    pub output: usize,
    /// The output starts as a copy of this buffer.
    pub base: Option<Source>,
}

/// The library call of a node.
pub fn call(work: &RegionGraph<'_>, n: u32) -> LibraryCall {
    let node = &work.nodes[n as usize];
    match &node.op {
        Op::MatMul => matmul(work, n),
        Op::ArgSort { dim, descending } => {
            let shape = work.arg_shape(node.args[0]);
            let (before, len, after) = around(shape.dims(), *dim as usize);
            let library =
                Library::ArgSort { dtype: work.arg_dtype(node.args[0]), before, len, after, descending: *descending };
            let operands = smallvec![source_of(node.args[0]), Source::Node(n)];
            LibraryCall { library, operands, output: 1, base: None }
        }
        Op::AssignIndex { dim } => {
            let shape = &node.meta.shape;
            let (before, extent, after) = match dim {
                None => (1, shape.elements() as u32, 1),
                Some(dim) => around(shape.dims(), *dim as usize),
            };
            let value = work.arg_shape(node.args[2]);
            let library = Library::AssignIndex {
                dtype: node.meta.dtype,
                index_dtype: work.arg_dtype(node.args[1]),
                before,
                extent,
                after,
                count: work.arg_shape(node.args[1]).elements() as u32,
                scalar_value: value.is_scalar(),
            };
            LibraryCall {
                library,
                operands: smallvec![Source::Node(n), source_of(node.args[1]), source_of(node.args[2])],
                output: 0,
                base: Some(source_of(node.args[0])),
            }
        }
        Op::Linear(op) => linear(work, n, *op),
        Op::Fourier(fourier) => {
            let shape = work.arg_shape(node.args[0]);
            // If one array holds the real and imaginary parts, its last dimension has these two parts and counts in
            // `after`.
            let parts = if fourier.parts == Parts::Together { 2 } else { 1 };
            let (before, given, after) = around(shape.dims(), fourier.dim as usize);
            let library =
                Library::Fourier { dtype: node.meta.dtype, before, given, after: after / parts, fourier: *fourier };
            whole(work, n, library)
        }
        Op::Source(_)
        | Op::Fill
        | Op::Iota
        | Op::Linspace
        | Op::Eye
        | Op::Random { .. }
        | Op::Apply(_)
        | Op::View(_)
        | Op::Cat { .. }
        | Op::Triangle { .. }
        | Op::MakeDiagonal(_)
        | Op::Reduce { .. }
        | Op::Scan { .. }
        | Op::Take { .. }
        | Op::TakeAlong { .. }
        | Op::AssignSlice(_)
        | Op::Ensure { .. }
        | Op::Compact => {
            unreachable!("FUSE-1: {} is no library kernel", node.op.name())
        }
    }
}

fn matmul(work: &RegionGraph<'_>, n: u32) -> LibraryCall {
    let node = &work.nodes[n as usize];
    let shape = &node.meta.shape;
    let (a, transpose_a) = matmul_operand(work, node.args[0]);
    let (b, transpose_b) = matmul_operand(work, node.args[1]);
    let (m, columns) = (shape.dim(0) as u32, shape.dim(1) as u32);
    let k = work.arg_shape(node.args[0]).dim(1) as u32;
    let batch: usize = shape.dims().iter().skip(2).product();
    let pages = |arg: RegionArg| work.arg_shape(arg).dims().iter().skip(2).product::<usize>();
    let library = Library::MatMul {
        dtype: node.meta.dtype,
        m,
        n: columns,
        k,
        batch: batch as u32,
        transpose_a,
        transpose_b,
        stride_a: if pages(node.args[0]) == 1 { 0 } else { m * k },
        stride_b: if pages(node.args[1]) == 1 { 0 } else { k * columns },
    };
    let operands = smallvec![source_of(a), source_of(b), Source::Node(n)];
    LibraryCall { library, operands, output: 2, base: None }
}

fn linear(work: &RegionGraph<'_>, n: u32, op: LinearOp) -> LibraryCall {
    let node = &work.nodes[n as usize];
    let pages = |dims: &[usize]| dims.iter().skip(2).product::<usize>() as u32;
    let matrix = work.arg_shape(node.args[0]);
    let (m, stored) = (matrix.dim(0) as u32, matrix.dim(1) as u32);
    let library = Library::Linear {
        op,
        dtype: node.meta.dtype,
        m,
        n: stored,
        columns: node.meta.shape.dim(1) as u32,
        batch: pages(node.meta.shape.dims()),
        stride_a: if pages(matrix.dims()) == 1 { 0 } else { m * stored },
    };
    whole(work, n, library)
}

/// The call of a kernel that reads all arguments of its node, and then writes the node's value.
fn whole(work: &RegionGraph<'_>, n: u32, library: Library) -> LibraryCall {
    let mut operands: SmallVec<[Source; 4]> = work.nodes[n as usize].args.iter().map(|&arg| source_of(arg)).collect();
    operands.push(Source::Node(n));
    LibraryCall { library, output: operands.len() - 1, operands, base: None }
}

/// Elements before, along and after a dimension.
fn around(dims: &[usize], dim: usize) -> (u32, u32, u32) {
    let before: usize = dims.iter().take(dim).product();
    let along = dims.get(dim).copied().unwrap_or(1);
    let after: usize = dims.iter().skip(dim + 1).product();
    (before as u32, along as u32, after as u32)
}
