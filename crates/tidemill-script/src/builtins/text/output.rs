//! Printing: `disp`, `printf` and the like, and the settings of `format`.

use crate::builtins::files::streams::Files;
use crate::builtins::{ANY, Builtin, Outcome, args, nothing, row};
use crate::display::{self, Format, Style, template};
use crate::error::{Flow, fail, fail_id};
use crate::value::{Class, Data, Dims, Tensor, Value};
use crate::vm::Interp;

/// The functions.
pub static ROWS: &[Builtin] = &[
    row("disp", 1, 1, 1, "disp (x); text = disp (x)", "Prints a value without its name.", disp),
    row("display", 1, 1, 1, "display (x)", "Prints a value.", display_value),
    row("fdisp", 2, 2, 0, "fdisp (fid, x)", "Prints a value without its name to a file.", fdisp),
    row("printf", 1, ANY, 1, "printf (template, ...)", "Prints by a template.", printf),
    row("fprintf", 1, ANY, 1, "fprintf (fid, template, ...)", "Prints by a template, also to a file.", fprintf),
    row("sprintf", 1, ANY, 3, "text = sprintf (template, ...)", "A text by a template.", sprintf),
    row("puts", 1, 1, 1, "puts (text)", "Prints a text as it is.", |i, a, _| write_text(i, 1, &a[0])),
    row("fputs", 2, 2, 1, "fputs (fid, text)", "Prints a text as it is to a file.", |i, a, _| {
        let stream = stream(i, "fputs", &a[0])?;
        write_text(i, stream, &a[1])
    }),
    row("format", 0, ANY, 3, "format long; format short g; format rat; format", "How numbers are shown.", format),
    row(
        "output_precision",
        0,
        1,
        1,
        "output_precision (n)",
        "How many significant digits are shown.",
        output_precision,
    ),
];

/// The places of a quotient under `format rat`, and in `rats`.
pub(super) const RATIONAL_PLACES: u8 = 9;

/// Returns a char row, which is 1×0 if it is empty, as for text that is printed into a variable.
pub(super) fn text_row(bytes: Vec<u8>) -> Value {
    Value::tensor(Tensor::new(Dims::new(&[1, bytes.len()]), Data::Char(bytes)))
}

fn disp(interp: &mut Interp, args: &[Value], outputs: usize) -> Flow<Outcome> {
    let text = display::disp(&mut interp.env, &args[0])?;
    if outputs > 0 {
        return Ok(text_row(text).into());
    }
    interp.env.print(text);
    Ok(nothing())
}

/// Shows a variable with its name, and any other value as `disp` does.
fn display_value(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let name = crate::builtins::language::assertion::written(interp).and_then(|written| written.into_iter().next());
    // A function without arguments counts, too: `display (pi)`.
    let is_name = |name: &String| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    match name.filter(is_name) {
        Some(name) => display::show(&mut interp.env, &name, &args[0]).map(|()| nothing()),
        None => disp(interp, args, 0),
    }
}

/// Returns the number of a stream that can be written to.
fn stream(interp: &mut Interp, name: &str, value: &Value) -> Flow<i64> {
    let number = match value {
        Value::Cell(_) | Value::Struct(_) | Value::Function(_) => f64::NAN,
        value if value.is_string() => match value.as_bytes() {
            Some(b"stdout") => 1.0,
            Some(b"stderr") => 2.0,
            _ => -1.0,
        },
        value if value.len() == 1 => args::number(&interp.env, name, value)?,
        _ => f64::NAN,
    };
    if number != number.trunc() || number.is_nan() {
        return fail!("{name}: file id must be a file object, std::string, or integer value");
    }
    Ok(number as i64)
}

/// Writes bytes to a stream: 1 and 2 are standard output and standard error.
pub fn write(interp: &mut Interp, name: &str, stream: i64, bytes: &[u8]) -> Flow<()> {
    match stream {
        1 => interp.env.print(bytes),
        2 => interp.env.output.err(bytes),
        number => match interp.env.keep.of::<Files>().write(number, bytes) {
            Some(Ok(())) => {}
            Some(Err(error)) => return fail!("{name}: {error}"),
            None => return fail!("{name}: invalid stream number = {number}"),
        },
    }
    Ok(())
}

fn fdisp(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let text = display::disp(&mut interp.env, &args[1])?;
    let to = stream(interp, "fdisp", &args[0])?;
    write(interp, "fdisp", to, &text)?;
    Ok(nothing())
}

fn count(bytes: usize, outputs: usize) -> Outcome {
    if outputs > 0 { Value::from(bytes).into() } else { nothing() }
}

fn printf(interp: &mut Interp, args: &[Value], outputs: usize) -> Flow<Outcome> {
    let (text, end) = template::format_until(&mut interp.env, "printf", &args[0], &args[1..])?;
    interp.env.print(&text);
    end?;
    Ok(count(text.len(), outputs))
}

fn fprintf(interp: &mut Interp, args: &[Value], outputs: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let (to, rest) = match args {
        [template, ..] if template.is_char() => (1, args),
        [_] => return fail_id!("Octave:invalid-fun-call", "Invalid call to fprintf"),
        [fid, rest @ ..] => (stream(interp, "fprintf", fid)?, rest),
        [] => return fail_id!("Octave:invalid-fun-call", "Invalid call to fprintf"),
    };
    let (text, end) = template::format_until(&mut interp.env, "fprintf", &rest[0], &rest[1..])?;
    write(interp, "fprintf", to, &text)?;
    end?;
    Ok(count(text.len(), outputs))
}

fn sprintf(interp: &mut Interp, args: &[Value], outputs: usize) -> Flow<Outcome> {
    let text = template::format(&mut interp.env, "sprintf", &args[0], &args[1..])?;
    if outputs < 2 {
        return Ok(text_row(text).into());
    }
    let length = Value::from(text.len());
    Ok(vec![text_row(text), Value::string(""), length].into())
}

/// Prints a text, and returns 0, or -1 if the value is no text.
fn write_text(interp: &mut Interp, stream: i64, text: &Value) -> Flow<Outcome> {
    match text {
        Value::Tensor(t) if t.data.class() == Class::Char => {
            write(interp, "fputs", stream, t.data.chars().unwrap_or_default())?;
            Ok(Value::Num(0.0).into())
        }
        _ => Ok(Value::Num(-1.0).into()),
    }
}

fn format(interp: &mut Interp, args: &[Value], outputs: usize) -> Flow<Outcome> {
    let format = interp.env.format;
    if outputs > 0 {
        if !args.is_empty() {
            return fail!("format: cannot change and query format simultaneously");
        }
        let style = match format.style {
            Style::Fixed => "",
            Style::Exponent => "e",
            Style::General => "g",
            Style::Engineering => "eng",
            _ => "",
        };
        let length = if format.precision > 5 { "long" } else { "short" };
        let name = match format.style {
            Style::Bank => "bank".into(),
            Style::Rational(_) => "rat".into(),
            Style::Hex => "hex".into(),
            Style::Bits => "bit".into(),
            Style::Signs => "+".into(),
            _ => format!("{length}{style}"),
        };
        let spacing = if format.compact { "compact" } else { "loose" };
        return Ok(vec![Value::string(name), Value::string(spacing), Value::string("lowercase")].into());
    }
    let mut words = Vec::with_capacity(args.len());
    for arg in args {
        match arg.as_text() {
            Some(word) => words.push(word),
            None => return fail!("format: all arguments must be strings"),
        }
    }
    interp.env.format = format_of(&words, format)?;
    Ok(nothing())
}

/// Returns the format after `format words…`.
fn format_of(words: &[String], mut format: Format) -> Flow<Format> {
    if words.is_empty() {
        return Ok(Format { width: format.width, ..Format::default() });
    }
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        let lower = word.to_ascii_lowercase();
        let (precision, letter) = match (lower.strip_prefix("long"), lower.strip_prefix("short")) {
            (Some(letter), _) => (16, letter),
            (None, Some(letter)) => (5, letter),
            (None, None) => match lower.as_str() {
                "compact" | "loose" => {
                    format.compact = lower == "compact";
                    continue;
                }
                "lowercase" | "uppercase" => continue,
                "bank" | "rat" | "hex" | "bit" | "+" => {
                    let style = match lower.as_str() {
                        "bank" => Style::Bank,
                        "rat" => Style::Rational(RATIONAL_PLACES),
                        "hex" => Style::Hex,
                        "bit" => Style::Bits,
                        _ => Style::Signs,
                    };
                    format = Format { precision: 5, style, ..format };
                    continue;
                }
                "eng" | "native-hex" | "native-bit" | "none" | "free" => {
                    return fail!("format: '{word}' is not supported yet");
                }
                _ => return fail!("format: unrecognized format state '{lower}'"),
            },
        };
        let letter = match (letter, words.peek().map(|w| w.as_str())) {
            ("", Some(next @ ("g" | "e" | "eng"))) => {
                words.next();
                next
            }
            (letter, _) => letter,
        };
        let style = match letter {
            "" => Style::Fixed,
            "g" => Style::General,
            "e" => Style::Exponent,
            "eng" => Style::Engineering,
            _ => return fail!("format: unrecognized format state '{lower}'"),
        };
        format = Format { precision, style, ..format };
    }
    Ok(format)
}

fn output_precision(interp: &mut Interp, args: &[Value], outputs: usize) -> Flow<Outcome> {
    let before = Value::Num(interp.env.format.precision as f64);
    let Some(digits) = args.first() else { return Ok(before.into()) };
    let digits = args::number(&interp.env, "output_precision", digits)?;
    if digits != digits.trunc() {
        return fail!("output_precision: argument must be an integer value");
    }
    if digits < 0.0 {
        return fail!("output_precision: arg must be greater than or equal to 0");
    }
    if digits > 16.0 {
        return fail!("output_precision: arg must be less than or equal to 16");
    }
    interp.env.format.precision = digits as u8;
    Ok(if outputs > 0 { before.into() } else { nothing() })
}
