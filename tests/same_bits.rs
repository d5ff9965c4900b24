//! A program gives the same bits alone and among a thousand sessions, under a tight budget, in segments, and with other
//! numbers of threads and batches. Also compares host and GPU.

mod common;
use common::{gpu, host, unfolded, values, wait};
use tidemill::testing::Injection;
use tidemill::{Array, DType, Runtime, Session, cat};

/// The arrays of a program that uses every kind of kernel.
fn program(s: &Session, n: usize) -> Vec<Array> {
    let x = s.from_vec((0..n).map(|i| ((i * 7919) % 1009) as f32 / 100.0).collect::<Vec<f32>>(), [n, 1]).unwrap();
    let z = s.randn::<f32>([n, 1]);
    let u = s.rand::<f32>([n, 4]);
    let y = (&x * 0.3 + &z).sin() * (&z * 0.5).exp();
    let k = s.randi::<i32>(0..n as i64, [n, 1]);
    let square = u.slice((0..40, ..)).reshape([16, 10]);
    let wide = s.from_vec((0..n).map(|i| 1.0 / (i + 1) as f64).collect::<Vec<f64>>(), [n, 1]).unwrap();
    vec![
        y.sum(..),
        y.std(..),
        (&u - u.mean(0)).max_over(1),
        y.cumsum(0),
        x.sort(0).0,
        y.take(&k),
        square.matmul(&square.t()),
        cat(0, &[&y.slice((0..n / 2, ..)), &x]).unwrap() * 3.0,
        (&wide * 3.0 + 1.0).sqrt().sum(..),
        k.sum(..),
        y,
        u,
    ]
}

async fn bits(arrays: Vec<Array>) -> Vec<Vec<u64>> {
    let gathers: Vec<_> = arrays.iter().map(Array::gather_any).collect();
    drop(arrays);
    let all = futures::future::try_join_all(gathers).await.unwrap_or_else(|e| panic!("a gather failed: {e}"));
    all.into_iter().map(|a| a.to_f64().into_iter().map(f64::to_bits).collect()).collect()
}

fn same(what: &str, got: &[Vec<u64>], expected: &[Vec<u64>]) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (number, (got, expected)) in got.iter().zip(expected).enumerate() {
        assert_eq!(got.len(), expected.len(), "{what}, array {number}");
        let differ = got.iter().zip(expected).filter(|(g, e)| g != e).count();
        assert_eq!(differ, 0, "{what}: elements of array {number} differ, of {}", got.len());
    }
}

fn own(rt: &Runtime) -> Session {
    rt.session("program").seed(42).open()
}

#[test]
fn alone_and_among_a_thousand_sessions() {
    for (device, rt) in unfolded(|b| b) {
        let alone = wait(bits(program(&own(&rt), 3000)));
        let among = wait(async {
            let noise = (0..997usize).map(|i| {
                let s = rt.session("noise").seed(i as u64).open();
                async move {
                    let n = 100 + (i * 37) % 400;
                    let x = s.rand::<f32>([n, 1]);
                    let y = match i % 4 {
                        0 => (&x * i as f64).sin().sum(..),
                        1 => x.cumsum(0),
                        2 => (&x + 1.0).sqrt() * &x,
                        _ => x.sort(0).0,
                    };
                    y.gather_any().await.unwrap();
                }
            });
            let ours = (0..3).map(|_| {
                let s = own(&rt);
                async move { bits(program(&s, 3000)).await }
            });
            // The compared programs start when much of the other work is already in the ring.
            futures::join!(futures::future::join_all(noise), futures::future::join_all(ours)).1
        });
        for (number, got) in among.iter().enumerate() {
            same(&format!("{device}, among others, {number}"), got, &alone);
        }
    }
}

#[test]
fn with_other_threads_batches_and_budgets() {
    let (n, expected) = (20_000, |rt: &Runtime| wait(bits(program(&own(rt), 20_000))));
    let host_bits = expected(&host());
    for (threads, batches) in [(1, 1), (3, 4)] {
        let b = Runtime::builder().device("host").worker_threads(threads).batches_in_flight(batches);
        let rt = b.fold_elements_max(0).start_blocking().unwrap();
        let got = wait(bits(program(&own(&rt), n)));
        same(&format!("host, {threads} threads, {batches} batches"), &got, &host_bits);
    }
    let Some(rt) = gpu(|b| b) else { return };
    let gpu_bits = expected(&rt);
    let Some(rt) = gpu(|b| b.batches_in_flight(1)) else { return };
    same("gpu, one batch in flight", &expected(&rt), &gpu_bits);
}

/// Computes with sixteen arrays of 1 MiB, which are all alive at the same time.
fn much(s: &Session) -> Vec<Array> {
    let n = 1 << 18;
    let arrays: Vec<Array> = (0..16)
        .map(|i| {
            let x = s.rand::<f32>([n, 1]) * (i + 1) as f64 + s.from_vec(vec![i as f32; n], [n, 1]).unwrap();
            wait(x.eval()).unwrap();
            x
        })
        .collect();
    let mut out: Vec<Array> = (0..16).map(|i| (&arrays[i] * &arrays[(i + 5) % 16]).sum(..)).collect();
    out.push(&arrays[0] - &arrays[15]);
    for x in &out {
        wait(x.eval()).unwrap();
    }
    out
}

#[test]
fn under_a_tight_device_budget() {
    let Some(free) = gpu(|b| b.fold_elements_max(0)) else { return };
    let expected = wait(bits(much(&own(&free))));
    assert_eq!(free.stats().evictions, 0);
    let Some(tight) = gpu(|b| b.fold_elements_max(0).device_budget(8 << 20)) else { return };
    let got = wait(bits(much(&own(&tight))));
    let stats = tight.stats();
    assert!(stats.evictions > 0, "the budget was not tight: {stats}");
    assert!(stats.bytes_resident_peak <= 8 << 20, "{stats}");
    same("a tight budget", &got, &expected);
    let expected = wait(bits(program(&own(&free), 50_000)));
    let Some(tight) = gpu(|b| b.fold_elements_max(0).device_budget(4 << 20)) else { return };
    same("every kind of kernel under a tight budget", &wait(bits(program(&own(&tight), 50_000))), &expected);
}

#[test]
fn a_reduction_has_the_same_bits_whether_its_producer_is_fused_or_stored() {
    for (device, rt) in unfolded(|b| b) {
        let total = |stored: bool, axis: Option<usize>| {
            let x = own(&rt).rand::<f32>([300, 700]).sqrt();
            if stored {
                wait(x.eval()).unwrap();
            }
            wait(bits(vec![axis.map_or_else(|| x.sum(..), |axis| x.sum(axis))]))
        };
        for axis in [None, Some(0), Some(1)] {
            same(&format!("{device}, axis {axis:?}"), &total(false, axis), &total(true, axis));
        }
    }
}

#[test]
fn in_segments() {
    let Some(whole) = gpu(|b| b.fold_elements_max(0)) else { return };
    let injection = Injection { segment_shift: Some(14), ..Injection::default() };
    let Some(parts) = gpu(|b| b.fold_elements_max(0).injection(injection)) else { return };
    let program = |s: &Session| {
        let n = 100_000;
        let x = s.from_vec((0..n).map(|i| (i % 1013) as f32 * 0.01).collect::<Vec<f32>>(), [n, 1]).unwrap();
        let y = (&x + s.randn::<f32>([n, 1])).sin();
        let grid = y.reshape([250, 400]);
        vec![
            y.sum(..),
            grid.sum(0),
            grid.sum(1),
            grid.t() * 2.0,
            y.slice((tidemill::step(.., -3), 0)),
            grid.matmul(&grid.t()),
            cat(0, &[&y, &x]).unwrap(),
            y.repmat(&[2, 1]),
            y.sort(0).0,
            y.take(&s.randi::<i32>(0..n as i64, [n, 1])),
            x.assign((10..90_000, 0), 7.0),
            y,
        ]
    };
    let expected = wait(bits(program(&own(&whole))));
    same("in segments", &wait(bits(program(&own(&parts)))), &expected);
}

#[test]
fn integers_and_uniforms_are_the_same_on_host_and_gpu() {
    let Some(gpu) = gpu(|b| b.fold_elements_max(0)) else { return };
    let program = |rt: &Runtime| {
        let s = own(rt);
        let k = s.randi::<i32>(-1000..1000, [5000, 1]);
        let u = s.rand::<f32>([5000, 1]);
        let fast = &u * 8.0 - 3.0;
        let counts = fast.gt(0.0).sum(..);
        vec![&k * 1_000_003 + 17, (&k / 7).cumsum(0), k.sort(0).1, u.sort(0).0, u, fast.floor(), counts]
    };
    same("host and gpu", &wait(bits(program(&gpu))), &wait(bits(program(&host()))));
}

#[test]
fn normal_numbers_agree_between_host_and_gpu() {
    let Some(gpu) = gpu(|b| b.fold_elements_max(0)) else { return };
    let draw = |rt: &Runtime| values(&own(rt).randn::<f32>([200_000, 1]));
    let (host, gpu) = (draw(&host()), draw(&gpu));
    // Near a zero, a sine or cosine is only as exact as its angle, so the bound is absolute for results below 1.
    let worst = host.iter().zip(&gpu).map(|(a, b)| (a - b).abs() / a.abs().max(1.0)).fold(0.0, f64::max);
    assert!(worst <= 3e-7, "{worst}");
}

/// The distance of two f32, in steps from one f32 to the next.
fn ulps(a: f32, b: f32) -> u64 {
    let ordered = |x: f32| {
        let bits = x.to_bits() as i64;
        if bits < 1 << 31 { bits } else { (1i64 << 31) - bits }
    };
    if a.is_nan() && b.is_nan() { 0 } else { (ordered(a) - ordered(b)).unsigned_abs() }
}

#[test]
fn functions_agree_between_host_and_gpu_within_their_bounds() {
    let Some(gpu) = gpu(|b| b.fold_elements_max(0)) else { return };
    let host = host();
    type Function = (&'static str, fn(&Array) -> Array, u64);
    // Each device is within 4 ulp of the exact result, for erf and gamma within 16. The bounds are twice that.
    let functions: [Function; 22] = [
        ("exp", |x| x.exp(), 8),
        ("expm1", |x| x.expm1(), 8),
        ("log", |x| x.abs().log(), 8),
        ("log1p", |x| x.abs().log1p(), 8),
        ("sin", |x| x.sin(), 8),
        ("cos", |x| x.cos(), 8),
        ("tan", |x| x.tan(), 8),
        ("asin", |x| (x * 0.02).asin(), 8),
        ("acos", |x| (x * 0.02).acos(), 8),
        ("atan", |x| x.atan(), 8),
        ("sinh", |x| x.sinh(), 8),
        ("cosh", |x| x.cosh(), 8),
        ("tanh", |x| x.tanh(), 8),
        ("asinh", |x| x.asinh(), 8),
        ("sqrt", |x| x.abs().sqrt(), 8),
        ("pow", |x| x.abs().pow(1.7), 8),
        ("sigmoid", |x| x.sigmoid(), 8),
        ("erf", |x| x.erf(), 32),
        ("gamma", |x| (x.abs() * 0.5 + 0.1).gamma(), 32),
        ("division", |x| 1.0 / x, 8),
        // The sum of the arguments' squares overflows, and a driver may compute it.
        ("atan2 of huge", |x| (x * 7e36).atan2(x.abs() * 4.5e36), 8),
        ("atan2 of tiny", |x| (x * 1e-35).atan2(x.abs() * 3.1e-36), 8),
    ];
    let mut wrong = Vec::new();
    for (name, function, bound) in functions {
        let on = |rt: &Runtime| {
            // The arguments are uploaded. If a GPU computed them as points between two ends, it might use multiply-adds
            // and get other numbers.
            let data: Vec<f32> = (0..20_011).map(|i| (i as f32 - 10_005.0) / 256.0).collect();
            let x = own(rt).from_vec(data, [20_011, 1]).unwrap();
            let y = function(&x);
            assert_eq!(y.dtype().unwrap(), DType::F32);
            wait(y.gather::<f32>()).unwrap()
        };
        let (a, b) = (on(&host), on(&gpu));
        let (i, worst) = a.iter().zip(b.iter()).map(|(a, b)| ulps(*a, *b)).enumerate().max_by_key(|x| x.1).unwrap();
        if worst > bound {
            wrong.push(format!("{name}: {worst} ulp at element {i}, {} on the host, {} on the GPU", a[i], b[i]));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
