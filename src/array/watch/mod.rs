//! Derivatives: [`Watch`] follows the values that a session computes from some arrays, and records gradients and
//! tangents as ordinary ops of that session.
//!
//! In: arrays to watch; ops, as they are recorded. Out: arrays, which fuse, run and fail as all others do. No later
//! stage knows of derivatives. Recorded ops are differentiated, casts and rewritten forms included, by the rules of the
//! op table (`graph/table/gradient.rs`, `graph/gradient.rs`).
//!
//! Invariants: WATCH-1 to WATCH-4 (`log`), PACK-1 and PACK-2 (`packed`), STATEMENT-1 (`statements`), GROW-1
//! (`growing`), INDEX-1 (`index`), TURNS-1 and TURNS-2 (`turns`), CHUNK-1 to CHUNK-3 (`chunks`), PULL-1 to PULL-3
//! (`pull`), PUSH-1 (`push`).
//!
//! How to read: `log` holds the steps (`step`) that a watch notes. It holds them in few bytes: `packed`, with
//! `statements` for what steps have in common, `coding` for what they have not, and `index` to find the step of an
//! array. `pull` goes through the steps backwards, `push` forwards; `turns` finds loops among them, and `chunks` pulls
//! through a loop; `partials`, `reductions`, `scans`, `indices`, `fourier`, `linear`, `pivoted`, `recurrence` and
//! `spectra` are the rules, written with a `Recorder` (`array/recorder.rs`); `by` differentiates by other values than
//! the watched ones; `custom` has the program's own rules.

mod by;
mod chunks;
mod coding;
mod custom;
mod fourier;
mod growing;
mod index;
mod indices;
mod linear;
mod log;
mod packed;
mod partials;
mod pause;
mod pivoted;
mod pull;
mod push;
mod recurrence;
mod reductions;
mod scans;
mod spectra;
mod statements;
mod step;
#[cfg(test)]
mod tests;
mod turns;

use super::handle::Array;
use super::record::{At, check_readable};
use super::recorder::Recorder;
use super::session::Session;
use super::tape::Home;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Meta, rules};
use log::Log;
use pull::Wanted;
use push::Tangents;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

pub(super) use log::{Watches, noted_as};
pub(super) use pause::Pause;

mod sealed {
    pub trait Sealed {}
}

/// Arrays that [`Session::watch`] accepts: `&a`, `[&a, &b]`, a slice or a `Vec`. Gradients are returned in the same
/// arrangement. No other type can implement it.
pub trait Watchable: sealed::Sealed {
    /// `Array`, `[Array; N]` or `Vec<Array>`.
    type Gradients;

    /// The arrays, in order.
    fn arrays(&self) -> Vec<Array>;

    /// Puts one gradient for each watched array, in the order of `arrays()`, into this arrangement.
    fn arranged(arrays: Vec<Array>) -> Self::Gradients;
}

impl sealed::Sealed for &Array {}
impl<const N: usize> sealed::Sealed for [&Array; N] {}
impl sealed::Sealed for &[Array] {}
impl sealed::Sealed for &Vec<Array> {}

impl Watchable for &Array {
    type Gradients = Array;

    fn arrays(&self) -> Vec<Array> {
        vec![(*self).clone()]
    }

    fn arranged(mut arrays: Vec<Array>) -> Array {
        arrays.remove(0)
    }
}

impl<const N: usize> Watchable for [&Array; N] {
    type Gradients = [Array; N];

    fn arrays(&self) -> Vec<Array> {
        self.iter().copied().cloned().collect()
    }

    fn arranged(arrays: Vec<Array>) -> [Array; N] {
        arrays.try_into().unwrap_or_else(|arrays: Vec<Array>| panic!("WATCH-2: {} gradients of {N}", arrays.len()))
    }
}

impl Watchable for &[Array] {
    type Gradients = Vec<Array>;

    fn arrays(&self) -> Vec<Array> {
        self.to_vec()
    }

    fn arranged(arrays: Vec<Array>) -> Vec<Array> {
        arrays
    }
}

impl Watchable for &Vec<Array> {
    type Gradients = Vec<Array>;

    fn arrays(&self) -> Vec<Array> {
        self.to_vec()
    }

    fn arranged(arrays: Vec<Array>) -> Vec<Array> {
        arrays
    }
}

/// Follows the values that its session computes from some arrays, from [`Session::watch`] until it is dropped, and
/// records their derivatives.
///
/// Watching runs nothing and records nothing. A watch holds, on the host, a record of each op that it follows, and
/// handles of the values that gradients read; dropping the watch drops them. So ask for gradients, drop the watch, then
/// gather: the backward pass then keeps only the values that it needs. Gradients are arrays like any other: nothing is
/// computed until one is gathered, and gradients that are gathered together with the loss share its kernels.
///
/// ```
/// # futures::executor::block_on(async {
/// # let rt = tidemill::Runtime::builder().device("host").start().await?;
/// let s = rt.session("fit").open();
/// let x = s.from_slice(&[0.0f64, 1.0, 2.0, 3.0], 4)?;
/// let y = &x * 2.0 + 1.0;
/// let (mut w, mut b) = (s.from_slice(&[0.0], 1)?, s.from_slice(&[0.0], 1)?);
/// for _ in 0..200 {
///     let watch = s.watch([&w, &b])?;
///     let loss = (&w * &x + &b - &y).square().mean(..);
///     let [gw, gb] = watch.gradients(&loss)?;
///     w -= gw * 0.1;
///     b -= gb * 0.1;
/// }
/// let (w, b) = futures::try_join!(w.item::<f64>(), b.item::<f64>())?;
/// assert!((w - 2.0).abs() < 1e-3 && (b - 1.0).abs() < 1e-3);
/// # rt.shutdown().await
/// # }).unwrap();
/// ```
///
/// For gradients of gradients, begin an outer watch first: every watch except its own follows the ops that `gradients`
/// records.
pub struct Watch<G> {
    home: Arc<Home>,
    log: Arc<Log>,
    /// The watched arrays.
    arrays: Vec<Array>,
    arrange: fn(Vec<Array>) -> G,
}

impl<G> Drop for Watch<G> {
    fn drop(&mut self) {
        self.home.watches.end(&self.log);
        self.home.count_room_again();
    }
}

impl<G> fmt::Debug for Watch<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watch({} of '{}')", self.arrays.len(), &*self.home.name)
    }
}

impl Session {
    /// Begins to follow the values that this session computes from some arrays of floats. Values that were recorded
    /// before, or by another session, are constants to the watch.
    ///
    /// # Errors
    /// The first array's fault; `ErrorKind::DType` for an array that is not of floats; `ErrorKind::Ownership` for one of
    /// another runtime, or of another session that did not share it.
    #[track_caller]
    pub fn watch<W: Watchable>(&self, arrays: W) -> Result<Watch<W::Gradients>> {
        Watch::begin(self.home(), &arrays.arrays(), W::arranged, Location::caller())
    }

    /// Calls `f`, whose result must have one element, and returns that result and its gradient by each array.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("values").open();
    /// let x = s.from_slice(&[1.0f64, 2.0], 2)?;
    /// let (value, gradient) = s.value_and_gradient(&x, |x| Ok(x.square().sum(..)))?;
    /// assert_eq!(value.gather_blocking::<f64>()?[0], 5.0);
    /// assert_eq!(gradient.gather_blocking::<f64>()?.as_slice(), [2.0, 4.0]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Session::watch`], of `f` and of [`Watch::gradients`].
    #[track_caller]
    pub fn value_and_gradient<W: Watchable>(
        &self,
        arrays: W,
        f: impl FnOnce(W) -> Result<Array>,
    ) -> Result<(Array, W::Gradients)> {
        let at = Location::caller();
        let watch = Watch::begin(self.home(), &arrays.arrays(), W::arranged, at)?;
        let value = f(arrays)?;
        let gradients = watch.gradients_at(&value, at)?;
        Ok((value, gradients))
    }

    /// Calls `f` and returns its value together with the value's derivative in the direction of `tangents`, one for each
    /// array (forward mode). It costs about as much as `f` again, whatever the number of arrays.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("tangents").open();
    /// let (x, direction) = (s.from_slice(&[1.0f64, 2.0], 2)?, s.from_slice(&[1.0, 0.0], 2)?);
    /// let (value, tangent) = s.jvp(&x, &direction, |x| Ok(x.square() * 0.5))?;
    /// assert_eq!(value.gather_blocking::<f64>()?.as_slice(), [0.5, 2.0]);
    /// assert_eq!(tangent.gather_blocking::<f64>()?.as_slice(), [1.0, 0.0]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Session::watch`], of `f` and of [`Watch::jvp`].
    #[track_caller]
    pub fn jvp<W: Watchable>(
        &self,
        arrays: W,
        tangents: impl Watchable,
        f: impl FnOnce(W) -> Result<Array>,
    ) -> Result<(Array, Array)> {
        let at = Location::caller();
        let watch = Watch::begin(self.home(), &arrays.arrays(), W::arranged, at)?;
        let tangents = watch.fitted(&tangents.arrays(), "jvp", at)?;
        let value = f(arrays)?;
        let tangent = watch.pushed(&value, &tangents, "jvp", at)?;
        Ok((value, tangent))
    }

    /// The product of the matrix of second derivatives of `f`, one element, with vectors, one for each array: the
    /// derivative of the gradient in their direction. The matrix itself is never computed.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("curvature").open();
    /// let (x, v) = (s.from_slice(&[1.0f64, 2.0], 2)?, s.from_slice(&[1.0, 1.0], 2)?);
    /// let curved = s.hvp(&x, &v, |x| Ok((x.square() * x).sum(..)))?;
    /// assert_eq!(curved.gather_blocking::<f64>()?.as_slice(), [6.0, 12.0]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Session::value_and_gradient`]; `ErrorKind::Argument` for another number of vectors, and
    /// `ErrorKind::Shape` for other shapes.
    #[track_caller]
    pub fn hvp<W: Watchable>(
        &self,
        arrays: W,
        vectors: impl Watchable,
        f: impl FnOnce(W) -> Result<Array>,
    ) -> Result<W::Gradients> {
        let at = Location::caller();
        let all = arrays.arrays();
        let outer = Watch::begin(self.home(), &all, W::arranged, at)?;
        let vectors = outer.fitted(&vectors.arrays(), "hvp", at)?;
        let inner = Watch::begin(self.home(), &all, |gradients| gradients, at)?;
        let gradients = inner.gradients_at(&f(arrays)?, at)?;
        drop(inner);
        // If `f` is linear in an array, the gradient by it does not depend on the watched arrays, and its second
        // derivatives are zero.
        let followed = gradients.iter().zip(&vectors).filter(|(gradient, _)| outer.log.step_of(gradient).is_some());
        let seeds: Vec<(&Array, &Array)> = followed.collect();
        outer.pulled_of(&seeds, "hvp", at).map(outer.arrange)
    }
}

impl<G> Watch<G> {
    fn begin(home: &Arc<Home>, arrays: &[Array], arrange: fn(Vec<Array>) -> G, at: At) -> Result<Watch<G>> {
        let begun = arrays.iter().try_for_each(|array| match Arc::ptr_eq(home, &array.0.home) {
            true => Ok(()),
            false => check_readable(home, array),
        });
        let log = begun.and_then(|()| home.watches.begin(home.id, arrays, home.site(at)));
        let log = log.map_err(|error| error.with_op("watch").with_location(at))?;
        home.count_room_again();
        Ok(Watch { home: home.clone(), log, arrays: arrays.to_vec(), arrange })
    }

    /// The gradients of `loss`, which has one element, by the watched arrays. Each has the shape and dtype of its
    /// array; it is zero if the loss does not depend on the array.
    ///
    /// # Errors
    /// The loss's fault; `ErrorKind::Shape` for more than one element ([`Watch::vjp`] takes any number);
    /// `ErrorKind::Argument` for a loss that was recorded before the watch began; `ErrorKind::NoDerivative`, with op
    /// and source line, if the loss depends on an array through an op that has no derivative; `ErrorKind::Overloaded`
    /// if there is no room to record the gradients.
    #[track_caller]
    pub fn gradients(&self, loss: &Array) -> Result<G> {
        self.gradients_at(loss, Location::caller())
    }

    fn gradients_at(&self, loss: &Array, at: At) -> Result<G> {
        let one = self.one_for(loss, at)?;
        self.pulled(loss, &one, "gradients", at).map(self.arrange)
    }

    /// The cotangent of a loss, which has one element: 1.
    fn one_for(&self, loss: &Array, at: At) -> Result<Array> {
        let meta = loss.meta()?;
        if !meta.shape.is_scalar() {
            let shape = &meta.shape;
            let message =
                format!("gradients() takes a loss of one element, and this one is {shape}; vjp() takes any shape");
            return Err(Error::new(ErrorKind::Shape, message).with_op("gradients").with_location(at));
        }
        Recorder { home: &self.home, at }.full(meta.clone(), 1.0)
    }

    /// Multiplies `cotangent` (of the shape of `value`, or expanding to it) by the Jacobian of `value` with respect to each
    /// watched array.
    ///
    /// If the arrays have one slice for each sample, so have the gradients. In this example each sample has weights of
    /// its own.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("samples").open();
    /// let samples = s.from_slice(&[1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])?;
    /// let w = s.from_slice(&[0.5, -0.5], [2, 1])?;
    /// let per_sample = w.broadcast_to([2, 3]);
    /// let watch = s.watch(&per_sample)?;
    /// let losses = (&per_sample * &samples).sum(0).square();
    /// let gradients = watch.vjp(&losses, &s.ones::<f64>([1, 3]))?;
    /// assert_eq!(gradients.gather_blocking::<f64>()?.as_slice(), [-1.0, -2.0, -3.0, -4.0, -5.0, -6.0]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Watch::gradients`]; `ErrorKind::Shape` for a cotangent that does not expand to the value.
    #[track_caller]
    pub fn vjp(&self, value: &Array, cotangent: &Array) -> Result<G> {
        self.pulled(value, cotangent, "vjp", Location::caller()).map(self.arrange)
    }

    /// The tangent of `value` in the direction of tangents of the watched arrays, one for each, of its shape or expanding
    /// to it: the product of the Jacobian with them.
    ///
    /// # Errors
    /// As [`Watch::gradients`], for a value of any shape; `ErrorKind::Argument` for another number of tangents, and
    /// `ErrorKind::Shape` for one that does not expand to its array.
    #[track_caller]
    pub fn jvp(&self, value: &Array, tangents: impl Watchable) -> Result<Array> {
        let (tangents, at) = (tangents.arrays(), Location::caller());
        self.pushed(value, &self.fitted(&tangents, "jvp", at)?, "jvp", at)
    }

    /// The cotangents of the watched arrays that follow from a cotangent of `value`. Errors name `asked`, the method.
    fn pulled(&self, value: &Array, cotangent: &Array, asked: &'static str, at: At) -> Result<Vec<Array>> {
        self.pulled_of(&[(value, cotangent)], asked, at)
    }

    /// The cotangents of the watched arrays that follow from cotangents of values.
    fn pulled_of(&self, seeds: &[(&Array, &Array)], asked: &'static str, at: At) -> Result<Vec<Array>> {
        let seeds = seeds.iter().map(|(value, cotangent)| {
            let step = self.step_of(value, asked, at)?;
            Ok((step, alike(&self.home, cotangent, value.meta()?, asked, at)?))
        });
        let watched = pull::pull(&self.home, &self.log, seeds.collect::<Result<_>>()?, Wanted::default())?;
        let recorder = Recorder { home: &self.home, at };
        let gradients = self.arrays.iter().map(|array| {
            let step = self.step_of(array, asked, at)?;
            match watched.get(&step) {
                Some(gradient) => Ok(gradient.clone()),
                None => recorder.zeros(array.meta()?.clone()),
            }
        });
        gradients.collect()
    }

    /// The tangent of `value` that follows from tangents of the watched arrays, in the dtypes and shapes of these.
    fn pushed(&self, value: &Array, tangents: &[Array], asked: &'static str, at: At) -> Result<Array> {
        let recorder = Recorder { home: &self.home, at };
        let end = self.step_of(value, asked, at)?;
        let mut of_steps = Tangents::default();
        for (array, tangent) in self.arrays.iter().zip(tangents) {
            let step = self.step_of(array, asked, at)?;
            let sum = recorder.added(of_steps.remove(&step), tangent.clone())?;
            of_steps.insert(step, sum);
        }
        match push::push(&self.home, &self.log, end, of_steps)? {
            Some(tangent) => Ok(tangent),
            None => recorder.zeros(value.meta()?.clone()),
        }
    }

    /// One vector for each watched array, in the array's dtype and shape.
    fn fitted(&self, vectors: &[Array], asked: &'static str, at: At) -> Result<Vec<Array>> {
        if vectors.len() != self.arrays.len() {
            let message = format!("{} vectors for {} watched arrays", vectors.len(), self.arrays.len());
            return Err(Error::new(ErrorKind::Argument, message).with_op(asked).with_location(at));
        }
        let pairs = vectors.iter().zip(&self.arrays);
        pairs.map(|(vector, array)| alike(&self.home, vector, array.meta()?, asked, at)).collect()
    }

    /// The step of a value that the watch follows.
    fn step_of(&self, value: &Array, asked: &'static str, at: At) -> Result<u32> {
        value.meta()?;
        self.log.step_of(value).ok_or_else(|| {
            let message = "the watch did not see this array being computed from a watched array: a watch sees only ops \
                           that its own session records while the watch lives";
            Error::new(ErrorKind::Argument, message).with_op(asked).with_location(at)
        })
    }
}

/// A cotangent or tangent in the dtype and shape of its value. Errors name `asked`, the method that takes it.
fn alike(home: &Arc<Home>, vector: &Array, value: &Meta, asked: &'static str, at: At) -> Result<Array> {
    let own = vector.shape()?;
    rules::expands(own, &value.shape).map_err(|error| error.with_op(asked).with_location(at))?;
    Recorder { home, at }.alike(vector, value)
}
