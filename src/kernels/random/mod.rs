//! Philox-4x32-10 and the distributions, on the host and as WGSL.
//!
//! In: a stream's key and element numbers. Out: random elements. Must hold: integers and uniforms have the same
//! bits on every device; normals agree within the devices' float profiles.

mod host;
mod philox;
mod shader;

pub use host::{at, fill};
pub use philox::philox4x32_10;
pub use shader::{supports, wgsl};
