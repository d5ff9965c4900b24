//! Tests random numbers of a device against the host's.

use super::{Numbers, draw, fill, wgsl};
use crate::graph::{DType, Dist, Scalar};
use crate::host_buffer::HostBuffer;
use crate::kernels::element::gpu_harness::{gpu, storage_type, validate, words};
use crate::kernels::element::host::HostArg;
use crate::kernels::element::wgsl::Functions;
use crate::kernels::target::{FloatProfile, Precision};

const KEY: [u32; 5] = [0x1234_5678, 9, 0xffff_fff0, 3, 11];

/// The length of a range for which a word in four is rejected and drawn again, if the dtype holds such a length.
fn span(dtype: DType) -> u32 {
    if dtype == DType::U8 { 11 } else { 3 << 30 }
}

/// The last step of a wide range, above which a third of all candidates lie.
const LAST: i64 = 2 << 40;

/// A kernel that draws elements from 40 on; without `flat_run` in reverse order, so that lanes go their own ways.
fn module(dist: Dist, dtype: DType, width: u32, flat_run: bool, has_i64: bool, n: u32) -> String {
    let mut functions = Functions::new(FloatProfile::LOOSE, Precision::Accurate, has_i64);
    let low = if dtype == DType::I32 {
        "i32(-5)"
    } else if dtype == DType::F32 {
        "5.0f"
    } else if dtype == DType::F64 {
        "5.0lf"
    } else if dtype == DType::I64 {
        "-5000000000li"
    } else {
        "5u"
    };
    let wide = |dtype: DType, text: &str| format!("{}({text})", storage_type(dtype, width));
    let params = match dist {
        Dist::Integer => vec![wide(dtype, low), wide(DType::U32, &format!("{}u", span(dtype)))],
        Dist::Wide => vec![low.to_string(), format!("{LAST}li")],
        _ => vec![],
    };
    let key = KEY.map(|word| format!("{word}u"));
    let value = wgsl(&mut functions, dist, dtype, dtype, width, key, "e".into(), flat_run, &params);
    let lanes = if width == 1 { "at".to_string() } else { "vec4<u32>(at, at + 1u, at + 2u, at + 3u)".to_string() };
    let element = if flat_run { format!("{lanes} + 40u") } else { format!("{}u - {lanes}", 40 + n - 1) };
    format!(
        "{}@group(0) @binding(0) var<storage, read_write> out: array<{}>;\n\
         @compute @workgroup_size(64)\nfn main(@builtin(global_invocation_id) id: vec3<u32>) {{\n    \
         if (id.x >= arrayLength(&out)) {{ return; }}\n    let at = id.x * {width}u;\n    let e = {element};\n    \
         out[id.x] = {value};\n}}\n",
        functions.text(),
        storage_type(dtype, width)
    )
}

#[test]
fn devices_draw_the_hosts_numbers() {
    let n = 1024u32;
    for dist in [Dist::Uniform, Dist::Normal, Dist::Exponential, Dist::Integer, Dist::Wide] {
        let has = |dtype: &DType| match dist {
            Dist::Integer => *dtype != DType::Bool,
            Dist::Wide => *dtype == DType::I64,
            _ => dtype.is_float(),
        };
        for dtype in DType::ALL.into_iter().filter(has) {
            let low = match dtype {
                DType::I32 => Scalar::I32(-5),
                DType::I64 => Scalar::I64(-5_000_000_000),
                _ => Scalar::F64(5.0).cast(dtype),
            };
            let last = if dist == Dist::Wide { Scalar::I64(LAST) } else { Scalar::U32(span(dtype)) };
            let range = dist.has_range().then_some((low, last));
            let mut expected = HostBuffer::zeroed(dtype, n as usize);
            fill(dist, dtype, KEY, 40, range, expected.bytes_mut().expect("it is owned"), n as usize);
            for (width, flat_run) in [(1, true), (1, false), (4, true), (4, false)] {
                for has_i64 in [false, true] {
                    if dtype.is_wide() && (!has_i64 || (width == 4 && dist == Dist::Wide)) {
                        continue;
                    }
                    let text = module(dist, dtype, width, flat_run, has_i64, n);
                    validate(&text);
                    let Some(gpu) = gpu() else { continue };
                    if (dtype == DType::F64 && !gpu.f64) || (dtype.is_wide() && width == 4) || (has_i64 && !gpu.i64) {
                        continue;
                    }
                    let words = n as usize * dtype.gpu_bytes() / 4;
                    let out = gpu.run(&text, &[vec![0; words]], (n / width).div_ceil(64));
                    for i in 0..n as usize {
                        let here = expected.scalar(if flat_run { i } else { n as usize - 1 - i });
                        let bits = match dtype.gpu_bytes() {
                            8 => out[2 * i] as u64 | (out[2 * i + 1] as u64) << 32,
                            _ => out[i] as u64,
                        };
                        let there = Scalar::from_bits(dtype, bits);
                        let apart = (here.as_f64() - there.as_f64()).abs();
                        let allowed = match (dist, dtype) {
                            (Dist::Normal | Dist::Exponential, DType::F64) => 5e-15,
                            (Dist::Normal | Dist::Exponential, _) => 3e-6,
                            // A sum of two floats, either way.
                            (Dist::Integer, DType::F32) => 512.0,
                            _ => 0.0,
                        };
                        assert!(apart <= allowed, "{dist:?} {dtype} x{width} {i}: {here} here, {there} there");
                    }
                }
            }
        }
    }
}

/// A kernel that draws elements from 40 on, one an invocation, of parameters that are buffers.
fn module_of(dist: Dist, dtype: DType) -> String {
    let mut functions = Functions::new(FloatProfile::LOOSE, Precision::Accurate, true);
    let key = KEY.map(|word| format!("{word}u"));
    let params: Vec<String> = (0..dist.parameters()).map(|n| format!("p{n}[at]")).collect();
    let output = if dist == Dist::Bernoulli { DType::Bool } else { dtype };
    let value = wgsl(&mut functions, dist, output, dtype, 1, key, "(at + 40u)".into(), false, &params);
    let value = if output == DType::Bool { format!("u32({value})") } else { value };
    let buffers: String = (0..dist.parameters())
        .map(|n| format!("@group(0) @binding({n}) var<storage, read_write> p{n}: array<{dtype}>;\n"))
        .collect();
    format!(
        "{}{buffers}@group(0) @binding({}) var<storage, read_write> out: array<{}>;\n\
         @compute @workgroup_size(64)\nfn main(@builtin(global_invocation_id) id: vec3<u32>) {{\n    \
         let at = id.x;\n    if (at >= arrayLength(&out)) {{ return; }}\n    out[at] = {value};\n}}\n",
        functions.text(),
        dist.parameters(),
        storage_type(output, 1)
    )
}

#[test]
fn devices_take_and_refuse_the_hosts_candidates() {
    let n = 2048usize;
    for dist in [Dist::Bernoulli, Dist::Gamma, Dist::LogGamma, Dist::Poisson, Dist::Binomial] {
        for dtype in [DType::F32, DType::F64] {
            let text = module_of(dist, dtype);
            validate(&text);
            let parameter = |slot: usize, i: usize| match (dist, slot) {
                (Dist::Bernoulli, _) => i as f64 / n as f64,
                (Dist::Binomial, 0) => [3.0, 90.0, 1e5][i % 3],
                (Dist::Binomial, _) => (i % 97) as f64 / 96.0,
                (Dist::Gamma | Dist::LogGamma, _) => [0.03, 0.8, 1.0, 6.0, 2e3][i % 5],
                _ => [0.0, 0.4, 9.0, 10.0, 250.0, 3e5][i % 6],
            };
            let mut params: Vec<HostBuffer> = Vec::new();
            for slot in 0..dist.parameters() {
                let mut buffer = HostBuffer::zeroed(dtype, n);
                let bytes = buffer.bytes_mut().expect("it is owned");
                for i in 0..n {
                    let number = Scalar::F64(parameter(slot, i)).cast(dtype).bits().to_le_bytes();
                    bytes[i * dtype.bytes()..][..dtype.bytes()].copy_from_slice(&number[..dtype.bytes()]);
                }
                params.push(buffer);
            }
            let output = if dist == Dist::Bernoulli { DType::Bool } else { dtype };
            let mut expected = HostBuffer::zeroed(output, n);
            let list: Vec<HostArg<'_>> = params.iter().map(|buffer| HostArg::Block(buffer.bytes())).collect();
            draw(dist, dtype, KEY, Numbers::From(40), &list, expected.bytes_mut().expect("it is owned"));
            let Some(gpu) = gpu() else { continue };
            if dtype == DType::F64 && (!gpu.f64 || !gpu.i64) {
                continue;
            }
            let mut buffers: Vec<Vec<u32>> = params.iter().map(words).collect();
            buffers.push(vec![0; n * output.gpu_bytes() / 4]);
            let out = gpu.run(&text, &buffers, (n as u32).div_ceil(64));
            let apart = (0..n).filter(|&i| {
                let bits = match output.gpu_bytes() {
                    8 => out[2 * i] as u64 | (out[2 * i + 1] as u64) << 32,
                    _ => out[i] as u64,
                };
                let (here, there) = (expected.scalar(i).as_f64(), Scalar::from_bits(output, bits).as_f64());
                let allowed = if dist == Dist::Bernoulli { 0.0 } else { 2e-5 * here.abs().max(1e-3) };
                (here - there).abs() > allowed
            });
            let apart = apart.count();
            assert!(apart <= usize::from(dist != Dist::Bernoulli), "{dist:?} {dtype}: {apart} of {n} are apart");
        }
    }
}
