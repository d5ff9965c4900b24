//! Vectors of each instruction set, and the choice among them.
//!
//! Must hold: LANES-1: functions over [`Lanes`] are `#[inline(always)]`, so that they are compiled for the instruction
//! set of the function that [`dispatch`] calls.

/// A float type of products.
pub trait Real: Copy + Send + Sync + 'static {
    /// Zero.
    const ZERO: Self;
    /// Vectors of 512 bits.
    #[cfg(target_arch = "x86_64")]
    type Avx512: Lanes<Real = Self>;
    /// Vectors of 256 bits.
    #[cfg(target_arch = "x86_64")]
    type Avx2: Lanes<Real = Self>;
    /// Arrays that the compiler may vectorise.
    type Plain: Lanes<Real = Self>;
    /// The sum of two numbers.
    fn plus(self, other: Self) -> Self;
    /// The product of two numbers.
    fn times(self, other: Self) -> Self;
}

/// A vector of numbers.
///
/// # Safety
/// The CPU has the instruction set, and addresses point to `COUNT` numbers.
#[allow(clippy::missing_safety_doc)]
pub trait Lanes {
    /// The type of the numbers.
    type Real: Real;
    /// The type of the vector.
    type Vector: Copy;
    /// Numbers of a vector.
    const COUNT: usize;
    /// Columns of a tile of registers, each of which is two vectors: at most [`COLUMNS_MAX`].
    const COLUMNS: usize;
    unsafe fn load(from: *const Self::Real) -> Self::Vector;
    unsafe fn store(to: *mut Self::Real, vector: Self::Vector);
    unsafe fn splat(x: Self::Real) -> Self::Vector;
    unsafe fn add(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `a * b + c`.
    unsafe fn mul_add(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
}

/// Columns of the widest tile.
pub const COLUMNS_MAX: usize = 8;

/// A computation that is written for vectors of any width.
pub trait Kernel<T: Real>: Sized {
    /// Runs the computation.
    fn run<L: Lanes<Real = T>>(self);
}

/// The widths of vectors with an instruction set of their own, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(super) enum Width {
    Avx2,
    Avx512,
}

#[cfg(test)]
thread_local! {
    /// The widest vectors that a test allows on its thread; `None` allows arrays only.
    pub(super) static WIDEST: std::cell::Cell<Option<Width>> = const { std::cell::Cell::new(Some(Width::Avx512)) };
}

/// Whether vectors of this width may be used. Only tests forbid some.
#[cfg(target_arch = "x86_64")]
fn is_allowed(_width: Width) -> bool {
    #[cfg(test)]
    return WIDEST.get().is_some_and(|widest| _width <= widest);
    #[cfg(not(test))]
    true
}

/// Runs a kernel on the widest vectors that this machine has.
pub(super) fn dispatch<T: Real, K: Kernel<T>>(kernel: K) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_allowed(Width::Avx512) && is_x86_feature_detected!("avx512f") {
            // SAFETY: the CPU has the instruction set.
            return unsafe { on_avx512(kernel) };
        }
        if is_allowed(Width::Avx2) && is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the CPU has the instruction set.
            return unsafe { on_avx2(kernel) };
        }
    }
    kernel.run::<T::Plain>();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn on_avx512<T: Real, K: Kernel<T>>(kernel: K) {
    kernel.run::<T::Avx512>();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn on_avx2<T: Real, K: Kernel<T>>(kernel: K) {
    kernel.run::<T::Avx2>();
}

/// Arrays of 16 bytes as vectors.
pub struct Plain<T>(std::marker::PhantomData<T>);

macro_rules! reals {
    ($($real:ident, $plain:literal, $avx512:ident, $avx2:ident;)*) => {$(
        impl Real for $real {
            const ZERO: $real = 0.0;
            #[cfg(target_arch = "x86_64")]
            type Avx512 = x86::$avx512;
            #[cfg(target_arch = "x86_64")]
            type Avx2 = x86::$avx2;
            type Plain = Plain<$real>;
            #[inline(always)]
            fn plus(self, other: $real) -> $real {
                self + other
            }
            #[inline(always)]
            fn times(self, other: $real) -> $real {
                self * other
            }
        }

        impl Lanes for Plain<$real> {
            type Real = $real;
            type Vector = [$real; $plain];
            const COUNT: usize = $plain;
            const COLUMNS: usize = 4;
            #[inline(always)]
            unsafe fn load(from: *const $real) -> Self::Vector {
                // SAFETY: the caller's promise.
                unsafe { from.cast::<Self::Vector>().read_unaligned() }
            }
            #[inline(always)]
            unsafe fn store(to: *mut $real, vector: Self::Vector) {
                // SAFETY: the caller's promise.
                unsafe { to.cast::<Self::Vector>().write_unaligned(vector) }
            }
            #[inline(always)]
            unsafe fn splat(x: $real) -> Self::Vector {
                [x; $plain]
            }
            #[inline(always)]
            unsafe fn add(a: Self::Vector, b: Self::Vector) -> Self::Vector {
                std::array::from_fn(|lane| a[lane] + b[lane])
            }
            #[inline(always)]
            unsafe fn mul_add(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector {
                if cfg!(target_arch = "aarch64") {
                    std::array::from_fn(|lane| a[lane].mul_add(b[lane], c[lane]))
                } else {
                    std::array::from_fn(|lane| a[lane] * b[lane] + c[lane])
                }
            }
        }
    )*};
}

reals! {
    f32, 4, F32x16, F32x8;
    f64, 2, F64x8, F64x4;
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Lanes;
    use std::arch::x86_64::*;

    macro_rules! lanes {
        ($($name:ident, $real:ident, $vector:ident, $count:literal, $columns:literal,
            $load:ident, $store:ident, $splat:ident, $add:ident, $mul_add:ident;)*) => {$(
            pub struct $name;

            impl Lanes for $name {
                type Real = $real;
                type Vector = $vector;
                const COUNT: usize = $count;
                const COLUMNS: usize = $columns;
                #[inline(always)]
                unsafe fn load(from: *const $real) -> $vector {
                    // SAFETY: the caller's promise, here and below.
                    unsafe { $load(from) }
                }
                #[inline(always)]
                unsafe fn store(to: *mut $real, vector: $vector) {
                    unsafe { $store(to, vector) }
                }
                #[inline(always)]
                unsafe fn splat(x: $real) -> $vector {
                    unsafe { $splat(x) }
                }
                #[inline(always)]
                unsafe fn add(a: $vector, b: $vector) -> $vector {
                    unsafe { $add(a, b) }
                }
                #[inline(always)]
                unsafe fn mul_add(a: $vector, b: $vector, c: $vector) -> $vector {
                    unsafe { $mul_add(a, b, c) }
                }
            }
        )*};
    }

    lanes! {
        F32x16, f32, __m512, 16, 8, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_set1_ps, _mm512_add_ps, _mm512_fmadd_ps;
        F64x8, f64, __m512d, 8, 8, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_set1_pd, _mm512_add_pd, _mm512_fmadd_pd;
        F32x8, f32, __m256, 8, 6, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_set1_ps, _mm256_add_ps, _mm256_fmadd_ps;
        F64x4, f64, __m256d, 4, 6, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_set1_pd, _mm256_add_pd, _mm256_fmadd_pd;
    }
}
