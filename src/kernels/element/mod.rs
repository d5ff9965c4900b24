//! Runs elementwise ops: turns the semantic functions of the op table into host loops and into WGSL.
//!
//! In: an op, dtypes and arguments. Out: computed blocks ([`host`]) or shader text ([`wgsl`]). The meaning of ops
//! stands in `graph::semantics`; of ops with a number of another class, in `graph::mixed` and `graph::wide`.

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
