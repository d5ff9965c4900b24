//! Tests functions of text, cells and structs against recorded results of GNU Octave 7.3. Each line of `text_cases.txt`
//! is a case: an expression and its value in the form of [`shown`], or the error's identifier and message.

use crate::Script;
use crate::display::number::is_missing;
use crate::env::{Env, Options};
use crate::output::Captured;
use crate::value::{Data, Value};
use crate::vm::Interp;

/// Formats a number by `%.17g`.
fn number(x: f64) -> String {
    if x.is_nan() {
        return if is_missing(x) { "NA".into() } else { "NaN".into() };
    }
    if x.is_infinite() {
        return if x > 0.0 { "Inf".into() } else { "-Inf".into() };
    }
    let text = format!("{x:.16e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let plain =
        |s: &str| if s.contains('.') { s.trim_end_matches('0').trim_end_matches('.').into() } else { s.to_string() };
    if !(-4..17).contains(&exponent) {
        return format!("{}e{}{:02}", plain(mantissa), if exponent < 0 { '-' } else { '+' }, exponent.abs());
    }
    plain(&format!("{x:.*}", (16 - exponent).max(0) as usize))
}

/// Formats the class, dimensions and elements of a value.
fn shown(value: &Value) -> String {
    let dims = value.dims().iter().map(usize::to_string).collect::<Vec<_>>().join("  ");
    let list = |items: &[Value], end: &str| items.iter().map(|v| shown(v) + end).collect::<String>();
    match value {
        Value::Num(x) => format!("double<{dims}:{} >", number(*x)),
        Value::Bool(b) => format!("logical<{dims}:{} >", *b as u8),
        Value::Cell(c) => format!("{{{dims}:{}}}", list(&c.items, ",")),
        Value::Struct(s) => {
            let fields: String =
                s.fields.iter().map(|(name, values)| format!("{name}=({})", list(values, ";"))).collect();
            format!("S[{dims}:{fields}]")
        }
        Value::Tensor(t) => match &*t.data {
            Data::Char(bytes) => {
                let one = |&b: &u8| match b {
                    32..127 => (b as char).to_string(),
                    b => format!("\\{b};"),
                };
                format!("c<{dims}:{}>", bytes.iter().map(one).collect::<String>())
            }
            Data::C64(v) => {
                let sign = |x: f64| if x.is_sign_negative() { "" } else { "+" };
                let one = |z: &num_complex::Complex64| format!("{}{}{}i ", number(z.re), sign(z.im), number(z.im));
                format!("{}<{dims}:{}>", value.class_name(), v.iter().map(one).collect::<String>())
            }
            data => {
                let all: String = (0..data.len()).map(|i| number(data.f64_at(i)) + " ").collect();
                format!("{}<{dims}:{all}>", value.class_name())
            }
        },
        other => format!("{other:?}"),
    }
}

#[test]
fn results_are_octaves() {
    let runtime = tidemill::Runtime::builder().device("host").start_blocking().expect("the host device starts");
    let session = runtime.session("cases").seed(1).open();
    let mut wrong = Vec::new();
    for case in include_str!("text_cases.txt").lines() {
        let (expression, expected) = case.split_once(" => ").expect("a case has an expression and its value");
        let mut interp = Interp::new(Env::new(session.clone(), Box::new(Captured::default()), Options::default()));
        let result = Script::parse(&format!("r = {expression};"))
            .and_then(|script| futures::executor::block_on(script.run_on(&mut interp, true)));
        let found = match result {
            Ok(workspace) => workspace.get("r").map(shown).unwrap_or_default(),
            Err(error) => format!("ERR {} | {}", error.identifier, error.message.replace('\n', "\\n")),
        };
        if found.trim_end() != expected {
            wrong.push(format!("{expression}\n  expected {expected}\n  found    {found}"));
        }
    }
    assert!(wrong.is_empty(), "{} cases differ:\n{}", wrong.len(), wrong.join("\n"));
}
