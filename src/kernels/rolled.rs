//! Rolled kernels: maps that run their body once for each turn of a loop, and keep the loop's state in registers
//! between turns.
//!
//! In: a kernel. Out: which of its values differ from turn to turn. The kernel loads its carried values before the
//! first turn and stores them after the last one. The numbers of a turn are a row of parameters.
//!
//! Must hold (checked by `verify`):
//! - IR-8: a rolled kernel is a map without faults and without loads across. Its carried values are loaded at the flat
//!   index, without a guard. It stores nothing but carried values, at the natural index.

use super::ir::{InstOp, Kernel, Val};
use super::verify::arguments;

/// The loop around a kernel's body.
///
/// The parameter words from `rows` on belong to the first turn. The words of the further turns follow, as many for
/// each, so that a launch has `rows + turns * row_words` words. The number of turns is a parameter, not part of the
/// kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rolled {
    /// The parameter word that holds the number of turns, at least 1.
    pub turns: u32,
    /// The first parameter word of a row.
    pub rows: u32,
    /// The values that go from one turn to the next.
    pub carries: Vec<Carry>,
}

/// A value that goes from one turn to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Carry {
    /// The value with which a turn begins: a load, which reads memory before the first turn only.
    pub here: Val,
    /// The value with which the next turn begins, and which is stored after the last turn.
    pub next: Val,
}

impl Kernel {
    /// Parameter words of a turn; 0 for a kernel that is not rolled.
    pub fn row_words(&self) -> u32 {
        self.rolled.as_ref().map_or(0, |rolled| self.params - rolled.rows)
    }

    /// How many times a launch with these parameter words runs the body.
    pub fn turns(&self, params: &[u32]) -> u32 {
        self.rolled.as_ref().map_or(1, |rolled| params[rolled.turns as usize])
    }

    /// The number of the carried value that instruction `at` loads, if it is such a load.
    pub fn carried_by(&self, at: usize) -> Option<usize> {
        let carries = self.rolled.as_ref().map_or(&[][..], |rolled| &rolled.carries);
        carries.iter().position(|carry| carry.here.0 as usize == at)
    }

    /// Tells for every instruction whether its value may differ from turn to turn.
    pub fn varies(&self) -> Vec<bool> {
        let mut varies = vec![false; self.insts.len()];
        let Some(rolled) = &self.rolled else { return varies };
        for (at, inst) in self.insts.iter().enumerate() {
            let is_of_turn = match inst.op {
                InstOp::Param(slot) => slot >= rolled.rows,
                InstOp::Random { key, .. } => key >= rolled.rows,
                _ => self.carried_by(at).is_some(),
            };
            varies[at] = is_of_turn || arguments(&inst.op).iter().any(|arg| varies[arg.0 as usize]);
        }
        varies
    }
}
