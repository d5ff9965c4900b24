//! Targets that take several values: `[c{1:2}] = f ()`, `[s.x] = deal (0)`.
//!
//! Must hold: the number of values that a target takes is known before they are computed.

use super::grid::{Grid, writing};
use super::read::on_host;
use super::subscript::Subscripts;
use super::{Access, assign, brace, field, paren};
use crate::env::Env;
use crate::error::{Flow, Stop, fail};
use crate::value::{Dims, Value};
use smallvec::SmallVec;

/// Returns how many values `target<steps>` takes.
///
/// # Errors
/// Subscripts that are no positive integers; a need.
pub fn places(env: &mut Env, target: Option<&Value>, steps: &[Access]) -> Flow<usize> {
    match steps {
        [before @ .., Access::Brace(subscripts)] => {
            let dims = found(env, target, before)?.map_or_else(Dims::zero, |v| v.dims());
            Ok(chosen(env, &dims, subscripts)?.0.iter().product())
        }
        [before @ .., Access::Paren(subscripts), Access::Field(_)] => {
            let dims = found(env, target, before)?.map_or_else(Dims::zero, |v| v.dims());
            Ok(chosen(env, &dims, subscripts)?.0.iter().product())
        }
        [before @ .., Access::Field(_)] => Ok(match found(env, target, before)? {
            Some(Value::Struct(array)) => array.len(),
            _ => 1,
        }),
        _ => Ok(1),
    }
}

/// Does `[target<steps>] = values`: each place of the target takes one of the values.
///
/// # Errors
/// As [`assign`]; another number of values than the target has places.
pub fn assign_list(env: &mut Env, target: &mut Option<Value>, steps: &[Access], values: Vec<Value>) -> Flow<()> {
    if places(env, target.as_ref(), steps)? != values.len() {
        return fail!("some elements undefined in argument list");
    }
    match steps {
        [before @ .., Access::Brace(subscripts)] => {
            let dims = found(env, target.as_ref(), before)?.map_or_else(Dims::zero, |v| v.dims());
            let (lens, _) = chosen(env, &dims, subscripts)?;
            let mut steps = before.to_vec();
            steps.push(Access::Paren(subscripts.clone()));
            let dims = if lens.len() == 1 { Dims::new(&[1, lens[0]]) } else { Dims::new(&lens) };
            assign(env, target, &steps, Value::cell(dims, values))
        }
        [before @ .., Access::Paren(subscripts), name @ Access::Field(_)] => {
            let dims = found(env, target.as_ref(), before)?.map_or_else(Dims::zero, |v| v.dims());
            let (lens, known) = chosen(env, &dims, subscripts)?;
            let each = Grid::new(&lens, lens.iter().map(|_| super::subscript::Subscript::colon()).collect());
            for (value, place) in values.into_iter().zip(each.positions()) {
                let one = coordinates(place, &lens).zip(&known).map(|(i, s)| Value::Num(s.place(i) as f64 + 1.0));
                let mut steps = before.to_vec();
                steps.push(Access::Paren(one.collect()));
                steps.push(name.clone());
                assign(env, target, &steps, value)?;
            }
            Ok(())
        }
        [before @ .., name @ Access::Field(_)] if values.len() != 1 => {
            for (i, value) in values.into_iter().enumerate() {
                let mut steps = before.to_vec();
                steps.push(Access::Paren(smallvec::smallvec![Value::Num(i as f64 + 1.0)]));
                steps.push(name.clone());
                assign(env, target, &steps, value)?;
            }
            Ok(())
        }
        _ => match values.into_iter().next() {
            Some(value) => assign(env, target, steps, value),
            None => fail!("some elements undefined in argument list"),
        },
    }
}

/// Returns the value at the end of the steps; `None` if they lead to no value yet.
fn found(env: &mut Env, target: Option<&Value>, steps: &[Access]) -> Flow<Option<Value>> {
    let mut value = target.cloned();
    for step in steps {
        let Some(base) = value else { return Ok(None) };
        let next = match step {
            Access::Paren(subscripts) => paren(env, &base, subscripts).map(Some),
            Access::Brace(subscripts) => brace(env, &base, subscripts).map(|v| v.into_iter().next()),
            Access::Field(name) => field(&base, name).map(|v| v.into_iter().next()),
        };
        value = match next {
            Ok(value) => value,
            Err(Stop::Error(_)) => None,
            Err(stop) => return Err(stop),
        };
    }
    Ok(value)
}

/// Resolves subscripts into a container, which may grow. Returns the number of places along each.
fn chosen(env: &mut Env, dims: &Dims, subscripts: &[Value]) -> Flow<(SmallVec<[usize; 3]>, Subscripts)> {
    let known = on_host(env, subscripts)?;
    let writing = writing(dims, known.clone(), &Dims::scalar())?;
    Ok((writing.lens(), known))
}

fn coordinates(place: usize, lens: &[usize]) -> impl Iterator<Item = usize> {
    let mut rest = place;
    lens.iter().map(move |&n| {
        let i = rest % n.max(1);
        rest /= n.max(1);
        i
    })
}
