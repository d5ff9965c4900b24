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
pub mod residency;
pub mod ring;
pub mod scheduler;
pub mod stats;
pub mod timeline;
