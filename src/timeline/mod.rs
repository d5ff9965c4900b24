//! Spans, GPU lanes, flows, counters and *why* records, to one Chrome-trace file a runtime.
//!
//! In: calls from every actor. Out: a JSON file. Must never change what is executed.

use crate::ids::{DeviceId, SessionId};
use std::sync::Arc;

/// A row of the timeline.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lane {
    /// A session's recordings and gathers.
    Session(SessionId),
    /// The scheduler actor.
    Scheduler,
    /// The fusion actor.
    Fusion,
    /// The residency actor.
    Residency,
    /// Planning and compiling workers.
    Worker(u32),
    /// Encoding and submitting on a device's thread.
    DeviceQueue(DeviceId),
    /// Bytes moving to a device.
    DeviceUpload(DeviceId),
    /// Kernels running.
    DeviceCompute(DeviceId),
    /// Bytes moving to the host.
    DeviceReadback(DeviceId),
}

/// An argument of an event.
#[derive(Clone, Debug)]
pub enum Detail {
    /// A number.
    Int(i64),
    /// A number.
    Float(f64),
    /// Words.
    Text(String),
}

/// The recorder of one runtime; cheap to clone, free when off.
#[derive(Clone, Debug, Default)]
pub struct Timeline(Option<Arc<()>>);

impl Timeline {
    /// A timeline that records nothing.
    pub fn off() -> Timeline {
        Timeline(None)
    }

    /// Whether anything is recorded; check it before building details.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Nanoseconds since the runtime's start, on the clock of every event.
    pub fn now_ns(&self) -> u64 {
        0
    }

    /// Names a session's lane.
    pub fn name_session(&self, _session: SessionId, _name: &str) {}

    /// A span on a lane.
    pub fn span(&self, _lane: Lane, _name: &str, _start_ns: u64, _end_ns: u64, _details: &[(&'static str, Detail)]) {}

    /// The start of an arrow (inside of a span on that lane at that time).
    pub fn flow_start(&self, _lane: Lane, _flow: u64, _at_ns: u64) {}

    /// The end of an arrow.
    pub fn flow_end(&self, _lane: Lane, _flow: u64, _at_ns: u64) {}

    /// A counter's value.
    pub fn counter(&self, _name: &'static str, _value: u64) {}

    /// A *why* record: an instant with its reason.
    pub fn why(&self, _lane: Lane, _name: &str, _details: &[(&'static str, Detail)]) {}
}
