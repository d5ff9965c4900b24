//! The devices of a ring: those that are open, and the one that is opened when it is first needed.
//!
//! In: open devices; a way to open another. Out: their numbers, for users; the opened device, for the ring. Opening
//! takes long (a driver is loaded, a device is made): it is done once, on a thread of its own, when it is first asked
//! for: by the ring (`Devices::ask`, which does not wait) or by a user (`Devices::all`, which does).
//!
//! Must hold: DEVICES-1: the ring is told of a device before any user is, so that no request names a device that the
//! ring does not know. DEVICES-2: every thread that waits for the opening is told its result, also if the ring ends
//! meanwhile. DEVICES-3: every device that was opened is stopped when the ring ends.

use crate::contract::device::DeviceInfo;
use crate::contract::messages::device::DeviceInstruction;
use crate::device::backend::{Compiler, UploadMemory};
use crate::device::handle::{DeviceHandle, Reach};
use crate::error::{Error, ErrorKind};
use crate::grants::Grants;
use crate::ids::DeviceId;
use crate::mail::Post;
use crate::stats::Counters;
use parking_lot::{Condvar, Mutex};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Opens a device. `None` if there is none and the settings do not require one.
pub type Opener = Box<dyn FnOnce() -> Result<Option<DeviceHandle>, Error> + Send>;

/// The message to the ring with the result of an opening.
pub(super) type Opened = Result<Option<OpenedDevice>, Error>;

/// A device that was opened while the ring was running, as the ring needs it.
pub(super) struct OpenedDevice {
    /// Its description.
    pub(super) info: DeviceInfo,
    /// The handle for sending it instructions.
    pub(super) reach: Reach,
    /// Its compiler.
    pub(super) compiler: Arc<dyn Compiler>,
}

/// The devices of a ring.
pub struct Devices {
    first: Vec<DeviceInfo>,
    /// All devices. Set once there is no device left to open.
    all: OnceLock<Known>,
    inner: Mutex<Inner>,
    changed: Condvar,
    ring: Post<Opened>,
    grants: Arc<Grants>,
    counters: Arc<Counters>,
}

struct Known {
    infos: Vec<DeviceInfo>,
    /// Why the last one could not be opened.
    error: Option<Error>,
}

struct Inner {
    handles: Vec<DeviceHandle>,
    opener: Option<Opener>,
    /// The ring has ended: a device that is opened after that is stopped at once.
    closed: bool,
}

impl Devices {
    /// The description of the host device, with the budget that it had at the start.
    pub fn host(&self) -> Option<&DeviceInfo> {
        self.first.iter().find(|device| device.capabilities.owns_host_budget)
    }

    /// The description of the host device, with the budget that other devices have left it.
    pub fn host_now(&self) -> Option<&DeviceInfo> {
        self.open().iter().find(|device| device.capabilities.owns_host_budget)
    }

    /// Whether this is the fallback: the device that runs the ops that another device cannot run, and all ops of a
    /// device that is gone. Constants are folded with its arithmetic. Nothing replaces it.
    pub fn is_fallback(&self, device: DeviceId) -> bool {
        self.first.iter().any(|info| info.id == device && info.capabilities.runs_all)
    }

    pub(super) fn new(
        handles: Vec<DeviceHandle>,
        opener: Option<Opener>,
        ring: Post<Opened>,
        counters: Arc<Counters>,
    ) -> Devices {
        let first: Vec<DeviceInfo> = handles.iter().map(|d| d.info.clone()).collect();
        let all = OnceLock::new();
        if opener.is_none() {
            let _ = all.set(Known { infos: first.clone(), error: None });
        }
        Devices {
            first,
            all,
            inner: Mutex::new(Inner { handles, opener, closed: false }),
            changed: Condvar::new(),
            ring,
            grants: Arc::default(),
            counters,
        }
    }

    /// The memory that upload writers hold.
    pub fn grants(&self) -> &Arc<Grants> {
        &self.grants
    }

    /// Devices that exist without their ring, for tests.
    #[cfg(test)]
    pub(crate) fn fixed(infos: Vec<DeviceInfo>) -> Devices {
        let devices = Devices::new(Vec::new(), None, flume::unbounded().0.into(), Arc::default());
        Devices { all: OnceLock::from(Known { infos: infos.clone(), error: None }), first: infos, ..devices }
    }

    /// The devices that are open by now.
    pub fn open(&self) -> &[DeviceInfo] {
        self.all.get().map_or(&self.first, |known| &known.infos)
    }

    /// All devices: opens what is not open yet, and waits for it.
    pub fn all(self: &Arc<Devices>) -> &[DeviceInfo] {
        &self.known().infos
    }

    /// Mapped memory of a device that users may fill, if the device is open and has such memory.
    pub fn upload_memory(&self, device: DeviceId) -> Option<Arc<dyn UploadMemory>> {
        self.inner.lock().handles.iter().find(|d| d.info.id == device)?.uploads.clone()
    }

    /// The error of the device that could not be opened, if there is one.
    pub fn error(self: &Arc<Devices>) -> Option<&Error> {
        self.known().error.as_ref()
    }

    fn known(self: &Arc<Devices>) -> &Known {
        self.ask();
        let mut inner = self.inner.lock();
        loop {
            if let Some(known) = self.all.get() {
                return known;
            }
            self.changed.wait(&mut inner);
        }
    }

    /// Starts to open the device that is not open yet, on a thread of its own. Does nothing if that has been started
    /// before.
    pub fn ask(self: &Arc<Devices>) {
        if self.all.get().is_some() {
            return;
        }
        let Some(opener) = self.inner.lock().opener.take() else { return };
        let devices = self.clone();
        let thread = std::thread::Builder::new().name("tidemill-open".to_owned());
        let spawned = thread.spawn(move || {
            crate::threads::mark_own();
            let result = catch_unwind(AssertUnwindSafe(opener)).unwrap_or_else(|panic| {
                let words = crate::error::panic_words(&*panic);
                Err(Error::new(ErrorKind::Internal, format!("opening a device panicked: {words}")))
            });
            devices.opened(result);
        });
        if let Err(error) = spawned {
            let message = format!("the thread that opens a device could not be started: {error}");
            self.opened(Err(Error::new(ErrorKind::Device, message)));
        }
    }

    fn opened(&self, result: Result<Option<DeviceHandle>, Error>) {
        let mut inner = self.inner.lock();
        let mut known = Known { infos: self.first.clone(), error: None };
        let told = match result {
            Ok(Some(handle)) if inner.closed => {
                // The deadline is now: its threads are not waited for.
                stop(vec![handle], Instant::now());
                Ok(None)
            }
            Ok(Some(mut handle)) => {
                let held_bytes = self.counters.read().bytes_resident_now;
                known.infos[0].leave_to(&mut handle.info, held_bytes);
                known.infos.push(handle.info.clone());
                let (info, reach) = (handle.info.clone(), handle.reach.clone());
                let told = OpenedDevice { info, reach, compiler: handle.compiler.clone() };
                inner.handles.push(handle);
                Ok(Some(told))
            }
            Ok(None) => Ok(None),
            Err(error) => {
                known.error = Some(error.clone());
                Err(error)
            }
        };
        // DEVICES-1. This fails only if the ring has ended, and then no one needs the message.
        let _ = self.ring.send(told);
        let _ = self.all.set(known);
        self.changed.notify_all();
    }

    /// Called when the ring has ended: stops all open devices, and opens no more. Waits until the deadline for an
    /// opening that is under way, and for the devices' threads.
    pub(super) fn close(&self, deadline: Instant) {
        let mut inner = self.inner.lock();
        if inner.opener.take().is_some() {
            let _ = self.all.set(Known { infos: self.first.clone(), error: None });
            self.changed.notify_all();
        }
        while self.all.get().is_none() && !self.changed.wait_until(&mut inner, deadline).timed_out() {}
        // DEVICES-2: threads that wait for a driver that hangs go on with the devices that are open.
        let _ = self.all.set(Known { infos: self.first.clone(), error: None });
        self.changed.notify_all();
        inner.closed = true;
        let handles = std::mem::take(&mut inner.handles);
        drop(inner);
        stop(handles, deadline);
    }
}

/// Tells devices to end, and waits for their threads until the deadline. Those that take longer end by themselves.
fn stop(handles: Vec<DeviceHandle>, deadline: Instant) {
    for device in &handles {
        let _ = device.reach.instructions.send(DeviceInstruction::Stop);
    }
    for device in handles {
        let DeviceHandle { reach, threads, .. } = device;
        drop(reach);
        for thread in threads {
            while !thread.is_finished() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_micros(200));
            }
            match thread.is_finished() {
                true => drop(thread.join()),
                false => crate::leaving::leave(thread),
            }
        }
    }
}
