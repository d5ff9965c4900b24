//! The passes that all blocked algorithms use: substitution with a block on the diagonal, and subtracting a product.
//!
//! In: where matrices lie in an operand. Out: passes. An upper triangle is a lower one that is read backwards, and a
//! transposed one has its distances exchanged, so that one substitution serves for all of them. Distances are wrapping
//! 32-bit words, so that they may be negative.

use super::{BLOCK, Kernel, Passes, packed_place};
use crate::error::Error;
use crate::graph::Triangle;
use crate::kernels::wgsl::pieces::FAULT_WORD;

/// Rows and columns of a tile of a product.
const TILE: u32 = 64;
/// Terms of the sums that a tile of the factors holds.
const DEPTH: u32 = 16;

/// A matrix within an operand, page by page.
#[derive(Clone, Copy)]
pub(super) struct Matrix {
    pub operand: u16,
    /// The place of its first element.
    pub first: u32,
    /// The distance to the next row. If that row comes before this one, the distance wraps.
    pub down: u32,
    /// The distance to the next column.
    pub right: u32,
    /// The distance to the next page.
    pub page: u32,
}

impl Matrix {
    /// The transposed matrix.
    pub fn transposed(self) -> Matrix {
        Matrix { down: self.right, right: self.down, ..self }
    }

    /// The part of the matrix from a row and a column on.
    fn from(self, row: u32, column: u32) -> Matrix {
        let first = self.first.wrapping_add(row.wrapping_mul(self.down)).wrapping_add(column.wrapping_mul(self.right));
        Matrix { first, ..self }
    }
}

/// A system `triangle x = sides`. The solution `x` overwrites the sides.
#[derive(Clone, Copy)]
pub(super) struct System {
    /// A lower triangle.
    pub triangle: Matrix,
    pub sides: Matrix,
    /// The number of unknowns of each side, at most `BLOCK`.
    pub size: u32,
    /// The number of right sides.
    pub count: u32,
    /// Whether the diagonal is assumed to be ones.
    pub unit: bool,
}

/// A product `left right`, which is subtracted from `to`.
#[derive(Clone, Copy)]
pub(super) struct Product {
    pub to: Matrix,
    pub left: Matrix,
    pub right: Matrix,
    pub rows: u32,
    pub columns: u32,
    /// Terms of each sum.
    pub terms: u32,
}

/// The passes of a triangular system over `[a, b, out]`, with `count` right sides.
pub(super) fn solve(made: &mut Passes<'_>, triangle: Triangle, count: u32) -> Result<(), Error> {
    let n = made.m;
    copy(made)?;
    let mut matrix = Matrix { operand: 0, first: 0, down: 1, right: n, page: made.stride_a };
    if triangle.transpose {
        matrix = matrix.transposed();
    }
    let mut sides = Matrix { operand: 2, first: 0, down: 1, right: n, page: made.page };
    if !triangle.is_forward() {
        let last = matrix.from(n - 1, n - 1);
        matrix = Matrix { down: last.down.wrapping_neg(), right: last.right.wrapping_neg(), ..last };
        let last = sides.from(n - 1, 0);
        sides = Matrix { down: last.down.wrapping_neg(), ..last };
    }
    for first in (0..n).step_by(BLOCK as usize) {
        let size = BLOCK.min(n - first);
        let known = sides.from(first, 0);
        let system = System { triangle: matrix.from(first, first), sides: known, size, count, unit: triangle.unit };
        substitute(made, system, !triangle.unit)?;
        let next = first + size;
        let to = sides.from(next, 0);
        let left = matrix.from(next, first);
        subtract(made, Product { to, left, right: known, rows: n - next, columns: count, terms: size }, false)?;
    }
    Ok(())
}

/// Copies the right sides to the output, where the solution will overwrite them.
fn copy(made: &mut Passes<'_>) -> Result<(), Error> {
    let elements = made.page as u64 * made.batch as u64;
    made.add(Kernel {
        name: "sides".to_owned(),
        operands: &[(1, "b"), (2, "result")],
        params: &[("elements", elements as u32)],
        head: String::new(),
        main: "    let e = index * 256u + lid;\n    if (e < elements) { store_result(e, load_b(e)); }\n".to_owned(),
        faults: false,
        invocations: 256,
        groups: elements.div_ceil(256),
    })
}

/// Names the left operand in the kernel, and lists the operands that the kernel binds.
fn operands(left: Matrix, to: Matrix) -> (&'static str, Vec<(u16, &'static str)>) {
    // A kernel may bind a buffer once only.
    if left.operand == to.operand {
        ("result", vec![(to.operand, "result")])
    } else {
        ("left", vec![(left.operand, "left"), (to.operand, "result")])
    }
}

/// Solves a system with a block on the diagonal. A workgroup holds the block and `width` right sides; an invocation
/// computes one unknown of every fourth side. If it `checks`, a zero on the diagonal sets the fault word.
pub(super) fn substitute(made: &mut Passes<'_>, system: System, checks: bool) -> Result<(), Error> {
    let System { triangle, sides, size, count, unit } = system;
    let (zero, _, ty) = made.literals();
    let each = match (count, made.dtype.is_wide()) {
        (..=4, _) => 1,
        (..=16, _) | (_, true) => 4,
        (_, false) => 8,
    };
    let width = 4 * each;
    let (left, bound) = operands(triangle, sides);
    let every = |text: &dyn Fn(u32) -> String| (0..each).map(text).collect::<String>();
    let declared = every(&|t| format!("    var x{t}: {ty} = {zero};\n"));
    let loaded = every(&|t| {
        format!("    if (i < size && first + {0}u < count) {{ x{t} = load_result(base + {0}u * x_right); }}\n", 4 * t)
    });
    let divided = every(&|t| {
        format!(
            "            if (unit == 0u) {{ x{t} = x{t} / pivot; }}\n            known[half + {}u] = x{t};\n",
            4 * t
        )
    });
    let taken = every(&|t| format!("            x{t} = x{t} - factor * known[half + {}u];\n", 4 * t));
    let stored = every(&|t| {
        format!("    if (i < size && first + {0}u < count) {{ store_result(base + {0}u * x_right, x{t}); }}\n", 4 * t)
    });
    let fault = format!("            if (pivot == {zero}) {{ atomicStore(&faults[params[{FAULT_WORD}]], 1u); }}\n");
    let main = format!(
        "    if (index >= groups_of_page * batch) {{ return; }}
    let page = index / groups_of_page;
    let corner = left_first + page * left_page;
    for (var e = lid; e < {square}u; e += 256u) {{
        let i = e % {BLOCK}u;
        let j = e / {BLOCK}u;
        if (i >= j && i < size) {{ block[at(i, j)] = load_{left}(corner + i * left_down + j * left_right); }}
    }}
    let i = lid % {BLOCK}u;
    let quarter = lid / {BLOCK}u;
    let first = index % groups_of_page * {width}u + quarter;
    let base = x_first + page * x_page + i * x_down + first * x_right;
{declared}{loaded}    workgroupBarrier();
    for (var k = 0u; k < size; k += 1u) {{
        // `known` has two halves that take turns, so that an invocation one step ahead does not overwrite what others
        // still read.
        let half = (k & 1u) * {width}u + quarter;
        if (i == k) {{
            let pivot = block[at(k, k)];
{fault}{divided}        }}
        workgroupBarrier();
        if (i > k) {{
            let factor = block[at(i, k)];
{taken}        }}
    }}
{stored}",
        square = BLOCK * BLOCK,
        fault = if checks { &fault } else { "" },
    );
    let groups = count.div_ceil(width);
    let params = [
        ("size", size),
        ("count", count),
        ("left_first", triangle.first),
        ("left_down", triangle.down),
        ("left_right", triangle.right),
        ("left_page", triangle.page),
        ("x_first", sides.first),
        ("x_down", sides.down),
        ("x_right", sides.right),
        ("x_page", sides.page),
        ("unit", unit as u32),
        ("groups_of_page", groups),
        ("batch", made.batch),
    ];
    made.add(Kernel {
        name: format!("substitute {each} {left} {checks}"),
        operands: &bound,
        params: &params,
        head: format!(
            "var<workgroup> block: array<{ty}, {}>;\nvar<workgroup> known: array<{ty}, {}>;\n{}",
            BLOCK * (BLOCK + 1) / 2,
            2 * width,
            packed_place(BLOCK)
        ),
        main,
        faults: checks,
        invocations: 256,
        groups: groups as u64 * made.batch as u64,
    })
}

/// Subtracts a product from a matrix, tile by tile. With `lower`, elements above the diagonal are left as they are.
pub(super) fn subtract(made: &mut Passes<'_>, product: Product, lower: bool) -> Result<(), Error> {
    let Product { to, left, right, rows, columns, terms } = product;
    let (zero, _, ty) = made.literals();
    let (name, bound) = operands(left, to);
    // Neighbouring invocations load elements that are neighbours in memory.
    let deep = right.down == 1 || right.down == u32::MAX;
    let place = if deep {
        format!("let k = e % {DEPTH}u;\n            let j = e / {DEPTH}u;")
    } else {
        format!("let k = e / {TILE}u;\n            let j = e % {TILE}u;")
    };
    let pitch = TILE + 1;
    let (mut declared, mut read, mut added, mut stored) = (String::new(), String::new(), String::new(), String::new());
    for r in 0..4 {
        read.push_str(&format!("            let a{r} = lefts[k * {pitch}u + x + {}u];\n", 16 * r));
        read.push_str(&format!("            let b{r} = rights[k * {pitch}u + y + {}u];\n", 16 * r));
        for c in 0..4 {
            declared.push_str(&format!("    var s{r}{c}: {ty} = {zero};\n"));
            added.push_str(&format!("            s{r}{c} = s{r}{c} + a{r} * b{c};\n"));
            let inside = if lower { " && i >= j" } else { "" };
            stored.push_str(&format!(
                "    {{\n        let i = row + x + {}u;\n        let j = column + y + {}u;\n        if (i < rows && j < columns{inside}) {{\n            let to = to_first + page * to_page + i * to_down + j * to_right;\n            store_result(to, load_result(to) - s{r}{c});\n        }}\n    }}\n",
                16 * r,
                16 * c
            ));
        }
    }
    let skip = if lower { "    if (column > row) { return; }\n" } else { "" };
    let main = format!(
        "    if (index >= tiles_down * tiles_across * batch) {{ return; }}
    let page = index / (tiles_down * tiles_across);
    let row = index % tiles_down * {TILE}u;
    let column = index / tiles_down % tiles_across * {TILE}u;
{skip}    let x = lid % 16u;
    let y = lid / 16u;
{declared}    for (var term = 0u; term < terms; term += {DEPTH}u) {{
        for (var e = lid; e < {area}u; e += 256u) {{
            let i = e % {TILE}u;
            let k = e / {TILE}u;
            var value: {ty} = {zero};
            if (row + i < rows && term + k < terms) {{
                value = load_{name}(left_first + page * left_page + (row + i) * left_down + (term + k) * left_right);
            }}
            lefts[k * {pitch}u + i] = value;
        }}
        for (var e = lid; e < {area}u; e += 256u) {{
            {place}
            var value: {ty} = {zero};
            if (term + k < terms && column + j < columns) {{
                value = load_result(right_first + page * right_page + (term + k) * right_down + (column + j) * right_right);
            }}
            rights[k * {pitch}u + j] = value;
        }}
        workgroupBarrier();
        for (var k = 0u; k < {DEPTH}u; k += 1u) {{
{read}{added}        }}
        workgroupBarrier();
    }}
{stored}",
        area = TILE * DEPTH,
    );
    let (tiles_down, tiles_across) = (rows.div_ceil(TILE), columns.div_ceil(TILE));
    let params = [
        ("rows", rows),
        ("columns", columns),
        ("terms", terms),
        ("to_first", to.first),
        ("to_down", to.down),
        ("to_right", to.right),
        ("to_page", to.page),
        ("left_first", left.first),
        ("left_down", left.down),
        ("left_right", left.right),
        ("left_page", left.page),
        ("right_first", right.first),
        ("right_down", right.down),
        ("right_right", right.right),
        ("right_page", right.page),
        ("tiles_down", tiles_down),
        ("tiles_across", tiles_across),
        ("batch", made.batch),
    ];
    made.add(Kernel {
        name: format!("subtract {name} {deep} {lower}"),
        operands: &bound,
        params: &params,
        head: format!(
            "var<workgroup> lefts: array<{ty}, {0}>;\nvar<workgroup> rights: array<{ty}, {0}>;\n",
            pitch * DEPTH
        ),
        main,
        faults: false,
        invocations: 256,
        groups: tiles_down as u64 * tiles_across as u64 * made.batch as u64,
    })
}
