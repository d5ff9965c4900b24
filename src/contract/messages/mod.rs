//! What each actor is told (events: facts, in the past tense) and what it tells others (instructions: imperatives).
//!
//! One file for each actor. `crate::ring::machines` carries what scheduler, fusion and residency say to each other;
//! `crate::ring::run` and `crate::ring::devices` tell the devices.

pub mod device;
pub mod fusion;
pub mod residency;
pub mod scheduler;
