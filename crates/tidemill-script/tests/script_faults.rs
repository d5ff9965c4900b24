//! Tests faults of a script's arrays: their messages, their places, and the `try` that catches them.

#[path = "../../../tests/common/mod.rs"]
mod common;

use parking_lot::Mutex;
use std::sync::Arc;
use tidemill::Runtime;
use tidemill_script::Script;
use tidemill_script::env::Options;
use tidemill_script::error::ScriptError;
use tidemill_script::output::Captured;
use tidemill_script::source::Place;

fn devices() -> Vec<(&'static str, Runtime)> {
    let mut all = vec![("host", Runtime::builder().device("host").start_blocking().unwrap())];
    all.extend(common::gpu(|b| b).map(|rt| ("gpu", rt)));
    all
}

fn run(rt: &Runtime, text: &str) -> (String, Result<(), ScriptError>) {
    let session = rt.session("script").seed(3).open();
    let captured = Arc::new(Mutex::new(Captured::default()));
    let script = Script::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let run = script.run_with(&session, Box::new(captured.clone()), Options::default());
    let result = futures::executor::block_on(run).map(drop);
    let out = String::from_utf8_lossy(&captured.lock().out).into_owned();
    (out, result)
}

/// Returns the text at a place, and its line.
fn at(place: &Option<Place>) -> (&str, u32) {
    let place = place.as_ref().expect("a place");
    (&place.source.text[place.span.range()], place.source.position(place.span.start).line)
}

#[test]
fn a_fault_names_its_op_and_the_line_that_recorded_it_and_where_it_was_read() {
    let text = "x = rand (1000) - 0.5;\ny = sqrt (x);\nz = y + 1;\ndisp (sum (z(:)))\n";
    for (device, rt) in devices() {
        let error = run(&rt, text).1.unwrap_err();
        assert!(error.message.starts_with("sqrt: "), "{device}: {}", error.message);
        assert!(error.message.contains("use complex (x)"), "{device}: {}", error.message);
        assert!(error.message.ends_with("(recorded at line 2, column 5)"), "{device}: {}", error.message);
        assert_eq!(at(&error.place), ("sqrt (x)", 2), "{device}");
        assert_eq!(at(&error.read().cloned()).1, 4, "{device}");
    }
}

#[test]
fn a_fault_names_the_function_that_was_called() {
    let advised = [
        ("asec", "between -1 and 1"),
        ("acsc", "between -1 and 1"),
        ("acoth", "between -1 and 1"),
        ("asech", "outside of 0 to 1"),
        ("acosd", "beyond 1"),
        ("asind", "beyond 1"),
    ];
    for (device, rt) in devices() {
        for (name, numbers) in advised {
            // These are numbers on both sides of 1.
            let error = run(&rt, &format!("y = {name} (rand (300) * 2 + 1e-3); disp (y(1))")).1.unwrap_err();
            let begin = format!("{name}: of a number {numbers} is complex");
            assert!(error.message.starts_with(&begin), "{device}: {}", error.message);
            assert!(error.message.contains("use complex (x)"), "{device}: {}", error.message);
        }
        for call in ["realsqrt (x)", "reallog (x)", "realpow (x, 0.5)"] {
            let error = run(&rt, &format!("x = rand (300) - 0.5; y = {call}; disp (y(1))")).1.unwrap_err();
            let name = call.split(' ').next().unwrap();
            let begin = format!("{name}: produced complex result (recorded");
            assert!(error.message.starts_with(&begin), "{device}: {}", error.message);
        }
        // Faults of arrays that are recorded later name their own op again.
        let error = run(&rt, "x = rand (300) - 0.5; y = realsqrt (abs (x)); z = sqrt (x); disp (z(1))").1.unwrap_err();
        assert!(error.message.starts_with("sqrt: of a negative number"), "{device}: {}", error.message);
    }
}

#[test]
fn faults_of_functions_handles_and_evaluated_texts_name_their_own_lines() {
    let rt = &devices()[0].1;
    let x = "x = rand (100) - 0.5;\n";
    let cases = [
        ("function y = f (x)\n  y = log (x);\nend\nX y = f (x);\ndisp (sum (y(:)))", "log (x)", 2),
        ("X f = @(v) v .^ 0.5;\ny = f (x);\ndisp (sum (y(:)))", "v .^ 0.5", 2),
        ("X eval ('y = asin (x * 4);');\ndisp (sum (y(:)))", "asin (x * 4)", 1),
        ("X c = cellfun (@sqrt, {x}, 'UniformOutput', false);\ndisp (sum (c{1}(:)))", "cellfun", 2),
        ("X s.a = sqrt (x);\nk = 1;\nif s.a(1) > 0, k = 2; end", "sqrt (x)", 2),
        ("X i = round (x * 10);\ny = x(i);\ndisp (sum (y(:)))", "x(i)", 3),
    ];
    for (text, blamed, line) in cases {
        let text = text.replace("X ", x);
        let error = run(rt, &text).1.expect_err(&text);
        let (covered, found) = at(&error.place);
        assert!(covered.starts_with(blamed) && found == line, "{text}\ngives {covered:?} on line {found}: {error}");
    }
}

#[test]
fn a_fault_that_is_read_where_it_is_recorded_has_one_place() {
    let rt = &devices()[0].1;
    let error = run(rt, "x = rand (100) - 0.5;\ndisp (sqrt (x))").1.unwrap_err();
    assert_eq!(at(&error.place), ("sqrt (x)", 2));
    let error = run(rt, "x = zeros (2, 3) + zeros (3, 2);").1.unwrap_err();
    assert!(error.read().is_none());
}

#[test]
fn the_end_of_a_try_body_awaits_the_checks_of_what_was_recorded_in_it() {
    let bodies = [
        "y = sqrt (x);",
        "y = sqrt (x); z = y + 1; w = sum (z(:));",
        "y = sqrt (x); y = 1;",
        "sqrt (x);",
        "c{3} = log (x);",
        "c{3} = log (x); c = {};",
        "s.a.b = log (x);",
        "s(2).a = log (x); clear s",
        "global g; g = log (x);",
        "f (x);",
        "r = f (x);",
        "h (x);",
        "q = @() sqrt (x); r = q ();",
        "r = cellfun (@sqrt, {x}, 'UniformOutput', false);",
        "y = x; y(1, :) = sqrt (x(1, :)); y = 2;",
        "if true, for k = 1:3, y = x .^ 0.5; end, end, y = 0;",
        "y = x(round (x * 1000)); y = 0;",
        "try, y = sqrt (x); catch inner, error ('%s', inner.message); end",
        "unwind_protect, y = sqrt (x); unwind_protect_cleanup, k = 1; end_unwind_protect",
        "eval ('y = sqrt (x);'); y = 1;",
        "y = x > 0 & sqrt (x) > 0; y = 1;",
    ];
    let functions = "function r = f (v)\n  r = sqrt (v);\nend\nfunction h (v)\n  t = sqrt (v);\nend\n";
    for (device, rt) in devices() {
        for body in bodies {
            let text = format!(
                "{functions}x = rand (100) - 0.5; s = struct (); c = {{}};\ntry\n  {body}\n  disp ('end of body')\n\
                 catch e\n  disp ('caught')\nend\ndisp ('after')\n"
            );
            let (out, result) = run(&rt, &text);
            assert!(result.is_ok(), "{device}: {body}: {result:?}");
            assert_eq!(
                out,
                "end of body\ncaught\nafter\n".replace(
                    "end of body\n",
                    match body {
                        // The inner handler raises it in the middle of the body.
                        _ if body.starts_with("try") => "",
                        _ => "end of body\n",
                    }
                ),
                "{device}: {body}"
            );
        }
    }
}

#[test]
fn a_try_has_no_part_in_faults_that_were_recorded_before_it_or_caught_within() {
    let rt = &devices()[0].1;
    let before = "x = rand (100) - 0.5; y = sqrt (x);\ntry, k = 1; catch, disp ('caught'), end\ndisp ('after')";
    let (out, result) = run(rt, before);
    assert!(result.is_ok());
    assert_eq!(out, "after\n");
    let within = "x = rand (100) - 0.5;\ntry\n  try, y = sqrt (x); catch, disp ('inner'), end\n  z = 1;\n\
                  catch, disp ('outer'), end\ndisp ('after')";
    assert_eq!(run(rt, within).0, "inner\nafter\n");
    let aborted = "x = rand (100) - 0.5;\ntry, y = sqrt (x); error ('mine'), catch e, disp (e.message), end\n\
                   try, z = 1; catch, disp ('second'), end\ndisp ('after')";
    assert_eq!(run(rt, aborted).0, "mine\nafter\n");
}

#[test]
fn a_loop_in_a_try_keeps_no_array_of_its_turns() {
    let rt = &devices()[0].1;
    let text = "x = rand (300);\ntry\n  for k = 1:400, x = sqrt (x) .* 0.9 + 0.01; end\n  s = sum (x(:));\n\
                catch e, disp (e.message), end\ndisp (s > 0)";
    let (out, stats) = common::counted(rt, || run(rt, text).0);
    assert_eq!(out, "1\n");
    // An array takes 720 kB. The arrays of all iterations would take 288 MB.
    assert!(stats.bytes_kernel_written < 60 << 20, "{} bytes were written", stats.bytes_kernel_written);
}

/// Tests that arrays which no variable holds any more are checked before there are many of them, by the `try` in which
/// they were recorded.
#[test]
fn what_a_loop_in_a_try_overwrites_is_checked_on_the_way() {
    for (device, rt) in devices() {
        let text = "x = rand (100);\ntry\n  for k = 1:600, y = sqrt (x - 2 * (k == 100)); end\n\
                    catch e, disp (e.message), disp (k < 200), end";
        let (out, result) = run(&rt, text);
        assert!(result.is_ok(), "{device}");
        assert!(out.starts_with("sqrt: of a negative number"), "{device}: {out}");
        assert!(out.ends_with("(recorded at line 3, column 22)\n1\n"), "{device}: {out}");
        // The inner `try` does not catch this fault.
        let text = "x = rand (100);\ntry\n  for k = 1:600\n    y = sqrt (x - 2 * (k == 100));\n\
                    try, z = log (x + 1); w = z; w = 1; catch, disp ('inner'), end\n  end\n\
                    catch, disp (k < 200), end";
        assert_eq!(run(&rt, text).0, "1\n", "{device}");
    }
}

/// Tests that a caught fault leaves variables as if the statement had failed where it stands.
#[test]
fn a_caught_fault_leaves_variables_as_they_were() {
    let text = "x = (1:10000) / 10000; total = 0; skipped = 0; r = zeros (1, 3); s = struct ('sum', 0); c = {0, 0};
                y = x + 0; fresh = 1; clear fresh
                for k = 1:3
                  idx = (1:10000) * k - (k - 1) * 5000;
                  try, total = total + sum (x(idx)); catch, skipped = skipped + 1; end
                  try, r(k) = sum (x(idx)); catch, r(k) = -1; end
                  try, s.sum = s.sum + sum (x(idx)); catch, end
                  try, c{2} = c{2} + sum (x(idx)); catch, end
                  try, s = add (s, x, idx); catch, end
                  try, y(1:3) = x(idx(end-2:end)); catch, end
                  try, if k > 1, fresh = x(idx); end, catch, end
                  try
                    z = sqrt (x); w = k; total = total + 0;
                    try, z = x(idx); catch, end
                  catch, disp ('outer'), end
                end
                printf ('%g %d', total, skipped), disp (r), disp (s.sum), disp (c{2}), disp (exist ('fresh'))
                disp (sum (y)), disp (abs (sum (z) - sum (sqrt (x))) < 1e-6), disp (w)
                function s = add (s, x, idx), s.sum = s.sum + sum (x(idx)); end";
    for (device, rt) in devices() {
        let (out, result) = run(&rt, text);
        result.unwrap_or_else(|error| panic!("{device}: {error}"));
        let expected = "5000.5 2   5.0005e+03  -1.0000e+00  -1.0000e+00\n10001\n5000.5\n0\n5003.5\n1\n3\n";
        assert_eq!(out, expected, "{device}");
        // A variable that is assigned more than once is not restored, and its fault is an error when it is read.
        let twice = "x = (1:10000) / 10000; y = 1; t = 0; s = struct ('a', 0);
                     try, s.a = x + 0; s.b = 7; y = sqrt (x); y = sqrt (x - 2); t = 5; catch, end
                     disp (t), disp (s.b), y(1)";
        let (out, result) = run(&rt, twice);
        assert_eq!(out, "5\n7\n", "{device}");
        assert!(result.unwrap_err().message.starts_with("sqrt: of a negative number"), "{device}");
    }
}

#[test]
fn a_subscript_on_the_runtime_that_is_wrong_is_an_error_whatever_is_read_of_what_it_names() {
    for (device, rt) in devices() {
        for (index, identifier, message) in [
            ("x+1", "Octave:index-out-of-bounds", "index: out of bound 5000 (dimensions are 1x5000)"),
            ("x-1", "Octave:invalid-index", "index: subscripts must be either integers 1 to (2^63)-1 or logicals"),
            ("x/2+0.5", "Octave:invalid-index", "index: subscripts must be either integers 1 to (2^63)-1 or logicals"),
        ] {
            // The element that is read exists.
            let text = format!("x = rand (1, 5000) * 0 + (1:5000);\ny = x({index});\ndisp (y(101))");
            let error = run(&rt, &text).1.unwrap_err();
            assert_eq!(error.identifier, identifier, "{device}, {index}");
            assert_eq!(error.message, format!("{message} (recorded at line 2, column 5)"), "{device}, {index}");
        }
    }
}

#[test]
fn an_error_handler_takes_the_faults_of_what_its_calls_recorded() {
    let text = "x = (1:6000) - 10;
                o = cellfun (@(v) sqrt (v), {x, 1:3}, 'UniformOutput', false, 'ErrorHandler', @(e, v) e.index);
                p = arrayfun (@(k) sqrt (sum (x) * k), [-1 1], 'ErrorHandler', @(e, v) -e.index);
                s = structfun (@(v) log (v), struct ('a', x), 'UniformOutput', false, 'ErrorHandler', @(e, v) 'no');
                disp (o{1}), disp (o{2}(1)), disp (p(1)), disp (p(2) > 0), disp (s.a)
                cellfun (@(v) sqrt (v), {x}, 'UniformOutput', false, 'ErrorHandler', @(e, v) error ('mine'));";
    for (device, rt) in devices() {
        let (out, result) = run(&rt, text);
        assert_eq!(out, "1\n1\n-1\n1\nno\n", "{device}");
        assert_eq!(result.unwrap_err().message, "mine", "{device}");
    }
}
