//! The results of an invocation: where they lie in memory, and how they are added and stored.

use super::side::{Side, Vectors};
use super::{component, sums};
use crate::kernels::matmul::split::Tiling;
use std::fmt::Write;

/// The lines of a side whose results an invocation computes.
struct Lines {
    /// Lines from an invocation's first one to that of its neighbour.
    invocation: u32,
    /// Lines between neighbouring blocks, and between neighbouring lanes.
    block: u32,
    lane: u32,
}

impl Lines {
    /// The lines of a side along which `invocations` invocations stand side by side.
    fn of(side: &Side, invocations: u32, tiling: Tiling) -> Lines {
        let invocation = if side.lanes_are_neighbours { tiling.lanes } else { 1 };
        Lines { invocation, block: invocations * invocation, lane: side.line_of(1) }
    }

    /// The number of a line, counted from the invocation's first one.
    fn at(&self, block: u32, lane: u32) -> u32 {
        block * self.block + lane * self.lane
    }
}

/// The places of the results of an invocation.
pub(super) struct Places {
    tiling: Tiling,
    rows: Lines,
    columns: Lines,
    /// Rows of a vector of results: `lanes`, or 1 if results are stored one by one.
    width: u32,
}

impl Places {
    pub fn of(sides: &[Side; 2], tiling: Tiling, vectors: Vectors) -> Places {
        let rows = Lines::of(&sides[0], tiling.across, tiling);
        let columns = Lines::of(&sides[1], tiling.down, tiling);
        Places { tiling, rows, columns, width: if vectors.result { tiling.lanes } else { 1 } }
    }

    /// Statements that name the first row and column of an invocation.
    pub fn declare(&self) -> String {
        let (rows, columns) = (self.rows.invocation, self.columns.invocation);
        format!("    let row = row0 + x * {rows}u;\n    let column = column0 + y * {columns}u;\n")
    }

    /// The lanes of a vector of sums at which a vector of results begins.
    fn lanes(&self) -> impl Iterator<Item = u32> + use<> {
        (0..self.tiling.lanes).step_by(self.width as usize)
    }

    /// The column of an accumulator, counted from the invocation's first one.
    fn column(&self, c: u32) -> u32 {
        self.columns.at(c / self.tiling.lanes, c % self.tiling.lanes)
    }

    /// Adds the sums of earlier terms, which are in memory. All are loaded together. Places beyond the last row or
    /// column load the last one, without a condition, because loads that each depend on a condition also wait for one
    /// another.
    pub fn add_before(&self) -> String {
        let Tiling { rows, columns, lanes, .. } = self.tiling;
        let mut text = "    if (begin > first) {\n".to_string();
        for (r, lane) in (0..rows).flat_map(|r| self.lanes().map(move |lane| (r, lane))) {
            let (row, width) = (self.rows.at(r, lane), self.width);
            let _ = writeln!(text, "        let row{r}_{lane} = pages + min(row + {row}u, m - {width}u);");
        }
        for c in 0..columns * lanes {
            let _ = writeln!(text, "        let column{c} = m * min(column + {}u, n - 1u);", self.column(c));
        }
        for (r, c) in sums(self.tiling) {
            let loads: Vec<String> =
                self.lanes().map(|lane| format!("load_result(row{r}_{lane} + column{c})")).collect();
            let before = match loads.len() {
                1 => loads[0].clone(),
                count => format!("vec{count}({})", loads.join(", ")),
            };
            let _ = writeln!(text, "        s{r}_{c} = {before} + s{r}_{c};");
        }
        text.push_str("    }\n");
        text
    }

    /// Stores the sums.
    pub fn store(&self) -> String {
        let mut text = String::new();
        for ((r, c), lane) in sums(self.tiling).flat_map(|sum| self.lanes().map(move |lane| (sum, lane))) {
            let (row, column) = (self.rows.at(r, lane), self.column(c));
            let one = self.tiling.lanes > 1 && self.width == 1;
            let sum = if one { format!("s{r}_{c}.{}", component(lane)) } else { format!("s{r}_{c}") };
            let _ = write!(
                text,
                "    if (row + {row}u < rows && column + {column}u < columns) {{
        store_result(pages + row + {row}u + m * (column + {column}u), {sum});
    }}
"
            );
        }
        text
    }
}
