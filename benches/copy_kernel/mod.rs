//! A plain `vec4` copy in hand-written WGSL: what a GPU's memory gives at best to a kernel.
//!
//! In: an adapter's number and a size. Out: gigabytes read and written a second, checked to have copied.

use std::time::Instant;

/// Copies in one submission, so that its fixed cost does not count.
const RUNS: u32 = 20;

const SHADER: &str = "
@group(0) @binding(0) var<storage, read> from_: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> to_: array<vec4<f32>>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * 256u + lane;
    if i < arrayLength(&to_) { to_[i] = from_[i]; }
}";

/// Measures; `None` where there is no such adapter or the buffers do not fit.
pub fn gb_per_s(adapter: usize, bytes: u64) -> Option<f64> {
    let name = tidemill::device::gpu::adapters().into_iter().nth(adapter)?.name;
    let instance = wgpu::Instance::default();
    let adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()));
    let adapter = adapters.into_iter().find(|a| a.get_info().name == name)?;
    let limits = adapter.limits();
    // What is bound at a time may be less than what a large array takes; bandwidth is the same.
    let bytes = bytes.min(limits.max_storage_buffer_binding_size).min(limits.max_buffer_size) / 16 * 16;
    let descriptor = wgpu::DeviceDescriptor { required_limits: limits, ..Default::default() };
    let (device, queue) = pollster::block_on(adapter.request_device(&descriptor)).ok()?;
    let buffer = |usage| {
        device.create_buffer(&wgpu::BufferDescriptor { label: None, size: bytes, usage, mapped_at_creation: false })
    };
    let from = buffer(wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST);
    let to = buffer(wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC);
    let pattern: Vec<u8> = (0..=255).cycle().take(4096).collect();
    queue.write_buffer(&from, bytes - 4096, &pattern);
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::Wgsl(SHADER.into()),
    });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: None,
        module: &module,
        entry_point: Some("main"),
        compilation_options: Default::default(),
        cache: None,
    });
    let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &[
            wgpu::BindGroupEntry { binding: 0, resource: from.as_entire_binding() },
            wgpu::BindGroupEntry { binding: 1, resource: to.as_entire_binding() },
        ],
    });
    let groups = (bytes / 16).div_ceil(256) as u32;
    let (x, y) = (groups.min(65_535), groups.div_ceil(65_535));
    let mut times: Vec<f64> = (0..6)
        .map(|_| {
            let mut encoder = device.create_command_encoder(&Default::default());
            {
                let mut pass = encoder.begin_compute_pass(&Default::default());
                pass.set_pipeline(&pipeline);
                pass.set_bind_group(0, &group, &[]);
                (0..RUNS).for_each(|_| pass.dispatch_workgroups(x, y, 1));
            }
            let begin = Instant::now();
            queue.submit([encoder.finish()]);
            device.poll(wgpu::PollType::wait_indefinitely()).ok()?;
            Some(begin.elapsed().as_secs_f64())
        })
        .collect::<Option<_>>()?;
    verify(&device, &queue, &to, bytes, &pattern)?;
    // The first run has the cost of first touch.
    times.remove(0);
    times.sort_by(f64::total_cmp);
    Some(2.0 * bytes as f64 * f64::from(RUNS) / times[times.len() / 2] / 1e9)
}

/// The end of the copy is the pattern that was written.
fn verify(device: &wgpu::Device, queue: &wgpu::Queue, to: &wgpu::Buffer, bytes: u64, pattern: &[u8]) -> Option<()> {
    let back = device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: 4096,
        usage: wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ,
        mapped_at_creation: false,
    });
    let mut encoder = device.create_command_encoder(&Default::default());
    encoder.copy_buffer_to_buffer(to, bytes - 4096, &back, 0, 4096);
    queue.submit([encoder.finish()]);
    back.slice(..).map_async(wgpu::MapMode::Read, |_| ());
    device.poll(wgpu::PollType::wait_indefinitely()).ok()?;
    let same = back.slice(..).get_mapped_range().ok()?[..] == *pattern;
    assert!(same, "the copy kernel did not copy");
    Some(())
}
