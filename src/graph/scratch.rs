//! What ops need beside their arguments and their value on devices that run them in parallel parts.
//!
//! In: lengths. Out: 32-bit words of scratch, in one piece. The partial results of products of matrices depend on how
//! these are cut, which `kernels::matmul` knows.

use crate::dtype::DType;

/// 32-bit words in which a GPU keeps, for each place along an indexed extent, which of several assignments to it wins.
pub fn assign_scratch_words(extent: u64, scalar_value: bool) -> u64 {
    // Where all get the same, nobody wins.
    if scalar_value { 0 } else { extent }
}

/// Elements that a GPU's workgroup sorts in its memory at once: lines of up to so many take no scratch.
pub const SORT_BLOCK: u64 = 1024;
/// Elements of longer lines that a workgroup sorts by a digit at once.
pub const SORT_TILE: u64 = 4096;
/// Values of a digit.
pub const SORT_DIGITS: u64 = 256;

/// Whether lines of so many elements are sorted by digits.
pub fn sort_digits_needed(len: u64) -> bool {
    len > SORT_BLOCK
}

/// Digits of a key.
pub fn sort_digits(dtype: DType) -> u32 {
    match dtype {
        DType::Bool | DType::U8 => 1,
        DType::F32 | DType::I32 | DType::U32 => 4,
        DType::F64 | DType::I64 => 8,
    }
}

/// 32-bit words that a GPU sorts so many lines of so many elements in (`kernels/sort`): two copies of the keys and one
/// of the positions, unless one digit is all, and for each digit of each line the counts of its tiles and their sum.
pub fn sort_scratch_words(dtype: DType, len: u64, lines: u64) -> u64 {
    if !sort_digits_needed(len) {
        return 0;
    }
    let words = if dtype.is_wide() { 2 } else { 1 };
    let copies = if sort_digits(dtype) > 1 { 2 * words + 1 } else { 0 };
    let counts = SORT_DIGITS * (len.div_ceil(SORT_TILE) + 1);
    lines.saturating_mul(len.saturating_mul(copies).saturating_add(counts))
}
