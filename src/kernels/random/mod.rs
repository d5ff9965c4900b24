//! Philox-4x32-10 and the distributions, on the host and as WGSL.
