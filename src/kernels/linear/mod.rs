//! Linear algebra: factorisations and triangular systems, page by page. `graph/linear.rs` says how values are laid out.
//!
//! In: matrices. Out: their factors, solutions, values and vectors. A pivot that is no positive, finite number
//! (Cholesky), and a zero on the diagonal of a triangular system, set the fault word. Elsewhere, what is not finite
//! spreads by arithmetic, but on the host all of a `Qr` is NaN then; values and vectors (`Eigh`, `Eig`, `Svd`) of a
//! matrix that is not finite, and those that an iteration does not find, are NaN.
//! Must hold: LINALG-1: how a matrix is divided depends on its extents and dtype alone, so that bits do, too. On the
//! host they depend on the number of threads besides.

#[cfg(feature = "gpu")]
pub mod gpu;
pub mod host;
