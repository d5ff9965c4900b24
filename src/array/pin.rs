//! Pins: a program may ask for a device array by array, as with MATLAB's `gpuArray`.
//!
//! In: an array, a device's name. Out: a handle of the same value, whose work runs on that device.
//! Must hold: RECORD-4; a pin by itself moves no data, and never changes which ops are computed.

use super::handle::Array;
use super::runtime::IntoDevice;
use crate::config::DeviceChoice;
use crate::contract::device::DeviceInfo;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::DeviceId;
use std::panic::Location;
use std::sync::atomic::Ordering;

impl Array {
    /// The same value, pinned to a device. If the value is still to be computed, it is computed there, and so are all
    /// results of ops on the returned array, whatever `auto` would choose. `"gpu"` is the runtime's GPU, `"host"` the
    /// CPU's threads; `"auto"` removes a pin. Ops on arrays that are pinned to a GPU are not folded when they are
    /// recorded, however small they are.
    ///
    /// If operands are pinned to several devices, a GPU wins over the host. An op that the device cannot run runs on
    /// the host, which [`Stats::elsewhere`](crate::Stats::elsewhere) counts. A GPU that is opened on demand
    /// ([`RuntimeBuilder::open_on_demand`](super::RuntimeBuilder::open_on_demand)) is opened by the first pin to it,
    /// which blocks until it is open.
    ///
    /// A runtime without that device yields an array that carries `ErrorKind::Device`; ask
    /// [`Runtime::device`](super::Runtime::device) beforehand.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// let s = rt.session("pins").open();
    /// let x = s.linspace(0.0f32, 1.0, 1000);
    /// // A GPU where there is one.
    /// let x = if rt.device("gpu").is_ok() { x.pin("gpu") } else { x };
    /// let y = (&x * 2.0).sum(..);
    /// assert_eq!(y.is_on_gpu(), x.is_on_gpu());
    /// assert!(x.pin("gpu").error().is_some() || x.is_on_gpu());
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn pin(&self, device: impl IntoDevice) -> Array {
        let at = Location::caller();
        if self.error().is_some() {
            return self.clone();
        }
        let home = &self.0.home;
        match device.into_device().and_then(|choice| home.link.device(choice)) {
            Err(error) => Array::faulty(home, error, "pin", at),
            Ok(device) => {
                let pin = device.map(|d| d.id);
                self.announce(pin);
                Array(self.0.clone(), pin)
            }
        }
    }

    /// As [`Array::pin`], or the error that prevents it.
    ///
    /// # Errors
    /// The array's fault; `ErrorKind::Device` for an unknown device, and for one that the runtime does not have.
    #[track_caller]
    pub fn try_pin(&self, device: impl IntoDevice) -> Result<Array> {
        self.pin(device).checked()
    }

    /// The device to which the array is pinned, by [`Array::pin`] or because an operand was.
    pub fn pinned_to(&self) -> Option<&DeviceInfo> {
        self.0.home.link.devices.open().iter().find(|d| Some(d.id) == self.1)
    }

    /// Whether the array is pinned to a GPU.
    pub fn is_on_gpu(&self) -> bool {
        self.pinned_to().is_some_and(DeviceInfo::is_accelerator)
    }

    /// The same handle with the pin of its operands.
    pub(super) fn pinned(self, pin: Option<DeviceId>) -> Array {
        let pin = pin.max(self.1);
        Array(self.0, pin)
    }

    /// Tells the tape of the pin of a value that is lazy and that only its own session can use.
    fn announce(&self, pin: Option<DeviceId>) {
        let v = &self.0;
        let id = self.id();
        let lazy = v.host.is_none() && !v.source && !v.exported.load(Ordering::Acquire);
        if let (Some(device), true, Some(id)) = (pin.filter(|_| pin != self.1), lazy, id) {
            v.home.pin(id, device);
        }
    }
}

impl super::Runtime {
    /// The device that a name stands for on this runtime: `"host"`, `"gpu"` or `"gpu:N"`.
    ///
    /// # Errors
    /// `ErrorKind::Device` for a device that this runtime did not open, with how to get it, and for `"auto"`, which is
    /// none.
    pub fn device(&self, device: impl IntoDevice) -> Result<&DeviceInfo> {
        let choice = device.into_device()?;
        self.link.device(choice)?.ok_or_else(|| {
            let message = format!("{choice:?} names no device: choose host, gpu or gpu:N").to_lowercase();
            Error::new(ErrorKind::Device, message)
        })
    }
}

impl super::link::Link {
    /// The open device that a choice stands for; `None` for `Auto`.
    ///
    /// # Errors
    /// `ErrorKind::Device` if this runtime has no such device.
    pub(super) fn device(&self, choice: DeviceChoice) -> Result<Option<&DeviceInfo>> {
        // This opens a GPU that is opened on demand. The host is always open.
        let all = || self.devices.all();
        let gpu = || all().iter().find(|d| d.is_accelerator());
        // If the settings name no number, the best adapter was opened, which has number 0.
        let opened = match self.config.device {
            DeviceChoice::Gpu(Some(number)) => number,
            _ => 0,
        };
        let found = match choice {
            DeviceChoice::Auto => return Ok(None),
            DeviceChoice::Host => self.devices.host(),
            DeviceChoice::Gpu(None) => gpu(),
            DeviceChoice::Gpu(Some(number)) => gpu().filter(|_| number == opened),
        };
        match found {
            Some(device) => Ok(Some(device)),
            None => {
                if let (DeviceChoice::Gpu(_), Some(error)) = (choice, self.devices.error()) {
                    return Err(error.clone());
                }
                let names: Vec<&str> = all().iter().map(|d| d.name.as_str()).collect();
                let asked = match choice {
                    DeviceChoice::Gpu(Some(number)) => format!("gpu:{number}"),
                    _ => "GPU".to_owned(),
                };
                let message = format!(
                    "this runtime has no {asked}, only: {}. `auto` opens a hardware GPU where there is one, the device \
                     `gpu` also a software one",
                    names.join(", ")
                );
                Err(Error::new(ErrorKind::Device, message))
            }
        }
    }
}
