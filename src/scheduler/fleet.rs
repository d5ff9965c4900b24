//! The devices that the scheduler places work on, and whether each of them serves.
//!
//! In: devices as they are opened, losses. Out: their descriptions. Must hold: device 0, the host, serves always: it is
//! the fallback; device `n` is at place `n`.

use crate::contract::device::DeviceInfo;
use crate::ids::DeviceId;

/// Whether a device serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Service {
    /// It takes work.
    Serving,
    /// It reported a loss and has not reported yet whether it serves again. Nothing is sent to it.
    Stalled,
    /// It is gone for good.
    Gone,
}

/// The devices, in the order of their numbers.
#[derive(Debug)]
pub(super) struct Fleet {
    devices: Vec<(DeviceInfo, Service)>,
}

impl Fleet {
    /// These devices; the first is the host.
    pub fn new(devices: Vec<DeviceInfo>) -> Fleet {
        assert!(devices.first().is_some_and(|d| d.capabilities.owns_host_budget), "SCHED: device 0 is the host");
        Fleet { devices: devices.into_iter().map(|device| (device, Service::Serving)).collect() }
    }

    /// A device was opened.
    pub fn add(&mut self, device: DeviceInfo) {
        assert_eq!(device.id.0 as usize, self.devices.len(), "SCHED: devices are numbered as they come");
        self.devices.push((device, Service::Serving));
    }

    /// A device reported a loss.
    pub fn stall(&mut self, device: DeviceId) {
        if let Some((_, service)) = self.devices.get_mut(device.0 as usize)
            && *service == Service::Serving
        {
            *service = Service::Stalled;
        }
    }

    /// A device that reported a loss serves again, or is gone. The host serves always. Returns whether it is gone;
    /// `None` for a device that is not known.
    pub fn settle(&mut self, device: DeviceId, serves_again: bool) -> Option<bool> {
        let is_gone = !serves_again && !self.is_fallback(device);
        let (_, service) = self.devices.get_mut(device.0 as usize)?;
        *service = if is_gone { Service::Gone } else { Service::Serving };
        Some(is_gone)
    }

    /// How many devices were opened.
    pub fn len(&self) -> usize {
        self.devices.len()
    }

    /// A device that was opened.
    pub fn get(&self, device: DeviceId) -> Option<&DeviceInfo> {
        self.devices.get(device.0 as usize).map(|(info, _)| info)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &DeviceInfo> + '_ {
        self.devices.iter().map(|(info, _)| info)
    }

    /// The host.
    pub fn host(&self) -> &DeviceInfo {
        &self.devices[0].0
    }

    /// The device that replaces another one that cannot run an op or is gone: the host, which runs all ops and is never
    /// lost.
    pub fn fallback(&self) -> DeviceId {
        self.host().id
    }

    /// Whether a device is the fallback.
    pub fn is_fallback(&self, device: DeviceId) -> bool {
        device == self.fallback()
    }

    /// The device that the program may ask for by name: the first beside the fallback.
    pub fn beside_fallback(&self) -> Option<&DeviceInfo> {
        self.iter().find(|device| !self.is_fallback(device.id))
    }

    /// Whether a device was opened and is not gone.
    pub fn is_open(&self, device: DeviceId) -> bool {
        self.devices.get(device.0 as usize).is_some_and(|(_, service)| *service != Service::Gone)
    }

    /// Whether a device reported a loss and has not recovered yet. Its regions wait.
    pub fn is_stalled(&self, device: DeviceId) -> bool {
        self.devices.get(device.0 as usize).is_some_and(|(_, service)| *service == Service::Stalled)
    }

    /// A device's description, for tests that change it.
    #[cfg(test)]
    pub fn info_mut(&mut self, device: DeviceId) -> &mut DeviceInfo {
        &mut self.devices[device.0 as usize].0
    }
}

impl std::ops::Index<DeviceId> for Fleet {
    type Output = DeviceInfo;
    fn index(&self, device: DeviceId) -> &DeviceInfo {
        self.get(device).expect("SCHED: a device is placed on after it was opened")
    }
}
