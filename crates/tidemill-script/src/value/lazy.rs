//! Arrays on the runtime as scripts hold them, and the ways from host values to the runtime and back.
//!
//! Must hold: nothing here waits except [`fetch`], which the machine awaits. After that, host values are there
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
use std::ops::BitOr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use tidemill::{Array, HostAny};

/// Why an array stays on the runtime, however small it is. What is computed from it stays there, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pinned {
    /// The script put it on the device (`gpuArray`).
    pub on_device: bool,
    /// It is a `dlarray`: gathering it would lose its derivatives.
    pub is_dlarray: bool,
}

impl Pinned {
    /// A `dlarray` that the script did not put on the device.
    pub const DLARRAY: Pinned = Pinned { on_device: false, is_dlarray: true };

    /// Whether there is a reason.
    pub fn any(self) -> bool {
        self.on_device || self.is_dlarray
    }
}

impl BitOr for Pinned {
    type Output = Pinned;

    fn bitor(self, other: Pinned) -> Pinned {
        Pinned { on_device: self.on_device || other.on_device, is_dlarray: self.is_dlarray || other.is_dlarray }
    }
}

/// An array on the runtime.
#[derive(Debug)]
pub struct Lazy {
    /// The runtime's array. Its shape is `dims` and its dtype the class's.
    pub array: Array,
    /// The class.
    pub class: Class,
    /// The dimensions.
    pub dims: Dims,
    /// Whether it stays on the runtime, and why.
    pub pinned: Pinned,
    /// Whether reading it may fail because of its data (an index from data, a root of a negative number).
    pub may_fault: bool,
    /// Its host values, once they have been awaited.
    pub host: OnceLock<Arc<Tensor>>,
    /// A weighted count of reads and writes of small parts since it was last used as a whole ([`Lazy::touch`]).
    pub touches: AtomicU32,
    /// `(first, step)` if its elements are known to be `first + i * step`, as for a recorded range. As an index it is
    /// then a slice, and nothing has to be read.
    pub steps: Option<(f64, f64)>,
    /// Its number in the order in which arrays are made ([`made`]).
    pub made: u64,
    /// Its content, if the host knows it without asking the runtime.
    pub filled: Option<Filled>,
    /// The most elements of any array that it was made from, including itself; 0 before `set_provenance` is called.
    reach: AtomicUsize,
    /// Whether it was materialised without a fault.
    checked: AtomicBool,
    /// Whether an array was computed from it, which carries its fault, too.
    passed_on: AtomicBool,
}

impl Lazy {
    /// Makes a script's array of an array of the runtime. Truth values of a `dlarray` are constants: masks have no
    /// derivatives.
    ///
    /// # Errors
    /// The fault that the array carries.
    pub fn new(array: Array, class: Class, pinned: Pinned, may_fault: bool) -> tidemill::Result<Lazy> {
        let is_mask = pinned.is_dlarray && class == Class::Logical;
        let array = if is_mask { array.stop_gradient() } else { array };
        let dims = Dims::new(array.shape()?.dims());
        let (made, known) = made::next();
        let checked = AtomicBool::new(matches!(known, Some(Known::Checked)));
        let host = match known {
            // MADE-1: it is the same array; the dimensions are compared to be safe.
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

    /// Whether it was materialised without a fault.
    pub fn is_checked(&self) -> bool {
        self.checked.load(Ordering::Relaxed)
    }

    /// Notes that it was materialised without a fault.
    pub fn set_checked(&self) {
        self.checked.store(true, Ordering::Relaxed);
    }

    /// Whether it may have a fault that is still unknown, and that no array computed from it would show.
    pub fn is_suspect(&self) -> bool {
        self.may_fault && self.host.get().is_none() && !self.is_checked() && !self.passed_on.load(Ordering::Relaxed)
    }

    /// Notes that an array was computed from it, which carries its fault.
    pub fn set_passed_on(&self) {
        self.passed_on.store(true, Ordering::Relaxed);
    }

    /// Notes the arrays that it was made from, unless that was noted before.
    pub fn set_provenance(&self, provenance: Provenance) {
        if self.reach.load(Ordering::Relaxed) == 0 {
            self.reach.store(provenance.reach.max(self.dims.elements()).max(1), Ordering::Relaxed);
            // Results of large arrays are used as a whole; small ones inherit the count, since they should soon be
            // gathered.
            self.touches.fetch_max(provenance.touches, Ordering::Relaxed);
        }
    }

    /// Whether it may be gathered to the host: it was not put on the device, and no array of more than `elements`
    /// elements went into it.
    pub fn is_near(&self, elements: usize) -> bool {
        !self.pinned.any() && (1..=elements).contains(&self.reach.load(Ordering::Relaxed))
    }

    /// Returns its host values as a value, if they were awaited.
    pub fn host_value(&self) -> Option<Value> {
        self.host.get().cloned().map(Value::held)
    }

    /// Returns the same array, known to hold `value` everywhere.
    pub fn filled_with(self, value: f64) -> Lazy {
        Lazy { filled: Some(Filled { value, writes: Vec::new() }), ..self }
    }

    /// Returns the same array, known to be the range `first + i * step`.
    pub fn with_steps(self, first: f64, step: f64) -> Lazy {
        Lazy { steps: Some((first, step)), ..self }
    }

    /// Returns it as a value.
    pub fn value(self) -> Value {
        Value::Lazy(Arc::new(self))
    }

    /// Counts a read of a small part. Returns whether there were so many since it was last used as a whole that it
    /// should be gathered to the host: a loop over its elements would record an op for each of them. A `dlarray` never
    /// is.
    pub fn touch(&self, elements: usize) -> bool {
        !self.pinned.is_dlarray
            && self.touches.fetch_add(touch_weight(elements), Ordering::Relaxed) >= self.touches_max()
    }

    /// The count of touches from which on the array is gathered.
    pub fn touches_max(&self) -> u32 {
        if self.filled.is_some() { TOUCHES_KNOWN_MAX } else { TOUCHES_MAX }
    }
}

/// The arrays behind some values: the greatest number of elements, and the most touches of the small ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct Provenance {
    reach: usize,
    touches: u32,
}

impl Provenance {
    /// Returns the provenance of these values. `near` is the greatest number of elements of a small array.
    pub fn of<'v>(values: impl IntoIterator<Item = &'v Value>, near: usize) -> Provenance {
        let mut provenance = Provenance::default();
        for value in values {
            let reach = match value {
                Value::Tensor(t) => t.len(),
                Value::Lazy(l) => {
                    if l.is_near(near) {
                        provenance.touches = provenance.touches.max(l.touches.load(Ordering::Relaxed));
                    }
                    match l.reach.load(Ordering::Relaxed) {
                        0 => usize::MAX,
                        known => known,
                    }
                }
                Value::Cell(_) | Value::Struct(_) => usize::MAX,
                _ => 1,
            };
            provenance.reach = provenance.reach.max(reach);
        }
        provenance
    }
}

/// The count of touches from which on an array is gathered to the host: 8 single elements, or 16 rows or columns.
pub const TOUCHES_MAX: u32 = 32;
/// The same for an array whose content the host knows without asking the runtime.
pub const TOUCHES_KNOWN_MAX: u32 = 8;

/// Returns the weight of reading or writing a part of this many elements.
pub fn touch_weight(elements: usize) -> u32 {
    if elements == 1 { 4 } else { 2 }
}

/// An array that holds one number, except for a few host values that were written into it. Loops that set an array's
/// elements or rows begin with such an array.
#[derive(Clone, Debug)]
pub struct Filled {
    /// The number.
    pub value: f64,
    /// The writes into it: subscripts and values.
    pub writes: Vec<(Subscripts, Value)>,
}

impl Filled {
    /// Returns the same with one more write; `None` beyond [`TOUCHES_MAX`] writes, since the array is gathered before
    /// that.
    pub fn and(&self, subscripts: &Subscripts, value: &Value) -> Option<Filled> {
        let mut filled = (self.writes.len() < TOUCHES_MAX as usize).then(|| self.clone())?;
        filled.writes.push((subscripts.clone(), value.clone()));
        Some(filled)
    }

    /// Makes the elements in host memory.
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
    /// Returns its host values, if they were awaited or if the host knows its content.
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
    /// Makes a host array from the result of a gather.
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

/// Awaits the host values of arrays, and stores them in the arrays. All are demanded before one is awaited, so that
/// they are computed together.
///
/// # Errors
/// The first array's fault.
pub async fn fetch(arrays: &[Arc<Lazy>]) -> Result<(), ScriptError> {
    let missing: Vec<_> = arrays.iter().filter(|l| l.host.get().is_none()).collect();
    let gathers: Vec<_> = missing.iter().map(|l| l.array.gather_any()).collect();
    for (lazy, result) in missing.into_iter().zip(join_all(gathers).await) {
        // Another reader may have fetched the same values meanwhile.
        let _ = lazy.host.set(Arc::new(Tensor::gathered(result?)?));
    }
    Ok(())
}

/// The dimensions along which a script's function works, as MATLAB counts them: dimensions beyond the rank have one
/// element. The runtime's own functions refuse those.
pub struct Along<'d>(pub &'d [usize]);

impl tidemill::Dims for Along<'_> {
    fn set(&self, shape: &tidemill::Shape) -> tidemill::Result<tidemill::DimSet> {
        let own: SmallVec<[usize; 4]> = self.0.iter().copied().filter(|&d| d < shape.rank()).collect();
        own.as_slice().set(shape)
    }
}

/// Returns the array with at least `axes` dimensions, as far as the runtime accepts them. Dimensions beyond its rank
/// have one element.
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

/// Returns a value as an array of the runtime, converted to `class`. Complex values lose their imaginary part, so
/// callers check for it before.
///
/// # Errors
/// Values that are no arrays, and classes for which the runtime has no dtype.
pub fn lift(env: &Env, value: &Value, class: Class) -> Flow<Array> {
    let Some(dtype) = class.dtype() else {
        return fail!("arrays of class {} are kept in host memory", class.name());
    };
    let session = &env.session;
    Ok(match value {
        Value::Lazy(lazy) => {
            // The array is used as a whole, so it may stay on the runtime and its touches are reset. A small array
            // keeps its count, since it can be used as a whole anywhere.
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

/// Makes an array of the runtime that reads a host array's elements in place; few elements are copied instead. While
/// the runtime may read them, any other holder of the array copies it before writing into it (VALUE-4).
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

/// A host array that the runtime holds.
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
        let lazy = Lazy::new(array, Class::Uint8, Pinned::default(), false).unwrap().value();
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

        // A pending read keeps the elements that it was given.
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
