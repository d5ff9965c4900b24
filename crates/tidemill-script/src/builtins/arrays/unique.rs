//! Distinct elements and rows (`unique`).
//!
//! In: arrays of any class, cell arrays of strings. Out: the distinct elements in order, and their positions.

use super::order::{self, Distinct, distinct};
use super::sorting::{cell_strings, compare_rows};
use crate::builtins::Outcome;
use crate::builtins::args::is_word;
use crate::builtins::reduce::lanes::pick;
use crate::error::{Flow, fail};
use crate::value::tensor::each_data;
use crate::value::{Dims, Value};
use crate::vm::Interp;

/// The options of `unique`.
struct Asked {
    rows: bool,
    stable: bool,
    last: bool,
    legacy: bool,
}

impl Asked {
    /// Returns the options for finding distinct elements, for this many outputs.
    fn distinct(&self, nargout: usize) -> Distinct {
        Distinct { stable: self.stable, last: self.last || self.legacy, which: nargout > 2 }
    }
}

/// Returns an error for options of `unique` that contradict each other.
fn fits_together(words: &[Value]) -> Flow<()> {
    let given = |name: &str| words.iter().any(|word| is_word(word, name));
    let (ends, orders) = (given("first") || given("last"), given("sorted") || given("stable"));
    if given("first") && given("last") {
        return fail!("unique: cannot specify both \"first\" and \"last\"");
    }
    if given("sorted") && given("stable") {
        return fail!("unique: cannot specify both \"sorted\" and \"stable\"");
    }
    if ends && orders {
        return fail!("unique: cannot specify \"first\"/\"last\" with \"sorted\"/\"stable\"");
    }
    if orders && given("legacy") {
        return fail!("unique: cannot specify \"sorted\" or \"stable\" with \"legacy\"");
    }
    Ok(())
}

pub(super) fn unique(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let env = &interp.env;
    env.host_all(args)?;
    let mut asked = Asked { rows: false, stable: false, last: false, legacy: false };
    for word in &args[1..] {
        match word.as_text().unwrap_or_default().as_str() {
            "rows" => asked.rows = true,
            "stable" => asked.stable = true,
            "last" => asked.last = true,
            "legacy" => asked.legacy = true,
            "first" | "sorted" => {}
            _ => return fail!("unique: invalid option"),
        }
    }
    fits_together(&args[1..])?;
    let x = super::shape::host_value(env, &args[0])?;
    let dims = x.dims();
    let (found, picked) = match &x {
        Value::Cell(_) => {
            let strings = cell_strings("unique: X must be an array or cell array of strings", &x)?;
            let of = |a: usize, b: usize| strings[a].cmp(&strings[b]);
            let found = distinct(strings.len(), asked.distinct(nargout), of, |a, b| strings[a] == strings[b]);
            let n = found.places.len();
            // A cell row gives a row, and all other values give a column.
            let shape = if dims.rows() == 1 && dims.columns() > 1 { Dims::new(&[1, n]) } else { Dims::new(&[n, 1]) };
            let shape = if n == 0 && dims == Dims::zero() { dims.clone() } else { shape };
            let picked = pick(&x, shape, &found.places);
            (found, picked)
        }
        Value::Struct(_) | Value::Function(_) => {
            return fail!("unique: X must be an array or cell array of strings");
        }
        _ if asked.rows => {
            let t = env.host(&x)?;
            if dims.len() > 2 {
                return fail!("unique: X must be a 2-D matrix with \"rows\"");
            }
            let (rows, columns) = (dims.rows(), dims.columns());
            let by: Vec<(usize, bool)> = (0..columns).map(|c| (c, false)).collect();
            let found = each_data!(&*t.data, v => distinct(
                rows,
                asked.distinct(nargout),
                |a, b| compare_rows(v, rows, &by, a, b),
                |a, b| (0..columns).all(|c| v[a + c * rows] == v[b + c * rows]),
            ));
            let places: Vec<usize> =
                (0..columns).flat_map(|c| found.places.iter().map(move |&r| r + c * rows)).collect();
            let picked = pick(&x, Dims::new(&[found.places.len(), columns]), &places);
            (found, picked)
        }
        _ => {
            let t = env.host(&x)?;
            let found = order::distinct_elements(env, &t.data, asked.distinct(nargout))?;
            let n = found.places.len();
            let shape = if dims.rows() == 1 && dims.len() == 2 && dims.columns() > 0 {
                Dims::new(&[1, n])
            } else if dims[..] == [0, 0] {
                dims.clone()
            } else {
                Dims::new(&[n, 1])
            };
            let picked = pick(&x, shape, &found.places);
            (found, picked)
        }
    };
    let Some(picked) = picked else { return fail!("unique: X must be an array or cell array of strings") };
    if nargout < 2 {
        return Ok(picked.into());
    }
    let nothing = found.places.is_empty();
    let places = |v: Vec<f64>| match () {
        _ if nothing => Value::empty(),
        _ if asked.legacy && dims.rows() == 1 => Value::row(v),
        _ => Value::column(v),
    };
    let first = found.places.iter().map(|&at| at as f64 + 1.0).collect();
    if nargout < 3 {
        return Ok(vec![picked, places(first)].into());
    }
    Ok(vec![picked, places(first), places(found.which)].into())
}
