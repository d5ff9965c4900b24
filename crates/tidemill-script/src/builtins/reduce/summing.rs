//! Sums of host arrays: pairwise; sums of singles are computed in double.
//!
//! In: a sequence of numbers. Out: their sum, or all partial sums.
//!
//! Must hold:
//! - An element of a sum of n numbers passes through at most `8 + 2 log2 n` additions (`docs/accuracy.md`).
//! - Up to [`RUN`] doubles are added one after the other, as users of the language expect for short sums.

use super::field::Field;
use smallvec::SmallVec;

/// The number of numbers that are added one after the other. The sums of such runs are added pairwise.
const RUN: usize = 16;

/// A growing sum, in the wide form of its numbers.
pub struct Adder<T: Field> {
    /// The sum of the numbers since the last full run, and their count.
    run: T,
    count: usize,
    /// The number of full runs.
    runs: usize,
    /// Sums of full runs. Each covers as many runs as one of the powers of two in the binary form of `runs`, the
    /// greatest first.
    sums: SmallVec<[T; 8]>,
}

impl<T: Field> Adder<T> {
    /// Makes an empty sum.
    pub fn new() -> Adder<T> {
        Adder { run: T::ZERO, count: 0, runs: 0, sums: SmallVec::new() }
    }

    /// Adds a number.
    #[inline]
    pub fn add(&mut self, x: T) {
        self.run = self.run + x;
        self.count += 1;
        if self.count == RUN {
            self.end_run();
        }
    }

    fn end_run(&mut self) {
        let mut sum = std::mem::replace(&mut self.run, T::ZERO);
        for _ in 0..self.runs.trailing_ones() {
            sum = self.sums.pop().map_or(sum, |earlier| earlier + sum);
        }
        self.sums.push(sum);
        self.runs += 1;
        self.count = 0;
    }

    /// Returns the sum of all numbers so far.
    pub fn total(&self) -> T {
        let mut later = self.sums.iter().rev();
        let last = if self.count == 0 { later.next().copied().unwrap_or(T::ZERO) } else { self.run };
        later.fold(last, |sum, &earlier| earlier + sum)
    }
}

/// Returns the sum of numbers; 0 for none.
pub fn total<T: Field>(numbers: impl Iterator<Item = T>) -> T {
    let mut adder = Adder::new();
    numbers.for_each(|x| adder.add(x));
    adder.total()
}

/// Returns the sum of numbers in their wide form.
pub fn wide_total<T: Field>(numbers: impl Iterator<Item = T>) -> T::Wide {
    total(numbers.map(T::wide))
}

/// A running sum of doubles, with the errors of its additions (Knuth's exact error of an addition).
#[derive(Clone, Copy, Default)]
pub struct Running {
    sum: f64,
    lost: f64,
    count: usize,
}

impl Running {
    /// Makes a running sum that begins with its first number, so that a sum of negative zeros is -0.
    pub fn begun(first: f64) -> Running {
        Running { sum: first, lost: 0.0, count: 1 }
    }

    /// Adds a number. Returns the sum so far.
    #[inline]
    pub fn add(&mut self, x: f64) -> f64 {
        let next = self.sum + x;
        let added = next - self.sum;
        self.lost += (self.sum - (next - added)) + (x - added);
        self.sum = next;
        self.count += 1;
        self.value()
    }

    /// The sum so far.
    #[inline]
    pub fn value(&self) -> f64 {
        let both = self.sum + self.lost;
        // Beyond the range of doubles the error is not known.
        if self.count <= RUN || self.lost == 0.0 || both.is_nan() { self.sum } else { both }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_sums_are_exact_to_the_last_places_and_short_ones_are_walks() {
        let sum = |n: usize| total((0..n).map(|_| 0.1));
        for n in [0, 1, 3, 15, 16] {
            assert_eq!(sum(n), (0..n).fold(0.0, |sum, _| sum + 0.1), "{n}");
        }
        for n in [17, 100, 4097, 1_000_000] {
            let off: f64 = (sum(n) / (n as f64 * 0.1) - 1.0).abs();
            assert!(off <= (4.0 + (n as f64).log2()) * f64::EPSILON, "{n}: {off:e}");
        }
        assert_eq!(total((0..100).map(|_| -0.0f64)).to_bits(), 0, "a sum begins with 0");
    }

    #[test]
    fn running_sums_keep_what_additions_lose_and_overflow_as_sums_do() {
        let mut sum = Running::default();
        (0..1_000_000).for_each(|_| {
            sum.add(0.1);
        });
        // Plain addition would give 100000.00000133288.
        assert_eq!(sum.value(), 100_000.0);
        let mut beyond = Running::begun(f64::MAX);
        (0..40).for_each(|_| {
            beyond.add(f64::MAX);
        });
        assert_eq!(beyond.value(), f64::INFINITY);
        assert!(Running::begun(-0.0).add(-0.0).is_sign_negative());
    }
}
