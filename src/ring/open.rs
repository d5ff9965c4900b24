//! Opening the devices that the settings ask for, and starting a ring over them.
//!
//! In: settings. Out: a [`Ring`]. Must hold: the host is always device 0; a GPU that was asked for and cannot be
//! opened is an error, one that `auto` would have liked is not.

use super::{Ring, start_with};
use crate::config::{Config, DeviceChoice};
use crate::device;
use crate::device::handle::{Context, DeviceHandle};
use crate::error::Result;
use crate::mail::mail;
use crate::stats::Counters;
use crate::timeline::Timeline;
use std::sync::Arc;

/// Opens devices and starts the ring's thread.
///
/// # Errors
/// `ErrorKind::Device` if a device that was asked for cannot be opened; `ErrorKind::Unsupported` if a GPU was
/// asked for and this build has none.
pub fn start(config: Arc<Config>, timeline: Timeline, counters: Arc<Counters>) -> Result<Ring> {
    let (sender, device_events) = mail();
    let context =
        Context { config: config.clone(), counters: counters.clone(), timeline: timeline.clone(), events: sender };
    let mut devices = vec![device::host::open(context.clone())?];
    devices.extend(open_gpu(&config, context)?);
    start_with(devices, device_events, config, timeline, counters)
}

#[cfg(feature = "gpu")]
fn open_gpu(config: &Config, context: Context) -> Result<Option<DeviceHandle>> {
    let id = crate::ids::DeviceId(1);
    match config.device {
        DeviceChoice::Host => Ok(None),
        DeviceChoice::Gpu(index) => device::gpu::open(index, id, context).map(Some),
        DeviceChoice::Auto if device::gpu::has_hardware() => match device::gpu::open(None, id, context) {
            Ok(gpu) => Ok(Some(gpu)),
            Err(error) => {
                // Nobody asked for it: the host serves.
                tracing::warn!(%error, "a GPU is present and could not be opened");
                Ok(None)
            }
        },
        DeviceChoice::Auto => Ok(None),
    }
}

#[cfg(not(feature = "gpu"))]
fn open_gpu(config: &Config, _context: Context) -> Result<Option<DeviceHandle>> {
    match config.device {
        DeviceChoice::Gpu(_) => Err(crate::error::Error::new(
            crate::error::ErrorKind::Unsupported,
            "this build has no GPU support: build it with the feature `gpu`, or choose the device `host` or `auto`",
        )),
        DeviceChoice::Auto | DeviceChoice::Host => Ok(None),
    }
}
