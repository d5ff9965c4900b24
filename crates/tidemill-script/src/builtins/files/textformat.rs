//! Octave's text format for variables (`save -text`): writes values as lines, and reads them back.
//!
//! In: named values in host memory; the bytes of a file. Out: text; named values. A variable has the lines `# name:`,
//! `# type:`, those that the type needs (`# rows:`, `# ndims:`, `# length:`), and its elements: matrices row by row,
//! other arrays one element a line in column-major order. Must hold: nothing is allocated beyond what the bytes can
//! fill, except for ranges, for which memory is checked; nesting is bounded.

use crate::builtins::calls::functions::handle_with;
use crate::builtins::text::chars::filled_up;
use crate::display::number::{self, Notation};
use crate::env::DEPTH_MAX;
use crate::memory;
use crate::value::{CellArray, Class, Data, Dims, Form, Function, StructArray, Tensor, Value};
use indexmap::IndexMap;
use num_complex::{Complex32, Complex64};
use std::fmt::Write as _;
use std::sync::Arc;

type Named = Vec<(String, Value)>;

/// The name of the items of a cell array.
const ITEM: &str = "<cell-element>";

/// Whether the bytes begin like a text of variables.
pub fn is_text(bytes: &[u8]) -> bool {
    let lines = bytes.split(|&b| b == b'\n').map(|line| line.trim_ascii());
    let mut lines = lines.skip_while(|line| line.is_empty() || is_comment(line) && keyword(line, "name").is_none());
    lines.next().is_some_and(|line| keyword(line, "name").is_some())
}

fn is_comment(line: &[u8]) -> bool {
    matches!(line.first(), Some(b'#' | b'%'))
}

/// Returns the text behind `# name:`.
fn keyword<'l>(line: &'l [u8], name: &str) -> Option<&'l str> {
    let rest = line.strip_prefix(b"#").or_else(|| line.strip_prefix(b"%"))?.trim_ascii_start();
    let rest = rest.strip_prefix(name.as_bytes())?.strip_prefix(b":")?;
    std::str::from_utf8(rest).ok().map(str::trim)
}

/// Returns the text of variables.
///
/// # Errors
/// Values that the format cannot hold, by name.
pub fn write(variables: &[(String, Value)]) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    for (name, value) in variables {
        named(&mut out, name, value, 0).map_err(|what| format!("{name}: {what}"))?;
    }
    Ok(out)
}

fn line(out: &mut Vec<u8>, text: impl AsRef<[u8]>) {
    out.extend_from_slice(text.as_ref());
    out.push(b'\n');
}

fn named(out: &mut Vec<u8>, name: &str, value: &Value, depth: usize) -> Result<(), String> {
    // The depth counts containers, and values that handles have captured.
    if depth > DEPTH_MAX {
        return Err(format!("values are nested deeper than {DEPTH_MAX} levels"));
    }
    line(out, format!("# name: {name}"));
    match value {
        Value::Num(_) | Value::Bool(_) => {
            let (kind, text) = match value {
                Value::Bool(b) => ("bool", (*b as u8).to_string()),
                Value::Num(x) => ("scalar", real(*x)),
                _ => Default::default(),
            };
            line(out, format!("# type: {kind}\n{text}"));
        }
        Value::Tensor(t) => array(out, t),
        // A handle has captured this array.
        Value::Lazy(l) => match l.host.get() {
            Some(t) => array(out, t),
            None => return Err(format!("{} objects are not saved", value.class_name())),
        },
        Value::Cell(c) => {
            line(out, "# type: cell");
            cell(out, &c.dims, &c.items, depth)?;
        }
        Value::Struct(s) if s.class.is_none() => {
            let scalar = s.len() == 1;
            line(out, format!("# type: {}", if scalar { "scalar struct" } else { "struct" }));
            extents(out, &s.dims);
            line(out, format!("# length: {}", s.fields.len()));
            for (field, values) in &s.fields {
                match scalar {
                    true => named(out, field, &values[0], depth + 1)?,
                    false => {
                        line(out, format!("# name: {field}\n# type: cell"));
                        cell(out, &s.dims, values, depth)?;
                        out.extend_from_slice(b"\n\n");
                    }
                }
            }
        }
        Value::Function(f) => {
            line(out, "# type: function handle");
            match &**f {
                Function::Anonymous(closure) if closure.name().is_none() => {
                    line(out, format!("@<anonymous>\n{}", f.text()));
                    if !closure.captured.is_empty() {
                        line(out, format!("# length: {}", closure.captured.len()));
                    }
                    for (slot, value) in &closure.captured {
                        named(out, &closure.code.names[*slot as usize], value, depth + 1)?;
                    }
                }
                _ => line(out, f.text()),
            }
        }
        other => return Err(format!("{} objects are not saved", other.class_name())),
    }
    out.extend_from_slice(b"\n\n");
    Ok(())
}

fn cell(out: &mut Vec<u8>, dims: &Dims, items: &[Value], depth: usize) -> Result<(), String> {
    if dims.len() > 2 {
        extents(out, dims);
        return items.iter().try_for_each(|item| named(out, ITEM, item, depth + 1));
    }
    line(out, format!("# rows: {}\n# columns: {}", dims.rows(), dims.columns()));
    for column in items.chunks(dims.rows().max(1)) {
        column.iter().try_for_each(|item| named(out, ITEM, item, depth + 1))?;
        out.push(b'\n');
    }
    Ok(())
}

fn extents(out: &mut Vec<u8>, dims: &Dims) {
    let extents = dims.iter().fold(String::new(), |text, n| text + " " + &n.to_string());
    line(out, format!("# ndims: {}\n{extents}", dims.len()));
}

fn real(x: f64) -> String {
    number::text(x, Notation::General(17))
}

fn array(out: &mut Vec<u8>, t: &Tensor) {
    if let Data::Char(bytes) = &*t.data {
        return text(out, t, bytes);
    }
    let prefix = match t.data.class() {
        Class::Single => "float ",
        _ => "",
    };
    let element = |i: usize| match &*t.data {
        Data::F64(_) | Data::F32(_) => real(t.data.f64_at(i)),
        Data::C64(_) | Data::C32(_) => {
            let z = t.data.c64_at(i);
            format!("({},{})", real(z.re), real(z.im))
        }
        Data::I64(v) => v[i].to_string(),
        Data::U64(v) => v[i].to_string(),
        other => other.f64_at(i).to_string(),
    };
    let class = t.data.class();
    let whole = class.is_integer();
    let kind = match class {
        Class::Logical => "bool".into(),
        _ if whole => class.name().to_string(),
        _ if t.data.is_complex() => format!("{prefix}complex"),
        _ => prefix.trim_end().to_string(),
    };
    let kind = |shape: &str| format!("# type: {kind}{}{shape}", if kind.is_empty() { "" } else { " " });
    if t.len() == 1 && t.dims.len() == 2 {
        return line(out, format!("{}\n{}", kind("scalar"), element(0)));
    }
    if let (Form::Range { limit }, Data::F64(v)) = (t.form, &*t.data)
        && v.len() > 1
    {
        let numbers = format!("{} {} {}", real(v[0]), real(limit), real(v[1] - v[0]));
        return line(out, format!("# type: double_range\n# base, limit, increment\n{numbers}"));
    }
    let (rows, columns) = (t.dims.rows(), t.dims.columns());
    if t.form == Form::Diagonal && !t.data.is_complex() {
        line(out, format!("{}\n# rows: {rows}\n# columns: {columns}", kind("diagonal matrix")));
        return (0..rows.min(columns)).for_each(|i| line(out, element(i * rows + i)));
    }
    line(out, kind("matrix"));
    if whole || t.dims.len() > 2 {
        extents(out, &t.dims);
        return (0..t.len()).for_each(|i| line(out, format!(" {}", element(i))));
    }
    line(out, format!("# rows: {rows}\n# columns: {columns}"));
    for r in 0..rows {
        let mut text = String::new();
        for c in 0..columns {
            let _ = write!(text, " {}", element(c * rows + r));
        }
        line(out, text);
    }
}

fn text(out: &mut Vec<u8>, t: &Tensor, bytes: &[u8]) {
    line(out, format!("# type: {}", if t.double_quoted { "string" } else { "sq_string" }));
    if t.dims.len() > 2 {
        extents(out, &t.dims);
        return line(out, bytes);
    }
    line(out, format!("# elements: {}", t.dims.rows()));
    for row in t.row_strings().unwrap_or_default() {
        line(out, format!("# length: {}", row.len()));
        line(out, row);
    }
}

/// Reads the variables of a text.
///
/// # Errors
/// A description of the part that is missing or unreadable.
pub fn read(bytes: &[u8]) -> Result<Named, String> {
    let mut reader = Reader { bytes, at: 0, depth: 0 };
    let mut variables = Vec::new();
    while let Some(name) = reader.find("name") {
        let name = name.to_string();
        let value = reader.value().map_err(|what| format!("{name}: {what}"))?;
        variables.push((name, value));
    }
    Ok(variables)
}

struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
    depth: usize,
}

impl<'b> Reader<'b> {
    fn line(&mut self) -> Option<&'b [u8]> {
        let rest = self.bytes.get(self.at..).filter(|rest| !rest.is_empty())?;
        let end = rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
        self.at += end + 1;
        Some(rest[..end].trim_ascii())
    }

    /// Returns the text behind `# key:` on one of the next lines.
    fn find(&mut self, key: &str) -> Option<&'b str> {
        while let Some(line) = self.line() {
            if let Some(value) = keyword(line, key) {
                return Some(value);
            }
        }
        None
    }

    /// Does the same for the next line that is not blank. If it has another key, nothing is read.
    fn next(&mut self, key: &str) -> Option<&'b str> {
        let before = self.at;
        while let Some(line) = self.line() {
            if !line.is_empty() {
                if let Some(value) = keyword(line, key) {
                    return Some(value);
                }
                break;
            }
        }
        self.at = before;
        None
    }

    fn count(&mut self, key: &str) -> Result<usize, String> {
        let found = self.next(key).ok_or_else(|| format!("'# {key}:' is missing"))?;
        found.parse().map_err(|_| format!("'# {key}: {found}' is no number"))
    }

    fn word(&mut self) -> Result<&'b str, String> {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        self.at += end;
        match std::str::from_utf8(&rest[..end]) {
            Ok(word) if !word.is_empty() => Ok(word),
            _ => Err("an element is missing".into()),
        }
    }

    fn words(&mut self, n: usize) -> Result<Vec<&'b str>, String> {
        // An element takes at least one byte.
        if n > self.bytes.len() - self.at.min(self.bytes.len()) {
            return Err(format!("{n} elements are announced, which the file is too short for"));
        }
        (0..n).map(|_| self.word()).collect()
    }

    fn value(&mut self) -> Result<Value, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("values are nested deeper than {DEPTH_MAX} levels"));
        }
        let kind = self.find("type").ok_or("'# type:' is missing")?;
        let value = self.of_kind(kind.strip_prefix("global ").unwrap_or(kind));
        self.depth -= 1;
        value
    }

    fn of_kind(&mut self, kind: &str) -> Result<Value, String> {
        Ok(match kind {
            "cell" => {
                let dims = self.extents()?.0;
                Value::Cell(Arc::new(CellArray::new(dims.clone(), self.items(dims.elements())?)))
            }
            "scalar struct" | "struct" => self.structure(kind == "struct")?,
            "string" | "null_string" => self.text(true)?,
            "sq_string" | "null_sq_string" => self.text(false)?,
            "null_matrix" => self.array("matrix")?,
            "permutation matrix" => self.permutation()?,
            "double_range" | "range" => self.range()?,
            "function handle" => self.function()?,
            "bool" => Value::Bool(self.word()? != "0"),
            _ => self.array(kind)?,
        })
    }

    /// Reads the extents, and whether elements are in row-major order.
    fn extents(&mut self) -> Result<(Dims, bool), String> {
        if let Some(n) = self.next("ndims") {
            let n = n.parse().map_err(|_| format!("'# ndims: {n}' is no number"))?;
            let extents = self.words(n)?.into_iter().map(|w| w.parse().map_err(|_| format!("'{w}' is no extent")));
            let extents = extents.collect::<Result<Vec<usize>, String>>()?;
            self.line();
            return Ok((self.bounded(Dims::new(&extents))?, false));
        }
        let (rows, columns) = (self.count("rows")?, self.count("columns")?);
        Ok((self.bounded(Dims::new(&[rows, columns]))?, true))
    }

    fn bounded(&self, dims: Dims) -> Result<Dims, String> {
        let product = dims.iter().try_fold(1usize, |n, &extent| n.checked_mul(extent));
        match product {
            Some(n) if n <= self.bytes.len() => Ok(dims),
            _ => Err(format!("{dims} elements are announced, which the file is too short for")),
        }
    }

    fn items(&mut self, n: usize) -> Result<Vec<Value>, String> {
        (0..n)
            .map(|_| match self.next("name") {
                Some(_) => self.value(),
                None => Err("an item is missing".into()),
            })
            .collect()
    }

    fn structure(&mut self, is_array: bool) -> Result<Value, String> {
        let dims = self.extents()?.0;
        let mut fields: IndexMap<Arc<str>, Vec<Value>> = IndexMap::new();
        for _ in 0..self.count("length")? {
            let name: Arc<str> = self.next("name").ok_or("a field is missing")?.into();
            let values = match (is_array, self.value()?) {
                (true, Value::Cell(cell)) => cell.items.clone(),
                (_, value) => vec![value],
            };
            if values.len() != dims.elements() {
                return Err(format!("field '{name}' has {} values", values.len()));
            }
            fields.insert(name, values);
        }
        Ok(Value::Struct(Arc::new(StructArray { dims, fields, class: None, cleanup: None })))
    }

    fn text(&mut self, double_quoted: bool) -> Result<Value, String> {
        let text = match self.next("elements") {
            Some("0") => Tensor::new(Dims::zero(), Data::Char(Vec::new())),
            Some(n) => {
                let n: usize = n.parse().map_err(|_| format!("'# elements: {n}' is no number"))?;
                let mut rows = Vec::new();
                for _ in 0..n {
                    let length = self.count("length")?;
                    rows.push(self.taken(length)?);
                    self.line();
                }
                filled_up(&rows, b' ')
            }
            None => {
                let dims = self.extents()?.0;
                let bytes = self.taken(dims.elements())?.to_vec();
                Tensor::new(dims, Data::Char(bytes))
            }
        };
        Ok(Value::tensor(Tensor { double_quoted, ..text }))
    }

    fn taken(&mut self, n: usize) -> Result<&'b [u8], String> {
        let end = self.at.checked_add(n).filter(|&end| end <= self.bytes.len()).ok_or("the text is cut off")?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn range(&mut self) -> Result<Value, String> {
        self.line();
        let [base, limit, step] = [self.word()?, self.word()?, self.word()?].map(number_of);
        let (base, limit, step) = (base?, limit?, step?);
        let n = ((limit - base) / step * (1.0 + f64::EPSILON)).floor() + 1.0;
        if !(n >= 0.0 && n < (1u64 << 32) as f64) {
            return Err("the range has no end".into());
        }
        if !memory::holds(n as usize * size_of::<f64>()) {
            return Err("no memory holds the range".into());
        }
        let data = (0..n as usize).map(|i| base + i as f64 * step).collect();
        let tensor = Tensor::new(Dims::new(&[1, n as usize]), Data::F64(data));
        Ok(Value::tensor(Tensor { form: Form::Range { limit }, ..tensor }))
    }

    fn function(&mut self) -> Result<Value, String> {
        while self.next("octaveroot").is_some() || self.next("subtype").is_some() || self.next("path").is_some() {}
        let name = self.line().and_then(|l| std::str::from_utf8(l).ok()).ok_or("a function is missing")?;
        if name != "@<anonymous>" {
            return Ok(Value::Function(Arc::new(Function::Named(name.trim_start_matches('@').into(), None))));
        }
        let text = self.line().and_then(|l| std::str::from_utf8(l).ok()).ok_or("a function is missing")?;
        let count = self.next("length").map_or(Ok(0), str::parse).map_err(|_| "'# length:' is no number")?;
        let mut captured = Vec::new();
        for _ in 0..count {
            let name = self.next("name").ok_or("a variable of a function is missing")?.to_string();
            captured.push((name, self.value()?));
        }
        match handle_with(text, captured) {
            Ok(function) => Ok(Value::Function(function)),
            Err(_) => Err(format!("'{text}' is no function")),
        }
    }

    fn permutation(&mut self) -> Result<Value, String> {
        let n = self.count("size")?;
        self.bounded(Dims::new(&[n, 1]))?;
        let by_column = self.find("orient").is_none_or(|orient| orient != "r");
        if !memory::holds(n.saturating_mul(n).saturating_mul(size_of::<f64>())) {
            return Err("no memory holds the permutation matrix".into());
        }
        let mut data = vec![0.0; n * n];
        for (k, word) in self.words(n)?.into_iter().enumerate() {
            match word.parse::<usize>() {
                Ok(at) if (1..=n).contains(&at) && by_column => data[k * n + at - 1] = 1.0,
                Ok(at) if (1..=n).contains(&at) => data[(at - 1) * n + k] = 1.0,
                _ => return Err(format!("'{word}' is no place in a permutation of {n}")),
            }
        }
        Ok(Value::tensor_as_is(Tensor::new(Dims::new(&[n, n]), Data::F64(data))).permutation())
    }

    fn array(&mut self, kind: &str) -> Result<Value, String> {
        let unknown = || format!("values of type '{kind}' are not read");
        let (shape, class) = [" matrix", " scalar"]
            .iter()
            .find_map(|shape| kind.strip_suffix(shape).map(|class| (*shape, class)))
            .or_else(|| ["matrix", "scalar"].into_iter().find(|s| *s == kind).map(|s| (s, "")))
            .ok_or_else(unknown)?;
        let (class, diagonal) = match class.strip_suffix("diagonal") {
            Some(class) => (class.trim_end(), true),
            None => (class, false),
        };
        let (dims, by_rows) = match shape.trim_start() {
            "scalar" => (Dims::scalar(), false),
            _ => self.extents()?,
        };
        let (rows, columns) = (dims.rows(), dims.columns());
        let words = self.words(if diagonal { rows.min(columns) } else { dims.elements() })?;
        let place = |k: usize| match (diagonal, by_rows) {
            (true, _) => k * rows + k,
            (false, true) => k / columns + k % columns * rows,
            (false, false) => k,
        };
        let mut ordered = vec!["0"; dims.elements()];
        words.into_iter().enumerate().for_each(|(k, word)| ordered[place(k)] = word);
        let data = data_of(class, &ordered).ok_or_else(unknown)??;
        let value = Value::tensor_as_is(Tensor::new(dims, data));
        Ok(if diagonal { value.diagonal() } else { value })
    }
}

fn number_of(word: &str) -> Result<f64, String> {
    Ok(match word {
        "Inf" => f64::INFINITY,
        "-Inf" => f64::NEG_INFINITY,
        "NaN" => f64::NAN,
        "NA" => number::MISSING,
        word => word.parse().map_err(|_| format!("'{word}' is no number"))?,
    })
}

fn complex_of(word: &str) -> Result<Complex64, String> {
    let parts = word.strip_prefix('(').and_then(|w| w.strip_suffix(')')).and_then(|w| w.split_once(','));
    let (re, im) = parts.ok_or_else(|| format!("'{word}' is no complex number"))?;
    Ok(Complex64::new(number_of(re)?, number_of(im)?))
}

/// Reads elements of a class that the format has; `None` for other classes.
fn data_of(class: &str, words: &[&str]) -> Option<Result<Data, String>> {
    fn all<T>(words: &[&str], one: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
        words.iter().map(|word| one(word)).collect()
    }
    fn whole<T: std::str::FromStr>(words: &[&str]) -> Result<Vec<T>, String> {
        all(words, |word| word.parse().map_err(|_| format!("'{word}' is no integer of its class")))
    }
    Some(match class {
        "" => all(words, number_of).map(Data::F64),
        "float" => all(words, |w| Ok(number_of(w)? as f32)).map(Data::F32),
        "complex" => all(words, complex_of).map(Data::C64),
        "float complex" => {
            all(words, |w| complex_of(w).map(|z| Complex32::new(z.re as f32, z.im as f32))).map(Data::C32)
        }
        "bool" => all(words, |w| Ok(w != "0")).map(Data::Bool),
        "int8" => whole(words).map(Data::I8),
        "int16" => whole(words).map(Data::I16),
        "int32" => whole(words).map(Data::I32),
        "int64" => whole(words).map(Data::I64),
        "uint8" => whole(words).map(Data::U8),
        "uint16" => whole(words).map(Data::U16),
        "uint32" => whole(words).map(Data::U32),
        "uint64" => whole(words).map(Data::U64),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let text = Value::string("two\nlines");
        let cell = Value::cell(Dims::new(&[1, 2]), vec![text, Value::Bool(true)]);
        let range =
            Tensor { form: Form::Range { limit: 5.5 }, ..Tensor::new(Dims::new(&[1, 5]), Data::F64(vec![1.0; 5])) };
        let mut fields = StructArray::scalar();
        fields.set("wide", Value::tensor(Tensor::new(Dims::new(&[1, 2]), Data::I64(vec![i64::MAX, -1]))));
        fields.set("inside", cell);
        fields.set("none", Value::tensor(Tensor::zeros(Class::Double, Dims::new(&[0, 3]))));
        let variables = vec![
            ("s".to_string(), Value::Struct(Arc::new(fields))),
            ("r".to_string(), Value::Tensor(Arc::new(Tensor { form: Form::Full, ..range }))),
            ("x".to_string(), Value::Num(-0.0)),
        ];
        let written = write(&variables).unwrap();
        assert!(is_text(&written));
        let again = read(&written).unwrap();
        assert_eq!(format!("{again:?}"), format!("{variables:?}"));
    }

    #[test]
    fn what_is_cut_off_or_boasts_is_an_error_and_takes_no_memory() {
        for text in [
            "# name: x\n",
            "# name: x\n# type: matrix\n# rows: 99999999999\n# columns: 99999999999\n",
            "# name: x\n# type: matrix\n# rows: 2\n# columns: 2\n 1 2\n",
            "# name: x\n# type: cell\n# rows: 1\n# columns: 1\n",
            "# name: x\n# type: string\n# elements: 1\n# length: 50\nab\n",
            "# name: x\n# type: int8 scalar\n300\n",
            "# name: x\n# type: sparse matrix\n",
            "# name: x\n# type: double_range\n# base, limit, increment\n0 1 0\n",
            "# name: x\n# type: double_range\n# base, limit, increment\n0 1e15 1\n",
            "# name: f\n# type: function handle\n@<anonymous>\n@(x\n",
        ] {
            assert!(read(text.as_bytes()).is_err(), "{text}");
        }
        let deep = "# type: cell\n# rows: 1\n# columns: 1\n# name: <cell-element>\n".repeat(100_000);
        assert!(read(format!("# name: x\n{deep}").as_bytes()).is_err());
    }
}
