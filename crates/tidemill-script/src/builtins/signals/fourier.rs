//! Fourier transforms along a dimension, on the host.
//!
//! In: real or complex arrays. Out: complex ones, double or single. Must hold: the transform of a real lane is exactly
//! conjugate symmetric, and the inverse of an exactly conjugate symmetric lane is exactly real.

use crate::builtins::args::{self, number};
use crate::builtins::reduce::lanes::Lanes;
use crate::builtins::{Builtin, Outcome, row};
use crate::env::Env;
use crate::error::{Flow, fail};
use crate::value::{Data, Dims, Tensor, Value};
use crate::vm::Interp;
use num_complex::{Complex32, Complex64};
use parking_lot::Mutex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::{Fft, FftPlanner};
use std::sync::Arc;

/// The functions.
pub static ROWS: &[Builtin] = &[
    row("fft", 1, 3, 1, "fft (x, n, dim)", "The discrete Fourier transform.", |i, a, _| along("fft", i, a, false)),
    row("ifft", 1, 3, 1, "ifft (x, n, dim)", "The inverse transform.", |i, a, _| along("ifft", i, a, true)),
    row("fft2", 1, 3, 1, "fft2 (x, m, n)", "The transform over two dimensions.", |i, a, _| plane("fft2", i, a, false)),
    row("ifft2", 1, 3, 1, "ifft2 (x, m, n)", "The inverse over two dimensions.", |i, a, _| plane("ifft2", i, a, true)),
    row("fftn", 1, 1, 1, "fftn (x)", "The transform over all dimensions.", |i, a, _| all("fftn", i, a, false)),
    row("ifftn", 1, 1, 1, "ifftn (x)", "The inverse over all dimensions.", |i, a, _| all("ifftn", i, a, true)),
];

/// The signal to transform, and whether it is single. Sums are computed in doubles in any case.
struct Signal {
    tensor: Arc<Tensor>,
    single: bool,
}

impl Signal {
    fn read(who: &str, env: &Env, value: &Value) -> Flow<Signal> {
        let tensor = env.host(value)?;
        if value.is_char() || !value.class().is_numeric() && !matches!(*tensor.data, Data::Bool(_)) {
            return fail!("{who}: invalid argument");
        }
        let single = matches!(*tensor.data, Data::F32(_) | Data::C32(_));
        Ok(Signal { tensor, single })
    }

    fn dims(&self) -> &Dims {
        &self.tensor.dims
    }

    fn value(self) -> Value {
        if !self.single {
            return Value::tensor(Arc::unwrap_or_clone(self.tensor));
        }
        let data = Data::C32(singles(&self.tensor.data));
        Value::tensor(Tensor::new(self.tensor.dims.clone(), data))
    }

    /// Transforms along dimension `d` (from 0) with `n` elements: lanes are cut, or padded with zeros.
    fn transform(self, d: usize, n: usize, inverse: bool) -> Signal {
        let dims = self.dims().with(d, n);
        let (from, to) = (Lanes::new(self.dims(), d), Lanes::new(&dims, d));
        let data = &self.tensor.data;
        let mut values = vec![Complex64::default(); dims.elements()];
        if !values.is_empty() {
            let mut transform = Transform::new(n, inverse);
            // Lanes that lie one after another are transformed in place.
            let in_place = to.stride == 1;
            let mut apart = vec![Complex64::default(); if in_place { 0 } else { n }];
            for lane in 0..to.count {
                let start = to.start(lane);
                let elements = if in_place { &mut values[start..start + n] } else { &mut apart[..] };
                match &**data {
                    Data::F64(v) if transform.is_long() => {
                        transform.run_real(elements, from.positions(lane).map(|at| v[at]));
                    }
                    data => {
                        fill(elements, data, from.positions(lane));
                        transform.run(elements);
                    }
                }
                if !in_place {
                    to.positions(lane).zip(&apart).for_each(|(at, &value)| values[at] = value);
                }
            }
        }
        Signal { tensor: Arc::new(Tensor::new(dims, Data::C64(values))), single: self.single }
    }
}

/// Converts data to complex numbers of single precision.
fn singles(data: &Data) -> Vec<Complex32> {
    let narrow = |z: Complex64| Complex32::new(z.re as f32, z.im as f32);
    (0..data.len()).map(|i| narrow(data.c64_at(i))).collect()
}

/// Sets a lane to the elements at these positions, and zeros behind them.
fn fill(lane: &mut [Complex64], data: &Data, positions: impl ExactSizeIterator<Item = usize>) {
    let n = positions.len().min(lane.len());
    let slots = lane[..n].iter_mut().zip(positions);
    match data {
        Data::F64(v) => slots.for_each(|(slot, at)| *slot = Complex64::new(v[at], 0.0)),
        Data::C64(v) => slots.for_each(|(slot, at)| *slot = v[at]),
        data => slots.for_each(|(slot, at)| *slot = data.c64_at(at)),
    }
    lane[n..].fill(Complex64::default());
}

/// Real lanes of at least this length are transformed as real, which takes half of the time.
const LONG: usize = 256;

/// Transforms lanes of one length.
struct Transform {
    n: usize,
    inverse: bool,
    /// Memory for the computation.
    room: Room,
}

impl Transform {
    fn new(n: usize, inverse: bool) -> Transform {
        Transform { n, inverse, room: Room::take() }
    }

    fn is_long(&self) -> bool {
        self.n >= LONG
    }

    /// Transforms a lane of complex numbers in place.
    fn run(&mut self, lane: &mut [Complex64]) {
        let real = lane.iter().all(|z| z.im == 0.0);
        if real && self.is_long() {
            // The real parts move to the front of the room.
            let (numbers, _) = self.room.of_numbers(lane.len(), 0);
            numbers.iter_mut().zip(&*lane).for_each(|(x, z)| *x = z.re);
            return self.run_room(lane);
        }
        let symmetric = is_symmetric(lane);
        if symmetric && self.is_long() {
            return self.run_symmetric(lane);
        }
        let plan = COMPLEX.plan(self.n, self.inverse, |n| match self.inverse {
            true => FftPlanner::new().plan_fft_inverse(n),
            false => FftPlanner::new().plan_fft_forward(n),
        });
        plan.process_with_scratch(lane, self.room.of(plan.get_inplace_scratch_len()));
        self.scale(lane);
        if real {
            make_symmetric(lane);
        }
        if symmetric {
            lane.iter_mut().for_each(|z| z.im = 0.0);
        }
    }

    /// Transforms a long lane of real numbers, with zeros behind them.
    fn run_real(&mut self, lane: &mut [Complex64], from: impl ExactSizeIterator<Item = f64>) {
        let given = from.len().min(self.n);
        let (numbers, _) = self.room.of_numbers(self.n, 0);
        numbers.iter_mut().zip(from).for_each(|(x, y)| *x = y);
        numbers[given..].fill(0.0);
        self.run_room(lane);
    }

    /// Transforms the real numbers at the front of the room.
    fn run_room(&mut self, lane: &mut [Complex64]) {
        let n = self.n;
        let plan = REAL.plan(n, false, |n| RealFftPlanner::new().plan_fft_forward(n));
        let (numbers, scratch) = self.room.of_numbers(n, plan.get_scratch_len());
        let symmetric = (1..=n / 2).all(|k| numbers[k] == numbers[n - k]);
        let half = &mut lane[..n / 2 + 1];
        let done = plan.process_with_scratch(numbers, half, scratch);
        debug_assert!(done.is_ok(), "the lengths fit");
        if self.inverse {
            // The result is the conjugate of the other direction's.
            half.iter_mut().for_each(|z| *z = z.conj());
        }
        if symmetric {
            half.iter_mut().for_each(|z| z.im = 0.0);
        }
        self.scale(half);
        make_symmetric(lane);
    }

    /// Transforms a long lane whose transform is real.
    fn run_symmetric(&mut self, lane: &mut [Complex64]) {
        let n = self.n;
        let plan = SYMMETRIC.plan(n, true, |n| RealFftPlanner::new().plan_fft_inverse(n));
        let (numbers, scratch) = self.room.of_numbers(n, plan.get_scratch_len());
        let half = &mut lane[..n / 2 + 1];
        if !self.inverse {
            half.iter_mut().for_each(|z| *z = z.conj());
        }
        // For an even number of elements, the middle one is real.
        half[0].im = 0.0;
        if n.is_multiple_of(2) {
            half[n / 2].im = 0.0;
        }
        let done = plan.process_with_scratch(half, numbers, scratch);
        debug_assert!(done.is_ok(), "the lengths fit, and what has to be real is");
        lane.iter_mut().zip(&*numbers).for_each(|(z, &x)| *z = Complex64::new(x, 0.0));
        self.scale(lane);
    }

    fn scale(&self, lane: &mut [Complex64]) {
        if self.inverse {
            let n = self.n as f64;
            lane.iter_mut().for_each(|z| *z /= n);
        }
    }
}

/// Memory in which transforms compute. It is kept, since the system takes as long to provide new pages as the transform
/// takes.
struct Room(Vec<Complex64>);

/// The most elements that are kept for the next transform.
const ROOM_MAX: usize = 1 << 21;
static KEPT_ROOM: Mutex<Vec<Complex64>> = Mutex::new(Vec::new());

impl Room {
    fn take() -> Room {
        Room(std::mem::take(&mut KEPT_ROOM.lock()))
    }

    /// Returns this many elements. The first ones keep their values, and the others have any values.
    fn of(&mut self, len: usize) -> &mut [Complex64] {
        if self.0.len() < len {
            self.0.resize(len, Complex64::default());
        }
        &mut self.0[..len]
    }

    /// Returns this many real numbers at the front, and this many elements behind them.
    fn of_numbers(&mut self, n: usize, scratch: usize) -> (&mut [f64], &mut [Complex64]) {
        let front = n.div_ceil(2);
        let (numbers, scratch) = self.of(front + scratch).split_at_mut(front);
        (&mut bytemuck::cast_slice_mut(numbers)[..n], scratch)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if self.0.len() <= ROOM_MAX {
            let mut kept = KEPT_ROOM.lock();
            if kept.len() < self.0.len() {
                std::mem::swap(&mut *kept, &mut self.0);
            }
        }
    }
}

/// The plans of one kind, the last used first. They are kept, since making a plan takes longer than a short transform,
/// and as long as a long one.
struct Plans<P: ?Sized>(Mutex<Vec<(usize, bool, Arc<P>)>>);

/// The most elements of all plans of a kind together. They take some 32 bytes each.
const PLANNED_MAX: usize = 1 << 21;
/// The most plans of a kind that are kept.
const PLANS_MAX: usize = 8;

static COMPLEX: Plans<dyn Fft<f64>> = Plans(Mutex::new(Vec::new()));
static REAL: Plans<dyn RealToComplex<f64>> = Plans(Mutex::new(Vec::new()));
static SYMMETRIC: Plans<dyn ComplexToReal<f64>> = Plans(Mutex::new(Vec::new()));

impl<P: ?Sized> Plans<P> {
    /// Returns the plan for a transform of `n` elements.
    fn plan(&self, n: usize, inverse: bool, make: impl FnOnce(usize) -> Arc<P>) -> Arc<P> {
        let known = {
            let mut kept = self.0.lock();
            let at = kept.iter().position(|plan| (plan.0, plan.1) == (n, inverse));
            at.map(|at| {
                kept[..=at].rotate_right(1);
                kept[0].2.clone()
            })
        };
        // The plan is made outside of the lock, so that other scripts do not wait for a long one.
        known.unwrap_or_else(|| {
            let plan = make(n);
            let mut kept = self.0.lock();
            kept.insert(0, (n, inverse, plan.clone()));
            let mut elements = 0;
            let fits = kept.iter().take(PLANS_MAX).take_while(|plan| {
                elements += plan.0;
                elements <= PLANNED_MAX
            });
            let fits = fits.count();
            kept.truncate(fits);
            plan
        })
    }
}

/// Whether element k is the conjugate of element n - k.
fn is_symmetric(lane: &[Complex64]) -> bool {
    let n = lane.len();
    lane[0].im == 0.0 && (1..=n / 2).all(|k| lane[k].re == lane[n - k].re && lane[k].im == -lane[n - k].im)
}

/// Sets the second half to the conjugate of the first.
fn make_symmetric(lane: &mut [Complex64]) {
    let n = lane.len();
    lane[0].im = 0.0;
    if n.is_multiple_of(2) {
        lane[n / 2].im = 0.0;
    }
    let (first, second) = lane.split_at_mut(n / 2 + 1);
    // The middle one of an even number of elements is its own conjugate.
    let first = &first[1..n.div_ceil(2)];
    second.iter_mut().zip(first.iter().rev()).for_each(|(z, first)| *z = first.conj());
}

/// Reads an argument that gives a number of elements; `None` if it is absent or `[]`.
fn count(who: &str, env: &Env, value: Option<&Value>) -> Flow<Option<usize>> {
    let Some(value) = value.filter(|v| !v.is_empty()) else { return Ok(None) };
    let n = number(env, who, value)?;
    if n.is_nan() || n < 1.0 && n != 0.0 || n.fract() != 0.0 || value.len() != 1 {
        return fail!("{who}: number of points (N) must be greater than zero");
    }
    Ok(Some(args::extent(n)?))
}

/// Returns an error if a transform does not fit into memory.
fn check(env: &Env, dims: &Dims) -> Flow<()> {
    env.check_host(dims, size_of::<Complex64>())
}

fn along(who: &str, interp: &mut Interp, args: &[Value], inverse: bool) -> Flow<Outcome> {
    let env = &interp.env;
    env.host_all(args)?;
    let d = match args.get(2) {
        Some(value) => {
            Some(args::dim(env, value, |_| format!("{who}: DIM must be a valid dimension along which to perform FFT"))?)
        }
        None => None,
    };
    let n = count(who, env, args.get(1))?;
    let signal = Signal::read(who, env, &args[0])?;
    if *signal.dims() == Dims::zero() {
        return Ok(Value::Tensor(Arc::new(Tensor::new(Dims::zero(), Data::F64(Vec::new())))).into());
    }
    let d = d.unwrap_or_else(|| signal.dims().first_non_singleton());
    let n = n.unwrap_or_else(|| signal.dims().extent(d));
    check(env, &signal.dims().with(d, n))?;
    Ok(signal.transform(d, n, inverse).value().into())
}

fn plane(who: &str, interp: &mut Interp, args: &[Value], inverse: bool) -> Flow<Outcome> {
    let env = &interp.env;
    env.host_all(args)?;
    let signal = Signal::read(who, env, &args[0])?;
    let m = count(who, env, args.get(1))?.unwrap_or_else(|| signal.dims().rows());
    let n = count(who, env, args.get(2))?.unwrap_or_else(|| signal.dims().columns());
    check(env, &signal.dims().with(0, m))?;
    check(env, &signal.dims().with(0, m).with(1, n))?;
    Ok(signal.transform(0, m, inverse).transform(1, n, inverse).value().into())
}

fn all(who: &str, interp: &mut Interp, args: &[Value], inverse: bool) -> Flow<Outcome> {
    let mut signal = Signal::read(who, &interp.env, &args[0])?;
    for d in 0..signal.dims().len() {
        let n = signal.dims().extent(d);
        signal = signal.transform(d, n, inverse);
    }
    Ok(signal.value().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns numbers that look random.
    fn numbers(n: usize) -> Vec<f64> {
        (0..n).map(|k| (k as f64 * 12.9898).sin() * 43.5453 % 1.0).collect()
    }

    fn far(a: &[Complex64], b: &[Complex64]) -> f64 {
        a.iter().zip(b).map(|(x, y)| (x - y).norm()).fold(0.0, f64::max)
    }

    #[test]
    fn long_real_and_symmetric_lanes_have_the_transforms_of_complex_ones() {
        for n in [LONG, LONG + 1, 999, 1000] {
            for inverse in [false, true] {
                let x = numbers(n);
                let complex: Vec<Complex64> = x.iter().map(|&x| Complex64::new(x, 0.0)).collect();
                let mut expected = complex.clone();
                let direction = if inverse { rustfft::FftDirection::Inverse } else { rustfft::FftDirection::Forward };
                FftPlanner::new().plan_fft(n, direction).process(&mut expected);
                let mut transform = Transform::new(n, inverse);
                transform.scale(&mut expected);
                let (mut real, mut found) = (vec![Complex64::default(); n], complex);
                transform.run_real(&mut real, x.iter().copied());
                transform.run(&mut found);
                assert!(far(&real, &expected) < 1e-11 && real == found, "{n} {inverse}");
                assert!(is_symmetric(&real), "{n} {inverse}");
                // The inverse must give real numbers exactly.
                let mut back = real;
                Transform::new(n, !inverse).run(&mut back);
                let given: Vec<Complex64> = x.iter().map(|&x| Complex64::new(x, 0.0)).collect();
                assert!(back.iter().all(|z| z.im == 0.0) && far(&back, &given) < 1e-11, "{n} {inverse}");
            }
        }
    }

    #[test]
    fn real_lanes_are_padded_with_zeros_whatever_was_computed_before() {
        let mut transform = Transform::new(300, false);
        let mut lane = vec![Complex64::default(); 300];
        transform.run_real(&mut lane, numbers(300).into_iter());
        transform.run_real(&mut lane, numbers(10).into_iter());
        let (mut padded, mut expected) = (numbers(10), vec![Complex64::default(); 300]);
        padded.resize(300, 0.0);
        transform.run_real(&mut expected, padded.into_iter());
        assert_eq!(lane, expected);
    }
}
