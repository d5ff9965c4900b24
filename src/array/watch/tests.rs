//! Tests of what a watch's log takes, and of forms of steps that ordinary programs seldom have.

use super::Watch;
use crate::array::{Array, Runtime, Session};
use crate::rounds::rounds;

/// WATCH-4: most bytes of a step.
const BYTES_MAX: usize = 32;

/// A turn of a loop: the next value of `x`.
type Turn = Box<dyn Fn(&Session, &Array, usize) -> Array>;

/// A runtime that computes nothing of what these tests record.
fn runtime() -> Runtime {
    Runtime::builder().device("host").tape_nodes_max(1 << 18).start_blocking().unwrap()
}

fn session(rt: &Runtime) -> Session {
    rt.session("bytes").seed(1).open()
}

/// Asserts that the log of a watch is small, and returns its steps and how many of their values and arguments have
/// handles.
fn small<G>(watch: &Watch<G>, name: &str) -> (usize, usize) {
    let (steps, handles, bytes) = watch.log.bytes();
    let (each, share) = (bytes as f64 / steps as f64, handles as f64 / steps as f64);
    // A handle that is kept is an address: eight bytes.
    assert!(bytes <= BYTES_MAX * steps + 8 * handles, "{name}: {each:.1} bytes a step, {share:.2} handles");
    (steps, handles)
}

/// Watches `x`, takes turns, and asserts that the log is small. Returns the share of steps that have handles.
fn looped(s: &Session, name: &str, x: &Array, turns: usize, turn: impl Fn(&Session, &Array, usize) -> Array) -> f64 {
    let watch = s.watch(x).unwrap();
    let mut value = x.clone();
    for n in 0..turns {
        value = turn(s, &value, n).checked().unwrap();
    }
    let (steps, handles) = small(&watch, name);
    assert!(steps >= turns, "{name}: {steps} steps");
    handles as f64 / steps as f64
}

#[test]
fn a_step_of_a_loop_of_mixed_ops_takes_32_bytes_at_most() {
    let rt = runtime();
    let s = session(&rt);
    let (x, c) = (s.rand::<f32>([16, 16]), s.rand::<f32>([8, 16]));
    let kept = looped(&s, "mixed", &x, rounds(3_000, 10_000), |s, x, turn| {
        let first = (turn % 8) as i64;
        let part = x.slice((first..first + 8, ..));
        let noise = s.randn::<f32>([8, 16]) * 0.1;
        let moved = (part + noise * &c).clamp(-1.0, (turn + 1) as f64 * 0.1).tanh();
        let sums = moved.matmul(&x.t()).sum(0);
        (x.assign((first..first + 8, ..), moved) + sums.cumsum(1)).circshift(&[first, 1])
    });
    assert!((0.1..0.9).contains(&kept), "{kept}");
}

#[test]
fn a_step_of_each_op_alone_takes_32_bytes_at_most() {
    let rt = runtime();
    let s = session(&rt);
    let (x, c) = (s.rand::<f32>([16, 16]), s.rand::<f32>([16, 16]));
    let (same, wide) = (c.clone(), s.rand::<f64>([16, 16]));
    let turns: Vec<(&str, Turn)> = vec![
        ("transpose", Box::new(|_, x, _| x.t())),
        ("shift", Box::new(|_, x, n| x.circshift(&[(n % 16) as i64, 3]))),
        ("cumsum", Box::new(|_, x, _| x.cumsum(0))),
        ("triangle", Box::new(|_, x, n| x.triu(-((n % 300) as i64)))),
        ("slice", Box::new(|_, x, n| x.slice((0..16, (n % 16) as i64)).broadcast_to([16, 16]))),
        ("assignment", Box::new(|_, x, n| x.assign((0..16, (n % 16) as i64), n as f64))),
        ("add a number", Box::new(|_, x, n| x + n as f64)),
        ("add an array", Box::new(move |_, x, _| x + &same)),
        ("product", Box::new(|_, x, _| x.matmul(&x.t()))),
        ("function", Box::new(|_, x, _| x.exp())),
        ("clamp", Box::new(|_, x, n| x.clamp(-0.1 * n as f64, n as f64 + 0.1))),
        ("a filled array", Box::new(|s, x, n| x * s.full(n as f32 * 0.1, [16, 16]))),
        ("other arrays", Box::new(move |_, x, n| x * (&c + n as f64))),
        ("random", Box::new(|s, x, _| x + s.rand::<f32>([16, 16]))),
    ];
    for (name, turn) in &turns {
        looped(&s, name, &x, rounds(2_500, 10_000), turn);
    }
    looped(&s, "wide clamp", &wide, rounds(2_500, 10_000), |_, x, n| x.clamp(-0.1 / (n + 1) as f64, n as f64 + 0.1));
}

#[test]
fn a_step_whose_value_is_kept_takes_32_bytes_beside_what_its_handle_keeps_alive() {
    let rt = runtime();
    let s = session(&rt);
    let x = s.rand::<f32>([16, 16]);
    let all = looped(&s, "kept", &x, 10_000, |_, x, _| x.sin());
    let pinned = looped(&s, "kept and pinned", &x.pin("host"), 10_000, |_, x, _| x.sin());
    assert!(all > 0.99 && pinned > 0.99, "{all} {pinned}");
    // Tiny values that are known on the host are computed at once, and kept.
    let known = looped(&s, "known", &s.from_slice(&[0.5f64, 0.25], 2).unwrap(), 10_000, |_, x, _| x.sin());
    assert!(known > 0.99, "{known}");
}

#[test]
fn values_that_two_threads_record_in_turns_are_found_and_take_32_bytes_at_most() {
    let rt = runtime();
    let s = session(&rt);
    let x = s.rand::<f32>([16, 16]);
    let watch = s.watch(&x).unwrap();
    let values: Vec<Array> = std::thread::scope(|scope| {
        let record = || (0..5000).fold(x.clone(), |x, n| x.cumsum(n % 2));
        let threads = [scope.spawn(record), scope.spawn(record)];
        threads.map(|thread| thread.join().unwrap()).into()
    });
    assert_eq!(small(&watch, "two threads").0, 10_001);
    assert!(values.iter().all(|value| watch.log.step_of(value).is_some()));
}

#[test]
fn a_loop_of_ever_other_shapes_has_few_statements_and_right_gradients() {
    let rt = Runtime::builder().device("host").start_blocking().unwrap();
    let s = session(&rt);
    let turns = rounds(300, 600);
    let x = s.rand::<f64>([turns, 1]);
    let watch = s.watch(&x).unwrap();
    let mut sums = s.zeros::<f64>(1);
    for n in 1..=turns {
        sums += x.slice(0..n).square().sum(..);
    }
    let gradient = watch.gradients(&sums).unwrap();
    let far = |(n, (gradient, x)): (usize, (f64, f64))| (gradient - 2.0 * x * (turns - n) as f64).abs();
    let (gradient, x) = (gradient.gather_blocking::<f64>().unwrap(), x.gather_blocking::<f64>().unwrap());
    let pairs = gradient.as_slice().iter().copied().zip(x.as_slice().iter().copied());
    assert!(pairs.enumerate().map(far).all(|far| far < 1e-9));
}

#[test]
fn steps_of_a_loop_of_ever_other_shapes_take_32_bytes_at_most() {
    let rt = runtime();
    let s = session(&rt);
    let x = s.rand::<f64>([20_000, 1]);
    let watch = s.watch(&x).unwrap();
    let mut last = x.clone();
    for n in 1..=10_000 {
        last = x.slice(0..n).cumsum(0);
    }
    let (steps, _) = small(&watch, "other shapes");
    assert_eq!((steps, last.shape().unwrap().dims()), (20_000, [10_000, 1].as_slice()));
}

#[test]
fn a_function_of_many_arguments_with_a_rule_of_its_own_is_one_step() {
    let rt = Runtime::builder().device("host").start_blocking().unwrap();
    let s = session(&rt);
    let x = s.rand::<f64>([8, 16]);
    let watch = s.watch(&x).unwrap();
    let parts: Vec<Array> = (0..200).map(|n| if n % 3 == 0 { s.rand::<f64>([8, 16]) } else { &x * n as f64 }).collect();
    let sum = |parts: &Vec<Array>| Ok(parts.iter().skip(1).fold(parts[0].clone(), |sum, part| sum + part));
    let rule = |args: &[Array], _: &Array, above: &Array| Ok((0..args.len()).map(|n| above * (n as f64)).collect());
    let value = s.custom_gradient(&parts, sum, rule).unwrap();
    let gradient = watch.gradients(&value.sum(..)).unwrap().gather_blocking::<f64>().unwrap();
    // The rule says n for the argument n, which is n times the array.
    let expected: usize = (0..200).filter(|n| n % 3 > 0).map(|n| n * n).sum();
    assert!(gradient.as_slice().iter().all(|gradient| *gradient == expected as f64), "{:?}", gradient[0]);
}
