//! Tidemill: an asynchronous GPU array runtime.

pub mod array;
pub mod config;
pub mod device;
pub mod error;
pub mod fusion;
pub mod graph;
pub mod host_buffer;
pub mod ids;
pub mod kernels;
pub mod mail;
pub mod residency;
pub mod ring;
pub mod scheduler;
pub mod stats;
pub mod timeline;

pub use array::{
    Array, ArrayState, DEVICE_VARIABLE, Dims, Eval, Explain, Gather, GatherAll, GatherAny, GatherInto, GatherView,
    HostAny, HostArray, IntoDevice, IntoShape, Item, MappedView, Operand, Runtime, RuntimeBuilder, Session,
    SessionBuilder, SliceArg, Slices, UploadWriter, cat, gather_all, select, step,
};
pub use config::DeviceChoice;
pub use device::info::Precision;
pub use error::{Error, ErrorKind, Result};
pub use graph::{DType, Element, Nan, ReduceOp, Scalar, ScanOp, Shape};
pub use stats::Stats;
