//! Tidemill: an asynchronous GPU array runtime.
//!
//! A program opens a [`Runtime`] and a [`Session`] on it, and writes array code. Operations on an [`Array`] return at
//! once: they record. A [`Gather`] is a future of host data; when it is first polled, the ops that it needs are cut
//! from the tape, placed on a device, fused into a few generated kernels and run.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let rt = tidemill::Runtime::builder().start().await?;
//! let s = rt.session("sums").open();
//! let x = s.linspace(0.0f64, 1.0, 1001);
//! let y = (&x * 2.0 - 1.0).square();
//! let (mean, ends) = tokio::try_join!(y.mean(..).item::<f64>(), y.slice((.., 0..2)).gather::<f64>())?;
//! assert!((mean - 0.334).abs() < 1e-3);
//! assert_eq!(ends.as_slice()[0], 1.0);
//! rt.shutdown().await?;
//! # Ok::<(), tidemill::Error>(())
//! # }).unwrap();
//! ```
//!
//! Arrays are column-major and broadcast as in MATLAB; indices count from 0; reduced dimensions are kept. Shapes,
//! dtypes and faults are known when an op is recorded: an op on operands that don't fit yields an array that carries
//! its [`Error`]. Arrays, sessions and gathers are `Send`, and gathers work under any executor.
//!
//! # Cargo features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `gpu` | yes | a wgpu device beside the host device |
//! | `ndarray` | no | arrays from and to `ndarray` |
//! | `serde` | no | `serde` for [`HostArray`] and [`RandomState`] |
//! | `testing` | no | for this project's own tests: faults to inject, and kernels to measure; no part of the stable API |
//!
//! MATLAB-syntax scripts are the crate `tidemill-script`, the command `tidemill` is `tidemill-cli`.
//!
//! # What it can do
//!
//! | to | see |
//! |---|---|
//! | choose a device, bound memory, set limits | [`RuntimeBuilder`] |
//! | make arrays: constants, random numbers, data with a copy or without | [`Session`] |
//! | compute: elementwise, reductions, scans, slices, indexing, sorts, products | [`Array`], [`select()`], [`cat()`] |
//! | draw: distributions, orders, choices; store where it stands | [`Session::gamma`], [`Session::permutation`], [`RandomState`] |
//! | rank, count, search, combine at indices | [`Array::quantile`], [`Array::histogram`], [`Unique`], [`Array::scatter_add`] |
//! | compute with complex numbers, transform, convolve | [`ComplexArray`], [`Array::fft`], [`Array::convolve`] |
//! | filter signals, interpolate | [`Array::filter`], [`Array::interp1`], [`Array::interp2`] |
//! | await results, one or many together | [`Gather`], [`Item`], [`gather_all`] |
//! | differentiate, forwards and backwards, any number of times | [`Session::watch`], [`Watch`] |
//! | fill memory in place | [`UploadWriter`] |
//! | check data without waiting for it | [`Array::ensure`] |
//! | see what would run, and what ran | [`Explain`], [`Stats`], [`timeline`] |
//! | share devices by weight, wait for room, cancel | [`SessionBuilder::weight`], [`Session::ready`], dropping a future |
//! | build an interpreter or a language on it | [`frontend`] |
//! | refuse mixed dtypes that lose digits | [`Promotion`] |
//!
//! `docs/service.md` embeds it in a server, `docs/limits.md` says what it does not do.
//!
//! # Reading order
//!
//! For users: [`Runtime::builder`], [`Session`], [`Array`], [`Gather`], [`Error`], then [`Stats`] and [`timeline`]; for
//! front ends, [`frontend`].
//!
//! For contributors, after `ARCHITECTURE.md` and in its order, in `src/`: `array` (how an op is recorded), `graph`
//! (what an op is), `scheduler` (which ops run, and where), `fusion` (which kernels compute them), `residency` (which
//! memory holds their values), `kernels` (what a kernel is), `device` (the backends that run kernels), [`timeline`]
//! (the trace of all this), `ring` (the thread that carries messages between them). These modules are private: the
//! stable API is what is listed below.

mod array;
mod bulk;
mod claims;
mod config;
mod contract;
mod device;
#[cfg(test)]
mod dice;
mod dtype;
mod dump;
mod eager;
mod error;
mod fair;
pub mod frontend;
mod fusion;
mod grants;
mod graph;
mod host_buffer;
mod ids;
mod injection;
mod kernels;
mod leaving;
mod mail;
mod residency;
mod ring;
#[cfg(any(test, feature = "testing"))]
mod rounds;
mod scheduler;
mod shelf;
mod stats;
#[cfg(feature = "testing")]
pub mod testing;
mod threads;
pub mod timeline;

pub use array::{
    Array, ArrayState, ComplexArray, ComplexOperand, Convolution, DEVICE_VARIABLE, Dims, Eval, Explain, Extent,
    Extrapolation, Gather, GatherAll, GatherAny, GatherComplex, GatherInto, GatherView, HostAny, HostArray,
    Interpolation, IntoDevice, IntoShape, Item, MappedView, MatrixNorm, Operand, Padding, Part, RandomState, Runtime,
    RuntimeBuilder, Session, SessionBuilder, SliceArg, Slices, Unique, UploadWriter, Watch, Watchable, cat, einsum,
    gather_all, meshgrid, select, step,
};
pub use config::{DeviceChoice, Promotion};
pub use contract::device::{Capabilities, Costs, DeviceInfo, DeviceKind, Features};
pub use device::CACHE_VARIABLE;
#[cfg(feature = "gpu")]
pub use device::gpu::{AdapterSummary, adapters};
pub use error::{Error, ErrorKind, Result};
pub use graph::{DType, DimSet, Element, Meta, Nan, ReduceOp, Scalar, ScanOp, Shape, Triangle};
pub use ids::DeviceId;
pub use kernels::target::{FloatProfile, Precision};
pub use num_complex;
pub use stats::Stats;

// The examples of the README are compiled and run with the documentation's; those of the page on services with
// `tidemill-script`'s, which they use.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../docs/gradients.md")]
struct Gradients;
