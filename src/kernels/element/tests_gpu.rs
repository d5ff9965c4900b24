//! Tests of the op table as WGSL: every text validates, and on the default adapter it computes what the host computes.

use super::gpu_harness::{Gpu, gpu, storage_type, validate, words};
use super::host::{HostArg, apply};
use super::wgsl::Functions;
use crate::graph::refusals::runs_on_gpus;
use crate::graph::{ArgType, DType, ElementOp, Scalar};
use crate::host_buffer::HostBuffer;
use crate::kernels::target::{FloatProfile, Precision};
use crate::kernels::wgsl::types::typed;

const PROFILE: FloatProfile = FloatProfile::LOOSE;

/// A case: an op on arguments of a dtype.
#[derive(Clone, Copy, Debug)]
struct Case {
    op: ElementOp,
    input: DType,
    output: DType,
}

impl Case {
    fn argument(self, n: usize) -> DType {
        if self.op == ElementOp::Select && n == 0 { DType::Bool } else { self.input }
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for &op in ElementOp::ALL {
        for input in DType::ALL {
            if op == ElementOp::Cast {
                cases.extend(DType::ALL.iter().map(|&output| Case { op, input, output }));
                continue;
            }
            let arg = ArgType { dtype: input, weak: false, scalar: false };
            let signature = op.signature(&vec![arg; op.arity()]).expect("equal dtypes mix");
            if signature.compute == input && runs_on_gpus(op, input) {
                cases.push(Case { op, input, output: signature.output });
            }
        }
    }
    cases
}

/// A kernel of one op over operands of words.
fn module(case: Case, width: u32, precision: Precision, has_i64: bool) -> String {
    let mut functions = Functions::new(PROFILE, precision, has_i64);
    let arity = case.op.arity();
    let names: Vec<String> = (0..arity).map(|n| format!("x{n}")).collect();
    let value = functions.apply(case.op, case.input, case.output, width, &names);
    let mut text = functions.text();
    for n in 0..=arity {
        let dtype = if n < arity { case.argument(n) } else { case.output };
        let ty = storage_type(dtype, width);
        text += &format!("@group(0) @binding({n}) var<storage, read_write> b{n}: array<{ty}>;\n");
    }
    text += "@compute @workgroup_size(64)\nfn main(@builtin(global_invocation_id) id: vec3<u32>) {\n";
    text += &format!("    if (id.x >= arrayLength(&b{arity})) {{ return; }}\n");
    for (n, name) in names.iter().enumerate() {
        let zero = if width == 1 { "0u".to_string() } else { "vec4<u32>(0u)".to_string() };
        let load = match case.argument(n) {
            DType::Bool => format!("b{n}[id.x] != {zero}"),
            _ => format!("b{n}[id.x]"),
        };
        text += &format!("    let {name} = {load};\n");
    }
    let store = match case.output {
        DType::Bool if width == 1 => "select(0u, 1u, y)".to_string(),
        DType::Bool => "select(vec4<u32>(0u), vec4<u32>(1u), y)".to_string(),
        _ => "y".to_string(),
    };
    text += &format!("    let y: {} = {value};\n    b{arity}[id.x] = {store};\n}}\n", typed(case.output, width));
    text
}

#[test]
fn every_op_of_every_dtype_and_width_validates() {
    for case in cases() {
        for width in [1, 4] {
            for precision in [Precision::Accurate, Precision::Fast] {
                for has_i64 in [false, true] {
                    if has_i64 || !(case.input.is_wide() || case.output.is_wide()) {
                        validate(&module(case, width, precision, has_i64));
                    }
                }
            }
        }
    }
}

#[test]
fn equal_requests_give_equal_text() {
    for case in cases() {
        assert_eq!(module(case, 4, Precision::Accurate, true), module(case, 4, Precision::Accurate, true));
    }
}

/// Special values, then random ones, some of every magnitude and some of middling magnitude.
fn inputs(dtype: DType, n: usize, argument: usize) -> HostBuffer {
    let special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -2.5,
        3.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        1e-30,
        1e30,
        -1e10,
        2147483647.0,
        -2147483648.0,
        255.0,
    ];
    let mut state = 88172645463325252u64 + argument as u64;
    let mut buffer = HostBuffer::zeroed(dtype, n);
    let bytes = buffer.bytes_mut().expect("it is owned");
    for (i, slot) in bytes.chunks_mut(dtype.bytes()).enumerate() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let stride = special.len().pow(argument as u32);
        let scalar = if i < special.len() * special.len() {
            Scalar::F64(special[i / stride % special.len()]).cast(dtype)
        } else if i % 2 == 0 {
            match Scalar::from_bits(dtype, state) {
                Scalar::Bool(_) => Scalar::Bool(state & 1 == 1),
                // Devices may flush subnormals to zero, so the results for them differ. Other numbers take their place.
                Scalar::F32(x) if x.is_subnormal() => Scalar::F32(x.to_bits() as f32),
                Scalar::F64(x) if x.is_subnormal() => Scalar::F64(x.to_bits() as f64),
                other => other,
            }
        } else {
            Scalar::F64((state % 40001) as f64 / 1000.0 - 20.0).cast(dtype)
        };
        slot.copy_from_slice(&scalar.bits().to_le_bytes()[..dtype.bytes()]);
    }
    buffer
}

/// The distance of two floats in ulp of their type. Zeros of both signs are equal.
fn ulps(a: Scalar, b: Scalar) -> f64 {
    let (x, y) = (a.as_f64(), b.as_f64());
    if x == y || (x.is_nan() && y.is_nan()) {
        return 0.0;
    }
    if !x.is_finite() || !y.is_finite() {
        return f64::INFINITY;
    }
    let (mantissa, least) = if a.dtype() == DType::F32 { (23, -126) } else { (52, -1022) };
    let exponent = (x.abs().max(y.abs()).log2().floor() as i32).max(least);
    (x - y).abs() / 2f64.powi(exponent - mantissa)
}

/// The most ulp between the results of the host and of a device, which may each differ from the exact result by the
/// op's bound.
fn bound(case: Case) -> f64 {
    match (case.op, case.output) {
        (ElementOp::Erf | ElementOp::Gamma, _) => 32.0,
        (_, DType::F32 | DType::F64) => 8.0,
        _ => 0.0,
    }
}

fn compare(case: Case, gpu: &Gpu) -> Result<(), String> {
    let n = 2048;
    let width = if case.input.is_wide() || case.output.is_wide() { 1 } else { 4 };
    let blocks: Vec<HostBuffer> = (0..case.op.arity()).map(|k| inputs(case.argument(k), n, k)).collect();
    let list: Vec<HostArg<'_>> = blocks.iter().map(|b| HostArg::Block(b.bytes())).collect();
    let mut expected = HostBuffer::zeroed(case.output, n);
    apply(case.op, case.input, case.output, &list, expected.bytes_mut().expect("it is owned"), n);
    let mut buffers: Vec<Vec<u32>> = blocks.iter().map(words).collect();
    buffers.push(vec![0; n * case.output.gpu_bytes() / 4]);
    let text = module(case, width, Precision::Accurate, gpu.i64);
    let out = gpu.run(&text, &buffers, (n as u32 / width).div_ceil(64));
    for i in 0..n {
        let bits = if case.output.gpu_bytes() == 8 {
            out[2 * i] as u64 | (out[2 * i + 1] as u64) << 32
        } else {
            out[i] as u64
        };
        let (here, there) = (expected.scalar(i), Scalar::from_bits(case.output, bits));
        let tiny = here.as_f64().abs() < 1.2e-38 && there.as_f64().abs() < 1.2e-38;
        let apart = ulps(here, there);
        // Near the zeros of lgamma only the absolute error is bounded.
        let near_zero = case.op == ElementOp::Lgamma && (here.as_f64() - there.as_f64()).abs() < 2e-6;
        // A device may flush a subnormal remainder to zero during the computation.
        let flushed = case.output == DType::F32 && (here.as_f64() - there.as_f64()).abs() < 1.2e-38;
        let excused = (tiny && case.output.is_float()) || flushed || near_zero;
        if apart > bound(case) && !excused {
            let args: Vec<Scalar> = blocks.iter().map(|b| b.scalar(i)).collect();
            return Err(format!("{case:?} of {args:?}: {here} on the host, {there} on the device, {apart} ulp apart"));
        }
    }
    Ok(())
}

#[test]
fn the_device_computes_what_the_host_computes() {
    let Some(gpu) = gpu() else { return };
    let mut failures = Vec::new();
    for case in cases() {
        let wide = |dtype: DType| match dtype {
            DType::F64 => !gpu.f64,
            DType::I64 => !gpu.i64,
            _ => false,
        };
        if wide(case.input) || wide(case.output) {
            continue;
        }
        failures.extend(compare(case, gpu).err());
    }
    assert!(failures.is_empty(), "{} ops differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn an_op_that_leaves_its_argument_as_it_is_yields_the_argument() {
    for dtype in [DType::I32, DType::U32, DType::U8, DType::I64] {
        for op in [ElementOp::Min, ElementOp::Max] {
            let mut functions = Functions::new(PROFILE, Precision::Accurate, true);
            let names = ["x".to_string(), "x".to_string()];
            assert_eq!(functions.apply(op, dtype, dtype, 4, &names), "x", "{op:?} of {dtype}");
        }
    }
}

#[test]
fn what_is_taken_from_itself_is_nothing_only_where_it_is_finite() {
    for dtype in [DType::F32, DType::F64] {
        for width in [1, 4] {
            let mut functions = Functions::new(PROFILE, Precision::Accurate, true);
            let names = ["x".to_string(), "x".to_string()];
            let same = functions.apply(ElementOp::Sub, dtype, dtype, width, &names);
            assert!(!same.contains(" - "), "{same}");
            let text = functions.text();
            validate(&format!("{text}@compute @workgroup_size(1)\nfn main() {{}}\n"));
        }
    }
    let Some(gpu) = gpu() else { return };
    let mut functions = Functions::new(PROFILE, Precision::Accurate, gpu.i64);
    let value = functions.apply(ElementOp::Sub, DType::F32, DType::F32, 1, &["x".to_string(), "x".to_string()]);
    let text = format!(
        "{}@group(0) @binding(0) var<storage, read_write> a: array<f32>;\n\
         @group(0) @binding(1) var<storage, read_write> b: array<f32>;\n\
         @compute @workgroup_size(4)\nfn main(@builtin(global_invocation_id) id: vec3<u32>) {{\n    \
         let x = a[id.x];\n    b[id.x] = {value};\n}}\n",
        functions.text()
    );
    let given = [1.5f32, f32::NAN, f32::INFINITY, -0.0].map(f32::to_bits).to_vec();
    let out: Vec<f32> = gpu.run(&text, &[given, vec![1; 4]], 1).into_iter().map(f32::from_bits).collect();
    assert!(out[0] == 0.0 && out[1].is_nan() && out[2].is_nan() && out[3] == 0.0, "{out:?}");
}
