//! Transforms lines on a GPU in passes ([`Plan`]), in Stockham's order. Each pass does transforms in workgroup memory
//! ([`text`]).
//!
//! In: sizes. Out: passes over `[x, out]` or `[re, im, out]`, and scratch. Between several passes, lines lie in
//! scratch, and also in the result if that can hold all of them. Lengths with prime factors that passes do not have are
//! padded: scratch then begins with the spectrum of the chirp, which has passes of its own, and two copies of the
//! padded lines follow.

use super::plan::{FAR_MIN, Plan, chirp_numbers};
use super::text::{PARAMS, PassForm, PassLoad, PassStore, text};
use crate::error::{Error, ErrorKind};
use crate::graph::{DType, Fourier, Parts, Spectrum};
use crate::kernels::library::{Library, Pass};
use crate::kernels::wgsl::pieces::{OWN_WORDS, grid_of, segments_key};

/// The sizes of a launch's lines, and their transform.
#[derive(Clone, Copy)]
struct Lines {
    dtype: DType,
    before: u32,
    after: u32,
    /// The length of the lines that passes transform: that of the transform, or that of a padded convolution.
    length: u32,
    /// Elements that the argument has along a line.
    given: u32,
    fourier: Fourier,
}

/// The place of the numbers of all lines between two passes.
#[derive(Clone, Copy)]
struct Place {
    operand: u16,
    /// The first real part.
    re: u32,
    /// The first imaginary part.
    im: u32,
}

/// How the first pass of a chain loads, or the last one stores, and the place of these numbers.
struct End<T> {
    what: T,
    /// The place of the numbers. In the argument and in the result, `re` is 0.
    place: Place,
}

/// The passes of transforms of lines.
///
/// # Errors
/// `ErrorKind::Unsupported` if there are more numbers than passes can count.
pub fn passes(library: &Library, segments: &[u8], segment_shift: u32) -> Result<Vec<Pass>, Error> {
    let Library::Fourier { dtype, before, given, after, fourier } = *library else {
        panic!("LIB-1: {} is no transform", library.name());
    };
    if before == 0 || after == 0 {
        return Ok(vec![]);
    }
    let plan = Plan::of(dtype, fourier.len, before).filter(|_| library.scratch_words().is_some());
    let beyond = || {
        let message = format!("a transform of {before} x {after} lines of {} on a GPU", fourier.len);
        Error::new(ErrorKind::Unsupported, message)
    };
    let plan = plan.ok_or_else(beyond)?;
    let lines = Lines { dtype, before, after, length: plan.length(), given, fourier };
    let mut maker = Maker { passes: vec![], segments, segment_shift };
    match plan.padded {
        None => maker.transform(&lines, &plan.passes)?,
        Some(padded) => {
            let chirp = Plan::of(dtype, padded, 1).ok_or_else(beyond)?;
            maker.convolve(&lines, &plan.passes, &chirp.passes)?;
        }
    }
    Ok(maker.passes)
}

impl Lines {
    /// The number of real parts in all lines.
    fn numbers(&self) -> u32 {
        self.before * self.length * self.after
    }

    /// The number of the result's operand. Scratch is the next operand.
    fn out(&self) -> u16 {
        if self.fourier.parts == Parts::Apart { 2 } else { 1 }
    }

    /// The place of copy `number` of all lines in scratch, after its first `behind` numbers.
    fn copy(&self, number: u32, behind: u32) -> Place {
        let re = behind + number * 2 * self.numbers();
        Place { operand: self.out() + 1, re, im: re + self.numbers() }
    }

    fn is_half_inverse(&self) -> bool {
        self.fourier.inverse && self.fourier.spectrum == Spectrum::Half
    }

    fn argument(&self, chirped: bool) -> End<PassLoad> {
        let (parts, swap) = (self.fourier.parts, self.fourier.inverse);
        let what = PassLoad::Argument { parts, half: self.is_half_inverse(), swap, chirped };
        End { what, place: Place { operand: 0, re: 0, im: self.before * self.given * self.after } }
    }

    fn result(&self, chirped: bool) -> End<PassStore> {
        let (operand, swap) = (self.out(), self.fourier.inverse);
        let what = PassStore::Result { operand, real: self.is_half_inverse(), swap, chirped };
        End { what, place: Place { operand, re: 0, im: self.before * self.fourier.yields() * self.after } }
    }

    /// The factor by which the result is multiplied.
    fn factor(&self) -> f64 {
        let length = if self.fourier.inverse { self.fourier.len as f64 } else { 1.0 };
        let padded = if self.length == self.fourier.len { 1.0 } else { self.length as f64 };
        1.0 / (length * padded)
    }
}

/// The two places to which the passes of a chain store alternately. They are ordered such that the last pass does not
/// read `end`, to which it may write.
fn toward(end: Place, other: Place, passes: usize) -> [Place; 2] {
    if passes.is_multiple_of(2) { [other, end] } else { [end, other] }
}

/// Passes under construction.
struct Maker<'a> {
    passes: Vec<Pass>,
    segments: &'a [u8],
    segment_shift: u32,
}

impl Maker<'_> {
    /// Adds the passes of a transform whose length passes can do directly.
    fn transform(&mut self, lines: &Lines, radices: &[u32]) -> Result<(), Error> {
        let result = lines.result(false);
        let between = match lines.fourier.spectrum {
            Spectrum::Full => toward(result.place, lines.copy(0, 0), radices.len()),
            Spectrum::Half => [lines.copy(0, 0), lines.copy(1, 0)],
        };
        self.chain(lines, radices, lines.argument(false), between, result)
    }

    /// Adds the passes of Bluestein's algorithm: it transforms the chirp, transforms the lines times the chirp, and
    /// transforms the product of both spectra back.
    fn convolve(&mut self, lines: &Lines, radices: &[u32], chirp_radices: &[u32]) -> Result<(), Error> {
        let padded = lines.length;
        let behind = chirp_numbers(padded) as u32;
        let copies = [lines.copy(0, behind), lines.copy(1, behind)];
        let scratch = copies[0].operand;
        let to = |place: Place| End { what: PassStore::Plain(scratch), place };
        let chirp = Place { operand: scratch, re: 0, im: padded };
        let one = Lines { before: 1, after: 1, ..*lines };
        let between = toward(chirp, Place { im: copies[0].re + padded, ..copies[0] }, chirp_radices.len());
        self.chain(&one, chirp_radices, End { what: PassLoad::Chirp, place: chirp }, between, to(chirp))?;
        let between = toward(copies[1], copies[0], radices.len());
        self.chain(lines, radices, lines.argument(true), between, to(copies[1]))?;
        let convolved = End { what: PassLoad::Convolved(scratch), place: copies[1] };
        self.chain(lines, radices, convolved, copies, lines.result(true))
    }

    /// Adds a chain of passes, from one end to the other.
    fn chain(
        &mut self,
        lines: &Lines,
        radices: &[u32],
        from: End<PassLoad>,
        between: [Place; 2],
        to: End<PassStore>,
    ) -> Result<(), Error> {
        let mut done = 1;
        for (number, &radix) in radices.iter().enumerate() {
            let (first, last) = (number == 0, number + 1 == radices.len());
            let (source, target) = (between[(number + 1) % 2], between[number % 2]);
            let load = if first { from.what } else { PassLoad::Plain(source.operand) };
            let store = if last { to.what } else { PassStore::Plain(target.operand) };
            let places = [if first { from.place } else { source }, if last { to.place } else { target }];
            self.pass(lines, radix, done, (load, store), places)?;
            done *= radix;
        }
        Ok(())
    }

    fn pass(
        &mut self,
        lines: &Lines,
        radix: u32,
        done: u32,
        (load, store): (PassLoad, PassStore),
        [source, target]: [Place; 2],
    ) -> Result<(), Error> {
        let Lines { dtype, before, after, length, given, fourier } = *lines;
        let (from, to) = (before * (length / radix), before * done);
        let form = PassForm {
            dtype,
            radix,
            lines_first: from >= FAR_MIN,
            stores_lines_first: to >= FAR_MIN,
            turned: done > 1,
            load,
            store,
        };
        let (source_pitch, source_end) = match load {
            PassLoad::Argument { .. } => (before * given, before * given.min(fourier.takes())),
            PassLoad::Plain(_) | PassLoad::Convolved(_) | PassLoad::Chirp => (from * radix, from * radix),
        };
        let (target_pitch, target_end) = match store {
            PassStore::Result { .. } => (before * fourier.yields(), before * fourier.yields()),
            PassStore::Plain(_) => (to * radix, to * radix),
        };
        let count = before * after * (length / radix);
        let mut params = vec![0, self.segment_shift, count];
        params.extend([from, source_pitch, source_end, source.re, source.im]);
        params.extend([to, target_pitch, target_end, target.re, target.im]);
        params.extend([before, done * radix, fourier.len, length]);
        let quarter = |of: u32| std::f64::consts::FRAC_PI_2 / of as f64;
        // The angles of a chirp are multiples of `2 pi / (2 len)`.
        for number in [lines.factor(), quarter(done * radix), quarter(fourier.len) / 2.0] {
            params.extend(words(dtype, number));
        }
        debug_assert_eq!(params.len(), OWN_WORDS + PARAMS.len());
        let operands = form.operands();
        let segments: Vec<u8> = operands.iter().map(|&operand| self.segments[operand as usize]).collect();
        let groups = count.div_ceil(form.lines()) as u64;
        self.passes.push(Pass {
            key: format!("fft {form:?}{}", segments_key(&segments)),
            wgsl: text(&form, &segments),
            params,
            operands,
            faults: false,
            grid: grid_of(groups, "a transform")?,
        });
        Ok(())
    }
}

/// The two parameter words of a number. The second is 0 for f32.
fn words(dtype: DType, number: f64) -> [u32; 2] {
    match dtype.is_wide() {
        true => [number.to_bits() as u32, (number.to_bits() >> 32) as u32],
        false => [(number as f32).to_bits(), 0],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::fft::cases::{self, Case};
    use crate::kernels::wgsl::harness::{floats, floats64, gpu, words, words64};

    /// The result of a case on the GPU, or `None` without a GPU that has the dtype. Operands have segments of `1 <<
    /// shift` 32-bit elements.
    fn run(case: &Case, shift: u32) -> Option<Vec<f64>> {
        let gpu = gpu()?;
        let Library::Fourier { dtype, .. } = case.library else { return None };
        if dtype.is_wide() && !gpu.target.f64 {
            return None;
        }
        let encode = |values: &[f64]| match dtype.is_wide() {
            true => words64(values),
            false => words(&values.iter().map(|&x| x as f32).collect::<Vec<_>>()),
        };
        let mut arrays: Vec<Vec<u32>> = case.arguments.iter().map(|argument| encode(argument)).collect();
        arrays.push(encode(&vec![7.0; case.result_elements()]));
        arrays.push(vec![7; case.library.scratch_words().unwrap().max(1) as usize]);
        // A segment holds half as many 64-bit elements.
        let pieces: Vec<Vec<Vec<u32>>> =
            arrays.iter().map(|words| words.chunks(1 << shift).map(<[u32]>::to_vec).collect()).collect();
        let segments: Vec<u8> = pieces.iter().map(|pieces| pieces.len() as u8).collect();
        let out = arrays.len() - 2;
        let passes = passes(&case.library, &segments, shift).unwrap();
        let after = gpu.passes(&passes, &segments, &pieces.concat());
        let first = segments[..out].iter().map(|&count| count as usize).sum::<usize>();
        let words = after[first..][..segments[out] as usize].concat();
        Some(if dtype.is_wide() { floats64(&words) } else { floats(&words).iter().map(|&x| x as f64).collect() })
    }

    #[test]
    fn transforms_of_every_kind_and_length_are_within_their_bound() {
        for case in cases::few() {
            let Some(got) = run(&case, 28) else { continue };
            case.check(&got);
        }
    }

    #[test]
    fn arrays_in_pieces_are_transformed_as_in_one() {
        for (number, case) in
            [(12, cases::complex(DType::F32, 1, 6000, 2)), (13, cases::complex(DType::F64, 3, 37, 40))]
        {
            let (Some(got), Some(whole)) = (run(&case, number), run(&case, 28)) else { continue };
            case.check(&got);
            assert_eq!(got, whole);
        }
    }

    #[test]
    fn what_is_no_number_stays_in_its_line() {
        for len in [60, 37] {
            let case = cases::complex(DType::F32, 3, len, 5).with_nan(2 + 3 * 4);
            let Some(got) = run(&case, 28) else { continue };
            case.check_nan(&got);
        }
    }

    #[test]
    fn a_pass_has_one_text_whatever_the_number_of_lines_is() {
        let keys = |before, after| {
            let case = cases::complex(DType::F32, before, 1 << 13, after);
            passes(&case.library, &[1; 4], 30).unwrap().into_iter().map(|pass| pass.key).collect::<Vec<_>>()
        };
        assert_eq!(keys(1, 1).len(), 2);
        assert_eq!(keys(1, 1), keys(1, 5));
    }
}
