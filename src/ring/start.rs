//! Starts and ends a ring: threads, channels, and the order in which things end.
//!
//! In: settings and devices. Out: a [`Ring`]. Must hold: RING-1, RING-3; no thread waits for itself; the program waits
//! for the ring's end only if it awaits a shutdown, and no longer than the deadline allows.

use super::answers::Answers;
use super::devices::{Devices, Opener};
use super::idle::Idle;
use super::machines::Machines;
use super::run::{Control, Edges, Inbox, Loop};
use super::workers::Workers;
use super::{Gates, GatherTable};
use crate::claims::HostClaims;
use crate::config::Config;
use crate::contract::device::DeviceInfo;
use crate::contract::messages::device::DeviceEvent;
use crate::contract::messages::scheduler::SchedulerEvent;
use crate::device::handle::DeviceHandle;
use crate::error::{Error, ErrorKind, Result};
use crate::leaving::Leaving;
use crate::mail::{Mail, Post, mail};
use crate::stats::Counters;
use crate::threads;
use crate::timeline::Timeline;
use crate::{fusion, residency, scheduler};
use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::Shared;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest time that the end of a ring waits for its devices' threads. A thread that takes longer ends by itself.
const DEVICE_END_MAX: Duration = Duration::from_secs(5);
/// The end of a ring waits this long for its devices' threads even if the shutdown's deadline has passed, since idle
/// threads end within a millisecond.
const DEVICE_END_MIN: Duration = Duration::from_millis(20);

/// A running ring, as a runtime holds it. Dropping it asks the ring to end and does not wait. The ring's thread then
/// resolves all pending gathers to an error.
pub struct Ring {
    /// The scheduler's mailbox.
    pub events: Post<SchedulerEvent>,
    /// Open gathers.
    pub gathers: Arc<GatherTable>,
    /// The sessions' gates, through which credits come back.
    pub gates: Arc<Gates>,
    /// The open devices, and the one that may be opened on demand. The first is the host.
    pub devices: Arc<Devices>,
    /// Bytes of the host's budget that front ends hold, beside the runtime.
    pub(crate) claims: Arc<HostClaims>,
    control: Post<Control>,
    ended: Ended,
}

/// The end of a ring, for any number of callers who wait for it.
#[derive(Clone)]
pub struct Ended(Shared<oneshot::Receiver<Result<()>>>);

impl Ended {
    /// Waits until the ring has ended. It needs no particular executor.
    ///
    /// # Errors
    /// `ErrorKind::Io` where the timeline could not be written.
    pub async fn wait(self) -> Result<()> {
        self.0.await.unwrap_or_else(|_| {
            Err(Error::new(
                ErrorKind::Internal,
                "the runtime's thread ended without a result, which is a bug in Tidemill",
            ))
        })
    }
}

/// A handle to shut a ring down from another thread.
#[derive(Clone)]
pub struct Closer {
    control: Post<Control>,
}

impl Closer {
    /// Asks the ring to take no new work, to finish what is in flight until the deadline, and to fail the rest. Of
    /// several deadlines the earliest counts.
    pub fn shutdown(&self, deadline: Instant) {
        // Fails only where the ring has ended.
        let _ = self.control.send(Control::Shutdown(deadline));
    }
}

impl Ring {
    /// A handle to shut the ring down, and one to wait for its end.
    pub fn closer(&self) -> (Closer, Ended) {
        (Closer { control: self.control.clone() }, self.ended.clone())
    }

    /// Takes no new work, finishes what is in flight for at most `drain`, fails what is left, and ends the ring.
    #[cfg(test)]
    pub fn shutdown(&self, drain: Duration) -> impl Future<Output = Result<()>> + Send + 'static {
        let (closer, ended) = self.closer();
        closer.shutdown(Instant::now() + drain);
        ended.wait()
    }

    /// Entries of each table of the ring's thread, by its name.
    #[cfg(test)]
    pub fn tables(&self) -> Vec<(&'static str, usize)> {
        let (sender, answer) = flume::bounded(1);
        let _ = self.control.send(Control::Tables(sender));
        answer.recv().unwrap_or_default()
    }

    /// Whether the ring has ended and a caller has waited for that.
    #[cfg(test)]
    pub fn has_ended(&self) -> bool {
        self.ended.0.peek().is_some()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // Fails only where the ring has ended.
        let _ = self.control.send(Control::StopNow(Some(Leaving::begin())));
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
    let claims = Arc::new(HostClaims::new(host_bytes));
    let control_of_claims = control_sender.clone();
    // Fails only where the ring has ended.
    claims.asks(move || _ = control_of_claims.send(Control::GiveBack));
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
            config.injection().first_compile(),
        ),
        counters: counters.clone(),
        timeline: timeline.clone(),
    };
    let idle = Idle::new(config.idle_period());
    let machines = Machines::new(
        scheduler::run::Runner::new(scheduler, counters.clone(), timeline.clone()),
        fusion::state::State::new(infos.clone()),
        residency::state::State::new(infos, &config),
        claims.clone(),
        counters,
        timeline,
    );
    let inbox = Inbox { users, devices: device_events, workers, opened, control };
    let end = End {
        gathers: gathers.clone(),
        gates: gates.clone(),
        devices: devices.clone(),
        timeline: lane.clone(),
        ended: Some(ended_sender),
    };
    // The thread is not joined. It ends by itself after everything that it has to end.
    std::thread::Builder::new()
        .name("tidemill-ring".to_owned())
        .spawn(move || {
            threads::mark_own();
            let _guard = lane.enter_thread("ring");
            ring_thread(Loop::new(machines, inbox, edges, room, idle), end)
        })
        .map_err(|error| {
            Error::new(ErrorKind::Device, format!("the runtime's thread could not be started: {error}"))
        })?;
    Ok(Ring { events, gathers, gates, devices, claims, control: control_sender, ended: Ended(ended.shared()) })
}

/// Closes tables, gates and devices behind the loop, whichever way it ends.
struct End {
    gathers: Arc<GatherTable>,
    gates: Arc<Gates>,
    devices: Arc<Devices>,
    timeline: Timeline,
    ended: Option<oneshot::Sender<Result<()>>>,
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
    // The last turn of the loop may have left wakers.
    ring.call_wakes();
    end.close(why, ring.deadline());
    // The machines hold host data and plans, which takes time to free: they are dropped after all waiters were told.
    drop(catch_unwind(AssertUnwindSafe(move || drop(ring))));
}

impl End {
    /// Ends gathers and gates first, then the devices' threads, then the callers of a shutdown. `until` is the deadline
    /// of a shutdown. A device's thread, or a compilation, that is busy beyond it is left to end by itself.
    fn close(&mut self, why: Error, until: Option<Instant>) {
        self.devices.grants().close(&why);
        self.gathers.close(why);
        self.gates.close();
        let now = Instant::now();
        let until = until.unwrap_or(now + DEVICE_END_MAX).clamp(now + DEVICE_END_MIN, now + DEVICE_END_MAX);
        self.devices.close(until);
        // Threads that are left behind do not write to the timeline after this.
        let written = self.timeline.finish();
        if let Some(ended) = self.ended.take() {
            threads::contain("a waker of a shutdown's future", || {
                let _ = ended.send(written);
            });
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if self.ended.is_some() {
            let why =
                Error::new(ErrorKind::Internal, "the runtime stopped without a reason, which is a bug in Tidemill");
            self.close(why, None);
        }
    }
}
