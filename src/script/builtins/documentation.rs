//! The table of functions as Markdown, for `docs/matlab.md`.

use super::{ANY, Builtin, families};

/// Every function, family by family.
pub fn markdown() -> String {
    let mut text = String::new();
    let count: usize = families().iter().map(|(_, rows)| rows.len()).sum();
    text.push_str(&format!("{count} functions.\n"));
    for (title, rows) in families() {
        text.push_str(&format!("\n### {title}\n\n| function | use | what it does |\n|---|---|---|\n"));
        let mut rows: Vec<&Builtin> = rows.iter().collect();
        rows.sort_by_key(|b| b.name.to_lowercase());
        for row in rows {
            let cell = |text: &str| text.replace('|', "\\|");
            text.push_str(&format!("| `{}` | `{}` | {} |\n", row.name, cell(row.usage), cell(row.summary)));
        }
    }
    text
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
