//! Transforms lines on the host, by `rustfft` and `realfft`. Workers take blocks of lines whose elements lie side by
//! side, so that they use whole cache lines.
//!
//! In: an argument in one array, or parts in two. Out: the result. Plans, which hold tables of twiddle factors, are
//! cached in the pool for lengths that are used again. Must hold: FFT-1, FFT-2; the result does not depend on which
//! thread takes a block.

use crate::error::{Error, ErrorKind, Result};
use crate::graph::{DType, Fourier, Parts, Spectrum};
use crate::kernels::eval::{HostOperand, Pool};
use crate::kernels::library::Library;
use crate::kernels::recent::Recent;
use parking_lot::Mutex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftNum, FftPlanner};
use std::sync::Arc;

/// Lines side by side that a worker takes at a time: a cache line of f64.
const BLOCK: usize = 8;
/// The most plans that are cached for each dtype.
const PLANS_MAX: usize = 16;
/// The longest line whose plan is cached. The tables of a plan are about as long as its line, and no memory budget
/// counts them. For f64, the tables of such a line have 16 MiB.
const PLAN_KEPT_MAX: u32 = 1 << 20;

/// Runs `Library::Fourier` over its operands `[x, out]` or `[re, im, out]` (and unused scratch).
///
/// # Errors
/// `ErrorKind::OutOfMemory` if there is no memory for a line.
pub fn run(library: &Library, operands: &[HostOperand<'_>], pool: &Pool) -> Result<()> {
    let &Library::Fourier { dtype, .. } = library else { panic!("LIB-1: {library:?} is no transform") };
    match dtype {
        DType::F32 => transform::<f32>(library, operands, pool),
        DType::F64 => transform::<f64>(library, operands, pool),
        DType::Bool | DType::U8 | DType::I32 | DType::U32 | DType::I64 => {
            panic!("LIB-1: a transform of {dtype}")
        }
    }
}

/// A plan of `rustfft` or `realfft` for lines of one length.
enum Plan<T> {
    /// Transforms a complex line.
    Complex(Arc<dyn Fft<T>>),
    /// Transforms a real line to its half spectrum.
    Forward(Arc<dyn RealToComplex<T>>),
    /// Transforms a half spectrum to its real line.
    Inverse(Arc<dyn ComplexToReal<T>>),
}

impl<T> Clone for Plan<T> {
    fn clone(&self) -> Plan<T> {
        match self {
            Plan::Complex(plan) => Plan::Complex(plan.clone()),
            Plan::Forward(plan) => Plan::Forward(plan.clone()),
            Plan::Inverse(plan) => Plan::Inverse(plan.clone()),
        }
    }
}

/// The key of a plan: the length, whether it is inverse, and whether the line is real.
type PlanKey = (u32, bool, bool);

/// A cache of the most recently used plans of one dtype.
type Known<T> = Recent<PlanKey, Plan<T>, PLANS_MAX>;

/// A cache of the most recently used plans.
#[derive(Debug, Default)]
pub(crate) struct Plans {
    single: Known<f32>,
    double: Known<f64>,
}

trait Real: FftNum {
    fn known(plans: &Plans) -> &Known<Self>;
}

impl Real for f32 {
    fn known(plans: &Plans) -> &Known<f32> {
        &plans.single
    }
}

impl Real for f64 {
    fn known(plans: &Plans) -> &Known<f64> {
        &plans.double
    }
}

/// The plan of a transform. A real line has a plan of its own, which does half the work.
fn plan<T: Real>(fourier: &Fourier, plans: &Plans) -> Plan<T> {
    let is_real = match (fourier.parts, fourier.spectrum) {
        (_, Spectrum::Half) => true,
        (Parts::Real, Spectrum::Full) => !fourier.inverse,
        (Parts::Apart | Parts::Together, Spectrum::Full) => false,
    };
    let len = fourier.len as usize;
    let make = || match (is_real, fourier.inverse) {
        (false, false) => Plan::Complex(FftPlanner::new().plan_fft_forward(len)),
        (false, true) => Plan::Complex(FftPlanner::new().plan_fft_inverse(len)),
        (true, false) => Plan::Forward(RealFftPlanner::new().plan_fft_forward(len)),
        (true, true) => Plan::Inverse(RealFftPlanner::new().plan_fft_inverse(len)),
    };
    if fourier.len > PLAN_KEPT_MAX {
        return make();
    }
    let key = (fourier.len, fourier.inverse, is_real);
    T::known(plans).get_or_make(|known| *known == key, || (key, make()))
}

/// The real and imaginary parts of the argument.
struct Source<'a, T> {
    re: &'a [T],
    /// `None` if the argument is real.
    im: Option<&'a [T]>,
}

/// The result. Each worker writes the lines that it has taken.
struct Target<T> {
    at: *mut T,
    /// The index of the first imaginary part; 0 if the result is real.
    im: usize,
}

// SAFETY: workers write disjoint lines.
unsafe impl<T: Send> Sync for Target<T> {}

/// The memory of a worker: the numbers of a block of lines, one line after the other.
struct WorkerMemory<T> {
    numbers: Vec<Complex<T>>,
    reals: Vec<T>,
    scratch: Vec<Complex<T>>,
}

fn transform<T: Real>(library: &Library, operands: &[HostOperand<'_>], pool: &Pool) -> Result<()> {
    let &Library::Fourier { before, given, after, ref fourier, .. } = library else {
        panic!("LIB-1: {library:?} is no transform");
    };
    let (before, given, after) = (before as usize, given as usize, after as usize);
    let all = before * given * after;
    let (source, out) = match fourier.parts {
        Parts::Real => (Source { re: operands[0].slice::<T>(), im: None }, 1),
        Parts::Apart => (Source { re: operands[0].slice::<T>(), im: Some(operands[1].slice::<T>()) }, 2),
        Parts::Together => {
            let (re, im) = operands[0].slice::<T>().split_at(all);
            (Source { re, im: Some(im) }, 1)
        }
    };
    // SAFETY: this is the only slice of `out`.
    let out = unsafe { operands[out].slice_mut::<T>() };
    let results = before * fourier.yields() as usize * after;
    let fits = source.re.len() >= all && source.im.is_none_or(|im| im.len() >= all);
    assert!(fits && out.len() >= results * fourier.parts_yielded(), "EVAL-1: {library:?}");
    if results == 0 {
        return Ok(());
    }
    let im = if fourier.parts_yielded() == 2 { results } else { 0 };
    let plan = plan::<T>(fourier, pool.plans());
    let lines = Lines { before, given, fourier, plan, source, target: Target { at: out.as_mut_ptr(), im } };
    let blocks = before.div_ceil(BLOCK);
    let failed = Mutex::new(None);
    let work = library.work();
    let is_shared = pool.is_worth_waking((work.double + work.other) as usize);
    pool.run(blocks * after, is_shared, |tasks| {
        let mut work = match lines.work() {
            Ok(work) => work,
            Err(error) => return *failed.lock() = Some(error),
        };
        for task in tasks {
            let first = task % blocks * BLOCK;
            lines.block(&mut work, task / blocks, first, BLOCK.min(before - first));
        }
    });
    match failed.into_inner() {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// The lines of a launch.
struct Lines<'a, T> {
    before: usize,
    given: usize,
    fourier: &'a Fourier,
    plan: Plan<T>,
    source: Source<'a, T>,
    target: Target<T>,
}

/// A vector of zeros, or an error if there is no memory for it.
fn zeros<T: Clone>(count: usize, zero: T) -> Result<Vec<T>> {
    let mut zeros = Vec::new();
    if zeros.try_reserve_exact(count).is_err() {
        return Err(Error::new(ErrorKind::OutOfMemory, format!("no memory to transform {count} numbers")));
    }
    zeros.resize(count, zero);
    Ok(zeros)
}

impl<T: Real> Lines<'_, T> {
    fn len(&self) -> usize {
        self.fourier.len as usize
    }

    /// Numbers of a line in `WorkerMemory::numbers`.
    fn held(&self) -> usize {
        match self.plan {
            Plan::Complex(_) => self.len(),
            Plan::Forward(_) | Plan::Inverse(_) => Fourier::half(self.fourier.len) as usize,
        }
    }

    fn work(&self) -> Result<WorkerMemory<T>> {
        let side_by_side = self.before.min(BLOCK);
        let (reals, scratch) = match &self.plan {
            Plan::Complex(plan) => (0, plan.get_inplace_scratch_len()),
            Plan::Forward(plan) => (self.len() * side_by_side, plan.get_scratch_len()),
            Plan::Inverse(plan) => (self.len() * side_by_side, plan.get_scratch_len()),
        };
        let zero = Complex::new(T::zero(), T::zero());
        Ok(WorkerMemory {
            numbers: zeros(self.held() * side_by_side, zero)?,
            reals: zeros(reals, T::zero())?,
            scratch: zeros(scratch, zero)?,
        })
    }

    /// Transforms `count` lines that lie side by side, from `first` on.
    fn block(&self, work: &mut WorkerMemory<T>, page: usize, first: usize, count: usize) {
        self.load(work, page * self.before * self.given + first, count);
        let (len, held) = (self.len(), self.held());
        for line in 0..count {
            let numbers = &mut work.numbers[line * held..][..held];
            let done = match &self.plan {
                Plan::Complex(plan) => {
                    plan.process_with_scratch(numbers, &mut work.scratch);
                    Ok(())
                }
                Plan::Forward(plan) => {
                    let reals = &mut work.reals[line * len..][..len];
                    plan.process_with_scratch(reals, numbers, &mut work.scratch)
                }
                Plan::Inverse(plan) => {
                    // Elements that are their own mirror image are real.
                    numbers[0].im = T::zero();
                    if len.is_multiple_of(2) {
                        numbers[held - 1].im = T::zero();
                    }
                    let reals = &mut work.reals[line * len..][..len];
                    plan.process_with_scratch(numbers, reals, &mut work.scratch)
                }
            };
            done.expect("FFT-1: lines have the length of their plan");
        }
        self.store(work, page, first, count);
    }

    /// Loads lines, and extends them by zeros.
    fn load(&self, work: &mut WorkerMemory<T>, first: usize, count: usize) {
        let Source { re, im } = &self.source;
        let (len, held) = (self.len(), self.held());
        let takes = self.fourier.takes() as usize;
        let there = self.given.min(takes);
        let zero = Complex::new(T::zero(), T::zero());
        for i in 0..takes {
            for line in 0..count {
                let at = first + i * self.before + line;
                if let Plan::Forward(_) = self.plan {
                    work.reals[line * len + i] = if i < there { re[at] } else { T::zero() };
                    continue;
                }
                work.numbers[line * held + i] = match im {
                    _ if i >= there => zero,
                    None => Complex::new(re[at], T::zero()),
                    Some(im) => Complex::new(re[at], im[at]),
                };
            }
        }
    }

    fn store(&self, work: &WorkerMemory<T>, page: usize, first: usize, count: usize) {
        let (len, held, yields) = (self.len(), self.held(), self.fourier.yields() as usize);
        let factor = match self.fourier.inverse {
            true => T::one() / T::from_u32(self.fourier.len).unwrap_or_else(T::one),
            false => T::one(),
        };
        let first = page * self.before * yields + first;
        for k in 0..yields {
            for line in 0..count {
                let at = first + k * self.before + line;
                let number = match self.plan {
                    Plan::Inverse(_) => Complex::new(work.reals[line * len + k], T::zero()),
                    // The other half of the spectrum is the mirror image.
                    Plan::Forward(_) if k >= held => work.numbers[line * held + len - k].conj(),
                    Plan::Complex(_) | Plan::Forward(_) => work.numbers[line * held + k],
                };
                // SAFETY: within the result, whose length was checked; lines are disjoint.
                unsafe {
                    self.target.at.add(at).write(number.re * factor);
                    if self.target.im > 0 {
                        self.target.at.add(self.target.im + at).write(number.im * factor);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_buffer::as_bytes;
    use crate::kernels::fft::cases::{self, Case};

    fn run_as<T>(case: &Case, threads: usize, to: fn(f64) -> T, back: fn(T) -> f64) -> Vec<f64>
    where
        T: Real + crate::graph::Element + bytemuck::Pod,
    {
        let arguments: Vec<Vec<T>> = case.arguments.iter().map(|x| x.iter().map(|&x| to(x)).collect()).collect();
        let mut out = vec![to(7.0); case.result_elements()];
        let mut operands: Vec<HostOperand<'_>> =
            arguments.iter().map(|argument| HostOperand::read(as_bytes(argument))).collect();
        operands.push(HostOperand::write(bytemuck::cast_slice_mut(&mut out)));
        run(&case.library, &operands, &Pool::new(Some(threads)).unwrap()).unwrap();
        out.into_iter().map(back).collect()
    }

    fn result(case: &Case, threads: usize) -> Vec<f64> {
        match case.library {
            Library::Fourier { dtype: DType::F32, .. } => run_as(case, threads, |x| x as f32, |x| x as f64),
            _ => run_as(case, threads, |x| x, |x| x),
        }
    }

    #[test]
    fn transforms_of_every_kind_and_length_are_within_their_bound() {
        for case in cases::all() {
            case.check(&result(&case, 2));
        }
    }

    #[test]
    fn plans_of_lines_that_are_not_long_are_kept() {
        let plans = Plans::default();
        let holders = |len: u32| {
            let Library::Fourier { fourier, .. } = cases::complex(DType::F32, 1, 8, 1).library else { panic!("one") };
            let Plan::Complex(plan) = plan::<f32>(&Fourier { len, ..fourier }, &plans) else { panic!("of complex") };
            Arc::strong_count(&plan)
        };
        assert_eq!(holders(PLAN_KEPT_MAX), 2);
        assert_eq!(holders(PLAN_KEPT_MAX + (PLAN_KEPT_MAX >> 1)), 1);
    }

    #[test]
    fn what_is_no_number_stays_in_its_line_and_threads_decide_no_bit() {
        for len in [60, 37] {
            let case = cases::complex(DType::F32, 3, len, 5).with_nan(2 + 3 * 4);
            case.check_nan(&result(&case, 1));
        }
        let case = cases::complex(DType::F64, 20, 1009, 3);
        assert_eq!(result(&case, 1), result(&case, 3));
    }
}
