//! `jsonencode` and `jsondecode`.
//!
//! In: values, or a text. Out: the text, or the values in it. Lists of numbers, of truth values, of lists of one size,
//! and of objects with the same names become arrays; other lists become cells. Numbers have the fewest digits that read
//! back as the same number. Containers may be nested [`DEPTH_MAX`] deep.

use super::json_text::{Json, parse};
use crate::builtins::language::variables::KEYWORDS;
use crate::builtins::{Builtin, Outcome, row};
use crate::env::{DEPTH_MAX, Env};
use crate::error::{Flow, fail, fail_id};
use crate::value::map::Key;
use crate::value::{Data, Dims, StructArray, Tensor, Value};
use crate::vm::Interp;
use std::sync::Arc;

/// The functions.
pub static ROWS: &[Builtin] = &[
    row(
        "jsonencode",
        1,
        5,
        1,
        "jsonencode (x, \"ConvertInfAndNaN\", tf, \"PrettyPrint\", tf)",
        "A value as JSON.",
        encode,
    ),
    row(
        "jsondecode",
        1,
        7,
        1,
        "jsondecode (text, \"ReplacementStyle\", style, \"makeValidName\", tf)",
        "The value that a JSON text spells.",
        decode,
    ),
];

/// Writes values.
struct Writer<'e> {
    env: &'e Env,
    /// Whether numbers that are not finite become `null`.
    nulls: bool,
    /// Whether line ends and indentation are written.
    pretty: bool,
    out: Vec<u8>,
    depth: usize,
}

fn encode(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    let mut writer = Writer { env, nulls: true, pretty: false, out: Vec::new(), depth: 0 };
    if args.len().is_multiple_of(2) {
        return fail_id!("Octave:invalid-fun-call", "Invalid call to jsonencode");
    }
    for pair in args[1..].chunks(2) {
        let Some(name) = pair[0].as_text() else { return fail!("jsonencode: option argument must be a string") };
        let &Value::Bool(value) = &pair[1] else { return fail!("jsonencode: option value must be a logical scalar") };
        match name.to_lowercase().as_str() {
            "convertinfandnan" => writer.nulls = value,
            "prettyprint" => writer.pretty = value,
            _ => return fail!("jsonencode: Valid options are \"ConvertInfAndNaN\" and \"PrettyPrint\""),
        }
    }
    writer.value(&args[0])?;
    Ok(Value::string(writer.out).into())
}

impl Writer<'_> {
    fn text(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn line(&mut self) {
        if self.pretty {
            self.out.push(b'\n');
            let indentation = 4 * self.depth;
            self.out.resize(self.out.len() + indentation, b' ');
        }
    }

    /// Writes `n` items in brackets.
    fn list(&mut self, brackets: [u8; 2], n: usize, mut item: impl FnMut(&mut Self, usize) -> Flow<()>) -> Flow<()> {
        if self.depth == DEPTH_MAX {
            return fail!("jsonencode: values are nested more than {DEPTH_MAX} deep");
        }
        self.out.push(brackets[0]);
        self.depth += 1;
        for i in 0..n {
            if i > 0 {
                self.out.push(b',');
            }
            self.line();
            item(self, i)?;
        }
        self.depth -= 1;
        if n > 0 {
            self.line();
        }
        self.out.push(brackets[1]);
        Ok(())
    }

    fn value(&mut self, value: &Value) -> Flow<()> {
        match value {
            Value::Cell(cell) => self.list(*b"[]", cell.items.len(), |w, i| w.value(&cell.items[i])),
            Value::Struct(array) if array.len() == 1 => self.object(array, 0),
            Value::Struct(array) => self.list(*b"[]", array.len(), |w, i| w.object(array, i)),
            Value::Map(map) => {
                let entries = map.entries();
                self.list(*b"{}", entries.len(), |w, i| {
                    match &entries[i].0 {
                        Key::Text(bytes) => w.string(bytes),
                        Key::Number(x) => w.string(number(*x).as_bytes()),
                    }
                    w.member(&entries[i].1)
                })
            }
            Value::Function(_) | Value::Parser(_) | Value::Colon => fail!("jsonencode: unsupported type"),
            value => {
                let host = self.env.host(value)?;
                match host.data.is_complex() {
                    true => fail!("jsonencode: complex numbers are not supported"),
                    false => self.array(&host),
                }
            }
        }
    }

    fn member(&mut self, value: &Value) -> Flow<()> {
        self.text(if self.pretty { ": " } else { ":" });
        self.value(value)
    }

    fn object(&mut self, array: &StructArray, i: usize) -> Flow<()> {
        self.list(*b"{}", array.fields.len(), |w, field| match array.fields.get_index(field) {
            Some((name, values)) => {
                w.string(name.as_bytes());
                w.member(&values[i])
            }
            None => Ok(()),
        })
    }

    fn array(&mut self, host: &Tensor) -> Flow<()> {
        let dims = &host.dims;
        match host.len() {
            0 if host.data.chars().is_some() => self.text("\"\""),
            0 => self.text("[]"),
            1 => self.element(host, 0),
            _ if host.is_string() => self.string(host.data.chars().unwrap_or_default()),
            // This is a vector along either dimension.
            n if host.data.chars().is_none() && dims.iter().filter(|&&d| d != 1).count() == 1 && dims.len() == 2 => {
                return self.list(*b"[]", n, |w, i| {
                    w.element(host, i);
                    Ok(())
                });
            }
            _ => return self.slices(host, 0, 0, 1),
        }
        Ok(())
    }

    /// Writes the elements behind the subscripts before dimension `d`, which add up to the position `from`. A step
    /// along `d` is `stride`.
    fn slices(&mut self, host: &Tensor, d: usize, from: usize, stride: usize) -> Flow<()> {
        let dims = &host.dims;
        // Rows of text are written as strings, and the pages of each row as a list of strings.
        if let (Some(chars), 1) = (host.data.chars(), d) {
            return self.rows(host, chars, from, 2);
        }
        if d == dims.len() {
            self.element(host, from);
            return Ok(());
        }
        self.list(*b"[]", dims[d], |w, i| w.slices(host, d + 1, from + i * stride, stride * dims[d]))
    }

    fn rows(&mut self, host: &Tensor, chars: &[u8], from: usize, d: usize) -> Flow<()> {
        let dims = &host.dims;
        if d == dims.len() {
            let text: Vec<u8> = (0..dims[1]).map(|c| chars[from + c * dims[0]]).collect();
            self.string(&text);
            return Ok(());
        }
        let stride: usize = dims[..d].iter().product();
        self.list(*b"[]", dims[d], |w, i| w.rows(host, chars, from + i * stride, d + 1))
    }

    fn element(&mut self, host: &Tensor, i: usize) {
        let text = match &*host.data {
            Data::Bool(x) => x[i].to_string(),
            Data::Char(x) => return self.string(&x[i..=i]),
            Data::I64(x) => x[i].to_string(),
            Data::U64(x) => x[i].to_string(),
            Data::F32(x) if x[i].is_finite() && x[i].abs() < 1e9 && x[i].abs() > 1e-5 => format!("{}", x[i]),
            data => match data.f64_at(i) {
                x if x.is_finite() => number(x),
                _ if self.nulls => "null".into(),
                x if x.is_nan() => "NaN".into(),
                x if x > 0.0 => "Infinity".into(),
                _ => "-Infinity".into(),
            },
        };
        self.text(&text);
    }

    fn string(&mut self, bytes: &[u8]) {
        self.out.push(b'"');
        for &b in bytes {
            match b {
                b'"' => self.text("\\\""),
                b'\\' => self.text("\\\\"),
                b'\n' => self.text("\\n"),
                b'\r' => self.text("\\r"),
                b'\t' => self.text("\\t"),
                8 => self.text("\\b"),
                12 => self.text("\\f"),
                0..32 => self.text(&format!("\\u{b:04X}")),
                b => self.out.push(b),
            }
        }
        self.out.push(b'"');
    }
}

/// Writes a finite number with the fewest digits.
fn number(x: f64) -> String {
    match x {
        0.0 => "0".into(),
        x if x.abs() < 1e-5 || x.abs() >= 1e17 => format!("{x:e}"),
        x => format!("{x}"),
    }
}

/// The way in which names of objects become names of fields.
struct Names {
    /// Whether names are changed.
    change: bool,
    /// The replacement for a character that no field name has: `_`, nothing, or its code.
    style: Style,
    prefix: String,
}

#[derive(PartialEq)]
enum Style {
    Underscore,
    Delete,
    Hex,
}

fn decode(_: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    if args.len().is_multiple_of(2) {
        return fail_id!("Octave:invalid-fun-call", "Invalid call to jsondecode");
    }
    let mut names = Names { change: true, style: Style::Underscore, prefix: "x".into() };
    for pair in args[1..].chunks(2) {
        let Some(name) = pair[0].as_text() else { return fail!("jsondecode: option argument must be a string") };
        let word = || pair[1].as_text().map(|t| t.to_lowercase()).unwrap_or_default();
        match name.to_lowercase().as_str() {
            "makevalidname" => match &pair[1] {
                Value::Bool(on) => names.change = *on,
                _ => return fail!("jsondecode: 'makeValidName' value must be a bool"),
            },
            "replacementstyle" => {
                names.style = match word().as_str() {
                    "underscore" => Style::Underscore,
                    "delete" => Style::Delete,
                    "hex" => Style::Hex,
                    other => return fail!("jsondecode: invalid 'ReplacementStyle' value '{other}'"),
                }
            }
            "prefix" => names.prefix = pair[1].as_text().unwrap_or_default(),
            other => return fail!("jsondecode: unknown option '{other}'"),
        }
    }
    let bytes = match &args[0] {
        Value::Tensor(t) if t.data.chars().is_some() => match t.row_strings() {
            Some(rows) => rows.into_iter().next().unwrap_or_default(),
            None => return fail!("jsondecode: JSON_TXT must be a character string"),
        },
        _ => return fail!("jsondecode: JSON_TXT must be a character string"),
    };
    match parse(&bytes) {
        Ok(json) => Ok(names.value(json).into()),
        Err((at, why)) => fail!("jsondecode: parse error at offset {}: {why}.", at + 1),
    }
}

impl Names {
    fn value(&self, json: Json) -> Value {
        match json {
            Json::Null => Value::empty(),
            Json::Bool(x) => Value::Bool(x),
            Json::Number(x) => Value::Num(x),
            Json::Text(bytes) if bytes.is_empty() => Value::tensor(Tensor::new(Dims::zero(), Data::Char(Vec::new()))),
            Json::Text(bytes) => Value::string(bytes),
            Json::Object(members) => {
                let mut out = StructArray::scalar();
                members.into_iter().for_each(|(name, item)| out.set(self.field(&name), self.value(item)));
                Value::Struct(Arc::new(out))
            }
            Json::List(items) => self.list(items),
        }
    }

    fn list(&self, items: Vec<Json>) -> Value {
        let all = |test: fn(&Json) -> bool| items.iter().all(test);
        if items.is_empty() {
            return Value::empty();
        }
        if all(|j| matches!(j, Json::Number(_) | Json::Null)) {
            let number = |j: &Json| if let Json::Number(x) = j { *x } else { f64::NAN };
            return Value::column(items.iter().map(number).collect());
        }
        if all(|j| matches!(j, Json::Bool(_))) {
            let data = items.iter().map(|j| matches!(j, Json::Bool(true))).collect();
            return Value::tensor(Tensor::new(Dims::new(&[items.len(), 1]), Data::Bool(data)));
        }
        let alike = all(|j| matches!(j, Json::Object(_))) || all(|j| matches!(j, Json::List(_)));
        let values: Vec<Value> = items.into_iter().map(|item| self.value(item)).collect();
        let joined = if alike { joined_arrays(&values).or_else(|| joined_structs(&values)) } else { None };
        joined.unwrap_or_else(|| Value::cell(Dims::new(&[values.len(), 1]), values))
    }

    /// Returns a valid field name for a name.
    fn field(&self, name: &[u8]) -> String {
        let name = String::from_utf8_lossy(name).into_owned();
        if !self.change {
            return name;
        }
        let mut out = String::new();
        let mut raise = false;
        for letter in name.chars() {
            if letter.is_ascii_whitespace() {
                raise = true;
            } else if letter.is_ascii_alphanumeric() || letter == '_' {
                out.push(if raise && !out.is_empty() { letter.to_ascii_uppercase() } else { letter });
                raise = false;
            } else {
                match self.style {
                    Style::Underscore => letter.to_string().bytes().for_each(|_| out.push('_')),
                    Style::Delete => {}
                    Style::Hex => letter.to_string().bytes().for_each(|b| out.push_str(&format!("0x{b:02X}"))),
                }
                raise = false;
            }
        }
        if KEYWORDS.contains(&out.as_str()) {
            out = format!("{}{}", out[..1].to_uppercase(), &out[1..]);
            return format!("{}{out}", self.prefix);
        }
        match out.chars().next() {
            Some(first) if first.is_ascii_alphabetic() || first == '_' => out,
            _ => format!("{}{out}", self.prefix),
        }
    }
}

/// Returns the dimensions of `n` arrays with these dimensions that are stacked along a new first dimension.
fn stacked(n: usize, dims: &Dims) -> Dims {
    let inner = if dims.len() == 2 && dims[1] == 1 { &dims[..1] } else { &dims[..] };
    let mut all = vec![n];
    all.extend_from_slice(inner);
    Dims::new(&all)
}

/// Joins arrays of numbers or truth values of one size to one array; `None` for others.
fn joined_arrays(values: &[Value]) -> Option<Value> {
    let first = &values[0];
    let (dims, is_bool) = (first.dims(), matches!(first.class(), crate::value::Class::Logical));
    let fits = |v: &Value| {
        let class = v.class();
        let same = if is_bool { class == first.class() } else { class == crate::value::Class::Double };
        same && v.dims() == dims && !v.is_empty()
    };
    if !values.iter().all(fits) {
        return None;
    }
    let (n, each) = (values.len(), dims.elements());
    let at = |v: &Value, i: usize| match v {
        Value::Num(x) => *x,
        Value::Bool(x) => *x as u8 as f64,
        Value::Tensor(t) => t.data.f64_at(i),
        _ => 0.0,
    };
    let data: Vec<f64> = (0..each).flat_map(|i| values.iter().map(move |v| at(v, i))).collect();
    let data = if is_bool { Data::Bool(data.iter().map(|&x| x != 0.0).collect()) } else { Data::F64(data) };
    Some(Value::tensor(Tensor::new(stacked(n, &dims), data)))
}

/// Joins struct arrays of one size with the same fields to one; `None` for others.
fn joined_structs(values: &[Value]) -> Option<Value> {
    let arrays: Vec<&StructArray> =
        values.iter().map(|v| if let Value::Struct(s) = v { Some(&**s) } else { None }).collect::<Option<_>>()?;
    let first = arrays[0];
    if !arrays.iter().all(|a| a.dims == first.dims && a.fields.keys().eq(first.fields.keys())) {
        return None;
    }
    let mut out = StructArray::empty(stacked(values.len(), &first.dims));
    for name in first.fields.keys() {
        let items = (0..first.len()).flat_map(|i| arrays.iter().map(move |a| a.fields[name][i].clone()));
        out.fields.insert(name.clone(), items.collect());
    }
    Some(Value::Struct(Arc::new(out)))
}
