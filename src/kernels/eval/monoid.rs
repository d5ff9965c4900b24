//! The folds: lane-wise, over typed accumulators in memory.
//!
//! In: accumulators (one array a component) and blocks of arguments. Out: the accumulators, one step further.
//! A fold over the lanes of one block is made of merges of halves.
//!
//! Must hold:
//! - EVAL-3: merging with an accumulator that was only initialised changes nothing, so unused lanes do not count.

use super::number::{Float, Number};
use crate::graph::DType;
use crate::kernels::ir::Monoid;

/// The accumulators of one fold: an array a component.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts(pub [*mut u8; 3]);

impl Parts {
    /// The same, from a later lane on.
    ///
    /// # Safety
    /// The arrays hold more than `lanes` lanes.
    pub unsafe fn skip(self, components: &[DType], lanes: usize) -> Parts {
        let mut at = self.0;
        for (pointer, dtype) in at.iter_mut().zip(components) {
            // SAFETY: the caller's promise.
            *pointer = unsafe { pointer.add(lanes * dtype.bytes()) };
        }
        Parts(at)
    }
}

/// Position of an accumulator that has seen nothing.
const NOWHERE: u32 = u32::MAX;

macro_rules! by_number {
    ($dtype:expr, $number:ident => $body:expr) => {
        match $dtype {
            $crate::graph::DType::F32 => {
                type $number = f32;
                $body
            }
            $crate::graph::DType::F64 => {
                type $number = f64;
                $body
            }
            // A bool is a byte of 0 or 1; folds of bytes keep it one.
            $crate::graph::DType::Bool | $crate::graph::DType::U8 => {
                type $number = u8;
                $body
            }
            $crate::graph::DType::I32 => {
                type $number = i32;
                $body
            }
            $crate::graph::DType::U32 => {
                type $number = u32;
                $body
            }
            $crate::graph::DType::I64 => {
                type $number = i64;
                $body
            }
        }
    };
}

macro_rules! by_float {
    ($dtype:expr, $number:ident => $body:expr) => {
        match $dtype {
            $crate::graph::DType::F32 => {
                type $number = f32;
                $body
            }
            $crate::graph::DType::F64 => {
                type $number = f64;
                $body
            }
            other => panic!("IR-7: this fold takes floats, not {other}"),
        }
    };
}
pub(super) use by_number;

/// Sets accumulators to the neutral element.
///
/// # Safety
/// `parts` has arrays of `lanes` components (`Monoid::components`), for writing.
pub(super) unsafe fn init(monoid: Monoid, dtype: DType, parts: Parts, lanes: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match monoid {
            Monoid::Any => std::ptr::write_bytes(parts.0[0], 0, lanes),
            Monoid::All => std::ptr::write_bytes(parts.0[0], 1, lanes),
            Monoid::Welford | Monoid::WelfordWhere | Monoid::ScaledSquares => {
                let arrays = if monoid == Monoid::ScaledSquares { 2 } else { 3 };
                for at in &parts.0[..arrays] {
                    std::ptr::write_bytes(*at, 0, lanes * dtype.bytes());
                }
            }
            _ => {
                by_number!(dtype, T => {
                    let neutral = match monoid {
                        Monoid::Sum => T::ZERO,
                        Monoid::Prod => T::ONE,
                        Monoid::MinInclude => T::GREATEST,
                        Monoid::MaxInclude => T::LEAST,
                        Monoid::MinOmit => T::MIN_OMIT_NEUTRAL,
                        Monoid::MaxOmit => T::MAX_OMIT_NEUTRAL,
                        _ => T::ZERO,
                    };
                    lanes_mut::<T>(parts.0[0], lanes).fill(neutral);
                });
                if is_arg(monoid) {
                    lanes_mut::<u32>(parts.0[1], lanes).fill(NOWHERE);
                }
            }
        }
    }
}

/// As [`init`], for running folds: a sum of nothing has no sign of its own, so that the first sum is the first element.
///
/// # Safety
/// As [`init`].
pub(super) unsafe fn init_running(monoid: Monoid, dtype: DType, parts: Parts, lanes: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        init(monoid, dtype, parts, lanes);
        if monoid == Monoid::Sum {
            by_number!(dtype, T => lanes_mut::<T>(parts.0[0], lanes).fill(T::SUM_NEUTRAL));
        }
    }
}

fn is_arg(monoid: Monoid) -> bool {
    matches!(monoid, Monoid::ArgMinOmit | Monoid::ArgMaxOmit | Monoid::ArgMinInclude | Monoid::ArgMaxInclude)
}

/// # Safety
/// `at` points to that many numbers that nobody else uses meanwhile.
unsafe fn lanes_mut<'a, T>(at: *mut u8, lanes: usize) -> &'a mut [T] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(at.cast(), lanes) }
}

/// # Safety
/// `at` points to that many numbers that nobody writes meanwhile.
unsafe fn lanes_of<'a, T>(at: *const u8, lanes: usize) -> &'a [T] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(at.cast(), lanes) }
}

/// Folds one element a lane into the accumulators.
///
/// # Safety
/// `parts` and `args` hold `lanes` lanes: the first argument of `dtype`, the second u32 (`Arg*`) or bool
/// (`WelfordWhere`).
#[multiversion::multiversion(targets("x86_64+avx2+bmi2"))]
pub(super) unsafe fn accumulate(monoid: Monoid, dtype: DType, parts: Parts, args: [*const u8; 2], lanes: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match monoid {
            Monoid::Welford => by_float!(dtype, T => {
                welford(parts, lanes_of::<T>(args[0], lanes), |_| true);
            }),
            Monoid::WelfordWhere => {
                let on = lanes_of::<u8>(args[1], lanes);
                by_float!(dtype, T => welford(parts, lanes_of::<T>(args[0], lanes), |lane| on[lane] != 0));
            }
            Monoid::ScaledSquares => by_float!(dtype, T => {
                let (scale, sum) = (lanes_mut::<T>(parts.0[0], lanes), lanes_mut::<T>(parts.0[1], lanes));
                for ((scale, sum), &x) in scale.iter_mut().zip(sum).zip(lanes_of::<T>(args[0], lanes)) {
                    (*scale, *sum) = merge_squares((*scale, *sum), (x.abs(), 1.0));
                }
            }),
            _ if is_arg(monoid) => by_number!(dtype, T => {
                let at = (lanes_of::<T>(args[0], lanes), lanes_of::<u32>(args[1], lanes));
                merge_arg(monoid, parts, at.0, at.1, lanes);
            }),
            _ => fold_simple(monoid, dtype, parts.0[0], args[0], lanes),
        }
    }
}

/// Folds later accumulators into earlier ones, lane by lane.
///
/// # Safety
/// Both hold `lanes` lanes and do not overlap.
#[multiversion::multiversion(targets("x86_64+avx2+bmi2"))]
pub(super) unsafe fn merge(monoid: Monoid, dtype: DType, into: Parts, from: Parts, lanes: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match monoid {
            Monoid::Welford | Monoid::WelfordWhere => by_float!(dtype, T => {
                let [count, mean, squares] = into.0.map(|at| lanes_mut::<T>(at, lanes));
                let [counts, means, others] = from.0.map(|at| lanes_of::<T>(at, lanes));
                for lane in 0..lanes {
                    let a = [count[lane], mean[lane], squares[lane]];
                    let b = [counts[lane], means[lane], others[lane]];
                    [count[lane], mean[lane], squares[lane]] = merge_welford(a, b);
                }
            }),
            Monoid::ScaledSquares => by_float!(dtype, T => {
                let (scale, sum) = (lanes_mut::<T>(into.0[0], lanes), lanes_mut::<T>(into.0[1], lanes));
                let (scales, sums) = (lanes_of::<T>(from.0[0], lanes), lanes_of::<T>(from.0[1], lanes));
                for lane in 0..lanes {
                    (scale[lane], sum[lane]) = merge_squares((scale[lane], sum[lane]), (scales[lane], sums[lane]));
                }
            }),
            _ if is_arg(monoid) => by_number!(dtype, T => {
                let at = (lanes_of::<T>(from.0[0], lanes), lanes_of::<u32>(from.0[1], lanes));
                merge_arg(monoid, into, at.0, at.1, lanes);
            }),
            _ => fold_simple(monoid, dtype, into.0[0], from.0[0], lanes),
        }
    }
}

/// Folds `width` lanes (a power of two) into the first, by halves.
///
/// # Safety
/// `parts` holds `width` lanes.
pub(super) unsafe fn collapse(monoid: Monoid, dtype: DType, parts: Parts, width: usize) {
    debug_assert!(width.is_power_of_two());
    let components = monoid.components(dtype);
    let mut half = width / 2;
    while half > 0 {
        // SAFETY: `2 * half <= width` lanes are there.
        unsafe { merge(monoid, dtype, parts, parts.skip(&components, half), half) };
        half /= 2;
    }
}

/// Makes finished accumulators presentable: the position of nothing is 0.
///
/// # Safety
/// `parts` holds `lanes` lanes.
pub(super) unsafe fn finish(monoid: Monoid, parts: Parts, lanes: usize) {
    if is_arg(monoid) {
        // SAFETY: the caller's promise.
        for at in unsafe { lanes_mut::<u32>(parts.0[1], lanes) } {
            if *at == NOWHERE {
                *at = 0;
            }
        }
    }
}

/// Folds of one component, where an element is an accumulator.
///
/// # Safety
/// As [`accumulate`].
#[inline(always)]
unsafe fn fold_simple(monoid: Monoid, dtype: DType, into: *mut u8, from: *const u8, lanes: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match monoid {
            Monoid::Any => zip::<u8>(into, from, lanes, |a, b| a | b),
            Monoid::All => zip::<u8>(into, from, lanes, |a, b| a & b),
            _ => by_number!(dtype, T => match monoid {
                Monoid::Sum => zip::<T>(into, from, lanes, T::plus),
                Monoid::Prod => zip::<T>(into, from, lanes, T::times),
                Monoid::MinInclude => zip::<T>(into, from, lanes, T::min_include),
                Monoid::MinOmit => zip::<T>(into, from, lanes, T::min_omit),
                Monoid::MaxInclude => zip::<T>(into, from, lanes, T::max_include),
                Monoid::MaxOmit => zip::<T>(into, from, lanes, T::max_omit),
                other => panic!("IR-7: {other:?} has several components"),
            }),
        }
    }
}

#[inline(always)]
unsafe fn zip<T: Copy>(into: *mut u8, from: *const u8, lanes: usize, f: impl Fn(T, T) -> T) {
    // SAFETY: the caller's promise.
    let (into, from) = unsafe { (lanes_mut::<T>(into, lanes), lanes_of::<T>(from, lanes)) };
    for (a, &b) in into.iter_mut().zip(from) {
        *a = f(*a, b);
    }
}

/// A running fold of a line's block, in place of a copy of it: `values[i]` becomes the fold of `carry` and
/// everything up to `i` (from `i` on, if `reverse`). Returns the carry for the next block.
///
/// # Safety
/// `values` and `carry` point to `lanes` and one number of `dtype`.
pub(super) unsafe fn running(
    monoid: Monoid,
    dtype: DType,
    values: *mut u8,
    carry: *mut u8,
    lanes: usize,
    reverse: bool,
) {
    // SAFETY: the caller's promise.
    unsafe {
        by_number!(dtype, T => {
            let values = lanes_mut::<T>(values, lanes);
            let carry = &mut *carry.cast::<T>();
            match monoid {
                // Summed apart from the carry, so that a long line keeps its small addends.
                Monoid::Sum if dtype.is_float() => {
                    let mut local = T::SUM_NEUTRAL;
                    walk(values, reverse, |x| { local = local.plus(*x); *x = local; });
                    let before = *carry;
                    for x in values.iter_mut() {
                        *x = before.plus(*x);
                    }
                    *carry = before.plus(local);
                }
                Monoid::Sum => walk(values, reverse, |x| { *carry = carry.plus(*x); *x = *carry; }),
                Monoid::Prod => walk(values, reverse, |x| { *carry = carry.times(*x); *x = *carry; }),
                Monoid::MinInclude => walk(values, reverse, |x| { *carry = carry.min_include(*x); *x = *carry; }),
                Monoid::MinOmit => walk(values, reverse, |x| { *carry = carry.min_omit(*x); *x = *carry; }),
                Monoid::MaxInclude => walk(values, reverse, |x| { *carry = carry.max_include(*x); *x = *carry; }),
                Monoid::MaxOmit => walk(values, reverse, |x| { *carry = carry.max_omit(*x); *x = *carry; }),
                other => panic!("IR-5: there is no running {other:?}"),
            }
        })
    }
}

fn walk<T>(values: &mut [T], reverse: bool, mut f: impl FnMut(&mut T)) {
    if reverse {
        values.iter_mut().rev().for_each(&mut f);
    } else {
        values.iter_mut().for_each(&mut f);
    }
}

#[inline(always)]
unsafe fn welford<T: Float>(parts: Parts, values: &[T], on: impl Fn(usize) -> bool) {
    // SAFETY: the caller's promise.
    let [count, mean, squares] = unsafe { parts.0.map(|at| lanes_mut::<T>(at, values.len())) };
    for (lane, &x) in values.iter().enumerate() {
        if on(lane) {
            let n = count[lane] + T::ONE;
            let off = x - mean[lane];
            let at = mean[lane] + off / n;
            count[lane] = n;
            mean[lane] = at;
            squares[lane] = squares[lane] + off * (x - at);
        }
    }
}

/// Chan, Golub, LeVeque: "Updating formulae and a pairwise algorithm for computing sample variances" (1979).
#[inline(always)]
fn merge_welford<T: Float>(a: [T; 3], b: [T; 3]) -> [T; 3] {
    if b[0] == T::ZERO {
        return a;
    }
    if a[0] == T::ZERO {
        return b;
    }
    let n = a[0] + b[0];
    let off = b[1] - a[1];
    let share = b[0] / n;
    [n, a[1] + off * share, a[2] + b[2] + off * off * a[0] * share]
}

/// Sums of squares as (greatest, sum relative to its square). NaN wins over infinity.
#[inline(always)]
fn merge_squares<T: Float>(a: (T, T), b: (T, T)) -> (T, T) {
    let nothing = |s: T| s == T::ZERO;
    if a.0.is_nan() || nothing(b.0) {
        return a;
    }
    if b.0.is_nan() || nothing(a.0) {
        return b;
    }
    if a.0 == T::INFINITE || b.0 == T::INFINITE {
        return (T::INFINITE, T::ONE);
    }
    let (large, small) = if a.0 >= b.0 { (a, b) } else { (b, a) };
    let ratio = small.0 / large.0;
    (large.0, large.1 + small.1 * ratio * ratio)
}

#[inline(always)]
unsafe fn merge_arg<T: Number>(monoid: Monoid, into: Parts, values: &[T], positions: &[u32], lanes: usize) {
    // SAFETY: the caller's promise.
    let (best, at) = unsafe { (lanes_mut::<T>(into.0[0], lanes), lanes_mut::<u32>(into.0[1], lanes)) };
    let least = matches!(monoid, Monoid::ArgMinOmit | Monoid::ArgMinInclude);
    let include = matches!(monoid, Monoid::ArgMinInclude | Monoid::ArgMaxInclude);
    for lane in 0..lanes {
        let (x, p) = (values[lane], positions[lane]);
        let (y, q) = (best[lane], at[lane]);
        let earlier = p < q;
        let better = if p == NOWHERE {
            false
        } else if q == NOWHERE {
            true
        } else if x.is_nan_number() || y.is_nan_number() {
            if x.is_nan_number() && y.is_nan_number() { earlier } else { x.is_nan_number() == include }
        } else if x == y {
            earlier
        } else {
            (x < y) == least
        };
        if better {
            best[lane] = x;
            at[lane] = p;
        }
    }
}
