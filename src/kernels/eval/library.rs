//! Runs library kernels on the host, by the functions of their folders.

use super::{HostOperand, Pool};
use crate::error::Result;
use crate::kernels::library::Library;
use crate::kernels::{fft, linear, matmul, scatter, sort};
use crate::stats::Counters;
use std::sync::atomic::AtomicU32;

/// Runs a library kernel on the host. Operands stand in the library's order (a trailing scratch operand may be absent);
/// `site` is the number of the fault word that is set if an index is outside of its extent.
///
/// # Errors
/// `ErrorKind::OutOfMemory` if there is no temporary memory for a permutation or a transform.
pub fn run_library(
    library: &Library,
    operands: &[HostOperand<'_>],
    faults: Option<&[AtomicU32]>,
    site: usize,
    pool: &Pool,
    counters: &Counters,
) -> Result<()> {
    match *library {
        Library::MatMul { .. } => matmul::host::run(library, operands, pool),
        Library::ArgSort { .. } => sort::host::run(library, operands, pool)?,
        Library::AssignIndex { .. } => scatter::host::run(library, operands, faults, site),
        Library::Linear { .. } => linear::host::run(library, operands, faults, site, pool)?,
        Library::Fourier { .. } => fft::host::run(library, operands, pool)?,
    }
    Counters::add(&counters.host_kernels, 1);
    Ok(())
}
