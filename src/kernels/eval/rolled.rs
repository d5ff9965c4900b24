//! Runs rolled kernels: all turns of a loop over one block, with the carried values in registers.
//!
//! In: a kernel that is a loop (IR-8), a place. Out: the stores after the last turn. Must hold: a turn reads the
//! carried values of the turn before, in whatever order it computes the next ones. For that, two sets of registers are
//! used alternately.

use super::frame::{Frame, Place, Value};
use crate::kernels::ir::Rolled;
use smallvec::SmallVec;

impl Frame<'_> {
    /// Evaluates the stage of a loop at a place that is a block or a part of one.
    pub(super) fn evaluate_turns(&mut self, rolled: &Rolled, place: &Place) {
        let stage = self.stage;
        let (once, each) = stage.order.split_at(stage.once);
        for &at in once {
            let value = self.instruction(at as usize, place);
            self.set(at as usize, value);
        }
        let one = Place { lanes: 1, ..*place };
        let turns = self.kernel.turns(self.scene.params) as usize;
        for turn in 0..turns {
            self.row = turn * self.kernel.row_words() as usize;
            for &at in &stage.numbers {
                let value = self.instruction(at as usize, &one);
                self.set(at as usize, value);
            }
            for &at in each {
                let value = self.instruction(at as usize, place);
                self.set(at as usize, value);
            }
            if turn + 1 < turns {
                self.carry_over(rolled, turn % 2, place.lanes);
            }
        }
        self.row = 0;
        for &store in &stage.stores {
            self.store(store as usize, place);
        }
    }

    /// Copies the carried values from the end of a turn to the beginning of the next one.
    fn carry_over(&mut self, rolled: &Rolled, set: usize, lanes: usize) {
        // Collects the carried values of the next turn. They are set only when all are known.
        let mut next = SmallVec::<[(u32, Value); 8]>::new();
        for (number, carry) in rolled.carries.iter().enumerate() {
            self.materialise(carry.next, lanes);
            let value = match self.value(carry.next) {
                Value::Block(block) => {
                    let bytes = lanes * self.dtype(carry.next).bytes();
                    let register = self.carried(set, number);
                    // SAFETY: a register holds BLOCK elements, and this one belongs to the set that the turn did not
                    // read.
                    unsafe { std::ptr::copy_nonoverlapping(block, register, bytes) };
                    Value::Block(register)
                }
                other => other,
            };
            next.push((carry.here.0, value));
        }
        for (at, value) in next {
            self.set(at as usize, value);
        }
    }
}
