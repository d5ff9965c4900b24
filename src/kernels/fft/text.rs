//! Writes the WGSL of one pass of a transform. A workgroup loads a tile of lines, transforms them in steps, and stores
//! them. Between steps, invocations exchange numbers through workgroup memory, first the real parts and then the
//! imaginary ones.
//!
//! In: a [`PassForm`]. Out: a module. Its parameters, from `OWN_WORDS` on, are [`PARAMS`].
//!
//! A pass of radix R loads lines whose elements are `source_step` numbers apart, and stores them `target_step` apart
//! (Stockham's order: no pass reverses digits). Element `p` of line `l` is loaded from `l % source_step + p *
//! source_step` within the `l / source_step`-th block of `source_pitch` numbers, and stored likewise. Must hold: FFT-4:
//! invocations beyond the last line or butterfly repeat the work of another invocation, and both write the same bits.

use super::butterfly::literal;
use super::plan::{steps, tile};
use super::writer::Writer;
use crate::graph::semantics::{COS, Poly, SIN};
use crate::graph::{DType, Parts};
use crate::kernels::wgsl::pieces::Module;
use crate::kernels::wgsl::types::storage;

/// Invocations of a workgroup.
pub const INVOCATIONS: u32 = 256;

/// The parameters of a pass: the number of lines; for the source and for the target the step, the pitch of blocks, how
/// many numbers of a block there are, and where real and imaginary parts begin; the numbers between neighbours of an
/// original line; the length of the transforms that are complete before this pass, and after it; the original length,
/// and the padded length; and, in two words each, the factor of the result, and a quarter turn divided by `turn` and by
/// `2 len`.
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

/// The numbers that a pass loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassLoad {
    /// The numbers that an earlier pass stored in this operand.
    Plain(u16),
    /// As `Plain`, but multiplied by the spectrum of the chirp. Real and imaginary parts are exchanged, which makes the
    /// transform the inverse one.
    Convolved(u16),
    /// The chirp.
    Chirp,
    /// The launch's argument.
    Argument {
        /// How its parts are stored.
        parts: Parts,
        /// Whether it is a half spectrum, whose other half is the mirror image.
        half: bool,
        /// Whether real and imaginary parts are exchanged, which makes the transform the inverse one.
        swap: bool,
        /// Whether it is multiplied by the chirp.
        chirped: bool,
    },
}

/// The numbers that a pass stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassStore {
    /// Numbers for a later pass, in this operand.
    Plain(u16),
    /// The result, multiplied by the factor.
    Result {
        /// The operand.
        operand: u16,
        /// Whether only real parts are stored.
        real: bool,
        /// Whether real and imaginary parts are exchanged at the end.
        swap: bool,
        /// Whether, before that, parts are exchanged and the numbers multiplied by the chirp.
        chirped: bool,
    },
}

/// The form of a pass, on which its text depends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassForm {
    /// f32 or f64.
    pub dtype: DType,
    /// The length of its transforms.
    pub radix: u32,
    /// Whether neighbouring invocations load from neighbouring lines, rather than neighbours of a line.
    pub lines_first: bool,
    /// Whether neighbouring invocations store to neighbouring lines.
    pub stores_lines_first: bool,
    /// Whether an earlier pass has done a part of the transform. This pass then multiplies the loaded numbers by
    /// twiddle factors.
    pub turned: bool,
    /// The numbers that it loads.
    pub load: PassLoad,
    /// The numbers that it stores.
    pub store: PassStore,
}

impl PassForm {
    /// The number of lines of a tile.
    pub fn lines(&self) -> u32 {
        let most = tile(self.dtype) / self.radix;
        1 << most.max(1).ilog2()
    }

    /// The operands that it binds, in order.
    pub fn operands(&self) -> Vec<u16> {
        let mut operands = match self.load {
            PassLoad::Plain(operand) | PassLoad::Convolved(operand) => vec![operand],
            PassLoad::Chirp => vec![],
            PassLoad::Argument { parts: Parts::Apart, .. } => vec![0, 1],
            PassLoad::Argument { parts: Parts::Real | Parts::Together, .. } => vec![0],
        };
        let (PassStore::Plain(target) | PassStore::Result { operand: target, .. }) = self.store;
        operands.push(target);
        operands.dedup();
        operands
    }

    /// Whether it needs functions of the chirp.
    pub fn uses_chirp(&self) -> bool {
        let loads = matches!(self.load, PassLoad::Chirp | PassLoad::Argument { chirped: true, .. });
        loads || matches!(self.store, PassStore::Result { chirped: true, .. })
    }
}

/// The module of a pass whose operands have these numbers of segments.
pub fn text(form: &PassForm, segments: &[u8]) -> String {
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

/// The declarations of workgroup memory, and of the functions for a number's place in it, for twiddle factors and for
/// chirps.
fn functions(form: &PassForm) -> String {
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
