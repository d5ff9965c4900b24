//! `load` and `save`: write variables to files and read them back, as MAT files of version 5 (and 7, which is the same
//! but compressed), in Octave's text format, or as plain text for matrices.
//!
//! In: names of variables. Out: files; variables. Must hold: nothing is written before all values lie in host memory
//! (SCRIPT-2).

use super::streams::system;
use super::{matformat, matformat4, tables, textformat};
use crate::builtins::language::variables::fits;
use crate::builtins::{ANY, Builtin, Outcome, nothing, row};
use crate::display::number::{self, Notation};
use crate::env::Env;
use crate::error::{Flow, ScriptError, fail};
use crate::memory;
use crate::value::{CellArray, StructArray, Value};
use crate::vm::Interp;
use std::path::Path;
use std::sync::Arc;

/// The functions.
pub static ROWS: &[Builtin] = &[
    row(
        "load",
        1,
        ANY,
        1,
        "s = load (file, names...)",
        "Variables from a MAT file or Octave's text format, or a table from a text.",
        load,
    )
    .outside(),
    row(
        "save",
        1,
        ANY,
        0,
        "save (file, names..., \"-v7\")",
        "Variables to a MAT file, with \"-text\" in Octave's text format, with \"-ascii\" a matrix as plain text.",
        save,
    )
    .outside(),
];

/// Splits the arguments into options, which begin with a hyphen, and other words.
fn words(who: &str, args: &[Value]) -> Flow<(Vec<String>, Vec<String>)> {
    let mut all = Vec::with_capacity(args.len());
    for arg in args {
        match arg.as_text() {
            Some(word) => all.push(word),
            None => return fail!("{who}: arguments must be strings"),
        }
    }
    Ok(all.into_iter().partition(|w| w.starts_with('-') && w.len() > 1))
}

/// Returns the value with all its parts in host memory.
fn on_host(env: &Env, value: &Value) -> Flow<Value> {
    Ok(match value {
        Value::Lazy(_) => Value::held(env.host(value)?),
        Value::Cell(c) => {
            let items = c.items.iter().map(|v| on_host(env, v)).collect::<Flow<Vec<_>>>()?;
            Value::Cell(Arc::new(CellArray::new(c.dims.clone(), items)))
        }
        Value::Struct(s) => {
            let mut out = StructArray::empty(s.dims.clone()).with_class(s.class);
            for (name, values) in &s.fields {
                let values = values.iter().map(|v| on_host(env, v)).collect::<Flow<Vec<_>>>()?;
                out.fields.insert(name.clone(), values);
            }
            Value::Struct(Arc::new(out))
        }
        other => other.clone(),
    })
}

fn save(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let (options, names) = words("save", args)?;
    let has = |name: &str| options.iter().any(|o| o == name);
    let Some((file, names)) = names.split_first() else { return fail!("save: no file name given") };
    if has("-v7.3") || has("-hdf5") {
        return fail!("save: HDF5 files are not written yet; use -v7");
    }
    let chosen = match has("-struct") {
        true => fields_chosen(interp, names)?,
        false => variables_chosen(interp, names),
    };
    let (variables, missing) = chosen;
    interp.env.host_all_captured(variables.iter().map(|v| &v.1))?;
    let mut saved = Vec::with_capacity(variables.len());
    for (name, value) in &variables {
        matformat::check_length(value).map_err(|e| ScriptError::new(format!("save: {e}")))?;
        saved.push((name.clone(), on_host(&interp.env, value)?));
    }
    for name in missing {
        interp.env.warn("", &format!("save: no such variable '{name}'"));
    }
    if has("-text") || file == "-" {
        return save_text(interp, file, &saved, has("-append"));
    }
    let bytes = if has("-ascii") {
        ascii(&interp.env, &saved, has("-double"))?
    } else {
        if has("-append")
            && let Ok(bytes) = memory::read(interp.env.at(file))
        {
            let read = matformat::read(&bytes).map_err(|e| ScriptError::new(format!("save: {e}")))?;
            let whole = read.into_iter().map(|(name, value)| Ok((name, value?))).collect::<Result<Vec<_>, String>>();
            let mut old = whole.map_err(|e| ScriptError::new(format!("save: {e}")))?;
            old.retain(|(name, _)| !saved.iter().any(|(n, _)| n == name));
            old.extend(saved);
            saved = old;
        }
        let compress = !has("-v6") && !has("-6");
        matformat::write(&saved, compress).map_err(|e| ScriptError::new(format!("save: {e}")))?
    };
    match std::fs::write(interp.env.at(file), bytes) {
        Ok(()) => Ok(nothing()),
        Err(error) => fail!("save: unable to open output file '{file}': {}", system(&error)),
    }
}

/// Saves variables in Octave's text format, to a file or (`-`) to the script's output.
fn save_text(interp: &mut Interp, file: &str, saved: &[(String, Value)], append: bool) -> Flow<Outcome> {
    let text = textformat::write(saved).map_err(|e| ScriptError::new(format!("save: {e}")))?;
    if file == "-" {
        interp.env.print(&text);
        return Ok(nothing());
    }
    let mut bytes = match append {
        true => memory::read(interp.env.at(file)).unwrap_or_default(),
        false => b"# Created by Tidemill\n".to_vec(),
    };
    bytes.extend(text);
    match std::fs::write(interp.env.at(file), bytes) {
        Ok(()) => Ok(nothing()),
        Err(error) => fail!("save: unable to open output file '{file}': {}", system(&error)),
    }
}

type Chosen = (Vec<(String, Value)>, Vec<String>);

/// Returns the variables that the names, which may be patterns, choose, or all without names; and the names that choose
/// none.
fn variables_chosen(interp: &Interp, names: &[String]) -> Chosen {
    let mut all: Vec<(String, Value)> =
        interp.variables().into_iter().map(|(name, value)| (name.to_string(), value)).collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    if names.is_empty() {
        return (all, Vec::new());
    }
    let mut chosen: Vec<(String, Value)> = Vec::new();
    let mut missing = Vec::new();
    for name in names {
        let before = chosen.len();
        let found = all.iter().filter(|(n, _)| fits(name.as_bytes(), n.as_bytes()));
        let mut any = false;
        for variable in found {
            any = true;
            if !chosen.iter().any(|(n, _)| *n == variable.0) {
                chosen.push(variable.clone());
            }
        }
        if !any && before == chosen.len() {
            missing.push(name.clone());
        }
    }
    (chosen, missing)
}

/// Returns the fields of a struct as variables.
fn fields_chosen(interp: &Interp, names: &[String]) -> Flow<Chosen> {
    let Some((name, fields)) = names.split_first() else { return fail!("save: missing struct name") };
    match interp.variable(name) {
        Some(Value::Struct(s)) if s.len() == 1 => {
            let all = s.fields.iter().filter_map(|(k, v)| Some((k.to_string(), v.first()?.clone())));
            let is_chosen =
                |name: &str| fields.is_empty() || fields.iter().any(|f| fits(f.as_bytes(), name.as_bytes()));
            let mut chosen: Vec<_> = all.filter(|(name, _)| is_chosen(name)).collect();
            chosen.sort_by(|a, b| a.0.cmp(&b.0));
            Ok((chosen, Vec::new()))
        }
        _ => fail!("save: '{name}' is not a scalar structure"),
    }
}

/// Formats matrices as rows of numbers.
fn ascii(env: &Env, variables: &[(String, Value)], double: bool) -> Flow<Vec<u8>> {
    let mut out = Vec::new();
    let digits = if double { 16 } else { 8 };
    for (name, value) in variables {
        if matches!(value, Value::Cell(_) | Value::Struct(_) | Value::Function(_)) || value.dims().len() > 2 {
            return fail!("save: {name}: only matrices are saved as text");
        }
        let host = env.host(value)?;
        for r in 0..host.dims.rows() {
            for c in 0..host.dims.columns() {
                out.push(b' ');
                let x = host.data.f64_at(c * host.dims.rows() + r);
                out.extend(number::text(x, Notation::Exponent(digits)).as_bytes());
            }
            out.push(b'\n');
        }
    }
    Ok(out)
}

/// Reads a file of variables; its name may lack `.mat`.
fn bytes_of(interp: &Interp, who: &str, file: &str) -> Flow<Vec<u8>> {
    let path = match interp.env.found(file).is_file() {
        true => file.to_string(),
        false => format!("{file}.mat"),
    };
    match memory::read(interp.env.found(&path)) {
        Ok(bytes) => Ok(bytes),
        Err(_) => fail!("{who}: unable to find file {file}"),
    }
}

/// Whether the bytes are a MAT file of a supported version.
fn is_mat(bytes: &[u8]) -> bool {
    matformat::is_mat(bytes) || matformat4::is_mat(bytes)
}

/// Returns its variables that are `wanted`, or the reason why a variable cannot be read.
fn variables_of(
    who: &str,
    file: &str,
    bytes: &[u8],
    wanted: impl Fn(&str) -> bool,
) -> Flow<Vec<(String, Result<Value, String>)>> {
    let read = match textformat::is_text(bytes) {
        true => textformat::read(bytes).map(|all| all.into_iter().map(|(name, value)| (name, Ok(value))).collect()),
        false if matformat4::is_mat(bytes) => {
            matformat4::read(bytes).map(|all| all.into_iter().map(|(name, value)| (name, Ok(value))).collect())
        }
        false => matformat::read(bytes),
    };
    match read {
        Ok(variables) => Ok(variables.into_iter().filter(|(name, _)| wanted(name)).collect()),
        Err(message) => fail!("{who}: {file}: {message}"),
    }
}

/// Returns the variables of a file, for `whos`.
pub fn in_file(interp: &Interp, file: &str) -> Flow<Vec<(String, Value)>> {
    let bytes = bytes_of(interp, "whos", file)?;
    if !textformat::is_text(&bytes) && !is_mat(&bytes) {
        return fail!("whos: unable to determine file format of '{file}'");
    }
    let all = variables_of("whos", file, &bytes, |_| true)?;
    // Variables that cannot be read are not shown.
    Ok(all.into_iter().filter_map(|(name, value)| Some((name, value.ok()?))).collect())
}

fn load(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let (options, names) = words("load", args)?;
    let has = |name: &str| options.iter().any(|o| o == name);
    let Some((file, names)) = names.split_first() else { return fail!("load: no file name given") };
    let bytes = bytes_of(interp, "load", file)?;
    if bytes.starts_with(b"MATLAB 7.3 MAT-file") || bytes.starts_with(b"\x89HDF") {
        return fail!("load: {file}: MAT files of version 7.3 (HDF5) are not read; save with -v7");
    }
    let is_text = textformat::is_text(&bytes) && !has("-ascii") && !has("-mat");
    if !is_text && (has("-ascii") || !is_mat(&bytes) && !has("-mat")) {
        return load_text(interp, file, &bytes, nargout);
    }
    if !is_text && !is_mat(&bytes) {
        return fail!("load: unable to determine file format of '{file}'");
    }
    let is_wanted = |name: &str| names.is_empty() || names.iter().any(|p| fits(p.as_bytes(), name.as_bytes()));
    let mut variables = Vec::new();
    for (name, value) in variables_of("load", file, &bytes, is_wanted)? {
        match value {
            Ok(value) => variables.push((name, value)),
            // If variables were asked for by name, an unreadable one is an error. Otherwise the readable ones are
            // loaded.
            Err(message) if !names.is_empty() => return fail!("load: {file}: {message}"),
            Err(message) => interp.env.warn("Tidemill:load", &format!("load: {file}: {message}")),
        }
    }
    if nargout > 0 {
        let mut s = StructArray::scalar();
        variables.into_iter().for_each(|(name, value)| s.set(name.as_str(), value));
        return Ok(Value::Struct(Arc::new(s)).into());
    }
    for (name, value) in variables {
        interp.set_variable(&name, value)?;
    }
    Ok(nothing())
}

/// Loads a table of numbers. Called as a statement, it sets a variable with the file's name.
fn load_text(interp: &mut Interp, file: &str, bytes: &[u8], nargout: usize) -> Flow<Outcome> {
    if bytes.starts_with(b"Octave-1") {
        return fail!("load: {file}: Octave's binary format is not read yet; save with -text or -v7");
    }
    let Some(value) = tables::numbers(bytes) else {
        return fail!("load: unable to determine file format of '{file}'");
    };
    if nargout > 0 {
        return Ok(value.into());
    }
    let stem = Path::new(file).file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    let mut name: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        name.insert(0, 'X');
    }
    interp.set_variable(&name, value)?;
    Ok(nothing())
}
