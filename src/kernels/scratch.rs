//! Memory that ops need on a GPU beside what they read and write: scratch, in one piece, of 32-bit words.
//!
//! In: an op with the sizes of its arguments and its value, or a call of a library kernel. Out: words of scratch;
//! `None` if no GPU can run it, since a kernel counts words and places in 32 bits. Must hold: an op has the scratch of
//! the library call that fusion makes of it. Placement reads the one (`scratch_words`), fusion and the kernels the
//! other (`Library::scratch_words`).

use super::library::Library;
use super::{fft, matmul};
use crate::graph::{DType, Meta, Op};

/// The number of elements that a GPU's workgroup sorts by comparing them.
pub const SORT_BLOCK: u64 = 1024;
/// The number of elements that a workgroup sorts by digits, if lines are longer than `SORT_BLOCK`. Lines of at most
/// this many elements need no scratch.
pub const SORT_TILE: u64 = 4096;
/// The number of values of a digit, which has 8 bits.
pub const SORT_DIGITS: u64 = 256;

/// The number of digits in a sort key of this dtype.
pub fn sort_digits(dtype: DType) -> u32 {
    match dtype {
        DType::Bool | DType::U8 => 1,
        DType::F32 | DType::I32 | DType::U32 => 4,
        DType::F64 | DType::I64 => 8,
    }
}

/// 32-bit words of scratch that an op on arguments of these dtypes and lengths needs on a GPU. `None` if no GPU can run
/// it.
pub fn scratch_words(op: &Op, dtypes: &[DType], lengths: &[usize], meta: &Meta) -> Option<u64> {
    let words = match op {
        Op::ArgSort { dim, .. } => {
            let len = meta.shape.dim(*dim as usize).max(1);
            let keys = dtypes.first().copied().unwrap_or(meta.dtype);
            of_sort(keys, len as u64, (meta.elements() / len) as u64)?
        }
        Op::AssignIndex { dim } => {
            let extent = dim.map_or(meta.elements(), |dim| meta.shape.dim(dim as usize));
            of_assignment(extent as u64, lengths.get(2) == Some(&1))
        }
        Op::MatMul if meta.elements() > 0 => {
            let (m, n) = (meta.shape.dim(0), meta.shape.dim(1));
            // The terms of a sum, or more of them where both factors have pages.
            let k = lengths.iter().zip([m, n]).map(|(length, lines)| length / lines).min().unwrap_or(0);
            matmul::scratch_words(meta.dtype, m as u32, n as u32, k as u32, (meta.elements() / (m * n)) as u32)
        }
        Op::Linear(linear) if meta.elements() > 0 => {
            let (rows, columns) = (meta.shape.dim(0), meta.shape.dim(1));
            let pages = meta.elements() / (rows * columns);
            let of = lengths.first().map_or(0, |length| length / (rows * pages));
            linear.scratch_words(meta.dtype, rows as u64, of as u64, pages as u64)
        }
        Op::Fourier(fourier) => {
            let before: usize = meta.shape.dims().iter().take(fourier.dim as usize).product();
            fft::scratch_words(meta.dtype, fourier, before as u32, fourier.lines(meta.elements()) as u64)?
        }
        Op::Linear(_)
        | Op::MatMul
        | Op::Source(_)
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
        | Op::Compact => 0,
    };
    counted(words)
}

impl Library {
    /// 32-bit words of scratch that the GPU side needs as its last operand (the host side needs none). `None` if no GPU
    /// can run the call.
    pub fn scratch_words(&self) -> Option<u64> {
        let words = match *self {
            Library::MatMul { dtype, m, n, k, batch, .. } => matmul::scratch_words(dtype, m, n, k, batch),
            Library::ArgSort { dtype, before, len, after, .. } => {
                of_sort(dtype, len as u64, before as u64 * after as u64)?
            }
            Library::AssignIndex { extent, scalar_value, .. } => of_assignment(extent as u64, scalar_value),
            Library::Linear { op, dtype, m, n, batch, .. } => op.scratch_words(dtype, m as u64, n as u64, batch as u64),
            Library::Fourier { dtype, before, after, fourier, .. } => {
                fft::scratch_words(dtype, &fourier, before, before as u64 * after as u64)?
            }
        };
        counted(words)
    }
}

/// The number of words, if a kernel can count them in 32 bits.
fn counted(words: u64) -> Option<u64> {
    (words <= u32::MAX as u64).then_some(words)
}

/// Words that note, for each place along an indexed extent, which of several assignments to it wins.
fn of_assignment(extent: u64, scalar_value: bool) -> u64 {
    // If all assignments write the same number, no place needs a winner.
    if scalar_value { 0 } else { extent }
}

/// Words for a sort of `lines` lines of `len` elements (`kernels/sort`). Keys of several digits take two copies of the
/// keys and one copy of the positions. Each digit of each line takes a count for each tile, and the sum of these
/// counts. `None` if a workgroup cannot count the places of padded lines in 32 bits.
fn of_sort(dtype: DType, len: u64, lines: u64) -> Option<u64> {
    if len <= SORT_TILE {
        let padded = if len <= SORT_BLOCK { len.next_power_of_two() } else { len };
        return counted(lines.saturating_mul(padded)).map(|_| 0);
    }
    let words = if dtype.is_wide() { 2 } else { 1 };
    let copies = if sort_digits(dtype) > 1 { 2 * words + 1 } else { 0 };
    let counts = SORT_DIGITS * (len.div_ceil(SORT_TILE) + 1);
    Some(lines.saturating_mul(len.saturating_mul(copies).saturating_add(counts)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Shape;

    #[test]
    fn what_a_gpu_cannot_count_has_no_scratch() {
        let sort = |len: usize, lines: usize| {
            let meta = Meta { dtype: DType::U32, shape: Shape::new(&[len, lines]).unwrap() };
            let op = Op::ArgSort { dim: 0, descending: false };
            scratch_words(&op, &[DType::F32], &[len * lines], &meta)
        };
        assert_eq!(sort(8, 1 << 20), Some(0));
        // Lines are padded to a power of two.
        assert_eq!((sort(5, 1 << 28), sort(5, 1 << 29)), (Some(0), None));
        assert_eq!(sort(1 << 20, 1), Some((1 << 20) * 3 + SORT_DIGITS * ((1 << 20) / SORT_TILE + 1)));
        assert_eq!(sort(1 << 20, 1 << 11), None);
        let meta = Meta { dtype: DType::F32, shape: Shape::new(&[16, 4]).unwrap() };
        let assign = |value| scratch_words(&Op::AssignIndex { dim: None }, &[DType::F32], &[64, 4, value], &meta);
        assert_eq!((assign(4), assign(1)), (Some(64), Some(0)));
    }

    #[test]
    fn an_op_has_the_scratch_of_its_library_call() {
        let shape = |dims: &[usize]| Meta { dtype: DType::F32, shape: Shape::new(dims).unwrap() };
        for (m, n, k) in [(1u32, 1u32, 1u32 << 20), (256, 1, 1 << 20), (64, 64, 64), (2, 2, 1 << 16)] {
            let call = matmul::scratch_words(DType::F32, m, n, k, 1);
            let lengths = [(m * k) as usize, (k * n) as usize];
            let op = scratch_words(&Op::MatMul, &[DType::F32; 2], &lengths, &shape(&[m as usize, n as usize]));
            assert_eq!(op, Some(call), "{m} x {k} x {n}");
        }
    }
}
