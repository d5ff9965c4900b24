//! Plans: how a transform is cut into passes on a GPU.
//!
//! In: the length of the lines, and how far apart neighbours of a line are. Out: the lengths of the transforms that
//! passes do in workgroup memory, and the padded length if a line's length has prime factors other than [`PRIMES`]
//! (Bluestein's algorithm: the transform is a convolution with a chirp). Must hold: a plan is a function of these and
//! the dtype alone, and so are the bits of the result. FFT-3: the product of the passes is the length, or the padded
//! length.

use crate::graph::{DType, Fourier, Spectrum};
use smallvec::{SmallVec, smallvec};

/// Prime factors of lengths that are transformed directly.
const PRIMES: [usize; 6] = [2, 3, 5, 7, 11, 13];
/// Bytes of workgroup memory that a pass uses: 16 KiB, which every device has. It holds first the real parts of a tile
/// and later the imaginary ones.
const TILE_BYTES: u32 = 16 << 10;
/// The longest transform of a pass if neighbours of a line are far apart in memory. The tile then has enough lines side
/// by side to read whole sectors of memory.
const FAR_MAX: u32 = 256;
/// The longest line that is transformed in one pass if its neighbours are far apart. A second pass would read and write
/// everything again.
const FAR_ALONE_MAX: u32 = 512;
/// Neighbours of a line count as far apart if they are at least this many elements apart in memory.
pub const FAR_MIN: u32 = 8;

/// The passes of a transform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The length of the transform that each pass does.
    pub passes: SmallVec<[u32; 4]>,
    /// The length of the convolution, if the transform is computed by one.
    pub padded: Option<u32>,
}

/// Complex numbers that a workgroup transforms at a time.
pub fn tile(dtype: DType) -> u32 {
    TILE_BYTES / if dtype.is_wide() { 8 } else { 4 }
}

impl Plan {
    /// The plan for lines of `len` elements, `before` elements apart. `None` if `len` is more than passes can count.
    pub fn of(dtype: DType, len: u32, before: u32) -> Option<Plan> {
        if is_smooth(len as usize, &PRIMES) {
            return Some(Plan { passes: split(dtype, len, before)?, padded: None });
        }
        let padded = padded(len)?;
        Some(Plan { passes: split(dtype, padded, before)?, padded: Some(padded) })
    }

    /// The length of the lines that passes transform.
    pub fn length(&self) -> u32 {
        self.passes.iter().product()
    }
}

/// 32-bit words of scratch that a GPU needs to transform `lines` lines, `before` of them side by side. `None` if no
/// GPU can do it, or a pass cannot count its lines and places in 32 bits.
pub fn scratch_words(dtype: DType, fourier: &Fourier, before: u32, lines: u64) -> Option<u64> {
    let plan = Plan::of(dtype, fourier.len, before)?;
    let numbers = 2 * lines.saturating_mul(plan.length() as u64);
    let scratch = match plan.padded {
        None => numbers.saturating_mul(copies(&plan, fourier)),
        Some(padded) => chirp_numbers(padded).saturating_add(numbers.saturating_mul(2)),
    };
    let words = scratch.saturating_mul(if dtype.is_wide() { 2 } else { 1 });
    (numbers <= u32::MAX as u64).then_some(words)
}

/// The number of copies of all lines that a plan without a chirp keeps in scratch. If the result holds all numbers, it
/// serves as a further copy.
fn copies(plan: &Plan, fourier: &Fourier) -> u64 {
    let between = plan.passes.len() as u64 - 1;
    between.min(if fourier.spectrum == Spectrum::Full { 1 } else { 2 })
}

/// The count of the numbers at the beginning of scratch that hold the spectrum of the chirp.
pub fn chirp_numbers(padded: u32) -> u64 {
    2 * padded as u64
}

/// Whether a length has no prime factors but these.
pub fn is_smooth(mut len: usize, primes: &[usize]) -> bool {
    for &prime in primes {
        while len > 1 && len.is_multiple_of(prime) {
            len /= prime;
        }
    }
    len == 1
}

/// The least number of the form 2^k or 3 2^k that is long enough for a convolution of two lines of `len`.
fn padded(len: u32) -> Option<u32> {
    let least = (2 * len as u64 - 1).max(4);
    let double = least.next_power_of_two();
    let padded = if double / 4 * 3 >= least { double / 4 * 3 } else { double };
    u32::try_from(padded).ok().filter(|&padded| padded <= 1 << 30)
}

/// The lengths of the passes of a smooth length.
fn split(dtype: DType, len: u32, before: u32) -> Option<SmallVec<[u32; 4]>> {
    let alone = if before < FAR_MIN { tile(dtype) } else { FAR_ALONE_MAX };
    if len <= alone {
        return Some(smallvec![len]);
    }
    if len > 1 << 30 {
        return None;
    }
    let divisors: Vec<u32> = (2..=FAR_MAX).filter(|divisor| len.is_multiple_of(*divisor)).collect();
    (2..=8).find_map(|count| even_split(len, count, &divisors))
}

/// `len` as a product of `count` of the divisors, which are close to each other.
fn even_split(len: u32, count: u32, divisors: &[u32]) -> Option<SmallVec<[u32; 4]>> {
    if count == 1 {
        return divisors.contains(&len).then(|| smallvec![len]);
    }
    if (FAR_MAX as u64).pow(count) < len as u64 {
        return None;
    }
    let even = (len as f64).powf(1.0 / count as f64);
    let mut near: Vec<u32> = divisors.iter().copied().filter(|divisor| len.is_multiple_of(*divisor)).collect();
    near.sort_by(|a, b| (*a as f64 / even).ln().abs().total_cmp(&(*b as f64 / even).ln().abs()));
    near.into_iter().find_map(|first| {
        let mut passes = even_split(len / first, count - 1, divisors)?;
        passes.insert(0, first);
        Some(passes)
    })
}

/// The radices of the steps by which a pass transforms lines of a smooth length in workgroup memory.
#[cfg(feature = "gpu")]
pub fn steps(dtype: DType, len: u32) -> SmallVec<[u32; 8]> {
    let mut steps: SmallVec<[u32; 8]> = SmallVec::new();
    let mut rest = len;
    for prime in [13, 11, 7, 5] {
        while rest.is_multiple_of(prime) {
            steps.push(prime);
            rest /= prime;
        }
    }
    while rest.is_multiple_of(9) {
        steps.push(9);
        rest /= 9;
    }
    if rest.is_multiple_of(3) {
        steps.push(3);
        rest /= 3;
    }
    // The widest step of f64 has half as many numbers, because each takes twice the registers.
    let widest = if dtype.is_wide() { 3 } else { 4 };
    let bits = rest.trailing_zeros();
    let count = bits.div_ceil(widest);
    for step in 0..count {
        steps.push(1 << (bits / count + u32::from(step < bits % count)));
    }
    if steps.is_empty() {
        steps.push(1);
    }
    steps
}

#[cfg(all(test, feature = "gpu"))]
mod tests {
    use super::*;

    #[test]
    fn passes_and_steps_multiply_up_to_the_length() {
        for dtype in [DType::F32, DType::F64] {
            for before in [1, 3, 64] {
                for len in (1..3000).chain([4096, 7776, 1 << 15, 15_625, 1 << 20, 1_679_616, 1 << 24, 999_983]) {
                    let plan = Plan::of(dtype, len, before).unwrap();
                    assert_eq!(plan.length(), plan.padded.unwrap_or(len), "FFT-3: {len}");
                    assert!(plan.padded.is_none_or(|padded| padded >= 2 * len - 1), "{len}");
                    for &pass in &plan.passes {
                        assert_eq!(steps(dtype, pass).iter().product::<u32>(), pass);
                        assert!(pass <= tile(dtype));
                    }
                }
            }
        }
    }

    #[test]
    fn long_lines_take_as_few_passes_as_their_neighbours_allow() {
        let passes = |len, before| Plan::of(DType::F32, len, before).unwrap().passes.to_vec();
        assert_eq!(passes(4096, 1), [4096]);
        assert_eq!(passes(4096, 4096), [64, 64]);
        assert_eq!(passes(1 << 24, 1), [256, 256, 256]);
        assert_eq!(passes(1_679_616, 1).len(), 3);
        assert_eq!(Plan::of(DType::F32, 1009, 1).unwrap().padded, Some(2048));
        assert_eq!(Plan::of(DType::F32, 17, 1).unwrap().padded, Some(48));
    }
}
