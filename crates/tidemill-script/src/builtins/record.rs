//! Functions with which builtins put arrays on the runtime and take results from it.
//!
//! Must hold: a result is pinned as its sources are (to the device, as a `dlarray`), and may fault if a source may.

use crate::env::Env;
use crate::error::{Flow, Stop, fail};
use crate::value::{Class, Dims, Lazy, Pinned, Value};
use std::sync::Arc;
use tidemill::{Array, Shape};

/// Whether a result of this class and size is recorded on the runtime, and not computed at once.
pub fn is_big(env: &Env, class: Class, elements: usize) -> bool {
    elements > env.options.host_elements_max && class.dtype().is_some()
}

/// Returns the array of the runtime for a value: its own, or a copy of its host elements. `None` for classes that the
/// runtime lacks.
///
/// # Errors
/// Arrays beyond the runtime's limits.
pub fn lift(env: &Env, value: &Value) -> Flow<Option<Array>> {
    let class = value.class();
    if class.dtype().is_none() || value.is_complex() {
        return Ok(None);
    }
    crate::value::lazy::lift(env, value, class).map(Some)
}

/// Makes a value of a recorded array that was computed from `sources`.
///
/// # Errors
/// The fault that the array carries.
pub fn record(array: Array, class: Class, sources: &[&Value]) -> Flow<Value> {
    let (pinned, may_fault) = crate::ops::lazy::marks(sources);
    debug_assert_eq!(array.dtype().ok(), class.dtype().filter(|_| array.error().is_none()));
    Ok(Value::Lazy(Arc::new(Lazy::new(array, class, pinned, may_fault)?)))
}

/// Pins a value to the device: to the GPU, if the runtime has one.
///
/// # Errors
/// The fault that the array carries.
pub fn pin(env: &Env, value: Value) -> Flow<Value> {
    env.has_pinned.store(true, std::sync::atomic::Ordering::Relaxed);
    match value {
        Value::Lazy(l) if l.pinned.on_device => Ok(Value::Lazy(l)),
        Value::Lazy(l) => {
            let has_gpu = env.session.devices().iter().any(|d| d.is_accelerator());
            let array = if has_gpu { l.array.pin("gpu") } else { l.array.clone() };
            let pinned = Pinned { on_device: true, ..l.pinned };
            Ok(Value::Lazy(Arc::new(Lazy::new(array, l.class, pinned, l.may_fault)?)))
        }
        other => Ok(other),
    }
}

/// Returns an error in the language's words for shapes that the runtime cannot hold.
///
/// # Errors
/// Out of memory, too many dimensions.
pub fn check_shape(env: &Env, dims: &Dims) -> Flow<()> {
    env.check_elements(dims)?;
    Shape::new(dims)?;
    Ok(())
}

/// Makes an array that holds one number, of a class that the runtime has.
///
/// # Errors
/// Other classes.
pub fn filled(env: &Env, class: Class, dims: &Dims, value: f64) -> Flow<Array> {
    check_shape(env, dims)?;
    let (s, dims) = (&env.session, &dims[..]);
    Ok(match class {
        Class::Double => s.full(value, dims),
        Class::Single => s.full(value as f32, dims),
        Class::Int32 => s.full(value as i32, dims),
        Class::Int64 => s.full(value as i64, dims),
        Class::Uint8 => s.full(value as u8, dims),
        Class::Uint32 => s.full(value as u32, dims),
        Class::Logical => s.full(value != 0.0, dims),
        other => return fail!("arrays of class {} are not yet on the device", other.name()),
    })
}

/// Awaits a value: returns `Err(Need)` in the instruction's first run, and the future's value in the second.
///
/// # Errors
/// The need itself; the future's error.
pub fn awaited(
    env: &mut Env,
    future: impl FnOnce() -> Flow<futures::future::BoxFuture<'static, Result<Value, crate::error::ScriptError>>>,
) -> Flow<Value> {
    match env.take_awaited() {
        Some(value) => Ok(value),
        None => Err(Stop::Need(crate::error::Need::Future(future()?))),
    }
}
