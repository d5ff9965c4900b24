//! A GPU through wgpu alone, with hand-written WGSL, as a peer for Tidemill on the same GPU.
//!
//! In: an adapter's number and sizes. Out: the bandwidth of a plain `vec4` copy kernel, and the time of a tiny kernel
//! and the readback of its result. Both results are checked.

use std::time::Instant;

/// Copies in one submission, so that its fixed cost is negligible.
const RUNS: u32 = 20;

const COPY: &str = "
@group(0) @binding(0) var<storage, read> from_: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> to_: array<vec4<f32>>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * 256u + lane;
    if i < arrayLength(&to_) { to_[i] = from_[i]; }
}";

const INCREMENT: &str = "
@group(0) @binding(0) var<storage, read_write> numbers: array<f32>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) at: vec3<u32>) {
    if at.x < arrayLength(&numbers) { numbers[at.x] = numbers[at.x] + 1.0; }
}";

/// A GPU without Tidemill.
pub struct Raw {
    device: wgpu::Device,
    queue: wgpu::Queue,
    /// The most bytes that can be bound at a time. A large array may have more, but the bandwidth is the same.
    bytes_max: u64,
}

/// A kernel and its bindings.
struct Bound {
    pipeline: wgpu::ComputePipeline,
    group: wgpu::BindGroup,
}

impl Raw {
    /// Opens an adapter; `None` if there is none with this number.
    pub fn open(adapter: usize) -> Option<Raw> {
        let name = tidemill::adapters().into_iter().nth(adapter)?.name;
        let instance = wgpu::Instance::default();
        let adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()));
        let adapter = adapters.into_iter().find(|a| a.get_info().name == name)?;
        let limits = adapter.limits();
        let bytes_max = limits.max_storage_buffer_binding_size.min(limits.max_buffer_size);
        let descriptor = wgpu::DeviceDescriptor { required_limits: limits, ..Default::default() };
        let (device, queue) = pollster::block_on(adapter.request_device(&descriptor)).ok()?;
        Some(Raw { device, queue, bytes_max })
    }

    fn buffer(&self, size: u64, usage: wgpu::BufferUsages) -> wgpu::Buffer {
        self.device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false })
    }

    fn bound(&self, shader: &str, buffers: &[&wgpu::Buffer]) -> Bound {
        let source = wgpu::ShaderSource::Wgsl(shader.into());
        let module = self.device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source });
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: Some("main"),
            compilation_options: Default::default(),
            cache: None,
        });
        let entries: Vec<_> = (0u32..)
            .zip(buffers)
            .map(|(binding, buffer)| wgpu::BindGroupEntry { binding, resource: buffer.as_entire_binding() })
            .collect();
        let layout = &pipeline.get_bind_group_layout(0);
        let group =
            self.device.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout, entries: &entries });
        Bound { pipeline, group }
    }

    /// Gigabytes that a copy kernel reads and writes in a second.
    pub fn copy_gb_per_s(&self, bytes: u64) -> Option<f64> {
        let bytes = bytes.min(self.bytes_max) / 16 * 16;
        let from = self.buffer(bytes, wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST);
        let to = self.buffer(bytes, wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC);
        let pattern: Vec<u8> = (0..=255).cycle().take(4096).collect();
        self.queue.write_buffer(&from, bytes - 4096, &pattern);
        let bound = self.bound(COPY, &[&from, &to]);
        let groups = (bytes / 16).div_ceil(256) as u32;
        let (x, y) = (groups.min(65_535), groups.div_ceil(65_535));
        let mut times: Vec<f64> = (0..6)
            .map(|_| {
                let mut encoder = self.device.create_command_encoder(&Default::default());
                bound.dispatch(&mut encoder, RUNS, [x, y]);
                let begin = Instant::now();
                self.queue.submit([encoder.finish()]);
                self.device.poll(wgpu::PollType::wait_indefinitely()).ok()?;
                Some(begin.elapsed().as_secs_f64())
            })
            .collect::<Option<_>>()?;
        assert!(self.read(&to, bytes - 4096, 4096)? == pattern, "the copy kernel did not copy");
        // The first run includes the cost of touching memory for the first time.
        times.remove(0);
        times.sort_by(f64::total_cmp);
        Some(2.0 * bytes as f64 * f64::from(RUNS) / times[times.len() / 2] / 1e9)
    }

    /// Microseconds from the recording of a kernel over 1000 numbers until one of them is in host memory, with one
    /// submission. This is the driver's time for the shortest round trip.
    pub fn trip_us(&self, rounds: usize) -> Option<f64> {
        let numbers = self.buffer(4000, wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC);
        let back = self.buffer(4, wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ);
        let bound = self.bound(INCREMENT, &[&numbers]);
        let mut times = Vec::with_capacity(rounds);
        for round in 0..rounds {
            let begin = Instant::now();
            let mut encoder = self.device.create_command_encoder(&Default::default());
            bound.dispatch(&mut encoder, 1, [4, 1]);
            encoder.copy_buffer_to_buffer(&numbers, 0, &back, 0, 4);
            self.queue.submit([encoder.finish()]);
            back.slice(..).map_async(wgpu::MapMode::Read, |_| ());
            self.device.poll(wgpu::PollType::wait_indefinitely()).ok()?;
            let value: [u8; 4] = back.slice(..).get_mapped_range().ok()?[..].try_into().ok()?;
            back.unmap();
            times.push(begin.elapsed().as_secs_f64() * 1e6);
            assert_eq!(f32::from_le_bytes(value), (round + 1) as f32);
        }
        times.sort_by(f64::total_cmp);
        Some(times[times.len() / 2])
    }

    fn read(&self, buffer: &wgpu::Buffer, at: u64, bytes: u64) -> Option<Vec<u8>> {
        let back = self.buffer(bytes, wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ);
        let mut encoder = self.device.create_command_encoder(&Default::default());
        encoder.copy_buffer_to_buffer(buffer, at, &back, 0, bytes);
        self.queue.submit([encoder.finish()]);
        back.slice(..).map_async(wgpu::MapMode::Read, |_| ());
        self.device.poll(wgpu::PollType::wait_indefinitely()).ok()?;
        Some(back.slice(..).get_mapped_range().ok()?.to_vec())
    }
}

impl Bound {
    fn dispatch(&self, encoder: &mut wgpu::CommandEncoder, times: u32, [x, y]: [u32; 2]) {
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &self.group, &[]);
        (0..times).for_each(|_| pass.dispatch_workgroups(x, y, 1));
    }
}
