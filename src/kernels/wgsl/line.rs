//! Form `Line`: a workgroup holds whole lines in registers, and folds them as often as the kernel asks for.
//!
//! Each invocation has its fixed share of a line's elements, `rounds` groups of them that lie apart, so that neighbouring
//! invocations read neighbours in memory. The kernel is written fold by fold: what is known before the first, the first,
//! what is known before the second, and so on; then the stores. A value that is used behind a fold stays in registers; a
//! value that is used behind a fold only is computed, or loaded, there.
//!
//! Must hold:
//! - WGSL-3 and WGSL-4 (`forms`): an item's lanes are combined in a tree that the header fixes.
//! - Lanes past the end of a line, and items past the last one, have indices of elements that exist; they are folded by no
//!   lane and stored by none.

use super::body::{Body, component};
use super::forms::{Shared, folds, names, shared_name};
use super::monoid::Fold;
use super::types::{from_storage, register, splat, to_storage, typed};
use crate::kernels::ir::{InstOp, Kernel, Level, Lines, Val, header};
use crate::kernels::verify::arguments;

/// Lanes that one takes in at a step of the tree.
const BRANCHES_LOG2: u32 = 2;

/// Writes a kernel that holds lines.
pub(super) fn line(body: &mut Body, lines: Lines, shared: &mut Shared) {
    let folds = folds(body.kernel);
    item(body, lines);
    body.each_round(|body| places(body, lines));
    body.instructions(Level::Uniform, |_, _| {});
    body.instructions(Level::Outer, |_, _| {});
    let before = body.kernel.folds_before();
    let when = latest(body.kernel, &before);
    let last = when.iter().copied().max().unwrap_or(0);
    for stage in 0..=last {
        for number in 0..body.kernel.insts.len() {
            let val = Val(number as u32);
            if when[number] != stage {
                continue;
            }
            match (&body.kernel.inst(val).op, body.kernel.inst(val).level) {
                (InstOp::Reduce { .. }, _) => {
                    let known = folds.iter().find(|(of, _)| *of == val);
                    let (_, fold) = known.expect("IR-5: each fold is listed");
                    own_share(body, val, fold);
                }
                (_, Level::Reduced) => body.instruction(val),
                (_, Level::Element) => body.each_round(|body| body.instruction(val)),
                (_, Level::Uniform | Level::Outer) => {}
            }
        }
        for (val, fold) in folds.iter().filter(|(val, _)| when[val.0 as usize] == stage) {
            combine(body, *val, fold, shared);
        }
    }
    body.line("if (live && lane == 0u) {");
    body.outer_stores();
    body.line("}");
    body.element_stores();
}

/// Behind how many folds each instruction is written: folds and what is made of them alone as early as can be, values of
/// elements where they are used first.
fn latest(kernel: &Kernel, before: &[u32]) -> Vec<u32> {
    let end =
        kernel.insts.iter().zip(before).map(|(inst, before)| before + is_fold(&inst.op) as u32).max().unwrap_or(0);
    let mut used = vec![u32::MAX; kernel.insts.len()];
    for store in &kernel.stores {
        for val in [Some(store.value), store.index, store.guard].into_iter().flatten() {
            used[val.0 as usize] = end;
        }
    }
    let mut when = before.to_vec();
    for (number, inst) in kernel.insts.iter().enumerate().rev() {
        let is_element = inst.level == Level::Element && !is_fold(&inst.op);
        if is_element && used[number] != u32::MAX {
            when[number] = used[number];
        }
        for arg in arguments(&inst.op) {
            let slot = &mut used[arg.0 as usize];
            *slot = (*slot).min(when[number]);
        }
    }
    when
}

fn is_fold(op: &InstOp) -> bool {
    matches!(op, InstOp::Reduce { .. })
}

/// Which line this invocation works on, and as which of its lanes.
fn item(body: &mut Body, lines: Lines) {
    let (begin, end) = (body.memory.parameter(header::BEGIN), body.memory.parameter(header::END));
    body.line(format!("let lanes_log2 = {};", body.memory.parameter(header::LANES_LOG2)));
    body.line("let lanes = 1u << lanes_log2;");
    body.line(format!("let slots = {}u >> lanes_log2;", lines.workgroup));
    body.line("let lane = lid & (lanes - 1u);");
    body.line("let item = (group.y * groups.x + group.x) * slots + (lid >> lanes_log2);");
    body.line(format!("let live = item < {end} - {begin};"));
    body.line(format!("let outer = {begin} + min(item, {end} - {begin} - 1u);"));
    body.line(format!("let length = {};", body.memory.parameter(header::INNER)));
    body.line("let line_begin = outer * length;");
}

/// Where the elements of one of an invocation's groups lie. A group past the line's end stands at its last one.
fn places(body: &mut Body, lines: Lines) {
    let width = body.width;
    let [first, places, inside, inner, flat] =
        ["first", "places", "inside", "inner", "flat"].map(|name| body.local(name));
    body.line(format!("let {first} = (lane + {}u * lanes) * {width}u;", body.round));
    if width == 1 {
        body.line(format!("let {inside} = live && {first} < length;"));
        body.line(format!("let {inner} = min({first}, length - 1u);"));
        return body.line(format!("let {flat} = line_begin + {inner};"));
    }
    let offsets = "vec4<u32>(0u, 1u, 2u, 3u)";
    if lines.in_fours {
        let position = body.local("position");
        body.line(format!("let {inside} = vec4<bool>(live && {first} < length);"));
        body.line(format!("let {inner} = vec4<u32>(min({first}, length - 4u)) + {offsets};"));
        body.line(format!("let {position} = line_begin + {inner}.x;"));
        return body.line(format!("let {flat} = vec4<u32>({position}) + {offsets};"));
    }
    body.line(format!("let {places} = vec4<u32>({first}) + {offsets};"));
    body.line(format!("let {inside} = vec4<bool>(live) & ({places} < vec4<u32>(length));"));
    body.line(format!("let {inner} = min({places}, vec4<u32>(length - 1u));"));
    body.line(format!("let {flat} = vec4<u32>(line_begin) + {inner};"));
}

/// Folds an invocation's elements into the variables of the fold.
fn own_share(body: &mut Body, val: Val, fold: &Fold) {
    let width = body.width;
    let own = names(val, fold);
    let wide: Vec<String> = own.iter().map(|name| format!("{name}_lanes")).collect();
    for (number, dtype) in fold.components.iter().enumerate() {
        let of = |width| splat(register(*dtype), width, fold.identity(number));
        body.line(format!("var {}: {} = {};", wide[number], typed(*dtype, width), of(width)));
        body.line(format!("var {}: {} = {};", own[number], typed(*dtype, 1), of(1)));
    }
    let InstOp::Reduce { args, .. } = &body.kernel.inst(val).op else { return };
    body.each_round(|body| {
        let args: Vec<String> = args.iter().map(|arg| body.value(*arg, width)).collect();
        let inside = body.local("inside");
        let lines = fold.update(&mut body.functions, width, &wide, &args, Some(&inside));
        body.lines(lines);
    });
    let lines = fold.gather_levels(&mut body.functions, width, std::slice::from_ref(&wide));
    body.lines(lines);
    let lines = fold.fold_lanes(&mut body.functions, width, &own, &wide);
    body.lines(lines);
}

/// Combines the lanes of an item through workgroup memory, a few at a time; all of them know the result.
fn combine(body: &mut Body, val: Val, fold: &Fold, shared: &mut Shared) {
    let workgroup = body.kernel.workgroup();
    let own = names(val, fold);
    let arrays: Vec<String> = fold
        .components
        .iter()
        .enumerate()
        .map(|(number, dtype)| shared_name(shared, *dtype, number, workgroup))
        .collect();
    let publish = |body: &mut Body| {
        for ((array, name), dtype) in arrays.iter().zip(&own).zip(&fold.components) {
            body.line(format!("{array}[lid] = {};", to_storage(*dtype, 1, name)));
        }
    };
    let taken = |at: &str| -> Vec<String> {
        let of = |(array, dtype): (&String, _)| from_storage(dtype, 1, &format!("{array}[{at}]"));
        arrays.iter().zip(fold.components.iter().copied()).map(of).collect()
    };
    body.line("if (lanes > 1u) {");
    body.line("workgroupBarrier();");
    publish(body);
    body.line("workgroupBarrier();");
    body.line("for (var span = lanes; span > 1u;) {");
    body.line(format!("let part = max(span >> {BRANCHES_LOG2}u, 1u);"));
    body.line("if (lane < part) {");
    body.line("for (var from_lane = lane + part; from_lane < span; from_lane += part) {");
    body.line("let partner = lid - lane + from_lane;");
    let other: Vec<String> = (0..own.len()).map(|number| format!("other_{}", component(val, number))).collect();
    for (name, value) in other.iter().zip(taken("partner")) {
        body.line(format!("let {name} = {value};"));
    }
    let lines = fold.merge_lanes(&mut body.functions, 1, &own, &other);
    body.lines(lines);
    body.line("}");
    publish(body);
    body.line("}");
    body.line("span = part;");
    body.line("workgroupBarrier();");
    body.line("}");
    for (name, value) in own.iter().zip(taken("lid - lane")) {
        body.line(format!("{name} = {value};"));
    }
    body.line("}");
}
