//! Writes the entry point of form `Map` for loads that run across the flat index: transposes, and the ops fused with
//! them.
//!
//! The space is a stack of planes. A plane has `extent` rows of `stride` elements; the elements of a row are neighbours
//! in the flat index. A workgroup takes tiles of 32 by 32 elements of a plane. It loads a tile into workgroup memory
//! across the rows, in which direction the loaded elements are neighbours in memory. Then it works on the tile along
//! the rows, in which direction the stored elements are neighbours in memory.
//!
//! Must hold: WGSL-3: the loop over tiles depends on parameters and on the workgroup's number alone. The indices of
//! loads that run across depend on the flat index and on parameters alone.

use super::body::Body;
use super::forms::{Shared, no_fold};
use super::memory::Accessor;
use super::types::{storage, to_storage};
use crate::kernels::ir::{ACROSS_TILE, InstOp, Kernel, Level, Run, Val, WORKGROUP, header};
use crate::kernels::verify::arguments;

/// Elements from row to row of a tile in workgroup memory. This is one more than a row has, so that the elements of a
/// column lie in different banks.
const PITCH: u32 = ACROSS_TILE + 1;
/// Rows of a tile that the workgroup takes in one round.
const ROWS: u32 = WORKGROUP / ACROSS_TILE;

fn array(val: Val) -> String {
    format!("tile{}", val.0)
}

/// The expression that reads the element of a load across from workgroup memory, for the current round.
pub(super) fn taken(body: &Body, val: Val) -> String {
    format!("{}[tile_x * {PITCH}u + tile_y + {}u]", array(val), body.round * ROWS)
}

/// The loads that run across: the instruction, its operand and its index.
fn loads(kernel: &Kernel) -> Vec<(Val, u16, Val)> {
    let load = |(number, inst): (usize, &crate::kernels::ir::Inst)| match inst.op {
        InstOp::Load { operand, index, run: Run::Across { .. }, .. } => Some((Val(number as u32), operand, index)),
        _ => None,
    };
    kernel.insts.iter().enumerate().filter_map(load).collect()
}

/// The instructions of level `Element` that these indices depend on, in order.
fn cone(kernel: &Kernel, indices: impl Iterator<Item = Val>) -> Vec<Val> {
    let mut needed = vec![false; kernel.insts.len()];
    indices.for_each(|index| needed[index.0 as usize] = true);
    for number in (0..needed.len()).rev() {
        if needed[number] {
            arguments(&kernel.insts[number].op).iter().for_each(|arg| needed[arg.0 as usize] = true);
        }
    }
    let varies = |val: &Val| needed[val.0 as usize] && kernel.inst(*val).level == Level::Element;
    (0..needed.len() as u32).map(Val).filter(varies).collect()
}

/// Writes `main`'s statements.
pub(super) fn map(body: &mut Body, shared: &mut Shared) {
    let kernel = body.kernel;
    let (stride, extent) = kernel.across().expect("IR-5: a load runs across");
    let [begin, end] = [header::BEGIN, header::END].map(|slot| body.memory.parameter(slot));
    let [stride, extent] = [stride, extent].map(|slot| body.memory.parameter(slot as usize));
    let side = ACROSS_TILE;
    body.line(format!("let plane_size = {stride} * {extent};"));
    body.line(format!("let tiles_fast = ({stride} - 1u) / {side}u + 1u;"));
    body.line(format!("let tiles_slow = ({extent} - 1u) / {side}u + 1u;"));
    for (name, at) in [("first_row", begin.clone()), ("last_row", format!("({end} - 1u)"))] {
        let plane = format!("{at} / plane_size * tiles_slow");
        body.line(format!("let {name} = {plane} + {at} % plane_size / {stride} / {side}u;"));
    }
    body.line("let tiles = (last_row - first_row + 1u) * tiles_fast;");
    body.line(format!("let tile_x = lid % {side}u;"));
    body.line(format!("let tile_y = lid / {side}u;"));
    body.instructions(Level::Uniform, no_fold);
    body.line("for (var tile = group.y * groups.x + group.x; tile < tiles; tile += groups.x * groups.y) {");
    body.line("let row = first_row + tile / tiles_fast;");
    body.line(format!("let fast = tile % tiles_fast * {side}u;"));
    body.line(format!("let slow = row % tiles_slow * {side}u;"));
    body.line("let plane = row / tiles_slow * plane_size;");
    fill(body, shared, &stride, &extent);
    body.line("workgroupBarrier();");
    body.each_round(|body| {
        let [across, along, inside, flat] = ["across", "along", "inside", "flat"].map(|name| body.local(name));
        body.line(format!("let {along} = fast + tile_x;"));
        body.line(format!("let {across} = slow + tile_y + {}u;", body.round * ROWS));
        let place = format!("plane + min({across}, {extent} - 1u) * {stride} + min({along}, {stride} - 1u)");
        let wanted = body.local("wanted");
        body.line(format!("let {wanted} = {place};"));
        let within = format!("{wanted} >= {begin} && {wanted} < {end}");
        body.line(format!("let {inside} = {along} < {stride} && {across} < {extent} && {within};"));
        body.line(format!("let {flat} = clamp({wanted}, {begin}, {end} - 1u);"));
    });
    body.instructions(Level::Element, no_fold);
    body.element_stores();
    body.line("workgroupBarrier();");
    body.line("}");
}

/// Fills the tiles in workgroup memory. Neighbouring invocations load elements that are neighbours in memory.
fn fill(body: &mut Body, shared: &mut Shared, stride: &str, extent: &str) {
    let loads = loads(body.kernel);
    let cone = cone(body.kernel, loads.iter().map(|load| load.2));
    let rounds = body.kernel.rounds();
    // These rounds are numbered after the body's, so that their names differ.
    let each = |body: &mut Body, write: &mut dyn FnMut(&mut Body, u32)| {
        for round in 0..rounds {
            body.round = rounds + round;
            write(body, round * ROWS);
        }
        body.round = 0;
    };
    each(body, &mut |body, row| {
        let along = format!("min(fast + tile_y + {row}u, {stride} - 1u)");
        let across = format!("min(slow + tile_x, {extent} - 1u)");
        let flat = body.local("flat");
        body.line(format!("let {flat} = plane + {across} * {stride} + {along};"));
    });
    for val in cone {
        each(body, &mut |body, _| body.instruction(val));
    }
    for &(val, operand, index) in &loads {
        let dtype = body.kernel.inst(val).dtype;
        shared.insert(array(val), format!("array<{}, {}>", storage(dtype), PITCH * ACROSS_TILE));
        each(body, &mut |body, _| {
            let (name, index) = (body.local(&format!("loaded{}", val.0)), body.name(index));
            let element = body.memory.load(operand, Accessor::Load, &index);
            body.line(format!("let {name} = {element};"));
        });
    }
    for &(val, ..) in &loads {
        let dtype = body.kernel.inst(val).dtype;
        each(body, &mut |body, row| {
            let loaded = to_storage(dtype, 1, &body.local(&format!("loaded{}", val.0)));
            body.line(format!("{}[(tile_y + {row}u) * {PITCH}u + tile_x] = {loaded};", array(val)));
        });
    }
}
