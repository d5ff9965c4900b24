//! What ops need beside their arguments and their value on devices that run them in parallel parts.
//!
//! In: lengths. Out: 32-bit words of scratch, in one piece. The partial results of products of matrices depend on how
//! these are cut, which `kernels::matmul` knows.

/// 32-bit words in which a GPU keeps, for each place along an indexed extent, which of several assignments to it wins.
pub fn assign_scratch_words(extent: u64, scalar_value: bool) -> u64 {
    // Where all get the same, nobody wins.
    if scalar_value { 0 } else { extent }
}

/// 32-bit words that a GPU sorts so many lines of so many elements in: padded lines of positions (`kernels/sort`).
pub fn sort_scratch_words(len: u64, lines: u64) -> u64 {
    len.next_power_of_two().saturating_mul(lines)
}
