//! The types that the user holds: [`Runtime`], [`Session`], [`Array`], [`Gather`].
//!
//! In: calls of the user's program, from any thread and under any executor. Out: segments of tapes, demands and
//! cancels to the scheduler. Must never touch a device.
//!
//! Invariants: TAPE-1 to TAPE-6 (`tape`), PLAIN-1 (`plain`), RECORD-1 to RECORD-5 (`record`), HANDLE-1 and HANDLE-2
//! (`handle`), GATHER-1 to GATHER-3 (`pending`), FOLD-1 (`fold`), WIDE-1 (`wide`),
//! HOSTARRAY-1 (`host_array`), WATCH-1 to WATCH-3, PULL-1 to PULL-3 and PUSH-1 (`watch`).
//!
//! How to read: begin with `runtime` and `session`. Every op goes through `record` to the `tape`. `gather` and
//! `pending` return values.

mod complex;
mod convolve;
mod create;
mod dims;
mod elementwise;
mod ensure;
mod factorials;
mod filter;
mod fold;
mod fold_reduce;
mod gather;
mod handle;
mod host_array;
mod index;
mod interpolate;
mod layout;
mod linear;
mod link;
#[cfg(feature = "ndarray")]
mod neighbours;
mod operand;
mod operators;
mod pending;
mod pin;
mod plain;
mod random;
mod random_key;
mod record;
mod recorder;
mod reduce;
mod room;
mod runs;
mod runtime;
mod scatter;
mod session;
mod statistics;
mod strict;
mod structure;
mod tape;
mod upload;
mod watch;
mod wide;
mod wide_unknown;
mod windows;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;

pub use complex::{ComplexArray, ComplexOperand, GatherComplex, Part};
pub use convolve::{Convolution, Extent, Padding};
pub use dims::{Dims, IntoShape, SliceArg, Slices, step};
pub use elementwise::select;
pub use gather::{Eval, Explain, Gather, GatherAll, GatherAny, GatherInto, GatherView, Item, gather_all};
pub use handle::{Array, ArrayState};
pub use host_array::{HostAny, HostArray, MappedView};
pub use interpolate::{Extrapolation, Interpolation};
pub use linear::{MatrixNorm, einsum};
pub use operand::Operand;
pub(crate) use pending::may_block;
pub use random_key::RandomState;
pub use runtime::{DEVICE_VARIABLE, IntoDevice, Runtime, RuntimeBuilder};
pub use session::{Session, SessionBuilder};
pub use statistics::{Unique, meshgrid};
pub use structure::cat;
pub use upload::UploadWriter;
pub use watch::{Watch, Watchable};
