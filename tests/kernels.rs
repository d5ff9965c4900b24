//! Checks by counters how many kernels run, how many bytes they move and what is compiled for them, and that
//! `explain()` says the same. On the host and, if there is one, on the GPU.

mod common;
use common::{counted, gpu, session, unfolded, wait};
use tidemill::testing::{Injection, rounds};
use tidemill::{Array, DType, Runtime, Session, Stats, cat};

/// An array with too many elements to be folded when recorded.
fn source(s: &Session, shape: [usize; 2]) -> Array {
    let data: Vec<f32> = (0..shape[0] * shape[1]).map(|i| (i % 97) as f32 / 97.0).collect();
    s.from_vec(data, shape).unwrap()
}

/// Forty elementwise ops over `x`, a row, a column and random numbers, with `scalar` as a parameter throughout.
fn forty_ops(s: &Session, x: &Array, row: &Array, column: &Array, scalar: f64) -> Array {
    let shape = x.shape().unwrap().clone();
    let mut y = x + row;
    for step in 0..6 {
        let k = scalar + step as f64;
        y = ((&y * k - column).max(row).sin() * x + 0.25).abs();
    }
    // These are 1 + 6 * 6 ops.
    (y + s.rand::<f32>(shape)) * scalar
}

#[test]
fn forty_ops_with_broadcasts_random_numbers_and_a_reduction_are_one_kernel() {
    let (n, m) = (600u64, 70u64);
    type Case = (&'static str, fn(Array) -> Array, u64);
    let reductions: [Case; 6] = [
        ("none", |y| y, n * m),
        ("full sum", |y| y.sum(..), 1),
        ("over rows", |y| y.sum(0), m),
        ("over columns", |y| y.mean(1), n),
        ("greatest", |y| y.max_over(..), 1),
        ("variance and a tail", |y| (y.var(1) + 1.0).sqrt() * 2.0, n),
    ];
    for (device, rt) in unfolded(|b| b) {
        for (name, reduce, outputs) in &reductions {
            let what = format!("{name} on {device}");
            let s = session(&rt);
            let (x, row, column) = (source(&s, [600, 70]), source(&s, [1, 70]), source(&s, [600, 1]));
            let (_, did) = counted(&rt, || {
                let y = reduce(forty_ops(&s, &x, &row, &column, 1.5));
                wait(y.eval()).unwrap_or_else(|e| panic!("{what}: {e}"))
            });
            assert_eq!((did.regions, did.kernels), (1, 1), "{what}");
            let distinct = n * m + m + n;
            assert_eq!(did.bytes_kernel_read, 4 * distinct, "{what}: each distinct input once");
            assert_eq!(did.bytes_kernel_written, 4 * outputs, "{what}: each output once, random numbers never");
            assert_eq!(did.bytes_read_back, 0, "{what}: an eval reads nothing back");
            match device {
                "host" => assert_eq!((did.host_kernels, did.dispatches, did.submissions), (1, 0, 0), "{what}"),
                // A large full reduction has a second, tiny dispatch of the same kernel.
                _ => assert!(did.host_kernels == 0 && (1..=2).contains(&did.dispatches), "{what}: {did}"),
            }
        }
    }
}

#[test]
fn random_numbers_and_small_chains_that_expand_are_computed_in_place() {
    type Case = (&'static str, fn(&Session, &Array, &Array) -> Array, (u64, u64));
    // The numbers of elements that are read and written.
    let (all, row) = (42_000, 70);
    let cases: [Case; 7] = [
        ("a random column", |s, x, _| x + s.rand::<f32>([600, 1]), (all, all)),
        ("a random row, folded", |s, x, _| (x * s.randn::<f32>([1, 70])).sum(..), (all, 1)),
        ("a chain on a random row", |s, x, _| x + (s.randn::<f32>([1, 70]) * 0.1 + 2.0).abs(), (all, all)),
        (
            "twice, once reversed",
            |s, _, _| {
                let z = s.randn::<f32>([600, 70]);
                &z + z.flip(0)
            },
            (0, all),
        ),
        ("functions of a row", |_, x, r| x * r.exp().log1p().sqrt(), (all + row, all)),
        (
            "39 functions of a column",
            |s, x, _| x + (0..39).fold(source(s, [600, 1]), |c, k| if k % 2 == 0 { c.exp() } else { c.log1p() }),
            (all + 600, all),
        ),
        (
            "39 ops on a row",
            |_, x, r| x + (0..39).fold(r.clone(), |r, k| r * (1.0 + k as f64 / 100.0)),
            (all + row, all),
        ),
    ];
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        let (x, row) = (source(&s, [600, 70]), source(&s, [1, 70]));
        for (name, make, (reads, writes)) in cases {
            let y = make(&s, &x, &row);
            let (_, did) = counted(&rt, || wait(y.eval()).unwrap());
            let moved = (did.bytes_kernel_read / 4, did.bytes_kernel_written / 4);
            assert_eq!((did.kernels, moved), (1, (reads, writes)), "{name} on {device}");
        }
    }
}

#[test]
fn no_reason_is_given_for_the_end_of_a_kernel_that_goes_on() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        // Each step has three nodes, because there are two casts beside the product.
        let y = (0..39).fold(s.full(200u8, [600, 70]), |y, _| (y.cast::<f64>() * 0.5).cast::<u8>());
        let text = wait(y.explain()).unwrap();
        assert_eq!(text.matches("  kernel ").count(), 1, "{device}: {text}");
        assert!(!text.contains("ends here"), "{device}: {text}");
    }
}

#[test]
fn checks_in_a_chain_add_no_kernel_no_store_and_no_structure() {
    fn checked(s: &Session, x: &Array, message: Option<&str>, reduce: fn(&Array) -> Array) -> Array {
        let ensure = |y: Array, holds: Array| message.map_or(y.clone(), |message| y.ensure(&holds, message));
        let y = ensure((x * 2.0).sqrt(), x.ge(0.0));
        // A view of the checked array, and a second check of a value that depends on it.
        let y = ensure(&y.t() + 1.0 + s.rand::<f32>([70, 600]), x.t().lt(2.0));
        reduce(&y.log())
    }
    type Case = (fn(&Array) -> Array, u64);
    let reductions: [Case; 4] =
        [(Array::exp, 42_000), (|y| y.sum(..), 1), (|y| y.mean(0), 600), (|y| y.var(1).sqrt(), 70)];
    for (device, rt) in unfolded(|b| b) {
        for (case, (reduce, outputs)) in reductions.into_iter().enumerate() {
            let what = format!("case {case} on {device}");
            let run = |message: Option<&str>| {
                let s = session(&rt);
                let x = source(&s, [600, 70]);
                counted(&rt, || {
                    let y = checked(&s, &x, message, reduce);
                    wait(y.gather::<f32>()).unwrap_or_else(|e| panic!("{what}: {e}")).as_slice().to_vec()
                })
            };
            let (plain, _) = run(None);
            let (values, did) = run(Some("a number that has no root"));
            let close = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-4 * b.abs().max(1.0);
            assert!(values.iter().zip(&plain).all(close), "{what}: a check changes no value");
            assert_eq!((did.regions, did.kernels), (1, 1), "{what}");
            assert_eq!((did.bytes_kernel_read, did.bytes_kernel_written), (4 * 42_000, 4 * outputs), "{what}");
            let (_, again) = run(Some("another message"));
            assert_eq!((again.plan_cache_misses, again.pipelines_compiled), (0, 0), "{what}");
        }
    }
}

#[test]
fn a_kernel_reads_as_many_operands_as_the_device_binds_and_says_so_where_it_ends() {
    let few_bindings = Injection { bindings_max: Some(8), ..Default::default() };
    for (device, rt) in unfolded(|b| b.injection(few_bindings.clone())) {
        let s = session(&rt);
        // Four operands fit a device of eight bindings, beside the result and the parameters.
        let x: Vec<Array> = (0..40).map(|_| source(&s, [100, 5])).collect();
        let few = x[..4].iter().fold(s.zeros::<f32>([100, 5]), |sum, x| sum + x * 2.0);
        let (_, did) = counted(&rt, || wait(few.eval()).unwrap());
        assert_eq!((did.kernels, did.bytes_kernel_read), (1, 4 * 500 * 4), "{device}");
        let many = x.iter().fold(s.zeros::<f32>([100, 5]), |sum, x| sum + x * 2.0);
        let text = wait(many.explain()).unwrap();
        let told = text.contains("ends here because a kernel would otherwise bind more buffers than it may");
        let (out, did) = counted(&rt, || wait(many.gather::<f32>()).unwrap());
        assert!((out[96] - 80.0 * 96.0 / 97.0).abs() < 1e-3, "{device}: {}", out[96]);
        match device {
            "host" => assert!(!told && did.kernels == 1, "the host binds all: {did}"),
            _ => assert!(told && (2..=13).contains(&did.kernels), "{device}: {did}, {text}"),
        }
    }
}

/// Forty ops on `x` and forty operands of mixed dtypes that expand to it, with the expected elements.
fn distinct_operands(s: &Session, [n, m, k]: [usize; 3]) -> (Array, Vec<f64>) {
    let at = |i: usize, step: usize| ((i * 7 + step * 3) % 11) as f64;
    let x = s.from_vec((0..n * m * k).map(|i| at(i, 0) as f32).collect(), [n, m, k]).unwrap();
    let mut values: Vec<f64> = (0..n * m * k).map(|i| at(i, 0)).collect();
    let mut y = x;
    for step in 1..=40 {
        let shape = [[n, 1, 1], [1, m, 1], [1, 1, k], [n, m, 1], [1, 1, 1]][step % 5];
        let len: usize = shape.iter().product();
        let data: Vec<f64> = (0..len).map(|i| at(i, step)).collect();
        let (operand, number): (Array, fn(f64) -> f64) = match step % 3 {
            0 => (s.from_vec(data.iter().map(|&v| v as f32).collect(), shape).unwrap(), |v| v),
            1 => (s.from_vec(data.iter().map(|&v| v as i32).collect(), shape).unwrap(), |v| v),
            _ => (s.from_vec(data.iter().map(|&v| v > 4.0).collect(), shape).unwrap(), |v| f64::from(v > 4.0)),
        };
        let expanded = |i: usize| {
            let place = [i % n, i / n % m, i / n / m];
            let (a, b) = (if shape[0] == 1 { 0 } else { place[0] }, if shape[1] == 1 { 0 } else { place[1] });
            let c = if shape[2] == 1 { 0 } else { place[2] };
            number(data[a + shape[0] * (b + shape[1] * c)])
        };
        values.iter_mut().enumerate().for_each(|(i, v)| *v += expanded(i));
        y += match step % 3 {
            1 => operand.cast::<f32>(),
            _ => operand,
        };
    }
    (y, values)
}

#[test]
fn forty_one_distinct_operands_of_mixed_shapes_and_dtypes_are_one_kernel() {
    for (device, rt) in unfolded(|b| b) {
        for sizes in [[30, 20, 10], [57, 9, 21]] {
            for (name, dims) in [("none", &[][..]), ("all", &[0, 1, 2]), ("first", &[0]), ("outer", &[0, 2])] {
                let what = format!("{name} of {sizes:?} on {device}");
                let s = session(&rt);
                let (y, values) = distinct_operands(&s, sizes);
                let y = if dims.is_empty() { y } else { y.sum(dims) };
                let started = std::time::Instant::now();
                let (out, did) = counted(&rt, || wait(y.gather::<f32>()).unwrap_or_else(|e| panic!("{what}: {e}")));
                eprintln!("{what}: {:?}, {} kernel(s)", started.elapsed(), did.kernels);
                assert_eq!((did.regions, did.kernels), (1, 1), "{what}: {did}");
                let mut expected = vec![0.0; out.len()];
                for (i, value) in values.iter().enumerate() {
                    let place = [i % sizes[0], i / sizes[0] % sizes[1], i / sizes[0] / sizes[1]];
                    let (mut index, mut stride) = (0, 1);
                    for d in (0..3).filter(|d| !dims.contains(d)) {
                        index += place[d] * stride;
                        stride *= sizes[d];
                    }
                    expected[index] += value;
                }
                for (a, b) in out.as_slice().iter().zip(&expected) {
                    assert!((f64::from(*a) - b).abs() <= 1e-5 * b.abs(), "{what}: {a} and {b}");
                }
            }
        }
    }
}

#[test]
fn a_large_full_reduction_of_random_numbers_reads_nothing_and_stores_one_number() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        let n = 1 << 21;
        let (mean, did) = counted(&rt, || {
            let z = s.randn::<f32>([n, 1]);
            wait((&z * &z).mean(..).item::<f32>()).unwrap()
        });
        assert!((mean - 1.0).abs() < 0.01, "{device}: {mean}");
        assert_eq!((did.kernels, did.bytes_kernel_read, did.bytes_kernel_written), (1, 0, 4), "{device}");
        let peak = did.bytes_resident_peak;
        assert!(peak < 4 * n as u64, "{device}: {peak} bytes were resident, of which the numbers would take {}", 4 * n);
        assert!(did.dispatches <= 2, "{device}: {} dispatches", did.dispatches);
    }
}

#[test]
fn other_scalars_seeds_and_sizes_compile_nothing() {
    let program = |s: &Session, n: usize, m: usize, scalar: f64| {
        let (x, row, column) = (source(s, [n, m]), source(s, [1, m]), source(s, [n, 1]));
        let y = forty_ops(s, &x, &row, &column, scalar);
        let z = (&y * scalar).slice((1..n - 1, ..)).sum(0);
        let (sums, total, z) =
            wait(async { futures::try_join!(y.sum(1).gather::<f32>(), y.sum(..).item::<f32>(), z.gather::<f32>()) })
                .unwrap();
        (sums.len(), total.is_finite(), z.len())
    };
    for (device, rt) in unfolded(|b| b) {
        let (_, first) = counted(&rt, || program(&session(&rt), 300, 40, 1.5));
        assert!(first.plan_cache_misses > 0, "{device}");
        assert_eq!(first.pipelines_compiled > 0, device == "gpu", "{device}");
        // Smaller and larger sizes, odd ones and multiples of four, with one chunk and with many.
        for (n, m, scalar, seed) in [(301, 41, -2.25, 1), (64, 4, 7.0, 2), (5, 3, 0.0, 3), (9001, 33, 1e-3, 4)] {
            let s = rt.session("other").seed(seed).open();
            let (out, again) = counted(&rt, || program(&s, n, m, scalar));
            assert_eq!(out, (n, true, m), "{device}");
            let what = format!("{device}, {n} x {m}");
            assert_eq!((again.plan_cache_misses, again.plan_cache_hits), (0, first.plan_cache_misses), "{what}");
            assert_eq!(again.pipelines_compiled, 0, "{what}");
            assert_eq!((again.regions, again.kernels), (first.regions, first.kernels), "{what}");
        }
    }
}

type BesideNumber = fn(&Array, f64) -> Array;

/// Ops of an array and a number.
const BESIDE_NUMBERS: [(&str, BesideNumber); 22] = [
    ("add", |x, k| x + k),
    ("sub", |x, k| x - k),
    ("from", |x, k| k - x),
    ("mul", |x, k| x * k),
    ("div", |x, k| x / k),
    ("under", |x, k| k / x),
    ("rem", |x, k| x % k),
    ("mod", |x, k| x.modulo(k)),
    ("pow", |x, k| x.pow(k)),
    ("atan2", |x, k| x.atan2(k)),
    ("hypot", |x, k| x.hypot(k)),
    ("min", |x, k| x.min(k)),
    ("max", |x, k| x.max(k)),
    ("clamp", |x, k| x.clamp(-k, k)),
    ("eq", |x, k| x.eq_to(k)),
    ("ne", |x, k| x.ne_to(k)),
    ("lt", |x, k| x.lt(k)),
    ("le", |x, k| x.le(k)),
    ("gt", |x, k| x.gt(k)),
    ("ge", |x, k| x.ge(k)),
    ("and", |x, k| x & k),
    ("chain", |x, k| (x * k + 1.0).max(k) - x),
];

#[test]
fn whole_numbers_and_fractions_beside_any_array_are_the_same_kernel() {
    fn program(s: &Session, dtype: DType, op: BesideNumber, number: f64) -> Vec<f64> {
        let x = s.linspace::<f64>(-40.0, 300.0, 341);
        let x = match dtype {
            DType::F32 => x.cast::<f32>(),
            DType::F64 => x,
            DType::Bool => x.gt(100.0),
            DType::U8 => x.cast::<u8>(),
            DType::I32 => x.cast::<i32>(),
            DType::U32 => x.cast::<u32>(),
            _ => x.cast::<i64>(),
        };
        wait(x.eval()).unwrap();
        wait(op(&x, number).gather_as::<f64>()).unwrap().as_slice().to_vec()
    }
    let same = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| a == b || (a.is_nan() && b.is_nan()));
    let dtypes = [DType::F32, DType::F64, DType::Bool, DType::U8, DType::I32, DType::U32, DType::I64];
    // The short form takes every second op of a dtype, and the other half for the next dtype.
    let every = rounds(2, 1);
    let ops = |number: usize| BESIDE_NUMBERS.into_iter().skip(number % every).step_by(every);
    for (device, rt) in unfolded(|b| b) {
        for (number, dtype) in dtypes.into_iter().enumerate() {
            for (name, op) in ops(number) {
                let what = format!("{name} of {dtype} on {device}");
                program(&session(&rt), dtype, op, 2.0);
                let wide = [-0.0, -7.25, 1e300, -1e19, f64::INFINITY, f64::NAN, 2f64.powi(63), 1e-300];
                let wide = wide.into_iter().filter(|_| dtype == DType::I64);
                for number in [3.0, 2.5, 0.0, 1e10].into_iter().chain(wide) {
                    let (_, again) = counted(&rt, || program(&session(&rt), dtype, op, number));
                    let missed = (again.plan_cache_misses, again.pipelines_compiled);
                    assert_eq!(missed, (0, 0), "{what}, {number}");
                }
            }
        }
        // The expected result is computed in f64, rounded and saturated.
        for (number, dtype) in [DType::U8, DType::I32, DType::U32].into_iter().enumerate() {
            for (name, op) in ops(number).filter(|(name, _)| *name != "chain") {
                for number in [2.0, 2.5, -1.0, 0.0, -0.0, 1e10, f64::INFINITY, f64::NAN] {
                    let s = session(&rt);
                    let computed = program(&s, dtype, op, number);
                    let plain = |x: Array| {
                        let y = op(&x.cast::<f64>(), number);
                        let y = match dtype {
                            _ if y.dtype().unwrap() == DType::Bool || matches!(name, "atan2" | "hypot") => y,
                            DType::U8 => y.cast::<u8>(),
                            DType::I32 => y.cast::<i32>(),
                            _ => y.cast::<u32>(),
                        };
                        wait(y.gather_as::<f64>()).unwrap().as_slice().to_vec()
                    };
                    let x = s.linspace::<f64>(-40.0, 300.0, 341);
                    let expected = match dtype {
                        DType::U8 => plain(x.cast::<u8>()),
                        DType::I32 => plain(x.cast::<i32>()),
                        _ => plain(x.cast::<u32>()),
                    };
                    assert!(same(&computed, &expected), "{name} of {dtype} with {number} on {device}");
                }
            }
        }
    }
}

#[test]
fn library_kernels_and_views_of_other_sizes_compile_nothing() {
    let program = |s: &Session, n: usize, at: usize| {
        let (x, y) = (source(s, [n, 6]), source(s, [6, n]));
        let k = s.randi::<i32>(0..n as i64, [n, 1]);
        let all = [
            x.sort(0).0,
            x.cumsum(0),
            y.matmul(&x),
            x.slice((.., 0)).take(&k),
            x.slice((at..n - at, ..)) * 2.0,
            x.flip(0).circshift(&[at as i64, 1]) + 1.0,
            x.assign((at..n - at, 0), 3.0),
            cat(0, &[&x, &x.slice((0..at, ..))]).unwrap().exp(),
            x.argmax(0),
            s.arange(0.0f32, n as f32, 1.0) + 0.5,
        ];
        let gathers: Vec<_> = all.iter().map(Array::gather_any).collect();
        for gather in wait(futures::future::join_all(gathers)) {
            gather.unwrap();
        }
    };
    for (device, rt) in unfolded(|b| b) {
        let (_, first) = counted(&rt, || program(&session(&rt), 3000, 7));
        assert!(first.plan_cache_misses > 0, "{device}");
        // Short lines, and lines that are too long for a workgroup, are sorted by other kernels.
        program(&session(&rt), 50, 2);
        program(&session(&rt), 5000, 7);
        for (n, at) in [(3001, 8), (40, 2), (9000, 100)] {
            let (_, again) = counted(&rt, || program(&session(&rt), n, at));
            assert_eq!((again.plan_cache_misses, again.pipelines_compiled), (0, 0), "{device}, {n} rows");
            assert_eq!(again.kernels, first.kernels, "{device}, {n} rows");
        }
    }
}

#[test]
fn memory_of_values_that_ended_is_used_again() {
    for (device, rt) in unfolded(|b| b) {
        let run = || {
            let s = session(&rt);
            let x = source(&s, [500, 500]) * 2.0;
            wait(x.eval()).unwrap();
            wait((&x + x.sum(0)).gather::<f32>()).unwrap();
        };
        for _ in 0..3 {
            run();
        }
        let peak = rt.stats().bytes_resident_peak;
        let (_, did) = counted(&rt, run);
        assert!(did.pool_hits > 0, "{device}: {did}");
        assert_eq!((did.pool_misses, did.evictions), (0, 0), "{device}: {did}");
        assert_eq!(did.bytes_resident_peak, peak, "{device}");
    }
}

#[test]
fn reductions_of_the_same_data_share_one_kernel_that_reads_it_once() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        let x = source(&s, [1000, 30]);
        let ((low, high, mean), did) = counted(&rt, || {
            let y = x.exp();
            let (low, high, mean) = (y.min_over(0), y.max_over(0), y.mean(0) * 2.0);
            drop(y);
            wait(async { futures::try_join!(low.gather::<f32>(), high.gather::<f32>(), mean.gather::<f32>()) }).unwrap()
        });
        for j in 0..30 {
            assert!(low[j] <= mean[j] / 2.0 && mean[j] / 2.0 <= high[j], "{device}");
        }
        assert_eq!((did.regions, did.kernels), (1, 1), "{device}");
        assert_eq!((did.bytes_kernel_read, did.bytes_kernel_written), (4 * 30_000, 4 * 3 * 30), "{device}");
    }
}

#[test]
fn views_are_index_arithmetic_and_never_copies() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        let x = source(&s, [200, 300]);
        let (out, did) = counted(&rt, || {
            let y = x.t().flip(0).slice((0..100, tidemill::step(.., -2))) * 2.0;
            wait(y.reshape([50, 200]).gather::<f32>()).unwrap()
        });
        assert_eq!(out.shape().dims(), [50, 200], "{device}");
        // Element (0, 0) of the result is x(199, 299).
        assert_eq!(out[0], 2.0 * ((199 + 200 * 299) % 97) as f32 / 97.0, "{device}");
        assert_eq!((did.kernels, did.bytes_kernel_written), (1, 4 * 10_000), "{device}");
        assert_eq!(did.bytes_kernel_read, 4 * 10_000, "{device}: elements outside of the slice are not read");
    }
}

/// The numbers in the text of `explain()`: kernels, their ops, bytes read and written, outputs in place, and copies.
#[derive(Debug, Default, PartialEq, Eq)]
struct Explained {
    regions: u64,
    kernels: u64,
    ops: u64,
    read: u64,
    written: u64,
    in_place: u64,
}

fn explained(text: &str) -> Explained {
    let number = |line: &str, before: &str, after: &str| -> u64 {
        let from = line.find(before).unwrap_or_else(|| panic!("'{before}' in {line}")) + before.len();
        let rest = &line[from..];
        let digits = &rest[..rest.find(after).unwrap_or_else(|| panic!("'{after}' in {line}"))];
        digits.rsplit(' ').next().unwrap().parse().unwrap_or_else(|e| panic!("{e}: '{digits}' in {line}"))
    };
    let mut told = Explained::default();
    for line in text.lines() {
        told.regions += line.starts_with("region: ") as u64;
        told.in_place += line.contains(", in the memory of ") as u64;
        if line.starts_with("  kernel ") {
            told.kernels += 1;
            told.ops += number(line, ": ", " op(s): ");
            told.read += number(line, "; reads ", " B");
            told.written += number(line, ", writes ", " B");
        }
    }
    told
}

#[test]
fn explain_tells_the_plan_that_then_runs() {
    type Program = (&'static str, fn(&Session) -> Array, u64);
    let programs: [Program; 12] = [
        ("a chain", |s| (source(s, [500, 40]) * 2.0 + 1.0).exp(), 3),
        ("a fold with a tail", |s| source(s, [500, 40]).square().sum(1).sqrt(), 3),
        (
            "normalising",
            |s| {
                let x = source(s, [500, 40]);
                (&x - x.mean(0)) / x.std(0)
            },
            4,
        ),
        ("a matmul", |s| (source(s, [60, 50]) + 1.0).matmul(&source(s, [50, 70]).sqrt()).sum(..), 4),
        ("a sort", |s| (source(s, [700, 3]) * -1.0).sort(0).0.slice((0..10, ..)), 3),
        ("a scan", |s| (source(s, [700, 3]) * 0.5).cumsum(0) + 1.0, 3),
        ("pieces", |s| cat(0, &[&(source(s, [30, 9]) + 1.0), &source(s, [20, 9])]).unwrap() * 2.0, 3),
        ("random numbers", |s| (s.randn::<f32>([500, 4]) * 2.0).var(0), 3),
        ("an assignment", |s| (source(s, [100, 9]) * 2.0).assign((10..20, ..), 5.0) + 1.0, 3),
        ("more than a region holds", |s| (0..1500).fold(source(s, [100, 9]), |y, _| y * 0.5 + 1.0), 3000),
        ("work for two devices", |s| s.rand::<f64>([100, 9]).sin().sum(0) * 2.0, 4),
        (
            "what was passed before",
            |s| {
                let y = source(s, [100, 9]).exp() * 2.0;
                wait((&y + 1.0).eval()).unwrap();
                y.sum(0).cumsum(1) + y
            },
            5,
        ),
    ];
    for (device, rt) in unfolded(|b| b) {
        let mut reused = 0;
        for (name, program, ops_least) in &programs {
            let what = format!("{name} on {device}");
            let s = session(&rt);
            let y = program(&s);
            let (text, explaining) = counted(&rt, || wait(y.explain()).unwrap());
            let ran = (explaining.regions, explaining.kernels, explaining.plan_cache_misses);
            assert_eq!(ran, (0, 0, 0), "{what}: explaining runs nothing");
            let told = explained(&text);
            assert!(told.ops >= *ops_least, "{what}: {text}");
            let (_, did) = counted(&rt, || wait(y.gather_any()).unwrap());
            let done = Explained {
                regions: did.regions,
                kernels: did.kernels,
                ops: told.ops,
                read: did.bytes_kernel_read,
                written: did.bytes_kernel_written,
                in_place: did.reused_in_place,
            };
            assert_eq!(told, done, "{what}: {text}");
            if device == "host" {
                assert_eq!((told.kernels, 0), (did.host_kernels, did.dispatches), "{what}");
            } else {
                assert!(did.host_kernels + did.dispatches >= told.kernels, "{what}");
                assert_eq!(did.host_kernels > 0, !did.elsewhere.is_empty(), "{what}");
            }
            let after = wait(y.explain()).unwrap();
            assert!(after.contains("nothing to run"), "{what}: {after}");
            // The same program in another session has the same plan. Its text also says how long the first one took.
            let again = session(&rt);
            let other = program(&again);
            let asked = (0..1000).map(|_| wait(other.explain()).unwrap());
            let text = asked.into_iter().find(|text| text.contains(" run(s)")).expect(&what);
            assert!(text.contains("  took on device "), "{what}: {text}");
            reused += (did.reused_in_place > 0) as u32;
        }
        assert!(reused >= 3, "{device}: memory is reused in place in {reused} programs");
    }
}

#[test]
fn explain_tells_what_a_plan_copies_and_that_is_counted() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        let x = source(&s, [10_000, 1]) + 0.0;
        wait(x.eval()).unwrap();
        let y = x.assign((3..9, ..), 2.0);
        let text = wait(y.explain()).unwrap();
        assert!(text.contains("copy: buffer 0 to buffer 1; reads 40000 B, writes 40000 B"), "{device}: {text}");
        let (_, did) = counted(&rt, || wait(y.eval()).unwrap());
        // Memory is allocated in whole blocks, so a little more may be copied.
        assert!((40_000..40_960).contains(&did.bytes_copied), "{device}: {}", did.bytes_copied);
        let z = y.assign((0..3, ..), 1.0);
        drop(y);
        let (_, did) = counted(&rt, || wait(z.eval()).unwrap());
        assert_eq!(did.bytes_copied, 0, "{device}: the array has one handle");
    }
}

#[test]
fn explain_names_the_ops_where_they_run_and_what_is_reused_in_place() {
    for (device, rt) in unfolded(|b| b) {
        let s = session(&rt);
        let x = source(&s, [100, 100]) + 0.0;
        wait(x.eval()).unwrap();
        let y = x.exp() * 2.0 + 1.0;
        let kept = wait(y.explain()).unwrap();
        assert!(!kept.contains("in place"), "{device}: another handle holds the input: {kept}");
        drop(x);
        let text = wait(y.explain()).unwrap();
        assert!(text.contains("3 op(s): exp+mul+add"), "{device}: {text}");
        assert!(text.contains("in place"), "{device}: {text}");
        assert!(text.contains(&rt.devices().last().unwrap().name), "{device}: {text}");
        let (_, did) = counted(&rt, || wait(y.eval()).unwrap());
        assert_eq!(did.reused_in_place, 1, "{device}");
    }
}

#[test]
fn counters_increase_only_where_things_happen() {
    for (device, rt) in unfolded(|b| b) {
        let host = device == "host";
        let s = session(&rt);
        let ((x, y), recorded) = counted(&rt, || {
            let x = source(&s, [1000, 10]);
            drop(x.sin());
            let y = &x + 1.0;
            (x, y)
        });
        assert_eq!(recorded, nothing(&rt), "{device}: recording touches nothing");

        let (_, evaluated) = counted(&rt, || wait(y.eval()).unwrap());
        // The ops are the source, the sine and the sum. A source does not count as work.
        assert_eq!((evaluated.ops_recorded, evaluated.ops_dead, evaluated.ops_folded), (3, 1, 0), "{device}");
        assert_eq!((evaluated.regions, evaluated.kernels), (1, 1), "{device}");
        assert_eq!((evaluated.plan_cache_hits, evaluated.plan_cache_misses), (0, 1), "{device}");
        assert_eq!(evaluated.host_kernels, host as u64, "{device}");
        assert_eq!(evaluated.dispatches, !host as u64, "{device}");
        assert_eq!(evaluated.submissions, !host as u64, "{device}: one submission a batch");
        assert_eq!(evaluated.pipelines_compiled, !host as u64, "{device}");
        assert_eq!(evaluated.host_blocks > 0, host, "{device}");
        assert_eq!(evaluated.bytes_uploaded, if host { 0 } else { 40_000 }, "{device}: the host adopts data");
        assert_eq!((evaluated.bytes_read_back, evaluated.gathers), (0, 1), "{device}");

        let (_, gathered) = counted(&rt, || wait(y.gather::<f32>()).unwrap());
        assert_eq!((gathered.kernels, gathered.host_kernels, gathered.dispatches), (0, 0, 0), "{device}");
        assert_eq!((gathered.bytes_uploaded, gathered.pipelines_compiled), (0, 0), "{device}");
        assert_eq!((gathered.plan_cache_hits, gathered.plan_cache_misses), (0, 0), "{device}");
        assert_eq!(gathered.bytes_read_back, if host { 0 } else { 40_000 }, "{device}");
        assert_eq!((gathered.gathers, gathered.gathers_failed), (1, 0), "{device}");

        let (_, again) = counted(&rt, || wait((&x + 2.0).eval()).unwrap());
        assert_eq!((again.plan_cache_hits, again.plan_cache_misses, again.pipelines_compiled), (1, 0, 0), "{device}");
        assert_eq!(again.bytes_uploaded, 0, "{device}: the source is on the device already");

        let (_, failed) = counted(&rt, || {
            let index = s.from_slice(&[20_000i32, 1], [2, 1]).unwrap();
            wait(x.take(&index).gather::<f32>()).unwrap_err()
        });
        assert_eq!((failed.gathers, failed.gathers_failed), (0, 1), "{device}");
    }
}

#[test]
fn what_the_gpu_cannot_do_is_counted_with_its_reason() {
    let injection = Injection { segment_shift: Some(10), ..Injection::default() };
    let Some(rt) = gpu(|b| b.fold_elements_max(0).injection(injection)) else { return };
    let s = session(&rt);
    let sorted =
        |n: usize| counted(&rt, || wait((0.0 - s.linspace(0.0f64, 1.0, n)).sort(1).0.gather::<f64>()).unwrap());
    let (out, did) = sorted(20_000);
    assert_eq!((out[0], out[19_999]), (-1.0, 0.0));
    assert!(did.elsewhere.values().sum::<u64>() >= 1, "{did}");
    assert!(did.elsewhere.keys().any(|reason| reason.contains("more pieces")), "{:?}", did.elsewhere);
    assert!(did.host_kernels >= 1, "{did}");
    let (out, did) = sorted(1000);
    assert_eq!((out[0], out[999]), (-1.0, 0.0));
    assert_eq!((did.elsewhere.len(), did.host_kernels), (0, 0), "few pieces stay on the GPU");
}

#[test]
fn scans_sorts_and_assignments_of_arrays_in_pieces_run_on_the_gpu() {
    let injection = Injection { segment_shift: Some(11), ..Injection::default() };
    let Some(rt) = gpu(|b| b.fold_elements_max(0).injection(injection)) else { return };
    let s = session(&rt);
    let n = 3000usize;
    let data: Vec<f32> = (0..n).map(|i| (i * 7919 % 3001) as f32 - 1500.0).collect();
    let x = s.from_slice(&data, [n, 1]).unwrap();
    let (out, did) = counted(&rt, || {
        let (values, places) = x.sort(0);
        let index = s.from_slice(&[2999i32, 5, 2999], [3, 1]).unwrap();
        let new = s.from_slice(&[1.0f32, 2.0, 3.0], [3, 1]).unwrap();
        let all = [values, places.cast_to(DType::F32), x.cumsum(0), x.assign_at(&index, &new), x.take(&places)];
        let gathers: Vec<_> = all.iter().map(|array| array.gather::<f32>()).collect();
        wait(futures::future::join_all(gathers)).into_iter().map(|out| out.unwrap().into_vec()).collect::<Vec<_>>()
    });
    assert_eq!((did.elsewhere.len(), did.host_kernels), (0, 0), "{did}");
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&p, &q| data[p].total_cmp(&data[q]));
    assert!(out[0].iter().copied().eq(order.iter().map(|&p| data[p])));
    assert!(out[1].iter().copied().eq(order.iter().map(|&p| p as f32)));
    let mut sum = 0.0;
    assert!(out[2].iter().zip(&data).all(|(&got, x)| {
        sum += x;
        got == sum
    }));
    assert_eq!((out[3][2999], out[3][5], out[3][6]), (3.0, 2.0, data[6]));
    assert_eq!(out[4], out[0]);
}

#[test]
fn a_sort_sorts_once_for_its_values_and_its_positions() {
    let Some(rt) = gpu(|b| b.fold_elements_max(0)) else { return };
    let s = session(&rt);
    // A line that a workgroup holds takes one pass. A longer line takes three passes for each of its digits of 8 bits.
    for (n, passes) in [(3000, 1), (5000, 4 * 3)] {
        let (values, places) = (0.0 - s.linspace(0.0f32, 1.0, n)).sort(1);
        let (_, did) = counted(&rt, || wait(values.gather::<f32>()).unwrap());
        // The kernels compute the keys, the permutation and the values.
        assert_eq!((did.kernels, did.dispatches), (3, 2 + passes), "{did}");
        let (out, did) = counted(&rt, || wait(places.gather::<u32>()).unwrap());
        assert_eq!((out[0] as usize, did.kernels), (n - 1, 0), "{did}");
    }
}

#[test]
fn functions_of_f64_run_on_the_gpu_that_has_it() {
    let Some(rt) = gpu(|b| b.fold_elements_max(0)) else { return };
    let features = rt.device("gpu").unwrap().features;
    if !(features.f64 && features.i64) {
        eprintln!("skipped: this GPU has no f64");
        return;
    }
    let s = session(&rt);
    let x = s.linspace(0.0f64, 3000.0, 2000);
    let y = ((x.sin() * x.exp2().log1p()).atan2(&x).modulo(0.37) + s.randn::<f64>(x.shape()) * 0.0).sum(..);
    let (got, did) = counted(&rt, || wait(y.item::<f64>()).unwrap());
    let of = |x: f64| (x.sin() * x.exp2().ln_1p()).atan2(x).rem_euclid(0.37);
    let wanted: f64 = (0..2000).map(|i| of(i as f64 * 3000.0 / 1999.0)).sum();
    // A product beyond 2^1024 is infinite, and the angle of that is a quarter turn of either sign.
    assert!((got - wanted).abs() < 1e-9, "{got}, not {wanted}");
    assert_eq!((did.elsewhere.len(), did.host_kernels), (0, 0), "{did}");
}

/// Counters that all are zero, as a difference without any work.
fn nothing(rt: &Runtime) -> Stats {
    let now = rt.stats();
    now.since(&now)
}
