//! [`UploadWriter`]: memory that a user fills and turns into an array.
//!
//! In: a shape, and possibly a device. Out: an array whose elements were not copied on the host. If the array goes to a
//! GPU, the user fills memory of its driver, from which the GPU copies. If that memory is in use, or if the device is
//! the host, it is host memory; on the host device the elements stay there.

use super::handle::Array;
use super::pending::may_block;
use super::record::source;
use super::tape::Home;
use crate::bulk;
use crate::config::DeviceChoice;
use crate::contract::device::DeviceInfo;
use crate::error::{Error, ErrorKind, Result};
use crate::grants::{Grant, Granted};
use crate::graph::{DType, Element, Shape};
use crate::host_buffer::{HostBuffer, as_bytes};
use crate::ids::DeviceId;
use futures::FutureExt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// The longest time that a writer waits for memory to become free while no work of its own session is in progress.
const HELD_MAX: Duration = Duration::from_millis(250);
/// The longest time that it waits in total. Other threads may go on recording work in its session.
const UNDER_WAY_MAX: Duration = Duration::from_secs(60);
/// Below this size, copying costs less than a buffer of its own.
const DIRECT_BYTES_MIN: usize = 64 << 10;

/// Memory for an array's elements, zero at first, in column-major order. [`UploadWriter::finish`] turns it into
/// the array without another copy on the host; an array that goes to a GPU is filled in memory that the GPU reads.
pub struct UploadWriter<T: Element> {
    home: Arc<Home>,
    shape: Shape,
    data: HostBuffer,
    /// The number of elements that `write` has written.
    written: usize,
    /// Whether the elements after those are zero.
    zeroed: bool,
    pin: Option<DeviceId>,
    element: PhantomData<T>,
}

impl<T: Element> UploadWriter<T> {
    /// Memory for an array that goes to a device: the one to which it is pinned, or the runtime's.
    pub(crate) fn new(home: Arc<Home>, shape: Shape, pin: Option<DeviceId>) -> Result<UploadWriter<T>> {
        home.is_open()?;
        let bytes = bytes_of::<T>(&shape);
        let grant = granted(&home, bytes)?;
        UploadWriter::with(home, shape, pin, grant, true)
    }

    /// The same, as soon as other writers leave room for it.
    pub(crate) fn when_free(
        home: Arc<Home>,
        shape: Shape,
        pin: Option<DeviceId>,
    ) -> impl Future<Output = Result<UploadWriter<T>>> + Send + 'static {
        let waits = home.is_open().map(|()| MemoryWait::new(home, bytes_of::<T>(&shape)));
        async move {
            let mut waits = waits?;
            let grant = (&mut waits.granted).await?;
            waits.home.is_open()?;
            // This does not wait for a GPU that is not open yet.
            UploadWriter::with(waits.home.clone(), shape, pin, grant, false)
        }
    }

    fn with(
        home: Arc<Home>,
        shape: Shape,
        pin: Option<DeviceId>,
        grant: Grant,
        opens: bool,
    ) -> Result<UploadWriter<T>> {
        let elements = shape.elements();
        let (data, zeroed) = match gpu_memory::<T>(&home, elements, pin, opens) {
            Some(data) => (data, false),
            None => (HostBuffer::try_zeroed(T::DTYPE, elements)?, true),
        };
        let data = data.granted(grant);
        Ok(UploadWriter { home, shape, data, written: 0, zeroed, pin, element: PhantomData })
    }

    /// The extents.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// All elements, for writing in any order, also by several threads at a time (split the slice).
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        self.zero();
        self.all()
    }

    /// Appends elements after those that `write` wrote before.
    ///
    /// # Errors
    /// `ErrorKind::Shape` if the elements do not fit the array; nothing is written then.
    pub fn write(&mut self, elements: &[T]) -> Result<()> {
        let (from, len) = (self.written, self.data.len());
        let Some(room) = self.all().get_mut(from..).and_then(|rest| rest.get_mut(..elements.len())) else {
            let message = format!("{} elements after {from} overflow an array of {len}", elements.len());
            return Err(Error::new(ErrorKind::Shape, message).with_op("upload"));
        };
        bulk::copy(elements, room);
        self.written += elements.len();
        Ok(())
    }

    /// The array. Elements that were not written are zero.
    #[track_caller]
    pub fn finish(mut self) -> Array {
        self.zero();
        source(&self.home, self.data, self.shape, "upload", Location::caller()).pinned(self.pin)
    }

    /// Sets elements that were not written to zero, because memory that was used before has other contents. Bytes of
    /// zero are zeros of every type.
    fn zero(&mut self) {
        if !std::mem::replace(&mut self.zeroed, true) {
            let from = self.written * T::DTYPE.bytes();
            self.data.fill().expect("BUF-2: the buffer was made here").split_at_mut(from).1.fill(0);
        }
    }

    fn all(&mut self) -> &mut [T] {
        let len = self.data.len();
        let bytes = self.data.fill().expect("BUF-2: the buffer was made here");
        // SAFETY: there are `len` elements of this type (`new`), aligned for it, as host memory is to 64 bytes and
        // leased memory to 16; the types that leased memory may have had anything of have no invalid values.
        unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), len) }
    }
}

fn bytes_of<T: Element>(shape: &Shape) -> u64 {
    shape.elements() as u64 * T::DTYPE.bytes() as u64
}

/// The bytes that all writers together may hold.
fn budget(home: &Home) -> u64 {
    home.link.devices.host_now().map_or(u64::MAX, |host| host.budget_bytes)
}

/// A session that waits for memory to fill. While it waits, drops are not held back on its tape.
struct MemoryWait {
    home: Arc<Home>,
    granted: Granted,
    /// Whether it had to wait.
    waits: bool,
}

impl MemoryWait {
    fn new(home: Arc<Home>, bytes: u64) -> MemoryWait {
        let (grants, budget) = (home.link.devices.grants(), budget(&home));
        let granted = grants.when_free(home.id.0, bytes, budget);
        let waits = granted.must_wait();
        if waits {
            home.uploads_awaited.fetch_add(1, SeqCst);
            home.make_room();
        }
        MemoryWait { home, granted, waits }
    }
}

impl Drop for MemoryWait {
    fn drop(&mut self) {
        self.home.uploads_awaited.fetch_sub(self.waits.into(), SeqCst);
    }
}

/// Takes bytes of the memory for writers, which is as much as the host's budget, in addition to it. If the memory is in
/// use, some of it may be about to become free. So the tape is cut, because it may hold drops, and the caller is
/// blocked until the work that its session has recorded is done, and a moment longer. In async code the caller is not
/// blocked.
fn granted(home: &Arc<Home>, bytes: u64) -> Result<Grant> {
    let (devices, budget) = (&home.link.devices, budget(home));
    let at_once = devices.grants().grant(bytes, budget);
    // A thread that polls futures is not blocked: `upload_async` waits without a thread.
    if at_once.is_ok() || bytes > budget || may_block("waiting for memory to fill").is_err() {
        return at_once;
    }
    let mut waits = MemoryWait::new(home.clone(), bytes);
    let start = Instant::now();
    let mut idle_since = start;
    while idle_since.elapsed() < HELD_MAX {
        if let Some(grant) = (&mut waits.granted).now_or_never() {
            return grant;
        }
        if !home.gate().is_empty() && start.elapsed() < UNDER_WAY_MAX {
            idle_since = Instant::now();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    at_once
}

/// A copy of the caller's elements. If they go to a GPU that is open, they are copied to memory that it reads.
pub(super) fn copied<T: Element>(home: &Arc<Home>, elements: &[T]) -> HostBuffer {
    let Some(mut data) = gpu_memory::<T>(home, elements.len(), None, false) else {
        return HostBuffer::from_slice(elements);
    };
    bulk::copy(as_bytes(elements), data.fill().expect("BUF-2: the buffer was made here"));
    data
}

/// Memory with unspecified contents for elements that go to a GPU, which reads them there. `None` if they go elsewhere,
/// are few, or no such memory is left.
fn gpu_memory<T: Element>(home: &Arc<Home>, elements: usize, pin: Option<DeviceId>, opens: bool) -> Option<HostBuffer> {
    let is_named = matches!(home.link.config.device, DeviceChoice::Gpu(_));
    let is_wanted = pin.map_or(is_named, |device| device != DeviceId::HOST);
    let is_long = elements * T::DTYPE.bytes() >= DIRECT_BYTES_MIN;
    let memory = if is_wanted && is_long { leased(home, pin, T::DTYPE, elements, opens) } else { None };
    memory.map(|memory| HostBuffer::from_mapped(T::DTYPE, elements, memory))
}

/// Memory of the device that was named, or of the one beside the host, if there is some left and the device's elements
/// of this type are as wide as the caller's. A device that was named and is opened on demand is opened if the caller
/// may wait, because the array goes there.
fn leased(
    home: &Arc<Home>,
    pin: Option<DeviceId>,
    dtype: DType,
    elements: usize,
    opens: bool,
) -> Option<Box<dyn crate::host_buffer::MappedBytes>> {
    let devices = &home.link.devices;
    // Opening takes as long as the driver does, so async code does not wait for it. Nor is a device opened for elements
    // that it may have to widen.
    let may_widen = dtype.bytes() != dtype.gpu_bytes();
    let is_deferred = || home.link.config.opens_on_demand() && (may_widen || may_block("opening a GPU").is_err());
    let known = if opens && !is_deferred() { devices.all() } else { devices.open() };
    let is_it = |device: &&DeviceInfo| match pin {
        Some(pin) => device.id == pin,
        None => !device.capabilities.owns_host_budget,
    };
    let device = known.iter().find(is_it)?;
    // The caller's elements are copied there unchanged.
    let fits = device.element_bytes(dtype) == dtype.bytes() as u64;
    if fits { devices.upload_memory(device.id)?.lease(elements * dtype.bytes()) } else { None }
}
