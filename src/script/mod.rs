//! MATLAB-syntax scripts on the runtime: a client of the public API, like any other.
//!
//! A text becomes a tree ([`syntax`]), the tree code ([`compile`]), and the machine ([`vm`]) runs it on values
//! ([`value`]): scalars and small arrays in the script's own memory, at once; big arrays recorded on the runtime, so
//! that a loop of array statements becomes a few kernels.
//!
//! Invariants:
//! - SCRIPT-1: the machine never blocks a thread. What it must wait for leaves the instruction as a
//!   [`Need`](error::Need); the future of the run awaits it, and the instruction runs again.
//! - SCRIPT-2: an instruction or builtin changes and prints nothing before its last possible `Need`.
//! - SCRIPT-3: one script's fault is its own [`ScriptError`](error::ScriptError); nothing here panics on any text.

pub mod builtins;
pub mod compile;
pub mod display;
pub mod env;
pub mod error;
pub mod index;
pub mod ops;
pub mod output;
pub mod source;
pub mod syntax;
pub mod value;
pub mod vm;
