//! Finds the reductions whose lines (the elements that are reduced to one value) a workgroup can hold in registers.
//!
//! In: working nodes. Out: for every reduction, of how many arrays a workgroup holds the lines that it folds
//! ([`WorkNode::lines_held`](super::form::WorkNode)). Must hold: it is a function of shapes and of the device's numbers
//! (FUSE-3), and a part of the key of the grouping, which knows no sizes.

use super::form::{Class, RegionGraph};
use crate::contract::device::DeviceInfo;
use crate::graph::{DType, DimSet, Nan, Op, ReduceOp, Shape};
use crate::kernels::ir::{LINE_SHARE_MAX, LINE_WORKGROUP_MAX};
use rustc_hash::FxHashSet;

/// How many arrays a kernel may read whose lines are long. A workgroup holds one line of each array at the same time; a
/// line takes [`LINE_SHARE_MAX`] words of registers in each invocation.
const ARRAYS_MAX: u32 = 2;
/// The same for short lines, which take at most half of these registers.
const ARRAYS_OF_SHORT_MAX: u32 = 4;

/// Sets, for every reduction, how many arrays' lines fit.
pub fn lines(work: &mut RegionGraph<'_>, device: &DeviceInfo) {
    for n in 0..work.nodes.len() {
        work.nodes[n].lines_held = lines_held(work, n, device);
    }
}

fn lines_held(work: &RegionGraph<'_>, n: usize, device: &DeviceInfo) -> u32 {
    let node = &work.nodes[n];
    let Op::Reduce { op, dims, .. } = node.op else { return 0 };
    let (shape, dtype) = (work.arg_shape(node.args[0]), work.arg_dtype(node.args[0]));
    let is_one_piece = device.pieces(dtype, shape.elements() as u64) == 1;
    let is_float = node.class == Class::Reduce && folds_floats(op, dtype, node.meta.dtype);
    if !is_float || !is_one_piece || !(folds_moments(&node.op) || goes_on(work, n as u32, &shape)) {
        return 0;
    }
    let length = line_length(&shape, dims).unwrap_or(0);
    let invocations = device.line_invocations_max.min(LINE_WORKGROUP_MAX) / (dtype.gpu_bytes() as u32 / 4);
    let held = invocations * LINE_SHARE_MAX;
    match length {
        0 | 1 => 0,
        _ if length > held => 0,
        _ if length > held / 2 => ARRAYS_MAX,
        _ => ARRAYS_OF_SHORT_MAX,
    }
}

/// Whether a reduction computes moments (variance, standard deviation). From held lines this takes fewer operations than
/// in one pass over memory.
pub fn folds_moments(op: &Op) -> bool {
    matches!(op.as_reduction(), Some((ReduceOp::Var { .. } | ReduceOp::Std { .. }, _, Nan::Include)))
}

/// Whether the result of a reduction is used again with the elements that were reduced. Other reductions have one
/// grouping for all sizes.
fn goes_on(work: &RegionGraph<'_>, n: u32, elements: &Shape) -> bool {
    let outer = &work.nodes[n as usize].meta.shape;
    let mut seen: FxHashSet<u32> = FxHashSet::default();
    let mut stack = vec![n];
    while let Some(n) = stack.pop() {
        for &c in &work.nodes[n as usize].consumers {
            let shape = &work.nodes[c as usize].meta.shape;
            if shape == elements {
                return true;
            }
            if shape == outer && seen.insert(c) {
                stack.push(c);
            }
        }
    }
    false
}

/// The length of a line, if lines are contiguous in memory, so that no dimension that is kept comes before one that is
/// reduced.
fn line_length(shape: &Shape, dims: DimSet) -> Option<u32> {
    let is_folded = |d: usize| dims >> d & 1 == 1;
    let mut length = 1;
    let mut is_over = false;
    for (d, &n) in shape.dims().iter().enumerate().filter(|&(_, &n)| n != 1) {
        match is_folded(d) {
            true if is_over => return None,
            true => length *= n as u64,
            false => is_over = true,
        }
    }
    u32::try_from(length).ok()
}

/// Whether a reduction folds floats only, of its operand's own type, so that the partial results of its lanes fit the
/// workgroup memory of every GPU.
fn folds_floats(op: ReduceOp, from: DType, to: DType) -> bool {
    let is_float = from.is_float() && from == to;
    match op {
        ReduceOp::Sum
        | ReduceOp::Mean
        | ReduceOp::Var { .. }
        | ReduceOp::Std { .. }
        | ReduceOp::Min
        | ReduceOp::Max
        | ReduceOp::Norm
        | ReduceOp::LogSumExp
        | ReduceOp::Dot => is_float,
        ReduceOp::Prod
        | ReduceOp::ArgMin
        | ReduceOp::ArgMax
        | ReduceOp::Any
        | ReduceOp::All
        | ReduceOp::CountNonzero => false,
    }
}
