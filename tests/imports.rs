//! Checks the table "Who may import whom" of ARCHITECTURE.md against each source file of the workspace, tests included.
//!
//! A unit is a folder or a file of `src/`, or a crate of `crates/`. An arrow leads from a unit to another one that it
//! names: in a `use`, or in a path within code that begins with `crate`, `super` or a crate's name. What the crate's
//! root makes public is the unit `lib`. Comments and string literals are ignored.
//!
//! Backends know no actor: files below `BACKENDS`, except tests, must not name the ring's mailboxes, the messages of
//! actors, or the driver of backends.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The name of the package at the root of the workspace, as the other crates use it.
const ROOT: &str = "tidemill";

/// The folders and files of backends.
const BACKENDS: [&str; 3] = ["src/device/gpu/", "src/device/host/", "src/device/fake.rs"];

/// The paths that backends may not name.
const ACTORS: [&[&str]; 4] = [&["mail"], &["contract", "messages"], &["device", "drive"], &["device", "handle"]];

/// A source file: its path from the root of the workspace, and its text.
type Source = (String, String);

/// The table of a text in Markdown: the units that each unit may import, and the mistakes in the table.
struct Table {
    rows: BTreeMap<String, BTreeSet<String>>,
    wrong: Vec<String>,
}

impl Table {
    fn read(text: &str) -> Table {
        let mut table = Table { rows: BTreeMap::new(), wrong: Vec::new() };
        let section = text.split("\n## ").find(|section| section.starts_with("Who may import whom"));
        for line in section.unwrap_or_default().lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<&str> = line.split('|').collect();
            let [_, units, imports, ..] = cells[..] else {
                table.wrong.push(format!("ARCHITECTURE.md: not a row of two cells: {line}"));
                continue;
            };
            let imports: BTreeSet<String> = quoted(imports).into_iter().map(str::to_owned).collect();
            for unit in quoted(units).into_iter().map(unit_of) {
                if table.rows.insert(unit.clone(), imports.clone()).is_some() {
                    table.wrong.push(format!("ARCHITECTURE.md: two rows for `{unit}`"));
                }
            }
        }
        if table.rows.is_empty() {
            table.wrong.push("ARCHITECTURE.md has no table \"Who may import whom\"".to_owned());
        }
        table
    }

    /// Finds a circle of units that may import each other, if the table has one.
    fn circle(&self) -> Option<Vec<&str>> {
        let mut done = BTreeSet::new();
        self.rows.keys().find_map(|unit| self.circle_from(unit, &mut Vec::new(), &mut done))
    }

    fn circle_from<'t>(
        &'t self,
        unit: &'t str,
        path: &mut Vec<&'t str>,
        done: &mut BTreeSet<&'t str>,
    ) -> Option<Vec<&'t str>> {
        if let Some(first) = path.iter().position(|known| *known == unit) {
            return Some(path[first..].to_vec());
        }
        if !done.insert(unit) {
            return None;
        }
        path.push(unit);
        let imports = self.rows.get(unit).into_iter().flatten();
        let found = imports.into_iter().find_map(|next| self.circle_from(next, path, done));
        path.pop();
        found
    }
}

/// The texts between backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// The unit to which a path belongs: `array` for `src/array/tape.rs`, `error` for `src/error.rs`, `x` for
/// `crates/x/src/y.rs`.
fn unit_of(path: &str) -> String {
    let unit = path.split('/').nth(1).unwrap_or(path);
    unit.strip_suffix(".rs").unwrap_or(unit).to_owned()
}

/// The module path of a file, from its crate's root.
fn modules_of(path: &str) -> Vec<String> {
    let inside = match path.strip_prefix("crates/") {
        Some(rest) => rest.split_once("/src/").map_or("", |(_, file)| file),
        None => path.strip_prefix("src/").unwrap_or(path),
    };
    let mut modules: Vec<String> = inside.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if modules.last().is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main")) {
        modules.pop();
    }
    modules
}

/// A token with its line: an identifier, `::`, or a character of punctuation.
type Token<'s> = (&'s str, usize);

/// The tokens of a source, without comments, string literals, numbers and lifetimes.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let (mut found, mut rest, mut line) = (Vec::new(), text, 1);
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment(rest)
        } else if let Some(length) = text_literal(rest) {
            length
        } else if is_word(first) {
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            found.push((&rest[..length], line));
            length
        } else if rest.starts_with("::") {
            found.push((&rest[..2], line));
            2
        } else {
            if !first.is_whitespace() {
                found.push((&rest[..first.len_utf8()], line));
            }
            first.len_utf8()
        };
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    found
}

fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text[at..];
        at += match rest {
            _ if rest.starts_with("/*") => {
                depth += 1;
                2
            }
            _ if rest.starts_with("*/") => {
                depth -= 1;
                2
            }
            _ => rest.chars().next().map_or(1, char::len_utf8),
        };
        if depth == 0 {
            break;
        }
    }
    at
}

/// The length of the string literal, character literal or lifetime with which a source begins, if it begins with one.
fn text_literal(text: &str) -> Option<usize> {
    let prefix = text.find(|c: char| !matches!(c, 'b' | 'c' | 'r')).filter(|&length| length <= 2)?;
    let is_raw = text[..prefix].ends_with('r');
    let body = &text[prefix..];
    if is_raw {
        let marks = body.find(|c| c != '#').filter(|&marks| body[marks..].starts_with('"'))?;
        let end = format!("\"{}", &body[..marks]);
        let inside = prefix + marks + 1;
        return Some(text[inside..].find(&end).map_or(text.len(), |at| inside + at + end.len()));
    }
    if body.starts_with('"') {
        return Some(prefix + closed_by(body, '"'));
    }
    if !body.starts_with('\'') {
        return None;
    }
    // A lifetime has no second quote after its first character.
    let is_char = body[1..].starts_with('\\') || body[1..].chars().nth(1) == Some('\'');
    Some(prefix + if is_char { closed_by(body, '\'') } else { 1 })
}

/// The length of the literal at the beginning of `text`, which begins and ends with this quote.
fn closed_by(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// A path that code names: its segments from the root of the crate `of` (of the file's own crate, if `None`), and its
/// line.
struct Named {
    of: Option<String>,
    segments: Vec<String>,
    line: usize,
}

/// The paths of a file that begin with `crate`, `super` or the name of one of these crates.
fn paths(path: &str, text: &str, crates: &[String]) -> Vec<Named> {
    let tokens = tokens(text);
    let is_root = matches!(path, "src/lib.rs");
    let mut modules = modules_of(path);
    // For each open brace, whether it begins a module.
    let mut braces = Vec::new();
    let mut found = Vec::new();
    for (at, &(token, _)) in tokens.iter().enumerate() {
        let is = |n: usize, wanted: &str| tokens.get(n).is_some_and(|token| token.0 == wanted);
        match token {
            "{" => {
                let is_module = at >= 2 && is(at - 2, "mod");
                if is_module {
                    modules.push(tokens[at - 1].0.to_owned());
                }
                braces.push(is_module);
            }
            "}" if braces.pop() == Some(true) => drop(modules.pop()),
            _ => {}
        }
        if at > 0 && is(at - 1, "::") && !(at > 1 && is(at - 2, "use")) {
            continue;
        }
        let names_module = is_root && at > 0 && is(at - 1, "use");
        let of = crates.iter().find(|name| *name == token);
        if !(matches!(token, "crate" | "super") || of.is_some() || names_module) || !is(at + 1, "::") {
            continue;
        }
        let mut branches = Vec::new();
        tree(&tokens, at, &[], &mut branches);
        for (mut segments, line) in branches {
            let supers = segments.iter().take_while(|segment| *segment == "super").count();
            if supers > 0 {
                let outer = modules.len().saturating_sub(supers);
                segments = modules[..outer].iter().cloned().chain(segments.drain(supers..)).collect();
            } else if !names_module || token == "crate" || of.is_some() {
                segments.remove(0);
            }
            found.push(Named { of: of.cloned(), segments, line });
        }
    }
    found
}

/// Collects the paths of a tree (`a::{b, c::d}`) that begins at a token, with their lines. Returns the token after the
/// tree.
fn tree(tokens: &[Token<'_>], mut at: usize, before: &[String], found: &mut Vec<(Vec<String>, usize)>) -> usize {
    let mut segments = before.to_vec();
    let line = tokens.get(at).map_or(0, |token| token.1);
    while let Some(&(token, _)) = tokens.get(at) {
        match token {
            "{" => {
                at += 1;
                while tokens.get(at).is_some_and(|token| token.0 != "}") {
                    at = tree(tokens, at, &segments, found);
                    if tokens.get(at).is_some_and(|token| token.0 == ",") {
                        at += 1;
                    }
                }
                return at + 1;
            }
            "*" => {}
            _ => segments.push(token.to_owned()),
        }
        at += 1;
        if tokens.get(at).is_none_or(|token| token.0 != "::") {
            break;
        }
        at += 1;
    }
    // `as name`
    if tokens.get(at).is_some_and(|token| token.0 == "as") {
        at += 2;
    }
    found.push((segments, line));
    at
}

/// The violations of the table, one line each.
fn problems(table: &str, sources: &[Source]) -> Vec<String> {
    let table = Table::read(table);
    let mut wrong = table.wrong.clone();
    let units: BTreeSet<String> = sources.iter().map(|(path, _)| unit_of(path)).collect();
    for unit in units.iter().filter(|unit| !table.rows.contains_key(*unit)) {
        wrong.push(format!("ARCHITECTURE.md: `{unit}` has no row in \"Who may import whom\""));
    }
    for (unit, imports) in &table.rows {
        if !units.contains(unit) {
            wrong.push(format!("ARCHITECTURE.md: there is no `{unit}`, which has a row in \"Who may import whom\""));
        }
        for import in imports.iter().filter(|import| !units.contains(*import) && *import != ROOT) {
            wrong.push(format!("ARCHITECTURE.md: there is no `{import}`, which `{unit}` may import"));
        }
    }
    if let Some(circle) = table.circle() {
        wrong.push(format!("ARCHITECTURE.md: a circle: {}", circle.join(" -> ")));
    }
    let beside = sources.iter().filter_map(|(path, _)| path.strip_prefix("crates/")?.split('/').next());
    let crates: BTreeSet<String> = beside.chain([ROOT]).map(|name| name.replace('-', "_")).collect();
    let crates: Vec<String> = crates.into_iter().collect();
    for (path, text) in sources {
        let unit = unit_of(path);
        // A crate other than the root may name its own modules freely. It names other crates by their names.
        let is_apart = path.starts_with("crates/") || path.starts_with("src/bin/");
        let is_backend = BACKENDS.iter().any(|place| path.starts_with(place)) && !path.contains("/tests");
        for Named { of, segments, line } in paths(path, text, &crates) {
            let names =
                |actor: &&&[&str]| segments.iter().map(String::as_str).take(actor.len()).eq(actor.iter().copied());
            if let Some(actor) = ACTORS.iter().find(names).filter(|_| is_backend) {
                wrong.push(format!("{path}:{line}: a backend may not import `{}`", actor.join("::")));
            }
            let import = match of {
                Some(of) => of.replace('_', "-"),
                None if is_apart => continue,
                None => segments.first().filter(|first| units.contains(*first)).map_or("lib", |first| first).to_owned(),
            };
            if import != unit && !table.rows.get(&unit).is_some_and(|imports| imports.contains(&import)) {
                wrong.push(format!("{path}:{line}: `{unit}` may not import `{import}`"));
            }
        }
    }
    wrong
}

/// All Rust files below a folder.
fn read_below(root: &Path, folder: &str, sources: &mut Vec<Source>) {
    let Ok(entries) = std::fs::read_dir(root.join(folder)) else { return };
    for entry in entries.map(|entry| entry.expect("an entry")) {
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.file_type().expect("a type").is_dir() {
            read_below(root, &path, sources);
        } else if path.ends_with(".rs") {
            sources.push((path, std::fs::read_to_string(entry.path()).expect("a source in UTF-8")));
        }
    }
}

#[test]
fn sources_import_what_the_table_lets_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = Vec::new();
    read_below(root, "src", &mut sources);
    for entry in std::fs::read_dir(root.join("crates")).into_iter().flatten() {
        let name = entry.expect("an entry").file_name();
        read_below(root, &format!("crates/{}/src", name.to_string_lossy()), &mut sources);
    }
    assert!(sources.len() > 100, "{} sources", sources.len());
    let table = std::fs::read_to_string(root.join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let wrong = problems(&table, &sources);
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// The violations in made-up sources.
fn wrong(rows: &str, sources: &[(&str, &str)]) -> Vec<String> {
    let table = format!("# Title\n\n## Who may import whom\n\n| folder | may import |\n|---|---|\n{rows}\n\n## Next\n");
    let sources: Vec<Source> = sources.iter().map(|&(path, text)| (path.to_owned(), text.to_owned())).collect();
    problems(&table, &sources)
}

const ROWS: &str = "| `src/a/` | `b`, `error` |\n| `src/b/` | `error` |\n| `src/error.rs` | nothing |";
const B: (&str, &str) = ("src/b/mod.rs", "");
const ERROR: (&str, &str) = ("src/error.rs", "pub struct Error;");

#[test]
fn what_the_table_allows_passes() {
    let a = "use crate::error::Error;\nuse crate::{b::{self, c}, error as e};\nuse std::fmt;\nuse super::d;\n\
             // crate::lib\n/* crate::z /* */ super::super::z */\nconst TEXT: &str = \"crate::z \\\" crate::z\";\n\
             const RAW: &str = r#\"\"crate::z\"#;\nfn f<'a>(c: &'a char) -> bool { *c == '\\'' || *c == '\"' }\n\
             mod tests { use super::super::super::b::c; use super::*; }";
    assert_eq!(wrong(ROWS, &[("src/a/mod.rs", ""), ("src/a/x.rs", a), B, ERROR]), [""; 0]);
}

#[test]
fn an_arrow_that_the_table_lacks_is_told_with_its_line() {
    let of_b = |text| wrong(ROWS, &[("src/a/mod.rs", ""), ("src/b/mod.rs", text), ERROR]);
    let told = |line: u32, import: &str| [format!("src/b/mod.rs:{line}: `b` may not import `{import}`")];
    assert_eq!(of_b("\nuse crate::a::X;"), told(2, "a"));
    assert_eq!(of_b("use crate::{\n    error::Error,\n    a,\n};"), told(3, "a"));
    assert_eq!(of_b("fn f() {\n\n    let x = crate::a::x();\n}"), told(3, "a"));
    assert_eq!(of_b("use super::a::X;"), told(1, "a"));
    assert_eq!(of_b("mod tests {\n    use super::super::a;\n}"), told(2, "a"));
    assert_eq!(of_b("mod inner { fn f() {} }\nuse super::a;"), told(2, "a"));
    assert_eq!(of_b("macro_rules! m { () => { $crate::a::x() } }"), told(1, "a"));
    assert_eq!(of_b("/* \n */ use ::std::fmt; const C: char = '\"';\npub(crate) use crate::a;"), told(3, "a"));
    // Public names of the crate's root belong to the unit `lib`.
    assert_eq!(of_b("use crate::Array;"), told(1, "lib"));
}

#[test]
fn a_backend_that_names_an_actor_is_told_with_its_line() {
    let rows = "| `src/device/` | `contract`, `mail` |\n| `src/contract/` | nothing |\n| `src/mail.rs` | nothing |";
    let beside = [("src/contract/mod.rs", ""), ("src/mail.rs", "")];
    let of = |path| {
        let text =
            "use crate::contract::messages::device::X;\nuse crate::contract::batch::Batch;\nuse crate::mail::Post;";
        wrong(rows, &[beside[0], beside[1], (path, text)])
    };
    let told = |path: &str| {
        let line = |line: u32, actor: &str| format!("{path}:{line}: a backend may not import `{actor}`");
        [line(1, "contract::messages"), line(3, "mail")]
    };
    for path in ["src/device/gpu/queue.rs", "src/device/host/run.rs", "src/device/fake.rs"] {
        assert_eq!(of(path), told(path));
    }
    for path in ["src/device/drive.rs", "src/device/gpu/tests/faults.rs", "src/device/host/tests.rs"] {
        assert_eq!(of(path), [""; 0]);
    }
}

#[test]
fn rows_and_folders_belong_together() {
    let a = ("src/a/mod.rs", "");
    let rows = |more: &str| format!("{ROWS}\n{more}");
    let gone = wrong(&rows("| `src/c/` | `b` |"), &[a, B, ERROR]);
    assert_eq!(gone, ["ARCHITECTURE.md: there is no `c`, which has a row in \"Who may import whom\""]);
    let new = wrong(ROWS, &[a, B, ERROR, ("src/c/mod.rs", "")]);
    assert_eq!(new, ["ARCHITECTURE.md: `c` has no row in \"Who may import whom\""]);
    let twice = wrong(&rows("| `src/b/` | `error` |"), &[a, B, ERROR]);
    assert_eq!(twice, ["ARCHITECTURE.md: two rows for `b`"]);
    let unknown = wrong("| `src/a/` | `z` |", &[a]);
    assert_eq!(unknown, ["ARCHITECTURE.md: there is no `z`, which `a` may import"]);
    assert_eq!(wrong("", &[]), ["ARCHITECTURE.md has no table \"Who may import whom\""]);
}

#[test]
fn a_circle_in_the_table_is_told() {
    let rows = "| `src/a/` | `b` |\n| `src/b/` | `error` |\n| `src/error.rs` | `a` |";
    let circle = wrong(rows, &[("src/a/mod.rs", ""), B, ("src/error.rs", "")]);
    assert_eq!(circle, ["ARCHITECTURE.md: a circle: a -> b -> error"]);
}

#[test]
fn crates_name_others_by_their_packages_and_their_own_modules_freely() {
    let rows = format!("{ROWS}\n| `crates/tidemill-x/` | `tidemill` |\n| `crates/tidemill-y/` | `tidemill-x` |");
    let x = ("crates/tidemill-x/src/lib.rs", "use crate::own; use tidemill::Array; mod own { use super::super::z; }");
    let of_y = |text| wrong(&rows, &[("src/a/mod.rs", ""), B, ERROR, x, ("crates/tidemill-y/src/main.rs", text)]);
    assert_eq!(of_y("use tidemill_x::Script;\nuse crate::own;"), [""; 0]);
    let told = ["crates/tidemill-y/src/main.rs:1: `tidemill-y` may not import `tidemill`"];
    assert_eq!(of_y("use tidemill::Array;"), told);
}

#[test]
fn the_root_names_its_modules_without_their_crate() {
    let rows = format!("{ROWS}\n| `src/lib.rs` | `a` |");
    let of_root = |text| wrong(&rows, &[("src/a/mod.rs", ""), B, ERROR, ("src/lib.rs", text)]);
    assert_eq!(of_root("pub use a::X;\nuse crate::a;\nuse std::fmt;"), [""; 0]);
    assert_eq!(of_root("pub use a::X;\npub use b::{Y, Z};")[0], "src/lib.rs:2: `lib` may not import `b`");
}
