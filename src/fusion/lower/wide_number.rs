//! `i64` beside a number of f64 as instructions: what `graph::wide` writes down.
//!
//! In: its ops. Out: instructions whose numbers are parameters. Must hold: where kernels are compiled the number
//! decides nothing but these (WIDE-2); elsewhere it may.

use super::Lowering;
use crate::fusion::builder::Origin;
use crate::graph::wide::{self, Emit};
use crate::graph::{DType, ElementOp, Scalar};
use crate::kernels::ir::Val;

/// Writes the ops of one node down.
pub(super) struct Emitter<'e, 'a, 'r> {
    pub(super) lowering: &'e mut Lowering<'a, 'r>,
    pub(super) node: u32,
    /// Numbers so far, which name their parameters.
    pub(super) numbers: u8,
}

impl Emit for Emitter<'_, '_, '_> {
    type Value = Val;

    fn op(&mut self, op: ElementOp, args: &[Val]) -> Val {
        let builder = &mut self.lowering.builder;
        let last = args.last().map_or(DType::I64, |&last| builder.dtype_of(last));
        builder.apply(op, args, wide::output(op, last))
    }

    fn number(&mut self, number: i64) -> Val {
        let origin = Origin::Attribute(self.node, self.numbers);
        self.numbers += 1;
        self.lowering.builder.scalar(origin, Scalar::I64(number))
    }

    fn float(&mut self, op: ElementOp, x: &Val, number: f64, reversed: bool) -> Option<Val> {
        if !self.lowering.device.has(DType::F64) {
            return None;
        }
        let origin = Origin::Attribute(self.node, self.numbers);
        self.numbers += 1;
        let builder = &mut self.lowering.builder;
        let (x, number) = (builder.cast(*x, DType::F64), builder.scalar(origin, Scalar::F64(number)));
        let args = if reversed { [number, x] } else { [x, number] };
        let result = builder.apply(op, &args, DType::F64);
        Some(builder.cast(result, DType::I64))
    }

    fn chooses(&self) -> bool {
        !self.lowering.device.capabilities.compiles
    }
}
