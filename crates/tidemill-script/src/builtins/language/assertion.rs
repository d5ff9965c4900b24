//! `assert`: a condition that must hold, or a value that must be as expected.
//!
//! In: MATLAB's form (a condition, a template and its arguments) or Octave's (observed, expected, tolerance; a negative
//! tolerance is relative). Out: nothing, or an error whose message lists every difference in a table, as Octave's does.

use crate::builtins::text::number_text::plain;
use crate::builtins::{Outcome, nothing};
use crate::display::number::{self, Notation};
use crate::env::Env;
use crate::error::{Flow, Stop, fail};
use crate::source::Source;
use crate::syntax::ast::{ExprKind, StepKind, StmtKind};
use crate::syntax::parse;
use crate::value::total::total;
use crate::value::{Class, Data, StructArray, Tensor, Value};
use crate::vm::Interp;
use num_complex::Complex64;

/// A line of the table.
struct Difference {
    place: String,
    observed: String,
    expected: String,
    reason: String,
}

/// Whether the compared values are the arguments themselves, or parts of them.
#[derive(Clone, Copy, PartialEq)]
enum Depth {
    Arguments,
    Parts,
}

/// The most values inside of compared cells and structs.
const PARTS_MAX: usize = 1 << 24;

/// Does `assert`.
pub(super) fn assert(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    interp.env.host_all(args)?;
    let is_condition = match args {
        [] | [_] => true,
        [first, second, ..] => {
            second.is_string()
                && !first.is_char()
                && !matches!(first, Value::Cell(_) | Value::Struct(_))
                && (args.len() > 2 || first.class() == Class::Logical || !second.is_scalar())
        }
    };
    if is_condition {
        if holds(&mut interp.env, &args[0])? {
            return Ok(nothing());
        }
        if args.len() > 1 {
            return Err(super::errors::raised(&mut interp.env, &args[1..])?.into());
        }
        return fail!("assert ({}) failed", written_arguments(interp));
    }
    let tolerance = match args.get(2) {
        Some(t) => interp.env.host(t)?,
        None => interp.env.host(&Value::Num(0.0))?,
    };
    if tolerance.is_empty() {
        // No difference exceeds an empty tolerance. But it does not fit an argument with several elements.
        return match args[0].len() {
            0 | 1 => Ok(nothing()),
            _ => fail!("assert: nonconformant arguments (op1 is {}, op2 is {})", args[0].dims(), tolerance.dims),
        };
    }
    if args[..2].iter().any(|v| total(v, &|_| 1) > PARTS_MAX) {
        return fail!("assert: more than {PARTS_MAX} values inside of cells and structs to compare");
    }
    let Some((depth, lines)) = compare(&mut interp.env, &args[0], &args[1], &tolerance, Depth::Arguments)? else {
        return Ok(nothing());
    };
    let what = match depth {
        Depth::Arguments => written_arguments(interp),
        Depth::Parts => "cond {i},expected {i},tol".into(),
    };
    let rows: Vec<String> = lines.iter().map(row).collect();
    fail!("ASSERT errors for:  assert ({what})\n\n  Location  |  Observed  |  Expected  |  Reason\n{}", rows.join("\n"))
}

fn holds(env: &mut Env, value: &Value) -> Flow<bool> {
    if value.is_empty() {
        return Ok(false);
    }
    match crate::ops::truth(env, value) {
        Err(Stop::Error(_)) => Ok(false),
        other => other,
    }
}

/// Formats a line: three columns of width twelve with centred texts, and the reason.
fn row(line: &Difference) -> String {
    let mut out = String::new();
    for (i, text) in [&line.place, &line.observed, &line.expected].into_iter().enumerate() {
        let start = i * 13 + 12usize.saturating_sub(text.len()) / 2;
        out.push_str(&" ".repeat(start.saturating_sub(out.len())));
        out.push_str(text);
    }
    let gap = 41usize.saturating_sub(out.len()).max(1);
    format!("{out}{}{}", " ".repeat(gap), line.reason)
}

/// Returns the text of the arguments of the running call, with Octave's spacing.
fn written_arguments(interp: &Interp) -> String {
    written(interp).map_or_else(|| "cond".into(), |list| list.join(","))
}

/// Returns the texts of the arguments of the running call, if they are known.
pub fn written(interp: &Interp) -> Option<Vec<String>> {
    let place = interp.here()?;
    arguments(place.source.text.get(place.span.range())?)
}

/// Returns the texts of the arguments in a call's text, each as the body of an anonymous function would print.
pub fn arguments(call: &str) -> Option<Vec<String>> {
    let source = Source::new("call", call.to_owned());
    let file = parse(&source).ok()?;
    let StmtKind::Expr(expr) = &file.body.first()?.kind else { return None };
    let ExprKind::Index(_, steps) = &expr.kind else { return None };
    let StepKind::Paren(args) = &steps.first()?.kind else { return None };
    args.iter().map(|arg| spaced(call.get(arg.span.range())?)).collect()
}

fn spaced(text: &str) -> Option<String> {
    let file = parse(&Source::new("argument", format!("@() {text}"))).ok()?;
    let StmtKind::Expr(expr) = &file.body.first()?.kind else { return None };
    let ExprKind::Anonymous(def) = &expr.kind else { return None };
    Some(def.text.strip_prefix("@() ")?.to_owned())
}

type Found = Option<(Depth, Vec<Difference>)>;

fn one(depth: Depth, place: &str, observed: impl Into<String>, expected: impl Into<String>, reason: String) -> Found {
    let line = Difference { place: place.into(), observed: observed.into(), expected: expected.into(), reason };
    Some((depth, vec![line]))
}

/// Returns how two values differ by more than the tolerance; for containers, the difference of the first parts that
/// differ.
fn compare(env: &mut Env, a: &Value, b: &Value, tolerance: &Tensor, depth: Depth) -> Flow<Found> {
    let sizes = || {
        let reason = "Dimensions don't match".to_string();
        one(depth, ".", format!("O({})", a.dims()), format!("E({})", b.dims()), reason)
    };
    let other_kind =
        |kind: &str| one(depth, ".", "O", "E", format!("Expected {kind}, but observed {}", a.class_name()));
    Ok(match (a, b) {
        (_, b) if b.is_char() => match a {
            a if a.is_char() => {
                if a.dims() != b.dims() || !same_text(env, a, b)? {
                    let (a, b) = (env.host(a)?, env.host(b)?);
                    one(depth, "[]", first_row(&a), first_row(&b), "Strings don't match".into())
                } else {
                    None
                }
            }
            Value::Cell(_) | Value::Struct(_) | Value::Function(_) => one(
                depth,
                ".",
                "O",
                first_row(&*env.host(b)?),
                format!("Expected string, but observed {}", a.class_name()),
            ),
            a => {
                let (x, y) = (env.host(a)?, env.host(b)?);
                one(depth, ".", plain(&x), first_row(&y), "Expected string, but observed number".into())
            }
        },
        (Value::Cell(x), Value::Cell(y)) => {
            if x.dims != y.dims {
                return Ok(sizes());
            }
            for (x, y) in x.items.iter().zip(&y.items) {
                if let Some(found) = compare(env, x, y, tolerance, Depth::Parts)? {
                    return Ok(Some(found));
                }
            }
            None
        }
        (_, Value::Cell(_)) => other_kind("cell"),
        (Value::Struct(x), Value::Struct(y)) => {
            if x.dims != y.dims || x.fields.len() != y.fields.len() {
                return Ok(sizes());
            }
            return fields(env, x, y, tolerance, depth);
        }
        (Value::Function(x), Value::Function(y)) => match x.text() == y.text() {
            true => None,
            false => one(depth, "@", "O", "E", "Function handles don't match".into()),
        },
        (Value::Cell(_) | Value::Struct(_) | Value::Function(_), _) | (_, Value::Struct(_) | Value::Function(_)) => {
            one(depth, "()", "O", "E", format!("Class {} != {}", a.class_name(), b.class_name()))
        }
        (a, b) => {
            let (x, y) = (env.host(a)?, env.host(b)?);
            if x.dims != y.dims {
                return Ok(sizes());
            }
            if tolerance.data.f64_at(0) == 0.0 && a.class() != b.class() {
                return Ok(one(depth, "()", "O", "E", format!("Class {} != {}", a.class_name(), b.class_name())));
            }
            if tolerance.data.f64_at(0) == 0.0 && x.data.is_complex() != y.data.is_complex() {
                let words = if x.data.is_complex() { "complex != real" } else { "real != complex" };
                return Ok(one(depth, "()", "O", "E", words.into()));
            }
            let lines = elements(&x, &y, tolerance);
            (!lines.is_empty()).then_some((depth, lines))
        }
    })
}

fn fields(env: &mut Env, x: &StructArray, y: &StructArray, tolerance: &Tensor, depth: Depth) -> Flow<Found> {
    for (name, values) in &x.fields {
        let Some(others) = y.fields.get(name) else {
            return Ok(one(depth, ".", "O", "E", "Structure fieldname mismatch".into()));
        };
        for (v, w) in values.iter().zip(others) {
            if let Some(found) = compare(env, v, w, tolerance, Depth::Parts)? {
                return Ok(Some(found));
            }
        }
    }
    Ok(None)
}

fn same_text(env: &Env, a: &Value, b: &Value) -> Flow<bool> {
    Ok(env.host(a)?.data == env.host(b)?.data)
}

fn first_row(text: &Tensor) -> String {
    let rows = text.row_strings().unwrap_or_default();
    rows.first().map_or_else(String::new, |r| String::from_utf8_lossy(r).into_owned())
}

/// Returns the elements that differ. NaN and infinities must be in the same places, and exact classes are compared
/// exactly.
fn elements(x: &Tensor, y: &Tensor, tolerance: &Tensor) -> Vec<Difference> {
    let mut lines = Vec::new();
    for i in 0..x.len() {
        let (a, b) = (x.data.c64_at(i), y.data.c64_at(i));
        let equal = match (&*x.data, &*y.data) {
            (Data::I64(p), Data::I64(q)) => p[i] == q[i],
            (Data::U64(p), Data::U64(q)) => p[i] == q[i],
            _ => a == b,
        };
        let allowed = tolerance.data.f64_at(if tolerance.len() == x.len() { i } else { 0 });
        if let Some(reason) = mismatch(a, b).or_else(|| if equal { None } else { beyond(a, b, allowed) }) {
            let text = |t: &Tensor, at: usize| plain(&Tensor::scalar(t.data.pick(std::iter::once(at))));
            lines.push(Difference { place: place(x, i), observed: text(x, i), expected: text(y, i), reason });
        }
    }
    lines
}

/// Describes a NaN, an infinity or a missing value that only one side has.
fn mismatch(a: Complex64, b: Complex64) -> Option<String> {
    let either = |test: fn(f64) -> bool| test(a.re) != test(b.re) || test(a.im) != test(b.im);
    let infinite = |p: f64, q: f64| (p.is_infinite() || q.is_infinite()) && p != q;
    let what = match () {
        () if either(number::is_missing) => "NA",
        () if either(f64::is_nan) => "NaN",
        () if infinite(a.re, b.re) || infinite(a.im, b.im) => "Inf",
        () => return None,
    };
    Some(format!("'{what}' mismatch"))
}

/// Describes an error that is greater than allowed; `None` if it is not.
fn beyond(a: Complex64, b: Complex64, allowed: f64) -> Option<String> {
    let part = |p: f64, q: f64| if p.is_finite() && q.is_finite() { p - q } else { 0.0 };
    let error = Complex64::new(part(a.re, b.re), part(a.im, b.im)).norm();
    let size = b.norm();
    let (kind, error) = if allowed < 0.0 && size != 0.0 { ("Rel", error / size) } else { ("Abs", error) };
    let tolerance = allowed.abs();
    if error <= tolerance {
        return None;
    }
    let text = |x: f64, digits: usize| number::text(x, Notation::General(digits));
    let over = text(error - tolerance, 1);
    Some(format!("{kind} err {} exceeds tol {} by {over}", text(error, 5), text(tolerance, 5)))
}

/// Formats an element's place: `()`, `(3)` or `(2,3)`.
fn place(x: &Tensor, i: usize) -> String {
    match x.dims[..] {
        [1, 1] => "()".into(),
        [1, _] | [_, 1] => format!("({})", i + 1),
        _ => {
            let mut rest = i;
            let subscripts: Vec<String> = x
                .dims
                .iter()
                .map(|&extent| {
                    let at = rest % extent;
                    rest /= extent;
                    (at + 1).to_string()
                })
                .collect();
            format!("({})", subscripts.join(","))
        }
    }
}
