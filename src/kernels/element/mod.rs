//! Elementwise ops made runnable: the op table's semantic functions as host loops and as WGSL.
//!
//! In: an op, dtypes and arguments. Out: computed blocks ([`host`]) or shader text ([`wgsl`]). What an op means
//! stands in `graph::semantics`, and beside numbers of another class in `graph::mixed` and `graph::wide`; here is how it is run.

pub(crate) mod chain;
pub mod host;
mod host_cast;
mod loops;
#[cfg(feature = "gpu")]
pub(crate) mod trace;
#[cfg(feature = "gpu")]
mod trace_number;
#[cfg(feature = "gpu")]
pub mod wgsl;
#[cfg(feature = "gpu")]
mod wgsl_cast;

#[cfg(all(test, feature = "gpu"))]
pub(crate) mod gpu_harness;
#[cfg(test)]
mod tests;
#[cfg(all(test, feature = "gpu"))]
mod tests_gpu;
