//! Evaluates `InstOp::Check`, which clamps indices from data into their extent and sets a fault word if one lay
//! outside, and `InstOp::Require`, which sets a fault word if a condition does not hold.

use super::frame::{Frame, Value};
use super::{monoid, operand};
use crate::graph::Scalar;
use crate::kernels::ir::Val;
use std::sync::atomic::Ordering::Relaxed;

impl Frame<'_> {
    /// `InstOp::Check`.
    pub(super) fn check(
        &mut self,
        at: usize,
        index: Val,
        extent: Val,
        site: u32,
        guard: Option<Val>,
        lanes: usize,
    ) -> Value {
        let guard = self.guard(guard, lanes);
        let Value::Scalar(extent) = self.value(extent) else {
            return self.check_each(at, index, extent, site, guard, lanes);
        };
        let extent = extent.bits() as u32;
        match self.value(index) {
            Value::Scalar(scalar) => {
                let (clamped, outside) = clamp(as_wide(scalar), extent);
                if outside && guard.unwrap_or_else(|g| g.iter().any(|&on| on != 0)) {
                    self.fault(site);
                }
                Value::Scalar(Scalar::U32(clamped))
            }
            Value::Line { start, step } => {
                let last = start as i64 + step as i32 as i64 * (lanes as i64 - 1);
                if start < extent && (0..extent as i64).contains(&last) {
                    return Value::Line { start, step };
                }
                self.check_block(at, index, extent, site, guard, lanes)
            }
            _ => self.check_block(at, index, extent, site, guard, lanes),
        }
    }

    fn check_block(
        &mut self,
        at: usize,
        index: Val,
        extent: u32,
        site: u32,
        guard: std::result::Result<bool, &[u8]>,
        lanes: usize,
    ) -> Value {
        let dtype = self.dtype(index);
        let block = self.block(index, lanes, 0);
        let register = self.register(at);
        // SAFETY: a register holds BLOCK elements, apart from its arguments' (EVAL-2).
        let out = unsafe { std::slice::from_raw_parts_mut(register.cast::<u32>(), lanes) };
        let mut any = false;
        monoid::by_number!(dtype, T => {
            // SAFETY: a block of `lanes` elements of this dtype.
            let values = unsafe { std::slice::from_raw_parts(block.cast::<T>(), lanes) };
            for (lane, (slot, &x)) in out.iter_mut().zip(values).enumerate() {
                #[allow(clippy::unnecessary_cast)] // for one of the types
                let (clamped, outside) = clamp(x as i64, extent);
                *slot = clamped;
                any |= outside && guard.unwrap_or_else(|g| g[lane] != 0);
            }
        });
        if any {
            self.fault(site);
        }
        Value::Block(register)
    }

    /// Checks indices against an extent that differs from lane to lane.
    fn check_each(
        &mut self,
        at: usize,
        index: Val,
        extent: Val,
        site: u32,
        guard: std::result::Result<bool, &[u8]>,
        lanes: usize,
    ) -> Value {
        let dtype = self.dtype(index);
        let block = self.block(index, lanes, 0);
        let extents = self.indices(extent, lanes, 1);
        let register = self.register(at);
        let mut any = false;
        for lane in 0..lanes {
            // SAFETY: blocks of `lanes` elements; a register holds BLOCK.
            unsafe {
                let x = operand::read_scalar(block.add(lane * dtype.bytes()), dtype);
                let (clamped, outside) = clamp(as_wide(x), extents[lane % extents.len()]);
                register.cast::<u32>().add(lane).write(clamped);
                any |= outside && guard.unwrap_or_else(|g| g[lane] != 0);
            }
        }
        if any {
            self.fault(site);
        }
        Value::Block(register)
    }

    /// `InstOp::Require`.
    pub(super) fn require(&mut self, condition: Val, site: u32, guard: Option<Val>, lanes: usize) -> Value {
        let guard = self.guard(guard, lanes);
        let holds = match (self.guard(Some(condition), lanes), guard) {
            (Ok(true), _) | (_, Ok(false)) => true,
            (Ok(false), Ok(true)) => false,
            (Ok(false), Err(guard)) => !guard.iter().fold(false, |any, &on| any | (on != 0)),
            (Err(condition), Ok(true)) => condition.iter().fold(true, |all, &ok| all & (ok != 0)),
            (Err(condition), Err(guard)) => {
                condition.iter().zip(guard).fold(true, |all, (&ok, &on)| all & ((ok != 0) | (on == 0)))
            }
        };
        if !holds {
            self.fault(site);
        }
        Value::Absent
    }

    fn fault(&self, site: u32) {
        let number = self.scene.params[site as usize] as usize;
        let words = self.scene.faults.unwrap_or(&[]);
        assert!(number < words.len(), "EVAL-1: fault word {number} of {}", words.len());
        words[number].store(1, Relaxed);
    }
}

fn as_wide(scalar: Scalar) -> i64 {
    match scalar {
        Scalar::I64(v) => v,
        Scalar::U32(v) => v as i64,
        Scalar::I32(v) => v as i64,
        Scalar::U8(v) => v as i64,
        Scalar::Bool(v) => v as i64,
        Scalar::F32(_) | Scalar::F64(_) => panic!("IR-7: an index is an integer"),
    }
}

/// The nearest index within `0..extent`, and whether `index` lay outside.
fn clamp(index: i64, extent: u32) -> (u32, bool) {
    let last = extent.max(1) as i64 - 1;
    let clamped = index.clamp(0, last);
    (clamped as u32, clamped != index)
}
