//! Opening the devices that the settings ask for, and starting a ring over them.
//!
//! In: settings. Out: a [`Ring`]. Must hold: the host is always device 0; a GPU that was asked for and is not there
//! is an error at the start, one that `auto` would have liked is not. A GPU that is opened on demand is opened by the
//! ring, when something is to be placed that could be worth it, or for a user who asks for the devices.

use super::devices::Opener;
use super::{Ring, start_with};
use crate::config::{Config, DeviceChoice};
use crate::device;
use crate::device::handle::{Context, DeviceHandle};
use crate::error::Result;
use crate::mail::mail;
use crate::stats::Counters;
use crate::timeline::Timeline;
use std::sync::Arc;

/// Opens devices, those that are not left for later, and starts the ring's thread.
///
/// # Errors
/// `ErrorKind::Device` if a device that was asked for is not there or cannot be opened; `ErrorKind::Unsupported` if a
/// GPU was asked for and this build has none.
pub fn start(config: Arc<Config>, timeline: Timeline, counters: Arc<Counters>) -> Result<Ring> {
    let (sender, device_events) = mail();
    let context =
        Context { config: config.clone(), counters: counters.clone(), timeline: timeline.clone(), events: sender };
    let mut devices = vec![device::host::open(context.clone())?];
    let mut opener = None;
    if config.injection().stands_in() {
        devices.push(device::host::open_stand_in(context)?);
        if let [host, other] = &mut devices[..] {
            host.info.leave_to(&mut other.info, 0);
        }
    } else if may_have_gpu(&config)? {
        if config.opens_on_demand() {
            opener = Some(Box::new(move || open_gpu(context)) as Opener);
        } else {
            devices.extend(open_gpu(context)?);
            if let [host, gpu] = &mut devices[..] {
                host.info.leave_to(&mut gpu.info, 0);
            }
        }
    }
    start_with(devices, opener, device_events, config, timeline, counters)
}

/// Whether there is a GPU to open, as far as that is known without a look at a driver, or with one where a GPU was
/// asked for: that it is missing is to be known at the start.
#[cfg(feature = "gpu")]
fn may_have_gpu(config: &Config) -> Result<bool> {
    match config.device {
        DeviceChoice::Host => Ok(false),
        DeviceChoice::Auto => Ok(true),
        DeviceChoice::Gpu(index) => device::gpu::find(index).map(|()| true),
    }
}

#[cfg(not(feature = "gpu"))]
fn may_have_gpu(config: &Config) -> Result<bool> {
    match config.device {
        DeviceChoice::Gpu(_) => Err(crate::error::Error::new(
            crate::error::ErrorKind::Unsupported,
            "this build has no GPU support: build it with the feature `gpu`, or choose the device `host` or `auto`",
        )),
        DeviceChoice::Auto | DeviceChoice::Host => Ok(false),
    }
}

#[cfg(feature = "gpu")]
fn open_gpu(context: Context) -> Result<Option<DeviceHandle>> {
    let id = crate::ids::DeviceId::GPU;
    let (config, timeline) = (context.config.clone(), context.timeline.clone());
    let start_ns = timeline.now_ns();
    let injection = config.injection();
    injection.hold_opening();
    let opened = match config.device {
        DeviceChoice::Host => Ok(None),
        DeviceChoice::Gpu(index) => device::gpu::open(index, id, context).map(Some),
        DeviceChoice::Auto if injection.software_serves() || device::gpu::has_hardware() => {
            device::gpu::open(None, id, context).map(Some)
        }
        DeviceChoice::Auto => Ok(None),
    };
    if timeline.is_on() && config.opens_on_demand() {
        let end_ns = timeline.now_ns().max(start_ns + 1);
        timeline.span(crate::timeline::Lane::DeviceQueue(id), "open the device", start_ns, end_ns, &[]);
    }
    match opened {
        Err(error) if config.device == DeviceChoice::Auto => {
            // Nobody asked for it: the host serves.
            tracing::warn!(%error, "a GPU is present and could not be opened");
            if config.opens_on_demand() { Err(error) } else { Ok(None) }
        }
        opened => opened,
    }
}

#[cfg(not(feature = "gpu"))]
fn open_gpu(_context: Context) -> Result<Option<DeviceHandle>> {
    Ok(None)
}
