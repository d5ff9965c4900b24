//! What each actor is told (events: facts, in the past tense) and what it tells others (instructions: imperatives).
//!
//! One file for each actor. `crate::ring::machines` carries every one of them to where it belongs.

pub mod device;
pub mod fusion;
pub mod residency;
pub mod scheduler;
