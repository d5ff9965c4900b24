//! Linear algebra on a GPU: blocked factorisations, which spend most of their time in products.
//!
//! In: sizes and segment counts. Out: passes. A factorisation takes its matrix in panels of columns. For each panel,
//! one workgroup for each page factors it ([`cholesky`], [`elimination`], [`reflections`]). Then many workgroups update
//! the columns that follow ([`steps`], or [`reflections`] itself). One workgroup does all of a page of at most `BLOCK`
//! columns, so that thousands of small pages are one dispatch. An invocation has a line of a [`recurrence`].
//!
//! Must hold: LINALG-1; the loops of a kernel take at most 60,000 turns together in an invocation, because Mesa's
//! software device ends loops silently after 65,535 ([`panel_width`], `LinearOp::gpu_rows_max`).

mod cholesky;
mod elimination;
mod recurrence;
mod reflections;
mod steps;

use crate::error::Error;
use crate::graph::{DType, LinearOp, PANEL};
use crate::kernels::library::{Library, Pass};
use crate::kernels::wgsl::pieces::{Module, OWN_WORDS, grid_of, segments_key};
use crate::kernels::wgsl::types::{one, storage, zero};

/// Rows and columns of a block on the diagonal that one workgroup factors, or solves with.
const BLOCK: u32 = 64;
/// Rows that an invocation of a panel's workgroup has at a time.
const ROWS: u32 = 4;
/// The most turns that all loops of an invocation may take together.
const TURNS_MAX: u32 = 60_000;

/// The passes of an op of linear algebra whose operands have these numbers of segments.
///
/// # Errors
/// `ErrorKind::Unsupported` if a pass needs more workgroups than a grid holds.
pub fn passes(library: &Library, segments: &[u8], segment_shift: u32) -> Result<Vec<Pass>, Error> {
    let &Library::Linear { op, dtype, m, n, columns, batch, stride_a } = library else {
        panic!("LIB-1: {} is no linear algebra", library.name());
    };
    let (rows, width) = op.extents(m as usize, n as usize, columns as usize);
    let mut made = Passes {
        dtype,
        m,
        n,
        batch,
        stride_a,
        page: rows as u32 * width as u32,
        output: op.arguments() as u16,
        scratch: storage(library.scratch_dtype()),
        segments,
        segment_shift,
        passes: Vec::new(),
    };
    match op {
        LinearOp::Cholesky => cholesky::passes(&mut made)?,
        LinearOp::Lu => elimination::passes(&mut made)?,
        LinearOp::SolveTriangular(triangle) => steps::solve(&mut made, triangle, columns)?,
        LinearOp::Recurrence { order } => recurrence::passes(&mut made, order)?,
        LinearOp::Qr { full } => reflections::passes(&mut made, if full { m } else { m.min(n) })?,
        LinearOp::QrPivoted | LinearOp::Eigh { .. } | LinearOp::Eig | LinearOp::Svd { .. } => {
            unreachable!("LIB-1: {} runs on the host", library.name())
        }
    }
    Ok(made.passes)
}

/// Passes under construction, and the sizes that all of them share.
struct Passes<'a> {
    dtype: DType,
    /// Rows and columns of a page of `a`.
    m: u32,
    n: u32,
    batch: u32,
    /// Elements from one page of `a` to the next.
    stride_a: u32,
    /// Elements of a page of the output.
    page: u32,
    /// The operand that is written; scratch follows it.
    output: u16,
    /// The type of an element of the scratch.
    scratch: &'static str,
    segments: &'a [u8],
    segment_shift: u32,
    passes: Vec<Pass>,
}

/// A module's name and text, its operands and its parameters.
struct Kernel<'k> {
    /// Names the module among those of one dtype; `Passes::add` appends the segments.
    name: String,
    /// The operands that it binds, with their names.
    operands: &'k [(u16, &'k str)],
    /// Names of its parameters, and their values.
    params: &'k [(&'k str, u32)],
    /// Text before `main`.
    head: String,
    /// The statements of `main`.
    main: String,
    /// Whether it binds fault words.
    faults: bool,
    /// Invocations of a workgroup.
    invocations: u32,
    /// Workgroups.
    groups: u64,
}

impl Passes<'_> {
    /// Adds a pass.
    fn add(&mut self, kernel: Kernel<'_>) -> Result<(), Error> {
        if kernel.groups == 0 {
            return Ok(());
        }
        let ty = storage(self.dtype);
        let bound: Vec<u8> = kernel.operands.iter().map(|&(operand, _)| self.segments[operand as usize]).collect();
        let mut module = Module::new();
        for (&(operand, name), &segments) in kernel.operands.iter().zip(&bound) {
            module.operand(name, if operand > self.output { self.scratch } else { ty }, segments);
        }
        if kernel.faults {
            module.atomics("faults");
        }
        module.add(&kernel.head);
        let mut main = String::new();
        for (number, (name, _)) in kernel.params.iter().enumerate() {
            main.push_str(&format!("    let {name} = params[{}];\n", OWN_WORDS + number));
        }
        main.push_str(&kernel.main);
        let mut params = vec![0, self.segment_shift];
        params.extend(kernel.params.iter().map(|&(_, value)| value));
        self.passes.push(Pass {
            key: format!("linear {} {}{}", kernel.name, self.dtype, segments_key(&bound)),
            wgsl: module.finish_with(kernel.invocations, &main),
            params,
            operands: kernel.operands.iter().map(|&(operand, _)| operand).collect(),
            faults: kernel.faults,
            grid: grid_of(kernel.groups, "a factorisation")?,
        });
        Ok(())
    }

    /// Writes every element of the output: `value` of `i` and `j`, its row and column, and of `original`, the element
    /// of `a` at row `i` of column `j - first`. The output has `rows` rows.
    fn begin(&mut self, what: &str, rows: u32, first: u32, value: &str) -> Result<(), Error> {
        let elements = self.page as u64 * self.batch as u64;
        let (zero, ty) = (zero(self.dtype), storage(self.dtype));
        let main = format!(
            "    let e = index * 256u + lid;
    if (e >= elements) {{ return; }}
    let page = e / size;
    let i = e % size % rows;
    let j = e % size / rows;
    var original: {ty} = {zero};
    if (j >= first && j < first + columns) {{ original = load_a(page * stride + i + rows * (j - first)); }}
    store_result(e, {value});
"
        );
        let params = [
            ("elements", elements as u32),
            ("size", self.page),
            ("rows", rows),
            ("first", first),
            ("columns", self.n),
            ("stride", self.stride_a),
        ];
        self.add(Kernel {
            name: format!("begin {what}"),
            operands: &[(0, "a"), (1, "result")],
            params: &params,
            head: String::new(),
            main,
            faults: false,
            invocations: 256,
            groups: elements.div_ceil(256),
        })
    }

    /// The literals of zero and one, and the type of an element.
    fn literals(&self) -> (&'static str, &'static str, &'static str) {
        (zero(self.dtype), one(self.dtype), storage(self.dtype))
    }
}

/// The text that declares `i0`, `i1` …, the rows of a turn from `start` on, `apart` from each other, and whether each
/// is `live`. An invocation loads all of them before it waits for one.
fn rows_apart(apart: u32) -> String {
    let row = |t: u32| {
        format!(
            "            let live{t} = start + {0}u < rows;\n            let i{t} = min(start + {0}u, rows - 1u);\n",
            apart * t
        )
    };
    (0..ROWS).map(row).collect()
}

/// The text that combines the values of 256 invocations into that of the first one. `combine` merges the value of `lid
/// + half` into that of `lid`.
fn tree(combine: &str) -> String {
    format!(
        "        for (var half = 128u; half > 0u; half = half >> 1u) {{
            workgroupBarrier();
{combine}        }}
"
    )
}

/// The columns of a panel of `m` rows, so that its kernel stays within `TURNS_MAX`. A column takes `turns` turns of all
/// loops for each 256 rows, and `fixed` turns in addition.
fn panel_width(m: u32, turns: u32, fixed: u32) -> u32 {
    (TURNS_MAX / (m.div_ceil(256) * turns + fixed)).clamp(1, PANEL)
}

/// The text of `at(i, j)`: the place of row `i` of column `j <= i` in the packed lower triangle of `block` by `block`
/// elements.
fn packed_place(block: u32) -> String {
    format!("fn at(i: u32, j: u32) -> u32 {{\n    return (j * ({}u - j)) / 2u + i;\n}}\n", 2 * block - 1)
}

#[cfg(test)]
mod tests;
