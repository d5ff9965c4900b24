//! What drives a backend: a thread, a mailbox, the order of instructions, and the word to the ring.
//!
//! In: `DeviceInstruction`s in a mailbox without a bound of its own, so that the ring never waits for it: residency's
//! credits bound the batches in it, and the buffers that exist bound the releases. Out: `DeviceEvent`s, unbounded but
//! limited by the batches in flight. One driver serves every backend. Two things stay with a backend, since no two share
//! them: how work spreads below it (the host's pool and the threads for its long launches; a GPU's copy threads), and
//! who waits for its end (nobody, where a launch is a function call; a completion thread, where wgpu tells it by a
//! callback). What such threads say reaches the driver as the backend's signals.
//!
//! Must hold:
//! - DRIVE-1: whoever takes from the mailbox holds the backend. So where the mailbox is empty and the backend is free,
//!   the backend was given all that came before.
//! - DRIVE-2: signals are taken before instructions: what is submitted after a loss is known would only fail.
//! - DRIVE-3: what was sent before its sender could know of a loss fails with that loss, before the loss is told.
//! - DRIVE-4: a thread that ends before it was told to is a lost device, and the ring hears so.

use super::backend::{Backend, Context, DeviceLoss, Reports, blame_from, blamed};
use super::handle::{DeviceHandle, Inline, Reach};
use crate::config::{Config, DeviceChoice};
use crate::contract::batch::{Batch, Transfer};
use crate::contract::messages::device::{DeviceEvent, DeviceInstruction};
use crate::eager::Eager;
use crate::error::{Error, ErrorKind, Result, panic_words};
use crate::host_buffer::HostBuffer;
use crate::ids::{BatchId, DeviceId};
use crate::injection::Wrong;
use crate::mail::Post;
use crate::timeline::Timeline;
use crossbeam_channel::{Receiver, Select, TryRecvError, unbounded};
use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Tells the ring what a backend reports.
pub(super) struct Told {
    /// The device's number.
    pub(super) device: DeviceId,
    /// The ring's mailbox.
    pub(super) events: Post<DeviceEvent>,
}

impl Reports for Told {
    fn readback(&self, transfer: Transfer, data: Result<Arc<HostBuffer>>) {
        // The batch's end follows at once, and one wake-up does for both. A ring that has ended waits for nothing.
        let _ = self.events.put(DeviceEvent::ReadbackDone { device: self.device, transfer, data });
    }

    fn finished(&self, batch: BatchId, faults: Vec<u32>, device_ns: u64) {
        let _ = self.events.send(DeviceEvent::BatchFinished { device: self.device, batch, faults, device_ns });
    }

    fn failed(&self, batch: BatchId, error: Error) {
        let _ = self.events.send(DeviceEvent::BatchFailed { device: self.device, batch, error });
    }
}

/// Starts the thread that drives a backend. Losses are told to `events`.
///
/// # Errors
/// `ErrorKind::Device` where the system gives no thread.
pub(super) fn start<B: Backend>(mut backend: B, context: &Context, events: Post<DeviceEvent>) -> Result<DeviceHandle> {
    let (instructions, mailbox) = unbounded();
    let (info, compiler, uploads) = (backend.info().clone(), backend.compiler(), backend.upload_memory());
    let driving = backend.driving();
    context.timeline.name_device(info.id, &info.name);
    let mut threads = backend.take_threads();
    // A test that holds the device must hold its thread, and not the ring's.
    let inlines = backend.has_brief_work() && !context.config.injection().holds_a_batch();
    let ears = Ears {
        mailbox,
        signals: backend.signals(),
        timeline: context.timeline.clone(),
        lane: driving.lane,
        eager: driving.look.map(|look| Eager::new(look, info.software)),
    };
    let lost = Told { device: info.id, events };
    let (config, reports) = (context.config.clone(), context.reports.clone());
    let driver = Driver { backend, config, reports, lost, submitted: 0, stopping: false };
    let desk = Arc::new(Desk { driver: Mutex::new(Some(driver)) });
    let inline = inlines.then(|| desk.clone() as Arc<dyn Inline>);
    let name = info.name.clone();
    let thread = std::thread::Builder::new().name(driving.thread).spawn(move || desk.run_to_its_end(ears, &name));
    let thread = thread.map_err(|error| {
        Error::new(ErrorKind::Device, format!("the thread of the device {} did not start: {error}", info.name))
    })?;
    threads.insert(0, thread);
    Ok(DeviceHandle { info, reach: Reach { instructions, inline }, compiler, uploads, threads })
}

/// A backend and how far its driver got.
struct Driver<B> {
    backend: B,
    config: Arc<Config>,
    reports: Arc<dyn Reports>,
    lost: Told,
    /// Batches taken from the mailbox.
    submitted: u64,
    stopping: bool,
}

/// Where the backend is met: by the driver's thread, and by whoever sends brief work (DRIVE-1).
struct Desk<B> {
    /// None once the thread has ended, whichever way.
    driver: Mutex<Option<Driver<B>>>,
}

/// What the driver's thread hears, and how it waits.
struct Ears<S> {
    mailbox: Receiver<DeviceInstruction>,
    signals: Receiver<S>,
    timeline: Timeline,
    lane: &'static str,
    /// None where the thread sleeps at once.
    eager: Option<Eager>,
}

impl<B: Backend> Desk<B> {
    /// The driver's thread. Should it end without being told to, the device is gone for good (DRIVE-4).
    fn run_to_its_end(&self, ears: Ears<B::Signal>, name: &str) {
        crate::threads::mark_own();
        let timeline = ears.timeline.clone();
        let _guard = timeline.enter_thread(ears.lane);
        let outcome = catch_unwind(AssertUnwindSafe(|| self.run(ears)));
        let Some(driver) = self.driver.lock().take() else { return };
        let lost = Told { device: driver.lost.device, events: driver.lost.events.clone() };
        // What a device asserts that goes down must not take the word of its end along.
        drop(catch_unwind(AssertUnwindSafe(move || drop(driver))));
        let words = match outcome {
            Ok(true) => return,
            Ok(false) => "a thread of it has ended".to_owned(),
            Err(panic) => format!("its thread panicked ({})", panic_words(&*panic)),
        };
        let error = Error::new(ErrorKind::DeviceLost, format!("the device was lost: {words}")).with_device(name);
        lost.tell(DeviceLoss { error, replaced: false });
    }

    /// Runs until told to stop, or until nobody can tell it anything. Whether it ended as it was told to.
    fn run(&self, mut ears: Ears<B::Signal>) -> bool {
        let (mailbox, signals) = (ears.mailbox, ears.signals);
        let mut news = Select::new();
        news.recv(&signals);
        news.recv(&mailbox);
        loop {
            if let Some(eager) = &mut ears.eager {
                let look = eager.begin();
                while mailbox.is_empty() && signals.is_empty() && look.again() {}
                if !mailbox.is_empty() {
                    eager.end(&look);
                }
            }
            // What there is to hear is taken under the lock (DRIVE-1).
            news.ready();
            let mut driver = self.driver.lock();
            let Some(driver) = driver.as_mut() else { return true };
            loop {
                match signals.try_recv() {
                    Ok(signal) => {
                        let result = driver.backend.signalled(signal);
                        driver.ended(result, Some(&mailbox));
                    }
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return false,
                }
            }
            match mailbox.try_recv() {
                Ok(instruction) => driver.hear(instruction, Some(&mailbox)),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => driver.stopping = true,
            }
            if driver.stopping {
                driver.backend.finish();
                return true;
            }
        }
    }
}

impl<B: Backend> Inline for Desk<B> {
    fn try_inline(&self, instruction: DeviceInstruction, within_us: f64) -> Result<(), DeviceInstruction> {
        let Some(mut driver) = self.driver.try_lock() else { return Err(instruction) };
        match driver.as_mut() {
            Some(driver) if driver.may_inline(&instruction, within_us) => driver.hear(instruction, None),
            _ => return Err(instruction),
        }
        Ok(())
    }
}

impl<B: Backend> Driver<B> {
    fn may_inline(&self, instruction: &DeviceInstruction, within_us: f64) -> bool {
        let is_brief = match instruction {
            DeviceInstruction::Submit(batch) => self.backend.is_brief(batch, within_us),
            DeviceInstruction::Release(buffers) => self.backend.frees_briefly(buffers, within_us),
            DeviceInstruction::Trim { .. } | DeviceInstruction::Stop => false,
        };
        is_brief && !self.stopping
    }

    /// Takes in an instruction; who has the mailbox gives it along.
    fn hear(&mut self, instruction: DeviceInstruction, mailbox: Option<&Receiver<DeviceInstruction>>) {
        match instruction {
            DeviceInstruction::Submit(batch) => self.submit(batch, mailbox),
            DeviceInstruction::Release(buffers) => self.backend.release(buffers),
            DeviceInstruction::Trim { all } => self.backend.trim(all),
            DeviceInstruction::Stop => self.stopping = true,
        }
    }

    fn submit(&mut self, batch: Batch, mailbox: Option<&Receiver<DeviceInstruction>>) {
        let more_waits = mailbox.is_some_and(|mailbox| !mailbox.is_empty());
        let wrong = if self.is_under_test() {
            self.config.injection().hold_batch(self.submitted);
            self.config.injection().wrong_at(self.submitted)
        } else {
            Wrong::default()
        };
        self.submitted += 1;
        let result = self.backend.submit(batch, wrong, more_waits);
        self.ended(result, mailbox);
    }

    /// Whether what tests inject is meant for this device: it is the one that the program asked for.
    fn is_under_test(&self) -> bool {
        (self.config.device == DeviceChoice::Host) == self.backend.info().capabilities.owns_host_budget
    }

    /// Tells of a loss, if it is one, behind what waits in the mailbox: that names what is gone (DRIVE-3).
    fn ended(&mut self, result: Result<(), DeviceLoss>, mailbox: Option<&Receiver<DeviceInstruction>>) {
        let Err(loss) = result else { return };
        for instruction in mailbox.into_iter().flat_map(Receiver::try_iter) {
            match instruction {
                DeviceInstruction::Submit(waiting) => {
                    self.submitted += 1;
                    self.reports.failed(waiting.id, blamed(loss.error.clone(), blame_from(&waiting.commands, 0)));
                }
                DeviceInstruction::Release(_) | DeviceInstruction::Trim { .. } => {}
                DeviceInstruction::Stop => self.stopping = true,
            }
        }
        self.lost.tell(loss);
    }
}

impl Told {
    fn tell(&self, DeviceLoss { error, replaced }: DeviceLoss) {
        let _ = self.events.send(DeviceEvent::Lost { device: self.device, error, replaced });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::device::{DeviceInfo, DeviceKind};
    use crate::device::backend::Driving;
    use crate::ids::{BufferId, RegionId, SessionId};
    use crate::stats::Counters;

    /// A backend that breaks the promises of its trait.
    struct Broken {
        info: DeviceInfo,
        signals: Receiver<()>,
    }

    impl Backend for Broken {
        type Signal = ();

        fn info(&self) -> &DeviceInfo {
            &self.info
        }

        fn driving(&self) -> Driving {
            Driving { thread: "broken".to_owned(), lane: "broken", look: None }
        }

        fn signals(&self) -> Receiver<()> {
            self.signals.clone()
        }

        fn submit(&mut self, _batch: Batch, _wrong: Wrong, _more_waits: bool) -> Result<(), DeviceLoss> {
            panic!("it is broken")
        }

        fn release(&mut self, _buffers: Vec<BufferId>) {}

        fn trim(&mut self, _all: bool) {}

        fn signalled(&mut self, (): ()) -> Result<(), DeviceLoss> {
            let error = Error::new(ErrorKind::DeviceLost, "it is gone");
            Err(DeviceLoss { error, replaced: true })
        }

        fn finish(&mut self) {}
    }

    fn broken(signals: Receiver<()>) -> (DeviceHandle, flume::Receiver<DeviceEvent>) {
        let (sender, events) = flume::unbounded();
        let events_of = || Post::from(sender.clone());
        let info = DeviceInfo::toy(DeviceId::GPU, DeviceKind::Gpu);
        let reports = Arc::new(Told { device: info.id, events: events_of() });
        let (config, counters) = (Arc::new(Config::default()), Arc::new(Counters::default()));
        let context = Context { config, counters, timeline: Timeline::off(), reports };
        (start(Broken { info, signals }, &context, events_of()).unwrap(), events)
    }

    fn submit(device: &DeviceHandle) {
        let batch = Batch { id: BatchId(3), region: RegionId(0), session: SessionId(0), commands: Vec::new() };
        device.reach.instructions.send(DeviceInstruction::Submit(batch)).unwrap();
    }

    #[track_caller]
    fn assert_lost(event: DeviceEvent, words: &str, was_replaced: bool) {
        match event {
            DeviceEvent::Lost { device: DeviceId::GPU, error, replaced } => {
                assert_eq!((error.kind(), replaced), (ErrorKind::DeviceLost, was_replaced));
                assert!(error.message().contains(words), "{error}");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_panic_of_a_backend_or_the_end_of_a_thread_of_it_is_a_lost_device() {
        let (device, events) = broken(crossbeam_channel::never());
        submit(&device);
        assert_lost(events.recv().unwrap(), "it is broken", false);
        let (signal, signals) = unbounded();
        let (_device, events) = broken(signals);
        drop(signal);
        assert_lost(events.recv().unwrap(), "a thread of it has ended", false);
    }

    #[test]
    fn a_device_that_was_replaced_goes_on_until_it_is_told_to_stop() {
        let (signal, signals) = unbounded();
        let (device, events) = broken(signals);
        for _ in 0..2 {
            signal.send(()).unwrap();
            assert_lost(events.recv().unwrap(), "it is gone", true);
        }
        device.reach.instructions.send(DeviceInstruction::Stop).unwrap();
        device.threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(events.is_empty());
    }
}
