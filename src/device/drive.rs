//! The driver of a backend: its thread, its mailbox, the order of instructions, and the events that go to the ring.
//!
//! In: `DeviceInstruction`s in a mailbox. The mailbox has no bound of its own, so that the ring never waits for it;
//! residency's credits limit the batches in it, and the number of existing buffers limits the releases. Out:
//! `DeviceEvent`s, whose number is limited by the batches in flight. The same driver code serves every backend.
//!
//! Two things differ so much between backends that each backend does them itself:
//! - It spreads its work over threads: the host has a pool and threads for long launches; a GPU has copy threads.
//! - It finds out when a batch has ended. A backend that runs launches as function calls knows it at once. The GPU
//!   backend has a completion thread, since wgpu announces the end by a callback.
//!
//! Threads of a backend send signals ([`Backend::signals`]), which the driver passes on to the backend.
//!
//! Must hold:
//! - DRIVE-1: a thread takes an instruction from the mailbox only while it holds the lock on the backend, and keeps
//!   the lock until the backend has the instruction. So if the mailbox is empty and the lock is free, the backend has
//!   received every instruction that was sent.
//! - DRIVE-2: the driver's thread handles signals before instructions, because a signal can announce a loss, and a batch
//!   that is submitted to a lost device can only fail.
//! - DRIVE-3: when the backend returns a loss, batches that wait in the mailbox fail with that loss. The driver reports
//!   them as failed first, and the loss to the ring after that.
//! - DRIVE-4: if the driver's thread ends without a `Stop`, or the backend panics on whatever thread, the device is lost
//!   and not replaced. Batches that wait in the mailbox fail, and the ring is told, in the order of DRIVE-3.

use super::backend::{Backend, Context, DeviceLoss, Reports, blame_from, blamed};
use super::handle::{DeviceHandle, Inline, Reach};
use crate::config::{Config, DeviceChoice};
use crate::contract::batch::{Batch, Transfer};
use crate::contract::messages::device::{DeviceEvent, DeviceInstruction};
use crate::eager::{Eager, Look};
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

/// Sends to the ring, as events, what a backend reports.
pub(super) struct Told {
    /// The device's number, which each event carries.
    pub(super) device: DeviceId,
    /// The ring's mailbox.
    pub(super) events: Post<DeviceEvent>,
}

impl Reports for Told {
    fn readback(&self, transfer: Transfer, data: Result<Arc<HostBuffer>>) {
        // `put` does not wake the ring: the end of the batch follows at once, and `send` wakes the ring for both. An
        // error means that the ring has ended, and then the event is not needed.
        let _ = self.events.put(DeviceEvent::ReadbackDone { device: self.device, transfer, data });
    }

    fn finished(&self, batch: BatchId, faults: Vec<u32>, device_ns: u64) {
        let _ = self.events.send(DeviceEvent::BatchFinished { device: self.device, batch, faults, device_ns });
    }

    fn failed(&self, batch: BatchId, error: Error) {
        let _ = self.events.send(DeviceEvent::BatchFailed { device: self.device, batch, error });
    }
}

/// Starts the thread that drives a backend. The driver sends losses to `events`.
///
/// # Errors
/// `ErrorKind::Device` if the system starts no thread.
pub(super) fn start<B: Backend>(mut backend: B, context: &Context, events: Post<DeviceEvent>) -> Result<DeviceHandle> {
    let (instructions, mailbox) = unbounded();
    let (info, compiler, uploads) = (backend.info().clone(), backend.compiler(), backend.upload_memory());
    let driving = backend.driving();
    context.timeline.name_device(info.id, &info.name);
    let mut threads = backend.take_threads();
    // A test that holds the first batch must block the driver's thread, not the ring's, so the ring may run no batch.
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
    let desk = Arc::new(Desk { name: info.name.clone(), driver: Mutex::new(Some(driver)) });
    let inline = inlines.then(|| desk.clone() as Arc<dyn Inline>);
    let thread = std::thread::Builder::new().name(driving.thread).spawn(move || desk.run_to_its_end(ears));
    let thread = thread.map_err(|error| {
        Error::new(ErrorKind::Device, format!("the thread of the device {} did not start: {error}", info.name))
    })?;
    threads.insert(0, thread);
    Ok(DeviceHandle { info, reach: Reach { instructions, inline }, compiler, uploads, threads })
}

/// A backend and the state of its driver.
struct Driver<B> {
    backend: B,
    config: Arc<Config>,
    reports: Arc<dyn Reports>,
    lost: Told,
    /// How many batches the driver has taken so far, including those that it failed after a loss. Tests name a batch by
    /// this number.
    submitted: u64,
    /// `Stop` has arrived, or all senders of the mailbox are gone.
    stopping: bool,
}

/// The lock on a backend, which two threads share: the driver's, and the ring's for work that it runs itself (DRIVE-1).
struct Desk<B> {
    /// The device's name.
    name: String,
    /// `None` once the driver's thread has ended, for whatever reason, or the backend has panicked.
    driver: Mutex<Option<Driver<B>>>,
}

/// The channels from which the driver's thread receives, and how it waits for them.
struct Ears<S> {
    mailbox: Receiver<DeviceInstruction>,
    signals: Receiver<S>,
    timeline: Timeline,
    lane: &'static str,
    /// `None` if the thread sleeps at once instead of polling first.
    eager: Option<Eager>,
}

impl<B: Backend> Desk<B> {
    /// The body of the driver's thread. If [`Desk::run`] returns false or panics, the device is lost and not replaced
    /// (DRIVE-4).
    fn run_to_its_end(&self, ears: Ears<B::Signal>) {
        crate::threads::mark_own();
        let timeline = ears.timeline.clone();
        let mailbox = ears.mailbox.clone();
        let _guard = timeline.enter_thread(ears.lane);
        let outcome = catch_unwind(AssertUnwindSafe(|| self.run(ears)));
        let Some(mut driver) = self.driver.lock().take() else { return };
        let words = match outcome {
            Ok(true) => None,
            Ok(false) => Some("a thread of it has ended".to_owned()),
            Err(panic) => Some(format!("its thread panicked ({})", panic_words(&*panic))),
        };
        if let Some(words) = words {
            driver.ended(Err(self.loss(&words)), Some(&mailbox));
        }
        // Dropping a broken backend may panic again.
        drop(catch_unwind(AssertUnwindSafe(move || drop(driver))));
    }

    /// The loss of a device that is not replaced.
    fn loss(&self, words: &str) -> DeviceLoss {
        let error = Error::new(ErrorKind::DeviceLost, format!("the device was lost: {words}")).with_device(&*self.name);
        DeviceLoss { error, replaced: false }
    }

    /// Handles signals and instructions until `Stop` arrives or all senders of the mailbox are gone, and then returns
    /// true. Returns false if the backend's threads have dropped all senders of signals.
    fn run(&self, mut ears: Ears<B::Signal>) -> bool {
        let (mailbox, signals) = (ears.mailbox, ears.signals);
        let mut news = Select::new();
        news.recv(&signals);
        news.recv(&mailbox);
        loop {
            let mut look = ears.eager.as_ref().map(Eager::begin);
            while mailbox.is_empty() && signals.is_empty() && look.as_mut().is_some_and(Look::again) {}
            // `ready` waits for a message and takes none: messages are taken only under the lock (DRIVE-1).
            news.ready();
            if let (Some(eager), Some(look)) = (&mut ears.eager, &look) {
                eager.end(look);
            }
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
        let Some(mut place) = self.driver.try_lock() else { return Err(instruction) };
        let Some(driver) = place.as_mut().filter(|driver| driver.may_inline(&instruction, within_us)) else {
            return Err(instruction);
        };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| driver.hear(instruction, None))) {
            // DRIVE-4. The mailbox is empty.
            let words = format!("it panicked ({})", panic_words(&*panic));
            driver.ended(Err(self.loss(&words)), None);
            let broken = place.take();
            // A backend may wait for its threads while it is dropped: not on the ring's thread. It may panic again. If
            // the system starts no thread, the closure is dropped here.
            let apart = || std::thread::Builder::new().name("tidemill-lost".to_owned()).spawn(move || drop(broken));
            drop(catch_unwind(AssertUnwindSafe(apart)));
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

    /// Carries out an instruction. `mailbox` is `None` on the ring's thread, which only gets here while the mailbox is
    /// empty.
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

    /// Whether the faults that a test injects are meant for this device. They are meant for the device that the
    /// settings choose: the host, or else the device beside it.
    fn is_under_test(&self) -> bool {
        (self.config.device == DeviceChoice::Host) == self.backend.info().capabilities.owns_host_budget
    }

    /// Handles a loss, if `result` is one. Empties the mailbox first, because the instructions in it name memory that
    /// is gone: reports its batches as failed, and then sends the loss to the ring (DRIVE-3).
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

        fn has_brief_work(&self) -> bool {
            true
        }

        fn is_brief(&self, batch: &Batch, _within_us: f64) -> bool {
            batch.id.0 < 10
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

    fn batch(id: u64) -> DeviceInstruction {
        let (region, session) = (RegionId(0), SessionId(0));
        DeviceInstruction::Submit(Batch { id: BatchId(id), region, session, commands: Vec::new() })
    }

    fn submit(device: &DeviceHandle) {
        device.reach.instructions.send(batch(3)).unwrap();
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
    fn a_panic_of_a_backend_on_the_rings_thread_is_a_lost_device_and_does_not_unwind() {
        let (device, events) = broken(crossbeam_channel::never());
        let inline = device.reach.inline.as_ref().unwrap();
        assert!(inline.try_inline(batch(10), 1.0).is_err(), "it is too long");
        assert!(inline.try_inline(batch(3), 1.0).is_ok());
        assert_lost(events.recv().unwrap(), "it is broken", false);
        assert!(inline.try_inline(batch(4), 1.0).is_err(), "there is no device");
    }

    #[test]
    fn batches_that_wait_behind_a_panic_fail_before_the_loss_is_told() {
        let (sender, events) = flume::unbounded();
        let told = || Told { device: DeviceId::GPU, events: Post::from(sender.clone()) };
        let backend =
            Broken { info: DeviceInfo::toy(DeviceId::GPU, DeviceKind::Gpu), signals: crossbeam_channel::never() };
        let (instructions, mailbox) = unbounded();
        (3..6).for_each(|id| instructions.send(batch(id)).unwrap());
        let signals = backend.signals();
        let ears = Ears { mailbox, signals, timeline: Timeline::off(), lane: "broken", eager: None };
        let (config, reports) = (Arc::new(Config::default()), Arc::new(told()));
        let driver = Driver { backend, config, reports, lost: told(), submitted: 0, stopping: false };
        let desk = Desk { name: "broken".to_owned(), driver: Mutex::new(Some(driver)) };
        std::thread::scope(|scope| scope.spawn(|| desk.run_to_its_end(ears)).join().unwrap());
        for id in 4..6 {
            assert!(matches!(events.recv().unwrap(), DeviceEvent::BatchFailed { batch: BatchId(n), .. } if n == id));
        }
        assert_lost(events.recv().unwrap(), "it is broken", false);
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
