//! The table of functions: as Markdown for `docs/matlab.md`, and for single functions in `help`.

use crate::builtins::{Builtin, Outcome, families, nothing, row};
use crate::error::{Flow, fail, fail_id};
use crate::library;
use crate::value::Value;
use crate::vm::Interp;

/// A row of a table of functions: name, usage, summary.
type Line<'a> = (&'a str, &'a str, &'a str);

/// Returns the families of functions, builtins first.
fn all() -> impl Iterator<Item = (&'static str, Vec<Line<'static>>)> {
    let builtins = families().iter().map(|(title, rows)| (*title, rows.iter().map(line).collect()));
    let written = library::families().iter().map(|(title, rows)| (*title, rows.iter().map(written_line).collect()));
    builtins.chain(written)
}

fn line(row: &'static Builtin) -> Line<'static> {
    (row.name, row.usage, row.summary)
}

fn written_line(row: &'static library::Written) -> Line<'static> {
    (row.name, row.usage, row.summary)
}

/// Returns the table of all functions, family by family.
#[cfg(any(test, feature = "testing"))]
pub fn markdown() -> String {
    let count: usize = all().map(|(_, lines)| lines.len()).sum();
    let mut text = format!("{count} functions.\n");
    for (title, mut lines) in all() {
        text.push_str(&format!("\n### {title}\n\n| function | use | what it does |\n|---|---|---|\n"));
        lines.sort_by_key(|(name, ..)| name.to_lowercase());
        for (name, usage, summary) in lines {
            let cell = |text: &str| text.replace('|', "\\|");
            text.push_str(&format!("| `{name}` | `{}` | {} |\n", cell(usage), cell(summary)));
        }
    }
    text
}

/// Returns the help on a function, or on all functions.
pub fn help(interp: &mut Interp, topic: &str) -> Option<String> {
    if topic.is_empty() {
        let mut text = String::from("help NAME explains a function. The functions:\n");
        for (title, lines) in all() {
            let names: Vec<&str> = lines.iter().map(|(name, ..)| *name).collect();
            text.push_str(&format!("\n{title}:\n  {}\n", names.join(" ")));
        }
        return Some(text);
    }
    let described = crate::builtins::find(topic).map(line).or_else(|| library::find(topic).map(written_line));
    if let Some((_, usage, summary)) = described {
        return Some(format!("{usage}\n\n  {summary}\n"));
    }
    match interp.documentation(topic) {
        Some(doc) => Some(format!("{doc}\n")),
        None if matches!(interp.lookup(topic), Ok(Some(_))) => {
            Some(format!("'{topic}' is a function without a comment at its head\n"))
        }
        None => None,
    }
}

/// Returns the functions whose names or summaries contain a text, a line each.
fn found(topic: &str) -> String {
    let topic = topic.to_lowercase();
    let holds = |text: &str| text.to_lowercase().contains(&topic);
    let mut lines: Vec<String> = all()
        .flat_map(|(_, lines)| lines)
        .filter(|(name, _, summary)| holds(name) || holds(summary))
        .map(|(name, _, summary)| format!("{name:<20} {summary}\n"))
        .collect();
    lines.sort();
    lines.concat()
}

/// The family.
pub static ROWS: &[Builtin] = &[
    row("help", 0, 1, 1, "text = help (name)", "How a function is called and what it does.", help_function),
    row("doc", 0, 1, 0, "doc (name)", "As help.", help_function),
    row("lookfor", 1, 1, 1, "text = lookfor (word)", "The functions whose names or descriptions hold a word.", lookfor),
];

fn topic_of(who: &str, args: &[Value]) -> Flow<String> {
    match args.first().map(Value::as_text) {
        None => Ok(String::new()),
        Some(Some(topic)) => Ok(topic),
        Some(None) => fail!("{who}: NAME must be a string"),
    }
}

fn help_function(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let topic = topic_of("help", args)?;
    match help(interp, topic.trim()) {
        Some(text) if nargout > 0 => Ok(Value::string(text).into()),
        Some(text) => {
            interp.env.print(text);
            Ok(nothing())
        }
        None => fail_id!("Octave:undefined-function", "help: '{topic}' not found"),
    }
}

fn lookfor(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let text = found(&topic_of("lookfor", args)?);
    if nargout > 0 {
        return Ok(Value::string(text).into());
    }
    interp.env.print(text);
    Ok(nothing())
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
            assert!(row.args_min <= row.args_max, "{}: {} to {}", row.name, row.args_min, row.args_max);
        }
    }
}
