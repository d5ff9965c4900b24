//! Reading and writing parts of values: `a(i, j)`, `c{i}`, `s.f`, deletion, growth, and building bigger ones from
//! parts (`[a, b; c]`).
//!
//! In the order in which data flows: `subscript` makes positions of values, `grid` walks the places that several
//! subscripts name together and says how shapes fit, `read`, `write`, `delete`, `structs` and `concat` do it
//! to host values, `map` and `parser` to objects, `path` goes the way into nested ones and `list` to several places at
//! once, `lazy` and `lazy_write` record all of it where arrays of the runtime take part.
//!
//! Messages say `index (5,_)` where Octave names the variable; the machine, which knows it, puts it in.

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

/// What an expression that may yield several values gives.
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

/// `base(subscripts)`, of any class but function handles.
///
/// # Errors
/// Subscripts out of range or not positive integers.
pub fn paren(env: &mut Env, base: &Value, subscripts: &[Value]) -> Flow<Value> {
    read::paren(env, base, subscripts)
}

/// `base{subscripts}`: as many values as the subscripts name.
///
/// # Errors
/// As [`paren`], and a base that is no cell array.
pub fn brace(env: &mut Env, base: &Value, subscripts: &[Value]) -> Flow<Values> {
    read::brace(env, base, subscripts)
}

/// `base.name`: as many values as the struct array has elements.
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

/// What `end` is as subscript `position` (from 0) of `count`.
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

/// `target<steps> = value`; an undefined target is `None` and becomes what the first step makes of it. The target is
/// changed in place where nobody else holds it.
///
/// # Errors
/// Subscripts or shapes that do not fit; the target is then as it was.
pub fn assign(env: &mut Env, target: &mut Option<Value>, steps: &[Access], value: Value) -> Flow<()> {
    path::walk(env, target, steps, Leaf::Assign(value))
}

/// `target<steps> = []`: the last step's elements go.
///
/// # Errors
/// More than one subscript that is not all of its dimension; the target is then as it was.
pub fn delete(env: &mut Env, target: &mut Value, steps: &[Access]) -> Flow<()> {
    let mut inner = Some(std::mem::replace(target, Value::Num(0.0)));
    let result = path::walk(env, &mut inner, steps, Leaf::Delete);
    *target = inner.unwrap_or_else(Value::empty);
    result
}

/// `[a, b]` (`dim` 1), `[a; b]` (`dim` 0) or `cat(dim + 1, …)`.
///
/// # Errors
/// Shapes or classes that do not fit.
pub fn concatenate(env: &mut Env, dim: usize, parts: &[Value]) -> Flow<Value> {
    concat::join(env, dim, parts)
}

/// A row of a matrix that has others: what is complex stays so until all rows are joined.
///
/// # Errors
/// As those of [`concatenate`].
pub fn row_of_rows(env: &mut Env, parts: &[Value]) -> Flow<Value> {
    concat::join_as_is(env, 1, parts)
}

/// As [`concatenate`], in place where the first part is a vector that nobody else holds and the others are few: the
/// first part then is the result. `false` where nothing was done.
pub fn append(env: &Env, dim: usize, parts: &mut [Value]) -> bool {
    concat::append(env, dim, parts)
}
