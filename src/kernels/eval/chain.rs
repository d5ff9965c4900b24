//! Chains: sequences of ops on floats, evaluated as one instruction. Only the next op of the chain reads an op's value.
//!
//! In: the instructions of a pass. Out: chains, each in the place of its last op; their values. No block is written
//! between the ops of a chain: the elements go through the whole chain in CPU registers (`element::chain`).

use super::frame::{Frame, Place, Value};
use super::operand;
use super::stage;
use crate::graph::ElementOp;
use crate::kernels::element::chain::{self, ChainOp, STEPS_MAX, Source};
use crate::kernels::ir::{InstOp, Kernel, Val};
use smallvec::SmallVec;

/// A chain of ops.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    /// The value that it begins with.
    first: Val,
    steps: SmallVec<[(ChainOp, Val); 4]>,
}

impl Chain {
    /// Calls `f` with every value that the chain reads.
    pub fn arguments(&self, mut f: impl FnMut(Val)) {
        f(self.first);
        self.steps.iter().for_each(|&(_, x)| f(x));
    }
}

/// Removes from the order all ops of chains but the last of each. Returns for each instruction the chain that ends
/// there, if any.
pub(super) fn find(kernel: &Kernel, order: &mut Vec<u32>, stores: &[u32]) -> Vec<Option<Box<Chain>>> {
    let mut uses = vec![0; kernel.insts.len()];
    for &at in order.iter() {
        stage::arguments(&kernel.insts[at as usize], |v| uses[v.0 as usize] += 1);
    }
    for &store in stores {
        stage::store_values(&kernel.stores[store as usize]).for_each(|v| uses[v.0 as usize] += 1);
    }
    stage::carried(kernel).for_each(|v| uses[v.0 as usize] += 1);
    let mut chains: Vec<Option<Box<Chain>>> = vec![None; kernel.insts.len()];
    let mut is_inside = vec![false; kernel.insts.len()];
    for &at in order.iter() {
        let inst = &kernel.insts[at as usize];
        let InstOp::Apply(op, args) = &inst.op else { continue };
        if *op == ElementOp::Square && inst.dtype.is_float() {
            let steps = smallvec::smallvec![(ChainOp::Mul, args[0])];
            chains[at as usize] = Some(Box::new(Chain { first: args[0], steps }));
            continue;
        }
        let steps_of = |v: Val| match &chains[v.0 as usize] {
            Some(chain) if uses[v.0 as usize] == 1 && chain.steps.len() < STEPS_MAX => chain.steps.len(),
            _ => 0,
        };
        let is_second = args.len() == 2 && steps_of(args[1]) > steps_of(args[0]);
        let Some(step) = ChainOp::of(*op, inst.dtype, is_second) else { continue };
        let (before, x) = if is_second { (args[1], args[0]) } else { (args[0], args[1]) };
        let mut chain = match steps_of(before) {
            0 => Box::new(Chain { first: before, steps: SmallVec::new() }),
            _ => {
                is_inside[before.0 as usize] = true;
                chains[before.0 as usize].take().expect("it has steps")
            }
        };
        chain.steps.push((step, x));
        chains[at as usize] = Some(chain);
    }
    order.retain(|&at| !is_inside[at as usize]);
    chains
}

impl Frame<'_> {
    /// The value of the chain that ends at instruction `at`.
    pub(super) fn chain(&mut self, at: usize, chain: &Chain, place: &Place) -> Value {
        let dtype = self.kernel.insts[at].dtype;
        let mut is_number = true;
        let mut source = |v: Val| match self.value(v) {
            Value::Block(block) => {
                is_number = false;
                Source::Block(block)
            }
            Value::Scalar(scalar) => Source::Number(scalar.bits()),
            other => panic!("IR-1: {v:?} is {other:?}"),
        };
        let first = source(chain.first);
        let mut steps = SmallVec::<[(ChainOp, Source); STEPS_MAX]>::new();
        for &(op, x) in &chain.steps {
            steps.push((op, source(x)));
        }
        if is_number {
            let mut word = [0u64; 1];
            let out = word.as_mut_ptr().cast::<u8>();
            // SAFETY: the word holds one element of the dtype, which is then written.
            return unsafe {
                chain::run(dtype, first, &steps, out, 1);
                Value::Scalar(operand::read_scalar(out, dtype))
            };
        }
        let out = self.output(at, place);
        // SAFETY: blocks and `out` hold the block's lanes. `out` is no argument's memory (EVAL-2), or it is an operand
        // that is loaded at the lanes where it is stored (`Stage::find_direct`).
        unsafe { chain::run(dtype, first, &steps, out, place.lanes) };
        Value::Block(out)
    }
}
