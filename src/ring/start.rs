//! Starting and ending a ring: threads, channels, and who waits for whom at the end.
//!
//! In: settings and devices. Out: a [`Ring`]. Must hold: RING-1, RING-3; no thread waits for itself, and nobody
//! waits for a device for ever.

use super::answers::Answers;
use super::devices::{Devices, Opener};
use super::machines::Machines;
use super::run::{Control, Edges, Inbox, Loop};
use super::workers::Workers;
use super::{Gates, GatherTable};
use crate::config::Config;
use crate::device::handle::DeviceHandle;
use crate::device::info::DeviceInfo;
use crate::device::message::DeviceEvent;
use crate::error::{Error, ErrorKind, Result};
use crate::mail::{Mail, Post, mail};
use crate::scheduler::message::SchedulerEvent;
use crate::stats::Counters;
use crate::threads;
use crate::timeline::Timeline;
use crate::{fusion, residency, scheduler};
use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::Shared;
use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long the end of a ring waits for a device that does not end.
const DEVICE_END_MAX: Duration = Duration::from_secs(5);

/// A running ring: what a runtime holds. Dropping it ends the ring; what is pending resolves to an error.
pub struct Ring {
    /// The scheduler's mailbox.
    pub events: Post<SchedulerEvent>,
    /// Open gathers.
    pub gathers: Arc<GatherTable>,
    /// The sessions' gates: credits come back through them.
    pub gates: Arc<Gates>,
    /// The devices that are open, and the one that may yet be opened; the first is the host.
    pub devices: Arc<Devices>,
    control: Post<Control>,
    thread: Mutex<Option<JoinHandle<()>>>,
    ended: Shared<oneshot::Receiver<()>>,
}

impl Ring {
    /// Takes no new work, finishes what is in flight for at most `drain`, fails what is left, and ends the ring.
    /// The returned future is ready when the ring and its devices have ended; it needs no particular executor.
    pub fn shutdown(&self, drain: Duration) -> impl Future<Output = ()> + Send + 'static {
        let far = Duration::from_secs(365 * 24 * 3600);
        let _ = self.control.send(Control::Shutdown(Instant::now() + drain.min(far)));
        self.ended.clone().map(|_| ())
    }

    /// Fails everything that is pending and waits for the ring's thread, unless called from a thread of a runtime's
    /// own.
    pub fn stop(&self) {
        let _ = self.control.send(Control::StopNow);
        let Some(thread) = self.thread.lock().take() else { return };
        // A future resolved on a thread of ours may hold the last handle of the runtime.
        if threads::is_own() {
            return;
        }
        let _ = thread.join();
    }

    /// Entries of each table of the ring's thread, by its name.
    #[cfg(test)]
    pub fn tables(&self) -> Vec<(&'static str, usize)> {
        let (sender, answer) = flume::bounded(1);
        let _ = self.control.send(Control::Tables(sender));
        answer.recv().unwrap_or_default()
    }

    /// Whether the ring has ended.
    pub fn has_ended(&self) -> bool {
        self.ended.peek().is_some() || self.thread.lock().as_ref().is_none_or(|t| t.is_finished())
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Starts a ring over devices that are open already; `device_events` is the receiving end of their contexts'
/// channel. The first device is the host. `opener` opens another one, when something is to be placed that could be
/// worth it.
///
/// # Errors
/// `ErrorKind::Device` if the ring's thread cannot be started.
pub fn start_with(
    devices: Vec<DeviceHandle>,
    opener: Option<Opener>,
    device_events: Mail<DeviceEvent>,
    config: Arc<Config>,
    timeline: Timeline,
    counters: Arc<Counters>,
) -> Result<Ring> {
    let infos: Vec<DeviceInfo> = devices.iter().map(|d| d.info.clone()).collect();
    let (events, users) = mail();
    let (control_sender, control) = mail();
    let (results, workers) = mail();
    let (opened_sender, opened) = mail();
    let (ended_sender, ended) = oneshot::channel();
    let gathers = Arc::new(GatherTable::default());
    let answers = Arc::new(Answers::new(gathers.clone(), counters.clone()));
    let watcher = answers.clone();
    device_events.watched_by(move |event| watcher.see(event));
    let host_bytes = infos.first().map_or(u64::MAX, |host| host.budget_bytes);
    let gates = Arc::new(Gates::new(config.pending_max(host_bytes)));
    let (lane, room) = (timeline.clone(), config.ring_room());
    let mut scheduler = scheduler::state::State::new(infos.clone(), &config);
    if opener.is_some() {
        scheduler = scheduler.with_promised_gpu();
    }
    let reaches = devices.iter().map(|d| d.reach.clone()).collect();
    let compilers = devices.iter().map(|d| d.compiler.clone()).collect();
    let devices = Arc::new(Devices::new(devices, opener, opened_sender, counters.clone()));
    let edges = Edges {
        gathers: gathers.clone(),
        answers,
        gates: gates.clone(),
        reaches,
        devices: devices.clone(),
        workers: Workers::new(
            config.worker_threads.unwrap_or_else(crate::threads::cores),
            compilers,
            results,
            timeline.clone(),
        ),
        counters: counters.clone(),
        timeline: timeline.clone(),
    };
    let machines = Machines::new(
        scheduler::run::Runner::new(scheduler, counters.clone(), timeline.clone()),
        fusion::state::State::new(infos.clone()),
        residency::state::State::new(infos, &config),
        counters,
        timeline,
    );
    let inbox = Inbox { users, devices: device_events, workers, opened, control };
    let end =
        End { gathers: gathers.clone(), gates: gates.clone(), devices: devices.clone(), ended: Some(ended_sender) };
    let thread = std::thread::Builder::new()
        .name("tidemill-ring".to_owned())
        .spawn(move || {
            threads::mark_own();
            let _guard = lane.enter_thread("ring");
            ring_thread(Loop::new(machines, inbox, edges, room), end)
        })
        .map_err(|error| Error::new(ErrorKind::Device, format!("the ring's thread could not be started: {error}")))?;
    Ok(Ring {
        events,
        gathers,
        gates,
        devices,
        control: control_sender,
        thread: Mutex::new(Some(thread)),
        ended: ended.shared(),
    })
}

/// What is closed behind the loop, whichever way it ends.
struct End {
    gathers: Arc<GatherTable>,
    gates: Arc<Gates>,
    devices: Arc<Devices>,
    ended: Option<oneshot::Sender<()>>,
}

fn ring_thread(mut ring: Loop, mut end: End) {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        ring.run();
        Error::new(ErrorKind::Shutdown, "the runtime has shut down")
    }));
    let why = outcome.unwrap_or_else(|panic| {
        let words = crate::error::panic_words(&*panic);
        Error::new(
            ErrorKind::Internal,
            format!("the runtime stopped on a broken invariant, a bug in Tidemill: {words}"),
        )
    });
    end.close(why);
    // The machines hold host data and plans; they go after everybody was told.
    drop(catch_unwind(AssertUnwindSafe(move || drop(ring))));
}

impl End {
    fn close(&mut self, why: Error) {
        self.devices.grants().close(&why);
        self.gathers.close(why);
        self.gates.close();
        self.devices.close(Instant::now() + DEVICE_END_MAX);
        if let Some(ended) = self.ended.take() {
            threads::contain("what the ring's end woke", || {
                let _ = ended.send(());
            });
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if self.ended.is_some() {
            self.close(Error::new(ErrorKind::Internal, "the ring ended without a reason, which is a bug in Tidemill"));
        }
    }
}
