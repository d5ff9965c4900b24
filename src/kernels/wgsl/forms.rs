//! Writes the entry points of forms `Map` and `Reduce` around a kernel's body. The others are in `across.rs`,
//! `rolled.rs`, `scan.rs` and `line.rs`.
//!
//! Must hold:
//! - WGSL-3: a barrier stands in uniform control flow: the conditions around it depend on parameters and on the
//!   workgroup's number alone.
//! - WGSL-4: results don't depend on the subgroup size or on how many workgroups run: lanes are combined in a tree that
//!   the header words determine.
//! - WGSL-5: invocations beyond the last item of a reduction fold and store nothing.
//!
//! A lane of a reduction makes at most `ceil(CHUNK / lanes)` steps; Mesa's software device stops a loop silently at
//! 65,535 steps, nested ones counted together. `reduce_plan` keeps a lane at 4,096 steps or fewer for every size. A
//! scan makes `ceil(INNER / 256)` steps, or `ceil(CHUNK / 256)` if lines are cut.

use super::across;
use super::body::{Body, component};
use super::line;
use super::memory::Accessor;
use super::monoid::Fold;
use super::rolled;
use super::scan;
use super::types::{from_storage, from_words, lanes, register, splat, storage, to_storage, to_words, typed, vector};
use crate::graph::DType;
use crate::kernels::ir::{Form, InstOp, Kernel, Level, Val, WORKGROUP, header};
use std::collections::BTreeMap;

/// The workgroup arrays through which lanes exchange the components of folds: types by name.
pub(super) type Shared = BTreeMap<String, String>;

/// The text of an entry point: declarations of workgroup memory, and `main`'s statements.
pub(super) struct Entry {
    pub(super) shared: String,
    pub(super) statements: String,
}

/// Writes the form of a kernel around its body.
pub(super) fn entry(body: &mut Body) -> Entry {
    let mut shared = Shared::new();
    match body.kernel.form {
        Form::Map if body.is_across => across::map(body, &mut shared),
        Form::Map if body.kernel.rolled.is_some() => rolled::map(body),
        Form::Map => map(body),
        Form::Reduce { inner_fast } => reduce(body, inner_fast, &mut shared),
        Form::Scan { .. } => scan::scan(body, &mut shared),
        Form::Line(lines) => line::line(body, lines, &mut shared),
    }
    let shared = shared.iter().map(|(name, ty)| format!("var<workgroup> {name}: {ty};\n")).collect();
    Entry { shared, statements: body.take_text() }
}

pub(super) fn no_fold(_: &mut Body, val: Val) {
    panic!("IR-5: value {} folds in a form without folds", val.0);
}

fn map(body: &mut Body) {
    map_places(body);
    body.instructions(Level::Uniform, no_fold);
    body.instructions(Level::Element, no_fold);
    body.element_stores();
}

/// Writes where the elements of an invocation of a map lie. An invocation without elements returns.
pub(super) fn map_places(body: &mut Body) {
    let (begin, end) = (body.memory.parameter(header::BEGIN), body.memory.parameter(header::END));
    if body.width == 1 {
        body.line("let unit = (group.y * groups.x + group.x) * 256u + lid;");
        body.line(format!("if (unit >= {end} - {begin}) {{ return; }}"));
        body.line(format!("let flat = {begin} + unit;"));
    } else {
        body.line(format!("let units = ({end} - {begin} - 1u) / 4u + 1u;"));
        let stride = 256 * body.kernel.rounds();
        body.line(format!("let unit = (group.y * groups.x + group.x) * {stride}u + lid;"));
        body.line("if (unit >= units) { return; }");
        body.each_round(|body| places(body, &begin, &end));
    }
}

/// Writes where the four elements of a group lie. A group past the end gets the place of the last group, and none of
/// its elements is inside.
fn places(body: &mut Body, begin: &str, end: &str) {
    let [position, places, inside, flat] = ["position", "places", "inside", "flat"].map(|name| body.local(name));
    let offsets = "vec4<u32>(0u, 1u, 2u, 3u)";
    if body.round == 0 {
        body.line(format!("let {position} = {begin} + unit * 4u;"));
        body.line(format!("let {places} = vec4<u32>({position}) + {offsets};"));
        body.line(format!("let {inside} = {places} < vec4<u32>({end});"));
    } else {
        let (unit, live) = (body.local("unit"), body.local("live"));
        body.line(format!("let {unit} = unit + {}u;", 256 * body.round));
        body.line(format!("let {live} = {unit} < units;"));
        body.line(format!("let {position} = {begin} + min({unit}, units - 1u) * 4u;"));
        body.line(format!("let {places} = vec4<u32>({position}) + {offsets};"));
        body.line(format!("let {inside} = ({places} < vec4<u32>({end})) & vec4<bool>({live});"));
    }
    body.line(format!("let {flat} = min({places}, vec4<u32>({end} - 1u));"));
}

/// The folds of a kernel, in order.
pub(super) fn folds(kernel: &Kernel) -> Vec<(Val, Fold)> {
    kernel
        .insts
        .iter()
        .enumerate()
        .filter_map(|(number, inst)| match &inst.op {
            InstOp::Reduce { monoid, args } => {
                Some((Val(number as u32), Fold::new(*monoid, kernel.inst(args[0]).dtype)))
            }
            _ => None,
        })
        .collect()
}

pub(super) fn names(val: Val, fold: &Fold) -> Vec<String> {
    (0..fold.components.len()).map(|number| component(val, number)).collect()
}

fn reduce(body: &mut Body, inner_fast: bool, shared: &mut Shared) {
    let folds = folds(body.kernel);
    reduce_item(body, inner_fast);
    body.instructions(Level::Uniform, |_, _| {});
    body.instructions(Level::Outer, |_, _| {});
    for (val, fold) in &folds {
        for (number, dtype) in fold.components.iter().enumerate() {
            let (name, width) = (component(*val, number), body.outer_width);
            let identity = splat(register(*dtype), width, fold.identity(number));
            body.line(format!("var {name}: {} = {identity};", typed(*dtype, width)));
        }
    }
    if body.kernel.scratch.is_some() {
        body.line("if (phase < 2u) {");
        reduce_chunk(body, &folds);
        body.line("} else {");
        reduce_partials(body, &folds);
        body.line("}");
    } else {
        reduce_chunk(body, &folds);
    }
    for (val, fold) in &folds {
        combine_lanes(body, *val, fold, shared);
    }
    body.line("if (live && lane == 0u) {");
    if body.kernel.scratch.is_some() {
        body.line("if (phase == 1u) {");
        store_partials(body, &folds);
        body.line("} else {");
        body.instructions(Level::Reduced, |_, _| {});
        body.outer_stores();
        body.line("}");
    } else {
        body.instructions(Level::Reduced, |_, _| {});
        body.outer_stores();
    }
    body.line("}");
}

/// Writes which output and chunk this invocation works on, and which of its lanes it is.
fn reduce_item(body: &mut Body, inner_fast: bool) {
    let (begin, end) = (body.memory.parameter(header::BEGIN), body.memory.parameter(header::END));
    body.line(format!("let phase = {};", body.memory.parameter(header::PHASE)));
    body.line(format!("let lanes_log2 = {};", body.memory.parameter(header::LANES_LOG2)));
    body.line("let lanes = 1u << lanes_log2;");
    body.line("let slots = 256u >> lanes_log2;");
    if inner_fast {
        body.line("let lane = lid & (lanes - 1u);");
        body.line("let slot = lid >> lanes_log2;");
        body.line("let stride = 1u;");
    } else {
        // Neighbouring invocations take neighbouring outputs, which are neighbours in memory.
        body.line("let lane = lid / slots;");
        body.line("let slot = lid & (slots - 1u);");
        body.line("let stride = slots;");
    }
    let (chunk_begin, chunk_end) =
        (body.memory.parameter(header::CHUNK_BEGIN), body.memory.parameter(header::CHUNK_END));
    let width = body.outer_width;
    if width == 1 {
        body.line(format!("let outputs = {end} - {begin};"));
    } else {
        body.line(format!("let outputs = ({end} - {begin} + {}u) / {width}u;", width - 1));
    }
    body.line(format!("let chunks_here = select(1u, {chunk_end} - {chunk_begin}, phase == 1u);"));
    body.line("let items = outputs * chunks_here;");
    body.line("let item_asked = (group.y * groups.x + group.x) * slots + slot;");
    body.line("let live = item_asked < items;");
    body.line("let item = min(item_asked, items - 1u);");
    if width == 1 {
        body.line(format!("let outer = {begin} + item % outputs;"));
    } else {
        let places = format!("vec4<u32>({begin} + item % outputs * {width}u) + vec4<u32>(0u, 1u, 2u, 3u)");
        body.line(format!("let outputs_here = {places};"));
        body.line(format!("let kept = outputs_here < vec4<u32>({end});"));
        body.line(format!("let outer = min(outputs_here, vec4<u32>({end} - 1u));"));
    }
    body.line(format!("let chunk = select(0u, {chunk_begin} + item / outputs, phase == 1u);"));
}

/// Writes the loop of a lane over its part of a chunk, then folds the four values of the lane into one.
fn reduce_chunk(body: &mut Body, folds: &[(Val, Fold)]) {
    let width = body.width;
    // The variables of each level of a fold. Elements are folded into the first level.
    let levels = |val: Val, fold: &Fold| -> Vec<Vec<String>> {
        let level = |level: usize| names(val, fold).iter().map(|name| format!("{name}_lanes{level}")).collect();
        (0..fold.levels(width)).map(level).collect()
    };
    for (val, fold) in folds {
        for level in levels(*val, fold) {
            for (number, (name, dtype)) in level.iter().zip(&fold.components).enumerate() {
                let identity = splat(register(*dtype), width, fold.identity(number));
                body.line(format!("var {name}: {} = {identity};", typed(*dtype, width)));
            }
        }
    }
    let inner = body.memory.parameter(header::INNER);
    body.line(format!("let first = min(chunk * {}, {inner});", body.memory.parameter(header::CHUNK)));
    body.line(format!("let last = first + min({}, {inner} - first);", body.memory.parameter(header::CHUNK)));
    let along = width / body.outer_width;
    let rounds = body.kernel.rounds();
    body.line(format!("let begin = first + min(lane * {along}u, last - first);"));
    body.line(format!("let step = lanes * {along}u;"));
    body.line("let groups_here = select(0u, (last - begin - 1u) / step + 1u, live && begin < last);");
    body.line(format!("let steps = (groups_here + {}u) / {rounds}u;", rounds - 1));
    body.line("for (var count = 0u; count < steps; count++) {");
    body.each_round(reduce_places);
    body.instructions(Level::Element, |body, val| {
        let Some((_, fold)) = folds.iter().find(|(of, _)| *of == val) else { return no_fold(body, val) };
        let InstOp::Reduce { args, .. } = &body.kernel.inst(val).op else { return };
        let levels = levels(val, fold);
        body.each_round(|body| {
            let args: Vec<String> = args.iter().map(|arg| body.value(*arg, width)).collect();
            let inside = body.local("inside");
            let mask = if width == 1 && rounds == 1 { None } else { Some(inside.as_str()) };
            let lines = fold.update(&mut body.functions, width, &levels[0], &args, mask);
            body.lines(lines);
        });
        let lines = fold.climb(&mut body.functions, width, rounds.trailing_zeros(), &levels);
        body.lines(lines);
    });
    body.element_stores();
    body.line("}");
    for (val, fold) in folds {
        let into = names(*val, fold);
        let levels = levels(*val, fold);
        let lines = fold.gather_levels(&mut body.functions, width, &levels);
        body.lines(lines);
        if along == 1 {
            body.lines(into.iter().zip(&levels[0]).map(|(into, from)| format!("{into} = {from};")));
        } else {
            let lines = fold.fold_lanes(&mut body.functions, width, &into, &levels[0]);
            body.lines(lines);
        }
    }
}

/// Writes where the elements of one of a step's groups lie along the line. A group past the lane's last one gets the
/// place of that, and none of its elements is inside.
fn reduce_places(body: &mut Body) {
    let [group, inside, inner] = ["group_here", "inside", "inner"].map(|name| body.local(name));
    let rounds = body.kernel.rounds();
    body.line(match rounds {
        1 => format!("let {group} = count;"),
        _ => format!("let {group} = count * {rounds}u + {}u;", body.round),
    });
    let position = match body.round {
        0 => format!("begin + {group} * step"),
        _ => format!("begin + min({group}, groups_here - 1u) * step"),
    };
    if body.width == 1 {
        body.line(format!("let {inside} = {group} < groups_here;"));
        body.line(format!("let {inner} = {position};"));
    } else if body.outer_width > 1 {
        body.line(format!("let {inside} = vec4<bool>({group} < groups_here) & kept;"));
        body.line(format!("let {inner} = vec4<u32>({position});"));
    } else {
        let places = body.local("places");
        body.line(format!("let {places} = vec4<u32>({position}) + vec4<u32>(0u, 1u, 2u, 3u);"));
        body.line(format!("let {inside} = vec4<bool>({group} < groups_here) & ({places} < vec4<u32>(last));"));
        body.line(format!("let {inner} = min({places}, vec4<u32>(last - 1u));"));
    }
}

/// The word of scratch that holds word `word` of the partial result of `chunk` of `outer`.
pub(super) fn scratch_index(body: &Body, word: usize, outer: &str) -> String {
    format!(
        "({word}u * {chunks} + chunk_of) * {outputs} + {outer}",
        chunks = body.memory.parameter(header::CHUNKS),
        outputs = body.memory.parameter(header::OUTER)
    )
}

fn reduce_partials(body: &mut Body, folds: &[(Val, Fold)]) {
    let Some(scratch) = body.kernel.scratch else { return };
    body.line(format!("let partials = select(0u, {}, live);", body.memory.parameter(header::CHUNKS)));
    body.line("for (var chunk_of = lane; chunk_of < partials; chunk_of += lanes) {");
    let mut word = 0;
    for (val, fold) in folds {
        let mut partial = Vec::new();
        for (number, dtype) in fold.components.iter().enumerate() {
            let width = body.outer_width;
            let count = dtype.gpu_bytes() / 4;
            let each: Vec<String> = lanes("outer", width)
                .iter()
                .map(|outer| {
                    let load = |offset| {
                        let index = scratch_index(body, word + offset, outer);
                        body.memory.load(scratch, Accessor::Load, &index)
                    };
                    from_words(*dtype, &(0..count).map(load).collect::<Vec<String>>())
                })
                .collect();
            word += count;
            let name = format!("partial{}_{number}", val.0);
            body.line(format!("let {name} = {}({});", typed(*dtype, width), each.join(", ")));
            partial.push(name);
        }
        let lines = fold.merge_lanes(&mut body.functions, body.outer_width, &names(*val, fold), &partial);
        body.lines(lines);
    }
    body.line("}");
}

fn store_partials(body: &mut Body, folds: &[(Val, Fold)]) {
    let Some(scratch) = body.kernel.scratch else { return };
    body.line("let chunk_of = chunk;");
    let mut word = 0;
    for (val, fold) in folds {
        for (number, dtype) in fold.components.iter().enumerate() {
            let width = body.outer_width;
            let values = lanes(&component(*val, number), width);
            for (lane, (value, outer)) in values.iter().zip(lanes("outer", width)).enumerate() {
                for (offset, value) in to_words(*dtype, value).iter().enumerate() {
                    let index = scratch_index(body, word + offset, &outer);
                    let statement = body.memory.store(scratch, Accessor::Store, &index, value);
                    body.line(match width {
                        1 => statement,
                        _ => format!("if ({}) {{ {statement} }}", lanes("kept", width)[lane]),
                    });
                }
            }
            word += dtype.gpu_bytes() / 4;
        }
    }
}

pub(super) fn shared_name(shared: &mut Shared, dtype: DType, number: usize, lanes: u32) -> String {
    let ty = storage(dtype);
    let name = format!("shared_{ty}_{number}");
    shared.insert(name.clone(), format!("array<{ty}, {lanes}>"));
    name
}

/// Combines the lanes of an item through workgroup memory: lane `i` merges lane `i + half` into its value, and `half`
/// is halved until one lane is left. If lanes have four outputs, only the lanes that are merged next write theirs, so
/// that half of the memory is enough.
fn combine_lanes(body: &mut Body, val: Val, fold: &Fold, shared: &mut Shared) {
    let own = names(val, fold);
    let width = body.outer_width;
    let array = |(number, dtype): (usize, &DType)| match width {
        1 => shared_name(shared, *dtype, number, WORKGROUP),
        _ => {
            let ty = storage(*dtype);
            let name = format!("shared_{ty}x{width}_{number}");
            shared.insert(name.clone(), format!("array<{}, 128>", vector(ty, width)));
            name
        }
    };
    let arrays: Vec<String> = fold.components.iter().enumerate().map(array).collect();
    let publish = |body: &mut Body, at: &str| {
        for ((array, name), dtype) in arrays.iter().zip(&own).zip(&fold.components) {
            body.line(format!("{array}[{at}] = {};", to_storage(*dtype, width, name)));
        }
    };
    body.line("if (lanes > 1u) {");
    if width == 1 {
        body.line("workgroupBarrier();");
        publish(body, "lid");
    }
    body.line("for (var half = lanes >> 1u; half > 0u; half = half >> 1u) {");
    body.line("workgroupBarrier();");
    if width > 1 {
        body.line("if (lane >= half && lane < 2u * half) {");
        publish(body, "lid - half * stride");
        body.line("}");
        body.line("workgroupBarrier();");
    }
    body.line("if (lane < half) {");
    body.line(if width == 1 { "let partner = lid + half * stride;" } else { "let partner = lid;" });
    let other: Vec<String> = (0..own.len()).map(|number| format!("other{}_{number}", val.0)).collect();
    for ((array, name), dtype) in arrays.iter().zip(&other).zip(&fold.components) {
        body.line(format!("let {name} = {};", from_storage(*dtype, width, &format!("{array}[partner]"))));
    }
    let lines = fold.merge_lanes(&mut body.functions, width, &own, &other);
    body.lines(lines);
    if width == 1 {
        publish(body, "lid");
    }
    body.line("}");
    body.line("}");
    body.line("}");
}
