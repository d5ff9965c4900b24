//! Hand-built kernels of each form on the adapter at hand.

mod across;
mod map;
mod reduce;
mod scan;
mod text;
