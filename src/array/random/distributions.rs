//! Distributions with parameters.

use super::as_floats;
use crate::array::dims::IntoShape;
use crate::array::ensure::ensure;
use crate::array::handle::Array;
use crate::array::operand::{Kind, Operand};
use crate::array::record::{At, Input, node};
use crate::array::recorder::Recorder;
use crate::array::session::Session;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{DType, Dist, Element, ElementOp, Meta, Op, Scalar, Shape, rules};
use smallvec::SmallVec;
use std::panic::Location;
use std::sync::Arc;

impl Session {
    /// Normal random numbers of a mean and a standard deviation, f32 or f64: [`Session::randn`] times the deviation, plus
    /// the mean, so that gradients pass to both.
    ///
    /// The parameters are numbers, or arrays that expand to `shape`. A deviation below 0 or NaN is a fault
    /// (`ErrorKind::Domain`): of a number at once, of an array with the gather.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("draws").seed(1).open();
    /// let means = s.from_slice(&[0.0f64, 100.0], [1, 2])?;
    /// let x = s.normal::<f64>(&means, 2.0, [10_000, 2]);
    /// let found = x.mean(0).gather_blocking::<f64>()?;
    /// assert!(found.as_slice()[0].abs() < 0.1 && (found.as_slice()[1] - 100.0).abs() < 0.1);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn normal<'a, T: Element>(
        &self,
        mean: impl Into<Operand<'a>>,
        deviation: impl Into<Operand<'a>>,
        shape: impl IntoShape,
    ) -> Array {
        let at = Location::caller();
        self.drawn::<T>("normal", shape, at, |draw| {
            let mean = draw.parameter(mean.into(), &ANY)?;
            let deviation = draw.parameter(deviation.into(), &SCALE)?;
            let x = draw.standard(Dist::Normal)?;
            draw.sum(&draw.scaled(&x, &deviation)?, &mean)
        })
    }

    /// Exponential random numbers of a mean, `scale`, f32 or f64. Gradients pass to the scale. Numbers of mean 1 lie from
    /// 2^-32 to 22.2 in f32, from 2^-64 to 44.4 in f64.
    ///
    /// The scale is a number, or an array that expands to `shape`. One that is below 0, infinite or NaN is a fault
    /// (`ErrorKind::Domain`): of a number at once, of an array with the gather.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("draws").seed(1).open();
    /// let waits = s.exponential::<f32>(3.0, 100_000);
    /// assert!((waits.mean(..).gather_blocking::<f32>()?[0] - 3.0).abs() < 0.05);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn exponential<'a, T: Element>(&self, scale: impl Into<Operand<'a>>, shape: impl IntoShape) -> Array {
        let at = Location::caller();
        self.drawn::<T>("exponential", shape, at, |draw| {
            let scale = draw.parameter(scale.into(), &SCALE)?;
            draw.scaled(&draw.standard(Dist::Exponential)?, &scale)
        })
    }

    /// Gamma random numbers of a shape `alpha` and a scale, f32 or f64: mean `alpha * scale`, variance
    /// `alpha * scale^2`. Where `alpha` is small, most of them are: below the least float, they are 0.
    ///
    /// Parameters are numbers, or arrays that expand to `shape`. An `alpha` that is not above 0, a scale below 0, and
    /// infinity and NaN are faults (`ErrorKind::Domain`): of numbers at once, of arrays with the gather. Gradients pass to
    /// the scale; by `alpha` there is none, and asking for it is an error.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("draws").seed(1).open();
    /// let alpha = s.from_slice(&[0.5f64, 7.0], [1, 2])?;
    /// let x = s.gamma::<f64>(&alpha, 2.0, [100_000, 2]);
    /// let found = x.mean(0).gather_blocking::<f64>()?;
    /// assert!((found.as_slice()[0] - 1.0).abs() < 0.03 && (found.as_slice()[1] - 14.0).abs() < 0.1);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn gamma<'a, T: Element>(
        &self,
        alpha: impl Into<Operand<'a>>,
        scale: impl Into<Operand<'a>>,
        shape: impl IntoShape,
    ) -> Array {
        let at = Location::caller();
        self.drawn::<T>("gamma", shape, at, |draw| {
            let alpha = draw.parameter(alpha.into(), &POSITIVE)?;
            let scale = draw.parameter(scale.into(), &SCALE)?;
            draw.scaled(&draw.of(Dist::Gamma, T::DTYPE, &[alpha])?, &scale)
        })
    }

    /// Beta random numbers of shapes `a` and `b`, f32 or f64, from 0 to 1: the share of one gamma number in the sum of
    /// two, computed from their logarithms, so that small shapes give numbers near both ends.
    ///
    /// Parameters are numbers, or arrays that expand to `shape`. One that is not above 0, is infinite or NaN is a fault
    /// (`ErrorKind::Domain`): of a number at once, of an array with the gather. There is no gradient by them, and asking for
    /// one is an error.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("draws").seed(1).open();
    /// let rates = s.beta::<f64>(2.0, 6.0, 100_000);
    /// assert!((rates.mean(..).gather_blocking::<f64>()?[0] - 0.25).abs() < 0.01);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn beta<'a, T: Element>(
        &self,
        a: impl Into<Operand<'a>>,
        b: impl Into<Operand<'a>>,
        shape: impl IntoShape,
    ) -> Array {
        let at = Location::caller();
        self.drawn::<T>("beta", shape, at, |draw| {
            let (a, b) = (draw.parameter(a.into(), &POSITIVE)?, draw.parameter(b.into(), &POSITIVE)?);
            let x = draw.of(Dist::LogGamma, T::DTYPE, &[a])?;
            let y = draw.of(Dist::LogGamma, T::DTYPE, &[b])?;
            let r = draw.recorder();
            r.apply(ElementOp::Sigmoid, &mut [(&r.sub(&x, &y)?).into()])
        })
    }

    /// Poisson random numbers of a mean, as floats of f32 or f64 that are whole: counts beyond 2^24 or 2^53 are rounded to
    /// the type.
    ///
    /// The mean is a number, or an array that expands to `shape`. One that is below 0, infinite or NaN is a fault
    /// (`ErrorKind::Domain`): of a number at once, of an array with the gather. There is no gradient by it, and asking for
    /// one is an error. Devices may differ by a count where a comparison of floats is decided by their last bit, which
    /// `docs/random.md` measures.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("draws").seed(1).open();
    /// let rates = s.from_slice(&[0.5f32, 80.0], [1, 2])?;
    /// let counts = s.poisson::<f32>(&rates, [50_000, 2]);
    /// let found = counts.mean(0).gather_blocking::<f32>()?;
    /// assert!((found.as_slice()[0] - 0.5).abs() < 0.02 && (found.as_slice()[1] - 80.0).abs() < 0.3);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn poisson<'a, T: Element>(&self, mean: impl Into<Operand<'a>>, shape: impl IntoShape) -> Array {
        let at = Location::caller();
        self.drawn::<T>("poisson", shape, at, |draw| {
            let mean = draw.parameter(mean.into(), &NOT_NEGATIVE)?;
            draw.of(Dist::Poisson, T::DTYPE, &[mean])
        })
    }

    /// Binomial random numbers: how many of `trials` succeed, each with probability `p`, as floats of f32 or f64 that are
    /// whole.
    ///
    /// Parameters are numbers, or arrays that expand to `shape`. A number of trials that is not a whole one of at least 0,
    /// and a `p` outside of 0 to 1, are faults (`ErrorKind::Domain`): of numbers at once, of arrays with the gather. There
    /// is no gradient by them, and asking for one is an error. Devices may differ by a count, as [`Session::poisson`] says.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("draws").seed(1).open();
    /// let heads = s.binomial::<f64>(100, 0.5, 100_000);
    /// assert!((heads.mean(..).gather_blocking::<f64>()?[0] - 50.0).abs() < 0.1);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn binomial<'a, T: Element>(
        &self,
        trials: impl Into<Operand<'a>>,
        p: impl Into<Operand<'a>>,
        shape: impl IntoShape,
    ) -> Array {
        let at = Location::caller();
        self.drawn::<T>("binomial", shape, at, |draw| {
            let (trials, p) = (draw.parameter(trials.into(), &WHOLE)?, draw.parameter(p.into(), &CHANCE)?);
            draw.of(Dist::Binomial, T::DTYPE, &[trials, p])
        })
    }

    /// Random truth values, each true with probability `p`; the same on every device. `T`, f32 or f64, is the type in
    /// which `p` is taken: the probability is exactly that number, in steps of 2^-64.
    ///
    /// The probability is a number, or an array that expands to `shape`. One outside of 0 to 1 is a fault
    /// (`ErrorKind::Domain`): of a number at once, of an array with the gather. There is no gradient by it, and asking for
    /// one is an error.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("draws").seed(1).open();
    /// let rains = s.bernoulli::<f32>(0.3, 100_000);
    /// let days = rains.count_nonzero(..).gather_blocking::<u32>()?[0];
    /// assert!((29_000..31_000).contains(&days));
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn bernoulli<'a, T: Element>(&self, p: impl Into<Operand<'a>>, shape: impl IntoShape) -> Array {
        let at = Location::caller();
        self.drawn::<T>("bernoulli", shape, at, |draw| {
            let p = draw.parameter(p.into(), &CHANCE)?;
            draw.of(Dist::Bernoulli, DType::Bool, &[p])
        })
    }

    fn drawn<T: Element>(
        &self,
        name: &'static str,
        shape: impl IntoShape,
        at: At,
        record: impl FnOnce(&Draw<'_>) -> Result<Array>,
    ) -> Array {
        let drawn = as_floats(T::DTYPE).and_then(|()| {
            let shape = shape.into_shape()?;
            record(&Draw { session: self, name, dtype: T::DTYPE, shape, at })
        });
        drawn.unwrap_or_else(|error| Array::faulty(self.home(), error, name, at))
    }
}

/// What a parameter must be, and the words for it.
struct Domain {
    /// The least number, and whether it is one of them.
    least: f64,
    holds_least: bool,
    /// The greatest number; infinity for the greatest finite one.
    greatest: f64,
    is_whole: bool,
    words: &'static str,
}

const ANY: Domain = Domain {
    least: f64::NEG_INFINITY,
    holds_least: true,
    greatest: f64::INFINITY,
    is_whole: false,
    words: "a mean is finite",
};
const NOT_NEGATIVE: Domain = Domain {
    least: 0.0,
    holds_least: true,
    greatest: f64::INFINITY,
    is_whole: false,
    words: "a mean is finite and at least 0",
};
const SCALE: Domain = Domain { words: "a scale is finite and at least 0", ..NOT_NEGATIVE };
const POSITIVE: Domain = Domain { holds_least: false, words: "a shape is finite and above 0", ..NOT_NEGATIVE };
const CHANCE: Domain = Domain { greatest: 1.0, words: "a probability lies from 0 to 1", ..NOT_NEGATIVE };
const WHOLE: Domain =
    Domain { is_whole: true, words: "a number of trials is whole, finite and at least 0", ..NOT_NEGATIVE };

impl Domain {
    /// The ends as finite numbers of a dtype.
    fn ends(&self, dtype: DType) -> (f64, f64) {
        let most = if dtype == DType::F32 { f64::from(f32::MAX) } else { f64::MAX };
        (self.least.max(-most), self.greatest.min(most))
    }

    fn holds(&self, number: f64, dtype: DType) -> bool {
        let (least, greatest) = self.ends(dtype);
        let above = if self.holds_least { number >= least } else { number > least };
        above && number <= greatest && (!self.is_whole || number == number.floor())
    }

    fn error(&self) -> Error {
        Error::new(ErrorKind::Domain, self.words)
    }
}

/// A parameter of a draw: known, or an array in the draw's dtype that carries the check of its domain.
enum Parameter {
    Number(Scalar),
    Array(Array),
}

/// One draw that is being recorded.
struct Draw<'a> {
    session: &'a Session,
    name: &'static str,
    dtype: DType,
    shape: Shape,
    at: At,
}

impl Draw<'_> {
    fn recorder(&self) -> Recorder<'_> {
        Recorder { home: self.session.home(), at: self.at }
    }

    /// A parameter in the draw's dtype, with its check.
    fn parameter(&self, given: Operand<'_>, domain: &Domain) -> Result<Parameter> {
        let number = match &given.0 {
            Kind::Number(number) => Some(number.as_f64()),
            Kind::Beyond(number) => Some(*number as f64),
            Kind::Borrowed(_) | Kind::Last(_) | Kind::Owned(_) => None,
        };
        if let Some(number) = number {
            let scalar = Scalar::F64(number).cast(self.dtype);
            let holds = domain.holds(number, DType::F64) && domain.holds(scalar.as_f64(), self.dtype);
            return if holds { Ok(Parameter::Number(scalar)) } else { Err(domain.error()) };
        }
        let Some(array) = given.array() else { unreachable!("OPERAND-1: an operand is a number or an array") };
        let meta = array.meta()?;
        self.session.may_read(array)?;
        rules::expands(&meta.shape, &self.shape)?;
        let r = self.recorder();
        let array = r.cast(array, self.dtype)?;
        let (least, greatest) = domain.ends(self.dtype);
        let above = if domain.holds_least { ElementOp::Ge } else { ElementOp::Gt };
        // The check is no part of what is differentiated.
        let holds = r.constant(|| {
            let above = r.binary(above, &array, r.number(self.dtype, least))?;
            let below = r.binary(ElementOp::Le, &array, r.number(self.dtype, greatest))?;
            let holds = r.binary(ElementOp::And, &above, &below)?;
            if !domain.is_whole {
                return Ok(holds);
            }
            let floor = r.apply(ElementOp::Floor, &mut [(&array).into()])?;
            r.binary(ElementOp::And, &holds, &r.binary(ElementOp::Eq, &array, &floor)?)
        })?;
        let checked = ensure(&array, self.name, &holds, Arc::from(domain.words), self.at).checked()?;
        Ok(Parameter::Array(checked))
    }

    /// Numbers of a distribution without parameters.
    fn standard(&self, dist: Dist) -> Result<Array> {
        self.of(dist, self.dtype, &[])
    }

    /// Numbers of a distribution of these parameters.
    fn of(&self, dist: Dist, dtype: DType, parameters: &[Parameter]) -> Result<Array> {
        let home = self.session.home();
        let op = Op::Random { dist, key: home.next_random_key() };
        let inputs: SmallVec<[Input<'_>; 2]> = parameters
            .iter()
            .map(|parameter| match parameter {
                Parameter::Number(number) => Input::Number(*number),
                Parameter::Array(array) => Input::Array(array),
            })
            .collect();
        node(home, op, &inputs, Meta { dtype, shape: self.shape.clone() }, self.at).checked()
    }

    /// `x` times a parameter.
    fn scaled(&self, x: &Array, scale: &Parameter) -> Result<Array> {
        match scale {
            Parameter::Number(number) if number.as_f64() == 1.0 => Ok(x.clone()),
            _ => self.with(ElementOp::Mul, x, scale),
        }
    }

    /// `x` plus a parameter.
    fn sum(&self, x: &Array, more: &Parameter) -> Result<Array> {
        self.with(ElementOp::Add, x, more)
    }

    fn with(&self, op: ElementOp, x: &Array, parameter: &Parameter) -> Result<Array> {
        match parameter {
            Parameter::Number(number) => self.recorder().binary(op, x, number.as_f64()),
            Parameter::Array(array) => self.recorder().binary(op, x, array),
        }
    }
}
