//! Fourier transforms along a dimension, on the host.
//!
//! In: real or complex arrays. Out: complex ones, double or single. Must hold: the transform of a real lane is exactly
//! conjugate symmetric, and the inverse of an exactly conjugate symmetric lane is exactly real.

use super::args::{self, number};
use super::lanes::Lanes;
use super::{Builtin, Outcome, row};
use crate::script::env::Env;
use crate::script::error::{Flow, fail};
use crate::script::value::{Data, Dims, Tensor, Value};
use crate::script::vm::Interp;
use num_complex::{Complex32, Complex64};
use parking_lot::Mutex;
use rustfft::{Fft, FftDirection, FftPlanner};
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

/// What is transformed, and whether it is of single precision: sums are of doubles all the same.
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
        let data = Data::C32(narrowed(&self.tensor.data));
        Value::tensor(Tensor::new(self.tensor.dims.clone(), data))
    }

    /// The transform along dimension `d` (from 0), of `n` elements: lanes are cut, or padded with zeros.
    fn transform(self, d: usize, n: usize, inverse: bool) -> Signal {
        let dims = self.dims().with(d, n);
        let (from, to) = (Lanes::new(self.dims(), d), Lanes::new(&dims, d));
        let mut values = vec![Complex64::default(); dims.elements()];
        if !values.is_empty() {
            let mut transform = Transform::new(n, inverse);
            // Lanes that lie one after another are transformed where they are.
            let in_place = to.stride == 1;
            let mut apart = vec![Complex64::default(); if in_place { 0 } else { n }];
            for lane in 0..to.count {
                let start = to.start(lane);
                let elements = if in_place { &mut values[start..start + n] } else { &mut apart[..] };
                fill(elements, &self.tensor.data, from.positions(lane));
                transform.run(elements);
                if !in_place {
                    to.positions(lane).zip(&apart).for_each(|(at, &value)| values[at] = value);
                }
            }
        }
        Signal { tensor: Arc::new(Tensor::new(dims, Data::C64(values))), single: self.single }
    }
}

/// Complex numbers of single precision.
fn narrowed(data: &Data) -> Vec<Complex32> {
    let narrow = |z: Complex64| Complex32::new(z.re as f32, z.im as f32);
    (0..data.len()).map(|i| narrow(data.c64_at(i))).collect()
}

/// A lane becomes the elements at these positions, and zeros behind them.
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

/// How lanes of one length are transformed.
struct Transform {
    plan: Arc<dyn Fft<f64>>,
    scratch: Vec<Complex64>,
    inverse: bool,
}

impl Transform {
    fn new(n: usize, inverse: bool) -> Transform {
        let plan = plan(n, inverse);
        let scratch = vec![Complex64::default(); plan.get_inplace_scratch_len()];
        Transform { plan, scratch, inverse }
    }

    fn run(&mut self, lane: &mut [Complex64]) {
        let real = lane.iter().all(|z| z.im == 0.0);
        let symmetric = is_symmetric(lane);
        self.plan.process_with_scratch(lane, &mut self.scratch);
        if self.inverse {
            let n = lane.len() as f64;
            lane.iter_mut().for_each(|z| *z /= n);
        }
        if real {
            make_symmetric(lane);
        }
        if symmetric {
            lane.iter_mut().for_each(|z| z.im = 0.0);
        }
    }
}

/// How many elements the plans that are kept have together, at most: they take some 32 bytes each.
const KEPT_ELEMENTS_MAX: usize = 1 << 21;
/// Plans that are kept.
const KEPT_MAX: usize = 8;
/// The plans used last, the newest first: making one takes longer than a short transform, and as long as a long one.
static KEPT: Mutex<Vec<Arc<dyn Fft<f64>>>> = Mutex::new(Vec::new());

/// How a transform of `n` elements is done.
fn plan(n: usize, inverse: bool) -> Arc<dyn Fft<f64>> {
    let direction = if inverse { FftDirection::Inverse } else { FftDirection::Forward };
    let known = {
        let mut kept = KEPT.lock();
        let at = kept.iter().position(|plan| plan.len() == n && plan.fft_direction() == direction);
        at.map(|at| {
            kept[..=at].rotate_right(1);
            kept[0].clone()
        })
    };
    // Made outside of the lock: other scripts do not wait for a long one.
    known.unwrap_or_else(|| {
        let plan = FftPlanner::new().plan_fft(n, direction);
        if n <= KEPT_ELEMENTS_MAX {
            let mut kept = KEPT.lock();
            kept.insert(0, plan.clone());
            let mut elements = 0;
            let fits = kept.iter().take(KEPT_MAX).take_while(|plan| {
                elements += plan.len();
                elements <= KEPT_ELEMENTS_MAX
            });
            let fits = fits.count();
            kept.truncate(fits);
        }
        plan
    })
}

/// Whether element k is the conjugate of element n - k.
fn is_symmetric(lane: &[Complex64]) -> bool {
    let n = lane.len();
    lane[0].im == 0.0 && (1..=n / 2).all(|k| lane[k].re == lane[n - k].re && lane[k].im == -lane[n - k].im)
}

/// The second half becomes the conjugate of the first.
fn make_symmetric(lane: &mut [Complex64]) {
    let n = lane.len();
    lane[0].im = 0.0;
    for k in 1..n.div_ceil(2) {
        lane[n - k] = lane[k].conj();
    }
    if n > 0 && n.is_multiple_of(2) {
        lane[n / 2].im = 0.0;
    }
}

/// An argument that says how many elements; `None` if it is absent or `[]`.
fn count(who: &str, env: &Env, value: Option<&Value>) -> Flow<Option<usize>> {
    let Some(value) = value.filter(|v| !v.is_empty()) else { return Ok(None) };
    let n = number(env, who, value)?;
    if n.is_nan() || n < 1.0 && n != 0.0 || n.fract() != 0.0 || value.len() != 1 {
        return fail!("{who}: number of points (N) must be greater than zero");
    }
    Ok(Some(args::extent(n)?))
}

/// Refuses a transform that no memory holds.
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
