//! Memory: budgets that are smaller than a program's arrays, and arrays that are larger than a binding.

mod common;
use common::{gpu, poll_once, wait};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tidemill::testing::{Hold, Injection, rounds};
use tidemill::{Array, ErrorKind, HostAny, Runtime, RuntimeBuilder, Session, select, step};

const MIB: u64 = 1 << 20;

/// Makes and keeps 64 arrays, combines them pairwise and reads parts of them back. Returns the bits that were read.
fn arrays_and_sums(rt: &Runtime, elements: usize) -> Vec<Vec<u32>> {
    let s = rt.session("large").seed(3).open();
    let ramp = s.arange(0.0f32, elements as f32, 1.0).reshape([elements, 1]);
    let arrays: Vec<Array> = (0..64)
        .map(|i| {
            let array = &ramp * (0.25 + i as f64) + 1.0;
            wait(array.eval()).unwrap_or_else(|e| panic!("array {i}: {e}"));
            array
        })
        .collect();
    let mut seen = Vec::new();
    let mut see = |values: &[f32]| seen.push(bytemuck::cast_slice(values).to_vec());
    for (i, array) in arrays.iter().enumerate() {
        let partner = &arrays[(i * 37 + 5) % 64];
        let sum = wait((array - partner).sum(..).gather::<f32>()).unwrap_or_else(|e| panic!("sum {i}: {e}"));
        see(sum.as_slice());
    }
    for i in [0, 31, 63] {
        let all = wait(arrays[i].gather::<f32>()).unwrap_or_else(|e| panic!("gather {i}: {e}"));
        assert_eq!((all[1], all.len()), (0.25 + i as f32 + 1.0, elements));
        see(all.as_slice());
    }
    seen
}

#[test]
fn arrays_of_sixteen_times_the_budget_live_in_it_by_eviction_with_the_same_bits() {
    // Arrays of a gibibyte with a budget of 64 MiB, or a quarter of both.
    let elements = rounds(1 << 20, 4 << 20);
    let bytes = 4 * elements as u64;
    let Some(tight) = gpu(|b| b.device_budget(4 * bytes)) else { return };
    let narrow = arrays_and_sums(&tight, elements);
    let stats = tight.stats();
    assert!(stats.evictions >= 60, "{stats}");
    assert!(stats.bytes_evicted >= 60 * bytes, "{stats}");
    assert!(stats.bytes_resident_peak <= 4 * bytes, "{stats}");
    assert!(stats.elsewhere.is_empty(), "everything ran where it was asked to: {stats}");
    drop(tight);
    let wide = gpu(|b| b.device_budget(4096 * MIB)).expect("it was there before");
    assert!(arrays_and_sums(&wide, elements) == narrow, "the budget changed bits");
    assert_eq!(wide.stats().evictions, 0, "the large budget evicts nothing");
}

/// log2 of the number of elements in a segment, in the tests below.
const SHIFT: u32 = 10;
const ROWS: usize = 60;
const COLUMNS: usize = 70;

fn segmented(b: RuntimeBuilder) -> RuntimeBuilder {
    b.injection(Injection { segment_shift: Some(SHIFT), ..Default::default() })
}

/// An uploaded matrix of 5 segments with varied elements.
fn matrix(s: &Session) -> Array {
    let data: Vec<f32> = (0..ROWS * COLUMNS).map(|i| ((i * 7919) % 1009) as f32 - 500.0).collect();
    s.from_vec(data, [ROWS, COLUMNS]).unwrap()
}

type Case = (&'static str, fn(&Session) -> Array);

fn gathered(rt: &Runtime, case: fn(&Session) -> Array) -> tidemill::Result<HostAny> {
    let s = rt.session("segments").seed(5).open();
    wait(case(&s).gather_any())
}

/// Checks that every case has the same elements on a GPU with tiny segments as on the host, within `tolerance`, and
/// that it ran on the GPU.
fn same_as_on_the_host(cases: &[Case], tolerance: f64) {
    let Some(rt) = gpu(segmented) else { return };
    let host = common::host();
    let mut wrong = Vec::new();
    for (what, case) in cases {
        let expected = gathered(&host, *case).unwrap_or_else(|e| panic!("{what} on the host: {e}"));
        let before = rt.stats();
        let got = match gathered(&rt, *case) {
            Ok(got) => got,
            Err(error) => {
                wrong.push(format!("{what}: {error}"));
                continue;
            }
        };
        assert_eq!((got.dtype(), got.shape()), (expected.dtype(), expected.shape()), "{what}");
        let off = got.to_f64().iter().zip(expected.to_f64()).position(|(g, e)| {
            !(*g == e || (g.is_nan() && e.is_nan()) || (g - e).abs() <= tolerance * e.abs().max(1.0))
        });
        if let Some(i) = off {
            wrong.push(format!("{what}: element {i} is {} and not {}", got.to_f64()[i], expected.to_f64()[i]));
        }
        let now = rt.stats().since(&before);
        if !now.elsewhere.is_empty() || now.dispatches == 0 {
            wrong.push(format!("{what}: did not run on the GPU: {:?}", now.elsewhere));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn segmented_arrays_work_elementwise_and_as_views() {
    same_as_on_the_host(
        &[
            ("a chain", |s| (matrix(s) * 2.0 + 1.0).max(0.0)),
            ("two arrays", |s| &matrix(s) * &(matrix(s) - 3.0)),
            ("a broadcast row", |s| matrix(s) + s.arange(0.0f32, COLUMNS as f32, 1.0)),
            ("a broadcast column", |s| matrix(s) - s.arange(0.0f32, ROWS as f32, 1.0).t()),
            ("bools", |s| matrix(s).gt(0.0)),
            ("integers", |s| matrix(s).cast::<i32>() * 3i64),
            ("select", |s| select(&matrix(s).gt(0.0), matrix(s), 7.0)),
            ("an outer product", |s| s.arange(0.0f32, 90.0, 1.0).t() * s.arange(0.0f32, 80.0, 1.0)),
            ("transpose", |s| matrix(s).t() + 0.5),
            ("transpose against itself", |s| matrix(s).slice((.., 0..60)) + matrix(s).slice((.., 0..60)).t()),
            ("slice", |s| matrix(s).slice((3..50, 7..61)) * 2.0),
            ("slice alone", |s| matrix(s).slice((3..50, 7..61))),
            ("strided backwards", |s| matrix(s).slice((step(.., -1), step(.., 3))) + 0.0),
            ("flip", |s| matrix(s).flip(0) + matrix(s).flip(1)),
            ("reshape", |s| (matrix(s) + 1.0).reshape([COLUMNS, ROWS]) * 2.0),
            ("reshape of a transpose", |s| matrix(s).t().reshape([ROWS, COLUMNS]) + 0.0),
            ("repmat", |s| matrix(s).repmat(&[2, 2]) + 0.0),
            ("repmat of little", |s| s.arange(0.0f32, 100.0, 1.0).repmat(&[30, 2]) + 0.0),
            ("circshift", |s| matrix(s).circshift(&[5, -9]) + 0.0),
            ("tril", |s| matrix(s).tril(0)),
            ("cat", |s| tidemill::cat(0, &[&matrix(s), &(matrix(s) * 2.0)]).unwrap()),
            ("permute", |s| matrix(s).reshape([6, 10, COLUMNS]).permute(&[2, 0, 1]) + 0.0),
            ("assign a slice", |s| matrix(s).assign((5..20, 5..40), 9.0)),
            ("fill", |s| s.full(2.5f32, [ROWS, COLUMNS])),
            ("linspace", |s| s.arange(0.0f32, 4000.0, 1.0)),
            ("eye", |s| s.eye::<f32>(70)),
        ],
        0.0,
    );
}

#[test]
fn segmented_arrays_are_reduced_fully_and_along_each_dimension() {
    same_as_on_the_host(
        &[
            ("sum of all", |s| matrix(s).sum(..)),
            ("sum of a chain", |s| (matrix(s) * 0.5 + 1.0).sum(..)),
            ("sum over rows", |s| matrix(s).sum(0)),
            ("sum over columns", |s| matrix(s).sum(1)),
            ("sum of a transpose", |s| matrix(s).t().sum(0)),
            ("max of all", |s| matrix(s).max_over(..)),
            ("min over columns", |s| matrix(s).min_over(1)),
            ("argmax of all", |s| matrix(s).flatten().argmax(0)),
            ("argmin over rows", |s| matrix(s).argmin(0)),
            ("mean over the middle", |s| matrix(s).reshape([6, 10, COLUMNS]).mean(1)),
            ("normalised", |s| (matrix(s) - matrix(s).mean(0)) / matrix(s).std(0)),
            ("var of all", |s| matrix(s).var(..)),
            ("any", |s| matrix(s).gt(1000.0).any(..)),
            ("count over rows", |s| matrix(s).gt(0.0).count_nonzero(0)),
            ("many outputs", |s| s.arange(0.0f32, 6000.0, 1.0).reshape([3, 2000]).sum(0)),
            ("many outputs along columns", |s| s.arange(0.0f32, 6000.0, 1.0).reshape([2000, 3]).sum(1)),
            ("a sum and its tail", |s| (&matrix(s) / &matrix(s).abs().sum(..)) * 100.0),
        ],
        1e-5,
    );
}

#[test]
fn segmented_arrays_are_multiplied_drawn_and_looked_up() {
    same_as_on_the_host(
        &[
            ("matmul", |s| matrix(s).matmul(&matrix(s).t())),
            ("matmul of a chain", |s| (matrix(s) + 1.0).t().matmul(&matrix(s))),
            ("matmul to a vector", |s| matrix(s).matmul(&s.ones::<f32>([COLUMNS, 1]))),
            ("uniform", |s| s.rand::<f32>([ROWS, COLUMNS])),
            ("integers", |s| s.randi::<i32>(-5..1000, [ROWS, COLUMNS])),
            ("normal", |s| s.randn::<f32>([ROWS, COLUMNS])),
            ("sum of uniform", |s| s.rand::<f32>([ROWS, COLUMNS]).sum(..)),
            ("take", |s| matrix(s).flatten().take(&s.randi::<u32>(0..4000, [50, 60]))),
            ("take from little", |s| s.arange(0.0f32, 100.0, 1.0).take(&s.randi::<u32>(0..100, [50, 60]))),
            ("take rows", |s| matrix(s).take_dim(0, &s.randi::<u32>(0..60, [1, 90]))),
        ],
        2e-4,
    );
}

#[test]
fn scans_sorts_and_scatters_of_segmented_arrays_are_right_or_refused_in_words() {
    let cases: [Case; 6] = [
        ("cumsum", |s| matrix(s).cumsum(0)),
        ("cumsum over columns", |s| matrix(s).cumsum(1)),
        ("cummax of all", |s| matrix(s).flatten().cummax(0)),
        ("sort", |s| matrix(s).sort(0).0),
        ("sort of all", |s| matrix(s).flatten().sort(0).0),
        ("scatter", |s| matrix(s).flatten().assign_at(&s.arange(0u32, 300, 1).t(), 5.0)),
    ];
    let Some(rt) = gpu(segmented) else { return };
    let host = common::host();
    for (what, case) in cases {
        let expected = gathered(&host, case).unwrap_or_else(|e| panic!("{what} on the host: {e}")).to_f64();
        match gathered(&rt, case) {
            Ok(got) => {
                let close = |(g, e): (&f64, &f64)| (g - e).abs() <= 1e-5 * e.abs().max(1.0);
                assert!(got.to_f64().iter().zip(&expected).all(close), "{what}");
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unsupported, "{what}: {error:?}");
                assert!(error.op().is_some() && error.location().is_some(), "{what}: {error}");
            }
        }
    }
}

#[test]
fn a_kernel_that_would_bind_too_many_segments_is_split_or_runs_on_the_host() {
    // An array has 17 segments. Two arrays that are read at places other than the element's own need more than 28
    // bindings.
    let injection = || Injection { segment_shift: Some(8), bindings_max: Some(28), ..Default::default() };
    let tiny = |b: RuntimeBuilder| b.injection(injection());
    let Some(rt) = gpu(tiny) else { return };
    let host = common::host();
    let split: [Case; 3] = [
        ("flips", |s| matrix(s).flip(0) + matrix(s).flip(1)),
        ("transposes", |s| matrix(s).slice((.., 0..60)) + matrix(s).slice((.., 0..60)).t()),
        ("sum of all", |s| matrix(s).sum(..)),
    ];
    for (what, case) in split {
        let got = gathered(&rt, case).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(got.to_f64(), gathered(&host, case).unwrap().to_f64(), "{what}");
    }
    assert!(rt.stats().elsewhere.is_empty(), "{}", rt.stats());
    // A product needs all segments of both operands at once, so it runs on the host. The ops after it run on the GPU
    // again.
    let product: fn(&Session) -> Array = |s| matrix(s).matmul(&matrix(s).t());
    let (got, stats) = common::counted(&rt, || gathered(&rt, product).unwrap_or_else(|e| panic!("{e}")));
    assert_eq!(got.to_f64(), gathered(&host, product).unwrap().to_f64());
    let reason = "its arrays lie in more pieces of memory than a kernel of this device binds";
    assert!(stats.elsewhere.get(reason).is_some_and(|ops| *ops > 0) && stats.host_kernels > 0, "{stats}");
    let s = rt.session("after").open();
    let y = product(&s);
    wait(y.eval()).unwrap();
    let (sum, stats) = common::counted(&rt, || wait((&y * 2.0).sum(..).item::<f32>()).unwrap());
    assert!(sum.is_finite() && stats.dispatches > 0 && stats.elsewhere.is_empty(), "{stats}");
    let plan = wait(product(&s).explain()).unwrap();
    assert!(plan.contains("on the host instead of") && plan.contains("pieces of memory"), "{plan}");
}

#[test]
fn sorts_of_arrays_in_pieces_run_on_the_gpu() {
    // Lines that are padded, that lie in two segments, and that are sorted by digits with scratch in many segments.
    let Some(rt) = gpu(segmented) else { return };
    for (rows, columns) in [(5, 180), (30, 100), (1500, 2)] {
        let s = rt.session("pieces").open();
        let data: Vec<f32> = (0..rows * columns).map(|i| ((i * 7919) % 1009) as f32).collect();
        let mut expected = data.clone();
        expected.chunks_mut(rows).for_each(|line| line.sort_by(f32::total_cmp));
        let x = s.from_vec(data, [rows, columns]).unwrap();
        let (sorted, stats) = common::counted(&rt, || wait(x.sort(0).0.gather::<f32>()).unwrap());
        assert_eq!(sorted.into_vec(), expected, "{rows}x{columns}");
        assert!(stats.elsewhere.is_empty(), "{rows}x{columns}: {stats}");
    }
}

#[test]
fn what_no_memory_holds_is_computed_as_often_as_it_is_read() {
    // Intermediate values of 40 MB with a budget of 8 MiB, or a quarter of both.
    let (rows, budget) = rounds((250_000, 2 << 20), (1_000_000, 8 << 20));
    let rt = Runtime::builder().device("host").host_budget(budget).start_blocking().unwrap();
    let s = rt.session("large").seed(3).open();
    let x = s.rand::<f32>([rows, 10]) * 2.0;
    let mean = || f64::from(wait(x.mean(..).item::<f32>()).unwrap());
    let first = mean();
    assert!((first - 1.0).abs() < 0.01);
    for column in 0..10 {
        wait(x.slice((0..3, column)).gather::<f32>()).unwrap();
        assert_eq!(mean(), first);
    }
    assert!(rt.stats().bytes_resident_peak <= budget);
}

#[test]
fn segments_change_no_bits() {
    let (Some(small), Some(one)) = (gpu(segmented), gpu(|b| b)) else { return };
    let cases: [Case; 4] = [
        ("elementwise", |s| (matrix(s) * 0.37).exp() / 3.0),
        ("random", |s| s.randn::<f32>([ROWS, COLUMNS])),
        ("sum", |s| (matrix(s) * 0.37).sum(..)),
        ("sum over rows", |s| (matrix(s) * 0.37).sum(0)),
    ];
    for (what, case) in cases {
        let bits = |rt: &Runtime| match gathered(rt, case).unwrap_or_else(|e| panic!("{what}: {e}")) {
            HostAny::F32(values) => values.iter().map(|v| v.to_bits()).collect::<Vec<u32>>(),
            other => panic!("{what}: {other:?}"),
        };
        assert_eq!(bits(&small), bits(&one), "{what}");
    }
}

#[test]
fn segmented_arrays_survive_eviction() {
    let host = common::host();
    let set = |b: RuntimeBuilder| {
        let injection = Injection { segment_shift: Some(16), ..Default::default() };
        b.injection(injection).device_budget(8 * MIB)
    };
    let Some(rt) = gpu(set) else { return };
    let run = |rt: &Runtime| {
        let s = rt.session("both").seed(1).open();
        let arrays: Vec<Array> = (0..12)
            .map(|i| {
                let array = s.arange(0.0f32, 400_000.0, 1.0).reshape([1000, 400]) * (i as f64 + 1.0);
                wait(array.eval()).unwrap_or_else(|e| panic!("array {i}: {e}"));
                array
            })
            .collect();
        let mut all = Vec::new();
        for (a, b) in arrays.iter().zip(arrays.iter().rev()) {
            all.extend(wait((a + b).max_over(0).gather::<f32>()).unwrap_or_else(|e| panic!("{e}")).into_vec());
        }
        all
    };
    assert_eq!(run(&rt), run(&host));
    assert!(rt.stats().evictions > 0, "{}", rt.stats());
    assert!(rt.stats().bytes_resident_peak <= 8 * MIB, "{}", rt.stats());
}

#[test]
fn an_array_larger_than_a_binding_works() {
    let Some(rt) = gpu(|b| b) else { return };
    let s = rt.session("binding").seed(2).open();
    // The array has 160 MiB, more than a binding of 128 MiB holds.
    let (rows, columns) = (40_960, 1024);
    let mut writer = s.upload::<f32>([rows, columns]).unwrap();
    for (i, v) in writer.as_mut_slice().iter_mut().enumerate() {
        *v = (i % 1000) as f32;
    }
    let x = writer.finish();
    let y = &x * 2.0 + 1.0;
    let (last, corner, high, all) = wait(async {
        futures::try_join!(
            y.slice((rows as i64 - 3.., columns as i64 - 1)).gather::<f32>(),
            y.t().slice((1000..1003, 40_000)).gather::<f32>(),
            y.max_over(..).item::<f32>(),
            y.gather_view::<f32>(),
        )
    })
    .unwrap_or_else(|e| panic!("{e}"));
    let at = |row: usize, column: usize| ((row + rows * column) % 1000) as f32 * 2.0 + 1.0;
    let n = columns - 1;
    assert_eq!(last.as_slice(), [at(rows - 3, n), at(rows - 2, n), at(rows - 1, n)]);
    assert_eq!(corner.as_slice(), [at(40_000, 1000), at(40_000, 1001), at(40_000, 1002)]);
    assert_eq!(high, 1999.0);
    assert!((0..rows * columns).step_by(99_991).all(|i| all[i] == at(i % rows, i / rows)));
    assert_eq!(all.len(), rows * columns);
}

#[test]
fn an_array_larger_than_the_whole_budget_streams_through_it() {
    let Some(rt) = gpu(|b| b.device_budget(8 * MIB)) else { return };
    let s = rt.session("stream").seed(4).open();
    // 32 MiB are uploaded, and 32 MiB computed.
    let n = 8 << 20;
    let x = s.from_vec((0..n).map(|i| (i % 1000) as f32).collect(), [n, 1]).unwrap();
    let y = &x * 2.0 + 1.0;
    let (all, sum) = wait(async { futures::try_join!(y.gather::<f32>(), x.max_over(..).item::<f32>()) })
        .unwrap_or_else(|e| panic!("{e}"));
    assert!(all.iter().enumerate().all(|(i, &v)| v == (i % 1000) as f32 * 2.0 + 1.0));
    assert_eq!(sum, 999.0);
    assert!(rt.stats().bytes_resident_peak <= 8 * MIB, "{}", rt.stats());
}

#[test]
fn when_neither_the_device_nor_the_host_can_hold_a_value_it_is_refused_by_name() {
    let Some(rt) = gpu(|b| b.device_budget(8 * MIB).host_budget(8 * MIB)) else { return };
    let s = rt.session("full").open();
    let mut kept: Vec<Array> = Vec::new();
    let mut refused = 0;
    for i in 0..24 {
        let array = s.arange(0.0f32, 262_144.0, 1.0) * (i as f64 + 1.0);
        match wait(array.eval()) {
            Ok(()) => kept.push(array),
            Err(error) => {
                assert_eq!((error.kind(), error.op()), (ErrorKind::OutOfMemory, Some("mul")), "{error}");
                assert!(error.location().is_some() && error.device().is_some(), "{error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 0 && kept.len() >= 8, "{} kept, {refused} refused", kept.len());
    // The kept arrays are still right, and dropping them makes room.
    kept.truncate(1);
    assert_eq!(wait(kept[0].slice((0, 10..12)).gather::<f32>()).unwrap().as_slice(), [10.0, 11.0]);
    let again = s.arange(0.0f32, 262_144.0, 1.0) * 3.0;
    wait(again.eval()).unwrap_or_else(|e| panic!("there is room again: {e}"));
}

#[test]
fn segmented_arrays_are_checked_in_every_segment() {
    let Some(rt) = gpu(segmented) else { return };
    let s = rt.session("segments").open();
    let x = matrix(&s);
    let last = (ROWS * COLUMNS - 1) as f64;
    let place = s.arange(0.0f32, (ROWS * COLUMNS) as f32, 1.0).reshape([ROWS, COLUMNS]);
    let sum = wait(place.sum(..).item::<f32>()).unwrap();
    for bad in [None, Some(0.0), Some(1500.0), Some(last)] {
        let holds = bad.map_or(place.ge(0.0), |bad| place.ne_to(bad));
        let y = (&x * 2.0).ensure(&holds, "no");
        let columns = (&x * 2.0).ensure(&holds.all(0), "no");
        let part = y.slice((3..20, 2..30)).t();
        for (what, array) in
            [("map", &y), ("sum", &y.sum(..)), ("sums", &y.sum(1)), ("columns", &columns), ("part", &part)]
        {
            let error = wait(array.gather_any()).err().map(|e| e.kind());
            assert_eq!(error, bad.map(|_| ErrorKind::Domain), "{what}, {bad:?}");
        }
    }
    assert_eq!(wait(place.sum(..).item::<f32>()).unwrap(), sum);
    assert!(rt.stats().elsewhere.is_empty(), "{}", rt.stats());
}

/// Records the sums of `count` arrays of 4 MiB each, and drops the arrays, so that only the sums need their data. Calls
/// `after` with each sum, which may demand it and cancel that. Then gathers all sums.
fn sums_of_much(rt: &Runtime, count: usize, begun: &AtomicUsize, after: impl Fn(&Session, &Array)) {
    let s = rt.session("sums").open();
    let sums = (0..count).map(|i| {
        begun.fetch_add(1, Ordering::SeqCst);
        let sum = s.from_vec(vec![i as f32; 1 << 20], [1 << 20, 1]).unwrap().sum(..);
        after(&s, &sum);
        sum
    });
    for (i, sum) in sums.collect::<Vec<_>>().into_iter().enumerate() {
        assert_eq!(wait(sum.item::<f32>()).unwrap_or_else(|e| panic!("{i}: {e}")), (i << 20) as f32);
    }
}

/// While the device does nothing, a recording thread is held before the session's pending values take much more memory
/// than it may keep.
#[test]
fn who_leaves_much_behind_that_is_lazy_or_given_up_is_held() {
    type Leaves = fn(&Session, &Array);
    let cases: [(&str, Leaves); 3] = [
        ("given up", |_, sum| drop(poll_once(&mut sum.gather::<f32>()))),
        ("lazy", |s, _| drop(poll_once(&mut s.rand::<f32>([1000, 1]).sum(..).eval()))),
        ("cut", |s, _| s.flush()),
    ];
    for (what, leaves) in cases {
        let hold = Arc::new(Hold::default());
        let injection = Injection { hold_first_batch: Some(hold.clone()), ..Injection::default() };
        let builder = Runtime::builder().device("host").tape_bytes_max(8 * MIB).hold_recording().injection(injection);
        let rt = builder.start_blocking().unwrap();
        let begun = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| sums_of_much(&rt, 40, &begun, leaves));
            // Waits until `begun` stops growing, which means that the recording thread is held. If the thread is only
            // slow, the test checks less.
            let mut seen = (0, 0);
            while seen.1 < 20 {
                std::thread::sleep(Duration::from_millis(20));
                let now = begun.load(Ordering::SeqCst);
                seen = if now == seen.0 { (now, seen.1 + 1) } else { (now, 0) };
            }
            hold.release();
            assert!((2..=16).contains(&seen.0), "{what}: {} of 40", seen.0);
        });
    }
}

/// The pending values of a session must not take the memory that another session needs.
#[test]
fn what_is_left_lazy_or_given_up_leaves_the_hosts_budget_to_others() {
    for gives_up in [false, true] {
        let builder = Runtime::builder().device("host").fold_elements_max(0).host_budget(64 * MIB);
        let rt = builder.start_blocking().unwrap();
        let (s, other) = (rt.session("leaves much").open(), rt.session("needs much").open());
        let mut sums = Vec::new();
        for i in 0..60 {
            let x = s.full(f64::from(i), [1 << 20, 1]);
            wait(x.eval()).unwrap_or_else(|e| panic!("{i}: {e}"));
            sums.push(x.sum(..));
            drop(x);
            match gives_up {
                true => drop(poll_once(&mut sums[sums.len() - 1].gather::<f64>())),
                false => s.flush(),
            }
            if i % 10 == 9 {
                let most = other.rand::<f32>([4 << 20, 1]);
                wait(most.eval()).unwrap_or_else(|e| panic!("beside {i}: {e}"));
            }
        }
        for (i, sum) in sums.iter().enumerate() {
            assert_eq!(wait(sum.item::<f64>()).unwrap_or_else(|e| panic!("{i}: {e}")), (i << 20) as f64);
        }
    }
}
