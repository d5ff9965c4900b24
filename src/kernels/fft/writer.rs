//! Writes the statements by which an invocation of a pass loads, transforms, exchanges and stores its numbers.
//!
//! In: a [`PassForm`]. Out: the text of `main`, in the order in which the methods of [`Writer`] are called. Must hold:
//! FFT-4.

use super::butterfly::{Number, Statements, literal};
use super::text::{INVOCATIONS, PARAMS, PassForm, PassLoad, PassStore};
use crate::graph::{DType, Parts};
use crate::kernels::wgsl::pieces::OWN_WORDS;
use crate::kernels::wgsl::types::{from_words, zero};
use std::fmt::Write;

/// The numbers that an invocation holds.
pub struct Held {
    /// For each of its butterflies: the line within the tile, the place of the first number in the line, and the
    /// numbers.
    butterflies: Vec<(String, String, Vec<Number>)>,
    /// The distance in their line between the numbers of a butterfly.
    apart: u32,
}

/// The statements of `main`, under construction.
pub struct Writer<'a> {
    form: &'a PassForm,
    /// The statements so far.
    pub statements: Statements,
    /// Whether neighbouring invocations have numbers of neighbouring lines at this point.
    lines_first: bool,
    /// Whether earlier statements read workgroup memory.
    read: bool,
}

impl Writer<'_> {
    /// No statements yet.
    pub fn new(form: &PassForm) -> Writer<'_> {
        let statements = Statements::new(form.dtype);
        Writer { form, statements, lines_first: form.lines_first, read: false }
    }

    fn add(&mut self, text: &str) {
        let _ = writeln!(self.statements.text, "    {text}");
    }

    /// Declares a name for each parameter.
    pub fn parameters(&mut self) {
        let dtype = self.form.dtype;
        for (number, name) in PARAMS.iter().enumerate() {
            self.add(&format!("let {name} = params[{}];", OWN_WORDS + number));
        }
        for name in ["factor", "turn_step", "chirp_step"] {
            let words = ["low", "high"].map(|word| format!("{name}_{word}"));
            self.add(&format!("let {name} = {};", from_words(dtype, &words)));
        }
        self.add("let turn_quarters = 4.0f / f32(turn);");
        if self.form.uses_chirp() {
            self.add("let chirp_quarters = 2.0f / f32(len);");
        }
    }

    /// The butterflies of radix `step` that an invocation does.
    fn shares(&mut self, step: u32) -> Vec<(String, String)> {
        let (lines, butterflies) = (self.form.lines(), self.form.radix / step);
        let all = lines * butterflies;
        let share = |part: u32| {
            let own = match part {
                0 => "lid".to_string(),
                _ => format!("(lid + {}u)", part * INVOCATIONS),
            };
            let own = if (part + 1) * INVOCATIONS > all { format!("min({own}, {}u)", all - 1) } else { own };
            let own = self.statements.value(&own);
            match self.lines_first {
                true => (
                    self.statements.value(&format!("{own} % {lines}u")),
                    self.statements.value(&format!("{own} / {lines}u")),
                ),
                false => (
                    self.statements.value(&format!("{own} / {butterflies}u")),
                    self.statements.value(&format!("{own} % {butterflies}u")),
                ),
            }
        };
        (0..all.div_ceil(INVOCATIONS)).map(share).collect()
    }

    /// The number, among all lines, of a line of the tile. A line beyond the last one gets the number of the last
    /// (FFT-4).
    fn line(&mut self, line: &str) -> String {
        let lines = self.form.lines();
        self.statements.value(&format!("min(index * {lines}u + {line}, lines - 1u)"))
    }

    /// Loads the numbers of the first step, of radix `step`.
    pub fn load(&mut self, step: u32) -> Held {
        let butterflies = self.form.radix / step;
        let shares = self.shares(step);
        let mut held = Vec::new();
        for (line, j) in shares {
            let l = self.line(&line);
            let within = self.statements.value(&format!("{l} % source_step"));
            let block = self.statements.value(&format!("{l} / source_step * source_pitch"));
            let done = if self.form.turned {
                Some(self.statements.value(&format!("{l} % target_step / before")))
            } else {
                None
            };
            let mut numbers = Vec::new();
            for i in 0..step {
                let p = self.statements.value(&format!("{j} + {}u", i * butterflies));
                let at = self.statements.value(&format!("{within} + {p} * source_step"));
                numbers.push(self.loaded(&block, &at));
            }
            if let Some(done) = &done {
                // The twiddle factor of `done * (j + i * butterflies)` is a product of two factors.
                let turn = |k: &str| format!("turn_of({k}, turn, turn_quarters, turn_step)");
                let first = self.turn(&turn(&format!("{done} * {j}")));
                let powers = self.powers(step, |i| turn(&format!("{done} * {}u", i * butterflies)));
                for (number, power) in numbers.iter_mut().zip(powers) {
                    let by = match power {
                        Some(power) => self.statements.product(&first, &power.re, &power.im),
                        None => first.clone(),
                    };
                    *number = self.statements.product(number, &by.re, &by.im);
                }
            }
            held.push((line, j, numbers));
        }
        Held { butterflies: held, apart: butterflies }
    }

    /// The number at a place of a block.
    fn loaded(&mut self, block: &str, at: &str) -> Number {
        match self.form.load {
            PassLoad::Plain(operand) => self.plain(operand, &format!("{block} + {at}")),
            PassLoad::Convolved(operand) => {
                let number = self.plain(operand, &format!("{block} + {at}"));
                let i = self.statements.value(&format!("{at} / before"));
                let re = self.statements.value(&format!("load_o{operand}({i})"));
                let im = self.statements.value(&format!("load_o{operand}({i} + padded)"));
                let Number { re, im } = self.statements.product(&number, &re, &im);
                Number { re: im, im: re }
            }
            PassLoad::Chirp => {
                let distance = self.statements.value(&format!("min({at}, padded - {at})"));
                let chirp = self.chirp(&format!("min({distance}, len)"));
                let zero = zero(self.form.dtype);
                let (re, im) = (format!("{chirp}.x"), format!("-{chirp}.y"));
                let select = |part: &str| format!("select({zero}, {part}, {distance} < len)");
                self.statements.number(&select(&re), &select(&im))
            }
            PassLoad::Argument { parts, half, swap, chirped } => self.argument(block, at, parts, half, swap, chirped),
        }
    }

    fn plain(&mut self, operand: u16, at: &str) -> Number {
        let at = self.statements.value(at);
        let part = |name: &str| format!("load_o{operand}(source_{name} + {at})");
        self.statements.number(&part("re"), &part("im"))
    }

    fn argument(&mut self, block: &str, at: &str, parts: Parts, half: bool, swap: bool, chirped: bool) -> Number {
        let zero = zero(self.form.dtype);
        // Elements beyond the line's length, and those that the argument does not have, are zeros.
        let inside = if chirped { format!("{at} < before * len && ") } else { String::new() };
        let (from, mirrored) = if half {
            let mirrored = self.statements.value(&format!("{at} >= before * (len / 2u + 1u) && {at} < before * len"));
            let image = format!("{at} % before + before * (len - {at} / before)");
            (self.statements.value(&format!("select({at}, {image}, {mirrored})")), Some(mirrored))
        } else {
            (at.to_string(), None)
        };
        let there = self.statements.value(&format!("{inside}{from} < source_end"));
        let place = self.statements.value(&format!("select(0u, {block} + {from}, {there})"));
        let re = self.statements.value(&format!("select({zero}, load_o0({place}), {there})"));
        let im = match parts {
            Parts::Real => zero.to_string(),
            Parts::Apart => format!("select({zero}, load_o1({place}), {there})"),
            Parts::Together => format!("select({zero}, load_o0(select(0u, source_im + {place}, {there})), {there})"),
        };
        let mut im = self.statements.value(&im);
        if let Some(mirrored) = mirrored {
            // An element that is its own mirror image is real: its imaginary part is not read.
            let own = self.statements.value(&format!("2u * ({from} / before) % len == 0u"));
            im = self.statements.value(&format!("select(select({im}, -{im}, {mirrored}), {zero}, {own})"));
        }
        let number = if swap { Number { re: im, im: re } } else { Number { re, im } };
        match chirped {
            true => {
                let chirp = self.chirp(&format!("min({at} / before, len)"));
                self.statements.product(&number, &format!("{chirp}.x"), &format!("{chirp}.y"))
            }
            false => number,
        }
    }

    /// Declares a name for `exp(-pi i k^2 / len)`, where `k` is at most `len`.
    fn chirp(&mut self, k: &str) -> String {
        self.statements.value(&format!("turn_of(square_of({k}, 2u * len), 2u * len, chirp_quarters, chirp_step)"))
    }

    /// Declares a name for a twiddle factor.
    fn turn(&mut self, turn: &str) -> Number {
        let turn = self.statements.value(turn);
        Number { re: format!("{turn}.x"), im: format!("{turn}.y") }
    }

    /// The powers of a twiddle factor from 0 to `count - 1`; that of 0 is `None`. Powers whose exponents are powers of
    /// two are computed by `turn`. The others are products of at most four of these.
    fn powers(&mut self, count: u32, turn: impl Fn(u32) -> String) -> Vec<Option<Number>> {
        let mut powers: Vec<Option<Number>> = vec![None];
        for i in 1..count {
            let rest = i & (i - 1);
            let power = match (&powers[rest as usize], &powers.get((i - rest) as usize)) {
                (Some(greater), Some(Some(lesser))) => self.statements.product(greater, &lesser.re, &lesser.im),
                _ => self.turn(&turn(i)),
            };
            powers.push(Some(power));
        }
        powers
    }

    /// Multiplies numbers, of which `done` neighbours are transformed already, by the twiddle factors of a step.
    pub fn turn_step(&mut self, held: &mut Held, step: u32, done: u32) {
        let all = done * step;
        let quarter = self.statements.literal(std::f64::consts::FRAC_PI_2 / all as f64);
        let quarters = literal(DType::F32, 4.0 / all as f64);
        for (_, j, numbers) in &mut held.butterflies {
            let k = self.statements.value(&format!("{j} % {done}u"));
            let powers = self.powers(step, |i| format!("turn_of({k} * {i}u, {all}u, {quarters}, {quarter})"));
            for (number, power) in numbers.iter_mut().zip(powers) {
                if let Some(power) = power {
                    *number = self.statements.product(number, &power.re, &power.im);
                }
            }
        }
    }

    /// Transforms the numbers of each butterfly. The results are `done` elements apart in their line.
    pub fn butterflies(&mut self, held: Held, step: u32, done: u32) -> Held {
        let made = held.butterflies.into_iter().map(|(line, j, numbers)| {
            let results = self.statements.transform(&numbers);
            let first = self.statements.value(&format!("{j} / {done}u * {}u + {j} % {done}u", done * step));
            (line, first, results)
        });
        Held { butterflies: made.collect(), apart: done }
    }

    /// Exchanges numbers through workgroup memory, so that each invocation has those of its butterflies of radix
    /// `step`.
    pub fn exchange(&mut self, held: Held, step: u32) -> Held {
        self.lines_first = self.form.stores_lines_first;
        let shares = self.shares(step);
        let apart = self.form.radix / step;
        let mut places = Vec::new();
        for (line, first, numbers) in &held.butterflies {
            for i in 0..numbers.len() as u32 {
                places.push(self.place(line, &format!("({first} + {}u)", i * held.apart)));
            }
        }
        let mut reads = Vec::new();
        for (line, j) in &shares {
            for i in 0..step {
                reads.push(self.place(line, &format!("({j} + {}u)", i * apart)));
            }
        }
        let parts: [fn(&Number) -> &String; 2] = [|number| &number.re, |number| &number.im];
        let [re, im] = parts.map(|part| {
            if self.read {
                self.add("workgroupBarrier();");
            }
            self.read = true;
            for (number, place) in held.butterflies.iter().flat_map(|(_, _, numbers)| numbers).zip(&places) {
                self.add(&format!("shared_numbers[{place}] = {};", part(number)));
            }
            self.add("workgroupBarrier();");
            reads.iter().map(|place| self.statements.value(&format!("shared_numbers[{place}]"))).collect::<Vec<_>>()
        });
        let mut numbers = re.into_iter().zip(im).map(|(re, im)| Number { re, im });
        let mut taken = |(line, j)| (line, j, numbers.by_ref().take(step as usize).collect());
        Held { butterflies: shares.into_iter().map(&mut taken).collect(), apart }
    }

    fn place(&mut self, line: &str, p: &str) -> String {
        let flat = match self.form.stores_lines_first {
            true => format!("{p} * {}u + {line}", self.form.lines()),
            false => format!("{line} * {}u + {p}", self.form.radix),
        };
        self.statements.value(&format!("place({flat})"))
    }

    /// Stores the numbers of the last step.
    pub fn store(&mut self, held: &Held) {
        for (line, first, numbers) in &held.butterflies {
            let l = self.line(line);
            let within = self.statements.value(&format!("{l} % target_step"));
            let block = self.statements.value(&format!("{l} / target_step * target_pitch"));
            for (i, number) in (0..).zip(numbers) {
                let at = self.statements.value(&format!("{within} + ({first} + {}u) * target_step", i * held.apart));
                match self.form.store {
                    PassStore::Plain(operand) => {
                        for (name, part) in [("re", &number.re), ("im", &number.im)] {
                            self.add(&format!("store_o{operand}(target_{name} + {block} + {at}, {part});"));
                        }
                    }
                    PassStore::Result { operand, real, swap, chirped } => {
                        self.store_result(operand, number, &block, &at, [real, swap, chirped]);
                    }
                }
            }
        }
    }

    fn store_result(&mut self, operand: u16, number: &Number, block: &str, at: &str, flags: [bool; 3]) {
        let [real, swap, chirped] = flags;
        let mut number = number.clone();
        if chirped {
            let exchanged = Number { re: number.im, im: number.re };
            let chirp = self.chirp(&format!("min({at} / before, len)"));
            number = self.statements.product(&exchanged, &format!("{chirp}.x"), &format!("{chirp}.y"));
        }
        if swap {
            number = Number { re: number.im, im: number.re };
        }
        let mut store = format!("store_o{operand}({block} + {at}, {} * factor);", number.re);
        if !real {
            let _ = write!(store, " store_o{operand}(target_im + {block} + {at}, {} * factor);", number.im);
        }
        self.add(&format!("if ({at} < target_end) {{ {store} }}"));
    }
}
