//! Items of this crate that this project's tests, benchmarks and measuring programs call and users do not. The feature
//! `testing`, which is off by default, compiles this module. The module **is no part of the stable API**.
//!
//! In: faults and holds ([`Injection`], [`Hold`]; [`RuntimeBuilder::injection`](crate::RuntimeBuilder::injection)). Out:
//! [`kernels`], to be evaluated on the host without a runtime, and the claims on the host's memory ([`host_claims`]).
//! Beside these, how long a test may take ([`rounds`]).

pub use crate::injection::{Hold, Injection};
pub use crate::rounds::rounds;

use crate::frontend::HostClaims;
use std::sync::Arc;

/// The table of elementwise ops, kernels, and their evaluation on the host.
pub mod kernels {
    pub use crate::graph::ElementOp;
    pub use crate::graph::table::DTypeRule;
    pub use crate::host_buffer::HostBuffer;
    pub use crate::kernels::element::host::{HostArg, apply, apply_scalar};
    pub use crate::kernels::eval::{HostOperand, Pool, run};
    pub use crate::kernels::ir;
    pub use crate::stats::Counters;
}

/// Claims of front ends on a host budget of this many bytes, without a runtime.
pub fn host_claims(bytes_max: u64) -> Arc<HostClaims> {
    Arc::new(HostClaims::new(bytes_max))
}
