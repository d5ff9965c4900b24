//! Copies columns to rows, for tiles of transposes: small squares are transposed in CPU registers.
//!
//! In: the addresses of columns. Out: rows of memory, each with one element of every column. If the CPU has AVX2,
//! squares of eight by eight words (of four by four 64-bit ones) go through vectors. The rest is copied word by word.

/// A word that is copied: an element of 1, 4 or 8 bytes.
pub(super) trait Word: Copy {
    /// The side of the squares that go through vectors.
    #[cfg(target_arch = "x86_64")]
    const SIDE: usize;

    /// Transposes a square: `SIDE` elements, from `row` on, of each of `SIDE` columns.
    ///
    /// # Safety
    /// The CPU has AVX2; `columns` points to the addresses of `SIDE` columns, which have the elements, and `to` to
    /// `SIDE` rows of as many words.
    #[cfg(target_arch = "x86_64")]
    unsafe fn square(columns: *const *const Self, row: usize, to: *mut u8, pitch: usize);
}

/// Copies `rows` elements of each column: the elements of column `n` become the `n`-th words of the rows, which are
/// `pitch` bytes apart.
///
/// # Safety
/// The columns have `rows` elements, and `to` points to `rows` rows of as many words as there are columns, for writing.
pub(super) unsafe fn transpose<W: Word>(columns: &[*const W], rows: usize, to: *mut u8, pitch: usize) {
    // SAFETY: the caller's promise; AVX2 is used only if the CPU has it.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            return in_squares(columns, rows, to, pitch);
        }
        word_by_word(columns, 0..rows, to, pitch);
    }
}

/// As [`transpose`] for some of the rows, without vectors.
///
/// # Safety
/// As [`transpose`]; `to` is row 0, also if `rows` begins later.
#[inline(always)]
unsafe fn word_by_word<W: Word>(columns: &[*const W], rows: std::ops::Range<usize>, to: *mut u8, pitch: usize) {
    /// Columns that are written together.
    const COLUMNS: usize = 8;
    let (groups, rest) = columns.as_chunks::<COLUMNS>();
    // SAFETY: the caller's promise.
    unsafe {
        for (number, group) in groups.iter().enumerate() {
            let out = to.cast::<W>().add(number * COLUMNS).cast::<u8>();
            for row in rows.clone() {
                let words: [W; COLUMNS] = std::array::from_fn(|n| group[n].add(row).read());
                out.add(row * pitch).cast::<[W; COLUMNS]>().write(words);
            }
        }
        for (number, column) in rest.iter().enumerate() {
            let out = to.cast::<W>().add(groups.len() * COLUMNS + number).cast::<u8>();
            for row in rows.clone() {
                out.add(row * pitch).cast::<W>().write(column.add(row).read());
            }
        }
    }
}

/// As [`transpose`], with vectors. Takes as many columns at a time as fill a cache line of each row.
///
/// # Safety
/// As [`transpose`]; the CPU has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn in_squares<W: Word>(columns: &[*const W], rows: usize, to: *mut u8, pitch: usize) {
    const LINE: usize = 64;
    let whole_rows = rows / W::SIDE * W::SIDE;
    for (number, group) in columns.chunks(LINE / size_of::<W>()).enumerate() {
        let whole = group.len() / W::SIDE * W::SIDE;
        // SAFETY: the caller's promise.
        unsafe {
            let to = to.add(number * LINE);
            for row in (0..whole_rows).step_by(W::SIDE) {
                for column in (0..whole).step_by(W::SIDE) {
                    let out = to.add(row * pitch + column * size_of::<W>());
                    W::square(group.as_ptr().add(column), row, out, pitch);
                }
            }
            word_by_word(&group[whole..], 0..whole_rows, to.add(whole * size_of::<W>()), pitch);
            word_by_word(group, whole_rows..rows, to, pitch);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Word;
    use std::arch::x86_64::*;

    impl Word for u8 {
        const SIDE: usize = 8;

        #[inline(always)]
        unsafe fn square(columns: *const *const u8, row: usize, to: *mut u8, pitch: usize) {
            // SAFETY: the caller's promise.
            unsafe {
                let words: [u64; 8] =
                    std::array::from_fn(|n| (*columns.add(n)).add(row).cast::<u64>().read_unaligned());
                for (line, shift) in (0..64).step_by(8).enumerate() {
                    let bytes = words.map(|word| (word >> shift) as u8);
                    to.add(line * pitch).cast::<[u8; 8]>().write(bytes);
                }
            }
        }
    }

    impl Word for u32 {
        const SIDE: usize = 8;

        #[inline(always)]
        unsafe fn square(columns: *const *const u32, row: usize, to: *mut u8, pitch: usize) {
            // SAFETY: the caller's promise.
            unsafe {
                let c: [__m256; 8] = std::array::from_fn(|n| _mm256_loadu_ps((*columns.add(n)).add(row).cast()));
                // Interleaves the words of two columns, then of four, then of eight.
                let low = |n: usize| _mm256_unpacklo_ps(c[n], c[n + 1]);
                let high = |n: usize| _mm256_unpackhi_ps(c[n], c[n + 1]);
                let four = |n: usize| {
                    let (l0, l1, h0, h1) = (low(n), low(n + 2), high(n), high(n + 2));
                    [
                        _mm256_shuffle_ps::<0b01_00_01_00>(l0, l1),
                        _mm256_shuffle_ps::<0b11_10_11_10>(l0, l1),
                        _mm256_shuffle_ps::<0b01_00_01_00>(h0, h1),
                        _mm256_shuffle_ps::<0b11_10_11_10>(h0, h1),
                    ]
                };
                let (first, second) = (four(0), four(4));
                for n in 0..4 {
                    let upper = _mm256_permute2f128_ps::<0x20>(first[n], second[n]);
                    let lower = _mm256_permute2f128_ps::<0x31>(first[n], second[n]);
                    _mm256_storeu_ps(to.add(n * pitch).cast(), upper);
                    _mm256_storeu_ps(to.add((n + 4) * pitch).cast(), lower);
                }
            }
        }
    }

    impl Word for u64 {
        const SIDE: usize = 4;

        #[inline(always)]
        unsafe fn square(columns: *const *const u64, row: usize, to: *mut u8, pitch: usize) {
            // SAFETY: the caller's promise.
            unsafe {
                let c: [__m256d; 4] = std::array::from_fn(|n| _mm256_loadu_pd((*columns.add(n)).add(row).cast()));
                let low = [_mm256_unpacklo_pd(c[0], c[1]), _mm256_unpacklo_pd(c[2], c[3])];
                let high = [_mm256_unpackhi_pd(c[0], c[1]), _mm256_unpackhi_pd(c[2], c[3])];
                for (n, [a, b]) in [low, high].into_iter().enumerate() {
                    let upper = _mm256_permute2f128_pd::<0x20>(a, b);
                    let lower = _mm256_permute2f128_pd::<0x31>(a, b);
                    _mm256_storeu_pd(to.add(n * pitch).cast(), upper);
                    _mm256_storeu_pd(to.add((n + 2) * pitch).cast(), lower);
                }
            }
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod plain {
    impl super::Word for u8 {}
    impl super::Word for u32 {}
    impl super::Word for u64 {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<W: Word + From<u8> + PartialEq + std::fmt::Debug>() {
        for (count, rows) in [(1, 1), (3, 70), (8, 8), (16, 9), (17, 64), (40, 31), (71, 5), (256, 64)] {
            let element = |column: usize, row: usize| W::from((column * 37 + row * 11) as u8);
            let memory: Vec<Vec<W>> = (0..count).map(|c| (0..rows).map(|row| element(c, row)).collect()).collect();
            let columns: Vec<*const W> = memory.iter().map(|column| column.as_ptr()).collect();
            let pitch = count + 5;
            let untouched = W::from(255);
            let vectors: &dyn Fn(&mut [W]) = &|out| {
                // SAFETY: `out` has `rows` rows of `pitch` words.
                unsafe { transpose(&columns, rows, out.as_mut_ptr().cast(), pitch * size_of::<W>()) }
            };
            let words: &dyn Fn(&mut [W]) = &|out| {
                // SAFETY: as above.
                unsafe { word_by_word(&columns, 0..rows, out.as_mut_ptr().cast(), pitch * size_of::<W>()) }
            };
            for way in [vectors, words] {
                let mut out = vec![untouched; rows * pitch];
                way(&mut out);
                for (at, &word) in out.iter().enumerate() {
                    let (row, column) = (at / pitch, at % pitch);
                    let expected = if column < count { element(column, row) } else { untouched };
                    assert_eq!(word, expected, "row {row}, column {column} of {count} x {rows}");
                }
            }
        }
    }

    #[test]
    fn columns_become_rows_with_and_without_vectors_whatever_their_number() {
        check::<u8>();
        check::<u32>();
        check::<u64>();
    }
}
