//! Makes the parts of an error that a script sees: the names of the open calls, as Octave gives them, and the object
//! that a `catch` gets.

use super::Interp;
use super::frame::Activation;
use crate::compile::Code;
use crate::error::{Call, ScriptError};
use crate::value::{Dims, StructArray, Value};
use std::path::Path;
use std::sync::Arc;

/// The most open calls that an error lists. Only a raised `recursion_max` allows more.
const CALLS_MAX: usize = 512;

impl Interp {
    /// The open calls, innermost first.
    pub(super) fn calls(&self) -> Vec<Call> {
        let frames = self.frames.iter().rev().filter_map(|a| match a {
            Activation::Code(frame) => Some(frame),
            Activation::Task(_) => None,
        });
        frames.map(|f| Call { function: self.full_name(&f.code), place: self.place_of(f) }).take(CALLS_MAX).collect()
    }

    /// Returns a function's name as errors tell it. Other functions than a file's first follow the file's name
    /// (`deep>mid`).
    fn full_name(&self, code: &Arc<Code>) -> String {
        if !code.text.is_empty() {
            return "@<anonymous>".into();
        }
        let file = Path::new(&code.source.name).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let is_of_function_file = self.locals.contains_key(&(Arc::as_ptr(&code.source) as usize));
        if is_of_function_file && *code.name != *file { format!("{file}>{}", code.name) } else { code.name.to_string() }
    }
}

/// Words the syntax error of an evaluated text or a file as Octave does: the line, and a mark below the place. The
/// parser's expectation becomes advice.
pub(super) fn quoted(error: ScriptError) -> ScriptError {
    let (Some(place), Some(reason)) = (&error.place, error.message.strip_prefix("parse error: ")) else { return error };
    let text = place.source.text.as_str();
    // The mark stands below the last character of the unexpected token, or of the text if it ends too early.
    let last = text.trim_end().char_indices().next_back().map_or(0, |(at, _)| at);
    let at = place.source.floor_char_boundary(place.span.end.max(place.span.start + 1) as usize - 1).min(last);
    let begin = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let line = text[begin..].lines().next().unwrap_or_default();
    let blanks = " ".repeat(text[begin..at].chars().count() + 4);
    let is_expectation = reason.starts_with("expected ");
    let what = if is_expectation { "syntax error" } else { reason };
    let head = match place.source.is_given() {
        true => "parse error:".to_owned(),
        false => {
            let number = place.source.position(at as u32).line;
            format!("parse error near line {number} of file {}", place.source.full_path())
        }
    };
    let message = format!("{head}\n\n  {what}\n\n>>> {line}\n{blanks}^");
    let help = error.help.clone().or_else(|| is_expectation.then(|| reason.into()));
    ScriptError { message, help, ..error }
}

/// Returns an error as an object that behaves like a struct: `message`, `identifier`, `stack`.
pub fn error_value(error: &ScriptError) -> Value {
    let mut object = StructArray::scalar();
    object.class = Some("MException");
    object.set("message", error.message.as_str());
    object.set("identifier", error.identifier.as_str());
    // The stack does not list texts of `eval` or of a prompt. It lists a script by its file name.
    let calls = error.stack.iter().filter(|call| !call.function.is_empty() || !call.place.source.is_given());
    let mut columns: [Vec<Value>; 4] = Default::default();
    for call in calls {
        let at = call.place.source.position(call.place.span.start);
        let file = call.place.source.name.as_str();
        columns[0].push(call.place.source.full_path().as_str().into());
        columns[1].push(match call.function.as_str() {
            "" => Path::new(file).file_stem().unwrap_or_default().to_string_lossy().as_ref().into(),
            function => function.into(),
        });
        columns[2].push(Value::Num(at.line as f64));
        columns[3].push(Value::Num(at.column as f64));
    }
    let mut stack = StructArray::empty(Dims::new(&[columns[0].len(), 1]));
    for (name, values) in ["file", "name", "line", "column"].into_iter().zip(columns) {
        stack.fields.insert(name.into(), values);
    }
    object.set("stack", Value::Struct(Arc::new(stack)));
    Value::Struct(Arc::new(object))
}
