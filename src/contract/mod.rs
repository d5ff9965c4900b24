//! What actors say to each other: data that crosses an actor's border, one file for each contract.

pub mod batch;
pub mod brief;
pub mod device;
pub mod messages;
pub mod plan;
pub mod records;
pub mod region;
