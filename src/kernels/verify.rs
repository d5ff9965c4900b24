//! The verifier of the kernel IR.
