//! Finds what a name stands for: `which` and `type`.

use crate::builtins::{ANY, Builtin, Outcome, nothing, row};
use crate::error::{Flow, fail};
use crate::library;
use crate::memory;
use crate::value::{Dims, Value};
use crate::vm::{Callee, Interp};
use std::path::Path;

/// The functions.
pub static ROWS: &[Builtin] = &[
    row("which", 1, ANY, 1, "text = which (name, ...)", "What names stand for: variables, files, functions.", which)
        .partly_outside(),
    row("type", 1, ANY, 1, "text = type (name, ...)", "The texts of functions, and what other names stand for.", texts)
        .partly_outside(),
];

/// The thing that a name stands for.
enum Found {
    Nothing,
    Variable,
    /// A function file, or a script file.
    File(String),
    /// A function of the script itself.
    Own,
    Builtin,
    /// A function of the library.
    Library,
}

fn name_of(who: &str, value: &Value) -> Flow<String> {
    match value.as_text() {
        Some(name) if value.is_char() => Ok(name),
        _ => fail!("{who}: NAME must be a string"),
    }
}

fn found(interp: &mut Interp, name: &str) -> Flow<(Found, Option<Callee>)> {
    if interp.variable(name).is_some() {
        return Ok((Found::Variable, None));
    }
    let callee = interp.lookup(name)?;
    let found = match &callee {
        None => Found::Nothing,
        Some(Callee::Builtin(_)) => Found::Builtin,
        Some(Callee::User(code)) if library::holds(code) => Found::Library,
        Some(Callee::User(code)) if Path::new(&code.source.name).file_stem().is_none_or(|stem| stem != name) => {
            Found::Own
        }
        Some(Callee::Nested(..)) => Found::Own,
        Some(Callee::User(code)) => Found::File(code.source.name.clone()),
        Some(Callee::Script(_)) => match interp.files.get(name) {
            Some(path) => Found::File(path.display().to_string()),
            None => Found::Own,
        },
    };
    Ok((found, callee))
}

fn which(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let mut names = Vec::new();
    for value in args {
        let name = name_of("which", value)?;
        let found = found(interp, &name)?.0;
        names.push((name, found));
    }
    if nargout > 0 {
        let short = |found: &Found| match found {
            Found::Nothing => Value::string(""),
            Found::Variable => "variable".into(),
            Found::File(path) => path.clone().into(),
            Found::Own => "command-line function".into(),
            Found::Builtin | Found::Library => "built-in function".into(),
        };
        let texts: Vec<Value> = names.iter().map(|(_, found)| short(found)).collect();
        return Ok(match <[Value; 1]>::try_from(texts) {
            Ok([one]) => one.into(),
            Err(texts) => Value::cell(Dims::new(&[1, texts.len()]), texts).into(),
        });
    }
    for (name, found) in names {
        if let Some(what) = described(&found) {
            interp.env.print(format!("'{name}' is {what}\n"));
        }
    }
    Ok(nothing())
}

fn described(found: &Found) -> Option<String> {
    Some(match found {
        Found::Nothing => return None,
        Found::Variable => "a variable".into(),
        Found::File(path) => format!("a function from the file {path}"),
        Found::Own => "a command-line function".into(),
        Found::Builtin => "a built-in function".into(),
        Found::Library => "a function of the library".into(),
    })
}

fn texts(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let mut texts = Vec::new();
    for value in args {
        let name = name_of("type", value)?;
        let (found, callee) = found(interp, &name)?;
        let text = match callee {
            Some(Callee::User(code) | Callee::Nested(code, _)) => code.source.text.clone(),
            _ => String::new(),
        };
        let text = match (&found, text.is_empty()) {
            (Found::Nothing, _) => match memory::read(interp.env.at(&name)) {
                Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                Err(_) => return fail!("type: '{name}' undefined"),
            },
            (Found::File(path), false) => {
                format!("{name} is the user-defined function defined from: {path}\n\n{}", text.trim_end())
            }
            (Found::Library, false) => format!("{name} is a function of the library:\n\n{}", text.trim_end()),
            _ => format!("{name} is {}", described(&found).unwrap_or_default()),
        };
        texts.push(text);
    }
    if nargout > 0 {
        let texts: Vec<Value> = texts.into_iter().map(Value::from).collect();
        return Ok(Value::cell(Dims::new(&[1, texts.len()]), texts).into());
    }
    for text in texts {
        interp.env.print(text);
        interp.env.print("\n");
    }
    Ok(nothing())
}
