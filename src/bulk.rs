//! Large pieces of host memory: asking the system for huge pages, and copying by several threads.
//!
//! In: memory that was just allocated, or elements to copy. Out: the same memory on huge pages, or the copied elements.
//! A large copy into fresh memory spends most of its time in the system, on one page fault for every four kilobytes.
//! Huge pages make these faults fewer, and several threads take them at the same time.

use parking_lot::Mutex;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// Smaller pieces of memory are not worth a system call.
const HUGE_BYTES_MIN: usize = 4 << 20;
/// The size of a huge page, and its alignment.
const HUGE_BYTES: usize = 2 << 20;
/// The calling thread does smaller copies alone: starting a thread takes as long as copying half a megabyte.
const PARALLEL_BYTES_MIN: usize = 8 << 20;
/// A thread copies this much at a time: whole huge pages, so that few pages are shared by two threads.
const PIECE_BYTES: usize = 2 * HUGE_BYTES;
/// The most threads that copy together. More threads do not copy faster.
const THREADS_MAX: usize = 8;

/// Asks the system to use huge pages for memory that has not been written yet. Nothing happens if the memory is small,
/// or if the system has no huge pages.
pub fn on_huge_pages(at: NonNull<u8>, bytes: usize) {
    if bytes < HUGE_BYTES_MIN {
        return;
    }
    // Only huge pages that lie completely in the memory count: the offset of the first one, and the bytes of all of
    // them.
    let start = at.as_ptr().align_offset(HUGE_BYTES);
    let whole = bytes.saturating_sub(start) / HUGE_BYTES * HUGE_BYTES;
    if whole > 0 {
        advise(at, start, whole);
    }
}

#[cfg(target_os = "linux")]
fn advise(at: NonNull<u8>, start: usize, bytes: usize) {
    // SAFETY: the range lies in the caller's allocation, and the advice changes no byte of it. A system without huge
    // pages returns an error, which is ignored.
    let _ = unsafe { rustix::mm::madvise(at.as_ptr().add(start).cast(), bytes, rustix::mm::Advice::LinuxHugepage) };
}

#[cfg(not(target_os = "linux"))]
fn advise(_at: NonNull<u8>, _start: usize, _bytes: usize) {}

/// Copies `from` to `to`. Several threads do a large copy.
///
/// # Panics
/// If the lengths differ.
pub fn copy<T: Copy + Send + Sync>(from: &[T], to: &mut [T]) {
    // SAFETY: `MaybeUninit<T>` has the layout of `T`, and `fill` leaves each element initialised.
    fill(from, unsafe { &mut *(std::ptr::from_mut(to) as *mut [MaybeUninit<T>]) });
}

/// Appends `from` to a vector. Several threads do a large copy, as in [`copy`].
pub fn append<T: Copy + Send + Sync>(from: &[T], to: &mut Vec<T>) {
    to.reserve(from.len());
    let room = &mut to.spare_capacity_mut()[..from.len()];
    if let Some(at) = NonNull::new(room.as_mut_ptr().cast()) {
        on_huge_pages(at, size_of_val(room));
    }
    fill(from, room);
    // SAFETY: `fill` has written `from.len()` elements behind the vector's old end, within its capacity.
    unsafe { to.set_len(to.len() + from.len()) };
}

/// Copies every element of `from` to `to`.
fn fill<T: Copy + Send + Sync>(from: &[T], to: &mut [MaybeUninit<T>]) {
    assert_eq!(from.len(), to.len(), "a copy is as long as what is copied");
    let helpers = crate::threads::cores().min(THREADS_MAX).saturating_sub(1);
    if helpers == 0 || size_of_val(from) < PARALLEL_BYTES_MIN {
        return fill_piece(from, to);
    }
    let piece = PIECE_BYTES / size_of::<T>();
    let pieces = Mutex::new(from.chunks(piece).zip(to.chunks_mut(piece)));
    let work = || {
        while let Some((from, to)) = take(&pieces) {
            fill_piece(from, to);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..helpers {
            // If the system does not start a thread, the other threads copy its part.
            let _ = std::thread::Builder::new().name("tidemill-copy".into()).spawn_scoped(scope, work);
        }
        work();
    });
}

fn fill_piece<T: Copy>(from: &[T], to: &mut [MaybeUninit<T>]) {
    // SAFETY: both slices have the same length, and `to` is borrowed exclusively, so they do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_mut_ptr().cast(), from.len()) };
}

/// Takes the next piece. The lock is released on return, so that the threads copy in parallel.
fn take<T>(pieces: &Mutex<impl Iterator<Item = T>>) -> Option<T> {
    pieces.lock().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_by_several_threads_is_the_copy_by_one_at_any_length() {
        for length in [0, 1, 4097, PARALLEL_BYTES_MIN - 1, PARALLEL_BYTES_MIN, PARALLEL_BYTES_MIN + PIECE_BYTES + 3] {
            let from: Vec<u8> = (0..length).map(|i| (i * 31 % 251) as u8).collect();
            let mut to = vec![0; length];
            copy(&from, &mut to);
            assert!(from == to, "{length} bytes");
        }
        let mut grown = vec![1.5f64];
        let from: Vec<f64> = (0..PARALLEL_BYTES_MIN).map(|i| i as f64).collect();
        append(&from, &mut grown);
        assert!(grown[0] == 1.5 && grown[1..] == from);
    }

    #[test]
    fn advice_on_memory_of_any_place_and_length_changes_none_of_it() {
        let mut memory = vec![7u8; 3 * HUGE_BYTES_MIN];
        for (start, length) in [(0, 0), (1, HUGE_BYTES_MIN - 1), (64, HUGE_BYTES_MIN), (4097, 2 * HUGE_BYTES_MIN)] {
            on_huge_pages(NonNull::from(&mut memory[start]), length);
        }
        assert!(memory.iter().all(|byte| *byte == 7));
    }
}
