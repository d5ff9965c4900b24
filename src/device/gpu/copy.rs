//! Copy threads: filling and draining mapped memory, widening and narrowing bools and bytes on the way.
//!
//! In: host bytes and mapped bytes. Out: the same elements in the other form. The caller waits until all is done,
//! so that no pointer outlives its mapping.

use crate::graph::DType;
use std::ptr::NonNull;

/// Smaller copies are done on the caller's thread, since waking threads would cost more.
const PARALLEL_BYTES_MIN: usize = 4 << 20;
/// Bytes of one piece of a parallel copy.
const PIECE_BYTES: usize = 1 << 20;
/// Most threads; more do not copy faster.
const THREADS_MAX: usize = 8;

/// The threads.
pub(super) struct CopyPool {
    pool: Option<rayon::ThreadPool>,
}

/// A destination that several threads write disjoint parts of.
#[derive(Clone, Copy)]
struct Target(NonNull<u8>);

// SAFETY: every piece writes its own range, and `CopyPool::pieces` returns only after all pieces are done.
unsafe impl Send for Target {}
// SAFETY: as above.
unsafe impl Sync for Target {}

impl Target {
    /// The address `bytes` further on.
    ///
    /// # Safety
    /// It must lie in the destination.
    unsafe fn at(self, bytes: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { self.0.as_ptr().add(bytes) }
    }
}

impl CopyPool {
    /// A pool of `threads` threads. For one thread, none is started, and the caller copies.
    pub(super) fn new(threads: usize, name: &str) -> CopyPool {
        let threads = threads.min(THREADS_MAX);
        let name = name.to_owned();
        let builder =
            rayon::ThreadPoolBuilder::new().num_threads(threads).start_handler(|_| crate::threads::mark_own());
        // Without threads the caller copies: slower, never wrong.
        let pool = (threads > 1).then(|| builder.thread_name(move |i| format!("{name}-copy-{i}")).build().ok());
        CopyPool { pool: pool.flatten() }
    }

    /// Writes host elements in their GPU form to mapped memory.
    ///
    /// # Safety
    /// `to` must be valid for writing `from.len() / dtype.bytes() * dtype.gpu_bytes()` bytes, aligned to 4, and no
    /// other thread may access them meanwhile.
    pub(super) unsafe fn fill(&self, from: &[u8], dtype: DType, to: NonNull<u8>) {
        let to = Target(to);
        if dtype.bytes() == 1 {
            self.pieces(from.len(), PIECE_BYTES / 4, |range| {
                for at in range {
                    let word = u32::from(from[at]).to_le_bytes();
                    // SAFETY: word `at` lies in the destination, by the caller's promise.
                    unsafe { to.at(at * 4).cast::<[u8; 4]>().write_unaligned(word) };
                }
            });
        } else {
            self.pieces(from.len(), PIECE_BYTES, |range| {
                let piece = &from[range.clone()];
                // SAFETY: the range lies in the destination, by the caller's promise.
                unsafe { std::ptr::copy_nonoverlapping(piece.as_ptr(), to.at(range.start), piece.len()) };
            });
        }
    }

    /// Writes elements in their GPU form to host memory; `to` is as long as the elements' host form.
    pub(super) fn drain(&self, from: &[u8], dtype: DType, to: &mut [u8]) {
        let len = to.len();
        let Some(start) = NonNull::new(to.as_mut_ptr()) else { return };
        let to = Target(start);
        if dtype.bytes() == 1 {
            let truth = dtype == DType::Bool;
            self.pieces(len, PIECE_BYTES / 4, |range| {
                for at in range {
                    let low = from[at * 4];
                    // A bool must be 0 or 1 in host memory, whatever a kernel stored.
                    let byte = if truth { u8::from(from[at * 4..at * 4 + 4] != [0; 4]) } else { low };
                    // SAFETY: `at` is below the destination's length.
                    unsafe { to.at(at).write(byte) };
                }
            });
        } else {
            self.pieces(len, PIECE_BYTES, |range| {
                let piece = &from[range.clone()];
                // SAFETY: the range lies in the destination.
                unsafe { std::ptr::copy_nonoverlapping(piece.as_ptr(), to.at(range.start), piece.len()) };
            });
        }
    }

    /// Runs `work` over `0..len` in pieces, on several threads where that pays, and returns when all are done.
    fn pieces(&self, len: usize, piece: usize, work: impl Fn(std::ops::Range<usize>) + Sync) {
        let parallel = len / piece >= PARALLEL_BYTES_MIN / PIECE_BYTES;
        let Some(pool) = self.pool.as_ref().filter(|_| parallel) else {
            return work(0..len);
        };
        let work = &work;
        pool.in_place_scope(|scope| {
            for start in (0..len).step_by(piece) {
                scope.spawn(move |_| work(start..(start + piece).min(len)));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(pool: &CopyPool, from: &[u8], dtype: DType) -> Vec<u8> {
        let mut out = vec![0xAAu8; from.len() / dtype.bytes() * dtype.gpu_bytes()];
        // SAFETY: the vector has the promised length and is ours.
        unsafe { pool.fill(from, dtype, NonNull::new(out.as_mut_ptr()).unwrap()) };
        out
    }

    #[test]
    fn bytes_become_words_and_come_back() {
        let pool = CopyPool::new(1, "test");
        let words = filled(&pool, &[0, 1, 255], DType::U8);
        assert_eq!(words, [0, 0, 0, 0, 1, 0, 0, 0, 255, 0, 0, 0]);
        let mut back = [9u8; 3];
        pool.drain(&words, DType::U8, &mut back);
        assert_eq!(back, [0, 1, 255]);
    }

    #[test]
    fn a_word_that_is_not_zero_is_true() {
        let pool = CopyPool::new(1, "test");
        let mut back = [9u8; 3];
        pool.drain(&[0, 0, 0, 0, 0, 1, 0, 0, 7, 0, 0, 0], DType::Bool, &mut back);
        assert_eq!(back, [0, 1, 1]);
    }

    #[test]
    fn several_threads_copy_what_one_copies() {
        let from: Vec<u8> = (0..(9usize << 20) + 4).map(|i| (i * 31 % 251) as u8).collect();
        let pool = CopyPool::new(3, "test");
        assert!(filled(&pool, &from, DType::F32) == from);
        let words = filled(&pool, &from, DType::U8);
        let mut back = vec![0u8; from.len()];
        pool.drain(&words, DType::U8, &mut back);
        assert!(back == from);
    }
}
