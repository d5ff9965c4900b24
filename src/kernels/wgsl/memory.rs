//! Access to operands: the bindings of a module and the small functions through which its body loads and stores.
//!
//! In: a kernel's operands. Out: declarations, and `load3`, `load3x4`, `load3v`, `store3`, `store3x4` for operand 3.
//!
//! Must hold:
//! - WGSL-1: an operand is declared as an array of `vec4` only if every store to it writes a whole `vec4`: a store to
//!   one component may rewrite its neighbours, which other invocations write.
//! - WGSL-2: the four elements of an aligned group lie in one segment (`SEGMENT_SHIFT >= 3`).

use super::types::{from_storage, register, storage, to_storage, typed, vector};
use crate::kernels::ir::{Form, InstOp, Kernel, Level, Operand, Store, header};
use std::collections::BTreeSet;
use std::fmt::Write;

/// A function through which the body accesses an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Accessor {
    /// `load(i)`: one element.
    Load,
    /// `load_x4(i)`: four elements from a multiple of 4 on.
    LoadGroup,
    /// `load_v(indices)`: four elements. If they are neighbours, they are taken from one or two aligned groups.
    LoadLanes,
    /// `store(i, value)`.
    Store,
    /// `store_x4(i, value)`: four elements from a multiple of 4 on.
    StoreGroup,
}

/// The operands of a module and which accessors its body uses.
pub(super) struct Memory<'k> {
    kernel: &'k Kernel,
    /// Whether the parameters are immediates and not a binding.
    immediate: bool,
    grouped: Vec<bool>,
    used: BTreeSet<(u16, Accessor)>,
}

impl<'k> Memory<'k> {
    pub(super) fn new(kernel: &'k Kernel, immediate: bool) -> Memory<'k> {
        let grouped = (0..kernel.operands.len()).map(|operand| is_grouped(kernel, operand as u16)).collect();
        Memory { kernel, immediate, grouped, used: BTreeSet::new() }
    }

    /// The expression of a parameter word. If the word belongs to a row, this is the word of the current turn.
    pub(super) fn parameter(&self, slot: usize) -> String {
        if let Some(rolled) = &self.kernel.rolled
            && slot >= rolled.rows as usize
        {
            return format!("params[row + {}u]", slot - rolled.rows as usize);
        }
        if self.immediate { format!("params.w{slot}") } else { format!("params[{slot}]") }
    }

    /// Whether the operand is declared as an array of `vec4`.
    pub(super) fn grouped(&self, operand: u16) -> bool {
        self.grouped[operand as usize]
    }

    /// The expression that loads through an accessor.
    pub(super) fn load(&mut self, operand: u16, accessor: Accessor, index: &str) -> String {
        self.need(operand, accessor);
        format!("{}({index})", name(operand, accessor))
    }

    /// The statement that stores through an accessor.
    pub(super) fn store(&mut self, operand: u16, accessor: Accessor, index: &str, value: &str) -> String {
        self.need(operand, accessor);
        format!("{}({index}, {value});", name(operand, accessor))
    }

    fn need(&mut self, operand: u16, accessor: Accessor) {
        self.used.insert((operand, accessor));
        let grouped = self.grouped(operand);
        match accessor {
            Accessor::LoadLanes => {
                self.used.insert((operand, Accessor::Load));
                if grouped {
                    self.used.insert((operand, Accessor::LoadGroup));
                }
            }
            Accessor::LoadGroup if !grouped => {
                self.used.insert((operand, Accessor::Load));
            }
            _ => {}
        }
    }

    /// Declarations of the parameters, the operands' bindings and the fault words.
    pub(super) fn declarations(&self) -> String {
        let mut text = if self.immediate {
            // Immediates are a struct of words, because HLSL allows nothing else, and pads the elements of arrays.
            let words: Vec<String> = (0..self.kernel.params).map(|slot| format!("w{slot}: u32")).collect();
            format!("struct Params {{ {} }}\nvar<immediate> params: Params;\n", words.join(", "))
        } else {
            String::from("@group(0) @binding(0) var<storage, read> params: array<u32>;\n")
        };
        let mut binding = 1;
        for (number, operand) in self.kernel.operands.iter().enumerate() {
            let element = vector(storage(operand.dtype), if self.grouped[number] { 4 } else { 1 });
            for segment in 0..operand.segments.max(1) {
                let name = buffer(operand, number as u16, segment);
                let _ =
                    writeln!(text, "@group(0) @binding({binding}) var<storage, read_write> {name}: array<{element}>;");
                binding += 1;
            }
        }
        if self.kernel.faults {
            let _ =
                writeln!(text, "@group(0) @binding({binding}) var<storage, read_write> faults: array<atomic<u32>>;");
        }
        text
    }

    /// The accessor functions that the body uses.
    pub(super) fn functions(&self) -> String {
        let mut text = String::new();
        for &(operand, accessor) in &self.used {
            text.push_str(&self.function(operand, accessor));
        }
        text
    }

    fn function(&self, number: u16, accessor: Accessor) -> String {
        let operand = &self.kernel.operands[number as usize];
        let dtype = operand.dtype;
        let name = name(number, accessor);
        let one = register(dtype);
        let four = typed(dtype, 4);
        let grouped = self.grouped(number);
        let element = if operand.segments > 1 {
            let narrow = self.parameter(header::SEGMENT_SHIFT);
            let shift = if dtype.is_wide() { format!("({narrow} - 1u)") } else { narrow };
            format!("    let segment = i >> {shift};\n    let e = i & ((1u << {shift}) - 1u);\n")
        } else if operand.tiled {
            let base = if dtype.is_wide() { header::BASE_WIDE } else { header::BASE };
            format!("    let e = i - {};\n", self.parameter(base))
        } else {
            "    let e = i;\n".to_string()
        };
        match accessor {
            Accessor::Load => {
                let place = if grouped { "[e >> 2u][e & 3u]" } else { "[e]" };
                let read = self.each_segment(number, |buffer| {
                    format!("return {};", from_storage(dtype, 1, &format!("{buffer}{place}")))
                });
                format!("fn {name}(i: u32) -> {one} {{\n{element}{read}}}\n")
            }
            Accessor::LoadGroup if grouped => {
                let read = self.each_segment(number, |buffer| {
                    format!("return {};", from_storage(dtype, 4, &format!("{buffer}[e >> 2u]")))
                });
                format!("fn {name}(i: u32) -> {four} {{\n{element}{read}}}\n")
            }
            Accessor::LoadGroup => {
                let load = self::name(number, Accessor::Load);
                format!(
                    "fn {name}(i: u32) -> {four} {{\n    return {four}({load}(i), {load}(i + 1u), {load}(i + 2u), {load}(i + 3u));\n}}\n"
                )
            }
            Accessor::LoadLanes => {
                let load = self::name(number, Accessor::Load);
                let group = self::name(number, Accessor::LoadGroup);
                let aligned = if grouped {
                    format!(
                        "    if (i.w - i.x == 3u && i.z - i.x == 2u && i.y - i.x == 1u) {{\n        let first = i.x & 3u;\n        let a = {group}(i.x - first);\n        if (first == 0u) {{ return a; }}\n        let b = {group}(i.x - first + 4u);\n        if (first == 1u) {{ return {four}(a.yzw, b.x); }}\n        if (first == 2u) {{ return {four}(a.zw, b.xy); }}\n        return {four}(a.w, b.xyz);\n    }}\n"
                    )
                } else {
                    String::new()
                };
                format!(
                    "fn {name}(i: vec4<u32>) -> {four} {{\n{aligned}    return {four}({load}(i.x), {load}(i.y), {load}(i.z), {load}(i.w));\n}}\n"
                )
            }
            Accessor::Store => {
                let write = self
                    .each_segment(number, |buffer| format!("{buffer}[e] = {}; return;", to_storage(dtype, 1, "value")));
                format!("fn {name}(i: u32, value: {one}) {{\n{element}{write}}}\n")
            }
            Accessor::StoreGroup => {
                let write = self.each_segment(number, |buffer| {
                    format!("{buffer}[e >> 2u] = {}; return;", to_storage(dtype, 4, "value"))
                });
                format!("fn {name}(i: u32, value: {four}) {{\n{element}{write}}}\n")
            }
        }
    }

    /// Writes `statement` for the operand's one binding, or a choice of it for the binding of each segment.
    fn each_segment(&self, number: u16, statement: impl Fn(&str) -> String) -> String {
        let operand = &self.kernel.operands[number as usize];
        if operand.segments <= 1 {
            return format!("    {}\n", statement(&buffer(operand, number, 0)));
        }
        let mut text = String::new();
        for segment in 0..operand.segments {
            let body = statement(&buffer(operand, number, segment));
            if segment + 1 < operand.segments {
                let _ = writeln!(text, "    if (segment == {segment}u) {{ {body} }}");
            } else {
                let _ = writeln!(text, "    {body}");
            }
        }
        text
    }
}

/// Whether `store` writes whole aligned groups of four at the flat index.
pub(super) fn is_group_store(kernel: &Kernel, store: &Store) -> bool {
    let flat = match store.index {
        None => true,
        Some(index) => matches!(kernel.inst(index).op, InstOp::Flat),
    };
    // In form `Line`, a value that is the same for the whole line is stored once, not for each element.
    let in_groups = match kernel.form {
        Form::Map => true,
        Form::Line(lines) => lines.in_fours && kernel.inst(store.value).level == Level::Element,
        Form::Reduce { .. } | Form::Scan { .. } => false,
    };
    in_groups && kernel.width() == 4 && flat && store.guard.is_none()
}

fn is_grouped(kernel: &Kernel, operand: u16) -> bool {
    kernel.width() == 4
        && kernel.scratch != Some(operand)
        && kernel.stores.iter().filter(|s| s.operand == operand).all(|s| is_group_store(kernel, s))
}

fn buffer(operand: &Operand, number: u16, segment: u8) -> String {
    if operand.segments <= 1 { format!("buffer{number}") } else { format!("buffer{number}_{segment}") }
}

fn name(operand: u16, accessor: Accessor) -> String {
    match accessor {
        Accessor::Load => format!("load{operand}"),
        Accessor::LoadGroup => format!("load{operand}x4"),
        Accessor::LoadLanes => format!("load{operand}v"),
        Accessor::Store => format!("store{operand}"),
        Accessor::StoreGroup => format!("store{operand}x4"),
    }
}
