//! Random numbers as WGSL.
//!
//! In: the key, the element numbers and the range, as expressions. Out: an expression, and the functions that it calls,
//! which are registered with the module's. Counters are the same as on the host, and so is the arithmetic of the
//! distributions, which is recorded from `graph::semantics`.

use super::{INTEGER_TRIES, KEY_STEPS, elements_per_call, shader_rejected};
use crate::graph::semantics::random::{exponential, normal_pair, uniform};
use crate::graph::{DType, Dist};
use crate::kernels::element::trace::{self, F32, F64, Traced, U32, U64};
use crate::kernels::element::wgsl::Functions;
use crate::kernels::wgsl::types::typed;

/// An expression for `width` random numbers. `key` is seed low, seed high, stream low, stream high, op (`u32`);
/// `element` is `u32` or `vec4<u32>`. With `flat_run` the four elements are `e..e + 4` and `e` is a multiple of 4: one
/// call of the generator serves them. `params` are those of the IR's instruction, of `width` elements each; `of` is the
/// dtype of the first of them, or the numbers' own.
///
/// # Panics
/// IR-7, for integers without a range.
#[allow(clippy::too_many_arguments)]
pub fn wgsl(
    functions: &mut Functions,
    dist: Dist,
    dtype: DType,
    of: DType,
    width: u32,
    key: [String; 5],
    element: String,
    flat_run: bool,
    params: &[String],
) -> String {
    let group = register(functions, dist, dtype, of);
    let [seed_low, seed_high, stream_low, stream_high, op] = key;
    let rest = format!("vec2<u32>({seed_low}, {seed_high}), vec3<u32>({op}, {stream_low}, {stream_high})");
    let per_call = elements_per_call(dist, dtype);
    let each = |one: &dyn Fn(&str, &[String]) -> String, yields: DType| match width {
        1 => one(&element, params),
        _ => {
            let lanes = ["x", "y", "z", "w"].map(|lane| {
                let params: Vec<String> = params.iter().map(|param| format!("({param}).{lane}")).collect();
                one(&format!("({element}).{lane}"), &params)
            });
            format!("{}({})", typed(yields, 4), lanes.join(", "))
        }
    };
    if dist.parameters() > 0 {
        return each(&|element, params| format!("{group}({element}, {rest}, {})", params.join(", ")), dtype);
    }
    let one =
        |element: &str, _: &[String]| format!("{group}(({element}) / {per_call}u, {rest})[({element}) % {per_call}u]");
    let is_integer = dist.has_range();
    let shared = width == 4 && flat_run && per_call == 4;
    let whole = format!("{group}(({element}).x / 4u, {rest})");
    if !is_integer {
        return if shared { whole } else { each(&one, dtype) };
    }
    let [low, span] = params else { panic!("IR-7: random integers without their range") };
    let drawn = match (shared, dist) {
        (true, _) => whole,
        (_, Dist::Wide) => each(&|element, _| format!("{group}({element}, {rest})"), DType::I64),
        _ => each(&one, DType::U32),
    };
    let name = if width == 1 { format!("tm_{dist:?}_{dtype}") } else { format!("tm_{dist:?}_{dtype}_4") };
    let name = name.to_lowercase();
    match dist {
        Dist::Wide => functions.add_text(&name, &wide_integer(&name, width)),
        _ => functions.add_text(&name, &integer(&name, dtype, width)),
    }
    format!("{name}({drawn}, {low}, {span}, {element}, {rest})")
}

/// A function from words to integers of a range, which draws again where that would be biased.
fn integer(name: &str, dtype: DType, width: u32) -> String {
    let (ty, words) = (typed(dtype, width), typed(DType::U32, width));
    let step = match width {
        1 => "tm_integer_step(w, span, element, key, rest)".to_string(),
        _ => {
            let lanes = ["x", "y", "z", "w"]
                .map(|lane| format!("tm_integer_step(w.{lane}, span.{lane}, element.{lane}, key, rest)"));
            format!("{words}({})", lanes.join(", "))
        }
    };
    // The result lies in `low..low + span`, so the sum may wrap.
    let sum = match dtype {
        DType::F32 | DType::F64 => format!("low + {ty}(step)"),
        // The step goes through u64, because Mesa's compiler extends the sign in a direct cast to i64.
        DType::I64 => format!("low + bitcast<{ty}>({}(step))", if width == 1 { "u64" } else { "vec4<u64>" }),
        DType::I32 => format!("bitcast<{ty}>(bitcast<{words}>(low) + step)"),
        _ => "low + step".to_string(),
    };
    let rest = "key: vec2<u32>, rest: vec3<u32>";
    format!(
        "fn {name}(w: {words}, low: {ty}, span: {words}, element: {words}, {rest}) -> {ty} {{\n    \
         let step = {step};\n    return {sum};\n}}\n"
    )
}

/// The text of a function that makes an integer of a wide range from a 64-bit word. It makes one element at a call,
/// because kernels with 64-bit numbers compute single elements.
fn wide_integer(name: &str, width: u32) -> String {
    assert_eq!(width, 1, "IR-7: wide integers, four at a time");
    format!(
        "fn {name}(word: i64, low: i64, last: i64, element: u32, key: vec2<u32>, rest: vec3<u32>) -> i64 {{
    let most = bitcast<u64>(last);
    var mask = most;
    mask |= mask >> 1u;
    mask |= mask >> 2u;
    mask |= mask >> 4u;
    mask |= mask >> 8u;
    mask |= mask >> 16u;
    mask |= mask >> 32u;
    var step = bitcast<u64>(word) & mask;
    for (var number = 1u; number <= {INTEGER_TRIES}u && step > most; number++) {{
        let w = tm_try(element, key, rest, number);
        step = ((u64(w.x) << 32u) | u64(w.y)) & mask;
    }}
    return bitcast<i64>(bitcast<u64>(low) + min(step, most));
}}
"
    )
}

/// The words of an element's try.
pub(super) fn words_of_try() -> String {
    let [low, high] = KEY_STEPS;
    format!(
        "fn tm_try(element: u32, key: vec2<u32>, rest: vec3<u32>, number: u32) -> vec4<u32> {{\n    \
         return tm_philox(element, key ^ (vec2<u32>({low}u, {high}u) * number), rest);\n}}\n"
    )
}

/// The high half of a word's product with `span`, whose 0 stands for 2^32, or that of the next word which is not refused.
fn integer_step() -> String {
    format!(
        "fn tm_integer_step(w: u32, span: u32, element: u32, key: vec2<u32>, rest: vec3<u32>) -> u32 {{
    if (span == 0u) {{ return w; }}
    var product = tm_philox_product(w, span);
    if (product.y < span) {{
        let threshold = (0u - span) % span;
        for (var number = 1u; number <= {INTEGER_TRIES}u && product.y < threshold; number++) {{
            product = tm_philox_product(tm_try(element, key, rest, number).x, span);
        }}
    }}
    return product.x;
}}
"
    )
}

/// Registers the function that returns the elements of the call with a given number (for integers, its words). Returns
/// the function's name.
fn register(functions: &mut Functions, dist: Dist, dtype: DType, of: DType) -> String {
    functions.add_text("tm_philox_product", if functions.has_i64() { PRODUCT_WIDE } else { PRODUCT });
    functions.add_text("tm_philox", &philox());
    if dist.has_range() || dist.is_rejected() {
        functions.add_text("tm_try", &words_of_try());
    }
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
        (Dist::Exponential, DType::F64) => {
            let recording =
                trace::record(1, || vec![exponential::<Traced<F64>>(Traced::<U64>::named("w".into())).id()]);
            let tail = format!("    return {};\n", recording.results[0]);
            functions.add("tm_exponential_of_f64", "w: u64", "f64", &recording, &tail);
            functions.add_text("tm_exponential_f64", EXPONENTIAL_F64);
        }
        (Dist::Exponential, _) => {
            let recording =
                trace::record(4, || vec![exponential::<Traced<F32>>(Traced::<U32>::named("w".into())).id()]);
            let tail = format!("    return {};\n", recording.results[0]);
            functions.add("tm_exponential_of", "w: vec4<u32>", "vec4<f32>", &recording, &tail);
            let body = "return tm_exponential_of(tm_philox(call, key, rest));";
            let text = format!("fn tm_exponential_f32({head}) -> vec4<f32> {{\n    {body}\n}}\n");
            functions.add_text("tm_exponential_f32", &text);
        }
        (Dist::Integer, _) => {
            functions.add_text("tm_integer_step", &integer_step());
            return "tm_philox".to_string();
        }
        (Dist::Wide, _) => {
            functions.add_text("tm_wide_word", WIDE_WORD);
            return "tm_wide_word".to_string();
        }
        (Dist::Bernoulli | Dist::Gamma | Dist::LogGamma | Dist::Poisson | Dist::Binomial, _) => {
            return shader_rejected::register(functions, dist, of);
        }
    }
    format!("tm_{}_{dtype}", dist.name())
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

/// An element's 64-bit word.
const WIDE_WORD: &str = "fn tm_wide_word(element: u32, key: vec2<u32>, rest: vec3<u32>) -> i64 {
    let w = tm_philox(element / 2u, key, rest);
    let own = select(w.xy, w.zw, (element & 1u) == 1u);
    return bitcast<i64>((u64(own.x) << 32u) | u64(own.y));
}
";

/// Exponentials of the two 64-bit words of a call.
const EXPONENTIAL_F64: &str = "fn tm_exponential_f64(call: u32, key: vec2<u32>, rest: vec3<u32>) -> vec2<f64> {
    let w = tm_philox(call, key, rest);
    let a = tm_exponential_of_f64((u64(w.x) << 32u) | u64(w.y));
    let b = tm_exponential_of_f64((u64(w.z) << 32u) | u64(w.w));
    return vec2<f64>(a, b);
}
";

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
