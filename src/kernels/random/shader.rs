//! Random numbers as WGSL.
//!
<<<<<<< HEAD
//! In: what a kernel asks for, as expressions. Out: an expression, and the helper functions it needs, which are
//! registered with the module's functions. Must hold: the counters are those of the host.

use crate::graph::{DType, Dist};
use crate::kernels::element::wgsl::Functions;

/// Whether WGSL can draw these numbers: 64-bit normals need functions that WGSL lacks, and 64-bit integers are
/// left to the host.
=======
//! In: what a kernel asks for, as expressions. Out: an expression, and the functions that it calls, which are
//! registered with the module's. The counters are the host's, and so is the text of the distributions' arithmetic:
//! it is recorded from `graph::semantics`.

use super::elements_per_call;
use crate::graph::semantics::random::{normal_pair, uniform};
use crate::graph::{DType, Dist};
use crate::kernels::element::trace::{self, F32, Traced, U32};
use crate::kernels::element::wgsl::{Functions, register_type};

/// Whether WGSL can draw these numbers: f64 normals need functions that it lacks, and 64-bit integers are the host's.
>>>>>>> elements
pub fn supports(dist: Dist, dtype: DType) -> bool {
    match dist {
        Dist::Uniform => dtype.is_float(),
        Dist::Normal => dtype == DType::F32,
        Dist::Integer => matches!(dtype, DType::F32 | DType::I32 | DType::U32 | DType::U8),
    }
}

<<<<<<< HEAD
/// An expression for random numbers. `key` is seed low, seed high, stream low, stream high, op (u32 expressions);
/// `element` is a u32, or a vec4<u32> for width 4. With `flat_run` the four elements are `e..e + 4` and `e` is a
/// multiple of 4: one Philox call serves them. `range` is `low` and `span` of integers, of
/// the same width as the element.
=======
/// An expression for `width` random numbers. `key` is seed low, seed high, stream low, stream high, op (`u32`);
/// `element` is a variable, `u32` or `vec4<u32>`. With `flat_run` the four elements are `e..e + 4` and `e` is a
/// multiple of 4: one call of the generator serves them. `range` is `low` (of the dtype, scalar) and `span` (`u32`,
/// scalar) of integers.
///
/// # Panics
/// IR-7, where [`supports`] says no, or for integers without their range.
>>>>>>> elements
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
<<<<<<< HEAD
    register(functions, dist, dtype);
    let [seed_low, seed_high, stream_low, stream_high, op] = key;
    let key = format!("vec2<u32>({seed_low}, {seed_high}), vec3<u32>({op}, {stream_low}, {stream_high})");
    let name = match (dist, dtype) {
        (Dist::Uniform, DType::F64) => "tm_rand_f64",
        (Dist::Uniform, _) => "tm_rand",
        (Dist::Normal, _) => "tm_randn",
        (Dist::Integer, _) => "tm_randw",
    };
    let drawn = match (width, flat_run && dtype != DType::F64) {
        (1, _) => format!("{name}1({element}, {key})"),
        (_, true) => format!("{name}4(({element}).x >> 2u, {key})"),
        _ => {
            let lanes: Vec<String> =
                ["x", "y", "z", "w"].iter().map(|c| format!("{name}1(({element}).{c}, {key})")).collect();
            let ty = match (dist, dtype) {
                (Dist::Integer, _) => "u32",
                (_, DType::F64) => "f64",
                _ => "f32",
            };
            format!("vec4<{ty}>({})", lanes.join(", "))
        }
    };
    match range {
        None => drawn,
        Some((low, span)) => {
            let (high, ty) = if width == 1 {
                ("tm_mulhi1", dtype_name(dtype).to_owned())
            } else {
                ("tm_mulhi4", format!("vec4<{}>", dtype_name(dtype)))
            };
            // Wrapping, so that a range over all of i32 works: low + step is in range by construction.
            if dtype == DType::F32 {
                format!("({ty}({low}) + {ty}({high}({drawn}, {span})))")
            } else {
                format!(
                    "bitcast<{ty}>(bitcast<{u}>({ty}({low})) + {high}({drawn}, {span}))",
                    u = if width == 1 { "u32" } else { "vec4<u32>" }
                )
            }
=======
    assert!(supports(dist, dtype), "IR-7: {dist:?} of {dtype} has no WGSL");
    let group = register(functions, dist, dtype);
    let [seed_low, seed_high, stream_low, stream_high, op] = key;
    let mut rest = format!("vec2<u32>({seed_low}, {seed_high}), vec3<u32>({op}, {stream_low}, {stream_high})");
    match (dist, range) {
        (Dist::Integer, Some((low, span))) => rest += &format!(", {low}, {span}"),
        (Dist::Integer, None) => panic!("IR-7: random integers without their range"),
        _ => {}
    }
    let per_call = elements_per_call(dist, dtype);
    let one = |element: &str| format!("{group}({element} / {per_call}u, {rest})[{element} % {per_call}u]");
    match (width, flat_run && per_call == 4) {
        (1, _) => one(&element),
        (_, true) => format!("{group}({element}.x / 4u, {rest})"),
        _ => {
            let lanes = ["x", "y", "z", "w"].map(|lane| one(&format!("{element}.{lane}")));
            format!("{}({})", register_type(dtype, 4), lanes.join(", "))
>>>>>>> elements
        }
    }
}

<<<<<<< HEAD
fn dtype_name(dtype: DType) -> &'static str {
    match dtype {
        DType::I32 => "i32",
        DType::F32 => "f32",
        _ => "u32",
    }
}

fn register(functions: &mut Functions, dist: Dist, dtype: DType) {
    let product = if functions.has_i64() { MULHILO_64 } else { MULHILO_16 };
    functions.add_text("tm_mulhilo", product);
    functions.add_text("tm_philox", PHILOX);
    match (dist, dtype) {
        (Dist::Uniform, DType::F64) => functions.add_text("tm_rand_f64", RAND_F64),
        (Dist::Uniform, _) => functions.add_text("tm_rand", RAND),
        (Dist::Normal, _) => functions.add_text("tm_randn", RANDN),
        (Dist::Integer, _) => functions.add_text("tm_randw", RANDW),
    }
}

const MULHILO_64: &str = "
fn tm_mulhilo(a: u32, b: u32) -> vec2<u32> {
    let p = u64(a) * u64(b);
    return vec2<u32>(u32(p >> 32u), u32(p & 0xfffffffflu));
}
";

const MULHILO_16: &str = "
fn tm_mulhilo(a: u32, b: u32) -> vec2<u32> {
=======
/// Registers the function that turns a call's number into its elements, and names it.
fn register(functions: &mut Functions, dist: Dist, dtype: DType) -> String {
    functions.add_text("tm_philox_product", if functions.has_i64() { PRODUCT_WIDE } else { PRODUCT });
    functions.add_text("tm_philox", &philox());
    let head = "call: u32, key: vec2<u32>, rest: vec3<u32>";
    match (dist, dtype) {
        (Dist::Uniform, DType::F64) => functions.add_text("tm_rand_f64", RAND_F64),
        (Dist::Uniform, _) => {
            let recording = trace::record(4, functions.has_i64(), || {
                vec![uniform::<Traced<F32>>(Traced::<U32>::named("w".into())).id()]
            });
            let tail = format!("    return {};\n", recording.results[0]);
            functions.add("tm_uniform", "w: vec4<u32>", "vec4<f32>", &recording, &tail);
            let body = "return tm_uniform(tm_philox(call, key, rest));";
            functions.add_text("tm_rand_f32", &format!("fn tm_rand_f32({head}) -> vec4<f32> {{\n    {body}\n}}\n"));
        }
        (Dist::Normal, _) => {
            let recording = trace::record(2, functions.has_i64(), || {
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
        (Dist::Integer, _) => {
            let (scalar, vector) = (register_type(dtype, 1), register_type(dtype, 4));
            // In `low..low + span`, so that sums may wrap.
            let sum = match dtype {
                DType::F32 => "vec4<f32>(low) + vec4<f32>(steps)",
                DType::I32 => "bitcast<vec4<i32>>(bitcast<u32>(low) + steps)",
                _ => "low + steps",
            };
            let steps = ["x", "y", "z", "w"].map(|lane| format!("tm_philox_product(w.{lane}, span).x")).join(", ");
            functions.add_text(
                &format!("tm_randi_{dtype}"),
                &format!(
                    "fn tm_randi_{dtype}({head}, low: {scalar}, span: u32) -> {vector} {{\n    \
                     let w = tm_philox(call, key, rest);\n    let steps = vec4<u32>({steps});\n    return {sum};\n}}\n"
                ),
            );
        }
    }
    let kind = match dist {
        Dist::Uniform => "rand",
        Dist::Normal => "randn",
        Dist::Integer => "randi",
    };
    format!("tm_{kind}_{dtype}")
}

/// High and low word of a product, where 64-bit integers may be used.
const PRODUCT_WIDE: &str = "fn tm_philox_product(a: u32, b: u32) -> vec2<u32> {
    let p = u64(a) * u64(b);
    return vec2<u32>(u32(p >> 32u), u32(p & 4294967295lu));
}
";

/// The same from 16-bit halves.
const PRODUCT: &str = "fn tm_philox_product(a: u32, b: u32) -> vec2<u32> {
>>>>>>> elements
    let al = a & 0xffffu;
    let ah = a >> 16u;
    let bl = b & 0xffffu;
    let bh = b >> 16u;
<<<<<<< HEAD
    let t = ah * bl + ((al * bl) >> 16u);
    let m = al * bh + (t & 0xffffu);
    return vec2<u32>(ah * bh + (t >> 16u) + (m >> 16u), a * b);
}
";

const PHILOX: &str = "
fn tm_philox_round(c: vec4<u32>, k: vec2<u32>) -> vec4<u32> {
    let a = tm_mulhilo(0xD2511F53u, c.x);
    let b = tm_mulhilo(0xCD9E8D57u, c.z);
    return vec4<u32>(b.x ^ c.y ^ k.x, b.y, a.x ^ c.w ^ k.y, a.y);
}
fn tm_philox(element: u32, key: vec2<u32>, rest: vec3<u32>) -> vec4<u32> {
    let weyl = vec2<u32>(0x9E3779B9u, 0xBB67AE85u);
    var c = tm_philox_round(vec4<u32>(element, rest), key);
    c = tm_philox_round(c, key + weyl);
    c = tm_philox_round(c, key + 2u * weyl);
    c = tm_philox_round(c, key + 3u * weyl);
    c = tm_philox_round(c, key + 4u * weyl);
    c = tm_philox_round(c, key + 5u * weyl);
    c = tm_philox_round(c, key + 6u * weyl);
    c = tm_philox_round(c, key + 7u * weyl);
    c = tm_philox_round(c, key + 8u * weyl);
    return tm_philox_round(c, key + 9u * weyl);
}
";

const RAND: &str = "
fn tm_rand4(call: u32, key: vec2<u32>, rest: vec3<u32>) -> vec4<f32> {
    return vec4<f32>(tm_philox(call, key, rest) >> vec4<u32>(8u)) * 5.9604644775390625e-8;
}
fn tm_rand1(element: u32, key: vec2<u32>, rest: vec3<u32>) -> f32 {
    return tm_rand4(element >> 2u, key, rest)[element & 3u];
}
";

const RAND_F64: &str = "
fn tm_rand_f641(element: u32, key: vec2<u32>, rest: vec3<u32>) -> f64 {
    let w = tm_philox(element >> 1u, key, rest);
    let p = select(w.xy, w.zw, vec2<bool>((element & 1u) == 1u));
    return (f64(p.x >> 5u) * 67108864.0lf + f64(p.y >> 6u)) * 1.1102230246251565e-16lf;
}
";

const RANDN: &str = "
fn tm_ln_unit(x: vec2<f32>) -> vec2<f32> {
    let bits = bitcast<vec2<u32>>(x) - vec2<u32>(0x3F3504F3u);
    let e = vec2<f32>(bitcast<vec2<i32>>(bits) >> vec2<u32>(23u));
    let f = bitcast<vec2<f32>>((bits & vec2<u32>(0x007FFFFFu)) + vec2<u32>(0x3F3504F3u)) - 1.0;
    let z = f * f;
    var p = f * 7.0376836292e-2 - 1.1514610310e-1;
    p = p * f + 1.1676998740e-1;
    p = p * f - 1.2420140846e-1;
    p = p * f + 1.4249322787e-1;
    p = p * f - 1.6668057665e-1;
    p = p * f + 2.0000714765e-1;
    p = p * f - 2.4999993993e-1;
    p = p * f + 3.3333331174e-1;
    var y = f * z * p;
    y = y - 2.12194440e-4 * e;
    y = y - 0.5 * z;
    return f + y + 0.693359375 * e;
}
fn tm_randn4(call: u32, key: vec2<u32>, rest: vec3<u32>) -> vec4<f32> {
    let w = tm_philox(call, key, rest);
    let u = (vec2<f32>(w.xz) + 1.0) * 2.3283064365386963e-10;
    let r = sqrt(-2.0 * tm_ln_unit(u));
    let t = vec2<f32>(bitcast<vec2<i32>>(w.yw)) * 2.3283064365386963e-10;
    let q = round(t * 4.0);
    let x = (t - q * 0.25) * 6.283185307179586;
    let z = x * x;
    let s = ((-1.9515295891e-4 * z + 8.3321608736e-3) * z - 1.6666654611e-1) * z * x + x;
    let c = ((2.443315711809948e-5 * z - 1.388731625493765e-3) * z + 4.166664568298827e-2) * z * z - 0.5 * z + 1.0;
    let n = vec2<i32>(q);
    let odd = (n & vec2<i32>(1)) == vec2<i32>(1);
    var a = select(c, s, odd);
    var b = select(s, c, odd);
    a = select(a, -a, ((n + 1) & vec2<i32>(2)) == vec2<i32>(2));
    b = select(b, -b, (n & vec2<i32>(2)) == vec2<i32>(2));
    return vec4<f32>(r.x * a.x, r.x * b.x, r.y * a.y, r.y * b.y);
}
fn tm_randn1(element: u32, key: vec2<u32>, rest: vec3<u32>) -> f32 {
    return tm_randn4(element >> 2u, key, rest)[element & 3u];
}
";

const RANDW: &str = "
fn tm_randw4(call: u32, key: vec2<u32>, rest: vec3<u32>) -> vec4<u32> {
    return tm_philox(call, key, rest);
}
fn tm_randw1(element: u32, key: vec2<u32>, rest: vec3<u32>) -> u32 {
    return tm_philox(element >> 2u, key, rest)[element & 3u];
}
fn tm_mulhi1(w: u32, span: u32) -> u32 {
    return tm_mulhilo(w, span).x;
}
fn tm_mulhi4(w: vec4<u32>, s: vec4<u32>) -> vec4<u32> {
    return vec4<u32>(tm_mulhi1(w.x, s.x), tm_mulhi1(w.y, s.y), tm_mulhi1(w.z, s.z), tm_mulhi1(w.w, s.w));
=======
    let m = ah * bl + ((al * bl) >> 16u);
    let n = al * bh + (m & 0xffffu);
    return vec2<u32>(ah * bh + (m >> 16u) + (n >> 16u), a * b);
}
";

/// The ten rounds, one after the other: a loop would count against what Mesa lets an invocation run.
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

/// 53 bits of two words; no 64-bit integers are needed for it.
const RAND_F64: &str = "fn tm_rand_f64(call: u32, key: vec2<u32>, rest: vec3<u32>) -> vec2<f64> {
    let w = tm_philox(call, key, rest);
    let high = vec2<f64>(f64(w.x), f64(w.z)) * 2.3283064365386963e-10lf;
    let low = vec2<f64>(f64(w.y >> 11u), f64(w.w >> 11u)) * 1.1102230246251565e-16lf;
    return high + low;
>>>>>>> elements
}
";
