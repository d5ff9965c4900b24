//! The devices: the backends, and the driver that runs each backend on a thread.
//!
//! In: batches from residency, as `DeviceInstruction`s. Out: completions, readbacks and faults, as `DeviceEvent`s. This
//! module must never decide what to compute or where. The backends (`gpu/`, `host/`, `fake.rs`) know no instructions,
//! events or mailboxes: they implement the trait `Backend` (`backend.rs`), which takes batches and reports their ends.
//! Only the driver (`drive.rs`) handles messages.

pub mod backend;
#[cfg(test)]
mod conformance;
mod costs;
mod drive;
#[cfg(any(test, feature = "testing"))]
mod fake;
#[cfg(feature = "gpu")]
pub mod gpu;
pub mod handle;
mod host;

pub use costs::CACHE_VARIABLE;

use crate::config::Config;
#[cfg(any(test, feature = "testing"))]
use crate::contract::device::DeviceInfo;
use crate::contract::messages::device::DeviceEvent;
use crate::error::Result;
use crate::ids::DeviceId;
use crate::mail::Post;
use crate::stats::Counters;
use crate::timeline::Timeline;
use backend::{Backend, Context};
use handle::DeviceHandle;
use std::sync::Arc;

/// The settings and channels that every device needs to open.
#[derive(Clone)]
pub struct Opening {
    /// The runtime's settings.
    pub config: Arc<Config>,
    /// Counters.
    pub counters: Arc<Counters>,
    /// The timeline.
    pub timeline: Timeline,
    /// The mailbox for the device's events. It has no bound of its own: the batches in flight limit its length.
    pub events: Post<DeviceEvent>,
}

impl Opening {
    /// Opens the host, `DeviceId::HOST`.
    ///
    /// # Errors
    /// `ErrorKind::Device` if the system starts no threads.
    pub fn host(self) -> Result<DeviceHandle> {
        self.start(DeviceId::HOST, host::open)
    }

    /// Opens an adapter (its index in [`gpu::adapters`], or the best one) as `DeviceId::GPU`.
    ///
    /// # Errors
    /// `ErrorKind::Device` if there is no such adapter (the message says what to install) or it can't be opened.
    #[cfg(feature = "gpu")]
    pub fn gpu(self, index: Option<usize>) -> Result<DeviceHandle> {
        self.start(DeviceId::GPU, |context| gpu::open(index, DeviceId::GPU, context))
    }

    /// Opens the fake device of tests as `DeviceId::GPU`. It takes most of its numbers from `host`.
    ///
    /// # Errors
    /// `ErrorKind::Device` if the system starts no threads.
    #[cfg(any(test, feature = "testing"))]
    pub fn fake(self, host: &DeviceInfo) -> Result<DeviceHandle> {
        self.start(DeviceId::GPU, |context| fake::Fake::open(host, context))
    }

    /// Opens a backend and starts its driver.
    fn start<B: Backend>(self, device: DeviceId, open: impl FnOnce(Context) -> Result<B>) -> Result<DeviceHandle> {
        let Opening { config, counters, timeline, events } = self;
        let reports = Arc::new(drive::Told { device, events: events.clone() });
        let context = Context { config, counters, timeline, reports };
        drive::start(open(context.clone())?, &context, events)
    }
}
