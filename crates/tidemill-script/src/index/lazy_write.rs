//! Writing into arrays of the runtime, and writing through them. Writes are recorded, and happen in place on the device
//! if nothing else holds the array.
//!
//! Must hold: nothing waits; if the host has to do the work, it asks for the values (`Need::Host`). An index on the
//! runtime may make an array grow, so its extremes are awaited.

use super::grid::{Grid, Writing, writing};
use super::lazy::{LazySubscripts, derived, fits, known_places_of, places_array, slice, subscripts, wait};
use super::read::on_host;
use super::subscript::{Places, Resolved, Subscript, Subscripts, along};
use crate::env::Env;
use crate::error::{Flow, ScriptError, fail_id};
use crate::value::lazy::{lift, touch_weight};
use crate::value::{Class, Dims, Lazy, Pinned, Value};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tidemill::{Array, DType, Shape, SliceArg};

/// The outcome of a write.
pub enum Write {
    /// The value was written.
    Done,
    /// The host has to write. The target, this value and these subscripts are in host memory now.
    Host(Value, Subscripts),
}

/// Writes `value` into `target` if it, the target or a subscript is on the runtime. The host does the write if the
/// runtime lacks the class, if a host value makes the array grow, or if elements are written one by one.
///
/// # Errors
/// Shapes and subscripts that do not fit; a need. The target is unchanged then.
pub fn write(env: &mut Env, target: &mut Option<Value>, values: &[Value], value: &Value) -> Flow<Write> {
    let class = target.as_ref().unwrap_or(value).class();
    let is_array = |v: &Value| class_is_array(v.class()) && !v.is_complex();
    // Only the host can tell whether text or NaN would become a truth value.
    let refused = class == Class::Logical && !matches!(value, Value::Lazy(_)) && value.class() != Class::Logical;
    let plain = target.as_ref().is_none_or(is_array) && is_array(value) && !refused;
    let dims = target.as_ref().map_or_else(Dims::zero, Value::dims);
    if !plain || !fits(class, &dims) || values.len() > Shape::RANK_MAX || values.is_empty() {
        return write_on_host(env, target, values, value);
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
            _ => write_on_host(env, target, values, value),
        },
    }
}

fn class_is_array(class: Class) -> bool {
    Class::ARRAYS.contains(&class)
}

/// Gathers everything that a write needs to the host.
fn write_on_host(env: &mut Env, target: &mut Option<Value>, values: &[Value], value: &Value) -> Flow<Write> {
    // A cell takes the array in unchanged.
    let keeps = matches!(target, Some(Value::Cell(_) | Value::Struct(_)));
    let given = (!keeps).then_some(value);
    let indices = values.iter().filter(|v| matches!(v, Value::Lazy(l) if l.steps.is_none()));
    env.host_all(target.iter().filter(|t| matches!(t, Value::Lazy(_))).chain(given).chain(indices))?;
    let subscripts = on_host(env, values)?;
    let value = match value {
        Value::Lazy(_) if !keeps => Value::held(env.host(value)?),
        other => other.clone(),
    };
    move_to_host(env, target)?;
    Ok(Write::Host(value, subscripts))
}

/// Moves a target of the runtime to host memory, once its values were awaited.
pub fn move_to_host(env: &Env, target: &mut Option<Value>) -> Flow<()> {
    if let Some(lazy @ Value::Lazy(_)) = target {
        let host = env.host(lazy)?;
        // The runtime's array is dropped first, so that the host array has one holder and is not copied.
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
    let grows = writing.dims != old;
    let written = writing.lens().iter().fold(1, |n: usize, &len| n.saturating_mul(len));
    let small = written <= env.part_elements_max().max(1);
    let (pinned, touches, faulty, touches_max) = match &target {
        Some(Value::Lazy(l)) => (l.pinned, l.touches.load(Ordering::Relaxed), l.may_fault, l.touches_max()),
        _ => (Pinned::default(), 0, false, 0),
    };
    let cheap = small || value.is_scalar();
    if !given && !pinned.any() && (grows || cheap && touches >= touches_max) || !fits(class, &writing.dims) {
        return write_on_host(env, target, values, value);
    }
    env.check_elements(&writing.dims)?;
    let filled = match &target {
        Some(Value::Lazy(l)) if !given && !grows && small && value.class().dtype().is_some() => {
            l.filled.as_ref().and_then(|filled| filled.and(&writing.subscripts, value))
        }
        _ => None,
    };
    let base = match target {
        Some(target) if old.elements() > 0 => lift(env, target, class)?,
        _ => zeros(env, class, &old)?,
    };
    let base = if grows { grown(env, &base, class, &old, &writing.dims)? } else { base };
    let array = put(env, base, &writing, value, class)?;
    let (value_pinned, value_faulty) = match value {
        Value::Lazy(l) => (l.pinned, l.may_fault),
        _ => (Pinned::default(), false),
    };
    let mut lazy = Lazy::new(array, class, pinned | value_pinned, faulty || value_faulty)?;
    lazy.filled = filled;
    // Writing values of the runtime does not count towards gathering the array, and neither does writing one number in
    // many places (a sieve's multiples). Earlier reads of the array still count.
    let touches = match (small, given) {
        (false, false) if cheap => touches,
        (false, _) => 0,
        (true, true) => touches,
        (true, false) => touches + touch_weight(written),
    };
    lazy.touches.store(touches, Ordering::Relaxed);
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

/// Returns a larger array with the old one in its corner.
fn grown(env: &Env, base: &Array, class: Class, old: &Dims, new: &Dims) -> Flow<Array> {
    let room = zeros(env, class, new)?;
    if old.elements() == 0 {
        return Ok(room);
    }
    let corner: SmallVec<[SliceArg; 4]> = (0..new.len()).map(|d| SliceArg::from(0..old.extent(d))).collect();
    Ok(room.assign(&corner[..], base).checked()?)
}

/// Returns the array with `value` written into it.
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
            // This keeps the vector's own direction, so that no view comes between the old array and the new one.
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
            let grid = Grid::new(extents, subscripts.clone());
            let places = grid.positions();
            let index = places_array(env, &places, &Dims::new(&[places.len(), 1]))?;
            base.assign_at(&index, fitted(&[places.len(), 1]))
        }
    };
    Ok(array.reshape(&writing.dims[..]).checked()?)
}

/// Does `target(index) = value`, for an index array of the runtime.
fn write_indexed(
    env: &mut Env,
    target: &mut Option<Value>,
    index: &Arc<Lazy>,
    values: &[Value],
    value: &Value,
    class: Class,
) -> Flow<Write> {
    let Some(base) = target.as_ref() else { return write_on_host(env, target, values, value) };
    let (dims, n, count) = (base.dims(), base.len(), index.dims.elements());
    if n > i32::MAX as usize || index.class == Class::Logical && count > n {
        return write_on_host(env, target, values, value);
    }
    let array = if index.class == Class::Logical {
        if count == n && value.is_scalar() {
            // Both are of the same size, so the mask chooses between them, and no place has to be known.
            let mask = index.array.reshape(&dims[..]);
            mask.select(&lift(env, value, class)?, &lift(env, base, class)?)
        } else {
            let Some(Value::Lazy(places)) = env.take_awaited() else {
                env.waits_for([base, &Value::Lazy(index.clone())]);
                let (future, pinned) = (index.array.nonzero(), index.pinned);
                return Err(wait(async move { Ok(Lazy::new(future.await?, Class::Uint32, pinned, false)?.value()) }));
            };
            check_count(places.dims.elements(), value)?;
            if places.dims.elements() == 0 {
                return Ok(Write::Done);
            }
            lift(env, base, class)?.assign_at(&places.array, &lift(env, value, class)?)
        }
    } else {
        check_count(count, value)?;
        let Some(stats) = env.take_awaited() else {
            env.waits_for([base, &Value::Lazy(index.clone())]);
            return Err(wait(index_stats(index)));
        };
        if !stats_inside(&stats, n) {
            // The array grows, or the write fails. The host does either.
            return write_on_host(env, target, values, value);
        }
        lift(env, base, class)?.assign_at(&known_places_of(index), &lift(env, value, class)?)
    };
    let written = derived(array, base, index, false)?;
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

/// Computes the least and the greatest index, and whether one is no integer.
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
