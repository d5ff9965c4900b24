//! Functions that move elements without computing on them: permutations, shifts, mirror images, quarter turns.
//!
//! In: values of any class. Out: the same elements in another order. Arrays on the runtime are moved there, by views
//! that fuse into the ops that read them.

use super::shape::{reshaped, without_range};
use crate::builtins::Outcome;
use crate::builtins::args::{self, number};
use crate::builtins::record::record;
use crate::builtins::reduce::lanes::{Axis, pick_along};
use crate::env::Env;
use crate::error::{Flow, fail, fail_id};
use crate::value::lazy::with_axes;
use crate::value::{Dims, Value};
use crate::vm::Interp;

/// Permutes the dimensions: dimension `d` of the result is dimension `perm[d]`. `perm` names each dimension once, and
/// may go beyond the rank.
pub fn permuted_value(env: &Env, value: &Value, perm: &[usize]) -> Flow<Value> {
    let dims = value.dims();
    if perm.iter().enumerate().all(|(d, &p)| d == p) {
        return Ok(value.clone());
    }
    let out = Dims::new(&perm.iter().map(|&p| dims.extent(p)).collect::<Vec<_>>());
    if let Value::Lazy(l) = value {
        return record(l.array.permute(perm), l.class, &[value]);
    }
    picked(env, value, out, &Axis::permuted(&dims, perm))
}

/// Does the same as [`pick_along`], with an error for values without elements.
pub(super) fn picked(env: &Env, value: &Value, dims: Dims, axes: &[Axis<'_>]) -> Flow<Value> {
    env.check_host(&dims, value.class().bytes() * (1 + usize::from(value.is_complex())))?;
    match pick_along(value, dims, axes) {
        Some(value) => Ok(value),
        None => fail!("wrong type argument '{}'", value.class_name().replace("function_handle", "function handle")),
    }
}

pub(super) fn permute(interp: &mut Interp, args: &[Value], inverse: bool) -> Flow<Outcome> {
    let name = if inverse { "ipermute" } else { "permute" };
    if args[1].is_char() {
        return fail!("invalid conversion from string to real N-D array");
    }
    let (rank, list) = (args[0].dims().len(), interp.env.host(&args[1])?);
    if list.len() < rank {
        return fail_id!("Octave:invalid-fun-call", "Invalid call to {name}");
    }
    let mut perm = Vec::with_capacity(list.len());
    let mut is_taken = vec![false; list.len()];
    for i in 0..list.len() {
        let p = list.data.f64_at(i).trunc();
        if !(p >= 1.0 && p <= list.len() as f64) {
            return fail!("{name}: permutation vector contains an invalid element");
        }
        let p = p as usize - 1;
        if std::mem::replace(&mut is_taken[p], true) {
            return fail!("{name}: permutation vector cannot contain identical elements");
        }
        perm.push(p);
    }
    if inverse {
        let mut back = vec![0; perm.len()];
        perm.iter().enumerate().for_each(|(d, &p)| back[p] = d);
        perm = back;
    }
    Ok(without_range(permuted_value(&interp.env, &args[0], &perm)?).into())
}

pub(super) fn shiftdim(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let dims = args[0].dims();
    let n = match args.get(1) {
        None => dims.first_non_singleton() as i64,
        Some(v) if v.len() == 1 => {
            let n = number(&interp.env, "shiftdim", v)?;
            if n != n.trunc() || n.abs() > 1e3 {
                return fail!("shiftdim: N must be a scalar integer");
            }
            n as i64
        }
        Some(_) => return fail!("shiftdim: N must be a scalar integer"),
    };
    let rank = dims.len();
    let value = if n < 0 {
        let mut extents = vec![1; n.unsigned_abs() as usize];
        extents.extend_from_slice(&dims);
        reshaped(&args[0], Dims::new(&extents))?
    } else {
        let turn = n as usize % rank;
        let perm: Vec<usize> = (0..rank).map(|d| (d + turn) % rank).collect();
        permuted_value(&interp.env, &args[0], &perm)?
    };
    Ok(vec![value, Value::Num(n as f64)].into())
}

pub(super) fn circshift(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let x = &args[0];
    interp.env.host_all(&args[1..])?;
    let dims = x.dims();
    if x.is_empty() {
        return Ok(x.clone().into());
    }
    let list = interp.env.host(&args[1])?;
    let mut shifts = vec![0i64; dims.len()];
    let whole = |v: f64| match v == v.trunc() && v.abs() < 9.2e18 {
        true => Ok(v as i64),
        false => fail!("circshift: all values of N must be integers"),
    };
    if let Some(d) = args.get(2).filter(|d| !d.is_empty()) {
        let d = number(&interp.env, "circshift", d)?;
        if list.len() != 1 {
            return fail!("circshift: N must be a vector, no longer than the number of dimensions in X");
        }
        let shift = whole(list.data.f64_at(0))?;
        if !(d >= 0.0 && d == d.trunc()) {
            return fail!("circshift: DIM must be a valid dimension");
        }
        if let Some(slot) = (d as usize).checked_sub(1).and_then(|d| shifts.get_mut(d)) {
            *slot = shift;
        }
    } else if list.len() == 1 {
        shifts[dims.first_non_singleton()] = whole(list.data.f64_at(0))?;
    } else {
        if !list.dims.is_vector() || list.len() > dims.len() {
            return fail!("circshift: N must be a vector, no longer than the number of dimensions in X");
        }
        for i in 0..list.len() {
            shifts[i] = whole(list.data.f64_at(i))?;
        }
    }
    if let Value::Lazy(l) = x {
        return Ok(record(with_axes(&l.array, shifts.len()).circshift(&shifts), l.class, &[x])?.into());
    }
    let first = |d: usize| (-shifts[d]).rem_euclid(dims[d].max(1) as i64) as usize;
    let firsts: Vec<usize> = (0..dims.len()).map(first).collect();
    let at = |d: usize, k: usize| if k < dims[d] - firsts[d] { k + firsts[d] } else { k + firsts[d] - dims[d] };
    let value = picked(&interp.env, x, dims.clone(), &Axis::mapped(&dims, &dims, &at))?;
    Ok(still_permutation(x, value).into())
}

/// Marks the result as a permutation matrix if the rows or columns of one were reordered.
fn still_permutation(x: &Value, moved: Value) -> Value {
    if x.is_permutation() || x.is_identity() { moved.permutation() } else { moved }
}

/// Reverses the elements along these dimensions.
pub fn flipped(env: &Env, x: &Value, over: &[usize]) -> Flow<Value> {
    let dims = x.dims();
    if let Value::Lazy(l) = x {
        let array = over.iter().fold(l.array.clone(), |a, &d| if d < dims.len() { a.flip(d) } else { a });
        return record(array, l.class, &[x]);
    }
    let at = |d: usize, k: usize| if over.contains(&d) { dims[d] - 1 - k } else { k };
    let value = picked(env, x, dims.clone(), &Axis::mapped(&dims, &dims, &at))?;
    Ok(still_permutation(x, value))
}

pub(super) fn flip(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let d = match args.get(1) {
        None => args[0].dims().first_non_singleton(),
        Some(d) => args::dim(&interp.env, d, |_| "flip: DIM must be a positive integer".to_string())?,
    };
    Ok(flipped(&interp.env, &args[0], &[d])?.into())
}

pub(super) fn rot90(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let k = quarter_turns(&interp.env, "rot90: K must be a single real integer", args.get(1))?;
    let value = turned(&interp.env, &args[0], k, [0, 1])?;
    Ok(still_permutation(&args[0], value).into())
}

fn quarter_turns(env: &Env, message: &str, k: Option<&Value>) -> Flow<u8> {
    let Some(k) = k else { return Ok(1) };
    let k = if k.len() == 1 && !k.is_complex() { number(env, "rot90", k)? } else { f64::NAN };
    if k == k.trunc() && k.is_finite() { Ok(k.rem_euclid(4.0) as u8) } else { fail!("{message}") }
}

fn turned(env: &Env, x: &Value, k: u8, plane: [usize; 2]) -> Flow<Value> {
    let rank = x.dims().len().max(plane[0].max(plane[1]) + 1);
    let mut perm: Vec<usize> = (0..rank).collect();
    perm.swap(plane[0], plane[1]);
    match k {
        0 => Ok(x.clone()),
        1 => flipped(env, &permuted_value(env, x, &perm)?, &[plane[0]]),
        2 => flipped(env, x, &plane),
        _ => permuted_value(env, &flipped(env, x, &[plane[0]])?, &perm),
    }
}

pub(super) fn rotdim(interp: &mut Interp, args: &[Value], _: usize) -> Flow<Outcome> {
    let env = &interp.env;
    let k = quarter_turns(env, "rotdim: N must be a scalar integer", args.get(1))?;
    let dims = args[0].dims();
    let plane = match args.get(2) {
        Some(plane) => {
            let plane = env.host(plane)?;
            let wrong = "rotdim: PLANE must be a 2 element integer vector defining a valid PLANE";
            if plane.len() != 2 {
                return fail!("{wrong}");
            }
            let at = |i: usize| plane.data.f64_at(i);
            let valid = |v: f64| v >= 1.0 && v == v.trunc() && v <= dims.len() as f64;
            if !valid(at(0)) || !valid(at(1)) || at(0) == at(1) {
                return fail!("{wrong}");
            }
            [at(0) as usize - 1, at(1) as usize - 1]
        }
        None => {
            let wide: Vec<usize> = (0..dims.len()).filter(|&d| dims[d] != 1).collect();
            match wide[..] {
                [a, b, ..] => [a, b],
                [a] if a > 0 => [0, a],
                _ => [0, 1],
            }
        }
    };
    Ok(turned(env, &args[0], k, plane)?.into())
}
