//! Pieces of WGSL that library kernels share: bindings of operands in segments, the entry point, grids.
//!
//! In: names and element types. Out: declarations with `load_name(i)` and `store_name(i, value)`.
//!
//! Must hold: parameter word 0 of a library kernel is its fault word's number ([`FAULT_WORD`]), word 1 log2 of
//! the elements in a segment (`SEGMENT_SHIFT_WORD`); its own words follow from [`OWN_WORDS`] on.

use super::dispatch::rows;
use crate::error::{Error, ErrorKind};
use std::fmt::Write;

/// The parameter word of a pass that holds the number of the fault word; `passes` leaves it 0, the device puts
/// the launch's `params[0]` there if the pass binds fault words.
pub const FAULT_WORD: usize = 0;
/// The parameter word of a pass that holds log2 of the elements in a segment.
const SEGMENT_SHIFT_WORD: usize = 1;
/// The first parameter word that a library kernel uses as it likes.
pub const OWN_WORDS: usize = 2;

/// A module in the making.
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
        let several = segments > 1;
        let buffer = |segment: u8| if several { format!("{name}_{segment}") } else { name.to_string() };
        for segment in 0..segments.max(1) {
            let declared = format!("var<storage, read_write> {}: array<{ty}>;", buffer(segment));
            let _ = writeln!(self.text, "@group(0) @binding({}) {declared}", self.bindings);
            self.bindings += 1;
        }
        let head = if several {
            format!(
                "    let segment = i >> params[{SEGMENT_SHIFT_WORD}];\n    let e = i & ((1u << params[{SEGMENT_SHIFT_WORD}]) - 1u);\n"
            )
        } else {
            "    let e = i;\n".to_string()
        };
        let each = |statement: &dyn Fn(&str) -> String| -> String {
            (0..segments.max(1))
                .map(|segment| {
                    let body = statement(&buffer(segment));
                    if segment + 1 < segments {
                        format!("    if (segment == {segment}u) {{ {body} }}\n")
                    } else {
                        format!("    {body}\n")
                    }
                })
                .collect()
        };
        let load = each(&|buffer| format!("return {buffer}[e];"));
        let store = each(&|buffer| format!("{buffer}[e] = value; return;"));
        let _ = write!(self.text, "fn load_{name}(i: u32) -> {ty} {{\n{head}{load}}}\n");
        let _ = write!(self.text, "fn store_{name}(i: u32, value: {ty}) {{\n{head}{store}}}\n");
    }

    /// Binds a buffer of atomic words.
    pub(crate) fn atomics(&mut self, name: &str) {
        let declared = format!("var<storage, read_write> {name}: array<atomic<u32>>;");
        let _ = writeln!(self.text, "@group(0) @binding({}) {declared}", self.bindings);
        self.bindings += 1;
    }

    /// Module-scope text: functions, workgroup memory.
    pub(crate) fn add(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// The module with these statements as `main`, which knows `index` (the workgroup's number) and `lid`.
    pub(crate) fn finish(mut self, statements: &str) -> String {
        let _ = write!(
            self.text,
            "\n@compute @workgroup_size(256)\nfn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lid: u32) {{\n    let index = group.y * groups.x + group.x;\n{statements}}}\n"
        );
        self.text
    }
}

/// The grid of so many workgroups.
///
/// # Errors
/// `ErrorKind::Unsupported` where there are more than a grid holds.
pub(crate) fn grid_of(groups: u64, what: &'static str) -> Result<[u32; 3], Error> {
    let too_many = || Error::new(ErrorKind::Unsupported, format!("{what} of this size needs {groups} workgroups"));
    rows(u32::try_from(groups).map_err(|_| too_many())?).ok_or_else(too_many)
}

/// Refuses operands in several segments.
///
/// # Errors
/// `ErrorKind::Unsupported`.
pub(crate) fn one_segment(segments: &[u8], what: &'static str) -> Result<(), Error> {
    if segments.iter().all(|segments| *segments <= 1) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Unsupported, format!("{what} of a value in several segments does not run on a GPU yet")))
}
