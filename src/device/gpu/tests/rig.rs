//! A device under test: opens it, sends batches, collects events.

use crate::config::Config;
use crate::contract::batch::{Batch, Command, Slot, Transfer};
use crate::contract::device::DeviceInfo;
use crate::contract::messages::device::{DeviceEvent, DeviceInstruction};
use crate::contract::plan::{Launch, Program};
use crate::device::Opening;
use crate::device::gpu::open_with;
use crate::device::gpu::shaders::{Call, Shaders};
use crate::device::handle::DeviceHandle;
use crate::error::{Error, Result};
use crate::graph::{DType, Element};
use crate::host_buffer::HostBuffer;
use crate::ids::{BatchId, BufferId, DeviceId, RegionId, SessionId};
use crate::kernels::ir::{Access, Form, Geometry, Kernel, Operand, Tile};
use crate::kernels::library::{Library, Pass};
use crate::kernels::target::Precision;
use crate::stats::{Counters, Stats};
use crate::timeline::Timeline;
use std::sync::Arc;
use std::time::Duration;

/// Long enough for a busy machine, short enough to fail.
const EVENT_WAIT: Duration = Duration::from_secs(60);

/// `out[i] = in[i] * params[16] + params[17]`, and fault word `params[19] + params[0]` where it
/// exceeds `params[18]` (word 0 is zero in our headers, and the fault word's number in library passes).
pub(super) const SCALE_WGSL: &str = "
@group(0) @binding(0) var<storage, read> params: array<u32>;
@group(0) @binding(1) var<storage, read_write> a: array<f32>;
@group(0) @binding(2) var<storage, read_write> b: array<f32>;
@group(0) @binding(3) var<storage, read_write> faults: array<atomic<u32>>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= arrayLength(&a) { return; }
    let y = a[id.x] * bitcast<f32>(params[16]) + bitcast<f32>(params[17]);
    b[id.x] = y;
    if y > bitcast<f32>(params[18]) { atomicStore(&faults[params[19] + params[0]], 1u); }
}
";

/// Hand-written text for every kernel.
pub(super) struct Written(pub(super) &'static str);

impl Shaders for Written {
    fn kernel(&self, _kernel: &Kernel) -> Result<String> {
        Ok(self.0.to_owned())
    }

    fn immediate_words(&self, _kernel: &Kernel) -> u32 {
        0
    }

    fn calls(&self, _kernel: &Kernel, _geometry: &Geometry, tile: Tile, _segment_shift: u32) -> Vec<Call> {
        vec![Call { header: [0; 16], grid: [(tile.end - tile.begin).div_ceil(256), 1, 1] }]
    }

    fn passes(&self, library: &Library, _segments: &[u8], _segment_shift: u32) -> Result<Arc<Vec<Pass>>> {
        let pass = Pass {
            key: library.name().to_owned(),
            wgsl: self.0.to_owned(),
            params: [[0; 16].as_slice(), &[2f32.to_bits(), 0f32.to_bits(), 7f32.to_bits(), 0]].concat(),
            operands: vec![1, 0],
            faults: true,
            grid: [1, 1, 1],
        };
        Ok(Arc::new(vec![pass]))
    }
}

/// A device, its events and its counters.
pub(super) struct Rig {
    pub(super) handle: DeviceHandle,
    pub(super) events: flume::Receiver<DeviceEvent>,
    counters: Arc<Counters>,
    batches: u64,
}

/// What a batch came to.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) faults: Vec<u32>,
    pub(super) data: Vec<(Transfer, Arc<HostBuffer>)>,
}

/// A device with default settings, or `None` (said aloud) where there is no adapter.
pub(super) fn rig() -> Option<Rig> {
    rig_with(Config::default(), SCALE_WGSL)
}

pub(super) fn rig_with(config: Config, wgsl: &'static str) -> Option<Rig> {
    rig_of(config, Timeline::off(), |_, _| Arc::new(Written(wgsl)))
}

pub(super) fn rig_of(
    config: Config,
    timeline: Timeline,
    shaders: impl FnOnce(Precision, &DeviceInfo) -> Arc<dyn Shaders>,
) -> Option<Rig> {
    let (sender, events) = flume::unbounded();
    let counters = Arc::new(Counters::default());
    let opening = Opening { config: Arc::new(config), counters: counters.clone(), timeline, events: sender.into() };
    let opened = opening.start(DeviceId::GPU, |context| open_with(None, DeviceId::GPU, context, true, shaders));
    match opened {
        Ok(handle) => Some(Rig { handle, events, counters, batches: 0 }),
        Err(error) if std::env::var_os("TIDEMILL_REQUIRE_GPU").is_some_and(|v| v == "1") => {
            panic!("TIDEMILL_REQUIRE_GPU=1, but: {error}")
        }
        Err(error) => {
            eprintln!("skipped, no adapter: {error}");
            None
        }
    }
}

/// Whether there is no adapter, which a test says that is skipped then.
pub(in super::super) fn no_adapter() -> bool {
    let none = crate::device::gpu::adapters().is_empty();
    assert!(
        !none || std::env::var_os("TIDEMILL_REQUIRE_GPU").is_none_or(|v| v != "1"),
        "TIDEMILL_REQUIRE_GPU=1, but no adapter"
    );
    if none {
        eprintln!("skipped: no adapter");
    }
    none
}

impl Rig {
    /// Sends a batch.
    pub(super) fn submit(&mut self, commands: Vec<Command>) -> BatchId {
        let id = BatchId(self.batches);
        self.batches += 1;
        let batch = Batch { id, region: RegionId(id.0), session: SessionId(0), commands };
        self.handle.reach.instructions.send(DeviceInstruction::Submit(batch)).unwrap();
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

    pub(super) fn stats(&self) -> Stats {
        self.counters.read()
    }

    /// Stops it and joins its threads.
    pub(super) fn stop(self) {
        self.handle.reach.instructions.send(DeviceInstruction::Stop).unwrap();
        for thread in self.handle.threads {
            thread.join().unwrap();
        }
    }
}

pub(super) fn allocate(buffer: u64, bytes: u64) -> Command {
    Command::Allocate { buffer: BufferId(buffer), bytes }
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

/// A launch of the hand-written kernel: `b = a * scale + offset`, and fault `word` above `limit`.
#[track_caller]
pub(super) fn launch(scale: f32, offset: f32, limit: f32, word: u32) -> Arc<Launch> {
    let operand = |access| Operand { dtype: DType::F32, access, tiled: true, segments: 1 };
    let kernel = Kernel {
        form: Form::Map,
        operands: vec![operand(Access::Read), operand(Access::Write)],
        scratch: None,
        faults: true,
        params: 20,
        insts: Vec::new(),
        stores: Vec::new(),
    };
    launch_of(Program::Kernel(Arc::new(kernel), 7), vec![scale.to_bits(), offset.to_bits(), limit.to_bits(), word])
}

#[track_caller]
pub(super) fn launch_of(program: Program, body: Vec<u32>) -> Arc<Launch> {
    Arc::new(Launch {
        program,
        geometry: Geometry::Map { elements: 0 },
        params: [vec![0; 16], body].concat(),
        uses: Default::default(),
        faults: Some(0),
        label: "scale".into(),
        ops: 1,
        bytes_read: 10,
        bytes_written: 20,
        split: None,
        blame: ("scale", std::panic::Location::caller().into()),
        provenance: Default::default(),
    })
}

pub(super) fn dispatch(launch: &Arc<Launch>, a: Slot, b: Slot, faults: Slot, elements: u32) -> Command {
    Command::Dispatch {
        launch: launch.clone(),
        tile: Tile { begin: 0, end: elements, base: 0, base_wide: 0, last: true },
        bindings: vec![smallvec::smallvec![a], smallvec::smallvec![b]],
        faults: Some(faults),
        span_shift: 20,
    }
}
