//! Random numbers.
//!
//! In: what a program asks of a session. Out: `Op::Random` nodes with the session's next key, and ops on them. Parameters
//! that are arrays are checked by `Op::Ensure` nodes, known ones at once.

mod choice;
mod distributions;

use super::dims::IntoShape;
use super::handle::Array;
use super::record::{At, cast_in, check_readable};
use super::session::Session;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{DType, Dist, Element, Op, Scalar, Shape};
use crate::host_buffer::HostBuffer;
use crate::kernels::random;
use std::ops::Range;
use std::panic::Location;
use std::sync::Arc;

impl Session {
    /// Uniform random numbers in [0, 1), f32 or f64; the same on every device.
    #[track_caller]
    pub fn rand<T: Element>(&self, shape: impl IntoShape) -> Array {
        self.random(Dist::Uniform, T::DTYPE, shape, &[], Location::caller())
    }

    /// Standard normal random numbers, f32 or f64.
    #[track_caller]
    pub fn randn<T: Element>(&self, shape: impl IntoShape) -> Array {
        self.random(Dist::Normal, T::DTYPE, shape, &[], Location::caller())
    }

    /// `n` random numbers in memory, computed at once. They are the numbers that [`Session::rand`] (or
    /// [`Session::randn`], if `normal`) would have drawn here, and count as one op of the session.
    ///
    /// # Errors
    /// `ErrorKind::DType` where `T` is not f32 or f64, `ErrorKind::TooLarge` for more elements than an array may have.
    #[track_caller]
    pub fn draw<T: Element>(&self, normal: bool, n: usize) -> Result<Vec<T>> {
        let at = Location::caller();
        let named = |error: Error| error.with_op("rand").with_location(at);
        as_floats(T::DTYPE).map_err(named)?;
        Shape::new(&[n]).map_err(named)?;
        let key = self.home().next_random_key();
        let words = key.words();
        let dist = if normal { Dist::Normal } else { Dist::Uniform };
        let mut out = HostBuffer::zeroed(T::DTYPE, n);
        random::fill(dist, T::DTYPE, words, 0, None, out.bytes_mut().expect("BUF-2: a fresh buffer is owned"), n);
        Ok(out.as_slice::<T>().unwrap_or_default().to_vec())
    }

    /// Random integers in a range, as `T`, each with the same probability; the same on every device.
    ///
    /// The range must fit `i32`, `u32` where `T` is that, and `i64` where `T` is that or a float. Beyond `i32`, and for
    /// all that `i32` holds, a number takes 64 random bits, and a GPU needs 64-bit integers.
    ///
    /// There is no bias: bits that would give one are drawn again, up to 128 times; the chance that these do not suffice is
    /// below 2^-128.
    #[track_caller]
    pub fn randi<T: Element>(&self, range: Range<i64>, shape: impl IntoShape) -> Array {
        let at = Location::caller();
        let drawn = if T::DTYPE == DType::U32 { DType::U32 } else { DType::I32 };
        let (least, greatest) =
            if drawn == DType::U32 { (0, u32::MAX as i64) } else { (i32::MIN as i64, i32::MAX as i64) };
        let fits = range.start >= least && range.end <= greatest + 1;
        let is_all = range.start == least && range.end == greatest + 1;
        if range.start >= range.end || (!fits && T::DTYPE != DType::I64 && !T::DTYPE.is_float()) {
            let message = format!("{} to {} is no range of {drawn} to draw from", range.start, range.end);
            return Array::faulty(self.home(), Error::new(ErrorKind::Argument, message), "randi", at);
        }
        if !fits || (is_all && T::DTYPE != drawn) {
            let last = range.end.wrapping_sub(1).wrapping_sub(range.start);
            let args = [Scalar::I64(range.start), Scalar::I64(last)];
            return cast_in(self.home(), &self.random(Dist::Wide, DType::I64, shape, &args, at), T::DTYPE, at);
        }
        // 2^32 values, which only all of them are, count as 0.
        let span = range.end.wrapping_sub(range.start) as u32;
        let args = [Scalar::I64(range.start).cast(drawn), Scalar::U32(span)];
        let drawn = self.random(Dist::Integer, drawn, shape, &args, at);
        cast_in(self.home(), &drawn, T::DTYPE, at)
    }

    fn random(&self, dist: Dist, dtype: DType, shape: impl IntoShape, args: &[Scalar], at: At) -> Array {
        let op = Op::Random { dist, key: self.home().next_random_key() };
        match (dist.has_range(), as_floats(dtype)) {
            (false, Err(error)) => Array::faulty(self.home(), error, op.name(), at),
            _ => self.made(op, shape, dtype, args, at),
        }
    }
}

impl Session {
    /// That a draw of this session may read an array, which is its own or was shared.
    fn may_read(&self, array: &Array) -> Result<()> {
        if Arc::ptr_eq(self.home(), &array.0.home) { Ok(()) } else { check_readable(self.home(), array) }
    }
}

/// That numbers which are no integers have a float dtype.
fn as_floats(dtype: DType) -> Result<()> {
    if dtype.is_float() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::DType, format!("these random numbers are f32 or f64, not {dtype}")))
}
