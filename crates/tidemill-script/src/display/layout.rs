//! Chooses the notation and width of a floating-point scalar, matrix or range.
//!
//! In: the elements and the format. Out: one notation for all elements, and the width of an element without the blanks
//! between columns. These rules were found by showing some thousand arrays with Octave 7.3:
//!
//! - P is the number of significant digits: the number set by `format` or `output_precision`, at most 16 (8 for
//!   single). The *digits* of a number are those before its point: ⌊log₁₀|x|⌋ + 1, which is 0 or negative below 1; 0
//!   for zero.
//! - A number with d digits, d > 0, has d digits before the point and P − d behind it (P, if that leaves none).
//!   Otherwise it has one before the point and P − d behind it (P − 1 if d = 0). For an array, this is done for the
//!   largest and for the smallest finite magnitude, and the greater number counts on either side of the point. The
//!   width is the digits and the point, and one for a sign except for a scalar.
//! - If more than W = min(⌊1.5 P⌋, 16) digits would be written (8 for single), all elements are written as `%.{P−1}e`,
//!   in P + 6 places, or one more if an exponent may have three digits.
//! - Integers are written without a point, as wide as the largest (at least 3 with NaN or Inf) and a sign. Again, more
//!   than W places are too wide.
//! - Whether an *array* has only integers is judged after rounding to single precision: ⌊x + ½⌋ = x in that precision,
//!   and NaN and Inf do not count. So `[1+1e-10 1]` counts as integers, and `[8388609 0]` does not. The elements are
//!   then written as `%g` with as many digits as the width, which shows in `[1e7+.5 1]`. A scalar is judged exactly.
//! - `format bank` writes two digits after the point in all cases, and only the real part of a complex number.
//! - `format short eng` takes P + 6 places for a scalar and P + 8 for an element in all cases.
//! - A range is judged exactly. It is measured by its start and its limit (not its last element), and gets one place
//!   more, unless its integers are written without a point.
//! - A complex array takes the larger of the largest digits of its real and imaginary parts, and the larger of their
//!   smallest digits. A complex scalar takes its larger and its smaller part. The imaginary part has no place for a
//!   sign. A complex scalar with a NaN, or with an Inf beside a fraction, is written as integers are, but with one
//!   significant digit.

use super::number::Notation;
use super::{Format, Style};
use num_complex::Complex64;

/// How real numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The notation.
    pub notation: Notation,
    /// The least width of a number, without the blanks between columns.
    pub width: usize,
}

/// How complex numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComplexLayout {
    /// The notation of both parts.
    pub notation: Notation,
    /// The least width of the real part.
    pub real: usize,
    /// The least width of the imaginary part.
    pub imaginary: usize,
}

/// The precision of a class under a format.
#[derive(Clone, Copy, Debug)]
pub struct Precision {
    /// Significant digits.
    digits: i32,
    /// The most digits that are written without an exponent.
    digits_max: i32,
    single: bool,
    style: Style,
}

impl Precision {
    /// Returns the precision of double or single numbers under a format.
    pub fn new(format: &Format, single: bool) -> Precision {
        let most = if single { 8 } else { 16 };
        let digits = (format.precision as i32).clamp(1, most);
        Precision { digits, digits_max: (digits * 3 / 2).min(most), single, style: format.style }
    }

    fn exponent(&self) -> Notation {
        Notation::Exponent(self.digits as usize - 1)
    }

    fn general(&self) -> Notation {
        Notation::General(self.digits as usize)
    }

    /// Returns the number of digits before and behind the point, for a number with `digits` before it.
    fn split(&self, digits: i32) -> (i32, i32) {
        let behind = if self.digits > digits { self.digits - digits } else { self.digits };
        match digits {
            d if d > 0 => (d, behind),
            0 => (1, if self.digits > 1 { self.digits - 1 } else { self.digits }),
            _ => (1, behind),
        }
    }

    /// Returns the layout in exponent notation: a sign, the digits, the point, the exponent.
    fn exponent_layout(&self, long_exponent: bool) -> Layout {
        Layout { notation: self.exponent(), width: self.digits as usize + 6 + long_exponent as usize }
    }

    fn engineering_layout(&self) -> Layout {
        Layout { notation: Notation::Engineering(self.digits as usize - 1, 2), width: self.digits as usize + 8 }
    }

    fn general_layout(&self) -> Layout {
        Layout { notation: self.general(), width: self.digits as usize + 6 }
    }
}

/// Returns the number of a number's digits before its point; 0 for zero.
fn digits_of(x: f64) -> i32 {
    if x == 0.0 { 0 } else { x.abs().log10().floor() as i32 + 1 }
}

/// The properties of an array's elements that determine its layout.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    largest: i32,
    smallest: i32,
    integers: bool,
    non_finite: bool,
}

impl Extent {
    /// Measures these numbers as elements of an array.
    pub fn of(numbers: impl Iterator<Item = f64>) -> Extent {
        let (mut largest, mut smallest) = (0f64, f64::INFINITY);
        let (mut integers, mut non_finite) = (true, false);
        for x in numbers {
            if !x.is_finite() {
                non_finite = true;
                continue;
            }
            largest = largest.max(x.abs());
            smallest = smallest.min(x.abs());
            integers &= is_nearly_integer(x);
        }
        if smallest.is_infinite() {
            smallest = 0.0;
        }
        Extent { largest: digits_of(largest), smallest: digits_of(smallest), integers, non_finite }
    }
}

impl Extent {
    /// Combines the extents of the real and the imaginary parts.
    fn joined(self, imaginary: Extent) -> Extent {
        Extent {
            largest: self.largest.max(imaginary.largest),
            smallest: self.smallest.max(imaginary.smallest),
            integers: self.integers && imaginary.integers,
            non_finite: self.non_finite || imaginary.non_finite,
        }
    }
}

/// Whether a number is an integer after rounding to single precision. Arrays and single scalars are judged so.
fn is_nearly_integer(x: f64) -> bool {
    let rounded = x as f32;
    (rounded + 0.5).floor() == rounded
}

/// Whether a number is an integer by Octave's test, which fails for odd numbers beyond 2^52.
fn is_integer(x: f64) -> bool {
    (x + 0.5).floor() == x
}

/// Returns the layout of one real number.
pub fn scalar(x: f64, precision: Precision) -> Layout {
    let p = precision;
    if p.style == Style::General {
        return Layout { notation: p.general(), width: p.digits as usize };
    }
    if let Style::Rational(_) = p.style {
        return Layout { notation: Notation::Rational(0), width: 0 };
    }
    if !x.is_finite() {
        return Layout { notation: p.general(), width: 3 };
    }
    if p.style == Style::Bank {
        return Layout { notation: Notation::Fixed(2), width: 3 };
    }
    if p.style == Style::Engineering {
        return Layout { notation: Notation::Engineering(p.digits as usize - 1, 3), width: p.digits as usize + 6 };
    }
    let digits = digits_of(x);
    let exponent = Layout { notation: p.exponent(), width: p.digits as usize + 5 };
    if p.style == Style::Exponent {
        return exponent;
    }
    if is_integer(x) && (!p.single || is_nearly_integer(x)) {
        let width = digits.max(1);
        return if width > p.digits_max {
            exponent
        } else {
            Layout { notation: Notation::Fixed(0), width: width as usize }
        };
    }
    let (before, behind) = match digits {
        0 => (1, p.digits - 1),
        d => p.split(d),
    };
    if before + behind > p.digits_max {
        return exponent;
    }
    Layout { notation: Notation::Fixed(behind as usize), width: (before + 1 + behind) as usize }
}

/// Returns the layout of a real array.
pub fn matrix(extent: Extent, precision: Precision) -> Layout {
    let p = precision;
    if p.style == Style::General {
        return p.general_layout();
    }
    if let Style::Rational(places) = p.style {
        return Layout { notation: Notation::Rational(places as usize), width: places as usize };
    }
    if p.style == Style::Engineering {
        return p.engineering_layout();
    }
    if p.style == Style::Bank {
        let digits = extent.largest.max(extent.smallest).max(1) as usize;
        return Layout { notation: Notation::Fixed(2), width: digits + 4 };
    }
    if extent.integers {
        let digits = extent.largest.max(extent.smallest);
        let width = if digits <= 0 { 2 } else { digits + 1 };
        let width = if extent.non_finite { width.max(4) } else { width };
        if width > p.digits_max || p.style == Style::Exponent {
            return p.exponent_layout(digits > 100);
        }
        return Layout { notation: Notation::General(width as usize), width: width as usize };
    }
    fractions(extent, p)
}

fn fractions(extent: Extent, p: Precision) -> Layout {
    let (a, b) = (p.split(extent.largest), p.split(extent.smallest));
    let (before, behind) = (a.0.max(b.0), a.1.max(b.1));
    if before + behind > p.digits_max || p.style == Style::Exponent {
        return p.exponent_layout(extent.largest.abs() >= 100 || extent.smallest.abs() >= 100);
    }
    let width = (before + behind + 2) as usize;
    Layout { notation: Notation::Fixed(behind as usize), width: if extent.non_finite { width.max(4) } else { width } }
}

/// Returns the layout of a range with these elements and this limit.
pub fn range(elements: &[f64], limit: f64, precision: Precision) -> Layout {
    let p = precision;
    let start = elements.first().copied().unwrap_or(0.0);
    let (a, b) = (digits_of(start.abs().max(limit.abs())), digits_of(start.abs().min(limit.abs())));
    let integers = elements.iter().all(|&x| is_integer(x));
    let extent = Extent { largest: a, smallest: b, integers, non_finite: false };
    let mut layout = matrix(extent, p);
    if p.style != Style::Bank
        && matches!(layout.notation, Notation::Fixed(_) | Notation::Exponent(_) | Notation::Engineering(..))
    {
        layout.width += 1;
    }
    layout
}

/// Returns the layout of one complex number.
pub fn complex_scalar(z: Complex64, precision: Precision) -> ComplexLayout {
    let p = precision;
    if let Style::Rational(_) = p.style {
        return ComplexLayout { notation: Notation::Rational(0), real: 0, imaginary: 0 };
    }
    let finite = |x: f64| if x.is_finite() { x.abs() } else { 0.0 };
    let (a, b) = (finite(z.re), finite(z.im));
    let non_finite = !z.re.is_finite() || !z.im.is_finite();
    let integer = |x: f64| x.is_infinite() || is_integer(x) && (!p.single || is_nearly_integer(x));
    let extent = Extent {
        largest: digits_of(a.max(b)),
        smallest: digits_of(a.min(b)),
        integers: integer(z.re) && integer(z.im),
        non_finite,
    };
    if non_finite && !extent.integers && p.style == Style::Fixed {
        let imaginary = extent.largest.max(extent.smallest).max(3) as usize;
        if imaginary <= 16 {
            return ComplexLayout { notation: Notation::General(1), real: imaginary + 1, imaginary };
        }
    }
    let extent = Extent { non_finite: false, ..extent };
    let layout = complex(extent, p, p.digits_max);
    match non_finite && p.style != Style::General {
        true => ComplexLayout { real: layout.real.max(4), imaginary: layout.imaginary.max(3), ..layout },
        false => layout,
    }
}

/// Returns the layout of a complex array.
pub fn complex_matrix(numbers: impl Iterator<Item = Complex64> + Clone, precision: Precision) -> ComplexLayout {
    let extent = Extent::of(numbers.clone().map(|z| z.re)).joined(Extent::of(numbers.map(|z| z.im)));
    complex(extent, precision, precision.digits_max - 1)
}

fn complex(extent: Extent, p: Precision, digits_max: i32) -> ComplexLayout {
    let (notation, imaginary) = match p.style {
        Style::General => {
            let Layout { notation, width } = p.general_layout();
            return ComplexLayout { notation, real: width, imaginary: width };
        }
        Style::Rational(places) => {
            let notation = Notation::Rational(places as usize);
            return ComplexLayout { notation, real: places as usize, imaginary: places as usize };
        }
        Style::Engineering => {
            let Layout { notation, width } = p.engineering_layout();
            return ComplexLayout { notation, real: width, imaginary: width - 1 };
        }
        Style::Fixed if extent.integers => {
            let digits = extent.largest.max(extent.smallest);
            let width = digits.max(if extent.non_finite { 3 } else { 1 });
            if width > digits_max {
                let layout = p.exponent_layout(digits > 100);
                (layout.notation, layout.width - 1)
            } else {
                (Notation::General(width as usize + 1), width as usize)
            }
        }
        _ if extent.integers => {
            let layout = p.exponent_layout(extent.largest.max(extent.smallest) > 100);
            (layout.notation, layout.width - 1)
        }
        _ => {
            let layout = fractions(Extent { non_finite: false, ..extent }, p);
            (layout.notation, if extent.non_finite { (layout.width - 1).max(3) } else { layout.width - 1 })
        }
    };
    ComplexLayout { notation, real: imaginary + 1, imaginary }
}
