//! Functions with which builtins read their arguments: sizes, dimensions, flags, class names.
//!
//! Must hold: nothing here changes anything; host values of arrays on the runtime are asked for (SCRIPT-2).

use crate::display::number::{self, Notation};
use crate::env::Env;
use crate::error::{Flow, fail, fail_id};
use crate::value::{Class, Data, Dims, Tensor, Value};

/// The most dimensions that an array may have. A larger argument is a mistake, and no list of extents grows so long.
pub const RANK_MAX: usize = 1 << 16;

/// Whether an argument is this word, ignoring case.
pub fn is_word(value: &Value, word: &str) -> bool {
    value.as_bytes().is_some_and(|b| b.eq_ignore_ascii_case(word.as_bytes()))
}

/// Whether any of the arguments is this word.
pub fn has_word(args: &[Value], word: &str) -> bool {
    args.iter().any(|a| is_word(a, word))
}

/// Returns an argument's number; for an array, the first element, as Octave does.
///
/// # Errors
/// A value that has no numbers, or no elements.
pub fn number(env: &Env, name: &str, value: &Value) -> Flow<f64> {
    match value {
        Value::Num(x) => Ok(*x),
        Value::Bool(x) => Ok(*x as u8 as f64),
        _ => {
            let host = env.host(value)?;
            match host.is_empty() {
                true => fail!("index (_,0): out of bound; value 0 out of bound 0"),
                false => Ok(host.data.f64_at(0)),
            }
        }
        .map_err(|stop: crate::error::Stop| match stop {
            crate::error::Stop::Error(_) => {
                crate::error::ScriptError::new(format!("{name}: argument must be a number")).into()
            }
            other => other,
        }),
    }
}

/// Converts a number that is an extent or an index to an integer.
///
/// # Errors
/// Octave's error: `conversion of 1.5 to octave_idx_type value failed`.
pub fn integer(x: f64) -> Flow<i64> {
    if x.is_nan() {
        return fail!("conversion of nan to octave_idx_type value failed");
    }
    if x.is_infinite() {
        return fail!("conversion of {}inf to octave_idx_type value failed", if x < 0.0 { "-" } else { "" });
    }
    if x.trunc() != x {
        return fail!("conversion of {} to octave_idx_type value failed", short(x));
    }
    if x.abs() >= 9.2e18 {
        return fail_id!("Octave:bad-alloc", "out of memory or dimension too large for Octave's index type");
    }
    Ok(x as i64)
}

/// Formats a number as messages do: by `%g`.
pub fn short(x: f64) -> String {
    number::text(x, Notation::General(6))
}

/// Converts a number to an extent; negative numbers become 0.
///
/// # Errors
/// Those of [`integer`].
pub fn extent(x: f64) -> Flow<usize> {
    Ok(integer(x)?.max(0) as usize)
}

/// Returns the dimension that an argument names, from 0. `wording` makes the message for an invalid one.
///
/// # Errors
/// A value that is no positive integer.
pub fn dim(env: &Env, value: &Value, wording: impl Fn(f64) -> String) -> Flow<usize> {
    let numeric = matches!(value, Value::Num(_) | Value::Bool(_) | Value::Tensor(_) | Value::Lazy(_));
    if !numeric || value.is_char() || value.is_complex() || value.len() != 1 {
        return fail!("{}", wording(f64::NAN));
    }
    let x = number(env, "", value)?;
    if x >= 1.0 && x == x.trunc() && x < RANK_MAX as f64 { Ok(x as usize - 1) } else { fail!("{}", wording(x)) }
}

/// The dimensions along which a reduction goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Over {
    /// The first whose extent is not 1.
    Default,
    /// These (from 0), all different.
    Dims(Vec<usize>),
    /// All of them.
    All,
}

impl Over {
    /// Returns the dimensions for an array of this shape.
    pub fn of(&self, dims: &Dims) -> Vec<usize> {
        match self {
            Over::Default => vec![dims.first_non_singleton()],
            Over::Dims(list) => list.clone(),
            Over::All => (0..dims.len()).collect(),
        }
    }
}

/// Reads the dimension argument of a reduction: a number, a list of different numbers, or `'all'`; `[]` is the default.
///
/// # Errors
/// Any other value.
pub fn over(env: &Env, value: Option<&Value>, wording: impl Fn(f64) -> String) -> Flow<Over> {
    let Some(value) = value else { return Ok(Over::Default) };
    if is_word(value, "all") {
        return Ok(Over::All);
    }
    if value.len() == 1 {
        return Ok(Over::Dims(vec![dim(env, value, wording)?]));
    }
    if value.is_char() || !matches!(value, Value::Tensor(_) | Value::Lazy(_)) {
        return fail!("{}", wording(f64::NAN));
    }
    let list = env.host(value)?;
    if list.is_empty() {
        return Ok(Over::Default);
    }
    let mut dims = Vec::with_capacity(list.len().min(64));
    for i in 0..list.len() {
        let x = list.data.f64_at(i);
        if !(x >= 1.0 && x == x.trunc() && x < RANK_MAX as f64) {
            return fail!("{}", wording(x));
        }
        let d = x as usize - 1;
        if dims.contains(&d) {
            return fail!("the list of dimensions must not name one twice");
        }
        dims.push(d);
    }
    Ok(Over::Dims(dims))
}

/// Reads the sizes that `zeros(…)` and the like take: none (1×1), `n` (n×n), `m, n, …`, or a vector of sizes.
///
/// # Errors
/// Sizes that are no integers.
pub fn sizes(env: &Env, name: &str, args: &[Value]) -> Flow<Dims> {
    env.host_all(args)?;
    match args {
        [] => Ok(Dims::scalar()),
        [one] if one.len() == 1 => {
            let n = extent(plain_number(env, one)?)?;
            Ok(Dims::new(&[n, n]))
        }
        [list] => {
            let host = plain(env, list)?;
            if host.is_empty() && host.dims.is_vector() {
                return Ok(Dims::zero());
            }
            if host.is_empty() || host.dims.len() > 2 || !host.dims.is_vector() {
                return fail!("{name} (A): use {name} (size (A)) instead");
            }
            if host.len() > RANK_MAX {
                return fail!("{name}: too many dimensions");
            }
            let extents = (0..host.len()).map(|i| extent(host.data.f64_at(i))).collect::<Flow<Vec<usize>>>()?;
            Ok(Dims::new(&extents))
        }
        many => {
            let extents = many
                .iter()
                .map(|v| match v.len() {
                    1 => extent(plain_number(env, v)?),
                    0 => Ok(0),
                    _ => fail!("{name}: dimensions must be scalar integers"),
                })
                .collect::<Flow<Vec<usize>>>()?;
            Ok(Dims::new(&extents))
        }
    }
}

fn plain(env: &Env, value: &Value) -> Flow<std::sync::Arc<Tensor>> {
    if let Value::Cell(_) | Value::Struct(_) | Value::Function(_) = value {
        return fail!("octave_base_value::array_value(): wrong type argument '{}'", value.class_name());
    }
    env.host(value)
}

fn plain_number(env: &Env, value: &Value) -> Flow<f64> {
    match value {
        Value::Num(x) => Ok(*x),
        other => Ok(plain(env, other)?.data.f64_at(0)),
    }
}

/// Returns the class that an argument names; `None` if it is no char row, or names no array class.
pub fn class_word(value: &Value) -> Option<Class> {
    Class::from_name(std::str::from_utf8(value.as_bytes()?).ok()?)
}

/// Returns a char row, or a cell of char rows, as texts.
pub fn texts(value: &Value) -> Option<Vec<Vec<u8>>> {
    match value {
        Value::Cell(c) => c.items.iter().map(|v| v.as_bytes().map(<[u8]>::to_vec)).collect(),
        Value::Tensor(t) if matches!(*t.data, Data::Char(_)) => t.row_strings(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_messages_have_six_digits() {
        for (x, text) in
            [(1.5, "1.5"), (0.1, "0.1"), (1e10, "1e+10"), (-2.0, "-2"), (123456.5, "123456"), (1e-7, "1e-07")]
        {
            assert_eq!(short(x), text);
        }
    }
}
