//! Writes the entry point of form `Line`: a workgroup holds whole lines in registers, and folds them as often as the
//! kernel needs.
//!
//! Each invocation has a fixed share of a line's elements: `rounds` groups that lie apart, so that neighbouring
//! invocations read neighbours in memory. The kernel is written fold by fold: the values that the first fold needs, the
//! first fold, the values that the second fold needs, and so on; then the stores. A value that is used both before and
//! after a fold stays in registers. A value that is used only after a fold is computed, or loaded, there. Moments take
//! two passes over the registers: the mean, then the deviations from it.
//!
//! Must hold:
//! - WGSL-3 and WGSL-4 (`forms`): an item's lanes are combined in a tree that the header words determine.
//! - Lanes past the end of a line, and items past the last one, have the indices of existing elements, but no lane
//!   folds or stores their values.

use super::body::{Body, component};
use super::forms::{Shared, folds, names, shared_name};
use super::monoid::Fold;
use super::types::{from_storage, is_not_finite, lanes, nan, one, register, splat, to_storage, typed, zero};
use crate::graph::{DType, ElementOp};
use crate::kernels::ir::{InstOp, Kernel, Level, Lines, Monoid, Val, header};
use crate::kernels::verify::arguments;

/// log2 of the lanes that become one in a step of the tree.
const BRANCHES_LOG2: u32 = 2;
/// The most arrays of workgroup memory that are used at a time. An array with a 32-bit word for each of 1,024
/// invocations takes a quarter of the memory that every GPU has.
const ARRAYS_MAX: usize = 4;

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
        for (number, _) in when.iter().enumerate().filter(|&(_, at)| *at == stage) {
            let val = Val(number as u32);
            match (&body.kernel.inst(val).op, body.kernel.inst(val).level) {
                (InstOp::Reduce { .. }, _) => {
                    let known = folds.iter().find(|(of, _)| *of == val);
                    let (_, fold) = known.expect("IR-5: each fold is listed");
                    own_share(body, val, fold, shared);
                }
                (_, Level::Reduced) => body.instruction(val),
                (_, Level::Element) => body.each_round(|body| body.instruction(val)),
                (_, Level::Uniform | Level::Outer) => {}
            }
        }
        let here = || folds.iter().filter(|(val, _)| when[val.0 as usize] == stage);
        combine_all(body, &here().map(|(val, fold)| first_pass(*val, fold)).collect::<Vec<_>>(), shared);
        let moments = || here().filter(|(_, fold)| fold.monoid == Monoid::Moments);
        moments().for_each(|(val, fold)| deviations(body, *val, fold));
        combine_all(body, &moments().flat_map(|(val, fold)| second_pass(*val, fold)).collect::<Vec<_>>(), shared);
        moments().for_each(|(val, fold)| close_moments(body, *val, fold));
    }
    body.line("if (live && lane == 0u) {");
    body.outer_stores();
    body.line("}");
    body.element_stores();
}

/// For each instruction, the number of folds after which it is written. Folds, and values that depend on folds alone,
/// are written as early as possible; values of elements just before their first use.
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

/// Writes which line this invocation works on, and which of its lanes it is.
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

/// Writes where the elements of one of an invocation's groups lie. A group past the line's end gets the place of the
/// last one.
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

/// A fold of a line, and the variables of its result.
type Part = (Vec<String>, Fold);

/// The fold over the elements themselves. For moments, it gives the approximate distance of the mean from the line's
/// first element; their rounded sum is the base of the deviations. Differences are divided before they are added up, so
/// that no sum overflows.
fn first_pass(val: Val, fold: &Fold) -> Part {
    match fold.monoid {
        Monoid::Moments => (vec![component(val, 1)], Fold::new(Monoid::Sum, fold.argument)),
        _ => (names(val, fold), fold.clone()),
    }
}

/// The folds over the deviations from a base near the mean: their sum, which corrects the mean, and the sum of their
/// squares.
fn second_pass(val: Val, fold: &Fold) -> [Part; 2] {
    [2, 3].map(|number| (vec![component(val, number)], Fold::new(Monoid::Sum, fold.argument)))
}

/// Folds an invocation's elements into the variables of the fold.
fn own_share(body: &mut Body, val: Val, fold: &Fold, shared: &mut Shared) {
    let InstOp::Reduce { args, .. } = &body.kernel.inst(val).op else { return };
    let part = first_pass(val, fold);
    if fold.monoid == Monoid::Moments {
        let length = body.functions.apply(ElementOp::Cast, DType::U32, fold.argument, 1, &["length".to_string()]);
        let count = component(val, 0);
        body.line(format!("let {count} = {length};"));
        body.line(format!("let share_{count} = {} / {count};", one(fold.argument)));
        first_element(body, val, args[0], shared);
    }
    fold_share(body, &part, |body| {
        let args: Vec<String> = args.iter().map(|arg| body.value(*arg, body.width)).collect();
        match fold.monoid {
            Monoid::Moments => {
                let first = splat(register(fold.argument), body.width, &format!("first{}", val.0));
                vec![format!("(({} - {first}) * share_{})", args[0], component(val, 0))]
            }
            _ => args,
        }
    });
}

/// Tells all lanes the value of their line's first element.
fn first_element(body: &mut Body, val: Val, arg: Val, shared: &mut Shared) {
    let (dtype, width, name) = (body.kernel.inst(arg).dtype, body.width, format!("first{}", val.0));
    let own = body.value(arg, width);
    let array = shared_name(shared, dtype, 0, body.kernel.workgroup());
    body.line(format!("var {name} = {};", lanes(&own, width)[0]));
    body.line("if (lanes > 1u) {");
    body.line("workgroupBarrier();");
    body.line(format!("if (lane == 0u) {{ {array}[lid] = {}; }}", to_storage(dtype, 1, &name)));
    body.line("workgroupBarrier();");
    body.line(format!("{name} = {};", from_storage(dtype, 1, &format!("{array}[lid - lane]"))));
    body.line("}");
}

/// Folds the deviations of an invocation's elements.
fn deviations(body: &mut Body, val: Val, fold: &Fold) {
    let InstOp::Reduce { args, .. } = &body.kernel.inst(val).op else { return };
    let base = component(val, 1);
    body.line(format!("{base} = first{} + {base};", val.0));
    let base = splat(register(fold.argument), body.width, &base);
    let apart = |body: &Body| body.local(&format!("apart{}", val.0));
    body.each_round(|body| {
        let (name, value) = (apart(body), body.value(args[0], body.width));
        body.line(format!("let {name} = {value} - {base};"));
    });
    let [sum, squares] = second_pass(val, fold);
    fold_share(body, &sum, |body| vec![apart(body)]);
    fold_share(body, &squares, |body| vec![format!("({0} * {0})", apart(body))]);
}

/// Computes the components of moments from the folds of the deviations. Compilers assume that `x - x` is zero, also for
/// an infinite `x`. So the squares are set to NaN if the bits of the mean are not those of a finite number.
fn close_moments(body: &mut Body, val: Val, fold: &Fold) {
    let [count, base, off, squares] = [0, 1, 2, 3].map(|number| component(val, number));
    let dtype = fold.argument;
    body.line("{");
    body.line(format!("let off = {off} / {count};"));
    body.line(format!("let mean = {base} + off;"));
    body.line(format!("let s = {squares} - {off} * off;"));
    let lost = is_not_finite(dtype, 1, "mean");
    body.line(format!("{squares} = select(select(s, {0}, s < {0}), {1}, {lost});", zero(dtype), nan(dtype)));
    body.line(format!("{off} = off;"));
    body.line("}");
}

/// Folds an invocation's elements, or the expressions that `args` makes of them, into the variables of a part.
fn fold_share(body: &mut Body, (own, fold): &Part, args: impl Fn(&mut Body) -> Vec<String>) {
    let width = body.width;
    let wide: Vec<String> = own.iter().map(|name| format!("{name}_lanes")).collect();
    for (number, dtype) in fold.components.iter().enumerate() {
        let of = |width| splat(register(*dtype), width, fold.identity(number));
        body.line(format!("var {}: {} = {};", wide[number], typed(*dtype, width), of(width)));
        body.line(format!("var {}: {} = {};", own[number], typed(*dtype, 1), of(1)));
    }
    body.each_round(|body| {
        let args = args(body);
        let inside = body.local("inside");
        let lines = fold.update(&mut body.functions, width, &wide, &args, Some(&inside));
        body.lines(lines);
    });
    let lines = fold.gather_levels(&mut body.functions, width, std::slice::from_ref(&wide));
    body.lines(lines);
    let lines = fold.fold_lanes(&mut body.functions, width, own, &wide);
    body.lines(lines);
}

/// Combines the lanes of items for several parts, as many parts at a time as workgroup memory takes.
fn combine_all(body: &mut Body, parts: &[Part], shared: &mut Shared) {
    let mut begin = 0;
    while begin < parts.len() {
        let mut components = parts[begin].1.components.len();
        let mut end = begin + 1;
        while end < parts.len() && components + parts[end].1.components.len() <= ARRAYS_MAX {
            components += parts[end].1.components.len();
            end += 1;
        }
        combine(body, &parts[begin..end], shared);
        begin = end;
    }
}

/// Combines the lanes of an item through workgroup memory, a few at a time. Afterwards all lanes have the result.
fn combine(body: &mut Body, parts: &[Part], shared: &mut Shared) {
    let workgroup = body.kernel.workgroup();
    let all = || parts.iter().flat_map(|(own, fold)| own.iter().zip(fold.components.iter().copied()));
    let arrays: Vec<String> =
        all().enumerate().map(|(number, (_, dtype))| shared_name(shared, dtype, number, workgroup)).collect();
    let publish = |body: &mut Body| {
        for (array, (name, dtype)) in arrays.iter().zip(all()) {
            body.line(format!("{array}[lid] = {};", to_storage(dtype, 1, name)));
        }
    };
    let taken = |at: &str| -> Vec<String> {
        let of = |(array, (_, dtype)): (&String, _)| from_storage(dtype, 1, &format!("{array}[{at}]"));
        arrays.iter().zip(all()).map(of).collect()
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
    for ((name, _), value) in all().zip(taken("partner")) {
        body.line(format!("let other_{name} = {value};"));
    }
    for (own, fold) in parts {
        let other: Vec<String> = own.iter().map(|name| format!("other_{name}")).collect();
        let lines = fold.merge_lanes(&mut body.functions, 1, own, &other);
        body.lines(lines);
    }
    body.line("}");
    publish(body);
    body.line("}");
    body.line("span = part;");
    body.line("workgroupBarrier();");
    body.line("}");
    for ((name, _), value) in all().zip(taken("lid - lane")) {
        body.line(format!("{name} = {value};"));
    }
    body.line("}");
}
