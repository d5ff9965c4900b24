//! Computes the lower factor of positive definite matrices: one workgroup for each page factors the block on the
//! diagonal, substitution gives the rows below it, and subtracting a product updates the rest of the matrix.

use super::steps::{Matrix, Product, System, substitute, subtract};
use super::{BLOCK, Kernel, Passes, packed_place};
use crate::error::Error;
use crate::kernels::wgsl::pieces::FAULT_WORD;
use crate::kernels::wgsl::types::is_finite;

/// The passes over `[a, out]`.
pub(super) fn passes(made: &mut Passes<'_>) -> Result<(), Error> {
    let n = made.n;
    if n <= BLOCK {
        return diagonal(made, 0, n, true);
    }
    let zero = made.literals().0;
    made.begin("lower", n, 0, &format!("select({zero}, original, i >= j)"))?;
    for first in (0..n).step_by(BLOCK as usize) {
        let size = BLOCK.min(n - first);
        diagonal(made, first, size, false)?;
        let (next, left) = (first + size, n - first - size);
        let place = |i: u32, j: u32| Matrix { operand: 1, first: i + n * j, down: 1, right: n, page: made.page };
        // The rows below are, transposed, the right sides of a system with the block.
        let below = place(next, first);
        let system =
            System { triangle: place(first, first), sides: below.transposed(), size, count: left, unit: false };
        substitute(made, system, false)?;
        let to = Matrix { operand: 1, first: next + n * next, down: 1, right: n, page: made.page };
        let product = Product { to, left: below, right: below.transposed(), rows: left, columns: left, terms: size };
        subtract(made, product, true)?;
    }
    Ok(())
}

/// Factors a block on the diagonal of each page. If the block is the `whole` matrix, it is read from `a`, and all of
/// the factor is written.
fn diagonal(made: &mut Passes<'_>, first: u32, size: u32, whole: bool) -> Result<(), Error> {
    let block = if whole { size.next_power_of_two().max(8) } else { BLOCK };
    let (zero, _, ty) = made.literals();
    let source = if whole { "load_a(page * stride" } else { "load_result(base" };
    let above =
        if whole { format!(" else if (i < size && j < size) {{ store_result(to, {zero}); }}") } else { String::new() };
    let finite = is_finite(made.dtype, "pivot");
    let main = format!(
        "    if (index >= batch) {{ return; }}
    let page = index;
    let base = page * page_elements + first * (rows + 1u);
    for (var e = lid; e < {square}u; e += {invocations}u) {{
        let i = e % {block}u;
        let j = e / {block}u;
        if (i >= j && i < size) {{ block[at(i, j)] = {source} + i + rows * j); }}
    }}
    workgroupBarrier();
    let i = lid % {block}u;
    for (var j = 0u; j < size; j += 1u) {{
        let pivot = block[at(j, j)];
        if (lid == 0u && !(pivot > {zero} && {finite})) {{ atomicStore(&faults[params[{FAULT_WORD}]], 1u); }}
        if (i > j && i < size) {{
            // The column is divided by the root of the pivot at the end; a product of two of its elements, by the pivot.
            let scaled = block[at(i, j)] / pivot;
            for (var c = j + 1u + lid / {block}u; c <= i; c += 4u) {{
                block[at(i, c)] = block[at(i, c)] - scaled * block[at(c, j)];
            }}
        }}
        workgroupBarrier();
    }}
    for (var e = lid; e < {square}u; e += {invocations}u) {{
        let i = e % {block}u;
        let j = e / {block}u;
        let to = base + i + rows * j;
        if (i >= j && i < size) {{
            let root = sqrt(block[at(j, j)]);
            var value = root;
            if (i > j) {{ value = block[at(i, j)] / root; }}
            store_result(to, value);
        }}{above}
    }}
",
        square = block * block,
        invocations = 4 * block,
    );
    let params = [
        ("batch", made.batch),
        ("stride", made.stride_a),
        ("page_elements", made.page),
        ("rows", made.n),
        ("first", first),
        ("size", size),
    ];
    made.add(Kernel {
        name: format!("cholesky {block} {whole}"),
        operands: if whole { &[(0, "a"), (1, "result")] } else { &[(1, "result")] },
        params: &params,
        head: format!("var<workgroup> block: array<{ty}, {}>;\n{}", block * (block + 1) / 2, packed_place(block)),
        main,
        faults: true,
        invocations: 4 * block,
        groups: made.batch as u64,
    })
}
