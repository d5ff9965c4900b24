//! Derivatives of Fourier transforms. A transform is linear: forward mode transforms the tangents; reverse mode uses
//! the transform with the opposite sign and the other convention for the division by the length.
//!
//! Must hold: the cotangents of an array's two parts are the derivatives by its real and by its imaginary parts.

use super::pull::{Shares, Steps};
use super::reductions::not_written;
use super::step::Step;
use crate::array::handle::Array;
use crate::array::recorder::Recorder;
use crate::error::Result;
use crate::graph::{ElementOp, Fourier, Meta, Op, Parts, Spectrum};

impl Steps {
    /// The cotangents of the arguments of a transform.
    pub fn adjoint(&self, step: &Step, op: &Op, above: &Array) -> Result<Shares> {
        let own = step.args.first().and_then(|argument| argument.meta.as_ref());
        let (Some(fourier), Some(own)) = (op.as_fourier(), own) else { return Err(not_written(op.name())) };
        let (r, dim) = (self.recorder(step), usize::from(fourier.dim));
        let back = r.resized(&transformed_back(&r, fourier, above)?, dim, own.shape.dim(dim))?;
        let parts_at = back.shape()?.axes() - 1;
        let part = |slot: usize| {
            let is_part = fourier.parts_back() == 2 && fourier.parts != Parts::Together;
            let share = if is_part { r.part(&back, parts_at, slot, 1)? } else { back.clone() };
            Ok((slot, r.reshape(&share, own.shape.clone())?))
        };
        self.followed(step).map(|(slot, _)| part(slot)).collect()
    }
}

/// The transposed transform of `above`, with as many elements along its dimension as the transform takes.
fn transformed_back(r: &Recorder<'_>, fourier: Fourier, above: &Array) -> Result<Array> {
    let len = f64::from(fourier.len);
    match (fourier.spectrum, fourier.inverse) {
        (Spectrum::Full, inverse) => {
            let back = Fourier { inverse: !inverse, parts: Parts::Together, ..fourier };
            r.scaled(&transformed(r, back, above)?, if inverse { 1.0 / len } else { len })
        }
        // The inverse counts each element that has a mirror image twice, and divides by the length.
        (Spectrum::Half, false) => {
            let weighted = weighted(r, fourier, above, len, len / 2.0)?;
            transformed(r, Fourier { inverse: true, parts: Parts::Together, ..fourier }, &weighted)
        }
        (Spectrum::Half, true) => {
            let spectrum = transformed(r, Fourier { inverse: false, parts: Parts::Real, ..fourier }, above)?;
            weighted(r, fourier, &spectrum, 1.0 / len, 2.0 / len)
        }
    }
}

/// A half spectrum, times `alone` where an element has no mirror image, and times `twice` elsewhere.
fn weighted(r: &Recorder<'_>, fourier: Fourier, spectrum: &Array, alone: f64, twice: f64) -> Result<Array> {
    let (own, dim) = (spectrum.meta()?, usize::from(fourier.dim));
    let last = Fourier::half(fourier.len) - 1;
    let at = r.positions_along(&own.shape, 1 << dim)?;
    let mut is_alone = r.binary(ElementOp::Eq, &at, 0u32)?;
    if fourier.len.is_multiple_of(2) {
        let is_last = r.binary(ElementOp::Eq, &at, last)?;
        is_alone = r.binary(ElementOp::Or, &is_alone, &is_last)?;
    }
    r.select(&is_alone, &r.scaled(spectrum, alone)?, &r.scaled(spectrum, twice)?)
}

/// A transform of one argument.
fn transformed(r: &Recorder<'_>, fourier: Fourier, array: &Array) -> Result<Array> {
    let own = array.meta()?;
    let shape = fourier.shape_yielded(&fourier.parts.numbers(&own.shape)?)?;
    r.op(Op::Fourier(fourier), &[array], Meta { dtype: own.dtype, shape })
}
