//! Memory that ops need beside their arguments and their value on devices that run them in parallel parts.
//!
//! In: lengths. Out: 32-bit words of scratch, in one piece. `kernels::matmul` knows the scratch of matrix products,
//! which depends on how they are cut.

use crate::dtype::DType;

/// 32-bit words in which a GPU notes, for each place along an indexed extent, which of several assignments to it wins.
pub fn assign_scratch_words(extent: u64, scalar_value: bool) -> u64 {
    // If all assignments write the same number, no place needs a winner.
    if scalar_value { 0 } else { extent }
}

/// The number of elements that a GPU's workgroup sorts by comparing them.
pub const SORT_BLOCK: u64 = 1024;
/// The number of elements that a workgroup sorts by digits, if lines are longer than `SORT_BLOCK`. Lines of at most
/// this many elements need no scratch.
pub const SORT_TILE: u64 = 4096;
/// The number of values of a digit, which has 8 bits.
pub const SORT_DIGITS: u64 = 256;

/// The number of digits in a sort key of this dtype.
pub fn sort_digits(dtype: DType) -> u32 {
    match dtype {
        DType::Bool | DType::U8 => 1,
        DType::F32 | DType::I32 | DType::U32 => 4,
        DType::F64 | DType::I64 => 8,
    }
}

/// 32-bit words of scratch that a GPU needs to sort `lines` lines of `len` elements (`kernels/sort`). Keys of several
/// digits take two copies of the keys and one copy of the positions. Each digit of each line takes a count for each
/// tile, and the sum of these counts.
pub fn sort_scratch_words(dtype: DType, len: u64, lines: u64) -> u64 {
    if len <= SORT_TILE {
        // A workgroup counts places, of padded lines, in 32 bits. If there are more places than that, no GPU sorts the
        // lines.
        let padded = if len <= SORT_BLOCK { len.next_power_of_two() } else { len };
        let places = lines.saturating_mul(padded);
        return if places > u32::MAX as u64 { places } else { 0 };
    }
    let words = if dtype.is_wide() { 2 } else { 1 };
    let copies = if sort_digits(dtype) > 1 { 2 * words + 1 } else { 0 };
    let counts = SORT_DIGITS * (len.div_ceil(SORT_TILE) + 1);
    lines.saturating_mul(len.saturating_mul(copies).saturating_add(counts))
}
