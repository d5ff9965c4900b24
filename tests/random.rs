//! Random numbers: each distribution against its distribution function, on every device; equal numbers on the devices;
//! parameters at the ends of their domain and outside of it; permutations and choices; states; gradients.

mod common;
#[path = "common/fit.rs"]
mod fit;

use common::{gpu, host, session, unfolded, values, wait};
use tidemill::testing::rounds;
use tidemill::{Array, DType, ErrorKind, RandomState, Result, Session, cat};

/// Numbers of a draw.
fn count() -> usize {
    rounds(4_000, 20_000)
}

/// Draws from a session, by a parameter.
type DrawBy = fn(&Session, &Array) -> Array;

/// Above this many deviations, or this distance, a fit fails. Seeds are fixed, so it fails always or never.
const DEVIATIONS_MAX: f64 = 4.0;
const DISTANCE_MAX: f64 = 2.1;

/// Draws in f32 and in f64, as doubles.
fn both(s: &Session, draw: impl Fn(&Session, DType) -> Array) -> [(DType, Vec<f64>); 2] {
    [DType::F32, DType::F64].map(|dtype| (dtype, values(&draw(s, dtype))))
}

macro_rules! drawn {
    ($s:expr, $dtype:expr, $method:ident($($arg:expr),*)) => {
        match $dtype {
            DType::F32 => $s.$method::<f32>($($arg),*),
            _ => $s.$method::<f64>($($arg),*),
        }
    };
}

#[test]
fn continuous_numbers_have_their_distribution() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        let check = |what: String, numbers: Vec<f64>, below: &dyn Fn(f64) -> f64| {
            let distance = fit::distance(numbers, below);
            assert!(distance < DISTANCE_MAX, "{device}: {what} is {distance} from its distribution");
        };
        for (dtype, numbers) in both(&s, |s, dtype| drawn!(s, dtype, exponential(2.5, count()))) {
            check(format!("exponential {dtype}"), numbers, &|x| -(-x / 2.5).exp_m1());
        }
        for (dtype, numbers) in both(&s, |s, dtype| drawn!(s, dtype, normal(-3.0, 0.5, count()))) {
            check(format!("normal {dtype}"), numbers, &|x| fit::normal_below((x + 3.0) / 0.5));
        }
        for alpha in [1e-3, 0.05, 0.5, 1.0, 1.7, 30.0, 1e3, 1e6] {
            for (dtype, numbers) in both(&s, |s, dtype| drawn!(s, dtype, gamma(alpha, 1.0, count()))) {
                // What is too small for the type is 0, or not, as the device has subnormal numbers.
                let least = if dtype == DType::F32 { 1.2e-38 } else { 2.3e-308 };
                // The function of a large shape is a long series.
                let count = if alpha > 1e2 { 1000 } else { count() };
                let lifted = numbers[..count].iter().map(|x| x.max(least)).collect();
                check(format!("gamma {alpha} {dtype}"), lifted, &|x| fit::gamma_below(alpha, x));
            }
        }
        for (a, b) in [(0.01, 0.02), (0.5, 0.5), (1.0, 3.0), (2.0, 0.3), (40.0, 60.0), (2e4, 3e4)] {
            for (dtype, numbers) in both(&s, |s, dtype| drawn!(s, dtype, beta(a, b, count()))) {
                assert!(numbers.iter().all(|x| (0.0..=1.0).contains(x)), "{device}: beta {a} {b} {dtype}");
                // Next to 1 lies no number but 1 itself.
                let (low, high) = if dtype == DType::F32 { (1.2e-38, 1.0 - 3e-8) } else { (2.3e-308, 1.0 - 6e-17) };
                let moved = numbers.iter().map(|x| x.max(low)).collect();
                let next_to_one = |x: f64| if x > high { 1.0 } else { fit::beta_below(a, b, x) };
                check(format!("beta {a} {b} {dtype}"), moved, &next_to_one);
            }
        }
        rt.shutdown_blocking().unwrap();
    }
}

#[test]
fn counts_have_their_distribution() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        let check = |what: String, deviations: f64| {
            assert!(deviations < DEVIATIONS_MAX, "{device}: {what} is {deviations} deviations from its distribution");
        };
        for mean in [0.01, 0.7, 3.0, 9.99, 10.0, 11.5, 60.0, 1e3, 1e6] {
            for (dtype, numbers) in both(&s, |s, dtype| drawn!(s, dtype, poisson(mean, count()))) {
                // The mean is the type's.
                let mean = if dtype == DType::F32 { f64::from(mean as f32) } else { mean };
                let off = fit::chi_square_of(&numbers, mean, mean.sqrt(), |k| fit::poisson_at_most(mean, k));
                check(format!("poisson {mean} {dtype}"), off);
            }
        }
        let cases = [
            (1.0, 0.3),
            (7.0, 0.5),
            (40.0, 0.01),
            (40.0, 0.4),
            (40.0, 0.9),
            (25.0, 0.4),
            (1e3, 0.97),
            (1e5, 1e-4),
            (1e6, 0.25),
            (1e6, 3e-6),
        ];
        for (trials, p) in cases {
            for (dtype, numbers) in both(&s, |s, dtype| drawn!(s, dtype, binomial(trials, p, count()))) {
                let p = if dtype == DType::F32 { f64::from(p as f32) } else { p };
                let deviation = (trials * p * (1.0 - p)).sqrt();
                let at_most = |k| fit::binomial_at_most(trials, p, k);
                check(
                    format!("binomial {trials} {p} {dtype}"),
                    fit::chi_square_of(&numbers, trials * p, deviation, at_most),
                );
            }
        }
        rt.shutdown_blocking().unwrap();
    }
}

#[test]
fn parameters_that_are_arrays_give_each_element_its_own_distribution() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        // Small and large means side by side, in one kernel: both ways of drawing, and both sides of one half.
        let means = s.from_slice(&[0.3f32, 9.0, 12.0, 400.0], [1, 4]).unwrap();
        let drawn = s.poisson::<f32>(&means, [count() / 4, 4]);
        let found = values(&drawn.mean(0));
        for (found, mean) in found.iter().zip([0.3f64, 9.0, 12.0, 400.0]) {
            assert!((found - mean).abs() < 5.0 * (mean / (count() / 4) as f64).sqrt(), "{device}: {found} of {mean}");
        }
        let trials = s.from_slice(&[5i32, 100, 1000], [3, 1]).unwrap();
        let chances = s.from_slice(&[0.02f64, 0.5, 0.95], [1, 3]).unwrap();
        let drawn = s.binomial::<f64>(&trials, &chances, [3, 3, 2000]);
        let found = values(&drawn.mean(2));
        for (i, found) in found.iter().enumerate() {
            let (n, p) = ([5.0, 100.0, 1000.0][i % 3], [0.02, 0.5, 0.95][i / 3]);
            let error = (n * p * (1.0f64 - p) / 2000.0).sqrt();
            assert!((found - n * p).abs() < 5.0 * error, "{device}: {found} of {n} times {p}");
        }
        let alpha = s.from_slice(&[0.2f32, 1.0, 9.0], [1, 3]).unwrap();
        let found = values(&s.gamma::<f32>(&alpha, &alpha, [4000, 3]).mean(0));
        for (found, a) in found.iter().zip([0.2f64, 1.0, 9.0]) {
            assert!((found - a * a).abs() < 5.0 * a * (a / 4000.0).sqrt(), "{device}: {found} of {a} squared");
        }
        rt.shutdown_blocking().unwrap();
    }
}

#[test]
fn integers_have_no_bias() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        // A product's high half alone would give each third number twice as often: 1/2, 1/4, 1/4.
        let drawn = values(&s.randi::<u32>(0..3 << 30, count()));
        let mut counts = [0.0; 3];
        drawn.iter().for_each(|x| counts[*x as usize % 3] += 1.0);
        let third = count() as f64 / 3.0;
        let off = fit::chi_square(&counts, &[third; 3]);
        assert!(off < DEVIATIONS_MAX, "{device}: thirds {counts:?}");
        // All 32 bits, and wide ranges.
        let whole = values(&s.randi::<i32>(i64::from(i32::MIN)..1 << 31, count()));
        let below = |x: f64| (x + 2_147_483_648.0) / 4_294_967_296.0;
        assert!(fit::distance(whole, below) < DISTANCE_MAX, "{device}: of all i32");
        let (low, span) = (-(1i64 << 61), 5i64 << 60);
        let wide = values(&s.randi::<i64>(low..low + span, count()));
        let below = |x: f64| (x - low as f64) / span as f64;
        assert!(fit::distance(wide, below) < DISTANCE_MAX, "{device}: of a wide range");
        let ends = values(&s.randi::<i64>(1 << 40..(1 << 40) + 2, 200));
        assert!(ends.iter().all(|x| [0.0, 1.0].contains(&(x - 2f64.powi(40)))), "{device}");
        rt.shutdown_blocking().unwrap();
    }
}

/// Draws that are equal on every device.
fn exact_draws(s: &Session) -> Vec<(&'static str, Array)> {
    let chances = s.linspace(0.0f32, 1.0, 5001);
    vec![
        ("rand", s.rand::<f32>(5001)),
        ("rand f64", s.rand::<f64>(5001)),
        ("randi", s.randi::<i32>(-5..6, 5001)),
        ("randi u32, often drawn again", s.randi::<u32>(0..(1 << 31) + 1, 5001)),
        ("all of u32", s.randi::<u32>(0..1 << 32, 5001)),
        ("wide", s.randi::<i64>(0..(1 << 62) + 1, 5001)),
        ("narrow, as i64", s.randi::<i64>(0..100, 5001)),
        ("bernoulli", s.bernoulli::<f32>(&chances, [1, 5001])),
        ("bernoulli, small", s.bernoulli::<f32>(1e-3, 5001)),
        ("bernoulli f64", s.bernoulli::<f64>(0.37, [5001, 1])),
        ("permutation", s.permutation(5001)),
        ("choice", s.choice(77, [3, 1667])),
        ("choice_distinct", s.choice_distinct(5001, 400)),
    ]
}

#[test]
fn integers_uniforms_truths_and_orders_are_equal_on_the_devices() {
    let Some(gpu) = gpu(|b| b.fold_elements_max(0)) else { return };
    let host = host();
    for ((name, here), (_, there)) in exact_draws(&session(&host)).into_iter().zip(exact_draws(&session(&gpu))) {
        assert!(values(&here) == values(&there), "{name}");
    }
    assert!(gpu.stats().elsewhere.is_empty(), "{:?}", gpu.stats().elsewhere);
    host.shutdown_blocking().unwrap();
    gpu.shutdown_blocking().unwrap();
}

#[test]
fn other_draws_agree_on_the_devices_but_for_a_few_that_a_last_bit_decides() {
    let Some(gpu) = gpu(|b| b.fold_elements_max(0)) else { return };
    let host = host();
    let draws = |s: &Session| -> Vec<(&'static str, Array)> {
        vec![
            ("exponential", s.exponential::<f32>(2.0, count())),
            ("normal", s.normal::<f32>(1.0, 2.0, count())),
            ("gamma", s.gamma::<f32>(0.7, 1.0, count())),
            ("gamma, large", s.gamma::<f32>(900.0, 1.0, count())),
            ("beta", s.beta::<f32>(2.0, 3.0, count())),
            ("poisson, small", s.poisson::<f32>(4.0, count())),
            ("poisson", s.poisson::<f32>(1e4, count())),
            ("binomial, small", s.binomial::<f32>(100, 0.03, count())),
            ("binomial", s.binomial::<f32>(1e5, 0.6, count())),
            ("gamma f64", s.gamma::<f64>(0.7, 1.0, count())),
            ("poisson f64", s.poisson::<f64>(1e4, count())),
            ("binomial f64", s.binomial::<f64>(1e5, 0.6, count())),
        ]
    };
    for ((name, here), (_, there)) in draws(&session(&host)).into_iter().zip(draws(&session(&gpu))) {
        let (here, there) = (values(&here), values(&there));
        let far = |(a, b): &(&f64, &f64)| (*a - *b).abs() > 2e-5 * a.abs().max(1e-3);
        let apart = here.iter().zip(&there).filter(far).count();
        println!("{name}: {apart} of {} are apart", count());
        assert!(apart <= 4, "{name}: {apart} of {} are apart", count());
    }
    host.shutdown_blocking().unwrap();
    gpu.shutdown_blocking().unwrap();
}

#[test]
fn parameters_at_the_ends_of_their_domain_give_the_only_number_there_is() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        let all = |what: &str, array: &Array, number: f64| {
            assert!(values(array).iter().all(|x| *x == number), "{device}: {what}: {:?}", &values(array)[..5]);
        };
        all("never", &s.bernoulli::<f32>(0.0, 1000), 0.0);
        all("always", &s.bernoulli::<f32>(1.0, 1000), 1.0);
        all("no events", &s.poisson::<f32>(0.0, 1000), 0.0);
        all("no trials", &s.binomial::<f64>(0, 0.5, 1000), 0.0);
        all("no success", &s.binomial::<f32>(1e6, 0.0, 1000), 0.0);
        all("no failure", &s.binomial::<f32>(1e6, 1.0, 1000), 1e6);
        all("no scale", &s.exponential::<f32>(0.0, 1000), 0.0);
        all("one number", &s.choice(1, 1000), 0.0);
        all("one order", &s.permutation(1), 0.0);
        all("one integer", &s.randi::<i64>(1 << 50..(1 << 50) + 1, 100), 2f64.powi(50));
        let tiny = values(&s.gamma::<f32>(1e-3, 1.0, 1000));
        assert!(tiny.iter().all(|x| (0.0..10.0).contains(x)) && tiny.contains(&0.0), "{device}");
        let huge = values(&s.poisson::<f32>(1e20, 1000));
        assert!(huge.iter().all(|x| (x / 1e20 - 1.0).abs() < 1e-6), "{device}");
        let rare = values(&s.bernoulli::<f32>(1e-12, 1000));
        assert!(rare.iter().all(|x| *x == 0.0), "{device}: a probability far below 2^-24 is not rounded up");
        for empty in [s.gamma::<f32>(2.0, 1.0, [0, 3]), s.poisson::<f64>(2.0, 0), s.choice(5, 0), s.permutation(0)] {
            assert_eq!(values(&empty), [0.0; 0], "{device}");
        }
        assert_eq!(s.choice_distinct(5, 0).shape().unwrap().dims(), [1, 0]);
        rt.shutdown_blocking().unwrap();
    }
}

#[test]
fn parameters_outside_of_their_domain_are_faults_at_once_or_with_the_gather() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        let at_once = [
            s.gamma::<f32>(0.0, 1.0, 10),
            s.gamma::<f32>(f64::NAN, 1.0, 10),
            s.gamma::<f32>(1.0, -1.0, 10),
            s.beta::<f64>(1.0, f64::INFINITY, 10),
            s.exponential::<f32>(-1.0, 10),
            s.exponential::<f32>(1e300, 10),
            s.normal::<f64>(0.0, -0.5, 10),
            s.poisson::<f32>(-1e-9, 10),
            s.poisson::<f64>(f64::INFINITY, 10),
            s.binomial::<f64>(2.5, 0.5, 10),
            s.binomial::<f64>(-1, 0.5, 10),
            s.bernoulli::<f32>(1.5, 10),
        ];
        for array in &at_once {
            let error = array.error().unwrap_or_else(|| panic!("{device}: {array:?}"));
            assert_eq!(error.kind(), ErrorKind::Domain, "{device}: {error}");
        }
        let bad = s.from_slice(&[0.5f32, f32::NAN, 0.5, 0.5], 4).unwrap();
        let low = s.from_slice(&[0.5f32, -0.5, 0.5, 0.5], 4).unwrap();
        let later = |array: Array| wait(array.gather_any()).unwrap_err();
        for given in [&bad, &low] {
            let draws = [
                ("gamma", s.gamma::<f32>(given, 1.0, 4)),
                ("beta", s.beta::<f32>(given, given, 4)),
                ("exponential", s.exponential::<f32>(given, 4)),
                ("poisson", s.poisson::<f32>(given, [4, 2])),
                ("binomial", s.binomial::<f32>(3, given, 4)),
                ("bernoulli", s.bernoulli::<f32>(given, 4)),
                ("choice_weighted", s.choice_weighted(given, 4)),
                ("choice_weighted_distinct", s.choice_weighted_distinct(given, 2)),
            ];
            for (name, array) in draws {
                let error = later(array);
                assert_eq!(error.kind(), ErrorKind::Domain, "{device}: {error}");
                assert!(error.to_string().contains(name), "{device}: {error}");
            }
        }
        let zeros = s.zeros::<f32>(4);
        assert_eq!(later(s.choice_weighted(&zeros, 4)).kind(), ErrorKind::Domain);
        let two = s.from_slice(&[0.0f32, 1.0, 0.0, 2.0], 4).unwrap();
        assert_eq!(later(s.choice_weighted_distinct(&two, 3)).kind(), ErrorKind::Domain);
        let kind = |array: Array| array.error().unwrap().kind();
        assert_eq!(kind(s.choice_distinct(3, 4)), ErrorKind::Argument);
        assert_eq!(kind(s.choice(0, 4)), ErrorKind::Argument);
        assert_eq!(kind(s.randi::<i32>(3..3, 4)), ErrorKind::Argument);
        assert_eq!(kind(s.poisson::<i32>(3.0, 4)), ErrorKind::DType);
        assert_eq!(kind(s.poisson::<f32>(&two, [3, 2])), ErrorKind::Shape);
        rt.shutdown_blocking().unwrap();
    }
}

#[test]
fn permutations_and_choices_are_what_they_say_and_as_likely_as_each_other() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        let mut order = values(&s.permutation(3001));
        assert_ne!(order, (0..3001).map(f64::from).collect::<Vec<_>>(), "{device}");
        order.sort_by(f64::total_cmp);
        assert_eq!(order, (0..3001).map(f64::from).collect::<Vec<_>>(), "{device}");
        let mut some = values(&s.choice_distinct(1000, 600));
        some.sort_by(f64::total_cmp);
        some.dedup();
        assert!(some.len() == 600 && some[599] < 1000.0, "{device}");
        // Orders of three, on the host: many small permutations.
        if device == "host" {
            let mut counts = [0.0; 6];
            let orders: Vec<Array> = (0..600).map(|_| s.permutation(3)).collect();
            let all = values(&cat(0, &orders.iter().collect::<Vec<_>>()).unwrap());
            for i in 0..600 {
                let (a, b) = (all[i], all[600 + i]);
                counts[(a * 2.0) as usize + usize::from(b > 3.0 - a - b)] += 1.0;
            }
            assert!(fit::chi_square(&counts, &[100.0; 6]) < DEVIATIONS_MAX, "{counts:?}");
            // Weighted, without replacement: the first of 1, 2 and 3 sixths, then the share of those left.
            let weights = s.from_slice(&[1.0f64, 2.0, 3.0, 0.0], 4).unwrap();
            let orders: Vec<Array> = (0..1200).map(|_| s.choice_weighted_distinct(&weights, 2)).collect();
            let all = values(&cat(0, &orders.iter().collect::<Vec<_>>()).unwrap());
            let (mut counts, mut expected) = (Vec::new(), Vec::new());
            for (a, b) in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)] {
                let is = |i: &usize| all[*i] == f64::from(a) && all[1200 + i] == f64::from(b);
                counts.push((0..1200).filter(is).count() as f64);
                let (first, second) = (f64::from(a + 1), f64::from(b + 1));
                expected.push(1200.0 * first / 6.0 * second / (6.0 - first));
            }
            assert_eq!(counts.iter().sum::<f64>(), 1200.0, "a weight of 0 is never chosen");
            assert!(fit::chi_square(&counts, &expected) < DEVIATIONS_MAX, "{counts:?} of {expected:?}");
        }
        let weights: Vec<f32> = (0..3000).map(|i| if i % 3 == 0 { 0.0 } else { (i % 7) as f32 }).collect();
        let sum: f64 = weights.iter().map(|w| f64::from(*w)).sum();
        let drawn = values(&s.choice_weighted(&s.from_slice(&weights, 3000).unwrap(), count()));
        let mut counts = vec![0.0; 7];
        for place in drawn {
            assert!(weights[place as usize] > 0.0, "{device}: a weight of 0 is never chosen");
            counts[place as usize % 7] += 1.0;
        }
        let mut expected = vec![0.0; 7];
        weights.iter().enumerate().for_each(|(i, w)| expected[i % 7] += count() as f64 * f64::from(*w) / sum);
        assert!(fit::chi_square(&counts[1..], &expected[1..]) < DEVIATIONS_MAX, "{device}: {counts:?} of {expected:?}");
        rt.shutdown_blocking().unwrap();
    }
}

#[test]
fn numbers_are_the_same_alone_in_parts_in_other_orders_and_under_a_tight_budget() {
    let draws: [fn(&Session) -> Array; 5] = [
        |s| s.gamma::<f32>(1.3, 1.0, [300, 70]),
        |s| s.poisson::<f32>(&(s.rand::<f32>([1, 70]) * 30.0), [300, 70]),
        |s| s.binomial::<f64>(50, &s.rand::<f64>([300, 1]), [300, 70]),
        |s| s.randi::<u32>(0..3 << 30, [300, 70]),
        |s| s.bernoulli::<f32>(0.4, [300, 70]),
    ];
    let tight = tidemill::Runtime::builder().device("host").fold_elements_max(0).host_budget(1 << 20);
    let tight = tight.start_blocking().unwrap();
    for (device, rt) in unfolded(|b| b) {
        for (number, draw) in draws.iter().enumerate() {
            let whole = values(&draw(&session(&rt)));
            if device == "host" {
                assert!(values(&draw(&session(&tight))) == whole, "{number}: under a budget");
                let again = session(&rt);
                again.set_random_state(session(&rt).random_state());
                assert!(values(&draw(&again)) == whole, "{number}: in another session");
            }
            let part = values(&draw(&session(&rt)).slice((17..23, 5..9)));
            let expected: Vec<f64> =
                (5..9).flat_map(|c| (17..23).map(move |r| c * 300 + r)).map(|i| whole[i]).collect();
            assert!(part == expected, "{device} {number}: a part");
            let turned = values(&draw(&session(&rt)).t().flip(1));
            let expected: Vec<f64> =
                (0..300).rev().flat_map(|r| (0..70).map(move |c| c * 300 + r)).map(|i| whole[i]).collect();
            assert!(turned == expected, "{device} {number}: turned");
            let x = draw(&session(&rt)).cast::<f64>();
            let sum = values(&x.sum(0));
            for (c, sum) in sum.iter().enumerate() {
                let expected: f64 = whole[c * 300..(c + 1) * 300].iter().sum();
                assert!((sum - expected).abs() <= 1e-12 * expected.abs(), "{device} {number}: column {c}");
            }
            // First in passing, then by itself.
            assert!(values(&x) == whole, "{device} {number}: after its sums");
        }
        rt.shutdown_blocking().unwrap();
    }
    tight.shutdown_blocking().unwrap();
}

#[test]
fn a_state_is_three_numbers_from_which_the_same_numbers_follow() {
    let rt = host();
    let s = rt.session("first").seed(11).stream(5).open();
    let all = |s: &Session| -> Vec<Vec<f64>> {
        [s.rand::<f32>(9), s.poisson::<f64>(4.0, 9), s.permutation(9), s.beta::<f32>(1.0, 2.0, 9)]
            .iter()
            .map(values)
            .collect()
    };
    all(&s);
    let state = s.random_state();
    assert_eq!((state.seed, state.stream), (11, 5));
    let text = serde_json::to_string(&state).unwrap();
    let expected = all(&s);
    assert_ne!(all(&s), expected);
    let other = rt.session("second").open();
    other.set_random_state(serde_json::from_str::<RandomState>(&text).unwrap());
    assert_eq!(all(&other), expected);
    assert_eq!(other.random_state(), RandomState { ops: state.ops + 6, ..state });
    rt.shutdown_blocking().unwrap();
}

#[test]
fn gradients_pass_to_what_numbers_are_scaled_and_moved_by_and_are_refused_elsewhere() {
    let rt = host();
    let s = session(&rt);
    let x = s.from_slice(&[2.0f64, 5.0], [1, 2]).unwrap();
    let by_scale: [DrawBy; 3] = [
        |s, x| s.exponential::<f64>(x, [500, 2]),
        |s, x| s.gamma::<f64>(3.0, x, [500, 2]),
        |s, x| s.normal::<f64>(0.0, x, [500, 2]),
    ];
    for (number, draw) in by_scale.iter().enumerate() {
        let watch = s.watch(&x).unwrap();
        let drawn = draw(&s, &x);
        let gradient = values(&watch.gradients(&drawn.sum(..)).unwrap());
        drop(watch);
        // Numbers that are in proportion to the scale have their sums over it as derivatives.
        let expected: Vec<f64> = values(&drawn.sum(0)).iter().zip([2.0, 5.0]).map(|(sum, scale)| sum / scale).collect();
        for (g, e) in gradient.iter().zip(&expected) {
            assert!((g - e).abs() < 1e-9 * e.abs(), "{number}: {gradient:?} of {expected:?}");
        }
    }
    let watch = s.watch(&x).unwrap();
    let moved = watch.gradients(&s.normal::<f64>(&x, 1.0, [500, 2]).sum(..)).unwrap();
    assert_eq!(values(&moved), [500.0, 500.0]);
    drop(watch);
    let without: [(&str, DrawBy); 4] = [
        ("gamma", |s, x| s.gamma::<f64>(x, 1.0, [5, 2])),
        ("beta", |s, x| s.beta::<f64>(x, 1.0, [5, 2])),
        ("poisson", |s, x| s.poisson::<f64>(x, [5, 2])),
        ("binomial", |s, x| s.binomial::<f64>(9, &(x / 9.0), [5, 2])),
    ];
    for (name, draw) in without {
        let watch = s.watch(&x).unwrap();
        let error = watch.gradients(&draw(&s, &x).sum(..)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(name) && text.contains("drawn"), "{name}: {text}");
    }
    let watch = s.watch(&x).unwrap();
    let truths: Result<Array> = watch.gradients(&s.bernoulli::<f64>(&(&x / 9.0), [5, 2]).cast::<f64>().sum(..));
    assert!(truths.is_err(), "no silent zero");
    rt.shutdown_blocking().unwrap();
}
