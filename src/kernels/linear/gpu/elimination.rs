//! Gaussian elimination with exchange of rows. For each panel: one workgroup for each page eliminates its columns,
//! searches pivots and stores the exchanges. Then the exchanges are done in all other columns. In the columns that
//! follow, substitution gives the rows of the panel, and subtracting a product updates the rows below.
//!
//! In: `[a, out, exchanged]`. Out: passes.

use super::steps::{Matrix, Product, System, substitute, subtract};
use super::{Kernel, Passes, ROWS, TURNS_MAX, panel_width, rows_apart, tree};
use crate::error::Error;
use crate::graph::{ELIMINATED_ROWS_MAX, PANEL};

// A panel of one column takes two loops over its rows, 1,024 rows in each turn: a search and a division.
const _: () = assert!(ELIMINATED_ROWS_MAX / 1024 * 2 <= TURNS_MAX as usize);

/// Columns of a panel whose updates of its later columns are done together.
const STRIP: u32 = 8;
/// The number of columns in which a workgroup exchanges rows.
const EXCHANGED: u32 = 8;

/// The passes over `[a, out, exchanged]`.
pub(super) fn passes(made: &mut Passes<'_>) -> Result<(), Error> {
    let (m, n, page) = (made.m, made.n, made.page);
    let (_, one, ty) = made.literals();
    made.begin("lu", m, 0, &format!("select(select({one}, {ty}(i), j == columns), original, j < columns)"))?;
    let k = m.min(n);
    // A turn of the search takes 1,024 rows, and so does a turn of an update, which is done for each later column of
    // the strip or the panel.
    let width = panel_width(m, 3, 20);
    let place = |i: u32, j: u32| Matrix { operand: 1, first: i + m * j, down: 1, right: m, page };
    for first in (0..k).step_by(width as usize) {
        let size = width.min(k - first);
        panel(made, first, size)?;
        exchange(made, first, size)?;
        let (next, right) = (first + size, n - first - size);
        let sides = place(first, next);
        let system = System { triangle: place(first, first), sides, size, count: right, unit: true };
        substitute(made, system, false)?;
        let (to, left) = (place(next, next), place(next, first));
        subtract(made, Product { to, left, right: sides, rows: m - next, columns: right, terms: size }, false)?;
    }
    Ok(())
}

/// Factors a panel of columns. The pivot of a column is the element of greatest magnitude, the first of several; NaN is
/// skipped.
fn panel(made: &mut Passes<'_>, first: u32, size: u32) -> Result<(), Error> {
    let (zero, one, ty) = made.literals();
    let each = |text: &dyn Fn(u32) -> String| (0..ROWS).map(text).collect::<String>();
    let places = rows_apart(256);
    let magnitudes = each(&|t| format!("            let m{t} = abs(load_result(column + i{t}));\n"));
    let greater = each(&|t| {
        format!(
            "            if (live{t} && m{t} > greatest) {{\n                greatest = m{t};\n                at = i{t};\n            }}\n"
        )
    });
    let factors = each(&|t| format!("            var f{t} = load_result(column + i{t});\n"));
    let divided = each(&|t| format!("                f{t} = f{t} / pivot;\n"));
    let kept = each(&|t| format!("            if (live{t}) {{ store_result(column + i{t}, f{t}); }}\n"));
    let loaded = each(&|t| format!("                let x{t} = load_result(to + i{t});\n"));
    let updated = each(&|t| format!("                if (live{t}) {{ store_result(to + i{t}, x{t} - f{t} * by); }}\n"));
    let lefts = each(&|t| {
        let of =
            |s: u32| format!("            let l{t}_{s} = load_result(base + i{t} + rows * (first + strip + {s}u));\n");
        (0..STRIP).map(of).collect()
    });
    let taken = each(&|t| {
        let terms: String = (0..STRIP).map(|s| format!(" - l{t}_{s} * above[{}u + c]", s * PANEL)).collect();
        format!("                if (live{t}) {{ store_result(to + i{t}, x{t}{terms}); }}\n")
    });
    let search = tree(
        "            if (lid < half) {
                let other = magnitudes[lid + half];
                let own = magnitudes[lid];
                if (other > own || (other == own && places[lid + half] < places[lid])) {
                    magnitudes[lid] = other;
                    places[lid] = places[lid + half];
                }
            }
",
    );
    let stride = 256 * ROWS;
    let main = format!(
        "    if (index >= batch) {{ return; }}
    let base = index * page_elements;
    for (var j = 0u; j < size; j += 1u) {{
        let row = first + j;
        let column = base + rows * row;
        var greatest: {ty} = -{one};
        var at = row;
        for (var start = row + lid; start < rows; start += {stride}u) {{
{places}{magnitudes}{greater}        }}
        magnitudes[lid] = greatest;
        places[lid] = at;
{search}        workgroupBarrier();
        let pivot_row = places[0];
        // The panel's columns, and the column that holds the order of the rows.
        if (lid <= size && pivot_row != row) {{
            let side = base + rows * select(first + lid, columns, lid == size);
            let held = load_result(side + row);
            store_result(side + row, load_result(side + pivot_row));
            store_result(side + pivot_row, held);
        }}
        if (lid == 0u) {{
            store_exchanged(index * steps + row, pivot_row);
            if (pivot_row != row) {{ store_result(base + rows * (columns + 1u) + row, -{one}); }}
        }}
        storageBarrier();
        let pivot = load_result(column + row);
        let strip = j / {STRIP}u * {STRIP}u;
        let end = min(strip + {STRIP}u, size);
        let later = end - j - 1u;
        if (lid < later) {{ above[lid] = load_result(column + row + rows * (lid + 1u)); }}
        workgroupBarrier();
        for (var start = row + 1u + lid; start < rows; start += {stride}u) {{
{places}{factors}            // A column of zeros stays one.
            if (pivot != {zero}) {{
{divided}            }}
{kept}            for (var c = 0u; c < later; c += 1u) {{
                let to = column + rows * (c + 1u);
                let by = above[c];
{loaded}{updated}            }}
        }}
        storageBarrier();
        workgroupBarrier();
        if (j + 1u == end && end < size) {{
            // The strip is done: its rows of the panel's later columns by substitution, all below at once.
            let right = size - end;
            if (lid < right) {{
                let side = base + first + rows * (first + end + lid);
                for (var r = strip; r < end; r += 1u) {{
                    var value = load_result(side + r);
                    for (var s = strip; s < r; s += 1u) {{
                        value = value - load_result(base + first + r + rows * (first + s)) * above[(s - strip) * {PANEL}u + lid];
                    }}
                    above[(r - strip) * {PANEL}u + lid] = value;
                    store_result(side + r, value);
                }}
            }}
            workgroupBarrier();
            for (var start = first + end + lid; start < rows; start += {stride}u) {{
{places}{lefts}                for (var c = 0u; c < right; c += 1u) {{
                    let to = base + rows * (first + end + c);
{loaded}{taken}                }}
            }}
            storageBarrier();
            workgroupBarrier();
        }}
    }}
"
    );
    let params = [
        ("batch", made.batch),
        ("page_elements", made.page),
        ("rows", made.m),
        ("columns", made.n),
        ("steps", made.m.min(made.n)),
        ("first", first),
        ("size", size),
    ];
    made.add(Kernel {
        name: "lu panel".to_owned(),
        operands: &[(1, "result"), (2, "exchanged")],
        params: &params,
        head: format!(
            "var<workgroup> magnitudes: array<{ty}, 256>;\nvar<workgroup> places: array<u32, 256>;\nvar<workgroup> above: array<{ty}, {}>;\n",
            STRIP * PANEL
        ),
        main,
        faults: false,
        invocations: 256,
        groups: made.batch as u64,
    })
}

/// Exchanges rows in the columns outside of the panel, as the panel did. A workgroup holds the rows that move.
fn exchange(made: &mut Passes<'_>, first: u32, size: u32) -> Result<(), Error> {
    let (_, _, ty) = made.literals();
    let others = made.n - size;
    let groups = others.div_ceil(EXCHANGED);
    let main = format!(
        "    if (index >= groups_of_page * batch) {{ return; }}
    let page = index / groups_of_page;
    let lane = lid % {PANEL}u;
    let slot = lid / {PANEL}u;
    var row = first + lane;
    if (lane < size) {{ row = load_exchanged(page * steps + first + lane); }}
    if (slot == 0u) {{ pivots[lane] = row; }}
    workgroupBarrier();
    // A row below the panel is held by the first step that takes it.
    var holder = lane;
    for (var s = 0u; s < lane; s += 1u) {{
        if (pivots[s] == row && holder == lane) {{ holder = s; }}
    }}
    let inside = row < first + size;
    if (slot == 0u) {{ holders[lane] = select({PANEL}u + holder, row - first, inside); }}
    let other = index % groups_of_page * {EXCHANGED}u + slot;
    let column = page * page_elements + rows * select(other + size, other, other < first);
    let live = other < others && lane < size;
    let holds = live && !inside && holder == lane;
    let own = slot * {both}u;
    if (live) {{ held[own + lane] = load_result(column + first + lane); }}
    if (holds) {{ held[own + {PANEL}u + lane] = load_result(column + row); }}
    workgroupBarrier();
    if (lane == 0u) {{
        for (var s = 0u; s < size; s += 1u) {{
            let to = own + holders[s];
            let value = held[to];
            held[to] = held[own + s];
            held[own + s] = value;
        }}
    }}
    workgroupBarrier();
    if (live) {{ store_result(column + first + lane, held[own + lane]); }}
    if (holds) {{ store_result(column + row, held[own + {PANEL}u + lane]); }}
",
        both = 2 * PANEL,
    );
    let params = [
        ("batch", made.batch),
        ("page_elements", made.page),
        ("rows", made.m),
        ("steps", made.m.min(made.n)),
        ("first", first),
        ("size", size),
        ("others", others),
        ("groups_of_page", groups),
    ];
    made.add(Kernel {
        name: "lu exchange".to_owned(),
        operands: &[(1, "result"), (2, "exchanged")],
        params: &params,
        head: format!(
            "var<workgroup> pivots: array<u32, {PANEL}>;\nvar<workgroup> holders: array<u32, {PANEL}>;\nvar<workgroup> held: array<{ty}, {}>;\n",
            2 * PANEL * EXCHANGED
        ),
        main,
        faults: false,
        invocations: PANEL * EXCHANGED,
        groups: groups as u64 * made.batch as u64,
    })
}
