//! Runs hand-built kernels of each form on the default adapter.

mod across;
mod map;
mod reduce;
mod scan;
mod text;
