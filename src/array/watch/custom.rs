//! Functions with derivatives of their own: rules that a program writes, functions that are computed again, and
//! constants.

use super::index::is_same;
use super::log::has_derivatives;
use super::pause::Pause;
use super::{Watch, Watchable};
use crate::array::handle::Array;
use crate::array::random_key::RandomState;
use crate::array::record::{At, Input, node};
use crate::array::recorder::Recorder;
use crate::array::session::Session;
use crate::array::tape::Home;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Op, View};
use std::panic::Location;
use std::sync::Arc;

/// A function that a watch follows as one step.
pub(super) trait Custom: Send + Sync {
    /// Its name in errors.
    fn name(&self) -> &'static str;

    /// Computes the cotangents of the arguments from `above`, the cotangent of the value.
    ///
    /// # Errors
    /// Those of the program's own rule, and of ops that it records.
    fn pull(&self, args: &[Array], value: &Array, above: &Array) -> Result<Vec<Array>>;

    /// The tangent of its value.
    ///
    /// # Errors
    /// As `pull`; and an error if the program gave no rule for tangents.
    fn push(&self, args: &[Array], tangents: &[Array]) -> Result<Array>;
}

/// A rule that the program wrote.
struct Ruled<F>(F);

impl<F> Custom for Ruled<F>
where
    F: Fn(&[Array], &Array, &Array) -> Result<Vec<Array>> + Send + Sync,
{
    fn name(&self) -> &'static str {
        "custom_gradient"
    }

    fn pull(&self, args: &[Array], value: &Array, above: &Array) -> Result<Vec<Array>> {
        self.0(args, value, above)
    }

    fn push(&self, _: &[Array], _: &[Array]) -> Result<Array> {
        let message = "custom_gradient defines reverse mode only: this function has no tangent";
        Err(Error::new(ErrorKind::NoDerivative, message))
    }
}

/// A function that is recorded again when its derivative is asked for.
struct Again<F> {
    home: Arc<Home>,
    function: F,
    /// The state of the session's random numbers before the function first ran; recording it again starts from there.
    random: RandomState,
    at: At,
}

impl<F: Fn(&[Array]) -> Result<Array> + Send + Sync> Again<F> {
    /// Records the function once more, under a watch of the arguments in these slots. The watch need not follow the
    /// value.
    fn again(&self, args: &[Array], slots: &[usize]) -> Result<(Watch<Vec<Array>>, Array)> {
        let session = Session::of(&self.home);
        let watched: Vec<Array> = slots.iter().map(|&slot| args[slot].clone()).collect();
        let watch = Watch::begin(&self.home, &watched, |arrays| arrays, self.at)?;
        let stands = session.random_state();
        session.set_random_state(self.random);
        let value = (self.function)(args);
        session.set_random_state(stands);
        Ok((watch, value?.checked()?))
    }

    fn zeros(&self, array: &Array) -> Result<Array> {
        Recorder { home: &self.home, at: self.at }.zeros(array.meta()?.clone())
    }
}

impl<F: Fn(&[Array]) -> Result<Array> + Send + Sync> Custom for Again<F> {
    fn name(&self) -> &'static str {
        "checkpoint"
    }

    fn pull(&self, args: &[Array], _: &Array, above: &Array) -> Result<Vec<Array>> {
        let slots = slots_watched(args);
        let (watch, value) = self.again(args, &slots)?;
        let gradients = match watch.log.step_of(&value) {
            Some(_) => watch.pulled(&value, above, self.name(), self.at)?,
            None => Vec::new(),
        };
        let of_slot = |slot: usize| slots.iter().zip(&gradients).find(|(watched, _)| **watched == slot);
        let all = args.iter().enumerate().map(|(slot, array)| match of_slot(slot) {
            Some((_, gradient)) => Ok(gradient.clone()),
            None => self.zeros(array),
        });
        all.collect()
    }

    fn push(&self, args: &[Array], tangents: &[Array]) -> Result<Array> {
        let slots = slots_watched(args);
        let (watch, value) = self.again(args, &slots)?;
        if watch.log.step_of(&value).is_none() {
            return self.zeros(&value);
        }
        let tangents: Vec<Array> = slots.iter().map(|&slot| tangents[slot].clone()).collect();
        watch.pushed(&value, &tangents, self.name(), self.at)
    }
}

/// The slots of the arguments that a watch can follow, which are floats. An argument that is given twice is one value,
/// and its derivative counts both slots.
fn slots_watched(args: &[Array]) -> Vec<usize> {
    let is_first = |slot: usize| !args[..slot].iter().any(|other| is_same(other, &args[slot]));
    (0..args.len()).filter(|&slot| has_derivatives(&args[slot]) && is_first(slot)).collect()
}

impl Session {
    /// Returns the value of `forward` and replaces its derivative by `backward`. `backward` is called with the arguments,
    /// the value and the cotangent of the value, and returns one cotangent for each argument, of its shape or expanding to
    /// it. What `forward` records is not differentiated. The rule is recorded each time that gradients are asked for; what
    /// it records can be differentiated again, by an outer watch.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("rules").open();
    /// // The identity, whose gradient is held between -1 and 1.
    /// let x = s.from_slice(&[1.0f64, 2.0], 2)?;
    /// let watch = s.watch(&x)?;
    /// let y = s.custom_gradient(&x, |x| Ok(x.clone()), |_, _, above| Ok(vec![above.clamp(-1.0, 1.0)]))?;
    /// let gradient = watch.gradients(&(y * s.from_slice(&[0.25, 40.0], 2)?).sum(..))?;
    /// assert_eq!(gradient.gather_blocking::<f64>()?.as_slice(), [0.25, 1.0]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `forward`; the value's fault. `gradients` returns those of `backward`, and `ErrorKind::Argument` if it
    /// returns another number of arrays, or other shapes. [`Watch::jvp`] through it is `ErrorKind::NoDerivative`.
    #[track_caller]
    pub fn custom_gradient<W: Watchable>(
        &self,
        args: W,
        forward: impl FnOnce(W) -> Result<Array>,
        backward: impl Fn(&[Array], &Array, &Array) -> Result<Vec<Array>> + Send + Sync + 'static,
    ) -> Result<Array> {
        let arrays = args.arrays();
        let value = {
            let _pause = Pause::all();
            forward(args)
        };
        followed(self.home(), Arc::new(Ruled(backward)), &arrays, value?, Location::caller())
    }

    /// Returns the value of `function`. Watches keep only its arguments and its value: `function` is recorded again,
    /// with the same random numbers, when gradients are asked for. That takes one more forward pass through `function`,
    /// and saves the memory of the values that its backward pass reads. Meanwhile no other thread may draw random
    /// numbers from this session, because it would get numbers that the function draws again.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("checkpoints").open();
    /// let x = s.from_slice(&[0.5f64, 1.0], 2)?;
    /// let watch = s.watch(&x)?;
    /// let y = s.checkpoint(&x, |x| Ok(x[0].sin().exp().sin()))?;
    /// let gradient = watch.gradients(&y.sum(..))?;
    /// let expected = x.sin().exp().cos() * x.sin().exp() * x.cos();
    /// let far = (gradient - expected).abs().max_over(..).gather_blocking::<f64>()?[0];
    /// assert!(far < 1e-12);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `function`; the value's fault.
    #[track_caller]
    pub fn checkpoint(
        &self,
        args: impl Watchable,
        function: impl Fn(&[Array]) -> Result<Array> + Send + Sync + 'static,
    ) -> Result<Array> {
        let (arrays, at) = (args.arrays(), Location::caller());
        let random = self.random_state();
        let value = {
            let _pause = Pause::all();
            function(&arrays)
        };
        let again = Again { home: self.home().clone(), function, random, at };
        followed(self.home(), Arc::new(again), &arrays, value?, at)
    }
}

/// The value of a function with a rule of its own, as a value that watches follow from here on.
fn followed(home: &Arc<Home>, custom: Arc<dyn Custom>, args: &[Array], value: Array, at: At) -> Result<Array> {
    // The function may have returned one of its arguments.
    let value = renamed(&value, at).checked()?;
    home.watches.note_custom(&custom, args, &value, home.site(at))?;
    Ok(value)
}

/// The same elements as another value, which no watch follows yet.
fn renamed(array: &Array, at: At) -> Array {
    let Ok(meta) = array.meta() else { return array.clone() };
    let _pause = Pause::all();
    node(&array.0.home, Op::View(View::Reshape), &[Input::Array(array)], meta.clone(), at)
}

impl Array {
    /// The same elements as a constant: no derivative passes through it to the values that it was computed from.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("constants").open();
    /// let x = s.from_slice(&[3.0f64], 1)?;
    /// let watch = s.watch(&x)?;
    /// let y = x.stop_gradient() * &x;
    /// assert_eq!(watch.gradients(&y)?.gather_blocking::<f64>()?[0], 3.0);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn stop_gradient(&self) -> Array {
        renamed(self, Location::caller())
    }
}
