//! Finding: places of nonzero elements, nonzero elements, and places in a sorted table.
//!
//! In: arrays of any class, cell arrays of strings. Out: positions, or the elements that were found.

use super::sorting::cell_strings;
use crate::builtins::Outcome;
use crate::builtins::args::{self, is_word};
use crate::builtins::record::{awaited, record};
use crate::builtins::reduce::field::Ordered;
use crate::builtins::reduce::reductions::{check_array, hosted, on_runtime};
use crate::env::Env;
use crate::error::{Flow, ScriptError, fail};
use crate::value::blocks::BLOCK;
use crate::value::tensor::{each_data, map_data};
use crate::value::{Class, Data, Dims, Lazy, Tensor, Value};
use crate::vm::Interp;
use futures::FutureExt;
use std::sync::Arc;
use tidemill::Array;

/// Returns the dimensions of `n` found elements of an array: a row gives a row, and any other array a column.
fn found_dims(x: &Dims, n: usize) -> Dims {
    if n == 0 && (x.is_scalar() || x[..2] == [0, 0]) {
        Dims::zero()
    } else if x.len() == 2 && x.rows() == 1 && x.columns() != 1 {
        Dims::new(&[1, n])
    } else {
        Dims::new(&[n, 1])
    }
}

/// The number of elements that are searched first if few are wanted: as many as are computed during one round trip.
const FIRST_SEARCH: usize = 1 << 14;

/// The number of elements that are searched for each wanted one.
const SEARCH_FOR_EACH: usize = 64;

/// The factor by which each further search is larger.
const SEARCH_GROWTH: usize = 16;

/// Finds the first or last nonzero elements: at least `limit` of them, or all that there are.
async fn some_nonzero(array: Array, limit: usize, from_end: bool) -> tidemill::Result<Array> {
    let n = array.shape()?.elements();
    let mut len = limit.saturating_mul(SEARCH_FOR_EACH).max(FIRST_SEARCH);
    while len < n / 2 {
        let skipped = if from_end { n - len } else { 0 };
        let found = array.reshape([n]).slice(skipped..skipped + len).nonzero().await?;
        if found.shape()?.elements() >= limit {
            return if skipped == 0 { Ok(found) } else { (found + skipped as i64).checked() };
        }
        len = len.saturating_mul(SEARCH_GROWTH);
    }
    array.nonzero().await
}

/// Awaits the positions (from 0, a column) of the nonzero elements of a runtime array: at least the first, or last,
/// `limit`.
fn nonzero_of(env: &mut Env, l: &Lazy, limit: usize, from_end: bool) -> Flow<Arc<Lazy>> {
    let array = l.array.clone();
    let (pinned, may_fault) = (l.pinned, l.may_fault);
    let found = awaited(env, || {
        Ok(async move {
            let found = some_nonzero(array, limit, from_end).await?;
            Ok(Value::Lazy(Arc::new(Lazy::new(found, Class::Uint32, pinned, may_fault).map_err(ScriptError::from)?)))
        }
        .boxed())
    })?;
    match found {
        Value::Lazy(found) => Ok(found),
        _ => fail!("find: the positions did not arrive"),
    }
}

pub(super) fn find(interp: &mut Interp, args: &[Value], nargout: usize) -> Flow<Outcome> {
    let env = &mut interp.env;
    let x = &args[0];
    check_array("find", x)?;
    let mut limit = usize::MAX;
    if let Some(n) = args.get(1) {
        let n = if n.len() == 1 && !n.is_char() { args::number(env, "find", n)? } else { f64::NAN };
        if !(n >= 0.0 && n == n.trunc()) {
            return fail!("find: N must be a non-negative integer");
        }
        limit = n as usize;
    }
    let from_end = match args.get(2) {
        None => false,
        Some(word) if is_word(word, "first") => false,
        Some(word) if is_word(word, "last") => true,
        Some(_) => return fail!("find: DIRECTION must be \"first\" or \"last\""),
    };
    if let Some(l) = on_runtime(x) {
        let found = nonzero_of(env, l, limit, from_end)?;
        return found_on_runtime(x, l, &found, limit, from_end, nargout);
    }
    let host = hosted(env, x)?;
    let places = places_of_nonzeros(env, &host.data, limit, from_end)?;
    let dims = found_dims(&host.dims, places.len());
    let values = |numbers: Vec<f64>| Value::tensor(Tensor::new(dims.clone(), Data::F64(numbers)));
    if nargout < 2 {
        return Ok(values(places).into());
    }
    let rows = host.dims.rows().max(1) as f64;
    let found = Value::tensor(Tensor::new(dims.clone(), host.data.pick(places.iter().map(|&p| p as usize - 1))));
    let row = values(places.iter().map(|p| (p - 1.0) % rows + 1.0).collect());
    let mut columns = places;
    columns.iter_mut().for_each(|p| *p = ((*p - 1.0) / rows).floor() + 1.0);
    Ok(vec![row, values(columns), found].into())
}

/// Returns the positions (from 1) of the first or last nonzero elements: `limit` of them, or all that there are.
fn places_of_nonzeros(env: &Env, data: &Data, limit: usize, from_end: bool) -> Flow<Vec<f64>> {
    each_data!(data, v => {
        let mut there = 0;
        for block in v.chunks(BLOCK) {
            env.check_halt()?;
            there += block.iter().filter(|x| x.is_true() || x.no_number()).count();
        }
        let mut skipped = if from_end { there.saturating_sub(limit) } else { 0 };
        let count = there.min(limit);
        env.check_host(&[count], size_of::<f64>())?;
        let mut places = Vec::with_capacity(count);
        for (block, elements) in v.chunks(BLOCK).enumerate() {
            env.check_halt()?;
            if places.len() == count {
                break;
            }
            for (k, x) in elements.iter().enumerate() {
                if !(x.is_true() || x.no_number()) {
                    continue;
                }
                if skipped > 0 {
                    skipped -= 1;
                } else if places.len() < count {
                    places.push((block * BLOCK + k) as f64 + 1.0);
                }
            }
        }
        Ok(places)
    })
}

fn found_on_runtime(x: &Value, l: &Lazy, found: &Lazy, limit: usize, from_end: bool, nargout: usize) -> Flow<Outcome> {
    let total = found.dims.elements();
    let kept = total.min(limit);
    let places = match (kept < total, from_end) {
        (false, _) => found.array.clone(),
        (_, false) => found.array.slice((0..kept, ..)),
        (_, true) => found.array.slice((total - kept..total, ..)),
    };
    let dims = found_dims(&l.dims, kept);
    if kept == 0 {
        let none = |class: Class| Value::tensor(Tensor::zeros(class, dims.clone()));
        return Ok(vec![none(Class::Double), none(Class::Double), none(l.class)].into());
    }
    let shaped = |a: Array, class: Class| record(a.reshape(&dims[..]), class, &[x]);
    let numbers = places.cast::<f64>();
    if nargout < 2 {
        return Ok(shaped(numbers + 1.0, Class::Double)?.into());
    }
    let rows = l.dims.rows() as f64;
    let outs = vec![
        shaped(numbers.modulo(rows) + 1.0, Class::Double)?,
        shaped((&numbers / rows).floor() + 1.0, Class::Double)?,
        shaped(l.array.take(&places), l.class)?,
    ];
    Ok(outs.into())
}

pub(super) fn nonzeros(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &mut interp.env;
    let x = &args[0];
    check_array("find", x)?;
    if let Some(l) = on_runtime(x) {
        let found = nonzero_of(env, l, usize::MAX, false)?;
        return Ok(record(l.array.take(&found.array), l.class, &[x])?.into());
    }
    let host = hosted(env, x)?;
    let data = map_data!(&*host.data, v => v.iter().copied().filter(|x| x.is_true() || x.no_number()).collect());
    Ok(Value::tensor(Tensor::new(Dims::new(&[data.len(), 1]), data)).into())
}

/// The options of `lookup`.
#[derive(Clone, Copy, Default)]
struct LookupOptions {
    /// Values before the table belong to its first interval.
    left: bool,
    /// Values behind the table belong to its last interval.
    right: bool,
    /// The result is 0 if the table does not contain the value.
    exact: bool,
    /// The result only tells whether the table contains the value.
    is_there: bool,
}

impl LookupOptions {
    fn of(value: Option<&Value>) -> Flow<LookupOptions> {
        let mut options = LookupOptions::default();
        let Some(value) = value else { return Ok(options) };
        let Some(word) = value.as_text() else { return fail!("lookup: OPT must be a string") };
        for letter in word.chars() {
            match letter {
                'l' => options.left = true,
                'r' => options.right = true,
                'm' => options.exact = true,
                'b' => options.is_there = true,
                other => return fail!("lookup: unrecognized option: {other}"),
            }
        }
        if options.exact && options.is_there {
            return fail!("lookup: only one of m or b can be specified");
        }
        Ok(options)
    }

    /// Turns positions into the result for a table of `n` values. `same` tells whether the i-th value equals the
    /// table's value at a position.
    fn answer(self, dims: Dims, places: &[usize], n: usize, same: impl Fn(usize, usize) -> bool) -> Value {
        let found = |(i, place): (usize, &usize)| *place > 0 && same(i, place - 1);
        let numbered = places.iter().enumerate();
        let data = if self.is_there {
            Data::Bool(numbered.map(found).collect())
        } else if self.exact {
            Data::F64(numbered.map(|each| if found(each) { *each.1 as f64 } else { 0.0 }).collect())
        } else {
            let last = if self.right { n as f64 - 1.0 } else { n as f64 };
            let first = if self.left { 1.0 } else { f64::NEG_INFINITY };
            Data::F64(places.iter().map(|&place| (place as f64).min(last).max(first)).collect())
        };
        Value::tensor(Tensor::new(dims, data))
    }
}

pub(super) fn lookup(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    env.host_all(args)?;
    let options = LookupOptions::of(args.get(2))?;
    if let Value::Cell(_) = &args[0] {
        return lookup_text(&args[0], &args[1], options);
    }
    let (table, y) = (env.host(&args[0])?, env.host(&args[1])?);
    let (table, wanted) = (table.data.to_f64(), y.data.to_f64());
    let down = table.len() > 1 && table[0] > table[table.len() - 1];
    let place = |y: f64| match down {
        _ if y.is_nan() => table.len(),
        true => table.partition_point(|t| *t >= y),
        false => table.partition_point(|t| *t <= y),
    };
    let places: Vec<usize> = wanted.iter().map(|y| place(*y)).collect();
    let same = |i: usize, at: usize| wanted[i] == table[at] || wanted[i].is_nan() && table[at].is_nan();
    Ok(options.answer(y.dims.clone(), &places, table.len(), same).into())
}

fn lookup_text(table: &Value, y: &Value, options: LookupOptions) -> Flow<Outcome> {
    let table = cell_strings("lookup: TABLE must be a cell array of strings", table)?;
    if options.left || options.right {
        return fail!("lookup: l, r are not recognized for string lookups");
    }
    let (dims, wanted) = match (y, y.as_bytes()) {
        (Value::Cell(c), _) => (c.dims.clone(), cell_strings("lookup: Y must be a cell array of strings", y)?),
        (_, Some(s)) => (Dims::scalar(), vec![s.to_vec()]),
        _ => return fail!("lookup: Y must be a string"),
    };
    let down = table.len() > 1 && table[0] > table[table.len() - 1];
    let place = |s: &Vec<u8>| table.partition_point(|t| if down { t >= s } else { t <= s });
    let places: Vec<usize> = wanted.iter().map(place).collect();
    Ok(options.answer(dims, &places, table.len(), |i, at| wanted[i] == table[at]).into())
}
