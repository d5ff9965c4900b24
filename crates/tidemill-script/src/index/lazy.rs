//! Subscripts into arrays of the runtime, and arrays of the runtime as subscripts. They are recorded and not computed
//! here.
//!
//! Reading through ranges is a view, through lists a `take`, through masks a `compress` (whose length is awaited). Must
//! hold: nothing waits; if the host has to do the work, it asks for the values (`Need::Host`). An array whose small
//! parts are read or written again and again is gathered to the host as a whole, unless it is pinned.

use super::grid::read_dims;
use super::read::on_host;
use super::subscript::{Places, Position, Resolved, Subscript, Subscripts, linear_dims, mask_dims, resolve};
use crate::env::Env;
use crate::error::{Flow, Need, ScriptError, Stop};
use crate::value::lazy::{lift, with_axes};
use crate::value::{Class, Data, Dims, Lazy, Pinned, Tensor, Value};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tidemill::{Array, DType, Shape, SliceArg, step};

/// The most elements of a filled array that the host makes as soon as a part of it is read and the host has written
/// into it.
const FILLED_ELEMENTS_MAX: usize = 1 << 22;

/// Subscripts, some of which may be on the runtime.
pub enum LazySubscripts {
    /// All of them are known on the host.
    Host(Subscripts),
    /// At least one of them is on the runtime.
    Mixed(SmallVec<[Resolved; 3]>),
}

/// Turns values into subscripts, without waiting.
///
/// # Errors
/// Values that are no positive integers.
pub fn subscripts(values: &[Value]) -> Flow<LazySubscripts> {
    let count = values.len();
    let resolved = values.iter().enumerate().map(|(index, v)| resolve(v, Position { index, count }));
    let resolved = resolved.collect::<Flow<SmallVec<[Resolved; 3]>>>()?;
    if resolved.iter().any(|r| matches!(r, Resolved::Lazy(_))) {
        return Ok(LazySubscripts::Mixed(resolved));
    }
    let host = resolved.into_iter().filter_map(|r| match r {
        Resolved::Host(subscript) => Some(subscript),
        Resolved::Lazy(_) => None,
    });
    Ok(LazySubscripts::Host(host.collect()))
}

/// The outcome of a read.
pub enum Read {
    /// The part that the subscripts name.
    Done(Value),
    /// The host has to read this value through these subscripts.
    Host(Value, Subscripts),
}

/// Whether the runtime can hold an array of this class and rank.
pub(super) fn fits(class: Class, dims: &Dims) -> bool {
    class.dtype().is_some() && dims.len() <= Shape::RANK_MAX
}

/// Reads a part of `base`, if it or a subscript is on the runtime. `values` are the subscripts as they were given.
///
/// # Errors
/// Subscripts beyond the array; a need.
pub fn read(env: &mut Env, base: &Value, subscripts: LazySubscripts, values: &[Value]) -> Flow<Read> {
    if !fits(base.class(), &base.dims()) || base.is_complex() || values.len() > Shape::RANK_MAX {
        let subscripts = on_host(env, values)?;
        return Ok(Read::Host(in_host_memory(env, base)?, subscripts));
    }
    match subscripts {
        LazySubscripts::Host(subscripts) => read_known(env, base, subscripts),
        LazySubscripts::Mixed(resolved) => read_mixed(env, base, resolved, values),
    }
}

/// Returns the value in host memory.
fn in_host_memory(env: &Env, value: &Value) -> Flow<Value> {
    Ok(match value {
        Value::Lazy(_) => Value::Tensor(env.host(value)?),
        other => other.clone(),
    })
}

fn read_known(env: &mut Env, base: &Value, subscripts: Subscripts) -> Flow<Read> {
    let Value::Lazy(lazy) = base else { return Ok(Read::Host(base.clone(), subscripts)) };
    let (dims, extents) = read_dims(&lazy.dims, &subscripts)?;
    let n = dims.elements();
    if n == 0 {
        return Ok(Read::Done(Value::tensor(Tensor::zeros(lazy.class, dims))));
    }
    let small = n <= env.part_elements_max().max(1);
    if let (true, false, Some(filled)) = (small, lazy.pinned.any(), &lazy.filled) {
        if filled.writes.is_empty() {
            // The array holds the same number everywhere, so the runtime is not asked.
            let data = Data::filled(lazy.class, filled.value, n);
            return Ok(Read::Done(Value::tensor(Tensor::new(dims, data))));
        }
        // The host wrote this array, so it reads it, too: a loop computes each part from the one before.
        if lazy.dims.elements() <= FILLED_ELEMENTS_MAX {
            return Ok(Read::Host(in_host_memory(env, base)?, subscripts));
        }
    }
    if !lazy.pinned.any() && small && (lazy.host.get().is_some() || lazy.touch(n)) {
        return Ok(Read::Host(in_host_memory(env, base)?, subscripts));
    }
    let array = take(env, &lazy.array, &extents, &subscripts, &dims)?;
    Ok(Read::Done(Lazy::new(array, lazy.class, lazy.pinned, lazy.may_fault)?.value()))
}

/// Records the part of an array that subscripts name, which are within its extents.
fn take(env: &Env, array: &Array, extents: &[usize], subscripts: &[Subscript], dims: &Dims) -> Flow<Array> {
    let mut part = array.reshape(extents);
    if let [Subscript { places: Places::List(list), .. }] = subscripts {
        return Ok(part.take(&places_array(env, list, dims)?).checked()?);
    }
    let slices: SmallVec<[SliceArg; 4]> = subscripts.iter().map(|s| slice(&s.places)).collect();
    part = part.slice(&slices[..]);
    for (d, subscript) in subscripts.iter().enumerate() {
        if let Places::List(list) = &subscript.places {
            part = part.take_dim(d, &places_array(env, list, &Dims::new(&[list.len(), 1]))?);
        }
    }
    Ok(part.reshape(&dims[..]).checked()?)
}

/// Returns a subscript as a slice. A list becomes the whole dimension, and is applied separately.
pub(super) fn slice(places: &Places) -> SliceArg {
    match places {
        Places::Colon | Places::List(_) => SliceArg::ALL,
        Places::One(place) => SliceArg::from(*place),
        Places::Range { first, step: by, len } => {
            let last = first.wrapping_add_signed(by.wrapping_mul(*len as isize - 1));
            step(*first.min(&last)..first.max(&last) + 1, *by as i64)
        }
    }
}

/// Uploads known positions as an array of indices.
pub(super) fn places_array(env: &Env, list: &[usize], dims: &Dims) -> Flow<Array> {
    let list: Vec<u32> = list.iter().map(|&place| u32::try_from(place).unwrap_or(u32::MAX)).collect();
    Ok(env.session.from_vec(list, &dims[..])?)
}

/// The op name in faults of subscripts that are no positive integers.
pub const SUBSCRIPTS: &str = "index";
/// The op name in faults of subscripts beyond an array.
pub const BEYOND: &str = "index beyond";

/// Turns an index array of the runtime, which counts from 1, into positions below `extent` in an array of these
/// dimensions. An index that is no positive integer, or lies beyond, makes the result faulty.
fn places_of(index: &Lazy, extent: usize, dims: &Dims) -> Array {
    let x = &index.array;
    let counts = x.ge(1i64);
    let holds = match index.class {
        Class::Double | Class::Single => counts & x.floor().eq_to(x),
        _ => counts,
    };
    known_places_of(index)
        .ensure_for(BEYOND, &!x.gt(extent as i64), format!("out of bound {extent} (dimensions are {dims})"))
        .ensure_for(SUBSCRIPTS, &holds, "subscripts must be either integers 1 to (2^63)-1 or logicals")
}

/// Does the same for indices that are known to be valid.
pub(super) fn known_places_of(index: &Lazy) -> Array {
    index.array.cast_to(DType::I32) - 1i64
}

fn touches_of(value: &Value) -> u32 {
    if let Value::Lazy(lazy) = value { lazy.touches.load(Ordering::Relaxed) } else { 0 }
}

fn read_mixed(env: &mut Env, base: &Value, resolved: SmallVec<[Resolved; 3]>, values: &[Value]) -> Flow<Read> {
    let read_on_host = |env: &mut Env| Ok(Read::Host(in_host_memory(env, base)?, on_host(env, values)?));
    let dims = base.dims();
    if dims.elements() == 0 || dims.elements() > i32::MAX as usize {
        return read_on_host(env);
    }
    if let [Resolved::Lazy(index)] = &resolved[..] {
        let n = index.dims.elements();
        if let Value::Lazy(lazy) = base
            && !lazy.pinned.any()
            && !index.pinned.any()
            && n <= env.part_elements_max()
            && env.awaited.is_empty()
            && lazy.touch(n)
        {
            env.host_all(values.iter().chain([base]))?;
            return read_on_host(env);
        }
        let touches = touches_of(base);
        let read = match index.class {
            Class::Logical if index.dims.elements() <= dims.elements() => compress(env, base, index).map(Read::Done),
            Class::Logical => read_on_host(env),
            _ => {
                let subscript = Subscript { places: Places::List(Vec::new()), dims: index.dims.clone(), extent: 0 };
                let out = linear_dims(&dims, &subscript, index.dims.elements());
                let array =
                    lift(env, base, base.class())?.take(&places_of(index, dims.elements(), &dims)).reshape(&out[..]);
                derived(array, base, index, true).map(Read::Done)
            }
        };
        // A part was used, not the whole array, so `lift` must not reset the count of touches.
        if let Value::Lazy(lazy) = base {
            lazy.touches.store(touches, Ordering::Relaxed);
        }
        return read;
    }
    // Masks among several subscripts are short, and their lengths have to be known.
    let masks =
        values.iter().zip(&resolved).filter(|(_, r)| matches!(r, Resolved::Lazy(l) if l.class == Class::Logical));
    env.host_all(masks.map(|(v, _)| v))?;
    let known: LazySubscripts = subscripts(values)?;
    let LazySubscripts::Mixed(resolved) = known else { return read_again(env, base, known, values) };
    read_axes(env, base, &resolved)
}

fn read_again(env: &mut Env, base: &Value, known: LazySubscripts, values: &[Value]) -> Flow<Read> {
    match known {
        LazySubscripts::Host(subscripts) => read_known(env, base, subscripts),
        LazySubscripts::Mixed(_) => Ok(Read::Host(in_host_memory(env, base)?, on_host(env, values)?)),
    }
}

/// Reads through several subscripts, some of which are on the runtime: one dimension after the other.
fn read_axes(env: &mut Env, base: &Value, resolved: &[Resolved]) -> Flow<Read> {
    let known: Subscripts = resolved
        .iter()
        .map(|r| match r {
            Resolved::Host(subscript) => subscript.clone(),
            Resolved::Lazy(_) => Subscript::colon(),
        })
        .collect();
    let (_, extents) = read_dims(&base.dims(), &known)?;
    let lens: SmallVec<[usize; 3]> = resolved
        .iter()
        .zip(known.iter().zip(&extents))
        .map(|(r, (s, &n))| match r {
            Resolved::Host(_) => s.len(n),
            Resolved::Lazy(index) => index.dims.elements(),
        })
        .collect();
    if lens.contains(&0) || extents.contains(&0) {
        return Ok(Read::Done(Value::tensor(Tensor::zeros(base.class(), Dims::new(&lens)))));
    }
    let part: SmallVec<[usize; 3]> = known.iter().zip(&extents).map(|(s, &n)| s.len(n)).collect();
    let mut array = take(env, &lift(env, base, base.class())?, &extents, &known, &Dims::new(&part))?;
    array = with_axes(&array, extents.len());
    let mut result: Option<&Arc<Lazy>> = None;
    for (d, r) in resolved.iter().enumerate() {
        if let Resolved::Lazy(index) = r {
            array = array.take_dim(d, &places_of(index, extents[d], &base.dims()));
            result = Some(index);
        }
    }
    let array = array.reshape(&Dims::new(&lens)[..]);
    match result {
        Some(index) => derived(array, base, index, true).map(Read::Done),
        None => Ok(Read::Done(Lazy::new(array, base.class(), base.pinned(), false)?.value())),
    }
}

/// Returns why an array made of both stays on the runtime, and whether it may fault.
fn flags(base: &Value, other: &Lazy) -> (Pinned, bool) {
    match base {
        Value::Lazy(lazy) => (lazy.pinned | other.pinned, lazy.may_fault || other.may_fault),
        _ => (other.pinned, other.may_fault),
    }
}

/// Makes the value of an array that was computed from `base` and `other`, with the class of `base`.
pub(super) fn derived(array: Array, base: &Value, other: &Lazy, may_fault: bool) -> Flow<Value> {
    let (pinned, faulty) = flags(base, other);
    Ok(Lazy::new(array, base.class(), pinned, may_fault || faulty)?.value())
}

/// Reads `base(mask)`. The number of true elements is awaited.
fn compress(env: &mut Env, base: &Value, mask: &Arc<Lazy>) -> Flow<Value> {
    let (n, class) = (mask.dims.elements(), base.class());
    let found = match env.take_awaited() {
        Some(Value::Lazy(found)) if found.class == class => found,
        _ => {
            let column = lift(env, base, class)?.reshape([base.len()]).slice(0..n);
            let future = column.compress(&mask.array.reshape([n]));
            let (pinned, may_fault) = flags(base, mask);
            env.waits_for([base, &Value::Lazy(mask.clone())]);
            return Err(wait(async move { Ok(Lazy::new(future.await?, class, pinned, may_fault)?.value()) }));
        }
    };
    let count = found.dims.elements();
    let subscript = Subscript { places: Places::List(Vec::new()), dims: mask_dims(&mask.dims, count), extent: 0 };
    let dims = linear_dims(&base.dims(), &subscript, count);
    if count == 0 {
        return Ok(Value::tensor(Tensor::zeros(class, dims)));
    }
    let array = found.array.reshape(&dims[..]);
    Ok(Lazy::new(array, class, found.pinned, found.may_fault)?.value())
}

pub(super) fn wait(future: impl Future<Output = Result<Value, ScriptError>> + Send + 'static) -> Stop {
    Stop::Need(Need::Future(Box::pin(future)))
}

/// Returns an array of the runtime without the deleted elements. `keep` are the positions that remain, along dimension
/// `d` of the array seen with `extents`.
pub fn keep(env: &Env, lazy: &Lazy, extents: &[usize], d: usize, keep: Vec<usize>, dims: &Dims) -> Flow<Value> {
    if dims.elements() == 0 {
        return Ok(Value::tensor(Tensor::zeros(lazy.class, dims.clone())));
    }
    let kept = Subscript::list(keep, Dims::scalar());
    let subscripts: Subscripts =
        (0..extents.len()).map(|e| if e == d { kept.clone() } else { Subscript::colon() }).collect();
    let array = take(env, &lazy.array, extents, &subscripts, dims)?;
    Ok(Lazy::new(array, lazy.class, lazy.pinned, lazy.may_fault)?.value())
}

/// Does a deletion by a mask of the runtime: returns the elements for which it is false.
///
/// # Errors
/// A need.
pub fn without(env: &mut Env, base: &Value, mask: &Arc<Lazy>) -> Flow<Value> {
    let rest = Lazy::new(!&mask.array, Class::Logical, mask.pinned, mask.may_fault)?;
    compress(env, base, &Arc::new(rest))
}
