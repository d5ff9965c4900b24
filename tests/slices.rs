//! Slices that are assigned from the array itself: they read the old elements, the array is not copied, and the bits
//! are the same as if it were copied.

mod common;
use common::{counted, gpu, session, unfolded, values, wait};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use proptest::{arbitrary::any, collection::vec, prop_oneof};
use tidemill::testing::{Injection, rounds};
use tidemill::{Array, Runtime, Session, SliceArg, step};

/// Elements of a dimension: the first one, the step, and their number.
type Part = (usize, isize, usize);

/// One statement of a program.
#[derive(Clone, Copy, Debug)]
enum Statement {
    /// `x(to) = x(from) * 0.5 + 1`
    Move { to: [Part; 2], from: [Part; 2] },
    /// `x(to) = x(from) - x(other)`
    Subtract { to: [Part; 2], from: [Part; 2], other: [Part; 2] },
    /// `x(to) = x(from) + x(i, j)`
    AddOne { to: [Part; 2], from: [Part; 2], one: [usize; 2] },
    /// `x(to) = x(to) - x(row, columns)`
    Eliminate { to: [Part; 2], row: usize },
    /// `t = x(to); x(to) = x(from); x(from) = t`
    Swap { to: [Part; 2], from: [Part; 2] },
    /// `t = -x(from); x(to) = x(to) * 2; x(to) = x(to) + t`
    Keep { to: [Part; 2], from: [Part; 2] },
    /// `x(rows, :) = x(flipped rows, :)`, by indices
    Permute { rows: Part },
    /// Computes what was recorded.
    Compute,
}

/// Numbers that make the choices for a random statement. They repeat.
struct Choices<'a>(std::iter::Cycle<std::slice::Iter<'a, u32>>);

impl Choices<'_> {
    fn below(&mut self, n: usize) -> usize {
        *self.0.next().expect("they repeat") as usize % n
    }

    /// A part with `len` elements of a dimension, with some step and direction.
    fn part(&mut self, extent: usize, len: usize) -> Part {
        let step_max = if len == 1 { 1 } else { ((extent - 1) / (len - 1)).min(3) };
        let by = 1 + self.below(step_max);
        let span = (len - 1) * by;
        let low = self.below(extent - span);
        if self.below(2) == 0 { (low, by as isize, len) } else { (low + span, -(by as isize), len) }
    }

    fn statement(&mut self, dims: [usize; 2]) -> Statement {
        let lens = [1 + self.below(dims[0]), 1 + self.below(dims[1])];
        let mut parts = || [self.part(dims[0], lens[0]), self.part(dims[1], lens[1])];
        let (to, from, other) = (parts(), parts(), parts());
        match self.below(8) {
            0 => Statement::Move { to, from },
            1 => Statement::Subtract { to, from, other },
            2 => Statement::AddOne { to, from, one: [self.below(dims[0]), self.below(dims[1])] },
            3 => Statement::Eliminate { to, row: self.below(dims[0]) },
            4 => Statement::Swap { to, from },
            5 => Statement::Keep { to, from },
            6 => Statement::Permute { rows: to[0] },
            _ => Statement::Compute,
        }
    }
}

fn places((first, by, len): Part) -> impl Iterator<Item = usize> {
    (0..len).map(move |k| first.wrapping_add_signed(by * k as isize))
}

/// Plain loops over a column-major matrix.
#[derive(Clone)]
struct Plain {
    rows: usize,
    data: Vec<f32>,
}

impl Plain {
    fn slice(&self, part: [Part; 2]) -> Vec<f32> {
        places(part[1]).flat_map(|c| places(part[0]).map(move |r| self.data[c * self.rows + r])).collect()
    }

    fn assign(&mut self, part: [Part; 2], value: Vec<f32>) {
        let all = places(part[1]).flat_map(|c| places(part[0]).map(move |r| (r, c)));
        all.zip(value).for_each(|((r, c), v)| self.data[c * self.rows + r] = v);
    }

    fn run(&mut self, statement: Statement) {
        let both =
            |a: Vec<f32>, b: Vec<f32>, f: fn(f32, f32) -> f32| a.into_iter().zip(b).map(|(a, b)| f(a, b)).collect();
        match statement {
            Statement::Move { to, from } => {
                self.assign(to, self.slice(from).into_iter().map(|v| v * 0.5 + 1.0).collect());
            }
            Statement::Subtract { to, from, other } => {
                self.assign(to, both(self.slice(from), self.slice(other), |a, b| a - b));
            }
            Statement::AddOne { to, from, one: [r, c] } => {
                let one = self.data[c * self.rows + r];
                self.assign(to, self.slice(from).into_iter().map(|v| v + one).collect());
            }
            Statement::Eliminate { to, row } => {
                let rows = self.slice([(row, 0, to[0].2), to[1]]);
                self.assign(to, both(self.slice(to), rows, |a, b| a - b));
            }
            Statement::Swap { to, from } => {
                let kept = self.slice(to);
                self.assign(to, self.slice(from));
                self.assign(from, kept);
            }
            Statement::Keep { to, from } => {
                let kept: Vec<f32> = self.slice(from).into_iter().map(|v| -v).collect();
                self.assign(to, self.slice(to).into_iter().map(|v| v * 2.0).collect());
                self.assign(to, both(self.slice(to), kept, |a, b| a + b));
            }
            Statement::Permute { rows } => {
                let all = (0, 1, self.data.len() / self.rows);
                let flipped = (rows.0.wrapping_add_signed(rows.1 * (rows.2 as isize - 1)), -rows.1, rows.2);
                self.assign([rows, all], self.slice([flipped, all]));
            }
            Statement::Compute => {}
        }
    }
}

fn argument((first, by, len): Part) -> SliceArg {
    let last = first.wrapping_add_signed(by * (len as isize - 1));
    step(first.min(last)..first.max(last) + 1, by as i64)
}

fn slice(x: &Array, part: [Part; 2]) -> Array {
    x.slice((argument(part[0]), argument(part[1])))
}

/// Runs a statement. If `held` is given, it keeps a handle of the array before each assignment, which forces a copy.
fn run(s: &Session, x: Array, statement: Statement, held: &mut Option<Vec<Array>>) -> Array {
    let mut assign = |x: Array, part: [Part; 2], value: Array| {
        let new = x.assign((argument(part[0]), argument(part[1])), value);
        held.iter_mut().for_each(|held| held.push(x.clone()));
        new
    };
    match statement {
        Statement::Move { to, from } => {
            let value = slice(&x, from) * 0.5 + 1.0;
            assign(x, to, value)
        }
        Statement::Subtract { to, from, other } => {
            let value = slice(&x, from) - slice(&x, other);
            assign(x, to, value)
        }
        Statement::AddOne { to, from, one: [r, c] } => {
            let value = slice(&x, from) + x.slice((r, c));
            assign(x, to, value)
        }
        Statement::Eliminate { to, row } => {
            let value = slice(&x, to) - slice(&x, [(row, 1, 1), to[1]]);
            assign(x, to, value)
        }
        Statement::Swap { to, from } => {
            let (kept, value) = (slice(&x, to), slice(&x, from));
            let x = assign(x, to, value);
            assign(x, from, kept)
        }
        Statement::Keep { to, from } => {
            let (kept, value) = (-slice(&x, from), slice(&x, to) * 2.0);
            let x = assign(x, to, value);
            let value = slice(&x, to) + kept;
            assign(x, to, value)
        }
        Statement::Permute { rows } => {
            let index = |rows: Vec<u32>| s.from_slice(&rows, [rows.len()]).unwrap();
            let there: Vec<u32> = places(rows).map(|row| row as u32).collect();
            let value = x.take_dim(0, &index(there.iter().rev().copied().collect()));
            let new = x.assign_dim(0, &index(there), value);
            held.iter_mut().for_each(|held| held.push(x.clone()));
            new
        }
        Statement::Compute => {
            wait(x.eval()).unwrap();
            x
        }
    }
}

fn start(s: &Session, dims: [usize; 2]) -> (Array, Plain) {
    let data: Vec<f32> = (0..dims[0] * dims[1]).map(|i| ((i * 7919) % 1009) as f32).collect();
    let x = s.from_slice(&data, dims).unwrap() + 0.0;
    wait(x.eval()).unwrap();
    (x, Plain { rows: dims[0], data })
}

/// Runs random programs in place, with handles that force copies, and as plain loops, and compares the results.
fn programs_agree(what: &str, rt: &Runtime, seed: u8, cases: u32) {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 300, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    // Small arrays that fail are easy to read. Large arrays have more elements than a kernel reads before it first
    // writes.
    let rows = prop_oneof![1usize..40, 2000usize..5000];
    let numbers = (rows, 1usize..12, vec(vec(any::<u32>(), 20), 1..12));
    let result = TestRunner::new_with_rng(config, rng).run(&numbers, |(rows, columns, numbers)| {
        let dims = [rows, columns];
        let program: Vec<Statement> = numbers.iter().map(|n| Choices(n.iter().cycle()).statement(dims)).collect();
        let mut gathered: [Vec<f32>; 2] = [Vec::new(), Vec::new()];
        let mut expected = Vec::new();
        for (gathered, mut held) in gathered.iter_mut().zip([None, Some(Vec::new())]) {
            let s = session(rt);
            let (mut x, mut plain) = start(&s, dims);
            for &statement in &program {
                x = run(&s, x, statement, &mut held);
            }
            *gathered = wait(x.gather::<f32>()).unwrap_or_else(|e| panic!("{e}: {program:?}")).into_vec();
            if expected.is_empty() {
                program.iter().for_each(|&statement| plain.run(statement));
                expected = plain.data;
            }
        }
        let bits = |values: &[f32]| bytemuck::cast_slice::<f32, u32>(values).to_vec();
        let expected = bits(&expected);
        for (how, gathered) in ["in place", "copied"].iter().zip(&gathered) {
            let gathered = bits(gathered);
            // All elements are compared at once, which is fast, and one by one only to name the first difference.
            if gathered != expected {
                let i = (0..expected.len()).find(|&i| gathered.get(i) != Some(&expected[i]));
                let message = format!("{how}, {rows}x{columns}, element {i:?}: {program:?}");
                return Err(TestCaseError::fail(message));
            }
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{what}, seed {seed}: {error}"));
}

#[test]
fn random_overlapping_slices_read_what_was_there_before() {
    for (device, rt) in unfolded(|b| b) {
        programs_agree(device, &rt, 1, if device == "host" { rounds(100, 200) } else { rounds(10, 20) });
    }
}

#[test]
fn random_overlapping_slices_read_what_was_there_before_where_arrays_lie_in_segments() {
    let injection = |span| Injection { segment_shift: Some(4), span_shift: Some(span), ..Injection::default() };
    for span in [4, 20] {
        let Some(rt) = gpu(|b| b.fold_elements_max(0).injection(injection(span))) else { return };
        programs_agree(&format!("segments of 16, pieces of 2^{span}"), &rt, 2, rounds(5, 10));
    }
}

/// The body of a loop over the columns, rows or elements of a matrix, in turn `k`.
type Body = fn(Array, usize) -> Array;

const BODIES: [(&str, Body); 8] = [
    ("a reversal", |x, k| {
        let value = x.slice((step(10..490, -1), k));
        x.assign((10..490, k), value)
    }),
    ("elements by number", |x, k| {
        let flat = x.reshape([20_000, 1]);
        drop(x);
        let value = flat.slice((k..k + 700, ..)) * 2.0;
        flat.assign((k + 500..k + 1200, ..), value).reshape([500, 40])
    }),
    ("a swap of rows", |x, k| {
        let (t, value) = (x.slice((k, ..)), x.slice((400 - k, ..)));
        let x = x.assign((k, ..), value);
        x.assign((400 - k, ..), t)
    }),
    ("a swap of columns by one assignment", |x, k| {
        let value = x.slice((.., step(k..21, k as i64 - 20)));
        x.assign((.., step(k..21, 20 - k as i64)), value)
    }),
    ("a shift", |x, k| {
        let value = x.slice((0..499, k)) + 1.0;
        x.assign((1..500, k), value)
    }),
    ("a row over its pivot", |x, k| {
        let value = x.slice((k, ..)) / x.slice((k, k));
        x.assign((k, ..), value)
    }),
    ("an elimination", |x, k| {
        let value = x.slice((k + 1, ..)) - x.slice((k + 1, k)) / x.slice((k, k)) * x.slice((k, ..));
        x.assign((k + 1, ..), value)
    }),
    ("a row that is kept for two others", |x, k| {
        let row = x.slice((k, ..)) * 0.5;
        let x = x.assign((k, ..), &row);
        let below = x.slice((k + 1, ..)) - &row;
        let x = x.assign((k + 1, ..), below);
        let above = x.slice((k - 1, ..)) - row;
        x.assign((k - 1, ..), above)
    }),
];

#[test]
fn loops_over_slices_that_are_made_of_the_array_copy_nothing_and_compile_once() {
    for (device, rt) in unfolded(|b| b) {
        for (name, body) in BODIES {
            let what = format!("{name} on {device}");
            let trips = |first: usize| {
                let s = session(&rt);
                let (x, _) = start(&s, [500, 40]);
                counted(&rt, || {
                    let x = (first..first + 8).fold(x, body);
                    wait(x.eval()).unwrap_or_else(|e| panic!("{what}: {e}"));
                })
                .1
            };
            let did = trips(2);
            assert_eq!(did.bytes_copied, 0, "{what}");
            let again = trips(3);
            assert_eq!((again.bytes_copied, again.pipelines_compiled), (0, 0), "{what}, again");
            assert_eq!(again.plan_cache_misses, 0, "{what}, again");
            let largest = 6 * 500 * 4 * 8 * 2;
            assert!(did.bytes_kernel_written <= largest, "{what}: {} bytes", did.bytes_kernel_written);
        }
    }
}

#[test]
fn an_array_is_not_copied_where_it_is_looked_at_between_its_assignments_nor_where_they_fill_a_tape() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        let (mut x, _) = start(&s, [500, 40]);
        let ((), did) = counted(&rt, || {
            for k in 0..30 {
                let value = x.slice((.., k..k + 1)) * 0.5;
                x = x.assign((.., k + 1..k + 2), value);
                wait(x.slice((k, k)).item::<f32>()).unwrap();
            }
        });
        assert_eq!(did.bytes_copied, 0, "looked at on {device}");
        // These are more nodes than a tape holds. The drop of the old handle after the last node must be on the tape
        // that is cut.
        let ((), did) = counted(&rt, || {
            for k in 0..3000 {
                let (row, pivot) = (x.slice((k % 500, ..)), x.slice((k % 500, 0)));
                x = x.assign((k % 500, ..), row + pivot);
            }
            wait(x.eval()).unwrap();
        });
        assert!(did.ops_recorded > 2 * 4096);
        assert_eq!(did.bytes_copied, 0, "recorded for long on {device}");
    }
}

#[test]
fn an_array_that_is_looked_at_before_each_assignment_by_indices_is_not_copied_whatever_its_dimensions() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        let (mut x, plain) = start(&s, [500, 40]);
        let mut expected: Vec<f64> = plain.data.iter().map(|&v| v as f64).collect();
        let ((), did) = counted(&rt, || {
            for k in 0..12usize {
                let places: Vec<i32> = (0..30).map(|i| (k * 700 + i * 13) as i32).collect();
                let largest = wait(x.slice((.., k..k + 1)).max_over(..).item::<f32>()).unwrap();
                // The array is reshaped to a vector, assigned to, and reshaped back.
                let index = s.from_vec(places.clone(), [30]).unwrap();
                x = x.reshape([20_000]).assign_at(&index, largest as f64).reshape([500, 40]);
                places.iter().for_each(|&p| expected[p as usize] = largest as f64);
                if k % 3 == 0 {
                    assert_eq!(wait(x.slice((k, k)).item::<f32>()).unwrap() as f64, expected[k * 500 + k]);
                }
            }
            wait(x.eval()).unwrap();
        });
        assert_eq!(values(&x), expected, "{device}");
        assert_eq!(did.bytes_copied, 0, "{device}");
        // No copy is made for the other dimensions either, because the bytes are the same.
        let index = s.from_vec(vec![3i32, 5], [2]).unwrap();
        let ((), did) = counted(&rt, || {
            x = x.reshape([20_000]).assign_at(&index, 1.0).reshape([40, 500]);
            wait(x.eval()).unwrap();
        });
        assert_eq!(did.bytes_copied, 0, "{device}");
        // One kernel for the number and one for the assignment.
        assert!(did.kernels <= 2, "{device}: {} kernels", did.kernels);
        (expected[3], expected[5]) = (1.0, 1.0);
        assert_eq!(values(&x), expected, "{device}");
    }
}
