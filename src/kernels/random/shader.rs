//! Random numbers as WGSL.
//!
//! In: the key, the element numbers and the range, as expressions. Out: an expression, and the functions that it calls,
//! which are registered with the module's. Counters are the same as on the host, and so is the arithmetic of the
//! distributions, which is recorded from `graph::semantics`.

use super::elements_per_call;
use crate::graph::semantics::random::{normal_pair, uniform};
use crate::graph::{DType, Dist};
use crate::kernels::element::trace::{self, F32, F64, Traced, U32, U64};
use crate::kernels::element::wgsl::Functions;
use crate::kernels::wgsl::types::typed;

/// An expression for `width` random numbers. `key` is seed low, seed high, stream low, stream high, op (`u32`);
/// `element` is `u32` or `vec4<u32>`. With `flat_run` the four elements are `e..e + 4` and `e` is a multiple of 4: one
/// call of the generator serves them. `range` is `low` (of the dtype) and `span` (`u32`) of integers, of `width`
/// elements each.
///
/// # Panics
/// IR-7, for integers without a range.
#[allow(clippy::too_many_arguments)]
pub fn wgsl(
    functions: &mut Functions,
    dist: Dist,
    dtype: DType,
    width: u32,
    key: [String; 5],
    element: String,
    flat_run: bool,
    range: Option<(String, String)>,
) -> String {
    let group = register(functions, dist, dtype);
    let [seed_low, seed_high, stream_low, stream_high, op] = key;
    let rest = format!("vec2<u32>({seed_low}, {seed_high}), vec3<u32>({op}, {stream_low}, {stream_high})");
    let per_call = elements_per_call(dist, dtype);
    let one = |element: &str| format!("{group}(({element}) / {per_call}u, {rest})[({element}) % {per_call}u]");
    let drawn = match (width, flat_run && per_call == 4) {
        (1, _) => one(&element),
        (_, true) => format!("{group}(({element}).x / 4u, {rest})"),
        _ => {
            let lanes = ["x", "y", "z", "w"].map(|lane| one(&format!("({element}).{lane}")));
            let drawn = if dist == Dist::Integer { DType::U32 } else { dtype };
            format!("{}({})", typed(drawn, 4), lanes.join(", "))
        }
    };
    if dist != Dist::Integer {
        return drawn;
    }
    let Some((low, span)) = range else { panic!("IR-7: random integers without their range") };
    let name = if width == 1 { format!("tm_randi_{dtype}") } else { format!("tm_randi_{dtype}_4") };
    functions.add_text(&name, &integer(&name, dtype, width));
    format!("{name}({drawn}, {low}, {span})")
}

/// The text of a function that makes integers of a range from random words.
fn integer(name: &str, dtype: DType, width: u32) -> String {
    let (ty, words) = (typed(dtype, width), typed(DType::U32, width));
    let step = match width {
        1 => "tm_philox_product(w, span).x".to_string(),
        _ => {
            let lanes = ["x", "y", "z", "w"].map(|lane| format!("tm_philox_product(w.{lane}, span.{lane}).x"));
            format!("{words}({})", lanes.join(", "))
        }
    };
    // The result lies in `low..low + span`, so the sum may wrap.
    let sum = match dtype {
        DType::F32 | DType::F64 | DType::I64 => format!("low + {ty}(step)"),
        DType::I32 => format!("bitcast<{ty}>(bitcast<{words}>(low) + step)"),
        _ => "low + step".to_string(),
    };
    format!(
        "fn {name}(w: {words}, low: {ty}, span: {words}) -> {ty} {{\n    let step = {step};\n    return {sum};\n}}\n"
    )
}

/// Registers the function that returns the elements of the call with a given number (for integers, its words). Returns
/// the function's name.
fn register(functions: &mut Functions, dist: Dist, dtype: DType) -> String {
    functions.add_text("tm_philox_product", if functions.has_i64() { PRODUCT_WIDE } else { PRODUCT });
    functions.add_text("tm_philox", &philox());
    let head = "call: u32, key: vec2<u32>, rest: vec3<u32>";
    match (dist, dtype) {
        (Dist::Uniform, DType::F64) => functions.add_text("tm_rand_f64", RAND_F64),
        (Dist::Uniform, _) => {
            let recording = trace::record(4, || vec![uniform::<Traced<F32>>(Traced::<U32>::named("w".into())).id()]);
            let tail = format!("    return {};\n", recording.results[0]);
            functions.add("tm_uniform", "w: vec4<u32>", "vec4<f32>", &recording, &tail);
            let body = "return tm_uniform(tm_philox(call, key, rest));";
            functions.add_text("tm_rand_f32", &format!("fn tm_rand_f32({head}) -> vec4<f32> {{\n    {body}\n}}\n"));
        }
        (Dist::Normal, DType::F64) => {
            let recording = trace::record(1, || {
                let (a, b) = (Traced::<U64>::named("a".into()), Traced::named("b".into()));
                let (c, s) = normal_pair::<Traced<F64>>(a, b);
                vec![c.id(), s.id()]
            });
            let tail = format!("    return vec2<f64>({});\n", recording.results.join(", "));
            functions.add("tm_normal_f64", "a: u64, b: u64", "vec2<f64>", &recording, &tail);
            functions.add_text("tm_randn_f64", RANDN_F64);
        }
        (Dist::Normal, _) => {
            let recording = trace::record(2, || {
                let (a, b) = (Traced::<U32>::named("a".into()), Traced::named("b".into()));
                let (c, s) = normal_pair::<Traced<F32>>(a, b);
                vec![c.id(), s.id()]
            });
            let (c, s) = (&recording.results[0], &recording.results[1]);
            let tail = format!("    return vec4<f32>({c}.x, {s}.x, {c}.y, {s}.y);\n");
            functions.add("tm_normal", "a: vec2<u32>, b: vec2<u32>", "vec4<f32>", &recording, &tail);
            let body = "let w = tm_philox(call, key, rest);\n    return tm_normal(w.xz, w.yw);";
            functions.add_text("tm_randn_f32", &format!("fn tm_randn_f32({head}) -> vec4<f32> {{\n    {body}\n}}\n"));
        }
        (Dist::Integer, _) => return "tm_philox".to_string(),
    }
    format!("tm_{}_{dtype}", if dist == Dist::Uniform { "rand" } else { "randn" })
}

/// The high and the low word of a product, if 64-bit integers may be used.
const PRODUCT_WIDE: &str = "fn tm_philox_product(a: u32, b: u32) -> vec2<u32> {
    let p = u64(a) * u64(b);
    return vec2<u32>(u32(p >> 32u), u32(p & 4294967295lu));
}
";

/// The high and the low word of a product, computed from 16-bit halves.
const PRODUCT: &str = "fn tm_philox_product(a: u32, b: u32) -> vec2<u32> {
    let al = a & 0xffffu;
    let ah = a >> 16u;
    let bl = b & 0xffffu;
    let bh = b >> 16u;
    let m = ah * bl + ((al * bl) >> 16u);
    let n = al * bh + (m & 0xffffu);
    return vec2<u32>(ah * bh + (m >> 16u) + (n >> 16u), a * b);
}
";

/// The ten rounds, written out. The turns of a loop would count towards Mesa's limit on an invocation's turns.
fn philox() -> String {
    let mut text = "fn tm_philox_round(c: vec4<u32>, k: vec2<u32>) -> vec4<u32> {
    let p = tm_philox_product(0xd2511f53u, c.x);
    let q = tm_philox_product(0xcd9e8d57u, c.z);
    return vec4<u32>(q.x ^ c.y ^ k.x, q.y, p.x ^ c.w ^ k.y, p.y);
}
fn tm_philox(call: u32, key: vec2<u32>, rest: vec3<u32>) -> vec4<u32> {
    let step = vec2<u32>(0x9e3779b9u, 0xbb67ae85u);
    var c = tm_philox_round(vec4<u32>(call, rest.x, rest.y, rest.z), key);
"
    .to_string();
    for round in 1..10 {
        text += &format!("    c = tm_philox_round(c, key + {round}u * step);\n");
    }
    text + "    return c;\n}\n"
}

/// A pair of normal numbers from the two 64-bit words of a call.
const RANDN_F64: &str = "fn tm_randn_f64(call: u32, key: vec2<u32>, rest: vec3<u32>) -> vec2<f64> {
    let w = tm_philox(call, key, rest);
    return tm_normal_f64((u64(w.x) << 32u) | u64(w.y), (u64(w.z) << 32u) | u64(w.w));
}
";

/// Uniform numbers of 53 bits, each from two words, without 64-bit integers.
const RAND_F64: &str = "fn tm_rand_f64(call: u32, key: vec2<u32>, rest: vec3<u32>) -> vec2<f64> {
    let w = tm_philox(call, key, rest);
    let high = vec2<f64>(f64(w.x), f64(w.z)) * 2.3283064365386963e-10lf;
    let low = vec2<f64>(f64(w.y >> 11u), f64(w.w >> 11u)) * 1.1102230246251565e-16lf;
    return high + low;
}
";
