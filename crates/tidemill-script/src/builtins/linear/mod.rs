//! Linear algebra on matrices of the host: factorisations, inverses, eigenvalues, singular values, products.

pub mod eigen;
pub mod factors;
pub mod power_norm;
mod products;
pub mod singular;
