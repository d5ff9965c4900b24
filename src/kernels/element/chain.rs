//! Chains of arithmetic on floats: ops that each take the result of the one before, done in one pass over memory.
//!
//! In: the elements that a chain begins with, its steps with their operands, and where the results go. Out: the
//! results. A group of vectors goes through all steps in registers, so that a chain reads each of its operands once and
//! writes once, however long it is.
//!
//! Must hold: CHAIN-1: a result has the bits that the ops give one by one, so no step is contracted with another.
//! CHAIN-2: the results may be written over the elements of an operand, lane by lane, but not shifted against them.

use crate::graph::{DType, ElementOp};

/// The most steps of a chain.
pub const STEPS_MAX: usize = 16;

/// A step of a chain, which combines the value so far, `v`, with the step's operand, `x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainOp {
    /// `v + x`
    Add,
    /// `v - x`
    Sub,
    /// `x - v`
    SubFrom,
    /// `v * x`
    Mul,
    /// `v / x`
    Div,
    /// `x / v`
    DivInto,
}

/// The ops that chains take, each with its step where the value so far is the first argument, and where it is the
/// second.
const STEPS: [(ElementOp, ChainOp, ChainOp); 4] = [
    (ElementOp::Add, ChainOp::Add, ChainOp::Add),
    (ElementOp::Sub, ChainOp::Sub, ChainOp::SubFrom),
    (ElementOp::Mul, ChainOp::Mul, ChainOp::Mul),
    (ElementOp::Div, ChainOp::Div, ChainOp::DivInto),
];

impl ChainOp {
    /// The step for an op of two arguments. The value so far is the second argument if `is_second`, otherwise the
    /// first.
    pub fn of(op: ElementOp, dtype: DType, is_second: bool) -> Option<ChainOp> {
        if !dtype.is_float() {
            return None;
        }
        let (_, as_first, as_second) = STEPS.into_iter().find(|(step, ..)| *step == op)?;
        Some(if is_second { as_second } else { as_first })
    }
}

/// The value with which a chain begins, or the operand of a step.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// Elements in memory.
    Block(*const u8),
    /// A number that is the same for all lanes, as bits of the dtype.
    Number(u64),
}

/// `out[i] = first[i]` after all steps, for `n` lanes of f32 or f64.
///
/// # Safety
/// Blocks and `out` hold `n` elements of the dtype, aligned to it. If `out` overlaps a block, both begin at the same
/// address.
pub unsafe fn run(dtype: DType, first: Source, steps: &[(ChainOp, Source)], out: *mut u8, n: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match dtype {
            DType::F32 => dispatch::<f32>(first, steps, out.cast(), n),
            DType::F64 => dispatch::<f64>(first, steps, out.cast(), n),
            other => panic!("ELEM-1: a chain of {other}"),
        }
    }
}

unsafe fn dispatch<T: Real>(first: Source, steps: &[(ChainOp, Source)], out: *mut T, n: usize) {
    // SAFETY: the caller's promise; an instruction set is used only if the CPU has it.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                return on_avx512::<T>(first, steps, out, n);
            }
            if is_x86_feature_detected!("avx2") {
                return on_avx2::<T>(first, steps, out, n);
            }
        }
        lanes::<T::Plain>(first, steps, out, n);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn on_avx512<T: Real>(first: Source, steps: &[(ChainOp, Source)], out: *mut T, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { lanes::<T::Avx512>(first, steps, out, n) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn on_avx2<T: Real>(first: Source, steps: &[(ChainOp, Source)], out: *mut T, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { lanes::<T::Avx2>(first, steps, out, n) }
}

/// Computes all lanes: groups of vectors, then smaller groups, then a part of a vector.
#[inline(always)]
unsafe fn lanes<V: Vector>(first: Source, steps: &[(ChainOp, Source)], out: *mut V::Real, n: usize) {
    /// Vectors that go through the steps together.
    const GROUP: usize = 8;
    let mut at = 0;
    // SAFETY: the caller's promise; the lanes from `at` on are there.
    unsafe {
        while at + GROUP * V::COUNT <= n {
            group::<V, GROUP>(first, steps, out, at, V::COUNT);
            at += GROUP * V::COUNT;
        }
        // At most seven vectors and a part of one are left.
        if at + 4 * V::COUNT <= n {
            group::<V, 4>(first, steps, out, at, V::COUNT);
            at += 4 * V::COUNT;
        }
        if at + 2 * V::COUNT <= n {
            group::<V, 2>(first, steps, out, at, V::COUNT);
            at += 2 * V::COUNT;
        }
        while at < n {
            let count = V::COUNT.min(n - at);
            group::<V, 1>(first, steps, out, at, count);
            at += count;
        }
    }
}

/// Computes `N` vectors from lane `at` on. If `N` is 1, only the first `count` lanes of the vector are read and
/// written.
#[inline(always)]
unsafe fn group<V: Vector, const N: usize>(
    first: Source,
    steps: &[(ChainOp, Source)],
    out: *mut V::Real,
    at: usize,
    count: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let load = |block: *const u8, vector: usize| match count == V::COUNT {
            true => V::load(block.cast::<V::Real>().add(at + vector * V::COUNT)),
            false => V::load_some(block.cast::<V::Real>().add(at), count),
        };
        let mut v = [V::splat(V::Real::ZERO); N];
        for (n, v) in v.iter_mut().enumerate() {
            *v = match first {
                Source::Block(block) => load(block, n),
                Source::Number(bits) => V::splat(V::Real::of(bits)),
            };
        }
        macro_rules! each {
            ($source:ident, |$v:ident, $x:ident| $result:expr) => {
                match $source {
                    Source::Number(bits) => {
                        let $x = V::splat(V::Real::of(bits));
                        for n in 0..N {
                            let $v = v[n];
                            v[n] = $result;
                        }
                    }
                    Source::Block(block) => {
                        for n in 0..N {
                            let ($v, $x) = (v[n], load(block, n));
                            v[n] = $result;
                        }
                    }
                }
            };
        }
        for &(op, source) in steps {
            match op {
                ChainOp::Add => each!(source, |v, x| V::add(v, x)),
                ChainOp::Sub => each!(source, |v, x| V::sub(v, x)),
                ChainOp::SubFrom => each!(source, |v, x| V::sub(x, v)),
                ChainOp::Mul => each!(source, |v, x| V::mul(v, x)),
                ChainOp::Div => each!(source, |v, x| V::div(v, x)),
                ChainOp::DivInto => each!(source, |v, x| V::div(x, v)),
            }
        }
        for (n, &v) in v.iter().enumerate() {
            match count == V::COUNT {
                true => V::store(out.add(at + n * V::COUNT), v),
                false => V::store_some(out.add(at), v, count),
            }
        }
    }
}

trait Real: Copy + 'static {
    const ZERO: Self;
    #[cfg(target_arch = "x86_64")]
    type Avx512: Vector<Real = Self>;
    #[cfg(target_arch = "x86_64")]
    type Avx2: Vector<Real = Self>;
    type Plain: Vector<Real = Self>;
    fn of(bits: u64) -> Self;
}

/// A vector of numbers. Callers of its functions guarantee that the CPU has the instruction set, and that addresses
/// point to as many numbers as the function reads or writes.
trait Vector: Copy {
    type Real: Real;
    const COUNT: usize;
    unsafe fn load(from: *const Self::Real) -> Self;
    unsafe fn store(to: *mut Self::Real, v: Self);
    /// Loads the first `count` lanes. The other lanes are 0.
    #[inline(always)]
    unsafe fn load_some(from: *const Self::Real, count: usize) -> Self {
        let mut lanes = [Self::Real::ZERO; LANES_MAX];
        // SAFETY: the caller's promise.
        unsafe {
            std::ptr::copy_nonoverlapping(from, lanes.as_mut_ptr(), count);
            Self::load(lanes.as_ptr())
        }
    }
    #[inline(always)]
    unsafe fn store_some(to: *mut Self::Real, v: Self, count: usize) {
        let mut lanes = [Self::Real::ZERO; LANES_MAX];
        // SAFETY: the caller's promise.
        unsafe {
            Self::store(lanes.as_mut_ptr(), v);
            std::ptr::copy_nonoverlapping(lanes.as_ptr(), to, count);
        }
    }
    unsafe fn splat(x: Self::Real) -> Self;
    unsafe fn add(a: Self, b: Self) -> Self;
    unsafe fn sub(a: Self, b: Self) -> Self;
    unsafe fn mul(a: Self, b: Self) -> Self;
    unsafe fn div(a: Self, b: Self) -> Self;
}

/// Lanes of the widest vector.
const LANES_MAX: usize = 16;

macro_rules! reals {
    ($($real:ident, $bits:ident, $plain:literal, $avx512:ident, $avx2:ident;)*) => {$(
        impl Real for $real {
            const ZERO: $real = 0.0;
            #[cfg(target_arch = "x86_64")]
            type Avx512 = std::arch::x86_64::$avx512;
            #[cfg(target_arch = "x86_64")]
            type Avx2 = std::arch::x86_64::$avx2;
            type Plain = [$real; $plain];
            #[inline(always)]
            fn of(bits: u64) -> $real {
                $real::from_bits(bits as $bits)
            }
        }

        impl Vector for [$real; $plain] {
            type Real = $real;
            const COUNT: usize = $plain;
            #[inline(always)]
            unsafe fn load(from: *const $real) -> Self {
                // SAFETY: the caller's promise.
                unsafe { from.cast::<Self>().read() }
            }
            #[inline(always)]
            unsafe fn store(to: *mut $real, v: Self) {
                // SAFETY: the caller's promise.
                unsafe { to.cast::<Self>().write(v) }
            }
            #[inline(always)]
            unsafe fn splat(x: $real) -> Self {
                [x; $plain]
            }
            #[inline(always)]
            unsafe fn add(a: Self, b: Self) -> Self {
                std::array::from_fn(|lane| a[lane] + b[lane])
            }
            #[inline(always)]
            unsafe fn sub(a: Self, b: Self) -> Self {
                std::array::from_fn(|lane| a[lane] - b[lane])
            }
            #[inline(always)]
            unsafe fn mul(a: Self, b: Self) -> Self {
                std::array::from_fn(|lane| a[lane] * b[lane])
            }
            #[inline(always)]
            unsafe fn div(a: Self, b: Self) -> Self {
                std::array::from_fn(|lane| a[lane] / b[lane])
            }
        }
    )*};
}

reals! {
    f32, u32, 4, __m512, __m256;
    f64, u64, 2, __m512d, __m256d;
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Vector;
    use std::arch::x86_64::*;

    macro_rules! vectors {
        ($($vector:ident, $real:ident, $count:literal, $load:ident, $store:ident, $splat:ident,
            $add:ident, $sub:ident, $mul:ident, $div:ident $(, $mask:ident, $load_some:ident, $store_some:ident)?;)*) => {$(
            impl Vector for $vector {
                type Real = $real;
                const COUNT: usize = $count;
                #[inline(always)]
                unsafe fn load(from: *const $real) -> Self {
                    // SAFETY: the caller's promise, here and below.
                    unsafe { $load(from) }
                }
                #[inline(always)]
                unsafe fn store(to: *mut $real, v: Self) {
                    unsafe { $store(to, v) }
                }
                $(
                    #[inline(always)]
                    unsafe fn load_some(from: *const $real, count: usize) -> Self {
                        unsafe { $load_some(((1u32 << count) - 1) as $mask, from) }
                    }
                    #[inline(always)]
                    unsafe fn store_some(to: *mut $real, v: Self, count: usize) {
                        unsafe { $store_some(to, ((1u32 << count) - 1) as $mask, v) }
                    }
                )?
                #[inline(always)]
                unsafe fn splat(x: $real) -> Self {
                    unsafe { $splat(x) }
                }
                #[inline(always)]
                unsafe fn add(a: Self, b: Self) -> Self {
                    unsafe { $add(a, b) }
                }
                #[inline(always)]
                unsafe fn sub(a: Self, b: Self) -> Self {
                    unsafe { $sub(a, b) }
                }
                #[inline(always)]
                unsafe fn mul(a: Self, b: Self) -> Self {
                    unsafe { $mul(a, b) }
                }
                #[inline(always)]
                unsafe fn div(a: Self, b: Self) -> Self {
                    unsafe { $div(a, b) }
                }
            }
        )*};
    }

    vectors! {
        __m512, f32, 16, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_set1_ps, _mm512_add_ps, _mm512_sub_ps, _mm512_mul_ps,
            _mm512_div_ps, __mmask16, _mm512_maskz_loadu_ps, _mm512_mask_storeu_ps;
        __m512d, f64, 8, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_set1_pd, _mm512_add_pd, _mm512_sub_pd, _mm512_mul_pd,
            _mm512_div_pd, __mmask8, _mm512_maskz_loadu_pd, _mm512_mask_storeu_pd;
        __m256, f32, 8, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_set1_ps, _mm256_add_ps, _mm256_sub_ps, _mm256_mul_ps,
            _mm256_div_ps;
        __m256d, f64, 4, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_set1_pd, _mm256_add_pd, _mm256_sub_pd, _mm256_mul_pd,
            _mm256_div_pd;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Scalar;
    use crate::kernels::element::host::{self, HostArg};

    const OPS: [(ElementOp, bool, ChainOp); 6] = [
        (ElementOp::Add, false, ChainOp::Add),
        (ElementOp::Sub, false, ChainOp::Sub),
        (ElementOp::Sub, true, ChainOp::SubFrom),
        (ElementOp::Mul, false, ChainOp::Mul),
        (ElementOp::Div, false, ChainOp::Div),
        (ElementOp::Div, true, ChainOp::DivInto),
    ];

    /// Numbers of all kinds, as bytes of the dtype.
    fn numbers(dtype: DType, n: usize, seed: usize) -> Vec<u64> {
        let odd = [f64::NAN, f64::INFINITY, -0.0, 1e-310, -3.0e38, 1.0 + 1e-7];
        let value = |i: usize| if i % 11 == 5 { odd[i / 11 % 6] } else { ((i + seed) as f64 * 0.618).fract() - 0.5 };
        let mut words = vec![0u64; n + 1];
        match dtype {
            DType::F32 => {
                let out: &mut [f32] = bytemuck::cast_slice_mut(&mut words);
                (0..n).for_each(|i| out[i] = value(i) as f32);
            }
            _ => (0..n).for_each(|i| words[i] = value(i).to_bits()),
        }
        words
    }

    #[test]
    fn a_chain_has_the_bits_of_its_ops_one_by_one_also_over_its_own_operand() {
        for dtype in [DType::F32, DType::F64] {
            let width = dtype.bytes();
            let number = if dtype == DType::F32 { Scalar::F32(0.3) } else { Scalar::F64(0.3) };
            for n in [1, 7, 8, 15, 16, 17, 64, 127, 128, 129, 700] {
                for length in [1, 2, 6, STEPS_MAX] {
                    let blocks: Vec<Vec<u64>> = (0..=length).map(|k| numbers(dtype, n, 17 * k)).collect();
                    let bytes = |k: usize| &bytemuck::cast_slice::<u64, u8>(&blocks[k])[..n * width];
                    let is_number = |k: usize| k % 3 == 2;
                    let mut expected = bytes(0).to_vec();
                    let mut steps = Vec::new();
                    for k in 1..=length {
                        let (op, is_second, step) = OPS[(k * 5 + n) % OPS.len()];
                        steps.push((
                            step,
                            if is_number(k) { Source::Number(number.bits()) } else { Source::Block(bytes(k).as_ptr()) },
                        ));
                        assert_eq!(ChainOp::of(op, dtype, is_second), Some(step));
                        let aligned: Vec<u64> = blocks[0].clone();
                        let mut before = aligned;
                        bytemuck::cast_slice_mut::<u64, u8>(&mut before)[..n * width].copy_from_slice(&expected);
                        let so_far = HostArg::Block(&bytemuck::cast_slice(&before)[..n * width]);
                        let x = if is_number(k) { HostArg::Scalar(number) } else { HostArg::Block(bytes(k)) };
                        let args = if is_second { [x, so_far] } else { [so_far, x] };
                        let mut out = vec![0u64; n + 1];
                        host::apply(op, dtype, dtype, &args, &mut bytemuck::cast_slice_mut(&mut out)[..n * width], n);
                        expected = bytemuck::cast_slice(&out)[..n * width].to_vec();
                    }
                    let mut out = blocks[0].clone();
                    let at = out.as_mut_ptr().cast::<u8>();
                    // SAFETY: all blocks hold `n` elements; the results go over the elements that the chain begins
                    // with.
                    unsafe { run(dtype, Source::Block(at), &steps, at, n) };
                    let out = &bytemuck::cast_slice::<u64, u8>(&out)[..n * width];
                    assert!(is_same(dtype, out, &expected), "{dtype} {n} {length}");
                }
            }
        }
    }

    /// Whether all elements have the same bits, or are both NaN.
    fn is_same(dtype: DType, a: &[u8], b: &[u8]) -> bool {
        let width = dtype.bytes();
        a.chunks(width).zip(b.chunks(width)).all(|(a, b)| {
            let number = |x: &[u8]| match dtype {
                DType::F32 => f32::from_le_bytes(x.try_into().unwrap()) as f64,
                _ => f64::from_le_bytes(x.try_into().unwrap()),
            };
            a == b || (number(a).is_nan() && number(b).is_nan())
        })
    }
}
