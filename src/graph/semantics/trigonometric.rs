//! Sine, cosine and tangent. The argument is reduced to half turns and `|r| <= pi/2`, where one polynomial is enough,
//! or to quadrants and `|r| <= pi/4`.
//!
//! Up to [`is_large`]'s limit, pi or pi/2 is subtracted in parts whose products with the number of turns are exact.
//! Beyond the limit, the argument is multiplied by as many bits of 2/pi as its exponent requires (Payne and Hanek,
//! "Radian reduction for trigonometric functions", SIGNUM 1983).

use super::coefficients::{COS, SIN, SIN_OF_HALF_TURN, TAN};
use super::lanes::{Bits, Float, Lane, horner};
use super::power::sum_of_ordered;
use std::f64::consts::FRAC_1_PI;

/// Whether `x` needs the long reduction. This is also true of infinities and NaN.
#[inline(always)]
pub fn is_large<F: Float>(x: F) -> F::Mask {
    x.is_beyond(if F::WIDE { 1048576.0 } else { 8192.0 })
}

/// `sin(r)`, where `r` is `a - n pi` for a whole or half `n`. Its sign is changed if `turns` is odd, and again if
/// `sign` has its sign bit set.
#[inline(always)]
fn sine_of_half_turns<F: Float>(r: F, turns: F, sign: F::Bits) -> F {
    let z = r * r;
    let y = r + r * z * horner(z, &SIN_OF_HALF_TURN);
    let odd = turns.low_bits_plus(0.0).shift_left(F::MANTISSA + if F::WIDE { 11 } else { 8 });
    // If products are contracted, the polynomial can exceed 1 by one ulp.
    y.magnitude().lesser(F::lit(1.0)).with_sign_of(F::from_bits(y.to_bits() ^ odd ^ sign))
}

/// Parts of pi for f32 and f64. The products of the first three with whole and half numbers of half turns are exact;
/// the last part holds the remaining bits.
const PI_1: (f64, f64) = (3.140625, 3.1415926534682512);
const PI_2: (f64, f64) = (0.0009675025939941406, 1.2154201012607932e-10);
const PI_3: (f64, f64) = (1.5099067240953445e-7, 4.044532497422333e-21);
const PI_4: (f64, f64) = (5.126688136514179e-12, 1.69568553207378e-31);

/// `x = n pi/2 + r`: n, which is integral, and r.
#[inline(always)]
fn reduced<F: Float>(x: F) -> (F, F) {
    let n = (x * F::lit(std::f64::consts::FRAC_2_PI)).nearest_small();
    // Halves of the parts of pi.
    let r = x.less_part(n, F::lit2(1.5703125, 1.5707963267341256));
    let r = r.less_part(n, F::lit2(0.0004837512969970703, 6.077100506303966e-11));
    let r = r.less_part(n, F::lit2(7.549533620476723e-8, 2.0222662487111665e-21));
    (n, r.less_part(n, F::lit2(2.5633440682570896e-12, 8.4784276603689e-32)))
}

/// The bits of 2/pi, after a word of zeros for arguments that are barely large.
const TWO_OVER_PI_NARROW: [u64; 8] =
    [0, 0xa2f9_836e, 0x4e44_1529, 0xfc27_57d1, 0xf534_ddc0, 0xdb62_9599, 0x3c43_9041, 0xfe51_63ab];

/// As [`TWO_OVER_PI_NARROW`], for f64.
const TWO_OVER_PI_WIDE: [u64; 20] = [
    0,
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
];

/// [`reduced`] for arguments that [`is_large`] finds; any value for infinities.
#[inline(always)]
fn reduced_large<F: Float>(x: F) -> (F::Bits, F) {
    let width = F::MANTISSA + if F::WIDE { 12 } else { 9 };
    let word = F::Bits::word;
    let bits = x.magnitude().to_bits();
    let mantissa = (bits & word((1 << F::MANTISSA) - 1)) | word(1 << F::MANTISSA);
    // |x| = mantissa 2^s. The bits of 2/pi whose product with it is whole turns (of four quadrants) are left out.
    let first = bits.shift_right(F::MANTISSA).plus(word(width as u64)).minus(word(F::BIAS + F::MANTISSA as u64 + 2));
    let index = first.shift_right(if F::WIDE { 6 } else { 5 });
    let shift = first & word(width as u64 - 1);
    let back = word(width as u64 - 1).minus(shift);
    let table: &'static [u64] = if F::WIDE { &TWO_OVER_PI_WIDE } else { &TWO_OVER_PI_NARROW };
    let at = |offset: usize| F::Bits::pick(&table[offset..table.len() - 3 + offset], index);
    let (t0, t1, t2, t3) = (at(0), at(1), at(2), at(3));
    let joined = |a: F::Bits, b: F::Bits| a.shift_left_by(shift) | b.shift_right(1).shift_right_by(back);
    let (w0, w1, w2) = (joined(t0, t1), joined(t1, t2), joined(t2, t3));
    // The product, modulo turns: its top two bits are the quadrant, the others the fraction of a quadrant.
    let middle = mantissa.times(w1).plus(mantissa.times_high(w2));
    let carry = F::Bits::select(middle.less(mantissa.times(w1)), word(1), word(0));
    let top = mantissa.times(w0).plus(mantissa.times_high(w1)).plus(carry);
    let quadrant = top.plus(word(1 << (width - 3))).shift_right(width - 2);
    // The fraction is signed, because the quadrant is the nearest one.
    let high = top.shift_left(2) | middle.shift_right(width - 2);
    let low = middle.shift_left(2);
    let r = fraction_of_quadrant::<F>(high, low);
    let negative = x.less(F::lit(0.0));
    let quadrant = F::Bits::select(negative, word(0).minus(quadrant), quadrant);
    (quadrant, F::select(negative, -r, r))
}

/// The signed number `high 2^-width + low 2^-(2 width)` times pi/2, with about one rounding.
#[inline(always)]
fn fraction_of_quadrant<F: Float>(high: F::Bits, low: F::Bits) -> F {
    let word = F::Bits::word;
    // Three pieces that convert exactly, in units of 2^-50, 2^-100 and 2^-128, or of 2^-21, 2^-42 and 2^-63.
    let (a, b, c) = if F::WIDE {
        (
            high.shift_right_signed(14),
            (high & word(0x3fff)).shift_left(36) | low.shift_right(28),
            low & word(0xfff_ffff),
        )
    } else {
        (
            high.shift_right_signed(11),
            (high & word(0x7ff)).shift_left(10) | low.shift_right(22),
            low.shift_right(1) & word(0x1f_ffff),
        )
    };
    let (unit_a, unit_b, unit_c) = (
        F::lit2(4.76837158203125e-7, 8.881784197001252e-16),
        F::lit2(2.2737367544323206e-13, 7.888609052210118e-31),
        F::lit2(1.0842021724855044e-19, 2.938735877055719e-39),
    );
    let float = F::small_from_bits;
    // The sum starts with the top pieces, because a first piece of -1 cancels nearly all of the second if the fraction
    // is tiny.
    let (upper, upper_lost) = sum_of_ordered(float(a) * unit_a, float(b) * unit_b);
    let (sum, lost) = sum_of_ordered(upper, upper_lost + float(c) * unit_c);
    // The leading product is exact.
    let sum_high = sum.high_half();
    let (pi_high, pi_low) =
        (F::lit2(1.5703125, 1.5707963109016418), F::lit2(0.0004838267923332751, 1.5893254773528196e-8));
    let half_pi = F::lit(std::f64::consts::FRAC_PI_2);
    sum_high * pi_high + ((sum_high * pi_low + (sum - sum_high) * half_pi) + lost * half_pi)
}

/// `sin(r)` for `|r|` up to pi/4.
#[inline(always)]
pub(crate) fn sine<F: Float>(r: F) -> F {
    let z = r * r;
    r + r * z * horner(z, &SIN)
}

/// `cos(r)` for `|r|` up to pi/4; never above 1.
#[inline(always)]
pub(crate) fn cosine<F: Float>(r: F) -> F {
    let z = r * r;
    F::lit(1.0) + z * (F::lit(-0.5) + z * horner(z, &COS))
}

/// The sine at the `q`-th quadrant plus `r`; only the lowest two bits of `q` count.
#[inline(always)]
pub(crate) fn sine_at<F: Float>(q: F::Bits, r: F) -> F {
    let word = F::Bits::word;
    let odd = (q & word(1)).same(word(1));
    let value = F::select(odd, cosine(r), sine(r));
    let sign = (q & word(2)).shift_left(F::MANTISSA + if F::WIDE { 10 } else { 7 });
    F::from_bits(value.to_bits() ^ sign)
}

#[inline(always)]
fn tangent_at<F: Float>(q: F::Bits, r: F) -> F {
    let z = r * r;
    let value = r + r * z * horner(z, &TAN);
    let odd = (q & F::Bits::word(1)).same(F::Bits::word(1));
    F::select(odd, F::lit(-1.0) / value, value)
}

#[inline(always)]
fn unless_infinite<F: Float>(x: F, value: F) -> F {
    F::select(x.is_infinite() | x.is_nan(), F::nan(), value)
}

/// The sine of `x` that is not [`is_large`].
#[inline(always)]
pub fn sin<F: Float>(x: F) -> F {
    // The sine is computed for the magnitude, so that a zero has the argument's sign whatever a driver does with zeros.
    let a = x.magnitude();
    let n = (a * F::lit(FRAC_1_PI)).nearest_small();
    let r = a.less_part(n, F::lit2(PI_1.0, PI_1.1));
    let r = r.less_part(n, F::lit2(PI_2.0, PI_2.1));
    let r = r.less_part(n, F::lit2(PI_3.0, PI_3.1));
    sine_of_half_turns(r.less_part(n, F::lit2(PI_4.0, PI_4.1)), n, x.to_bits())
}

/// The sine of any `x`.
#[inline(always)]
pub fn sin_large<F: Float>(x: F) -> F {
    let (q, r) = reduced_large(x);
    unless_infinite(x, sine_at(q, r))
}

/// The cosine of `x` that is not [`is_large`]: the sine of the angle's distance from an odd number of quadrants.
#[inline(always)]
pub fn cos<F: Float>(x: F) -> F {
    let a = x.magnitude();
    let half = F::lit(0.5);
    let turns = (a * F::lit(FRAC_1_PI) - half).nearest_small();
    let n = turns + half;
    let r = n * F::lit2(PI_1.0, PI_1.1) - a;
    let r = r + n * F::lit2(PI_2.0, PI_2.1);
    let r = r + n * F::lit2(PI_3.0, PI_3.1);
    sine_of_half_turns(r + n * F::lit2(PI_4.0, PI_4.1), turns, F::Bits::word(0))
}

/// The cosine of any `x`.
#[inline(always)]
pub fn cos_large<F: Float>(x: F) -> F {
    let (q, r) = reduced_large(x);
    unless_infinite(x, sine_at(q.plus(F::Bits::word(1)), r))
}

/// The cosine of pi times any `x`: exact at multiples of a half, with +0 at `2 n + 1/2`.
#[inline(always)]
pub fn cospi<F: Float>(x: F) -> F {
    let a = x.magnitude();
    let half = F::lit(0.5);
    // All of this is exact: the rest of two turns, its quadrant, and the signed distance from the quadrant.
    let t = a - F::lit(2.0) * (a * half).round_down();
    let n = (t + t).nearest_small();
    let (first, second, third) = (n.same(F::lit(1.0)), n.same(F::lit(2.0)), n.same(F::lit(3.0)));
    let r = F::select(first, n * half - t, t - n * half) * F::lit(std::f64::consts::PI);
    let value = F::select(first | third, sine(r), cosine(r));
    unless_infinite(x, F::select(second, -value, value))
}

/// The tangent of `x` that is not [`is_large`].
#[inline(always)]
pub fn tan<F: Float>(x: F) -> F {
    let (n, r) = reduced(x);
    let value = tangent_at(n.low_bits_plus(0.0), r);
    // A driver may round the zero of the quadrant away at -0, which loses its sign; tiny arguments are their own
    // tangent.
    F::select(x.magnitude().less(F::lit2(0.000244140625, 7.450580596923828e-9)), x, value)
}

/// The tangent of any `x`.
#[inline(always)]
pub fn tan_large<F: Float>(x: F) -> F {
    let (q, r) = reduced_large(x);
    unless_infinite(x, tangent_at(q, r))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every float within 2^-11 of pi/2, as an argument of both functions.
    #[test]
    fn sines_do_not_exceed_one_and_keep_the_sign_of_zero() {
        let (low, high) = (1.5703f32.to_bits(), 1.5713f32.to_bits());
        for x in (low..high).map(f32::from_bits) {
            assert!(sin(x) <= 1.0 && sin(-x) >= -1.0, "{x}");
            let small = x - std::f32::consts::FRAC_PI_2;
            assert!(cos(small) <= 1.0 && cos(small) > 0.999_999, "{small}");
        }
        assert_eq!((cos(0.0f32), cos(-0.0f32), cos(0.0f64)), (1.0, 1.0, 1.0));
        assert_eq!((sin(0.0f32).to_bits(), sin(-0.0f32).to_bits()), (0, (-0.0f32).to_bits()));
        assert_eq!((sin(-0.0f64).to_bits(), sin(std::f64::consts::FRAC_PI_2)), ((-0.0f64).to_bits(), 1.0));
        assert_eq!((sin(std::f32::consts::FRAC_PI_2), sin(1e-42f32)), (1.0, 1e-42));
    }

    #[test]
    fn cosines_of_half_turns_are_exact() {
        for n in 0..64 {
            let exact = [1.0, 0.0, -1.0, 0.0][n % 4];
            let (x, y) = (n as f64 / 2.0, n as f32 / 2.0);
            assert_eq!((cospi(x).to_bits(), cospi(-x).to_bits()), (f64::to_bits(exact), f64::to_bits(exact)), "{x}");
            assert_eq!((cospi(y).to_bits(), cospi(-y).to_bits()), ((exact as f32).to_bits(), (exact as f32).to_bits()));
        }
        assert_eq!(
            (cospi(9007199254740991f64), cospi(1e300), cospi(16777215f32), cospi(1e30f32)),
            (-1.0, 1.0, -1.0, 1.0)
        );
        assert!(cospi(f64::NAN).is_nan() && cospi(f32::NEG_INFINITY).is_nan());
    }
}
