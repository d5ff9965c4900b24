//! The memory of a kernel's operand, and moving elements between it and blocks.
//!
//! In: raw host memory, lane indices. Out: elements of blocks, and back. Elements are moved as words of
//! their width, whatever their dtype.
//!
//! Must hold:
//! - EVAL-1: every element that is read or written lies within its operand. This is checked here; an element outside is
//!   a panic.

use crate::graph::{DType, Scalar};
use std::marker::PhantomData;

/// The memory of one operand: dense elements in host layout (a bool is one byte), aligned to its dtype.
///
/// It is a pointer and not a slice, because worker threads write disjoint elements of it.
#[derive(Clone, Copy, Debug)]
pub struct HostOperand<'a> {
    at: *mut u8,
    bytes: usize,
    life: PhantomData<&'a mut [u8]>,
}

// SAFETY: the creator of an operand promises that the memory is plain bytes that outlive `'a`, and that nothing else
// writes a readable operand during the launch. Kernels write each element from one thread.
unsafe impl Send for HostOperand<'_> {}
// SAFETY: as above.
unsafe impl Sync for HostOperand<'_> {}

impl<'a> HostOperand<'a> {
    /// An operand that is only read.
    pub fn read(bytes: &'a [u8]) -> HostOperand<'a> {
        HostOperand { at: bytes.as_ptr().cast_mut(), bytes: bytes.len(), life: PhantomData }
    }

    /// An operand that is written, or read and written in place.
    pub fn write(bytes: &'a mut [u8]) -> HostOperand<'a> {
        HostOperand { at: bytes.as_mut_ptr(), bytes: bytes.len(), life: PhantomData }
    }

    /// An operand that the host does not use (the GPU's scratch).
    pub fn none() -> HostOperand<'a> {
        HostOperand { at: std::ptr::NonNull::<u64>::dangling().as_ptr().cast(), bytes: 0, life: PhantomData }
    }

    /// The number of elements of `width` bytes that it holds.
    pub(crate) fn elements(&self, width: usize) -> usize {
        self.bytes / width
    }

    /// Its elements, for reading.
    pub(crate) fn slice<T: Copy>(&self) -> &'a [T] {
        // SAFETY: the promise of the operand's creator, which includes the dtype's alignment.
        unsafe { std::slice::from_raw_parts(self.at.cast(), self.bytes / size_of::<T>()) }
    }

    /// Its elements, for writing.
    ///
    /// # Safety
    /// It is a writable operand, and no other slice of it is alive.
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn slice_mut<T: Copy>(&self) -> &'a mut [T] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.at.cast(), self.bytes / size_of::<T>()) }
    }

    /// The address of `lanes` elements of `width` bytes from element `first`. Panics outside (EVAL-1).
    pub(super) fn span(&self, width: usize, first: u32, lanes: usize) -> *mut u8 {
        let elements = self.elements(width);
        if first as usize + lanes > elements {
            outside(first as usize + lanes - 1, elements);
        }
        // SAFETY: inside of the operand.
        unsafe { self.at.add(first as usize * width) }
    }

    /// One element. An operand without elements reads as zero.
    pub(super) fn scalar(&self, dtype: DType, index: u32) -> Scalar {
        if self.bytes == 0 {
            return Scalar::from_bits(dtype, 0);
        }
        // SAFETY: `span` checks; the width is the dtype's.
        unsafe { read_scalar(self.span(dtype.bytes(), index, 1), dtype) }
    }
}

#[cold]
fn outside(index: usize, elements: usize) -> ! {
    panic!("EVAL-1: element {index} of an operand with {elements}");
}

/// Reads one element.
///
/// # Safety
/// `at` points to an element of this dtype.
pub(super) unsafe fn read_scalar(at: *const u8, dtype: DType) -> Scalar {
    // SAFETY: the caller's promise.
    let bits = unsafe {
        match dtype.bytes() {
            1 => *at as u64,
            4 => at.cast::<u32>().read() as u64,
            _ => at.cast::<u64>().read(),
        }
    };
    Scalar::from_bits(dtype, bits)
}

/// Runs an expression with `$word` as the unsigned type of that many bytes.
macro_rules! by_width {
    ($width:expr, $word:ident => $body:expr) => {
        match $width {
            1 => {
                type $word = u8;
                $body
            }
            4 => {
                type $word = u32;
                $body
            }
            _ => {
                type $word = u64;
                $body
            }
        }
    };
}

/// Fills `lanes` elements with a scalar.
///
/// # Safety
/// `to` points to that many elements of the scalar's dtype, for writing.
pub(super) unsafe fn fill(to: *mut u8, value: Scalar, lanes: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        by_width!(value.dtype().bytes(), Word => {
            std::slice::from_raw_parts_mut(to.cast::<Word>(), lanes).fill(value.bits() as Word)
        })
    }
}

/// Copies elements `start + step * lane` to a block (`step` is two's complement).
///
/// # Safety
/// `to` points to `lanes` elements of `width` bytes, for writing.
pub(super) unsafe fn gather_line(from: &HostOperand, width: usize, start: u32, step: u32, to: *mut u8, lanes: usize) {
    if lanes == 0 {
        return;
    }
    let last = start as i64 + step as i32 as i64 * (lanes as i64 - 1);
    let elements = from.elements(width);
    if elements == 0 {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::write_bytes(to, 0, lanes * width) };
        return;
    }
    if start as usize >= elements || last < 0 || last >= elements as i64 {
        outside(start.max(last as u32) as usize, elements);
    }
    // SAFETY: both ends are inside, so all lanes are; `to` is the caller's promise.
    unsafe {
        by_width!(width, Word => {
            let source = from.at.cast::<Word>();
            let out = std::slice::from_raw_parts_mut(to.cast::<Word>(), lanes);
            match step {
                0 => out.fill(source.add(start as usize).read()),
                1 => std::ptr::copy_nonoverlapping(source.add(start as usize), out.as_mut_ptr(), lanes),
                _ => {
                    let mut at = start;
                    for slot in out {
                        *slot = source.add(at as usize).read();
                        at = at.wrapping_add(step);
                    }
                }
            }
        })
    }
}

/// Copies the elements at a block of indices. Where the guard (a byte for each lane) is 0, the copy gets zero instead.
///
/// # Safety
/// `to` points to `index.len()` elements of `width` bytes, for writing; a guard has a byte for each lane.
pub(super) unsafe fn gather(from: &HostOperand, width: usize, index: &[u32], guard: Option<&[u8]>, to: *mut u8) {
    // SAFETY: `to` is the caller's promise; reads are checked.
    unsafe {
        by_width!(width, Word => {
            let source = from.slice::<Word>();
            let out = std::slice::from_raw_parts_mut(to.cast::<Word>(), index.len());
            match guard {
                _ if source.is_empty() => out.fill(0),
                None => {
                    for (slot, &at) in out.iter_mut().zip(index) {
                        *slot = match source.get(at as usize) { Some(&v) => v, None => outside(at as usize, source.len()) };
                    }
                }
                Some(guard) => {
                    for ((slot, &at), &on) in out.iter_mut().zip(index).zip(guard) {
                        *slot = if on == 0 { 0 } else {
                            match source.get(at as usize) { Some(&v) => v, None => outside(at as usize, source.len()) }
                        };
                    }
                }
            }
        })
    }
}

/// The values that are stored: an element for each lane, or one value for all.
#[derive(Clone, Copy)]
pub(super) enum Stored {
    /// A block, with an element for each lane.
    Block(*const u8),
    /// The same value for all lanes.
    Scalar(Scalar),
}

impl Stored {
    /// The same values, from `bytes` bytes on.
    ///
    /// # Safety
    /// A block has that many bytes.
    pub unsafe fn skip(self, bytes: usize) -> Stored {
        match self {
            // SAFETY: the caller's promise.
            Stored::Block(block) => Stored::Block(unsafe { block.add(bytes) }),
            Stored::Scalar(scalar) => Stored::Scalar(scalar),
        }
    }
}

/// Writes elements `start + step * lane` (`step` is two's complement).
///
/// # Safety
/// As [`store_line`].
pub(super) unsafe fn store_step(to: &HostOperand, width: usize, start: u32, step: u32, value: Stored, lanes: usize) {
    if step == 1 || lanes == 1 {
        // SAFETY: the caller's promise.
        return unsafe { store_line(to, width, start, value, None, lanes) };
    }
    let elements = to.elements(width);
    let last = start as i64 + step as i32 as i64 * (lanes as i64 - 1);
    if start as usize >= elements || last < 0 || last >= elements as i64 {
        outside(start.max(last as u32) as usize, elements);
    }
    // SAFETY: both ends are inside, so all lanes are; the block is the caller's promise.
    unsafe {
        by_width!(width, Word => {
            let out = to.at.cast::<Word>();
            let mut at = start;
            for lane in 0..lanes {
                out.add(at as usize).write(match value {
                    Stored::Scalar(scalar) => scalar.bits() as Word,
                    Stored::Block(block) => block.cast::<Word>().add(lane).read(),
                });
                at = at.wrapping_add(step);
            }
        })
    }
}

/// Writes `lanes` consecutive elements, except those whose guard is 0.
///
/// # Safety
/// A block holds `lanes` elements of `width` bytes. No other thread accesses the written elements of the operand.
pub(super) unsafe fn store_line(
    to: &HostOperand,
    width: usize,
    first: u32,
    value: Stored,
    guard: Option<&[u8]>,
    lanes: usize,
) {
    let out = to.span(width, first, lanes);
    // SAFETY: `span` checked the range; the block is the caller's promise.
    unsafe {
        match (value, guard) {
            (Stored::Scalar(scalar), None) => fill(out, scalar, lanes),
            // The block may be the same memory, if the operand is updated in place.
            (Stored::Block(block), None) => std::ptr::copy(block, out, lanes * width),
            (value, Some(guard)) => by_width!(width, Word => {
                let out = out.cast::<Word>();
                for (lane, &on) in guard.iter().enumerate().take(lanes) {
                    if on != 0 {
                        out.add(lane).write(match value {
                            Stored::Scalar(scalar) => scalar.bits() as Word,
                            Stored::Block(block) => block.cast::<Word>().add(lane).read(),
                        });
                    }
                }
            }),
        }
    }
}

/// Writes elements at a block of indices, except those whose guard is 0.
///
/// # Safety
/// As [`store_line`].
pub(super) unsafe fn scatter(to: &HostOperand, width: usize, index: &[u32], value: Stored, guard: Option<&[u8]>) {
    let elements = to.elements(width);
    // SAFETY: writes are checked; the block is the caller's promise.
    unsafe {
        by_width!(width, Word => {
            let out = to.at.cast::<Word>();
            for (lane, &at) in index.iter().enumerate() {
                if guard.is_some_and(|g| g[lane] == 0) {
                    continue;
                }
                if at as usize >= elements {
                    outside(at as usize, elements);
                }
                out.add(at as usize).write(match value {
                    Stored::Scalar(scalar) => scalar.bits() as Word,
                    Stored::Block(block) => block.cast::<Word>().add(lane).read(),
                });
            }
        })
    }
}
