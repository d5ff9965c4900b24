//! Writes the entry point of a rolled map: a loop around the body's instructions that differ from turn to turn.
//!
//! In: a kernel that is a loop (IR-8). Out: `main`'s statements. Values that are the same in all turns are computed
//! before the loop. Carried values are variables. The stores come after the loop.
//!
//! Mesa's software device stops a loop silently at 65,535 turns. A launch has fewer (`scheduler/loops.rs`).

use super::body::Body;
use super::forms::map_places;
use super::types::typed;
use crate::kernels::ir::{InstOp, Rolled, Val};

pub(super) fn map(body: &mut Body) {
    let Some(rolled) = &body.kernel.rolled else { return };
    let varies = body.kernel.varies();
    map_places(body);
    for (number, varies) in varies.iter().enumerate() {
        if !varies {
            body.instruction(Val(number as u32));
        }
    }
    for (number, carry) in rolled.carries.iter().enumerate() {
        let InstOp::Load { operand, index, run, guard } = body.kernel.inst(carry.here).op else { return };
        let ty = typed(body.kernel.inst(carry.here).dtype, body.width);
        body.load(&format!("first{number}"), carry.here, operand, index, run, guard);
        body.line(format!("var carried{number}: {ty} = first{number};"));
    }
    let turns = body.memory.parameter(rolled.turns as usize);
    body.line(format!("for (var turn = 0u; turn < {turns}; turn++) {{"));
    body.line(format!("let row = {}u + turn * {}u;", rolled.rows, body.kernel.row_words()));
    for (number, _) in varies.iter().enumerate().filter(|(_, varies)| **varies) {
        let val = Val(number as u32);
        match body.kernel.carried_by(number) {
            Some(carry) => body.line(format!("let {} = carried{carry};", body.name(val))),
            None => body.instruction(val),
        }
    }
    for (number, carry) in rolled.carries.iter().enumerate() {
        body.line(format!("carried{number} = {};", body.value(carry.next, body.width)));
    }
    body.line("}");
    name_results(body, rolled, &varies);
    body.element_stores();
}

/// Declares the names of the last turn's values after the loop, for the stores.
fn name_results(body: &mut Body, rolled: &Rolled, varies: &[bool]) {
    let mut named: Vec<Val> = Vec::new();
    for (number, carry) in rolled.carries.iter().enumerate() {
        if varies[carry.next.0 as usize] && !named.contains(&carry.next) {
            named.push(carry.next);
            body.line(format!("let {} = carried{number};", body.name(carry.next)));
        }
    }
}
