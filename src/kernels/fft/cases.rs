//! Cases of transforms for every device: their arguments, exact results, and the bound on the error (FFT-2).

use crate::dice::Dice;
use crate::graph::{DType, Fourier, Parts, Spectrum};
use crate::kernels::library::Library;

/// Lines that are longer than this are checked at some of their elements only.
const CHECKED_MAX: usize = 300;

/// A transform with its arguments, in f64 numbers that the dtype can hold.
#[derive(Debug)]
pub(crate) struct Case {
    pub library: Library,
    pub arguments: Vec<Vec<f64>>,
}

/// A forward transform of complex lines to their full spectra.
pub(crate) fn complex(dtype: DType, before: usize, len: usize, after: usize) -> Case {
    let fourier = Fourier { dim: 0, len: len as u32, inverse: false, parts: Parts::Apart, spectrum: Spectrum::Full };
    Case::new(dtype, before, len, after, fourier)
}

/// Cases with every kind of step and pass, with lines whose neighbours are near and far apart, and with every kind of
/// argument and result.
pub(crate) fn all() -> Vec<Case> {
    of_lengths((1..=64).chain([100, 121, 169, 210, 243, 1000, 1009, 2187, 4096, 7776, 1 << 15]))
}

/// As [`all`], but with fewer lengths, because a GPU compiles several texts for each.
#[cfg(feature = "gpu")]
pub(crate) fn few() -> Vec<Case> {
    of_lengths([1, 2, 3, 4, 7, 8, 9, 13, 16, 17, 22, 30, 37, 64, 100, 1009, 2187, 4096, 7776, 1 << 15].into_iter())
}

fn of_lengths(lengths: impl Iterator<Item = usize>) -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, len) in lengths.enumerate() {
        let kinds = [(Parts::Apart, Spectrum::Full), (Parts::Real, Spectrum::Half), (Parts::Together, Spectrum::Full)];
        let more = [(Parts::Together, Spectrum::Half), (Parts::Real, Spectrum::Full), (Parts::Apart, Spectrum::Half)];
        for (at, &(parts, spectrum)) in kinds.iter().chain(&more).enumerate() {
            // Each length gets a third of the kinds of transforms, and very long lines only the first kinds.
            if at % 3 != number % 3 || (len > 5000 && at > 2) {
                continue;
            }
            let inverse = match (parts, spectrum) {
                (Parts::Real, _) => number % 2 == 1 && spectrum == Spectrum::Full,
                (_, Spectrum::Half) => true,
                (_, Spectrum::Full) => number % 2 == 0,
            };
            let fourier = Fourier { dim: 0, len: len as u32, inverse, parts, spectrum };
            let enough = fourier.takes() as usize;
            let given = [enough, enough.div_ceil(2), enough + 3][number / 3 % 3];
            let (before, after) = [(1, 2), (3, 2), (16, 1), (1, 1)][number % 4];
            let dtype = if (number + at) % 2 == 0 { DType::F32 } else { DType::F64 };
            cases.push(Case::new(dtype, before, given, after, fourier));
        }
    }
    cases
}

impl Case {
    fn new(dtype: DType, before: usize, given: usize, after: usize, fourier: Fourier) -> Case {
        let library =
            Library::Fourier { dtype, before: before as u32, given: given as u32, after: after as u32, fourier };
        let (arguments, parts) = match fourier.parts {
            Parts::Real => (1, 1),
            Parts::Apart => (2, 1),
            Parts::Together => (1, 2),
        };
        let mut dice = Dice(given as u64 + 1);
        let mut number = || {
            let number = (dice.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
            if dtype.is_wide() { number } else { number as f32 as f64 }
        };
        let mut arguments: Vec<Vec<f64>> =
            (0..arguments).map(|_| (0..before * given * after * parts).map(|_| number()).collect()).collect();
        if fourier.inverse && fourier.spectrum == Spectrum::Half {
            // Elements that are their own mirror image are real, so their imaginary parts must not be read.
            let imaginary = arguments.last_mut().expect("a spectrum has parts");
            let first = imaginary.len() - before * given * after;
            for (place, part) in imaginary[first..].iter_mut().enumerate() {
                if (2 * (place / before % given)).is_multiple_of(fourier.len as usize) {
                    *part = f64::NAN;
                }
            }
        }
        Case { library, arguments }
    }

    /// The case with a NaN at a place of the first argument.
    pub fn with_nan(mut self, place: usize) -> Case {
        self.arguments[0][place] = f64::NAN;
        self
    }

    fn sizes(&self) -> (DType, usize, usize, usize, Fourier) {
        let Library::Fourier { dtype, before, given, after, fourier } = self.library else { panic!("a transform") };
        (dtype, before as usize, given as usize, after as usize, fourier)
    }

    pub fn result_elements(&self) -> usize {
        let (_, before, _, after, fourier) = self.sizes();
        before * fourier.yields() as usize * after * fourier.parts_yielded()
    }

    /// The lines of the argument, extended by zeros or by mirror images.
    fn lines(&self) -> Vec<Vec<(f64, f64)>> {
        let (_, before, given, after, fourier) = self.sizes();
        let all = before * given * after;
        let number = |place: usize| match fourier.parts {
            Parts::Real => (self.arguments[0][place], 0.0),
            Parts::Apart => (self.arguments[0][place], self.arguments[1][place]),
            Parts::Together => (self.arguments[0][place], self.arguments[0][place + all]),
        };
        let (len, takes) = (fourier.len as usize, fourier.takes() as usize);
        let line = |line: usize| {
            let first = line % before + line / before * before * given;
            let mut own: Vec<(f64, f64)> =
                (0..takes).map(|i| if i < given { number(first + i * before) } else { (0.0, 0.0) }).collect();
            if fourier.inverse && fourier.spectrum == Spectrum::Half {
                // Elements that are their own mirror image are real, whatever their imaginary parts are.
                own[0].1 = 0.0;
                if len.is_multiple_of(2) {
                    own[len / 2].1 = 0.0;
                }
                own.extend((takes..len).map(|i| (own[len - i].0, -own[len - i].1)).collect::<Vec<_>>());
            }
            own
        };
        (0..before * after).map(line).collect()
    }

    /// A line of the result.
    fn line_of(&self, got: &[f64], line: usize) -> Vec<(f64, f64)> {
        let (_, before, _, after, fourier) = self.sizes();
        let yields = fourier.yields() as usize;
        let all = before * yields * after;
        let first = line % before + line / before * before * yields;
        let number = |place: usize| (got[place], if fourier.parts_yielded() == 2 { got[all + place] } else { 0.0 });
        (0..yields).map(|k| number(first + k * before)).collect()
    }

    /// Checks the result of a device against the exact sums.
    pub fn check(&self, got: &[f64]) {
        let (dtype, _, _, _, fourier) = self.sizes();
        assert_eq!(got.len(), self.result_elements());
        let len = fourier.len as usize;
        let turns: Vec<(f64, f64)> = (0..len).map(|k| turn(k, len)).collect();
        let element = if dtype.is_wide() { exact } else { of_singles };
        for (number, line) in self.lines().iter().enumerate() {
            let own = self.line_of(got, number);
            let (mut error, mut whole) = (0.0, 0.0);
            for k in (0..own.len()).step_by(own.len().div_ceil(CHECKED_MAX)) {
                let (re, im) = element(line, &turns, k, fourier.inverse);
                error += (own[k].0 - re).powi(2) + (own[k].1 - im).powi(2);
                whole += re * re + im * im;
            }
            let eps = if dtype.is_wide() { f64::EPSILON } else { f32::EPSILON as f64 };
            let padded = [2, 3, 5, 7, 11, 13].iter().fold(len, |mut rest, prime| {
                while rest.is_multiple_of(*prime) {
                    rest /= prime;
                }
                rest
            });
            let bound = if padded == 1 { (len as f64).log2().max(1.0) } else { 3.0 * (4.0 * len as f64).log2() };
            let relative = (error / whole).sqrt() / eps;
            assert!(relative <= bound || error == 0.0, "{relative} eps of {bound}: {:?}, line {number}", self.library);
        }
    }

    /// Checks that a line of the result has NaN if the line of the argument has, and only then.
    pub fn check_nan(&self, got: &[f64]) {
        let mut found = 0;
        for (number, line) in self.lines().iter().enumerate() {
            let spoiled = line.iter().any(|x| x.0.is_nan() || x.1.is_nan());
            found += spoiled as usize;
            for (re, im) in self.line_of(got, number) {
                assert_eq!(re.is_nan() || im.is_nan(), spoiled, "FFT-1: {:?}", self.library);
            }
        }
        assert_eq!(found, 1);
    }
}

/// `exp(-2 pi i k / n)`, with the angle taken from the nearest quarter turn.
fn turn(k: usize, n: usize) -> (f64, f64) {
    let quarter = (4 * k + n / 2) / n;
    let (sin, cos) = (std::f64::consts::FRAC_PI_2 * ((4 * k) as f64 - (quarter * n) as f64) / n as f64).sin_cos();
    match quarter % 4 {
        0 => (cos, -sin),
        1 => (-sin, -cos),
        2 => (-cos, sin),
        _ => (sin, cos),
    }
}

/// An element of the spectrum of an f64 line, by compensated sums.
fn exact(line: &[(f64, f64)], turns: &[(f64, f64)], k: usize, inverse: bool) -> (f64, f64) {
    let mut sums = [(0.0, 0.0); 2];
    let add = |sum: &mut (f64, f64), a: f64, b: f64| {
        let product = a * b;
        let rounded = a.mul_add(b, -product);
        let total = sum.0 + product;
        let back = total - sum.0;
        sum.1 += (sum.0 - (total - back)) + (product - back) + rounded;
        sum.0 = total;
    };
    let mut at = 0;
    for &(re, im) in line {
        let (cos, sin) = turns[at];
        let sin = if inverse { -sin } else { sin };
        add(&mut sums[0], re, cos);
        add(&mut sums[1], re, sin);
        // Real lines have no further terms.
        if im != 0.0 {
            add(&mut sums[0], -im, sin);
            add(&mut sums[1], im, cos);
        }
        at = next(at, k, line.len());
    }
    let by = if inverse { line.len() as f64 } else { 1.0 };
    (((sums[0].0 + sums[0].1) / by), ((sums[1].0 + sums[1].1) / by))
}

/// An element of the spectrum of an f32 line, by sums in f64, whose rounding errors are less than a thousandth of the
/// bound.
fn of_singles(line: &[(f64, f64)], turns: &[(f64, f64)], k: usize, inverse: bool) -> (f64, f64) {
    let (mut sum_re, mut sum_im) = (0.0, 0.0);
    let mut at = 0;
    for &(re, im) in line {
        let (cos, sin) = turns[at];
        let sin = if inverse { -sin } else { sin };
        sum_re += re * cos - im * sin;
        sum_im += re * sin + im * cos;
        at = next(at, k, line.len());
    }
    let by = if inverse { line.len() as f64 } else { 1.0 };
    (sum_re / by, sum_im / by)
}

/// `(at + k) % len`, for `at` and `k` less than `len`.
fn next(at: usize, k: usize, len: usize) -> usize {
    if at + k < len { at + k } else { at + k - len }
}
