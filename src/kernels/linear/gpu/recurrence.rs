//! Computes recurrences. An invocation computes a line and holds the line's latest elements in registers. Its workgroup
//! loads tiles of [`LINES`] lines, so that neighbours in memory are read together.
//!
//! In: `[w, a, out]`. Out: passes, each over the next rows of all lines. A pass reads the elements before its own from
//! the output.

use super::{Kernel, Passes, TURNS_MAX};
use crate::error::Error;

/// Lines, and invocations, of a workgroup.
const LINES: u32 = 64;

/// The passes over `[w, a, out]` with `order` coefficients.
pub(super) fn passes(made: &mut Passes<'_>, order: u16) -> Result<(), Error> {
    // Rows of a tile, which takes 8 KiB.
    let tile = if made.dtype.is_wide() { 16 } else { 32 };
    // A tile is loaded, computed and stored by a turn for each of its rows.
    let rows = TURNS_MAX / (3 * tile + 1) * tile;
    let name = format!("recurrence {order}");
    let main = statements(made, u32::from(order), tile);
    for start in (0..made.m).step_by(rows as usize) {
        let groups = made.batch.div_ceil(LINES);
        made.add(Kernel {
            name: name.clone(),
            operands: &[(0, "w"), (1, "a"), (2, "result")],
            params: &[
                ("groups_of_lines", groups),
                ("lines", made.batch),
                ("rows", made.m),
                ("start", start),
                ("end", made.m.min(start + rows)),
            ],
            head: format!("var<workgroup> tile: array<{}, {}>;\n", made.literals().2, LINES * (tile + 1)),
            main: main.clone(),
            faults: false,
            invocations: LINES,
            groups: groups as u64,
        })?;
    }
    Ok(())
}

/// The statements of a kernel whose tiles have `rows` rows. A line of a tile begins in another bank than the one before
/// it.
fn statements(made: &Passes<'_>, order: u32, rows: u32) -> String {
    let (zero, _, ty) = made.literals();
    let each = |text: &dyn Fn(u32) -> String| (1..=order).map(text).collect::<String>();
    let declared = each(&|k| {
        format!(
            "    let a{k} = load_a({}u);
    var y{k}: {ty} = {zero};
    if (own < lines && start >= {k}u) {{ y{k} = load_result(own * rows + start - {k}u); }}\n",
            k - 1
        )
    });
    let back = |text: &dyn Fn(u32) -> String| (1..=order).rev().map(text).collect::<String>();
    let subtracted = back(&|k| format!("            y = y - a{k} * y{k};\n"));
    let moved = back(&|k| match k {
        1 => "            y1 = y;\n".to_owned(),
        _ => format!("            y{k} = y{};\n", k - 1),
    });
    let pitch = rows + 1;
    format!(
        "    if (index >= groups_of_lines) {{ return; }}
    let first = index * {LINES}u;
    let own = first + lid;
{declared}    for (var top = start; top < end; top += {rows}u) {{
        for (var e = lid; e < {elements}u; e += {LINES}u) {{
            let row = top + e % {rows}u;
            let line = first + e / {rows}u;
            if (row < end && line < lines) {{ tile[e / {rows}u * {pitch}u + e % {rows}u] = load_w(line * rows + row); }}
        }}
        workgroupBarrier();
        for (var r = 0u; r < {rows}u; r += 1u) {{
            var y = tile[lid * {pitch}u + r];
{subtracted}{moved}            tile[lid * {pitch}u + r] = y;
        }}
        workgroupBarrier();
        for (var e = lid; e < {elements}u; e += {LINES}u) {{
            let row = top + e % {rows}u;
            let line = first + e / {rows}u;
            if (row < end && line < lines) {{ store_result(line * rows + row, tile[e / {rows}u * {pitch}u + e % {rows}u]); }}
        }}
        workgroupBarrier();
    }}
",
        elements = LINES * rows,
    )
}
