//! Pieces of WGSL that library kernels share: bindings of operands in segments, the entry point, grids.
//!
//! In: names and element types. Out: declarations, with functions `load_name(i)` and `store_name(i, value)`.
//!
//! Must hold: parameter word 0 of a library kernel is its fault word's number ([`FAULT_WORD`]), word 1 log2 of the
//! 32-bit elements in a segment (`SEGMENT_SHIFT_WORD`; half as many 64-bit ones); its own words follow from
//! [`OWN_WORDS`] on.

use super::dispatch::rows;
use super::types::vector;
use crate::error::{Error, ErrorKind};
use std::fmt::Write;

/// The parameter word of a pass that holds the number of the fault word; `passes` leaves it 0, the device puts
/// the launch's `params[0]` there if the pass binds fault words.
pub const FAULT_WORD: usize = 0;
/// The parameter word of a pass that holds log2 of the 32-bit elements in a segment.
const SEGMENT_SHIFT_WORD: usize = 1;
/// The first parameter word whose meaning a library kernel defines itself.
pub const OWN_WORDS: usize = 2;

/// A module under construction.
pub(crate) struct Module {
    text: String,
    bindings: u32,
}

impl Module {
    pub(crate) fn new() -> Module {
        let text = "@group(0) @binding(0) var<storage, read> params: array<u32>;\n".to_string();
        Module { text, bindings: 1 }
    }

    /// Binds an operand of this storage type, with functions to load and store its elements.
    pub(crate) fn operand(&mut self, name: &str, ty: &str, segments: u8) {
        self.vector_operand(name, ty, 1, segments);
    }

    /// Binds an operand of vectors of `lanes` elements of this storage type, with functions to load and store the
    /// vector whose first element is `i`, a multiple of `lanes`.
    pub(crate) fn vector_operand(&mut self, name: &str, ty: &str, lanes: u32, segments: u8) {
        let vector = vector(ty, lanes);
        self.bind(name, &vector, segments);
        let place = |place: &str| match lanes {
            1 => place.to_owned(),
            lanes => place.replace("[e]", &format!("[e / {lanes}u]")),
        };
        self.accessor(name, segments, &format!("fn load_{name}(i: u32) -> {vector}"), ty, |at| {
            format!("return {};", place(at))
        });
        let store = format!("fn store_{name}(i: u32, value: {vector})");
        self.accessor(name, segments, &store, ty, |at| format!("{} = value; return;", place(at)));
    }

    /// Binds a buffer of atomic words.
    pub(crate) fn atomics(&mut self, name: &str) {
        self.bind(name, "atomic<u32>", 1);
    }

    /// Binds an operand of atomic words, with functions to store a word (`store_name`) and to raise it to at least a
    /// value (`raise_name`).
    pub(crate) fn atomic_operand(&mut self, name: &str, segments: u8) {
        self.bind(name, "atomic<u32>", segments);
        for (verb, function) in [("store", "atomicStore"), ("raise", "atomicMax")] {
            let head = format!("fn {verb}_{name}(i: u32, value: u32)");
            self.accessor(name, segments, &head, "u32", |place| format!("{function}(&{place}, value); return;"));
        }
    }

    fn bind(&mut self, name: &str, ty: &str, segments: u8) {
        for segment in 0..segments.max(1) {
            let buffer = buffer(name, segments, segment);
            let declared = format!("var<storage, read_write> {buffer}: array<{ty}>;");
            let _ = writeln!(self.text, "@group(0) @binding({}) {declared}", self.bindings);
            self.bindings += 1;
        }
    }

    /// Adds a function that accesses element `i`. `statement` makes its statement from the expression of the element's
    /// place in its segment.
    fn accessor(&mut self, name: &str, segments: u8, head: &str, ty: &str, statement: impl Fn(&str) -> String) {
        let _ = writeln!(self.text, "{head} {{");
        if segments > 1 {
            let wide = if ty.contains("64") { " - 1u" } else { "" };
            let shift = format!("(params[{SEGMENT_SHIFT_WORD}]{wide})");
            let _ = writeln!(self.text, "    let segment = i >> {shift};\n    let e = i & ((1u << {shift}) - 1u);");
        } else {
            self.text.push_str("    let e = i;\n");
        }
        for segment in 0..segments.max(1) {
            let body = statement(&format!("{}[e]", buffer(name, segments, segment)));
            let _ = if segment + 1 < segments {
                writeln!(self.text, "    if (segment == {segment}u) {{ {body} }}")
            } else {
                writeln!(self.text, "    {body}")
            };
        }
        self.text.push_str("}\n");
    }

    /// Adds text at module scope: functions, workgroup memory.
    pub(crate) fn add(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Finishes the module with these statements as `main`. They may use `index`, the workgroup's number, and `lid`.
    pub(crate) fn finish(self, statements: &str) -> String {
        self.finish_with(256, statements)
    }

    /// As [`Module::finish`], with `invocations` in a workgroup.
    pub(crate) fn finish_with(mut self, invocations: u32, statements: &str) -> String {
        let _ = write!(
            self.text,
            "\n@compute @workgroup_size({invocations})\nfn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lid: u32) {{\n    let index = group.y * groups.x + group.x;\n{statements}}}\n"
        );
        self.text
    }
}

/// The part of a text's key that names the segments of its operands, on which the text depends. It is empty if each
/// operand has one segment.
pub(crate) fn segments_key(segments: &[u8]) -> String {
    if segments.iter().all(|&count| count <= 1) { String::new() } else { format!(" {segments:?}") }
}

/// The name of the binding of a segment.
fn buffer(name: &str, segments: u8, segment: u8) -> String {
    if segments > 1 { format!("{name}_{segment}") } else { name.to_string() }
}

/// The grid of `groups` workgroups. `what` names the op in the error.
///
/// # Errors
/// `ErrorKind::Unsupported` if a grid cannot hold so many.
pub(crate) fn grid_of(groups: u64, what: &'static str) -> Result<[u32; 3], Error> {
    let too_many = || Error::new(ErrorKind::Unsupported, format!("{what} of this size needs {groups} workgroups"));
    rows(u32::try_from(groups).map_err(|_| too_many())?).ok_or_else(too_many)
}
