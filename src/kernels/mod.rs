//! Kernels as data: the IR, its verifier and printed form, its WGSL writer and its host evaluator, and a
//! folder for each family of library kernels.
//!
//! In: kernels, as fusion writes them. Out: WGSL for a GPU, or elements on the host. Must never know about sessions,
//! regions or plans.

mod cost;
pub mod element;
pub mod eval;
pub mod fft;
pub mod ir;
mod launch;
pub mod library;
pub mod linear;
pub mod matmul;
pub mod print;
pub mod random;
mod recent;
mod rolled;
pub mod scatter;
pub mod scratch;
pub mod sort;
pub mod target;
#[cfg(all(test, feature = "gpu"))]
pub(crate) mod test_device;
pub mod verify;
#[cfg(feature = "gpu")]
pub mod wgsl;
