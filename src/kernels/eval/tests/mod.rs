//! Tests of the host evaluator: every form against loops over scalars.

mod build;
mod maps;
mod naive;
mod peeled;
mod reductions;
mod scans;
