//! Emits the instructions of ops that take an `i64` and an f64 number, as `graph::wide` defines them.
//!
//! In: the ops of `graph::wide`. Out: instructions whose numbers are parameters. Must hold: on a device that compiles
//! kernels, the number changes parameters only, not instructions (WIDE-2); on other devices it may change both.

use super::Lowering;
use crate::fusion::builder::Origin;
use crate::graph::wide::{self, Emit};
use crate::graph::{DType, ElementOp, Scalar};
use crate::kernels::ir::Val;

/// Emits the ops of one node.
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

    fn may_depend_on_number(&self) -> bool {
        !self.lowering.device.capabilities.compiles
    }
}
