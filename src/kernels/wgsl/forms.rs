//! The entry points: Map and Reduce around a kernel's body (Scan: `scan.rs`).
//!
//! Must hold:
//! - WGSL-3: a barrier stands in uniform control flow: around it only conditions on parameters and on the
//!   workgroup's number.
//! - WGSL-4: results don't depend on the subgroup size or on how many workgroups run: lanes are combined in
//!   a tree that the header fixes.
//! - WGSL-5: invocations beyond the last item of a reduction fold and store nothing.
//!
//! A lane of a reduction makes `ceil(CHUNK / (lanes * width))` steps; Mesa's software device stops a loop
//! silently at 65,535 steps, nested ones counted together. `reduce_plan` keeps a lane of an `inner_fast` form
//! below 4,096 steps for every size; another form stays below the limit up to 524,280 reduced elements an output.
//! A scan makes `ceil(INNER / 256)` steps, or `ceil(CHUNK / 256)` where lines are cut.

use super::body::{Body, component};
use super::memory::Accessor;
use super::monoid::Fold;
use super::scan;
use super::types::{from_storage, from_words, register, splat, storage, to_storage, to_words, typed};
use crate::graph::DType;
use crate::kernels::ir::{Form, InstOp, Kernel, Level, Val, header};
use std::collections::BTreeMap;

/// Names of the workgroup arrays that a fold's components go through.
pub(super) type Shared = BTreeMap<String, &'static str>;

/// The declarations of workgroup memory that a form needs, and `main`'s statements.
pub(super) struct Entry {
    pub(super) shared: String,
    pub(super) statements: String,
}

/// Writes the form of a kernel around its body.
pub(super) fn entry(body: &mut Body) -> Entry {
    let mut shared = Shared::new();
    match body.kernel.form {
        Form::Map => map(body),
        Form::Reduce { inner_fast } => reduce(body, inner_fast, &mut shared),
        Form::Scan { .. } => scan::scan(body, &mut shared),
    }
    let shared = shared.iter().map(|(name, ty)| format!("var<workgroup> {name}: array<{ty}, 256>;\n")).collect();
    Entry { shared, statements: body.take_text() }
}

pub(super) fn no_fold(_: &mut Body, val: Val) {
    panic!("IR-5: value {} folds in a form without folds", val.0);
}

fn map(body: &mut Body) {
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
    body.instructions(Level::Uniform, no_fold);
    body.instructions(Level::Element, no_fold);
    body.element_stores();
}

/// Where the four elements of a group lie. A group past the end stands at the last one, and none of it is inside.
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
fn folds(kernel: &Kernel) -> Vec<(Val, Fold)> {
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

fn names(val: Val, fold: &Fold) -> Vec<String> {
    (0..fold.components.len()).map(|number| component(val, number)).collect()
}

fn reduce(body: &mut Body, inner_fast: bool, shared: &mut Shared) {
    let folds = folds(body.kernel);
    reduce_item(body, inner_fast);
    body.instructions(Level::Uniform, |_, _| {});
    body.instructions(Level::Outer, |_, _| {});
    for (val, fold) in &folds {
        for (number, dtype) in fold.components.iter().enumerate() {
            let name = component(*val, number);
            body.line(format!("var {name}: {} = {};", typed(*dtype, 1), fold.identity(number)));
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

/// Which output and chunk this invocation works on, and as which of its lanes.
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
    body.line(format!("let outputs = {end} - {begin};"));
    body.line(format!("let chunks_here = select(1u, {chunk_end} - {chunk_begin}, phase == 1u);"));
    body.line("let items = outputs * chunks_here;");
    body.line("let item_asked = (group.y * groups.x + group.x) * slots + slot;");
    body.line("let live = item_asked < items;");
    body.line("let item = min(item_asked, items - 1u);");
    body.line(format!("let outer = {begin} + item % outputs;"));
    body.line(format!("let chunk = select(0u, {chunk_begin} + item / outputs, phase == 1u);"));
}

/// The loop of a lane over its part of a chunk, then its own lanes to one.
fn reduce_chunk(body: &mut Body, folds: &[(Val, Fold)]) {
    let width = body.width;
    // The variables of a fold's levels; the first takes the elements.
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
    body.line(format!("let begin = first + min(lane * {width}u, last - first);"));
    let step = format!("(lanes * {width}u)");
    body.line(format!("let steps = select(0u, (last - begin - 1u) / {step} + 1u, live && begin < last);"));
    body.line("for (var count = 0u; count < steps; count++) {");
    if width == 1 {
        body.line(format!("let inner = begin + count * {step};"));
    } else {
        body.line(format!("let position = begin + count * {step};"));
        body.line("let places = vec4<u32>(position) + vec4<u32>(0u, 1u, 2u, 3u);");
        body.line("let inside = places < vec4<u32>(last);");
        body.line("let inner = min(places, vec4<u32>(last - 1u));");
    }
    body.instructions(Level::Element, |body, val| {
        let Some((_, fold)) = folds.iter().find(|(of, _)| *of == val) else { return no_fold(body, val) };
        let InstOp::Reduce { args, .. } = &body.kernel.inst(val).op else { return };
        let args: Vec<String> = args.iter().map(|arg| body.value(*arg, width)).collect();
        let levels = levels(val, fold);
        let mask = if width == 1 { None } else { Some("inside") };
        let lines = fold.update(&mut body.functions, width, &levels[0], &args, mask);
        body.lines(lines);
        let lines = fold.climb(&mut body.functions, width, &levels);
        body.lines(lines);
    });
    body.element_stores();
    body.line("}");
    for (val, fold) in folds {
        let into = names(*val, fold);
        let levels = levels(*val, fold);
        let lines = fold.gather_levels(&mut body.functions, width, &levels);
        body.lines(lines);
        let lines = fold.fold_lanes(&mut body.functions, width, &into, &levels[0]);
        body.lines(lines);
    }
}

/// The word of scratch that holds word `word` of the partial result of `chunk` of `outer`.
pub(super) fn scratch_index(body: &Body, word: usize) -> String {
    format!(
        "({word}u * {chunks} + chunk_of) * {outputs} + outer",
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
            let words: Vec<String> = (0..dtype.gpu_bytes() / 4)
                .map(|offset| {
                    let index = scratch_index(body, word + offset);
                    body.memory.load(scratch, Accessor::Load, &index)
                })
                .collect();
            word += words.len();
            let name = format!("partial{}_{number}", val.0);
            body.line(format!("let {name} = {};", from_words(*dtype, &words)));
            partial.push(name);
        }
        let lines = fold.merge(&mut body.functions, &names(*val, fold), &partial);
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
            for value in to_words(*dtype, &component(*val, number)) {
                let index = scratch_index(body, word);
                let statement = body.memory.store(scratch, Accessor::Store, &index, &value);
                body.line(statement);
                word += 1;
            }
        }
    }
}

pub(super) fn shared_name(shared: &mut Shared, dtype: DType, number: usize) -> String {
    let ty = storage(dtype);
    let name = format!("shared_{ty}_{number}");
    shared.insert(name.clone(), ty);
    name
}

/// Combines the lanes of an item through workgroup memory: lane `i` takes in lane `i + half`, halving.
fn combine_lanes(body: &mut Body, val: Val, fold: &Fold, shared: &mut Shared) {
    let own = names(val, fold);
    let arrays: Vec<String> =
        fold.components.iter().enumerate().map(|(number, dtype)| shared_name(shared, *dtype, number)).collect();
    let publish = |body: &mut Body| {
        for ((array, name), dtype) in arrays.iter().zip(&own).zip(&fold.components) {
            body.line(format!("{array}[lid] = {};", to_storage(*dtype, 1, name)));
        }
    };
    body.line("if (lanes > 1u) {");
    body.line("workgroupBarrier();");
    publish(body);
    body.line("for (var half = lanes >> 1u; half > 0u; half = half >> 1u) {");
    body.line("workgroupBarrier();");
    body.line("if (lane < half) {");
    body.line("let partner = lid + half * stride;");
    let other: Vec<String> = (0..own.len()).map(|number| format!("other{}_{number}", val.0)).collect();
    for ((array, name), dtype) in arrays.iter().zip(&other).zip(&fold.components) {
        body.line(format!("let {name} = {};", from_storage(*dtype, 1, &format!("{array}[partner]"))));
    }
    let lines = fold.merge(&mut body.functions, &own, &other);
    body.lines(lines);
    publish(body);
    body.line("}");
    body.line("}");
    body.line("}");
}
