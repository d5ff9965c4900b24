//! Sorting permutations on the host. Keys become unsigned integers of the same order, with the position in the lower
//! bits, so that any sort is stable and the result does not depend on the number of threads.

use crate::error::{Error, ErrorKind, Result};
use crate::graph::DType;
use crate::kernels::eval::{HostOperand, Pool};
use crate::kernels::library::Library;
use rayon::slice::ParallelSliceMut;

/// A line of at least this length is sorted by several threads.
const LONG: usize = 1 << 16;

/// Runs `Library::ArgSort` over its operands `[keys, out]` (and unused scratch).
///
/// # Errors
/// `ErrorKind::OutOfMemory` if there is no memory for a line's keys.
pub fn run(library: &Library, operands: &[HostOperand<'_>], pool: &Pool) -> Result<()> {
    let &Library::ArgSort { dtype, .. } = library else { panic!("LIB-1: {library:?} is no sort") };
    match dtype {
        DType::F32 => sort_all::<f32>(library, operands, pool),
        DType::F64 => sort_all::<f64>(library, operands, pool),
        DType::Bool | DType::U8 => sort_all::<u8>(library, operands, pool),
        DType::I32 => sort_all::<i32>(library, operands, pool),
        DType::U32 => sort_all::<u32>(library, operands, pool),
        DType::I64 => sort_all::<i64>(library, operands, pool),
    }
}

/// A key as an unsigned number of the same order, with its position.
trait Key: Copy + Send + Sync {
    type Ranked: Ord + Copy + Send;
    fn ranked(self, descending: bool, position: u32) -> Self::Ranked;
    fn position(ranked: Self::Ranked) -> u32;
}

macro_rules! narrow_key {
    ($($ty:ty: $x:ident => $rank:expr),*) => {$(
        impl Key for $ty {
            type Ranked = u64;
            fn ranked(self, descending: bool, position: u32) -> u64 {
                let $x = self;
                let rank: u32 = $rank;
                ((if descending { !rank } else { rank }) as u64) << 32 | position as u64
            }
            fn position(ranked: u64) -> u32 {
                ranked as u32
            }
        }
    )*};
}

macro_rules! wide_key {
    ($($ty:ty: $x:ident => $rank:expr),*) => {$(
        impl Key for $ty {
            type Ranked = (u64, u32);
            fn ranked(self, descending: bool, position: u32) -> (u64, u32) {
                let $x = self;
                let rank: u64 = $rank;
                (if descending { !rank } else { rank }, position)
            }
            fn position(ranked: (u64, u32)) -> u32 {
                ranked.1
            }
        }
    )*};
}

narrow_key! {
    u8: x => x as u32,
    u32: x => x,
    i32: x => x as u32 ^ 1 << 31,
    f32: x => if x.is_nan() {
        u32::MAX
    } else {
        // Adding 0 makes -0 equal to 0.
        let bits = (x + 0.0).to_bits();
        if bits >> 31 == 1 { !bits } else { bits | 1 << 31 }
    }
}

wide_key! {
    i64: x => x as u64 ^ 1 << 63,
    f64: x => if x.is_nan() {
        u64::MAX
    } else {
        let bits = (x + 0.0).to_bits();
        if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
    }
}

/// A pointer that workers share. Each worker writes the lines that it has taken.
struct Shared(*mut u32);

impl Shared {
    fn at(&self) -> *mut u32 {
        self.0
    }
}

// SAFETY: workers write disjoint lines.
unsafe impl Sync for Shared {}

fn sort_all<K: Key>(library: &Library, operands: &[HostOperand<'_>], pool: &Pool) -> Result<()> {
    let &Library::ArgSort { before, len, after, descending, .. } = library else {
        panic!("LIB-1: {library:?} is no sort");
    };
    let (before, len, lines) = (before as usize, len as usize, before as usize * after as usize);
    let keys = operands[0].slice::<K>();
    // SAFETY: this is the only slice of `out`.
    let out = unsafe { operands[1].slice_mut::<u32>() };
    assert!(keys.len() >= lines * len && out.len() >= lines * len, "EVAL-1: a sort of {lines} lines of {len}");
    if len == 0 || lines == 0 {
        return Ok(());
    }
    let out = Shared(out.as_mut_ptr());
    let one_by_one = lines < pool.threads() && len >= LONG && pool.threads() > 1;
    let failed = parking_lot::Mutex::new(None);
    let worth = !one_by_one && lines * len >= 1 << 14;
    pool.run(lines, worth, |tasks| {
        let mut ranked: Vec<K::Ranked> = Vec::new();
        for line in tasks {
            if ranked.try_reserve(len).is_err() {
                let text = format!("no memory to sort {len} keys");
                *failed.lock() = Some(Error::new(ErrorKind::OutOfMemory, text));
                return;
            }
            let first = line % before + line / before * before * len;
            ranked.extend((0..len).map(|i| keys[first + i * before].ranked(descending, i as u32)));
            if one_by_one {
                pool.install(|| ranked.par_sort_unstable());
            } else {
                ranked.sort_unstable();
            }
            for (i, &key) in ranked.iter().enumerate() {
                // SAFETY: within the `lines * len` elements; lines are disjoint.
                unsafe { out.at().add(first + i * before).write(K::position(key)) };
            }
            ranked.clear();
        }
    });
    match failed.into_inner() {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Element;
    use crate::host_buffer::as_bytes;

    fn argsort<T: Element>(
        keys: &[T],
        before: u32,
        len: u32,
        after: u32,
        descending: bool,
        threads: usize,
    ) -> Vec<u32> {
        let mut out = vec![u32::MAX; keys.len()];
        let bytes = out.len() * 4;
        // SAFETY: plain numbers.
        let bytes = unsafe { std::slice::from_raw_parts_mut(out.as_mut_ptr().cast(), bytes) };
        let operands = [HostOperand::read(as_bytes(keys)), HostOperand::write(bytes)];
        let library = Library::ArgSort { dtype: T::DTYPE, before, len, after, descending };
        run(&library, &operands, &Pool::new(Some(threads)).unwrap()).unwrap();
        out
    }

    #[test]
    fn nan_is_greatest_zeros_are_equal_and_ties_keep_their_order() {
        let keys = [1.0f32, f32::NAN, -0.0, 0.0, f32::NEG_INFINITY, -f32::NAN, 1.0, f32::INFINITY, -2.5];
        assert_eq!(argsort(&keys, 1, 9, 1, false, 1), [4, 8, 2, 3, 0, 6, 7, 1, 5]);
        assert_eq!(argsort(&keys, 1, 9, 1, true, 1), [1, 5, 7, 0, 6, 2, 3, 8, 4]);
        let wide = keys.map(f64::from);
        assert_eq!(argsort(&wide, 1, 9, 1, false, 1), [4, 8, 2, 3, 0, 6, 7, 1, 5]);
        assert_eq!(argsort(&wide, 1, 9, 1, true, 1), [1, 5, 7, 0, 6, 2, 3, 8, 4]);
    }

    #[test]
    fn every_integer_class_sorts_over_its_whole_range() {
        assert_eq!(argsort(&[i32::MAX, -1, i32::MIN, 0, -1], 1, 5, 1, false, 1), [2, 1, 4, 3, 0]);
        assert_eq!(argsort(&[u32::MAX, 1, 1 << 31, 0], 1, 4, 1, true, 1), [0, 2, 1, 3]);
        assert_eq!(argsort(&[i64::MAX, (1 << 53) + 1, 1 << 53, i64::MIN], 1, 4, 1, false, 1), [3, 2, 1, 0]);
        assert_eq!(argsort(&[3u8, 255, 3, 0], 1, 4, 1, false, 1), [3, 0, 2, 1]);
        assert_eq!(argsort(&[true, false, true, false], 1, 4, 1, true, 1), [0, 2, 1, 3]);
    }

    #[test]
    fn lines_along_a_middle_dimension_are_sorted_each_for_itself() {
        // The array is 2 x 3 x 2, and lines lie along dimension 1.
        let keys = [3, 30, 1, 20, 2, 10, 6, 50, 5, 60, 4, 40];
        assert_eq!(argsort(&keys.map(|k: i32| k), 2, 3, 2, false, 1), [1, 2, 2, 1, 0, 0, 2, 2, 1, 0, 0, 1]);
        assert_eq!(argsort(&[0i32; 0], 4, 0, 2, false, 1), [0u32; 0]);
    }

    #[test]
    fn long_lines_have_one_order_for_any_number_of_threads() {
        let keys: Vec<f32> = (0..200_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 20) as f32).collect();
        let mut expected: Vec<u32> = (0..200_000).collect();
        expected.sort_by(|&a, &b| keys[a as usize].total_cmp(&keys[b as usize]));
        for threads in [1, 2, 5] {
            assert_eq!(argsort(&keys, 1, 200_000, 1, false, threads), expected);
        }
    }
}
