//! Opening the devices that the settings ask for, and starting a ring over them.
//!
//! In: settings. Out: a [`Ring`]. Must hold: the host is always device 0; if the program asked for a GPU and there is
//! none, the start fails; with `auto`, it does not. A GPU that is opened on demand is opened when the scheduler asks
//! for it, or when the program asks for the list of devices.

use super::devices::Opener;
use super::{Ring, start_with};
use crate::config::{Config, DeviceChoice};
use crate::device::Opening;
use crate::device::handle::DeviceHandle;
use crate::error::Result;
use crate::mail::mail;
use crate::stats::Counters;
use crate::timeline::Timeline;
use std::sync::Arc;

/// Opens the devices that are not opened on demand, and starts the ring's thread.
///
/// # Errors
/// `ErrorKind::Device` if a device that was asked for is not there or cannot be opened; `ErrorKind::Unsupported` if a
/// GPU was asked for and this build has none.
pub fn start(config: Arc<Config>, timeline: Timeline, counters: Arc<Counters>) -> Result<Ring> {
    let (sender, device_events) = mail();
    let opening =
        Opening { config: config.clone(), counters: counters.clone(), timeline: timeline.clone(), events: sender };
    let mut devices = vec![opening.clone().host()?];
    let mut opener = None;
    if let Some(fake) = stand_in(&opening, &devices)? {
        devices.push(fake);
    } else if may_have_gpu(&config)? {
        if config.opens_on_demand() {
            opener = Some(Box::new(move || open_gpu(opening)) as Opener);
        } else {
            devices.extend(open_gpu(opening)?);
        }
    }
    if let [host, other] = &mut devices[..] {
        host.info.leave_to(&mut other.info, 0);
    }
    start_with(devices, opener, device_events, config, timeline, counters)
}

/// The fake device that a test uses in place of a GPU.
#[cfg(any(test, feature = "testing"))]
fn stand_in(opening: &Opening, devices: &[DeviceHandle]) -> Result<Option<DeviceHandle>> {
    match devices.first() {
        Some(host) if opening.config.injection().stands_in() => opening.clone().fake(&host.info).map(Some),
        _ => Ok(None),
    }
}

#[cfg(not(any(test, feature = "testing")))]
fn stand_in(_opening: &Opening, _devices: &[DeviceHandle]) -> Result<Option<DeviceHandle>> {
    Ok(None)
}

/// Whether to try to open a GPU. If the program asked for one, its drivers are searched now, so that a missing GPU is
/// an error at the start; for `auto`, no driver is loaded yet.
#[cfg(feature = "gpu")]
fn may_have_gpu(config: &Config) -> Result<bool> {
    match config.device {
        DeviceChoice::Host => Ok(false),
        DeviceChoice::Auto => Ok(true),
        DeviceChoice::Gpu(index) => crate::device::gpu::find(index).map(|()| true),
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
fn open_gpu(opening: Opening) -> Result<Option<DeviceHandle>> {
    let id = crate::ids::DeviceId::GPU;
    let (config, timeline) = (opening.config.clone(), opening.timeline.clone());
    let start_ns = timeline.now_ns();
    let injection = config.injection();
    injection.hold_opening();
    let opened = match config.device {
        DeviceChoice::Host => Ok(None),
        DeviceChoice::Gpu(index) => opening.gpu(index).map(Some),
        DeviceChoice::Auto if injection.software_serves() || crate::device::gpu::has_hardware() => {
            opening.gpu(None).map(Some)
        }
        DeviceChoice::Auto => Ok(None),
    };
    if timeline.is_on() && config.opens_on_demand() {
        let end_ns = timeline.now_ns().max(start_ns + 1);
        timeline.span(crate::timeline::Lane::DeviceQueue(id), "open the device", start_ns, end_ns, &[]);
    }
    match opened {
        Err(error) if config.device == DeviceChoice::Auto => {
            // With `auto`, the host serves instead.
            tracing::warn!(%error, "a GPU is present and could not be opened");
            if config.opens_on_demand() { Err(error) } else { Ok(None) }
        }
        opened => opened,
    }
}

#[cfg(not(feature = "gpu"))]
fn open_gpu(_opening: Opening) -> Result<Option<DeviceHandle>> {
    Ok(None)
}
