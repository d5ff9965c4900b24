//! Tests random numbers of a device against the host's.

use super::{fill, wgsl};
use crate::graph::{DType, Dist, Scalar};
use crate::host_buffer::HostBuffer;
use crate::kernels::element::gpu_harness::{gpu, storage_type, validate};
use crate::kernels::element::wgsl::Functions;
use crate::kernels::target::{FloatProfile, Precision};

const KEY: [u32; 5] = [0x1234_5678, 9, 0xffff_fff0, 3, 11];

/// A kernel that draws elements from number 40 on. Without `flat_run`, it draws them in reverse order, so that each
/// lane calls the generator on its own.
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
    let range = (dist == Dist::Integer).then(|| (wide(dtype, low), wide(DType::U32, "11u")));
    let key = KEY.map(|word| format!("{word}u"));
    let value = wgsl(&mut functions, dist, dtype, width, key, "e".into(), flat_run, range);
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
    for dist in [Dist::Uniform, Dist::Normal, Dist::Integer] {
        for dtype in
            DType::ALL.into_iter().filter(|&dtype| dtype != DType::Bool && (dist == Dist::Integer || dtype.is_float()))
        {
            let low = match dtype {
                DType::I32 => Scalar::I32(-5),
                DType::I64 => Scalar::I64(-5_000_000_000),
                _ => Scalar::F64(5.0).cast(dtype),
            };
            let range = (dist == Dist::Integer).then_some((low, 11));
            let mut expected = HostBuffer::zeroed(dtype, n as usize);
            fill(dist, dtype, KEY, 40, range, expected.bytes_mut().expect("it is owned"), n as usize);
            for (width, flat_run) in [(1, true), (1, false), (4, true), (4, false)] {
                for has_i64 in [false, true] {
                    if dtype.is_wide() && !has_i64 {
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
                            (Dist::Normal, DType::F64) => 5e-15,
                            (Dist::Normal, _) => 3e-6,
                            _ => 0.0,
                        };
                        assert!(apart <= allowed, "{dist:?} {dtype} x{width} {i}: {here} here, {there} there");
                    }
                }
            }
        }
    }
}
