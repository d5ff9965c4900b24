//! Subscripts into arrays of the runtime, and arrays of the runtime as subscripts: recorded, not computed.
//!
//! Reading through ranges is a view, through lists a `take`, through masks a `compress` (whose length is awaited).
//! Must hold: nothing waits; where the host has to do the work, its values are asked for (`Need::Host`). An array of
//! which single elements are read or written again and again comes to the host as a whole, unless it is pinned.

use super::grid::{Writing, read_dims, writing};
use super::read::on_host;
use super::subscript::{Places, Position, Resolved, Subscript, Subscripts, along, linear_dims, mask_dims, resolve};
use crate::script::env::Env;
use crate::script::error::{Flow, Need, ScriptError, Stop, fail_id};
use crate::script::value::lazy::lift;
use crate::script::value::{Class, Dims, Lazy, Tensor, Value};
use crate::{Array, DType, Shape, SliceArg, step};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How often single elements of an array are read or written on the runtime before it comes to the host.
const TOUCHES_MAX: u32 = 8;

/// Subscripts, some of which may lie on the runtime.
pub enum LazySubscripts {
    /// All known here.
    Host(Subscripts),
    /// At least one is on the runtime.
    Mixed(SmallVec<[Resolved; 3]>),
}

/// What values name as subscripts; nothing is awaited.
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

/// How a value is read.
pub enum Read {
    /// This is what the subscripts name.
    Done(Value),
    /// The host reads this value through these subscripts.
    Host(Value, Subscripts),
}

/// Whether the runtime can hold an array of this class and rank.
fn fits(class: Class, dims: &Dims) -> bool {
    class.dtype().is_some() && dims.len() <= Shape::RANK_MAX
}

/// Reads `base` where it or a subscript lies on the runtime. `values` are the subscripts as they were given.
///
/// # Errors
/// Subscripts beyond the array; a need.
pub fn read(env: &mut Env, base: &Value, subscripts: LazySubscripts, values: &[Value]) -> Flow<Read> {
    if !fits(base.class(), &base.dims()) || base.is_complex() || values.len() > Shape::RANK_MAX {
        let subscripts = on_host(env, values)?;
        return Ok(Read::Host(at_home(env, base)?, subscripts));
    }
    match subscripts {
        LazySubscripts::Host(subscripts) => read_known(env, base, subscripts),
        LazySubscripts::Mixed(resolved) => read_mixed(env, base, resolved, values),
    }
}

/// The value in host memory.
fn at_home(env: &Env, value: &Value) -> Flow<Value> {
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
    let here = lazy.host.get().is_some() && n <= env.options.host_elements_max.max(1);
    let touched = n == 1 && (here || lazy.touches.fetch_add(1, Ordering::Relaxed) >= TOUCHES_MAX);
    if !lazy.pinned && (here || touched) {
        return Ok(Read::Host(at_home(env, base)?, subscripts));
    }
    let array = take(env, &lazy.array, &extents, &subscripts, &dims)?;
    Ok(Read::Done(Lazy::new(array, lazy.class, lazy.pinned, lazy.may_fault)?.value()))
}

/// The part of an array that subscripts name, which are within its extents.
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

/// A subscript as a slice; lists are taken whole, and apart.
fn slice(places: &Places) -> SliceArg {
    match places {
        Places::Colon | Places::List(_) => SliceArg::ALL,
        Places::One(place) => SliceArg::from(*place),
        Places::Range { first, step: by, len } => {
            let last = first.wrapping_add_signed(by.wrapping_mul(*len as isize - 1));
            step(*first.min(&last)..first.max(&last) + 1, *by as i64)
        }
    }
}

/// Known positions as an array of indices.
fn places_array(env: &Env, list: &[usize], dims: &Dims) -> Flow<Array> {
    let list: Vec<u32> = list.iter().map(|&place| u32::try_from(place).unwrap_or(u32::MAX)).collect();
    Ok(env.session.from_vec(list, &dims[..])?)
}

/// Indices that count from 1, on the runtime, as positions. Using what is no integer faults; what lies outside of an
/// array faults where it is used.
fn places_of(index: &Lazy) -> Array {
    let x = &index.array;
    let places = x.cast_to(DType::I32) - 1i64;
    match index.class {
        Class::Double | Class::Single => places.ensure_for(
            "index",
            &x.floor().eq_to(x),
            "subscripts must be either integers 1 to (2^63)-1 or logicals",
        ),
        _ => places,
    }
}

fn read_mixed(env: &mut Env, base: &Value, resolved: SmallVec<[Resolved; 3]>, values: &[Value]) -> Flow<Read> {
    let home = |env: &mut Env| Ok(Read::Host(at_home(env, base)?, on_host(env, values)?));
    let dims = base.dims();
    if dims.elements() == 0 || dims.elements() > i32::MAX as usize {
        return home(env);
    }
    if let [Resolved::Lazy(index)] = &resolved[..] {
        return match index.class {
            Class::Logical if index.dims.elements() <= dims.elements() => compress(env, base, index).map(Read::Done),
            Class::Logical => home(env),
            _ => {
                let subscript = Subscript { places: Places::List(Vec::new()), dims: index.dims.clone(), extent: 0 };
                let out = linear_dims(&dims, &subscript, index.dims.elements());
                let array = lift(env, base, base.class())?.take(&places_of(index)).reshape(&out[..]);
                derived(array, base, index, true).map(Read::Done)
            }
        };
    }
    // Masks among several subscripts are short; their lengths have to be known.
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
        LazySubscripts::Mixed(_) => Ok(Read::Host(at_home(env, base)?, on_host(env, values)?)),
    }
}

/// Several subscripts, of which some are arrays of the runtime: one after the other, along each dimension.
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
    let mut result: Option<&Arc<Lazy>> = None;
    for (d, r) in resolved.iter().enumerate() {
        if let Resolved::Lazy(index) = r {
            array = array.take_dim(d, &places_of(index));
            result = Some(index);
        }
    }
    let array = array.reshape(&Dims::new(&lens)[..]);
    match result {
        Some(index) => derived(array, base, index, true).map(Read::Done),
        None => Ok(Read::Done(Lazy::new(array, base.class(), false, false)?.value())),
    }
}

/// Whether what is made of two is pinned, and whether it may fault.
fn flags(base: &Value, other: &Lazy) -> (bool, bool) {
    match base {
        Value::Lazy(lazy) => (lazy.pinned || other.pinned, lazy.may_fault || other.may_fault),
        _ => (other.pinned, other.may_fault),
    }
}

/// An array made of `base` and `other`, of the class of `base`.
fn derived(array: Array, base: &Value, other: &Lazy, may_fault: bool) -> Flow<Value> {
    let (pinned, faulty) = flags(base, other);
    Ok(Lazy::new(array, base.class(), pinned, may_fault || faulty)?.value())
}

/// `base(mask)`: how many there are is awaited.
fn compress(env: &mut Env, base: &Value, mask: &Arc<Lazy>) -> Flow<Value> {
    let (n, class) = (mask.dims.elements(), base.class());
    let found = match env.take_awaited() {
        Some(Value::Lazy(found)) if found.class == class => found,
        _ => {
            let column = lift(env, base, class)?.reshape([base.len()]).slice(0..n);
            let future = column.compress(&mask.array.reshape([n]));
            let (pinned, may_fault) = flags(base, mask);
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

fn wait(future: impl Future<Output = Result<Value, ScriptError>> + Send + 'static) -> Stop {
    Stop::Need(Need::Future(Box::pin(future)))
}

/// How a value is written.
pub enum Write {
    /// It has been.
    Done,
    /// The host writes: the target lies in host memory now, and so do the value and the subscripts.
    Host(Value, Subscripts),
}

/// Writes `value` into `target` where it, the target or a subscript lies on the runtime. The host does it where the
/// class is not the runtime's, where a host value makes the array grow, and where elements are written one by one.
///
/// # Errors
/// Shapes and subscripts that do not fit; a need. The target is then as it was.
pub fn write(env: &mut Env, target: &mut Option<Value>, values: &[Value], value: &Value) -> Flow<Write> {
    let class = target.as_ref().unwrap_or(value).class();
    let is_array = |v: &Value| class_is_array(v.class()) && !v.is_complex();
    // Only the host can tell whether text or NaN is to become a truth value.
    let refused = class == Class::Logical && !matches!(value, Value::Lazy(_)) && value.class() != Class::Logical;
    let plain = target.as_ref().is_none_or(is_array) && is_array(value) && !refused;
    let dims = target.as_ref().map_or_else(Dims::zero, Value::dims);
    if !plain || !fits(class, &dims) || values.len() > Shape::RANK_MAX || values.is_empty() {
        return write_at_home(env, target, values, value);
    }
    match subscripts(values)? {
        LazySubscripts::Host(subscripts) => {
            let writing = writing(&dims, subscripts, &value.dims())?;
            write_known(env, target, writing, values, value, class)
        }
        LazySubscripts::Mixed(resolved) => match &resolved[..] {
            [Resolved::Lazy(index)] if index.dims.elements() > 0 && dims.elements() > 0 => {
                write_indexed(env, target, index, values, value, class)
            }
            _ => write_at_home(env, target, values, value),
        },
    }
}

fn class_is_array(class: Class) -> bool {
    Class::ARRAYS.contains(&class)
}

/// Brings all that a write needs to the host.
fn write_at_home(env: &mut Env, target: &mut Option<Value>, values: &[Value], value: &Value) -> Flow<Write> {
    // A cell keeps the array as it is.
    let keeps = matches!(target, Some(Value::Cell(_) | Value::Struct(_)));
    let given = (!keeps).then_some(value);
    let indices = values.iter().filter(|v| matches!(v, Value::Lazy(l) if l.steps.is_none()));
    env.host_all(target.iter().filter(|t| matches!(t, Value::Lazy(_))).chain(given).chain(indices))?;
    let subscripts = on_host(env, values)?;
    let value = match value {
        Value::Lazy(_) if !keeps => Value::tensor_as_is(Arc::unwrap_or_clone(env.host(value)?)),
        other => other.clone(),
    };
    bring_home(env, target)?;
    Ok(Write::Host(value, subscripts))
}

/// A target of the runtime becomes one of host memory, its values having been awaited.
pub fn bring_home(env: &Env, target: &mut Option<Value>) -> Flow<()> {
    if let Some(lazy @ Value::Lazy(_)) = target {
        let host = env.host(lazy)?;
        // The runtime's array goes first, so that the host's values have one holder and need no copy.
        *target = None;
        *target = Some(Value::tensor_as_is(Arc::unwrap_or_clone(host)));
    }
    Ok(())
}

fn write_known(
    env: &mut Env,
    target: &mut Option<Value>,
    writing: Writing,
    values: &[Value],
    value: &Value,
    class: Class,
) -> Flow<Write> {
    if writing.nothing {
        return Ok(Write::Done);
    }
    let given = matches!(value, Value::Lazy(_));
    let old = target.as_ref().map_or_else(Dims::zero, Value::dims);
    let (grows, one) = (writing.dims != old, writing.lens().iter().all(|&n| n == 1));
    let (pinned, touches, faulty) = match &target {
        Some(Value::Lazy(l)) => (l.pinned, l.touches.load(Ordering::Relaxed), l.may_fault),
        _ => (false, 0, false),
    };
    if !given && !pinned && (grows || one && touches >= TOUCHES_MAX) || !fits(class, &writing.dims) {
        return write_at_home(env, target, values, value);
    }
    env.check_elements(&writing.dims)?;
    let base = match target {
        Some(target) if old.elements() > 0 => lift(env, target, class)?,
        _ => zeros(env, class, &old)?,
    };
    let base = if grows { grown(env, &base, class, &old, &writing.dims)? } else { base };
    let array = put(env, base, &writing, value, class)?;
    let (value_pinned, value_faulty) = match value {
        Value::Lazy(l) => (l.pinned, l.may_fault),
        _ => (false, false),
    };
    let lazy = Lazy::new(array, class, pinned || value_pinned, faulty || value_faulty)?;
    // Values of the runtime are no reason to come to the host.
    lazy.touches.store(if given || !one { 0 } else { touches + 1 }, Ordering::Relaxed);
    *target = Some(lazy.value());
    Ok(Write::Done)
}

fn zeros(env: &Env, class: Class, dims: &Dims) -> Flow<Array> {
    let (s, dims) = (&env.session, &dims[..]);
    Ok(match class {
        Class::Single => s.zeros::<f32>(dims),
        Class::Int32 => s.zeros::<i32>(dims),
        Class::Int64 => s.zeros::<i64>(dims),
        Class::Uint8 => s.zeros::<u8>(dims),
        Class::Uint32 => s.zeros::<u32>(dims),
        Class::Logical => s.zeros::<bool>(dims),
        _ => s.zeros::<f64>(dims),
    }
    .checked()?)
}

/// A larger array with the old one in its corner.
fn grown(env: &Env, base: &Array, class: Class, old: &Dims, new: &Dims) -> Flow<Array> {
    let room = zeros(env, class, new)?;
    if old.elements() == 0 {
        return Ok(room);
    }
    let corner: SmallVec<[SliceArg; 4]> = (0..new.len()).map(|d| SliceArg::from(0..old.extent(d))).collect();
    Ok(room.assign(&corner[..], base).checked()?)
}

/// The array with `value` written into it.
fn put(env: &Env, base: Array, writing: &Writing, value: &Value, class: Class) -> Flow<Array> {
    let (extents, subscripts) = (&writing.extents, &writing.subscripts);
    let lens = writing.lens();
    if lens.contains(&0) {
        return Ok(base);
    }
    let scalar = value.is_scalar();
    let whole = lens[..] == extents[..] && subscripts.iter().all(Subscript::is_colon);
    let given = lift(env, value, class)?;
    if whole && !scalar {
        return Ok(given.reshape(&writing.dims[..]).checked()?);
    }
    let fitted = |shape: &[usize]| if scalar { given.clone() } else { given.reshape(shape) };
    let lists: SmallVec<[usize; 3]> =
        (0..subscripts.len()).filter(|&d| matches!(subscripts[d].places, Places::List(_))).collect();
    let folded = base.reshape(&extents[..]);
    let array = match (&lists[..], &subscripts[..]) {
        ([], [one]) if along(&writing.dims, 1).is_some() => {
            // A vector's own direction: no view stands between the old array and the new.
            let d = writing.dims.first_non_singleton();
            let slices: SmallVec<[SliceArg; 4]> =
                (0..writing.dims.len()).map(|e| if e == d { slice(&one.places) } else { SliceArg::ALL }).collect();
            base.assign(&slices[..], fitted(&writing.dims.with(d, lens[0])))
        }
        ([], _) => {
            let slices: SmallVec<[SliceArg; 4]> = subscripts.iter().map(|s| slice(&s.places)).collect();
            folded.assign(&slices[..], fitted(&lens))
        }
        ([d], all) if all.iter().filter(|s| s.is_colon()).count() + 1 == all.len() => {
            let Places::List(list) = &all[*d].places else { return Ok(base) };
            let index = places_array(env, list, &Dims::new(&[list.len(), 1]))?;
            folded.assign_dim(*d, &index, fitted(&lens))
        }
        _ => {
            let grid = super::grid::Grid::new(extents, subscripts.clone());
            let places = grid.positions();
            let index = places_array(env, &places, &Dims::new(&[places.len(), 1]))?;
            folded.assign_at(&index, fitted(&[places.len(), 1]))
        }
    };
    Ok(array.reshape(&writing.dims[..]).checked()?)
}

/// `target(index) = value`, the index being an array of the runtime.
fn write_indexed(
    env: &mut Env,
    target: &mut Option<Value>,
    index: &Arc<Lazy>,
    values: &[Value],
    value: &Value,
    class: Class,
) -> Flow<Write> {
    let Some(base) = target.as_ref() else { return write_at_home(env, target, values, value) };
    let (dims, n, count) = (base.dims(), base.len(), index.dims.elements());
    if n > i32::MAX as usize || index.class == Class::Logical && count > n {
        return write_at_home(env, target, values, value);
    }
    let array = if index.class == Class::Logical {
        if count == n && value.is_scalar() {
            // No place has to be known: both are there, and the mask chooses.
            let mask = index.array.reshape(&dims[..]);
            mask.select(&lift(env, value, class)?, &lift(env, base, class)?)
        } else {
            let Some(Value::Lazy(places)) = env.take_awaited() else {
                let (future, pinned) = (index.array.nonzero(), index.pinned);
                return Err(wait(async move { Ok(Lazy::new(future.await?, Class::Uint32, pinned, false)?.value()) }));
            };
            check_count(places.dims.elements(), value)?;
            if places.dims.elements() == 0 {
                return Ok(Write::Done);
            }
            lift(env, base, class)?.reshape([n]).assign_at(&places.array, &lift(env, value, class)?)
        }
    } else {
        check_count(count, value)?;
        let Some(stats) = env.take_awaited() else { return Err(wait(index_stats(index))) };
        if !stats_inside(&stats, n) {
            // It grows, or fails: the host does either.
            return write_at_home(env, target, values, value);
        }
        lift(env, base, class)?.reshape([n]).assign_at(&places_of(index), &lift(env, value, class)?)
    };
    let written = derived(array.reshape(&dims[..]), base, index, false)?;
    *target = Some(written);
    Ok(Write::Done)
}

fn check_count(count: usize, value: &Value) -> Flow<()> {
    if value.len() == 1 || value.len() == count {
        return Ok(());
    }
    let given = value.dims();
    fail_id!("Octave:nonconformant-args", "=: nonconformant arguments (op1 is {count}x1, op2 is {given})")
}

/// The least and the greatest index, and whether one is no integer.
fn index_stats(index: &Arc<Lazy>) -> impl Future<Output = Result<Value, ScriptError>> + Send + 'static {
    let x = &index.array;
    let least = x.min_over(..).cast_to(DType::F64).item::<f64>();
    let greatest = x.max_over(..).cast_to(DType::F64).item::<f64>();
    let broken = x.floor().ne_to(x).any(..).item::<bool>();
    async move { Ok(Value::row(vec![least.await?, greatest.await?, broken.await? as u8 as f64])) }
}

fn stats_inside(stats: &Value, n: usize) -> bool {
    let Value::Tensor(stats) = stats else { return false };
    matches!(stats.data.to_f64()[..], [least, greatest, broken] if least >= 1.0 && greatest <= n as f64 && broken == 0.0)
}

/// An array of the runtime without the elements at these subscripts: `keep` are the others, along dimension `d` of
/// the array seen as `extents`.
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

/// `base(mask)` for deletion: what a mask of the runtime leaves.
///
/// # Errors
/// A need.
pub fn without(env: &mut Env, base: &Value, mask: &Arc<Lazy>) -> Flow<Value> {
    let rest = Lazy::new(!&mask.array, Class::Logical, mask.pinned, mask.may_fault)?;
    compress(env, base, &Arc::new(rest))
}
