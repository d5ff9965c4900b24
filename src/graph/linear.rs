//! Factorisations of matrices and the steps that use them: what each is, and how its value is laid out.
//!
//! In: an op of linear algebra and the extents of its matrix. Out: the extents of its value, the scratch of its GPU
//! side, whether a GPU runs it at all, and up to how many rows. An op works page by page: the first two dimensions are a matrix, all further
//! ones count pages. A node has one value, so what a factorisation yields lies in one array, from which the program's
//! methods (`array/linear/`) read their parts by views: nothing is computed twice.
//! Must hold: LINEAR-1: a function of these numbers alone, so that the scheduler and the kernels agree.

use crate::dtype::DType;

/// Columns that a GPU factors at a time by one workgroup where it searches pivots or makes reflections.
pub const PANEL: u32 = 32;
/// Rows of a matrix that a GPU takes reflections from: what applies them takes two turns of its loops for each 32 rows,
/// and Mesa's software device ends loops silently after 65,535 (`kernels/linear/gpu`).
pub const REFLECTED_ROWS_MAX: usize = 960_000;
/// Rows of a matrix that a GPU eliminates: a column takes two turns for each 1,024 rows, and the same limit holds.
pub const ELIMINATED_ROWS_MAX: usize = 30_000_000;

/// A factorisation, or the solution of a triangular system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinearOp {
    /// The lower factor of a positive definite matrix `[n, n]`, of which it reads the lower triangle: `[n, n]`, zeros
    /// above the diagonal.
    Cholesky,
    /// Factors by rows exchanged, of a matrix `[m, n]`: `[m, n + 2]`. The first `n` columns hold the lower factor, whose
    /// unit diagonal is left out, and the upper one. The next column holds for each row the row of the matrix that
    /// stands there, the last one a 1, or -1 for a step that exchanged two rows.
    Lu,
    /// The solution of `[n, n]` times `x` is `[n, p]`. The matrix may have more columns, which are not read, and one
    /// page for all.
    SolveTriangular(Triangle),
    /// An orthogonal and an upper factor of a matrix `[m, n]`: `[m, q + n]`. The first `q` columns are the orthogonal
    /// one; the first `q` rows of the others are the upper one, and the rows below them zero.
    Qr {
        /// `q` is `m`; else the smaller of `m` and `n`.
        full: bool,
    },
    /// The eigenvalues of a symmetric matrix `[n, n]`, of which it reads the lower triangle, ascending: the first
    /// column. Further columns are the eigenvectors.
    Eigh {
        /// Whether there are further columns.
        vectors: bool,
    },
    /// The eigenvalues and eigenvectors of a matrix `[n, n]`: `[n, 2 n + 2]`, the real and the imaginary parts of the
    /// values, then the real parts of the vectors, then their imaginary parts.
    Eig,
    /// The singular values of a matrix `[m, n]`, descending: a column of `k`, the smaller extent. The left vectors
    /// `[m, k]` and the right ones `[n, k]` follow in the same column.
    Svd {
        /// Whether the vectors follow.
        vectors: bool,
    },
}

/// Which triangle of a matrix is meant, and how it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Triangle {
    /// The upper triangle, else the lower one.
    pub upper: bool,
    /// The system is that of the transposed triangle.
    pub transpose: bool,
    /// The diagonal is taken for ones, and not read.
    pub unit: bool,
}

impl Triangle {
    /// The lower triangle.
    pub const LOWER: Triangle = Triangle { upper: false, transpose: false, unit: false };
    /// The upper triangle.
    pub const UPPER: Triangle = Triangle { upper: true, transpose: false, unit: false };

    /// The same triangle of the same matrix, whose transpose is meant.
    pub const fn transposed(self) -> Triangle {
        Triangle { transpose: !self.transpose, ..self }
    }

    /// The same triangle, whose diagonal is not read, but taken for ones.
    pub const fn with_unit_diagonal(self) -> Triangle {
        Triangle { unit: true, ..self }
    }

    /// Whether the first unknown is known first.
    pub fn is_forward(self) -> bool {
        self.upper == self.transpose
    }
}

impl LinearOp {
    /// Extents of the value's pages, for pages of `[m, n]`. `columns` are those of the right sides.
    pub fn extents(self, m: usize, n: usize, columns: usize) -> (usize, usize) {
        let k = m.min(n);
        match self {
            LinearOp::Cholesky => (n, n),
            LinearOp::Lu => (m, n + 2),
            LinearOp::SolveTriangular(_) => (m, columns),
            LinearOp::Qr { full } => (m, n + if full { m } else { k }),
            LinearOp::Eigh { vectors } => (n, if vectors { n + 1 } else { 1 }),
            LinearOp::Eig => (n, 2 * n + 2),
            LinearOp::Svd { vectors } => (if vectors { k + m * k + n * k } else { k }, 1),
        }
    }

    /// Elements of a page for which `Cost::Elimination` counts, for pages of `[m, n]`: those of the right sides, of which a
    /// system has `columns`, else those of the matrix.
    pub fn cost_elements(self, m: usize, n: usize, columns: usize) -> usize {
        match self {
            LinearOp::SolveTriangular(_) => m * columns,
            LinearOp::Cholesky | LinearOp::Lu | LinearOp::Qr { .. } => m * n,
            LinearOp::Eigh { .. } | LinearOp::Eig | LinearOp::Svd { .. } => m * n,
        }
    }

    /// 32-bit words that a GPU needs beside the value, for so many pages of `[m, n]`: where the rows of a panel went,
    /// or the triangular factors of its reflections.
    pub fn scratch_words(self, dtype: DType, m: u64, n: u64, pages: u64) -> u64 {
        let words = if dtype.is_wide() { 2 } else { 1 };
        match self {
            LinearOp::Lu => m.min(n) * pages,
            LinearOp::Qr { .. } => m.min(n) * PANEL as u64 * pages * words,
            LinearOp::Cholesky | LinearOp::SolveTriangular(_) => 0,
            LinearOp::Eigh { .. } | LinearOp::Eig | LinearOp::Svd { .. } => 0,
        }
    }

    /// Rows of a page that the kernels of a GPU take.
    pub fn gpu_rows_max(self) -> usize {
        match self {
            LinearOp::Qr { .. } => REFLECTED_ROWS_MAX,
            LinearOp::Lu => ELIMINATED_ROWS_MAX,
            LinearOp::Cholesky | LinearOp::SolveTriangular(_) => usize::MAX,
            LinearOp::Eigh { .. } | LinearOp::Eig | LinearOp::Svd { .. } => usize::MAX,
        }
    }

    /// Whether its value holds vectors that belong to eigenvalues or singular values.
    pub fn has_vectors(self) -> bool {
        match self {
            LinearOp::Eigh { vectors } | LinearOp::Svd { vectors } => vectors,
            LinearOp::Eig => true,
            LinearOp::Cholesky | LinearOp::Lu | LinearOp::SolveTriangular(_) | LinearOp::Qr { .. } => false,
        }
    }

    /// Why no GPU runs it.
    pub fn refusal(self) -> Option<&'static str> {
        match self {
            LinearOp::Eigh { .. } | LinearOp::Eig => Some("eigenvalues are computed on the host"),
            LinearOp::Svd { .. } => Some("singular values are computed on the host"),
            LinearOp::Cholesky | LinearOp::Lu | LinearOp::SolveTriangular(_) | LinearOp::Qr { .. } => None,
        }
    }
}
