//! The messages of the actors: events, which are facts in the past tense, and instructions, which are imperatives.
//!
//! One file for each actor. `crate::ring::machines` carries what scheduler, fusion and residency say to each other;
//! `crate::ring::run` and `crate::ring::devices` tell the devices.

pub mod device;
pub mod fusion;
pub mod residency;
pub mod scheduler;
