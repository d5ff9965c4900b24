//! The entry point Scan around a kernel's body: a workgroup walks a line, or a chunk of one, in tiles of 256 elements.
//!
//! The kernel has scratch. Where lines are few and long they are cut into chunks (`scan_plan`): phase 1 writes what
//! each chunk does to the value before it, phase 2 begins each chunk behind those before it. Both evaluate the
//! elements.
//!
//! Must hold: what a line gives does not depend on how many workgroups run; scans of a kernel in phases don't depend on
//! each other, and it raises no fault (`Kernel::scans_in_phases`): in phase 1 no value behind a scan is right.

use super::body::Body;
use super::forms::{Shared, no_fold, scratch_index, shared_name};
use super::memory::Accessor;
use super::running::Running;
use super::types::{from_storage, from_words, to_storage, to_words, typed};
use crate::graph::DType;
use crate::kernels::ir::{InstOp, Level, Val, header};

/// Levels in which the sums of tiles are added up: with eight tiles a level, and eight in the last, 32,768 tiles, more
/// than a chunk has.
const LEVELS: usize = 5;

/// A scan of the kernel.
struct Scan {
    val: Val,
    dtype: DType,
    running: Running,
    components: Vec<DType>,
    /// The workgroup arrays that its components go through.
    arrays: Vec<String>,
}

impl Scan {
    /// The scans of a kernel, in order.
    fn all(body: &Body, shared: &mut Shared) -> Vec<Scan> {
        let scan = |(number, inst): (usize, &crate::kernels::ir::Inst)| {
            let InstOp::Scan { monoid, .. } = inst.op else { return None };
            let components = monoid.running_components(inst.dtype).to_vec();
            let arrays = components.iter().enumerate().map(|(c, dtype)| shared_name(shared, *dtype, c)).collect();
            let running = Running::new(monoid, inst.dtype);
            Some(Scan { val: Val(number as u32), dtype: inst.dtype, running, components, arrays })
        };
        body.kernel.insts.iter().enumerate().filter_map(scan).collect()
    }

    /// Names of the components of something.
    fn names(&self, of: &str) -> Vec<String> {
        (0..self.components.len()).map(|component| format!("{of}{}_{component}", self.val.0)).collect()
    }

    fn carry(&self) -> String {
        format!("carry{}", self.val.0)
    }

    /// Declares the part of the element `x` as variables of these names.
    fn declare(&self, body: &mut Body, names: &[String], x: &str) {
        for (name, value) in names.iter().zip(self.running.element(x)) {
            body.line(format!("var {name} = {value};"));
        }
    }

    fn publish(&self, body: &mut Body, part: &[String]) {
        body.line("workgroupBarrier();");
        for ((array, name), dtype) in self.arrays.iter().zip(part).zip(&self.components) {
            body.line(format!("{array}[lid] = {};", to_storage(*dtype, 1, name)));
        }
    }

    fn read(&self, body: &mut Body, names: &[String], at: &str) {
        for ((array, name), dtype) in self.arrays.iter().zip(names).zip(&self.components) {
            body.line(format!("let {name} = {};", from_storage(*dtype, 1, &format!("{array}[{at}]"))));
        }
    }

    /// Composes the parts of 256 invocations, each with all before it, and declares that of all as `whole`. The steps
    /// are written out: nested loops count together on Mesa's software device.
    fn compose_all(&self, body: &mut Body, part: &[String]) -> Vec<String> {
        let (earlier, whole) = (self.names("earlier"), self.names("whole"));
        self.publish(body, part);
        for step in 0..8 {
            let distance = 1 << step;
            body.line("workgroupBarrier();");
            body.line(format!("if (lid >= {distance}u) {{"));
            self.read(body, &earlier, &format!("lid - {distance}u"));
            let lines = self.running.compose(&mut body.functions, part, &earlier);
            body.lines(lines);
            body.line("}");
            self.publish(body, part);
        }
        body.line("workgroupBarrier();");
        self.read(body, &whole, "255");
        whole
    }

    /// Puts the part `later` behind the part in the variables `part`.
    fn append(&self, body: &mut Body, part: &[String], later: &[String]) {
        let both = self.names("both");
        body.line("{");
        for (name, value) in both.iter().zip(later) {
            body.line(format!("var {name} = {value};"));
        }
        let lines = self.running.compose(&mut body.functions, &both, part);
        body.lines(lines);
        for (name, value) in part.iter().zip(&both) {
            body.line(format!("{name} = {value};"));
        }
        body.line("}");
    }

    /// The inclusive scan of one tile of 256 elements and its carry, and what the chunk does so far.
    fn tile(&self, body: &mut Body, arg: Val) {
        let number = self.val.0;
        let part = self.names("part");
        let arg = body.value(arg, 1);
        body.line(format!("let element{number} = select({}, {arg}, inside);", self.running.identity()));
        self.declare(body, &part, &format!("element{number}"));
        let whole = self.compose_all(body, &part);
        let carry = self.carry();
        body.line(format!("var v{number}: {};", typed(self.dtype, 1)));
        let value = self.running.apply(&mut body.functions, &format!("v{number}"), &carry, &part);
        body.lines(value);
        if self.running.is_float_sum() {
            self.climb(body, &whole[0]);
            return;
        }
        let next = self.running.apply(&mut body.functions, &carry, &carry, &whole);
        body.lines(next);
        if body.kernel.scratch.is_some() {
            let total = self.names("total");
            self.append(body, &total, &whole);
        }
    }

    /// The variables that hold a float sum's tiles: each level takes eight sums of the one below, the last all that come,
    /// so that no element passes through many additions.
    fn levels(&self) -> Vec<String> {
        (0..LEVELS).map(|level| format!("level{}_{level}", self.val.0)).collect()
    }

    /// Adds the sum of a tile to the levels, and sets the carry to the sum behind it.
    fn climb(&self, body: &mut Body, whole: &str) {
        let (levels, carry, identity) = (self.levels(), self.carry(), self.running.identity());
        body.line(format!("{0} = {0} + {whole};", levels[0]));
        for (level, pair) in levels.windows(2).enumerate() {
            let mask = (1u32 << (3 * (level + 1))) - 1;
            body.line(format!("if ((tile & {mask}u) == {mask}u) {{"));
            body.line(format!("{0} = {0} + {1};", pair[1], pair[0]));
            body.line(format!("{} = {identity};", pair[0]));
        }
        levels[1..].iter().for_each(|_| body.line("}"));
        body.line(format!("{carry} = {};", levels[LEVELS - 1]));
        for level in levels[..LEVELS - 1].iter().rev() {
            body.line(format!("{carry} = {carry} + {level};"));
        }
        if body.kernel.scratch.is_some() {
            body.line(format!("{} = {carry};", self.names("total")[0]));
        }
        body.line(format!("{carry} = {} + {carry};", self.origin()));
    }

    /// The variable that holds a float sum behind the chunks before this one.
    fn origin(&self) -> String {
        format!("origin{}", self.val.0)
    }

    /// Sets the carry to the value behind the chunks before this one: each invocation composes neighbours of them.
    /// Their parts begin at this word of scratch.
    fn begin_behind(&self, body: &mut Body, mut word: usize) {
        let Some(scratch) = body.kernel.scratch else { return };
        let (before, stored) = (self.names("before"), self.names("stored"));
        body.line("{");
        self.declare(body, &before, self.running.identity());
        body.line("let each = (chunk + 255u) / 256u;");
        body.line("let first = min(lid * each, chunk);");
        body.line("let last = min(first + each, chunk);");
        body.line("for (var chunk_of = first; chunk_of < last; chunk_of++) {");
        for (name, dtype) in stored.iter().zip(&self.components) {
            let words: Vec<String> = (0..dtype.gpu_bytes() / 4)
                .map(|offset| {
                    let index = scratch_index(body, word + offset, "outer");
                    body.memory.load(scratch, Accessor::Load, &index)
                })
                .collect();
            word += words.len();
            body.line(format!("let {name} = {};", from_words(*dtype, &words)));
        }
        self.append(body, &before, &stored);
        body.line("}");
        let whole = self.compose_all(body, &before);
        let carry = self.carry();
        let value = self.running.apply(&mut body.functions, &carry, &carry, &whole);
        body.lines(value);
        if self.running.is_float_sum() {
            body.line(format!("{} = {carry};", self.origin()));
        }
        body.line("}");
    }

    /// Writes what the chunk does. Returns the next word of scratch.
    fn store_total(&self, body: &mut Body, mut word: usize) -> usize {
        let Some(scratch) = body.kernel.scratch else { return word };
        for (name, dtype) in self.names("total").iter().zip(&self.components) {
            for value in to_words(*dtype, name) {
                let index = scratch_index(body, word, "outer");
                let statement = body.memory.store(scratch, Accessor::Store, &index, &value);
                body.line(statement);
                word += 1;
            }
        }
        word
    }

    fn words(&self) -> usize {
        self.components.iter().map(|dtype| dtype.gpu_bytes() / 4).sum()
    }
}

pub(super) fn scan(body: &mut Body, shared: &mut Shared) {
    let scans = Scan::all(body, shared);
    let in_phases = body.kernel.scratch.is_some();
    place(body, in_phases);
    body.instructions(Level::Uniform, |_, _| {});
    body.instructions(Level::Outer, |_, _| {});
    for scan in &scans {
        let (ty, identity) = (typed(scan.dtype, 1), scan.running.identity());
        body.line(format!("var {}: {ty} = {identity};", scan.carry()));
        if scan.running.is_float_sum() {
            for name in scan.levels().into_iter().chain([scan.origin()]) {
                body.line(format!("var {name}: {ty} = {identity};"));
            }
        }
        if in_phases {
            scan.declare(body, &scan.names("total"), scan.running.identity());
        }
    }
    if in_phases {
        let chunks = body.memory.parameter(header::CHUNKS);
        body.line(format!("if ((phase == 2u) & ({chunks} > 1u)) {{"));
        let mut word = 0;
        for scan in &scans {
            scan.begin_behind(body, word);
            word += scan.words();
        }
        body.line("}");
    }
    let inner = body.memory.parameter(header::INNER);
    body.line(format!("let reverse = {} == 1u;", body.memory.parameter(header::REVERSE)));
    body.line("let tiles = (stop - start + 255u) / 256u;");
    body.line("for (var tile = 0u; tile < tiles; tile++) {");
    body.line("let place = start + tile * 256u + lid;");
    body.line("let inside = place < stop;");
    body.line(format!("let near = min(place, {inner} - 1u);"));
    body.line(format!("let inner = select(near, {inner} - 1u - near, reverse);"));
    body.instructions(Level::Element, |body, val| {
        let InstOp::Scan { arg, .. } = body.kernel.inst(val).op else { return no_fold(body, val) };
        if let Some(scan) = scans.iter().find(|scan| scan.val == val) {
            scan.tile(body, arg);
        }
    });
    body.line(if in_phases { "if (inside & (phase == 2u)) {" } else { "if (inside) {" });
    body.element_stores();
    body.line("}");
    body.line("}");
    body.line(if in_phases { "if ((lid == 0u) & (phase == 2u) & (chunk == 0u)) {" } else { "if (lid == 0u) {" });
    body.outer_stores();
    body.line("}");
    if in_phases {
        body.line("if ((lid == 0u) & (phase == 1u)) {");
        body.line("let chunk_of = chunk;");
        scans.iter().fold(0, |word, scan| scan.store_total(body, word));
        body.line("}");
    }
}

/// Which line, and what of it, this workgroup walks.
fn place(body: &mut Body, in_phases: bool) {
    let parameter = |at: usize| body.memory.parameter(at);
    let (begin, end, inner) = (parameter(header::BEGIN), parameter(header::END), parameter(header::INNER));
    let (phase, chunk, chunks) = (parameter(header::PHASE), parameter(header::CHUNK), parameter(header::CHUNKS));
    body.line("let item = group.y * groups.x + group.x;");
    if in_phases {
        body.line(format!("let phase = {phase};"));
        body.line(format!("let line = item / {chunks};"));
        body.line(format!("let chunk = item % {chunks};"));
        body.line(format!("let start = chunk * {chunk};"));
        body.line(format!("let stop = start + min({chunk}, {inner} - start);"));
    } else {
        body.line("let line = item;");
        body.line("let start = 0u;");
        body.line(format!("let stop = {inner};"));
    }
    body.line(format!("if (line >= {end} - {begin}) {{ return; }}"));
    body.line(format!("let outer = {begin} + line;"));
}
