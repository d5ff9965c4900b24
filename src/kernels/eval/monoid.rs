//! The folds: lane-wise, over typed accumulators in memory.
//!
//! In: accumulators (one array a component) and blocks of arguments. Out: the accumulators, one step further.
//! A fold over the lanes of one block is made of merges of halves.
//!
//! What a lane adds up serially is short (`reduce.rs`), or is kept in more digits than the elements have: moments,
//! squares of f32 and running sums of f32 in f64, running sums of f64 with what each addition lost.
//!
//! Must hold:
//! - EVAL-3: merging with an accumulator that was only initialised changes nothing, so unused lanes do not count.
//! - EVAL-5: accumulators are open while elements are folded into them, and closed (by `close`) before they are merged.

use super::number::Number;
use crate::graph::DType;
use crate::kernels::ir::{Monoid, SquareLimits};
use smallvec::SmallVec;

/// The accumulators of one fold: an array a component.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts(pub [*mut u8; 4]);

/// The dtypes of a fold's accumulators. After `finish`, they hold the components that the IR names.
pub(super) fn components(monoid: Monoid, dtype: DType) -> SmallVec<[DType; 4]> {
    match monoid {
        Monoid::Moments | Monoid::MomentsWhere => SmallVec::from_slice(&[DType::F64; 4]),
        // One sum, which no square of an f32 leaves; room for the other two components.
        Monoid::Squares if dtype == DType::F32 => SmallVec::from_slice(&[DType::F64, DType::F32, DType::F32]),
        _ => monoid.components(dtype),
    }
}

/// The dtypes of a scan's carry.
pub(super) fn running_components(monoid: Monoid, dtype: DType) -> SmallVec<[DType; 4]> {
    match (monoid, dtype) {
        (Monoid::Sum, DType::F32) => SmallVec::from_slice(&[DType::F64]),
        // The sum, and what its additions lost.
        (Monoid::Sum, DType::F64) => SmallVec::from_slice(&[DType::F64; 2]),
        _ => SmallVec::from_slice(&[dtype]),
    }
}

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
            Monoid::Moments | Monoid::MomentsWhere | Monoid::Squares => {
                for (at, dtype) in parts.0.iter().zip(components(monoid, dtype)) {
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

/// As [`init`], for carries: a sum of nothing has no sign of its own, so that the first sum is the first element.
///
/// # Safety
/// `parts` has arrays of `lanes` components ([`running_components`]), for writing.
pub(super) unsafe fn init_running(monoid: Monoid, dtype: DType, parts: Parts, lanes: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match (monoid, dtype.is_float()) {
            (Monoid::Sum, true) => {
                lanes_mut::<f64>(parts.0[0], lanes).fill(-0.0);
                if dtype == DType::F64 {
                    lanes_mut::<f64>(parts.0[1], lanes).fill(-0.0);
                }
            }
            _ => init(monoid, dtype, parts, lanes),
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
/// (`MomentsWhere`).
#[multiversion::multiversion(targets("x86_64+avx2+bmi2"))]
pub(super) unsafe fn accumulate(monoid: Monoid, dtype: DType, parts: Parts, args: [*const u8; 2], lanes: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match monoid {
            Monoid::Moments => by_float!(dtype, T => moments(parts, lanes_of::<T>(args[0], lanes))),
            Monoid::MomentsWhere => {
                let on = lanes_of::<u8>(args[1], lanes);
                by_float!(dtype, T => moments_where(parts, lanes_of::<T>(args[0], lanes), on));
            }
            Monoid::Squares if dtype == DType::F32 => {
                let (sum, values) = (lanes_mut::<f64>(parts.0[0], lanes), lanes_of::<f32>(args[0], lanes));
                for (sum, &x) in sum.iter_mut().zip(values) {
                    *sum += x as f64 * x as f64;
                }
            }
            Monoid::Squares => squares(parts, lanes_of::<f64>(args[0], lanes)),
            _ if is_arg(monoid) => by_number!(dtype, T => {
                let at = (lanes_of::<T>(args[0], lanes), lanes_of::<u32>(args[1], lanes));
                merge_arg(monoid, parts, at.0, at.1, lanes);
            }),
            _ => fold_simple(monoid, dtype, parts.0[0], args[0], lanes),
        }
    }
}

/// Lanes in which moments of one line are kept: few, so that they stay in a core's first cache. A block is eight rows.
const ALONG: usize = 128;

/// Whether [`accumulate_along`] leaves closed accumulators: in f64 an outlier that is taken for the base of many elements
/// would cost digits.
pub(super) fn closes_blocks(monoid: Monoid, dtype: DType) -> bool {
    matches!(monoid, Monoid::Moments | Monoid::MomentsWhere) && dtype == DType::F64
}

/// Folds a block of one output's elements into its accumulators, which are merged later.
///
/// # Safety
/// As [`accumulate`]; `parts` has room for 256 lanes, and as many as [`init`] was told, rounded up to a power of two,
/// count.
pub(super) unsafe fn accumulate_along(monoid: Monoid, dtype: DType, parts: Parts, args: [*const u8; 2], lanes: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if !matches!(monoid, Monoid::Moments | Monoid::MomentsWhere) {
            return accumulate(monoid, dtype, parts, args, lanes);
        }
        let second = if monoid == Monoid::MomentsWhere { DType::Bool } else { dtype };
        let closes = closes_blocks(monoid, dtype);
        let open = if closes { parts.skip(&components(monoid, dtype), ALONG) } else { parts };
        if closes {
            init(monoid, dtype, open, ALONG);
        }
        for start in (0..lanes).step_by(ALONG) {
            let row = [args[0].add(start * dtype.bytes()), args[1].add(start * second.bytes())];
            accumulate(monoid, dtype, open, row, ALONG.min(lanes - start));
        }
        if closes {
            close(monoid, open, ALONG);
            merge(monoid, dtype, parts, open, ALONG);
            init(monoid, dtype, open, ALONG);
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
            Monoid::Moments | Monoid::MomentsWhere => {
                let [count, base, off, squares] = into.0.map(|at| lanes_mut::<f64>(at, lanes));
                let [counts, bases, offs, others] = from.0.map(|at| lanes_of::<f64>(at, lanes));
                for lane in 0..lanes {
                    let a = [count[lane], base[lane], off[lane], squares[lane]];
                    let b = [counts[lane], bases[lane], offs[lane], others[lane]];
                    [count[lane], base[lane], off[lane], squares[lane]] = merge_moments(a, b);
                }
            }
            Monoid::Squares if dtype == DType::F32 => zip::<f64>(into.0[0], from.0[0], lanes, f64::plus),
            Monoid::Squares => {
                for (into, from) in into.0.iter().zip(from.0).take(3) {
                    zip::<f64>(*into, from, lanes, f64::plus);
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

/// Closes accumulators that elements were folded into (EVAL-5): of moments, sums become means.
///
/// # Safety
/// `parts` holds `lanes` lanes.
#[multiversion::multiversion(targets("x86_64+avx2+bmi2"))]
pub(super) unsafe fn close(monoid: Monoid, parts: Parts, lanes: usize) {
    if !matches!(monoid, Monoid::Moments | Monoid::MomentsWhere) {
        return;
    }
    // SAFETY: the caller's promise.
    let [count, _, off, squares] = unsafe { parts.0.map(|at| lanes_mut::<f64>(at, lanes)) };
    for ((count, off), squares) in count.iter().zip(off).zip(squares) {
        let mean = *off / if *count == 0.0 { 1.0 } else { *count };
        let rest = *squares - *off * mean;
        *squares = if rest < 0.0 { 0.0 } else { rest };
        *off = mean;
    }
}

/// Makes merged accumulators the components that the IR names: the position of nothing is 0; what was kept in f64 is
/// rounded to the dtype, in place.
///
/// # Safety
/// `parts` holds `lanes` lanes.
pub(super) unsafe fn finish(monoid: Monoid, dtype: DType, parts: Parts, lanes: usize) {
    // SAFETY: the caller's promise. The f32 of a lane lies in the memory of f64 that were read already.
    unsafe {
        match monoid {
            _ if is_arg(monoid) => {
                for at in lanes_mut::<u32>(parts.0[1], lanes) {
                    if *at == NOWHERE {
                        *at = 0;
                    }
                }
            }
            Monoid::Moments | Monoid::MomentsWhere if dtype == DType::F32 => {
                for at in parts.0 {
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

/// 2 to this power.
fn power(exponent: i32) -> f64 {
    2f64.powi(exponent)
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

/// A running sum of floats: `out[i]` becomes the sum of the carry in `parts` and everything up to `i` (from `i` on, if
/// `reverse`) of a line's block `from`; the carry becomes that of the next block.
///
/// # Safety
/// `from` and `out` point to `lanes` numbers of `dtype` (a float), apart from each other; `parts` is one carry.
pub(super) unsafe fn running_sum(
    dtype: DType,
    from: *const u8,
    out: *mut u8,
    parts: Parts,
    lanes: usize,
    reverse: bool,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let sum = &mut *parts.0[0].cast::<f64>();
        if dtype == DType::F32 {
            let (from, out) = (lanes_of::<f32>(from, lanes), lanes_mut::<f32>(out, lanes));
            let mut add = |(out, &x): (&mut f32, &f32)| {
                *sum += x as f64;
                *out = *sum as f32;
            };
            if reverse {
                out.iter_mut().zip(from).rev().for_each(add)
            } else {
                out.iter_mut().zip(from).for_each(&mut add)
            }
        } else {
            let (from, out) = (lanes_of::<f64>(from, lanes), lanes_mut::<f64>(out, lanes));
            let lost = &mut *parts.0[1].cast::<f64>();
            let mut add = |(out, &x): (&mut f64, &f64)| *out = add_exactly(sum, lost, x);
            if reverse {
                out.iter_mut().zip(from).rev().for_each(add)
            } else {
                out.iter_mut().zip(from).for_each(&mut add)
            }
        }
    }
}

/// As [`running_sum`] for one element each of lines side by side, whose carries are in `parts`.
///
/// # Safety
/// `from` and `out` point to `lanes` numbers of `dtype` (a float), apart from each other; `parts` has as many carries.
#[multiversion::multiversion(targets("x86_64+avx2+bmi2"))]
pub(super) unsafe fn running_sums(dtype: DType, from: *const u8, out: *mut u8, parts: Parts, lanes: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        let sums = lanes_mut::<f64>(parts.0[0], lanes);
        if dtype == DType::F32 {
            let (from, out) = (lanes_of::<f32>(from, lanes), lanes_mut::<f32>(out, lanes));
            for ((out, &x), sum) in out.iter_mut().zip(from).zip(sums) {
                *sum += x as f64;
                *out = *sum as f32;
            }
        } else {
            let (from, out) = (lanes_of::<f64>(from, lanes), lanes_mut::<f64>(out, lanes));
            let lost = lanes_mut::<f64>(parts.0[1], lanes);
            for (((out, &x), sum), lost) in out.iter_mut().zip(from).zip(sums).zip(lost) {
                *out = add_exactly(sum, lost, x);
            }
        }
    }
}

/// Adds to a sum and to what its additions lost (Knuth's exact error of an addition). Returns the sum of both.
#[inline(always)]
fn add_exactly(sum: &mut f64, lost: &mut f64, x: f64) -> f64 {
    let before = *sum;
    let next = before + x;
    let added = next - before;
    *lost += (before - (next - added)) + (x - added);
    *sum = next;
    let both = next + *lost;
    // Beyond the range nothing is known to be lost; where nothing is lost, a zero keeps its sign.
    if both.is_nan() || *lost == 0.0 { next } else { both }
}

/// A running fold of a line's block (not of floats' sums: [`running_sum`]), in place of a copy of it: `values[i]` becomes the fold of `carry` and
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

/// Folds values into open moments: (count, base, sum of `x - base`, sum of its squares), in f64. The base is a lane's
/// first value.
#[inline(always)]
unsafe fn moments<T: Copy + Into<f64>>(parts: Parts, values: &[T]) {
    // SAFETY: the caller's promise.
    let [count, base, sum, squares] = unsafe { parts.0.map(|at| lanes_mut::<f64>(at, values.len())) };
    // A row has as many lanes as the one before it, or fewer: all of these are empty, or none is.
    if count.first() == Some(&0.0) {
        count.fill(1.0);
        base.iter_mut().zip(values).for_each(|(base, &x)| *base = x.into());
        // 0 without a sign, but NaN of infinity and NaN.
        sum.iter_mut().zip(&*base).for_each(|(sum, &x)| *sum = x * 0.0 + 0.0);
        squares.copy_from_slice(sum);
        return;
    }
    count.iter_mut().for_each(|count| *count += 1.0);
    for (((sum, squares), &base), &x) in sum.iter_mut().zip(squares).zip(&*base).zip(values) {
        let off = x.into() - base;
        *sum += off;
        *squares += off * off;
    }
}

/// As [`moments`], of the values that are on.
#[inline(always)]
unsafe fn moments_where<T: Copy + Into<f64>>(parts: Parts, values: &[T], on: &[u8]) {
    // SAFETY: the caller's promise.
    let [count, base, sum, squares] = unsafe { parts.0.map(|at| lanes_mut::<f64>(at, values.len())) };
    for (lane, &x) in values.iter().enumerate() {
        let (x, on): (f64, bool) = (x.into(), on[lane] != 0);
        base[lane] = if on && count[lane] == 0.0 { x } else { base[lane] };
        let off = if on { x - base[lane] } else { 0.0 };
        count[lane] += on as u8 as f64;
        sum[lane] += off;
        squares[lane] += off * off;
    }
}

/// Chan, Golub, LeVeque: "Updating formulae and a pairwise algorithm for computing sample variances" (1979). The
/// result's base is the one that is nearer to its mean.
#[inline(always)]
fn merge_moments(a: [f64; 4], b: [f64; 4]) -> [f64; 4] {
    // Written without branches, so that it is computed for several lanes at once.
    let (first, none) = (a[0] == 0.0, b[0] == 0.0);
    let n = a[0] + b[0];
    let apart = (b[1] - a[1]) + (b[2] - a[2]);
    let share = b[0] / if n == 0.0 { 1.0 } else { n };
    let nearer = b[2].abs() < a[2].abs();
    let base = if nearer { b[1] } else { a[1] };
    let off = if nearer { b[2] - apart * (1.0 - share) } else { a[2] + apart * share };
    let squares = a[3] + b[3] + apart * apart * (a[0] * share);
    let pick = |both: f64, part: usize| {
        let later = if first { b[part] } else { both };
        if none { a[part] } else { later }
    };
    [n, pick(base, 1), pick(off, 2), pick(squares, 3)]
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
