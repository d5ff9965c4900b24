//! Pipelines: one for each kernel structure or library pass, compiled once per device, on any thread.
//!
//! In: plans (ahead of time) and launches (at the latest). Out: pipelines and their layouts. A failed compilation is
//! not cached: its region fails with the compiler's message, and the next region tries again.

use super::driver_cache::DriverCache;
use super::known::{Known, Shader};
use super::raw_device::Gpu;
use super::shaders::Shaders;
use super::uploads::Uploads;
use crate::contract::device::shift_for;
use crate::contract::plan::{Launch, Plan, Program, Step};
use crate::device::backend::Compiler;
use crate::error::{Error, ErrorKind, Result};
use crate::kernels::ir::Kernel;
use crate::kernels::library::Pass;
use crate::stats::Counters;
use parking_lot::{Mutex, RwLock};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// What identifies a pipeline. Kernels hash by their structure's hash and compare by structure.
#[derive(Clone)]
pub(super) enum Key {
    /// A generated kernel.
    Kernel(u64, Arc<Kernel>),
    /// A library pass, and its storage bindings.
    Pass(String, u32),
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        match (self, other) {
            (Key::Kernel(a, x), Key::Kernel(b, y)) => a == b && (Arc::ptr_eq(x, y) || x == y),
            (Key::Pass(a, x), Key::Pass(b, y)) => x == y && a == b,
            (Key::Kernel(..), Key::Pass(..)) | (Key::Pass(..), Key::Kernel(..)) => false,
        }
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Key::Kernel(hash, _) => state.write_u64(*hash),
            Key::Pass(key, bindings) => (key, bindings).hash(state),
        }
    }
}

/// The interface of a pipeline: its bindings and immediates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Given {
    /// Storage buffers after the parameters.
    pub(super) bindings: u32,
    /// Parameter words that are immediates; with 0 the parameters are binding 0, at a dynamic offset.
    pub(super) immediate_words: u32,
}

/// A layout: parameters, then read-write storage buffers.
pub(super) struct Layout {
    /// The layout of bind group 0.
    pub(super) group: wgpu::BindGroupLayout,
    pipeline: wgpu::PipelineLayout,
}

/// A compiled pipeline.
pub(super) struct Pipeline {
    /// The wgpu pipeline.
    pub(super) pipeline: wgpu::ComputePipeline,
    /// Its layout.
    pub(super) layout: Arc<Layout>,
    /// Its interface.
    pub(super) given: Given,
}

/// The cache entry of a key. It is locked during compilation, so that no other thread compiles the same pipeline.
type Place = Arc<Mutex<Option<Arc<Pipeline>>>>;

/// The pipelines of one device.
#[derive(Default)]
pub(super) struct Pipelines {
    layouts: Mutex<FxHashMap<Given, Arc<Layout>>>,
    places: Mutex<FxHashMap<Key, Place>>,
    /// Pipelines that were compiled in advance and not used yet.
    warm: Mutex<FxHashMap<Shader, Place>>,
}

impl Pipelines {
    /// The pipeline of a generated kernel.
    pub(super) fn kernel(&self, maker: &Maker, at: &Station, kernel: &Arc<Kernel>, hash: u64) -> Result<Arc<Pipeline>> {
        let immediate_words = maker.shaders.immediate_words(kernel);
        let given = Given { bindings: kernel_bindings(kernel), immediate_words };
        self.get(maker, at, Key::Kernel(hash, kernel.clone()), given, || maker.shaders.kernel(kernel))
    }

    /// The pipeline of a library pass.
    pub(super) fn pass(&self, maker: &Maker, at: &Station, pass: &Pass, segments: &[u8]) -> Result<Arc<Pipeline>> {
        let bindings = pass_bindings(pass, segments);
        let given = Given { bindings, immediate_words: 0 };
        self.get(maker, at, Key::Pass(pass.key.clone(), bindings), given, || Ok(pass.wgsl.clone()))
    }

    fn get(
        &self,
        maker: &Maker,
        at: &Station,
        key: Key,
        given: Given,
        text: impl FnOnce() -> Result<String>,
    ) -> Result<Arc<Pipeline>> {
        let place = self.places.lock().entry(key).or_default().clone();
        let mut place = place.lock();
        if let Some(pipeline) = &*place {
            return Ok(pipeline.clone());
        }
        let layout = self.layout(&at.gpu, given)?;
        let wgsl = text()?;
        if let Some(known) = &at.known {
            known.needed(given, &wgsl);
        }
        let pipeline = match self.take_warm(given, &wgsl) {
            Some(pipeline) => pipeline,
            None => {
                let pipeline = compile(at, &layout, &wgsl)?;
                Counters::add(&maker.counters.pipelines_compiled, 1);
                Arc::new(Pipeline { pipeline, layout, given })
            }
        };
        *place = Some(pipeline.clone());
        Ok(pipeline)
    }

    /// The pipeline of a shader that was compiled in advance. Waits if it is being compiled.
    fn take_warm(&self, given: Given, wgsl: &str) -> Option<Arc<Pipeline>> {
        let place = self.warm.lock().remove(&(given, wgsl.into()))?;
        place.lock().take()
    }

    /// Compiles a shader in advance. An error is ignored here; it is reported when the shader is needed.
    fn warm(&self, maker: &Maker, at: &Station, shader: Shader) {
        let (given, wgsl) = shader.clone();
        let place = Place::default();
        let mut locked = place.lock();
        self.warm.lock().insert(shader, place.clone());
        let made = self.layout(&at.gpu, given).and_then(|layout| Ok((compile(at, &layout, &wgsl)?, layout)));
        if let Ok((pipeline, layout)) = made {
            Counters::add(&maker.counters.pipelines_warmed, 1);
            *locked = Some(Arc::new(Pipeline { pipeline, layout, given }));
        }
    }

    fn layout(&self, gpu: &Gpu, given: Given) -> Result<Arc<Layout>> {
        let mut layouts = self.layouts.lock();
        if let Some(layout) = layouts.get(&given) {
            return Ok(layout.clone());
        }
        let layout = Arc::new(make_layout(gpu, given)?);
        layouts.insert(given, layout.clone());
        Ok(layout)
    }
}

/// Storage buffers that a kernel binds after its parameters.
fn kernel_bindings(kernel: &Kernel) -> u32 {
    kernel.operands.iter().map(|o| u32::from(o.segments.max(1))).sum::<u32>() + u32::from(kernel.faults)
}

/// Storage buffers that a pass binds after its parameters.
fn pass_bindings(pass: &Pass, segments: &[u8]) -> u32 {
    let operand = |o: &u16| segments.get(usize::from(*o)).map_or(1, |s| u32::from(*s));
    pass.operands.iter().map(operand).sum::<u32>() + u32::from(pass.faults)
}

fn make_layout(gpu: &Gpu, given: Given) -> Result<Layout> {
    let entry = |binding: u32| wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer {
            ty: wgpu::BufferBindingType::Storage { read_only: binding == 0 },
            has_dynamic_offset: binding == 0,
            min_binding_size: None,
        },
        count: None,
    };
    let first = u32::from(given.immediate_words > 0);
    let entries: Vec<_> = (first..=given.bindings).map(entry).collect();
    gpu.checked(|| {
        let group =
            gpu.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries });
        let pipeline = gpu.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&group)],
            immediate_size: given.immediate_words * 4,
        });
        Layout { group, pipeline }
    })
}

/// The runtime checks that wgpu injects into shaders. Debug builds have all. In release builds, generated kernels clamp
/// indices from data and bound their loops themselves, but rely on the checks of integer divisions.
fn runtime_checks() -> wgpu::ShaderRuntimeChecks {
    let mut checks = wgpu::ShaderRuntimeChecks::checked();
    if !cfg!(debug_assertions) {
        checks.bounds_checks = false;
        checks.force_loop_bounding = false;
    }
    checks
}

fn compile(at: &Station, layout: &Layout, wgsl: &str) -> Result<wgpu::ComputePipeline> {
    let gpu = &at.gpu;
    let made = gpu.checked(|| {
        let descriptor = wgpu::ShaderModuleDescriptor { label: None, source: wgpu::ShaderSource::Wgsl(wgsl.into()) };
        // SAFETY: the text is written by `kernels/`, whose accesses are clamped to their operands and whose
        // loops end (`kernels::verify`); the checks that it relies on are on. A text from a file (`known`) is compiled as
        // well, and runs only where `kernels/` has written the same one (`Pipelines::take_warm`).
        let module = unsafe { gpu.device.create_shader_module_trusted(descriptor, runtime_checks()) };
        gpu.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: Some(&layout.pipeline),
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: at.driver_cache.as_ref().map(DriverCache::cache),
        })
    });
    if let Some(cache) = at.driver_cache.as_ref().filter(|_| made.is_ok()) {
        cache.compiled();
    }
    made.map_err(|error| match error.kind() {
        ErrorKind::Internal => {
            let message = format!("the kernel does not compile: {}", error.message());
            Error::new(ErrorKind::Internal, message).with_device(gpu.name.clone())
        }
        _ => error,
    })
}

/// What compilation needs besides the device.
pub(super) struct Maker {
    /// The source of shader texts.
    pub(super) shaders: Arc<dyn Shaders>,
    /// The counters of compilations.
    pub(super) counters: Arc<Counters>,
    /// log2 of the 32-bit elements that one binding spans.
    pub(super) span_shift: u32,
}

/// A device with its pipelines, its upload memory and its caches on disk. A lost device is replaced with all of these.
pub(super) struct Station {
    /// The device.
    pub(super) gpu: Gpu,
    /// Its pipelines.
    pub(super) pipelines: Pipelines,
    /// Mapped memory that users fill for it.
    pub(super) uploads: Uploads,
    /// The driver's compiled pipelines, on disk.
    pub(super) driver_cache: Option<DriverCache>,
    /// The shaders that runs need, on disk.
    pub(super) known: Option<Known>,
}

impl Station {
    /// Stores compiled pipelines and needed shaders on disk.
    pub(super) fn keep(&self) {
        if let Some(cache) = &self.driver_cache {
            cache.keep();
        }
        if let Some(known) = &self.known {
            known.keep();
        }
    }
}

/// The current device; `None` while it is being replaced, and once it is lost for good or its runtime has ended.
pub(super) type Current = Arc<RwLock<Option<Arc<Station>>>>;

/// Compiles, one after the other, at most `most` of the shaders that earlier runs needed most often. Stops when the
/// device is gone.
pub(super) fn warm_up(current: &Current, maker: &Maker, most: usize) {
    let station = || current.read().clone();
    let shaders = station().and_then(|at| Some(at.known.as_ref()?.most_needed(most))).unwrap_or_default();
    for shader in shaders {
        let Some(at) = station() else { return };
        if !at.known.as_ref().is_some_and(|known| known.is_needed(&shader)) {
            at.pipelines.warm(maker, &at, shader);
        }
    }
}

/// Compiles pipelines of plans before they are dispatched.
pub(super) struct GpuCompiler {
    /// The device.
    pub(super) current: Current,
    /// The source of shaders, and the counters.
    pub(super) maker: Arc<Maker>,
}

impl GpuCompiler {
    fn segments(&self, plan: &Plan, launch: &Launch) -> Vec<u8> {
        let of = |buffer: u32| {
            let buffer = &plan.buffers[buffer as usize];
            buffer.elements.div_ceil(1 << shift_for(self.maker.span_shift, buffer.dtype)).clamp(1, 255) as u8
        };
        launch.uses.iter().map(|u| if u.tiled { 1 } else { of(u.buffer) }).collect()
    }

    /// Whether the device still exists.
    fn serves(&self) -> bool {
        self.current.read().is_some()
    }

    fn prepare_launch(&self, station: &Station, plan: &Plan, launch: &Launch) -> Result<()> {
        let pipelines = &station.pipelines;
        match &launch.program {
            Program::Kernel(kernel, hash) => pipelines.kernel(&self.maker, station, kernel, *hash).map(drop),
            Program::Library(library) => {
                let segments = self.segments(plan, launch);
                let passes = self.maker.shaders.passes(library, &segments, self.maker.span_shift)?;
                passes
                    .par_iter()
                    .filter(|_| self.serves())
                    .try_for_each(|pass| pipelines.pass(&self.maker, station, pass, &segments).map(drop))
            }
        }
    }
}

fn launches(plan: &Plan) -> impl Iterator<Item = &Arc<Launch>> {
    plan.steps.iter().filter_map(|step| match step {
        Step::Launch(launch) => Some(launch),
        Step::Copy { .. } | Step::Pack { .. } => None,
    })
}

impl Compiler for GpuCompiler {
    fn prepare(&self, plan: &Plan) -> Result<()> {
        // Without a device there is nothing to compile. The batch will fail with the error.
        let Some(station) = self.current.read().clone() else { return Ok(()) };
        // A kernel that the plan contains several times is compiled once, because its cache entry is locked meanwhile.
        // A thread that holds an entry waits for nothing, so a worker that takes up another launch while it waits
        // cannot deadlock with itself.
        let launches: Vec<&Arc<Launch>> = launches(plan).collect();
        launches.par_iter().filter(|_| self.serves()).try_for_each(|launch| {
            match self.prepare_launch(&station, plan, launch) {
                // Treated like a missing device: the batch will fail, and that makes the queue thread replace the
                // device.
                Err(error) if error.kind() == ErrorKind::DeviceLost => Ok(()),
                made => made.map_err(|error| {
                    let (op, site) = launch.blame;
                    error.with_op(op).with_site(site).with_device(station.gpu.name.clone())
                }),
            }
        })
    }
}
