//! Computes an orthogonal and an upper factor by Householder reflections. One workgroup for each page computes a
//! panel's reflections, and the triangle `t` with which they are one product, `1 - v t v'` (Schreiber and Van Loan, "A
//! storage-efficient WY representation for products of Householder transformations", 1989). Workgroups of 32 columns
//! each apply it to the columns that follow. The orthogonal factor is the identity to which the panels are applied, the
//! last one first.
//!
//! In: `[a, out, t]`. Out: passes. The reflections' vectors are stored below the diagonal until the last pass clears
//! it.

use super::{Kernel, Passes, TURNS_MAX, panel_width, rows_apart, tree};
use crate::error::Error;
use crate::graph::{PANEL, REFLECTED_ROWS_MAX};

const _: () = assert!(REFLECTED_ROWS_MAX / 32 * 2 <= TURNS_MAX as usize);

/// The passes over `[a, out, t]`; the orthogonal factor has `q` columns.
pub(super) fn passes(made: &mut Passes<'_>, q: u32) -> Result<(), Error> {
    let (m, n) = (made.m, made.n);
    let (zero, one, _) = made.literals();
    made.begin("qr", m, q, &format!("select(select({zero}, {one}, i == j), original, j >= first)"))?;
    let k = m.min(n);
    // A column takes three loops of 1,024 rows in each turn, and two of 128 rows. The fixed turns are those of trees
    // and of the triangle.
    let width = panel_width(m, 5, 60);
    let panels = || (0..k).step_by(width as usize).map(|first| (first, width.min(k - first)));
    for (first, size) in panels() {
        panel(made, q, first, size)?;
        let next = first + size;
        apply(made, q, (first, size), (q + next, n - next), true)?;
    }
    for (first, size) in panels().collect::<Vec<_>>().into_iter().rev() {
        // Columns left of the panel still are those of the identity, with zeros in the panel's rows, so they do not
        // change.
        apply(made, q, (first, size), (first, q - first), false)?;
    }
    clear(made, q)
}

/// The parameters of the passes over a panel. The upper factor begins after `q` columns.
fn sizes(made: &Passes<'_>, q: u32, first: u32, size: u32) -> [(&'static str, u32); 7] {
    [
        ("batch", made.batch),
        ("page_elements", made.page),
        ("rows", made.m),
        ("left", q),
        ("steps", made.m.min(made.n)),
        ("first", first),
        ("size", size),
    ]
}

/// Computes the reflections of a panel, and their triangle.
fn panel(made: &mut Passes<'_>, q: u32, first: u32, size: u32) -> Result<(), Error> {
    let (zero, one, ty) = made.literals();
    let each = |text: &dyn Fn(u32) -> String| (0..4).map(text).collect::<String>();
    let sums = each(&|t| format!("        var d{t}: {ty} = {zero};\n"));
    let columns = rows_apart(256) + &each(&|r| format!("            let x{r} = load_result(column + i{r});\n"));
    let greater = each(&|r| format!("            if (live{r}) {{ greatest = max(greatest, abs(x{r})); }}\n"));
    let squares =
        each(&|r| format!("            if (live{r}) {{ square = square + (x{r} / unit) * (x{r} / unit); }}\n"));
    let divided = each(&|r| format!("            if (live{r}) {{ store_result(column + i{r}, x{r} / divisor); }}\n"));
    let vectors = rows_apart(32)
        + &each(&|r| {
            format!(
                "            let x{r} = load_result(column + i{r});\n            let v{r} = select({zero}, select(x{r}, {one}, i{r} == row), live{r});\n"
            )
        });
    let added = each(&|t| {
        let rows = each(&|r| format!("                let y{r} = load_result(side + i{r});\n"));
        let sums = each(&|r| format!(" + v{r} * y{r}"));
        format!(
            "            if (band + {0}u < size) {{
                let side = base + rows * (first + band + {0}u);
{rows}                d{t} = d{t} + ({sums});
            }}\n",
            8 * t,
            sums = &sums[3..],
        )
    });
    let put = each(&|t| format!("        sums[{}u + lid] = d{t};\n", 256 * t));
    let halved =
        each(&|t| format!("                sums[{0}u + lid] = sums[{0}u + lid] + sums[{0}u + lid + half];\n", 256 * t));
    let updated = each(&|t| {
        let rows = each(&|r| format!("                let y{r} = load_result(side + i{r});\n"));
        let stores =
            each(&|r| format!("                if (live{r}) {{ store_result(side + i{r}, y{r} - by * v{r}); }}\n"));
        format!(
            "            if (band + {0}u > j && band + {0}u < size) {{
                let side = base + rows * (first + band + {0}u);
                let by = tau * sums[{1}u + 32u * band];
{rows}{stores}            }}\n",
            8 * t,
            256 * t
        )
    });
    let maximum = tree("            if (lid < half) { sums[lid] = max(sums[lid], sums[lid + half]); }\n");
    let sum = tree("            if (lid < half) { sums[lid] = sums[lid] + sums[lid + half]; }\n");
    let main = format!(
        "    if (index >= batch) {{ return; }}
    let base = index * page_elements + rows * left;
    let band = lid / 32u;
    let lane = lid % 32u;
    for (var j = 0u; j < size; j += 1u) {{
        let row = first + j;
        let column = base + rows * row;
        // The column below the diagonal is scaled by its greatest magnitude, so that no square overflows.
        var greatest: {ty} = {zero};
        for (var start = row + 1u + lid; start < rows; start += 1024u) {{
{columns}{greater}        }}
        sums[lid] = greatest;
{maximum}        workgroupBarrier();
        greatest = sums[0];
        workgroupBarrier();
        // A maximum may leave out NaN, a sum does not.
        let unit = select({one}, greatest, greatest > {zero});
        var square: {ty} = {zero};
        for (var start = row + 1u + lid; start < rows; start += 1024u) {{
{columns}{squares}        }}
        sums[lid] = square;
{sum}        workgroupBarrier();
        square = sums[0];
        let head = load_result(column + row);
        var tau: {ty} = {zero};
        var value = head;
        var divisor: {ty} = {one};
        // Where all below is zero, nothing is reflected.
        if (!(square == {zero})) {{
            let scale = max(greatest, abs(head));
            let below = greatest / scale;
            let above = head / scale;
            let norm = scale * sqrt(above * above + below * below * square);
            value = select(norm, -norm, head >= {zero});
            tau = (value - head) / value;
            divisor = head - value;
        }}
        workgroupBarrier();
        for (var start = row + 1u + lid; start < rows; start += 1024u) {{
{columns}{divided}        }}
        if (lid == 0u) {{ store_result(column + row, value); }}
        storageBarrier();
        workgroupBarrier();
        // The products of the vector with those before it, and with the columns behind it.
{sums}        for (var start = row + lane; start < rows; start += 128u) {{
{vectors}{added}        }}
{put}        for (var half = 16u; half > 0u; half = half >> 1u) {{
            workgroupBarrier();
            if (lane < half) {{
{halved}            }}
        }}
        workgroupBarrier();
        if (lid < j) {{
            var sum: {ty} = {zero};
            for (var s = lid; s < j; s += 1u) {{ sum = sum + triangle[lid + {PANEL}u * s] * sums[s / 8u * 256u + s % 8u * 32u]; }}
            triangle[lid + {PANEL}u * j] = -tau * sum;
        }}
        if (lid >= j && lid < {PANEL}u) {{ triangle[lid + {PANEL}u * j] = select({zero}, tau, lid == j); }}
        for (var start = row + lane; start < rows; start += 128u) {{
{vectors}{updated}        }}
        storageBarrier();
        workgroupBarrier();
    }}
    for (var e = lid; e < {PANEL}u * size; e += 256u) {{ store_triangles({PANEL}u * (index * steps + first) + e, triangle[e]); }}
"
    );
    let params = sizes(made, q, first, size);
    made.add(Kernel {
        name: "qr panel".to_owned(),
        operands: &[(1, "result"), (2, "triangles")],
        params: &params,
        head: format!(
            "var<workgroup> sums: array<{ty}, 1024>;\nvar<workgroup> triangle: array<{ty}, {}>;\n",
            PANEL * PANEL
        ),
        main,
        faults: false,
        invocations: 256,
        groups: made.batch as u64,
    })
}

/// Applies a panel's reflections, or their inverse, to `count` columns of the output from `to` on: a workgroup has 32
/// columns. An invocation has four elements of their products with the vectors, and later four elements of a tile of
/// rows. The loops take two turns for each 32 rows, because loading a tile is written out.
fn apply(
    made: &mut Passes<'_>,
    q: u32,
    (first, size): (u32, u32),
    (to, count): (u32, u32),
    inverse: bool,
) -> Result<(), Error> {
    let (zero, one, ty) = made.literals();
    let each = |text: &dyn Fn(u32) -> String| (0..4).map(text).collect::<String>();
    let sums = each(&|c| format!("    var s{c}: {ty} = {zero};\n"));
    let cleared = each(&|c| format!("    s{c} = {zero};\n"));
    // Column `s` of a tile is shifted by `s`, so that neighbours read different banks.
    let tile = "vectors[s * 32u + ((r + s) & 31u)]";
    let terms: String = (0..32)
        .map(|r| {
            let products = each(&|c| format!(" s{c} = s{c} + v{r} * columns[(quad + {c}u) * 32u + {r}u];"));
            format!("        let v{r} = vectors[lane * 32u + (({r}u + lane) & 31u)];{products}\n")
        })
        .collect();
    let taken: String = (0..32)
        .map(|s| {
            let products = each(&|c| format!(" s{c} = s{c} + v{s} * products[(quad + {c}u) * 32u + {s}u];"));
            format!("        let v{s} = vectors[{s}u * 32u + ((lane + {s}u) & 31u)];{products}\n")
        })
        .collect();
    let put = |array: &str| each(&|c| format!("    {array}[(quad + {c}u) * 32u + lane] = s{c};\n"));
    let load_vectors = each(&|part| {
        format!(
            "        {{
            let e = lid + {0}u;
            let r = e % 32u;
            let s = e / 32u;
            let i = start + r;
            var v: {ty} = {zero};
            if (s < size && i < rows && i >= first + s) {{
                v = {one};
                if (i > first + s) {{ v = load_result(base + i + rows * (left + first + s)); }}
            }}
            {tile} = v;
        }}
",
            256 * part
        )
    });
    let load_columns = each(&|part| {
        format!(
            "        {{
            let e = lid + {0}u;
            let i = start + e % 32u;
            let c = first_column + e / 32u;
            var value: {ty} = {zero};
            if (i < rows && c < count) {{ value = load_result(base + i + rows * (to + c)); }}
            columns[e] = value;
        }}
",
            256 * part
        )
    });
    let stored = each(&|c| {
        format!(
            "        if (start + lane < rows && first_column + quad + {c}u < count) {{
            let place = base + start + lane + rows * (to + first_column + quad + {c}u);
            store_result(place, load_result(place) - s{c});
        }}\n"
        )
    });
    let (row, column) = if inverse { ("s", "lane") } else { ("lane", "s") };
    let main = format!(
        "    if (index >= groups_of_page * batch) {{ return; }}
    let page = index / groups_of_page;
    let first_column = index % groups_of_page * 32u;
    let base = page * page_elements;
    let lane = lid % 32u;
    let quad = lid / 32u * 4u;
{sums}    for (var start = first; start < rows; start += 32u) {{
{load_vectors}{load_columns}        workgroupBarrier();
{terms}        workgroupBarrier();
    }}
{put_columns}    for (var e = lid; e < 1024u; e += 256u) {{
        var value: {ty} = {zero};
        if (e / 32u < size) {{ value = load_triangles({PANEL}u * (page * steps + first) + e); }}
        vectors[e] = value;
    }}
    workgroupBarrier();
{cleared}    for (var s = 0u; s < size; s += 1u) {{
        let t = vectors[{row} + 32u * {column}];
{multiplied}    }}
{put_products}    workgroupBarrier();
    for (var start = first; start < rows; start += 32u) {{
{load_vectors}        workgroupBarrier();
    {cleared}{taken}{stored}        workgroupBarrier();
    }}
",
        put_columns = put("columns"),
        put_products = put("products"),
        multiplied = each(&|c| format!("        s{c} = s{c} + t * columns[(quad + {c}u) * 32u + s];\n")),
    );
    let groups = count.div_ceil(32);
    let mut params = sizes(made, q, first, size).to_vec();
    params.extend([("to", to), ("count", count), ("groups_of_page", groups)]);
    made.add(Kernel {
        name: format!("qr apply {inverse}"),
        operands: &[(1, "result"), (2, "triangles")],
        params: &params,
        head: ["vectors", "columns", "products"]
            .map(|name| format!("var<workgroup> {name}: array<{ty}, 1024>;\n"))
            .concat(),
        main,
        faults: false,
        invocations: 256,
        groups: groups as u64 * made.batch as u64,
    })
}

/// Writes zeros below the upper factor's diagonal.
fn clear(made: &mut Passes<'_>, q: u32) -> Result<(), Error> {
    let zero = made.literals().0;
    let page_of = made.m * made.n;
    let elements = page_of as u64 * made.batch as u64;
    let params =
        [("elements", elements as u32), ("size", page_of), ("rows", made.m), ("page_elements", made.page), ("left", q)];
    made.add(Kernel {
        name: "qr clear".to_owned(),
        operands: &[(1, "result")],
        params: &params,
        head: String::new(),
        main: format!(
            "    let e = index * 256u + lid;
    if (e >= elements) {{ return; }}
    let within = e % size;
    if (within % rows > within / rows) {{ store_result(e / size * page_elements + rows * left + within, {zero}); }}
"
        ),
        faults: false,
        invocations: 256,
        groups: elements.div_ceil(256),
    })
}
