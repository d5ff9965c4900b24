//! Operands in host memory, borrowed from their values, and the rules and messages about their classes.
//!
//! Must hold: all classes except the 64-bit integers are computed in f64 (complex numbers in pairs of f64) and rounded
//! to their class at the end. This gives the same results as the class's own arithmetic: for sums, products and
//! quotients of singles and of integers of at most 32 bits, f64 is exact enough that the second rounding changes
//! nothing.

use crate::env::Env;
use crate::error::{Flow, Stop, fail_id};
use crate::value::convert::half_away;
use crate::value::{Class, Data, Dims, Tensor, Value};
use num_complex::{Complex32, Complex64};
use std::borrow::Cow;
use std::sync::Arc;

/// An operand whose elements lie in host memory.
pub(crate) enum Host<'v> {
    /// A double.
    Number(f64),
    /// A truth value.
    Truth(bool),
    /// An array of a value.
    Tensor(&'v Tensor),
    /// An array that was awaited.
    Awaited(Arc<Tensor>),
}

/// Elements of an operand.
#[derive(Clone, Copy)]
pub(crate) enum Elements<'a> {
    /// One double.
    Number(&'a f64),
    /// One truth value.
    Truth(&'a bool),
    /// Those of an array.
    Data(&'a Data),
}

impl<'v> Host<'v> {
    /// Borrows the host array of a value.
    ///
    /// # Errors
    /// As [`Env::host`].
    pub fn of(env: &Env, value: &'v Value) -> Flow<Host<'v>> {
        Ok(match value {
            Value::Num(x) => Host::Number(*x),
            Value::Bool(x) => Host::Truth(*x),
            Value::Tensor(t) => Host::Tensor(t),
            other => Host::Awaited(env.host(other)?),
        })
    }

    /// Borrows the host arrays of both values, which are asked for together.
    ///
    /// # Errors
    /// As [`Env::host`].
    pub fn pair(env: &Env, a: &'v Value, b: &'v Value) -> Flow<(Host<'v>, Host<'v>)> {
        if matches!(a, Value::Lazy(_)) && matches!(b, Value::Lazy(_)) {
            env.host_all([a, b])?;
        }
        Ok((Host::of(env, a)?, Host::of(env, b)?))
    }

    /// The extents.
    pub fn dims(&self) -> &[usize] {
        match self {
            Host::Number(_) | Host::Truth(_) => &[1, 1],
            Host::Tensor(t) => &t.dims,
            Host::Awaited(t) => &t.dims,
        }
    }

    /// The elements.
    pub fn elements(&self) -> Elements<'_> {
        match self {
            Host::Number(x) => Elements::Number(x),
            Host::Truth(x) => Elements::Truth(x),
            Host::Tensor(t) => Elements::Data(&t.data),
            Host::Awaited(t) => Elements::Data(&t.data),
        }
    }

    /// The class.
    pub fn class(&self) -> Class {
        self.elements().class()
    }

    /// Whether it has imaginary parts.
    pub fn is_complex(&self) -> bool {
        matches!(self.elements(), Elements::Data(d) if d.is_complex())
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        match self.elements() {
            Elements::Data(d) => d.len(),
            _ => 1,
        }
    }
}

impl<'a> Elements<'a> {
    /// The class.
    pub fn class(self) -> Class {
        match self {
            Elements::Number(_) => Class::Double,
            Elements::Truth(_) => Class::Logical,
            Elements::Data(d) => d.class(),
        }
    }

    /// Returns the elements as doubles (real parts); 64-bit integers are rounded.
    pub fn reals(self) -> Cow<'a, [f64]> {
        match self {
            Elements::Number(x) => Cow::Borrowed(std::slice::from_ref(x)),
            Elements::Truth(x) => Cow::Owned(vec![*x as u8 as f64]),
            Elements::Data(d) => reals(d),
        }
    }

    /// Does the same as [`Elements::reals`]. If `class` is single, doubles are rounded to singles first.
    pub fn reals_in(self, class: Class) -> Cow<'a, [f64]> {
        let reals = self.reals();
        if class == Class::Single && self.class() == Class::Double {
            return Cow::Owned(reals.iter().map(|&x| x as f32 as f64).collect());
        }
        reals
    }

    /// Returns the elements as complex doubles, rounded as in [`Elements::reals_in`].
    pub fn complexes_in(self, class: Class) -> Cow<'a, [Complex64]> {
        match self {
            Elements::Data(Data::C64(v)) if class != Class::Single => Cow::Borrowed(v),
            Elements::Data(Data::C64(v)) => Cow::Owned(v.iter().map(|z| wide(narrow(*z))).collect()),
            Elements::Data(Data::C32(v)) => Cow::Owned(v.iter().map(|z| wide(*z)).collect()),
            other => Cow::Owned(other.reals_in(class).iter().map(|&x| Complex64::new(x, 0.0)).collect()),
        }
    }

    /// Returns the elements as exact integers; floats are rounded half away from zero.
    pub fn integers(self) -> Vec<i128> {
        match self {
            Elements::Data(Data::I64(v)) => v.iter().map(|&x| x as i128).collect(),
            Elements::Data(Data::U64(v)) => v.iter().map(|&x| x as i128).collect(),
            other => other.reals().iter().map(|&x| half_away(x) as i128).collect(),
        }
    }

    /// Returns whether each element is true; `None` if one is NaN.
    pub fn truths(self) -> Option<Cow<'a, [bool]>> {
        Some(match self {
            Elements::Truth(x) => Cow::Borrowed(std::slice::from_ref(x)),
            Elements::Data(Data::Bool(v)) => Cow::Borrowed(v),
            Elements::Data(Data::Char(v)) => Cow::Owned(v.iter().map(|&x| x != 0).collect()),
            Elements::Number(x) if x.is_nan() => return None,
            Elements::Number(x) => Cow::Owned(vec![*x != 0.0]),
            Elements::Data(data) if data.has_nan() => return None,
            Elements::Data(data) => match data.converted(Class::Logical) {
                Data::Bool(truths) => Cow::Owned(truths),
                _ => return None,
            },
        })
    }
}

/// A complex single as a complex double.
pub(crate) fn wide(z: Complex32) -> Complex64 {
    Complex64::new(z.re as f64, z.im as f64)
}

/// A complex double rounded to a complex single.
pub(crate) fn narrow(z: Complex64) -> Complex32 {
    Complex32::new(z.re as f32, z.im as f32)
}

/// Returns data as doubles (real parts).
pub(crate) fn reals(data: &Data) -> Cow<'_, [f64]> {
    fn all<T: Copy>(v: &[T], f: impl Fn(T) -> f64) -> Cow<'_, [f64]> {
        Cow::Owned(v.iter().map(|&x| f(x)).collect())
    }
    match data {
        Data::F64(v) => Cow::Borrowed(v),
        Data::F32(v) => all(v, |x| x as f64),
        Data::I8(v) => all(v, |x| x as f64),
        Data::I16(v) => all(v, |x| x as f64),
        Data::I32(v) => all(v, |x| x as f64),
        Data::I64(v) => all(v, |x| x as f64),
        Data::U8(v) | Data::Char(v) => all(v, |x| x as f64),
        Data::U16(v) => all(v, |x| x as f64),
        Data::U32(v) => all(v, |x| x as f64),
        Data::U64(v) => all(v, |x| x as f64),
        Data::Bool(v) => all(v, |x| x as u8 as f64),
        Data::C64(v) => Cow::Owned(v.iter().map(|z| z.re).collect()),
        Data::C32(v) => Cow::Owned(v.iter().map(|z| z.re as f64).collect()),
    }
}

/// Converts doubles to a class: singles are rounded, integers are rounded half away from zero and saturated (NaN
/// becomes 0), logicals are true unless zero, and chars take the low byte.
pub(crate) fn in_class(class: Class, x: Vec<f64>) -> Data {
    fn all<T>(x: Vec<f64>, f: impl Fn(f64) -> T) -> Vec<T> {
        x.into_iter().map(f).collect()
    }
    match class {
        Class::Single => Data::F32(all(x, |x| x as f32)),
        Class::Int8 => Data::I8(all(x, |x| half_away(x) as i8)),
        Class::Int16 => Data::I16(all(x, |x| half_away(x) as i16)),
        Class::Int32 => Data::I32(all(x, |x| half_away(x) as i32)),
        Class::Int64 => Data::I64(all(x, |x| half_away(x) as i64)),
        Class::Uint8 => Data::U8(all(x, |x| half_away(x) as u8)),
        Class::Uint16 => Data::U16(all(x, |x| half_away(x) as u16)),
        Class::Uint32 => Data::U32(all(x, |x| half_away(x) as u32)),
        Class::Uint64 => Data::U64(all(x, |x| half_away(x) as u64)),
        Class::Logical => Data::Bool(all(x, |x| x != 0.0)),
        Class::Char => Data::Char(all(x, |x| x as i64 as u8)),
        _ => Data::F64(x),
    }
}

/// Complex doubles in double or single.
pub(crate) fn complex_in_class(class: Class, z: Vec<Complex64>) -> Data {
    match class {
        Class::Single => Data::C32(z.into_iter().map(narrow).collect()),
        _ => Data::C64(z),
    }
}

/// Converts integers to a 64-bit class, saturated.
pub(crate) fn in_wide_class(class: Class, x: impl Iterator<Item = i128>) -> Data {
    match class {
        Class::Int64 => Data::I64(x.map(|x| x.clamp(i64::MIN as i128, i64::MAX as i128) as i64).collect()),
        _ => Data::U64(x.map(|x| x.clamp(0, u64::MAX as i128) as u64).collect()),
    }
}

/// Whether f64 cannot hold all values of the class.
pub(crate) fn is_wide(class: Class) -> bool {
    matches!(class, Class::Int64 | Class::Uint64)
}

/// Returns the class of a sum or product; `None` for classes that do not mix.
pub(crate) fn arithmetic_class(a: Class, b: Class) -> Option<Class> {
    match (a.is_integer(), b.is_integer()) {
        (true, true) if a == b => Some(a),
        (true, true) => None,
        (true, false) => Some(a),
        (false, true) => Some(b),
        _ if a == Class::Single || b == Class::Single => Some(Class::Single),
        _ => Some(Class::Double),
    }
}

/// Returns a value's type as Octave's messages name it. With `in_pair`, the value is an operand of a binary operator,
/// and is named like the number that it stands for.
pub(crate) fn type_name(value: &Value, in_pair: bool) -> Cow<'static, str> {
    let scalar = value.is_scalar();
    let pick = |one: &'static str, many: &'static str| Cow::Borrowed(if scalar { one } else { many });
    match value {
        Value::Cell(_) => Cow::Borrowed("cell"),
        Value::Struct(s) if s.class.is_some() => Cow::Borrowed("object"),
        Value::Struct(_) => pick("scalar struct", "struct"),
        Value::Function(_) => Cow::Borrowed("function handle"),
        Value::Colon => Cow::Borrowed("magic-colon"),
        Value::Tensor(t) if t.is_range() && !in_pair => Cow::Borrowed("double_range"),
        _ => match value.class() {
            Class::Logical if !in_pair => pick("bool", "bool matrix"),
            Class::Char if !in_pair => {
                let double_quoted = matches!(value, Value::Tensor(t) if t.double_quoted);
                Cow::Borrowed(if double_quoted { "string" } else { "sq_string" })
            }
            Class::Single if value.is_complex() => pick("float complex scalar", "float complex matrix"),
            Class::Single => pick("float scalar", "float matrix"),
            class if class.is_integer() => {
                Cow::Owned(format!("{} {}", class.name(), if scalar { "scalar" } else { "matrix" }))
            }
            _ if value.is_complex() => pick("complex scalar", "complex matrix"),
            _ => pick("scalar", "matrix"),
        },
    }
}

/// Returns the error for operands whose shapes do not fit.
pub(crate) fn nonconformant<T>(what: &str, a: &[usize], b: &[usize]) -> Flow<T> {
    let (a, b) = (Dims::new(a), Dims::new(b));
    fail_id!("Octave:nonconformant-args", "{what}: nonconformant arguments (op1 is {a}, op2 is {b})")
}

/// Returns the error for NaN as a truth value.
pub(crate) fn nan_is_no_truth() -> Stop {
    crate::error::ScriptError::new("invalid conversion from NaN to logical").into()
}
