//! Recorded numbers: the WGSL spelling of the lanes' arithmetic.
//!
//! Must hold: ELEM-5: infinities, NaN, and tests for them are written by their bits, because compilers may assume that
//! floats are finite.

use super::trace::{F32, F64, Helper, I32, I64, Kind, Traced, Truth, U8, U32, U64, need, width};
use crate::graph::semantics::{Bits, Float, Lane, Whole};
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Sub};

macro_rules! operator {
    ($($trait:ident $method:ident $text:literal for $($kind:ident)+;)*) => {$($(
        impl $trait for Traced<$kind> {
            type Output = Traced<$kind>;
            fn $method(self, other: Traced<$kind>) -> Traced<$kind> {
                self.infix($text, other)
            }
        }
    )+)*};
}
operator! {
    Add add "+" for F32 F64;
    Sub sub "-" for F32 F64;
    Mul mul "*" for F32 F64;
    Div div "/" for F32 F64;
    BitAnd bitand "&" for U32 U64;
    BitOr bitor "|" for U32 U64;
    BitXor bitxor "^" for U32 U64;
}

macro_rules! prefix {
    ($($trait:ident $method:ident $text:literal for $($kind:ident)+;)*) => {$($(
        impl $trait for Traced<$kind> {
            type Output = Traced<$kind>;
            fn $method(self) -> Traced<$kind> {
                self.call($text)
            }
        }
    )+)*};
}
prefix! {
    Neg neg "-" for F32 F64;
    Not not "~" for U32 U64;
}

/// A shift count, repeated in all lanes.
fn count(n: u32) -> Traced<U32> {
    Traced::constant(&format!("{n}u"))
}

fn shift<K: Kind>(value: Traced<K>, op: &str, n: Traced<U32>) -> Traced<K> {
    Traced::line(format!("({} {op} {})", value.text(), n.text()))
}

fn pick<K: Kind>(table: &[Traced<K>], index: impl Fn(u64) -> Traced<Truth>) -> Traced<K> {
    let last = table.len() - 1;
    (0..last).rev().fold(table[last], |rest, n| Traced::select(index(n as u64), table[n], rest))
}

impl Bits for Traced<U32> {
    fn word(value: u64) -> Traced<U32> {
        let value = value as u32;
        Traced::constant(&if value < 1024 { format!("{value}u") } else { format!("{value:#x}u") })
    }
    fn plus(self, other: Traced<U32>) -> Traced<U32> {
        self.infix("+", other)
    }
    fn minus(self, other: Traced<U32>) -> Traced<U32> {
        self.infix("-", other)
    }
    fn times(self, other: Traced<U32>) -> Traced<U32> {
        self.infix("*", other)
    }
    fn times_high(self, other: Traced<U32>) -> Traced<U32> {
        if width() == 1 {
            need(Helper::MulHigh);
            self.call2("tm_mulhi", other)
        } else {
            need(Helper::MulHigh4);
            self.call2("tm_mulhi_4", other)
        }
    }
    fn shift_left(self, n: u32) -> Traced<U32> {
        shift(self, "<<", count(n))
    }
    fn shift_right(self, n: u32) -> Traced<U32> {
        shift(self, ">>", count(n))
    }
    fn shift_right_signed(self, n: u32) -> Traced<U32> {
        shift(self.bitcast::<I32>(), ">>", count(n)).bitcast()
    }
    fn shift_left_by(self, n: Traced<U32>) -> Traced<U32> {
        shift(self, "<<", n)
    }
    fn shift_right_by(self, n: Traced<U32>) -> Traced<U32> {
        shift(self, ">>", n)
    }
    fn pick(table: &'static [u64], index: Traced<U32>) -> Traced<U32> {
        let words: Vec<_> = table.iter().map(|&w| Self::word(w)).collect();
        pick(&words, |n| index.same(Self::word(n)))
    }
}

impl Bits for Traced<U64> {
    fn word(value: u64) -> Traced<U64> {
        Traced::constant(&format!("{value}lu"))
    }
    fn plus(self, other: Traced<U64>) -> Traced<U64> {
        self.infix("+", other)
    }
    fn minus(self, other: Traced<U64>) -> Traced<U64> {
        self.infix("-", other)
    }
    fn times(self, other: Traced<U64>) -> Traced<U64> {
        self.infix("*", other)
    }
    fn times_high(self, other: Traced<U64>) -> Traced<U64> {
        // The product is made of 32-bit halves. No sum of partial products overflows.
        let mask = Self::word(0xffff_ffff);
        let (a, b, c, d) = (self & mask, self.shift_right(32), other & mask, other.shift_right(32));
        let middle = b.times(c).plus(a.times(c).shift_right(32));
        let other_middle = a.times(d).plus(middle & mask);
        b.times(d).plus(middle.shift_right(32)).plus(other_middle.shift_right(32))
    }
    fn shift_left(self, n: u32) -> Traced<U64> {
        shift(self, "<<", count(n))
    }
    fn shift_right(self, n: u32) -> Traced<U64> {
        shift(self, ">>", count(n))
    }
    fn shift_right_signed(self, n: u32) -> Traced<U64> {
        shift(self.bitcast::<I64>(), ">>", count(n)).bitcast()
    }
    fn shift_left_by(self, n: Traced<U64>) -> Traced<U64> {
        shift(self, "<<", n.convert::<U32>())
    }
    fn shift_right_by(self, n: Traced<U64>) -> Traced<U64> {
        shift(self, ">>", n.convert::<U32>())
    }
    fn pick(table: &'static [u64], index: Traced<U64>) -> Traced<U64> {
        let words: Vec<_> = table.iter().map(|&w| Self::word(w)).collect();
        pick(&words, |n| index.same(Self::word(n)))
    }
}

fn literal<K: Kind>(text: String, suffix: &str) -> Traced<K> {
    Traced::constant(&if text.starts_with('-') { format!("({text}{suffix})") } else { format!("{text}{suffix}") })
}

macro_rules! float_methods {
    () => {
        fn magnitude(self) -> Self {
            self.call("abs")
        }
        fn round_down(self) -> Self {
            self.call("floor")
        }
        fn round_up(self) -> Self {
            self.call("ceil")
        }
        fn root(self) -> Self {
            self.call("sqrt")
        }
        fn nearest_small(self) -> Self {
            self.call("round")
        }
    };
}

/// 1.5 * 2^23. A sum with it has an ulp of 1, so that its low bits hold a small integer.
const MAGIC: f64 = 12_582_912.0;
const MAGIC_BITS: u64 = 0x4b40_0000;
/// The same number for f64: 1.5 * 2^52.
const MAGIC_WIDE: f64 = 6_755_399_441_055_744.0;
const MAGIC_WIDE_BITS: u64 = 0x4338 << 48;

impl Float for Traced<F32> {
    type Bits = Traced<U32>;
    const WIDE: bool = false;
    fn lit(value: f64) -> Traced<F32> {
        literal(format!("{:?}", value as f32), "f")
    }
    fn from_bits(bits: Traced<U32>) -> Traced<F32> {
        bits.bitcast()
    }
    fn to_bits(self) -> Traced<U32> {
        self.bitcast()
    }
    float_methods!();
    fn truncated(self) -> Traced<F32> {
        self.call("trunc")
    }
    fn small_to_bits(self) -> Traced<U32> {
        // The sum's ulp is 1 (see [`MAGIC`]). A conversion would be slow on GPUs, and naga would clamp its operand in
        // addition.
        Bits::minus(self.low_bits_plus(0.0), Bits::word(MAGIC_BITS))
    }
    fn low_bits_plus(self, more: f64) -> Traced<U32> {
        (self + Self::lit(MAGIC + more)).to_bits()
    }
    fn lesser(self, other: Traced<F32>) -> Traced<F32> {
        self.call2("min", other)
    }
    fn is_beyond(self, limit: f64) -> Traced<Truth> {
        (self.to_bits() & Bits::word(0x7fff_ffff)).more(Bits::word(u64::from((limit as f32).to_bits())))
    }
    fn small_from_bits(bits: Traced<U32>) -> Traced<F32> {
        bits.bitcast::<I32>().convert()
    }
    fn is_nan(self) -> Traced<Truth> {
        (self.to_bits() & Bits::word(0x7fff_ffff)).more(Bits::word(0x7f80_0000))
    }
    fn is_infinite(self) -> Traced<Truth> {
        (self.to_bits() & Bits::word(0x7fff_ffff)).same(Bits::word(0x7f80_0000))
    }
    fn infinity() -> Traced<F32> {
        Self::from_bits(Bits::word(0x7f80_0000))
    }
    fn nan() -> Traced<F32> {
        Self::from_bits(Bits::word(0x7fc0_0000))
    }
    fn exact_remainder(self, divisor: Traced<F32>) -> Traced<F32> {
        need(Helper::Remainder);
        self.call2("tm_fmod", divisor)
    }
    fn pinned(self, sign: impl FnOnce() -> Traced<F32>) -> Traced<F32> {
        self.with_sign_of(sign())
    }
    fn less_part(self, factor: Traced<F32>, constant: Traced<F32>) -> Traced<F32> {
        self - factor * constant
    }
    fn with_sign_of(self, sign: Traced<F32>) -> Traced<F32> {
        let magnitude = self.to_bits() & Bits::word(0x7fff_ffff);
        Self::from_bits(magnitude | (sign.to_bits() & Bits::word(0x8000_0000)))
    }
}

impl Float for Traced<F64> {
    type Bits = Traced<U64>;
    const WIDE: bool = true;
    fn lit(value: f64) -> Traced<F64> {
        literal(format!("{value:?}"), "lf")
    }
    fn from_bits(bits: Traced<U64>) -> Traced<F64> {
        bits.bitcast()
    }
    fn to_bits(self) -> Traced<U64> {
        self.bitcast()
    }
    float_methods!();
    fn truncated(self) -> Traced<F64> {
        // On some processors, `trunc` of Mesa's software adapter (22.3) does not change large f64 that have a fraction.
        Self::select(self.less(Self::lit(0.0)), self.round_up(), self.round_down())
    }
    fn small_to_bits(self) -> Traced<U64> {
        Bits::minus(self.low_bits_plus(0.0), Bits::word(MAGIC_WIDE_BITS))
    }
    fn low_bits_plus(self, more: f64) -> Traced<U64> {
        (self + Self::lit(MAGIC_WIDE + more)).to_bits()
    }
    fn lesser(self, other: Traced<F64>) -> Traced<F64> {
        Self::select(other.less(self), other, self)
    }
    fn is_beyond(self, limit: f64) -> Traced<Truth> {
        (self.to_bits() & Bits::word(!(1 << 63))).more(Bits::word(limit.to_bits()))
    }
    fn small_from_bits(bits: Traced<U64>) -> Traced<F64> {
        bits.bitcast::<I64>().convert()
    }
    fn is_nan(self) -> Traced<Truth> {
        (self.to_bits() & Bits::word(!(1 << 63))).more(Bits::word(0x7ff0 << 48))
    }
    fn is_infinite(self) -> Traced<Truth> {
        self.magnitude().more(Self::lit(f64::MAX))
    }
    fn infinity() -> Traced<F64> {
        Traced::<F32>::infinity().convert()
    }
    fn nan() -> Traced<F64> {
        Traced::<F32>::nan().convert()
    }
    fn exact_remainder(self, divisor: Traced<F64>) -> Traced<F64> {
        need(Helper::RemainderWide);
        self.call2("tm_fmod_f64", divisor)
    }
    fn pinned(self, sign: impl FnOnce() -> Traced<F64>) -> Traced<F64> {
        self.with_sign_of(sign())
    }
    fn less_part(self, factor: Traced<F64>, constant: Traced<F64>) -> Traced<F64> {
        // NVIDIA's compiler merges the parts of f64 constants if the expression is a product and a difference, but not
        // if it is an `fma`.
        Traced::line(format!("fma(-({}), {}, {})", factor.text(), constant.text(), self.text()))
    }
    fn with_sign_of(self, sign: Traced<F64>) -> Traced<F64> {
        let top = <Traced<U64> as Bits>::word(1 << 63);
        Self::from_bits((self.to_bits() & !top) | (sign.to_bits() & top))
    }
}

macro_rules! whole_wrapping {
    () => {
        fn plus(self, other: Self) -> Self {
            self.infix("+", other)
        }
        fn minus(self, other: Self) -> Self {
            self.infix("-", other)
        }
        fn times(self, other: Self) -> Self {
            self.infix("*", other)
        }
        fn quotient(self, divisor: Self) -> Self {
            self.infix("/", divisor)
        }
    };
}

impl Whole for Traced<U32> {
    const SIGNED: bool = false;
    fn whole(value: i64) -> Traced<U32> {
        Traced::constant(&format!("{}u", value as u32))
    }
    fn least() -> Traced<U32> {
        Self::whole(0)
    }
    fn greatest() -> Traced<U32> {
        Self::whole(u32::MAX as i64)
    }
    whole_wrapping!();
    fn times_saturating(self, other: Traced<U32>) -> Traced<U32> {
        let high = self.times_high(other);
        Self::select(high.same(Self::whole(0)), Whole::times(self, other), Self::greatest())
    }
    fn has_bit(self, n: u32) -> Traced<Truth> {
        (self & Self::whole(1 << n)).same(Self::whole(1 << n))
    }
}

impl Whole for Traced<U8> {
    const SIGNED: bool = false;
    fn whole(value: i64) -> Traced<U8> {
        Traced::constant(&format!("{}u", value as u8))
    }
    fn least() -> Traced<U8> {
        Self::whole(0)
    }
    fn greatest() -> Traced<U8> {
        Self::whole(255)
    }
    fn plus(self, other: Traced<U8>) -> Traced<U8> {
        self.infix::<U8>("+", other).infix("&", Self::whole(255))
    }
    fn minus(self, other: Traced<U8>) -> Traced<U8> {
        self.infix::<U8>("-", other).infix("&", Self::whole(255))
    }
    fn times(self, other: Traced<U8>) -> Traced<U8> {
        self.infix::<U8>("*", other).infix("&", Self::whole(255))
    }
    fn times_saturating(self, other: Traced<U8>) -> Traced<U8> {
        self.infix::<U8>("*", other).call2("min", Self::whole(255))
    }
    fn quotient(self, divisor: Traced<U8>) -> Traced<U8> {
        self.infix("/", divisor)
    }
    fn has_bit(self, n: u32) -> Traced<Truth> {
        (self.as_kind::<U32>() & count(1 << n)).same(count(1 << n))
    }
}

impl Whole for Traced<I32> {
    const SIGNED: bool = true;
    fn whole(value: i64) -> Traced<I32> {
        Traced::constant(&format!("i32({value})"))
    }
    fn least() -> Traced<I32> {
        Self::whole(i32::MIN as i64)
    }
    fn greatest() -> Traced<I32> {
        Self::whole(i32::MAX as i64)
    }
    whole_wrapping!();
    fn times_saturating(self, other: Traced<I32>) -> Traced<I32> {
        // Multiplies the magnitudes as unsigned numbers. The product fits if it is at most 2^31 - 1, or 2^31 if
        // negative.
        let zero = Self::whole(0);
        let magnitude = |x: Traced<I32>| Self::select(x.less(zero), zero.minus(x), x).bitcast::<U32>();
        let (a, b) = (magnitude(self), magnitude(other));
        let negative = self.less(zero) ^ other.less(zero);
        let word = <Traced<U32> as Bits>::word;
        let bound = Traced::<U32>::select(negative, word(0x8000_0000), word(0x7fff_ffff));
        let fits = a.times_high(b).same(word(0)) & Bits::times(a, b).at_most(bound);
        Self::select(fits, self.times(other), Self::select(negative, Self::least(), Self::greatest()))
    }
    fn has_bit(self, n: u32) -> Traced<Truth> {
        (self.bitcast::<U32>() & count(1 << n)).same(count(1 << n))
    }
}

impl Whole for Traced<I64> {
    const SIGNED: bool = true;
    fn whole(value: i64) -> Traced<I64> {
        if value == i64::MIN {
            Traced::constant("(-9223372036854775807li - 1li)")
        } else {
            literal(value.to_string(), "li")
        }
    }
    fn least() -> Traced<I64> {
        Self::whole(i64::MIN)
    }
    fn greatest() -> Traced<I64> {
        Self::whole(i64::MAX)
    }
    whole_wrapping!();
    fn times_saturating(self, other: Traced<I64>) -> Traced<I64> {
        // The product did not overflow if and only if the wrapped product, divided by one factor, gives the other.
        // Factors -1 and 0 are handled separately, because WGSL does not define every quotient by them.
        let (zero, minus_one) = (Self::whole(0), Self::whole(-1));
        let product = self.times(other);
        let is_zero = other.same(zero);
        let is_minus_one = other.same(minus_one);
        let back = product.quotient(Self::select(is_zero | is_minus_one, Self::whole(2), other));
        let fits = is_zero | (is_minus_one & !self.same(Self::least())) | (!is_minus_one & back.same(self));
        let negative = self.less(zero) ^ other.less(zero);
        Self::select(fits, product, Self::select(negative, Self::least(), Self::greatest()))
    }
    fn has_bit(self, n: u32) -> Traced<Truth> {
        let bit = Self::whole(1 << n);
        self.infix::<I64>("&", bit).same(bit)
    }
}
