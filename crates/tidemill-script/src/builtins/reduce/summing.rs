//! Sums of host arrays: pairwise, and of singles in double.
//!
//! In: numbers one after the other. Out: their sum, or the sums up to each.
//!
//! Must hold:
//! - An element of a sum of n numbers passes through at most `8 + 2 log2 n` additions (`docs/accuracy.md`).
//! - Up to [`RUN`] doubles are added one after the other, as the language's users expect of short sums.

use super::field::Field;
use smallvec::SmallVec;

/// So many numbers are added one after the other; their sums are added in pairs.
const RUN: usize = 16;

/// A sum that grows, in the wide form of its numbers.
pub struct Adder<T: Field> {
    /// The sum of the numbers since the last full run, and how many they are.
    run: T,
    count: usize,
    /// Full runs so far.
    runs: usize,
    /// Sums of full runs. Each covers as many runs as one of the powers of two that `runs` consists of, the greatest first.
    sums: SmallVec<[T; 8]>,
}

impl<T: Field> Adder<T> {
    /// The sum of nothing.
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

    /// The sum of all numbers so far.
    pub fn total(&self) -> T {
        let mut later = self.sums.iter().rev();
        let last = if self.count == 0 { later.next().copied().unwrap_or(T::ZERO) } else { self.run };
        later.fold(last, |sum, &earlier| earlier + sum)
    }
}

/// The sum of numbers; 0 of nothing.
pub fn total<T: Field>(numbers: impl Iterator<Item = T>) -> T {
    let mut adder = Adder::new();
    numbers.for_each(|x| adder.add(x));
    adder.total()
}

/// The sum of numbers, in their wide form.
pub fn wide_total<T: Field>(numbers: impl Iterator<Item = T>) -> T::Wide {
    total(numbers.map(T::wide))
}

/// A running sum of doubles, with what its additions lost (Knuth's exact error of an addition).
#[derive(Clone, Copy, Default)]
pub struct Running {
    sum: f64,
    lost: f64,
    count: usize,
}

impl Running {
    /// A running sum that has seen its first number: a sum of negative zeros is one.
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
        // Beyond the range nothing is known to be lost.
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
        // One after the other, they make 100000.00000133288.
        assert_eq!(sum.value(), 100_000.0);
        let mut beyond = Running::begun(f64::MAX);
        (0..40).for_each(|_| {
            beyond.add(f64::MAX);
        });
        assert_eq!(beyond.value(), f64::INFINITY);
        assert!(Running::begun(-0.0).add(-0.0).is_sign_negative());
    }
}
