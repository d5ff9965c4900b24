//! The messages of the actors. An `…Event` is a fact that an actor is told, in the past tense. An `…Instruction` is an
//! imperative. An `…Output` is what an actor says to others, one after the other: instructions and facts.
//!
//! One file for each actor. `crate::ring::machines` carries what scheduler, fusion and residency say to each other;
//! `crate::ring::run` and `crate::ring::devices` tell the devices.

pub mod device;
pub mod fusion;
pub mod residency;
pub mod scheduler;
