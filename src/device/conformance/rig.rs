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
use crate::timeline::Timeline;
use std::sync::Arc;
use std::time::Duration;

/// Long enough for a busy machine, short enough to fail.
const EVENT_WAIT: Duration = Duration::from_secs(60);

/// The backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// The host, first: the others are compared with it.
    Host,
    /// The fake device.
    Fake,
    /// The best adapter, where there is one.
    Gpu,
}

impl Which {
    pub(super) const ALL: [Which; 3] = [Which::Host, Which::Fake, Which::Gpu];
}

/// A backend and its events.
pub(super) struct Rig {
    pub(super) handle: DeviceHandle,
    pub(super) events: flume::Receiver<DeviceEvent>,
    batches: u64,
    /// The next buffer that no work has named.
    pub(super) next_buffer: u64,
}

/// What a batch came to.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) faults: Vec<u32>,
    pub(super) data: Vec<(Transfer, Arc<HostBuffer>)>,
}

impl Rig {
    /// Opens a backend; `None`, said aloud, where there is no adapter.
    pub(super) fn open(which: Which, injection: Injection) -> Option<Rig> {
        let (sender, events) = flume::unbounded();
        let device = if which == Which::Host { DeviceChoice::Host } else { DeviceChoice::Gpu(None) };
        let config = Config { device, injection, worker_threads: Some(2), ..Config::default() };
        let opening = Opening {
            config: Arc::new(config),
            counters: Arc::new(Counters::default()),
            timeline: Timeline::off(),
            events: sender.into(),
        };
        let opened = match which {
            Which::Host => opening.host(),
            Which::Fake => opening.fake(&DeviceInfo::toy(DeviceId::HOST, DeviceKind::Host)),
            #[cfg(feature = "gpu")]
            Which::Gpu => opening.gpu(None),
            #[cfg(not(feature = "gpu"))]
            Which::Gpu => return None,
        };
        let required = std::env::var_os("TIDEMILL_REQUIRE_GPU").is_some_and(|v| v == "1");
        match opened {
            Ok(handle) => Some(Rig { handle, events, batches: 0, next_buffer: 1000 }),
            Err(error) if which == Which::Gpu && !required => {
                eprintln!("skipped, no adapter: {error}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    pub(super) fn tell(&self, instruction: DeviceInstruction) {
        self.handle.reach.instructions.send(instruction).unwrap();
    }

    /// Sends a batch.
    pub(super) fn submit(&mut self, commands: Vec<Command>) -> BatchId {
        let id = BatchId(self.batches);
        self.batches += 1;
        self.tell(DeviceInstruction::Submit(Batch { id, region: RegionId(id.0), session: SessionId(0), commands }));
        id
    }

    pub(super) fn event(&self) -> DeviceEvent {
        self.events.recv_timeout(EVENT_WAIT).expect("an event within a minute")
    }

    /// Waits for the end of a batch, which must be the next to end.
    pub(super) fn wait(&self, id: BatchId) -> Result<Done> {
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
    pub(super) fn run(&mut self, commands: Vec<Command>) -> Result<Done, Error> {
        let id = self.submit(commands);
        self.wait(id)
    }

    /// Sends a batch of one readback and waits for it.
    #[track_caller]
    pub(super) fn floats(&mut self, commands: Vec<Command>) -> Vec<f32> {
        let done = self.run(commands).unwrap_or_else(|error| panic!("{error}"));
        done.data[0].1.as_slice::<f32>().unwrap().to_vec()
    }

    /// Tells it to end and waits until it has; what it reported by then.
    pub(super) fn end(self) -> Vec<DeviceEvent> {
        self.tell(DeviceInstruction::Stop);
        for thread in self.handle.threads {
            thread.join().unwrap();
        }
        self.events.drain().collect()
    }

    pub(super) fn stop(self) {
        assert!(self.end().is_empty(), "nothing is reported that nobody waits for");
    }
}

pub(super) fn allocate(buffer: u64, bytes: u64) -> Command {
    Command::Allocate { buffer: BufferId(buffer), bytes }
}

pub(super) fn free(buffer: u64) -> Command {
    Command::Free { buffer: BufferId(buffer) }
}

pub(super) fn slot(buffer: u64, offset: u64, bytes: u64) -> Slot {
    Slot { buffer: BufferId(buffer), offset, bytes }
}

pub(super) fn upload<T: Element>(data: &[T], to: Slot) -> Command {
    let from = HostBuffer::from_slice(data).shared();
    Command::Upload { from, first: 0, elements: data.len() as u64, to }
}

pub(super) fn readback(transfer: u64, from: Slot, dtype: DType, elements: u64) -> Command {
    Command::Readback { transfer: Transfer(transfer), from, dtype, elements }
}
