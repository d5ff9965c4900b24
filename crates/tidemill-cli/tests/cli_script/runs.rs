//! One script or several, and copies; the standard input; what a run may write beside its output.

use super::{Scripts, fed, is_timeline, run, sorted};
use std::path::Path;
use std::time::Instant;

#[test]
fn several_files_and_copies_print_whole_lines_with_their_names_before_them() {
    let text = "for k = 1:200, printf ('%d', k); printf (' of 200\\n'); end\nprintf ('end')";
    let scripts = Scripts::new(&[("a.m", text), ("b.m", text)]);
    let (a, b) = (scripts.path("a.m"), scripts.path("b.m"));
    let (code, out, err) = run(&["run", &a, &b, &a, "--copies", "3", "--prefix"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let mut expected = Vec::new();
    for name in ["a#1", "a#2", "a#3", "a#4", "a#5", "a#6", "b#1", "b#2", "b#3"] {
        expected.extend((1..=200).map(|k| format!("{name}: {k} of 200")));
        expected.push(format!("{name}: end"));
    }
    expected.sort_unstable();
    assert_eq!(sorted(&out), expected);
    let (code, out, _) = run(&["run", &scripts.path("a.m"), "--copies", "2"]);
    assert_eq!((code, out.lines().count()), (0, 402));
}

#[test]
fn whole_lines_of_several_reach_the_standard_error_with_their_names_before_them() {
    let text =
        "for k = 1:200, fprintf (2, '%d', k); fprintf (2, ' of '); fprintf (2, '200\\n'); end, fprintf (2, 'end')";
    let scripts = Scripts::new(&[("a.m", text)]);
    let (code, out, err) = run(&["run", &scripts.path("a.m"), "--copies", "4", "--prefix"]);
    assert_eq!((code, out.as_str()), (0, ""));
    let line = |copy, k| format!("a#{copy}: {k} of 200");
    let mut expected: Vec<String> = (1..=4).flat_map(|copy| (1..=200).map(move |k| line(copy, k))).collect();
    expected.extend((1..=4).map(|copy| format!("a#{copy}: end")));
    expected.sort_unstable();
    assert_eq!(sorted(&err), expected);
}

#[test]
fn an_error_of_one_among_several_scripts_says_which() {
    let scripts = Scripts::new(&[("a.m", "if rand > 2, end\nerror ('no')\n"), ("b.m", "disp (1)\n")]);
    let (code, _, err) = run(&["run", &scripts.path("a.m"), "--copies", "2"]);
    assert_eq!(code, 1);
    assert!(err.contains("in a#1") && err.contains("in a#2"), "{err}");
    let (_, _, err) = run(&["run", &scripts.path("a.m"), &scripts.path("b.m")]);
    assert!(err.contains("in a\n"), "{err}");
    let (_, _, err) = run(&["run", &scripts.path("a.m")]);
    assert!(!err.contains("error: in"), "{err}");
}

#[test]
fn copies_draw_their_own_random_numbers_and_a_run_repeats() {
    let scripts = Scripts::new(&[("r.m", "printf ('%.15f\\n', rand ());")]);
    let two = || run(&["run", &scripts.path("r.m"), "--copies", "2"]).1;
    let first = two();
    let lines = sorted(&first);
    assert!(lines.len() == 2 && lines[0] != lines[1], "{first}");
    assert_eq!(lines, sorted(&two()));
}

#[test]
fn a_script_is_read_from_the_standard_input_and_arguments_reach_it() {
    let text = "a = argv (); printf ('%s|', a{:}); disp (numel (a))";
    assert_eq!(fed(&["run", "-", "--", "one", "--two", "x y"], text), (0, "one|--two|x y|3\n".into(), String::new()));
    assert_eq!(fed(&["run", "-"], "disp (1)").1, "1\n");
    let (code, _, err) = fed(&["run", "-"], "x = 1;\ny = nothing_here (x)");
    assert_eq!(code, 1);
    assert!(err.contains("-:2:5") && err.contains("'nothing_here' undefined"), "{err}");
}

#[test]
fn timelines_counters_and_plans_are_written_when_they_are_asked_for() {
    let scripts = Scripts::new(&[("big.m", "x = rand (200); y = x * 2 + 1; printf ('%d\\n', sum (y(:)) > 0);")]);
    let trace = scripts.path("t.json");
    let (code, out, err) = run(&["run", &scripts.path("big.m"), "--trace", &trace, "--stats", "--explain"]);
    assert_eq!((code, out.as_str()), (0, "1\n"), "{err}");
    is_timeline(Path::new(&trace));
    assert!(err.contains("kernels") && err.contains("ops_recorded") && err.contains("mul"), "{err}");
    let (code, _, err) = run(&["run", &scripts.path("big.m"), "--trace", "/no/such/folder/t.json"]);
    assert_eq!(code, 1);
    assert!(err.contains("cannot write the timeline"), "{err}");
}

#[test]
fn splines_of_surfaces_and_of_curves_with_gaps_are_those_of_octave() {
    // A basis of splines for every point of the mesh would take more memory than there is.
    let surface = "n = 600; A = mod (reshape ((1:n*n)*7919, n, n), 1009)/101;\n\
                   B = interp2 (A, linspace (1, n, 2*n), linspace (1, n, 2*n)', 'spline');\n\
                   printf ('%.8g\\n', sum (B(:)))\n";
    let gaps = "y = [1 8 NaN 64 125 216; 2 3 5 7 11 13]; printf ('%.6f ', spline (1:6, y, [2.5 3]))\n";
    let scripts = Scripts::new(&[("surface.m", surface), ("gaps.m", gaps)]);
    let (code, out, err) = run(&["run", &scripts.path("surface.m")]);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "7185826.2\n", ""));
    let (code, out, err) = run(&["run", &scripts.path("gaps.m")]);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "15.625000 4.012500 27.000000 5.000000 ", ""));
}

#[test]
fn library_functions_gather_arrays_of_the_device_as_often_for_many_elements_as_for_few() {
    let calls = [
        "gammainc (g, 2)",
        "gammaincinv (u, 2)",
        "betainc (u, 2, 3)",
        "betaincinv (u, 2, 3)",
        "expint (g)",
        "psi (g)",
        "sinint (g)",
        "cosint (g)",
        "ellipke (u)",
        "ellipj (g, 0.5)",
        "legendre (2, u)",
        "bincoeff (ceil (g), 2)",
        "repelem (g, 2)",
        "uniquetol (g)",
        "hex2num (num2hex (g))",
        "datestr (730000 + g)",
        "datevec (730000 + g)",
        "rat (g)",
        "movmean (g, 3)",
        "histcounts (g)",
        "spline (1:numel (g), g, 1.5)",
        "pchip (1:numel (g), g, 1.5)",
        "interp2 (g' * g, 2, 2, 'spline')",
        "interpn (g, 1)",
        "cplxpair (g)",
        "fillmissing (g, 'linear')",
        "ranks (g)",
        "convhull (g, mod (7 * g, 3))",
        "splitapply (@sum, g, 1 + mod (1:numel (g), 3))",
        "nthroot (g, 3)",
        "accumdim (1 + mod (1:numel (g), 3), g)",
        "inpolygon (g, g, [0 1 1], [0 0 1])",
        "discretize (g, 4)",
        "unwrap (g)",
        "runlength (round (g))",
        "weekday (730000 + g)",
        "eomday (2000 + round (g), 2)",
        "mink (g, 2)",
        "polyarea (g, mod (7 * g, 3))",
        "rgb2hsv ([u' u' u'])",
        "swapbytes (uint16 (g))",
        "isoutlier (g)",
    ];
    let gathers = |call: &str, n: usize| {
        let text =
            format!("g = gpuArray (0.5 + mod ((1:{n}) * 7919, 101) / 20); u = g / 6;\nx = {call};\nx = gather (x);\n");
        let scripts = Scripts::new(&[("main.m", &text)]);
        let (code, out, err) = run(&["run", "--stats", "--device", "host", &scripts.path("main.m")]);
        assert_eq!(code, 0, "{call}: {err}");
        let line = out.lines().chain(err.lines()).find_map(|line| line.strip_prefix("gathers "));
        line.unwrap_or_else(|| panic!("{out}{err}")).trim().parse::<u64>().unwrap()
    };
    for call in calls {
        let (few, many) = (gathers(call, 40), gathers(call, 200));
        assert!(many <= few + 4, "{call}: {few} gathers of 40 elements, {many} of 200");
    }
}

#[test]
fn eval_runs_a_text() {
    assert_eq!(run(&["eval", "x = 1 + 1"]), (0, "x = 2\n".into(), String::new()));
    assert_eq!(run(&["eval", "-3 ^ 2"]).1, "ans = -9\n");
    assert_eq!(run(&["eval", "exit (4)"]).0, 4);
    let (code, out, err) = run(&["eval", "1 +* 2"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("parse error") && err.contains("eval:1:4"), "{err}");
}

#[test]
fn what_nobody_reads_any_more_does_not_hold_up_the_end() {
    // Every iteration is recorded, and some of them are being computed when the script ends.
    let text = "y = ones (3000); for k = 1:30000, y = y + 1; end, exit (4)";
    let begin = Instant::now();
    assert_eq!(run(&["eval", text]).0, 4);
    // The runtime itself would wait half a minute for the work in flight.
    let seconds = begin.elapsed().as_secs();
    assert!(seconds < 25, "{seconds} s");
}
