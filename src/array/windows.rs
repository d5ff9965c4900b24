//! Window functions, by which lines are multiplied before they are transformed.
//!
//! In: a length. Out: a column, recorded as cosines of points. Must hold: windows are symmetric, up to rounding. A window
//! of one point is 1.

use super::complex::Part;
use super::handle::Array;
use super::session::Session;

impl Session {
    /// The Hann window of `n` points, a column: `0.5 - 0.5 cos(2 pi i / (n - 1))`.
    ///
    /// ```
    /// # let rt = tidemill::Runtime::builder().device("host").start_blocking()?;
    /// # let s = rt.session("windows").open();
    /// assert_eq!(s.hann::<f64>(5).gather_blocking::<f64>()?.as_slice(), [0.0, 0.5, 1.0, 0.5, 0.0]);
    /// assert_eq!(s.hann::<f64>(1).gather_blocking::<f64>()?.as_slice(), [1.0]);
    /// # rt.shutdown_blocking()?;
    /// # Ok::<(), tidemill::Error>(())
    /// ```
    #[track_caller]
    pub fn hann<T: Part>(&self, n: usize) -> Array {
        window::<T>(self, n, [0.5, 0.5, 0.0])
    }

    /// The Hamming window of `n` points, a column: `0.54 - 0.46 cos(2 pi i / (n - 1))`.
    #[track_caller]
    pub fn hamming<T: Part>(&self, n: usize) -> Array {
        window::<T>(self, n, [0.54, 0.46, 0.0])
    }

    /// The Blackman window of `n` points, a column: `0.42 - 0.5 cos(2 pi i / (n - 1)) + 0.08 cos(4 pi i / (n - 1))`.
    #[track_caller]
    pub fn blackman<T: Part>(&self, n: usize) -> Array {
        window::<T>(self, n, [0.42, 0.5, 0.08])
    }
}

/// `a - b cos(pi x) + c cos(2 pi x)` at `n` points from 0 to 2.
#[track_caller]
fn window<T: Part>(session: &Session, n: usize, [a, b, c]: [f64; 3]) -> Array {
    if n == 1 {
        return session.ones::<T>([1, 1]);
    }
    let points = session.linspace(T::of(0.0), T::of(2.0), n).flatten();
    let once = a - points.cospi() * b;
    if c == 0.0 { once } else { once + (points * 2.0).cospi() * c }
}
