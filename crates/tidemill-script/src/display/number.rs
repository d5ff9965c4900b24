//! Writes numbers with the meaning of C's `%e`, `%f` and `%g`: digits of the exact value, rounded half to even.
//!
//! In: a finite or non-finite double, flags, a width, a precision. Out: bytes. `Inf`, `NaN` and `NA` have the
//! language's spelling.

use super::rational;

/// The notation of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// `%.*f`: this many digits after the point.
    Fixed(usize),
    /// `%.*e`: this many digits after the point.
    Exponent(usize),
    /// `%.*g`: this many significant digits, without trailing zeros.
    General(usize),
    /// This many digits after the point, and an exponent that is a multiple of three and has at least this many digits.
    Engineering(usize, usize),
    /// A quotient in this many places; 0 for as many as it needs.
    Rational(usize),
}

/// The flags of a conversion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `-`: left-aligned.
    pub left: bool,
    /// `+`: a sign in all cases.
    pub plus: bool,
    /// ` `: a blank in place of a plus sign.
    pub blank: bool,
    /// `0`: padded with zeros behind the sign.
    pub zero: bool,
    /// `#`: a point in all cases, trailing zeros, and `0x` before hexadecimal digits.
    pub alternate: bool,
}

/// The most digits that are written after a point. Further digits would be zeros (a double has at most 1074).
const PRECISION_MAX: usize = 1100;

/// Returns a number's text without padding. It has a sign only if the number is negative (or `-0`).
pub fn text(x: f64, notation: Notation) -> String {
    text_with(x, notation, false)
}

fn text_with(x: f64, notation: Notation, keep_zeros: bool) -> String {
    if let Notation::Rational(places) = notation {
        return rational::text(x, places);
    }
    if !x.is_finite() {
        return non_finite(x).to_string();
    }
    match notation {
        Notation::Rational(_) => String::new(),
        Notation::Engineering(digits, exponent_digits) => engineering(x, digits, exponent_digits),
        Notation::Fixed(digits) => {
            let mut text = format!("{:.*}", digits.min(PRECISION_MAX), x);
            text.extend(std::iter::repeat_n('0', digits.saturating_sub(PRECISION_MAX)));
            if digits == 0 && keep_zeros {
                text.push('.');
            }
            text
        }
        Notation::Exponent(digits) => exponent(x, digits, keep_zeros),
        Notation::General(digits) => general(x, digits.max(1), keep_zeros),
    }
}

/// `Inf`, `-Inf`, `NaN`.
pub fn non_finite(x: f64) -> &'static str {
    match (x.is_nan(), x < 0.0) {
        (true, _) if is_missing(x) => "NA",
        (true, _) => "NaN",
        (false, true) => "-Inf",
        (false, false) => "Inf",
    }
}

/// The NaN that marks a missing value, with the payload that Octave (and R) uses.
pub const MISSING: f64 = f64::from_bits(0x7FF8_40F4_4000_0000);

/// Whether a NaN marks a missing value; with its sign changed it does not.
pub fn is_missing(x: f64) -> bool {
    x.to_bits() == MISSING.to_bits()
}

fn exponent(x: f64, digits: usize, keep_point: bool) -> String {
    let raw = format!("{:.*e}", digits.min(PRECISION_MAX), x);
    let (mantissa, power) = raw.split_once('e').unwrap_or((&raw, "0"));
    let (sign, power) = match power.strip_prefix('-') {
        Some(p) => ('-', p),
        None => ('+', power),
    };
    let zeros = "0".repeat(digits.saturating_sub(PRECISION_MAX));
    let point = if digits == 0 && keep_point { "." } else { "" };
    format!("{mantissa}{point}{zeros}e{sign}{power:0>2}")
}

fn engineering(x: f64, digits: usize, exponent_digits: usize) -> String {
    let power = if x == 0.0 { 0 } else { x.abs().log10().floor() as i32 };
    let power = power.div_euclid(3) * 3;
    let sign = if power < 0 { '-' } else { '+' };
    // The power of ten is the nearest double. Below the normal numbers there is none by which one could divide.
    let mantissa = match format!("1e{power}").parse::<f64>() {
        Ok(scale) if scale >= f64::MIN_POSITIVE => x / scale,
        _ => x * 1e300 * 10f64.powi(-power - 300),
    };
    format!("{mantissa:.digits$}e{sign}{:0>exponent_digits$}", power.abs())
}

fn general(x: f64, digits: usize, keep_zeros: bool) -> String {
    let wanted = digits.min(PRECISION_MAX);
    let raw = format!("{:.*e}", wanted - 1, x);
    let power: i32 = raw.split_once('e').and_then(|(_, p)| p.parse().ok()).unwrap_or(0);
    if power < -4 || power >= wanted as i32 {
        let text = exponent(x, wanted - 1, keep_zeros);
        return if keep_zeros { text } else { strip_exponent(&text) };
    }
    let text = format!("{:.*}", (wanted as i32 - 1 - power).max(0) as usize, x);
    match (keep_zeros, text.contains('.')) {
        (true, true) => text,
        (true, false) => text + ".",
        (false, true) => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        (false, false) => text,
    }
}

fn strip_exponent(text: &str) -> String {
    match text.split_once('e') {
        Some((mantissa, power)) if mantissa.contains('.') => {
            format!("{}e{power}", mantissa.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text.to_string(),
    }
}

/// Writes a number with sign, digits and padding.
pub fn padded(x: f64, notation: Notation, flags: Flags, width: usize, upper: bool) -> Vec<u8> {
    let mut body = text_with(x, notation, flags.alternate);
    if upper && x.is_finite() {
        body = body.to_uppercase();
    }
    let (negative, digits) = match body.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, body.as_str()),
    };
    let zero = flags.zero && x.is_finite();
    pad(sign(negative, flags), digits.as_bytes(), Flags { zero, ..flags }, width)
}

/// Returns the sign before a number.
pub fn sign(negative: bool, flags: Flags) -> &'static str {
    match (negative, flags.plus, flags.blank) {
        (true, ..) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        _ => "",
    }
}

/// Pads a prefix (sign, `0x`) and digits to a width.
pub fn pad(prefix: &str, digits: &[u8], flags: Flags, width: usize) -> Vec<u8> {
    let missing = width.saturating_sub(prefix.len() + digits.len());
    let mut out = Vec::with_capacity(prefix.len() + digits.len() + missing);
    let fill = |out: &mut Vec<u8>, byte: u8| out.extend(std::iter::repeat_n(byte, missing));
    if !flags.left && !flags.zero {
        fill(&mut out, b' ');
    }
    out.extend_from_slice(prefix.as_bytes());
    if !flags.left && flags.zero {
        fill(&mut out, b'0');
    }
    out.extend_from_slice(digits);
    if flags.left {
        fill(&mut out, b' ');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn general_notation_chooses_as_c_does() {
        for (x, digits, expected) in [
            (0.0001, 6, "0.0001"),
            (0.00001, 6, "1e-05"),
            (123456.0, 6, "123456"),
            (1234567.0, 6, "1.23457e+06"),
            (100.0, 1, "1e+02"),
            (0.25, 1, "0.2"),
            (-0.0, 3, "-0"),
            (999999.5, 6, "1e+06"),
            (1e300, 17, "1.0000000000000001e+300"),
        ] {
            assert_eq!(text(x, Notation::General(digits)), expected);
        }
    }

    #[test]
    fn padding_puts_zeros_after_the_sign_and_never_before_inf() {
        let flags = Flags { zero: true, ..Flags::default() };
        assert_eq!(padded(-1.5, Notation::Fixed(2), flags, 8, false), b"-0001.50");
        assert_eq!(padded(f64::INFINITY, Notation::Fixed(2), flags, 8, false), b"     Inf");
        let flags = Flags { left: true, plus: true, ..Flags::default() };
        assert_eq!(padded(1.5, Notation::Exponent(1), flags, 10, true), b"+1.5E+00  ");
    }
}
