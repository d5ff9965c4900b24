//! Tests scripts as a client of the runtime: what a run may hold, copy and cost there, and how accurate its sums are.

#[path = "../../../tests/common/mod.rs"]
mod common;

use common::{counted, runtimes, session, unfolded, wait};
use parking_lot::Mutex;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};
use tidemill::{Array, Promotion, Runtime, Session, Stats};
use tidemill_script::{Script, env::Options, output::Captured};

/// A waker that calls a test's function on the thread that wakes it.
struct Runs<F: Fn() + Send + Sync + 'static>(F);

impl<F: Fn() + Send + Sync + 'static> Wake for Runs<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

fn slow(s: &Session) -> Array {
    s.rand::<f32>([1000, 50]).sort(0).0
}

#[test]
fn a_script_that_records_more_than_the_ring_takes_waits_without_its_thread() {
    for (device, rt) in unfolded(|b| b.tape_nodes_max(16)) {
        // This waker blocks the ring's thread.
        let (enter, entered) = std::sync::mpsc::channel();
        let (release, released) = std::sync::mpsc::channel();
        let released = std::sync::Mutex::new(released);
        let wake = move || {
            let _ = enter.send(());
            let _ = released.lock().unwrap().recv();
        };
        let waker = Waker::from(Arc::new(Runs(wake)));
        let s = rt.session("asks").open();
        let asked = loop {
            let mut explain = Box::pin(slow(&s).explain());
            if explain.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
                break explain;
            }
        };
        entered.recv_timeout(Duration::from_secs(60)).unwrap();
        // A test that blocked here would block for ever. This makes it fail and end.
        let watch = release.clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs(120));
            let _ = watch.send(());
        });
        let before = rt.stats();
        let began = Instant::now();
        let s = rt.session("script").open();
        let script =
            Script::parse("y = rand (200); for k = 1:1000, y = y * 0.5 + 1; end, printf (\"%d\", max (y(:)));")
                .unwrap();
        let mut run = Box::pin(script.run(&s));
        for _ in 0..1000 {
            let poll = run.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(poll.is_pending(), "{device}: it ended while the ring took nothing");
        }
        let recorded = rt.stats().since(&before).ops_recorded;
        assert!((1..1000).contains(&recorded), "{device}: {recorded} ops were recorded where there is room for 128");
        assert!(began.elapsed() < Duration::from_secs(100), "{device}: its thread was held");
        release.send(()).unwrap();
        let workspace = wait(run).unwrap();
        assert_eq!(workspace.printed(), "2", "{device}");
        drop(asked);
    }
}

#[test]
fn a_script_keeps_matlabs_rules_whatever_the_runtime_says() {
    let rt = Runtime::builder().device("host").promotion(Promotion::Strict).start_blocking().unwrap();
    let s = session(&rt);
    let text = "x = ones (300, 300, 'single') + ones (300, 300); y = ones (300, 300, 'int32') * 3 * 0.5;
                printf ('%s %g %s %g\\n', class (x), x(1), class (y), y(1));";
    let script = Script::parse(text).unwrap();
    let ran = wait(script.run(&s)).unwrap();
    assert_eq!(ran.printed(), "single 2 int32 2\n");
    rt.shutdown_blocking().unwrap();
}

/// Bodies of scripts over an array of 200 x 200, in `T` iterations.
const SCRIPTS: [(&str, &str); 12] = [
    ("swap", "for k = 1:T, t = A(k,:); A(k,:) = A(200-k,:); A(200-k,:) = t; end, printf ('%.5g\\n', sum (A(3,:)))"),
    ("swap of pairs", "for k = 1:T, A([k 200-k],:) = A([200-k k],:); end, printf ('%.5g\\n', sum (A(3,:)))"),
    ("reversal", "for k = 1:T, A(:,k) = A(end:-1:1,k); end, printf ('%.5g\\n', sum (A(3,:)))"),
    ("by number", "for k = 1:T, A(k+9:k+600) = A(k:k+591) + 1; end, printf ('%.5g\\n', sum (A(20,:)))"),
    ("shift", "for k = 1:T, A(2:200,:) = A(1:199,:); end, printf ('%.5g\\n', sum (A(T,:)))"),
    ("scaling", "for k = 1:T, A(k,:) = A(k,:) / A(k,k); end, printf ('%.5g\\n', sum (A(3,:)))"),
    (
        "elimination",
        "for j = 1:4, for i = j+1:j+T/4, A(i,:) = A(i,:) - A(i,j) / A(j,j) * A(j,:); end, end, \
         printf ('%.5g\\n', sum (abs (A(5,:))))",
    ),
    // The written values depend on values that were just read.
    (
        "what a mask names",
        "for k = 1:T, i = (k-1)*600 + (1:600); m = A(i) > 700; A(i(m)) = 0; end, printf ('%.5g\\n', sum (A(3,:)))",
    ),
    ("a masked column", "for k = 1:T, A(A(:,k) > 900, k) = 0; end, printf ('%.5g\\n', sum (A(3,:)))"),
    ("a branch", "for k = 1:T, v = A(k,k); if v > 3, A(k,k) = v * 2; end, end, printf ('%.5g\\n', sum (A(3,:)))"),
    (
        "a branch on a column",
        "for k = 1:T, m = max (A(:,k)); if m > 3, A(:,k) = A(:,k) / m; end, end, printf ('%.5g\\n', sum (A(3,:)))",
    ),
    (
        "what is found",
        "for k = 1:T, i = find (A(:,k) > 900); A(200*(k-1) + i) = k; end, printf ('%.5g\\n', sum (A(3,:)))",
    ),
];

/// Runs a script whose arrays of more than this many elements are recorded, and returns its output and the statistics.
fn scripted(rt: &Runtime, text: &str, host_elements_max: usize) -> (String, Stats) {
    let captured = Arc::new(Mutex::new(Captured::default()));
    let options = Options { host_elements_max, ..Options::default() };
    let script = Script::parse(text).unwrap();
    let (ran, did) = counted(rt, || wait(script.run_with(&session(rt), Box::new(captured.clone()), options)));
    ran.unwrap_or_else(|error| panic!("{text}: {error}"));
    let out = String::from_utf8_lossy(&captured.lock().out).into_owned();
    (out, did)
}

#[test]
fn scripts_that_loop_over_slices_of_a_large_array_do_not_copy_it_in_every_trip() {
    for (device, rt) in unfolded(|b| b) {
        for (name, body) in SCRIPTS {
            let text = |trips: usize| {
                let start =
                    "A = single (reshape (mod ((1:40000) * 7919, 1009), 200, 200)) + 600 * eye (200, 'single');";
                format!("T = {trips}; {start} {body}")
            };
            // Arrays that begin on the runtime may be gathered when small parts of them are read; or all arrays are
            // recorded.
            for recorded in [false, true] {
                let what = format!("{name} on {device}, all recorded: {recorded}");
                let copied = |trips: usize| {
                    let (out, did) = scripted(&rt, &text(trips), if recorded { 0 } else { 4096 });
                    assert_eq!(out, scripted(&rt, &text(trips), usize::MAX).0, "{what}");
                    assert!(!recorded || did.ops_recorded > 2 * trips as u64, "{what}: {}", did.ops_recorded);
                    did.bytes_copied
                };
                let (few, many) = (copied(8), copied(24));
                let array = 200 * 200 * 4;
                assert!(few <= array + array / 8 && many == few, "{what}: {few}, then {many} bytes copied");
            }
        }
    }
}

/// Checks of scripts' functions on singles and doubles: small host arrays, and long arrays, which are on the runtime.
const SUMS: &str = r#"
function within (name, got, expected, bound, size)
  off = abs (double (got(:)) - expected(:));
  if ! all (off <= bound .* size(:)), error ("%s: %g of what is allowed", name, max (off ./ (bound .* size(:)))); end
end
function check (x, dim, epsilon, name)
  d = double (x); n = size (x, dim);
  bound = (4 + log2 (n)) * epsilon;
  sizes = sum (abs (d), dim);
  within (["sum " name], sum (x, dim), sum (d, dim), bound + eps, sizes);
  within (["mean " name], mean (x, dim), sum (d, dim) / n, bound + eps, sizes / n);
  within (["sumsq " name], sumsq (x, dim), sum (d .^ 2, dim), bound + eps, sum (d .^ 2, dim));
  within (["dot " name], dot (x, x, dim), sum (d .^ 2, dim), bound + eps, sum (d .^ 2, dim));
  within (["rms " name], rms (x, dim), sqrt (sum (d .^ 2, dim) / n), bound + eps, sqrt (sum (d .^ 2, dim) / n));
  within (["vecnorm " name], vecnorm (x, 2, dim), sqrt (sum (d .^ 2, dim)), bound + eps, sqrt (sum (d .^ 2, dim)));
  c = cumsum (x, dim);
  within (["cumsum " name], c, cumsum (d, dim), bound + eps, cumsum (abs (d), dim));
  t = var (d - d(1), 0, dim);
  within (["var " name], var (x, 0, dim), t, 8 * bound, t);
  within (["std " name], std (x, 0, dim), sqrt (t), 8 * bound, sqrt (t));
end
for n = [2 17 100 1000 4096 4097 5000 100000]
  k = (0:n-1)';
  lines = {0.1 * ones(n, 1), (1 ./ (1 + k)), ((-1) .^ k .* (1 + mod (k, 13) / 7)), (28700 + mod (k * 7919, 10)), ...
           (1e6 + mod (k, 10)), (4e6 + mod (k * 7919, 10)), [1e5; mod(k(2:end), 17) / 3]};
  for i = 1:numel (lines)
    name = sprintf ("%d of line %d", n, i);
    x = single (lines{i});
    check (x, 1, eps ("single"), name);
    check (x.', 2, eps ("single"), name);
    check ([x, 2 * x, x], 1, eps ("single"), name);
    check (lines{i}, 1, eps, name);
  end
end
s = single (1e6 + mod (1:1000, 10)); t = var (double (s));
assert (abs (var (s) / t - 1) < 1e-6);
assert (abs (cov (s) / t - 1) < 1e-6);
assert (abs (moment (s, 2) / (t * 0.999) - 1) < 1e-6);
assert (abs (std (zscore (s)) - 1) < 1e-6 && abs (mean (zscore (s))) < 1e-6);
r = single (1e6 + [mod(1:1000, 10); mod(3 * (1:1000), 7)])'; d = double (r);
assert (max (max (abs (corrcoef (r) - corrcoef (d)))) < 1e-5);
assert (abs (corr (r(:,1), r(:,2)) - corr (d(:,1), d(:,2))) < 1e-5);
assert (abs (kurtosis (s) / kurtosis (double (s)) - 1) < 1e-5);
assert (max (abs (movvar (s, 11) ./ movvar (double (s), 11) - 1)) < 1e-5);
tenths = 0.1 * ones (1e6, 1, "single"); whole = double (single (0.1)) * 1e6;
assert (abs (accumarray (ones (1e6, 1), tenths) / whole - 1) < 1e-6);
assert (abs (trapz (tenths) / (whole * 0.999999) - 1) < 1e-6);
assert (abs (cumtrapz (tenths)(end) / (whole * 0.999999) - 1) < 1e-6);
assert (abs (norm (tenths, 1) / whole - 1) < 1e-6);
c = center (single ([Inf 1 2])); assert (isnan (c(1)) && all (c(2:3) == -Inf));
assert (var (single ([3 3 3])) == 0);
"#;

#[test]
fn sums_and_variances_of_scripts_are_within_their_bounds() {
    for (device, rt) in runtimes().into_iter().skip(1) {
        let out = Arc::new(Mutex::new(Captured::default()));
        let script = Script::parse(SUMS).unwrap();
        let s = session(&rt);
        let ended = wait(script.run_with(&s, Box::new(out.clone()), Options::default()));
        ended.unwrap_or_else(|error| panic!("{device}: {}", error.message));
    }
}
