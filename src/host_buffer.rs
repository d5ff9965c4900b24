//! Buffers in host memory: data from users, results of gathers, and the host device's own data.
//!
//! Must hold: BUF-1: memory that this module allocates is aligned to 64 bytes, and its size was checked when its shape
//! was made. BUF-2: a buffer is written only while it has one owner, as a new one has; a shared buffer never is.

use crate::bulk;
use crate::dtype::{DType, Element};
use crate::error::{Error, ErrorKind, Result};
use crate::grants::Grant;
use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
#[cfg(feature = "gpu")]
use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::Arc;

/// Memory that a device has mapped for the host and takes back when this is dropped.
pub trait MappedBytes: Send + Sync {
    /// The mapped bytes.
    fn bytes(&self) -> &[u8];

    /// The bytes for writing, if the memory was made to be filled and is not shared yet.
    fn fill(&mut self) -> Option<&mut [u8]> {
        None
    }

    /// The object as `Any`, for the device that owns the memory.
    #[cfg(feature = "gpu")]
    fn as_any(&self) -> Option<&(dyn Any + Send + Sync)> {
        None
    }
}

/// A typed, immutable run of elements in host memory.
pub struct HostBuffer {
    dtype: DType,
    elements: usize,
    storage: Storage,
    /// The grant of an upload writer's memory, held as long as the buffer lives.
    grant: Option<Grant>,
}

enum Storage {
    Owned(Aligned),
    Vec(Box<dyn MappedBytes>),
}

/// 64-byte aligned bytes.
struct Aligned {
    at: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the allocation is owned and plain bytes.
unsafe impl Send for Aligned {}
// SAFETY: shared access is read-only.
unsafe impl Sync for Aligned {}

const ALIGNMENT: usize = 64;

impl Aligned {
    fn layout(bytes: usize) -> Layout {
        Layout::from_size_align(bytes.max(ALIGNMENT), ALIGNMENT).expect("BUF-1: sizes were checked when the shape was")
    }

    /// `None` if the memory cannot be allocated.
    fn try_new(bytes: usize, zeroed: bool) -> Option<Aligned> {
        let layout = Aligned::layout(bytes);
        // SAFETY: the layout has a size of at least 64.
        let at = NonNull::new(unsafe { if zeroed { alloc_zeroed(layout) } else { alloc(layout) } })?;
        bulk::on_huge_pages(at, bytes);
        Some(Aligned { at, bytes })
    }

    /// As `try_new`, but panics if the memory cannot be allocated. The panic fails the work in progress; an abort would
    /// end the user's process.
    fn new(bytes: usize, zeroed: bool) -> Aligned {
        Aligned::try_new(bytes, zeroed).unwrap_or_else(|| panic!("out of host memory: {bytes} bytes were asked for"))
    }

    fn slice(&self) -> &[u8] {
        // SAFETY: `at` points to at least `bytes` allocated bytes; see `HostBuffer::uninit` for initialisation.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.bytes) }
    }

    fn slice_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr(), self.bytes) }
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        // SAFETY: allocated with the same layout.
        unsafe { dealloc(self.at.as_ptr(), Aligned::layout(self.bytes)) }
    }
}

struct VecBytes<T: Element>(Vec<T>);

impl<T: Element> MappedBytes for VecBytes<T> {
    fn bytes(&self) -> &[u8] {
        as_bytes(&self.0)
    }
}

/// Elements that belong to an object of the program, with that owner. `as_ref` was called once; its result stays valid
/// as long as the owner is neither moved, changed nor dropped, even if another call would return something else.
struct Lent<T, O> {
    owner: NonNull<O>,
    elements: NonNull<[T]>,
}

// SAFETY: it is an owner and a shared borrow of it, and elements are plain data.
unsafe impl<T: Element, O: Send + Sync> Send for Lent<T, O> {}
// SAFETY: as above.
unsafe impl<T: Element, O: Send + Sync> Sync for Lent<T, O> {}

impl<T: Element, O: AsRef<[T]>> Lent<T, O> {
    fn new(owner: O) -> Result<Lent<T, O>> {
        let owner = NonNull::from(Box::leak(Box::new(owner)));
        let mut lent = Lent { owner, elements: NonNull::from(&mut [][..]) };
        // SAFETY: the owner was just made, and only shared borrows of it exist until `lent` is dropped.
        let ask = || NonNull::from(unsafe { owner.as_ref() }.as_ref());
        lent.elements = catch_unwind(AssertUnwindSafe(ask)).map_err(|panic| {
            let (lender, words) = (std::any::type_name::<O>(), crate::error::panic_words(&*panic));
            let message =
                format!("the program's lender of memory, {lender}, panicked when asked for its elements: {words}");
            Error::new(ErrorKind::Argument, message)
        })?;
        Ok(lent)
    }
}

impl<T: Element, O: Send + Sync + 'static> MappedBytes for Lent<T, O> {
    fn bytes(&self) -> &[u8] {
        // SAFETY: the elements are borrowed from the owner, which lives as long as this borrow.
        as_bytes(unsafe { self.elements.as_ref() })
    }
}

impl<T, O> Drop for Lent<T, O> {
    fn drop(&mut self) {
        // SAFETY: the owner was leaked from a box, and is not used after this.
        crate::threads::contain("the drop of memory that it lent", || {
            drop(unsafe { Box::from_raw(self.owner.as_ptr()) })
        });
    }
}

/// The bytes of a slice of elements.
pub fn as_bytes<T: Element>(slice: &[T]) -> &[u8] {
    // SAFETY: every `Element` is plain data without padding.
    unsafe { std::slice::from_raw_parts(slice.as_ptr().cast(), std::mem::size_of_val(slice)) }
}

impl HostBuffer {
    /// A buffer of zeros.
    pub fn zeroed(dtype: DType, elements: usize) -> HostBuffer {
        HostBuffer {
            dtype,
            elements,
            storage: Storage::Owned(Aligned::new(elements * dtype.bytes(), true)),
            grant: None,
        }
    }

    /// A buffer of zeros, or an error.
    ///
    /// # Errors
    /// `ErrorKind::OutOfMemory` if the memory cannot be allocated.
    pub fn try_zeroed(dtype: DType, elements: usize) -> Result<HostBuffer> {
        let bytes = elements * dtype.bytes();
        let storage = Aligned::try_new(bytes, true).ok_or_else(|| {
            Error::new(ErrorKind::OutOfMemory, format!("the machine has no {bytes} bytes of memory left"))
        })?;
        Ok(HostBuffer { dtype, elements, storage: Storage::Owned(storage), grant: None })
    }

    /// A buffer that the caller fills completely before it is read.
    ///
    /// # Safety
    /// Every byte must be written before it is read. Bools must be written as 0 or 1.
    pub unsafe fn uninit(dtype: DType, elements: usize) -> HostBuffer {
        HostBuffer {
            dtype,
            elements,
            storage: Storage::Owned(Aligned::new(elements * dtype.bytes(), false)),
            grant: None,
        }
    }

    /// A copy of a slice.
    pub fn from_slice<T: Element>(data: &[T]) -> HostBuffer {
        // SAFETY: filled on the next line.
        let mut buffer = unsafe { HostBuffer::uninit(T::DTYPE, data.len()) };
        bulk::copy(as_bytes(data), buffer.bytes_mut().expect("BUF-2: a fresh buffer is owned"));
        buffer
    }

    /// Takes a vector without copying it.
    pub fn from_vec<T: Element>(data: Vec<T>) -> HostBuffer {
        HostBuffer {
            dtype: T::DTYPE,
            elements: data.len(),
            storage: Storage::Vec(Box::new(VecBytes(data))),
            grant: None,
        }
    }

    /// A buffer that reads the owner's elements in place and keeps the owner alive. They are aligned as elements only,
    /// not to 64 bytes.
    ///
    /// # Errors
    /// `ErrorKind::Argument` if the owner's `as_ref` panics.
    pub fn from_shared<T: Element>(owner: impl AsRef<[T]> + Send + Sync + 'static) -> Result<HostBuffer> {
        let lent = Lent::<T, _>::new(owner)?;
        let elements = lent.elements.len();
        Ok(HostBuffer { dtype: T::DTYPE, elements, storage: Storage::Vec(Box::new(lent)), grant: None })
    }

    /// Memory mapped by a device, in host form: `elements * dtype.bytes()` bytes.
    pub fn from_mapped(dtype: DType, elements: usize, mapped: Box<dyn MappedBytes>) -> HostBuffer {
        debug_assert!(mapped.bytes().len() >= elements * dtype.bytes());
        HostBuffer { dtype, elements, storage: Storage::Vec(mapped), grant: None }
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.elements
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.elements == 0
    }

    /// The bytes, `len() * dtype().bytes()` of them.
    pub fn bytes(&self) -> &[u8] {
        let bytes = self.elements * self.dtype.bytes();
        match &self.storage {
            Storage::Owned(a) => &a.slice()[..bytes],
            Storage::Vec(m) => &m.bytes()[..bytes],
        }
    }

    /// The bytes for writing, if this module allocated them (not a user's vector or mapped memory).
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        let bytes = self.elements * self.dtype.bytes();
        match &mut self.storage {
            Storage::Owned(a) => Some(&mut a.slice_mut()[..bytes]),
            Storage::Vec(_) => None,
        }
    }

    /// The bytes for writing, also of a device's memory that was made to be filled. For the maker of the buffer, before
    /// it is shared.
    pub fn fill(&mut self) -> Option<&mut [u8]> {
        let bytes = self.elements * self.dtype.bytes();
        match &mut self.storage {
            Storage::Owned(a) => Some(&mut a.slice_mut()[..bytes]),
            Storage::Vec(m) => m.fill().map(|all| &mut all[..bytes]),
        }
    }

    /// The memory object, if the memory belongs to a user or a device.
    #[cfg(feature = "gpu")]
    pub fn mapped(&self) -> Option<&dyn MappedBytes> {
        match &self.storage {
            Storage::Owned(_) => None,
            Storage::Vec(m) => Some(&**m),
        }
    }

    /// The elements, if they are of type `T`.
    pub fn as_slice<T: Element>(&self) -> Option<&[T]> {
        if T::DTYPE != self.dtype {
            return None;
        }
        let bytes = self.bytes();
        debug_assert_eq!(bytes.as_ptr() as usize % std::mem::align_of::<T>(), 0);
        // SAFETY: the dtype matches, the length is the element count, the alignment holds for all storages,
        // and bools are written as 0 or 1 only.
        Some(unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), self.elements) })
    }

    /// One element as a scalar.
    pub fn scalar(&self, index: usize) -> crate::dtype::Scalar {
        let width = self.dtype.bytes();
        let mut word = [0u8; 8];
        word[..width].copy_from_slice(&self.bytes()[index * width..(index + 1) * width]);
        crate::dtype::Scalar::from_bits(self.dtype, u64::from_le_bytes(word))
    }

    /// The same buffer, which holds a grant as long as it lives.
    pub fn granted(mut self, grant: Grant) -> HostBuffer {
        self.grant = Some(grant);
        self
    }

    /// Wrapped for sharing.
    pub fn shared(self) -> Arc<HostBuffer> {
        Arc::new(self)
    }
}

impl fmt::Debug for HostBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostBuffer({} x {})", self.elements, self.dtype)
    }
}
