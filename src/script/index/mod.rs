//! Reading and writing parts of values: `a(i, j)`, `c{i}`, `s.f`, deletion, growth, and building bigger ones from
//! parts (`[a, b; c]`).

use super::env::Env;
use super::error::{Flow, fail};
use super::value::Value;
use smallvec::SmallVec;
use std::sync::Arc;

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
    let _ = (env, base, subscripts);
    fail!("indexing is not built yet")
}

/// `base{subscripts}`: as many values as the subscripts name.
///
/// # Errors
/// As [`paren`], and a base that is no cell array.
pub fn brace(env: &mut Env, base: &Value, subscripts: &[Value]) -> Flow<Values> {
    let _ = (env, base, subscripts);
    fail!("cell indexing is not built yet")
}

/// `base.name`: as many values as the struct array has elements.
///
/// # Errors
/// A base that is no struct, or lacks the field.
pub fn field(env: &mut Env, base: &Value, name: &str) -> Flow<Values> {
    let _ = (env, base, name);
    fail!("fields are not built yet")
}

/// What `end` is as subscript `position` (from 0) of `count`.
pub fn end(base: &Value, position: usize, count: usize) -> usize {
    let dims = base.dims();
    match (position, count) {
        (0, 1) => dims.elements(),
        (p, n) if p + 1 == n => (p..dims.len().max(p + 1)).map(|d| dims.extent(d)).product(),
        (p, _) => dims.extent(p),
    }
}

/// `target<steps> = value`; an undefined target is `None` and becomes what the first step makes of it. The target is
/// changed in place where nobody else holds it.
///
/// # Errors
/// Subscripts or shapes that do not fit; the target is then as it was.
pub fn assign(env: &mut Env, target: &mut Option<Value>, steps: &[Access], value: Value) -> Flow<()> {
    let _ = (env, target, steps, value);
    fail!("indexed assignment is not built yet")
}

/// `target<steps> = []`: the last step's elements go.
///
/// # Errors
/// More than one subscript that is not all of its dimension; the target is then as it was.
pub fn delete(env: &mut Env, target: &mut Value, steps: &[Access]) -> Flow<()> {
    let _ = (env, target, steps);
    fail!("deletion is not built yet")
}

/// `[a, b]` (`dim` 1), `[a; b]` (`dim` 0) or `cat(dim + 1, …)`.
///
/// # Errors
/// Shapes or classes that do not fit.
pub fn concatenate(env: &mut Env, dim: usize, parts: &[Value]) -> Flow<Value> {
    let _ = (env, dim, parts);
    fail!("concatenation is not built yet")
}
