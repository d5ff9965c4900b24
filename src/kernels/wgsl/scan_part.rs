//! Writes one scan of a kernel: its carry, and how the elements of a step of the walk along a line are added to it.
//!
//! In: the scan's argument for each round of a step. Out: statements that set the scan's value, its carry, and the
//! total of the current chunk. Must hold: no element of a float sum passes through many additions ([`Levels`]).

use super::body::Body;
use super::forms::{Shared, scratch_index, shared_name};
use super::memory::Accessor;
use super::running::Running;
use super::types::{from_storage, from_words, to_storage, to_words, typed};
use crate::graph::DType;
use crate::kernels::ir::{InstOp, Val, WORKGROUP};

/// Levels in which the parts of a float sum are added up, so that no element passes through many additions. Each level
/// adds `1 << log2` sums of the level below it and then passes its sum on. The last level adds all sums that reach it.
#[derive(Clone, Copy)]
pub(super) struct Levels {
    count: usize,
    log2: usize,
}

/// Levels for the sums of tiles. They keep chains short for 32,768 tiles, which is more than a chunk has.
pub(super) const OF_TILES: Levels = Levels { count: 5, log2: 3 };
/// Levels for the elements of a line that one invocation walks, and for the totals of its chunks.
pub(super) const OF_ELEMENTS: Levels = Levels { count: 8, log2: 2 };

/// A scan of the kernel.
pub(super) struct Scan {
    pub(super) val: Val,
    pub(super) dtype: DType,
    pub(super) running: Running,
    components: Vec<DType>,
    /// Tiles that a step scans together.
    rounds: usize,
    /// The workgroup arrays that its components go through ([`Scan::array`]).
    arrays: Vec<String>,
}

impl Scan {
    /// The scans of a kernel, in order.
    pub(super) fn all(body: &Body, shared: &mut Shared) -> Vec<Scan> {
        let scan = |(number, inst): (usize, &crate::kernels::ir::Inst)| {
            let InstOp::Scan { monoid, .. } = inst.op else { return None };
            let components = monoid.running_components(inst.dtype).to_vec();
            let rounds = body.kernel.rounds() as usize;
            let mut array = |at: usize| shared_name(shared, components[at % components.len()], at, WORKGROUP);
            let arrays = (0..2 * rounds * components.len()).map(&mut array).collect();
            let running = Running::new(monoid, inst.dtype);
            Some(Scan { val: Val(number as u32), dtype: inst.dtype, running, components, rounds, arrays })
        };
        body.kernel.insts.iter().enumerate().filter_map(scan).collect()
    }

    /// The names of the variables that hold the components of `of`.
    pub(super) fn names(&self, of: &str) -> Vec<String> {
        (0..self.components.len()).map(|component| format!("{of}{}_{component}", self.val.0)).collect()
    }

    /// The same names, but different for each round.
    fn locals(&self, body: &Body, of: &str) -> Vec<String> {
        self.names(of).iter().map(|name| body.local(name)).collect()
    }

    pub(super) fn carry(&self) -> String {
        format!("carry{}", self.val.0)
    }

    /// Declares variables of these names with the components of the element `x`.
    pub(super) fn declare(&self, body: &mut Body, names: &[String], x: &str) {
        for (name, value) in names.iter().zip(self.running.element(x)) {
            body.line(format!("var {name} = {value};"));
        }
    }

    /// The workgroup array of a component. There are two for each component, which the steps use in turns.
    fn array(&self, half: usize, round: usize, component: usize) -> &str {
        &self.arrays[(half * self.rounds + round) * self.components.len() + component]
    }

    fn publish(&self, body: &mut Body, parts: &[Vec<String>], half: usize) {
        for (round, part) in parts.iter().enumerate() {
            for (component, (name, dtype)) in part.iter().zip(&self.components).enumerate() {
                let array = self.array(half, round, component);
                body.line(format!("{array}[lid] = {};", to_storage(*dtype, 1, name)));
            }
        }
        body.line("workgroupBarrier();");
    }

    fn read(&self, body: &mut Body, names: &[String], (half, round): (usize, usize), at: &str) {
        for (component, (name, dtype)) in names.iter().zip(&self.components).enumerate() {
            let array = self.array(half, round, component);
            body.line(format!("let {name} = {};", from_storage(*dtype, 1, &format!("{array}[{at}]"))));
        }
    }

    /// Composes the part of each of 256 invocations with the parts of all invocations before it, for several scans at a
    /// time. Declares the composition of all 256 parts as `whole`. The steps are written out, because Mesa's software
    /// device counts the steps of nested loops together.
    fn compose_all(&self, body: &mut Body, parts: &[Vec<String>]) -> Vec<Vec<String>> {
        let earlier = self.names("earlier");
        body.line("workgroupBarrier();");
        for step in 0..8 {
            let distance = 1 << step;
            self.publish(body, parts, step % 2);
            body.line(format!("if (lid >= {distance}u) {{"));
            for (round, part) in parts.iter().enumerate() {
                body.line("{");
                self.read(body, &earlier, (step % 2, round), &format!("lid - {distance}u"));
                let lines = self.running.compose(&mut body.functions, part, &earlier);
                body.lines(lines);
                body.line("}");
            }
            body.line("}");
        }
        self.publish(body, parts, 0);
        let whole = |round: usize| -> Vec<String> {
            self.names("whole").iter().map(|name| format!("{name}_of_{round}")).collect()
        };
        let wholes: Vec<_> = (0..parts.len()).map(whole).collect();
        for (round, whole) in wholes.iter().enumerate() {
            self.read(body, whole, (0, round), "255");
        }
        wholes
    }

    /// Composes the part in the variables `part` with the part `later`, which follows it.
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

    /// Declares the element of each round: the scan's argument, or the identity outside of the line. Declares the
    /// variable of the scan's value, too, which is set later.
    fn elements(&self, body: &mut Body, arg: Val) {
        body.each_round(|body| {
            let (element, inside) = (self.element(body), body.local("inside"));
            let arg = body.value(arg, 1);
            body.line(format!("let {element} = select({}, {arg}, {inside});", self.running.identity()));
            let value = body.name(self.val);
            body.line(format!("var {value}: {};", typed(self.dtype, 1)));
        });
    }

    fn element(&self, body: &Body) -> String {
        body.local(&format!("element{}", self.val.0))
    }

    /// Sets the scan's value in the tiles of all rounds, its carry, and the total of the chunk so far.
    pub(super) fn tiles(&self, body: &mut Body, arg: Val) {
        self.elements(body, arg);
        let sums = self.running.is_float_sum();
        if sums && body.kernel.scratch.is_some() {
            // Phase 1 needs only the sum of the chunk, so each invocation adds up its own elements.
            body.line("if (phase == 1u) {");
            body.each_round(|body| {
                let element = self.element(body);
                self.push(body, OF_TILES, &element, "tile");
            });
            body.line("} else {");
        } else {
            body.line("{");
        }
        let mut parts = Vec::new();
        body.each_round(|body| {
            let (part, element) = (self.locals(body, "part"), self.element(body));
            self.declare(body, &part, &element);
            parts.push(part);
        });
        let wholes = self.compose_all(body, &parts);
        let carry = self.carry();
        let mut rounds = parts.iter().zip(&wholes);
        body.each_round(|body| {
            let (part, whole) = rounds.next().expect("each round has a part");
            let to = body.name(self.val);
            let value = self.running.apply(&mut body.functions, &to, &carry, part);
            body.lines(value);
            if sums {
                self.push(body, OF_TILES, &whole[0], "tile");
                self.sum_levels(body, OF_TILES);
                body.line(format!("{carry} = {} + {carry};", self.origin()));
                return;
            }
            let next = self.running.apply(&mut body.functions, &carry, &carry, whole);
            body.lines(next);
            if body.kernel.scratch.is_some() {
                self.append(body, &self.names("total"), whole);
            }
        });
        body.line("}");
    }

    /// Sets the scan's value in all rounds, for an invocation that walks a line by itself.
    pub(super) fn column(&self, body: &mut Body, arg: Val) {
        self.elements(body, arg);
        let carry = self.carry();
        body.each_round(|body| {
            let (element, value) = (self.element(body), body.name(self.val));
            if self.running.is_float_sum() {
                self.push(body, OF_ELEMENTS, &element, "tile");
                body.line("if (phase == 2u) {");
                self.sum_levels(body, OF_ELEMENTS);
                body.line(format!("{value} = {} + {carry};", self.origin()));
                return body.line("}");
            }
            let part = self.locals(body, "part");
            self.declare(body, &part, &element);
            body.line("if (phase == 2u) {");
            let next = self.running.apply(&mut body.functions, &carry, &carry, &part);
            body.lines(next);
            body.line(format!("{value} = {carry};"));
            body.line("} else {");
            self.append(body, &self.names("total"), &part);
            body.line("}");
        });
    }

    /// The variables that hold a float sum's parts.
    fn levels(&self, levels: Levels) -> Vec<String> {
        (0..levels.count).map(|level| format!("level{}_{level}", self.val.0)).collect()
    }

    pub(super) fn declare_levels(&self, body: &mut Body, levels: Levels) {
        let (ty, identity) = (typed(self.dtype, 1), self.running.identity());
        for name in self.levels(levels).into_iter().chain([self.origin()]) {
            body.line(format!("var {name}: {ty} = {identity};"));
        }
    }

    /// Adds a part to the levels. `step` is the variable with the number of the step; `tile` has a part for each round.
    fn push(&self, body: &mut Body, levels: Levels, part: &str, step: &str) {
        let (names, identity) = (self.levels(levels), self.running.identity());
        let rounds = body.kernel.rounds();
        let count = if step == "tile" { format!("({step} * {rounds}u + {}u)", body.round) } else { step.to_string() };
        body.line(format!("{0} = {0} + {part};", names[0]));
        for (level, pair) in names.windows(2).enumerate() {
            let mask = (1u32 << (levels.log2 * (level + 1))) - 1;
            body.line(format!("if (({count} & {mask}u) == {mask}u) {{"));
            body.line(format!("{0} = {0} + {1};", pair[1], pair[0]));
            body.line(format!("{} = {identity};", pair[0]));
        }
        names[1..].iter().for_each(|_| body.line("}"));
    }

    /// Sets the carry to the sum of the levels.
    fn sum_levels(&self, body: &mut Body, levels: Levels) {
        let (names, carry) = (self.levels(levels), self.carry());
        body.line(format!("{carry} = {};", names[levels.count - 1]));
        for level in names[..levels.count - 1].iter().rev() {
            body.line(format!("{carry} = {carry} + {level};"));
        }
    }

    /// The variable that holds a float sum's total over the chunks before this one.
    fn origin(&self) -> String {
        format!("origin{}", self.val.0)
    }

    /// Sets the carry to the value after the chunks before this one. Each invocation composes the totals of some
    /// neighbouring chunks. The scan's totals begin at this word of scratch.
    pub(super) fn begin_after_chunks(&self, body: &mut Body, mut word: usize) {
        let Some(scratch) = body.kernel.scratch else { return };
        let before = self.names("before");
        body.line("{");
        self.declare(body, &before, self.running.identity());
        body.line("let each = (chunk + 255u) / 256u;");
        body.line("let first = min(lid * each, chunk);");
        body.line("let last = min(first + each, chunk);");
        body.line("for (var chunk_of = first; chunk_of < last; chunk_of++) {");
        let stored = self.load_total(body, scratch, &mut word);
        self.append(body, &before, &stored);
        body.line("}");
        let whole = self.compose_all(body, &[before]).remove(0);
        let carry = self.carry();
        let value = self.running.apply(&mut body.functions, &carry, &carry, &whole);
        body.lines(value);
        if self.running.is_float_sum() {
            body.line(format!("{} = {carry};", self.origin()));
        }
        body.line("}");
    }

    /// Declares the total of the chunk `chunk_of` as `stored`. Reads it from scratch, from this word on.
    fn load_total(&self, body: &mut Body, scratch: u16, word: &mut usize) -> Vec<String> {
        let stored = self.names("stored");
        for (name, dtype) in stored.iter().zip(&self.components) {
            let words: Vec<String> = (0..dtype.gpu_bytes() / 4)
                .map(|offset| {
                    let index = scratch_index(body, *word + offset, "outer");
                    body.memory.load(scratch, Accessor::Load, &index)
                })
                .collect();
            *word += words.len();
            body.line(format!("let {name} = {};", from_words(*dtype, &words)));
        }
        stored
    }

    /// Does the same as `begin_after_chunks`, for an invocation that walks a line by itself.
    pub(super) fn begin_column_after_chunks(&self, body: &mut Body, mut word: usize) {
        let Some(scratch) = body.kernel.scratch else { return };
        let (before, carry) = (self.names("before"), self.carry());
        body.line("{");
        self.declare(body, &before, self.running.identity());
        body.line("for (var chunk_of = 0u; chunk_of < chunk; chunk_of++) {");
        let stored = self.load_total(body, scratch, &mut word);
        if self.running.is_float_sum() {
            self.push(body, OF_ELEMENTS, &stored[0], "chunk_of");
        } else {
            self.append(body, &before, &stored);
        }
        body.line("}");
        if self.running.is_float_sum() {
            self.sum_levels(body, OF_ELEMENTS);
            body.line(format!("{} = {carry};", self.origin()));
            for level in self.levels(OF_ELEMENTS) {
                body.line(format!("{level} = {};", self.running.identity()));
            }
        } else {
            let value = self.running.apply(&mut body.functions, &carry, &carry, &before);
            body.lines(value);
        }
        body.line("}");
    }

    /// Sets the total of a float sum to the sum of the levels, of this invocation or of the whole workgroup.
    pub(super) fn sum_total(&self, body: &mut Body, levels: Levels, of_all: bool) {
        if !self.running.is_float_sum() {
            return;
        }
        self.sum_levels(body, levels);
        let total = self.names("total");
        body.line(format!("{} = {};", total[0], self.carry()));
        if of_all {
            let whole = self.compose_all(body, std::slice::from_ref(&total)).remove(0);
            body.line(format!("{} = {};", total[0], whole[0]));
        }
    }

    /// Writes the total of the chunk to scratch. Returns the next word of scratch.
    pub(super) fn store_total(&self, body: &mut Body, mut word: usize) -> usize {
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

    pub(super) fn words(&self) -> usize {
        self.components.iter().map(|dtype| dtype.gpu_bytes() / 4).sum()
    }
}
