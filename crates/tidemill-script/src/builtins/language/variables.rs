//! Variables by name: lists and describes them, and removes them.

use crate::builtins::arrays::queries::bytes_of;
use crate::builtins::calls::environment::{scope, text};
use crate::builtins::files::matfile;
use crate::builtins::text::pattern;
use crate::builtins::{ANY, Builtin, Outcome, Reach, nothing};
use crate::error::{Flow, fail};
use crate::syntax::ast::Name;
use crate::value::{Dims, StructArray, Value};
use crate::vm::{Described, Interp};
use std::sync::Arc;

/// The family.
pub static ROWS: &[Builtin] = &[
    Builtin {
        name: "isvarname",
        args_min: 1,
        args_max: 1,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "isvarname (text)",
        summary: "Whether a text may name a variable.",
        run: isvarname,
    },
    Builtin {
        name: "iskeyword",
        args_min: 0,
        args_max: 1,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "iskeyword (text)",
        summary: "Whether a text is a word of the language; without one, all of them.",
        run: iskeyword,
    },
    Builtin {
        name: "isglobal",
        args_min: 1,
        args_max: 1,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "isglobal (name)",
        summary: "Whether a variable is global.",
        run: isglobal,
    },
    Builtin {
        name: "clear",
        args_min: 0,
        args_max: ANY,
        outputs_max: 0,
        reach: Reach::Script,
        usage: "clear name…",
        summary: "Remove variables.",
        run: clear,
    },
    Builtin {
        name: "clearvars",
        args_min: 0,
        args_max: ANY,
        outputs_max: 0,
        reach: Reach::Script,
        usage: "clearvars name… -except name…",
        summary: "Remove variables, but for those behind -except.",
        run: clearvars,
    },
    Builtin {
        name: "who",
        args_min: 0,
        args_max: ANY,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "who pattern…",
        summary: "The names of variables.",
        run: who,
    },
    Builtin {
        name: "assignin",
        args_min: 3,
        args_max: 3,
        outputs_max: 0,
        reach: Reach::Script,
        usage: "assignin (\"caller\", name, value)",
        summary: "Set a variable by its name.",
        run: assignin,
    },
    Builtin {
        name: "whos",
        args_min: 0,
        args_max: ANY,
        outputs_max: 1,
        reach: Reach::Script,
        usage: "whos pattern…",
        summary: "The variables with their sizes, bytes and classes.",
        run: whos,
    },
];

/// Whether a text is a valid name of a variable.
pub fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !KEYWORDS.contains(&text)
}

/// Words that cannot be names of variables.
pub const KEYWORDS: &[&str] = &[
    "break",
    "case",
    "catch",
    "continue",
    "do",
    "else",
    "elseif",
    "end",
    "end_try_catch",
    "end_unwind_protect",
    "endfor",
    "endfunction",
    "endif",
    "endparfor",
    "endswitch",
    "endwhile",
    "for",
    "function",
    "global",
    "if",
    "otherwise",
    "parfor",
    "persistent",
    "return",
    "switch",
    "try",
    "until",
    "unwind_protect",
    "unwind_protect_cleanup",
    "while",
    "__FILE__",
    "__LINE__",
    "classdef",
    "endarguments",
    "endclassdef",
    "endenumeration",
    "endevents",
    "endmethods",
    "endproperties",
    "endspmd",
    "spmd",
];

fn isvarname(_: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    Ok(Value::Bool(args[0].as_text().is_some_and(|t| is_name(&t))).into())
}

fn iskeyword(_: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let Some(name) = args.first() else {
        let mut words = KEYWORDS.to_vec();
        words.sort_unstable();
        let words = words.into_iter().map(Value::string).collect();
        return Ok(Value::cell(Dims::new(&[KEYWORDS.len(), 1]), words).into());
    };
    let name = text(name, "iskeyword", "NAME")?;
    Ok(Value::Bool(KEYWORDS.contains(&name.as_str())).into())
}

fn isglobal(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let name = text(&args[0], "isglobal", "NAME")?;
    Ok(Value::Bool(interp.is_global(&name)).into())
}

/// Whether a name matches a pattern with `*` and `?`. At a difference, the search goes back to the last `*` only, which
/// then takes one byte more. So it takes at most as many steps as the product of the lengths.
pub fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut last_star = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                last_star = Some((p, n));
                p += 1;
            }
            Some(&byte) if byte == b'?' || byte == name[n] => (p, n) = (p + 1, n + 1),
            _ => match last_star {
                Some((star, taken)) => {
                    last_star = Some((star, taken + 1));
                    (p, n) = (star + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

fn clear(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let words: Vec<String> = args.iter().map(|a| text(a, "clear", "NAME")).collect::<Flow<_>>()?;
    let is_flag = |w: &String| {
        w.starts_with('-') || matches!(w.as_str(), "all" | "variables" | "functions" | "global" | "classes")
    };
    let flags: Vec<&str> = words.iter().filter(|w| is_flag(w)).map(|w| w.trim_start_matches('-')).collect();
    let mut names: Vec<&String> = words.iter().filter(|w| !is_flag(w)).collect();
    let mut matching = Vec::new();
    if flags.iter().any(|f| matches!(*f, "r" | "regexp")) {
        for variable in interp.described_variables() {
            for pattern in &names {
                let (pattern, name) = (pattern.as_bytes(), variable.name.as_bytes());
                let (_, found) = pattern::matches(&mut interp.env, "clear", pattern, name, pattern::DEFAULT)?;
                if !found.is_empty() {
                    matching.push(variable.name.to_string());
                    break;
                }
            }
        }
        if matching.is_empty() {
            return Ok(nothing());
        }
        names = matching.iter().collect();
    }
    let exclusive = flags.iter().any(|f| matches!(*f, "x" | "exclusive" | "except"));
    let chosen = |name: &str| {
        let named = names.iter().any(|p| fits(p.as_bytes(), name.as_bytes()));
        if exclusive { !named } else { names.is_empty() || named }
    };
    let functions = flags.iter().any(|f| matches!(*f, "f" | "functions"));
    if functions || flags.iter().any(|f| matches!(*f, "all" | "a")) || !names.is_empty() && flags.is_empty() {
        interp.clear_functions(chosen);
    }
    if functions {
        return Ok(nothing());
    }
    if flags.iter().any(|f| matches!(*f, "g" | "global")) {
        let globals: Vec<Name> = interp.global_names();
        interp.clear_globals(chosen);
        interp.clear_variables(|name| globals.iter().any(|global| **global == *name) && chosen(name));
        return Ok(nothing());
    }
    if flags.iter().any(|f| matches!(*f, "all" | "a")) {
        interp.clear_globals(chosen);
    }
    interp.clear_variables(chosen);
    Ok(nothing())
}

/// Does `clearvars a* -except ab`. The words are names, patterns, or regular expressions behind `-regexp`.
fn clearvars(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let words: Vec<String> = args.iter().map(|a| text(a, "clearvars", "NAME")).collect::<Flow<_>>()?;
    let global = words.first().is_some_and(|w| w == "-global");
    if words.iter().skip(1).any(|w| w == "-global") {
        return fail!("clearvars: '-global' must be the first option when present");
    }
    let mut sides = words[global as usize..].split(|w| w == "-except");
    let (taken, kept) = (sides.next().unwrap_or_default(), sides.next());
    if sides.next().is_some() {
        return fail!("clearvars: '-except' may only be specified once");
    }
    let names: Vec<String> = interp.described_variables().iter().map(|v| v.name.to_string()).collect();
    let mut gone = named(interp, &names, taken)?;
    if taken.is_empty() {
        gone = names.clone();
    }
    let kept = named(interp, &names, kept.unwrap_or_default())?;
    let chosen = |name: &str| gone.iter().any(|n| n == name) && !kept.iter().any(|n| n == name);
    if global {
        interp.clear_globals(chosen);
    }
    interp.clear_variables(chosen);
    Ok(nothing())
}

/// Returns the names that match the patterns; those behind `-regexp` are regular expressions.
fn named(interp: &mut Interp, names: &[String], patterns: &[String]) -> Flow<Vec<String>> {
    let mut found = Vec::new();
    let at = patterns.iter().position(|p| p == "-regexp").unwrap_or(patterns.len());
    let (plain, regular) = (&patterns[..at], patterns.get(at + 1..).unwrap_or_default());
    for name in names {
        let mut is_named = plain.iter().any(|p| fits(p.as_bytes(), name.as_bytes()));
        for pattern in regular {
            let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
            is_named |= !pattern::matches(&mut interp.env, "clearvars", pattern, name, pattern::DEFAULT)?.1.is_empty();
        }
        if is_named {
            found.push(name.clone());
        }
    }
    Ok(found)
}

/// Returns the variables that patterns choose, in the order of the patterns; without patterns all, by name.
fn chosen(interp: &Interp, args: &[Value], who: &str) -> Flow<Vec<Described>> {
    fitting(interp.described_variables(), args, who)
}

/// Returns the variables of a file.
fn described_in(interp: &Interp, file: &str) -> Flow<Vec<Described>> {
    let described = |(name, value): (String, Value)| Described {
        name: name.as_str().into(),
        value,
        formal: false,
        global: false,
        persistent: false,
    };
    Ok(matfile::in_file(interp, file)?.into_iter().map(described).collect())
}

/// Returns the variables whose names match one of the patterns, by name; without patterns all.
fn fitting(mut all: Vec<Described>, patterns: &[Value], who: &str) -> Flow<Vec<Described>> {
    let words: Vec<String> = patterns.iter().map(|a| text(a, who, "PATTERN")).collect::<Flow<_>>()?;
    if let Some(flag) = words.iter().find(|w| w.starts_with('-')) {
        return fail!("{who}: {flag} is not supported yet");
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    if words.is_empty() {
        return Ok(all);
    }
    let mut found = Vec::new();
    for word in &words {
        let (named, rest) = all.into_iter().partition(|d| fits(word.as_bytes(), d.name.as_bytes()));
        found.extend::<Vec<Described>>(named);
        all = rest;
    }
    Ok(found)
}

/// Returns the globals that patterns choose, including those that are not declared here.
fn chosen_globals(interp: &Interp, patterns: &[Value]) -> Vec<String> {
    let patterns: Vec<String> = patterns.iter().filter_map(Value::as_text).collect();
    let is_chosen = |name: &Name| patterns.is_empty() || patterns.iter().any(|p| fits(p.as_bytes(), name.as_bytes()));
    let mut names: Vec<String> = interp.global_names().iter().filter(|n| is_chosen(n)).map(|n| n.to_string()).collect();
    names.sort();
    names
}

fn who(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let (names, title) = match args.split_first() {
        Some((word, patterns)) if word.as_bytes() == Some(b"global") => {
            (chosen_globals(interp, patterns), "Global variables")
        }
        _ => (
            chosen(interp, args, "who")?.into_iter().map(|d| d.name.to_string()).collect(),
            "Variables visible from the current scope",
        ),
    };
    if nargout > 0 {
        let n = names.len();
        if n == 0 {
            return Ok(Value::cell(Dims::zero(), Vec::new()).into());
        }
        return Ok(Value::cell(Dims::new(&[n, 1]), names.into_iter().map(Value::from).collect()).into());
    }
    if !names.is_empty() {
        let columns = in_columns(&names, interp.env.format.width as usize);
        interp.env.print(format!("{title}:\n\n{columns}\n"));
    }
    Ok(nothing())
}

/// Arranges names in columns that are as wide as the longest name and two blanks; the names run down the columns.
fn in_columns(names: &[String], line: usize) -> String {
    let width = names.iter().map(String::len).max().unwrap_or(0) + 2;
    let across = (line / width).max(1);
    let rows = names.len().div_ceil(across);
    let mut out = String::new();
    for r in 0..rows {
        let row: Vec<&String> = names.iter().skip(r).step_by(rows).collect();
        for (i, name) in row.iter().enumerate() {
            out += name;
            if i + 1 < row.len() {
                out.extend(std::iter::repeat_n(' ', width - name.len()));
            }
        }
        out.push('\n');
    }
    out
}

fn whos(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let (variables, title, scope) = match args {
        [word, file, patterns @ ..] if word.as_bytes() == Some(b"-file") => {
            let file = text(file, "whos", "FILE")?;
            let variables = fitting(described_in(interp, &file)?, patterns, "whos")?;
            (variables, format!("Variables in the file {file}:\n"), "$dummy_scope$".into())
        }
        _ => {
            let title = "Variables visible from the current scope:".to_string();
            (chosen(interp, args, "whos")?, title, interp.scope_name())
        }
    };
    if nargout > 0 {
        return Ok(listed(&variables).into());
    }
    if variables.is_empty() {
        return Ok(nothing());
    }
    let longest = variables.iter().map(|d| d.name.len()).max().unwrap_or(0).max(6);
    let before = variables.iter().map(|d| d.value.dims().rows().to_string().len()).max().unwrap_or(1).max(5);
    let gap = " ".repeat(before - 5);
    let mut out = format!("{title}\n\nvariables in scope: {scope}\n\n");
    out += &format!("  Attr   {:longest$}{gap}      Size                     Bytes  Class\n", "Name");
    out += &format!("  ====   {:longest$}{gap}      ====                     =====  ===== \n", "====");
    let (mut elements, mut bytes) = (0, 0);
    for d in &variables {
        let dims = d.value.dims().to_string();
        let (rows, rest) = dims.split_once('x').unwrap_or((&dims, ""));
        let size = bytes_of(&d.value);
        let mark = |on: bool, letter: char| if on { letter } else { ' ' };
        let marks: String =
            [mark(d.value.is_complex(), 'c'), ' ', mark(d.formal, 'f'), mark(d.global, 'g'), mark(d.persistent, 'p')]
                .iter()
                .collect();
        let name = &d.name;
        out += &format!("  {marks}  {name:longest$}  {rows:>before$}x{rest:10}{size:>18}  {}\n", d.value.class_name());
        elements += d.value.len();
        bytes += size;
    }
    let plural = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
    out += &format!("\nTotal is {} using {}\n\n", plural(elements, "element"), plural(bytes, "byte"));
    interp.env.print(out);
    Ok(nothing())
}

/// Returns the same as a struct array.
fn listed(variables: &[Described]) -> Value {
    let mut array = StructArray::empty(Dims::new(&[variables.len(), 1]));
    let mut field = |name: &str, value: &dyn Fn(&Described) -> Value| {
        array.fields.insert(name.into(), variables.iter().map(value).collect());
    };
    field("name", &|d| Value::string(&*d.name));
    field("size", &|d| Value::row(d.value.dims().iter().map(|&n| n as f64).collect()));
    field("bytes", &|d| Value::from(bytes_of(&d.value)));
    field("class", &|d| Value::string(d.value.class_name()));
    field("global", &|d| Value::Bool(d.global));
    field("sparse", &|_| Value::Bool(false));
    field("complex", &|d| Value::Bool(d.value.is_complex()));
    field("persistent", &|d| Value::Bool(d.persistent));
    Value::Struct(Arc::new(array))
}

fn assignin(_: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let name = text(&args[1], "assignin", "VARNAME")?;
    if !is_name(&name) {
        return fail!("assignin: invalid variable name '{name}'");
    }
    let scope = scope(&args[0], "assignin")?;
    Ok(Outcome::Assign { name, value: args[2].clone(), scope })
}
