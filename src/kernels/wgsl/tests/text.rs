//! Tests the text itself: a snapshot, and the kernels that are refused.

use super::super::harness::{Build, validate, words};
use super::super::{Target, write};
use crate::error::ErrorKind;
use crate::graph::{DType, ElementOp};
use crate::kernels::ir::{Access, Form, InstOp, Run};
use crate::kernels::target::{FloatProfile, Precision};
use expect_test::expect;

fn target() -> Target {
    Target {
        f64: false,
        i64: false,
        precision: Precision::Fast,
        profile: FloatProfile::EXACT,
        bindings_max: 8,
        immediate_words_max: 0,
    }
}

fn chain(dtype: DType, segments: u8) -> Build {
    let mut build = Build::new(Form::Map);
    let a = build.operand(dtype, Access::Read);
    let out = build.operand(dtype, Access::Write);
    let scale = build.param(dtype, &words(&[2.0, 0.0])[..if dtype.is_wide() { 2 } else { 1 }]);
    let flat = build.inst(InstOp::Flat, DType::U32);
    let x = build.load(a, flat, Run::Flat);
    let y = build.apply(ElementOp::Mul, &[x, scale], dtype);
    build.store(out, None, y, None);
    build.kernel.operands[0].segments = segments;
    build
}

#[test]
fn a_scaled_copy_is_this_text() {
    let text = write(&chain(DType::F32, 1).kernel, &target()).unwrap();
    validate(&text);
    expect![[r#"
        @group(0) @binding(0) var<storage, read> params: array<u32>;
        @group(0) @binding(1) var<storage, read_write> buffer0: array<vec4<f32>>;
        @group(0) @binding(2) var<storage, read_write> buffer1: array<vec4<f32>>;
        fn load0x4(i: u32) -> vec4<f32> {
            let e = i;
            return buffer0[e >> 2u];
        }
        fn store1x4(i: u32, value: vec4<f32>) {
            let e = i;
            buffer1[e >> 2u] = value; return;
        }

        @compute @workgroup_size(256)
        fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
            let units = (params[1] - params[0] - 1u) / 4u + 1u;
            let unit = (group.y * groups.x + group.x) * 512u + lid;
            if (unit >= units) { return; }
            let position = params[0] + unit * 4u;
            let places = vec4<u32>(position) + vec4<u32>(0u, 1u, 2u, 3u);
            let inside = places < vec4<u32>(params[1]);
            let flat = min(places, vec4<u32>(params[1] - 1u));
            let unit_1 = unit + 256u;
            let live_1 = unit_1 < units;
            let position_1 = params[0] + min(unit_1, units - 1u) * 4u;
            let places_1 = vec4<u32>(position_1) + vec4<u32>(0u, 1u, 2u, 3u);
            let inside_1 = (places_1 < vec4<u32>(params[1])) & vec4<bool>(live_1);
            let flat_1 = min(places_1, vec4<u32>(params[1] - 1u));
            let v0 = bitcast<f32>(params[16]);
            let v1 = flat;
            let v1_1 = flat_1;
            let v2 = load0x4(position);
            let v2_1 = load0x4(position_1);
            let v3 = (v2 * vec4<f32>(v0));
            let v3_1 = (v2_1 * vec4<f32>(v0));
            store1x4(position, v3);
            if (live_1) { store1x4(position_1, v3_1); }
        }
    "#]].assert_eq(&text);
}

#[test]
fn parameters_that_fit_are_immediates() {
    let kernel = chain(DType::F32, 2).kernel;
    let text = write(&kernel, &Target { immediate_words_max: kernel.params, ..target() }).unwrap();
    validate(&text);
    assert!(text.contains("w16: u32 }\nvar<immediate> params: Params;"), "{text}");
    assert!(!text.contains("params["), "{text}");
    let text = write(&kernel, &Target { immediate_words_max: kernel.params - 1, ..target() }).unwrap();
    assert!(text.contains("@binding(0) var<storage, read> params"), "{text}");
}

#[test]
fn what_the_device_lacks_is_named() {
    let error = write(&chain(DType::F64, 1).kernel, &target()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("64-bit floats"), "{error}");
    let error = write(&chain(DType::F64, 1).kernel, &Target { f64: true, i64: false, ..target() }).unwrap_err();
    assert!(error.message().contains("64-bit integers"), "{error}");
    let error = write(&chain(DType::F32, 9).kernel, &target()).unwrap_err();
    assert_eq!(error.message(), "a kernel needs 11 storage bindings, the device has 8");
}
