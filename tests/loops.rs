//! Loops of a program that become one kernel with a loop: the number of kernels, the results compared with turns that
//! are computed one after the other, and the reasons that prevent such a kernel.

mod common;
use common::{counted, gpu, unfolded, wait};
use tidemill::testing::Injection;
use tidemill::testing::rounds;
use tidemill::{Array, Runtime, Session, Stats};

type Program = fn(&Session, usize) -> Vec<Array>;

const N: usize = 700;

fn source(s: &Session, shape: [usize; 2]) -> Array {
    let data: Vec<f32> = (0..shape[0] * shape[1]).map(|i| (i % 89) as f32 / 89.0 - 0.4).collect();
    s.from_vec(data, shape).unwrap()
}

fn brownian(s: &Session, turns: usize) -> Vec<Array> {
    let mut price = s.full(100.0f32, [N, 1]);
    for _ in 0..turns {
        price *= (1e-4 + 0.0126 * s.randn::<f32>([N, 1])).exp();
    }
    vec![price.mean(..)]
}

fn volatility(s: &Session, turns: usize) -> Vec<Array> {
    let mut x = s.zeros::<f32>([N, 1]);
    let mut v = s.full(0.04f32, [N, 1]);
    for _ in 0..turns {
        let (z1, z2) = (s.randn::<f32>([N, 1]), s.randn::<f32>([N, 1]));
        v = (&v + 0.01 * (0.04 - &v) + 0.02 * v.sqrt() * z2).max(1e-4);
        x += 0.0001 + (&v / 252.0).sqrt() * z1;
    }
    vec![x.exp().mean(..), x.sum(..)]
}

fn mandelbrot(s: &Session, turns: usize) -> Vec<Array> {
    let real = s.linspace(-2.0f32, 0.5, 40).reshape([1, 40]);
    let imaginary = s.linspace(-1.25f32, 1.25, 30).reshape([30, 1]);
    let [mut zr, mut zi, mut count] = [0; 3].map(|_| s.zeros::<f32>([30, 40]));
    for _ in 0..turns {
        let (r2, i2) = (zr.square(), zi.square());
        let inside = (&r2 + &i2).le(4.0);
        let next = inside.select(2.0 * &zr * &zi + &imaginary, &zi);
        zr = inside.select(r2 - i2 + &real, &zr);
        zi = next;
        count += inside.cast::<f32>();
    }
    vec![count]
}

/// A loop with numbers that depend on the turn, operands that expand, f64, and values that change places.
fn steps(s: &Session, turns: usize) -> Vec<Array> {
    let (row, column) = (source(s, [1, 50]).cast::<f64>(), source(s, [21, 1]).cast::<f64>());
    let mut a = source(s, [21, 50]).cast::<f64>();
    let mut b = &a * 0.5 + 0.25;
    for k in 0..turns {
        let c = &a * (k as f64 * 0.01).cos() + &row - &b * &column;
        b = (&a + k as f64).sin();
        a = c.max(-3.0).min(3.0);
    }
    vec![a, b]
}

/// A loop of integers and conditions, with an operand that is only read.
fn whole(s: &Session, turns: usize) -> Vec<Array> {
    let x = (source(s, [N, 1]) * 1000.0).cast::<i32>();
    let mut count = s.zeros::<i32>([N, 1]);
    let mut y = &x + 3;
    for _ in 0..turns {
        let odd = (&y % 2).gt(0);
        y = odd.select(&y * 3 + 1, &y / 2);
        count += y.gt(&x).cast::<i32>();
    }
    vec![count, y]
}

const PROGRAMS: [(&str, Program); 5] = [
    ("brownian", brownian),
    ("volatility", volatility),
    ("mandelbrot", mandelbrot),
    ("steps", steps),
    ("whole", whole),
];

fn open(runtime: &Runtime) -> Session {
    runtime.session("loop").seed(7).stream(3).open()
}

/// Runs a program. Returns its results as f64, and the difference of the counters.
fn run(runtime: &Runtime, program: impl Fn(&Session) -> Vec<Array>) -> (Vec<Vec<f64>>, Stats) {
    let s = open(runtime);
    counted(runtime, || {
        let outputs = program(&s);
        let gathers: Vec<_> = outputs.iter().map(|y| y.cast::<f64>().gather::<f64>()).collect();
        gathers.into_iter().map(|gather| wait(gather).unwrap().as_slice().to_vec()).collect()
    })
}

fn unrolled() -> Injection {
    Injection { never_rolls: true, ..Injection::default() }
}

fn host(injection: Injection) -> Runtime {
    Runtime::builder().device("host").fold_elements_max(0).injection(injection).start_blocking().unwrap()
}

fn bits(all: &[Vec<f64>]) -> Vec<u64> {
    all.iter().flatten().map(|x| x.to_bits()).collect()
}

/// The largest difference, relative for numbers above 1.
fn distance(one: &[Vec<f64>], other: &[Vec<f64>]) -> f64 {
    let pairs = one.iter().flatten().zip(other.iter().flatten());
    pairs
        .map(|(a, b)| if a.to_bits() == b.to_bits() { 0.0 } else { (a - b).abs() / b.abs().max(1.0) })
        .fold(0.0, f64::max)
}

#[test]
fn a_loop_gives_the_bits_of_its_turns_one_after_the_other() {
    let (rolls, unrolls) = (host(Injection::default()), host(unrolled()));
    for (name, program) in PROGRAMS {
        for turns in [67, 300] {
            let (one, _) = run(&rolls, |s| program(s, turns));
            let (other, _) = run(&unrolls, |s| program(s, turns));
            assert_eq!(bits(&one), bits(&other), "{name}, {turns} turns");
        }
    }
}

#[test]
fn a_loop_is_a_kernel_and_its_turns_are_a_number() {
    // The kernels of each program: for the values before the loop, the loop, and the ops after it.
    let kernels = [3, 4, 7, 4, 5];
    for (device, rt) in unfolded(|b| b) {
        for ((name, program), kernels) in PROGRAMS.into_iter().zip(kernels) {
            let what = format!("{name} on {device}");
            let (first, did) = run(&rt, |s| program(s, 100));
            assert_eq!(did.kernels, kernels, "{what}: {did}");
            assert!(did.regions <= 3, "{what}: {did}");
            if device == "gpu" {
                // A sum may take a second dispatch for partial results.
                assert!((kernels..=kernels + 2).contains(&did.dispatches), "{what}: {did}");
            }
            let (again, did) = run(&rt, |s| program(s, 100));
            assert_eq!((did.kernels, did.pipelines_compiled), (kernels, 0), "{what}, again: {did}");
            assert_eq!(bits(&first), bits(&again), "{what}, again");
            let (_, did) = run(&rt, |s| program(s, 130));
            assert_eq!((did.kernels, did.pipelines_compiled), (kernels, 0), "{what}, other turns: {did}");
        }
    }
}

#[test]
fn a_gpu_gives_what_the_host_does() {
    let Some(gpu) = gpu(|b| b.fold_elements_max(0)) else { return };
    let host = host(unrolled());
    // In a chaotic map, small differences grow from turn to turn, so it has few turns.
    for ((name, program), (turns, bound)) in
        PROGRAMS.into_iter().zip([(130, 1e-4), (130, 1e-4), (60, 0.0), (40, 1e-9), (130, 0.0)])
    {
        let (one, _) = run(&gpu, |s| program(s, turns));
        let (other, _) = run(&host, |s| program(s, turns));
        let found = distance(&one, &other);
        assert!(found <= bound, "{name}: {found:e}");
    }
}

#[test]
fn a_loop_that_is_looked_at_every_few_turns_has_a_plan_that_is_found_again() {
    let rt = host(Injection::default());
    let s = open(&rt);
    let mut v = s.full(0.04f32, [N, 1]);
    let mut turn = |turns: usize| {
        for _ in 0..turns {
            v = (&v + 0.01 * (0.04 - &v) + 0.02 * v.sqrt() * s.randn::<f32>([N, 1])).max(1e-4);
        }
        counted(&rt, || wait(v.max_over(..).item::<f32>()).unwrap())
    };
    // The first gathers are planned anew: the loop begins with a number, or a plan is cached only when it is used for
    // the second time.
    (0..3).for_each(|_| drop(turn(50)));
    for _ in 0..5 {
        let (_, did) = turn(50);
        assert_eq!((did.plan_cache_misses, did.kernels), (0, 2), "{did}");
    }
}

#[test]
fn a_loop_of_several_tapes_has_one_kernel_and_each_tape_whole_turns_of_it() {
    for (device, rt) in unfolded(|b| b) {
        // The 15,000 ops are three tapes of 4,096, and the rest.
        let (first, did) = run(&rt, |s| volatility(s, 1000));
        assert_eq!((did.regions, did.kernels), (6, 7), "{device}: {did}");
        assert!(did.pipelines_compiled <= 5, "{device}: {did}");
        let (again, did) = run(&rt, |s| volatility(s, 1000));
        assert_eq!((did.kernels, did.pipelines_compiled), (7, 0), "{device}: {did}");
        assert_eq!(bits(&first), bits(&again), "{device}");
    }
}

#[test]
fn what_is_kept_of_each_turn_is_what_the_turn_left() {
    for (device, rt) in unfolded(|b| b) {
        let s = open(&rt);
        let mut x = source(&s, [N, 1]);
        let mut kept = Vec::new();
        let mut expected: Vec<f32> = wait(x.gather::<f32>()).unwrap().as_slice().to_vec();
        let mut all = Vec::new();
        for turn in 0..150 {
            let step = turn as f32 * 0.25;
            x = ((&x * 0.5 + step as f64).max(-1e6) - 0.125) * 0.75;
            expected.iter_mut().for_each(|e| *e = ((*e * 0.5 + step).max(-1e6) - 0.125) * 0.75);
            if turn % 70 == 3 {
                kept.push(x.clone());
                all.push(expected.clone());
            }
        }
        let gathers: Vec<_> = kept.iter().map(|x| x.gather::<f32>()).collect();
        for (gather, expected) in gathers.into_iter().zip(&all) {
            let found = wait(gather).unwrap();
            let close = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-5 * b.abs().max(1.0);
            assert!(found.as_slice().iter().zip(expected).all(close), "{device}");
        }
    }
}

#[test]
fn elements_of_all_kinds_and_pieces_go_through_a_loop() {
    let tight = Injection { segment_shift: Some(10), span_shift: Some(11), ..Injection::default() };
    for (device, rt) in unfolded(|b| b.injection(tight.clone())) {
        for n in [0usize, 1, 5, 1023, 5000] {
            let s = open(&rt);
            let data: Vec<f64> = (0..n).map(|i| [f64::NAN, f64::INFINITY, -0.0, 1.5, -2.25][i % 5]).collect();
            let mut x = s.from_vec(data.clone(), [n, 1]).unwrap();
            let mut y = s.from_vec(data.clone(), [n, 1]).unwrap();
            for k in 0..90 {
                let z = &x * 0.5 + &y;
                y = (&y - k as f64) * 0.25;
                x = z;
            }
            let found = wait(x.gather::<f64>()).unwrap();
            for (i, &start) in data.iter().enumerate() {
                let (mut x, mut y) = (start, start);
                for k in 0..90 {
                    (x, y) = (x * 0.5 + y, (y - k as f64) * 0.25);
                }
                let close = (found[i] - x).abs() <= 1e-12 * x.abs();
                assert!(close || found[i] == x || (x.is_nan() && found[i].is_nan()), "{device}: {} for {x}", found[i]);
            }
        }
    }
}

/// Numbers from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % n
    }
}

/// The random body of a loop: the ops and operands of its statements, and the statements whose values the next turn
/// begins with.
struct Body {
    shape: [usize; 2],
    doubles: bool,
    carries: usize,
    statements: Vec<[usize; 4]>,
    next: Vec<usize>,
}

impl Body {
    fn new(dice: &mut Dice) -> Body {
        let shape = [1 + dice.below(60), 1 + dice.below(40)];
        let carries = 1 + dice.below(4);
        let statements: Vec<[usize; 4]> =
            (0..carries + 2 + dice.below(14)).map(|_| [(); 4].map(|_| dice.below(1 << 20))).collect();
        // Each carried value has a statement of its own, among the last ones.
        let next = (0..carries).map(|k| statements.len() - 1 - k).collect();
        Body { shape, doubles: dice.below(2) == 0, carries, statements, next }
    }

    /// Runs `turns` turns. Returns the carried values at the end.
    fn run(&self, s: &Session, turns: usize) -> Vec<Array> {
        let [n, m] = self.shape;
        let typed = |x: Array| if self.doubles { x.cast::<f64>() } else { x };
        let fixed: Vec<Array> = [[n, m], [1, m], [n, 1]].map(|shape| typed(source(s, shape)) * 0.75).to_vec();
        let mut carried: Vec<Array> =
            (0..self.carries).map(|k| &fixed[0] * (0.5 + k as f64) + 0.01 * k as f64).collect();
        for turn in 0..turns {
            let mut values: Vec<Array> = carried.iter().chain(&fixed).cloned().collect();
            let before = values.len();
            for (number, &[op, a, b, c]) in self.statements.iter().enumerate() {
                s.mark(number as u64 + 1);
                let latest = values.len();
                // The first operand has the shape of the carried values.
                let first = match a % (latest - 2) {
                    a if a <= self.carries => &values[a],
                    a => &values[a + 2],
                };
                let second = &values[b % latest];
                let number = (c % 100) as f64 * 0.01 + (turn * (c % 2)) as f64 * 1e-3;
                let made = match op % 8 {
                    0 => first + second * number,
                    1 => (first * second - number).clamp(-4.0, 4.0),
                    2 => first.gt(number).select(second, first),
                    3 => (first - second).sin(),
                    4 => first.max(second) * 0.5,
                    5 => first.abs().sqrt() - number,
                    6 if self.doubles => first + 0.1 * s.randn::<f64>(self.shape),
                    6 => first + 0.1 * s.rand::<f32>(self.shape),
                    _ => (first * number).exp().min(3.0),
                };
                values.push(made);
            }
            s.mark(0);
            carried = self.next.iter().map(|&k| values[before + k].clone()).collect();
        }
        carried
    }
}

/// The lines of `explain` that say why a program's loop is not one kernel.
fn notes(rt: &Runtime, program: impl FnOnce(&Session) -> Array) -> Vec<String> {
    let y = program(&open(rt));
    let text = wait(y.explain()).unwrap();
    text.lines().filter(|line| line.starts_with("not one kernel")).map(str::to_owned).collect()
}

#[test]
fn explain_names_the_op_that_keeps_a_loop_from_being_a_kernel() {
    let rt = host(Injection::default());
    let state = |s: &Session| source(s, [N, 1]);
    let asserts = |notes: Vec<String>, line: u32, words: &str| {
        assert_eq!(notes.len(), 1, "{words}: {notes:?}");
        let place = format!("({}:{line})", file!());
        assert!(notes[0].contains(words) && notes[0].contains(&place), "{words}, {place}: {notes:?}");
        assert!(notes[0].contains("a loop of 100 turns"), "{notes:?}");
    };
    let rolled = notes(&rt, |s| (0..100).fold(state(s), |x, k| (&x * 0.5 + k as f64).sin() - &x));
    assert_eq!(rolled, Vec::<String>::new());
    let mut line = 0;
    let folds = notes(&rt, |s| {
        (0..100).fold(state(s), |x, _| {
            line = line!() + 1;
            let m = x.mean(..);
            (&x - m).sin() * 0.5
        })
    });
    asserts(folds, line, "mean");
    let slices = notes(&rt, |s| {
        let rows = source(s, [N, 100]);
        (0..100).fold(state(s), |x, k| {
            line = line!() + 1;
            let row = rows.slice((.., k..k + 1));
            (&x - row).sin() * 0.5
        })
    });
    asserts(slices, line, "slice");
    let mut kept = Vec::new();
    let held = notes(&rt, |s| {
        (0..100).fold(state(s), |x, _| {
            line = line!() + 1;
            let y = (&x * 0.5 + 1.0).sqrt();
            kept.push(y.clone());
            y - x
        })
    });
    asserts(held, line, "holds or demands sqrt");
    let mut kept = Vec::new();
    let third = notes(&rt, |s| {
        (0..100).fold(state(s), |x, k| {
            line = line!() + 1;
            let y = (&x * 0.5 + 1.0).sqrt();
            if k % 3 == 1 {
                kept.push(y.clone());
            }
            y - x
        })
    });
    asserts(third, line, "in some turn");
    let number = notes(&rt, |s| (0..200).fold(source(s, [1, 1]), |x, _| (&x * 0.5).sin() + &x));
    assert!(number.len() == 1 && number[0].contains("one element"), "{number:?}");
    let branches = notes(&rt, |s| {
        (0..100u32).fold(state(s), |x, k| match k.count_ones() % 2 {
            0 => (&x * 2.0).sin() + 0.5,
            _ => (&x * 0.5 + 0.1).cos() - &x,
        })
    });
    assert!(branches.len() == 1 && branches[0].contains("record"), "{branches:?}");
    let ten = notes(&rt, |s| {
        let first: Vec<Array> = (0..10).map(|k| state(s) + k as f64).collect();
        let next = |x: Vec<Array>| (0..10).map(|k| &x[k] * 0.5 + k as f64).collect();
        let last: Vec<Array> = (0..100).fold(first, |x, _| next(x));
        last.iter().skip(1).fold(last[0].clone(), |sum, x| sum + x)
    });
    assert!(ten.len() == 1 && ten[0].contains("more than 8"), "{ten:?}");
}

#[test]
fn random_loops_are_kernels_and_give_the_bits_of_their_turns() {
    let (rolls, unrolls) = (host(Injection::default()), host(unrolled()));
    let gpu = gpu(|b| b.fold_elements_max(0));
    let (mut loops, mut rolled) = (0, 0);
    for seed in 1..=rounds(24, 240) as u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        (0..8).for_each(|_| {
            dice.below(2);
        });
        let body = Body::new(&mut dice);
        let turns = 900 / body.statements.len() + 5 + dice.below(30);
        let (one, did) = run(&rolls, |s| body.run(s, turns));
        let (other, did_other) = run(&unrolls, |s| body.run(s, turns));
        assert_eq!(bits(&one), bits(&other), "seed {seed}");
        // If the results need few of the statements, there are too few nodes for a loop.
        if did.ops_recorded - did.ops_dead >= 400 {
            loops += 1;
            rolled += u32::from(did.kernels < did_other.kernels);
        }
        if let Some(gpu) = gpu.as_ref().filter(|_| body.doubles && seed <= 24) {
            // Differences grow from turn to turn.
            let few = 300 / body.statements.len() + 5;
            let (on_gpu, _) = run(gpu, |s| body.run(s, few));
            let (other, _) = run(&unrolls, |s| body.run(s, few));
            let found = distance(&on_gpu, &other);
            assert!(found < 1e-6, "seed {seed} on the GPU: {found:e}");
        }
    }
    // 18 of the first 20 loops are kernels. `docs/limits.md` says which loops are not.
    assert!(loops >= 16 && rolled * 5 >= loops * 4, "{rolled} of {loops} loops are kernels");
}
