//! Converts elements to other classes as the language does: it saturates, and rounds half away from zero.
//!
//! Must hold: these functions are pure. The caller must refuse conversions that the language refuses (`logical (NaN)`,
//! complex to integer).

use super::class::Class;
use super::tensor::{Data, each_data};
use num_complex::{Complex32, Complex64};

/// A number that can be converted to other classes.
trait Number: Copy {
    fn f64(self) -> f64;
    fn f32(self) -> f32;
    /// Returns the whole number, if the type has only whole numbers.
    fn whole(self) -> Option<i128>;
    fn is_zero(self) -> bool;
}

macro_rules! whole_numbers {
    ($($ty:ty),*) => {$(
        impl Number for $ty {
            fn f64(self) -> f64 {
                self as f64
            }
            fn f32(self) -> f32 {
                self as f32
            }
            fn whole(self) -> Option<i128> {
                Some(self as i128)
            }
            fn is_zero(self) -> bool {
                self == 0
            }
        }
    )*};
}
whole_numbers!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! floats {
    ($($ty:ty, $x:ident => $real:expr;)*) => {$(
        impl Number for $ty {
            fn f64(self) -> f64 {
                let $x = self;
                $real as f64
            }
            fn f32(self) -> f32 {
                let $x = self;
                $real as f32
            }
            fn whole(self) -> Option<i128> {
                None
            }
            fn is_zero(self) -> bool {
                self == <$ty>::default()
            }
        }
    )*};
}
floats! { f64, x => x; f32, x => x; Complex64, x => x.re; Complex32, x => x.re; }

impl Number for bool {
    fn f64(self) -> f64 {
        self as u8 as f64
    }
    fn f32(self) -> f32 {
        self as u8 as f32
    }
    fn whole(self) -> Option<i128> {
        Some(self as i128)
    }
    fn is_zero(self) -> bool {
        !self
    }
}

/// Moves a number away from zero by the greatest number below a half. A cast to an integer, which truncates, then gives
/// the number rounded half away from zero. `f64::round` rounds alike, but by a function call.
pub(crate) fn half_away(x: f64) -> f64 {
    x + 0.5f64.next_down().copysign(x)
}

/// Converts a number to an integer type: it is rounded half away from zero and saturated, and NaN becomes 0.
macro_rules! to_integer {
    ($variant:ident, $ty:ty, $data:expr) => {
        Data::$variant(each_data!($data, v => v
            .iter()
            .map(|&x| match x.whole() {
                Some(n) => n.clamp(<$ty>::MIN as i128, <$ty>::MAX as i128) as $ty,
                None => half_away(x.f64()) as $ty,
            })
            .collect()))
    };
}

impl Data {
    /// Converts the elements to a class. Floats stay complex, and other classes take the real part.
    pub fn converted(&self, class: Class) -> Data {
        if self.class() == class {
            return self.clone();
        }
        match (class, self) {
            (Class::Double, Data::C32(v)) => {
                Data::C64(v.iter().map(|z| Complex64::new(z.re as f64, z.im as f64)).collect())
            }
            (Class::Single, Data::C64(v)) => {
                Data::C32(v.iter().map(|z| Complex32::new(z.re as f32, z.im as f32)).collect())
            }
            (Class::Single, data) => Data::F32(each_data!(data, v => v.iter().map(|x| x.f32()).collect())),
            (Class::Int8, data) => to_integer!(I8, i8, data),
            (Class::Int16, data) => to_integer!(I16, i16, data),
            (Class::Int32, data) => to_integer!(I32, i32, data),
            (Class::Int64, data) => to_integer!(I64, i64, data),
            (Class::Uint8, data) => to_integer!(U8, u8, data),
            (Class::Uint16, data) => to_integer!(U16, u16, data),
            (Class::Uint32, data) => to_integer!(U32, u32, data),
            (Class::Uint64, data) => to_integer!(U64, u64, data),
            // For numbers beyond a byte, or with a fraction, the low byte of the whole part counts, as in Octave.
            (Class::Char, data) => Data::Char(each_data!(data, v => v.iter().map(|x| match x.whole() {
                    Some(n) => n as u8,
                    None if x.f64().is_finite() => x.f64() as i64 as u8,
                    None => 0,
                }).collect())),
            (Class::Logical, data) => Data::Bool(each_data!(data, v => v.iter().map(|x| !x.is_zero()).collect())),
            (_, data) => Data::F64(each_data!(data, v => v.iter().map(|x| x.f64()).collect())),
        }
    }

    /// Makes the elements complex: single stays single, and all others become double.
    pub fn complexified(&self) -> Data {
        match self {
            Data::C64(_) | Data::C32(_) => self.clone(),
            Data::F32(v) => Data::C32(v.iter().map(|&x| Complex32::new(x, 0.0)).collect()),
            other => Data::C64((0..other.len()).map(|i| Complex64::new(other.f64_at(i), 0.0)).collect()),
        }
    }

    /// Whether an element is NaN.
    pub fn has_nan(&self) -> bool {
        match self {
            Data::F64(v) => v.iter().any(|x| x.is_nan()),
            Data::F32(v) => v.iter().any(|x| x.is_nan()),
            Data::C64(v) => v.iter().any(|x| x.is_nan()),
            Data::C32(v) => v.iter().any(|x| x.is_nan()),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_round_half_away_and_saturate() {
        let data = Data::F64(vec![2.5, -2.5, 300.0, -300.0, f64::NAN, f64::INFINITY]);
        assert_eq!(data.converted(Class::Int8), Data::I8(vec![3, -3, 127, -128, 0, 127]));
        assert_eq!(data.converted(Class::Uint8), Data::U8(vec![3, 0, 255, 0, 0, 255]));
        let wide = Data::I64(vec![i64::MAX, i64::MIN, 9_007_199_254_740_993]);
        assert_eq!(wide.converted(Class::Uint64), Data::U64(vec![i64::MAX as u64, 0, 9_007_199_254_740_993]));
        assert_eq!(Data::U64(vec![u64::MAX]).converted(Class::Int64), Data::I64(vec![i64::MAX]));
    }

    #[test]
    fn chars_take_the_low_byte_and_logicals_ask_for_zero() {
        let data = Data::F64(vec![66.5, -1.0, 300.0, 0.0]);
        assert_eq!(data.converted(Class::Char), Data::Char(vec![66, 255, 44, 0]));
        assert_eq!(data.converted(Class::Logical), Data::Bool(vec![true, true, true, false]));
    }

    #[test]
    fn floats_stay_complex() {
        let data = Data::C64(vec![Complex64::new(1.5, 2.0)]);
        assert_eq!(data.converted(Class::Single), Data::C32(vec![Complex32::new(1.5, 2.0)]));
        assert_eq!(Data::Bool(vec![true]).complexified(), Data::C64(vec![Complex64::new(1.0, 0.0)]));
        assert_eq!(Data::F32(vec![1.0]).complexified(), Data::C32(vec![Complex32::new(1.0, 0.0)]));
    }

    #[test]
    fn numbers_are_cut_off_where_rounding_would_have_them() {
        let near = |x: f64| [x.next_down(), x, x.next_up()];
        let halves = (0..70).flat_map(|k| [2f64.powi(k) - 0.5, 2f64.powi(k), 2f64.powi(k) + 0.5, 2f64.powi(k) + 1.5]);
        let few = [0.0, 0.25, 0.5, 1.5, 2.5, 1e300, f64::INFINITY, f64::NAN, f64::MIN_POSITIVE];
        for x in halves.chain(few).flat_map(near) {
            for x in [x, -x] {
                assert_eq!(half_away(x) as i64, x.round() as i64, "{x}");
                assert_eq!(half_away(x) as u64, x.round() as u64, "{x}");
                assert_eq!(half_away(x) as i32, x.round() as i32, "{x}");
            }
        }
    }
}
