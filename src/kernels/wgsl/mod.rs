//! The WGSL writer: turns a kernel into text, and a launch over a tile into dispatches of that text.
//!
//! In: a verified [`Kernel`] and a [`Target`]. Out: one module with the entry point `main` ([`write()`]), and the
//! header words and grids of its dispatches ([`dispatches`]).
//!
//! The ABI: bind group 0; binding 0 is `params: array<u32>` (read), or unused if the parameters are immediates. Each
//! segment of each operand follows in order (all read_write), then `faults: array<atomic<u32>>` if the kernel has fault
//! words. Workgroups have 256 invocations, or `Lines::workgroup` in form `Line`. A grid of more than 65,535 workgroups
//! has several rows of equal length, along y.
//!
//! Must hold: the text depends on the kernel and the target alone, never on a size or a scalar.
//!
//! With `TIDEMILL_DUMP=DIR` in the environment every kernel is also written to `DIR/<hash>.ir` and `.wgsl`.

mod across;
mod body;
mod dispatch;
mod forms;
#[cfg(test)]
pub(crate) mod harness;
mod line;
mod memory;
mod monoid;
pub mod pieces;
mod rolled;
mod running;
mod scan;
mod scan_part;
#[cfg(test)]
mod tests;
pub(crate) mod types;

pub use dispatch::dispatches;

use crate::error::{Error, ErrorKind};
use crate::graph::DType;
use crate::kernels::ir::Kernel;
use crate::kernels::target::{FloatProfile, Precision};
use std::hash::{Hash, Hasher};

/// What the device offers to generated text, and how accurate it has to be.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// 64-bit floats. They need `i64` too, because their bits are handled as integers.
    pub f64: bool,
    /// 64-bit integers.
    pub i64: bool,
    /// How accurate the arithmetic has to be.
    pub precision: Precision,
    /// The properties of the device's arithmetic.
    pub profile: FloatProfile,
    /// Storage buffers one kernel may bind, parameters and fault words included.
    pub bindings_max: u32,
    /// Parameter words that a dispatch may carry as immediates (push constants); 0 for none.
    pub immediate_words_max: u32,
}

impl Target {
    /// Whether a kernel's parameters are immediates, which need no copy and no load, and not words of binding 0.
    pub fn takes_immediates(&self, kernel: &Kernel) -> bool {
        // The launch of a rolled kernel has a row of parameters for each turn, so their number is not known here.
        kernel.rolled.is_none() && kernel.params <= self.immediate_words_max
    }

    /// Whether kernels may hold values of this type.
    ///
    /// # Errors
    /// `ErrorKind::Unsupported`, with the name of the feature that the device lacks.
    pub fn require(&self, dtype: DType) -> Result<(), Error> {
        let lacks = match dtype {
            DType::F64 if !self.f64 => "64-bit floats",
            DType::F64 | DType::I64 if !self.i64 => "64-bit integers",
            _ => return Ok(()),
        };
        Err(Error::new(ErrorKind::Unsupported, format!("a kernel over {dtype} needs {lacks}, which this device lacks")))
    }
}

/// Writes a kernel as a WGSL module with the entry point `main`.
///
/// # Errors
/// `ErrorKind::Unsupported` if the device lacks a type of the kernel or has too few bindings.
pub fn write(kernel: &Kernel, target: &Target) -> Result<String, Error> {
    for dtype in kernel.insts.iter().map(|inst| inst.dtype).chain(kernel.operands.iter().map(|o| o.dtype)) {
        target.require(dtype)?;
    }
    let operands: u32 = kernel.operands.iter().map(|operand| operand.segments.max(1) as u32).sum();
    let bindings = 1 + operands + kernel.faults as u32;
    if bindings > target.bindings_max {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!("a kernel needs {bindings} storage bindings, the device has {}", target.bindings_max),
        ));
    }
    let mut body = body::Body::new(kernel, target);
    let entry = forms::entry(&mut body);
    let text = format!(
        "{}{}{}{}{}{}\n@compute @workgroup_size({})\nfn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lid: u32) {{\n{}}}\n",
        body.memory.declarations(),
        entry.shared,
        body.functions.text(),
        body.memory.functions(),
        body.check_functions(),
        body.division_functions(),
        kernel.workgroup(),
        entry.statements,
    );
    dump(kernel, &text);
    Ok(text)
}

/// If `TIDEMILL_DUMP` is set, writes the text to a file named by the kernel's hash, beside its IR (`fusion/dump.rs`).
fn dump(kernel: &Kernel, text: &str) {
    if crate::dump::folder().is_some() {
        let mut hasher = rustc_hash::FxHasher::default();
        kernel.hash(&mut hasher);
        crate::dump::write(hasher.finish(), "wgsl", || text.to_owned());
    }
}
