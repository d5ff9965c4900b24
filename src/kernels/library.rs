//! Library kernels: the computations that are not generated from the IR. Each states its sizes; operands are dense
//! buffers.
//!
//! A library's GPU side is a list of [`Pass`]es (WGSL text keyed by structure, parameters, bindings, grid);
//! its host side is a function over host buffers. Both live in the library's own folder.
//!
//! Must hold: LIB-1: a family of library kernels gets its own variants of [`Library`] only, with operands of dtypes
//! that it computes.

#[cfg(feature = "gpu")]
use crate::error::Error;
use crate::graph::{DType, Fourier, LibraryOp, LinearOp};
#[cfg(feature = "gpu")]
use crate::kernels::{fft, linear, matmul, scatter, sort};

/// A library kernel with its sizes.
#[derive(Clone, Debug, PartialEq)]
pub enum Library {
    /// `out[m, n, p] = sum_k a[m, k, p] * b[k, n, p]`, operands `[a, b, out]`, and `scratch` of the same dtype if the
    /// terms are summed in slices. A transposed operand is stored with its first two dimensions exchanged.
    MatMul {
        /// f32 or f64.
        dtype: DType,
        /// Rows of the result.
        m: u32,
        /// Columns of the result.
        n: u32,
        /// Terms of each sum.
        k: u32,
        /// Pages.
        batch: u32,
        /// `a` is stored as `[k, m]`.
        transpose_a: bool,
        /// `b` is stored as `[n, k]`.
        transpose_b: bool,
        /// Elements from one page of `a` to the next; 0 if all pages share it.
        stride_a: u32,
        /// As `stride_a`, for `b`.
        stride_b: u32,
    },
    /// The stable sorting permutation (u32, 0-based) of lines, operands `[keys, out]`, and `scratch` if lines are long.
    /// Element `(a, i, b)` of `before x len x after` lies at `a + before * (i + len * b)`. NaN is greatest.
    ArgSort {
        /// Type of the keys.
        dtype: DType,
        /// Elements between neighbours of a line.
        before: u32,
        /// Length of a line.
        len: u32,
        /// Lines beyond `before`.
        after: u32,
        /// Whether the greatest keys, and NaN before them, come first. Equal keys keep their order.
        descending: bool,
    },
    /// `out[index] = value`; of equal indices, the last one wins. Operands `[out (holds the base), index, value,
    /// winner]`: winner is scratch, one u32 for each element of out's indexed extent, and absent if `scalar_value`. An
    /// index outside of the extent sets the fault word, and its value is not written. With `before`/`after` other than
    /// 1 it assigns along a dimension: `out[a, index[i], b] = value[a, i, b]`.
    AssignIndex {
        /// Type of out and value.
        dtype: DType,
        /// Type of the indices.
        index_dtype: DType,
        /// Elements of out before the indexed dimension.
        before: u32,
        /// Extent of the indexed dimension of out.
        extent: u32,
        /// Elements of out after it.
        after: u32,
        /// Number of indices.
        count: u32,
        /// Whether the value is one element for all indices.
        scalar_value: bool,
    },
    /// A factorisation, a triangular system or a recurrence of each page, laid out as `LinearOp` says: operands
    /// `[a, out]`, or `[a, b, out]` if the op reads two arrays, and `scratch`.
    Linear {
        /// The factorisation, or the kind of system.
        op: LinearOp,
        /// f32 or f64.
        dtype: DType,
        /// Rows of a page of `a`.
        m: u32,
        /// Columns of a page of `a`.
        n: u32,
        /// Columns of a page of the output.
        columns: u32,
        /// Pages.
        batch: u32,
        /// Elements from one page of `a` to the next; 0 if all pages share it.
        stride_a: u32,
    },
    /// Fourier transforms of lines along a dimension, operands `[x, out]`, or `[re, im, out]` if real and imaginary
    /// parts are separate arguments, and `scratch` of the same dtype if lines take several passes. Element `(a, i, b)`
    /// lies at `a + before * (i + extent * b)`, where `extent` is `given` for the argument. In a buffer with both
    /// parts, all real parts come before all imaginary parts.
    Fourier {
        /// f32 or f64.
        dtype: DType,
        /// Elements between neighbours of a line.
        before: u32,
        /// Elements that the argument has along the dimension.
        given: u32,
        /// Lines beyond `before`.
        after: u32,
        /// The transform. Kernels ignore its `dim`; `before` says which dimension is meant.
        fourier: Fourier,
    },
}

impl Library {
    /// The op that names this library kernel in the table of facts.
    pub fn op(&self) -> LibraryOp {
        match *self {
            Library::MatMul { .. } => LibraryOp::MatMul,
            Library::ArgSort { .. } => LibraryOp::ArgSort,
            Library::AssignIndex { .. } => LibraryOp::AssignIndex,
            Library::Linear { op, .. } => LibraryOp::Linear(op),
            Library::Fourier { .. } => LibraryOp::Fourier,
        }
    }

    /// How many elements the kernel writes, of an output that has `elements`.
    pub fn elements_written(&self, elements: u64) -> u64 {
        match *self {
            Library::AssignIndex { before, after, count, .. } => before as u64 * after as u64 * count as u64,
            Library::MatMul { .. } | Library::ArgSort { .. } | Library::Linear { .. } | Library::Fourier { .. } => {
                elements
            }
        }
    }

    /// The name for labels and `explain()`.
    pub fn name(&self) -> &'static str {
        self.op().facts().name
    }

    /// The dtype of the scratch's elements.
    pub fn scratch_dtype(&self) -> DType {
        match *self {
            // The scratch of `Lu` holds row numbers.
            Library::Linear { op: LinearOp::Lu, .. } => DType::U32,
            Library::Linear { dtype, .. } => dtype,
            Library::MatMul { dtype, .. } | Library::Fourier { dtype, .. } => dtype,
            Library::ArgSort { .. } | Library::AssignIndex { .. } => DType::U32,
        }
    }
}

/// One dispatch of a library kernel on a GPU.
#[cfg(feature = "gpu")]
#[derive(Clone, Debug)]
pub struct Pass {
    /// Identifies the WGSL text: equal keys have equal text.
    pub key: String,
    /// The module; its entry point is `main`, its parameters are binding 0 (`array<u32>`, read), operand
    /// bindings follow from 1 in order of `operands`, then fault words if `faults`.
    pub wgsl: String,
    /// Parameter words.
    pub params: Vec<u32>,
    /// The numbers of the launch's operands that are bound.
    pub operands: Vec<u16>,
    /// Whether fault words are bound, after the operands.
    pub faults: bool,
    /// Workgroups.
    pub grid: [u32; 3],
}

/// The passes of a library kernel on a GPU. Operand `n` has `segments[n]` segments of `1 << segment_shift` elements.
/// Parameter word 0 of a pass with `faults` is its fault word's number: `passes` leaves 0, the device puts `params[0]`
/// of the launch there.
///
/// # Errors
/// `ErrorKind::Unsupported` for sizes and segments that the kernel does not cover.
#[cfg(feature = "gpu")]
pub fn passes(library: &Library, segments: &[u8], segment_shift: u32) -> Result<Vec<Pass>, Error> {
    match library {
        Library::MatMul { .. } => matmul::gpu::passes(library, segments, segment_shift),
        Library::ArgSort { .. } => sort::gpu::passes(library, segments, segment_shift),
        Library::AssignIndex { .. } => scatter::gpu::passes(library, segments, segment_shift),
        Library::Linear { .. } => linear::gpu::passes(library, segments, segment_shift),
        Library::Fourier { .. } => fft::gpu::passes(library, segments, segment_shift),
    }
}
