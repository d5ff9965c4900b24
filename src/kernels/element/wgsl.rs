//! Elementwise ops as WGSL.
//!
//! In: an op, dtypes, the number of elements a value holds (1 or 4) and the texts of its arguments. Out: an
//! expression, and the functions that it calls. Values are `f32`, `f64`, `bool`, `u32` (for u32 and u8), `i32`,
//! `i64`, or `vec4` of those.
//!
//! Must hold: ELEM-6: only ops that [`supports`] allows are written, and functions of f64 only if 64-bit integers, in
//! which their bits are handled, may be used. ELEM-7: equal requests give equal text, so that equal kernels have equal
//! modules.

use super::trace::{self, F32, F64, Helper, I32, I64, Kind, Recording, Traced, Truth, U8, U32, record};
use super::wgsl_cast;
use crate::graph::refusals::runs_on_gpus;
use crate::graph::semantics::*;
use crate::graph::table::op_table;
use crate::graph::{DType, ElementOp};
use crate::kernels::target::{FloatProfile, Precision};
use crate::kernels::wgsl::types::{typed, vector};
use std::collections::BTreeSet;

/// The helper functions that a module needs, gathered while its expressions are written.
#[derive(Clone, Debug)]
pub struct Functions {
    profile: FloatProfile,
    precision: Precision,
    has_i64: bool,
    names: BTreeSet<String>,
    texts: Vec<String>,
}

/// The part of an op's row that is recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The common function, and the test for the rare one if the row has one.
    Common,
    /// The rare function.
    Rare,
}

impl Functions {
    /// No functions yet. `has_i64` says whether modules may use 64-bit integers.
    pub fn new(profile: FloatProfile, precision: Precision, has_i64: bool) -> Functions {
        Functions { profile, precision, has_i64, names: BTreeSet::new(), texts: Vec::new() }
    }

    /// Whether 64-bit integers may be used.
    pub fn has_i64(&self) -> bool {
        self.has_i64
    }

    /// An expression for `op` over arguments that are variables (the expression may name them several times). Arguments
    /// have dtype `input` (except the mask of `Select`), the result has dtype `output`; all have `width` elements, 1 or
    /// 4.
    ///
    /// # Panics
    /// ELEM-1, for arguments that the op does not take, or ELEM-6, for ops that [`supports`] does not allow.
    pub fn apply(&mut self, op: ElementOp, input: DType, output: DType, width: u32, args: &[String]) -> String {
        assert!(runs_on_gpus(op, input), "ELEM-6: {} of {input} has no WGSL", op.name());
        assert!(args.len() == op.arity(), "ELEM-1: {} of {} arguments", op.name(), args.len());
        if let (Precision::Fast, DType::F32, Some(template)) = (self.precision, input, op.info().fast) {
            return fast(template, width, &args[0]);
        }
        if op == ElementOp::Sub && input.is_float() && args[0] == args[1] {
            // Drivers compile `x - x` to zero, also for infinite `x` and NaN.
            let zero_or_nan =
                |a: &str| if input == DType::F32 { nothing_left::<F32>(a) } else { nothing_left::<F64>(a) };
            let name = format!("tm_nothing_left_{input}{}", if width == 1 { "" } else { "_4" });
            let left = record(width, || vec![zero_or_nan("a")]);
            let ty = typed(input, width);
            self.add(&name, &format!("a: {ty}"), &ty, &left, &format!("    return {};\n", left.results[0]));
            return format!("{name}({})", args[0]);
        }
        if self.precision == Precision::Accurate && input == DType::F32 && !self.profile.exact_division {
            if op == ElementOp::Div {
                return self.scaled_division(width, &args[0], &args[1]);
            }
            if op == ElementOp::Reciprocal {
                return self.scaled_division(width, &splat("1.0f", width), &args[0]);
            }
        }
        let direct = record(width, || record_op(op, input, output, Part::Common, args));
        if direct.results.len() == 1 && direct.helpers.is_empty() {
            match &direct.lines[..] {
                // The minimum of a number and itself records a comparison, but its result is the argument.
                _ if args.contains(&direct.results[0]) => return direct.results[0].clone(),
                [] => return direct.results[0].clone(),
                [line] => return line["let t0 = ".len()..line.len() - 1].to_string(),
                _ => {}
            }
        }
        let suffix = if width == 1 { "" } else { "_4" };
        let name = if op == ElementOp::Cast {
            format!("tm_cast_{input}_{output}{suffix}")
        } else {
            format!("tm_{}_{input}{suffix}", op.name())
        };
        self.register(&name, op, input, output, width);
        format!("{name}({})", args.join(", "))
    }

    /// The texts of all functions that were registered, each after those that it calls.
    pub fn text(&self) -> String {
        self.texts.concat()
    }

    /// Adds a function whose body is the lines of a recording, followed by `tail`.
    pub(crate) fn add(&mut self, name: &str, parameters: &str, result: &str, recording: &Recording, tail: &str) {
        if self.names.contains(name) {
            return;
        }
        for &helper in &recording.helpers {
            self.add_helper(helper);
        }
        let body: String = recording.lines.iter().map(|line| format!("    {line}\n")).collect();
        self.names.insert(name.to_string());
        self.texts.push(format!("fn {name}({parameters}) -> {result} {{\n{body}{tail}}}\n"));
    }

    /// Adds the text of hand-written functions, once for each name.
    pub(crate) fn add_text(&mut self, name: &str, text: &str) {
        if self.names.insert(name.to_string()) {
            self.texts.push(text.to_string());
        }
    }

    /// A quotient whose divisors are scaled to within 2^±125, because Vulkan bounds no error of divisions by numbers
    /// beyond 2^±126.
    fn scaled_division(&mut self, width: u32, a: &str, b: &str) -> String {
        let (ty, name) = (vector("f32", width), if width == 1 { "tm_div_f32" } else { "tm_div_f32_4" });
        let c = |text: &str| splat(text, width);
        // 2^125, 2^-125, 2^-24 and 2^24.
        let text = format!(
            "fn {name}(a: {ty}, b: {ty}) -> {ty} {{\n    \
             let up = select({}, {}, abs(b) < {});\n    \
             let s = select(up, {}, abs(b) > {});\n    \
             return (a * s) / (b * s);\n}}\n",
            c("1.0f"),
            c("16777216.0f"),
            c("2.3509887e-38f"),
            c("5.9604645e-8f"),
            c("4.2535296e37f"),
        );
        self.add_text(name, &text);
        format!("{name}({a}, {b})")
    }

    fn add_helper(&mut self, helper: Helper) {
        let (name, text) = match helper {
            Helper::MulHigh => ("tm_mulhi", mul_high("tm_mulhi", "u32")),
            Helper::MulHigh4 => ("tm_mulhi_4", mul_high("tm_mulhi_4", "vec4<u32>")),
            Helper::Remainder => ("tm_fmod", REMAINDER.to_string()),
            Helper::RemainderWide => ("tm_fmod_f64", REMAINDER_WIDE.to_string()),
        };
        self.add_text(name, &text);
    }

    fn register(&mut self, name: &str, op: ElementOp, input: DType, output: DType, width: u32) {
        if self.names.contains(name) {
            return;
        }
        let letters: Vec<String> = ["a", "b", "c"][..op.arity()].iter().map(|s| s.to_string()).collect();
        let parameters = |width: u32| -> String {
            let typed = letters.iter().enumerate().map(|(n, letter)| {
                let dtype = if op == ElementOp::Select && n == 0 { DType::Bool } else { input };
                format!("{letter}: {}", typed(dtype, width))
            });
            typed.collect::<Vec<_>>().join(", ")
        };
        let common = record(width, || record_op(op, input, output, Part::Common, &letters));
        let result = typed(output, width);
        let mut tail = format!("    return {};\n", common.results[0]);
        if let Some(test) = common.results.get(1) {
            let rare_name = format!("{}_rare", name.trim_end_matches("_4"));
            let rare = record(1, || record_op(op, input, output, Part::Rare, &letters));
            let rare_tail = format!("    return {};\n", rare.results[0]);
            self.add(&rare_name, &parameters(1), &typed(output, 1), &rare, &rare_tail);
            tail = with_rare(&common.results[0], test, &rare_name, &letters, &result, width);
        }
        self.add(name, &parameters(width), &result, &common, &tail);
    }
}

/// The end of a function whose rare lanes are computed one by one, if there are any.
fn with_rare(common: &str, test: &str, rare: &str, letters: &[String], result: &str, width: u32) -> String {
    if width == 1 {
        return format!(
            "    if ({test}) {{\n        return {rare}({});\n    }}\n    return {common};\n",
            letters.join(", ")
        );
    }
    // Each turn of the loop computes one lane. Because the number of turns depends on data, the compiler does not
    // unroll the loop: the rare function stands in the kernel once, not four times, and takes its registers once.
    let picked: Vec<String> = letters
        .iter()
        .map(|a| format!("select(select(select({a}.w, {a}.z, left.z), {a}.y, left.y), {a}.x, left.x)"))
        .collect();
    format!(
        "    var left = {test};\n    var value = {common};\n    while (any(left)) {{\n        \
         let y = left.y && !left.x;\n        let z = left.z && !left.x && !left.y;\n        \
         let here = vec4<bool>(left.x, y, z, !(left.x || y || z));\n        \
         value = select(value, {result}({rare}({})), here);\n        left = left & !here;\n    }}\n    \
         return value;\n",
        picked.join(", ")
    )
}

/// `a - a`: zero if `a` is finite, otherwise NaN.
fn nothing_left<K: Kind>(a: &str) -> u32
where
    Traced<K>: Float<Mask = Traced<Truth>>,
{
    let a = Traced::<K>::named(a.to_string());
    let finite = !(a.is_nan() | a.is_infinite());
    <Traced<K> as Lane>::select(finite, Float::lit(0.0), Float::nan()).id()
}

/// A constant, repeated in all lanes.
fn splat(text: &str, width: u32) -> String {
    if width == 1 { text.to_string() } else { format!("{}({text})", vector("f32", width)) }
}

/// The call of a built-in function. In the template, `#0` is the argument and `#f32(..)` a constant with as many lanes.
fn fast(template: &str, width: u32, argument: &str) -> String {
    template.replace("#0", argument).replace("#f32", &vector("f32", width))
}

fn mul_high(name: &str, ty: &str) -> String {
    let c = |text: &str| if ty == "u32" { text.to_string() } else { format!("{ty}({text})") };
    let (mask, half) = (c("0xffffu"), c("16u"));
    format!(
        "fn {name}(a: {ty}, b: {ty}) -> {ty} {{\n    \
         let al = a & {mask};\n    let ah = a >> {half};\n    let bl = b & {mask};\n    let bh = b >> {half};\n    \
         let m = ah * bl + ((al * bl) >> {half});\n    let n = al * bh + (m & {mask});\n    \
         return ah * bh + (m >> {half}) + (n >> {half});\n}}\n"
    )
}

/// The remainder of finite numbers by long division of their mantissas, eight bits in each step: at most 35 steps.
const REMAINDER: &str = "fn tm_fmod(a: f32, b: f32) -> f32 {
    let ba = bitcast<u32>(a) & 0x7fffffffu;
    let bb = bitcast<u32>(b) & 0x7fffffffu;
    var ea = ba >> 23u;
    var eb = bb >> 23u;
    var ma = ba & 0x7fffffu;
    var mb = bb & 0x7fffffu;
    if (ea == 0u) { ea = 1u; } else { ma = ma | 0x800000u; }
    if (eb == 0u) { eb = 1u; } else { mb = mb | 0x800000u; }
    if (mb == 0u || ba < bb) { return a; }
    var d = ea - eb;
    ma = ma % mb;
    loop {
        if (d == 0u || ma == 0u) { break; }
        let s = min(d, 8u);
        ma = (ma << s) % mb;
        d = d - s;
    }
    if (ma == 0u) { return bitcast<f32>(bitcast<u32>(a) & 0x80000000u); }
    let up = min(countLeadingZeros(ma) - 8u, eb - 1u);
    ma = ma << up;
    var e = eb - up;
    if (ma < 0x800000u) { e = 0u; }
    return bitcast<f32>((bitcast<u32>(a) & 0x80000000u) | (e << 23u) | (ma & 0x7fffffu));
}
";

/// The remainder of f64, eleven bits in each step: at most 190 steps.
const REMAINDER_WIDE: &str = "fn tm_fmod_f64(a: f64, b: f64) -> f64 {
    let sign = bitcast<u64>(a) & 0x8000000000000000lu;
    let ba = bitcast<u64>(a) & 0x7ffffffffffffffflu;
    let bb = bitcast<u64>(b) & 0x7ffffffffffffffflu;
    var ea = u32(ba >> 52u);
    var eb = u32(bb >> 52u);
    var ma = ba & 0xffffffffffffflu;
    var mb = bb & 0xffffffffffffflu;
    if (ea == 0u) { ea = 1u; } else { ma = ma | 0x10000000000000lu; }
    if (eb == 0u) { eb = 1u; } else { mb = mb | 0x10000000000000lu; }
    if (mb == 0lu || ba < bb) { return a; }
    var d = ea - eb;
    ma = ma % mb;
    loop {
        if (d == 0u || ma == 0lu) { break; }
        let s = min(d, 11u);
        ma = (ma << s) % mb;
        d = d - s;
    }
    if (ma == 0lu) { return bitcast<f64>(sign); }
    let high = u32(ma >> 32u);
    let zeros = select(countLeadingZeros(high), 32u + countLeadingZeros(u32(ma & 0xfffffffflu)), high == 0u);
    let up = min(zeros - 11u, eb - 1u);
    ma = ma << up;
    var e = eb - up;
    if (ma < 0x10000000000000lu) { e = 0u; }
    return bitcast<f64>(sign | (u64(e) << 52u) | (ma & 0xffffffffffffflu));
}
";

fn arg<K: Kind>(args: &[String], n: usize) -> Traced<K> {
    Traced::named(args[n].clone())
}

/// Records a row's body on lanes of the dtype's kind.
macro_rules! record_body {
    ($p:ident, $input:ident, $output:ident, $a:ident, real1 $f:path) => {
        match $input {
            DType::F32 => vec![$f(arg::<F32>($a, 0)).id()],
            DType::F64 => vec![$f(arg::<F64>($a, 0)).id()],
            _ => wrong_dtype($input),
        }
    };
    ($p:ident, $input:ident, $output:ident, $a:ident, real1 $f:path | $test:path, $slow:path) => {
        match ($input, $p) {
            (DType::F32, Part::Common) => vec![$f(arg::<F32>($a, 0)).id(), $test(arg::<F32>($a, 0)).id()],
            (DType::F32, Part::Rare) => vec![$slow(arg::<F32>($a, 0)).id()],
            (DType::F64, Part::Common) => vec![$f(arg::<F64>($a, 0)).id(), $test(arg::<F64>($a, 0)).id()],
            (DType::F64, Part::Rare) => vec![$slow(arg::<F64>($a, 0)).id()],
            _ => wrong_dtype($input),
        }
    };
    ($p:ident, $input:ident, $output:ident, $a:ident, real2 $f:path) => {
        match $input {
            DType::F32 => vec![$f(arg::<F32>($a, 0), arg::<F32>($a, 1)).id()],
            DType::F64 => vec![$f(arg::<F64>($a, 0), arg::<F64>($a, 1)).id()],
            _ => wrong_dtype($input),
        }
    };
    ($p:ident, $input:ident, $output:ident, $a:ident, number1 $f:path, $i:path) => {
        match $input {
            DType::F32 => vec![$f(arg::<F32>($a, 0)).id()],
            DType::F64 => vec![$f(arg::<F64>($a, 0)).id()],
            DType::U8 => vec![$i(arg::<U8>($a, 0)).id()],
            DType::I32 => vec![$i(arg::<I32>($a, 0)).id()],
            DType::U32 => vec![$i(arg::<U32>($a, 0)).id()],
            DType::I64 => vec![$i(arg::<I64>($a, 0)).id()],
            DType::Bool => wrong_dtype($input),
        }
    };
    ($p:ident, $input:ident, $output:ident, $a:ident, number2 $f:path, $i:path) => {
        match $input {
            DType::F32 => vec![$f(arg::<F32>($a, 0), arg::<F32>($a, 1)).id()],
            DType::F64 => vec![$f(arg::<F64>($a, 0), arg::<F64>($a, 1)).id()],
            _ => record_body!($p, $input, $output, $a, whole2 $i),
        }
    };
    ($p:ident, $input:ident, $output:ident, $a:ident, number2 $f:path | $test:path, $slow:path, $i:path) => {
        match ($input, $p) {
            (DType::F32, Part::Common) => {
                let (x, y) = (arg::<F32>($a, 0), arg::<F32>($a, 1));
                vec![$f(x, y).id(), $test(x, y).id()]
            }
            (DType::F32, Part::Rare) => vec![$slow(arg::<F32>($a, 0), arg::<F32>($a, 1)).id()],
            (DType::F64, Part::Common) => {
                let (x, y) = (arg::<F64>($a, 0), arg::<F64>($a, 1));
                vec![$f(x, y).id(), $test(x, y).id()]
            }
            (DType::F64, Part::Rare) => vec![$slow(arg::<F64>($a, 0), arg::<F64>($a, 1)).id()],
            _ => record_body!($p, $input, $output, $a, whole2 $i),
        }
    };
    ($p:ident, $input:ident, $output:ident, $a:ident, whole2 $i:path) => {
        match $input {
            DType::U8 => vec![$i(arg::<U8>($a, 0), arg::<U8>($a, 1)).id()],
            DType::I32 => vec![$i(arg::<I32>($a, 0), arg::<I32>($a, 1)).id()],
            DType::U32 => vec![$i(arg::<U32>($a, 0), arg::<U32>($a, 1)).id()],
            DType::I64 => vec![$i(arg::<I64>($a, 0), arg::<I64>($a, 1)).id()],
            _ => wrong_dtype($input),
        }
    };
    ($p:ident, $input:ident, $output:ident, $a:ident, number3 $f:path, $i:path) => {
        match $input {
            DType::F32 => vec![$f(arg::<F32>($a, 0), arg::<F32>($a, 1), arg::<F32>($a, 2)).id()],
            DType::F64 => vec![$f(arg::<F64>($a, 0), arg::<F64>($a, 1), arg::<F64>($a, 2)).id()],
            DType::U8 => vec![$i(arg::<U8>($a, 0), arg::<U8>($a, 1), arg::<U8>($a, 2)).id()],
            DType::I32 => vec![$i(arg::<I32>($a, 0), arg::<I32>($a, 1), arg::<I32>($a, 2)).id()],
            DType::U32 => vec![$i(arg::<U32>($a, 0), arg::<U32>($a, 1), arg::<U32>($a, 2)).id()],
            DType::I64 => vec![$i(arg::<I64>($a, 0), arg::<I64>($a, 1), arg::<I64>($a, 2)).id()],
            DType::Bool => wrong_dtype($input),
        }
    };
    ($p:ident, $input:ident, $output:ident, $a:ident, test1 $f:path, $i:path) => {
        match $input {
            DType::F32 => vec![$f(arg::<F32>($a, 0)).id()],
            DType::F64 => vec![$f(arg::<F64>($a, 0)).id()],
            DType::U8 => vec![$i(arg::<U8>($a, 0)).id()],
            DType::I32 => vec![$i(arg::<I32>($a, 0)).id()],
            DType::U32 => vec![$i(arg::<U32>($a, 0)).id()],
            DType::I64 => vec![$i(arg::<I64>($a, 0)).id()],
            DType::Bool => vec![$i(bool_as_whole($a, 0)).id()],
        }
    };
    ($p:ident, $input:ident, $output:ident, $a:ident, compare $f:path) => {
        match $input {
            DType::F32 => vec![$f(arg::<F32>($a, 0), arg::<F32>($a, 1)).id()],
            DType::F64 => vec![$f(arg::<F64>($a, 0), arg::<F64>($a, 1)).id()],
            DType::U8 => vec![$f(arg::<U8>($a, 0), arg::<U8>($a, 1)).id()],
            DType::I32 => vec![$f(arg::<I32>($a, 0), arg::<I32>($a, 1)).id()],
            DType::U32 => vec![$f(arg::<U32>($a, 0), arg::<U32>($a, 1)).id()],
            DType::I64 => vec![$f(arg::<I64>($a, 0), arg::<I64>($a, 1)).id()],
            DType::Bool => vec![$f(bool_as_whole($a, 0), bool_as_whole($a, 1)).id()],
        }
    };
    ($p:ident, $input:ident, $output:ident, $a:ident, logic1 $f:path) => {
        vec![$f(arg::<Truth>($a, 0)).id()]
    };
    ($p:ident, $input:ident, $output:ident, $a:ident, logic2 $f:path) => {
        vec![$f(arg::<Truth>($a, 0), arg::<Truth>($a, 1)).id()]
    };
    ($p:ident, $input:ident, $output:ident, $a:ident, select) => {
        // Any kind gives the same text, because the type of `select` is that of its arguments.
        vec![Traced::select(arg::<Truth>($a, 0), arg::<F32>($a, 1), arg::<F32>($a, 2)).id()]
    };
    ($p:ident, $input:ident, $output:ident, $a:ident, cast) => {
        vec![wgsl_cast::record($input, $output, &$a[0])]
    };
}

fn bool_as_whole(args: &[String], n: usize) -> Traced<U32> {
    Traced::<U32>::select(arg::<Truth>(args, n), Whole::whole(1), Whole::whole(0))
}

fn wrong_dtype(input: DType) -> ! {
    panic!("ELEM-1: an op of {input}")
}

macro_rules! derive_record {
    ($([$variant:ident, $name:literal, $arity:literal, $doc:literal
        rule $rule:ident; cost { $cost:expr }; body { $($body:tt)* }; fast { $fast:expr }; gradient { $gradient:expr };
        examples { $examples:expr }])*) => {
        /// Records an op over arguments with these texts. Returns its result, and the test for its rare part if it has
        /// one.
        fn record_op(op: ElementOp, input: DType, output: DType, part: Part, args: &[String]) -> Vec<u32> {
            let _ = (output, part, trace::width());
            match op {
                $(ElementOp::$variant => record_body!(part, input, output, args, $($body)*),)*
            }
        }
    };
}
op_table! { derive_record }

/// The number of lines of the common part of an op for one element, of f32 if the op takes f32.
#[cfg(test)]
pub(super) fn lines_of(op: ElementOp) -> usize {
    let args: Vec<String> = ["a", "b", "c"].into_iter().take(op.arity()).map(str::to_owned).collect();
    let is_logic = matches!(op, ElementOp::Not | ElementOp::And | ElementOp::Or | ElementOp::Xor);
    let input = if is_logic { DType::Bool } else { DType::F32 };
    record(1, || record_op(op, input, DType::F32, Part::Common, &args)).lines.len()
}
