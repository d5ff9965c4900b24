//! The folds of the host evaluator: lane by lane, over typed accumulators in memory.
//!
//! In: accumulators (one array for each component) and blocks of arguments. Out: accumulators that include these
//! arguments. To fold the lanes of one block together, the upper half of the lanes is merged into the lower half, again
//! and again.
//!
//! A lane adds up few elements serially (`reduce.rs`), or its accumulators have more digits than the elements: squares
//! of f32 are added in f64, and so are moments (`moments.rs`). Running folds are in `running.rs`.
//!
//! Must hold:
//! - EVAL-3: merging with an accumulator that was only initialised changes nothing, so unused lanes do not change a
//!   result.
//! - EVAL-5: accumulators are open while elements are folded into them, and closed (by `moments::close`) before they
//!   are merged.

use super::moments;
use super::number::Number;
use crate::graph::DType;
use crate::graph::semantics::exponential;
use crate::kernels::ir::{Monoid, SquareLimits};
use smallvec::SmallVec;

/// The accumulators of one fold: an array for each component.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts(pub [*mut u8; 4]);

/// The dtypes of a fold's accumulators. After `finish`, they hold the components that the IR names.
pub(super) fn components(monoid: Monoid, dtype: DType) -> SmallVec<[DType; 4]> {
    match monoid {
        Monoid::Moments | Monoid::MomentsWhere => SmallVec::from_slice(&[DType::F64; 4]),
        Monoid::ExpSum => SmallVec::from_slice(&[DType::F64; 2]),
        // In f64 no square of an f32 overflows or vanishes, so one sum is enough. The other two components are not used
        // before `finish`.
        Monoid::Squares if dtype == DType::F32 => SmallVec::from_slice(&[DType::F64, DType::F32, DType::F32]),
        _ => monoid.components(dtype),
    }
}

impl Parts {
    /// The same accumulators from lane `lanes` on.
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

/// The position in an accumulator that has no element yet.
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
            // A bool is a byte of 0 or 1. The folds of bytes that are used for bools give 0 or 1, too.
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
pub(super) use {by_float, by_number};

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
            Monoid::Moments | Monoid::MomentsWhere | Monoid::Squares => {
                for (at, dtype) in parts.0.iter().zip(components(monoid, dtype)) {
                    std::ptr::write_bytes(*at, 0, lanes * dtype.bytes());
                }
            }
            Monoid::ExpSum => {
                lanes_mut::<f64>(parts.0[0], lanes).fill(f64::NEG_INFINITY);
                lanes_mut::<f64>(parts.0[1], lanes).fill(0.0);
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

fn is_arg(monoid: Monoid) -> bool {
    matches!(monoid, Monoid::ArgMinOmit | Monoid::ArgMaxOmit | Monoid::ArgMinInclude | Monoid::ArgMaxInclude)
}

/// # Safety
/// `at` points to `lanes` numbers, which no other reference accesses while the slice is alive.
pub(super) unsafe fn lanes_mut<'a, T>(at: *mut u8, lanes: usize) -> &'a mut [T] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(at.cast(), lanes) }
}

/// # Safety
/// `at` points to `lanes` numbers, which nothing writes while the slice is alive.
pub(super) unsafe fn lanes_of<'a, T>(at: *const u8, lanes: usize) -> &'a [T] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(at.cast(), lanes) }
}

/// Folds one element a lane into the accumulators.
///
/// # Safety
/// `parts` and `args` hold `lanes` lanes: the first argument of `dtype`, the second u32 (`Arg*`) or bool
/// (`MomentsWhere`).
#[multiversion::multiversion(targets("x86_64+avx2+bmi2"))]
pub(super) unsafe fn accumulate(monoid: Monoid, dtype: DType, parts: Parts, args: [*const u8; 2], lanes: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match monoid {
            Monoid::Moments => by_float!(dtype, T => moments::fold(parts, lanes_of::<T>(args[0], lanes))),
            Monoid::MomentsWhere => {
                let on = lanes_of::<u8>(args[1], lanes);
                by_float!(dtype, T => moments::fold_where(parts, lanes_of::<T>(args[0], lanes), on));
            }
            Monoid::Squares if dtype == DType::F32 => {
                let (sum, values) = (lanes_mut::<f64>(parts.0[0], lanes), lanes_of::<f32>(args[0], lanes));
                for (sum, &x) in sum.iter_mut().zip(values) {
                    *sum += x as f64 * x as f64;
                }
            }
            Monoid::Squares => squares(parts, lanes_of::<f64>(args[0], lanes)),
            Monoid::ExpSum => {
                let [greatest, sum] = [0, 1].map(|part| lanes_mut::<f64>(parts.0[part], lanes));
                by_float!(dtype, T => exp_sums(greatest, sum, lanes_of::<T>(args[0], lanes)));
            }
            _ if is_arg(monoid) => by_number!(dtype, T => {
                let at = (lanes_of::<T>(args[0], lanes), lanes_of::<u32>(args[1], lanes));
                merge_arg(monoid, parts, at.0, at.1, lanes);
            }),
            _ => fold_simple(monoid, dtype, parts.0[0], args[0], lanes),
        }
    }
}

/// Whether [`accumulate_rows`] keeps accumulators in registers while it folds several rows.
pub(super) fn takes_rows(monoid: Monoid, dtype: DType) -> bool {
    dtype.is_float() && matches!(monoid, Monoid::Sum | Monoid::Moments)
}

/// As [`accumulate`] for one row after the other, for folds that [`takes_rows`] accepts.
///
/// # Safety
/// As [`accumulate`], for each row.
pub(super) unsafe fn accumulate_rows(monoid: Monoid, dtype: DType, parts: Parts, rows: &[*const u8], lanes: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match <[*const u8; moments::ROWS]>::try_from(rows) {
            Ok(rows) if monoid == Monoid::Moments => moments::fold_rows(dtype, parts, rows, lanes),
            Ok(rows) => by_float!(dtype, T => add_rows::<T>(parts, rows, lanes)),
            Err(_) => rows.iter().for_each(|&row| accumulate(monoid, dtype, parts, [row, row], lanes)),
        }
    }
}

/// Adds rows to sums, one after the other.
///
/// # Safety
/// As [`accumulate`], for each row.
#[multiversion::multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+bmi2"))]
unsafe fn add_rows<T: Number>(parts: Parts, rows: [*const u8; moments::ROWS], lanes: usize) {
    // SAFETY: the caller's promise.
    let (sums, rows) = unsafe { (lanes_mut::<T>(parts.0[0], lanes), rows.map(|row| lanes_of::<T>(row, lanes))) };
    for (lane, sum) in sums.iter_mut().enumerate() {
        let mut total = *sum;
        for row in rows {
            total = total.plus(row[lane]);
        }
        *sum = total;
    }
}

/// Folds one number into each lane's greatest value and its sum of exponentials relative to that.
#[inline(always)]
fn exp_sums<T: Copy + Into<f64>>(greatest: &mut [f64], sum: &mut [f64], values: &[T]) {
    for ((greatest, sum), &x) in greatest.iter_mut().zip(sum).zip(values) {
        [*greatest, *sum] = exp_sum([*greatest, *sum], [x.into(), 1.0]);
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
            Monoid::Moments | Monoid::MomentsWhere => {
                let [count, base, off, squares] = into.0.map(|at| lanes_mut::<f64>(at, lanes));
                let [counts, bases, offs, others] = from.0.map(|at| lanes_of::<f64>(at, lanes));
                for lane in 0..lanes {
                    let a = [count[lane], base[lane], off[lane], squares[lane]];
                    let b = [counts[lane], bases[lane], offs[lane], others[lane]];
                    [count[lane], base[lane], off[lane], squares[lane]] = moments::merge(a, b);
                }
            }
            Monoid::Squares if dtype == DType::F32 => zip::<f64>(into.0[0], from.0[0], lanes, f64::plus),
            Monoid::Squares => {
                for (into, from) in into.0.iter().zip(from.0).take(3) {
                    zip::<f64>(*into, from, lanes, f64::plus);
                }
            }
            Monoid::ExpSum => {
                let [greatest, sum] = [0, 1].map(|part| lanes_mut::<f64>(into.0[part], lanes));
                let [greatest_later, sums] = [0, 1].map(|part| lanes_of::<f64>(from.0[part], lanes));
                for lane in 0..lanes {
                    let later = [greatest_later[lane], sums[lane]];
                    [greatest[lane], sum[lane]] = exp_sum([greatest[lane], sum[lane]], later);
                }
            }
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
    let components = components(monoid, dtype);
    let mut half = width / 2;
    while half > 0 {
        // SAFETY: `2 * half <= width` lanes are there.
        unsafe { merge(monoid, dtype, parts, parts.skip(&components, half), half) };
        half /= 2;
    }
}

/// Turns merged accumulators into the components that the IR names, in place: an accumulator without elements gets
/// position 0, and f64 is rounded to the dtype.
///
/// # Safety
/// `parts` holds `lanes` lanes.
pub(super) unsafe fn finish(monoid: Monoid, dtype: DType, parts: Parts, lanes: usize) {
    // SAFETY: the caller's promise. The f32 of a lane overwrites f64 of this lane or earlier ones, which were read
    // already.
    unsafe {
        match monoid {
            _ if is_arg(monoid) => {
                for at in lanes_mut::<u32>(parts.0[1], lanes) {
                    if *at == NOWHERE {
                        *at = 0;
                    }
                }
            }
            Monoid::Moments | Monoid::MomentsWhere | Monoid::ExpSum if dtype == DType::F32 => {
                for at in &parts.0[..components(monoid, dtype).len()] {
                    for lane in 0..lanes {
                        at.cast::<f32>().add(lane).write(at.cast::<f64>().add(lane).read() as f32);
                    }
                }
            }
            Monoid::Squares if dtype == DType::F32 => {
                let limits = SquareLimits::of(dtype);
                let (low, high) = (power(2 * limits.small_below), power(2 * limits.big_from));
                for lane in 0..lanes {
                    let sum = parts.0[0].cast::<f64>().add(lane).read();
                    let split = if sum >= high {
                        [0.0, 0.0, sum * power(-2 * limits.scale)]
                    } else if sum < low {
                        [sum * power(2 * limits.scale), 0.0, 0.0]
                    } else {
                        [0.0, sum, 0.0]
                    };
                    for (at, sum) in parts.0.iter().zip(split) {
                        at.cast::<f32>().add(lane).write(sum as f32);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Merges the accumulators of two sets of values: the greatest value, and the sum of `exp(value - greatest)`. A single
/// value is a set with sum 1.
#[inline(always)]
fn exp_sum([a, a_sum]: [f64; 2], [b, b_sum]: [f64; 2]) -> [f64; 2] {
    // The factor for the sum that is not relative to the greater value. If one value is NaN, the sum becomes NaN.
    let scale = exponential::exp(-(a - b).abs());
    if a == b {
        [a, a_sum + b_sum]
    } else if b > a {
        [b, a_sum * scale + b_sum]
    } else if b.is_nan() {
        [a, f64::NAN]
    } else {
        [a, a_sum + b_sum * scale]
    }
}

/// 2 to the power `exponent`.
fn power(exponent: i32) -> f64 {
    2f64.powi(exponent)
}

/// The folds of one component, whose accumulators have the elements' dtype.
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

/// Adds squares of f64 to the sums of small, middling and big ones.
#[inline(always)]
unsafe fn squares(parts: Parts, values: &[f64]) {
    let limits = SquareLimits::of(DType::F64);
    let (low, high) = (power(limits.small_below), power(limits.big_from));
    let (up, down) = (power(limits.scale), power(-limits.scale));
    // SAFETY: the caller's promise.
    let [small, middling, big] = unsafe { [0, 1, 2].map(|part| lanes_mut::<f64>(parts.0[part], values.len())) };
    for (lane, &x) in values.iter().enumerate() {
        let (is_small, is_big) = (x.abs() < low, x.abs() >= high);
        let square = |x: f64, on: bool| if on { x * x } else { 0.0 };
        small[lane] += square(x * up, is_small);
        middling[lane] += square(x, !(is_small | is_big));
        big[lane] += square(x * down, is_big);
    }
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
