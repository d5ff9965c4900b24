//! A backend under test: opens it, sends batches through its driver, collects what it reports.

use crate::config::{Config, DeviceChoice};
use crate::contract::batch::{Batch, Command, Slot, Transfer};
use crate::contract::device::{DeviceInfo, DeviceKind};
use crate::contract::messages::device::{DeviceEvent, DeviceInstruction};
use crate::device::Opening;
use crate::device::handle::DeviceHandle;
use crate::error::{Error, Result};
use crate::graph::{DType, Element};
use crate::host_buffer::HostBuffer;
use crate::ids::{BatchId, BufferId, DeviceId, RegionId, SessionId};
use crate::injection::Injection;
use crate::stats::Counters;
#[cfg(feature = "gpu")]
use crate::stats::Stats;
use crate::timeline::Timeline;
use std::sync::Arc;
use std::time::Duration;

/// Long enough for a busy machine, short enough to fail.
const EVENT_WAIT: Duration = Duration::from_secs(60);

/// The backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::device) enum Which {
    /// The host, first: the others are compared with it.
    Host,
    /// The fake device.
    Fake,
    /// The best adapter, where there is one.
    Gpu,
}

impl Which {
    pub(in crate::device) const ALL: [Which; 3] = [Which::Host, Which::Fake, Which::Gpu];
}

/// A backend and its events.
pub(in crate::device) struct Rig {
    pub(in crate::device) handle: DeviceHandle,
    pub(in crate::device) events: flume::Receiver<DeviceEvent>,
    #[cfg(feature = "gpu")]
    counters: Arc<Counters>,
    batches: u64,
    /// The next buffer that no work has named.
    pub(in crate::device) next_buffer: u64,
}

/// The results of a batch.
#[derive(Debug)]
pub(in crate::device) struct Done {
    pub(in crate::device) faults: Vec<u32>,
    pub(in crate::device) data: Vec<(Transfer, Arc<HostBuffer>)>,
}

impl Rig {
    /// Opens a backend; `None`, said aloud, where there is no adapter.
    pub(in crate::device) fn open(which: Which, injection: Injection) -> Option<Rig> {
        let device = if which == Which::Host { DeviceChoice::Host } else { DeviceChoice::Gpu(None) };
        let config = Config { device, injection, worker_threads: Some(2), ..Config::default() };
        Rig::opened(config, Timeline::off(), which == Which::Gpu, |opening| match which {
            Which::Host => opening.host(),
            Which::Fake => opening.fake(&DeviceInfo::toy(DeviceId::HOST, DeviceKind::Host)),
            #[cfg(feature = "gpu")]
            Which::Gpu => opening.gpu(None),
            #[cfg(not(feature = "gpu"))]
            Which::Gpu => Err(Error::new(crate::error::ErrorKind::Device, "this build has no GPU backend")),
        })
    }

    /// Opens a device with these settings. `None`, said aloud, if it may be missing on this machine, and is.
    pub(in crate::device) fn opened(
        config: Config,
        timeline: Timeline,
        may_be_missing: bool,
        open: impl FnOnce(Opening) -> Result<DeviceHandle>,
    ) -> Option<Rig> {
        let (sender, events) = flume::unbounded();
        let counters = Arc::new(Counters::default());
        let opening = Opening { config: Arc::new(config), counters: counters.clone(), timeline, events: sender.into() };
        match open(opening) {
            Ok(handle) => Some(Rig {
                handle,
                events,
                #[cfg(feature = "gpu")]
                counters,
                batches: 0,
                next_buffer: 1000,
            }),
            Err(error) if may_be_missing && !is_gpu_required() => {
                eprintln!("skipped, no adapter: {error}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    #[cfg(feature = "gpu")]
    pub(in crate::device) fn stats(&self) -> Stats {
        self.counters.read()
    }

    pub(in crate::device) fn tell(&self, instruction: DeviceInstruction) {
        self.handle.reach.instructions.send(instruction).unwrap();
    }

    /// Sends a batch.
    pub(in crate::device) fn submit(&mut self, commands: Vec<Command>) -> BatchId {
        let id = BatchId(self.batches);
        self.batches += 1;
        self.tell(DeviceInstruction::Submit(Batch { id, region: RegionId(id.0), session: SessionId(0), commands }));
        id
    }

    pub(in crate::device) fn event(&self) -> DeviceEvent {
        self.events.recv_timeout(EVENT_WAIT).expect("an event within a minute")
    }

    /// Waits for the end of a batch, which must be the next to end.
    pub(in crate::device) fn wait(&self, id: BatchId) -> Result<Done> {
        let mut data = Vec::new();
        loop {
            match self.event() {
                DeviceEvent::ReadbackDone { transfer, data: Ok(bytes), .. } => data.push((transfer, bytes)),
                DeviceEvent::ReadbackDone { data: Err(error), .. } => return Err(error),
                DeviceEvent::BatchFinished { batch, faults, .. } => {
                    assert_eq!(batch, id);
                    return Ok(Done { faults, data });
                }
                DeviceEvent::BatchFailed { batch, error, .. } => {
                    assert_eq!(batch, id);
                    return Err(error);
                }
                DeviceEvent::Lost { error, .. } => panic!("the device was lost: {error}"),
            }
        }
    }

    /// Sends a batch and waits for it.
    pub(in crate::device) fn run(&mut self, commands: Vec<Command>) -> Result<Done, Error> {
        let id = self.submit(commands);
        self.wait(id)
    }

    /// Sends a batch of one readback and waits for it.
    #[track_caller]
    pub(in crate::device) fn floats(&mut self, commands: Vec<Command>) -> Vec<f32> {
        let done = self.run(commands).unwrap_or_else(|error| panic!("{error}"));
        done.data[0].1.as_slice::<f32>().unwrap().to_vec()
    }

    /// Tells it to end and waits until it has; what it reported by then.
    pub(in crate::device) fn end(self) -> Vec<DeviceEvent> {
        self.tell(DeviceInstruction::Stop);
        for thread in self.handle.threads {
            thread.join().unwrap();
        }
        self.events.drain().collect()
    }

    pub(in crate::device) fn stop(self) {
        assert!(self.end().is_empty(), "nothing is reported that nobody waits for");
    }
}

/// Whether a missing adapter fails the tests of the GPU backend.
pub(in crate::device) fn is_gpu_required() -> bool {
    cfg!(feature = "gpu") && std::env::var_os("TIDEMILL_REQUIRE_GPU").is_some_and(|v| v == "1")
}

pub(in crate::device) fn allocate(buffer: u64, bytes: u64) -> Command {
    Command::Allocate { buffer: BufferId(buffer), bytes }
}

pub(in crate::device) fn free(buffer: u64) -> Command {
    Command::Free { buffer: BufferId(buffer) }
}

pub(in crate::device) fn slot(buffer: u64, offset: u64, bytes: u64) -> Slot {
    Slot { buffer: BufferId(buffer), offset, bytes }
}

pub(in crate::device) fn upload<T: Element>(data: &[T], to: Slot) -> Command {
    let from = HostBuffer::from_slice(data).shared();
    Command::Upload { from, first: 0, elements: data.len() as u64, to }
}

pub(in crate::device) fn readback(transfer: u64, from: Slot, dtype: DType, elements: u64) -> Command {
    Command::Readback { transfer: Transfer(transfer), from, dtype, elements }
}
