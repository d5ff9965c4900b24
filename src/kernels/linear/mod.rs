//! Linear algebra: factorisations, triangular systems and recurrences, page by page. `graph/linear.rs` says how values are laid out.
//!
//! In: matrices. Out: their factors, solutions, values and vectors. The fault word is set by a pivot of Cholesky's
//! algorithm that is not positive and finite, and by a zero on the diagonal of a triangular system. Otherwise
//! infinities and NaN spread by arithmetic, with two exceptions: on the host, all of a `Qr` is NaN then; and values and
//! vectors (`Eigh`, `Eig`, `Svd`) of a matrix that is not finite are NaN, as are those that an iteration does not find.
//! Must hold: LINALG-1: how a matrix is divided depends on its extents and dtype alone, and so do the bits. On the host
//! they also depend on the number of threads.

#[cfg(feature = "gpu")]
pub mod gpu;
pub mod host;
