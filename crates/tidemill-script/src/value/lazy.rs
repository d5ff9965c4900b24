//! Arrays on the runtime, as scripts hold them; how host values get there, and how they come back.
//!
//! Must hold: nothing here waits but [`fetch`], which the machine awaits. Host values are there once it has
//! ([`Need::Host`]).
//!
//! [`Need::Host`]: crate::error::Need::Host

use super::held::LENT_BYTES_MIN;
use super::made::{self, Known};
use super::{Class, Data, Dims, Tensor, Value};
use crate::env::Env;
use crate::error::{Flow, ScriptError, fail};
use crate::index::{self, Subscripts};
use futures::future::join_all;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use tidemill::{Array, HostAny};

/// An array on the runtime.
#[derive(Debug)]
pub struct Lazy {
    /// The runtime's array. Its shape is `dims` and its dtype the class's.
    pub array: Array,
    /// The class.
    pub class: Class,
    /// The dimensions.
    pub dims: Dims,
    /// Whether the script put it on the device (`gpuArray`); what is computed from it is there, too.
    pub pinned: bool,
    /// Whether reading it may fail by what its data are (an index from data, a root of a negative number).
    pub may_fault: bool,
    /// Its host values, once they have been awaited.
    pub host: OnceLock<Arc<Tensor>>,
    /// How often small parts of it were read or written since it was last used as a whole ([`Lazy::touch`]).
    pub touches: AtomicU32,
    /// `(first, step)` where its elements are known to be `first + i * step`: a range that was recorded. As an index
    /// it is a slice then, and nothing has to be read.
    pub steps: Option<(f64, f64)>,
    /// Its number in the order in which arrays are made ([`made`]).
    pub made: u64,
    /// What the host knows of it without asking the runtime.
    pub filled: Option<Filled>,
    /// The most elements of any array that it was made from, itself included; 0 where nobody has said.
    reach: AtomicUsize,
    /// Whether it has been materialised without a fault.
    checked: AtomicBool,
    /// Whether something was computed from it that carries its fault, too.
    passed_on: AtomicBool,
}

impl Lazy {
    /// An array of the runtime as a value's body.
    ///
    /// # Errors
    /// The fault that the array carries.
    pub fn new(array: Array, class: Class, pinned: bool, may_fault: bool) -> tidemill::Result<Lazy> {
        let dims = Dims::new(array.shape()?.dims());
        let (made, known) = made::next();
        let checked = AtomicBool::new(matches!(known, Some(Known::Checked)));
        let host = match known {
            // MADE-1: it is the same array; dimensions are compared for good measure.
            Some(Known::Host(tensor)) if tensor.dims == dims && tensor.data.class() == class => tensor.into(),
            _ => OnceLock::new(),
        };
        Ok(Lazy {
            array,
            class,
            dims,
            pinned,
            may_fault,
            host,
            touches: AtomicU32::new(0),
            steps: None,
            made,
            checked,
            filled: None,
            reach: AtomicUsize::new(0),
            passed_on: AtomicBool::new(false),
        })
    }

    /// Whether it has been materialised without a fault.
    pub fn is_checked(&self) -> bool {
        self.checked.load(Ordering::Relaxed)
    }

    /// It has been materialised without a fault.
    pub fn set_checked(&self) {
        self.checked.store(true, Ordering::Relaxed);
    }

    /// Whether its fault, should it have one, is still unknown, and nothing that was computed from it would show it.
    pub fn is_suspect(&self) -> bool {
        self.may_fault && self.host.get().is_none() && !self.is_checked() && !self.passed_on.load(Ordering::Relaxed)
    }

    /// Something that carries its fault was computed from it.
    pub fn set_passed_on(&self) {
        self.passed_on.store(true, Ordering::Relaxed);
    }

    /// It was made of these, as far as nobody has said so before.
    pub fn made_of(&self, past: Past) {
        if self.reach.load(Ordering::Relaxed) == 0 {
            self.reach.store(past.reach.max(self.dims.elements()).max(1), Ordering::Relaxed);
            // What large arrays leave is used as a whole; small ones had better come home one by one.
            self.touches.fetch_max(past.touches, Ordering::Relaxed);
        }
    }

    /// Whether it may come to the host: nobody put it on the device, and no array of more than `elements` elements
    /// stands behind it.
    pub fn is_near(&self, elements: usize) -> bool {
        !self.pinned && (1..=elements).contains(&self.reach.load(Ordering::Relaxed))
    }

    /// Its host values as a value, once they have been awaited.
    pub fn host_value(&self) -> Option<Value> {
        self.host.get().cloned().map(Value::held)
    }

    /// The same, known to hold `value` everywhere.
    pub fn filled_with(self, value: f64) -> Lazy {
        Lazy { filled: Some(Filled { value, writes: Vec::new() }), ..self }
    }

    /// The same, known to be the range `first + i * step`.
    pub fn with_steps(self, first: f64, step: f64) -> Lazy {
        Lazy { steps: Some((first, step)), ..self }
    }

    /// As a value.
    pub fn value(self) -> Value {
        Value::Lazy(Arc::new(self))
    }

    /// A small part of it is read. Whether that has happened so often, the whole not being used meanwhile, that it had
    /// better come to the host: a loop over its elements would record an op for each of them.
    pub fn touch(&self, elements: usize) -> bool {
        self.touches.fetch_add(touch_weight(elements), Ordering::Relaxed) >= self.touches_max()
    }

    /// How much may be recorded of small parts of it.
    pub fn touches_max(&self) -> u32 {
        if self.filled.is_some() { TOUCHES_KNOWN_MAX } else { TOUCHES_MAX }
    }
}

/// What stands behind values: the most elements, and the most touches of small arrays.
#[derive(Clone, Copy, Debug, Default)]
pub struct Past {
    reach: usize,
    touches: u32,
}

impl Past {
    /// What stands behind these; `near` is how many elements a small array has at most.
    pub fn of<'v>(values: impl IntoIterator<Item = &'v Value>, near: usize) -> Past {
        let mut past = Past::default();
        for value in values {
            let reach = match value {
                Value::Tensor(t) => t.len(),
                Value::Lazy(l) => {
                    if l.is_near(near) {
                        past.touches = past.touches.max(l.touches.load(Ordering::Relaxed));
                    }
                    match l.reach.load(Ordering::Relaxed) {
                        0 => usize::MAX,
                        known => known,
                    }
                }
                Value::Cell(_) | Value::Struct(_) => usize::MAX,
                _ => 1,
            };
            past.reach = past.reach.max(reach);
        }
        past
    }
}

/// So much may be recorded of small parts before an array comes to the host: 8 single elements, 16 rows or columns.
pub const TOUCHES_MAX: u32 = 32;
/// The same of an array that the host knows without asking the runtime.
pub const TOUCHES_KNOWN_MAX: u32 = 8;

/// What reading or writing so many elements counts.
pub fn touch_weight(elements: usize) -> u32 {
    if elements == 1 { 4 } else { 2 }
}

/// An array of one number, into which a few values of the host were written: what loops begin with that set an array's
/// elements or rows.
#[derive(Clone, Debug)]
pub struct Filled {
    /// The number.
    pub value: f64,
    /// What was written where.
    pub writes: Vec<(Subscripts, Value)>,
}

impl Filled {
    /// The same with one more write; `None` beyond [`TOUCHES_MAX`] of them, when the array is at home already.
    pub fn and(&self, subscripts: &Subscripts, value: &Value) -> Option<Filled> {
        let mut filled = (self.writes.len() < TOUCHES_MAX as usize).then(|| self.clone())?;
        filled.writes.push((subscripts.clone(), value.clone()));
        Some(filled)
    }

    /// Its elements in host memory.
    fn tensor(&self, env: &Env, class: Class, dims: &Dims) -> Flow<Arc<Tensor>> {
        env.check_host(dims, class.bytes())?;
        let data = Data::filled(class, self.value, dims.elements());
        let mut target = Some(Value::tensor_as_is(Tensor::new(dims.clone(), data)));
        for (subscripts, value) in &self.writes {
            index::write_host(env, &mut target, subscripts.clone(), value.clone())?;
        }
        env.host(&target.unwrap_or_else(Value::empty))
    }
}

impl Lazy {
    /// Its host values, if they have been awaited or the host knows them.
    ///
    /// # Errors
    /// More elements than an array in host memory may have.
    pub fn known(&self, env: &Env) -> Flow<Option<&Arc<Tensor>>> {
        if let (None, Some(filled)) = (self.host.get(), &self.filled) {
            let _ = self.host.set(filled.tensor(env, self.class, &self.dims)?);
        }
        Ok(self.host.get())
    }
}

impl Tensor {
    /// What a gather delivered.
    ///
    /// # Errors
    /// A dtype that scripts do not have.
    pub fn gathered(host: HostAny) -> tidemill::Result<Tensor> {
        let dims = Dims::new(host.shape().dims());
        let data = match host {
            HostAny::F32(a) => Data::F32(a.into_vec()),
            HostAny::F64(a) => Data::F64(a.into_vec()),
            HostAny::Bool(a) => Data::Bool(a.into_vec()),
            HostAny::U8(a) => Data::U8(a.into_vec()),
            HostAny::I32(a) => Data::I32(a.into_vec()),
            HostAny::U32(a) => Data::U32(a.into_vec()),
            HostAny::I64(a) => Data::I64(a.into_vec()),
            other => {
                let words = format!("scripts have no values of {}", other.dtype());
                return Err(tidemill::Error::new(tidemill::ErrorKind::Unsupported, words));
            }
        };
        Ok(Tensor::new(dims, data))
    }
}

/// Awaits the host values of arrays and keeps them there. All are demanded before one is awaited, so that they are
/// computed together.
///
/// # Errors
/// The first array's fault.
pub async fn fetch(arrays: &[Arc<Lazy>]) -> Result<(), ScriptError> {
    let missing: Vec<_> = arrays.iter().filter(|l| l.host.get().is_none()).collect();
    let gathers: Vec<_> = missing.iter().map(|l| l.array.gather_any()).collect();
    for (lazy, result) in missing.into_iter().zip(join_all(gathers).await) {
        // Another reader may have brought the same values meanwhile.
        let _ = lazy.host.set(Arc::new(Tensor::gathered(result?)?));
    }
    Ok(())
}

/// The dimensions that a script's function goes over, as MATLAB counts them: one beyond the rank has one element, while
/// the runtime's own functions refuse it.
pub struct Along<'d>(pub &'d [usize]);

impl tidemill::Dims for Along<'_> {
    fn set(&self, shape: &tidemill::Shape) -> tidemill::Result<tidemill::DimSet> {
        let own: SmallVec<[usize; 4]> = self.0.iter().copied().filter(|&d| d < shape.rank()).collect();
        own.as_slice().set(shape)
    }
}

/// The array with at least so many dimensions that the runtime's functions accept; those beyond its rank have one
/// element.
pub fn with_axes(array: &Array, axes: usize) -> Array {
    match array.shape() {
        Ok(shape) if shape.axes() < axes => {
            let mut extents: SmallVec<[usize; 4]> = shape.dims().into();
            extents.resize(axes, 1);
            array.reshape(&extents[..])
        }
        _ => array.clone(),
    }
}

/// A value as an array of the runtime, converted to `class`. Complex values lose their imaginary part: ask before.
///
/// # Errors
/// Values that are no arrays, and classes that the runtime has no dtype for.
pub fn lift(env: &Env, value: &Value, class: Class) -> Flow<Array> {
    let Some(dtype) = class.dtype() else {
        return fail!("arrays of class {} are kept in host memory", class.name());
    };
    let session = &env.session;
    Ok(match value {
        Value::Lazy(lazy) => {
            // It is used as a whole, so it is at home where it is; a small one may be used as a whole anywhere.
            if !lazy.is_near(env.options.near_elements_max) {
                lazy.touches.store(0, Ordering::Relaxed);
            }
            if lazy.class == class { lazy.array.clone() } else { lazy.array.cast_to(dtype).checked()? }
        }
        Value::Num(x) if class == Class::Double => session.scalar(*x),
        Value::Bool(x) if class == Class::Logical => session.scalar(*x),
        _ => {
            let tensor = env.host(value)?;
            let dims: &[usize] = &tensor.dims;
            if tensor.data.class() == class && !tensor.data.is_complex() {
                lend(env, &tensor, dims)?
            } else {
                env.check_host(dims, class.bytes())?;
                upload(env, tensor.data.converted(class), dims)?
            }
        }
    })
}

/// An array of the runtime that reads a host array's elements where they lie; few are copied. As long as the runtime
/// may read them, whoever else holds the array copies it before writing into it (VALUE-4).
fn lend(env: &Env, tensor: &Arc<Tensor>, dims: &[usize]) -> Flow<Array> {
    if tensor.data.bytes() < LENT_BYTES_MIN {
        return upload(env, Data::clone(&tensor.data), dims);
    }
    let (session, lent) = (&env.session, Lent(tensor.clone()));
    Ok(match &*tensor.data {
        Data::F64(_) => session.from_shared::<f64>(lent, dims)?,
        Data::F32(_) => session.from_shared::<f32>(lent, dims)?,
        Data::I32(_) => session.from_shared::<i32>(lent, dims)?,
        Data::I64(_) => session.from_shared::<i64>(lent, dims)?,
        Data::U8(_) => session.from_shared::<u8>(lent, dims)?,
        Data::U32(_) => session.from_shared::<u32>(lent, dims)?,
        Data::Bool(_) => session.from_shared::<bool>(lent, dims)?,
        other => return fail!("arrays of class {} are kept in host memory", other.class().name()),
    })
}

/// A host array as the runtime holds it.
struct Lent(Arc<Tensor>);

macro_rules! lent {
    ($($ty:ty => $variant:ident),*) => {$(
        impl AsRef<[$ty]> for Lent {
            fn as_ref(&self) -> &[$ty] {
                match &*self.0.data {
                    Data::$variant(elements) => elements,
                    _ => &[],
                }
            }
        }
    )*};
}
lent!(f64 => F64, f32 => F32, i32 => I32, i64 => I64, u8 => U8, u32 => U32, bool => Bool);

fn upload(env: &Env, data: Data, dims: &[usize]) -> Flow<Array> {
    let session = &env.session;
    Ok(match data {
        Data::F64(v) => session.from_vec(v, dims)?,
        Data::F32(v) => session.from_vec(v, dims)?,
        Data::I32(v) => session.from_vec(v, dims)?,
        Data::I64(v) => session.from_vec(v, dims)?,
        Data::U8(v) => session.from_vec(v, dims)?,
        Data::U32(v) => session.from_vec(v, dims)?,
        Data::Bool(v) => session.from_vec(v, dims)?,
        Data::C64(v) => session.from_vec(v.into_iter().map(|z| z.re).collect::<Vec<f64>>(), dims)?,
        Data::C32(v) => session.from_vec(v.into_iter().map(|z| z.re).collect::<Vec<f32>>(), dims)?,
        other => return fail!("arrays of class {} are kept in host memory", other.class().name()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rig;

    #[test]
    fn what_is_lifted_comes_back_converted() {
        let mut env = rig::env();
        let value = Value::row(vec![1.5, -2.5, 300.0]);
        let array = lift(&env, &value, Class::Uint8).ok().unwrap();
        let lazy = Lazy::new(array, Class::Uint8, false, false).unwrap().value();
        let tensor = rig::settle(&mut env, |env| env.host(&lazy)).unwrap();
        assert_eq!((&tensor.dims[..], &*tensor.data), (&[1, 3][..], &Data::U8(vec![2, 0, 255])));
    }

    #[test]
    fn many_elements_are_lent_and_copied_once_by_whoever_writes_meanwhile() {
        let mut env = rig::env();
        let numbers = |n: usize| Value::tensor(Tensor::new(Dims::new(&[n, 1]), Data::F64(vec![1.5; n])));
        let holders = |value: &Value| if let Value::Tensor(t) = value { Arc::strong_count(t) } else { 0 };
        let mut value = numbers(1 << 16);
        let doubled = lift(&env, &value, Class::Double).ok().unwrap() * 2.0;
        assert_eq!(holders(&value), 2);
        let few = numbers(1000);
        let _copied = lift(&env, &few, Class::Double).ok().unwrap();
        assert_eq!(holders(&few), 1);

        // What is pending keeps the elements that it was given.
        let mut set = |value: &mut Value, k: f64| {
            let mut target = Some(value.clone());
            *value = Value::empty();
            let steps = [index::Access::Paren(std::iter::once(Value::Num(k)).collect())];
            index::assign(&mut env, &mut target, &steps, Value::Num(9.0)).ok().unwrap();
            *value = target.unwrap();
        };
        set(&mut value, 1.0);
        let Value::Tensor(first) = &value else { panic!("it stays on the host") };
        let at = Arc::as_ptr(first);
        set(&mut value, 2.0);
        let Value::Tensor(tensor) = &value else { panic!("it stays on the host") };
        assert_eq!((Arc::as_ptr(tensor), holders(&value)), (at, 1));
        let sums = [doubled.clone().sum(..), doubled.slice((0..3, ..)).sum(..)];
        let sums = sums.map(|sum| futures::executor::block_on(sum.item::<f64>()).unwrap());
        assert_eq!(sums, [3.0 * 65536.0, 9.0]);
        assert_eq!([tensor.data.f64_at(0), tensor.data.f64_at(1), tensor.data.f64_at(2)], [9.0, 9.0, 1.5]);
    }
}
