//! Factorisations of matrices and the steps that use them: what each one computes, and how its value is laid out.
//!
//! In: an op of linear algebra and the extents of its matrix. Out: the extents of its value, the scratch memory of its
//! GPU kernels, whether a GPU runs it, and up to how many rows. An op works page by page: the first two dimensions are
//! a matrix, all further dimensions count pages. A node has one value, so all results of a factorisation lie in one
//! array. The program's methods (`array/linear/`) read their parts of it by views, so that nothing is computed twice.
//! Must hold: LINEAR-1: the results depend on these numbers alone, so that the scheduler and the kernels agree.

use crate::dtype::DType;

/// Columns that one workgroup of a GPU factors at a time if it searches pivots or makes reflections.
pub const PANEL: u32 = 32;
/// Most rows of a matrix that a GPU factors by reflections. The kernel that applies the reflections runs two turns of
/// its loops for each 32 rows, and Mesa's software device ends loops silently after 65,535 turns
/// (`kernels/linear/gpu`).
pub const REFLECTED_ROWS_MAX: usize = 960_000;
/// Most rows of a matrix that a GPU eliminates. A column takes two turns for each 1,024 rows, and the same limit holds.
pub const ELIMINATED_ROWS_MAX: usize = 30_000_000;
/// Most coefficients of a recurrence that a GPU computes. An invocation holds them, and as many elements, in registers.
pub const RECURRENCE_ORDER_MAX: u16 = 16;
/// The most elements of a line, for each line of an array, with which a GPU computes recurrences. One invocation
/// computes a line, and each element waits for the one before it. The number is an estimate from the latency of a few
/// operations, some 30 ns on a GPU and 2 ns on a thread of the host; it has not been measured.
pub const RECURRENCE_ROWS_PER_LINE: usize = 4096;

/// A factorisation, or the solution of a triangular system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinearOp {
    /// The lower factor of a positive definite matrix `[n, n]`, of which only the lower triangle is read. The value is
    /// `[n, n]` with zeros above the diagonal.
    Cholesky,
    /// The factors of a matrix `[m, n]` with exchanged rows. The value is `[m, n + 2]`. The first `n` columns hold the
    /// lower factor, without its unit diagonal, and the upper factor. In each row, the next column holds the number of
    /// the matrix's row that was moved there. The last column holds 1 for each step, or -1 for a step that exchanged
    /// two rows.
    Lu,
    /// The solution `x` of the matrix `[n, n]` times `x` equals `[n, p]`. The matrix may have more columns, which are
    /// not read, and may be one page for all pages of the right sides.
    SolveTriangular(Triangle),
    /// An orthogonal and an upper factor of a matrix `[m, n]`. The value is `[m, q + n]`. The first `q` columns are the
    /// orthogonal factor. The first `q` rows of the other columns are the upper factor; the rows below them are zero.
    Qr {
        /// If true, `q` is `m`; else the smaller of `m` and `n`.
        full: bool,
    },
    /// The same factors, for columns in an order that puts the column with the greatest rest first, in each step. The
    /// value is one column: the orthogonal factor `[m, k]`, the upper factor `[k, n]`, where `k` is the smaller extent,
    /// and for each column of their product the number of the matrix's column that was moved there.
    QrPivoted,
    /// The solution `y` of a recurrence: `y[i] = w[i] - sum_k a[k] y[i - 1 - k]`, where `y` is zero before its first
    /// element. Each page is a line `w`, `[n, 1]`. The second argument, `[order, 1]`, holds `a` for all lines.
    Recurrence {
        /// The number of coefficients.
        order: u16,
    },
    /// The eigenvalues of a symmetric matrix `[n, n]`, of which only the lower triangle is read. The first column of
    /// the value holds them in ascending order. Further columns are the eigenvectors.
    Eigh {
        /// Whether the value has these further columns.
        vectors: bool,
    },
    /// The eigenvalues and eigenvectors of a matrix `[n, n]`. The value is `[n, 2 n + 2]`: the real and the imaginary
    /// parts of the eigenvalues, then the real parts of the vectors, then their imaginary parts.
    Eig,
    /// The singular values of a matrix `[m, n]`. The value is one column. It begins with the `k` singular values in
    /// descending order, where `k` is the smaller extent. The left vectors `[m, k]` and the right vectors `[n, k]`
    /// follow.
    Svd {
        /// Whether the vectors follow.
        vectors: bool,
    },
}

/// Which triangle of a matrix an op reads, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Triangle {
    /// The upper triangle, else the lower one.
    pub upper: bool,
    /// The system is that of the transposed triangle.
    pub transpose: bool,
    /// The diagonal counts as ones and is not read.
    pub unit: bool,
}

impl Triangle {
    /// The lower triangle.
    pub const LOWER: Triangle = Triangle { upper: false, transpose: false, unit: false };
    /// The upper triangle.
    pub const UPPER: Triangle = Triangle { upper: true, transpose: false, unit: false };

    /// The same triangle of the same matrix, transposed.
    pub const fn transposed(self) -> Triangle {
        Triangle { transpose: !self.transpose, ..self }
    }

    /// The same triangle with a diagonal that counts as ones and is not read.
    pub const fn with_unit_diagonal(self) -> Triangle {
        Triangle { unit: true, ..self }
    }

    /// Whether the system is solved from the first unknown on.
    pub fn is_forward(self) -> bool {
        self.upper == self.transpose
    }
}

impl LinearOp {
    /// Extents of the value's pages, for pages of `[m, n]`. `columns` is the number of columns of the right sides.
    pub fn extents(self, m: usize, n: usize, columns: usize) -> (usize, usize) {
        let k = m.min(n);
        match self {
            LinearOp::Cholesky => (n, n),
            LinearOp::Lu => (m, n + 2),
            LinearOp::SolveTriangular(_) => (m, columns),
            LinearOp::Recurrence { .. } => (m, n),
            LinearOp::Qr { full } => (m, n + if full { m } else { k }),
            LinearOp::QrPivoted => (m * k + k * n + n, 1),
            LinearOp::Eigh { vectors } => (n, if vectors { n + 1 } else { 1 }),
            LinearOp::Eig => (n, 2 * n + 2),
            LinearOp::Svd { vectors } => (if vectors { k + m * k + n * k } else { k }, 1),
        }
    }

    /// Elements of a page that count for `Cost::Elimination`, for pages of `[m, n]`: those of a triangular system's
    /// right sides, which have `columns` columns; the terms of a recurrence; or else those of the matrix.
    pub fn cost_elements(self, m: usize, n: usize, columns: usize) -> usize {
        match self {
            LinearOp::SolveTriangular(_) => m * columns,
            LinearOp::Recurrence { order } => m * n * usize::from(order),
            LinearOp::Cholesky | LinearOp::Lu | LinearOp::Qr { .. } | LinearOp::QrPivoted => m * n,
            LinearOp::Eigh { .. } | LinearOp::Eig | LinearOp::Svd { .. } => m * n,
        }
    }

    /// 32-bit words of scratch memory that a GPU needs for this many pages of `[m, n]`: the new places of a panel's
    /// rows, or the triangular factors of its reflections.
    pub fn scratch_words(self, dtype: DType, m: u64, n: u64, pages: u64) -> u64 {
        let words = if dtype.is_wide() { 2 } else { 1 };
        match self {
            LinearOp::Lu => m.min(n) * pages,
            LinearOp::Qr { .. } => m.min(n) * PANEL as u64 * pages * words,
            LinearOp::Cholesky | LinearOp::SolveTriangular(_) | LinearOp::Recurrence { .. } => 0,
            LinearOp::QrPivoted => 0,
            LinearOp::Eigh { .. } | LinearOp::Eig | LinearOp::Svd { .. } => 0,
        }
    }

    /// The most rows of a page that the kernels of a GPU accept.
    pub fn gpu_rows_max(self) -> usize {
        match self {
            LinearOp::Qr { .. } => REFLECTED_ROWS_MAX,
            LinearOp::Lu => ELIMINATED_ROWS_MAX,
            LinearOp::Cholesky | LinearOp::SolveTriangular(_) | LinearOp::Recurrence { .. } => usize::MAX,
            LinearOp::QrPivoted => usize::MAX,
            LinearOp::Eigh { .. } | LinearOp::Eig | LinearOp::Svd { .. } => usize::MAX,
        }
    }

    /// Whether so few lines of a recurrence are so long that a GPU would take longer than the host.
    pub fn has_few_long_lines(self, rows: usize, lines: usize) -> bool {
        matches!(self, LinearOp::Recurrence { .. }) && rows / RECURRENCE_ROWS_PER_LINE > lines
    }

    /// The number of arrays that the op reads.
    pub fn arguments(self) -> usize {
        match self {
            LinearOp::SolveTriangular(_) | LinearOp::Recurrence { .. } => 2,
            LinearOp::Cholesky | LinearOp::Lu | LinearOp::Qr { .. } | LinearOp::QrPivoted => 1,
            LinearOp::Eigh { .. } | LinearOp::Eig | LinearOp::Svd { .. } => 1,
        }
    }

    /// Whether the op's value holds vectors that belong to eigenvalues or singular values.
    pub fn has_vectors(self) -> bool {
        match self {
            LinearOp::Eigh { vectors } | LinearOp::Svd { vectors } => vectors,
            LinearOp::Eig => true,
            LinearOp::Cholesky | LinearOp::Lu | LinearOp::SolveTriangular(_) | LinearOp::Qr { .. } => false,
            LinearOp::Recurrence { .. } | LinearOp::QrPivoted => false,
        }
    }

    /// The reason why no GPU runs the op; `None` if GPUs run it.
    pub fn refusal(self) -> Option<&'static str> {
        match self {
            LinearOp::Eigh { .. } | LinearOp::Eig => Some("eigenvalues are computed on the host"),
            LinearOp::Svd { .. } => Some("singular values are computed on the host"),
            LinearOp::QrPivoted => Some("columns are exchanged on the host"),
            LinearOp::Recurrence { order } if order > RECURRENCE_ORDER_MAX => {
                Some("recurrences of more than 16 coefficients are computed on the host")
            }
            LinearOp::Cholesky | LinearOp::Lu | LinearOp::SolveTriangular(_) | LinearOp::Qr { .. } => None,
            LinearOp::Recurrence { .. } => None,
        }
    }
}
