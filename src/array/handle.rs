//! [`Array`], the user's handle of a value. A handle names a value on a tape, or holds a tiny value itself, or holds
//! the fault because of which the value was not recorded.
//!
//! Must hold: HANDLE-1: dropping a handle costs a constant time and drops no other handle of the same session
//! (a handle holds no operands). HANDLE-2: no method here waits.

use super::tape::Home;
use crate::error::{Error, Result, Site};
use crate::graph::{DType, Meta, Shape};
use crate::host_buffer::HostBuffer;
use crate::ids::{DeviceId, SessionId, ValueId};
use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A value's number on its home's tape; none while the value is on no tape. Other threads may read it, so it is one
/// atomic word.
pub(crate) struct TapeIndex {
    /// The number and one; zero for none.
    word: AtomicU64,
}

impl TapeIndex {
    fn new(index: Option<u64>) -> TapeIndex {
        TapeIndex { word: AtomicU64::new(TapeIndex::encode(index)) }
    }

    fn encode(index: Option<u64>) -> u64 {
        index.map_or(0, |index| index + 1)
    }

    /// The number, if the value is on the tape.
    #[inline]
    pub fn get(&self, ordering: Ordering) -> Option<u64> {
        self.word.load(ordering).checked_sub(1)
    }

    /// The value is on the tape under this number, or on no tape. Called under the tape's lock.
    #[inline]
    pub fn set(&self, index: Option<u64>, ordering: Ordering) {
        self.word.store(TapeIndex::encode(index), ordering);
    }
}

/// A lazily computed n-dimensional array, column-major, of rank 2 at least.
///
/// Cloning is cheap, and clones name the same value. Operators and methods record an op and return at once; nothing is
/// computed before a gather or an eval is awaited (or a tape reaches a limit). An op on operands that do not fit each
/// other yields an array that carries its fault: [`Array::error`] returns it at once, and a gather returns it, too.
///
/// **Dimensions** are counted from 0. A function that is given a dimension that the array lacks yields a fault
/// (`ErrorKind::Index`). An array has at least two dimensions, and all that its program named, also those of one
/// element at the end ([`Shape::axes`]). Reductions keep the reduced dimensions with an extent of 1; `reshape` and
/// [`cat`](crate::cat) along the next dimension add one.
///
/// **Dtypes** mix as in MATLAB. Numbers take the dtype of the array beside them ([`Operand`](crate::Operand) says how).
/// f32 beside f64 is f32. An integer array beside a number is computed exactly or in f64, rounded, and saturated: an
/// `i32` of 3 times 0.5 is 2. Two integer dtypes do not mix, nor do integers and an array of floats: cast one of them.
/// Sums and matrix products of integers and bools are computed in f64. A program may have mixes refused that would
/// silently lose digits or range: [`Promotion::Strict`](crate::Promotion::Strict).
///
/// There is no `PartialEq`: compare elements with [`Array::eq_to`], which records an op.
///
/// A handle may be pinned to a device ([`Array::pin`]). The pin is a property of the handle; results of ops on the
/// handle inherit it.
#[derive(Clone)]
pub struct Array(pub(crate) Arc<Value>, pub(super) Option<DeviceId>);

/// One value, shared by its handles.
pub(crate) struct Value {
    /// The session that recorded it.
    pub home: Arc<Home>,
    /// Dtype and shape, or the fault that the value carries.
    pub meta: Result<Meta, Error>,
    /// Its elements, if it is tiny and known.
    pub host: Option<Arc<HostBuffer>>,
    /// The op that computes it.
    pub op: &'static str,
    /// The place in the program where it was recorded.
    pub at: Site,
    /// Its number on its home's tape; changes once, under the tape's lock.
    pub index: TapeIndex,
    /// The segment of the tape in which it was recorded; changes together with `index`.
    pub segment: AtomicU64,
    /// Whether it is host data of the program, which its tape keeps alive.
    pub source: bool,
    /// Whether other sessions may use it: it was shared, or an eval or gather of it has completed.
    pub exported: AtomicBool,
    /// Whether a gather or eval was called on it.
    pub demanded: AtomicBool,
}

/// A node that is on a tape and has no handle yet.
pub(crate) struct Recorded {
    /// The session of the tape.
    pub session: SessionId,
    /// Its number on that tape.
    pub index: u64,
    /// The segment of the tape.
    pub segment: u64,
    /// Dtype and shape.
    pub meta: Meta,
    /// Whether it is host data of the program.
    pub source: bool,
    /// The device to which it is pinned.
    pub pin: Option<DeviceId>,
    /// The op that computes it.
    pub op: &'static str,
    /// The place in the program.
    pub at: &'static Location<'static>,
}

impl Recorded {
    /// The node's first handle.
    pub fn handle(self, home: Arc<Home>) -> Array {
        let recorded = Some((self.index, self.segment));
        let Array(value, _) = Array::new(home, Ok(self.meta), None, recorded, self.source, self.op, self.at);
        Array(value, self.pin)
    }
}

/// The state of a value, as far as its handle knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrayState {
    /// Its elements are known on the host.
    Host,
    /// Recorded, and computed when it is needed.
    Lazy,
    /// A gather or eval was called on it.
    Demanded,
    /// An eval or gather of it has completed, or it was shared with other sessions.
    Evaluated,
    /// It carries a fault.
    Faulty,
}

impl Array {
    pub(crate) fn new(
        home: Arc<Home>,
        meta: Result<Meta, Error>,
        host: Option<Arc<HostBuffer>>,
        recorded: Option<(u64, u64)>,
        source: bool,
        op: &'static str,
        at: &'static Location<'static>,
    ) -> Array {
        let at = home.site(at);
        let value = Value {
            home,
            meta,
            host,
            op,
            at,
            index: TapeIndex::new(recorded.map(|(index, _)| index)),
            segment: AtomicU64::new(recorded.map_or(0, |(_, segment)| segment)),
            source,
            exported: AtomicBool::new(false),
            demanded: AtomicBool::new(false),
        };
        Array(Arc::new(value), None)
    }

    /// Makes this handle that of a value that its session has just recorded, if it is the only handle of its old value,
    /// and the old value's end is recorded or needs no record. Otherwise returns the new value.
    pub(crate) fn take_over(&mut self, made: Recorded) -> Option<Recorded> {
        let Some(value) = Arc::get_mut(&mut self.0) else { return Some(made) };
        if value.index.get(Ordering::Relaxed).is_some() || value.home.id != made.session {
            return Some(made);
        }
        let Recorded { session: _, index, segment, meta, source, pin, op, at } = made;
        value.meta = Ok(meta);
        value.host = None;
        (value.op, value.at, value.source) = (op, value.home.site(at), source);
        value.index = TapeIndex::new(Some(index));
        *value.segment.get_mut() = segment;
        *value.exported.get_mut() = false;
        *value.demanded.get_mut() = false;
        self.1 = pin;
        None
    }

    /// An array that carries a fault.
    pub(crate) fn faulty(home: &Arc<Home>, error: Error, op: &'static str, at: &'static Location<'static>) -> Array {
        let error = error.with_op(op).with_location(at);
        Array::new(home.clone(), Err(error), None, None, false, op, at)
    }

    /// A tiny value whose elements are known.
    pub(crate) fn host(
        home: &Arc<Home>,
        meta: Meta,
        data: HostBuffer,
        op: &'static str,
        at: &'static Location<'static>,
    ) -> Array {
        debug_assert_eq!((data.len(), data.dtype()), (meta.elements(), meta.dtype));
        Array::new(home.clone(), Ok(meta), Some(data.shared()), None, false, op, at)
    }

    /// Dtype and shape.
    ///
    /// # Errors
    /// The fault that the array carries.
    pub fn meta(&self) -> Result<&Meta> {
        self.0.meta.as_ref().map_err(Error::clone)
    }

    /// The extents, at least two; known without computing anything.
    ///
    /// # Errors
    /// The fault that the array carries.
    pub fn shape(&self) -> Result<&Shape> {
        self.meta().map(|m| &m.shape)
    }

    /// The type of the elements.
    ///
    /// # Errors
    /// The fault that the array carries.
    pub fn dtype(&self) -> Result<DType> {
        self.meta().map(|m| m.dtype)
    }

    /// The number of elements.
    ///
    /// # Errors
    /// The fault that the array carries.
    pub fn elements(&self) -> Result<usize> {
        self.meta().map(Meta::elements)
    }

    /// The fault that the array carries, if any. Faults that depend on data are known only when the array is gathered.
    pub fn error(&self) -> Option<&Error> {
        self.0.meta.as_ref().err()
    }

    /// The array, or the fault that it carries: `(&a + &b).checked()?`.
    ///
    /// # Errors
    /// The fault that the array carries.
    pub fn checked(self) -> Result<Array> {
        match &self.0.meta {
            Ok(_) => Ok(self),
            Err(error) => Err(error.clone()),
        }
    }

    /// The value's state, as far as this handle knows. This never waits.
    pub fn state(&self) -> ArrayState {
        let v = &self.0;
        if v.meta.is_err() {
            ArrayState::Faulty
        } else if v.host.is_some() {
            ArrayState::Host
        } else if v.exported.load(Ordering::Acquire) {
            ArrayState::Evaluated
        } else if v.demanded.load(Ordering::Relaxed) {
            ArrayState::Demanded
        } else {
            ArrayState::Lazy
        }
    }

    /// The value's id, if it is on a tape.
    #[inline]
    pub(crate) fn id(&self) -> Option<ValueId> {
        let index = self.0.index.get(Ordering::Acquire)?;
        Some(ValueId { session: self.0.home.id, index })
    }

    /// Whether other sessions may use the value.
    pub(crate) fn portable(&self) -> bool {
        self.0.host.is_some() || self.0.exported.load(Ordering::Acquire)
    }
}

impl Value {
    /// The bytes of a recorded value, and whether its tape keeps them alive.
    pub fn keeps(&self) -> (u64, bool) {
        (self.meta.as_ref().map_or(0, Meta::bytes) as u64, self.source || self.host.is_some())
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        if let Some(index) = self.index.get(Ordering::Relaxed) {
            let (bytes, source) = self.keeps();
            self.home.dropped(index, *self.segment.get_mut(), bytes, source);
        }
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.meta {
            Ok(meta) => {
                write!(f, "Array({} {}, {}, {}", meta.shape, meta.dtype, self.state().word(), self.0.op)?;
                if let Some(device) = self.pinned_to() {
                    write!(f, ", pinned to {}", device.name)?;
                }
                f.write_str(")")
            }
            Err(error) => write!(f, "Array(faulty: {error})"),
        }
    }
}

impl ArrayState {
    fn word(self) -> &'static str {
        match self {
            ArrayState::Host => "host",
            ArrayState::Lazy => "lazy",
            ArrayState::Demanded => "demanded",
            ArrayState::Evaluated => "evaluated",
            ArrayState::Faulty => "faulty",
        }
    }
}
