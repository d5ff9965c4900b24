//! Turns instructions into statements. All forms share this part of the writer.
//!
//! In: a kernel and a target. Out: lines of WGSL for the instructions of one level at a time, and the lists
//! of helper functions that they need.
//!
//! Must hold: `Element` values have `width` lanes, all others one; lanes past the end have the indices of the last
//! element, so that their loads are harmless, but arbitrary values: they store nothing and raise no fault.

use super::Target;
use super::across;
use super::memory::{Accessor, Memory, is_group_store};
use super::types::{from_storage, from_words, lanes, register, splat, typed};
use crate::graph::{DType, Dist};
use crate::kernels::element::wgsl::Functions;
use crate::kernels::ir::{Form, IndexCompare, IndexOp, InstOp, Kernel, Level, Lines, Run, Store, Val};
use crate::kernels::random;
use std::collections::BTreeSet;

/// The state of writing a module.
pub(super) struct Body<'k> {
    pub(super) kernel: &'k Kernel,
    pub(super) width: u32,
    /// Lanes of values that vary with the outer index only.
    pub(super) outer_width: u32,
    /// Whether loads run across the flat index.
    pub(super) is_across: bool,
    /// The number of the invocation's group of elements for which statements are being written.
    pub(super) round: u32,
    pub(super) functions: Functions,
    pub(super) memory: Memory<'k>,
    checks: BTreeSet<DType>,
    /// Whether the module needs the functions of [`DIVISIONS`].
    divides: bool,
    /// For each value, whether it is arithmetic on the position alone. As indices, such values of neighbouring lanes
    /// are likely to be neighbours.
    positional: Vec<bool>,
    text: String,
    indent: usize,
}

impl<'k> Body<'k> {
    pub(super) fn new(kernel: &'k Kernel, target: &Target) -> Body<'k> {
        Body {
            kernel,
            width: kernel.width(),
            outer_width: kernel.outer_width(),
            is_across: kernel.across().is_some(),
            round: 0,
            functions: Functions::new(target.profile, target.precision, target.i64),
            memory: Memory::new(kernel, target.takes_immediates(kernel)),
            checks: BTreeSet::new(),
            divides: false,
            positional: positional(kernel),
            text: String::new(),
            indent: 1,
        }
    }

    /// Appends a line. A closing brace at its start ends an indented block, and an opening brace at its end begins one.
    pub(super) fn line(&mut self, line: impl AsRef<str>) {
        let line = line.as_ref().trim_start();
        if line.starts_with('}') {
            self.indent -= 1;
        }
        for _ in 0..self.indent {
            self.text.push_str("    ");
        }
        self.text.push_str(line);
        self.text.push('\n');
        if line.ends_with('{') {
            self.indent += 1;
        }
    }

    pub(super) fn lines(&mut self, lines: impl IntoIterator<Item = String>) {
        for line in lines {
            self.line(line);
        }
    }

    /// Takes the statements of `main`.
    pub(super) fn take_text(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// The functions that bounds checks need.
    pub(super) fn check_functions(&self) -> String {
        self.checks.iter().map(|&dtype| check_function(dtype)).collect()
    }

    /// The functions that divide the indices of neighbouring lanes.
    pub(super) fn division_functions(&self) -> String {
        if self.divides { DIVISIONS.to_string() } else { String::new() }
    }

    /// The number of lanes of a value.
    pub(super) fn lanes_of(&self, val: Val) -> u32 {
        match self.kernel.inst(val).level {
            Level::Element => self.width,
            Level::Outer | Level::Reduced => self.outer_width,
            Level::Uniform => 1,
        }
    }

    /// The name of a value.
    pub(super) fn name(&self, val: Val) -> String {
        match self.kernel.inst(val).op {
            InstOp::Reduce { .. } => component(val, 0),
            InstOp::Project(of, number) => component(of, number as usize),
            _ if self.kernel.inst(val).level == Level::Element => self.local(&format!("v{}", val.0)),
            _ => format!("v{}", val.0),
        }
    }

    /// The name of a variable of which each group of elements has its own.
    pub(super) fn local(&self, name: &str) -> String {
        if self.round == 0 { name.to_string() } else { format!("{name}_{}", self.round) }
    }

    /// A value with `width` lanes. A value with one lane is repeated.
    pub(super) fn value(&self, val: Val, width: u32) -> String {
        let name = self.name(val);
        if width > self.lanes_of(val) { splat(register(self.kernel.inst(val).dtype), width, &name) } else { name }
    }

    /// Writes the instructions of a level, in order. Calls `fold` for folds and scans, which the form writes.
    pub(super) fn instructions(&mut self, level: Level, mut fold: impl FnMut(&mut Self, Val)) {
        for number in 0..self.kernel.insts.len() {
            let val = Val(number as u32);
            if let InstOp::Reduce { .. } = self.kernel.inst(val).op {
                // A fold is written among the elements, where its arguments are known.
                if level == Level::Element {
                    fold(self, val);
                }
            } else if self.kernel.inst(val).level == level {
                match self.kernel.inst(val).op {
                    InstOp::Scan { .. } => fold(self, val),
                    InstOp::Load { operand, index, run: Run::Flat, guard: None }
                        if level == Level::Element && self.loads_in_step(operand) =>
                    {
                        self.load_step(val, operand, index);
                    }
                    _ if level == Level::Element => self.each_round(|body| body.instruction(val)),
                    _ => self.instruction(val),
                }
            }
        }
    }

    /// Calls `write` for each of the groups of elements that an invocation takes.
    pub(super) fn each_round(&mut self, mut write: impl FnMut(&mut Self)) {
        for round in 0..self.kernel.rounds() {
            self.round = round;
            write(self);
        }
        self.round = 0;
    }

    pub(super) fn instruction(&mut self, val: Val) {
        let kernel = self.kernel;
        let inst = kernel.inst(val);
        let width = self.lanes_of(val);
        let name = self.name(val);
        let expression = match &inst.op {
            InstOp::Param(slot) => from_words(inst.dtype, &[self.parameter(*slot), self.parameter(slot + 1)]),
            InstOp::Flat => self.local("flat"),
            InstOp::Outer => "outer".to_string(),
            InstOp::Inner => self.local("inner"),
            InstOp::Index(op @ (IndexOp::Div | IndexOp::Rem), a, b) if self.is_line(*a, *b) => {
                self.divides = true;
                let function = if *op == IndexOp::Div { "quotients" } else { "remainders" };
                format!("{function}({}, {})", self.name(*a), self.name(*b))
            }
            InstOp::Index(op, a, b) => index(*op, &self.value(*a, width), &self.value(*b, width)),
            InstOp::Compare(op, a, b) => compare(*op, width, &self.value(*a, width), &self.value(*b, width)),
            InstOp::Load { operand, index, run, guard } => {
                return self.load(&name, val, *operand, *index, *run, *guard);
            }
            InstOp::Apply(op, args) => {
                let input = kernel.inst(*args.last().expect("IR-7: an op has arguments")).dtype;
                let args: Vec<String> = args.iter().map(|arg| self.value(*arg, width)).collect();
                self.functions.apply(*op, input, inst.dtype, width, &args)
            }
            InstOp::Check { index, extent, site, guard } => self.check(val, *index, *extent, *site, *guard),
            InstOp::Require { condition, site, guard } => return self.require(val, *condition, *site, *guard),
            InstOp::Random { dist, key, element, run, params } => {
                return self.random(&name, val, *dist, *key, *element, *run, params);
            }
            // The form writes folds, and declares their components there.
            InstOp::Reduce { .. } | InstOp::Project(..) | InstOp::Scan { .. } => return,
        };
        self.line(format!("let {name} = {expression};"));
    }

    /// Whether four neighbouring indices are divided by one number.
    fn is_line(&self, index: Val, by: Val) -> bool {
        let is_flat = self.kernel.form == Form::Map && self.kernel.inst(index).op == InstOp::Flat;
        is_flat && self.lanes_of(index) == 4 && self.lanes_of(by) == 1
    }

    /// Whether elements at the flat index are loaded as whole groups of four, from `position` on.
    fn has_groups(&self) -> bool {
        matches!(self.kernel.form, Form::Map | Form::Line(Lines { in_fours: true, .. }))
    }

    pub(super) fn load(&mut self, name: &str, val: Val, operand: u16, index: Val, run: Run, guard: Option<Val>) {
        let dtype = self.kernel.inst(val).dtype;
        let width = self.lanes_of(val);
        let index_lanes = self.lanes_of(index);
        if let Run::Across { .. } = run {
            let element = from_storage(dtype, 1, &across::taken(self, val));
            return self.line(format!("let {name} = {element};"));
        }
        let whole = if width == 1 {
            self.memory.load(operand, Accessor::Load, &self.name(index))
        } else if run == Run::Same && index_lanes > 1 && self.outer_width > 1 {
            // The index is the same along a line, but differs between the outputs of an invocation.
            self.memory.load(operand, Accessor::LoadLanes, &self.name(index))
        } else if index_lanes == 1 || run == Run::Same {
            let first = lanes(&self.name(index), index_lanes)[0].clone();
            let one = self.memory.load(operand, Accessor::Load, &first);
            splat(register(dtype), width, &one)
        } else if run == Run::Flat && self.has_groups() {
            self.memory.load(operand, Accessor::LoadGroup, &self.local("position"))
        } else if run == Run::Flat || (self.positional[index.0 as usize] && self.memory.grouped(operand)) {
            self.memory.load(operand, Accessor::LoadLanes, &self.name(index))
        } else {
            let each: Vec<String> = lanes(&self.name(index), width)
                .iter()
                .map(|lane| self.memory.load(operand, Accessor::Load, lane))
                .collect();
            format!("{}({})", typed(dtype, width), each.join(", "))
        };
        let Some(guard) = guard else {
            self.line(format!("let {name} = {whole};"));
            return;
        };
        let guard_lanes = self.lanes_of(guard);
        let guard = self.name(guard);
        self.line(format!("var {name}: {};", typed(dtype, width)));
        if guard_lanes == 1 {
            self.line(format!("if ({guard}) {{ {name} = {whole}; }}"));
            return;
        }
        self.line(format!("if (all({guard})) {{"));
        self.line(format!("{name} = {whole};"));
        self.line("} else {");
        let indices = lanes(&self.name(index), index_lanes);
        for (number, (place, condition)) in lanes(name, width).iter().zip(lanes(&guard, width)).enumerate() {
            let one = self.memory.load(operand, Accessor::Load, &indices[number.min(indices.len() - 1)]);
            self.line(format!("if ({condition}) {{ {place} = {one}; }}"));
        }
        self.line("}");
    }

    /// Whether the loads of all rounds of a step of a reduction's loop are written together, because each is a whole
    /// group of four.
    fn loads_in_step(&self, operand: u16) -> bool {
        let is_reduction = matches!(self.kernel.form, Form::Reduce { .. });
        is_reduction && self.width == 4 && self.kernel.rounds() > 1 && self.memory.grouped(operand)
    }

    /// Loads all groups of a step together, so that the loads need one branch and none waits for another.
    fn load_step(&mut self, val: Val, operand: u16, index: Val) {
        let ty = typed(self.kernel.inst(val).dtype, 4);
        let mut names = Vec::new();
        self.each_round(|body| names.push((body.name(val), body.name(index))));
        let is_group = |(_, i): &(String, String)| {
            format!("({i}.x & 3u) == 0u && all({i} - vec4<u32>({i}.x) == vec4<u32>(0u, 1u, 2u, 3u))")
        };
        for (name, _) in &names {
            self.line(format!("var {name}: {ty};"));
        }
        self.line(format!("if ({}) {{", names.iter().map(is_group).collect::<Vec<_>>().join(" && ")));
        for (name, index) in &names {
            let group = self.memory.load(operand, Accessor::LoadGroup, &format!("{index}.x"));
            self.line(format!("{name} = {group};"));
        }
        self.line("} else {");
        for (round, (name, index)) in names.iter().enumerate() {
            let each: Vec<String> =
                lanes(index, 4).iter().map(|lane| self.memory.load(operand, Accessor::Load, lane)).collect();
            let whole = format!("{name} = {ty}({});", each.join(", "));
            // A short line has no group in later rounds.
            self.line(match round {
                0 => whole,
                _ => format!("if (group_here_{round} < groups_here) {{ {whole} }}"),
            });
        }
        self.line("}");
    }

    fn parameter(&self, slot: u32) -> String {
        self.memory.parameter(slot as usize)
    }

    fn check(&mut self, val: Val, index: Val, extent: Val, site: u32, guard: Option<Val>) -> String {
        let width = self.lanes_of(val);
        let is_element = self.kernel.inst(val).level == Level::Element;
        let dtype = self.kernel.inst(index).dtype;
        self.checks.insert(dtype);
        let indices = lanes(&self.value(index, width), width);
        let extents = lanes(&self.value(extent, width), width);
        let guards = self.inside(width, is_element, guard);
        let site = self.parameter(site);
        let each: Vec<String> = (0..width as usize)
            .map(|lane| {
                let guard = guards.as_ref().map_or("true", |guards| &guards[lane]);
                format!("check_{}({}, {}, {guard}, {site})", dtype.name(), indices[lane], extents[lane])
            })
            .collect();
        if width == 1 { each[0].clone() } else { format!("{}({})", typed(DType::U32, width), each.join(", ")) }
    }

    /// Sets a fault word if a condition is false in any lane.
    fn require(&mut self, val: Val, condition: Val, site: u32, guard: Option<Val>) {
        let kernel = self.kernel;
        let width = self.lanes_of(val);
        let mut fails = format!("!{}", self.value(condition, width));
        // In a map of one lane, an invocation outside has returned already. In a reduction of one lane, there is no
        // step outside.
        let is_scan = matches!(kernel.form, Form::Scan { .. } | Form::Line(_));
        match (kernel.inst(val).level, kernel.form) {
            (Level::Element, _) if width > 1 || is_scan => fails.push_str(&format!(" & {}", self.local("inside"))),
            (Level::Uniform | Level::Outer | Level::Reduced, Form::Line(_)) => fails.push_str(" & live"),
            (Level::Element | Level::Uniform | Level::Outer | Level::Reduced, _) => {}
        }
        if let Some(guard) = guard {
            fails = format!("{fails} & {}", self.value(guard, width));
        }
        let fails = if width == 1 { fails } else { format!("any({fails})") };
        let site = self.parameter(site);
        self.line(format!("if ({fails}) {{ atomicStore(&faults[{site}], 1u); }}"));
    }

    /// For each lane, the condition that it lies inside the space and that its guard, if any, holds. `None` if that is
    /// always true. Values that are not elements belong to outputs; lanes past the last output have the values of the
    /// last one, which do no harm. In form `Line`, an invocation past the last line has folded nothing, so it must be
    /// excluded.
    fn inside(&self, width: u32, is_element: bool, guard: Option<Val>) -> Option<Vec<String>> {
        let guard = guard.map(|guard| lanes(&self.value(guard, width), width));
        let holds_lines = matches!(self.kernel.form, Form::Line(_));
        let inside = match is_element {
            true if width > 1 || self.is_across || holds_lines => lanes(&self.local("inside"), width),
            false if holds_lines => vec!["live".to_string(); width as usize],
            true | false => return guard,
        };
        Some(match guard {
            Some(guard) => inside.iter().zip(guard).map(|(inside, guard)| format!("{inside} && {guard}")).collect(),
            None => inside,
        })
    }

    #[allow(clippy::too_many_arguments)]
    fn random(&mut self, name: &str, val: Val, dist: Dist, key: u32, element: Val, run: Run, params: &[Val]) {
        let dtype = self.kernel.inst(val).dtype;
        let width = self.lanes_of(val);
        let words: [String; 5] = std::array::from_fn(|word| self.parameter(key + word as u32));
        let of = element;
        let element = self.value(element, width);
        let of_params = params.first().map_or(dtype, |&param| self.kernel.inst(param).dtype);
        let params: Vec<String> = params.iter().map(|&param| self.value(param, width)).collect();
        let flat = width == 4 && run == Run::Flat && dist.parameters() == 0;
        let functions = &mut self.functions;
        let mut draw = |flat| {
            random::wgsl(functions, dist, dtype, of_params, width, words.clone(), element.clone(), flat, &params)
        };
        // In a full reduction, the inner index is a multiple of four at every step.
        let is_own =
            self.kernel.form == (Form::Reduce { inner_fast: true }) && matches!(self.kernel.inst(of).op, InstOp::Inner);
        if flat && self.kernel.form != Form::Map && !is_own {
            // Rows of a reduction may begin anywhere. Four lanes share a call of the generator only if they are one
            // group.
            let (shared, alone) = (draw(true), draw(false));
            self.line(format!("var {name}: {};", typed(dtype, width)));
            self.line(format!("let {name}_first = {element}.x;"));
            let group = format!("vec4<u32>({name}_first) + vec4<u32>(0u, 1u, 2u, 3u)");
            self.line(format!("if (({name}_first & 3u) == 0u && all({element} == {group})) {{"));
            self.line(format!("{name} = {shared};"));
            self.line("} else {");
            self.line(format!("{name} = {alone};"));
            self.line("}");
        } else {
            let drawn = draw(flat);
            self.line(format!("let {name} = {drawn};"));
        }
    }

    /// Whether a store is done for each element, because its value, its index or its guard is an element.
    pub(super) fn is_element_store(&self, store: &Store) -> bool {
        let is_element = |val: Val| self.kernel.inst(val).level == Level::Element;
        match self.kernel.form {
            Form::Map => true,
            _ => is_element(store.value) || store.index.is_some_and(is_element) || store.guard.is_some_and(is_element),
        }
    }

    /// Writes the stores that are done for every element.
    pub(super) fn element_stores(&mut self) {
        for (number, store) in self.kernel.stores.iter().enumerate() {
            if self.is_element_store(store) {
                self.each_round(|body| body.element_store(number, store));
            }
        }
    }

    /// Writes the stores that are done for every element of the current round.
    pub(super) fn round_stores(&mut self) {
        for (number, store) in self.kernel.stores.iter().enumerate() {
            if self.is_element_store(store) {
                self.element_store(number, store);
            }
        }
    }

    fn element_store(&mut self, number: usize, store: &Store) {
        let width = self.width;
        let mut value = self.value(store.value, width);
        if self.memory.grouped(store.operand) && is_group_store(self.kernel, store) {
            let position = self.local("position");
            let statement = self.memory.store(store.operand, Accessor::StoreGroup, &position, &value);
            let condition = match self.kernel.form {
                Form::Line(_) => format!("{}.x", self.local("inside")),
                // The first group always has elements, because an invocation without elements has returned.
                _ if self.round == 0 => return self.line(statement),
                _ => self.local("live"),
            };
            return self.line(format!("if ({condition}) {{ {statement} }}"));
        }
        if self.lanes_of(store.value) < width {
            let name = self.local(&format!("stored{number}"));
            self.line(format!("let {name} = {value};"));
            value = name;
        }
        let index = store.index.map_or_else(|| self.local("flat"), |index| self.value(index, width));
        let guard = self.inside(width, true, store.guard);
        for (lane, (index, value)) in lanes(&index, width).iter().zip(lanes(&value, width)).enumerate() {
            let statement = self.memory.store(store.operand, Accessor::Store, index, &value);
            match &guard {
                Some(guard) => self.line(format!("if ({}) {{ {statement} }}", guard[lane])),
                None => self.line(statement),
            }
        }
    }

    /// Writes the stores that are done once for each output, at `outer` if they have no index.
    pub(super) fn outer_stores(&mut self) {
        let kernel = self.kernel;
        for store in &kernel.stores {
            if self.is_element_store(store) {
                continue;
            }
            let width = self.outer_width;
            let index = store.index.map_or("outer".to_string(), |index| self.value(index, width));
            let value = self.value(store.value, width);
            let guard = store.guard.map(|guard| lanes(&self.value(guard, width), width));
            for (lane, (index, value)) in lanes(&index, width).iter().zip(lanes(&value, width)).enumerate() {
                let statement = self.memory.store(store.operand, Accessor::Store, index, &value);
                let kept = (width > 1).then(|| lanes("kept", width)[lane].clone());
                let guard = guard.as_ref().map(|guard| guard[lane].clone());
                let conditions: Vec<String> = kept.into_iter().chain(guard).collect();
                match conditions.is_empty() {
                    false => self.line(format!("if ({}) {{ {statement} }}", conditions.join(" && "))),
                    true => self.line(statement),
                }
            }
        }
    }
}

/// The variable of a component of a fold.
pub(super) fn component(val: Val, number: usize) -> String {
    format!("r{}_{number}", val.0)
}

fn index(op: IndexOp, a: &str, b: &str) -> String {
    match op {
        IndexOp::Add => format!("{a} + {b}"),
        IndexOp::Sub => format!("{a} - {b}"),
        IndexOp::Mul => format!("{a} * {b}"),
        IndexOp::Div => format!("{a} / {b}"),
        IndexOp::Rem => format!("{a} % {b}"),
        // If `a` is less than `b`, the difference wraps around to more than `a`.
        IndexOp::Wrap => format!("min({a}, {a} - {b})"),
    }
}

fn compare(op: IndexCompare, width: u32, a: &str, b: &str) -> String {
    match op {
        IndexCompare::Less => format!("{a} < {b}"),
        IndexCompare::Equal => format!("{a} == {b}"),
        IndexCompare::SignedLessEqual => {
            let signed = typed(DType::I32, width);
            format!("bitcast<{signed}>({a}) <= bitcast<{signed}>({b})")
        }
    }
}

/// Quotients and remainders of the indices of four lanes by one number. If the lanes are neighbours and the number is
/// at least four, each quotient is that of the first lane or one more, so that one division is enough.
const DIVISIONS: &str = "\
fn quotients(i: vec4<u32>, d: u32) -> vec4<u32> {
    if (d < 4u || i.w - i.x != 3u) { return i / vec4<u32>(d); }
    let q = i.x / d;
    let r = vec4<u32>(i.x - q * d) + vec4<u32>(0u, 1u, 2u, 3u);
    return vec4<u32>(q) + select(vec4<u32>(0u), vec4<u32>(1u), r >= vec4<u32>(d));
}
fn remainders(i: vec4<u32>, d: u32) -> vec4<u32> {
    if (d < 4u || i.w - i.x != 3u) { return i % vec4<u32>(d); }
    let r = vec4<u32>(i.x - i.x / d * d) + vec4<u32>(0u, 1u, 2u, 3u);
    return min(r, r - vec4<u32>(d));
}
";

/// For each value of a kernel, whether it is an index that depends on the position and on parameters alone.
fn positional(kernel: &Kernel) -> Vec<bool> {
    let mut known: Vec<bool> = Vec::with_capacity(kernel.insts.len());
    for inst in &kernel.insts {
        let is_positional = match inst.op {
            InstOp::Param(_) | InstOp::Flat | InstOp::Outer | InstOp::Inner => true,
            InstOp::Index(_, a, b) => known[a.0 as usize] && known[b.0 as usize],
            _ => false,
        };
        known.push(is_positional);
    }
    known
}

/// A function that clamps an index into `0..extent`, and sets a fault word if it lay outside.
fn check_function(dtype: DType) -> String {
    let ty = register(dtype);
    let (outside, clamped) = match dtype {
        DType::I32 => {
            ("index < 0i || u32(index) >= extent", "select(min(u32(index), extent - 1u), 0u, index < 0i)".to_string())
        }
        DType::I64 => ("index < 0li || index >= i64(extent)", "u32(clamp(index, 0li, i64(extent) - 1li))".to_string()),
        _ => ("index >= extent", "min(index, extent - 1u)".to_string()),
    };
    format!(
        "fn check_{}(index: {ty}, extent: u32, guard: bool, site: u32) -> u32 {{\n    if (guard && ({outside})) {{ atomicStore(&faults[site], 1u); }}\n    return {clamped};\n}}\n",
        dtype.name()
    )
}
