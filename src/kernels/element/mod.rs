//! Elementwise ops made runnable: the op table's semantic functions as host loops and as WGSL.
//!
//! In: an op, dtypes and arguments. Out: computed blocks ([`host`]) or shader text ([`wgsl`]). What an op means
//! stands in `graph::semantics`, and beside numbers of another class in [`mixed`] and [`wide`]; here is how it is run.

pub mod host;
mod host_cast;
mod loops;
pub mod mixed;
pub(crate) mod trace;
mod trace_number;
pub mod wgsl;
mod wgsl_cast;
pub mod wide;

#[cfg(all(test, feature = "gpu"))]
pub(crate) mod gpu_harness;
#[cfg(test)]
mod tests;
#[cfg(all(test, feature = "gpu"))]
mod tests_gpu;
