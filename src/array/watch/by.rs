//! Gradients by any value that a watch follows, and gradients that the watch itself follows, for programs that learn only
//! while they run by which values they differentiate, and how often: interpreters.
//!
//! In: a loss, and values on which it depends. Out: its gradients, as ordinary arrays of the session.

use super::pull::{self, Wanted};
use super::{Watch, Watchable};
use crate::array::handle::Array;
use crate::array::record::At;
use crate::array::recorder::Recorder;
use crate::error::Result;
use std::panic::Location;

impl<G> Watch<G> {
    /// Returns whether the watch follows an array: whether the array is watched, or was computed from a watched one by this
    /// session while the watch lived. An array that carries a fault is not followed.
    pub fn follows(&self, array: &Array) -> bool {
        self.log.step_of(array).is_some()
    }

    /// The gradients of `loss`, which has one element, by any arrays that the watch follows: watched ones, or values that
    /// were computed from them on the way to the loss. Each gradient has the shape and dtype of its array; it is zero if
    /// the loss does not depend on the array.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("middle").open();
    /// let x = s.from_slice(&[1.0f64, 2.0], 2)?;
    /// let watch = s.watch(&x)?;
    /// let y = x.square();
    /// let loss = y.square().sum(..);
    /// let [by_x, by_y] = watch.gradients_by(&loss, [&x, &y])?;
    /// assert_eq!(by_x.gather_blocking::<f64>()?.as_slice(), [4.0, 32.0]);
    /// assert_eq!(by_y.gather_blocking::<f64>()?.as_slice(), [2.0, 8.0]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Watch::gradients`]; `ErrorKind::Argument` for an array that the watch does not follow.
    #[track_caller]
    pub fn gradients_by<B: Watchable>(&self, loss: &Array, by: B) -> Result<B::Gradients> {
        self.by(loss, &by.arrays(), false, Location::caller()).map(B::arranged)
    }

    /// Returns the same as [`Watch::gradients_by`]. The watch follows the ops that are recorded for these gradients, too, so
    /// that it has the gradients of what is computed from them. It keeps the values that their rules read.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("second").open();
    /// let x = s.from_slice(&[1.0f64, 2.0], 2)?;
    /// let watch = s.watch(&x)?;
    /// let first = watch.followed_gradients_by(&(x.square() * &x).sum(..), &x)?;
    /// let second = watch.gradients_by(&first.sum(..), &x)?;
    /// assert_eq!(second.gather_blocking::<f64>()?.as_slice(), [6.0, 12.0]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Watch::gradients_by`].
    #[track_caller]
    pub fn followed_gradients_by<B: Watchable>(&self, loss: &Array, by: B) -> Result<B::Gradients> {
        self.by(loss, &by.arrays(), true, Location::caller()).map(B::arranged)
    }

    fn by(&self, loss: &Array, by: &[Array], follows: bool, at: At) -> Result<Vec<Array>> {
        let asked = "gradients_by";
        let one = self.one_for(loss, at)?;
        let step = self.step_of(loss, asked, at)?;
        let steps = by.iter().map(|array| self.step_of(array, asked, at)).collect::<Result<Vec<u32>>>()?;
        let found = pull::pull(&self.home, &self.log, vec![(step, one)], Wanted { by: &steps, follows })?;
        let recorder = Recorder { home: &self.home, at };
        let gradients = steps.iter().zip(by).map(|(step, array)| match found.get(step) {
            Some(gradient) => Ok(gradient.clone()),
            None => recorder.zeros(array.meta()?.clone()),
        });
        gradients.collect()
    }
}
