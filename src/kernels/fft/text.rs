//! The WGSL of one pass of a transform: a workgroup loads a tile of lines, transforms them in steps, between which their
//! numbers cross workgroup memory, real parts first and then imaginary ones, and stores them.
//!
//! In: a [`Form`]. Out: a module. Its parameters, from `OWN_WORDS` on, are [`PARAMS`].
//!
//! A pass of radix R takes lines whose elements are `source_step` numbers apart, and leaves them `target_step` apart
//! (Stockham's order: no pass reverses digits). A line has the number `l`; its element `p` is loaded from
//! `l % source_step + p * source_step` within the `l / source_step`-th block of `source_pitch` numbers, and stored
//! likewise. Must hold: FFT-4: of two invocations that work for the same element, beyond the last line or butterfly, both
//! write the same bits.

use super::butterfly::literal;
use super::plan::{steps, tile};
use super::writer::Writer;
use crate::graph::semantics::{COS, Poly, SIN};
use crate::graph::{DType, Parts};
use crate::kernels::wgsl::pieces::Module;
use crate::kernels::wgsl::types::storage;

/// Invocations of a workgroup.
pub const INVOCATIONS: u32 = 256;

/// The parameters of a pass: lines; of the source and of the target the step, the pitch of blocks, how many numbers of a
/// block there are, and where real and imaginary parts begin; the numbers between neighbours of an original line; the
/// length of the lines that passes before and this one have made; the original length, and that of the padded line; two
/// words each of the factor of the result, and of a quarter turn over `turn` and `2 len`.
pub const PARAMS: [&str; 21] = [
    "lines",
    "source_step",
    "source_pitch",
    "source_end",
    "source_re",
    "source_im",
    "target_step",
    "target_pitch",
    "target_end",
    "target_re",
    "target_im",
    "before",
    "turn",
    "len",
    "padded",
    "factor_low",
    "factor_high",
    "turn_step_low",
    "turn_step_high",
    "chirp_step_low",
    "chirp_step_high",
];

/// What a pass loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// What a pass before it stored in this operand.
    Plain(u16),
    /// The same, times the spectrum of the chirp; parts are exchanged, so that the transform becomes the inverse one.
    Convolved(u16),
    /// The chirp.
    Chirp,
    /// The launch's argument.
    Argument {
        /// How its parts are stored.
        parts: Parts,
        /// It is a half spectrum, of which the other half is the mirror image.
        half: bool,
        /// Parts are exchanged: the transform becomes the inverse one.
        swap: bool,
        /// It is multiplied by the chirp.
        chirped: bool,
    },
}

/// What a pass stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// Numbers for a pass after it, in this operand.
    Plain(u16),
    /// The result, in this operand, times the factor.
    Result {
        /// The operand.
        operand: u16,
        /// Only real parts.
        real: bool,
        /// Parts are exchanged at the end.
        swap: bool,
        /// Parts are exchanged, and multiplied by the chirp, first.
        chirped: bool,
    },
}

/// What the text of a pass depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// f32 or f64.
    pub dtype: DType,
    /// The length that it transforms.
    pub radix: u32,
    /// Whether neighbouring invocations load neighbouring lines, rather than neighbours of a line.
    pub lines_first: bool,
    /// Whether neighbouring invocations store neighbouring lines.
    pub stores_lines_first: bool,
    /// Whether an earlier pass has transformed a part of each line; this pass then multiplies what it loads by turns first.
    pub turned: bool,
    /// What it loads.
    pub load: Load,
    /// What it stores.
    pub store: Store,
}

impl Form {
    /// Lines of a tile.
    pub fn lines(&self) -> u32 {
        let most = tile(self.dtype) / self.radix;
        1 << most.max(1).ilog2()
    }

    /// The operands that it binds, in order.
    pub fn operands(&self) -> Vec<u16> {
        let mut operands = match self.load {
            Load::Plain(operand) | Load::Convolved(operand) => vec![operand],
            Load::Chirp => vec![],
            Load::Argument { parts: Parts::Apart, .. } => vec![0, 1],
            Load::Argument { parts: Parts::Real | Parts::Together, .. } => vec![0],
        };
        let (Store::Plain(target) | Store::Result { operand: target, .. }) = self.store;
        operands.push(target);
        operands.dedup();
        operands
    }

    /// Whether it needs functions of the chirp.
    pub fn uses_chirp(&self) -> bool {
        let loads = matches!(self.load, Load::Chirp | Load::Argument { chirped: true, .. });
        loads || matches!(self.store, Store::Result { chirped: true, .. })
    }
}

/// The module of a pass whose operands have so many segments.
pub fn text(form: &Form, segments: &[u8]) -> String {
    let mut module = Module::new();
    for (operand, &segments) in form.operands().iter().zip(segments) {
        module.operand(&format!("o{operand}"), storage(form.dtype), segments);
    }
    module.add(&functions(form));
    let steps = steps(form.dtype, form.radix);
    let mut pass = Writer::new(form);
    pass.parameters();
    let mut held = pass.load(steps[0]);
    let mut done = 1;
    for (number, &step) in steps.iter().enumerate() {
        if number > 0 {
            held = pass.exchange(held, step);
            pass.turn_step(&mut held, step, done);
        }
        held = pass.butterflies(held, step, done);
        done *= step;
    }
    let last = steps[steps.len() - 1];
    if steps.len() == 1 && form.lines_first != form.stores_lines_first {
        held = pass.exchange(held, last);
    }
    pass.store(&held);
    module.finish_with(INVOCATIONS, &pass.statements.text)
}

/// Workgroup memory, and functions of a number's place in it, of turns and of chirps.
fn functions(form: &Form) -> String {
    let (dtype, ty) = (form.dtype, storage(form.dtype));
    let numbers = (form.lines() * form.radix).next_multiple_of(32);
    let poly = |set: &[f64]| {
        set.iter().rev().fold(String::new(), |inner, &constant| {
            let constant = literal(dtype, constant);
            if inner.is_empty() { constant } else { format!("({constant} + z * {inner})") }
        })
    };
    let of = |set: Poly| poly(if dtype.is_wide() { set.wide } else { set.narrow });
    let mut text = format!(
        "var<workgroup> shared_numbers: array<{ty}, {numbers}>;
// Neighbouring places, and places a power of two apart, lie in different banks.
fn place(i: u32) -> u32 {{
    let row = i >> 5u;
    return i ^ ((row ^ (row >> 3u)) & 31u);
}}
// exp(-2 pi i k / n) for k < n; `quarters` is 4 / n, `step` is pi / (2 n).
fn turn_of(k: u32, n: u32, quarters: f32, step: {ty}) -> vec2<{ty}> {{
    let quarter = u32(f32(k) * quarters + 0.5f);
    let x = {ty}(bitcast<i32>(4u * k - quarter * n)) * step;
    let z = x * x;
    let sine = x + x * (z * {});
    let cosine = {} - {} * z + z * (z * {});
    let across = (quarter & 1u) == 1u;
    let c = select(cosine, sine, across);
    let s = select(sine, cosine, across);
    return vec2<{ty}>(select(c, -c, ((quarter + 1u) & 2u) != 0u), select(-s, s, (quarter & 2u) != 0u));
}}
",
        of(SIN),
        literal(dtype, 1.0),
        literal(dtype, 0.5),
        of(COS)
    );
    if form.uses_chirp() {
        text.push_str(
            "// The square of i, modulo m; i < m < 2^31.
fn square_of(i: u32, m: u32) -> u32 {
    if (i < 65536u) { return i * i % m; }
    let low = i & 0xffffu;
    let high = i >> 16u;
    let middle = 2u * low * high;
    let carried = (low * low >> 16u) + (middle & 0xffffu);
    let words = vec2<u32>((low * low & 0xffffu) | (carried << 16u), high * high + (middle >> 16u) + (carried >> 16u));
    var rest = words.y % m;
    for (var bit = 32u; bit > 0u; bit--) {
        rest = (rest << 1u) | ((words.x >> (bit - 1u)) & 1u);
        rest = select(rest, rest - m, rest >= m);
    }
    return rest;
}
",
        );
    }
    text
}
