//! The printed form of the kernel IR.
