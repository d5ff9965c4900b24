//! Gradients of loops, which are computed in chunks of turns: what they give beside the same turns followed one by one, how
//! many kernels run, and how many values of the loop memory holds.

mod common;

use common::{counted, host, unfolded, wait};
use tidemill::testing::rounds;
use tidemill::{Array, Result, Runtime, Session};

const N: usize = 600;

/// A loss of some arrays, by a loop of so many turns. `s.mark(turn)` in each turn hides the loop: then each op is another
/// statement.
type Loss = fn(&Session, &[Array], usize, bool) -> Array;

fn hide(s: &Session, turn: usize, hidden: bool) {
    if hidden {
        s.mark(turn as u64 + 1);
    }
}

/// One carried array, two numbers.
fn brownian(s: &Session, x: &[Array], turns: usize, hidden: bool) -> Array {
    let (drift, scale) = ((0.05 - x[1].square() * 0.5) / 252.0, &x[1] * (1.0f64 / 252.0).sqrt());
    let mut price = x[0].broadcast_to([N, 1]);
    for turn in 0..turns {
        hide(s, turn, hidden);
        price *= (&drift + &scale * s.randn::<f64>([N, 1])).exp();
    }
    (price - 1.0).max(0.0).mean(..)
}

/// Heston's model with a barrier: two carried arrays and a truth value, two correlated numbers, a parameter of which each
/// path has its own, and a sum over all turns that is carried, too.
fn heston(s: &Session, x: &[Array], turns: usize, hidden: bool) -> Array {
    let dt = 1.0f64 / 252.0;
    let mut price = x[0].broadcast_to([N, 1]);
    let mut variance = x[1].square().broadcast_to([N, 1]);
    let reversion = s.linspace(0.5f64, 2.0, N).reshape([N, 1]) * &x[1];
    let mut total = s.zeros::<f64>([N, 1]);
    let mut alive = s.full(true, [N, 1]);
    for turn in 0..turns {
        hide(s, turn, hidden);
        let (a, b) = (s.randn::<f64>([N, 1]), s.randn::<f64>([N, 1]));
        let c = &a * -0.7 + &b * 0.51f64.sqrt();
        let root = variance.max(1e-8).sqrt();
        price = &price * ((0.03 - &variance * 0.5) * dt + &root * a * dt.sqrt()).exp();
        variance = &variance + &reversion * (0.04 - &variance) * dt + 0.3 * &root * c * dt.sqrt();
        alive = &alive & price.gt(0.7);
        total = alive.select(&total + &price, &total);
    }
    (alive.select(&price, 0.0) + total * 0.01).mean(..)
}

/// Values of turns are read behind the loop, and each turn reads a slice of an array of the program.
fn observed(s: &Session, x: &[Array], turns: usize, hidden: bool) -> Array {
    let table = s.linspace(0.0f64, 1.0, N * turns).reshape([N, turns]);
    let columns: Vec<Array> = (0..turns).map(|turn| table.slice((.., turn..turn + 1))).collect();
    let mut state = x[0].broadcast_to([N, 1]) * 0.1;
    let mut seen = Vec::new();
    for (turn, column) in columns.iter().enumerate() {
        hide(s, turn, hidden);
        state = (&state * &x[1] + column).sin() + &state * 0.5;
        if turn % 7 == 3 {
            seen.push(state.clone());
        }
    }
    s.mark(0);
    let sums: Vec<Array> = seen.iter().map(|state| state.square().mean(..)).collect();
    sums.iter().fold(state.mean(..), |sum, part| sum + part)
}

const LOSSES: [(&str, Loss); 3] = [("brownian", brownian), ("heston", heston), ("observed", observed)];

/// The loss and its gradients by a starting value and a parameter.
fn gradients(
    rt: &Runtime,
    loss: impl Fn(&Session, &[Array], usize, bool) -> Array,
    turns: usize,
    hidden: bool,
) -> Result<[f64; 3]> {
    let s = rt.session("loops").seed(7).stream(3).open();
    let inputs = [s.from_slice(&[1.0f64], [1, 1])?, s.from_slice(&[0.3f64], [1, 1])?];
    let watch = s.watch(&inputs[..])?;
    let value = loss(&s, &inputs, turns, hidden);
    let gradients = watch.gradients(&value)?;
    drop(watch);
    let (a, b, c) = (value.item::<f64>(), gradients[0].item::<f64>(), gradients[1].item::<f64>());
    let (a, b, c) = wait(async { futures::try_join!(a, b, c) })?;
    Ok([a, b, c])
}

#[test]
fn the_gradient_of_a_loop_is_that_of_its_turns_one_after_the_other() {
    let rt = host();
    let turn_by_turn = LOSSES.map(|(_, loss)| gradients(&rt, loss, 70, true).unwrap());
    for (device, rt) in unfolded(|b| b) {
        for ((name, loss), parts) in LOSSES.into_iter().zip(turn_by_turn) {
            let whole = gradients(&rt, loss, 70, false).unwrap();
            for (whole, parts) in whole.into_iter().zip(parts) {
                let far = (whole - parts).abs() / parts.abs().max(1e-3);
                assert!(far < 1e-10, "{name} on {device}: {whole}, turn by turn {parts}");
            }
        }
    }
}

/// A loop of random ops over two carried arrays, random numbers and two parameters.
fn random_loop(s: &Session, x: &[Array], seed: u64, turns: usize, hidden: bool) -> Array {
    let step = |state: u64| state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    let row = s.linspace(0.1f64, 0.9, N).reshape([N, 1]);
    let parameters = [&x[0] + &row, row * &x[1]];
    let mut carried = [&parameters[0] * 0.5, &parameters[1] - 0.25];
    for turn in 0..turns {
        hide(s, turn, hidden);
        let mut dice = step(seed.wrapping_add(77));
        let z = s.randn::<f64>([N, 1]) * 0.1;
        let mut known = vec![carried[0].clone(), carried[1].clone(), z, parameters[0].clone(), parameters[1].clone()];
        for _ in 0..7 {
            dice = step(dice);
            let pick = |bits: u32| &known[(dice >> bits) as usize % known.len()];
            let (a, b) = (pick(20), pick(31));
            let made = match (dice >> 43) % 8 {
                0 => a + b,
                1 => a * 0.5 - b,
                2 => (a * b).sin(),
                3 => a / (b.square() + 2.0),
                4 => a.max(b),
                5 => a.gt(b).select(a, b * 0.25),
                6 => (a * -0.5).exp().min(3.0),
                _ => a.tanh() * (turn as f64 * 0.01 + 0.5),
            };
            known.push(made);
        }
        carried =
            [&known[known.len() - 1] * 0.5 + &carried[1] * 0.25, &known[known.len() - 2] * 0.5 + &carried[0] * 0.25];
    }
    (&carried[0] + carried[1].sin()).mean(..)
}

#[test]
fn random_loops_have_the_gradients_of_their_turns_one_after_the_other() {
    let rt = host();
    let mut in_chunks = 0;
    for seed in 0..rounds(8, 40) as u64 {
        let run = |hidden| {
            counted(&rt, || {
                gradients(&rt, |s, x, turns, hidden| random_loop(s, x, seed, turns, hidden), 40, hidden).unwrap()
            })
        };
        let ((whole, did), (parts, did_apart)) = (run(false), run(true));
        in_chunks += usize::from(did.bytes_kernel_written < did_apart.bytes_kernel_written);
        for (whole, parts) in whole.into_iter().zip(parts) {
            let far = (whole - parts).abs() / parts.abs().max(1e-3);
            assert!(far < 1e-10, "seed {seed}: {whole}, turn by turn {parts}");
        }
    }
    // What is recorded again shows that a loop was computed in chunks.
    assert!(in_chunks > rounds(8, 40) / 2, "{in_chunks}");
}

#[test]
fn chunks_of_a_loop_have_one_kernel_and_memory_holds_what_they_begin_with() {
    let rt = host();
    let counts = |loss: Loss, turns, hidden| {
        let (_, did) = counted(&rt, || gradients(&rt, loss, turns, hidden).unwrap());
        (did.kernels, did.bytes_kernel_written / (8 * N as u64))
    };
    // Kernels, and arrays that they write. A chunk is a kernel, and so is the part of the first pass before it.
    assert_eq!(counts(brownian, 120, false), (16, 29));
    assert_eq!(counts(brownian, 240, false), (24, 45));
    // Of more chunks, the values with which groups of them begin are kept: twice the turns take 1.7 times the memory.
    assert_eq!(counts(heston, 120, false), (61, 239));
    assert_eq!(counts(heston, 240, false), (121, 405));
    assert!(counts(heston, 240, true).1 > 2000);
}

#[test]
fn chunks_are_compiled_once() {
    let Some(rt) = common::gpu(|b| b.fold_elements_max(0)) else { return };
    let compiled = |turns| counted(&rt, || gradients(&rt, brownian, turns, false).unwrap()).1.pipelines_compiled;
    compiled(120);
    let more = compiled(160);
    assert!(more <= 4, "{more} kernels were compiled for a loop of another length");
}

#[test]
fn a_gradient_goes_back_from_the_turn_at_which_it_arrives() {
    let rt = host();
    let s = rt.session("turns").open();
    // From the tenth turn on, squares are infinite.
    let x = s.full(2.0f64, [N, 1]);
    let watch = s.watch(&x).unwrap();
    let mut squares = vec![x.clone()];
    for turn in 0..200 {
        squares.push(&squares[turn] * &squares[turn]);
    }
    let gradient = watch.gradients(&squares[6].mean(..)).unwrap();
    let expected = 64.0 * 2.0f64.powi(63) / N as f64;
    let found = wait(gradient.gather::<f64>()).unwrap();
    assert!(found.as_slice().iter().all(|g| (g / expected - 1.0).abs() < 1e-12), "{} for {expected}", found[0]);
}

#[test]
fn a_value_of_a_loop_has_a_gradient_and_the_watch_follows_gradients_through_loops() {
    let rt = host();
    let s = rt.session("turns").open();
    let (x, w) = (s.full(0.5f64, [N, 1]), s.full(0.3f64, [1, 1]));
    let watch = s.watch([&x, &w]).unwrap();
    let mut states = vec![x.clone()];
    for turn in 0..200 {
        states.push((&states[turn] * &w).sin() + &states[turn] * 0.9);
    }
    let loss = states[200].square().mean(..);
    // With a value of the loop, turns are pulled one by one; without, in chunks.
    let [by_x, by_w, middle] = watch.gradients_by(&loss, [&x, &w, &states[100]]).unwrap();
    let [first, second] = watch.gradients(&loss).unwrap();
    let rest = s.watch(&states[100]).unwrap();
    let mut state = states[100].clone();
    for _ in 100..200 {
        state = (&state * &w).sin() + &state * 0.9;
    }
    let from_middle = rest.gradients(&state.square().mean(..)).unwrap();
    for (one, other) in [(by_x, first), (by_w, second.clone()), (middle, from_middle)] {
        let far = (&one / &other - 1.0).abs().max_over(..);
        assert!(wait(far.item::<f64>()).unwrap() < 1e-12);
    }
    // The derivative of the gradient by the loop's parameter, beside finite differences.
    let slope = watch.followed_gradients_by(&loss, &w).unwrap();
    assert!(watch.follows(&slope) && !watch.follows(&second));
    let curved = wait(watch.gradients_by(&slope, &w).unwrap().item::<f64>()).unwrap();
    let at = |w: f64| {
        let w = s.full(w, [1, 1]);
        let f = |w: &Array| {
            let mut state = x.clone();
            for _ in 0..200 {
                state = (&state * w).sin() + &state * 0.9;
            }
            Ok(state.square().mean(..))
        };
        wait(s.value_and_gradient(&w, f).unwrap().1.item::<f64>()).unwrap()
    };
    let expected = (at(0.3 + 1e-5) - at(0.3 - 1e-5)) / 2e-5;
    assert!((curved / expected - 1.0).abs() < 1e-6, "{curved} for {expected}");
}

#[test]
fn what_a_loop_reads_is_recorded_again_once() {
    let rt = host();
    let s = rt.session("doubles").seed(7).open();
    let w = s.from_vec(vec![0.3f64; N], [N, 1]).unwrap();
    let before = rt.stats();
    let watch = s.watch(&w).unwrap();
    let mut z = s.randn::<f64>([N, 1]) * 1e-9;
    for _ in 0..28 {
        z = &z + &z;
    }
    let mut x = s.zeros::<f64>([N, 1]);
    for _ in 0..100 {
        x = (&x * &w + &z).sin();
    }
    let gradient = watch.gradients(&x.mean(..)).unwrap();
    drop(watch);
    assert!(wait(gradient.gather::<f64>()).unwrap().as_slice().iter().all(|g| g.is_finite()));
    let recorded = rt.stats().since(&before).ops_recorded;
    assert!(recorded < 3000, "{recorded} ops");
}

#[test]
fn parts_of_a_gradient_of_doubles_are_added_as_doubles() {
    let rt = host();
    let gradient = |hidden: bool| {
        let s = rt.session("mixed").open();
        let p = s.linspace(0.5f64, 0.6, N).reshape([N, 1]);
        let watch = s.watch(&p).unwrap();
        let mut x = s.full(0.25f32, [N, 1]);
        for turn in 0..300 {
            hide(&s, turn, hidden);
            x = (&x * p.cast::<f32>() + 0.125).sin();
        }
        let gradient = watch.gradients(&x.sum(..)).unwrap();
        drop(watch);
        wait(gradient.gather::<f64>()).unwrap()
    };
    let (whole, parts) = (gradient(false), gradient(true));
    let far = whole.as_slice().iter().zip(parts.as_slice()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(far < 1e-12, "{far}");
}

#[test]
fn random_numbers_that_are_pinned_are_not_drawn_again() {
    let rt = host();
    let s = rt.session("pinned").seed(7).open();
    let w = s.from_vec(vec![0.3f64; N], [N, 1]).unwrap();
    let watch = s.watch(&w).unwrap();
    let mut x = s.zeros::<f64>([N, 1]);
    for _ in 0..100 {
        x = (&x * &w + s.randn::<f64>([N, 1]).pin("host")).sin();
    }
    let before = rt.stats().ops_recorded;
    let gradient = watch.gradients(&x.mean(..)).unwrap();
    drop(watch);
    wait(gradient.gather::<f64>()).unwrap();
    // Nine ops of the backward pass of a turn, and none of its own four.
    let recorded = rt.stats().ops_recorded - before;
    assert!(recorded < 950, "{recorded} ops");
}

#[test]
fn a_loop_of_few_long_turns_has_a_gradient() {
    use std::ops::Add;
    let rt = host();
    for turns in 6..10 {
        let s = rt.session("long").open();
        let x = s.linspace(0.0f64, 1.0, N).reshape([N, 1]);
        let watch = s.watch(&x).unwrap();
        let mut y = x.clone();
        for _ in 0..turns {
            #[rustfmt::skip]
            let next = (&y)
                .add(0.1).add(0.1).add(0.1).add(0.1).add(0.1).add(0.1).add(0.1).add(0.1).add(0.1).add(0.1).add(0.1)
                .add(0.1).add(0.1).add(0.1).add(0.1).add(0.1).add(0.1).add(0.1).add(0.1).add(0.1).add(0.1).add(0.1)
                .add(0.1).add(0.1).add(0.1).add(0.1).add(0.1).add(0.1).add(0.1).add(0.1).add(0.1).add(0.1).add(0.1);
            y = next * &x;
        }
        let gradient = wait(watch.gradients(&y.sum(..)).unwrap().gather::<f64>()).unwrap();
        for (i, found) in gradient.as_slice().iter().enumerate() {
            let x = i as f64 / (N - 1) as f64;
            let step = |(y, slope): (f64, f64), _| ((y + 3.3) * x, slope * x + y + 3.3);
            let (_, expected) = (0..turns).fold((x, 1.0), step);
            assert!((found - expected).abs() < 1e-11 * expected.abs(), "{turns} turns at {x}: {found} for {expected}");
        }
    }
}
