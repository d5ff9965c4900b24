//! Assignment by index arrays on the host: one index after the other, so that the last of equal indices wins.

use crate::graph::DType;
use crate::kernels::eval::HostOperand;
use crate::kernels::library::Library;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Runs `Library::AssignIndex` over its operands `[out, index, value]`. An index outside of the
/// extent sets fault word `site`.
pub fn run(library: &Library, operands: &[HostOperand<'_>], faults: Option<&[AtomicU32]>, site: usize) {
    let &Library::AssignIndex { dtype, index_dtype, .. } = library else {
        panic!("LIB-1: {library:?} is no assignment");
    };
    let fault = match dtype.bytes() {
        1 => with_index::<u8>(library, index_dtype, operands),
        4 => with_index::<u32>(library, index_dtype, operands),
        _ => with_index::<u64>(library, index_dtype, operands),
    };
    if let (true, Some(words)) = (fault, faults) {
        assert!(site < words.len(), "EVAL-1: fault word {site} of {}", words.len());
        words[site].store(1, Relaxed);
    }
}

fn with_index<W: Copy>(library: &Library, index: DType, operands: &[HostOperand<'_>]) -> bool {
    match index {
        DType::Bool | DType::U8 => assign::<W, u8>(library, operands, |i| i as i64),
        DType::I32 => assign::<W, i32>(library, operands, |i| i as i64),
        DType::U32 => assign::<W, u32>(library, operands, |i| i as i64),
        DType::I64 => assign::<W, i64>(library, operands, |i| i),
        DType::F32 | DType::F64 => panic!("IR-7: an index is an integer"),
    }
}

/// Assigns the values. Returns whether an index was outside.
fn assign<W: Copy, I: Copy>(library: &Library, operands: &[HostOperand<'_>], wide: impl Fn(I) -> i64) -> bool {
    let &Library::AssignIndex { before, extent, after, count, scalar_value, .. } = library else {
        panic!("LIB-1: {library:?} is no assignment");
    };
    let (before, extent, after, count) = (before as usize, extent as usize, after as usize, count as usize);
    // SAFETY: this is the only slice of `out`, which is no other operand.
    let out = unsafe { operands[0].slice_mut::<W>() };
    let (index, value) = (&operands[1].slice::<I>()[..count], operands[2].slice::<W>());
    let mut fault = false;
    for b in 0..after {
        for (i, &at) in index.iter().enumerate() {
            let at = wide(at);
            if at < 0 || at >= extent as i64 {
                fault = true;
                continue;
            }
            let to = before * (at as usize + extent * b);
            let target = &mut out[to..to + before];
            if scalar_value {
                target.fill(value[0]);
            } else {
                let from = before * (i + count * b);
                target.copy_from_slice(&value[from..from + before]);
            }
        }
    }
    fault
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Element;
    use crate::host_buffer::as_bytes;

    fn assign_to<T: Element, I: Element>(
        out: &mut [T],
        index: &[I],
        value: &[T],
        (before, extent, after): (u32, u32, u32),
        scalar_value: bool,
    ) -> bool {
        let library = Library::AssignIndex {
            dtype: T::DTYPE,
            index_dtype: I::DTYPE,
            before,
            extent,
            after,
            count: index.len() as u32,
            scalar_value,
        };
        let bytes = std::mem::size_of_val(out);
        // SAFETY: plain numbers.
        let bytes = unsafe { std::slice::from_raw_parts_mut(out.as_mut_ptr().cast(), bytes) };
        let operands =
            [HostOperand::write(bytes), HostOperand::read(as_bytes(index)), HostOperand::read(as_bytes(value))];
        let words = [AtomicU32::new(0), AtomicU32::new(0)];
        run(&library, &operands, Some(&words), 1);
        assert_eq!(words[0].load(Relaxed), 0);
        words[1].load(Relaxed) == 1
    }

    #[test]
    fn the_last_of_duplicate_indices_wins() {
        let mut out = [0.0f32; 5];
        assert!(!assign_to(&mut out, &[1i32, 3, 1], &[10.0, 20.0, 30.0], (1, 5, 1), false));
        assert_eq!(out, [0.0, 30.0, 0.0, 20.0, 0.0]);
    }

    #[test]
    fn an_index_outside_faults_and_is_skipped() {
        let mut out = [7i64; 3];
        assert!(assign_to(&mut out, &[-1i32, 2, 3], &[1], (1, 3, 1), true));
        assert_eq!(out, [7, 7, 1]);
        let mut empty: [u8; 0] = [];
        assert!(!assign_to::<u8, u32>(&mut empty, &[], &[], (1, 0, 1), false));
    }

    #[test]
    fn a_middle_dimension_is_assigned_plane_by_plane() {
        // The array is 2 x 3 x 2. Columns 2 and 0 of each page are assigned.
        let mut out = [0u8; 12];
        assert!(!assign_to(&mut out, &[2u8, 0], &[1, 2, 3, 4, 5, 6, 7, 8], (2, 3, 2), false));
        assert_eq!(out, [3, 4, 0, 0, 1, 2, 7, 8, 0, 0, 5, 6]);
    }
}
