//! Shows values with their names, and values inside of values: decides the indentation and the blank lines.
//!
//! A value that fits on a line is shown behind `name = `. A block stands under `name =` and a blank line, and a blank
//! line follows it. Values inside a cell or a struct follow the same rules, indented by two or four places more. Rows
//! of text and the bodies of anonymous functions are never indented. For a struct inside two structs, only the sizes
//! and kinds of its fields are shown. `format compact` leaves out the blank lines, except those after values at the top
//! level.

use super::Format;
use super::layout::Precision;
use super::page;
use crate::value::{CellArray, Class, Data, Dims, Form, Function, Map, Parser, StructArray, Tensor, Value};
use std::borrow::Cow;
use std::sync::Arc;

/// How many levels of structs inside structs are shown.
const STRUCT_LEVELS: usize = 2;

/// The most bytes that the contents of cells and structs may take. A cell that holds another cell twice, which holds
/// another cell twice, and so on, is quickly made, and its display would be endless.
pub(super) const NESTED_BYTES_MAX: usize = 1 << 28;

/// Collects the output, and tracks the present indentation.
pub(super) struct Printer {
    /// The output so far.
    pub(super) out: Vec<u8>,
    /// How numbers are shown.
    pub(super) format: Format,
    indent: usize,
    depth: usize,
    struct_levels: usize,
    /// Whether a part of the contents of cells and structs was left out.
    pub(super) is_cut: bool,
}

impl Printer {
    pub(super) fn new(format: Format) -> Printer {
        Printer { out: Vec::new(), format, indent: 0, depth: 0, struct_levels: STRUCT_LEVELS, is_cut: false }
    }

    pub(super) fn precision(&self, single: bool) -> Precision {
        Precision::new(&self.format, single)
    }

    /// Returns the number of blanks at the beginning of a line.
    pub(super) fn indent(&self) -> usize {
        self.indent
    }

    /// Writes the blanks at the beginning of a line.
    pub(super) fn indent_line(&mut self) {
        self.out.extend(std::iter::repeat_n(b' ', self.indent));
    }

    /// Writes a blank line, unless the format is compact.
    pub(super) fn loose_line(&mut self) {
        if !self.format.compact {
            self.out.push(b'\n');
        }
    }

    /// Writes the blank line after a block. At the top level it is written in the compact format, too.
    fn closing_line(&mut self) {
        if self.depth == 0 || !self.format.compact {
            self.out.push(b'\n');
        }
    }

    fn line(&mut self, text: impl AsRef<[u8]>) {
        self.indent_line();
        self.out.extend_from_slice(text.as_ref());
        self.out.push(b'\n');
    }

    fn inside(&mut self, by: usize, write: impl FnOnce(&mut Printer)) {
        self.indent += by;
        self.depth += 1;
        write(self);
        self.depth -= 1;
        self.indent -= by;
    }

    /// Writes `name = value`, or `name =` and a block.
    pub(super) fn named(&mut self, name: &str, value: &Value) {
        self.is_cut |= self.depth > 0 && self.out.len() > NESTED_BYTES_MAX;
        if self.is_cut {
            return;
        }
        match value {
            Value::Cell(cell) => self.named_cell(name, cell),
            Value::Struct(structure) => match &structure.cleanup {
                Some(cleanup) => self.named_text(name, &cleanup_text(&cleanup.duty.function)),
                None => self.named_struct(name, structure),
            },
            Value::Function(function) => self.named_function(name, function),
            Value::Map(map) => self.named_map(name, map),
            Value::Parser(parser) => self.named_parser(name, parser),
            Value::Colon => self.line(format!("{name} = :")),
            array if array.is_dlarray() => {
                self.line(format!("{name} ="));
                self.loose_line();
                self.dlarray(array);
                self.closing_line();
            }
            array => {
                if let Some(tensor) = host(array) {
                    self.named_tensor(name, &tensor);
                }
            }
        }
    }

    /// Writes the value as `disp` does.
    pub(super) fn bare(&mut self, value: &Value) {
        match value {
            Value::Cell(cell) => match cell.items.is_empty() || cell.dims.len() > 2 {
                true => self.line(cell_summary(cell)),
                false => self.cell_body(cell),
            },
            Value::Struct(structure) => match &structure.cleanup {
                Some(cleanup) => self.line(cleanup_text(&cleanup.duty.function)),
                None if structure.len() == 1 => self.inside(4, |p| p.fields(structure)),
                None => self.inside(2, |p| p.field_names(structure)),
            },
            Value::Function(function) => self.line(handle_text(function)),
            Value::Map(map) => self.map_properties(map),
            Value::Parser(parser) => self.parser_properties(parser),
            Value::Colon => self.line(":"),
            array if array.is_dlarray() => self.dlarray(array),
            array => {
                if let Some(tensor) = host(array) {
                    match one_line(self, &tensor) {
                        Some(text) => self.line(text),
                        None => page::block(self, &tensor),
                    }
                }
            }
        }
    }

    /// Writes the size of a dlarray and the elements in it.
    fn dlarray(&mut self, value: &Value) {
        let Some(tensor) = host(value) else { return };
        self.line(format!("  {} dlarray", tensor.dims));
        self.loose_line();
        match one_line(self, &tensor) {
            Some(text) => {
                self.indent_line();
                self.out.extend_from_slice(b"   ");
                self.out.extend_from_slice(&text);
                self.out.push(b'\n');
            }
            None => page::block(self, &tensor),
        }
    }

    fn named_tensor(&mut self, name: &str, tensor: &Tensor) {
        if let Some(text) = one_line(self, tensor) {
            self.indent_line();
            self.out.extend_from_slice(format!("{name} = ").as_bytes());
            self.out.extend_from_slice(&text);
            self.out.push(b'\n');
            return;
        }
        if tensor.dims.len() > 2 && tensor.dims.rows() == 1 && matches!(*tensor.data, Data::Char(_)) {
            self.indent_line();
            self.out.extend_from_slice(format!("{name} = ").as_bytes());
            return page::block(self, tensor);
        }
        self.line(format!("{name} ="));
        self.loose_line();
        page::block(self, tensor);
        self.closing_line();
    }

    fn named_cell(&mut self, name: &str, cell: &CellArray) {
        if cell.items.is_empty() || cell.dims.len() > 2 {
            return self.line(format!("{name} = {}", cell_summary(cell)));
        }
        self.line(format!("{name} ="));
        self.cell_body(cell);
        self.closing_line();
    }

    fn cell_body(&mut self, cell: &CellArray) {
        self.line("{");
        self.inside(2, |p| {
            let rows = cell.dims.rows();
            for (i, item) in cell.items.iter().enumerate() {
                p.named(&format!("[{},{}]", i % rows + 1, i / rows + 1), item);
            }
        });
        self.line("}");
    }

    fn named_struct(&mut self, name: &str, structure: &StructArray) {
        self.line(format!("{name} ="));
        self.loose_line();
        if structure.len() == 1 {
            self.inside(2, |p| {
                p.line("scalar structure containing the fields:");
                p.loose_line();
                p.inside(2, |p| p.fields(structure));
            });
        } else {
            self.inside(2, |p| p.field_names(structure));
        }
        self.closing_line();
    }

    fn fields(&mut self, structure: &StructArray) {
        let shown = self.struct_levels > 0;
        self.struct_levels = self.struct_levels.saturating_sub(1);
        for (field, values) in &structure.fields {
            let Some(value) = values.first() else { continue };
            if shown {
                self.named(field, value);
            } else {
                self.line(format!("{field}: {} {}", value.dims(), kind(value)));
            }
        }
        if shown {
            self.struct_levels += 1;
        }
    }

    fn field_names(&mut self, structure: &StructArray) {
        self.line(format!("{} struct array containing the fields:", structure.dims));
        self.loose_line();
        self.inside(2, |p| {
            for field in structure.fields.keys() {
                p.line(field.as_bytes());
            }
        });
    }

    fn named_map(&mut self, name: &str, map: &Map) {
        self.line(format!("{name} ="));
        self.loose_line();
        if self.depth == 0 {
            self.map_properties(map);
            self.loose_line();
        } else {
            // Inside of other values, an object is shown by its parts.
            self.inside(2, |p| {
                p.line("containers.Map object with properties:");
                p.loose_line();
                let numeric = if map.has_texts() { "0" } else { "1" };
                let parts = [
                    ("Count", "[1x1 uint64]"),
                    ("KeyType", map.key_class.name()),
                    ("ValueType", map.values.name()),
                    ("map", "[1x1 struct]"),
                    ("numeric_keys", numeric),
                ];
                for (part, shown) in parts {
                    p.line(format!("{part:>16}: {shown}"));
                }
            });
            self.loose_line();
        }
    }

    fn map_properties(&mut self, map: &Map) {
        self.inside(2, |p| p.line("containers.Map object with properties:"));
        self.loose_line();
        self.inside(4, |p| {
            p.line(format!("Count     : {}", map.len()));
            p.line(format!("KeyType   : {}", map.key_class.name()));
            p.line(format!("ValueType : {}", map.values.name()));
        });
        self.loose_line();
    }

    fn named_parser(&mut self, name: &str, parser: &Parser) {
        self.line(format!("{name} ="));
        self.loose_line();
        if self.depth == 0 {
            self.parser_properties(parser);
            return self.loose_line();
        }
        self.inside(2, |p| {
            p.line("inputParser object with properties:");
            p.loose_line();
            for name in Parser::PROPERTIES {
                let shown = match parser.property(name) {
                    Some(Value::Bool(on)) => (on as u8).to_string(),
                    Some(text @ Value::Tensor(_)) => text.as_text().unwrap_or_default(),
                    Some(other) => format!("[{} {}]", other.dims(), other.class_name()),
                    None => String::new(),
                };
                p.line(format!("{name:>19}: {shown}"));
            }
        });
        self.loose_line();
    }

    fn parser_properties(&mut self, parser: &Parser) {
        let settings = parser.settings();
        self.line("inputParser object with properties:");
        self.loose_line();
        self.inside(3, |p| {
            for (name, on) in [
                ("CaseSensitive", settings.case_sensitive),
                ("FunctionName", !settings.function_name.is_empty()),
                ("KeepUnmatched", settings.keep_unmatched),
                ("PartialMatching", settings.partial_matching),
                ("StructExpand", settings.struct_expand),
            ] {
                p.line(format!("{name:<15} : {on}"));
            }
        });
        self.loose_line();
        self.line("Defined parameters:");
        self.loose_line();
        self.inside(3, |p| p.line(format!("{{{}}}", parser.names().join(", "))));
    }

    fn named_function(&mut self, name: &str, function: &Function) {
        if function.name().is_some() {
            return self.line(format!("{name} = {}", handle_text(function)));
        }
        self.named_text(name, &handle_text(function));
    }

    fn named_text(&mut self, name: &str, text: &str) {
        self.line(format!("{name} ="));
        self.loose_line();
        self.out.extend_from_slice(text.as_bytes());
        self.out.push(b'\n');
        self.closing_line();
    }
}

fn cleanup_text(function: &Function) -> String {
    format!("onCleanup ({})", handle_text(function))
}

/// Returns a function handle's text as it is printed.
fn handle_text(function: &Function) -> String {
    match function.name() {
        Some(name) => format!("@{name}"),
        None => function.text(),
    }
}

/// Returns the host array of a value. `Env::host_all` was called before, so it is there.
fn host(value: &Value) -> Option<Arc<Tensor>> {
    Some(match value {
        Value::Tensor(t) => t.clone(),
        Value::Num(x) => Arc::new(Tensor::scalar(Data::F64(vec![*x]))),
        Value::Bool(x) => Arc::new(Tensor::scalar(Data::Bool(vec![*x]))),
        Value::Lazy(l) => l.host.get()?.clone(),
        _ => return None,
    })
}

/// Returns the text behind `name = ` if it fits on one line; `None` if the value needs a block.
fn one_line(printer: &Printer, tensor: &Tensor) -> Option<Vec<u8>> {
    if let Data::Char(chars) = &*tensor.data {
        return match (tensor.dims.len(), tensor.dims.rows()) {
            (2, 0) => Some(Vec::new()),
            (2, 1) => Some(chars.clone()),
            (2, _) => None,
            (_, 0) => Some(empty_summary(&tensor.dims)),
            _ => None,
        };
    }
    if tensor.is_empty() {
        return Some(empty_summary(&tensor.dims));
    }
    page::scalar(printer, tensor)
}

pub(super) fn empty_summary(dims: &Dims) -> Vec<u8> {
    format!("[]({dims})").into_bytes()
}

fn cell_summary(cell: &CellArray) -> String {
    match cell.dims.len() {
        2 => format!("{{}}({})", cell.dims),
        _ => format!("{{{} Cell Array}}", cell.dims),
    }
}

/// Returns Octave's word for a value's kind.
pub(super) fn kind(value: &Value) -> Cow<'static, str> {
    let scalar = value.len() == 1;
    let array = |class: &str, complex: bool| {
        let complex = if complex { "complex " } else { "" };
        Cow::from(format!("{class}{complex}{}", if scalar { "scalar" } else { "matrix" }))
    };
    match value {
        Value::Bool(_) => "bool".into(),
        Value::Cell(_) => "cell".into(),
        Value::Struct(s) => if s.len() == 1 { "scalar struct" } else { "struct" }.into(),
        Value::Function(_) => "function handle".into(),
        Value::Map(_) | Value::Parser(_) => "object".into(),
        Value::Tensor(t) if t.is_range() && t.len() > 1 => "double_range".into(),
        Value::Tensor(t) if t.form == Form::Diagonal && t.data.class() == Class::Double => {
            array("diagonal ", t.data.is_complex())
        }
        Value::Tensor(t) if t.data.class() == Class::Char => {
            let kind = if t.double_quoted { "string" } else { "sq_string" };
            if t.form == Form::Null { format!("null_{kind}").into() } else { kind.into() }
        }
        Value::Tensor(t) if t.form == Form::Null => "null_matrix".into(),
        other => match other.class() {
            Class::Double => array("", other.is_complex()),
            Class::Single => array("float ", other.is_complex()),
            Class::Logical => "bool matrix".into(),
            class => array(&format!("{} ", class.name()), false),
        },
    }
}
