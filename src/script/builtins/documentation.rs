//! The table of functions as Markdown, for `docs/matlab.md`.

use super::{ANY, Builtin, families};
use crate::script::library;

/// What a table shows of a function: name, use, what it does.
type Line<'a> = (&'a str, &'a str, &'a str);

/// Every function, family by family.
pub fn markdown() -> String {
    let builtins = families().iter().map(|(title, rows)| (*title, rows.iter().map(line).collect::<Vec<_>>()));
    let written = library::families().iter().map(|(title, rows)| {
        let lines = rows.iter().map(|w| (w.name, w.usage, w.summary)).collect::<Vec<_>>();
        (*title, lines)
    });
    let tables: Vec<(&str, Vec<Line>)> = builtins.chain(written).collect();
    let count: usize = tables.iter().map(|(_, lines)| lines.len()).sum();
    let mut text = format!("{count} functions.\n");
    for (title, mut lines) in tables {
        text.push_str(&format!("\n### {title}\n\n| function | use | what it does |\n|---|---|---|\n"));
        lines.sort_by_key(|(name, ..)| name.to_lowercase());
        for (name, usage, summary) in lines {
            let cell = |text: &str| text.replace('|', "\\|");
            text.push_str(&format!("| `{name}` | `{}` | {} |\n", cell(usage), cell(summary)));
        }
    }
    text
}

fn line(row: &'static Builtin) -> Line<'static> {
    (row.name, row.usage, row.summary)
}

/// How many arguments a function takes, in words.
pub fn arity(builtin: &Builtin) -> String {
    match (builtin.args_min, builtin.args_max) {
        (least, ANY) => format!("{least} or more"),
        (least, most) if least == most => least.to_string(),
        (least, most) => format!("{least} to {most}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_says_how_it_is_called_and_what_it_does_and_no_name_stands_twice() {
        let mut seen = std::collections::HashSet::new();
        for row in families().iter().flat_map(|(_, rows)| rows.iter()) {
            assert!(seen.insert(row.name), "{} stands twice", row.name);
            assert!(!row.usage.is_empty() && !row.summary.is_empty(), "{}", row.name);
            assert!(row.args_min <= row.args_max, "{}: {}", row.name, arity(row));
        }
    }
}
