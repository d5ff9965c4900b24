//! The values of scripts: scalars in the value itself, small arrays in host memory, big ones on the runtime,
//! containers, maps, function handles, and parsers of arguments.
//!
//! Invariants:
//! - VALUE-1: a real double scalar is always [`Value::Num`], a logical scalar always [`Value::Bool`]; a
//!   [`Value::Tensor`] is anything else that lies in host memory. Constructors ([`Value::tensor`]) keep it.
//! - VALUE-2: dimensions are at least two, trailing singletons dropped, and their product is the number of elements.
//! - VALUE-3: complex data without an imaginary part is made real by [`Value::tensor`]. `Value::tensor_as_is` keeps it
//!   complex (for `complex()`).
//! - VALUE-4: values are shared by reference count and copied on write: the only holder may change a value in place.
//!   Arrays of other dimensions (`A(:)`, `reshape`) and the runtime may share elements, too (`held.rs`).
//! - VALUE-5: however deep values are nested, their end takes a bounded stack (`release.rs`).

pub mod account;
pub mod blocks;
pub mod cell;
pub mod class;
pub mod cleanup;
pub mod convert;
pub mod function;
pub mod held;
pub mod lazy;
pub mod made;
pub mod map;
pub mod nest;
pub mod parser;
mod release;
pub mod small;
pub mod structure;
pub mod tensor;
pub mod total;

pub use cell::CellArray;
pub use class::Class;
pub use function::Function;
pub use held::Held;
pub use lazy::{Lazy, Pinned};
pub use map::Map;
pub use parser::Parser;
pub use structure::StructArray;
pub use tensor::{Data, Dims, Form, Tensor};

use std::sync::Arc;

/// A value of a script.
#[derive(Clone, Debug)]
pub enum Value {
    /// A real double scalar.
    Num(f64),
    /// A logical scalar.
    Bool(bool),
    /// Any other numeric, char or logical array in host memory.
    Tensor(Arc<Tensor>),
    /// An array on the runtime.
    Lazy(Arc<Lazy>),
    /// A cell array.
    Cell(Arc<CellArray>),
    /// A struct or struct array; also error objects and `gpuDevice` ([`StructArray::class`]).
    Struct(Arc<StructArray>),
    /// A function handle.
    Function(Arc<Function>),
    /// A `containers.Map`, which its copies share.
    Map(Arc<Map>),
    /// An `inputParser`, which its copies share.
    Parser(Arc<Parser>),
    /// A single colon as an index. It is never in a variable.
    Colon,
}

impl Value {
    /// Makes a value of a host array and narrows it: double and logical scalars are unboxed, and complex data without
    /// an imaginary part becomes real.
    pub fn tensor(tensor: Tensor) -> Value {
        if let Data::C64(_) | Data::C32(_) = *tensor.data {
            return Value::tensor_as_is(tensor.narrowed());
        }
        Value::tensor_as_is(tensor)
    }

    /// Does the same as [`Value::tensor`], but complex stays complex.
    pub fn tensor_as_is(tensor: Tensor) -> Value {
        if tensor.len() == 1 && tensor.dims.len() == 2 {
            match &*tensor.data {
                Data::F64(x) => return Value::Num(x[0]),
                Data::Bool(x) => return Value::Bool(x[0]),
                _ => {}
            }
        }
        Value::Tensor(Arc::new(tensor))
    }

    /// Makes a value of a shared array. Complex stays complex.
    pub fn held(tensor: Arc<Tensor>) -> Value {
        if tensor.len() == 1 { Value::tensor_as_is(Arc::unwrap_or_clone(tensor)) } else { Value::Tensor(tensor) }
    }

    /// Returns the same array, known to be diagonal ([`Tensor::diagonal`]); other values are unchanged.
    pub fn diagonal(self) -> Value {
        match self {
            Value::Tensor(t) => Value::Tensor(Arc::new(Arc::unwrap_or_clone(t).diagonal())),
            other => other,
        }
    }

    /// Returns the same array, known to be a permutation matrix ([`Tensor::permutation`]); other values are unchanged.
    pub fn permutation(self) -> Value {
        match self {
            Value::Tensor(t) => Value::Tensor(Arc::new(Arc::unwrap_or_clone(t).permutation())),
            other => other,
        }
    }

    /// Whether it is known to be a permutation matrix.
    pub fn is_permutation(&self) -> bool {
        matches!(self, Value::Tensor(t) if t.form == Form::Permutation)
    }

    /// Whether it is known to be an identity matrix.
    pub fn is_identity(&self) -> bool {
        let Value::Tensor(t) = self else { return false };
        let (rows, columns) = (t.dims.rows(), t.dims.columns());
        let one = |i: usize| matches!(&*t.data, Data::F64(v) if v[i * rows + i] == 1.0);
        self.is_diagonal() && rows == columns && (0..rows).all(one)
    }

    /// Whether it is known to be diagonal.
    pub fn is_diagonal(&self) -> bool {
        matches!(self, Value::Tensor(t) if t.form == Form::Diagonal)
    }

    /// Makes a char row of these bytes, as single quotes do.
    pub fn string(text: impl AsRef<[u8]>) -> Value {
        Value::Tensor(Arc::new(Tensor::string(text.as_ref())))
    }

    /// The 0×0 double.
    pub fn empty() -> Value {
        Value::Tensor(Arc::new(Tensor::new(Dims::zero(), Data::F64(Vec::new()))))
    }

    /// A real double row.
    pub fn row(data: Vec<f64>) -> Value {
        let n = data.len();
        Value::tensor(Tensor::new(Dims::new(&[1, n]), Data::F64(data)))
    }

    /// A real double column.
    pub fn column(data: Vec<f64>) -> Value {
        let n = data.len();
        Value::tensor(Tensor::new(Dims::new(&[n, 1]), Data::F64(data)))
    }

    /// A cell array.
    pub fn cell(dims: Dims, items: Vec<Value>) -> Value {
        Value::Cell(Arc::new(CellArray::new(dims, items)))
    }

    /// Returns its class, which `class(x)` names.
    pub fn class(&self) -> Class {
        match self {
            Value::Num(_) => Class::Double,
            Value::Bool(_) => Class::Logical,
            Value::Tensor(t) => t.data.class(),
            Value::Lazy(l) => l.class,
            Value::Cell(_) => Class::Cell,
            Value::Struct(_) => Class::Struct,
            Value::Function(_) => Class::Function,
            Value::Map(_) => Class::Map,
            Value::Parser(_) => Class::Parser,
            Value::Colon => Class::Char,
        }
    }

    /// Returns the name of its class, also for objects.
    pub fn class_name(&self) -> &str {
        match self {
            Value::Struct(s) => s.class.unwrap_or("struct"),
            other => other.class().name(),
        }
    }

    /// Returns the name of its type in messages (`matrix`, `scalar`, `bool`, `scalar struct`), which distinguishes
    /// scalars from arrays.
    pub fn type_name(&self) -> &'static str {
        let scalar = self.dims().is_scalar();
        let pick = |one: &'static str, many: &'static str| if scalar { one } else { many };
        match self {
            Value::Tensor(t) if t.data.is_complex() => match t.data.class() {
                Class::Single => pick("float complex scalar", "float complex matrix"),
                _ => pick("complex scalar", "complex matrix"),
            },
            Value::Tensor(t) if t.is_range() => "double_range",
            Value::Tensor(t) if t.double_quoted => "string",
            Value::Colon => "magic-colon",
            other => match other.class() {
                Class::Double => pick("scalar", "matrix"),
                Class::Single => pick("float scalar", "float matrix"),
                Class::Int8 => pick("int8 scalar", "int8 matrix"),
                Class::Int16 => pick("int16 scalar", "int16 matrix"),
                Class::Int32 => pick("int32 scalar", "int32 matrix"),
                Class::Int64 => pick("int64 scalar", "int64 matrix"),
                Class::Uint8 => pick("uint8 scalar", "uint8 matrix"),
                Class::Uint16 => pick("uint16 scalar", "uint16 matrix"),
                Class::Uint32 => pick("uint32 scalar", "uint32 matrix"),
                Class::Uint64 => pick("uint64 scalar", "uint64 matrix"),
                Class::Char => "sq_string",
                Class::Logical => pick("bool", "bool matrix"),
                Class::Cell => "cell",
                Class::Struct => pick("scalar struct", "struct"),
                Class::Function => "function handle",
                Class::Map | Class::Parser => "object",
            },
        }
    }

    /// Returns its dimensions, which are known without computing anything.
    pub fn dims(&self) -> Dims {
        match self {
            Value::Num(_) | Value::Bool(_) | Value::Function(_) | Value::Parser(_) | Value::Colon => Dims::scalar(),
            Value::Tensor(t) => t.dims.clone(),
            Value::Lazy(l) => l.dims.clone(),
            Value::Cell(c) => c.dims.clone(),
            Value::Struct(s) => s.dims.clone(),
            Value::Map(m) => Dims::new(&[m.len(), 1]),
        }
    }

    /// The number of its elements.
    pub fn len(&self) -> usize {
        match self {
            Value::Num(_) | Value::Bool(_) | Value::Function(_) | Value::Parser(_) | Value::Colon => 1,
            Value::Tensor(t) => t.len(),
            Value::Lazy(l) => l.dims.elements(),
            Value::Cell(c) => c.items.len(),
            Value::Struct(s) => s.dims.elements(),
            Value::Map(m) => m.len(),
        }
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it has one element.
    pub fn is_scalar(&self) -> bool {
        self.len() == 1
    }

    /// Whether its class is char.
    pub fn is_char(&self) -> bool {
        matches!(self, Value::Tensor(t) if matches!(*t.data, Data::Char(_)))
    }

    /// Whether it is a char row (or an empty char array), which scripts use as a string.
    pub fn is_string(&self) -> bool {
        matches!(self, Value::Tensor(t) if t.is_string())
    }

    /// Whether it is numeric (not char, not logical).
    pub fn is_numeric(&self) -> bool {
        self.class().is_numeric()
    }

    /// Whether the script put it on the device (`gpuArray`), or it was computed from such a value.
    pub fn is_pinned(&self) -> bool {
        match self {
            Value::Lazy(l) => l.pinned.on_device,
            Value::Tensor(t) => t.pinned,
            _ => false,
        }
    }

    /// Whether it is a `dlarray`, whose derivatives may be asked for.
    pub fn is_dlarray(&self) -> bool {
        matches!(self, Value::Lazy(l) if l.pinned.is_dlarray)
    }

    /// Returns why it stays on the runtime, and what is computed from it.
    pub fn pinned(&self) -> Pinned {
        Pinned { on_device: self.is_pinned(), is_dlarray: self.is_dlarray() }
    }

    /// Whether it has an imaginary part.
    pub fn is_complex(&self) -> bool {
        matches!(self, Value::Tensor(t) if t.data.is_complex())
    }

    /// Returns the bytes of a char row; `None` for anything else. For a char matrix, use [`Tensor::row_strings`].
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Tensor(t) if t.is_string() => t.data.chars(),
            _ => None,
        }
    }

    /// Returns a char row as text; bytes that are not UTF-8 are replaced.
    pub fn as_text(&self) -> Option<String> {
        self.as_bytes().map(|b| String::from_utf8_lossy(b).into_owned())
    }
}

impl From<f64> for Value {
    fn from(x: f64) -> Value {
        Value::Num(x)
    }
}
impl From<bool> for Value {
    fn from(x: bool) -> Value {
        Value::Bool(x)
    }
}
impl From<usize> for Value {
    fn from(x: usize) -> Value {
        Value::Num(x as f64)
    }
}
impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::string(text)
    }
}
impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::string(text)
    }
}
impl From<Tensor> for Value {
    fn from(tensor: Tensor) -> Value {
        Value::tensor(tensor)
    }
}
