//! Runs every class of op under a budget that is smaller than its operands. It completes, with the bits of a run
//! without a budget.

mod common;
use common::{gpu, wait};
use futures::future::join_all;
use tidemill::testing::rounds;
use tidemill::{Array, ErrorKind, HostAny, Runtime, RuntimeBuilder, Session, Stats, cat, select, step};

/// The budget of a device, in bytes.
fn budget() -> u64 {
    rounds(1 << 20, 4 << 20)
}

/// Columns of the operands.
const COLUMNS: usize = 64;

/// An operand that is computed on the device.
fn made(s: &Session, shape: [usize; 2]) -> Array {
    let array = s.rand::<f32>(shape);
    wait(array.eval()).unwrap_or_else(|e| panic!("{shape:?}: {e}"));
    array
}

/// An operand that the program uploads.
fn brought(s: &Session, shape: [usize; 2]) -> Array {
    let n = shape[0] * shape[1];
    s.from_vec((0..n).map(|i| ((i * 7919) % 1009) as f32 - 500.0).collect(), shape).unwrap()
}

/// A class of ops: its name, and a function from the number of rows of the operands to the results.
type Case = (&'static str, fn(&Session, usize) -> Vec<Array>);

/// The number of rows of f32 that take this many hundredths of the budget.
fn rows(hundredths: u64) -> usize {
    (budget() * hundredths / 100) as usize / 4 / COLUMNS / 8 * 8
}

/// Runs a case, and demands all of its outputs together. Returns their bytes, and the difference of the counters.
fn run(rt: &Runtime, case: &Case, rows: usize) -> Result<(Vec<Vec<u8>>, Stats), tidemill::Error> {
    let before = rt.stats();
    let s = rt.session("budget").seed(5).open();
    let outputs = (case.1)(&s, rows);
    let gathers: Vec<_> = outputs.iter().map(Array::gather_any).collect();
    drop(outputs);
    let mut all = Vec::new();
    for result in wait(join_all(gathers)) {
        all.push(bytes(&result?).to_vec());
    }
    Ok((all, rt.stats().since(&before)))
}

const CASES: &[Case] = &[
    ("three operands", |s, n| {
        let (a, b, c) = (made(s, [n, COLUMNS]), brought(s, [n, COLUMNS]), made(s, [n, COLUMNS]));
        vec![(&a - &b * &c) * 0.5]
    }),
    ("eight operands", |s, n| {
        let all: Vec<Array> = (0..8).map(|_| made(s, [n, COLUMNS])).collect();
        vec![all.iter().skip(1).fold(&all[0] * 1.5, |sum, x| sum + x)]
    }),
    ("doubles", |s, n| {
        let all: Vec<Array> = (0..9).map(|i| made(s, [n / 2, COLUMNS]).cast::<f64>() * (i as f64)).collect();
        wait(join_all(all.iter().map(Array::eval)));
        vec![all.iter().skip(1).fold(&all[0] * 1.5, |sum, x| sum * 0.5 + x)]
    }),
    ("broadcasts", |s, n| {
        vec![made(s, [n, COLUMNS]) * made(s, [n, 1]) + made(s, [1, COLUMNS]), made(s, [n * 8, 1]) - made(s, [1, 8])]
    }),
    ("slices", |s, n| {
        let d = made(s, [n, COLUMNS]) - made(s, [n, COLUMNS]);
        vec![d.slice((0..5, ..)), d.slice((step(.., -3), 3..9)), d.slice((n as i64 / 2.., ..)) * 2.0]
    }),
    ("transposes", |s, n| {
        let (a, b) = (made(s, [n, COLUMNS]), brought(s, [n, COLUMNS]));
        vec![a.t() + b.t(), (&a - &b).t()]
    }),
    ("permuted", |s, n| vec![made(s, [n, COLUMNS]).reshape([n, 8, 8]).permute(&[2, 0, 1]) + 1.0]),
    ("flips", |s, n| {
        let a = made(s, [n, COLUMNS]);
        vec![a.flip(0) + a.flip(1) - brought(s, [n, COLUMNS])]
    }),
    ("circshift", |s, n| {
        let a = made(s, [n, COLUMNS]);
        vec![&a - a.circshift(&[5, -9])]
    }),
    ("repmat", |s, n| vec![made(s, [n / 4, COLUMNS]).repmat(&[2, 2]) + 1.0]),
    ("cat", |s, n| {
        let (a, b) = (made(s, [n, COLUMNS]), made(s, [n, COLUMNS]));
        vec![cat(0, &[&a, &(&b * 2.0)]).unwrap(), cat(1, &[&a, &b, &a]).unwrap() + 1.0]
    }),
    ("triangles", |s, n| vec![made(s, [n, COLUMNS]).tril(0) + made(s, [n, COLUMNS]).triu(3)]),
    ("select", |s, n| {
        let a = made(s, [n, COLUMNS]);
        vec![select(&a.gt(0.5), brought(s, [n, COLUMNS]), &a * 2.0)]
    }),
    ("upload", |s, n| {
        let mut writer = s.upload::<f32>([n, COLUMNS]).unwrap();
        writer.as_mut_slice().iter_mut().enumerate().for_each(|(i, x)| *x = (i % 977) as f32);
        let x = writer.finish();
        vec![&x + 1.0, x]
    }),
    ("several outputs", |s, n| {
        let a = made(s, [n, COLUMNS]) * 2.0;
        (0..9).map(|i| &a + i as f64).collect()
    }),
    ("random", |s, n| vec![s.randn::<f32>([n, COLUMNS]), s.randi::<i32>(-5..1000, [n, COLUMNS])]),
    ("full reductions", |s, n| {
        let d = made(s, [n, COLUMNS]) - made(s, [n, COLUMNS]);
        vec![d.sum(..), d.std(..), d.max_over(..), d.norm(..), d.t().sum(..)]
    }),
    ("random and reduced", |s, n| {
        let x = s.randn::<f32>([n, COLUMNS]) + made(s, [n, COLUMNS]);
        vec![x.mean(..), x.argmax(..), s.rand::<f32>([n, COLUMNS]).sum(0), s.rand::<f32>([n, COLUMNS]).sum(1)]
    }),
    ("least and greatest", |s, n| {
        let d = made(s, [n, COLUMNS]) - made(s, [n, COLUMNS]);
        vec![d.max_over(0), d.min_over(1), d.argmax(0), d.argmin(1), d.gt(0.0).count_nonzero(0), d.gt(0.99).any(1)]
    }),
    ("sums of columns", |s, n| {
        let d = made(s, [n, COLUMNS]) - made(s, [n, COLUMNS]);
        vec![d.sum(0), d.var(0)]
    }),
    ("sums of rows", |s, n| {
        let d = made(s, [n, COLUMNS]) - made(s, [n, COLUMNS]);
        vec![d.sum(1), d.std(1)]
    }),
    ("sums of the middle", |s, n| vec![made(s, [n, COLUMNS]).reshape([n / 8, 8, COLUMNS]).sum(1)]),
    ("dot", |s, n| {
        let (a, b) = (made(s, [n, COLUMNS]), made(s, [n, COLUMNS]));
        vec![a.dot(&b, 0), a.dot(&b, ..)]
    }),
    ("normalised", |s, n| {
        let a = made(s, [n, COLUMNS]) + brought(s, [n, COLUMNS]);
        vec![(&a - a.mean(0)) / a.std(0)]
    }),
    ("scans", |s, n| {
        let a = made(s, [n, COLUMNS]);
        vec![a.cumsum(0), a.cummax(1), (&a - made(s, [n, COLUMNS])).cumsum(1)]
    }),
    ("sorted", |s, n| {
        let (a, order) = made(s, [n, COLUMNS]).sort(0);
        vec![a, order]
    }),
    ("taken", |s, n| {
        let a = made(s, [n, COLUMNS]).flatten();
        let at = s.randi::<u32>(0..(n * COLUMNS) as i64, [n, COLUMNS]);
        vec![a.take(&at), made(s, [n, COLUMNS]).take_dim(0, &s.randi::<u32>(0..n as i64, [1, n]))]
    }),
    ("assigned slices", |s, n| {
        let (a, b) = (made(s, [n, COLUMNS]), made(s, [n, COLUMNS / 2]));
        vec![a.assign((.., 0..32), &b), a.assign((step(.., 2), 5), 9.0)]
    }),
    ("scattered", |s, n| {
        let at = s.randi::<u32>(0..(n * COLUMNS) as i64, [n, 1]);
        vec![made(s, [n, COLUMNS]).flatten().assign_at(&at, made(s, [n, 1]))]
    }),
    ("products", |s, n| {
        vec![made(s, [n, COLUMNS]).t().matmul(&made(s, [n, COLUMNS])), made(s, [n, 8]).matmul(&made(s, [8, COLUMNS]))]
    }),
    ("checked", |s, n| {
        let a = made(s, [n, COLUMNS]);
        vec![a.ensure(&a.lt(2.0), "no").sum(0), a.ensure(&a.lt(2.0), "no") + made(s, [n, COLUMNS])]
    }),
];

/// The bytes of a gathered array's elements. They can be compared in one call, not element by element.
fn bytes(values: &HostAny) -> &[u8] {
    match values {
        HostAny::F32(values) => bytemuck::cast_slice(values.as_slice()),
        HostAny::F64(values) => bytemuck::cast_slice(values.as_slice()),
        HostAny::Bool(values) => bytemuck::cast_slice(values.as_slice()),
        HostAny::U8(values) => values.as_slice(),
        HostAny::I32(values) => bytemuck::cast_slice(values.as_slice()),
        HostAny::U32(values) => bytemuck::cast_slice(values.as_slice()),
        HostAny::I64(values) => bytemuck::cast_slice(values.as_slice()),
        other => panic!("{} has no bytes here", other.dtype()),
    }
}

#[test]
fn whatever_does_not_fit_the_budget_completes_with_the_same_bits() {
    let Some(wide) = gpu(|b| b) else { return };
    let mut wrong = Vec::new();
    let mut beyond = 0;
    for case in CASES {
        for &hundredths in rounds(&[95, 300][..], &[30, 60, 95, 150, 300]) {
            let tight = gpu(|b| b.device_budget(budget())).expect("it was there before");
            let n = rows(hundredths);
            let (expected, free) = run(&wide, case, n).unwrap_or_else(|e| panic!("{} without a budget: {e}", case.0));
            let (got, stats) = match run(&tight, case, n) {
                Ok(got) => got,
                Err(error) => {
                    wrong.push(format!("{} at {hundredths} %: {error}", case.0));
                    continue;
                }
            };
            let differ: Vec<usize> = (0..expected.len()).filter(|&i| got[i] != expected[i]).collect();
            if !differ.is_empty() || stats.elsewhere != free.elsewhere || stats.kernels != free.kernels {
                let Stats { kernels, elsewhere, .. } = &stats;
                wrong.push(format!(
                    "{} at {hundredths} %: outputs {differ:?}, {kernels} kernels (of {}), {elsewhere:?}",
                    case.0, free.kernels
                ));
            }
            // More memory than the budget is used only for a step that needs more by itself, and is given back.
            if stats.bytes_resident_peak > budget() && stats.beyond_budget == 0 {
                wrong.push(format!("{} at {hundredths} %: {} bytes", case.0, stats.bytes_resident_peak));
            }
            beyond += stats.beyond_budget;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(beyond > 0, "no step needed more than the budget");
}

#[test]
fn what_passes_a_budget_in_segments_stays_within_it() {
    let Some(rt) = gpu(|b| b.device_budget(budget())) else { return };
    let s = rt.session("within").seed(3).open();
    let n = rows(300);
    let all: Vec<Array> = (0..9).map(|i| made(&s, [n, COLUMNS]) * (i as f64)).collect();
    wait(join_all(all.iter().map(Array::eval)));
    let sum = all.iter().skip(1).fold(&all[0] * 1.5, |sum, x| sum + x);
    wait(sum.sum(..).gather::<f32>()).unwrap();
    let stats = rt.stats();
    assert_eq!(stats.beyond_budget, 0);
    assert!(stats.evictions > 0 && stats.bytes_resident_peak <= budget(), "{stats:?}");
}

/// Two gathers are joined, and are therefore in one region. One lacks memory and fails; the other does not.
#[test]
fn what_does_not_fit_fails_alone_and_what_it_read_is_still_there() {
    let small = |b: RuntimeBuilder| b.device_budget(1 << 20).host_budget(1 << 20).fold_elements_max(0);
    let host = small(Runtime::builder().device("host")).start_blocking().unwrap();
    for rt in [Some(host), gpu(small)].into_iter().flatten() {
        let s = rt.session("joined").open();
        let y = s.from_vec(vec![1.0f32; 400_000], [400, 1000]).unwrap();
        let modest = (y.slice((0..3, 0..3)) * 2.0).sum(..);
        let greedy = y.repmat(&[1, 3]).sort(0).0;
        let (good, bad) = wait(futures::future::join(modest.item::<f32>(), greedy.gather::<f32>()));
        assert_eq!(good.unwrap(), 18.0);
        let error = bad.unwrap_err();
        assert_eq!((error.kind(), error.location().map(|l| l.file())), (ErrorKind::OutOfMemory, Some(file!())));
        assert_eq!(wait(modest.item::<f32>()).unwrap(), 18.0);
        assert_eq!(wait((y.slice((0..2, 0)) + 1.0).gather::<f32>()).unwrap().as_slice(), [2.0, 2.0]);
    }
}

/// `MemTotal`, in bytes.
fn machine_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kilobytes = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.split_whitespace().next()?;
    kilobytes.parse::<u64>().ok().map(|k| k << 10)
}

#[test]
fn the_host_and_a_gpu_in_its_memory_do_not_promise_more_than_there_is() {
    let (Some(rt), Some(machine)) = (gpu(|b| b), machine_bytes()) else { return };
    let [host, gpu] = rt.devices() else { panic!("{:?}", rt.devices()) };
    if gpu.host_share_bytes > 0 {
        assert!(host.budget_bytes + gpu.budget_bytes < machine, "{host:?}, {gpu:?}");
    }
    assert!(gpu.host_share_bytes > 0 || !gpu.software, "a software adapter's memory is the host's");
    let asked = 1 << 30;
    let Some(rt) = common::gpu(|b| b.host_budget(asked)) else { return };
    assert_eq!(rt.devices()[0].budget_bytes, asked, "the budget that the program set is kept");
}
