//! A GPU under test, with shaders that the test has written, and launches of them.

use crate::config::Config;
use crate::contract::batch::{Command, Slot};
use crate::contract::device::DeviceInfo;
use crate::contract::plan::{Launch, Program};
use crate::device::conformance::rig::is_gpu_required;
pub(super) use crate::device::conformance::rig::{Rig, allocate, readback, slot, upload};
use crate::device::gpu::open_with;
use crate::device::gpu::shaders::{Call, Shaders};
use crate::error::Result;
use crate::graph::DType;
use crate::ids::DeviceId;
use crate::kernels::ir::{Access, Form, Geometry, Kernel, Operand, Tile};
use crate::kernels::library::{Library, Pass};
use crate::kernels::target::Precision;
use crate::timeline::Timeline;
use std::sync::Arc;

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
    Rig::opened(config, timeline, true, |opening| {
        opening.start(DeviceId::GPU, |context| open_with(None, DeviceId::GPU, context, true, shaders))
    })
}

/// Whether there is no adapter, which a test says that is skipped then.
pub(in super::super) fn no_adapter() -> bool {
    let none = crate::device::gpu::adapters().is_empty();
    assert!(!none || !is_gpu_required(), "TIDEMILL_REQUIRE_GPU=1, but no adapter");
    if none {
        eprintln!("skipped: no adapter");
    }
    none
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
        rolled: None,
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
