//! Distributions of parameters as WGSL: functions of one element, which draw candidates until one is taken.
//!
//! In: a distribution and the dtype of its parameters. Out: a function `(element, key, rest, parameters)`, registered
//! with the module's. A candidate's arithmetic is recorded from `graph::semantics`, its words are those of the host
//! (`rejected.rs`).

use super::TRIES;
use crate::graph::semantics::rejection::{
    COUNTED_BELOW, binomial_candidate, binomial_scale, binomial_wait, gamma_candidate, gamma_of, log_gamma_of,
    poisson_candidate, poisson_limit, poisson_wait,
};
use crate::graph::semantics::{Float, Lane};
use crate::graph::{DType, Dist};
use crate::kernels::element::trace::{self, F32, F64, Kind, Traced, Truth, U32, U64};
use crate::kernels::element::wgsl::Functions;

/// Registers the function of a distribution of parameters of the dtype `of`, and names it. `tm_philox` is there
/// already, and for those drawn by rejection `tm_try`.
pub(super) fn register(functions: &mut Functions, dist: Dist, of: DType) -> String {
    let name = format!("tm_draw_{}_{of}", dist.name().to_string() + if dist == Dist::LogGamma { "_log" } else { "" });
    match (dist, of) {
        (Dist::Bernoulli, _) => functions.add_text(&name, &bernoulli(&name, of)),
        (Dist::Gamma | Dist::LogGamma, DType::F64) => gamma::<F64, U64>(functions, dist, of, &name),
        (Dist::Gamma | Dist::LogGamma, _) => gamma::<F32, U32>(functions, dist, of, &name),
        (Dist::Poisson, DType::F64) => poisson::<F64, U64>(functions, of, &name),
        (Dist::Poisson, _) => poisson::<F32, U32>(functions, of, &name),
        (Dist::Binomial, DType::F64) => binomial::<F64, U64>(functions, of, &name),
        (Dist::Binomial, _) => binomial::<F32, U32>(functions, of, &name),
        (Dist::Uniform | Dist::Normal | Dist::Exponential | Dist::Integer | Dist::Wide, _) => {
            panic!("IR-7: {dist:?} has no parameters")
        }
    }
    name
}

/// As `rejected::is_below`, step by step.
fn bernoulli(name: &str, of: DType) -> String {
    let (scale, one) = if of == DType::F64 { ("4294967296.0lf", "1.0lf") } else { ("4294967296.0f", "1.0f") };
    format!(
        "fn {name}(element: u32, key: vec2<u32>, rest: vec3<u32>, chance: {of}) -> bool {{
    let words = tm_philox(element / 2u, key, rest);
    let w = select(words.xy, words.zw, (element & 1u) == 1u);
    if (chance >= {one}) {{ return true; }}
    if (!(chance > {zero})) {{ return false; }}
    let scaled = chance * {scale};
    let whole = floor(scaled);
    let part = u32((scaled - whole) * {scale});
    let high = u32(whole);
    return w.x < high || (w.x == high && w.y < part);
}}
",
        zero = if of == DType::F64 { "0.0lf" } else { "0.0f" }
    )
}

/// The lines that read the words of try `number` as `a`, `b`, `c` and `d`.
fn words(of: DType) -> &'static str {
    match of {
        DType::F64 => {
            "        let v = tm_try(element, key, rest, 2u * number - 1u);
        let w = tm_try(element, key, rest, 2u * number);
        let a = (u64(v.x) << 32u) | u64(v.y);
        let b = (u64(v.z) << 32u) | u64(v.w);
        let c = (u64(w.x) << 32u) | u64(w.y);
        let d = (u64(w.z) << 32u) | u64(w.w);
"
        }
        _ => {
            "        let w = tm_try(element, key, rest, number);
        let a = w.x;
        let b = w.y;
        let c = w.z;
        let d = w.w;
"
        }
    }
}

fn number(of: DType, value: f64) -> String {
    format!("{value:?}{}", if of == DType::F64 { "lf" } else { "f" })
}

/// Registers a function of floats `floats` and words `words`, which yields one or two floats; a truth value counts as 1.
fn add<K: Kind, W: Kind>(
    functions: &mut Functions,
    name: &str,
    floats: &[&str],
    words: &[&str],
    body: impl FnOnce(&[Traced<K>], &[Traced<W>]) -> Vec<u32>,
) {
    let recording = trace::record(1, || {
        let floats: Vec<Traced<K>> = floats.iter().map(|name| Traced::named(name.to_string())).collect();
        let words: Vec<Traced<W>> = words.iter().map(|name| Traced::named(name.to_string())).collect();
        body(&floats, &words)
    });
    let floats = floats.iter().map(|name| format!("{name}: {}", K::NAME));
    let words = words.iter().map(|name| format!("{name}: {}", W::NAME));
    let parameters: Vec<String> = floats.chain(words).collect();
    let result = if recording.results.len() == 2 { format!("vec2<{}>", K::NAME) } else { K::NAME.to_string() };
    let tail = format!("    return {result}({});\n", recording.results.join(", "));
    functions.add(name, &parameters.join(", "), &result, &recording, &tail);
}

/// A candidate, and whether it is taken as a number.
fn candidate<K: Kind>((value, taken): (Traced<K>, Traced<Truth>)) -> Vec<u32>
where
    Traced<K>: Float<Mask = Traced<Truth>>,
{
    vec![value.id(), Traced::<K>::select(taken, Traced::lit(1.0), Traced::lit(0.0)).id()]
}

fn gamma<K: Kind, W: Kind>(functions: &mut Functions, dist: Dist, of: DType, name: &str)
where
    Traced<K>: Float<Mask = Traced<Truth>, Bits = Traced<W>>,
{
    let is_log = dist == Dist::LogGamma;
    let (first, last) = (format!("tm_gamma_try_{of}"), format!("{name}_of"));
    add::<K, W>(functions, &first, &["shape"], &["a", "b", "c"], |f, w| {
        candidate(gamma_candidate(f[0], w[0], w[1], w[2]))
    });
    add::<K, W>(functions, &last, &["shape", "candidate"], &["d"], |f, w| {
        vec![if is_log { log_gamma_of(f[0], f[1], w[0]) } else { gamma_of(f[0], f[1], w[0]) }.id()]
    });
    functions.add_text(
        name,
        &format!(
            "fn {name}(element: u32, key: vec2<u32>, rest: vec3<u32>, shape: {of}) -> {of} {{
    var value = shape;
    for (var number = 1u; number <= {TRIES}u; number++) {{
{words}        let drawn = {first}(shape, a, b, c);
        if (drawn.y > {zero} || number == {TRIES}u) {{
            value = {last}(shape, drawn.x, d);
            break;
        }}
    }}
    return value;
}}
",
            words = words(of),
            zero = number(of, 0.0)
        ),
    );
}

fn poisson<K: Kind, W: Kind>(functions: &mut Functions, of: DType, name: &str)
where
    Traced<K>: Float<Mask = Traced<Truth>, Bits = Traced<W>>,
{
    let [limit, wait, first] = ["limit", "wait", "try"].map(|part| format!("tm_poisson_{part}_{of}"));
    add::<K, W>(functions, &limit, &["mean"], &[], |f, _| vec![poisson_limit(f[0]).id()]);
    add::<K, W>(functions, &wait, &["most", "product", "count"], &["a"], |f, w| {
        let (product, count) = poisson_wait(f[0], f[1], f[2], w[0]);
        vec![product.id(), count.id()]
    });
    add::<K, W>(functions, &first, &["mean"], &["a", "b"], |f, w| candidate(poisson_candidate(f[0], w[0], w[1])));
    let (zero, one, least) = (number(of, 0.0), number(of, 1.0), number(of, COUNTED_BELOW));
    functions.add_text(
        name,
        &format!(
            "fn {name}(element: u32, key: vec2<u32>, rest: vec3<u32>, mean: {of}) -> {of} {{
    let counts = mean < {least};
    let most = {limit}(select({least}, mean, counts));
    var state = vec2<{of}>({one}, {zero});
    for (var number = 1u; number <= {TRIES}u; number++) {{
{words}        if (counts) {{
            state = {wait}(most, state.x, state.y, a);
            state = {wait}(most, state.x, state.y, b);
            state = {wait}(most, state.x, state.y, c);
            state = {wait}(most, state.x, state.y, d);
            if (state.x <= most) {{ break; }}
        }} else {{
            let drawn = {first}(mean, a, b);
            state.y = drawn.x;
            if (drawn.y > {zero}) {{ break; }}
        }}
    }}
    return state.y;
}}
",
            words = words(of)
        ),
    );
}

fn binomial<K: Kind, W: Kind>(functions: &mut Functions, of: DType, name: &str)
where
    Traced<K>: Float<Mask = Traced<Truth>, Bits = Traced<W>>,
{
    let [scale, wait, first] = ["scale", "wait", "try"].map(|part| format!("tm_binomial_{part}_{of}"));
    add::<K, W>(functions, &scale, &["chance"], &[], |f, _| vec![binomial_scale(f[0]).id()]);
    add::<K, W>(functions, &wait, &["trials", "scale", "sum", "count"], &["a"], |f, w| {
        let (sum, count) = binomial_wait(f[0], f[1], f[2], f[3], w[0]);
        vec![sum.id(), count.id()]
    });
    add::<K, W>(functions, &first, &["trials", "chance"], &["a", "b"], |f, w| {
        candidate(binomial_candidate(f[0], f[1], w[0], w[1]))
    });
    let (zero, one, half) = (number(of, 0.0), number(of, 1.0), number(of, 0.5));
    functions.add_text(
        name,
        &format!(
            "fn {name}(element: u32, key: vec2<u32>, rest: vec3<u32>, trials: {of}, given: {of}) -> {of} {{
    let chance = select(given, {one} - given, given > {half});
    let counts = trials * chance < {least};
    let scale = {scale}(chance);
    var state = vec2<{of}>({zero}, {zero});
    for (var number = 1u; number <= {TRIES}u; number++) {{
{words}        if (counts) {{
            state = {wait}(trials, scale, state.x, state.y, a);
            state = {wait}(trials, scale, state.x, state.y, b);
            state = {wait}(trials, scale, state.x, state.y, c);
            state = {wait}(trials, scale, state.x, state.y, d);
            if (state.x > trials) {{ break; }}
        }} else {{
            let drawn = {first}(trials, chance, a, b);
            state.y = drawn.x;
            if (drawn.y > {zero}) {{ break; }}
        }}
    }}
    return select(state.y, trials - state.y, given > {half});
}}
",
            words = words(of),
            least = number(of, COUNTED_BELOW)
        ),
    );
}
