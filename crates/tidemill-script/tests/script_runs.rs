//! Tests scripts on the runtime: fusion, failures, and many scripts at once.

#[path = "../../../tests/common/mod.rs"]
mod common;

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tidemill::{Runtime, Stats};
use tidemill_script::Script;
use tidemill_script::env::Options;
use tidemill_script::error::ScriptError;
use tidemill_script::output::Captured;
use tidemill_script::value::Value;

fn host() -> Runtime {
    Runtime::builder().device("host").start_blocking().unwrap()
}

fn devices() -> Vec<(&'static str, Runtime)> {
    let mut all = vec![("host", host())];
    all.extend(common::gpu(|b| b).map(|rt| ("gpu", rt)));
    all
}

/// Runs a text on a new session, and returns its output or its error.
fn run(rt: &Runtime, text: &str) -> Result<String, ScriptError> {
    run_with(rt, text, Options::default())
}

fn run_with(rt: &Runtime, text: &str, options: Options) -> Result<String, ScriptError> {
    let session = rt.session("script").seed(3).open();
    let captured = Arc::new(Mutex::new(Captured::default()));
    let script = Script::parse(text)?;
    futures::executor::block_on(script.run_with(&session, Box::new(captured.clone()), options))?;
    let out = String::from_utf8_lossy(&captured.lock().out).into_owned();
    Ok(out)
}

fn error_of(rt: &Runtime, text: &str) -> ScriptError {
    match run(rt, text) {
        Err(error) => error,
        Ok(out) => panic!("no error from {text:?}, which printed {out:?}"),
    }
}

fn program(name: &str, variables: &[(&str, &str)]) -> String {
    let path = format!("{}/tests/script/programs/{name}.m", env!("CARGO_MANIFEST_DIR"));
    let mut text = String::new();
    for (variable, value) in variables {
        text.push_str(&format!("setenv('{variable}', '{value}');\n"));
    }
    text.push_str(&std::fs::read_to_string(path).unwrap());
    text
}

/// Returns the numbers after `key=` in an output.
fn numbers(printed: &str, key: &str) -> Vec<f64> {
    let values = printed.split_whitespace().filter_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    values.map(|v| v.parse().unwrap_or_else(|_| panic!("{key}={v} in {printed}"))).collect()
}

fn near(printed: &str, key: &str, expected: f64, tolerance: f64) {
    let found = numbers(printed, key);
    assert!(!found.is_empty(), "no {key} in {printed}");
    for value in found {
        assert!((value - expected).abs() <= tolerance, "{key}={value}, not {expected} in:\n{printed}");
    }
}

fn during(rt: &Runtime, text: &str) -> (String, Stats) {
    let (out, stats) = common::counted(rt, || run(rt, text).unwrap_or_else(|e| panic!("{e}")));
    (out, stats)
}

#[test]
fn the_shared_programs_print_their_checks_on_every_device() {
    for (device, rt) in devices() {
        let small = [("N", "20000"), ("M", "20000"), ("T", "16"), ("B", "1")];
        near(&during(&rt, &program("chain", &small)).0, "check", 0.1435, 0.02);
        let gbm = during(&rt, &program("gbm", &[("M", "200000"), ("T", "256")])).0;
        near(&gbm, "price", 10.55, 0.2);
        let variant = during(&rt, &program("gbm_variant", &[("M", "20000"), ("T", "256")])).0;
        near(&variant, "mean", 1.047, 0.02);
        near(&during(&rt, &program("tiny", &small)).0, "check", 1_000_000.0, 200.0);
        near(&during(&rt, &program("matmul", &[("N", "128")])).0, "check", 0.25, 0.01);
        near(&during(&rt, &program("ops", &[("N", "128")])).0, "error", 0.0, 1e-3);
        println!("{device} prints its checks");
    }
}

#[test]
fn the_image_program_prints_its_check() {
    near(&during(&host(), &program("image", &[("B", "1")]).replace("1:6", "1:1")).0, "mse", 0.2850, 0.002);
}

#[test]
fn the_steps_of_a_path_simulation_fuse_and_store_no_random_number() {
    for (device, rt) in devices() {
        let text = program("gbm", &[("M", "100000"), ("T", "256")]).replace("1:4", "1:1");
        let (_, stats) = during(&rt, &text);
        assert!(stats.kernels <= 40, "{device}: {} kernels", stats.kernels);
        // Each kernel writes the state once. Storing the random numbers would write as much 256 more times.
        let state = 100_000 * 4;
        assert!(
            stats.bytes_kernel_written <= (stats.kernels + 2) * state,
            "{device}: {} bytes",
            stats.bytes_kernel_written
        );
    }
}

#[test]
fn a_chain_with_named_intermediates_is_one_kernel_and_its_reduction() {
    for (device, rt) in devices() {
        let text = program("chain", &[("N", "100000")]);
        let (_, once) = during(&rt, &text.replace("1:6", "1:1"));
        let (_, twice) = during(&rt, &text.replace("1:6", "1:2"));
        // An iteration has two kernels at most for the scaled input with its sum, and two for the chain with its sum.
        assert!(twice.kernels - once.kernels <= 4, "{device}: {} kernels a turn", twice.kernels - once.kernels);
    }
}

#[test]
fn a_root_of_a_negative_element_is_an_error_that_names_the_function_and_is_seen_by_try() {
    for (device, rt) in devices() {
        let error = error_of(&rt, "x = linspace (-1, 1, 10000);\ny = sqrt (x);\nz = sum (y);\ndisp (z)\n");
        assert!(error.message.contains("sqrt"), "{device}: {}", error.message);
        assert!(error.message.contains("complex"), "{device}: {}", error.message);
        let out = run(&rt, "x = linspace (-1, 1, 10000); ok = 0;\ntry, y = log (x); catch, ok = 1; end, disp (ok)");
        assert_eq!(out.unwrap(), "1\n", "{device}");
        // These leave the try in different ways.
        let x = "x = linspace (-1, 1, 10000); n = 0;\n";
        for (text, printed) in [
            ("for k = 1:2, try, y = sqrt (x); break; catch, y = k; end, end, disp (y)", "2\n"),
            ("for k = 1:2, try, y = sqrt (x); continue; catch, n += k; end, end, disp (n)", "3\n"),
            ("function y = f (x)\n  try, y = sqrt (x); return; catch, y = 7; end\nend\ndisp (f (x))", "7\n"),
            ("while true, try, y = sqrt (1 - abs (x)); break; catch, n = 9; end, end, disp (n)", "0\n"),
        ] {
            assert_eq!(run(&rt, &format!("{x}{text}")).unwrap(), printed, "{device}: {text}");
        }
    }
}

#[test]
fn errors_say_what_and_where() {
    let rt = host();
    let cases = [
        ("x = [1 2 3];\ny = x(5);", "out of bound", 2),
        ("a = 1;\n\nb = undefined_name + 1;", "undefined", 3),
        ("ones (2, 3) * ones (2, 3)", "nonconformant", 1),
        ("[1 2] + [1 2 3]", "nonconformant", 1),
        ("x = zeros (1e6, 1e6);", "memory", 1),
        ("sin ()", "Invalid call", 1),
        ("f = @(x) x;\nf (1, 2)", "too many inputs", 2),
        ("x = {1} + 1;", "binary operator", 1),
        ("error ('my:id', 'value %d', 5)", "value 5", 1),
        ("function [p, q] = f ()\n  p = 1;\nend\n[a, b] = f ();", "'q' undefined near line 1, column 14", 4),
        ("function [p, q] = f ()\n  p = 1;\nend\nx = {};\n[x{1:2}] = f ();", "'q' undefined near line 1, column 14", 5),
        ("function p = f ()\nend\nx = 3 + f ();", "'p' undefined near line 1, column 10", 1),
        ("function f ()\n  print_usage ();\nend\nf ();", "print_usage: 'f' not found", 2),
    ];
    for (text, words, line) in cases {
        let error = error_of(&rt, text);
        assert!(error.message.contains(words), "{text:?}: {}", error.message);
        let place = error.place.unwrap_or_else(|| panic!("{text:?}: no place"));
        assert_eq!(place.source.position(place.span.start).line, line, "{text:?}");
    }
    for text in ["x = (1", "if true", "x = [1 2", "end", "x = 'abc", "\u{0}\u{1}garbage", "function", "@", "1 +* 2"] {
        assert!(Script::parse(text).is_err(), "{text:?} parses");
    }
}

/// Tests MATLAB's behaviour. Octave refuses it, so no recorded case tests it.
#[test]
fn cosines_of_half_turns_and_logarithms_of_sums_are_exact_on_the_host_and_on_the_runtime() {
    for (device, rt) in devices() {
        for (a, b) in [("[", "]"), ("gpuArray (single ([", "]))")] {
            let text = format!(
                "printf ('%g ', cospi ({a}0 0.5 1 -1.5 2 16777215{b})); \
                 printf ('%g ', logsumexp ({a}1000 1000{b}) - 1000 - log (2) < 1e-4, logsumexp ({a}NaN 1{b}), \
                 logsumexp ({a}NaN 1{b}, 'omitnan'), logsumexp ({a}0 -Inf; 3 -Inf{b}, 2), logsumexp ({a}5 Inf{b}))"
            );
            let printed = run(&rt, &text).unwrap_or_else(|e| panic!("{device}: {e}"));
            assert_eq!(printed, "1 0 -1 0 1 -1 1 NaN 1 0 3 Inf ", "{device} {a}");
        }
        assert!(error_of(&rt, "logsumexp ([1 2i])").message.contains("X must be real"));
    }
}

#[test]
fn the_end_of_what_is_not_there_is_zero_also_where_subscripts_come_first() {
    let rt = host();
    for (text, expected) in [
        ("g = @(v) v; q(end + g(1)) = g(5); disp(q)", "5\n"),
        ("n = 1; x(end + n++) = 7; disp(x)", "7\n"),
        ("n = 1; [n, x(end + n)] = deal(2, 9); disp([n x])", "   2   9\n"),
        ("y = lcm(intmax('uint64'), intmax('uint64') - 1); disp(y)", "18446744073709551615\n"),
        ("z = int64(4611686018427387847); disp(lcm(z, z - 1, z - 2))", "9223372036854775807\n"),
    ] {
        assert_eq!(run(&rt, text).unwrap_or_else(|e| panic!("{text}: {e}")), expected, "{text}");
    }
}

/// Tests this even if one text failed, and if one goes on while another runs in the same variables.
#[test]
fn an_evaluated_text_keeps_its_subscripts_where_an_ended_one_kept_its_own() {
    let text = "h = zeros(1, 3); n = 0;
                for k = 1:2000
                    eval('h(randi(3)) += 1;'), eval('n(idx(1)) += sum(h) > k - 1;')
                    try, eval('h(idx(2)) += [1 2; 3 4] * ones(3);'), catch, end
                end
                a = zeros(1, 4);
                eval('a(idx(2)) += numel(evalc(\"a(idx(3)) += 5;\")) + a(3) + numel(evalc(\"a(idx(4)) += 7;\"));')
                disp([sum(h) n a]), a = whos; disp(numel(a))
                function k = idx(k), end";
    assert_eq!(run(&host(), text).unwrap(), "   2000   2000      0      5      5      7\n4\n");
}

#[test]
fn functions_of_the_language_call_each_other_whatever_a_script_calls_its_own() {
    let text = "disp (cov ([1 2 3; 4 5 7]')), disp (quadgk (@(x) x .^ 2, 0, 3)), disp (integral (@(x) mine (x), 0, 1))
                disp (sum (1)), disp (cellfun (@sum, {1}, 'UniformOutput', false){1}), disp (feval ('numel', 5))
                function s = sum (x), s = 'own'; end
                function n = numel (x), n = -1; end
                function y = mine (x), y = x * 2; end";
    let out = run(&host(), text).unwrap();
    assert_eq!(out, "   1.0000   1.5000\n   1.5000   2.3333\n9\n1\nown\nown\n-1\n");
}

#[test]
fn recursion_without_end_is_an_error() {
    let error = error_of(&host(), "function f (n)\n  f (n + 1);\nend\nf (1)");
    assert!(error.message.contains("max_recursion_depth"), "{}", error.message);
}

#[test]
fn close_names_are_suggested() {
    let help = error_of(&host(), "linspce (0, 1, 3)").help.unwrap_or_default();
    assert!(help.contains("linspace"), "{help:?}");
}

#[test]
fn the_workspace_comes_back_as_values() {
    let rt = host();
    let session = rt.session("workspace").open();
    let script =
        Script::parse("a = 2; b = [1 2; 3 4]; c = 'text'; d = zeros (100, 100); function y = g (x), y = x; end")
            .unwrap();
    let workspace = futures::executor::block_on(script.run(&session)).unwrap();
    assert_eq!(workspace.number("a"), Some(2.0));
    assert!(matches!(workspace.get("b"), Some(Value::Tensor(t)) if t.len() == 4));
    assert_eq!(workspace.get("c").and_then(Value::as_text).as_deref(), Some("text"));
    assert!(matches!(workspace.get("d"), Some(Value::Lazy(l)) if l.dims[..] == [100, 100]));
    assert!(workspace.array("d").is_some() && workspace.array("b").is_none());
    let workspace = futures::executor::block_on(async {
        let workspace = Script::parse("t = sum (ones (100, 100)(:));").unwrap().run(&session).await.unwrap();
        assert_eq!(workspace.number("t"), None);
        workspace.gather().await.unwrap();
        let text = "r = f (-ones (100, 100));\nfunction y = f (x)\n  y = sqrt (x);\nend";
        let bad = Script::parse(text).unwrap().run(&session).await.unwrap();
        let error = bad.gather().await.unwrap_err();
        assert!(error.message.contains("complex (x)"), "{error}");
        let place = error.place.unwrap();
        assert_eq!(place.source.position(place.span.start).line, 3);
        // The runtime's own error does not know its place in a script, and does not tell a place in Tidemill's code.
        let fault = bad.array("r").unwrap().gather::<f64>().await.unwrap_err();
        assert!(!fault.to_string().contains("recorded at"), "{fault}");
        let left = Script::parse("x = 3; f (); y = 4; function f (), z = 5; exit (7); end").unwrap();
        let left = left.run(&session).await.unwrap();
        assert_eq!((left.exit, left.number("x"), left.variables.len()), (Some(7), Some(3.0), 1));
        workspace
    });
    assert_eq!(workspace.number("t"), Some(1e4));
}

/// Returns fifty statements on small and big arrays; `bad` makes the copy fail half-way.
fn copy_text(bad: bool) -> String {
    let mut text = String::from("x = (1:10) * 2; s = 0; big = ones (100, 100);\n");
    for k in 0..23 {
        text.push_str(&format!("s = s + sum (x) * {k};\n"));
        if bad && k == 11 {
            text.push_str("y = x(100);\n");
        }
        text.push_str("big = big .* 0.5 + 0.5;\n");
    }
    text.push_str("disp (s), disp (sum (big(:)))\n");
    text
}

#[test]
fn a_thousand_copies_at_once_are_right_and_only_the_faulty_fail() {
    let rt = host();
    let good = Script::parse(&copy_text(false)).unwrap();
    let bad = Script::parse(&copy_text(true)).unwrap();
    let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    executor.block_on(async {
        let mut set = tokio::task::JoinSet::new();
        for i in 0..1000 {
            let script = if i % 10 == 3 { bad.clone() } else { good.clone() };
            let session = rt.session("copy").stream(i).open();
            set.spawn(async move { (i, script.run(&session).await.map(|w| w.printed())) });
        }
        while let Some(ended) = set.join_next().await {
            let (i, result) = ended.unwrap();
            match result {
                Ok(out) => {
                    assert!(i % 10 != 3, "copy {i} did not fail");
                    assert_eq!(out, format!("{}\n10000\n", 110 * (0..23).sum::<i32>()), "copy {i}");
                }
                Err(error) => {
                    assert!(i % 10 == 3, "copy {i}: {error}");
                    assert!(error.message.contains("out of bound"), "copy {i}: {error}");
                }
            }
        }
    });
}

#[test]
fn a_run_that_is_dropped_ends_and_others_go_on() {
    let rt = host();
    let session = rt.session("endless").open();
    let script = Script::parse("k = 0; while true, k = k + 1; end").unwrap();
    let executor = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    executor.block_on(async {
        let run = tokio::time::timeout(Duration::from_millis(50), script.run(&session));
        assert!(run.await.is_err(), "an endless loop ended");
    });
    assert_eq!(run(&rt, "disp (1 + 1)").unwrap(), "2\n");
}

#[test]
fn calls_of_a_function_for_each_element_let_others_run() {
    let rt = host();
    for text in ["arrayfun (@(x) x + 1, 1:100000);", "cellfun (@(x) x + 1, num2cell (1:100000));"] {
        let (script, session) = (Script::parse(text).unwrap(), rt.session("calls").open());
        let mut run = Box::pin(script.run(&session));
        let mut polls = 0;
        futures::executor::block_on(std::future::poll_fn(|context| {
            polls += 1;
            run.as_mut().poll(context)
        }))
        .unwrap();
        assert!(polls > 5, "{text} let others run {polls} times");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn runs_that_pause_share_a_thread_and_end_with_their_futures() {
    let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
    let rt = host();
    let (script, session) = (Script::parse("pause (0.2); disp (1)").unwrap(), rt.session("pause").open());
    let before = threads();
    let mut runs: Vec<_> = (0..300).map(|_| Box::pin(script.run(&session))).collect();
    let nobody = &mut std::task::Context::from_waker(std::task::Waker::noop());
    assert!(runs.iter_mut().all(|run| run.as_mut().poll(nobody).is_pending()));
    let more = threads().saturating_sub(before);
    assert!(more < 100, "{more} threads for 300 runs");
    runs.truncate(10);
    let ended = futures::executor::block_on(futures::future::join_all(runs));
    assert!(ended.iter().all(|run| run.as_ref().unwrap().printed() == "1\n"));
    // Futures that were dropped are not waited for.
    let long = Script::parse("pause (1e6)").unwrap();
    assert!(Box::pin(long.run(&session)).as_mut().poll(nobody).is_pending());
}

#[test]
fn what_a_run_wrote_comes_back_also_with_its_error() {
    let (rt, text) = (host(), "disp (1); warning ('take care'); fprintf (2, 'and more\\n');");
    let session = rt.session("writes").open();
    let good = futures::executor::block_on(Script::parse(text).unwrap().run(&session)).unwrap();
    assert_eq!((good.printed().as_str(), good.warned().as_str()), ("1\n", "warning: take care\nand more\n"));
    let bad = Script::parse(&format!("{text} error ('no')")).unwrap();
    let written = futures::executor::block_on(bad.run(&session)).unwrap_err().written.unwrap();
    assert_eq!((&written.out[..], &written.err[..]), (&b"1\n"[..], &b"warning: take care\nand more\n"[..]));
}

#[test]
fn a_run_can_be_sent_to_another_thread() {
    fn is_send<T: Send>(_: &T) {}
    let rt = host();
    let session = rt.session("send").open();
    let script = Script::parse("x = 1;").unwrap();
    is_send(&script.run(&session));
}

#[test]
fn assignment_to_an_element_in_a_loop_does_not_copy_the_array() {
    // Copying 800 kB a hundred thousand times would move 80 GB, and take minutes.
    let text = "n = 100000; x = zeros (1, n); x(1) = 1; for k = 2:n, x(k) = x(k-1) * 0.5 + 1; end, disp (x(n))";
    assert_eq!(run(&host(), text).unwrap(), "2\n");
}

/// Loops over single elements and small parts of arrays that began on the runtime.
const LOOPS: &[(&str, &str)] = &[
    ("x = zeros (1, n); x(1) = 1; for k = 2:n, x(k) = x(k-1) * 0.5 + 1; end, disp (x(n))", "2\n"),
    ("x = (1:n) * 0.5; s = 0; for k = 1:n, s = s + x(k); end, printf ('%d\\n', s)", "100005000\n"),
    ("x = (1:n) * 0.5; m = 0; for k = 1:n, m = max (m, x(k)); end, disp (m)", "10000\n"),
    ("x = zeros (n, 1, 'int32'); for k = 2:n, x(k) = x(k-1) + int32 (3); end, disp (x(n))", "59997\n"),
    ("x = ones (1, n); for k = 1:n, x = [x, k]; end, disp (numel (x))", "40000\n"),
    ("x = 1:n; for k = 1:10000, x(end) = []; end, disp (x(end))", "10000\n"),
    ("t = [2:n, 1] * 1; p = 1; for k = 1:n, p = t(p); end, disp (p)", "1\n"),
    ("A = ones (200); for k = 1:200, A(k,:) = A(k,:) * k; end, disp (A(200,200))", "200\n"),
];

#[test]
fn loops_over_the_elements_of_big_arrays_come_to_the_host() {
    for (device, rt) in devices() {
        for (text, expected) in LOOPS {
            let (out, stats) = during(&rt, &format!("n = 20000; {text}"));
            assert_eq!(out, *expected, "{device}: {text}");
            assert!(stats.ops_recorded < 1000, "{device}: {} ops recorded by {text}", stats.ops_recorded);
        }
    }
}

#[test]
fn a_sieve_comes_to_the_host_though_each_prime_writes_many_places() {
    let rt = host();
    let text = "n = 200000; s = true (1, n); s(1) = false;
                for i = 2:sqrt (n), if s(i), s(i*i:i:n) = false; end, end, printf ('%d', sum (s));";
    let (printed, stats) = during(&rt, text);
    assert_eq!(printed, "17984");
    assert!(stats.gathers < 20, "{stats}");
}

#[test]
fn vectors_texts_and_cells_grow_at_their_end_in_place() {
    // Copies would move 40 GB, or 4 million values two hundred thousand times.
    let text = "x = []; t = ''; c = {}; for k = 1:100000, x = [x, k]; t = [t, 'ab']; c = [c, {k}]; end, \
                printf ('%d\\n', sum (x)), disp (numel (t)), disp (c{end})";
    assert_eq!(run(&host(), text).unwrap(), "5000050000\n200000\n100000\n");
    // A value with another holder does not change.
    let text = "x = [1 2]; y = x; x = [x 3]; t = 'ab'; u = t; t = [t 'c']; c = {1 2}; d = c; c = [c {3}]; \
                disp (y), disp (u), disp (numel (d)), disp (x), disp (t), disp (numel (c))";
    assert_eq!(run(&host(), text).unwrap(), "   1   2\nab\n2\n   1   2   3\nabc\n3\n");
}

#[test]
fn operands_below_a_call_with_a_comma_list_stay_where_they_are() {
    let text = "c = {1, 2}; f = @(x, y) x + y; disp (5 * f(c{:})), disp ([7 f(c{:}) 9]), s.f = f; disp (2 + s.f(c{:}))";
    assert_eq!(run(&host(), text).unwrap(), "15\n   7   3   9\n5\n");
}

#[test]
fn subscripts_of_a_target_are_evaluated_once_whatever_end_means_in_them() {
    let text = "global n; n = 0; s(2).a = {1:3, 4:6}; s(f (end)).a{f (end)}(f (end)) = 9; disp (n), disp (s(2).a{2})
        function r = f (k), global n; n = n + 1; r = k; end";
    assert_eq!(run(&host(), text).unwrap(), "3\n   4   5   9\n");
    // Evaluating each level twice would take 2^60 evaluations.
    let inner = "{end}".repeat(60);
    let deep = format!("c = 1; for k = 1:60, c = {{c}}; end, c{inner} = 2; disp (c{inner})");
    assert_eq!(run(&host(), &deep).unwrap(), "2\n");
}

#[test]
fn what_an_assignment_keeps_for_itself_is_no_variable() {
    let text = "a = 1:3; try, a(abs (2)) += undefined_thing; catch, end, a(abs (1)) += 1; who";
    assert_eq!(run(&host(), text).unwrap(), "Variables visible from the current scope:\n\na\n\n");
}

#[test]
fn names_of_functions_with_a_dot_give_way_to_variables() {
    let text = "a = gpuArray (1); disp (gather (gpuArray.ones (1, 2))), m = containers.Map ('k', 7); disp (m('k')), \
                eval ('gpuArray.ones = 5;'), disp (gpuArray.ones), disp (gpuArray.ones(1, end)), \
                clear gpuArray, disp (size (gpuArray.zeros (2, 3)))";
    assert_eq!(run(&host(), text).unwrap(), "   1   1\n7\n5\n5\n   2   3\n");
}

#[test]
fn an_integral_over_three_variables_calls_its_function_on_arrays() {
    let text = "disp (abs (triplequad (@(x, y, z) x + y .* z, 0, 1, 0, 2, 0, 3) - 12) < 1e-6)";
    assert_eq!(run(&host(), text).unwrap(), "1\n");
}

#[test]
fn variables_that_are_asked_for_by_name_are_kept() {
    let text = "x = 1; disp (feval ('exist', 'x')), f = @exist; disp (f ('x')), y = 5; cellfun (@eval, {'disp (y)'});";
    assert_eq!(run(&host(), text).unwrap(), "1\n1\n5\n");
}

/// A stack of pictures, filled by blocks of rows in a loop, normalised picture by picture.
const PICTURES: &str = "
rng (7);
pictures = 2; rows = 60; columns = 90; block = 16;
given = getenv ('TIDEMILL_TEST_ROWS');
if numel (given)
  asked = str2double (given);
  if isfinite (asked) && asked > 0 && asked == floor (asked), rows = asked; else, error ('no number of rows'); end
end
if ~exist ('gain', 'var'), gain = single (1.5); end
if exist ('gpuArray', 'builtin') || exist ('gpuArray', 'file'), like = gpuArray (single (0)); else, like = single (0); end
stack = zeros (pictures, rows, columns, 'like', like);
across = reshape (0:(columns - 1), [1 1 columns]);
for b = 1:pictures
  first = 1;
  while first <= rows
    count = min (block, rows - first + 1);
    chosen = first:(first + count - 1);
    down = reshape ((first - 1):(first + count - 2), [1 count 1]);
    state = mod (69069 .* ((b - 1) * rows * columns + down * columns + across) + 5, 65536);
    stack(b, chosen, :) = single (state) ./ single (65536);
    first = first + count;
  end
end
mu = single (mean (stack, [2 3], 'native'));
spread = single (sqrt (mean ((stack - mu) .^ 2, [2 3], 'native') + single (1e-6)));
out = max (((stack - mu) ./ spread) * gain, single (0));
value = gather (mean (out .* out, 'all'));
disp (['value=' char(num2str (double (value), 8)) ' class=' class(value)]);
fprintf ('mu=%.6f\\n', double (gather (mu)));
";

#[test]
fn pictures_in_a_stack_are_filled_by_slices_and_reduced_over_two_dimensions() {
    let (rows, columns) = (60u64, 90u64);
    let picture =
        |b: u64| (0..rows * columns).map(move |i| ((69069 * (b * rows * columns + i) + 5) % 65536) as f64 / 65536.0);
    let mut squares = 0.0;
    let mut means = Vec::new();
    for b in 0..2 {
        let n = (rows * columns) as f64;
        let mean = picture(b).sum::<f64>() / n;
        let spread = (picture(b).map(|x| (x - mean).powi(2)).sum::<f64>() / n + 1e-6).sqrt();
        squares += picture(b).map(|x| ((x - mean) / spread * 1.5).max(0.0).powi(2)).sum::<f64>() / n / 2.0;
        means.push(mean);
    }
    for (device, rt) in devices() {
        let out = run(&rt, PICTURES).unwrap();
        near(&out, "value", squares, 1e-5);
        for (found, mean) in numbers(&out, "mu").into_iter().zip(&means) {
            assert!((found - mean).abs() < 1e-5, "{device}: {found}, not {mean}");
        }
        assert!(out.contains("class=single"), "{device}: {out}");
    }
    let error = error_of(&host(), &format!("setenv ('TIDEMILL_TEST_ROWS', '2.5');\n{PICTURES}"));
    assert_eq!(error.message, "no number of rows");
}

#[test]
fn functions_that_are_cleared_forget_what_they_keep() {
    let text = "function r = f ()\n  persistent n = 0;\n  n++; r = n;\nend\n\
                a = [f(), f()]; clear f\nb = [f(), f()]; clear x\nc = f (); clear functions\nd = f (); disp ([a b c d])\n";
    assert_eq!(run(&host(), text).unwrap(), "   1   2   1   2   3   1\n");
}

#[test]
fn a_run_that_is_dropped_anywhere_leaves_its_session_and_the_others_alone() {
    let rt = host();
    let session = rt.session("dropped").seed(5).open();
    let text = "x = rand (100); for k = 1:50, x = x * 0.5 + 1; try, y = sqrt (x - 3 * (k > 40)); catch, end, \
                s = sum (x(:)); if s < 0, break, end, end, c = cellfun (@(v) sum (v(:)), {x, x}); disp (c(1) > 0)";
    let script = Script::parse(text).unwrap();
    let mut ended = 0;
    for polls in 0..60 {
        let mut run = Box::pin(script.run(&session));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        for _ in 0..polls {
            if run.as_mut().poll(&mut context).is_ready() {
                ended += 1;
                break;
            }
            // The awaited event may come at any time.
            std::thread::yield_now();
        }
        drop(run);
        let after = Script::parse("z = sum (ones (1, 10000)); if z ~= 10000, error ('%g', z), end").unwrap();
        futures::executor::block_on(after.run(&session)).unwrap();
    }
    assert!(ended < 60, "all of them ended at once");
    assert_eq!(run(&rt, text).unwrap(), "1\n");
}

#[test]
fn a_part_that_a_range_names_is_what_the_same_range_in_a_variable_names() {
    let arrays = [
        "1:9",
        "(1:9)' * 0.5",
        "reshape (1:12, 3, 4)",
        "eye (4)",
        "'some text'",
        "\"more text\"",
        "int8 ([1 2 3 4 5 6])",
        "[1+2i, 3, 4-1i, 5, 6]",
        "[true false true false true]",
        "{1, 'b', [1 2 3], 4}",
        "ones (2, 2, 3)",
        "7",
        "zeros (0, 3)",
        "(1:10000) / 4",
    ];
    let bounds =
        ["2:end", "1:end", "1:3", "2:end-1", "3:3", "3:2", "0:2", "2:99999", "1.5:3", "1:2.5", "'a':'b'", "1:NaN"];
    let mut text = String::from("n = 0;\n");
    for array in arrays {
        for bound in bounds {
            let whole = bound.replace("end", "numel (x)");
            text.push_str(&format!(
                "x = {array}; r = {whole};
                 try
                   p = x(r);
                 catch e
                   p = e.message;
                 end
                 y = x;
                 try
                   q = x({bound});
                 catch e
                   q = e.message;
                 end
                 if ! (isequal (p, q) && isequal (size (p), size (q)) && strcmp (class (p), class (q)))
                   fprintf ('%s of %s\\n', '{}', '{}');
                 end
                 if ! isequal (x, y), disp ('changed'); end, n = n + 1;\n",
                bound.replace('\'', "''"),
                array.replace('\'', "''"),
            ));
        }
    }
    // These have `end` within `end`, functions that are called with a range, and parts to which something is added.
    text.push_str(
        "x = 1:5; x = x(1:x(2:end)(1)); x = [x(2:end) x(1)]; f = @(r) sum (r); printf ('%d', x, f(1:3), max (2:4));",
    );
    let rt = host();
    assert_eq!(run(&rt, &text).unwrap(), "2164");
    let recorded = Options { host_elements_max: 0, ..Options::default() };
    assert_eq!(run_with(&rt, &text, recorded).unwrap(), "2164");
}

#[test]
fn an_array_under_other_dimensions_keeps_its_elements_whoever_writes() {
    let text = "A = gather (reshape (1:160000, 400, 400));
        v = A(:); B = reshape (v, 200, 800); w = B;
        A(2) = -1; v(3) = -2; B(4) = -3;
        printf ('%d ', A(1:5), v(1:5), B(1:5), w(1:5), size (v), size (B), sum (w(:)));
        c = int16 (A); d = c(:)'; d(1) = 9; e = complex (A(:), 1); e(1) = 7i; g = A(:, :); g(1) = 8;
        printf ('%d ', c(1), d(1), A(1), imag (e(1)), g(1));
        % What the runtime has still to compute keeps what it was given.
        s = A * 2; A(1) = 100; t = A + 1; A(1) = 200;
        printf ('%d ', s(1), t(1), A(1));";
    for (device, rt) in devices() {
        let expected = "1 -1 3 4 5 1 2 -2 4 5 1 2 3 -3 5 1 2 3 4 5 160000 1 200 800 12800080000 \
                        1 9 1 7 8 2 101 200 ";
        assert_eq!(run(&rt, text).unwrap(), expected, "{device}");
    }
}

#[test]
fn dimensions_beyond_the_runtime_s_are_an_error_in_plain_words_where_arrays_are_large() {
    let few = "a = size (zeros (ones (1, 40))); b = size (reshape (1:4, [2, 2, ones(1, 40)])); c = cat (40, 1, 2);\n\
               n = ndims (c); m = ndims (zeros ([ones(1, 39), 2]) + 1); d = size (zeros ([300, 300, ones(1, 40)]));\n\
               printf ('%d ', a, b, n, m, d, numel (c))";
    assert_eq!(during(&host(), few).0, "1 1 2 2 40 40 300 300 2 ");
    for body in [
        "x = zeros ([300, 300, ones(1, 39), 2]);",
        "x = rand ([300, 300, ones(1, 39), 2]);",
        "x = cat (40, rand (300), rand (300)); y = x + 1;",
        "x = reshape (rand (300), [300, ones(1, 39), 300]);",
        "x = repmat (rand (300), [ones(1, 40), 2]);",
        "x = permute (rand (300), [3:42, 1, 2]);",
    ] {
        let text = format!("try, {body} disp (1), catch e, disp (e.message), end");
        let printed = during(&host(), &text).0;
        assert!(printed.contains("at most 16 dimensions"), "{body}: {printed}");
    }
}

#[test]
fn a_dimension_beyond_the_rank_has_one_element_in_every_function_of_a_script() {
    // The arrays are large enough to be recorded, and hold whole numbers, so that sums are exact.
    let text = "A = mod (reshape (1:90000, 300, 300), 7); S = single (A); L = A > 3; I = int32 (A);
        assert (sum (A, 3), A); assert (sum (S, 9), S); assert (double (sum (I, 9)), A);
        assert (prod (A, 3), A); assert (var (A, 0, 3), zeros (300)); assert (std (A, 0, 20), zeros (300));
        assert (any (L, 3), L); assert (all (A, 3), A != 0); assert (sumsq (A, 3), A .^ 2); assert (dot (A, A, 3), A .^ 2);
        [m, k] = max (A, [], 3); assert (m, A); assert (k, ones (300)); assert (min (A, [], 17), A);
        assert (cumsum (A, 3), A); assert (cumprod (S, 5), S); assert (cummax (A, 3), A); assert (cumsum (L, 3), double (L));
        [s, k] = sort (A, 3); assert (s, A); assert (k, ones (300)); assert (sort (A, 3, 'descend'), A);
        assert (flip (A, 3), A);
        assert (size (cat (3, A, A)), [300 300 2]); assert (size (cat (5, A, A)), [300 300 1 1 2]);
        assert (A(:, :, 1), A); assert (A(:, :, 1, 1), A); assert (A(2, :, 1), A(2, :)); k = find (A(:, 1) > 5);
        assert (A(:, :, ones (1, 2)), cat (3, A, A)); assert (median (A, 3), A); assert (permute (A, [3 1 2]), reshape (A, 1, 300, 300));
        B = A; B(:, :, 2) = A; assert (sum (B, 3), 2 * A); B = A; B(1, :, 1) = 0; assert (B(1, :), zeros (1, 300));
        assert (vecnorm (A, 2, 3), A); printf ('done\\n');";
    for (device, rt) in devices() {
        assert_eq!(during(&rt, text).0, "done\n", "{device}");
    }
}

#[test]
fn the_first_and_the_last_few_places_are_found_without_a_look_at_all() {
    let text = "x = rand (400, 500) * 0; places = [5 40000 199990]; x(places) = [7 8 9];
        for n = [0 1 2 3 4]
          k = min (n, 3);
          assert (find (x, n), places(1:k)(:)); assert (find (x, n, 'last'), places(4-k:3)(:));
          [r, c, v] = find (x, n); all = [7 8 9](:);
          assert ([r, c], [mod(places(1:k)(:)-1, 400) + 1, floor((places(1:k)(:)-1) / 400) + 1]);
          assert (v, all(1:k));
        end
        assert (find (x(:)', 2), places(1:2));";
    for (device, rt) in devices() {
        run(&rt, text).unwrap_or_else(|error| panic!("{device}: {error}"));
        let x = "x = rand (1, 1e6) + 1; x(3) = x(3); ";
        let (_, all) = during(&rt, &format!("{x} y = find (x > 0); disp (y(1))"));
        let (_, few) = during(&rt, &format!("{x} y = find (x > 0, 2); disp (y(1))"));
        let read = |stats: &Stats| stats.bytes_kernel_read;
        assert!(read(&few) < read(&all) / 4, "{device}: {} of {} bytes", read(&few), read(&all));
    }
}

#[test]
fn products_of_singles_and_doubles_hold_their_bound_wherever_the_factors_lie() {
    let text = "
function check (what, class, at)
  limit = @(k, a, b) (4 + log2 (k)) * double (eps (class)) * (abs (double (a)) * abs (double (b)));
  for k = [9 33 1000 30001]
    tenths = repmat (cast (0.1, class), 3, k);
    falling = cast (1, class) ./ repmat (1:k, 3, 1);
    first = repmat (eps (class) / 2, 3, k);  first(:,1) = 1;
    offset = 1000.3 + repmat (cast (mod (1:k, 10), class), 3, 1);
    for left = {tenths, falling, first, offset}
      a = left{1};
      for right = {ones(k, 1, class), ones(k, 3, class) / 8, a'}
        b = right{1};
        r = gather (at (a) * at (b));
        % The terms of a row are equal, or few, or fall: the exact sum is that of the sorted terms in parts.
        e = zeros (rows (a), columns (b));
        for j = 1:columns (b)
          t = sort (double (a(1,:)) .* double (b(:,j)'), 'ascend');
          e(:,j) = sum (sum (reshape ([t zeros(1, ceil (k / 100) * 100 - k)], 100, [])));
        end
        slack = max (max (abs (double (r) - e) ./ limit (k, a, b)));
        % The reference of doubles is a double itself.
        if ~(slack <= 1) || ~isa (gather (r), class)
          printf ('%s %s k=%d slack=%g\\n', what, class, k, slack);
        end
      end
    end
  end
end
check ('here', 'single', @(x) x);
check ('here', 'double', @(x) x);
check ('gpuArray', 'single', @gpuArray);
z = complex (repmat (0.1, 1, 3000), 0.2);
w = z * z.';
printf ('%d %d', abs (w - 3000 * (0.1 + 0.2i)^2) < 1e-11, numel (w));
A = ones (2, 2e6, 'single'); x = ones (2e6, 1, 'single');
printf (' %.9g %.9g\\n', (A * x)(1), x' * x);
";
    for (device, rt) in devices() {
        // Small arrays are in the script's own memory, or all arrays are on the runtime.
        for host_elements_max in [4096, 0] {
            let printed = run_with(&rt, text, Options { host_elements_max, ..Options::default() }).unwrap();
            assert_eq!(printed, "1 1 2000000 2000000\n", "on {device}, {host_elements_max}");
        }
    }
}

#[test]
fn a_name_without_an_effect_warns_once_in_a_run() {
    let rt = host();
    let text = "for k = 1:3, plot (k); diary off; contour (k); h = bar (k); end
                h.Color = 'r'; disp (h.Color), isfigure (h)";
    let script = Script::parse(text).unwrap();
    let session = rt.session("script").open();
    for _ in 0..2 {
        let workspace = futures::executor::block_on(script.run(&session)).unwrap();
        assert_eq!(workspace.printed(), "r\nans = 0\n");
        let warned = workspace.warned();
        let names: Vec<&str> = warned.lines().filter_map(|line| line.split(' ').nth(1)).collect();
        assert_eq!(names, ["plot", "diary", "contour", "bar", "isfigure"]);
    }
}

#[test]
fn computed_values_of_what_draws_are_refused() {
    let rt = host();
    for text in ["c = contour (magic (3));", "[x, y] = bar (1:3);", "[x, y] = fplot (@sin, [0 1]);"] {
        let error = run_with(&rt, text, Options::default()).unwrap_err();
        assert!(error.message.contains("called with too many outputs"), "{text}: {error:?}");
    }
    for text in ["v = smooth3 (ones (3, 3, 3));", "f = isosurface (ones (3, 3, 3));", "rose (1:3)"] {
        let error = run_with(&rt, text, Options::default()).unwrap_err();
        assert!(error.message.contains("undefined"), "{text}: {error:?}");
    }
}
