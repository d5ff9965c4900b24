//! Reading and writing parts of values: `a(i, j)`, `c{i}`, `s.f`, deletion, growth, and building bigger ones from
//! parts (`[a, b; c]`).
//!
//! In the order in which data flows: `subscript` turns values into positions. `grid` visits the places that several
//! subscripts name together, and checks shapes. `read`, `write`, `delete`, `structs` and `concat` work on host values,
//! `map` and `parser` on objects. `path` follows steps into nested values, and `list` into several places at once.
//! `lazy` and `lazy_write` record all of it if arrays of the runtime take part.
//!
//! Messages say `index (5,_)` where Octave names the variable. The machine knows the variable and puts its name in.

mod concat;
mod delete;
mod grid;
mod lazy;
mod lazy_write;
mod list;
pub mod map;
pub mod parser;
mod path;
#[cfg(test)]
mod random;
mod read;
mod structs;
mod subscript;
#[cfg(test)]
mod tests;
mod write;

use super::env::Env;
use super::error::Flow;
use super::value::Value;
use path::Leaf;
use smallvec::SmallVec;
use std::sync::Arc;

pub use lazy::{BEYOND, SUBSCRIPTS};
pub use list::{assign_list, places};
pub use read::slice;
pub use subscript::Subscripts;
pub use write::host as write_host;

/// The values of an expression that may give several.
pub type Values = SmallVec<[Value; 1]>;

/// A step into a value, with its indices evaluated.
#[derive(Clone, Debug)]
pub enum Access {
    /// `(…)`.
    Paren(Values),
    /// `{…}`.
    Brace(Values),
    /// `.name`.
    Field(Arc<str>),
}

/// Reads `base(subscripts)`, for any class except function handles.
///
/// # Errors
/// Subscripts out of range or not positive integers.
pub fn paren(env: &mut Env, base: &Value, subscripts: &[Value]) -> Flow<Value> {
    read::paren(env, base, subscripts)
}

/// Reads `base{subscripts}`, which gives a value for each place.
///
/// # Errors
/// As [`paren`], and a base that is no cell array.
pub fn brace(env: &mut Env, base: &Value, subscripts: &[Value]) -> Flow<Values> {
    read::brace(env, base, subscripts)
}

/// Reads `base.name`, which gives a value for each element of the struct array.
///
/// # Errors
/// A base that is no struct, or lacks the field.
pub fn field(base: &Value, name: &str) -> Flow<Values> {
    match base {
        Value::Map(map) => map::field(map, name),
        Value::Parser(parser) => parser::field(parser, name),
        base => structs::field(base, name),
    }
}

/// Returns the value of `end` in subscript `position` (from 0) of `count`.
pub fn end(base: &Value, position: usize, count: usize) -> usize {
    let dims = base.dims();
    match (position, count) {
        (0, 1) => dims.elements(),
        (p, n) if p + 1 == n => {
            (p..dims.len().max(p + 1)).map(|d| dims.extent(d)).fold(1, |n: usize, extent| n.saturating_mul(extent))
        }
        (p, _) => dims.extent(p),
    }
}

/// Does `target<steps> = value`. An undefined target is `None`, and becomes what the first step makes of it. The target
/// is changed in place if nothing else holds it.
///
/// # Errors
/// Subscripts or shapes that do not fit; the target is unchanged then.
pub fn assign(env: &mut Env, target: &mut Option<Value>, steps: &[Access], value: Value) -> Flow<()> {
    path::walk(env, target, steps, Leaf::Assign(value))
}

/// Does `target<steps> = []`: deletes the elements that the last step names.
///
/// # Errors
/// More than one subscript that does not name its whole dimension; the target is unchanged then.
pub fn delete(env: &mut Env, target: &mut Value, steps: &[Access]) -> Flow<()> {
    let mut inner = Some(std::mem::replace(target, Value::Num(0.0)));
    let result = path::walk(env, &mut inner, steps, Leaf::Delete);
    *target = inner.unwrap_or_else(Value::empty);
    result
}

/// Joins `[a, b]` (`dim` 1), `[a; b]` (`dim` 0) or `cat(dim + 1, …)`.
///
/// # Errors
/// Shapes or classes that do not fit.
pub fn concatenate(env: &mut Env, dim: usize, parts: &[Value]) -> Flow<Value> {
    concat::join(env, dim, parts)
}

/// Joins a row of a matrix that has several rows. Complex values stay complex until all rows are joined.
///
/// # Errors
/// Those of [`concatenate`].
pub fn row_of_rows(env: &mut Env, parts: &[Value]) -> Flow<Value> {
    concat::join_as_is(env, 1, parts)
}

/// Does the same as [`concatenate`] in place, if the first part is a vector that nothing else holds and the others are
/// short. The first part then becomes the result. Returns `false` if nothing was done.
pub fn append(env: &Env, dim: usize, parts: &mut [Value]) -> bool {
    concat::append(env, dim, parts)
}
