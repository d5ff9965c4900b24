//! What each actor is told, and what it tells others.

pub mod fusion;
pub mod residency;
pub mod scheduler;
