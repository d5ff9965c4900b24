//! Runs generated modules on the default adapter, for tests: without pools or batches, with one buffer for each
//! binding.
//!
//! `kernels::test_device` opens the device, and says what happens if there is none.

pub(crate) use crate::kernels::test_device::validate;

use super::Target;
use super::dispatch::{KernelDispatch, dispatches};
use crate::graph::DType;
use crate::kernels::ir::{
    Access, Form, Geometry, HEADER_WORDS, IndexCompare, IndexOp, Inst, InstOp, Kernel, Monoid, Operand, Run, Store,
    Tile, Val,
};
use crate::kernels::library::Pass;
use crate::kernels::target::{FloatProfile, Precision};
use crate::kernels::test_device::TestDevice;
use crate::kernels::verify::{level_after, verify};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::OnceLock;

/// A device, and the pipelines that were made on it.
pub(crate) struct Gpu {
    device: &'static wgpu::Device,
    queue: &'static wgpu::Queue,
    pub(crate) target: Target,
    pipelines: Mutex<HashMap<String, (wgpu::ComputePipeline, wgpu::BindGroupLayout)>>,
}

/// A dispatch, with the numbers of the buffers that it binds.
struct Step {
    text: String,
    params: Vec<u32>,
    bound: Vec<usize>,
    grid: [u32; 3],
}

/// The device on which tests run.
pub(crate) fn gpu() -> Option<&'static Gpu> {
    static GPU: OnceLock<Option<Gpu>> = OnceLock::new();
    GPU.get_or_init(|| crate::kernels::test_device::open().map(Gpu::on)).as_ref()
}

impl Gpu {
    fn on(opened: &'static TestDevice) -> Gpu {
        let target = Target {
            f64: opened.f64,
            i64: opened.i64,
            precision: Precision::Accurate,
            profile: FloatProfile::UNFUSED,
            bindings_max: opened.bindings_max,
            immediate_words_max: 0,
        };
        Gpu { device: &opened.device, queue: &opened.queue, target, pipelines: Mutex::default() }
    }

    fn pipeline(&self, text: &str, bindings: usize) -> (wgpu::ComputePipeline, wgpu::BindGroupLayout) {
        if let Some(made) = self.pipelines.lock().get(text) {
            return made.clone();
        }
        validate(text);
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let descriptor = wgpu::ShaderModuleDescriptor { label: None, source: wgpu::ShaderSource::Wgsl(text.into()) };
        // The device runs kernels without injected bounds checks, so tests do, too.
        // SAFETY: the modules access no element outside of their operands, which these tests check.
        let checks = wgpu::ShaderRuntimeChecks { bounds_checks: false, ..wgpu::ShaderRuntimeChecks::checked() };
        let module = unsafe { self.device.create_shader_module_trusted(descriptor, checks) };
        let entries: Vec<_> = (0..bindings as u32)
            .map(|binding| wgpu::BindGroupLayoutEntry {
                binding,
                visibility: wgpu::ShaderStages::COMPUTE,
                ty: wgpu::BindingType::Buffer {
                    ty: wgpu::BufferBindingType::Storage { read_only: binding == 0 },
                    has_dynamic_offset: false,
                    min_binding_size: None,
                },
                count: None,
            })
            .collect();
        let layout =
            self.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries });
        let pipeline_layout = self.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: Some(&pipeline_layout),
            module: &module,
            entry_point: Some("main"),
            compilation_options: Default::default(),
            cache: None,
        });
        if let Some(error) = pollster::block_on(scope.pop()) {
            panic!("{error}\n{text}");
        }
        self.pipelines.lock().insert(text.to_string(), (pipeline.clone(), layout.clone()));
        (pipeline, layout)
    }

    fn buffer(&self, words: &[u32]) -> wgpu::Buffer {
        let size = (words.len() as u64 * 4).next_multiple_of(16).max(16);
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
        let buffer =
            self.device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false });
        self.queue.write_buffer(&buffer, 0, bytemuck::cast_slice(words));
        buffer
    }

    /// Runs steps in order over buffers with these words. Returns the words afterwards.
    fn run(&self, steps: &[Step], words: &[Vec<u32>]) -> Vec<Vec<u32>> {
        let buffers: Vec<wgpu::Buffer> = words.iter().map(|words| self.buffer(words)).collect();
        let mut encoder = self.device.create_command_encoder(&Default::default());
        for Step { text, params, bound, grid } in steps {
            let (pipeline, layout) = self.pipeline(text, bound.len() + 1);
            let params = self.buffer(params);
            let all = std::iter::once(&params).chain(bound.iter().map(|number| &buffers[*number]));
            let entries: Vec<_> = all
                .enumerate()
                .map(|(binding, buffer)| wgpu::BindGroupEntry {
                    binding: binding as u32,
                    resource: buffer.as_entire_binding(),
                })
                .collect();
            let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: None,
                layout: &layout,
                entries: &entries,
            });
            let mut pass = encoder.begin_compute_pass(&Default::default());
            pass.set_pipeline(&pipeline);
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups(grid[0], grid[1], grid[2]);
        }
        let staged: Vec<wgpu::Buffer> = buffers
            .iter()
            .map(|buffer| {
                let staged = self.device.create_buffer(&wgpu::BufferDescriptor {
                    label: None,
                    size: buffer.size(),
                    usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
                    mapped_at_creation: false,
                });
                encoder.copy_buffer_to_buffer(buffer, 0, &staged, 0, buffer.size());
                staged
            })
            .collect();
        self.queue.submit([encoder.finish()]);
        for buffer in &staged {
            buffer.map_async(wgpu::MapMode::Read, .., |result| result.expect("a test's buffer maps"));
        }
        self.device.poll(wgpu::PollType::wait_indefinitely()).expect("a test's device answers");
        staged
            .iter()
            .zip(words)
            .map(|(buffer, words)| {
                let view = buffer.get_mapped_range(..).expect("a mapped buffer");
                bytemuck::cast_slice::<u8, u32>(&view)[..words.len()].to_vec()
            })
            .collect()
    }

    /// Verifies, writes and runs a kernel over its tiles. Buffers are its operands' segments in order, then fault
    /// words.
    pub(crate) fn launch(
        &self,
        kernel: &Kernel,
        geometry: Geometry,
        body_params: &[u32],
        buffers: &[Vec<u32>],
        tiles: &[Tile],
        segment_shift: u32,
    ) -> Vec<Vec<u32>> {
        verify(kernel).unwrap_or_else(|error| panic!("{error}"));
        let text = super::write(kernel, &self.target).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(kernel.params, HEADER_WORDS + body_params.len() as u32);
        let mut steps = Vec::new();
        for tile in tiles {
            for KernelDispatch { header, grid } in dispatches(kernel, &geometry, *tile, segment_shift) {
                let params = [&header[..], body_params].concat();
                steps.push(Step { text: text.clone(), params, bound: (0..buffers.len()).collect(), grid });
            }
        }
        self.run(&steps, buffers)
    }

    /// Runs the passes of a library kernel. Buffers are its operands' segments in order, then fault words.
    pub(crate) fn passes(&self, passes: &[Pass], segments: &[u8], buffers: &[Vec<u32>]) -> Vec<Vec<u32>> {
        let first = |operand: u16| segments[..operand as usize].iter().map(|s| *s as usize).sum::<usize>();
        let steps: Vec<_> = passes
            .iter()
            .map(|pass| {
                let mut bound: Vec<usize> = pass
                    .operands
                    .iter()
                    .flat_map(|operand| first(*operand)..first(*operand) + segments[*operand as usize] as usize)
                    .collect();
                if pass.faults {
                    bound.push(buffers.len() - 1);
                }
                Step { text: pass.wgsl.clone(), params: pass.params.clone(), bound, grid: pass.grid }
            })
            .collect();
        self.run(&steps, buffers)
    }
}

/// The tile that covers a launch.
pub(crate) fn whole(kernel: &Kernel, geometry: &Geometry) -> Tile {
    let end = match *geometry {
        Geometry::Map { elements } => elements,
        Geometry::Reduce { outer: 1, inner } => inner,
        Geometry::Reduce { outer, .. } | Geometry::Scan { outer, .. } | Geometry::Line { outer, .. } => outer,
    };
    let _ = kernel;
    Tile { begin: 0, end, base: 0, base_wide: 0, last: true }
}

/// Builds kernels instruction by instruction. It finds levels and parameter slots itself.
pub(crate) struct Build {
    pub(crate) kernel: Kernel,
    pub(crate) params: Vec<u32>,
}

impl Build {
    pub(crate) fn new(form: Form) -> Build {
        let kernel = Kernel {
            form,
            operands: vec![],
            scratch: None,
            faults: false,
            params: HEADER_WORDS,
            insts: vec![],
            stores: vec![],
            rolled: None,
        };
        Build { kernel, params: vec![] }
    }

    pub(crate) fn operand(&mut self, dtype: DType, access: Access) -> u16 {
        self.kernel.operands.push(Operand { dtype, access, tiled: false, segments: 1 });
        self.kernel.operands.len() as u16 - 1
    }

    pub(crate) fn scratch(&mut self) {
        self.kernel.scratch = Some(self.operand(DType::U32, Access::Write));
    }

    pub(crate) fn inst(&mut self, op: InstOp, dtype: DType) -> Val {
        let level = level_after(&self.kernel, &op);
        self.kernel.insts.push(Inst { op, dtype, level });
        Val(self.kernel.insts.len() as u32 - 1)
    }

    /// A parameter with these words.
    pub(crate) fn param(&mut self, dtype: DType, words: &[u32]) -> Val {
        let slot = self.words(words);
        self.inst(InstOp::Param(slot), dtype)
    }

    /// Parameter words without an instruction.
    pub(crate) fn words(&mut self, words: &[u32]) -> u32 {
        let slot = self.kernel.params;
        self.params.extend_from_slice(words);
        self.kernel.params += words.len() as u32;
        slot
    }

    pub(crate) fn load(&mut self, operand: u16, index: Val, run: Run) -> Val {
        self.guarded(operand, index, run, None)
    }

    pub(crate) fn guarded(&mut self, operand: u16, index: Val, run: Run, guard: Option<Val>) -> Val {
        let dtype = self.kernel.operands[operand as usize].dtype;
        self.inst(InstOp::Load { operand, index, run, guard }, dtype)
    }

    pub(crate) fn index(&mut self, op: IndexOp, a: Val, b: Val) -> Val {
        self.inst(InstOp::Index(op, a, b), DType::U32)
    }

    pub(crate) fn compare(&mut self, op: IndexCompare, a: Val, b: Val) -> Val {
        self.inst(InstOp::Compare(op, a, b), DType::Bool)
    }

    pub(crate) fn apply(&mut self, op: crate::graph::ElementOp, args: &[Val], dtype: DType) -> Val {
        self.inst(InstOp::Apply(op, SmallVec::from_slice(args)), dtype)
    }

    pub(crate) fn reduce(&mut self, monoid: Monoid, args: &[Val]) -> Val {
        let dtype = self.kernel.inst(args[0]).dtype;
        self.inst(InstOp::Reduce { monoid, args: SmallVec::from_slice(args) }, dtype)
    }

    pub(crate) fn project(&mut self, of: Val, number: u8) -> Val {
        let InstOp::Reduce { monoid, args } = &self.kernel.inst(of).op else { panic!("no fold") };
        let dtype = monoid.components(self.kernel.inst(args[0]).dtype)[number as usize];
        self.inst(InstOp::Project(of, number), dtype)
    }

    pub(crate) fn store(&mut self, operand: u16, index: Option<Val>, value: Val, guard: Option<Val>) {
        self.kernel.stores.push(Store { operand, index, value, guard });
    }

    /// Runs the kernel over its whole space.
    pub(crate) fn run(&self, gpu: &Gpu, geometry: Geometry, buffers: &[Vec<u32>]) -> Vec<Vec<u32>> {
        gpu.launch(&self.kernel, geometry, &self.params, buffers, &[whole(&self.kernel, &geometry)], 30)
    }
}

/// The words of f32 elements.
pub(crate) fn words(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// The f32 elements of words.
pub(crate) fn floats(words: &[u32]) -> Vec<f32> {
    words.iter().map(|word| f32::from_bits(*word)).collect()
}

/// The words of f64 elements.
pub(crate) fn words64(values: &[f64]) -> Vec<u32> {
    values.iter().flat_map(|value| [value.to_bits() as u32, (value.to_bits() >> 32) as u32]).collect()
}

/// The f64 elements of words.
pub(crate) fn floats64(words: &[u32]) -> Vec<f64> {
    words.chunks(2).map(|pair| f64::from_bits(pair[0] as u64 | (pair[1] as u64) << 32)).collect()
}

/// Varied numbers, so small that sums of many are exact.
pub(crate) fn sample(count: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7919 + 13) % 101) as f32 - 50.0).collect()
}
