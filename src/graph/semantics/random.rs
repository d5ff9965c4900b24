//! Turns random words into numbers of a distribution.

use super::lanes::{Bits, Float, Lane};
use super::logarithm::{log_of_normal, log1p};
use super::trigonometric::sine_at;

/// Uniform in [0, 1): the upper 24 (f32) or 53 (f64) bits, exactly, on any device.
#[inline(always)]
pub(crate) fn uniform<F: Float>(bits: F::Bits) -> F {
    // The bits are taken in two pieces that convert exactly.
    let (high, low, unit_high, unit_low) = if F::WIDE {
        let low = bits.shift_right(11) & F::Bits::word(0x7ff_ffff);
        (bits.shift_right(38), low, F::lit(1.4901161193847656e-8), F::lit(1.1102230246251565e-16))
    } else {
        let low = bits.shift_right(8) & F::Bits::word(0xfff);
        (bits.shift_right(20), low, F::lit(0.000244140625), F::lit(5.960464477539063e-8))
    };
    F::small_from_bits(high) * unit_high + F::small_from_bits(low) * unit_low
}

/// Bits of the words that a lane's random numbers are made of.
#[inline(always)]
fn word_width<F: Float>() -> u32 {
    if F::WIDE { 64 } else { 32 }
}

/// Uniform in (0, 1]: of 32 (f32) or 64 (f64) bits, of which the last counts as set, so that the number has a logarithm.
#[inline(always)]
pub(crate) fn open_uniform<F: Float>(bits: F::Bits) -> F {
    let word = F::Bits::word;
    let half = word_width::<F>() / 2;
    let high = F::small_from_bits(bits.shift_right(half)) * F::lit2(0.0000152587890625, 2.3283064365386963e-10);
    let low = (bits & word((1 << half) - 1)) | word(1);
    high + F::small_from_bits(low) * F::lit2(2.3283064365386963e-10, 5.421010862427522e-20)
}

/// Exponential with mean 1. The words of the upper half give small numbers, from `1 - u` itself, so that these have all
/// their digits, too: from 2^-32 to 22.2 (f32), 2^-64 to 44.4 (f64).
#[inline(always)]
pub(crate) fn exponential<F: Float>(bits: F::Bits) -> F {
    let is_small = bits.shift_right(word_width::<F>() - 1).same(F::Bits::word(1));
    -F::select(is_small, log1p(-open_uniform::<F>(!bits)), log_of_normal(open_uniform(bits)))
}

/// Two independent standard normal numbers by Box and Muller's method: the radius from the bits of `a`, the angle
/// from those of `b`.
#[inline(always)]
pub(crate) fn normal_pair<F: Float>(a: F::Bits, b: F::Bits) -> (F, F) {
    let word = F::Bits::word;
    let width = word_width::<F>();
    let radius = (F::lit(-2.0) * log_of_normal(open_uniform(a))).root();
    // The quadrant nearest to the angle, and the rest as a signed fraction of a quadrant.
    let quadrant = b.plus(word(1 << (width - 3))).shift_right(width - 2);
    let rest = b.shift_left(2);
    let drop = width - F::MANTISSA + 2;
    let r = F::small_from_bits(rest.shift_right_signed(drop))
        * F::lit2(4.76837158203125e-7, 8.881784197001252e-16)
        * F::lit(std::f64::consts::FRAC_PI_2);
    (radius * sine_at(quadrant.plus(word(1)), r), radius * sine_at(quadrant, r))
}
