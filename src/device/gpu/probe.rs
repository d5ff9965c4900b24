//! Probes a device at its start: the properties of its arithmetic, and the times of its launches and copies.
//!
//! In: an opened device that runs nothing else. Out: its float profile (one small kernel, every time) and its costs
//! (measured once a driver, then kept in a file; a file that can't be read or written is no error).

use super::adapter::Opened;
use super::copy::CopyPool;
use super::raw_device::Gpu;
use crate::contract::device::Costs;
use crate::device::costs;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::DType;
use crate::kernels::target::FloatProfile;
use std::time::{Duration, Instant};

/// How long a probe may take.
const PROBE_WAIT: Duration = Duration::from_secs(20);
/// Pairs of operands whose quotient and root are compared with the host's.
const PAIRS: usize = 64;
/// Words of the probe's output: quotients, roots, then four single results.
const RESULTS: usize = 2 * PAIRS + 4;
/// Invocations a workgroup of the measuring kernels.
const GROUP: u64 = 256;

/// All operands come from a buffer, so that no compiler can fold constants. The words beyond the pairs are `fma(a, a,
/// c)`, a sum of subnormals, `-0 * 1`, and a normal minus a normal with a subnormal result.
const PROFILE_WGSL: &str = "
@group(0) @binding(0) var<storage, read_write> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> results: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_id) id: vec3<u32>) {
    let i = id.x;
    let a = data[2u * i];
    let b = data[2u * i + 1u];
    results[i] = bitcast<u32>(a / b);
    results[64u + i] = bitcast<u32>(sqrt(a));
    if i == 0u {
        results[128] = bitcast<u32>(fma(data[128], data[128], data[129]));
        results[129] = bitcast<u32>(data[130] + data[131]);
        results[130] = bitcast<u32>(data[132] * data[133]);
        results[131] = bitcast<u32>(data[134] - data[135]);
    }
}
";

const COPY_WGSL: &str = "
@group(0) @binding(0) var<storage, read_write> source: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> target_: array<vec4<f32>>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = id.y * groups.x * 256u + id.x;
    if i < arrayLength(&source) { target_[i] = source[i]; }
}
";

/// 64 rounds of a multiply and an add on four lanes: 512 operations an invocation.
const ARITHMETIC_WGSL: &str = "
@group(0) @binding(0) var<storage, read_write> source: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> target_: array<vec4<f32>>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let a = source[id.x & 1023u];
    var x = a;
    for (var i = 0u; i < 64u; i++) { x = x * a + a; }
    target_[id.x] = x;
}
";
const ARITHMETIC_OPERATIONS: u64 = 512;

/// The same in f64.
const ARITHMETIC_WIDE_WGSL: &str = "
@group(0) @binding(0) var<storage, read_write> source: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> target_: array<vec4<f32>>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let a = vec2<f64>(source[id.x & 1023u].xy);
    var x = a;
    for (var i = 0u; i < 64u; i++) { x = x * a + a; }
    target_[id.x] = vec4<f32>(vec2<f32>(x), 0.0, 0.0);
}
";
const ARITHMETIC_WIDE_OPERATIONS: u64 = 256;

/// The float profile and the costs of an opened device.
///
/// # Errors
/// Errors of wgpu, as `ErrorKind::Device`: a device that cannot run the probe cannot run anything.
pub(super) fn probe(opened: &Opened) -> Result<(FloatProfile, Costs)> {
    let unusable = |error: Error| Error::new(ErrorKind::Device, format!("its probe failed: {error}"));
    let profile = float_profile(&opened.gpu).map_err(unusable)?;
    let about = &opened.about;
    let name = format!("{}-{}-{}-{:?}", about.name, about.driver, about.driver_info, about.backend);
    let costs = costs::of(&name, || measure(opened).map_err(unusable))?;
    Ok((profile, costs))
}

/// Operands of the profile kernel, as bits.
fn profile_operands() -> Vec<u32> {
    let mut state = 0x9E37_79B9u32;
    let mut bits = Vec::with_capacity(2 * PAIRS + 8);
    for _ in 0..2 * PAIRS {
        // xorshift32; exponents stay within 2^-16..2^16, far from overflow and subnormals.
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        bits.push((state & 0x007F_FFFF) | ((111 + (state >> 23) % 32) << 23));
    }
    let one_and_a_bit = 1.0f32 + f32::EPSILON * 2048.0;
    bits.extend([one_and_a_bit.to_bits(), (-(1.0f32 + f32::EPSILON * 4096.0)).to_bits()]);
    bits.extend([1, 2, (-0.0f32).to_bits(), 1.0f32.to_bits(), 0x0080_0001, 0x0080_0000]);
    bits
}

fn float_profile(gpu: &Gpu) -> Result<FloatProfile> {
    let operands = profile_operands();
    let data = storage(gpu, operands.len() as u64 * 4)?;
    let results = storage(gpu, RESULTS as u64 * 4)?;
    gpu.checked(|| gpu.queue.write_buffer(&data, 0, crate::host_buffer::as_bytes(&operands)))?;
    let kernel = Kernel::new(gpu, PROFILE_WGSL, &data, &results)?;
    let mut reader = Reader::new(gpu, RESULTS as u64 * 4)?;
    let bytes = reader.read(gpu, &results, |encoder| kernel.run(encoder, 1, 1), <[u8]>::to_vec)?;
    let words: Vec<u32> = bytes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect();
    Ok(profile_from(&operands, &words))
}

/// Compares what the device computed with what the host does.
fn profile_from(operands: &[u32], words: &[u32]) -> FloatProfile {
    let value = |i: usize| f32::from_bits(operands[i]);
    FloatProfile {
        exact_division: (0..PAIRS).all(|i| words[i] == (value(2 * i) / value(2 * i + 1)).to_bits()),
        exact_sqrt: (0..PAIRS).all(|i| words[PAIRS + i] == value(2 * i).sqrt().to_bits()),
        // (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24, and 0 if the product was rounded first.
        fma_fused: f32::from_bits(words[2 * PAIRS]) == 2f32.powi(-24),
        keeps_subnormals: words[2 * PAIRS + 1] == 3 && words[2 * PAIRS + 3] == 1,
        keeps_negative_zero: words[2 * PAIRS + 2] == (-0.0f32).to_bits(),
    }
}

fn storage(gpu: &Gpu, bytes: u64) -> Result<wgpu::Buffer> {
    gpu.checked(|| {
        gpu.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("probe"),
            size: bytes,
            usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        })
    })
}

/// A kernel over two buffers.
struct Kernel {
    pipeline: wgpu::ComputePipeline,
    group: wgpu::BindGroup,
}

impl Kernel {
    fn new(gpu: &Gpu, wgsl: &str, a: &wgpu::Buffer, b: &wgpu::Buffer) -> Result<Kernel> {
        gpu.checked(|| {
            let source = wgpu::ShaderSource::Wgsl(wgsl.into());
            let module = gpu.device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source });
            let pipeline = gpu.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: None,
                layout: None,
                module: &module,
                entry_point: Some("main"),
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                cache: None,
            });
            let group = gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: None,
                layout: &pipeline.get_bind_group_layout(0),
                entries: &[
                    wgpu::BindGroupEntry { binding: 0, resource: a.as_entire_binding() },
                    wgpu::BindGroupEntry { binding: 1, resource: b.as_entire_binding() },
                ],
            });
            Kernel { pipeline, group }
        })
    }

    fn run(&self, encoder: &mut wgpu::CommandEncoder, groups: u64, times: usize) {
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &self.group, &[]);
        for _ in 0..times {
            let rows = groups.div_ceil(65_535);
            pass.dispatch_workgroups(groups.div_ceil(rows) as u32, rows as u32, 1);
        }
    }
}

/// A mappable buffer that results are read through.
struct Reader {
    buffer: wgpu::Buffer,
}

impl Reader {
    fn new(gpu: &Gpu, bytes: u64) -> Result<Reader> {
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let descriptor = wgpu::BufferDescriptor { label: Some("probe"), size: bytes, usage, mapped_at_creation: false };
        Ok(Reader { buffer: gpu.checked(|| gpu.device.create_buffer(&descriptor))? })
    }

    /// Runs the commands of `encode`, copies the buffer to mapped memory, and returns the result of `take` on the bytes
    /// there.
    fn read<T>(
        &mut self,
        gpu: &Gpu,
        from: &wgpu::Buffer,
        encode: impl FnOnce(&mut wgpu::CommandEncoder),
        take: impl FnOnce(&[u8]) -> T,
    ) -> Result<T> {
        submit(gpu, |encoder| {
            encode(encoder);
            encoder.copy_buffer_to_buffer(from, 0, &self.buffer, 0, self.buffer.size());
        })?;
        self.buffer.map_async(wgpu::MapMode::Read, .., |_| {});
        finish(gpu)?;
        let view = self.buffer.get_mapped_range(..);
        let taken = view.map(|view| take(&view)).map_err(|error| Error::new(ErrorKind::Device, error.to_string()));
        self.buffer.unmap();
        taken
    }
}

/// Mapped memory that copy threads fill for the device, as they do for an upload.
struct Filler {
    buffer: wgpu::Buffer,
    from: Vec<u8>,
    pool: CopyPool,
}

impl Filler {
    fn new(gpu: &Gpu, bytes: u64) -> Result<Filler> {
        let usage = wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC;
        let descriptor = wgpu::BufferDescriptor { label: Some("probe"), size: bytes, usage, mapped_at_creation: true };
        let buffer = gpu.checked(|| gpu.device.create_buffer(&descriptor))?;
        Ok(Filler { buffer, from: vec![1; bytes as usize], pool: CopyPool::new(crate::threads::cores(), "probe") })
    }

    /// Fills the memory, copies it to the device, and maps it again.
    fn upload(&mut self, gpu: &Gpu, to: &wgpu::Buffer) -> Result<()> {
        let view = self.buffer.get_mapped_range_mut(..);
        let mut view = view.map_err(|error| Error::new(ErrorKind::Device, error.to_string()))?;
        let memory = view.slice(..).as_raw_element_ptr();
        // SAFETY: the view is as long as `from`, is ours, and outlives the call.
        unsafe { self.pool.fill(&self.from, DType::U32, memory) };
        drop(view);
        self.buffer.unmap();
        submit(gpu, |encoder| encoder.copy_buffer_to_buffer(&self.buffer, 0, to, 0, self.buffer.size()))?;
        self.buffer.map_async(wgpu::MapMode::Write, .., |_| {});
        finish(gpu)
    }
}

fn submit(gpu: &Gpu, encode: impl FnOnce(&mut wgpu::CommandEncoder)) -> Result<()> {
    gpu.checked(|| {
        let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encode(&mut encoder);
        gpu.queue.submit([encoder.finish()]);
    })
}

fn finish(gpu: &Gpu) -> Result<()> {
    match gpu.wait_idle(PROBE_WAIT) {
        true => Ok(()),
        false if gpu.is_lost() => Err(gpu.loss_error()),
        false => Err(Error::new(ErrorKind::Device, "it did not finish within 20 s")),
    }
}

/// The shortest of several runs of the same work, in seconds.
fn least(times: usize, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..times {
        let start = Instant::now();
        work()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best.max(1e-9))
}

/// Measures with sizes that a software adapter finishes in a few tens of milliseconds.
fn measure(opened: &Opened) -> Result<Costs> {
    let gpu = &opened.gpu;
    let software = opened.about.device_type == wgpu::DeviceType::Cpu;
    let bytes: u64 = if software { 2 << 20 } else { 64 << 20 };
    let (source, target) = (storage(gpu, bytes)?, storage(gpu, bytes)?);
    let run = |kernel: &Kernel, groups: u64, times: usize| {
        submit(gpu, |encoder| kernel.run(encoder, groups, times))?;
        finish(gpu)
    };
    let copy = Kernel::new(gpu, COPY_WGSL, &source, &target)?;
    let groups = (bytes / 16).div_ceil(GROUP);
    // The first run also clears the fresh buffers.
    run(&copy, groups, 1)?;
    let once = least(3, || run(&copy, groups, 1))?;
    let thrice = least(3, || run(&copy, groups, 3))?;
    let memory_s = ((thrice - once) / 2.0).max(once / 100.0);
    let few = least(3, || run(&copy, 1, 1))?;
    let many = least(3, || run(&copy, 1, 33))?;

    let mut small = Reader::new(gpu, 256)?;
    let launch = least(5, || small.read(gpu, &target, |encoder| copy.run(encoder, 1, 1), |_| ()))?;
    let mut large = Reader::new(gpu, bytes)?;
    // The first run of each also touches fresh memory. No copy out of mapped memory is measured, since a gather reads
    // in place.
    let readback = least(3, || large.read(gpu, &target, |_| (), |_| ()))?;
    let mut filler = Filler::new(gpu, bytes)?;
    let upload = least(3, || filler.upload(gpu, &source))?;

    let invocations = (bytes / 16).min(if software { 1 << 16 } else { 1 << 22 });
    let gop_per_s = |wgsl: &str, operations: u64| -> Result<f64> {
        let arithmetic = Kernel::new(gpu, wgsl, &source, &target)?;
        run(&arithmetic, 1, 1)?;
        let seconds = least(2, || run(&arithmetic, invocations / GROUP, 1))?;
        Ok((invocations * operations) as f64 / (seconds - few).max(seconds / 100.0) / 1e9)
    };
    let f32_gop_per_s = gop_per_s(ARITHMETIC_WGSL, ARITHMETIC_OPERATIONS)?;
    let f64_gop_per_s = match opened.features.contains(wgpu::Features::SHADER_F64) {
        true => gop_per_s(ARITHMETIC_WIDE_WGSL, ARITHMETIC_WIDE_OPERATIONS)?,
        false => f32_gop_per_s,
    };
    Ok(Costs {
        launch_us: launch * 1e6,
        dispatch_us: ((many - few) / 32.0).max(1e-7) * 1e6,
        memory_gb_per_s: 2.0 * bytes as f64 / memory_s / 1e9,
        f32_gop_per_s,
        f64_gop_per_s,
        upload_gb_per_s: bytes as f64 / upload / 1e9,
        readback_gb_per_s: bytes as f64 / readback / 1e9,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The results of exact arithmetic for the probe's operands.
    fn exact(operands: &[u32]) -> Vec<u32> {
        let value = |i: usize| f32::from_bits(operands[i]);
        let mut words: Vec<u32> = (0..PAIRS).map(|i| (value(2 * i) / value(2 * i + 1)).to_bits()).collect();
        words.extend((0..PAIRS).map(|i| value(2 * i).sqrt().to_bits()));
        words.extend([value(128).mul_add(value(128), value(129)).to_bits(), (value(130) + value(131)).to_bits()]);
        words.extend([(value(132) * value(133)).to_bits(), (value(134) - value(135)).to_bits()]);
        words
    }

    #[test]
    fn the_host_itself_would_pass_the_float_probe_in_all_points() {
        let operands = profile_operands();
        assert_eq!(profile_from(&operands, &exact(&operands)), FloatProfile::EXACT);
    }

    #[test]
    fn each_inexact_result_clears_its_own_flag_only() {
        let operands = profile_operands();
        let changed = |at: usize, word: u32| {
            let mut words = exact(&operands);
            words[at] = word;
            profile_from(&operands, &words)
        };
        let all = profile_from(&operands, &exact(&operands));
        let exact = exact(&operands);
        assert_eq!(changed(17, exact[17] + 1), FloatProfile { exact_division: false, ..all });
        assert_eq!(changed(64 + 63, exact[64 + 63] - 1), FloatProfile { exact_sqrt: false, ..all });
        assert_eq!(changed(128, 0), FloatProfile { fma_fused: false, ..all });
        assert_eq!(changed(129, 0), FloatProfile { keeps_subnormals: false, ..all });
        assert_eq!(changed(131, 0), FloatProfile { keeps_subnormals: false, ..all });
        assert_eq!(changed(130, 0), FloatProfile { keeps_negative_zero: false, ..all });
    }
}
